"""Callbacks for train.fit that show how a run is going, at a cost too small to notice.

Both draw by time, not by step: a report that comes too early only costs a look at the clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from .page import Html, card, in_notebook, svg_drawing, svg_image
from .style import COLOURS, DASHES, GREY, INK, thinned

if TYPE_CHECKING:
    from course_lib.train.loop import Report

_SVG_DASHES = {"dot": "2 4", "dash": "8 5", "dashdot": "8 4 2 4"}


class _Display:
    """One output in the notebook that is drawn over; in a terminal one line that is written
    over."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, shown: Html, last: bool) -> None:
        if not in_notebook():
            _terminal(shown.text, last)
            return
        from IPython.display import display

        if self.handle is None:
            self.handle = display(shown, display_id=True)
        else:
            self.handle.update(shown)
        if last:
            self.handle = None  # another run gets its own output


def _terminal(text: str, last: bool) -> None:
    if sys.stderr.isatty():
        print(
            "\r" + text.splitlines()[0].ljust(78),
            end="\n" if last else "",
            file=sys.stderr,
            flush=True,
        )


class _DrawnByTime:
    """A callback that draws at most every `seconds`, and always the last step."""

    every = 1
    reads_model = False

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.drawn = 0  # how often, for whoever wants to know the cost
        self._due = 0.0
        self._display = _Display()

    def __call__(self, report: Report) -> None:
        last = report.step == report.steps
        now = time.perf_counter()
        if now < self._due and not last:
            return
        self._due = now + self.seconds
        self.drawn += 1
        self._display.show(self._picture(report, last), last)

    def _picture(self, report: Report, last: bool) -> Html:
        raise NotImplementedError


class ProgressBar(_DrawnByTime):
    """A bar with the step and the speed; drawn at most five times a second."""

    def __init__(self, seconds: float = 0.2) -> None:
        super().__init__(seconds)

    def _picture(self, report: Report, last: bool) -> Html:
        return Html(_bar(report), _said(report))


class LiveLoss(_DrawnByTime):
    """The loss curve while it is made, drawn every `seconds`; its last state stays as a picture.

    part: which loss; baselines: {name: loss in nats}, level lines to beat; title: which run it is.
    """

    def __init__(
        self,
        baselines: Mapping[str, float] | None = None,
        *,
        part: str = "mlm",
        title: str = "",
        seconds: float = 0.75,
    ) -> None:
        super().__init__(seconds)
        self.baselines = dict(baselines or {})
        self.part = part
        self.title = title
        self.values: list[float] = []
        self._first = 1

    def __call__(self, report: Report) -> None:
        if not self.values or report.step <= self._first:
            self.values, self._first = [], report.step  # a new run, or a resumed one
        self.values.append(report.losses.get(self.part, report.losses["total"]))
        super().__call__(report)

    def _picture(self, report: Report, last: bool) -> Html:
        svg = loss_svg(self.values, report.steps, self.baselines, first=self._first, part=self.part)
        text = f"{_said(report)}, {self.part} loss {_recent(self.values):.3f}"
        text = f"{self.title}: {text}" if self.title else text
        drawn = svg_image(svg, text) if last else svg
        head = f'<div style="font-weight:600">{escape(self.title)}</div>' if self.title else ""
        return Html(card(head + drawn + _bar(report), "live-loss"), text)


def loss_svg(
    values: list[float],
    steps: int,
    baselines: Mapping[str, float],
    *,
    first: int = 1,
    part: str = "mlm",
    points: int = 150,
) -> str:
    """An SVG of about 8 kB: the curve as means of neighbouring steps over all the steps to come."""
    wide, high, left, top, right = 720, 250, 46, 14, 150
    # The first losses of a randomly initialised model may be far above all else; the curve may
    # leave the picture.
    ceiling = 1.08 * max([*values[:200], *baselines.values(), 1e-9])

    def x(step: float) -> float:
        return left + (wide - left - right) * step / max(steps, 1)

    def y(loss: float) -> float:
        return top + (high - top - 30) * (1 - min(loss / ceiling, 1.0))

    at, means = thinned(range(first, first + len(values)), values, points)
    places = [f"{x(s):.1f} {y(m):.1f}" for s, m in zip(at, means, strict=True)]
    end = f'<circle cx="{x(at[-1]):.1f}" cy="{y(means[-1]):.1f}" r="3.5"/>' if places else ""
    levels = "".join(_level(name, v, y(v), left, wide - right) for name, v in baselines.items())
    ticks = "".join(_tick(v, y(v), left, wide - right) for v in _round_ticks(ceiling))
    ink = COLOURS.get(part, COLOURS["model"])
    curve = f'<path d="M{"L".join(places)}" fill="none" stroke="{ink}" stroke-width="2.5"/>'
    content = (
        f'{ticks}{levels}<text x="{left}" y="{high - 8}">0</text>'
        f'<text x="{wide - right}" y="{high - 8}" text-anchor="end">step {steps:,}</text>'
        f'<text x="{left + 6}" y="{top + 4}">{escape(part)} loss (nats)</text>'
        f'{curve if places else ""}<g fill="{ink}">{end}</g>'
        f'<path d="M{left} {top}V{high - 30}H{wide - right}" fill="none" stroke="{INK}"/>'
    )
    return svg_drawing(wide, high, content, f"{part} loss by step")


def _level(name: str, value: float, y: float, x0: float, x1: float) -> str:
    ink = COLOURS.get(name, GREY)
    pattern = _SVG_DASHES.get(DASHES.get(name, "dot"), "2 4")
    return (
        f'<path d="M{x0} {y:.1f}H{x1}" stroke="{ink}" stroke-width="1.8" '
        f'stroke-dasharray="{pattern}"/>'
        f'<text x="{x1 + 8}" y="{y + 4:.1f}">{escape(name)} {value:.2f}</text>'
    )


def _tick(value: float, y: float, x0: float, x1: float) -> str:
    return (
        f'<path d="M{x0} {y:.1f}H{x1}" stroke="#ececec"/>'
        f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    )


def _round_ticks(ceiling: float) -> list[float]:
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 1e9) if ceiling / s <= 6)
    return [round(i * step, 6) for i in range(int(ceiling / step) + 1)]


def _recent(values: list[float]) -> float:
    last = values[-20:]
    return sum(last) / len(last)


def _said(report: Report) -> str:
    speed = f"{report.tokens_per_second:,.0f} tokens per second"
    return f"step {report.step:,} of {report.steps:,}, {speed}"


def _bar(report: Report) -> str:
    done = 100 * report.step / report.steps
    track = "background:#e4e4e4;border-radius:4px;height:8px;max-width:720px;margin:4px 0"
    fill = f"background:#0072B2;border-radius:4px;height:8px;width:{done:.1f}%"
    words = f'<div style="font:13px system-ui,sans-serif">{_said(report)}</div>'
    return f'<div><div style="{track}"><div style="{fill}"></div></div>{words}</div>'
