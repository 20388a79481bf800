"""Lecture 16's pictures: arrows turned by position, windows, lists of real tokens, two blocks."""

from __future__ import annotations

import pytest
import torch

from course_lib.kernels.rotary import rotary
from course_lib.kernels.unpadding import Packing
from course_lib.lectures.lecture_16.views import (
    packing_drawing,
    rotation_view,
    then_and_now_drawing,
    window_view,
)
from course_lib.lectures.lecture_16.views.rotation import KEY, QUERY, score, turned
from course_lib.lectures.lecture_16.views.windows import TOKENS, layer_masks, receptive_field


def test_by_hand_quarter_turns():
    corners = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    assert [turned((1, 0), 90 * p) for p in range(4)] == [pytest.approx(c) for c in corners]


def test_the_picture_turns_as_the_library_does():
    """A head of two features has the angle of 1 radian a position."""
    at = torch.tensor([3]), torch.tensor([7])
    q, k = rotary(torch.tensor([[QUERY]]), torch.tensor([[KEY]]), 10_000.0, 16, *at)
    degrees = torch.rad2deg(torch.tensor(1.0)).item()
    assert score(3, 7, degrees) == pytest.approx(float((q * k).sum()), abs=1e-4)


@pytest.mark.parametrize("degrees", [0, 30, 75])
def test_only_the_distance_counts(degrees):
    assert score(2, 5, degrees) == pytest.approx(score(7, 10, degrees))
    if degrees:
        assert score(2, 5, degrees) != pytest.approx(score(2, 6, degrees))


def test_arrows_can_be_moved():
    live = rotation_view()
    picture = live.widget.children[-1]
    assert "Distance −2" in live.static.text
    before = picture.value
    live.controls["key_at"].value = 2
    assert picture.value != before and "Distance 0, product 4.00" in picture.value


def test_windows_by_hand():
    """Eight tokens, window 4: 34 of 64 scores."""
    whole, near = layer_masks(4, 2, tokens=8, layers=2)
    assert int(whole.sum()) == 64 and int(near.sum()) == 34
    assert near[3].tolist() == [False, True, True, True, True, True, False, False]


def test_news_goes_half_a_window_a_layer_and_everywhere_in_a_global_one():
    masks = layer_masks(4, 3)
    assert receptive_field(masks[1:]) == [3, 5, TOKENS]
    assert receptive_field(masks) == [TOKENS] * 4


def test_the_windows_can_be_moved():
    live = window_view()
    picture = live.widget.children[-1]
    live.controls["every"].value = 1
    assert f"{4 * TOKENS**2:,} of {4 * TOKENS**2:,} scores" in picture.value


def test_the_list_has_the_real_tokens():
    text = packing_drawing((6, 2, 4, 3)).text
    assert "4 × 6 = 24 positions" in text and "lengths 0, 6, 8, 12, 15." in text
    mask = torch.arange(6) < torch.tensor([[6], [2], [4], [3]])
    assert len(Packing(mask.long()).positions) == 15


def test_the_blocks_are_told_in_words():
    assert "GeGLU" in then_and_now_drawing().text
