"""Byte-level BPE: text into bytes, bytes into ever longer pieces, in the order they were learned.

Byte pair encoding is Sennrich et al. 2016 (section 3.2), the step to bytes Radford et al. 2019
(GPT-2, section 2.2); RoBERTa (Liu et al. 2019, section 4.4) took both, with 50K pieces. Every text
is a sequence of bytes and there are only 256 of them, so nothing is unknown, nothing has to be
cleaned away beforehand, and `decode` gives back exactly what `encode` was given.

Four stations, one function each: `split_text` (text into words), `stand_ins` (a word into bytes,
each shown as a printable character), `apply_merges` (bytes into pieces), and the vocabulary (a
piece into its id). `train_byte_bpe` learns the merges. The tests hold all of it together with the
`tokenizers` library, id by id and merge by merge. (They may part over characters newer than
Python's Unicode tables: these may be split into words differently.)
"""

from __future__ import annotations

import heapq
import json
import re
import sys
import unicodedata
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from course_lib.files import nearby, one_error, read_text, write_atomic

from . import tokenizer_files as files
from .vocabulary import (
    LONGEST_WORD,
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


# RoBERTa's names for BERT's [CLS] [PAD] [SEP] [UNK] [MASK]. The first four have ids 0 to 3, <mask>
# has the last. Nothing ever becomes <unk>.
CLS, PAD, SEP, UNK, MASK = SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
CACHED_WORDS = 100_000  # so many different words are remembered with their ids

Pair = tuple[str, str]
Piece = TypeVar("Piece", str, int)


# ---------------------------------------------------------------- bytes one can see


def byte_characters() -> dict[int, str]:
    """byte -> the character that stands for it in pieces and vocabulary files, all 256 different.

    A byte that is a visible character in Latin-1 stands for itself. The other 68 (controls, the
    spaces, the soft hyphen) get the characters from U+0100 on, in order: a space is shown as Ġ,
    a line feed as Ċ.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in visible)
    characters = {byte: chr(byte) for byte in visible}
    return characters | {byte: chr(0x100 + place) for place, byte in enumerate(others)}


CHAR_OF = byte_characters()
BYTE_OF = {char: byte for byte, char in CHAR_OF.items()}
ALPHABET = sorted(BYTE_OF)  # 256 characters by code point: ! first, then " # $ and so on


def stand_ins(text: str) -> str:
    """The UTF-8 bytes of `text`, each as its printable stand-in: "é b" -> "Ã©Ġb".

    Raises TypeError for anything but a string, ValueError for a lone surrogate, which is half of
    a character and has no UTF-8.
    """
    return "".join(map(CHAR_OF.__getitem__, utf8(text)))


def from_stand_ins(chars: str) -> str:
    """The text behind printable stand-ins. Bytes that are no UTF-8 become U+FFFD, the �.

    Raises ValueError for a character that stands for no byte, such as a space.
    """
    _check_stand_ins(chars)
    return bytes(map(BYTE_OF.__getitem__, chars)).decode("utf-8", errors="replace")


def _check_stand_ins(chars: str) -> None:
    check_text(chars)
    if strange := set(chars) - BYTE_OF.keys():
        raise ValueError(
            f"{min(strange)!r} in {chars!r:.60} stands for no byte. Expected are printable "
            "stand-ins, a space as Ġ: stand_ins(text) gives them."
        )


# ---------------------------------------------------------------- text into words


@cache
def word_pattern() -> re.Pattern[str]:
    r"""GPT-2's rule for cutting a text into words, which merges never join.

    A word is an English ending such as 's (lower case only), or a run of letters, of digits or of
    other signs with the one space before it, or the rest of a run of white space:
    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
    """
    # `re` knows no \p{L} and \p{N}: they are written out, from Python's own Unicode tables.
    letter, number, space = _ranges("L"), _ranges("N"), WHITE_SPACE
    return re.compile(
        rf"'(?:s|t|re|ve|m|ll|d)| ?[{letter}]+| ?[{number}]+| ?[^{space}{letter}{number}]+"
        rf"|[{space}]+(?![^{space}])|[{space}]+"
    )


def _ranges(kind: str) -> str:
    """All characters of one of Unicode's general categories, as ranges for a [...] of `re`."""
    codes = range(sys.maxunicode + 1)
    runs = groupby(codes, key=lambda code: unicodedata.category(chr(code))[0] == kind)
    ends = ((run[0], run[-1]) for inside, group in runs if inside and (run := list(group)))
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ends)


def split_text(text: str) -> list[str]:
    """`text` as words that together are `text` again: "I'm here" -> "I", "'m", " here"."""
    check_text(text)
    return word_pattern().findall(text)


# ---------------------------------------------------------------- words into pieces


def merge_pair(pieces: Sequence[Piece], pair: tuple[Piece, Piece], new: Piece) -> list[Piece]:
    """`pieces` with `new` for every `pair` in it, from left to right: of a a a, the first two."""
    merged: list[Piece] = []
    for piece in pieces:
        if merged and merged[-1] == pair[0] and piece == pair[1]:
            merged[-1] = new
        else:
            merged.append(piece)
    return merged


def apply_merges(word: str, ranks: Mapping[Pair, int]) -> Iterator[list[str]]:
    """The pieces of `word` (printable stand-ins): its bytes, then what each merge leaves.

    ranks: pair -> its rank in the order of learning. Of all pairs in the word, the one learned
    first is merged, everywhere in the word, until no pair is left that was learned. A word of n
    bytes takes up to n rounds of n steps.
    """
    pieces = list(word)
    yield pieces
    while known := [pair for pair in pairwise(pieces) if pair in ranks]:
        pair = min(known, key=ranks.__getitem__)
        pieces = merge_pair(pieces, pair, "".join(pair))
        yield pieces


class ByteBPE(Vocabulary):
    """A byte-level BPE tokenizer, as GPT-2 and RoBERTa use it.

    vocab: the tokens as printable stand-ins; a token's id is its position. All 256 bytes and the
        five special tokens are among them, and none stands twice.
    merges: pairs of pieces in the order of learning, each made of bytes and of earlier merges.
    lstrip: the special tokens that swallow the white space before them, where they are parsed.
    Raises ValueError when the vocabulary or the merges are not like that.
    """

    special_tokens = (PAD, UNK, CLS, SEP, MASK)

    def __init__(
        self, vocab: Sequence[str], merges: Sequence[Pair], lstrip: Collection[str] = (MASK,)
    ):
        self.vocab = list(vocab)
        self.merges = [(left, right) for left, right in merges]
        self.ids = numbered(self.vocab)
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self.lstrip = frozenset(lstrip)
        self._cache: dict[str, list[int]] = {}
        _check_vocab(self.vocab, self.ids)
        _check_merges(self.merges, self.ids)

    @classmethod
    def from_file(cls, path: str | Path) -> ByteBPE:
        """Read a tokenizer.json, or vocab.json with merges.txt beside it, or the folder of either.

        A tokenizer.json gives the ids that the `tokenizers` library gives, whatever truncation and
        padding it asks for (see tokenizer_files); special tokens in a text are plain characters
        here, unless `encode` is told to parse them.
        Raises FileNotFoundError, and ValueError for files that hold no byte-level BPE, for settings
        that ByteBPE does not have, and for files that contradict each other.
        """
        path = files.tokenizer_file(path, "vocab.json")
        two = path.name == "vocab.json"
        needed = [path, path.with_name("merges.txt")] if two else [path]
        if missing := [str(file) for file in needed if not file.is_file()]:
            raise FileNotFoundError(
                f"no {' and no '.join(missing)}: expected a tokenizer.json, or a vocab.json with "
                f"its merges.txt beside it, or the folder that holds them.{nearby(path)}"
            )
        with one_error(path, ValueError):
            vocab, rules, lstrip = _from_two_files(*needed) if two else _from_tokenizer_json(path)
            try:
                made = cls(files.in_order(vocab, path), [_pair(rule) for rule in rules], lstrip)
            except ValueError as error:
                raise ValueError(f"{path} is no byte-level BPE as here: {error}") from error
            files.refuse_beside(made, path, SPECIAL_TOKENS, {"add_prefix_space": False}, CLASSES)
        _warn_of_unmade(made, needed[-1])
        return made

    def save(self, folder: str | Path) -> None:
        """Write vocab.json and merges.txt into `folder`, as RoBERTa's are written."""
        lines = ("#version: 0.2", *(f"{left} {right}" for left, right in self.merges))
        write_atomic(Path(folder, "merges.txt"), "".join(f"{line}\n" for line in lines))
        write_atomic(Path(folder, "vocab.json"), json.dumps(self.ids, ensure_ascii=False))

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The ids of `text`, without <s> and </s> around it.

        parse_special: False takes <mask>, <s> and so on for plain characters, as a text about
        tokenizers needs it. True gives them their own ids; <mask> then swallows the white space
        before it, as in RoBERTa's published tokenizer, or what `lstrip` says.
        Raises TypeError for anything but a string, ValueError for a lone surrogate.
        """
        utf8(text)
        if not parse_special:
            return [id for word in split_text(text) for id in self._ids_of(word)]
        ids: list[int] = []
        *pairs, end = _SPECIAL.split(text)  # text, special token, text, special token, ..., text
        for before, token in zip(pairs[::2], pairs[1::2], strict=True):
            plain = before.rstrip(WHITE_SPACE) if token in self.lstrip else before
            ids += [*self.encode(plain), self.ids[token]]
        return ids + self.encode(end)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of `text` as `encode` gives them, and where in `text` each of them stands.

        Offsets are (start, end) in characters of `text`, without the white space that a piece may
        begin or end with. A piece that holds only some bytes of a character stands for all of it.
        Raises as `encode` does.
        """
        ids = self.encode(text)
        place = [at for at, char in enumerate(text) for _ in char.encode("utf-8")]  # of each byte
        offsets, first = [], 0
        for id in ids:
            last = first + len(self.vocab[id]) - 1
            start, end = place[first], place[last] + 1
            while start < end and text[start] in WHITE_SPACE:
                start += 1
            while start < end and text[end - 1] in WHITE_SPACE:
                end -= 1
            offsets.append((start, end))
            first = last + 1
        return ids, offsets

    def _ids_of(self, word: str) -> list[int]:
        result = self._cache.get(word)
        if result is None:
            *_, pieces = apply_merges(stand_ins(word), self.ranks)
            result = [self.ids[piece] for piece in pieces]
            if len(self._cache) < CACHED_WORDS:
                self._cache[word] = result
        return result

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; special tokens appear by name. Bytes that are no UTF-8 become �.

        `decode(encode(text)) == text` for every text.
        """
        return from_stand_ins("".join(self.tokens(ids)))

    def pieces(self, text: str) -> list[str]:
        """The printable pieces of `text`, no special token parsed: "I'm here" -> I 'm Ġhere."""
        return [self.vocab[i] for i in self.encode(text)]

    def word_steps(self, word: str) -> list[list[str]]:
        """The pieces of one word, printable: first its bytes, then what each merge leaves.

        Raises ValueError when `word` is not one word for `split_text`.
        """
        pieces = stand_ins(word)
        if split_text(word) != [word]:
            raise ValueError(
                f"{word!r} is not one word: split_text gives {split_text(word)}. Merges happen "
                "inside a word: give one, with its space."
            )
        return list(apply_merges(pieces, self.ranks))

    def id(self, token: str) -> int:
        """The id of `token`, in stand-ins ("Ġthe"). Raises ValueError when there is no such."""
        check_text(token)
        if token not in self.ids:
            raise ValueError(
                f"{token!r} is none of the {self.vocab_size} tokens. pieces({token!r}) gives "
                f"{self.pieces(token)}. Tokens are written in stand-ins: a space is Ġ."
            )
        return self.ids[token]

    def __repr__(self) -> str:
        return f"ByteBPE({self.vocab_size} tokens, {len(self.merges)} merges)"


_SPECIAL = taken_whole(SPECIAL_TOKENS)


# ---------------------------------------------------------------- learning the merges


def train_byte_bpe(texts: Iterable[str], vocab_size: int, *, min_frequency: int = 2) -> ByteBPE:
    """Learn a byte-level BPE of at most `vocab_size` tokens from `texts`.

    Ids: <s> <pad> </s> <unk> are 0 to 3, then come the 256 bytes, then the pieces in the order in
    which they were learned (see `learn_merges`), then <mask>. There are fewer than `vocab_size`
    when no pair is left that occurs `min_frequency` times.
    Raises ValueError for a `vocab_size` below 261, a `min_frequency` below 1, or texts without a
    character; TypeError for texts that are not strings, or one string instead of several.
    """
    least = len(ALPHABET) + len(SPECIAL_TOKENS)
    if vocab_size < least:
        raise ValueError(
            f"vocab_size is {vocab_size}; the 256 bytes and the {len(SPECIAL_TOKENS)} special "
            f"tokens alone are {least}. A few thousand is usual for a small text, 50,265 is "
            "RoBERTa's."
        )
    merges = learn_merges(count_words(texts), vocab_size - least, min_frequency=min_frequency)
    made = [left + right for left, right in merges]
    return ByteBPE([CLS, PAD, SEP, UNK, *ALPHABET, *made, MASK], merges)


def count_words(texts: Iterable[str]) -> Counter[str]:
    """How often each word of `split_text` occurs, written in stand-ins.

    Words of more than LONGEST_WORD characters are left out, with a warning.
    Raises TypeError for one string instead of several, ValueError when there is no character.
    """
    counts: Counter[str] = Counter()
    for text in check_texts(texts):
        utf8(text)
        counts.update(split_text(text))
    if not counts:
        raise ValueError("the texts hold no character: nothing to learn merges from.")
    long = [word for word in counts if len(word) > LONGEST_WORD]
    warn_of_long_words(sum(map(counts.pop, long)))
    return Counter({stand_ins(word): count for word, count in counts.items()})


def learn_merges(words: Mapping[str, int], number: int, *, min_frequency: int = 2) -> list[Pair]:
    """The first `number` merges for `words`, written in stand-ins, each with its count.

    Each round merges the pair of neighbours that occurs most often, in every word. Ties are
    settled as in the `tokenizers` library: the pair whose left piece is older wins, then the one
    whose right piece is. A byte is older than a learned piece, bytes are in the order of
    ALPHABET, and a piece learned earlier is older. Overlaps count: a a a holds two pairs a a.
    Fewer merges come back when no pair occurs `min_frequency` times any more.
    Raises ValueError for a `min_frequency` below 1 and for words that are no stand-ins.
    """
    if min_frequency < 1:
        raise ValueError(f"min_frequency is {min_frequency}: expected at least 1.")
    for word in words:
        _check_stand_ins(word)
    pieces = list(ALPHABET)  # a piece's position here is its number, and its age
    table = _PairTable(words)
    merges: list[Pair] = []
    while len(merges) < number and (pair := table.most_frequent(min_frequency)):
        table.merge(pair, new=len(pieces))
        left, right = (pieces[i] for i in pair)
        # Always a new piece: a stretch of bytes with no merge across its ends is cut the same way
        # wherever it stands, so that no two pairs ever give the same piece.
        pieces.append(left + right)
        merges.append((left, right))
    return merges


class _PairTable:
    """How often each pair of neighbours occurs, kept true from merge to merge.

    Only the words that hold the merged pair are counted anew: that makes learning fast. The heap
    may hold outdated counts. Where a count has fallen, it is put right when it comes to the top;
    where one has risen, the new count was put in as well.
    """

    def __init__(self, words: Mapping[str, int]):
        number = {char: i for i, char in enumerate(ALPHABET)}
        self.words = [[number[char] for char in word] for word in words]
        self.times = list(words.values())
        self.counts: Counter[tuple[int, int]] = Counter()
        self.where: defaultdict[tuple[int, int], set[int]] = defaultdict(set)  # in `words`
        for place in range(len(self.words)):
            self._add(place)
        self.heap = [(-count, pair) for pair, count in self.counts.items()]
        heapq.heapify(self.heap)

    def _add(self, place: int) -> None:
        for pair in pairwise(self.words[place]):
            self.counts[pair] += self.times[place]
            self.where[pair].add(place)

    def _take_away(self, place: int) -> None:
        for pair in pairwise(self.words[place]):
            self.counts[pair] -= self.times[place]

    def most_frequent(self, at_least: int) -> tuple[int, int] | None:
        """The most frequent pair, of several the one of the lowest numbers; None if too rare."""
        while self.heap:
            count, pair = heapq.heappop(self.heap)
            if -count == self.counts[pair]:
                return pair if -count >= at_least else None
            if self.counts[pair] > 0:
                heapq.heappush(self.heap, (-self.counts[pair], pair))
        return None

    def merge(self, pair: tuple[int, int], new: int) -> None:
        """Put piece `new` for `pair` in every word that holds it."""
        risen: set[tuple[int, int]] = set()
        for place in self.where.pop(pair):
            self._take_away(place)
            self.words[place] = merge_pair(self.words[place], pair, new)
            self._add(place)
            risen |= {beside for beside in pairwise(self.words[place]) if new in beside}
        for beside in risen:
            heapq.heappush(self.heap, (-self.counts[beside], beside))


def fast_byte_bpe(bpe: ByteBPE) -> Tokenizer:
    """The same tokenizer in the `tokenizers` library (Rust): .encode(text).ids, .encode_batch.

    Special tokens in a text are plain text to it, too.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocab=bpe.ids, merges=bpe.merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


# ---------------------------------------------------------------- vocabulary files


def _check_vocab(vocab: Sequence[str], ids: Mapping[str, int]) -> None:
    missing = [token for token in (*SPECIAL_TOKENS, *ALPHABET) if token not in ids]
    if missing:
        raise ValueError(
            f"the vocabulary ({len(vocab)} tokens) lacks {' '.join(missing[:8])}"
            f"{' and more' if len(missing) > 8 else ''}. Expected are the special tokens "
            f"{' '.join(SPECIAL_TOKENS)} and the stand-ins of all 256 bytes."
        )
    for token in vocab:
        _check_stand_ins(token)


def _check_merges(merges: Sequence[Pair], ids: Mapping[str, int]) -> None:
    known = set(ALPHABET)
    for number, (left, right) in enumerate(merges):
        where = f"merge {number + 1} ({left} {right})"
        for part in (left, right):
            if part not in known:
                raise ValueError(f"{where}: {part!r} is no byte and made by no earlier merge.")
        if left + right in known:
            raise ValueError(f"{where}: an earlier merge makes {left + right!r} already.")
        if left + right not in ids:
            raise ValueError(f"{where}: {left + right!r} is not in the vocabulary.")
        known.add(left + right)


def _warn_of_unmade(made: ByteBPE, path: Path) -> None:
    """RoBERTa's own files have <|endoftext|> and three madeupword… that no merge makes."""
    known = {*SPECIAL_TOKENS, *ALPHABET, *(left + right for left, right in made.merges)}
    lost = [t for t in made.vocab if t not in known and not re.fullmatch(r"<.*>|madeupword\d+", t)]
    if lost:
        warnings.warn(
            f"{len(lost):,} tokens, such as {lost[0]!r}, are made by no merge of {path}: were "
            "lines of it lost? Without them texts become other ids.",
            stacklevel=3,
        )


CLASSES = "(Roberta|Bart|Longformer|GPT2)Tokenizer"


Parts = tuple[dict[str, int], list[Any], list[str]]  # token -> id, the merges, what strips


def _from_two_files(vocab: Path, merges: Path) -> Parts:
    ids = files.read_object(vocab)
    if not all(isinstance(id, int) for id in ids.values()):
        raise ValueError(f"{vocab} is no vocab.json: expected one object, token: id.")
    # Not splitlines(): vocabularies hold characters that it would take for line ends.
    lines = read_text(merges, "a merges.txt").replace("\r\n", "\n").split("\n")
    rules = lines[1:] if lines[0].startswith("#version") else lines
    special, config = (
        files.read_object(vocab.with_name(name)) for name in (files.SPECIAL_MAP, files.CONFIG)
    )
    added = config.get("added_tokens_decoder")
    tokens = [special.get("mask_token"), *(added.values() if isinstance(added, dict) else ())]
    strips = {files.text_of(t): t.get("lstrip") for t in tokens if isinstance(t, dict)}
    strips = {MASK: True, **strips}
    return ids, [rule for rule in rules if rule], [token for token in strips if strips[token]]


def _from_tokenizer_json(path: Path) -> Parts:
    read, content = files.read_tokenizer_json(path, "BPE")
    model, tokens = content["model"], files.tokens_in(content)
    files.refuse(path, _options_not_here(read, content, tokens), "what GPT-2 and RoBERTa have")
    vocab = model["vocab"] | {token.content: token.id for token in tokens}
    if CLS in vocab and SEP in vocab:  # of one without, the error that ByteBPE itself gives
        files.refuse_frame(read, path, vocab[CLS], vocab[SEP])
    return vocab, model["merges"], [t.content for t in tokens if "lstrip" in t.flags]


def _options_not_here(
    read: Tokenizer, content: dict[str, Any], tokens: Sequence[files.AddedToken]
) -> list[str]:
    """Which settings of a tokenizer.json would give other ids than ByteBPE does."""
    model, splitter = content["model"], content.get("pre_tokenizer") or {}
    parts = ("continuing_subword_prefix", "end_of_word_suffix", "ignore_merges", "dropout")
    odd = [name for name in parts if model.get(name)]
    odd += files.parts_unlike(read, "None", "ByteLevel")
    odd += files.settings_unlike(splitter, {"add_prefix_space": False, "use_regex": True})
    odd += [f"{flag} of {t.content!r}" for t in tokens for flag in t.flags - {"lstrip"}]
    return odd + [
        f"the added token {t.content!r}" for t in tokens if t.content not in SPECIAL_TOKENS
    ]


def _pair(rule: Any) -> Pair:
    """A merge, from "left right" or from [left, right]."""
    parts = rule.split(" ") if isinstance(rule, str) else rule
    if len(parts) != 2 or not all(parts):
        raise ValueError(f"{rule!r} is no merge: expected two pieces with one space between.")
    return parts[0], parts[1]
