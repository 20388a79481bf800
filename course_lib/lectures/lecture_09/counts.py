"""What span masking hides, counted: how often a masked token's neighbours can still be read; and
whose the pronouns of the world are."""

from __future__ import annotations

from functools import cache

import torch

from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.objectives.span_boundary import mask_spans
from course_lib.text.tasks import story_pronouns
from course_lib.text.world import MicroWorld

WORDS, SEQUENCES = 128, 1_500
STORIES = 1_000


@cache
def both_neighbours_read() -> tuple[float, float]:
    """Of masked tokens, the fraction whose two neighbours are not selected: masking tokens one by
    one, and masking spans. Sequences of one-token words."""
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=10)
    ids = torch.full((SEQUENCES, WORDS + 2), 5)
    ids[:, 0], ids[:, -1] = special.cls, special.sep
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    word_of = torch.arange(WORDS + 2).expand(SEQUENCES, -1).contiguous()
    fractions = []
    for masked in (mask_sequences(sequences, special), mask_spans(sequences, special, word_of)):
        hidden = masked.selected
        read = ~hidden[:, :-2] & ~hidden[:, 2:]
        inside = hidden[:, 1:-1]
        fractions.append(float((inside & read).sum() / inside.sum()))
    return fractions[0], fractions[1]


@cache
def first_named() -> tuple[float, float]:
    """Of pronouns behind both names, the fraction that is the first-named person's, and the
    fraction that is the last-named one's; unseen stories."""
    pronouns = story_pronouns(MicroWorld.load().stories(STORIES, seed=0, split="heldout"))
    rules = ([p.role == "hero" for p in pronouns], [p.role == p.nearest for p in pronouns])
    return sum(rules[0]) / len(pronouns), sum(rules[1]) / len(pronouns)
