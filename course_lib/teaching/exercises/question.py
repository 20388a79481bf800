"""A stage with the cases of one seed: what functions give on them, and whether that is right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor

from .calling import (
    PROCESSOR_SECONDS,
    Guarded,
    TookTooLong,
    holds_functions,
    own_randomness,
    shown_input,
)
from .form import Answer, Case, Draw, Exercise, Stage, copy_of
from .gradients import all_stages
from .outputs import Out, Wrong, kind_of, numeric

NOTHING = object()  # where a function gave no value to compare
SECOND_DRAW = 1_000_003  # so much behind the first one's seed
NAMING_SECONDS = 2.0  # processor time that a known mistake may take for one case


@lru_cache(maxsize=32)
def question_of(exercise: Exercise, i: int, seed: int) -> Question:
    """Stage number i of an exercise, with the cases of this seed."""
    return Question(exercise, i, seed)


class Question:
    """What the solution and the known mistakes give on a case is computed once and kept."""

    def __init__(self, exercise: Exercise, i: int, seed: int) -> None:
        self.exercise, self.i, self.seed = exercise, i, seed
        self.stages = all_stages(exercise)
        self.stage = self.stages[i]
        self.outs = exercise.outs(self.stage)
        self.cases = drawn(self.stages, i, seed)
        self._kept: dict[tuple[Answer, int], tuple[Case, Any]] = {}
        self._passing: dict[Answer, bool] = {}

    @cached_property
    def again(self) -> list[Case]:
        """The stage's cases, drawn a second time."""
        return drawn(self.stages, self.i, self.seed + SECOND_DRAW)

    @cached_property
    def alike(self) -> list[int]:
        """The other stages that look at the same."""
        same = (j for j, s in enumerate(self.stages) if s.observe is self.stage.observe)
        return [j for j in same if j != self.i and not self.stages[j].ask]

    @cached_property
    def others(self) -> list[Case]:
        """The cases of these stages."""
        return [case for j in self.alike for case in question_of(self.exercise, j, self.seed).cases]

    def before(self, name: str) -> list[Case]:
        """Those of the earlier ones that look at the output of this name."""
        earlier = [j for j in self.alike if j < self.i]
        looking = [j for j in earlier if name in (self.stages[j].only or (name,))]
        return [case for j in looking for case in question_of(self.exercise, j, self.seed).cases]

    def result(self, function: Answer, case: Case) -> Any:
        """What is observed of a function of ours, or NOTHING where it fails or takes too long."""
        key = function, id(case)
        if key not in self._kept:  # the case is kept, too, so that its id stays its own
            with own_randomness(self.seed + len(self._kept)):
                self._kept[key] = case, self.tried(self._ours(function), case)
        return self._kept[key][1]

    def tried(self, guarded: Guarded, case: Case) -> Any:
        """What is observed of any function, or NOTHING."""
        guarded._watching = False
        try:
            return observed(self.stage, guarded, case)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return NOTHING

    def passed(self, function: Answer) -> bool:
        """Whether a function of ours passes the stages before this one."""
        earlier = (question_of(self.exercise, j, self.seed) for j in range(self.i))
        return all(question.passes(function) for question in earlier)

    def passes(self, function: Answer) -> bool:
        """Whether a function of ours passes this stage."""
        if function not in self._passing:
            self._passing[function] = self._passes(function)
        return self._passing[function]

    def _passes(self, function: Answer) -> bool:
        guarded = self._ours(function)
        try:
            for case in self.cases:
                if self.stage.ask:
                    self.stage.ask(guarded, *copy_of(case))
                elif self._difference(self.result(function, case), case):
                    return False
        except (Exception, TookTooLong):
            return False
        return True

    def _ours(self, function: Answer) -> Guarded:
        own = function is self.exercise.solution
        seconds = PROCESSOR_SECONDS if own else NAMING_SECONDS
        guarded = Guarded(self.exercise, function, seconds, ours=True)
        guarded._watching = False
        return guarded

    def problem(self, answer: Guarded, case: Case) -> tuple[int, Wrong] | None:
        """The first output of this case that is wrong, and a sentence about it."""
        return self._difference(observed(self.stage, answer, case), case)

    def _difference(self, output: Any, case: Case) -> tuple[int, Wrong] | None:
        outs, stage, exercise = self.outs, self.stage, self.exercise
        right = self.result(exercise.solution, case)
        rights = (right,) if len(outs) == 1 else tuple(right)
        try:
            parts = _parts(outs, output, rights)
        except Wrong as wrong:
            return 0, wrong
        for place, (out, x, y) in enumerate(zip(outs, parts, rights, strict=True)):
            if stage.only and out.name not in stage.only:
                continue
            try:
                value = out.read(x, y)
            except Wrong as wrong:
                return place, wrong
            if not out.same(value, y):
                inputs = "" if stage.observe else inputs_in_words(exercise, case)
                infinite = exercise.infinite and _finite(y) and not _finite(value)
                message = f"{exercise.infinite}\n" if infinite else ""
                return place, Wrong(f"{message}{inputs}{_your(out, value, y)}")
        return None


def drawn(stages: Sequence[Stage], i: int, seed: int) -> list[Case]:
    """The cases of a stage: the same for the same seed, whatever was asked before."""
    return [tuple(case) for case in stages[i].cases(Draw(seed * 1_000 + i))]


def observed(stage: Stage, function: Answer, case: Case) -> Any:
    """What a stage looks at: the result on copies of the inputs, or what its observe gives."""
    inputs = copy_of(case)
    return stage.observe(function, *inputs) if stage.observe else function(*inputs)


def _parts(outs: Sequence[Out], output: Any, rights: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs one by one: of a tuple or a list, or of one tensor whose rows have the shapes
    that are expected."""
    if len(outs) == 1:
        return (output,)
    if isinstance(output, Tensor) and output.dim():
        shapes = {tuple(torch.as_tensor(y).shape) if numeric(y) else None for y in rights}
        output = tuple(output) if shapes == {tuple(output.shape[1:])} else output
    if not isinstance(output, (tuple, list)) or len(output) != len(outs):
        names = ", ".join(out.name for out in outs)
        many = f"{len(output)} things" if isinstance(output, (tuple, list)) else kind_of(output)
        raise Wrong(
            f"Your function returned {many}; expected {len(outs)}: {names}.", "number of results"
        )
    return tuple(output)


def _your(out: Out, output: Any, right: Any) -> str:
    return f"{out.name[:1].upper()}{out.name[1:]}: {out.difference(output, right)}"


def inputs_in_words(exercise: Exercise, case: Case) -> str:
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


def size_of(case: Case) -> int:
    return sum(x.numel() if isinstance(x, Tensor) else len(repr(x)) for x in case)
