"""What is masked together in a story: noun phrases, names of several words, words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from torch import Tensor

from course_lib.objectives.knowledge_masking import unit_numbers
from course_lib.objectives.sequences import PackedSequences

from .knowledge_graph import find_mentions, world_graph
from .tasks import story_tags
from .wordpiece import word_numbers
from .world import MicroWorld, Story

PHRASE, OPENS = ("DET", "NUM", "ADJ", "NOUN", "PROPN"), ("DET", "NUM")


def story_units(
    world: MicroWorld, stories: Sequence[Story], sequences: PackedSequences
) -> dict[str, Tensor]:
    """The number of the unit at each position, (N, T) for N stories of T positions, by kind of
    unit: "phrases", "names", "spans" (which are made of words)."""
    words = word_numbers(world.tokenizer, sequences.input_ids, sequences.attention_mask)
    names = find_mentions(world_graph(world), world.tokenizer, sequences)
    return {
        "phrases": unit_numbers(words, noun_phrases(stories)),
        "names": unit_numbers(words, [name[:3] for name in names]),
        "spans": words,
    }


def noun_phrases(stories: Sequence[Story]) -> list[tuple[int, int, int]]:
    """Story, first position and position after the last of every noun phrase: a run of determiners,
    numbers, adjectives and nouns, names among them. A determiner or number begins a new one, and so
    does a name that follows another name."""
    result, sentences = [], iter(story_tags(stories))
    for n, story in enumerate(stories):
        tags = chain.from_iterable(next(sentences).pos for _ in story.sentences)
        slots = (trace.slot for line in story.trace for trace in line)
        start, before = 0, ("", "")
        words = [*zip(tags, slots, strict=True), ("PUNCT", "")]
        for t, (tag, slot) in enumerate(words, start=1):
            begins = tag in OPENS and before[0] not in OPENS
            begins |= tag == before[0] == "PROPN" and slot != before[1]
            if start and (begins or tag not in PHRASE):
                result.append((n, start, t))
                start = 0
            start = start or (t if tag in PHRASE else 0)
            before = tag, slot
    return result
