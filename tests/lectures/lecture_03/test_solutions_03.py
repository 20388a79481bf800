"""The solutions of lecture 03's exercises beside the library, their hints, and what they print."""

from __future__ import annotations

import re

import pytest

from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.lectures.lecture_03.exercises import (
    EXERCISES,
    align,
    answers,
    best,
    correlation,
    cutting,
    heads,
    spans,
)
from course_lib.objectives.sequences import SpecialIds
from course_lib.objectives.spans import best_spans
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.machinery import check_answer
from course_lib.text.english import ENTITY_TAGS, TaggedSentence
from course_lib.text.features import tagged_sequences
from course_lib.text.packing import pack_pair
from course_lib.text.wordpiece import WordPiece
from course_lib.train import span_metrics, task_metrics

BY_ID = {exercise.id: exercise for exercise in EXERCISES}


def cases_of(id):
    return [case for stage in BY_ID[id].stages for case in stage.cases(Draw(3))]


def test_the_labels_stand_where_the_librarys_rows_have_them():
    tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc", "##b", "##c"])
    words, tags = ("abc", "b", "cb"), ("B-PER", "O", "B-LOC")
    sentence = TaggedSentence("x", "abc b cb", words, ("NOUN",) * 3, tags)
    task = tagged_sequences([sentence], "entities", tokenizer, 10)
    word_ids = [None, 0, 0, 0, 1, 2, 2, None, None, None]
    numbers = [ENTITY_TAGS.index(tag) for tag in tags]
    assert align.align_labels(numbers, word_ids) == task.labels[0].tolist()


def test_the_entities_are_the_librarys():
    for (tags,) in cases_of("03.2"):
        entities = spans.entity_spans(tags)
        assert set(entities) == span_metrics.bio_spans(tags) and len({*entities}) == len(entities)


def test_the_best_span_is_the_librarys():
    for start, end, allowed, longest in cases_of("03.3"):
        theirs = best_spans(start[None], end[None], allowed[None], longest)
        assert best.best_span(start, end, allowed, longest) == (theirs.start, theirs.end)


def test_the_answers_f1_is_the_librarys():
    for predicted, gold in cases_of("03.4"):
        theirs = span_metrics.answer_f1(predicted, [gold])
        assert answers.token_f1(predicted, gold) == pytest.approx(theirs, abs=1e-12)
        assert " ".join(answers.words_of(gold)) == span_metrics.normalise_answer(gold)


def test_the_packed_pair_is_the_librarys():
    special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=100)
    for a, b, length in cases_of("03.5"):
        ids_of = {"[PAD]": 0, "[CLS]": 2, "[SEP]": 3}
        ids_of |= {token: n for n, token in enumerate([*a, *b], start=5)}
        ids = ([ids_of[token] for token in text] for text in (a, b))
        theirs = pack_pair(*ids, special, length, truncate=True)
        tokens, segments = cutting.pack_cut(a, b, length)
        assert [ids_of[token] for token in tokens] == theirs[0]
        assert segments == theirs[1]


def test_the_correlation_is_the_librarys():
    for case in cases_of("03.6"):
        theirs = task_metrics.matthews(*case)
        assert correlation.matthews(*case) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("case", "head"),
    [
        (("classify", 20, 2), lambda encoder: BertForClassification(encoder, 2)),
        (("pair", 20, 3), lambda encoder: BertForClassification(encoder, 3)),
        (("rate", 20, 6), lambda encoder: BertForClassification(encoder, 1)),
        (("tag", 20, 3), lambda encoder: BertForTokenClassification(encoder, ENTITY_TAGS)),
        (("answer", 20, None), BertForQuestionAnswering),
    ],
)
def test_the_count_is_that_of_built_models(case, head):
    encoder = bert("tiny", vocab_size=30, hidden_size=20, intermediate_size=8)
    assert count_parameters(head(encoder)) - count_parameters(encoder) == heads.new_weights(*case)


# ---------------------------------------------------------------- hints, and closing questions


def test_the_hints_with_numbers_are_right():
    hints = {id: exercise.hints[-1] for id, exercise in BY_ID.items()}
    assert str(align.align_labels([3, 0], [None, 0, 0, 1, None])) in hints["03.1"]
    assert spans.entity_spans(["I-PER", "B-PER", "I-LOC"]) == [
        ("PER", 0, 0), ("PER", 1, 1), ("LOC", 2, 2)]  # fmt: skip
    entities = spans.entity_spans(["O", "B-PER", "I-PER", "O", "B-LOC"])
    assert all(str(span) in BY_ID["03.2"].statement for span in entities) and len(entities) == 2
    assert spans.entity_spans(["B-art-film"]) == [("art-film", 0, 0)]
    assert answers.token_f1("The old, old wall", "an old wall") == pytest.approx(0.8)
    assert "0.8." in hints["03.4"]
    a, b = list("abcde"), list("xyz")
    assert [n.count(1) - 1 for _, n in (cutting.pack_cut(a, b, k) for k in (9, 8))] == [3, 2]
    assert [sum(t in a for t in cutting.pack_cut(a, b, k)[0]) for k in (9, 8)] == [3, 3]
    true, predicted = [1] * 5 + [0] * 5, [1, 1, 1, 1, 0, 1, 1, 0, 0, 0]
    assert f"= {correlation.matthews(true, predicted):.3f}" in hints["03.6"]
    counts = [heads.new_weights(*arguments) for arguments in (
        ("classify", 10, 3), ("tag", 10, 2), ("answer", 10, None))]  # fmt: skip
    assert all(f" {count}" in hints["03.7"] for count in counts)


def test_when_the_correlation_passes_the_closing_question_is_answered():
    message = check_answer(BY_ID["03.6"], correlation.matthews, 0).stages[-1].message
    lazy, honest = re.findall(r"accuracy (\S+), F1 (\S+), Matthews (\S+)\.", message)
    assert lazy[0] > honest[0] and lazy[1] > honest[1]
    assert float(lazy[2]) == 0 < 0.3 < float(honest[2])


def test_when_the_count_passes_the_fraction_is_told():
    message = check_answer(BY_ID["03.7"], heads.new_weights, 0).stages[-1].message
    whole = 109_482_240
    for count in (3 * 769, 9 * 769, 2 * 769):
        assert f"{count:,} ({count / whole:.4%})" in message
    assert f"{whole:,}" in message and f"{whole:,}" in BY_ID["03.7"].statement


# ---------------------------------------------------------------- where a mistake first shows


@pytest.mark.parametrize(
    ("id", "message", "stage"),
    [
        ("03.1", "Every piece of a word", "several pieces"),
        ("03.2", "An entity that reaches the end of the sentence is missing", "at the end"),
        ("03.2", "A B- right behind", "side by side"),
        ("03.2", "A kind that contains a hyphen", "a hyphen"),
        ("03.2", "An I- that continues nothing is dropped", "continues nothing"),
        ("03.3", "Question, special tokens", "outside the passage"),
        ("03.3", "Spans of longest + 1", "at most `longest`"),
        ("03.3", "Of several spans with the same sum you give the last", "equally good"),
        ("03.4", "This is precision", "right, wrong"),
        ("03.4", "A word that both answers have twice", "come twice"),
        ("03.4", "Punctuation stays", "punctuation"),
        ("03.4", "Two empty answers", "empty"),
        ("03.5", "The padding has segment 1", "padded"),
        ("03.5", "The hypothesis is cut", "one of the two"),
        ("03.5", "Where both texts are equally long", "both must give"),
        ("03.6", "you have NaN", "0/0"),
        ("03.7", "A grade was counted with a logit", "a pair, and a number"),
        ("03.7", "O is a tag, too", "tags"),
    ],
)
def test_a_mistake_shows_at_the_stage_that_is_about_it(id, message, stage):
    exercise = BY_ID[id]
    known = next(known for known in exercise.mistakes if message in known.say)
    for seed in range(3):
        stages = check_answer(exercise, exercise.with_mistakes(known), seed).stages
        assert stage in next(one.name for one in stages if one.passed is False)
