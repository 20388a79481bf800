"""The numbers that sentences of lecture 09 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import percent
from course_lib.teaching.results import outcome, stored

from .views.spans import span_lengths


def masks(measure: str, recipe: str) -> str:
    """What a recipe's encoder reached, the mean over the seeds, in percent."""
    return percent(outcome(stored("09_masks"), measure)[recipe])


def mask_curve(measure: str, recipe: str, step: int) -> str:
    """The same on the way, at a step that the curve has."""
    runs = stored("09_masks")["runs"][recipe]
    return percent([look[measure] for run in runs for look in run["curve"] if look["step"] == step])


def untrained(measure: str) -> str:
    """At random initialisation."""
    return percent([one[measure] for one in stored("09_masks")["untrained"]])


def fusion(task: str, vectors: str) -> str:
    """Accuracy with these entity vectors, the mean over the seeds, in percent."""
    return percent(outcome(stored("09_fusion"), task)[vectors])


def rank(what: str) -> str:
    """The mean rank of the right tail under TransE, over the splits."""
    found = mean(one[what] for one in stored("09_fusion")["ranks"])
    return f"{found:.1f}" if found < 10 else f"{found:.0f}"


SHORT = {"tokens": "tokens", "spans": "spans", "names": "names", "spans_sbo": "spans + SBO",
         "tokens_sbo": "tokens + SBO", "phrases": "phrases"}  # fmt: skip
MEASURES = {"found": "masked_accuracy", "whole": "span_exact", "name": "name_exact",
            "fact": "fact_accuracy", "answers": "answers_mean",
            "entity": "entities_few_mean"}  # fmt: skip

NUMBERS: dict[str, Callable[[], Any]] = {
    "mean_length": lambda: f"{span_lengths().mean:.2f}",
    "heaped_length": lambda: f"{span_lengths().heaped:.2f}",
    "merged_128": lambda: f"{span_lengths().counted[128]:.2f}",
    "merged_32": lambda: f"{span_lengths().counted[32]:.2f}",
    "wikidata": lambda: printed("ernie_tsinghua")["settings"]["entities"],
    "masks_steps": lambda: stored("09_masks")["recipes"]["tokens"]["steps"],
    "masks_seeds": lambda: len(stored("09_masks")["runs"]["tokens"]),
    **{
        f"{said}_{name}": partial(masks, measure, recipe)
        for said, measure in MEASURES.items()
        for name, recipe in SHORT.items()
    },
    "found_untrained": partial(untrained, "masked_accuracy"),
    "answers_untrained": partial(untrained, "answers_mean"),
    "early_tokens": partial(mask_curve, "masked_accuracy", "tokens", 1_000),
    "early_tokens_sbo": partial(mask_curve, "masked_accuracy", "tokens + SBO", 1_000),
    "early_spans": partial(mask_curve, "masked_accuracy", "spans", 1_000),
    "early_spans_sbo": partial(mask_curve, "masked_accuracy", "spans + SBO", 1_000),
    **{f"related_{vectors}": partial(fusion, "relation 500", vectors)
       for vectors in ("right", "shuffled", "without", "none")},
    "related_right_100": partial(fusion, "relation 100", "right"),
    "related_right_slower": partial(fusion, "relation 500, slower", "right"),
    **{f"{task}_{vectors}": partial(fusion, f"{task} 100", vectors)
       for task in ("country", "kind") for vectors in ("right", "shuffled", "none")},
    "rank_read": partial(rank, "read"),
    "rank_not_read": partial(rank, "not read"),
    "rank_random": partial(rank, "random"),
}  # fmt: skip

# Digits on the page with another meaning: what the papers print.
TYPED = {"5,040,986": "Wikidata's entities, as the paper prints them"}
