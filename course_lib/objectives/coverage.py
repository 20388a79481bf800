"""What share of the positions is ever asked, when a text is read many times (Liu et al. 2019,
section 4.1).

Whether a mask is drawn once, in copies or anew at every pass decides how many different draws a
position meets; k draws of rate r leave it out with probability (1 − r)ᵏ."""

from __future__ import annotations

import torch

from .masked_lm import check_rate, eligible_positions, mask_sequences
from .sequences import PackedSequences, SpecialIds


def coverage(rate: float, epochs: int, copies: int | None = None) -> list[float]:
    """The expected share of positions asked at least once, after pass 1, 2, … `passes`.

    copies: how many draws there are, used in turn (1: one static mask); None: a new one each pass.
    Raises ValueError for a rate outside 0 to 1, and for fewer than one pass or copy."""
    check_rate(rate)
    _check(epochs, copies)
    draws = [number if copies is None else min(number, copies) for number in range(1, epochs + 1)]
    return [1 - (1 - rate) ** k for k in draws]


def simulated_coverage(
    sequences: PackedSequences,
    special: SpecialIds,
    epochs: int,
    *,
    copies: int | None = None,
    rate: float = 0.15,
    seed: int = 0,
) -> list[float]:
    """The same share, counted on real rows with the masks the library draws for them.

    Of all positions that a mask may fall on; [CLS], [SEP] and padding are left out. It is not
    exactly `coverage`, because a row of n tokens has round(rate · n) positions asked, never a
    fraction. Here n counts [CLS] and [SEP], which are never asked themselves, so its words are
    asked a little more often; rounding adds to that in one row and takes from it in another."""
    check_rate(rate)
    _check(epochs, copies)
    words = int(eligible_positions(sequences, special).sum())
    selected = torch.zeros(
        sequences.input_ids.shape, dtype=torch.bool
    )  # (N, T), in some pass so far
    found: list[float] = []
    for number in range(epochs):
        if copies is not None and number >= copies:  # a draw that was already counted
            found.append(found[-1])
            continue
        masked = mask_sequences(sequences, special, rate=rate, seed=seed, epoch=number)
        selected.view(-1)[masked.predict_at] = True
        found.append(int(selected.sum()) / max(1, words))
    return found


def _check(epochs: int, copies: int | None) -> None:
    for name, value in {"epochs": epochs, "copies": 1 if copies is None else copies}.items():
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}={value!r} was given; expected a whole number, at least 1.")
