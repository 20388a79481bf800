"""Who may see whom: the masks of the three kinds of Transformer, and of ELMo's two LSTMs."""

from __future__ import annotations

from typing import Any

from course_lib.teaching.page import Html, Live, check_one_of
from course_lib.teaching.playgrounds import choice, playground, slider
from course_lib.teaching.style import BLUE, INK, ORANGE, hatch
from course_lib.teaching.svg import area, cell_names, cells, picture, words

ENCODER, DECODER, BOTH = "encoder", "decoder", "encoder-decoder"
FORWARD, BACKWARD = "ELMo, forward LSTM", "ELMo, backward LSTM"
KINDS = {
    ENCODER: "encoder (BERT)", DECODER: "decoder (GPT)", BOTH: "encoder-decoder (BART, T5)",
    FORWARD: FORWARD, BACKWARD: BACKWARD,
}  # fmt: skip
READ = ["the", "bank", "of", "the", "river"]
WRITTEN = ["das", "Ufer", "des", "Flusses"]
OWN, CROSS = 1, 2  # what a cell of the picture holds, if the one sees the other
THREE = (ENCODER, DECODER, BOTH)
CELL, LEFT, TOP, WIDTH = 32, 110, 78, 500  # pixels
THREE_SIZE = (1080, TOP + CELL * 9 + 34)
FILLS = {0: "#fff", OWN: BLUE, CROSS: hatch(ORANGE, "#fff", 8, 4)}


def tokens_of(kind: str) -> list[str]:
    """What is read, and for an encoder-decoder after it what is written."""
    return READ + WRITTEN if kind == BOTH else READ


def sight(kind: str) -> list[list[int]]:
    """For each token a row: 0 where it does not see another, OWN where it sees it in its own text,
    CROSS where the decoder sees what the encoder read. Raises ValueError for another kind."""
    check_one_of(KINDS, kind=kind)
    tokens, read = tokens_of(kind), len(READ)

    def seen(i: int, j: int) -> int:
        if kind == BACKWARD:
            return OWN * (j >= i)
        if kind == ENCODER or (kind == BOTH and i < read):
            return OWN * (j < read)
        return CROSS if kind == BOTH and j < read else OWN * (j <= i)

    return [[seen(i, j) for j in range(len(tokens))] for i in range(len(tokens))]


def masks_view(kind: str = ENCODER, token: int = 2) -> Live:
    """A square for each two words, filled where the row sees the column. Controls: kind, and the
    token that looks, counted from 1."""
    controls = {
        "kind": choice("kind", kind, [(name, k) for k, name in KINDS.items()]),
        "token": slider("token that looks", token, 1, len(READ) + len(WRITTEN)),
    }
    return playground(mask_picture, controls, three_masks(token))


def three_masks(token: int | None = None) -> Html:
    """The masks of encoder, decoder and encoder-decoder side by side, as one image."""
    label = " ".join(f"{KINDS[kind]}: {sight_in_words(kind, token or 2)}" for kind in THREE)
    lines = [f"{KINDS[kind]}. {sight_in_words(kind, token or 2)}" for kind in THREE]
    return picture("masks", *THREE_SIZE, three_parts(token), lines, label=label, card_width=790)


def three_parts(token: int | None = None) -> list[str]:
    """The three pictures, each moved to its place; for the deck too."""
    return [
        f'<g transform="translate({x} 22)">{"".join(mask_parts(kind, token))}'
        f"{words(LEFT, -6, KINDS[kind], 15, 'start', bold=True)}</g>"
        for kind, x in zip(THREE, (0, 320, 640), strict=True)
    ]


def mask_picture(kind: str, token: int) -> Html:
    """The squares of one kind, with the row of one token (from 1, at most the last) framed; and in
    words."""
    rows = len(tokens_of(kind))
    token = min(token, rows)
    line = f"{KINDS[kind]}. {sight_in_words(kind, token)}"
    height = TOP + CELL * rows + 12
    return picture("masks", WIDTH, height, mask_parts(kind, token), line, card_width=600)


def mask_parts(kind: str, token: int | None = None) -> list[str]:
    """What the picture consists of, for the deck too; token: whose row is framed."""
    tokens, step, marked = tokens_of(kind), (CELL, CELL), (token or 0) - 1

    def look(seen: int, i: int, j: int) -> dict[str, Any]:
        return {"fill": FILLS[seen], "ink": "#9a9a9a", "wide": 0.7, "kind": f"seen{seen}"}

    parts = [
        words(LEFT - 8, TOP - 10, "looks ↓  seen →", 12, "end"),
        *cell_names(tokens, [], LEFT, TOP, step, size=14, bold=(marked, -1)),
        *cell_names([], tokens, LEFT - 3, TOP - 2, step, turn=-50),
        *cells(sight(kind), LEFT, TOP, step, look, gap=0),
    ]
    if token is not None:
        frame = (LEFT - 1, TOP + CELL * marked, CELL * len(tokens) + 2, CELL)
        parts.append(area(*frame, "none", ink=INK, wide=3))
    return parts


def sight_in_words(kind: str, token: int) -> str:
    """What one token (from 1) sees, and what not."""
    tokens, row = tokens_of(kind), sight(kind)[token - 1]
    listed = {
        seen: ", ".join(t for t, s in zip(tokens, row, strict=True) if s == seen)
        for seen in (OWN, CROSS, 0)
    }
    sees = listed[OWN]
    if listed[CROSS]:
        sees = f"{sees}; by cross-attention {listed[CROSS]}"
    hidden = f" It does not see: {listed[0]}." if listed[0] else " Nothing is hidden from it."
    through = ", through the state that is handed on" if kind in (FORWARD, BACKWARD) else ""
    return f"“{tokens[token - 1]}” sees: {sees}{through}.{hidden}"
