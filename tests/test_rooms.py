"""The rooms of course_lib: a module imports only from its own room and from those above it.

The library comes first and stands without the rest; teaching/ is what lectures share; a lecture's
room imports no other lecture's."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import course_lib

LIBRARY = (
    "files", "kernels", "config", "images", "plain_bert", "encoder", "heads", "family",
    "objectives", "text", "checkpoints", "train",
)  # fmt: skip
ROOMS = (*LIBRARY, "doctor", "search", "teaching", "bench", "lectures")
MOST_LINES = 27_980  # of the library: what a reader gets through in a day or two
MOST_LINES_A_LECTURE = 5_000
LARGER = {
    "01": 6_000,
    "03": 7_900,
    "06": 5_800,
    "07": 5_320,  # exercise 07.8 and what it shows
    "08": 6_900,
    "09": 6_300,
    "10": 7_000,
    "13": 6_300,  # each member at its own rates
}
HEAVY = (
    "transformers", "plotly", "bertviz", "sklearn", "ipywidgets", "IPython", "anywidget", "triton",
    "accelerate",
)  # fmt: skip


def imported_rooms(source: str, module: tuple[str, ...]) -> set[str]:
    """Rooms that a module's import statements name; `module` is its path, as ("text", "world").
    A lecture's room is named with its number, as "lectures.lecture_02"."""
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        for name in _absolute_names(node, module):
            parts = name.split(".")
            if parts[0] == "course_lib" and len(parts) > 1:
                rooms.add(room_of(tuple(parts[1:])))
    return rooms


def room_of(module: tuple[str, ...]) -> str:
    return ".".join(module[:2]) if module[0] == "lectures" else module[0]


def _absolute_names(node: ast.AST, module: tuple[str, ...]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    package = ("course_lib", *module[:-1])
    base = package[: len(package) - node.level + 1] if node.level else ()
    start = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{start}.{alias.name}" for alias in node.names]


def modules(root: Path) -> list[Path]:
    return sorted((root / "course_lib").rglob("*.py"))


def test_modules_import_only_from_rooms_above(root: Path) -> None:
    wrong = []
    for path in modules(root):
        module = path.relative_to(root / "course_lib").with_suffix("").parts
        if module == ("__init__",):
            continue  # the front door: it names every room, and loads none until asked
        assert module[0] in ROOMS, f"{path} is in no room of the plan"
        for other in imported_rooms(path.read_text(encoding="utf-8"), module):
            known = other.split(".")[0] in ROOMS  # else a name of the front door
            if known and not may_import(room_of(module), other):
                wrong.append(f"{'.'.join(module)} imports {other}")
    assert not wrong


def may_import(room: str, other: str) -> bool:
    """Whether the law lets this room import from the other one."""
    here, there = (ROOMS.index(name.split(".")[0]) for name in (room, other) if name)
    if "lectures" in (room.split(".")[0], other.split(".")[0]) and here == there:
        return room == other
    return there <= here


@pytest.mark.parametrize(
    ("room", "other", "allowed"),
    [
        ("train", "text", True),
        ("text", "train", False),
        ("train", "teaching", False),
        ("lectures.lecture_02", "bench", True),
        ("lectures.lecture_02", "lectures.lecture_02", True),
        ("lectures.lecture_02", "lectures.lecture_03", False),
        ("bench", "lectures.lecture_14", False),
    ],
)
def test_the_law(room: str, other: str, allowed: bool) -> None:
    assert may_import(room, other) is allowed


def test_no_two_modules_of_the_library_import_each_other(root: Path) -> None:
    paths = [path.relative_to(root) for path in modules(root) if path.name != "__init__.py"]
    names = [".".join(path.with_suffix("").parts) for path in paths]
    reads = {}
    for name, path in zip(names, paths, strict=True):
        tree = ast.parse((root / path).read_text(encoding="utf-8"))
        module = tuple(name.split(".")[1:])
        found = {n for node in ast.walk(tree) for n in _absolute_names(node, module)}
        reads[name] = {n for n in names if any(f"{f}.".startswith(f"{n}.") for f in found)} - {name}
    circles = [(a, b) for a in reads for b in reads[a] if a < b and a in reads[b]]
    assert not circles


def test_every_name_of_the_front_door_is_there() -> None:
    assert all(getattr(course_lib, name) for name in course_lib.__all__)


def test_the_library_is_small(root: Path) -> None:
    paths = [
        path
        for path in modules(root)
        if path.relative_to(root / "course_lib").parts[0].removesuffix(".py") in LIBRARY
    ]
    assert lines_of(paths) <= MOST_LINES


def lines_of(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


@pytest.mark.parametrize("number", [f"{n:02d}" for n in range(1, 18)])
def test_a_lecture_costs_what_it_may(root: Path, number: str) -> None:
    """Its room, page, deck and tests; those that were larger before do not grow."""
    folders = (f"course_lib/lectures/lecture_{number}", f"tests/lectures/lecture_{number}")
    paths = [path for folder in folders for path in (root / folder).rglob("*.py")]
    paths += [
        p for of in ("notebooks", "slides") for p in (root / of / "source").glob(f"{number}_*.py")
    ]
    assert lines_of(paths) <= LARGER.get(number, MOST_LINES_A_LECTURE)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from ..train import loop", {"train"}),
        ("from .. import heads", {"heads"}),
        ("from .packing import pack_pair", {"text"}),
        ("def f():\n    from course_lib.teaching.claims import x", {"teaching"}),
        ("import course_lib.bench as b", {"bench"}),
        ("from course_lib import teaching", {"teaching"}),
        ("import os, torch", set()),
    ],
)
def test_imports_are_read_in_every_form(source: str, expected: set[str]) -> None:
    assert imported_rooms(source, ("text", "world")) == expected


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import course_lib", HEAVY),
        ("from course_lib import bert; bert('tiny')", HEAVY),
        # torch's compiler takes seconds to import: a first masked word should not wait for it.
        (
            "from course_lib import load_pretrained; load_pretrained('course-bert')",
            (*HEAVY, "torch._dynamo"),
        ),
        # 101 exercises take two seconds to import: one room is enough for one answer.
        (
            "from course_lib.teaching.exercises import exercise; exercise('06.4')",
            (
                "course_lib.lectures.lecture_06.views",
                *(f"course_lib.lectures.lecture_{n:02}.exercises" for n in range(1, 18) if n != 6),
            ),
        ),
        (
            "; ".join(f"import course_lib.{name}" for name in LIBRARY),
            tuple(f"course_lib.{name}" for name in ("teaching", "bench", "lectures")),
        ),
    ],
    ids=["the package", "a model", "pre-trained weights", "an exercise", "the library"],
)
def test_no_more_is_loaded_than_is_used(code: str, unwanted: tuple[str, ...], root: Path) -> None:
    ask = f"import sys; {code}; print([n for n in {unwanted} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_no_two_test_files_have_one_name():
    """pytest imports test files by their names alone: the second of a name is not collected when
    both are run at once, and is when each is run by itself."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
