"""All spans of a passage at once: start i + end j as a map, of which only a triangle is possible.

Rows are starts, columns ends (Devlin et al. 2018, section 4.2: j ≥ i).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import chain
from typing import TYPE_CHECKING

from course_lib.teaching.embedding_stack import heat_png
from course_lib.teaching.page import Html, Live, card, number, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.svg import words as text_at

from .answer_spans import (
    LONGEST,
    ScoredRow,
    counted,
    decision,
    scored_row,
    short_token,
    slanted,
)

if TYPE_CHECKING:
    from torch import Tensor

MOST_IN_TABLE = 40  # tokens
WIDE, SIDE = 740, 370  # pixels
MONO = "ui-monospace,Menlo,Consolas,monospace"

_FILLS = (
    '<defs><pattern id="course-span-no" width="7" height="7" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="7" height="7" fill="#fff"/>'
    '<rect width="1.4" height="7" fill="#8a8a8a"/></pattern>'
    '<pattern id="course-span-long" width="7" height="7" patternUnits="userSpaceOnUse">'
    '<rect width="7" height="7" fill="#fff"/><circle cx="3.5" cy="3.5" r="1.2" fill="#8a8a8a"/>'
    "</pattern></defs>"
)


def span_table(
    tokens: Sequence[str],
    start_logits: Tensor,
    end_logits: Tensor,
    allowed: Tensor,
    *,
    longest: int = LONGEST,
    threshold: float = 0.0,
    as_image: bool = True,
) -> Html:
    """Start i + end j for all pairs of allowed tokens; hatched where j < i, dotted where too long.

    Of a passage of more than 40 tokens the 40 around the best span are drawn. as_image: for a page
    without a kernel (see page.svg_image). Raises ValueError as scored_row does.
    """
    found = scored_row(tokens, start_logits, end_logits, allowed, longest)
    said = decision(found, longest, threshold)
    label = " ".join(said)
    positions = _places(found, longest)
    content, height = _triangle(found, positions, longest)
    drawing = svg_drawing(WIDE, height, _FILLS + content, label)
    drawing = svg_image(drawing, label) if as_image else drawing
    words = "".join(f'<p style="margin:6px 0 0">{escape(line)}</p>' for line in said)
    return Html(card(drawing + words, "span-table", 780), "\n".join(said))


def _places(found: ScoredRow, longest: int) -> list[int]:
    """The allowed tokens, at most 40, the best span among them."""
    positions = [k for k, free in enumerate(found.allowed.tolist()) if free]
    if len(positions) <= MOST_IN_TABLE:
        return positions
    best = found.best(longest)[0]
    middle = positions.index(best.i) + (best.j - best.i) // 2
    first = min(max(0, middle - MOST_IN_TABLE // 2), len(positions) - MOST_IN_TABLE)
    return positions[first : first + MOST_IN_TABLE]


def _triangle(found: ScoredRow, positions: list[int], longest: int) -> tuple[str, float]:
    """The map of scores and what lies over it; and the height of it all."""
    n, x0, y0 = len(positions), 118, 6 + slanted([found.tokens[k] for k in positions])
    cell = min(26.0, SIDE / n)
    side = n * cell
    scores = found.pairs()[positions][:, positions]
    drawn = found.possible(longest)[positions][:, positions]
    low, high = scores[drawn].min().item(), scores[drawn].max().item()
    middle, half = (low + high) / 2, (high - low) / 2 or 1.0
    best = found.best(longest)[0]
    shades = ((scores - middle) / half).clamp(-1, 1)
    frame = f'x="{x0}" y="{y0}" width="{side:.1f}" height="{side:.1f}"'
    parts = [
        f'<image {frame} href="{heat_png(shades, 1.0)}" preserveAspectRatio="none" '
        'style="image-rendering:pixelated"/>',
        _stairs("behind", "course-span-no", n, cell, x0, y0, 0),
    ]
    if longest < n:
        parts.append(_stairs("long", "course-span-long", n, cell, x0, y0, longest))
    parts.append(f'<rect {frame} fill="none" stroke="#1a1a1a"/>')
    size = max(8.5, min(11, cell))
    parts.append(f'<g font-size="{size:.1f}" font-family="{MONO}">')
    for k, position in enumerate(positions):
        at, token = (k + 0.5) * cell, short_token(found.tokens[position])
        rows, columns = position == best.i, position == best.j
        parts.append(
            f'<text x="{x0 - 5}" y="{y0 + at + size * 0.36:.1f}" text-anchor="end"'
            f"{_bold(rows)}>{'▸' * rows}{token}</text>"
            f'<text transform="translate({x0 + at + 3:.1f},{y0 - 5}) rotate(-60)"'
            f"{_bold(columns)}>{'▾' * columns}{token}</text>"
        )
    parts.append("</g>")
    i, j = (positions.index(k) if k in positions else 0 for k in (best.i, best.j))
    parts.append(
        f'<circle class="best" cx="{x0 + (j + 0.5) * cell:.1f}" cy="{y0 + (i + 0.5) * cell:.1f}" '
        f'r="{max(3.0, min(7, cell / 2.6)):.1f}" fill="#fff" stroke="#000" stroke-width="2"/>'
    )
    left_out = int(found.allowed.sum()) - n
    parts.append(_notes(x0 + side + 22, y0, (low, high), longest, n, left_out))
    return "".join(parts), y0 + max(side, 186 + 30 * (left_out > 0)) + 10


def _bold(yes: bool) -> str:
    return ' font-weight="700"' if yes else ""


def _stairs(kind: str, fill: str, n: int, cell: float, x0: float, y0: float, ahead: int) -> str:
    """All cells with j < i (ahead = 0), or with j − i ≥ ahead, as one shape with steps."""
    if ahead:
        steps = [((k + ahead, k), (k + ahead, k + 1)) for k in range(n - ahead)]
        corners = [*chain.from_iterable(steps), (n, n - ahead), (n, 0)]
    else:
        steps = [((k, k), (k, k + 1)) for k in range(1, n)]
        corners = [(0, 1), *chain.from_iterable(steps), (0, n)]
    points = " ".join(f"{x0 + cell * x:.1f},{y0 + cell * y:.1f}" for x, y in corners)
    return f'<polygon class="{kind}" points="{points}" fill="url(#{fill})" stroke="#1a1a1a"/>'


def _notes(
    x: float, y: float, ends: tuple[float, float], longest: int, n: int, left_out: int
) -> str:
    """The scale of the colours, and what the two patterns and the ring mean."""
    import torch

    bar = heat_png(torch.linspace(-1, 1, 64)[None], 1.0)
    parts = [
        f'<text x="{x}" y="{y + 10}" font-weight="600">start i + end j</text>'
        f'<image x="{x}" y="{y + 18}" width="150" height="12" href="{bar}" '
        'preserveAspectRatio="none"/>'
        f'<circle cx="{x + 9}" cy="{y + 110}" r="6" fill="#fff" stroke="#000" stroke-width="2"/>'
    ]
    kinds = [("course-span-no", "j &lt; i: ends before it starts")]
    if longest < n:
        kinds.append(("course-span-long", f"over the cap of {counted(longest, 'token')}"))
    notes = [
        (0, 44, number(ends[0])),
        (0, 72, "rows: where the span starts (i)"),
        (0, 90, "columns: where it ends (j)"),
        (26, 114, "best possible span"),
        *((26, 141 + 26 * k, said) for k, (_, said) in enumerate(kinds)),
        (0, 208, f"{left_out} more tokens are not drawn" if left_out else ""),
    ]
    ink = ' fill="#444"'
    parts += [text_at(x + across, y + down, said, 12, "start", ink) for across, down, said in notes]
    parts.append(text_at(x + 150, y + 44, number(ends[1]), 12, "end", ink))
    parts += [
        f'<rect x="{x}" y="{y + 128 + 26 * k}" width="18" height="18" fill="url(#{fill})" '
        'stroke="#1a1a1a"/>'
        for k, (fill, _) in enumerate(kinds)
    ]
    return "".join(parts)


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
    import ipywidgets as w

    row = (tokens, start_logits, end_logits, allowed)
    found = scored_row(*row, longest)
    margin = found.best(len(tokens))[0].score - found.null.score
    edge = max(4.0, float(round(abs(margin)) + 2))
    most = min(MOST_IN_TABLE, int(found.allowed.sum()))
    longest = min(longest, most)
    if abs(threshold) > edge:
        raise ValueError(
            f"threshold={threshold!r} was given; expected −{edge:g} to {edge:g}, which holds every "
            "margin of this question."
        )
    controls = {
        "longest": w.IntSlider(value=longest, min=1, max=most, description="longest span (tokens)"),
        "threshold": w.FloatSlider(
            value=threshold, min=-edge, max=edge, step=0.25, description="τ: null threshold"
        ),
    }

    def draw(longest: int, threshold: float) -> str:
        return span_table(*row, longest=longest, threshold=threshold, as_image=False).html

    return playground(draw, controls, span_table(*row, longest=longest, threshold=threshold))
