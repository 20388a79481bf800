"""Answers to the exercises of lecture 11 as other hands write them, for test_exercises.py."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.objectives.classification import inverse_frequency  # noqa: F401
from course_lib.text.domains import repeated as by_library
from course_lib.train.layer_rates import layerwise_rates

# ---------------------------------------------------------------- 11.1


def added(counts, pieces, added):
    """With numpy, which sorts stably."""
    saved = np.array(counts) * (np.array(pieces) - 1)
    order = [int(i) for i in np.argsort(-saved, kind="stable") if saved[i]][:added]
    whole = (np.array(counts) * np.array(pieces)).sum()
    return order, whole / sum(counts), (whole - saved[order].sum()) / sum(counts)


# ---------------------------------------------------------------- 11.2


def rows(table, written, unknown):
    """By a matrix of counts."""
    counts = torch.zeros(len(written), len(table), dtype=table.dtype)
    for n, ids in enumerate(written):
        for id, count in Counter(i for i in ids if i != unknown).items():
            counts[n, id] = count
        if not counts[n].any():
            counts[n] = 1
    return counts @ table / counts.sum(1, keepdim=True)


# ---------------------------------------------------------------- 11.3


def rates(rate, layers, divisor):
    """From the head down."""
    every = [rate]
    for _ in range(layers + 1):
        every.append(every[-1] / divisor)
    return every[::-1], divisor ** (layers - 1)


def rates_by_library(rate, layers, divisor):
    scale = layerwise_rates(layers, divisor)
    names = ["encoder.embeddings.token.weight",
             *(f"encoder.stack.blocks.{n}.x" for n in range(layers)), "head.weight"]  # fmt: skip
    every = [rate * scale(name, 0) for name in names]
    return torch.tensor(every), every[-2] / every[1]


# ---------------------------------------------------------------- 11.4


def weighted(logits, labels, counts):
    """As a product with one-hot labels."""
    weights, P = counts.sum() / counts, logits.softmax(-1)
    hot = F.one_hot(labels, len(counts)) * weights
    return weights, -(hot * P.log()).sum() / hot.sum()


def plain_mean(logits, labels):
    return -logits.log_softmax(-1).gather(1, labels[:, None]).mean()


# ---------------------------------------------------------------- 11.5


def losses(logits, labels):
    flat, targets = logits.flatten(0, 1), labels.flatten()
    zero = torch.where(targets == -100, 0, targets)
    real = (targets >= 0).sum() / len(targets)
    return F.cross_entropy(flat, targets), F.cross_entropy(flat, zero), real


# ---------------------------------------------------------------- 11.6


def overlap(train, test, n):
    """As texts joined by spaces."""
    whole = [f" {' '.join(text)} " for text in train]
    runs = [" ".join(t[i : i + n]) for t in test for i in range(len(t) - n + 1)]
    return sum(any(f" {run} " in text for text in whole) for run in runs) / max(len(runs), 1)


def of_runs(train, test, begins, n):
    read = {tuple(t[i : i + n]) for t in train for i in begins(t)}
    runs = [tuple(t[i : i + n]) for t in test for i in begins(t)]
    return sum(run in read for run in runs) / max(len(runs), 1)


RIGHT: dict[str, list[Any]] = {
    "11.1": [added],
    "11.2": [rows],
    "11.3": [rates, rates_by_library],
    "11.4": [weighted],
    "11.5": [losses],
    "11.6": [overlap, lambda train, test, n: by_library([[" ".join(t)] for t in test],
                                                        [[" ".join(t)] for t in train], n)],
}  # fmt: skip
WRONG: dict[str, list[tuple[Any, str]]] = {
    "11.1": [
        (lambda c, p, a: added(c, [x + 1 for x in p], a), "you have"),
        (lambda c, p, a: (added(c, p, a)[0], *added(c, p, a)[:0:-1]), "you have"),
        (lambda c, p, a: (c[:a], *added(c, p, a)[1:]), "you have"),
        (lambda c, p, a: added(p, c, a), "you have"),
    ],
    "11.2": [
        (lambda t, w, u: rows(t, w, -1), "[UNK]'s row is in your mean"),
        (lambda t, w, u: rows(t, w, u) * 2, "you have"),
        (lambda t, w, u: torch.stack([t[[i for i in ids if i != u]].mean(0) for ids in w]),
         "The mean of no rows is nan"),
    ],
    "11.3": [
        (lambda r, n, d: (rates(r, n, d)[0][::-1], rates(r, n, d)[1]), "you have"),
        (lambda r, n, d: (rates(r, n, d)[0], d**n), "you have"),
        (lambda r, n, d: rates(1, n, d), "you have"),
    ],
    "11.4": [
        (lambda x, y, c: (c.sum() / c, plain_mean(x, y)), "The weights have no effect"),
        (lambda x, y, c: (c.sum() / c, weighted(x, y, 1 / c)[1]), "you have"),
        (lambda x, y, c: (c.sum() / c, F.cross_entropy(x, y, c.sum() / c)),
         "Your function calls `cross_entropy`"),
    ],
    "11.5": [
        (lambda x, y: losses(x, y.clamp(min=0)), "you have"),
        (lambda x, y: losses(2 * x, y), "you have"),
    ],
    "11.6": [
        (lambda a, b, n: overlap(b, a, n), "Train and test are exchanged"),
        (lambda a, b, n: overlap(a, b, n - 1), "you have"),
        (lambda a, b, n: of_runs(a, b, lambda t: range(len(t)), n), "shorter than n"),
        (lambda a, b, n: of_runs(a, b, lambda t: range(max(len(t) - n + 1, 1)), n), "you have"),
        (lambda a, b, n: 100 * overlap(a, b, n), "you have"),
    ],
}  # fmt: skip
