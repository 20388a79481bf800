"""XLM's three objectives as pictures of who sees whom: CLM, MLM, TLM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, INK
from course_lib.teaching.svg import cells, drawing, words

LEFT, RIGHT = ("the", "old", "mill"), ("da", "kvern", "ald")  # a phrase and its translation
WIDTH, HEIGHT, CELL = 1060, 340, 34
SAYS = (
    "Who sees whom. CLM: each word sees those before it, and predicts the next one. MLM: every "
    "word sees every word of its own text; a masked one is predicted. TLM: a text and its "
    "translation stand side by side, every word sees every word of both; words are masked in both. "
    "Under the words stand their positions, which in TLM begin again with the second text, and "
    "their languages' numbers. Separators are not drawn; position 0 is one."
)


def objectives_drawing() -> Html:
    """Three squares side by side: rows are who looks, columns who is seen."""
    clm = _square(0, "CLM", "the next word", LEFT, [0, 0, 0], (), causal=True)
    mlm = _square(300, "MLM", "the masked word", LEFT, [0, 0, 0], (1,))
    both, languages = (*LEFT, *RIGHT), [0, 0, 0, 1, 1, 1]
    parts = [*clm, *mlm, *_square(620, "TLM", "masked words, in both", both, languages, (1, 4))]
    return drawing(WIDTH, HEIGHT, parts, SAYS, margin=2)


def _square(
    x: int, name: str, predicts: str, tokens: Sequence[str], languages: Sequence[int],
    masked: Sequence[int], causal: bool = False,
) -> list[str]:  # fmt: skip
    """One objective: its name, its words down the side and below, a filled cell for "sees"."""
    left, top, count = x + 90, 70, len(tokens)
    bottom = top + CELL * count
    parts = [
        words(left, 28, f"{name}: {predicts}", 21, "start", ' font-weight="650"'),
        words(left, 54, "who is seen →", 16, "start"),
    ]
    for i, token in enumerate(tokens):
        place = 1 + sum(language == languages[i] for language in languages[:i])
        middle = left + CELL * i + CELL / 2
        text = "[M]" if i in masked else token
        parts += [
            words(left - 8, top + CELL * i + 23, text, 18, "end"),
            words(middle, bottom + 20, str(place), 17),
            words(middle, bottom + 42, str(languages[i]), 17),
        ]

    def look(j: int, i: int) -> dict[str, Any]:
        seen, across = j <= i or not causal, languages[i] != languages[j]
        fill = "#fff" if not seen else "#f7c9a9" if across else "#b9d8ea"
        return {"text": "×" * across, "fill": fill, "ink": BLUE if seen else "#bbb", "wide": 1,
                "size": 16}  # fmt: skip

    squares = [range(count)] * count
    parts += cells(squares, left, top, (CELL, CELL), lambda j, i, _: look(j, i), 0, 6)
    parts += [
        words(left - 8, bottom + 20, "position", 15, "end", f' fill="{INK}"'),
        words(left - 8, bottom + 42, "language", 15, "end", f' fill="{INK}"'),
    ]
    return parts
