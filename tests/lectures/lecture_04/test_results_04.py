"""Lecture 04's result is what today's recipes and code would make, and says what the lecture
says."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import asdict
from functools import cache
from itertools import pairwise

import pytest

from course_lib.lectures.lecture_04 import experiments as lecture_04
from course_lib.lectures.lecture_04 import numbers
from course_lib.objectives.masked_lm import eligible_positions
from course_lib.teaching.results import read_result
from course_lib.text.world import MicroWorld

MASKING = read_result("04_masking_schemes")
world = cache(MicroWorld.load)


@cache
def masking_material():
    return lecture_04.prepare_masking(lecture_04.LIVE, world())


def test_the_result_was_made_by_these_recipes_in_this_world():
    recipes, results = lecture_04.RECIPES, MASKING
    assert results["recipes"] == {name: asdict(recipe) for name, recipe in recipes.items()}
    assert results["world"] == {"version": world().version, "hash": world().hash}
    assert list(results["runs"]) == list(recipes) and results["schemes"] == lecture_04.SCHEMES
    for name, schemes in results["runs"].items():
        assert list(schemes) == list(lecture_04.SCHEMES)
        for runs in schemes.values():
            assert [run["seed"] for run in runs] == list(lecture_04.SEEDS[name])
            assert {run["curve"][-1]["step"] for run in runs} == {recipes[name].steps}
            assert len({run["curve"][-1]["heldout_loss"] for run in runs}) == len(runs)
            assert statistics.stdev(run["curve"][-1]["heldout_accuracy"] for run in runs) < 0.15


@pytest.mark.usefixtures("recorded_draws")
def test_the_first_steps_of_seed_0_give_the_recorded_losses():
    assert lecture_04.replay(masking_material()) == pytest.approx(MASKING["replay"], abs=2e-4)


def test_one_static_mask_is_far_below_and_ten_copies_are_close():
    """Lecture 04's headline, in both sets of stories and for every seed."""
    for name in MASKING["runs"]:
        accuracies = lecture_04.outcome(MASKING, "heldout_accuracy", name)
        schemes = (accuracies["static"], accuracies["ten copies"], accuracies["dynamic"])
        for static, ten, dynamic in zip(*schemes, strict=True):
            assert static < min(ten, dynamic) - 0.1
            assert abs(dynamic - ten) < 0.05


def test_the_harm_of_one_mask_is_smaller_with_more_text():
    few, more = (lecture_04.outcome(MASKING, "heldout_accuracy", name) for name in MASKING["runs"])
    lost = [statistics.mean(s["dynamic"]) - statistics.mean(s["static"]) for s in (few, more)]
    assert lost[0] > lost[1]


def test_steps_bring_far_more_than_text():
    """Four cells: four times the steps at both amounts of text, four times the text at both."""
    few, more = numbers.text_and_steps().values()
    for row in (few, more):
        assert min(row[4_000]) > max(row[1_000]) + 0.2
    for steps in few:
        assert 0 < statistics.mean(more[steps]) - statistics.mean(few[steps]) < 0.06


def test_ten_masks_run_out_with_more_steps_on_the_same_text():
    few, longer, more = numbers.over_ten_copies().values()
    assert min(longer) > max(few) > max(more)


def test_ten_masks_are_worth_nearly_as_much_as_ten_times_the_text():
    ten, one = map(statistics.mean, numbers.masks_or_text().values())
    assert 0.02 < one - ten < 0.06


def test_counting_neighbours_lies_between_one_mask_and_many():
    counted = numbers.by_counting(lecture_04.LIVE.stories)["two neighbours, counted"]
    reached = lecture_04.outcome(MASKING, "heldout_accuracy", "400 stories")
    assert max(reached["static"]) < counted < min(reached["dynamic"])


def test_with_one_mask_the_answers_are_learned_and_not_the_stories():
    """Training loss near zero; on the very same stories, asked for other words, worse than their
    word frequencies; on new stories the loss climbs, where the other schemes' falls."""
    rows = masking_material().train
    words = Counter(rows.input_ids[eligible_positions(rows, world().special)].tolist())
    shares = [count / words.total() for count in words.values()]
    by_frequency = -sum(share * math.log(share) for share in shares)  # nats a word
    name = next(iter(MASKING["runs"]))
    for scheme, runs in MASKING["runs"][name].items():
        for run in runs:
            losses, end = [point["heldout_loss"] for point in run["curve"]], run["curve"][-1]
            if scheme == "static":
                assert end["train_loss"] < 0.05 and end["retold_loss"] > by_frequency
                assert losses[-1] > min(losses) + 1
            else:
                assert end["retold_loss"] < by_frequency / 2
                assert all(later < earlier for earlier, later in pairwise(losses))
