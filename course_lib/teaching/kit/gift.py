"""Exam items in GIFT, the plain text that Moodle and other learning platforms import.

The format as Moodle's documentation describes it (docs.moodle.org, "GIFT format"): an item is
`::name::[html]question {answers}` and ends at an empty line; `=` stands before a right answer, `~`
before a wrong one, `#` before what is said to whoever chooses it, `####` before what is said to
everybody. A backslash goes before each of `\\ ~ = # { } :` that is meant as itself, and a line end
is written `\\n`.

No library does it for us: of those on PyPI gift-wrapper is the one that is kept up, and it reads
questions from YAML files and brings an SSH client. For Canvas and other platforms that import QTI,
text2qti is kept well; the function `text2qti` writes what it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .bank import LETTERS, Item, shuffled_choices
from .pages import as_html

SPECIAL = re.compile(r"([\\~=#{}:])")


def gift(items: Iterable[Item], seed: int, category: str = "BERT and its family") -> str:
    """The items, those of a lecture in one category. seed: shuffles the choices."""
    parts, lecture = [], ""
    for item in sorted(items, key=lambda item: item.lecture):
        if item.lecture != lecture:
            lecture = item.lecture
            parts.append(f"$CATEGORY: $course$/{category}/Lecture {lecture}")
        parts.append(gift_item(item, seed))
    return "\n\n".join(parts) + "\n"


def gift_item(item: Item, seed: int) -> str:
    """One item: of choices, or an essay whose key is what is said afterwards."""
    head = f"::{escaped(item.id)}::[html]{escaped(as_html(item.question))} {{"
    if not item.choices:
        return f"{head}####{escaped(as_html(item.key))}}}"
    choices = shuffled_choices(item, seed)
    right = sum(choice.correct for choice in choices)
    lines = []
    for choice in choices:
        text, why = escaped(as_html(choice.text)), escaped(as_html(choice.why))
        sign = "=" if choice.correct and right == 1 else "~"
        if right > 1:  # all that are right are worth the item, all that are wrong take it away
            share = 1 / right if choice.correct else -1 / (len(choices) - right)
            sign += f"%{100 * share:.5f}".rstrip("0").rstrip(".") + "%"
        elif text.startswith("%"):  # else it would be read as a weight
            sign += "%100%" if choice.correct else "%0%"
        lines.append(f"\t{sign}{text}{f'#{why}' if why else ''}")
    return "\n".join([head, *lines, "}"])


def text2qti(items: Iterable[Item], seed: int, title: str = "BERT and its family") -> str:
    """The items, in this order, as `text2qti` reads them: it makes QTI of a text. Each text is one
    line of HTML, which it leaves alone. title: of the quiz, where it is imported."""
    parts = [f"Quiz title: {title}"]
    for number, item in enumerate(items, 1):
        lines = [
            f"Title: {item.id}",
            f"Points: {item.points}",
            f"{number}.  {_line(item.question)}",
        ]
        if not item.choices:
            lines += [f"... {_line(item.key)}", "____"]
        several = sum(choice.correct for choice in item.choices) > 1
        for letter, choice in zip(LETTERS, shuffled_choices(item, seed), strict=False):
            if several:
                lines.append(f"[{'*' if choice.correct else ' '}] {_line(choice.text)}")
            else:
                lines.append(f"{'*' if choice.correct else ''}{letter})  {_line(choice.text)}")
            lines += [f"... {_line(choice.why)}"] if choice.why else []
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _line(text: str) -> str:
    html = as_html(text)
    html = html if html.startswith("<p>") else f"<div>{html}</div>"
    return html.replace("\n", "&#10;")


def escaped(text: str) -> str:
    """Text that means itself in GIFT; its line ends are written as two signs."""
    return SPECIAL.sub(r"\\\1", text.strip()).replace("\n", r"\n")
