"""The roofline of a machine (Williams, Waterman and Patterson 2009) with kernels on it.

What differs in colour differs in marker too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from course_lib.teaching.chart_parts import (
    Box,
    hits,
    inside,
    log_ticks,
    new_figure,
    number,
    readable,
)
from course_lib.teaching.style import GREY, INK, VERMILION, Look, looks, rounded
from course_lib.teaching.svg import text_width

if TYPE_CHECKING:
    from course_lib.bench.roofline import Placed

WIDE = 760  # pixels
ROOFLINE = 400  # pixels, the upper panel's height
LEFT, RIGHT, TOP = 70, 30, 60
ROW, ABOVE, BELOW = 30, 100, 56  # pixels of the lower panel: a kernel, its heads, its axis
NAMES = 0.27  # fraction of the width that the names in the lower panel take
LETTER = 6.7  # pixels a letter of a text is wide, about
PRODUCTS = {"float32": (INK, "solid"), "bfloat16": (VERMILION, "dash")}


def roofline_chart(
    roof: Mapping[str, float | None],
    points: Sequence[Placed],
    by: str = "unavoidable",
    *,
    width: float = WIDE,
    height: float = ROOFLINE,
) -> Any:
    """FLOP/s against arithmetic intensity (FLOPs a byte), both logarithmic, under this machine's
    roof; below, kernels without matrix products by the bytes a second that they get through.

    roof: "memory" in GB/s, "float32" and, where the machine has it, "bfloat16" in GFLOP/s. points:
    bench.roofline.placements(). A hollow marker is a reference, a filled one a fast twin, with a
    line from one to the other; the label says how many times less the fast one takes. by: a byte
    that is "unavoidable" (inputs and outputs, once) or that is "moved" (by all operations). width,
    height: the figure's and its upper panel's pixels, for type of 13 pixels.
    Raises ValueError for no points, a roof without its parts and another `by`."""
    _check_roof(roof, points, by)
    drawn = looks(dict.fromkeys(point.name for point in points))
    with_products = [point for point in points if point.intensity > 0]
    rest = list(dict.fromkeys(point.name for point in points if not point.intensity))
    inner = height + (ABOVE + ROW * len(rest) if rest else 0)
    figure = new_figure("The roofline of this machine", "", "")
    figure.update_layout(
        width=width, height=TOP + inner + BELOW,
        margin={"l": LEFT, "r": RIGHT, "t": TOP, "b": BELOW},
        yaxis_domain=rounded([1 - height / inner, 1]), xaxis_anchor="y",
    )  # fmt: skip
    figure.add_annotation(
        x=0, xref="paper", xanchor="left", y=1, yref="paper", yanchor="bottom", showarrow=False,
        text="hollow: reference   filled: fast version   <b>2×</b>: it takes half the time",
    )  # fmt: skip
    panel = _Panel(roof, with_products, by, (width - LEFT - RIGHT, height), inner)
    panel.draw_axes(figure)
    taken = [*panel.draw_roof(figure), *panel.draw_points(figure, drawn)]
    panel.draw_labels(figure, drawn, taken)
    if rest:
        _draw_strip(figure, roof["memory"] or 0.0, points, rest, drawn, ROW * len(rest) / inner)
    return figure


def _check_roof(roof: Mapping[str, float | None], points: Sequence[Placed], by: str) -> None:
    if not points:
        raise ValueError("roofline_chart was given no points; expected some, as placements() does.")
    if by not in ("unavoidable", "moved"):
        raise ValueError(f'by={by!r} was given; expected "unavoidable" or "moved".')
    for part in ("memory", "float32"):
        if not (roof.get(part) or 0) > 0:
            raise ValueError(
                f"a roof of {dict(roof)} was given; expected {part!r} above zero: memory in GB/s, "
                "float32 in GFLOP/s."
            )


def ridge(roof: Mapping[str, float | None], precision: str = "float32") -> float:
    """The arithmetic intensity from which on a kernel is compute-bound, not memory-bound."""
    products, memory = roof[precision], roof["memory"]
    assert products and memory
    return products / memory


class _Panel:
    """The upper panel: where things are, in powers of ten and in pixels."""

    def __init__(
        self, roof: Mapping[str, float | None], points: Sequence[Placed], by: str,
        area: tuple[float, float], inner: float,
    ) -> None:  # fmt: skip
        self.area = area
        self.inner = inner  # the figure's height between its margins
        self.memory = roof["memory"] or 0.0
        self.products = {p: rate for p in PRODUCTS if (rate := roof.get(p))}
        self.ridge = ridge(roof)
        self.points, self.by = points, by
        self.texts: list[Box] = []  # no line to a label may cross one
        x = [self.ridge, *map(self.intensity, points)]
        y = [*self.products.values(), *(point.gflops for point in points)]
        # Room at the left for the slope's name.
        self.x = [math.log10(min(*x, self.ridge / 8)) - 0.1, math.log10(max(x)) + 0.5]
        self.y = [math.log10(min(y)) - 0.3, math.log10(max(y)) + 0.25]

    def intensity(self, point: Placed) -> float:
        return point.intensity if self.by == "unavoidable" else point.traffic_intensity

    def pixels(self, x: float, y: float) -> tuple[float, float]:
        """From the lower left corner."""
        across = (math.log10(x) - self.x[0]) / (self.x[1] - self.x[0])
        up = (math.log10(y) - self.y[0]) / (self.y[1] - self.y[0])
        return across * self.area[0], up * self.area[1]

    def draw_axes(self, figure: Any) -> None:
        what = {
            "unavoidable": "arithmetic intensity: FLOPs per byte of inputs and outputs, each once",
            "moved": "arithmetic intensity: FLOPs per byte that its operations read or write",
        }
        for axis, title, span in (
            (figure.layout.xaxis, what[self.by], self.x),
            (figure.layout.yaxis, "GFLOP/s", self.y),
        ):
            axis.update(
                type="log", range=rounded(span), tickvals=log_ticks(*span), tickformat="~g",
                title_text=title,
            )  # fmt: skip

    def draw_roof(self, figure: Any) -> list[Box]:
        """Memory's slope, a flat line for each precision; returns what labels must not cover."""
        taken: list[Box] = []
        left, right = 10 ** self.x[0], 10 ** self.x[1]
        top = max(self.products.values())
        for precision, rate in self.products.items():
            ink, dashes = PRODUCTS[precision]
            bend = max(left, rate / self.memory)
            line = {"color": ink, "dash": dashes, "width": 2.2}
            _add_line(figure, f"{precision} products", [bend, right], [rate] * 2, line)
            text = f"{precision} products: {number(rounded([rate], 3)[0], False)} GFLOP/s"
            at = self.pixels(right, rate)
            width = LETTER * len(text)
            figure.add_annotation(
                **self._paper(*at), xanchor="right", yanchor="bottom", text=text, showarrow=False,
                font_color=readable(ink),
            )  # fmt: skip
            self.texts.append((at[0] - width, at[1] + 1, at[0], at[1] + 20))
            taken += self._along((bend, rate), (right, rate))
        taken += self._slope(figure, left, top)
        line = {"color": GREY, "dash": "dot", "width": 1.4}
        ends = [10 ** self.y[0], self.products["float32"]]
        _add_line(figure, "ridge", [self.ridge] * 2, ends, line)
        foot = self.pixels(self.ridge, 10 ** self.y[0])
        label = f"ridge: {number(rounded([self.ridge], 2)[0], False)} a byte"
        figure.add_annotation(
            **self._paper(foot[0] + 5, 11), xanchor="left", text=label, showarrow=False,
            font_color=readable(GREY),
        )  # fmt: skip
        self.texts.append((foot[0], 0, foot[0] + LETTER * len(label) + 10, 22))
        return taken + self._along(
            (self.ridge, 10 ** self.y[0]), (self.ridge, self.products["float32"])
        )

    def _slope(self, figure: Any, left: float, top: float) -> list[Box]:
        """Memory's limit, its name along it; returns the pixels they take."""
        start = max(left, 10 ** self.y[0] / self.memory)
        end = min(top / self.memory, 10 ** self.x[1])
        ends = [(x, x * self.memory) for x in (start, end)]
        across, up = zip(*ends, strict=True)
        _add_line(figure, "memory", across, up, {"color": INK, "width": 2.2})
        (x0, y0), (x1, y1) = (self.pixels(*end) for end in ends)
        angle = math.atan2(y1 - y0, x1 - x0)
        text = f"memory: {number(rounded([self.memory], 3)[0], False)} GB/s"
        half = LETTER * len(text) / 2
        middle = half + 32  # from the slope's lower end
        x, y = x0 + middle * math.cos(angle), y0 + middle * math.sin(angle)
        x, y = x - 11 * math.sin(angle), y + 11 * math.cos(angle)
        figure.add_annotation(
            **self._paper(x, y), xanchor="center", yanchor="middle", text=text, showarrow=False,
            textangle=round(-math.degrees(angle), 1),
        )  # fmt: skip
        self.texts += [
            (a - 8, b - 8, a + 8, b + 8)
            for k in range(-4, 5)
            for a, b in [(x + k * half / 4 * math.cos(angle), y + k * half / 4 * math.sin(angle))]
        ]
        return self._along(*ends)

    def draw_points(self, figure: Any, drawn: Mapping[str, Look]) -> list[Box]:
        """Markers, and a line from each reference to its fast twins."""
        taken: list[Box] = []
        for point in self.points:
            if point.twin != "fast" or (slow := _reference(point, self.points)) is None:
                continue
            ends = [(self.intensity(p), p.gflops) for p in (slow, point)]
            ink = drawn[point.name].colour
            name, line = f"{point.name}, from reference to fast", {"color": ink, "width": 1.5}
            across, up = zip(*ends, strict=True)
            _add_line(figure, name, across, up, line)
            taken += self._along(*ends)
        for point in self.points:
            at = (self.intensity(point), point.gflops)
            _add_marker(figure, point, *at, "%{x} a byte, %{y} GFLOP/s", drawn[point.name])
            x, y = self.pixels(self.intensity(point), point.gflops)
            taken.append((x - 7, y - 7, x + 7, y + 7))
        return taken

    def draw_labels(self, figure: Any, drawn: Mapping[str, Look], taken: list[Box]) -> None:
        """A name beside each fast twin, and each reference without one, with a line to it if it is
        not right beside its marker."""
        named = [p for p in self.points if p.twin == "fast" or not _has_fast(p, self.points)]
        # Who comes first has the choice: the order that keeps all nearest is taken.
        by_height = sorted(named, key=lambda p: -p.gflops)
        by_place = sorted(named, key=self.intensity)
        orders = (by_height, by_height[::-1], by_place, by_place[::-1])
        arranged = [self._arranged(order, taken) for order in orders]
        labels = min(arranged, key=lambda labels: sum(distance for *_, distance in labels))
        for point, x, y, leader, _ in labels:
            ink = readable(drawn[point.name].colour)
            figure.add_annotation(
                **self._paper(x, y), text=_label(point, self.points), showarrow=False,
                xanchor="center", yanchor="middle", font_color=ink,
            )  # fmt: skip
            if leader:
                ends = [self._paper((a + c) / 2, (b + d) / 2) for a, b, c, d in leader]
                figure.add_shape(
                    type="line", xref="paper", yref="paper", line={"color": ink, "width": 1},
                    x0=ends[0]["x"], y0=ends[0]["y"], x1=ends[-1]["x"], y1=ends[-1]["y"],
                )  # fmt: skip

    def _arranged(
        self, order: Sequence[Placed], taken: Sequence[Box]
    ) -> list[tuple[Placed, float, float, list[Box], float]]:
        """Each label's middle in pixels, the line to it, and how far it is from its marker: the
        nearest place where it covers nothing and its line crosses no text."""
        texts, full = list(self.texts), [*taken, *self.texts]
        labels = []
        for point in order:
            half = wide_of(_label(point, self.points)) / 2
            x, y = self.pixels(self.intensity(point), point.gflops)
            around = sorted(_around(half), key=lambda at: _distance(at, half))
            free = (
                (dx, dy)
                for dx, dy in around
                if inside(box := _box(x + dx, y + dy, half), self.area)
                and not hits(box, full)
                and not any(hits(dot, texts) for dot in _leader(x, y, dx, dy, half))
            )
            offset = next(free, None)
            dx, dy = offset or (-half - 13, 0.0)  # no room at all: left of the marker
            leader, box = _leader(x, y, dx, dy, half), _box(x + dx, y + dy, half)
            texts.append(box)
            full += [box, *leader]
            distance = _distance((dx, dy), half) if offset else 1e6
            labels.append((point, x + dx, y + dy, leader, distance))
        return labels

    def _paper(self, x: float, y: float) -> dict[str, Any]:
        """Pixels of the panel as fractions of the figure's inner area."""
        low = 1 - self.area[1] / self.inner
        across, up = rounded([x / self.area[0], low + y / self.inner], 5)
        return {"x": across, "y": up, "xref": "paper", "yref": "paper"}

    def _along(self, a: tuple[float, float], b: tuple[float, float]) -> list[Box]:
        """Small boxes along a line."""
        return _dots(self.pixels(*a), self.pixels(*b))


def _dots(a: tuple[float, float], b: tuple[float, float]) -> list[Box]:
    (x0, y0), (x1, y1) = a, b
    steps = max(1, round(math.hypot(x1 - x0, y1 - y0) / 6))
    spots = [(x0 + (x1 - x0) * k / steps, y0 + (y1 - y0) * k / steps) for k in range(steps + 1)]
    return [(x - 3, y - 3, x + 3, y + 3) for x, y in spots]


def _leader(x: float, y: float, dx: float, dy: float, half: float) -> list[Box]:
    """The line from a marker to a label that is not beside it."""
    if _distance((dx, dy), half) <= 20:
        return []
    across = x + dx + max(-half, min(half, -dx))  # the label's nearest place
    up = y + dy - max(-9.0, min(9.0, dy))
    far = math.hypot(across - x, up - y)
    return _dots((x + 9 * (across - x) / far, y + 9 * (up - y) / far), (across, up))


# ---------------------------------------------------------------- points


def _reference(point: Placed, points: Sequence[Placed]) -> Placed | None:
    same = (p for p in points if p.name == point.name and p.twin == "reference")
    return next(same, None)


def _has_fast(point: Placed, points: Sequence[Placed]) -> bool:
    return any(p.name == point.name and p.twin == "fast" for p in points)


def _full(point: Placed) -> str:
    return ", ".join(part for part in (point.name, point.twin, point.how) if part)


def _label(point: Placed, points: Sequence[Placed]) -> str:
    """The name, and how many times less it takes than its reference."""
    name = f"{point.name}, {point.how}" if point.how else point.name
    slow = _reference(point, points)
    if slow is None or slow is point:
        return name
    return f"{name} <b>{times(slow.seconds / point.seconds)}</b>"


def wide_of(label: str) -> float:
    """Pixels that a label takes."""
    return text_width(label.replace("<b>", "").replace("</b>", ""))


def times(ratio: float) -> str:
    """A ratio with about two digits: 0.85×, 1.3×, 24×, 1,300×."""
    if ratio < 1:
        return f"{ratio:.2f}×"
    return f"{ratio:.1f}×" if ratio < 10 else f"{rounded([ratio], 2)[0]:,.0f}×"


def _duration(seconds: float) -> str:
    return f"{rounded([1e3 * seconds], 3)[0]:,g} ms"


def _add_line(
    figure: Any, name: str, x: Iterable[float], y: Iterable[float], line: dict[str, Any],
    **axes: str,
) -> None:  # fmt: skip
    import plotly.graph_objects as go

    trace = {"name": name, "mode": "lines", "line": line, "hoverinfo": "skip", **axes}
    figure.add_trace(go.Scatter(x=rounded(x), y=rounded(y), **trace))


def _add_marker(
    figure: Any, point: Placed, x: float, y: float, value: str, look: Look, **axes: str
) -> None:
    """Hollow for a reference, filled for a fast twin."""
    import plotly.graph_objects as go

    fill = look.colour if point.twin == "fast" else "white"
    edge = {"color": look.colour, "width": 2}
    figure.add_trace(
        go.Scatter(
            x=rounded([x]), y=rounded([y]), mode="markers", name=_full(point),
            marker={"symbol": look.symbol, "size": 11, "color": fill, "line": edge},
            hovertemplate=f"{_full(point)}: {_duration(point.seconds)}, {value}<extra></extra>",
            **axes,
        )
    )  # fmt: skip


def _around(half: float) -> Iterator[tuple[float, float]]:
    """Where the middle of a label may be, in pixels from its marker."""
    for dy in range(-300, 301, 10):
        for dx in range(-360, 361, 20):
            yield float(dx), float(dy)
        yield half + 13, float(dy)
        yield -half - 13, float(dy)


def _distance(at: tuple[float, float], half: float) -> float:
    """How far the label's nearest edge is from the marker."""
    return math.hypot(max(0.0, abs(at[0]) - half), max(0.0, abs(at[1]) - 8))


def _box(x: float, y: float, half: float) -> Box:
    return x - half, y - 9, x + half, y + 9


def _draw_strip(
    figure: Any,
    memory: float,
    points: Sequence[Placed],
    names: Sequence[str],
    drawn: Mapping[str, Look],
    height: float,
) -> None:
    """The lower panel: kernels without matrix products in rows, by bytes a second."""
    rows = {name: [p for p in points if p.name == name] for name in names}
    rates = [p.gigabytes for row in rows.values() for p in row]
    span = [math.log10(min([*rates, memory])) - 0.25, math.log10(max([*rates, memory])) + 0.35]
    figure.update_layout(
        xaxis2={
            "type": "log", "range": rounded(span), "dtick": 1, "tickformat": "~g", "anchor": "y2",
            "domain": [NAMES, 1], "title": {"text": "GB/s of inputs and outputs"},
        },
        yaxis2={
            "domain": rounded([0, height]), "anchor": "x2", "range": [len(rows) - 0.5, -0.5],
            "tickvals": [], "showgrid": False,
        },
    )  # fmt: skip
    top = {"y": rounded([height])[0], "yref": "paper", "yanchor": "bottom", "showarrow": False}
    figure.add_annotation(
        **top, x=0, xref="paper", xanchor="left", yshift=20,
        text="<b>Without matrix products</b> there are no FLOPs to count: bytes a second",
    )  # fmt: skip
    figure.add_annotation(
        **top, x=rounded([math.log10(memory)])[0], xref="x2", xanchor="center",
        text=f"memory: {number(rounded([memory], 3)[0], False)} GB/s",
    )  # fmt: skip
    below = {"xaxis": "x2", "yaxis": "y2"}
    ends = [-0.5, len(rows) - 0.5]
    _add_line(figure, "memory", [memory] * 2, ends, {"color": INK, "width": 2.2}, **below)
    for place, (name, row) in enumerate(rows.items()):
        look = drawn[name]
        line = {"color": look.colour, "width": 1.5}
        ends = [p.gigabytes for p in row]
        name = f"{name}, from reference to fast"
        _add_line(figure, name, ends, [place] * len(row), line, **below)
        for point in row:
            _add_marker(figure, point, point.gigabytes, place, "%{x} GB/s", look, **below)
        fast = next((p for p in row if p.twin == "fast"), row[0])
        figure.add_annotation(
            x=NAMES, xref="paper", y=place, yref="y2", xanchor="right", xshift=-8, showarrow=False,
            text=_label(fast, points), font_color=readable(look.colour),
        )  # fmt: skip
