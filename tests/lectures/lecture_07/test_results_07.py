"""Lecture 07's result files and shipped weights are what today's recipes, world and code would
make."""

from __future__ import annotations

import pytest
from results_parts import check_made_with, check_spread

from course_lib.files import data_path, sha256_of
from course_lib.lectures.lecture_07 import experiments as lecture_07
from course_lib.teaching.results import REPLAYED, read_result


@pytest.fixture(scope="module")
def material():
    return lecture_07.prepare()


def test_the_ablation_steps_were_trained_with_these_recipes(material):
    costs = {s: lecture_07.flops_a_step(r, material) for s, r in lecture_07.EQUAL_STEPS.items()}
    recipes = {f"equal steps: {s}": recipe for s, recipe in lecture_07.EQUAL_STEPS.items()}
    equal = lecture_07.equal_flops(costs)
    recipes |= {f"equal arithmetic: {s}": recipe for s, recipe in equal.items()}
    found = check_made_with("07_stepping_stones", recipes, material.world, lecture_07.SEEDS)
    assert costs == pytest.approx(found["flops_a_step"], rel=0.01)
    spent = [recipe.steps * found["flops_a_step"][s] for s, recipe in equal.items()]
    assert len(spent) == 2 and max(spent) / min(spent) < 1.002
    check_spread("07_stepping_stones", "kinds")


def test_the_variants_were_trained_with_these_recipes(material):
    check_made_with("07_variants", lecture_07.VARIANTS, material.world, lecture_07.SEEDS)
    check_spread("07_variants", "kinds")


def test_the_shipped_electra_is_the_one_that_its_result_names(material):
    found = check_made_with("07_electra", {"ELECTRA": lecture_07.LONG}, material.world)
    for file, digest in found["weights"].items():
        assert sha256_of(data_path(*lecture_07.CHECKPOINTS, file)) == digest
    said, again = (
        {name: of[name] for name in ("auc", "words_by_generator", "kinds", "jobs")}
        for of in (
            found["runs"]["ELECTRA"][0],
            lecture_07.measure(lecture_07.micro_electra(), material),
        )
    )
    assert again == pytest.approx(said, abs=0.02)


@pytest.mark.usefixtures("recorded_draws")
def test_the_first_losses_are_the_recorded_ones(material):
    """The generator's draws repeat where its logits agree to rounding: the loss, times 50, may move
    by a word drawn otherwise."""
    again = lecture_07.replay(lecture_07.FULL, material)
    for name in ("07_stepping_stones", "07_variants"):
        recorded = read_result(name)["replay"]
        assert len(again) == len(recorded) == REPLAYED
        assert again == pytest.approx(recorded, rel=5e-3)
