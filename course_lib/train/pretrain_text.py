"""What a pre-training run reads: a source of text into a tokenizer and two sets of documents, one
to learn from and one to be measured on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.text.documentation import corpus_hash, documentation, split_of, split_sentences
from course_lib.text.wordpiece import WordPiece, fast_wordpiece, train_wordpiece
from course_lib.text.world import MicroWorld

from .pretrain_recipe import TextPart

Ids = list[list[list[int]]]  # documents of sentences of ids
Sentences = Sequence[Sequence[str]]  # documents of sentences


@dataclass(frozen=True)
class Reading:
    """A tokenizer, the documents of both splits in its ids, and where they come from."""

    tokenizer: WordPiece
    documents: tuple[Ids, Ids]  # to learn from; held out
    about: dict[str, Any]


def read_text(part: TextPart) -> Reading:
    """Read the source that a recipe names.

    Raises ValueError where there is no text in it, or too little to hold any out, and
    FileNotFoundError where there is no such source."""
    if part.source == "world":
        return _world(part)
    if part.source == "documentation":
        train, heldout = documentation("train"), documentation("heldout")
        texts = (train.sentences(), heldout.sentences())
        about = {"words": train.words, "hash": train.hash, "heldout_hash": heldout.hash,
                 "versions": train.versions}  # fmt: skip
        learned_from: Iterable[str] = train.paragraphs
    else:
        train_paragraphs, held_paragraphs = _files(Path(part.source))
        texts = (_sentences(train_paragraphs), _sentences(held_paragraphs))
        learned_from = [p for document in train_paragraphs for p in document]
        about = {"words": sum(len(p.split()) for p in learned_from),
                 "hash": corpus_hash(train_paragraphs)}  # fmt: skip
    tokenizer = _tokenizer(part.vocabulary, learned_from)
    ids = (_encode(tokenizer, texts[0]), _encode(tokenizer, texts[1]))
    return Reading(tokenizer, ids, {"source": part.source, **about})


def _world(part: TextPart) -> Reading:
    world = MicroWorld.load()
    told = world.documents(world.stories(part.stories, seed=0))
    held = world.documents(world.stories(part.heldout, seed=0, split="heldout"))
    about = {"source": "world", "stories": part.stories, "version": world.version,
             "hash": world.hash}  # fmt: skip
    return Reading(world.tokenizer, (told, held), about)


def _files(source: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Paragraphs of every text file, a document a file, split by each paragraph's own hash."""
    if not source.exists():
        raise FileNotFoundError(
            f'source = "{source}" was given; expected "documentation", "world", or a file or '
            "folder of plain text (.txt, UTF-8) that exists."
        )
    names = sorted(source.rglob("*.txt")) if source.is_dir() else [source]
    found: dict[str, list[list[str]]] = {"train": [], "heldout": []}
    for name in names:
        paragraphs = [" ".join(p.split()) for p in name.read_text(encoding="utf-8").split("\n\n")]
        for split, documents in found.items():
            if kept := [p for p in paragraphs if p and split_of(p) == split]:
                documents.append(kept)
    if not found["train"] or not found["heldout"]:
        raise ValueError(
            f"{source} holds {sum(map(len, found['train']))} paragraphs to learn from and "
            f"{sum(map(len, found['heldout']))} to hold out (one in twenty); expected at least one "
            "of each. Give more text, paragraphs apart by an empty line."
        )
    return found["train"], found["heldout"]


def _sentences(documents: Iterable[Iterable[str]]) -> list[list[str]]:
    return [[s for p in document for s in split_sentences(p)] for document in documents]


def _tokenizer(vocabulary: int | str, texts: Iterable[str]) -> WordPiece:
    if isinstance(vocabulary, int):
        return train_wordpiece(texts, vocabulary)
    return WordPiece.from_file(vocabulary)


def _encode(tokenizer: WordPiece, documents: Sentences) -> Ids:
    """The library's tokenizer, which gives what ours gives, many times as fast."""
    fast = fast_wordpiece(tokenizer)
    encoded = (
        [e.ids for e in fast.encode_batch(list(d), add_special_tokens=False) if e.ids]
        for d in documents
    )
    return [document for document in encoded if document]
