"""The numbers that sentences of lecture 11 say: printed, counted, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.checkpoints import load_pretrained
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import in_letters, percent
from course_lib.teaching.results import outcome, stored
from course_lib.teaching.verdicts import by_rule
from course_lib.text.domains import INSTALL
from course_lib.text.english import finance

from .claims import counting
from .tasks import short_sentences
from .views.results import (
    ADDED,
    ADDED_RANDOM,
    AFRESH,
    BAG,
    CONTINUED,
    FINE_TUNED_AT,
    GENERAL,
    LONGER,
    MIXED,
    NEIGHBOURS,
    RANDOM,
    REPLACED,
    TASK_TEXT,
    finance_rows,
    labelled,
    switch,
    ways,
)
from .ways import GENERAL as CHECKPOINT
from .whole_words import bits_a_character

WAYS = {
    "general": GENERAL, "continued": CONTINUED, "mixed": MIXED, "afresh": AFRESH, "longer": LONGER,
    "added": ADDED, "drawn": ADDED_RANDOM, "replaced": REPLACED, "random": RANDOM,
}  # fmt: skip
MEASURES = {
    "own": "in domain", "old": "general", "chapters": "chapters", "tags": "added words",
}  # fmt: skip
SWITCHES = {
    "chapters": "chapters",
    "layers": "chapters, layer-wise rates",
    "unfreeze": "chapters, gradual unfreezing",
    "both": "chapters, both",
    "third": "chapters, a third of the rate",
    "natural": "natural chapters",
    "weights": "natural chapters, weights",
    "tags": "added words",
    "padded": "added words, loss over 32 positions",
    "padded_128": "added words, loss over 128 positions",
}


def way(measure: str, name: str, file: str = "11_medicine") -> str:
    """What a way reached, the mean over the seeds, in percent."""
    return percent(ways(measure, file)[name])


def switched(name: str, measure: str = "score") -> str:
    """What a switch's runs reached, the mean over the seeds, in percent."""
    return percent(switch(name, measure))


def on_the_way(name: str, look: int, measure: str) -> str:
    """What a way's model had found at a look on the way, the mean over the seeds, in percent."""
    runs = stored("11_medicine")["runs"][WAYS[name]]
    return percent([run["curve"][look][measure] for run in runs])


def lost(name: str) -> str:
    """Points that a switch costs chapters, the mean over the seeds."""
    points = mean(switch(SWITCHES["chapters"])) - mean(switch(SWITCHES[name]))
    return f"{100 * points:.0f}"


def news_of(start: str, measure: str) -> str:
    """The mean over the seeds, of the "plain" or the "hedged" sentences or all, in percent."""
    return percent(finance_rows(measure)[start])


def labelled_at(task: str, start: str, *rates: float) -> str:
    """What a start of `11_labels` reached in a task, the mean over the seeds, in percent: at the
    best of these rates, or of all that were tried."""
    return percent(labelled(task, rates or FINE_TUNED_AT)[start])


def hidden_at(text: str, start: str) -> str:
    """Hidden words, of the domain or of general text, that a start of `11_labels` finds."""
    return percent(outcome(stored("11_labels"), text)[start])


def bits_at(text: str, start: str) -> str:
    """Bits a character of hidden words, of the domain or of general text."""
    return f"{mean(outcome(stored('11_labels'), f'{text}, bits')[start]):.2f}"


def even_bits(field: str) -> str:
    """The same of a guess that gives every piece of the general model the same probability."""
    tokenizer: Any = load_pretrained(CHECKPOINT).tokenizer

    class EvenGuess(nn.Module):
        def forward(self, ids: Tensor, mask: Tensor) -> Any:
            return SimpleNamespace(logits=torch.zeros(*ids.shape, tokenizer.vocab_size))

    model: Any = EvenGuess()
    return f"{bits_a_character(model, tokenizer, short_sentences(field)):.2f}"


def against(task: str, start: str, other: str) -> str:
    """The rule's word for two starts of `11_labels`."""
    scores = labelled(task)
    return by_rule(scores[start], scores[other])


def fertility(domain: str, which: str) -> str:
    """Pieces a word of a domain's held-out text under a vocabulary."""
    return f"{stored('11_words')['domains'][domain]['fertility'][which]:.2f}"


def pieces(word: str, which: str) -> str:
    """A word as a vocabulary cuts it."""
    return " ".join(stored("11_words")["pieces"][word][which])


NUMBERS: dict[str, Callable[[], Any]] = {
    "own_general": partial(way, MEASURES["own"], GENERAL),
    "own_continued": partial(way, MEASURES["own"], CONTINUED),
    "own_third": partial(on_the_way, "continued", 2, "medicine"),
    "old_third": partial(on_the_way, "continued", 2, "general"),
    "start_means_old": partial(on_the_way, "added", 0, "general"),
    "start_random_old": partial(on_the_way, "drawn", 0, "general"),
    "added": lambda: (
        stored("11_medicine")["runs"][ADDED][0]["vocabulary"]
        - stored("11_medicine")["runs"][CONTINUED][0]["vocabulary"]
    ),
    "points_behind": lambda: in_letters(round(-100 * counting().value[0])),
    "bag_chapters": lambda: percent(stored("11_medicine")["without_encoder"]["chapters"]),
    "budget": lambda: stored("11_medicine")["runs"][CONTINUED][0]["steps"],
    "cut_retinopathy": lambda: len(
        stored("11_words")["pieces"]["diabetic retinopathy"]["bert-base"]
    ),
    "biobert_inherited": lambda: sum(
        printed("biobert")["words"][x] for x in ("wikipedia", "books")
    ),
}

TYPED = {
    "50%": "chance between two",
    "400": "unseen titles of the order of words",
    "1.2": "FinBERT's divisor",
    "15%": "hidden words, a setting",
    "2,000": "frequent words, and licences",
}
