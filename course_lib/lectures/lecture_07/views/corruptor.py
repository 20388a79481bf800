"""ELECTRA at work on a sentence of the reader's own: masked, filled in, and classified word by
word.

T tokens, special ones counted. The number shown is P(replaced), the probability that a token was
replaced, as in the released code; the paper's D is the probability that it is original (section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from course_lib.teaching.page import Html, Live, card, note, paragraphs
from course_lib.teaching.playgrounds import check_words, one_row, playground, slider, text_field
from course_lib.teaching.tokens import KEPT, MASKED, PLAIN, REPLACED, box, boxes_legend, tokens_row

if TYPE_CHECKING:
    from course_lib.family.electra import Electra
    from course_lib.text.wordpiece import WordPiece

MOST_TOKENS = 48
LINE = 640  # pixels of tokens before a new line begins
SHARE = 0.25
SCALE = ((255, 255, 255), (0, 34, 78))  # P(replaced) 0: white, 1: dark blue
ROWS = ("text", "masked", "generator", "discriminator")
VERDICTS = {  # (was replaced, called replaced): the sign below the probability, and the word for it
    (True, True): ("✓", "found"),
    (True, False): ("✗", "missed"),
    (False, True): ("✗", "false alarm"),
    (False, False): ("✓", "believed"),
}
_CELL = "border:0;padding:1px 3px;text-align:center;background:#fff;white-space:nowrap"
_SAME = "font:13px ui-monospace,Menlo,Consolas,monospace"
_HEAD = (
    "border:0;padding:1px 8px 1px 0;text-align:left;background:#fff;color:#444;font-size:12px;"
    "font-weight:400;width:76px;min-width:76px"
)


@dataclass(frozen=True)
class Corruption:
    """A text of T tokens, what the generator made of it, and what the discriminator said."""

    tokens: list[str]  # T, as written
    masked: list[str]  # T, what the generator reads
    filled: list[str]  # T, what the discriminator reads
    selected: list[bool]  # T, whether the position was masked
    p_replaced: list[float]  # T, the discriminator's probability of "replaced"

    @property
    def replaced(self) -> list[bool]:
        """T: whether another word stands there now. A right guess replaces nothing."""
        return [a != b for a, b in zip(self.tokens, self.filled, strict=True)]

    @property
    def called(self) -> list[bool]:
        """T: whether the discriminator holds it for replaced: a probability above one half."""
        return [p > 0.5 for p in self.p_replaced]


def corrupt_and_detect(
    model: Electra, tokenizer: WordPiece, text: str, share: float = SHARE, seed: int = 0
) -> Corruption:
    """Mask a fraction of the words, let the generator fill them in, classify each by the
    discriminator.

    share: of the tokens, 0 to 1, every one of them becomes [MASK] as in the paper; seed: a whole
    number from 0 on; the same one masks and samples the same. Dropout is off.
    Raises ValueError for an empty text, one too long, words the tokenizer does not know, special
    tokens written out, a fraction or a seed that is none, and a tokenizer of another model.
    """
    import torch

    from course_lib.family.electra import fill_in
    from course_lib.objectives.masked_lm import mask_sequences
    from course_lib.objectives.replaced_tokens import PAPER_MIX

    _check_model(model, tokenizer)
    _check_text(tokenizer, text, min(MOST_TOKENS, model.config.max_positions))
    if not 0 <= share <= 1:
        raise ValueError(f"share={share!r} was given; expected a fraction of the tokens, 0 to 1.")
    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed={seed!r} was given; expected a whole number from 0 on.")
    sequences = one_row(tokenizer, text)
    hidden = mask_sequences(sequences, tokenizer.special, rate=share, mix=PAPER_MIX, seed=seed)
    uniform = torch.rand(len(hidden.predict_at), generator=torch.Generator().manual_seed(seed))
    device = next(model.parameters()).device
    ids, at, real = (
        t.to(device) for t in (hidden.input_ids, hidden.predict_at, sequences.attention_mask)
    )
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            guess = model.generator(ids, real, None, at).logits  # (K, V)
            filled = fill_in(ids, at, guess, uniform.to(device))  # (1, T)
            logits = model.discriminator(filled, real).logits  # (1, T)
    finally:
        model.train(was_training)
    before, masked, after = (
        [tokenizer.token(i) for i in one[0].tolist()] for one in (sequences.input_ids, ids, filled)
    )
    p_replaced = logits[0].float().sigmoid().tolist()
    return Corruption(before, masked, after, hidden.selected[0].tolist(), p_replaced)


def _check_model(model: Electra, tokenizer: WordPiece) -> None:
    from course_lib.family.electra import Electra

    if not isinstance(model, Electra):
        raise ValueError(
            f"a {type(model).__name__} was given; expected an Electra, generator and discriminator "
            "together (family.electra)."
        )
    if model.config.vocab_size != tokenizer.vocab_size:
        raise ValueError(
            f"a model of {model.config.vocab_size:,} tokens and a tokenizer of "
            f"{tokenizer.vocab_size:,} were given; expected the tokenizer it was trained with."
        )


def _check_text(tokenizer: WordPiece, text: str, most: int) -> None:
    """The text must hold words, all of them known, and not too many."""
    from course_lib.text.wordpiece import SPECIAL_TOKENS

    written = [word for word in tokenizer.words(text) if word in SPECIAL_TOKENS]
    if written:
        raise ValueError(
            f"The text holds {written[0]}, a special token; expected plain words. The slider "
            "masks words for you."
        )
    check_words(tokenizer, text, most)


# ---------------------------------------------------------------- the view


def corruptor_view(model: Electra, tokenizer: WordPiece, text: str, *, seed: int = 0) -> Live:
    """A sentence of the reader's own through both networks of a trained ELECTRA, in four rows.

    model: `family.electra.Electra`; tokenizer: the one it was trained with. Controls: text,
    fraction (of the tokens to mask, 5% to 50%), seed, and the button again, which samples anew.
    A text that cannot be read is answered in the view. Raises ValueError for a model that is no
    Electra and for another model's tokenizer.
    """
    _check_model(model, tokenizer)
    controls = {
        "text": text_field("sentence", text),
        "share": slider("fraction masked", SHARE, 0.05, 0.5, 0.05, percent=True),
        "seed": slider("seed", seed, 0, max(99, seed)),
    }

    def draw(text: str, share: float, seed: int) -> Html:
        return corruptor_picture(corrupt_and_detect(model, tokenizer, text, share, seed))

    try:
        static = draw(text, SHARE, seed)
    except ValueError as error:
        static = Html(card(note(str(error)), "corruptor"), str(error))
    return _with_button(playground(draw, controls, static))


def _with_button(live: Live) -> Live:
    """The view with a button between its controls and its picture: the next seed."""
    import ipywidgets as w

    seed = live.controls["seed"]
    again = w.Button(description="sample again", tooltip="mask and fill in anew: the next seed")
    again.layout.margin = "2px 2px 6px 196px"

    def follow(_: Any) -> None:
        seed.value = (seed.value + 1) % (seed.max + 1)

    again.on_click(follow)
    *above, picture = live.widget.children
    live.widget.children = (*above, again, picture)
    return replace(live, controls=live.controls | {"again": again})


def corruptor_picture(corruption: Corruption) -> Html:
    """The text, what was masked, what was written there, P(replaced) of each token; and in
    words."""
    sentences = corruption_in_words(corruption)
    rows = (
        tokens_row(corruption.tokens),
        tokens_row(corruption.masked),
        tokens_row(corruption.filled, _box_styles(corruption)),
    )
    text = [f"{name}: {row.text}" for name, row in zip(ROWS, rows, strict=False)]
    judged = zip(corruption.filled, corruption.p_replaced, strict=True)
    text.append(f"{ROWS[3]}: {', '.join(f'{token} {_percent(p)}' for token, p in judged)}")
    html = corruption_tables(corruption) + _legend() + paragraphs(sentences)
    return Html(card(html, "corruptor", 800), "\n".join([*text, *sentences]))


def corruption_tables(
    corruption: Corruption, line: int = LINE, rows: tuple[str, ...] = ROWS
) -> str:
    """HTML: these rows, a column a token, on as many lines of so many pixels as it takes."""
    lines = _lines(corruption, line)
    return "".join(_table(corruption, first, last, rows) for first, last in lines)


# ---------------------------------------------------------------- in words


def corruption_in_words(corruption: Corruption) -> list[str]:
    """What the generator did at each masked position, and what the discriminator said of it."""
    sentences = []
    selected = [i for i, was in enumerate(corruption.selected) if was]
    replaced = [i for i in selected if corruption.replaced[i]]
    right = [i for i in selected if not corruption.replaced[i]]
    sentences.append(
        f"{len(selected)} of {len(corruption.tokens)} tokens were masked, [CLS] and [SEP] counted; "
        f"the generator replaced {len(replaced)} and guessed {len(right)} right."
    )
    if replaced:
        listed = "; ".join(
            f"“{corruption.tokens[i]}” by “{corruption.filled[i]}” ({_verdict(corruption, i)})"
            for i in replaced
        )
        sentences.append(f"The generator replaced {listed}.")
    if right:
        listed = "; ".join(f"“{corruption.tokens[i]}” ({_verdict(corruption, i)})" for i in right)
        sentences.append(f"It guessed right, so nothing was replaced: {listed}.")
    wrong = [i for i, c in enumerate(corruption.called) if c and not corruption.selected[i]]
    listed = ", ".join(
        f"“{corruption.filled[i]}” {_percent(corruption.p_replaced[i])}" for i in wrong
    )
    untouched = len(corruption.tokens) - len(selected)
    sentences.append(
        f"Of the {untouched} tokens never masked, the discriminator calls replaced: "
        f"{listed or 'none'}."
    )
    return sentences


def _verdict(corruption: Corruption, i: int) -> str:
    correct = corruption.replaced[i] == corruption.called[i]
    probability = _percent(corruption.p_replaced[i])
    return f"discriminator: {probability} replaced, {'right' if correct else 'wrong'}"


def _percent(probability: float) -> str:
    return f"{100 * probability:.0f}%"


# ---------------------------------------------------------------- drawn


def _box_styles(corruption: Corruption) -> list[int]:
    """What the third row draws: replaced, guessed right, or never masked."""
    pairs = zip(corruption.selected, corruption.replaced, strict=True)
    return [PLAIN if not selected else REPLACED if other else KEPT for selected, other in pairs]


def _lines(corruption: Corruption, line: int = LINE) -> list[tuple[int, int]]:
    """Where the lines of the text begin and end, so that each fits on the page."""
    lines, first, width = [], 0, 0
    for i in range(len(corruption.tokens)):
        letters = max(
            len(row[i]) for row in (corruption.tokens, corruption.masked, corruption.filled)
        )
        column = max(8 * letters + 28, 6 * len(_sign(corruption, i)) + 10)
        if width + column > line and i > first:
            lines.append((first, i))
            first, width = i, 0
        width += column
    return [*lines, (first, len(corruption.tokens))]


def _sign(corruption: Corruption, i: int) -> str:
    """The verdict on a token, where it was masked and where there is a false alarm."""
    if not corruption.selected[i] and not corruption.called[i]:
        return ""
    return " ".join(VERDICTS[corruption.replaced[i], corruption.called[i]])


def _table(corruption: Corruption, first: int, last: int, stages: tuple[str, ...]) -> str:
    """Tokens first to last − 1: a column a token, a row a stage."""
    here, styles = range(first, last), _box_styles(corruption)
    meanings = {PLAIN: "", REPLACED: "replaced by the generator", KEPT: "guessed right"}
    cells = (
        [box(corruption.tokens[i]) for i in here],
        [_box(corruption.masked[i], MASKED if corruption.selected[i] else PLAIN) for i in here],
        [_box(corruption.filled[i], styles[i], meanings[styles[i]]) for i in here],
        [_p_replaced(corruption.p_replaced[i], _sign(corruption, i)) for i in here],
    )
    rows = ""
    for name, row in zip(ROWS, cells, strict=True):
        if name not in stages:
            continue
        style = f"{_CELL};vertical-align:top" if name == ROWS[3] else _CELL
        inside = "".join(f'<td style="{style}">{cell}</td>' for cell in row)
        rows += (
            f'<tr style="background:#fff"><th scope="row" style="{_HEAD}">{name}</th>{inside}</tr>'
        )
    style = "border-collapse:collapse;background:#fff;margin:0 0 10px"
    return f'<table style="{style}"><tbody>{rows}</tbody></table>'


def _box(token: str, look: int, meaning: str = "") -> str:
    """A token as a box where something happened to it, else bare: changes stand out."""
    if look != PLAIN:
        return box(token, look, meaning)
    return f'<span style="{_SAME}">{escape(token)}</span>'


def _p_replaced(p: float, sign: str) -> str:
    """A probability in figures on a ground as dark as it is large."""
    under = f'<div style="font-size:11px;white-space:nowrap">{sign}</div>' if sign else ""
    return f"{_shade(p)}{under}"


def _shade(p: float) -> str:
    r, g, b = (round(light + p * (dark - light)) for light, dark in zip(*SCALE, strict=True))
    ink = "#fff" if p > 0.61 else "#000"  # both keep a contrast of 4.5 : 1
    style = (
        f"display:block;background:rgb({r},{g},{b});color:{ink};border:1px solid #9a9a9a;"
        "padding:2px;font-size:12px"
    )
    return f'<span class="p-replaced" style="{style}">{_percent(p)}</span>'


def _legend() -> str:
    """One box of each kind with its meaning."""
    entries = (("[MASK]", MASKED, "masked"), ("word", REPLACED, "replaced by the generator"),
             ("word", KEPT, "guessed right: not replaced"))  # fmt: skip
    cell = "display:inline-block;min-width:36px;text-align:center;margin-right:4px"
    shades = "".join(f'<span style="{cell}">{_shade(p)}</span>' for p in (0.0, 0.5, 1.0))
    meaning = "the discriminator's probability of “replaced”"
    return boxes_legend(entries) + (
        f'<div style="font-size:12px;color:#444;margin-top:4px">{shades}'
        f"<span>{meaning}</span></div>"
    )
