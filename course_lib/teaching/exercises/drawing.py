"""Stages for exercises that draw: where the random numbers must come from."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .calling import Guarded, global_states
from .form import Case, Draw, Stage, copy_of
from .outputs import Wrong, alike, plain

MORE_STATES = 3  # other states that must not all give the same


def from_generator(cases: Callable[[Draw], Iterable[Case]], parameter: str = "generator") -> Stage:
    """The last stage of an exercise whose input `parameter` is the generator to draw from."""

    def ask(function: Guarded, *case: Any) -> None:
        place = function.exercise.parameters.index(parameter)
        before = global_states()
        results = [plain(function(*copy_of(case))) for _ in range(2)]
        if not alike(*results):
            raise Wrong(
                f"The same state of `{parameter}` gave two different results. Every draw must come "
                f"from `{parameter}`, so that an experiment can be repeated.",
                "randomness",
            )
        if global_states() != before:
            raise Wrong(
                f"Your function draws from, or seeds, a generator that other code shares; draw "
                f"only from `{parameter}`.",
                "randomness",
            )
        others = (_another(case[place], n) for n in range(1, 1 + MORE_STATES))
        changed = ((*case[:place], other, *case[place + 1 :]) for other in others)
        if all(alike(plain(function(*copy_of(inputs))), results[0]) for inputs in changed):
            raise Wrong(
                f"A different state of `{parameter}` gives the same result: your function does not "
                "draw from it, or seeds it.",
                "randomness",
            )

    return Stage(f"the draws come from `{parameter}`", cases, ask=ask)


def _another(generator: Any, n: int) -> Any:
    if isinstance(generator, random.Random):
        return random.Random(generator.randrange(2**31) + n)
    return torch.Generator().manual_seed(generator.initial_seed() + n)


def from_torch(cases: Callable[[Draw], Iterable[Case]]) -> Stage:
    """The last stage of an exercise that draws torch's own random numbers, unseeded."""

    def ask(function: Guarded, *case: Any) -> None:
        results = []
        for seed in (1, 1, *range(2, 2 + MORE_STATES)):
            torch.manual_seed(seed)
            results.append(plain(function(*copy_of(case))))
        if not alike(results[0], results[1]):
            raise Wrong(
                "After the same torch.manual_seed your function drew two different results: some "
                "of its random numbers are not torch's.",
                "randomness",
            )
        if all(alike(result, results[0]) for result in results[2:]):
            raise Wrong(
                "After another torch.manual_seed your function gives the same result: nothing is "
                "drawn from torch, or a seed is set inside.",
                "randomness",
            )

    return Stage("the draws are torch's own", cases, ask=ask)
