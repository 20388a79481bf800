"""What became of each paper's headline claims at this course's size: one table of all lectures.

`python -m course_lib.teaching.replication` gathers the claims that a room marks with a headline,
settles them and writes data/results/replication.json; page 00 shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from course_lib.files import DamagedDataError, data_root, read_result, write_atomic, write_manifest

from .claims import claims, counted, headed, outcome_of, signed_card
from .page import card, inline
from .rooms import lectures_with

NAME = "replication"
SIGNS = {  # a sign and a colour, as colour alone says nothing to some
    "reproduced in miniature": ("✓", "#006b4f"),
    "reproduced under a condition": ("◐", "#00558a"),
    "contradicted": ("✗", "#a03c00"),
    "not settled here": ("?", "#555555"),
    "not testable here": ("–", "#555555"),
}


class Replicated(NamedTuple):
    """A headline claim: of which paper, where it is treated, what became of it and why."""

    paper: str
    lecture: str
    id: str
    they_say: str
    who: str
    outcome: str
    because: str
    found: str


def gathered(settle: bool = True) -> list[Replicated]:
    """The headlines of all rooms, paper by paper in the order of the lectures.

    settle: settle those that were run here, and say what came out (some seconds)."""
    rows = [
        Replicated(
            entry.headline.paper, lecture, entry.id, entry.they_say, entry.who,
            entry.headline.outcome, entry.headline.because,
            outcome_of(entry) if settle and entry.settle else "",
        )
        for lecture in lectures_with("claims")
        for entry in claims(lecture)
        if entry.headline is not None
    ]  # fmt: skip
    papers = list(dict.fromkeys(row.paper for row in rows))
    return sorted(rows, key=lambda row: papers.index(row.paper))


@dataclass(frozen=True, repr=False)
class ReplicationTable:
    """Paper by paper: sign and outcome of each headline claim, what was found on a click."""

    rows: tuple[Replicated, ...]

    @property
    def counted(self) -> str:
        return counted(SIGNS, (row.outcome for row in self.rows))

    def __repr__(self) -> str:
        blocks = [self.counted]
        for paper, rows in self._by_paper():
            lines = (f"  {SIGNS[row.outcome][0]} {row.outcome}: {row.they_say}" for row in rows)
            blocks.append("\n".join([paper, *lines]))
        return "\n\n".join(blocks)

    def _repr_html_(self) -> str:
        papers = "".join(
            f'<div style="margin:10px 0 4px"><b>{escape(paper)}</b></div>'
            + "".join(map(_card, rows))
            for paper, rows in self._by_paper()
        )
        return card(f"{headed(self.counted)}{papers}", "course-replication", width=820)

    def _by_paper(self) -> Iterator[tuple[str, list[Replicated]]]:
        for paper, rows in groupby(self.rows, key=lambda row: row.paper):
            yield paper, list(rows)


def replication_table() -> ReplicationTable:
    """The table that is stored in data/results."""
    try:
        return ReplicationTable(tuple(Replicated(**row) for row in read_result(NAME)["rows"]))
    except TypeError as error:
        raise DamagedDataError(
            f"data/results/{NAME}.json has a row that is not a claim: {error}. Restore it with "
            "`git checkout data`, or run `python -m course_lib.teaching.replication`."
        ) from error


def build() -> dict[str, Any]:
    """What data/results/replication.json holds."""
    return {"date": date.today().isoformat(), "rows": [row._asdict() for row in gathered()]}


def _card(row: Replicated) -> str:
    evidence = {"where": f"lecture {row.lecture}", "said in": row.who, "found": row.found}
    claim = f"“{inline(row.they_say)}”"
    return signed_card(SIGNS, row.outcome, claim, row.because, "the evidence", evidence)


def main() -> None:
    record = build()
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    write_atomic(data_root() / "results" / f"{NAME}.json", text)
    write_manifest(data_root())
    print(repr(ReplicationTable(tuple(Replicated(**row) for row in record["rows"]))))


if __name__ == "__main__":
    main()
