"""Exercise 11.5: a loss over padding. B texts, T positions, C tags."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number

IGNORED = -100


def losses(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The mean of −log P over labelled positions, and over all with tag 0; how many have one."""
    has = labels != IGNORED
    tags = labels.clamp(min=0)
    each = -logits.log_softmax(dim=-1).gather(-1, tags[..., None])[..., 0]
    return each[has].mean(), each.mean(), has.double().mean()


# ---------------------------------------------------------------- cases


def case(draw: Draw, lengths: tuple[int, ...], positions: int, ends: bool = False) -> Case:
    """Texts of so many labelled words, padded. ends: special tokens before and behind."""
    labels = torch.full((len(lengths), positions), IGNORED)
    for row, length in enumerate(lengths):
        labels[row, int(ends) : int(ends) + length] = draw.ids(0, 2, length)
        labels[row, int(ends)] = 1  # some tag is not 0
    logits = draw.normal(len(lengths), positions, 3)
    return logits + torch.tensor([1.5, 0.0, 0.0]) * (labels == IGNORED)[..., None], labels


EACH = "-logits.log_softmax(dim=-1).gather(-1, tags[..., None])[..., 0]"
RETURN = "return each[has].mean(), each.mean(), has.double().mean()"

PADDING = Exercise(
    **written("11.5"),
    solution=losses,
    returns=(Number("loss over labelled positions"), Number("loss over all positions"),
             Number("fraction labelled")),
    library=("course_lib.objectives.token_labels:token_classification_loss",
             "course_lib.objectives.token_labels:padded_token_loss"),
    when_raised=(
        (r"index|out of bounds|-100", "−100 is no tag, so gather cannot look it up. Turn it "
         "into 0 first, labels.clamp(min=0), and leave those positions out afterwards."),
    ),
    stages=(
        Stage("no padding", each(case, ((4,), 4), ((3, 3), 3))),
        Stage("some padding", each(case, ((4, 2), 6), ((3, 5, 2), 5))),
        Stage("special tokens, and much padding",
              each(case, ((4, 2), 12, True), ((3, 1, 5), 16, True)),
              remark="The second loss is smaller, because these logits know that padding is "
              "outside. It shows how easy padding is, and little about the words."),
    ),
    axes={"1": "the positions", "-1": "the tags"},
    mistakes=(
        Edit(RETURN, "return each.mean(), each.mean(), has.double().mean()", "Your first loss "
             "includes padding: take each[has] only."),
        Edit(RETURN, "return each[has].mean(), each[has].mean(), has.double().mean()", "Your "
             "second loss leaves padding out. It has no mask: take all positions."),
        Edit(RETURN, "return each[has].sum() / each.numel(), each.mean(), has.double().mean()",
             "Your first sum is over labelled positions, but divided by all of them. The words' "
             "loss would shrink with the padding, which the mask should prevent."),
        Edit(RETURN, "return each[has].mean(), (each * has).mean(), has.double().mean()", "In "
             "your second loss padding adds no loss, but is counted. It has tag 0 there, and so "
             "a loss of its own."),
        Edit(RETURN, "return each[has].mean(), each[~has].mean() if (~has).any() else each.mean(), "
             "has.double().mean()", "Your second loss is over the positions *without* a label. "
             "Take all positions."),
        Edit(RETURN, "return torch.stack([e[h].mean() for e, h in zip(each, has)]).mean(), "
             "each.mean(), has.double().mean()", "You average over texts, so a short one counts "
             "as much as a long one. Take one mean over all labelled positions."),
        Edit(RETURN, "return each[has].mean(), each.mean(), (labels > 0).double().mean()", "You "
             "count tags other than 0. Tag 0, *outside*, is a label, too; only −100 is not."),
        Edit(RETURN, "return each[has].mean(), each.mean(), 1 - has.double().mean()", "That is the "
             "fraction *without* a label."),
        Edit("labels != IGNORED", "labels > 0", "Words with tag 0 are left out: “outside” is a "
             "label, too; only −100 is not."),
    ),
)  # fmt: skip
