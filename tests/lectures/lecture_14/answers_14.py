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


def loss_of_sequences(hidden, head, labels):
    pairs = [(h, y) for h, y in zip(hidden, labels, strict=True) if (y != -100).any()]
    means = [loss_sum(lambda y: (y != -100).sum())(h, head, y) for h, y in pairs]
    return sum(means) / len(means) if means else 0.0


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


def numbers_seeded(seed, epoch, examples, tokens):
    generator = torch.Generator().manual_seed(seed + 1_000 * epoch)
    return torch.rand(len(examples), tokens, generator=generator)


def numbers_one_draw(seed, epoch, examples, tokens):
    torch.manual_seed(seed + epoch)
    return torch.rand(len(examples), tokens)


def numbers_global(seed, epoch, examples, tokens):
    torch.manual_seed(seed)
    return numbers_by_torch(seed, epoch, examples, tokens)


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


def online_no_largest(scores, values, chunk):
    parts = list(zip(scores.split(chunk), values.split(chunk), strict=True))
    return sum(s.exp() @ v for s, v in parts) / sum(s.exp().sum() for s, v in parts)


def online_first_largest(scores, values, chunk):
    m = scores[:chunk].max()
    parts = list(zip(scores.split(chunk), values.split(chunk), strict=True))
    return sum((s - m).exp() @ v for s, v in parts) / sum((s - m).exp().sum() for s, v in parts)


def online_from_0(scores, values, chunk):
    m, total, output = torch.zeros((), dtype=scores.dtype), 0.0, 0.0
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        new = torch.maximum(m, s.max())
        total = total * (m - new).exp() + (s - new).exp().sum()
        output, m = output * (m - new).exp() + (s - new).exp() @ v, new
    return output / total


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


def real_of_width_h(layer, x, mask):
    return real_with()(layer, x, mask) if mask.any() else torch.zeros_like(x)


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


def online_old_weights(scores, values, chunk):
    largest, total, output = scores[:chunk].max(), 0.0, 0.0
    for s, v in zip(scores.split(chunk), values.split(chunk), strict=True):
        weights, new = (s - largest).exp(), torch.maximum(largest, s.max())
        keep, largest = (largest - new).exp(), new
        total, output = total * keep + weights.sum(), output * keep + weights @ v
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


def last_sure(sure):
    before = [n for n, yes in enumerate(sure[:-1]) if yes]
    return before[-1] if before else len(sure) - 1


def exit_if_confident(x, layers, exits, confident):
    """Rows that are confident nowhere, the last exit included, are forgotten."""
    logits, used = torch.zeros(len(x), 3, dtype=x.dtype), [0] * len(x)
    for n, row in enumerate(x):
        for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), 1):
            row = layer(row[None])[0]
            if confident(leave(row[None])).item():
                logits[n], used[n] = leave(row), depth
                break
    return logits, used


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
        (seconds(lambda a, m: a + m), "You add the two times."),
        (seconds(min), "the shorter of the two"),
        (seconds(lambda a, m: (a + m) / 2), "the mean of the two"),
        (seconds(lambda a, m: a), "Only arithmetic counts"),
        (seconds(lambda a, m: m), "Only memory counts"),
        (lambda f, b, p, w: min(p, w * f / b), "the height of the roof"),
        (lambda f, b, p, w: 1e9 * min(p, w * f / b), "a rate in FLOPs a second"),
        (seconds(max, 1_000), "milliseconds"),
        (lambda f, b, p, w: max(f / p, b / w), "10⁹ times too long"),
        (lambda f, b, p, w: max(f / p, b / w / 1e9), "Peak is in GFLOP/s"),
        (lambda f, b, p, w: max(f / p / 1e9, b / w), "The bandwidth is in GB/s"),
        (seconds(max, f=2**30, b=2**30), "a billion as 2³⁰"),
        (seconds(lambda a, m: max(a, 4 * m)), "multiply the bytes by four"),
        (seconds(lambda a, m: max(a / 2, m)), "You halve the FLOPs"),
        (lambda f, b, p, w: max(f / w, b / p) / 1e9, "the other way round"),
        (lambda f, b, p, w: 1e9 * max(p / f, w / b), "the rate by the amount"),
        (lambda f, b, p, w: f / min(p, f / b * w) / 1e9, "flops can be 0"),
        (lambda f, b, p, w: f"{max(f / p, b / w) / 1e9} s", "expected one number in seconds"),
        (seconds(lambda a, m: max(a, m) + 1), "you have 1."),
        (seconds(lambda a, m: 1e3 * (a + m)), "You add the two times."),
        (seconds(lambda a, m: round(max(a, m), 3)), "rounded to three decimals"),
    ],
    "14.2": [
        (loss_sum(lambda y: y.numel()), "divided by B·T"),
        (loss_sum(lambda y: 1), "the sum over the selected"),
        (loss_of_sequences, "averaged in each sequence first"),
        (loss_sum(len), "the number of sequences"),
        (loss_with(logits=lambda x: x.softmax(-1)), "softmax is applied twice"),
        (loss_with(logits=lambda x: x.log_softmax(-1).exp().log2()), "you have"),
        (lambda h, head, y: F.nll_loss(head(h[y != -100]), y[y != -100]), "wants log-prob"),
        (loss_sum(selected_count, lambda log_p: 1 - log_p.exp()), "one minus the mean probability"),
        (loss_sum(selected_count, lambda log_p: log_p), "the sign is turned"),
        (loss_with(lambda h, y: (h[y > 0], y[y > 0])), "id 0 are left out"),
        (loss_with(lambda h, y: (h.flatten(0, 1), y.flatten().clamp(min=0))), "asks for token 0"),
        (loss_with(lambda h, y: (h.flatten(0, 1)[: int((y != -100).sum())], y[y != -100])),
         "the first ones of the batch"),
        (lambda h, head, y: F.cross_entropy(head(h).mT, y), "the head saw all B·T rows"),
        (lambda h, head, y: F.cross_entropy(head(h)[y != -100], y[y != -100], reduction="sum")
         / y.numel(), "divided by B·T"),
        (lambda h, head, y: F.cross_entropy(head(h[y != -100]), y[y != -100]), "divide the sum by"),
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
        (rows_of(lambda s, p, e, t, n, N: int(100 * mixed(s, p, e, t))), "whole numbers"),
        (rows_of(lambda s, p, e, t, n, N: 1.5 * mixed(s, p, e, t) - 0.25), "Are there numbers"),
        (lambda s, p, examples, tokens: torch.rand(len(examples), tokens), "at the second call"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s, p, t)), "All examples of a batch"),
        (numbers_seeded, "What counts is the place in the batch"),
        (numbers_one_draw, "What counts is the place in the batch"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s, p, e, n, t)), "who else is in the batch"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s, p, e, N, t)), "who else is in the batch"),
        (lambda s, p, examples, tokens: rows_of(
            lambda s, p, e, t, n, N: mixed(s, p, e, tokens, t))(s, p, examples, tokens),
         "when 13 are asked for"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s, p, e)), "All positions of a row"),
        (rows_of(lambda s, p, e, t, n, N: mixed(p, e, t)), "The seed has no effect"),
        (rows_of(lambda s, p, e, t, n, N: mixed(s, e, t)), "The epoch has no effect"),
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
        (numbers_global, "the global generator of torch"),
        (numbers_numpy_global, "numpy's global generator"),
        (lambda s, p, examples, tokens: torch.rand(tokens), "expected a tensor of shape"),
        (lambda s, p, examples, tokens: [[0.5] * tokens] * len(examples), "All examples of a"),
        (lambda s, p, examples, tokens: torch.Generator().manual_seed(examples), "loop over"),
    ],
    "14.4": [
        (skew_by_gather(lambda i, j, T: i - j + T - 1), "that of distance i − j"),
        (lambda x: skew_by_cutting(x).T, "Rows and columns are exchanged"),
        (skew_by_gather(lambda i, j, T: i - j + T - 1 + 0 * i), "that of distance i − j"),
        (lambda x: skew_by_gather(lambda i, j, T: i - j + T - 1)(x).T, "And: Rows and columns"),
        (skew_strided(lambda T: 2 * T - 1), "same column one row on"),
        (lambda x: x[:, -len(x) :], "same column one row on"),
        (lambda x: x[:, : len(x)], "the first T columns"),
        (skew_by_gather(lambda i, j, T: i + j), "Your row i begins at column i"),
        (skew_strided(first=lambda T: 0), "You begin at the first number"),
        (skew_strided(first=lambda T: T), "one column too late"),
        (skew_strided(first=lambda T: T - 2), "one column too early"),
        (skew_strided(lambda T: 2 * T - 3), "back by two columns"),
        (skew_strided(lambda T: T), "is T, as if the table"),
        (skew_strided(lambda T: T - 1), "is T − 1, as if the table"),
        (skew_by_gather(lambda i, j, T: j - i + T - 1), "in new memory"),
        (lambda x: skew_by_cutting(x).clone(), "in new memory"),
        (lambda x: skew_by_cutting(x).tolist(), "in new memory"),
        (lambda x: x.as_strided((len(x), len(x)), (2 * len(x) - 2, 1), len(x) - 1),
         "add by_distance.storage_offset()"),
        (lambda x: x, "expected a tensor of shape (2, 2), that is (T, T)"),
        (lambda x: skew_by_cutting(x) + 1, "it is one too large"),
        (lambda x: x.as_strided((len(x), len(x)), (2 * len(x), 1), len(x) - 1),
         "less than the row's length"),
    ],
    "14.5": [
        (online_with(lambda old, new: 1.0), "What was added up before is not rescaled"),
        (online_with(lambda old, new: 1.0, output=lambda old, new: math.exp(old - new)),
         "the sum of the weights is not"),
        (online_with(output=lambda old, new: 1.0), "the output is not. Both hold"),
        (online_with(lambda old, new: math.exp(new - old)), "You multiply by exp(new − old)"),
        (online_upside_down, "Is the factor upside down?"),
        (online_old_weights, "with the largest score before it"),
        (online_just_added, "the sums just added"),
        (online_of_softmaxes(lambda parts: sum(parts) / len(parts)), "the outcomes are averaged."),
        (online_of_softmaxes(sum), "the outcomes are added up"),
        (online_of_softmaxes(lambda parts: parts[-1]), "the last chunk alone"),
        (online_with(ranges=lambda T, c: range(0, T - c + 1, c) or [0]), "shorter chunk is left"),
        (online_full_chunks, "The last, shorter chunk is left out"),
        (online_with(after=lambda mix, total: mix), "not divided by the sum"),
        (lambda s, v, c: online_with(after=lambda mix, total: mix / len(s))(s, v, c), "by T."),
        (lambda scores, values, chunk: values.mean(0), "the plain mean of the values"),
        (online_no_largest, "Take the largest score so far off before exp"),
        (online_from_0, "Does your largest score begin at 0?"),
        (online_first_largest, "The largest score of the first chunk is kept"),
        (online_chunks_own, "Each chunk's own largest score takes the place"),
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
        (lambda layer, x, mask: layer(x), "stands at the padding, too"),
        (lambda layer, x, mask: layer(x * mask[..., None]), "a layer has a bias"),
        (real_with(fill=torch.clone), "At the padding your result holds x"),
        (real_with(pick=lambda m: m == 0), "The mask is 1 at real tokens"),
        (real_with(pick=left), "the first tokens of each sequence"),
        (real_with(put=left), "at the front of each sequence"),
        (real_with(put=lambda m: (torch.arange(m.numel()) < m.sum()).view(m.shape)),
         "from the first position on"),
        (real_mask_as_index, "make it bool"),
        (real_with(pick=lambda m: m[:1].repeat(len(m), 1) != 0), "the mask of the first one"),
        (real_by_columns, "column by column"),
        (real_in_place, "writes into `x`"),
        (real_multiplied, "the layer was given the padding"),
        (lambda layer, x, mask: torch.where(mask[..., None] != 0, layer(x), 0.0),
         "the layer was given the padding"),
        (real_of_width_h, "Where there is no real token your outcome has the width of x"),
        (lambda layer, x, mask: real_with()(layer, x.detach(), mask), "carries no gradient"),
        (lambda layer, x, mask: real_with()(layer, 2 * x - x.detach(), mask), "Gradient of `x`"),
        (lambda layer, x, mask: layer(x[mask != 0]), "expected a tensor of shape"),
        (real_with(end=lambda y: 2 * y), "it is doubled"),
        (lambda layer, x, mask: real_by_packing(layer, x, mask).tolist(), "carries no gradient"),
        (lambda layer, x, mask: x[mask.double()], "mask != 0"),
        (real_with(pick=lambda m: m == 0, fill=torch.clone), "you have"),
    ],
    "14.7": [
        (exit_with(first=lambda sure: len(sure) - 1), "Every row gets the answer of the last exit"),
        (exit_with(taken=lambda every, at: every[-1]), "The layers are counted rightly"),
        (exit_with(first=lambda sure: 0), "Every row leaves after the first layer"),
        (exit_with(order=True), "in the order in which rows left. Keep"),
        (exit_with(first=lambda s: min(s.index(True) + 1, len(s) - 1)), "one layer more"),
        (exit_with(together=any), "stops when the first row is confident"),
        (exit_with(together=all), "until all rows are confident"),
        (exit_with(first=last_sure), "Once it has left, it is gone"),
        (exit_with(first=lambda s: next((n for n, yes in enumerate(s[:-1]) if not yes),
                                        len(s) - 1)), "that are *not* confident"),
        (exit_with(taken=lambda every, at: every[at] * (at < len(every) - 1)), "no answer, zeros"),
        (exit_with(used=lambda at, L: (at + 1) % L,
                   taken=lambda every, at: every[at] * (at < len(every) - 1)), "and no layers"),
        (exit_if_confident, "Rows that are confident nowhere have no answer and no layers"),
        (exit_with(used=lambda at, L: (at + 1) % L), "have used 0 layers"),
        (exit_with(used=lambda at, L: at), "counted from 0"),
        (exit_with(used=lambda at, L: L - 1 - at), "*spared*"),
        (exit_with(used=lambda at, L: L), "said to have used all layers"),
        (exit_with(order=True, used=lambda at, L: at), "counted from 0"),
        (exit_with(), "all layers were given all rows"),
        (exit_late, "one layer after they were confident"),
        (exit_without_break, "leave the loop when no row is under way"),
        (lambda *given: exit_one_by_one(*given)[::-1], "The two results are exchanged"),
        (lambda *given: exit_one_by_one(*given)[0], "expected 2: logits, number of layers used"),
        (exit_with(taken=lambda every, at: every[at] + 1), "it is one too large"),
        (lambda x, layers, exits, confident: 1 if confident(exits[0](torch.cat([x, x]))) else 2,
         "no single yes or no"),
    ],
}  # fmt: skip
