"""Exercise 15.5: the pixels of hidden patches. B pictures, C channels, N patches."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number, Numbers


def hidden_loss(
    reconstruction: Tensor, pictures: Tensor, hidden: Tensor, P: int
) -> tuple[Tensor, Tensor]:
    """Which pixels are targets, (B, C, height, width) bool, and the mean squared error of these."""
    B, C, height, width = pictures.shape
    grid = hidden.reshape(B, 1, height // P, width // P)
    pixels = grid.repeat_interleave(P, 2).repeat_interleave(P, 3).expand(B, C, height, width)
    apart = (reconstruction - pictures).square()
    return pixels, apart[pixels].sum() / pixels.sum().clamp(min=1)


# ---------------------------------------------------------------- cases


def case(draw: Draw, B: int, C: int, rows: int, columns: int, P: int) -> Case:
    """Each picture hides another number of patches, the first one of them."""
    shape = B, C, rows * P, columns * P
    N = rows * columns
    ranks = torch.rand(B, N, generator=draw.torch).argsort(1).argsort(1)
    counts = 1 + torch.arange(B)[:, None] % (N - 1)
    return draw.normal(*shape), draw.normal(*shape), ranks < counts, P


def by_hand(draw: Draw) -> list[Case]:
    picture = torch.tensor([[[[0.0, 1.0, 0.7, 0.2], [1.0, 0.5, 0.3, 0.9]]]], dtype=torch.float64)
    half = torch.full_like(picture, 0.5)
    left, right = torch.tensor([[True, False]]), torch.tensor([[False, True]])
    return [(half, picture, left, 2), (half, picture, right, 2), (half, picture**2, left, 2)]


def nothing(draw: Draw) -> list[Case]:
    """No patch is hidden; all are; and one picture hides none, the others some."""
    cases = []
    for value in (False, True):
        reconstruction, pictures, hidden, P = case(draw, 2, 2, 2, 3, 2)
        cases.append((reconstruction, pictures, torch.full_like(hidden, value), P))
    reconstruction, pictures, hidden, P = case(draw, 3, 1, 2, 2, 2)
    hidden[draw.integer(0, 2)] = False
    return [*cases, (reconstruction, pictures, hidden, P)]


GRID = "hidden.reshape(B, 1, height // P, width // P)"
PIXELS = "grid.repeat_interleave(P, 2).repeat_interleave(P, 3).expand(B, C, height, width)"
APART = "(reconstruction - pictures).square()"
LOSS = "apart[pixels].sum() / pixels.sum().clamp(min=1)"
MASK = "mask of pixels"

HIDDEN = Exercise(
    **written("15.5"),
    solution=hidden_loss,
    returns=(Numbers(MASK, shape="B C height width", kind="bool"), Number("loss")),
    see="course_lib.objectives.masked_patches: masked_patch_batch writes −100 at pixels that do "
    "not count, masked_patch_loss leaves them out",
    infinite="Your loss is not a finite number. Where no patch is hidden, a mean divides by 0: "
    "return 0.",
    when_raised=(
        (r"mask|index|boolean", "A mask that picks pixels has the pixels' shape, (B, C, height, "
         "width), and is bool."),
        (r"shape|size|dimension", "`hidden` is (B, N): make it a grid (B, 1, height // P, width // "
         "P), then repeat each entry P times downwards and P times to the right."),
    ),
    stages=(
        Stage("the pixels of two patches on paper", by_hand, only=(MASK,)),
        Stage("the pixels of grey images", each(case, (2, 1, 2, 3, 2), (3, 1, 3, 2, 3)),
              only=(MASK,)),
        Stage("the pixels of several channels", each(case, (2, 3, 2, 3, 2), (3, 2, 3, 2, 3)),
              only=(MASK,)),
        Stage("the loss on paper", by_hand),
        Stage("the loss of one image", each(case, (1, 2, 2, 3, 2), (1, 3, 3, 2, 2))),
        Stage("the loss of several images", each(case, (3, 2, 2, 3, 2), (4, 1, 2, 4, 3))),
        Stage("nothing is hidden, or everything", nothing),
    ),
    mistakes=(
        Edit(GRID, "~hidden.reshape(B, 1, height // P, width // P)", "Your mask is True at the "
             "pixels that can be *seen*. Targets are the hidden ones."),
        Edit(PIXELS, "grid.repeat(1, 1, P, P).expand(B, C, height, width)", "`repeat` lays P·P "
             "copies of the whole grid side by side. Each *entry* becomes P × P pixels: "
             "repeat_interleave, along both axes."),
        Edit(GRID, "hidden.reshape(B, 1, width // P, height // P).transpose(2, 3)", "Your patches "
             "are numbered column by column. In reading order they go from left to right, then "
             "the next row."),
        Edit(PIXELS, "grid.repeat_interleave(P, 2).repeat(1, 1, 1, P).expand(B, C, height, width)",
             "You repeat each entry downwards, but the whole row to the right. Use "
             "repeat_interleave along both axes."),
        Edit(PIXELS, "grid.repeat_interleave(P, 3).repeat(1, 1, P, 1).expand(B, C, height, width)",
             "You repeat each entry to the right, but the whole grid downwards. Use "
             "repeat_interleave along both axes."),
        Edit(PIXELS, "hidden.repeat_interleave(P * P, 1).reshape(B, 1, height, width).expand("
             "B, C, height, width)", "You repeat each entry P·P times in a row: a strip along the "
             "image's lines, not a square. First the grid, then P times along each axis."),
        Edit("return pixels,", "return pixels[:, :1],", "Your mask has one channel. A hidden patch "
             "is hidden in all C."),
        Edit("return pixels,", "return pixels[:, 0],", "Your mask has no channels: (B, height, "
             "width). A hidden patch is hidden in all C of them."),
        Edit("return pixels,", "return hidden,", "This is `hidden` itself, one entry per patch. "
             "Return one per pixel and channel."),
        Edit(LOSS, "apart.mean()", "This is the error of all pixels. Visible pixels do not count: "
             "the model could simply copy them."),
        Edit(LOSS, "apart[~pixels].sum() / (~pixels).sum().clamp(min=1)", "This is the error of "
             "the patches that can be *seen*. The hidden ones count."),
        Edit(LOSS, "(apart * pixels).mean()", "The errors of visible patches are set to 0, but you "
             "still divide by the number of all pixels. The loss would then grow with the fraction "
             "of hidden patches."),
        Edit(LOSS, "apart[pixels].sum()", "This is the sum. Expected the mean: the loss of a batch "
             "must not grow with the size of its images."),
        Edit(LOSS, "apart[pixels].sum() / hidden.sum().clamp(min=1)", "You divide by the number of "
             "hidden patches. Each has C·P·P numbers; the mean is over all of those."),
        Edit(LOSS, "apart[pixels].sum() / pixels[:, 0].sum().clamp(min=1)", "You divide by the "
             "number of hidden pixels. Each pixel has C numbers, and the mean is over "
             "numbers."),
        Edit(LOSS, "((apart * pixels).sum((1, 2, 3)) / pixels.sum((1, 2, 3)).clamp(min=1)).mean()",
             "You take each image's mean, then the mean of these. Pixels of an image with few "
             "hidden patches would count more: take one mean over the whole batch."),
        Edit(LOSS, "apart[pixels].sum() / len(apart)", "You divide by the number of images. "
             "Expected the mean over the hidden pixels and channels."),
        Edit(APART, "(reconstruction - pictures).abs()", "This is the absolute error. Expected the "
             "squared one."),
        Edit(APART, "(reconstruction - pictures * ~pixels).square()", "You compare with the "
             "model's input, in which hidden patches are 0. The targets are the true pixels of "
             "the hidden patches."),
        Edit(".clamp(min=1)", "", "If nothing is hidden, your mean is 0 / 0, which is nan. "
             "Return a loss of 0, or one such batch turns all weights into nan."),
    ),
)  # fmt: skip
