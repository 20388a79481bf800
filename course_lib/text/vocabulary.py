"""What every tokenizer's list of tokens can do: say how long it is, and which token has an id."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course_lib.objectives.sequences import SpecialIds

# Unicode's white space. Python alone takes U+001C to U+001F for white space, too.
WHITE_SPACE = "".join(
    c for c in map(chr, range(0x3001)) if c.isspace() and c not in "\x1c\x1d\x1e\x1f"
)

LONGEST_WORD = 1_000  # characters; what is longer, such as a file in base64, teaches no pieces
MOST_PIECES = 1_000_000  # in a vocabulary that is learned: four times XLM-R's


def warn_of_long_words(many: int) -> None:
    """Say that so many words were left out when a vocabulary was learned."""
    if many:
        warnings.warn(
            f"{many:,} words of more than {LONGEST_WORD:,} characters were left out when the "
            "vocabulary was learned: no words of a language.",
            stacklevel=4,
        )


def check_text(text: object) -> None:
    """Raise TypeError for anything but a text."""
    if not isinstance(text, str):
        raise TypeError(f"expected a text (str), got {type(text).__name__}: {text!r:.60}")


def check_each(items: Iterable[Any], *kinds: type, one: str = "item") -> list[Any]:
    """The items as a list. Raises TypeError for one item instead of several, for other kinds of
    items, and for what holds none. one: what a message calls an item."""
    if isinstance(items, kinds):
        raise TypeError(
            f"expected several {one}s, got the one {one} {items!r:.60}: put it into a list."
        )
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise TypeError(f"expected several {one}s, got {type(items).__name__}: {items!r:.60}")
    items = list(items)
    for number, item in enumerate(items):
        if item is None or (
            isinstance(item, float) and item != item
        ):  # as pandas has for an empty cell
            raise TypeError(
                f"expected a {one}, got {item!r}, an empty cell, as number {number} of them (from "
                "0): fill it in, or leave it out; of a table's rows, dropna() leaves them out."
            )
        if not isinstance(item, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(
                f"expected a {one} ({expected}), got {type(item).__name__}: {item!r:.60}, as "
                f"number {number} of them."
            )
    return items


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list. Raises TypeError for one text instead of several, and for no texts."""
    return check_each(texts, str, one="text")


def check_sentences(sentences: Iterable[Sequence[str]]) -> list[list[str]]:
    """Sentences as lists of words. Raises ValueError for text that was not cut into words, and
    TypeError for what is no text."""
    if not isinstance(sentences, Iterable):
        raise TypeError(f"expected several sentences, got {sentences!r:.60}")
    sentences = list(sentences)
    if any(isinstance(sentence, str) for sentence in sentences):
        raise ValueError(
            "Text was given; expected lists of words, such as [['a', 'cat', 'sits']]. "
            "words_of(text) cuts a text into words."
        )
    return [check_texts(sentence) for sentence in sentences]


def utf8(text: str) -> bytes:
    """The bytes of a text. Raises TypeError for anything else, ValueError for a lone surrogate."""
    check_text(text)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} of the text is U+{ord(text[error.start]):04X}, a lone "
            "surrogate: half of a character, which UTF-8 cannot write. Join the halves with "
            'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").'
        ) from error


def numbered(vocab: Sequence[str]) -> dict[str, int]:
    """token -> id, its position. Raises ValueError for a token that stands there twice."""
    ids = {token: i for i, token in enumerate(vocab)}
    if len(ids) != len(vocab):
        twice = next(token for i, token in enumerate(vocab) if ids[token] != i)
        raise ValueError(f"{twice!r} stands twice in the vocabulary: a token must have one id.")
    return ids


def taken_whole(tokens: Iterable[str]) -> re.Pattern[str]:
    """A pattern whose `split` gives text, token, text, token, …, text: the longest token first."""
    longest = sorted(map(re.escape, tokens), key=len, reverse=True)
    return re.compile("(" + ("|".join(longest) or "(?!)") + ")")


class Vocabulary:
    """A list of tokens, `vocab`; a token's id is its position in that list."""

    vocab: list[str]
    ids: dict[str, int]
    model_max_length = 10**30  # tokens of a text, where a checkpoint says fewer than its model can
    special_tokens: Sequence[str]  # what is called [PAD], [UNK], [CLS], [SEP] and [MASK] in BERT

    @property
    def vocab_size(self) -> int:
        """How many tokens there are."""
        return len(self.vocab)

    @cached_property
    def special(self) -> SpecialIds:
        """The ids of the special tokens under BERT's names, and the number of tokens."""
        from course_lib.objectives.sequences import SpecialIds

        pad, unk, cls, sep, mask = (self.ids[token] for token in self.special_tokens)
        separators = 2 if self.special_tokens[3] == "</s>" else 1  # RoBERTa's and XLM-R's pairs
        return SpecialIds(pad, unk, cls, sep, mask, self.vocab_size, separators)

    def token(self, id: int) -> str:
        """The token with this id. Raises ValueError for an id outside 0 .. vocab_size - 1, and
        TypeError for what is no whole number."""
        try:
            number = index(id)
        except TypeError as error:
            raise TypeError(f"expected an id (int), got {type(id).__name__}: {id!r:.60}") from error
        if not 0 <= number < self.vocab_size:
            raise ValueError(
                f"id {number} is outside this vocabulary of {self.vocab_size} tokens "
                f"(0 to {self.vocab_size - 1}): was it made with another tokenizer?"
            )
        return self.vocab[number]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The tokens with these ids. Raises as `token` does, and TypeError for a single one."""
        if not isinstance(ids, Iterable):
            raise TypeError(f"expected several ids, got {type(ids).__name__}: {ids!r:.60}")
        return [self.token(id) for id in ids]

    def __len__(self) -> int:
        return self.vocab_size
