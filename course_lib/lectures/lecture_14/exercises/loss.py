"""Exercise 14.2: the masked-token loss, selected positions alone. B sequences, T tokens, H hidden,
V vocabulary, K selected positions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED
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
from course_lib.teaching.exercises.outputs import Number

Head = Callable[[Tensor], Tensor]


def masked_loss(hidden: Tensor, head: Head, labels: Tensor) -> Tensor:
    """The mean of −ln P(token) over the selected positions; 0 where there are none."""
    selected = labels != IGNORED
    states, tokens = hidden[selected], labels[selected]  # (K, H), (K,)
    losses = F.cross_entropy(head(states), tokens, reduction="none")
    return losses.sum() / max(1, len(losses))


# ---------------------------------------------------------------- cases, and what is looked at


def case(draw: Draw, B: int, T: int, K: int) -> Case:
    """K selected positions, unequally among the sequences, of more than two sequences none in the
    last; one of them is of token 0."""
    H, V = draw.integer(3, 6), draw.integer(7, 12)
    labels = torch.full((B * T,), IGNORED)
    at = torch.randperm((B - (B > 2)) * T, generator=draw.torch)[:K]
    labels[at] = draw.ids(1, V - 1, K)
    labels[at[:1]] = 0
    matrix = draw.normal(V, H)
    return draw.normal(B, T, H), lambda x: x @ matrix.T, labels.view(B, T)


def some_selected(draw: Draw) -> list[Case]:
    return [case(draw, B, T, draw.integer(4, 8)) for B, T in ((2, 11), (3, 9), (4, 8))]


none_selected = each(case, (1, 5, 0), (2, 5, 0))


def row_count(function: Answer, hidden: Tensor, head: Head, labels: Tensor) -> int:
    rows = 0

    def counting(x: Tensor) -> Tensor:
        nonlocal rows
        rows += x.numel() // x.shape[-1]
        return head(x)

    function(hidden, counting, labels)
    return rows


LOSS = Exercise(
    **written("14.2"),
    solution=masked_loss,
    returns=Number("loss"),
    library=(
        "course_lib.kernels.masked_loss:masked_loss",
        "course_lib.kernels.masked_loss:mean_cross_entropy",
    ),
    when_raised=(
        (r"Expected target size|Expected input batch_size|size mismatch|must match",
         "F.cross_entropy expects logits (K, V) and tokens (K,): pick with the same mask on both "
         "sides, or flatten (B, T, V) to (B·T, V)."),
        (r"out of bounds|out of range",
         "−100 is not a token id: leave these positions out before you look anything up."),
    ),
    stages=(
        Stage("every position selected", each(case, (1, 4, 4), (1, 6, 6), (1, 9, 9))),
        Stage("some of them selected", some_selected),
        Stage("the head sees selected rows only", some_selected, row_count,
              Number("number of rows given to the head", kind="int")),
        Stage("nothing selected", none_selected, lambda function, *inputs: function(*inputs),
              Number("loss where nothing is selected")),
    ),
    gradient=("hidden",),
    mistakes=(
        Edit("max(1, len(losses))", "labels.numel()", "The sum is divided by B·T. A position that "
             "is not selected has no loss: divide by the number of selected positions."),
        Edit(" / max(1, len(losses))", "",
             "This is the sum over the selected positions; expected their mean."),
        Edit("losses.sum() / max(1, len(losses))", "torch.stack([part.mean() for part in "
             "losses.split(selected.sum(1).tolist()) if len(part)]).mean()", "The loss is averaged "
             "in each sequence first, then over sequences. Every selected position counts the "
             "same, in whatever sequence it stands."),
        Edit("max(1, len(losses))", "len(labels)", "The sum is divided by the number of sequences; "
             "divide by the number of selected positions."),
        Edit("head(states)", "head(states).softmax(-1)", "The softmax is applied twice. "
             "F.cross_entropy expects logits and applies the softmax itself."),
        Edit('F.cross_entropy(head(states), tokens, reduction="none")',
             "-head(states).gather(1, tokens[:, None])", "These are negative logits: F.nll_loss "
             "expects log-probabilities. Take log_softmax first, or use F.cross_entropy."),
        Edit("losses.sum()", "(-losses).exp().sum()",
             "This is the mean probability. A loss is −ln P."),
        Edit("losses.sum()", "(1 - (-losses).exp()).sum()",
             "This is one minus the mean probability. A loss is −ln P."),
        Edit("losses.sum()", "-(-losses).exp().mean().log() * len(losses)",
             "This is −ln of the mean probability. Take the logarithm first, then the mean."),
        Edit("labels != IGNORED", "labels > 0", "Positions whose token has the id 0 are left out. "
             "0 is an id like any other; only −100 means *not selected*."),
        Edit("labels != IGNORED", "torch.ones_like(labels).bool()",
             "At positions that are not selected, your loss uses token 0 as a label. Leave them "
             "out.",
             more=(("labels[selected]", "labels[selected].clamp(min=0)"),)),
        Edit("hidden[selected]", "hidden.flatten(0, 1)[: int(selected.sum())]",
             "Your head gets the right number of rows, but the first ones of the batch. Take the "
             "selected rows."),
        Edit("head(states)", "head(hidden)[selected]", "Your loss is right, but the head saw all "
             "B·T rows. Pick the selected rows of `hidden` before the head, not its logits after."),
        Edit("head(states)", "head(hidden[selected.any(1)])[selected[selected.any(1)]]",
             "Your loss is right, but the head saw whole sequences. Pick the selected rows alone."),
        Edit("max(1, len(losses))", "len(losses)", "If nothing is selected, your loss is zero "
             "divided by zero, which is nan. Return 0: divide the sum by at least 1."),
    ),
)  # fmt: skip
