"""The result files and shipped weights of lectures 06 and 07 are what today's recipes, world and
code would make."""

from __future__ import annotations

import statistics
from dataclasses import asdict

import pytest
import torch

from course_lib.encoder import count_parameters
from course_lib.files import data_path, sha256_of
from course_lib.lectures.lecture_06 import experiments as lecture_06
from course_lib.lectures.lecture_07 import experiments as lecture_07
from course_lib.teaching.results import REPLAYED, read_result
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import class_accuracy

NAMES = (*lecture_06.RESULTS, *lecture_07.RESULTS)


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def stories(world):
    return lecture_06.prepare(world)


@pytest.fixture(scope="module")
def material(world):
    return lecture_07.prepare(world)


@pytest.fixture(scope="module")
def teacher():
    return lecture_06.micro_teacher()


def as_saved(recipes):
    return {name: asdict(recipe) for name, recipe in recipes.items()}


def seeds_of(runs):
    return [run["seed"] for run in runs]


@pytest.mark.parametrize("name", NAMES)
def test_results_were_made_in_this_world_in_float32_and_say_with_what(name, world):
    found = read_result(name)
    assert found["world"] == {"version": world.version, "hash": world.hash}
    assert found["precision"] == "float32" and found["threads"] >= 1
    assert {"torch", "python"} <= set(found["versions"]) and found["date"]
    assert list(found["runs"]) == list(found["recipes"])


def test_the_students_were_taught_with_these_recipes_by_this_teacher(teacher, world):
    found = read_result("06_distilbert")
    starts = {f"begin: {name}": recipe for name, recipe in lecture_06.STARTS.items()}
    recipes = lecture_06.STUDENTS | starts
    assert found["recipes"] == as_saved(recipes)
    assert found["teacher"] == lecture_06.teacher_hash()
    for name, runs in found["runs"].items():
        assert seeds_of(runs) == list(lecture_06.SEEDS)
        today = lecture_06.randomly_initialised_student(recipes[name], teacher, world, 0)
        assert {run["parameters"] for run in runs} == {count_parameters(today)}


def test_the_narrow_students_were_taught_with_these_recipes_by_this_teacher():
    found = read_result("06_tinybert")
    assert found["recipes"] == as_saved(lecture_06.TINIES)
    assert found["teacher"] == lecture_06.teacher_hash()
    assert all(seeds_of(runs) == list(lecture_06.SEEDS) for runs in found["runs"].values())


def test_the_ablation_steps_and_variants_were_trained_with_these_recipes(material):
    found = read_result("07_stepping_stones")
    recipes = {f"equal steps: {s}": r for s, r in lecture_07.EQUAL_STEPS.items()}
    ends = {s: lecture_07.EQUAL_STEPS[s] for s in lecture_07.ENDS}
    costs = {s: lecture_07.flops_a_step(recipe, material) for s, recipe in ends.items()}
    equal = lecture_07.equal_flops(costs)
    recipes |= {f"equal arithmetic: {s}": r for s, r in equal.items()}
    assert found["recipes"] == as_saved(recipes)
    assert all(seeds_of(runs) == list(lecture_07.SEEDS) for runs in found["runs"].values())
    variants = read_result("07_variants")
    assert variants["recipes"] == as_saved(lecture_07.VARIANTS)
    assert all(seeds_of(r) == list(lecture_07.SEEDS) for r in variants["runs"].values())


def test_the_shipped_weights_are_those_the_results_name(teacher):
    found = read_result("06_teacher")
    assert found["recipes"] == {"teacher": asdict(lecture_06.TeacherRecipe())}
    assert found["weights"]["sha256"] == sha256_of(data_path(*lecture_06.CHECKPOINT))
    assert found["runs"]["teacher"][0]["parameters"] == count_parameters(teacher)
    electra = read_result("07_electra")
    assert electra["recipes"] == {"ELECTRA": asdict(lecture_07.LONG)}
    for file, digest in electra["weights"].items():
        assert sha256_of(data_path(*lecture_07.CHECKPOINTS, file)) == digest


def test_the_shipped_teacher_finds_the_words_its_result_says(teacher, stories):
    said = read_result("06_teacher")["runs"]["teacher"][0]["masked_accuracy"]
    assert lecture_06.masked_accuracy(teacher, stories) == pytest.approx(said, abs=0.002)


def test_the_shipped_electra_discriminates_as_its_result_says(material):
    said = read_result("07_electra")["runs"]["ELECTRA"][0]
    again = lecture_07.measure(lecture_07.micro_electra(), material)
    for name in ("auc", "words_by_generator", "kinds", "jobs"):
        assert again[name] == pytest.approx(said[name], abs=0.02), name


@pytest.mark.usefixtures("recorded_draws")
def test_the_first_losses_of_lecture_06_are_the_recorded_ones(stories, teacher):
    _, first = lecture_06.train_teacher(lecture_06.TeacherRecipe(), stories, steps=REPLAYED)
    _, student = lecture_06.train_student(lecture_06.FULL, stories, teacher, steps=REPLAYED)
    _, tiny = lecture_06.general_stage(lecture_06.TINY, stories, teacher, steps=REPLAYED)
    for name, again in (("teacher", first), ("distilbert", student), ("tinybert", tiny)):
        recorded = read_result(f"06_{name}")["replay"]
        assert len(recorded) == REPLAYED
        assert again.losses["total"] == pytest.approx(recorded, rel=2e-4), name


@pytest.mark.usefixtures("recorded_draws")
def test_the_first_losses_of_lecture_07_are_the_recorded_ones(material):
    """The generator's draws repeat where its scores agree to rounding: the loss, times 50, may move
    by a word drawn otherwise."""
    again = lecture_07.replay(material)
    for name in ("07_stepping_stones", "07_variants"):
        recorded = read_result(name)["replay"]
        assert len(again) == len(recorded) == REPLAYED
        assert again == pytest.approx(recorded, rel=5e-3)


def test_the_costs_of_a_step_are_those_of_today(material):
    found = read_result("07_stepping_stones")["flops_a_step"]
    for name, recipe in lecture_07.EQUAL_STEPS.items():
        assert lecture_07.flops_a_step(recipe, material) == pytest.approx(found[name], rel=0.01)
    costs = [r["steps"] * found[r["stone"]] for n, r in recorded_recipes().items() if "arith" in n]
    assert len(costs) == 2 and max(costs) / min(costs) < 1.002


def recorded_recipes():
    return read_result("07_stepping_stones")["recipes"]


def test_spread_is_over_different_runs():
    for name, measure in (
        ("06_distilbert", "masked_accuracy"),
        ("06_tinybert", "job_accuracy"),
        ("07_stepping_stones", "kinds"),
        ("07_variants", "kinds"),
    ):
        lecture = lecture_06 if name.startswith("06") else lecture_07
        for values in lecture.outcome(read_result(name), measure).values():
            assert len(set(values)) > 1 and statistics.stdev(values) < 0.2


def test_a_short_second_stage_trains_the_student_only(stories, teacher):
    """Both stages in a few steps: the given encoder is left as it was, and answers have 36
    classes."""
    recipe = lecture_06.TinyRecipe(general=1, inner=2, prediction=2)
    pair, _ = lecture_06.general_stage(recipe, stories, teacher)
    tuned = lecture_06.classifier_on(teacher.encoder, len(stories.task.names))
    lesson = lecture_06.Lesson(tuned, stories.task, stories.task[:64])
    before = [p.clone() for p in pair.student.parameters()]
    student, histories = lecture_06.task_stage(recipe, pair.student, pair.matrix, lesson)
    assert set(histories) == {"inner", "prediction"}
    assert all(torch.equal(a, b) for a, b in zip(before, pair.student.parameters(), strict=True))
    assert 0 <= class_accuracy(student, stories.task_heldout[:50]) <= 1
    assert student.classifier.out_features == 36
