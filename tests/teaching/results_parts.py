"""What tests of results files share: how recipes and seeds are recorded, and what all files say."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict

from course_lib.teaching.results import outcome, read_result


def as_saved(recipes):
    """As a file has them: tuples are lists there."""
    return json.loads(json.dumps({name: asdict(recipe) for name, recipe in recipes.items()}))


def check_made_with(name, recipes, world, seeds=(0,)):
    """Today's recipes, world and seeds made the file, in float32, and it says with what."""
    found = read_result(name)
    assert found["recipes"] == as_saved(recipes) and list(found["runs"]) == list(recipes)
    assert found["world"] == {"version": world.version, "hash": world.hash}
    assert found["precision"] == "float32" and found["threads"] >= 1
    assert {"torch", "python"} <= set(found["versions"]) and found["date"]
    for runs in found["runs"].values():
        assert [run["seed"] for run in runs] == list(seeds)
    return found


def check_spread(name, measure):
    """The seeds are different runs, and not far from one another."""
    for values in outcome(read_result(name), measure).values():
        assert len(set(values)) > 1 and statistics.stdev(values) < 0.2
