"""Controls above a picture, and the first of them: masking an own sentence.

A playground is a function that draws (values in, Html out) and the controls that give the values:
sliders, menus, fields for a text. The functions that draw can be called, and tested, without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
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


def playground(
    draw: Callable[..., Html | str], controls: Mapping[str, Any], static: Html | None = None
) -> Live:
    """The controls in a column above what draw(**their values) returns; drawn anew at every change.

    static: what stands for it where no kernel runs; None: what is drawn first. A ValueError of
    `draw` is shown as a message in place of the picture, but for the first one, which is raised.
    """
    import ipywidgets

    picture = ipywidgets.HTML()

    def show() -> Html | str:
        drawn = draw(**{name: control.value for name, control in controls.items()})
        picture.value = _RING + (drawn.html if isinstance(drawn, Html) else drawn)
        return drawn

    def redraw(_: Any = None) -> None:
        try:
            show()
        except ValueError as error:
            picture.value = card(note(str(error)), "message")

    if static is None:
        first = show()
        assert isinstance(first, Html), "without a static picture, draw returns Html"
        static = first
    else:
        redraw()
    for control in controls.values():
        control.layout.width = "min(620px, 98%)"
        control.style.description_width = "190px"
        control.observe(redraw, names="value")
    box = ipywidgets.VBox([*controls.values(), picture])
    box.add_class("course-playground")
    return Live(box, static, dict(controls))


def slider(
    name: str, value: float, low: float, high: float, step: float = 1, percent: bool = False
) -> Any:
    """A slider; of whole numbers where all it is given are whole."""
    import ipywidgets

    ends = {"value": value, "min": low, "max": high, "step": step, "description": name}
    if all(isinstance(number, int) for number in (value, low, high, step)):
        return ipywidgets.IntSlider(**ends)
    return ipywidgets.FloatSlider(**ends, **({"readout_format": ".0%"} if percent else {}))


def percent_slider(name: str, value: float, high: float = 1) -> Any:
    """A slider from 0% up in steps of 5%."""
    return slider(name, value, 0, high, 0.05, percent=True)


def choice(name: str, value: Any, options: Iterable[Any]) -> Any:
    """A menu of the options: values, or pairs of what is shown and a value."""
    import ipywidgets

    return ipywidgets.Dropdown(options=list(options), value=value, description=name)


def steps(name: str, value: Any, options: Iterable[Any]) -> Any:
    """A slider over the options: numbers, or pairs of what is shown and a value."""
    import ipywidgets

    pairs = [one if isinstance(one, tuple) else (f"{one:,}", one) for one in options]
    return ipywidgets.SelectionSlider(options=pairs, value=value, description=name)


def text_field(name: str, value: str, **more: Any) -> Any:
    """A line for a text; more: of ipywidgets.Text."""
    import ipywidgets

    return ipywidgets.Text(value=value, description=name, **more)


def checkbox(name: str, value: bool = True, **more: Any) -> Any:
    """A box to tick; more: of ipywidgets.Checkbox."""
    import ipywidgets

    return ipywidgets.Checkbox(value=value, description=name, **more)


# ---------------------------------------------------------------- masking


def masking_playground(
    tokenizer: WordPiece,
    text: str = "the river rose over its bank after the spring rain, and the bridge was closed.",
) -> Live:
    """Mask an own sentence; sliders for the rate, two probabilities, seed and epoch."""
    controls = {
        "text": text_field("sentence", text),
        "rate": percent_slider("rate: fraction selected", 0.15),
        "mask_share": percent_slider("of these, to [MASK]", 0.8),
        "random_share": percent_slider("of these, to a random token", 0.1),
        "seed": slider("seed", 0, 0, 50),
        "epoch": slider("epoch", 0, 0, 39),
    }
    return playground(partial(masking_picture, tokenizer), controls)


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
    sentence = masking_counts(before, after, actions)
    left = f"{sentence} Kept is what is left over: {kept_share:.0%} of the selected."
    counts = f'<p style="margin:6px 0 0">{escape(left)}</p>'
    return Html(card(row.inner + tokens_legend() + counts, "masking-view"), f"{row.text}\n{left}")


def masking_counts(before: Sequence[int], after: Sequence[int], actions: Sequence[int]) -> str:
    """How many positions met which fate, in a sentence."""
    masked, random, kept = (sum(a == kind for a in actions) for kind in (1, 2, 3))
    same = sum(a == 2 and x == y for a, x, y in zip(actions, before, after, strict=True))
    sentence = (
        f"{len(actions)} tokens, [CLS] and [SEP] counted; {masked + random + kept} selected: "
        f"{masked} became [MASK], {random} a random token, {kept} kept."
    )
    if same:
        sentence += (
            f" {same} random replacement{'s' * (same > 1)} gave the very token that was there."
        )
    return sentence


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
    nearby = list(dict.fromkeys(matches[0] for matches in near if matches))
    hint = f" Near in spelling: {', '.join(f'“{word}”' for word in nearby)}." if nearby else ""
    return (
        f"The model has never read {listed}; expected words of its vocabulary "
        f"({tokenizer.vocab_size:,} tokens).{hint}"
    )
