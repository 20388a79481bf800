"""How well labels and numbers are predicted: the metrics of GLUE and of sequence labelling.

N texts (or words); true and predicted are lists, tensors or arrays of N labels or numbers. All
scores lie in 0 to 1, not in percent. The definitions are scikit-learn's and scipy's; where one of
them divides zero by zero, the docstring says what comes out here.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from statistics import fmean
from typing import Any


def accuracy(true: Iterable[Any], predicted: Iterable[Any]) -> float:
    """Fraction of the N labels that were predicted. ValueError: see `confusion`."""
    pairs = _labels(true, predicted)
    return fmean(t == p for t, p in pairs)


def f1(true: Iterable[Any], predicted: Iterable[Any], positive: Hashable = 1) -> float:
    """Harmonic mean of precision and recall of one class: 2·hits / (2·hits + false + missed).

    ValueError where `positive` is neither among the true labels nor predicted: F1 is 0/0 there, and
    the name is probably misspelled (scikit-learn gives 0.0 if there is but one class). Else as
    `confusion`."""
    pairs = _labels(true, predicted)
    truly, said = sum(t == positive for t, _ in pairs), sum(p == positive for _, p in pairs)
    if truly + said == 0:
        raise ValueError(
            f"positive={positive!r} was given, a label neither true nor predicted anywhere; "
            f"expected one of {_listed(pairs)}."
        )
    hits = sum(t == p == positive for t, p in pairs)
    return 2 * hits / (truly + said)


def macro_f1(true: Iterable[Any], predicted: Iterable[Any]) -> float:
    """The mean of every class's F1, rare classes counting as much as common ones.

    The classes are those that occur among the true or the predicted labels. ValueError: see
    `confusion`."""
    pairs = _labels(true, predicted)
    truth, said = zip(*pairs, strict=True)
    return fmean(f1(truth, said, positive=name) for name in {*truth, *said})


def matthews(true: Iterable[Any], predicted: Iterable[Any]) -> float:
    """Matthews' correlation of labels, −1 to 1, for two classes or more; CoLA's metric.

    It is Pearson's correlation of "is of class k" as truth and as prediction, covariances summed
    over the classes k. Undefined (0/0) where all labels, or all predictions, are one class: 0.0, as
    in scikit-learn. ValueError: see `confusion`."""
    pairs = _labels(true, predicted)
    n, names = len(pairs), {name for pair in pairs for name in pair}
    truly = [sum(t == name for t, _ in pairs) for name in names]
    said = [sum(p == name for _, p in pairs) for name in names]
    spread = (n * n - sum(x * x for x in truly)) * (n * n - sum(x * x for x in said))
    together = n * sum(t == p for t, p in pairs) - sum(
        x * y for x, y in zip(truly, said, strict=True)
    )
    return together / math.sqrt(spread) if spread else 0.0


def pearson(true: Iterable[float], predicted: Iterable[float]) -> float:
    """How well a straight line maps the N numbers onto one another, −1 to 1; STS-B's first metric.

    nan where one side is constant (0/0), as in scipy. ValueError for different lengths, fewer than
    two numbers, and what is no number."""
    x, y = _numbers(true, predicted)
    if min(x) == max(x) or min(y) == max(y):
        return math.nan
    x, y = _centred(x), _centred(y)
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(x, y, strict=True))))


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
    the other, and for a label that is not among the names."""
    pairs = _labels(true, predicted)
    if unknown := {label for pair in pairs for label in pair} - set(names):
        raise ValueError(f"labels {sorted(unknown)} were given; expected some of {list(names)}.")
    table = [[0] * len(names) for _ in names]
    for t, p in pairs:
        table[names.index(t)][names.index(p)] += 1
    return table


# ---------------------------------------------------------------- parts


def _labels(true: Iterable[Any], predicted: Iterable[Any]) -> list[tuple[Any, Any]]:
    """(true, predicted) of every text."""
    pairs = list(zip(*same_length(true, predicted), strict=True))
    if not pairs:
        raise ValueError("No labels were given; expected at least one, true and predicted.")
    if len({isinstance(label, str) for pair in pairs for label in pair}) > 1:
        raise ValueError(
            f"{pairs[0][0]!r} was given as a true label and {pairs[0][1]!r} as a predicted one; "
            "expected names on both sides, or numbers on both."
        )
    return pairs


def _numbers(true: Iterable[float], predicted: Iterable[float]) -> tuple[list[float], list[float]]:
    x, y = same_length(true, predicted)
    if len(x) < 2 or not all(map(math.isfinite, x + y)):
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


def _centred(values: list[float]) -> list[float]:
    """The values less their mean, as a vector of length 1."""
    mean = fmean(values)
    moved = [value - mean for value in values]
    length = math.hypot(*moved)
    return [value / length for value in moved]


def _ranks(values: list[float]) -> list[float]:
    """1 for the least; equal values get the mean of the ranks they cover."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order, start=1)))}
    last = {value: place for place, value in enumerate(order, start=1)}
    return [(first[value] + last[value]) / 2 for value in values]


def _listed(pairs: list[tuple[Any, Any]]) -> str:
    return ", ".join(sorted({repr(label) for pair in pairs for label in pair}))
