"""What lecture 02's results say, and how they are measured."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest
import torch

from course_lib.lectures.lecture_02.experiments import levels, one_run, outcome
from course_lib.lectures.lecture_02.recipes import (
    LIVE,
    AccuracyCurve,
    prepare,
    pretrain,
    randomly_initialised,
)
from course_lib.teaching.results import read_result
from course_lib.train.baselines import bag_of_words_accuracy
from course_lib.train.metrics import evaluate, evaluation_mask

SMALL = replace(LIVE, steps=6, stories=400, heldout=60, batch_size=16)
PRETRAINING = read_result("02_pretraining")


@cache
def material():
    return prepare(LIVE)


@pytest.fixture(scope="module")
def small():
    return prepare(SMALL)


def test_the_result_says_what_the_lecture_says():
    """The live run closes at least half of the gap, the long one 85%: for every seed."""
    for name, share in (("live", 0.5), ("long", 0.85)):
        assert min(outcome(PRETRAINING, name)["gap_closed"]) >= share
    levels = PRETRAINING["levels"]
    assert levels["oracle"] - levels["count_model"] >= 0.15
    assert levels["unigram"] < levels["count_model"]


def test_the_levels_are_those_of_today():
    again = levels(material())  # library versions may fit otherwise
    assert again == pytest.approx(PRETRAINING["levels"], abs=0.004)


def test_evaluation_predicts_masked_tokens_only_and_leaves_the_model_as_it_was(small):
    model = randomly_initialised(SMALL, small.special.vocab_size, seed=0).train()
    sequences = small.heldout_stories.sequences
    scores = evaluate(model, sequences, small.special, batch_size=17)
    assert model.training
    whole = evaluate(model, sequences, small.special, batch_size=1_000)
    assert torch.equal(scores.masked_right, whole.masked_right)
    masked = evaluation_mask(sequences, small.special)
    assert len(scores.masked_right) == len(masked.original_ids) and (masked.done == 1).all()
    assert scores.mlm_loss == pytest.approx(whole.mlm_loss, rel=1e-3)


def test_a_bag_of_shared_words_beats_guessing_and_knows_no_order(small):
    accuracy = bag_of_words_accuracy(small.train, small.heldout_pairs, small.special)
    shares = small.heldout_pairs.next_sentence_label.float().mean().item()
    assert accuracy > max(shares, 1 - shares) + 0.1


def test_a_stopped_result_goes_on_and_a_finished_one_is_read(small, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path))
    run = one_run("live", SMALL, small, seed=3)
    assert run["curve"][-1]["step"] == SMALL.steps and run["seed"] == 3
    done = next((tmp_path / "results").glob("02-live-3-*.json"))
    done.write_text(json.dumps(run | {"seconds": 12345}))
    assert one_run("live", SMALL, small, seed=3)["seconds"] == 12345
    curve = AccuracyCurve(small, SMALL.steps, evaluations=24)
    pretrain(SMALL, small, seed=3, callbacks=[curve])
    last = curve.points[-1]["masked_accuracy"]
    assert last == run["curve"][-1]["masked_accuracy"]
