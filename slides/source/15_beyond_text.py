"""What deck 15 shows: read from data/results, counted or drawn; never trained."""

from __future__ import annotations

from typing import Any

import drawing
from drawing import body_of, code, for_a_hall, large, svg, table

from course_lib.family.vit import AUTHORS, VitConfig, project_by_convolution, project_by_product
from course_lib.images import scenes
from course_lib.lectures.lecture_15.views import maps, results, two_inputs

SHOWN = ("E91", "2-D", "trails")


def two_columns() -> str:
    parts = two_inputs.two_inputs_parts()
    return svg(two_inputs.WIDE, two_inputs.HIGH, *parts, says=two_inputs.SAID)


def code_projections() -> str:
    return code(f"{body_of(project_by_convolution)}\n\n{body_of(project_by_product)}")


def code_rollout() -> str:
    return code(body_of(maps.rollout))


def four_scenes() -> str:
    return large(maps.scene_cards(scenes(4, seed=2)).html, 1.3)


def settings() -> str:
    rows = [(name, str(value), str(getattr(VitConfig(), name))) for name, value in AUTHORS.items()]
    return table(("setting", "authors' program", "transformers"), rows, numbers=False)


def positions() -> Any:
    return for_a_hall(results.positions_chart(), 1140, 430)


def orders() -> Any:
    return for_a_hall(results.orders_chart(), 1140, 430)


def pictures() -> Any:
    return for_a_hall(results.pictures_chart(), 1140, 460, 270)


def masked() -> Any:
    return for_a_hall(results.masked_chart(), 1140, 400)


def other_digits() -> Any:
    return for_a_hall(results.other_chart(), 1140, 380)


def resolution() -> Any:
    return drawing.apart(for_a_hall(results.resolution_chart(), 1140, 450, 270))


def claims_rows() -> str:
    return drawing.claims_rows("15", SHOWN, size=18)


def exercises() -> str:
    return drawing.exercise_list("15")
