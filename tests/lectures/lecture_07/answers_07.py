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


def label_masked_only(original, masked, corrupted):
    at = masked == MASK
    return (corrupted[at] != original[at]).long()


def label_anywhere(original, masked, corrupted):
    words = set(original.flatten().tolist())
    return label_with(lambda o, m, c: c not in words)(original, masked, corrupted)


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


def put_transposed(out, at, words):
    for i, word in zip(at.tolist(), words.tolist(), strict=True):
        out[i % len(out), i // len(out)] = word


def put_shifted(by):
    def put(out, at, words):
        out.view(-1)[(at + by) % out.numel()] = words

    return put


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


def one_number_for_all(p):
    ends = p.cumsum(-1) / p.sum(-1, keepdim=True)
    return (ends <= torch.rand(1, dtype=p.dtype)).sum(-1).clamp(max=p.shape[1] - 1)


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


def judge_rows(x, y, m):
    rows = [judge_with()(*(t[i : i + 1] for t in (x, y, m))) for i in range(len(x))]
    return torch.stack(rows).mean()


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


def fractions_by_bert_large(model, rows):
    reached = fractions_with()(model, rows)
    return {name: rows[model]["compute"] / rows["BERT-large"]["compute"] for name in reached}


def other(rule):
    """A rule on scores for every model but the one itself."""
    return lambda m, r: r is not m and rule(m["score"], r["score"])


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
        (label_with(lambda o, m, c: m == MASK), "Every position that was masked"),
        (label_with(lambda o, m, c: m != o), "Every position that was masked"),
        (label_with(lambda o, m, c: o == c), "1 for original"),
        (lambda o, m, c: 1 - (o != c).long(), "1 for original"),
        (label_with(lambda o, m, c: m != c), "compared with the masked one"),
        (label_masked_only, "of the masked positions only"),
        (label_with(lambda o, m, c: m == MASK and o == c), "found the true word"),
        (label_with(lambda o, m, c: m == MASK and o != c), "only where a [MASK] stood"),
        (label_with(lambda o, m, c: int(o != c) if m == MASK else -100), "are −100"),
        (label_with(lambda o, m, c: c if o != c else 0), "you return its id"),
        (label_with(lambda o, m, c: o if o != c else 0), "you return the true word"),
        (label_anywhere, "occurs anywhere in the original"),
        (lambda o, m, c: (o != c).long().flatten(), "expected a tensor of shape"),
        (lambda o, m, c: (o != c).long().any(1), "one label a text"),
        (label_with(lambda o, m, c: 2 * (o != c)), "it is doubled"),
        (lambda o, m, c: torch.zeros_like(o), "you have"),
        (lambda o, m, c: (o != c).float().mean(), "expected a tensor of shape"),
    ],
    "07.2": [
        (corrupt_with(draw=lambda p: p.argmax(-1)), "always put in the likeliest"),
        (corrupt_with(p=lambda x: torch.full_like(x, 1 / x.shape[1])), "equally often"),
        (corrupt_with(p=lambda x: x.clamp(min=0)), "taken for probabilities"),
        (corrupt_with(p=lambda x: x - x.min(-1, keepdim=True).values), "taken for probabilities"),
        (corrupt_with(p=torch.abs), "taken for probabilities"),
        (corrupt_with(p=lambda x: x.softmax(-1).softmax(-1)), "softmax is applied twice"),
        (corrupt_with(p=lambda x: x.softmax(0)), "over the positions (axis 0)"),
        (corrupt_with(p=torch.sigmoid), "are sigmoids"),
        (corrupt_with(p=lambda x: (-x).softmax(-1)), "sign of the logits is reversed"),
        (corrupt_with(p=lambda x: x[:1].softmax(-1).expand_as(x)), "of the first one"),
        (corrupt_with(p=lambda x: (2.5 * x).softmax(-1)), "raction of draws"),
        (corrupt_with(draw=one_number_for_all), "one random number decides"),
        (corrupt_with(draw=lambda p: torch.multinomial(
            p, 1, generator=torch.Generator().manual_seed(7)).squeeze(1)), "are fixed inside"),
        (corrupt_with(draw=numpys), "not torch's"),
        (lambda ids, at, logits: ids.clone(), "comes back as it was"),
        (corrupt_with(put=lambda out, at, w: out.__setitem__((0, at % out.shape[1]), w)),
         "land in the first row"),
        (corrupt_with(put=lambda out, at, w: out.__setitem__(
            (slice(None), at % out.shape[1]), w)), "into every row"),
        (corrupt_with(put=put_transposed), "the wrong way round, with B"),
        (corrupt_with(put=put_shifted(1)), "one position too late"),
        (corrupt_with(put=put_shifted(-1)), "one position too early"),
        (corrupt_with(put=lambda out, at, w: out.masked_scatter_(out == MASK, w)),
         "where a [MASK] stands"),
        (corrupt_with(put=lambda out, at, w: put_flat(out, at, w.sort().values)), "another order"),
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
        (judge_with(pick=lambda real, y: torch.ones_like(real)), "runs over the padding too"),
        (judge_with(reduce=lambda x, real: x.sum() / real.numel()), "divided by all B·T"),
        (lambda x, y, m: F.binary_cross_entropy_with_logits(x * m, (y * m).double()),
         "set to zero and averaged in"),
        (judge_with(pick=lambda real, y: real & (y == 1)), "replaced tokens only"),
        (judge_with(pick=lambda real, y: real & (y == 0)), "original tokens only"),
        (judge_with(lambda x, y: -y * F.logsigmoid(x)), "Add −(1 − y)"),
        (judge_with(lambda x, y: -(1 - y) * F.logsigmoid(-x)), "Add −y · log p"),
        (judge_with(reduce=lambda x, real: x.sum()), "sum over the real tokens"),
        (judge_rows, "by itself, then the texts"),
        (lambda x, y, m: judge_rows(x, y, m) * len(x), "means were added"),
        (lambda x, y, m: judge_with()(x, 1 - y, m), "read the other way round"),
        (judge_with(reduce=lambda x, real: -x.mean()), "never negative"),
        (lambda x, y, m: judge_with()(torch.sigmoid(x), y, m), "went through a sigmoid"),
        (judge_with(lambda x, y: -F.log_softmax(x, 1) * y), "over the tokens of a text"),
        (judge_with(lambda x, y: (torch.sigmoid(x) - y).square()), "squared distance"),
        (judge_with(lambda x, y: (torch.sigmoid(x) - y).abs()), "without a logarithm"),
        (judge_with(reduce=lambda x, real: x.mean() / math.log(2)), "base 2 (bits)"),
        (judge_by_logs, "rounded to 0 or 1"),
        (lambda x, y, m: F.binary_cross_entropy(x.sigmoid()[m == 1], y[m == 1].double()),
         "rounded to 0 or 1"),
        (judge_with(pick=lambda real, y: y >= 0, reduce=lambda x, real: x.sum()), "Loss: you have"),
        (lambda x, y, m: judge_with()(x, y, m).item(), "carries no gradient"),
        (lambda x, y, m: judge_with()(x.detach(), y, m), "carries no gradient"),
        (judge_with(reduce=lambda x, real: x[:, None].expand(-1, 2)), "expected one number"),
        (lambda x, y, m: f"{judge_with()(x, y, m):.3f}", "expected one number"),
        (judge_with(reduce=lambda x, real: x.median()), "Loss: you have"),
        (lambda x, y, m: F.binary_cross_entropy_with_logits(x, y), "labels.to("),
    ],
    "07.4": [
        (start_with(weights=lambda w: (w, 1)), "λ stands before the generator"),
        (start_with(weights=lambda w: (w, 1), mlm=math.log2, disc=lambda V: 1.0), "in bits"),
        (start_with(scale=0.5), "averaged; they are added"),
        (start_with(weights=lambda w: (1 / (1 + w), w / (1 + w))), "divided by the weights"),
        (start_with(weights=lambda w: (1 - w, w)), "λ and 1 − λ"),
        (start_with(weights=lambda w: (1, 1)), "λ has no effect"),
        (start_with(weights=lambda w: (w, w)), "λ multiplies both"),
        (start_with(mlm=math.log2, disc=lambda V: 1.0), "in bits"),
        (start_with(mlm=math.log10, disc=lambda V: math.log10(2)), "base 10"),
        (start_with(weights=lambda w: (0, w)), "generator's loss is missing"),
        (start_with(weights=lambda w: (1, 0)), "discriminator's loss is missing"),
        (start_with(fraction=lambda a, b: a / (a + b)), "that of the generator;"),
        (start_with(fraction=lambda a, b: b / a), "one term divided by the other"),
        (lambda V, w: (start_with()(V, w)[0], math.log(2) / math.log(2 * V)), "the bare losses"),
        (start_with(fraction=lambda a, b: math.log(2) / (a + b)), "missing above the line"),
        (start_with(fraction=lambda a, b: 100 * b / (a + b)), "in percent"),
        (lambda V, w: start_with()(V, w)[::-1], "exchanged"),
        (lambda V, w: (math.log(V), w * math.log(2)), "return the two terms"),
        (start_with(disc=math.log), "taken as ln V"),
        (start_with(disc=lambda V: 0.15 * math.log(1 / 0.15) + 0.85 * math.log(1 / 0.85)),
         "about 15%"),
        (start_with(mlm=lambda V: 1 - 1 / V, disc=lambda V: 0.5), "without a logarithm"),
        (start_with(mlm=lambda V: math.log(1 / V), disc=lambda V: math.log(0.5)), "sign is wrong"),
        (lambda V, w: start_with()(V, w)[0], "expected 2: total loss, fraction"),
        (start_with(weights=lambda w: (2, w)), "Total loss: you have"),
    ],
    "07.5": [
        (step_with(projection=nothing, generator=nothing, generator_head=nothing),
         "Left out: the generator. It"),
        (step_with(generator=lambda blocks, T, H, V, k, g: blocks(H) * g / H), "as g/H of the"),
        (step_with(generator=lambda blocks, T, H, V, k, g: blocks(H) // (H // g)), "as g/H of the"),
        (step_with(generator=lambda blocks, T, H, V, k, g: blocks(H) * g * g / H / H), "(g/H)²"),
        (step_with(generator=lambda blocks, T, H, V, k, g: blocks(H)), "counted H wide"),
        (step_with(generator_head=nothing), "Left out: the generator's vocabulary head"),
        (step_with(generator_head=lambda blocks, T, H, V, k, g: 2 * k * g * (g + V)),
         "an embedding matrix g wide"),
        (step_with(generator_head=lambda blocks, T, H, V, k, g: 2 * k * H * (H + V)), "H to H; it"),
        (step_with(projection=nothing), "Left out: the layer that leads"),
        (step_with(bert_head=lambda blocks, T, H, V, k, g: 2 * T * H * (H + V),
                   generator_head=lambda blocks, T, H, V, k, g: 2 * T * H * (g + V)),
         "were counted at all T"),
        (step_with(bert_head=lambda blocks, T, H, V, k, g: 2 * T * H * (H + V)), "at all T"),
        (step_with(bert_head=nothing), "Left out: BERT's vocabulary head"),
        (step_with(bert_head=lambda blocks, T, H, V, k, g: 2 * k * H * V), "first layer of the"),
        (step_with(rtd_head=lambda blocks, T, H, V, k, g: 2 * k * H * (H + 1)), "at the k masked"),
        (step_with(rtd_head=nothing), "Left out: the discriminator"),
        (step_with(rtd_head=lambda blocks, T, H, V, k, g: 2 * k * H * (H + V)), "one logit a"),
        (lambda *s: (step_with()(*s)[0], step_with()(*s)[1] - 2 * (
            step_with()(*s)[1] - step_with(projection=nothing, generator=nothing,
                                           generator_head=nothing)(*s)[1]) // 3),
         "counted forward only"),
        (step_with(passes=1), "Only the forward pass"),
        (step_with(passes=2), "like the forward one"),
        (step_with(passes=1, projection=nothing), "Only the forward pass"),
        (step_with(projection=nothing, rtd_head=nothing), "Left out: the layer"),
        (lambda *s: step_with()(*s)[::-1], "exchanged"),
        (lambda *s: 1.2, "expected 2: BERT"),
        (lambda *s: (7, 9), "same for all inputs"),
    ],
    "07.6": [
        (fractions_with(lambda m, r: r["compute"] / m["compute"]), "upside down"),
        (fractions_by_bert_large, "divided by BERT-large"),
        (fractions_with(lambda m, r: m["steps"] / r["steps"]), "Steps are divided"),
        (fractions_with(lambda m, r: m["compute"] * r["steps"] / (r["compute"] * m["steps"])),
         "divided by steps first"),
        (fractions_with(lambda m, r: m["score"] / r["score"]), "scores are divided"),
        (fractions_with(lambda m, r: m["score"] * r["compute"] / (r["score"] * m["compute"])),
         "Points per FLOP"),
        (fractions_with(lambda m, r: m["compute"] - r["compute"]), "difference of the two"),
        (fractions_with(lambda m, r: 1 - m["compute"] / r["compute"]), "what was saved"),
        (fractions_with(lambda m, r: m["compute"] / r["compute"] * 100), "in percent"),
        (fractions_with(lambda m, r: round(m["compute"] / r["compute"], 2)), "are rounded"),
        (lambda model, rows: {**fractions_with()(model, rows), model: 1.0}, "with itself as well"),
        (fractions_with(keep=other(lambda mine, score: True)), "All other models"),
        (fractions_with(keep=lambda m, r: True), "All models are in your result"),
        (fractions_with(keep=other(lambda mine, score: score <= mine)), "little more is missing"),
        (fractions_with(keep=other(lambda mine, score: abs(score - mine) < 0.25)), "same score"),
        (fractions_with(keep=other(lambda mine, score: score < mine - 0.25)), "taken off the mod"),
        (fractions_with(keep=other(lambda mine, score: score > mine - 0.25)), "score more, in"),
        (fractions_with(keep=other(lambda mine, score: score > mine + 0.25)), "by over 0.25"),
        (lambda model, rows: list(fractions_with()(model, rows).values()), "expected a dictionary"),
        (fractions_with(lambda m, r: (m["compute"] / r["compute"]) ** 2), "you have"),
        (fractions_with(lambda m, r: r["compute"] / m["compute"], other(lambda m, s: s <= m)),
         "upside down"),
    ],
}  # fmt: skip
