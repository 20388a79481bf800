"""GLUE's metrics: what each of its nine tasks, or its twin, is scored by.

How an average is made of nine tasks is in course_lib/teaching/averages.py; what the oracle and the
baselines reach on the twins, in course_lib/teaching/glue.py."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import Any

from course_lib.text.glue import task_named
from course_lib.text.tasks import LabelledSequences, ScoredSequences

from .finetuning import predicted_classes, predicted_values
from .task_metrics import accuracy, f1, matthews, pearson, spearman

METRICS = {
    "accuracy": accuracy, "F1": f1, "Matthews": matthews, "Pearson": pearson, "Spearman": spearman,
}  # fmt: skip


def glue_score(name: str, predictions: Iterable[Any], labels: Iterable[Any]) -> dict[str, float]:
    """{metric: score} of a task's metrics in GLUE, fractions: "Matthews" of CoLA, "F1" and
    "accuracy" of MRPC and QQP, whose positive class is the second of the task's names.

    Predictions and labels: N class names each, or N numbers. ValueError for a task or a class that
    GLUE does not have, such as −1, its label of the hidden test answers, and as the metrics of
    task_metrics.py raise it."""
    task = task_named(name)
    true, predicted = (
        [task.number(x) if isinstance(x, str) else float(x) for x in side]
        for side in (labels, predictions)
    )
    if task.names and (unknown := {*true, *predicted} - {*range(len(task.names))}):
        raise ValueError(
            f"the label {min(unknown):g} was given; {name} has 0 to {len(task.names) - 1}, "
            f"{', '.join(task.names)}. The answers of its test split are not public."
        )
    return {metric: METRICS[metric](true, predicted) for metric in task.metrics}


def model_score(
    name: str, model: Any, task: LabelledSequences | ScoredSequences
) -> dict[str, float]:
    """`glue_score` of a fine-tuned model on the sequences of a task."""
    if isinstance(task, ScoredSequences):
        return glue_score(name, predicted_values(model, task), task.values.tolist())
    return glue_score(name, predicted_classes(model, task), [task.names[n] for n in task.labels])


def task_mean(scores: dict[str, float]) -> float:
    """One number of a task's metrics: their mean, as on GLUE's leaderboard."""
    return fmean(scores.values())
