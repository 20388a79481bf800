"""Lecture 10's result files are what today's recipes and worlds would make; and what they measure
is what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib import MicroWorld
from course_lib.lectures.lecture_10 import pair_runs, sharing_runs
from course_lib.lectures.lecture_10.pairs import (
    LENGTH,
    joint_tokenizer,
    sentence_pairs,
    small_xlm,
    train_pairs,
    translation_retrieval,
)
from course_lib.teaching.results import read_result

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def norlish():
    return MicroWorld.load(language="norlish")


@pytest.fixture(scope="module")
def pairs(world, norlish):
    return sentence_pairs(world, norlish, world.stories(30, seed=0))


@pytest.fixture(scope="module")
def material():
    return pair_runs.prepare(pair_runs.RECIPES["norlish, TLM"])


# ---------------------------------------------------------------- pairs


def test_a_pair_is_a_sentence_and_its_translation(world, norlish, pairs):
    story = world.stories(30, seed=0)[7]
    first = sum(len(one.sentences) for one in world.stories(30, seed=0)[:7])
    translation = story.told_in(norlish)
    for n, (one, two) in enumerate(zip(story.words, translation.words, strict=True)):
        assert pairs.tokens(pairs.first[first + n]) == list(one)
        assert pairs.tokens(pairs.second[first + n]) == list(two)


def test_both_objectives_read_the_same_words_and_only_one_reads_them_together(pairs):
    together, apart = pairs.together, pairs.apart
    assert len(apart) == 2 * len(together)
    assert apart.input_ids.shape[1] * 2 == together.input_ids.shape[1] == LENGTH
    words = [int((s.attention_mask.bool() & (s.input_ids != pairs.special.sep)).sum())
             for s in (together, apart)]  # fmt: skip
    assert words[0] == words[1]
    sides = [row[mask.bool()].unique().tolist() for row, mask in
             zip(apart.token_type_ids, apart.attention_mask, strict=True)]  # fmt: skip
    assert sides == [[0]] * len(together) + [[1]] * len(together)


def test_tlm_aligns_what_it_reads_together(world, norlish):
    """A few sentences, read until they are known: their vectors find each other."""
    few = sentence_pairs(world, norlish, world.stories(12, seed=0))
    random = translation_retrieval(small_xlm(few.special, 0), few)[-1].mean
    model, history = train_pairs(few, steps=600)
    assert history.losses["total"][-1] < 0.5 * history.losses["total"][0]
    assert translation_retrieval(model, few)[-1].mean > random + 0.3


def test_means_of_known_sentences_hold_no_translations(world, norlish):
    """One language's mean is that of the first half, the other's that of the second; the halves
    that are left over may be anything. Taken off, more is found, at random initialisation too."""
    few, known = (sentence_pairs(world, norlish, world.stories(20, seed=n)) for n in (1, 2))
    model, half = small_xlm(few.special, 0), len(known.first) // 2
    retrievals = translation_retrieval(model, few, known=known)
    other = replace(
        known,
        first=known.first[:half] + known.first[:1] * (len(known.first) - half),
        second=known.second[-1:] * half + known.second[half:],
    )
    assert translation_retrieval(model, few, known=other) == retrievals
    assert retrievals[-1].mean > translation_retrieval(model, few)[-1].mean + 0.2


# ---------------------------------------------------------------- what is measured


def test_words_of_another_language_have_the_slots_of_their_own_sentences(material):
    model = small_xlm(material.pairs("other", material.test[:1]).special, 0)
    names = pair_runs.slots(material)
    for language in material.worlds:
        words = pair_runs.words_of(model, material, language, material.test[:20])
        translations = [story.told_in(material.worlds[language]) for story in material.test[:20]]
        traces = [t for s in translations for line in s.trace for t in line if t.slot in names]
        assert [names[n] for n in words.labels.tolist()] == [t.slot for t in traces]
        known = set(material.worlds["english"].vocab)
        assert words.own.tolist() == [t.word not in known for t in traces]
        assert len(words.vectors) == len(traces)


def test_vectors_are_those_of_the_words(material):
    """The first of the layers are the embeddings: equal words at equal places have equal ones."""
    model = small_xlm(material.pairs("other", material.test[:1]).special, 0)
    words = pair_runs.words_of(model, material, "english", material.test[:40])
    names = pair_runs.slots(material)
    places = [(t.word, at) for s in material.test[:40] for line in s.trace
              for at, t in enumerate(line) if t.slot in names]  # fmt: skip
    first = words.vectors[:, : model.config.hidden_size]
    by_place = {}
    for place, vector in zip(places, first, strict=True):
        assert torch.allclose(by_place.setdefault(place, vector), vector, atol=1e-6)
    assert len(by_place) > 50


def test_what_is_tested_was_not_read(material):
    """Two of 120 test stories are told twice; the encoder has read not one sentence of them."""
    learned = {story.text for story in material.learn}
    assert sum(story.text in learned for story in material.test) <= 2
    read = {sentence for story in material.train for sentence in story.sentences}
    unseen = [*material.learn, *material.test]
    assert not any(sentence in read for story in unseen for sentence in story.sentences)
    assert 0.1 < pair_runs.majority(material) < 0.3


def test_the_small_language_is_read_as_its_alpha_says():
    for name, recipe in sharing_runs.LOW_RESOURCE.items():
        language_ids = sharing_runs.prepare(recipe).train.token_type_ids[:, 0]
        small = float((language_ids == 1).float().mean())
        expected = {"α = 1": 0.033, "α = 0": 0.5, "Norlish alone": 1.0}.get(name)
        assert expected is None or small == pytest.approx(expected, abs=0.004), name


def test_languages_of_the_curse_share_no_word(world):
    vocabularies = [set(w.vocab) for w in sharing_runs.worlds()]
    for n in (2, 3):
        assert {w for w in vocabularies[0] & vocabularies[n] if w.isalpha()} == set()
    tokenizer = joint_tokenizer(*sharing_runs.worlds())
    assert tokenizer.vocab_size > 3_000


# ---------------------------------------------------------------- the files


def test_the_spellings_and_controls_are_those_of_the_recipes():
    assert set(read_result("10_pairs")["untrained"]) == {"norlish", "sumorian"}
    stored = read_result("10_spellings")
    for name, recipe in pair_runs.SPELLINGS.items():
        own = "slots other own" in stored["runs"][name][0]
        assert own == (recipe.shared != 1.0)
    assert list(stored["untrained"]) == list(pair_runs.SPELLINGS)
    for runs in stored["untrained"].values():
        assert [run["seed"] for run in runs] == list(pair_runs.SEEDS)
