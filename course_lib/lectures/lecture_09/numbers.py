"""The numbers that sentences of lecture 09 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import percent, signed
from course_lib.teaching.results import outcome, stored

from .counts import both_neighbours_read, first_named
from .views.spans import span_lengths


def masks(measure: str, recipe: str) -> str:
    """What a recipe's encoder reached, the mean over the seeds, in percent."""
    return percent(outcome(stored("09_masks"), measure)[recipe])


def gain(recipe: str, against: str, seed: int) -> str:
    """Points of answer F1 that a recipe gains over another in one seed."""
    found = outcome(stored("09_masks"), "answers_mean")
    return signed(100 * (found[recipe][seed] - found[against][seed]))


def whose(recipe: str) -> str:
    """F1 of whose a pronoun is, the mean over persons of the same sex and of different ones."""
    found = [outcome(stored("09_masks"), f"whose_{kind}_mean") for kind in ("same", "different")]
    return percent(found[0][recipe] + found[1][recipe])


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
    found = mean(one[what] for one in stored("09_fusion")["ranks"])
    return f"{found:.1f}" if found < 10 else f"{found:.0f}"


def chinese(measure: str, recipe: str) -> str:
    """What a BERT of the Chinese world reached, the mean over the seeds, in percent."""
    return percent(outcome(stored("09_chinese"), measure)[recipe])


def chinese_seeds() -> str:
    """How many runs each recipe has, in words."""
    count = len(stored("09_chinese")["runs"]["words"])
    return "one run each" if count == 1 else f"{count} runs each"


CHINESE = {  # what a sentence says -> the measure, and of which recipes sentences speak
    "character": ("character", "characters words"),
    "inside": ("inside", "characters"),
    "word": ("word_exact", "characters words names"),
    "person": ("person_exact", "characters words names"),
    "place": ("place_exact", "characters words names"),
    "fact": ("fact_exact", "characters words names"),
    "slots": ("slot_probe", "characters words"),
}
RECIPE = {
    "tokens": "tokens",
    "names": "names",
    "spans": "spans",
    "tokens_sbo": "tokens + SBO",
    "spans_sbo": "spans + SBO",
}
MEASURES = {  # what a sentence says -> the measure, and of which recipes sentences speak
    "found": ("masked_accuracy", "tokens tokens_sbo spans spans_sbo"),
    "whole": ("span_exact", "tokens spans"),
    "name": ("name_exact", "tokens names spans"),
    "fact": ("fact_accuracy", "tokens names spans"),
    "answers": ("answers_mean", "tokens names spans spans_sbo"),
    "entity": ("entities_few_mean", "tokens tokens_sbo spans spans_sbo"),
}
EARLY = 1_000  # steps
LONGER = {"found": "masked_accuracy", "name": "name_exact", "answer": "answer_f1"}

NUMBERS: dict[str, Callable[[], Any]] = {
    "mean_length": lambda: f"{span_lengths().mean:.2f}",
    "heaped_length": lambda: f"{span_lengths().heaped:.2f}",
    "merged_128": lambda: f"{span_lengths().counted[128]:.2f}",
    "merged_32": lambda: f"{span_lengths().counted[32]:.2f}",
    "neighbours_tokens": lambda: f"{both_neighbours_read()[0]:.0%}",
    "neighbours_spans": lambda: f"{both_neighbours_read()[1]:.0%}",
    "wikidata": lambda: printed("ernie_tsinghua")["settings"]["entities"],
    "masks_steps": lambda: stored("09_masks")["recipes"]["tokens"]["steps"],
    "masks_seeds": lambda: len(stored("09_masks")["runs"]["tokens"]),
    **{
        f"{said}_{name}": partial(masks, measure, RECIPE[name])
        for said, (measure, names) in MEASURES.items()
        for name in names.split()
    },
    **{
        f"early_{name}": partial(mask_curve, "masked_accuracy", RECIPE[name], EARLY)
        for name in ("tokens", "tokens_sbo", "spans", "spans_sbo")
    },
    **{
        f"related_{vectors}": partial(fusion, "relation 500", vectors)
        for vectors in ("right", "shuffled", "without", "none")
    },
    "related_right_100": partial(fusion, "relation 100", "right"),
    "related_right_slower": partial(fusion, "relation 500, slower", "right"),
    **{
        f"{task}_{vectors}": partial(fusion, f"{task} 100", vectors)
        for task in ("country", "kind")
        for vectors in ("right", "shuffled", "none")
    },
    **{
        f"{said}_{which}": partial(gain, recipe, against, seed)
        for said, recipe, against in (("gain", "spans", "tokens"), ("sbo", "spans + SBO", "spans"))
        for which, seed in (("first", 0), ("second", 1))
    },
    "zh_alone_inside": lambda: f"{stored('09_chinese')['words_alone']['inside']:.0%}",
    "zh_alone_whole": lambda: f"{stored('09_chinese')['words_alone']['word_exact']:.0%}",
    "zh_given_away": lambda: f"{stored('09_chinese')['given_away']:.0%}",
    "zh_steps": lambda: f"{stored('09_chinese')['recipes']['words']['steps']:,}",
    "zh_seeds": chinese_seeds,
    **{
        f"zh_{said}_{name}": partial(chinese, measure, name)
        for said, (measure, names) in CHINESE.items()
        for name in names.split()
    },
    **{
        f"whose_{name}": partial(whose, RECIPE[name])
        for name in ("tokens", "tokens_sbo", "spans", "spans_sbo")
    },
    **{
        f"longer_{said}_{name}": partial(longer, measure, RECIPE[name])
        for said, measure in LONGER.items()
        for name in ("spans", "spans_sbo")
    },
    "answer_spans": partial(first_answer, "spans"),
    "answer_spans_sbo": partial(first_answer, "spans + SBO"),
    "whose_first": lambda: percent([first_named()[0]]),
    "whose_last": lambda: percent([first_named()[1]]),
    "rank_read": partial(rank, "read"),
    "rank_not_read": partial(rank, "not read"),
    "rank_random": partial(rank, "random"),
}

# Digits on the page with another meaning: what the papers print.
TYPED = {
    "5,040,986": "Wikidata's entities, as the paper prints them",
    "80%": "selected tokens that are masked, and alignments that stay",
}
