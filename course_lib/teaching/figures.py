"""The figures of the course: one template, direct labels, the same colour for the same thing.

Every function returns a plotly Figure of numbers rounded to four digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .chart_parts import (
    Curve,
    End,
    above_zero,
    add_levels,
    add_line,
    hits,
    inside,
    label_ends,
    label_point,
    level_mark,
    log_ticks,
    new_figure,
    number,
    readable,
    span,
)
from .style import (
    BLACK,
    BLUE,
    COLOURS,
    HEIGHT,
    INK,
    PATTERNS,
    WIDTH,
    Look,
    family_looks,
    looks,
    rounded,
    thinned,
)


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
    figure = new_figure(title, "step", "loss (nats)", log_x)
    ends: list[End] = []
    for name in names:
        x, y = thinned(history.steps, history.losses[name])
        add_line(figure, x, y, name)
        ends.append((name, y[-1], COLOURS.get(name, BLUE)))
    ends += add_levels(figure, baselines or {}, history.steps[0], history.steps[-1])
    label_ends(figure, ends, lowest=0.0)
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
    title: str = "Masked-token accuracy on held-out stories",
) -> Any:
    """The model's accuracy over its steps, between three levels.

    long_run: (steps, accuracies) of a longer run, drawn behind. All accuracies are
    fractions from 0 to 1. A logarithmic axis begins at the first step above zero.
    """
    figure = new_figure(title, "training step", "accuracy", log_x)
    figure.update_yaxes(tickformat=".0%", range=[0, 1.04])
    ends: list[End] = []
    curves = [("model", (steps, accuracies))]
    curves = [("long run", long_run), *curves] if long_run else curves
    for name, (x, y) in curves:
        width, opacity = (5.0, 0.55) if name == "long run" else (2.5, 1.0)
        marks = name == "model" and len(steps) <= 40
        x, y = above_zero(x, y, log_x)
        add_line(figure, x, y, name, marks=marks, width=width, opacity=opacity)
    every = [v for _, (x, _) in curves for v in x if not log_x or v > 0]
    levels = {"oracle": oracle, "count model": count_model, "unigram": unigram}
    ends += add_levels(figure, levels, min(every), max(every))
    ends += [(name, float(y[-1]), COLOURS[name]) for name, (x, y) in curves if x[-1] == max(every)]
    if long_run and steps[-1] < max(every):
        label_point(figure, "model", steps[-1], accuracies[-1], log_x)
    label_ends(figure, ends, lowest=0.0, highest=1.04, percent=True)
    figure.update_xaxes(range=span(min(every), max(every), log_x))
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

    figure = new_figure(title, "", y_title)
    names, heights = list(values), rounded(values.values())
    known = expected or {}
    colours = [COLOURS.get(name.lower(), BLUE) for name in names]
    shapes = [PATTERNS[i % len(PATTERNS)] for i in range(len(names))]
    figure.add_trace(
        go.Bar(
            x=names,
            y=heights,
            text=[number(v, percent) for v in heights],
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
            level_mark(figure, i, rounded([known[name]])[0])
    under = [f"{n}<br>expected {number(known[n], percent)}" if n in known else n for n in names]
    figure.update_yaxes(range=[0, 1.15 * max([*heights, *known.values(), 1e-9])])
    figure.update_xaxes(range=[-0.5, len(names) - 0.5], tickvals=names, ticktext=under)
    if percent:
        figure.update_yaxes(tickformat=".0%")
    return figure


def coverage_chart(
    rate: float = 0.15,
    epochs: int = 40,
    copies: int = 10,
    simulated: Mapping[str, Sequence[float]] | None = None,
) -> Any:
    """The fraction of positions selected at least once, epoch by epoch: static masking, copies,
    dynamic.

    rate: fraction of positions selected an epoch. simulated: for the name of a line, the fractions
    counted after epoch 1, 2, …; drawn as markers. Raises ValueError for another name.
    """
    from course_lib.teaching.coverage import coverage

    copied = "ten copies" if copies == 10 else f"{copies} copies"
    ways = {"static": 1, copied: copies, "dynamic": None}
    if unknown := set(simulated or {}) - set(ways):
        raise ValueError(
            f"simulated holds {', '.join(map(repr, sorted(unknown)))}; expected names of the "
            f"lines: {', '.join(ways)}."
        )
    title = "Positions selected at least once"
    figure = new_figure(title, "epochs", "fraction of positions")
    figure.update_yaxes(tickformat=".0%")
    drawn, ends = looks(ways), []
    for name, most in ways.items():
        look, y = drawn[name], coverage(rate, epochs, most)
        add_line(figure, range(1, epochs + 1), y, name, colour=look.colour, style=look.dash)
        counted = (simulated or {}).get(name)
        if counted is not None:
            size = 13 if name == copied else 8  # it coincides with dynamic for a while
            _add_marks(figure, counted, look, size, f"{name}, counted")
        sign = f"{look.sign} " if counted is not None else ""
        ends.append((sign + name, y[-1], look.colour))
    label_ends(figure, ends, lowest=0.0, highest=1.04, percent=True)
    figure.update_xaxes(range=rounded([0, 1.02 * epochs]))
    return figure


def tradeoff_chart(
    points: Sequence[Mapping[str, Any]],
    *,
    x: str,
    y: str,
    title: str = "",
    percent: bool = False,
    log_x: bool = False,
    height: int = HEIGHT,
) -> Any:
    """What is gained against what is paid: a named dot a model.

    points: {"name", "x", "y"} and, where the spread is known, "low" and "high", the ends of its y;
    x, y: the titles of the axes. percent: the y lie in 0 to 1. height: pixels, more for many names.
    A family member keeps its colour; markers and names tell all apart. Raises ValueError for no
    points, for a name given twice, for what is no number, a spread that leaves y out, and x ≤ 0 on
    a logarithmic axis.
    """
    import plotly.graph_objects as go

    _check_points(points, log_x)
    figure = new_figure(title or f"{y[:1].upper()}{y[1:]} against {x}", x, y)
    drawn = family_looks([point["name"] for point in points])
    for point in points:
        look = drawn[point["name"]]
        marker = {"symbol": look.symbol, "size": 12, "color": look.colour}
        marker["line"] = {"color": INK, "width": 1}
        at = {"x": [point["x"]], "y": rounded([point["y"]])}
        trace = go.Scatter(**at, name=point["name"], mode="markers", marker=marker)
        if "low" in point:
            up, down = rounded([point["high"] - point["y"], point["y"] - point["low"]])
            trace.error_y = {"array": [up], "arrayminus": [down], "symmetric": False,
                             "color": INK, "thickness": 1.5, "width": 5}  # fmt: skip
        figure.add_trace(trace)
    ranges = _ranges(points, log_x)
    figure.update_xaxes(range=ranges[0])
    if log_x:
        ticks = log_ticks(*ranges[0])
        figure.update_xaxes(type="log", tickvals=ticks, ticktext=list(map(_short, ticks)))
    figure.update_yaxes(range=ranges[1], tickformat=".0%" if percent else "")
    _name_points(figure, points, ranges, log_x, percent, (WIDTH - 84, height - 96))
    return figure.update_layout(height=height)


def _check_points(points: Sequence[Mapping[str, Any]], log_x: bool) -> None:
    if not points:
        raise ValueError("tradeoff_chart was given no points; expected name, x and y of each.")
    names = [point.get("name") for point in points]
    if None in names or len(set(names)) < len(names):
        raise ValueError(f"points are named {names}; expected a different name for each.")
    for point in points:
        name, ends = point["name"], [k for k in ("low", "high") if k in point]
        if missing := {"x", "y"} - set(point):
            raise ValueError(f"{name!r} has no {' and no '.join(sorted(missing))}; expected both.")
        if len(ends) == 1:
            raise ValueError(f"{name!r} has {ends[0]!r} alone; expected low and high, or neither.")
        if not all(math.isfinite(point[key]) for key in ("x", "y", *ends)):
            raise ValueError(f"{name!r} holds a value that is not a number: {dict(point)}.")
        if ends and not point["low"] <= point["y"] <= point["high"]:
            raise ValueError(
                f"{name!r}: y={point['y']} lies outside {point['low']} to {point['high']}; "
                "expected the ends of its spread."
            )
        if log_x and point["x"] <= 0:
            raise ValueError(f"{name!r}: x={point['x']} on a logarithmic axis; expected x > 0.")


def _ranges(points: Sequence[Mapping[str, Any]], log_x: bool) -> tuple[list[float], list[float]]:
    """Both axes around all points and spreads; where log_x, the first in powers of ten."""
    x = [math.log10(point["x"]) if log_x else point["x"] for point in points]
    y = [point.get(key, point["y"]) for point in points for key in ("low", "y", "high")]
    both = []
    for values, room in ((x, 0.2), (y, 0.14)):  # names stand beside their dots
        low, high = min(values), max(values)
        more = room * (high - low) or 0.1 * abs(high) or 1.0
        both.append(rounded([low - more, high + more]))
    if not log_x and min(x) >= 0:
        both[0][0] = 0.0 if min(x) < 0.5 * max(x) else max(0.0, both[0][0])
    return both[0], both[1]


def _short(tick: float) -> str:
    """1,000,000 as 1M, 20,000 as 20k."""
    if tick >= 1e6:
        return f"{tick / 1e6:g}M"
    return f"{tick / 1e3:g}k" if tick >= 1e4 else f"{tick:g}"


def _name_points(
    figure: Any,
    points: Sequence[Mapping[str, Any]],
    ranges: tuple[list[float], list[float]],
    log_x: bool,
    percent: bool,
    area: tuple[int, int],
) -> None:
    """Each name beside its dot, where it covers no dot, no spread and no other name. area: pixels
    inside the axes."""

    def pixels(value: float, axis: int) -> float:
        low, high = ranges[axis]
        return (value - low) / (high - low) * area[axis]

    spots = []
    for point in points:
        across = pixels(math.log10(point["x"]) if log_x else point["x"], 0)
        ends = [pixels(point.get(key, point["y"]), 1) for key in ("y", "low", "high")]
        spots.append((across, *ends))
    taken = [(x - 8, min(low, y - 8), x + 8, max(high, y + 8)) for x, y, low, high in spots]
    drawn = family_looks([point["name"] for point in points])
    whole = area[0] + 8, area[1]  # a name takes a little less than `half` says
    for point, (x, y, low, high) in zip(points, spots, strict=True):
        text = f"{point['name']} {number(point['y'], percent)}"
        half = 3.7 * len(text)
        around = [(x + 14 + half, y), (x - 14 - half, y), (x, high + 18), (x, low - 18)]
        around += [(x + side * (14 + half), y + up)
                   for up in (18, -18, 36, -36, 54, -54, 72, -72) for side in (1, -1)]  # fmt: skip
        around += [(x, high + 38), (x, low - 38)]
        boxes = [(a - half, b - 9, a + half, b + 9) for a, b in around]
        # The first that covers nothing, or else least, of those that are not cut off.
        best = min(range(len(boxes)), key=lambda k: (
            not inside(boxes[k], whole), sum(hits(boxes[k], [one]) for one in taken)
        ))  # fmt: skip
        taken.append(boxes[best])
        across, up = rounded([x / area[0], y / area[1]])
        far = best > 3
        figure.add_annotation(
            x=across, y=up, xref="paper", yref="paper",
            text=text, xanchor="center", yanchor="middle",
            showarrow=far, arrowhead=0, arrowwidth=1, standoff=8,
            ax=round(around[best][0] - x), ay=round(y - around[best][1]),
            xshift=0 if far else round(around[best][0] - x),
            yshift=0 if far else round(around[best][1] - y),
            font_color=readable(drawn[point["name"]].colour),
        )  # fmt: skip


def _add_marks(figure: Any, fractions: Sequence[float], look: Look, size: int, name: str) -> None:
    """Markers at every epoch up to ten, then at every fifth: enough to compare with the line."""
    import plotly.graph_objects as go

    at = [k for k in range(1, len(fractions) + 1) if k <= 10 or k % 5 == 0]
    marker = {
        "symbol": look.symbol,
        "size": size,
        "color": "white",
        "line": {"color": look.colour, "width": 2},
    }
    y = rounded(fractions[k - 1] for k in at)
    figure.add_trace(go.Scatter(x=at, y=y, name=name, mode="markers", marker=marker))


def heat_chart(
    matrix: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    percent: bool = False,
) -> Any:
    """A matrix (rows × columns) in shades of blue, so light that black is read easily on each;
    numbers in up to 100 cells.

    percent: the numbers lie in 0 to 1, written as percentages.
    """
    import plotly.graph_objects as go

    numbers = [rounded(row) for row in matrix]
    written = "%{z:.1%}" if percent else "%{z:.2~f}"
    few = len(rows) * len(columns) <= 100
    # Positions, not names, on the axes: the same token may occur twice.
    figure = new_figure(title, x_title, y_title)
    figure.add_trace(
        go.Heatmap(
            z=numbers,
            colorscale=["#eff6fb", "#3a9bd5"],
            texttemplate=written if few else None,
            textfont_color=BLACK,
            hovertemplate="row %{y}, column %{x}: %{z}<extra></extra>",
            xgap=1,
            ygap=1,
            colorbar={"thickness": 12, "outlinewidth": 0, "tickformat": ".0%" if percent else ""},
        )
    )
    figure.update_xaxes(tickvals=list(range(len(columns))), ticktext=list(columns), showgrid=False)
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=list(rows), autorange="reversed", showgrid=False
    )
    return figure
