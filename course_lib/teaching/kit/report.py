"""What grading writes: a row for each answer, a table of these, a short one of the students, and a
report for each student."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape

from ..exercises import all_exercises
from .pages import as_html, bullets, page, table
from .submissions import Submission

TOTALS = (
    "student",
    "number",
    "points",
    "of",
    "percent",
    "passed",
    "answered",
    "exercises",
    "notes",
)
STATUSES = {
    "passed": "every stage passed",
    "wrong": "a stage was not passed",
    "error": "the answer raised an exception",
    "unanswered": "the stub was left as it is",
    "missing": "no cell checks the exercise, and no function has its name",
    "no Python": "the answer's cell cannot be read as Python",
    "time": "not finished when the time was up",
    "memory": "needed more memory than the limit",
    "crashed": "the process ended without a result",
    "broken notebook": "the file is not a notebook",
}
NOT_ANSWERED = ("unanswered", "missing", "broken notebook")


@dataclass(frozen=True)
class Row:
    """One line of the table. points: of `of`, in proportion to the stages passed. stopped_at: the
    stage that was not passed; how: how its mistake was found ("known": by name); said: the check's
    own words. asked: what was refused to the answer."""

    student: str
    notebook: str = ""
    exercise: str = ""
    status: str = ""
    points: float = 0
    of: int = 0
    stages_passed: int = 0
    stages: int = 0
    stopped_at: str = ""
    how: str = ""
    said: str = ""
    asked: str = ""
    passed: tuple[tuple[str, bool | None], ...] = ()  # stage by stage; for the report alone


COLUMNS = [field.name for field in fields(Row) if field.name != "passed"]


def as_csv(rows: Sequence[Row]) -> str:
    """The table. Texts that a spreadsheet would take for formulas get an apostrophe in front."""
    return _csv(COLUMNS, ([getattr(row, name) for name in COLUMNS] for row in rows))


def totals_csv(students: Sequence[tuple[Submission, Sequence[Row]]], of: Mapping[str, int]) -> str:
    """The short table: a line a student, by name. of: the points of each graded exercise.

    points: of an exercise that stands in several notebooks those of the best answer; percent: of
    all points, with one decimal; passed, answered, exercises: how many."""
    lines = []
    for student, rows in sorted(students, key=lambda one: one[0].student.casefold()):
        answered = {row.exercise for row in rows if row.status not in NOT_ANSWERED}
        passed = {row.exercise for row in rows if row.status == "passed"}
        points, all_points = points_of(rows), sum(of.values())
        notes = [*student.notes]
        if student.notebooks and not answered:
            notes.append("No exercise was answered.")
        lines.append(
            [student.student, student.number, f"{points:g}", all_points,
             round(100 * points / all_points, 1), len(passed), len(answered), len(of),
             " ".join(notes)]
        )  # fmt: skip
    return _csv(TOTALS, lines)


def points_of(rows: Sequence[Row]) -> float:
    """A student's points: of each exercise those of the best answer."""
    best: dict[str, float] = {}
    for row in rows:
        best[row.exercise] = max(row.points, best.get(row.exercise, 0))
    return round(sum(best.values()), 1)


def _csv(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(head)
    for line in lines:
        writer.writerow([_harmless(x) if isinstance(x, str) else x for x in line])
    return table.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def file_name(student: str) -> str:
    """A name for a student's report that no other student has, on any file system."""
    letters = unicodedata.normalize("NFKD", student).encode("ascii", "ignore").decode()  # ü to u
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", letters).strip("-")[:60]
    return f"{plain}-{hashlib.sha256(student.encode()).hexdigest()[:8]}".lstrip("-")


SIGNS = {True: "✓ passed", False: "✗ stopped here", None: "– not reached"}


def report_page(student: str, rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """What came of a student's answers, for her to read: no seeds, no inputs to come."""
    points, total = points_of(rows), sum({row.exercise: row.of for row in rows}.values())
    head = table(
        ("exercise", "result", "stages", "points"),
        ((escape(row.exercise or row.notebook), escape(row.status),
          f"{row.stages_passed} of {row.stages}", f"{row.points:g} of {row.of}") for row in rows),
        numbers=(2, 3),
    )  # fmt: skip
    summary = (
        '<p class="small">Points are proportional to the stages passed. They are a proposal: a '
        "person gives the grade. Each answer ran in its own process, on inputs drawn for this "
        "grading. That guards against accidents; it is no sandbox.</p>"
    )
    answers = "\n".join(_answer(row) for row in rows)
    return page(
        f"Report: {student}",
        f"<p>{points:g} of {total} points.</p>{bullets(notes) if notes else ''}"
        f"{head}{summary}{answers}",
    )


def _answer(row: Row) -> str:
    exercise = all_exercises().get(row.exercise)
    heading = exercise.heading if exercise else row.notebook
    stages = "".join(
        f"<tr><td style='white-space:nowrap'>{SIGNS[passed]}</td><td>{as_html(name)}</td></tr>"
        for name, passed in row.passed
    )
    lines = "<br>".join(as_html(line) for line in row.said.splitlines() if line.strip())
    message = f'<div class="mark">{lines}</div>' if lines and row.status != "passed" else ""
    refused = f"<p>Refused to this answer: {escape(row.asked)}.</p>" if row.asked else ""
    place = f' <span class="small">{escape(row.notebook)}</span>' if row.notebook else ""
    return (
        f"<section class='answer'><h2>{escape(heading)} <span class='small'>{escape(row.status)}: "
        f"{escape(STATUSES[row.status])}</span></h2>{place}"
        f"<table class='stages'>{stages}</table>{message}{refused}</section>"
    )
