"""The numbers in the quiz and the questions for review of lecture 12, computed or read again."""

from __future__ import annotations

import math

import pytest
import torch
from quiz_parts import Quiz

from course_lib.config import BertConfig, encoder_flops, published
from course_lib.encoder import count_parameters
from course_lib.family.albert import albert
from course_lib.family.bert import bert
from course_lib.family.mobilebert import MobileBertConfig, MobileBlock, mobilebert
from course_lib.lectures.lecture_12.exercises.int8 import quantized
from course_lib.lectures.lecture_12.exercises.uncertainty import uncertainty

QUIZ = Quiz("12")
item, answer = QUIZ.item, QUIZ.answer


def sure(*p: float) -> float:
    return uncertainty(torch.tensor([p], dtype=torch.float64).clamp(min=1e-30).log()).item()


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()
    assert len(QUIZ.items) == 15


def test_two_answers_with_one_largest_probability():
    found, right = item("(0.6, 0.4, 0) and (0.6, 0.2, 0.2)")
    first, second = sure(0.6, 0.4, 0), sure(0.6, 0.2, 0.2)
    assert first < 0.7 < second and "speed is 0.7" in found.question
    assert right.text == f"The first: its uncertainty is {first:.2f}, the other's {second:.2f}"
    said = answer("uncertainty and its rule")
    assert f"(0.6, 0.4, 0) has {first:.2f}, (0.6, 0.2, 0.2) has {second:.2f}" in said


@pytest.mark.parametrize(("speed", "probability"), [(0.5, 0.89), (0.8, 0.76)])
def test_what_a_speed_means_for_two_classes(speed, probability):
    assert f"{probability}" in item("from 0.5 to 0.8")[1].why
    assert sure(probability, 1 - probability) == pytest.approx(speed, abs=0.01)


def test_four_feed_forward_parts_restore_berts_proportion():
    with torch.device("meta"):
        block = MobileBlock(published("mobilebert", "base", MobileBertConfig))
    matrices = {name: p.numel() for name, p in block.named_parameters() if p.dim() == 2}
    feeding = [n for name, n in matrices.items() if "feed_forward" in name]
    attending = sum(n for name, n in matrices.items()
                    if name.startswith(("attention.", "enter.", "shared.")))  # fmt: skip
    why = item("four feed-forward parts")[1].why
    assert f"{sum(feeding) // 4:,} weights stands beside {attending:,} of attention" in why
    assert f"Four make {sum(feeding):,}" in why
    assert sum(feeding) / attending == pytest.approx(2, abs=0.15)
    bert = published("bert", "base", BertConfig)
    assert 2 * bert.intermediate_size / (4 * bert.hidden_size) == 2


def test_parameters_are_counted():
    with torch.device("meta"):
        mobile, large = mobilebert("base"), bert("base")
        shared = count_parameters(albert("base"))
    said = answer("parameters has MobileBERT")
    assert f"gives {count_parameters(mobile):,}" in said
    assert f"{count_parameters(large):,} with its pooler" in said
    ratios = count_parameters(large) / count_parameters(mobile), count_parameters(large) / 25.3e6
    assert "{:.1f} times as many by this count, {:.1f} by the paper's".format(*ratios) in said
    other = answer("FLOPs, latency, memory, size")
    assert f"{shared / 1e6:.1f} million parameters" in other
    assert f"BERT-base {count_parameters(large) / 1e6:.1f}" in other


def test_flops_are_counted():
    config = published("bert", "base", BertConfig)
    assert f"{encoder_flops(config, 128) / 1e9:.2f} GFLOPs" in answer("FLOPs, latency")


def test_shapes_of_student_and_teacher():
    student, teacher = (published(*name, MobileBertConfig)
                        for name in (("mobilebert", "base"), ("ib-bert", "large")))  # fmt: skip
    found, right = item("inverted bottleneck is the feed-forward part")
    H, N = teacher.hidden_size, teacher.bottleneck_size
    assert right.text.endswith(f"{H} to {N} to {H}") and student.hidden_size == H
    assert f"{H} to {student.bottleneck_size} to {H}" in found.choices[1].text
    assert student.num_layers == teacher.num_layers == 24


def test_the_two_directions_of_the_divergence():
    t, s = torch.tensor([1 / 2, 1 / 4, 1 / 4]), torch.full((3,), 1 / 3)
    forward, reverse = (float((a * (a / b).log()).sum()) for a, b in ((t, s), (s, t)))
    assert (
        f"{forward:.4f} one way, {reverse:.4f} the other"
        in item("Is that the same")[0].choices[2].why
    )
    program = torch.nn.KLDivLoss(reduction="sum")(s.log(), t)
    assert program.item() == pytest.approx(forward)


def test_one_large_weight_leaves_few_steps_to_the_others():
    weight = torch.full((2, 4), 0.01)
    weight[0, 0] = 1.0
    weight[1, 1] = -0.004
    whole = (weight / (weight.abs().max() / 127)).round()
    assert set(whole.flatten()[1:].tolist()) <= {-1, 0, 1}
    assert quantized(weight)[0][1].abs().max() == 127
    assert math.isclose(127 * quantized(weight)[1][1], 0.01, rel_tol=1e-6)
    assert "become −1, 0 or 1" in item("one scale for the whole matrix")[0].choices[0].why
