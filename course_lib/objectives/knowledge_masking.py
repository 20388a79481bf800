"""What ERNIE of Baidu changes in BERT's objectives: which positions are masked together, and which
label a pair has (Sun et al. 2019, section 3.2, and the released program).

Three stages, in this order: basic (words; in Chinese, characters), phrase, entity. The loss is the
masked-word loss in all of them. Here a unit is selected as whole words are, by `mask_whole_words`,
within the sequence's count; in the released program the first token of a unit decides with the
probability of a single token, so longer units are not rarer, and a count is met on average only.
[MASK], random or kept is drawn for each token of a unit by itself, here as there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .next_sentence import Document, make_pairs
from .sequences import PackedSequences, SpecialIds


def unit_numbers(word_of: Tensor, units: Iterable[tuple[int, int, int]]) -> Tensor:
    """word_of (N, T) with the words of each unit joined under one number, for `mask_whole_words`.

    word_of: the number of each position's word, −1 at none (see `word_numbers`). units: sequence,
    first position, and position after the last; known names for entity masking, known phrases for
    phrase masking, nothing for basic masking. Two units may lie side by side: they stay two.
    Raises ValueError for a unit outside its sequence, on no word, through a word, or upon another.
    """
    joined, taken = word_of.clone(), torch.zeros_like(word_of, dtype=torch.bool)
    N, T = word_of.shape
    for n, start, stop in units:
        inside = 0 <= n < N and 0 <= start < stop <= T
        if not inside or (word_of[n, start:stop] < 0).any():
            raise ValueError(
                f"a unit at positions {start} to {stop - 1} of sequence {n} was given; expected "
                f"words there: {N} sequences of {T} positions have words where word_of is not −1."
            )
        row = word_of[n].tolist()
        if (start and row[start - 1] == row[start]) or (stop < T and row[stop] == row[stop - 1]):
            raise ValueError(
                f"the unit at positions {start} to {stop - 1} of sequence {n} cuts a word in two; "
                "expected whole words. Let it begin and end where words do."
            )
        if taken[n, start:stop].any():
            raise ValueError(
                f"two units meet at positions {start} to {stop - 1} of sequence {n}; expected "
                "units that do not overlap. Keep the longer one."
            )
        taken[n, start:stop] = True
        joined[n, start:stop] = row[start]  # no other word of the sequence has it: units are apart
    return joined


def make_ernie_pairs(
    documents: Sequence[Document], special: SpecialIds, **settings: Any
) -> PackedSequences:
    """BERT's pairs with the label that ERNIE's released program gives: 1 is the real next sentence,
    0 another. Raises ValueError as `make_pairs` does."""
    pairs = make_pairs(documents, special, **settings)
    assert pairs.next_sentence_label is not None
    return replace(pairs, next_sentence_label=1 - pairs.next_sentence_label)
