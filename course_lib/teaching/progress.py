"""Callbacks for train.fit that show how a run is going, at a cost too small to notice.

Both draw by time, not by step: a report that comes too early only costs a look at the clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

from .page import Html, card, in_notebook, svg_drawing, svg_image
from .style import COLOURS, DASHES, GREY, thinned
from .svg import Scale, dot, line, words

if TYPE_CHECKING:
    from course_lib.train.loop import Report

_SVG_DASHES = {"dot": "2 4", "dash": "8 5", "dashdot": "8 4 2 4"}


class _Display:
    """One output in the notebook that is drawn over; in a terminal one line that is written
    over."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, html: Html, last: bool) -> None:
        if not in_notebook():
            _terminal(html.text, last)
            return
        from IPython.display import display

        if self.handle is None:
            self.handle = display(html, display_id=True)
        else:
            self.handle.update(html)
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
    width, height, left, top, right = 720, 250, 46, 14, 150
    # The first losses of a randomly initialised model may be far above all else; the curve may
    # leave the picture.
    ceiling = 1.08 * max([*values[:200], *baselines.values(), 1e-9])
    x, y = Scale(0, max(steps, 1), left, width - right), Scale(0, ceiling, height - 30, top)
    parts = []
    for tick in _round_ticks(ceiling):
        parts.append(line(left, y(tick), x.end, y(tick), ink="#ececec"))
        parts.append(words(left - 6, y(tick) + 4, f"{tick:g}", 13, "end"))
    for name, value in baselines.items():
        ink = COLOURS.get(name, GREY)
        dash = _SVG_DASHES.get(DASHES.get(name, "dot"), "2 4")
        parts.append(line(left, y(value), x.end, y(value), ink=ink, wide=1.8, dash=dash))
        parts.append(words(x.end + 8, y(value) + 4, f"{escape(name)} {value:.2f}", 13, "start"))
    parts += [
        words(left, height - 8, "0", 13, "start"),
        words(x.end, height - 8, f"step {steps:,}", 13, "end"),
        words(left + 6, top + 4, f"{escape(part)} loss (nats)", 13, "start"),
    ]
    at, means = thinned(range(first, first + len(values)), values, points)
    places = [(x(s), y(min(m, ceiling))) for s, m in zip(at, means, strict=True)]
    if places:
        ink = COLOURS.get(part, COLOURS["model"])
        parts.append(line(*chain.from_iterable(places), ink=ink, wide=2.5))
        parts.append(dot(*places[-1], 3.5, ink))
    parts.append(line(left, top, left, height - 30, x.end, height - 30))
    return svg_drawing(width, height, "".join(parts), f"{part} loss by step")


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
    below = f'<div style="font:13px system-ui,sans-serif">{_said(report)}</div>'
    return f'<div><div style="{track}"><div style="{fill}"></div></div>{below}</div>'
