"""Who may see whom: the masks of the three kinds of Transformer, and of ELMo's two LSTMs."""

from __future__ import annotations

from course_lib.teaching.page import Html, Live, card, paragraphs, svg_drawing, svg_image
from course_lib.teaching.playgrounds import playground
from course_lib.teaching.style import BLUE, ORANGE
from course_lib.teaching.svg import words

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
CELL, LEFT, TOP, WIDE = 32, 110, 78, 500  # pixels
THREE_SIZE = (1080, TOP + CELL * 9 + 34)
BOLD = ' font-weight="650"'
_FILLS = (
    '<defs><pattern id="course-cross" width="8" height="8" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="8" height="8" fill="#fff"/>'
    f'<rect width="4" height="8" fill="{ORANGE}"/></pattern></defs>'
)
LOOKS = {0: 'fill="#fff"', OWN: f'fill="{BLUE}"', CROSS: 'fill="url(#course-cross)"'}


def tokens_of(kind: str) -> list[str]:
    """What is read, and for an encoder-decoder after it what is written."""
    return READ + WRITTEN if kind == BOTH else READ


def sight(kind: str) -> list[list[int]]:
    """For each token a row: 0 where it does not see another, OWN where it sees it in its own text,
    CROSS where the decoder sees what the encoder read. Raises ValueError for another kind."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} was given; expected one of {', '.join(KINDS)}.")
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
    import ipywidgets as w

    most = len(READ) + len(WRITTEN)
    controls = {
        "kind": w.Dropdown(options=[(said, k) for k, said in KINDS.items()], value=kind,
                           description="kind"),
        "token": w.IntSlider(value=token, min=1, max=most, description="token that looks"),
    }  # fmt: skip

    def draw(kind: str, token: int) -> str:
        return mask_picture(kind, min(token, len(tokens_of(kind)))).html

    return playground(draw, controls, three_masks(token))


def three_masks(token: int | None = None) -> Html:
    """The masks of encoder, decoder and encoder-decoder side by side, as one image."""
    label = " ".join(f"{KINDS[kind]}: {sight_in_words(kind, token or 2)}" for kind in THREE)
    svg = svg_drawing(*THREE_SIZE, "".join(three_parts(token)), label)
    said = [f"{KINDS[kind]}. {sight_in_words(kind, token or 2)}" for kind in THREE]
    return Html(card(svg_image(svg, label) + paragraphs(said), "masks", 790), "\n".join(said))


def three_parts(token: int | None = None) -> list[str]:
    """The three pictures, each moved to its place; for the deck too."""
    return [
        f'<g transform="translate({x} 22)">{"".join(mask_parts(kind, token))}'
        f"{words(LEFT, -6, KINDS[kind], 15, 'start', BOLD)}</g>"
        for kind, x in zip(THREE, (0, 320, 640), strict=True)
    ]


def mask_picture(kind: str, token: int, *, image: bool = False) -> Html:
    """The squares of one kind, with the row of one token (from 1) framed; and in words."""
    said = sight_in_words(kind, token)
    label = f"{KINDS[kind]}. {said}"
    rows = len(tokens_of(kind))
    high = TOP + CELL * rows + 12
    svg = svg_drawing(WIDE, high, "".join(mask_parts(kind, token)), label)
    shown = svg_image(svg, label) if image else svg
    return Html(card(shown + paragraphs([label]), "masks", 600), label)


def mask_parts(kind: str, token: int | None = None) -> list[str]:
    """What the picture consists of, for the deck too; token: whose row is framed."""
    tokens = tokens_of(kind)
    parts = [_FILLS, words(LEFT - 8, TOP - 10, "looks ↓  seen →", 12, "end")]
    for i, row in enumerate(sight(kind)):
        y = TOP + CELL * i
        bold = BOLD if token == i + 1 else ""
        parts.append(words(LEFT - 8, y + 21, tokens[i], 14, "end", bold))
        x = LEFT + CELL * (i + 0.5)
        turned = f' transform="rotate(-50 {x:g} {TOP - 8})"'
        parts.append(words(x, TOP - 8, tokens[i], 13, "start", turned))
        parts += [
            f'<rect class="seen{seen}" x="{LEFT + CELL * j}" y="{y}" width="{CELL}" '
            f'height="{CELL}" {LOOKS[seen]} stroke="#9a9a9a" stroke-width="0.7"/>'
            for j, seen in enumerate(row)
        ]
    if token is not None:
        parts.append(
            f'<rect x="{LEFT - 1}" y="{TOP + CELL * (token - 1)}" height="{CELL}" '
            f'width="{CELL * len(tokens) + 2}" fill="none" stroke="#1a1a1a" stroke-width="3"/>'
        )
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
