"""The parts of a page: how many minutes each takes, and the bar that says where one is.

Minutes are estimates: of reading by words and lines of code, of exercises, quiz and questions for
review by what the lecture's room holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

import nbformat

from course_lib.teaching.claims import claims
from course_lib.teaching.exercises import exercise
from course_lib.teaching.numbers import PLACEHOLDER
from course_lib.teaching.quizzes import read_quiz, read_review

WORDS_A_MINUTE, LINES_A_MINUTE = 160, 15
QUIZ_ITEM, REVIEW_QUESTION, CLAIM, SHOWN, OUTPUT = 0.5, 0.5, 0.25, 0.5, 0.25  # minutes each
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass
class Part:
    """A part of a page; minutes of reading, and of its exercises."""

    title: str
    reading: float = 0.0
    exercises: int = 0

    @property
    def minutes(self) -> int:
        return max(1, round(self.reading + self.exercises))

    @property
    def link(self) -> str:
        """Its name as a link to its heading, by the ids that JupyterLab and nbviewer give."""
        return f"[{self.title}](#{quote(self.title.replace(' ', '-'))})"


def parts_of(notebook: nbformat.NotebookNode) -> list[Part]:
    """The parts by their headings; what stands before the first heading belongs to the first."""
    parts: list[Part] = []
    for cell in notebook.cells:
        for title in HEADING.findall(cell.source) if cell.cell_type == "markdown" else ():
            parts.append(Part(title))
        if parts:
            parts[-1].reading += _reading(cell)
            ids = re.findall(r"\{\{exercise:([\d.]+)\}\}", cell.source)
            parts[-1].exercises += sum(exercise(id).minutes for id in ids)
    return parts


def _reading(cell: nbformat.NotebookNode) -> float:
    if cell.cell_type == "markdown":
        reviewed = re.findall(r"\{\{review:(\d+)\}\}", cell.source)
        questions = sum(len(read_review(lecture)) for lecture in reviewed)
        words = PLACEHOLDER.sub("1", cell.source).split()  # a number is a word
        return len(words) / WORDS_A_MINUTE + REVIEW_QUESTION * questions
    asked = re.findall(r'^quiz\("(\d+)"\)', cell.source, flags=re.MULTILINE)
    claimed = re.findall(r'^claims_table\("(\d+)"', cell.source, flags=re.MULTILINE)
    shown = re.findall(r"^show\((.+)\)$", cell.source, flags=re.MULTILINE)
    return (
        len(cell.source.splitlines()) / LINES_A_MINUTE
        + OUTPUT
        + QUIZ_ITEM * sum(len(read_quiz(lecture)) for lecture in asked)
        + CLAIM * sum(len(claims(lecture)) for lecture in claimed)
        + SHOWN * sum(len(things.split(",")) for things in shown)
    )


def duration(parts: list[Part]) -> str:
    """In words: how long the page takes."""
    reading, exercises = sum(p.reading for p in parts), sum(p.exercises for p in parts)
    if not exercises:
        return f"about {max(5, _fives(reading))} minutes"
    both = _fives(reading + exercises)
    return f"about {both} minutes with the exercises, {_fives(reading)} without"


def _fives(minutes: float) -> int:
    return 5 * round(minutes / 5)


def contents(parts: list[Part]) -> str:
    """One line: every part, its minutes, and a link to it."""
    return "**Parts** (minutes): " + " · ".join(f"{p.link} {p.minutes}" for p in parts)


def bar(parts: list[Part], number: int) -> str:
    """The line under the heading of a part, numbered from one."""
    done = "▰" * number + "▱" * (len(parts) - number)
    minutes = parts[number - 1].minutes
    unit = "minute" if minutes == 1 else "minutes"
    return (
        f'<span aria-hidden="true">{done}</span> *part {number} of {len(parts)}, '
        f"about {minutes} {unit}*"
    )


def say_where(notebook: nbformat.NotebookNode) -> None:
    """Put the contents for {{parts}}, the duration for {{duration}}, a bar under each heading."""
    parts = parts_of(notebook)
    number = 0
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue

        def with_bar(found: re.Match[str]) -> str:
            nonlocal number
            number += 1
            return f"{found[0]}\n\n{bar(parts, number)}"

        cell.source = HEADING.sub(with_bar, cell.source)
        cell.source = cell.source.replace("{{duration}}", duration(parts))
        cell.source = cell.source.replace("{{parts}}", contents(parts))
