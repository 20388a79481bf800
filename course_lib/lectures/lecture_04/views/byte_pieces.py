"""A text of the reader's own as bytes and byte-level BPE pieces, and one word merged step by step.

Pieces are shown as vocabulary files write them: Ġ stands for a space, and every byte that is no
visible character for another sign. The hexadecimal bytes below a piece say what it really holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from course_lib.teaching.page import Html, Live, card
from course_lib.teaching.playgrounds import choice, playground, text_field
from course_lib.teaching.tokens import box, tokens_row

if TYPE_CHECKING:
    from course_lib.text.byte_bpe import ByteBPE
    from course_lib.text.wordpiece import WordPiece

TEXT = "Zoë's café near the 橋 is closed 🐙"
MOST_BYTES, MOST_LETTERS = 400, 40
_SMALL = "font-size:12px;color:#444"
_MONO = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px"


def byte_pieces_view(
    tokenizer: ByteBPE, text: str = TEXT, *, wordpiece: WordPiece | None = None
) -> Live:
    """A box for a text and a menu of its words; its pieces with ids, and how one word is merged.

    wordpiece: a second tokenizer whose pieces of the same text are shown for comparison.
    Controls: text, word (the number of a word in the text, from 0).
    """
    controls = {
        "text": text_field("text", text),
        "word": choice("word to merge", _longest(text), _menu(text)),
    }

    def follow(change: Any) -> None:
        controls["word"].options = _menu(change["new"])
        controls["word"].value = _longest(change["new"])

    controls["text"].observe(follow, names="value")
    return playground(partial(byte_pieces_picture, tokenizer, wordpiece=wordpiece), controls)


def _menu(text: str) -> list[tuple[str, int]]:
    """The words of a text that merges may join, by their number. White space alone is no choice."""
    return [(word, place) for place, word in enumerate(_words(text)) if word.strip()]


def _words(text: str) -> list[str]:
    from course_lib.text.byte_bpe import split_text

    return split_text(text)


def _longest(text: str) -> int | None:
    """The word with the most letters: the one with something to see."""
    choices = _menu(text)
    return max(choices, key=lambda choice: len(choice[0]))[1] if choices else None


def byte_pieces_picture(
    tokenizer: ByteBPE,
    text: str = TEXT,
    word: int | None = None,
    *,
    wordpiece: WordPiece | None = None,
) -> Html:
    """The text, its bytes, its pieces as boxes with ids, and the merges of one of its words.

    word: a number in split_text(text); None takes the longest word.
    Raises ValueError for a text without words, one of more than 400 bytes, and a number without a
    word.
    """
    words, word = _checked(text, word)
    ids = tokenizer.encode(text)
    pieces = [tokenizer.token(i) for i in ids]
    counts = f"{_of(len(text), 'character')}, {_of(len(text.encode()), 'byte')} in UTF-8."
    cut = f"Byte-level BPE: {_of(len(ids), 'piece')}, none unknown."
    labels = [_below(piece, i) for piece, i in zip(pieces, ids, strict=True)]
    row = tokens_row(pieces, [0] * len(ids), labels)
    lines = [counts, cut, row.text]
    html = f"<p style='margin:0 0 8px'>{escape(counts)}</p>{_head(cut)}{row.inner}"
    if wordpiece is not None:
        heading, other = _wordpiece_row(wordpiece, text)
        html += _head(heading) + other.inner
        lines += [heading, other.text]
    heading, table, written = word_merges(tokenizer, words[word])
    html += _head(heading) + table
    return Html(card(html, "byte-pieces", 780), "\n".join([*lines, heading, *written]))


def _checked(text: str, word: int | None) -> tuple[list[str], int]:
    """The words of the text and the number of the one to merge."""
    from course_lib.text.byte_bpe import stand_ins

    longest = _longest(text)
    if longest is None:
        raise ValueError("The text is empty; expected at least one word. Type one above.")
    if (size := len(stand_ins(text))) > MOST_BYTES:
        raise ValueError(
            f"The text has {size} bytes; expected at most {MOST_BYTES}, so that its "
            "pieces fit on the page. Shorten it."
        )
    words, place = _words(text), longest if word is None else word
    if not 0 <= place < len(words):
        raise ValueError(
            f"word={place} was given; expected a number from 0 to {len(words) - 1}: the text has "
            f"{_of(len(words), 'word')}."
        )
    return words, place


def _wordpiece_row(wordpiece: WordPiece, text: str) -> tuple[str, Html]:
    ids = wordpiece.encode(text)
    unknown = ids.count(wordpiece.special.unk)
    row = tokens_row([wordpiece.token(i) for i in ids], [0] * len(ids), [str(i) for i in ids])
    return f"WordPiece: {_of(len(ids), 'piece')}, {unknown or 'none'} unknown.", row


def _of(count: int, name: str) -> str:
    return f"{count} {name}{'s' * (count != 1)}"


def _head(text: str) -> str:
    return f'<div style="font-weight:600;margin:10px 0 2px">{escape(text)}</div>'


def _below(piece: str, id: int) -> str:
    """The id of a piece; where its signs are not the text, its bytes and the letters they make."""
    from course_lib.text.byte_bpe import BYTE_OF

    if piece.removeprefix("Ġ").isascii():
        return str(id)
    held = bytes(BYTE_OF[sign] for sign in piece)
    try:
        letters = f" = {held.decode('utf-8')}"
    except UnicodeDecodeError:  # a part of a character
        letters = ""
    return f"{id}\n{held.hex(' ')}{letters}"


# ---------------------------------------------------------------- one word, merge by merge


def word_merges(tokenizer: ByteBPE, word: str) -> tuple[str, str, list[str]]:
    """A sentence, the steps as rows of boxes, and the same in words."""
    if len(word.encode()) > MOST_LETTERS:
        sentence = f"“{word}” has more than {MOST_LETTERS} bytes: too long to show its merges."
        return sentence, "", []
    steps = tokenizer.word_steps(word)
    space = " with the space before it" if word.startswith(" ") else ""
    sentence = (
        f"“{word.strip()}”{space}: {_of(len(steps[0]), 'byte')}, {_of(len(steps) - 1, 'merge')}, "
        f"{_of(len(steps[-1]), 'piece')} left."
    )
    rules = ["the bytes", *(_rule(tokenizer, *pair) for pair in pairwise(steps))]
    numbered = list(enumerate(zip(steps, rules, strict=True)))
    rows = "".join(_step(i, pieces, rule) for i, (pieces, rule) in numbered)
    style = "border-collapse:collapse;background:#fff;color:#1a1a1a"
    written = [f"{i}. {' '.join(pieces)}   ({rule})" for i, (pieces, rule) in numbered]
    return sentence, f'<table style="{style}">{rows}</table>', written


def _rule(tokenizer: ByteBPE, before: Sequence[str], after: Sequence[str]) -> str:
    """Which merge leads from one row of pieces to the next, and when it was learned."""
    at = next(i for i, piece in enumerate(after) if piece != before[i])
    pair = (before[at], before[at + 1])
    return f"{pair[0]} + {pair[1]}, merge no. {tokenizer.ranks[pair] + 1:,}"


def _step(step: int, pieces: Sequence[str], rule: str) -> str:
    cell = "padding:1px 12px 1px 0;background:#fff;text-align:left;white-space:nowrap"
    boxes = "".join(box(piece) for piece in pieces)
    columns = ((_SMALL, step or "start"), ("", boxes), (f"{_SMALL};{_MONO}", escape(rule)))
    row = "".join(f'<td style="{cell};{look}">{content}</td>' for look, content in columns)
    return f'<tr style="background:#fff">{row}</tr>'
