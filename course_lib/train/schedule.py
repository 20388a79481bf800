"""How the learning rate moves: up in a straight line, then down in a straight line (BERT, section
A.2)."""

from __future__ import annotations


def warmup_then_linear(step: int, steps: int, warmup: float = 0.1) -> float:
    """The share of the top learning rate to use at `step` (counted from 0) of `steps`.

    The first `warmup` share of the steps climbs from near 0 to 1; the rest falls to near 0.
    """
    climbing = max(1, round(warmup * steps))
    if step < climbing:
        return (step + 1) / climbing
    return (steps - step) / max(1, steps - climbing)
