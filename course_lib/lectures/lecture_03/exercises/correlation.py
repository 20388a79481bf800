"""Exercise 03.6: Matthews' correlation, and what accuracy hides.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Suspect,
    call,
    close,
)
from course_lib.train.task_metrics import accuracy, f1

from .slips import pools

Labels = list[int]
Case = tuple[Labels, Labels]  # true, predicted
Cases = Callable[[Draw], list[Case]]


def matthews(true: Sequence[int], predicted: Sequence[int]) -> float:
    """Matthews' correlation of two classes, −1 to 1; 0 where it is 0/0."""
    pairs = list(zip(true, predicted, strict=True))
    a, b, c, d = (pairs.count(pair) for pair in ((1, 1), (0, 1), (1, 0), (0, 0)))
    below = (a + b) * (a + c) * (d + b) * (d + c)
    return (a * d - b * c) / math.sqrt(below) if below else 0.0


# ---------------------------------------------------------------- known wrong answers

Formula = Callable[[int, int, int, int], float]  # of the four cells


def cells(true: Sequence[int], predicted: Sequence[int]) -> tuple[int, int, int, int]:
    """How many 1 were called 1 (tp), 0 called 1 (fp), 1 called 0 (fn) and 0 called 0 (tn)."""
    pairs = list(zip(true, predicted, strict=True))
    return pairs.count((1, 1)), pairs.count((0, 1)), pairs.count((1, 0)), pairs.count((0, 0))


def _of(formula: Formula, undefined: float | None = 0.0) -> Answer:
    """undefined: the result where a class is missing on one side; None where no rule is needed."""

    def answer(true: Sequence[int], predicted: Sequence[int]) -> float:
        found = cells(true, predicted)
        return undefined if undefined is not None and not _below(*found) else formula(*found)

    return answer


def _below(tp: int, fp: int, fn: int, tn: int) -> int:
    return (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)


def _above(tp: int, fp: int, fn: int, tn: int) -> int:
    return tp * tn - fp * fn


def _right(tp: int, fp: int, fn: int, tn: int) -> float:
    return _above(tp, fp, fn, tn) / math.sqrt(_below(tp, fp, fn, tn))


def _f1(tp: int, fp: int, fn: int) -> float:
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0


def _kappa(tp: int, fp: int, fn: int, tn: int) -> float:
    n = tp + fp + fn + tn
    by_chance = ((tp + fp) * (tp + fn) + (tn + fp) * (tn + fn)) / n**2
    return ((tp + tn) / n - by_chance) / (1 - by_chance)


def _both(name: str, said: str, formula: Formula) -> tuple[Suspect, ...]:
    """With the rule for 0/0, and without any."""
    return Suspect(name, said, _of(formula)), Suspect(name, said, _of(formula, None))


def _share(right: int, wrong: int) -> float:
    return right / (right + wrong) if right + wrong else 0.0


def _wrong_sums() -> list[Suspect]:
    """Below the root one of the four sums is missing, or others stand in its place."""

    def with_sums(*pick: int) -> Answer:
        def formula(tp: int, fp: int, fn: int, tn: int) -> float:
            sums = (tp + fp, tn + fn, tp + fn, tn + fp, tp + tn, fp + fn)
            below = math.prod(sums[i] for i in pick)
            return _above(tp, fp, fn, tn) / math.sqrt(below) if below else 0.0

        return _of(formula)

    found = []
    for gone in range(4):
        kept = [i for i in range(4) if i != gone]
        said = "Below the root one of the four sums is missing"
        found.append(Suspect("one sum missing", f"{said}.", with_sums(*kept)))
        said += ", and another stands twice. They are truly 1, truly 0, called 1, called 0."
        found += [Suspect("one sum twice", said, with_sums(*kept, twice)) for twice in kept]
    said = (
        "Below the root the cells are mixed up. The four sums are truly 1, truly 0, called 1 and "
        "called 0; a sum of the two right cells, or of the two wrong ones, is none of them."
    )
    mixed = (with_sums(*pick, 4, 5) for pick in ((0, 1), (2, 3)))
    return [*found, *(Suspect("cells swapped below", said, one) for one in mixed)]


F1_SAID = (
    "F1 never looks at what is rightly called 0: calling everything 1 gets a good F1 where 1 is "
    "common."
)

CORRELATION_SUSPECTS = (
    *_both(
        "accuracy",
        "This is accuracy. Where nine of ten are of one class, it is 0.9 for whoever always says "
        "that class.",
        lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
    ),
    *_both(
        "balanced accuracy",
        "This is the mean of both classes' recall (balanced accuracy). Matthews' correlation also "
        "asks how many of the predictions are right.",
        lambda tp, fp, fn, tn: (tp / (tp + fn) + tn / (tn + fp)) / 2,
    ),
    *_both("F1", f"This is F1 of class 1. {F1_SAID}", lambda tp, fp, fn, tn: _f1(tp, fp, fn)),
    *_both(
        "F1 of class 0",
        "This is F1 of class 0. It never looks at what is rightly called 1.",
        lambda tp, fp, fn, tn: _f1(tn, fn, fp),
    ),
    *_both(
        "macro F1",
        "This is the mean of both classes' F1. It looks at both classes, too, but chance is not 0 "
        "there.",
        lambda tp, fp, fn, tn: (_f1(tp, fp, fn) + _f1(tn, fn, fp)) / 2,
    ),
    *_both(
        "Cohen's kappa",
        "This is Cohen's kappa: accuracy less what chance would get. It is near, but below the "
        "line of Matthews' there is the root of a product of four sums.",
        _kappa,
    ),
    *_both(
        "informedness",
        "This is recall of class 1 plus recall of class 0 minus 1. It forgets to ask how many of "
        "the predictions are right; Matthews' correlation weighs both.",
        lambda tp, fp, fn, tn: tp / (tp + fn) + tn / (tn + fp) - 1,
    ),
    *_both(
        "markedness",
        "This asks of each predicted class how much of it is right. It forgets to ask how much of "
        "each true class was found; Matthews' correlation weighs both.",
        lambda tp, fp, fn, tn: tp / (tp + fp) + tn / (tn + fn) - 1,
    ),
    *_both(
        "precision",
        "This is precision: how many of those called 1 are 1. It looks at two of the four cells.",
        lambda tp, fp, fn, tn: _share(tp, fp),
    ),
    *_both(
        "recall",
        "This is recall: how many of those that are 1 were found. It looks at two of the four "
        "cells.",
        lambda tp, fp, fn, tn: _share(tp, fn),
    ),
    *_both(
        "recall of class 0",
        "This is the recall of class 0: how many of those that are 0 were called so. It looks at "
        "two of the four cells.",
        lambda tp, fp, fn, tn: _share(tn, fp),
    ),
    *_both(
        "share of errors",
        "This is the share of wrong labels.",
        lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn + tn),
    ),
    Suspect(
        "brackets above the line",
        "Only b·c is divided: a·d − b·c needs brackets around it.",
        _of(lambda tp, fp, fn, tn: tp * tn - fp * fn / math.sqrt(_below(tp, fp, fn, tn))),
    ),
    Suspect(
        "brackets below the line",
        "Not all four sums are below the line: a / b * c multiplies by c. Put brackets around the "
        "product.",
        _of(lambda tp, fp, fn, tn: _above(tp, fp, fn, tn)
            / math.sqrt((tp + fp) * (tp + fn)) * (tn + fp) * (tn + fn)),
    ),
    Suspect(
        "rounded",
        "The result is rounded. Return it as it is; round when you print.",
        _of(lambda *c: round(_right(*c), 2)),
    ),
    Suspect(
        "no square root",
        "The square root below the line is missing. Above the line stand products of two counts, "
        "below of four: the root makes them comparable.",
        _of(lambda *c: _above(*c) / _below(*c)),
    ),
    Suspect(
        "square root of the whole",
        "The root runs over the whole fraction; it belongs below the line only. (And of a negative "
        "fraction there is none.)",
        _of(lambda *c: math.copysign(math.sqrt(abs(_above(*c)) / _below(*c)), _above(*c))),
    ),
    Suspect(
        "squared",
        "This is the square of the correlation: its sign is lost. Divide by the root, without "
        "squaring what stands above.",
        _of(lambda *c: _above(*c) ** 2 / _below(*c)),
    ),
    Suspect(
        "cells swapped",
        "The cells are mixed up above the line: right times right minus wrong times wrong, "
        "(1 called 1)·(0 called 0) − (0 called 1)·(1 called 0).",
        _of(lambda tp, fp, fn, tn: (tp * fp - tn * fn) / math.sqrt(_below(tp, fp, fn, tn))),
    ),
    Suspect(
        "cells swapped",
        "The cells are mixed up above the line: right times right minus wrong times wrong, "
        "(1 called 1)·(0 called 0) − (0 called 1)·(1 called 0).",
        _of(lambda tp, fp, fn, tn: (tp * fn - tn * fp) / math.sqrt(_below(tp, fp, fn, tn))),
    ),
    *_wrong_sums(),
    Suspect(
        "root and two sums forgotten",
        "Below the line stand two sums, truly 1 and called 1, without a root. Truly 0 and called 0 "
        "belong there too, and the root over the product of all four.",
        _of(lambda tp, fp, fn, tn: _above(tp, fp, fn, tn) / ((tp + fp) * (tp + fn))),
    ),
    Suspect(
        "two sums forgotten",
        "Below the root two of the four sums are missing: truly 0 and called 0 belong there too.",
        _of(lambda tp, fp, fn, tn: _above(tp, fp, fn, tn) / math.sqrt((tp + fp) * (tp + fn))),
    ),
    Suspect(
        "wrong cells forgotten",
        "Above the line only the right cells stand. Take off the product of the wrong ones: "
        "without it chance is not 0.",
        _of(lambda tp, fp, fn, tn: tp * tn / math.sqrt(_below(tp, fp, fn, tn))),
    ),
    Suspect(
        "added",
        "Above the line the product of the wrong cells is added; it is taken off.",
        _of(lambda tp, fp, fn, tn: (tp * tn + fp * fn) / math.sqrt(_below(tp, fp, fn, tn))),
    ),
    Suspect(
        "sums instead of products",
        "Above the line right minus wrong stands; expected the difference of two *products*.",
        _of(lambda tp, fp, fn, tn: (tp + tn - fp - fn) / math.sqrt(_below(tp, fp, fn, tn))),
    ),
    Suspect(
        "sums below the line",
        "Below the line the four sums are added; they are multiplied.",
        _of(lambda tp, fp, fn, tn: _above(tp, fp, fn, tn) / math.sqrt(2 * (tp + fp + fn + tn))),
    ),
    Suspect(
        "right minus wrong",
        "This is the share of right labels less that of wrong ones: accuracy in other clothes, 2 · "
        "accuracy − 1.",
        _of(lambda tp, fp, fn, tn: (tp + tn - fp - fn) / (tp + fp + fn + tn), None),
    ),
    Suspect(
        "sign",
        "The sign is the wrong way round: right labels make the correlation positive.",
        _of(lambda *c: -_right(*c)),
    ),
    Suspect(
        "sign lost",
        "The sign is lost. A model that is wrong more often than right has a negative correlation.",
        _of(lambda *c: abs(_right(*c))),
    ),
    Suspect(
        "moved to 0 … 1",
        "The result was moved to 0 … 1, so that chance is 0.5. Matthews' correlation runs from −1 "
        "to 1.",
        _of(lambda *c: (_right(*c) + 1) / 2, 0.5),
    ),
    Suspect(
        "percent",
        "This is the correlation times 100, as papers print it; expected −1 to 1.",
        _of(lambda *c: 100 * _right(*c)),
    ),
    Suspect(
        "nan for 0/0",
        "Where one class is missing among the true or among the predicted labels, you have no "
        "number. By convention it is 0: whoever always says the same has understood nothing.",
        _of(_right, math.nan),
    ),
    Suspect(
        "1 for 0/0",
        "Where one class is missing among the true or among the predicted labels, you have 1. By "
        "convention it is 0, as for chance.",
        _of(_right, 1.0),
    ),
    Suspect(
        "1 if all is right",
        "Where all labels are of one class and all are right, you have 1. It is 0/0 all the same, "
        "and by convention 0: whoever always says that class would be right, too.",
        lambda true, predicted: (
            _right(*c) if _below(*(c := cells(true, predicted))) else float(true == predicted)
        ),
    ),
    Suspect(
        "−1 for 0/0",
        "Where one class is missing among the true or among the predicted labels, you have −1. By "
        "convention it is 0, as for chance.",
        _of(_right, -1.0),
    ),
    Suspect(
        "accuracy for 0/0",
        "Where one class is missing among the true or among the predicted labels, you have the "
        "accuracy. By convention it is 0, as for chance.",
        lambda true, predicted: _right(*c) if _below(*(c := cells(true, predicted))) else (
            accuracy(true, predicted)),
    ),
    Suspect(
        "a 1 below the line",
        "You add 1 below the root, so that it is never 0. That changes every result a little: ask "
        "whether it is 0 before you divide.",
        _of(lambda *c: _above(*c) / math.sqrt(_below(*c) + 1)),
    ),
)  # fmt: skip


# ---------------------------------------------------------------- inputs


def _labels(draw: Draw, hits: int, false: int, missed: int, rest: int) -> Case:
    pairs = [(1, 1)] * hits + [(0, 1)] * false + [(1, 0)] * missed + [(0, 0)] * rest
    draw.python.shuffle(pairs)
    return [t for t, _ in pairs], [p for _, p in pairs]


def _plain(draw: Draw) -> list[Case]:
    """All right, all wrong, and two classes of one size."""
    return [
        _labels(draw, 2, 0, 0, 3),
        _labels(draw, 0, 3, 2, 0),
        _labels(draw, 4, 2, 1, 3),
        _labels(draw, draw.integer(5, 7), 4, 2, draw.integer(3, 5)),
    ]


def _rare(draw: Draw) -> list[Case]:
    return [
        _labels(draw, draw.integer(40, 60), draw.integer(5, 8), draw.integer(1, 3), 2),
        _labels(draw, 3, draw.integer(2, 4), draw.integer(5, 7), draw.integer(30, 60)),
        _labels(draw, 6, draw.integer(12, 15), draw.integer(8, 9), 4),
    ]


def _one_class(draw: Draw) -> list[Case]:
    many, few = draw.integer(7, 9), draw.integer(1, 3)
    return [
        _labels(draw, many, few, 0, 0),
        _labels(draw, 0, 0, few, many),
        _labels(draw, many, 0, few, 0),
        _labels(draw, many, 0, 0, 0),
        _labels(draw, 0, 0, 0, few),
    ]


def _drawn(draw: Draw) -> list[Case]:
    return [_labels(draw, *(draw.integer(1, 40) for _ in range(4))) for _ in range(30)]


def _everything(draw: Draw) -> list[Case]:
    return [*_drawn(draw), *_one_class(draw)]


def _two_classes(draw: Draw) -> list[Case]:
    return [*_drawn(draw), *_rare(draw)]


# ---------------------------------------------------------------- stages


def _ask(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case)), matthews(*case)
            if close(given, right):
                continue
            asked = pools(cases, draw, _everything, _two_classes)
            found = name_suspect(answer, case, asked, CORRELATION_SUSPECTS, _same)
            hits, false, missed, rest = cells(*case)
            raise told(
                found,
                f"1 called 1: {hits}, 0 called 1: {false}, 1 called 0: {missed}, 0 called 0: "
                f"{rest}. You have {given:.4g}; it is {right:.4g}.",
            )

    return ask


def _ask_what_accuracy_hides(answer: Answer, draw: Draw) -> str:
    """As any stage, and the answer to the question that the text ends with."""
    good = draw.integer(84, 90)
    found, caught = good - draw.integer(10, 14), draw.integer(8, 9)
    cases = (
        _labels(draw, good, 100 - good, 0, 0),
        _labels(draw, found, 100 - good - caught, good - found, caught),
    )
    _ask(lambda _: list(cases))(answer, draw)
    lazy, honest = (
        f"accuracy {accuracy(*case):.2f}, F1 {f1(*case):.2f}, Matthews {matthews(*case):.2f}"
        for case in cases
    )
    return (
        f"100 sentences, {good} of them acceptable (1). Who calls everything acceptable: {lazy}. "
        f"Who recognises {found} of these and {caught} of the other {100 - good}: {honest}. "
        "Accuracy prefers the first, because it can be earned with the common class alone. F1 of "
        "the common class does so, too. Matthews' correlation gives 0 for knowing nothing."
    )


def _read(x: Any) -> float:
    return one_number(x, "the correlation, −1 to 1")


def _same(mine: Any, theirs: float, _case: Case) -> bool:
    mine = _read(mine)
    return close(mine, theirs) or (math.isnan(mine) and math.isnan(theirs))


CORRELATION = Exercise(
    id="03.6",
    title="What accuracy hides",
    purpose="a score that pays nothing for always saying the common class",
    difficulty=2,
    minutes=10,
    signature="my_matthews(true, predicted)",
    statement=(
        "CoLA asks whether a sentence is acceptable English (1) or not (0); it is scored by "
        "Matthews' correlation. Both arguments are lists of 0 and 1. Count four cells: a, 1 called "
        "1; b, 0 called 1; c, 1 called 0; d, 0 called 0. Return  \n"
        "(a·d − b·c) / √((a + b)(a + c)(d + b)(d + c)),  \n"
        "and 0 where that is 0/0. Predict before you check: of 100 sentences 85 are acceptable. "
        "One model calls all acceptable; another recognises 75 of the 85 and 8 of the other 15. "
        "Which has the better accuracy, which the better F1, and which would you use? The last "
        "stage shows such a pair."
    ),
    hints=(
        "zip(true, predicted) gives pairs; count how often each of the four occurs.",
        "The four sums below the root: called 1, truly 1, truly 0, called 0.",
        "One of the sums is 0 if a class is missing on one side. Ask for that before you divide.",
        "a = 4, b = 2, c = 1, d = 3: (12 − 2) / √(6 · 5 · 5 · 4) = 10 / 24.49 = 0.408.",
    ),
    solution=matthews,
    see="course_lib.train.task_metrics.matthews (for any number of classes)",
    when_raised=(
        (
            r"division by zero|divide by zero",
            "One of the four sums is 0: a class is missing among the true or among the predicted "
            "labels. Return 0 there.",
        ),
        (
            r"'bool' object",
            "true == predicted asks whether the two lists are the same, and has one answer. Go "
            "through zip(true, predicted).",
        ),
        (
            r"math domain error|nonnegative",
            "A root of a negative number: the root belongs over the product below the line alone.",
        ),
        (
            r"'list' object has no attribute|unsupported operand.*list|list.*unsupported",
            "The labels are plain lists, which know no arithmetic: go through zip(true, "
            "predicted), or make tensors of them first.",
        ),
    ),
    stages=(
        Check("two classes of about one size", _ask(_plain)),
        Check("a rare class", _ask(_rare)),
        Check("one class is missing: 0/0", _ask(_one_class)),
        Check("drawn tables", _ask(_everything)),
        Check("who knows nothing, and who knows something", _ask_what_accuracy_hides),
    ),
)
