"""What the quiz and the questions for review of lecture 02 say, against the code."""

from __future__ import annotations

import pytest
from quiz_parts import Quiz

from course_lib.kernels.masking import count_to_predict
from course_lib.lectures.lecture_02.numbers import TOY_VOCAB, counts
from course_lib.text.wordpiece import longest_match

QUIZ = Quiz("02")


@pytest.mark.parametrize(
    ("vocab", "word", "pieces"),
    [
        (("play", "##ful", "##fully", "##ly"), "playfully", ["play", "##fully"]),
        (TOY_VOCAB, "beehive", None),  # the deck calls it unknown
    ],
)
def test_words_are_split_by_the_rule(vocab, word, pieces):
    assert longest_match(word, set(vocab)) == pieces


def test_the_mixture_is_counted_from_real_tokens():
    entry, right = QUIZ.item("how many become [MASK]")
    assert "1,000 real tokens" in entry.question and "special" not in entry.question
    assert right.text.startswith("120 ") and "150 are" in right.text
    assert round(0.15 * 1000) == 150 and round(0.8 * 150) == 120


def test_the_sums_in_the_answers_are_right():
    _, right = QUIZ.item("What is BERT's loss?")
    assert float(right.text) == pytest.approx(6 / 3 + 0.6 / 2) and pytest.approx(1.32) == 6.6 / 5
    assert count_to_predict(30, 0.15) == 4
    base = counts("base")
    assert base["blocks"] > 0.75 * base["encoder"]
    assert base["feed-forward"] == pytest.approx(2 / 3 * base["block"], rel=0.01)
    assert base["embedding matrix"] == pytest.approx(base["encoder"] / 5, rel=0.1)


def test_the_groups_add_up_to_what_the_answer_says():
    """Attention, feed-forward and two LayerNorms are a block; twelve of them are all blocks."""
    base = counts("base")
    assert base["attention"] == 4 * (768**2 + 768)
    assert base["feed-forward"] == 2 * 768 * 3072 + 3072 + 768
    assert base["attention"] + base["feed-forward"] + 4 * 768 == base["block"]
    assert 12 * base["block"] == base["blocks"]


def test_chips_are_not_taken_for_cloud_tpus():
    answer = QUIZ.answer("at what cost")
    assert "4 Cloud TPUs (16 chips)" in answer and "16 Cloud TPUs (64 chips)" in answer
