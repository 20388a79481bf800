"""What code moves: bytes read and written, by kind of operation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from course_lib.teaching.chart_parts import new_figure
from course_lib.teaching.style import CYCLE, GREY, PATTERNS, rounded

if TYPE_CHECKING:
    from course_lib.bench.traffic import Traffic

WIDE = 760  # pixels
WAYS = ("read", "written")
MOST_KINDS = 5  # kinds of operation with a colour of their own
REST = "all other"
UNITS = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "bytes": 1.0}


def traffic_chart(
    twins: Mapping[str, Mapping[str, Traffic]],
    title: str = "Bytes moved",
    *,
    together: bool = False,
) -> Any:
    """Bytes read and bytes written, a bar each, stacked by kind of operation, for every twin.

    twins: twin -> kind of operation -> what was counted (bench.traffic.by_kind). The five kinds
    that move most have a colour and a pattern of their own. The sentence below compares the last
    twin with the first. together: one bar a twin, with its FLOPs, and neither axis nor sentence,
    for a slide. Raises ValueError where a twin moves nothing."""
    import plotly.graph_objects as go

    moved = {twin: _sum(kinds.values(), "moved") for twin, kinds in twins.items()}
    if not twins or not all(moved.values()):
        raise ValueError(
            "traffic_chart was given "
            f"{', '.join(f'{twin}: {count} bytes' for twin, count in moved.items()) or 'no twin'}; "
            "expected twin -> kind -> what it moves, as by_kind(traffic(step)) gives it."
        )
    rows = [(twin, way) for twin in twins for way in (["moved"] if together else WAYS)]
    sums = [_sum(twins[twin].values(), way) for twin, way in rows]
    places = [place + 0.35 * (place // 2) * (not together) for place in range(len(rows))]
    longest = max(sums)
    unit, size = next((u, s) for u, s in UNITS.items() if longest >= s)
    figure = new_figure(title, f"{unit} (a number that is used again counts again)", "")
    for look, kind in enumerate(kinds := _kinds(twins)):
        values = [_bytes(twins[twin], way, kind, kinds) / size for twin, way in rows]
        pattern = {
            "shape": PATTERNS[look], "fillmode": "overlay", "fgcolor": "white", "solidity": 0.25,
            "size": 7,
        }  # fmt: skip
        ink = GREY if kind == REST else CYCLE[look]
        figure.add_trace(
            go.Bar(
                x=rounded(values), y=places, name=kind, orientation="h", width=0.8,
                marker={"color": ink, "pattern": pattern, "line": {"color": "white", "width": 1}},
                hovertemplate=f"{kind}: %{{x}} {unit}<extra></extra>",
            )
        )  # fmt: skip
    for place, (twin, _), count in zip(places, rows, sums, strict=True):
        flops = _sum(twins[twin].values(), "flops")
        also = f", {flops / 1e9:.2f} GFLOP" if together and flops else ""
        figure.add_annotation(
            x=rounded([count / size])[0], y=place, xanchor="left", xshift=4,
            text=f"<b>{amount(count)}</b>{also}", showarrow=False,
        )  # fmt: skip
    height = 34 * len(rows) + 186
    figure.update_layout(
        barmode="stack", width=WIDE, height=height, showlegend=True, margin={"t": 72, "b": 104},
        legend={"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom", "traceorder": "normal"},
        title={"y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 14}},
    )  # fmt: skip
    figure.update_xaxes(range=rounded([0, (1.4 if together else 1.14) * longest / size]))
    ticks = [f"<b>{twin}</b>  {way * (not together)}" for twin, way in rows]
    figure.update_yaxes(
        range=[places[-1] + 0.6, -0.6], tickvals=places, ticktext=ticks, showgrid=False
    )
    if together:
        figure.update_xaxes(visible=False)
    else:
        _below(figure, _compared(twins, moved))
    return figure


def _kinds(twins: Mapping[str, Mapping[str, Traffic]]) -> list[str]:
    """The kinds with a colour of their own, the one that moves most first; then the rest."""
    moved: dict[str, int] = {}
    for kinds in twins.values():
        for kind, one in kinds.items():
            moved[kind] = moved.get(kind, 0) + one.moved
    order = sorted((kind for kind in moved if moved[kind]), key=lambda kind: -moved[kind])
    return order if len(order) <= MOST_KINDS else [*order[:MOST_KINDS], REST]


def _bytes(kinds: Mapping[str, Traffic], way: str, kind: str, named: Sequence[str]) -> int:
    chosen = [kind] if kind != REST else [k for k in kinds if k not in named]
    return _sum((kinds[k] for k in chosen if k in kinds), way)


def _sum(counted: Iterable[Traffic], what: str) -> int:
    return sum(getattr(one, what) for one in counted)


def _compared(twins: Mapping[str, Mapping[str, Traffic]], moved: Mapping[str, int]) -> str:
    """The last twin beside the first, in bytes and in the FLOPs of its matrix products."""
    first, *_, last = [*twins, *twins]
    before, after = moved[first], moved[last]
    if first == last:
        return f"{first} moves {amount(before)}."
    sentence = f"{first} moves {amount(before)}, {last} {amount(after)}: {_ratio(before, after)}."
    work = [_sum(twins[twin].values(), "flops") for twin in (first, last)]
    if not min(work):
        return sentence
    same = abs(work[0] - work[1]) < 0.005 * work[0]
    arithmetic = "the same" if same else f"{_ratio(*work)}"
    return f"{sentence}<br>FLOPs of the matrix products: {arithmetic}."


def _ratio(before: float, after: float) -> str:
    if before >= after:
        return f"{before / after:.2f} times less" if before > after else "the same"
    return f"{after / before:.2f} times more"


def amount(count: float) -> str:
    """Bytes in words: three digits and a unit."""
    unit, size = next(((u, s) for u, s in UNITS.items() if count >= s), ("bytes", 1.0))
    value = count / size
    digits = max(0, 2 - math.floor(math.log10(value))) if value and unit != "bytes" else 0
    return f"{value:.{digits}f} {unit}"


def _below(figure: Any, text: str) -> None:
    """A sentence under the horizontal axis."""
    figure.add_annotation(
        x=0, xref="paper", xanchor="left", y=0, yref="paper", yanchor="top",
        yshift=-52, text=text, showarrow=False, align="left",
    )  # fmt: skip
