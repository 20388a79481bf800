"""The numbers that sentences of lecture 13 say: counted, or read from results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import fmean
from typing import Any

from course_lib.teaching.numbers import percent, signed
from course_lib.teaching.results import stored
from course_lib.text.glue import GLUE

from . import benchmark
from .guide import guide
from .pretraining_runs import BERT, MEMBERS
from .views import benchmark as shown

STARTS = {
    "random": benchmark.RANDOM, "fast": benchmark.FAST,
    **{name.lower(): name for name in MEMBERS},
    "narrow": "plain, 58 wide", "short": "plain, two layers",
}  # fmt: skip

NAMING = ("bert", "roberta", "albert", "distilbert", "deberta", "spanbert", "ernie", "mobilebert")
TASKS = {task.lower().replace("-", ""): task for task in GLUE}  # as a number's name begins


def mean_of(start: str, by: str = "average") -> str:
    """The average of nine, or one number of a task, the mean over the seeds, in percent."""
    return percent(shown.values_of(start, by))


def beside_bert(start: str, by: str = "average") -> str:
    """How far a start is from BERT, in points."""
    one, other = (fmean(shown.values_of(name, by)) for name in (start, "BERT"))
    return signed(100 * (one - other))


def interval_of(start: str) -> str:
    """Where 95% of resampled test sets have the difference from BERT, in points."""
    low, high = stored(shown.FILE)["intervals"][start]["beside BERT"]
    return f"{signed(100 * low)} to {signed(100 * high)}"


def masked(start: str) -> str:
    """Held-out masked words that the pre-trained model finds, in percent."""
    return percent([run["masked_accuracy"] for run in shown.runs_of(start)])


def steps(start: str) -> str:
    """Of its pre-training."""
    return f"{shown.runs_of(start)[0]['steps']:,}"


def _lowest() -> float:
    """The lowest mean of the family, ALBERT left out."""
    return min(fmean(shown.values_of(name)) for name in MEMBERS if name != "ALBERT")


def hours() -> str:
    """CPU hours of all runs, pre-training and fine-tuning, rounded up."""
    runs: Mapping[str, Any] = stored(shown.FILE)["runs"]
    seconds = sum(
        run["tuning_seconds"] + run.get("pretraining_cpu_seconds", 0)
        for of in runs.values() for run in of
    )  # fmt: skip
    return f"{seconds / 3_600:.1f}"


def baseline(task: str, who: str = "words") -> str:
    """What a baseline reaches on a twin, one number of its metrics, in percent."""
    found = stored(shown.FILE)["without_learning"][task][who]
    return percent([fmean(found.values())])


NUMBERS: dict[str, Callable[[], Any]] = {
    "bert_steps": lambda: f"{BERT.flops:,}",
    "members": lambda: len(MEMBERS) + 1,
    "starts": lambda: len(benchmark.TUNINGS),
    "seeds": lambda: len(benchmark.SEEDS),
    "tuning_steps": lambda: benchmark.Tuning().steps,
    "hours": hours,
    "average_lowest": lambda: percent([_lowest()]),
    **{f"steps_{key}": partial(steps, name) for key, name in STARTS.items()
       if key not in ("random", "fast")},
    "rules": lambda: len(guide().rules),
    "choices": lambda: len(guide().choices),
    "sentiment_texts": lambda: len(shown.runs_of("BERT")[0]["sentiment"]),
    **{f"average_{key}": partial(mean_of, name) for key, name in STARTS.items()},
    **{f"beside_{key}": partial(beside_bert, name) for key, name in STARTS.items()},
    **{f"between_{key}": partial(interval_of, name) for key, name in STARTS.items()},
    **{f"masked_{key}": partial(masked, name) for key, name in STARTS.items() if key in NAMING},
    **{f"{key}_{start}": partial(mean_of, name, task)
       for key, task in TASKS.items() for start, name in STARTS.items()},
    **{f"{key}_bag": partial(baseline, task) for key, task in TASKS.items()},
}  # fmt: skip
