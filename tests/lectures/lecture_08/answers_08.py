"""Answers to the exercises of lecture 08 as other hands write them, for test_exercises.py."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_lib.kernels.disentangled import score_parts
from course_lib.kernels.positions import position_rows, row_table

# ---------------------------------------------------------------- 08.1


def rows(rule):
    """The table pair by pair: rule(i, j, k) -> row."""
    return lambda T, k: torch.tensor([[rule(i, j, k) for j in range(T)] for i in range(T)])


def cut(row, low, high):
    return min(max(row, low), high)


WRONG_ROWS = [
    (rows(lambda i, j, k: min(abs(i - j), k)), "lost its sign"),
    (rows(lambda i, j, k: abs(i - j)), "lost its sign"),
    (lambda T, k: row_table(position_rows(T, k)).float(), "expected a tensor of whole numbers"),
    (rows(lambda i, j, k: cut(2 * (i - j) + k, 0, 2 * k - 1)), "you have"),
]

# ---------------------------------------------------------------- 08.2


def scores(
    second=lambda q, k, pk, pq, d, i, j: q[i] @ pk[d[i, j]],
    third=lambda q, k, pk, pq, d, i, j: k[j] @ pq[d[i, j]],
    root=lambda D, A: math.sqrt(3 * D),
    weights=(1, 1, 1),
    more=lambda pk, pq, r: 0.0,
):
    """Pair by pair, as the statement says it; any part can be exchanged."""

    def answer(query, key, pks, pqs, d):
        B, A, T, D = query.shape
        out = query.new_zeros(B, A, T, T)
        for b, a, i, j in torch.cartesian_prod(*map(torch.arange, (B, A, T, T))).tolist():
            given = query[b, a], key[b, a], pks[a], pqs[a], d, i, j
            terms = given[0][i] @ given[1][j], second(*given), third(*given)
            total = sum(w * term for w, term in zip(weights, terms, strict=True))
            out[b, a, i, j] = (total + more(pks[a], pqs[a], d[i, j])) / root(D, A)
        return out

    return answer


def by_indexing(query, key, pk, pq, d):
    i, j = torch.arange(len(d))[:, None], torch.arange(len(d))
    second, third = (query @ pk.mT)[..., i, d], (key @ pq.mT)[..., j, d]
    return list((query @ key.mT + second + third) * (3 * query.shape[-1]) ** -0.5)


def by_einsum(query, key, pk, pq, d):
    second = torch.einsum("baid,aijd->baij", query, pk[:, d])
    third = torch.einsum("bajd,aijd->baij", key, pq[:, d])
    return (query @ key.mT + second + third) / math.sqrt(3 * query.shape[-1])


def parts(query, key, pk, pq, d):
    flat = torch.cat([d[0].flip(0), d[1:, 0]])  # (2T − 1,), as the library keeps it
    return score_parts(query, key, position_key=pk, position_query=pq, rows=flat)


WRONG_SCORES = [
    (lambda q, k, pk, pq, d: (q @ pk.mT).gather(-1, d), "delta.expand(B, A, T, T)"),
    (lambda q, k, pk, pq, d: pk[d], "along the axis of length R"),
    (lambda *given: torch.tanh(by_einsum(*given)), "you have"),
]  # fmt: skip

# ---------------------------------------------------------------- 08.3


def bucket(left=lambda k, f, e: k - 1 - e, whole=math.ceil, top=lambda k: k - 1, sign=True,
           fraction=lambda size, f, e: math.log(size / e) / math.log((f - 1) / e),
           offset=0):  # fmt: skip
    """Distance by distance; fraction(size, furthest, exact) goes from 0 to 1."""

    def one(d, k, f, e):
        if abs(d) <= e:
            return d
        far = e + offset + whole(round(fraction(abs(d), f, e) * left(k, f, e), 9))
        return min(far, top(k)) * (-1 if sign and d < 0 else 1)

    return lambda d, *sizes: torch.tensor([one(x, *sizes) for x in d.flatten().tolist()]).view_as(d)


WRONG_BUCKETS = [
    (bucket(left=lambda k, f, e: k - e, whole=math.floor), "You round down"),
    (lambda d, k, f, e: bucket()(d, k, f, e).float(), "expected a tensor of whole numbers"),
    (lambda d, k, f, e: d if abs(d) <= e else k, "torch.where"),
    (lambda d, k, f, e: torch.ceil(math.log(d / e)).long(), "torch.log"),
    (lambda d, k, f, e: d // 2, "you have"),
]

# ---------------------------------------------------------------- 08.4


def decoder(first=lambda x, p: x + p, reads=lambda x, p, query: x, visits=3, feed=True,
            between=lambda query, x, p: query, end=lambda query, masked: query[masked],
            plus=lambda x, query, out: 0):  # fmt: skip
    """Every choice in the open; between: from one visit to the next; plus: added to attend's."""

    def answer(x, positions, block, masked):
        p = positions[: x.shape[1]]
        query = first(x, p)
        for number in range(visits):
            query = between(query, x, p) if number else query
            out, _, _ = block.attend(reads(x, p, query), asking=query)
            query = block.feed(out + plus(x, query, out)) if feed else out
        return end(query, masked)

    return answer


def only_masked(part, place=lambda at: at):
    """Sequence by sequence: the masked tokens have queries, part(x, masked) is attended to."""

    def answer(x, positions, block, masked):
        found = []
        for row, at in zip(x, masked, strict=True):
            query = (row[at] + positions[place(at.nonzero()[:, 0])])[None]
            for _ in range(3):
                query = block.feed(block.attend(part(row, at)[None], asking=query)[0])
            found.append(query[0])
        return torch.cat(found)

    return answer


def with_slots(x, positions, block, masked):
    """As many queries as the sequence with most has; what is too many is left out at the end."""
    at = masked.int().argsort(dim=1, descending=True, stable=True)[:, : int(masked.sum(1).max())]
    query = (x + positions[: x.shape[1]]).gather(1, at[..., None].expand(-1, -1, x.shape[2]))
    for _ in range(3):
        query = block.feed(block.attend(x, only_at=at, asking=query)[0])
    return query[masked.gather(1, at)]


def adds_in_place(x, positions, block, masked):
    kept = x.clone()
    x += positions[: x.shape[1]]
    for _ in range(3):
        x = block.feed(block.attend(kept, asking=x)[0])
    return x[masked]


WRONG_DECODERS = [
    (adds_in_place, "writes into `x`"),
    (lambda x, p, block, masked: block.feed(block.attend(x)), "block.attend(…)[0]"),
    (lambda x, p, block, masked: decoder(lambda x, _: x + p)(x, p, block, masked), "x.shape[1]]"),
    (decoder(first=lambda x, p: x - p), "you have"),
]

# ---------------------------------------------------------------- 08.5


def norm(e, axes=(-1,), correction=0):
    centred = e - e.mean(axes, keepdim=True)
    return centred / e.var(axes, correction=correction, keepdim=True).sqrt()


def perturb(climb=lambda p, g, s: p + s * g / max(g.abs().max(), 1e-9),
            read=lambda e, old, new: norm(e) + new, give=lambda a, b: (a, b)):  # fmt: skip
    """Token by token; climb(old perturbation, gradient, step) of one token."""

    def answer(embeddings, old, gradient, step):
        pairs = zip(old.flatten(0, 1), gradient.flatten(0, 1), strict=True)
        new = torch.stack([climb(p, g, step) for p, g in pairs]).view_as(old)
        return give(new, read(embeddings, old, new))

    return answer


def whole(climb):
    """climb(old perturbation, gradient, step) of the whole batch at once."""
    return lambda e, p, g, s: (climb(p, g, s), norm(e) + climb(p, g, s))


WRONG_PERTURBATIONS = [
    (perturb(read=lambda e, old, new: norm(e, correction=1) + new), "divides by H − 1"),
    (perturb(read=lambda e, old, new: norm(e) + old), "has the *old* perturbation"),
    (perturb(give=lambda a, b: (b, a)), "The two results are exchanged"),
    (perturb(give=lambda a, b: b), "expected 2: new perturbation, input of the model"),
    (lambda e, p, g, s: (p.add_(s * g / g.abs().amax(-1, keepdim=True)), norm(e) + p), "writes"),
    (whole(lambda p, g, s: p + s * g / g.abs().amax(-1)), "keepdim=True"),
    (lambda e, p, g, s: p + s * g / g.abs().max(-1, keepdim=True), ".amax("),
    (lambda e, p, g, s: (p, F.layer_norm(e, (1,))), "x.shape[-1:]"),
    (perturb(read=lambda e, old, new: norm(e) + 3 * new), "you have"),
]

# ---------------------------------------------------------------- 08.6


def extra(tables=lambda L: 1, rows=lambda k: 2 * k, matrices=lambda L, shared: 2 * L,
          size=lambda d, k: d * d, plus=lambda L, d: 0, always=False):  # fmt: skip
    def answer(L, d, k, shared):
        own = 0 if shared and not always else matrices(L, shared) * size(d, k)
        return tables(L) * rows(k) * d + own + plus(L, d)

    return answer


WRONG_EXTRA = [
    (extra(rows=lambda k: 2 * k + 1, matrices=lambda L, shared: 4 * L), "And: Four matrices"),
    (lambda *given: extra()(*given) / 1e6, "a million times too small"),
    (lambda L, d, k, shared: 7 * L + d, "you have"),
]

RIGHT = {
    "08.1": [rows(lambda i, j, k: cut(i - j + k, 0, 2 * k - 1)),
             lambda T, k: row_table(position_rows(T, k)).int(),
             lambda T, k: rows(lambda i, j, k: cut(i - j, -k, k - 1) + k)(T, k).tolist()],
    "08.2": [scores(), by_indexing, by_einsum,
             lambda *given: sum(parts(*given)) / math.sqrt(3 * given[0].shape[-1])],
    "08.3": [bucket(), lambda *given: bucket()(*given).tolist()],
    "08.4": [decoder(), only_masked(lambda row, at: row), with_slots],
    "08.5": [perturb(lambda p, g, s: p + s * g / (g.abs().max() + 1e-6)),
             perturb(give=lambda a, b: [a, b])],
    "08.6": [extra(), lambda *given: torch.tensor(extra()(*given)),
             lambda L, d, k, shared: 2.0 * d * (k + L * d * (not shared))],
}  # fmt: skip
WRONG = {"08.1": WRONG_ROWS, "08.2": WRONG_SCORES, "08.3": WRONG_BUCKETS, "08.4": WRONG_DECODERS,
         "08.5": WRONG_PERTURBATIONS, "08.6": WRONG_EXTRA}  # fmt: skip
