"""Pictures with patches: what the class token reads, what one patch attends to, which positions are
alike, and scenes beside their sentences.

L layers, A heads, T tokens: the class token, then n×n patches in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from course_lib.family.vit import VitForClassification
from course_lib.images import BACKGROUND, Scenes
from course_lib.teaching.page import Html, Live, card, svg_drawing, svg_image
from course_lib.teaching.playgrounds import choice, playground, slider
from course_lib.teaching.style import ORANGE
from course_lib.teaching.svg import area, cells, line, on_cividis, picture, rect, words

SIDE, GAP, TOP = 176, 40, 30  # pixels of a picture, between two, above
WHAT = {  # what may be shown, and how its title says it
    "rollout": "rollout",
    "class token": "the class token’s attention",
    "one patch": "a patch’s attention",
}
Picture = Sequence[Sequence[float]]  # rows of pixels, 0 dark to 1


@torch.no_grad()
def attentions_of(model: VitForClassification, image: Tensor) -> tuple[Tensor, str]:
    """Attention weights (L, A, T, T) of one picture (C, S, S), and the class that it is said to be
    of. The model is left as it was found."""
    was_training = model.training
    out = model.eval()(image[None], output_attentions=True)
    model.train(was_training)
    assert out.attentions is not None
    weights = torch.cat([layer for layer in out.attentions])
    return weights, model.names[int(out.logits.argmax())]


def rollout(weights: Tensor) -> Tensor:
    """(L, A, T, T) -> (L, T, T): how much of each token's vector after layer l comes from each
    token at the input (Abnar and Zuidema 2020, section 3). Heads are averaged, half of every vector
    goes past a layer in the residual sum, and layers are multiplied. Rows sum to 1."""
    joint = torch.eye(weights.shape[-1])
    layers = []
    for layer in weights.mean(1):
        joint = (0.5 * layer + 0.5 * torch.eye(len(layer))) @ joint
        layers.append(joint)
    return torch.stack(layers)


def attention_maps_view(model: VitForClassification, images: Tensor) -> Live:
    """The maps over one of the pictures (N, 1, S, S). Controls: picture, what, layer, patch."""
    layers, patches = model.config.num_layers, model.config.patches_across**2
    controls = {
        "picture": slider("image", 1, 1, len(images)),
        "what": choice("show", "rollout", WHAT),
        "layer": slider("layer", layers, 1, layers),
        "patch": slider("patch (for one patch)", 6, 1, patches),
    }

    def draw(picture: int, **chosen: Any) -> Html:
        return attention_maps(model, images[picture - 1], **chosen)

    return playground(draw, controls)


def attention_maps(
    model: VitForClassification,
    image: Tensor,
    what: str = "rollout",
    layer: int | None = None,
    patch: int = 6,
) -> Html:
    """A picture (1, S, S) and, beside it, how much is read from each of its patches, the mean of
    the heads. what: a key of WHAT; layer, patch: from 1. Raises ValueError for others."""
    weights, predicted = attentions_of(model, image)
    across, layer = isqrt(weights.shape[-1] - 1), layer or len(weights)
    if what not in WHAT or not 1 <= layer <= len(weights) or not 1 <= patch <= across**2:
        raise ValueError(
            f"what={what!r}, layer={layer} and patch={patch} were given; expected one of "
            f"{', '.join(WHAT)}, a layer of 1 to {len(weights)} and a patch of 1 to {across**2}."
        )
    row = patch if what == "one patch" else 0
    read = rollout(weights)[layer - 1, 0] if what == "rollout" else weights[layer - 1].mean(0)[row]
    title = f"{WHAT[what]}, layer {layer}" + (f", patch {patch}" if row else "")
    parts = [
        words(0, 20, f"predicted: “{escape(predicted)}”", 14, "start"),
        *_pixels(image[0].tolist(), 0, TOP, SIDE),
        words(SIDE + GAP, 20, escape(title), 14, "start"),
        *_tiles(read[1:].unflatten(0, (across, across)).tolist(), SIDE + GAP, TOP),
    ]
    for left in (0, SIDE + GAP) if row else ():
        parts.append(_frame(patch - 1, across, left))
    largest = int(read[1:].argmax()) + 1
    sentence = (
        f"{title}: most of it from patch {largest}, {read[largest]:.0%}; from the class token "
        f"itself {read[0]:.0%}."
    )
    size = 2 * SIDE + GAP + 160, SIDE + TOP + 6
    return picture("maps", *size, parts, sentence, card_width=620)


def position_similarity(model: VitForClassification) -> Html:
    """For each patch a small map: the cosine similarity of its position with every other one's.
    Raises ValueError for a model without positions."""
    table = model.encoder.embeddings.position_table()  # type: ignore[union-attr, operator]
    if table is None:
        raise ValueError("a model with positions='none' was given; expected one with positions.")
    unit = torch.nn.functional.normalize(table.detach()[1:], dim=-1)
    similar, across = unit @ unit.T, isqrt(len(unit))
    small = (SIDE * 2) // across - 10
    parts = []
    for index, row in enumerate(similar):
        x, y = (index % across) * (small + 10), (index // across) * (small + 10)
        similarities = row.unflatten(0, (across, across)).tolist()
        parts += _tiles(similarities, x, y, small, low=-1, written=False)
        parts.append(_frame(index, across, x, y, small, 2))
    beside = _beside(similar, across)
    sentence = (
        f"cosine similarity of positions: neighbours {beside[0]:+.2f} on average, all others "
        f"{beside[1]:+.2f}".replace("-", "−")
    )
    side = (small + 10) * across
    return picture("maps", side, side, parts, f"{sentence}. Dark −1, yellow 1.", label=sentence,
                   text=sentence, card_width=620)  # fmt: skip


def _beside(similar: Tensor, across: int) -> tuple[float, float]:
    """Mean similarity of patches side by side or above one another, and of all other pairs."""
    row, column = torch.arange(across**2) // across, torch.arange(across**2) % across
    apart = (row[:, None] - row).abs() + (column[:, None] - column).abs()
    return similar[apart == 1].mean().item(), similar[apart > 1].mean().item()


def scene_cards(scenes: Scenes, count: int = 4) -> Html:
    """The first scenes, lines where patches of 8 are cut, and their sentences."""
    cells = []
    for image, sentence in zip(scenes.pixel_values[:count], scenes.sentences, strict=False):
        svg = svg_drawing(SIDE, SIDE, "".join(_coloured(image)), sentence)
        cells.append(
            f'<div style="width:{SIDE}px;margin:0 12px 8px 0">{svg_image(svg, sentence)}'
            f'<div style="font-size:13px">{escape(sentence)}</div></div>'
        )
    inner = f'<div style="display:flex;flex-wrap:wrap">{"".join(cells)}</div>'
    return Html(card(inner, "scenes", 800), "\n".join(scenes.sentences[:count]))


# ---------------------------------------------------------------- parts


def _pixels(greys: Picture, x: float, y: float, side: float) -> list[str]:
    """A grey picture, a square a pixel; a little larger, so that no line shows between two."""
    step = side / len(greys)
    return cells(greys, x, y, (step, step), lambda v, *_: {"fill": f"rgb{(round(255 * v),) * 3}"},
                 gap=-0.2)  # fmt: skip


def _coloured(image: Tensor) -> list[str]:
    """(3, S, S) without the background's noise, which would fill a notebook, and white lines
    between its 3×3 cells."""
    step, ground = SIDE / image.shape[-1], round(255 * BACKGROUND)
    levels = (255 * image).round().int().permute(1, 2, 0).tolist()
    parts = [area(0, 0, SIDE, SIDE, f"rgb({ground},{ground},{ground})")]
    parts += [
        area(j * step, i * step, step + 0.2, step + 0.2, f"rgb({r},{g},{b})")
        for i, row in enumerate(levels)
        for j, (r, g, b) in enumerate(row)
        if max(r, g, b) > 2 * ground + 10
    ]  # fmt: skip
    for at in (SIDE / 3, 2 * SIDE / 3):
        for points in ((at, 0, at, SIDE), (0, at, SIDE, at)):
            parts.append(line(*points, ink="#fff", dash="3 3"))
    return parts


def _tiles(
    values: Picture, x: float, y: float, side: float = SIDE, low: float = 0.0, written: bool = True
) -> list[str]:
    """A value a patch on the Cividis scale, from `low` to the largest."""
    step, most = side / len(values), max(map(max, values)) or 1.0

    def look(value: float, i: int, j: int) -> dict[str, Any]:
        return on_cividis((value - low) / (most - low), f"{value:.0%}" * written, size=13)

    return cells(values, x, y, (step, step), look, gap=-0.2)


def _frame(
    index: int, across: int, x: float, y: float = TOP, side: float = SIDE, width: float = 4
) -> str:
    """A thick frame around a patch, numbered from 0."""
    step = side / across
    left, top = x + index % across * step, y + index // across * step
    return rect(left, top, step, step, fill="none", ink=ORANGE, wide=width)
