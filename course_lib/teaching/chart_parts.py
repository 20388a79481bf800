"""The parts that the figures of the course are made of: axes, lines, levels, direct labels."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from .style import (
    BLUE,
    COLOURS,
    DASHES,
    GREEN,
    GREY,
    HEIGHT,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH,
    YELLOW,
    rounded,
    template,
)
from .style import dash as dash_of

Curve = tuple[Sequence[float], Sequence[float]]  # x, y
End = tuple[str, float, str]  # what a label says, its place on the y axis, its colour
Box = tuple[float, float, float, float]  # left, bottom, right, top in pixels


def new_figure(title: str, x: str, y: str, log_x: bool = False) -> Any:
    """An empty figure with its titles, in the course's template."""
    import plotly.graph_objects as go

    figure = go.Figure(layout={"template": template(), "width": WIDTH, "height": HEIGHT})
    titles = {"title_text": title, "xaxis_title_text": x, "yaxis_title_text": y}
    figure.update_layout(**{key: text for key, text in titles.items() if text})
    if log_x:
        figure.update_xaxes(type="log", dtick=1)
    figure.update_xaxes(tickformat=",")
    return figure


def add_line(
    figure: Any,
    x: Sequence[float],
    y: Sequence[float],
    name: str,
    *,
    marks: bool = False,
    colour: str = "",
    style: str = "",
    symbol: str = "circle",
    width: float = 2.5,
    opacity: float = 1.0,
) -> None:
    """A curve; `marks` puts a marker at each of its points."""
    import plotly.graph_objects as go

    ink = colour or COLOURS.get(name, BLUE)
    line = {"color": ink, "dash": style or dash_of(name), "width": width}
    mode = "lines+markers" if marks else "lines"
    trace = go.Scatter(x=list(x), y=rounded(y), name=name, line=line, mode=mode)
    if marks and symbol != "circle":
        trace.update(marker_symbol=symbol)
    figure.add_trace(trace if opacity == 1 else trace.update(opacity=opacity))


def add_levels(figure: Any, levels: Mapping[str, float], first: float, last: float) -> list[End]:
    """Horizontal lines from first to last; returns what their labels need."""
    import plotly.graph_objects as go

    ends = []
    for i, (name, value) in enumerate(levels.items()):
        colour = COLOURS.get(name, INK)
        style = DASHES.get(name, ("dot", "dash", "dashdot")[i % 3])
        line = {"color": colour, "dash": style, "width": 1.8}
        level = rounded([value, value])
        figure.add_trace(go.Scatter(x=[first, last], y=level, name=name, mode="lines", line=line))
        ends.append((name, float(value), colour))
    return ends


def label_ends(
    figure: Any,
    ends: Sequence[End],
    *,
    lowest: float | None = None,
    highest: float | None = None,
    percent: bool = False,
) -> None:
    """Names at the right end of their lines, moved apart where they would touch."""
    values = [value for _, value, _ in ends]
    low = min(values) if lowest is None else lowest
    high = (
        1.05 * max([*values, *(max(trace.y) for trace in figure.data)])
        if highest is None
        else highest
    )
    figure.update_yaxes(range=[low, high])
    most_lines = max((name.count("<br>") + 1 for name, _, _ in ends), default=1)
    gap = (high - low) * 0.055 * most_lines
    for (name, value, colour), at in zip(ends, apart(values, gap, high), strict=True):
        text = f"{name} {number(value, percent)}"
        figure.add_annotation(
            x=1.01, xref="paper", y=min(rounded([at])[0], high),  # beyond the axis it would vanish
            text=text, showarrow=False, xanchor="left",
            align="left", xshift=5, font={"color": readable(colour), "size": 13},
        )  # fmt: skip
    figure.update_layout(margin_r=30 + 8 * (_longest_line(name for name, _, _ in ends) + 6))


def _longest_line(texts: Iterable[str]) -> int:
    return max((len(line) for text in texts for line in text.split("<br>")), default=0)


def wrapped(text: str, width: int) -> str:
    """The text broken into lines of at most `width` characters, where its words allow it."""
    return "<br>".join(textwrap.wrap(text, max(width, 4), break_long_words=False)) or text


def apart(values: Sequence[float], gap: float, high: float) -> list[float]:
    """The values, moved up, or down from `high`, until neighbours are `gap` apart."""
    order = sorted(range(len(values)), key=values.__getitem__)
    at = list(values)
    for before, here in pairwise(order):
        at[here] = max(at[here], at[before] + gap)
    ceiling = high
    for here in reversed(order):  # those pushed over the top push back
        at[here] = min(at[here], ceiling)
        ceiling = at[here] - gap
    return at


def label_point(figure: Any, name: str, x: float, y: float, log_x: bool) -> None:
    figure.add_annotation(
        x=math.log10(x) if log_x else x, y=rounded([y])[0], text=f"{name} {number(y, True)}",
        showarrow=True, arrowhead=0, arrowcolor=COLOURS[name], ax=34, ay=26, xanchor="left",
        bgcolor="rgba(255,255,255,0.85)", font={"color": COLOURS[name]},
    )  # fmt: skip


def level_mark(figure: Any, place: int, level: float) -> None:
    line = {"color": INK, "width": 2, "dash": "dot"}
    figure.add_shape(type="line", x0=place - 0.4, x1=place + 0.4, y0=level, y1=level, line=line)


def log_ticks(first: float, last: float) -> list[float]:
    """1, 2 and 5 times the powers of ten between 10^first and 10^last; the powers if many."""
    steps = (1, 2, 5) if last - first < 2.5 else (1,)
    powers = range(math.floor(first), math.ceil(last) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return rounded(tick for tick in ticks if first <= math.log10(tick) <= last)


def inside(box: Box, area: tuple[float, float]) -> bool:
    """Whether a label fits between the axes, or reaches into the margin at the right a little."""
    return box[0] >= 0 and box[1] >= 0 and box[2] <= area[0] + 14 and box[3] <= area[1]


def hits(box: Box, taken: Iterable[Box]) -> bool:
    """Whether the box covers a part of one of the others."""
    return any(box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3] for t in taken)


def above_zero(x: Sequence[float], y: Sequence[float], log_x: bool) -> Curve:
    kept = [(a, b) for a, b in zip(x, y, strict=True) if not log_x or a > 0]
    return [a for a, _ in kept], [b for _, b in kept]


def span(first: float, last: float, log_x: bool) -> list[float]:
    """The axis from first to last, with room for a mark at the start; powers of ten where log."""
    if log_x:
        first, last = math.log10(first), math.log10(last)
    return rounded([first - 0.02 * (last - first), last])


def number(value: float, percent: bool) -> str:
    """A value as labels show it: three digits, or a percentage with one decimal."""
    if percent:
        return f"{100 * value:.1f}%"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e-0", "e-")


def readable(colour: str) -> str:
    """Label ink: light line colours darkened, so that words keep a contrast of 4.5 : 1 on white."""
    darker = {
        PURPLE: "#9c4a78", SKY: "#1f76a8", ORANGE: "#8f6300", GREEN: "#00745a",
        VERMILION: "#b04e00", YELLOW: "#6f6900", GREY: "#666666",
    }  # fmt: skip
    return darker.get(colour, colour)
