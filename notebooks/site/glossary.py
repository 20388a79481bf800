"""The glossary: each term of the course in one sentence, with a link to where it is first used."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import nbformat
from docutils.nodes import make_id
from site_links import as_jupyter_does

TERMS = Path(__file__).resolve().parent / "glossary.toml"
HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
# What no link may stand in: code, formulas, links, images, HTML, headings and table rows.
CLOSED = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|!?\[[^\]]*\]\([^)]*\)|<a\b.*?</a>|<[^>]*>"
    r"|^#[^\n]*|^\|[^\n]*", re.MULTILINE | re.DOTALL,
)  # fmt: skip


@dataclass(frozen=True)
class Term:
    """A term, what it means in one sentence, and the forms in which pages have it."""

    name: str
    says: str
    also: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        return f"term-{make_id(self.name)}"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        forms = sorted({self.name, *self.also}, key=len, reverse=True)
        return re.compile(rf"(?<![\w\-\[])(?:{'|'.join(map(re.escape, forms))})(?![\w\-\]])")


@cache
def read_terms() -> list[Term]:
    """All terms, in alphabetical order."""
    entries: Mapping[str, Any] = tomllib.loads(TERMS.read_text(encoding="utf-8"))
    terms = [
        Term(name, entry)
        if isinstance(entry, str)
        else Term(name, entry["says"], tuple(entry.get("also", ())))
        for name, entry in entries.items()
    ]
    return sorted(terms, key=lambda term: term.name.strip("[]").casefold())


def first_use(term: Term, pages: Mapping[str, list[str]]) -> tuple[str, str] | None:
    """The page and the heading under which a term is first used in a sentence; pages: `texts_of`
    the notebooks."""
    for stem, texts in pages.items():
        heading = ""
        for text in texts:
            match = _open_match(term, text)
            before = HEADING.findall(text[: match.start()] if match else text)
            heading = before[-1] if before else heading
            if match:
                return stem, heading
    return None


def link_terms(text: str, terms: list[Term], seen: set[str]) -> str:
    """A page's Markdown with a link at the first use of each term; seen: the page's terms so far,
    which it adds to."""
    for term in terms:
        if term.name not in seen and (match := _open_match(term, text)):
            seen.add(term.name)
            link = f'<a class="term" href="glossary.html#{term.anchor}">{match[0]}</a>'
            text = text[: match.start()] + link + text[match.end() :]
    return text


def glossary(notebooks: Sequence[Path]) -> str:
    """The page as Markdown: the terms that these notebooks use."""
    lines = ["# Glossary", "", "The terms of the course, and where each is first used.", ""]
    pages = texts_of(notebooks)
    for term in read_terms():
        if place := first_use(term, pages):
            stem, heading = place
            goal = f"{stem}.ipynb" + (f"#{as_jupyter_does(heading)}" if heading else "")
            where = f"[{stem[:2]}{': ' + heading if heading else ''}]({goal})"
            lines += [
                f'<p class="term" id="{term.anchor}"><strong>{term.name}</strong></p>', "",
                f"{term.says} First used in {where}", "",
            ]  # fmt: skip
    return "\n".join(lines)


def texts_of(notebooks: Sequence[Path]) -> dict[str, list[str]]:
    """The texts of each notebook from which one learns, by its stem."""
    return {
        path.stem: [
            cell.source for cell in nbformat.read(path, as_version=4).cells
            if cell.cell_type == "markdown" and explains(cell.source)
        ]
        for path in notebooks
    }  # fmt: skip


def explains(text: str) -> bool:
    """Whether a cell is one to learn from: a question for review uses terms that came before."""
    return not text.startswith("## Questions for review")


def _open_match(term: Term, text: str) -> re.Match[str] | None:
    """The first use of a term outside of what no link may stand in."""
    if not term.pattern.search(text):
        return None
    closed = [match.span() for match in CLOSED.finditer(text)]
    return next(
        (
            match for match in term.pattern.finditer(text)
            if not any(a < match.end() and match.start() < b for a, b in closed)
        ),
        None,
    )  # fmt: skip
