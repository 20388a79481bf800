"""Wrong answers as switches of one function: each switch alone, and every two together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from course_lib.teaching.exercises.diagnosis import Case
from course_lib.teaching.exercises.legacy import Answer, Draw, Suspect

Slips = Mapping[str, tuple[str, Mapping[str, Any]]]  # key -> what is said, which switches it sets


def slip_suspects(
    answer_with: Callable[..., Answer], slips: Slips, *others: Suspect
) -> tuple[Suspect, ...]:
    """Each slip alone, then the others, which are no switch, then every two slips together.

    answer_with(**switches) is the answer that slipped so. Two slips that set the same switch
    contradict each other, and make no pair."""
    alone = [Suspect(key, said, answer_with(**set)) for key, (said, set) in slips.items()]
    both = [
        Suspect(
            f"{first} + {second}",
            f"Two things. {slips[first][0]} And: {slips[second][0]}",
            answer_with(**slips[first][1], **slips[second][1]),
        )
        for first, second in combinations(slips, 2)
        if not slips[first][1].keys() & slips[second][1].keys()
    ]
    return (*alone, *others, *both)


def pools(
    cases: Callable[[Draw], Sequence[Any]], draw: Draw, *wider: Callable[[Draw], Sequence[Any]]
) -> list[list[Case]]:
    """What a mistake is named on, for `name_suspect`: each of the wider draws, then none of them,
    always together with the stage's own cases. Without these an answer that a wider draw finds
    right would be given the name of any slip that does not show there."""
    own = [case for _ in range(4) for case in cases(draw)]
    return [*([*wide(draw), *own] for wide in wider), own]
