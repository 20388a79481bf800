"""GLUE's metrics, and what a model must beat on its twins: classes counted, lengths, bags of words.

`python -m course_lib.train.glue` prints the table: of every twin the oracle, the baselines and the
sizes. How an average is made of nine tasks is in course_lib/teaching/averages.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from course_lib.text.english import LabelledText, Pair
from course_lib.text.glue import GLUE, Item, glue_items, task_named
from course_lib.text.glue_twins import answer
from course_lib.text.oracle import Oracle
from course_lib.text.tasks import LabelledSequences, ScoredSequences
from course_lib.text.world import MicroWorld

from .baselines import predicted_labels
from .finetuning import predicted_classes, predicted_values
from .task_metrics import accuracy, f1, matthews, pearson, spearman

METRICS = {
    "accuracy": accuracy, "F1": f1, "Matthews": matthews, "Pearson": pearson, "Spearman": spearman,
}  # fmt: skip
ORACLE, BASELINES = "oracle", ("nothing", "length", "hypothesis", "words")


def glue_score(name: str, predictions: Iterable[Any], labels: Iterable[Any]) -> dict[str, float]:
    """{metric: score} of a task's metrics in GLUE, fractions: "Matthews" of CoLA, "F1" and
    "accuracy" of MRPC and QQP, whose positive class is the second of the task's names.

    Predictions and labels: N class names each, or N numbers. ValueError for a task or a class that
    GLUE does not have, and as the metrics of task_metrics.py raise it."""
    task = task_named(name)
    true, said = (
        [task.number(x) if isinstance(x, str) else float(x) for x in side]
        for side in (labels, predictions)
    )
    return {metric: METRICS[metric](true, said) for metric in task.metrics}


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


def oracle_score(name: str, items: Sequence[Item], world: MicroWorld) -> dict[str, float]:
    """What the world's rules reach on a twin's items: see `glue_twins.answer`."""
    oracle = Oracle(world)
    said = [answer(name, item, oracle) for item in items]
    return glue_score(name, said, [item.label for item in items])


def baseline_score(
    name: str, train: Sequence[Item], test: Sequence[Item], sees: str
) -> dict[str, float]:
    """The score of a classifier that learns from `train` and sees what `baselines.predicted_labels`
    lets it see; for STS-B a regression on the same."""
    said = predicted_labels(train, test, sees, numbers=not task_named(name).names)
    return glue_score(name, said, [item.label for item in test])


def rows(name: str, seed: int = 0) -> dict[str, dict[str, float]]:
    """{who: metrics} on a twin's test items (MNLI's: the matched ones)."""
    train, test = (glue_items(name, split, seed=seed) for split in ("train", "test"))
    world = MicroWorld.load()
    seen = [b for b in BASELINES if b != "hypothesis" or isinstance(test[0], Pair)]
    return {ORACLE: oracle_score(name, test, world)} | {
        sees: baseline_score(name, train, test, sees) for sees in seen
    }


def main() -> None:
    """Print who reaches what on the nine twins."""
    for name, task in GLUE.items():
        print(f"{name:6} {task.asks}  train, validation, test: {task.sizes}")
        for who, scores in rows(name).items():
            said = "  ".join(f"{metric} {score:7.1%}" for metric, score in scores.items())
            print(f"       {who:11} {said}")


if __name__ == "__main__":
    main()
