"""What the decks draw with: large type, code, tables, boxes and arrows.

Beside the builder, not in the package: a notebook has other means, and a slide is for a hall."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from course_lib import claims_table
from course_lib.teaching import bar_chart
from course_lib.teaching.exercises import all_exercises
from course_lib.teaching.page import inline
from course_lib.teaching.style import INK

MONO = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def large(inner: str, zoom: float = 1.5) -> str:
    """A view made for a laptop, as large as a hall needs."""
    return f'<div style="zoom:{zoom};line-height:1.3">{inner}</div>'


def for_a_hall(figure: Any, width: int, height: int, right: int = 24) -> Any:
    """A figure of the notebook without its title (the slide has one) and with large type."""
    figure.update_layout(
        title_text="", width=width, height=height, font_size=20, margin={"t": 24, "r": right}
    )
    figure.update_traces(marker_pattern_fillmode="overlay", selector={"type": "bar"})
    return figure.update_annotations(font_size=20)


def code(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    inner = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return f'<pre class="code"><code>{inner}</code></pre>'


def body_of(function: Callable[..., Any], start: str = "") -> str:
    """The lines of a library function after signature and docstring, from the one with `start`."""
    source = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    first = node.body[1 if ast.get_docstring(node) else 0]
    lines = textwrap.dedent("\n".join(source.splitlines()[first.lineno - 1 :])).splitlines()
    return "\n".join(lines[next(i for i, line in enumerate(lines) if line.startswith(start)) :])


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True, size: int = 24
) -> str:
    """A table of ready HTML; all columns but the first to the right where they hold numbers."""
    right = ' style="text-align:right"' if numbers else ""
    cells = [
        "".join(
            f"<{tag}{right if i else ''}>{cell}</{tag}>" for i, cell in enumerate(row)
        )
        for tag, row in [("th", head), *(("td", row) for row in rows)]
    ]  # fmt: skip
    body = "".join(f"<tr>{row}</tr>" for row in cells[1:])
    style = f"font-size:{size}px;margin-bottom:14px" + ";white-space:nowrap" * numbers
    return f'<table style="{style}"><thead><tr>{cells[0]}</tr></thead><tbody>{body}</tbody></table>'


def apart(figure: Any, gap: float = 0.085) -> Any:
    """Labels at the right end, moved so far apart that large type does not touch."""
    labels = sorted((a for a in figure.layout.annotations if a.xref == "paper"), key=lambda a: a.y)
    for below, label in pairwise(labels):
        label.y = max(label.y, below.y + gap)
    return figure


def grid(
    values: Sequence[Sequence[Any]], x: float, y: float, step: tuple[float, float],
    look: Callable[[Any, int, int], dict[str, Any]], gap: float = 4,
) -> list[str]:  # fmt: skip
    """A box for each value, row by row; look(value, row, column) says how rect() draws it."""
    w, h = step
    return [
        rect(x + w * j, y + h * i, w - gap, h - gap, **look(value, i, j))
        for i, row in enumerate(values)
        for j, value in enumerate(row)
    ]


# ---- pictures -----------------------------------------------------------------------------------


def svg(width: int, height: int, *parts: str, says: str) -> str:
    arrow = (
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 10 5 0 10z" fill="{INK}"/></marker></defs>'
    )
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(says)}" font-size="20" fill="{INK}" style="display:block" '
        f'font-family="inherit">{arrow}{"".join(parts)}</svg>'
    )


def rect(
    x: float, y: float, w: float, h: float, text: str = "", *, fill: str = "#fff",
    ink: str = "#8a8a8a", wide: float = 1.5, dash: str = "", size: int = 20, mono: bool = False,
) -> str:  # fmt: skip
    """A box with its words in the middle."""
    style = f' style="{MONO}"' if mono else ""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    shape = (
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" fill="{fill}" stroke="{ink}" '
        f'stroke-width="{wide}"{dashes}/>'
    )
    return shape + words(x + w / 2, y + h / 2 + 0.35 * size, text, size, style=style)


def words(
    x: float, y: float, text: str, size: int = 20, anchor: str = "middle", style: str = ""
) -> str:
    if not text:
        return ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}"{style}>{text}</text>'


def arrow(*points: float, tip: bool = True, dash: str = "") -> str:
    """A line through x, y, x, y, …, with a tip at its end."""
    path = " ".join(f"{x} {y}" for x, y in zip(points[::2], points[1::2], strict=True))
    marker = ' marker-end="url(#tip)"' if tip else ""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.8"{marker}{dashes}/>'
    )


def claims_rows(
    lecture: str, chosen: Sequence[str], size: int = 19, last: str = "settled here"
) -> str:
    """A few of a lecture's claims: what they say, what it is, what was found here."""
    rows = [
        (inline(say), inline(it_is), inline(measured))
        for say, _, it_is, measured, _ in claims_table(lecture, only=list(chosen)).rows
    ]
    return table(("they say", "it is", last), rows, numbers=False, size=size)


def exercises_of(lecture: str) -> list[Any]:
    """A lecture's exercises, in order."""
    return [e for id, e in sorted(all_exercises().items()) if id.startswith(f"{lecture}.")]


def exercise_list(lecture: str) -> str:
    items = "".join(f"<li>{e.id} {escape(e.title)}</li>" for e in exercises_of(lecture))
    return f'<ul style="list-style:none;margin-left:0;font-size:21px">{items}</ul>'


def bars(
    values: Mapping[str, float], colours: Sequence[str], width: int, height: int, **chart: Any
) -> Any:
    """The course's bar chart, for a hall; a colour a bar, none for the chart's own."""
    figure = bar_chart(values, **chart)
    if colours:
        figure.update_traces(marker_color=list(colours))
    return for_a_hall(figure, width, height)
