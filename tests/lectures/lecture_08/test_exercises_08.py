"""Exercises of lecture 08: the planted wrong answers, and the solutions beside the library.

What every exercise must do is asked in test_exercises.py, of these as of all others.
"""

from __future__ import annotations

import math
from itertools import permutations

import pytest
import torch
import torch.nn.functional as F

from course_lib.config import BertConfig
from course_lib.encoder import Embeddings, Encoder, count_parameters
from course_lib.family.deberta import (
    DebertaConfig,
    DebertaV2Config,
    EnhancedMaskDecoder,
    deberta_encoder,
)
from course_lib.kernels.disentangled import disentangled_attention_reference, score_parts
from course_lib.kernels.positions import log_bucket, position_rows, row_table
from course_lib.lectures.lecture_08.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_08.exercises import bucket, decoder, extra, push, rows, scores
from course_lib.objectives.sift import perturbing
from course_lib.teaching.exercises.legacy import Draw, check_answer, close

EXERCISES = {exercise.id: exercise for exercise in ALL}
SEEDS = (0, 1, 2, 3, 4, 5)
torch.set_num_threads(1)  # the tensors are tiny


# ---------------------------------------------------------------- planted wrong answers


def rows_with(rule):
    """The table pair by pair: rule(i, j, k) -> row."""

    def answer(tokens, span):
        return torch.tensor([[rule(i, j, span) for j in range(tokens)] for i in range(tokens)])

    return answer


def cut(row, low, high):
    return min(max(row, low), high)


def scores_with(
    *,
    second=lambda q, k, pk, pq, d, i, j: q[i] @ pk[d[i, j]],
    third=lambda q, k, pk, pq, d, i, j: k[j] @ pq[d[i, j]],
    fourth=lambda q, k, pk, pq, d, i, j: 0.0,
    words=lambda q, k, i, j: q[i] @ k[j],
    scale=lambda D, A: math.sqrt(3 * D),
    weights=(1, 1, 1),
    after=lambda x: x,
):
    """Pair by pair, as the statement says it; any part can be exchanged.

    weights: what the three terms are multiplied by, on top of the scale."""

    def answer(query, key, position_key, position_query, delta):
        B, A, T, D = query.shape
        out = torch.zeros(B, A, T, T, dtype=query.dtype)
        for b in range(B):
            for a in range(A):
                q, k, pk, pq = query[b, a], key[b, a], position_key[a], position_query[a]
                for i in range(T):
                    for j in range(T):
                        terms = (words(q, k, i, j), second(q, k, pk, pq, delta, i, j),
                                 third(q, k, pk, pq, delta, i, j))  # fmt: skip
                        total = sum(w * t for w, t in zip(weights, terms, strict=True))
                        out[b, a, i, j] = (total + fourth(q, k, pk, pq, delta, i, j)) / scale(D, A)
        return after(out)

    return answer


def parts_of(query, key, position_key, position_query, delta):
    tables = {"position_key": position_key, "position_query": position_query}
    flat = row_of_each_distance(delta)
    return score_parts(query, key, **tables, rows=flat)


def row_of_each_distance(delta):
    """(T, T) -> (2T − 1,), as the library keeps it."""
    return torch.cat([delta[0].flip(0), delta[1:, 0]])


def scores_third_not_turned(query, key, position_key, position_query, delta):
    index = delta.expand(*query.shape[:3], -1)
    first = query @ key.mT + (query @ position_key.mT).gather(-1, index)
    return (first + (key @ position_query.mT).gather(-1, index)) / math.sqrt(3 * key.shape[-1])


def scores_three_softmaxes(*given):
    return sum(part.softmax(-1) for part in parts_of(*given))


def only_words_scaled(query, *given):
    first, *others = parts_of(query, *given)
    return first / math.sqrt(query.shape[-1]) + sum(others)


def only_last_scaled(query, *given):
    *first, last = parts_of(query, *given)
    return sum(first) + last / math.sqrt(3 * query.shape[-1])


def scaled_differently(query, *given):
    first, *others = parts_of(query, *given)
    D = query.shape[-1]
    return first / math.sqrt(D) + sum(others) / math.sqrt(3 * D)


def bucket_with(*, left=lambda k, f, e: k - 1 - e, share=None, whole=math.ceil,
                top=lambda k: k - 1, sign=True, near=lambda d, e: d,
                offset=lambda e: e, shift=lambda k: 0):  # fmt: skip
    """Distance by distance; share(size, furthest, exact) goes from 0 to 1."""

    def fraction(size, f, e):
        return math.log(size / e) / math.log((f - 1) / e)

    def one(d, k, f, e):
        size = abs(d)
        if size <= e:
            return near(d, e) + shift(k)
        number = whole(round((share or fraction)(size, f, e) * left(k, f, e), 9))
        far = min(offset(e) + number, top(k))
        return (far if d > 0 or not sign else -far) + shift(k)

    def answer(distance, buckets, furthest, exact):
        values = [one(d, buckets, furthest, exact) for d in distance.flatten().tolist()]
        return torch.tensor(values).view_as(distance)

    return answer


def bucket_copied(distance, buckets, furthest, exact):
    return log_bucket(distance, buckets, furthest).clamp(1 - buckets, buckets - 1)


def bucket_renamed(distance, buckets, furthest, exact):
    """The library's source with its `middle` replaced by `exact`, and an end."""
    size = distance.abs().clamp(min=exact)
    share = torch.log(size / exact) / math.log((furthest - 1) / exact)
    far = torch.ceil(share * (exact - 1)).long() + exact
    far = far.clamp(max=buckets - 1)
    return torch.where(distance.abs() <= exact, distance, far * distance.sign())


def bucket_half(distance, buckets, furthest, exact):
    size = distance.abs().clamp(min=exact)
    share = torch.log(size / exact) / math.log((furthest - 1) / exact)
    far = (torch.ceil(share * (buckets - 1 - exact)).long() + exact).clamp(max=buckets - 1)
    return torch.where(distance.abs() <= buckets // 2, distance, far * distance.sign())


def bucket_without_abs(clamped=False):
    """Right at distances ≥ −exact; the logarithm gets the sign, or a clamp takes the distance."""

    def answer(distance, buckets, furthest, exact):
        size = distance.clamp(min=exact) if clamped else distance
        share = (size / exact).log() / math.log((furthest - 1) / exact)
        far = exact + (share * (buckets - 1 - exact)).ceil().long()
        far = far.clamp(max=buckets - 1)
        return torch.where(distance.abs() <= exact, distance, far * distance.sign())

    return answer


def decoder_with(*, first=lambda x, p: x + p, reads=lambda x, p, asking: x, visits=3, feed=True,
                 between=lambda out, x, p: out, plus=(None, None), end=lambda out, x, p: out,
                 pick=lambda out, hidden: out[hidden]):  # fmt: skip
    """The decoder with every choice in the open; between: from one visit to the next; plus: what
    is added to attend's outcome, and to the visit's, of (x, what asks, attend's outcome)."""
    inside, after = (one or (lambda x, asking, out: 0) for one in plus)

    def answer(x, places, block, hidden):
        p = places[: x.shape[1]]
        asking = first(x, p)
        for number in range(visits):
            asking = between(asking, x, p) if number else asking
            out, _, _ = block.attend(reads(x, p, asking), asking=asking)
            part = out + inside(x, asking, out)
            asking = (block.feed(part) if feed else part) + after(x, asking, out)
        return pick(end(asking, x, p), hidden)

    return answer


def decoder_only_hidden(part, place=lambda at: at):
    """Text by text: the hidden tokens ask, part(text, hidden) is read."""

    def answer(x, places, block, hidden):
        found = []
        for text, asked in zip(x, hidden, strict=True):
            asking = (text[asked] + places[place(asked.nonzero()[:, 0])])[None]
            for _ in range(3):
                asking = block.feed(block.attend(part(text, asked)[None], asking=asking)[0])
            found.append(asking[0])
        return torch.cat(found)

    return answer


def decoder_reads_answers(x, places, block, hidden):
    asking, read = x + places[: x.shape[1]], x
    for _ in range(3):
        read = asking = block.feed(block.attend(read, asking=asking)[0])
    return asking[hidden]


def decoder_batch_places(x, places, block, hidden):
    asking = x.clone()
    asking[hidden] += places[: int(hidden.sum())]
    for _ in range(3):
        asking = block.feed(block.attend(x, asking=asking)[0])
    return asking[hidden]


def decoder_feeds_once(x, places, block, hidden):
    asking = x + places[: x.shape[1]]
    for _ in range(3):
        asking = block.attend(x, asking=asking)[0]
    return block.feed(asking)[hidden]


def decoder_in_place(x, places, block, hidden):
    kept = x.clone()
    x += places[: x.shape[1]]
    for _ in range(3):
        x = block.feed(block.attend(kept, asking=x)[0])
    return x[hidden]


def push_with(climb=None, read=lambda e, old, new: norm(e) + new, give=lambda a, b: (a, b)):
    """Token by token; climb(old push, slope, step) of one token."""

    def plain(p, g, s):
        return p + s * g / max(g.abs().max(), 1e-9)

    def answer(embeddings, old, slope, step):
        new = torch.stack([
            torch.stack([(climb or plain)(p, g, step) for p, g in zip(ps, gs, strict=True)])
            for ps, gs in zip(old, slope, strict=True)
        ])  # fmt: skip
        return give(new, read(embeddings, old, new))

    return answer


def whole_push(climb, read=lambda e, old, new: norm(e) + new):
    """climb(old push, slope, step) of the whole batch at once."""

    def answer(embeddings, old, slope, step):
        new = climb(old, slope, step)
        return new, read(embeddings, old, new)

    return answer


def norm(e, axes=(-1,), **more):
    spread = e.var(axes, keepdim=True, **{"correction": 0, **more})
    return (e - e.mean(axes, keepdim=True)) / spread.sqrt()


def clip(g, limit):
    return g / max(1.0, float(g.norm()) / limit)


def extra_with(*, tables=lambda L: 1, rows=lambda k: 2 * k, matrices=lambda L, shared: 2 * L,
               size=lambda d, k: d * d, plus=lambda L, d, k, shared: 0, always=False):  # fmt: skip
    def answer(L, d, k, shared):
        own = 0 if shared and not always else matrices(L, shared) * size(d, k)
        return tables(L) * rows(k) * d + own + plus(L, d, k, shared)

    return answer


PLANTED = {
    "08.1": {
        "j minus i": rows_with(lambda i, j, k: cut(j - i + k, 0, 2 * k - 1)),
        "no direction": rows_with(lambda i, j, k: cut(abs(i - j) + k, 0, 2 * k - 1)),
        "no direction, no shift": rows_with(lambda i, j, k: cut(abs(i - j), 0, 2 * k - 1)),
        "2k + 1 rows": rows_with(lambda i, j, k: cut(i - j, -k, k) + k),
        "not shifted": rows_with(lambda i, j, k: cut(i - j, -k, k)),
        "never shifted": rows_with(lambda i, j, k: cut(i - j, 0, 2 * k - 1)),
        "cut before the shift": rows_with(lambda i, j, k: cut(i - j, 0, 2 * k - 1) + k),
        "not cut": rows_with(lambda i, j, k: i - j + k),
        "cut on one side only": rows_with(lambda i, j, k: min(i - j + k, 2 * k - 1)),
        "row 0 never used": rows_with(lambda i, j, k: cut(i - j, 1 - k, k - 1) + k),
        "rows from 1": rows_with(lambda i, j, k: cut(i - j + k, 0, 2 * k - 1) + 1),
        "one row early": rows_with(lambda i, j, k: cut(i - j + k - 1, 0, 2 * k - 1)),
        "one row late": rows_with(lambda i, j, k: cut(i - j + k + 1, 0, 2 * k - 1)),
        "last row early": rows_with(lambda i, j, k: cut(i - j + k, 0, 2 * k - 2)),
        "shifted by 2k": rows_with(lambda i, j, k: cut(i - j + 2 * k, 0, 2 * k - 1)),
        "k rows": rows_with(lambda i, j, k: cut(i - j + k // 2, 0, k - 1)),
        "wrapped round": rows_with(lambda i, j, k: (i - j + k) % (2 * k)),
        "j minus i + 2k + 1 rows": rows_with(lambda i, j, k: cut(j - i + k, 0, 2 * k)),
        "a row for each distance": position_rows,
        "not whole numbers": lambda tokens, span: rows.delta(tokens, span).float(),
        "wrong shape": lambda tokens, span: rows.delta(tokens + 1, span),
        "wrong type": lambda tokens, span: rows.delta(tokens, span).tolist(),
        "unforeseen": rows_with(lambda i, j, k: cut(2 * (i - j) + k, 0, 2 * k - 1)),
    },
    "08.2": {
        "the paper's δ(j, i)": scores_with(
            third=lambda q, k, pk, pq, d, i, j: k[j] @ pq[d[j, i]]),
        "both look-ups turned": scores_with(
            second=lambda q, k, pk, pq, d, i, j: q[i] @ pk[d[j, i]],
            third=lambda q, k, pk, pq, d, i, j: k[j] @ pq[d[j, i]]),
        "second term turned": scores_with(
            second=lambda q, k, pk, pq, d, i, j: q[i] @ pk[d[j, i]]),
        "third term not turned back": scores_third_not_turned,
        "third term from the queries": scores_with(
            third=lambda q, k, pk, pq, d, i, j: q[i] @ pq[d[i, j]]),
        "second term from the keys": scores_with(
            second=lambda q, k, pk, pq, d, i, j: k[j] @ pk[d[i, j]]),
        "position_key for both": scores_with(
            third=lambda q, k, pk, pq, d, i, j: k[j] @ pk[d[i, j]]),
        "position_query for both": scores_with(
            second=lambda q, k, pk, pq, d, i, j: q[i] @ pq[d[i, j]]),
        "tables exchanged": lambda q, k, pk, pq, d: scores.scores(q, k, pq, pk, d),
        "distance with distance": scores_with(
            fourth=lambda q, k, pk, pq, d, i, j: pq[d[i, j]] @ pk[d[i, j]]),
        "distance with distance + sqrt(4d)": scores_with(
            fourth=lambda q, k, pk, pq, d, i, j: pq[d[i, j]] @ pk[d[i, j]],
            scale=lambda D, A: 2 * math.sqrt(D)),
        "no word with word": scores_with(weights=(0, 1, 1)),
        "no word with distance": scores_with(weights=(1, 0, 1)),
        "no distance with word": scores_with(weights=(1, 1, 0)),
        "minus": scores_with(weights=(1, 1, -1)),
        "sqrt(d)": scores_with(scale=lambda D, A: math.sqrt(D)),
        "no scale": scores_with(scale=lambda D, A: 1.0),
        "3d without root": scores_with(scale=lambda D, A: 3 * D),
        "times": scores_with(scale=lambda D, A: 1 / math.sqrt(3 * D)),
        "3 sqrt(d)": scores_with(scale=lambda D, A: 3 * math.sqrt(D)),
        "sqrt(2d)": scores_with(scale=lambda D, A: math.sqrt(2 * D)),
        "sqrt(4d)": scores_with(scale=lambda D, A: math.sqrt(4 * D)),
        "d of the whole layer": scores_with(scale=lambda D, A: math.sqrt(3 * A * D)),
        "only the words scaled": only_words_scaled,
        "only the last scaled": only_last_scaled,
        "scaled differently": scaled_differently,
        "softmax applied": scores_with(after=lambda x: x.softmax(-1)),
        "three softmaxes": scores_three_softmaxes,
        "turned": scores_with(after=lambda x: x.mT),
        "the paper's δ(j, i) + sqrt(d)": scores_with(
            third=lambda q, k, pk, pq, d, i, j: k[j] @ pq[d[j, i]],
            scale=lambda D, A: math.sqrt(D)),
        "terms kept apart": lambda *given: torch.stack(list(parts_of(*given))),
        "wrong shape": lambda *given: scores.scores(*given)[0],
        "wrong type": lambda *given: scores.scores(*given).tolist(),
        "unforeseen": scores_with(after=torch.tanh),
    },
    "08.3": {
        "exact ignored": bucket_copied,
        "as many far as near": bucket_renamed,
        "one bucket too many": bucket_with(left=lambda k, f, e: k - e),
        "all buckets beyond": bucket_with(left=lambda k, f, e: k - 1),
        "half of the buckets": bucket_with(left=lambda k, f, e: k // 2 - 1),
        "furthest, not furthest − 1": bucket_with(
            share=lambda size, f, e: math.log(size / e) / math.log(f / e)),
        "logarithm from 1": bucket_with(
            share=lambda size, f, e: math.log(size) / math.log(f - 1)),
        "logarithm of the excess": bucket_with(
            share=lambda size, f, e: math.log(size - e) / math.log(f - 1 - e)),
        "linear": bucket_with(share=lambda size, f, e: (size - e) / (f - 1 - e)),
        "no denominator": bucket_with(share=lambda size, f, e: math.log(size / e)),
        "two bases": bucket_with(
            share=lambda size, f, e: math.log2(size / e) / math.log((f - 1) / e)),
        "floor": bucket_with(whole=math.floor),
        "round": bucket_with(whole=round),
        "floor and one + ends one late": bucket_with(
            whole=lambda x: math.floor(x) + 1, top=lambda k: k),
        "sign lost": lambda d, k, f, e: bucket.bucket(d.abs(), k, f, e),
        "sign lost far away": bucket_with(sign=False),
        "negatives are all near": lambda d, k, f, e: torch.where(
            d <= e, d, bucket.bucket(d, k, f, e)),
        "near ones not their own": bucket_with(near=lambda d, e: e * ((d > 0) - (d < 0))),
        "no offset": bucket_with(offset=lambda e: 0),
        "one too low": bucket_with(offset=lambda e: e - 1, top=lambda k: k - 2),
        "does not end": bucket_with(top=lambda k: 10**6),
        "ends one late": bucket_with(top=lambda k: k),
        "half is exact": bucket_half,
        "row instead of bucket": bucket_with(shift=lambda k: k),
        "furthest, not furthest − 1 + floor": bucket_with(
            whole=math.floor, share=lambda size, f, e: math.log(size / e) / math.log(f / e)),
        "not whole numbers": lambda *given: bucket.bucket(*given).float(),
        "sign in the logarithm": bucket_without_abs(),
        "cut, not widened": lambda d, k, f, e: d.clamp(-k + 1, k - 1),
        "wrong shape": lambda *given: bucket.bucket(*given).flatten(),
        "wrong type": lambda *given: bucket.bucket(*given).tolist(),
        "unforeseen": bucket_with(near=lambda d, e: d // 2),
    },
    "08.4": {
        "places read, too": decoder_with(reads=lambda x, p, asking: x + p),
        "places only read": decoder_with(
            first=lambda x, p: x, reads=lambda x, p, asking: x + p),
        "no places": decoder_with(first=lambda x, p: x),
        "x forgotten": decoder_with(first=lambda x, p: p.expand(len(x), -1, -1)),
        "places added again": decoder_with(between=lambda out, x, p: out + p),
        "places added at the end": decoder_with(
            first=lambda x, p: x, end=lambda out, x, p: out + p),
        "added to x": decoder_with(between=lambda out, x, p: out + x),
        "added to x at the end": decoder_with(end=lambda out, x, p: out + x),
        "added by hand": decoder_with(plus=(lambda x, asking, out: asking, None)),
        "last rows": lambda x, p, block, hidden: decoder.decode(
            x, p[len(p) - x.shape[1]:], block, hidden),
        "those that are not hidden": decoder_with(pick=lambda out, hidden: out[~hidden]),
        "hidden of the first text": decoder_with(
            pick=lambda out, hidden: out[:, hidden[0]].flatten(0, 1)),
        "three layers, places at the end": decoder_with(
            first=lambda x, p: x, reads=lambda x, p, asking: asking,
            end=lambda out, x, p: out + p),
        "reads its own answers": decoder_reads_answers,
        "three ordinary layers": decoder_with(reads=lambda x, p, asking: asking),
        "three layers without places": decoder_with(
            first=lambda x, p: x, reads=lambda x, p, asking: asking),
        "one visit": decoder_with(between=lambda out, x, p: x + p),
        "two visits": decoder_with(visits=2),
        "four visits": decoder_with(visits=4),
        "averaged": decoder_with(first=lambda x, p: (x + p) / 2),
        "no feed-forward": decoder_with(feed=False),
        "fed forward once": decoder_feeds_once,
        "only hidden tokens are read": decoder_only_hidden(lambda text, asked: text[asked]),
        "hidden tokens are not read": decoder_only_hidden(lambda text, asked: text[~asked]),
        "places counted among the hidden": decoder_only_hidden(
            lambda text, asked: text, place=lambda at: torch.arange(len(at))),
        "places counted through the batch": decoder_batch_places,
        "writes into its input": decoder_in_place,
        "all tokens": decoder_with(pick=lambda out, hidden: out),
        "all of attend's results": lambda x, p, block, hidden: block.attend(x),
        "wrong shape": decoder_with(pick=lambda out, hidden: out.flatten()),
        "wrong type": decoder_with(pick=lambda out, hidden: out[hidden].tolist()),
        "unforeseen": decoder_with(first=lambda x, p: x - p),
    },
    "08.5": {
        "downhill": push_with(lambda p, g, s: p - s * g / g.abs().max()),
        "gradient clipping": whole_push(lambda p, g, s: p + clip(g, s)),
        "entries clipped": whole_push(lambda p, g, s: p + g.clamp(-s, s)),
        "slope undivided": push_with(lambda p, g, s: p + s * g),
        "largest of all": whole_push(lambda p, g, s: p + s * g / g.abs().max()),
        "largest of the text": whole_push(
            lambda p, g, s: p + s * g / g.abs().amax((1, 2), keepdim=True)),
        "largest over the tokens": whole_push(
            lambda p, g, s: p + s * g / g.abs().amax(1, keepdim=True)),
        "largest over the texts": whole_push(
            lambda p, g, s: p + s * g / g.abs().amax(0, keepdim=True)),
        "push normalised": push_with(lambda p, g, s: norm(p + s * g / g.abs().max())),
        "length instead of largest": push_with(lambda p, g, s: p + s * g / g.norm()),
        "length of all": whole_push(lambda p, g, s: p + s * g / g.norm()),
        "sum instead of largest": push_with(lambda p, g, s: p + s * g / g.abs().sum()),
        "largest with sign": push_with(lambda p, g, s: p + s * g / g.max()),
        "sign only": push_with(lambda p, g, s: p + s * torch.sign(g)),
        "old push forgotten": push_with(lambda p, g, s: s * g / g.abs().max()),
        "step forgotten": push_with(lambda p, g, s: p + g / g.abs().max()),
        "not climbed": push_with(lambda p, g, s: p),
        "not normalised": push_with(read=lambda e, old, new: e + new),
        "normalised afterwards": push_with(read=lambda e, old, new: norm(e + new)),
        "normalised twice": push_with(read=lambda e, old, new: norm(norm(e) + new)),
        "push normalised to be read": push_with(read=lambda e, old, new: norm(e) + norm(new)),
        "only centred": push_with(read=lambda e, old, new: e - e.mean(-1, keepdim=True) + new),
        "not centred": push_with(
            read=lambda e, old, new: e / e.var(-1, correction=0, keepdim=True).sqrt() + new),
        "length one": push_with(read=lambda e, old, new: e / e.norm(dim=-1, keepdim=True) + new),
        "H − 1 below the line": push_with(read=lambda e, old, new: norm(e, correction=1) + new),
        "divided by the variance": push_with(
            read=lambda e, old, new: norm(e) / e.std(-1, correction=0, keepdim=True) + new),
        "normalised over the batch": push_with(
            read=lambda e, old, new: norm(e, (0, 1, 2)) + new),
        "normalised over the text": push_with(read=lambda e, old, new: norm(e, (1, 2)) + new),
        "old push": push_with(read=lambda e, old, new: norm(e) + old),
        "step alone": push_with(read=lambda e, old, new: norm(e) + (new - old)),
        "pushed twice": push_with(read=lambda e, old, new: norm(e) + old + new),
        "no push": push_with(read=lambda e, old, new: norm(e)),
        "push taken off": push_with(read=lambda e, old, new: norm(e) - new),
        "no embeddings": push_with(read=lambda e, old, new: new),
        "the other order": push_with(give=lambda a, b: (b, a)),
        "gradient clipping + not normalised": whole_push(
            lambda p, g, s: p + clip(g, s), lambda e, old, new: e + new),
        "nought by nought": push_with(lambda p, g, s: p + s * g / g.abs().max()),
        "writes into its input": lambda e, p, g, s: (
            p.add_(s * g / (g.abs().amax(-1, keepdim=True) + 1e-9)), norm(e) + p),
        "one result": push_with(give=lambda a, b: b),
        "wrong shape": push_with(give=lambda a, b: (a, b[0])),
        "wrong type": push_with(give=lambda a, b: (a, b, b)),
        "unforeseen": push_with(read=lambda e, old, new: norm(e) + 3 * new),
    },
    "08.6": {
        "table in every layer": extra_with(tables=lambda L: L),
        "table forgotten": extra_with(tables=lambda L: 0),
        "nothing when shared": lambda L, d, k, shared: 0 if shared else extra_with()(
            L, d, k, shared),
        "2k + 1 rows": extra_with(rows=lambda k: 2 * k + 1),
        "k rows": extra_with(rows=lambda k: k),
        "two tables": extra_with(tables=lambda L: 2),
        "a table of all pairs": extra_with(rows=lambda k: 4 * k * k),
        "five matrices": extra_with(matrices=lambda L, shared: 5 * L),
        "four matrices": extra_with(matrices=lambda L, shared: 4 * L),
        "three matrices": extra_with(matrices=lambda L, shared: 3 * L),
        "one matrix": extra_with(matrices=lambda L, shared: L),
        "matrices forgotten": extra_with(matrices=lambda L, shared: 0),
        "one pair of matrices": extra_with(matrices=lambda L, shared: 2),
        "shared ignored": extra_with(always=True),
        "shared by the layers": extra_with(
            matrices=lambda L, shared: 2 if shared else 2 * L, always=True),
        "one matrix when shared": extra_with(
            matrices=lambda L, shared: L if shared else 2 * L, always=True),
        "shared the wrong way round": lambda L, d, k, shared: extra_with()(L, d, k, not shared),
        "d not squared": extra_with(size=lambda d, k: d),
        "matrices k wide": extra_with(size=lambda d, k: 2 * k * d),
        "biases counted": extra_with(size=lambda d, k: d * (d + 1)),
        "one bias counted": extra_with(
            plus=lambda L, d, k, shared: 0 if shared else L * d),
        "absolute positions taken off": extra_with(plus=lambda L, d, k, shared: -512 * d),
        "BERT's matrices counted": extra_with(plus=lambda L, d, k, shared: 4 * L * d * d),
        "millions": lambda *sizes: extra.extra_weights(*sizes) / 1e6,
        "bytes": lambda *sizes: extra.extra_weights(*sizes) * 4,
        "2k + 1 rows + four matrices": extra_with(
            rows=lambda k: 2 * k + 1, matrices=lambda L, shared: 4 * L),
        "wrong type": lambda *sizes: (extra.extra_weights(*sizes), "weights"),
        "unforeseen": lambda L, d, k, shared: 7 * L + d,
    },
}  # fmt: skip


# ---------------------------------------------------------------- other right and wrong answers


def scores_by_indexing(query, key, position_key, position_query, delta):
    T = len(delta)
    i, j = torch.arange(T)[:, None], torch.arange(T)
    second = (query @ position_key.mT)[..., i, delta]
    third = (key @ position_query.mT)[..., j, delta]
    return (query @ key.mT + second + third) * (3 * query.shape[-1]) ** -0.5


def scores_by_einsum(query, key, position_key, position_query, delta):
    second = torch.einsum("baid,aijd->baij", query, position_key[:, delta])
    third = torch.einsum("bajd,aijd->baij", key, position_query[:, delta])
    return (query @ key.mT + second + third) / math.sqrt(3 * query.shape[-1])


def decoder_asks_only(x, places, block, hidden):
    """As many askers as the text with most has; what a shorter one has too many is left out."""
    most = int(hidden.sum(1).max())
    at = hidden.int().argsort(dim=1, descending=True, stable=True)[:, :most]
    asking = (x + places[: x.shape[1]]).gather(1, at[..., None].expand(-1, -1, x.shape[2]))
    for _ in range(3):
        asking = block.feed(block.attend(x, only_at=at, asking=asking)[0])
    return asking[hidden.gather(1, at)]


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("08.1", rows_with(lambda i, j, k: cut(i - j + k, 0, 2 * k - 1))),
        ("08.1", lambda tokens, span: row_table(position_rows(tokens, span)).int()),
        ("08.2", scores_with()),
        ("08.2", scores_by_indexing),
        ("08.2", scores_by_einsum),
        ("08.2", lambda *given: sum(parts_of(*given)) / math.sqrt(3 * given[0].shape[-1])),
        ("08.3", bucket_with()),
        ("08.4", decoder_with()),
        ("08.4", decoder_only_hidden(lambda text, asked: text)),
        ("08.4", decoder_asks_only),
        ("08.5", push_with(lambda p, g, s: p + s * g / (g.abs().max() + 1e-6))),
        ("08.5", push_with(give=lambda a, b: [a, b])),
        ("08.6", extra_with()),
        ("08.6", lambda *sizes: torch.tensor(extra.extra_weights(*sizes))),
    ],
)  # fmt: skip
def test_another_right_answer_passes(id, answer):
    for seed in SEEDS[:2]:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.status == "passed", report


@pytest.mark.parametrize(
    ("id", "answer", "key"),
    [
        ("08.1", rows_with(lambda i, j, k: cut(i - j, -k, k - 1)), "not shifted"),
        ("08.1", rows_with(lambda i, j, k: max(i - j + k, 0)), "cut on one side only"),
        ("08.2", scores_with(third=lambda q, k, pk, pq, d, i, j: k[i] @ pq[d[j, i]]),
         "third term not turned back"),
        ("08.2", scores_with(third=lambda q, k, pk, pq, d, i, j: q[j] @ pq[d[i, j]]),
         "third term from the queries"),
        ("08.2", lambda *given: sum((p / math.sqrt(given[0].shape[-1])).softmax(-1)
                                    for p in parts_of(*given)), "three softmaxes"),
        ("08.2", lambda *given: parts_of(*given), "terms kept apart"),
        ("08.3", bucket_with(share=lambda size, f, e: math.log(size / e) / math.log2((f - 1) / e)),
         "two bases"),
        ("08.1", rows_with(lambda i, j, k: abs(i - j)), "no direction, no shift"),
        ("08.1", rows_with(lambda i, j, k: min(abs(i - j), k)), "no direction, no shift"),
        ("08.2", scores_with(second=lambda q, k, pk, pq, d, i, j: k[i] @ pk[d[i, j]]),
         "second term from the keys"),
        ("08.3", bucket_without_abs(clamped=True), "sign in the logarithm"),
        ("08.4", decoder_with(plus=(lambda x, asking, out: x, None)), "added by hand"),
        ("08.4", decoder_with(plus=(None, lambda x, asking, out: asking)), "added by hand"),
        ("08.4", decoder_with(plus=(None, lambda x, asking, out: out)), "added by hand"),
        ("08.4", decoder_with(pick=lambda out, hidden: out[:, hidden[0]]),
         "hidden of the first text"),
        ("08.4", decoder_with(visits=1), "one visit"),
        ("08.5", push_with(lambda p, g, s: p + s * clip(g, 1)), "gradient clipping"),
        ("08.5", push_with(lambda p, g, s: p + clip(g, 1)), "gradient clipping"),
        ("08.5", whole_push(lambda p, g, s: p + clip(g, 1)), "gradient clipping"),
        ("08.5", whole_push(lambda p, g, s: p + s * clip(g, s)), "gradient clipping"),
        ("08.5", push_with(lambda p, g, s: p + s * clip(g, s)), "gradient clipping"),
        ("08.5", push_with(lambda p, g, s: norm(p + s * g / g.abs().max())), "push normalised"),
        ("08.5", push_with(lambda p, g, s: (lambda new: new / new.abs().max())(
            p + s * g / g.abs().max())), "push normalised"),
        ("08.5", whole_push(lambda p, g, s: p + s * g / g.abs().amax(1)),
         "largest over the tokens"),
        ("08.5", lambda e, p, g, s: push.climb(e, p.add_(0), g.mul_(1.5), s),
         "writes into its input"),
        ("08.5", whole_push(lambda p, g, s: p + s * clip(g, 1)), "gradient clipping"),
        ("08.5", push_with(lambda p, g, s: p + clip(g, s)), "gradient clipping"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_in_other_clothes_too(id, answer, key):
    for seed in SEEDS[:2]:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.mistake == key, report


@pytest.mark.parametrize(
    ("id", "answer", "advice"),
    [
        ("08.2", lambda q, k, pk, pq, d: (q @ pk.mT).gather(-1, d), "delta.expand(B, A, T, T)"),
        ("08.2", lambda q, k, pk, pq, d: q @ pk, "query @ position_key.transpose(-1, -2)"),
        ("08.2", lambda q, k, pk, pq, d: pk[d], "along the axis of length R"),
        ("08.3", lambda d, k, f, e: d if abs(d) <= e else k, "torch.where"),
        ("08.3", lambda d, k, f, e: torch.ceil(math.log(d / e)).long(), "torch.log"),
        ("08.4", lambda x, p, block, hidden: decoder_with(first=lambda x, _: x + p)(
            x, p, block, hidden), "places[: x.shape[1]]"),
        ("08.4", lambda x, p, block, hidden: block.feed(block.attend(x)), ")[0]"),
        ("08.4", lambda x, p, block, hidden: block.attend(x, asks=x), "asking=asks"),
        ("08.5", whole_push(lambda p, g, s: p + s * g / g.abs().amax(-1)), "keepdim=True"),
        ("08.5", lambda e, p, g, s: p + s * g / g.abs().max(-1, keepdim=True), ".amax("),
        ("08.5", lambda e, p, g, s: (p, F.layer_norm(e, (1,))), "x.shape[-1:]"),
    ],
)  # fmt: skip
def test_a_frequent_exception_gets_a_line_of_advice(id, answer, advice):
    report = check_answer(EXERCISES[id], answer, 0)
    assert report.mistake == "raised", report
    assert advice in report.message, report


def stopped_at(id, answer):
    return [stage.passed for stage in check_answer(EXERCISES[id], answer, 0).stages].index(False)


def test_a_mistake_is_named_where_it_first_shows():
    assert stopped_at("08.1", PLANTED["08.1"]["2k + 1 rows"]) == 1
    assert stopped_at("08.2", PLANTED["08.2"]["sqrt(d)"]) == 0
    assert stopped_at("08.2", PLANTED["08.2"]["the paper's δ(j, i)"]) == 2
    assert stopped_at("08.3", PLANTED["08.3"]["as many far as near"]) == 1
    assert stopped_at("08.4", PLANTED["08.4"]["two visits"]) == 0
    assert stopped_at("08.4", PLANTED["08.4"]["places read, too"]) == 1
    assert stopped_at("08.3", PLANTED["08.3"]["sign in the logarithm"]) == 2
    assert stopped_at("08.4", PLANTED["08.4"]["hidden of the first text"]) == 3
    assert stopped_at("08.5", PLANTED["08.5"]["not normalised"]) == 3
    assert stopped_at("08.5", PLANTED["08.5"]["writes into its input"]) == 6
    assert stopped_at("08.6", PLANTED["08.6"]["shared ignored"]) == 2


def test_the_third_look_up_is_called_the_papers():
    said = check_answer(EXERCISES["08.2"], PLANTED["08.2"]["the paper's δ(j, i)"], 0).message
    assert "equation 4" in said and "δ(i, j) in both" in said
    assert "δ(i, j) in both, as in the released code" in EXERCISES["08.2"].statement


def test_the_lectures_formula_is_called_clipping_and_not_a_length():
    planted = push_with(lambda p, g, s: p + s * clip(g, 1))
    said = check_answer(EXERCISES["08.5"], planted, 0).message
    assert "clipping: it leaves short slopes alone" in said


def test_a_count_is_explained_by_nothing_that_contradicts_itself():
    for topic in extra.TOPICS:
        assert topic <= set(extra.SLIPS)
    keys = {suspect.key for suspect in extra.EXTRA_SUSPECTS}
    assert "2k + 1 rows + four matrices" in keys
    for topic in extra.TOPICS:
        assert not keys & {f"{a} + {b}" for a, b in permutations(topic, 2)}


def test_when_the_count_passes_the_closing_question_is_answered():
    report = check_answer(EXERCISES["08.6"], extra.extra_weights, 0)
    base, _ = extra._published(Draw(0))
    share = extra.extra_weights(*base) / 138_601_728
    assert f"of 138,601,728, a share of {share:.1%}" in repr(report) + report._repr_html_()
    assert not report.message  # nothing has stopped it


def test_a_nested_list_is_told_to_become_a_tensor():
    said = check_answer(EXERCISES["08.1"], PLANTED["08.1"]["wrong type"], 0).message
    assert "returned a list; expected a tensor of shape" in said


# ---------------------------------------------------------------- the solutions against the library


def test_the_rows_are_the_librarys():
    for tokens, span in ((1, 1), (9, 3), (6, 8)):
        assert torch.equal(rows.delta(tokens, span), row_table(position_rows(tokens, span)))


def test_the_scores_are_the_librarys():
    given = scores._drawn(Draw(3))
    flat = row_of_each_distance(given.delta)
    value = torch.zeros_like(given.key)
    _, _, theirs = disentangled_attention_reference(
        given.query, given.key, value, given.position_key, given.position_query, flat
    )
    assert close(scores.scores(*given), theirs, 1e-12)


def test_with_half_of_the_buckets_exact_it_is_the_librarys_rule():
    for buckets, furthest in ((256, 512), (8, 65), (16, 128)):
        d = torch.arange(1 - furthest, furthest)
        ours = bucket.bucket(d, buckets, furthest, buckets // 2)
        theirs = log_bucket(d, buckets, furthest).clamp(1 - buckets, buckets - 1)
        assert torch.equal(ours, theirs)


def test_the_hint_of_the_buckets_is_right():
    found = bucket.bucket(torch.tensor([4, 16, 64, 1_000]), 8, 65, 4)
    assert found.tolist() == [4, 6, 7, 7]
    assert "4 + ceil(1.5) = 6. 64 and 1,000 are in bucket 7" in EXERCISES["08.3"].hints[-1]


def test_the_decoder_is_the_librarys():
    x, places, block, hidden = decoder._case(Draw(4), 2, 6, 3, 4)
    config = BertConfig(hidden_size=6, num_heads=2, max_positions=len(places))
    library = EnhancedMaskDecoder(config, visits=3).double()
    library.position.weight.data = places
    with torch.no_grad():
        theirs = library(x, block)
    assert close(decoder.decode(x, places, block, hidden), theirs[hidden], 1e-12)


def test_the_push_is_the_librarys():
    """The library's normalisation is a hook; its climb is a line of sift_loss."""
    embeddings, old, slope, step = push._case(Draw(5), 2, 3)
    layer = torch.nn.LayerNorm(6, elementwise_affine=False).double()
    new, read = push.climb(embeddings, old, slope, step)
    with perturbing(layer) as at:
        layer(embeddings)
        at.perturbation = old + step * slope / (slope.abs().amax(-1, keepdim=True) + 1e-6)
        assert close(at.perturbation, new, push.TOLERANCE)
        assert close(at(layer, (embeddings,))[0], read, push.TOLERANCE)


@pytest.mark.parametrize("shared", [False, True])
def test_the_count_is_that_of_built_models(shared):
    sizes = dict(vocab_size=20, hidden_size=12, num_layers=3, num_heads=2, intermediate_size=24,
                 max_positions=9, span=5, type_vocab_size=0)  # fmt: skip
    config = (DebertaV2Config(**sizes, furthest=9, normed_positions=False, shared_projections=True)
              if shared else DebertaConfig(**sizes))  # fmt: skip
    plain = {name: value for name, value in sizes.items() if name != "span"}
    with torch.device("meta"):
        bert = BertConfig(**plain)
        without = count_parameters(Encoder(bert, Embeddings(bert, number=None)))
        model = deberta_encoder(config)
    # Of the first generation: no biases of keys (one a layer), but of positions' queries (one).
    assert count_parameters(model) - without == extra.extra_weights(3, 12, 5, shared)


def test_the_hints_with_numbers_count_right():
    hint = EXERCISES["08.6"].hints[-1]
    assert f"so {extra.extra_weights(2, 4, 3, False)}" in hint
    assert hint.endswith(f"shared: {extra.extra_weights(2, 4, 3, True)}.")
    assert str(rows.delta(3, 1).tolist()) in EXERCISES["08.1"].hints[-1]


def test_the_published_sizes_are_those_of_the_last_stage():
    base, v3 = extra._published(Draw(0))
    assert tuple(base) == (12, 768, 512, False) and extra.extra_weights(*base) == 14_942_208
    assert tuple(v3) == (12, 768, 256, True) and extra.extra_weights(*v3) == 393_216
    with torch.device("meta"):
        whole = count_parameters(deberta_encoder(DebertaConfig()))
    assert f"{whole:,}" in EXERCISES["08.6"].statement
