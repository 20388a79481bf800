"""A reliability diagram under a temperature: accuracy by how sure the model is.

Guo, Pleiss, Sun and Weinberger (2017), section 2, Figure 1.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import playground, steps
from course_lib.teaching.style import BLUE, VERMILION, hatch
from course_lib.teaching.svg import Scale, area, line, picture, words, x_axis, y_axis
from course_lib.train.calibration import (
    Bin,
    confidences,
    expected_calibration_error,
    log_loss,
    reliability,
)

if TYPE_CHECKING:
    from torch import Tensor

TEMPERATURES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0)
SIDE, LEFT, TOP, PANEL = 210, 52, 34, 370  # pixels

GAP = hatch(VERMILION, size=7, stripe=2)


class Calibrated(NamedTuple):
    """A model's answers at one temperature."""

    temperature: float
    bins: list[Bin]
    confidence: float  # mean probability of the answer
    accuracy: float
    error: float  # expected calibration error
    loss: float  # nats


def reliability_view(logits: Tensor, labels: Tensor, fitted: float) -> Live:
    """A slider for the temperature above a reliability diagram of ten bins.

    logits (N, C), labels (N,): class numbers; fitted: a temperature that was chosen on other texts,
    one of the slider's values. Control: temperature (0.5 to 20).
    Raises ValueError as `course_lib.train.calibration.confidences` does.
    """
    values = sorted({*TEMPERATURES, fitted})
    options = [(f"{T:.3g}{' (fitted)' if fitted == T else ''}", T) for T in values]
    controls = {"temperature": steps("temperature T", 1.0, options)}
    draw = partial(reliability_picture, logits, labels)
    return playground(lambda temperature: draw(temperature), controls, draw(1.0, fitted))


def reliability_picture(logits: Tensor, labels: Tensor, *temperatures: float) -> Html:
    """A panel for each temperature, and a sentence for each below."""
    panels = [calibrated(logits, labels, T) for T in temperatures]
    parts = [part for k, one in enumerate(panels) for part in _panel(one, LEFT + PANEL * k)]
    lines = [line for one in panels for line in (_in_words(one), *_lines(one))]
    return picture(
        "reliability", PANEL * len(panels), TOP + SIDE + 54, parts,
        [_in_words(one) for one in panels], text="\n".join(lines),
    )  # fmt: skip


def calibrated(logits: Tensor, labels: Tensor, temperature: float) -> Calibrated:
    """What a reliability diagram shows. Raises ValueError as reliability_view."""
    confidence, right = confidences(logits, labels, temperature)
    bins = reliability(confidence, right)
    return Calibrated(
        temperature, bins, confidence.mean().item(), right.double().mean().item(),
        expected_calibration_error(bins), log_loss(logits, labels, temperature),
    )  # fmt: skip


def _in_words(one: Calibrated) -> str:
    return (
        f"T = {one.temperature:.3g}: mean probability {one.confidence:.0%}, accuracy "
        f"{one.accuracy:.0%}; expected calibration error {one.error:.0%}, loss {one.loss:.2f} nats."
    )


def _lines(one: Calibrated) -> list[str]:
    """The bins that hold texts, in words."""
    return [
        f"    probability {part.low:.0%} to {part.high:.0%}: {part.texts} texts, "
        f"accuracy {part.accuracy:.0%}"
        for part in one.bins
        if part.texts
    ]


def _panel(one: Calibrated, left: float) -> list[str]:
    """Bars as high as the accuracy; hatched, from there to the mean probability."""
    bottom = TOP + SIDE
    x, y = Scale(0, 1, left, left + SIDE), Scale(0, 1, bottom, TOP)
    width = SIDE / len(one.bins) - 2
    parts = [words(left, 20, f"T = {one.temperature:.3g}", 14, "start", bold=True)]
    for part in one.bins:
        if part.texts:
            lower, upper = sorted((part.accuracy, part.confidence))
            at, right = x(part.low) + 1, y(part.accuracy)
            parts += [
                area(at, right, width, bottom - right, BLUE, kind="right"),
                area(at, y(upper), width, y(lower) - y(upper), GAP, ink=VERMILION, kind="gap"),
                words(at + width / 2, bottom + 12, f"{part.texts}", 10),
            ]
    ticks = {tick: f"{tick:.0%}" for tick in (0.0, 0.5, 1.0)}
    notes = ("■ accuracy", "▨ gap to the", "   probability", "- - calibrated")
    return [
        *parts,
        y_axis(y, left, ticks, 12),
        x_axis(x, bottom + 9, ticks, "probability of the answer", base=bottom, size=12),
        line(left, bottom, left + SIDE, TOP, dash="4 3"),
        words(left + SIDE + 8, bottom + 12, "texts", 10, "start"),
        *(words(left + SIDE + 10, TOP + 12 + 16 * k, note, 12, "start")
          for k, note in enumerate(notes)),
    ]  # fmt: skip
