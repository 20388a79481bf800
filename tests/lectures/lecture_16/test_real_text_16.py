"""The ladder's ends on documentation: one change a rung, equal FLOPs, and the file of today's
recipes."""

from __future__ import annotations

import pytest

from course_lib.lectures.lecture_16 import ladder
from course_lib.lectures.lecture_16 import real_text as room
from course_lib.teaching.results import read_result
from course_lib.train.pretrain import ENCODERS

NAME = "16_real_text"


def test_a_recipe_is_a_rung_of_the_ladder_in_another_shape() -> None:
    for recipe in room.RECIPES.values():
        full = room.recipe_of(recipe, seed=1)
        rung = ladder.RUNGS[recipe.rung]
        assert full.objective.rate == rung.rate and full.training.seed == 1
        own = {k: v for k, v in dict(rung.changes).items() if k != "intermediate_size"}
        assert own.items() <= dict(full.model.settings).items()
        intermediate_size = room.WIDE if own.get("gated") else 1_024
        assert full.model.settings["intermediate_size"] == intermediate_size
        ENCODERS["modernbert"].config_class(**full.model.settings)  # a configuration that exists


def test_it_was_made_in_the_precision_of_the_course_s_checkpoints() -> None:
    assert read_result(NAME)["precision"] == "bfloat16"


def test_flops_are_equal_and_all_left_the_plateau_but_one() -> None:
    runs = read_result(NAME)["runs"]
    whole = room.Recipe().steps * runs["BERT"][0]["flops_a_step"]
    for name, of in runs.items():
        for run in of:
            assert run["steps"] * run["flops_a_step"] == pytest.approx(whole, rel=2e-3)
            assert run["accuracy"] == run["curve"]["accuracy"][-1]
            assert (run["accuracy"] > 3 * 0.06) == (name != room.HURRIED)
