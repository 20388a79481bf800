"""Measured numbers in sentences: a lecture's numbers.py has them; page, deck and quiz name them.

`{{number:name}}` stands in a text for what `NUMBERS["name"]()` of the lecture's room gives, a
number or a text, read from the results or computed. So nothing measured is typed by hand. `TYPED`
there lists digits that a text of the lecture holds with another meaning, and which."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import mean
from typing import Any

from .results import stored
from .rooms import lectures_with, room

PLACEHOLDER = re.compile(r"\{\{\s*number:(\w+)\s*\}\}")


class NumberError(ValueError):
    """A text asks for a number that its lecture does not have."""


@cache
def number(lecture: str, name: str) -> str:
    """A lecture's number of this name as its sentences say it: number("03", "million_tokens").

    Raises NumberError, with the names that exist, for any other."""
    known: dict[str, Callable[[], Any]] = {"exercise_minutes": lambda: exercise_minutes(lecture)}
    if lecture in lectures_with("numbers"):
        known |= room(lecture, "numbers").NUMBERS
    if name not in known:
        raise NumberError(
            f"a text of lecture {lecture} asks for number {name!r}; its numbers.py has "
            f"{', '.join(sorted(known)) or 'none'}."
        )
    return as_text(known[name]())


def as_text(value: Any) -> str:
    """A number for a sentence: thousands parted, three digits of a fraction; a text as it is."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def signed(points: float, digits: int = 1) -> str:
    """A difference in points with its sign, a true minus; what rounds to nothing is +0."""
    return f"{round(points, digits) + 0.0:+.{digits}f}".replace("-", "−")


def exercise_minutes(lecture: str) -> int:
    """How many minutes all exercises of a lecture take."""
    return sum(found.minutes for found in room(lecture, "exercises").EXERCISES)


def millions(count: int) -> str:
    return f"{count / 1e6:.1f}M"


def percent(values: Sequence[float], digits: int = 0) -> str:
    """The mean over seeds of values from 0 to 1."""
    return f"{mean(values):.{digits}%}"


def cpu_hours(*names: str) -> str:
    """What the runs of these results files took, each on one thread: "0.7" hours of one core. Of
    processor time where a run recorded it, else of the clock."""
    return f"{sum(_seconds(stored(name)) for name in names) / 3600:.1f}"


def _seconds(found: Any) -> float:
    """Of a run or a file that says them, else of all runs inside, however deep they lie."""
    if isinstance(found, Mapping) and (said := found.get("cpu_seconds", found.get("seconds"))):
        return float(said)
    inner = found.values() if isinstance(found, Mapping) else found
    return sum(map(_seconds, inner)) if isinstance(found, Mapping | list) else 0.0


def filled(lecture: str, text: str) -> str:
    """The text with its lecture's numbers in place of {{number:name}}."""
    return PLACEHOLDER.sub(lambda found: number(lecture, found[1]), text)
