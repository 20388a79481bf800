"""Exercise 03.6: Matthews' correlation, and what accuracy hides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number
from course_lib.train.task_metrics import accuracy, f1


def matthews(true: Sequence[int], predicted: Sequence[int]) -> float:
    """Matthews' correlation of two classes, −1 to 1; 0 where it is 0/0."""
    pairs = list(zip(true, predicted, strict=True))
    a, b, c, d = (pairs.count(pair) for pair in ((1, 1), (0, 1), (1, 0), (0, 0)))
    below = (a + b) * (a + c) * (d + b) * (d + c)
    return (a * d - b * c) / math.sqrt(below) if below else 0.0


def labels(draw: Draw, a: int, b: int, c: int, d: int) -> Case:
    """Labels whose four cells are these."""
    pairs = [(1, 1)] * a + [(0, 1)] * b + [(1, 0)] * c + [(0, 0)] * d
    draw.python.shuffle(pairs)
    return [t for t, _ in pairs], [p for _, p in pairs]


one_class = each(labels, (8, 2, 0, 0), (0, 0, 2, 8), (8, 0, 2, 0), (8, 0, 0, 0), (0, 0, 0, 2),
                 (0, 8, 0, 0))  # fmt: skip


def anything(draw: Draw) -> list[Case]:
    cases = [labels(draw, *(draw.integer(1, 40) for _ in range(4))) for _ in range(20)]
    return [*cases, *one_class(draw)]


LAZY, HONEST = (85, 15, 0, 0), (75, 7, 10, 8)  # the two models of the statement
two_models = each(labels, LAZY, HONEST)


def what_accuracy_hides() -> str:
    """The answer to the question in the statement."""
    lazy, honest = (
        f"accuracy {accuracy(*case):.2f}, F1 {f1(*case):.2f}, Matthews {matthews(*case):.2f}"
        for case in two_models(Draw(0))
    )
    return (
        f"100 sentences, 85 of them acceptable (1). The model that calls all acceptable: {lazy}. "
        f"The one that recognises 75 of these and 8 of the other 15: {honest}. Accuracy prefers "
        "the first, because it can be earned with the majority class alone. F1 prefers it, too. "
        "Matthews' correlation gives 0 for knowing nothing."
    )


ABOVE, BELOW = "(a * d - b * c)", "math.sqrt(below)"
SUMS = {"a + b": "called 1", "a + c": "truly 1", "d + b": "truly 0", "d + c": "called 0"}
TWO_CELLS = "It looks at two of the four cells."
CHANCE = "By convention it is 0, as for chance."
ONE_CLASS = "Where one class is missing among the true or among the predicted labels, you have"
MIXED = ("The cells are mixed up above the line: right times right minus wrong times wrong, "
         "(1 called 1)·(0 called 0) − (0 called 1)·(1 called 0).")  # fmt: skip
# Quite another score; another formula above the line, or below; what is returned for 0/0.
instead = partial(Edit, f"{ABOVE} / {BELOW} if below else 0.0")
above, below, undefined = partial(Edit, ABOVE), partial(Edit, BELOW), partial(Edit, "0.0")

WRONG_SUMS = (
    *(Edit(f"({gone})", "1", f"Below the root one of the four sums is missing: {gone}, all that "
           f"are {name}.") for gone, name in SUMS.items()),
    *(Edit(f"({gone})", f"({twice})",
           f"Below the root one of the four sums, {gone}, is missing, and {twice} stands twice. "
           "They are truly 1, truly 0, called 1, called 0.")
      for gone in SUMS for twice in SUMS if twice != gone),
    *(Edit(f"({x}) * ({y})", "(a + d) * (b + c)",
           "Below the root the cells are mixed up. The four sums are truly 1, truly 0, called 1 "
           f"and called 0, so {x} and {y} too; a sum of the two right cells, or of the two wrong "
           "ones, is none of them.") for x, y in (("a + b", "a + c"), ("d + b", "d + c"))),
    Edit("(a + c) * (d + b)", "(a + d) * (c + b)",
         "Below the root the cells are mixed up: truly 1 is a + c, truly 0 is d + b. A sum of the "
         "two right cells, or of the two wrong ones, is none of the four."),
)  # fmt: skip

CORRELATION = Exercise(
    **written("03.6"),
    solution=matthews,
    returns=Number("correlation"),
    see="course_lib.train.task_metrics.matthews (for any number of classes)",
    when_raised=(
        (r"division by zero|divide by zero", "One of the four sums is 0: a class is missing among "
         "the true or among the predicted labels. Return 0 there."),
        (r"'bool' object", "true == predicted asks whether the two lists are the same, and has one "
         "answer. Go through zip(true, predicted)."),
        (r"math domain error|nonnegative",
         "This takes the root of a negative number. Take it of the denominator's product only."),
        (r"'list' object has no attribute|unsupported operand.*list|list.*unsupported",
         "The labels are plain lists, which know no arithmetic: go through zip(true, predicted), "
         "or make tensors of them first."),
    ),
    stages=(
        Stage("two classes of about one size",  # all right, all wrong, and both
              each(labels, (2, 0, 0, 3), (0, 3, 2, 0), (4, 2, 1, 3), (6, 4, 2, 4))),
        Stage("a rare class", each(labels, (50, 6, 2, 2), (3, 3, 6, 45), (6, 13, 8, 4))),
        Stage("one class is missing: 0/0", one_class),
        Stage("drawn tables", anything),
        Stage("a model without skill, and one with some", two_models,
              remark=what_accuracy_hides),
    ),
    mistakes=(
        instead("(a + d) / len(pairs)", "This is accuracy. Where nine of ten are of one class, it "
                "is 0.9 for a model that always predicts that class."),
        instead("(a / max(a + c, 1) + d / max(d + b, 1)) / 2",
                "This is the mean of both classes' recall (balanced accuracy). Matthews' "
                "correlation also asks how many of the predictions are right."),
        instead("2 * a / max(2 * a + b + c, 1)", "This is F1 of class 1. F1 never looks at what is "
                "rightly called 0: calling everything 1 gets a good F1 where 1 is common."),
        instead("2 * d / max(2 * d + b + c, 1)",
                "This is F1 of class 0. It never looks at what is rightly called 1."),
        instead("a / max(2 * a + b + c, 1) + d / max(2 * d + b + c, 1)",
                "This is the mean of both classes' F1 (macro F1). It looks at both classes, too, "
                "but chance is not 0 there."),
        instead("2 * (a * d - b * c) / ((a + b) * (d + b) + (a + c) * (d + c) or 1)",
                "This is Cohen's kappa: accuracy less what chance would get. It is near, but below "
                "the line of Matthews' there is the root of a product of four sums."),
        instead("a / max(a + c, 1) + d / max(d + b, 1) - 1", "This is recall of class 1 plus "
                "recall of class 0 minus 1 (informedness). It forgets to ask how many of the "
                "predictions are right; Matthews' correlation weighs both."),
        instead("a / max(a + b, 1) + d / max(d + c, 1) - 1", "This asks of each predicted class "
                "how much of it is right (markedness). It forgets to ask how much of each true "
                "class was found; Matthews' correlation weighs both."),
        instead("a / max(a + b, 1)",
                f"This is precision: how many of those called 1 are 1. {TWO_CELLS}"),
        instead("a / max(a + c, 1)",
                f"This is recall: how many of those that are 1 were found. {TWO_CELLS}"),
        instead("d / max(d + b, 1)", "This is the recall of class 0: how many of those that are 0 "
                f"were called so. {TWO_CELLS}"),
        instead("(b + c) / len(pairs)", "This is the fraction of wrong labels."),
        instead("(a + d - b - c) / len(pairs)", "This is the fraction of right labels less that of "
                "wrong ones: a rescaled accuracy, 2 · accuracy − 1."),
        instead("math.copysign(math.sqrt(abs(a * d - b * c) / below), a * d - b * c) if below else "
                "0.0", "The root covers the whole fraction; take it of the denominator only. "
                "(And of a negative fraction there is none.)"),
        instead("(a * d - b * c) ** 2 / below if below else 0.0",
                "This is the square of the correlation: its sign is lost. Divide by the root, "
                "without squaring the numerator."),
        instead(f"({ABOVE} / {BELOW} + 1) / 2 if below else 0.5", "The result was moved to 0 … 1, "
                "so that chance is 0.5. Matthews' correlation runs from −1 to 1."),
        instead(f"100 * {ABOVE} / {BELOW} if below else 0.0",
                "This is the correlation times 100, as papers print it; expected −1 to 1."),
        above("abs(a * d - b * c)", "The sign is lost. A model that is wrong more often than right "
              "has a negative correlation."),
        above("(b * c - a * d)", "The sign is the wrong way round: right labels make the "
              "correlation positive."),
        above("a * d - b * c", "Only b·c is divided: a·d − b·c needs brackets around it."),
        above("(a * b - c * d)", f"{MIXED} You have a·b − c·d."),
        above("(a * c - d * b)", f"{MIXED} You have a·c − d·b."),
        above("(a * d)", "The numerator has only the right cells. Subtract the product of the "
              "wrong ones: without it chance is not 0."),
        above("(a * d + b * c)",
              "In the numerator the product of the wrong cells is added; subtract it."),
        above("(a + d - b - c)", "The numerator is right minus wrong; expected the difference "
              "of two *products*."),
        below("math.sqrt((a + b) * (a + c)) * (d + b) * (d + c)", "Not all four sums are in the "
              "denominator: a / b * c multiplies by c. Put brackets around the product."),
        below("below", "The denominator's square root is missing. The numerator has products "
              "of two counts, the denominator of four: the root makes them comparable."),
        below("((a + b) * (a + c))",
              "The denominator has two sums, truly 1 and predicted 1, without a root. Truly 0 and "
              "predicted 0 belong there too, and the root of the product of all four."),
        below("math.sqrt((a + b) * (a + c))", "Below the root two of the four sums are missing: "
              "truly 0 and predicted 0 belong there too."),
        below("math.sqrt(2 * len(pairs))",
              "In the denominator the four sums are added; multiply them."),
        below("math.sqrt(below + 1)", "You add 1 below the root, so that it is never 0. That "
              "changes every result a little: test whether it is 0 before you divide."),
        *WRONG_SUMS,
        undefined("math.nan", f"{ONE_CLASS} NaN. By convention it is 0: a constant "
                  "answer shows no skill."),
        undefined("1.0", f"{ONE_CLASS} 1. {CHANCE}"),
        undefined("-1.0", f"{ONE_CLASS} −1. {CHANCE}"),
        undefined("(a + d) / len(pairs)", f"{ONE_CLASS} the accuracy. {CHANCE}"),
        undefined("float(true == predicted)", "Where all labels are of one class and all are "
                  "right, you have 1. But it is 0/0, and by convention 0: a model that always "
                  "predicts that class would be right, too."),
    ),
)  # fmt: skip
