"""Exercise 16.7: attention whose heads share keys and values. B texts, T tokens, A heads of
queries, G of keys and values, D head size."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def grouped(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """The output (B, T, A, D): query (B, T, A, D), key and value (B, T, G, D), mask (B, T), 1 at
    real tokens; query heads 0 to A/G - 1 read head 0 of the keys, and so on."""
    shared_by = query.shape[2] // key.shape[2]
    key, value = (x.repeat_interleave(shared_by, dim=2) for x in (key, value))  # (B, T, A, D)
    scores = torch.einsum("bqad,bkad->baqk", query, key) / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(mask[:, None, None, :] == 0, -math.inf).softmax(dim=-1)
    return torch.einsum("baqk,bkad->bqad", weights, value)


# ---------------------------------------------------------------- cases


def case(draw: Draw, heads: int, groups: int, size: int, *lengths: int) -> Case:
    """Texts of these lengths, padded to the longest."""
    tokens = max(lengths)
    mask = (torch.arange(tokens) < torch.tensor(lengths)[:, None]).long()
    shape = len(lengths), tokens
    keys, values = (draw.normal(*shape, groups, size) for _ in range(2))
    return draw.normal(*shape, heads, size), keys, values, mask


def by_hand(draw: Draw) -> list[Case]:
    """One token: the output of every head is its group's value."""
    return [case(draw, 4, 2, 2, 1), case(draw, 2, 1, 3, 1)]


REPEAT, SCALE = "x.repeat_interleave(shared_by, dim=2)", " / math.sqrt(query.shape[-1])"
HIDDEN = ".masked_fill(mask[:, None, None, :] == 0, -math.inf)"

GROUPED = Exercise(
    **written("16.7"),
    solution=grouped,
    returns=Numbers("output", shape="B T A D"),
    see="course_lib.family.eurobert.GroupedAttention",
    when_raised=(
        (r"must match the size|size of tensor|subscript|broadcast", "Queries have A heads, keys "
         "and values have G. Repeat each key and value head A / G times, so that they match."),
    ),
    stages=(
        Stage("one token, on paper", by_hand),
        Stage("a key head for each query head", each(case, (2, 2, 3, 5), (3, 3, 2, 4))),
        Stage("heads that share", each(case, (4, 2, 3, 5), (6, 3, 2, 4), (4, 1, 2, 6))),
        Stage("a padded batch", each(case, (4, 2, 3, 6, 3), (6, 2, 2, 2, 5, 4))),
    ),
    axes={"0": "the texts", "1": "the tokens", "2": "the heads", "-1": "the features"},
    mistakes=(
        Edit(REPEAT, "x.repeat(1, 1, shared_by, 1)", "Your key heads alternate: query head 1 reads "
             "key head 1. Neighbours must share: the first A / G query heads read key head 0, the "
             "next ones key head 1."),
        Edit(REPEAT, "x[:, :, :1].expand(-1, -1, query.shape[2], -1)", "All your heads read head 0 "
             "of the keys and values. Each group has a head of its own."),
        Edit(REPEAT, "x.mean(dim=2, keepdim=True).expand(-1, -1, query.shape[2], -1)", "You take "
             "the mean of all key heads. Keep them apart: each serves its own A / G query heads."),
        Edit(SCALE, "", "Your scores are not divided by the root of the head size D."),
        Edit(SCALE, " / math.sqrt(query.shape[2] * query.shape[-1])", "You divide by the root of "
             "the whole width. It is the root of one head's size, D."),
        Edit(SCALE, " / math.sqrt(shared_by)", "You divide by the root of A / G. It is the root of "
             "one head's size, D."),
        Edit(HIDDEN, "", "Your queries read padding, too. The mask hides those keys."),
        Edit(HIDDEN, ".masked_fill(mask[:, None, None, :] == 1, -1e9)", "Your mask is "
             "inverted: 1 is a real token, which is visible."),
        Edit(HIDDEN, ".masked_fill(mask[:, None, :, None] == 0, -1e9)", "You hide the padding's "
             "queries. Hide the padding's *keys*."),
        Edit("softmax(dim=-1)", "softmax(dim=-2)", "Your softmax runs over the queries. Each "
             "query's weights add up to one over the keys."),
        Edit("scores = torch", "query = query.flatten(0, 1).unflatten(0, query.shape[:2]).flip(2)\n"
             "    scores = torch", "Your query heads are in reverse order."),
    ),
)  # fmt: skip
