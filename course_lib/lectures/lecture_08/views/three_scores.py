"""DeBERTa's three scores for a sentence of the reader's own: each alone, their sum, its softmax.

T tokens, special ones counted; D head size. Layers and heads are counted from 1, as the papers do,
positions from 0. Token i is the query, token j the key (He et al. 2020, equation 4).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from course_lib.teaching.embedding_stack import heat_png
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
from course_lib.teaching.playgrounds import check_words, one_row, playground

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
WIDE, LEFT, PANEL, GAP, TOP = 776, 96, 204, 22, 84  # pixels
LETTERS = 10  # characters of a token that are shown
MONO = "ui-monospace,Menlo,Consolas,monospace"


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

    encoder = _encoder_of(model)
    config = encoder.config
    start = measure_scores(model, tokenizer, text)
    controls = {
        "text": w.Text(value=text, description="sentence"),
        "layer": w.IntSlider(value=1, min=1, max=config.num_layers, description="layer"),
        "head": w.IntSlider(value=1, min=1, max=config.num_heads, description="head"),
        "position": w.IntSlider(
            value=position,
            min=0,
            max=len(start.tokens) - 1,
            description="position of the query token",
        ),
    }
    boxes = {
        name: w.Checkbox(value=start.parts[name] is not None, description=said, indent=False,
                         disabled=start.parts[name] is None)
        for name, said in TERMS.items()
    }  # fmt: skip

    def follow(change: Any) -> None:
        controls["position"].max = min(len(tokenizer.encode(change["new"])) + 2, MOST_TOKENS) - 1

    controls["text"].observe(follow, names="value")

    def draw(text: str, layer: int, head: int, position: int, **ticked: bool) -> str:
        found = measure_scores(model, tokenizer, text, layer, head)
        return draw_score_maps(found, position, [name for name, on in ticked.items() if on]).html

    live = playground(draw, controls | boxes, draw_score_maps(start, position, as_image=True))
    for box in boxes.values():
        box.layout.width = "auto"
        box.style.description_width = "initial"
    above, picture = live.widget.children[: len(controls)], live.widget.children[-1]
    row = w.HBox([w.Label("terms in the sum:"), *boxes.values()])
    row.layout.flex_flow = "row wrap"
    live.widget.children = (*above, row, picture)
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
    return score_parts(query, key, *attention.positions(x))


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


def _said(found: ScoreMaps, position: int, terms: Collection[str], weights: Tensor) -> list[str]:
    """What the query token's strongest key owes to each term."""
    best = int(weights[position].argmax())
    total = found.total(terms)[position, best].item()
    shown = {n: part for n, part in found.parts.items() if n in terms and part is not None}
    values = {n: round(part[position, best].item(), 2) for n, part in shown.items()}
    sums = " + ".join(f"{TERMS[n]} {number(value)}" for n, value in values.items())
    exact = abs(sum(values.values()) - round(total, 2)) < 1e-6  # also when rounded
    equals = f" {'=' if exact else '≈'} {number(total)}" if len(shown) > 1 else ""
    lines = [
        f"“{found.tokens[position]}” (position {position}) attends most to “{found.tokens[best]}” "
        f"(position {best}, distance {position} − {best} = {signed(position - best)}): "
        f"{sums}{equals}, which the softmax makes {100 * weights[position, best].item():.0f}%."
    ]
    if out := [TERMS[n] for n, part in found.parts.items() if part is not None and n not in terms]:
        lines.append(f"Left out of the sum: {' and '.join(out)}. The scale stays what it was.")
    return [*lines, *([found.remark] if found.remark else [])]


def _in_numbers(found: ScoreMaps, position: int, terms: Collection[str], weights: Tensor) -> str:
    """The row of the query token, a line a key: what the colours show."""
    maps = {n: part for n, part in found.parts.items() if part is not None}
    head = f"{'key':<14}" + "".join(f"{n:>8}" for n in [*maps, "sum", "weight"])
    total, lines = found.total(terms), [head]
    for j, token in enumerate(found.tokens):
        values = [part[position, j].item() for part in [*maps.values(), total, weights]]
        lines.append(f"{token:<14}" + "".join(f"{number(v):>8}" for v in values))
    return "\n".join(lines)


# ---------------------------------------------------------------- drawn


def draw_score_maps(
    found: ScoreMaps,
    position: int = 1,
    terms: Collection[str] = tuple(TERMS),
    *,
    as_image: bool = False,
) -> Html:
    """Three maps above, their sum and its softmax below; a frame around the query token's row.

    position: of the query token, from 0; one beyond the last is taken as the last. terms: those in
    the sum. as_image: for a page without a kernel (see page.svg_image).
    Raises ValueError for terms that do not exist, and if the model has none of them.
    """
    if unknown := set(terms) - set(TERMS):
        raise ValueError(
            f"terms {sorted(unknown)} were given; expected some of {', '.join(TERMS)}."
        )
    total = found.total(terms)
    weights = total.softmax(-1)
    position = min(max(position, 0), len(found.tokens) - 1)
    said = _said(found, position, terms, weights)
    best = int(weights[position].argmax())
    panels = [_heads(found.tokens)]
    for k, (name, title) in enumerate(TERMS.items()):
        part = found.parts[name]
        sign = "+" if k else ""
        if part is None:
            panels.append(_absent(k, title))
        else:
            faded = name not in terms
            panels.append(_map(k, 0, title, sign, part / found.largest, position, best, faded))
    panels.append(_map(0, 1, "sum", "=", total / found.largest, position, best))
    top = float(weights.max())
    panels.append(_map(1, 1, "softmax: weights", "→", 2 * weights / top - 1, position, best))
    panels.append(_scales(found.largest, top))
    names = _names(found.tokens, position, 0) + _names(found.tokens, position, 1)
    label = f"layer {found.layer}, head {found.head}. {' '.join(said)}"
    drawing = svg_drawing(WIDE, _row_top(1) + PANEL + 8, names + "".join(panels), label)
    drawing = svg_image(drawing, label) if as_image else drawing
    html = card(drawing + paragraphs(said), "score-maps", 800)
    query = f"{found.tokens[position]!r} (position {position})"
    head = f"layer {found.layer}, head {found.head}; query {query}"
    return Html(html, "\n".join([head, _in_numbers(found, position, terms, weights), *said]))


def _row_top(row: int) -> int:
    return TOP + row * (PANEL + 34)


def _corner(column: int, row: int) -> tuple[int, int]:
    return LEFT + column * (PANEL + GAP), _row_top(row)


def _map(
    column: int, row: int, title: str, sign: str, shades: Tensor, position: int, best: int,
    faded: bool = False,
) -> str:  # fmt: skip
    """A (T, T) map of numbers from −1 to 1, the query's row framed, its strongest key ringed."""
    x, y = _corner(column, row)
    cell = PANEL / len(shades)
    head = y - 8 if row else 14
    named = title + " (left out)" * faded if column or not row else f"{sign} {title}"
    pale = ' opacity="0.25"' if faded else ""
    between = sign if column else ""
    return (
        f'<text x="{x}" y="{head}" font-weight="600">{named}</text>'
        f'<text x="{x - GAP / 2}" y="{y + PANEL / 2 + 6}" text-anchor="middle" '
        f'font-size="18">{between}</text>'
        f'<image x="{x}" y="{y}" width="{PANEL}" height="{PANEL}" href="{heat_png(shades, 1.0)}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated"{pale}/>'
        f'<rect x="{x}" y="{y + cell * position:.1f}" width="{PANEL}" height="{cell:.1f}" '
        'fill="none" stroke="#D55E00" stroke-width="2.5"/>'
        f'<circle class="best" cx="{x + cell * (best + 0.5):.1f}" '
        f'cy="{y + cell * (position + 0.5):.1f}" r="{min(max(2.5, cell / 4), 6):.1f}" fill="#fff" '
        'stroke="#000" stroke-width="1.5"/>'
    )


def _absent(column: int, title: str) -> str:
    x, y = _corner(column, 0)
    return (
        f'<text x="{x}" y="14" font-weight="600">{title}</text>'
        f'<rect x="{x + 1}" y="{y + 1}" width="{PANEL - 2}" height="{PANEL - 2}" fill="#fff" '
        'stroke="#8a8a8a" stroke-dasharray="4 4"/>'
        f'<text x="{x + PANEL / 2}" y="{y + PANEL / 2}" text-anchor="middle" fill="#555">'
        "not in this model</text>"
    )


def _heads(tokens: list[str]) -> str:
    """The keys, slanted, above each map of the first row."""
    cell = PANEL / len(tokens)
    size = min(11, max(9, cell))
    parts = []
    for column in range(3):
        x, y = _corner(column, 0)
        for j, token in enumerate(tokens):
            at = f"{x + cell * (j + 0.5) + 3:.1f},{y - 5}"
            parts.append(f'<text transform="translate({at}) rotate(-60)">{_short(token)}</text>')
    return f'<g font-family="{MONO}" font-size="{size:.0f}">{"".join(parts)}</g>'


def _names(tokens: list[str], position: int, row: int) -> str:
    """The query tokens, left of a row of maps; the chosen one bold, with a sign."""
    cell, y = PANEL / len(tokens), _row_top(row)
    size = min(12, max(9, cell))
    parts = [
        f'<text x="{LEFT - 6}" y="{y + cell * (i + 0.5) + size * 0.35:.1f}" text-anchor="end"'
        + (
            f' font-weight="700">▸ {_short(token)}</text>'
            if i == position
            else f">{_short(token)}</text>"
        )
        for i, token in enumerate(tokens)
    ]
    return f'<g font-family="{MONO}" font-size="{size:.0f}">{"".join(parts)}</g>'


def _short(token: str) -> str:
    return escape(token if len(token) <= LETTERS else token[: LETTERS - 1] + "…")


def _scales(largest: float, top: float) -> str:
    """What the colours mean, in the free cell of the second row."""
    import torch

    x, y = _corner(2, 1)
    bar = heat_png(torch.linspace(-1, 1, 64)[None], 1.0)
    parts = []
    for k, (title, ends) in enumerate(
        (
            ("all four score maps", (number(-largest), "0", number(largest))),
            ("weights", ("0", f"{50 * top:.0f}%", f"{100 * top:.0f}%")),
        )
    ):
        at = y + 14 + 62 * k
        parts.append(
            f'<text x="{x + 8}" y="{at}" font-weight="600">{title}</text>'
            f'<image x="{x + 8}" y="{at + 8}" width="180" height="12" href="{bar}" '
            'preserveAspectRatio="none"/>'
        )
        for end, anchor, across in zip(ends, ("start", "middle", "end"), (8, 98, 188), strict=True):
            parts.append(
                f'<text x="{x + across}" y="{at + 34}" text-anchor="{anchor}" fill="#444" '
                f'font-size="12">{end}</text>'
            )
    lines = ("rows: queries, columns: keys", "framed: the chosen query token",
             "○ the key it attends to most")  # fmt: skip
    for k, line in enumerate(lines):
        parts.append(
            f'<text x="{x + 8}" y="{y + 152 + 18 * k}" font-size="12" fill="#444">{line}</text>'
        )
    return "".join(parts)
