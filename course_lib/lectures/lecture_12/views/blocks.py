"""Three blocks side by side: how wide the vectors are on their way through BERT-base, MobileBERT
and MobileBERT's teacher."""

from __future__ import annotations

from dataclasses import dataclass

from course_lib.teaching.page import Html
from course_lib.teaching.style import BLUE, INK, ORANGE
from course_lib.teaching.svg import arrow, drawing, rect, words

WIDE, HIGH, COLUMN, FLOOR = 1140, 440, 380, 400
PER_UNIT = 0.075  # pixels a number of a vector
PALE, WARM = "#e3f0f8", "#fdf1d6"
SAID = (
    "One block of each. BERT-base is 768 wide all through. MobileBERT is 512 wide between blocks "
    "and 128 inside, with four feed-forward layers. Its teacher is 512 between blocks and 1,024 "
    "inside, with one."
)


@dataclass(frozen=True)
class Stage:
    """A bar of the drawing: what it is, how wide the vector behind it is, and how it is filled."""

    name: str
    width: int
    fill: str = "#fff"
    ink: str = "#8a8a8a"


def _feed_forwards(count: int, inner: int) -> list[Stage]:
    return [Stage("feed-forward", inner, WARM, ORANGE) for _ in range(count)]


def stages(name: str) -> list[Stage]:
    """A block from its input to its output, as the released configurations have it."""
    outer, inner, heads = {
        "BERT-base": (768, 768, 12),
        "MobileBERT": (512, 128, 4),
        "IB-BERT, the teacher": (512, 1_024, 4),
    }[name]
    attention = Stage(f"attention, {heads} heads", inner, PALE, BLUE)
    core = [attention, *_feed_forwards(4 if name == "MobileBERT" else 1, inner)]
    if outer == inner:
        return [Stage("in", outer), *core, Stage("out", outer)]
    way_in, way_out = Stage("bottleneck in", inner), Stage("bottleneck out", outer)
    if inner > outer:
        way_in, way_out = Stage("widen", inner), Stage("narrow", outer)
    return [Stage("in", outer), way_in, *core, way_out]


def blocks_drawing() -> Html:
    """Three columns, input below, output above; the wider a bar, the wider the vectors."""
    return drawing(WIDE, HIGH, blocks_parts(), SAID, margin=2)


def blocks_parts(size: int = 16, left: float = 120.0) -> list[str]:
    """What the drawing consists of, for the deck too. size: of the type; left: the first column's
    middle."""
    parts = []
    for column, name in enumerate(("BERT-base", "MobileBERT", "IB-BERT, the teacher")):
        middle = COLUMN * column + left
        parts.append(words(middle, 434, name, 22, style=' font-weight="650"'))
        parts += _tower(stages(name), middle, size)
    return parts


def _tower(of: list[Stage], middle: float, size: int) -> list[str]:
    parts, y = [], FLOOR - 34.0
    for index, stage in enumerate(of):
        width = max(24.0, stage.width * PER_UNIT * 2)
        parts.append(
            rect(middle - width / 2, y, width, 30, f"{stage.width:,}" if width > 60 else "",
                 size=size, fill=stage.fill, ink=stage.ink, wide=2)
        )  # fmt: skip
        label = stage.name if width > 60 else f"{stage.width} · {stage.name}"
        parts.append(words(middle + width / 2 + 8, y + 21, label, size, "start", f' fill="{INK}"'))
        if index < len(of) - 1:
            parts.append(arrow(middle, y, middle, y - 18))
        y -= 48
    return parts
