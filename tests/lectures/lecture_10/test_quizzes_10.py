"""The numbers in the quiz and the questions for review of lecture 10, computed or read again."""

from __future__ import annotations

import pytest
import torch
from quiz_parts import Quiz

from course_lib.config import BertConfig, published
from course_lib.family.roberta import RobertaConfig
from course_lib.family.xlm_roberta import XlmRobertaConfig
from course_lib.lectures.lecture_10.exercises import fertility, pairs, retrieval, sampling, sizes
from course_lib.objectives.masked_lm import BERT_MIX
from course_lib.objectives.sequences import SpecialIds
from course_lib.objectives.translation_lm import mask_anywhere, mix_of, translation_sequences
from course_lib.teaching.exercises.form import Draw
from course_lib.text.language_sampling import MBERT, UNIFORM, XLM_R, by_blocks, by_sentences
from course_lib.text.shared_words import shared_words, with_shared_words
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld
from course_lib.train.retrieval import retrieval as by_cosine

QUIZ = Quiz("10")
item, answer = QUIZ.item, QUIZ.answer


def of(name):
    """Parameters without pooler, fraction in the table, the table in blocks."""
    return sizes.weights(*sizes.sizes_of(sizes.MODELS[name]))


def pooler(config):
    return config.hidden_size**2 + config.hidden_size


def test_the_right_choice_is_given_away_neither_by_place_nor_by_length():
    QUIZ.check_not_given_away()


def test_icelandic_is_drawn_so_often():
    found, right = item("as much English as Icelandic")
    assert f"p^{MBERT}" in found.question
    english, icelandic = sampling.sampling([1_000, 1], MBERT)[0].tolist()
    assert right.text == f"{english / icelandic:.0f} times"
    assert right.why.startswith(f"1000^{MBERT} = {english / icelandic:.0f};")
    assert {MBERT * 1_000, 1_000.0} == {
        float(c.text.split(" ")[0].replace(",", "")) for c in found.choices if not c.correct
    }


def test_a_lower_alpha_takes_from_english():
    _, right = item("from α = 0.7 to α = 0.3")
    assert (MBERT, XLM_R) == (0.7, 0.3) and right.text.startswith("Less of it is read")
    before, after = (sampling.sampling([9_000, 900, 100], alpha)[1] for alpha in (MBERT, XLM_R))
    assert after[0] < before[0] < 1 < before[2] < after[2]


def test_the_formula_and_its_example():
    said = answer("sampling of languages as a formula")
    drawn, read = sampling.sampling([900, 100], 0.5)
    assert f"{drawn[0]:.2f} and {drawn[1]:.2f}" in said and f"read {read[1]:.1f} times" in said
    assert by_sentences([900, 100], UNIFORM) == [0.5, 0.5] and "every language alike" in said
    # as many sentences, longer ones: more blocks of tokens
    assert by_sentences([100, 100], 0.5) == [0.5, 0.5]
    assert by_blocks([51_200, 25_600], 512, 0.5)[0] > 0.5


def test_the_pair_is_the_librarys():
    _, right = item("TLM reads")
    tokens, positions, languages = pairs.pair(["a", "cat"], ["un", "chat"], (0, 1), "</s>")
    assert positions.count(0) == 2 and tokens.count("</s>") == 4
    assert right.text.startswith("`</s> x </s> </s> y </s>`")
    said = answer("Draw one TLM sequence")
    for row in (tokens, positions, languages):
        assert " ".join(map(str, row)) in said


def test_separators_are_masked_and_both_sides_are():
    assert "separators among them" in answer("Draw one TLM sequence")
    special = SpecialIds(pad=0, unk=2, cls=1, sep=1, mask=3, vocab_size=60)
    side = [[10, 11, 12]] * 4_000
    pair = translation_sequences(side, side, special, length=10)
    rates = mask_anywhere(pair, special).selected.double().mean(0)
    assert rates[0] == 0 and torch.allclose(rates[1:], torch.tensor(0.15).double(), atol=0.03)


def test_mask_keep_rand_is_in_that_order():
    found, right = item("word_mask_keep_rand")
    setting = found.question.split("word_mask_keep_rand = ")[1].split("`")[0]
    masked, random, kept = mix_of(setting)
    assert right.text == (
        f"{masked:.0%} become [MASK], {kept:.0%} are kept, {random:.0%} are replaced at random"
    )
    assert mix_of("0.8,0.1,0.1") == BERT_MIX


def test_mberts_parameters_are_counted():
    found, right = item("the cased mBERT")
    config = sizes.MODELS["mBERT, cased"]
    total, fraction, _ = of("mBERT, cased")
    with_pooler = total + pooler(config)
    assert right.text.startswith(f"{with_pooler / 1e6:.0f}M")
    assert right.why.startswith(f"{with_pooler:,} with the pooler. More than half")
    assert 0.5 < fraction < 0.55
    english = published("bert", "base", BertConfig)
    assert round(config.vocab_size / english.vocab_size) == 4
    table = [c.vocab_size * c.hidden_size / 1e6 for c in (config, english)]
    assert "{:.0f}M instead of {:.0f}M".format(*table) in found.choices[0].why
    assert f"{config.vocab_size:,}" in found.choices[0].why
    own = answer("Name three slips")
    assert f"width: {with_pooler / 1e6:.0f}M" in own


def test_xlm_rs_table_is_counted():
    total, fraction, blocks = of("XLM-R base")
    config = sizes.MODELS["XLM-R base"]
    found, _ = item("are in the embedding matrix")
    assert "two thirds of the parameters, and more" in found.question
    assert 2 / 3 < fraction < 0.7
    said = answer("Count XLM-R base")
    table = config.vocab_size * config.hidden_size
    assert f"{config.vocab_size:,} · {config.hidden_size} = {table / 1e6:.1f}M" in said
    assert (
        f"of {total / 1e6:.1f}M" in said
        and f"the weight of {blocks:.0f} blocks, and the model has 12" in said
    )
    assert "cased mBERT it is half, in XLM for 15 languages two fifths" in said
    assert of("mBERT, cased")[1] == pytest.approx(1 / 2, abs=0.02)
    assert of("XLM of 15 languages")[1] == pytest.approx(2 / 5, abs=0.02)
    roberta = published("roberta", "base", RobertaConfig)
    ratio = total / sizes.weights(*sizes.sizes_of(roberta))[0]
    assert f"{ratio:.1f} times as large" in said
    assert f"{(total + pooler(config)) / 1e6:.1f}M with the pooler" in said


def test_transformers_defaults_are_not_xlm_r():
    transformers = pytest.importorskip("transformers")
    theirs = transformers.XLMRobertaConfig()
    said = answer("Name three slips")
    assert f"{theirs.vocab_size:,} tokens and {theirs.max_position_embeddings} positions" in said
    assert XlmRobertaConfig().vocab_size != theirs.vocab_size


def test_a_high_cosine_finds_nothing():
    """All sentences alike but for a little: the mean cosine is 0.98 and retrieval at chance."""
    assert item("mean cosine of a sentence")[1].text == "It cannot be said from this"
    draw = Draw(0)
    common = draw.normal(1, 16)
    first, second = (common + 0.14 * draw.normal(400, 16) for _ in range(2))
    cosine = torch.nn.functional.cosine_similarity(first, second).mean()
    assert cosine > 0.97 and by_cosine(first, second).mean < 0.02


def test_padding_and_lengths_spoil_retrieval():
    """The slips that the answer names: each changes what is found."""
    assert "Slips: padding or special tokens" in answer("have the same vector")
    first, first_ids, second, second_ids = retrieval.case(Draw(2), 24, True, True, True)
    right = retrieval.retrieval(first, first_ids, second, second_ids)
    all_words = [torch.full_like(ids, 9) for ids in (first_ids, second_ids)]
    assert sum(retrieval.retrieval(first, all_words[0], second, all_words[1])) < sum(right)


def test_a_vocabulary_that_knows_nothing_has_fertility_one():
    tokens = WordPiece.from_words(["."]).tokenize("brel skrubit da ankar .")
    assert fertility.fertility([tokens]) == (1.0, 0.0) and tokens.count("[UNK]") == 4
    assert "fertility 1, all [UNK]" in item("one piece in five is [UNK]")[1].why


def test_english_spelled_otherwise_differs_in_spelling_alone():
    assert item("shared words *needed*")[1].text == "English with every word spelled otherwise"
    english, other = MicroWorld.load(), with_shared_words("english", 0)
    stories = english.stories(30)
    assert shared_words(other, english, stories).tokens == 0
    for story in stories:
        told = story.told_in(other)
        assert [len(s.split()) for s in told.sentences] == [len(s.split()) for s in story.sentences]


def test_the_papers_numbers_are_said_alike_everywhere():
    """Conneau et al. 2019, section 5.1 and Table 1: printed figures stand in several texts."""
    curse = answer("curse of multilinguality")
    assert "71.8 with 7 languages, 67.7 with 100" in curse
    assert "71.8 with 7 languages, 67.7 with 100" in item("*scaling law*")[0].choices[0].why
    assert "from 71.5 to 75.1" in answer("zero-shot cross-lingual transfer")
