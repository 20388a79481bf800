"""How well labels and numbers are predicted: the metrics of GLUE and of sequence labelling.

N texts (or words); true and predicted are lists, tensors or arrays of N labels or numbers. All
scores lie in 0 to 1, not in percent. The definitions are scikit-learn's and scipy's; where one of
them divides zero by zero, the docstring says what comes out here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from numbers import Real
from statistics import fmean
from typing import Any


def accuracy(true: Iterable[Any], predicted: Iterable[Any]) -> float:
    """Fraction of the N labels that were predicted. ValueError: see `confusion`."""
    pairs = _labels(true, predicted)
    return fmean(t == p for t, p in pairs)


def f1(true: Iterable[Any], predicted: Iterable[Any], positive: Hashable = 1) -> float:
    """Harmonic mean of precision and recall of one class: 2·hits / (2·hits + false + missed).

    Where `positive` is neither true nor predicted anywhere (0/0) it is 0.0 if all labels are one
    other class; where they are two or more classes the name is probably misspelled: ValueError.
    Both as in scikit-learn. Else ValueError as `confusion`."""
    pairs = _labels(true, predicted)
    truly, predictions = sum(t == positive for t, _ in pairs), sum(p == positive for _, p in pairs)
    if truly + predictions == 0 and len(names := {label for pair in pairs for label in pair}) > 1:
        raise ValueError(
            f"positive={positive!r} was given, a label neither true nor predicted anywhere; "
            f"expected one of {_listed(names)}."
        )
    hits = sum(t == p == positive for t, p in pairs)
    return 2 * hits / max(truly + predictions, 1)


def macro_f1(true: Iterable[Any], predicted: Iterable[Any]) -> float:
    """The mean of every class's F1, rare classes counting as much as common ones.

    The classes are those that occur among the true or the predicted labels. ValueError: see
    `confusion`."""
    pairs = _labels(true, predicted)
    truth, predictions = zip(*pairs, strict=True)
    return fmean(f1(truth, predictions, positive=name) for name in {*truth, *predictions})


def matthews(true: Iterable[Any], predicted: Iterable[Any]) -> float:
    """Matthews' correlation of labels, −1 to 1, for two classes or more; CoLA's metric.

    It is Pearson's correlation of "is of class k" as truth and as prediction, covariances summed
    over the classes k. Undefined (0/0) where all labels, or all predictions, are one class: 0.0, as
    in scikit-learn. ValueError: see `confusion`."""
    pairs = _labels(true, predicted)
    n, names = len(pairs), {name for pair in pairs for name in pair}
    truly = [sum(t == name for t, _ in pairs) for name in names]
    predictions = [sum(p == name for _, p in pairs) for name in names]
    together = n * sum(t == p for t, p in pairs) - _dot(truly, predictions)
    r = _correlation(together, n * n - _dot(truly, truly), n * n - _dot(predictions, predictions))
    return 0.0 if math.isnan(r) else r


def pearson(true: Iterable[float], predicted: Iterable[float]) -> float:
    """How well a straight line maps the N numbers onto one another, −1 to 1; STS-B's first metric.

    Right to the last digit, however near to constant a side is. nan where one is constant (0/0), as
    in scipy. ValueError for different lengths, fewer than two numbers, and what is no number."""
    x, y = map(_centred, _numbers(true, predicted))
    return _correlation(_dot(x, y), _dot(x, x), _dot(y, y))


def spearman(true: Iterable[float], predicted: Iterable[float]) -> float:
    """Pearson's correlation of the ranks: only the order counts; STS-B's second metric.

    Equal numbers share the mean of their ranks. Undefined and refused as in `pearson`."""
    x, y = _numbers(true, predicted)
    return pearson(_ranks(x), _ranks(y))


def confusion(
    true: Iterable[Any], predicted: Iterable[Any], names: Sequence[Hashable]
) -> list[list[int]]:
    """How often each true label (row) was given each predicted one (column), in the order of names.

    ValueError for no labels, for lists of different lengths, for names on one side and numbers on
    the other, for what is no label (nan, a row of logits), for a label that is not among the names,
    and for a name that stands there twice."""
    pairs = _labels(true, predicted)
    if unknown := {label for pair in pairs for label in pair} - set(names):
        raise ValueError(f"labels [{_listed(unknown)}] were given; expected some of {list(names)}.")
    if len(set(names)) < len(names):
        raise ValueError(f"names {list(names)} were given; expected each of them once.")
    table = [[0] * len(names) for _ in names]
    for t, p in pairs:
        table[names.index(t)][names.index(p)] += 1
    return table


# ---------------------------------------------------------------- parts


def _labels(true: Iterable[Any], predicted: Iterable[Any]) -> list[tuple[Any, Any]]:
    """(true, predicted) of every text."""
    pairs = list(zip(*map(_plain, same_length(true, predicted)), strict=True))
    if not pairs:
        raise ValueError("No labels were given; expected at least one, true and predicted.")
    for label in (label for pair in pairs for label in pair):
        if not isinstance(label, Hashable) or label != label:
            raise ValueError(
                f"{label!r:.60} was given as a label; expected one name or whole number a text. Of "
                "logits, take the argmax first."
            )
    if len({isinstance(label, str) for pair in pairs for label in pair}) > 1:
        raise ValueError(
            f"{pairs[0][0]!r} was given as a true label and {pairs[0][1]!r} as a predicted one; "
            "expected names on both sides, or numbers on both."
        )
    return pairs


def _numbers(true: Iterable[float], predicted: Iterable[float]) -> tuple[list[float], list[float]]:
    x, y = map(_plain, same_length(true, predicted))
    if len(x) < 2 or not all(isinstance(v, Real) and math.isfinite(v) for v in x + y):
        raise ValueError(
            f"{x[:4]} and {y[:4]} (of {len(x)}) were given; expected at least two numbers each, "
            "none of them nan or infinite. A model that gives such has diverged."
        )
    return x, y


def same_length(true: Iterable[Any], predicted: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Both as lists; ValueError if one is longer. Tensors and arrays become plain numbers."""
    x, y = (side.tolist() if hasattr(side, "tolist") else list(side) for side in (true, predicted))
    if len(x) != len(y):
        raise ValueError(
            f"{len(x)} true and {len(y)} predicted were given; expected as many of each, in the "
            "same order."
        )
    return x, y


def _plain(values: list[Any]) -> list[Any]:
    """Numbers instead of tensors and arrays of one number, which compare and hash otherwise."""
    return [value.item() if getattr(value, "shape", None) == () else value for value in values]


def _centred(values: list[float]) -> list[int]:
    """N·(value − mean), all in one unit that makes them whole: rounded differences of numbers that
    differ by little would be mostly error."""
    exact = [Fraction(value) for value in values]
    unit = math.lcm(*(value.denominator for value in exact))
    whole = [value.numerator * (unit // value.denominator) for value in exact]
    total = sum(whole)
    return [len(whole) * value - total for value in whole]


def _dot(x: Sequence[int], y: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(x, y, strict=True))


def _correlation(covariance: int, first: int, second: int) -> float:
    """covariance / √(first · second) of whole numbers; nan where a variance is 0."""
    if not first or not second:
        return math.nan
    r = math.sqrt(covariance * covariance / (first * second))  # rounded once: 1 stays 1
    return r if covariance >= 0 else -r


def _ranks(values: list[float]) -> list[float]:
    """1 for the least; equal values get the mean of the ranks they cover."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order, start=1)))}
    last = {value: place for place, value in enumerate(order, start=1)}
    return [(first[value] + last[value]) / 2 for value in values]


def _listed(labels: Iterable[Any]) -> str:
    return ", ".join(sorted(map(repr, labels)))
