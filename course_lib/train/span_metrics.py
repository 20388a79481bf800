"""How well spans are found: tagged entities (seqeval's F1), and answers (SQuAD's EM and F1).

All scores lie in 0 to 1; papers print them times 100.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

import torch

from course_lib.objectives.spans import choose_threshold

from .task_metrics import same_length

Span = tuple[str, int, int]  # kind, first word, last word, counted from 0

# ---------------------------------------------------------------- entities


def bio_spans(tags: Sequence[str], strict: bool = False) -> set[Span]:
    """The entities that BIO tags ("O", "B-PER", "I-PER") of one sentence say: (kind, first, last).

    A span goes on while I- of its kind follows. By default an I- that continues nothing begins a
    span, as CoNLL's scorer and seqeval read it; strict: only B- begins one, and such an I- is as O.
    ValueError for a tag of another form."""
    spans, kind, first = set(), "", 0  # kind: of the open span, "" for none
    for place, tag in enumerate([*tags, "O"]):
        mark, here = _mark_and_kind(tag)
        if mark == "I" and here == kind:
            continue
        if kind:
            spans.add((kind, first, place - 1))
        begins = mark == "B" or (mark == "I" and not strict)
        kind, first = (here, place) if begins else ("", 0)
    return spans


def _mark_and_kind(tag: str) -> tuple[str, str]:
    mark, _, kind = str(tag).partition("-")
    if tag != "O" and (mark not in ("B", "I") or not kind):
        raise ValueError(
            f"the tag {tag!r} was given; expected O, B-<kind> for the first word of an entity, or "
            "I-<kind> for its other words, such as B-PER."
        )
    return mark, kind


@dataclass(frozen=True)
class SpanScores:
    """Of the spans that were said, `precision` were right; of the true ones, `recall` were found.

    f1: the harmonic mean of both. by_kind: the same for each kind of entity."""

    precision: float
    recall: float
    f1: float
    by_kind: Mapping[str, SpanScores] = field(default_factory=dict)


def span_scores(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], strict: bool = False
) -> SpanScores:
    """Entity scores of many tagged sentences; a span counts if kind, first and last word agree.

    Micro-averaged, as for CoNLL-2003: spans of all sentences in one heap. What is 0/0, precision
    without predicted spans or recall without true ones, is 0.0, as in seqeval. ValueError for no
    sentences, for sentences or tags not as many on both sides, and for tags that are not BIO."""
    _check_sentences(true, predicted)
    truly, predictions = (
        {(n, *span) for n, tags in enumerate(side) for span in bio_spans(tags, strict)}
        for side in (true, predicted)
    )
    types = sorted({kind for _, kind, *_ in truly | predictions})
    by_kind = {
        name: SpanScores(
            *_rates(*({s for s in side if s[1] == name} for side in (truly, predictions)))
        )
        for name in types
    }
    return SpanScores(*_rates(truly, predictions), by_kind)


def _rates(truly: set, predicted: set) -> tuple[float, float, float]:
    """Precision, recall and F1 of two sets."""
    hits = len(truly & predicted)
    precision, recall = hits / max(len(predicted), 1), hits / max(len(truly), 1)
    return precision, recall, 2 * hits / max(len(truly) + len(predicted), 1)


def _check_sentences(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> None:
    if true is None or not len(true):
        raise ValueError("No sentences were given; expected at least one, true and predicted.")
    for n, (a, b) in enumerate(zip(*same_length(true, predicted), strict=True)):
        if isinstance(a, str) or isinstance(b, str):
            raise ValueError(
                f"the tag {a!r} was given where a sentence is expected: a list of tags for each "
                "sentence, [[…], […]]."
            )
        if len(a) != len(b):
            raise ValueError(
                f"sentence {n}: {len(a)} true and {len(b)} predicted tags were given; expected one "
                "a word on both sides."
            )


# ---------------------------------------------------------------- answers

VERSIONS = ("1.1", "2.0")  # of SQuAD
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """What SQuAD compares: lower case, without punctuation (ASCII), articles and extra spaces.

    Punctuation goes first and leaves no gap: "U.S.-led" becomes "usled". ValueError for no text."""
    if not isinstance(text, str):
        raise ValueError(f'{text!r:.60} was given; expected an answer\'s text, "" for none.')
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(re.sub(r"\b(?:an?|the)\b", " ", bare).split())


def exact_match(predicted: str, answers: Sequence[str], version: str = "2.0") -> float:
    """1.0 if the answer is one of the gold answers after normalise_answer, else 0.0.

    version: whose rule, see `squad_scores`, which raises the same errors. In 2.0 the right answer
    is the empty text where there are no gold answers."""
    return float(normalise_answer(predicted) in _gold(answers, version))


def answer_f1(predicted: str, answers: Sequence[str], version: str = "2.0") -> float:
    """F1 of the words shared with a gold answer, each as often as both have it; the best counts.

    Where one of the two has no words left: 0.0, and in 2.0 1.0 if the other has none either.
    version: see `squad_scores`, which raises the same errors."""
    predictions, golds = Counter(normalise_answer(predicted).split()), _gold(answers, version)
    if version == "1.1" and not predictions:
        return 0.0
    return max(_words_f1(predictions, Counter(gold.split())) for gold in golds)


def _gold(answers: Sequence[str], version: str) -> list[str]:
    """The gold answers, normalised; in 2.0 those without words are none."""
    if isinstance(answers, str | Mapping):
        text = answers if isinstance(answers, str) else "its texts"
        raise ValueError(f"{answers!r} was given; expected a list of gold answers, [{text!r}].")
    if version not in VERSIONS:
        raise ValueError(f"version={version!r} was given; expected {' or '.join(VERSIONS)}.")
    golds = list(map(normalise_answer, answers))
    if version == "2.0":
        return [gold for gold in golds if gold] or [""]
    if not golds:
        raise ValueError(
            "A question without a gold answer was given; SQuAD 1.1 has one for each. Where the "
            'text may have none, score by version="2.0".'
        )
    return golds


def _words_f1(predicted: Counter[str], gold: Counter[str]) -> float:
    if not predicted or not gold:
        return float(predicted == gold)
    return 2 * (predicted & gold).total() / (predicted.total() + gold.total())


@dataclass(frozen=True)
class SquadScores:
    """Means over `count` questions. has_answer, no_answer: the parts with and without an answer in
    the text, None where there are no such questions."""

    exact: float
    f1: float
    count: int
    has_answer: SquadScores | None = None
    no_answer: SquadScores | None = None


def squad_scores(
    predicted: Mapping[str, str], questions: Mapping[str, Sequence[str]], version: str = "2.0"
) -> SquadScores:
    """SQuAD's exact match and F1, as the official scripts of both versions count them.

    predicted: question id -> the answer given, "" for "the text does not say". questions: question
    id -> its gold answers, [] where the text has none. version: "1.1" or "2.0"; they differ where
    normalise_answer leaves no words. In 2.0 such a gold answer is none, and saying nothing is right
    if there is no other. In 1.1 every question has an answer, one without words is met by one
    without words (exact match 1), and their F1 is 0: no word is shared.
    ValueError for no questions, ids that are not the same on both sides, answers that are no texts,
    another version, and in 1.1 for a question without gold answers."""
    if not questions or predicted.keys() != questions.keys():
        missing = sorted(questions.keys() - predicted.keys(), key=repr)
        foreign = sorted(predicted.keys() - questions.keys(), key=repr)
        raise ValueError(
            f"{len(questions)} questions and {len(predicted)} answers were given, {len(missing)} "
            f"of the questions without one {missing[:3]}, {len(foreign)} of the answers to "
            f"no question {foreign[:3]}; expected an answer to each of at least one "
            'question, "" for none.'
        )
    scores = {
        name: [score(predicted[name], answers, version) for score in (exact_match, answer_f1)]
        for name, answers in questions.items()
    }
    answerable = [scores[name] for name, answers in questions.items() if len(answers)]
    silent = [scores[name] for name, answers in questions.items() if not len(answers)]
    parts = (SquadScores(*_squad_means(part)) if part else None for part in (answerable, silent))
    return SquadScores(*_squad_means(list(scores.values())), *parts)


def _squad_means(scores: Sequence[Sequence[float]]) -> tuple[float, float, int]:
    exact, f1 = map(fmean, zip(*scores, strict=True))
    return exact, f1, len(scores)


class Candidate(NamedTuple):
    """The best span found for a question: its text, its score less the null score, and the gold
    answers ([] for none)."""

    text: str
    margin: float
    answers: Sequence[str]


def choose_null_threshold(candidates: Iterable[Candidate]) -> float:
    """The τ of SQuAD 2.0 (Devlin et al. 2018, section 4.3): answer where margin > τ, else say "".

    The one with the best F1 over the candidates, as objectives.spans.choose_threshold finds it: of
    equally good ones the highest, which answers least. The candidates must be of validation data: τ
    is fitted to them. ValueError for no candidates, and for a margin that is no number."""
    result = list(candidates)
    if not result or not all(math.isfinite(one.margin) for one in result):
        raise ValueError(
            f"{len(result)} candidates were given, margins {[one.margin for one in result[:4]]} …; "
            "expected one for each validation question, its margin a number."
        )
    margins, predictions, silent = zip(
        *((one.margin, answer_f1(one.text, one.answers), answer_f1("", one.answers))
          for one in result), strict=True
    )  # fmt: skip
    return choose_threshold(
        *(torch.tensor(x, dtype=torch.float64) for x in (margins, predictions, silent))
    )
