"""Answers to the exercises of lecture 12 as other hands write them, for test_exercises.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

# ---------------------------------------------------------------- 12.1


def entropy(logits):
    return torch.distributions.Categorical(logits=logits).entropy()


def uncertainty(logits):
    """The paper's formula: Σ p log p / log(1/N)."""
    p = logits.softmax(-1)
    return torch.xlogy(p, p).sum(-1) / math.log(1 / logits.shape[-1])


def uncertainty_in_bits(logits):
    """With numpy, text by text, without the classes that have no probability."""
    values = []
    for row in logits.numpy():
        p = np.exp(row - row.max())
        p = p[p > 0] / p.sum()
        values.append(-(p * np.log2(p)).sum() / np.log2(len(row)))
    return np.array(values)


def uncertainty_with_epsilon(logits):
    p = logits.softmax(-1)
    return -(p * (p + 1e-12).log()).sum(-1) / math.log(logits.shape[-1])


def plain_uncertainty(logits):
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    return -(p * p.log()).sum(-1) / math.log(logits.shape[-1])


# ---------------------------------------------------------------- 12.2


def exits(uncertainties, speed, offset=0):
    """Text by text. offset: 0 where layers count from 1, 1 where from 0."""
    columns = uncertainties.T.tolist()
    last = len(uncertainties) - 1
    sure = [[n for n, u in enumerate(column) if u <= speed] for column in columns]
    return [(places[0] if places else last) + 1 - offset for places in sure]


def exits_by_leaving(uncertainties, speed):
    """Layer by layer, with the texts that are still there."""
    left, layers = list(range(uncertainties.shape[1])), torch.zeros(uncertainties.shape[1]).long()
    for layer, row in enumerate(uncertainties, 1):
        going = [b for b in left if row[b] <= speed or layer == len(uncertainties)]
        layers[going] = layer
        left = [b for b in left if b not in going]
    return layers


def exits_overwritten(uncertainties, speed):
    """From the last layer to the first; an earlier one replaces what is there."""
    layers = torch.full((uncertainties.shape[1],), len(uncertainties))
    for layer in range(len(uncertainties), 0, -1):
        layers[uncertainties[layer - 1] <= speed] = layer
    return layers


# ---------------------------------------------------------------- 12.3


def kl_div(students, teacher, reduction="batchmean"):
    """Student by student."""
    p = teacher.detach().softmax(-1)
    return sum(F.kl_div(s.log_softmax(-1), p, reduction=reduction) for s in students)


def kl_div_at_once(students, teacher, reduction="none"):
    p = teacher.detach().softmax(-1).expand_as(students)
    terms = F.kl_div(students.log_softmax(-1), p, reduction=reduction)
    return terms.sum(-1).mean(1).sum() if reduction == "none" else terms


def kl_of_distributions(students, teacher):
    s, t = (torch.distributions.Categorical(logits=x) for x in (students, teacher.detach()))
    return torch.distributions.kl_divergence(t, s).sum() / len(teacher)


def reverse_kl(students, teacher):
    log_t = teacher.detach().log_softmax(-1)
    return sum(F.kl_div(log_t, s.softmax(-1), reduction="batchmean") for s in students)


# ---------------------------------------------------------------- 12.4


def padded(x, order=(2, 1, 0), value=0.0):
    """Windows of three positions; order: which of them stands first."""
    framed = F.pad(x, (0, 0, 1, 1), value=value)
    return torch.cat([framed[:, n : n + x.shape[1]] for n in order], dim=-1)


def unfolded(x):
    return F.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1).flip(-1).transpose(-1, -2).flatten(2)


def rolled(x):
    following, previous = x.roll(-1, 1), x.roll(1, 1)
    following[:, -1], previous[:, 0] = 0, 0
    return torch.cat([following, x, previous], dim=-1)


# ---------------------------------------------------------------- 12.5


def by_diagonal(weight, bias, gamma, beta):
    return torch.diag(gamma) @ weight, torch.addcmul(beta, gamma, bias)


def by_asking(weight, bias, gamma, beta):
    """What both layers give for zeros, and for each unit vector."""

    def layers(x):
        return gamma * F.linear(x, weight, bias) + beta

    start = layers(torch.zeros_like(weight[0]))
    return (layers(torch.eye(weight.shape[1], dtype=weight.dtype)) - start).T, start


def as_lists(weight, bias, gamma, beta):
    rows = [[g * w for w in row] for g, row in zip(gamma.tolist(), weight.tolist(), strict=True)]
    return rows, (gamma * bias + beta).tolist()


# ---------------------------------------------------------------- 12.6


def int8(weight, most=127.0, over=None, whole=torch.round, as_type=torch.int8):
    """over: how the scale is found of |w|."""
    scale = weight.abs().amax(1) / most if over is None else over(weight)
    scale = torch.where(scale == 0, 1, scale)
    return whole(weight / scale[:, None]).clamp(-128, 127).to(as_type), scale


def int8_in_numpy(weight):
    weight = weight.numpy()
    scale = np.abs(weight).max(1) / 127
    scale[scale == 0] = 1
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def int8_by_rows(weight):
    whole, scales = [], []
    for row in weight.tolist():
        scales.append(max(map(abs, row)) / 127 or 1.0)
        whole.append([round(w / scales[-1]) for w in row])
    return torch.tensor(whole, dtype=torch.int8), scales


RIGHT: dict[str, list[Any]] = {
    "12.1": [uncertainty, uncertainty_in_bits, uncertainty_with_epsilon,
             lambda x: entropy(x) / np.log(x.shape[1])],
    "12.2": [exits, exits_by_leaving, exits_overwritten,
             lambda u, speed: (u[:-1] > speed).int().cumprod(0).sum(0) + 1,
             lambda u, speed: (u.cummin(0).values[:-1] > speed).sum(0) + 1],
    "12.3": [kl_div, kl_div_at_once, kl_of_distributions],
    "12.4": [padded, unfolded, rolled],
    "12.5": [by_diagonal, by_asking, as_lists,
             lambda w, b, g, beta: ((w.T * g).T, g * b + beta)],
    "12.6": [int8, int8_in_numpy, int8_by_rows, lambda w: int8(w.float())],
}  # fmt: skip
WRONG: dict[str, list[tuple[Any, str]]] = {
    "12.1": [
        (plain_uncertainty, "0 · log 0 is nan"),
        (lambda x: uncertainty(x).mean(), "only the mean over everything"),
    ],
    "12.2": [
        (lambda u, speed: exits(u, speed, offset=1), "You count layers from 0"),
        (lambda u, speed: (u <= speed).argmax(0) + 1, "argmax wants numbers"),
        (lambda u, speed: (u > speed).sum(0) + 1, "You count *all* unsure layers"),
    ],
    "12.3": [
        (reverse_kl, "The other direction"),
        (lambda s, t: sum(F.kl_div(x.log_softmax(-1), t.detach().log_softmax(-1)) for x in s),
         "unless you say log_target=True"),
    ],
    "12.4": [
        (lambda x: padded(x, (0, 1, 2)), "The previous token comes first"),
        (lambda x: padded(x, (1, 2, 0)), "The token itself comes first"),
        (lambda x: padded(x, value=1.0), "you have"),
        (lambda x: torch.cat([x[:, 1:], x, x[:, :-1]], -1), "A shifted one has lost a position"),
    ],
    "12.5": [
        (lambda w, b, g, beta: (g * w, g * b + beta), "You scale the columns"),
        (lambda w, b, g, beta: by_diagonal(w, b, 1 + g, beta), "you have"),
    ],
    "12.6": [
        (lambda w: int8(w, whole=torch.trunc), "You drop the decimals"),
        (lambda w: int8(w, over=lambda w: w.abs().max(1) / 127), ".amax(dim) gives"),
        (lambda w: (int8(w)[0].tolist(), int8(w)[1]), "expected 'int8'"),
    ],
}  # fmt: skip
