"""What deck 12 shows: read from data/results and data/papers; never trained."""

from __future__ import annotations

from typing import Any

import drawing
from drawing import body_of, code, for_a_hall, svg, table

from course_lib import FastBert
from course_lib.lectures.lecture_12.views import blocks, results
from course_lib.objectives.exits import self_distillation_loss
from course_lib.teaching.results import stored
from course_lib.teaching.style import BLUE, ORANGE

SHOWN = ("E42", "E39", "E48")
RUN_OTHERWISE = ("bfloat16", "int8", "padding removed", "torch.compile", "ONNX Runtime")
LOOKS = (("circle", BLUE), ("diamond", ORANGE))  # another model, or the same run otherwise


def code_answer() -> str:
    return code(body_of(FastBert.answer, "check_mask"))


def code_loss() -> str:
    return code(body_of(self_distillation_loss, "def loss"))


def three_blocks() -> str:
    return svg(blocks.WIDE, blocks.HIGH, *blocks.blocks_parts(), says=blocks.SAID)


def entropies() -> Any:
    return for_a_hall(results.entropies_chart(), 1140, 450, 330)


def exits_sections() -> Any:
    return for_a_hall(results.exits_chart("sections"), 1140, 450, 330)


def training() -> Any:
    return for_a_hall(results.training_chart(), 1140, 440)


def strategies() -> Any:
    return for_a_hall(results.strategies_chart(), 1140, 450)


def served() -> str:
    head = ("way", "right", "ms, median", "ms, 95th", "texts/s", "MB, file", "MB, running")
    return table(head, results.serving_rows(), size=20)


def flops_time() -> Any:
    ways, points = stored("12_serving_times")["ways"], []
    for name, row in ways.items():
        x = results.timed_flops(name) / 1e6
        look, said = LOOKS[name in RUN_OTHERWISE], f"{name} {row['median']:.2f}"
        points.append((x, row["median"], said, *look, -1 if x > 100 else 1))
    shifts = {points[-2][2]: 6, points[1][2]: -4}
    return drawing.marked_points(
        points, shifts, "millions of FLOPs of a text", "ms, one text", (48, 125), (0.3, 2.4),
        {50: "50", 60: "60", 80: "80", 110: "110"}, 440,
    )  # fmt: skip


def claims_rows() -> str:
    return drawing.claims_rows("12", SHOWN, size=18)


def exercises() -> str:
    return drawing.exercise_list("12")
