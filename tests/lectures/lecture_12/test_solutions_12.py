"""Solutions of lecture 12 beside the library; numbers by hand that must be true."""

from __future__ import annotations

import pytest
import torch

from course_lib.family.mobilebert import Bottleneck, MobileBertConfig, TrigramEmbeddings
from course_lib.kernels.early_exit import entropy_at_most, first_confident, normalised_entropy
from course_lib.lectures.lecture_12.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_12.exercises import (
    distillation,
    exits,
    folding,
    int8,
    trigrams,
    uncertainty,
)
from course_lib.objectives.exits import self_distillation_loss
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import alike

EXERCISES = {exercise.id: exercise for exercise in ALL}
SMALL = MobileBertConfig(hidden_size=8, embedding_size=4, bottleneck_size=4, num_heads=2,
                         num_layers=1, vocab_size=20)  # fmt: skip


def texts_of(id: str) -> str:
    return EXERCISES[id].statement + " ".join(EXERCISES[id].hints)


def logarithms(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).log()


def test_the_uncertainty_by_hand_and_in_the_library():
    value = uncertainty.uncertainty(logarithms((1 / 2, 1 / 4, 1 / 8, 1 / 8)))
    assert f"the uncertainty is {value.item():.3f}" in texts_of("12.1")
    logits = Draw(0).normal(6, 5)
    assert alike(uncertainty.uncertainty(logits), normalised_entropy(logits), 1e-5)


@pytest.mark.parametrize("speed", [0.5, 0.7, 0.9])
def test_texts_leave_where_the_library_lets_them(speed):
    logits = 2 * Draw(1).normal(5, 40, 3)
    used = first_confident(logits, entropy_at_most(speed)).layers_used
    ours = exits.exit_layers(normalised_entropy(logits), speed)
    assert torch.equal(used, ours) and len(set(ours.tolist())) > 1


def test_the_texts_of_the_statement_leave_where_it_says():
    (u, speed), *_ = exits.by_hand(Draw(0))
    assert exits.exit_layers(u, speed).tolist() == [2, 1, 3] and speed == 0.3
    words = [
        f"{', '.join(f'{x:.1f}' for x in text)} {leaves}"
        for text, leaves in zip(
            u.T.tolist(), ("leaves at layer 2", "at layer 1", "at layer 3"), strict=True
        )
    ]
    words[2] = words[2].replace("0.2 at", "0.7 at")
    assert [w in texts_of("12.2") for w in words] == [True] * 3


class Exits:
    def __init__(self, students, teacher):
        self.exit_logits = (*students, teacher)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_self_distillation_is_the_librarys_forward_one(direction):
    students, teacher = distillation.case(Draw(2), 3, 4, 5)
    theirs = self_distillation_loss(direction)(Exits(students, teacher), {})["total"]
    ours = distillation.self_distillation(students, teacher)
    assert alike(ours, theirs, 1e-5) is (direction == "forward")


def test_the_two_directions_by_hand():
    teacher, student = logarithms((1 / 2, 1 / 4, 1 / 4)), logarithms((1 / 3,) * 3)
    forward = distillation.self_distillation(student[None], teacher).item()
    reverse = distillation.self_distillation(teacher[None], student).item()
    text = f"the loss is {forward:.4f}; the other direction would give {reverse:.4f}"
    assert text in texts_of("12.3")


def test_trigrams_are_what_mobilebert_projects():
    embeddings = TrigramEmbeddings(SMALL)
    ids = Draw(3).ids(1, 19, 2, 6)
    own = embeddings.project(trigrams.trigrams(embeddings.token(ids)))
    assert torch.allclose(own, embeddings.token_embeddings(ids), atol=1e-6)
    assert trigrams.trigrams(torch.tensor([[[1.0], [2.0], [3.0]]])).tolist() == [
        [[2, 1, 0], [3, 2, 1], [0, 3, 2]]
    ]


def test_a_bottleneck_can_be_folded():
    bottleneck, x = Bottleneck(SMALL), Draw(4).normal(2, 3, 8, dtype=torch.float32)
    with torch.no_grad():
        for parameter in bottleneck.parameters():
            parameter.normal_()
        weight, bias = folding.folded(
            bottleneck.dense.weight, bottleneck.dense.bias, bottleneck.norm.weight,
            bottleneck.norm.bias,
        )  # fmt: skip
        one = torch.nn.functional.linear(x, weight, bias)
        assert torch.allclose(one, bottleneck(x), atol=1e-5)


def test_the_folding_by_hand():
    weight, bias = folding.folded(*folding.by_hand(Draw(0))[0])
    text = f"{weight.int().tolist()}, and the new bias is {tuple(bias.int().tolist())}"
    assert text in texts_of("12.5")


def test_a_weight_comes_back_within_half_a_step():
    for (weight,) in (int8.case(Draw(5), 4, 30), int8.with_zeros(Draw(6), 3, 9)):
        whole, scale = int8.quantized(weight)
        apart = (whole * scale[:, None] - weight).abs()
        assert whole.dtype is torch.int8 and (apart <= scale[:, None] * (0.5 + 1e-9)).all()
        assert whole.abs().amax() == 127
    whole, scale = int8.quantized(int8.by_hand(Draw(0))[0][0])
    assert tuple(whole[0].tolist()) == (50, -127, 30) and "(50, −127, 30)" in texts_of("12.6")
    assert f"{scale[0] / 2:.3f} in the example" in texts_of("12.6")
