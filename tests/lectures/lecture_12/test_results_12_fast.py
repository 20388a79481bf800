"""Lecture 12's file on FastBERT is what today's recipes would make."""

from __future__ import annotations

import pytest
import torch

from course_lib.lectures.lecture_12 import fast_runs as runs
from course_lib.teaching.results import read_result

torch.set_num_threads(1)


def test_texts_leave_at_every_speed_and_all_of_them():
    recipes, stored = runs.FAST.recipes, read_result("12_fastbert")
    for name, of in stored["runs"].items():
        for run in of:
            if recipes[name].way == "depth":
                continue
            assert [row["speed"] for row in run["by_entropy"]] == list(runs.SPEEDS)
            for row in (*run["by_entropy"], *run["by_probability"]):
                tested = stored["texts"][recipes[name].task]["test"]
                assert sum(row["left"]) == tested
                layers = sum(k * n for k, n in enumerate(row["left"], start=1)) / tested
                assert row["layers"] == pytest.approx(layers)
            last = run["by_layer"][-1]
            assert run["accuracy"] == pytest.approx(last)


def test_who_differs_in_the_students_alone_has_one_teacher():
    """Frozen is frozen: the last exit of every such run says the same."""
    stored = read_result("12_fastbert")["runs"]
    for seed in runs.SEEDS:
        names = [name for name, r in runs.FASTBERTS.items() if runs.first_stage(r) == runs.MAIN]
        assert len({stored[name][seed]["accuracy"] for name in names}) == 1 and len(names) == 4


def test_the_entropies_are_of_every_text_at_every_exit():
    stored = read_result("12_fastbert")
    for name, task in (("FastBERT", runs.SECTION), ("pairs: FastBERT", runs.PAIRS)):
        run = stored["runs"][name][0]
        assert len(run["entropies"]) == len(run["settled"]) == stored["texts"][task]["test"]
        assert all(0 <= h <= 1 for row in run["entropies"] for h in row)
        assert {len(row) for row in run["entropies"]} == {len(run["by_layer"])}


def test_what_the_page_says_of_every_seed():
    """At speed 0.4 texts leave better than at random; unlabelled texts help the first exit; joint
    training makes the first exit of the pairs as good as the last."""
    stored = read_result("12_fastbert")["runs"]
    for run in stored["FastBERT"]:
        (row,) = (row for row in run["by_entropy"] if row["speed"] == 0.4)
        assert row["accuracy"] > max(row["at_random"] + 0.005, run["accuracy"])
    pairs = zip(stored["few labels, all texts"], stored["few labels"], strict=True)
    assert all(more["by_layer"][0] > few["by_layer"][0] for more, few in pairs)
    joint = stored["pairs: joint"][0]["by_layer"]
    assert joint[0] >= joint[-1] > stored["pairs: FastBERT"][0]["by_layer"][0] + 0.1


def test_the_pairs_model_tells_neutral_from_the_rest_alone():
    """It answers contradiction to all else, and no threshold of the largest probability lets such
    texts out at the second exit, as the first one's is larger."""
    stored = read_result("12_fastbert")
    run, names = stored["runs"]["pairs: FastBERT"][0], stored["texts"]["pairs"]["names"]
    right = {k: [at > 0 for at, of in zip(run["settled"], run["classes"], strict=True) if of == k]
             for k in range(3)}  # fmt: skip
    assert not any(right[names.index("entailment")])
    assert all(right[names.index("neutral")]) and all(right[names.index("contradiction")])
    unsure = [text for text in run["probabilities"] if max(map(max, text[:2])) < 0.6]
    assert unsure and all(max(text[0]) > max(text[1]) for text in unsure)
