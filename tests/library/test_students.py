"""What DistilBERT and TinyBERT do beside being equal to the reference: how a student begins, and
which layer it learns from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Encoder
from course_lib.family.distilbert import (
    RELEASED_LAYERS,
    DistilBertConfig,
    distilbert_encoder,
    every_other_layer,
    initialise_from,
    spread_layers,
)
from course_lib.family.tinybert import MAPPINGS, fit_matrix, layer_mapping, tinybert
from course_lib.heads import BertForMaskedLM

SIZES: dict[str, Any] = {
    "vocab_size": 40, "hidden_size": 12, "num_heads": 3, "intermediate_size": 20,
    "max_positions": 10, "initializer_range": 0.3,
}  # fmt: skip
IDS = torch.tensor([[2, 9, 8, 7, 3, 11], [2, 5, 6, 3, 0, 0]])
MASK = (IDS != 0).long()


def teacher(layers: int = 4, **changes: Any) -> BertForMaskedLM:
    torch.manual_seed(1)
    config = BertConfig(**{**SIZES, "num_layers": layers, **changes})
    model = BertForMaskedLM(Encoder(config)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and norms, too, are not as they began
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def student(layers: int = 2, **changes: Any) -> BertForMaskedLM:
    torch.manual_seed(2)
    config = DistilBertConfig(**{**SIZES, "num_layers": layers, **changes})
    return BertForMaskedLM(distilbert_encoder(config)).double().eval()


@torch.no_grad()
def words(model: nn.Module) -> Tensor:
    return model(IDS, MASK).logits[MASK.bool()]


# ---------------------------------------------------------------- DistilBERT: how it begins


@pytest.mark.parametrize(
    ("full", "kept", "spread", "step"),
    [
        (12, 6, RELEASED_LAYERS, (0, 2, 4, 6, 8, 10)),
        (4, 2, (0, 3), (0, 2)),
        (6, 3, (0, 2, 5), (0, 2, 4)),
        (12, 4, (0, 4, 7, 11), (0, 3, 6, 9)),
        (24, 6, (0, 5, 9, 14, 18, 23), (0, 4, 8, 12, 16, 20)),
        (12, 5, (0, 3, 6, 8, 11), (0, 2, 4, 6, 8)),
        (5, 3, (0, 2, 4), (0, 1, 2)),
        (4, 4, (0, 1, 2, 3), (0, 1, 2, 3)),
        (7, 1, (6,), (0,)),
    ],
)
def test_layers_on_paper(full: int, kept: int, spread: Sequence[int], step: Sequence[int]):
    assert spread_layers(full, kept) == spread
    assert every_other_layer(full, kept) == step


def test_the_spread_rises_from_first_to_last():
    for full in range(2, 25):
        for kept in range(2, full + 1):
            layers = spread_layers(full, kept)
            assert (layers[0], layers[-1]) == (0, full - 1)
            steps = [b - a for a, b in pairwise(layers)]
            assert min(steps) >= 1 and max(steps) - min(steps) <= 1


@pytest.mark.parametrize("choose", [spread_layers, every_other_layer])
@pytest.mark.parametrize("kept", [0, 5, -1])
def test_depths_that_do_not_fit(choose: Any, kept: int):
    with pytest.raises(ValueError, match=rf"student_layers={kept} .* of 4; expected 1 to 4"):
        choose(4, kept)


def test_as_many_layers_as_the_teacher_gives_the_teachers_own_answers():
    """Segments folded into the positions: the same sum in another order, so all but the last
    bits."""
    whole, copy = teacher(4), student(4)
    assert (words(whole) - words(copy)).abs().max() > 0.1
    assert initialise_from(copy, whole) is copy
    assert (words(whole) - words(copy)).abs().max() <= 1e-12
    with torch.no_grad():
        first, second = (m.encoder(IDS, MASK, output_hidden_states=True) for m in (whole, copy))
    real = MASK.bool()
    for a, b in zip(first.hidden_states, second.hidden_states, strict=True):
        assert (a[real] - b[real]).abs().max() <= 1e-12


def test_a_student_with_segments_is_initialised_from_the_teacher():
    whole, copy = teacher(4), student(4, type_vocab_size=2)
    initialise_from(copy, whole)
    types = (torch.arange(6) > 2).long().expand_as(IDS)
    weights = whole.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in copy.state_dict().items())
    with torch.no_grad():
        first, second = (model(IDS, MASK, types).logits for model in (whole, copy))
    assert (first - second).abs().max() <= 1e-12


def test_a_teacher_without_segments():
    whole, copy = student(4), student(4)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter += 1
    assert (words(initialise_from(copy, whole)) - words(whole)).abs().max() <= 1e-12


def test_which_layers_are_copied():
    whole, short = teacher(4), student(2)
    positions = whole.encoder.embeddings.position.weight.detach().clone()
    for layers, chosen in ((None, (0, 3)), ([2, 1], (2, 1)), (every_other_layer(4, 2), (0, 2))):
        initialise_from(short, whole, layers)
        for block, layer in zip(short.encoder.stack.blocks, chosen, strict=True):
            source = whole.encoder.stack.blocks[layer].state_dict()
            assert all(torch.equal(v, source[n]) for n, v in block.state_dict().items())
    head = whole.mlm.state_dict()
    assert all(torch.equal(v, head[n]) for n, v in short.mlm.state_dict().items())
    assert torch.equal(whole.encoder.embeddings.position.weight, positions)  # the teacher's, as was
    summed = positions + whole.encoder.embeddings.segment.weight[0]
    assert torch.equal(short.encoder.embeddings.position.weight, summed)


def test_the_student_shares_nothing_with_its_teacher():
    whole, copy = teacher(2), student(2)
    before = words(initialise_from(copy, whole)).clone()
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter.add_(1)
    assert torch.equal(words(copy), before)
    copy(IDS, MASK).logits.square().mean().backward()
    assert all(p.grad is not None for p in copy.parameters())
    assert all(p.grad is None for p in whole.parameters())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hidden_size": 15}, r"hidden_size=15 and a teacher with 12 .*copied whole"),
        ({"vocab_size": 41}, r"vocab_size=41 and a teacher with 40 were given; expected the same"),
        ({"num_heads": 4}, r"num_heads=4 and a teacher with 3"),
        ({"intermediate_size": 24}, r"intermediate_size=24 and a teacher with 20"),
        ({"max_positions": 9}, r"max_positions=9 and a teacher with 10"),
        ({"type_vocab_size": 3}, r"type_vocab_size=3 and a teacher with 2"),
    ],
)
def test_a_student_of_another_shape(changes: dict[str, int], says: str):
    with pytest.raises(ValueError, match=says):
        initialise_from(student(2, **changes), teacher(4))


def test_a_student_with_segments_of_a_teacher_without():
    with pytest.raises(ValueError, match="type_vocab_size=2 and a teacher with 0"):
        initialise_from(teacher(2), student(2))


@pytest.mark.parametrize("layers", [[0], [0, 1, 2], [0, 4], [-1, 2], []])
def test_layers_that_the_teacher_does_not_have(layers: list[int]):
    with pytest.raises(ValueError, match=r"layers=\[.*\] .* expected 2 numbers from 0 to 3"):
        initialise_from(student(2), teacher(4), layers)


def test_a_student_deeper_than_its_teacher():
    with pytest.raises(ValueError, match="student_layers=5 was given for a teacher of 4"):
        initialise_from(student(5), teacher(4))


# ---------------------------------------------------------------- TinyBERT: which layer from which


@pytest.mark.parametrize(
    ("kind", "small", "large", "mapping"),
    [
        ("uniform", 4, 12, (3, 6, 9, 12)),  # g(m) = 3m, section 4.2
        ("uniform", 6, 12, (2, 4, 6, 8, 10, 12)),
        ("uniform", 1, 5, (5,)),
        ("uniform", 3, 3, (1, 2, 3)),
        ("top", 4, 12, (9, 10, 11, 12)),
        ("top", 2, 5, (4, 5)),
        ("bottom", 4, 12, (1, 2, 3, 4)),
        ("bottom", 5, 5, (1, 2, 3, 4, 5)),
    ],
)
def test_mappings_on_paper(kind: str, small: int, large: int, mapping: tuple[int, ...]):
    assert layer_mapping(small, large, kind) == mapping
    assert kind in MAPPINGS and len(MAPPINGS) == 3
    if kind == "uniform":
        assert layer_mapping(small, large) == mapping


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((4, 12, "middle"), r"kind='middle' was given; expected one of uniform, top, bottom"),
        ((5, 12, "uniform"), r"student of 5 layers and a teacher of 12 .* a divisor of it"),
        ((0, 12, "uniform"), r"student of 0 layers .* expected a student of 1 to 12 layers"),
        ((13, 12, "top"), r"student of 13 layers .* for the top mapping"),
        ((0, 12, "bottom"), r"student of 0 layers .* expected a student of 1 to 12 layers\."),
    ],
)
def test_mappings_that_do_not_come_out(given: tuple[int, int, str], says: str):
    with pytest.raises(ValueError, match=says):
        layer_mapping(*given)


def test_the_matrix_leads_from_width_to_width():
    small, large = tinybert("4", **{**SIZES, "num_layers": 1}).config, published("bert", "tiny")
    matrix = fit_matrix(small, large)
    states = torch.randn(2, 5, 12)
    assert matrix(states).shape == (2, 5, 128)
    assert matrix.weight.std() > 0.1 and not matrix.bias.any()  # the student's own spread, 0.3
