"""GLUE: what its nine tasks ask, and how the mean of eight of them rose from model to model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from course_lib.teaching.averages import AVERAGES, glue_average
from course_lib.teaching.claims import printed

RECIPE = "dev-8"  # of course_lib/teaching/averages.py: eight tasks, one number each, no WNLI


class Asked(NamedTuple):
    """An example of our own for a task's question, and its answer."""

    example: str
    answer: str


ASKED = {
    "CoLA": Asked("The letter wrote itself he.", "no"),
    "SST-2": Asked("two hours I would like to have back", "blame"),
    "MRPC": Asked("The bakery closes in May. | In May the bakery will shut.", "yes"),
    "QQP": Asked(
        "How do I peel garlic fast? | What is the quickest way to peel garlic?", "yes"),
    "STS-B": Asked("A dog runs. | A dog is running along the beach.", "about 3"),
    "MNLI": Asked("Every shop was closed. | The baker sold us bread in his shop.", "contradiction"),
    "QNLI": Asked("Who built the bridge? | It was opened in 1895.", "no"),
    "RTE": Asked("Ines moved from Turin to Rome. | Ines once lived in Turin.", "yes"),
    "WNLI": Asked("The jug did not fit into the box, as it was too big. | The box was too big.",
                  "no"),
}  # fmt: skip


def tasks() -> dict[str, dict[str, Any]]:
    """GLUE's tasks as data/papers/glue.toml has them: asks, input, answer, train, metrics …"""
    return {name: task for name, task in printed("glue")["tasks"].items() if name in ASKED}


class Step(NamedTuple):
    """A model on GLUE: one model on the development sets; an ensemble on the test sets, or None."""

    model: str
    month: str
    one: float
    several: float | None


def progress() -> list[Step]:
    """The models in the order of their papers, each with the mean of eight tasks."""
    rows = printed("glue")
    return [
        Step(step["model"], step["month"], _mean(step["one"]),
             _mean(step["several"]) if "several" in step else None)
        for step in rows["progress"]["order"]
    ]  # fmt: skip


def _mean(name: str) -> float:
    """Of a row of glue.toml by the recipe, or the mean that a paper prints without its row."""
    rows = printed("glue")
    if name not in rows:
        return float(rows["means"][name])
    return round(glue_average(rows[name]["scores"], RECIPE), 2)


def without(task: str, name: str) -> float:
    """The mean of a row when one of the recipe's tasks is left out."""
    scores: Mapping[str, Any] = printed("glue")[name]["scores"]
    kept = [score[0] if isinstance(score := scores[t], list) else score
            for t in AVERAGES[RECIPE].tasks if t != task]  # fmt: skip
    return sum(kept) / len(kept)
