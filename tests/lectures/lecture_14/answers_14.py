"""Other hands' answers to the exercises of lecture 14, right and wrong (test_exercises.py)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.kernels import early_exit
from course_lib.kernels.unpadding import Packing


def seconds(flops, moved, peak, rate):
    return max(flops / (peak * 1e9), moved / (rate * 1e9))


def by_the_ridge(flops, moved, peak, rate):
    bound_by_memory = flops / moved < peak / rate
    return moved / rate / 1e9 if bound_by_memory else flops / peak / 1e9


def loss_with(hidden, head, labels, logits=lambda x: x):
    """F.cross_entropy of picked rows; 0 where nothing is selected."""
    at = labels != -100
    if not at.any():
        return hidden.sum() * 0
    return F.cross_entropy(logits(head(hidden[at])), labels[at])


def loss_looked_up(hidden, head, labels):
    at = labels != -100
    log_p = head(hidden[at]).log_softmax(-1)[range(int(at.sum())), labels[at]]
    return -log_p.sum() / max(1, int(at.sum()))


def loss_row_by_row(hidden, head, labels):
    total, count = 0.0 * hidden.sum(), 0
    for b, t in (labels != -100).nonzero().tolist():
        total = total - head(hidden[b, t]).log_softmax(-1)[labels[b, t]]
        count += 1
    return total / count if count else 0


def loss_doubled(*inputs):
    """The right number; twice its gradient."""
    loss = loss_with(*inputs)
    return 2 * loss - loss.detach()


def rows_of(one):
    """Number by number: one(seed, epoch, example, t)."""

    def answer(seed, epoch, examples, tokens):
        rows = [[one(seed, epoch, e, t) for t in range(tokens)] for e in examples.tolist()]
        return torch.from_numpy(np.array(rows))  # float64

    return answer


def mixed(*parts):
    """A good hash of whole numbers, as a number below 1."""
    x = 0
    for part in parts:
        x = (x + 0x9E3779B97F4A7C15 * (part + 1)) % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        x ^= x >> 31
    return (x >> 11) * 2.0**-53


def seeded(generate):
    """A row of numbers from generate(seed, epoch, example, tokens) for each example."""
    return lambda seed, epoch, examples, tokens: torch.stack(
        [torch.as_tensor(generate(seed, epoch, e, tokens)) for e in examples.tolist()]
    )


def of_numpy(make_seed):
    return seeded(lambda s, p, e, tokens: np.random.default_rng(make_seed(s, p, e)).random(tokens))


def of_torch(make_seed):
    return seeded(lambda s, p, e, tokens: torch.rand(
        tokens, generator=torch.Generator().manual_seed(make_seed(s, p, e))))  # fmt: skip


numbers_by_row = of_numpy(lambda s, p, e: [s, p, e])


def skew_by_gather(x, turn=1):
    i, T = torch.arange(len(x)), len(x)
    return x.gather(1, turn * (i - i[:, None]) + T - 1)


def skew_by_cutting(x):
    T = len(x)
    return x.view(-1)[T - 1 : -1].view(T, 2 * T - 2)[:, :T]


def skew_in_numpy(x):
    T, size = len(x), x.element_size()
    steps = (size * (2 * T - 2), size)
    return np.lib.stride_tricks.as_strided(x.numpy()[0, T - 1 :], (T, T), steps)


def online_with(scores, values, chunk, ranges=range):
    """Chunk by chunk with Python's numbers."""
    largest, total, mix = -math.inf, 0.0, torch.zeros(values.shape[1], dtype=values.dtype)
    for begin in ranges(0, len(scores), chunk):
        s, v = scores[begin : begin + chunk], values[begin : begin + chunk]
        new = max(largest, float(s.max()))
        weights, keep = torch.exp(s - new), math.exp(largest - new)
        total, mix, largest = total * keep + float(weights.sum()), mix * keep + weights @ v, new
    return mix / total


def whole_chunks(begin, end, chunk):
    return range(begin, end - chunk + 1, chunk) or [0]


def online_listed(scores, values, chunk):
    weights = [math.exp(s - max(scores.tolist())) for s in scores.tolist()]
    rows = [torch.tensor([w / sum(weights)]) * v for w, v in zip(weights, values, strict=True)]
    return sum(rows)


def online_two_passes(scores, values, chunk):
    m = torch.stack([s.max() for s in scores.split(chunk)]).max()
    parts = [((s - m).exp() @ v, (s - m).exp().sum())
             for s, v in zip(scores.split(chunk), values.split(chunk), strict=True)]  # fmt: skip
    return sum(a for a, _ in parts) / sum(b for _, b in parts)


def online_in_logs(scores, values, chunk):
    """The logarithm of the sum so far, and the output so far, divided at once."""
    log_total, output = None, 0.0
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        now = s.logsumexp(0)
        new = now if log_total is None else torch.logaddexp(log_total, now)
        old = 0.0 if log_total is None else (log_total - new).exp()
        output, log_total = output * old + (s - new).exp() @ v, new
    return output


def real_with(layer, x, mask, pick=lambda m: m != 0, fill=torch.zeros_like):
    """Token by token: a Python loop over the places picked."""
    width = layer(x[:1, :1][:, :0]).shape[-1]
    out = x.new_zeros(*mask.shape, width) if fill is torch.zeros_like else fill(x)
    for a, b in pick(mask).nonzero().tolist():
        out[a, b] = layer(x[a, b][None])[0]
    return out


def real_into(layer, x, mask, zeros):
    """All real tokens at once, into zeros(x)."""
    out = zeros(x)
    out[mask != 0] = layer(x[mask != 0])
    return out


def real_by_packing(layer, x, mask):
    packing = Packing(mask)
    return packing.pad(layer(packing.unpad(x)))


def real_by_sequence(layer, x, mask):
    rows = []
    for one, real in zip(x, mask.bool(), strict=True):
        done = layer(one[real])
        row = torch.zeros(len(real), done.shape[-1], dtype=x.dtype)
        rows.append(row.index_put((real,), done))
    return torch.stack(rows)


def online_from_the_first_score(scores, values, chunk):
    """The largest so far begins as the first score, a number that is carried on."""
    largest, total, output = scores[0], torch.zeros(()), torch.zeros(values.shape[1])
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        new = max(largest, s.max())
        weights, keep = (s - new).exp(), (largest - new).exp()
        total, output, largest = total * keep + weights.sum(), output * keep + weights @ v, new
    return output / total


def exit_with(used=lambda at, L: at + 1, taken=lambda logits, last: logits):
    """Row by row, the number of layers and the logits changed."""

    def answer(x, layers, exits, confident):
        logits, layers_used = exit_one_by_one(x, layers, exits, confident)
        last, depths = len(layers), layers_used.tolist()
        rows = [taken(row, at == last) for row, at in zip(logits, depths, strict=True)]
        return torch.stack(rows), torch.tensor([used(at - 1, last) for at in depths])

    return answer


def exit_one_by_one(x, layers, exits, confident):
    outputs = []
    for row in x:
        row = row[None]
        for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), 1):
            row = layer(row)
            if confident(leave(row)).all() or depth == len(layers):
                outputs.append((leave(row)[0], depth))
                break
    logits, used = zip(*outputs, strict=True)
    return torch.stack(logits), torch.tensor(used)


def exit_by_library(x, layers, exits, confident):
    def with_mask(layer):
        return lambda part, mask: layer(part[:, 0])[:, None]

    def on_first(leave):
        return lambda part, mask: leave(part[:, 0])

    out = early_exit.early_exit(x[:, None], [with_mask(f) for f in layers],
                                [on_first(f) for f in exits], confident)  # fmt: skip
    return out.logits, out.layers_used


def in_place_by_autograd(logits, labels):
    """The right numbers, written back; on the way there are three tables."""
    x = logits.clone().requires_grad_()
    loss = F.cross_entropy(x, labels)
    loss.backward()
    return loss.detach(), logits.copy_(x.grad)


def in_place_row_by_row(logits, labels):
    total = 0.0
    for row, label in zip(logits, labels.tolist(), strict=True):
        total += float(row.logsumexp(0) - row[label]) / len(labels)
        row.sub_(row.max()).exp_().div_(row.sum())
        row[label] -= 1
        row.div_(len(labels))
    return total, logits


def in_place_by_logs(logits, labels):
    logits.sub_(logits.logsumexp(1, keepdim=True))
    loss = -logits.gather(1, labels[:, None]).mean()
    logits.exp_().scatter_add_(1, labels[:, None], -torch.ones(len(labels), 1).to(logits))
    return loss, logits.mul_(1 / len(labels))


RIGHT = {
    "14.1": [
        seconds,
        by_the_ridge,
        lambda f, b, p, w: torch.tensor([f / p, b / w]).max() / 1e9,
    ],
    "14.2": [loss_with, loss_looked_up, loss_row_by_row],
    "14.3": [
        numbers_by_row,
        of_torch(lambda s, p, e: int(mixed(s, p, e) * 2**53)),
        rows_of(mixed),
        lambda *inputs: numbers_by_row(*inputs).tolist(),
    ],
    "14.4": [skew_by_cutting, skew_in_numpy],
    "14.5": [
        online_with,
        online_in_logs,
        online_from_the_first_score,
        lambda *inputs: online_with(*inputs).tolist(),
    ],
    "14.6": [real_with, real_by_packing, real_by_sequence],
    "14.7": [exit_one_by_one, exit_by_library, lambda *x: list(exit_one_by_one(*x))],
    "14.8": [in_place_row_by_row, in_place_by_logs],
}
WRONG = {
    "14.1": [
        (lambda f, b, p, w: f / min(p, f / b * w) / 1e9, "flops can be 0"),
        (lambda *inputs: seconds(*inputs) + 1, "you have 1."),
        (lambda f, b, p, w: 1e-6 * (f / p + b / w), "You add the two times."),
    ],
    "14.2": [
        (partial(loss_with, logits=lambda x: x.log_softmax(-1).exp().log2()), "you have"),
        (lambda h, head, y: loss_with(h, head, y) if (y != -100).any() else 1.0, "you have 1.0"),
        (loss_doubled, "Gradient of `hidden`"),
        (lambda h, head, y: F.cross_entropy(head(h[y != -100]), y), "same mask on both"),
        (lambda h, head, y: -head(h).log_softmax(-1).flatten(0, 1)[
            range(y.numel()), y.flatten()].mean(), "not a token id"),
    ],
    "14.3": [
        (rows_of(lambda s, p, e, t: 1.5 * mixed(s, p, e, t) - 0.25), "Are there numbers"),
        (rows_of(lambda s, p, e, t: mixed(e, t)), "The seed has no effect, so a second seed"
         " repeats the same experiment. It must go in.\n(2) The epoch has no effect"),
        (rows_of(lambda s, p, e, t: mixed(s + p + e, t)), "equal sums give equal numbers"),
        (rows_of(lambda *places: mixed(*places) ** 2), "ten tenths of [0, 1)"),
        (rows_of(lambda s, p, e, t: (mixed(s, p, e) + 0.1 * t) % 1), "neighbouring"),
        (lambda s, p, examples, tokens: torch.Generator().manual_seed(examples), "loop over"),
    ],
    "14.4": [
        (lambda x: skew_by_gather(x, turn=-1).T, "(2) Rows and columns"),
        (skew_by_gather, "in new memory"),
        (lambda x: skew_by_cutting(x).clone(), "in new memory"),
        (lambda x: skew_by_cutting(x).tolist(), "in new memory"),
        (lambda x: x.as_strided((len(x), len(x)), (2 * len(x), 1), len(x) - 1),
         "is less than 2T − 1"),
    ],
    "14.5": [
        (partial(online_with, ranges=whole_chunks), "Output: you have"),
        (lambda scores, values, chunk: scores.softmax(0) @ values, "numbers at once"),
        (lambda s, v, c: (s - s.max()).exp() @ v / (s - s.max()).exp().sum(), "numbers at once"),
        (online_listed, "tolist works on 50 numbers at once"),
        (online_two_passes, "is read again after chunk"),
        (lambda s, v, c: torch.from_numpy(s.softmax(0).numpy() @ v.numpy()), "calls `numpy`"),
        (lambda s, v, c: s[:c].softmax(0) @ v[: c + 1], "same places"),
    ],
    "14.6": [
        (lambda layer, x, mask: real_with(layer, 2 * x - x.detach(), mask), "Gradient of `x`"),
        (lambda layer, x, mask: x[mask.double()], "mask != 0"),
        (partial(real_into, zeros=torch.zeros_like), "done.new_zeros(B, T, done.shape[-1])"),
        (partial(real_into, zeros=lambda x: torch.zeros(x.shape)), "torch.zeros makes float32"),
        (lambda layer, x, mask: layer(x) * mask, "needs a third axis"),
        (partial(real_with, pick=lambda m: m == 0, fill=torch.clone), "you have"),
    ],
    "14.7": [
        (exit_with(taken=lambda logits, last: logits * (not last)), "zeros, not an answer"),
        (exit_with(lambda at, L: (at + 1) % L, lambda logits, last: logits * (not last)),
         "and no layers"),
        (lambda x, layers, exits, confident: 1 if confident(exits[0](torch.cat([x, x]))) else 2,
         "not a single yes or no"),
    ],
    "14.8": [
        (in_place_by_autograd, "your tensors held"),
        (lambda x, y: (F.cross_entropy(x, y), x.softmax(1).sub(F.one_hot(y, x.shape[1]))
                       / len(y)), "in new memory"),
        (lambda x, y: (F.cross_entropy(x, y), x.copy_(x.softmax(1)).sub(1) / len(y)), "you have"),
    ],
}  # fmt: skip
