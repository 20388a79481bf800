"""Members begin as their recipes say, and `13_benchmark` is what today's recipes would make."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.lectures.lecture_13 import benchmark as room
from course_lib.lectures.lecture_13 import members, pretraining_runs
from course_lib.lectures.lecture_13.intervals import bootstrap_indices, interval, resampled
from course_lib.lectures.lecture_13.tuning_runs import FIRST
from course_lib.teaching.results import read_result
from course_lib.train.glue import METRICS
from course_lib.train.loop import fit

torch.set_num_threads(1)
NAME = "13_benchmark"
RECIPES = pretraining_runs.RECIPES


def begun(name):
    """A member and, where it has one, an untrained teacher."""
    recipe = RECIPES[name]
    teacher = members.trainee(RECIPES[recipe.teacher], 1).kept if recipe.teacher else None
    return members.trainee(recipe, 0, teacher)


@pytest.mark.parametrize("name", [*pretraining_runs.MEMBERS, *pretraining_runs.TEACHERS])
def test_every_part_of_every_member_trains_what_is_kept(name):
    made = begun(name)
    encoder = pretraining_runs.encoder_of(made.kept)
    assert sum(part.share for part in made.parts) == pytest.approx(1)
    for part in made.parts:
        before = [p.detach().clone() for p in encoder.parameters()]
        history = fit(
            part.model, part.loss, made.batches, steps=1, precision="float32", scale=part.scale
        )
        assert math.isfinite(history.losses["total"][0])
        assert any(not torch.equal(a, b) for a, b in zip(before, encoder.parameters(), strict=True))


@pytest.mark.parametrize("member", pretraining_runs.EQUAL)
def test_a_plain_model_is_as_large_as_its_member(member):
    name = pretraining_runs.EQUAL[member]
    plain, other = (pretraining_runs.parameters_of(begun(n).kept) for n in (name, member))
    assert plain == pytest.approx(other, rel=0.06)


def test_what_students_learn_from_shares_its_weights():
    model = begun("BERT").kept
    alone = members.masked_words(model)
    assert alone.encoder is model.encoder and alone.mlm is model.mlm
    assert members.masked_words(alone) is alone


@pytest.mark.parametrize(
    ("recipe", "teacher", "message"),
    [
        (replace(members.Recipe(), member="GPT"), None, "expected one of"),
        (RECIPES["DistilBERT"], None, "with teacher 'BERT' was given None"),
        (members.Recipe(), "someone", "with teacher '' was given 'someone'"),
    ],
)
def test_what_cannot_begin_is_said(recipe, teacher, message):
    with pytest.raises(ValueError, match=message):
        members.trainee(recipe, 0, teacher)


def test_a_step_of_a_student_counts_its_teacher():
    alone, with_teacher = (
        pretraining_runs.flops_a_step(RECIPES[n]) for n in ("plain, two layers", "DistilBERT")
    )
    assert with_teacher > 2 * alone


# ---------------------------------------------------------------- the file


def test_it_was_made_with_these_recipes():
    stored = read_result(NAME)["pretraining"]
    assert stored == {n: room.asdict(r) for n, r in RECIPES.items()}


def test_all_members_had_as_many_flops_and_weights_as_their_recipes_say():
    runs = read_result(NAME)["runs"]
    whole = runs["BERT"][0]["flops"]
    assert whole == RECIPES["BERT"].flops * pretraining_runs.flops_a_step(RECIPES["BERT"])
    for name in (*pretraining_runs.MEMBERS, *pretraining_runs.CONTROLS):
        sizes = pretraining_runs.parameters_of(begun(name).kept)
        for run in runs[name]:
            assert run["flops"] == pytest.approx(whole, rel=0.01)
            assert run["parameters"] == sizes


def test_averages_are_those_of_the_scores_and_lie_in_their_intervals():
    stored = read_result(NAME)
    for name, runs in stored["runs"].items():
        assert all(run["average"] == pytest.approx(room.average(run["scores"])) for run in runs)
        low, high = stored["intervals"][name]["average"]
        assert low < sum(run["average"] for run in runs) / len(runs) < high
    assert stored["intervals"]["BERT"]["beside BERT"] == [0, 0]


def test_no_rate_stands_at_the_end_of_those_tried():
    stored = read_result(NAME)
    for start, tried in stored["pretraining_rates"].items():
        losses = {float(rate): math.inf if loss is None else loss for rate, loss in tried.items()}
        best = min(losses, key=losses.__getitem__)
        assert min(losses) < best < max(losses)
        for run in stored["runs"].get(start, []):
            assert run["pretraining_rate"] == best or best in run["pretraining_collapsed"]
    for start, by_task in stored["rates"].items():
        for task, tried in by_task.items():
            rates = [float(rate) for rate in tried]
            best = max(rates, key=lambda rate: (tried[str(rate)], -abs(math.log(rate / FIRST))))
            # WNLI's validation texts mislead: what learns nothing is best on them.
            assert min(rates) < best < max(rates) or (task == "WNLI" and best == 4e-3)
            for run in stored["runs"][start]:
                fallen = run["collapsed"].get(task, [])
                assert run["rates"][task] < min(fallen, default=math.inf)


def test_sentiment_text_by_text_is_its_score():
    for runs in read_result(NAME)["runs"].values():
        for run in runs:
            right = [int(x) for x in run["sentiment"]]
            assert sum(right) / len(right) == pytest.approx(
                run["scores"][room.SENTIMENT]["accuracy"]
            )


def test_nobody_beats_the_oracle():
    stored = read_result(NAME)
    for name, rows in stored["without_learning"].items():
        assert list(rows["oracle"].values()) == pytest.approx([1.0] * len(rows["oracle"]))
        for runs in stored["runs"].values():
            assert all(score <= 1 for run in runs for score in run["scores"][name].values())


# ---------------------------------------------------------------- intervals


def test_resampled_sets_and_their_scores():
    which = bootstrap_indices(50, 400)
    assert which.shape == (400, 50) and which.min() >= 0 and which.max() < 50
    assert (which == bootstrap_indices(50, 400)).all()
    assert (which != bootstrap_indices(50, 400, seed=1)).any()
    true = [n % 2 for n in range(50)]
    predicted = [1 - t if n < 10 else t for n, t in enumerate(true)]  # ten of fifty are wrong
    scores = resampled(METRICS["accuracy"], predicted, true, which)
    assert scores == pytest.approx([1 - (row < 10).mean() for row in which])
    low, high = interval(scores)
    assert low < 0.8 < high and high - low == pytest.approx(3.92 * math.sqrt(0.16 / 50), rel=0.15)


def test_an_interval_leaves_as_much_out_on_either_side():
    assert interval(np.arange(101), 0.9) == pytest.approx((5, 95))
    with pytest.raises(ValueError, match="2 answers and 2 labels were given for drawn sets of 3"):
        resampled(METRICS["accuracy"], [1, 0], [1, 0], bootstrap_indices(3, 2))
