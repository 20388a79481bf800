"""Lecture 16's shorter run is the recipe that the README names."""

from __future__ import annotations

from pathlib import Path

from course_lib.lectures.lecture_16.faster import MUON, RECIPES, recipe_of
from course_lib.train.pretrain_recipe import read_recipe


def test_the_shorter_run_is_fast_toml(root: Path) -> None:
    assert recipe_of(RECIPES[MUON], 0) == read_recipe(root / "data" / "recipes" / "fast.toml")
