"""From a distance to a row of DeBERTa's table: cut off, or in buckets that widen; δ pair by pair.

T tokens, k half the rows of the table. A distance is i − j: the query token's position minus the
key token's, both counted from 0 (He et al. 2020, equation 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from course_lib.teaching.page import Html, Live, check_one_of
from course_lib.teaching.playgrounds import choice, playground, slider, steps
from course_lib.teaching.style import BLUE, INK, ORANGE, VERMILION, dotted, hatch
from course_lib.teaching.svg import (
    Scale,
    area,
    cell_names,
    cells,
    dot,
    key,
    line,
    on_cividis,
    picture,
    with_sign,
    words,
    x_axis,
    y_axis,
)

FIRST, SECOND = "first", "second"  # generations
GENERATIONS = {FIRST: "first: distances are cut off", SECOND: "second: buckets that widen"}
SPANS = (4, 8, 16, 32, 64, 128, 256, 512)
FURTHEST = (8, 16, 32, 64, 128, 256, 512, 1_024)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 600)
MOST_TOKENS, MOST_IN_TABLES = TOKENS[-1], 10
WIDTH, LEFT, TOP, LENGTH, HEIGHT = 740, 122, 30, 600, 250  # pixels
STRIP = (  # below the axis: fill, and what it means
    (BLUE, "a row for each distance"),
    (hatch("#fff", ORANGE, 8), "rows widen: several distances share one"),
    (dotted("#fff", VERMILION, 6, 1.7), "all that are further share one"),
)


@dataclass(frozen=True)
class DistanceRows:
    """The row of every distance in a text of T tokens, and where the rule changes."""

    rows: list[int]  # 2T − 1, of the distances −(T − 1) to T − 1
    span: int  # k
    furthest: int | None  # None: the first generation

    @property
    def most(self) -> int:
        """The longest distance, T − 1."""
        return len(self.rows) // 2

    @property
    def own(self) -> tuple[int, int]:
        """The first and the last distance that the rule gives a row of its own."""
        half = self.span // 2
        lower, upper = (1 - self.span, self.span - 2) if self.furthest is None else (-half, half)
        return max(lower, -self.most), min(upper, self.most)

    @property
    def shared(self) -> tuple[int | None, int | None]:
        """The distances from which on all have the first row (downwards), the last (upwards)."""
        last = 2 * self.span - 1
        lower = max((d for d in range(-self.most, 0) if self.row(d) == 0), default=None)
        upper = min((d for d in range(1, self.most + 1) if self.row(d) == last), default=None)
        return lower, upper

    def row(self, distance: int) -> int:
        """The row of one distance."""
        return self.rows[distance + self.most]

    def sharing(self, distance: int) -> tuple[int, int]:
        """The first and the last distance of this text that have the same row."""
        here = [d for d in range(-self.most, self.most + 1) if self.row(d) == self.row(distance)]
        return here[0], here[-1]


def distance_rows(tokens: int, span: int, furthest: int | None = None) -> DistanceRows:
    """The rows of a text of T tokens (2 to 600) in a table of 2k rows; k = span, from 4 on.

    furthest: of the second generation; None: the first. Raises ValueError for other sizes, and for
    a furthest distance below 2k: its buckets would not widen, they would skip rows.
    """
    from course_lib.kernels.positions import position_rows

    if not 2 <= tokens <= MOST_TOKENS or span < SPANS[0]:
        raise ValueError(
            f"tokens={tokens!r} and span={span!r} were given; expected 2 to {MOST_TOKENS} tokens "
            f"and a span of at least {SPANS[0]}."
        )
    if furthest is not None and furthest < 2 * span:
        raise ValueError(
            f"furthest = {furthest:,} was given with k = {span:,}; expected at least 2k = "
            f"{2 * span:,}: with fewer there are more rows than distances. Move one of the two."
        )
    return DistanceRows(position_rows(tokens, span, furthest).tolist(), span, furthest)


# ---------------------------------------------------------------- a distance and its row


def bucket_chart(
    generation: str = SECOND, span: int = 256, furthest: int = 512, tokens: int = MOST_TOKENS
) -> Live:
    """The row of the table against the distance, with sliders for the sizes and for one distance.

    The defaults are deberta-v3's. Controls: generation ("first": distances are cut off, "second":
    buckets that widen), span (k), furthest (the second's), tokens (T), distance (i − j).
    Raises ValueError for a generation or a size that no control offers.
    """
    check_one_of(GENERATIONS, generation=generation)
    for name, value, options in (
        ("span", span, SPANS), ("furthest", furthest, FURTHEST), ("tokens", tokens, TOKENS),
    ):  # fmt: skip
        check_one_of(options, **{name: value})
    generations = [(label, name) for name, label in GENERATIONS.items()]
    controls = {
        "generation": choice("generation", generation, generations),
        "span": steps("k: half the rows", span, SPANS),
        "furthest": steps("furthest distance", furthest, FURTHEST),
        "tokens": steps("T: tokens of the text", tokens, TOKENS),
        "distance": slider("distance i − j", (tokens - 1) // 3, 1 - tokens, tokens - 1),
    }

    def follow(_: Any = None) -> None:
        controls["furthest"].disabled = controls["generation"].value == FIRST
        most = controls["tokens"].value - 1
        controls["distance"].max, controls["distance"].min = most, -most

    for name in ("generation", "tokens"):
        controls[name].observe(follow, names="value")
    follow()

    def draw(generation: str, span: int, furthest: int, tokens: int, distance: int) -> Html:
        rows = distance_rows(tokens, span, furthest if generation == SECOND else None)
        return bucket_picture(rows, distance)

    return playground(draw, controls)


def bucket_picture(rows: DistanceRows, distance: int) -> Html:
    """Rows against distances as a staircase; a strip below says how many distances share a row.

    distance: the chosen one; beyond the text, its ends.
    """
    distance = min(max(distance, -rows.most), rows.most)
    x = Scale(-rows.most - 0.5, rows.most + 0.5, LEFT, LEFT + LENGTH)
    y = Scale(-0.5, 2 * rows.span - 0.5, TOP + HEIGHT, TOP)
    parts = [*_axes(rows, x, y), *_zones(rows, x), *_staircase(rows, x, y)]
    parts += _mark(rows, distance, x, y)
    swatches = [(area(0, 0, 30, 13, fill, ink=INK, wide=0.7), label) for fill, label in STRIP]
    below = key(swatches, "the strip: " + "; ".join(label for _, label in STRIP))
    sentences = _bucket_words(rows, distance)
    return picture("distance-buckets", WIDTH, TOP + HEIGHT + 72, parts, sentences, below=below)


def _bucket_words(rows: DistanceRows, distance: int) -> list[str]:
    """The chosen distance, then the rule with its numbers."""
    k, (own_low, own_high), (lower, upper) = rows.span, rows.own, rows.shared
    row, (first, last) = rows.row(distance), rows.sharing(distance)
    where = f"{abs(distance)} position{'s' * (abs(distance) != 1)}"
    before = f"the key stands {where} before" if distance > 0 else (
        f"the key stands {where} after" if distance else "a token and"
    )  # fmt: skip
    whose = " the query" if distance else " itself"
    alone = first == last
    others = (
        "no other distance"
        if alone
        else f"all distances from {with_sign(first)} to {with_sign(last)}"
    )
    one = (
        f"Distance {with_sign(distance)} ({before}{whose}) has row {row:,}; {others} of this text "
    )
    one += "has it." if alone else "have it."
    kind = "First generation" if rows.furthest is None else "Second generation"
    sizes = "" if rows.furthest is None else f", furthest distance {rows.furthest:,}"
    ends = [f"from {with_sign(upper)} on all share row {2 * k - 1:,}"] if upper is not None else []
    ends += [f"from {with_sign(lower)} down all share row 0"] if lower is not None else []
    widen = ["beyond, rows widen"] if rows.furthest is not None and _widening(rows) else []
    each = f"distances from {with_sign(own_low)} to {with_sign(own_high)} have a row each"
    rule = "; ".join([each, *widen, *ends])
    return [
        one,
        f"{kind}, k = {k:,}{sizes}: the table has 2k = {2 * k:,} rows, 0 to {2 * k - 1:,}. "
        f"In a text of {rows.most + 1:,} tokens {rule}. Its {len(rows.rows):,} distances use "
        f"{len(set(rows.rows)):,} rows.",
    ]


def _widening(rows: DistanceRows) -> list[tuple[int, int]]:
    """The stretches of distances, first and last, whose rows widen."""
    (own_low, own_high), (lower, upper) = rows.own, rows.shared
    left = (-rows.most if lower is None else lower + 1, own_low - 1)
    right = (own_high + 1, rows.most if upper is None else upper - 1)
    return [(a, b) for a, b in (left, right) if a <= b]


# ---------------------------------------------------------------- the chart, drawn


def _axes(rows: DistanceRows, x: Scale, y: Scale) -> list[str]:
    k, most = rows.span, rows.most
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200) if most <= 4 * step)
    marked = range(-(most // step) * step, most + 1, step)
    row_labels = {0: "0", k: f"k = {k:,}", 2 * k - 1: f"2k − 1 = {2 * k - 1:,}"}
    bottom = TOP + HEIGHT
    return [
        words(LEFT, 16, "row of the table", 13, "start"),
        x_axis(x, bottom + 22, {d: with_sign(d) for d in marked}, "distance i − j", top=TOP,
               base=bottom),
        y_axis(y, LEFT, row_labels),
    ]  # fmt: skip


def _zones(rows: DistanceRows, x: Scale) -> list[str]:
    """The strip below the axis: one row each, rows that widen, one row for all."""
    lower, upper = rows.shared
    stretches = [(*rows.own, 0), *((a, b, 1) for a, b in _widening(rows))]
    stretches += [(-rows.most, lower, 2)] if lower is not None else []
    stretches += [(upper, rows.most, 2)] if upper is not None else []
    return [
        area(x(first - 0.5), TOP + HEIGHT + 6, x(last + 0.5) - x(first - 0.5), 14, STRIP[kind][0],
             ink=INK, wide=0.7, kind=f"zone{kind}")
        for first, last, kind in stretches
    ]  # fmt: skip


def _staircase(rows: DistanceRows, x: Scale, y: Scale) -> list[str]:
    """The rows as one line; in a short text a dot at every distance."""
    numbered = list(enumerate(rows.rows, start=-rows.most))
    corners = []
    for n, (distance, row) in enumerate(numbered):
        if n and row != numbered[n - 1][1]:
            corners += [x(distance - 0.5), y(numbered[n - 1][1]), x(distance - 0.5), y(row)]
    first, last = (x(-rows.most - 0.5), y(numbered[0][1])), (x(rows.most + 0.5), y(numbered[-1][1]))
    stairs = line(*first, *corners, *last, ink=BLUE, wide=2, kind="rows")
    dots = [dot(x(d), y(row), 3, BLUE) for d, row in numbered] if rows.most < 32 else []
    return [stairs, *dots]


def _mark(rows: DistanceRows, distance: int, x: Scale, y: Scale) -> list[str]:
    """The chosen distance: lines to both axes, a ring, and its row in words."""
    row = rows.row(distance)
    right = x(distance) < LEFT + 0.6 * LENGTH
    text_x, side = (x(distance) + 12, "start") if right else (x(distance) - 12, "end")
    ground = ' stroke="#fff" stroke-width="4" paint-order="stroke"'
    return [
        line(LEFT, y(row), x(distance), y(row), x(distance), TOP + HEIGHT, dash="3 3"),
        dot(x(distance), y(row), 6, "#fff", ink=INK, wide=2.5),
        words(text_x, y(row) + (20 if right else -10),
              f"distance {with_sign(distance)}: row {row:,}", 13, side, ground, bold=True),
    ]  # fmt: skip


# ---------------------------------------------------------------- δ, pair by pair


def delta_tables(tokens: int = 6, span: int = 2) -> Live:
    """δ(i, j) and δ(j, i) for every pair of a short text, side by side, one pair framed in both.

    tokens: 2 to 10; span: k, 1 to tokens. Controls: i, j (positions from 0), span.
    Raises ValueError for other sizes.
    """
    i, j = min(1, tokens - 1), max(tokens - 2, 0)
    delta_picture(tokens, span, i, j)  # sizes that no slider could offer are refused here
    controls = {
        "i": slider("i: the query token", i, 0, tokens - 1),
        "j": slider("j: the key token", j, 0, tokens - 1),
        "span": slider("k: half the rows", span, 1, tokens),
    }
    return playground(partial(delta_picture, tokens), controls)


def delta_picture(tokens: int = 6, span: int = 2, i: int = 1, j: int = 4) -> Html:
    """Both tables of the first generation, (T, T), and what each term looks up for one pair.

    Raises ValueError as delta_tables does, and for a position outside the text.
    """
    if not (2 <= tokens <= MOST_IN_TABLES and 1 <= span <= tokens):
        raise ValueError(
            f"tokens={tokens!r} and span={span!r} were given; expected 2 to {MOST_IN_TABLES} "
            "tokens, so that every number can be read, and a span from 1 to as many."
        )
    if not (0 <= i < tokens and 0 <= j < tokens):
        raise ValueError(f"i={i!r} and j={j!r} were given; expected positions 0 to {tokens - 1}.")
    table = _delta(tokens, span)
    turned = [list(column) for column in zip(*table, strict=True)]
    sentences = _delta_words(table, span, i, j)
    cell = min(38, 300 // tokens)
    side, parts, lines = cell * tokens, [], []
    for x, name, values in ((70, "δ(i, j)", table), (170 + side, "δ(j, i)", turned)):
        parts += _delta_table(name, values, x, cell, span, i, j)
        lines.append(f"{name}, a line a query token i:")
        lines += [" ".join(f"{value:2}" for value in row) for row in values]
    text = "\n".join([*lines, " ".join(sentences)])
    return picture("delta-tables", 2 * side + 200, 64 + side, parts, sentences, text=text)


def _delta(tokens: int, span: int) -> list[list[int]]:
    """δ(i, j) of every pair, (T, T)."""
    from course_lib.kernels.positions import position_rows, row_table

    return row_table(position_rows(tokens, span)).tolist()  # type: ignore[no-any-return]


def _delta_words(table: list[list[int]], span: int, i: int, j: int) -> list[str]:
    """What the terms look up for a pair, and how many rows there are."""
    here, mirrored = table[i][j], table[j][i]
    same = "the same row" if here == mirrored else f"row δ({j}, {i}) = {mirrored}"
    return [
        f"Token {i} is the query, token {j} the key; their distance is {i} − {j} = "
        f"{with_sign(i - j)}.",
        f"Content-to-position: the query of token {i} meets row δ({i}, {j}) = {here} of the "
        "position keys.",
        f"Position-to-content: the key of token {j} meets, as the paper writes it (equation 4), "
        f"{same} of the position queries; the released code takes row δ({i}, {j}) = {here} in "
        "both.",
        f"The table has 2k = {2 * span} rows, 0 to {2 * span - 1}, not 2k + 1: distances up to "
        f"{with_sign(-span)} have row 0, from {with_sign(span - 1)} on they have row "
        f"{2 * span - 1}.",
    ]


def _delta_table(
    name: str, values: list[list[int]], x: int, cell: int, span: int, i: int, j: int
) -> list[str]:
    """One table: numbers on their colours, the pair (i, j) framed twice."""
    y, side, numbers = 52, len(values) * cell, [str(n) for n in range(len(values))]
    pair = (x + cell * j - 0.5, y + cell * i - 0.5, cell, cell, "none")
    return [
        words(x, 14, name, 15, "start", bold=True),
        words(x + side / 2, 30, "j: key", 12, ink="#444"),
        words(x - 30, y + side / 2, "i: query", 12, ink="#444", turn=-90),
        *cell_names(numbers, numbers, x, y, (cell, cell), bold=(i, j)),
        *cells(values, x, y, (cell, cell),
               lambda value, *_: on_cividis(value / (2 * span - 1), str(value), size=13)),
        area(*pair, ink="#fff", wide=8),
        area(*pair, ink="#000", wide=3, kind="pair"),
    ]  # fmt: skip
