"""Lecture 07's result files and shipped weights are what today's recipes, world and code would
make."""

from __future__ import annotations

import pytest
import torch

from course_lib.lectures.lecture_07 import experiments as lecture_07
from course_lib.lectures.lecture_07 import numbers
from course_lib.lectures.lecture_07.ablation_steps import ABLATION_STEPS
from course_lib.teaching.results import read_result


@pytest.fixture(scope="module")
def material():
    return lecture_07.prepare()


def test_the_ends_had_equal_flops():
    stored = read_result("07_past_plateau")
    costs = stored["flops_a_step"]
    spent = [recipe["steps"] * costs[recipe["stone"]] for recipe in stored["recipes"].values()]
    assert len(spent) == 2 and max(spent) / min(spent) < 1.001


@pytest.mark.parametrize(
    "name", ["07_stepping_stones", "07_variants", "07_past_plateau", "07_generators"]
)
def test_steps_cost_what_they_cost_today(name, material):
    (one,) = (one for one in lecture_07.EXPERIMENTS if one.name == name)
    costs = one.more["flops_a_step"](material)
    assert costs == pytest.approx(read_result(name)["flops_a_step"], rel=0.01)


def test_the_shipped_electra_is_the_one_that_its_result_names(material):
    stored = read_result("07_electra")
    expected, measured = (
        {name: of[name] for name in ("auc", "words_by_generator", "kinds", "jobs")}
        for of in (
            stored["runs"]["ELECTRA"][0],
            lecture_07.measure(lecture_07.micro_electra(), material),
        )
    )
    assert measured == pytest.approx(expected, abs=0.02)


def test_every_step_of_the_ablation_was_tried_at_every_rate_and_none_stands_at_an_end():
    stored = read_result("07_stepping_stones")
    assert len(stored["runs"]) == len(ABLATION_STEPS) * len(lecture_07.RATES)
    for name, recipe in stored["recipes"].items():
        assert name == f"{recipe['stone']}, {recipe['learning_rate']:g}"
        assert [run["seed"] for run in stored["runs"][name]] == list(lecture_07.SEEDS)
    for step in ABLATION_STEPS:
        assert lecture_07.RATES[0] < numbers.best_rate(step) < lecture_07.RATES[-1]
        assert not numbers.collapsed(step, numbers.best_rate(step))


def test_runs_of_two_files_are_one_run():
    generators, past = read_result("07_generators"), read_result("07_past_plateau")
    seeds = len(lecture_07.GENERATOR_SEEDS)
    assert generators["runs"]["generator 1/4"] == past["runs"]["ELECTRA"][:seeds]
    assert [one["seed"] for one in past["untrained"]] == list(lecture_07.PAST_SEEDS)
    assert past["recipes"]["ELECTRA"] == lecture_07.asdict(lecture_07.LONG)


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
