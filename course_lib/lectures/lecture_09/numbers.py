"""The numbers that sentences of lecture 09 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

from course_lib.teaching.numbers import percent, signed
from course_lib.teaching.results import outcome, stored

from .counts import both_neighbours_read, first_named
from .views.spans import span_lengths


def masks(measure: str, recipe: str) -> str:
    """What a recipe's encoder reached, the mean over the seeds, in percent."""
    return percent(outcome(stored("09_masks"), measure)[recipe])


def gain(recipe: str, against: str, seed: int) -> str:
    """Points of answer F1 that a recipe gains over another in one seed."""
    scores = outcome(stored("09_masks"), "answers_mean")
    return signed(100 * (scores[recipe][seed] - scores[against][seed]))


def whose(recipe: str) -> str:
    """F1 of whose a pronoun is, the mean over persons of the same sex and of different ones."""
    scores = [outcome(stored("09_masks"), f"whose_{kind}_mean") for kind in ("same", "different")]
    return percent(scores[0][recipe] + scores[1][recipe])


def longer(measure: str, recipe: str) -> str:
    """What a recipe's encoder reached in twice the steps."""
    return percent(outcome(stored("09_longer"), measure)[recipe])


def first_answer(recipe: str) -> str:
    """F1 of the answers of one fine-tuning, of the first seed."""
    return percent(outcome(stored("09_masks"), "answer_f1")[recipe][:1])


def mask_curve(measure: str, recipe: str, step: int) -> str:
    """The same on the way, at a step that the curve has."""
    runs = stored("09_masks")["runs"][recipe]
    return percent([look[measure] for run in runs for look in run["curve"] if look["step"] == step])


def fusion(task: str, vectors: str) -> str:
    """Accuracy with these entity vectors, the mean over the seeds, in percent."""
    return percent(outcome(stored("09_fusion"), task)[vectors])


def rank(what: str) -> str:
    """The mean rank of the right tail under TransE, over the splits."""
    mean_rank = mean(one[what] for one in stored("09_fusion")["ranks"])
    return f"{mean_rank:.1f}" if mean_rank < 10 else f"{mean_rank:.0f}"


def chinese(measure: str, recipe: str) -> str:
    """What a BERT of the Chinese world reached, the mean over the seeds, in percent."""
    return percent(outcome(stored("09_chinese"), measure)[recipe])


def chinese_seeds() -> str:
    """How many runs each recipe has, in words."""
    count = len(stored("09_chinese")["runs"]["words"])
    return "one run each" if count == 1 else f"{count} runs each"


MEASURES = {  # what a sentence says -> the measure, and of which recipes sentences speak
    "found": ("masked_accuracy", "tokens tokens_sbo spans spans_sbo"),
    "whole": ("span_exact", "tokens spans"),
    "name": ("name_exact", "tokens names spans"),
    "fact": ("fact_accuracy", "tokens names spans"),
    "answers": ("answers_mean", "tokens names spans spans_sbo"),
    "entity": ("entities_few_mean", "tokens tokens_sbo spans spans_sbo"),
}
LONGER = {"found": "masked_accuracy", "name": "name_exact", "answer": "answer_f1"}

NUMBERS: dict[str, Callable[[], Any]] = {
    "merged_32": lambda: f"{span_lengths().counted[32]:.2f}",
    "masks_steps": lambda: stored("09_masks")["recipes"]["tokens"]["steps"],
    "zh_alone_inside": lambda: f"{stored('09_chinese')['words_alone']['inside']:.0%}",
}

# Digits on the page with another meaning: what the papers print.
TYPED = {
    "5,040,986": "Wikidata's entities, as the paper prints them",
    "80%": "selected tokens that are masked, and alignments that stay",
}
