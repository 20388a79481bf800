"""The numbers that sentences of lecture 12 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import log
from statistics import fmean, median
from typing import Any

from course_lib.bench.measuring import where_measured
from course_lib.bench.readers import tables as readers
from course_lib.family.albert import albert
from course_lib.family.bert import bert
from course_lib.family.mobilebert import mobilebert
from course_lib.objectives.knowledge_transfer import PROGRAM_WEIGHTS
from course_lib.teaching.numbers import percent, signed
from course_lib.teaching.results import outcome, stored

from . import serving_runs
from .views import results

MAIN, PAIRS, FEW = "FastBERT", "pairs: FastBERT", "few labels"
MOBILE = "12_mobilebert"


def layer(recipe: str, number: int) -> str:
    """Right at the exit of a layer (from 1; −1 the last), the mean over the seeds, in percent with
    a decimal."""
    index = number - 1 if number > 0 else number
    return percent([run["by_layer"][index] for run in results.runs_of(recipe)], 1)


def rows_at(runs: Sequence[results.Run], speed: float) -> list[Any]:
    """What became of the texts at a speed, of each run."""
    return [row for run in runs for row in run["by_entropy"] if row["speed"] == speed]


def at_speed(recipe: str, speed: float, what: str = "accuracy") -> float:
    """What becomes of the texts at a speed, the mean over the seeds. what: a measure, or
    "fewer", FLOPs at full depth over what a text takes."""
    rows = rows_at(results.runs_of(recipe), speed)
    if what == "fewer":
        whole = fmean(run["plain_flops"] for run in results.runs_of(recipe))
        return whole / fmean(row["flops"] for row in rows)
    return fmean(row[what] for row in rows)


def roads_at(what: str, form: str, recipe: str = "joint", speed: float = 0.3) -> str:
    """A measure of the texts of roads at a speed, seed by seed."""
    rows = rows_at(results.runs_of(recipe, results.ROADS), speed)
    *first, last = [format(row[what], form) for row in rows]
    return f"{', '.join(first)} and {last}"


def onnx_int8_size() -> str:
    """The file in int8 as a fraction of float32's."""
    stored_in = outcome(stored("12_serving"), "stored")
    return f"{stored_in[serving_runs.ONNX_INT8][0] / stored_in[serving_runs.BASE][0]:.0%}"


def known_whom(recipe: str, speed: float) -> list[float]:
    """Points by which each seed is right more often than with as many texts drawn at random."""
    return sorted(
        100 * (row["accuracy"] - row["at_random"])
        for row in rows_at(results.runs_of(recipe), speed)
    )


def hesitant(layer: int) -> str:
    """The best class's probability at an exit of the pairs' model, the median of the shown texts of
    which neither of the first two exits is sure."""
    texts = results.runs_of(PAIRS)[0]["probabilities"]
    unsure = [text for text in texts if max(map(max, text[:2])) < 0.6]
    return f"{median(max(text[layer - 1]) for text in unsure):.3f}"


def start() -> str:
    """The teacher's embeddings' part of what joint transfer gains over the student alone."""
    reached = outcome(stored(MOBILE), "masked_accuracy")
    names = ("labels", "labels, the teacher's embeddings", "joint")
    alone, embeddings, joint = (fmean(reached[name]) for name in names)
    return f"{(embeddings - alone) / (joint - alone):.0%}"


def last(recipe: str) -> str:
    """Right at the last exit, or of a model of fixed depth, in percent with a decimal."""
    return f"{fmean(run['accuracy'] for run in results.runs_of(recipe)):.1%}"


def student(recipe: str, measure: str = "masked_accuracy") -> str:
    """What a thin student reached, the mean over the seeds, in percent."""
    return percent(outcome(stored(MOBILE), measure)[recipe])


def time_of(way: str, what: str = "median") -> float:
    """Milliseconds of one text, or what else was timed."""
    value: float = stored("12_serving_times")["ways"][way][what]
    return value


def times(one: str, other: str, what: str = "median") -> str:
    """How many times less (of texts a second: more) the first has than the second."""
    ratio = time_of(other, what) / time_of(one, what)
    return f"{1 / ratio if what == 'texts_a_second' else ratio:.1f}"


def flops(way: str) -> str:
    """FLOPs of a text, as a fraction of float32's."""
    return f"{results.timed_flops(way) / results.timed_flops('float32'):.2f}"


NUMBERS: dict[str, Callable[[], Any]] = {
    "at_04": lambda: f"{at_speed(MAIN, 0.4):.1%}",
    "fewer_04": lambda: f"{at_speed(MAIN, 0.4, 'fewer'):.1f}",
    "readers_wrong": lambda: sum(
        row.get("difference", 0) > readers.WRONG
        for reader in readers.stored().values()
        for row in reader["rows"].values()
    ),
    "int8_times": partial(times, "int8", "float32"),
    "mobile_ms": lambda: f"{time_of(serving_runs.MOBILE):.1f}",
    "half_ms": lambda: f"{time_of(serving_runs.HALF):.1f}",
    "int8_cost": lambda: signed(
        100 * (results.served_accuracy("int8") - results.served_accuracy("float32"))
    ),
}  # fmt: skip

TYPED = {
    "100": "texts of the example by hand",
    "0.50": "a weight of the example by hand",
    "192": "milliseconds that the paper prints, in a question",
}
