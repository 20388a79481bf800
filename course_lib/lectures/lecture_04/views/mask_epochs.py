"""One text over many epochs: which tokens are selected under static masking, copies, dynamic.

P epochs, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from course_lib.teaching.page import Html, Live, card, svg_drawing, svg_image
from course_lib.teaching.playgrounds import one_row, playground, share_slider
from course_lib.teaching.tokens import KEPT, MASKED, PLAIN, REPLACED, SAID

if TYPE_CHECKING:
    from torch import Tensor

    from course_lib.text.byte_bpe import ByteBPE
    from course_lib.text.wordpiece import WordPiece

TEXT = "the banker counts the red coin of her old friend near the mill ."
SEED = 3  # one where ten copies select what is to be expected, eight tokens in ten
MOST_TOKENS, MOST_EPOCHS, IN_PRINT = 60, 40, 14
LETTER = {PLAIN: "·", MASKED: "H", REPLACED: "R", KEPT: "K"}  # in the plain-text twin
WIDE, LEFT = 740, 72  # pixels

_PATTERN = (
    '<defs><pattern id="course-hidden" width="7" height="7" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="7" height="7" fill="#fff6e3"/>'
    '<rect width="3.5" height="7" fill="#E69F00"/></pattern></defs>'
)


class MaskedEpochs(NamedTuple):
    """A text and what every epoch does to it, one scheme."""

    tokens: list[str]  # T, special tokens included
    may: list[bool]  # T, whether a mask may fall there
    actions: list[list[int]]  # P × T, as in objectives.masked_lm
    seen: list[list[str]]  # P × T, the tokens that the model reads
    draws: list[int]  # P, which mask an epoch uses

    @property
    def head(self) -> int:
        """Pixels above the grid, for the longest of the slanted tokens."""
        return 24 + round(6.2 * max(len(_short(token)) for token in self.tokens))

    @property
    def times(self) -> list[int]:
        """How often each token was selected."""
        return [sum(a != PLAIN for a in column) for column in zip(*self.actions, strict=True)]

    @property
    def selected(self) -> int:
        """How many tokens were selected at least once."""
        return sum(count > 0 for count in self.times)


def mask_epochs_view(
    tokenizer: WordPiece | ByteBPE, text: str = TEXT, second: str | None = None
) -> Live:
    """Rows are epochs, columns tokens: what the model sees at each epoch, under a chosen scheme.

    second: another text that follows in the same sequence; None leaves its box out. Controls: text,
    (second,) scheme, epochs (1 to 40), rate (a fraction), seed.
    """
    import ipywidgets as w

    controls = {"text": w.Text(value=text, description="text")}
    if second is not None:
        controls["second"] = w.Text(value=second, description="second text (may be empty)")
    controls |= {
        "scheme": w.Dropdown(options=list(schemes()), value="ten copies", description="masking"),
        "epochs": w.IntSlider(value=12, min=1, max=MOST_EPOCHS, description="epochs shown"),
        "rate": share_slider(w, 0.15, "rate: fraction selected"),
        "seed": w.IntSlider(value=SEED, min=0, max=50, description="seed"),
    }

    def draw(**values: Any) -> str:
        return mask_epochs_picture(tokenizer, **values).html

    return playground(draw, controls, mask_epochs_print(tokenizer, text, second or ""))


def schemes() -> Mapping[str, int | None]:
    """The three schemes by name, and how many masks each has; None: one an epoch (dynamic)."""
    from course_lib.lectures.lecture_04.experiments import SCHEMES

    return SCHEMES


def mask_epochs_picture(
    tokenizer: WordPiece | ByteBPE,
    text: str = TEXT,
    second: str = "",
    scheme: str = "ten copies",
    epochs: int = 12,
    rate: float = 0.15,
    seed: int = SEED,
) -> Html:
    """The grid of one scheme, and in words how many tokens were selected under each of the three.

    Raises ValueError for an empty text, one of more than 60 tokens, and a rate outside 0 to 1.
    """
    ways = all_schemes(tokenizer, text, second, epochs, rate, seed)
    shown = ways[scheme]
    said = _said(ways, scheme)
    row = max(11, min(20, 420 // epochs))
    wide = min(38, (WIDE - LEFT - 80) // len(shown.tokens))
    height = shown.head + row * epochs + 46
    grid = _grid(shown, x=LEFT, wide=wide, high=row, letters=12)
    around = _margins(shown, row) + _footer(shown, wide, row)
    drawing = svg_drawing(WIDE, height, _PATTERN + grid + around, said)
    words = f'<p style="margin:8px 0 0">{escape(said)}</p>'
    html = card(drawing + _legend() + words, "mask-epochs", 780)
    return Html(html, f"{_letters(shown, scheme)}\n{said}")


def mask_epochs_print(
    tokenizer: WordPiece | ByteBPE, text: str = TEXT, second: str = "", epochs: int = IN_PRINT
) -> Html:
    """The three schemes side by side after `epochs` epochs, for a page without a kernel.

    Raises ValueError as mask_epochs_picture does.
    """
    ways = all_schemes(tokenizer, text, second, epochs)
    later = all_schemes(tokenizer, text, second, MOST_EPOCHS)
    first = next(iter(ways.values()))
    panel, row, top = (WIDE - LEFT) // len(ways), 17, 26
    wide = min(22, (panel - 12) // len(first.tokens))
    bottom = first.head + row * epochs + 15
    named = _margins(first, row) + _margin("ever selected", LEFT - 8, bottom)
    parts = [f'<g transform="translate(0,{top})">{named}</g>']
    for k, (name, way) in enumerate(ways.items()):
        parts.append(
            f'<g transform="translate({LEFT + k * panel},{top})">'
            f'<text x="2" y="-10" font-weight="700" font-size="14">{name}</text>'
            f"{_grid(way, x=0, wide=wide, high=row, letters=10, live=False)}"
            f"{_marks(way, 0, wide, bottom)}</g>"
        )
    said = f"{_said(ways)} {_said(later)}"
    drawing = svg_drawing(WIDE, top + bottom + 15, _PATTERN + "".join(parts), said)
    words = f'<p style="margin:8px 0 0">{escape(said)}</p>'
    html = card(svg_image(drawing, said) + _legend() + words, "mask-epochs", 780)
    grids = "\n\n".join(_letters(way, name) for name, way in ways.items())
    return Html(html, f"{grids}\n\n{said}")


def all_schemes(
    tokenizer: WordPiece | ByteBPE,
    text: str,
    second: str = "",
    epochs: int = 12,
    rate: float = 0.15,
    seed: int = SEED,
) -> dict[str, MaskedEpochs]:
    """What each scheme does to the text: epoch e uses the library's mask e mod copies."""
    from course_lib.objectives.masked_lm import mask_sequences

    sequences, special = one_row(tokenizer, text, second or None), tokenizer.special
    ids = sequences.input_ids[0].tolist()
    if len(ids) > MOST_TOKENS:
        raise ValueError(
            f"The text has {len(ids)} tokens, special ones counted; expected at most "
            f"{MOST_TOKENS}, so that each keeps a column. Shorten it."
        )
    masks = [
        mask_sequences(sequences, special, rate=rate, seed=seed, epoch=e) for e in range(epochs)
    ]
    tokens = _tokens(tokenizer, sequences.input_ids[0])
    may = [i not in special.never_masked for i in ids]
    found = {}
    for name, copies in schemes().items():
        draws = [e if copies is None else e % copies for e in range(epochs)]
        actions = [masks[draw].action[0].tolist() for draw in draws]
        seen = [_tokens(tokenizer, masks[draw].input_ids[0]) for draw in draws]
        found[name] = MaskedEpochs(tokens, may, actions, seen, draws)
    return found


def _tokens(tokenizer: WordPiece | ByteBPE, ids: Tensor) -> list[str]:
    return [tokenizer.token(i) for i in ids.tolist()]


# ---------------------------------------------------------------- in words


def _said(ways: Mapping[str, MaskedEpochs], scheme: str = "") -> str:
    """How many tokens were selected at least once: under the chosen scheme, and under the
    others."""
    one = next(iter(ways.values()))
    epochs, words = len(one.draws), sum(one.may)
    after = f"After {epochs} epoch{'s' * (epochs > 1)}"
    if not scheme:
        listed = ", ".join(f"{name} {way.selected}" for name, way in ways.items())
        return f"{after}, of {words} tokens so many were selected at least once: {listed}."
    others = ", ".join(f"{name}: {way.selected}" for name, way in ways.items() if name != scheme)
    count = f"{ways[scheme].selected} of {words} tokens"
    return f"{after}, {count} were selected at least once ({others})."


def _letters(way: MaskedEpochs, name: str) -> str:
    """The grid in letters: H hidden, R replaced, K kept but selected, · not selected."""
    lines = [f"{name}: H hidden, R replaced by a random token, K kept but selected, · not selected"]
    lines.append(" ".join(way.tokens))
    for number, (actions, draw) in enumerate(zip(way.actions, way.draws, strict=True), start=1):
        marks = "".join(LETTER[a] if may else " " for a, may in zip(actions, way.may, strict=True))
        lines.append(f"epoch {number:>2} {marks}{_as_before(number, draw)}")
    ever = "".join(_sign(n) if may else " " for n, may in zip(way.times, way.may, strict=True))
    return "\n".join([*lines, f"ever?    {ever}"])


def _as_before(number: int, draw: int) -> str:
    return f" = epoch {draw + 1}" if draw + 1 < number else ""


def _sign(times: int) -> str:
    return "✓" if times else "–"


# ---------------------------------------------------------------- drawn


def _grid(
    way: MaskedEpochs, *, x: float, wide: float, high: float, letters: int, live: bool = True
) -> str:
    """The tokens, slanted, above P rows of cells; at the right, which epoch a row repeats.

    live: with a note at every cell that was selected, and room at the right.
    """
    parts = [
        _heading(t, x + wide * (i + 0.5), way.head - 6, letters) for i, t in enumerate(way.tokens)
    ]
    parts.append(_plain_cells(way, x, wide, high))
    for p, actions in enumerate(way.actions):
        y = way.head + high * p
        again = _as_before(p + 1, way.draws[p])
        if live and again and high > 10:
            parts.append(
                f'<text x="{x + wide * len(way.tokens) + 6:.0f}" y="{y + high / 2 + 4}" '
                f'font-size="11" fill="#555">{again.strip()}</text>'
            )
        for i, action in enumerate(actions):
            if action == PLAIN:
                continue
            cell = _cell(x + wide * i, y, wide, high, action)
            parts.append(f"<g><title>{_told(way, p, i)}</title>{cell}</g>" if live else cell)
    return "".join(parts)


def _told(way: MaskedEpochs, p: int, i: int) -> str:
    """What happened to token i in epoch p: shown where the mouse rests."""
    action = way.actions[p][i]
    by = f", “{way.seen[p][i]}”" if action == REPLACED else ""
    return escape(f"epoch {p + 1}, “{way.tokens[i]}”: {SAID[action]}{by}")


def _plain_cells(way: MaskedEpochs, x: float, wide: float, high: float) -> str:
    """All cells not selected, as one path; the columns of special tokens as one round bar each."""
    w, h, epochs = wide - 2, high - 2, len(way.draws)
    path = "".join(
        f"M{x + wide * i + 1:.0f} {way.head + high * p + 1:.0f}h{w:.0f}v{h:.0f}h-{w:.0f}z"
        for p, actions in enumerate(way.actions)
        for i, action in enumerate(actions)
        if action == PLAIN and way.may[i]
    )
    bar = min(w, 12)
    bars = "".join(
        f'<rect x="{x + wide * (i + 0.5) - bar / 2:.0f}" y="{way.head + 1}" width="{bar:.0f}" '
        f'height="{high * epochs - 2:.0f}" rx="{min(6, bar / 2):.0f}" fill="#dcdcdc"/>'
        for i, may in enumerate(way.may)
        if not may
    )
    return f'<path d="{path}" fill="#efefef"/>{bars}'


def _margins(way: MaskedEpochs, high: float) -> str:
    """The numbers of the epochs; of low rows every fifth."""
    epochs = len(way.draws)
    return "".join(
        _margin(f"epoch {p + 1}", LEFT - 8, way.head + high * (p + 0.5) + 4)
        for p in range(epochs)
        if _named(p, epochs, high)
    )


def _named(place: int, epochs: int, high: float) -> bool:
    """Low rows are numbered only now and then."""
    return high > 12 or place == 0 or (place + 1) % 5 == 0 or place + 1 == epochs


def _margin(text: str, x: float, y: float) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="end" font-size="11" fill="#444">{text}</text>'


def _heading(token: str, x: float, y: float, size: int) -> str:
    return (
        f'<text transform="translate({x + 3:.1f},{y}) rotate(-55)" font-size="{size}" '
        f'font-family="ui-monospace,Menlo,monospace">{escape(_short(token))}</text>'
    )


def _short(token: str) -> str:
    return token if len(token) <= 12 else token[:11] + "…"


def _cell(x: float, y: float, wide: float, high: float, action: int) -> str:
    """One token in one epoch. Shape says what colour says."""
    w, h = wide - 2, high - 2
    at = f'x="{x + 1:.0f}" y="{y + 1:.0f}" width="{w:.0f}" height="{h:.0f}"'
    if action == MASKED:
        return f'<rect {at} fill="url(#course-hidden)" stroke="#8a5f00"/>'
    if action == REPLACED:
        inner = f'x="{x + 4:.0f}" y="{y + 4:.0f}" width="{w - 6:.0f}" height="{h - 6:.0f}"'
        line = 'fill="#fff" stroke="#D55E00" stroke-width="1.6"'
        return f"<rect {at} {line}/><rect {inner} {line}/>"
    if action == KEPT:
        line = 'stroke="#007a59" stroke-width="1.8" stroke-dasharray="2 2"'
        return f'<rect {at} fill="#eef9f5" {line}/>'
    return f'<rect {at} fill="#efefef"/>'


def _marks(way: MaskedEpochs, x: float, wide: float, y: float) -> str:
    """Below each column whether it was ever selected."""
    parts = []
    for i, (times, may) in enumerate(zip(way.times, way.may, strict=True)):
        look = 'fill="#00745a"' if times else 'fill="#b04e00" font-weight="700"'
        parts.append(
            f'<text x="{x + wide * (i + 0.5):.1f}" y="{y}" text-anchor="middle" {look}>'
            f"{_sign(times) if may else ''}</text>"
        )
    return "".join(parts)


def _footer(way: MaskedEpochs, wide: float, row: float) -> str:
    """Ever selected, and how often."""
    y = way.head + row * len(way.draws) + 17
    times = "".join(
        f'<text x="{LEFT + wide * (i + 0.5):.1f}" y="{y + 18}" text-anchor="middle" '
        f'font-size="11" fill="#444">{count if may else ""}</text>'
        for i, (count, may) in enumerate(zip(way.times, way.may, strict=True))
    )
    named = _margin("ever selected", LEFT - 8, y) + _margin("how often", LEFT - 8, y + 18)
    return named + _marks(way, LEFT, wide, y) + times


def _legend() -> str:
    """One cell of each kind with its meaning."""
    kinds = {"hidden by [MASK]": MASKED, "replaced by a random token": REPLACED,
             "kept, but selected": KEPT, "not selected": PLAIN}  # fmt: skip
    parts, x = [], 0
    for said, action in kinds.items():
        parts.append(_cell(x, 2, 22, 17, action))
        parts.append(f'<text x="{x + 27}" y="15" font-size="12" fill="#444">{said}</text>')
        x += 44 + round(6.4 * len(said))
    bar = f'<rect x="{x}" y="3" width="9" height="15" rx="4" fill="#dcdcdc"/>'
    parts.append(f'{bar}<text x="{x + 14}" y="15" font-size="12" fill="#444">special token</text>')
    drawing = svg_drawing(WIDE, 22, _PATTERN + "".join(parts), "what the cells mean")
    said = "hatched: hidden; double outline: replaced; dotted: kept, but selected"
    return svg_image(drawing, said)
