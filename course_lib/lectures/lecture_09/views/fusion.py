"""Tsinghua's ERNIE as a drawing: two streams, and where they meet."""

from __future__ import annotations

from typing import Any

from course_lib.teaching.page import Html
from course_lib.teaching.style import VERMILION
from course_lib.teaching.svg import arrow, drawing, rect, words

TEXT: dict[str, Any] = {"fill": "#e1eef7", "ink": "#005a8c"}
ENTITY: dict[str, Any] = {"fill": "#fdf1d6", "ink": "#8a5f00"}
BOTH: dict[str, Any] = {"fill": "#fbe6da", "ink": VERMILION}
WIDE, HIGH = 1120, 470
WORDS = ("goka", "walks", "to", "the", "lion", "mill")
ENTITIES = {"goka": (0, 0), "lion mill": (4, 5)}  # entity -> its first and its last token
SAYS = (
    "A sentence of six words goes through six blocks of text alone. The entities goka and lion "
    "mill enter with fixed vectors, at the words that name them. In each of the upper six blocks "
    "words attend to words and entities to entities; then each word and its entity make one hidden "
    "vector, from which a new word vector and a new entity vector are made. Words without an "
    "entity pass alone."
)


def fusion_drawing() -> Html:
    """From below: words, text blocks, entities beside them, fusion blocks, what is predicted."""
    return drawing(WIDE, HIGH, fusion_parts(), SAYS, margin=2)


def fusion_parts() -> list[str]:
    """What the drawing consists of, for the deck too."""
    parts = [rect(100 * i, 424, 94, 40, word, mono=True, size=19) for i, word in enumerate(WORDS)]
    for n, name in enumerate(ENTITIES):
        x = 720 + 200 * n
        parts += [rect(x, 342, 180, 46, name, **ENTITY, wide=2), arrow(x + 90, 340, x + 90, 292)]
    parts += [
        arrow(297, 422, 297, 392),
        rect(0, 342, 594, 48, "6 blocks of text: as in BERT", **TEXT, wide=2),
        arrow(297, 340, 297, 292),
        words(810, 418, "vectors of TransE: fixed, 100 wide", 19),
        words(810, 444, "at every piece of the word that names them", 19),
        rect(0, 244, 594, 46, "words attend to words", **TEXT, wide=2),
        rect(720, 244, 380, 46, "entities attend to entities", **ENTITY, wide=2),
        arrow(297, 242, 420, 206), arrow(910, 242, 700, 206),
        rect(300, 152, 520, 52, "h = GELU(W·word + U·entity + b)", **BOTH, wide=2.5, size=23),
        arrow(420, 150, 297, 112), arrow(700, 150, 910, 112),
        rect(0, 64, 594, 46, "new word vectors", **TEXT, wide=2),
        rect(720, 64, 380, 46, "new entity vectors", **ENTITY, wide=2),
        f'<rect x="-14" y="56" width="1128" height="242" rx="8" fill="none" stroke="#8a8a8a" '
        'stroke-width="2" stroke-dasharray="7 5" transform="translate(14 0)"/>',
        words(1104, 142, "a fusion block, × 6", 20, "end"),
        arrow(200, 62, 200, 36), arrow(430, 62, 430, 36),
        words(200, 26, "masked words (MLM)", 20), words(430, 26, "", 20),
        words(560, 26, "which entity of the batch? (dEA)", 20),
    ]  # fmt: skip
    return parts
