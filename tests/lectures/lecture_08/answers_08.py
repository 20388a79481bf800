"""Answers to the exercises of lecture 08 as other hands write them, for test_exercises.py."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F

from course_lib.kernels.positions import position_rows, row_table

# ---------------------------------------------------------------- 08.1


def rows(rule):
    """The table pair by pair: rule(i, j, k) -> row."""
    return lambda T, k: torch.tensor([[rule(i, j, k) for j in range(T)] for i in range(T)])


def cut(row, lower, upper):
    return min(max(row, lower), upper)


WRONG_ROWS = [
    (rows(lambda i, j, k: min(abs(i - j), k)), "You dropped the sign of the distance"),
    (rows(lambda i, j, k: cut(2 * (i - j) + k, 0, 2 * k - 1)), "you have"),
]

# ---------------------------------------------------------------- 08.2


def scores(query, key, pks, pqs, d):
    """Pair by pair, as the statement says it."""
    B, A, T, D = query.shape
    out = query.new_zeros(B, A, T, T)
    for b, a, i, j in torch.cartesian_prod(*map(torch.arange, (B, A, T, T))).tolist():
        q, k, row = query[b, a, i], key[b, a, j], d[i, j]
        out[b, a, i, j] = (q @ k + q @ pks[a, row] + k @ pqs[a, row]) / math.sqrt(3 * D)
    return out


def by_indexing(query, key, pk, pq, d):
    i, j = torch.arange(len(d))[:, None], torch.arange(len(d))
    second, third = (query @ pk.mT)[..., i, d], (key @ pq.mT)[..., j, d]
    return list((query @ key.mT + second + third) * (3 * query.shape[-1]) ** -0.5)


def by_einsum(query, key, pk, pq, d):
    second = torch.einsum("baid,aijd->baij", query, pk[:, d])
    third = torch.einsum("bajd,aijd->baij", key, pq[:, d])
    return (query @ key.mT + second + third) / math.sqrt(3 * query.shape[-1])


WRONG_SCORES = [
    (lambda q, k, pk, pq, d: (q @ pk.mT).gather(-1, d), "delta.expand(B, A, T, T)"),
    (lambda q, k, pk, pq, d: pk[d], "along the axis of length R"),
    (lambda *args: torch.tanh(by_einsum(*args)), "you have"),
]  # fmt: skip

# ---------------------------------------------------------------- 08.3


def lookup(ids, table, difference, pad):
    """Token by token; the padding's difference is held fixed, too."""
    rows = [
        table[n].detach() + (difference[n].detach() if n == pad else difference[n])
        for n in ids.flatten().tolist()
    ]
    return torch.stack(rows).view(*ids.shape, -1)


def by_one_hot(ids, table, difference, pad):
    one_hot = F.one_hot(ids, len(table)).to(table.dtype)  # (B, T, V)
    kept = torch.arange(len(table))[:, None] != pad
    return one_hot @ (table.detach() + torch.where(kept, difference, difference.detach()))


WRONG_LOOKUPS = [
    (lambda ids, t, d, pad: t.detach()[ids] + d[ids], "row of the difference gets a gradient"),
    (lambda ids, t, d, pad: t[ids] * d[ids], "you have"),
]


# ---------------------------------------------------------------- 08.4


def bucket(spare=1, whole=math.ceil):
    """Distance by distance."""

    def one(d, k, furthest, exact):
        if abs(d) <= exact:
            return d
        fraction = math.log(abs(d) / exact) / math.log((furthest - 1) / exact)
        far = exact + whole(round(fraction * (k - spare - exact), 9))
        return int(math.copysign(min(far, k - 1), d))

    return lambda d, *sizes: torch.tensor([one(x, *sizes) for x in d.flatten().tolist()]).view_as(d)


def of_transformers(d, k, furthest, exact):
    """Their rows, less k: buckets go on beyond `furthest`, and the row is cut."""
    far = exact + ((d.abs().clamp(min=exact) / exact).log() / math.log((furthest - 1) / exact)
                   * (k - 1 - exact)).ceil().long()  # fmt: skip
    return (torch.where(d.abs() <= exact, d, far * d.sign()) + k).clamp(0, 2 * k - 1) - k


WRONG_BUCKETS = [
    (of_transformers, "the rule of transformers and of this library"),
    (lambda d, k, f, e: d if abs(d) <= e else k, "torch.where"),
    (lambda d, k, f, e: torch.ceil(math.log(d / e)).long(), "torch.log"),
    (lambda d, k, f, e: d // 2, "you have"),
]

# ---------------------------------------------------------------- 08.5


def decoder(x, positions, block, masked, first=lambda x, p: x + p[: x.shape[1]]):
    query = first(x, positions)
    for _ in range(3):
        out, _, _ = block.attend(x, query_states=query)
        query = block.apply_feed_forward(out)
    return query[masked]


def only_masked(x, positions, block, masked):
    """Sequence by sequence: the masked tokens have queries."""
    queries = []
    for row, at in zip(x, masked, strict=True):
        query = (row[at] + positions[at.nonzero()[:, 0]])[None]
        for _ in range(3):
            query = block.apply_feed_forward(block.attend(row[None], query_states=query)[0])
        queries.append(query[0])
    return torch.cat(queries)


def with_slots(x, positions, block, masked):
    """As many queries as the sequence with most has; what is too many is left out at the end."""
    at = masked.int().argsort(dim=1, descending=True, stable=True)[:, : int(masked.sum(1).max())]
    query = (x + positions[: x.shape[1]]).gather(1, at[..., None].expand(-1, -1, x.shape[2]))
    for _ in range(3):
        query = block.apply_feed_forward(
            block.attend(x, output_positions=at, query_states=query)[0]
        )
    return query[masked.gather(1, at)]


WRONG_DECODERS = [
    (lambda x, p, block, masked: block.apply_feed_forward(block.attend(x)), "block.attend(…)[0]"),
    (partial(decoder, first=lambda x, p: x + p), "x.shape[1]]"),
]

# ---------------------------------------------------------------- 08.6


def norm(e, correction=0):
    centred = e - e.mean(-1, keepdim=True)
    return centred / e.var(-1, correction=correction, keepdim=True).sqrt()


def perturb(tiny=1e-9, read=lambda e, old, new: norm(e) + new, give=lambda a, b: (a, b)):
    """Token by token."""

    def answer(embeddings, old, gradient, step):
        pairs = zip(old.flatten(0, 1), gradient.flatten(0, 1), strict=True)
        new = torch.stack([p + step * g / (g.abs().max() + tiny) for p, g in pairs]).view_as(old)
        return give(new, read(embeddings, old, new))

    return answer


WRONG_PERTURBATIONS = [
    (perturb(read=lambda e, old, new: norm(e, correction=1) + new), "divides by H − 1"),
    (lambda e, p, g, s: (p + s * g / g.abs().amax(-1), norm(e)), "keepdim=True"),
    (lambda e, p, g, s: p + s * g / g.abs().max(-1, keepdim=True), ".amax("),
    (lambda e, p, g, s: (p, F.layer_norm(e, (1,))), "x.shape[-1:]"),
    (perturb(read=lambda e, old, new: norm(e) + 3 * new), "you have"),
]

# ---------------------------------------------------------------- 08.7


def extra(L, d, k, shared, rows=0, matrices=2):
    return (2 * k + rows) * d + (0 if shared else matrices * L * d * d)


WRONG_EXTRA = [
    (partial(extra, rows=1, matrices=4), "(2) Four matrices"),
    (lambda L, d, k, shared: 7 * L + d, "you have"),
]

RIGHT = {
    "08.1": [rows(lambda i, j, k: cut(i - j + k, 0, 2 * k - 1)),
             lambda T, k: row_table(position_rows(T, k)).int(),
             lambda T, k: rows(lambda i, j, k: cut(i - j, -k, k - 1) + k)(T, k).tolist()],
    "08.2": [scores, by_indexing, by_einsum],
    "08.3": [lookup, by_one_hot],
    "08.4": [bucket(), lambda *args: bucket()(*args).tolist()],
    "08.5": [decoder, only_masked, with_slots],
    "08.6": [perturb(tiny=1e-6), perturb(give=lambda a, b: [a, b])],
    "08.7": [extra, lambda *args: torch.tensor(extra(*args)),
             lambda L, d, k, shared: 2.0 * d * (k + L * d * (not shared))],
}  # fmt: skip
WRONG = {"08.1": WRONG_ROWS, "08.2": WRONG_SCORES, "08.3": WRONG_LOOKUPS, "08.4": WRONG_BUCKETS,
         "08.5": WRONG_DECODERS, "08.6": WRONG_PERTURBATIONS, "08.7": WRONG_EXTRA}  # fmt: skip
