"""The measured numbers that page 03's sentences repeat, each from its file of results."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from course_lib.train.experiments.lecture_03 import STARTS
from course_lib.train.results import read_result

CHECKPOINT, PLATEAU, TASKS, CURVES = (
    read_result(f"03_{name}") for name in ("checkpoint", "plateau", "tasks", "curves")
)
FRESH = STARTS[1]
TRAINING: dict[str, Any] = CHECKPOINT["recipe"]["training"]
TOKENS = TRAINING["steps"] * TRAINING["batch_size"] * CHECKPOINT["recipe"]["text"]["length"]
SHORT, *OTHERS = [run["loss"][-1] for run in PLATEAU["runs"].values()]


def _passes() -> str:
    rows = TRAINING["steps"] * TRAINING["batch_size"]
    return f"{rows / CHECKPOINT['rows']:.0f}"


def _left_plateau() -> str:
    """The first step written down whose loss is a nat below what frequencies explain."""
    losses = ((line["step"], line["total"]) for line in CHECKPOINT["curve"] if "total" in line)
    return f"{next(step for step, loss in losses if loss < PLATEAU['unigram'] - 1):,}"


def _score(task: str, start: str) -> float:
    return mean(run["score"] for run in TASKS["runs"][task][start])


def _rule(what: str, sees: str) -> float:
    """A baseline's score, of the row with these words."""
    return next(row[-1] for row in TASKS["baselines"] if (row[0], row[2]) == (what, sees))


def _world(start: str) -> float:
    sizes = CURVES["curves"]["world nli"][start]
    return mean(sizes[max(sizes, key=int)])


def _percent(value: float) -> str:
    return f"{value:.0%}"


NUMBERS: dict[str, Callable[[], str]] = {
    "million_tokens": lambda: f"{TOKENS / 1e6:.0f}",
    "passes": _passes,
    "minutes": lambda: f"{TOKENS / CHECKPOINT['tokens_per_second'] / 60:.0f}",
    "plateau_short": lambda: f"{SHORT:.1f}",
    "plateau_least": lambda: f"{min(OTHERS):.1f}",
    "plateau_most": lambda: f"{max(OTHERS):.1f}",
    "short_steps": lambda: f"{TRAINING['short_steps']:,}",
    "left_plateau": _left_plateau,
}
