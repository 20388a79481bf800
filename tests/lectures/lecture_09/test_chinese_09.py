"""The Chinese part of lecture 09: what is a unit, what is masked when measuring, what the view
shows, and that the results file is what today's recipes and world would make."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby

import pytest
import torch
from view_parts import picture_of

from course_lib.lectures.lecture_09 import chinese, recipes
from course_lib.lectures.lecture_09.views import chinese as view
from course_lib.objectives.masked_lm import mask_whole_words
from course_lib.teaching.results import read_result
from course_lib.text.world import MicroWorld, story_sequences


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load(language="chinese")


@pytest.fixture(scope="module")
def english():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def stories(world):
    return world.stories(60, seed=4, split="heldout")


@pytest.fixture(scope="module")
def heldout(world, stories):
    return story_sequences(world, stories, chinese.LENGTH)


def written(world, heldout, hidden):
    """The words that are masked, each as (story, word)."""
    ids = heldout.input_ids.view(-1)
    words = []
    for number in hidden.of.unique().tolist():
        at = hidden.at[hidden.of == number].tolist()
        assert at == list(range(at[0], at[0] + len(at)))  # side by side
        word = "".join(world.tokenizer.token(int(ids[i])) for i in at)
        words.append((at[0] // chinese.LENGTH, word))
    return words


# ---------------------------------------------------------------- units


def groups(units, characters):
    """Neighbouring characters with the same number, as text."""
    pairs = groupby(zip(units, characters, strict=False), key=lambda pair: pair[0])
    return ["".join(c for _, c in run) for _, run in pairs]


def test_words_are_the_storys_and_names_join_them(world, stories):
    word_of = chinese.training_text(world, stories).word_of
    for n, story in enumerate(stories):
        words = [word for line in story.words for word in line]
        assert groups(word_of["words"][n, 1:].tolist(), story.written) == words
        named = groups(word_of["names"][n, 1:].tolist(), story.written)
        entities = {x.entity for line in story.trace for x in line if x.slot == "site"}
        assert {entity.replace(" ", "") for entity in entities} <= set(named)
        assert "".join(named) == story.written


def test_recipes_differ_in_what_is_masked_together(world, stories):
    training = chinese.training_text(world, stories)
    first = [
        recipes.batches_of(recipe, training, 0)(3).inputs["input_ids"]
        for recipe in chinese.RECIPES.values()
    ]
    assert list(chinese.RECIPES) == list(chinese.LEVELS)
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[1], first[2])


def test_a_story_too_long_is_refused(stories):
    with pytest.raises(ValueError, match="expected at most 18"):
        chinese.word_units(stories[:1], 20)


# ---------------------------------------------------------------- what is measured


def test_hidden_words_are_whole_and_have_several_characters(world, stories, heldout):
    words = written(world, heldout, chinese.hidden_words(world, stories, heldout))
    assert len(words) > 100
    for n, word in words:
        assert len(word) > 1 and word in {w for line in stories[n].words for w in line}


def test_hidden_names_stand_elsewhere_and_hidden_facts_do_not(world, stories, heldout):
    people = chinese.hidden_last(stories, "repeated", chinese.PEOPLE)
    places = chinese.hidden_last(stories, "repeated", chinese.PLACES)
    facts = chinese.hidden_last(stories, "fact", chinese.FACT_SLOTS)
    known = {row["name"] for table in ("people", "guests") for row in world.grammar.tables[table]}
    for n, name in written(world, heldout, people):
        assert name in known and sum(line.count(name) for line in stories[n].words) > 1
    for n, name in written(world, heldout, places):
        assert stories[n].written.count(name) > 1
        assert name == next(x.entity for line in stories[n].trace for x in line
                            if x.slot == "site").replace(" ", "")  # fmt: skip
    for n, word in written(world, heldout, facts):
        assert sum(line.count(word) for line in stories[n].words) == 1
    counts = [len(x.of.unique()) for x in (people, places, facts)]
    assert counts[0] > 50 and counts[1] > 5 and counts[2] > 30


def test_one_character_of_each_word_is_masked_and_another_is_read(world, stories, heldout):
    words = chinese.hidden_words(world, stories, heldout)
    inside = chinese.one_of_each(words)
    assert len(inside) == len(words.of.unique()) and torch.isin(inside, words.at).all()
    of = words.of[torch.isin(words.at, inside)]
    assert torch.equal(of, of.unique())
    begins = torch.tensor([int(words.at[words.of == n][0]) for n in of.tolist()])
    assert 0.4 < (inside == begins).float().mean() < 0.6


def test_the_likeliest_word_fits_what_can_be_read():
    counts = {"船长": 5, "船锚": 9, "校长": 7, "面包师": 3}
    assert chinese.likeliest(counts, "船_") == "船锚" and chinese.likeliest(counts, "_长") == "校长"
    assert chinese.likeliest(counts, "__") == "船锚" and chinese.likeliest(counts, "猫_") == ""


def test_the_slot_probe_reads_first_characters_and_halves_the_words(world, stories):
    probe = chinese.slot_categories(world, stories[:20])
    ids = probe.sequences.input_ids.view(-1)
    jobs = {row["job"][0] for row in world.grammar.tables["jobs"]}
    at = probe.at[probe.labels == probe.names.index("hero.job")]
    assert len(at) and {world.tokenizer.token(int(ids[i])) for i in at} <= jobs
    assert 0.2 < probe.learn.float().mean() < 0.8


# ---------------------------------------------------------------- the view


def test_every_word_has_an_english_gloss_and_places_word_by_word(world, english, stories):
    for story in stories:
        for line, glosses in zip(story.trace, view.glosses(story, english), strict=True):
            assert len(line) == len(glosses)
            for trace, gloss in zip(line, glosses, strict=True):
                assert gloss.isascii() and (gloss or trace.word == " ")
    glosses = view.glosses(world.stories(12, seed=5, split="heldout")[5], english)
    assert glosses[0] == [
        "monday",
        ",",
        "captain",
        "nizin",
        "walks",
        "to",
        "frozen",
        "oak",
        "inn",
        ".",
    ]


@pytest.mark.parametrize("level", chinese.LEVELS)
def test_the_picture_hatches_what_the_experiment_selects(world, english, stories, level):
    whole = 0
    for story in stories[:10]:
        picture = view.chinese_picture(story, english, level, seed=3)
        lines = [line.split(" = ")[0] for line in picture.text.split("\n")[: len(story.sentences)]]
        assert [re.sub(r"[\[\]]", "", line) for line in lines] == list(story.sentences)
        assert [line.split(" = ")[1] for line in picture.text.split("\n")[: len(lines)]] == list(
            story.told_in(english).sentences
        )
        boxes = re.findall(r'class="token token-(\w+)"', picture.html)
        training = chinese.training_text(world, [story])
        if level != "characters":
            masked = mask_whole_words(
                training.train, world.special, training.word_of[level], mix=(1.0, 0.0, 0.0), seed=3
            )
            selected = masked.selected[0, 1 : 1 + len(boxes)]
            assert [box == "masked" for box in boxes] == selected.tolist()
            assert "; 0 have a readable character" in picture.text
        whole += boxes.count("masked")
        assert ('class="name"' in picture.html) == (level == "names" and "site" in story.rows)
    assert whole > 100
    with pytest.raises(ValueError, match="one of characters, words, names"):
        view.chinese_picture(stories[0], english, "phrases")


def test_the_view_follows_its_controls(world, english):
    live = view.chinese_view(world, english, 9, seed=10)
    assert picture_of(live).endswith(live.static.html)
    live.controls["level"].value = "characters"
    assert "every character is a unit" in picture_of(live)
    live.controls["story"].value = 5
    assert "frozen oak inn" in picture_of(live)


# ---------------------------------------------------------------- the file


def test_what_was_measured_hangs_together():
    stored = read_result("09_chinese")
    for runs in stored["runs"].values():
        for run in runs:
            assert run["curve"][-1]["word_exact"] == pytest.approx(run["word_exact"])
    assert 0 < stored["words_alone"]["word_exact"] < stored["words_alone"]["inside"] < 1
    assert 0.5 < stored["given_away"] < 1


def test_a_run_trains_what_its_recipe_says(world):
    training = chinese.training_text(world, world.stories(40, seed=0))
    quick = replace(chinese.RECIPES["words"], num_layers=1, hidden_size=32, steps=100)
    _, history = recipes.train_masks(quick, training)
    assert history.losses["total"][-1] < history.losses["total"][0] - 0.5
