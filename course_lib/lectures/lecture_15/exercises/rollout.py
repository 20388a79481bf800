"""Exercise 15.4: attention rollout. L layers, B pictures, A heads, T tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def rollout(attentions: Tensor) -> Tensor:
    """How much of each input token is in each output token: (L, B, A, T, T) -> (B, T, T)."""
    heads = attentions.mean(dim=2)
    eye = torch.eye(attentions.shape[-1], dtype=attentions.dtype)
    both = heads + eye  # attention, and the residual connection beside it
    steps = both / both.sum(dim=-1, keepdim=True)
    joint = steps[0]
    for step in steps[1:]:
        joint = step @ joint
    return joint


# ---------------------------------------------------------------- cases


def case(draw: Draw, L: int, B: int, A: int, T: int) -> Case:
    return ((2 * draw.normal(L, B, A, T, T)).softmax(dim=-1),)


def by_hand(draw: Draw) -> list[Case]:
    first = torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    second = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    pairs = ((first, second), (second, first), (first, first.flip(1)))
    return [(torch.stack(pair)[:, None, None],) for pair in pairs]


HEADS, BOTH = "attentions.mean(dim=2)", "heads + eye"
STEPS = "both / both.sum(dim=-1, keepdim=True)"
STEP, LOOP, RETURN = "step @ joint", "steps[1:]", "return joint"

ROLLOUT = Exercise(
    **written("15.4"),
    solution=rollout,
    returns=Numbers("rollout", shape="B T T"),
    when_raised=(
        (r"dtype", "Both sides of @ must have one type. torch.eye(T, dtype=attentions.dtype) gives "
         "an identity of the attentions' type; torch.eye(T) is float32."),
        (r"shape|size|dimension|multiplied", "attentions[0] is the first layer's, (B, A, T, T). "
         "The mean over the heads leaves (B, T, T), and @ multiplies image by image."),
    ),
    stages=(
        Stage("two layers on paper", by_hand),
        Stage("one layer, one head", each(case, (1, 1, 1, 3), (1, 2, 1, 4))),
        Stage("one layer, several heads", each(case, (1, 1, 3, 4), (1, 2, 2, 5))),
        Stage("two layers", each(case, (2, 1, 2, 4), (2, 3, 3, 3))),
        Stage("many layers", each(case, (4, 2, 2, 5), (5, 1, 3, 4), (12, 2, 2, 3))),
    ),
    mistakes=(
        Edit(STEP, "joint @ step", "Your product has the wrong order. The last layer reads the "
             "outputs of the layers before, so its matrix is on the left."),
        Edit(BOTH, "heads", "You left out the identity. The residual connection also passes each "
             "token on."),
        Edit(STEPS, "both", "The rows are not normalised: with the identity each adds up to 2. "
             "Divide each row by its sum."),
        Edit(STEPS, "both / both.sum(dim=-2, keepdim=True)", "You normalise the columns. A *row* "
             "says what a token is made of, and must add up to 1."),
        Edit(STEPS, "both.softmax(dim=-1)", "You normalise with a softmax, which attention has "
             "already applied: divide each row by its sum."),
        Edit(BOTH, "heads + 2 * eye", "The identity counts twice. It counts as much as attention."),
        Edit(HEADS, "attentions.sum(dim=2)", "You add up the heads, so that the residual "
             "connection counts less the more heads there are. Take their mean."),
        Edit(HEADS, "attentions.amax(dim=2)", "You take the largest of the heads. Expected their "
             "mean."),
        Edit(HEADS, "attentions.amin(dim=2)", "You take the smallest of the heads. Expected their "
             "mean."),
        Edit(HEADS, "attentions[:, :, 0]", "You take the first head alone. Expected the mean over "
             "all."),
        Edit(HEADS, "attentions", "You multiply head by head and take the mean at the end. A head "
             "of the next layer reads what *all* heads have written: take the mean first.",
             more=((RETURN, "return joint.mean(dim=1)"),)),
        Edit(HEADS, "attentions", "The heads are still apart. A head of the next layer reads what "
             "*all* heads have written: take their mean first."),
        Edit(HEADS, "attentions.mean(dim=1)", "You take the mean over the images, the second "
             "axis. The heads are the third."),
        Edit(STEP, "step * joint", "You multiply entry by entry. Paths from token to token by way "
             "of others are a product of matrices: @."),
        Edit(STEP, "joint + step", "You add the layers up. One follows the other: multiply."),
        Edit(RETURN, "return steps.mean(dim=0)", "You take the mean over the layers. One follows "
             "the other: multiply."),
        Edit(RETURN, "return steps[-1]", "This is the last layer alone. What it reads is mixed "
             "already: multiply by the layers before."),
        Edit(RETURN, "return heads[-1]", "This is the attention of the last layer alone. What it "
             "reads is mixed already: multiply by the layers before, each with its residual "
             "connection."),
        Edit(RETURN, "return steps[0]", "This is the first layer alone. Multiply by those after "
             "it."),
        Edit(LOOP, "steps", "The first layer counts twice: it is your start, and the loop begins "
             "with it again."),
        Edit(LOOP, "steps[1:-1]", "The last layer is missing: the loop ends one too early."),
        Edit(RETURN, "return joint.transpose(-1, -2)", "Rows and columns are exchanged: row i says "
             "what token i is made of, so rows must add up to 1."),
        Edit(RETURN, "return joint[:, 0]", "This is the class token's row alone. Return all rows; "
             "[:, 0] takes it from them."),
        Edit(RETURN, "return joint[:, 0, 1:]", "This is the class token's row, without itself: "
             "the image's map. Return all rows; [:, 0, 1:] takes it from them."),
    ),
)  # fmt: skip
