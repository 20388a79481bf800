"""What a pre-training run reads: a source of text into a tokenizer and two sets of documents, one
to learn from and one to be measured on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import is_normalized

from course_lib.checkpoints import load_pretrained
from course_lib.text.characters import WordVocabulary, words_of
from course_lib.text.documentation import corpus_hash, documentation, split_of, split_sentences
from course_lib.text.domains import SOURCES, domain
from course_lib.text.folder import SENTENCE_END, read_folder
from course_lib.text.tokenizer_files import CONFIG
from course_lib.text.wordpiece import WordPiece, fast_wordpiece, train_wordpiece, without_accents
from course_lib.text.world import MicroWorld, Story

from .new_vocabulary import extended
from .pretrain_recipe import TextPart

Ids = list[list[list[int]]]  # documents of sentences of ids
Sentences = Sequence[Sequence[str]]  # documents of sentences


@dataclass(frozen=True)
class Reading:
    """A tokenizer, the documents of both splits in its ids, and where they come from; notes: what
    was chosen for a reader's own text and left out of it, a line each."""

    tokenizer: WordPiece | WordVocabulary
    documents: tuple[Ids, Ids]  # to learn from; held out
    about: dict[str, Any]
    notes: tuple[str, ...] = ()


def read_text(part: TextPart) -> Reading:
    """Read the source that a recipe names.

    Raises ValueError where there is no text in it, or too little to hold any out, and
    FileNotFoundError where there is no such source."""
    if part.source == "world":
        for name in ("lowercase", "strip_accents"):
            if getattr(part, name) is not None:
                raise ValueError(
                    f"{name} was given for the micro-world, which has a vocabulary of its own; "
                    "expected none. Leave it out."
                )
        world, stories, held = _world(part)
        ids = world.documents(stories), world.documents(held)
        return Reading(world.tokenizer, ids, _about(world, part), _namesake(part))
    texts, learned_from, about, notes = _texts(part)
    tokenizer = _tokenizer(part, learned_from, about)
    if part.added:
        tokenizer = extended(tokenizer, learned_from, part.added)
    if isinstance(part.vocabulary, str):  # a file may change, and a name mean another checkpoint
        about["vocabulary_hash"] = corpus_hash([tokenizer.vocab])
    form = {"lowercase": tokenizer.lowercase, "strip_accents": tokenizer.strip_accents}
    notes += _say(form, about, part) + _fewer(part, len(tokenizer), "pieces")
    ids = (_encode(tokenizer, texts[0]), _encode(tokenizer, texts[1]))
    return Reading(tokenizer, ids, about, notes)


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
        about, notes = _about(world, part), _namesake(part)
    else:
        texts, _, about, notes = _texts(part)
    form = _form(part, about)
    notes += _say(form, about, part)
    words = [[[w for s in document if (w := words_of(s, **form))] for document in text]
             for text in texts]  # fmt: skip
    train = [sentence for document in words[0] for sentence in document]
    known = WordVocabulary.of(train, part.vocabulary)
    notes += _fewer(part, known.predicted, "words to predict")
    unseen = {w for document in words[1] for s in document for w in s} - known.ids.keys()
    vocabulary = WordVocabulary([*known.vocab[4:], *sorted(unseen)], known.predicted)
    ids = [[[vocabulary.encode(s) for s in document] for document in text if document]
           for text in words]  # fmt: skip
    return Reading(vocabulary, (ids[0], ids[1]), about, notes)


def _texts(
    part: TextPart,
) -> tuple[tuple[Any, Any], Sequence[str], dict[str, Any], tuple[str, ...]]:
    """Both splits as documents of sentences, the paragraphs to learn a vocabulary from, where all
    of it comes from, and what was left out."""
    if part.source == "documentation" or part.source in SOURCES:
        read = domain(part.source) if part.source in SOURCES else None
        train, heldout = map(read.corpus if read else documentation, ("train", "heldout"))
        both = {"hash": train.hash, "heldout_hash": heldout.hash}
        about = {"source": part.source, "words": train.words,
                 **({"hash": read.hash} if read else both), "versions": train.versions}  # fmt: skip
        return (train.sentences(), heldout.sentences()), train.paragraphs, about, _namesake(part)
    train_paragraphs, held_paragraphs, notes = _own(Path(part.source))
    learned_from = [p for document in train_paragraphs for p in document]
    if loose := sum(not is_normalized("NFC", p) for p in learned_from):
        notes += (
            f"{loose:,} of {len(learned_from):,} paragraphs are not in Unicode's composed form "
            "(NFC): where marks are kept, a letter written in two ways counts as two.",
        )
    about = {"source": part.source, "words": sum(len(p.split()) for p in learned_from),
             "hash": corpus_hash(train_paragraphs), "heldout_hash": corpus_hash(held_paragraphs),
             "marked": _marked(learned_from)}  # fmt: skip
    return (_sentences(train_paragraphs), _sentences(held_paragraphs)), learned_from, about, notes


def _namesake(part: TextPart) -> tuple[str, ...]:
    """A line where a reader's folder is called like the course's own text that was read."""
    if not Path(part.source).exists():
        return ()
    return (f'"{part.source}" is a text of the course; "./{part.source}" would be yours.',)


def _marked(texts: Sequence[str]) -> float:
    """The fraction of words that lose something with their accents: marks, vowels, voicing."""
    words = Counter(w for t in texts if not t.isascii() for w in t.split() if not w.isascii())
    marked = sum(count for word, count in words.items() if without_accents(word) != word)
    return round(marked / sum(len(text.split()) for text in texts), 4)


def _world(part: TextPart) -> tuple[MicroWorld, list[Story], list[Story]]:
    world = MicroWorld.load()
    stories = world.stories(part.stories, seed=0)
    return world, stories, world.stories(part.heldout, seed=0, split="heldout")


def _about(world: MicroWorld, part: TextPart) -> dict[str, Any]:
    return {"source": "world", "stories": part.stories, "version": world.version,
            "hash": world.hash}  # fmt: skip


def _own(source: Path) -> tuple[list[list[str]], list[list[str]], tuple[str, ...]]:
    """Both splits of a reader's text, by each paragraph's own hash, and what was left out of it."""
    documents, notes = read_folder(source)
    train, heldout = (
        [kept for d in documents if (kept := [p for p in d if split_of(p) == split])]
        for split in ("train", "heldout")
    )
    if not train or not heldout:
        raise ValueError(
            f"{source} holds {sum(map(len, train))} paragraphs to learn from and "
            f"{sum(map(len, heldout))} to hold out (one in twenty); expected at least one of each. "
            f"Give more text, with an empty line between paragraphs. {' '.join(notes)}".strip()
        )
    return train, heldout, notes


def _sentences(documents: Iterable[Iterable[str]]) -> list[list[str]]:
    return [
        [s for p in document for s in split_sentences(p, SENTENCE_END)] for document in documents
    ]


RARE = 0.002
"""A text in which fewer words have marks counts as plain English: marks are dropped, so that a
later naïve is read as naive. Elsewhere they distinguish words: schon and schön."""


def _form(part: TextPart, about: Mapping[str, Any]) -> dict[str, bool]:
    """Case and marks of the words of this text, as the recipe says or as the text asks for."""
    lowercase = part.lowercase is not False
    by_text = lowercase and about.get("marked", 0.0) < RARE
    strip = by_text if part.strip_accents is None else part.strip_accents
    return {"lowercase": lowercase, "strip_accents": strip}


def _say(form: dict[str, bool], about: dict[str, Any], part: TextPart) -> tuple[str, ...]:
    """What becomes of case and marks of a reader's text: into `about`, and in words."""
    if "marked" not in about:
        return ()
    about |= form
    marks = "dropped" if form["strip_accents"] else "kept"
    capitals = "lower-cased" if form["lowercase"] else "kept"
    change = "strip_accents and lowercase under [text] change that."
    if isinstance(part.vocabulary, str):
        change = f"So the vocabulary, {part.vocabulary}, is read."
    return (
        f"{about['marked']:.1%} of the words have accents or other marks (in English fewer than "
        f"{RARE:.1%}): they are {marks}, and capitals are {capitals}. {change}",
    )


def _fewer(part: TextPart, count: int, what: str) -> tuple[str, ...]:
    """A line where a text gave fewer than the recipe has in `vocabulary`."""
    if isinstance(part.vocabulary, str) or count >= part.vocabulary + part.added:
        return ()
    return (f"vocabulary = {part.vocabulary:,}: {count:,} {what} were learnt from this text.",)


def _tokenizer(part: TextPart, texts: Iterable[str], about: Mapping[str, Any]) -> WordPiece:
    if isinstance(part.vocabulary, int):
        return train_wordpiece(texts, part.vocabulary, **_form(part, about))
    normalisation = {"lowercase": part.lowercase, "strip_accents": part.strip_accents}
    path = Path(part.vocabulary)
    if path.is_file() and not (path.suffix == ".json" or path.with_name(CONFIG).is_file()):
        return WordPiece.from_file(path, **normalisation)  # a bare list says nothing of either
    result = (
        WordPiece.from_file(path) if path.is_file() else load_pretrained(part.vocabulary).tokenizer
    )
    if not isinstance(result, WordPiece):
        raise ValueError(
            f"vocabulary={part.vocabulary!r} was given; expected how many pieces to learn, a "
            "vocab.txt, or a checkpoint with a WordPiece vocabulary beside it."
        )
    for name, value in normalisation.items():
        if value not in (None, getattr(result, name)):
            raise ValueError(
                f"{name}={value} was given with vocabulary={part.vocabulary!r}, which was made "
                f"with {name}={getattr(result, name)}; expected the same, or none."
            )
    return result


def _encode(tokenizer: WordPiece, documents: Sentences) -> Ids:
    """The library's tokenizer, which gives what ours gives, many times as fast."""
    fast = fast_wordpiece(tokenizer)
    encoded = (
        [e.ids for e in fast.encode_batch(list(d), add_special_tokens=False) if e.ids]
        for d in documents
    )
    return [document for document in encoded if document]
