"""Exercise 12.6: weights in eight bits. O outputs, I inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Exact, Numbers


def quantized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers from −127 to 127 and the step of each row: (O, I) -> (O, I) int8 and (O,)."""
    largest = weight.abs().amax(dim=1)
    scale = torch.where(largest > 0, largest / 127, 1.0)  # a row of zeros: any step will do
    whole = (weight / scale[:, None]).round()
    return whole.to(torch.int8), scale


# ---------------------------------------------------------------- cases


def case(draw: Draw, outputs: int, inputs: int) -> Case:
    """Rows of different size; the largest weight is negative in one row, positive in another."""
    weight = 0.3 * draw.normal(outputs, inputs) * 2.0 ** torch.arange(outputs)[:, None]
    place = weight.abs().argmax(dim=1, keepdim=True)
    ends = weight.abs().amax(dim=1, keepdim=True)
    signs = torch.where(torch.arange(outputs) % 2 == 0, -1.2, 1.2)[:, None]
    return (weight.scatter(1, place, ends * signs),)


def by_hand(draw: Draw) -> list[Case]:
    weight = torch.tensor([[0.504, -1.27, 0.298], [0.1, 0.0326, 2.54]], dtype=torch.float64)
    return [(weight,), (weight[:1],), (weight[1:],)]


def with_zeros(draw: Draw, outputs: int, inputs: int) -> Case:
    """A row of zeros, and one whose sum alone is 0."""
    (weight,) = case(draw, outputs, inputs)
    zeros, balanced = draw.python.sample(range(outputs), 2)
    weight[[zeros, balanced]] = 0
    weight[balanced, 0], weight[balanced, 1] = 0.5, -0.5
    return (weight,)


def one_scale(weight: Tensor) -> tuple[Tensor, Tensor]:
    """A known mistake: one number for the whole matrix."""
    scale = weight.abs().max() / 127
    return (weight / scale).round().to(torch.int8), scale


def type_of(function: Any, weight: Tensor) -> str:
    return str(getattr(function(weight)[0], "dtype", "no tensor")).removeprefix("torch.")


LARGEST, WHOLE = "weight.abs().amax(dim=1)", "(weight / scale[:, None]).round()"
SCALE = "torch.where(largest > 0, largest / 127, 1.0)"
INT, SCALES = ".to(torch.int8)", "tensor of scales"

INT8 = Exercise(
    **written("12.6"),
    solution=quantized,
    returns=(Numbers("matrix of whole numbers", shape="O I", kind="int"),
             Numbers(SCALES, shape="O")),
    see="course_lib.bench.serving.in_int8 leaves it to torch, which takes one scale a matrix",
    infinite="Not all of it is a finite number: a row of zeros has largest weight 0, and 0 / 0 is "
    "nan.",
    when_raised=(
        (r"return_types", ".max(dim) gives the values and their indices: .amax(dim) gives the "
         "values alone."),
        (r"size of tensor", "There is one scale per row: scale[:, None] is (O, 1) and is broadcast "
         "along the row."),
    ),
    stages=(
        Stage("the scales on paper", by_hand, only=(SCALES,)),
        Stage("scales of any rows", each(case, (3, 5), (4, 7), (2, 9)), only=(SCALES,)),
        Stage("whole numbers on paper", by_hand),
        Stage("whole numbers of any rows", each(case, (3, 6), (4, 8), (5, 4))),
        Stage("a row of zeros", each(with_zeros, (3, 4), (4, 5))),
        Stage("eight bits", each(case, (2, 4)), observe=type_of,
              returns=Exact("type of the whole numbers", what="int8")),
    ),
    mistakes=(
        Edit(LARGEST, "weight.amax(dim=1)", "You take the largest weight, not the largest "
             "*absolute* one. A row whose largest is negative then does not fit into −127 to 127."),
        Edit("largest / 127", "largest / 128", "You divide by 128. int8 ends at 127, so the "
             "largest weight would be one too large for it."),
        Edit("largest / 127", "largest / 255", "You divide by 255, the steps from −128 to 127. On "
             "each side of 0 there are only 127."),
        Edit("largest / 127", "largest / 256", "You divide by 256. On each side of 0 there are "
             "127 steps."),
        Edit("largest / 127", "largest / 127.5", "You divide by 127.5, so that −128 is used, too, "
             "as in torch's dynamic quantisation. Here both signs have the same range: 127."),
        Edit("largest / 127", "(weight.amax(dim=1) - weight.amin(dim=1)) / 255", "You divide the "
             "distance from the smallest to the largest weight by 255. That needs a zero point; "
             "symmetric quantisation divides max |w| by 127."),
        Edit("largest / 127", "largest", "Your scale is the largest weight. A *step* is 1/127 of "
             "it."),
        Edit("largest / 127", "127 / largest", "Your scale is inverted: it is the number of steps "
             "per unit. Return the size of a step, so that whole · scale gives the weight back."),
        Edit(LARGEST, "weight.abs().max().expand(len(weight))", "All rows have one scale, that of "
             "the largest row, as in torch's dynamic quantisation. Small rows then have few "
             "steps: take the maximum of each row."),
        Other(one_scale, "You have one scale for the whole matrix. Take one per row: "
              "amax(dim=1)."),
        Edit(LARGEST, "weight.abs().amax(dim=0)", "Your scales belong to the columns, the inputs. "
             "An output sums along its row, so only a row's scale can be factored out of the sum.",
             more=(("scale[:, None]", "scale"),)),
        Edit(LARGEST, "weight.abs().mean(dim=1)", "You take the mean of |w|. The largest must fit, "
             "too."),
        Edit("largest / 127", "weight.std(dim=1) / 127", "You take the standard deviation. The "
             "largest weight must fit, too: max |w|."),
        Edit(WHOLE, "(weight / scale[:, None]).trunc()", "You drop the decimals, which "
             ".to(torch.int8) does silently. Round to the nearest first; the largest error is then "
             "half as large."),
        Edit(WHOLE, "(weight / scale[:, None]).floor()", "You round down. That makes all weights a "
             "little smaller; round to the nearest."),
        Edit(WHOLE, "(weight / scale[:, None]).ceil()", "You round up. Round to the nearest."),
        Edit(WHOLE, "(weight / scale[:, None] + 0.5).trunc()", "You add 0.5 and cut off. Below "
             "zero that rounds the wrong way: −1.9 becomes −1. Use round."),
        Edit(WHOLE, "(weight.abs() / scale[:, None]).round()", "The signs are lost: use |w| for "
             "the scale alone."),
        Edit(WHOLE, "(weight * scale[:, None]).round()", "You multiply by the scale, so nearly "
             "everything rounds to 0. Divide; multiplying brings the weights back."),
        Edit(WHOLE, "(weight / scale[:, None]).round() + 128", "You have added a zero point, 128. "
             "Symmetric means that 0 stays 0.", more=((INT, ".to(torch.uint8)"),)),
        Edit(WHOLE, "(weight / scale[:, None]).round() * scale[:, None]", "You have multiplied by "
             "the scale again: these are the rounded *weights*. Return the whole numbers.",
             more=((INT, ""),)),
        Edit(SCALE, "torch.where(largest > 0, largest, 1.0) / 127", "A row of zeros has scale "
             "1/127 in your answer. That does no harm, but the exercise wants 1: set it after the "
             "division."),
        Edit(SCALE, "largest / 127", "A row of zeros has a scale of (almost) 0 in your answer. "
             "Dividing by that gives nan, and no rule says which whole number a nan becomes. "
             "Return a scale of 1."),
        Edit(INT, ".to(torch.int32)", "Your whole numbers take four bytes each. "
             "Nothing is saved before they are int8: .to(torch.int8)."),
        Edit(INT, ".to(torch.int64)", "Your whole numbers take eight bytes each, "
             "more than the weights did: .to(torch.int8)."),
        Edit(INT, ".to(torch.int16)", "Your whole numbers take two bytes each: "
             ".to(torch.int8)."),
    ),
)  # fmt: skip
