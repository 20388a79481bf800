"""What other hands might write for the exercises of lecture 07, right and wrong."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.family.electra import fill_in

MASK = 4

# ---------------------------------------------------------------- 07.1


def label_with(rule):
    """Labels token by token: rule(original, masked, corrupted) -> label."""

    def answer(original, masked, corrupted):
        texts = zip(original.tolist(), masked.tolist(), corrupted.tolist(), strict=True)
        return torch.tensor(
            [[int(rule(*ids)) for ids in zip(*text, strict=True)] for text in texts]
        )

    return answer


# ---------------------------------------------------------------- 07.2


def by_categorical(p):
    return torch.distributions.Categorical(probs=p).sample()


def corrupt_with(*, p=lambda x: x.softmax(-1), put=None, give=lambda x: x, draw=by_categorical):
    """The corruption by hand; each part can be exchanged."""

    def answer(input_ids, predict_at, logits):
        words, out = draw(p(logits.detach())), input_ids.clone()
        if put:
            put(out, predict_at, words)
            return give(out)
        T = input_ids.shape[1]
        for at, word in zip(predict_at.tolist(), words.tolist(), strict=True):
            out[at // T, at % T] = word
        return give(out)

    return answer


def put_flat(out, at, words):
    out.view(-1)[at] = words


def put_everywhere(out, at, words):
    out[:] = words[0]
    put_flat(out, at, words)


def corrupt_in_place(input_ids, predict_at, logits):
    put_flat(input_ids, predict_at, torch.multinomial(logits.detach().softmax(-1), 1)[:, 0])
    return input_ids


def corrupt_straight_through(input_ids, predict_at, logits):
    p = logits.softmax(-1)
    return corrupt_with()(input_ids, predict_at, logits).float() + (p - p.detach()).sum()


def numpys(p):
    words = np.random.default_rng().random((len(p), 1)) > p.cumsum(-1).numpy()
    return torch.from_numpy(words.sum(-1)).clamp(max=p.shape[1] - 1)


def corrupt_gumbel(input_ids, predict_at, logits):
    noise = -torch.log(-torch.log(torch.rand_like(logits)))
    words = (logits + noise).detach().argmax(-1)
    return input_ids.flatten().scatter(0, predict_at, words).reshape(input_ids.shape)


def corrupt_rows_and_columns(input_ids, predict_at, logits):
    out, T = input_ids.clone(), input_ids.shape[1]
    words = torch.distributions.Categorical(logits=logits.detach()).sample()
    out[predict_at // T, predict_at % T] = words
    return out


# ---------------------------------------------------------------- 07.3


def judge_with(each=None, *, pick=lambda real, y: real, reduce=lambda x, real: x.mean()):
    """The loss from −log P token by token, with one part exchanged."""

    def plain(x, y):
        return -torch.where(y == 1, F.logsigmoid(x), F.logsigmoid(-x))

    def answer(logits, y, attention_mask):
        real = attention_mask == 1
        return reduce((each or plain)(logits, y)[pick(real, y)], real)

    return answer


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


def start_with(*, mlm=math.log, disc=lambda V: math.log(2), weights=lambda w: (1, w), scale=1.0,
               fraction=lambda a, b: b / (a + b)):  # fmt: skip
    def answer(V, weight):
        first, second = weights(weight)
        a, b = first * mlm(V), second * disc(V)
        return scale * (a + b), fraction(a, b)

    return answer


def start_measured(V, weight):
    """The losses of two networks whose logits are all zero."""
    mlm = F.cross_entropy(torch.zeros(1, V).double(), torch.tensor([3]))
    disc = F.binary_cross_entropy_with_logits(torch.zeros(1).double(), torch.ones(1).double())
    return torch.stack([mlm + weight * disc, 1 - mlm / (mlm + weight * disc)])


# ---------------------------------------------------------------- 07.5


def step_with(*, passes=3, **wrong):
    """The count written part by part; a keyword replaces a part by f(blocks, T, H, V, k, g)."""

    def answer(blocks, T, H, V, k, g):
        parts = {
            "bert": blocks(H), "bert_head": 2 * k * H * (H + V),
            "projection": 2 * T * H * g, "generator": blocks(g),
            "generator_head": 2 * k * (g * H + H * V),
            "discriminator": blocks(H), "rtd_head": 2 * T * H * (H + 1),
        }  # fmt: skip
        for name, part in wrong.items():
            parts[name] = part(blocks, T, H, V, k, g)
        ours = ("projection", "generator", "generator_head", "discriminator", "rtd_head")
        bert = parts["bert"] + parts["bert_head"]
        return passes * bert, passes * sum(parts[name] for name in ours)

    return answer


def step_layers(blocks, T, H, V, k, g):
    """Every layer as (places, from, to)."""

    def layers(*sizes):
        return sum(2 * places * m * n for places, m, n in sizes)

    bert = blocks(H) + layers((k, H, H), (k, H, V))
    electra = blocks(g) + layers((T, H, g), (k, g, H), (k, H, V))
    electra += blocks(H) + layers((T, H, H), (T, H, 1))
    return [float(bert + 2 * bert), float(electra + 2 * electra)]


def nothing(*sizes):
    return 0


# ---------------------------------------------------------------- 07.6


def fractions_with(value=lambda m, r: m["compute"] / r["compute"], keep=lambda m, r: None):
    """The fractions in a loop; keep(mine, row) replaces the rule for who is reached."""

    def answer(model, rows):
        mine, found = rows[model], {}
        for name, row in rows.items():
            reached = keep(mine, row)
            if reached is None:
                reached = name != model and row["score"] - mine["score"] <= 0.25
            if reached:
                found[name] = value(mine, row)
        return found

    return answer


def fractions_sorted(model, rows):
    order = sorted((name for name in rows if name != model), key=lambda name: rows[name]["score"])
    limit = rows[model]["score"] + 0.25
    used = np.array(rows[model]["compute"])
    return {n: used / rows[n]["compute"] for n in order if rows[n]["score"] <= limit}


# ---------------------------------------------------------------- the answers

RIGHT = {
    "07.1": [label_with(lambda o, m, c: o != c), lambda o, m, c: o != c,
             lambda o, m, c: label_with(lambda o, m, c: o != c)(o, m, c).tolist(),
             lambda o, m, c: 1 - np.equal(o.numpy(), c.numpy()).astype(float)],
    "07.2": [corrupt_with(put=put_flat), corrupt_rows_and_columns, corrupt_gumbel,
             lambda ids, at, logits: fill_in(ids, at, logits)],
    "07.3": [judge_with(), judge_loops, lambda x, y, m: (F.binary_cross_entropy_with_logits(
        x, y.double(), reduction="none") * m).sum() / m.sum()],
    "07.4": [start_with(), start_measured, lambda V, w: (
        math.log(V * 2**w), 1 - math.log(V) / math.log(V * 2**w))],
    "07.5": [step_with(), step_layers, lambda *sizes: torch.tensor(
        [float(x) for x in step_with()(*sizes)], dtype=torch.float64)],
    "07.6": [fractions_with(), fractions_sorted],
}  # fmt: skip

WRONG = {
    "07.1": [
        (lambda o, m, c: (o != c).long().flatten(), "expected a tensor of shape"),
        (label_with(lambda o, m, c: 2 * (o != c)), "it is doubled"),
        (lambda o, m, c: (o != c).float().mean(), "expected a tensor of shape"),
    ],
    "07.2": [
        (corrupt_with(p=lambda x: (2.5 * x).softmax(-1)), "raction of draws"),
        (corrupt_with(draw=numpys), "not torch's"),
        (corrupt_with(put=put_everywhere), "not selected"),
        (corrupt_in_place, "writes into `input_ids`"),
        (lambda ids, at, logits: torch.multinomial(logits.softmax(-1), 1), "the drawn words. Put"),
        (corrupt_with(give=torch.flatten), "Your result is flat"),
        (corrupt_straight_through, "A gradient would flow"),
        (corrupt_with(give=lambda x: x.float()), "has type torch.float32"),
        (corrupt_with(give=lambda x: x[:, :1]), "has shape"),
        (lambda ids, at, logits: torch.multinomial(logits - 100, 1), "apply softmax"),
        (lambda ids, at, logits: ids.flatten().index_put(
            (at,), torch.multinomial(logits.softmax(-1), 1)), "squeeze(1)"),
        (lambda ids, at, logits: ids[at + len(ids)], "input_ids.flatten()"),
        (lambda ids, at, logits: fill_in(ids, at, torch.from_numpy(logits.numpy())), "detach()"),
    ],
    "07.3": [
        (judge_with(reduce=lambda x, real: x.mean() / math.log(2)), "base 2 (bits)"),
        (judge_by_logs, "rounded to 0 or 1"),
        (lambda x, y, m: judge_with()(x, y, m).item(), "carries no gradient"),
        (lambda x, y, m: judge_with()(x.detach(), y, m), "carries no gradient"),
        (judge_with(reduce=lambda x, real: x[:, None].expand(-1, 2)), "expected one number"),
        (lambda x, y, m: f"{judge_with()(x, y, m):.3f}", "expected one number"),
        (judge_with(reduce=lambda x, real: x.median()), "Loss: you have"),
        (lambda x, y, m: F.binary_cross_entropy_with_logits(x, y), "labels.to("),
    ],
    "07.4": [
        (start_with(mlm=math.log10, disc=lambda V: math.log10(2)), "base 10"),
        (start_with(weights=lambda w: (1, 0)), "discriminator's loss is missing"),
        (start_with(fraction=lambda a, b: 100 * b / (a + b)), "in percent"),
        (lambda V, w: start_with()(V, w)[::-1], "exchanged"),
        (lambda V, w: start_with()(V, w)[0], "expected 2: total loss, fraction"),
        (start_with(weights=lambda w: (2, w)), "Total loss: you have"),
    ],
    "07.5": [
        (step_with(generator=lambda blocks, T, H, V, k, g: blocks(H) // (H // g)), "as g/H of the"),
        (step_with(projection=nothing, rtd_head=nothing), "Left out: the layer"),
        (lambda *s: step_with()(*s)[::-1], "exchanged"),
        (lambda *s: 1.2, "expected 2: BERT"),
        (lambda *s: (7, 9), "same for all inputs"),
    ],
    "07.6": [
        (lambda model, rows: list(fractions_with()(model, rows).values()), "expected a dictionary"),
        (fractions_with(lambda m, r: (m["compute"] / r["compute"]) ** 2), "you have"),
    ],
}  # fmt: skip
