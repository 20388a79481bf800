"""What deck 16 shows: read from data/results or drawn; never trained."""

from __future__ import annotations

from typing import Any

import drawing
from drawing import body_of, code, for_a_hall, svg, table

from course_lib.family.modernbert import GatedFeedForward
from course_lib.kernels.rotary import rotary_reference
from course_lib.lectures.lecture_16.views import (
    blocks,
    packing,
    real_text_curves,
    results,
    tasks_chart,
    windows,
)

SHOWN = ("distance", "longer", "biases")
CHANGES = (
    ("positions", "learned table", "queries and keys turned (RoPE)", "Su et al. 2021"),
    ("norms", "after each half", "before each half", "Xiong et al. 2020"),
    ("feed-forward", "GELU", "GeGLU", "Shazeer 2020"),
    ("attention", "all see all", "two layers of three: a window", "Beltagy et al. 2020"),
    ("padding", "computed", "removed", "Portes et al. 2023"),
    ("masked", "15%", "30%", "Wettig et al. 2022"),
    ("segments, NSP", "yes", "no", "Liu et al. 2019"),
    ("biases", "everywhere", "in the decoder alone", "Dayma et al. 2021"),
    ("longest text", "512", "8,192", "Warner et al. 2024"),
)


def changes() -> str:
    head = ("", "BERT, 2018", "ModernBERT, 2024", "from")
    return table(head, CHANGES, numbers=False, size=22)


def two_blocks() -> str:
    return svg(blocks.WIDE, blocks.HIGH, *blocks.blocks_parts(), says=blocks.SAID)


def code_rotary() -> str:
    return code(body_of(rotary_reference, "def turned"))


def code_gate() -> str:
    return code(body_of(GatedFeedForward.forward, "wide"))


def local_layers() -> str:
    return drawing.large(windows.window_picture().inner)


def packed() -> str:
    wide, high, parts, says = packing.packing_parts()
    return drawing.large(svg(wide, high, *parts, says=says), 1.4)


def norms() -> Any:
    return for_a_hall(results.norms_chart(), 1140, 430)


def ladder() -> Any:
    return for_a_hall(results.ladder_chart(), 1140, 500)


def ladder_rows() -> str:
    return table(results.HEAD, results.ladder_rows(), size=19)


def tuned() -> Any:
    figure = for_a_hall(tasks_chart(), 1140, 470).update_annotations(font_size=17)
    axis = figure.layout.yaxis  # eight rows: a name takes one line
    return figure.update_yaxes(ticktext=[name.replace("<br>", " ") for name in axis.ticktext])


def real_text() -> Any:
    return for_a_hall(real_text_curves(), 1140, 440, 330)


def further_back() -> Any:
    return drawing.apart(for_a_hall(results.longer_chart("further_back"), 1140, 450, 300))


def longer() -> Any:
    return for_a_hall(results.longer_chart(), 1140, 450, 300)


def cost() -> Any:
    return for_a_hall(results.cost_chart(), 1140, 450, 300)


def claims_rows() -> str:
    return drawing.claims_rows("16", SHOWN, size=20)


def exercises() -> str:
    return drawing.exercise_list("16")
