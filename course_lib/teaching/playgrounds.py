"""Controls above a picture, and the first of them: masking an own sentence.

A playground is a function that draws (values in, HTML out) and the controls that give the values.
The functions that draw can be called, and tested, without any widget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from html import escape
from typing import TYPE_CHECKING, Any

from .page import Html, Live, card, note
from .tokens import tokens_legend, tokens_row

if TYPE_CHECKING:
    from course_lib.objectives.sequences import PackedSequences
    from course_lib.text.byte_bpe import ByteBPE
    from course_lib.text.wordpiece import WordPiece

_RING = (
    "<style>.course-playground :focus-visible"
    "{outline:3px solid #E69F00!important;outline-offset:2px}</style>"
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
    text: str = "the river rose over its bank after the spring rain, and the bridge was closed.",
) -> Live:
    """Mask an own sentence; sliders for the rate, two probabilities, seed and epoch."""
    import ipywidgets as w

    controls = {
        "text": w.Text(value=text, description="sentence"),
        "rate": share_slider(w, 0.15, "rate: fraction selected"),
        "mask_share": share_slider(w, 0.8, "of these, to [MASK]"),
        "random_share": share_slider(w, 0.1, "of these, to a random token"),
        "seed": w.IntSlider(value=0, min=0, max=50, description="seed"),
        "epoch": w.IntSlider(value=0, min=0, max=39, description="epoch"),
    }

    def draw(**values: Any) -> str:
        return masking_picture(tokenizer, **values).html

    return playground(draw, controls, masking_picture(tokenizer, text))


def share_slider(w: Any, value: float, name: str) -> Any:
    """A slider from 0% to 100%; `w` is the module ipywidgets."""
    return w.FloatSlider(
        value=value, min=0, max=1, step=0.05, readout_format=".0%", description=name
    )


def masking_picture(
    tokenizer: WordPiece,
    text: str,
    rate: float = 0.15,
    mask_share: float = 0.8,
    random_share: float = 0.1,
    seed: int = 0,
    epoch: int = 0,
) -> Html:
    """One sentence after mask_sequences, as token boxes, the original words under what
    was changed.

    Raises ValueError for an empty sentence and for probabilities that sum to more than one.
    """
    from course_lib.objectives.masked_lm import mask_sequences

    both = mask_share + random_share
    kept_share = round(1 - both, 9)
    if kept_share < 0:
        raise ValueError(
            f"[MASK] {mask_share:.0%} and random {random_share:.0%} make {both:.0%} "
            "together; expected at most 100%: what is left over is kept. Lower one of the two."
        )
    sequences = one_row(tokenizer, text)
    mix = (mask_share, random_share, kept_share)
    masked = mask_sequences(
        sequences, tokenizer.special, rate=rate, mix=mix, seed=seed, epoch=epoch
    )
    before, after = sequences.input_ids[0].tolist(), masked.input_ids[0].tolist()
    actions = masked.action[0].tolist()
    labels = [_under(tokenizer, *one) for one in zip(before, after, actions, strict=True)]
    row = tokens_row([tokenizer.token(i) for i in after], actions, labels)
    said = masking_counts(before, after, actions)
    left = f"{said} Kept is what is left over: {kept_share:.0%} of the selected."
    counts = f'<p style="margin:6px 0 0">{escape(left)}</p>'
    return Html(card(row.inner + tokens_legend() + counts, "masking-view"), f"{row.text}\n{left}")


def masking_counts(before: Sequence[int], after: Sequence[int], actions: Sequence[int]) -> str:
    """How many positions met which fate, in a sentence."""
    masked, random, kept = (sum(a == kind for a in actions) for kind in (1, 2, 3))
    same = sum(a == 2 and x == y for a, x, y in zip(actions, before, after, strict=True))
    said = (
        f"{len(actions)} tokens, [CLS] and [SEP] counted; {masked + random + kept} selected: "
        f"{masked} became [MASK], {random} a random token, {kept} kept."
    )
    if same:
        said += f" {same} random replacement{'s' * (same > 1)} gave the very token that was there."
    return said


def _under(tokenizer: WordPiece, before: int, after: int, action: int) -> str:
    if action == 2 and before == after:
        return "drew itself"
    return {0: "", 1: tokenizer.token(before), 2: tokenizer.token(before), 3: "selected"}[action]


def one_row(tokenizer: WordPiece | ByteBPE, a: str, b: str | None = None) -> PackedSequences:
    """[CLS] a [SEP] or [CLS] a [SEP] b [SEP] as one sequence without padding."""
    from course_lib.objectives.sequences import pack, to_sequences

    first = tokenizer.encode(a)
    second = None if b is None else tokenizer.encode(b)
    if not first or second == []:
        raise ValueError("The sentence is empty; expected at least one word. Type one above.")
    return to_sequences([pack(first, second, tokenizer.special)])


def check_words(tokenizer: WordPiece, text: str, most: int) -> None:
    """Raise ValueError for a text without words, with unknown ones, or of more than `most` tokens,
    [CLS] and [SEP] counted. [MASK] counts as a word."""
    from course_lib.text.wordpiece import UNK

    words = list(tokenizer.words(text))
    if not words:
        raise ValueError("The sentence is empty; expected at least one word. Type one above.")
    pieces = {word: tokenizer.pieces(word) for word in dict.fromkeys(words)}
    if unknown := [word for word, parts in pieces.items() if UNK in parts]:
        raise ValueError(_about_unknown(tokenizer, unknown))
    tokens = sum(len(pieces[word]) for word in words) + 2
    if tokens > most:
        raise ValueError(
            f"The text has {tokens} tokens, [CLS] and [SEP] counted; expected at most {most}. "
            "Shorten it."
        )


def _about_unknown(tokenizer: WordPiece, unknown: Sequence[str]) -> str:
    listed = ", ".join(f"“{word[:30]}”" for word in unknown[:5]) + ", …" * (len(unknown) > 5)
    near = [get_close_matches(word, tokenizer.vocab, n=1) for word in unknown[:5]]
    nearby = list(dict.fromkeys(found[0] for found in near if found))
    hint = f" Near in spelling: {', '.join(f'“{word}”' for word in nearby)}." if nearby else ""
    return (
        f"The model has never read {listed}; expected words of its vocabulary "
        f"({tokenizer.vocab_size:,} tokens).{hint}"
    )
