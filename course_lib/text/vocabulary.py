"""What every tokenizer's list of tokens can do: say how long it is, and which token has an id."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

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
        """The token with this id. Raises ValueError for an id outside 0 .. vocab_size - 1."""
        if not 0 <= int(id) < self.vocab_size:
            raise ValueError(
                f"id {int(id)} is outside this vocabulary of {self.vocab_size} tokens "
                f"(0 to {self.vocab_size - 1}): was it made with another tokenizer?"
            )
        return self.vocab[int(id)]

    def __len__(self) -> int:
        return self.vocab_size
