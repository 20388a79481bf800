"""Exercise 07.7: does the text make a difference? B texts of T tokens, vectors of width H."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def likeness(vectors: Tensor, attention_mask: Tensor) -> float:
    """The mean cosine of the vectors that two texts have at one position, over all pairs."""
    real = attention_mask.bool()
    units = vectors / vectors.norm(dim=-1, keepdim=True)
    total, pairs = 0.0, 0
    for t in range(vectors.shape[1]):
        here = units[real[:, t], t]  # (texts that have this position, H)
        cosines = here @ here.T
        count = len(here) * (len(here) - 1)
        total, pairs = total + float(cosines.sum()) - len(here), pairs + count
    return total / pairs


# ---------------------------------------------------------------- cases


def case(draw: Draw, lengths: Sequence[int], width: int = 6, common: float = 0.0) -> Case:
    """lengths: real tokens of each text; common: how much of each vector all texts share."""
    B, T = len(lengths), max(lengths)
    shared = common * draw.normal(1, T, width)
    vectors = (shared + draw.normal(B, T, width)) * (0.2 + draw.normal(B, T, 1).abs())
    mask = (torch.arange(T) < torch.tensor(lengths)[:, None]).long()
    return vectors, mask


def collapsed(draw: Draw) -> list[Case]:
    """All texts alike, but for the length of their vectors."""
    vectors, mask = draw.normal(1, 7, 5), torch.ones(4, 7, dtype=torch.long)
    return [(vectors * (0.5 + draw.normal(4, 1, 1).abs()), mask)]


UNITS, COUNT = "vectors / vectors.norm(dim=-1, keepdim=True)", "len(here) * (len(here) - 1)"
LIKENESS = Exercise(
    **written("07.7"),
    solution=likeness,
    returns=Number("likeness"),
    see="course_lib.train.watch.likeness (the same without a loop over positions)",
    stages=(
        Stage("two texts of one token", each(case, ((1, 1),), ((1, 1),))),
        Stage("texts of one length", each(case, ((4, 4, 4),), ((6, 6),))),
        Stage("texts of different lengths", each(case, ((5, 3, 2),), ((2, 6, 4, 4),))),
        Stage("texts that share much", each(case, ((5, 5, 4), 6, 3.0))),
        Stage("a collapsed encoder", collapsed),
    ),
    mistakes=(
        Edit(UNITS, "vectors", "These are inner products; a cosine divides by the lengths of both "
             "vectors. A collapsed encoder may still give longer vectors for some texts."),
        Edit("- len(here), pairs", ", pairs", "You also compare each vector with itself, where the "
             "cosine is always 1. Leave these pairs out.", more=((COUNT, "len(here) ** 2"),)),
        Edit("here = units[real[:, t], t]", "here = units[:, t]",
             "You compare padding, too. Use only texts that have a real token at the position."),
        Edit("- len(here), pairs", ", pairs", "You add the pairs of a vector with itself, though "
             "you do not count them. Leave them out of both."),
        Edit("return total / pairs", "return total / 2 / pairs",
             "Each pair occurs twice in the matrix of cosines, as (a, b) and (b, a): halve both "
             "the sum and the count, or neither."),
        Edit("return total / pairs", "return total", "This is the sum over the pairs; return their "
             "mean."),
    ),
)  # fmt: skip
