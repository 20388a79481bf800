"""What the decks draw with: large type, code, tables, boxes and arrows.

Beside the builder, not in the package: a notebook has other means, and a slide is for a hall."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from math import log10
from statistics import mean, stdev
from typing import Any

from course_lib import claims_table
from course_lib.teaching import bar_chart
from course_lib.teaching.exercises import all_exercises
from course_lib.teaching.numbers import signed
from course_lib.teaching.page import inline, paragraphs
from course_lib.teaching.style import BLUE, INK, ORANGE, VERMILION, rounded, template
from course_lib.teaching.svg import MONO, arrow, cells, rect, words
from course_lib.teaching.svg import slide_svg as svg

__all__ = [
    "MONO", "apart", "arrow", "bars", "body_of", "claims_rows", "code", "embeddings_and_blocks",
    "exercise_list", "exercises_of", "for_a_hall", "grouped_bars", "in_line", "large",
    "marked_points", "on_one_line", "rect", "spread", "stacked_bars", "svg", "table", "wordless",
    "words",
]  # fmt: skip
DARK = {ORANGE: "#8a5f00", VERMILION: "#a04400"}  # in which words of these colours can be read
HATCH = f"repeating-linear-gradient(45deg,{ORANGE} 0 5px,#f7cf7a 5px 10px)"


def large(inner: str, zoom: float = 1.5) -> str:
    """A view made for a laptop, as large as a hall needs."""
    return f'<div style="zoom:{zoom};line-height:1.3">{inner}</div>'


def wordless(shown: Any) -> str:
    """A view's picture without the sentences under it: the slide has its own."""
    said = shown.text.splitlines()
    under = (paragraphs(said[n:]) for n in range(len(said)))
    return shown.html.replace(next(text for text in under if text in shown.html), "")


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
    at = [number for number, line in enumerate(lines) if line.startswith(start)]
    if not at:
        raise ValueError(f"{function.__name__} has no line any more that begins with {start!r}.")
    return "\n".join(lines[at[0] :])


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


def on_one_line(figure: Any) -> Any:
    """Names at the right end without the breaks that a laptop needs; a slide has more room."""
    named = {"xref": "paper"}
    return figure.for_each_annotation(
        lambda name: name.update(text=name.text.replace("<br>", " ")), selector=named
    )


def in_line(figure: Any, column: bool = False) -> Any:
    """Means of a chart of rows in the line of their dots, for rows that stand close: right of the
    dots, or, with their spread, in a column at the right end."""
    for label in figure.layout.annotations:
        if label.yref != "y" or not label.text.startswith("<b>"):
            continue
        row = round(label.y + 0.1)
        dots = [
            x for trace in figure.data if (trace.xaxis or "x") == label.xref
            for x, y in zip(trace.x, trace.y, strict=True)
            if x is not None and abs(y - row) < 0.5
        ]  # fmt: skip
        label.update(y=row if column else row + 0.14, yanchor="middle", xanchor="left")
        if column:
            label.update(xref="paper", x=1.02)
        else:
            label.update(x=max(dots), xshift=14, text=label.text.partition(" (")[0])
    return figure


def grid(
    values: Any, x: float, y: float, step: tuple[float, float],
    look: Callable[[Any, int, int], dict[str, Any]],
) -> list[str]:  # fmt: skip
    """Rounded boxes, a little apart: see course_lib.teaching.svg.cells."""
    return cells(values, x, y, step, look, gap=4, rounding=6)


# ---- pictures -----------------------------------------------------------------------------------


def claims_rows(
    lecture: str, chosen: Sequence[str], size: int = 19, last: str = "settled here"
) -> str:
    """A few of a lecture's claims: what they say, what it is, what was found here."""
    rows = [
        (inline(row.they_say), inline(row.it_is), inline(row.measured))
        for row in claims_table(lecture, only=list(chosen)).rows
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


def grouped_bars(
    groups: Mapping[str, tuple[Mapping[str, float], str, str]], y_range: Sequence[float],
    legend: Mapping[str, Any], width: int = 1120, height: int = 390,
) -> Any:  # fmt: skip
    """Differences in points, a bar a group at every column: name -> (column -> points, colour,
    pattern)."""
    import plotly.graph_objects as go

    figure = go.Figure(layout={"template": template(), "barmode": "group", "bargap": 0.27})
    for name, (points, colour, shape) in groups.items():
        figure.add_bar(
            x=list(points), y=rounded(points.values()), name=name, textposition="outside",
            text=[signed(value) for value in points.values()], textfont_size=18,
            cliponaxis=False, constraintext="none", marker_color=colour,
            marker_pattern={"shape": shape, "fgcolor": "white", "solidity": 0.25},
        )  # fmt: skip
    figure.update_yaxes(title_text="points", range=y_range, zeroline=True, zerolinecolor=INK)
    figure.update_xaxes(side="top", ticks="", showline=False)
    figure.update_layout(showlegend=True, legend={"font": {"size": 20}, **legend})
    return for_a_hall(figure, width, height)


def embeddings_and_blocks(
    name: str, parts: Sequence[tuple[float, str]], left: int = 90, total: str = ""
) -> str:
    """A model as a bar: the embeddings hatched, the blocks solid. parts: of each the fraction of
    the whole bar, and what is written in it."""
    looks = ((HATCH, INK, "background:#fff;padding:0 6px"), (BLUE, "#fff", ""))
    drawn = "".join(
        f'<span style="width:{100 * share:.2f}%;background:{ground};color:{ink};box-sizing:'
        'border-box;padding:4px 0 4px 10px;white-space:nowrap;overflow:hidden">'
        f'<span style="{plate}">{said}</span></span>'
        for (share, said), (ground, ink, plate) in zip(parts, looks, strict=True)
    )
    rest = "" if total else "background:#d9d9d9"
    right = f'<span style="flex:0 0 96px;text-align:right">{total}</span>' if total else ""
    return (
        '<div style="display:flex;align-items:center;margin:0 0 7px;font-size:21px">'
        f'<span style="flex:0 0 {left}px">{name}</span>'
        f'<span style="display:flex;flex:1;{rest}">{drawn}</span>{right}</div>'
    )


def stacked_bars(
    models: Sequence[tuple[str, Sequence[tuple[float, str]], str]],
    looks: Sequence[tuple[str, str]], left: int = 150, right: int = 110,
) -> str:  # fmt: skip
    """A bar a model, cut into its parts: name, for each part its fraction of the longest bar and
    what is written in it, and what stands at the end. looks: ground and ink of each part."""
    lines = []
    for name, parts, end in models:
        drawn = ""
        for (fraction, said), (ground, ink) in zip(parts, looks, strict=True):
            said = said if fraction > 0.06 else ""  # there is no room in a narrow part
            plate = "background:#fff;padding:0 5px" if said and ground == HATCH else ""
            drawn += (
                f'<span style="width:{100 * fraction:.2f}%;background:{ground};color:{ink};'
                "padding:4px 0;box-sizing:border-box;white-space:nowrap;overflow:hidden;"
                f'text-align:center"><span style="{plate}">'
                f"{said or '&nbsp;'}</span></span>"
            )
        lines.append(
            '<div style="display:flex;align-items:center;margin:0 0 8px;font-size:21px">'
            f'<span style="flex:0 0 {left}px">{name}</span>'
            f'<span style="display:flex;flex:1">{drawn}</span>'
            f'<span style="flex:0 0 {right}px;text-align:right">{end}</span></div>'
        )
    return "".join(lines)


def marked_points(
    points: Sequence[tuple[float, float, str, str, str, int]], shifts: Mapping[str, int],
    x_title: str, y_title: str, x_range: Sequence[float], y_range: Sequence[float],
    ticks: Mapping[float, str], height: int = 400,
) -> Any:  # fmt: skip
    """Named points over a logarithmic axis of prices: x, y, name, symbol, colour, and the side of
    the mark where the name stands, 1 right, −1 left; shifts: of names, upwards in pixels."""
    import plotly.graph_objects as go

    figure = go.Figure(layout={"template": template()})
    for x, y, name, symbol, colour, side in points:
        figure.add_scatter(
            x=[x], y=[y], mode="markers", cliponaxis=False,
            marker={"symbol": symbol, "size": 15, "color": colour},
        )  # fmt: skip
        figure.add_annotation(
            x=log10(x), y=y, text=name, showarrow=False, xshift=14 * side,
            xanchor="left" if side > 0 else "right", yshift=shifts.get(name, 0),
            font_color=DARK.get(colour, colour),
        )  # fmt: skip
    figure.update_xaxes(
        type="log", range=[log10(x) for x in x_range], title_text=f"{x_title} (logarithmic)",
        tickvals=list(ticks), ticktext=list(ticks.values()),
    )  # fmt: skip
    figure.update_yaxes(title_text=y_title, range=list(y_range))
    return for_a_hall(figure, 1120, height)


def spread(values: Sequence[float], unit: str = "%") -> str:
    """The mean of values from 0 to 1 in percent, and their standard deviation over seeds."""
    around = f" (sd {100 * stdev(values):.1f})" if len(values) > 1 else ""
    return f"{100 * mean(values):.1f}{unit}{around}"
