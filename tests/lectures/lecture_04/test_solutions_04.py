"""Solutions of lecture 04 beside the library; hints and figures that must be true."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
import torch

from course_lib.family.roberta import position_ids_after_padding
from course_lib.lectures.lecture_04.exercises import (
    accumulate,
    average,
    draws,
    merges,
    positions,
    share,
)
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.teaching.averages import glue_average
from course_lib.teaching.coverage import coverage, simulated_coverage
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import alike
from course_lib.text.byte_bpe import apply_merges, train_byte_bpe


def word_rows(count, length):
    """Rows of [CLS], words and [SEP], all of one length, and their special ids."""
    ids = torch.tensor([2, *range(5, 3 + length), 3]).repeat(count, 1)
    special = SpecialIds(0, 1, 2, 3, 4, vocab_size=60)
    return PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids)), special


def draw_read(epoch, copies):
    """The number that the solution puts in draw's first place."""
    seen = []

    def draw(epoch, example, position):
        seen.append(epoch)
        return 0.0

    draws.selected_positions([["word"]], [0], epoch, copies, 1, draw)
    return seen[0]


@pytest.mark.parametrize("copies", [1, 3, None])
def test_the_schemes_are_those_of_the_librarys_batches(copies):
    """An epoch of pretraining_batches has the masks of the draw that the solution reads."""
    rows, special = word_rows(12, 24)
    batches = pretraining_batches(rows, special, batch_size=len(rows), mask_copies=copies)
    for epoch in range(7):
        at = batches(epoch).inputs["predict_at"]
        chosen = torch.zeros(rows.input_ids.numel(), dtype=torch.bool)
        chosen[at] = True
        masked = mask_sequences(rows, special, epoch=draw_read(epoch, copies))
        # The batch has the rows in an order of its own.
        assert sorted(chosen.view_as(masked.selected).tolist()) == sorted(masked.selected.tolist())


def test_the_fraction_is_the_librarys():
    for copies in (None, 1, 4):
        shares = coverage(6 / 40, 12, copies)
        for passes in range(1, 13):
            assert alike(share.fraction_selected(42, 6, passes, copies), shares[passes - 1])


def test_the_fraction_is_what_counting_finds():
    """400 rows of 24 tokens with the library's own masks: 4 of 22 words a draw."""
    rows, special = word_rows(400, 24)
    counted = simulated_coverage(rows, special, 6, copies=4)
    for passes, fraction in enumerate(counted, 1):
        expected = share.fraction_selected(24, 4, passes, 4)
        assert abs(fraction - expected) < 6 * math.sqrt(expected * (1 - expected) / (400 * 22))


def test_the_positions_are_the_librarys():
    for ids, pad in positions.batches(Draw(3)):
        assert torch.equal(
            positions.position_numbers(ids, pad), position_ids_after_padding(ids, pad)
        )


def test_the_pieces_are_the_librarys():
    for word, learned_pairs in merges.drawn_words(Draw(3), 300):
        *_, pieces = apply_merges(word, {pair: i for i, pair in enumerate(learned_pairs)})
        assert merges.bpe(word, learned_pairs) == pieces
    learned = train_byte_bpe(["the other weather gathers there, the others gather here"] * 3, 300)
    for word in ("gathering", "together", "weathers", "thee"):
        assert merges.bpe(word, learned.merges) == learned.word_steps(word)[-1]


def test_drawn_merges_are_such_as_training_leaves():
    for seed in range(50):
        pairs = merges.drawn_merges(Draw(seed), 10)
        pieces = set("abc")
        for left, right in pairs:
            assert {left, right} <= pieces and left + right not in pieces
            pieces.add(left + right)


PAIRS = {"dev-9": (), "dev-8": ("MNLI",), "leaderboard": average.PAIRED, "test-9": average.PAIRED}


@pytest.mark.parametrize("recipe", PAIRS)
def test_the_averages_are_the_librarys(recipe):
    for row, _ in average.cases(recipe, (PAIRS[recipe], True))(Draw(3)):
        assert alike(average.average(row, recipe), glue_average(row, recipe))


def test_the_printed_averages_come_out():
    rows = average.printed_rows()
    for model, row, recipe, printed in rows:
        if printed is not None:
            assert f"{average.average(row, recipe):.1f}" == f"{printed:.1f}", model
    averages = {f"{average.average(row, recipe):.2f}" for _, row, recipe, _ in rows}
    assert averages >= {"79.60", "82.08", "80.52", "84.05", "88.92", "79.50", "77.01"}
    for printed_average in ("79.6", "82.1", "80.5", "84.05", "88.9", "79.5", "77.0"):
        assert printed_average in average.AVERAGE.statement


def test_the_hints_compute():
    assert round(share.fraction_selected(12, 2, 3, 2), 10) == 0.36
    assert merges.bpe("abcab", [("a", "b"), ("ab", "c")]) == ["abc", "ab"]
    assert positions.position_numbers(torch.tensor([[1, 7, 9, 1]]), 1).tolist() == [[1, 2, 3, 1]]
    assert accumulate.large_batch_loss([2.0, 6.0], [3, 1], [1, 1], [9, 9]) == 3.0


def test_the_parts_add_up_to_the_mean_over_all():
    losses, selected, sequences, tokens = accumulate.different(Draw(5), empty=True)[3]
    every = [x for x, n in zip(losses, selected, strict=True) for _ in range(n)]
    assert alike(accumulate.large_batch_loss(losses, selected, sequences, tokens), fmean(every))
