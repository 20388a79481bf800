"""Exercise 12.5: a normalisation that costs nothing. I numbers in, O out."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def folded(weight: Tensor, bias: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """γ∘(W x + b) + β as one dense layer: (O, I), (O,), (O,), (O,) -> (O, I) and (O,)."""
    return gamma[:, None] * weight, gamma * bias + beta


# ---------------------------------------------------------------- cases


def case(draw: Draw, outputs: int, inputs: int) -> Case:
    """Trained ones: γ is near 1, and negative here and there."""
    gamma = 1 + 0.6 * draw.normal(outputs)
    gamma[draw.integer(0, outputs - 1)] = -0.7
    return draw.normal(outputs, inputs), draw.normal(outputs), gamma, draw.normal(outputs)


def by_hand(draw: Draw) -> list[Case]:
    inputs = ([[1, 2], [3, 4]], [1, 1], [10, 2], [5, 7])
    return [tuple(torch.tensor(x, dtype=torch.float64) for x in inputs), case(draw, 2, 2)]


WEIGHT, BIAS = "gamma[:, None] * weight", "gamma * bias + beta"

FOLDING = Exercise(
    **written("12.5"),
    solution=folded,
    returns=(Numbers("weight", shape="O I"), Numbers("bias", shape="O")),
    see="course_lib.family.mobilebert.Bottleneck has the two layers apart, as they are trained",
    when_raised=(
        (r"size of tensor", "γ has one number per *output*, a row of the weight: gamma[:, None] "
         "is (O, 1) and is broadcast along the row."),
        (r"mat|shapes cannot be multiplied", "γ multiplies each output: gamma[:, None] * weight, "
         "or torch.diag(gamma) @ weight."),
    ),
    stages=(
        Stage("two in, two out", by_hand),
        Stage("a bottleneck: more in than out", each(case, (2, 5), (3, 7))),
        Stage("more out than in", each(case, (5, 2), (6, 3))),
    ),
    mistakes=(
        Edit(WEIGHT, "weight * gamma", "You scale the columns, which belong to the inputs. γ "
             "scales the *outputs*: the rows."),
        Edit(WEIGHT, "weight", "Your weight is unchanged. γ multiplies the whole output, W x "
             "included."),
        Edit(WEIGHT, "weight + gamma[:, None]", "γ is added to the weight. It multiplies."),
        Edit(WEIGHT, "weight / gamma[:, None]", "The weight is divided by γ. It is multiplied."),
        Edit(WEIGHT, "gamma[:, None] * weight + beta[:, None]", "β is in the weight, where the "
             "inputs multiply it. It belongs to the bias alone."),
        Edit(WEIGHT, "gamma.mean() * weight", "You take one γ for all outputs, its mean. Each row "
             "has its own."),
        Edit(WEIGHT, "gamma[:, None] * (weight - weight.mean(dim=0))", "You subtract the mean, as "
             "LayerNorm does. NoNorm has no mean and no variance; that is why it can be folded."),
        Edit(BIAS, "gamma * (bias + beta)", "You scale β, too. It is added after the "
             "multiplication by γ."),
        Edit(BIAS, "beta", "The old bias is left out. γ · b is part of it."),
        Edit(BIAS, "bias", "Your bias is unchanged. It becomes γ · b + β."),
        Edit(BIAS, "bias + gamma * beta", "γ and the two biases are mixed up: γ multiplies the old "
             "bias b, β is added as it is."),
        Edit(BIAS, "gamma + bias + beta", "γ is added to the bias. It multiplies."),
        Edit(BIAS, "bias / gamma + beta", "The bias is divided by γ. It is multiplied."),
        Edit(BIAS, "gamma @ bias + beta", "γ @ b is one number, the sum of all products. Each "
             "output has its own: γ * b."),
        Edit(WEIGHT, "weight * gamma", "This folds a NoNorm that stands *before* the layer: W (γ∘x "
             "+ β) + b. Here it comes after.", more=((BIAS, "weight @ beta + bias"),)),
    ),
)  # fmt: skip
