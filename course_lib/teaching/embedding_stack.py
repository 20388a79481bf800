"""Token + segment + position = sum → LayerNorm, for an own pair (Devlin et al. 2018, Figure 2).

T tokens, H hidden.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .page import Html, Live, card, svg_drawing, svg_image, table_row
from .playgrounds import one_row, playground
from .style import cividis

if TYPE_CHECKING:
    from torch import Tensor, nn

    from course_lib.text.wordpiece import WordPiece

Ids = tuple[int, int, int]  # of one token: row of the token, the segment and the position table

STAGES = {
    "token": "token",
    "segment": "segment",
    "position": "position",
    "sum": "sum",
    "normed": "LayerNorm",
}
SIGNS = ("", "+", "+", "=", "→")
DIMS, WRITTEN = 14, 8  # how many of the H numbers are drawn, and written out
ROW, TOP, WIDE, GAP, LEFT = 18, 40, 92, 24, 104  # pixels


def embedding_stack_view(encoder: nn.Module, tokenizer: WordPiece, a: str, b: str) -> Live:
    """The five stages as heat strips; boxes for both sentences and a slider over the tokens."""
    import ipywidgets as w

    def last() -> int:
        first, second = (controls[name].value for name in ("a", "b"))
        return len(tokenizer.encode(first)) + len(tokenizer.encode(second)) + 2

    controls = {
        "a": w.Text(value=a, description="sentence A"),
        "b": w.Text(value=b, description="sentence B"),
    }
    position = w.IntSlider(value=1, min=0, max=last(), description="token looked at")
    for box in controls.values():
        box.observe(lambda _: setattr(position, "max", last()), names="value")

    def draw(**values: Any) -> str:
        return embedding_picture(encoder, tokenizer, **values).html

    static = embedding_picture(encoder, tokenizer, a, b, position.value, as_image=True)
    return playground(draw, {**controls, "position": position}, static)


def embedding_picture(
    encoder: nn.Module,
    tokenizer: WordPiece,
    a: str,
    b: str,
    position: int = 1,
    *,
    as_image: bool = False,
) -> Html:
    """Every stage of every token as a row of colours, and the numbers of the token at `position`.

    Positions count from 0; one beyond the last is taken as the last. as_image: for a page without a
    kernel (see page.svg_image). Raises ValueError for an empty sentence.
    """
    import torch

    sequences = one_row(tokenizer, a, b)
    embeddings: Any = encoder.embeddings
    with torch.no_grad():
        parts = embeddings.parts(sequences.input_ids, sequences.token_type_ids)
    stages = {name: parts[name][0].detach() for name in STAGES}  # each (T, H)
    ids, segments = sequences.input_ids[0].tolist(), sequences.token_type_ids[0].tolist()
    position = min(max(position, 0), len(ids) - 1)
    where = (ids[position], segments[position], position)
    tokens = [tokenizer.token(i) for i in ids]
    hidden = stages["sum"].shape[1]
    said = (
        f"The first {min(DIMS, hidden)} of {hidden} numbers a token. Each stage has its own scale: "
        "dark is negative, yellow positive. LayerNorm gives every token mean 0 and standard "
        "deviation 1, then its learned gain and shift."
    )
    below = f'<p style="margin:6px 0 0;color:#444">{said}</p>'
    strips = _strips(stages, tokens, where)
    strips = svg_image(strips, said) if as_image else strips
    html = strips + _numbers(stages, tokens[position], where) + below
    return Html(card(html, "embedding-stack"), _in_words(stages, tokens, where))


def _strips(stages: Mapping[str, Tensor], tokens: Sequence[str], where: Ids) -> str:
    """Five small heat maps side by side, T rows each, between the tokens and the signs."""
    position, height = where[2], TOP + ROW * len(tokens) + 8
    names = "".join(_name(i, token, i == position) for i, token in enumerate(tokens))
    strips = "".join(_strip(k, STAGES[n], v, where) for k, (n, v) in enumerate(stages.items()))
    label = "token, segment and position embeddings, their sum, and the sum after LayerNorm"
    return svg_drawing(680, height, names + strips, label)


def _strip(k: int, name: str, values: Tensor, where: Ids) -> str:
    """Stage k: its name, its sign, the id looked up, the colours, and a frame around one token."""
    x, high = LEFT + k * (WIDE + GAP), ROW * len(values)
    middle = f'x="{x + WIDE / 2}" text-anchor="middle"'
    uri = heat_png(values[:, :DIMS])
    id_said = f"{('id', 'segment', 'position')[k]} {where[k]}" if k < len(where) else ""
    return (
        f'<text {middle} y="16" font-weight="600">{name}</text>'
        f'<text {middle} y="33" font-size="11" fill="#555">{id_said}</text>'
        f'<text x="{x - GAP / 2}" y="{TOP + high / 2}" text-anchor="middle" font-size="17">'
        f"{SIGNS[k]}</text>"
        f'<image x="{x}" y="{TOP}" width="{WIDE}" height="{high}" href="{uri}"'
        ' preserveAspectRatio="none" style="image-rendering:pixelated"/>'
        f'<rect x="{x}" y="{TOP + ROW * where[2]}" width="{WIDE}" height="{ROW}" fill="none" '
        'stroke="#D55E00" stroke-width="3"/>'
    )


def _name(i: int, token: str, chosen: bool) -> str:
    look = 'font-weight="700"' if chosen else ""
    return (
        f'<text x="{LEFT - 8}" y="{TOP + ROW * i + 13}" text-anchor="end" font-size="12" {look} '
        f'font-family="ui-monospace,Menlo,monospace">{"▸ " * chosen}{escape(token)}</text>'
    )


def _numbers(stages: Mapping[str, Tensor], token: str, where: Ids) -> str:
    """A table of the first numbers of one token, stage by stage; mean and sd over H."""
    few = min(WRITTEN, stages["sum"].shape[1])
    head = [f"“{token}”, position {where[2]}", *map(str, range(few)), "", "mean", "sd"]
    sides = ["left"] + ["right"] * (len(head) - 1)
    lines = [table_row("th", head, sides)]
    for k, (name, values) in enumerate(stages.items()):
        vector = values[where[2]]
        looked_up = f" [{where[k]}]" if k < len(where) else ""
        spread = (vector.mean().item(), vector.std(unbiased=False).item())
        numbers = [*map(_short, vector[:few].tolist()), "…", *map(_short, spread)]
        cells = [f"{SIGNS[k]} {STAGES[name]}{looked_up}", *numbers]
        lines.append(table_row("td", cells, sides))
    style = "border-collapse:collapse;margin:8px 0 0;background:#fff"
    return f'<table style="{style}">{"".join(lines)}</table>'


def _short(value: float) -> str:
    """Three decimals, a true minus sign, and no minus zero."""
    text = f"{value:.3f}"
    return "0.000" if text == "-0.000" else text.replace("-", "−")


def _in_words(stages: Mapping[str, Tensor], tokens: Sequence[str], where: Ids) -> str:
    position = where[2]
    lines = [" ".join(tokens), f"token {tokens[position]!r}: id, segment, position {where}"]
    for sign, (name, values) in zip(SIGNS, stages.items(), strict=True):
        first = "  ".join(_short(v) for v in values[position, :4].tolist())
        lines.append(f"{sign:>2} {STAGES[name]:<10} {first} …")
    return "\n".join(lines)


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
