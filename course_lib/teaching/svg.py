"""The marks that pictures are made of, the same on pages and in decks.

A mark is a piece of SVG: text, a line, a box, a dot, a bar with its name, a square of cells, an
axis, a key. `picture` puts marks on a card with the sentences that say the same."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from .page import Html, card, paragraphs, svg_drawing, svg_image
from .style import BLUE, INK, cividis, ink_on, patterns

if TYPE_CHECKING:
    from torch import Tensor

TIP = (  # the tip of an arrow, once in every picture that has one
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
    f'markerHeight="7" orient="auto"><path d="M0 0 10 5 0 10z" fill="{INK}"/></marker></defs>'
)
MONO = "font-family:Menlo,Consolas,monospace"
GRID = "#e4e4e4"
KEY_GAP = 14  # pixels between the entries of a key

# ---------------------------------------------------------------- whole pictures


def drawing(width: int, height: float, parts: Iterable[str], says: str, margin: int = 0) -> Html:
    """The parts as one image of a page; says: the same in words, for those who do not see it;
    margin: pixels around, where a box touches the edge. `inner`: the same for a slide, as SVG."""
    content = "".join(parts)
    size = width + 2 * margin, height + 2 * margin
    moved = f'{TIP}<g transform="translate({margin} {margin})">{content}</g>'
    image = svg_image(svg_drawing(*size, moved, says), says)
    return Html(image, says, slide_svg(width, height, content, says=says))


def slide_svg(width: int, height: float, *parts: str, says: str) -> str:
    """The parts as an SVG in the type of the slide around it; says: for screen readers."""
    content = "".join(parts)
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(says)}" font-size="20" fill="{INK}" style="display:block" '
        f'font-family="inherit">{TIP}{patterns(content)}{content}</svg>'
    )


def picture(
    kind: str, width: int, height: float, parts: Iterable[str], sentences: str | Sequence[str], *,
    label: str = "", text: str = "", below: str = "", image: bool = True, card_width: int = 780,
) -> Html:  # fmt: skip
    """A card of the class `kind`: the parts as a drawing, and the sentences under it.

    label: for screen readers, else the sentences; text: the text twin, else the sentences; below:
    HTML between both. image: an image, which stays where inline SVG is taken out of a notebook; not
    where links or the titles of parts are wanted. `inner` is the drawing alone, as SVG."""
    lines = [sentences] if isinstance(sentences, str) else list(sentences)
    label = label or " ".join(lines)
    svg = svg_drawing(width, height, "".join(parts), label)
    drawing = (svg_image(svg, label) if image else svg) + below + paragraphs(lines)
    return Html(card(drawing, kind, card_width), text or "\n".join(lines), svg)


def key(entries: Sequence[tuple[str, str]], says: str, swatch: int = 30, width: int = 740) -> str:
    """HTML: swatches, each a mark drawn 16 pixels high from the corner, with their meaning; as many
    in a line as fit."""
    lines: list[list[tuple[str, str]]] = [[]]
    for entry in entries:
        if lines[-1] and key_width([*lines[-1], entry], swatch) > width + KEY_GAP:
            lines.append([])
        lines[-1].append(entry)
    marks = "".join(key_marks(row, 4, 3 + 18 * n, swatch) for n, row in enumerate(lines))
    return svg_image(svg_drawing(width, 4 + 18 * len(lines), marks, says), says)


def key_width(entries: Sequence[tuple[str, str]], swatch: int, size: float = 12) -> float:
    """Pixels that entries of a key take, with the gap behind the last."""
    return sum(swatch + 8 + text_width(meaning, size) + KEY_GAP for _, meaning in entries)


def text_width(text: str, size: float = 13) -> float:
    """Pixels that a text takes, about: narrow and wide letters count."""
    letters = (4.7 if c in "fijlrt.,'- " else 12 if c in "mwMW" else 8 for c in text)
    return sum(letters) * (size / 13)


def key_marks(
    entries: Sequence[tuple[str, str]], x: float, y: float, swatch: int = 30, size: float = 12
) -> str:
    """The entries of a key from left to right, for use within a picture."""
    parts = []
    for entry in entries:
        parts.append(f'<g transform="translate({x:g},{y:g})">{entry[0]}</g>')
        parts.append(words(x + swatch + 8, y + 12, entry[1], size, "start", ink="#444"))
        x += round(key_width([entry], swatch, size))
    return "".join(parts)


# ---------------------------------------------------------------- marks


def rect(
    x: float, y: float, w: float, h: float, text: str = "", *, fill: str = "#fff",
    ink: str = "#8a8a8a", wide: float = 1.5, dash: str = "", size: float = 20, mono: bool = False,
    kind: str = "", rounding: float = 6, text_ink: str = "",
) -> str:  # fmt: skip
    """A box with its words in the middle; kind: its class."""
    edge = f' stroke="{ink}" stroke-width="{wide:g}"' if ink != "none" else ""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    corners = f' rx="{rounding:g}"' if rounding else ""
    shape = (
        f'<rect{named(kind)} x="{one_decimal(x)}" y="{one_decimal(y)}" width="{one_decimal(w)}" '
        f'height="{one_decimal(h)}"{corners} fill="{fill}"{edge}{dashes}/>'
    )
    return shape + words(x + w / 2, y + h / 2 + 0.35 * size, text, size, mono=mono, ink=text_ink)


def area(x: float, y: float, w: float, h: float, fill: str, **look: Any) -> str:
    """A plain box: no rounded corners, and no edge unless `ink` says its colour."""
    return rect(x, y, w, h, fill=fill, **{"ink": "none", "rounding": 0, "wide": 1, **look})


def words(
    x: float, y: float, text: str, size: float = 20, anchor: str = "middle", style: str = "",
    kind: str = "", *, ink: str = "", bold: bool = False, mono: bool = False, turn: int = 0,
) -> str:  # fmt: skip
    """A line of text, HTML already; style: further attributes; kind: its class; turn: degrees."""
    if not text:
        return ""
    look = (f' fill="{ink}"' if ink else "") + ' font-weight="650"' * bold + style
    look += f' style="{MONO}"' if mono else ""
    spot = f'x="{one_decimal(x)}" y="{one_decimal(y)}"'
    if turn:
        spot = f'transform="translate({one_decimal(x)},{one_decimal(y)}) rotate({turn})"'
    if anchor != "start":  # where SVG starts by itself
        spot += f' text-anchor="{anchor}"'
    return f'<text{named(kind)} {spot} font-size="{size:g}"{look}>{text}</text>'


def named(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def one_decimal(pixels: float) -> str:
    return f"{round(pixels, 1):g}"


def line(
    *points: float, ink: str = INK, wide: float = 1.0, dash: str = "", tip: bool = False,
    opacity: float = 1.0, kind: str = "",
) -> str:  # fmt: skip
    """A line through x, y, x, y, …; tip: an arrow's, at its end."""
    path = " ".join(
        f"{one_decimal(x)} {one_decimal(y)}" for x, y in zip(points[::2], points[1::2], strict=True)
    )
    more = ' marker-end="url(#tip)"' if tip else ""
    more += f' stroke-dasharray="{dash}"' if dash else ""
    more += f' opacity="{opacity:.2f}"' if opacity < 1 else ""
    return (
        f'<polyline{named(kind)} points="{path}" fill="none" stroke="{ink}" '
        f'stroke-width="{wide:g}"{more}/>'
    )


def arrow(*points: float, tip: bool = True, dash: str = "") -> str:
    """A line of the boxes' ink through x, y, x, y, …, with a tip at its end."""
    return line(*points, wide=1.8, tip=tip, dash=dash)


def dot(
    x: float, y: float, radius: float, fill: str, *, ink: str = "none", wide: float = 2,
    kind: str = "",
) -> str:  # fmt: skip
    """A dot; with a white fill and an ink a ring."""
    edge = f' stroke="{ink}" stroke-width="{wide:g}"' if ink != "none" else ""
    spot = f'cx="{one_decimal(x)}" cy="{one_decimal(y)}" r="{one_decimal(radius)}"'
    return f'<circle{named(kind)} {spot} fill="{fill}"{edge}/>'


def bar(
    left: float, y: float, length: float, height: float, name: str = "", text: str = "", *,
    size: float = 13, mono: bool = False, bold: bool = False, name_ink: str = "", **look: Any,
) -> str:  # fmt: skip
    """A bar to the right of `left`, its name before it and what it says behind it."""
    base = y + height / 2 + 0.35 * size
    return (
        words(left - 8, base, name, size, "end", mono=mono, bold=bold, ink=name_ink)
        + area(left, y, length, height, **{"fill": BLUE, **look})
        + words(left + length + 6, base, text, size, "start", bold=bold)
    )


def cells(
    values: Iterable[Iterable[Any]], x: float, y: float, step: tuple[float, float],
    look: Callable[[Any, int, int], dict[str, Any] | None], gap: float = 1, rounding: float = 0,
) -> list[str]:  # fmt: skip
    """A box for each value, row by row; look(value, row, column) says how rect() draws it, None
    leaves it out. Without rounded corners a box has an edge only if its look has an ink."""
    (w, h), shape = step, {"rounding": rounding} | ({} if rounding else {"ink": "none"})
    return [
        rect(x + w * j, y + h * i, w - gap, h - gap, **{**shape, **drawn})
        for i, row in enumerate(values)
        for j, value in enumerate(row)
        if (drawn := look(value, i, j)) is not None
    ]


def cell_names(
    rows: Sequence[str], columns: Sequence[str], x: float, y: float, step: tuple[float, float], *,
    size: float = 13, turn: int = 0, bold: tuple[int, int] = (-1, -1), mono: bool = False,
) -> list[str]:  # fmt: skip
    """Names left of rows of cells and above their columns; turn: the columns' slant in degrees;
    bold: the row and the column that are marked."""
    w, h = step
    base, side = 0.35 * size, "start" if turn else "middle"
    left = [
        words(x - 8, y + h * (i + 0.5) + base, name, size, "end", bold=i == bold[0], mono=mono)
        for i, name in enumerate(rows)
    ]
    above = [
        words(x + w * (j + 0.5) + 3 * bool(turn), y - 6, name, size, side, bold=j == bold[1],
              turn=turn, mono=mono)
        for j, name in enumerate(columns)
    ]  # fmt: skip
    return left + above


def on_cividis(fraction: float, text: str = "", **look: Any) -> dict[str, Any]:
    """The look of a cell with the colour at this fraction of the scale, and text that is read."""
    ground = cividis(fraction)
    return {
        "fill": f"rgb{ground}".replace(" ", ""),
        "text": text,
        "text_ink": ink_on(ground),
        **look,
    }


def heat(
    values: Tensor, x: float, y: float, width: float, height: float, *,
    largest: float | None = None, opacity: float = 1.0,
) -> str:  # fmt: skip
    """A matrix as an image, a colour a number; see heat_png."""
    pale = f' opacity="{opacity:g}"' if opacity < 1 else ""
    return (
        f'<image x="{one_decimal(x)}" y="{one_decimal(y)}" width="{one_decimal(width)}" '
        f'height="{one_decimal(height)}" href="{heat_png(values, largest)}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated"{pale}/>'
    )


def heat_scale(x: float, y: float, width: float, ends: Sequence[str]) -> str:
    """The colours of a heat map from left to right; ends: what stands below, at equal distances."""
    import torch

    anchors = ("start", *["middle"] * (len(ends) - 2), "end")
    return heat(torch.linspace(-1, 1, 64)[None], x, y, width, 12, largest=1.0) + "".join(
        words(x + width * n / (len(ends) - 1), y + 26, end, 12, anchor, ink="#444")
        for n, (end, anchor) in enumerate(zip(ends, anchors, strict=True))
    )


def heat_png(values: Tensor, largest: float | None = None) -> str:
    """A matrix as a tiny PNG in a data address: a pixel a number, zero the middle of the scale.

    largest: the number at the end of the scale, if not the largest of the matrix."""
    largest = largest or float(values.abs().max()) or 1.0
    lines = [
        b"\0" + bytes(x for v in row for x in cividis(0.5 + 0.5 * v / largest))
        for row in values.tolist()
    ]
    size = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 8, 2, 0, 0, 0)
    parts = ((b"IHDR", size), (b"IDAT", zlib.compress(b"".join(lines), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


# ---------------------------------------------------------------- axes


class Scale(NamedTuple):
    """Values from `low` to `high` along pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * part


def x_axis(
    scale: Scale, y: float, ticks: Mapping[Any, str], title: str = "", *,
    top: float | None = None, base: float | None = None, size: float = 13,
) -> str:  # fmt: skip
    """Numbers below y, the title below them; ticks from the axis down, or grid lines from `top`.

    base: where the axis itself is, if something else lies between it and the numbers."""
    base = y if base is None else base
    start, end, ink = (base, base + 4, INK) if top is None else (top, y + 4, GRID)
    parts = [words((scale.start + scale.end) / 2, y + 25 + size, title, size)]
    for value, text in ticks.items():
        parts.append(line(scale(value), start, scale(value), end, ink=ink))
        parts.append(words(scale(value), y + 7 + size, text, size))
    return "".join([*parts, line(scale.start, base, scale.end, base)])


def y_axis(scale: Scale, x: float, ticks: Mapping[Any, str], size: float = 13) -> str:
    """Ticks left of x with their numbers."""
    parts = [line(x, scale.start, x, scale.end)]
    for value, text in ticks.items():
        y = scale(value)
        parts.append(line(x - 5, y, x, y) + words(x - 9, y + 0.35 * size, text, size, "end"))
    return "".join(parts)


def with_sign(value: float, written: str = ",") -> str:
    """A number as pictures write it, with a true minus sign: with_sign(-1200) is −1,200."""
    return format(value, written).replace("-", "−")


def shortened(text: str, most: int = 12) -> str:
    """Escaped, and cut to so many characters."""
    return escape(text if len(text) <= most else text[: most - 1] + "…")
