"""How far a score and a probability can be trusted: bootstrap intervals, calibration, temperature.

A model is calibrated if, of the texts to which it gives its answer with probability p, a fraction p
is right (Guo, Pleiss, Sun and Weinberger 2017, arXiv 1706.04599). N texts, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

TEMPERATURES = (0.05, 100.0)  # the range that is searched


class Bin(NamedTuple):
    """The texts whose answer has a probability above `low` and at most `high`."""

    low: float
    high: float
    texts: int  # how many
    confidence: float  # mean probability of the answer; nan for an empty bin
    accuracy: float  # fraction of right answers; nan for an empty bin


def confidences(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """The probability of each text's answer, the class with the highest logit, and whether it is
    right.

    logits (N, C), labels (N,): class numbers. Returns two tensors (N,), float64 and bool. The
    probabilities are softmax(logits / temperature) (Guo et al. 2017, equation 9): a temperature
    changes how sure the model is, never its answer. ValueError for other shapes, no texts, logits
    that are not finite, labels that are no class, and a temperature not above 0."""
    labels = _checked(logits, labels, temperature)
    probabilities = (logits.double() / temperature).softmax(-1)
    return probabilities.amax(-1), logits.argmax(-1) == labels


def log_loss(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> float:
    """Mean cross-entropy of the right class at a temperature, nats. ValueError as `confidences`."""
    labels = _checked(logits, labels, temperature)
    return torch.nn.functional.cross_entropy(logits.double() / temperature, labels).item()


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The temperature with the least `log_loss` (Guo et al. 2017, section 4.2), within 0.05 to 100.

    Choose it on other texts than those it is tested on. In 1/T the loss is convex, so bisection on
    its slope finds the one minimum. ValueError as `confidences`."""
    labels = _checked(logits, labels, 1.0)
    z, rows = logits.double(), torch.arange(len(labels))

    def rising(inverse: float) -> bool:
        """Is the mean logit that the model expects above that of the right class?"""
        expected = ((z * inverse).softmax(-1) * z).sum(-1)
        return bool((expected - z[rows, labels]).mean() > 0)

    low, high = 1 / TEMPERATURES[1], 1 / TEMPERATURES[0]
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if rising(middle) else (middle, high)
    return 1 / high


def reliability(confidence: Tensor, right: Tensor, bins: int = 10) -> list[Bin]:
    """The texts sorted by the probability of their answer into bins of equal width from 0 to 1: the
    numbers of a reliability diagram (Guo et al. 2017, section 2).

    confidence, right: (N,) as `confidences` gives. A value on an edge, m / bins in the confidences'
    own type, belongs to the bin below it, and 0 to the first. ValueError for different lengths, no
    texts, probabilities outside 0 to 1, and bins that are no whole number from 1 on."""
    shapes_fit = confidence.shape == right.shape and confidence.ndim == 1 and len(right)
    if not shapes_fit or not isinstance(bins, int) or bins < 1:
        raise ValueError(
            f"confidence {tuple(confidence.shape)}, right {tuple(right.shape)} and bins={bins} "
            "were given; expected (N,) twice, N at least 1, and at least one bin."
        )
    if not ((confidence >= 0) & (confidence <= 1)).all():
        raise ValueError("A confidence is not within 0 to 1; expected probabilities.")
    edges = torch.tensor([k / bins for k in range(1, bins)], dtype=torch.float64)
    if confidence.is_floating_point():
        edges = edges.to(confidence.dtype).double()  # 0.3 is another number in float32
    number = torch.bucketize(confidence.double(), edges)  # low < p <= high
    result = []
    for k in range(bins):
        inside = number == k
        count = int(inside.sum())
        means = [x[inside].double().mean().item() for x in (confidence, right)]
        result.append(Bin(k / bins, (k + 1) / bins, count, *means))
    return result


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """ECE: |accuracy − confidence| of each bin, weighted by its texts (Guo et al. 2017, equation
    3). 0 to 1; it depends on the number of bins and, with few texts, on chance. ValueError for bins
    without a text."""
    if not (texts := sum(part.texts for part in bins)):
        raise ValueError(f"{len(bins)} bins without a text were given; expected at least one text.")
    gaps = (part.texts * abs(part.accuracy - part.confidence) for part in bins if part.texts)
    return sum(gaps) / texts


def bootstrap_interval(
    values: Sequence[float] | np.ndarray | Tensor,
    score: Callable[[Any], float] = np.mean,
    *,
    level: float = 0.95,
    draws: int = 1_000,
    seed: int = 0,
) -> tuple[float, float]:
    """From where to where a score goes when the N test items are drawn anew, with replacement: the
    percentile interval of scipy.stats.bootstrap.

    values (N,): a number an item, such as right or wrong; or, for a score that is no mean, the
    items' numbers 0 to N − 1, and `score` a function of those drawn. The interval says what another
    test set of this size and kind could give, and nothing about another run of the training.
    ValueError for fewer than two items, and for a level not between 0 and 1."""
    from scipy.stats import bootstrap

    sample = np.asarray(values)
    if sample.ndim != 1 or len(sample) < 2 or not 0 < level < 1:
        raise ValueError(
            f"values of shape {sample.shape} and level={level!r} were given; expected (N,), N at "
            "least 2, and a level between 0 and 1."
        )
    result = bootstrap(
        (sample,), score, vectorized=False, n_resamples=draws, confidence_level=level,
        method="percentile", random_state=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return float(result.low), float(result.high)


def _checked(logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """The labels as int64."""
    if logits.ndim != 2 or labels.shape != logits.shape[:1] or not len(labels):
        raise ValueError(
            f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} were given; expected "
            "(N, C) and (N,), N at least 1."
        )
    if not logits.isfinite().all():
        raise ValueError("The logits hold what is no number; expected finite ones.")
    if labels.is_floating_point() or not ((labels >= 0) & (labels < logits.shape[1])).all():
        raise ValueError(f"A label is not among the {logits.shape[1]} classes, counted from 0.")
    if not temperature > 0:
        raise ValueError(f"temperature={temperature!r} was given; expected a number above 0.")
    return labels.long()
