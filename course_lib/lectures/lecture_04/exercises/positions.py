"""Exercise 04.3: position numbers that begin after the padding's. B sequences, T positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, written
from course_lib.teaching.exercises.outputs import Numbers


def position_numbers(input_ids: Tensor, pad_id: int) -> Tensor:
    """(B, T) -> (B, T): the k-th real token has pad_id + k, padding has pad_id."""
    real = (input_ids != pad_id).long()
    count = real.cumsum(dim=1)
    return pad_id + count * real


def ids(draw: Draw, patterns: Sequence[str], pad: int) -> Tensor:
    """Sequences by patterns of x (a token) and . (padding); one id may stand twice."""
    tokens = [i for i in range(30) if i != pad]
    rows = [[pad if x == "." else draw.python.choice(tokens) for x in p] for p in patterns]
    return torch.tensor(rows)


def cases(patterns: Sequence[str], *pads: int) -> Callable[[Draw], list[Case]]:
    return lambda draw: [(ids(draw, [p], pad), pad) for pad in pads for p in patterns]


def batches(draw: Draw) -> list[Case]:
    cases = []
    for _ in range(8):
        T, pad = draw.integer(5, 9), draw.integer(0, 9)
        patterns = ["".join(draw.python.choices("x.", weights=(3, 1), k=T)) for _ in range(4)]
        cases.append((ids(draw, ["x" * T, ".." + "x" * (T - 2), *patterns], pad), pad))
    return cases


RESULT, COUNT = "pad_id + count * real", "real.cumsum(dim=1)"
ARANGE = "torch.arange(real.shape[1]).expand_as(real)"

POSITIONS = Exercise(
    **written("04.3"),
    solution=position_numbers,
    returns=Numbers("tensor of positions", shape="B T", kind="int"),
    library=("course_lib.family.roberta:position_ids_after_padding",),
    when_raised=(
        (r"cumsum\(\) missing|missing.*dim|cumsum\(\) received an invalid",
         "cumsum needs an axis: dim=1 goes along each sequence."),
        ("Boolean|bool", "True and False are not numbers yet: add .long() to the comparison."),
    ),
    stages=(
        Stage("one sequence without padding", cases(("x", "xxx", "xxxxxx"), 1)),
        Stage("padding on the right", cases(("xx.", "xxxx...", "x...."), 1)),
        Stage("another pad id", cases(("xxx..", "xxxxx."), 0, 3, 5, 8)),
        Stage("padding on the left, and between", cases(("..xxx", ".x..xx.", "xx.xx"), 1, 0, 4)),
        Stage("several sequences", batches),
    ),
    mistakes=(
        Edit(RESULT, ARANGE, "You count all positions 0, 1, 2, … as BERT does. RoBERTa's first "
             "real token has pad_id + 1, and padding does not count."),
        Edit(RESULT, "pad_id + (count - 1) * real", "Your first real token has the number pad_id, "
             "which belongs to padding. Begin one later: pad_id + 1."),
        Edit(RESULT, "torch.where(real > 0, count, pad_id)",
             "You count the real tokens 1, 2, 3, … without the offset: the k-th has pad_id + k."),
        Edit(RESULT, "count * real", "You count the real tokens 1, 2, 3, … and give padding 0. Add "
             "pad_id to all of them: pad_id + k at real tokens, pad_id at padding."),
        Edit(RESULT, "torch.where(real > 0, count - 1, pad_id)",
             "You count the real tokens 0, 1, 2, …: the k-th, counted from one, has pad_id + k."),
        Edit(RESULT, "pad_id + (count + 1) * real",
             "One too high: the first real token has pad_id + 1, not pad_id + 2."),
        Edit("input_ids != pad_id", "input_ids != 1", "The text always begins at 2, as in the "
             "released RoBERTa, whose pad id is 1. Here pad_id is an argument: begin at pad_id + "
             "1.", more=((RESULT, "1 + count * real"),)),
        Edit(RESULT, "1 + count * real", "You recognise padding correctly, but your numbers begin "
             "at 2 whatever pad_id is. Begin at pad_id + 1."),
        Edit(RESULT, "(pad_id + count) * real",
             "You give padding the number 0. It has a row of its own in the position matrix, "
             "pad_id."),
        Edit(RESULT, "pad_id + count", "You give padding the number of the real token before it. "
             "Multiply the running count by real before you add pad_id, so that padding has "
             "pad_id."),
        Edit(RESULT, f"pad_id + 1 + {ARANGE}", "You go on counting at padding as if it were text. "
             "Padding does not count, and has the number pad_id."),
        Edit(RESULT, f"pad_id + (1 + {ARANGE}) * real", "You number a token by its place in the "
             "sequence: with padding *before* it, its number is too high. Count real tokens only, "
             "with a running sum over real."),
        Edit(COUNT, "real.flip(1).cumsum(1).flip(1)", "You count the tokens from the right; the "
             "first real token of a sequence has pad_id + 1."),
        Edit(COUNT, "real.cumsum(dim=0)", "Your running sum goes across the sequences of the "
             "batch. It should go along each sequence: dim=1."),
        Edit(COUNT, "real.flatten().cumsum(0).view_as(real)",
             "Your count continues from one sequence to the next. Every sequence begins again at "
             "pad_id + 1."),
        Edit("input_ids != pad_id", "input_ids == pad_id", "You count padding and not the text: "
             "real tokens are those with input_ids != pad_id."),
    ),
)  # fmt: skip
