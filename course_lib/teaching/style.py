"""Colours with a fixed meaning (Okabe and Ito's, safe for all eyes) and the one plotly template."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import cycle
from typing import Any, NamedTuple

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, BLACK, GREY = "#CC79A7", "#56B4E9", "#F0E442", "#000000", "#767676"
INK, FAINT = "#1a1a1a", "#d9d9d9"
WIDTH, HEIGHT = 680, 390  # pixels; a figure fits a laptop screen

# One colour a thing, in all lectures.
COLOURS = {
    "unigram": GREY, "count model": PURPLE, "model": BLUE, "oracle": BLACK, "long run": SKY,
    "total": BLUE, "mlm": GREEN, "nsp": ORANGE, "sop": BLUE, "expected": GREY,
    "static": VERMILION, "ten copies": ORANGE, "dynamic": BLUE,
    "mask": ORANGE, "random": VERMILION, "kept": GREEN,
    "bert": BLUE, "roberta": ORANGE, "albert": GREEN, "distilbert": SKY, "tinybert": SKY,
    "electra": VERMILION, "deberta": PURPLE, "spanbert": GREEN, "ernie": ORANGE, "xlm": VERMILION,
    "mobilebert": PURPLE, "fastbert": BLACK, "elmo": YELLOW,
}  # fmt: skip
# Lines differ in more than colour.
DASHES = {
    "unigram": "dot", "count model": "dash", "oracle": "dashdot", "static": "dot",
    "ten copies": "dash", "dynamic": "solid",
}  # fmt: skip
PATTERNS = ("", "/", "x", ".", "\\", "+")
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)  # for what has no colour of its own
DASH_CYCLE = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = {  # plotly's name of a marker, and the sign that stands for it in a label
    "circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "cross": "✚", "x": "✖",
}  # fmt: skip


class Look(NamedTuple):
    """How one of several things in a figure is drawn: different in colour, line and marker."""

    colour: str
    dash: str
    symbol: str
    sign: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name: its own colour and line where it has them, else the next free ones."""
    names = list(names)
    own = {name: COLOURS[name.lower()] for name in names if name.lower() in COLOURS}
    free = cycle([c for c in CYCLE if c not in own.values()] or CYCLE)
    lines = cycle([d for d in DASH_CYCLE if d not in {DASHES.get(n.lower()) for n in names}])
    chosen = zip(names, cycle(SYMBOLS.items()), strict=False)
    return {
        name: Look(
            own.get(name) or next(free), DASHES.get(name.lower()) or next(lines), symbol, sign
        )
        for name, (symbol, sign) in chosen
    }


def family_looks(names: Iterable[str]) -> dict[str, Look]:
    """As looks; a size after the family's name ("TinyBERT-4", "ELECTRA small") keeps its colour."""
    names = list(names)
    family = {name: re.split(r"[-\s]", name.lower(), maxsplit=1)[0] for name in names}
    own = {name: COLOURS[family[name]] for name in names if family[name] in COLOURS}
    return {
        name: look._replace(colour=own.get(name, look.colour))
        for name, look in looks(names).items()
    }


def colour(name: str) -> str:
    """The colour of a family member or of a kind of line; ValueError for a name without one."""
    if name.lower() not in COLOURS:
        raise ValueError(f"{name!r} has no colour yet; those that have: {', '.join(COLOURS)}.")
    return COLOURS[name.lower()]


def dash(name: str) -> str:
    """How the line of this kind is drawn."""
    return DASHES.get(name, "solid")


def rounded(values: Iterable[float], digits: int = 4) -> list[float]:
    """The values to `digits` significant digits: what a figure needs, and small in a notebook."""
    return [round_one(float(v), digits) for v in values]


def round_one(value: float, digits: int = 4) -> float:
    """One value to `digits` significant digits; zero and what is no number stay."""
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def thinned(
    x: Sequence[float], y: Sequence[float], most: int = 200
) -> tuple[list[float], list[float]]:
    """At most about `most` points: each the mean of its neighbours, put at their last step."""
    group = max(1, -(-len(y) // most))
    blocks = [y[i : i + group] for i in range(0, len(y), group)]
    last = [x[min(i + group, len(x)) - 1] for i in range(0, len(x), group)]
    # more digits than are shown: a label of the last point rounds it once more
    return last, rounded((sum(block) / len(block) for block in blocks), digits=6)


@lru_cache(maxsize=1)
def template() -> Any:
    """The plotly template of every figure, also registered as "course"."""
    import plotly.graph_objects as go
    import plotly.io as pio

    axis = {
        "showline": True, "linecolor": INK, "ticks": "outside", "tickcolor": INK,
        "gridcolor": "#ececec", "zeroline": False, "title": {"standoff": 8}, "automargin": True,
    }  # fmt: skip
    pio.templates["course"] = go.layout.Template(
        layout={
            "font": {"family": "system-ui, Helvetica, Arial, sans-serif", "size": 13, "color": INK},
            "title": {"x": 0, "xref": "paper", "xanchor": "left", "font": {"size": 16}},
            "colorway": [BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW, BLACK],
            "plot_bgcolor": "white",
            "paper_bgcolor": "white",
            "margin": {"l": 60, "r": 24, "t": 48, "b": 48},
            "showlegend": False,
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"bgcolor": "white", "font": {"color": INK}},
        }
    )
    return pio.templates["course"]


# Points of the Cividis scale (Nuñez, Anderton, Renslow 2018), dark blue to yellow.
CIVIDIS = (
    (0, 34, 78),
    (53, 69, 108),
    (102, 105, 112),
    (148, 142, 119),
    (200, 184, 102),
    (254, 232, 56),
)


def cividis(share: float) -> tuple[int, int, int]:
    """The colour (red, green, blue) at `share` from 0 to 1 of the scale; beyond, its ends."""
    place = min(max(share, 0.0), 1.0) * (len(CIVIDIS) - 1)
    low = min(int(place), len(CIVIDIS) - 2)
    part = place - low
    pairs = zip(CIVIDIS[low], CIVIDIS[low + 1], strict=True)
    r, g, b = (round(x + part * (y - x)) for x, y in pairs)
    return r, g, b


def ink_on(ground: tuple[int, int, int]) -> str:
    """Black or white, whichever stands out more."""
    parts = [((c / 255 + 0.055) / 1.055) ** 2.4 for c in ground]
    light = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    return "#000" if light > 0.18 else "#fff"


def hatch(colour: str, ground: str = "#fff", size: int = 8, stripe: float = 3) -> str:
    """A fill of slanted stripes; `svg_drawing` adds what SVG needs for it."""
    return f"url(#hatch-{colour[1:]}-{ground[1:]}-{size}-{stripe:g})"


def dotted(colour: str, ground: str = "#fff", size: int = 7, radius: float = 1.2) -> str:
    """A fill of dots; `svg_drawing` adds what SVG needs for it."""
    return f"url(#dotted-{colour[1:]}-{ground[1:]}-{size}-{radius:g})"


def patterns(content: str) -> str:
    """The definitions of all hatched and dotted fills that a piece of SVG uses."""
    fills = sorted(set(re.findall(r"url\(#((hatch|dotted)-(\w+)-(\w+)-(\d+)-([\d.]+))\)", content)))
    drawn = [
        f'<pattern id="{name}" width="{size}" height="{size}" patternUnits="userSpaceOnUse"'
        + ' patternTransform="rotate(45)"' * (kind == "hatch")
        + f'><rect width="{size}" height="{size}" fill="#{ground}"/>'
        + (f'<rect width="{part}" height="{size}" fill="#{colour}"/>' if kind == "hatch" else
           f'<circle cx="{int(size) / 2:g}" cy="{int(size) / 2:g}" r="{part}" fill="#{colour}"/>')
        + "</pattern>"
        for name, kind, colour, ground, size, part in fills
    ]  # fmt: skip
    return f"<defs>{''.join(drawn)}</defs>" if drawn else ""
