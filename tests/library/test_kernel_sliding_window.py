"""Attention within a window: blocks give what the mask gives, and cost what they should."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from kernel_parts import TOLERANCE, compare, draw, draw_mask, every_format, watch

from course_lib.kernels import sliding_window as module
from course_lib.kernels.sliding_window import (
    SMALLEST,
    sliding_window_attention,
    sliding_window_attention_reference,
    window_mask,
)

WINDOWS = (1, 2, 7, 32, 50)
LENGTHS = (1, 13, 64, 65, 96, 131)  # as a whole; in whole blocks; with a rest


@pytest.mark.parametrize("path", ["auto", "plain", "fused", "reference"])
@pytest.mark.parametrize("kind", ["none", "all real", "padding"])
@pytest.mark.parametrize(("batch", "window", "tokens"), [
    (batch, window, tokens) for batch, window in zip((1, 2, 3, 1, 2), WINDOWS, strict=True)
    for tokens in LENGTHS
])  # fmt: skip
def test_twins_agree(path, kind, batch, window, tokens):
    check(torch.float64, kind, batch, window, tokens, path)


@every_format
@pytest.mark.parametrize("tokens", [13, 131])
def test_twins_agree_in_every_format(dtype, tokens):
    check(dtype, "padding", 2, 10, tokens, "auto")


def check(dtype, kind, batch, window, tokens, path):
    """At real tokens: a padding's row means nothing, and its gradient is left out."""
    mask = draw_mask(kind, batch, tokens)
    real = 1 if mask is None else mask[:, None, :, None]
    given = draw(*[(batch, 3, tokens, 5)] * 3, dtype=dtype)

    def at_real_tokens(way):
        return lambda *given: way(*given, window, mask) * real

    compare(
        at_real_tokens(partial(sliding_window_attention, path=path)),
        at_real_tokens(sliding_window_attention_reference),
        given,
    )


def test_the_window_by_hand():
    seen = window_mask(torch.empty(1, 5, 2), 2)[0].int().tolist()
    assert seen == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1],
        [0, 0, 0, 1, 1],
    ]
    alone = window_mask(torch.empty(1, 3, 2), 1, torch.tensor([[1, 1, 0]]))
    assert torch.equal(alone[0].int(), torch.diag(torch.tensor([1, 1, 0], dtype=torch.int)))


@pytest.mark.parametrize("path", ["fused", "plain"])
@pytest.mark.parametrize("tokens", [20, 200])
def test_padding_has_its_gradient_once(path, tokens):
    """A loss that reads padding too, as an answer's does: of rows that see no real token each gives
    the value's gradient once. (torch's fused attention gives it T times.)"""
    mask = (torch.arange(tokens) < 3).long()[None]
    query, key, value = (x.requires_grad_() for x in draw(*[(1, 1, tokens, 4)] * 3))
    sliding_window_attention(query, key, value, 4, mask, path=path)[:, :, 6:].sum().backward()
    assert value.grad[0, 0].sum() / 4 == pytest.approx(tokens - 6)


@pytest.mark.parametrize("way", [sliding_window_attention, sliding_window_attention_reference])
def test_nobody_sees_beyond_the_window(way):
    """A value moves the outputs of just those that are within reach, over the edges of blocks."""
    query, key, value = (x.detach() for x in draw(*[(1, 1, 150, 4)] * 3))
    before = way(query, key, value, 40)
    for at in (0, 19, 20, 75, 149):
        poisoned = value.clone()
        poisoned[:, :, at] += 1e6
        moved = (way(query, key, poisoned, 40) - before).abs().amax(-1)[0, 0] > 1
        expected = (torch.arange(150) - at).abs() <= 20
        assert torch.equal(moved, expected)


def test_rows_without_a_real_token_are_numbers():
    given = draw(*[(2, 1, 150, 4)] * 3, dtype=torch.float32)
    mask = torch.zeros(2, 150, dtype=torch.long)
    mask[1, :3] = 1
    out = sliding_window_attention(*given, 4, mask)
    out.sum().backward()
    assert all(torch.isfinite(x).all() for x in (out, *(x.grad for x in given)))


def test_the_cost_grows_with_the_length(monkeypatch):
    """Scores computed: three blocks of keys a block of queries, whatever the length."""
    calls = watch(monkeypatch, module, "attention")
    scores = []
    for tokens in (320, 640):
        given = [x.detach() for x in draw(*[(1, 2, tokens, 4)] * 3)]
        sliding_window_attention(*given, 2 * SMALLEST)
        query, key = calls[-1].given[:2]
        scores.append(query.shape[0] * query.shape[2] * key.shape[2])
    assert scores == [320 * 3 * SMALLEST, 640 * 3 * SMALLEST]


def test_dropout_is_passed_on():
    given = [x.detach() for x in draw(*[(1, 2, 100, 4)] * 3)]
    ways = partial(sliding_window_attention, *given, 6)
    assert not torch.equal(ways(dropout=0.5), ways())
    assert (ways() - sliding_window_attention_reference(*given, 6)).abs().max() < TOLERANCE[
        torch.float64
    ]


@pytest.mark.parametrize("way", [sliding_window_attention, sliding_window_attention_reference])
def test_a_window_of_zero_is_refused(way):
    with pytest.raises(ValueError, match="window=0 was given; expected at least 1"):
        way(*draw(*[(1, 1, 200, 2)] * 3), 0)
