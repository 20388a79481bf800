"""Exercises of lecture 14: the planted wrong answers, and the solutions beside the library.

What every exercise must do is asked in test_exercises.py, of these as of all others.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.kernels import early_exit
from course_lib.kernels.masked_loss import masked_loss_reference
from course_lib.kernels.unpadding import Packing
from course_lib.lectures.lecture_14.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_14.exercises import (
    bound,
    leaving,
    loss,
    numbers,
    online,
    real,
    skew,
)
from course_lib.teaching.exercises.legacy import Draw, check_answer, close

EXERCISES = {exercise.id: exercise for exercise in ALL}
SEEDS = (0, 1, 2, 3, 4, 5)
torch.set_num_threads(1)  # the tensors are tiny


# ---------------------------------------------------------------- planted wrong answers


def seconds(join, scale=1.0, f=1e9, b=1e9):
    return lambda flops, moved, peak, rate: scale * join(flops / (peak * f), moved / (rate * b))


def loss_with(pick=lambda h, y: (h[y != -100], y[y != -100]), end=lambda x: x, **how):
    """The loss by hand: pick the rows, log-softmax, look up, average."""

    def answer(hidden, head, labels):
        states, words = pick(hidden, labels)
        return end(F.cross_entropy(how.get("scores", lambda x: x)(head(states)), words))

    return answer


def loss_sum(divide):
    def answer(hidden, head, labels):
        asked = labels != -100
        total = -head(hidden[asked]).log_softmax(-1)[range(int(asked.sum())), labels[asked]].sum()
        return total / divide(labels)

    return answer


def loss_of_texts(hidden, head, labels):
    rows = [loss_sum(lambda y: (y != -100).sum())(h[None], head, y[None])
            for h, y in zip(hidden, labels, strict=True) if (y != -100).any()]  # fmt: skip
    return sum(rows) / len(rows)


def loss_no_log(hidden, head, labels):
    asked = labels != -100
    p = head(hidden[asked]).softmax(-1).gather(1, labels[asked][:, None])
    return 1 - p.mean()


def loss_on_texts(hidden, head, labels):
    """Whole texts meet the head where one of their words is asked; here also one text too many."""
    scores = torch.cat([head(hidden[:1, :2]).flatten(0, 1)[:0], head(hidden[labels != -100])])
    return loss.masked_loss(scores[None], lambda x: x, labels[labels != -100][None])


def loss_doubled(*given):
    """The right number; twice its gradient."""
    found = loss.masked_loss(*given)
    return 2 * found - found.detach()


def safe(answer):
    """0 where nothing is asked, so that only what is meant goes wrong."""
    return lambda h, head, y: answer(h, head, y) if (y != -100).any() else h.sum() * 0


def rows_of(one):
    """Number by number: one(seed, epoch, example, t, place in the batch, N)."""

    def answer(seed, epoch, examples, tokens):
        N = len(examples)
        rows = [[one(seed, epoch, e, t, n, N) for t in range(tokens)]
                for n, e in enumerate(examples.tolist())]  # fmt: skip
        return torch.from_numpy(np.array(rows))  # float64

    return answer


def mixed(*parts):
    """A good hash of whole numbers, as a share."""
    x = 0
    for part in parts:
        x = (x + 0x9E3779B97F4A7C15 * (part + 1)) % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        x ^= x >> 31
    return (x >> 11) * 2.0**-53


def numbers_seeded(seed, epoch, examples, tokens):
    generator = torch.Generator().manual_seed(seed + 1_000 * epoch)
    return torch.rand(len(examples), tokens, generator=generator)


def numbers_one_draw(seed, epoch, examples, tokens):
    torch.manual_seed(seed + epoch)
    return torch.rand(len(examples), tokens)


def numbers_global(seed, epoch, examples, tokens):
    rows = []
    for e in examples.tolist():
        torch.manual_seed(int(mixed(seed, epoch, e) * 2**53))
        rows.append(torch.rand(tokens))
    return torch.stack(rows)


def numbers_numpy_global(seed, epoch, examples, tokens):
    rows = []
    for e in examples.tolist():
        np.random.seed([seed, epoch, e])
        rows.append(np.random.rand(tokens))
    return torch.tensor(np.array(rows))


def numbers_by_row(seed, epoch, examples, tokens):
    rows = [np.random.default_rng([seed, epoch, e]).random(tokens) for e in examples.tolist()]
    return torch.tensor(np.array(rows))


def numbers_by_torch(seed, epoch, examples, tokens):
    rows = []
    for e in examples.tolist():
        generator = torch.Generator().manual_seed(int(mixed(seed, epoch, e) * 2**53))
        rows.append(torch.rand(tokens, generator=generator))
    return torch.stack(rows)


def numbers_of_a_sum(seed, epoch, examples, tokens):
    rows = []
    for e in examples.tolist():
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch * 1_009 + e)
        rows.append(torch.rand(tokens, generator=generator))
    return torch.stack(rows)


def skew_strided(step=lambda T: 2 * T - 2, first=lambda T: T - 1, across=1):
    def answer(x):
        T = len(x)
        x = torch.cat([x.flatten(), x.new_full((4 * T * T,), 9.0)])  # room for steps too long
        return x.as_strided((T, T), (step(T), across), first(T))

    return answer


def skew_by_gather(column):
    def answer(x):
        i = torch.arange(len(x))
        return x.gather(1, column(i[:, None], i[None, :], len(x)))

    return answer


def online_with(total=lambda old, new: math.exp(old - new), mixture=None, top=max, start=-math.inf,
                after=lambda mixed, sum: mixed / sum, ranges=lambda T, c: range(0, T, c),
                exp=torch.exp):  # fmt: skip
    """Chunk by chunk with Python's numbers; any step can be exchanged."""

    def answer(scores, values, chunk):
        m, sum_, mix = start, 0.0, torch.zeros(values.shape[1], dtype=values.dtype)
        for begin in ranges(len(scores), chunk):
            s, v = scores[begin : begin + chunk], values[begin : begin + chunk]
            new = top(m, float(s.max()))
            weights = exp(s - new)
            keep = 0.0 if m == -math.inf else total(m, new)
            keep_mixed = 0.0 if m == -math.inf else (mixture or total)(m, new)
            sum_ = sum_ * keep + float(weights.sum())
            mix = mix * keep_mixed + weights @ v
            m = new
        return after(mix, sum_)

    return answer


def online_no_largest(scores, values, chunk):
    parts = list(zip(scores.split(chunk), values.split(chunk), strict=True))
    return sum(s.exp() @ v for s, v in parts) / sum(s.exp().sum() for s, v in parts)


def online_first_largest(scores, values, chunk):
    m = scores[:chunk].max()
    parts = list(zip(scores.split(chunk), values.split(chunk), strict=True))
    return sum((s - m).exp() @ v for s, v in parts) / sum((s - m).exp().sum() for s, v in parts)


def online_from_0(scores, values, chunk):
    m, total, mixed_ = torch.zeros((), dtype=scores.dtype), 0.0, 0.0
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        new = torch.maximum(m, s.max())
        total = total * (m - new).exp() + (s - new).exp().sum()
        mixed_, m = mixed_ * (m - new).exp() + (s - new).exp() @ v, new
    return mixed_ / total


def online_chunks_own(scores, values, chunk):
    m = None
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        new = s.max()
        shrink = (m - new).exp() if m is not None else 0.0
        total = (total if m is not None else 0.0) * shrink + (s - new).exp().sum()  # noqa: F821
        mix = (mix if m is not None else 0.0) * shrink + (s - new).exp() @ v  # noqa: F821
        m = new
    return mix / total


def online_just_added(scores, values, chunk):
    total, mix = 0.0, 0.0
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        weights = (s - s.max()).exp()
        total, mix = total + weights.sum(), mix + weights @ v
    return mix / total


def online_upside_down(scores, values, chunk):
    m = torch.tensor(-math.inf, dtype=scores.dtype)
    total, mix = 0.0, torch.zeros(values.shape[1], dtype=values.dtype)
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        new = torch.maximum(m, s.max())
        weights, factor = (s - new).exp(), (new - m).exp()
        total, mix, m = total * factor + weights.sum(), mix * factor + weights @ v, new
    return mix / total


def online_full_chunks(scores, values, chunk):
    """No chunk at all where T < chunk: 0/0."""
    whole = len(scores) // chunk * chunk
    m = scores[:whole].max() if whole else 0.0
    weights = (scores[:whole] - m).exp()
    return weights @ values[:whole] / weights.sum()


def online_of_softmaxes(end):
    def answer(scores, values, chunk):
        pairs = zip(scores.split(chunk), values.split(chunk), strict=True)
        return end([s.softmax(0) @ v for s, v in pairs])

    return answer


def online_two_passes(scores, values, chunk):
    m = torch.stack([s.max() for s in scores.split(chunk)]).max()
    parts = [((s - m).exp() @ v, (s - m).exp().sum())
             for s, v in zip(scores.split(chunk), values.split(chunk), strict=True)]  # fmt: skip
    return sum(a for a, _ in parts) / sum(b for _, b in parts)


def real_with(pick=lambda m: m != 0, put=None, fill=torch.zeros_like, end=lambda y: y):
    """Token by token: a Python loop over the places picked and those put."""

    def answer(layer, x, mask):
        takes = pick(mask).nonzero().tolist()
        gives = (put or pick)(mask).nonzero().tolist()
        width = layer(x[:1, :1][:, :0]).shape[-1]
        out = x.new_zeros(*mask.shape, width) if fill is torch.zeros_like else fill(x)
        out = out.clone()
        for (a, b), (c, d) in zip(takes, gives, strict=True):
            out[c, d] = layer(x[a, b][None])[0]
        return end(out)

    return answer


def left(mask):
    return torch.stack([torch.arange(len(row)) < row.sum() for row in mask])


def real_mask_as_index(layer, x, mask):
    """As a reader writes it who takes 0 and 1 for False and True; the width from one row."""
    out = x.new_zeros(*mask.shape, layer(x[0, :1]).shape[-1])
    out[mask] = layer(x[mask])
    return out


def real_by_columns(layer, x, mask):
    """The list goes down the columns, and comes back along the rows."""
    out = real_with()(layer, x, mask)
    places = (mask != 0).nonzero().tolist()
    down = sorted(places, key=lambda place: place[::-1])
    moved = torch.zeros_like(out)
    for (a, b), (c, d) in zip(places, down, strict=True):
        moved[a, b] = out[c, d]
    return moved


def real_multiplied(layer, x, mask):
    return layer(x) * mask[..., None]


def real_in_place(layer, x, mask):
    x.data[mask == 0] = 0
    return layer(x) * mask[..., None]


def exit_with(*, first=lambda sure: sure.index(True), taken=lambda exits, at: exits[at],
              used=lambda at, L: at + 1, together=None, order=None):  # fmt: skip
    """Row by row through all layers; first(list of yes and no) is where a row leaves."""

    def answer(x, layers, exits, confident):
        rows, sures = [], []
        for row in x:
            row, every, sure = row[None], [], []
            for layer, leave in zip(layers, exits, strict=True):
                row = layer(row)
                every.append(leave(row)[0])
                sure.append(bool(confident(leave(row))[0]))
            rows.append(every)
            sures.append([*sure[:-1], True])
        L = len(layers)
        at = [first(s) for s in sures]
        if together:
            at = [next((n for n in range(L - 1) if together(s[n] for s in sures)), L - 1)] * len(x)
        places = sorted(range(len(x)), key=at.__getitem__) if order else range(len(x))
        logits = torch.stack([taken(rows[n], at[n]) for n in places])
        return logits, torch.tensor([used(at[n], L) for n in places])

    return answer


def last_sure(sure):
    before = [n for n, yes in enumerate(sure[:-1]) if yes]
    return before[-1] if before else len(sure) - 1


def exit_late(x, layers, exits, confident):
    """The right answers, but rows leave the batch a layer after they were sure."""
    logits = torch.zeros(len(x), 3, dtype=x.dtype)
    used = torch.zeros(len(x), dtype=torch.long)
    rows = torch.arange(len(x))
    for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), 1):
        x = layer(x)
        stay = used[rows] == 0
        done = confident(leave(x)) | torch.tensor(depth == len(layers))
        fresh = rows[stay & done]
        logits[fresh], used[fresh] = leave(x)[stay & done], depth
        rows, x = rows[stay], x[stay]
    return logits, used


def exit_without_break(x, layers, exits, confident):
    """The right answers and rows, but layers are called when no row is left."""
    logits = torch.zeros(len(x), 3, dtype=x.dtype)
    used = torch.zeros(len(x), dtype=torch.long)
    rows = torch.arange(len(x))
    for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), 1):
        x = layer(x)
        done = confident(leave(x)) | torch.tensor(depth == len(layers))
        logits[rows[done]], used[rows[done]] = leave(x)[done], depth
        rows, x = rows[~done], x[~done]
    return logits, used


def exit_one_by_one(x, layers, exits, confident):
    found = []
    for row in x:
        row = row[None]
        for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), 1):
            row = layer(row)
            if confident(leave(row)).all() or depth == len(layers):
                found.append((leave(row)[0], depth))
                break
    logits, used = zip(*found, strict=True)
    return torch.stack(logits), torch.tensor(used)


def exit_by_library(x, layers, exits, confident):
    def with_mask(layer):
        return lambda part, mask: layer(part[:, 0])[:, None]

    def on_first(leave):
        return lambda part: leave(part[:, 0])

    out = early_exit.early_exit(x[:, None], [with_mask(f) for f in layers],
                                [on_first(f) for f in exits], confident)  # fmt: skip
    return out.logits, out.layers_used


PLANTED = {
    "14.1": {
        "sum": seconds(lambda a, m: a + m),
        "smaller": seconds(min),
        "mean": seconds(lambda a, m: (a + m) / 2),
        "arithmetic alone": seconds(lambda a, m: a),
        "memory alone": seconds(lambda a, m: m),
        "rate": lambda flops, moved, peak, rate: min(peak, rate * flops / moved),
        "milliseconds": seconds(max, 1_000),
        "giga forgotten": lambda flops, moved, peak, rate: max(flops / peak, moved / rate),
        "giga on one side": lambda flops, moved, peak, rate: max(flops / peak, moved / rate / 1e9),
        "binary giga": seconds(max, f=2**30, b=2**30),
        "numbers for bytes": seconds(lambda a, m: max(a, 4 * m)),
        "multiply-adds": seconds(lambda a, m: max(2 * a, m)),
        "rates exchanged": lambda flops, moved, peak, rate: max(flops / rate, moved / peak) / 1e9,
        "upside down": lambda flops, moved, peak, rate: 1e9 * max(peak / flops, rate / moved),
        "wrong type": lambda *given: f"{bound.least_seconds(*given)} s",
        "unforeseen": seconds(lambda a, m: max(a, m) + 1),
    },
    "14.2": {
        "mean over all positions": loss_sum(lambda y: y.numel()),
        "sum": loss_sum(lambda y: 1),
        "mean over texts": loss_of_texts,
        "sum divided by texts": loss_sum(len),
        "softmax twice": loss_with(scores=lambda x: x.softmax(-1)),
        "no logarithm": loss_no_log,
        "sign": loss_with(end=lambda x: -x),
        "word 0 left out": loss_with(lambda h, y: (h[y > 0], y[y > 0])),
        "ignored counted as word 0": loss_with(
            lambda h, y: (h.flatten(0, 1), y.flatten().clamp(min=0))),
        "first rows": loss_with(
            lambda h, y: (h.flatten(0, 1)[: int((y != -100).sum())], y[y != -100])),
        "head on everything": safe(lambda h, head, y: F.cross_entropy(head(h).mT, y)),
        "more rows": loss_on_texts,
        "nothing asked is nan": loss_with(),
        "nothing asked is not 0": lambda h, head, y: (
            loss_with()(h, head, y) if (y != -100).any() else 1.0),
        "no gradient": lambda *given: loss.masked_loss(*given).item(),
        "gradient cut": lambda h, head, y: loss.masked_loss(h.detach(), head, y),
        "wrong gradient": loss_doubled,
        "wrong type": lambda *given: "low",
        "unforeseen": loss_with(end=lambda x: x * x),
    },
    "14.3": {
        "not shares": rows_of(lambda s, p, e, t, n, N: int(100 * mixed(s, p, e, t))),
        "out of range": rows_of(lambda s, p, e, t, n, N: 1.5 * mixed(s, p, e, t) - 0.25),
        "drawn anew": lambda s, p, examples, tokens: torch.rand(len(examples), tokens),
        "same row for all": rows_of(lambda s, p, e, t, n, N: mixed(s, p, t)),
        "place in the batch": numbers_seeded,
        "depends on the batch": rows_of(lambda s, p, e, t, n, N: mixed(s, p, e, n, t)),
        "depends on the length": lambda s, p, examples, tokens: rows_of(
            lambda s, p, e, t, n, N: mixed(s, p, e, tokens, t))(s, p, examples, tokens),
        "position ignored": rows_of(lambda s, p, e, t, n, N: mixed(s, p, e)),
        "seed ignored": rows_of(lambda s, p, e, t, n, N: mixed(p, e, t)),
        "epoch ignored": rows_of(lambda s, p, e, t, n, N: mixed(s, e, t)),
        "collision": rows_of(lambda s, p, e, t, n, N: mixed(s + p + e, t)),
        "shifted rows": rows_of(lambda s, p, e, t, n, N: mixed(s, p, e + t)),
        "not uniform": rows_of(lambda s, p, e, t, n, N: mixed(s, p, e, t) ** 2),
        "neighbours alike": rows_of(lambda s, p, e, t, n, N: (mixed(s, p, e) + 0.1 * t) % 1),
        "disturbs the generator": numbers_global,
        "wrong shape": lambda s, p, examples, tokens: torch.rand(tokens),
        "wrong type": lambda s, p, examples, tokens: [[0.5] * tokens] * len(examples),
    },
    "14.4": {
        "mirrored": skew_by_gather(lambda i, j, T: i - j + T - 1),
        "turned": lambda x: skew.skew(x).T,
        "row length 2T − 1": skew_strided(lambda T: 2 * T - 1),
        "first columns": lambda x: x[:, : len(x)],
        "offset 0": lambda x: x.flatten()[
            (torch.arange(len(x))[:, None] * (2 * len(x) - 2)) + torch.arange(len(x))],
        "one too late": skew_strided(first=lambda T: T),
        "one too early": skew_strided(first=lambda T: T - 2),
        "step one too short": skew_strided(lambda T: 2 * T - 3),
        "row length T": skew_strided(lambda T: T),
        "a copy": skew_by_gather(lambda i, j, T: j - i + T - 1),
        "own offset forgotten": lambda x: x.as_strided(
            (len(x), len(x)), (2 * len(x) - 2, 1), len(x) - 1),
        "wrong shape": lambda x: x,
        "wrong type": lambda x: skew.skew(x).tolist(),
        "unforeseen": lambda x: skew.skew(x) + 1,
    },
    "14.5": {
        "nothing rescaled": online_with(lambda old, new: 1.0),
        "sum not rescaled": online_with(
            lambda old, new: 1.0, mixture=lambda old, new: math.exp(old - new)),
        "mixture not rescaled": online_with(mixture=lambda old, new: 1.0),
        "rescaled the wrong way": online_with(lambda old, new: math.exp(new - old)),
        "factor upside down": online_upside_down,
        "own largest, just added": online_just_added,
        "mean of softmaxes": online_of_softmaxes(lambda parts: sum(parts) / len(parts)),
        "sum of softmaxes": online_of_softmaxes(sum),
        "last chunk alone": online_of_softmaxes(lambda parts: parts[-1]),
        "last chunk dropped": online_with(ranges=lambda T, c: range(0, T - c + 1, c) or [0]),
        "not divided": online_with(after=lambda mix, total: mix),
        "divided by T": lambda s, v, c: online_with(after=lambda mix, total: mix / len(s))(s, v, c),
        "plain mean": lambda scores, values, chunk: values.mean(0),
        "no largest score": online_no_largest,
        "largest begins at 0": online_from_0,
        "first chunk's largest": online_first_largest,
        "each chunk's own largest": online_chunks_own,
        "whole row at once": lambda scores, values, chunk: scores.softmax(0) @ values,
        "goes back": online_two_passes,
        "wrong shape": lambda scores, values, chunk: (scores.softmax(0)[:, None] * values),
        "wrong type": lambda *given: online.online_softmax(*given).tolist(),
        "unforeseen": online_with(after=lambda mix, total: mix / total + 1),
    },
    "14.6": {
        "padding not zero": lambda layer, x, mask: layer(x),
        "input left at the padding": real_with(fill=torch.clone),
        "mask inverted": real_with(pick=lambda m: m == 0),
        "lengths": real_with(pick=left),
        "moved to the front of the text": real_with(put=left),
        "moved to the front of the batch": real_with(
            put=lambda m: (torch.arange(m.numel()) < m.sum()).view(m.shape)),
        "mask as an index": real_mask_as_index,
        "first text's mask": real_with(pick=lambda m: m[:1].repeat(len(m), 1) != 0),
        "another order": real_by_columns,
        "writes into its input": real_in_place,
        "layer saw the padding": real_multiplied,
        "no gradient": lambda layer, x, mask: real.real_only(layer, x.detach(), mask),
        "wrong gradient": lambda layer, x, mask: real.real_only(layer, 2 * x - x.detach(), mask),
        "wrong shape": lambda layer, x, mask: layer(x[mask != 0]),
        "wrong type": lambda *given: real.real_only(*given).tolist(),
        "unforeseen": real_with(end=lambda y: 2 * y),
    },
    "14.7": {
        "nobody leaves early": exit_with(first=lambda sure: len(sure) - 1),
        "last exit for all": exit_with(taken=lambda every, at: every[-1]),
        "everybody leaves at once": exit_with(first=lambda sure: 0),
        "order lost": exit_with(order=True),
        "one layer late": exit_with(first=lambda s: min(s.index(True) + 1, len(s) - 1)),
        "first one sure stops all": exit_with(together=any),
        "waits for all": exit_with(together=all),
        "last sure exit": exit_with(first=last_sure),
        "unsure ones leave": exit_with(
            first=lambda s: next((n for n, yes in enumerate(s[:-1]) if not yes), len(s) - 1)),
        "never sure, never answered": exit_with(
            taken=lambda every, at: every[at] * (at < len(every) - 1)),
        "layers not counted to the end": exit_with(used=lambda at, L: (at + 1) % L),
        "counted from 0": exit_with(used=lambda at, L: at),
        "layers saved": exit_with(used=lambda at, L: L - 1 - at),
        "all layers counted": exit_with(used=lambda at, L: L),
        "runs all": exit_with(),
        "leaves one layer late": exit_late,
        "goes on with none": exit_without_break,
        "wrong shape": lambda *given: leaving.early_exit(*given)[::-1],
        "wrong type": lambda *given: leaving.early_exit(*given)[0],
        "unforeseen": exit_with(taken=lambda every, at: every[at] + 1),
    },
}  # fmt: skip


# ---------------------------------------------------------------- other right and wrong answers


def skew_by_cutting(x):
    T = len(x)
    return x.view(-1)[T - 1 : -1].view(T, 2 * T - 2)[:, :T]


def real_by_scatter(layer, x, mask):
    packing = Packing(mask)
    return packing.pad(layer(packing.unpad(x)))


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("14.1", seconds(max)),
        ("14.1", lambda f, b, p, w: torch.tensor([f / p, b / w], dtype=torch.float64).max() / 1e9),
        ("14.2", safe(loss_with())),
        ("14.2", lambda h, head, y: loss_sum(lambda y: max(1, int((y != -100).sum())))(h, head, y)),
        ("14.3", numbers_by_row),
        ("14.3", numbers_by_torch),
        ("14.3", rows_of(lambda s, p, e, t, n, N: mixed(s, p, e, t))),
        ("14.3", lambda *given: numbers.numbers(*given).numpy()),
        ("14.4", skew_by_cutting),
        ("14.5", online_with()),
        ("14.6", real_with()),
        ("14.6", real_by_scatter),
        ("14.7", exit_one_by_one),
        ("14.7", exit_by_library),
    ],
)  # fmt: skip
def test_another_right_answer_passes(id, answer):
    for seed in SEEDS[:3]:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.status == "passed", report


@pytest.mark.parametrize(
    ("id", "answer", "key"),
    [
        ("14.1", seconds(lambda a, m: max(a / 2, m)), "multiply-adds"),
        ("14.1", lambda f, b, p, w: max(f / p / 1e9, b / w), "giga on one side"),
        ("14.1", lambda f, b, p, w: 1e9 * min(p, w * f / b), "rate"),
        ("14.2", safe(lambda h, head, y: F.cross_entropy(
            head(h).flatten(0, 1), y.flatten())), "head on everything"),
        ("14.2", lambda h, head, y: F.cross_entropy(
            head(h).flatten(0, 1), y.flatten()), "head on everything"),
        ("14.3", rows_of(lambda s, p, e, t, n, N: mixed(1_000 * s + 100 * p + e, t)),
         "collision"),
        ("14.3", rows_of(lambda s, p, e, t, n, N: mixed(s, 1_000 * p + e, t)), "collision"),
        ("14.3", rows_of(lambda s, p, e, t, n, N: mixed(s * p * e, t)), "collision"),
        ("14.3", numbers_of_a_sum, "collision"),
        ("14.3", numbers_one_draw, "place in the batch"),
        ("14.3", numbers_numpy_global, "disturbs the generator"),
        ("14.4", lambda x: skew.skew(x).clone(), "a copy"),
        ("14.4", skew_strided(lambda T: T - 1), "row length T"),
        ("14.5", online_of_softmaxes(torch.stack), "wrong shape"),
        ("14.5", online_full_chunks, "last chunk dropped"),
        ("14.6", lambda layer, x, mask: layer(x * mask[..., None]), "padding not zero"),
        ("14.6", lambda layer, x, mask: torch.where(mask[..., None] != 0, layer(x), 0.0),
         "layer saw the padding"),
        ("14.7", exit_with(used=lambda at, L: (at + 1) % L, taken=lambda every, at: every[at] * (
            at < len(every) - 1)), "never sure, never answered"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_in_other_clothes_too(id, answer, key):
    for seed in SEEDS[:3]:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.mistake == key, report


@pytest.mark.parametrize(
    ("id", "answer", "advice"),
    [
        ("14.1", lambda f, b, p, w: f / min(p, f / b * w) / 1e9, "flops can be 0"),
        ("14.2", lambda h, head, y: F.cross_entropy(head(h[y != -100]), y), "same mask on both"),
        ("14.2", lambda h, head, y: -head(h).log_softmax(-1).flatten(0, 1)[
            range(y.numel()), y.flatten()].mean(), "no word number"),
        ("14.3", lambda s, p, examples, tokens: torch.Generator().manual_seed(examples), "loop"),
        ("14.4", lambda x: x.as_strided((len(x), len(x)), (2 * len(x), 1), len(x) - 1),
         "less than the row's length"),
        ("14.5", lambda s, v, c: s[:c].softmax(0) @ v[: c + 1], "same places"),
        ("14.6", lambda layer, x, mask: x[mask.double()], "mask != 0"),
        ("14.7", lambda x, layers, exits, confident: 1 if confident(
            exits[0](torch.cat([x, x]))) else 2, "no single yes or no"),
    ],
)  # fmt: skip
def test_a_frequent_exception_gets_a_line_of_advice(id, answer, advice):
    report = check_answer(EXERCISES[id], answer, 0)
    assert report.mistake == "raised", report
    assert advice in report.message, report


def stopped_at(id, key):
    report = check_answer(EXERCISES[id], PLANTED[id][key], 0)
    return [stage.passed for stage in report.stages].index(False)


def test_a_mistake_is_named_where_it_first_shows():
    assert stopped_at("14.1", "arithmetic alone") == 1
    assert stopped_at("14.2", "head on everything") == 2
    assert stopped_at("14.2", "gradient cut") == 4
    assert stopped_at("14.3", "place in the batch") == 2
    assert stopped_at("14.4", "a copy") == 2
    assert stopped_at("14.5", "nothing rescaled") == 3
    assert stopped_at("14.5", "no largest score") == 4
    assert stopped_at("14.6", "layer saw the padding") == 3
    assert stopped_at("14.5", "factor upside down") == 0
    assert stopped_at("14.5", "own largest, just added") == 1
    assert stopped_at("14.6", "mask as an index") == 0
    assert stopped_at("14.7", "runs all") == 3
    assert stopped_at("14.7", "goes on with none") == 4


def test_what_an_answer_was_given_is_counted():
    said = check_answer(EXERCISES["14.2"], PLANTED["14.2"]["head on everything"], 0).message
    assert "the head saw all B·T = 27 rows" in said
    said = check_answer(EXERCISES["14.7"], PLANTED["14.7"]["runs all"], 0).message
    assert "given 9, 9, 9, 9 rows; 9, " in said
    said = check_answer(EXERCISES["14.7"], PLANTED["14.7"]["goes on with none"], 0).message
    assert "All rows have left, and layer 2 is still called, with none." in said
    said = check_answer(EXERCISES["14.3"], numbers_of_a_sum, 0).message
    assert "A collision of sums" in said and ", 0, 1009, 0) and" in said


# ---------------------------------------------------------------- the solutions against the library


def test_the_bound_is_the_roof():
    given = bound.Kernel(3e9, 5e8, 200, 30)
    roof = min(given.peak, given.flops / given.bytes_moved * given.bandwidth)
    assert bound.least_seconds(*given) == pytest.approx(given.flops / (roof * 1e9))
    assert "0.02 and 0.05 seconds, so 0.05." in EXERCISES["14.1"].hints[-1]
    assert bound.least_seconds(2e9, 1e9, 100, 20) == pytest.approx(0.05)


def test_the_loss_of_everything_is_the_references():
    hidden, table, labels = loss._case(Draw(3), 3, 7, 6)
    theirs = masked_loss_reference(hidden, lambda x: x @ table.T, labels)
    assert close(loss.right(hidden, table, labels).loss, theirs, 1e-12)


def test_the_skew_is_the_librarys_order_turned():
    """The library's tables by distance run from T − 1 down for queries: t − r, as here j − i."""
    from course_lib.kernels.disentangled import _skew

    x = torch.randn(5, 9)
    assert torch.equal(skew.skew(x), _skew(x[None], 5)[0])


def test_the_online_softmax_is_the_softmax():
    scores, values = torch.randn(11, dtype=torch.float64), torch.randn(11, 3, dtype=torch.float64)
    for chunk in (1, 3, 11, 20):
        found = online.online_softmax(scores, values, chunk)
        assert close(found, scores.softmax(0) @ values, 1e-12)


def test_the_watch_sees_a_chunk_and_no_more():
    scores, values = torch.randn(12, dtype=torch.float64), torch.randn(12, 2, dtype=torch.float64)
    with online._Watch(scores, 6, 3):
        online.online_softmax(scores, values, 3)
    for work in (scores.exp, lambda: values[:4].sum(), lambda: torch.zeros(7)):
        with pytest.raises(Exception, match="at once"), online._Watch(scores, 6, 3):
            work()


def test_the_exit_is_the_librarys():
    x, layers, exits, threshold = leaving._spread(Draw(4))
    mine = leaving.right(x, layers, exits, threshold)
    theirs = early_exit.early_exit_reference(
        x[:, None],
        [lambda part, mask, w=w: (part @ w).tanh() for w in layers],
        [lambda part, w=w: part[:, 0] @ w for w in exits],
        early_exit.probability_above(threshold),
    )
    assert close(mine.logits, theirs.logits) and torch.equal(mine.used, theirs.layers_used)
    under_way = [int((mine.used >= depth).sum()) for depth in range(1, 5)]
    assert list(mine.rows) == under_way


def test_the_readers_own_generators_are_left_alone():
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    expected = random.random(), np.random.rand(), torch.rand(1).item()
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    check_answer(EXERCISES["14.3"], numbers_global, 0)
    check_answer(EXERCISES["14.3"], numbers_numpy_global, 0)
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected
