"""The figures of the course: one template, direct labels, the same colour for the same thing.

Every function returns a plotly Figure of numbers rounded to four digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    PATTERNS,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH,
    YELLOW,
    rounded,
    template,
    thinned,
)
from .style import dash as dash_of

Curve = tuple[Sequence[float], Sequence[float]]  # x, y


def plot_loss(
    history: Any,
    baselines: Mapping[str, float] | None = None,
    *,
    parts: Sequence[str] = (),
    title: str = "Training loss",
    log_x: bool = False,
) -> Any:
    """The loss of a run (History) over its steps, smoothed, with level lines to beat.

    baselines: {name: loss in nats}; parts: which losses, all of them where there are several kinds.
    """
    names = list(parts) or [n for n in history.losses if n != "total"] or ["total"]
    if "mlm" in names and not parts:
        names = [
            "mlm",
            *(n for n in names if n != "mlm" and history.losses[n] != history.losses["mlm"]),
        ]
    figure = _figure(title, "step", "loss (nats)", log_x)
    ends: list[tuple[str, float, str]] = []
    for name in names:
        x, y = thinned(history.steps, history.losses[name])
        _line(figure, x, y, name)
        ends.append((name, y[-1], COLOURS.get(name, BLUE)))
    ends += _levels(figure, baselines or {}, history.steps[0], history.steps[-1])
    _labels(figure, ends, lowest=0.0)
    return figure


def accuracy_chart(
    steps: Sequence[float],
    accuracies: Sequence[float],
    *,
    unigram: float,
    count_model: float,
    oracle: float,
    long_run: Curve | None = None,
    log_x: bool = False,
    title: str = "Masked words predicted right, held-out stories",
) -> Any:
    """The model's accuracy over its steps, between three levels.

    long_run: (steps, accuracies) of a longer run, drawn behind. All accuracies are
    shares from 0 to 1. A logarithmic axis begins at the first step above zero.
    """
    figure = _figure(title, "training step", "accuracy", log_x)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.04])
    ends: list[tuple[str, float, str]] = []
    curves = [("model", (steps, accuracies))]
    curves = [("long run", long_run), *curves] if long_run else curves
    for name, (x, y) in curves:
        width, opacity = (5.0, 0.55) if name == "long run" else (2.5, 1.0)
        marks = name == "model" and len(steps) <= 40
        x, y = _positive(x, y, log_x)
        _line(figure, x, y, name, marks=marks, width=width, opacity=opacity)
    every = [v for _, (x, _) in curves for v in x if not log_x or v > 0]
    levels = {"oracle": oracle, "count model": count_model, "unigram": unigram}
    ends += _levels(figure, levels, min(every), max(every))
    ends += [(name, float(y[-1]), COLOURS[name]) for name, (x, y) in curves if x[-1] == max(every)]
    if long_run and steps[-1] < max(every):
        _label_point(figure, "model", steps[-1], accuracies[-1], log_x)
    _labels(figure, ends, lowest=0.0, highest=1.04, percent=True)
    figure.update_xaxes(range=_span(min(every), max(every), log_x))
    return figure


def bar_chart(
    values: Mapping[str, float],
    *,
    expected: Mapping[str, float] | None = None,
    title: str = "",
    y_title: str = "",
    percent: bool = False,
) -> Any:
    """Bars with their numbers on top, each with its own pattern; `expected` is a level on it."""
    import plotly.graph_objects as go

    figure = _figure(title, "", y_title)
    names, heights = list(values), rounded(values.values())
    known = expected or {}
    colours = [COLOURS.get(name.lower(), BLUE) for name in names]
    shapes = [PATTERNS[i % len(PATTERNS)] for i in range(len(names))]
    figure.add_trace(
        go.Bar(
            x=names,
            y=heights,
            text=[_number(v, percent) for v in heights],
            textposition="outside",
            marker={
                "color": colours,
                "pattern": {
                    "shape": shapes,
                    "fillmode": "overlay",
                    "fgcolor": "white",
                    "solidity": 0.25,
                },
            },
            cliponaxis=False,
            hoverinfo="skip",
            width=0.6,
        )
    )
    for i, name in enumerate(names):
        if name in known:
            _level_mark(figure, i, rounded([known[name]])[0])
    under = [f"{n}<br>expected {_number(known[n], percent)}" if n in known else n for n in names]
    figure.update_yaxes(range=[0, 1.15 * max([*heights, *known.values(), 1e-9])])
    figure.update_xaxes(range=[-0.5, len(names) - 0.5], tickvals=names, ticktext=under)
    if percent:
        figure.update_yaxes(tickformat=".0%")
    return figure


def coverage_chart(rate: float = 0.15, passes: int = 40, copies: int = 10) -> Any:
    """The share of positions ever hidden, pass by pass: mask drawn once, in copies, or anew.

    With k different draws of rate r a position stays unhidden with probability (1 − r)ᵏ.
    """
    figure = _figure("Positions hidden at least once", "passes over the text", "share of positions")
    figure.update_yaxes(tickformat=".0%", range=[0, 1.04])
    x = list(range(1, passes + 1))
    ways = {"drawn once": (1, "dot", VERMILION), f"{copies} copies": (copies, "dash", ORANGE),
            "anew each time": (passes, "solid", BLUE)}  # fmt: skip
    ends = []
    for name, (most, style, colour) in ways.items():
        y = [1 - (1 - rate) ** min(k, most) for k in x]
        _line(figure, x, y, name, colour=colour, style=style)
        ends.append((name, y[-1], colour))
    _labels(figure, ends, lowest=0.0, highest=1.04, percent=True)
    return figure


def heat_chart(
    matrix: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
) -> Any:
    """A matrix (rows × columns) on the Cividis scale, numbers in up to 100 cells."""
    import plotly.graph_objects as go

    numbers = [rounded(row) for row in matrix]
    few = len(rows) * len(columns) <= 100
    # Positions, not names, on the axes: the same token may occur twice.
    figure = _figure(title, x_title, y_title)
    figure.add_trace(
        go.Heatmap(
            z=numbers,
            colorscale="Cividis",
            texttemplate="%{z:.2~f}" if few else None,
            hovertemplate="row %{y}, column %{x}: %{z}<extra></extra>",
            xgap=1,
            ygap=1,
            colorbar={"thickness": 12, "outlinewidth": 0},
        )
    )
    figure.update_xaxes(tickvals=list(range(len(columns))), ticktext=list(columns), showgrid=False)
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=list(rows), autorange="reversed", showgrid=False
    )
    return figure


# ---------------------------------------------------------------- parts


def _figure(title: str, x: str, y: str, log_x: bool = False) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure(layout={"template": template(), "width": WIDTH, "height": HEIGHT})
    titles = {"title_text": title, "xaxis_title_text": x, "yaxis_title_text": y}
    figure.update_layout(**{key: said for key, said in titles.items() if said})
    if log_x:
        figure.update_xaxes(type="log", dtick=1)
    figure.update_xaxes(tickformat=",")
    return figure


def _line(
    figure: Any,
    x: Sequence[float],
    y: Sequence[float],
    name: str,
    *,
    marks: bool = False,
    colour: str = "",
    style: str = "",
    width: float = 2.5,
    opacity: float = 1.0,
) -> None:
    import plotly.graph_objects as go

    ink = colour or COLOURS.get(name, BLUE)
    line = {"color": ink, "dash": style or dash_of(name), "width": width}
    mode = "lines+markers" if marks else "lines"
    trace = go.Scatter(x=list(x), y=rounded(y), name=name, line=line, mode=mode)
    figure.add_trace(trace if opacity == 1 else trace.update(opacity=opacity))


def _levels(
    figure: Any, levels: Mapping[str, float], first: float, last: float
) -> list[tuple[str, float, str]]:
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


def _labels(
    figure: Any,
    ends: Sequence[tuple[str, float, str]],
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
    gap = (high - low) * 0.055
    for (name, value, colour), at in zip(ends, _apart(values, gap, high), strict=True):
        text = f"{name} {_number(value, percent)}"
        figure.add_annotation(
            x=1.01, xref="paper", y=rounded([at])[0], text=text, showarrow=False, xanchor="left",
            font={"color": _readable(colour), "size": 13},
        )  # fmt: skip
    longest = max((len(name) for name, _, _ in ends), default=0)
    figure.update_layout(margin_r=30 + 8 * (longest + 6))


def _apart(values: Sequence[float], gap: float, high: float) -> list[float]:
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


def _label_point(figure: Any, name: str, x: float, y: float, log_x: bool) -> None:
    figure.add_annotation(
        x=math.log10(x) if log_x else x, y=rounded([y])[0], text=f"{name} {_number(y, True)}",
        showarrow=True, arrowhead=0, arrowcolor=COLOURS[name], ax=34, ay=26, xanchor="left",
        bgcolor="rgba(255,255,255,0.85)", font={"color": COLOURS[name]},
    )  # fmt: skip


def _level_mark(figure: Any, place: int, level: float) -> None:
    line = {"color": INK, "width": 2, "dash": "dot"}
    figure.add_shape(type="line", x0=place - 0.4, x1=place + 0.4, y0=level, y1=level, line=line)


def _positive(x: Sequence[float], y: Sequence[float], log_x: bool) -> Curve:
    kept = [(a, b) for a, b in zip(x, y, strict=True) if not log_x or a > 0]
    return [a for a, _ in kept], [b for _, b in kept]


def _span(first: float, last: float, log_x: bool) -> list[float]:
    """The axis from first to last, with room for a mark at the start; powers of ten where log."""
    if log_x:
        first, last = math.log10(first), math.log10(last)
    return rounded([first - 0.02 * (last - first), last])


def _number(value: float, percent: bool) -> str:
    if percent:
        return f"{100 * value:.1f}%"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def _readable(colour: str) -> str:
    """Label ink: light line colours darkened, so that words keep a contrast of 4.5 : 1 on white."""
    darker = {
        PURPLE: "#9c4a78", SKY: "#1f76a8", ORANGE: "#8f6300", GREEN: "#00745a",
        VERMILION: "#b04e00", YELLOW: "#6f6900", GREY: "#666666",
    }  # fmt: skip
    return darker.get(colour, colour)
