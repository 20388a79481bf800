"""Figures of fine-tuning: scores against the number of training texts, and the loss on the way.

Every function returns a plotly Figure. What differs in colour differs in line and marker too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from course_lib.teaching.chart_parts import (
    End,
    add_levels,
    apart,
    new_figure,
    number,
    readable,
    wrapped,
)
from course_lib.teaching.run_charts import add_band, add_curve, check_numbers, names_above
from course_lib.teaching.style import Look, looks, rounded

Scores = Mapping[str, Mapping[Any, Sequence[float]]]  # start -> number of texts -> one a seed
# What a task's score is called, and its panel.
TITLES = {
    "nli": "NLI: accuracy", "ner": "NER: span F1", "code words": "Code words: span F1",
    "packages": "Of eight packages: accuracy",
}  # fmt: skip
LABEL = 14  # characters a line of a label


def learning_curves(result: Mapping[str, Any], *, title: str = "") -> Any:
    """Scores against the number of training texts, a panel a task, a line a start.

    result: {task: {start: {n: [score of each seed]}}, "baselines": {task: {name: score}}}; scores
    from 0 to 1, n at least 1. The line is the mean of the seeds, the band reaches from the least to
    the most, every seed is a small dot; baselines are level lines. Raises ValueError for no tasks
    or more than two, for a start without scores, and for what is no number.
    """
    tasks = {name: starts for name, starts in result.items() if name != "baselines"}
    if not 1 <= len(tasks) <= 2 or not all(tasks.values()):
        raise ValueError(
            f"learning_curves was given the tasks {list(tasks)}; expected one or two, each with "
            "starts: task -> start -> number of texts -> scores."
        )
    figure = new_figure(title or "What more training texts bring", "", "")
    styles = looks(dict.fromkeys(start for starts in tasks.values() for start in starts))
    for k, (task, starts) in enumerate(tasks.items()):
        levels = result.get("baselines", {}).get(task, {})
        _add_task(figure, k, len(tasks), task, starts, levels, styles)
    return figure.update_layout(width=760, height=400, margin={"l": 50, "r": 8, "t": 74, "b": 52})


def _add_task(
    figure: Any, k: int, panels: int, task: str, starts: Scores, levels: Mapping[str, float],
    styles: Mapping[str, Look],
) -> None:  # fmt: skip
    axis = "x" if k == 0 else f"x{k + 1}"
    ends, every, values = [], set(), list(levels.values())
    for start, by_number in starts.items():
        x, columns = _columns(start, by_number)
        mean, lowest, highest = ([f(column) for column in columns] for f in (fmean, min, max))
        if max(map(len, columns)) > 1:
            add_band(figure, x, lowest, highest, start, styles[start])
            figure.add_scatter(
                x=[n for n, scores in zip(x, columns, strict=True) for _ in scores],
                y=rounded(score for scores in columns for score in scores),
                name=f"{start}, seeds", mode="markers", opacity=0.7,
                marker={"symbol": styles[start].symbol, "size": 4, "color": styles[start].colour},
            )  # fmt: skip
        ends.append(add_curve(figure, x, mean, start, styles[start]))
        every |= set(x)
        values += lowest + highest
    ends += add_levels(figure, levels, min(every), max(every))
    for trace in figure.data:
        if trace.xaxis is None:  # of this task: the others have theirs
            trace.update(xaxis=axis, yaxis=axis.replace("x", "y"))
    domain = [0.0, 0.78] if panels == 1 else rounded([0.54 * k, 0.54 * k + 0.29])  # names go right
    room = 0.08 * (max(values) - min(values)) or 0.05
    across = [max(0.0, min(values) - room), min(1.0, max(values) + room)]
    _lay_out(figure, axis, domain, across, sorted(every))
    figure.add_annotation(
        x=domain[0], xref="paper", xanchor="left", y=1, yref="paper", yanchor="bottom", yshift=4,
        text=f"<b>{TITLES.get(task, task)}</b>", showarrow=False,
    )  # fmt: skip
    _label_panel(figure, axis, domain[1], ends, across)


def _columns(start: str, by_number: Mapping[Any, Sequence[float]]) -> tuple[list[float], list]:
    """Numbers of texts, rising, and the scores at each; JSON's keys are strings."""
    pairs = sorted((float(n), list(scores)) for n, scores in by_number.items())
    if not pairs:
        raise ValueError(f"{start!r} has no scores; expected number of texts -> scores.")
    for n, scores in pairs:
        check_numbers(f"{start}, {n:g} texts", scores)
        if n < 1:
            raise ValueError(f"{start!r}: {n:g} texts were given; expected at least 1.")
    return [n for n, _ in pairs], [scores for _, scores in pairs]


def _lay_out(
    figure: Any, axis: str, domain: list[float], across: list[float], numbers: Sequence[float]
) -> None:
    other = axis.replace("x", "y")
    ends = rounded([numbers[0] / 1.12, numbers[-1] * 1.12])
    figure.update_layout({
        axis.replace("x", "xaxis"): {
            "domain": domain, "anchor": other, "type": "log", "tickvals": list(numbers),
            "ticktext": [f"{n:,.0f}" for n in numbers], "tickangle": 0,
            "range": rounded(map(math.log10, ends)), "title": {"text": "training texts"},
        },
        other.replace("y", "yaxis"): {
            "domain": [0, 1], "anchor": axis, "range": rounded(across), "tickformat": ".0%",
        },
    })  # fmt: skip


def _label_panel(
    figure: Any, axis: str, right: float, ends: Sequence[End], across: Sequence[float]
) -> None:
    """Names and last values right of a panel, moved apart where they would touch."""
    names = [wrapped(f"{name} {number(value, True)}", LABEL) for name, value, _ in ends]
    lines = max(name.count("<br>") + 1 for name in names)
    bottom, top = across
    places = apart([value for _, value, _ in ends], (top - bottom) * 0.06 * lines, top)
    for text, (_, _, colour), at in zip(names, ends, places, strict=True):
        figure.add_annotation(
            x=right, xref="paper", y=rounded([at])[0], yref=axis.replace("x", "y"), text=text,
            showarrow=False, xanchor="left", xshift=8, align="left",
            font={"color": readable(colour), "size": 12},
        )  # fmt: skip


def loss_line(result: Mapping[str, Mapping[str, Sequence[float]]], *, title: str = "") -> Any:
    """Loss and score on the straight line of weights from before fine-tuning (0) to after it (1).

    result: {start: {"alpha": [...], "train_loss": [...], "test_score": [...]}}, as many of each;
    losses in nats, scores from 0 to 1. The weights at α are (1 − α) · before + α · after. A
    one-dimensional cut in the manner of Hao et al. 2019 (arXiv 1908.05620). Raises ValueError for
    no start, lists of different lengths, and what is no number.
    """
    if not result:
        raise ValueError("loss_line was given no start; expected start -> alpha, losses, scores.")
    figure = new_figure(title or "On the line from before fine-tuning to after it", "", "")
    styles = looks(result)
    for start, line in result.items():
        counts = {name: len(line[name]) for name in ("alpha", "train_loss", "test_score")}
        if len(set(counts.values())) > 1:
            raise ValueError(f"{start!r} holds {counts}; expected as many of each.")
        for name in counts:
            check_numbers(f"{start}, {name}", line[name])
        for axis, what in (("x", "train_loss"), ("x2", "test_score")):
            add_curve(figure, line["alpha"], line[what], start, styles[start])
            figure.data[-1].update(
                xaxis=axis, yaxis=axis.replace("x", "y"), mode="lines+markers", marker_size=6
            )
    places = [x for line in result.values() for x in line["alpha"]]
    _two_panels(figure, min(places), max(places))
    names_above(figure, styles)
    return figure.update_layout(width=740)


def _two_panels(figure: Any, first: float, last: float) -> None:
    """Loss left, score right; both with a line at the start and at the end of fine-tuning."""
    ticks = sorted({first, 0.0, 0.5, 1.0, last})
    names = {0.0: "0<br>before", 1.0: "1<br>after"}
    written = [names.get(tick, f"{tick:g}".replace("-", "−")) for tick in ticks]
    across = {"range": [first, last], "tickvals": ticks, "ticktext": written}
    across["title"] = {"text": "α"}
    figure.update_layout(
        xaxis={**across, "domain": [0, 0.44]},
        xaxis2={**across, "domain": [0.56, 1], "anchor": "y2"},
        yaxis={"title": {"text": "training loss (nats)"}, "rangemode": "tozero"},
        yaxis2={"title": {"text": "test score"}, "tickformat": ".0%", "anchor": "x2"},
    )
    for axis in ("x", "x2"):
        for place in (0, 1):
            figure.add_shape(
                type="line", x0=place, x1=place, xref=axis, y0=0, y1=1, yref="paper",
                line={"color": "#8a8a8a", "width": 1, "dash": "dot"}, layer="below",
            )  # fmt: skip
