"""The numbers that sentences of lecture 10 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from course_lib.teaching.numbers import millions, percent
from course_lib.teaching.results import outcome, stored

from .sharing_runs import LARGE, SMALL
from .views.results import OTHER, reached
from .views.sizes import size_of


def parameters(name: str) -> str:
    """In millions."""
    return millions(size_of(name).parameters)


def words(name: str) -> str:
    """The fraction of a model's parameters that is its embedding matrix."""
    return f"{size_of(name).of_words:.0%}"


def pairs(measure: str, language: str, row: str) -> str:
    """What XLMs of English and a language reached, the mean over the seeds, in percent."""
    return percent(reached(measure, language)[row])


def spelled(measure: str, recipe: str) -> str:
    """The same by spelling, without translations."""
    return percent(outcome(stored("10_spellings"), measure)[recipe])


def shared_model(name: str, measure: str, recipe: str) -> str:
    """Masked words right in a model that several languages share, in percent."""
    return percent(outcome(stored(name), measure)[recipe])


ROWS = {
    "random": "random initialisation", "tlm": "TLM", "mlm_longer": "MLM, longer",
    "tlm_longer": "TLM, longer", "both_longer": "MLM + TLM, longer",
}  # fmt: skip


def _language_and_row(name: str) -> tuple[str, str]:
    language, _, row = name.partition("_")
    return language, ROWS[row]


PAIRS = {  # what a sentence says -> the measure, and of which languages and rows sentences speak
    "found": ("retrieval", "norlish_tlm norlish_mlm_longer norlish_tlm_longer"),
    "off": (
        "retrieval centred",
        "norlish_random norlish_tlm norlish_mlm_longer norlish_tlm_longer "
        "sumorian_mlm_longer sumorian_tlm_longer sumorian_both_longer",
    ),
    "slots": (
        OTHER,
        "norlish_mlm_longer norlish_tlm_longer norlish_both_longer "
        "sumorian_mlm_longer sumorian_tlm_longer sumorian_both_longer",
    ),
    "unread": ("slots unread own centred", "norlish_tlm_longer"),
    "english": ("slots english", "norlish_mlm_longer"),
}
RECIPES = {
    "respelled": "english respelled, 0% shared",
    "respelled_30": "english respelled, 30% shared",
    "norlish_0": "norlish, 0% shared",
    "norlish_30": "norlish, 30% shared",
    "norlish_100": "norlish, 100% shared",
}
SPELLINGS = {
    "slots": (OTHER, "respelled norlish_0 norlish_30"),
    "off": ("retrieval centred", "respelled respelled_30"),
    "all": ("slots other", "norlish_100"),
}

NUMBERS: dict[str, Callable[[], Any]] = {
    "mbert_parameters": lambda: parameters("mBERT, cased"),
    "mbert_words": lambda: words("mBERT, cased"),
    "xlm_r_words": lambda: words("XLM-R base"),
    "xlm_r_large_words": lambda: words("XLM-R large"),
    "pair_seeds": lambda: len(stored("10_pairs")["runs"]["norlish, TLM"]),
    "pair_looked_up": lambda: stored("10_pairs")["looked_up"],
    "pair_slots": lambda: stored("10_pairs")["slots"],
    "pair_majority": lambda: f"{stored('10_pairs')['majority']:.0%}",
    **{
        f"{said}_{name}": partial(pairs, measure, *_language_and_row(name))
        for said, (measure, names) in PAIRS.items()
        for name in names.split()
    },
    **{
        f"spell_{said}_{name}": partial(spelled, measure, RECIPES[name])
        for said, (measure, names) in SPELLINGS.items()
        for name in names.split()
    },
    "low_large": lambda: LARGE,
    "low_small": lambda: SMALL,
    "low_seeds": lambda: len(stored("10_low_resource")["runs"]["α = 1"]),
}

# Digits on the page with another meaning.
TYPED: dict[str, str] = {}
