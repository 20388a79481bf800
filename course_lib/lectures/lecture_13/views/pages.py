"""Links from this page to the other lectures' pages."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from pathlib import Path

from course_lib.files import PACKAGE


@lru_cache(maxsize=1)
def pages() -> dict[str, tuple[str, str]]:
    """Lecture -> (its notebook, its title), of a checkout; nothing where only the package is
    installed, which has no pages."""
    sources = sorted((PACKAGE.parent / "notebooks" / "source").glob("[0-9][0-9]_*.py"))
    return {path.name[:2]: (f"{path.stem}.ipynb", _title(path)) for path in sources}


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(line[4:] for line in lines if line.startswith("# # "))


def page_link(lecture: str, part: str = "") -> str:
    """HTML: "lecture 06", as a link where its page is known; part: a heading of it."""
    label = f"lecture {escape(lecture)}"
    if lecture not in pages():
        return label
    notebook, title = pages()[lecture]
    where = f"{notebook}#{part.replace(' ', '-')}" if part else notebook
    return f'<a href="{escape(where)}" title="{escape(title)}">{label}</a>'
