"""DeBERTa's three scores for a sentence of the reader's own: each alone, their sum, its softmax.

T tokens, special ones counted; D head size. Layers and heads are counted from 1, as the papers do,
positions from 0. Token i is the query, token j the key (He et al. 2020, equation 4).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_lib.teaching.page import Html, Live, number, signed
from course_lib.teaching.playgrounds import (
    check_words,
    checkbox,
    one_row,
    playground,
    slider,
    text_field,
)
from course_lib.teaching.style import VERMILION
from course_lib.teaching.svg import (
    area,
    cell_names,
    dot,
    heat,
    heat_scale,
    picture,
    rect,
    shortened,
    words,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from course_lib.kernels.disentangled import ScoreParts
    from course_lib.text.wordpiece import WordPiece

MOST_TOKENS = 24
TERMS = {  # in the order of equation 4; the second and third are named so by the configuration
    "c2c": "content-to-content",
    "c2p": "content-to-position",
    "p2c": "position-to-content",
}
WIDTH, LEFT, PANEL, GAP, TOP = 776, 96, 204, 22, 84  # pixels
LETTERS = 10  # characters of a token that are shown


@dataclass(frozen=True)
class ScoreMaps:
    """The scores of one head over one text; every map is (T, T): rows are queries, columns keys.

    parts: by the names of TERMS, each divided by sqrt(D · number of terms); None for a term that
    the model does not have."""

    tokens: list[str]
    parts: dict[str, Tensor | None]
    layer: int
    head: int
    remark: str = ""  # what is special about this layer

    def total(self, terms: Collection[str] = tuple(TERMS)) -> Tensor:
        """The sum of the chosen terms, (T, T); ValueError if the model has none of them."""
        chosen = [part for name, part in self.parts.items() if name in terms and part is not None]
        if not chosen:
            have = ", ".join(TERMS[n] for n, part in self.parts.items() if part is not None)
            raise ValueError(f"No term of this model is ticked; expected at least one of: {have}.")
        first, *others = chosen
        for part in others:
            first = first + part
        return first

    @property
    def largest(self) -> float:
        """The end of the scale that all score maps share."""
        maps = [part for part in self.parts.values() if part is not None] + [self.total()]
        return max(float(one.abs().max()) for one in maps)


def score_maps(model: nn.Module, tokenizer: WordPiece, text: str, *, position: int = 1) -> Live:
    """The three maps of a sentence, their sum and its softmax, for a layer and a head.

    model: a small DeBERTa, its encoder or a masked-word model on it; tokenizer: the one it was
    trained with. Controls: text, layer, head, position (of the query token), and a box for each
    term: c2c, c2p, p2c. A text that cannot be read is answered in the view.
    Raises ValueError for a model that is no DeBERTa and for another model's tokenizer.
    """
    import ipywidgets as w

    config = _encoder_of(model).config
    start = measure_scores(model, tokenizer, text)
    controls = {
        "text": text_field("sentence", text),
        "layer": slider("layer", 1, 1, config.num_layers),
        "head": slider("head", 1, 1, config.num_heads),
        "position": slider("position of the query token", position, 0, len(start.tokens) - 1),
    }
    boxes = {
        name: checkbox(label, start.parts[name] is not None, indent=False,
                       disabled=start.parts[name] is None)
        for name, label in TERMS.items()
    }  # fmt: skip

    def follow(change: Any) -> None:
        controls["position"].max = min(len(tokenizer.encode(change["new"])) + 2, MOST_TOKENS) - 1

    controls["text"].observe(follow, names="value")

    def draw(text: str, layer: int, head: int, position: int, **ticked: bool) -> Html:
        measured = measure_scores(model, tokenizer, text, layer, head)
        return draw_score_maps(measured, position, [name for name, on in ticked.items() if on])

    live = playground(draw, controls | boxes, draw_score_maps(start, position))
    for box in boxes.values():
        box.layout.width = "auto"
        box.style.description_width = "initial"
    above, picture_box = live.widget.children[: len(controls)], live.widget.children[-1]
    row = w.HBox([w.Label("terms in the sum:"), *boxes.values()])
    row.layout.flex_flow = "row wrap"
    live.widget.children = (*above, row, picture_box)
    return live


def measure_scores(
    model: nn.Module, tokenizer: WordPiece, text: str, layer: int = 1, head: int = 1
) -> ScoreMaps:
    """The scores of one head over [CLS] text [SEP]; dropout is off.

    Raises ValueError for a model that is no DeBERTa, another model's tokenizer, a layer or head it
    does not have, an empty text, unknown words and more than 24 tokens.
    """
    import torch

    from course_lib.kernels.positions import score_scale

    encoder = _encoder_of(model)
    config = encoder.config
    if config.vocab_size != tokenizer.vocab_size:
        raise ValueError(
            f"a model of {config.vocab_size:,} tokens and a tokenizer of "
            f"{tokenizer.vocab_size:,} were given; expected the tokenizer it was trained with."
        )
    if not 1 <= head <= config.num_heads:
        raise ValueError(f"head={head!r} was given; expected 1 to {config.num_heads}.")
    check_words(tokenizer, text, min(MOST_TOKENS, config.longest_text))
    sequences = one_row(tokenizer, text)
    device = next(encoder.parameters()).device
    ids, real = sequences.input_ids.to(device), sequences.attention_mask.to(device)
    was_training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            parts = attention_parts(encoder, ids, real, layer)
    finally:
        encoder.train(was_training)
    scale = score_scale(config.hidden_size // config.num_heads, *parts[1:])
    maps = [None if part is None else part[0, head - 1].float().cpu() / scale for part in parts]
    remark = ""
    if hasattr(model, "decoder") and layer == config.num_layers:
        remark = (
            "Shown is the encoder's own pass. To predict masked tokens, the enhanced mask "
            "decoder visits this layer with other queries, to which the absolute position is added."
        )
    tokens = [tokenizer.token(i) for i in ids[0].tolist()]
    return ScoreMaps(tokens, dict(zip(TERMS, maps, strict=True)), layer, head, remark)


def attention_parts(
    encoder: nn.Module, ids: Tensor, mask: Tensor | None = None, layer: int = 1
) -> ScoreParts:
    """The three scores of every pair in one layer, each (B, A, T, T), before scale and sum.

    encoder: a DeBERTa encoder; ids, mask: (B, T), as the encoder takes them. No mask is laid over
    the scores. Raises ValueError for another kind of encoder and for a layer it does not have.
    """
    from course_lib.kernels.disentangled import score_parts

    ours = _encoder_of(encoder)
    blocks = ours.stack.blocks
    if not 1 <= layer <= len(blocks):
        raise ValueError(f"layer={layer!r} was given; expected 1 to {len(blocks)}.")
    x = ours(ids, mask, output_hidden_states=True).hidden_states[layer - 1]  # (B, T, H)
    attention = blocks[layer - 1].attention
    query, key, _ = attention.projections(x, None)  # (B, A, T, D)
    return score_parts(query, key, *attention.project_positions(x))


def _encoder_of(model: nn.Module) -> Any:
    from course_lib.family.deberta import DebertaStack

    encoder = getattr(model, "encoder", model)
    if not isinstance(getattr(encoder, "stack", None), DebertaStack):
        raise ValueError(
            f"a {type(model).__name__} was given; expected a DeBERTa, such as "
            "family.deberta.deberta_encoder makes: only its scores have three parts."
        )
    return encoder


# ---------------------------------------------------------------- in words


def _sentences(
    maps: ScoreMaps, position: int, terms: Collection[str], weights: Tensor
) -> list[str]:
    """What the query token's strongest key owes to each term."""
    best = int(weights[position].argmax())
    total = maps.total(terms)[position, best].item()
    terms_in = {n: part for n, part in maps.parts.items() if n in terms and part is not None}
    values = {n: round(part[position, best].item(), 2) for n, part in terms_in.items()}
    sums = " + ".join(f"{TERMS[n]} {number(value)}" for n, value in values.items())
    exact = abs(sum(values.values()) - round(total, 2)) < 1e-6  # also when rounded
    equals = f" {'=' if exact else '≈'} {number(total)}" if len(terms_in) > 1 else ""
    lines = [
        f"“{maps.tokens[position]}” (position {position}) attends most to “{maps.tokens[best]}” "
        f"(position {best}, distance {position} − {best} = {signed(position - best)}): "
        f"{sums}{equals}, which the softmax makes {100 * weights[position, best].item():.0f}%."
    ]
    if out := [TERMS[n] for n, part in maps.parts.items() if part is not None and n not in terms]:
        lines.append(f"Left out of the sum: {' and '.join(out)}. The scale is unchanged.")
    return [*lines, *([maps.remark] if maps.remark else [])]


def _in_numbers(maps: ScoreMaps, position: int, terms: Collection[str], weights: Tensor) -> str:
    """The row of the query token, a line a key: what the colours show."""
    parts = {n: part for n, part in maps.parts.items() if part is not None}
    head = f"{'key':<14}" + "".join(f"{n:>8}" for n in [*parts, "sum", "weight"])
    total, lines = maps.total(terms), [head]
    for j, token in enumerate(maps.tokens):
        values = [part[position, j].item() for part in [*parts.values(), total, weights]]
        lines.append(f"{token:<14}" + "".join(f"{number(v):>8}" for v in values))
    return "\n".join(lines)


# ---------------------------------------------------------------- drawn


def draw_score_maps(
    maps: ScoreMaps, position: int = 1, terms: Collection[str] = tuple(TERMS)
) -> Html:
    """Three maps above, their sum and its softmax below; a frame around the query token's row.

    position: of the query token, from 0; one beyond the last is taken as the last. terms: those in
    the sum. Raises ValueError for terms that do not exist, and if the model has none of them.
    """
    if unknown := set(terms) - set(TERMS):
        raise ValueError(
            f"terms {sorted(unknown)} were given; expected some of {', '.join(TERMS)}."
        )
    total = maps.total(terms)
    weights = total.softmax(-1)
    position = min(max(position, 0), len(maps.tokens) - 1)
    sentences = _sentences(maps, position, terms, weights)
    marked, top = (position, int(weights[position].argmax())), float(weights.max())
    parts = _token_names(maps.tokens, position)
    for k, (name, title) in enumerate(TERMS.items()):
        part, sign = maps.parts[name], "+" if k else ""
        if part is None:
            parts += _absent(k, title)
        else:
            parts += _map(k, 0, title, sign, part / maps.largest, marked, name not in terms)
    parts += _map(0, 1, "= sum", "", total / maps.largest, marked)
    parts += _map(1, 1, "softmax: weights", "→", 2 * weights / top - 1, marked)
    parts += _scales(maps.largest, top)
    where = f"layer {maps.layer}, head {maps.head}"
    head = f"{where}; query {maps.tokens[position]!r} (position {position})"
    numbers = _in_numbers(maps, position, terms, weights)
    return picture(
        "score-maps", WIDTH, _corner(0, 1)[1] + PANEL + 8, parts, sentences, card_width=800,
        label=f"{where}. {' '.join(sentences)}", text="\n".join([head, numbers, *sentences]),
    )  # fmt: skip


def _corner(column: int, row: int) -> tuple[int, int]:
    return LEFT + column * (PANEL + GAP), TOP + row * (PANEL + 34)


def _map(
    column: int, row: int, title: str, sign: str, shades: Tensor, marked: tuple[int, int],
    faded: bool = False,
) -> list[str]:  # fmt: skip
    """A (T, T) map of numbers from −1 to 1; marked: the query, its row framed, and the key to be
    ringed in it."""
    (x, y), cell = _corner(column, row), PANEL / len(shades)
    query, best = marked
    return [
        words(x, y - 8 if row else 14, title + " (left out)" * faded, 13, "start", bold=True),
        words(x - GAP / 2, y + PANEL / 2 + 6, sign, 18),
        heat(shades, x, y, PANEL, PANEL, largest=1.0, opacity=0.25 if faded else 1.0),
        area(x, y + cell * query, PANEL, cell, "none", ink=VERMILION, wide=2.5),
        dot(x + cell * (best + 0.5), y + cell * (query + 0.5), min(max(2.5, cell / 4), 6), "#fff",
            ink="#000", wide=1.5, kind="best"),
    ]  # fmt: skip


def _absent(column: int, title: str) -> list[str]:
    x, y = _corner(column, 0)
    return [
        words(x, 14, title, 13, "start", bold=True),
        rect(x + 1, y + 1, PANEL - 2, PANEL - 2, rounding=0, wide=1, dash="4 4"),
        words(x + PANEL / 2, y + PANEL / 2, "not in this model", 13, ink="#555"),
    ]


def _token_names(tokens: list[str], position: int) -> list[str]:
    """Keys, slanted, above each map of the first row; queries left of both, one of them bold."""
    cell = PANEL / len(tokens)
    names = [shortened(token, LETTERS) for token in tokens]
    marked = [f"▸ {name}" if i == position else name for i, name in enumerate(names)]
    parts, step = [], (cell, cell)
    for row in (0, 1):
        x, y = _corner(0, row)
        size = round(min(12, max(9, cell)))
        parts += cell_names(marked, [], x, y, step, size=size, bold=(position, -1), mono=True)
    for column in range(3):
        size = round(min(11, max(9, cell)))
        parts += cell_names([], names, *_corner(column, 0), step, size=size, turn=-60, mono=True)
    return parts


def _scales(largest: float, top: float) -> list[str]:
    """What the colours mean, in the free cell of the second row."""
    x, y = _corner(2, 1)
    scales = {
        "all four score maps": (number(-largest), "0", number(largest)),
        "weights": ("0", f"{50 * top:.0f}%", f"{100 * top:.0f}%"),
    }
    notes = ("rows: queries, columns: keys", "framed: the chosen query token",
             "○ the key it attends to most")  # fmt: skip
    return [
        part
        for n, (title, ends) in enumerate(scales.items())
        for part in (
            words(x + 8, y + 14 + 62 * n, title, 13, "start", bold=True),
            heat_scale(x + 8, y + 22 + 62 * n, 180, ends),
        )
    ] + [
        words(x + 8, y + 152 + 18 * n, note, 12, "start", ink="#444")
        for n, note in enumerate(notes)
    ]
