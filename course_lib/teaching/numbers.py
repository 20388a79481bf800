"""Measured numbers in sentences: no page, deck or quiz types what can be read or computed.

`{{number:EXPRESSION}}` or `{{number:EXPRESSION:.1%}}` stands in a text for the value of a Python
expression, formatted as in an f-string. Its names are those of the room's numbers.py and, in every
lecture, those of `shared()`:

    {{number:percent(runs('08_positions', 'masked_accuracy', 'DeBERTa'))}}
    {{number:printed('tinybert')['glue']['tinybert_4'] / 79.5:.1%}}

A function's name alone stands for what it returns. What several sentences say, or what is long,
has a name of its own in the room's `NUMBERS`: `{{number:name}}`. `TYPED` there lists digits that a
text of the lecture holds with another meaning, and which."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from statistics import mean
from typing import Any

from .results import outcome, stored
from .rooms import lectures_with, room

PLACEHOLDER = re.compile(r"\{\{\s*number:(.+?)\s*\}\}")
FORMAT = re.compile(r":([+,]?(?:\.\d+)?[%defg,]?)$")
LETTERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class NumberError(ValueError):
    """A text asks for a number that its lecture does not have."""


@cache
def number(lecture: str, expression: str) -> str:
    """A lecture's number as its sentences say it: number("03", "million_tokens").

    expression: a name of the room's NUMBERS, or Python and perhaps a format. Raises NumberError,
    with the names that exist, for one that cannot be computed."""
    return in_sentence(lecture, expression, _names(lecture))


def in_sentence(lecture: str, expression: str, names: dict[str, Any]) -> str:
    """An expression over these names, formatted as its end says, else by `as_text`."""
    source, spec, *_ = [*FORMAT.split(expression), ""]
    try:
        value = eval(source, names)
        value = value() if callable(value) else value
        return format(value, spec) if spec else as_text(value)
    except Exception as error:
        raise NumberError(
            f"a text of lecture {lecture} asks for number {expression!r}: {type(error).__name__}: "
            f"{error}. Its names are {', '.join(sorted(n for n in names if n[0] != '_'))}."
        ) from error


@cache
def _names(lecture: str) -> dict[str, Any]:
    """What an expression of a lecture may say; the room's names come before all others."""
    names = shared() | {"exercise_minutes": lambda: exercise_minutes(lecture)}
    if lecture in lectures_with("numbers"):
        here = room(lecture, "numbers")
        names |= vars(here) | getattr(here, "NUMBERS", {})
    return names


@cache
def shared() -> dict[str, Any]:
    """What expressions of every lecture may say besides Python's own functions: results and runs,
    papers' printed tables, claims, published sizes, and the formats of this module."""
    from course_lib.config import encoder_flops, published
    from course_lib.encoder import count_parameters

    from .averages import glue_average

    of_claims = vars(import_module(f"{__package__}.claims"))  # which reads this module's formats
    return {
        **{name: of_claims[name] for name in ("claims", "parameters", "printed", "settled")},
        "stored": stored, "outcome": outcome, "runs": runs, "cpu_hours": cpu_hours,
        "glue_average": glue_average, "published": published, "encoder_flops": encoder_flops,
        "count_parameters": count_parameters, "mean": mean, "stdev": statistics.stdev,
        "signed": signed, "percent": percent, "millions": millions, "whole": whole,
        "in_letters": in_letters, "as_list": as_list,
        "log": math.log, "log2": math.log2, "exp": math.exp, "sqrt": math.sqrt,
    }  # fmt: skip


def as_text(value: Any) -> str:
    """A number for a sentence: thousands parted, three digits of a fraction; a text as it is."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def runs(name: str, measure: str, recipe: str) -> list[float]:
    """What each seed of a recipe reached by the results file of this name."""
    return [run[measure] for run in stored(name)["runs"][recipe]]


def signed(points: float, digits: int = 1) -> str:
    """A difference in points with its sign, a true minus; what rounds to nothing is +0."""
    return f"{round(points, digits) + 0.0:+.{digits}f}".replace("-", "−")


def whole(value: float) -> str:
    """Rounded, with a true minus."""
    return f"{value:.0f}".replace("-", "−")


def in_letters(count: int) -> str:
    """A small count as a word: "three"."""
    return LETTERS[count]


def as_list(values: Sequence[Any]) -> str:
    """The values in a row: "0, 2, 4"."""
    return ", ".join(map(str, values))


def exercise_minutes(lecture: str) -> int:
    """How many minutes all exercises of a lecture take."""
    return sum(exercise.minutes for exercise in room(lecture, "exercises").EXERCISES)


def millions(count: int) -> str:
    return f"{count / 1e6:.1f}M"


def percent(values: Sequence[float], digits: int = 0) -> str:
    """The mean over seeds of values from 0 to 1."""
    return f"{mean(values):.{digits}%}"


def cpu_hours(*names: str) -> str:
    """What the runs of these results files took, each on one thread: "0.7" hours of one core. Of
    processor time where a run recorded it, else of the clock."""
    return f"{sum(_seconds(stored(name)) for name in names) / 3600:.1f}"


def _seconds(record: Any) -> float:
    """Of a run or a file that says them, else of all runs inside, however deep they lie."""
    if isinstance(record, Mapping) and (spent := record.get("cpu_seconds", record.get("seconds"))):
        return float(spent)
    inner = record.values() if isinstance(record, Mapping) else record
    return sum(map(_seconds, inner)) if isinstance(record, Mapping | list) else 0.0


def filled(lecture: str, text: str, names: dict[str, Any] | None = None) -> str:
    """The text with its lecture's numbers in place of {{number:…}}; names: instead of those of its
    numbers.py."""
    if names is None:
        return PLACEHOLDER.sub(lambda match: number(lecture, match[1]), text)
    return PLACEHOLDER.sub(lambda match: in_sentence(lecture, match[1], names), text)
