"""The quiz and the questions for review of lecture 05: their form, and the numbers they state."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from course_lib.config import encoder_flops, published
from course_lib.encoder import count_parameters
from course_lib.family.albert import AlbertConfig, albert_encoder
from course_lib.family.bert import bert
from course_lib.lectures.lecture_05.exercises import ngrams
from course_lib.teaching.exercises import quiz, review
from course_lib.teaching.quizzes import read_quiz, read_review

ITEMS = read_quiz("05")
REVIEW = read_review("05")


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"item {item.number}")
def test_every_choice_explains_itself(item: Any) -> None:
    assert item.question.endswith(("?", "?*"))
    assert sum(choice.correct for choice in item.choices) == 1  # the widget has radio buttons
    assert all(len(choice.why) >= 20 for choice in item.choices)
    assert len({choice.why for choice in item.choices}) == len(item.choices)


def test_the_quiz_is_long_enough_and_cannot_be_guessed() -> None:
    assert len(ITEMS) >= 12
    places = [[choice.correct for choice in item.choices].index(True) for item in ITEMS]
    assert set(places) == {0, 1, 2} and max(map(places.count, set(places))) < 0.5 * len(ITEMS)
    longest = [max(item.choices, key=lambda choice: len(choice.text)).correct for item in ITEMS]
    assert sum(longest) < 0.7 * len(ITEMS)


def test_there_are_questions_for_review_with_answers() -> None:
    assert 10 <= len(REVIEW) <= 14
    assert all(len(entry.answer) > 80 for entry in REVIEW)
    assert review("05")._repr_html_().count("<details>") == len(REVIEW)
    assert ITEMS[0].question in repr(quiz("05"))


def texts(found: Any) -> str:
    return " ".join([found.question] + [c.text + " " + c.why for c in getattr(found, "choices", ())]
                    + [getattr(found, "answer", "")])  # fmt: skip


def about(words: str, among: Any) -> str:
    (found,) = (entry for entry in among if words in entry.question)
    return texts(found)


def built(family_size: str) -> int:
    with torch.device("meta"):
        if family_size == "bert":
            return count_parameters(bert("base"))
        return count_parameters(albert_encoder(published("albert", family_size, AlbertConfig)))


def test_the_factors_are_counted_right() -> None:
    said, V, E, H = about("without a bias", ITEMS), 30_000, 128, 768
    both = V * E + E * H
    assert f"{both:,}" in said and f"{V * H:,}" in said and f"{E * H:,}" in said
    assert f"{V * H / 1e6:.2f} million" in said and f"{both / 1e6:.2f} million" in said
    assert f"{V * E / 1e6:.2f} million" in said and f"{1 - both / (V * H):.0%} less" in said


def test_the_models_are_counted_right() -> None:
    small, large = built("base"), built("bert")
    said = about("and not 12 times", ITEMS)
    assert f"{large:,} / {small:,} = {large / small:.1f}" in said
    c = published("albert", "base", AlbertConfig)
    tables = (c.vocab_size + c.max_positions + 2) * c.embedding_size
    projection, pooler = 128 * 768 + 768, 768 * 768 + 768
    block = small - tables - 2 * 128 - projection - pooler
    assert f"{(tables + projection) / 1e6:.1f} million" in said and f"{projection:,}" in said
    answer = about("Count ALBERT-base", REVIEW)
    for number in (tables, projection, block, pooler, small, small - pooler):
        assert f"{number:,}" in answer
    assert f"{built('xxlarge'):,}" in about("Find slips", REVIEW)


def test_the_flops_are_counted_right() -> None:
    flops = {
        (family, size): encoder_flops(published(family, size), 128)
        for family, size in (("bert", "base"), ("albert", "base"), ("bert", "large"),
                             ("albert", "xxlarge"))
    }  # fmt: skip
    assert flops["bert", "base"] == flops["albert", "base"]
    base = f"{flops['bert', 'base'] / 1e9:.2f} billion"
    assert base in about("a speed of 1.7×", ITEMS) and base in about("faster than BERT", REVIEW)
    said = about("0.3× its speed", ITEMS)
    assert f"{flops['albert', 'xxlarge'] / 1e9:.0f} billion" in said
    assert f"{flops['bert', 'large'] / 1e9:.1f} billion" in said


def test_every_length_masks_the_same_number_of_words() -> None:
    u = (torch.arange(66_000, dtype=torch.float64) + 0.5) / 66_000
    lengths = ngrams.ngram_lengths(u, 3)
    words = torch.stack([lengths[lengths == n].sum() for n in (1, 2, 3)]) / lengths.sum()
    assert torch.allclose(words, torch.full((3,), 1 / 3), atol=1e-4)
    right = [c.text for c in ITEMS[9].choices if c.correct]
    assert right == ["1/3"] and "runs of three" in ITEMS[9].question


def test_differences_are_those_of_the_printed_numbers() -> None:
    said = about("Where does the loss come from", ITEMS)
    for value in (82.3 - 81.6, 82.3 - 79.5, 82.3 - 79.8):
        assert f"{value:.1f}" in said
    said = about("Compare the ways", REVIEW)
    for value in (82.3 - 81.7, 80.1 - 79.8, 81.6 - 80.1, 82.3 - 79.8):
        assert f"{value:.1f}" in said
    distilled, teacher = 66_362_880, built("bert")
    assert f"{77.0 / 79.5:.1%}" in said and f"{distilled / teacher:.0%}" in said
