"""Exercise 04.6: the loss of a large batch from those of its parts.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
)

Numbers = Sequence[int]
Case = tuple[list[float], list[int], list[int], list[int]]  # losses, asked, rows, tokens
Cases = Callable[[Draw], list[Case]]


def large_batch_loss(
    losses: Sequence[float], asked: Numbers, rows: Numbers, tokens: Numbers
) -> float:
    """The mean over all asked positions of all parts; 0 where nothing was asked at all.

    A part that asks nothing has no mean (0/0, not a number): it is left out, not multiplied by 0.
    """
    total = sum(loss * n for loss, n in zip(losses, asked, strict=True) if n)
    return total / max(1, sum(asked))


# ---------------------------------------------------------------- known wrong answers


def _weighted(losses: Sequence[float], weights: Numbers, by: float) -> float:
    """Σ weight · loss / by over the parts that have a loss."""
    pairs = zip(losses, weights, strict=True)
    return sum(loss * w for loss, w in pairs if not math.isnan(loss)) / by


def _some(asked: Numbers) -> int:
    return sum(1 for n in asked if n)


LARGE_SUSPECTS = (
    Suspect(
        "mean of means",
        "You average the means of the parts. A part that asks few words then weighs as much as one "
        "that asks many, and each of its words more. Weigh every mean by its number of asked "
        "positions.",
        lambda x, n, r, t: _weighted(x, [1] * len(x), len(x)),
    ),
    Suspect(
        "mean of means, empty parts left out",
        "Parts that ask nothing are left out rightly, but the others are averaged as if each "
        "asked as much. Weigh every mean by its number of asked positions.",
        lambda x, n, r, t: _weighted(x, [1] * len(x), _some(n)),
    ),
    Suspect(
        "sum of means",
        "You add the means of the parts. Four parts then have four times the loss, and four times "
        "the gradient. Each part must give its *share* of the large batch's mean.",
        lambda x, n, r, t: _weighted(x, [1] * len(x), 1),
    ),
    Suspect(
        "not divided",
        "This is the sum over all asked positions; divide it by how many there are in all parts "
        "together.",
        lambda x, n, r, t: _weighted(x, n, 1),
    ),
    Suspect(
        "weighted by rows",
        "The means are weighted by the number of rows. A row may ask one word or twenty: the loss "
        "is a mean over asked positions, and these are the weights.",
        lambda x, n, r, t: _weighted(x, r, sum(r)),
    ),
    Suspect(
        "weighted by tokens",
        "The means are weighted by the number of tokens. Most tokens are not asked and have no "
        "loss: the weights are the numbers of asked positions.",
        lambda x, n, r, t: _weighted(x, t, sum(t)),
    ),
    Suspect(
        "weighted by rows, empty parts left out",
        "The means are weighted by rows (of the parts that ask something). A row may ask one word "
        "or twenty: weigh by asked positions.",
        lambda x, n, r, t: _weighted(x, r, sum(a for a, k in zip(r, n, strict=True) if k)),
    ),
    Suspect(
        "weighted by tokens, empty parts left out",
        "The means are weighted by tokens (of the parts that ask something). Most tokens have no "
        "loss: weigh by asked positions.",
        lambda x, n, r, t: _weighted(x, t, sum(a for a, k in zip(t, n, strict=True) if k)),
    ),
    Suspect(
        "divided by tokens",
        "The sum is right, and is divided by all tokens. Only asked positions have a loss: divide "
        "by their number.",
        lambda x, n, r, t: _weighted(x, n, sum(t)),
    ),
    Suspect(
        "divided by rows",
        "The sum is right, and is divided by the number of rows; divide by the number of asked "
        "positions.",
        lambda x, n, r, t: _weighted(x, n, sum(r)),
    ),
    Suspect(
        "divided by parts",
        "The sum is right, and is divided by the number of parts; divide by the number of asked "
        "positions.",
        lambda x, n, r, t: _weighted(x, n, len(x)),
    ),
    Suspect(
        "averaged twice",
        "The right number, divided by the number of parts once more. The weights already add up to "
        "one.",
        lambda x, n, r, t: _weighted(x, n, sum(n) * len(x)),
    ),
    Suspect(
        "empty parts counted as one",
        "A part that asks nothing is counted as one asked position. It adds nothing, also not to "
        "the number you divide by.",
        lambda x, n, r, t: _weighted(x, n, sum(max(1, k) for k in n)),
    ),
    Suspect(
        "zero because of an empty part",
        "One part that asks nothing makes the whole loss 0. Leave that part out and keep the "
        "others.",
        lambda x, n, r, t: 0.0 if 0 in n else _weighted(x, n, sum(n)),
    ),
    Suspect(
        "last part only",
        "This is the loss of the last part alone.",
        lambda x, n, r, t: x[-1],
    ),
)


# ---------------------------------------------------------------- inputs


def _parts(draw: Draw, asked: Numbers) -> Case:
    """Parts that ask so many positions; rows and tokens belong to no simple ratio of them."""
    losses = [draw.integer(50, 900) / 100 if n else math.nan for n in asked]
    rows = [draw.integer(1, 16) for _ in asked]
    tokens = [n + draw.integer(10, 60) * r for n, r in zip(asked, rows, strict=True)]
    return losses, list(asked), rows, tokens


def _equal(draw: Draw) -> list[Case]:
    return [_parts(draw, [draw.integer(2, 9)] * parts) for parts in (1, 2, 3, 4)]


def _different(draw: Draw) -> list[Case]:
    return [_parts(draw, draw.python.sample(range(1, 40), parts)) for parts in (2, 2, 3, 4, 8, 16)]


def _with_empty(draw: Draw) -> list[Case]:
    cases = []
    for parts in (2, 3, 4, 8):
        asked = draw.python.sample(range(1, 40), parts)
        asked[draw.integer(0, parts - 2)] = 0
        cases.append(_parts(draw, asked))
    return cases


def _nothing(draw: Draw) -> list[Case]:
    return [_parts(draw, [0]), _parts(draw, [0, 0, 0])]


# ---------------------------------------------------------------- stages


def _ask_loss(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_loss(answer, case, [[*_different(draw), *_with_empty(draw)], cases(draw)])

    return ask


def _expect_loss(answer: Answer, case: Case, pools: Sequence[Sequence[Case]]) -> None:
    given, right = _number(call(answer, *case)), large_batch_loss(*case)
    if close(given, right):
        return
    losses, asked, rows, tokens = case
    said = (
        f"Parts that ask {asked} positions, with mean losses {losses} (rows {rows}, tokens "
        f"{tokens}): you have {given:.4f}; it is {right:.4f}."
    )
    if math.isnan(given) and not any(asked):
        raise Mistake(
            "nothing asked",
            f"No part asks anything, so there is nothing to average: 0 is expected.\n{said}",
        )
    if math.isnan(given):
        raise Mistake(
            "not a number",
            "Your result is not a number. The mean of a part that asks nothing is nan, 0/0, and "
            f"0 · nan is nan too: leave such a part out before you multiply.\n{said}",
        )
    raise told(name_suspect(answer, case, pools, LARGE_SUSPECTS, _same_loss), said)


def _same_loss(mine: Any, theirs: float, _case: Any) -> bool:
    mine = _number(mine)
    return (math.isnan(mine) and math.isnan(theirs)) or close(mine, theirs)


def _number(x: Any) -> float:
    return one_number(x, "the loss of the large batch")


ACCUMULATE = Exercise(
    id="04.6",
    title="One loss from many parts",
    purpose="a batch of 8,000 on a machine that holds 32",
    difficulty=2,
    minutes=8,
    signature="my_large_loss(losses, asked, rows, tokens)",
    statement=(
        "A large batch was read in parts. Of each part you know the mean loss over its asked "
        "positions (`losses`), how many positions were asked (`asked`), and how many rows and "
        "tokens it had. Return the loss of the large batch as if it had been read at once: the "
        "mean over all its asked positions. A part that asks nothing has the loss nan, not a "
        "number. If no part asks anything, the loss is 0."
    ),
    hints=(
        "What is the *sum* of the losses in one part? Its mean times how many were asked.",
        "Add these sums, and divide once by how many were asked in all parts together.",
        "0 · nan is nan: add up only the parts with asked > 0. And divide by max(1, sum(asked)).",
        "Means 2.0 and 6.0, asked 3 and 1: (3 · 2.0 + 1 · 6.0) / 4 = 3.0.",
    ),
    solution=large_batch_loss,
    see="course_lib.objectives.pretraining.split_batch, which tells every part the whole's count",
    when_raised=(
        (
            "division by zero",
            "Where nothing was asked there is nothing to divide by: max(1, sum(asked)).",
        ),
    ),
    stages=(
        Check("parts that ask equally many", _ask_loss(_equal)),
        Check("parts that ask different numbers", _ask_loss(_different)),
        Check("a part that asks nothing", _ask_loss(_with_empty)),
        Check("nothing asked at all", _ask_loss(_nothing)),
    ),
)
