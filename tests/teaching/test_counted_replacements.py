"""What counting finds of replaced tokens: the zero line of a discriminator."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from course_lib.objectives.sequences import Batch, SpecialIds
from course_lib.teaching.replaced_tokens import corrupted_texts, counted_areas, discriminator_logits
from course_lib.text.counts import NeighbourCounts

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=10)


def replacing(word):
    """A model whose generator says `word` at every gap; its discriminator suspects the end."""

    def model(input_ids, attention_mask):
        gaps = (input_ids == SPECIAL.mask).flatten().nonzero()[:, 0]
        return SimpleNamespace(
            corrupted_ids=input_ids.where(input_ids != SPECIAL.mask, word), predict_at=gaps,
            attention_mask=attention_mask, logits=torch.arange(5.0).expand_as(input_ids),
        )  # fmt: skip

    return model


def batch(rows, true):
    ids = torch.tensor(rows)
    inputs = {"input_ids": ids, "attention_mask": (ids != SPECIAL.pad).long()}
    return Batch(inputs, {"labels": torch.tensor(true)})


# 6 always stands between 5 and 7; the generator says 9, or what was there.
GAP = batch([[2, 5, 4, 7, 3], [2, 5, 6, 3, 0]], [6])
WHOLE = batch([[2, 5, 6, 7, 3]], [])


def test_texts_by_hand():
    (a, b), (logits, labels) = (
        corrupted_texts(replacing(9), [GAP]),
        discriminator_logits(replacing(9), [GAP]),
    )
    assert (a[0].tolist(), a[1].tolist()) == ([2, 5, 9, 7, 3], [0, 0, 1, 0, 0])
    assert (b[0].tolist(), b[1].tolist()) == ([2, 5, 6, 3], [0, 0, 0, 0])
    assert logits.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3] and labels.sum() == 1


def test_a_generator_with_a_favourite_word_is_found_by_the_word_alone():
    counts = NeighbourCounts([[[5, 6, 7, 9]]] * 20)
    assert counted_areas(replacing(9), [GAP, WHOLE], [GAP], counts, SPECIAL) == (1, 1)


def test_one_that_says_a_word_of_the_text_is_found_by_its_neighbours_alone():
    """7 is as often true as it is a replacement; after 5 it never stands."""
    counts = NeighbourCounts([[[5, 6, 7, 9]]] * 20)
    by_word, by_neighbours = counted_areas(replacing(7), [GAP], [GAP], counts, SPECIAL)
    assert by_word == pytest.approx(7.5 / 8) and by_neighbours > 7 / 8 + 0.01
