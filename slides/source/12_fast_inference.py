"""What deck 12 shows: read from data/results and data/papers; never trained."""

from __future__ import annotations

from typing import Any

import drawing
from drawing import arrow, body_of, code, for_a_hall, on_one_line, rect, svg, table, words

from course_lib.lectures.lecture_12 import roads
from course_lib.lectures.lecture_12.views import blocks, results
from course_lib.objectives.exits import self_distillation_loss
from course_lib.teaching.results import stored
from course_lib.teaching.style import BLUE, ORANGE

RUN_OTHERWISE = ("bfloat16", "int8", "padding removed", "torch.compile", "ONNX Runtime")
LOOKS = (("circle", BLUE), ("diamond", ORANGE))  # another model, or the same run otherwise


LEFT_AFTER = (50, 20, 10, 20)  # of a hundred texts, by layers, as on the page


def leaving() -> str:
    """A hundred texts on their way through four layers, and how many leave behind each."""
    parts, here = [], sum(LEFT_AFTER)
    for layer, gone in enumerate(LEFT_AFTER, start=1):
        x, high = 286 * (layer - 1) + 2, 1.4 * here  # as high as texts are there
        parts += [
            rect(x, 294 - high, 176, high, fill="#e3f0f8", ink=BLUE, wide=2),
            words(x + 88, 326, f"layer {layer}", 22, style=' font-weight="650"'),
            words(x + 88, 356, f"{here} texts", 22),
            rect(x + 196, 60, 62, 40, "exit", fill="#fdf1d6", ink="#8a5f00", wide=2, size=20),
            arrow(x + 176, 280, x + 227, 280, x + 227, 102), arrow(x + 227, 58, x + 227, 34),
            words(x + 227, 24, f"{gone} leave", 21),
        ]  # fmt: skip
        here -= gone
        if here:
            parts.append(arrow(x + 227, 280, x + 284, 280))
    return svg(1150, 376, *parts, says="100, 50, 30, 20 texts in four layers, an exit each")


def code_loss() -> str:
    """The loss, without the check of what it is given."""
    lines = body_of(self_distillation_loss, "def loss").splitlines()
    return code("\n".join(line for line in lines if "_some(" not in line))


def three_blocks() -> str:
    return svg(blocks.WIDE, blocks.HIGH, *blocks.blocks_parts(20, 100.0), says=blocks.SAID)


def entropies() -> Any:
    return on_one_line(for_a_hall(results.entropies_chart(), 1140, 450, 300))


def road() -> str:
    """A text of two roads, as on the page, without its answer."""
    text = roads.as_text(roads.road_texts(3, seed=12), 1)
    return f"<p>{text.rpartition(' · ')[0]} · <strong>where are you?</strong></p>"


def roads_chart() -> Any:
    return drawing.apart(for_a_hall(results.roads_chart(), 1140, 430, 300), 0.035)


def exits_sections() -> Any:
    return drawing.apart(for_a_hall(results.exits_chart("sections"), 1140, 450, 300), 0.8)


def strategies() -> Any:
    return for_a_hall(results.strategies_chart(), 1140, 450).update_annotations(font_size=17)


def served() -> str:
    head = ("way", "accuracy", "ms, median", "ms, 95th", "texts/s", "MB, file", "MB, running")
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
