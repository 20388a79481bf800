"""Exercise 01.1: positive PMI from a table of counts. V words, C contexts."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Numbers


def ppmi(counts: Tensor, smoothing: float) -> Tensor:
    """max(0, ln P(w, c) / (P(w) P(c))), the contexts' counts smoothed: (V, C) -> (V, C)."""
    of_pair = counts / counts.sum()
    of_word = counts.sum(1, keepdim=True) / counts.sum()  # (V, 1)
    powers = counts.sum(0, keepdim=True) ** smoothing  # (1, C)
    of_context = powers / powers.sum()
    ratio = of_pair / (of_word * of_context)
    return torch.where(counts > 0, ratio.log(), 0.0).clamp(min=0)


# ---------------------------------------------------------------- cases


def table(
    draw: Draw, V: int, C: int, smoothing: float = 1.0, zeros: int = 0, empty: bool = False
) -> Case:
    """zeros: pairs that were never counted; empty: a word and a context that never were."""
    often = draw.ids(1, 9, V, 1) * draw.ids(1, 9, 1, C)  # frequent words, frequent contexts
    counts = (often * draw.ids(1, 12, V, C)).double()
    counts.view(-1)[torch.randperm(V * C, generator=draw.torch)[:zeros]] = 0
    for row in range(V):  # every word was counted somewhere, and every context
        counts[row, row % C] += 1
    for column in range(C):
        counts[column % V, column] += 1
    if empty:
        counts[draw.integer(0, V - 1)] = 0
        counts[:, draw.integer(0, C - 1)] = 0
    return counts, smoothing


PAIR, WORD = "of_pair = counts / counts.sum()", "counts.sum(1, keepdim=True) / counts.sum()"
POWERS, CONTEXT = "counts.sum(0, keepdim=True) ** smoothing", "powers / powers.sum()"
RATIO = "of_pair / (of_word * of_context)"
RETURNED = "torch.where(counts > 0, ratio.log(), 0.0).clamp(min=0)"

COUNTING = Exercise(
    **written("01.1"),
    solution=ppmi,
    returns=Numbers("PPMI", unit="nats", shape="V C"),
    see="course_lib.text.static_vectors.positive_pmi does it for a sparse table",
    infinite="Not all of your result is finite: ln 0 is minus infinity, and 0 / 0 is NaN. "
    "Choose 0 where the count is 0, with torch.where.",
    when_raised=(
        (r"size of tensor|must match|broadcast",
         "Totals must keep their axis, to line up with the table: counts.sum(1, keepdim=True) is "
         "(V, 1), counts.sum(0, keepdim=True) is (1, C)."),
        (r"must be Tensor, not (float|int)|must be real number|only one element",
         "math.log takes one number; a tensor has .log()."),
        ("math domain error", "There is no logarithm of 0: choose 0 where the count is 0."),
    ),
    stages=(
        Stage("every pair was counted", each(table, (2, 3), (3, 4), (5, 3))),
        Stage("some pairs never were", each(table, (3, 4, 1.0, 4), (5, 4, 1.0, 7))),
        Stage("smoothed", each(table, (3, 4, 0.75, 3), (5, 4, 0.75, 6), (4, 3, 0.5, 3))),
        Stage("a word and a context without a count",
              each(table, (4, 5, 1.0, 4, True), (5, 4, 0.75, 4, True))),
    ),
    mistakes=(
        Edit(RETURNED, "torch.where(counts > 0, ratio.log(), 0.0)", "Negative values are left in: "
             "this is PMI. *Positive* PMI sets them to 0, since a pair seen less often than by "
             "chance says little when counts are small."),
        Edit(RETURNED, "torch.where(counts > 0, ratio.log(), 0.0).abs()", "Negative values have "
             "lost their sign: *less* often than by chance now counts as *more*. Set them to 0."),
        Edit(RETURNED, "torch.where(counts > 0, ratio, 0.0)", "This is the quotient, without its "
             "logarithm."),
        Edit(RETURNED, "torch.where(counts > 0, (ratio - 1).clamp(min=0), 0.0)", "This is how "
             "far the quotient is above 1. Expected its logarithm, or 0 if that is negative."),
        Edit("ratio.log()", "ratio.log1p()", "This is ln(1 + quotient), which is positive for "
             "every pair. Expected ln of the quotient, or 0 where that is negative."),
        Edit(RETURNED, "ratio.log().clamp(min=0)", "A word or a context that was never counted "
             "has 0 / 0 in your table. Choose 0 where the count is 0."),
        Edit(RETURNED, f"of_pair * {RETURNED}", "Each value is multiplied by P(w, c). That is what "
             "is summed up in mutual *information*; pointwise, it is the logarithm alone."),
        Edit("ratio.log()", "ratio.log() / -of_pair.log()", "Each value is divided by −ln P(w, c): "
             "that is normalised PMI. Expected the logarithm itself."),
        Edit(RATIO, "of_pair / of_word", "Every value is 0: your quotient is nowhere above 1. Are "
             "all three of its parts probabilities, fractions of a total? Is P(w, c) divided by "
             "both others, that is by their product, in parentheses? a / b * c is (a / b) · c."),
        Edit(PAIR, "of_pair = counts", "The cells are counts where probabilities are wanted: "
             "divide them by the sum of the whole table."),
        Edit(PAIR, "of_pair = counts / counts.sum(1, keepdim=True)", "Your P(w, c) is a fraction "
             "of its row, so it is divided by P(w) already. It must be the cell's fraction of the "
             "whole table."),
        Edit(WORD, "1 / len(counts)", "Every word is taken as equally frequent, 1/V. P(w) is the "
             "row's total as a fraction of the whole table."),
        Edit(POWERS, "counts.sum(0, keepdim=True)", "`smoothing` has no effect: the columns' "
             "totals must be raised to that power."),
        Edit(CONTEXT, "powers / counts.sum()", "The powers are divided by the sum of the counts "
             "and do not add up to 1. Divide them by the sum of the powers."),
        Edit(CONTEXT, "(counts.sum(0, keepdim=True) / counts.sum()) ** smoothing",
             "Powers of probabilities no longer add up to 1: divide them by their sum."),
        Edit(POWERS, "(counts**smoothing).sum(0, keepdim=True)", "The cells are raised to the "
             "power and summed. Sum first: the power belongs to the column's total."),
        Other(lambda counts, smoothing: ppmi(counts**smoothing, 1.0), "Every cell is raised to the "
              "power, and everything is computed from that. Only the columns' totals are; "
              "P(w, c) and P(w) stay as they were counted."),
        Edit(PAIR, "of_pair = counts**smoothing / (counts**smoothing).sum()", "The cells are "
             "raised to the power instead of the columns' totals. P(w, c) stays as it was counted: "
             "the power belongs to P(c).", more=((POWERS, "counts.sum(0, keepdim=True)"),)),
        Edit(PAIR, "of_pair = (counts / counts.sum()) ** smoothing", "P(w, c) is taken to the "
             "power instead of the columns' totals. It stays as it was counted: the power belongs "
             "to P(c).", more=((POWERS, "counts.sum(0, keepdim=True)"),)),
        Edit(PAIR, "of_pair = (counts / counts.sum()) ** smoothing", "P(w, c) is taken to the "
             "power as well. Only the columns' totals are."),
        Edit(RATIO, "(of_pair / (of_word * of_context)) ** smoothing", "The quotient is taken to "
             "the power. The power belongs to the columns' totals, before they are divided.",
             more=((POWERS, "counts.sum(0, keepdim=True)"),)),
        Edit(WORD, "counts.sum(1, keepdim=True) ** smoothing "
             "/ (counts.sum(1, keepdim=True) ** smoothing).sum()",
             "The words' totals are smoothed as well. Only the contexts' are."),
        Edit(WORD, "counts.sum(1, keepdim=True) ** smoothing "
             "/ (counts.sum(1, keepdim=True) ** smoothing).sum()",
             "The words' totals are raised to the power instead of the contexts'. Rows are words, "
             "columns contexts.", more=((POWERS, "counts.sum(0, keepdim=True)"),)),
        Edit(POWERS, "(counts.sum(0, keepdim=True) + smoothing)", "`smoothing` is added to the "
             "columns' totals. It is a power: totals ** smoothing."),
        Edit(POWERS, "counts.sum(0, keepdim=True) ** (1 / smoothing)", "The power is 1 / "
             "smoothing, which makes rare contexts *more* surprising. It is `smoothing` itself."),
        Other(lambda counts, smoothing: ppmi(counts + 1, smoothing), "One was added to every "
              "count. That avoids ln 0, but invents pairs; choose 0 where the count is 0."),
    ),
)  # fmt: skip
