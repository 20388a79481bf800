"""Figures of several runs: curves with their range, a dot a seed, distances layer by layer.

Every function returns a plotly Figure. What differs in colour differs in line and marker too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from .chart_parts import (
    End,
    add_levels,
    add_line,
    apart,
    label_ends,
    new_figure,
    number,
    readable,
    span,
    wrapped,
)
from .results import shown
from .style import INK, WIDTH, Look, looks, rounded, thinned

Points = Sequence[tuple[float, float]]  # of one run: (x, y), …
MARKED = 20  # curves of at most so many points show them
LABEL = 20  # characters a line of a label at the right end


def curves_chart(
    curves: Mapping[str, Sequence[Points]],
    *,
    x_title: str,
    y_title: str,
    title: str,
    percent: bool = False,
    log_x: bool = False,
    levels: Mapping[str, float] | None = None,
) -> Any:
    """For each name the mean of its runs as a line, and from the least to the most as a band.

    curves: name -> runs, each [(x, y), …], measured at the same x; where log_x, points at x ≤ 0 are
    left out. percent: the y lie in 0 to 1. levels: {name: y}, level lines.
    Raises ValueError for no runs, for runs measured at different x, and for what is no number.
    """
    figure = new_figure(title, x_title, y_title, log_x)
    drawn, ends = looks(curves), []
    every: list[float] = []
    for name, runs in curves.items():
        x, columns = _columns(name, runs, log_x)
        x, mean, low, high = _mean_and_range(x, columns)
        if len(runs) > 1:
            add_band(figure, x, low, high, name, drawn[name])
        ends.append(add_curve(figure, x, mean, name, drawn[name]))
        every += x
    if not every:
        raise ValueError("curves_chart was given no points; expected name -> runs of (x, y).")
    ends += add_levels(figure, levels or {}, min(every), max(every))
    _label_with_room(figure, ends, percent)
    figure.update_xaxes(range=span(min(every), max(every), log_x))
    return figure


def dots_chart(
    groups: Mapping[str, Sequence[float]],
    *,
    title: str,
    y_title: str,
    percent: bool = False,
    levels: Mapping[str, float] | None = None,
) -> Any:
    """Every value a dot, one a seed; their mean a bar; mean, standard deviation and number in
    words.

    groups: name -> values; percent: they lie in 0 to 1. levels: {name: y}, level lines.
    Raises ValueError for a group without values and for what is no number.
    """
    figure = new_figure(title, "", y_title)
    drawn = looks(groups)
    for place, (name, values) in enumerate(groups.items()):
        check_numbers(name, values)
        _add_dots(figure, place, values, name, drawn[name])
    if not groups:
        raise ValueError("dots_chart was given no groups; expected name -> one value per seed.")
    last = len(groups) - 0.5
    ends = add_levels(figure, levels or {}, -0.5, last)
    _label_with_room(figure, ends, percent)
    # So many characters of about 7 pixels fit below a group.
    width = (WIDTH - 70 - (figure.layout.margin.r or 24)) // len(groups) // 7
    under = [_under(name, values, percent, width) for name, values in groups.items()]
    places = list(range(len(groups)))
    figure.update_xaxes(range=[-0.5, last], tickvals=places, ticktext=under, showgrid=False)
    figure.update_xaxes(tickangle=0)
    return figure


def ablation_chart(
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    *,
    title: str,
    x_title: str,
    percent: bool = False,
    families: Mapping[str, str] | None = None,
    levels: Mapping[str, Mapping[str, float]] | None = None,
) -> Any:
    """Rows of dots, one a seed, with their mean: a panel for each group, the same rows in each.

    groups: group -> row -> values, such as "equal steps" -> "ELECTRA" -> one value a seed; up to
    three groups, all with the same rows in the same order. percent: they lie in 0 to 1.
    families: a family for each row; those of one look alike, in every chart with the same families.
    levels: group -> {name: x}, vertical lines of that panel.
    Raises ValueError for no groups or more than three, for other rows in one of them, for a row
    without values and for what is no number.
    """
    rows = _shared_rows(groups)
    figure = new_figure(title, "", "")
    families, panels = families or dict(zip(rows, rows, strict=True)), _panels(len(groups))
    alike = looks(dict.fromkeys(families.values()))
    drawn = {row: alike[families[row]] for row in rows}
    every = [v for group in groups.values() for values in group.values() for v in values]
    every += [x for lines in (levels or {}).values() for x in lines.values()]
    # Room at both sides for the words above the dots.
    room = (0.12 + 0.1 * len(groups)) * (max(every) - min(every)) or 0.05 * abs(max(every)) or 1.0
    across = rounded([min(every) - room, max(every) + room])
    for k, (group, measured) in enumerate(groups.items()):
        axis = f"x{k + 1}" if k else "x"
        figure.update_layout({
            axis.replace("x", "xaxis"): {
                "domain": panels[k], "range": across, "title": {"text": x_title}, "anchor": "y",
                "tickformat": ".0%" if percent else "", "nticks": 7 - len(groups),
            }
        })  # fmt: skip
        figure.add_annotation(
            x=panels[k][0], xref="paper", xanchor="left", y=1, yref="paper", yanchor="bottom",
            text=f"<b>{group}</b>", showarrow=False,
        )  # fmt: skip
        for name, x in (levels or {}).get(group, {}).items():
            _add_level(figure, axis, x, len(rows), f"{name} {number(x, percent)}")
        for place, (name, values) in enumerate(measured.items()):
            _add_row(figure, axis, place, values, f"{name}, {group}", drawn[name])
            _label_row(figure, axis, place, values, percent, across, above_lines=bool(levels))
    figure.update_yaxes(
        range=[len(rows) - (0.0 if levels else 0.5), -0.6], tickvals=list(range(len(rows))),
        showgrid=False,
        ticktext=[wrapped(name, LABEL - 4) for name in rows],
    )  # fmt: skip
    return figure.update_layout(width=740, height=min(460, 130 + 62 * len(rows)), margin_t=64)


def gradient_chart(norms: Mapping[str, Sequence[float]], temperatures: Sequence[float]) -> Any:
    """The size of a loss's gradient against the temperature, both axes logarithmic.

    norms: name of the loss ("KL alone", "T² · KL") -> its gradient's norm at each temperature.
    On these axes 1/T² is a straight line. Raises ValueError for no loss, for a list of another
    length, and for norms and temperatures that are not above zero.
    """
    if not norms:
        raise ValueError(
            "gradient_chart was given no loss; expected name -> a norm per temperature."
        )
    for name, values in {"temperatures": temperatures, **norms}.items():
        if len(values) != len(temperatures):
            raise ValueError(
                f"{name!r} holds {len(values)} norms for {len(temperatures)} temperatures; "
                "expected one at each."
            )
        check_numbers(name, values)
        if min(values) <= 0:
            raise ValueError(
                f"{name!r} holds {min(values)!r}; expected numbers above zero, for a logarithmic "
                "axis."
            )
    figure = new_figure("Gradient of the soft-target loss", "temperature T", "norm of the gradient")
    drawn = looks(norms)
    ends = [
        add_curve(figure, temperatures, values, name, drawn[name]) for name, values in norms.items()
    ]
    _label_logarithmic(figure, ends)
    first, last = math.log10(min(temperatures)), math.log10(max(temperatures))
    edge = 0.03 * (last - first) or 0.1
    figure.update_xaxes(
        type="log", range=rounded([first - edge, last + edge]), tickvals=list(temperatures),
        ticktext=[f"{T:g}" for T in temperatures],
    )  # fmt: skip
    return figure


def layer_distance_chart(
    distances: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, title: str
) -> Any:
    """What each layer does to a token's vector: how far it moves it, and how far it turns it.

    distances: model -> (Euclidean distances, angles in degrees) between a layer's input and
    output, each one a layer (train.metrics.layer_distances). Raises ValueError where the two
    lists differ in length or hold what is no number.
    """
    if not distances:
        raise ValueError("layer_distance_chart was given no model; expected at least one.")
    drawn, figure = looks(distances), _two_panels(title)
    for name, (moved, turned) in distances.items():
        if len(moved) != len(turned):
            raise ValueError(
                f"{name!r}: {len(moved)} distances and {len(turned)} angles were given; expected "
                "one of each for every layer."
            )
        check_numbers(name, [*moved, *turned])
        _add_layers(figure, "x", moved, name, drawn[name])
        _add_layers(figure, "x2", turned, name, drawn[name])
    tops = [max(max(pair[i]) for pair in distances.values()) for i in (0, 1)]
    layers = max(len(moved) for moved, _ in distances.values())
    figure.update_layout(
        yaxis_range=rounded([0, 1.08 * tops[0]]), yaxis2_range=rounded([0, 1.08 * tops[1]])
    )
    figure.update_xaxes(range=[0.5, layers + 0.5], dtick=1 if layers <= 12 else 4, tick0=0)
    names_above(figure, drawn)
    return figure


def queue_chart(record: Mapping[str, Any]) -> Any:
    """Lecture 08's queue: the fraction of workers named right against the step, a line a recipe.

    record: data/results/08_queue.json. The level is the chance of a guess among the workers. The
    steps are on a logarithmic axis: one recipe may train much longer than the others.
    Raises ValueError as curves_chart does.
    """
    curves = {shown(name): [run["curve"] for run in runs] for name, runs in record["runs"].items()}
    workers = len(record["words"])
    figure = curves_chart(
        curves, x_title="training step; a line ends where training ends",
        y_title="workers named right", percent=True, log_x=True,
        title="Who comes when in the queue", levels={f"chance, 1 in {workers}": 1 / workers},
    )  # fmt: skip
    return figure.update_layout(width=740).update_xaxes(
        tickvals=[step * power for power in (10, 100, 1_000) for step in (1, 2, 5)]
    )


# ---------------------------------------------------------------- parts


def _columns(
    name: str, runs: Sequence[Points], log_x: bool
) -> tuple[list[float], list[list[float]]]:
    """The x that all runs share, and for each the y of every run."""
    if not runs or not all(runs):
        raise ValueError(f"{name!r} holds no points; expected at least one run of (x, y).")
    kept = [[(x, y) for x, y in run if not log_x or x > 0] for run in runs]
    where = [[x for x, _ in run] for run in kept]
    if any(xs != where[0] for xs in where):
        raise ValueError(
            f"{name!r}: its runs were measured at different x; expected the same for all, so that "
            "their mean can be taken."
        )
    columns = [[float(y) for _, y in points] for points in zip(*kept, strict=True)]
    check_numbers(name, [y for column in columns for y in column])
    return [float(x) for x in where[0]], columns


def _mean_and_range(
    x: Sequence[float], columns: Sequence[Sequence[float]]
) -> tuple[list[float], list[float], list[float], list[float]]:
    """x, mean, least and most at each x; long curves as means of neighbouring points."""
    at, mean = thinned(x, [fmean(column) for column in columns], most=400)
    low, high = (thinned(x, [f(c) for c in columns], most=400)[1] for f in (min, max))
    return at, mean, low, high


def check_numbers(name: str, values: Sequence[float]) -> None:
    """Raise ValueError, with the name, for no values and for what is no number."""
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(
            f"{name!r} holds {list(values)[:6]}; expected at least one value, all of them numbers. "
            "A run that has diverged cannot be averaged."
        )


def add_band(
    figure: Any, x: list[float], low: list[float], high: list[float], name: str, look: Look
) -> None:
    """From the least to the most of several runs."""
    import plotly.graph_objects as go

    r, g, b = (int(look.colour[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_trace(
        go.Scatter(
            x=x + x[::-1],
            y=high + low[::-1],
            name=f"{name}, range of the runs",
            fill="toself",
            fillcolor=f"rgba({r},{g},{b},0.16)",
            line={"color": look.colour, "width": 0.6, "dash": look.dash},
            mode="lines",
            hoverinfo="skip",
        )
    )


def add_curve(figure: Any, x: Sequence[float], y: Sequence[float], name: str, look: Look) -> End:
    """A curve; returns what its label needs. Its marker, if shown, is in the label too."""
    marks = len(x) <= MARKED
    add_line(
        figure, x, y, name, marks=marks, colour=look.colour, style=look.dash, symbol=look.symbol
    )
    if marks:
        figure.data[-1].update(marker_size=8, cliponaxis=False)
    return f"{look.sign} {name}" if marks else name, y[-1], look.colour


def _label_with_room(figure: Any, ends: Sequence[End], percent: bool) -> None:
    """The y axis around all that is drawn, from zero where that is near, and the labels."""
    values = [y for trace in figure.data for y in trace.y]
    low, high = min(values), max(values)
    room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    low = 0.0 if 0 <= low < 0.35 * high else low - room
    if percent:
        figure.update_yaxes(tickformat=".0%" if high - low > 0.08 else ".1%")
    if max(map(abs, values)) < 0.01:
        figure.update_yaxes(exponentformat="e")  # 6e-4, not 600µ
    folded = [(wrapped(name, LABEL), value, colour) for name, value, colour in ends]
    label_ends(figure, folded, lowest=low, highest=high + room, percent=percent)
    if not ends:
        figure.update_layout(margin_r=24)


def _add_dots(figure: Any, place: int, values: Sequence[float], name: str, look: Look) -> None:
    """The dots of a group, side by side in the order of their seeds, and a bar at their mean."""
    import plotly.graph_objects as go

    step = 0.42 / max(len(values), 4)
    x = [place + step * (i - (len(values) - 1) / 2) for i in range(len(values))]
    marker = {"symbol": look.symbol, "size": 10, "color": look.colour, "opacity": 0.85}
    mean = rounded([fmean(values)] * 2)
    bar = {"color": INK, "width": 2.5}
    figure.add_trace(
        go.Scatter(x=rounded(x), y=rounded(values), name=name, mode="markers", marker=marker)
    )
    ends = [place - 0.25, place + 0.25]
    figure.add_trace(go.Scatter(x=ends, y=mean, name=f"{name}, mean", mode="lines", line=bar))


def _under(name: str, values: Sequence[float], percent: bool, width: int) -> str:
    """A name and, in words, the mean of its values, their standard deviation and number."""
    mean = number(fmean(values), percent)
    if len(values) == 1:
        return f"{wrapped(name, width)}<br><b>{mean}</b><br>(one run)"
    spread = number(stdev(values), percent)
    return f"{wrapped(name, width)}<br><b>{mean}</b><br>(sd {spread}, n {len(values)})"


def _shared_rows(groups: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
    """The rows that all groups have, in their order."""
    if not 1 <= len(groups) <= 3 or not all(groups.values()):
        raise ValueError(
            f"ablation_chart was given {len(groups)} groups; expected one to three, each with "
            "rows: group -> row -> values."
        )
    rows = [list(group) for group in groups.values()]
    if any(one != rows[0] for one in rows):
        raise ValueError(f"The groups hold different rows, {rows}; expected the same, in order.")
    for group, measured in groups.items():
        for name, values in measured.items():
            check_numbers(f"{name}, {group}", values)
    return rows[0]


def _panels(count: int) -> list[list[float]]:
    """Where panels side by side begin and end, as fractions of the width."""
    gap = 0.06
    width = (1 - gap * (count - 1)) / count
    return [rounded([k * (width + gap), k * (width + gap) + width]) for k in range(count)]


def _add_level(figure: Any, axis: str, x: float, rows: int, label: str) -> None:
    """A dashed vertical line through all rows of a panel, and what it says at its foot."""
    import plotly.graph_objects as go

    at, line = rounded([x, x]), {"color": INK, "dash": "dash", "width": 1.4}
    figure.add_trace(
        go.Scatter(x=at, y=[-0.6, rows], name=label, mode="lines", line=line, xaxis=axis)
    )
    figure.add_annotation(
        x=at[0], xref=axis, y=rows, yref="y", yanchor="bottom", xanchor="right", xshift=-3,
        text=label, showarrow=False, font_size=12,
    )  # fmt: skip


def _add_row(
    figure: Any, axis: str, place: int, values: Sequence[float], name: str, look: Look
) -> None:
    """The dots of one row, one under another in the order of their seeds, and a bar at the mean."""
    import plotly.graph_objects as go

    step = 0.34 / max(len(values), 4)
    y = [place + 0.14 + step * (i - (len(values) - 1) / 2) for i in range(len(values))]
    marker = {"symbol": look.symbol, "size": 9, "color": look.colour, "opacity": 0.85}
    figure.add_trace(
        go.Scatter(
            x=rounded(values), y=rounded(y), name=name, mode="markers", marker=marker, xaxis=axis
        )
    )
    if len(values) == 1:  # its own mean
        return
    mean, ends = rounded([fmean(values)] * 2), rounded([place - 0.1, place + 0.38])
    bar = {"color": INK, "width": 2.5}
    figure.add_trace(
        go.Scatter(x=mean, y=ends, name=f"{name}, mean", mode="lines", line=bar, xaxis=axis)
    )


def _label_row(
    figure: Any, axis: str, place: int, values: Sequence[float], percent: bool,
    across: list[float], above_lines: bool = False,
) -> None:  # fmt: skip
    """Mean and standard deviation in words, above the bar; kept inside the panel."""
    mean = fmean(values)
    spread = f" (sd {number(stdev(values), percent)})" if len(values) > 1 else " (one run)"
    at = (mean - across[0]) / (across[1] - across[0])
    side = "left" if at < 0.3 else "right" if at > 0.7 else "center"
    figure.add_annotation(
        x=rounded([mean])[0], xref=axis, y=place - 0.1, yref="y", yanchor="bottom", xanchor=side,
        text=f"<b>{number(mean, percent)}</b>{spread}", showarrow=False, font_size=12,
        bgcolor="rgba(255,255,255,0.8)" if above_lines else None, borderpad=0,
    )  # fmt: skip


def _label_logarithmic(figure: Any, ends: Sequence[End]) -> None:
    """A logarithmic y axis of whole powers of ten, and the names at the lines' right ends."""
    values = [math.log10(y) for trace in figure.data for y in trace.y]
    low, high = math.floor(min(values)), math.ceil(max(values))
    high = high + (high == low)
    figure.update_yaxes(type="log", range=[low, high], dtick=1, tickformat="~g")
    places = apart([math.log10(value) for _, value, _ in ends], 0.07 * (high - low), high)
    for (name, value, ink), at in zip(ends, places, strict=True):
        figure.add_annotation(
            x=1.01, xref="paper", y=rounded([at])[0], text=f"{name} {number(value, False)}",
            showarrow=False, xanchor="left", xshift=5, font_color=readable(ink),
        )  # fmt: skip
    longest = max(len(name) for name, _, _ in ends)
    figure.update_layout(margin_r=30 + 8 * (longest + 6))


def _two_panels(title: str) -> Any:
    """Two empty panels side by side over the number of the layer: distance and angle."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.13)
    base = new_figure(title, "layer", "")
    figure.update_layout(base.layout.to_plotly_json() | {"template": base.layout.template})
    figure.update_layout(width=740, xaxis2_title_text="layer")
    figure.update_layout(
        xaxis_domain=[0, 0.435], xaxis2_domain=[0.565, 1],
        yaxis_title_text="Euclidean distance", yaxis2_title_text="angle (degrees)",
    )  # fmt: skip
    return figure


def _add_layers(figure: Any, axis: str, values: Sequence[float], name: str, look: Look) -> None:
    add_curve(figure, range(1, len(values) + 1), values, name, look)
    figure.data[-1].update(
        xaxis=axis,
        yaxis=axis.replace("x", "y"),
        mode="lines+markers",
    )


def names_above(figure: Any, drawn: Mapping[str, Look]) -> None:
    """The names above both panels, each with its marker and in its colour."""
    for place, (name, look) in enumerate(drawn.items()):
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=1, yref="paper", yanchor="bottom",
            yshift=4 + 20 * (len(drawn) - 1 - place), showarrow=False,
            text=f"{look.sign} {name}", font={"color": readable(look.colour), "size": 13},
        )  # fmt: skip
    figure.update_layout(margin_t=52 + 20 * len(drawn), height=370 + 20 * len(drawn))
    figure.update_layout(title_y=1, title_yref="container", title_yanchor="top", title_pad_t=14)
