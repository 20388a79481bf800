"""Exercise 14.4: looking up by shifting. T tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Answer, Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Numbers, Wrong


def skew(by_distance: Tensor) -> Tensor:
    """(T, 2T − 1), distances i − j falling -> the view (T, T) by token j: a row on, a column
    back."""
    T = len(by_distance)
    first = by_distance.storage_offset() + T - 1  # row 0 begins at distance 0
    return by_distance.as_strided((T, T), (2 * T - 2, 1), first)


# ---------------------------------------------------------------- cases, and what is looked at


def telling(draw: Draw) -> list[Case]:
    """Row 2, column 3 holds 2.3: a wrong entry says where it comes from."""
    return [(torch.arange(T)[:, None] + torch.arange(2 * T - 1) / 10,) for T in (2, 3)]


def more(draw: Draw) -> list[Case]:
    return [(draw.normal(T, 2 * T - 1),) for T in (2, draw.integer(4, 6), draw.integer(7, 12))]


def part(draw: Draw) -> list[Case]:
    return [(draw.normal(3, T, 2 * T - 1), head) for head in range(3) for T in (4 + head, 7)]


def expect_view(function: Answer, by_distance: Tensor) -> None:
    """A view shows what is written into the table afterwards."""
    view: Any = function(by_distance)
    by_distance.zero_()
    if bool(torch.as_tensor(view).any()):
        raise Wrong(
            f"The right numbers, but in new memory: {len(by_distance) ** 2} of them were copied. "
            "The numbers of a row lie side by side already. Look at them with other steps: "
            "as_strided, or a view of the flattened table.",
            "copy",
        )


def of_one_head(function: Answer, heads: Tensor, head: int) -> Any:
    return function(heads[head])


ENTRIES = Numbers("entries", shape="T T")

SKEW = Exercise(
    **written("14.4"),
    solution=skew,
    returns=ENTRIES,
    library=("course_lib.kernels.disentangled:_skew",),
    when_raised=(
        (r"out of bounds for storage",
         "Your last row reaches beyond the table. In the next row the same key is one distance "
         "further, one column back: the step from row to row is less than 2T − 1."),
        (r"gather|index|[Dd]imension out of range",
         "No index is needed: as_strided((T, T), steps, first)."),
    ),
    stages=(
        Stage("two tokens and three", telling),
        Stage("more tokens", more),
        Stage("a view, not a copy", more, ask=expect_view),
        Stage("a part of a larger tensor", part, of_one_head, ENTRIES),
    ),
    mistakes=(
        Edit("by_distance.as_strided(", "by_distance.flip(1).as_strided(",
             "Your entry (i, j) is that of distance j − i. The columns are distances i − j, from "
             "the largest down."),
        Edit("(2 * T - 2, 1), first)", "(2 * T - 2, 1), first).T",
             "Rows and columns are exchanged: entry (i, j) comes from row i of the table."),
        Edit("2 * T - 2, 1", "2 * T - 1, 1",
             "A step of 2T − 1 leads to the same column of the next row, so every row gives its "
             "last T columns. From row to row i − j grows by one, which is one column further "
             "left: the step is one less."),
        Edit("(2 * T - 2, 1), first)", "(2 * T - 1, 1), first - T + 1)",
             "These are the first T columns of every row. Entry (i, j) is column T − 1 − (i − j)."),
        Edit("(2 * T - 2, 1), first)", "(2 * T, 1), first - T + 1)", "Your row i begins at column "
             "i. It must begin at distance i, column T − 1 − i: one column further left per row."),
        Edit("+ T - 1  #", "#",
             "You begin at the first number. Distance 0, where row 0 begins, is column T − 1."),
        Edit("+ T - 1  #", "+ T  #", "Every entry is one column too late: distance 0 is column T − "
             "1, as T − 1 is column 0."),
        Edit("+ T - 1  #", "+ T - 2  #", "Every entry is one column too early: distance 0 is "
             "column T − 1, as T − 1 is column 0."),
        Edit("2 * T - 2, 1", "2 * T - 3, 1", "From row to row you go back by two columns. i − j "
             "grows by one: the step from row to row is 2T − 2."),
        Edit("2 * T - 2, 1", "T, 1",
             "Your step from row to row is T, as if the table had T columns. It has 2T − 1."),
        Edit("2 * T - 2, 1", "T - 1, 1",
             "Your step from row to row is T − 1, as if the table had T columns. It has 2T − 1."),
        Edit("by_distance.storage_offset() + ", "", "The table of the second head is a part of a "
             "larger tensor, and your view begins in the first head's. as_strided counts from the "
             "beginning of the memory: add by_distance.storage_offset()."),
    ),
)  # fmt: skip
