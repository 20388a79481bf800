"""The numbers in the quiz and the questions for review of lecture 05, computed or read again."""

from __future__ import annotations

import torch
from quiz_parts import Quiz

from course_lib.config import encoder_flops, published
from course_lib.encoder import count_parameters
from course_lib.family.albert import AlbertConfig, albert_encoder
from course_lib.family.bert import bert
from course_lib.lectures.lecture_05.exercises import ngrams

QUIZ = Quiz("05")
answer = QUIZ.answer


def about(words: str) -> str:
    """All that the item about this says: question, choices and why."""
    found, _ = QUIZ.item(words)
    return " ".join([found.question, *(f"{c.text} {c.why}" for c in found.choices)])


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length() -> None:
    QUIZ.check_not_given_away(by_length_at_most=0.5)


def built(family_size: str) -> int:
    with torch.device("meta"):
        if family_size == "bert":
            return count_parameters(bert("base"))
        return count_parameters(albert_encoder(published("albert", family_size, AlbertConfig)))


def test_the_factors_are_counted_right() -> None:
    said, V, E, H = about("without a bias"), 30_000, 128, 768
    both = V * E + E * H
    assert f"{both:,}" in said and f"{V * H:,}" in said and f"{E * H:,}" in said
    assert f"{V * H / 1e6:.2f} million" in said and f"{both / 1e6:.2f} million" in said
    assert f"{V * E / 1e6:.2f} million" in said and f"{1 - both / (V * H):.0%} less" in said


def test_the_models_are_counted_right() -> None:
    small, large = built("base"), built("bert")
    said = about("and not 12 times")
    assert f"{large:,} / {small:,} = {large / small:.1f}" in said
    c = published("albert", "base", AlbertConfig)
    tables = (c.vocab_size + c.max_positions + 2) * c.embedding_size
    projection, pooler = 128 * 768 + 768, 768 * 768 + 768
    block = small - tables - 2 * 128 - projection - pooler
    assert f"{(tables + projection) / 1e6:.1f} million" in said and f"{projection:,}" in said
    counted = answer("Count ALBERT-base")
    for number in (tables, projection, block, pooler, small, small - pooler):
        assert f"{number:,}" in counted
    assert f"{built('xxlarge'):,}" in answer("Find slips")


def test_the_flops_are_counted_right() -> None:
    flops = {
        (family, size): encoder_flops(published(family, size), 128)
        for family, size in (("bert", "base"), ("albert", "base"), ("bert", "large"),
                             ("albert", "xxlarge"))
    }  # fmt: skip
    assert flops["bert", "base"] == flops["albert", "base"]
    base = f"{flops['bert', 'base'] / 1e9:.2f} billion"
    assert base in about("a speed of 1.7×") and base in answer("faster than BERT")
    said = about("0.3× its speed")
    assert f"{flops['albert', 'xxlarge'] / 1e9:.0f} billion" in said
    assert f"{flops['bert', 'large'] / 1e9:.1f} billion" in said


def test_every_length_masks_the_same_number_of_words() -> None:
    u = (torch.arange(66_000, dtype=torch.float64) + 0.5) / 66_000
    lengths = ngrams.ngram_lengths(u, 3)
    words = torch.stack([lengths[lengths == n].sum() for n in (1, 2, 3)]) / lengths.sum()
    assert torch.allclose(words, torch.full((3,), 1 / 3), atol=1e-4)
    assert QUIZ.item("runs of three")[1].text == "1/3"


def test_differences_are_those_of_the_printed_numbers() -> None:
    said = about("Where does the loss come from")
    for value in (82.3 - 81.6, 82.3 - 79.5, 82.3 - 79.8):
        assert f"{value:.1f}" in said
    said = answer("Compare the ways")
    for value in (82.3 - 81.7, 80.1 - 79.8, 81.6 - 80.1, 82.3 - 79.8):
        assert f"{value:.1f}" in said
    distilled, teacher = 66_362_880, built("bert")
    assert f"{77.0 / 79.5:.1%}" in said and f"{distilled / teacher:.0%}" in said
