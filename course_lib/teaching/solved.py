"""Which exercises and quiz questions are solved: a small file in the user's own data folder.

It is written where a check passes or a quiz is answered right, read by `progress()`, sent nowhere,
and deleted by `forget_progress()`. COURSE_LIB_PROGRESS=PATH moves it, COURSE_LIB_PROGRESS=off keeps
none. Whatever is wrong with the file or its folder, a page goes on and says what is wrong."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

from course_lib.files import write_atomic

SWITCH = "COURSE_LIB_PROGRESS"
FORMAT = "course_lib progress 1"
WAIT = 10.0  # seconds for another kernel that writes


@dataclass
class Record:
    """exercises: their numbers. quizzes: {lecture: keys of its questions, as in quizzes.py}."""

    exercises: set[str] = field(default_factory=set)
    quizzes: dict[str, set[str]] = field(default_factory=dict)


def record_file() -> Path | None:
    """Where the record is or will be; None where none is wanted."""
    setting = os.environ.get(SWITCH, "")
    if setting.lower() == "off":
        return None
    return (
        Path(setting).expanduser() if setting else _data_folder() / "course_lib" / "progress.json"
    )


def _data_folder() -> Path:
    """Where this system keeps the data of a user's programs."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")


def solved() -> Record:
    """What is solved so far; nothing where there is no record or it cannot be read."""
    path = record_file()
    if path is None or not path.exists():
        return Record()
    record = Record()
    with _forgiving(path), _alone(path):
        record = _read(path)
    return record


def exercise_solved(id: str) -> None:
    """Note that an exercise's check passed: exercise_solved("02.1")."""
    _change(lambda record: record.exercises.add(id))


def answers_right(lecture: str, keys: list[str]) -> None:
    """Note that these questions of a lecture's quiz were answered right."""
    _change(lambda record: record.quizzes.setdefault(lecture, set()).update(keys))


def forget_progress() -> None:
    """Delete the record, and say so. A file that is none of ours is set aside and kept."""
    path = record_file()
    if path is None:
        return print(f"No record is kept: {SWITCH}=off.")
    if not path.exists():
        return print(f"There is no record in {path}.")
    with _forgiving(path):
        with _alone(path):
            _read(path)
            path.unlink(missing_ok=True)
        with suppress(OSError):  # Windows keeps it while another kernel has it open
            _lock_of(path).unlink(missing_ok=True)
        print(f"The record of solved exercises, {path}, is deleted.")


# ---------------------------------------------------------------- the file


def _change(change: Callable[[Record], object]) -> None:
    path = record_file()
    if path is None:
        return
    with _forgiving(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path):  # another kernel's entries are read before ours are added
            record = _read(path) if path.exists() else Record()
            change(record)
            write_atomic(path, _text(record))


def _text(record: Record) -> str:
    quizzes = {lecture: sorted(keys) for lecture, keys in sorted(record.quizzes.items())}
    content = {"format": FORMAT, "exercises": sorted(record.exercises), "quizzes": quizzes}
    return json.dumps(content, indent=1) + "\n"


def _read(path: Path) -> Record:
    """What a file holds; one that is not ours is set aside, and nothing is solved yet."""
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, no text at all, or of another form
        aside = _unused(path)
        os.replace(path, aside)
        print(
            f"The record of solved exercises, {path}, could not be read: {error}. It was renamed "
            f"to {aside.name}, and a new one begins."
        )
        return Record()


def _parsed(text: str) -> Record:
    content = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f'expected {{"format": "{FORMAT}", …}}, found {text[:40]!r}')
    exercises, quizzes = content.get("exercises"), content.get("quizzes")
    if (
        not _texts(exercises)
        or not isinstance(quizzes, dict)
        or not all(map(_texts, quizzes.values()))
    ):
        raise ValueError("expected lists of text under `exercises` and `quizzes`")
    return Record(set(exercises), {lecture: set(keys) for lecture, keys in quizzes.items()})


def _texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _unused(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.unreadable{n or ''}") for n in range(1_000))
    return next((name for name in names if not name.exists()), path.with_name(f"{path.name}.old"))


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other kernel reads or writes the file meanwhile. torch brings filelock; the system lets a
    lock go when its process ends, however it ends."""
    from filelock import FileLock

    with FileLock(_lock_of(path), timeout=WAIT):
        yield


_complained: set[str] = set()


@contextmanager
def _forgiving(path: Path) -> Iterator[None]:
    """What the system refuses is said once, and no page stops for it."""
    try:
        yield
    except (OSError, ImportError) as error:  # a lock that stays taken is an OSError too
        if (reason := f"{type(error).__name__}: {error}") not in _complained:
            _complained.add(reason)
            print(
                f"The record of solved exercises, {path}, cannot be used ({reason}). Set "
                f"{SWITCH} to a file that you may write, or to off."
            )
