"""Lecture 12's file on FastBERT is what today's recipes would make."""

from __future__ import annotations

import pytest
import torch
from results_parts import as_saved

from course_lib import MicroWorld
from course_lib.lectures.lecture_12 import fast_runs as runs
from course_lib.teaching.results import read_result

torch.set_num_threads(1)


def test_the_file_was_made_with_these_recipes():
    recipes, world = runs.FASTBERTS | runs.DEEP_FASTBERTS, MicroWorld.load()
    found = read_result("12_fastbert")
    assert found["recipes"] == as_saved(recipes) and list(found["runs"]) == list(recipes)
    assert found["world"] == {"version": world.version, "hash": world.hash}
    assert found["precision"] == runs.PRECISION and found["threads"] >= 1
    for names, seeds in ((runs.FASTBERTS, runs.SEEDS), (runs.DEEP_FASTBERTS, runs.DEEP_SEEDS)):
        assert all([run["seed"] for run in found["runs"][n]] == list(seeds) for n in names)
    for name, of in found["runs"].items():
        for run in of:
            if recipes[name].way == "depth":
                continue
            assert [row["speed"] for row in run["by_entropy"]] == list(runs.SPEEDS)
            for row in (*run["by_entropy"], *run["by_probability"]):
                tested = found["texts"][recipes[name].task]["test"]
                assert sum(row["left"]) == tested
                layers = sum(k * n for k, n in enumerate(row["left"], start=1)) / tested
                assert row["layers"] == pytest.approx(layers)
            last = run["by_layer"][-1]
            assert run["accuracy"] == pytest.approx(last)


def test_who_differs_in_the_students_alone_has_one_teacher():
    """Frozen is frozen: the last exit of every such run says the same."""
    found = read_result("12_fastbert")["runs"]
    for seed in runs.SEEDS:
        names = [name for name, r in runs.FASTBERTS.items() if runs.first_stage(r) == runs.MAIN]
        assert len({found[name][seed]["accuracy"] for name in names}) == 1 and len(names) == 4


def test_the_entropies_are_of_every_text_at_every_exit():
    found = read_result("12_fastbert")
    for name, task in (("FastBERT", runs.SECTION), ("pairs: FastBERT", runs.PAIRS)):
        run = found["runs"][name][0]
        assert len(run["entropies"]) == len(run["settled"]) == found["texts"][task]["test"]
        assert all(0 <= h <= 1 for row in run["entropies"] for h in row)
        assert {len(row) for row in run["entropies"]} == {len(run["by_layer"])}


@pytest.mark.usefixtures("recorded_draws")
def test_the_deep_encoder_begins_as_recorded():
    assert runs.replay() == pytest.approx(read_result("12_fastbert")["replay"], rel=5e-3)
