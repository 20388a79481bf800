"""The measured numbers that sentences of lecture 17 say."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from statistics import fmean
from typing import Any

from course_lib.teaching.results import stored

from .more import CANDIDATES, CROSS, THIRD, UNTRAINED
from .search import PIECE, SHARED, TESTS

FILE, FURTHER = "17_search", "17_more"


def runs_of(name: str) -> list[dict[str, Any]]:
    """The runs of a way to search, or of a further trial, one a seed."""
    file = FILE if name in stored(FILE)["runs"] else FURTHER
    runs: list[dict[str, Any]] = stored(file)["runs"][name]
    return runs


def reached(name: str, split: str, what: str = "ndcg") -> list[float]:
    """What each seed of a way reached on a split."""
    return [run[split][what] for run in runs_of(name)]


def mean_of(name: str, split: str, what: str = "ndcg") -> str:
    """The mean of its seeds, as ".543"."""
    return figure(fmean(reached(name, split, what)))


def figure(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def signed(value: float) -> str:
    """A difference, as "+.031"."""
    return f"{'+' if value >= 0 else '−'}{figure(abs(value))}"


def beside(name: str, other: str, split: str, what: str = "ndcg", of: str = "ndcg") -> str:
    """How much further a way is than another, as "+.031"."""
    return signed(fmean(reached(name, split, what)) - fmean(reached(other, split, of)))


def on_course(name: str, of: str = "quiz", way: str = "alone", what: str = "ndcg") -> str:
    """What a way to search reaches on the course's own pages; a gain with its sign."""
    runs = stored("17_course")["runs"][name]
    value = fmean(run[of][way][what] for run in runs)
    return signed(value) if what == "gain" else figure(value)


def questions_on_course(of: str) -> int:
    """How many questions find a page, "quiz", or a section, "sections"."""
    count: int = stored("17_course")["texts"][of]
    return count


def where_few_words(name: str, split: str, upto: int = 1) -> float:
    """nDCG@10 over the queries that share at most so many words with their document, mean of the
    seeds."""
    return fmean(_joined(run[split]["by_shared"], SHARED[: upto + 1]) for run in runs_of(name))


def where_many_words(name: str, split: str, least: int = 3) -> float:
    """The same over those that share at least so many."""
    return fmean(_joined(run[split]["by_shared"], SHARED[least:]) for run in runs_of(name))


def _joined(groups: dict[str, dict[str, float]], names: tuple[str, ...]) -> float:
    here = [groups[name] for name in names if name in groups]
    return sum(x["ndcg"] * x["queries"] for x in here) / sum(x["queries"] for x in here)


def queries(split: str) -> int:
    count: int = stored(FILE)["texts"][split]["pairs"]
    return count


def cross_seconds() -> float:
    """Processor time of a cross-encoder's search, in seconds a query."""
    count = sum(-(-queries(split) // THIRD) for split in ("dev", *TESTS))
    return fmean(run["cpu_seconds"] - run["train_seconds"] for run in runs_of(CROSS)) / count


def cross_loss() -> float:
    """The cross-encoder's loss over its last steps, among one right and three wrong documents."""
    return fmean(run["loss"] for run in runs_of(CROSS))


def at_size(name: str, size: int, split: str) -> str:
    """nDCG@10 of a token table by the first `size` numbers of its vectors."""
    return figure(fmean(run["sizes"][split][str(size)] for run in runs_of(name)))


NUMBERS: dict[str, Callable[[], Any]] = {
    "chance_loss": lambda: f"{log(4):.2f}",
}

# Digits that are computed here, and that a sentence also types with another meaning.
TYPED = {"128": "tokens of a document that a model reads; TF-IDF has .128 somewhere"}
