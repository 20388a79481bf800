"""Muon: what takes a gradient's place, which weights it moves, and by how much."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from course_lib.family.albert import albert_for_pretraining
from course_lib.family.bert import bert_for_pretraining
from course_lib.family.modernbert import modernbert_for_masked_lm
from course_lib.kernels.orthogonal import orthogonalize, orthogonalize_reference
from course_lib.train.optimizers import MOMENTUM, is_block_matrix, make_optimizer

SHAPES = [(4, 4), (3, 8, 8), (2, 6, 24), (2, 24, 6), (1, 5)]


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_reference_has_no_length_but_one(shape):
    values = torch.linalg.svdvals(orthogonalize_reference(draw(*shape)))
    assert torch.allclose(values, torch.ones_like(values))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_land_near_one_in_the_same_directions(shape, dtype):
    matrices = draw(*shape)
    u, before, v = torch.linalg.svd(matrices, full_matrices=False)
    turned = u.mT @ orthogonalize(matrices, dtype=dtype).double() @ v.mT  # diagonal
    values = turned.diagonal(dim1=-2, dim2=-1)
    within = before / matrices.norm(dim=(-2, -1))[..., None] > 0.01
    assert within.float().mean() > 0.9
    assert (values[within] > 0.65).all() and (values[within] < 1.25).all()
    # Eight bits: an error of 2**-9 in a small value grows with it, up to 3.4 times a step.
    rounding = 0.1 if dtype is torch.bfloat16 else 1e-5
    assert (turned - torch.diag_embed(values)).abs().max() < rounding


def test_a_gradient_of_zeros_moves_nothing():
    assert (orthogonalize(torch.zeros(2, 3, 3)) == 0).all()


def test_one_number_by_hand():
    """0.5 has the length 0.5, so it begins at 1: a + b + c = 0.701, and again."""
    assert orthogonalize(torch.tensor([[0.5]]), steps=1).item() == pytest.approx(0.701, abs=1e-6)


@pytest.mark.parametrize("shape", [(48, 48), (32, 96), (96, 32)])
def test_steps_are_those_of_torchs_muon(shape):
    """Which computes in bfloat16 on any processor."""
    theirs = nn.Parameter(draw(*shape).float())
    ours = nn.ParameterDict({"blocks": nn.ParameterDict({"w": theirs.detach().clone()})})
    one = torch.optim.Muon(
        [theirs], lr=0.02, weight_decay=0.1, momentum=MOMENTUM, adjust_lr_fn="match_rms_adamw"
    )
    other = make_optimizer(ours, 0.02, 0.1, name="muon")
    weight = ours["blocks"]["w"]
    before = theirs.detach().clone()
    for step in range(3):
        theirs.grad = draw(*shape, seed=step).float()
        weight.grad = theirs.grad.clone()
        one.step()
        other.step()
        assert (weight - theirs).norm() < 0.05 * (theirs - before).norm()


MODELS = {
    "bert": (lambda: bert_for_pretraining("tiny"), 2 * 6),
    "albert": (
        partial(
            albert_for_pretraining,
            hidden_size=32,
            num_heads=2,
            embedding_size=16,
            intermediate_size=64,
        ),
        6,
    ),
    "modernbert": (
        partial(
            modernbert_for_masked_lm,
            hidden_size=32,
            num_heads=2,
            intermediate_size=48,
            num_layers=3,
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_blocks_matrices_and_nothing_else_are_muons(name):
    make, count = MODELS[name]
    model = make()
    optimizer = make_optimizer(model, 1e-3, 0.01, name="muon")
    muons = {id(p) for g in optimizer.param_groups if g.get("muon") for p in g["params"]}
    everything = [id(p) for g in optimizer.param_groups for p in g["params"]]
    assert sorted(everything) == sorted(id(p) for p in model.parameters())
    names = [n for n, p in model.named_parameters() if id(p) in muons]
    assert names and all(is_block_matrix(n, p) == (id(p) in muons)
                         for n, p in model.named_parameters())  # fmt: skip
    assert not any("embedding" in n or "mlm" in n or "norm" in n for n in names)
    assert count is None or len(names) == count


def test_a_step_is_as_long_as_adamws():
    """0.2 a number at learning rate 1, whatever the shape; vectors step as in AdamW."""
    model = bert_for_pretraining("tiny")
    optimizer = make_optimizer(model, 1e-3, 0.0, name="muon")
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    for n, p in enumerate(model.parameters()):
        p.grad = draw(*p.shape, seed=n).float()
    optimizer.step()
    for name, p in model.named_parameters():
        size = ((p.detach() - before[name]) / 1e-3).square().mean().sqrt()
        assert size.item() == pytest.approx(0.2 if is_block_matrix(name, p) else 1.0, rel=0.15), (
            name
        )
