"""Exercise 11.2: a row for a new word. V old pieces, N new words, H wide."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def new_rows(table: Tensor, written: list[list[int]], unknown: int) -> Tensor:
    """The mean of the rows of each word's old pieces, [UNK] left out: (V, H) -> (N, H)."""
    rows = []
    for ids in written:
        known = [id for id in ids if id != unknown]
        rows.append(table[known].mean(dim=0) if known else table.mean(dim=0))
    return torch.stack(rows)


# ---------------------------------------------------------------- cases

V, H = 12, 4


def case(draw: Draw, lengths: tuple[int, ...], unknowns: tuple[int, ...] = ()) -> Case:
    """Words of so many different pieces. unknowns: which of the words have an [UNK] in them, the
    first of these two."""
    unknown = draw.integer(0, V - 1)
    known = [id for id in range(V) if id != unknown]
    words = [draw.python.sample(known, length) for length in lengths]
    for n in (*unknowns, *unknowns[:1]):
        words[n].insert(draw.integer(0, len(words[n])), unknown)
    return draw.normal(V, H) + 0.7, words, unknown


def twice(draw: Draw) -> list[Case]:
    """A piece that comes twice counts twice."""
    return [(draw.normal(V, H), [[4, 4, 7], [5, 6, 5, 5]], draw.integer(0, 3))]


MEAN = "table[known].mean(dim=0) if known else table.mean(dim=0)"

ROWS = Exercise(
    **written("11.2"),
    solution=new_rows,
    returns=Numbers("tensor of new rows", shape="N H"),
    library=("course_lib.train.new_vocabulary:with_vocabulary",),
    when_raised=(
        (r"stack|expected Tensor", "torch.stack takes a list of tensors, one vector (H,) per "
         "word."),
    ),
    infinite="The mean of no rows is nan, not a number: handle words that are only [UNK].",
    stages=(
        Stage("words of known pieces", each(case, ((2,),), ((3, 2),), ((2, 4, 3),))),
        Stage("a piece that comes twice", twice),
        Stage("[UNK] among the pieces", each(case, ((2, 3), (0,)), ((3, 2, 4), (1, 2)))),
        Stage("nothing but [UNK]", each(case, ((0, 3), (0,)), ((2, 0, 2), (1,)))),
    ),
    mistakes=(
        Edit("[id for id in ids if id != unknown]", "ids", "[UNK]'s row is in your mean. It "
             "represents any word, and pulls every new row to the same place."),
        Edit("table[known].mean(dim=0)", "table[known].sum(dim=0)", "You take the sum, so long "
             "words would start with long vectors. Take the mean."),
        Edit("table[known].mean(dim=0)", "table[known[0]]", "You take the first piece's row only. "
             "*re* says little about *retinopathy*."),
        Edit("table[known].mean(dim=0)", "table[known[-1]]", "You take the last piece's row only."),
        Edit("table[known].mean(dim=0)", "table[sorted(set(known))].mean(dim=0)", "A piece that "
             "occurs twice counts twice: use the list, not the set."),
        Edit("table[known].mean(dim=0)", "table[known].sum(dim=0) / len(ids)", "[UNK] is not in "
             "the sum, but still in the denominator: divide by the number of remaining pieces."),
        Edit("table[known].mean(dim=0)", "table[known].median(dim=0).values", "You take the "
             "median of the rows. Take the mean."),
        Edit("table[known].mean(dim=0)", "torch.nn.functional.normalize(table[known].mean(dim=0), "
             "dim=0)", "Your rows are normalised to length one. Do not normalise the mean."),
        Edit("if known else table.mean(dim=0)", "if known else table[unknown]", "Your word that "
             "is only [UNK] starts with [UNK]'s row. It should start with the mean of the whole "
             "table."),
        Edit("if known else table.mean(dim=0)", "if known else torch.zeros_like(table[0])", "Your "
             "word that is only [UNK] starts with zeros. It should start with the mean of the "
             "whole table."),
    ),
)  # fmt: skip
