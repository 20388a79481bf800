"""The members on documentation: what each finds, on which task, and how sure that is."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import numpy as np

from course_lib.teaching import heat_chart
from course_lib.teaching.numbers import signed
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import stored
from course_lib.teaching.verdicts import in_points
from course_lib.train.calibration import bootstrap_interval

FILE = "13_documentation"
BAG = "bag of words"
BASELINES = {BAG: "bag_of_words", "the commonest answer": "commonest"}  # and where their scores are


def scores_of(name: str) -> dict[str, float]:
    """Accuracy of a start on each documentation task, the mean over the seeds, and their mean."""
    runs = stored(FILE)["runs"]
    rows = [r["scores"] for r in runs.get(name, [])] or [stored(FILE)[BASELINES[name]]]
    means = {task: fmean(row[task] for row in rows) for task in rows[0]}
    return {**means, "mean": fmean(means.values())}


def starts() -> list[str]:
    """All starts and what was not pre-trained, the best mean first."""
    return sorted((*stored(FILE)["runs"], *BASELINES), key=lambda name: -scores_of(name)["mean"])


def documentation_chart() -> Any:
    """Every start on every documentation task, and the mean of the tasks."""
    names = starts()
    cells = [[*scores_of(name).values()] for name in names]
    chart = heat_chart(
        cells, names, [*scores_of(BAG)], title="Three tasks in documentation", percent=True
    )
    chart.update_traces(z=cells)  # unrounded: what ends in a half is then written as in the table
    return chart.update_layout(height=90 + 26 * len(names), width=740)


def means(name: str) -> list[float]:
    """The mean of the tasks, a value a seed."""
    return [run["mean"] for run in stored(FILE)["runs"][name]]


def masked_accuracy(name: str) -> float | None:
    """Held-out masked pieces that a start finds; None without a head that names words."""
    accuracies = [run.get("masked_accuracy") for run in stored(FILE)["runs"].get(name, [{}])]
    return None if None in accuracies else fmean(accuracies)


def beside_bert(name: str) -> tuple[float, tuple[float, float]]:
    """How far a start's mean is from BERT's, and where 95% of resampled test sets have it."""
    gained = _right(name) - _right("BERT")
    return float(gained.mean()), bootstrap_interval(gained)


def _right(name: str) -> np.ndarray:
    """(texts,) share of the seeds that have a text right, weighted so that tasks count alike."""
    runs = stored(FILE)["runs"][name]
    tasks = [np.mean([[*map(int, run["right"][task])] for run in runs], axis=0)
             for task in runs[0]["right"]]  # fmt: skip
    texts = sum(map(len, tasks))
    return np.concatenate([of * texts / len(of) / len(tasks) for of in tasks])


def documentation_table() -> Html:
    """Every start: steps, masked pieces found, mean of the tasks, and that beside BERT's."""
    head = ("", "weights", "steps", "rate", "masked pieces", "mean of three", "sd",
            "beside BERT", "95%")  # fmt: skip
    rows = []
    for name in starts():
        run, pieces = stored(FILE)["runs"].get(name, [{}])[0], masked_accuracy(name)
        cells = [name, *(f"{run[key]:,}" if key in run else "–" for key in ("parameters", "steps"))]
        cells.append(f"{run['pretraining_rate']:g}" if "pretraining_rate" in run else "–")
        cells += ["–" if pieces is None else f"{pieces:.1%}", f"{scores_of(name)['mean']:.1%}"]
        if name not in BASELINES:
            cells.append(f"{100 * stdev(means(name)):.1f}")
        if name not in ("BERT", *BASELINES):
            cells.append(in_points(means(name), means("BERT")))
            low, high = beside_bert(name)[1]
            cells += [f"{signed(100 * low)} to {signed(100 * high)}"]
        rows.append((*cells, *[""] * (len(head) - len(cells))))
    return number_table(head, rows, "documentation")
