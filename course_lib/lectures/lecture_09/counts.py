"""What span masking hides, counted: how often a masked token's neighbours can still be read."""

from __future__ import annotations

from functools import cache

import torch

from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.objectives.span_boundary import mask_spans

WORDS, SEQUENCES = 128, 1_500


@cache
def both_neighbours_read() -> tuple[float, float]:
    """Of masked tokens, the fraction whose two neighbours are not selected: masking tokens one by
    one, and masking spans. Sequences of one-token words."""
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=10)
    ids = torch.full((SEQUENCES, WORDS + 2), 5)
    ids[:, 0], ids[:, -1] = special.cls, special.sep
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    word_of = torch.arange(WORDS + 2).expand(SEQUENCES, -1).contiguous()
    found = []
    for masked in (mask_sequences(sequences, special), mask_spans(sequences, special, word_of)):
        hidden = masked.selected
        read = ~hidden[:, :-2] & ~hidden[:, 2:]
        inside = hidden[:, 1:-1]
        found.append(float((inside & read).sum() / inside.sum()))
    return found[0], found[1]
