"""Retrieval on paper: the nearest neighbour across two languages, and their means taken off."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.page import Html, Live, card, paragraphs, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, INK, VERMILION
from course_lib.teaching.svg import TIP, words

SAID = ("the bread is warm", "a boat comes", "they are tired")
ENGLISH = torch.tensor([[1.0, 2.0], [0.0, 3.0], [-1.0, 1.0]])  # (3, 2)
OTHER = torch.tensor([[0.0, 1.0], [-1.0, 2.0], [-2.0, 0.0]])  # (3, 2), the translations
_SIDES = ("start", "start", "end")  # of the points' labels, where there is room
WIDE, HIGH, ORIGIN, UNIT = 620, 400, (270, 290), 84  # pixels


class Found(NamedTuple):
    """The vectors after centring, and of each English one the number of its nearest neighbour."""

    english: Tensor  # (3, 2)
    other: Tensor  # (3, 2)
    cosines: Tensor  # (3, 3)
    nearest: list[int]


def nearest_on_paper(taken: float = 0.0) -> Found:
    """Nearest neighbours by cosine after `taken` (0 to 1) of each language's mean is subtracted."""
    english, other = (vectors - taken * vectors.mean(dim=0) for vectors in (ENGLISH, OTHER))
    cosines = F.normalize(english, dim=1) @ F.normalize(other, dim=1).T  # (3, 3)
    return Found(english, other, cosines, cosines.argmax(dim=1).tolist())


def centring_view() -> Live:
    """Three sentences and their translations in the plane. Control: taken, how much of the mean."""
    import ipywidgets as w

    controls = {
        "taken": w.FloatSlider(
            value=0.0, min=0, max=1, step=0.1, readout_format=".0%", description="mean taken off"
        )
    }
    return playground(lambda taken: centring_picture(taken).html, controls, centring_picture())


def centring_picture(taken: float = 0.0) -> Html:
    """The points with their rays from the origin, and a line from each English sentence to its
    nearest neighbour, dashed where that is not the translation."""
    found = nearest_on_paper(taken)
    right = sum(place == number for number, place in enumerate(found.nearest))
    listed = "; ".join(
        f"{n + 1} → {chr(97 + place)} ({found.cosines[n, place]:.2f}, right one "
        f"{found.cosines[n, n]:.2f})"
        for n, place in enumerate(found.nearest)
    )
    said = [
        f"{taken:.0%} of each language's mean taken off: {right} of {len(SAID)} translations "
        "found.",
        f"Nearest by cosine: {listed}.",
    ]
    image = svg_image(
        svg_drawing(WIDE, HIGH, TIP + "".join(centring_parts(found)), said[0]), " ".join(said)
    )
    return Html(card(image + paragraphs(said), "centring", 640), "\n".join(said))


def centring_parts(found: Found) -> list[str]:
    """What the drawing consists of, for the deck too."""
    x0, y0 = ORIGIN
    parts = [
        f'<path d="M0 {y0}H{WIDE - 80}M{x0} 0V{HIGH}" stroke="#ccc" stroke-width="1"/>',
        words(WIDE - 110, 22, "● English", 15, "start"),
        words(WIDE - 110, 44, "□ translation", 15, "start"),
    ]
    for point in (*found.english, *found.other):
        x, y = _at(point)
        parts.append(f'<path d="M{x0} {y0}L{x:.0f} {y:.0f}" stroke="#bbb" stroke-width="1"/>')
    for number, place in enumerate(found.nearest):
        (xa, ya), (xb, yb) = _at(found.english[number]), _at(found.other[place])
        dash = "" if place == number else ' stroke-dasharray="6 5"'
        colour = BLUE if place == number else VERMILION
        parts.append(
            f'<path d="M{xa:.0f} {ya:.0f}L{xb:.0f} {yb:.0f}" stroke="{colour}" '
            f'stroke-width="2.5"{dash}/>'
        )
    for number, (one, two) in enumerate(zip(found.english, found.other, strict=True)):
        (xa, ya), (xb, yb) = _at(one), _at(two)
        parts += [
            f'<circle cx="{xa:.0f}" cy="{ya:.0f}" r="7" fill="{INK}"/>',
            f'<rect x="{xb - 7:.0f}" y="{yb - 7:.0f}" width="14" height="14" fill="#fff" '
            f'stroke="{INK}" stroke-width="2.5"/>',
            words(*_label(xa, ya, number), 15, _SIDES[number]),
            words(xb + 13, yb + 20, chr(97 + number), 16, "start"),
        ]
    return parts


def _label(x: float, y: float, number: int) -> tuple[float, float, str]:
    away = 13 if _SIDES[number] == "start" else -13
    return x + away, y - 8, f"{number + 1} {SAID[number]}"


def _at(point: Tensor) -> tuple[float, float]:
    x, y = point.tolist()
    return ORIGIN[0] + UNIT * x, ORIGIN[1] - UNIT * y
