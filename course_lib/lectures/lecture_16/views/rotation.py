"""A query and a key of two features, turned by their positions: their product depends on how far
apart they stand, and on nothing else."""

from __future__ import annotations

from math import cos, radians, sin

from course_lib.teaching.page import Html, Live, number, signed
from course_lib.teaching.playgrounds import playground, slider
from course_lib.teaching.style import BLUE, FAINT, ORANGE
from course_lib.teaching.svg import TIP, dot, line, picture, words

QUERY, KEY = (2.0, 1.0), (1.0, 2.0)
DEGREES, LAST = 30, 11  # between neighbouring positions; the last position of the sliders
SIZE, UNIT = 340, 60.0  # pixels: of the drawing, of 1
Point = tuple[float, float]


def turned(point: Point, degrees: float) -> Point:
    """The point, counter-clockwise around the origin."""
    angle = radians(degrees)
    x, y = point
    return x * cos(angle) - y * sin(angle), x * sin(angle) + y * cos(angle)


def score(query_at: int, key_at: int, degrees: float = DEGREES) -> float:
    """The product of QUERY at one position and KEY at another."""
    q, k = turned(QUERY, query_at * degrees), turned(KEY, key_at * degrees)
    return q[0] * k[0] + q[1] * k[1]


def rotation_view() -> Live:
    """Both arrows and their product. Controls: both positions, the angle of one position."""
    controls = {
        "query_at": slider("position of the query", 2, 0, LAST),
        "key_at": slider("position of the key", 4, 0, LAST),
        "degrees": slider("degrees a position", DEGREES, 0, 90, 5),
    }
    return playground(rotation_picture, controls)


def rotation_picture(query_at: int = 2, key_at: int = 4, degrees: int = DEGREES) -> Html:
    """Pale: as the layer made them. Strong: turned. Below, the product here and one to the right.

    Raises ValueError for a position below 0."""
    if min(query_at, key_at) < 0:
        raise ValueError(f"positions {query_at} and {key_at} were given; expected 0 or more.")
    here, moved = (score(query_at + n, key_at + n, degrees) for n in (0, 1))
    lines = [
        f"Query at {query_at}: turned by {query_at * degrees}°. Key at {key_at}: turned by "
        f"{key_at * degrees}°. Distance {signed(query_at - key_at)}, product {number(here)}.",
        f"Both one position to the right: product {number(moved)}.",
    ]
    parts = _arrows(query_at, key_at, degrees)
    return picture("rotation", 2 * SIZE, SIZE, parts, lines, label=lines[0], card_width=720)


def _arrows(query_at: int, key_at: int, degrees: int) -> list[str]:
    """Both points before and after they are turned, on a ring, and what the arrows are."""
    middle, radius = SIZE / 2, UNIT * (QUERY[0] ** 2 + QUERY[1] ** 2) ** 0.5
    parts = [TIP, dot(middle, middle, round(radius), "none", ink=FAINT, wide=1.5)]

    def place(point: Point, far: float = 1.0) -> Point:
        return middle + far * UNIT * point[0], middle - far * UNIT * point[1]

    for name, point, at, colour, dash in (
        ("query", QUERY, query_at, BLUE, ""),
        ("key", KEY, key_at, ORANGE, "7 4"),
    ):
        end = turned(point, at * degrees)
        for tip, opacity in ((point, 0.3), (end, 1.0)):
            parts.append(line(middle, middle, *place(tip), ink=colour, wide=3, dash=dash, tip=True,
                              opacity=opacity))  # fmt: skip
        x, y = place(end, 1.14)
        parts.append(words(x, y + 5, name, 16))
    legend = ("blue, solid: the query", "orange, dashed: the key", "pale: before it is turned")
    parts += [words(SIZE + 10, 130 + 30 * n, text, 16, "start") for n, text in enumerate(legend)]
    return parts
