"""“Predict first” without a kernel: where a page asks for guesses, boxes that remember them; where
it prints them beside the answers, the same table with what the reader wrote."""

from __future__ import annotations

import ast
import json
import re
from html import escape
from typing import Any

import nbformat

GUESSED = re.compile(r"^my_guesses = (\{.*?\})", re.MULTILINE | re.DOTALL)
WITHOUT = "With scripts allowed, the site remembers your guesses here."


def place_guesses(page: nbformat.NotebookNode, number: str) -> None:
    """Put the boxes for guesses behind the cell that asks for them, and the table behind the last
    cell that prints them. Raises ValueError where an answer is not in the stored output."""
    asked = [
        cell for cell in page.cells if cell.cell_type == "code" and GUESSED.search(cell.source)
    ]
    if not asked:
        return
    keys = keys_of(asked[0].source)
    insert_after(page, asked[0], _box(number, keys=keys))
    for cell in page.cells:
        if cell.cell_type == "code" and "my_guesses[" in cell.source:
            answers = answers_of("".join(out.get("text", "") for out in cell.outputs), keys)
            insert_after(page, cell, _box(number, answers=answers))
            return


def keys_of(source: str) -> list[str]:
    """What a cell `my_guesses = {…}` asks for."""
    written = GUESSED.search(source)
    assert written
    return [ast.literal_eval(key) for key in ast.parse(written[1], mode="eval").body.keys]  # type: ignore[attr-defined]


def answers_of(printed: str, keys: list[str]) -> dict[str, str]:
    """The answers in a printed table of key, guess and answer; "–" stands for no guess. Lines that
    begin with spaces go on with the answer above."""
    answers, lines = {}, printed.splitlines()[1:]
    for key in keys:
        rows = [n for n, line in enumerate(lines) if re.match(rf"{re.escape(key)}\s+–", line)]
        if not rows:
            raise ValueError(
                f"The page prints no answer to the guess {key!r}; expected a line of it."
            )
        parts = [lines[rows[0]].removeprefix(key).strip().removeprefix("–")]
        for line in lines[rows[0] + 1 :]:
            if not line.startswith(" "):
                break
            parts.append(line)
        answers[key] = " ".join(part.strip() for part in parts)
    return answers


def _box(number: str, **what: Any) -> str:
    data = {name: json.dumps(value) for name, value in what.items()}
    return play_box("your guesses", WITHOUT, {"play": "guess", "page": number, **data})


def play_box(label: str, without: str, data: dict[str, str]) -> str:
    """The place in which models/PLAY.js draws; without: what stands there where no script runs."""
    attributes = " ".join(f'data-{name}="{escape(value)}"' for name, value in data.items())
    start = f'<div class="play-box" role="group" aria-label="{label}" {attributes}>'
    return f"{start}<p>{without}</p></div>"


def insert_after(page: nbformat.NotebookNode, cell: nbformat.NotebookNode, text: str) -> None:
    page.cells.insert(page.cells.index(cell) + 1, nbformat.v4.new_markdown_cell(text))
