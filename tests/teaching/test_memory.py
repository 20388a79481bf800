"""What a forward pass keeps, counted by hand, and how far layers move a vector."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from course_lib.family.albert import albert
from course_lib.teaching.memory import activation_bytes
from course_lib.train.metrics import layer_distances


def two_layers():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 5))


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 4), (torch.float64, 8)], ids=str)
@pytest.mark.parametrize("rows", [2, 20])
def test_bytes_by_hand(dtype, size, rows):
    """Kept are the input, for the first matrix (3 numbers a row), and the ReLU's result (4), which
    serves the ReLU and the second matrix: it counts once. The matrices themselves do not count."""
    kept = activation_bytes(two_layers().to(dtype), torch.randn(rows, 3, dtype=dtype))
    assert kept == size * (rows * 3 + rows * 4)


def test_two_views_of_one_memory_count_once():
    """The product keeps a matrix and its transpose, which are the same 2·4 numbers."""

    class WithItself(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y @ y.T

    assert activation_bytes(WithItself(3, 4), torch.randn(2, 3)) == 4 * (2 * 3 + 2 * 4)


def test_where_nothing_is_learned_nothing_is_kept():
    with torch.no_grad():
        assert activation_bytes(two_layers(), torch.randn(2, 3)) == 0
    assert activation_bytes(two_layers().requires_grad_(False), torch.randn(2, 3)) == 0


def test_one_block_used_twice_keeps_as_much_as_two_blocks():
    """Sharing saves weights; what each visit computed must be kept all the same."""
    shared, inner = nn.Linear(3, 3), torch.randn(2, 3)
    twice = activation_bytes(nn.Sequential(shared, nn.ReLU(), shared, nn.ReLU()), inner)
    own = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU())
    assert twice == activation_bytes(own, inner) == 4 * 3 * (2 * 3)  # input and two results


def test_sharing_an_alberts_blocks_saves_no_activations():
    shape = {"vocab_size": 50, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64}
    ids = torch.arange(12).view(2, 6)
    kept = {
        sharing: activation_bytes(albert(num_layers=3, sharing=sharing, **shape), ids)
        for sharing in ("all", "none")
    }
    assert kept["all"] == kept["none"] > 0


# ---- layer_distances -----------------------------------------------------------------------------


def test_distances_and_angles_by_hand():
    """(3, 0) -> (3, 4): 4 apart, at the angle whose tangent is 4/3; then (3, 4) -> (-3, -4):
    turned round, 10 apart. The other token goes (1, 0) -> (0, 1) -> (0, 1). A padded one is left
    out."""
    states = [
        torch.tensor([[[3.0, 0.0], [1.0, 0.0], [9.0, 9.0]]]),
        torch.tensor([[[3.0, 4.0], [0.0, 1.0], [0.0, 5.0]]]),
        torch.tensor([[[-3.0, -4.0], [0.0, 1.0], [8.0, 0.0]]]),
    ]
    distances, angles = layer_distances(states, torch.tensor([[1, 1, 0]]))
    assert distances == pytest.approx([(4 + math.sqrt(2)) / 2, (10 + 0) / 2])
    assert angles == pytest.approx([(math.degrees(math.atan(4 / 3)) + 90) / 2, (180 + 0) / 2])


def test_a_layer_that_does_nothing_moves_nothing():
    state = torch.randn(2, 5, 8)
    distances, angles = layer_distances([state, state.clone()], torch.ones(2, 5))
    assert distances == [0.0] and angles == pytest.approx([0.0], abs=1e-5)
