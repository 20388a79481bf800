"""Exercise 14.4: looking up by shifting. T tokens.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    expect_tensor,
)

Case = tuple[Tensor]
Cases = Callable[[Draw], list[Case]]


def skew(by_distance: Tensor) -> Tensor:
    """(T, 2T − 1) by distance j − i -> the view (T, T) by token j: a row on, a column back."""
    T = len(by_distance)
    first = by_distance.storage_offset() + T - 1  # row 0 begins at distance 0
    return by_distance.as_strided((T, T), (2 * T - 2, 1), first)


# ---------------------------------------------------------------- known wrong answers


def _at(column: Callable[[Tensor, Tensor, int], Tensor]) -> Answer:
    """Entry (i, j) is that of the flattened table at i·(2T − 1) + column(i, j, T)."""

    def answer(by_distance: Tensor) -> Tensor:
        T = len(by_distance)
        i, j = torch.arange(T)[:, None], torch.arange(T)
        return by_distance.flatten()[i * (2 * T - 1) + column(i, j, T)]

    return answer


SKEW_SUSPECTS = (
    Suspect(
        "mirrored",
        "Your entry (i, j) is that of distance i − j. The columns are distances j − i.",
        _at(lambda i, j, T: i - j + T - 1),
    ),
    Suspect(
        "turned",
        "Rows and columns are exchanged: entry (i, j) comes from row i of the table.",
        lambda x: skew(x).T,
    ),
    Suspect(
        "row length 2T − 1",
        "A step of 2T − 1 leads to the same column one row on: every row then begins at its own "
        "last T columns. From row to row, j − i loses one: the step is one less.",
        _at(lambda i, j, T: j + T - 1 + 0 * i),
    ),
    Suspect(
        "first columns",
        "These are the first T columns of every row. Entry (i, j) is column j − i + T − 1.",
        _at(lambda i, j, T: j + 0 * i),
    ),
    Suspect(
        "offset 0",
        "You begin at the first number. Distance 0, where row 0 begins, is column T − 1.",
        _at(lambda i, j, T: j - i),
    ),
    Suspect(
        "one too late",
        "Every entry is one column too late: distance 0 is column T − 1, as −(T − 1) is column 0.",
        _at(lambda i, j, T: j - i + T),
    ),
    Suspect(
        "one too early",
        "Every entry is one column too early: distance 0 is column T − 1, as −(T − 1) is column 0.",
        _at(lambda i, j, T: j - i + T - 2),
    ),
    Suspect(
        "step one too short",
        "From row to row you go back by two columns. j − i loses one: the step from row to row is "
        "2T − 2.",
        _at(lambda i, j, T: j - 2 * i + T - 1),
    ),
    Suspect(
        "row length T",
        "Your step from row to row is T or T − 1, as if the table had T columns. It has 2T − 1.",
        _at(lambda i, j, T: j + T - 1 - i * (2 * T - 1) + i * T),
    ),
    Suspect(
        "row length T",
        "Your step from row to row is T or T − 1, as if the table had T columns. It has 2T − 1.",
        _at(lambda i, j, T: j + T - 1 - i * (2 * T - 1) + i * (T - 1)),
    ),
)


# ---------------------------------------------------------------- stages


def _drawn(draw: Draw, *sizes: int) -> list[Case]:
    return [(draw.normal(T, 2 * T - 1),) for T in sizes]


def _three(draw: Draw) -> list[Case]:
    return _drawn(draw, 3, 3)


def _larger(draw: Draw) -> list[Case]:
    return _drawn(draw, 2, draw.integer(4, 6), draw.integer(7, 12))


def _ask_values(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case), case), skew(*case)
            if torch.equal(given, right):
                continue
            pools = [_drawn(draw, 5, 8), cases(draw)]
            raise told(
                name_suspect(answer, case, pools, SKEW_SUSPECTS, _same),
                _example(case[0], given, right),
            )

    return ask


def _example(x: Tensor, given: Tensor, right: Tensor) -> str:
    i, j = (given != right).nonzero()[0].tolist()
    T = len(x)
    where = (x == given[i, j]).nonzero().tolist()
    mine = f"the number of row {where[0][0]}, column {where[0][1]}" if where else "another number"
    return (
        f"With T = {T}, entry ({i}, {j}): you have {mine} of the table; it is row {i}, column "
        f"{j - i + T - 1}."
    )


def _read(x: Any, case: Case) -> Tensor:
    T = len(case[0])
    return expect_tensor(x, (T, T), "row i and column j for tokens i and j").detach()


def _same(mine: Any, theirs: Tensor, case: Case) -> bool:
    return torch.equal(_read(mine, case), theirs)


def _ask_view(answer: Answer, draw: Draw) -> None:
    for (x,) in _larger(draw):
        mine = _given_itself(answer, x)
        if mine.untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
            raise Mistake(
                "a copy",
                f"The right numbers, but in new memory: {mine.numel()} of them were copied. The "
                "numbers of a row lie side by side already. Look at them with other steps: "
                "as_strided, or a view of the flattened table.",
            )


def _given_itself(answer: Answer, x: Tensor) -> Tensor:
    """The answer on this very tensor, not on a copy."""
    return _read(call(lambda: answer(x)), (x,))


def _ask_part(answer: Answer, draw: Draw) -> None:
    """The table is a part of a larger tensor, as the tables of several heads are."""
    T = draw.integer(4, 7)
    heads = draw.normal(3, T, 2 * T - 1)
    for head in range(3):
        x = heads[head]
        mine, right = _given_itself(answer, x), skew(x)
        if torch.equal(mine, right):
            continue
        if torch.equal(mine, skew(heads[0])):
            raise Mistake(
                "own offset forgotten",
                "The table of the second head is a part of a larger tensor, and your view begins "
                "in the first head's. as_strided counts from the beginning of the memory: add "
                "by_distance.storage_offset().",
            )
        raise Mistake("", f"The table is part {head} of a larger one. " + _example(x, mine, right))


SKEW = Exercise(
    id="14.4",
    title="Look up by shifting",
    purpose="a gather that moves nothing",
    difficulty=3,
    minutes=12,
    signature="my_skew(by_distance)",
    statement=(
        "`by_distance` (T, 2T − 1), T at least 2, has a row for each token i and a column for each "
        "distance j − i, from −(T − 1) to T − 1; its rows lie one after another in memory. Return "
        "the tensor (T, T) whose entry (i, j) is that of i and j: column j − i + T − 1 of row i. "
        "As a *view*: no number is copied, no index is made."
    ),
    hints=(
        "Write down where in memory entry (i, j) lies: i·(2T − 1) + (j − i + T − 1). Sort by i "
        "and by j.",
        "It is i·(2T − 2) + j + (T − 1): one step of j is one number on, one step of i 2T − 2.",
        "tensor.as_strided(shape, steps, first) is the view with these steps. Or: flatten with "
        "view(-1), cut T − 1 off at the front and one at the end, view in rows of 2T − 2.",
        "as_strided counts `first` from the beginning of the memory, and a tensor can begin "
        "later: by_distance.storage_offset().",
    ),
    solution=skew,
    library=("course_lib.kernels.disentangled:_skew",),
    when_raised=(
        (
            r"out of bounds for storage",
            "Your last row reaches beyond the table. One row on and one token on is the same "
            "distance: the step from row to row is less than the row's length, 2T − 1.",
        ),
        (
            r"gather|index|[Dd]imension out of range",
            "No index is needed: as_strided((T, T), steps, first).",
        ),
    ),
    stages=(
        Check("three tokens", _ask_values(_three)),
        Check("more tokens", _ask_values(_larger)),
        Check("a view, not a copy", _ask_view),
        Check("a part of a larger tensor", _ask_part),
    ),
)
