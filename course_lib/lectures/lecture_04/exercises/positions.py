"""Exercise 04.3: position numbers that begin after the padding's. B rows, T positions.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    writes_into,
)

Case = tuple[Tensor, int]  # input_ids (B, T), pad_id
Cases = Callable[[Draw], list[Case]]


def position_numbers(input_ids: Tensor, pad_id: int) -> Tensor:
    """(B, T) -> (B, T): the k-th real token of a row has pad_id + k, padding has pad_id."""
    real = (input_ids != pad_id).long()
    return pad_id + real.cumsum(dim=1) * real


# ---------------------------------------------------------------- known wrong answers


def _places(ids: Tensor) -> Tensor:
    return torch.arange(ids.shape[1]).expand(ids.shape)  # (B, T): 0, 1, …, T − 1 in every row


def _real(ids: Tensor, pad: int) -> Tensor:
    return (ids != pad).long()


def _count(ids: Tensor, pad: int) -> Tensor:
    """How many real tokens so far, this position included."""
    return _real(ids, pad).cumsum(1)


def _where_real(number: Callable[[Tensor, int], Tensor], at_padding: int | None = None) -> Answer:
    """number(ids, pad) at real tokens; at padding the pad id, or a fixed number."""
    return lambda ids, pad: torch.where(
        ids != pad, number(ids, pad), torch.tensor(pad if at_padding is None else at_padding)
    )


def _over_the_batch(ids: Tensor, pad: int) -> Tensor:
    real = _real(ids, pad)
    return pad + real.flatten().cumsum(0).view(ids.shape) * real


POSITION_SUSPECTS = (
    Suspect(
        "from zero",
        "You count 0, 1, 2, … over all places, as BERT does. RoBERTa's first real token has "
        "pad_id + 1, and padding does not count.",
        lambda ids, pad: _places(ids),
    ),
    Suspect(
        "starts at pad_id",
        "The first real token has the number pad_id, which belongs to padding. It begins one "
        "after: pad_id + 1.",
        _where_real(lambda ids, pad: pad + _count(ids, pad) - 1),
    ),
    Suspect(
        "no offset",
        "The real tokens are counted 1, 2, 3, … without the offset: the k-th has pad_id + k.",
        _where_real(lambda ids, pad: _count(ids, pad)),
    ),
    Suspect(
        "no offset, padding 0",
        "The real tokens are counted 1, 2, 3, … and padding has 0. Everything is pad_id higher: "
        "pad_id + k, and pad_id at padding.",
        lambda ids, pad: _count(ids, pad) * _real(ids, pad),
    ),
    Suspect(
        "counted from zero",
        "The real tokens are counted 0, 1, 2, …: the k-th, counted from one, has pad_id + k.",
        _where_real(lambda ids, pad: _count(ids, pad) - 1),
    ),
    Suspect(
        "one too high",
        "One too high: the first real token has pad_id + 1, not pad_id + 2.",
        _where_real(lambda ids, pad: pad + 1 + _count(ids, pad)),
    ),
    Suspect(
        "pad id 1 assumed",
        "The text always begins at 2, as in the released RoBERTa, whose pad id is 1. Here "
        "pad_id is an argument: begin at pad_id + 1.",
        lambda ids, pad: 1 + _count(ids, 1) * _real(ids, 1),
    ),
    Suspect(
        "offset 1 assumed",
        "Padding is found rightly, but the numbers begin at 2 whatever pad_id is. Begin at pad_id "
        "+ 1.",
        lambda ids, pad: 1 + _count(ids, pad) * _real(ids, pad),
    ),
    Suspect(
        "padding 0",
        "Padding has the number 0. It has a row of its own in the position table, pad_id.",
        _where_real(lambda ids, pad: pad + _count(ids, pad), at_padding=0),
    ),
    Suspect(
        "padding keeps the number",
        "Padding has the number of the real token before it. Multiply the running count by real "
        "before you add pad_id, so that padding has pad_id.",
        lambda ids, pad: pad + _count(ids, pad),
    ),
    Suspect(
        "padding numbered on",
        "Padding is numbered on like text. It does not count, and has the number pad_id.",
        lambda ids, pad: pad + 1 + _places(ids),
    ),
    Suspect(
        "place in the row",
        "The number of a token is its place in the row: where padding stands *before* it, its "
        "number is too high. Count real tokens only: a running sum over real.",
        _where_real(lambda ids, pad: pad + 1 + _places(ids)),
    ),
    Suspect(
        "from the right",
        "The tokens are counted from the right; the first real token of a row has pad_id + 1.",
        _where_real(lambda ids, pad: pad + _real(ids, pad).flip(1).cumsum(1).flip(1)),
    ),
    Suspect(
        "over the rows",
        "The running sum goes down the rows, over the batch. It goes along each row: dim=1.",
        lambda ids, pad: pad + _real(ids, pad).cumsum(0) * _real(ids, pad),
    ),
    Suspect(
        "over the batch",
        "The count goes on from one row to the next. Every row begins again at pad_id + 1.",
        _over_the_batch,
    ),
    Suspect(
        "real and padding swapped",
        "Padding is counted and text is not: real tokens are those with input_ids != pad_id.",
        lambda ids, pad: pad + (ids == pad).long().cumsum(1) * (ids == pad),
    ),
)


# ---------------------------------------------------------------- inputs and stages


def _ids(draw: Draw, patterns: Sequence[str], pad: int) -> Tensor:
    """Rows by patterns of x (a token) and . (padding); one id may stand twice in a row."""
    rows = [
        [pad if sign == "." else draw.python.choice([i for i in range(30) if i != pad])
         for sign in pattern]
        for pattern in patterns
    ]  # fmt: skip
    return torch.tensor(rows)


def _patterns(patterns: Sequence[str], pads: Sequence[int]) -> Cases:
    return lambda draw: [(_ids(draw, [p], pad), pad) for pad in pads for p in patterns]


def _batches(draw: Draw) -> list[Case]:
    cases = []
    for _ in range(8):
        length, pad = draw.integer(5, 9), draw.integer(0, 9)
        patterns = ["".join(draw.python.choices("x.", weights=(3, 1), k=length)) for _ in range(4)]
        cases.append((_ids(draw, ["x" * length, ".." + "x" * (length - 2), *patterns], pad), pad))
    return cases


def _ask_positions(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_positions(answer, case, [_batches(draw), cases(draw)])

    return ask


def _expect_positions(answer: Answer, case: Case, pools: Sequence[Sequence[Case]]) -> None:
    ids, pad = case
    given = expect_tensor(call(answer, *case), tuple(ids.shape), "one number a position, (B, T)")
    if given.is_floating_point() or given.dtype == torch.bool:
        raise Mistake(
            "not whole numbers",
            f"Your result has type {given.dtype}; expected whole numbers (torch.int64), because "
            "they pick rows of a table.",
        )
    right = position_numbers(*case)
    if torch.equal(given.long(), right):
        return
    found = name_suspect(answer, case, pools, POSITION_SUSPECTS, _same)
    row = int((given != right).any(1).nonzero()[0])
    said = (
        f"With pad_id={pad} and input_ids {ids[row].tolist()} you have {given[row].tolist()}; it "
        f"is {right[row].tolist()}."
    )
    raise told(found, said)


def _same(mine: Tensor, theirs: Tensor, _case: Case) -> bool:
    return torch.equal(mine.long(), theirs.long())


def _ask_untouched(answer: Answer, draw: Draw) -> None:
    if writes_into(answer, *_batches(draw)[0]) is not None:
        raise Mistake(
            "writes into its input",
            "Your function changes input_ids itself. The model still needs them: work on a copy.",
        )


POSITIONS = Exercise(
    id="04.3",
    title="Where does counting begin?",
    purpose="the one line that differs between BERT's input and RoBERTa's",
    difficulty=2,
    minutes=10,
    signature="my_positions(input_ids, pad_id)",
    statement=(
        "`input_ids` (B, T) are whole numbers; where they equal `pad_id` there is padding, which "
        "may stand on the right, on the left, or between. Return RoBERTa's position numbers (B, "
        "T): the k-th real token of a row, counted from one, has the number `pad_id` + k; padding "
        "has `pad_id`. No loop is needed."
    ),
    hints=(
        "First a tensor that is 1 at real tokens and 0 at padding: (input_ids != pad_id).long().",
        "Its running sum along the row, .cumsum(dim=1), says how many real tokens there were so "
        "far. At padding it stands still.",
        "Multiply by the ones and zeros again, so that padding gets 0. Then add pad_id everywhere.",
        "With pad_id 1: [1, 7, 9, 1] has ones and zeros 0 1 1 0, running sum 0 1 2 2, times them 0 "
        "1 2 0, plus one 1 2 3 1.",
    ),
    solution=position_numbers,
    library=("course_lib.family.roberta:count_after_padding",),
    when_raised=(
        (
            r"cumsum\(\) missing|missing.*dim",
            "cumsum wants to know along which axis: dim=1 goes along each row.",
        ),
        (
            "Boolean|bool",
            "True and False are not numbers yet: add .long() to the comparison.",
        ),
    ),
    stages=(
        Check("one row without padding", _ask_positions(_patterns(("x", "xxx", "xxxxxx"), (1,)))),
        Check("padding on the right", _ask_positions(_patterns(("xx.", "xxxx...", "x...."), (1,)))),
        Check("another pad id", _ask_positions(_patterns(("xxx..", "xxxxx."), (0, 3, 5, 8)))),
        Check(
            "padding on the left, and between",
            _ask_positions(_patterns(("..xxx", ".x..xx.", "xx.xx"), (1, 0, 4))),
        ),
        Check("several rows", _ask_positions(_batches)),
        Check("the input is left as it was", _ask_untouched),
    ),
)
