"""Quiz items and questions for review, read from a lecture's quiz.toml and checked while reading.

A file holds [[item]] tables (question, and [[item.choice]] with text, correct, why) and [[review]]
tables (question, answer). `{{number:…}}` stands for a number of the lecture (numbers.py). Texts may
mark `code` and *stress*; a blank line in an answer parts paragraphs.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .numbers import filled
from .page import Html, card, inline
from .rooms import room_file, two_digits

MOST_CHOICES = 4

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Choice:
    """One choice, whether it is right, and why."""

    text: str
    correct: bool
    why: str


@dataclass(frozen=True)
class QuizItem:
    """A question with three or four choices, of which at least one is right and one wrong."""

    number: int
    question: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class ReviewQuestion:
    """A question for review with its answer."""

    number: int
    question: str
    answer: str


class QuizError(ValueError):
    """A quiz file that cannot be used; the message names the file, the item and the remedy."""


def read_quiz(lecture: str) -> tuple[QuizItem, ...]:
    """The quiz of a lecture, in order: read_quiz("02"). Raises QuizError for a faulty file."""
    return read_items(_file_of(lecture))


def read_review(lecture: str) -> tuple[ReviewQuestion, ...]:
    """The questions for review of a lecture, with answers, in order."""
    path = _file_of(lecture)
    return _numbered(path, "review", _review)


def read_items(path: Path) -> tuple[QuizItem, ...]:
    """The items of one quiz file."""
    return _numbered(path, "item", _item)


def question_keys(lecture: str) -> tuple[str, ...]:
    """A short name for each item of a lecture's quiz, in order, which stays when items move: of its
    question, before numbers are filled in; its `key`, where an author rewrote the question and
    those who have answered it shall keep that."""
    tables = tomllib.loads(_file_of(lecture).read_text(encoding="utf-8"))
    return tuple(item.get("key") or _digest(item["question"].strip()) for item in tables["item"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


def _file_of(lecture: str) -> Path:
    if (path := room_file(two_digits(lecture), "quiz.toml")).exists():
        return path
    known = sorted(path.parent.name[-2:] for path in room_file("", "").parent.glob("*/quiz.toml"))
    raise QuizError(
        f"The quiz of lecture {lecture!r} was asked for; lectures with a quiz: {', '.join(known)}. "
        'Write two digits as text, as in quiz("02").'
    )


def _numbered(
    path: Path, kind: str, make: Callable[[Path, int, dict[str, Any]], Entry]
) -> tuple[Entry, ...]:
    try:
        tables = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise QuizError(f"{path} is not TOML: {error}. Correct the line it names.") from error
    if not (entries := tables.get(kind)):
        raise QuizError(f"{path} holds no [[{kind}]]; expected at least one.")
    return tuple(make(path, number, entry) for number, entry in enumerate(entries, 1))


def _text(path: Path) -> str:
    """The file with its lecture's numbers filled in."""
    text = path.read_text(encoding="utf-8")
    return filled(path.parent.name[-2:], text) if "{{" in text else text


def _item(path: Path, number: int, entry: dict[str, Any]) -> QuizItem:
    where = f"{path}, item {number}"
    _expect_keys(where, {"key": "none", **entry}, {"question": str, "choice": list, "key": str})
    entries = enumerate(entry["choice"], 1)
    choices = tuple(_choice(f"{where}, choice {place}", choice) for place, choice in entries)
    if not 3 <= len(choices) <= MOST_CHOICES:
        raise QuizError(f"{where} has {len(choices)} choices; expected 3 to {MOST_CHOICES}.")
    if not any(choice.correct for choice in choices) or all(choice.correct for choice in choices):
        right = sum(choice.correct for choice in choices)
        raise QuizError(
            f"{where} marks {right} of {len(choices)} choices as correct; expected at least one "
            "that is and one that is not."
        )
    if len({choice.text for choice in choices}) < len(choices):
        raise QuizError(f"{where} has the same choice twice; change one of them.")
    return QuizItem(number, entry["question"].strip(), choices)


def _choice(where: str, entry: dict[str, Any]) -> Choice:
    _expect_keys(where, entry, {"text": str, "correct": bool, "why": str})
    return Choice(entry["text"].strip(), entry["correct"], entry["why"].strip())


def _review(path: Path, number: int, entry: dict[str, Any]) -> ReviewQuestion:
    _expect_keys(f"{path}, review {number}", entry, {"question": str, "answer": str})
    return ReviewQuestion(number, entry["question"].strip(), entry["answer"].strip())


def _expect_keys(where: str, entry: dict[str, Any], types: dict[str, type]) -> None:
    for key, kind in types.items():
        if not isinstance(entry.get(key), kind) or entry[key] == "":
            raise QuizError(
                f"{where} has {key} = {entry.get(key)!r}; expected "
                f"{kind.__name__}{', not empty' if kind is str else ''}. Add or mend it."
            )
    if surplus := set(entry) - set(types):
        raise QuizError(f"{where} has unknown keys {sorted(surplus)}; expected {sorted(types)}.")


# ---------------------------------------------------------------- questions for review, on a page


def review_html(entries: Sequence[ReviewQuestion]) -> Html:
    """Each question with its answer folded away; as text, the answer stands below its question."""
    folded = (
        f'<div style="margin:0 0 10px"><b>{entry.number}.</b> {inline(entry.question)}'
        f"<details><summary>Answer</summary>{_paragraphs(entry.answer)}</details></div>"
        for entry in entries
    )
    words = (f"{entry.number}. {entry.question}\n   – {entry.answer}" for entry in entries)
    return Html(card("".join(folded), "course-review"), "\n\n".join(words))


def _paragraphs(text: str) -> str:
    parts = text.split("\n\n")
    return "".join(f'<p style="margin:.3em 0 .3em 1em">{inline(part)}</p>' for part in parts)


def review_markdown(lecture: str) -> str:
    """The same as Markdown that GitHub folds, for pages that are read without a kernel."""
    return "\n\n".join(
        f"**{entry.number}.** "
        f"{entry.question}\n\n<details><summary>Answer</summary>\n\n{entry.answer}\n\n</details>"
        for entry in read_review(lecture)
    )
