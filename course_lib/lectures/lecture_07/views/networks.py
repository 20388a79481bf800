"""ELECTRA as a drawing: its two networks, and what passes between them."""

from __future__ import annotations

from typing import Any

from course_lib.teaching.page import Html
from course_lib.teaching.style import VERMILION
from course_lib.teaching.svg import arrow, drawing, rect, words

from ..experiments import FULL

GEN: dict[str, Any] = {"fill": "#e0f3ed", "ink": "#00745a"}
DISC: dict[str, Any] = {"fill": "#fbe6da", "ink": VERMILION}
TABLES: dict[str, Any] = {"fill": "#fdf1d6", "ink": "#8a5f00"}
WIDTH, HEIGHT = 1150, 404
SAYS = (
    "A text with [MASK] goes into the generator, a small BERT, which samples a word for each gap. "
    "The text that results has only words; the discriminator says of each token whether it is "
    "original or replaced. Both read one embedding matrix. No gradient goes from the discriminator "
    "back to the generator. The generator is thrown away afterwards."
)


def networks_drawing() -> Html:
    """From left to right: masked text, generator, sampled words, discriminator, a label each."""
    parts = [
        rect(0, 82, 158, 92, "with [MASK]", wide=2, size=21),
        words(79, 204, f"{FULL.rate:.0%} masked"),
        arrow(160, 128, 212, 128),
        rect(216, 70, 168, 116, "", **GEN, wide=2.5, dash="7 4"),
        words(300, 122, "generator", 24), words(300, 156, "“which word?”"),
        words(300, 48, "a small BERT"),
        arrow(386, 128, 472, 128), words(430, 112, "samples", 17),
        rect(476, 82, 142, 92, "only words", wide=2, size=21),
        words(547, 204, "no [MASK]"),
        arrow(620, 128, 672, 128),
        rect(676, 28, 250, 200, "", **DISC, wide=3),
        words(801, 118, "discriminator", 28), words(801, 156, "“replaced?”", 22),
        arrow(928, 128, 978, 128),
        words(988, 106, "original", 21, "start"), words(988, 134, "or replaced,", 21, "start"),
        words(988, 162, "token by token", 21, "start"),
        arrow(801, 232, 801, 268, 420, 268, tip=False, dash="6 5"),
        words(398, 278, "✕", 32, style=f' fill="{VERMILION}" font-weight="700"'),
        words(610, 296, "no gradient: sampling is not differentiable"),
        rect(216, 326, 710, 56, "one embedding matrix, read by both", **TABLES, wide=2, size=21),
        arrow(300, 324, 300, 190), arrow(880, 324, 880, 232),
        words(0, 252, "dashed box: thrown", 20, "start"),
        words(0, 278, "away afterwards", 20, "start"),
    ]  # fmt: skip
    return drawing(WIDTH, HEIGHT, parts, SAYS, margin=2)
