"""What the tests of several objectives share: drawn sequences, documents, and bounds of chance."""

from __future__ import annotations

import math
from functools import partial

import torch

from course_lib.objectives.sequences import PackedSequences, SpecialIds


def special_ids(vocab_size):
    return SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=vocab_size)


def draw_sequences(special, count, tokens, padding=True):
    """[CLS] words [SEP] words [SEP] and padding, of drawn lengths."""
    make = torch.Generator().manual_seed(0)
    ids = torch.randint(5, special.vocab_size, (count, tokens), generator=make)
    lengths = torch.full((count,), tokens)
    if padding:
        lengths = torch.randint(tokens // 2, tokens + 1, (count,), generator=make)
    real = torch.arange(tokens) < lengths[:, None]
    ids[:, 0] = special.cls
    ids[:, tokens // 3] = special.sep
    ids[torch.arange(count), lengths - 1] = special.sep
    ids[~real] = special.pad
    return PackedSequences(ids, real.long(), torch.zeros_like(ids))


def within_sd(deviations, hits, tries, share):
    """Is that how often something of this probability happens, to so many standard deviations?"""
    return abs(hits - tries * share) <= deviations * math.sqrt(tries * share * (1 - share))


within_five_sd = partial(within_sd, 5)
