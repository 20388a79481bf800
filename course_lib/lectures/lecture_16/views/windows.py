"""Who sees whom: global and local layers, and how far a token's news travels through them."""

from __future__ import annotations

import torch

from course_lib.kernels.sliding_window import window_mask
from course_lib.teaching.page import Html, Live, card, paragraphs, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, FAINT, ORANGE
from course_lib.teaching.svg import words

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


def heard_from(masks: list[torch.Tensor], token: int = 0) -> list[int]:
    """From how many tokens, itself among them, a token can have heard after each layer."""
    known, found = torch.eye(len(masks[0]), dtype=torch.bool), []
    for mask in masks:
        known = (mask.float() @ known.float()) > 0
        found.append(int(known[token].sum()))
    return found


def window_view() -> Live:
    """A grid a layer. Controls: the window, and which layers are global."""
    import ipywidgets as w

    controls = {
        "window": w.IntSlider(value=4, min=1, max=TOKENS, description="window"),
        "every": w.IntSlider(value=3, min=1, max=LAYERS, description="one global layer in"),
    }

    def draw(window: int, every: int) -> str:
        return window_picture(window, every).html

    return playground(draw, controls, window_picture())


def window_picture(window: int = 4, every: int = 3) -> Html:
    """Blue: a global layer, all see all. Orange: a local one. White: not computed."""
    masks = layer_masks(window, every)
    seen = [int(mask.sum()) for mask in masks]
    whole = len(masks) * TOKENS**2
    heard = heard_from(masks[1:])
    said = [
        f"Window {window}: a token of a local layer sees {window // 2} on either side. "
        f"{sum(seen):,} of {whole:,} scores are needed.",
        f"Local and global layers from layer 1 on: the first token can have heard from "
        f"{', '.join(map(str, heard))} of {TOKENS} tokens.",
    ]
    drawing = window_drawing(masks, said[0])
    return Html(
        card(svg_image(drawing, said[0]) + paragraphs(said), "windows", 780), "\n".join(said)
    )


def window_drawing(masks: list[torch.Tensor], says: str) -> str:
    """The grids side by side, queries down, keys across, as an SVG."""
    wide = TOKENS * CELL
    parts = []
    for n, mask in enumerate(masks):
        left, whole = n * (wide + GAP) + 2, bool(mask.all())
        kind = "global" if whole else "local"
        parts.append(words(left + wide / 2, 24, f"layer {n}: {kind}", 16))
        parts.append(_grid(mask, left, BLUE if whole else ORANGE))
    return svg_drawing(len(masks) * (wide + GAP), TOP + wide + 6, "".join(parts), says)


def _grid(mask: torch.Tensor, left: float, colour: str) -> str:
    wide = TOKENS * CELL
    ground = (
        f'<rect x="{left}" y="{TOP}" width="{wide}" height="{wide}" fill="#fff" stroke="{FAINT}"/>'
    )
    bars = []
    for row, line in enumerate(mask.tolist()):
        first, count = line.index(True), sum(line)
        bars.append(
            f'<rect x="{left + CELL * first}" y="{TOP + CELL * row}" width="{CELL * count}" '
            f'height="{CELL}" fill="{colour}"/>'
        )
    lines = "".join(
        f"M{left + CELL * n} {TOP}v{wide}M{left} {TOP + CELL * n}h{wide}" for n in range(TOKENS + 1)
    )
    return f'{ground}{"".join(bars)}<path d="{lines}" stroke="#fff" stroke-width="1"/>'
