"""Lecture 01 by hand: the numbers that the page tells its reader to check on paper."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.lectures.lecture_01.by_hand import (
    COUNTS,
    OTHER_WORDS,
    WORDS,
    attention_by_hand,
    positions,
    ppmi_by_hand,
    vectors_of,
)


def test_pmi_is_that_of_the_counts() -> None:
    total = sum(map(sum, COUNTS.values()))
    columns = [sum(column) for column in zip(*COUNTS.values(), strict=True)]
    for word, row in ppmi_by_hand().items():
        for ppmi, count, column in zip(row, COUNTS[word], columns, strict=True):
            by_chance = sum(COUNTS[word]) * column / total
            assert ppmi == pytest.approx(max(0.0, math.log(count / by_chance)) if count else 0.0)
    bank, shore, loan = (torch.tensor(ppmi_by_hand()[w]) for w in ("bank", "shore", "loan"))
    assert F.cosine_similarity(bank, shore, dim=0) == F.cosine_similarity(bank, loan, dim=0)


def test_the_row_of_bank_is_that_of_the_page() -> None:
    scores, weights, outputs = attention_by_hand(vectors_of())
    assert scores[0, 2].tolist() == [0, 1, 1, 1]
    e = math.e
    expected = [1 / (1 + 3 * e), *[e / (1 + 3 * e)] * 3]
    assert weights[0, 2].tolist() == pytest.approx(expected)
    assert outputs[2].tolist() == pytest.approx(
        [5 * expected[1], expected[1], 0, 2 * expected[1]], abs=1e-6
    )
    other = attention_by_hand(vectors_of(OTHER_WORDS))[2][2]
    assert other[:2].tolist() == pytest.approx(outputs[2][:2].flip(0).tolist())


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("only_before", [False, True])
def test_it_is_torchs_attention_head_by_head(heads: int, only_before: bool) -> None:
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    _, weights, outputs = attention_by_hand(x, heads=heads, only_before=only_before)
    split = x.view(5, heads, -1).transpose(0, 1)
    expected = F.scaled_dot_product_attention(split, split, split, is_causal=only_before)
    torch.testing.assert_close(outputs, expected.transpose(0, 1).flatten(1))
    torch.testing.assert_close(weights.sum(-1), torch.ones(heads, 5))
    if only_before:
        assert (weights.triu(1) == 0).all()


def test_order_is_lost_and_regained() -> None:
    x, turned = vectors_of(WORDS), [3, 2, 1, 0]
    output, after = attention_by_hand(x)[2], attention_by_hand(x[turned])[2]
    torch.testing.assert_close(after, output[turned])
    with_positions = attention_by_hand(x + positions(4))[2]
    turned_with_positions = attention_by_hand(x[turned] + positions(4))[2]
    assert (turned_with_positions - with_positions[turned]).abs().max() > 0.1


def test_positions_are_waves() -> None:
    waves = positions(50, width=6, strength=2.0)
    assert waves.shape == (50, 6)
    torch.testing.assert_close(waves[:, 0], 2 * torch.arange(50.0).sin())
    pairs = waves.view(50, 3, 2).norm(dim=-1)
    torch.testing.assert_close(pairs, torch.full((50, 3), 2.0))


@pytest.mark.parametrize("heads", [0, 3])
def test_heads_must_divide(heads: int) -> None:
    with pytest.raises(ValueError, match=f"heads={heads} was given for 4 numbers"):
        attention_by_hand(vectors_of(), heads=heads)
