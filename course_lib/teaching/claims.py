"""The ledger's form: what a claim is, how it is settled, and the table of a lecture's page."""

from __future__ import annotations

import re
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache, partial
from html import escape
from statistics import mean
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.encoder import count_parameters
from course_lib.files import data_path

from .numbers import filled, shared, signed
from .page import card, inline
from .results import in_words, read_result, shown
from .rooms import room, room_file, two_digits

How = Literal["computed", "measured", "regression check", "cited"]
Verdict = Literal["true", "true under a condition", "false", "not settled here"]
SIGNS = {  # a sign and a colour, as colour alone says nothing to some
    "true": ("✓", "#006b4f"), "true under a condition": ("◐", "#00558a"),
    "false": ("✗", "#a03c00"), "not settled here": ("?", "#555555"),
}  # fmt: skip


Outcome = Literal[
    "reproduced in miniature",
    "reproduced under a condition",
    "contradicted",
    "not settled here",
    "not testable here",
]


@dataclass(frozen=True)
class Headline:
    """A claim that a paper is known for, and what became of it at the size of this course.

    because: the condition, the causes that were tested, why runs did not settle it, or why there
    are none."""

    paper: str
    outcome: Outcome
    because: str = ""


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
    """One entry. they_say and it_is are paraphrases; who says where the claim can be read, verdict
    what becomes of it.

    settle() gives a Settled within five seconds, or raises NotHere. accepts(value): the tolerance.
    rejected must not pass: the printed value where it is wrong, else a plausible slip.
    A cited claim has none of the three, and names its evidence in settled_by. claims.toml says how
    each is written (see `entries`).
    """

    id: str
    they_say: str
    who: str
    it_is: str
    verdict: Verdict
    how: How
    settled_by: str
    settle: Callable[[], Settled] | None = None
    accepts: Callable[[Any], bool] | None = None
    rejected: Any = None
    headline: Headline | None = None

    def __post_init__(self) -> None:
        run_here = self.how in ("measured", "regression check")
        if self.headline is not None and run_here == (self.headline.outcome == "not testable here"):
            raise ValueError(
                f"claim {self.id} is {self.how} and its headline {self.headline.outcome}; expected "
                "'not testable here' for what was not run here, and for nothing else."
            )
        complete = self.settle is not None and self.accepts is not None
        if (self.how == "cited") == complete or (complete and self.rejected is None):
            raise ValueError(
                f"claim {self.id} is {self.how}; expected a cited claim to have no settle and "
                "accepts, any other to have both and a rejected value. Add or remove them."
            )


CHECKS = ("let", "value", "detail", "expected", "tolerance", "accepts", "rejected", "rejects")


def entries(lecture: str) -> tuple[Claim, ...]:
    """The claims that the room's claims.toml tells, in its order.

    An entry that is settled here has `value`, an expression over the names of the room's claims.py,
    of this module and of numbers.shared(), and over those that the entry's own `let` names. It
    gives a Settled, or a plain value, of which `detail` (a text with {{number:…}}) then says what
    came out. The value must be `expected`, within a
    `tolerance` if there is one, or else make the expression `accepts` true; lists stand for tuples.
    `rejected`, or what the expression `rejects` gives, must not pass. Raises ValueError for a key
    that no claim has."""
    content = tomllib.loads(room_file(lecture, "claims.toml").read_text(encoding="utf-8"))
    return tuple(_claim(lecture, id, text) for id, text in content.items())


def _claim(lecture: str, id: str, entry: Mapping[str, Any]) -> Claim:
    known = {field.name for field in fields(Claim)} | set(CHECKS)
    if strange := entry.keys() - known:
        raise ValueError(
            f"claim {id} of lecture {lecture} has {', '.join(sorted(strange))}; a claim in "
            f"claims.toml may have {', '.join(sorted(known))}."
        )
    text = {key: value for key, value in entry.items() if key not in CHECKS}
    if "headline" in text:
        text["headline"] = Headline(**text["headline"])
    if not (entry.keys() & set(CHECKS)):
        return Claim(id=id, **text)
    compute = partial(_computed, lecture)
    return Claim(
        id=id,
        **text,
        settle=partial(_settle, lecture, entry) if "value" in entry else None,
        accepts=_checker(lecture, entry),
        rejected=compute(entry["rejects"]) if "rejects" in entry else _tuple(entry.get("rejected")),
    )


def _computed(lecture: str, expression: str, **more: Any) -> Any:
    """An expression of claims.toml."""
    return eval(expression, _names(lecture) | more)


def _names(lecture: str) -> dict[str, Any]:
    """What an expression may say; the room's names come before all others."""
    return globals() | shared() | vars(room(lecture, "claims"))


def _settle(lecture: str, entry: Mapping[str, Any]) -> Settled:
    names = _names(lecture)
    try:
        for name, expression in {**entry.get("let", {}), "value": entry["value"]}.items():
            names[name] = eval(expression, names)
        value = names["value"]
        if isinstance(value, Settled):
            return value
        return Settled(value, filled(lecture, entry["detail"], names))
    except NotHere:
        raise
    except Exception as error:
        error.add_note(f"lecture {lecture}, claims.toml: value = {entry['value']!r}")
        raise


def _checker(lecture: str, entry: Mapping[str, Any]) -> Callable[[Any], bool] | None:
    """Of what `expected` (and `tolerance`) or `accepts` says; None where it says neither."""
    if "accepts" in entry:
        return lambda value: bool(_computed(lecture, entry["accepts"], value=value))
    if "expected" not in entry:
        return None
    expected = _tuple(entry["expected"])
    if "tolerance" not in entry:
        return is_(expected)
    within = all_near if isinstance(expected, tuple) else near
    return within(expected, entry["tolerance"])


def _tuple(value: Any) -> Any:
    """TOML's lists as tuples, however deep."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


class Row(NamedTuple):
    """A claim as its card tells it; `how` and `measured` say what was run, or that nothing was."""

    verdict: Verdict
    they_say: str
    who: str
    it_is: str
    how: How
    measured: str
    settled_by: str


@dataclass(frozen=True, repr=False)
class ClaimsTable:
    """A card a claim in a notebook, verdict first, evidence on a click; line by line elsewhere."""

    rows: tuple[Row, ...]

    @classmethod
    def of(cls, entries: Sequence[Claim]) -> ClaimsTable:
        return cls(tuple(_row(entry) for entry in entries))

    @property
    def counted(self) -> str:
        """How many claims are true, true under a condition, false, not settled here."""
        return counted(SIGNS, (row.verdict for row in self.rows))

    def __repr__(self) -> str:
        blocks = (
            f"{SIGNS[row.verdict][0]} {row.verdict}\n"
            + "\n".join(f"{name.replace('_', ' '):>13}: {text}" for name, text in _told(row))
            for row in self.rows
        )
        return "\n\n".join([self.counted, *blocks])

    def _repr_html_(self) -> str:
        cards = "".join(_card(row) for row in self.rows)
        return card(f"{headed(self.counted)}{cards}", "course-claims", width=820)


def _told(row: Row) -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in row._asdict().items() if name != "verdict")


def _card(row: Row) -> str:
    who = f' <span style="color:#555">{inline(row.who)}</span>'
    evidence = {"how": row.how, "found": row.measured, "by": row.settled_by}
    head = f"“{inline(row.they_say)}”{who}"
    return signed_card(SIGNS, row.verdict, head, row.it_is, f"{row.how}: the evidence", evidence)


def counted(signs: Mapping[str, tuple[str, str]], verdicts: Iterable[str]) -> str:
    """How often each word occurs, beside its sign and in the order of the signs."""
    counts = Counter(verdicts)
    return " · ".join(f"{signs[word][0]} {counts[word]} {word}" for word in signs if counts[word])


def headed(text: str) -> str:
    """The line above a table of cards."""
    return f'<p style="margin:0 0 6px"><b>{escape(text)}</b></p>'


def signed_card(
    signs: Mapping[str, tuple[str, str]], word: str, head: str, body: str, summary: str,
    evidence: Mapping[str, str],
) -> str:  # fmt: skip
    """A card: sign and word first, then the claim (HTML) and what is so; the evidence unfolds."""
    sign, colour = signs[word]
    frame = f"border-left:4px solid {colour};padding:4px 10px;margin:0 0 8px;background:#fafafa"
    lines = "".join(
        f"<div><b>{name}</b> {inline(text)}</div>" for name, text in evidence.items() if text
    )
    return (
        f'<div style="{frame}"><div><b style="color:{colour}">{sign} {word}</b> {head}</div>'
        + (f"<div>{inline(body)}</div>" if body else "")
        + f'<details style="font-size:13px"><summary>{summary}</summary>{lines}</details></div>'
    )


def _row(entry: Claim) -> Row:
    return Row(
        entry.verdict, entry.they_say, entry.who, entry.it_is, entry.how,
        outcome_of(entry), entry.settled_by,
    )  # fmt: skip


def outcome_of(entry: Claim) -> str:
    """What came out, in words; a surprising outcome says so instead of hiding."""
    if entry.settle is None or entry.accepts is None:
        return "nothing was run for it here"
    try:
        out = entry.settle()
    except NotHere as missing:
        return f"not settled on this machine: {missing}"
    except Exception as error:
        error.add_note(f"Claim {entry.id} was being settled; see its results file in data/results.")
        raise
    surprise = "" if entry.accepts(out.value) else " (not what this entry says: please report it)"
    return re.sub(r"(?:^|(?<=[\s(]))-(?=\d)", "−", out.detail) + surprise


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


def gained(paper: str, table: str, row: str, against: str, *columns: str) -> Settled:
    """The differences of two printed rows: all are said, the value has those asked for, or all."""
    by_column = difference(paper, table, row, against)
    return Settled(tuple(by_column[name] for name in columns or by_column), in_points(by_column))


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
        for turn in range(17):
            spent = {}
            for model in (first, second) if turn % 2 else (second, first):
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
    points = signed(100 * mean(differences))
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
    records = result(name)["runs"]
    reached = {run: {one["seed"]: one[measure] for one in records[run]} for run in (*runs, against)}
    base = reached.pop(against)
    gained = {
        run: [of[seed] - base[seed] for seed in sorted(of.keys() & base.keys())]
        for run, of in reached.items()
    }
    gains = "; ".join(f"{shown(run)} {verdict(points)}" for run, points in gained.items())
    level = f"{called or measure}: {shown(against)} {in_words(list(base.values()))}"
    value = tuple(mean(points) for points in gained.values())
    return Settled(value, f"{level}; in points, {gains}")


def combined(comparisons: Sequence[Settled]) -> Settled:
    """Several comparisons of one run each as one: their differences, and their details in a row."""
    details = "; ".join(comparison.detail for comparison in comparisons)
    return Settled(tuple(comparison.value[0] for comparison in comparisons), details)


@cache
def claims(lecture: str) -> tuple[Claim, ...]:
    """The entries of a lecture, in the order of its page: claims("02").

    Raises ValueError for a lecture without claims, and lists those that have some.
    """
    room(lecture, "claims")
    return entries(two_digits(lecture))


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
