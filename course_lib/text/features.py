"""Labelled texts as sequences of ids, for each kind of task: one text or a pair, a label a word, a
question about a passage.

Words and answers are counted in characters, a model counts in tokens. Offsets, which say where in
its text each token stands, lead from one to the other and back. What does not fit into a sequence
is cut, counted and told: `print(task.cut)`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Protocol
from unicodedata import normalize

import numpy as np
import torch
from torch import Tensor

from course_lib.config import check_size
from course_lib.files import did_you_mean
from course_lib.objectives.sequences import (
    PackedSequences,
    SpecialIds,
    pack,
    text_first,
    to_sequences,
)

from .english import ENTITY_TAGS, UPOS, Answer, Question, TaggedSentence, gold_texts
from .packing import pack_pair
from .tasks import Cut, LabelledSequences
from .vocabulary import check_each, check_texts

IGNORED = -100  # the label of a position that no loss counts


class Tokenizer(Protocol):
    """What is needed of a tokenizer here: WordPiece and ByteBPE have it."""

    @property
    def special(self) -> SpecialIds: ...

    def encode(self, text: str) -> list[int]: ...

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]: ...


# ---------------------------------------------------------------- a label a text, or a pair


def check_tokenizer(tokenizer: object) -> None:
    """Raise TypeError for what is no tokenizer, such as all that `load_pretrained` returns."""
    if not hasattr(tokenizer, "encode"):
        within = "; its tokenizer is .tokenizer" if hasattr(tokenizer, "tokenizer") else ""
        raise TypeError(
            f"a {type(tokenizer).__name__} was given as tokenizer; expected one of the course's, "
            f"such as WordPiece{within}."
        )


def text_sequences(
    texts: Sequence[str],
    labels: Sequence[str],
    names: Sequence[str] | None,
    tokenizer: Tokenizer,
    length: int,
    second: Sequence[str] | None = None,
) -> LabelledSequences:
    """[CLS] text [SEP], or [CLS] text [SEP] second [SEP], and the class of each of N texts.

    names: the classes; `labels` become their numbers. None: the labels that there are, in
    alphabetical order; of other texts for the same model give these, task.names. A text that is too
    long loses its end, a pair loses, token by token, the end of the one that is longer at that
    moment.
    Raises ValueError for no texts, a label that is none of the names, and as `plain_sequences`;
    without names for labels that differ in white space, capitals or the form of a number alone."""
    texts, labels = check_texts(texts), check_texts(labels)
    names = _names_of(labels) if names is None else check_texts(names)
    if len(texts) != len(labels):
        raise ValueError(
            f"{len(texts)} texts and {len(labels)} labels were given; expected a label for each."
        )
    sequences, cut = plain_sequences(texts, tokenizer, length, second)
    number = _numbers_of(names)
    if unknown := sorted(set(labels) - number.keys()):
        raise ValueError(
            f"the label {unknown[0]!r} was given; expected one of {_listed(names)}."
            + did_you_mean(unknown[0], names)
        )
    return LabelledSequences(
        sequences, torch.tensor([number[label] for label in labels]), tuple(names), cut
    )


def plain_sequences(
    texts: Sequence[str], tokenizer: Tokenizer, length: int, second: Sequence[str] | None = None
) -> tuple[PackedSequences, Cut]:
    """The sequences of `text_sequences` for texts whose class nobody knows, and what was cut.

    Raises ValueError for no texts, as many second texts as there are not texts, a text without a
    token, and a length that does not hold one token of each; TypeError for one text instead of
    several, and for what is no text."""
    check_tokenizer(tokenizer)
    check_size("length", length)
    texts, second = check_texts(texts), None if second is None else check_texts(second)
    if not texts:
        raise ValueError("No texts were given; expected at least one.")
    if second is not None and len(second) != len(texts):
        raise ValueError(
            f"{len(texts)} first and {len(second)} second texts were given; expected pairs."
        )
    packed, left_out = [], []
    for number, text in enumerate(texts):
        pair = [text] if second is None else [text, second[number]]
        ids = [tokenizer.encode(part) for part in pair]
        if not all(ids):
            empty = next(part for part, result in zip(pair, ids, strict=True) if not result)
            raise ValueError(f"text {number}, {empty!r:.60}, has no token; expected words in it.")
        b = None if second is None else ids[1]
        row = pack_pair(ids[0], b, tokenizer.special, length, truncate=True)
        packed.append(row)
        left_out.append(sum(pack(ids[0], b, tokenizer.special)[2]) - sum(row[2]))
    return to_sequences(packed), _cut(left_out, length, "tokens")


# ---------------------------------------------------------------- a label a word


@dataclass(frozen=True)
class TaggedSequences:
    """Sentences and the tag of each word: N sequences of T positions.

    labels (N, T) int64: the tag's number at the first piece of each word, −100 everywhere else;
    first: for each sentence, the position of each word's first piece, as far as its words fit."""

    sequences: PackedSequences
    labels: Tensor
    names: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    first: tuple[tuple[int, ...], ...]
    cut: Cut

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, which: slice | Tensor) -> TaggedSequences:
        numbers = torch.arange(len(self))[which].tolist()
        return TaggedSequences(
            self.sequences[which], self.labels[which], self.names,
            tuple(self.words[n] for n in numbers), tuple(self.first[n] for n in numbers), self.cut,
        )  # fmt: skip

    def tags(self, numbers: Tensor) -> list[list[str]]:
        """The tags that `numbers` (N, T) gives to the words that fit: of `labels` the true ones, of
        `logits.argmax(-1)` a model's. Raises ValueError for numbers of another shape, and where
        a word has no tag's number."""
        if numbers.shape != self.labels.shape:
            raise ValueError(
                f"tags of shape {tuple(numbers.shape)} were given; expected one for each position, "
                f"{tuple(self.labels.shape)}. Pad what was cut to the longest sequence."
            )
        result = [row[list(at)].tolist() for row, at in zip(numbers, self.first, strict=True)]
        if strange := {n for row in result for n in row if not 0 <= n < len(self.names)}:
            raise ValueError(
                f"the tag {min(strange)} was given at a word; expected 0 to {len(self.names) - 1}."
            )
        return [[self.names[n] for n in row] for row in result]


def tagged_sequences(
    sentences: Sequence[TaggedSentence],
    kind: str | None,
    tokenizer: Tokenizer,
    length: int,
    names: Sequence[str] | None = None,
) -> TaggedSequences:
    """[CLS] sentence [SEP], and the tags of its words at their first pieces (Devlin et al. 2018,
    section 5.3).

    kind: "pos", "entities", or None for sentences to be tagged, whose labels are all −100.
    names: the tags; None: UPOS or ENTITY_TAGS, or, where the sentences have others, those that they
    have, O first; of other sentences for the same model give these, task.names. Words that no
    longer fit whole are cut. Raises ValueError for no sentences, a tag that is none of the names, a
    word without a token, and a length too short for a sentence's first word."""
    check_tokenizer(tokenizer)
    check_size("length", length)
    sentences = check_each(sentences, TaggedSentence, one="sentence")
    if not sentences:
        raise ValueError("No sentences were given; expected at least one.")
    if kind is None and names is None:
        names = ()
    elif names is None:
        there = {tag for sentence in sentences for tag in sentence.tags(kind)}
        names = UPOS if kind == "pos" else ENTITY_TAGS
        if not there <= set(names):
            names = _tag_names(there)
    packed, labels, firsts, left_out = [], [], [], []
    number = _numbers_of(names)
    for sentence in sentences:
        ids, first = _pieces_of_words(sentence, tokenizer, length - 2)
        label = torch.full((length,), IGNORED)
        if kind is not None:
            tags = sentence.tags(kind)
            if unknown := [tag for tag in tags if tag not in number]:
                raise ValueError(
                    f"{sentence.id}: the tag {unknown[0]!r} was given; expected one of "
                    f"{_listed(names)}."
                )
            label[list(first)] = torch.tensor([number[tag] for tag in tags[: len(first)]])
        packed.append(pack(ids, None, tokenizer.special, length))
        labels.append(label)
        firsts.append(first)
        left_out.append(len(sentence.words) - len(first))
    return TaggedSequences(
        to_sequences(packed), torch.stack(labels), tuple(names),
        tuple(sentence.words for sentence in sentences), tuple(firsts),
        _cut(left_out, length, "words"),
    )  # fmt: skip


def _pieces_of_words(
    sentence: TaggedSentence, tokenizer: Tokenizer, room: int
) -> tuple[list[int], tuple[int, ...]]:
    """The ids of the words that fit into `room`, and the positions of their first pieces in a
    sequence that begins with [CLS]."""
    ids: list[int] = []
    first: list[int] = []
    end = 0
    for word, (start, stop) in zip(sentence.words, sentence.offsets, strict=True):
        # Word by word: "isn't", split into the words "is" and "n't", is cut there by every
        # tokenizer. With what stands before the word: byte-level pieces begin with a space.
        pieces, offsets = tokenizer.encode_with_offsets(sentence.text[end:stop])
        inside = [n for n, (_, last) in enumerate(offsets) if end + last > start]
        if not inside:
            raise ValueError(
                f"{sentence.id}: the word {word!r} has no token; expected at least one character "
                "of each word to be more than white space or a control character."
            )
        if len(ids) + len(pieces) > room:
            break
        first.append(1 + len(ids) + inside[0])
        ids += pieces
        end = stop
    if not first:
        raise ValueError(
            f"length={room + 2} was given; {sentence.id} begins with {sentence.words[0]!r}, which "
            "does not fit between [CLS] and [SEP]. Choose a greater length."
        )
    return ids, tuple(first)


# ---------------------------------------------------------------- a question about a passage


@dataclass(frozen=True)
class QuestionSequences:
    """Questions, each with windows of its passage: W sequences [CLS] question [SEP] window [SEP].

    start, end (W,): positions of the answer's first and last token, (0, 0) where this window does
    not hold all of it; allowed (W, T) bool: the window's tokens; most_context (W, T) bool: those of
    them that have more context here than in any other window; offsets (W, T, 2): where in the
    passage each of them stands, 0 elsewhere; question (W,): which of `questions` it is. `cut`
    counts the answers that no window holds whole."""

    sequences: PackedSequences
    start: Tensor
    end: Tensor
    allowed: Tensor
    most_context: Tensor
    offsets: Tensor
    question: Tensor
    questions: tuple[Question, ...]
    cut: Cut

    def __post_init__(self) -> None:
        if (text_first(self.sequences.attention_mask).diff(dim=1) != 1).any():
            raise ValueError(
                "questions with padding before or between their tokens were given; expected all of "
                "it behind them: the null answer is position 0. question_sequences makes them so."
            )

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, which: slice | Tensor) -> QuestionSequences:
        return QuestionSequences(
            self.sequences[which], self.start[which], self.end[which], self.allowed[which],
            self.most_context[which], self.offsets[which], self.question[which], self.questions,
            self.cut,
        )  # fmt: skip

    def span(self, window: int, start: int, end: int) -> Answer:
        """The words of the passage from position `start` to `end` of a window, as they stand there;
        (0, 0) is no answer, "". Raises ValueError where a position is none of the window's."""
        if start == end == 0:
            return Answer("", 0)
        if not (start <= end and self.allowed[window, start] and self.allowed[window, end]):
            inside = self.allowed[window].nonzero()[:, 0].tolist()
            raise ValueError(
                f"the span from {start} to {end} was given; expected start ≤ end, both among the "
                f"window's positions, {inside[0]} to {inside[-1]}."
            )
        first, last = int(self.offsets[window, start, 0]), int(self.offsets[window, end, 1])
        passage = self.questions[int(self.question[window])].passage
        return Answer(passage[first:last], first)


def question_sequences(
    questions: Sequence[Question], tokenizer: Tokenizer, length: int, stride: int
) -> QuestionSequences:
    """Each question with its whole passage, or with windows of it where that is too long.

    stride: a window begins so many tokens after the one before; some libraries give the overlap
    under this name, which is what a window holds less `stride`. Segment 0 is the question, 1 the
    window.
    The first of a question's answers is the one to be learnt. An answer of k tokens is whole in
    some window if the window holds at least stride + k − 1. Of one that begins or ends inside a
    token the whole token is learnt; a warning counts these.
    Raises ValueError for no questions, two with one id, a question or passage without a token, a
    question that leaves no room for the passage, and a stride below 1 or with gaps between the
    windows."""
    check_tokenizer(tokenizer)
    check_size("length", length)
    questions = check_each(questions, Question, one="question")
    if not questions:
        raise ValueError("No questions were given; expected at least one.")
    gold_texts(questions)  # raises before a training whose answers could not be scored
    packed, spans, offsets, most_context, numbers, lost = [], [], [], [], [], []
    wider: list[str] = []
    for number, question in enumerate(questions):
        question_ids = tokenizer.encode(question.question)
        text, offsets_of = tokenizer.encode_with_offsets(question.passage)
        controls = 2 + tokenizer.special.separators
        room = length - len(question_ids) - controls
        _check_room(question, question_ids, text, room, length, stride)
        answer = _tokens_of(question.answers[0], offsets_of) if question.answers else None
        result = False
        begins = range(0, max(1, len(text) - room + stride), stride)
        window_of = _most_context(begins, room, len(text))
        for window, first in enumerate(begins):
            part = slice(first, first + room)
            before = len(question_ids) + controls - 1 - first  # from a token's number to its place
            whole = answer is not None and first <= answer[0] and answer[1] < first + room
            result |= whole
            spans.append((answer[0] + before, answer[1] + before) if answer and whole else (0, 0))
            packed.append(pack(question_ids, text[part], tokenizer.special, length))
            text_at = slice(before + first, before + first + len(text[part]))
            positioned, best = torch.zeros(length, 2, dtype=torch.int64), torch.zeros(length).bool()
            positioned[text_at] = torch.tensor(offsets_of[part])
            best[text_at] = window_of[part] == window
            offsets.append(positioned)
            most_context.append(best)
            numbers.append(number)
        if answer:
            lost.append(int(not result))
            learnt = question.passage[offsets_of[answer[0]][0] : offsets_of[answer[1]][1]].strip()
            if len(learnt) > len(exact := question.answers[0].text.strip()):
                wider.append(f"{exact!r:.60} of question {question.id} is learnt as {learnt!r:.60}")
    if wider:
        warnings.warn(
            f"{len(wider)} of {len(lost)} answers begin or end inside a token, and a model marks "
            f"whole ones: {wider[0]}. Exact match will count these as wrong.",
            stacklevel=2,
        )
    sequences, stands = to_sequences(packed), torch.stack(offsets)
    starts, ends = torch.tensor(spans).unbind(1)
    # [SEP] after the window belongs to segment 1, too; it stands nowhere in the passage.
    allowed = (sequences.token_type_ids == 1) & (stands[..., 1] > 0)
    return QuestionSequences(
        sequences, starts, ends, allowed, torch.stack(most_context), stands, torch.tensor(numbers),
        tuple(questions), _cut(lost, length, "answers"),
    )  # fmt: skip


def _most_context(begins: Sequence[int], room: int, tokens: int) -> Tensor:
    """(tokens,): the window, counted from 0, in which each token of a passage has most context: the
    fewer of the tokens to its left and to its right, and a hundredth of the window's length, as in
    run_squad.py; of equal windows the first."""
    at, first = np.arange(tokens), np.array(begins)[:, None]  # (windows, 1)
    last = np.minimum(first + room, tokens) - 1
    context = np.minimum(at - first, last - at) + 0.01 * (last - first + 1)
    inside = (first <= at) & (at <= last)
    return torch.from_numpy(np.where(inside, context, -np.inf).argmax(axis=0))


def _check_room(
    question: Question,
    question_ids: list[int],
    text: list[int],
    room: int,
    length: int,
    stride: int,
) -> None:
    if not question_ids or not text:
        raise ValueError(
            f"{question.id}: the {'passage' if question_ids else 'question'} has no token; "
            "expected words."
        )
    if room < 1:
        raise ValueError(
            f"length={length} was given; {question.id} has a question of {len(question_ids)} "
            "tokens: with [CLS] and the separators that leaves no room for its passage. Expected "
            f"at least {length - room + 1}."
        )
    if not isinstance(stride, int) or not 1 <= stride <= room:
        raise ValueError(
            f"stride={stride!r} was given; {question.id} leaves room for {room} tokens of its "
            f"passage. Expected 1 to {room}: a greater stride leaves gaps between the windows."
        )


def _tokens_of(answer: Answer, offsets_of: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The first and the last token that holds a character of the answer."""
    end = answer.start + len(answer.text)
    inside = [
        n for n, (first, last) in enumerate(offsets_of) if first < end and last > answer.start
    ]
    if not inside:
        raise ValueError(f"the answer {answer.text!r} has no token; expected words.")
    return inside[0], inside[-1]


# ---------------------------------------------------------------- small parts


def _cut(left_out: Sequence[int], length: int, what: str) -> Cut:
    return Cut(sum(n > 0 for n in left_out), len(left_out), sum(left_out), length, what)


def _names_of(labels: Sequence[str]) -> list[str]:
    """The labels in alphabetical order, each once."""
    names, alike = sorted(set(labels)), dict[str | float, str]()
    for name in names:
        form: str | float = normalize("NFKC", name).strip().casefold()
        with suppress(ValueError):
            form = float(form)
        if isinstance(form, float) and not isfinite(form):
            raise ValueError(f"the label {name!r} was given, which is no finite number; expected "
                             "a class. Give names=[...] if it is meant.")  # fmt: skip
        if (other := alike.setdefault(form, name)) != name:
            raise ValueError(
                f"the labels {other!r} and {name!r} were given, which differ in white space, "
                "capitals or the form of a letter or number alone. Write them alike, or give "
                "names=[...] if both are meant."
            )
    return names


def _tag_names(tags: set[str]) -> list[str]:
    """O, then for each kind of entity both its tags, also where only one of them occurs."""
    kinds = sorted(tag[2:] for tag in tags if tag[:2] == "B-")
    marked = {f"{mark}-{kind}" for kind in kinds for mark in "BI"}
    first = [name for name in ("O",) if name in tags or kinds]
    return [
        *first,
        *(f"{m}-{kind}" for kind in kinds for m in "BI"),
        *sorted(tags - marked - {"O"}),
    ]


def _numbers_of(names: Sequence[str]) -> dict[str, int]:
    number = {name: n for n, name in enumerate(names)}
    if len(number) != len(names):
        raise ValueError(f"the names {_listed(names)} were given; expected each of them once.")
    return number


def _listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
