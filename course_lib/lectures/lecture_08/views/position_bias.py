"""The product that DeBERTa leaves out, distance with distance, and what T5 keeps of it: one number
for each head and bucket of distances (Raffel et al. 2020, section 2.1).

A distance is i − j: the query token's position minus the key token's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from course_lib.teaching.page import Html
from course_lib.teaching.svg import cell_names, cells, on_cividis, picture, with_sign, words

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
    sentence = (
        "Content-to-position: two words at the same distance from their keys have different scores "
        "(compare the cells of a diagonal). Position-to-position: a diagonal holds one number, "
        "whatever the words. T5 learns these numbers themselves."
    )
    titles, maps = ("content-to-position", "position-to-position"), (by_content, by_distance)
    largest = max(float(one.abs().max()) for one in maps)
    side, parts, text = CELL * len(TOY), [], []
    for n, (title, values) in enumerate(zip(titles, maps, strict=True)):
        x, step = LEFT + n * (side + GAP), (CELL, CELL)
        parts += [
            words(x, 16, title, 15, "start", bold=True),
            *cell_names(TOY, TOY, x, TOP, step),
            *cells(values.tolist(), x, TOP, step, lambda v, *_: on_cividis(
                (v / largest + 1) / 2, with_sign(v, ".0f"), size=16
            )),
        ]  # fmt: skip
        text += [title, *(" ".join(f"{v:2.0f}" for v in row) for row in values.tolist())]
    width, height = LEFT + 2 * side + GAP + 12, TOP + side + 10
    return picture("bias-maps", width, height, parts, sentence, text="\n".join([*text, sentence]))


def position_maps() -> tuple[Tensor, Tensor]:
    """Content-to-position and position-to-position of the four words, each (T, T), unscaled."""
    import torch

    from course_lib.kernels.positions import position_rows, row_table

    rows = row_table(position_rows(len(TOY), SPAN))  # (T, T)
    query, key, position_query = (
        torch.tensor(x, dtype=torch.float32)
        for x in (TOY_QUERY, TOY_POSITION_KEY, TOY_POSITION_QUERY)
    )
    return (query @ key.T).gather(1, rows), (position_query * key).sum(-1)[rows]
