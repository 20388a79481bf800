"""What other hands might write for the exercises of lecture 07, right and wrong."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.family.electra import fill_in

# ---------------------------------------------------------------- 07.1


def label(original, masked, corrupted):
    """Token by token."""
    texts = zip(original.tolist(), corrupted.tolist(), strict=True)
    return torch.tensor([[int(a != b) for a, b in zip(*text, strict=True)] for text in texts])


# ---------------------------------------------------------------- 07.2


def by_categorical(p):
    return torch.distributions.Categorical(probs=p).sample()


def put_flat(out, at, sampled):
    out.view(-1)[at] = sampled


def corrupt_with(*, factor=1.0, put=put_flat, give=lambda x: x, draw=by_categorical):
    """The corruption by hand; each part can be exchanged."""

    def answer(input_ids, predict_at, logits):
        out = input_ids.clone()
        put(out, predict_at, draw((factor * logits.detach()).softmax(-1)))
        return give(out)

    return answer


def put_everywhere(out, at, sampled):
    out[:] = sampled[0]
    put_flat(out, at, sampled)


def corrupt_straight_through(input_ids, predict_at, logits):
    p = logits.softmax(-1)
    return corrupt_with()(input_ids, predict_at, logits).float() + (p - p.detach()).sum()


def numpys(p):
    below = np.random.default_rng().random((len(p), 1)) > p.cumsum(-1).numpy()
    return torch.from_numpy(below.sum(-1)).clamp(max=p.shape[1] - 1)


def corrupt_gumbel(input_ids, predict_at, logits):
    noise = -torch.log(-torch.log(torch.rand_like(logits)))
    sampled = (logits + noise).detach().argmax(-1)
    return input_ids.flatten().scatter(0, predict_at, sampled).reshape(input_ids.shape)


def corrupt_rows_and_columns(input_ids, predict_at, logits):
    out, T = input_ids.clone(), input_ids.shape[1]
    sampled = torch.distributions.Categorical(logits=logits.detach()).sample()
    out[predict_at // T, predict_at % T] = sampled
    return out


# ---------------------------------------------------------------- 07.3


def judge(logits, labels, attention_mask, reduce=torch.mean):
    losses = -torch.where(labels == 1, F.logsigmoid(logits), F.logsigmoid(-logits))
    return reduce(losses[attention_mask == 1])


def judge_loops(logits, labels, attention_mask):
    total = []
    for b, t in attention_mask.nonzero().tolist():
        sign = 1 if labels[b, t] else -1
        total.append(torch.logaddexp(torch.zeros((), dtype=logits.dtype), -sign * logits[b, t]))
    return sum(total) / len(total)


def judge_by_logs(x, y, m):
    p = torch.sigmoid(x)
    return -(y * p.log() + (1 - y) * (1 - p).log())[m.bool()].mean()


# ---------------------------------------------------------------- 07.4


def start_with(*, log=math.log, generator=1, unit=1):
    def answer(V, weight):
        mlm, disc = generator * log(V), weight * log(2)
        return mlm + disc, unit * disc / (mlm + disc)

    return answer


def start_measured(V, weight):
    """The losses of two networks whose logits are all zero."""
    mlm = F.cross_entropy(torch.zeros(1, V).double(), torch.tensor([3]))
    disc = F.binary_cross_entropy_with_logits(torch.zeros(1).double(), torch.ones(1).double())
    return torch.stack([mlm + weight * disc, 1 - mlm / (mlm + weight * disc)])


# ---------------------------------------------------------------- 07.5


def step(blocks, T, H, V, k, g, generator=lambda blocks, H, g: blocks(g), at_every_token=1):
    bert = blocks(H) + 2 * k * H * (H + V)
    electra = generator(blocks, H, g) + 2 * k * (g * H + H * V) + blocks(H)
    return 3 * bert, 3 * (electra + at_every_token * (2 * T * H * g + 2 * T * H * (H + 1)))


def step_layers(blocks, T, H, V, k, g):
    """Every layer as (places, from, to)."""

    def layers(*sizes):
        return sum(2 * places * m * n for places, m, n in sizes)

    bert = blocks(H) + layers((k, H, H), (k, H, V))
    electra = blocks(g) + layers((T, H, g), (k, g, H), (k, H, V))
    electra += blocks(H) + layers((T, H, H), (T, H, 1))
    return [float(bert + 2 * bert), float(electra + 2 * electra)]


# ---------------------------------------------------------------- 07.6


def fractions(model, rows):
    own, result = rows[model], {}
    for name, row in rows.items():
        if name != model and row["score"] - own["score"] <= 0.25:
            result[name] = own["compute"] / row["compute"]
    return result


def fractions_sorted(model, rows):
    order = sorted((name for name in rows if name != model), key=lambda name: rows[name]["score"])
    limit = rows[model]["score"] + 0.25
    used = np.array(rows[model]["compute"])
    return {n: used / rows[n]["compute"] for n in order if rows[n]["score"] <= limit}


# ---------------------------------------------------------------- 07.7


def alike(vectors, mask, keep=lambda a, b: a < b):
    """Pair by pair."""
    cosines = [
        float(F.cosine_similarity(vectors[a, t], vectors[b, t], dim=0))
        for t in range(vectors.shape[1])
        for a in range(len(vectors))
        for b in range(len(vectors))
        if keep(a, b) and mask[a, t] and mask[b, t]
    ]
    return sum(cosines) / len(cosines)


def alike_by_sums(vectors, mask):
    """|the sum of n units|² is the sum of all cosines, n ones among them."""
    units = F.normalize(vectors, dim=-1) * mask[..., None]
    n = mask.sum(0)
    return ((units.sum(0) ** 2).sum() - n.sum()) / (n * (n - 1)).sum()


# ---------------------------------------------------------------- 07.8


def choice(logits, spans, p=lambda x: 1 / (1 + (-x).exp())):
    """Token by token."""
    own = [
        [float(p(row[t])) for t in range(*span)] for row, span in zip(logits, spans, strict=True)
    ]
    return [sum(one) / len(one) for one in own]


def choice_masked(logits, spans):
    at = torch.arange(logits.shape[1])
    first, end = torch.tensor(spans).T[..., None]
    mine = (at >= first) & (at < end)
    return (logits.sigmoid() * mine).sum(1) / mine.sum(1)


# ---------------------------------------------------------------- the answers

RIGHT = {
    "07.1": [label, lambda o, m, c: o != c, lambda *ids: label(*ids).tolist(),
             lambda o, m, c: 1 - np.equal(o.numpy(), c.numpy()).astype(float)],
    "07.2": [corrupt_with(), corrupt_rows_and_columns, corrupt_gumbel,
             lambda ids, at, logits: fill_in(ids, at, logits)],
    "07.3": [judge, judge_loops, lambda x, y, m: (F.binary_cross_entropy_with_logits(
        x, y.double(), reduction="none") * m).sum() / m.sum()],
    "07.4": [start_with(), start_measured, lambda V, w: (
        math.log(V * 2**w), 1 - math.log(V) / math.log(V * 2**w))],
    "07.5": [step, step_layers, lambda *sizes: torch.tensor(
        [float(x) for x in step(*sizes)], dtype=torch.float64)],
    "07.6": [fractions, fractions_sorted],
    "07.7": [alike, alike_by_sums, lambda v, m: alike(v, m, keep=lambda a, b: a != b)],
    "07.8": [choice, choice_masked],
}  # fmt: skip

WRONG = {
    "07.1": [
    ],
    "07.2": [
        (corrupt_with(factor=2.5), "raction of draws"),
        (corrupt_with(draw=numpys), "not torch's"),
        (corrupt_with(put=put_everywhere), "not selected"),
        (lambda ids, at, logits: torch.multinomial(logits.softmax(-1), 1), "the drawn words. Put"),
        (corrupt_with(give=torch.flatten), "Your result is flat"),
        (corrupt_straight_through, "A gradient would flow"),
        (lambda ids, at, logits: torch.multinomial(logits - 100, 1), "apply softmax"),
        (lambda ids, at, logits: ids.flatten().index_put(
            (at,), torch.multinomial(logits.softmax(-1), 1)), "squeeze(1)"),
        (lambda ids, at, logits: ids[at + len(ids)], "input_ids.flatten()"),
        (lambda ids, at, logits: fill_in(ids, at, torch.from_numpy(logits.numpy())), "detach()"),
    ],
    "07.3": [
        (judge_by_logs, "rounded to 0 or 1"),
        (lambda *args: judge(*args, reduce=torch.median), "Loss: you have"),
        (lambda x, y, m: F.binary_cross_entropy_with_logits(x, y), "labels.to("),
    ],
    "07.4": [
        (lambda V, w: (math.log(V), 0.0), "discriminator's loss is missing"),
        (start_with(generator=2), "Total loss: you have"),
    ],
    "07.5": [
        (partial(step, generator=lambda blocks, H, g: blocks(H) // (H // g)), "as g/H of the"),
    ],
    "07.6": [
        (lambda *args: {name: x**2 for name, x in fractions(*args).items()}, "you have"),
    ],
    "07.7": [
        (lambda v, m: alike(v, m, keep=lambda a, b: True), "each vector with itself"),
        (lambda v, m: 1 - alike_by_sums(v, m), "you have"),
    ],
    "07.8": [
        (lambda x, s: choice(x, s, p=lambda x: 1 / (1 + x.exp())), "are original"),
        (lambda x, s: [sum(x.sigmoid()[n, a:b]) for n, (a, b) in enumerate(s)], "add up"),
        (lambda x, s: int(torch.tensor(choice(x, s)).argmin()), "shape"),
    ],
}  # fmt: skip
