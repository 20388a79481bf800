"""Lecture 06's result files and shipped teacher are what today's recipes, world and code would
make."""

from __future__ import annotations

from dataclasses import asdict
from statistics import mean

import pytest
import torch

from course_lib.encoder import count_parameters
from course_lib.lectures.lecture_06 import experiments as lecture_06
from course_lib.teaching.results import read_result
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


def test_the_students_are_as_large_as_those_of_today(teacher, world):
    for name, runs in read_result("06_distilbert")["runs"].items():
        recipe = lecture_06.DISTILBERT.recipes[name]
        today = lecture_06.randomly_initialised_student(recipe, teacher, world, 0)
        assert {run["parameters"] for run in runs} == {count_parameters(today)}


def test_the_longer_runs_curves_end_with_what_was_reached():
    for runs in read_result("06_past_plateau")["runs"].values():
        for run in runs:
            assert run["curve"][-1]["masked_accuracy"] == run["masked_accuracy"]


def test_one_recipe_of_two_files_is_one_run():
    results, parts = read_result("06_tinybert_attention"), read_result("06_tinybert")["runs"]
    for weight, part in (("1", "all"), ("0", "without attention")):
        cell = results["runs"][f"attention × {weight}, 300 general steps"]
        assert cell == parts[part][: len(cell)]


def test_the_probes_trained_students_are_those_of_the_other_file():
    probed, found = (read_result(f"06_{name}")["runs"] for name in ("probe", "distilbert"))
    for name in ("alone", "fresh weights"):
        for again, run in zip(probed[f"step 400: {name}"], found[name], strict=True):
            assert again["masked_accuracy"] == pytest.approx(run["masked_accuracy"], abs=0.002)
            assert again["job_accuracy 200"] == pytest.approx(run["job_accuracy"], abs=0.02)


def test_the_probes_zero_line_is_no_lower_than_a_student_alone():
    """What page 06 says of 200 fine-tuning steps; layers of the teacher are worth all of it at
    once, and a part of the masked tokens."""
    probed = read_result("06_probe")["runs"]
    values = {name: [run["job_accuracy 200"] for run in runs] for name, runs in probed.items()}
    assert min(values["step 0: fresh"]) > max(values["step 400: alone"])
    copied = [name for name in lecture_06.STARTS if name != "fresh"]
    for name in copied:
        assert min(values[f"step 0: {name}"]) > max(values["step 0: fresh"])
        assert all(0.2 < run["masked_accuracy"] < 0.5 for run in probed[f"step 0: {name}"])


def test_a_copy_without_layers_leaves_the_blocks_as_they_were_drawn(teacher, world):
    control = lecture_06.PROBED[f"step 0: {lecture_06.NO_LAYERS}"]
    drawn, bare, copied = (
        lecture_06.randomly_initialised_student(recipe, teacher, world, 0)
        for recipe in (lecture_06.STARTS["fresh"], control, lecture_06.FULL)
    )
    for part, model in (("encoder.stack", drawn), ("encoder.embeddings", copied), ("mlm", copied)):
        ours, theirs = (m.get_submodule(part).state_dict() for m in (bare, model))
        assert all(torch.equal(ours[name], tensor) for name, tensor in theirs.items())


def test_embeddings_and_head_alone_are_a_part_of_what_copied_layers_bring():
    probed = read_result("06_probe")["runs"]
    nothing, some, layers = (
        mean(run["job_accuracy 200"] for run in probed[f"step 0: {name}"])
        for name in ("fresh", lecture_06.NO_LAYERS, "spread")
    )
    assert nothing < some < layers


def test_the_deeper_teacher_was_trained_by_its_recipe():
    teacher = read_result("06_tinybert_deeper")["teacher"]
    assert teacher.items() >= asdict(lecture_06.DEEP_TEACHER).items()
    assert teacher["curve"][-1]["step"] == lecture_06.DEEP_TEACHER.steps


def test_the_shipped_teacher_is_the_one_that_its_result_names(teacher, stories):
    (run,) = read_result("06_teacher")["runs"]["teacher"]
    assert run["parameters"] == count_parameters(teacher)
    again = lecture_06.masked_accuracy(teacher, stories)
    assert again == pytest.approx(run["masked_accuracy"], abs=0.002)


def test_a_short_second_stage_trains_the_student_only(stories, teacher):
    """Both stages in a few steps: the given encoder is left as it was, and answers have 36
    classes."""
    recipe = lecture_06.TinyRecipe(general=1, inner=2, prediction=2)
    pair, _ = lecture_06.general_stage(recipe, stories, teacher)
    tuned = lecture_06.classifier_on(teacher.encoder, len(stories.facts.names))
    lesson = lecture_06.Lesson(tuned, stories.facts, stories.facts[:64])
    before = [p.clone() for p in pair.student.parameters()]
    student, histories = lecture_06.task_stage(recipe, pair.student, pair.matrix, lesson)
    assert set(histories) == {"inner", "prediction"}
    assert all(torch.equal(a, b) for a, b in zip(before, pair.student.parameters(), strict=True))
    assert 0 <= class_accuracy(student, stories.facts_heldout[:50]) <= 1
    assert student.classifier.out_features == 36
