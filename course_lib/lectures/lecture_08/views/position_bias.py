"""The product that DeBERTa leaves out, distance with distance, and what T5 keeps of it: one number
for each head and bucket of distances (Raffel et al. 2020, section 2.1).

A distance is i − j: the query token's position minus the key token's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from course_lib.teaching.page import Html, card, paragraphs, svg_drawing, svg_image
from course_lib.teaching.style import cividis

from .distance_buckets import ink_on

if TYPE_CHECKING:
    from torch import Tensor

# Four words with heads of width 2, and a table of distances with k = 2, small enough to check.
TOY = ("the", "red", "boat", "sank")
TOY_QUERY, TOY_KEY = ((0, 1), (1, 0), (2, 1), (1, 2)), ((0, 1), (1, 1), (2, 0), (1, 0))
# Rows of the distances −2 and below, −1, 0, 1 and above.
TOY_POSITION_KEY = ((0, -1), (0, 1), (0, 0), (2, 0))
TOY_POSITION_QUERY = ((0, 0), (0, 2), (0, 0), (1, 0))
SPAN = 2
CELL, LEFT, TOP, GAP = 52, 64, 66, 110  # pixels


def t5_bucket(distance: int, buckets: int = 32, furthest: int = 128) -> int:
    """The bucket that T5's encoder puts a distance into, 0 to buckets − 1.

    Half of them for keys to the left and for the token itself, half for keys to the right. On each
    side half are exact; beyond, they widen by a constant factor, and from `furthest` on all share
    the last. Raises ValueError for less than 4 buckets and a furthest distance within the exact."""
    side = buckets // 2
    exact = side // 2
    if buckets < 4 or furthest <= exact:
        raise ValueError(
            f"buckets={buckets!r} and furthest={furthest!r} were given; expected at least 4 "
            "buckets and a furthest distance beyond the exact ones, such as 32 and 128."
        )
    size, first = abs(distance), side * (distance < 0)
    if size < exact:
        return first + size
    fraction = math.log(size / exact) / math.log(furthest / exact)
    return first + min(side - 1, exact + math.floor(round(fraction * (side - exact), 9)))


def bias_maps() -> Html:
    """Content-to-position beside position-to-position for the four words: a number a pair against a
    number a distance."""
    by_content, by_distance = position_maps()
    said = (
        "Content-to-position: two words at the same distance from their keys have different scores "
        "(compare the cells of a diagonal). Position-to-position: a diagonal holds one number, "
        "whatever the words. T5 learns these numbers themselves."
    )
    drawing = bias_drawing(said)
    grids = [
        "\n".join(" ".join(f"{value:2.0f}" for value in line) for line in one.tolist())
        for one in (by_content, by_distance)
    ]
    text = f"content-to-position\n{grids[0]}\nposition-to-position\n{grids[1]}\n{said}"
    return Html(card(svg_image(drawing, said) + paragraphs([said]), "bias-maps", 780), text)


def position_maps() -> tuple[Tensor, Tensor]:
    """Content-to-position and position-to-position of the four words, each (T, T), unscaled."""
    import torch

    from course_lib.kernels.positions import position_rows, row_table

    rows = row_table(position_rows(len(TOY), SPAN))  # (T, T)
    query, key, asked = (
        torch.tensor(x, dtype=torch.float32)
        for x in (TOY_QUERY, TOY_POSITION_KEY, TOY_POSITION_QUERY)
    )
    return (query @ key.T).gather(1, rows), (asked * key).sum(-1)[rows]


def bias_drawing(label: str) -> str:
    """Both maps as grids of numbers, on one scale of colours, as an SVG."""
    maps = position_maps()
    largest = max(float(one.abs().max()) for one in maps)
    wide = CELL * len(TOY)
    parts = [
        _grid(values, title, LEFT + n * (wide + GAP), largest)
        for n, (title, values) in enumerate(
            zip(("content-to-position", "position-to-position"), maps, strict=True)
        )
    ]
    return svg_drawing(LEFT + 2 * wide + GAP + 12, TOP + wide + 10, "".join(parts), label)


def _grid(values: Tensor, title: str, x: float, largest: float) -> str:
    parts = [f'<text x="{x}" y="16" font-weight="700" font-size="15">{title}</text>']
    for n, word in enumerate(TOY):
        at = CELL * (n + 0.5)
        parts.append(
            f'<text x="{x + at}" y="{TOP - 10}" text-anchor="middle">{word}</text>'
            f'<text x="{x - 8}" y="{TOP + at + 5}" text-anchor="end">{word}</text>'
        )
    for i, line in enumerate(values.tolist()):
        for j, value in enumerate(line):
            ground = cividis((value / largest + 1) / 2)
            parts.append(
                f'<rect x="{x + CELL * j}" y="{TOP + CELL * i}" width="{CELL - 1}" '
                f'height="{CELL - 1}" fill="rgb{ground}"/>'
                f'<text x="{x + CELL * (j + 0.5)}" y="{TOP + CELL * (i + 0.5) + 5}" '
                f'text-anchor="middle" font-size="16" fill="{ink_on(ground)}">'
                f"{value:.0f}</text>".replace(">-", ">−")
            )
    return "".join(parts)
