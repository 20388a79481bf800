"""What a watched run shows: vectors alike, the base rate's loss, one answer for all."""

from __future__ import annotations

import math

import pytest
import torch

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.objectives.sequences import PackedSequences
from course_lib.train.watch import base_rate_loss, commonest_share, encoder_likeness, likeness


def by_hand(vectors: torch.Tensor, mask: torch.Tensor) -> float:
    """Every pair of texts at every position that both have."""
    cosines = [
        torch.cosine_similarity(vectors[a, t], vectors[b, t], dim=0).item()
        for t in range(vectors.shape[1])
        for a in range(len(vectors))
        for b in range(a)
        if mask[a, t] and mask[b, t]
    ]
    return sum(cosines) / len(cosines)


@pytest.mark.parametrize("seed", range(3))
def test_likeness_is_the_mean_cosine_of_all_pairs(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(5, 4, 3, generator=generator)
    lengths = torch.randint(1, 5, (5, 1), generator=generator)
    lengths[0], lengths[1] = 4, 4
    mask = (torch.arange(4) < lengths).long()
    assert likeness(vectors, mask) == pytest.approx(by_hand(vectors, mask), abs=1e-6)
    scaled = vectors * torch.rand(5, 4, 1, generator=generator).add(0.1)
    assert likeness(scaled, mask) == pytest.approx(likeness(vectors, mask), abs=1e-6)


def test_alike_and_not() -> None:
    one, mask = torch.randn(1, 3, 8), torch.ones(6, 3).long()
    assert likeness(one.expand(6, 3, 8), mask) == pytest.approx(1)
    axes = torch.eye(6)[:, None].expand(6, 3, 6)
    assert likeness(axes, mask) == pytest.approx(0)
    padded = torch.cat([one.expand(6, 3, 8), torch.randn(6, 2, 8)], dim=1)
    assert likeness(padded, torch.cat([mask, 0 * mask[:, :2]], dim=1)) == pytest.approx(1)


def test_without_a_pair_there_is_no_likeness() -> None:
    with pytest.raises(ValueError, match=r"1 text\(s\) that share no position"):
        likeness(torch.randn(1, 3, 8), torch.ones(1, 3))


def test_an_encoder_is_left_as_it_was() -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20, max_positions=8, num_layers=1, hidden_size=8, num_heads=2,
        intermediate_size=16, pad_token_id=0,
    )  # fmt: skip
    encoder = Encoder(config).train()
    ids = torch.randint(1, 20, (6, 8))
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    result = encoder_likeness(encoder, sequences)
    assert encoder.training and -1 <= result <= 1
    same = PackedSequences(ids[:1].expand(6, 8), *(x.clone() for x in (ids * 0 + 1, ids * 0)))
    assert encoder_likeness(encoder, same) == pytest.approx(1)  # one text, dropout off


def test_the_base_rate() -> None:
    assert base_rate_loss([0] * 85 + [1] * 15) == pytest.approx(
        -0.85 * math.log(0.85) - 0.15 * math.log(0.15)
    )
    assert base_rate_loss(torch.arange(8)) == pytest.approx(math.log(8))
    assert base_rate_loss(["a", "a"]) == 0
    with pytest.raises(ValueError, match="No labels"):
        base_rate_loss([])


def test_the_commonest_answer() -> None:
    assert commonest_share(["yes", "no", "yes", "yes"]) == 0.75
    assert commonest_share([0.501, 0.52, 0.9]) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="No answers"):
        commonest_share([])
