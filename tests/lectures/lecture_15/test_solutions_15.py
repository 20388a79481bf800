"""Solutions of lecture 15 beside the library; numbers by hand that must be true."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import torch
from answers_15 import built_and_counted

from course_lib.config import encoder_flops, published
from course_lib.encoder import count_parameters
from course_lib.family.vit import (
    VitConfig,
    project_by_convolution,
    resize_positions,
    vit,
    vit_encoder,
)
from course_lib.images import cut_patches
from course_lib.lectures.lecture_15.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_15.exercises import (
    count,
    cutting,
    hidden,
    positions,
    projection,
    rollout,
)
from course_lib.objectives.masked_patches import masked_patch_batch, masked_patch_loss
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import alike

EXERCISES = {exercise.id: exercise for exercise in ALL}


def texts_of(id: str) -> str:
    return EXERCISES[id].statement + " ".join(EXERCISES[id].hints)


def whole(x: torch.Tensor) -> list:
    return x.round().int().tolist()


def test_patches_by_hand_and_in_the_library():
    (by_hand,) = cutting.cut(*cutting.by_hand(Draw(0))[0])
    patches = [str(tuple(patch)) for patch in whole(by_hand)]
    assert "{}, {}, {} and {}".format(*patches) in texts_of("15.1")
    pictures, P = cutting.case(Draw(0), 2, 3, 2, 4, 3)
    assert torch.equal(cutting.cut(pictures, P), cut_patches(pictures, P))


def test_a_matrix_does_what_the_librarys_convolution_does():
    inputs = projection.case(Draw(1), 2, 3, 2, 4, 3, 5)
    assert alike(projection.project(*inputs), project_by_convolution(*inputs))
    first, second = whole(projection.project(*projection.by_hand(Draw(0))[0]).flatten())
    assert f"+ 10 = {first}, the second {second}" in texts_of("15.2")


@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
def test_positions_are_the_librarys_bilinear_ones(how):
    table, rows, columns = positions.case(Draw(2), 3, 5, 4, 6)
    theirs = resize_positions(table, (rows, columns), how)
    assert alike(positions.resize(table, rows, columns), theirs) is (how == "bilinear")


def test_positions_by_hand():
    table = whole(positions.resize(*positions.by_hand(Draw(0))[0]).flatten())
    assert f"becomes {tuple(table)}." in texts_of("15.3")
    grid = torch.tensor(table[1:]).reshape(3, 3).tolist()
    assert f"On 3 × 3 they become {grid}" in texts_of("15.3")


@pytest.mark.parametrize("sizes", [(3, 2, 3, 3, 2), (2, 1, 2, 2, 4)])
def test_targets_and_loss_are_the_librarys(sizes):
    reconstruction, pictures, which, P = hidden.case(Draw(3), *sizes)
    mask, loss = hidden.hidden_loss(reconstruction, pictures, which, P)
    batch = masked_patch_batch(pictures, P, which)
    assert torch.equal(mask, batch.targets["pixels"] != -100)
    assert torch.equal(pictures[mask], batch.targets["pixels"][mask])
    outputs = SimpleNamespace(reconstruction=reconstruction)
    assert alike(loss, masked_patch_loss(outputs, batch.targets)["total"])
    nothing = masked_patch_batch(pictures, P, torch.zeros_like(which))
    assert masked_patch_loss(outputs, nothing.targets)["total"] == 0
    assert hidden.hidden_loss(reconstruction, pictures, ~which & which, P)[1] == 0


def test_the_loss_by_hand():
    left, right, *_ = hidden.by_hand(Draw(0))
    assert f"the loss is {hidden.hidden_loss(*left)[1]:.4f}" in texts_of("15.5")
    assert hidden.hidden_loss(*right)[1] != hidden.hidden_loss(*left)[1]


def test_the_rollout_by_hand():
    (attentions,) = rollout.by_hand(Draw(0))[0]
    first, second = (x[0, 0].int().tolist() for x in attentions)
    assert f"the second one, {first}" in texts_of("15.4")
    assert f"the first, {second}" in texts_of("15.4")
    assert f"The rollout is {rounded(rollout.rollout(attentions))}" in texts_of("15.4")
    steps = (attentions[:, 0, 0] + torch.eye(2)) / 2
    both = f"normalised, these are {rounded(steps[:1])} and {rounded(steps[1:])}."
    assert both in texts_of("15.4")
    assert f"the other one gives {rounded((steps[0] @ steps[1])[None])}" in texts_of("15.4")


def rounded(matrices: torch.Tensor) -> str:
    return re.sub(r"\.0\b", "", str(matrices[0].tolist()))


@torch.no_grad()
def test_a_models_rollout_is_a_map_of_its_picture():
    config = VitConfig(hidden_size=12, num_heads=2, num_layers=3, intermediate_size=20,
                       image_size=12, patch_size=4)  # fmt: skip
    out = vit_encoder(config)(torch.rand(2, 3, 12, 12), output_attentions=True)
    maps = rollout.rollout(torch.stack(out.attentions))
    assert maps[:, 0, 1:].shape == (2, 9)
    assert torch.allclose(maps.sum(-1), torch.ones(2, 10)) and (maps >= 0).all()


@pytest.mark.parametrize("size", ["B/16", "L/16", "H/14"])
def test_parameters_and_flops_of_published_sizes(size):
    config = published("vit", size, VitConfig)
    parameters, flops = count.sizes(config)
    with torch.device("meta"):
        assert parameters == count_parameters(vit(size, pooler=False))
    pixels = config.num_channels * config.patch_size**2
    projected = 2 * (config.max_positions - 1) * pixels * config.hidden_size
    assert flops == projected + encoder_flops(config, config.max_positions)


def test_sizes_by_hand_and_counted_on_built_models():
    config = count.by_hand(Draw(0))[0][0]
    assert "{} parameters and {:,} FLOPs".format(*count.sizes(config)) in texts_of("15.6")
    for seed in range(3):
        (config,) = count.case(Draw(seed), 2)
        assert count.sizes(config) == built_and_counted(config)
    with torch.device("meta"):
        plain, pooled = count_parameters(vit(pooler=False)), count_parameters(vit())
    assert f"has {plain:,} parameters, {pooled:,} with a pooler" in texts_of("15.6")


def test_the_parts_that_the_hints_tell():
    config = count.by_hand(Draw(0))[0][0]
    weights = vit_encoder(config, pooler=False).state_dict()
    parts = ("embeddings.project", "embeddings.cls", "embeddings.position", "norm", "stack")
    numbers = [sum(w.numel() for name, w in weights.items() if name.startswith(part))
               for part in parts]  # fmt: skip
    text = "= {} parameters, the class token {}, positions {}, the last LayerNorm {}. So the block"
    assert (text + " has {}.").format(*numbers) in texts_of("15.6")
