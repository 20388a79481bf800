"""Exercise 15.1: pictures as sequences of patches. B pictures, C channels, N patches."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def cut(pictures: Tensor, P: int) -> Tensor:
    """(B, C, height, width) -> (B, N, C·P·P), in reading order."""
    B, C, height, width = pictures.shape
    split = pictures.reshape(B, C, height // P, P, width // P, P)
    order = split.permute(0, 2, 4, 1, 3, 5)  # (B, row, column, C, y, x)
    return order.reshape(B, -1, C * P * P)


# ---------------------------------------------------------------- cases


def case(draw: Draw, B: int, C: int, rows: int, columns: int, P: int) -> Case:
    return draw.normal(B, C, rows * P, columns * P), P


def by_hand(draw: Draw) -> list[Case]:
    numbers = torch.arange(36, dtype=torch.float64)
    return [(numbers[:16].reshape(1, 1, 4, 4), 2), (numbers.reshape(1, 1, 6, 6), 3),
            (10 * numbers[:16].reshape(1, 1, 4, 4), 2)]  # fmt: skip


SPLIT = "pictures.reshape(B, C, height // P, P, width // P, P)"
ORDER = "split.permute(0, 2, 4, 1, 3, 5)"
RETURN = "order.reshape(B, -1, C * P * P)"

CUTTING = Exercise(
    **written("15.1"),
    solution=cut,
    returns=Numbers("tensor of patches", shape="B N C·P·P"),
    library=("course_lib.images:cut_patches",),
    when_raised=(
        (r"view size is not compatible|view\(", "After permute the numbers are in another order "
         "in memory: reshape copies them, view cannot."),
        (r"shape|size|dimension|invalid", "height / P rows of patches, width / P columns: six axes "
         "hold all pixels, (B, C, height // P, P, width // P, P)."),
    ),
    stages=(
        Stage("square grey images, on paper", by_hand),
        Stage("images that are not square",
              each(case, (1, 1, 2, 3, 2), (1, 1, 4, 2, 3), (1, 1, 1, 3, 4))),
        Stage("several channels", each(case, (1, 3, 2, 3, 2), (1, 2, 3, 2, 3))),
        Stage("several images", each(case, (2, 3, 3, 2, 2), (3, 2, 2, 4, 2), (4, 3, 2, 2, 1))),
        Stage("one patch is the image", each(case, (2, 3, 1, 1, 4), (3, 1, 1, 1, 3))),
    ),
    mistakes=(
        Edit(ORDER, "split", "You only reshape: your first row holds the first C·P·P numbers in "
             "memory, a piece of the first lines. A patch also has pixels of the lines below: "
             "permute the axes first."),
        Edit(ORDER, "split.permute(0, 4, 2, 1, 3, 5)", "Your patches come column by column. In "
             "reading order they go from left to right, then the next row of patches."),
        Edit(ORDER, "split.permute(0, 2, 4, 3, 5, 1)", "In each patch your channels come last: all "
             "colours of the first pixel, then the next pixel, as in the authors' code. Expected "
             "channel by channel, as in a convolution's weight."),
        Edit(ORDER, "split.permute(0, 2, 4, 1, 5, 3)", "Inside a patch you read column by column. "
             "Expected line by line."),
        Edit(ORDER, "split.permute(0, 2, 4, 5, 3, 1)", "In each patch your columns come before the "
             "lines, and the channels come last. Expected (C, y, x)."),
        Edit(ORDER, "split.permute(0, 4, 2, 1, 5, 3)", "Height and width are exchanged: patches "
             "and their pixels are read column by column."),
        Edit(ORDER, "split.permute(0, 1, 2, 4, 3, 5)", "Your channels come before the patches, so "
             "a row holds patches of one colour. Each patch has all of its C channels."),
        Edit(SPLIT, "pictures.reshape(B, C, P, height // P, P, width // P)", "You split each "
             "axis the wrong way round: your patch takes pixels that are height / P apart. Of "
             "(height // P, P) the second is the pixel inside the patch.",
             more=((ORDER, "split.permute(0, 3, 5, 1, 2, 4)"),)),
        Edit(SPLIT, "pictures.reshape(B, C, P, height // P, P, width // P)", "You cut the image "
             "into P times P patches. P is a patch's height and width in *pixels*.",
             more=((RETURN, "order.reshape(B, P * P, -1)"),)),
        Edit(SPLIT, "pictures.reshape(B, C, width // P, P, height // P, P)", "Rows and columns are "
             "exchanged: the third axis, height, is split first."),
        Edit(SPLIT, "pictures.unfold(2, P, 1).unfold(3, P, 1)", "Your patches overlap: each begins "
             "one pixel after the last. They begin P pixels apart.",
             more=((ORDER, "split.permute(0, 2, 3, 1, 4, 5)"),)),
        Edit(RETURN, "order.reshape(B, -1, C * P * P).transpose(1, 2)", "The last two axes are "
             "exchanged, as F.unfold returns them. Patches are the second axis, as tokens are."),
        Edit(RETURN, "order.reshape(B * (height // P) * (width // P), C * P * P)", "All images' "
             "patches are in one list. Each image has its own: (B, N, C·P·P)."),
        Edit(RETURN, "order.flatten(3)", "Rows and columns of patches are still two axes. The "
             "encoder reads one sequence: flatten them into N."),
        Edit(RETURN, "order.flatten(1, 2)", "A patch is still a small image (C, P, P). "
             "It must become one row of C·P·P numbers."),
        Edit(RETURN, "order[:, :, :, 0].reshape(B, -1, P * P)", "You keep only the first channel. "
             "All C belong to the patch."),
        Edit(RETURN, "order.mean(3).reshape(B, -1, P * P)", "You take the mean over the channels: "
             "the colour is gone. A patch keeps all C."),
        Edit(RETURN, "order.mean((4, 5)).reshape(B, -1, C)", "You take each patch's mean. It keeps "
             "all of its pixels; the matrix that follows decides what counts."),
    ),
)  # fmt: skip
