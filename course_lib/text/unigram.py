"""SentencePiece vocabularies of released models (ALBERT, XLM-R), read from their tokenizer.json.

SentencePiece (Kudo and Richardson 2018) writes a space as ▁ and cuts the raw text, no words before;
its unigram model (Kudo 2018) takes the cut whose pieces are most probable together. That is done by
the `tokenizers` library; here it gets the face that all tokenizers of the course have. Training one
is the library's business, too: lecture 10 trains some."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from course_lib.objectives.sequences import SpecialIds

# What SpecialIds calls them, and how released vocabularies do.
SPECIAL = {
    "pad": ("<pad>", "[PAD]"), "unk": ("<unk>", "[UNK]"), "cls": ("<s>", "[CLS]"),
    "sep": ("</s>", "[SEP]"), "mask": ("<mask>", "[MASK]"),
}  # fmt: skip
SPACE = "▁"


class Unigram(Vocabulary):
    """A SentencePiece vocabulary. read: the library's tokenizer, as its tokenizer.json has it.

    Raises ValueError where one of the five special tokens is not in it."""

    def __init__(self, read: Any):
        self._read = read
        by_id = {id: token for token, id in read.get_vocab(with_added_tokens=True).items()}
        self.vocab = [by_id.get(id, f"<unused {id}>") for id in range(max(by_id) + 1)]
        self.ids = {token: id for id, token in enumerate(self.vocab)}
        self._named = {
            name: next((t for t in spellings if t in self.ids), None)
            for name, spellings in SPECIAL.items()
        }
        if missing := [SPECIAL[name] for name, token in self._named.items() if token is None]:
            raise ValueError(
                f"a vocabulary of {len(self.vocab):,} pieces was given without "
                f"{', '.join(' or '.join(spellings) for spellings in missing)}; expected the five "
                "special tokens of an encoder."
            )

    @classmethod
    def from_file(cls, path: str | Path) -> Unigram:
        """Read a tokenizer.json, or the folder that has one.

        Raises FileNotFoundError, and ValueError for a file that holds something else."""
        from tokenizers import Tokenizer, models

        path = Path(path)
        path = path / "tokenizer.json" if path.is_dir() else path
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} was given; expected a tokenizer.json, or the folder that has one. A "
                "sentencepiece .model alone is not read: transformers' AutoTokenizer makes a "
                "tokenizer.json of it (save_pretrained)."
            )
        try:
            read = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises a bare Exception
            raise ValueError(
                f"{path} was given; expected a tokenizer.json, and reading it fails: {error}"
            ) from error
        if not isinstance(read.model, models.Unigram):
            raise ValueError(
                f"{path} holds a {type(read.model).__name__} model; expected Unigram, as ALBERT "
                "and XLM-R have it. WordPiece.from_file and ByteBPE.from_file read the others."
            )
        return cls(read)

    @cached_property
    def special(self) -> SpecialIds:
        """The special ids under BERT's names, and the number of tokens."""
        from course_lib.objectives.sequences import SpecialIds

        return SpecialIds(
            **{name: self.ids[str(token)] for name, token in self._named.items()},
            vocab_size=self.vocab_size,
            separators=2 if self._named["sep"] == "</s>" else 1,  # XLM-R's pairs; ALBERT's
        )

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without special tokens around it."""
        found: list[int] = self._read.encode(text, add_special_tokens=False).ids
        return found

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of `text`, and where in it each of them stands: (start, end) in characters,
        without the white space that a piece may begin with."""
        found = self._read.encode(text, add_special_tokens=False)
        offsets = []
        for start, end in found.offsets:
            while start < end and text[start].isspace():
                start += 1
            offsets.append((start, end))
        return found.ids, offsets

    def pieces(self, text: str) -> list[str]:
        """The pieces of `text`, a space as ▁."""
        return [self.vocab[id] for id in self.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; special tokens appear by name."""
        found: str = self._read.decode([int(id) for id in ids], skip_special_tokens=False)
        return found

    def __repr__(self) -> str:
        return f"Unigram({self.vocab_size:,} tokens)"
