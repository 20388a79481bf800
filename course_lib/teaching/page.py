"""Things that show themselves: HTML with a plain-text twin, live controls with a static twin."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .style import patterns

FONT = "font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
# Every view brings its own ground and its own ink, so that a dark notebook theme cannot hide it.
CARD = (
    f"background:#fff;color:#1a1a1a;color-scheme:light;{FONT};font-size:14px;line-height:1.45;"
    "padding:10px 12px"
)
MARKS = re.compile(  # of code; of stress, which may hold code
    r"`([^`]+)`|(?<![\w*])(\*\*?)(?=\S)((?:`[^`]+`|[^*`])+?)(?<=\S)\2(?![\w*])"
)
LABEL = re.compile(' role="img" aria-label="[^"]*"')
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True, repr=False)
class Html:
    """A piece of HTML for a notebook; `text` is what a terminal, a test or a screen reader gets."""

    html: str
    text: str
    inner: str = ""  # the HTML without its own ground, for use inside another view

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, repr=False)
class Live:
    """A widget together with the static picture that stands for it where no kernel runs.

    A saved notebook drops the widget part of the output and keeps the picture.
    controls: the sliders and boxes by name; set .value to move one.
    """

    widget: Any
    static: Html
    controls: dict[str, Any] = field(default_factory=dict)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": self.static.text, "text/html": self.static.html}
        model_id = getattr(self.widget, "model_id", None)
        if model_id:
            bundle[WIDGET_VIEW] = {"version_major": 2, "version_minor": 0, "model_id": model_id}
        return bundle

    def __repr__(self) -> str:
        return self.static.text


def card(content: str, kind: str, width: int = 760) -> str:
    """A light box around HTML; `kind` becomes its class."""
    style = f"{CARD};max-width:{width}px;box-sizing:border-box"
    return f'<div class="course-view {kind}" style="{style}">{content}</div>'


def paragraphs(lines: Iterable[str]) -> str:
    """Sentences below a picture, line ends kept."""
    style = "margin:6px 0 0;white-space:pre-line"
    return "".join(f'<p style="{style}">{escape(line)}</p>' for line in lines)


def note(message: str) -> str:
    """A message inside a view, marked by a sign and a bar, not by colour alone."""
    style = "border-left:4px solid #D55E00;padding:4px 10px;margin:6px 0"
    return f'<div role="status" style="{style}">⚠ {escape(message)}</div>'


def check_one_of(options: Iterable[Any], **chosen: Any) -> None:
    """Raise ValueError, with its name, for a value that is none of the options."""
    for name, value in chosen.items():
        if value not in (known := list(options)):
            listed = ", ".join(map(str, known))
            raise ValueError(f"{name}={value!r} was given; expected one of {listed}.")


def table_row(kind: str, texts: Sequence[str], sides: Sequence[str]) -> str:
    """A row of "th" or "td" cells; each cell brings its own ground, as themes stripe tables."""
    style = "padding:2px 6px;white-space:nowrap;color:#1a1a1a;background:#fff;font-size:13px"
    cells = (
        f'<{kind} style="{style};text-align:{side}">{escape(text)}</{kind}>'
        for side, text in zip(sides, texts, strict=True)
    )
    return f'<tr style="background:#fff">{"".join(cells)}</tr>'


def number_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], kind: str, width: int = 820, words: int = 1
) -> Html:
    """A card with a table: the first `words` columns at the left, the others, numbers, at the
    right. `kind` becomes the card's class."""
    html, text = table_html(head, rows, words), "\n".join("  ".join(row) for row in (head, *rows))
    return Html(card(html, kind, width), text, html)


def table_html(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """The table without its card."""
    sides = ["left" if n < words else "right" for n in range(len(head))]
    body = table_row("th", head, sides) + "".join(table_row("td", row, sides) for row in rows)
    return f'<table style="border-collapse:collapse;margin:0;background:#fff">{body}</table>'


def inline(text: str, plain: bool = False) -> str:
    """Escaped text in which `code`, *stress* and **more of it** are marked up. What stands in code
    is left as it is; stars that touch a word on both sides, as in a**b, are no marks.

    plain: without styles, and quotation marks as they are: for pages that bring a style."""
    code = "<code>" if plain else '<code style="background:#f0f0f0;color:#1a1a1a">'

    def marked(match: re.Match[str]) -> str:
        if match[1]:
            return f"{code}{match[1]}</code>"
        tag = "em" if match[2] == "*" else "b"
        return f"<{tag}>{MARKS.sub(marked, match[3])}</{tag}>"

    return MARKS.sub(marked, escape(text, quote=not plain))


def svg_image(svg: str, alt: str) -> str:
    """An SVG as an image: it stays where inline SVG is taken out of a notebook not yet trusted.

    Its own label goes: inside an image nobody reads it, and `alt` says the same."""
    data = base64.b64encode(LABEL.sub("", svg, count=1).encode()).decode()
    style = "max-width:100%;background:#fff"
    return f'<img alt="{escape(alt)}" style="{style}" src="data:image/svg+xml;base64,{data}">'


def svg_drawing(width: int, height: float, content: str, label: str, *, role: str = "img") -> str:
    """An SVG on a white ground, in the course's font and ink; `label` is for screen readers.

    role: "group" where it holds links, which a picture hides from them."""
    size = f'width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" '
        f'role="{role}" aria-label="{escape(label)}" '
        'style="max-width:100%;height:auto;display:block">'
        f'<rect {size} fill="#fff"/><g font-family="system-ui,sans-serif" font-size="13" '
        f'fill="#1a1a1a">{patterns(content)}{content}</g></svg>'
    )


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this (and not a terminal, a script or a test)."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def caption(text: str) -> None:
    """Print the sentence under a figure that says what to see."""
    if not in_notebook():
        print(text)
        return
    from IPython.display import display

    html = f'<p style="max-width:720px;margin:2px 0 14px;{FONT};font-size:14px">{inline(text)}</p>'
    display(Html(html, text))


def number(value: float) -> str:
    """Two decimals, a true minus sign, and no minus zero."""
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def signed(value: int) -> str:
    """A whole number with a true minus sign."""
    return str(value).replace("-", "−")
