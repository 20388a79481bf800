"""Wrong answers as switches of one function: each switch alone, then every two together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

from ..machinery import Answer, Suspect

Slips = Mapping[str, tuple[str, Mapping[str, Any]]]  # key -> what is said, which switches it sets


def slip_suspects(answer_with: Callable[..., Answer], slips: Slips) -> tuple[Suspect, ...]:
    """answer_with(**switches) is the answer that slipped so. Two slips that set the same switch
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
    return (*alone, *both)
