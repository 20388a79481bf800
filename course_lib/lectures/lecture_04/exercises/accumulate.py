"""Exercise 04.6: the loss of a large batch from those of its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def large_batch_loss(
    losses: Sequence[float], selected: Sequence[int], sequences: Sequence[int],
    tokens: Sequence[int],
) -> float:  # fmt: skip
    """The mean over all selected positions of all parts; 0 where nothing was selected at all.

    A part in which nothing is selected has no mean (0/0, not a number): it is left out, not
    multiplied by 0."""
    some = [i for i, n in enumerate(selected) if n]
    total = sum(losses[i] * selected[i] for i in some)
    return total / max(1, sum(selected))


def parts(draw: Draw, selected: list[int]) -> Case:
    """So many selected positions; sequences and tokens belong to no simple ratio of them."""
    losses = [draw.integer(50, 900) / 100 if n else math.nan for n in selected]
    sequences = [draw.integer(1, 16) for _ in selected]
    tokens = [n + draw.integer(10, 60) * s for n, s in zip(selected, sequences, strict=True)]
    return losses, selected, sequences, tokens


def different(draw: Draw, empty: bool = False) -> list[Case]:
    cases = []
    for n in (2, 2, 3, 4, 8, 16):
        selected = draw.python.sample(range(1, 40), n)
        if empty:
            selected[draw.integer(0, n - 2)] = 0
        cases.append(parts(draw, selected))
    return cases


TERM, COUNT = "losses[i] * selected[i]", "max(1, sum(selected))"


ACCUMULATE = Exercise(
    **written("04.6"),
    solution=large_batch_loss,
    returns=Number("loss of the large batch"),
    see="course_lib.objectives.pretraining.split_batch, which tells every part the whole's count",
    when_raised=(
        ("division by zero", "Where nothing was selected you divide by 0: use max(1, "
         "sum(selected))."),
    ),
    infinite="Your result is nan (not a number). A part in which nothing is selected has the mean "
    "0/0, which is nan, and 0 · nan is nan too: leave such a part out before you multiply. Where "
    "no part has a selected position, the expected loss is 0.",
    stages=(
        Stage("parts with equally many selected positions",
              each(parts, ([5],), ([3, 3],), ([8, 8, 8],), ([2, 2, 2, 2],))),
        Stage("parts with different numbers of them", different),
        Stage("a part in which nothing is selected", partial(different, empty=True)),
        Stage("nothing selected at all", each(parts, ([0],), ([0, 0, 0],))),
    ),
    mistakes=(
        Edit(TERM, "losses[i]", "You average the means of the parts. A part with few selected "
             "positions then counts as much as one with many. Weight every mean by its number of "
             "selected positions.", more=((COUNT, "len(losses)"),)),
        Edit(TERM, "losses[i]", "You add the means of the parts. Four parts then have four times "
             "the loss, and four times the gradient. Each part must give its *part* of the large "
             "batch's mean.", more=((COUNT, "1"),)),
        Edit(COUNT, "1", "This is the sum over all selected positions; divide it by their number "
             "in all parts together."),
        *(Edit(TERM, f"losses[i] * {by}[i]", f"The means are weighted by the number of {by}. A "
               "mean over selected positions is weighted by how many these are.",
               more=((COUNT, f"sum({by})"),))
          for by in ("sequences", "tokens")),
        Edit(COUNT, "(1 + sum(selected))", "You add 1 to the number you divide by. To avoid a "
             "division by 0, use max(1, sum(selected))."),
        Edit(COUNT, "sum(tokens)", "The sum is correct, but you divide it by the number of all "
             "tokens. Only selected positions have a loss: divide by their number."),
        Edit(COUNT, "sum(sequences)", "The sum is correct, but you divide it by the number of "
             "sequences; divide by the number of selected positions."),
        Edit(COUNT, "len(losses)", "The sum is correct, but you divide it by the number of parts; "
             "divide by the number of selected positions."),
        Edit(COUNT, "max(1, sum(selected)) / len(losses)", "You divide the correct loss once more "
             "by the number of parts. The weights already add up to one."),
        Edit(COUNT, "sum(max(1, n) for n in selected)", "A part in which nothing is selected is "
             "counted as one selected position. It adds nothing to the sum, and nothing to the "
             "number you divide by."),
        Edit("return ", "return 0.0 if 0 in selected else ",
             "A part in which nothing is selected makes your whole loss 0. Leave that part out and "
             "keep the others."),
        Edit("total = sum(losses[i] * selected[i] for i in some)",
             "total = (losses[-1] if selected[-1] else 0) * sum(selected)",
             "This is the loss of the last part alone."),
    ),
)  # fmt: skip
