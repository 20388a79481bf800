"""Relative positions: from the distance of two tokens to a row of the position table (He et al.
2020, equation 3; the logarithmic buckets are those of the second generation's code).

T tokens, k half the rows of the table. A distance is i − j: query's position minus key's
position."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def log_bucket(distance: Tensor, buckets: int, furthest: int) -> Tensor:
    """Distances in buckets that widen: whole numbers -> whole numbers of the same shape.

    buckets: k. Up to k/2 away every distance has a bucket of its own; beyond, buckets widen by a
    constant factor, so that distance furthest − 1 falls into the last one, ±(k − 1) for an even k.
    The bucket of −d is minus that of d. Raises ValueError unless k ≥ 2 and furthest − 1 > k/2."""
    middle = buckets // 2
    if buckets < 2 or furthest - 1 <= middle:
        raise ValueError(
            f"buckets={buckets!r} and furthest={furthest!r} were given; expected at least 2 "
            "buckets and a furthest distance well beyond half of them, such as 256 and 512."
        )
    size = distance.abs().clamp(min=middle)  # what is nearer keeps its own bucket, below
    last = torch.log(torch.tensor((furthest - 1) / middle))  # rounded as the others are
    fraction = torch.log(size / middle) / last  # 0 at k/2, 1 at the last
    far = torch.ceil(fraction * (middle - 1)).long() + middle
    return torch.where(distance.abs() <= middle, distance, far * distance.sign())


def position_rows(
    tokens: int, span: int, furthest: int | None = None, cut_at_furthest: bool = False
) -> Tensor:
    """δ: which row of a table of 2k rows belongs to each distance in a text of T tokens.

    span: k. furthest: distances are first put into k logarithmic buckets, if given. Returns
    (2T − 1,): entry d + T − 1 is the row of distance d, from −(T − 1) to T − 1: distance (or
    bucket) plus k, cut at the first and last row, 0 and 2k − 1. Raises ValueError for a span or a
    text of less than one.

    cut_at_furthest: distances of `furthest` and more count as furthest − 1, so that the far end to
    the right keeps row 1 (of an even k): the authors' rule. Without it, as in transformers, buckets
    go on, and that end has row 0, which no text of up to `furthest` tokens looks up."""
    if tokens < 1 or span < 1:
        raise ValueError(
            f"tokens={tokens!r} and span={span!r} were given; expected whole numbers of at least 1."
        )
    distance = torch.arange(-(tokens - 1), tokens)  # (2T − 1,)
    if furthest is not None:
        if cut_at_furthest:
            distance = distance.clamp(1 - furthest, furthest - 1)
        distance = log_bucket(distance, span, furthest)
    return (distance + span).clamp(0, 2 * span - 1)


def row_table(rows: Tensor) -> Tensor:
    """The same written out for every pair: (2T − 1,) -> (T, T); (i, j) holds the row of i − j."""
    tokens = (rows.shape[0] + 1) // 2
    position = torch.arange(tokens, device=rows.device)
    return rows[position[:, None] - position[None, :] + tokens - 1]


def score_scale(head_size: int, *position_tables: Tensor | None) -> float:
    """sqrt(D · number of terms): a sum of n products of unit variance has variance n·D."""
    terms = 1 + sum(table is not None for table in position_tables)
    return math.sqrt(head_size * terms)
