"""Token + segment + position = sum → LayerNorm, for an own pair (Devlin et al. 2018, Figure 2).

T tokens, H hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from .page import Html, Live, card, paragraphs, svg_drawing, svg_image, table_html
from .playgrounds import one_row, playground, slider, text_field
from .style import VERMILION
from .svg import area, heat, words

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
    controls = {"a": text_field("sentence A", a), "b": text_field("sentence B", b)}

    def last() -> int:
        return sum(len(tokenizer.encode(box.value)) for box in controls.values()) + 2

    position = slider("token looked at", 1, 0, last())
    for box in controls.values():
        box.observe(lambda _: setattr(position, "max", last()), names="value")
    draw = partial(embedding_picture, encoder, tokenizer)
    return playground(draw, {**controls, "position": position})


def embedding_picture(
    encoder: nn.Module,
    tokenizer: WordPiece,
    a: str,
    b: str,
    position: int = 1,
) -> Html:
    """Every stage of every token as a row of colours, and the numbers of the token at `position`.

    Positions count from 0; one beyond the last is taken as the last. Raises ValueError for an empty
    sentence.
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
    sentence = (
        f"The first {min(DIMS, hidden)} of {hidden} numbers a token. Each stage has its own scale: "
        "dark is negative, yellow positive. LayerNorm gives every token mean 0 and standard "
        "deviation 1, then its learned gain and shift."
    )
    strips = svg_image(_strips(stages, tokens, where), sentence)
    html = strips + _numbers(stages, tokens[position], where) + paragraphs([sentence])
    return Html(card(html, "embedding-stack"), _in_words(stages, tokens, where))


def _strips(stages: Mapping[str, Tensor], tokens: Sequence[str], where: Ids) -> str:
    """Five small heat maps side by side, T rows each, between the tokens and the signs."""
    position, height = where[2], TOP + ROW * len(tokens) + 8
    names = [
        words(LEFT - 8, TOP + ROW * i + 13, "▸ " * (i == position) + escape(token), 12, "end",
              mono=True, bold=i == position)
        for i, token in enumerate(tokens)
    ]  # fmt: skip
    strips = "".join(_strip(k, STAGES[n], v, where) for k, (n, v) in enumerate(stages.items()))
    label = "token, segment and position embeddings, their sum, and the sum after LayerNorm"
    return svg_drawing(680, height, "".join(names) + strips, label)


def _strip(k: int, name: str, values: Tensor, where: Ids) -> str:
    """Stage k: its name, its sign, the id looked up, the colours, and a frame around one token."""
    x, height = LEFT + k * (WIDE + GAP), ROW * len(values)
    looked_up = f"{('id', 'segment', 'position')[k]} {where[k]}" if k < len(where) else ""
    return (
        words(x + WIDE / 2, 16, name, 13, bold=True)
        + words(x + WIDE / 2, 33, looked_up, 11, ink="#555")
        + words(x - GAP / 2, TOP + height / 2, SIGNS[k], 17)
        + heat(values[:, :DIMS], x, TOP, WIDE, height)
        + area(x, TOP + ROW * where[2], WIDE, ROW, "none", ink=VERMILION, wide=3)
    )


def _numbers(stages: Mapping[str, Tensor], token: str, where: Ids) -> str:
    """A table of the first numbers of one token, stage by stage; mean and sd over H."""
    few = min(WRITTEN, stages["sum"].shape[1])
    head = [f"“{token}”, position {where[2]}", *map(str, range(few)), "", "mean", "sd"]
    lines = []
    for k, (name, values) in enumerate(stages.items()):
        vector = values[where[2]]
        looked_up = f" [{where[k]}]" if k < len(where) else ""
        spread = (vector.mean().item(), vector.std(unbiased=False).item())
        numbers = [*map(_short, vector[:few].tolist()), "…", *map(_short, spread)]
        lines.append([f"{SIGNS[k]} {STAGES[name]}{looked_up}", *numbers])
    return table_html(head, lines)


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
