"""BERT and ViT side by side: what differs, and what is one and the same."""

from __future__ import annotations

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, ORANGE
from course_lib.teaching.svg import arrow, drawing, rect, words

WIDE, HIGH = 1060, 430
PALE, WARM = "#e3f0f8", "#fdf1d6"
SAID = (
    "Left, BERT: token ids, rows of an embedding matrix, [CLS] in front, positions and segments "
    "added, a LayerNorm, blocks with LayerNorm after each half. Right, ViT: patches, one matrix, "
    "a class token in front, positions added, blocks with LayerNorm before each half, one at the "
    "end. Attention and feed-forward part between them are the same."
)
COLUMNS = (
    ("BERT reads words", (
        "token ids", "rows of the embedding matrix", "[CLS] in front",
        "+ positions + segments, LayerNorm", "blocks: LayerNorm after each half",
    )),
    ("ViT reads patches", (
        "pixels of each patch", "times one matrix", "class token in front",
        "+ positions", "blocks: LayerNorm before each half",
    )),
)  # fmt: skip


def two_inputs_drawing() -> Html:
    """Two columns, input above; the box across both is shared."""
    parts = []
    for column, (name, stages) in enumerate(COLUMNS):
        x = 20 + column * 540
        fill, ink = ((PALE, BLUE), (WARM, ORANGE))[column]
        parts.append(words(x + 240, 24, name, 22, style=' font-weight="650"'))
        for row, stage in enumerate(stages):
            y = 44 + row * 62
            parts.append(rect(x, y, 480, 42, stage, fill=fill, ink=ink, wide=2, size=19))
            parts.append(arrow(x + 240, y + 42, x + 240, y + 60))
    both = "attention, feed-forward part, Stack: the same code, the same shapes"
    parts = [*parts, rect(20, 356, 1020, 52, both, ink="#1a1a1a", wide=3, size=21)]
    return drawing(WIDE, HIGH, parts, SAID, margin=2)
