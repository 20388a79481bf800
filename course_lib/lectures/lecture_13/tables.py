"""The short tables of page 13, from variants.toml and tables.toml, their numbers filled in; and the
source lecture's GLUE table rebuilt, one recipe a column."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from course_lib.teaching.averages import AVERAGES
from course_lib.teaching.claims import printed
from course_lib.teaching.numbers import millions
from course_lib.teaching.rooms import room_file

from .looked_up import average, cited, flops_of, keys_of, parameters_of, printed_at, with_numbers

SINGLE = ("test-9", "dev-9", "dev-8", "ALBERT-5")  # recipes that base-sized rows allow


@lru_cache(maxsize=2)
def _told(name: str) -> dict[str, Any]:
    return tomllib.loads(room_file("13", name).read_text(encoding="utf-8"))


# ---------------------------------------------------------------- the members


class Variant(NamedTuple):
    """A member in words; parameters as counted, empty where its size is not built here."""

    name: str
    new: str
    gains: str
    costs: str
    best_for: str
    parameters: str
    lecture: str


def variants() -> list[Variant]:
    """Every member of variants.toml."""
    return [
        Variant(
            entry["name"], entry["new"], with_numbers(entry["gains"]), with_numbers(entry["costs"]),
            entry["best_for"],
            millions(parameters_of(**entry["size"])) if "size" in entry else "",
            entry["lecture"],
        )
        for entry in _told("variants.toml")["variant"]
    ]  # fmt: skip


# ---------------------------------------------------------------- reading


class Paper(NamedTuple):
    """A paper, what of it to read, and the lecture it belongs to."""

    authors: str
    year: int
    title: str
    published: str
    read: str
    lecture: str
    essential: bool


def reading() -> list[Paper]:
    """The reading list; essential: the five that a source lecture names."""
    return [_paper(entry) for entry in _told("tables.toml")["reading"]]


def _paper(entry: dict[str, Any]) -> Paper:
    source = printed(entry["paper"])["paper"] if "paper" in entry else entry
    places = [f"arXiv {source['arxiv']}", entry.get("venue", "")]
    return Paper(
        source["authors"], source["year"], source["title"], ", ".join(filter(None, places)),
        entry["read"], entry["lecture"], entry.get("essential", False),
    )  # fmt: skip


def rows(name: str) -> list[dict[str, str]]:
    """A table of texts by its name, numbers filled in: "reason", "card", "board", "guideline" or
    "measure". Raises ValueError for another."""
    known = ("reason", "card", "board", "guideline", "measure")
    if name not in known:
        raise ValueError(f"table {name!r} was asked for; expected one of {', '.join(known)}.")
    return [
        {key: with_numbers(text) for key, text in entry.items()}
        for entry in _told("tables.toml")[name]
    ]


# ---------------------------------------------------------------- GLUE by one recipe


@dataclass(frozen=True)
class Compared:
    """A model of the source lecture's table: what it prints as GLUE score and as training cost,
    what that number is, what published rows give by each recipe (recipe -> averages, one for each
    row), and FLOPs of pre-training over BERT-base's, where printed."""

    model: str
    printed: float
    cost: str
    what: str
    by_recipe: dict[str, tuple[float, ...]]
    flops: float | None


def compared() -> list[Compared]:
    """The six models, rebuilt. A recipe without a published row is left out: it has no number."""
    entries = _told("tables.toml")["glue"]
    base = _at(entries[0]["flops"])
    return [
        Compared(
            entry["model"], entry["printed"], entry["cost"], with_numbers(entry["is"]),
            _by_recipe(entry), _at(entry["flops"]) / base if "flops" in entry else None,
        )
        for entry in entries
    ]  # fmt: skip


def _by_recipe(entry: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    """By every recipe that the rows of one data set allow, and the means that stand alone."""
    averages: dict[str, list[float]] = {}
    for row in entry.get("rows", ()):
        split = printed("glue")[row]["split"]
        for recipe in SINGLE:
            if AVERAGES[recipe].split != split:
                continue
            try:
                averages.setdefault(recipe, []).append(average(row, recipe))
            except ValueError:  # a task or one of its two numbers is not printed
                averages = {name: means for name, means in averages.items() if means}
    for recipe, path in entry.get("means", {}).items():
        averages.setdefault(recipe, []).append(_at(path))
    return {recipe: tuple(averages[recipe]) for recipe in SINGLE if averages.get(recipe)}


def _at(path: str) -> float:
    paper, *keys = keys_of(path)
    return float(printed_at(paper, keys)[0])


# ---------------------------------------------------------------- rankings


class Ranked(NamedTuple):
    """A ranking: by what, whose numbers, and (name, value) best first."""

    by: str
    source: str
    order: list[tuple[str, str]]


def rankings() -> list[Ranked]:
    """Understanding, many languages, domains, and three kinds of efficiency: each sorted by one
    number that is printed or counted."""
    return [_understanding(), _languages(), _domains(), *_efficiency()]


def _best_first(scores: dict[str, float]) -> list[tuple[str, str]]:
    return [(n, f"{v:.1f}") for n, v in sorted(scores.items(), key=lambda pair: -pair[1])]


def _understanding() -> Ranked:
    tables = printed("glue")
    names = {"XLNet-large (as in RoBERTa)": "xlnet_large_dev",
             "RoBERTa-large": "roberta_large_dev", "ALBERT-xxlarge": "albert_dev",
             "BERT-large": "bert_large_dev"}  # fmt: skip
    scores = {name: average(row, "dev-8") for name, row in names.items()}
    scores["ELECTRA-large"] = tables["means"]["electra_large_dev"]
    scores["DeBERTa-large"] = tables["means"]["deberta_large_dev"]
    scores["XLNet-large (as in ELECTRA)"] = printed("electra")["large"]["xlnet"]["glue"]
    return Ranked(
        "understanding: mean of eight GLUE development sets, one model, large",
        "RoBERTa, Table 5; ALBERT, Table 9; ELECTRA, Table 2; DeBERTa, Table 1 "
        "(recomputed); tenths of a point mean little",
        _best_first(scores),
    )


def _languages() -> Ranked:
    names = {"XLM-R-large": "large", "XLM-R-base": "base", "XLM (15 languages)": "xlm_mlm_tlm",
             "XLM (100 languages)": "xlm_100", "mBERT": "mbert"}  # fmt: skip
    table = printed("xlm_r")["zero_shot"]
    return Ranked(
        "many languages: XNLI, mean of 15, English labels alone",
        f"{cited('xlm_r')}, {table['where']}; of ALBERT there is no official multilingual release",
        _best_first({name: table[key] for name, key in names.items()}),
    )


def _domains() -> Ranked:
    table = printed("biobert")["afresh"]
    return Ranked(
        "one domain, medicine: BLURB",
        table["where"],
        _best_first({"PubMedBERT": table["pubmedbert"], "BioBERT": table["biobert"]}),
    )


def _efficiency() -> list[Ranked]:
    small = {"TinyBERT-4": ("tinybert", "4"), "MobileBERT": ("mobilebert", "base"),
             "DistilBERT": ("distilbert", "base"), "ALBERT-base": ("albert", "base"),
             "ELECTRA-small": ("electra", "small"), "BERT-base": ("bert", "base")}  # fmt: skip
    weights = sorted((parameters_of(*size), name) for name, size in small.items())
    work = sorted((flops_of(*size), name) for name, size in small.items())
    table = printed("electra")["small"]
    trained = {"ELECTRA-small": "electra_small", "BERT-small": "bert_small"}
    return [
        Ranked("fewest weights", "counted", [(name, millions(n)) for n, name in weights]),
        Ranked(
            "fewest FLOPs of a text", "counted, 128 tokens",
            [(name, f"{n / 1e9:.1f} G") for n, name in work],
        ),
        Ranked(
            "training: GLUE after equal FLOPs", f"{cited('electra')}, {table['where']}",
            _best_first({name: table[key]["glue"] for name, key in trained.items()}),
        ),
    ]  # fmt: skip
