"""All spans of a passage at once: start i + end j as a map, of which only a triangle is possible.

Rows are starts, columns ends (Devlin et al. 2018, section 4.2: j ≥ i).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from course_lib.teaching.page import Html, Live, number
from course_lib.teaching.playgrounds import playground, slider
from course_lib.teaching.style import INK, dotted, hatch
from course_lib.teaching.svg import (
    area,
    cell_names,
    dot,
    heat,
    heat_scale,
    one_decimal,
    picture,
    shortened,
    words,
)

from .answer_spans import (
    LONGEST,
    ScoredRow,
    counted,
    decision,
    scored_row,
    slanted,
)

if TYPE_CHECKING:
    from torch import Tensor

MOST_IN_TABLE = 40  # tokens
WIDTH, SIDE, GREY = 740, 370, "#8a8a8a"  # pixels
BEHIND, LONG = hatch(GREY, size=7, stripe=1.4), dotted(GREY)


def span_table(
    tokens: Sequence[str],
    start_logits: Tensor,
    end_logits: Tensor,
    allowed: Tensor,
    *,
    longest: int = LONGEST,
    threshold: float = 0.0,
) -> Html:
    """Start i + end j for all pairs of allowed tokens; hatched where j < i, dotted where too long.

    Of a passage of more than 40 tokens the 40 around the best span are drawn. Raises ValueError as
    scored_row does.
    """
    row = scored_row(tokens, start_logits, end_logits, allowed, longest)
    parts, height = _triangle(row, _places(row, longest), longest)
    return picture("span-table", WIDTH, height, parts, decision(row, longest, threshold))


def _places(row: ScoredRow, longest: int) -> list[int]:
    """The allowed tokens, at most 40, the best span among them."""
    positions = [k for k, free in enumerate(row.allowed.tolist()) if free]
    if len(positions) <= MOST_IN_TABLE:
        return positions
    best = row.best(longest)[0]
    middle = positions.index(best.i) + (best.j - best.i) // 2
    first = min(max(0, middle - MOST_IN_TABLE // 2), len(positions) - MOST_IN_TABLE)
    return positions[first : first + MOST_IN_TABLE]


def _triangle(
    row: ScoredRow, positions: list[int], longest: int
) -> tuple[list[str], float]:  # fmt: skip
    """The map of scores and what lies over it; and the height of it all."""
    n, x, y = len(positions), 118, 6 + slanted([row.tokens[k] for k in positions])
    cell = min(26.0, SIDE / n)
    side, best = n * cell, row.best(longest)[0]
    scores = row.pairs()[positions][:, positions]
    possible = row.possible(longest)[positions][:, positions]
    lowest, highest = scores[possible].min().item(), scores[possible].max().item()
    shades = ((scores - (lowest + highest) / 2) / ((highest - lowest) / 2 or 1.0)).clamp(-1, 1)
    i, j = (positions.index(k) if k in positions else 0 for k in (best.i, best.j))
    names = [shortened(row.tokens[position]) for position in positions]
    starts = ["▸" * (k == best.i) + name for k, name in zip(positions, names, strict=True)]
    ends = ["▾" * (k == best.j) + name for k, name in zip(positions, names, strict=True)]
    left_out = int(row.allowed.sum()) - n
    parts = [
        heat(shades, x, y, side, side, largest=1.0),
        _stairs("behind", BEHIND, n, cell, x, y, 0),
        _stairs("long", LONG, n, cell, x, y, longest) if longest < n else "",
        area(x, y, side, side, "none", ink=INK),
        *cell_names(starts, ends, x, y, (cell, cell), size=max(8.5, min(11, cell)), turn=-60,
                    bold=(i, j), mono=True),
        dot(x + (j + 0.5) * cell, y + (i + 0.5) * cell, max(3.0, min(7, cell / 2.6)), "#fff",
            ink="#000", kind="best"),
        *_notes(x + side + 22, y, (lowest, highest), longest, n, left_out),
    ]  # fmt: skip
    return parts, y + max(side, 186 + 30 * (left_out > 0)) + 10


def _stairs(kind: str, fill: str, n: int, cell: float, x0: float, y0: float, ahead: int) -> str:
    """All cells with j < i (ahead = 0), or with j − i ≥ ahead, as one shape with steps."""
    if ahead:
        steps = [((k + ahead, k), (k + ahead, k + 1)) for k in range(n - ahead)]
        corners = [*chain.from_iterable(steps), (n, n - ahead), (n, 0)]
    else:
        steps = [((k, k), (k, k + 1)) for k in range(1, n)]
        corners = [(0, 1), *chain.from_iterable(steps), (0, n)]
    points = " ".join(f"{one_decimal(x0 + cell * x)},{one_decimal(y0 + cell * y)}"
                      for x, y in corners)  # fmt: skip
    return f'<polygon class="{kind}" points="{points}" fill="{fill}" stroke="{INK}"/>'


def _notes(
    x: float, y: float, ends: tuple[float, float], longest: int, n: int, left_out: int
) -> list[str]:
    """The scale of the colours, and what the two patterns and the ring mean."""
    patterns = [(BEHIND, "j &lt; i: ends before it starts")]
    if longest < n:
        patterns.append((LONG, f"over the cap of {counted(longest, 'token')}"))
    notes = [
        (0, 72, "rows: where the span starts (i)"), (0, 90, "columns: where it ends (j)"),
        (26, 114, "best possible span"),
        *((26, 141 + 26 * k, note) for k, (_, note) in enumerate(patterns)),
        (0, 208, f"{left_out} more tokens are not drawn" if left_out else ""),
    ]  # fmt: skip
    return [
        words(x, y + 10, "start i + end j", 13, "start", bold=True),
        heat_scale(x, y + 18, 150, [number(end) for end in ends]),
        dot(x + 9, y + 110, 6, "#fff", ink="#000"),
        *(words(x + right, y + down, note, 12, "start", ink="#444") for right, down, note in notes),
        *(area(x, y + 128 + 26 * k, 18, 18, fill, ink=INK) for k, (fill, _) in enumerate(patterns)),
    ]


# ---------------------------------------------------------------- with controls


def span_explorer(
    tokens: Sequence[str],
    start_logits: Tensor,
    end_logits: Tensor,
    allowed: Tensor,
    *,
    longest: int = LONGEST,
    threshold: float = 0.0,
) -> Live:
    """span_table with sliders for the length cap (1 to 40 tokens) and the null threshold τ.

    Raises ValueError as scored_row does, and for a cap or a τ beyond the sliders.
    """
    inputs = (tokens, start_logits, end_logits, allowed)
    row = scored_row(*inputs, longest)
    margin = row.best(len(tokens))[0].score - row.null.score
    edge = max(4.0, float(round(abs(margin)) + 2))
    most = min(MOST_IN_TABLE, int(row.allowed.sum()))
    longest = min(longest, most)
    if abs(threshold) > edge:
        raise ValueError(
            f"threshold={threshold!r} was given; expected −{edge:g} to {edge:g}, which holds every "
            "margin of this question."
        )
    controls = {
        "longest": slider("longest span (tokens)", longest, 1, most),
        "threshold": slider("τ: null threshold", threshold, -edge, edge, 0.25),
    }
    return playground(partial(span_table, *inputs), controls)
