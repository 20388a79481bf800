"""WordPiece: words into pieces of a fixed vocabulary, longest first (Wu et al. 2016, section 4.1).

The text goes through four steps, one function each: `normalise` (lower case, no accents),
`split_words` (white space and punctuation), `longest_match` (a word into pieces), and the
vocabulary (a piece into its id). The rule is that of the `tokenizers` library, with which
everybody reads BERT's models today: `fast_wordpiece` is the same thing there, and the tests hold
the two together on every word of a large text. (They may part over characters newer than the
library's Unicode tables.) Google's own program, tokenization.py, differs in four places: a capital
Σ at the end of a word becomes ς there, here σ; since November 2018 it cuts words of up to 200
characters, here it is 100 (`max_chars`); characters for private use stay there and vanish here; and
a [MASK] written in a text is three tokens there, here one (`added_tokens`)."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from course_lib.config import check_size
from course_lib.files import nearby, one_error, read_text, write_atomic

from . import tokenizer_files as files
from .vocabulary import (
    LONGEST_WORD,
    MOST_PIECES,
    WHITE_SPACE,
    Vocabulary,
    check_text,
    check_texts,
    numbered,
    taken_whole,
    utf8,
    warn_of_long_words,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer


PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUES = "##"  # marks a piece that does not begin its word

# Control, format, surrogate, private use. Not Cn (unassigned): which characters those are depends
# on the version of Unicode, and last year's unassigned character is this year's emoji.
CONTROL = ("Cc", "Cf", "Cs", "Co")

# Ideographs are written without spaces between words, so BERT makes each one a word of its own.
# The last-but-three range starts where the `tokenizers` library lets it start.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


# ---------------------------------------------------------------- text into words


@lru_cache(maxsize=4096)
def clean(char: str) -> str:
    """One character made harmless: control characters vanish, white space becomes a space."""
    if char in "\t\n\r":
        return " "
    if char == "\ufffd" or unicodedata.category(char) in CONTROL:
        return ""
    return " " if char.isspace() else char


@lru_cache(maxsize=4096)
def set_apart(char: str) -> str:
    """An ideograph gets a space on both sides; every other character stays as it is."""
    ideograph = any(first <= ord(char) <= last for first, last in IDEOGRAPHS)
    return f" {char} " if ideograph else char


def without_accents(text: str) -> str:
    """`text` with every letter taken apart into base and accents (NFD), and the accents dropped."""
    parts = unicodedata.normalize("NFD", text)
    return "".join(char for char in parts if unicodedata.category(char) != "Mn")


def normalise(
    text: str,
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    clean_text: bool = True,
    handle_chinese_chars: bool = True,
) -> str:
    """`text` cleaned, with ideographs set apart and, for uncased models, without accents and in
    lower case. The settings are those of WordPiece, and of a tokenizer.json's BertNormalizer.
    Raises TypeError for anything but a string."""
    check_text(text)
    if clean_text:
        text = "".join(map(clean, text))
    if handle_chinese_chars and not text.isascii():
        text = "".join(map(set_apart, text))
    if lowercase if strip_accents is None else strip_accents:
        text = text if text.isascii() else without_accents(text)
    # Letter by letter: str.lower would give a Greek sigma its other form at the end of a word.
    return "".join(map(str.lower, text)) if lowercase else text


@lru_cache(maxsize=4096)
def is_punctuation(char: str) -> bool:
    """Whether `char` stands alone: Unicode's punctuation, and every ASCII sign such as $ + < ^."""
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")


def split_words(text: str) -> list[str]:
    """Normalised `text` split at white space; each punctuation sign is a word of its own."""
    check_text(text)
    return _WORD.findall("".join(f" {char} " if is_punctuation(char) else char for char in text))


# Not str.split(), which takes U+001C to U+001F for white space: they stay where nothing is cleaned.
_WORD = re.compile(f"[^{WHITE_SPACE}]+")


def _words_and_places(text: str, places: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
    """The words of `split_words(text)`, one character after the other, each with the places of its
    letters. places: of the characters of `text`."""
    start = 0
    for at, char in enumerate(f"{text} "):
        alone = is_punctuation(char)
        if alone or char in WHITE_SPACE:
            if start < at:
                yield text[start:at], places[start:at]
            if alone:
                yield char, places[at : at + 1]
            start = at + 1


_normalised = lru_cache(maxsize=4096)(normalise)  # of single characters


# ---------------------------------------------------------------- words into pieces


def longest_match(word: str, vocab: Collection[str]) -> list[str] | None:
    """`word` as pieces of `vocab`, always the longest one that fits; None if none fits.

    Pieces after the first carry the prefix ##: unaffable -> un ##aff ##able."""
    pieces, start = [], 0
    while start < len(word):
        prefix = CONTINUES if start else ""
        ends = range(len(word), start, -1)  # longest first
        end = next((end for end in ends if prefix + word[start:end] in vocab), None)
        if end is None:
            return None
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


class WordPiece(Vocabulary):
    """A WordPiece tokenizer over the list `vocab`; a token's id is its position in that list.

    vocab: tokens, with the five special ones among them and none twice.
    lowercase: True for uncased models, False for cased ones.
    strip_accents: whether accents and other marks are dropped; None: where `lowercase` is True.
    clean_text: whether control characters vanish and all white space is one space.
    handle_chinese_chars: whether every ideograph is a word of its own.
    max_chars: a word of more characters becomes [UNK] at once.
    added_tokens: tokens that are taken out of a text whole, before it is cut, each with whether it
    is looked for in the normalised text (True) or as it is written (False); None: the five special
    ones, as written. Those that `vocab` lacks are added behind it, in their order.
    Raises ValueError for a vocabulary that is empty, lacks a special token or repeats a token, and
    for added tokens of which normalising leaves nothing, or the same as of another one."""

    special_tokens = SPECIAL_TOKENS

    def __init__(
        self,
        vocab: Sequence[str],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        clean_text: bool = True,
        handle_chinese_chars: bool = True,
        max_chars: int = 100,
        added_tokens: Mapping[str, bool] | None = None,
    ):
        self.lowercase = lowercase
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self.normalisation: dict[str, Any] = {
            "lowercase": lowercase,
            "strip_accents": None if self.strip_accents == lowercase else self.strip_accents,
            "clean_text": clean_text,
            "handle_chinese_chars": handle_chinese_chars,
        }
        self.max_chars = max_chars
        vocab = check_texts(vocab)
        self.cut_into = numbered(vocab)  # what a word may become
        self.added_tokens = dict(_special_of(vocab) if added_tokens is None else added_tokens)
        self.vocab = [*vocab, *(token for token in self.added_tokens if token not in self.cut_into)]
        self.ids = numbered(self.vocab)
        _check_special(self)
        as_written = [token for token, normalized in self.added_tokens.items() if not normalized]
        others = [token for token, normalized in self.added_tokens.items() if normalized]
        self._normalised = {self._normalise(token): token for token in others}
        if "" in self._normalised or len(self._normalised) < len(others):
            raise ValueError(
                f"of the added tokens {', '.join(others)} normalising leaves nothing, or the same "
                "of two: expected tokens that stay apart."
            )
        self._find = taken_whole(as_written), taken_whole(self._normalised)

    def _normalise(self, text: str) -> str:
        return normalise(text, **self.normalisation)

    @classmethod
    def from_words(
        cls, words: Iterable[str], *, lowercase: bool = True, strip_accents: bool | None = None
    ) -> WordPiece:
        """A vocabulary of the five special tokens (ids 0 to 4) followed by `words`, in their order.

        Raises ValueError for a word that no text could ever produce, such as one with a capital
        letter in an uncased vocabulary, or one with a space or an apostrophe inside."""
        words = check_texts(words)
        made = cls([*SPECIAL_TOKENS, *words], lowercase=lowercase, strip_accents=strip_accents)
        for word in words:
            bare = word.removeprefix(CONTINUES)
            if split_words(made._normalise(bare)) != [bare]:
                raise ValueError(
                    f"{word!r} can never be matched: text is "
                    f"{'lower-cased, ' if lowercase else ''}"
                    f"{'stripped of accents, ' if made.strip_accents else ''}split at spaces and "
                    "at punctuation first. Give whole words in the form in which they arrive."
                )
        return made

    def with_vocab(self, vocab: Sequence[str]) -> WordPiece:
        """A tokenizer with these settings and another vocabulary."""
        others: dict[str, Any] = {"max_chars": self.max_chars, "added_tokens": self.added_tokens}
        return WordPiece(vocab, **self.normalisation, **others)

    @classmethod
    def from_file(
        cls, path: str | Path, *, lowercase: bool | None = None, strip_accents: bool | None = None
    ) -> WordPiece:
        """Read `vocab.txt` (a token a line) or `tokenizer.json` (the `tokenizers` library's), or
        the folder of either.

        A tokenizer.json gives the ids that the library gives, which are not always those of
        transformers' BertTokenizer (see tokenizer_files), whatever truncation and padding it asks
        for. Beside vocab.txt, tokenizer_config.json has the settings
        and, with added_tokens.json and special_tokens_map.json, the added tokens. Where it does not
        name them, the pieces show whether capitals and accents are kept.
        lowercase, strip_accents: None takes them from the files.
        Raises FileNotFoundError, and ValueError for a file that holds no WordPiece vocabulary, for
        settings that WordPiece does not have, and for files that contradict each other."""
        path = files.tokenizer_file(path, "vocab.txt")
        if not path.is_file():
            raise FileNotFoundError(
                f"no vocabulary at {path}: expected a vocab.txt or a tokenizer.json there."
                + nearby(path)
            )
        overrides = {"lowercase": lowercase, "strip_accents": strip_accents}
        overrides = {name: value for name, value in overrides.items() if value is not None}
        with one_error(path, ValueError):
            whole = path.suffix == ".json"
            vocab, settings = _from_tokenizer_json(path) if whole else _from_vocab_txt(path)
            try:
                read = cls(vocab, **{**settings, **overrides})
            except ValueError as error:
                raise ValueError(f"{path} is not a WordPiece vocabulary: {error}") from error
            expected = _expected_beside(read, overrides)
            files.refuse_beside(read, path, read.added_tokens, expected, CLASSES)
        return read

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to `path`, a token a line, in the order of the ids (vocab.txt)."""
        write_atomic(path, "".join(f"{token}\n" for token in self.vocab))

    @cached_property
    def continuing(self) -> Tensor:
        """(V,) bool: is the token with this id a ## piece, which goes on with a word?"""
        return torch.tensor([token.startswith(CONTINUES) for token in self.vocab])

    def tokenize(self, text: str) -> list[str]:
        """The tokens of `text`. A special token written out, such as [MASK], stays whole."""
        parts = self._parts(text)
        return [t for word, whole in parts for t in ([word] if whole else self.cut_word(word))]

    def words(self, text: str) -> Iterator[str]:
        """The words of `text` before they are cut into pieces; added tokens whole."""
        check_text(text)
        return (word for word, _ in self._parts(text))

    def _parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """The words of `text`, and for each whether it is an added token."""
        check_text(text)
        first, second = self._find
        for number, part in enumerate(first.split(text)):
            if number % 2:
                yield part, True
                continue
            for inner, normal in enumerate(second.split(self._normalise(part))):
                if inner % 2:
                    yield self._normalised[normal], True
                else:
                    yield from ((word, False) for word in split_words(normal))

    def pieces(self, word: str) -> list[str]:
        """The pieces of one of `words`: an added token is whole, another word is cut."""
        check_text(word)
        return [word] if word in self.added_tokens else self.cut_word(word)

    def cut_word(self, word: str) -> list[str]:
        """The pieces of one normalised word; [UNK] alone when it is too long or does not match."""
        check_text(word)
        if len(word) > self.max_chars:
            return [UNK]
        return longest_match(word, self.cut_into) or [UNK]

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without [CLS] and [SEP]. Raises TypeError for what is no text."""
        return [self.ids[token] for token in self.tokenize(text)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of `text` as `encode` gives them, and where in `text` each of them stands.

        Offsets are (start, end) in characters of `text` as it was given, so that
        text[start:end] is what the token was made from: "Café" for the token cafe. [UNK] stands
        for the whole word. Raises TypeError for anything but a string."""
        check_text(text)
        ids, offsets = [], []
        for word, places, whole in self._placed_words(text):
            start = 0
            for number, piece in enumerate([word] if whole else self.cut_word(word)):
                bare = piece.removeprefix(CONTINUES if number else "")
                end = len(places) if whole or piece == UNK else start + len(bare)
                ids.append(self.ids[piece])
                offsets.append((places[start], places[end - 1] + 1))
                start = end
        return ids, offsets

    def _placed_words(self, text: str) -> Iterator[tuple[str, Sequence[int], bool]]:
        """What `_parts` gives, and for each letter the position of the character it comes from."""
        at = 0
        for number, part in enumerate(self._find[0].split(text)):
            places = range(at, at := at + len(part))
            if number % 2:
                yield part, places, True
            else:
                letters = [_normalised(char, **self.normalisation) for char in part]
                yield from self._placed_in(
                    "".join(letters),
                    [p for p, some in zip(places, letters, strict=True) for _ in some],
                )

    def _placed_in(self, text: str, places: list[int]) -> Iterator[tuple[str, Sequence[int], bool]]:
        """The same for normalised `text`, whose characters come from `places`."""
        at = 0
        for number, part in enumerate(self._find[1].split(text)):
            inside = places[at : (at := at + len(part))]
            if number % 2:
                yield self._normalised[part], inside, True
            else:
                yield from ((*positioned, False) for positioned in _words_and_places(part, inside))

    def decode(self, ids: Iterable[int]) -> str:
        """The tokens of `ids` as text: a space between words, none before a ## piece."""
        text = " ".join(self.tokens(ids))
        return text.replace(f" {CONTINUES}", "")

    def id(self, token: str) -> int:
        """The id of `token`. Raises ValueError when it is not in the vocabulary."""
        check_text(token)
        if token not in self.ids:
            raise ValueError(
                f"{token!r} is none of the {self.vocab_size} tokens. tokenize({token!r}) gives "
                f"{self.tokenize(token)}: use these, or a word from .vocab."
            )
        return self.ids[token]

    def __repr__(self) -> str:
        return f"WordPiece({self.vocab_size} tokens, lowercase={self.lowercase})"


# ---------------------------------------------------------------- pieces back to words


def word_numbers(tokenizer: WordPiece, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
    """Which word of its sequence each token belongs to, from 0 on; −1 at [CLS], [SEP] and padding.

    input_ids, attention_mask (N, T) -> (N, T) int64. A ## piece belongs to the word before it;
    where there is none, because the text was cut inside a word, it begins one. [UNK] is a word.
    Raises ValueError for masks of another shape and for ids outside the vocabulary."""
    if attention_mask.shape != input_ids.shape:
        raise ValueError(
            f"attention_mask of shape {tuple(attention_mask.shape)} was given; expected that of "
            f"input_ids, {tuple(input_ids.shape)}: 1 at real tokens, 0 at padding."
        )
    if input_ids.numel() and not 0 <= input_ids.min() <= input_ids.max() < len(tokenizer):
        raise ValueError(
            f"ids from {int(input_ids.min())} to {int(input_ids.max())} were given; expected 0 to "
            f"{len(tokenizer) - 1}: were the sequences made with another tokenizer?"
        )
    in_words = attention_mask.bool()
    for special_id in tokenizer.special.never_masked:
        in_words = in_words & (input_ids != special_id)
    begins = in_words.clone()
    begins[..., 1:] &= ~(tokenizer.continuing[input_ids[..., 1:]] & in_words[..., :-1])
    return (begins.cumsum(dim=-1) - 1).masked_fill(~in_words, -1)


# ---------------------------------------------------------------- the same in `tokenizers`


def train_wordpiece(
    texts: Iterable[str],
    vocab_size: int,
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    min_frequency: int = 2,
) -> WordPiece:
    """Learn a vocabulary of at most `vocab_size` tokens from `texts` (the `tokenizers` trainer).

    lowercase, strip_accents: as in WordPiece.
    min_frequency: how often two pieces must meet to become one. The same texts give the same
    vocabulary: the special tokens, single letters inside and at the beginning of words, then what
    was learned, most frequent first.
    Words of more than LONGEST_WORD characters are left out, with a warning.
    Raises ValueError when `vocab_size` is too small for the special tokens and the letters of the
    texts or above MOST_PIECES, or when the texts hold no words; TypeError for texts that are not
    strings, or one string instead of several."""
    from tokenizers.trainers import WordPieceTrainer

    check_size("vocab_size", vocab_size, 0, MOST_PIECES)
    if vocab_size <= len(SPECIAL_TOKENS):
        raise ValueError(
            f"vocab_size is {vocab_size}; the {len(SPECIAL_TOKENS)} special tokens alone need "
            "that many. A few thousand is usual for a small text, 30,522 is BERT's."
        )
    texts = check_texts(texts)
    for text in texts:
        utf8(text)  # the library takes no other
    empty = WordPiece(SPECIAL_TOKENS, lowercase=lowercase, strip_accents=strip_accents)
    tokenizer = fast_wordpiece(empty)
    texts = _without_long_words(tokenizer, texts)
    # Left to itself, the trainer (tokenizers 0.23.3, findings/) numbers the ## letters by a hash
    # table and settles ties by these numbers: another vocabulary in every run. So we order them.
    inner = [CONTINUES + char for char in sorted(_inner_letters(tokenizer, texts))]
    named = [CONTINUES + char for char in sorted(_letters_of_control_tokens(texts))]
    named = [piece for piece in named if piece not in inner]
    trainer = WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=[*SPECIAL_TOKENS, *inner, *named],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = tokenizer.get_vocab()
    # The letters of special tokens, which text is never cut into, stand behind all other letters.
    learned = len(SPECIAL_TOKENS) + len(inner) + len(named) + sum(len(piece) == 1 for piece in ids)
    last = {piece: learned - 0.5 for piece in named}
    vocab = sorted(ids, key=lambda piece: (last.get(piece, ids[piece]), piece))
    if len(vocab) == len(SPECIAL_TOKENS):
        raise ValueError("the texts hold no words: nothing to learn a vocabulary from.")
    if len(vocab) > vocab_size:
        raise ValueError(
            f"vocab_size is {vocab_size}; the special tokens and the letters of these texts alone "
            f"are {len(vocab)}. Choose a larger one."
        )
    return empty.with_vocab(vocab)


def _without_long_words(tokenizer: Tokenizer, texts: Sequence[str]) -> list[str]:
    """The texts without words that would take the trainer minutes, such as a file of base64."""
    result, many = [], 0
    for text in texts:
        if len(text) > LONGEST_WORD and max(map(len, text.split()), default=0) > LONGEST_WORD:
            normal = tokenizer.normalizer.normalize_str(text)
            words = [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]
            kept = [word for word in words if len(word) <= LONGEST_WORD]
            many += len(words) - len(kept)
            text = " ".join(kept) if len(kept) < len(words) else text
        result.append(text)
    warn_of_long_words(many)
    return result


def _letters_of_control_tokens(texts: Sequence[str]) -> set[str]:
    """What a text that speaks of [CLS] or [MASK] holds inside words: their capitals, too."""
    result = (token for token in SPECIAL_TOKENS if any(token in text for text in texts))
    return {char for token in result for char in token[1:]}


def _inner_letters(tokenizer: Tokenizer, texts: Iterable[str]) -> set[str]:
    """Every character that stands inside a word of `texts`, not at its beginning."""
    split, normal = tokenizer.pre_tokenizer.pre_tokenize_str, tokenizer.normalizer.normalize_str
    words = {word for text in texts for word, _ in split(normal(text))}
    return {char for word in words for char in word[1:]}


def fast_wordpiece(wordpiece: WordPiece) -> Tokenizer:
    """The same tokenizer in the `tokenizers` library (Rust): .encode(text).ids, .encode_batch."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(
        models.WordPiece(
            vocab=wordpiece.cut_into, unk_token=UNK, max_input_chars_per_word=wordpiece.max_chars
        )
    )
    tokenizer.normalizer = normalizers.BertNormalizer(**wordpiece.normalisation)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    for token, normalized in wordpiece.added_tokens.items():
        added = AddedToken(token, normalized=normalized, special=not normalized)
        tokenizer.add_tokens([added])
    return tokenizer


# ---------------------------------------------------------------- vocabulary files


def _special_of(vocab: Collection[str]) -> dict[str, bool]:
    """The special tokens of a vocabulary as added ones, which are looked for as written."""
    return {token: False for token in SPECIAL_TOKENS if token in vocab}


def _check_special(read: WordPiece) -> None:
    missing = [token for token in SPECIAL_TOKENS if token not in read.ids]
    if missing or UNK not in read.cut_into:
        raise ValueError(
            f"the vocabulary ({len(read.vocab)} tokens) lacks {' '.join(missing or [UNK])}. "
            "WordPiece.from_words(words) puts the special tokens in front."
        )


SETTINGS = {  # in a tokenizer.json and here -> in tokenizer_config.json
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "clean_text": "clean_text",
    "handle_chinese_chars": "tokenize_chinese_chars",
}
# What else a tokenizer_config.json may say of how BERT's classes cut.
CUT = {
    "do_basic_tokenize": True, "do_word_tokenize": True, "do_subword_tokenize": True,
    "word_tokenizer_type": "basic", "subword_tokenizer_type": "wordpiece", "never_split": [],
    "wordpieces_prefix": CONTINUES,
}  # fmt: skip
CLASSES = "(Bert|DistilBert|Electra|MobileBert|ConvBert)Tokenizer"
SINGLE, ANYWHERE = {"single_word"}, "added tokens that are taken wherever they stand"


def _from_vocab_txt(path: Path) -> tuple[list[str], dict[str, Any]]:
    text = read_text(path, "a vocab.txt or a tokenizer.json").replace("\r\n", "\n")
    # Not splitlines(): vocabularies hold characters that it would take for line ends.
    vocab = [line.rstrip(" \t") for line in text.rstrip(" \t\n").split("\n")]
    if "" in vocab[:-1]:
        warnings.warn(
            f"line {vocab.index('') + 1} of {path} is blank and counts as a token, as in "
            "transformers: a token's id is its line's number. If the line is there by mistake, "
            "every id behind it is wrong: delete it.",
            stacklevel=4,
        )
    config = files.read_object(path.with_name(files.CONFIG))
    config = {name: value for name, value in config.items() if value is not None}
    settings = {ours: config[theirs] for ours, theirs in SETTINGS.items() if theirs in config}
    odd = [f"{SETTINGS[n]} = {v!r}" for n, v in settings.items() if not isinstance(v, bool)]
    files.refuse(path.with_name(files.CONFIG), odd, "true or false")
    added: dict[str, bool] = {}
    for token in sorted(
        files.tokens_beside(path), key=lambda token: (token.id is None, token.id or 0)
    ):
        files.refuse(path.with_name(files.CONFIG), [*SINGLE & token.flags], ANYWHERE)
        added.setdefault(token.content, bool(token.normalized))
    settings["added_tokens"] = {**_special_of(vocab), **added}
    return vocab, settings if "lowercase" in settings else {**_shown_by(vocab), **settings}


def _shown_by(vocab: Sequence[str]) -> dict[str, Any]:
    """What a vocabulary itself shows: whether its text kept capitals, and in lower case, accents.

    A piece in a thousand may be a stray. The ## pieces and special tokens' letters do not count:
    training on texts that speak of [MASK] brings ##M and A into uncased vocabularies, too."""
    words = [p for p in vocab if not re.fullmatch(r"##.*|\[.+\]|[ACDEKLMNPSU]", p, re.DOTALL)]
    cased = sum(word.lower() != word for word in words)
    marked = sum(without_accents(word) != word for word in words)
    lowercase, unmarked = (many <= len(words) // 1000 for many in (cased, marked))
    return {"lowercase": lowercase, "strip_accents": None if unmarked else False}


def _from_tokenizer_json(path: Path) -> tuple[list[str], dict[str, Any]]:
    read, content = files.read_tokenizer_json(path, "WordPiece")
    model, tokens = content["model"], files.tokens_in(content)
    normalizer = content.get("normalizer") or dict.fromkeys(SETTINGS, False)
    unlike = files.settings_unlike(
        model, {"unk_token": UNK, "continuing_subword_prefix": CONTINUES}
    )
    unlike += files.parts_unlike(read, "None|BertNormalizer", "BertPreTokenizer")
    unlike += [f"{flag} of {token.content!r}" for token in tokens for flag in SINGLE & token.flags]
    files.refuse(
        path, unlike, f"{UNK}, {CONTINUES}, BertNormalizer, BertPreTokenizer and {ANYWHERE}"
    )
    vocab = files.in_order(model["vocab"], path)
    if UNK in vocab:  # of one without, the error that WordPiece itself gives
        files.refuse_frame(read, path, read.token_to_id(CLS), read.token_to_id(SEP))
    settings = {name: normalizer.get(name) for name in SETTINGS}
    settings["max_chars"] = model["max_input_chars_per_word"]
    settings["added_tokens"] = {t.content: bool(t.normalized) for t in tokens if t.content}
    return vocab, settings


def _expected_beside(read: WordPiece, overridden: Collection[str]) -> dict[str, Any]:
    """What a tokenizer_config.json may say, but for settings that the caller overrides."""
    expected = {theirs: read.normalisation[ours] for ours, theirs in SETTINGS.items()}
    if overridden:
        del expected["do_lower_case"], expected["strip_accents"]
    else:  # null says: as do_lower_case
        same = read.strip_accents == read.lowercase
        expected["strip_accents"] = (read.strip_accents, None) if same else (read.strip_accents,)
    return {**expected, **CUT, "max_input_chars_per_word": read.max_chars}
