"""How exercises are checked: stages, simple to hard, on fresh inputs, until one is not passed.

`form.py` says what an exercise is, `outputs.py` what comes out, `calling.py` how an answer is
called, `naming.py` how its mistake is named. Here they come together."""

from __future__ import annotations

import re
import secrets
import traceback
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor

from .calling import (
    PROCESSOR_SECONDS,
    AnswerRaised,
    Guarded,
    TookTooLong,
    Unanswered,
    holds_functions,
    is_empty,
    own_randomness,
    shown_input,
)
from .form import Answer, Case, Draw, Exercise, Stage, copy_of
from .naming import Observations
from .outputs import Numbers, Out, Wrong, digits_apart, kind_of, text_of
from .report import Note, Report, Verdict
from .settings import ENVIRONMENT, own_settings

SECOND_DRAW = 1_000_003  # so much behind the first one's seed
NAMING_SECONDS = 1.0  # processor time that a known mistake may take for one case


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


def all_stages(exercise: Exercise) -> list[Stage]:
    """The exercise's stages, and that of the gradient where one is declared."""
    return [*exercise.stages, *([gradient_stage(exercise)] if exercise.gradient else [])]


def _ask(
    exercise: Exercise, stages: Sequence[Stage], i: int, answer: Answer, seed: int, seconds: float
) -> Verdict:
    stage, guarded = stages[i], Guarded(exercise, answer, seconds)
    guarded._watching = bool(exercise.forbidden) and i == 0
    try:
        cases = drawn(stages, i, seed)
        if stage.ask:
            for case in cases:
                stage.ask(guarded, *copy_of(case))
        else:
            _compare(exercise, stages, i, guarded, cases, seed)
    except Unanswered:
        raise
    except Wrong as wrong:
        return Verdict(stage.name, False, wrong.message, wrong.kind)
    except AnswerRaised as error:
        said = what_was_raised(error.__cause__, exercise, guarded.last)
        return Verdict(stage.name, False, said, "raised")
    except TookTooLong:
        return Verdict(stage.name, False, _never_ends(seconds, guarded.last), "never ends")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a result of a kind that could not even be compared
        said = (
            "What your function returned could not be compared with the right result "
            f"({type(error).__name__}: {text_of(error)}). Expected: {exercise.signature}."
        )
        return Verdict(stage.name, False, said, "not comparable")
    return Verdict(stage.name, True, stage.remark() if callable(stage.remark) else stage.remark)


def drawn(stages: Sequence[Stage], i: int, seed: int) -> list[Case]:
    """The cases of a stage: the same for the same seed, whatever was asked before."""
    return [tuple(case) for case in stages[i].cases(Draw(seed * 1_000 + i))]


# ---------------------------------------------------------------- comparing with the solution


def observed(stage: Stage, function: Answer, case: Case) -> Any:
    """What a stage looks at: the result on copies of the inputs, or what its observe gives."""
    given = copy_of(case)
    return stage.observe(function, *given) if stage.observe else function(*given)


def _compare(
    exercise: Exercise, stages: Sequence[Stage], i: int, answer: Guarded, cases: list[Case],
    seed: int,
) -> None:  # fmt: skip
    """Raise Wrong for the smallest case that goes wrong, with the mistake's name."""
    stage = stages[i]
    wrong: list[tuple[int, int, int, Wrong]] = []
    for n, case in enumerate(cases):
        problem = _problem(exercise, stage, answer, case)
        if problem:
            place, said = problem
            wrong.append((_size(case), n, place, said))
    if not wrong:
        return
    _, _, place, said = min(wrong, key=lambda found: found[:2])
    if said.kind in ("gradient", "number of results"):
        raise said
    name = exercise.outs(stage)[place].name
    alike = [j for j, s in enumerate(stages) if s.observe is stage.observe and not s.ask]
    others = [case for j in alike if j != i for case in drawn(stages, j, seed)]
    seen = Observations(
        exercise, stage, cases, others, answer.function,
        lambda function, case: observed(stage, function, case), NAMING_SECONDS,
        lambda function: _passes(exercise, stages[:i], function, seed),
        lambda: drawn(stages, i, seed + SECOND_DRAW),
        [case for j in alike if j < i and name in (stages[j].only or (name,))
         for case in drawn(stages, j, seed)],
    )  # fmt: skip
    names, kind = seen.name(place, exercise.outs(stage)[place])
    if names:
        raise Wrong(f"{either(names)}\n{said.message}", kind)
    raise said


def _passes(exercise: Exercise, stages: Sequence[Stage], function: Answer, seed: int) -> bool:
    """Whether a function passes these stages."""
    guarded = Guarded(exercise, function, NAMING_SECONDS, ours=True)
    guarded._watching = False
    try:
        for i, stage in enumerate(stages):
            for case in drawn(stages, i, seed):
                if stage.ask:
                    stage.ask(guarded, *copy_of(case))
                elif _problem(exercise, stage, guarded, case):
                    return False
    except (Exception, TookTooLong):
        return False
    return True


def either(names: Sequence[str]) -> str:
    """Several mistakes that fit equally well, as one text."""
    if len(names) == 1:
        return names[0]
    return "Either: " + "\nOr: ".join(names)


def _problem(
    exercise: Exercise, stage: Stage, answer: Guarded, case: Case
) -> tuple[int, Wrong] | None:
    """The first output of this case that is wrong, and a sentence about it."""
    outs = exercise.outs(stage)
    right = observed(stage, exercise.solution, case)
    mine = observed(stage, answer, case)
    rights = (right,) if len(outs) == 1 else tuple(right)
    for place, (out, x, y) in enumerate(zip(outs, _parts(outs, mine), rights, strict=True)):
        if stage.only and out.name not in stage.only:
            continue
        try:
            found = out.read(x, y)
        except Wrong as wrong:
            return place, wrong
        if not out.same(found, y):
            given = "" if stage.observe else _given(exercise, case)
            infinite = exercise.infinite and _finite(y) and not _finite(found)
            said = f"{exercise.infinite}\n" if infinite else ""
            return place, Wrong(f"{said}{given}{_your(out, found, y)}")
    return None


def _parts(outs: Sequence[Out], mine: Any) -> tuple[Any, ...]:
    if len(outs) == 1:
        return (mine,)
    several = isinstance(mine, (tuple, list)) or (isinstance(mine, Tensor) and mine.dim())
    if not several or len(mine) != len(outs):
        names = ", ".join(out.name for out in outs)
        many = f"{len(mine)} things" if isinstance(mine, (tuple, list)) else kind_of(mine)
        raise Wrong(
            f"Your function returned {many}; expected {len(outs)}: {names}.", "number of results"
        )
    return tuple(mine)


def _your(out: Out, mine: Any, right: Any) -> str:
    return f"{out.name[:1].upper()}{out.name[1:]}: {out.difference(mine, right)}"


def _given(exercise: Exercise, case: Case) -> str:
    """The inputs of a counter-example, where they are short enough to be read."""
    parts = [
        f"{name} = {shown_input(x)}"
        for name, x in zip(exercise.parameters, case, strict=False)
        if not holds_functions(x) and not isinstance(x, torch.Generator)
    ]
    text = ", ".join(part for part in parts if len(part) <= 260)
    return f"For {text}: " if 0 < len(text) <= 500 else ""


def _finite(x: Any) -> bool:
    try:
        return bool(torch.isfinite(torch.as_tensor(x)).all())
    except Exception:
        return True


def _size(case: Case) -> int:
    return sum(x.numel() if isinstance(x, Tensor) else len(repr(x)) for x in case)


# ---------------------------------------------------------------- gradients


def gradient_stage(exercise: Exercise) -> Stage:
    """Through which inputs the gradient flows, and how: asked on the last plain stage's cases."""
    cases = [stage for stage in exercise.stages if not stage.observe and not stage.ask][-1].cases
    outs = (exercise.returns,) if isinstance(exercise.returns, Out) else tuple(exercise.returns)

    def observe(function: Answer, *case: Any) -> Any:
        given = copy_of(case)
        named = zip(exercise.parameters, given, strict=False)
        leaves = _leaves([(name, x) for name, x in named], exercise.gradient)
        for _, x in leaves:
            x.requires_grad_()
        loss = _weighed(function(*given), exercise.solution(*given), outs)
        grads = torch.autograd.grad(loss, [x for _, x in leaves], allow_unused=True)
        _expect_no_others(exercise, [name for name, _ in leaves], grads)
        pairs = list(zip(leaves, grads, strict=True))
        found = []
        for name in exercise.gradient:
            mine = [torch.zeros_like(x) if g is None else g for (of, x), g in pairs if of == name]
            found.append(mine[0] if len(mine) == 1 else torch.cat([g.flatten() for g in mine]))
        return tuple(found) if len(found) > 1 else found[0]

    returns = [Numbers(f"gradient of `{name}`") for name in exercise.gradient]
    return Stage("the gradient", cases, observe=observe, returns=returns)


def _leaves(named: Sequence[tuple[str, Any]], first: Sequence[str]) -> list[tuple[str, Tensor]]:
    """Every floating-point tensor among the inputs once, with its name, one of `first` if it can
    be."""
    found: list[tuple[str, Tensor]] = []

    def add(name: str, x: Any) -> None:
        if isinstance(x, Tensor) and x.is_floating_point():
            found.append((name, x))
        elif isinstance(x, (list, tuple)):
            for part in x:
                add(name, part)
        elif is_dataclass(x):
            for field in fields(x):
                add(f"{name}.{field.name}", getattr(x, field.name))

    for name, x in named:
        add(name, x)
    found.sort(key=lambda pair: pair[0] in first)
    return list({id(x): (name, x) for name, x in found}.values())  # of two names the last


def _weighed(result: Any, right: Any, outs: Sequence[Out]) -> Tensor:
    """One number of all that is returned, each entry with a weight of its own."""
    parts, rights = ((x,) if len(outs) == 1 else tuple(x) for x in (result, right))
    total = torch.zeros(())
    for part, wanted, out in zip(parts, rights, outs, strict=True):
        if not isinstance(part, Tensor) or not part.requires_grad:
            if isinstance(wanted, Tensor) and wanted.requires_grad:
                raise Wrong(
                    f"Your {out.name} carries no gradient: a number made with .item(), .detach(), "
                    "numpy or torch.tensor has lost it. Stay with torch's own operations.",
                    "gradient",
                )
            continue
        weights = torch.linspace(0.5, 1.5, max(1, part.numel()), dtype=part.dtype)
        total = total + (part * weights.view(part.shape)).sum()
    return total


def _expect_no_others(
    exercise: Exercise, names: Sequence[str], grads: Sequence[Tensor | None]
) -> None:
    for name, grad in zip(names, grads, strict=True):
        if name not in exercise.gradient and grad is not None and bool((grad != 0).any()):
            raise Wrong(
                f"A gradient flows into `{name}`; none may: write .detach() behind it, or behind "
                "what you take from it.",
                "gradient",
            )


# ---------------------------------------------------------------- reports


def _unanswered(exercise: Exercise, stages: Sequence[Stage]) -> Report:
    said = (
        f'Replace the `...` in your function, then run the cell again. Help: hint("{exercise.id}").'
    )
    first, *rest = stages
    verdicts = [Verdict(first.name, None, said), *(Verdict(s.name, None) for s in rest)]
    return Report(exercise.heading, verdicts, "unanswered")


def _not_a_function(exercise: Exercise, stages: Sequence[Stage], answer: Any) -> Report:
    said = (
        f"check was given {kind_of(answer)}; expected your function itself, without parentheses or "
        f'arguments: check("{exercise.id}", {exercise.name}).'
    )
    first, *rest = stages
    verdicts = [
        Verdict(first.name, False, said, "not a function"),
        *(Verdict(s.name, None) for s in rest),
    ]
    return Report(exercise.heading, verdicts, "error")


def _never_ends(seconds: float, inputs: Case) -> str:
    said = (
        f"Your function did not come back within {seconds:g} seconds of computing: does a loop in "
        "it never end? Look whether every way through the loop brings it nearer to its end."
    )
    given = ", ".join(shown_input(x) for x in inputs)
    return f"{said}\nIt was given: {given}." if given else said


WHEN_RAISED = (
    ("__round__", "A tensor of one number is not a Python number: wrap it in int(...)."),
)


def what_was_raised(error: BaseException | None, exercise: Exercise, inputs: Case) -> str:
    """The exception in one line, the student's own line it came from, and what was expected."""
    words = text_of(error)
    frames = traceback.extract_tb(error.__traceback__) if error else []
    own = [f for f in frames if "course_lib" not in f.filename.replace("\\", "/") and f.line]
    place = f"\nIt came from line {own[0].lineno} of your code: {own[0].line}" if own else ""
    advice = ""
    if isinstance(error, TypeError) and "argument" in words:
        advice = f"\nYour function is called as {exercise.signature}."
    text = f"{words}\n{own[0].line if own else ''}"
    for pattern, said in (*exercise.when_raised, *WHEN_RAISED):
        if re.search(pattern, text):
            advice = f"\n{said}"
            break
    given = _given(exercise, inputs)
    given = f"\n{given[:-2]}." if given else ""
    return f"Your function raised {type(error).__name__}: {words}{place}{given}{advice}"


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
