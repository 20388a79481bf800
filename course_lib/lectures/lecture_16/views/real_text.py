"""The ladder on documentation: as a table, and some of its rungs as curves."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import stored
from course_lib.teaching.verdicts import in_points

from ..ladder import BEFORE, LAST, RUNGS
from ..real_text import HURRIED
from .results import Run, over_training, reached

FILE = "16_real_text"
DRAWN = ("BERT", "pre-norm", "RoPE", LAST, HURRIED)  # colours as in ladder_curves


def real_runs(name: str) -> list[Run]:
    """A rung's stored runs on documentation, one a seed."""
    runs: list[Run] = stored(FILE)["runs"][name]
    return runs


def real_text_curves() -> Any:
    """Held-out masked pieces over the training."""
    runs = {name: real_runs(name) for name in DRAWN}
    return over_training(runs, "The ladder on documentation", "held-out masked pieces")


def real_text_table() -> Html:
    """Every rung: the pieces it finds, and the points it brings here and on the stories."""
    right = {name: [run["accuracy"] for run in real_runs(name)] for name in RUNGS}
    rows = [
        (name, f"{real_runs(name)[0]['steps']:,}", f"{fmean(right[name]):.1%}",
         in_points(right[name], right[BEFORE[name]]) if name in BEFORE else "",
         in_points(reached(name), reached(BEFORE[name])) if name in BEFORE else "")
        for name in RUNGS
    ]  # fmt: skip
    head = ("rung", "steps", "accuracy", "beside the one before", "the same on the stories")
    return number_table(head, rows, "real-text", 700)
