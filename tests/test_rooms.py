"""The rooms of course_lib: a module imports only from its own room and from those above it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOMS = (
    "files", "kernels", "config", "encoder", "heads", "family", "objectives", "text",
    "checkpoints", "train", "views", "exercises", "claims", "bench",
)  # fmt: skip
HEAVY = (
    "transformers", "plotly", "bertviz", "sklearn", "ipywidgets", "IPython", "anywidget", "triton",
    "accelerate",
)  # fmt: skip


def imported_rooms(source: str, module: tuple[str, ...]) -> set[str]:
    """Rooms that a module's import statements name; `module` is its path, as ("text", "world")."""
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        for name in _absolute_names(node, module):
            parts = name.split(".")
            if parts[0] == "course_lib" and len(parts) > 1:
                rooms.add(parts[1])
    return rooms


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
        room = module[0]
        assert room in ROOMS, f"{path} is in no room of the plan"
        for other in imported_rooms(path.read_text(encoding="utf-8"), module):
            if other in ROOMS and ROOMS.index(other) > ROOMS.index(room):
                wrong.append(f"{'.'.join(module)} imports {other}")
    assert not wrong


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from ..train import loop", {"train"}),
        ("from .. import views", {"views"}),
        ("from .packing import pack_pair", {"text"}),
        ("def f():\n    from course_lib.claims import x", {"claims"}),
        ("import course_lib.bench as b", {"bench"}),
        ("from course_lib import exercises", {"exercises"}),
        ("import os, torch", set()),
    ],
)
def test_imports_are_read_in_every_form(source: str, expected: set[str]) -> None:
    assert imported_rooms(source, ("text", "world")) == expected


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path, root: Path) -> None:
    ask = f"import sys, course_lib; print([n for n in {HEAVY} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_building_a_model_loads_nothing_heavy(root: Path) -> None:
    ask = (
        "import sys; from course_lib import bert; bert('tiny'); "
        f"print([n for n in {HEAVY} if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
