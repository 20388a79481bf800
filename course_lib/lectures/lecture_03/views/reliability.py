"""A reliability diagram under a temperature: how often a model is right where it is how sure.

Guo, Pleiss, Sun and Weinberger (2017), section 2, Figure 1.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from course_lib.teaching.page import Html, Live, card, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, INK
from course_lib.teaching.svg import words as text_at
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

_HATCH = (
    '<defs><pattern id="course-gap" width="7" height="7" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="7" height="7" fill="#fff"/>'
    '<rect width="2" height="7" fill="#D55E00"/></pattern></defs>'
)


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
    import ipywidgets as w

    shown = [calibrated(logits, labels, T) for T in (1.0, fitted)]
    values = sorted({*TEMPERATURES, fitted})
    options = [(f"{T:.3g}{' (fitted)' if fitted == T else ''}", T) for T in values]
    controls = {
        "temperature": w.SelectionSlider(options=options, value=1.0, description="temperature T")
    }

    def draw(temperature: float) -> str:
        return _picture([calibrated(logits, labels, temperature)], as_image=False).html

    return playground(draw, controls, _picture(shown, as_image=True))


def calibrated(logits: Tensor, labels: Tensor, temperature: float) -> Calibrated:
    """What a reliability diagram shows. Raises ValueError as reliability_view."""
    confidence, right = confidences(logits, labels, temperature)
    bins = reliability(confidence, right)
    return Calibrated(
        temperature, bins, confidence.mean().item(), right.double().mean().item(),
        expected_calibration_error(bins), log_loss(logits, labels, temperature),
    )  # fmt: skip


def _said(one: Calibrated) -> str:
    return (
        f"T = {one.temperature:.3g}: mean probability {one.confidence:.0%}, right "
        f"{one.accuracy:.0%}; expected calibration error {one.error:.0%}, loss {one.loss:.2f} nats."
    )


def _picture(shown: list[Calibrated], as_image: bool) -> Html:
    """A panel for each, and a sentence for each below."""
    said = [_said(one) for one in shown]
    parts = [_HATCH, *(_panel(one, LEFT + PANEL * k) for k, one in enumerate(shown))]
    wide, high = PANEL * len(shown), TOP + SIDE + 54
    drawing = svg_drawing(wide, high, "".join(parts), " ".join(said))
    drawing = svg_image(drawing, " ".join(said)) if as_image else drawing
    words = "".join(f'<p style="margin:4px 0 0">{escape(line)}</p>' for line in said)
    table = [line for one in shown for line in (_said(one), *_lines(one))]
    return Html(card(drawing + words, "reliability", 780), "\n".join(table))


def _lines(one: Calibrated) -> list[str]:
    """The bins that hold texts, in words."""
    return [
        f"    probability {part.low:.0%} to {part.high:.0%}: {part.texts} texts, "
        f"{part.accuracy:.0%} right"
        for part in one.bins
        if part.texts
    ]


def _panel(one: Calibrated, x: float) -> str:
    """Bars as high as the fraction right; hatched, from there to the mean probability."""
    bottom, step = TOP + SIDE, SIDE / len(one.bins)
    parts = [text_at(x, 20, f"T = {one.temperature:.3g}", 14, "start", ' font-weight="700"')]
    for part in one.bins:
        if not part.texts:
            continue
        at, ends = x + SIDE * part.low + 1, sorted((part.accuracy, part.confidence))
        parts.append(
            f'<rect class="right" x="{at:.1f}" y="{bottom - SIDE * part.accuracy:.1f}" '
            f'width="{step - 2:.1f}" height="{SIDE * part.accuracy:.1f}" fill="{BLUE}"/>'
            f'<rect class="gap" x="{at:.1f}" y="{bottom - SIDE * ends[1]:.1f}" '
            f'width="{step - 2:.1f}" height="{SIDE * (ends[1] - ends[0]):.1f}" '
            'fill="url(#course-gap)" stroke="#D55E00"/>'
        )
        parts.append(text_at(at + step / 2 - 1, bottom + 12, f"{part.texts}", 10))
    parts.append(
        f'<path d="M{x} {TOP}V{bottom}H{x + SIDE}" fill="none" stroke="{INK}"/>'
        f'<path d="M{x} {bottom}L{x + SIDE} {TOP}" stroke="{INK}" stroke-dasharray="4 3"/>'
    )
    for tick in (0.0, 0.5, 1.0):
        parts.append(text_at(x - 5, bottom - SIDE * tick + 4, f"{tick:.0%}", 11, "end"))
        parts.append(text_at(x + SIDE * tick, bottom + 27, f"{tick:.0%}", 11))
    parts.append(text_at(x + SIDE / 2, bottom + 44, "probability of the answer", 12))
    parts.append(text_at(x + SIDE + 8, bottom + 12, "texts", 10, "start"))
    notes = ("■ right", "▨ gap to the", "   probability", "- - calibrated")
    parts += [text_at(x + SIDE + 10, TOP + 12 + 16 * k, note, 12, "start")
              for k, note in enumerate(notes)]  # fmt: skip
    return "".join(parts)
