"""How good a ranking is: recall@k, MRR@k and nDCG@k, equal scores counted as the mean over all
their orders (McSherry and Najork 2008), because a file's order is no merit of the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isfinite, log2

import numpy as np
import torch
from torch import Tensor

from course_lib.config import check_size

from .searching import check_ids


@dataclass(frozen=True)
class RankingScores:
    """Each query's figures, in the order of `queries`; `means` has those that papers print.

    recall: fraction of the relevant documents among the first k; reciprocal_rank: 1/rank of the
    first relevant one, 0 beyond k; ndcg: gains divided by log2(1 + rank), as a fraction of the best
    order's; judged: fraction of the first k that somebody judged at all. missing: queries that the
    run lacks or has nothing for: they count 0."""

    queries: tuple[str, ...]
    recall: np.ndarray
    reciprocal_rank: np.ndarray
    ndcg: np.ndarray
    judged: np.ndarray
    missing: tuple[str, ...]

    @property
    def means(self) -> dict[str, float]:
        """Over all judged queries, missing ones too."""
        names = {"recall": "recall", "mrr": "reciprocal_rank", "ndcg": "ndcg", "judged": "judged"}
        return {ours: float(getattr(self, name).mean()) for ours, name in names.items()}


def ranking_scores(
    run: Mapping[str, Mapping[str, float]], relevant: Mapping[str, Mapping[str, int]], k: int = 10
) -> RankingScores:
    """A run, {query: {document: score}}, against judgements, {query: {document: gain}}.

    Gains are whole numbers, 0 or less for "not relevant"; a document that nobody judged counts as
    not relevant. Raises ValueError for no judgements, for a query without a relevant document, of
    which no ranking can be right, for a run of other queries, and for a score that is not finite.
    """
    check_size("k", k)
    if not relevant or not relevant.keys() & run.keys():
        raise ValueError(
            f"a run of {len(run)} queries and judgements of {len(relevant)} were given; expected "
            "judgements, and at least one query that has both. Do the ids agree?"
        )
    each = [_of_query(query, run.get(query, {}), relevant[query], k) for query in relevant]
    recall, reciprocal_rank, ndcg, judged = np.array(each).T
    missing = tuple(query for query in relevant if not run.get(query))
    return RankingScores(tuple(relevant), recall, reciprocal_rank, ndcg, judged, missing)


def _of_query(
    query: str, ranking: Mapping[str, float], judged: Mapping[str, int], k: int
) -> tuple[float, float, float, float]:
    gains = {document: max(0, gain) for document, gain in judged.items()}
    best = sorted(gains.values(), reverse=True)
    if not best or not best[0]:
        raise ValueError(
            f"query {query!r} has no relevant document; expected at least one. Leave it out."
        )
    if bad := [document for document, score in ranking.items() if not isfinite(score)]:
        raise ValueError(f"query {query!r}: the score of {bad[0]!r} is not finite.")
    recall = reciprocal = ndcg = known = 0.0
    before = 0  # documents of higher scores
    unseen = 1.0  # how probable it is that no relevant document has come so far
    order = sorted(ranking, key=ranking.__getitem__, reverse=True)
    for _, group in groupby(order, key=ranking.__getitem__):
        tied = list(group)
        hits = sum(gains.get(document, 0) > 0 for document in tied)
        gain = sum(gains.get(document, 0) for document in tied) / len(tied)
        for place in range(min(len(tied), k - before)):
            recall += hits / len(tied)
            known += sum(document in judged for document in tied) / len(tied)
            ndcg += gain / log2(before + place + 2)
            first = unseen * min(1.0, hits / (len(tied) - place))
            reciprocal += first / (before + place + 1)
            unseen -= first
        before += len(tied)
        if before >= k:
            break
    ideal = sum(gain / log2(n + 2) for n, gain in enumerate(best[:k]))
    relevant = sum(gain > 0 for gain in best)
    return recall / relevant, reciprocal, ndcg / ideal, known / max(1, min(k, len(order)))


def as_run(
    scores: Tensor, queries: Sequence[str], documents: Sequence[str], k: int = 100
) -> dict[str, dict[str, float]]:
    """Scores (Q, N) as a run: each query's k best documents, and those that equal the last of them.

    queries, documents: their ids. Raises ValueError for ids that repeat or do not fit."""
    check_size("k", k)
    queries, documents = (
        check_ids(ids, size, what)
        for ids, size, what in zip(
            (queries, documents), scores.shape, ("query", "document"), strict=True
        )
    )
    last = scores.topk(min(k, len(documents)), dim=1).values[:, -1:]
    kept = (scores >= last) & (scores > -torch.inf)
    return {
        query: {documents[n]: float(row[n]) for n in which.nonzero()[:, 0].tolist()}
        for query, row, which in zip(queries, scores, kept, strict=True)
    }
