"""One text over many epochs: which tokens are selected under static masking, copies, dynamic.

P epochs, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from course_lib.teaching.page import Html, Live
from course_lib.teaching.playgrounds import (
    choice,
    one_row,
    percent_slider,
    playground,
    slider,
    text_field,
)
from course_lib.teaching.style import ORANGE, VERMILION, hatch
from course_lib.teaching.svg import area, cell_names, key, picture, rect, shortened, words
from course_lib.teaching.tokens import KEPT, MASKED, PLAIN, REPLACED, SAID

if TYPE_CHECKING:
    from torch import Tensor

    from course_lib.text.byte_bpe import ByteBPE
    from course_lib.text.wordpiece import WordPiece

TEXT = "the banker counts the red coin of her old friend near the mill ."
SEED = 3  # one where ten copies select what is to be expected, eight tokens in ten
MOST_TOKENS, MOST_EPOCHS, IN_PRINT = 60, 40, 14
LETTER = {PLAIN: "·", MASKED: "M", REPLACED: "R", KEPT: "K"}  # in the plain-text twin
WIDTH, LEFT = 740, 80  # pixels
PRINT_WIDTH, PRINT_LEFT, PRINT_ROW = 1150, 98, 20  # of the deck; the page shows it smaller

LOOKS: dict[int, dict[str, Any]] = {  # of a cell; shape says what colour says
    PLAIN: {"fill": "#efefef"},
    MASKED: {"fill": hatch(ORANGE, "#fff6e3", 7, 3.5), "ink": "#8a5f00"},
    REPLACED: {"fill": "#fff", "ink": VERMILION, "wide": 1.6},
    KEPT: {"fill": "#eef9f5", "ink": "#007a59", "wide": 1.8, "dash": "2 2"},
}
SPECIAL, MUTED = "#dcdcdc", "#444"


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
    controls = {"text": text_field("text", text)}
    if second is not None:
        controls["second"] = text_field("second text (may be empty)", second)
    controls |= {
        "scheme": choice("masking", "ten copies", schemes()),
        "epochs": slider("epochs shown", 12, 1, MOST_EPOCHS),
        "rate": percent_slider("rate: fraction selected", 0.15),
        "seed": slider("seed", SEED, 0, 50),
    }
    static = mask_epochs_print(tokenizer, text, second or "")
    return playground(partial(mask_epochs_picture, tokenizer), controls, static)


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
    way = ways[scheme]
    sentence = _in_words(ways, scheme)
    height = max(11, min(20, 420 // epochs))
    width = min(38, (WIDTH - LEFT - 80) // len(way.tokens))
    head = _head(way, 6.2)
    bottom = head + height * epochs + 17
    parts = [
        *_grid(way, LEFT, head, width, height, 12),
        *_margins(way, head, LEFT - 8, height, 11),
        *_marks(way, LEFT, width, bottom),
        words(LEFT - 8, bottom, "ever selected", 11, "end", ink=MUTED),
        words(LEFT - 8, bottom + 18, "how often", 11, "end", ink=MUTED),
        *(words(LEFT + width * (i + 0.5), bottom + 18, str(count), 11, ink=MUTED)
          for i, (count, may) in enumerate(zip(way.times, way.may, strict=True)) if may),
    ]  # fmt: skip
    # Inline, not an image: where the mouse rests, a cell says what happened to it.
    return picture("mask-epochs", WIDTH, bottom + 29, parts, sentence, below=legend(), image=False,
                   text=f"{_letters(way, scheme)}\n{sentence}")  # fmt: skip


def mask_epochs_print(
    tokenizer: WordPiece | ByteBPE, text: str = TEXT, second: str = "", epochs: int = IN_PRINT
) -> Html:
    """The three schemes side by side after `epochs` epochs, for a page without a kernel; a dashed
    frame around epochs without a new mask.

    Raises ValueError as mask_epochs_picture does.
    """
    ways = all_schemes(tokenizer, text, second, epochs)
    later = all_schemes(tokenizer, text, second, MOST_EPOCHS)
    sentence = f"{_in_words(ways)} {_in_words(later)}"
    grids = "\n\n".join(_letters(way, name) for name, way in ways.items())
    first, top = next(iter(ways.values())), 30
    panel, height = (PRINT_WIDTH - PRINT_LEFT) // len(ways), PRINT_ROW
    width = min(34, (panel - 16) // len(first.tokens))
    head = top + _head(first, 9.3)
    bottom = head + height * epochs + 20
    parts = [*_margins(first, head, PRINT_LEFT - 8, height, 16),
             words(PRINT_LEFT - 8, bottom, "ever", 16, "end", ink=MUTED)]  # fmt: skip
    for k, (name, way) in enumerate(ways.items()):
        x = PRINT_LEFT + k * panel
        title = f"{name}: {way.selected} of {sum(way.may)} selected"
        parts += [
            words(x, 18, title, 20, "start", bold=True),
            *_grid(way, x, head, width, height, 15, live=False),
            *_marks(way, x, width, bottom, 18),
        ]
        if repeated := [p for p, draw in enumerate(way.draws) if draw < p]:
            parts.append(rect(
                x - 2, head + height * repeated[0] - 1, width * len(way.tokens) + 4,
                height * len(repeated), fill="none", ink="#1a1a1a", wide=1.8, dash="6 4",
            ))  # fmt: skip
    return picture("mask-epochs", PRINT_WIDTH, bottom + 10, parts, sentence, below=legend(),
                   text=f"{grids}\n\n{sentence}")  # fmt: skip


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
    ways = {}
    for name, copies in schemes().items():
        draws = [e if copies is None else e % copies for e in range(epochs)]
        actions = [masks[draw].action[0].tolist() for draw in draws]
        seen = [_tokens(tokenizer, masks[draw].input_ids[0]) for draw in draws]
        ways[name] = MaskedEpochs(tokens, may, actions, seen, draws)
    return ways


def _tokens(tokenizer: WordPiece | ByteBPE, ids: Tensor) -> list[str]:
    return [tokenizer.token(i) for i in ids.tolist()]


# ---------------------------------------------------------------- in words


def _in_words(ways: Mapping[str, MaskedEpochs], scheme: str = "") -> str:
    """How many tokens were selected at least once: under one scheme, and under the
    others."""
    one = next(iter(ways.values()))
    epochs, words = len(one.draws), sum(one.may)
    after = f"After {epochs} epoch{'s' * (epochs > 1)}"
    if not scheme:
        listed = ", ".join(f"{name} {way.selected}" for name, way in ways.items())
        return f"{after}, tokens selected at least once (of {words}): {listed}."
    others = ", ".join(f"{name}: {way.selected}" for name, way in ways.items() if name != scheme)
    count = f"{ways[scheme].selected} of {words} tokens"
    return f"{after}, {count} were selected at least once ({others})."


def _letters(way: MaskedEpochs, name: str) -> str:
    """The grid in letters, a line an epoch."""
    lines = [f"{name}: M masked, R replaced by a random token, K kept but selected, · not selected"]
    lines.append(" ".join(way.tokens))
    for epoch, (actions, draw) in enumerate(zip(way.actions, way.draws, strict=True), start=1):
        marks = "".join(LETTER[a] if may else " " for a, may in zip(actions, way.may, strict=True))
        lines.append(f"epoch {epoch:>2} {marks}{_as_before(epoch, draw)}")
    ever = "".join(_sign(n) if may else " " for n, may in zip(way.times, way.may, strict=True))
    return "\n".join([*lines, f"ever?    {ever}"])


def _as_before(epoch: int, draw: int) -> str:
    return f" = epoch {draw + 1}" if draw + 1 < epoch else ""


def _sign(times: int) -> str:
    return "✓" if times else "–"


# ---------------------------------------------------------------- drawn


def _head(way: MaskedEpochs, letter: float) -> int:
    """Pixels above the grid, for the longest of the slanted tokens."""
    return 24 + round(letter * max(min(len(token), 12) for token in way.tokens))


def _grid(
    way: MaskedEpochs, x: float, y: float, width: float, height: float, size: int,
    live: bool = True,
) -> list[str]:  # fmt: skip
    """The tokens, slanted, above P rows of cells; at the right, which epoch a row repeats.

    live: with a note at every cell that was selected, and room at the right.
    """
    names = [shortened(token) for token in way.tokens]
    parts = [
        _plain_cells(way, x, y, width, height),
        *cell_names([], names, x, y, (width, height), size=size, turn=-55, mono=True),
    ]
    for p, actions in enumerate(way.actions):
        top, again = y + height * p, _as_before(p + 1, way.draws[p])
        if live and again and height > 10:
            beside = x + width * len(way.tokens) + 6
            parts.append(words(beside, top + height / 2 + 4, again.strip(), 11, "start", ink=MUTED))
        for i, action in enumerate(actions):
            if action != PLAIN:
                cell = _cell(x + width * i, top, width, height, action)
                parts.append(f"<g><title>{_fate(way, p, i)}</title>{cell}</g>" if live else cell)
    return parts


def _fate(way: MaskedEpochs, p: int, i: int) -> str:
    """What happened to token i in epoch p: shown where the mouse rests."""
    action = way.actions[p][i]
    by = f", “{way.seen[p][i]}”" if action == REPLACED else ""
    return escape(f"epoch {p + 1}, “{way.tokens[i]}”: {SAID[action]}{by}")


def _plain_cells(way: MaskedEpochs, x: float, y: float, width: float, height: float) -> str:
    """All cells not selected, as one path; the columns of special tokens as one round bar each."""
    w, h, epochs = width - 2, height - 2, len(way.draws)
    path = "".join(
        f"M{x + width * i + 1:.0f} {y + height * p + 1:.0f}h{w:.0f}v{h:.0f}h-{w:.0f}z"
        for p, actions in enumerate(way.actions)
        for i, action in enumerate(actions)
        if action == PLAIN and way.may[i]
    )
    side = min(w, 12)
    bars = "".join(
        area(x + width * (i + 0.5) - side / 2, y + 1, side, height * epochs - 2, SPECIAL,
             rounding=min(6, side / 2))
        for i, may in enumerate(way.may) if not may
    )  # fmt: skip
    return f'<path d="{path}" fill="{LOOKS[PLAIN]["fill"]}"/>{bars}'


def _margins(way: MaskedEpochs, y: float, right: float, height: float, size: int) -> list[str]:
    """The numbers of the epochs; of low rows every fifth."""
    epochs = len(way.draws)
    return [
        words(right, y + height * (p + 0.5) + 0.36 * size, f"epoch {p + 1}", size, "end", ink=MUTED)
        for p in range(epochs)
        if height > 12 or p == 0 or (p + 1) % 5 == 0 or p + 1 == epochs
    ]


def _cell(x: float, y: float, width: float, height: float, action: int) -> str:
    """One token in one epoch; what was replaced has a double edge."""
    return "".join(
        area(x + 1 + inset, y + 1 + inset, width - 2 - 2 * inset, height - 2 - 2 * inset,
             **LOOKS[action])
        for inset in ((0, 3) if action == REPLACED else (0,))
    )  # fmt: skip


def _marks(way: MaskedEpochs, x: float, width: float, y: float, size: int = 13) -> list[str]:
    """Below each column whether it was ever selected."""
    return [
        words(x + width * (i + 0.5), y, _sign(times), size, bold=not times,
              ink="#00745a" if times else "#b04e00")
        for i, (times, may) in enumerate(zip(way.times, way.may, strict=True)) if may
    ]  # fmt: skip


def legend() -> str:
    """One cell of each kind with its meaning."""
    meanings = {**SAID, PLAIN: "not selected"}
    entries = [
        (_cell(0, -1, 22, 17, action), meanings[action])
        for action in (MASKED, REPLACED, KEPT, PLAIN)
    ]
    entries.append((area(6, 0, 9, 15, SPECIAL, rounding=4), "special token"))
    return key(entries, "hatched: masked; double outline: replaced; dotted: kept, but selected", 22)
