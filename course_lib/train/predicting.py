"""Raw text in, raw answers out: a fine-tuned model's classes, entities and answers."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from course_lib.checkpoints import Pretrained
from course_lib.config import check_size
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.objectives.spans import best_spans
from course_lib.text.english import Question, TaggedSentence
from course_lib.text.features import (
    Tokenizer,
    plain_sequences,
    question_sequences,
    tagged_sequences,
)
from course_lib.text.readers import from_bioes
from course_lib.text.tasks import LabelledSequences
from course_lib.text.vocabulary import check_each, check_text

from .finetuning import outputs_on
from .span_metrics import bio_spans

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Prediction:
    """A text's most probable class, its probability, and those of all classes by name."""

    label: str
    score: float
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Entity:
    """A labelled stretch of a text: text[start:end], in characters; score: the mean probability of
    its words' tags."""

    label: str
    start: int
    end: int
    text: str
    score: float


@dataclass(frozen=True)
class AnswerSpan:
    """A stretch of a passage, passage[start:end] in characters, or "" at 0 for no answer; score:
    the probability of its first token as start times that of its last as end."""

    text: str
    start: int
    end: int
    score: float


def predict(
    model: Pretrained | BertForClassification,
    texts: Sequence[str],
    second: Sequence[str] | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    length: int | None = None,
) -> list[Prediction]:
    """The class of each text, or of each pair of a text and a second one. Where a checkpoint's
    problem_type is multi_label_classification, each label has its own probability (a sigmoid).

    model: a fine-tuned classifier, as `finetune` returns it, with its tokenizer, or as
    `load_pretrained` reads it, with its own. length: how many tokens a text may have, up to 512 if
    the model and its tokenizer's files allow it; of longer ones the end is cut, with a warning that
    counts them. Raises TypeError for another model and for what are not several texts; ValueError
    without a tokenizer, for no texts and for a text without a token."""
    classifier, tokenizer = _ready(model, BertForClassification, tokenizer, "text_sequences")
    problem = classifier.kept.get("problem_type")
    several = problem == "multi_label_classification"
    if problem == "regression" or (len(classifier.names) < 2 and not several):
        raise ValueError(
            "a model of a number instead of classes was given; expected at least two classes. "
            "predicted_values gives its numbers."
        )
    length = _length(classifier, tokenizer, length)
    sequences, cut = plain_sequences(texts, tokenizer, length, second)
    if cut.texts:
        warnings.warn(str(cut), stacklevel=2)
    unknown = torch.zeros(len(sequences), dtype=torch.long)
    task = LabelledSequences(sequences, unknown, classifier.names, cut)
    (logits,) = outputs_on(classifier, task, ["logits"])
    result = []
    logits = logits.double()
    for row in (logits.sigmoid() if several else logits.softmax(-1)).tolist():
        by_name = dict(zip(classifier.names, row, strict=True))
        best = max(by_name, key=by_name.__getitem__)
        result.append(Prediction(best, by_name[best], by_name))
    return result


def entities(
    model: Pretrained | BertForTokenClassification,
    texts: Sequence[str] | Sequence[TaggedSentence],
    *,
    tokenizer: Tokenizer | None = None,
    length: int | None = None,
) -> list[list[Entity]]:
    """The entities of each text, in their order; with a model of tags without B- and I-, such as
    parts of speech, each word whose tag is not O.

    texts: texts, cut into words at white space and at punctuation, or TaggedSentences, whose own
    words are taken. One word are "Smith-Jones", "U.S.A", "O'Brien" and "1,000"; a final 's is one
    of its own, as in CoNLL files. A word has the tag of its first piece. A longer text is read in
    parts of `length` tokens (up to 512), one after the other; at their borders an entity ends.
    model, tokenizer, errors: as in `predict`."""
    tagger, tokenizer = _ready(model, BertForTokenClassification, tokenizer, "tagged_sequences")
    length = _length(tagger, tokenizer, length)
    parts: list[TaggedSentence] = []
    begins: list[tuple[int, int]] = []  # which text a part is of, and where it begins there
    texts = check_each(texts, str, TaggedSentence, one="text")
    if not texts:
        raise ValueError("No texts were given; expected at least one.")
    for number, text in enumerate(texts):
        sentence = text if isinstance(text, TaggedSentence) else _split(text, tokenizer, number)
        for part, start in _parts(sentence, tokenizer, length):
            parts.append(part)
            begins.append((number, start))
    task = tagged_sequences(parts, None, tokenizer, length)
    (logits,) = outputs_on(tagger, task, ["logits"])
    result: list[list[Entity]] = [[] for _ in texts]
    for n, (part, (number, start)) in enumerate(zip(parts, begins, strict=True)):
        probabilities = logits[n, list(task.first[n])].double().softmax(-1)  # (words, tags)
        for entity in _entities_of(part, probabilities, tagger.names):
            moved = replace(entity, start=start + entity.start, end=start + entity.end)
            result[number].append(moved)
    return result


def answer(
    model: Pretrained | BertForQuestionAnswering,
    question: str,
    passage: str,
    *,
    tokenizer: Tokenizer | None = None,
    length: int | None = None,
    longest: int = 30,
    threshold: float = 0.0,
) -> AnswerSpan:
    """The stretch of the passage that answers the question best, "" where none does.

    longest: the most tokens that it may have. threshold: it is the answer where its score, the sum
    of two logits, is above that of no answer by more than so much; float("-inf") always gives it. A
    passage that is too long for `length` tokens (up to 384) is read in windows that overlap by
    half. model, tokenizer, errors: as in `predict`."""
    reader, tokenizer = _ready(model, BertForQuestionAnswering, tokenizer, "question_sequences")
    for text in (question, passage):
        check_text(text)
    length = _length(reader, tokenizer, length, 384)
    room = length - len(tokenizer.encode(question)) - 2 - tokenizer.special.separators
    item = Question("the question", question, passage)
    task = question_sequences([item], tokenizer, length, max(1, room // 2))
    start, end = outputs_on(reader, task, ["start_logits", "end_logits"])
    spans = best_spans(start, end, task.allowed, longest)
    window, null = int(spans.score.argmax()), int(spans.null_score.argmin())
    if not spans.score[window] - spans.null_score[null] > threshold:
        return AnswerSpan("", 0, 0, _both(start, end, task.allowed, null, 0, 0))
    first, last = int(spans.start[window]), int(spans.end[window])
    span = task.span(window, first, last)
    score = _both(start, end, task.allowed, window, first, last)
    return AnswerSpan(span.text, span.start, span.start + len(span.text), score)


# ---------------------------------------------------------------- words and parts

# Each of these is a word of its own: they are written without spaces.
_IDEOGRAPH = (
    r"[\u2e80-\u2fff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
JOINING = "-.'’&_·"  # inside a word
POSSESSIVE = re.compile(r"(.+)(['’]s)", re.IGNORECASE)


def _split(text: str, tokenizer: Tokenizer, number: int) -> TaggedSentence:
    """A text and its words, those without a token left out."""
    words = [word for word in _words(text) if tokenizer.encode(word)]
    if not words:
        raise ValueError(f"text {number}, {text!r:.60}, has no token; expected words in it.")
    return TaggedSentence(f"text {number}", text, tuple(words))


def _words(text: str) -> Iterator[str]:
    for part in re.findall(rf"{_IDEOGRAPH}|(?:(?!{_IDEOGRAPH})\S)+", text):
        inner = [n for n, c in enumerate(part) if unicodedata.category(c)[0] not in "PS"]
        first, last = (inner[0], inner[-1] + 1) if inner else (len(part), len(part))
        yield from part[:first]
        for word in _pieces(part[first:last]):
            yield from (match.groups() if (match := POSSESSIVE.fullmatch(word)) else [word])
        yield from part[last:]


def _pieces(part: str) -> Iterator[str]:
    """A word that punctuation neither begins nor ends, cut at what stands inside but for JOINING,
    and for a comma or colon between two digits."""
    begin = 0
    for n, c in enumerate(part):
        between_digits = c in ",:" and part[n - 1].isdigit() and part[n + 1].isdigit()
        if unicodedata.category(c)[0] not in "PS" or c in JOINING or between_digits:
            continue
        if begin < n:
            yield part[begin:n]
        yield c
        begin = n + 1
    if begin < len(part):
        yield part[begin:]


def _parts(
    sentence: TaggedSentence, tokenizer: Tokenizer, length: int
) -> Iterator[tuple[TaggedSentence, int]]:
    """The sentence in parts whose words fit into `length` tokens, each with where it begins."""
    done = 0
    while done < len(sentence.words):
        begin = sentence.offsets[done][0]
        rest = TaggedSentence(sentence.id, sentence.text[begin:], sentence.words[done:])
        fits = len(tagged_sequences([rest], None, tokenizer, length).first[0])
        end = rest.offsets[fits - 1][1]
        yield TaggedSentence(rest.id, rest.text[:end], rest.words[:fits]), begin
        done += fits


def _entities_of(
    part: TaggedSentence, probabilities: Tensor, names: Sequence[str]
) -> Iterator[Entity]:
    """probabilities: (N, tags), of each word's tags."""
    scores, numbers = probabilities.max(-1)
    tags = [names[n] for n in numbers.tolist()]
    marked = {name[:2] for name in names if name != "O"}
    if marked <= {"B-", "I-", "S-", "E-", "U-", "L-"}:
        spans = sorted(bio_spans(from_bioes(tags)), key=lambda span: span[1])
    else:
        spans = [(tag, n, n) for n, tag in enumerate(tags) if tag != "O"]
    for label, first, last in spans:
        start, end = part.offsets[first][0], part.offsets[last][1]
        score = scores[first : last + 1].mean().item()
        yield Entity(label, start, end, part.text[start:end], score)


def _both(start: Tensor, end: Tensor, allowed: Tensor, window: int, first: int, last: int) -> float:
    """P(start = first) · P(end = last) among the passage's tokens of a window and [CLS]."""
    there = allowed[window].clone()
    there[0] = True
    begins, ends = (
        x[window].double().masked_fill(~there, -torch.inf).softmax(-1) for x in (start, end)
    )
    return (begins[first] * ends[last]).item()


# ---------------------------------------------------------------- what was given


def _ready(
    model: Any, kind: type[Model], tokenizer: Tokenizer | None, maker: str
) -> tuple[Model, Tokenizer]:
    """The model and its tokenizer; TypeError for another model, ValueError without a tokenizer."""
    error = None
    if isinstance(model, Pretrained):
        tokenizer, error = tokenizer or model.tokenizer, model.tokenizer_error
        model = "checkpoint without a head" if model.model is None else model.model
    if not isinstance(model, kind):
        name = model if isinstance(model, str) else type(model).__name__
        raise TypeError(
            f"a {name} was given; expected a {kind.__name__}, as "
            f"finetune(load_pretrained(...), {maker}(...), epochs=3) returns it, or "
            "load_pretrained(folder) of one that was saved."
        )
    if tokenizer is None:
        raise ValueError(
            f"no tokenizer was given{f' ({error})' if error else ''}; expected the one that the "
            "model was fine-tuned with: tokenizer=load_pretrained(...).tokenizer."
        )
    return model, tokenizer


def _length(model: Any, tokenizer: Tokenizer, length: int | None, most: int = 512) -> int:
    longest: int = model.config.longest_text
    if length is None:
        return min(longest, most, getattr(tokenizer, "model_max_length", most))
    check_size("length", length, 3)
    if length > longest:
        raise ValueError(f"length={length} was given; the model reads up to {longest} tokens.")
    return length
