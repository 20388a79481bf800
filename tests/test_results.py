"""Result files are what today's recipes, today's world and today's code would make."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, replace

import pytest
import torch

from course_lib.train.baselines import bag_of_words_accuracy
from course_lib.train.experiments.lecture_02 import RUNS, levels, one_run, outcome, replay
from course_lib.train.metrics import evaluate, hidden_words
from course_lib.train.recipes import LIVE, AccuracyCurve, fresh_model, prepare, pretrain
from course_lib.train.results import REPLAYED, read_result

SMALL = replace(LIVE, steps=6, stories=400, heldout=60, batch_size=16)


@pytest.fixture(scope="module")
def result():
    return read_result("02_pretraining")


@pytest.fixture(scope="module")
def material():
    return prepare(LIVE)


@pytest.fixture(scope="module")
def small():
    return prepare(SMALL)


def test_the_result_was_made_by_this_recipe_in_this_world(result, material):
    assert result["recipes"] == {name: asdict(recipe) for name, (recipe, _) in RUNS.items()}
    assert result["world"] == {"version": material.world.version, "hash": material.world.hash}
    assert {name: [run["seed"] for run in runs] for name, runs in result["runs"].items()} == {
        name: list(seeds) for name, (_, seeds) in RUNS.items()
    }


def test_the_first_steps_of_seed_0_give_the_recorded_losses(result, material):
    again = replay(LIVE, material)
    assert len(again) == REPLAYED
    assert again == pytest.approx(result["replay"], abs=2e-4)  # other processors round otherwise


def test_the_result_says_what_the_lecture_says(result):
    """The live run closes at least half of the gap, the long one 85%: for every seed."""
    for name, share in (("live", 0.5), ("long", 0.85)):
        assert all(r["curve"][-1]["step"] == RUNS[name][0].steps for r in result["runs"][name])
        assert min(outcome(result, name)["gap_closed"]) >= share
    assert result["levels"]["oracle"] - result["levels"]["count_model"] >= 0.15
    assert result["levels"]["unigram"] < result["levels"]["count_model"]


def test_the_levels_are_those_of_today(result, material):
    again = levels(material)
    assert again == pytest.approx(result["levels"], abs=0.004)  # library versions may fit otherwise


def test_evaluation_asks_hidden_words_only_and_leaves_the_model_as_it_was(small):
    model = fresh_model(SMALL, small.special.vocab_size, seed=0).train()
    rows = small.heldout_stories.rows
    scores = evaluate(model, rows, small.special, batch_size=17)
    assert model.training
    whole = evaluate(model, rows, small.special, batch_size=1_000)
    assert torch.equal(scores.found, whole.found)
    masked = hidden_words(rows, small.special)
    assert len(scores.found) == len(masked.asked) and (masked.done == 1).all()
    assert scores.mlm_loss == pytest.approx(whole.mlm_loss, rel=1e-3)


def test_a_bag_of_shared_words_beats_guessing_and_knows_no_order(small):
    accuracy = bag_of_words_accuracy(small.train, small.heldout_pairs, small.special)
    shares = small.heldout_pairs.next_sentence_label.float().mean().item()
    assert accuracy > max(shares, 1 - shares) + 0.1


def test_a_stopped_result_goes_on_and_a_finished_one_is_read(small, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path))
    run = one_run("live", SMALL, small, seed=3)
    assert run["curve"][-1]["step"] == SMALL.steps and run["seed"] == 3
    done = next((tmp_path / "results").glob("live-3-*.json"))
    done.write_text(json.dumps(run | {"seconds": 12345}))
    assert one_run("live", SMALL, small, seed=3)["seconds"] == 12345
    curve = AccuracyCurve(small, SMALL.steps, looks=24)
    pretrain(SMALL, small, seed=3, callbacks=[curve])
    last = curve.points[-1]["masked_accuracy"]
    assert last == run["curve"][-1]["masked_accuracy"]


def test_spread_is_over_different_runs(result):
    finals = [run["curve"][-1]["masked_accuracy"] for run in result["runs"]["live"]]
    assert len(set(finals)) > 1 and statistics.stdev(finals) < 0.1
