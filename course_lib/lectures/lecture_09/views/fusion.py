"""Tsinghua's ERNIE as a drawing: two streams, and where they meet."""

from __future__ import annotations

from typing import Any

from course_lib.teaching.page import Html
from course_lib.teaching.style import VERMILION
from course_lib.teaching.svg import arrow, drawing, rect, words

TEXT: dict[str, Any] = {"fill": "#e1eef7", "ink": "#005a8c"}
ENTITY: dict[str, Any] = {"fill": "#fdf1d6", "ink": "#8a5f00"}
BOTH: dict[str, Any] = {"fill": "#fbe6da", "ink": VERMILION}
WIDTH, HEIGHT = 1120, 470
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
    named = {t for first, last in ENTITIES.values() for t in range(first, last + 1)}
    parts = [
        rect(14 + 97 * i, 424, 91, 40, word, mono=True, size=19, **(ENTITY if i in named else {}))
        for i, word in enumerate(WORDS)
    ]
    for n, name in enumerate(ENTITIES):
        x = 720 + 202 * n
        parts += [rect(x, 342, 182, 46, name, **ENTITY, wide=2), arrow(x + 91, 340, x + 91, 292)]
    parts = [
        *parts,
        arrow(304, 422, 304, 392),
        rect(14, 342, 580, 48, "6 blocks of text: as in BERT", **TEXT, wide=2),
        arrow(304, 340, 304, 292),
        words(912, 416, "vectors of TransE: fixed, 100 wide,", 19),
        words(912, 442, "at a mention's first token (here: at all)", 19),
        rect(2, 54, WIDTH - 4, 246, fill="none", wide=2, dash="7 5", rounding=8),
        rect(14, 244, 580, 46, "words attend to words", **TEXT, wide=2),
        rect(720, 244, 384, 46, "entities attend to entities", **ENTITY, wide=2),
        arrow(304, 242, 420, 206), arrow(912, 242, 700, 206),
        rect(300, 152, 520, 52, "h = GELU(W·word + U·entity + b)", **BOTH, wide=2.5, size=23),
        arrow(420, 150, 304, 112), arrow(700, 150, 912, 112),
        words(846, 186, "a fusion block, one of 6", 20, "start"),
        rect(14, 64, 580, 46, "new word vectors", **TEXT, wide=2),
        rect(720, 64, 384, 46, "new entity vectors", **ENTITY, wide=2),
        arrow(160, 62, 160, 34), arrow(440, 62, 440, 34),
        words(160, 24, "which word? (MLM)", 20),
        words(440, 24, "which entity of the batch? (dEA)", 20),
    ]  # fmt: skip
    return drawing(WIDTH, HEIGHT, parts, SAYS, margin=2)
