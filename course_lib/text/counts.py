"""Count models: what can be guessed of a word without reading further than its two neighbours.

Both are given *unmasked* neighbours, which a masked model does not always see: the comparison
favours them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from course_lib.objectives.sequences import PackedSequences

Document = Sequence[Sequence[int]]
EDGE = -1  # the neighbour of a document's first and last word


class Unigram:
    """Always the most frequent word."""

    def __init__(self, documents: Sequence[Document]):
        counts = Counter(
            word for document in documents for sentence in document for word in sentence
        )
        if not counts:
            raise ValueError("Given no words to count; expected at least one document with a word.")
        self.word = min(counts, key=lambda w: (-counts[w], w))

    def predict(self, left_id: int = EDGE, right_id: int = EDGE) -> int:
        return self.word

    def accuracy(self, sequences: PackedSequences, selected: Tensor) -> float:
        """Fraction of the positions in `selected` (N, T; bool) of the unmasked `sequences` that
        hold this word."""
        return float((sequences.input_ids[selected] == self.word).float().mean())


class NeighbourCounts:
    """A word from its left and its right neighbour.

    The score of word w between l and r is  count(l, w, r) + strength · P(w | l) · P(w | r) / P(w),
    normalised: the counts of the very pair of neighbours, smoothed towards what each side says
    alone. The sides are in turn smoothed towards the unigram (`prior` counts). The product weighs
    much by default: in the micro-world a held-out pair of neighbours is often one never met.
    """

    def __init__(
        self, documents: Sequence[Document], *, strength: float = 1000.0, prior: float = 0.5
    ):
        self.strength = strength
        flat = np.fromiter(chain.from_iterable(_triples(documents)), dtype=np.int32).reshape(-1, 3)
        if not len(flat):
            raise ValueError("Given no words to count; expected at least one document with a word.")
        self._size = size = int(flat.max()) + 2  # ids, and the edge in the last position
        a, w, b = (flat[:, column].astype(np.int64) % size for column in range(3))
        left, right = (
            np.bincount(side * size + w, minlength=size * size).reshape(size, size)
            for side in (a, b)
        )
        single = left.sum(0)
        # (left, right, word) as one number: sorted, those of a pair of neighbours lie together.
        self._triples, self._counts = np.unique((a * size + b) * size + w, return_counts=True)
        self._unigram = single / single.sum()
        self._left, self._right = (
            _smooth(counts, self._unigram, prior) for counts in (left, right)
        )
        self._known: dict[tuple[int, int], int] = {}

    def predict(self, left_id: int = EDGE, right_id: int = EDGE) -> int:
        """The likeliest word id between two word ids; EDGE (-1) outside the document."""
        if (left_id, right_id) not in self._known:
            self._known[left_id, right_id] = int(self.scores(left_id, right_id).argmax())
        return self._known[left_id, right_id]

    def scores(self, left_id: int = EDGE, right_id: int = EDGE) -> np.ndarray:
        """A score for each word id, not normalised."""
        sides = self._left[left_id] * self._right[right_id]
        sides = np.divide(sides, self._unigram, out=np.zeros_like(sides), where=self._unigram > 0)
        scores = self.strength * sides / max(sides.sum(), 1e-300)
        first = (left_id % self._size * self._size + right_id % self._size) * self._size
        start, end = np.searchsorted(self._triples, [first, first + self._size])
        scores[self._triples[start:end] - first] += self._counts[start:end]
        return scores

    def accuracy(self, sequences: PackedSequences, selected: Tensor) -> float:
        """Fraction of the positions in `selected` (N, T; bool) it guesses right, in the unmasked
        `sequences`.

        Neighbours are the nearest words, across the [SEP] between two halves of a story.
        """
        hits = self.hits(sequences, selected)
        return float(hits.float().mean())

    def hits(self, sequences: PackedSequences, selected: Tensor) -> Tensor:
        """Whether each selected position is guessed right, (number of positions,) bool, in reading
        order."""
        return torch.tensor(
            [self.predict(a, b) == w for a, w, b in _neighbours(sequences, selected)]
        )


def _triples(documents: Sequence[Document]) -> Iterator[tuple[int, int, int]]:
    for document in documents:
        words = [EDGE, *(w for sentence in document for w in sentence), EDGE]
        yield from zip(words, words[1:], words[2:], strict=False)


def _neighbours(sequences: PackedSequences, selected: Tensor) -> Iterator[tuple[int, int, int]]:
    """(left, word, right) of every selected position, special tokens skipped."""
    form = _form_ids(sequences)
    for ids, picked in zip(sequences.input_ids.tolist(), selected.tolist(), strict=True):
        positions = [t for t, w in enumerate(ids) if w not in form]
        words = [EDGE, *(ids[t] for t in positions), EDGE]
        for k, t in enumerate(positions):
            if picked[t]:
                yield words[k], words[k + 1], words[k + 2]


def _form_ids(sequences: PackedSequences) -> set[int]:
    """[CLS], [SEP] and [PAD], read off the sequences: the first position, the last real one, and
    what follows it."""
    sequences = sequences.padding_last()
    ends = sequences.attention_mask.sum(1) - 1
    last = sequences.input_ids.gather(1, ends[:, None])
    padding = sequences.input_ids[sequences.attention_mask == 0]
    return {
        *sequences.input_ids[:, 0].tolist(),
        *last.flatten().tolist(),
        *padding.unique().tolist(),
    }


def _smooth(counts: np.ndarray, unigram: np.ndarray, prior: float) -> np.ndarray:
    counts = counts + prior * unigram
    return counts / np.maximum(counts.sum(1, keepdims=True), 1e-300)
