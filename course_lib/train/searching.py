"""Finding texts again: by words (BM25), by vectors (exact, quantised, a graph of neighbours), and
two ways to join rankings.

Q queries, N documents, H numbers a vector. A ranking is {document's id: score}, the best first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.config import check_number, check_size
from course_lib.text.vocabulary import check_texts

Ranking = dict[str, float]


def top_documents(scores: Tensor, ids: Sequence[str], k: int = 10) -> list[Ranking]:
    """The k best documents of each query, or all where there are fewer: scores (Q, N). Of equal
    scores the document that comes first in the corpus is taken first; infinite ones never."""
    check_size("k", k)
    values, order = scores.sort(dim=1, descending=True, stable=True)
    rows = zip(values[:, :k].tolist(), order[:, :k].tolist(), strict=True)
    return [{ids[n]: x for x, n in zip(*row, strict=True) if x > -torch.inf} for row in rows]


def search_terms(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text as a search sees them: small letters, at least two of them, without
    English stop words, stemmed (Porter's second stemmer)."""
    import bm25s
    import snowballstemmer

    stem = snowballstemmer.stemmer("english").stemWords
    return bm25s.tokenize(  # type: ignore[no-any-return]
        list(texts), stopwords="en", stemmer=stem, return_ids=False, show_progress=False
    )


class BM25:
    """A document's score is the sum, over the query's words, of idf · a saturating count in the
    document, less in long documents (Robertson and Zaragoza 2009, equation 3.15, with Lucene's idf,
    which is never negative). By the package bm25s.

    documents: texts; ids: their names, by default "0", "1", …; terms: texts to lists of words. A
    word that stands twice in a query counts twice. Raises ValueError for an empty corpus, ids that
    repeat, and a corpus without a word."""

    def __init__(
        self,
        documents: Sequence[str],
        ids: Sequence[str] | None = None,
        *,
        k1: float = 1.5,
        b: float = 0.75,
        terms: Callable[[Sequence[str]], list[list[str]]] = search_terms,
    ) -> None:
        import bm25s

        documents = check_texts(documents)
        self.ids = check_ids(ids, len(documents))
        self.terms = terms
        words = terms(documents)
        if not any(words):
            raise ValueError(
                f"none of the {len(documents)} documents has a word to search by; expected words "
                "of two letters or more that are no stop words."
            )
        self.index = bm25s.BM25(k1=k1, b=b)
        self.index.index(words, show_progress=False)

    def scores(self, queries: Sequence[str]) -> Tensor:
        """(Q, N) float32, 0 where a document shares no word with the query. Warns of queries none
        of whose words any document has. Raises ValueError for a query without letters."""
        queries = check_queries(queries)
        known = [[w for w in words if w in self.index.vocab_dict] for words in self.terms(queries)]
        if unknown := [query for query, words in zip(queries, known, strict=True) if not words]:
            warnings.warn(
                f"{len(unknown)} of {len(queries)} queries have no word that is in the corpus, "
                f"such as {unknown[0]!r:.60}: for them no document is ranked.",
                stacklevel=2,
            )
        none = np.zeros(len(self.ids), dtype=np.float32)
        rows = [self.index.get_scores(words) if words else none for words in known]
        return torch.from_numpy(np.stack(rows))

    def search(self, queries: Sequence[str], k: int = 10) -> list[Ranking]:
        """The k best documents of each query; none that shares no word with it."""
        scores = self.scores(queries)
        return top_documents(scores.masked_fill(scores <= 0, -torch.inf), self.ids, k)


class VectorIndex:
    """Exact search: a query meets every document, by dot product (the cosine of unit vectors).

    vectors (N, H); ids as in BM25. Raises ValueError for no vectors, other shapes, numbers that are
    not finite, and ids that repeat."""

    def __init__(self, vectors: Tensor, ids: Sequence[str] | None = None) -> None:
        self.vectors = check_vectors("vectors", vectors)
        self.ids = check_ids(ids, len(vectors))

    @property
    def nbytes(self) -> int:
        """The index's size, ids aside."""
        return self.vectors.nbytes

    def scores(self, queries: Tensor) -> Tensor:
        """(Q, H) -> (Q, N)."""
        return check_vectors("queries", queries, self.vectors.shape[1]) @ self.vectors.T

    def search(self, queries: Tensor, k: int = 10) -> list[Ranking]:
        """The k best documents of each query."""
        return top_documents(self.scores(queries), self.ids, k)


class QuantisedIndex(VectorIndex):
    """The same by short codes: bits=8, a whole number from −127 to 127 for each of the H, a quarter
    of the size; bits=1, its sign alone, 1/32, compared by how many signs agree.

    The scale of the codes is the corpus's own largest number in each dimension, and stays, so that
    a document's code depends on no later call. nbytes counts the codes; the vectors themselves,
    which rescoring reads, may lie on a disk."""

    def __init__(self, vectors: Tensor, ids: Sequence[str] | None = None, *, bits: int = 8) -> None:
        super().__init__(vectors, ids)
        if bits not in (8, 1):
            raise ValueError(f"bits={bits!r} was given; expected 8 or 1.")
        self.bits = bits
        self.scale = self.vectors.abs().amax(dim=0).clamp(min=1e-12) / 127  # (H,)
        self.codes: Any = _signs(self.vectors)
        if bits == 8:
            self.codes = (self.vectors / self.scale).round().to(torch.int8)

    @property
    def nbytes(self) -> int:
        """Of the codes and their scale."""
        return int(self.codes.nbytes) + (self.scale.nbytes if self.bits == 8 else 0)

    def scores(self, queries: Tensor) -> Tensor:
        """By the codes alone, (Q, H) -> (Q, N): the dot product, or of signs those that agree less
        those that differ."""
        queries = check_vectors("queries", queries, self.vectors.shape[1])
        if self.bits == 8:
            parts = self.codes.split(4_096)
            return torch.cat([(queries * self.scale) @ part.float().T for part in parts], dim=1)
        differ = [_ONES[self.codes ^ row].sum(axis=1, dtype=np.int32) for row in _signs(queries)]
        return queries.shape[1] - 2 * torch.from_numpy(np.stack(differ)).float()

    def search(self, queries: Tensor, k: int = 10, candidates: int | None = None) -> list[Ranking]:
        """The k best documents of each query by the codes. candidates: so many, k at least, are
        found by the codes and scored again by the vectors themselves."""
        if candidates is None:
            return super().search(queries, k)
        check_size("candidates", candidates, k)
        by_code = self.scores(queries)
        kept = by_code.sort(dim=1, descending=True, stable=True).indices[:, :candidates]
        exact = torch.einsum("qh,qch->qc", queries.float(), self.vectors[kept])
        return top_documents(
            torch.full_like(by_code, -torch.inf).scatter(1, kept, exact), self.ids, k
        )


_ONES = np.array([n.bit_count() for n in range(256)], dtype=np.uint8)  # of a byte


def _signs(vectors: Tensor) -> np.ndarray:
    """(N, H) -> (N, ⌈H/8⌉) bytes."""
    return np.packbits(vectors.numpy() > 0, axis=1)


class HnswIndex(VectorIndex):
    """A graph of near neighbours, walked towards the query (Malkov and Yashunin 2018), by the
    package usearch: quick, and not exact. Look at its recall beside VectorIndex's.

    neighbours: of each document, M in the paper; effort: how many candidates a search keeps, ef in
    the paper; more of either is slower and finds more. Raises ImportError without usearch."""

    def __init__(
        self,
        vectors: Tensor,
        ids: Sequence[str] | None = None,
        *,
        neighbours: int = 16,
        building_effort: int = 128,
        effort: int = 64,
    ) -> None:
        super().__init__(vectors, ids)
        try:
            from usearch.index import Index
        except ImportError as error:
            raise ImportError("HnswIndex needs usearch: pip install usearch.") from error
        # Its default number format depends on the machine, its i8 makes vectors unit length.
        self.graph = Index(
            ndim=self.vectors.shape[1], metric="ip", dtype="f32", connectivity=neighbours,
            expansion_add=building_effort, expansion_search=effort,
        )  # fmt: skip
        self.graph.add(np.arange(len(self.ids)), self.vectors.numpy(), threads=1)

    @property
    def nbytes(self) -> int:
        """Of graph and vectors."""
        return int(self.graph.serialized_length)

    def search(self, queries: Tensor, k: int = 10) -> list[Ranking]:
        """About the k best documents of each query."""
        check_size("k", k)
        queries = check_vectors("queries", queries, self.vectors.shape[1])
        matches = (self.graph.search(row.numpy(), k, threads=1) for row in queries)
        return [
            {self.ids[int(n)]: 1 - float(x) for n, x in zip(m.keys, m.distances, strict=True)}
            for m in matches
        ]


def reciprocal_rank_fusion(*scores: Tensor, k: int = 60) -> Tensor:
    """Σ 1/(k + rank) over several rankings (Cormack et al. 2009): scores (Q, N) each -> (Q, N).
    Equal scores share their mean rank. Only ranks count, so a weak ranking pulls a strong one
    down. Raises ValueError for shapes that differ."""
    from scipy.stats import rankdata

    _check_alike(scores)
    ranks = (torch.from_numpy(rankdata(-x.numpy(), axis=1)) for x in scores)
    return torch.stack([1 / (k + rank) for rank in ranks]).sum(dim=0).float()


def weighted_mix(first: Tensor, second: Tensor, weight: float = 0.5) -> Tensor:
    """(1 − weight) · first + weight · second, each (Q, N), after every query's scores were brought
    to mean 0 and standard deviation 1 over all documents; scores that are all equal count 0.

    Choose the weight on other queries than those it is judged by. Raises ValueError for shapes that
    differ and a weight outside 0 to 1."""
    _check_alike((first, second))
    check_number("weight", weight, 0, 1 + 1e-9)
    spread = [(x, x.std(dim=1, keepdim=True, correction=0)) for x in (first, second)]
    a, b = ((x - x.mean(dim=1, keepdim=True)) / sd.where(sd > 1e-9, torch.inf) for x, sd in spread)
    return (1 - weight) * a + weight * b


def check_ids(ids: Iterable[str] | None, count: int, what: str = "document") -> list[str]:
    """The ids, or numbers as texts. Raises ValueError for none, another count, and one that stands
    twice."""
    if not count:
        raise ValueError(f"no {what}s were given; expected at least one.")
    ids = [str(n) for n in range(count)] if ids is None else check_texts(ids)
    if len(ids) != count:
        raise ValueError(f"{len(ids)} ids were given for {count} {what}s; expected one each.")
    if len(set(ids)) < count:
        twice = next(id for n, id in enumerate(ids) if id in ids[:n])
        raise ValueError(f"the id {twice!r} stands twice; expected another for each {what}.")
    return ids


def check_queries(queries: Sequence[str]) -> list[str]:
    """The queries as a list. Raises ValueError for none, and for an empty one."""
    queries = check_texts(queries)
    if not queries:
        raise ValueError("no queries were given; expected at least one.")
    for number, query in enumerate(queries):
        if not query.strip():
            raise ValueError(f"query {number} is empty; expected words. Leave it out.")
    return queries


def check_vectors(name: str, vectors: Tensor, width: int | None = None) -> Tensor:
    """The vectors as float32 without a graph. Raises ValueError for none, other shapes, and numbers
    that are not finite."""
    if vectors.dim() != 2 or not len(vectors) or width not in (None, vectors.shape[1]):
        raise ValueError(
            f"{name} of shape {tuple(vectors.shape)} were given; expected at least one of "
            f"{width or 'H'} numbers: (N, {width or 'H'})."
        )
    if not vectors.isfinite().all():
        number = int((~vectors.isfinite().all(dim=1)).nonzero()[0])
        raise ValueError(f"row {number} of {name} holds nan or infinity; expected finite numbers.")
    return vectors.detach().float().cpu()


def _check_alike(scores: Sequence[Tensor]) -> None:
    shapes = [tuple(x.shape) for x in scores]
    if len(set(shapes)) != 1 or len(shapes[0]) != 2:
        raise ValueError(
            f"scores of shapes {', '.join(map(str, shapes)) or 'none'} were given; expected (Q, N) "
            "each: the same queries and documents in the same order."
        )
