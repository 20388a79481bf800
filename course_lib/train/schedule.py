"""How the learning rate moves, up in a straight line, then down in a straight line (BERT, section
A.2), and what Adam makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_lib.config import check_choice, check_number, check_size, is_number

from .precision import choose_precision

OPTIMIZERS = ("adamw", "muon")  # optimizers.py


def warmup_then_linear(
    step: int, steps: int, warmup: float = 0.1, as_released: bool = False, decay: float = 1.0
) -> float:
    """The fraction of the top learning rate to use at `step` (counted from 0) of `steps`.

    The first `warmup` of the steps, a fraction, climbs from near 0 to 1; the rest falls to near 0.
    To climb for a number of steps, pass number / steps. decay: the share of the steps, the last
    ones, in which the rate falls; between climb and fall it stays at the top (warm-up, stable,
    decay: Hu et al. 2024, section 4). as_released: as in BERT's optimization.py.
    Step 0 has rate 0, and the fall counts from step 0 too: after a warm-up of 0.1 the rate drops
    from the top to 0.9 of it and never comes back. (ELECTRA's program multiplies climb and fall.)
    Raises ValueError for what is no fraction, and for a decay of the released schedule.
    """
    _check_warmup(warmup, steps)
    _check_decay(decay, as_released)
    if as_released:
        climbing = int(warmup * steps)  # rounded down, as run_classifier.py does
        return step / climbing if step < climbing else (steps - step) / steps
    climbing = max(1, round(warmup * steps))
    if step < climbing:
        return (step + 1) / climbing
    falling = max(1, min(round(decay * steps), steps - climbing))
    return min(1.0, (steps - step) / falling)


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


def check_training(settings: Mapping[str, Any]) -> None:
    """Raise ValueError unless these are settings of `train.loop.fit`. clip: 0 or None for none."""
    check_size("steps", settings["steps"], 0)
    check_size("accumulate", settings["accumulate"])
    check_size("seed", settings["seed"], 0, 2**32 - 1)
    check_number("learning_rate", rate := settings["learning_rate"])
    if not 0 < rate < 1:
        raise ValueError(
            f"learning_rate={rate!r} was given; expected more than 0, which learns nothing, and "
            "less than 1: BERT was fine-tuned with 2e-5 to 5e-5."
        )
    check_number("weight_decay", settings["weight_decay"])
    clip = settings["clip"]
    check_number("clip", 0 if clip is None else clip, advice="0 is no clipping.")
    _check_warmup(settings["warmup"], settings["steps"])
    _check_decay(settings["decay"], settings["released_schedule"])
    check_betas(settings["betas"])
    check_choice("optimizer", settings["optimizer"], OPTIMIZERS)
    choose_precision(settings["precision"])


def _check_warmup(warmup: object, steps: int) -> None:
    if not is_number(warmup) or not 0 <= warmup <= 1:  # type: ignore[operator]
        raise ValueError(
            f"warmup={warmup!r} was given; expected a fraction of the steps, from 0 to 1. To climb "
            f"for n of the {steps:,} steps, pass n / {steps}."
        )


def _check_decay(decay: object, as_released: bool) -> None:
    if not is_number(decay) or not 0 < decay <= 1:  # type: ignore[operator]
        raise ValueError(
            f"decay={decay!r} was given; expected a fraction of the steps, above 0 and up to 1: "
            "the last ones, in which the learning rate falls. 1: all after the warm-up."
        )
    if as_released and decay != 1:
        raise ValueError(
            f"decay={decay} was given with released_schedule; expected 1, as BERT's program falls."
        )


def check_betas(betas: Sequence[float]) -> None:
    """Raise ValueError unless these are two numbers from 0 to below 1."""
    pair = isinstance(betas, (tuple, list)) and len(betas) == 2
    if not pair or not all(is_number(beta) and 0 <= beta < 1 for beta in betas):
        raise ValueError(
            f"betas={betas!r} was given; expected two numbers from 0 to below 1: how much Adam "
            "keeps of its mean, and of its mean square. BERT's are (0.9, 0.999), RoBERTa's "
            "(0.9, 0.98)."
        )
