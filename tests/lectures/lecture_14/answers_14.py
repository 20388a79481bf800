"""Other hands' answers to the exercises of lecture 14, right and wrong (test_exercises.py)."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.kernels import early_exit
from course_lib.kernels.unpadding import Packing


def seconds(join, scale=1.0, f=1e9, b=1e9):
    return lambda flops, moved, peak, rate: scale * join(flops / (peak * f), moved / (rate * b))


def by_the_ridge(flops, moved, peak, rate):
    bound_by_memory = flops / moved < peak / rate
    return moved / rate / 1e9 if bound_by_memory else flops / peak / 1e9


def loss_with(pick=lambda h, y: (h[y != -100], y[y != -100]), end=lambda x: x, logits=lambda x: x):
    """F.cross_entropy of picked rows; 0 where nothing is selected."""

    def answer(hidden, head, labels):
        states, tokens = pick(hidden, labels)
        if not (labels != -100).any():
            return hidden.sum() * 0
        return end(F.cross_entropy(logits(head(states)), tokens))

    return answer


def loss_sum(divide, of=lambda log_p: -log_p):
    """Looked up by hand and added up."""

    def answer(hidden, head, labels):
        at = labels != -100
        log_p = head(hidden[at]).log_softmax(-1)[range(int(at.sum())), labels[at]]
        return of(log_p).sum() / divide(labels)

    return answer


def loss_row_by_row(hidden, head, labels):
    total, count = 0.0 * hidden.sum(), 0
    for b, t in (labels != -100).nonzero().tolist():
        total = total - head(hidden[b, t]).log_softmax(-1)[labels[b, t]]
        count += 1
    return total / count if count else 0


def loss_doubled(*given):
    """The right number; twice its gradient."""
    found = loss_with()(*given)
    return 2 * found - found.detach()


def selected_count(y):
    return max(1, int((y != -100).sum()))


def rows_of(one):
    """Number by number: one(seed, epoch, example, t, place in the batch, N)."""

    def answer(seed, epoch, examples, tokens):
        N = len(examples)
        rows = [[one(seed, epoch, e, t, n, N) for t in range(tokens)]
                for n, e in enumerate(examples.tolist())]  # fmt: skip
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


def skew_by_gather(column):
    def answer(x):
        i = torch.arange(len(x))
        return x.gather(1, column(i[:, None], i[None, :], len(x)))

    return answer


def skew_by_cutting(x):
    T = len(x)
    return x.view(-1)[T - 1 : -1].view(T, 2 * T - 2)[:, :T]


def skew_in_numpy(x):
    T, size = len(x), x.element_size()
    steps = (size * (2 * T - 2), size)
    return np.lib.stride_tricks.as_strided(x.numpy()[0, T - 1 :], (T, T), steps)


def online_with(total=lambda old, new: math.exp(old - new), output=None, top=max, start=-math.inf,
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
            keep_mixed = 0.0 if m == -math.inf else (output or total)(m, new)
            sum_ = sum_ * keep + float(weights.sum())
            mix = mix * keep_mixed + weights @ v
            m = new
        return after(mix, sum_)

    return answer


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


def online_in_logs(scores, values, chunk):
    """The logarithm of the sum so far, and the output so far, divided at once."""
    log_total, output = None, 0.0
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        now = s.logsumexp(0)
        new = now if log_total is None else torch.logaddexp(log_total, now)
        old = 0.0 if log_total is None else (log_total - new).exp()
        output, log_total = output * old + (s - new).exp() @ v, new
    return output


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


def real_in_place(layer, x, mask):
    x.data[mask == 0] = 0
    return layer(x) * mask[..., None]


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


def numbers_of_digits(seed, epoch, examples, tokens):
    rows = [np.random.default_rng(int(f"{seed}{epoch}{e}")).random(tokens) for e in examples]
    return torch.tensor(np.array(rows))


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


RIGHT = {
    "14.1": [
        seconds(max),
        by_the_ridge,
        lambda f, b, p, w: torch.tensor([f / p, b / w]).max() / 1e9,
    ],
    "14.2": [loss_with(), loss_sum(selected_count), loss_row_by_row],
    "14.3": [
        numbers_by_row,
        numbers_by_torch,
        rows_of(lambda s, p, e, t, n, N: mixed(s, p, e, t)),
        lambda *given: numbers_by_row(*given).tolist(),
    ],
    "14.4": [skew_by_cutting, skew_in_numpy],
    "14.5": [
        online_with(),
        online_in_logs,
        online_from_the_first_score,
        lambda *given: online_with()(*given).tolist(),
    ],
    "14.6": [real_with(), real_by_packing, real_by_sequence],
    "14.7": [exit_one_by_one, exit_by_library, lambda *x: list(exit_one_by_one(*x))],
}
WRONG = {
    "14.1": [
        (lambda f, b, p, w: f / min(p, f / b * w) / 1e9, "flops can be 0"),
        (lambda f, b, p, w: f"{max(f / p, b / w) / 1e9} s", "expected one number in seconds"),
        (seconds(lambda a, m: max(a, m) + 1), "you have 1."),
        (seconds(lambda a, m: 1e3 * (a + m)), "You add the two times."),
        (seconds(lambda a, m: round(max(a, m), 3)), "rounded to three decimals"),
    ],
    "14.2": [
        (loss_with(logits=lambda x: x.log_softmax(-1).exp().log2()), "you have"),
        (loss_sum(selected_count, lambda log_p: log_p), "the sign is turned"),
        (lambda h, head, y: loss_with()(h, head, y) if (y != -100).any() else 1.0, "you have 1.0"),
        (lambda *given: loss_with()(*given).item(), "carries no gradient"),
        (lambda h, head, y: loss_with()(h.detach(), head, y), "carries no gradient"),
        (loss_doubled, "Gradient of `hidden`"),
        (lambda h, head, y: F.cross_entropy(head(h[y != -100]), y), "same mask on both"),
        (lambda h, head, y: -head(h).log_softmax(-1).flatten(0, 1)[
            range(y.numel()), y.flatten()].mean(), "no token id"),
        (loss_with(end=lambda x: x * x), "it is squared"),
    ],
    "14.3": [
        (rows_of(lambda s, p, e, t, n, N: 1.5 * mixed(s, p, e, t) - 0.25), "Are there numbers"),
        (rows_of(lambda s, p, e, t, n, N: mixed(e, t)), "The seed has no effect: no second"
         " experiment. It must go in.\nAnd: The epoch has no effect"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s + p + e, t)), "A collision of sums"),
        (rows_of(lambda s, p, e, t, n, N: mixed(1_000 * s + 100 * p + e, t)), "collision of sums"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s, 1_000 * p + e, t)), "A collision of sums"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s * p * e, t)), "A collision of sums"),
        (numbers_of_digits, "A collision of sums"),
        (numbers_of_a_sum, "A collision of sums"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s, p, e + t)), "One row is another one shifted"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s, p, e, t) ** 2), "ten tenths of [0, 1)"),
        (rows_of(lambda s, p, e, t, n, N: (mixed(s, p, e) + 0.1 * t) % 1), "neighbouring"),
        (lambda s, p, examples, tokens: torch.rand(tokens), "expected a tensor of shape"),
        (lambda s, p, examples, tokens: torch.Generator().manual_seed(examples), "loop over"),
    ],
    "14.4": [
        (lambda x: skew_by_gather(lambda i, j, T: i - j + T - 1)(x).T, "And: Rows and columns"),
        (skew_by_gather(lambda i, j, T: j - i + T - 1), "in new memory"),
        (lambda x: skew_by_cutting(x).clone(), "in new memory"),
        (lambda x: skew_by_cutting(x).tolist(), "in new memory"),
        (lambda x: x, "expected a tensor of shape (2, 2), that is (T, T)"),
        (lambda x: skew_by_cutting(x) + 1, "it is one too large"),
        (lambda x: x.as_strided((len(x), len(x)), (2 * len(x), 1), len(x) - 1),
         "less than the row's length"),
    ],
    "14.5": [
        (online_with(ranges=lambda T, c: range(0, T - c + 1, c) or [0]), "shorter chunk is left"),
        (lambda scores, values, chunk: scores.softmax(0) @ values, "numbers at once"),
        (lambda s, v, c: (s - s.max()).exp() @ v / (s - s.max()).exp().sum(), "numbers at once"),
        (online_two_passes, "is read again after chunk"),
        (lambda s, v, c: torch.from_numpy(s.softmax(0).numpy() @ v.numpy()), "calls `numpy`"),
        (lambda s, v, c: s.softmax(0)[:, None] * v, "expected a tensor of shape"),
        (online_of_softmaxes(torch.stack), "expected a tensor of shape"),
        (online_with(after=lambda mix, total: mix / total + 1), "it is one too large"),
        (lambda s, v, c: s[:c].softmax(0) @ v[: c + 1], "same places"),
    ],
    "14.6": [
        (real_in_place, "writes into `x`"),
        (lambda layer, x, mask: real_with()(layer, x.detach(), mask), "carries no gradient"),
        (lambda layer, x, mask: real_with()(layer, 2 * x - x.detach(), mask), "Gradient of `x`"),
        (lambda layer, x, mask: layer(x[mask != 0]), "expected a tensor of shape"),
        (real_with(end=lambda y: 2 * y), "it is doubled"),
        (lambda layer, x, mask: real_by_packing(layer, x, mask).tolist(), "carries no gradient"),
        (lambda layer, x, mask: x[mask.double()], "mask != 0"),
        (real_with(pick=lambda m: m == 0, fill=torch.clone), "you have"),
    ],
    "14.7": [
        (exit_with(taken=lambda every, at: every[at] * (at < len(every) - 1)), "no answer, zeros"),
        (exit_with(used=lambda at, L: (at + 1) % L,
                   taken=lambda every, at: every[at] * (at < len(every) - 1)), "and no layers"),
        (lambda *given: exit_one_by_one(*given)[::-1], "The two results are exchanged"),
        (lambda *given: exit_one_by_one(*given)[0], "expected 2: logits, number of layers used"),
        (exit_with(taken=lambda every, at: every[at] + 1), "it is one too large"),
        (lambda x, layers, exits, confident: 1 if confident(exits[0](torch.cat([x, x]))) else 2,
         "no single yes or no"),
    ],
}  # fmt: skip
