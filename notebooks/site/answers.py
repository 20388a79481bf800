"""Exercises without a kernel: under each, its hints one after another; where an answer is a number
or a few, the question for one input, to be computed by hand, with the exercise's known mistakes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import nbformat
from guesses import insert_after, play_box

from course_lib.teaching.exercises import exercise
from course_lib.teaching.exercises.form import Case, Draw, Exercise, copy_of
from course_lib.teaching.exercises.outputs import Exact, Number, plain
from course_lib.teaching.page import inline

CHECK = re.compile(r'^check\("([\d.]+)"', re.MULTILINE)
MARKS = re.compile(r"`([^`]*)`|(?<!\S)\*(\S[^*]*)\*")  # code and stress
LONGEST, MOST_CASES = 110, 12  # characters of an input; cases of a stage that are looked at
CLOSE = 0.002  # three digits: what is nearer to a number counts as it
MOST_SAID = 2  # mistakes that give the same numbers
WITHOUT = "With scripts allowed, the site compares your number here."


class ByHand(NamedTuple):
    """One input of an exercise: what comes out, and what comes out of its known mistakes, [numbers,
    what is said of them]."""

    case: Case
    right: list[float]
    mistakes: list[tuple[list[float], str]]


def place_answers(page: nbformat.NotebookNode, notebook: str) -> None:
    """Put below each exercise's cell what the site has of it. notebook: the address of the page's
    notebook, which checks functions."""
    for cell in list(page.cells):
        if cell.cell_type == "code" and (match := CHECK.search(cell.source)):
            insert_after(page, cell, below(exercise(match[1]), notebook))


def below(one: Exercise, notebook: str) -> str:
    """The hints, and the number to compute where there is one, as Markdown."""
    where = f'The check of your function needs <a href="{notebook}" download>the notebook</a>.'
    text = f"{where}\n\n{hints(one)}"
    return f"{text}\n\n{_box(one, by_hand(one))}" if asks_for_numbers(one) else text


def hints(one: Exercise) -> str:
    """Each hint unfolds from the one before it, as HTML."""
    count, text = len(one.hints), ""
    for n, hint in reversed(list(enumerate(one.hints, 1))):
        lines = "".join(f"<p>{inline(line, plain=True)}</p>" for line in hint.strip().split("\n"))
        text = f"<details><summary>Hint {n} of {count}</summary>{lines}{text}</details>"
    return text


def asks_for_numbers(one: Exercise) -> bool:
    """Whether some input of it is plain and short, and what comes out is one number or a few."""
    outs = one.outs(one.stages[0])
    numbers_only = all(isinstance(out, Number | Exact) for out in outs)
    return numbers_only and next(_cases(one), None) is not None


def by_hand(one: Exercise) -> ByHand:
    """The input that tells most of the known mistakes apart, the first of such."""
    candidates = (ByHand(case, right, known(one, case, right)) for case, right in _cases(one))
    return max(candidates, key=lambda by: len(by.mistakes))


def known(one: Exercise, case: Case, right: list[float]) -> list[tuple[list[float], str]]:
    """What comes out of the known mistakes, where it is numbers that are not the right ones."""
    messages: dict[tuple[float, ...], list[str]] = {}
    for mistake in one.mistakes:
        if mistake.endless:
            continue
        try:
            wrong = numbers(one.with_mistakes(mistake)(*copy_of(case)))
        except Exception:  # a mistake may raise whatever it likes
            continue
        if len(wrong) == len(right) and not _same(wrong, right):
            messages.setdefault(tuple(wrong), []).append(mistake.say)
    return [(list(wrong), " Or: ".join(texts[:MOST_SAID])) for wrong, texts in messages.items()]


def numbers(result: Any) -> list[float]:
    """One number or a tuple of them as a list; empty where it is anything else."""
    values = plain(result)
    values = list(values) if isinstance(values, tuple | list) else [values]
    finite = all(_number(value) and math.isfinite(value) for value in values)
    return values if finite else []


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(a: Iterable[float], b: Iterable[float]) -> bool:
    """As models/answer.js compares: whole numbers exactly, others to three digits."""
    pairs = zip(a, b, strict=True)
    return all(x == y if isinstance(y, int) else abs(x - y) <= 2 * CLOSE * abs(y) for x, y in pairs)


def _cases(one: Exercise) -> Iterator[tuple[Case, list[float]]]:
    """Plain, short inputs of its stages, and the numbers that come out."""
    for stage in one.stages:
        if stage.observe or stage.ask:
            continue
        for case in list(stage.cases(Draw(0)))[:MOST_CASES]:
            short = _plain(case) and len(_call(one, case)) <= LONGEST
            if short and (right := numbers(one.solution(*copy_of(case)))):
                yield case, right


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple | dict):
        return all(map(_plain, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, bool | int | float | str)


def _call(one: Exercise, case: Case) -> str:
    inputs = zip(one.parameters, case, strict=True)
    return f"{one.name}({', '.join(f'{name}={value!r}' for name, value in inputs)})"


def _box(one: Exercise, by: ByHand) -> str:
    outs = one.outs(one.stages[0])
    units = ("" if out.unit in out.name else f" ({out.unit})" for out in outs)
    names = [out.name + unit for out, unit in zip(outs, units, strict=True)]
    data: dict[str, Any] = {"names": names, "right": by.right, "close": CLOSE}
    label = f"exercise {one.id} by hand"
    data["mistakes"] = [(wrong, MARKS.sub(r"\1\2", message)) for wrong, message in by.mistakes]
    box = play_box(label, WITHOUT, {"play": "answer", "what": json.dumps(data)})
    return f"**By hand.** What does `{_call(one, by.case)}` return?\n\n{box}"
