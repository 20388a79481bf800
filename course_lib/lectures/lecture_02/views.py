"""BERT as drawings: the whole model, and one block of it, with the shape of what flows."""

from __future__ import annotations

from html import escape
from typing import Any

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, GREEN, ORANGE
from course_lib.teaching.svg import arrow, drawing, rect, words

__all__ = ["bert_drawing", "block_drawing"]
PALE = {"blue": "#e3f0fa", "orange": "#fdf0d5", "green": "#dff3ec", "grey": "#f2f2f2"}
INK = {"blue": BLUE, "orange": ORANGE, "green": GREEN, "grey": "#777777"}
SEQUENCE = ("[CLS]", "it", "rained", "[SEP]", "we", "[MASK]", "[SEP]")
SECOND = 4  # where passage B begins
WIDE, LEFT, BESIDE = 420, 60, 500  # a layer's width, its left edge, where shapes are written


def bert_drawing() -> Html:
    """From token ids to two answers, bottom up; the shapes stand at the right."""
    middles = [LEFT + WIDE * (i + 0.5) / len(SEQUENCE) for i in range(len(SEQUENCE))]
    cls, masked = middles[0], middles[SEQUENCE.index("[MASK]")]
    parts = [
        _box(x - 28, 356, 56, 26, token, "grey") for x, token in zip(middles, SEQUENCE, strict=True)
    ]
    between = (middles[SECOND - 1] + middles[SECOND]) / 2
    for name, left, right in (("A", LEFT, between - 4), ("B", between + 4, LEFT + WIDE)):
        parts.append(arrow(left, 388, right, 388, tip=False))
        parts.append(_text((left + right) / 2, 404, f"passage {name}", grey=True))
    parts += [arrow(x, 354, x, 332) for x in middles]
    parts += [
        _box(LEFT, 296, WIDE, 34, "embeddings: token + segment + position, LayerNorm", "orange"),
        arrow(LEFT + WIDE / 2, 294, LEFT + WIDE / 2, 274),
        _box(LEFT, 240, WIDE, 32, "block 1: every token gathers from all others", "blue"),
        _box(LEFT, 204, WIDE, 32, "block 2: the same shape, weights of its own", "blue"),
        _text(LEFT + WIDE / 2, 194, "⋮"),
        _box(LEFT, 150, WIDE, 32, "block L", "blue"),
    ]
    parts += [arrow(x, 148, x, 126) for x in middles]
    parts += [_box(x - 25, 102, 50, 22, "H", "grey") for x in middles]
    parts += [
        arrow(cls, 100, cls, 78), arrow(masked, 100, masked, 78),
        _box(cls - 80, 42, 160, 34, "pooler, then 2 logits", "green"),
        _box(masked - 80, 42, 160, 34, "MLM head: V logits", "green"),
        _text(cls, 30, "does passage B follow A?"), _text(masked, 30, "which word stands here?"),
    ]  # fmt: skip
    shapes = ((373, "ids (B, T)"), (317, "(B, T, H)"), (222, "(B, T, H), L times"),
              (117, "one vector a token"), (63, "(B, 2) and (N, V)"))  # fmt: skip
    parts += [_text(BESIDE, y, shape, "start", grey=True) for y, shape in shapes]
    says = (
        "BERT from below: ids of the tokens of two passages; embeddings, the sum of token, segment "
        "and position, with LayerNorm; L blocks, each with weights of its own; one vector of H "
        "numbers a token. The vector of [CLS] goes through the pooler to two logits, does passage "
        "B follow A; that of a selected token through the MLM head to V logits, which word stands "
        "here."
    )
    return drawing(630, 412, parts, says)


def block_drawing() -> Html:
    """One block, left to right: attention and feed-forward, each with a way around it."""
    y, parts = 92, []
    steps = (
        (66, 150, "attention", "A heads", "blue"), (236, 30, "+", "", "grey"),
        (282, 86, "LayerNorm", "", "orange"), (400, 150, "feed-forward", "H → F → H", "blue"),
        (570, 30, "+", "", "grey"), (616, 86, "LayerNorm", "", "orange"),
    )  # fmt: skip
    for x, width, name, below, colour in steps:
        parts.append(_box(x, y - 22, width, 44, name, colour, below))
    parts.append(_text(14, y + 4, "x", "start"))
    ends = [30, *(x + width for x, width, *_ in steps)]
    starts = [*(x for x, *_ in steps), 742]
    parts += [arrow(a, y, b - 2, y) for a, b in zip(ends, starts, strict=True)]
    for left, right in ((46, 251), (384, 585)):  # the ways around
        parts.append(arrow(left, y, left, 38, right, 38, right, y - 24))
        parts.append(_text((left + right) / 2, 30, "the input, added back", grey=True))
    inner = ("softmax(q·kᵀ/√D)·v: tokens meet", "each token for itself")
    for (x, width, *_), caption in zip((steps[0], steps[3]), inner, strict=True):
        parts.append(_text(x + width / 2, y + 44, caption, grey=True))
    says = (
        "One block: x goes through attention with A heads, the input is added back, LayerNorm; "
        "then through the feed-forward layers, H to F to H, the input is added back, LayerNorm."
    )
    return drawing(760, 156, parts, says)


def _box(
    x: float, y: float, width: float, height: float, name: str, colour: str, below: str = ""
) -> str:
    look: dict[str, Any] = {"fill": PALE[colour], "ink": INK[colour], "wide": 1, "size": 13}
    if not below:
        return rect(x, y, width, height, escape(name), **look)
    middle = y + height / 2 - 3
    return (
        rect(x, y, width, height, **look)
        + _text(x + width / 2, middle, name)
        + _text(x + width / 2, middle + 17, below, grey=True)
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", grey: bool = False) -> str:
    style = ' fill="#555"' if grey else ""
    return words(x, y, escape(text), 12 if grey else 13, anchor, style)
