"""Rotary positions: the twin equals the reference, and both do what they are for."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from kernel_parts import compare, draw, every_format

from course_lib.kernels.rotary import _tables, frequencies, rotary, rotary_reference

both_ways = pytest.mark.parametrize("way", [rotary, rotary_reference])


def stacked(way, *more, **settings):
    """Query and key as one tensor, so that one comparison sees both."""
    return lambda query, key: torch.cat([x.flatten() for x in way(query, key, *more, **settings)])


@every_format
@pytest.mark.parametrize("tokens", [1, 7, 64, 129])
@pytest.mark.parametrize("batch", [(1,), (3,), ()], ids=str)
def test_twins_agree(dtype, tokens, batch):
    given = draw(*[(*batch, tokens, 3, 10)] * 2, dtype=dtype)
    compare(*(stacked(way, 500.0, tokens) for way in (rotary, rotary_reference)), given)


@every_format
def test_twins_agree_at_given_positions(dtype):
    make = torch.Generator().manual_seed(1)
    query_at, key_at = (torch.randint(40, shape, generator=make) for shape in ((2, 5), (9,)))
    given = draw((2, 5, 3, 8), (2, 9, 3, 8), dtype=dtype)
    among = {"query_at": query_at, "key_at": key_at}
    compare(*(stacked(way, 1e4, 40, **among) for way in (rotary, rotary_reference)), given)


def test_exact_gradients_once_and_twice():
    query, key = draw((2, 4, 1, 4), (2, 4, 1, 4))
    turn = partial(rotary, base=100.0, tokens=4)
    assert torch.autograd.gradcheck(turn, (query, key))
    assert torch.autograd.gradgradcheck(turn, (query, key))


@both_ways
def test_by_hand(way):
    """A head of two features is one point, which turns by one radian a position."""
    point = torch.tensor([[[1.0, 0.0]]] * 3, dtype=torch.float64)
    turned, _ = way(point, point, 1e4, 3)
    expected = [[[math.cos(p), math.sin(p)]] for p in range(3)]
    assert torch.allclose(turned, torch.tensor(expected, dtype=torch.float64), atol=1e-7)
    four = torch.tensor([[[1.0, 2.0, 0.0, 0.0]]])  # pairs (0, 2) and (1, 3), base 100: 1 and 1/10
    turned, _ = way(four, four, 100.0, 8, torch.tensor([7]), torch.tensor([7]))
    expected = [[[math.cos(7), 2 * math.cos(0.7), math.sin(7), 2 * math.sin(0.7)]]]
    assert torch.allclose(turned, torch.tensor(expected), atol=1e-6)


@both_ways
def test_scores_know_distances_alone(way):
    """One query and one key everywhere: every diagonal of the scores is constant, lengths stay."""
    query, key = (x.detach().expand(9, 1, 12) for x in draw((1, 1, 12), (1, 1, 12)))
    q, k = way(query, key, 50.0, 9)
    scores = q[:, 0] @ k[:, 0].T
    for distance in range(-8, 9):
        diagonal = scores.diagonal(distance)
        assert (diagonal - diagonal[0]).abs().max() < 1e-5  # angles are float32
    assert (scores[0] - scores[0, 0]).abs().max() > 1e-2
    assert torch.allclose(q.norm(dim=-1), query.norm(dim=-1), atol=1e-6)


def test_frequencies_begin_at_one_and_near_one_over_the_base():
    found = frequencies(64, 160_000.0)
    assert found[0] == 1 and found.dtype == torch.float32
    assert found[-1] == pytest.approx(160_000 ** (-62 / 64), rel=1e-5)
    far = 8_191 * found.double()
    exact = 8_191 * 160_000.0 ** (-torch.arange(0, 64, 2).double() / 64)
    assert (far.float().double() - exact).abs().max() < 1e-3  # as the module says


@both_ways
def test_an_odd_head_is_refused(way):
    with pytest.raises(ValueError, match="a head size of 7 was given; expected an even one"):
        way(torch.ones(2, 1, 7), torch.ones(2, 1, 7), 1e4, 2)


def test_tables_are_shared_and_serve_training_after_inference():
    _tables.cache_clear()
    with torch.inference_mode():
        rotary(torch.ones(5, 1, 4), torch.ones(5, 1, 4), 7.0, 5)
    given = draw((99, 1, 4), (99, 1, 4), dtype=torch.float32)
    compare(*(stacked(way, 7.0, 99) for way in (rotary, rotary_reference)), given)
    assert _tables.cache_info().currsize == 1
