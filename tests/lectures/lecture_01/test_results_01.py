"""Lecture 01's result files and shipped weights are what today's recipes, world and code would
make. What reads the installed packages is checked in its form only: other versions, other words."""

from __future__ import annotations

import json
from statistics import mean

import pytest

from course_lib.encoder import count_parameters
from course_lib.files import data_path, sha256_of
from course_lib.lectures.lecture_01 import experiments as lecture_01
from course_lib.lectures.lecture_01.senses import STATIC, world_sentences
from course_lib.lectures.lecture_01.three_kinds import (
    KINDS,
    LEFT,
    TASKS,
    Trained,
    build,
    heldout_examples,
    sentence_pairs,
    two_languages,
)
from course_lib.teaching.results import REPLAYED, read_result
from course_lib.teaching.shipped import ELMO, micro_elmo, teacher_hash
from course_lib.text.world import MicroWorld
from course_lib.train.loop import History
from course_lib.train.pretrain import measure, set_up
from course_lib.train.pretrain_recipe import read_recipe

WORLD = MicroWorld.load()
BOTH = two_languages()


def recipe_of(text):
    return read_recipe(data_path("recipes", lecture_01.RECIPES[text]))


def check_world(results):
    assert results["world"] == {"version": WORLD.version, "hash": WORLD.hash}
    assert results["precision"] == "float32" and results["threads"] >= 1 and results["date"]


# ---------------------------------------------------------------- ELMo


@pytest.mark.parametrize("text", lecture_01.RECIPES)
def test_the_elmos_were_trained_by_these_recipes(text):
    results = read_result("01_elmo")
    check_world(results)
    made, recipe = results["runs"][text], recipe_of(text)
    assert made["recipe"] == json.loads(json.dumps(recipe.as_dict()))
    every, steps = recipe.reports.evaluate_every, recipe.training.steps
    looked = [line["step"] for line in made["curve"] if "heldout_accuracy" in line]
    assert looked == list(range(every, steps + 1, every))
    last = made["curve"][-1]
    assert made["reached"]["heldout_accuracy"] == pytest.approx(last["heldout_accuracy"], abs=1e-4)


def test_the_shipped_elmo_is_the_one_that_was_measured():
    made = read_result("01_elmo")["runs"]["world"]
    model, words = micro_elmo()
    assert made["sha256"] == sha256_of(data_path(*ELMO))
    assert made["parameters"] == count_parameters(model) == 453_736
    assert data_path(*ELMO).stat().st_size < 2_000_000
    ready = set_up(recipe_of("world"))
    assert words.vocab[: words.predicted] == ready.reading.tokenizer.vocab[: words.predicted]
    reached = measure(ready, model)
    assert reached == pytest.approx(made["reached"], abs=2e-3)


@pytest.mark.usefixtures("recorded_draws")
def test_the_elmo_begins_as_recorded():
    results = read_result("01_elmo")
    again = lecture_01.replay_elmo()
    assert len(again) == REPLAYED and again == pytest.approx(results["replay"], rel=5e-3)
    tenth = read_result("01_elmo")["runs"]["world"]["replayed"]
    assert again[-1] == pytest.approx(tenth, rel=5e-3)  # the replay follows the run itself


# ---------------------------------------------------------------- static vectors


def test_static_vectors_were_made_of_this_world():
    results = read_result("01_static")
    check_world(results)
    stories = sum(map(len, world_sentences(WORLD)))
    assert results["runs"]["world"]["words_read"] == stories
    for text, words in lecture_01.SHOWN.items():
        for table in results["runs"][text]["tables"].values():
            assert set(table["neighbours"]) <= set(words) and len(table["neighbours"]) > 5
            for near in table["neighbours"].values():
                assert len(set(near)) == lecture_01.NEIGHBOURS
    assert set(results["runs"]["world"]["tables"]) == set(STATIC)


def test_the_table_of_the_world_has_the_recorded_neighbours():
    stored = read_result("01_static")["runs"]["world"]["tables"]["PPMI and SVD"]
    table = STATIC["PPMI and SVD"](world_sentences(WORLD))
    assert lecture_01.same_topic(table) == pytest.approx(stored["same_topic"], abs=0.02)
    for word, near in stored["neighbours"].items():
        again = [n for n, _ in table.neighbours(word, lecture_01.NEIGHBOURS)]
        assert len(set(again) & set(near)) >= lecture_01.NEIGHBOURS - 1


# ---------------------------------------------------------------- senses


def test_every_representation_was_tried_in_every_text():
    results = read_result("01_senses")
    check_world(results)
    assert results["seeds"] == len(lecture_01.SEEDS) and list(results["runs"]) == list(
        lecture_01.TEXTS
    )
    assert results["senses"]["documentation"] == json.loads(json.dumps(lecture_01.asdict_senses()))
    for text, of in results["runs"].items():
        assert list(of["vectors"]) == list(lecture_01.representations(text))
        for layers in of["vectors"].values():
            for layer in layers:
                assert set(layer["words"]) == set(of["mentions"])
                values = [v for w in layer["words"].values() for v in w["probe"] + w["neighbour"]]
                assert len(values) == 6 * len(of["mentions"])
                assert all(0 <= value <= 1 for value in values)
    assert list(results["tags"]) == list(lecture_01.TAGGED)


def test_one_vector_a_word_is_chance_in_every_seed():
    for of in read_result("01_senses")["runs"].values():
        for name, only in (("skip-gram", "word"), ("PPMI and SVD", "word"), ("ELMo", "0")):
            (layer,) = [one for one in of["vectors"][name] if one["layer"] == only]
            for word in layer["words"].values():
                assert word == {"probe": [0.5] * 3, "neighbour": [0.5] * 3}
            assert layer["cosine"]["same"] == pytest.approx(layer["cosine"]["other"], abs=1e-5)


def test_the_senses_of_the_world_are_read_from_the_shipped_weights():
    """Of fewer stories than the comparison: its replay."""
    results = read_result("01_senses")
    assert results["weights"]["world, ELMo"] == sha256_of(data_path(*ELMO))
    assert results["weights"]["world, BERT"] == teacher_hash()
    assert (
        results["weights"]["documentation, ELMo"]
        == (read_result("01_elmo")["runs"]["documentation"]["sha256"])
    )
    for one, two in zip(results["replay"], lecture_01.replay_senses(), strict=True):
        assert list(one["words"]) == list(two["words"])
        assert one["cosine"] == pytest.approx(two["cosine"], abs=1e-3, nan_ok=True)
        for how in ("probe", "neighbour"):
            assert mean_of(one, how) == pytest.approx(mean_of(two, how), abs=0.01)


def mean_of(layer, measure):
    return mean(mean(of[measure]) for of in layer["words"].values())


# ---------------------------------------------------------------- three kinds


def test_the_three_kinds_were_trained_with_these_recipes():
    recipes = lecture_01.kind_recipes()
    results = read_result("01_three_kinds")
    assert len(recipes) == len(KINDS) * len(TASKS) + 3 and results["left_only"] == LEFT
    assert (results["pairs"], results["words"]) == (len(sentence_pairs(BOTH)), len(BOTH.words))
    for name, runs in results["runs"].items():
        sizes = {run["parameters"] for run in runs}
        built = build(recipes[name], BOTH.vocab_size)
        assert sizes == {count_parameters(built)}
        for run in runs:
            assert len(run["curve"]) == recipes[name].steps / lecture_01.CURVE
            assert run["whole"] <= run["words"]


def test_a_kind_that_was_not_trained_is_far_below_what_is_stored():
    for name in ("encoder: translate", "decoder, left only: fill gaps"):
        recipe = lecture_01.kind_recipes()[name]
        some = heldout_examples(BOTH, recipe.task)
        model = build(recipe, BOTH.vocab_size).eval()
        blank = Trained(recipe, BOTH, model, History()).measure(some)
        stored = [run["words"] for run in read_result("01_three_kinds")["runs"][name]]
        assert blank["words"] < 0.1 < min(stored)
