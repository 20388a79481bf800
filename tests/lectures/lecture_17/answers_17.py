"""Answers to the exercises of lecture 17 as other hands write them, for test_exercises.py."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import rankdata, zscore

from course_lib.kernels.maxsim import maxsim
from course_lib.objectives.contrastive import info_nce_loss
from course_lib.train.ranking_metrics import ranking_scores
from course_lib.train.searching import QuantisedIndex, reciprocal_rank_fusion, weighted_mix

# ---------------------------------------------------------------- 17.1


def info_nce(queries, documents, temperature, *, score=F.cosine_similarity, own=torch.arange):
    scores = score(queries[:, None], documents[None], dim=-1) / temperature
    labels = own(len(queries))
    return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.T, labels)) / 2


def info_nce_in_loops(queries, documents, temperature):
    """Log-sum-exp by hand, pair by pair, as one list of both directions."""
    q, d = (x / x.norm(dim=1, keepdim=True) for x in (queries, documents))
    losses = []
    for one, other in ((q, d), (d, q)):
        for i in range(len(one)):
            scores = other @ one[i] / temperature
            losses.append(torch.logsumexp(scores, dim=0) - scores[i])
    return torch.stack(losses).mean()


def with_exp(queries, documents, temperature):
    scores = (F.normalize(queries, dim=1) @ F.normalize(documents, dim=1).T / temperature).exp()
    own = scores.diagonal()
    return -((own / scores.sum(1)).log() + (own / scores.sum(0)).log()).mean() / 2


# ---------------------------------------------------------------- 17.2


def bm25(query, documents, k1, b, *, weights=Counter, factor=1.0, length=len, plus=1):
    """Word by word over all documents, with numpy and counters."""
    counts = [Counter(document) for document in documents]
    lengths = np.array([length(document) for document in documents])
    below = k1 * (1 - b + b * lengths / lengths.mean())
    scores = np.zeros(len(documents))
    for word, times in weights(query).items():
        frequency = np.array([count[word] for count in counts])
        holding = (frequency > 0).sum()
        idf = np.log(plus + (len(documents) - holding + 0.5) / (holding + 0.5))
        scores += times * idf * factor * frequency / (frequency + below)
    return scores


def once(query):
    return dict.fromkeys(query, 1)


# ---------------------------------------------------------------- 17.3


def measures_by_library(relevant, ranking, k):
    run = {"q": {document: -float(place) for place, document in enumerate(ranking)}}
    scores = ranking_scores(run, {"q": relevant}, k)
    return [scores.ndcg[0], scores.reciprocal_rank[0], scores.recall[0]]


def measures(relevant, ranking, k, *, log=math.log, cut=True, positive=True):
    """With a logarithm of another base, and sets."""

    def dcg(gains):
        return sum(g / log(place + 2) for place, g in enumerate(gains))

    right = {d for d, gain in relevant.items() if gain > 0 or not positive}
    first = ranking[:k] if cut else ranking
    reciprocal = 0
    for place, document in enumerate(first):
        if document in right:
            reciprocal = 1 / (place + 1)
            break
    best = sorted(relevant.values())[::-1][:k]
    ndcg = dcg([relevant.get(d, 0) for d in first]) / dcg(best)
    return ndcg, reciprocal, len(right & set(first)) / len(right)


# ---------------------------------------------------------------- 17.4


def maxsim_in_loops(query, documents, query_mask, document_mask, default=-math.inf):
    scores = []
    for document, mask in zip(documents, document_mask, strict=True):
        score = 0.0
        for token in query[query_mask.bool()]:
            score += max(default, *(float(token @ other) for other in document[mask == 1]))
        scores.append(score)
    return scores


def maxsim_by_library(query, documents, query_mask, document_mask):
    return maxsim(query[None], documents, query_mask[None], document_mask)[0]


def masked_vectors(query, documents, query_mask, document_mask):
    """As some libraries do: padding's vectors are zeros."""
    similar = (query * query_mask[:, None]) @ (documents * document_mask[..., None]).mT
    return similar.amax(dim=2).sum(dim=1)


def all_infinite(query, documents, query_mask, document_mask):
    similar = query @ documents.mT
    seen = query_mask[:, None] * document_mask[:, None]
    return similar.masked_fill(seen == 0, -torch.inf).amax(dim=2).sum(dim=1)


# ---------------------------------------------------------------- 17.5


def mix(first, second, weight, *, method="average", degrees=0, k=60):
    """By scipy, as arrays."""
    with np.errstate(all="ignore"):
        a, b = (np.nan_to_num(zscore(x.numpy(), ddof=degrees)) for x in (first, second))
    fused = sum(1 / (k + rankdata(-x.numpy(), method=method)) for x in (first, second))
    return (1 - weight) * a + weight * b, fused


def mix_by_library(first, second, weight):
    pair = first[None], second[None]
    return weighted_mix(*pair, weight)[0], reciprocal_rank_fusion(*pair)[0].double()


def without_a_guard(first, second, weight):
    a, b = ((x - x.mean()) / x.std(correction=0) for x in (first, second))
    return (1 - weight) * a + weight * b, torch.tensor(mix(first, second, weight)[1])


# ---------------------------------------------------------------- 17.6


def codes(vectors, query, *, rounded=np.rint, limit=127, axis=0):
    """In numpy, with a mask for dimensions of zeros and dot products of +1 and −1."""
    x, q = vectors.numpy(), query.numpy()
    scale = np.abs(x).max(axis=axis, keepdims=True) / limit
    coded = rounded(np.divide(x, scale, out=np.zeros_like(x), where=scale > 0)).astype(int)
    signs = np.where(x > 0, 1, -1)
    agreement = signs @ np.where(q > 0, 1, -1)
    return coded, (coded * scale) @ q, (signs + 1) // 2, agreement


def codes_by_library(vectors, query):
    ours = QuantisedIndex(vectors), QuantisedIndex(vectors, bits=1)
    signs = np.unpackbits(ours[1].codes, axis=1)[:, : len(query)]
    _, scores, *_ = codes(vectors, query)
    return ours[0].codes, scores, signs, ours[1].scores(query[None])[0].int()


def float_codes(vectors, query):
    coded, *others = codes(vectors, query)
    return coded.astype(float), *others


RIGHT: dict[str, list[Any]] = {
    "17.1": [info_nce, info_nce_in_loops,
             lambda q, d, T: info_nce_loss(q, d, temperature=T, symmetric=True)],
    "17.2": [bm25, lambda *case: bm25(*case).tolist(), lambda *case: torch.tensor(bm25(*case))],
    "17.3": [measures_by_library, measures],
    "17.4": [maxsim_in_loops, maxsim_by_library],
    "17.5": [mix, lambda *case: torch.tensor(np.stack(mix(*case)))],
    "17.6": [codes, codes_by_library],
}  # fmt: skip
WRONG: dict[str, list[tuple[Any, str]]] = {
    "17.1": [
        (with_exp, "log_softmax and cross_entropy subtract the largest"),
        (lambda q, d, T: info_nce_loss(q, d, temperature=T), "only queries find their documents"),
        (lambda q, d, T: info_nce(q, d, T).item(), "It is lost in .item()"),
        (lambda q, d, T: info_nce(q, d.detach(), T), "gradient reaches `documents`"),
        (lambda q, d, T: info_nce(q, d, T, own=lambda n: torch.zeros(n, dtype=torch.long)),
         "Your right answer is document 0"),
        (lambda q, d, T: info_nce(q, d, T, score=lambda a, b, dim: (a * b).sum(dim)),
         "Your scores are dot products"),
    ],
    "17.2": [
        (lambda *case: bm25(*case, weights=once), "counts once in your answer"),
        (lambda q, d, k1, b: bm25(q, d, k1, b, factor=k1 + 1), "You multiply by k1 + 1"),
        (lambda *case: bm25(*case, plus=0), "The 1 inside the logarithm is missing"),
        (lambda *case: bm25(*case, length=lambda words: len(" ".join(words))), "you have"),
    ],
    "17.3": [
        (lambda *case: measures(*case, log=lambda x: x - 1), "You divide gains by the rank"),
        (lambda *case: measures(*case, cut=False), "You read beyond k"),
        (lambda *case: measures(*case, positive=False), "A document judged with gain 0"),
        (lambda r, ranking, k: [r[d] for d in ranking], "has no entry"),
    ],
    "17.4": [
        (masked_vectors, "Padding has similarity 0"),
        (all_infinite, "The query's padding counts 0 in the sum"),
        (lambda *case: maxsim_in_loops(*case, default=0.0), "never below 0"),
    ],
    "17.5": [
        (without_a_guard, "such scores count 0"),
        (lambda *case: mix(*case, degrees=1), "Your standard deviation divides by N − 1"),
        (lambda *case: mix(*case, method="ordinal"), "by their order in the corpus"),
        (lambda *case: mix(*case, method="min"), "all have the best of their ranks"),
        (lambda *case: mix(*case, method="dense"), "you have"),
        (lambda *case: mix(*case, k=61), "you have"),
        (lambda *case: mix(*case)[::-1], "you have"),
    ],
    "17.6": [
        (float_codes, "of whole numbers"),
        (lambda *case: codes(*case, rounded=np.trunc), "You drop the decimals"),
        (lambda *case: codes(*case, limit=128), "you have"),
        (lambda *case: codes(*case, axis=1), "you have"),
        (lambda v, q: (*codes(v, q)[:2], codes(v, q)[2] * 2 - 1, codes(v, q)[3]), "you have"),
    ],
}  # fmt: skip
