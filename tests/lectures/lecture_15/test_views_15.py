"""Lecture 15's pictures: attention rollout, maps over patches, similar positions, scenes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib.images import digits, scenes
from course_lib.lectures.lecture_15.picture_runs import MAIN, random_vit
from course_lib.lectures.lecture_15.views import (
    attention_maps,
    attention_maps_view,
    attentions_of,
    position_similarity,
    rollout,
    scene_cards,
    two_inputs_drawing,
)
from course_lib.train.finetuning import head_on

torch.set_num_threads(1)


def model(**changes: object):
    return head_on(random_vit(replace(MAIN, **changes), 0), digits())  # type: ignore[arg-type]


def test_rollout_by_hand():
    """Two tokens, one head: half of each vector goes past attention, and layers are multiplied."""
    first = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    second = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    maps = rollout(torch.stack([first[None], second[None]]))
    assert torch.allclose(maps[0], torch.full((2, 2), 0.5))
    assert torch.allclose(maps[1], torch.full((2, 2), 0.5))
    third = rollout(second[None, None])
    assert torch.equal(third[0], torch.tensor([[1.0, 0.0], [0.5, 0.5]]))


def test_rollout_of_a_model_sums_to_one_and_takes_the_mean_of_heads():
    weights, predicted = attentions_of(model(), digits().pixel_values[0])
    assert weights.shape == (MAIN.num_layers, MAIN.num_heads, 17, 17) and predicted in "0123456789"
    maps = rollout(weights)
    assert torch.allclose(maps.sum(-1), torch.ones(MAIN.num_layers, 17), atol=1e-5)
    once = 0.5 * weights[0].mean(0) + 0.5 * torch.eye(17)
    twice = (0.5 * weights[1].mean(0) + 0.5 * torch.eye(17)) @ once
    assert torch.allclose(maps[1], twice, atol=1e-6)


def test_the_model_is_left_as_it_was():
    net = model().train()
    attentions_of(net, digits().pixel_values[0])
    assert net.training


def test_a_map_says_what_it_shows():
    net, image = model(), digits().pixel_values[0]
    weights, predicted = attentions_of(net, image)
    row = weights[0].mean(0)[3]
    largest = int(row[1:].argmax()) + 1
    text = attention_maps(net, image, "one patch", layer=1, patch=3).text
    assert f"layer 1, patch 3: most of it from patch {largest}, {row[largest]:.0%}" in text
    top = rollout(weights)[1, 0]
    assert f"from the class token itself {top[0]:.0%}" in attention_maps(net, image).text
    assert predicted in net.names


def test_controls_move_the_maps():
    live = attention_maps_view(model(), digits().pixel_values[:3])
    picture = live.widget.children[-1]
    for name, value in (("layer", 1), ("picture", 2), ("what", "one patch"), ("patch", 16)):
        before = picture.value
        live.controls[name].value = value
        assert picture.value != before, name


def test_positions_of_a_plane_are_alike_where_they_are_near():
    """Vectors that are soft bumps around their place: neighbours are alike, others less."""
    net, at = model(), torch.arange(4.0)
    bump = (-((at[:, None] - at) ** 2) / 2).exp()
    plane = torch.einsum("ra,cb->rcab", bump, bump).reshape(16, 16)
    with torch.no_grad():
        net.encoder.embeddings.position.zero_()
        net.encoder.embeddings.position[0, 1:, :16] = plane
    unit = torch.nn.functional.normalize(plane, dim=-1)
    row, column = torch.arange(16) // 4, torch.arange(16) % 4
    apart = (row[:, None] - row).abs() + (column[:, None] - column).abs()
    near, far = ((unit @ unit.T)[where].mean() for where in (apart == 1, apart > 1))
    assert near > far
    text = position_similarity(net).text
    assert f"neighbours {near:+.2f}" in text and f"others {far:+.2f}".replace("-", "−") in text
    with pytest.raises(ValueError, match="positions='none'"):
        position_similarity(model(positions="none"))


def test_scenes_stand_beside_their_sentences():
    made = scenes(3, seed=2)
    text = scene_cards(made, 2).text
    assert text.splitlines() == made.sentences[:2]


def test_the_drawing_names_what_is_shared():
    assert "Attention and feed-forward part" in two_inputs_drawing().text
