"""Who sees whom: global and local layers, and how far a token's news travels through them."""

from __future__ import annotations

import torch

from course_lib.kernels.sliding_window import window_mask
from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import playground, slider
from course_lib.teaching.style import BLUE, FAINT, ORANGE
from course_lib.teaching.svg import area, cells, picture, words

TOKENS, LAYERS, CELL, GAP, TOP = 16, 4, 10, 22, 40  # pixels: of a cell, between grids, above them


def layer_masks(
    window: int, every: int, tokens: int = TOKENS, layers: int = LAYERS
) -> list[torch.Tensor]:
    """For each layer which key a query sees, (T, T) bool. every: layers 0, n, 2n … are global.

    Raises ValueError for numbers below 1."""
    if every < 1:
        raise ValueError(f"every={every!r} was given; expected at least 1: all layers are global.")
    near = window_mask(torch.zeros(1, tokens), window)[0]
    return [torch.ones_like(near) if n % every == 0 else near for n in range(layers)]


def receptive_field(masks: list[torch.Tensor], token: int = 0) -> list[int]:
    """From how many tokens, itself among them, a token can have heard after each layer."""
    known, sizes = torch.eye(len(masks[0]), dtype=torch.bool), []
    for mask in masks:
        known = (mask.float() @ known.float()) > 0
        sizes.append(int(known[token].sum()))
    return sizes


def window_view() -> Live:
    """A grid a layer. Controls: the window, and which layers are global."""
    controls = {
        "window": slider("window", 4, 1, TOKENS),
        "every": slider("one global layer in", 3, 1, LAYERS),
    }
    return playground(window_picture, controls)


def window_picture(window: int = 4, every: int = 3) -> Html:
    """Blue: a global layer, all see all. Orange: a local one. White: not computed."""
    masks = layer_masks(window, every)
    seen = [int(mask.sum()) for mask in masks]
    whole = len(masks) * TOKENS**2
    sizes = receptive_field(masks[1:])
    lines = [
        f"Window {window}: a token of a local layer sees {window // 2} on either side. "
        f"{sum(seen):,} of {whole:,} scores are needed.",
        f"Local and global layers from layer 1 on: the first token can have heard from "
        f"{', '.join(map(str, sizes))} of {TOKENS} tokens.",
    ]
    side, parts = TOKENS * CELL, []
    for n, mask in enumerate(masks):
        left, whole = n * (side + GAP) + 2, bool(mask.all())
        fill = BLUE if whole else ORANGE
        parts += [
            words(left + side / 2, 24, f"layer {n}: {'global' if whole else 'local'}", 16),
            area(left, TOP, side, side, "#fff", ink=FAINT),
            *cells(mask.tolist(), left, TOP, (CELL, CELL),
                   lambda sees, *_, fill=fill: {"fill": fill} if sees else None),
        ]  # fmt: skip
    size = len(masks) * (side + GAP), TOP + side + 6
    return picture("windows", *size, parts, lines, label=lines[0])
