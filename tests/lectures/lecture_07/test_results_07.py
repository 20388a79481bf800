"""Lecture 07's result files and shipped weights are what today's recipes, world and code would
make."""

from __future__ import annotations

import pytest
import torch
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


def test_the_long_runs_had_equal_flops_and_these_recipes():
    found = read_result("07_past_plateau")
    recipes = lecture_07.past_plateau_recipes(found["flops_a_step"])
    ends = {name: recipes[name] for name in lecture_07.ENDS}
    world = lecture_07.MicroWorld.load()
    check_made_with("07_past_plateau", ends, world, lecture_07.PAST_SEEDS)
    assert found["flops_a_step"] == pytest.approx(
        {s: read_result("07_stepping_stones")["flops_a_step"][s] for s in lecture_07.ENDS}, rel=0.01
    )
    assert recipes["ELECTRA"] == lecture_07.LONG
    spent = [recipe.steps * found["flops_a_step"][name] for name, recipe in ends.items()]
    assert max(spent) / min(spent) < 1.001
    assert [one["seed"] for one in found["untrained"]] == list(lecture_07.PAST_SEEDS)
    assert found["tuned_steps"] == lecture_07.TUNED_STEPS


def test_the_wider_generators_taught_the_shipped_recipe(material):
    recipes = lecture_07.generator_recipes()
    assert recipes["generator 1/4"] == lecture_07.LONG
    check_made_with("07_generators", recipes, material.world, lecture_07.GENERATOR_SEEDS)
    found, past = read_result("07_generators"), read_result("07_past_plateau")
    seeds = len(lecture_07.GENERATOR_SEEDS)
    assert found["runs"]["generator 1/4"] == past["runs"]["ELECTRA"][:seeds]
    costs = {name: lecture_07.flops_a_step(r, material) for name, r in recipes.items()}
    assert costs == pytest.approx(found["flops_a_step"], rel=0.01)


def test_the_deeper_ends_had_equal_flops_and_these_recipes(material):
    found = read_result("07_deep")
    recipes = lecture_07.equal_flops(found["flops_a_step"], lecture_07.DEEP)
    check_made_with("07_deep", recipes, material.world, lecture_07.DEEP_SEEDS)
    costs = {
        name: lecture_07.flops_a_step(lecture_07.replace(lecture_07.DEEP, stone=name), material)
        for name in lecture_07.ENDS
    }
    assert costs == pytest.approx(found["flops_a_step"], rel=0.01)
    spent = [recipe.steps * found["flops_a_step"][name] for name, recipe in recipes.items()]
    assert max(spent) / min(spent) < 1.001


def test_gaps_of_all_kinds_make_up_all_gaps():
    for runs in read_result("07_past_plateau")["runs"].values():
        every = runs[0]["gaps"]["all"]
        kinds = [of for kind, of in runs[0]["gaps"].items() if kind != "all"]
        assert sum(of["gaps"] for of in kinds) == every["gaps"]
        for what in ("argmax", "sampled"):
            right = sum(of[what] * of["gaps"] for of in kinds)
            assert right / every["gaps"] == pytest.approx(every[what])
        assert every["argmax"] == pytest.approx(runs[0]["words_by_generator"], abs=1e-6)


def test_a_mean_pooled_classifier_reads_real_tokens_only():
    recipe, world = lecture_07.FULL, lecture_07.MicroWorld.load()
    encoder = lecture_07.electra_from(lecture_07.small_config(recipe, world)).discriminator.encoder
    model = lecture_07.MeanPooled(lecture_07.classifier_on(encoder, 3).encoder, 3).eval()
    ids = torch.randint(5, 50, (2, 9))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    with torch.no_grad():
        both = model(ids, attention_mask=mask).logits
        short = model(ids[1:, :6], attention_mask=mask[1:, :6]).logits
    assert torch.allclose(both[1:], short, atol=1e-6) and both.shape == (2, 3)


@pytest.mark.usefixtures("recorded_draws")
def test_the_long_runs_begin_as_recorded(material):
    found = read_result("07_past_plateau")
    recipe = lecture_07.past_plateau_recipes(found["flops_a_step"])["BERT"]
    assert lecture_07.replay(recipe, material) == pytest.approx(found["replay"], rel=5e-3)


@pytest.mark.usefixtures("recorded_draws")
def test_the_first_losses_are_the_recorded_ones(material):
    """The generator's draws repeat where its logits agree to rounding: the loss, times 50, may move
    by a word drawn otherwise."""
    again = lecture_07.replay(lecture_07.FULL, material)
    for name in ("07_stepping_stones", "07_variants"):
        recorded = read_result(name)["replay"]
        assert len(again) == len(recorded) == REPLAYED
        assert again == pytest.approx(recorded, rel=5e-3)
    wide = lecture_07.generator_recipes()["generator 1"]
    recorded = read_result("07_generators")["replay"]
    assert lecture_07.replay(wide, material) == pytest.approx(recorded, rel=5e-3)
    recorded = read_result("07_deep")["replay"]
    assert lecture_07.replay(lecture_07.DEEP, material) == pytest.approx(recorded, rel=5e-3)
