"""Words, boxes and lines of the SVG pictures, the same for pages and for decks."""

from __future__ import annotations

from collections.abc import Iterable

from .page import Html, svg_drawing, svg_image
from .style import INK

TIP = (  # the tip of an arrow, once in every picture that has one
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
    f'markerHeight="7" orient="auto"><path d="M0 0 10 5 0 10z" fill="{INK}"/></marker></defs>'
)
MONO = "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def drawing(width: int, height: float, parts: Iterable[str], says: str, margin: int = 0) -> Html:
    """The parts as one image of a page; says: the same in words, for those who do not see it;
    margin: pixels around, where a box touches the edge."""
    inner = f'{TIP}<g transform="translate({margin} {margin})">{"".join(parts)}</g>'
    size = width + 2 * margin, height + 2 * margin
    return Html(svg_image(svg_drawing(*size, inner, says), says), says)


def rect(
    x: float, y: float, w: float, h: float, text: str = "", *, fill: str = "#fff",
    ink: str = "#8a8a8a", wide: float = 1.5, dash: str = "", size: int = 20, mono: bool = False,
    kind: str = "",
) -> str:  # fmt: skip
    """A box with its words in the middle; kind: its class."""
    style = f' style="{MONO}"' if mono else ""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    shape = (
        f'<rect{named(kind)} x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" '
        f'fill="{fill}" stroke="{ink}" '
        f'stroke-width="{wide}"{dashes}/>'
    )
    return shape + words(x + w / 2, y + h / 2 + 0.35 * size, text, size, style=style)


def words(
    x: float, y: float, text: str, size: float = 20, anchor: str = "middle", style: str = "",
    kind: str = "",
) -> str:  # fmt: skip
    """A line of text, HTML already; style: further attributes; kind: its class."""
    if not text:
        return ""
    at = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size:g}"'
    return f"<text{named(kind)} {at}{style}>{text}</text>"


def named(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def arrow(*points: float, tip: bool = True, dash: str = "") -> str:
    """A line through x, y, x, y, …, with a tip at its end."""
    path = " ".join(f"{x} {y}" for x, y in zip(points[::2], points[1::2], strict=True))
    marker = ' marker-end="url(#tip)"' if tip else ""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.8"{marker}{dashes}/>'
    )
