"""Exercise 13.1: Matthews' correlation from four counts. M models."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def matthews_of_counts(counts: Tensor) -> Tensor:
    """Matthews' correlation of each model; rows are labels, columns predictions: (M, 2, 2) -> (M,).

    0 where a row or a column is empty."""
    counts = counts.double()  # a product of four sums is too large for int64
    labels, predictions = counts.sum(dim=2), counts.sum(dim=1)
    spread = labels.prod(dim=1) * predictions.prod(dim=1)
    together = counts[:, 0, 0] * counts[:, 1, 1] - counts[:, 0, 1] * counts[:, 1, 0]
    return torch.where(spread > 0, together / spread.clamp(min=1).sqrt(), 0.0)


# ---------------------------------------------------------------- cases


def case(draw: Draw, models: int, low: int = 5, high: int = 60) -> Case:
    return (draw.ids(low, high, models, 2, 2),)


def by_hand(draw: Draw) -> list[Case]:
    """The statement's model; one that is never wrong, one that always is."""
    counts = torch.tensor([[[6, 4], [4, 86]], [[3, 0], [0, 7]], [[0, 5], [2, 0]]])
    return [(counts[:1],), (counts,), case(draw, 2)]


def rare(draw: Draw, models: int) -> Case:
    """One text in twenty has label 0; label 1 is hardly ever missed."""
    counts = torch.stack([draw.ids(1, 9, models, 2), draw.ids(1, 9, models, 2)], dim=1)
    counts[:, 1, 1] += draw.ids(150, 200, models)
    return (counts,)


def one_sided(draw: Draw, models: int) -> Case:
    """A model that always says the same, and a test set of one label."""
    (counts,) = case(draw, models)
    counts[0, :, draw.integer(0, 1)] = 0
    counts[1, draw.integer(0, 1)] = 0
    return (counts,)


LABELS, PREDICTIONS = "counts.sum(dim=2)", "counts.sum(dim=1)\n"
SPREAD = "labels.prod(dim=1) * predictions.prod(dim=1)"
RIGHT, WRONG = "counts[:, 0, 0] * counts[:, 1, 1]", "counts[:, 0, 1] * counts[:, 1, 0]"
RETURN = "torch.where(spread > 0, together / spread.clamp(min=1).sqrt(), 0.0)"
ALL = "counts.sum(dim=(1, 2))"
FOUND = "counts.diagonal(dim1=1, dim2=2) / labels.clamp(min=1)"  # recall of both labels

MATTHEWS = Exercise(
    **written("13.1"),
    solution=matthews_of_counts,
    returns=Numbers("correlation", shape="M", tol=1e-5),
    library=("course_lib.lectures.lecture_13.exercises.matthews:matthews_of_counts",
             "course_lib.train.task_metrics:matthews"),
    infinite="0/0 is nan: a row or a column is empty there. Expected 0: a model that always "
    "says the same knows nothing.",
    when_raised=(
        (r"dim|size|shape|index", "`counts` is (M, 2, 2): counts[:, 1, 0] are the M models' "
         "counts of label 1, predicted 0."),
    ),
    stages=(
        Stage("on paper", by_hand),
        Stage("any counts", each(case, (3,), (5,))),
        Stage("one label is rare", each(rare, (3,), (4,))),
        Stage("an empty row or column", each(one_sided, (3,), (4,))),
        Stage("a large test set", each(case, (3, 20_000, 200_000), (4, 50_000, 400_000))),
    ),
    mistakes=(
        Edit(RETURN, f"(counts[:, 0, 0] + counts[:, 1, 1]) / {ALL}", "This is the accuracy. With a "
             "rare label, always predicting the other one has high accuracy and correlation 0."),
        Edit(RETURN, f"2 * (counts[:, 0, 0] + counts[:, 1, 1]) / {ALL} - 1", "This is the "
             "accuracy, stretched to −1 … 1. A correlation asks how label and prediction move "
             "together."),
        Edit(RETURN, "2 * counts[:, 1, 1] / (labels[:, 1] + predictions[:, 1]).clamp(min=1)",
             "This is the F1 of label 1: texts with label 0 that are predicted 0 do not count in "
             "it. Here all four counts do."),
        Edit(RETURN, f"({FOUND}).mean(dim=1)", "This is the mean recall of both labels (balanced "
             "accuracy). It uses the rows alone."),
        Edit(RETURN, f"({FOUND}).sum(dim=1) - 1", "This is the sum of both recalls, less 1. It "
             "uses the rows alone; the correlation uses the columns, too."),
        Edit(RETURN, "2 * together / (labels * predictions.flip(1)).sum(dim=1).clamp(min=1)",
             "This is Cohen's kappa, another number against chance. It is Matthews' only where "
             "both labels are predicted as often as they occur."),
        Edit(RETURN, f"together / {ALL} ** 2", "This is the covariance. Divide it by both standard "
             "deviations."),
        Edit(RETURN, "together / spread.sqrt()", "A row or a column is empty: 0/0 is nan. Expected "
             "0."),
        Edit(RETURN, "torch.where(spread > 0, together / spread.clamp(min=1).sqrt(), 1.0)", "Where "
             "a row or a column is empty you return 1. Expected 0."),
        Edit(f"{RIGHT} - {WRONG}", f"{RIGHT} + {WRONG}", "You add the two products. A model that "
             "is always wrong must have −1: subtract the second."),
        Edit(f"{RIGHT} - {WRONG}", "counts[:, 0, 0] + counts[:, 1, 1] - counts[:, 0, 1] - "
             "counts[:, 1, 0]", "You add and subtract counts. The covariance of zeros and ones "
             "needs their *products*."),
        Edit(LABELS, "counts.sum(dim=1)", "Both pairs of sums are those of the columns. Two of the "
             "four are sums of rows."),
        Edit(PREDICTIONS, "counts.sum(dim=2)\n", "Both pairs of sums are those of the rows. Two of "
             "the four are sums of columns."),
        Edit(SPREAD, "labels[:, 1] * predictions[:, 1] * labels[:, 0]", "One of the four sums is "
             "missing below the root."),
        Edit(SPREAD, "(labels.sum(dim=1) * predictions.sum(dim=1)).square() / 16", "You divide as "
             "if both labels were equally frequent. Take the sums of rows and columns as they "
             "are."),
        Edit("counts.double()", "counts.sum(dim=0, keepdim=True).expand_as(counts).double()", "You "
             "add up all models' counts. Each model has a correlation of its own."),
        Edit("counts.double()", "counts", "The product of four sums is too large for int64: it "
             "wraps around silently. Turn the counts into floats first."),
    ),
)  # fmt: skip
