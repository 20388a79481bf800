"""The numbers in the quiz and the questions for review of lecture 14, computed again."""

from __future__ import annotations

import math

import pytest
import torch
from quiz_parts import Quiz

from course_lib.bench.early_exit import GOAL, ROWS
from course_lib.config import published
from course_lib.kernels.choosing import ATTENTION
from course_lib.lectures.lecture_14.claims import masked_only_limit
from course_lib.lectures.lecture_14.exercises import bound, skew

QUIZ = Quiz("14")
item, answer = QUIZ.item, QUIZ.answer
MASKED = 0.15


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()


def test_the_roof_is_the_exercises():
    found, right = item("one FLOP for each byte")
    assert "200 GFLOP/s and moves 40 GB/s" in found.question
    seconds = bound.least_seconds(1e9, 1e9, 200, 40)  # as many FLOPs as bytes
    assert right.text == f"{1e9 / seconds / 1e9:.0f} GFLOP/s"
    assert f"200 / 40 = {200 / 40:.0f}" in found.choices[0].why


def test_the_intensities_are_divided():
    n = 768
    moved = 3 * n * n * 4
    product, total = 2 * n**3 / moved, n * n / moved
    assert product == pytest.approx(n / 6) and total == pytest.approx(1 / 12)
    said = answer("Compute the arithmetic intensity")
    for text in (f"{moved:,} bytes", f"{2 * n**3:,} FLOPs", f"{product:.0f} a byte"):
        assert text in said
    assert f"a factor of {10 / total:.0f}" in said and product > 10 > total
    assert item("when n doubles")[1].text == "It doubles"


def test_the_limits_of_the_masked_only_head_are_counted():
    found, right = item("masked-only head")
    base, mini, tiny = (masked_only_limit(published("bert", s)) for s in ("base", "mini", "tiny"))
    assert f"a vocabulary of {published('bert', 'base').vocab_size:,}," in found.question
    limits = [f"{x:.2f} times" for x in (base, tiny, 1 / MASKED)]
    assert [choice.text for choice in found.choices] == limits and right.text == limits[0]
    fraction = (1 - 1 / base) / (1 - MASKED)  # of the step's FLOPs, the head's
    assert f"{fraction:.0%} of the FLOPs" in right.why
    said = answer("before the head and not after")
    assert f"{base:.2f} for BERT-base, {mini:.2f} for mini and {tiny:.2f} for tiny" in said
    assert f"1/0.15 = {1 / MASKED:.1f} times" in said


def test_the_sums_meet():
    assert "Example 3 in epoch 2" in item("seed + epoch + example")[1].text and 3 + 2 == 2 + 3


def test_the_step_of_the_skew_is_the_solutions():
    T = 6
    view = skew.skew(torch.randn(T, 2 * T - 1))
    assert view.stride() == (2 * T - 2, 1) and item("from the beginning of one row")[1].text == (
        "2T − 2"
    )
    assert "steps (2T − 2, 1)" in answer("replace a gather")


def test_the_old_weights_shrink():
    old, new = 1.0, 3.0
    assert math.exp(0.5 - old) * math.exp(old - new) == pytest.approx(math.exp(0.5 - new))
    _, right = item("larger by 2")
    assert right.text == "It is multiplied by e⁻²" and new - old == 2


def test_the_padding_is_divided():
    found, right = item("Three quarters of a batch")
    p = 0.75
    assert [c.text for c in found.choices] == [
        f"{1 + p:g} times", f"{p / (1 - p):g} times", f"{1 / (1 - p):g} times"]  # fmt: skip
    assert right.text == found.choices[2].text
    assert f"with half padding at most {1 / 0.5:g} times, with three quarters 4 times" in (
        answer("removed padding")
    )


def test_goal_and_batch_are_those_of_the_bench():
    said = answer("FLOPs that early exit saves")
    assert f"a batch of {ROWS}" in said and f"goal is {GOAL} of" in said


def test_the_rules_are_those_of_the_library():
    dropout, training, rest = ATTENTION
    assert dropout.path == training.path == "plain" and rest.path == "fused"
    assert dropout.dropout and dropout.device == training.device == "cpu"
    assert training.training and training.dtypes == (torch.bfloat16,)
    said = answer("PyTorch's fused attention, and when")
    assert f"training in bfloat16 up to {training.tokens_up_to} tokens" in said
    times = "four to five times as long up to 128 tokens"
    assert times in training.why and times in item("processor that multiplies bfloat16")[1].text
    assert "four to five times as long as plain products up to 128 tokens" in (
        answer("bfloat16 halves")
    )
