"""How sure a benchmark's number is: intervals by resampling the test texts (bootstrap).

The same texts are drawn for every model, so that a difference of two models is judged on the same
resampled test sets: it is paired. What resampling texts cannot show is how another seed would have
trained: the spread over seeds stands beside it. An interval of one score alone is
train.calibration's `bootstrap_interval`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Score = Callable[[Sequence[Any], Sequence[Any]], Any]  # a number, or several by name


def bootstrap_indices(texts: int, draws: int, seed: int = 0) -> np.ndarray:
    """Numbers of the texts of each resampled test set, with replacement: (draws, texts)."""
    return np.random.default_rng(seed).integers(texts, size=(draws, texts))


def resampled(
    score: Score, predictions: Sequence[Any], true: Sequence[Any], which: np.ndarray
) -> Any:
    """The score on each resampled test set: which (draws, texts) -> (draws,).

    predictions, true: a model's answer and the label of every text. Raises ValueError where their
    lengths differ from `which`'s."""
    if not len(predictions) == len(true) == which.shape[1]:
        raise ValueError(
            f"{len(predictions)} answers and {len(true)} labels were given for drawn sets of "
            f"{which.shape[1]} texts; expected as many of each."
        )
    a, b = np.array(predictions), np.array(true)
    return np.array([score(a[row].tolist(), b[row].tolist()) for row in which])


def interval(values: Any, level: float = 0.95) -> tuple[float, float]:
    """Between which two numbers the middle `level` of the values lie."""
    edge = 50 * (1 - level)
    low, high = np.percentile(values, [edge, 100 - edge])
    return float(low), float(high)
