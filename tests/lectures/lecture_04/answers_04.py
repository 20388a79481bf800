"""What other hands might write for the exercises of lecture 04, right and wrong.

A wrong answer that does what an edit of the solution does is tested with the edits."""

from __future__ import annotations

import functools
import math
import random
from itertools import pairwise
from statistics import fmean

import numpy as np
import torch

# ---------------------------------------------------------------- 04.1

SPECIAL = ("[PAD]", "[CLS]", "[SEP]")


def select(sequences, examples, epoch, copies, count, draw, skip=0):
    copy, selected = epoch if copies is None else epoch % copies, []
    for i, tokens in enumerate(sequences):
        order = sorted((draw(copy, examples[i], t), t)
                       for t, token in enumerate(tokens) if token not in SPECIAL)  # fmt: skip
        selected.append([t for _, t in order[skip : skip + count]])
    return selected


def below(sequences, examples, epoch, copies, count, draw, at):
    return [[t for t, token in enumerate(tokens)
             if token not in SPECIAL and draw(epoch, i, t) < at]
            for tokens, i in zip(sequences, examples, strict=True)]  # fmt: skip


def keeping(kept):
    def answer(sequences, examples, *more):
        key = id(more[-1])  # of one question's draw, so that no check helps another
        selected = select(sequences, examples, *more)
        pairs = zip(examples, selected, strict=True)
        return [kept.setdefault((key, example), places) for example, places in pairs]

    return answer


def counting(visits):
    def answer(sequences, examples, epoch, *more):
        visits[0] += 1
        return select(sequences, examples, visits[0], *more)

    return answer


def by_chance(sequences, examples, epoch, copies, count, draw):
    words = [[t for t, token in enumerate(s) if token not in SPECIAL] for s in sequences]
    return [random.sample(places, count) for places in words]


# ---------------------------------------------------------------- 04.2


def fraction(n, k, p, c):
    return 1 - math.prod([1 - k / (n - 2)] * min(p, c or p))


# ---------------------------------------------------------------- 04.3


def positions(input_ids, pad_id, step=1):
    """With loops."""
    out = input_ids.clone()
    for row in out:
        position = pad_id
        for t, token in enumerate(row.tolist()):
            position += step * (token != pad_id)
            row[t] = position if token != pad_id else pad_id
    return out


def positions_with_numpy(input_ids, pad_id):
    real = input_ids.numpy() != pad_id
    return np.where(real, pad_id + np.cumsum(real, axis=1), pad_id)


# ---------------------------------------------------------------- 04.4


def join_all(pieces, at):
    pair, out, i = pieces[at : at + 2], [], 0
    while i < len(pieces):
        width = 2 if pieces[i : i + 2] == pair else 1
        out.append("".join(pieces[i : i + width]))
        i += width
    return out


def join_one(pieces, at):
    return [*pieces[:at], "".join(pieces[at : at + 2]), *pieces[at + 2 :]]


def cut(word, merges, joined=join_all):
    pieces = list(word)
    while ranked := [(merges.index(p), i) for i, p in enumerate(pairwise(pieces)) if p in merges]:
        pieces = joined(pieces, min(ranked)[1])
    return tuple(pieces)


def through_the_list(word, merges):
    return functools.reduce(
        lambda pieces, pair: next((join_all(pieces, i) for i, p in enumerate(pairwise(pieces))
                                   if p == pair), pieces), merges, list(word))  # fmt: skip


# ---------------------------------------------------------------- 04.5


def averaged(end=fmean, halves=lambda two: two):
    """The recipes written out; end: of all numbers; halves: of MNLI's two in test-9."""

    def answer(row, recipe):
        numbers = []
        for task in row:
            two = list(row[task]) if isinstance(row[task], (tuple, list)) else [row[task]]
            task_scores = [sum(two) / len(two)] if recipe == "leaderboard" else two[:1]
            if recipe == "test-9" and task in ("MNLI", "STS-B"):
                task_scores = halves(two) if task == "MNLI" else two[-1:]
            numbers += [] if task == "WNLI" and recipe in ("test-9", "dev-8") else task_scores
        return end(numbers)

    return answer


# ---------------------------------------------------------------- 04.6


def accumulated(losses, selected, *others, least=1):
    total = sum(x * n for x, n in zip(losses, selected, strict=True) if x == x)
    return total / max(least, sum(selected))


def with_tensors(losses, selected, sequences, tokens):
    n = torch.tensor(selected, dtype=torch.float64)
    return (torch.tensor(losses, dtype=torch.float64).nan_to_num() * n).sum() / n.sum().clamp(1)


RIGHT = {
    "04.1": [select, lambda *args: [set(places) for places in select(*args)],
             lambda *args: torch.tensor(select(*args))],
    "04.2": [fraction, lambda n, k, p, c: 1 - ((n - 2 - k) / (n - 2)) ** min(p, c or math.inf)],
    "04.3": [positions, positions_with_numpy, lambda ids, pad: positions(ids, pad).tolist()],
    "04.4": [cut, lambda w, m: cut(w, m, joined=join_one), through_the_list],
    "04.5": [averaged(), averaged(end=np.mean)],
    "04.6": [accumulated, with_tensors],
}  # fmt: skip
WRONG = {
    "04.1": [
        (keeping({}), "keeps a sequence's first mask"),
        (counting([0]), "Asked twice for the same batch"),
        (by_chance, "Asked twice for the same batch"),
        (lambda *args: below(*args, at=0.15), "left to chance"),
        (lambda *args: below(*args, at=0.5), "Numbers of positions selected: you have"),
        (lambda *args: [[True] * 6 for _ in args[0]], "holds True (bool)"),
        (lambda *args: [list(range(1, 1 + args[4])) for _ in args[0]], "never calls draw"),
        (lambda *args: select(*args, skip=1), "you have"),
    ],
    "04.2": [
        (lambda n, k, p, c: min(1, k / (n - 2) * min(p, c or p)), "cut the sum off at 1"),
        (lambda n, k, p, c: fraction(n - 1, k, p, c), "you have"),
    ],
    "04.3": [
        (lambda ids, pad: (ids != pad).long().cumsum(), "dim=1"),
        (lambda ids, pad: pad + (1 - (ids == pad)).cumsum(1), "add .long()"),
        (lambda ids, pad: positions(ids, pad, step=2), "you have"),
    ],
    "04.4": [
        (lambda word, merges: [word[i] + word[i + 1] for i in range(len(word))], "i + 1 < len"),
    ],
    "04.5": [
        (averaged(halves=lambda two: [sum(two) / 2]), "two halves of MNLI are averaged"),
        (averaged(end=lambda x: fmean(x) + 2), "you have"),
    ],
    "04.6": [
        (lambda x, n, *more: 0 if 0 in n else accumulated(x, n), "makes your whole loss 0"),
        (lambda x, n, *more: sum(a * b for a, b in zip(x, n, strict=True)) / sum(n), "0 · nan"),
        (lambda *args: 1.5 * accumulated(*args), "you have"),
        (lambda x, n, *more: accumulated(x, n) if sum(n) else math.nan, "the expected loss is 0"),
    ],
}  # fmt: skip
