"""One rule for "better" on all pages that say so: in every seed, by more than the seeds differ."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev

from .numbers import signed

BETTER, WORSE, OPEN = "better", "worse", "not settled"


def by_rule(one: Sequence[float], other: Sequence[float]) -> str:
    """Better, worse or not settled: `one` against `other`, a value a seed, the same seeds in both.

    A difference is settled if it has one sign in every seed and its mean exceeds the larger of the
    two standard deviations. The rule sees only the seeds: a small test adds its own uncertainty. Of
    two equal models it settles 30% of comparisons with two seeds, 16% with three, 5% with five.
    Raises ValueError for fewer than two seeds and for another number of them."""
    if len(one) != len(other) or len(one) < 2:
        raise ValueError(
            f"{len(one)} and {len(other)} values were given; expected one a seed, as many in both "
            "and at least two."
        )
    gained = [a - b for a, b in zip(one, other, strict=True)]
    if abs(mean(gained)) <= max(stdev(one), stdev(other)):
        return OPEN
    return BETTER if min(gained) > 0 else WORSE if max(gained) < 0 else OPEN


def in_points(one: Sequence[float], other: Sequence[float]) -> str:
    """The mean difference of values from 0 to 1 with the rule's word for it: "+7.5 better"."""
    points = mean(a - b for a, b in zip(one, other, strict=True))
    return f"{signed(100 * points)} {by_rule(one, other)}"
