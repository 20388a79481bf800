"""Task metrics: by hand, and against scikit-learn, scipy, seqeval and torchmetrics' SQuAD."""

from __future__ import annotations

import math
import random
import re
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import seqeval.metrics as seqeval
import torch
from scipy import stats
from seqeval.scheme import IOB2
from sklearn import metrics as sklearn
from torchmetrics.functional.text.squad import squad as torchmetrics_squad

from course_lib.train.span_metrics import (
    Candidate,
    answer_f1,
    bio_spans,
    choose_null_threshold,
    exact_match,
    normalise_answer,
    span_scores,
    squad_scores,
)
from course_lib.train.task_metrics import (
    accuracy,
    confusion,
    f1,
    macro_f1,
    matthews,
    pearson,
    spearman,
)

CASES = 300
LABEL_CASES = 100  # scikit-learn looks at its input for a long time

# ---------------------------------------------------------------- labels


def drawn_labels(seed: int) -> tuple[list[int], list[int]]:
    """Two to four classes, one to twelve texts: often a class is missing on one side."""
    rng = random.Random(seed)
    n, classes = rng.randint(1, 12), rng.randint(2, 4)
    return [rng.randrange(classes) for _ in range(n)], [rng.randrange(classes) for _ in range(n)]


@pytest.mark.parametrize("named", [False, True])
def test_label_metrics_are_scikit_learns(named: bool) -> None:
    for seed in range(LABEL_CASES):
        true, said = drawn_labels(seed)
        if named:
            true, said = ([f"class {k}" for k in side] for side in (true, said))  # type: ignore[misc]
        names = sorted({*true, *said})
        assert accuracy(true, said) == pytest.approx(sklearn.accuracy_score(true, said))
        assert macro_f1(true, said) == pytest.approx(sklearn.f1_score(true, said, average="macro"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of one class only, 0/0: 0.0, as ours
            table = sklearn.confusion_matrix(true, said, labels=names)
            assert matthews(true, said) == pytest.approx(sklearn.matthews_corrcoef(true, said))
        assert confusion(true, said, names) == table.tolist()
        turned = [row[::-1] for row in table.tolist()[::-1]]
        assert confusion(true, said, names[::-1]) == turned
        each = sklearn.f1_score(true, said, labels=names, average=None)
        assert [f1(true, said, positive=name) for name in names] == pytest.approx(each)


@pytest.mark.parametrize(
    "make",
    [torch.tensor, np.array, tuple, iter, lambda x: [*torch.tensor(x)], lambda x: [*np.array(x)]],
)
def test_tensors_and_arrays_are_read_as_lists(make: Any) -> None:
    for metric in (accuracy, f1, macro_f1, matthews, pearson, spearman):
        assert metric(make([1, 0, 1, 1]), make([1, 1, 0, 1])) == metric([1, 0, 1, 1], [1, 1, 0, 1])
    assert confusion(make([1, 0]), make([1, 1]), [0, 1]) == [[0, 1], [0, 1]]


@pytest.mark.parametrize("positive", [1, 7])
def test_of_one_class_alone_another_has_an_f1_of_zero(positive: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn.f1_score([0, 0], [0, 0], pos_label=positive)
    assert f1([0, 0], [0, 0], positive) == theirs == 0


@pytest.mark.parametrize("n", [4, 1_001, 50_001])
def test_a_perfect_prediction_correlates_by_exactly_one(n: int) -> None:
    labels = [k % 3 % 2 for k in range(n)]
    assert matthews(labels, labels) == 1
    assert matthews(labels, [1 - label for label in labels]) == -1


# ---------------------------------------------------------------- numbers


def test_correlations_are_scipys() -> None:
    for seed in range(CASES):
        rng = random.Random(seed)
        n, ties = rng.randint(2, 12), seed % 2
        draw = (lambda: float(rng.randint(0, 3))) if ties else (lambda: rng.gauss(1e3, 1e-2))  # noqa: B023
        x, y = ([draw() for _ in range(n)] for _ in range(2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of constant input, 0/0: nan, as ours
            for ours, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr)):
                want = theirs(x, y)[0]
                assert ours(x, y) == pytest.approx(want, abs=1e-9, nan_ok=True), (seed, ours)


# The same whole numbers, told by others: near to constant, near to the ends of float64, beyond it.
SCALES = {
    "1e15 more": lambda k: 1e15 + k / 4, "a bit each": lambda k: 2.0**52 + k,
    "largest": lambda k: 1e307 * k, "smallest": lambda k: 5e-324 * k,
    "both": lambda k: 1e300 + math.ulp(1e300) * k, "beyond": lambda k: 10**25 + k,
    "float32": lambda k: np.float32(0.3) + np.float32(2**-25) * k,
    "tensor": lambda k: torch.tensor(2.0**23 + k),
}  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
def test_a_correlation_does_not_depend_on_where_numbers_lie(scale: str) -> None:
    for x, y in (([0, 1, 1, 3], [2, 1, 5, 4]), ([8, 0, 3, 3, 1, 9], [7, 2, 2, 5, 2, 6])):
        for metric, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr)):
            moved = metric([SCALES[scale](k) for k in x], y)
            assert moved == pytest.approx(theirs(x, y)[0], abs=1e-12)


@pytest.mark.parametrize("n", [*range(2, 40), 997])
def test_a_perfect_order_is_exactly_one(n: int) -> None:
    order = [k / 7 for k in range(n)]
    for metric in (pearson, spearman):
        assert metric(order, order) == 1 and metric(order, [-x for x in order]) == -1
    assert spearman(order, [math.exp(x / n) for x in order]) == 1
    tied = [k // 2 for k in range(n)]
    assert n < 3 or spearman(tied, tied) == 1


# ---------------------------------------------------------------- entities


def drawn_tags(rng: random.Random) -> list[str]:
    """Any order of tags, also such as no annotator would write."""
    kinds = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "I-LOC", "B-art-film", "I-art-film", "I-art"]
    return rng.choices(kinds, k=rng.randint(1, 9))


def test_sentences_may_stand_in_an_array() -> None:
    tags = np.array([["B-PER", "I-PER", "O"], ["O", "O", "B-LOC"]])
    assert span_scores(tags, tags).f1 == 1


def test_span_scores_are_seqevals() -> None:
    for seed in range(CASES):
        rng = random.Random(seed)
        true = [drawn_tags(rng) for _ in range(rng.randint(1, 4))]
        said = [[tag if rng.random() < 0.6 else rng.choice(["O", "B-PER", "I-ORG"])
                 for tag in tags] for tags in true]  # fmt: skip
        for strict in (False, True):
            ours = span_scores(true, said, strict=strict)
            options = {"mode": "strict", "scheme": IOB2} if strict else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of no spans on one side: 0.0, as ours
                theirs = [
                    score(true, said, **options)
                    for score in (seqeval.precision_score, seqeval.recall_score, seqeval.f1_score)
                ]
                report = seqeval.classification_report(true, said, output_dict=True, **options) if (
                    ours.by_kind) else {}  # fmt: skip
            assert [ours.precision, ours.recall, ours.f1] == pytest.approx(theirs), (seed, strict)
            assert set(ours.by_kind) == {kind for kind in report if not kind.endswith(" avg")}
            for kind, one in ours.by_kind.items():
                want = [report[kind][name] for name in ("precision", "recall", "f1-score")]
                assert [one.precision, one.recall, one.f1] == pytest.approx(want), (seed, kind)


@pytest.mark.parametrize(
    ("tags", "spans", "strict"),
    [
        ("O B-PER I-PER O", {("PER", 1, 2)}, None),
        ("B-PER B-PER", {("PER", 0, 0), ("PER", 1, 1)}, None),
        ("I-PER I-PER", {("PER", 0, 1)}, set()),
        ("B-PER I-ORG", {("PER", 0, 0), ("ORG", 1, 1)}, {("PER", 0, 0)}),
        ("B-PER O I-PER", {("PER", 0, 0), ("PER", 2, 2)}, {("PER", 0, 0)}),
        ("O O", set(), None),
        ("B-WORK-OF-ART I-WORK-OF-ART", {("WORK-OF-ART", 0, 1)}, None),
    ],
)
def test_spans_of_tags(tags: str, spans: set, strict: set | None) -> None:
    assert bio_spans(tags.split()) == spans
    assert bio_spans(tags.split(), strict=True) == (spans if strict is None else strict)
    assert bio_spans([]) == set()


@pytest.mark.parametrize(
    "tag",
    [
        "PER",
        "B-",
        "I",
        "S-PER",
        "E-PER",
        "b-PER",
        "O-PER",
        "",
        "-PER",
        "-",
        "--",
        "o",
        "i-PER",
        "B_PER",
        "U-PER",
        "L-PER",
        " B-PER",
    ],
)
def test_tags_of_another_form_are_refused(tag: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"the tag {tag!r} was given; expected O, B-")):
        bio_spans(["O", tag])


# ---------------------------------------------------------------- answers

WORDS = ["the", "a", "An", "moon", "Moon!", "220", "miles", "U.S.-led", "…", "theatre", "l’a", ","]


def drawn_text(rng: random.Random) -> str:
    return "  ".join(rng.choices(WORDS, k=rng.randint(0, 5)))


def test_squad_scores_are_torchmetrics() -> None:
    """Version 2.0 too: it is 1.1 with the empty text as the one gold answer, and two parts."""
    for seed in range(CASES):
        rng = random.Random(seed)
        gold = {f"q{n}": [drawn_text(rng) + " moon" for _ in range(rng.randint(0, 3))]
                for n in range(rng.randint(1, 5))}  # fmt: skip
        said = {name: rng.choice([drawn_text(rng), *answers, ""]) for name, answers in gold.items()}
        ours = squad_scores(said, gold)
        parts = [(ours, list(gold)), (ours.has_answer, [n for n in gold if gold[n]]),
                 (ours.no_answer, [n for n in gold if not gold[n]])]  # fmt: skip
        for part, names in parts:
            assert (part is None) == (not names)
            if part is None:
                continue
            theirs = torchmetrics_squad(
                [{"id": name, "prediction_text": said[name]} for name in names],
                [{"id": name, "answers": {"text": gold[name] or [""], "answer_start": [0]}}
                 for name in names],
            )  # fmt: skip
            assert part.count == len(names)
            assert 100 * part.exact == pytest.approx(theirs["exact_match"].item(), abs=1e-4)
            assert 100 * part.f1 == pytest.approx(theirs["f1"].item(), abs=1e-4)


@pytest.mark.parametrize(
    ("version", "said", "answers", "exact", "f1"),
    [
        ("1.1", " ", [" "], 1, 0), ("2.0", " ", [" "], 1, 1),
        ("1.1", "", ["The", "moon"], 1, 0), ("2.0", "", ["The", "moon"], 0, 0),
        ("1.1", "a", ["the"], 1, 0), ("2.0", "a", ["the"], 1, 1),
        ("1.1", "moon", ["the"], 0, 0), ("2.0", "moon", ["the"], 0, 0),
        ("1.1", "the moon", ["Moon", "…"], 1, 1), ("2.0", "the moon", ["Moon", "…"], 1, 1),
        ("1.1", "", ["moon"], 0, 0), ("2.0", "", ["moon"], 0, 0),
        ("1.1", "?", ["!"], 1, 0), ("2.0", "?", ["!"], 1, 1), ("2.0", "", [], 1, 1),
    ],
)  # fmt: skip
def test_answers_without_words(
    version: str, said: str, answers: list[str], exact: int, f1: int
) -> None:
    """Values of the official scripts, evaluate-v1.1.py and evaluate-v2.0.py."""
    scores = squad_scores({"q": said}, {"q": answers}, version)
    assert (scores.exact, scores.f1) == (exact, f1)
    assert exact_match(said, answers, version) == exact and answer_f1(said, answers, version) == f1
    assert (scores.has_answer is None) == (not answers)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Moon, at  last!", "moon at last"),
        ("an apple a day", "apple day"),
        ("theatre", "theatre"),
        ("U.S.-led", "usled"),
        (" a ", ""),
        ("ÀRTICLE", "àrticle"),
    ],
)
def test_what_normalising_takes_away(text: str, normal: str) -> None:
    assert normalise_answer(text) == normal


def test_without_an_answer_only_silence_is_right() -> None:
    for score in (exact_match, answer_f1):
        assert score("", []) == 1 and score("moon", []) == 0 and score("", ["moon"]) == 0
        assert score("the", []) == 1 and score("", ["the", "moon"]) == 0


# ---------------------------------------------------------------- the null threshold


def f1_at(candidates: list[Candidate], threshold: float) -> float:
    said = {str(n): c.text if c.margin > threshold else "" for n, c in enumerate(candidates)}
    return squad_scores(said, {str(n): c.answers for n, c in enumerate(candidates)}).f1


@pytest.mark.parametrize("candidates", [[], [Candidate("x", math.nan, [])]])
def test_without_candidates_there_is_no_threshold(candidates: list[Candidate]) -> None:
    with pytest.raises(ValueError, match="expected one for each validation question"):
        choose_null_threshold(candidates)


def test_no_threshold_is_better_than_the_chosen_one() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        found = [
            Candidate(drawn_text(rng), rng.choice([rng.gauss(0, 3), 1.0]), answers)
            for answers in [[], ["moon"], ["moon 220 miles"]] * rng.randint(1, 4)
        ]
        best = choose_null_threshold(found)
        grid = [-12 + 0.5 * k for k in range(48)]
        margins = sorted(one.margin for one in found)
        grid += [(a + b) / 2 for a, b in pairwise(margins)]  # however near two are
        assert f1_at(found, best) == pytest.approx(max(f1_at(found, t) for t in grid)), seed


def answered_least(candidates: list[Candidate]) -> list[bool]:
    """As the official script goes: the surest first, and further only where that is better."""
    sure = sorted(candidates, key=lambda one: -one.margin)
    gains = [answer_f1(one.text, one.answers) - answer_f1("", one.answers) for one in sure]
    sums = [math.fsum(gains[:k]) for k in range(len(sure) + 1)]
    count = next(k for k, total in enumerate(sums) if total > max(sums) - 1e-9)
    return [one in sure[:count] for one in candidates]


def test_of_equally_good_thresholds_the_one_that_answers_least() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        margins = rng.sample(range(-20, 20), rng.randint(1, 9))
        texts, golds = ["moon", "220 miles", "moon 220"], [[], ["moon"], ["220 miles"]]
        found = [Candidate(rng.choice(texts), margin, rng.choice(golds)) for margin in margins]
        best = choose_null_threshold(found)
        assert [one.margin > best for one in found] == answered_least(found), seed


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, math.nextafter(1.0, 2)), (math.nextafter(1.0, 0), 1.0), (-1e300, 1e300), (-5e-324, 0.0)],
)
def test_a_threshold_lies_between_margins_however_near_or_far(low: float, high: float) -> None:
    silent, right, wrong = (Candidate("moon", high, []), Candidate("moon", high, ["moon"]),
                            Candidate("moon", low, []))  # fmt: skip
    assert low <= choose_null_threshold([right, wrong]) < high
    assert choose_null_threshold([right, right._replace(margin=low)]) < low
    assert choose_null_threshold([silent, wrong]) >= high


@pytest.mark.parametrize(
    ("metric", "one", "other", "message"),
    [
        (accuracy, [1, 0], [[1], [0]], "as a label; expected one name or whole number a text"),
        (matthews, torch.tensor([1, 0]), torch.zeros(2, 2), "Of logits, take the argmax first"),
        (macro_f1, [1.0, math.nan], [1.0, math.nan], "nan was given as a label"),
        (pearson, [[1.0], [2.0]], [1.0, 2.0], "expected at least two numbers each"),
        (spearman, ["1", "2"], [1.0, 2.0], "expected at least two numbers each"),
        (pearson, [1.0, None], [1.0, 2.0], "expected at least two numbers each"),
        (lambda t, p: confusion(t, p, [0, 1, 1]), [0], [1], "expected each of them once"),
        (lambda t, p: confusion(t, p, [1]), [None], [1], re.escape("labels [None] were given")),
        (lambda p, q: squad_scores(p, q, "1.0"), {"a": "x"}, {"a": ["x"]}, "expected 1.1 or 2.0"),
        (
            lambda p, q: squad_scores(p, q, "1.1"),
            {"a": ""},
            {"a": []},
            "SQuAD 1.1 has one for each",
        ),
        (squad_scores, {"a": None}, {"a": ["x"]}, "None was given; expected an answer's text"),
        (squad_scores, {"a": "x"}, {"a": {"text": ["x"]}}, "expected a list of gold answers"),
        (
            squad_scores,
            {1: "x"},
            {1: ["x"], "b": [], 2: []},
            re.escape("2 of the questions without one ['b', 2]"),
        ),
        (accuracy, [1, 0], [1], "2 true and 1 predicted were given; expected as many"),
        (matthews, [], [], "No labels were given"),
        (macro_f1, ["spam"], [1], "'spam' was given as a true label and 1 as a predicted one"),
        (f1, ["ham", "spam"], ["ham", "ham"], "positive=1 was given.*one of 'ham', 'spam'"),
        (pearson, [1.0], [1.0], "expected at least two numbers"),
        (spearman, [1.0, 2.0], [1.0, math.nan], "none of them nan"),
        (pearson, [1.0, math.inf], [1.0, 2.0], "none of them nan"),
        (pearson, [1.0, 2.0], [1.0, 2.0, 3.0], "2 true and 3 predicted"),
        (
            lambda true, said: confusion(true, said, ["yes", "no"]),
            ["yes", "no"],
            ["yes", "maybe"],
            re.escape("labels ['maybe'] were given; expected some"),
        ),
        (span_scores, [], [], "No sentences were given"),
        (span_scores, [["O"]], [["O"], ["O"]], "1 true and 2 predicted"),
        (
            span_scores,
            [["O"], ["O", "O"]],
            [["O"], ["O"]],
            "sentence 1: 2 true and 1 predicted tags",
        ),
        (span_scores, ["O", "B-PER"], ["O", "O"], "where a sentence is expected"),
        (squad_scores, {}, {}, "0 questions and 0 answers"),
        (
            squad_scores,
            {"a": "x"},
            {"a": ["x"], "b": ["y"]},
            re.escape("1 of the questions without one ['b']"),
        ),
        (
            squad_scores,
            {"a": "x", "c": ""},
            {"a": ["x"]},
            re.escape("1 of the answers to no question ['c']"),
        ),
        (squad_scores, {"a": "x"}, {"a": "x"}, re.escape("expected a list of gold answers, ['x']")),
    ],
)
def test_what_cannot_be_scored_says_why(metric: Any, one: Any, other: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metric(one, other)
