"""What is lost of a text, or a pair, that does not fit into a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

from course_lib.teaching.page import Html, Live, card, paragraphs
from course_lib.teaching.playgrounds import playground, slider
from course_lib.teaching.tokens import box

_CUT = (
    "display:inline-block;margin:2px 3px 0 0;padding:4px 8px;border:1px dashed #767676;"
    "border-radius:3px;background:#fff;color:#666;text-decoration:line-through;"
    "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;white-space:pre"
)


def cut_view(
    first: Sequence[str], second: Sequence[str] | None = None, *, length: int = 24
) -> Live:
    """The tokens of a text or a pair, those that a sequence of `length` cannot hold struck through.

    The cut is text.packing.pack_pair's: token by token the end of whichever text is longer then,
    of the second when they are equally long. Control: length. Raises ValueError for a text without
    tokens and a length that does not hold one token of each.
    """
    least, whole = (3, len(first) + 2) if second is None else (5, len(first) + len(second) + 3)
    draw = partial(cut_picture, first, second)
    draw(length)  # a length that the slider cannot have is refused in words
    controls = {"length": slider("sequence length", length, least, max(whole, length))}
    return playground(draw, controls)


def cut_picture(first: Sequence[str], second: Sequence[str] | None, length: int) -> Html:
    """One length; ValueError as cut_view."""
    kept = kept_tokens(len(first), None if second is None else len(second), length)
    texts = [first] if second is None else [first, second]
    names = ["text"] if second is None else ["first text", "second text"]
    rows = "".join(
        f'<p style="margin:8px 0 2px;font-size:12px;color:#444">{name}: {many} of {len(tokens)} '
        f"tokens kept</p><div>{_boxes(tokens, many, n == 0)}</div>"
        for n, (name, tokens, many) in enumerate(zip(names, texts, kept, strict=True))
    )
    sentence = _in_words(names, texts, kept, length)
    html = card(rows + paragraphs([sentence]), "cut-view", 780)
    marked = (
        " ".join(tokens[:many]) + (f" ✂ {' '.join(tokens[many:])}" if many < len(tokens) else "")
        for tokens, many in zip(texts, kept, strict=True)
    )
    return Html(html, "\n".join([*marked, sentence]))


def kept_tokens(first: int, second: int | None, length: int) -> list[int]:
    """How many tokens of each text the packed sequence holds; the positions stand for the
    tokens."""
    from course_lib.objectives.sequences import SpecialIds
    from course_lib.text.packing import pack_pair

    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=5 + first + (second or 0))
    a = range(5, 5 + first)
    b = None if second is None else range(5 + first, 5 + first + second)
    ids, *_ = pack_pair(a, b, special, length, truncate=True)
    return [sum(i in part for i in ids) for part in (a, b) if part is not None]


def _boxes(tokens: Sequence[str], kept: int, first: bool) -> str:
    """[CLS] (before the first text), the tokens kept, scissors and the others, [SEP]."""
    head = box("[CLS]") * first + "".join(box(token) for token in tokens[:kept]) + box("[SEP]")
    if kept == len(tokens):
        return head
    cut = "".join(
        f'<span class="token token-cut" title="cut off" style="{_CUT}">{escape(token)}</span>'
        for token in tokens[kept:]
    )
    return f'{head}<span style="font-size:16px;padding:0 6px">✂</span>{cut}'


def _in_words(
    names: Sequence[str], texts: Sequence[Sequence[str]], kept: Sequence[int], length: int
) -> str:
    control = 1 + len(texts)
    lost = [len(tokens) - many for tokens, many in zip(texts, kept, strict=True)]
    room = f"A sequence of {length} holds {control} special tokens and {length - control} others"
    if not any(lost):
        free = length - control - sum(kept)
        return f"{room}: nothing is cut, {free} position{'s' * (free != 1)} stay empty."
    parts = " and ".join(
        f"{n} token{'s' * (n != 1)} from the end of the {name}"
        for n, name in zip(lost, names, strict=True)
        if n
    )
    return (
        f"{room}: {parts} {'is' if sum(lost) == 1 else 'are'} cut, and the model never sees them."
    )
