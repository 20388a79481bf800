"""What a pre-training run reads: a source of text into a tokenizer and two sets of documents, one
to learn from and one to be measured on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.checkpoints import load_pretrained
from course_lib.text.characters import WordVocabulary, words_of
from course_lib.text.documentation import corpus_hash, documentation, split_of, split_sentences
from course_lib.text.domains import SOURCES, domain
from course_lib.text.wordpiece import WordPiece, fast_wordpiece, train_wordpiece
from course_lib.text.world import MicroWorld, Story

from .new_vocabulary import extended
from .pretrain_recipe import TextPart

Ids = list[list[list[int]]]  # documents of sentences of ids
Sentences = Sequence[Sequence[str]]  # documents of sentences


@dataclass(frozen=True)
class Reading:
    """A tokenizer, the documents of both splits in its ids, and where they come from."""

    tokenizer: WordPiece | WordVocabulary
    documents: tuple[Ids, Ids]  # to learn from; held out
    about: dict[str, Any]


def read_text(part: TextPart) -> Reading:
    """Read the source that a recipe names.

    Raises ValueError where there is no text in it, or too little to hold any out, and
    FileNotFoundError where there is no such source."""
    if part.source == "world":
        world, told, held = _world(part)
        ids = world.documents(told), world.documents(held)
        return Reading(world.tokenizer, ids, _about(world, part))
    texts, learned_from, about = _texts(part)
    tokenizer = _tokenizer(part.vocabulary, learned_from)
    if part.added:
        tokenizer = extended(tokenizer, learned_from, part.added)
    if isinstance(part.vocabulary, str):  # a file may change, and a name mean another checkpoint
        about["vocabulary_hash"] = corpus_hash([tokenizer.vocab])
    ids = (_encode(tokenizer, texts[0]), _encode(tokenizer, texts[1]))
    return Reading(tokenizer, ids, about)


def read_words(part: TextPart) -> Reading:
    """Read the source as whole words, which ELMo spells: their ids in a vocabulary of all words of
    both splits, of which the `part.vocabulary` most frequent ones of the training text are
    predicted. Raises as `read_text` does, and ValueError for the name of a vocabulary."""
    if not isinstance(part.vocabulary, int):
        raise ValueError(
            f"vocabulary={part.vocabulary!r} was given; expected how many words to predict: ELMo "
            "reads characters and predicts whole words of its text."
        )
    if part.source == "world":
        world, *stories = _world(part)
        texts: Any = [[story.sentences for story in split] for split in stories]
        about = _about(world, part)
    else:
        texts, _, about = _texts(part)
    words = [[[w for s in document if (w := words_of(s))] for document in text] for text in texts]
    train = [sentence for document in words[0] for sentence in document]
    known = WordVocabulary.of(train, part.vocabulary)
    unseen = {w for document in words[1] for s in document for w in s} - known.ids.keys()
    vocabulary = WordVocabulary([*known.vocab[4:], *sorted(unseen)], known.predicted)
    ids = [[[vocabulary.encode(s) for s in document] for document in text if document]
           for text in words]  # fmt: skip
    return Reading(vocabulary, (ids[0], ids[1]), about)


def _texts(part: TextPart) -> tuple[tuple[Any, Any], Iterable[str], dict[str, Any]]:
    """Both splits as documents of sentences, the paragraphs to learn a vocabulary from, and where
    all of it comes from."""
    if part.source == "documentation":
        train, heldout = documentation("train"), documentation("heldout")
        about = {"source": part.source, "words": train.words, "hash": train.hash,
                 "heldout_hash": heldout.hash, "versions": train.versions}  # fmt: skip
        return (train.sentences(), heldout.sentences()), train.paragraphs, about
    if part.source in SOURCES:
        read = domain(part.source)
        train, heldout = read.corpus("train"), read.corpus("heldout")
        about = {"source": part.source, "words": train.words, "hash": read.hash,
                 "versions": train.versions}  # fmt: skip
        return (train.sentences(), heldout.sentences()), train.paragraphs, about
    train_paragraphs, held_paragraphs = _files(Path(part.source))
    learned_from = [p for document in train_paragraphs for p in document]
    about = {"source": part.source, "words": sum(len(p.split()) for p in learned_from),
             "hash": corpus_hash(train_paragraphs),
             "heldout_hash": corpus_hash(held_paragraphs)}  # fmt: skip
    return (_sentences(train_paragraphs), _sentences(held_paragraphs)), learned_from, about


def _world(part: TextPart) -> tuple[MicroWorld, list[Story], list[Story]]:
    world = MicroWorld.load()
    told = world.stories(part.stories, seed=0)
    return world, told, world.stories(part.heldout, seed=0, split="heldout")


def _about(world: MicroWorld, part: TextPart) -> dict[str, Any]:
    return {"source": "world", "stories": part.stories, "version": world.version,
            "hash": world.hash}  # fmt: skip


def _files(source: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Paragraphs of every text file, a document a file, split by each paragraph's own hash."""
    if not source.exists():
        raise FileNotFoundError(
            f'source = "{source}" was given; expected "documentation", "world", or a file or '
            "folder of plain text (.txt, UTF-8) that exists."
        )
    names = sorted(source.rglob("*.txt")) if source.is_dir() else [source]
    if not names:
        raise ValueError(
            f"{source} was given as a folder of text; it holds no file that ends in .txt, "
            "subfolders included. Put plain text in UTF-8 there, paragraphs apart by an empty line."
        )
    found: dict[str, list[list[str]]] = {"train": [], "heldout": []}
    for name in names:
        try:
            text = name.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name} was given as text; its byte {error.start} is no UTF-8. Save the file "
                "again in UTF-8, or take it out of the folder."
            ) from error
        paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text)]
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
    if Path(vocabulary).is_file():
        return WordPiece.from_file(vocabulary)
    found = load_pretrained(vocabulary).tokenizer
    if not isinstance(found, WordPiece):
        raise ValueError(
            f"vocabulary={vocabulary!r} was given; expected how many pieces to learn, a vocab.txt, "
            "or a checkpoint with a WordPiece vocabulary beside it."
        )
    return found


def _encode(tokenizer: WordPiece, documents: Sentences) -> Ids:
    """The library's tokenizer, which gives what ours gives, many times as fast."""
    fast = fast_wordpiece(tokenizer)
    encoded = (
        [e.ids for e in fast.encode_batch(list(d), add_special_tokens=False) if e.ids]
        for d in documents
    )
    return [document for document in encoded if document]
