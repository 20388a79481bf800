"""The numbers that sentences of lecture 11 say: printed, counted, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import percent
from course_lib.teaching.results import stored
from course_lib.text.domains import INSTALL
from course_lib.text.english import finance

from .views.results import (
    ADDED,
    ADDED_RANDOM,
    AFRESH,
    CONTINUED,
    GENERAL,
    LONGER,
    MIXED,
    RANDOM,
    REPLACED,
    finance_rows,
    switch,
    ways,
)

WAYS = {
    "general": GENERAL, "continued": CONTINUED, "mixed": MIXED, "afresh": AFRESH, "longer": LONGER,
    "added": ADDED, "drawn": ADDED_RANDOM, "replaced": REPLACED, "random": RANDOM,
}  # fmt: skip
MEASURES = {
    "own": "in domain", "old": "general", "chapters": "chapters", "tags": "added words",
}  # fmt: skip
SAID = (
    "own_general own_continued own_mixed own_afresh own_longer own_added own_replaced "
    "old_general old_continued old_mixed old_added "
    "chapters_general chapters_continued chapters_afresh chapters_longer chapters_random "
    "tags_general tags_continued"
)
LAW = {"general": GENERAL, "continued": CONTINUED, "replaced": REPLACED, "random": RANDOM}
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


def labels(task: str, which: int) -> int:
    """How many labelled texts a task of medicine has: 0 to learn from, 1 to be tested on."""
    count: int = stored("11_switches")["sizes"][task][which]
    return count


def of_legal_bert(what: str) -> int:
    """How many texts of a kind LEGAL-BERT has read."""
    count: int = printed("legal_bert")["text"][what]
    return count


def news_of(start: str, measure: str) -> str:
    """The mean over the seeds, of the "plain" or the "hedged" sentences or all, in percent."""
    return percent(finance_rows(measure)[start])


def fertility(domain: str, which: str) -> str:
    """Pieces a word of a domain's held-out text under a vocabulary."""
    return f"{stored('11_words')['domains'][domain]['fertility'][which]:.2f}"


def repeated(domain: str, by: str) -> str:
    """Runs of eight words of the held-out text that stand in the other part."""
    return f"{stored('11_words')['domains'][domain]['repeated'][by]:.0%}"


def sentence(domain: str) -> str:
    """The mean number of words of a sentence."""
    return f"{stored('11_words')['domains'][domain]['sentence']['mean']:.0f}"


def trait(domain: str, what: str) -> str:
    """Latin phrases in 10,000 words, or subordinating words a sentence."""
    return f"{stored('11_words')['domains'][domain][what]:.1f}"


def pieces(word: str, which: str) -> str:
    """A word as a vocabulary cuts it."""
    return " ".join(stored("11_words")["pieces"][word][which])


NUMBERS: dict[str, Callable[[], Any]] = {
    **{
        said: partial(way, MEASURES[said.split("_")[0]], WAYS[said.split("_")[1]])
        for said in SAID.split()
    },
    **{
        f"law_own_{name}": partial(way, "in domain", LAW[name], "11_law")
        for name in ("general", "continued", "replaced")
    },
    **{
        f"law_licences_{name}": partial(way, "licences", row, "11_law") for name, row in LAW.items()
    },
    **{
        f"switch_{said}": partial(switched, SWITCHES[said])
        for said in ("chapters", "both", "tags", "padded", "padded_128")
    },
    "lost_both": partial(lost, "both"),
    "lost_third": partial(lost, "third"),
    **{
        f"still_{said}": partial(switched, SWITCHES[said], "general")
        for said in ("chapters", "both", "third")
    },
    "finance_best": lambda: percent(max(finance_rows().values(), key=mean)),
    **{
        f"finance_{half}_{said}": partial(news_of, name, half)
        for half in ("plain", "hedged")
        for said, name in (("course", "course-bert"), ("minilm", "MiniLM"))
    },
    "bag_finance": partial(news_of, "counting words", "score"),
    "finance_tested": lambda: len(finance("test")),
    "finance_learned": lambda: len(finance("train")),
    "live_general": partial(way, "general", GENERAL, "11_law"),  # the same model and sentences
    "own_third": partial(on_the_way, "continued", 2, "medicine"),
    "old_third": partial(on_the_way, "continued", 2, "general"),
    "start_means_own": partial(on_the_way, "added", 0, "medicine"),
    "start_means_old": partial(on_the_way, "added", 0, "general"),
    "start_random_own": partial(on_the_way, "drawn", 0, "medicine"),
    "start_random_old": partial(on_the_way, "drawn", 0, "general"),
    "look_means_own": partial(on_the_way, "added", 1, "medicine"),
    "look_random_own": partial(on_the_way, "drawn", 1, "medicine"),
    "afresh_steps": lambda: stored("11_medicine")["runs"][AFRESH][0]["steps"],
    "mixed_steps": lambda: stored("11_medicine")["runs"][MIXED][0]["steps"],
    "added": lambda: (
        stored("11_medicine")["runs"][ADDED][0]["vocabulary"]
        - stored("11_medicine")["runs"][CONTINUED][0]["vocabulary"]
    ),
    "chapters_labels": partial(labels, "chapters", 0),
    "chapters_tested": partial(labels, "chapters", 1),
    "tags_labels": partial(labels, "added words", 0),
    "tags_tested": partial(labels, "added words", 1),
    "bag_chapters": lambda: percent(stored("11_medicine")["without_encoder"]["chapters"]),
    "bag_licences": lambda: percent(stored("11_law")["without_encoder"]["licences"]),
    "rule_tags": lambda: percent(stored("11_medicine")["without_encoder"]["added words"]),
    "seeds": lambda: ("one", "two", "three")[len(ways("general")[CONTINUED]) - 1],
    "budget": lambda: stored("11_medicine")["runs"][CONTINUED][0]["steps"],
    **{
        f"pieces_{domain}_{said}": partial(fertility, domain, which)
        for domain in ("general", "medicine", "law", "finance")
        for said, which in (("bert", "bert-base"), ("course", "course"))
    },
    "repeated_law_family": partial(repeated, "law", "by family"),
    "repeated_law_random": partial(repeated, "law", "at random"),
    "shared_medicine": lambda: f"{stored('11_words')['domains']['medicine']['shared']:.0%}",
    "shared_finance": lambda: f"{stored('11_words')['domains']['finance']['shared']:.0%}",
    "sentence_law": partial(sentence, "law"),
    "sentence_general": partial(sentence, "general"),
    "sentence_finance": partial(sentence, "finance"),
    "cut_retinopathy": lambda: len(
        stored("11_words")["pieces"]["diabetic retinopathy"]["bert-base"]
    ),
    **{
        f"cut_{word.lower()}": partial(pieces, word, "bert-base")
        for word in ("BRCA1", "TP53", "EGFR", "metformin", "aspirin", "ibuprofen")
    },
    **{f"own_{word.lower()}": partial(pieces, word, "medicine") for word in ("BRCA1", "aspirin")},
    **{
        f"{what}_{domain}": partial(trait, domain, what)
        for what in ("latin", "clauses")
        for domain in ("law", "general")
    },
    "biobert_read": lambda: printed("biobert")["words"]["pubmed"],
    "biobert_pmc": lambda: printed("biobert")["words"]["pmc"],
    "biobert_inherited": lambda: sum(
        printed("biobert")["words"][x] for x in ("wikipedia", "books")
    ),
    "legal_eu": partial(of_legal_bert, "eu_laws"),
    "legal_uk": partial(of_legal_bert, "uk_laws"),
    "legal_ecj": partial(of_legal_bert, "ecj_cases"),
    "legal_echr": partial(of_legal_bert, "echr_cases"),
    "fin_vocab": lambda: printed("finbert")["yang"]["vocabulary_uncased"],
    "install": lambda: INSTALL.replace("python -m ", "%"),
}

TYPED = {
    "1.2": "FinBERT's divisor",
    "15%": "hidden words, a setting",
    "2,000": "frequent words, and licences",
}
