"""The short English texts written for this course, `data/english/`, for fine-tuning on real words.

Six files of JSON Lines, one item a line: reviews, plain ones beside tricky ones (sentiment),
messages (spam), pairs (natural language inference), tagged sentences (parts of speech and named
entities) and passages with questions. `reviews("train")` gives the items of one split, `reviews()`
all of them. `features.py` turns items into sequences of ids. Two files of TOML beside them: the
worked examples of lecture 03, and sentences with one masked word for the course's checkpoint,
`blanks()`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from course_lib.config import check_choice
from course_lib.files import data_path, read_text

SPLITS = ("train", "validation", "test")
SENTIMENTS = ("negative", "positive")
MESSAGE_KINDS = ("ham", "spam")
FINANCE_SENTIMENTS = ("negative", "neutral", "positive")
RELATIONS = ("entailment", "neutral", "contradiction")

# The 17 universal parts of speech of Universal Dependencies, in alphabetical order.
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
ENTITY_KINDS = ("PER", "ORG", "LOC")
ENTITY_TAGS = ("O", *(f"{place}-{kind}" for kind in ENTITY_KINDS for place in "BI"))

# What tells a masked word: a fixed turn of the trade, the grammar, the sense, a clue far away.
BLANK_KINDS = ("phrase", "grammar", "sense", "far")


# ---------------------------------------------------------------- items


@dataclass(frozen=True)
class LabelledText:
    """A text and its class: a review, or a message."""

    id: str
    text: str
    label: str
    split: str = ""
    topic: str = ""  # what a review is about


@dataclass(frozen=True)
class Pair:
    """A premise, a hypothesis, and what the first says of the second (RELATIONS)."""

    id: str
    premise: str
    hypothesis: str
    label: str
    split: str = ""


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence, its words, and for each word its part of speech and its entity tag (BIO); either
    may be left out.

    Raises ValueError unless the words stand in the text in this order, every word has a tag of each
    kind that there is, and every I- tag goes on with an entity of its kind."""

    id: str
    text: str
    words: tuple[str, ...]
    pos: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    split: str = ""
    offsets: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        counts = {len(tags) for tags in (self.words, self.pos, self.entities) if tags}
        if not self.words or len(counts) > 1:
            raise ValueError(
                f"{self.id}: {len(self.words)} words, {len(self.pos)} parts of speech and "
                f"{len(self.entities)} entity tags were given; expected at least one word, and "
                "both tags for each, or none of a kind."
            )
        _check_bio(self.id, self.entities)
        object.__setattr__(self, "offsets", _places(self.id, self.text, self.words))

    def tags(self, kind: str) -> tuple[str, ...]:
        """The tags of this kind, "pos" or "entities", one a word."""
        if kind not in ("pos", "entities"):
            raise ValueError(f"kind={kind!r} was given; expected 'pos' or 'entities'.")
        tags = self.pos if kind == "pos" else self.entities
        if not tags:
            raise ValueError(f"{self.id} has no tags of the kind {kind!r}; expected one a word.")
        return tags


def _places(id: str, text: str, words: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """(start, end) of each word in the text."""
    result, end = [], 0
    for word in words:
        start = text.find(word, end) if word else -1
        if start < 0:
            raise ValueError(
                f"{id}: the word {word!r} does not stand in {text[end:]!r}; expected the words of "
                "the text, letter by letter and in their order."
            )
        end = start + len(word)
        result.append((start, end))
    return tuple(result)


def _check_bio(id: str, tags: tuple[str, ...]) -> None:
    for before, tag in zip(("O", *tags), tags, strict=False):
        if tag.startswith("I-") and before[1:] != tag[1:]:
            raise ValueError(
                f"{id}: the entity tag {tag} follows {before}; expected B-{tag[2:]} or "
                f"{tag} before it, since I- means inside."
            )


@dataclass(frozen=True)
class Answer:
    """A stretch of a passage, and where it starts, in characters."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question about a passage; no answers means that the passage does not tell.

    Raises ValueError for an answer that does not stand in the passage where it says."""

    id: str
    question: str
    passage: str
    answers: tuple[Answer, ...] = ()

    def __post_init__(self) -> None:
        for answer in self.answers:
            end = answer.start + len(answer.text)
            there = self.passage[answer.start : end] if answer.start >= 0 else ""
            if not answer.text or there != answer.text:
                raise ValueError(
                    f"{self.id}: the answer {answer.text!r} was given at {answer.start}; the "
                    f"passage of {len(self.passage)} characters has {there!r} there. Expected "
                    "words of the passage, and where they start, counted from 0."
                )


@dataclass(frozen=True)
class Passage:
    """A text and questions about it."""

    id: str
    title: str
    text: str
    split: str
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Blank:
    """A sentence with one [MASK], the word its writer had in mind, and what tells it (BLANK_KINDS).

    Raises ValueError unless there is one [MASK]."""

    text: str
    word: str
    kind: str

    def __post_init__(self) -> None:
        if (count := self.text.count("[MASK]")) != 1:
            raise ValueError(
                f"{self.text!r} holds {count} times [MASK]; expected one, instead of {self.word!r}."
            )


# ---------------------------------------------------------------- the shipped files


def reviews(split: str | None = None) -> tuple[LabelledText, ...]:
    """Product reviews, negative or positive (SENTIMENTS).

    split: train, validation or test; None for all of them. Raises ValueError for another."""
    return _shipped("reviews", split)


def plain_reviews(split: str | None = None) -> tuple[LabelledText, ...]:
    """Reviews that say what they mean, praise in good words and blame in bad ones. `split` as in
    `reviews`, which hold tricky ones."""
    return _shipped("plain_reviews", split)


def finance(split: str | None = None) -> tuple[LabelledText, ...]:
    """150 sentences of financial news, good, bad or neither for an investor: half of them plain,
    half hedged ("the loss was smaller than feared"), as their ids begin. Split as in `reviews`."""
    return _shipped("finance", split)


def messages(split: str | None = None) -> tuple[LabelledText, ...]:
    """Short messages, spam or ham (MESSAGE_KINDS). `split` as in `reviews`."""
    return _shipped("messages", split)


def nli_pairs(split: str | None = None) -> tuple[Pair, ...]:
    """Premises and hypotheses (RELATIONS). `split` as in `reviews`."""
    return _shipped("nli", split)


def tagged_sentences(split: str | None = None) -> tuple[TaggedSentence, ...]:
    """Sentences with parts of speech (UPOS) and entities (ENTITY_TAGS). `split` as in `reviews`."""
    return _shipped("tagged", split)


def passages(split: str | None = None) -> tuple[Passage, ...]:
    """Passages with six questions each, some without an answer. `split` as in `reviews`."""
    return _shipped("passages", split)


def gold_texts(questions: Iterable[Question]) -> dict[str, list[str]]:
    """question id -> the answers a reader may give, [] where the passage does not tell. ValueError
    where two questions have one id: answers are scored by it."""
    gold: dict[str, list[str]] = {}
    for question in questions:
        if question.id in gold:
            raise ValueError(
                f"the id {question.id!r} was given to two questions; expected one of its own for "
                "each, since answers are scored by it."
            )
        gold[question.id] = [answer.text for answer in question.answers]
    return gold


def questions(split: str | None = None) -> tuple[Question, ...]:
    """The questions of all passages, each with its passage. `split` as in `reviews`."""
    return tuple(question for passage in passages(split) for question in passage.questions)


@cache
def examples() -> dict[str, Any]:
    """The worked examples of lecture 03, as examples.toml has them. Do not change the answer."""
    return _toml(data_path("english", "examples.toml"))


@cache
def blanks() -> tuple[Blank, ...]:
    """Sentences in technical English with one masked word, chosen before the course's checkpoint
    was trained."""
    return read_blanks(data_path("english", "blanks.toml"))


def _shipped(kind: str, split: str | None) -> tuple[Any, ...]:
    if split not in (None, *SPLITS):
        raise ValueError(
            f"split={split!r} was given; expected one of {', '.join(SPLITS)}, or None for all."
        )
    items = _all_shipped(kind)
    return tuple(item for item in items if split in (None, item.split))


@cache
def _all_shipped(kind: str) -> tuple[Any, ...]:
    return read_items(kind, data_path("english", f"{kind}.jsonl"))


# ---------------------------------------------------------------- reading


def read_items(kind: str, path: str | Path) -> tuple[Any, ...]:
    """The items of a file, whose `kind` is reviews, plain_reviews, messages, nli, tagged or
    passages.

    Raises ValueError that names file and line: for a line that is no JSON object with the fields
    of its kind, an unknown label, tag or split, an id that stands twice (of an item, or of a
    question), an empty file, and as the items do."""
    check_choice("kind", kind, KINDS)
    items, ids = [], set[tuple[str, str]]()
    for number, line in enumerate(_lines(Path(path)), 1):
        try:
            entry = _fields(json.loads(line), kind)
            if entry["split"] not in SPLITS:
                raise ValueError(f"split is {entry['split']!r}; expected one of {SPLITS}.")
            items.append(KINDS[kind].make(entry))
            own = {("question", part.id) for part in getattr(items[-1], "questions", ())}
            if again := sorted(ids & (own := own | {(kind, entry["id"])})):
                raise ValueError(f"the id {again[0][1]!r} stands in an earlier line, too.")
        except ValueError as error:  # json's own error is one, too
            raise ValueError(f"{path}, line {number}: {error}") from error
        ids |= own
    if not items:
        raise ValueError(f"{path} is empty; expected an item a line.")
    return tuple(items)


def read_blanks(path: str | Path) -> tuple[Blank, ...]:
    """The sentences of a TOML file, a table [[blanks]] each.

    Raises ValueError for what is no TOML, for no sentence, and with the sentence's number for other
    fields than text, word and kind, an unknown kind, a sentence that stands twice, and as Blank."""
    result = _toml(Path(path))
    entries = result.get("blanks")
    if set(result) != {"blanks"} or not isinstance(entries, list) or not entries:
        raise ValueError(
            f"{path} holds {', '.join(result) or 'nothing'}; expected sentences, each under a line "
            "[[blanks]], and nothing else."
        )
    blanks: list[Blank] = []
    for number, entry in enumerate(entries, 1):
        try:
            blank = Blank(**_one_of(_fields(entry, "blank"), "kind", BLANK_KINDS))
            if blank.text in [earlier.text for earlier in blanks]:
                raise ValueError(f"{blank.text!r} stands there twice.")
        except ValueError as error:
            raise ValueError(f"{path}, sentence {number}: {error}") from error
        blanks.append(blank)
    return tuple(blanks)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}. Mend the line it names.") from error


def _lines(path: Path) -> list[str]:
    text = read_text(path)
    # Not splitlines(): it would cut at characters that JSON may hold within a text.
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _fields(entry: Any, kind: str) -> dict[str, Any]:
    """`entry`, if it is an object with the fields of this kind, none of them empty."""
    expected = KINDS[kind].fields if kind in KINDS else PARTS[kind]
    if not isinstance(entry, dict) or set(entry) != set(expected):
        there = sorted(entry) if isinstance(entry, dict) else entry
        raise ValueError(f"{there!r:.100} was given; expected the fields {', '.join(expected)}.")
    for name, type_ in expected.items():
        value = entry[name]
        if not isinstance(value, type_) or value == "" or isinstance(value, bool):
            raise ValueError(f"{name} is {value!r:.60}; expected {EXPECTED[type_]}.")
    return entry


def _labelled(labels: tuple[str, ...]) -> Callable[[dict[str, Any]], LabelledText]:
    return lambda entry: LabelledText(**_one_of(entry, "label", labels))


def _pair(entry: dict[str, Any]) -> Pair:
    return Pair(**_one_of(entry, "label", RELATIONS))


def _one_of(entry: dict[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any]:
    values = entry[name] if isinstance(entry[name], list) else [entry[name]]
    if unknown := [value for value in values if value not in known]:
        raise ValueError(f"{name} holds {unknown[0]!r}; expected {', '.join(known)}.")
    return entry


def _tagged(entry: dict[str, Any]) -> TaggedSentence:
    _one_of(_one_of(entry, "pos", UPOS), "entities", ENTITY_TAGS)
    if not all(isinstance(word, str) for word in entry["words"]):
        raise ValueError(f"words is {entry['words']!r:.60}; expected a list of texts.")
    lists = {name: tuple(entry[name]) for name in ("words", "pos", "entities")}
    return TaggedSentence(**{**entry, **lists})


def _passage(entry: dict[str, Any]) -> Passage:
    questions = []
    for fields_of in entry["questions"]:
        _fields(fields_of, "question")
        answers = tuple(Answer(**_fields(answer, "answer")) for answer in fields_of["answers"])
        questions.append(Question(fields_of["id"], fields_of["question"], entry["text"], answers))
    if len({question.id for question in questions}) < len(questions):
        raise ValueError("two of its questions have the same id.")
    return Passage(**{**entry, "questions": tuple(questions)})


@dataclass(frozen=True)
class _Kind:
    fields: Mapping[str, type]
    make: Callable[[dict[str, Any]], Any]


EXPECTED = {str: "a text", list: "a list", int: "a whole number"}
_TEXT = {"id": str, "text": str, "label": str, "split": str}
KINDS = {
    "reviews": _Kind({**_TEXT, "topic": str}, _labelled(SENTIMENTS)),
    "plain_reviews": _Kind({**_TEXT, "topic": str}, _labelled(SENTIMENTS)),
    "finance": _Kind(_TEXT, _labelled(FINANCE_SENTIMENTS)),
    "messages": _Kind(_TEXT, _labelled(MESSAGE_KINDS)),
    "nli": _Kind({"id": str, "premise": str, "hypothesis": str, "label": str, "split": str}, _pair),
    "tagged": _Kind(
        {"id": str, "text": str, "words": list, "pos": list, "entities": list, "split": str},
        _tagged,
    ),
    "passages": _Kind(
        {"id": str, "title": str, "text": str, "split": str, "questions": list}, _passage
    ),
}
PARTS: dict[str, Mapping[str, type]] = {
    "question": {"id": str, "question": str, "answers": list},
    "answer": {"text": str, "start": int},
    "blank": {"text": str, "word": str, "kind": str},
}
