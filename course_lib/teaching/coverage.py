"""What fraction of the positions is ever selected, over many epochs (Liu et al. 2019,
section 4.1).

Static masking, some copies or dynamic masking decide how many different masks a position meets;
k masks of rate r leave it out with probability (1 − r)ᵏ."""

from __future__ import annotations

import torch

from course_lib.config import check_size
from course_lib.objectives.masked_lm import check_rate, eligible_positions, mask_sequences
from course_lib.objectives.sequences import PackedSequences, SpecialIds


def coverage(rate: float, epochs: int, copies: int | None = None) -> list[float]:
    """The expected fraction of positions selected at least once, after epoch 1, 2, … `epochs`.

    copies: how many masks there are, used in turn (1: static masking); None: dynamic masking.
    Raises ValueError for a rate outside 0 to 1, and for fewer than one epoch or copy."""
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
    """The same fraction, counted on real sequences with the masks the library draws for them.

    Of all positions that a mask may fall on; [CLS], [SEP] and padding are left out. It is not
    exactly `coverage`, because of n tokens round(rate · n) positions are selected, never a
    fraction. Here n counts [CLS] and [SEP], which are never selected themselves, so its words are
    selected a little more often; rounding adds to that in one sequence and takes from it in
    another."""
    check_rate(rate)
    _check(epochs, copies)
    words = int(eligible_positions(sequences, special).sum())
    selected = torch.zeros(
        sequences.input_ids.shape, dtype=torch.bool
    )  # (N, T), in some epoch so far
    result: list[float] = []
    for number in range(epochs):
        if copies is not None and number >= copies:  # a mask that was already counted
            result.append(result[-1])
            continue
        masked = mask_sequences(sequences, special, rate=rate, seed=seed, epoch=number)
        selected.view(-1)[masked.predict_at] = True
        result.append(int(selected.sum()) / max(1, words))
    return result


def _check(epochs: int, copies: int | None) -> None:
    check_size("epochs", epochs)
    check_size("copies", 1 if copies is None else copies)
