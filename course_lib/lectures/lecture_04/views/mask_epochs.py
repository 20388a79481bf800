"""One text over many epochs: which tokens are selected under static masking, copies, dynamic.

P epochs, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from course_lib.teaching.page import Html, Live, card, svg_drawing, svg_image
from course_lib.teaching.playgrounds import one_row, playground, share_slider
from course_lib.teaching.svg import rect, words
from course_lib.teaching.tokens import KEPT, MASKED, PLAIN, REPLACED, SAID

if TYPE_CHECKING:
    from torch import Tensor

    from course_lib.text.byte_bpe import ByteBPE
    from course_lib.text.wordpiece import WordPiece

TEXT = "the banker counts the red coin of her old friend near the mill ."
SEED = 3  # one where ten copies select what is to be expected, eight tokens in ten
MOST_TOKENS, MOST_EPOCHS, IN_PRINT = 60, 40, 14
LETTER = {PLAIN: "·", MASKED: "M", REPLACED: "R", KEPT: "K"}  # in the plain-text twin
WIDE, LEFT = 740, 80  # pixels
PRINT_WIDE, PRINT_LEFT, PRINT_ROW = 1150, 98, 20  # of the deck; the page shows it smaller

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
    """Rows are epochs, columns tokens: what the model sees at each epoch, under one scheme.

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
    high = max(11, min(20, 420 // epochs))
    wide = min(38, (WIDE - LEFT - 80) // len(shown.tokens))
    head = _head(shown, 6.2)
    grid = _grid(shown, LEFT, head, wide, high, 12) + _margins(shown, head, LEFT - 8, high, 11)
    below = _footer(shown, wide, head + high * epochs + 17)
    height = head + high * epochs + 46
    drawing = svg_drawing(WIDE, height, _PATTERN + grid + below, said)
    under = f'<p style="margin:8px 0 0">{escape(said)}</p>'
    html = card(drawing + legend() + under, "mask-epochs", 780)
    return Html(html, f"{_letters(shown, scheme)}\n{said}")


def mask_epochs_print(
    tokenizer: WordPiece | ByteBPE, text: str = TEXT, second: str = "", epochs: int = IN_PRINT
) -> Html:
    """The three schemes side by side after `epochs` epochs, for a page without a kernel.

    Raises ValueError as mask_epochs_picture does.
    """
    ways = all_schemes(tokenizer, text, second, epochs)
    later = all_schemes(tokenizer, text, second, MOST_EPOCHS)
    said = f"{_said(ways)} {_said(later)}"
    drawing = schemes_drawing(ways, said)
    under = f'<p style="margin:8px 0 0">{escape(said)}</p>'
    html = card(svg_image(drawing, said) + legend() + under, "mask-epochs", 780)
    grids = "\n\n".join(_letters(way, name) for name, way in ways.items())
    return Html(html, f"{grids}\n\n{said}", drawing)


def schemes_drawing(ways: Mapping[str, MaskedEpochs], said: str) -> str:
    """The grids of the schemes side by side; a dashed frame around epochs without a new mask."""
    first, top = next(iter(ways.values())), 30
    epochs, panel = len(first.draws), (PRINT_WIDE - PRINT_LEFT) // len(ways)
    wide, high = min(34, (panel - 16) // len(first.tokens)), PRINT_ROW
    head = _head(first, 9.3)
    bottom = top + head + high * epochs + 20
    parts = [_margins(first, head + top, PRINT_LEFT - 8, high, 16)]
    parts.append(words(PRINT_LEFT - 8, bottom, "ever", 16, "end", MUTED))
    for k, (name, way) in enumerate(ways.items()):
        x = PRINT_LEFT + k * panel
        title = f"{name}: {way.selected} of {sum(way.may)} selected"
        parts.append(words(x, 18, title, 20, "start", ' font-weight="650"'))
        parts.append(_grid(way, x, top + head, wide, high, 15, live=False))
        parts.append(_marks(way, x, wide, bottom, 18))
        repeated = [p for p, draw in enumerate(way.draws) if draw < p]
        if repeated:
            parts.append(rect(
                x - 2, top + head + high * repeated[0] - 1, wide * len(way.tokens) + 4,
                high * len(repeated), fill="none", ink="#1a1a1a", wide=1.8, dash="6 4",
            ))  # fmt: skip
    return svg_drawing(PRINT_WIDE, bottom + 10, _PATTERN + "".join(parts), said)


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
    """How many tokens were selected at least once: under one scheme, and under the
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
    """The grid in letters, a line an epoch."""
    lines = [f"{name}: M masked, R replaced by a random token, K kept but selected, · not selected"]
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

MUTED = ' fill="#444"'


def _head(way: MaskedEpochs, letter: float) -> int:
    """Pixels above the grid, for the longest of the slanted tokens."""
    return 24 + round(letter * max(len(_short(token)) for token in way.tokens))


def _grid(
    way: MaskedEpochs, x: float, y: float, wide: float, high: float, letters: int,
    live: bool = True,
) -> str:  # fmt: skip
    """The tokens, slanted, above P rows of cells; at the right, which epoch a row repeats.

    live: with a note at every cell that was selected, and room at the right.
    """
    parts = [_plain_cells(way, x, y, wide, high)]
    for i, token in enumerate(way.tokens):
        at = f"translate({x + wide * (i + 0.5) + 3:.1f},{y - 6}) rotate(-55)"
        parts.append(
            f'<text transform="{at}" font-size="{letters}" '
            f'font-family="ui-monospace,Menlo,monospace">{escape(_short(token))}</text>'
        )
    for p, actions in enumerate(way.actions):
        top, again = y + high * p, _as_before(p + 1, way.draws[p])
        if live and again and high > 10:
            beside = x + wide * len(way.tokens) + 6
            parts.append(words(beside, top + high / 2 + 4, again.strip(), 11, "start", MUTED))
        for i, action in enumerate(actions):
            if action != PLAIN:
                cell = _cell(x + wide * i, top, wide, high, action)
                parts.append(f"<g><title>{_told(way, p, i)}</title>{cell}</g>" if live else cell)
    return "".join(parts)


def _told(way: MaskedEpochs, p: int, i: int) -> str:
    """What happened to token i in epoch p: shown where the mouse rests."""
    action = way.actions[p][i]
    by = f", “{way.seen[p][i]}”" if action == REPLACED else ""
    return escape(f"epoch {p + 1}, “{way.tokens[i]}”: {SAID[action]}{by}")


def _plain_cells(way: MaskedEpochs, x: float, y: float, wide: float, high: float) -> str:
    """All cells not selected, as one path; the columns of special tokens as one round bar each."""
    w, h, epochs = wide - 2, high - 2, len(way.draws)
    path = "".join(
        f"M{x + wide * i + 1:.0f} {y + high * p + 1:.0f}h{w:.0f}v{h:.0f}h-{w:.0f}z"
        for p, actions in enumerate(way.actions)
        for i, action in enumerate(actions)
        if action == PLAIN and way.may[i]
    )
    bar = min(w, 12)
    bars = "".join(
        f'<rect x="{x + wide * (i + 0.5) - bar / 2:.0f}" y="{y + 1}" width="{bar:.0f}" '
        f'height="{high * epochs - 2:.0f}" rx="{min(6, bar / 2):.0f}" fill="#dcdcdc"/>'
        for i, may in enumerate(way.may)
        if not may
    )
    return f'<path d="{path}" fill="#efefef"/>{bars}'


def _margins(way: MaskedEpochs, y: float, right: float, high: float, size: int) -> str:
    """The numbers of the epochs; of low rows every fifth."""
    epochs = len(way.draws)
    return "".join(
        words(right, y + high * (p + 0.5) + 0.36 * size, f"epoch {p + 1}", size, "end", MUTED)
        for p in range(epochs)
        if high > 12 or p == 0 or (p + 1) % 5 == 0 or p + 1 == epochs
    )


def _short(token: str) -> str:
    return token if len(token) <= 12 else token[:11] + "…"


def _cell(x: float, y: float, wide: float, high: float, action: int) -> str:
    """One token in one epoch. Shape says what colour says."""
    w, h = wide - 2, high - 2
    looks = {
        PLAIN: 'fill="#efefef"',
        MASKED: 'fill="url(#course-hidden)" stroke="#8a5f00"',
        REPLACED: 'fill="#fff" stroke="#D55E00" stroke-width="1.6"',
        KEPT: 'fill="#eef9f5" stroke="#007a59" stroke-width="1.8" stroke-dasharray="2 2"',
    }

    def box(inset: int) -> str:
        return (
            f'<rect x="{x + 1 + inset:.0f}" y="{y + 1 + inset:.0f}" width="{w - 2 * inset:.0f}" '
            f'height="{h - 2 * inset:.0f}" {looks[action]}/>'
        )

    return box(0) + (box(3) if action == REPLACED else "")


def _marks(way: MaskedEpochs, x: float, wide: float, y: float, size: int = 13) -> str:
    """Below each column whether it was ever selected."""
    looks = {True: ' fill="#00745a"', False: ' fill="#b04e00" font-weight="700"'}
    return "".join(
        words(x + wide * (i + 0.5), y, _sign(times), size, style=looks[times > 0])
        for i, (times, may) in enumerate(zip(way.times, way.may, strict=True))
        if may
    )


def _footer(way: MaskedEpochs, wide: float, y: float) -> str:
    """Ever selected, and how often."""
    times = "".join(
        words(LEFT + wide * (i + 0.5), y + 18, str(count), 11, style=MUTED)
        for i, (count, may) in enumerate(zip(way.times, way.may, strict=True))
        if may
    )
    named = words(LEFT - 8, y, "ever selected", 11, "end", MUTED)
    named += words(LEFT - 8, y + 18, "how often", 11, "end", MUTED)
    return named + _marks(way, LEFT, wide, y) + times


def legend() -> str:
    """One cell of each kind with its meaning."""
    kinds = {**SAID, PLAIN: "not selected"}
    parts, x = [], 0
    for action in (MASKED, REPLACED, KEPT, PLAIN):
        parts.append(_cell(x, 2, 22, 17, action) + words(x + 27, 15, kinds[action], 12, "start"))
        x += 44 + round(6.1 * len(kinds[action]))
    bar = f'<rect x="{x}" y="3" width="9" height="15" rx="4" fill="#dcdcdc"/>'
    parts.append(bar + words(x + 14, 15, "special token", 12, "start", MUTED))
    drawing = svg_drawing(WIDE, 22, _PATTERN + "".join(parts), "what the cells mean")
    said = "hatched: masked; double outline: replaced; dotted: kept, but selected"
    return svg_image(drawing, said)
