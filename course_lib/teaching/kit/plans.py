"""The syllabi and the notes on each lecture, read from TOML and checked while reading.

`syllabus.toml` stands here, and a file of the same form holds plans of your own; a lecture's
`teaching.toml` stands in its room, beside its exercises and quiz. In every plan a lecture comes
after those it needs: taught or read earlier, or `known = ["02"]`, known to the students already.
Minutes of exercises are the exercises' own, minutes of a deck those of its plan: neither is typed a
second time."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from course_lib.files import nearby

from ..exercises import all_exercises
from ..exercises.form import Exercise
from ..rooms import lectures_with, room_file, two_digits

CHECKOUT = Path(__file__).resolve().parents[3]
SESSION = 90  # minutes
SLIDE = re.compile(r"^#{1,2} .*\{minutes=(\d+(?:\.\d+)?)", re.MULTILINE)
SYLLABUS = Path(__file__).with_name("syllabus.toml")
FORM = (
    'expected [[plan]] with id, title, about and slots = [{ when = "week 1", teach = ["02"] }, …], '
    f"as in {SYLLABUS}"
)
TITLE = re.compile(r"^title:\s*(.+?)\s*$", re.MULTILINE)


class KitError(ValueError):
    """A file of the kit that cannot be used; the message names it, and what to correct."""


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
    """A syllabus: its slots in order. known: lectures that students know before it begins."""

    id: str
    title: str
    about: str
    slots: tuple[Slot, ...] = field(default=())
    known: tuple[str, ...] = ()


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


def plans(path: Path = SYLLABUS) -> tuple[Plan, ...]:
    """Every plan of a file, the course's own by default. Raises KitError for a faulty file, and for
    a plan in which a lecture stands twice, or before one that it needs."""
    entries = _read(path, FORM)
    if set(entries) != {"plan"} or not isinstance(entries["plan"], list) or not entries["plan"]:
        raise KitError(f"{path} holds {', '.join(entries) or 'nothing'}; {FORM}.")
    result = [_plan(f"{path}, plan {n}", entry) for n, entry in enumerate(entries["plan"], 1)]
    ids = [plan.id for plan in result]
    if twice := [id for id in ids if ids.count(id) > 1]:
        raise KitError(f"{path} has two plans with the id {twice[0]!r}; give each its own.")
    return tuple(result)


def all_plans(own: Path | None = None) -> tuple[Plan, ...]:
    """The plans of a file of one's own, if there is one, then the course's. Raises KitError."""
    yours = plans(own) if own else ()
    ids = [plan.id for plan in plans()]
    if taken := [plan.id for plan in yours if plan.id in ids]:
        raise KitError(
            f"{own} has a plan with the id {taken[0]!r}, which the course uses; choose another, "
            f"none of {', '.join(ids)}."
        )
    return (*yours, *plans())


def _plan(where: str, entry: Any) -> Plan:
    if not isinstance(entry, dict):
        raise KitError(f"{where} is {entry!r}; {FORM}.")
    known = _lectures(where, "known", entry.get("known", []))
    entry = {key: x for key, x in entry.items() if key != "known"}
    _expect(where, entry, {"id": str, "title": str, "about": str, "slots": list})
    if not re.fullmatch(r"[\w-]+", entry["id"], re.ASCII):
        raise KitError(
            f"{where} has id = {entry['id']!r}; expected letters, digits and hyphens, as in "
            "10-weeks: it becomes the name of a page."
        )
    slots = tuple(_slot(f"{where}, slot {n}", x) for n, x in enumerate(entry.pop("slots"), 1))
    plan = Plan(**entry, slots=slots, known=known)
    if faults := [*_faults(plan)]:
        raise KitError("\n".join(f"{where} ({plan.id}): {fault}" for fault in faults))
    return plan


def _slot(where: str, slot: Any) -> Slot:
    keys = {"when": str, "teach": list, "read": list, "also": str}
    if not isinstance(slot, dict) or "when" not in slot:
        raise KitError(f"{where} is {slot!r}; expected when, and teach, read or also.")
    _expect(where, slot, {key: kind for key, kind in keys.items() if key in slot or key == "when"})
    lists = {key: _lectures(where, key, slot[key]) for key in ("teach", "read") if key in slot}
    return Slot(**slot | lists)


def _lectures(where: str, key: str, names: Any) -> tuple[str, ...]:
    """Lectures as they are numbered, of any usual spelling: 4, "4", "04", "lecture 04"."""
    result = []
    for name in names if isinstance(names, list) else [names]:
        plain = re.sub(r"^lecture[\s_]*", "", str(name).strip(), flags=re.IGNORECASE)
        lecture = two_digits("" if isinstance(name, float) else plain)
        if lecture not in lectures() or isinstance(name, bool):
            raise KitError(
                f"{where} has {key} = {names!r}; {name!r} is not a lecture. Expected a list of "
                f'numbers as text, like {key} = ["02", "03"], from {", ".join(lectures())}.'
            )
        result.append(lecture)
    return tuple(result)


def _faults(plan: Plan) -> Iterator[str]:
    """What is wrong with the order of a plan's lectures, a sentence each."""
    order = [(x, slot.when) for slot in plan.slots for x in (*slot.teach, *slot.read)]
    if not order:
        yield 'it has no lecture; name some: teach = ["02", …] in a slot.'
    when: dict[str, str] = {}  # of those that have come
    later = dict(reversed(order))
    for lecture, now in order:
        if lecture in when:
            yield (f"lecture {lecture} appears twice ({when[lecture]}; {now}); remove one.")
            continue
        when[lecture] = now
        for need in notes_of(lecture).needs:
            if need in when or need in plan.known:
                continue
            first = f"lecture {lecture} ({now}) needs lecture {need}, which "
            if need in later:
                yield f"{first}comes later ({later[need]}); move {need} before {lecture}."
            else:
                yield (
                    f"{first}is not in the plan; add {need} before {lecture}, or leave {lecture} "
                    f'out, or, if students know it already, write known = ["{need}"].'
                )


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(x) if isinstance(x, list) else x for key, x in entry.items()}


def _read(path: Path, form: str = "every lecture needs one, like lecture 12's") -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise KitError(f"{path} is missing; {form}.{nearby(path)}") from error
    except OSError as error:
        raise KitError(f"{path} cannot be read ({error.strerror}); {form}.") from error
    except UnicodeDecodeError as error:
        raise KitError(f"{path} is not UTF-8; save it as UTF-8 text.") from error
    except tomllib.TOMLDecodeError as error:
        raise KitError(f"{path} is not TOML: {error}. Correct the line it names.") from error


def _expect(where: str, entry: Mapping[str, Any], types: Mapping[str, type]) -> None:
    for key, kind in types.items():
        if not isinstance(entry.get(key), kind) or (kind is str and not entry[key]):
            raise KitError(
                f"{where} has {key} = {entry.get(key)!r}; expected {kind.__name__}. Add or fix it."
            )
    if surplus := set(entry) - set(types):
        raise KitError(f"{where} has unknown keys {sorted(surplus)}; expected {sorted(types)}.")


def minutes(x: float) -> str:
    """Minutes for a sentence: 52.5 or 60."""
    return f"{x:,g}" if x == int(x) else f"{x:,.1f}"


def named(exercises: Sequence[Exercise]) -> list[str]:
    """Exercises for a list, each with its minutes."""
    return [f"{one.heading} ({one.minutes} minutes)" for one in exercises]
