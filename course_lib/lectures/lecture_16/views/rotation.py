"""A query and a key of two features, turned by their positions: their product depends on how far
apart they stand, and on nothing else."""

from __future__ import annotations

from math import cos, radians, sin

from course_lib.teaching.page import (
    Html,
    Live,
    card,
    number,
    paragraphs,
    signed,
    svg_drawing,
    svg_image,
)
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, FAINT, ORANGE
from course_lib.teaching.svg import TIP, words

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
    import ipywidgets as w

    controls = {
        "query_at": w.IntSlider(value=2, min=0, max=LAST, description="position of the query"),
        "key_at": w.IntSlider(value=4, min=0, max=LAST, description="position of the key"),
        "degrees": w.IntSlider(
            value=DEGREES, min=0, max=90, step=5, description="degrees a position"
        ),
    }

    def draw(query_at: int, key_at: int, degrees: int) -> str:
        return rotation_picture(query_at, key_at, degrees).html

    return playground(draw, controls, rotation_picture())


def rotation_picture(query_at: int = 2, key_at: int = 4, degrees: int = DEGREES) -> Html:
    """Pale: as the layer made them. Strong: turned. Below, the product here and one to the right.

    Raises ValueError for a position below 0."""
    if min(query_at, key_at) < 0:
        raise ValueError(f"positions {query_at} and {key_at} were given; expected 0 or more.")
    here, moved = (score(query_at + n, key_at + n, degrees) for n in (0, 1))
    said = [
        f"Query at {query_at}: turned by {query_at * degrees}°. Key at {key_at}: turned by "
        f"{key_at * degrees}°. Distance {signed(query_at - key_at)}, product {number(here)}.",
        f"Both one position to the right: product {number(moved)}.",
    ]
    drawing = svg_drawing(2 * SIZE, SIZE, TIP + _arrows(query_at, key_at, degrees), said[0])
    return Html(
        card(svg_image(drawing, said[0]) + paragraphs(said), "rotation", 720), "\n".join(said)
    )


def _arrows(query_at: int, key_at: int, degrees: int) -> str:
    middle, radius = SIZE / 2, UNIT * (QUERY[0] ** 2 + QUERY[1] ** 2) ** 0.5
    ring = (
        f'<circle cx="{middle}" cy="{middle}" r="{radius:.0f}" fill="none" stroke="{FAINT}" '
        'stroke-width="1.5"/>'
    )
    parts = [ring]
    for name, point, at, colour, dash in (
        ("query", QUERY, query_at, BLUE, ""),
        ("key", KEY, key_at, ORANGE, "7 4"),
    ):
        parts.append(_arrow(point, colour, dash, 0.3))
        end = turned(point, at * degrees)
        parts.append(_arrow(end, colour, dash, 1.0))
        x, y = (middle + 1.14 * UNIT * end[0], middle - 1.14 * UNIT * end[1])
        parts.append(words(x, y + 5, name, 16))
    legend = ("blue, solid: the query", "orange, dashed: the key", "pale: before it is turned")
    parts += [words(SIZE + 10, 130 + 30 * n, text, 16, "start") for n, text in enumerate(legend)]
    return "".join(parts)


def _arrow(end: Point, colour: str, dash: str, opacity: float) -> str:
    middle = SIZE / 2
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{middle}" y1="{middle}" x2="{middle + UNIT * end[0]:.1f}" '
        f'y2="{middle - UNIT * end[1]:.1f}" stroke="{colour}" stroke-width="3" '
        f'opacity="{opacity}" marker-end="url(#tip)"{dashes}/>'
    )
