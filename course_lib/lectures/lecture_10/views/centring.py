"""Retrieval on paper: the nearest neighbour across two languages, raw and mean-centred."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import playground, slider
from course_lib.teaching.style import BLUE, INK, VERMILION
from course_lib.teaching.svg import area, dot, line, picture, words

SENTENCES = ("the bread is warm", "a boat comes", "they are tired")
ENGLISH = torch.tensor([[1.0, 2.0], [0.0, 3.0], [-1.0, 1.0]])  # (3, 2)
OTHER = torch.tensor([[0.0, 1.0], [-1.0, 2.0], [-2.0, 0.0]])  # (3, 2), the translations
_SIDES = ("start", "start", "end")  # of the points' labels, where there is room
WIDTH, HEIGHT, ORIGIN, UNIT = 620, 400, (270, 290), 84  # pixels


class Neighbours(NamedTuple):
    """The vectors after centring, and of each English one the number of its nearest neighbour."""

    english: Tensor  # (3, 2)
    other: Tensor  # (3, 2)
    cosines: Tensor  # (3, 3)
    nearest: list[int]


def nearest_on_paper(taken: float = 0.0) -> Neighbours:
    """Nearest neighbours by cosine after `taken` (0 to 1) of each language's mean is subtracted."""
    english, other = (vectors - taken * vectors.mean(dim=0) for vectors in (ENGLISH, OTHER))
    cosines = F.normalize(english, dim=1) @ F.normalize(other, dim=1).T  # (3, 3)
    return Neighbours(english, other, cosines, cosines.argmax(dim=1).tolist())


def centring_view() -> Live:
    """Three sentences and their translations in the plane. Control: taken, how much of the mean."""
    taken = slider("mean taken off", 0.0, 0, 1, 0.1, percent=True)
    return playground(centring_picture, {"taken": taken})


def centring_picture(taken: float = 0.0) -> Html:
    """The points with their rays from the origin, and a line from each English sentence to its
    nearest neighbour, dashed where that is not the translation."""
    points = nearest_on_paper(taken)
    right = sum(place == index for index, place in enumerate(points.nearest))
    listed = "; ".join(
        f"{n + 1} → {chr(97 + place)} ({points.cosines[n, place]:.2f}; translation "
        f"{points.cosines[n, n]:.2f})"
        for n, place in enumerate(points.nearest)
    )
    sentences = [
        f"{taken:.0%} of each language's mean is subtracted: {right} of {len(SENTENCES)} "
        "translations are found.",
        f"Nearest by cosine: {listed}.",
    ]
    return picture("centring", WIDTH, HEIGHT, centring_parts(points), sentences, card_width=640)


def centring_parts(points: Neighbours) -> list[str]:
    """What the drawing consists of, for the deck too."""
    x0, y0 = ORIGIN
    parts = [
        line(0, y0, WIDTH - 80, y0, ink="#ccc"),
        line(x0, 0, x0, HEIGHT, ink="#ccc"),
        words(WIDTH - 110, 22, "● English", 15, "start"),
        words(WIDTH - 110, 44, "□ translation", 15, "start"),
    ]
    parts += [line(x0, y0, *_at(p), ink="#bbb") for p in (*points.english, *points.other)]
    for index, place in enumerate(points.nearest):
        look = {"ink": BLUE} if place == index else {"ink": VERMILION, "dash": "6 5"}
        ends = (*_at(points.english[index]), *_at(points.other[place]))
        parts.append(line(*ends, wide=2.5, **look))  # type: ignore[arg-type]
    for index, (one, two) in enumerate(zip(points.english, points.other, strict=True)):
        (xa, ya), (xb, yb) = _at(one), _at(two)
        parts += [
            dot(xa, ya, 7, INK),
            area(xb - 7, yb - 7, 14, 14, "#fff", ink=INK, wide=2.5),
            words(*_label(xa, ya, index), 15, _SIDES[index]),
            words(xb + 13, yb + 20, chr(97 + index), 16, "start"),
        ]
    return parts


def _label(x: float, y: float, index: int) -> tuple[float, float, str]:
    offset = 13 if _SIDES[index] == "start" else -13
    return x + offset, y - 8, f"{index + 1} {SENTENCES[index]}"


def _at(point: Tensor) -> tuple[float, float]:
    x, y = point.tolist()
    return ORIGIN[0] + UNIT * x, ORIGIN[1] - UNIT * y
