"""The span-boundary objective as a drawing: a masked span, and the two tokens around it."""

from __future__ import annotations

from typing import Any

from course_lib.teaching.page import Html
from course_lib.teaching.style import VERMILION
from course_lib.teaching.svg import arrow, drawing, rect, words

TEXT = ("they", "met", "at", "the", "old", "mill", "on", "sunday")
FIRST, LAST = 3, 5  # the span
PREDICTED = 4  # the token that is predicted in the drawing
STEP, WIDTH, HEIGHT = 140, 1120, 430
EDGE: dict[str, Any] = {"fill": "#e0f3ed", "ink": "#00745a", "wide": 3}
GAP: dict[str, Any] = {"fill": "#fdeecb", "ink": "#8a5f00", "wide": 2.5, "dash": "6 3"}
SAYS = (
    f"The words “{' '.join(TEXT[FIRST : LAST + 1])}” are masked. Masked language modelling "
    f"predicts “{TEXT[PREDICTED]}” from the vector at its own position. The span-boundary "
    f"objective predicts it from the vectors of “{TEXT[FIRST - 1]}” before the span and "
    f"“{TEXT[LAST + 1]}” behind it, and from its position in the span, 2. Both losses are added."
)


def boundary_drawing() -> Html:
    """From below: what the encoder reads, its vectors, both heads, one word predicted by both."""
    parts = [rect(0, 250, WIDTH, 46, "encoder: a vector at each position", fill="#eef3f8", size=21)]
    for i, word in enumerate(TEXT):
        x, hidden, edge = STEP * i, FIRST <= i <= LAST, i in (FIRST - 1, LAST + 1)
        look = GAP if hidden else EDGE if edge else {}
        parts += [
            rect(x + 8, 336, STEP - 16, 46, "[MASK]" if hidden else word, mono=True, **look),
            arrow(x + STEP / 2, 334, x + STEP / 2, 300),
            words(x + STEP / 2, 416, word if hidden else "", 19, style=' font-style="italic"'),
        ]
    own, before, behind = (STEP * i + STEP / 2 for i in (PREDICTED, FIRST - 1, LAST + 1))
    parts += [
        rect(150, 90, 380, 74, "", **EDGE),
        words(340, 121, "span-boundary head", 23),
        words(340, 150, "“before”, “behind”, position in the span", 18),
        rect(590, 90, 240, 74, "", fill="#fbe6da", ink=VERMILION, wide=2.5),
        words(710, 121, "masked-LM head", 23), words(710, 150, "its own vector", 18),
        arrow(before, 248, before, 168),
        arrow(behind, 248, behind, 206, 480, 206, 480, 168),
        arrow(own, 248, own, 182, 640, 182, 640, 168),
        arrow(56, 127, 146, 127), words(36, 106, "position", 18),
        words(36, 136, f"{PREDICTED - FIRST + 1}", 24, style=' font-weight="650"'),
        arrow(340, 88, 340, 56), arrow(710, 88, 710, 56),
        *(words(x, 44, f"P(“{TEXT[PREDICTED]}”)", 23) for x in (340, 710)),
        words(856, 30, "loss: − ln of the one,", 20, "start"),
        words(856, 56, "− ln of the other, added", 20, "start"),
    ]  # fmt: skip
    return drawing(WIDTH, HEIGHT, parts, SAYS, margin=2)
