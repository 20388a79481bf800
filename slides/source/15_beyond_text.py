"""What deck 15 shows: read from data/results, counted or drawn; never trained."""

from __future__ import annotations

from typing import Any

import torch
from drawing import (
    apart,
    arrow,
    body_of,
    code,
    for_a_hall,
    grid,
    large,
    on_one_line,
    svg,
    table,
    words,
)  # fmt: skip

from course_lib.family.vit import (
    AUTHORS,
    VitConfig,
    project_by_convolution,
    project_by_product,
)  # fmt: skip
from course_lib.images import cut_patches, scenes
from course_lib.lectures.lecture_15.views import maps, results
from course_lib.teaching.style import BLUE


def cut() -> str:
    """Sixteen pixels in four patches, and each patch as a row; the second one is marked."""
    pixels = torch.arange(16.0).reshape(1, 1, 4, 4)
    rows = cut_patches(pixels, 2)[0].int().tolist()

    def look(n: int) -> dict[str, Any]:
        chosen = {"fill": "#e3f0f8", "ink": BLUE, "wide": 3} if n in rows[1] else {}
        return {"text": str(n), "size": 24, **chosen}

    parts = []
    for place, row in enumerate(rows):
        x, y = 30 + 176 * (place % 2), 40 + 156 * (place // 2)
        parts += grid([row[:2], row[2:]], x, y, (80, 70), lambda n, i, j: look(n))
        parts.append(words(660, 86 + 76 * place, f"patch {place + 1}", 22, "end"))
        parts += grid([row], 680, 50 + 76 * place, (80, 58), lambda n, i, j: look(n))
    return svg(1140, 350, *parts, arrow(400, 188, 540, 188), says="an image as four rows of four")


def code_projections() -> str:
    ways = {"a convolution: kernel P wide, stride P": project_by_convolution,
            "or a matrix, patch by patch": project_by_product}  # fmt: skip
    return code("\n\n".join(f"# {said}\n{body_of(way)}" for said, way in ways.items()))


def code_rollout() -> str:
    return code(body_of(maps.rollout))


def four_scenes() -> str:
    return large(maps.scene_cards(scenes(4, seed=2)).html, 1.42)


def settings() -> str:
    rows = [(name, str(value), str(getattr(VitConfig(), name))) for name, value in AUTHORS.items()]
    return table(("setting", "authors' code", "transformers"), rows, numbers=False)


def pictures() -> Any:
    return on_one_line(for_a_hall(results.pictures_chart(), 1140, 460, 330))


def resolution() -> Any:
    return apart(on_one_line(for_a_hall(results.resolution_chart(), 1140, 450, 330)))
