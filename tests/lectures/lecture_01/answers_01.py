"""What other hands might write for the exercises of lecture 01, right and wrong."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

# ---------------------------------------------------------------- 01.1


def pmi_cell_by_cell(counts, smoothing):
    total, ppmi = counts.sum(), torch.zeros_like(counts)
    powers = [float(column.sum()) ** smoothing for column in counts.T]
    for w, row in enumerate(counts):
        for c, n in enumerate(row):
            if n:
                chance = row.sum() / total * powers[c] / sum(powers)
                ppmi[w, c] = max(0.0, math.log(n / total / chance))
    return ppmi


def pmi_numpy(counts, smoothing):
    n = counts.numpy()
    contexts = n.sum(0) ** smoothing
    with np.errstate(divide="ignore", invalid="ignore"):
        pmi = np.log(n) - np.log(n.sum(1, keepdims=True)) - np.log(contexts / contexts.sum())
    return np.where(n > 0, np.maximum(pmi, 0), 0)


# ---------------------------------------------------------------- 01.2


def nearest_sorted(vectors, word, k):
    def cosine(i):
        return float(vectors[i] @ vectors[word] / vectors[i].norm() / vectors[word].norm())

    others = [i for i in range(len(vectors)) if i != word]
    return sorted(others, key=cosine, reverse=True)[:k]


def nearest_angles(vectors, word, k):
    angles = F.cosine_similarity(vectors, vectors[word][None], dim=1).clamp(-1, 1).acos()
    angles[word] = 9
    return angles.argsort()[:k][: len(vectors) - 1]


# ---------------------------------------------------------------- 01.3


def bilm_loops(forward_logits, backward_logits, ids, real, ahead=0, behind=1):
    losses = []
    for logits, here, there in ((forward_logits, ahead, behind), (backward_logits, behind, ahead)):
        log_p = logits.log_softmax(-1)
        pairs = [(b, t) for b, row in enumerate(real) for t in range(int(row.sum()) - 1)]
        losses += [torch.stack([-log_p[b, t + here, ids[b, t + there]] for b, t in pairs]).mean()]
    return sum(losses) / 2


def bilm_ignoring(forward_logits, backward_logits, ids, real):
    """With −100 for what is not predicted, and one cross-entropy over both directions."""
    nothing = torch.full_like(ids[:, :1], -100)
    words = torch.where(real, ids, -100)
    forward = torch.cat([words[:, 1:], nothing], 1)
    backward = torch.where(real, torch.cat([nothing, words[:, :-1]], 1), -100)
    logits = torch.cat([forward_logits, backward_logits])
    return F.cross_entropy(logits.transpose(1, 2), torch.cat([forward, backward]))


# ---------------------------------------------------------------- 01.4


def mix_by_halves(word, forward, backward, weights, gamma):
    s = F.softmax(weights, dim=0)
    halves = [s[0] * word + torch.einsum("l,lbtp->btp", s[1:], way) for way in (forward, backward)]
    return gamma * torch.cat(halves, dim=-1)


def mix_loop(word, forward, backward, weights, gamma, as_one=lambda s: s.exp() / s.exp().sum()):
    mixed = as_one(weights)[0] * torch.cat([word, word], -1)
    for s, one, other in zip(as_one(weights)[1:], forward, backward, strict=True):
        mixed = mixed + s * torch.cat([one, other], -1)
    return gamma * mixed


# ---------------------------------------------------------------- 01.5


def attend_loops(queries, keys, values, visible):
    rows, D = [], queries.shape[1]
    for query, seen in zip(queries, visible, strict=True):
        scores = (keys[seen] * query).sum(-1) / D**0.5
        row = torch.zeros(len(keys), dtype=values.dtype)
        rows.append(row.index_put((seen.nonzero()[:, 0],), scores.softmax(0)))
    weights = torch.stack(rows)
    return weights, torch.stack([(w[:, None] * values).sum(0) for w in weights])


def attend_adding(queries, keys, values, visible, hide=-1e30, scale=True, give=lambda w, o: (w, o)):
    scores = torch.einsum("qd,kd->qk", queries, keys)
    scores = scores / queries.shape[-1] ** 0.5 if scale else scores
    weights = torch.where(visible, scores, hide).softmax(1)
    return give(weights, weights @ values)


def attend_ready_made(q, k, v, visible):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=visible)[0]


def attend_and_divide(q, k, v, visible):
    weights = (q @ k.T / q.shape[1] ** 0.5).softmax(-1) * visible
    weights = weights / weights.sum(-1, keepdim=True)
    return weights, weights @ v


# ---------------------------------------------------------------- 01.6


def visible_by_corners(source, target, real):
    picture = torch.zeros(source + target, source + target, dtype=torch.bool)
    picture[:source, :source] = True  # the encoder
    picture[source:, :source] = True  # cross-attention
    picture[source:, source:] = torch.ones(target, target).tril().bool()  # the decoder
    return picture & real


def visible_in_words(source, target, real):
    n = source + target
    return [[bool(real[j]) and (j < source or j <= i) for j in range(n)] for i in range(n)]


# ---------------------------------------------------------------- the answers

RIGHT = {
    "01.1": [pmi_cell_by_cell, pmi_numpy],
    "01.2": [nearest_sorted, nearest_angles],
    "01.3": [bilm_loops, bilm_ignoring],
    "01.4": [mix_by_halves, mix_loop],
    "01.5": [attend_loops, attend_adding],
    "01.6": [visible_by_corners, visible_in_words, lambda s, t, real:
             visible_by_corners(s, t, real).long()],
}  # fmt: skip

WRONG = {
    "01.1": [
        (lambda n, s: pmi_cell_by_cell(n.T, s).T, "Rows are words, columns contexts"),
        (lambda n, s: (n / (n.sum(1) * n.sum(0))).log(), "keepdim=True"),
        (lambda n, s: math.log(n / n.sum()), "a tensor has .log()"),
        (lambda n, s: n / n.sum(1, keepdim=True), "PPMI: at"),
    ],
    "01.2": [
        (lambda v, w, k: F.cosine_similarity(v, v[w][None]).topk(k).indices, "itself is in your"),
        (lambda v, w, k: (v @ v[w]).argsort(descending=True)[1 : k + 1], "vectors win"),
        (lambda v, w, k: F.cosine_similarity(v, v[w][None]).topk(99).indices, "min(k, V − 1)"),
        (lambda v, w, k: v[:, w] @ v, "(V, D) @ (D,)"),
    ],
    "01.3": [
        (lambda *args: bilm_loops(*args, ahead=1, behind=0), "The directions are exchanged"),
        (lambda f, b, ids, real: F.cross_entropy(f[:, :-1], ids[:, 1:]), "do not line up"),
    ],
    "01.4": [
        (lambda *args: mix_loop(*args, as_one=lambda w: w), "The weights are used as they are"),
        (lambda w, f, b, s, g: g * (s.softmax(0) @ torch.stack([w, *f])), "do not fit"),
        (lambda w, f, b, s, g: torch.cat(w, f), "take a list of tensors"),
    ],
    "01.5": [
        (attend_ready_made, "Write it out"),
        (attend_and_divide, "You hide after the softmax"),
        (lambda *args: attend_adding(*args, hide=-9.0), "Attention weights: at"),
        (lambda *args: attend_adding(*args, give=lambda w, o: (o, w)), "exchanged"),
        (lambda q, k, v, m: attend_adding(q, k, v, -m), "~visible turns it round"),
    ],
    "01.6": [
        (lambda s, t, real: torch.ones(s + t, s + t).tril(), "read from the left only"),
        (lambda s, t, real: 1 if torch.arange(s + t) < s else 0, "An `if` asks one question"),
    ],
}  # fmt: skip
