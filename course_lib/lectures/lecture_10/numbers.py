"""The numbers that sentences of lecture 10 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.teaching.numbers import millions, percent
from course_lib.teaching.results import outcome, stored

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


ROW = {
    "random": "random initialisation", "mlm": "MLM", "tlm": "TLM", "mlm_longer": "MLM, longer",
    "tlm_longer": "TLM, longer",
}  # fmt: skip
SPELLING = {
    "respelled": "english respelled, 0% shared",
    "respelled_30": "english respelled, 30% shared",
    "norlish_0": "norlish, 0% shared",
    "norlish_30": "norlish, 30% shared",
    "norlish_100": "norlish, 100% shared",
}
MEASURE = {
    "found": "retrieval", "found_off": "retrieval centred", "slots": OTHER,
    "slots_unread": "slots unread own centred", "slots_english": "slots english",
    "slots_all": "slots other",
}  # fmt: skip
SAID = """
found_norlish_mlm found_norlish_tlm found_norlish_mlm_longer found_norlish_tlm_longer
"""


NUMBERS: dict[str, Callable[[], Any]] = {
    "mbert_parameters": lambda: parameters("mBERT, cased"),
    "mbert_words": lambda: words("mBERT, cased"),
    "xlm_r_words": lambda: words("XLM-R base"),
    "xlm_r_large_words": lambda: words("XLM-R large"),
    "pair_sentences": lambda: stored("10_pairs")["sentences"],
    "pair_seeds": lambda: len(stored("10_pairs")["runs"]["norlish, TLM"]),
    "pair_majority": lambda: f"{stored('10_pairs')['majority']:.0%}",
}

# Digits on the page with another meaning.
TYPED: dict[str, str] = {}
