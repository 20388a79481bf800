"""Exercise 08.1: which row of the table of distances a pair of tokens looks up. T tokens, k rows
to either side."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.kernels.positions import position_rows
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Other, Stage, written
from course_lib.teaching.exercises.outputs import Numbers


def delta(tokens: int, span: int) -> Tensor:
    """(T, T): entry (i, j) is the row of the distance i − j, from 0 to 2k − 1 (equation 3)."""
    position = torch.arange(tokens)
    distance = position[:, None] - position[None, :]
    return (distance + span).clamp(0, 2 * span - 1)


def table_beyond_text(draw: Draw) -> list[Case]:
    return [(tokens, tokens + draw.integer(0, 3)) for tokens in (3, draw.integer(4, 6))]


def long_sequence(draw: Draw) -> list[Case]:
    return [(span + draw.integer(2, 5), span) for span in (2, draw.integer(3, 5))]


def mostly_out_of_reach(draw: Draw) -> list[Case]:
    """With every parity of k."""
    return [(2 * span + draw.integer(4, 9), span) for span in (3, 4, 5, 6)]


def extremes(draw: Draw) -> list[Case]:
    return [(1, draw.integer(2, 9)), (draw.integer(4, 7), 1)]


RULE = "(distance + span).clamp(0, 2 * span - 1)"

ROWS = Exercise(
    **written("08.1"),
    solution=delta,
    returns=Numbers("table δ", shape="tokens tokens", kind="int"),
    see=(
        "course_lib.kernels.positions.position_rows has one row for each distance, row_table "
        "writes it out for every pair"
    ),
    stages=(
        Stage("a table wide enough for the sequence", table_beyond_text),
        Stage("a sequence longer than the table reaches", long_sequence),
        Stage("most of the sequence is out of reach", mostly_out_of_reach),
        Stage("a single token, and a table of two rows", extremes),
    ),
    mistakes=(
        Edit("position[:, None] - position[None, :]", "position[None, :] - position[:, None]",
             "The distance is taken as j − i. It is i − j: a token to the *left* of token i "
             "has a positive distance."),
        Edit("position[:, None] - position[None, :]",
             "(position[:, None] - position[None, :]).abs()",
             "You dropped the sign of the distance: three to the left and three to the right "
             "look up the same row. Keep the sign of i − j, and add k."),
        Edit(RULE, "(distance + span).clamp(0, 2 * span)", "Your highest row is 2k: the table "
             "would need 2k + 1 rows, from −k to k. It has 2k, numbered 0 to 2k − 1 (equation 3)."),
        Edit(RULE, "distance.clamp(-span, span)", "k is not added; distances are cut at −k and k. "
             "A table has no row −1: add k before you cut, so that distance 0 looks up row k."),
        Edit(RULE, "distance.clamp(-span, span - 1)",
             "k is not added; distances are cut at −k and k − 1. A table has no row −1: add k "
             "before you cut, so that distance 0 looks up row k."),
        Edit(RULE, "distance", "k is not added, and nothing is cut. Distance 0 looks up row k; "
             "distances beyond the table look up its first or last row."),
        Edit(RULE, "distance.clamp(0, 2 * span - 1) + span",
             "You cut at 0 and 2k − 1 first and add k then. All tokens to the right share row k, "
             "and rows beyond the table are looked up. First add k, then cut."),
        Edit(RULE, "distance.clamp(0, 2 * span - 1)", "k is not added before you cut at 0 and 2k − "
             "1. Distance 0 belongs to row k, the middle."),
        Edit(RULE, "distance + span", "Distances beyond k are not cut: rows below 0 or above 2k − "
             "1 are looked up, which the table does not have. (A negative number would even be "
             "found: torch counts it from the end.)"),
        Edit(RULE, "(distance + span).clamp(max=2 * span - 1)",
             "Rows above 2k − 1 are cut, but rows below 0 are not. Cut on both sides."),
        Edit(RULE, "(distance + span).clamp(min=0)",
             "Rows below 0 are cut, but rows above 2k − 1 are not. Cut on both sides."),
        Edit(RULE, "(distance + span).clamp(1, 2 * span - 1)", "Row 0 is never used: your rows "
             "start at 1. Distance −k and everything below it has row 0."),
        Edit(RULE, "(distance + span).clamp(0, 2 * span - 1) + 1",
             "Your rows are numbered 1 to 2k. Tables count from 0: 0 to 2k − 1."),
        Edit(RULE, "(distance + span - 1).clamp(0, 2 * span - 1)",
             "One too low: distance 0 has row k, and you give it k − 1."),
        Edit(RULE, "(distance + span + 1).clamp(0, 2 * span - 1)",
             "One too high: distance 0 has row k, and you give it k + 1."),
        Edit(RULE, "(distance + span).clamp(0, 2 * span - 2)",
             "The last row of your table is 2k − 2; the table has 2k rows, 0 to 2k − 1."),
        Edit(RULE, "(distance + 2 * span).clamp(0, 2 * span - 1)",
             "You shift by 2k. The shift is k: distance 0 has row k, the middle of the table."),
        Edit(RULE, "(distance + span // 2).clamp(0, span - 1)",
             "Your table has k rows in all. It has 2k, about k for either direction."),
        Edit(RULE, "(distance + span) % (2 * span)",
             "Distances beyond the table reappear at its other end (a remainder modulo 2k). "
             "Then far left and near right look up the same row. Cut instead."),
        Other(position_rows, "Your result has one row for each distance, 2T − 1 of them. That is "
              "how the library keeps them; expected is the table of all pairs, (T, T)."),
    ),
)  # fmt: skip
