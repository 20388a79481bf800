"""The micro-world's invented languages, and how many words a language shares as a setting."""

from __future__ import annotations

import re
from math import nan

import pytest

from course_lib.text.grammar import Hole
from course_lib.text.shared_words import (
    NOT_WORDS,
    meanings,
    own_spelling,
    shared_words,
    with_shared_words,
)
from course_lib.text.wordpiece import UNK
from course_lib.text.world import MicroWorld, languages

INVENTED = ("norlish", "sumorian")
GEORGIAN = re.compile(r"[\u10d0-\u10f0]+")
HASHES = {"english": "7dc2a97ad5b0", "chinese": "c7b8c01b2f3e"}  # recorded in results


@pytest.fixture(scope="module")
def english():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def stories(english):
    return english.stories(400)


@pytest.fixture(scope="module", params=INVENTED)
def language(request):
    return request.param


@pytest.fixture(scope="module")
def world(language):
    return MicroWorld.load(language=language)


def words_of(story):
    return [word for line in story.words for word in line]


def test_the_languages_are_four_and_the_older_ones_as_they_were():
    assert languages() == ["chinese", "english", "norlish", "sumorian"]
    assert {name: MicroWorld.load(language=name).hash[:12] for name in HASHES} == HASHES


def test_a_language_without_a_folder_is_said_in_words():
    with pytest.raises(
        ValueError, match="language='klingon' was given; expected one of chinese, english, norlish"
    ):
        MicroWorld.load(language="klingon")


# ---------------------------------------------------------------- the same world


def test_rows_topics_and_facts_are_those_of_english(english, world):
    ours, theirs = world.grammar, english.grammar
    assert list(ours.tables) == [*theirs.tables, "glosses"]
    for name, rows in theirs.tables.items():
        for row, other in zip(ours.tables[name], rows, strict=True):
            assert set(row) <= set(other)
            assert all(row.get(column) == other.get(column) for column in NOT_WORDS)
    for fact in ours.facts:
        assert row_numbers(ours, fact) == row_numbers(theirs, fact), fact


def row_numbers(grammar, fact):
    """Which row of its table each value of this fact names."""
    table, column = fact.split(".")
    keys = [next(iter(row.values())) for row in grammar.tables[grammar.facts[fact]]]
    return [keys.index(row[column]) for row in grammar.tables[table]]


def test_frames_say_the_same_in_other_words(english, language, world):
    english_of = meanings(language)
    for stage, frames in english.grammar.frames.items():
        for frame, other in zip(world.grammar.frames[stage], frames, strict=True):
            assert frame.name == other.name and set(frame.roles) == set(other.roles)
            holes, others = (
                sorted(i.slot for i in f.items if isinstance(i, Hole)) for f in (frame, other)
            )
            assert [h for h in others if not h.endswith("job.a")] == [
                h for h in holes if not h.endswith("job.a")
            ]
            ours = [english_of[i] for i in frame.items if isinstance(i, str) and i != "."]
            theirs = [i for i in other.items if isinstance(i, str)]
            small = {"the", "to", "for", "how", "it"}  # order and case are said otherwise
            assert set(ours) ^ {t for t in theirs if t != "."} <= small, frame.name


def test_every_sentence_has_its_parallel_and_comes_back(english, world, stories):
    for story in stories[:100]:
        there = story.told_in(world)
        assert len(there.sentences) == len(story.sentences)
        assert there.told_in(english) == story
        for ours, theirs in zip(there.trace, story.trace, strict=True):
            assert {x.slot for x in ours if x.slot != "hero.job.a"} == {
                x.slot for x in theirs if x.slot != "hero.job.a"
            }


def test_no_two_words_of_english_are_one_word(english, language, world):
    tables, other = world.grammar.tables, english.grammar.tables
    said = {row["word"]: {row["english"]} for row in tables["glosses"]}
    for name in other:
        for row, there in zip(tables[name], other[name], strict=True):
            for column in (c for c in row if c not in NOT_WORDS):
                for ours, theirs in zip(
                    row[column].split("_"), there[column].split("_"), strict=True
                ):
                    said.setdefault(ours, set()).add(theirs)
    assert all(len(english) == 1 for english in said.values())
    assert {word: english.pop() for word, english in said.items()} == meanings(language)


def test_a_different_story_is_told_in_different_sentences(english, world):
    stories = {s.sentences: s for s in english.stories(5_000)}.values()
    said = {}
    for story in stories:
        for ours, theirs in zip(story.told_in(world).sentences, story.sentences, strict=True):
            assert said.setdefault(ours, theirs) == theirs


def facts_of(world, hero):
    """A hero's job and the country of its city, as its row says."""
    row = world.grammar._by_key("people")[hero]
    return [world.grammar.value("people", row, path) for path in ("job", "city.country")]


@pytest.mark.parametrize(
    ("language", "hero", "facts"),
    [
        ("english", "goka", ["sailor", "tirland"]), ("norlish", "goka", ["seilar", "tirland"]),
        ("sumorian", "გოქა", ["ჩემელი", "თირლანდ"]), ("chinese", "戈卡", ["水手", "蒂兰"]),
    ],
)  # fmt: skip
def test_facts_are_those_of_the_english_row(language, hero, facts):
    assert facts_of(MicroWorld.load(language=language), hero) == facts


def test_tokens_are_words_and_none_is_unknown(world, stories):
    for story in stories[:100]:
        told = story.told_in(world)
        assert world.tokenizer.tokenize(told.text) == words_of(told)
        assert UNK not in world.tokenizer.tokenize(told.text)
    assert (
        max(len(words_of(s.told_in(world))) for s in stories)
        <= 61
        == max(MicroWorld.load().grammar.longest(), world.grammar.longest())
    )


# ---------------------------------------------------------------- close and far


def test_the_far_language_shares_nothing_and_the_close_one_a_third(english, stories):
    norlish, sumorian = (MicroWorld.load(language=name) for name in INVENTED)
    assert set(sumorian.vocab) & set(english.vocab) == {"."}
    assert all(GEORGIAN.fullmatch(word) for word in sumorian.vocab if word != ".")
    far, close = (shared_words(world, english, stories) for world in (sumorian, norlish))
    assert (far.types, far.tokens) == (0, 0)
    assert 0.3 < close.types < 0.4 and 0.2 < close.tokens < 0.35


def test_a_word_spelled_as_in_english_means_the_same(english):
    for language in INVENTED:
        for word, there in meanings(language).items():
            assert word not in english.vocab or word == there, (word, there)


def test_people_have_one_name_in_english_and_norlish(english):
    names = {row["name"] for t in ("people", "guests") for row in english.grammar.tables[t]}
    norlish, sumorian = (meanings(name) for name in INVENTED)
    assert all(norlish[name] == name for name in names)
    assert names <= set(sumorian.values())


def test_grammar_is_regular():
    norlish, sumorian = (MicroWorld.load(language=name).grammar.tables for name in INVENTED)
    for n, s in zip(norlish["things"], sumorian["things"], strict=True):
        assert n["many"] == n["one"] + ("r" if n["one"][-1] in "aeiou" else "ur")
        assert s["many"] == s["one"] + "ურ"
    for table in ("acts1", "acts2", "acts3"):
        for n, s in zip(norlish[table], sumorian[table], strict=True):
            assert (n["does"][-2:], n["do"]) == ("it", n["does"][:-2] + "en")
            assert (s["does"][-2:], s["do"]) == ("ან", s["does"][:-2] + "ენ")


def test_the_verb_is_last_in_sumorian_and_second_in_norlish(english, stories):
    norlish, sumorian = (MicroWorld.load(language=name) for name in INVENTED)
    for story in stories[:100]:
        for line in story.told_in(sumorian).trace:
            assert line[-2].word.endswith(("ან", "ენ"))
    words = stories[0].told_in(norlish)
    thens = [line for line in words.words if line[0] == "dan"]
    assert thens and all(line[1].endswith(("it", "en")) for line in thens)


# ---------------------------------------------------------------- sharing as a setting


@pytest.mark.parametrize("fraction", [0, 0.1, 0.3, 0.5, 0.9, 1])
def test_the_fraction_is_what_was_asked_for(english, stories, language, fraction):
    world = with_shared_words(language, fraction)
    found = shared_words(world, english, stories)
    assert found.types == pytest.approx(fraction, abs=0.006)
    if fraction in (0, 1):
        assert (found.types, found.tokens) == (fraction, fraction)
    for story in stories[:50]:
        told = story.told_in(world)
        assert told.told_in(english) == story
        assert world.tokenizer.tokenize(told.text) == words_of(told)
    assert world.special.vocab_size == len(world.vocab) + 5


def test_the_shared_words_of_a_fraction_are_among_those_of_a_greater_one(english, language):
    known, before = set(english.vocab), set()
    for fraction in (0.1, 0.2, 0.3, 0.6, 1):
        shared = set(with_shared_words(language, fraction).vocab) & known
        assert before < shared
        before = shared
    some = set(with_shared_words(language, 0.3).vocab) & known
    names = {row["name"] for t in ("people", "guests") for row in english.grammar.tables[t]}
    glosses = {
        row["english"] for row in MicroWorld.load(language=language).grammar.tables["glosses"]
    }
    for kind in (names, glosses, known - names - glosses):
        assert 0.15 < len(some & kind) / len(kind) < 0.45


def test_both_languages_share_the_same_words(english):
    known = set(english.vocab)
    norlish, sumorian = (set(with_shared_words(name, 0.5).vocab) & known for name in INVENTED)
    assert len(norlish & sumorian) / len(norlish | sumorian) > 0.95


def test_at_one_only_order_is_left(english, stories):
    for language in INVENTED:
        world = with_shared_words(language, 1)
        for story in stories[:50]:
            there, here = set(words_of(story.told_in(world))), set(words_of(story))
            assert there ^ here <= {"the", "to", "for", "how", "a", "it"}
    told = stories[0].told_in(with_shared_words("norlish", 1))
    assert told.sentences != stories[0].sentences


def test_english_spelled_otherwise_is_english_word_by_word(english, stories):
    world = with_shared_words("english", 0)
    assert shared_words(world, english, stories).types == 0
    for story in stories[:20]:
        told = words_of(story.told_in(world))
        assert told == [own_spelling(w) if w.isalpha() else w for w in words_of(story)]
    assert own_spelling("goka") == "gokæ" and own_spelling("dry") == "drƴ"


def test_every_setting_has_a_hash_of_its_own():
    worlds = [MicroWorld.load(language=n) for n in languages()]
    worlds += [with_shared_words(n, f) for n in INVENTED for f in (0, 0.3, 1)]
    assert len({world.hash for world in worlds}) == len(worlds)
    assert with_shared_words("norlish", 0.3).hash == with_shared_words("norlish", 0.30).hash


@pytest.mark.parametrize("fraction", [-0.1, 1.01, 30, nan])
def test_a_fraction_outside_zero_to_one_is_refused(fraction):
    with pytest.raises(ValueError, match=r"expected 0 .* to 1"):
        with_shared_words("norlish", fraction)


def test_a_language_that_is_not_there_is_named_with_those_that_are(stories, english):
    with pytest.raises(ValueError, match=r"'klingon'.*chinese, english, norlish, sumorian"):
        with_shared_words("klingon", 0.5)
    with pytest.raises(ValueError, match="chinese has no table `glosses`"):
        meanings("chinese")
    with pytest.raises(ValueError, match="No stories"):
        shared_words(english, english, [])
