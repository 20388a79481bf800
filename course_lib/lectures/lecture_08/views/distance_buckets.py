"""From a distance to a row of DeBERTa's table: cut off, or in buckets that widen; δ pair by pair.

T tokens, k half the rows of the table. A distance is i − j: the query token's position minus the
key token's, both counted from 0 (He et al. 2020, equation 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from course_lib.teaching.page import Html, Live, card, paragraphs, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, cividis

FIRST, SECOND = "first", "second"  # generations
GENERATIONS = {FIRST: "first: distances are cut off", SECOND: "second: buckets that widen"}
SPANS = (4, 8, 16, 32, 64, 128, 256, 512)
FURTHEST = (8, 16, 32, 64, 128, 256, 512, 1_024)
TOKENS = (8, 16, 32, 64, 128, 256, 512, 600)
MOST_TOKENS, MOST_IN_TABLES = TOKENS[-1], 10
WIDE, LEFT, TOP, ACROSS, HIGH = 740, 122, 30, 600, 250  # pixels

_FILLS = (
    '<defs><pattern id="course-widen" width="8" height="8" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="8" height="8" fill="#E69F00"/>'
    '<rect width="3" height="8" fill="#fff"/></pattern>'
    '<pattern id="course-share" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect width="6" height="6" fill="#D55E00"/><circle cx="3" cy="3" r="1.7" fill="#fff"/>'
    "</pattern></defs>"
)
LOOKS = (f'fill="{BLUE}"', 'fill="url(#course-widen)"', 'fill="url(#course-share)"')


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
        low, high = (1 - self.span, self.span - 2) if self.furthest is None else (-half, half)
        return max(low, -self.most), min(high, self.most)

    @property
    def shared(self) -> tuple[int | None, int | None]:
        """The distances from which on all have the first row (downwards), the last (upwards)."""
        last = 2 * self.span - 1
        low = max((d for d in range(-self.most, 0) if self.row(d) == 0), default=None)
        high = min((d for d in range(1, self.most + 1) if self.row(d) == last), default=None)
        return low, high

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
            f"{2 * span:,}: else there are more rows than distances. Move one of the two."
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
    import ipywidgets as w

    _check_offered(generation=generation, span=span, furthest=furthest, tokens=tokens)

    def steps(values: tuple[int, ...], value: int, said: str) -> Any:
        options = [(f"{number:,}", number) for number in values]
        return w.SelectionSlider(options=options, value=value, description=said)

    options = [(said, name) for name, said in GENERATIONS.items()]
    chosen = _first_look(tokens)
    controls = {
        "generation": w.Dropdown(options=options, value=generation, description="generation"),
        "span": steps(SPANS, span, "k: half the rows"),
        "furthest": steps(FURTHEST, furthest, "furthest distance"),
        "tokens": steps(TOKENS, tokens, "T: tokens of the text"),
        "distance": w.IntSlider(
            value=chosen, min=1 - tokens, max=tokens - 1, description="distance i − j"
        ),
    }

    def follow(change: Any) -> None:
        controls["furthest"].disabled = controls["generation"].value == FIRST
        most = controls["tokens"].value - 1
        controls["distance"].max, controls["distance"].min = most, -most

    for name in ("generation", "tokens"):
        controls[name].observe(follow, names="value")
    follow(None)

    def draw(generation: str, span: int, furthest: int, tokens: int, distance: int) -> str:
        found = distance_rows(tokens, span, furthest if generation == SECOND else None)
        return bucket_picture(found, distance).html

    start = distance_rows(tokens, span, furthest if generation == SECOND else None)
    return playground(draw, controls, bucket_picture(start, chosen, as_image=True))


def _first_look(tokens: int) -> int:
    """A third of the longest distance."""
    return (tokens - 1) // 3


def _check_offered(**chosen: Any) -> None:
    offers = {"generation": GENERATIONS, "span": SPANS, "furthest": FURTHEST, "tokens": TOKENS}
    for name, value in chosen.items():
        if value not in offers[name]:
            listed = ", ".join(map(str, offers[name]))
            raise ValueError(f"{name}={value!r} was given; expected one of {listed}.")


def bucket_picture(found: DistanceRows, distance: int, *, as_image: bool = False) -> Html:
    """Rows against distances as a staircase; a strip below says how many distances share a row.

    distance: the chosen one; beyond the text, its ends. as_image: for a page without a kernel.
    """
    distance = min(max(distance, -found.most), found.most)
    said = _bucket_words(found, distance)
    label = " ".join(said)
    content = _FILLS + _axes(found) + _zones(found) + _staircase(found) + _mark(found, distance)
    drawing = svg_drawing(WIDE, TOP + HIGH + 72, content, label)
    drawing = svg_image(drawing, label) if as_image else drawing
    return Html(card(drawing + _key() + paragraphs(said), "distance-buckets", 780), "\n".join(said))


def _bucket_words(found: DistanceRows, distance: int) -> list[str]:
    """The chosen distance, then the rule with its numbers."""
    k, (own_low, own_high), (low, high) = found.span, found.own, found.shared
    row, (first, last) = found.row(distance), found.sharing(distance)
    where = f"{abs(distance)} position{'s' * (abs(distance) != 1)}"
    before = f"the key stands {where} before" if distance > 0 else (
        f"the key stands {where} after" if distance else "a token and"
    )  # fmt: skip
    whose = " the query" if distance else " itself"
    alone = first == last
    others = "no other distance" if alone else f"all distances from {_n(first)} to {_n(last)}"
    one = f"Distance {_n(distance)} ({before}{whose}) has row {row:,}; {others} of this text "
    one += "has it." if alone else "have it."
    kind = "First generation" if found.furthest is None else "Second generation"
    sizes = "" if found.furthest is None else f", furthest distance {found.furthest:,}"
    ends = [f"from {_n(high)} on all share row {2 * k - 1:,}"] if high is not None else []
    ends += [f"from {_n(low)} down all share row 0"] if low is not None else []
    widen = ["beyond, rows widen"] if found.furthest is not None and _widening(found) else []
    rule = "; ".join([f"distances from {_n(own_low)} to {_n(own_high)} have a row each", *widen,
                      *ends])  # fmt: skip
    return [
        one,
        f"{kind}, k = {k:,}{sizes}: the table has 2k = {2 * k:,} rows, 0 to {2 * k - 1:,}. "
        f"In a text of {found.most + 1:,} tokens {rule}. Its {len(found.rows):,} distances use "
        f"{len(set(found.rows)):,} rows.",
    ]


def _n(value: int) -> str:
    return f"{value:,}".replace("-", "−")


def _widening(found: DistanceRows) -> list[tuple[int, int]]:
    """The stretches of distances, first and last, whose rows widen."""
    (own_low, own_high), (low, high) = found.own, found.shared
    left = (-found.most if low is None else low + 1, own_low - 1)
    right = (own_high + 1, found.most if high is None else high - 1)
    return [(a, b) for a, b in (left, right) if a <= b]


# ---------------------------------------------------------------- the chart, drawn


def _x(found: DistanceRows, distance: float) -> float:
    """Pixels; half a distance of room at both ends."""
    return LEFT + ACROSS * (distance + found.most + 0.5) / len(found.rows)


def _y(found: DistanceRows, row: float) -> float:
    return TOP + HIGH * (1 - (row + 0.5) / (2 * found.span))


def _axes(found: DistanceRows) -> str:
    k, most, bottom = found.span, found.most, TOP + HIGH
    parts = [
        f'<path d="M{LEFT} {TOP}V{bottom}H{LEFT + ACROSS}" fill="none" stroke="#1a1a1a"/>'
        f'<text x="{LEFT}" y="16">row of the table</text>'
        f'<text x="{LEFT + ACROSS / 2}" y="{bottom + 64}" text-anchor="middle">'
        "distance i − j</text>"
    ]
    for row, said in ((0, "0"), (k, f"k = {k:,}"), (2 * k - 1, f"2k − 1 = {2 * k - 1:,}")):
        y = _y(found, row)
        parts.append(
            f'<path d="M{LEFT - 5} {y:.1f}H{LEFT}" stroke="#1a1a1a"/>'
            f'<text x="{LEFT - 9}" y="{y + 4:.1f}" text-anchor="end">{said}</text>'
        )
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200) if most <= 4 * step)
    for distance in range(-(most // step) * step, most + 1, step):
        x = _x(found, distance)
        parts.append(
            f'<path d="M{x:.1f} {TOP}V{bottom + 24}" stroke="#e4e4e4"/>'
            f'<text x="{x:.1f}" y="{bottom + 42}" text-anchor="middle">{_n(distance)}</text>'
        )
    return "".join(parts)


def _zones(found: DistanceRows) -> str:
    """The strip below the axis: one row each, rows that widen, one row for all."""
    low, high = found.shared
    stretches = [(*found.own, 0), *((a, b, 1) for a, b in _widening(found))]
    stretches += [(-found.most, low, 2)] if low is not None else []
    stretches += [(high, found.most, 2)] if high is not None else []
    parts = []
    for first, last, look in stretches:
        a, b = _x(found, first - 0.5), _x(found, last + 0.5)
        parts.append(
            f'<rect class="zone{look}" x="{a:.1f}" y="{TOP + HIGH + 6}" width="{b - a:.1f}" '
            f'height="14" {LOOKS[look]} stroke="#1a1a1a" stroke-width="0.7"/>'
        )
    return "".join(parts)


def _staircase(found: DistanceRows) -> str:
    """The rows as one line; in a short text a dot at every distance."""
    path, before = "", None
    for distance, row in enumerate(found.rows, start=-found.most):
        if row != before:
            x, y = _x(found, distance - 0.5), _y(found, row)
            path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
        before = row
    path += f"H{_x(found, found.most + 0.5):.1f}"
    line = f'<path class="rows" d="{path}" fill="none" stroke="{BLUE}" stroke-width="2"/>'
    if found.most >= 32:
        return line
    return line + "".join(
        f'<circle cx="{_x(found, distance):.1f}" cy="{_y(found, row):.1f}" r="3" fill="{BLUE}"/>'
        for distance, row in enumerate(found.rows, start=-found.most)
    )


def _mark(found: DistanceRows, distance: int) -> str:
    """The chosen distance: lines to both axes, a ring, and its row in words."""
    row = found.row(distance)
    x, y = _x(found, distance), _y(found, row)
    right = x < LEFT + 0.6 * ACROSS
    at, anchor = (x + 12, "start") if right else (x - 12, "end")
    below = y + 20 if right else y - 10
    return (
        f'<path d="M{LEFT} {y:.1f}H{x:.1f}V{TOP + HIGH}" fill="none" stroke="#1a1a1a" '
        'stroke-dasharray="3 3"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="#fff" stroke="#1a1a1a" stroke-width="2.5"/>'
        f'<text x="{at:.1f}" y="{below:.1f}" text-anchor="{anchor}" font-weight="600" '
        f'stroke="#fff" stroke-width="4" paint-order="stroke">distance {_n(distance)}: row {row:,}'
        "</text>"
    )


def _key() -> str:
    """The three patterns of the strip with their meaning."""
    said = ("a row for each distance", "rows widen: several distances share one",
            "all that are further share one")  # fmt: skip
    parts, x = [_FILLS], 4
    for look, words in zip(LOOKS, said, strict=True):
        parts.append(
            f'<rect x="{x}" y="4" width="30" height="13" {look} stroke="#1a1a1a" '
            f'stroke-width="0.7"/><text x="{x + 38}" y="15" font-size="12" fill="#444">{words}'
            "</text>"
        )
        x += 62 + round(6.2 * len(words))
    drawing = svg_drawing(WIDE, 22, "".join(parts), "what the strip below the axis says")
    return svg_image(drawing, "the strip: " + "; ".join(said))


# ---------------------------------------------------------------- δ, pair by pair


def delta_tables(tokens: int = 6, span: int = 2) -> Live:
    """δ(i, j) and δ(j, i) for every pair of a short text, side by side, one pair framed in both.

    tokens: 2 to 10; span: k, 1 to tokens. Controls: i, j (positions from 0), span.
    Raises ValueError for other sizes.
    """
    import ipywidgets as w

    i, j = min(1, tokens - 1), max(tokens - 2, 0)
    static = delta_picture(tokens, span, i, j, as_image=True)
    controls = {
        "i": w.IntSlider(value=i, min=0, max=tokens - 1, description="i: the query token"),
        "j": w.IntSlider(value=j, min=0, max=tokens - 1, description="j: the key token"),
        "span": w.IntSlider(value=span, min=1, max=tokens, description="k: half the rows"),
    }

    def draw(i: int, j: int, span: int) -> str:
        return delta_picture(tokens, span, i, j).html

    return playground(draw, controls, static)


def delta_picture(
    tokens: int = 6, span: int = 2, i: int = 1, j: int = 4, *, as_image: bool = False
) -> Html:
    """Both tables of the first generation, (T, T), and what each term looks up for one pair.

    as_image: for a page without a kernel. Raises ValueError as delta_tables does, and for a
    position outside the text.
    """
    drawing = delta_drawing(tokens, span, i, j)
    table = _delta(tokens, span)
    said = _delta_words(table, span, i, j)
    label = " ".join(said)
    drawing = svg_image(drawing, label) if as_image else drawing
    lines = []
    for name, values in (("δ(i, j)", table), ("δ(j, i)", zip(*table, strict=True))):
        lines.append(f"{name}, a line a query token i:")
        lines += [" ".join(f"{value:2}" for value in row) for row in values]
    text = "\n".join(lines)
    return Html(card(drawing + paragraphs(said), "delta-tables", 780), f"{text}\n{label}")


def delta_drawing(tokens: int, span: int, i: int, j: int) -> str:
    """Both tables alone, as an SVG. Raises ValueError as delta_picture does."""
    if not (2 <= tokens <= MOST_IN_TABLES and 1 <= span <= tokens):
        raise ValueError(
            f"tokens={tokens!r} and span={span!r} were given; expected 2 to {MOST_IN_TABLES} "
            "tokens, so that every number can be read, and a span from 1 to as many."
        )
    if not (0 <= i < tokens and 0 <= j < tokens):
        raise ValueError(f"i={i!r} and j={j!r} were given; expected positions 0 to {tokens - 1}.")
    table = _delta(tokens, span)
    turned = [list(column) for column in zip(*table, strict=True)]
    cell = min(38, 300 // tokens)
    wide = cell * tokens
    tables = _delta_table("δ(i, j)", table, 70, cell, span, i, j)
    tables += _delta_table("δ(j, i)", turned, 170 + wide, cell, span, i, j)
    label = " ".join(_delta_words(table, span, i, j))
    return svg_drawing(2 * wide + 200, 64 + wide, tables, label)


def _delta(tokens: int, span: int) -> list[list[int]]:
    """δ(i, j) of every pair, (T, T)."""
    from course_lib.kernels.positions import position_rows, row_table

    return row_table(position_rows(tokens, span)).tolist()  # type: ignore[no-any-return]


def _delta_words(table: list[list[int]], span: int, i: int, j: int) -> list[str]:
    """What the terms look up for a pair, and how many rows there are."""
    here, mirrored = table[i][j], table[j][i]
    same = "the same row" if here == mirrored else f"row δ({j}, {i}) = {mirrored}"
    return [
        f"Token {i} is the query, token {j} the key; their distance is {i} − {j} = {_n(i - j)}.",
        f"Content-to-position: the query of token {i} meets row δ({i}, {j}) = {here} of the "
        "position keys.",
        f"Position-to-content: the key of token {j} meets, as the paper writes it (equation 4), "
        f"{same} of the position queries; the released code takes row δ({i}, {j}) = {here} in "
        "both.",
        f"The table has 2k = {2 * span} rows, 0 to {2 * span - 1}, not 2k + 1: distances up to "
        f"{_n(-span)} have row 0, from {_n(span - 1)} on they have row {2 * span - 1}.",
    ]


def _delta_table(
    name: str, values: list[list[int]], x: int, cell: int, span: int, i: int, j: int
) -> str:
    """One table: numbers on their colours, the pair (i, j) framed twice."""
    y, size = 52, len(values) * cell
    parts = [
        f'<text x="{x}" y="14" font-weight="700" font-size="15">{name}</text>'
        f'<text x="{x + size / 2}" y="30" text-anchor="middle" font-size="12" fill="#444">'
        "j: key</text>"
        f'<text transform="translate({x - 30},{y + size / 2}) rotate(-90)" text-anchor="middle" '
        f'font-size="12" fill="#444">i: query</text>'
    ]
    for n in range(len(values)):
        bold = [' font-weight="700"' if n == position else "" for position in (j, i)]
        parts.append(
            f'<text x="{x + cell * (n + 0.5)}" y="{y - 6}" text-anchor="middle"{bold[0]}>{n}'
            f'</text><text x="{x - 8}" y="{y + cell * (n + 0.5) + 5}" text-anchor="end"{bold[1]}>'
            f"{n}</text>"
        )
    for a, row in enumerate(values):
        for b, value in enumerate(row):
            ground = cividis(value / (2 * span - 1))
            parts.append(
                f'<rect x="{x + cell * b}" y="{y + cell * a}" width="{cell - 1}" '
                f'height="{cell - 1}" fill="rgb{ground}"/>'
                f'<text x="{x + cell * (b + 0.5)}" y="{y + cell * (a + 0.5) + 5}" '
                f'text-anchor="middle" fill="{ink_on(ground)}">{value}</text>'
            )
    at = f'x="{x + cell * j - 0.5}" y="{y + cell * i - 0.5}" width="{cell}" height="{cell}"'
    parts.append(
        f'<rect {at} fill="none" stroke="#fff" stroke-width="8"/>'
        f'<rect class="pair" {at} fill="none" stroke="#000" stroke-width="3"/>'
    )
    return "".join(parts)


def ink_on(ground: tuple[int, int, int]) -> str:
    """Black or white, whichever stands out more."""
    parts = [((c / 255 + 0.055) / 1.055) ** 2.4 for c in ground]
    light = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    return "#000" if light > 0.18 else "#fff"
