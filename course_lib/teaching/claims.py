"""The ledger's form: what a claim is, how it is settled, and the table of a lecture's page."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from statistics import mean
from typing import Any, Literal

import torch
from torch import Tensor, nn

from course_lib.encoder import count_parameters
from course_lib.files import data_path

from .page import card, inline
from .results import in_words, read_result, shown
from .rooms import room

How = Literal["computed", "measured", "cited"]


class NotHere(Exception):
    """What a claim needs to be settled (weights, a result file) is not on this machine."""


@dataclass(frozen=True)
class Settled:
    """What came out: the value for the checker, words for the table, a spread where it has one."""

    value: Any
    detail: str
    spread: float | None = None


@dataclass(frozen=True)
class Claim:
    """One entry. they_say and it_is are paraphrases; who says where the claim can be read.

    settle() gives a Settled within five seconds, or raises NotHere. accepts(value): the tolerance.
    rejected must not pass: the printed value where it is wrong, else a plausible slip.
    A cited claim has none of the three, and names its evidence in settled_by.
    """

    id: str
    they_say: str
    who: str
    it_is: str
    how: How
    settled_by: str
    settle: Callable[[], Settled] | None = None
    accepts: Callable[[Any], bool] | None = None
    rejected: Any = None

    def __post_init__(self) -> None:
        complete = self.settle is not None and self.accepts is not None
        if (self.how == "cited") == complete or (complete and self.rejected is None):
            raise ValueError(
                f"claim {self.id} is {self.how}; expected a cited claim to have no settle and "
                "accepts, any other to have both and a rejected value. Add or remove them."
            )


computed, measured, cited = (
    partial(Claim, how="computed"), partial(Claim, how="measured"), partial(Claim, how="cited")
)  # fmt: skip

COLUMNS = ("they say", "who", "it is", "you measured", "settled by")


@dataclass(frozen=True, repr=False)
class ClaimsTable:
    """Rows of five texts, drawn as a table in a notebook and line by line elsewhere."""

    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, entries: Sequence[Claim]) -> ClaimsTable:
        return cls(tuple(_row(entry) for entry in entries))

    def __repr__(self) -> str:
        blocks = (
            "\n".join(f"{name:>13}: {text}" for name, text in zip(COLUMNS, row, strict=True))
            for row in self.rows
        )
        return "\n\n".join(blocks)

    def _repr_html_(self) -> str:
        cell = "font-size:13px;text-align:left;vertical-align:top;padding:4px 8px 4px 0"
        cell += ";white-space:normal;border-bottom:1px solid #ccc"
        head = "".join(f'<th scope="col" style="{cell}">{name}</th>' for name in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f'<td style="{cell}">{inline(text)}</td>' for text in row) + "</tr>"
            for row in self.rows
        )
        table = "border-collapse:collapse;max-width:100%"
        rows = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        return card(f'<table style="{table}">{rows}</table>', "course-claims", width=960)


def _row(entry: Claim) -> tuple[str, ...]:
    return (entry.they_say, entry.who, entry.it_is, _outcome(entry), entry.settled_by)


def _outcome(entry: Claim) -> str:
    """The words of the fourth column; a surprising outcome says so instead of hiding."""
    if entry.settle is None or entry.accepts is None:
        return "not measurable here"
    try:
        found = entry.settle()
    except NotHere as missing:
        return f"not settled on this machine: {missing}"
    surprise = "" if entry.accepts(found.value) else " (not what this entry says: please report it)"
    return found.detail + surprise


def result(name: str) -> dict[str, Any]:
    """A results file; raises NotHere where the experiment has not been run yet."""
    try:
        return read_result(name)
    except FileNotFoundError as error:
        raise NotHere(f"the result {name} has not been made yet") from error


@lru_cache(maxsize=8)
def printed(paper: str) -> dict[str, Any]:
    """The printed tables of a paper, from data/papers/<paper>.toml."""
    return tomllib.loads(data_path("papers", f"{paper}.toml").read_text(encoding="utf-8"))


def difference(paper: str, table: str, row: str, against: str, digits: int = 2) -> dict[str, float]:
    """Points by which one printed row of a paper's table exceeds another, by column."""
    rows = printed(paper)[table]
    cells = zip(rows["columns"], rows[row], rows[against], strict=True)
    return {column: round(a - b, digits) for column, a, b in cells}


def in_points(differences: Mapping[str, float]) -> str:
    """Differences as a claim's detail says them: "QNLI +3.5, MNLI-m +0.5"."""
    return ", ".join(f"{name} {points:+.1f}" for name, points in differences.items())


@cache
def parameters(model: Callable[[str], nn.Module], size: str) -> int:
    """Parameters of a published size, counted on the meta device: shapes without memory."""
    with torch.device("meta"):
        return count_parameters(model(size))


def processor_time_ratios(first: nn.Module, second: nn.Module, ids: Tensor) -> list[float]:
    """How many times the processor time of `first` `second` takes on ids, in each of 15 rounds.

    In a round both run, in turns first; two more rounds before them warm up."""
    ratios = []
    with torch.no_grad():
        for number in range(17):
            spent = {}
            for model in (first, second) if number % 2 else (second, first):
                begun = time.process_time()
                model(ids)
                spent[model] = time.process_time() - begun
            ratios.append(spent[second] / spent[first])
    return ratios[2:]


def near(expected: float, tolerance: float) -> Callable[[Any], bool]:
    """A checker: a number within `tolerance` of `expected`."""
    return lambda value: abs(value - expected) <= tolerance


def is_(expected: Any) -> Callable[[Any], bool]:
    """A checker: exactly this."""
    return lambda value: value == expected


def all_near(expected: Sequence[float], tolerance: float) -> Callable[[Any], bool]:
    """A checker: as many numbers, each within `tolerance`."""
    return lambda value: (
        len(value) == len(expected)
        and all(abs(a - b) <= tolerance for a, b in zip(value, expected, strict=True))
    )


def verdict(differences: Sequence[float]) -> str:
    """In words: the mean of one difference a seed, in points, and whether all agree on its sign."""
    points = f"{100 * mean(differences):+.1f}".replace("-", "−")
    if len(differences) == 1:
        return f"{points} (one seed)"
    if all(difference > 0 for difference in differences):
        return f"{points} (better in every seed)"
    if all(difference < 0 for difference in differences):
        return f"{points} (worse in every seed)"
    return f"{points} (the seeds disagree)"


def compared(
    name: str, measure: str, runs: Sequence[str], against: str, called: str | None = None
) -> Settled:
    """What runs of a results file reached, less what the run `against` did, on the seeds both have.

    measure: a number from 0 to 1 that every run records; called: its name in words. The value is
    one mean difference a run. Raises NotHere where the results file has not been made yet."""
    found = result(name)["runs"]
    reached = {run: {one["seed"]: one[measure] for one in found[run]} for run in (*runs, against)}
    base = reached.pop(against)
    gained = {
        run: [of[seed] - base[seed] for seed in sorted(of.keys() & base.keys())]
        for run, of in reached.items()
    }
    said = "; ".join(f"{shown(run)} {verdict(points)}" for run, points in gained.items())
    said = (
        f"{called or measure}: {shown(against)} {in_words(list(base.values()))}; in points, {said}"
    )
    return Settled(tuple(mean(points) for points in gained.values()), said)


def claims(lecture: str) -> tuple[Claim, ...]:
    """The entries of a lecture, in the order of its page: claims("02").

    Raises ValueError for a lecture without claims, and lists those that have some.
    """
    entries: tuple[Claim, ...] = room(lecture, "claims").CLAIMS
    return entries


@cache
def settled(lecture: str, id: str) -> Settled:
    """What comes out of one claim of a lecture that is computed or measured."""
    settle = next(entry.settle for entry in claims(lecture) if entry.id == id)
    assert settle is not None, f"claim {id} of lecture {lecture} is cited: nothing to settle"
    return settle()


def claims_table(lecture: str, only: Sequence[str] | None = None) -> ClaimsTable:
    """They say, it is, you measured: every claim of a lecture, settled now.

    only: the ids of those to show. Raises ValueError for an id that the lecture does not have.
    """
    entries = claims(lecture)
    if only is not None:
        by_id = {entry.id: entry for entry in entries}
        if missing := [id for id in only if id not in by_id]:
            raise ValueError(
                f"claims {missing} were asked for; lecture {lecture} has {', '.join(by_id)}."
            )
        entries = tuple(by_id[id] for id in only)
    return ClaimsTable.of(entries)
