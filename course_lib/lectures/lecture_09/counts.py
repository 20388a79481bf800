"""What span masking hides: lengths by formula, and counted on sequences of one-piece words."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from course_lib.kernels.span_masking import length_probabilities
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.objectives.span_boundary import mask_spans

P, LONGEST = 0.2, 10  # the paper's, and the published command's
COUNTED = {510: 400, 128: 1_500, 32: 6_000}  # words of a sequence -> how many sequences
VOCABULARY = 1_000


def mean_length(p: float = P, longest: int = LONGEST) -> float:
    """The mean length of a drawn span in words: geometric, cut off and renormalised."""
    return float(np.arange(1, longest + 1) @ length_probabilities(p, longest))


def lumped_mean_length(p: float = P, longest: int = LONGEST) -> float:
    """The mean if longer draws were shortened to `longest` instead of being left out."""
    lengths = np.arange(1, longest)
    weights = p * (1 - p) ** (lengths - 1)
    return float(lengths @ weights + longest * (1 - weights.sum()))


def plain_sequences(words: int, count: int) -> tuple[PackedSequences, SpecialIds]:
    """`count` sequences [CLS] … [SEP] of this many words, each a token of its own."""
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=VOCABULARY)
    ids = torch.randint(5, VOCABULARY, (count, words + 2), generator=torch.Generator().manual_seed(0))
    ids[:, 0], ids[:, -1] = special.cls, special.sep
    return PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids)), special


@cache
def counted_lengths(words: int, merge: bool = True, seed: int = 0) -> tuple[int, ...]:
    """How many spans of 1, 2, 3 … words the program masks in sequences of this many words.

    merge: spans that meet are one; else each is counted as far as it was not hidden before."""
    sequences, special = plain_sequences(words, COUNTED[words])
    word_of = torch.arange(words + 2).repeat(len(sequences), 1)
    masked = mask_spans(sequences, special, word_of, merge=merge, seed=seed)
    _, lengths = masked.begins.unique_consecutive(return_counts=True)
    return tuple(lengths.bincount().tolist()[1:])


def counted_mean_length(words: int, merge: bool = True) -> float:
    """The mean length of a masked span in words, counted."""
    counts = counted_lengths(words, merge)
    return sum(n * count for n, count in enumerate(counts, start=1)) / sum(counts)


@cache
def alone(words: int = 128) -> tuple[float, float]:
    """Of masked tokens, the fraction whose two neighbours can both be read: masking tokens one by
    one, and masking spans."""
    sequences, special = plain_sequences(words, COUNTED[words])
    word_of = torch.arange(words + 2).repeat(len(sequences), 1)
    found = []
    for masked in (mask_sequences(sequences, special), mask_spans(sequences, special, word_of)):
        hidden = masked.selected
        inside = hidden[:, 1:-1]
        free = ~hidden[:, :-2] & ~hidden[:, 2:]
        found.append(float((inside & free).sum() / inside.sum()))
    return found[0], found[1]
