"""Words as rows of characters, which is what ELMo reads, and a vocabulary of whole words, which is
what it predicts.

262 character ids: 0 fills up rows of words; 1 to 256 are the bytes of UTF-8; then begin of
sentence, end of sentence, begin of word, end of word, and padding within a word. Nothing is ever
unknown: a letter outside ASCII is two bytes or more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from course_lib.files import write_atomic
from course_lib.objectives.sequences import SpecialIds

from .vocabulary import Vocabulary, check_sentences, check_text, check_texts, numbered
from .wordpiece import normalise, split_words

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
BEGIN, END = "<S>", "</S>"
PAD, UNK = "[PAD]", "<UNK>"
MAX_CHARACTERS = 50
_SIGNS = {BEGIN: BEGIN_SENTENCE, END: END_SENTENCE}


def spell(word: str, max_characters: int = MAX_CHARACTERS) -> list[int]:
    """One word as `max_characters` ids: begin of word, its bytes, end of word, padding.

    Bytes that do not fit are cut off, as in the authors' code: 48 stay of 50. <S> and </S> have a
    character of their own each, and [PAD] is zeros. Raises ValueError for an empty word."""
    check_text(word)
    if not word:
        raise ValueError("An empty word was given; expected at least one character.")
    if word == PAD:
        return [0] * max_characters
    encoded = word.encode("utf-8", "ignore")[: max_characters - 2]
    inside = [_SIGNS[word]] if word in _SIGNS else [byte + 1 for byte in encoded]
    ids = [BEGIN_WORD, *inside, END_WORD]
    return ids + [PADDING] * (max_characters - len(ids))


def spell_sentences(
    sentences: Sequence[Sequence[str]], max_characters: int = MAX_CHARACTERS
) -> tuple[Tensor, Tensor]:
    """Sentences of words as what ELMo reads: input_ids (B, T, C) and attention_mask (B, T), with
    <S> before and </S> after each; word k of a sentence is at position k + 1.

    Raises ValueError for no sentences, one without words, and text that was not cut into words."""
    sentences = check_sentences(sentences)
    if not sentences:
        raise ValueError("No sentences were given; expected at least one.")
    if empty := [number for number, sentence in enumerate(sentences) if not len(sentence)]:
        raise ValueError(f"Sentence {empty[0]} has no words; expected at least one in each.")
    longest = 2 + max(map(len, sentences))
    rows = [[BEGIN, *s, END, *[PAD] * (longest - 2 - len(s))] for s in sentences]
    ids = torch.tensor([[spell(word, max_characters) for word in row] for row in rows])
    return ids, (ids != 0).any(dim=-1).long()


def words_of(text: str, *, lowercase: bool = True, strip_accents: bool | None = None) -> list[str]:
    """The words of a text as BERT's tokenizer cuts them, before its pieces: signs stand alone."""
    return split_words(normalise(text, lowercase=lowercase, strip_accents=strip_accents))


class WordVocabulary(Vocabulary):
    """Every word of some text, the most frequent first, with its spelling.

    predicted: how many of them, <UNK> and the boundary signs included, a model is to predict; all
    others are <UNK> to its loss, but not to its eyes. Raises ValueError for a word given twice."""

    def __init__(self, words: Sequence[str], predicted: int | None = None) -> None:
        self.vocab = [PAD, UNK, BEGIN, END, *check_texts(words)]
        self.ids = numbered(self.vocab)
        self.predicted = min(predicted or self.vocab_size, self.vocab_size)

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], predicted: int | None = None) -> WordVocabulary:
        """All words of these sentences by their number of occurrences, then by alphabet.

        Raises ValueError where there are none."""
        counts = Counter(word for sentence in check_sentences(sentences) for word in sentence)
        if not counts:
            raise ValueError("No words were given; expected sentences with words in them.")
        return cls(sorted(counts, key=lambda word: (-counts[word], word)), predicted)

    @property
    def special(self) -> SpecialIds:
        """The ids of the signs under BERT's names: <S> for [CLS], </S> for [SEP]; no [MASK]."""
        return SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=1, vocab_size=self.vocab_size)

    @cached_property
    def spelling(self) -> Tensor:
        """(words, 50) int16: row i spells word i."""
        return torch.from_numpy(np.array([spell(word) for word in self.vocab], dtype=np.int16))

    def encode(self, words: Iterable[str]) -> list[int]:
        """The ids of words; that of <UNK> for a word that is not here."""
        return [self.ids.get(word, 1) for word in check_texts(words)]

    def save(self, path: str | Path) -> None:
        """Write the words that are predicted, one a line."""
        write_atomic(path, "".join(f"{word}\n" for word in self.vocab[: self.predicted]))
