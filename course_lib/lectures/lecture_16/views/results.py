"""The stored runs as charts and tables: the ladder, longer texts, norms, and times."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np

from course_lib.teaching import ablation_chart, curves_chart
from course_lib.teaching.page import Html, number_table
from course_lib.teaching.results import outcome, stored
from course_lib.teaching.verdicts import in_points

from ..ladder import (
    BEFORE,
    CONTROLS,
    FURTHER_BACK,
    LAST,
    LENGTH,
    LONGER,
    NORMS,
    RUNGS,
    RUNGS_2026,
)
from ..longer import LENGTHS, WAYS

LADDER, ALONE, NORMS_FILE, TIMES = "16_ladder", "16_controls", "16_norms", "16_times"
LADDER_2026, EXTENSION = "16_ladder_2026", "16_longer"
HEAD = (
    "rung", "FLOPs/step", "ms/step", "accuracy", "beside the one before", "half-way", "equal time"
)  # fmt: skip
Run = Mapping[str, Any]


def runs_of(name: str) -> list[Run]:
    """A rung's or a control's stored runs, one a seed."""
    later = LADDER_2026 if name in RUNGS_2026 else ALONE
    runs: list[Run] = stored(LADDER if name in RUNGS else later)["runs"][name]
    return runs


def reached(name: str) -> list[float]:
    """What each seed of a rung or control reached at equal FLOPs."""
    return [run["accuracy"] for run in runs_of(name)]


def seconds(name: str) -> float:
    """Of a training step, on the machine that was measured."""
    return float(stored(TIMES)["step"][name])


def shortest() -> float:
    """Seconds that the rung which is through first needs for all of its steps."""
    return min(seconds(name) * runs_of(name)[0]["steps"] for name in RUNGS)


def at_equal_time(name: str) -> list[float]:
    """Of each seed the accuracy after as many seconds as the quickest rung needs, between two looks
    on a straight line.

    Learning rates fall to 0 at each rung's own end, so a rung that is cut off is worse off."""
    step = shortest() / seconds(name)
    return [between(run["curve"], step) for run in runs_of(name)]


def between(curve: Mapping[str, list[float]], step: float) -> float:
    """The accuracy at a step of a curve."""
    return float(np.interp(step, curve["steps"], curve["accuracy"]))


def half_way(name: str) -> list[float]:
    """What each seed had reached after half of its steps."""
    return [between(run["curve"], run["steps"] / 2) for run in runs_of(name)]


def ladder_chart() -> Any:
    """Every rung, a dot a seed: held-out masked words at equal FLOPs."""
    return ablation_chart(
        {"held-out masked words": {name: reached(name) for name in RUNGS}},
        title="From BERT to ModernBERT, at equal FLOPs", x_title="accuracy", percent=True,
    )  # fmt: skip


def over_training(runs: Mapping[str, list[Run]], title: str, of: str) -> Any:
    """Accuracy over the training, whose whole length is 1. runs: by name, one a seed; of: what was
    found."""
    return curves_chart(
        {
            name: [
                [
                    (step / run["steps"], accuracy)
                    for step, accuracy in zip(
                        run["curve"]["steps"], run["curve"]["accuracy"], strict=True
                    )
                ]
                for run in seeds
            ]
            for name, seeds in runs.items()
        },
        title=title, x_title="part of the training", y_title=of, percent=True,
    )  # fmt: skip


def ladder_curves() -> Any:
    """The first rung, the last, and two between."""
    names = ("BERT", "pre-norm", "RoPE", "30% masked")
    runs = {name: runs_of(name) for name in names}
    return over_training(runs, "When the words are learnt", "held-out masked words")


def ladder_rows() -> list[tuple[str, ...]]:
    """A row a rung, then the controls: what it takes, what it reaches, and beside which other."""
    before = BEFORE | dict.fromkeys(CONTROLS, "BERT")
    flops = runs_of("BERT")[0]["flops_a_step"]
    return [
        (
            name, f"{runs_of(name)[0]['flops_a_step'] / flops:.2f}", f"{1e3 * seconds(name):.0f}",
            f"{fmean(reached(name)):.1%}",
            in_points(reached(name), reached(before[name])) if name in before else "",
            f"{fmean(half_way(name)):.1%}", f"{fmean(at_equal_time(name)):.1%}",
        )
        for name in (*RUNGS, *CONTROLS)
    ]  # fmt: skip


def ladder_table() -> Html:
    """The ladder in numbers."""
    return number_table(HEAD, ladder_rows(), "ladder", 780)


HEAD_2026 = (
    "rung", "FLOPs/step", "steps", "weights of the blocks", "accuracy", "seeds",
    "beside the one before",
)  # fmt: skip


def rows_2026() -> list[tuple[str, ...]]:
    """The rungs above ModernBERT: what they take, what they weigh, what they reach."""
    flops = runs_of("BERT")[0]["flops_a_step"]
    return [
        (
            name, f"{runs_of(name)[0]['flops_a_step'] / flops:.2f}",
            str(runs_of(name)[0]["steps"]), f"{runs_of(name)[0]['block_parameters']:,}",
            f"{fmean(reached(name)):.1%}", " ".join(f"{100 * x:.1f}" for x in reached(name)),
            in_points(reached(name), reached(BEFORE[name])) if name != LAST else "",
        )
        for name in (LAST, *RUNGS_2026)
    ]  # fmt: skip


def ladder_2026_table() -> Html:
    """The same as a table."""
    return number_table(HEAD_2026, rows_2026(), "ladder of 2026", 780)


def extended(way: str, length: int) -> list[float]:
    """Held-out masked words found in texts of this length, a seed each."""
    return [run["by"][str(length)] for run in stored(EXTENSION)["runs"][way]]


def extension_head() -> tuple[str, ...]:
    """What the next function's columns are."""
    return ("", "rate", *(f"{n:,} tokens" for n in LENGTHS), f"at {LENGTHS[1]}, beside the first")


def extension_rows() -> list[tuple[str, ...]]:
    """Ways to go on with a model that read 64 tokens at a time, by length of what it reads now."""
    longest, first = LENGTHS[1], next(iter(WAYS))
    return [
        (
            way, f"{stored(EXTENSION)['runs'][way][0]['rate']:g}" if WAYS[way].steps else "",
            *(f"{fmean(extended(way, n)):.1%}" for n in LENGTHS),
            in_points(extended(way, longest), extended(first, longest)) if way != first else "",
        )
        for way in WAYS
    ]  # fmt: skip


def extension_table() -> Html:
    """The same as a table."""
    return number_table(extension_head(), extension_rows(), "extension", 780)


def by_place(name: str, what: str) -> list[tuple[int, list[float]]]:
    """Accuracies of the seeds by length ("longer") or by paddings in front ("further_back"), what
    training saw first."""
    first = (LENGTH if what == "longer" else 0, reached(name))
    at = LONGER if what == "longer" else FURTHER_BACK
    return [first, *((n, [run[what][str(n)] for run in runs_of(name)]) for n in at)]


def longer_chart(what: str = "longer") -> Any:
    """Learned positions against RoPE where training did not go. what: "longer" or
    "further_back"."""
    names = {"pre-norm": "learned positions", "GeGLU": "RoPE", "local layers": "… and local layers"}
    curves = {
        label: [
            [(at, values[seed]) for at, values in by_place(name, what)]
            for seed in range(len(reached(name)))
        ]
        for name, label in names.items()
    }
    x_title, tried = {
        "longer": ("tokens of a text", "longer texts"),
        "further_back": ("positions further back", "the same stories further back"),
    }[what]
    return curves_chart(
        curves, title=f"Trained on 64 tokens: {tried}", x_title=x_title,
        y_title="held-out masked words", percent=True,
    )  # fmt: skip


def norms_chart() -> Any:
    """Twelve layers without warm-up: norms after the sums and before the halves."""
    accuracies = outcome(stored(NORMS_FILE), "accuracy")
    return ablation_chart(
        {"held-out masked words": {name: accuracies[name] for name in NORMS}},
        title="Twelve layers: post-norm, pre-norm", x_title="accuracy", percent=True,
    )  # fmt: skip


def cost_chart(what: str = "seconds") -> Any:
    """A text's forward pass by its length. what: "seconds", or "flops"."""
    lengths = stored(TIMES)["length"]
    unit, y_title, title = {
        "seconds": (1, "seconds, one thread", "Time for one text, by its length"),
        "flops": (1e-9, "billions of FLOPs", "FLOPs for one text, by its length"),
    }[what]
    return curves_chart(
        {name: [[(int(n), unit * row[what]) for n, row in of.items()]]
         for name, of in lengths.items()},
        title=title, x_title="tokens", y_title=y_title,
    )  # fmt: skip
