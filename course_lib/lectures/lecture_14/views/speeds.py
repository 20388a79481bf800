"""The bench's saved figures: who is how fast, table by table."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Any, NamedTuple

from course_lib.bench.measuring import where_measured
from course_lib.bench.summary import in_todays_words
from course_lib.teaching.chart_parts import log_ticks
from course_lib.teaching.page import Html, Live, card, paragraphs, svg_drawing, svg_image
from course_lib.teaching.playgrounds import choice, playground
from course_lib.teaching.style import BLUE, GREY, rounded
from course_lib.teaching.svg import Scale, dot, line, words, x_axis

from .roofline import times

WIDTH, NAMES, RATIOS = 780, 340, 76  # pixels: the drawing, names at the left, ratios at the right
TOP, ROW = 30, 27


class Speed(NamedTuple):
    """One contender of a table, in tokens a second."""

    name: str
    median: float
    low: float  # the middle half of the rounds
    high: float
    ratio: float  # to the first row's median


def speed_chart(record: Mapping[str, Any], table: str | None = None) -> Live:
    """A menu of the bench's tables above a chart: each contender's median and middle half.

    record: what `python -m course_lib.bench --json` saved, or read_result("14_speed"). table: the
    title shown first. Control: table. Raises ValueError for figures of another form and for a
    table that is not among them."""
    record = in_todays_words(record)
    titles = _titles(record)
    first = _known(record, table or titles[0])
    controls = {"table": choice("table", first, titles)}
    static = speed_picture(record, first, all_tables=True)
    return playground(partial(speed_picture, record), controls, static)


def speeds(record: Mapping[str, Any], table: str) -> list[Speed]:
    """The rows of one table, with quartiles over its rounds."""
    rows: list[Speed] = []
    for row in record["tables"][_known(record, table)]:
        rates = row["rates"]
        if len(rates) < 2 or min(rates) <= 0:
            raise ValueError(
                f"{row['name']!r} holds the rates {rates[:5]}; expected two or more, above zero."
            )
        median = statistics.median(rates)
        low, _, high = statistics.quantiles(rates, n=4, method="inclusive")
        base = rows[0].median if rows else median
        rows.append(Speed(row["name"], median, low, high, median / base))
    return rows


def speed_picture(record: Mapping[str, Any], table: str, *, all_tables: bool = False) -> Html:
    """The chart of one table, what the bench remarks on it, and machine and date.

    all_tables: for a page without a kernel; the others follow as numbers to unfold."""
    rows = speeds(record, table)
    captions = _captions(record, table, rows)
    svg = svg_drawing(WIDTH, TOP + ROW * len(rows) + 42, "".join(_chart(rows)), captions[0])
    html = [_title(table), svg_image(svg, f"{table}: {captions[0]}"), paragraphs(captions)]
    text = [table, *map(_line, rows), *captions]
    for other in _titles(record) if all_tables else []:
        if other != table:
            other_rows, remark = speeds(record, other), _remark(record, other)
            html.append(_folded(other, other_rows, remark))
            text += ["", other, *map(_line, other_rows), *filter(None, [remark])]
    return Html(card("".join(html), "speeds", WIDTH + 30), "\n".join(text), svg)


def _titles(record: Mapping[str, Any]) -> list[str]:
    if not isinstance(record.get("machine"), Mapping) or not record.get("tables"):
        raise ValueError(
            f"speed_chart was given {sorted(record)}; expected machine and tables, as `python -m "
            "course_lib.bench --json` saves them."
        )
    return list(record["tables"])


def _known(record: Mapping[str, Any], table: str) -> str:
    if table not in _titles(record):
        raise ValueError(
            f"table={table!r} was given; expected one of: {'; '.join(_titles(record))}."
        )
    return table


# ---------------------------------------------------------------- in words


def _captions(record: Mapping[str, Any], table: str, rows: Sequence[Speed]) -> list[str]:
    """What the dots are, on which machine and when; what the bench remarks."""
    rounds = len(record["tables"][table][0]["rates"])
    best = max(rows, key=lambda row: row.median)
    return [
        f"Fastest: {best.name}, {times(best.ratio)} the first row. Dots are medians of {rounds} "
        "rounds, bars their middle half; the axis is logarithmic; ratios are to the first row, "
        "hollow.",
        f"Measured on {where_measured(record['machine'])}.",
        *filter(None, [re.sub(" {3,}", " · ", _remark(record, table))]),
    ]


def _remark(record: Mapping[str, Any], table: str) -> str:
    return str(record.get("remarks", {}).get(table, ""))


def _line(row: Speed) -> str:
    return (
        f"{row.name:<58}{row.median:>14,.0f}  ({row.low:,.0f}–{row.high:,.0f})  {times(row.ratio)}"
    )


def _title(table: str) -> str:
    return f'<p style="margin:0 0 4px;font-weight:700">{escape(table)}</p>'


def _folded(table: str, rows: Sequence[Speed], remark: str) -> str:
    """A table of numbers behind its title: plain text, as there are many of them on a page."""
    lines = [f"{'':<58}{'tokens/s':>14}  (middle half)  ratio", *map(_line, rows)]
    if remark:
        lines.append(remark)
    text = escape("\n".join(lines))
    return f"<details><summary>{escape(table)}</summary><pre>{text}</pre></details>"


# ---------------------------------------------------------------- drawn


def _chart(rows: Sequence[Speed]) -> list[str]:
    """Names, dots with their middle half, ratios; a dotted line at the first row's median."""
    low = math.log10(min(row.low for row in rows)) - 0.08
    high = math.log10(max(row.high for row in rows)) + 0.08
    scale, end = Scale(low, high, NAMES, WIDTH - RATIOS), TOP + ROW * len(rows)
    ticks = log_ticks(low, high) or rounded([10 ** ((low + high) / 2)], 3)
    marks = {math.log10(tick): _short(tick) for tick in ticks}
    base = scale(math.log10(rows[0].median))
    parts = [
        x_axis(scale, end, marks, "tokens a second", top=TOP),
        words(WIDTH - 6, TOP - 12, "ratio", 13, "end", ink="#444"),
        line(base, TOP - 6, base, end, ink=GREY, dash="2 3"),
    ]
    for place, row in enumerate(rows):
        y = TOP + ROW * (place + 0.5)
        left, middle, right = (scale(math.log10(v)) for v in (row.low, row.median, row.high))
        parts += [
            words(NAMES - 12, y + 4, escape(row.name), 12, "end"),
            line(left, y, right, y, ink=BLUE, wide=5, opacity=0.45),
            dot(middle, y, 5, BLUE if place else "#fff", ink=BLUE),
            words(WIDTH - 6, y + 4, times(row.ratio), 13, "end", bold=True),
        ]
    return parts


def _short(value: float) -> str:
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"
