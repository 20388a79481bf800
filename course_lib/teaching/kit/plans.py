"""The syllabi and the notes on each lecture, read from TOML and checked while reading.

`syllabus.toml` stands here; a lecture's `teaching.toml` in its room, beside its exercises and quiz.
Minutes of exercises are the exercises' own, minutes of a deck those of its plan: neither is typed a
second time."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..exercises import all_exercises
from ..exercises.form import Exercise
from ..rooms import lectures_with, room_file

CHECKOUT = Path(__file__).resolve().parents[3]
SESSION = 90  # minutes
SLIDE = re.compile(r"^#{1,2} .*\{minutes=(\d+(?:\.\d+)?)", re.MULTILINE)
TITLE = re.compile(r"^title:\s*(.+?)\s*$", re.MULTILINE)


class KitError(ValueError):
    """A file of the kit that cannot be used; the message names it, and what to mend."""


@dataclass(frozen=True)
class Show:
    """What is shown live: a heading of the page, minutes, and what to do there."""

    heading: str
    minutes: int
    do: str


@dataclass(frozen=True)
class Deck:
    """A lecture's slides: their file's name, which is the page's too, their title, and the minutes
    of their own plan."""

    name: str
    title: str
    minutes: float


@dataclass(frozen=True)
class Notes:
    """What an instructor needs for one lecture. needs: lectures that come before it; prepare: what
    students do before; exercises: done in class; hand_in: done after it."""

    lecture: str
    needs: tuple[str, ...]
    prepare: str
    aims: tuple[str, ...]
    exercises: tuple[str, ...]
    hand_in: tuple[str, ...]
    goes_wrong: tuple[str, ...]
    show: tuple[Show, ...]

    @property
    def deck(self) -> Deck:
        return deck_of(self.lecture)

    @property
    def in_class(self) -> list[Exercise]:
        return [all_exercises()[id] for id in self.exercises]

    @property
    def homework(self) -> list[Exercise]:
        return [all_exercises()[id] for id in self.hand_in]

    @property
    def minutes(self) -> float:
        """Of the whole session: the deck, what is shown live, the exercises in class."""
        live = sum(show.minutes for show in self.show)
        return self.deck.minutes + live + sum(one.minutes for one in self.in_class)


@dataclass(frozen=True)
class Slot:
    """A week, or half a day: lectures to teach, lectures to read alone, and what else there is."""

    when: str
    teach: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    also: str = ""

    @property
    def minutes(self) -> float:
        return sum(notes_of(lecture).minutes for lecture in self.teach)


@dataclass(frozen=True)
class Plan:
    """A syllabus: its slots in order."""

    id: str
    title: str
    about: str
    slots: tuple[Slot, ...] = field(default=())


@lru_cache
def deck_of(lecture: str) -> Deck:
    """The deck of a lecture, from its source. Raises KitError where there is no checkout."""
    decks = sorted((CHECKOUT / "slides" / "source").glob(f"{lecture}_*.md"))
    if not decks:
        raise KitError(
            f"There is no deck of lecture {lecture} in {CHECKOUT / 'slides' / 'source'}; the kit "
            "is made in a checkout of the course, by `make kit`."
        )
    text = decks[0].read_text(encoding="utf-8")
    title = TITLE.search(text)
    planned = sum(map(float, SLIDE.findall(text)))
    return Deck(decks[0].stem, title[1] if title else lecture, planned)


@lru_cache
def notes_of(lecture: str) -> Notes:
    """The notes on a lecture. Raises KitError for a faulty file, or none."""
    path = room_file(lecture, "teaching.toml")
    entry = _read(path)
    types = {"needs": list, "prepare": str, "aims": list, "exercises": list, "hand_in": list,
             "goes_wrong": list, "show": list}  # fmt: skip
    _expect(str(path), entry, types)
    shows = []
    for number, one in enumerate(entry.pop("show"), 1):
        _expect(f"{path}, show {number}", one, {"heading": str, "minutes": int, "do": str})
        shows.append(Show(**one))
    for id in (*entry["exercises"], *entry["hand_in"]):
        if id not in all_exercises() or id[:2] != lecture:
            raise KitError(f"{path} names exercise {id!r}; lecture {lecture} has no such exercise.")
    return Notes(lecture=lecture, show=tuple(shows), **_tuples(entry))


@lru_cache
def lectures() -> tuple[str, ...]:
    """The lectures that have notes, in order."""
    return tuple(n for n in lectures_with("exercises") if room_file(n, "teaching.toml").is_file())


@lru_cache
def plans() -> tuple[Plan, ...]:
    """Every syllabus. Raises KitError for a faulty file."""
    path = Path(__file__).with_name("syllabus.toml")
    result = []
    for number, entry in enumerate(_read(path).get("plan", []), 1):
        where = f"{path}, plan {number}"
        _expect(where, entry, {"id": str, "title": str, "about": str, "slots": list})
        slots = []
        for slot in entry.pop("slots"):
            if surplus := set(slot) - {"when", "teach", "read", "also"} or "when" not in slot:
                raise KitError(f"{where} has a slot {slot}; expected when, teach, read, also "
                               f"(unknown: {surplus}).")  # fmt: skip
            slots.append(Slot(**_tuples(slot)))
        result.append(Plan(**entry, slots=tuple(slots)))
    return tuple(result)


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(x) if isinstance(x, list) else x for key, x in entry.items()}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise KitError(f"{path} is missing; every lecture has one, as lecture 12.") from error
    except tomllib.TOMLDecodeError as error:
        raise KitError(f"{path} is not TOML: {error}. Mend the line it names.") from error


def _expect(where: str, entry: Mapping[str, Any], types: Mapping[str, type]) -> None:
    for key, kind in types.items():
        if not isinstance(entry.get(key), kind) or (kind is str and not entry[key]):
            raise KitError(
                f"{where} has {key} = {entry.get(key)!r}; expected {kind.__name__}. Add or mend it."
            )
    if surplus := set(entry) - set(types):
        raise KitError(f"{where} has unknown keys {sorted(surplus)}; expected {sorted(types)}.")


def minutes(x: float) -> str:
    """Minutes for a sentence: 52.5 or 60."""
    return f"{x:,g}" if x == int(x) else f"{x:,.1f}"


def named(exercises: Sequence[Exercise]) -> list[str]:
    """Exercises for a list, each with its minutes."""
    return [f"{one.heading} ({one.minutes} minutes)" for one in exercises]
