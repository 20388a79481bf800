"""Lecture 08's result files are what today's recipes, world and code would make; and a comparison
extends its own file by the recipes that it lacks."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
import torch

from course_lib.lectures.lecture_08 import embedding_sharing, sift_runs
from course_lib.lectures.lecture_08 import experiments as lecture_08
from course_lib.lectures.lecture_08.claims import at_best, at_rates
from course_lib.teaching import results
from course_lib.teaching.results import compared_runs, read_result
from course_lib.text.world import MicroWorld

STORED = read_result("08_positions")
NEW = lecture_08.CONTROL


@pytest.fixture(scope="module")
def material():
    return lecture_08.prepare()


def test_one_table_two_or_v3s_are_what_they_are_called():
    stored, recipes = read_result("08_embedding_sharing"), embedding_sharing.SHARING
    assert [one["seed"] for one in stored["untrained"]] == list(embedding_sharing.SHARING_SEEDS)
    one, two, v3 = ({run["parameters"] for run in stored["runs"][name]} for name in recipes)
    assert (
        two == v3 and two.pop() - one.pop() == MicroWorld.load().special.vocab_size * 128
    )  # a table
    for name, runs in stored["runs"].items():
        for run in runs:
            assert run["auc"] == run["curve"][-1]["auc"]
            assert (run["tables_apart"] == 0) == (name == embedding_sharing.ONE)


# ---------------------------------------------------------------- a file is extended


@pytest.fixture
def stored(monkeypatch, material):
    """08_positions without the control, as if made with today's versions and threads."""
    there: dict[str, Any] = copy.deepcopy(STORED)
    about = results.made_with(material.world, "float32")
    there |= {key: about[key] for key in ("versions", "threads")} | {"date": "2000-01-01"}
    for part in (there["recipes"], there["runs"]):
        part.pop(NEW)
    there.pop("added")
    monkeypatch.setattr(results, "read_result", lambda name: {"08_positions": there}[name])
    return there


def extend(world, recipes=lecture_08.RECIPES, seeds=lecture_08.SEEDS, **more):
    """compared_runs with training that only says which run it would be; and which it was asked."""
    trained = []

    def run(recipe, seed):
        trained.append((next(n for n, r in recipes.items() if r is recipe), seed))
        return {"seed": seed, "masked_accuracy": 0.5}

    options = {"precision": "float32", "extends": "08_positions", **more}
    return compared_runs(recipes, seeds, world, run, **options), trained


def test_the_best_rate_lies_inside_those_that_were_tried():
    for name in lecture_08.ENDS:
        first = {rate: values[0] for rate, values in at_rates(name).items()}
        assert min(first) < max(first, key=lambda rate: first[rate]) < max(first)
    for name in lecture_08.COMPARED:
        assert len(at_best(name)) == 3 and mean(at_best(name)) >= mean(at_rates(name)[2e-3][:3])


def unasked():
    raise AssertionError("the file says it already")


def test_only_the_recipe_that_the_file_lacks_is_trained(stored, material):
    result, trained = extend(material.world, replay=unasked, step_seconds=unasked)
    assert trained == [(NEW, seed) for seed in lecture_08.SEEDS]
    assert list(result["runs"]) == list(result["recipes"]) == list(lecture_08.RECIPES)
    assert {n: runs for n, runs in result["runs"].items() if n != NEW} == stored["runs"]
    assert result["replay"] == stored["replay"] and result["date"] == "2000-01-01"
    assert list(result["added"]) == [NEW] and result["added"][NEW] > "2000-01-01"


def test_a_whole_file_stays_as_it_is(stored, material, monkeypatch):
    once, _ = extend(material.world, replay=unasked, step_seconds=unasked)
    saved = json.dumps(once)
    monkeypatch.setattr(results, "read_result", lambda name: json.loads(saved))
    again, trained = extend(material.world, replay=unasked, step_seconds=unasked)
    assert not trained and again["runs"] == once["runs"] and again["added"] == once["added"]


def test_a_seed_more_costs_that_seed(stored, material):
    result, trained = extend(material.world, {"BERT": lecture_08.ABSOLUTE}, range(6))
    assert trained == [("BERT", 5)] and result["runs"]["BERT"][:5] == stored["runs"]["BERT"]
    assert list(result["added"]) == ["BERT"]


def test_a_changed_recipe_is_trained_anew(stored, material):
    other = {"BERT": replace(lecture_08.ABSOLUTE, steps=7), "DeBERTa": lecture_08.FULL}
    _, trained = extend(material.world, other)
    assert trained == [("BERT", seed) for seed in lecture_08.SEEDS]


@pytest.mark.parametrize("what", ["world", "versions", "threads", "precision", "device"])
def test_nothing_is_kept_of_a_file_made_with_something_else(stored, material, capsys, what):
    stored[what] = {"hash": "another"}
    result, trained = extend(material.world, replay=lambda: [1.0], levels=2)
    assert len(trained) == len(lecture_08.RECIPES) * len(lecture_08.SEEDS)
    assert (result["replay"], result["levels"]) == ([1.0], 2) and "added" not in result
    assert result["threads"] == torch.get_num_threads() and result["date"] > "2000-01-01"
    assert f"made with other {what}" in capsys.readouterr().out


def test_without_a_file_all_is_trained(material, monkeypatch):
    def missing(name):
        raise FileNotFoundError(name)

    monkeypatch.setattr(results, "read_result", missing)
    _, trained = extend(material.world)
    assert len(trained) == len(lecture_08.RECIPES) * len(lecture_08.SEEDS)


def test_sift_costs_what_its_recipes_take_it_to_cost():
    material = sift_runs.prepare_sift()
    stored = read_result("08_sift")
    assert stored["heldout"] == len(material.heldout)
    flops = stored["flops_a_step"]
    assert sift_runs.flops_of_steps(material) == pytest.approx(flops, rel=0.01)
    ratio = flops[sift_runs.SIFT] / flops[sift_runs.PLAIN]
    assert ratio == pytest.approx(sift_runs.FLOPS_RATIO, abs=0.01)
