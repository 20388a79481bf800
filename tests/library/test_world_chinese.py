"""The micro-world in Chinese: the tables and frames of the English one, told in other words."""

from __future__ import annotations

import re

import pytest
import torch

from course_lib.objectives.masked_lm import mask_whole_words
from course_lib.text.grammar import Grammar, Hole, RulesError
from course_lib.text.wordpiece import UNK, WordPiece
from course_lib.text.world import MicroWorld, languages, story_sequences

IDEOGRAPHS = re.compile(r"[\u4e00-\u9fff]+")
ENGLISH_HASH = "7dc2a97ad5b0"  # of version 1.0: a language beside it does not change it
KEPT_IN_BOTH = ("topic", "sex")  # columns whose cells are the same in every language
LENGTH = 128


@pytest.fixture(scope="module")
def english() -> MicroWorld:
    return MicroWorld.load()


@pytest.fixture(scope="module")
def chinese() -> MicroWorld:
    return MicroWorld.load(language="chinese")


@pytest.fixture(scope="module")
def stories(chinese):
    return chinese.stories(1_000)


def numbers(grammar: Grammar, table: str, column: str) -> list[int]:
    """Which row of the table each fact names: the same in every language."""
    target = grammar.facts[f"{table}.{column}"]
    keys = [next(iter(row.values())) for row in grammar.tables[target]]
    return [keys.index(row[column]) for row in grammar.tables[table]]


def test_the_languages_are_the_folders_and_the_english_world_is_as_it_was(english):
    assert {"chinese", "english"} <= set(languages())
    assert english.hash[:12] == ENGLISH_HASH


def test_the_tables_have_the_same_rows_and_facts(english, chinese):
    ours, theirs = chinese.grammar, english.grammar
    assert list(ours.tables) == list(theirs.tables)
    for name, rows in ours.tables.items():
        assert len(rows) == len(theirs.tables[name]), name
        for row, other in zip(rows, theirs.tables[name], strict=True):
            for column in KEPT_IN_BOTH:
                assert row.get(column) == other.get(column), (name, row)
    for fact in ours.facts:
        assert numbers(ours, *fact.split(".")) == numbers(theirs, *fact.split(".")), fact


def test_frames_have_the_same_names_and_roles(english, chinese):
    ours, theirs = chinese.grammar.frames, english.grammar.frames
    assert list(ours) == list(theirs)
    for stage, frames in ours.items():
        assert [f.name for f in frames] == [f.name for f in theirs[stage]]
        for frame, other in zip(frames, theirs[stage], strict=True):
            assert set(frame.roles) == set(other.roles), frame.name


def test_a_story_of_one_language_is_the_same_story_in_the_other(english, chinese, stories):
    for story in stories[:100]:
        there = story.told_in(english)
        assert (there.frames, there.topic, there.rows) == (story.frames, story.topic, story.rows)
        assert there.told_in(chinese) == story
        for ours, theirs in zip(story.trace, there.trace, strict=True):
            roles = {x.role for x in ours if x.slot}
            assert roles == {x.role for x in theirs if x.slot}
    assert english.stories(1)[0].told_in(english) == english.stories(1)[0]


def test_a_frame_that_the_other_language_lacks_is_named(chinese, stories):
    class Poor(MicroWorld):
        def __init__(self):
            super().__init__(chinese.grammar, "0" * 64)
            del self._parts[stories[0].frames[0]]

    with pytest.raises(ValueError, match=stories[0].frames[0]):
        stories[0].told_in(Poor())


def test_no_two_frames_and_no_two_rows_of_a_role_say_the_same(chinese):
    grammar = chinese.grammar
    said: dict[str, str] = {}
    for stage in grammar.frames.values():
        for frame in stage:
            for form in grammar.forms(frame):
                shape = "".join(
                    f"{{{i.slot}.{i.part}}}" if isinstance(i, Hole) else i for i in form.items
                )
                assert said.setdefault(shape, frame.name) == frame.name
    for role, table in grammar.roles.items():
        by_topic = [(row.get("topic"), next(iter(row.values()))) for row in grammar.tables[table]]
        assert len(set(by_topic)) == len(by_topic), role


def test_names_are_two_or_three_characters_and_all_distinct(chinese):
    tables = chinese.grammar.tables
    names = [row["name"] for table in ("people", "guests") for row in tables[table]]
    names += [row["city"] for row in tables["cities"]]
    assert all(IDEOGRAPHS.fullmatch(name) and len(name) in (2, 3) for name in names)
    other = set(chinese.vocab) - set(names)
    assert len(set(names)) == len(names) and other | set(names) == set(chinese.vocab)


def test_sentences_are_characters_and_full_stops_written_without_spaces(chinese, stories):
    for story in stories:
        assert all(line[-1] == "。" for line in story.words)
        for word in (word for line in story.words for word in line):
            assert word in "，。" or IDEOGRAPHS.fullmatch(word)
        assert story.written == "".join(word for line in story.words for word in line)
    assert set(chinese.vocab) >= {word for s in stories for line in s.words for word in line}


def test_characters_are_the_pieces_and_the_ids_say_the_story_again(chinese, stories):
    tokenizer = chinese.tokenizer
    assert all(len(piece) == 1 for piece in tokenizer.vocab[5:])
    told = story_sequences(chinese, stories, LENGTH)
    longest = max(len(story.written) for story in stories)
    assert told.attention_mask.sum(dim=1).max() == longest + 2 <= LENGTH - 5
    for story, document in zip(stories[:50], chinese.documents(stories[:50]), strict=True):
        ids = [i for sentence in document for i in sentence]
        assert tokenizer.encode(story.written) == ids  # without spaces it is cut the same
        assert UNK not in tokenizer.tokenize(story.written)
        assert tokenizer.decode(ids).replace(" ", "") == story.written


def test_pairs_know_the_word_that_each_character_is_of(chinese, stories):
    told = chinese.sequences(stories[:30], LENGTH)
    ids = told.sequences.input_ids
    for (n, s, w), id_ in zip(
        told.positions(told.origins[..., 0] >= 0), ids[told.origins[..., 0] >= 0], strict=True
    ):
        assert chinese.tokenizer.token(int(id_)) in stories[n].words[s][w]
    count = (told.origins[..., 0] >= 0).sum(dim=1).tolist()
    assert count == [len(story.written) for story in stories[:30]]


def test_words_of_several_characters_are_masked_whole(chinese, stories):
    from course_lib.lectures.lecture_09.chinese import word_units

    told = story_sequences(chinese, stories[:40], LENGTH)
    words = word_units(stories[:40], LENGTH)
    selected = mask_whole_words(told, chinese.special, words, seed=2).selected
    for row, of in zip(selected, words, strict=True):
        assert all(bool(row[of == n].all()) for n in of[row].unique().tolist())
    assert torch.equal(words >= 0, told.attention_mask.bool() & (told.input_ids > 4))


def test_training_and_heldout_share_no_sentence(chinese, stories):
    unseen = chinese.stories(300, split="heldout")
    known = {sentence for story in stories for sentence in story.sentences}
    assert not known & {sentence for story in unseen for sentence in story.sentences}


def test_one_language_has_one_full_stop(chinese):
    words = {"people": "name topic\n戈卡 sea"}
    rules = {
        "version": "x", "heldout_share": 0.1, "topics": {"sea": 1}, "roles": {"hero": "people"},
        "plans": [{"weight": 1, "stages": ["open"]}],
    }  # fmt: skip
    told = Grammar(rules, words, {"open": {"a": "{hero} 来 。"}})
    assert told.between == "" and chinese.grammar.between == ""
    with pytest.raises(RulesError, match="one full stop"):
        Grammar(rules, words, {"open": {"a": "{hero} 来 。", "b": "{hero} 去 ."}})


def test_berts_own_splitting_makes_each_character_a_word(stories):
    pieces = WordPiece.from_words(sorted(set("".join(s.written for s in stories))))
    assert pieces.tokenize(stories[0].written) == list(stories[0].written)
