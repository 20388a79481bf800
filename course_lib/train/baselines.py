"""What a model must beat: rules and classifiers that see which words stand in a text, or how many,
but not their order.

`python -m course_lib.train.baselines` prints them for the course's English texts.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from course_lib.config import check_choice
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.text import english
from course_lib.text.english import LabelledText, Pair, Question, TaggedSentence
from course_lib.text.vocabulary import check_text

from .span_metrics import SquadScores, bio_spans, span_scores, squad_scores
from .task_metrics import accuracy

PAIR_FEATURES = ("shared", "ordered", "lengths")


def bag_of_words_accuracy(
    train: PackedSequences,
    heldout: PackedSequences,
    special: SpecialIds,
    *,
    kind: str = "shared",
    without: Sequence[int] = (),
) -> float:
    """Accuracy on held-out pairs of a bag-of-words baseline: a logistic regression over words.

    kind: its features. "shared": for each word, whether it stands in both segments, and how many
    words do; the same when the segments are swapped. "ordered": for each word +1 if it stands in
    the first segment only, −1 if in the second only; what they share is not seen. "lengths": how
    many tokens each segment has, their sum and their difference, and no word.
    without: ids of words that are not seen either.
    """
    from sklearn.linear_model import LogisticRegression

    check_choice("kind", kind, PAIR_FEATURES)
    assert train.next_sentence_label is not None and heldout.next_sentence_label is not None
    # To the optimum: stopped earlier, it ends elsewhere on another processor.
    classifier = LogisticRegression(max_iter=1_000, tol=1e-7)
    unseen = [*special.never_masked, *without]
    classifier.fit(_features(train, special, kind, unseen), train.next_sentence_label.numpy())
    features = _features(heldout, special, kind, unseen)
    return float(classifier.score(features, heldout.next_sentence_label.numpy()))


def _features(
    sequences: PackedSequences, special: SpecialIds, kind: str, unseen: Sequence[int]
) -> Any:
    from scipy.sparse import csr_matrix, hstack

    ids, types = sequences.input_ids.numpy(), sequences.token_type_ids.numpy()
    words = sequences.attention_mask.numpy().astype(bool) & ~np.isin(ids, unseen)
    if kind == "lengths":
        a, b = ((words & (types == segment)).sum(axis=1) for segment in (0, 1))
        length = ids.shape[1]
        each = [np.eye(2 * length + 1)[number] for number in (a, b, a + b, a - b + length)]
        return csr_matrix(np.hstack(each))
    bags = []
    for segment in (0, 1):
        row, position = np.nonzero(words & (types == segment))
        bag = csr_matrix(
            (np.ones(len(row)), (row, ids[row, position])),
            shape=(len(sequences), special.vocab_size),
        )
        bags.append((bag > 0).astype(float))
    if kind == "ordered":
        return (bags[0] - bags[1]).tocsr()
    both = bags[0].multiply(bags[1]).tocsr()
    return hstack([both, csr_matrix(both.sum(axis=1))]).tocsr()


# ---------------------------------------------------------------- one text, or a pair

Item = LabelledText | Pair
SEES = ("nothing", "length", "words", "hypothesis")  # that a table shows
NEIGHBOURS = "neighbours"


def words_of(text: str) -> list[str]:
    """The words of a text: lower case, letters, digits and apostrophes."""
    check_text(text)
    return re.findall(r"[a-z0-9']+", text.lower())


def label_accuracy(train: Sequence[Item], test: Sequence[Item], sees: str) -> float:
    """Fraction of the test items whose class `predicted_labels` finds; raises its errors."""
    return accuracy([item.label for item in test], predicted_labels(train, test, sees))


def predicted_labels(
    train: Sequence[Item], test: Sequence[Item], sees: str, *, numbers: bool = False
) -> list[Any]:
    """What a simple classifier says of each test item.

    sees: "nothing" always says the commonest class of the training items. The others are logistic
    regressions: "length" knows how many words and characters each text has, "words" which words it
    holds (of a pair: which the premise, which the hypothesis, which both), "hypothesis" those of
    the hypothesis alone; "neighbours" knows the words of a single text and which stand side by
    side. numbers: the labels are numbers, and the regression is a ridge regression; "nothing" says
    their mean. Raises ValueError for no items, for "hypothesis" of single texts and
    for "neighbours" of pairs."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    if not train or not test or sees not in (*SEES, NEIGHBOURS):
        raise ValueError(
            f"{len(train)} training and {len(test)} test items and sees={sees!r} were given; "
            f"expected at least one of each, and one of {', '.join((*SEES, NEIGHBOURS))}."
        )
    labels: list[Any] = [float(item.label) if numbers else item.label for item in train]
    if sees == "nothing":
        mean_or_commonest = np.mean(labels) if numbers else Counter(labels).most_common(1)[0][0]
        return [mean_or_commonest] * len(test)
    # Logistic regression to the optimum, as above.
    regression = Ridge() if numbers else LogisticRegression(max_iter=1_000, tol=1e-7)
    model = make_pipeline(DictVectorizer(), MaxAbsScaler(), regression)
    model.fit([_features_of(item, sees) for item in train], labels)
    return model.predict([_features_of(item, sees) for item in test]).tolist()


def cross_validated(items: Sequence[Item], sees: str, folds: int = 10, seed: int = 0) -> float:
    """`label_accuracy` with every item tested once, by a classifier that learnt from the other
    folds."""
    from sklearn.model_selection import StratifiedKFold

    parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
    result = 0.0
    for rest, part in parts.split(items, [item.label for item in items]):
        tested = [items[n] for n in part]
        result += len(part) * label_accuracy([items[n] for n in rest], tested, sees)
    return result / len(items)


def _features_of(item: Item, sees: str) -> dict[str, float]:
    pair = isinstance(item, Pair)
    if sees == "hypothesis" and not pair:
        raise ValueError("sees='hypothesis' was given for single texts; expected pairs.")
    if sees == NEIGHBOURS and pair:
        raise ValueError("sees='neighbours' was given for pairs; expected single texts.")
    texts = [item.premise, item.hypothesis] if isinstance(item, Pair) else [item.text]
    if sees == "length":
        return {
            f"{what} {n}": len(part)
            for n, text in enumerate(texts)
            for what, part in (("words", words_of(text)), ("characters", text))
        }
    if sees == NEIGHBOURS:
        words = words_of(texts[0])
        return dict.fromkeys([*words, *map(" ".join, pairwise(words))], 1)
    bags = [set(words_of(text)) for text in texts]
    if sees == "hypothesis" or not pair:
        return dict.fromkeys(bags[-1], 1)
    both = bags[0] & bags[1]
    parts = zip("phb", (bags[0] - both, bags[1] - both, both), strict=True)
    result: dict[str, float] = {f"{part} {word}": 1 for part, bag in parts for word in bag}
    return result | {"shared": len(both) / max(1, len(bags[1]))}


# ---------------------------------------------------------------- a tag a word


def word_list_tags(
    train: Sequence[TaggedSentence], test: Sequence[TaggedSentence], kind: str
) -> list[list[str]]:
    """Each word gets the tag that it had most often in training (capitals do not count), an unknown
    word the commonest tag of all."""
    known: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags(kind), strict=True):
            known[word.lower()][tag] += 1
    commonest = sum(known.values(), Counter()).most_common(1)[0][0]
    likeliest = {word: tags.most_common(1)[0][0] for word, tags in known.items()}
    return [[likeliest.get(word.lower(), commonest) for word in line.words] for line in test]


def listed_names(
    train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]
) -> list[list[str]]:
    """Entity tags: the names of the training sentences, found again, the longest first."""
    names = {
        sentence.words[first : last + 1]: kind
        for sentence in train
        for kind, first, last in sorted(bio_spans(sentence.entities))
    }
    longest = max(map(len, names), default=0)
    return [_tags_of_names(sentence.words, names, longest) for sentence in test]


def _tags_of_names(
    words: tuple[str, ...], names: dict[tuple[str, ...], str], longest: int
) -> list[str]:
    tags: list[str] = []
    while (here := len(tags)) < len(words):
        sizes = range(min(longest, len(words) - here), 0, -1)
        size = next((size for size in sizes if words[here : here + size] in names), 0)
        kind = names.get(words[here : here + size], "")
        tags += [f"B-{kind}", *[f"I-{kind}"] * (size - 1)] if size else ["O"]
    return tags


# ---------------------------------------------------------------- a question about a passage

SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)|$)", re.DOTALL)


def overlap_answer(question: Question) -> str:
    """Of the sentence that shares most words with the question, the longest run of neighbouring
    words that the question does not hold. Words of few sentences of the passage count more."""
    sentences = [match[0] for match in SENTENCE.finditer(question.passage)]
    bags = [set(words_of(sentence)) for sentence in sentences]
    question_words = set(words_of(question.question))
    weight = {
        w: math.log(1 + len(bags) / (1 + sum(w in bag for bag in bags))) for w in question_words
    }
    shared = [math.fsum(weight[word] for word in bag & question_words) for bag in bags]
    best = sentences[max(range(len(bags)), key=shared.__getitem__)]
    return max(_runs(best, question_words), key=lambda run: len(run.split()), default="")


def _runs(sentence: str, never: set[str]) -> Iterator[str]:
    """Stretches of neighbouring words none of which is in `never`, without the signs around."""
    start, end = -1, -1
    for match in re.finditer(r"[\w'’-]+", sentence):
        goes_on = match[0].lower() not in never
        if start >= 0 and not (goes_on and sentence[end : match.start()].isspace()):
            yield sentence[start:end]
            start = -1
        if goes_on:
            start, end = (match.start() if start < 0 else start), match.end()
    if start >= 0:
        yield sentence[start:end]


def question_baselines(questions: Sequence[Question]) -> dict[str, SquadScores]:
    """SQuAD's scores of never answering, and of always giving the `overlap_answer`. ValueError as
    `gold_texts`."""
    gold = english.gold_texts(questions)
    overlap = {question.id: overlap_answer(question) for question in questions}
    return {
        "no answer": squad_scores(dict.fromkeys(gold, ""), gold),
        "overlap": squad_scores(overlap, gold),
    }


# ---------------------------------------------------------------- the course's English texts


Row = tuple[str, str, str, float]  # data, what is measured, baseline, its score


def english_baselines() -> list[Row]:
    """(data, what is measured, baseline, its score on the test split) for `data/english/`."""
    return [
        *_label_rows("reviews", english.reviews),
        *_label_rows("plain_reviews", english.plain_reviews),
        *_label_rows("finance", english.finance, folds=True),
        *_label_rows("messages", english.messages),
        *_label_rows("nli", english.nli_pairs, folds=True),
        *_tag_rows(english.tagged_sentences("train"), english.tagged_sentences("test")),
        *(
            ("passages", measure, name, score)
            for name, scores in question_baselines(english.questions("test")).items()
            for measure, score in (("exact match", scores.exact), ("F1", scores.f1))
        ),
    ]


def _label_rows(data: str, read: Callable[..., Sequence[Item]], folds: bool = False) -> list[Row]:
    train, test = read("train"), read("test")
    seen = SEES if isinstance(train[0], Pair) else SEES[:-1]
    rows = [(data, "accuracy", sees, label_accuracy(train, test, sees)) for sees in seen]
    tenfold = seen[1:] if folds else ()
    return rows + [
        (data, "accuracy, ten folds", sees, cross_validated(read(), sees)) for sees in tenfold
    ]


def _tag_rows(train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> list[Row]:
    truth = [tag for sentence in test for tag in sentence.pos]
    commonest = Counter(tag for sentence in train for tag in sentence.pos).most_common(1)[0][0]
    by_word = [tag for line in word_list_tags(train, test, "pos") for tag in line]
    names = [sentence.entities for sentence in test]
    entities = {
        "word list": word_list_tags(train, test, "entities"),
        "list of names": listed_names(train, test),
    }
    return [
        ("tagged", "POS accuracy", "nothing", accuracy(truth, [commonest] * len(truth))),
        ("tagged", "POS accuracy", "word list", accuracy(truth, by_word)),
        *(
            ("tagged", "entity F1", n, span_scores(names, predicted).f1)
            for n, predicted in entities.items()
        ),
    ]


if __name__ == "__main__":
    for data, measure, baseline, score in english_baselines():
        print(f"{data:9} {measure:20} {baseline:14} {score:6.1%}")
