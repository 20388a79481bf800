"""Lecture 15's results files are what today's recipes would make, and what the page says of every
seed is so."""

from __future__ import annotations

import pytest
import torch

from course_lib.images import digits
from course_lib.lectures.lecture_15 import picture_runs as runs
from course_lib.teaching.results import read_result

torch.set_num_threads(1)


def reached(name: str, recipe: str, what: str = "accuracy") -> list[float]:
    return [run[what] for run in read_result(name)["runs"][recipe]]


@pytest.mark.parametrize("name", [one.name for one in runs.EXPERIMENTS])
def test_curves_end_with_what_was_reached(name: str):
    for of in read_result(name)["runs"].values():
        for run in of:
            assert 0 <= run["accuracy"] <= 1
            if "curve" in run and run["curve"][-1]["step"] == run.get("steps"):
                assert run["curve"][-1]["accuracy"] == pytest.approx(run["accuracy"])


def test_equal_flops_took_more_steps():
    steps = {name: reached("15_masked", name, "steps") for name in runs.MASKED}
    more = runs.pretraining_in_steps(runs.MASKED["equal FLOPs, 50"])
    for n in runs.FEW:
        plain = steps[f"random, {n}"]
        assert steps[f"equal FLOPs, {n}"] == [one + more for one in plain]
        assert steps[f"masked patches, {n}"] == plain


def test_a_logistic_regression_does_not_see_one_permutation():
    plain = reached("15_positions", "logistic regression")
    assert reached("15_positions", "logistic regression, one permutation") == pytest.approx(plain)
    assert plain[0] == runs.logistic_accuracy(digits(), digits("test"))


def test_only_a_question_about_a_place_needs_positions():
    labels = runs.pictures_of(runs.PLACE)["test"].labels
    commonest = labels.bincount().max().item() / len(labels)
    for with_, without in zip(
        reached("15_positions", "which row, 1-D"), reached("15_positions", "which row, none"),
        strict=True,
    ):  # fmt: skip
        assert with_ > 0.99 and without == pytest.approx(commonest, abs=0.01)
    assert min(reached("15_positions", "a circle, none")) > 0.99
