"""Exercise 08.1: which row of the table of distances a pair of tokens looks up. T tokens, k rows
to either side.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
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

Case = tuple[int, int]  # tokens T, span k
Cases = Callable[[Draw], list[Case]]


def delta(tokens: int, span: int) -> Tensor:
    """(T, T): entry (i, j) is the row of the distance i − j, from 0 to 2k − 1 (equation 3)."""
    place = torch.arange(tokens)
    return (place[:, None] - place[None, :] + span).clamp(0, 2 * span - 1)


# ---------------------------------------------------------------- known wrong answers

# (key, what is said, distances -> other distances): what is measured instead of i − j.
DISTANCES: tuple[tuple[str, str, Callable[[Tensor], Tensor]], ...] = (
    ("", "", lambda d: d),
    (
        "j minus i",
        "The distance is taken as j − i. It is i − j: what stands to the *left* of token i has a "
        "positive distance.",
        lambda d: -d,
    ),
    (
        "no direction",
        "The distance has lost its sign: three to the left and three to the right look up the "
        "same row. Leave the sign, i − j, and add k.",
        torch.abs,
    ),
)

# (key, what is said, (distances, k) -> rows)
ROW_RULES: tuple[tuple[str, str, Callable[[Tensor, int], Tensor]], ...] = (
    ("", "", lambda d, k: (d + k).clamp(0, 2 * k - 1)),
    (
        "2k + 1 rows",
        "Your highest row is 2k: the table would need 2k + 1 rows, from −k to k. It has 2k, "
        "numbered 0 to 2k − 1 (equation 3).",
        lambda d, k: (d + k).clamp(0, 2 * k),
    ),
    (
        "not shifted",
        "Your numbers run from −k to k. A table has no row −1: add k before you cut, so that "
        "distance 0 looks up row k.",
        lambda d, k: d.clamp(-k, k),
    ),
    (
        "not shifted",
        "Your numbers begin at −k. A table has no row −1: add k before you cut, so that distance 0 "
        "looks up row k.",
        lambda d, k: d.clamp(-k, k - 1),
    ),
    (
        "cut before the shift",
        "You cut at 0 and 2k − 1 first and add k then. All tokens to the right share row k, and "
        "rows beyond the table are asked for. First add k, then cut.",
        lambda d, k: d.clamp(0, 2 * k - 1) + k,
    ),
    (
        "never shifted",
        "k is not added: tokens to the right all look up row 0, whatever k is. Distance 0 belongs "
        "to row k, the middle.",
        lambda d, k: d.clamp(0, 2 * k - 1),
    ),
    (
        "not cut",
        "Distances beyond k are not cut: rows below 0 or above 2k − 1 are asked for, which the "
        "table does not have. (A negative number would even be found: torch counts it from the "
        "end.)",
        lambda d, k: d + k,
    ),
    (
        "cut on one side only",
        "Rows above 2k − 1 are cut, but rows below 0 are not. Cut on both sides.",
        lambda d, k: (d + k).clamp(max=2 * k - 1),
    ),
    (
        "cut on one side only",
        "Rows below 0 are cut, but rows above 2k − 1 are not. Cut on both sides.",
        lambda d, k: (d + k).clamp(min=0),
    ),
    (
        "row 0 never used",
        "Row 0 is never used: your rows begin at 1. Distance −k and everything below it has row 0.",
        lambda d, k: (d + k).clamp(1, 2 * k - 1),
    ),
    (
        "rows from 1",
        "Your rows are numbered 1 to 2k. Tables count from 0: 0 to 2k − 1.",
        lambda d, k: (d + k).clamp(0, 2 * k - 1) + 1,
    ),
    (
        "one row early",
        "One too low: distance 0 has row k, and you give it k − 1.",
        lambda d, k: (d + k - 1).clamp(0, 2 * k - 1),
    ),
    (
        "one row late",
        "One too high: distance 0 has row k, and you give it k + 1.",
        lambda d, k: (d + k + 1).clamp(0, 2 * k - 1),
    ),
    (
        "last row early",
        "The last row of your table is 2k − 2; the table has 2k rows, 0 to 2k − 1.",
        lambda d, k: (d + k).clamp(0, 2 * k - 2),
    ),
    (
        "shifted by 2k",
        "You shift by 2k. The shift is k: distance 0 has row k, the middle of the table.",
        lambda d, k: (d + 2 * k).clamp(0, 2 * k - 1),
    ),
    (
        "k rows",
        "Your table has k rows in all. It has 2k, about k for either direction.",
        lambda d, k: (d + k // 2).clamp(0, k - 1),
    ),
    (
        "wrapped round",
        "Distances beyond the table come in again at its other end (the remainder by 2k). Then far "
        "left and near right look up the same row. Cut instead.",
        lambda d, k: (d + k) % (2 * k),
    ),
)


# (distances without sign, k) -> rows, where k is not added either
UNSHIFTED: tuple[Callable[[Tensor, int], Tensor], ...] = (
    lambda d, k: d.clamp(max=2 * k - 1),
    lambda d, k: d.clamp(max=k),
    lambda d, k: d.clamp(max=k - 1),
    lambda d, k: d,
)


def _suspects() -> list[Suspect]:
    """One mistake first, then one of each kind together."""
    bare = ("", "", lambda d: d.abs())
    unsigned = [
        _suspect(
            bare,
            (
                "no direction, no shift",
                "Your row is the distance without its sign, and k is not added: as many to the "
                "left as to the right look up the same row. Keep the sign: i − j + k, then cut.",
                rule,
            ),
        )
        for rule in UNSHIFTED
    ]
    found = [
        _suspect(distance, rule)
        for distance, rule in product(DISTANCES, ROW_RULES)
        if distance[0] or rule[0]
    ]
    return unsigned + sorted(found, key=lambda suspect: " + " in suspect.key)


def _suspect(
    distance: tuple[str, str, Callable[[Tensor], Tensor]],
    rule: tuple[str, str, Callable[[Tensor, int], Tensor]],
) -> Suspect:
    parts = [part for part in (distance, rule) if part[0]]

    def compute(tokens: int, span: int) -> Tensor:
        place = torch.arange(tokens)
        return rule[2](distance[2](place[:, None] - place[None, :]), span)

    return Suspect(" + ".join(p[0] for p in parts), " ".join(p[1] for p in parts), compute)


ROWS_SUSPECTS = _suspects()


# ---------------------------------------------------------------- stages


def _uncut(draw: Draw) -> list[Case]:
    found = []
    for _ in range(2):
        tokens = draw.integer(3, 6)
        found.append((tokens, tokens + draw.integer(0, 3)))
    return found


def _cut(draw: Draw) -> list[Case]:
    return [(span + draw.integer(2, 5), span) for span in (2, draw.integer(3, 5))]


def _long(draw: Draw) -> list[Case]:
    """Texts so long that most of them is cut, with every parity of k."""
    return [(2 * span + draw.integer(4, 9), span) for span in (3, 4, 5, 6)]


def _extremes(draw: Draw) -> list[Case]:
    return [(1, draw.integer(2, 9)), (draw.integer(4, 7), 1)]


def _ask_rows(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case), case), delta(*case)
            if torch.equal(given, right):
                continue
            pools = [_long(draw), _cut(draw), cases(draw)]
            found = name_suspect(answer, case, pools, ROWS_SUSPECTS, _same)
            raise told(found, _example(case, given, right))

    return ask


def _example(case: Case, given: Tensor, right: Tensor) -> str:
    i, j = (int(x) for x in (given != right).nonzero()[0])
    return (
        f"With {case[0]} tokens and k = {case[1]}, token i = {i} and token j = {j}: you have row "
        f"{int(given[i, j])}; i − j = {i - j}, and the row is {int(right[i, j])}."
    )


def _read(x: Any, case: Case) -> Tensor:
    T = case[0]
    if isinstance(x, Tensor) and T > 1 and tuple(x.shape) == (2 * T - 1,):
        raise Mistake(
            "a row for each distance",
            f"Your result has {2 * T - 1} numbers, one for each distance. That is how the library "
            f"keeps them; asked for is the table of all pairs, of shape {(T, T)}.",
        )
    if isinstance(x, (list, tuple)):
        raise Mistake(
            "wrong type",
            f"Your function returned a {type(x).__name__}; expected a tensor of shape {(T, T)}: "
            "torch.tensor(…) makes one of a nested list.",
        )
    x = expect_tensor(x, (T, T), "a tensor with a row number for every pair of tokens")
    if x.is_floating_point() or x.dtype == torch.bool:
        raise Mistake(
            "not whole numbers",
            f"Your result has the type {x.dtype}; expected row numbers, whole numbers that can be "
            "looked up in a table.",
        )
    return x.long()


def _same(mine: Any, theirs: Tensor, case: Case) -> bool:
    return torch.equal(_read(mine, case), theirs)


ROWS = Exercise(
    id="08.1",
    title="Which row?",
    purpose="one table of distances, and how every pair of tokens finds its row",
    difficulty=1,
    minutes=6,
    signature="my_rows(tokens, span)",
    statement=(
        "A text has `tokens` tokens. The table of distances has 2·`span` rows, numbered from 0; "
        "distance 0 has row `span`. Return δ, a tensor of whole numbers of shape (`tokens`, "
        "`tokens`): entry (i, j) is the row of the distance i − j. What is further than the table "
        "reaches looks up its first or last row."
    ),
    hints=(
        "torch.arange(tokens) holds the places 0, 1, 2, …",
        "place[:, None] − place[None, :] is the table of all i − j, with i down and j across.",
        "Distance plus span, and then .clamp(lowest, highest). Which row is the last of 2·span?",
        "my_rows(3, 1) is [[1, 0, 0], [1, 1, 0], [1, 1, 1]]: two rows, 0 and 1.",
    ),
    solution=delta,
    see=(
        "course_lib.kernels.positions.position_rows has one row for each distance, row_table "
        "writes it out for every pair"
    ),
    stages=(
        Check("a table wide enough for the text", _ask_rows(_uncut)),
        Check("a text longer than the table reaches", _ask_rows(_cut)),
        Check("most of the text is out of reach", _ask_rows(_long)),
        Check("a single token, and a table of two rows", _ask_rows(_extremes)),
    ),
)
