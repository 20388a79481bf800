"""Controls above a picture: masking an own sentence, and the embedding stack of an own pair.

A playground is a function that draws (values in, HTML out) and the controls that give the values.
The functions that draw can be called, and tested, without any widget.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .page import Html, Live, card, note
from .style import cividis
from .tokens import tokens_legend, tokens_row

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..objectives.rows import Rows
    from ..text.wordpiece import WordPiece

_RING = (
    "<style>.course-playground :focus-visible{outline:3px solid #E69F00!important;outline-offset:2px}</style>"
)


def playground(draw: Callable[..., str], controls: Mapping[str, Any], static: Html) -> Live:
    """The controls in a column above what draw(**their values) returns; drawn anew at every change.

    A ValueError of `draw` is shown as a message in place of the picture.
    """
    import ipywidgets

    picture = ipywidgets.HTML()

    def redraw(_: Any = None) -> None:
        values = {name: control.value for name, control in controls.items()}
        try:
            picture.value = _RING + draw(**values)
        except ValueError as error:
            picture.value = card(note(str(error)), "message")

    for control in controls.values():
        control.layout.width = "min(620px, 98%)"
        control.style.description_width = "190px"
        control.observe(redraw, names="value")
    redraw()
    box = ipywidgets.VBox([*controls.values(), picture])
    box.add_class("course-playground")
    return Live(box, static, dict(controls))


# ---------------------------------------------------------------- masking


def masking_playground(
    tokenizer: WordPiece,
    text: str = "the river rose over its bank after the spring rain, and the old bridge was closed.",
) -> Live:
    """Mask an own sentence: rate, share of [MASK], share of random tokens, seed and epoch by slider."""
    import ipywidgets as w

    controls = {
        "text": w.Text(value=text, description="sentence"),
        "rate": _share(w, 0.15, "rate: share chosen"),
        "mask_share": _share(w, 0.8, "of these, to [MASK]"),
        "random_share": _share(w, 0.1, "of these, to a random token"),
        "seed": w.IntSlider(value=0, min=0, max=50, description="seed"),
        "epoch": w.IntSlider(value=0, min=0, max=39, description="epoch"),
    }

    def draw(**values: Any) -> str:
        return masking_picture(tokenizer, **values).html

    return playground(draw, controls, masking_picture(tokenizer, text))


def _share(w: Any, value: float, name: str) -> Any:
    return w.FloatSlider(value=value, min=0, max=1, step=0.05, readout_format=".0%", description=name)


def masking_picture(
    tokenizer: WordPiece,
    text: str,
    rate: float = 0.15,
    mask_share: float = 0.8,
    random_share: float = 0.1,
    seed: int = 0,
    epoch: int = 0,
) -> Html:
    """One sentence after mask_rows, as token boxes with the original words under what was changed.

    Raises ValueError for an empty sentence and for shares that sum to more than one.
    """
    from ..objectives.masked_lm import mask_rows

    kept_share = round(1 - mask_share - random_share, 9)
    if kept_share < 0:
        raise ValueError(
            f"[MASK] {mask_share:.0%} and random {random_share:.0%} make {mask_share + random_share:.0%} "
            "together; expected at most 100%: what is left over is kept. Lower one of the two."
        )
    rows = _one_row(tokenizer, text)
    mix = (mask_share, random_share, kept_share)
    masked = mask_rows(rows, tokenizer.special, rate=rate, mix=mix, seed=seed, epoch=epoch)
    before, after = rows.input_ids[0].tolist(), masked.input_ids[0].tolist()
    actions = masked.action[0].tolist()
    labels = [_under(tokenizer, *one) for one in zip(before, after, actions, strict=True)]
    row = tokens_row([tokenizer.token(i) for i in after], actions, labels)
    said = masking_counts(before, after, actions)
    left = f"{said} Kept is what is left over: {kept_share:.0%} of the chosen."
    html = f'{row.html}{card(tokens_legend() + f"<p>{escape(left)}</p>", "masking-counts")}'
    return Html(html, f"{row.text}\n{left}")


def masking_counts(before: Sequence[int], after: Sequence[int], actions: Sequence[int]) -> str:
    """How many positions met which fate, in a sentence."""
    masked, random, kept = (sum(a == kind for a in actions) for kind in (1, 2, 3))
    same = sum(a == 2 and x == y for a, x, y in zip(actions, before, after, strict=True))
    said = (
        f"{len(actions)} tokens, [CLS] and [SEP] counted; {masked + random + kept} chosen: "
        f"{masked} became [MASK], {random} a random token, {kept} kept."
    )
    if same:
        said += f" {same} random draw{'s' * (same > 1)} gave the very token that was there."
    return said


def _under(tokenizer: WordPiece, before: int, after: int, action: int) -> str:
    if action == 2 and before == after:
        return "drew itself"
    return {0: "", 1: tokenizer.token(before), 2: tokenizer.token(before), 3: "asked"}[action]


def _one_row(tokenizer: WordPiece, a: str, b: str | None = None) -> Rows:
    """[CLS] a [SEP] or [CLS] a [SEP] b [SEP] as one row without padding."""
    from ..objectives.rows import pack, to_rows

    first = tokenizer.encode(a)
    second = None if b is None else tokenizer.encode(b)
    if not first or second == []:
        raise ValueError("The sentence is empty; expected at least one word. Type one above.")
    length = len(first) + 2 + (0 if second is None else len(second) + 1)
    return to_rows([pack(first, second, tokenizer.special, length)])


# ---------------------------------------------------------------- the embedding stack

STAGES = {"token": "token", "segment": "segment", "position": "position", "sum": "sum", "normed": "LayerNorm"}
SIGNS = ("", "+", "+", "=", "→")
DIMS = 14  # how many of the H numbers are drawn


def embedding_stack_view(encoder: nn.Module, tokenizer: WordPiece, a: str, b: str) -> Live:
    """Token + segment + position = sum → LayerNorm, for an own pair of sentences.

    A slider says which token's numbers are written out.
    """
    import ipywidgets as w

    controls = {
        "a": w.Text(value=a, description="sentence A"),
        "b": w.Text(value=b, description="sentence B"),
        "place": w.IntSlider(value=1, min=0, max=_length(tokenizer, a, b) - 1, description="token looked at"),
    }

    def longest(_: Any) -> None:
        controls["place"].max = max(0, _length(tokenizer, controls["a"].value, controls["b"].value) - 1)

    for name in ("a", "b"):
        controls[name].observe(longest, names="value")

    def draw(**values: Any) -> str:
        return embedding_picture(encoder, tokenizer, **values).html

    return playground(draw, controls, embedding_picture(encoder, tokenizer, a, b, 1))


def _length(tokenizer: WordPiece, a: str, b: str) -> int:
    return len(tokenizer.encode(a)) + len(tokenizer.encode(b)) + 3


def embedding_picture(encoder: nn.Module, tokenizer: WordPiece, a: str, b: str, place: int = 1) -> Html:
    """The five stages as heat strips, a row a token, and the numbers of the token at `place` (from 0)."""
    import torch

    rows = _one_row(tokenizer, a, b)
    embeddings: Any = encoder.embeddings
    with torch.no_grad():
        parts = embeddings.parts(rows.input_ids, rows.token_type_ids)
    stages = {name: parts[name][0].detach() for name in STAGES}  # each (T, H)
    place = min(max(place, 0), len(stages["sum"]) - 1)
    ids, types = rows.input_ids[0].tolist(), rows.token_type_ids[0].tolist()
    tokens = [tokenizer.token(i) for i in ids]
    places = [(ids[i], types[i], i) for i in range(len(ids))]
    strips = _strips(stages, tokens, places, place)
    numbers = _numbers(stages, tokens[place], places[place], place)
    dims = min(DIMS, stages["sum"].shape[1])
    said = (
        f"The first {dims} of {stages['sum'].shape[1]} numbers a token. Each stage has its own scale: dark is "
        "negative, yellow positive. LayerNorm sets every token's mean and standard deviation anew."
    )
    html = card(f"{strips}{numbers}<p style='margin:6px 0 0;color:#444'>{said}</p>", "embedding-stack")
    return Html(html, _in_words(stages, tokens, places, place))


def _strips(
    stages: Mapping[str, Tensor], tokens: Sequence[str], places: Sequence[tuple[int, int, int]], place: int
) -> str:
    """Five small heat maps side by side, T rows each; the row at `place` is framed."""
    row, top, wide, gap, left = 18, 40, 92, 24, 104
    height = top + row * len(tokens) + 8
    out = []
    for k, (name, values) in enumerate(stages.items()):
        x = left + k * (wide + gap)
        uri = heat_png(values[:, :DIMS])
        out.append(f'<text x="{x + wide / 2}" y="16" text-anchor="middle" font-weight="600">{STAGES[name]}</text>')
        out.append(f'<text x="{x - gap / 2}" y="{(top + height) / 2}" text-anchor="middle" font-size="17">{SIGNS[k]}</text>')
        out.append(
            f'<image x="{x}" y="{top}" width="{wide}" height="{row * len(tokens)}" href="{uri}" '
            'preserveAspectRatio="none" style="image-rendering:pixelated"/>'
        )
        if k < 3:
            label = ("id", "segment", "place")[k]
            out.append(f'<text x="{x + wide / 2}" y="33" text-anchor="middle" font-size="11" fill="#555">'
                       f"{label} {places[place][k]}</text>")  # fmt: skip
        y = top + row * place
        out.append(f'<rect x="{x}" y="{y}" width="{wide}" height="{row}" fill="none" stroke="#D55E00" stroke-width="3"/>')
    for i, token in enumerate(tokens):
        weight, mark = ("700", "▸ ") if i == place else ("400", "")
        out.append(f'<text x="{left - 8}" y="{top + row * i + 13}" text-anchor="end" font-size="12" '
                   f'font-weight="{weight}" font-family="ui-monospace,Menlo,monospace">{mark}{escape(token)}</text>')  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="680" height="{height}" viewBox="0 0 680 {height}" '
        'role="img" aria-label="token, segment and position embeddings, their sum, and the sum after LayerNorm" '
        'style="max-width:100%;height:auto;display:block"><g font-family="system-ui,sans-serif" font-size="13" '
        f'fill="#1a1a1a">{"".join(out)}</g></svg>'
    )


def _numbers(
    stages: Mapping[str, Tensor], token: str, ids: tuple[int, int, int], place: int
) -> str:
    """A table of the first numbers of one token, stage by stage, with mean and deviation over all H."""
    cell = "padding:2px 4px;text-align:right;color:#1a1a1a;background:#fff;font-size:12px"
    rows = []
    for k, (name, values) in enumerate(stages.items()):
        which = f" [{ids[k]}]" if k < 3 else ""
        vector = values[place]
        numbers = "".join(f'<td style="{cell}">{_short(v)}</td>' for v in vector[:8].tolist())
        rows.append(
            f'<tr style="background:#fff"><td style="{cell};text-align:left;white-space:nowrap">'
            f"{SIGNS[k]} {STAGES[name]}{which}</td>{numbers}<td style='{cell}'>…</td>"
            f'<td style="{cell}">{_short(vector.mean().item())}</td>'
            f'<td style="{cell}">{_short(vector.std(unbiased=False).item())}</td></tr>'
        )
    heads = "".join(f'<th style="{cell};color:#555">{i}</th>' for i in range(min(8, len(vector))))
    head = (
        f'<th style="{cell};text-align:left">“{escape(token)}”, place {place}</th>{heads}<th></th>'
        f'<th style="{cell}">mean</th><th style="{cell}">sd</th>'
    )
    style = "border-collapse:collapse;margin:8px 0 0;background:#fff;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><tr style="background:#fff">{head}</tr>{"".join(rows)}</table>'


def _short(value: float) -> str:
    """Three decimals, a true minus sign, and no minus zero."""
    text = f"{value:.3f}"
    return "0.000" if text == "-0.000" else text.replace("-", "−")


def _in_words(
    stages: Mapping[str, Tensor], tokens: Sequence[str], places: Sequence[tuple[int, int, int]], place: int
) -> str:
    lines = [f"{' '.join(tokens)}", f"token {tokens[place]!r}: id, segment, place {places[place]}"]
    for sign, (name, values) in zip(SIGNS, stages.items(), strict=True):
        first = "  ".join(_short(v) for v in values[place, :4].tolist())
        lines.append(f"{sign:>2} {STAGES[name]:<10} {first} …")
    return "\n".join(lines)


def heat_png(values: Tensor) -> str:
    """A matrix (rows × columns) as a tiny PNG, one pixel a number, zero in the middle of the scale."""
    largest = float(values.abs().max()) or 1.0
    lines = [
        b"\0" + bytes(x for v in row for x in cividis(0.5 + 0.5 * v / largest)) for row in values.tolist()
    ]
    size = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", size), (b"IDAT", zlib.compress(b"".join(lines), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()
