"""Answers to the exercises of lecture 08 as other hands write them, for test_exercises.py."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_lib.kernels.disentangled import score_parts
from course_lib.kernels.positions import log_bucket, position_rows, row_table

# ---------------------------------------------------------------- 08.1


def rows(rule):
    """The table pair by pair: rule(i, j, k) -> row."""
    return lambda T, k: torch.tensor([[rule(i, j, k) for j in range(T)] for i in range(T)])


def cut(row, low, high):
    return min(max(row, low), high)


WRONG_ROWS = [
    (rows(lambda i, j, k: cut(j - i + k, 0, 2 * k - 1)), "taken as j − i"),
    (rows(lambda i, j, k: cut(abs(i - j) + k, 0, 2 * k - 1)), "lost its sign"),
    (rows(lambda i, j, k: min(abs(i - j), k)), "lost its sign"),
    (rows(lambda i, j, k: abs(i - j)), "lost its sign"),
    (rows(lambda i, j, k: cut(i - j, -k, k) + k), "2k + 1 rows"),
    (rows(lambda i, j, k: cut(i - j, -k, k)), "add k before you cut"),
    (rows(lambda i, j, k: i - j + k), "beyond k are not cut"),
    (rows(lambda i, j, k: max(i - j + k, 0)), "but rows above 2k − 1 are not"),
    (rows(lambda i, j, k: cut(i - j, 1 - k, k - 1) + k), "Row 0 is never used"),
    (rows(lambda i, j, k: (i - j + k) % (2 * k)), "come in again"),
    (rows(lambda i, j, k: cut(j - i + k, 0, 2 * k)), "taken as j − i"),
    (position_rows, "one row for each distance"),
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


def not_swapped_back(query, key, pk, pq, d):
    index = d.expand(*query.shape[:3], -1)
    first = query @ key.mT + (query @ pk.mT).gather(-1, index)
    return (first + (key @ pq.mT).gather(-1, index)) / math.sqrt(3 * key.shape[-1])


def parts(query, key, pk, pq, d):
    flat = torch.cat([d[0].flip(0), d[1:, 0]])  # (2T − 1,), as the library keeps it
    return score_parts(query, key, position_key=pk, position_query=pq, rows=flat)


WRONG_SCORES = [
    (scores(third=lambda q, k, pk, pq, d, i, j: k[j] @ pq[d[j, i]]), "equation 4"),
    (scores(second=lambda q, k, pk, pq, d, i, j: q[i] @ pk[d[j, i]]), "second term looks up"),
    (not_swapped_back, "swap the last two before you add"),
    (scores(third=lambda q, k, pk, pq, d, i, j: q[i] @ pq[d[i, j]]), "*query* of token i with"),
    (scores(third=lambda q, k, pk, pq, d, i, j: k[j] @ pk[d[i, j]]), "position_key is used in"),
    (lambda q, k, pk, pq, d: by_einsum(q, k, pq, pk, d), "two tables are exchanged"),
    (scores(more=lambda pk, pq, r: pq[r] @ pk[r]), "A fourth product"),
    (scores(weights=(1, 1, 0)), "Left out: position-to-content"),
    (scores(weights=(1, 1, -1)), "third term is subtracted"),
    (scores(root=lambda D, A: math.sqrt(D)), "divided by sqrt(d), as in BERT"),
    (scores(root=lambda D, A: 3 * math.sqrt(D)), "the 3 stands under the root"),
    (scores(root=lambda D, A: math.sqrt(3 * A * D)), "the width of one head"),
    (scores(second=lambda q, k, pk, pq, d, i, j: q[i] @ pk[d[j, i]],
            root=lambda D, A: math.sqrt(2 * D)), "sqrt(2d)"),
    (lambda *given: sum(part.softmax(-1) for part in parts(*given)), "softmax of its own"),
    (lambda *given: by_einsum(*given).softmax(-1), "attention weights, after a softmax"),
    (lambda *given: by_einsum(*given).mT, "query's token across"),
    (parts, "three scores a pair"),
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


def bucket_renamed(d, k, f, e):
    """The library's source with its `middle` replaced by `exact`, and an end."""
    fraction = (d.abs().clamp(min=e) / e).log() / math.log((f - 1) / e)
    far = (torch.ceil(fraction * (e - 1)).long() + e).clamp(max=k - 1)
    return torch.where(d.abs() <= e, d, far * d.sign())


def bucket_without_abs(d, k, f, e):
    far = e + ((d / e).log() / math.log((f - 1) / e) * (k - 1 - e)).ceil().long()
    return torch.where(d.abs() <= e, d, far.clamp(max=k - 1) * d.sign())


WRONG_BUCKETS = [
    (lambda d, k, f, e: log_bucket(d, k, f).clamp(1 - k, k - 1), "`exact` has no effect"),
    (bucket_renamed, "exact − 1 buckets"),
    (bucket(left=lambda k, f, e: k - e), "one too many: the last is"),
    (bucket(fraction=lambda s, f, e: math.log(s / e) / math.log(f / e)), "reached at `furthest`"),
    (bucket(fraction=lambda s, f, e: math.log(s) / math.log(f - 1)), "begins at distance 1"),
    (bucket(fraction=lambda s, f, e: (s - e) / (f - 1 - e)), "all equally wide"),
    (bucket(fraction=lambda s, f, e: math.log2(s / e) / math.log((f - 1) / e)), "different bases"),
    (bucket(whole=math.floor), "You round down"),
    (bucket(whole=round), "You round to the nearest"),
    (bucket(offset=-1), "one too low"),
    (bucket(sign=False), "Beyond `exact` the sign is lost"),
    (bucket(top=lambda k: 10**6), "They all stay in bucket k − 1"),
    (bucket(whole=lambda x: math.floor(x) + 1, top=lambda k: k), "Your last bucket is k"),
    (bucket(left=lambda k, f, e: k - e, whole=math.floor), "You round down"),
    (bucket_without_abs, "logarithm of a negative distance is nan"),
    (lambda d, k, f, e: d.clamp(1 - k, k - 1), "it does not widen"),
    (lambda d, k, f, e: bucket()(d, k, f, e) + k, "You have added k"),
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
    (decoder(reads=lambda x, p, query: x + p), "added to key and value as well"),
    (decoder(first=lambda x, p: x), "The positions have no effect"),
    (decoder(first=lambda x, p: p.expand(len(x), -1, -1)), "position alone"),
    (decoder(between=lambda query, x, p: query + p), "added again at every visit"),
    (decoder(reads=lambda x, p, query: query), "three ordinary layers on x + positions"),
    (decoder(first=lambda x, p: x, reads=lambda x, p, query: query), "key and value move on"),
    (decoder(between=lambda query, x, p: x + p), "what one visit gives"),
    (decoder(visits=2), "what two visits give"),
    (decoder(feed=False), "second half of the block is missing"),
    (decoder(plus=lambda x, query, out: query), "pass the result to block.feed as it is"),
    (decoder(end=lambda query, masked: query), "a vector for every token"),
    (decoder(end=lambda query, masked: query[~masked]), "*not* masked"),
    (decoder(end=lambda query, masked: query[:, masked[0]].flatten(0, 1)), "of sequence 0 in"),
    (only_masked(lambda row, at: row[at]), "made of the masked tokens alone"),
    (only_masked(lambda row, at: row[~at]), "left out of key and value"),
    (only_masked(lambda row, at: row, lambda at: torch.arange(len(at))), "masking others does not"),
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


def clip(g, limit):
    return g / max(1.0, float(g.norm()) / limit)


WRONG_PERTURBATIONS = [
    (perturb(lambda p, g, s: p - s * g / g.abs().max()), "You go *down*"),
    (whole(lambda p, g, s: p + clip(g, s)), "That is clipping"),
    (perturb(lambda p, g, s: p + s * clip(g, 1)), "That is clipping"),
    (perturb(lambda p, g, s: p + s * g), "multiplied by `step` as it is"),
    (whole(lambda p, g, s: p + s * g / g.abs().max()), "of the whole batch"),
    (whole(lambda p, g, s: p + s * g / g.abs().amax(1, keepdim=True)), "over the tokens"),
    (perturb(lambda p, g, s: p + s * g / g.norm()), "divided by its length"),
    (perturb(lambda p, g, s: p + s * g / g.max()), "largest entry with signs"),
    (perturb(lambda p, g, s: s * g / g.abs().max()), "the step alone"),
    (perturb(lambda p, g, s: p + s * g / g.abs().max()), "which is nan"),
    (perturb(read=lambda e, old, new: e + new), "added to the embeddings as they are"),
    (perturb(read=lambda e, old, new: norm(e + new)), "perturb first and normalise then"),
    (perturb(read=lambda e, old, new: norm(e, correction=1) + new), "divides by H − 1"),
    (perturb(read=lambda e, old, new: norm(e, (1, 2)) + new), "are those of a sequence"),
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
    (extra(tables=lambda L: L), "counted once a layer"),
    (extra(rows=lambda k: 2 * k + 1), "2k + 1 rows"),
    (extra(rows=lambda k: k), "with k rows"),
    (extra(matrices=lambda L, shared: 3 * L), "Three matrices a layer"),
    (extra(matrices=lambda L, shared: 2), "The two matrices were counted once"),
    (extra(always=True), "`shared` has no effect"),
    (extra(matrices=lambda L, shared: 2 if shared else 2 * L, always=True), "for all layers"),
    (lambda L, d, k, shared: extra()(L, d, k, not shared), "wrong way round"),
    (lambda L, d, k, shared: 0 if shared else extra()(L, d, k, shared), "nothing was counted"),
    (extra(size=lambda d, k: 2 * k * d), "as 2k × d"),
    (extra(size=lambda d, k: d * (d + 1)), "Biases of both"),
    (extra(plus=lambda L, d: -512 * d), "absolute positions"),
    (extra(rows=lambda k: 2 * k + 1, matrices=lambda L, shared: 4 * L), "And: Four matrices"),
    (lambda *given: extra()(*given) / 1e6, "a million times too small"),
    (lambda *given: 4 * extra()(*given), "Bytes were counted"),
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
