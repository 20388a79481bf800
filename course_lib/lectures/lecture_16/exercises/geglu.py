"""Exercise 16.2: GeGLU, and how wide it may be. B texts, T tokens, H hidden, F inner width."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number, Numbers


def geglu(x: Tensor, expand: Tensor, contract: Tensor, plain_width: int) -> tuple[Tensor, int]:
    """The gated feed-forward part (B, T, H), and the inner width that costs what a plain one does.

    x (B, T, H), expand (2F, H), contract (H, F); plain_width: F of a part without a gate."""
    inner, gate = (x @ expand.T).chunk(2, dim=-1)  # twice (B, T, F)
    output = (F.gelu(inner) * gate) @ contract.T
    return output, 2 * plain_width // 3  # 3·H·F weights for 2·H·F


# ---------------------------------------------------------------- cases


def case(draw: Draw, batch: int, tokens: int, hidden: int, inner: int) -> Case:
    weights = draw.normal(2 * inner, hidden), draw.normal(hidden, inner)
    return draw.normal(batch, tokens, hidden), *weights, 3 * draw.integer(5, 900)


def by_hand(draw: Draw) -> list[Case]:
    x, expand, contract = ([[[2]]], [[1], [3]], [[0.5]])
    inputs = tuple(torch.tensor(y, dtype=torch.float64) for y in (x, expand, contract))
    return [(*inputs, 3_072), case(draw, 1, 1, 2, 3)]


def wide_ones(draw: Draw) -> list[Case]:
    """Widths that leave a remainder of one, and of two."""
    return [(*case(draw, 1, 2, 3, 4)[:3], 3 * draw.integer(20, 900) + rest) for rest in (1, 2, 0)]


HALVES, OUTPUT = "(x @ expand.T).chunk(2, dim=-1)", "(F.gelu(inner) * gate) @ contract.T"
WIDTH = "2 * plain_width // 3"

GEGLU = Exercise(
    **written("16.2"),
    solution=geglu,
    returns=(Numbers("output", shape="B T H"), Number("inner width", kind="int")),
    see="course_lib.family.modernbert.GatedFeedForward",
    when_raised=(
        (r"mat1 and mat2|size mismatch|shapes cannot be multiplied", "A dense layer's weight has a "
         "row for each *output*: x @ expand.T gives (B, T, 2F). Cut that in two, multiply, and "
         "(B, T, F) @ contract.T is (B, T, H)."),
        (r"must match the size|size of tensor", "x @ expand.T is (B, T, 2F). Its two halves, "
         ".chunk(2, dim=-1), are both (B, T, F)."),
    ),
    stages=(
        Stage("one number, on paper", by_hand, only=("output",)),
        Stage("one text", each(case, (1, 3, 2, 4), (1, 2, 4, 3)), only=("output",)),
        Stage("a batch", each(case, (2, 3, 4, 5), (3, 2, 3, 2)), only=("output",)),
        Stage("widths that 3 divides", each(case, (1, 1, 2, 2), (1, 2, 2, 3), (1, 1, 3, 2))),
        Stage("other widths", wide_ones),
    ),
    mistakes=(
        Edit(OUTPUT, "(inner * F.gelu(gate)) @ contract.T", "GELU is on the *second* half. In "
             "ModernBERT the first half goes through it; the second is the gate, unchanged."),
        Edit(OUTPUT, "F.gelu(inner * gate) @ contract.T", "Your GELU comes after the product. It "
             "acts on the first half alone; then the gate multiplies."),
        Edit(OUTPUT, "(F.gelu(inner) * F.gelu(gate)) @ contract.T", "Both halves go through GELU. "
             "The gate stays unchanged."),
        Edit(OUTPUT, "(F.gelu(inner) + gate) @ contract.T", "You add the two halves. Multiply "
             "them, number by number."),
        Edit(OUTPUT, "(inner * gate) @ contract.T", "GELU is missing: you multiply the two halves "
             "directly (*bilinear*). The first must go through GELU."),
        Edit(OUTPUT, "(inner.sigmoid() * gate) @ contract.T", "You use a sigmoid instead of GELU:"
             " that is GLU, the oldest of this family."),
        Edit(OUTPUT, "(inner * gate.sigmoid()) @ contract.T", "Your gate goes through a sigmoid, "
             "and GELU is missing: that is GLU, the oldest of this family."),
        Edit(OUTPUT, "(F.silu(inner) * gate) @ contract.T", "You use SiLU instead of GELU: that "
             "is SwiGLU, as in LLaMA."),
        Edit(OUTPUT, "(F.relu(inner) * gate) @ contract.T", "You use ReLU instead of GELU: that "
             "is ReGLU."),
        Edit(OUTPUT, '(F.gelu(inner, approximate="tanh") * gate) @ contract.T', "This is the tanh "
             "approximation of GELU. ModernBERT has the exact one, F.gelu's default."),
        Edit(OUTPUT, "F.gelu(inner) @ contract.T", "You left out the gate. This is BERT's "
             "feed-forward part, with the first half alone."),
        Edit(OUTPUT, "gate @ contract.T", "You use only the gate. Multiply it by GELU of the "
             "first half."),
        Edit(OUTPUT, "x + (F.gelu(inner) * gate) @ contract.T", "You add x, the residual "
             "connection. That is done outside the feed-forward part."),
        Edit(HALVES, "((x @ expand.T)[..., ::2], (x @ expand.T)[..., 1::2])", "You separate "
             "even and odd numbers. The halves are the first F and the last F."),
        Edit(WIDTH, "plain_width", "Your width is unchanged. The gate adds a third matrix, so "
             "the part would be half as large again."),
        Edit(WIDTH, "plain_width // 2", "You halve the width. That keeps the first layer's size "
             "(2F for F), but the second becomes half as large: count all three matrices, 3·H·F."),
        Edit(WIDTH, "3 * plain_width // 2", "Your fraction is inverted: with 3/2 of the width the "
             "part would be more than twice as large."),
        Edit(WIDTH, "plain_width // 3", "With a third of the width the part is half as large. "
             "3·H·F must equal 2·H·plain_width."),
        Edit(WIDTH, "4 * plain_width // 3", "This is 2F, the number of rows of `expand`. Return "
             "F, the width after the gate."),
        Edit(WIDTH, "-(-2 * plain_width // 3)", "You round up. Then the part is a little larger "
             "than the plain one, which is not allowed."),
        Edit(WIDTH, "round(2 * plain_width / 3)", "You round to the nearest. If that is up, the "
             "part is a little larger than the plain one, which is not allowed."),
        Edit(WIDTH, "2 * (plain_width // 3)", "You round before you double, so you lose a unit "
             "that would still fit. Multiply first: 2 * plain_width // 3."),
        Edit(WIDTH, "contract.shape[1]", "This is the F of the given matrices. Return how wide a "
             "gated part may be, compared with a plain one of `plain_width`."),
        Edit(WIDTH, "2 * plain_width * x.shape[-1] // 3", "The hidden size is still in it. It is "
             "on both sides of 3·H·F = 2·H·plain_width, and cancels."),
    ),
)  # fmt: skip
