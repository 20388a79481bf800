"""`12_mobilebert` is what today's recipes, world and code would make; and its runs do what their
recipes say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib import MicroWorld
from course_lib.encoder import count_parameters
from course_lib.lectures.lecture_12 import mobile_runs as room
from course_lib.teaching.results import read_result

torch.set_num_threads(1)
NAME = "12_mobilebert"


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load()


def small(name, **changes):
    return replace(room.STUDENTS[name], **{"steps": 12, "transfer_steps": 8, **changes})


def test_it_was_made_with_these_recipes(world):
    stored = read_result(NAME)
    assert stored["teacher"]["recipe"] == room.asdict(room.TEACHER)
    for name, runs in stored["runs"].items():
        recipe = room.STUDENTS[name]
        today = count_parameters(room.randomly_initialised(recipe, world, 0))
        assert {run["parameters"] for run in runs} == {today}
        for run in runs:
            steps = [look["step"] for look in run["curve"]]
            assert steps == list(range(room.LOOK_EVERY, recipe.steps + 1, room.LOOK_EVERY))


def test_recipes_differ_in_what_their_names_say():
    first = room.STUDENTS["progressive"]
    changed = {
        name: {key for key, value in vars(recipe).items() if value != vars(first)[key]}
        for name, recipe in room.STUDENTS.items()
    }
    assert changed == {
        "labels": {"strategy", "start"},
        "labels, LayerNorm and GELU": {"strategy", "start", "normalization", "hidden_act"},
        "labels, the teacher's embeddings": {"strategy"},
        "no transfer": {"strategy"},
        "auxiliary": {"strategy"},
        "joint": {"strategy"},
        "progressive": set(),
        "progressive, lower layers frozen": {"done"},
        "progressive, the slip": {"slip"},
        "progressive, LayerNorm and GELU": {"normalization", "hidden_act"},
        "no pre-training": {"strategy", "steps", "start"},
    }


def test_every_strategy_runs_its_steps_and_flops_hold_the_teachers():
    material = room.prepare()
    teacher = room.randomly_initialised(room.TEACHER, material.world, 0)
    flops = {}
    for name in ("labels", "no transfer", "auxiliary", "joint", "progressive"):
        recipe, reports = small(name), []
        losses = room.train(recipe, material, teacher, 0, callbacks=[reports.append])
        assert len(losses) == len(reports) == recipe.steps
        flops[name] = room.flops_of(recipe, material, teacher)
    assert flops["labels"] < flops["progressive"] < flops["joint"] < flops["auxiliary"]
    assert flops["auxiliary"] == flops["no transfer"]  # the losses hold no matrix products
    assert room.flops_of(small("no pre-training", steps=0), material, teacher) == 0


def test_the_slip_needs_layer_norms_that_have_learnt():
    """At random initialisation every state of the teacher has mean 0 and variance 1, so there is
    nothing to confuse."""
    material = room.prepare()
    teacher = room.randomly_initialised(room.TEACHER, material.world, 0)

    def apart():
        losses = [
            room.train(small("joint", slip=slip), material, teacher, 0, steps=1)[0]
            for slip in (False, True)
        ]
        return abs(losses[0] - losses[1])

    assert apart() == pytest.approx(0.0, abs=1e-3)
    with torch.no_grad():
        for depth, block in enumerate(teacher.encoder.stack.blocks):
            block.output_norm.bias.fill_(0.1 * depth)
    assert apart() > 1
