"""Lecture 12's pictures: exits by both rules, a budget's choice, three blocks."""

from __future__ import annotations

from math import log

import pytest

from course_lib.lectures.lecture_12.views import blocks_drawing, budget_view, exits_view
from course_lib.lectures.lecture_12.views.blocks import stages
from course_lib.lectures.lecture_12.views.budget import Offer, budget_picture, chosen
from course_lib.lectures.lecture_12.views.exits import SAME, left_at, uncertainty

EASY = [(0.5, 0.3, 0.2), (0.98, 0.01, 0.01), (1.0, 0.0, 0.0)]
HARD = [(0.4, 0.3, 0.3)] * 3
OFFERS = [Offer("large", 0.8, 4.0, 40.0), Offer("int8", 0.79, 1.5, 15.0), Offer("tiny", 0.7, 1, 5)]


def test_uncertainty_is_a_fraction_of_the_largest_entropy():
    assert uncertainty((0.25,) * 4) == pytest.approx(1)
    assert uncertainty((1.0, 0.0)) == 0
    two = -(0.6 * log(0.6) + 0.4 * log(0.4)) / log(3)
    assert uncertainty((0.6, 0.4, 0.0)) == pytest.approx(two) == pytest.approx(0.6126, abs=1e-4)


def test_equally_likely_best_answers_and_another_uncertainty():
    """(0.6, 0.4, 0) and (0.6, 0.2, 0.2): the probability rule cannot tell them apart."""
    first, second = (uncertainty(exits[0]) for exits in SAME.values())
    assert round(first, 2) == 0.61 and round(second, 2) == 0.86


@pytest.mark.parametrize("speed, easy, hard", [(0.0, 3, 3), (0.2, 2, 3), (0.95, 1, 3), (1, 1, 1)])
def test_a_text_leaves_at_the_first_exit_that_is_sure_enough(speed, easy, hard):
    assert (left_at(EASY, speed), left_at(HARD, speed)) == (easy, hard)


def test_the_probability_rule():
    assert left_at(EASY, 0.03, "probability") == 2 and left_at(EASY, 0.5, "probability") == 1


def test_controls_move_the_picture():
    live = exits_view({"easy": EASY, "hard": HARD}, speed=0.2)
    assert "2.5 of 3 layers" in live.static.text
    picture = live.widget.children[-1]
    live.controls["speed"].value = 1.0
    assert "1.0 of 3 layers" in picture.value
    live.controls["rule"].value = "probability"
    assert "1.0 of 3 layers" in picture.value


def test_a_budget_takes_the_most_accurate_that_fits():
    assert chosen(OFFERS, 5, 50).name == "large"
    assert chosen(OFFERS, 2, 50).name == "int8"
    assert chosen(OFFERS, 2, 10).name == "tiny"
    assert chosen(OFFERS, 0.5, 50) is None
    assert chosen([*OFFERS, Offer("quick", 0.79, 1.0, 15.0)], 2, 50).name == "quick"
    assert "take int8" in budget_picture(OFFERS, 2, 50).text
    assert "large (80.0%) needs 4.0 ms and 40.0 MB" in budget_picture(OFFERS, 2, 50).text
    assert budget_picture(OFFERS, 5, 50).text.endswith("take large, 80.0%.")
    assert "Nothing fits" in budget_picture(OFFERS, 0.1, 1).text


def test_the_budget_can_be_moved():
    live = budget_view(OFFERS)
    picture = live.widget.children[-1]
    live.controls["milliseconds"].value = live.controls["milliseconds"].max
    live.controls["megabytes"].value = live.controls["megabytes"].max
    assert "take large" in picture.value


def test_blocks_have_the_published_widths():
    assert [s.width for s in stages("MobileBERT")] == [512, 128, 128, 128, 128, 128, 128, 512]
    assert [s.width for s in stages("IB-BERT, the teacher")] == [512, 1_024, 1_024, 1_024, 512]
    assert "128 inside" in blocks_drawing().text
