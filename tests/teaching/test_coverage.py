"""The share of positions ever asked: formula against hand, counting against formula."""

from __future__ import annotations

import pytest
import torch

from course_lib.kernels.masking import count_to_predict
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.sequences import PackedSequences, SpecialIds, pack, to_sequences
from course_lib.teaching.coverage import coverage, simulated_coverage

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=100)


def rows_of(*words: int, length: int = 64) -> PackedSequences:
    """Rows with these numbers of words, and [CLS] and [SEP] around them."""
    return to_sequences([pack([9] * count, None, SPECIAL, length) for count in words])


def share_of_a_row(words: int, rate: float) -> float:
    """The chance of each word of a row of this many to be asked in one pass."""
    return count_to_predict(words + 2, rate) / words


def test_by_hand():
    assert coverage(0.5, 3) == pytest.approx([1 / 2, 3 / 4, 7 / 8])
    assert coverage(0.5, 4, copies=2) == pytest.approx([1 / 2, 3 / 4, 3 / 4, 3 / 4])
    assert coverage(0.25, 3, copies=1) == pytest.approx([0.25] * 3)
    assert coverage(0, 2) == [0, 0] and coverage(1, 2) == [1, 1]


def test_the_three_numbers_of_forty_epochs():
    """15%, 80.3% and 99.85%: one mask, ten copies, a fresh mask at every pass."""
    ends = [round(coverage(0.15, 40, copies)[-1], 4) for copies in (1, 10, None)]
    assert ends == [0.15, 0.8031, 0.9985]


def test_more_copies_than_epochs_are_dynamic_masking():
    assert coverage(0.15, 7, copies=7) == coverage(0.15, 7, copies=99) == coverage(0.15, 7)


@pytest.mark.parametrize("copies", [1, 4, None])
def test_counting_agrees_with_the_share_each_sequence_really_has(copies: int | None):
    """Rows of one length: k of m words in every pass, so the formula holds with rate k/m."""
    sequences, epochs = rows_of(*[37] * 400), 12
    exact = coverage(share_of_a_row(37, 0.15), epochs, copies)
    counted = simulated_coverage(sequences, SPECIAL, epochs, copies=copies)
    assert counted[0] == pytest.approx(exact[0], abs=1e-12)  # 6 of 37 in each row, without chance
    words = 400 * 37
    for share, expected in zip(counted, exact, strict=True):
        sd = (expected * (1 - expected) / words) ** 0.5  # of independent words: an upper bound
        assert abs(share - expected) <= 4 * sd + 1e-12


def test_rounding_moves_single_sequences_either_way_and_special_tokens_add():
    """Of 28 words round(0.15 · 30) = 4 are asked, 14.3%; of 22 round(0.15 · 24) = 4, 18.2%."""
    for words, selected in ((28, 4), (22, 4), (1, 1)):
        share = simulated_coverage(rows_of(words), SPECIAL, 1)
        assert share == pytest.approx([selected / words])
    many = simulated_coverage(rows_of(*range(20, 60)), SPECIAL, 1)[0]
    expected = sum(count_to_predict(n + 2, 0.15) for n in range(20, 60)) / sum(range(20, 60))
    assert many == pytest.approx(expected) and many > 0.15


def test_counting_is_of_the_masks_the_library_draws():
    sequences = rows_of(30, 12, 50)
    union = torch.zeros_like(sequences.input_ids, dtype=torch.bool)
    for epoch in range(3):
        union |= mask_sequences(sequences, SPECIAL, seed=8, epoch=epoch).selected
    counted = simulated_coverage(sequences, SPECIAL, 5, copies=3, seed=8)
    assert counted[2:] == [union.sum().item() / 92] * 3
    assert counted[0] < counted[1] < counted[2]
    assert counted != simulated_coverage(sequences, SPECIAL, 5, copies=3, seed=9)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"rate": 1.5, "epochs": 3}, "rate=1.5 was given; expected a fraction"),
        ({"rate": 0.15, "epochs": 0}, "epochs=0 was given; expected a whole number"),
        ({"rate": 0.15, "epochs": 2.5}, "epochs=2.5 was given"),
        ({"rate": 0.15, "epochs": 3, "copies": 0}, "copies=0 was given; expected a whole number"),
    ],
)
def test_bad_numbers_are_refused(arguments: dict, says: str):
    with pytest.raises(ValueError, match=says):
        coverage(**arguments)
    with pytest.raises(ValueError, match=says):
        simulated_coverage(rows_of(9), SPECIAL, **arguments)
