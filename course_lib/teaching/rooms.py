"""Where a lecture's own Python is: the rooms of course_lib/lectures, found by listing it."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

LECTURES = "course_lib.lectures"


def lectures_with(part: str) -> list[str]:
    """Numbers of the lectures whose room has this part ("claims", "experiments"), in order."""
    home = Path(__file__).resolve().parent.parent / "lectures"
    names = sorted(m.name for m in iter_modules([str(home)]) if m.name.startswith("lecture_"))
    numbers = [name.removeprefix("lecture_") for name in names]
    return [number for number in numbers if find_spec(f"{LECTURES}.lecture_{number}.{part}")]


def two_digits(number: object) -> str:
    """A lecture's or an exercise's number as it is printed: 2 and "2" as "02", "2.1" as "02.1";
    what is no such number as text."""
    text = "" if isinstance(number, bool) else str(number).strip()
    return f"0{text}" if re.fullmatch(r"\d(\.\d+)?", text) else text


def room(lecture: str, part: str) -> ModuleType:
    """One part of a lecture's room: room("02", "claims"). ValueError lists those that exist."""
    if (lecture := two_digits(lecture)) not in (known := lectures_with(part)):
        raise ValueError(
            f"lecture {lecture!r} was asked for; lectures with {part}: {', '.join(known)}. "
            'Write two digits as text, as in "02".'
        )
    return import_module(f"{LECTURES}.lecture_{lecture}.{part}")


def room_file(lecture: str, name: str) -> Path:
    """A file that is not Python in a lecture's room: room_file("02", "quiz.toml")."""
    return Path(__file__).resolve().parent.parent / "lectures" / f"lecture_{lecture}" / name
