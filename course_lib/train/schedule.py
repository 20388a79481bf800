"""How the learning rate moves, up in a straight line, then down in a straight line (BERT, section
A.2), and what Adam makes of it."""

from __future__ import annotations

from collections.abc import Sequence


def warmup_then_linear(
    step: int, steps: int, warmup: float = 0.1, as_released: bool = False
) -> float:
    """The fraction of the top learning rate to use at `step` (counted from 0) of `steps`.

    The first `warmup` of the steps, a fraction, climbs from near 0 to 1; the rest falls to near 0.
    To climb for a number of steps, pass number / steps. as_released: as in BERT's optimization.py.
    Step 0 has rate 0, and the fall counts from step 0 too: after a warm-up of 0.1 the rate drops
    from the top to 0.9 of it and never comes back. (ELECTRA's program multiplies climb and fall.)
    Raises ValueError for what is no fraction.
    """
    if not 0 <= warmup <= 1:
        raise ValueError(
            f"warmup={warmup!r} was given; expected a fraction of the steps, from 0 to 1. To climb "
            f"for n of the {steps:,} steps, pass n / {steps}."
        )
    if as_released:
        climbing = int(warmup * steps)  # rounded down, as run_classifier.py does
        return step / climbing if step < climbing else (steps - step) / steps
    climbing = max(1, round(warmup * steps))
    if step < climbing:
        return (step + 1) / climbing
    return (steps - step) / max(1, steps - climbing)


def adam_trace(
    gradients: Sequence[float], betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6
) -> list[float]:
    """Adam's steps for one weight that meets these gradients, in units of the learning rate.

    A step is the running mean of the gradients over the root of the running mean of their squares,
    both corrected for starting at zero (Kingma and Ba 2014, Algorithm 1); the weight moves against
    it. Raises ValueError for betas outside 0 to 1."""
    check_betas(betas)
    (b1, b2), mean, square, steps = betas, 0.0, 0.0, []
    for step, gradient in enumerate(gradients, start=1):
        mean = b1 * mean + (1 - b1) * gradient
        square = b2 * square + (1 - b2) * gradient**2
        size = (square / (1 - b2**step)) ** 0.5
        steps.append(mean / (1 - b1**step) / (size + eps))
    return steps


def check_betas(betas: Sequence[float]) -> None:
    """Raise ValueError unless these are two numbers from 0 to below 1."""
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise ValueError(
            f"betas={betas!r} was given; expected two numbers from 0 to below 1: how much Adam "
            "keeps of its mean, and of its mean square. BERT's are (0.9, 0.999), RoBERTa's "
            "(0.9, 0.98)."
        )
