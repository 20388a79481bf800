"""Static vectors: one vector a word, wherever it stands. Two ways from counts of neighbours.

*Positive PMI and SVD*: how much more often than by chance two words are neighbours, in logarithms,
the negative ones set to zero; then the best approximation of that table with few numbers a word.
*Skip-gram with negative sampling* (Mikolov et al. 2013, section 2.2): tell true neighbours from
drawn ones with a dot product. The second factorises, without writing it down, a table much like
the first (Levy and Goldberg 2014). V words, D numbers a word, P pairs, K negatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .vocabulary import check_sentences

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class StaticVectors:
    """words[i] has the vector vectors[i], (V, D)."""

    words: tuple[str, ...]
    vectors: Tensor

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def __contains__(self, word: str) -> bool:
        return word in self.ids

    def __getitem__(self, word: str) -> Tensor:
        """The vector of a word, (D,). Raises ValueError for a word that has none."""
        if word not in self.ids:
            raise ValueError(
                f"{word!r} has no vector; expected one of {len(self.words):,} words. A static "
                "table knows only words that it has seen often enough: is it in lower case?"
            )
        return self.vectors[self.ids[word]]

    def neighbours(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """The k words whose vectors have the greatest cosine with this word's, itself left out."""
        cosines = F.normalize(self.vectors, dim=1) @ F.normalize(self[word], dim=0)  # (V,)
        cosines[self.ids[word]] = -torch.inf
        best = cosines.topk(min(k, len(self.words) - 1))
        result = zip(best.values.tolist(), best.indices.tolist(), strict=True)
        return [(self.words[number], cosine) for cosine, number in result]


def frequent_words(sentences: Sentences, least: int = 5) -> dict[str, int]:
    """word -> occurrences, for words with at least `least` of them, the most frequent first.

    Raises ValueError where there are fewer than two such words, and for text that was not cut into
    words."""
    counts = Counter(word for sentence in check_sentences(sentences) for word in sentence)
    kept = {w: n for w, n in counts.items() if n >= least}
    if len(kept) < 2:
        raise ValueError(
            f"{len(kept)} of {len(counts):,} words occur at least {least} times; expected two or "
            "more. Give more text, or a smaller `least`."
        )
    return dict(sorted(kept.items(), key=lambda item: (-item[1], item[0])))


def neighbour_pairs(
    sentences: Sentences, words: Sequence[str], window: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every two of `words` at most `window` words apart, once: the number of the left word, of the
    right one, and their distance, (P,) each. Words that are not listed keep their place."""
    if not isinstance(window, int) or window < 1:
        raise ValueError(f"window={window!r} was given; expected a whole number of at least 1.")
    ids = {word: number for number, word in enumerate(words)}
    gap = [-1] * window  # between two sentences
    stream = np.array([i for s in sentences for i in [*(ids.get(w, -1) for w in s), *gap]])
    result = []
    for distance in range(1, window + 1):
        left, right = stream[:-distance], stream[distance:]
        known = (left >= 0) & (right >= 0)
        result.append((left[known], right[known], np.full(known.sum(), distance)))
    left, right, distances = (np.concatenate(column) for column in zip(*result, strict=True))
    return left, right, distances


# ---------------------------------------------------------------- PPMI and SVD


def count_neighbours(sentences: Sentences, words: Sequence[str], window: int = 4) -> csr_matrix:
    """(V, V), symmetric: how often each two words are at most `window` words apart."""
    from scipy.sparse import coo_matrix

    left, right, _ = neighbour_pairs(sentences, words, window)
    ends = np.concatenate([left, right]), np.concatenate([right, left])
    ones = np.ones(len(ends[0]))
    return coo_matrix((ones, ends), shape=(len(words), len(words))).tocsr()


def positive_pmi(counts: csr_matrix, smoothing: float = 0.75) -> csr_matrix:
    """max(0, ln P(w, c) / (P(w) P(c))) for every pair that was counted, in nats; (V, V), sparse.

    smoothing: the power to which the counts of the context c are taken. 1 is the plain PMI; 0.75
    makes rare contexts less surprising (Levy, Goldberg and Dagan 2015, section 3.2)."""
    result = counts.tocoo()
    of_word = np.asarray(counts.sum(axis=1)).ravel()
    of_context = np.asarray(counts.sum(axis=0)).ravel() ** smoothing
    of_context /= of_context.sum()
    pmi = np.log(result.data / (of_word[result.row] * of_context[result.col]))
    result.data = np.maximum(pmi, 0)
    positive = result.tocsr()
    positive.eliminate_zeros()
    return positive


def svd_vectors(matrix: csr_matrix, dimension: int, power: float = 0.5) -> Tensor:
    """The rows of U Σ^power of the truncated SVD, (V, dimension), the largest direction first.

    power 1 keeps the rows' own geometry, 0.5 and less make better vectors (Levy et al. 2015).
    Raises ValueError for a dimension that the matrix does not have."""
    from scipy.sparse.linalg import svds

    if not 1 <= dimension < min(matrix.shape):
        raise ValueError(
            f"dimension={dimension} was given for {matrix.shape[0]} words; expected 1 to "
            f"{min(matrix.shape) - 1}."
        )
    # A start of our own: the library's is drawn anew in every call.
    start = np.random.default_rng(0).normal(size=min(matrix.shape))
    left, strength, _ = svds(matrix, k=dimension, v0=start)
    order = np.argsort(-strength)
    return torch.from_numpy((left * strength**power)[:, order].astype(np.float32))


def ppmi_vectors(
    sentences: Sentences,
    dimension: int = 100,
    *,
    window: int = 4,
    least: int = 5,
    smoothing: float = 0.75,
    power: float = 0.5,
) -> StaticVectors:
    """Static vectors by positive PMI and truncated SVD, of words with `least` occurrences."""
    words = tuple(frequent_words(sentences, least))
    table = positive_pmi(count_neighbours(sentences, words, window), smoothing)
    return StaticVectors(words, svd_vectors(table, dimension, power))


# ---------------------------------------------------------------- skip-gram


def skip_gram_loss(words: Tensor, contexts: Tensor, negatives: Tensor) -> Tensor:
    """−ln σ(w·c) − Σ_k ln σ(−w·n_k), the mean over pairs, in nats.

    words and contexts (P, D), negatives (P, K, D): the vectors of both ends and of drawn words."""
    true = (words * contexts).sum(dim=-1)  # (P,)
    drawn = torch.einsum("pd,pkd->pk", words, negatives)  # (P, K)
    return -(F.logsigmoid(true) + F.logsigmoid(-drawn).sum(dim=-1)).mean()


def skip_gram_vectors(
    sentences: Sentences,
    dimension: int = 64,
    *,
    window: int = 4,
    least: int = 5,
    negatives: int = 5,
    epochs: int = 5,
    batch_size: int = 4_096,
    learning_rate: float = 0.01,
    subsample: float = 1e-3,
    seed: int = 0,
) -> StaticVectors:
    """Static vectors by skip-gram with negative sampling.

    As in the paper: two tables, of which the words' is kept; a pair d words apart counts with
    probability (window + 1 − d)/window; negatives are drawn by count to the power 3/4; words more
    frequent than `subsample` are left out with probability 1 − √(subsample/frequency). Other than
    there: Adam on batches instead of plain steps pair by pair. The same seed gives the same
    vectors on one machine with one thread count."""
    counts = frequent_words(sentences, least)
    words, number = tuple(counts), torch.tensor(list(counts.values()), dtype=torch.float64)
    kept = torch.sqrt(subsample * number.sum() / number).clamp(max=1)  # (V,), a probability
    left, right, distances = map(torch.from_numpy, neighbour_pairs(sentences, words, window))
    reach = (window + 1 - distances) / window
    make = torch.Generator().manual_seed(seed)
    tables = [torch.empty(len(words), dimension).uniform_(-0.5, 0.5, generator=make) / dimension,
              torch.zeros(len(words), dimension)]  # fmt: skip
    optimizer = torch.optim.Adam([t.requires_grad_() for t in tables], lr=learning_rate)
    chance = number**0.75 / (number**0.75).sum()
    for _ in range(epochs):
        here = torch.rand(len(left), generator=make) < reach * kept[left] * kept[right]
        ends = torch.stack([left[here], right[here]])
        ends = torch.cat([ends, ends.flip(0)], dim=1)  # each is the other's context
        ends = ends[:, torch.randperm(ends.shape[1], generator=make)]
        for centre, context in zip(*(e.split(batch_size) for e in ends), strict=True):
            drawn = torch.multinomial(
                chance, len(centre) * negatives, replacement=True, generator=make
            )
            loss = skip_gram_loss(
                F.embedding(centre, tables[0]),
                F.embedding(context, tables[1]),
                F.embedding(drawn.view(-1, negatives), tables[1]),
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return StaticVectors(words, tables[0].detach())
