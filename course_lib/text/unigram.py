"""SentencePiece vocabularies of released models (ALBERT, XLM-R), read from their tokenizer.json.

SentencePiece (Kudo and Richardson 2018) writes a space as ▁ and cuts the raw text, no words before;
its unigram model (Kudo 2018) takes the cut whose pieces are most probable together. That is done by
the `tokenizers` library; here it gets the face that all tokenizers of the course have. Training one
is the library's business, too: lecture 10 trains some."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_lib.files import nearby, one_error

from . import tokenizer_files as files
from .vocabulary import Vocabulary, utf8

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# What SpecialIds calls them, and how released vocabularies do.
SPECIAL = {
    "pad": ("<pad>", "[PAD]"), "unk": ("<unk>", "[UNK]"), "cls": ("<s>", "[CLS]"),
    "sep": ("</s>", "[SEP]"), "mask": ("<mask>", "[MASK]"),
}  # fmt: skip
SPACE = "▁"
ADVICE = (
    "A sentencepiece .model alone is not read. transformers makes a tokenizer.json of XLM-R's and "
    "of ALBERT's: slow = AutoTokenizer.from_pretrained(folder); slow.save_pretrained(folder). Of "
    "DeBERTa's that would lose the character map (ﬁ, ½ and full-width letters become [UNK]). This "
    "keeps it: new = transformers.convert_slow_tokenizer.DebertaV2Converter(slow).converted(); "
    "new.add_special_tokens(['[MASK]']); new.save(folder + '/tokenizer.json')."
)


class Unigram(Vocabulary):
    """A SentencePiece vocabulary. read: the library's tokenizer, as its tokenizer.json has it.

    special: which token is "pad", "unk", "cls", "sep" and "mask"; of those that are not said, the
    usual spelling that the vocabulary has.
    Raises ValueError where one of the five special tokens is not in it, or in two spellings, and
    where unknown text becomes another token than the one called "unk"."""

    def __init__(self, read: Tokenizer, special: Mapping[str, str] | None = None):
        self._read = read
        by_id = {id: token for token, id in read.get_vocab(with_added_tokens=True).items()}
        self.vocab = [by_id.get(id, f"<unused {id}>") for id in range(max(by_id) + 1)]
        self.ids = {token: id for id, token in enumerate(self.vocab)}
        spellings = {**SPECIAL, **{name: (token,) for name, token in (special or {}).items()}}
        there = {name: [t for t in ways if t in self.ids] for name, ways in spellings.items()}
        if odd := [
            " or ".join(map(str, spellings[name])) for name, ways in there.items() if len(ways) != 1
        ]:
            raise ValueError(
                f"a vocabulary of {len(self.vocab):,} pieces was given that has none or several of "
                f"{', '.join(odd)}; expected the five special tokens of an encoder, each once, or "
                f"their names in {files.CONFIG}."
            )
        self.special_tokens = [ways[0] for ways in there.values()]
        content, unk = json.loads(read.to_str()), self.special.unk
        odd = files.settings_unlike(content["model"], {"unk_id": (unk,)})
        files.refuse("the tokenizer", odd, f"the id of {self.token(unk)}, {unk}")
        self._plain = _without_special(content, {self.ids[t] for t in self.special_tokens})

    @classmethod
    def from_file(cls, path: str | Path) -> Unigram:
        """Read a tokenizer.json, or the folder that has one: the ids are those that the library
        gives, whatever truncation and padding the file asks for (see tokenizer_files).

        Raises FileNotFoundError, and ValueError for a file that holds something else, or that the
        files beside it contradict."""
        path = files.tokenizer_file(path, files.WHOLE)
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} was given; expected a tokenizer.json, or the folder that has one."
                f"{nearby(path)} {ADVICE}"
            )
        with one_error(path, ValueError):
            read, _ = files.read_tokenizer_json(path, "Unigram")
            made = cls(read, _special_beside(path))
            files.refuse_frame(read, path, made.special.cls, made.special.sep)
            added = read.get_added_tokens_decoder().values()
            files.refuse_beside(made, path, (t.content for t in added), _rebuilt(read, path))
            return made

    def encode(self, text: str, *, parse_special: bool = False) -> list[int]:
        """The ids of `text`, without special tokens around it.

        parse_special: False takes <s>, <mask> and so on for plain characters, as SentencePiece
        itself does; True gives them their own ids, as transformers' tokenizers do.
        Raises TypeError for anything but a string, ValueError for a lone surrogate."""
        utf8(text)
        read = self._read if parse_special else self._plain
        return list(read.encode(text, add_special_tokens=False).ids)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of `text`, and where in it each of them stands: (start, end) in characters,
        without the white space that a piece may begin with. Raises as `encode` does."""
        utf8(text)
        result = self._plain.encode(text, add_special_tokens=False)
        offsets = []
        for start, end in result.offsets:
            while start < end and text[start].isspace():
                start += 1
            offsets.append((start, end))
        return result.ids, offsets

    def pieces(self, text: str) -> list[str]:
        """The pieces of `text`, a space as ▁."""
        return [self.vocab[id] for id in self.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; special tokens appear by name."""
        numbers = [self.ids[token] for token in self.tokens(ids)]  # raises for what are no ids
        result: str = self._read.decode(numbers, skip_special_tokens=False)
        return result

    def __repr__(self) -> str:
        return f"Unigram({self.vocab_size:,} tokens)"


def _special_beside(path: Path) -> dict[str, str]:
    """Which token is called what, where the files beside `path` say so."""
    beside = files.read_object(path.with_name(files.SPECIAL_MAP)) | files.read_object(
        path.with_name(files.CONFIG)
    )
    tokens = {name: files.text_of(beside.get(f"{name}_token")) for name in SPECIAL}
    return {name: token for name, token in tokens.items() if token is not None}


def _rebuilt(read: Tokenizer, path: Path) -> dict[str, bool]:
    """The settings by which transformers' class makes the two parts before the model anew, each as
    this file has it."""
    beside = [files.read_object(path.with_name(n)) for n in (files.CONFIG, files.MODEL_CONFIG)]
    kinds = [one.get(key) for key in ("tokenizer_class", "model_type") for one in beside]
    kind = str(next(filter(None, kinds), None))
    parts = [part.__getstate__() if part else b"" for part in (read.normalizer, read.pre_tokenizer)]
    settings = {  # as the file has it, and the classes that ignore it
        "add_prefix_space": (b'"always"' in parts[1], files.GENERIC),
        "do_lower_case": (b'"Lowercase"' in parts[0], f"{files.GENERIC}|xlm"),
        "keep_accents": (b'"StripAccents"' not in parts[0], f"{files.GENERIC}|xlm|deberta"),
        "split_by_punct": (b'"Punctuation"' in parts[1], f"{files.GENERIC}|xlm|albert"),
    }
    return {name: value for name, (value, by) in settings.items() if not re.match(by, kind, re.I)}


def _without_special(content: dict[str, Any], special: set[int]) -> Tokenizer:
    """The tokenizer for which special tokens in a text are plain text: in it they have names with a
    character that no text holds, and their ids as before."""
    from tokenizers import Tokenizer

    special = special | {token["id"] for token in content["added_tokens"] if token["special"]}
    vocab = content["model"]["vocab"]
    for token in content["added_tokens"]:
        if token["id"] in special:
            token.update(content=f"\uffff{token['id']}", normalized=False)
    for id in special & set(range(len(vocab))):
        vocab[id][0] = f"\uffff{id}"
    return Tokenizer.from_str(json.dumps({**content, "post_processor": None}))
