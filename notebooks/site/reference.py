"""The reference of course_lib: pages of Sphinx's autodoc, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import course_lib

ROOT = Path(course_lib.__file__).resolve().parent
ROOMS = {
    "": "The package: what course_lib offers",
    "checkpoints": "Checkpoints: weights in and out",
    "config": "Configurations",
    "encoder": "The encoder",
    "family": "The family, a file a member",
    "heads": "Heads",
    "images": "Pictures",
    "kernels": "Kernels",
    "objectives": "Objectives",
    "text": "Texts, tokenizers, readers of files",
    "train": "Training, fine-tuning, predictions",
}
DOOR = """Everything here is imported with `from course_lib import …`; a name is loaded when it is
first used. Each room of the library has a page, and each name below leads to its place there:"""


def write_reference(folder: Path) -> str:
    """Write the pages into a folder of Sphinx's; returns the name of the first, which leads to the
    others."""
    folder.mkdir()
    others = [room for room in ROOMS if room]
    for room, title in ROOMS.items():
        body = "\n".join(map(_module, _files(room))) if room else _front_door(others)
        heading = f"{title}\n{'=' * len(title)}\n\n"
        (folder / f"{room or 'course_lib'}.rst").write_text(heading + body, encoding="utf-8")
    return f"{folder.name}/course_lib"


def _front_door(others: list[str]) -> str:
    parts = [DOOR.replace("`", "``"), "", ".. toctree::", ""]
    parts += [*(f"   {name}" for name in others), ""]
    elsewhere = []
    for name in sorted(course_lib.__all__, key=str.casefold):
        thing = getattr(course_lib, name)
        home = getattr(thing, "__module__", "")
        if home.split(".")[1:2] and home.split(".")[1] in ROOMS:
            about = _paragraph(_paragraphs(inspect.getdoc(thing) or "")[0])
            parts.append(f"- :py:obj:`{name} <{home}.{thing.__qualname__}>`: {about}")
        elif not name.startswith("_"):
            kind = "autoclass" if isinstance(thing, type) else "autofunction"
            elsewhere += [f".. {kind}:: course_lib.{name}", ""]
    return "\n".join([*parts, "", *elsewhere])


def _files(room: str) -> list[Path]:
    paths = [ROOT / f"{room}.py"] if (ROOT / f"{room}.py").exists() else (ROOT / room).glob("*.py")
    return sorted(path for path in paths if path.name != "__init__.py")


def _module(path: Path) -> str:
    name = ".".join((course_lib.__name__, *path.relative_to(ROOT).with_suffix("").parts))
    return f"{name}\n{'-' * len(name)}\n\n.. automodule:: {name}\n   :members:\n"


# ---------------------------------------------------------------- docstrings as reStructuredText


def as_text(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A listener to Sphinx's autodoc: a docstring is plain text with `code` in it."""
    lines[:] = "\n\n".join(map(_paragraph, _paragraphs("\n".join(lines)))).split("\n")


def _paragraphs(text: str) -> list[str]:
    """The parts of a text between empty lines; a line that begins with a hyphen begins one."""
    return [part for part in re.split(r"\n\s*\n|\n(?=- )", text.strip("\n")) if part.strip()]


def _paragraph(text: str) -> str:
    lines = text.split("\n")
    if all(line.startswith("    ") for line in lines):
        return "::\n\n" + text
    parts = re.split(r"(`[^`]+`)", " ".join(line.strip() for line in lines))
    bullet = "- " if text.startswith("- ") else ""
    parts[0] = parts[0].removeprefix(bullet)
    plain = [
        f"`{part}`" if n % 2 else re.sub(r"""([\\*_|`:"'])""", r"\\\1", part)
        for n, part in enumerate(parts)
    ]
    # "\ " is nothing: between code and a letter reStructuredText wants a border.
    return bullet + r"\ ".join(part for part in plain if part)
