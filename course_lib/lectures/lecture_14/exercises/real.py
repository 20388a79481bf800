"""Exercise 14.6: a layer on real tokens alone. B sequences, T tokens, H numbers in, W out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Answer,
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Number, Numbers

Layer = Callable[[Tensor], Tensor]


def real_only(layer: Layer, x: Tensor, mask: Tensor) -> Tensor:
    """(B, T, W): the layer's outcome at real tokens, zeros at padding."""
    real = mask != 0
    done = layer(x[real])  # (N, H) -> (N, W)
    out = done.new_zeros(*mask.shape, done.shape[-1])
    out[real] = done
    return out


# ---------------------------------------------------------------- cases, and what is looked at


def case(draw: Draw, mask: Tensor, W: int | None = None) -> Case:
    """A layer whose outcome is not 0 where its input is; W is H where it is not given."""
    H = draw.integer(3, 5)
    matrix = draw.normal(H, W or H)
    return lambda part: (part @ matrix + 1.0).tanh(), draw.normal(*mask.shape, H), mask


def lengths(*real: int) -> Tensor:
    """The mask of sequences with so many real tokens, then padding, 8 in all."""
    return (torch.arange(8) < torch.tensor(real)[:, None]).long()


def at_the_end(draw: Draw) -> list[Case]:
    return [case(draw, lengths(*draw.python.sample(range(1, 8), n))) for n in (3, 4)]


def scattered(draw: Draw, B: int = 4) -> Tensor:
    """In every sequence one real token and one of padding at least, padding in front too."""
    mask = draw.ids(0, 1, B, 9)
    mask[:, 0], mask[:, 4], mask[0, 0], mask[0, 1] = 0, 1, 1, 0
    return mask


def anywhere(draw: Draw) -> list[Case]:
    return [case(draw, scattered(draw, B)) for B in (2, 4)]


def padding_alone(draw: Draw) -> list[Case]:
    some, none = lengths(draw.integer(1, 7), 0, draw.integer(1, 7)), lengths(0, 0)
    return [case(draw, some), case(draw, none), case(draw, some, 7), case(draw, none, 2)]


def other_widths(draw: Draw) -> list[Case]:
    return [case(draw, lengths(3, 7, 4), W) for W in (2, 7, 1)]


def row_count(function: Answer, layer: Layer, x: Tensor, mask: Tensor) -> int:
    rows = 0

    def counting(part: Tensor) -> Tensor:
        nonlocal rows
        rows += part.numel() // part.shape[-1]
        return layer(part)

    function(counting, x, mask)
    return rows


LEFT = "torch.arange(mask.shape[1]) < mask.sum(1, keepdim=True)"  # as many at the front as are real

REAL = Exercise(
    **written("14.6"),
    solution=real_only,
    returns=Numbers("outcome", shape="B T W"),
    library=(
        "course_lib.kernels.unpadding:Packing.unpad",
        "course_lib.kernels.unpadding:Packing.pad",
    ),
    when_raised=(
        (r"leaf [Vv]ariable|in-place operation",
         "You write into x, or into zeros made with requires_grad=True. Write into new zeros "
         "without it: gradients come through what is written."),
        (r"tensors used as indices|long, int, byte or bool",
         "An index must be whole numbers or True and False: mask != 0."),
        (r"value tensor of shape \[(\d+), \d+\].* of shape \[\1, \d+\]|equal size|ones in mask",
         "Your zeros have the width of x, H; the output has width W, which may differ. Instead of "
         "torch.zeros_like(x) use done.new_zeros(B, T, done.shape[-1]), where done is the layer's "
         "output."),
        (r"shape of the mask",
         "The zeros have a row for each real token, and none for padding. Make them (B, T, W)."),
        (r"dtypes match", "torch.zeros makes float32. done.new_zeros(…), where done is the layer's "
         "output, has the right number format."),
        (r"must match|cannot broadcast|expanded size",
         "Beside (B, T, W) a mask needs a third axis: mask[..., None]."),
        (r"shape mismatch",
         "A mask of 0 and 1 as an index picks sequences 0 and 1: write mask != 0."),
    ),
    stages=(
        Stage("no padding", each(case, *([torch.ones(2, T, dtype=torch.long)] for T in (3, 5)))),
        Stage("padding at the end", at_the_end),
        Stage("a layer that changes the width", other_widths),
        Stage("sequences and batches of padding alone", padding_alone),
        Stage("padding anywhere", anywhere),
        Stage("the layer sees real tokens only", anywhere, row_count,
              Number("number of rows given to the layer", kind="int")),
    ),
    gradient=("x",),
    mistakes=(
        Edit("return out", "return layer(x)",
             "Your result holds the layer's output at the padding, too. It must be 0 there."),
        Edit("return out", "return done", "You return only the real tokens' outputs, in a list. "
             "Put each back at its token's position: (B, T, W), zeros at padding."),
        Edit("return out", "return layer(x * mask[..., None])",
             "You set the padding to 0 before the layer, but a layer has a bias, so its output "
             "there is not 0. Put zeros into the output."),
        Edit("done.new_zeros(*mask.shape, done.shape[-1])", "x.clone()", "At the padding your "
             "result holds x. It must be 0 there: begin with zeros, not with a copy of x."),
        Edit("mask != 0", "mask == 0", "The layer works on the padding, and real tokens are 0. The "
             "mask is 1 at real tokens."),
        Edit("mask != 0", LEFT, "You take the first tokens of each sequence, as many as are real. "
             "Padding can stand anywhere, also in front: go by the mask, not by lengths."),
        Edit("out[real]", f"out[{LEFT}]", "Your outputs are at the front of each sequence. Each "
             "belongs at its token's position."),
        Edit("out[real]", "out.flatten(0, 1)[: len(done)]", "Your outputs follow each other from "
             "the first position on. Each belongs at its token's position."),
        Edit("mask != 0", "mask", "A mask of 0 and 1 as an index picks sequences 0 and 1: make it "
             "bool. x[mask] is then the list of real tokens: mask.bool(), or mask != 0."),
        Edit("mask != 0", "(mask[:1] != 0).expand_as(mask)",
             "You apply the first sequence's mask to all of them. Each has a mask of its own."),
        Edit("x[real]", "x.transpose(0, 1)[real.T]", "The list goes through the batch column by "
             "column, but you write it back row by row. Use the same order both ways."),
        Edit("done = layer(x[real])", "layer(x[0, :1])\n    done = layer(x[real])", "The layer was "
             "given an extra row, perhaps to find its width. The real tokens' output has it: "
             "done.shape[-1]."),
        Edit("layer(x[real])", "layer(x)[real]",
             "Your numbers are right, but the layer got the padding, too. It is computed even if "
             "you discard it afterwards: pick the real rows before the layer."),
        Edit("out = done", "if not len(done):\n        return torch.zeros_like(x)\n    out = done",
             "Without any real token your output has the width of x; expected W. A layer that gets "
             "no rows still shows its width: layer(x[real]) is (0, W)."),
    ),
)  # fmt: skip
