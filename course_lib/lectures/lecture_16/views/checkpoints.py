"""The course's two checkpoints side by side: as they were trained, and as they are fine-tuned."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from course_lib.teaching import ablation_chart, curves_chart
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import stored, tokens_read

from .. import faster
from ..fine_tuning import CHECKPOINTS, TASKS

MADE = dict(zip(CHECKPOINTS, ("03_checkpoint", "16_checkpoint"), strict=True))
SHORT = dict(zip(CHECKPOINTS, ("BERT", "ModernBERT"), strict=True))
TUNED, COUNTED = "16_tasks", "no encoder"


def checkpoints_table() -> Html:
    """What each checkpoint is, what it read, and what it finds in held-out text."""
    records = [stored(file) for file in MADE.values()]
    recipes = [record["recipe"] for record in records]
    rows = (
        ("weights", *(f"{record['parameters']:,}" for record in records)),
        ("words that it read from", *(f"{record['text']['words']:,}" for record in records)),
        ("steps", *(f"{recipe['training']['steps']:,}" for recipe in recipes)),
        ("million positions", *(f"{tokens_read(record) / 1e6:.0f}" for record in records)),
        ("masked in training", *(f"{recipe['objective']['rate']:.0%}" for recipe in recipes)),
        ("held-out masked-token accuracy", *(f"{right_of(name):.1%}" for name in CHECKPOINTS)),
        ("loss on them, nats", *(f"{record['reached']['heldout_loss']:.2f}" for record in records)),
    )
    return number_table(("", *CHECKPOINTS), rows, "checkpoints", 620)


def right_of(name: str) -> float:
    """Held-out masked pieces that a checkpoint finds, 15% of the tokens replaced by [MASK]."""
    accuracy: float = stored(MADE[name])["reached"]["heldout_accuracy"]
    return accuracy


def checkpoint_curves() -> Any:
    """Held-out masked pieces over the training of both, and of a ModernBERT's shorter run."""
    curves = {}
    for name, file in MADE.items():
        seen = [line for line in stored(file)["curve"] if "heldout_accuracy" in line]
        last = seen[-1]["step"]
        curves[name] = [[(line["step"] / last, line["heldout_accuracy"]) for line in seen]]
    for name, runs in stored(faster.FILE)["runs"].items():
        curves[name] = [
            [(point["step"] / last, point["accuracy"]) for point in run["curve"]] for run in runs
        ]
    return curves_chart(
        curves, title="One text: two checkpoints, and a shorter run", x_title="part of the FLOPs",
        y_title="held-out masked pieces", percent=True,
    )  # fmt: skip


def tuned(name: str, task: str, split: str = "test") -> list[float]:
    """What a checkpoint reaches on a task after fine-tuning, a value a seed; or COUNTED."""
    if name == COUNTED:
        return [stored(TUNED)["without_encoder"][task][split]]
    return [run["tasks"][task][split] for run in stored(TUNED)["runs"][name]]


def mean_tuned(name: str, split: str = "test") -> list[float]:
    """The mean of the tasks, a value a seed."""
    return [fmean(of) for of in zip(*(tuned(name, task, split) for task in TASKS), strict=True)]


def tasks_chart() -> Any:
    """Both checkpoints on the four tasks, in text like what they read and in other text."""
    rows = {
        f"{task.split()[0]}: {short}": (task, name)
        for task in TASKS for name, short in {**SHORT, COUNTED: COUNTED}.items()
    }  # fmt: skip
    chart = ablation_chart(
        {
            label: {row: tuned(name, task, split) for row, (task, name) in rows.items()}
            for label, split in {"held-out modules": "test", "never read": "outside"}.items()
        },
        title="Fine-tuned on four tasks of lecture 03", x_title="accuracy; code words: F1",
        percent=True, families={row: name for row, (_, name) in rows.items()},
    )  # fmt: skip
    return chart.update_layout(height=640)
