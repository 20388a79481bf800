"""WordPiece: words into pieces of a fixed vocabulary, longest first (Wu et al. 2016, section 4.1).

The text goes through four steps, one function each: `normalise` (lower case, no accents),
`split_words` (white space and punctuation), `longest_match` (a word into pieces), and the
vocabulary (a piece into its id). BERT's uncased models do exactly this; `fast_wordpiece` is the
same thing in the `tokenizers` library, and the tests hold the two together on every word of a
large text. (They may part over characters newer than the library's Unicode tables.)"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .vocabulary import WHITE_SPACE, Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from course_lib.objectives.sequences import SpecialIds

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
    lower case. The settings are those of WordPiece, and of a tokenizer.json's BertNormalizer."""
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
    return _WORD.findall("".join(f" {char} " if is_punctuation(char) else char for char in text))


# Not str.split(), which takes U+001C to U+001F for white space: they stay where nothing is cleaned.
_WORD = re.compile(f"[^{WHITE_SPACE}]+")


def _words_and_places(
    text: str, first: int, settings: dict[str, bool]
) -> Iterator[tuple[str, list[int]]]:
    """The words of `split_words(normalise(text))`, one character after the other, and for each of
    their letters where it comes from; the first character of `text` has the position `first`."""
    word, places = "", list[int]()
    for place, char in enumerate(text, first):
        for letter in _normalised(char, **settings):
            alone = is_punctuation(letter)
            if word and (alone or letter in WHITE_SPACE):
                yield word, places
                word, places = "", []
            if alone:
                yield letter, [place]
            elif letter not in WHITE_SPACE:
                word += letter
                places.append(place)
    if word:
        yield word, places


_normalised = lru_cache(maxsize=4096)(normalise)  # of single characters


# ---------------------------------------------------------------- words into pieces


def longest_match(word: str, vocab: Collection[str]) -> list[str] | None:
    """`word` as pieces of `vocab`, always taking the longest that fits; None where none fits.

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
    Raises ValueError for a vocabulary that is empty, lacks a special token or repeats a token."""

    def __init__(
        self,
        vocab: Sequence[str],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        clean_text: bool = True,
        handle_chinese_chars: bool = True,
        max_chars: int = 100,
    ):
        self.vocab = list(vocab)
        self.lowercase = lowercase
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self.normalisation: dict[str, Any] = {
            "lowercase": lowercase,
            "strip_accents": self.strip_accents,
            "clean_text": clean_text,
            "handle_chinese_chars": handle_chinese_chars,
        }
        self.max_chars = max_chars
        self.ids = {token: i for i, token in enumerate(self.vocab)}
        _check_vocab(self.vocab, self.ids)

    @classmethod
    def from_words(
        cls, words: Iterable[str], *, lowercase: bool = True, strip_accents: bool | None = None
    ) -> WordPiece:
        """A vocabulary of the five special tokens (ids 0 to 4) followed by `words`, in their order.

        Raises ValueError for a word that no text could ever produce, such as one with a capital
        letter in an uncased vocabulary, or one with a space or an apostrophe inside."""
        words = list(words)
        made = cls([*SPECIAL_TOKENS, *words], lowercase=lowercase, strip_accents=strip_accents)
        for word in words:
            bare = word.removeprefix(CONTINUES)
            if split_words(normalise(bare, **made.normalisation)) != [bare]:
                raise ValueError(
                    f"{word!r} can never be matched: text is "
                    f"{'lower-cased, ' if lowercase else ''}split at spaces and at punctuation "
                    "first. Give whole words in the form in which they arrive."
                )
        return made

    def with_vocab(self, vocab: Sequence[str]) -> WordPiece:
        """A tokenizer with these settings and another vocabulary."""
        return WordPiece(vocab, **self.normalisation, max_chars=self.max_chars)

    @classmethod
    def from_file(cls, path: str | Path, *, lowercase: bool | None = None) -> WordPiece:
        """Read `vocab.txt` (a token a line) or `tokenizer.json` (the `tokenizers` library's).

        lowercase: None takes it from tokenizer.json, or from the tokenizer_config.json beside
        vocab.txt, or else True.
        Raises FileNotFoundError, and ValueError for a file that holds no WordPiece vocabulary."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(
                f"no vocabulary at {path}: expected a vocab.txt or a tokenizer.json there."
            )
        text = _read_text(path)
        if path.suffix == ".json":
            vocab, options = _from_tokenizer_json(text, path)
        else:
            vocab, options = _from_vocab_txt(text), _lowercase_beside(path)
        if lowercase is not None:
            options["lowercase"] = lowercase
        try:
            return cls(vocab, **options)
        except ValueError as error:
            raise ValueError(f"{path} is not a WordPiece vocabulary: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the vocabulary to `path`, a token a line, in the order of the ids (vocab.txt)."""
        from course_lib.files import write_atomic

        write_atomic(Path(path), "".join(f"{token}\n" for token in self.vocab))

    @cached_property
    def special(self) -> SpecialIds:
        """The ids of [PAD] [UNK] [CLS] [SEP] [MASK], and the size of the vocabulary."""
        from course_lib.objectives.sequences import SpecialIds

        pad, unk, cls, sep, mask = (self.ids[token] for token in SPECIAL_TOKENS)
        return SpecialIds(pad=pad, unk=unk, cls=cls, sep=sep, mask=mask, vocab_size=self.vocab_size)

    @cached_property
    def continuing(self) -> Tensor:
        """(V,) bool: is the token with this id a ## piece, which goes on with a word?"""
        return torch.tensor([token.startswith(CONTINUES) for token in self.vocab])

    def tokenize(self, text: str) -> list[str]:
        """The tokens of `text`. A special token written out, such as [MASK], stays whole."""
        return [piece for word in self.words(text) for piece in self.pieces(word)]

    def words(self, text: str) -> Iterator[str]:
        """The words of `text` before they are cut into pieces; special tokens whole."""
        for part in _SPECIAL.split(text):
            if part in SPECIAL_TOKENS:
                yield part
            else:
                yield from split_words(normalise(part, **self.normalisation))

    def pieces(self, word: str) -> list[str]:
        """The pieces of one normalised word; [UNK] alone when it is too long or does not match."""
        if len(word) > self.max_chars:
            return [UNK]
        return longest_match(word, self.ids) or [UNK]

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without [CLS] and [SEP]."""
        return [self.ids[token] for token in self.tokenize(text)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of `text` as `encode` gives them, and where in `text` each of them stands.

        Offsets are (start, end) in characters of `text` as it was given, so that
        text[start:end] is what the token was made from: "Café" for the token cafe. [UNK] stands
        for the whole word."""
        ids, offsets = [], []
        for word, places in self._placed_words(text):
            start = 0
            for number, piece in enumerate(self.pieces(word)):
                bare = word if piece == UNK else piece.removeprefix(CONTINUES if number else "")
                end = start + len(bare)
                ids.append(self.ids[piece])
                offsets.append((places[start], places[end - 1] + 1))
                start = end
        return ids, offsets

    def _placed_words(self, text: str) -> Iterator[tuple[str, list[int]]]:
        """What `words` gives, and for each letter the position of the character it comes from."""
        first = 0
        for part in _SPECIAL.split(text):
            if part in SPECIAL_TOKENS:
                yield part, list(range(first, first + len(part)))
            else:
                yield from _words_and_places(part, first, self.normalisation)
            first += len(part)

    def decode(self, ids: Iterable[int]) -> str:
        """The tokens of `ids` as text: a space between words, none before a ## piece."""
        text = " ".join(self.token(i) for i in ids)
        return text.replace(f" {CONTINUES}", "")

    def id(self, token: str) -> int:
        """The id of `token`. Raises ValueError when it is not in the vocabulary."""
        if token not in self.ids:
            raise ValueError(
                f"{token!r} is none of the {self.vocab_size} tokens. tokenize({token!r}) gives "
                f"{self.tokenize(token)}: use these, or a word from .vocab."
            )
        return self.ids[token]

    def __repr__(self) -> str:
        return f"WordPiece({self.vocab_size} tokens, lowercase={self.lowercase})"


_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")


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
    Raises ValueError when `vocab_size` is too small for the special tokens and the letters of the
    texts, or when the texts hold no words."""
    from tokenizers.trainers import WordPieceTrainer

    if vocab_size <= len(SPECIAL_TOKENS):
        raise ValueError(
            f"vocab_size is {vocab_size}; the {len(SPECIAL_TOKENS)} special tokens alone need "
            "that many. A few thousand is usual for a small text, 30,522 is BERT's."
        )
    texts = list(texts)
    empty = WordPiece(SPECIAL_TOKENS, lowercase=lowercase, strip_accents=strip_accents)
    tokenizer = fast_wordpiece(empty)
    # Left to itself, the trainer numbers the ## letters in the order of a hash table and settles
    # ties by these numbers: another vocabulary in every run. So they are given to it in order.
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


def _letters_of_control_tokens(texts: Sequence[str]) -> set[str]:
    """What a text that speaks of [CLS] or [MASK] holds inside words: their capitals, too."""
    found = (token for token in SPECIAL_TOKENS if any(token in text for text in texts))
    return {char for token in found for char in token[1:]}


def _inner_letters(tokenizer: Tokenizer, texts: Iterable[str]) -> set[str]:
    """Every character that stands inside a word of `texts`, not at its beginning."""
    split, normal = tokenizer.pre_tokenizer.pre_tokenize_str, tokenizer.normalizer.normalize_str
    words = {word for text in texts for word, _ in split(normal(text))}
    return {char for word in words for char in word[1:]}


def fast_wordpiece(wordpiece: WordPiece) -> Tokenizer:
    """The same tokenizer in the `tokenizers` library (Rust): .encode(text).ids, .encode_batch."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(
        models.WordPiece(
            vocab=wordpiece.ids, unk_token=UNK, max_input_chars_per_word=wordpiece.max_chars
        )
    )
    tokenizer.normalizer = normalizers.BertNormalizer(**wordpiece.normalisation)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


# ---------------------------------------------------------------- vocabulary files


def _check_vocab(vocab: Sequence[str], ids: dict[str, int]) -> None:
    missing = [token for token in SPECIAL_TOKENS if token not in ids]
    if missing:
        raise ValueError(
            f"the vocabulary ({len(vocab)} tokens) lacks {' '.join(missing)}. "
            "WordPiece.from_words(words) puts the special tokens in front."
        )
    if len(ids) != len(vocab):
        twice = next(token for i, token in enumerate(vocab) if ids[token] != i)
        raise ValueError(f"{twice!r} stands twice in the vocabulary: a token must have one id.")


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not a text file (byte {error.start} is no UTF-8): expected a vocab.txt "
            "or a tokenizer.json."
        ) from error


def _from_vocab_txt(text: str) -> list[str]:
    # Not splitlines(): vocabularies hold characters that it would take for line ends.
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _lowercase_beside(path: Path) -> dict[str, Any]:
    config = path.with_name("tokenizer_config.json")
    if not config.is_file():
        return {}
    return {"lowercase": bool(json.loads(_read_text(config)).get("do_lower_case", True))}


def _from_tokenizer_json(text: str, path: Path) -> tuple[list[str], dict[str, Any]]:
    try:
        content = json.loads(text)
        model = content["model"]
        kind = model.get("type", "WordPiece")
        vocab = model["vocab"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no tokenizer.json of the tokenizers library.") from error
    if kind != "WordPiece" or not isinstance(vocab, dict):
        raise ValueError(
            f"{path} describes a {kind} tokenizer; WordPiece.from_file reads WordPiece only."
        )
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise ValueError(f"the ids in {path} are not 0 to {len(vocab) - 1}, each once.")
    options = {
        "lowercase": bool((content.get("normalizer") or {}).get("lowercase", True)),
        "max_chars": int(model.get("max_input_chars_per_word", 100)),
    }
    return sorted(vocab, key=vocab.__getitem__), options
