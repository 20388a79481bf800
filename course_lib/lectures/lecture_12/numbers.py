"""The numbers that sentences of lecture 12 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import log
from statistics import fmean, median
from typing import Any

from course_lib.bench.measuring import where_measured
from course_lib.bench.readers import tables as readers
from course_lib.config import published
from course_lib.objectives.knowledge_transfer import PROGRAM_WEIGHTS
from course_lib.teaching.claims import printed
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


def at_speed(recipe: str, speed: float, what: str = "accuracy") -> float:
    """What becomes of the texts at a speed, the mean over the seeds. what: a measure, or
    "fewer", FLOPs at full depth over what a text takes."""
    rows = [
        next(row for row in run["by_entropy"] if row["speed"] == speed)
        for run in results.runs_of(recipe)
    ]
    if what == "fewer":
        whole = fmean(run["plain_flops"] for run in results.runs_of(recipe))
        return whole / fmean(row["flops"] for row in rows)
    return fmean(row[what] for row in rows)


def known_whom(recipe: str, speed: float) -> list[float]:
    """Points by which each seed is right more often than with as many texts drawn at random."""
    return sorted(
        100 * (row["accuracy"] - row["at_random"])
        for run in results.runs_of(recipe)
        for row in run["by_entropy"]
        if row["speed"] == speed
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
    alone, begun, taught = (fmean(reached[name]) for name in names)
    return f"{(begun - alone) / (taught - alone):.0%}"


def share(recipe: str, speed: float, what: str = "accuracy") -> str:
    """The same in percent, with a decimal."""
    return f"{at_speed(recipe, speed, what):.1%}"


def fewer(recipe: str, speed: float) -> str:
    """Times fewer FLOPs."""
    return f"{at_speed(recipe, speed, 'fewer'):.1f}"


def last(recipe: str) -> str:
    """Right at the last exit, or of a model of fixed depth, in percent with a decimal."""
    return f"{fmean(run['accuracy'] for run in results.runs_of(recipe)):.1%}"


def student(recipe: str, measure: str = "masked_accuracy") -> str:
    """What a thin student reached, the mean over the seeds, in percent."""
    return percent(outcome(stored(MOBILE), measure)[recipe])


def served(way: str) -> str:
    """Accuracy of a way to serve, in percent with a decimal."""
    return f"{results.served_accuracy(way):.1%}"


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
    "mobile_layers": lambda: published("mobilebert", "base").num_layers,
    "base_layers": lambda: published("bert", "base").num_layers,
    "mobile_fraction": serving_runs.mobile_fraction,
    **{f"weight_{name}": partial("{:,g}".format, weight)
       for name, weight in PROGRAM_WEIGHTS.items()},
    "ms_layernorm": lambda: printed("mobilebert")["operational"]["milliseconds"],
    "ms_nonorm": lambda: printed("mobilebert")["abstract"]["milliseconds"],
    "seeds": lambda: len(results.runs_of(MAIN)),
    "speed": lambda: f"{serving_runs.SPEED:g}",
    # exits
    "last": partial(last, MAIN),
    "first": partial(layer, MAIN, 1),
    "at_04": partial(share, MAIN, 0.4),
    "random_04": partial(share, MAIN, 0.4, "at_random"),
    "fewer_04": partial(fewer, MAIN, 0.4),
    "whom_least": lambda: f"{known_whom(MAIN, 0.4)[0]:.1f}",
    "whom_most": lambda: f"{known_whom(MAIN, 0.4)[-1]:.1f}",
    "fixed_2": partial(last, "fixed depth 2"),
    "paper_fixed": lambda: printed("fastbert")["ablation"]["two_layers"],
    "paper_full": lambda: printed("fastbert")["ablation"]["full"],
    "few_last": partial(layer, FEW, -1),
    "few_first": partial(layer, FEW, 1),
    "few_all_first": partial(layer, "few labels, all texts", 1),
    "two_alike": lambda: f"{log(2) / log(3):.2f}",
    "pairs_last": partial(last, PAIRS),
    "pairs_first": partial(layer, PAIRS, 1),
    "pairs_second": partial(layer, PAIRS, 2),
    "pairs_07": partial(share, PAIRS, 0.7),
    "pairs_fewer_07": partial(fewer, PAIRS, 0.7),
    "pairs_fewer_05": partial(fewer, PAIRS, 0.5),
    "pairs_08": partial(share, PAIRS, 0.8),
    "pairs_fixed_2": partial(last, "pairs: fixed depth 2"),
    "pairs_majority": lambda: f"{stored('12_fastbert')['texts']['pairs']['majority']:.0%}",
    "pairs_hesitant_1": partial(hesitant, 1),
    "pairs_hesitant_2": partial(hesitant, 2),
    "pairs_joint_first": partial(layer, "pairs: joint", 1),
    "pairs_longer": lambda: percent(outcome(stored("03_world"), "score")["NLI, pre-trained"]),
    "compared_at": lambda: f"{results.HALF:.0%}",
    "joint_last": partial(last, "joint"),
    "joint_first": partial(layer, "joint", 1),
    # thin students
    "teacher_masked": lambda: f"{stored(MOBILE)['teacher']['masked_accuracy']:.0%}",
    "mobile_seeds": lambda: len(stored(MOBILE)["runs"]["labels"]),
    **{
        f"thin_{said}": partial(student, name)
        for said, name in (
            ("alone", "labels"), ("norm", "labels, LayerNorm and GELU"),
            ("embeddings", "labels, the teacher's embeddings"), ("answers", "no transfer"),
            ("auxiliary", "auxiliary"), ("joint", "joint"), ("progressive", "progressive"),
            ("slip", "progressive, the slip"),
            ("progressive_norm", "progressive, LayerNorm and GELU"),
        )
    },
    "thin_start": start,
    "facts_auxiliary": partial(student, "auxiliary", "job_accuracy"),
    "facts_alone": partial(student, "labels", "job_accuracy"),
    "facts_embeddings": partial(student, "labels, the teacher's embeddings", "job_accuracy"),
    "facts_joint": partial(student, "joint", "job_accuracy"),
    "facts_progressive": partial(student, "progressive", "job_accuracy"),
    "facts_progressive_norm": partial(student, "progressive, LayerNorm and GELU", "job_accuracy"),
    # readers
    "readers_wrong": lambda: sum(
        row.get("difference", 0) > readers.WRONG
        for reader in readers.stored().values()
        for row in reader["rows"].values()
    ),
    "readers_gguf": lambda: f"{readers.largest(readers.stored()['GGUF']['rows']):.3f}",
    # serving
    "serving_machine": lambda: where_measured(stored("12_serving_times")["machine"]),
    **{
        f"served_{said}": partial(served, way)
        for said, way in (
            ("float32", "float32"), ("half", serving_runs.HALF),
            ("mobile", serving_runs.MOBILE), ("early", serving_runs.EARLY),
        )
    },
    "int8_times": partial(times, "int8", "float32"),
    "int8_rate": partial(times, "int8", "float32", "texts_a_second"),
    "same_flops": partial(times, "ONNX Runtime", "padding removed"),
    "half_times": partial(times, serving_runs.HALF, "float32"),
    "onnx_times": partial(times, "ONNX Runtime", "float32"),
    "compile_times": partial(times, "torch.compile", "float32"),
    "unpadded_rate": partial(times, "padding removed", "float32", "texts_a_second"),
    "mobile_ms": lambda: f"{time_of(serving_runs.MOBILE):.1f}",
    "half_ms": lambda: f"{time_of(serving_runs.HALF):.1f}",
    "mobile_rate": partial(times, serving_runs.MOBILE, "float32", "texts_a_second"),
    "mobile_flops": partial(flops, serving_runs.MOBILE),
    "half_flops": partial(flops, serving_runs.HALF),
    "int8_file": lambda: (
        f"{time_of('int8', 'stored') / time_of('float32', 'stored'):.0%}"
    ),
    "int8_cost": lambda: signed(
        100 * (results.served_accuracy("int8") - results.served_accuracy("float32"))
    ),
}  # fmt: skip

TYPED = {
    "100": "texts of the example by hand",
    "0.50": "a weight of the example by hand",
    "192": "milliseconds that the paper prints, in a question",
}
