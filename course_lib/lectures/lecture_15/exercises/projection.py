"""Exercise 15.2: one convolution is one matrix. B pictures, C channels, N patches, H hidden."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def project(pictures: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(B, C, height, width), (H, C, P, P), (H,) -> (B, N, H), without a convolution."""
    P = weight.shape[-1]
    squares = pictures.unfold(2, P, P).unfold(3, P, P)  # (B, C, row, column, P, P)
    patches = squares.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)  # (B, N, C·P·P)
    matrix = weight.flatten(1).T  # (C·P·P, H)
    return patches @ matrix + bias


# ---------------------------------------------------------------- cases


def case(draw: Draw, B: int, C: int, rows: int, columns: int, P: int, H: int) -> Case:
    pictures = draw.normal(B, C, rows * P, columns * P)
    return pictures, draw.normal(H, C, P, P), draw.normal(H)


def by_hand(draw: Draw) -> list[Case]:
    picture = torch.arange(1.0, 9.0, dtype=torch.float64).reshape(1, 1, 2, 4)
    weight = torch.tensor([[[[1.0, 0.0], [2.0, -1.0]]]], dtype=torch.float64)
    ten = torch.tensor([10.0], dtype=torch.float64)
    return [(picture, weight, ten), (picture, draw.normal(1, 1, 2, 2), ten), (picture**2, weight,
                                                                             -ten)]  # fmt: skip


SQUARES = "pictures.unfold(2, P, P).unfold(3, P, P)"
PATCHES = "squares.permute(0, 2, 3, 1, 4, 5)"
MATRIX, RETURN = "weight.flatten(1).T", "patches @ matrix + bias"

PROJECTION = Exercise(
    **written("15.2"),
    solution=project,
    returns=Numbers("tensor of vectors", shape="B N H"),
    library=("course_lib.family.vit:project_by_product",),
    forbidden={
        r"_?conv(\d|_|olution)\w*": "Show that a matrix will do: cut the patches, then one product."
    },
    when_raised=(
        (r"mat1 and mat2|multiplied|size mismatch|expanded size|inner|must match|operand",
         "Patches are (B, N, C·P·P), so multiply them by a matrix (C·P·P, H). weight.flatten(1) "
         "is (H, C·P·P): transpose it."),
    ),
    stages=(
        Stage("two patches on paper", by_hand),
        Stage("grey images", each(case, (1, 1, 2, 3, 2, 4), (1, 1, 3, 1, 3, 2))),
        Stage("several channels", each(case, (1, 3, 2, 2, 2, 5), (1, 2, 1, 3, 3, 4))),
        Stage("several images", each(case, (2, 3, 2, 3, 2, 4), (3, 2, 3, 2, 3, 5))),
    ),
    mistakes=(
        Edit(MATRIX, "weight.flip(2, 3).flatten(1).T", "You flip the kernel, as in a mathematical "
             "convolution. torch's does not flip it: pixel and weight of the same place are "
             "multiplied."),
        Edit(MATRIX, "weight.permute(0, 2, 3, 1).flatten(1).T", "In your matrix the channels come "
             "last, in your patches first. Both need the same order: (C, y, x)."),
        Edit(PATCHES, "squares.permute(0, 2, 3, 4, 5, 1)", "In your patches the channels come "
             "last, in your matrix first. Both need the same order: (C, y, x)."),
        Edit(MATRIX, "weight.transpose(2, 3).flatten(1).T", "Height and width of the kernel are "
             "exchanged: you multiply a patch's lines by the kernel's columns."),
        Edit(MATRIX, "weight.reshape(-1, len(weight))", "A reshape to (C·P·P, H) mixes the kernels "
             "of several outputs. First weight.flatten(1), (H, C·P·P), then transpose."),
        Edit(RETURN, "(patches + bias.mean()) @ matrix", "You add the bias before the product. Add "
             "it to the result."),
        Edit(RETURN, "patches @ matrix / len(matrix) + bias", "You take the mean over a patch's "
             "numbers. The product is a sum."),
        Edit(RETURN, "patches @ matrix + bias * len(matrix)", "You add the bias once for every "
             "pixel. Add it once to each output."),
        Edit(RETURN, "patches @ matrix + bias * pictures.shape[1]", "You add the bias once for "
             "every channel. Add it once to each output."),
        Edit(RETURN, "(patches @ matrix + bias).transpose(1, 2)", "The last two axes are "
             "exchanged, as a convolution returns them. Patches are the second axis, as tokens "
             "are."),
        Edit(RETURN, "(patches @ matrix + bias).transpose(1, 2).unflatten(2, squares.shape[2:4])",
             "This is (B, H, rows, columns), as the convolution returns it. An encoder reads "
             "(B, N, H): flatten the grid, exchange the last two axes."),
        Edit(RETURN, "(patches @ matrix + bias).unflatten(1, squares.shape[2:4])", "Rows and "
             "columns of patches are still two axes. The encoder reads one sequence: flatten them "
             "into N."),
        Edit(PATCHES, "squares.reshape(len(squares), *squares.shape[2:4], -1, P, P)", "You reshape "
             "where axes must be permuted: the channels still come before the patches, so a row "
             "holds patches of one colour."),
        Edit(PATCHES, "squares.permute(0, 3, 2, 1, 4, 5)", "Your patches come column by column. In "
             "reading order they go from left to right, then the next row of patches."),
        Edit(PATCHES, "squares.permute(0, 2, 3, 1, 5, 4)", "Inside a patch you read column by "
             "column; the kernel is read line by line."),
        Edit(SQUARES, "pictures.unfold(2, P, 1).unfold(3, P, 1)", "Your stride is one pixel, so "
             "patches overlap. This convolution's stride is the width of its kernel."),
        Edit(MATRIX, "weight.mean(1, keepdim=True).expand_as(weight).flatten(1).T", "All channels "
             "have the same weights in your matrix, their mean. Each channel has its own."),
        Edit(MATRIX, "weight[:, :1].expand_as(weight).flatten(1).T", "You use the first channel's "
             "weights for all channels. Each has its own."),
        Edit(SQUARES, "pictures.reshape(*pictures.shape[:2], pictures.shape[2] // P, -1, P, P)",
             "You only reshape the image: P·P neighbouring numbers in memory are not a square. "
             "Cut as in 15.1."),
    ),
)  # fmt: skip
