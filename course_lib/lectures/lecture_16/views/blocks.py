"""BERT's block beside ModernBERT's: what was moved, replaced and left out."""

from __future__ import annotations

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, GREEN, INK, ORANGE
from course_lib.teaching.svg import arrow, drawing, rect, words

WIDE, HIGH, BOX, TALL = 900, 544, 300, 40
PALE, WARM, CALM = "#e3f0f8", "#fdf1d6", "#dff3ec"
SAID = (
    "Read from below. BERT: token, position and segment embeddings, then in each block attention, "
    "sum, norm, feed-forward with GELU, sum, norm. ModernBERT: token embeddings alone, then in "
    "each block norm, attention with RoPE (global or local), sum, norm, GeGLU, sum; a norm at the "
    "end."
)
ATTENTION, FORWARD, NORM, SUM = (PALE, BLUE), (WARM, ORANGE), (CALM, GREEN), ("#fff", INK)
TOWERS = {  # from below: what it says, and its look; a sum takes the way around what is below it
    "BERT": (
        ("token + position + segment", ("#fff", "#8a8a8a")), ("LayerNorm", NORM),
        ("attention", ATTENTION), ("+", SUM), ("LayerNorm", NORM),
        ("feed-forward, GELU", FORWARD), ("+", SUM), ("LayerNorm", NORM),
    ),
    "ModernBERT": (
        ("token", ("#fff", "#8a8a8a")), ("LayerNorm", NORM),
        ("LayerNorm (not in block 0)", NORM), ("attention, RoPE, global or local", ATTENTION),
        ("+", SUM), ("LayerNorm", NORM), ("feed-forward, GeGLU", FORWARD), ("+", SUM),
    ),
}  # fmt: skip
FROM = {"BERT": {3: 1, 6: 4}, "ModernBERT": {4: 1, 7: 4}}  # a sum, and what its other way leaves


def then_and_now_drawing() -> Html:
    """Two columns, input below, output above."""
    parts = []
    for column, (name, tower) in enumerate(TOWERS.items()):
        middle = 190 + 460 * column
        parts.append(words(middle, HIGH - 8, name, 22, style=' font-weight="650"'))
        parts += _tower(name, middle, tower)
    parts.append(words(190 + 460, 24, "after the last block: LayerNorm", 16))
    return drawing(WIDE, HIGH, parts, SAID, margin=2)


def _tower(name: str, middle: float, tower: tuple) -> list[str]:  # type: ignore[type-arg]
    parts, step = [], 58
    level = [HIGH - 80 - step * n for n in range(len(tower))]
    for n, (label, (fill, ink)) in enumerate(tower):
        width = 44 if label == "+" else BOX
        parts.append(
            rect(middle - width / 2, level[n], width, TALL, label, fill=fill, ink=ink, size=17)
        )
        parts.append(arrow(middle, level[n], middle, level[n] - step + TALL + 2))
    side = middle + BOX / 2 + 24
    for end, start in FROM[name].items():
        low, high = level[start] - 8, level[end] + TALL / 2
        parts.append(arrow(middle, low, side, low, side, high, middle + 24, high))
    return parts
