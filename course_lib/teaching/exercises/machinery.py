"""How exercises are checked: stages, simple to hard, on fresh inputs, until one is not passed.

`form.py` says what an exercise is, `outputs.py` what comes out, `calling.py` how an answer is
called, `naming.py` how its mistake is named. Here they come together."""

from __future__ import annotations

import re
import secrets
import traceback
from collections.abc import Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any

from .calling import (
    PROCESSOR_SECONDS,
    AnswerRaised,
    Guarded,
    TookTooLong,
    Unanswered,
    is_empty,
    own_randomness,
    shown_input,
)
from .form import Answer, Case, Exercise, Stage, copy_of
from .gradients import all_stages
from .naming import Naming, in_sentences
from .outputs import Wrong, digits_apart, kind_of, text_of
from .question import Question, drawn, inputs_in_words, observed, question_of, size_of
from .report import Note, Report, Verdict
from .settings import ENVIRONMENT, own_settings


def check_answer(
    exercise: Exercise,
    answer: Any,
    seed: int | None = None,
    *,
    seconds: float = PROCESSOR_SECONDS,
) -> Report:
    """Run the stages in order until one is not passed. Never raises for anything an answer does;
    Ctrl-C interrupts it.

    seconds: processor time that the answer may take in one stage."""
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    again = (
        f"The inputs were drawn with seed {seed}: "
        f'check("{exercise.id}", …, seed={seed}) draws them again.'
    )
    stages = all_stages(exercise)
    if is_empty(answer):
        return _unanswered(exercise, stages)
    if not callable(answer):
        return _not_a_function(exercise, stages, answer)
    verdicts: list[Verdict] = []
    for i in range(len(stages)):
        try:
            with own_settings(ENVIRONMENT, plain=True), own_randomness(seed):
                verdict = _ask(exercise, stages, i, answer, seed, seconds)
        except Unanswered:
            return _unanswered(exercise, stages)
        verdicts.append(verdict)
        if not verdict.passed:
            rest = [Verdict(later.name, None) for later in stages[i + 1 :]]
            trouble = "error" if verdict.mistake in ("raised", "not comparable") else ""
            return Report(exercise.heading, verdicts + rest, trouble, again)  # type: ignore[arg-type]
    return Report(exercise.heading, verdicts, again=again)


def _ask(
    exercise: Exercise, stages: Sequence[Stage], i: int, answer: Answer, seed: int, seconds: float
) -> Verdict:
    stage, guarded = stages[i], Guarded(exercise, answer, seconds)
    guarded._watching = bool(exercise.forbidden) and i == 0
    try:
        question = question_of(exercise, i, seed)
        if stage.ask:
            for case in question.cases:
                stage.ask(guarded, *copy_of(case))
        else:
            _compare(question, guarded)
    except Unanswered:
        raise
    except Wrong as wrong:
        return Verdict(stage.name, False, wrong.message, wrong.kind)
    except AnswerRaised as error:
        message = what_was_raised(error.__cause__, exercise, guarded.last)
        return Verdict(stage.name, False, message, "raised")
    except TookTooLong:
        return Verdict(stage.name, False, _never_ends(seconds, guarded.last), "never ends")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a result of a kind that could not even be compared
        message = (
            "What your function returned could not be compared with the correct result "
            f"({type(error).__name__}: {text_of(error)}). Expected: {exercise.signature}."
        )
        return Verdict(stage.name, False, message, "not comparable")
    return Verdict(stage.name, True, stage.remark() if callable(stage.remark) else stage.remark)


# ---------------------------------------------------------------- comparing with the solution


def _compare(question: Question, answer: Guarded) -> None:
    """Raise Wrong for the smallest case that goes wrong, with the mistake's name."""
    problems = [(case, question.problem(answer, case)) for case in question.cases]
    wrong = [(size_of(case), *problem) for case, problem in problems if problem]
    if not wrong:
        return
    _, place, first = min(wrong, key=lambda one: one[0])
    if first.kind == "gradient":
        raise first
    naming = Naming(question, answer.function)
    if first.kind == "number of results":
        names, kind = naming.of_whole_results(), "known"
    else:
        names, kind = naming.name(place, question.outs[place])
    if names:
        raise Wrong(f"{in_sentences(names)}\n{first.message}", kind)
    raise first


# ---------------------------------------------------------------- reports


def _unanswered(exercise: Exercise, stages: Sequence[Stage]) -> Report:
    message = (
        f'Replace the `...` in your function, then run the cell again. Help: hint("{exercise.id}").'
    )
    first, *rest = stages
    verdicts = [Verdict(first.name, None, message), *(Verdict(s.name, None) for s in rest)]
    return Report(exercise.heading, verdicts, "unanswered")


def _not_a_function(exercise: Exercise, stages: Sequence[Stage], answer: Any) -> Report:
    message = (
        f"check was given {kind_of(answer)}; expected your function itself, without parentheses or "
        f'arguments: check("{exercise.id}", {exercise.name}).'
    )
    first, *rest = stages
    verdicts = [
        Verdict(first.name, False, message, "not a function"),
        *(Verdict(s.name, None) for s in rest),
    ]
    return Report(exercise.heading, verdicts, "error")


def _never_ends(seconds: float, inputs: Case) -> str:
    message = (
        f"Your function did not return within {seconds:g} seconds of computing. Does a loop never "
        "end? Check that every path through the loop brings it nearer to its end."
    )
    values = ", ".join(shown_input(x) for x in inputs)
    return f"{message}\nIt was given: {values}." if values else message


WHEN_RAISED = (
    ("__round__", "A tensor of one number is not a Python number: wrap it in int(...)."),
)


def what_was_raised(error: BaseException | None, exercise: Exercise, inputs: Case) -> str:
    """The exception in one line, the student's own line it came from, and what was expected."""
    raised = text_of(error)
    frames = traceback.extract_tb(error.__traceback__) if error else []
    own = [f for f in frames if "course_lib" not in f.filename.replace("\\", "/") and f.line]
    place = f"\nIt came from line {own[0].lineno} of your code: {own[0].line}" if own else ""
    advice = ""
    if isinstance(error, TypeError) and "argument" in raised:
        advice = f"\nYour function is called as {exercise.signature}."
    text = f"{raised}\n{own[0].line if own else ''}"
    if isinstance(error, KeyError):
        advice = f"\nA dictionary has no entry {raised}: `.get({raised})` gives None instead."
    for pattern, hint in (*exercise.when_raised, *WHEN_RAISED):
        if re.search(pattern, text):
            advice = f"\n{hint}"
            break
    values = inputs_in_words(exercise, inputs)
    values = f"\nIt was called with {values[4:-2]}." if values else ""
    return f"Your function raised {type(error).__name__}: {raised}{place}{values}{advice}"


# ---------------------------------------------------------------- what reveal shows


def solution_note(exercise: Exercise) -> Note:
    """The library's own functions where there are any, else the solution kept with the exercise."""
    from course_lib.teaching.source import show

    if exercise.library:
        source = show(*(_find(place) for place in exercise.library), whole=True)
        title = f"Solution of {exercise.heading}, as the library has it"
        return Note(title, source.text, source.html)
    source = show(*exercise.helpers, exercise.solution, whole=True)
    see = f"In the library: {exercise.see}." if exercise.see else ""
    return Note(f"Solution of {exercise.heading}", f"{source.text}\n{see}", source.html + see)


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


__all__ = ["all_stages", "check_answer", "digits_apart", "drawn", "observed", "solution_note"]
