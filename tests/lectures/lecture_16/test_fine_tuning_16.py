"""The two checkpoints side by side: what they are, and the file of their fine-tuning."""

from __future__ import annotations

import pytest

from course_lib.checkpoints import load_pretrained
from course_lib.lectures.lecture_16 import fine_tuning as room
from course_lib.lectures.lecture_16.views import checkpoints as views
from course_lib.teaching.documentation_tasks import CLASSES
from course_lib.teaching.results import read_result
from course_lib.train.finetuning import finetune

NAME = "16_tasks"


def test_it_was_made_with_these_recipes() -> None:
    stored = read_result(NAME)
    for name, runs in stored["runs"].items():
        assert stored["weights"][name] == load_pretrained(name).sha256
        tried = stored["rates"][name]
        assert {*tried} == {str(rate) for rate in room.RATES}
        for run, seed in zip(runs, room.SEEDS, strict=True):
            assert run["seed"] == seed and str(run["rate"]) == max(tried, key=tried.get)
            assert run["mean"] == pytest.approx(sum(t["test"] for t in run["tasks"].values()) / 4)


def test_views_say_what_the_file_says() -> None:
    runs = read_result(NAME)["runs"]["course-modernbert"]
    assert views.mean_tuned("course-modernbert") == pytest.approx([run["mean"] for run in runs])
    outside = [run["tasks"]["sections"]["outside"] for run in runs]
    assert views.tuned("course-modernbert", "sections", "outside") == outside


@pytest.mark.parametrize("name", room.CHECKPOINTS)
def test_a_checkpoint_can_be_fine_tuned(name: str) -> None:
    task = room.read("kinds of parameters", "validation")
    model = finetune(load_pretrained(name).encoder, task, steps=1, precision="float32")
    assert model.names == CLASSES["kinds of parameters"]
