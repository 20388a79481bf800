"""Lecture 11's result files are what today's recipes would make, and what they measure is what they
say. Tests that read a domain skip where its package is not installed."""

from __future__ import annotations

import math

import pytest
import torch

from course_lib import MicroWorld, load_pretrained
from course_lib.heads import BertForMaskedLM
from course_lib.lectures.lecture_11 import further, switches, tasks, ways, words
from course_lib.lectures.lecture_11.whole_words import bits_a_character, hidden_pieces, words_right
from course_lib.teaching.results import outcome, read_result
from course_lib.teaching.verdicts import BETTER, OPEN, by_rule
from course_lib.text.domains import SOURCES, domain, installed
from course_lib.text.english import FINANCE_SENTIMENTS, TaggedSentence

torch.set_num_threads(1)
needs_medicine = pytest.mark.skipif("medicine" not in installed(), reason="needs simple-icd-10-cm")


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def course():
    return load_pretrained("course-bert")


# ---------------------------------------------------------------- the files


@pytest.mark.parametrize(
    ("name", "recipes"), [("11_medicine", ways.MEDICINE | ways.LONG), ("11_law", ways.LAW)]
)
def test_the_ways_cost_what_their_recipes_say(name, recipes):
    stored = read_result(name)
    for way, runs in stored["runs"].items():
        recipe = ways.recipe_of(recipes[way], 0)
        assert recipe.training.seed == 0 and recipe.text.source == name[3:]
        for run in runs:
            assert (run["steps"] > 0) == (recipes[way].times > 0)
            assert run["curve"][0]["general"] >= 0 and run["curve"][-1]["step"] <= run["steps"]
    budget = max(r["steps"] * r["flops_a_step"] for r in stored["runs"]["continued"])
    for way, runs in stored["runs"].items():
        spent = runs[0]["steps"] * runs[0]["flops_a_step"]
        expected = budget * recipes[way].times / recipes["continued"].times
        assert spent == pytest.approx(expected, rel=0.01), way


def test_finance_comes_in_plain_words_and_in_hedged_ones():
    runs = [run for name, runs in read_result("11_switches")["runs"].items()
            for run in runs if name.startswith("finance")]  # fmt: skip
    assert len(runs) == 4 * len(switches.SEEDS)
    for run in runs:  # as many of one kind as of the other
        assert run["score"] == pytest.approx((run["plain"] + run["hedged"]) / 2)


def test_the_words_are_those_of_the_sources():
    stored = read_result("11_words")
    assert set(stored["domains"]) == {"general", *SOURCES}
    for name in installed():
        if domain(name).version == stored["packages"][SOURCES[name].distribution]:
            assert stored["hash"][name] == domain(name).hash


@pytest.mark.parametrize(
    ("file", "measure", "one", "other", "word"),
    [
        ("11_law", "in domain", "continued", "as it is", BETTER),
        ("11_law", "in domain", "rows replaced, means", "continued", BETTER),
        ("11_law", "licences", "continued", "as it is", OPEN),
        ("11_law", "licences", "as it is", "random initialisation", OPEN),
        ("11_switches", "score", "finance", "finance, random initialisation", BETTER),
        ("11_switches", "score", "finance, MiniLM", "finance, MiniLM's shape, random", BETTER),
        ("11_switches", "general", "chapters, layer-wise rates", "chapters", OPEN),
    ],
)
def test_what_the_page_says_is_what_the_rule_says(file, measure, one, other, word):
    scores = outcome(read_result(file), measure)
    assert by_rule(scores[one], scores[other]) == word


def test_no_way_is_better_at_licences_than_counting_words():
    stored = read_result("11_law")
    for values in outcome(stored, "licences").values():
        assert by_rule(values, stored["without_encoder"]["licences"]) != BETTER


# ---------------------------------------------------------------- hidden words


def test_a_word_is_right_if_all_its_pieces_are(course):
    """A model that says what it is told: every hidden word is right; with one piece wrong, less."""
    tokenizer, sentences = course.tokenizer, ["the function returns an indemnified array ."] * 20

    class Oracle(torch.nn.Module):
        def __init__(self, wrong=None):
            super().__init__()
            self.answer = tokenizer.encode(sentences[0])
            self.wrong = wrong

        def forward(self, ids, mask):
            logits = torch.zeros(*ids.shape, len(tokenizer))
            logits[:, torch.arange(len(self.answer)) + 1, self.answer] = 1
            if self.wrong is not None:
                logits[:, self.wrong + 1] = 0
                logits[:, self.wrong + 1, 0] = 1
            return type("Out", (), {"logits": logits})

    pieces = tokenizer.tokenize(sentences[0])
    assert words_right(Oracle(), tokenizer, sentences) == 1.0
    cut = next(n for n, piece in enumerate(pieces) if piece.startswith("##"))
    assert 0 < words_right(Oracle(cut), tokenizer, sentences) < 1.0
    assert words_right(Oracle(cut), tokenizer, sentences) == words_right(
        Oracle(cut - 1), tokenizer, sentences
    )
    with pytest.raises(ValueError, match="expected at most 62"):
        words_right(Oracle(), tokenizer, ["a b c d e f g " * 12])


def test_bits_a_character_are_those_of_the_right_pieces(course):
    """A model that gives every piece the same probability: log2 of the vocabulary for each."""

    def even(ids, mask):
        return type("Out", (), {"logits": torch.zeros(*ids.shape, len(course.tokenizer))})

    even.training, even.eval, even.train = False, lambda: None, lambda mode: None
    sentences = ["the function returns an indemnified array ."] * 20
    pieces = hidden_pieces(even, course.tokenizer, sentences)
    texts = [course.tokenizer.vocab[n].removeprefix("##") for n in pieces.ids.tolist()]
    expected = len(texts) * math.log2(len(course.tokenizer)) / len("".join(texts))
    assert bits_a_character(even, course.tokenizer, sentences) == pytest.approx(expected)


def test_the_same_words_are_hidden_whatever_the_vocabulary(course, monkeypatch):
    """A vocabulary with the cut word as a whole one is asked for as many words."""
    from course_lib.train.new_vocabulary import extended, with_vocabulary

    sentences = ["the indemnified array is indemnified again ."] * 40
    more = extended(course.tokenizer, sentences, 1)
    assert more.vocab[-1] == "indemnified"
    counts = []
    unique = torch.Tensor.unique
    monkeypatch.setattr(
        torch.Tensor,
        "unique",
        lambda t, *a, **k: counts.append(len(unique(t))) or unique(t, *a, **k),
    )
    assert isinstance(course.model, BertForMaskedLM) or course.model is not None
    for model, tokenizer in (
        (course.model, course.tokenizer),
        (with_vocabulary(course.model, course.tokenizer, more), more),
    ):

        class Only(torch.nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def forward(self, ids, mask):
                return self.inner(ids, mask)

        words_right(Only(model), tokenizer, sentences)
    assert counts[0] == counts[2] > 20


# ---------------------------------------------------------------- tasks


@needs_medicine
def test_chapters_are_balanced_and_no_family_is_on_both_sides():
    texts = tasks.chapters(seed=1)
    assert len(texts.names) == 21 and len(texts.train) == 21 * 20 and len(texts.test) == 21 * 20
    assert {item.label for item in texts.train} == set(texts.names)
    assert not {i.text for i in texts.train} & {i.text for i in texts.test}
    assert tasks.chapters(seed=0).test == texts.test != tasks.chapters(seed=0).train
    natural = tasks.natural_chapters()
    counts = [sum(i.label == name for i in natural.train) for name in natural.names]
    assert sum(counts) == 600 and min(counts) >= 1 and max(counts) > 5 * min(counts)
    assert natural.test == texts.test


@needs_medicine
def test_words_alone_do_not_tell_whether_two_changed_places():
    texts = tasks.word_order(100, tested=200, seed=1)
    assert len(texts.train) == 100 and len(texts.test) == 200
    assert [item.label for item in texts.train].count("exchanged") == 50
    titles = tasks.title_texts(1)
    for item, title in zip(texts.train, titles, strict=False):
        moved = [a != b for a, b in zip(item.text.split(), title.split(), strict=True)]
        assert sorted(item.text.split()) == sorted(title.split())
        assert sum(moved) == 2 * (item.label == "exchanged")
    assert texts.train[:20] == tasks.word_order(20, tested=200, seed=1).train  # a curve's points


@needs_medicine
def test_added_words_are_what_a_diagnosis_adds():
    texts = tasks.added_words(60, 60)
    assert all(isinstance(item, TaggedSentence) for item in texts.train)
    plain = sum(set(item.entities) == {"O"} for item in texts.train)
    assert plain == 20
    for item in texts.train:
        tags = list(item.entities)
        if "B-ADDED" in tags:
            start = tags.index("B-ADDED")
            assert start > 0 and set(tags[start + 1 :]) <= {"I-ADDED"}
        assert len(tasks.cut_by_rule(item)) == len(tags)


@pytest.mark.skipif("law" not in installed(), reason="needs licensedcode-data")
def test_licences_are_of_six_categories():
    texts = tasks.licences()
    assert len(texts.names) == 6 and len(texts.train) == 180 and len(texts.test) == 120
    assert max(len(item.text.split()) for item in texts.train) == tasks.LICENCE_WORDS


def test_finance_is_the_courses_own():
    texts = tasks.finance_news()
    assert texts.names == FINANCE_SENTIMENTS and len(texts.train) == 90 and len(texts.test) == 36


@needs_medicine
def test_short_sentences_fit_every_vocabulary(course):
    for name in ("general", "medicine"):
        lines = tasks.short_sentences(name)
        assert len(lines) == 400 and all(5 <= len(s.split()) <= 14 and len(s) <= 120 for s in lines)
        assert max(len(course.tokenizer.encode(s)) for s in lines) <= 62


# ---------------------------------------------------------------- ways


@needs_medicine
def test_every_fourth_batch_is_general():
    way = ways.MEDICINE["continued, general text mixed in"]
    batches, own = ways.batches_for(way, 0), ways.batches_for(ways.MEDICINE["continued"], 0)
    ids = [batches(n).inputs["input_ids"] for n in range(1, 8)]
    assert torch.equal(ids[0], own(1).inputs["input_ids"])
    assert not torch.equal(ids[3], own(3).inputs["input_ids"])
    assert torch.equal(ids[4], own(4).inputs["input_ids"])  # the next of its own


@needs_medicine
def test_task_text_is_the_titles_of_the_task(course):
    batch = ways.batches_for(further.LABELLED["task text"], 0)(1)
    known = {n for title in tasks.title_texts(0) for n in course.tokenizer.encode(title)}
    labels = next(iter(batch.targets.values()))
    assert len(labels) > 50 and set(labels[labels >= 0].tolist()) <= known


def test_phrases_are_counted_as_whole_words():
    texts = ["Per se, which is supraliminal.", "If and only if supra; a whichever, per sector."]
    assert words.count(words.LATIN, texts) == 2  # per se, supra
    assert words.count(words.CLAUSES, texts) == 3  # which, If, if


def test_words_of_letters_only_are_counted():
    assert words.frequent(["a b a 1 1 1 , , ,"], 2) == {"a", "b"}
