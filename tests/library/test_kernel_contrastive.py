"""The in-batch loss a few rows at a time, and an encoder's gradients a chunk at a time, each beside
its reference in values, gradients, random numbers and memory."""

from __future__ import annotations

import pytest
import torch
from kernel_parts import compare, draw, every_format
from torch import nn

from course_lib.bench.measuring import peak_bytes
from course_lib.kernels import contrastive as kernel
from course_lib.kernels.contrastive import (
    backward_in_chunks,
    backward_in_chunks_reference,
    in_batch_loss,
    in_batch_loss_reference,
)

both_losses = pytest.mark.parametrize("loss", [in_batch_loss, in_batch_loss_reference])
both_ways = pytest.mark.parametrize("way", [backward_in_chunks, backward_in_chunks_reference])


@pytest.fixture(params=["all rows", "a few rows", "one row"])
def rows(request, monkeypatch):
    if request.param != "all rows":
        monkeypatch.setattr(kernel, "ROWS_BYTES", 400 if request.param == "a few rows" else 1)


@every_format
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("B", "D", "H"), [(1, 1, 1), (1, 4, 3), (7, 7, 5), (13, 39, 8)])
def test_the_losses_agree(rows, B, D, H, masked, dtype):
    excluded = torch.rand(B, D, generator=torch.Generator().manual_seed(1)) < 0.4
    compare(
        lambda q, d: in_batch_loss(q, d, 0.5, excluded if masked else None),
        lambda q, d: in_batch_loss_reference(q, d, 0.5, excluded if masked else None),
        draw((B, H), (D, H), dtype=dtype),
        # A gradient is a probability less one, of which few digits are left where that is near 1.
        {torch.bfloat16: 0.1, torch.float32: 1e-4}.get(dtype),
    )


@both_losses
@pytest.mark.parametrize(
    "shapes", [((2, 3), (1, 3)), ((2, 3), (2, 4)), ((0, 3), (2, 3)), ((3,), (3,))]
)
def test_shapes_that_are_none(loss, shapes):
    with pytest.raises(ValueError, match=r"expected \(B, H\) and \(D, H\)"):
        loss(*(torch.zeros(shape) for shape in shapes), 1.0)
    with pytest.raises(ValueError, match=r"expected \(B, D\), \(2, 3\)"):
        loss(torch.zeros(2, 4), torch.zeros(3, 4), 1.0, torch.zeros(2, 2, dtype=torch.bool))


class Encoder(nn.Module):
    """Small, deep enough to keep activations, with dropout."""

    def __init__(self, dropout=0.3, depth=4):
        super().__init__()
        torch.manual_seed(0)
        hidden = [
            part for _ in range(depth) for part in (nn.Linear(9, 9), nn.GELU(), nn.Dropout(dropout))
        ]
        self.layers = nn.Sequential(*hidden, nn.Linear(9, 5)).double()

    def forward(self, x):
        return self.layers(x)


def chunks_of(count, *sizes):
    torch.manual_seed(count)
    return torch.randn(count, 9, dtype=torch.float64).split(list(sizes))


def loss_of(*sides):
    documents = torch.cat(sides[1:])
    return in_batch_loss(sides[0], documents, 0.2)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("negatives", [False, True])
def test_gradients_a_chunk_at_a_time(dropout, negatives):
    """Also what was there before, the random numbers that come after, and chunks of any sizes."""
    sides = [chunks_of(11, 4, 4, 3), chunks_of(11, 1, 10)]
    sides += [chunks_of(22, 20, 2)] if negatives else []
    results = []
    for way in (backward_in_chunks, backward_in_chunks_reference):
        encoder = Encoder(dropout)
        encoder(torch.ones(2, 9, dtype=torch.float64)).sum().backward()
        torch.manual_seed(5)
        loss = way(encoder, sides, loss_of)
        assert not loss.requires_grad
        results.append([loss, torch.rand(3), *(p.grad for p in encoder.parameters())])
    for ours, theirs in zip(*results, strict=True):
        assert (ours - theirs).abs().max() <= 1e-12


def test_a_temperature_that_is_learned():
    """Weights of the loss itself learn too; a side that it does not read gets zeros."""
    results = []
    for way in (backward_in_chunks, backward_in_chunks_reference):
        encoder, scale = Encoder(), torch.tensor(2.0, requires_grad=True)
        torch.manual_seed(5)
        way(encoder, [chunks_of(6, 4, 2)] * 2, lambda q, d, scale=scale: (scale * q).square().sum())
        results.append([scale.grad, *(p.grad for p in encoder.parameters())])
    for ours, theirs in zip(*results, strict=True):
        assert (ours - theirs).abs().max() <= 1e-9


def test_memory_follows_the_chunk_not_the_batch():
    def peak(way, count):
        encoder, size = Encoder(depth=12), 16
        sides = [chunks_of(count, *[size] * (count // size)) for _ in range(2)]
        return peak_bytes(lambda: way(encoder, sides, lambda q, d: (q * d).sum()))

    assert peak(backward_in_chunks, 1_024) <= peak(backward_in_chunks_reference, 1_024) / 8


@both_ways
@pytest.mark.parametrize("sides", [[], [[1]], [[1], []]])
def test_sides_without_chunks(way, sides):
    with pytest.raises(ValueError, match="expected queries and documents"):
        way(lambda x: x, sides, lambda *x: x[0])
