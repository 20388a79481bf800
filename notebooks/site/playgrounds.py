"""Where a reader's own text is read on the site: which playground stands on which page, and the
models that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from live import Recorded
from weights import GROUP, write_model

from course_lib import load_pretrained
from course_lib.teaching.attention import widget_class
from course_lib.teaching.shipped import micro_electra
from course_lib.text import english
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld


@dataclass(frozen=True)
class Playground:
    """play: the script, models/NAME.js; after: words of the page's Markdown cell that it follows;
    models: names of what it opens, see `shipped`; blank: the number of the sentence of data/english
    that it opens with; try_this: what to do, as Markdown."""

    page: str
    after: str
    play: str
    models: tuple[str, ...]
    blank: int
    try_this: str


FILL = (
    "Press a word piece to hide it, or write `[MASK]` yourself, and see what the model guesses. "
    "Then choose a layer and a head: where does `[MASK]` look?"
)
PLAYGROUNDS = (
    Playground("00", "*Five guesses each", "fill", ("course-bert",), 12, FILL),
    Playground("02", "*All of them, as they come out", "fill", ("course-bert",), 1, FILL),
)
NOTE = (
    "{models} in this page, without a server. The weights are int8 here, in groups of {group} with "
    "a scale each: the numbers are the notebook's up to that."
)
WITHOUT = (
    "Here the site runs the model on your own text. That needs a browser of 2021 or later, with "
    "scripts allowed; the cell above shows some sentences as they come out."
)


def place_playgrounds(page: nbformat.NotebookNode, number: str) -> None:
    """Put the playgrounds of the page with this number into it, each behind its cell. Raises
    ValueError where the page has no such cell."""
    for one in PLAYGROUNDS:
        if one.page == number:
            cells = [c.cell_type == "markdown" and one.after in c.source for c in page.cells]
            if not any(cells):
                raise ValueError(f"Expected a text with {one.after!r}, which {one.play} follows.")
            page.cells.insert(cells.index(True) + 1, nbformat.v4.new_markdown_cell(markdown(one)))


def markdown(one: Playground) -> str:
    """A playground as Markdown: what to try, and the box in which site.js draws it."""
    text = english.blanks()[one.blank].text
    running = f"{' and '.join(one.models)} {'run' if len(one.models) > 1 else 'runs'}"
    note = NOTE.format(models=running, group=GROUP)
    data = {"play": one.play, "models": " ".join(one.models), "text": text, "note": note}
    attributes = " ".join(f'data-{name}="{escape(value)}"' for name, value in data.items())
    box = f'<div class="play-box" role="group" aria-label="your own sentence" {attributes}>'
    return f"**Your own sentence.** {one.try_this}\n\n{box}<p>{WITHOUT}</p></div>"


def write_models(notebooks: Sequence[Path], folder: Path) -> None:
    """The models that these pages' playgrounds open."""
    numbers = {path.stem[:2] for path in notebooks}
    for name in sorted({name for one in PLAYGROUNDS if one.page in numbers for name in one.models}):
        write_model(name, *shipped(name), folder)


def shipped(name: str) -> tuple[Any, WordPiece]:
    """A model of the course and its tokenizer: a checkpoint by its name, or a network of the
    micro-world's ELECTRA, electra-discriminator or electra-generator."""
    family, _, network = name.partition("-")
    if family == "electra":
        return getattr(micro_electra(), network), MicroWorld.load().tokenizer
    read: Any = load_pretrained(name)
    return read.model, read.tokenizer


def attention_script() -> dict[str, Recorded]:
    """The script and style of the attention view, which playgrounds draw with."""
    kind = widget_class()
    one = Recorded("attention", {}, kind.__name__, str(kind._esm), str(kind._css))
    return {one.module: one}
