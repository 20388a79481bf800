"""Exercise 11.4: weights by inverse frequency. B texts, C classes."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number, Numbers


def weighted_loss(logits: Tensor, labels: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """All texts / texts of a class (C,); Σ w·(−log P) / Σ w over the batch."""
    weights = counts.sum() / counts
    each = -logits.log_softmax(dim=-1)[torch.arange(len(labels)), labels]
    w = weights[labels]
    return weights, (w * each).sum() / w.sum()


# ---------------------------------------------------------------- cases


def case(draw: Draw, texts: int, counts: tuple[int, ...]) -> Case:
    """Every class stands in the batch, and not as often as in the training set."""
    labels = [*range(len(counts)), *draw.python.choices(range(len(counts)), k=texts - len(counts))]
    draw.python.shuffle(labels)
    logits = 2 * draw.normal(texts, len(counts))
    return logits, torch.tensor(labels), torch.tensor(counts).double()


EACH, LOSS = (
    "-logits.log_softmax(dim=-1)[torch.arange(len(labels)), labels]",
    ("(w * each).sum() / w.sum()"),
)
WEIGHT = "counts.sum() / counts"

WEIGHTS = Exercise(
    **written("11.4"),
    solution=weighted_loss,
    returns=(Numbers("tensor of weights", shape="C"), Number("loss")),
    library=("course_lib.objectives.classification:inverse_frequency",
             "course_lib.objectives.classification:weighted_classification_loss"),
    when_raised=(
        (r"size|shape|broadcast", "Weights are (C,), one per class; weights[labels] is (B,), "
         "one per text."),
    ),
    forbidden=dict.fromkeys(
        ("cross_entropy", "nll_loss"), "Write it from log_softmax: how it uses the weights is "
        "the point."),
    stages=(
        Stage("two classes, 90 and 10", each(case, (4, (90, 10)), (6, (90, 10)))),
        Stage("more classes", each(case, (7, (40, 3, 12)), (9, (5, 80, 20, 9)))),
        Stage("a batch unlike the training set", each(case, (12, (200, 2)), (10, (7, 100, 30)))),
    ),
    axes={"0": "the batch", "-1": "the classes"},
    mistakes=(
        Edit(WEIGHT, "counts / counts.sum()", "These are the frequencies, so common classes "
             "would count even more. Use their inverse."),
        Edit(WEIGHT, "1 / counts", "This is right up to a factor that does not change the loss. "
             "The weights should be all texts / texts of the class."),
        Edit(WEIGHT, "counts.sum() / counts / len(counts)", "You also divide by the number of "
             "classes (scikit-learn's “balanced”). FinBERT's code does not."),
        *(Edit(WEIGHT, f"(1 / counts) / (1 / counts).{how}()", f"Your weights are divided by their "
               f"{how}. The loss does not see it; the weights that are asked for are all texts / "
               "texts of the class.") for how in ("sum", "mean")),
        Edit(WEIGHT, "counts.max() / counts", "You divide the *largest* class by each. Divide "
             "all texts by each."),
        Edit(WEIGHT, "len(labels) / torch.bincount(labels, minlength=len(counts))", "You count "
             "the batch. Use the counts of the training set: in a batch a class may be missing."),
        Edit(LOSS, "(w * each).mean()", "You divide by B, so the weights would scale the "
             "learning rate of each batch. Divide by Σ w."),
        Edit(LOSS, "each.mean()", "The weights have no effect on your loss."),
        Edit(LOSS, "(w * each).sum() / weights.sum()", "You divide by the weights of the "
             "*classes*. Divide by those of the batch's texts."),
    ),
)  # fmt: skip
