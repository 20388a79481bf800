"""A sentence and its translation as TLM reads them: tokens, languages, positions, masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_lib.objectives.masked_lm import Masked
from course_lib.objectives.sequences import PackedSequences
from course_lib.objectives.translation_lm import mask_anywhere, translation_sequences
from course_lib.teaching.page import Html, Live, card, paragraphs
from course_lib.teaching.playgrounds import checkbox, choice, percent_slider, playground, slider
from course_lib.teaching.tokens import tokens_legend, tokens_row
from course_lib.text.world import MicroWorld, Story

from ..pairs import sentence_pairs

RATE, SEED = 0.15, 14  # with this seed words are masked in the first sentence, on both sides


def pair_view(english: MicroWorld, others: Mapping[str, MicroWorld], story: Story) -> Live:
    """A sentence of the story and its translation as one sequence. Controls: language, sentence,
    rate, start_again (positions of the second side), seed."""
    controls = {
        "language": choice("translated into", next(iter(others)), others),
        "sentence": slider("sentence", 0, 0, len(story.sentences) - 1),
        "rate": percent_slider("rate", RATE, 0.6),
        "start_again": checkbox("positions start again"),
        "seed": slider("seed", SEED, 0, 50),
    }

    def draw(language: str, **values: Any) -> Html:
        return pair_picture(english, others[language], story, **values)

    return playground(draw, controls)


def pair_picture(
    english: MicroWorld,
    other: MicroWorld,
    story: Story,
    sentence: int = 0,
    rate: float = RATE,
    start_again: bool = True,
    seed: int = 0,
) -> Html:
    """The sequence after `mask_anywhere`; under each token its language and position, and under a
    masked one what stood there."""
    pairs = sentence_pairs(english, other, [story])
    sides = pairs.first[sentence : sentence + 1], pairs.second[sentence : sentence + 1]
    length = len(sides[0][0]) + len(sides[1][0]) + 4
    sequences = translation_sequences(*sides, pairs.special, length=length, start_again=start_again)
    masked = mask_anywhere(sequences, pairs.special, rate=rate, seed=seed)
    was, now = (pairs.tokens(ids[0].tolist()) for ids in (sequences.input_ids, masked.input_ids))
    row = tokens_row(now, masked.action[0].tolist(), _labels(sequences, masked, was))
    sentences = pair_in_words(sequences, masked)
    html = row.inner + tokens_legend("</s>") + paragraphs(sentences)
    return Html(card(html, "tlm-pair", 860), "\n".join([row.text, *sentences]))


def _labels(sequences: PackedSequences, masked: Masked, was: Sequence[str]) -> list[str]:
    languages, positions = sequences.token_type_ids[0], sequences.position_ids
    assert positions is not None, "translation_sequences gives positions"
    hidden = masked.selected[0].tolist()
    return [
        f"lang {language}\npos {position}" + (f"\n{word}" if chosen else "")
        for language, position, word, chosen in zip(
            languages.tolist(), positions[0].tolist(), was, hidden, strict=True
        )
    ]


def pair_in_words(sequences: PackedSequences, masked: Masked) -> list[str]:
    """How many are selected on each side, and from where position 0 is told."""
    chosen, language = masked.selected[0], sequences.token_type_ids[0]
    left, right = (int((chosen & (language == side)).sum()) for side in (0, 1))
    positions = sequences.position_ids
    again = positions is not None and int((positions[0] == 0).sum()) > 1
    return [
        f"{left} selected in the first language, {right} in the second; special tokens can be "
        "selected too, only the first of all cannot.",
        "The second side's positions begin again at 0."
        if again
        else "The second side's positions run on: word 3 here and word 3 there share none.",
    ]
