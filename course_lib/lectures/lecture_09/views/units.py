"""ERNIE's (Baidu) three ways to mask, on a story of the world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from course_lib.objectives.knowledge_masking import unit_numbers
from course_lib.objectives.masked_lm import mask_whole_words
from course_lib.teaching.page import Html, Live, card, check_one_of, paragraphs
from course_lib.teaching.playgrounds import choice, one_row, playground, slider
from course_lib.teaching.tokens import tokens_legend, tokens_row
from course_lib.text.knowledge_graph import find_mentions, world_graph
from course_lib.text.units import noun_phrases
from course_lib.text.wordpiece import word_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from course_lib.text.world import MicroWorld, Story

LEVELS = ("basic", "phrase", "entity")
STORIES = 12  # held-out stories to choose from
UNITS = dict(basic="every word is a unit", phrase="phrases are units", entity="names are units")


def units_view(world: MicroWorld, index: int = 0, seed: int = 0) -> Live:
    """Mask a story by words, by phrases, by names. Controls: level, story, seed."""
    stories = world.stories(STORIES, seed=5, split="heldout")
    controls = {
        "level": choice("level", "entity", LEVELS),
        "story": slider("story", index, 0, STORIES - 1),
        "seed": slider("seed", seed, 0, 50),
    }

    def draw(level: str, story: int, seed: int) -> Html:
        return units_picture(world, stories[story], level, seed)

    return playground(draw, controls)


def units_picture(world: MicroWorld, story: Story, level: str, seed: int = 0) -> Html:
    """The story after masking whole units; under each selected token what stood there, under each
    token of a unit of several words the unit's number."""
    units = story_units(world, story, level)
    tokens, action, labels = units_row(world, story, units, seed)
    row = tokens_row(tokens, action, labels)
    was = ["[CLS]", *story.text.split(), "[SEP]"]
    of_words = [was[start:stop] for _, start, stop in units]
    sentences = units_in_words(level, of_words, sum(map(bool, action)))
    html = row.inner + tokens_legend() + paragraphs(sentences)
    return Html(card(html, "units", 800), "\n".join([row.text, *sentences]))


def units_row(
    world: MicroWorld, story: Story, units: Sequence[tuple[int, int, int]], seed: int
) -> tuple[list[str], list[int], list[str]]:
    """Tokens of [CLS] story [SEP] after masking whole units, their actions, and what is said under
    each."""
    tokenizer = world.tokenizer
    sequences = one_row(tokenizer, story.text)
    word_of = word_numbers(tokenizer, sequences.input_ids, sequences.attention_mask)
    masked = mask_whole_words(sequences, tokenizer.special, unit_numbers(word_of, units), seed=seed)
    was, action = ["[CLS]", *story.text.split(), "[SEP]"], masked.action[0].tolist()
    labels = [[was[t]] if act else [] for t, act in enumerate(action)]
    for number, (_, start, stop) in enumerate(units, 1):
        for t in range(start, stop):
            labels[t].append(f"unit {number}")
    tokens = [tokenizer.token(i) for i in masked.input_ids[0].tolist()]
    return tokens, action, ["\n".join(lines) for lines in labels]


def units_in_words(level: str, units: Sequence[Sequence[str]], selected: int) -> list[str]:
    """What is a unit at this level, and how many tokens were selected."""
    listed = "; ".join(" ".join(unit) for unit in units) or "none"
    return [f"{level}: {UNITS[level]}. {selected} tokens are selected.",
            f"Units of several words: {listed}."]  # fmt: skip


def story_units(world: MicroWorld, story: Story, level: str) -> list[tuple[int, int, int]]:
    """Units of several words as in the experiments: 0, first position, position after the last of
    [CLS] story [SEP]. Raises ValueError for a level that is none of LEVELS."""
    check_one_of(LEVELS, level=level)
    if level == "basic":
        return []
    if level == "phrase":
        units = noun_phrases([story])
    else:
        sequences = one_row(world.tokenizer, story.text)
        mentions = find_mentions(world_graph(world), world.tokenizer, sequences)
        units = [mention[:3] for mention in mentions]
    return [unit for unit in units if unit[2] - unit[1] > 1]
