"""Narrow students by how much their attention loss weighs and how long the general stage was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from course_lib.teaching.chart_parts import label_ends
from course_lib.teaching.run_charts import Points, curves_chart
from course_lib.teaching.style import looks


def attention_chart(
    lines: Mapping[str, Sequence[Points]],
    others: Mapping[str, Sequence[tuple[float, float]]],
    title: str = "",
) -> Any:
    """A line a weight, accuracy over general steps; open marks for further seeds of a weight.

    lines: weight -> seeds, each [(steps, accuracy), …]; others: weight -> (steps, accuracy) of
    seeds that are in no line. Returns a plotly Figure; raises as curves_chart does."""
    import plotly.graph_objects as go

    figure = curves_chart(
        lines, x_title="general steps", y_title="unstated-fact probe", percent=True, title=title
    )
    drawn = looks(lines)
    for name, points in others.items():
        figure.add_trace(
            go.Scatter(
                x=[steps for steps, _ in points], y=[accuracy for _, accuracy in points],
                name=f"{name}, other seeds", mode="markers", showlegend=False, cliponaxis=False,
                marker={"symbol": f"{drawn[name].symbol}-open", "size": 11,
                        "color": drawn[name].colour, "line": {"width": 2}},
            )
        )  # fmt: skip
    # The y axis was drawn around the lines alone; the labels keep their distance on it.
    every = [y for trace in figure.data for y in trace.y]
    ends = [
        (f"{drawn[name].sign} {name}", fmean(run[-1][1] for run in runs), drawn[name].colour)
        for name, runs in lines.items()
    ]
    figure.layout.annotations = ()
    room = 0.08 * (max(every) - min(every))
    label_ends(figure, ends, lowest=min(every) - room, highest=max(every) + room, percent=True)
    steps = sorted({at for runs in lines.values() for run in runs for at, _ in run})
    return figure.update_xaxes(tickvals=steps)
