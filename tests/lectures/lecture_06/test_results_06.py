"""Lecture 06's result files and shipped teacher are what today's recipes, world and code would
make."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch
from results_parts import check_made_with, check_spread

from course_lib.encoder import count_parameters
from course_lib.files import data_path, sha256_of
from course_lib.lectures.lecture_06 import experiments as lecture_06
from course_lib.teaching.results import REPLAYED, read_result
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import class_accuracy


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def stories(world):
    return lecture_06.prepare(world)


@pytest.fixture(scope="module")
def teacher():
    return lecture_06.micro_teacher()


def test_the_students_were_taught_with_these_recipes_by_this_teacher(teacher, world):
    starts = {f"begin: {name}": recipe for name, recipe in lecture_06.STARTS.items()}
    recipes = lecture_06.STUDENTS | starts
    found = check_made_with("06_distilbert", recipes, world, lecture_06.SEEDS)
    assert found["teacher"] == lecture_06.teacher_hash()
    for name, runs in found["runs"].items():
        today = lecture_06.randomly_initialised_student(recipes[name], teacher, world, 0)
        assert {run["parameters"] for run in runs} == {count_parameters(today)}
    check_spread("06_distilbert", "masked_accuracy")


def test_the_longer_runs_were_made_with_these_recipes_by_this_teacher(world):
    found = check_made_with(
        "06_past_plateau", lecture_06.PAST_PLATEAU, world, lecture_06.PAST_SEEDS
    )
    assert found["teacher"] == lecture_06.teacher_hash()
    for name, runs in found["runs"].items():
        last = lecture_06.PAST_PLATEAU[name].steps
        for run in runs:
            assert run["curve"][-1] == {"step": last, "masked_accuracy": run["masked_accuracy"]}


def test_the_narrow_students_were_taught_with_these_recipes_by_this_teacher(world):
    found = check_made_with("06_tinybert", lecture_06.TINIES, world, lecture_06.SEEDS)
    assert found["teacher"] == lecture_06.teacher_hash()
    check_spread("06_tinybert", "job_accuracy")


def test_the_attention_loss_was_weighed_with_these_recipes_by_this_teacher(world):
    recipes = lecture_06.TINIES_BY_ATTENTION
    found = check_made_with("06_tinybert_attention", recipes, world, lecture_06.ATTENTION_SEEDS)
    assert found["teacher"] == lecture_06.teacher_hash()
    parts = read_result("06_tinybert")["runs"]
    for weight, part in (("1", "all"), ("0", "without attention")):  # one recipe, one run
        cell = found["runs"][f"attention × {weight}, 300 general steps"]
        assert cell == parts[part][: len(cell)]


def test_the_deeper_students_were_taught_with_these_recipes(world, stories):
    recipes = lecture_06.DEEP_TINIES
    found = check_made_with("06_tinybert_deeper", recipes, world, lecture_06.DEEP_SEEDS)
    teacher = found["teacher"]
    assert {k: teacher[k] for k in asdict(lecture_06.DEEP_TEACHER)} == asdict(
        lecture_06.DEEP_TEACHER
    )
    assert teacher["curve"][-1]["step"] == lecture_06.DEEP_TEACHER.steps
    assert found["labels"] == lecture_06.DEEP_LABELLED


def test_the_shipped_teacher_is_the_one_that_its_result_names(teacher, world, stories):
    found = check_made_with("06_teacher", {"teacher": lecture_06.TeacherRecipe()}, world)
    assert found["weights"]["sha256"] == sha256_of(data_path(*lecture_06.TEACHER))
    (run,) = found["runs"]["teacher"]
    assert run["parameters"] == count_parameters(teacher)
    again = lecture_06.masked_accuracy(teacher, stories)
    assert again == pytest.approx(run["masked_accuracy"], abs=0.002)


@pytest.mark.usefixtures("recorded_draws")
def test_the_first_losses_are_the_recorded_ones(stories, teacher):
    _, first = lecture_06.train_teacher(lecture_06.TeacherRecipe(), stories, steps=REPLAYED)
    _, student = lecture_06.train_student(lecture_06.FULL, stories, teacher, steps=REPLAYED)
    _, tiny = lecture_06.general_stage(lecture_06.TINY, stories, teacher, steps=REPLAYED)
    lighter = next(iter(lecture_06.TINIES_BY_ATTENTION.values()))
    _, light = lecture_06.general_stage(lighter, stories, teacher, steps=REPLAYED)
    replayed = {"teacher": first, "distilbert": student, "tinybert": tiny}
    _, deep = lecture_06.train_teacher(lecture_06.DEEP_TEACHER, stories, steps=REPLAYED)
    replayed["tinybert_deeper"] = deep  # of its teacher, which is not shipped
    replayed["past_plateau"] = student  # ten steps of the same recipe
    for name, again in (replayed | {"tinybert_attention": light}).items():
        recorded = read_result(f"06_{name}")["replay"]
        assert len(recorded) == REPLAYED
        assert again.losses["total"] == pytest.approx(recorded, rel=2e-4), name


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
