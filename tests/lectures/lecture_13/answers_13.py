"""What other hands might answer in lecture 13, right and wrong, for test_exercises.py."""

from __future__ import annotations

import math
from statistics import fmean, mean, median, quantiles, stdev
from typing import Any

import numpy as np
import torch

from course_lib.teaching.averages import glue_average

# ---------------------------------------------------------------- 13.1


def by_pearson(counts):
    """The definition: covariance and variances of zeros and ones."""
    p = counts.double() / counts.double().sum(dim=(1, 2), keepdim=True)
    true, predicted = p[:, 1].sum(1), p[:, :, 1].sum(1)
    variances = true * (1 - true) * predicted * (1 - predicted)
    correlation = (p[:, 1, 1] - true * predicted) / variances.clamp(min=1e-18).sqrt()
    return torch.where(variances > 1e-15, correlation, torch.zeros_like(correlation))


def in_python(counts, root=math.sqrt, empty=0):
    """Whole numbers of Python are never too large."""
    correlations = []
    for (a, b), (c, d) in counts.tolist():
        spread = (a + b) * (c + d) * (a + c) * (b + d)
        correlations.append((a * d - b * c) / root(spread) if spread else empty)
    return np.array(correlations)


def in_int64(counts):
    a, b, c, d = counts.flatten(1).unbind(1)
    spread = (a + b) * (c + d) * (a + c) * (b + d)
    return torch.where(spread > 0, (a * d - b * c) / spread.clamp(min=1).sqrt(), 0.0)


# ---------------------------------------------------------------- 13.2


def by_library(row, recipe):
    """The library refuses what has no average."""
    try:
        return glue_average(row, recipe)
    except ValueError:
        return math.nan


def written_out(row, recipe, missing=math.nan, end=fmean, halves=lambda two: two):
    """missing: what is said where a number lacks; halves: of MNLI in test-9."""
    tasks = ["CoLA", "SST-2", "QNLI", "RTE", "MNLI", "QQP", "MRPC", "STS-B"]
    tasks += ["WNLI"] if recipe == "leaderboard" else []
    numbers = []
    for task in tasks:
        score = row.get(task)
        two = score if isinstance(score, tuple | list) else (score,)
        needs_two = task == "MNLI" or (recipe == "leaderboard" and task in ("QQP", "MRPC", "STS-B"))
        if score is None or len(two) < 1 + needs_two:
            return missing
        if recipe == "leaderboard":
            numbers.append(mean(two))
        elif task == "MNLI":
            numbers.extend(halves(two))
        else:
            numbers.append(two[-1 if task == "STS-B" else 0])
    return end(numbers)


def of_what_is_there(row, recipe):
    """Averages over the tasks of the row."""
    row = {t: s if isinstance(s, tuple | list) else [s] for t, s in row.items()}
    if recipe == "leaderboard":
        return fmean(fmean(two) for two in row.values())
    row.pop("WNLI", None)
    numbers = [two[-1 if task == "STS-B" else 0] for task, two in row.items()]
    return fmean([*numbers, *row.get("MNLI", [])[1:]])


# ---------------------------------------------------------------- 13.3


def paired(correct_a, correct_b, resampled, ends=(2.5, 97.5)):
    """Both models on each set, in numpy."""
    a, b, resampled = correct_a.numpy(), correct_b.numpy(), resampled.numpy()
    return tuple(np.percentile(a[resampled].mean(1) - b[resampled].mean(1), ends))


def by_sorting(
    correct_a, correct_b, resampled, apart=lambda a, b: sum(a) / len(a) - sum(b) / len(b)
):
    """Set by set; the percentiles are places in the sorted list."""
    a, b = correct_a.tolist(), correct_b.tolist()
    differences = sorted(
        apart([a[i] for i in row], [b[i] for i in row]) for row in resampled.tolist()
    )
    out = round(0.025 * (len(differences) - 1))
    return [differences[out], differences[-1 - out]]


def as_one_tensor(correct_a, correct_b, resampled):
    gains = correct_a.float() - correct_b.float()
    return gains[resampled].mean(1).quantile(torch.tensor([0.025, 0.975]))


def ahead(a, b, d):
    """How far the better of the two is ahead."""
    ends = np.array(paired(a, b, d))
    return ends if a.sum() >= b.sum() else -ends[::-1]


def own_draws(correct_a, correct_b, resampled):
    resampled = torch.randint(len(correct_a), resampled.shape)
    return paired(correct_a, correct_b, resampled)


# ---------------------------------------------------------------- 13.4


def verdict(a, b, spread=stdev):
    gains = (a - b).tolist()
    if len(gains) == 1:
        return 0
    for side in (1, -1):
        if all(side * g > 0 for g in gains) and side * mean(gains) > spread(gains):
            return side
    return 0


def verdict_in_numpy(a, b, ddof=1):
    gains = a.numpy() - b.numpy()
    if gains.size < 2 or abs(np.sign(gains).sum()) < gains.size:
        return 0
    return int(np.sign(gains.mean())) * int(abs(gains.mean()) > gains.std(ddof=ddof))


# ---------------------------------------------------------------- 13.5


def by_statistics(seconds, warm_up, batch_size, p95=None):
    timed = seconds[warm_up:]
    ranked = sorted(timed)[-(-19 * len(timed) // 20) - 1]
    return median(timed), p95(timed) if p95 else ranked, batch_size / fmean(timed)


def by_numpy(seconds, warm_up, batch_size, method="inverted_cdf"):
    timed = np.array(seconds[warm_up:])
    p95 = np.percentile(timed, 95, method=method)
    return np.median(timed), p95, len(timed) * batch_size / timed.sum()


def by_torch(seconds, warm_up, batch_size):
    """torch's median is the lower of the two in the middle."""
    timed = torch.tensor(seconds[warm_up:], dtype=torch.float64)
    return timed.median(), by_statistics(seconds, warm_up, 1)[1], batch_size / timed.mean()


# ---------------------------------------------------------------- 13.6


def dominates(one, other):
    (s, c), (t, d) = one, other
    return s >= t and c <= d and (s > t or c < d)


def one_by_one(scores, costs, beats=dominates):
    points = list(zip(scores.tolist(), costs.tolist(), strict=True))
    return [not any(beats(other, point) for other in points) for point in points]


def by_groups(scores, costs):
    """From the cheapest up, those of one cost together."""
    undominated, best = torch.zeros(len(scores)).bool(), -math.inf
    for cost in costs.unique().tolist():
        here = costs == cost
        top = scores[here].max().item()
        if top > best:
            undominated |= here & (scores == top)
        best = max(best, top)
    return undominated


def in_both(one, other):
    return one[0] > other[0] and one[1] < other[1]


RIGHT: dict[str, list[Any]] = {
    "13.1": [by_pearson, in_python, lambda c: in_python(c).tolist()],
    "13.2": [by_library, written_out, lambda row, recipe: np.float64(written_out(row, recipe))],
    "13.3": [paired, by_sorting, as_one_tensor, lambda *inputs: np.array(paired(*inputs))],
    "13.4": [verdict, verdict_in_numpy, lambda a, b: torch.tensor(verdict(a, b)),
             lambda a, b: np.float64(verdict(a, b))],
    "13.6": [one_by_one, by_groups, lambda *inputs: np.array(one_by_one(*inputs))],
    "13.5": [by_statistics, by_numpy],
}  # fmt: skip
WRONG: dict[str, list[tuple[Any, str]]] = {
    "13.1": [
        (in_int64, "too large for int64"),
        (lambda c: c.diagonal(dim1=1, dim2=2).sum(1) / c.sum((1, 2)), "This is the accuracy"),
        (lambda c: c[2], "counts[:, 1, 0]"),
    ],
    "13.2": [
        (of_what_is_there, "return nan"),
        (lambda *inputs: written_out(*inputs, missing=0.0), "expected nan"),
        (lambda *inputs: written_out(*inputs, missing=None), "returned None"),
        (lambda *inputs: written_out(*inputs, halves=lambda two: two[:1]), "first half of MNLI"),
        (lambda row, recipe: row["WNLI"] and written_out(row, recipe), "row.get(task)"),
        (lambda row, recipe: fmean(row.values()), "make a list"),
        (glue_average, "raised ValueError"),
    ],
    "13.3": [
        (ahead, "you have"),
        (own_draws, "The indices are given"),
        (lambda a, b, d: paired(a, b, d, (5, 95)), "These are the ends of 90%"),
        (lambda a, b, d: (a.double() - b.double())[d].mean(1).quantile(2.5), "fractions of 1"),
        (lambda a, b, d: (a - b)[d].mean(1), "cannot be subtracted"),
    ],
    "13.4": [
        (lambda a, b: verdict_in_numpy(a, b, ddof=0), "divides by n"),
        (lambda a, b: 1 if a > b else 0, "one True or False a seed"),
    ],
    "13.6": [
        (lambda s, c: one_by_one(s, c, in_both), "better in *both*"),
        (lambda s, c: [x for x in s if x > s], "one True or False a model"),
    ],
    "13.5": [
        (by_torch, "the lower middle one"),
        (lambda s, w, b: by_statistics(s, w, b, lambda t: quantiles(t, n=20)[-1]), "you have"),
        (lambda s, w, b: by_statistics(s, 0, b), "The warm-up calls are in"),
        (lambda s, w, b: sorted(s)[len(s) / 2], "n // 2 does"),
    ],
}  # fmt: skip
