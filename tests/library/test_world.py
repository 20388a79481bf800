"""The micro-world: what its stories promise, that the oracle is exact, that the count models stay
far below it."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.next_sentence import make_pairs
from course_lib.text.counts import EDGE, NeighbourCounts, Unigram
from course_lib.text.grammar import Grammar, Hole, RulesError
from course_lib.text.oracle import Oracle
from course_lib.text.world import KINDS, MicroWorld, Story

SHIPPED = Path(__file__).parent.parent.parent / "data" / "world"
TRAINING_SET = 40_000  # stories, seed 0: the size that the data sheet states

TINY_RULES = {
    "version": "tiny",
    "heldout_share": 0.1,
    "rank_exponent": 1.0,
    "topics": {"sea": 2, "wood": 1},
    "roles": {"hero": "people", "thing": "things", "inn": "inns"},
    "facts": {"people.sex": "pronouns"},
    "plans": [
        {"weight": 3, "stages": ["open", "end"]},
        {"weight": 1, "stages": ["open", "middle", "end"]},
    ],
}
TINY_WORDS = {
    "people": "name topic sex job\nada sea f cook\nbo sea m cook\ncleo wood f hunter\ndan "
    "wood m cook",
    "pronouns": "sex he\nf she\nm he",
    "things": "one many topic\nbark barks sea\nnet nets sea\nbark barks wood\nbat bats wood",
    "inns": "inn\nred_moon\nold_red_moon\nmoon_moon",
}
TINY_SENTENCES = {
    "open": {
        "has": "{hero} has one {thing} .",
        "job": "one {hero.job} sees {thing.many} at {inn} .",
    },
    "middle": {"he": "{hero.sex.he} likes {inn} .", "it": "{hero.sex.he} likes it ."},
    "end": {"name": "{hero} goes to {inn} .", "many": "all {thing.many} go to {inn} ."},
}


@pytest.fixture(scope="module")
def world() -> MicroWorld:
    return MicroWorld.load(SHIPPED)


@pytest.fixture(scope="module")
def train(world: MicroWorld) -> list[Story]:
    return world.stories(TRAINING_SET)


@pytest.fixture(scope="module")
def heldout(world: MicroWorld) -> list[Story]:
    return world.stories(600, split="heldout")


@pytest.fixture(scope="module")
def tiny() -> MicroWorld:
    return MicroWorld(Grammar(TINY_RULES, TINY_WORDS, TINY_SENTENCES), "0" * 64)


# ------------------------------------------------------------------ what the stories promise


def test_at_least_a_thousand_types_are_used_and_each_is_one_piece(world, train):
    used = {word for story in train[:20_000] for word in story.text.split()}
    assert len(used) >= 1_000
    assert all(world.tokenizer.tokenize(word) == [word] for word in used)
    assert all(word == word.lower() for word in used) and "." in used


def test_stories_fit_a_sequence_of_64(world, train):
    lengths = [len(story.text.split()) for story in train]
    assert world.grammar.longest() <= 61 and max(lengths) <= 61
    assert min(lengths) >= 30 and 35 <= np.mean(lengths) <= 60
    assert {len(story.sentences) for story in train} <= {4, 5, 6, 7}
    assert len(world.sequences(train[:50]).sequences) == 50


def test_no_heldout_story_repeats_a_frame_with_the_same_entities(train, heldout):
    def fillers(story: Story) -> set[tuple[str, ...]]:
        return {
            (frame, *(f"{t.slot}={t.entity}" for t in sentence if t.slot))
            for frame, sentence in zip(story.frames, story.trace, strict=True)
        }

    known = set().union(*(fillers(story) for story in train[:10_000]))
    assert len(known) > 20_000
    assert not any(fillers(story) & known for story in heldout)
    assert not {s for story in heldout for s in story.sentences} & {
        s for story in train for s in story.sentences
    }


def test_fewer_than_one_in_a_hundred_heldout_8_grams_occur_in_training(train, heldout):
    known = {gram for story in train for gram in grams(story, 8)}
    seen = [gram in known for story in heldout for gram in grams(story, 8)]
    assert len(seen) > 20_000 and np.mean(seen) < 0.01
    pairs = {gram for story in train for gram in grams(story, 2)}
    assert np.mean([gram in pairs for story in heldout for gram in grams(story, 2)]) > 0.9


def grams(story: Story, n: int) -> list[tuple[str, ...]]:
    words = story.text.split()
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def test_every_sentence_is_one_of_its_split(world, train, heldout):
    assert {world.split_of(s) for story in train[:500] for s in story.sentences} == {"train"}
    assert {world.split_of(s) for story in heldout for s in story.sentences} == {"heldout"}


def test_the_same_seed_tells_the_same_stories_everywhere(world, train):
    assert [s.text for s in world.stories(20)] == [s.text for s in train[:20]]
    assert world.stories(20, seed=1)[0].text != train[0].text
    text = "\n".join(story.text for story in train[:1000])
    pinned = {"7dc2a97ad5b0": "ded19a7735c3"}  # of the rules, and of the stories
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == pinned.get(world.hash[:12]), (
        f"rules {world.hash[:12]} tell other stories than were pinned: update both hashes if the "
        "rules changed"
    )


def test_stories_obey_the_facts(world, train):
    people = world.grammar.tables["people"]
    things = {row["one"] for row in world.grammar.tables["things"]}
    jobs = {row["name"]: row["job"] for row in people}
    for story in train[:2000]:
        words = story.text.split()
        hero = next(t.entity for s in story.trace for t in s if t.role == "hero")
        assert not (set(jobs.values()) & set(words)) - {jobs[hero]} - things


def test_events_keep_their_order(train):
    for story in train[:500]:
        stages = [frame.split(".")[0] for frame in story.frames]
        assert [s for s in stages if s in ("first", "then", "last")] == ["first", "then", "last"]


def test_some_words_have_two_senses_and_keep_different_company(world, train):
    topics = defaultdict(set)
    for row in world.grammar.tables["things"]:
        topics[row["one"]].add(row["topic"])
    assert {"bank", "spring", "seal"} <= {word for word, found in topics.items() if len(found) > 1}
    told = Counter(story.topic for story in train if "spring" in story.text.split())
    assert set(told) == topics["spring"]


def test_names_of_several_words_are_one_word_a_token(world, train):
    lengths = {len(row["site"].split("_")) for row in world.grammar.tables["sites"]}
    assert lengths == {2, 3}
    assert all("_" not in story.text for story in train)


def test_the_trace_tells_where_every_word_comes_from(world, heldout):
    kinds = Counter()
    for story in heldout[:200]:
        assert tuple(tuple(t.word for t in sentence) for sentence in story.trace) == story.words
        tokens = [t for sentence in story.trace for t in sentence]
        kinds.update(t.kind for t in tokens)
        assert all((t.slot == "") == (t.kind == "function") for t in tokens)
    assert set(kinds) == set(KINDS)


def test_sequences_point_back_into_their_stories(world, heldout):
    told = world.sequences(heldout[:50])
    positions = told.positions(told.origins[:, :, 0] >= 0)
    words = [told.stories[i].words[s][w] for i, s, w in positions]
    ids = told.sequences.input_ids[told.origins[:, :, 0] >= 0].tolist()
    assert words == [world.tokenizer.token(i) for i in ids]
    assert len(told.kinds(positions)) == len(words)


# ------------------------------------------------------------------ the oracle


def enumerate_stories(world: MicroWorld) -> dict[tuple[str, ...], float]:
    """Every story of a small world and its probability, by trying all draws: no code shared with
    the oracle."""
    found: dict[tuple[str, ...], float] = defaultdict(float)
    g = world.grammar
    for t, share in enumerate(g.topic_weights):
        for plan in g.plans:
            for frames in product(*(g.frames[stage] for stage in plan.stages)):
                p = share * plan.weight
                for stage in plan.stages:
                    p /= len(g.frames[stage])
                roles = sorted({i.role for f in frames for i in f.items if isinstance(i, Hole)})
                for rows in product(*(range(len(g.tables[g.roles[r]])) for r in roles)):
                    filled = dict(zip(roles, rows, strict=True))
                    weight = p * np.prod([g.prior[r][t, row] for r, row in filled.items()])
                    if weight:
                        found[tuple(say(g, f, filled) for f in frames)] += weight
    return found


def say(grammar: Grammar, frame, filled: dict[str, int]) -> str:
    said = []
    for item in frame.items:
        if isinstance(item, Hole):
            table = grammar.roles[item.role]
            row = grammar.tables[table][filled[item.role]]
            said += grammar.value(table, row, item.path).split("_")
        else:
            said.append(item)
    return " ".join(said)


def test_the_oracle_equals_brute_force_on_a_tiny_world(tiny):
    stories = enumerate_stories(tiny)
    assert len(stories) > 250 and abs(sum(stories.values()) - 1) < 1e-12
    by_hole: dict[tuple, dict[str, float]] = defaultdict(dict)
    for sentences, p in stories.items():
        for s, sentence in enumerate(sentences):
            words = sentence.split()
            for w, word in enumerate(words):
                holed = " ".join([*words[:w], "_", *words[w + 1 :]])
                hole = (*sentences[:s], holed, *sentences[s + 1 :])
                by_hole[(hole, s, w)][word] = p
    oracle, compared = Oracle(tiny), 0
    for (hole, s, w), weights in by_hole.items():
        posterior = oracle.posterior([sentence.split() for sentence in hole], s, w)
        total = sum(weights.values())
        assert set(posterior) == set(weights)
        assert all(abs(posterior[x] - p / total) < 1e-9 for x, p in weights.items())
        compared += len(weights) > 1
    assert compared > 150


def likelihood(oracle, sentences):
    """The probability that the generator (without its split) tells exactly this story."""
    return oracle.joint(sentences, 0, 0).get(sentences[0][0], 0.0)


def test_the_likelihood_equals_brute_force_and_what_the_generator_tells(tiny, monkeypatch):
    stories, oracle = enumerate_stories(tiny), Oracle(tiny)
    for sentences, p in stories.items():
        assert abs(likelihood(oracle, [s.split() for s in sentences]) - p) < 1e-12
    # The oracle does not know the split.
    monkeypatch.setattr(tiny, "_end_reserved", lambda name, end, rows: False)
    n = 40_000
    told = Counter(story.sentences for story in tiny.stories(n))
    assert set(told) <= set(stories)
    for sentences, p in stories.items():
        assert abs(told[sentences] / n - p) < 5 * np.sqrt(p / n) + 1e-4


def test_oracle_is_far_above_the_counts(world, train, heldout):
    told = world.sequences(heldout[:300])
    selected = mask_sequences(told.sequences, world.special, seed=1).selected
    positions = told.positions(selected)
    documents = world.documents(train)
    oracle = Oracle(world).accuracy(told.stories, positions)
    counts = NeighbourCounts(documents).accuracy(told.sequences, selected)
    unigram = Unigram(documents).accuracy(told.sequences, selected)
    assert len(positions) > 1_500
    assert 0.88 <= oracle <= 0.97 and unigram + 0.2 < counts < oracle - 0.15


def test_the_oracle_is_calibrated_on_heldout_stories(world, heldout):
    oracle, expected, right = Oracle(world), [], []
    for story in heldout[:60]:
        for s, sentence in enumerate(story.words):
            for w, word in enumerate(sentence):
                posterior = oracle.score(story, s, w)
                expected.append(max(posterior.values()))
                right.append(next(iter(posterior)) == word)
                assert posterior[word] > 0 and abs(sum(posterior.values()) - 1) < 1e-9
    assert abs(np.mean(expected) - np.mean(right)) < 0.03


def test_a_position_outside_the_story_is_refused(world, heldout):
    with pytest.raises(IndexError, match="both counted from 0"):
        Oracle(world).score(heldout[0], 0, 99)
    with pytest.raises(ValueError, match="No word makes"):
        Oracle(world).posterior([["nobody", "says", "this", "."]], 0, 1)


# ------------------------------------------------------------------ count models, next sentence


def test_neighbour_counts_by_hand():
    counts = NeighbourCounts([[[5, 6, 7]], [[5, 6, 7]], [[5, 8, 7]], [[9, 8, 9]]])
    assert counts.predict(5, 7) == 6  # twice out of three
    assert counts.predict(9, 7) == 8  # the pair was never seen: the sides decide
    assert counts.predict(EDGE, 6) == 5
    assert Unigram([[[5, 6, 6]]]).predict() == 6
    for model in (Unigram, NeighbourCounts):
        with pytest.raises(ValueError, match="no words"):
            model([])


def test_a_bag_of_words_solves_next_sentence_well_but_not_wholly(world):
    linear_model = pytest.importorskip("sklearn.linear_model")
    parts = []
    for split, n in (("train", 3_000), ("heldout", 500)):
        documents = world.documents(world.stories(n, seed=4, split=split))
        rows = make_pairs(documents, world.special, length=64)
        size = world.special.vocab_size
        bags = [torch.zeros(len(rows), size) for _ in range(2)]
        for segment, bag in enumerate(bags):
            real = (rows.attention_mask == 1) & (rows.token_type_ids == segment)
            bag.scatter_add_(1, rows.input_ids, real.float())
        seen = torch.cat([bags[0] * bags[1], bags[0], bags[1]], 1)
        parts.append((seen.numpy(), rows.next_sentence_label))
    (x, y), (x_new, y_new) = parts
    score = linear_model.LogisticRegression(max_iter=300, C=0.3).fit(x, y).score(x_new, y_new)
    assert 0.85 <= score <= 0.97


# ------------------------------------------------------------------ wrong input


READ_TWICE = {
    **TINY_SENTENCES,
    "end": {**TINY_SENTENCES["end"], "again": "ada goes to {inn} ."},
}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda world: world.stories(0), "at least 1"),
        (lambda world: world.stories(-1), "at least 1"),
        (lambda world: world.stories(2.5), "at least 1"),
        (lambda world: world.stories(1, split="test"), "'train', 'heldout'"),
        (
            lambda _: Oracle(MicroWorld(Grammar(TINY_RULES, TINY_WORDS, READ_TWICE), "")),
            "one reading",
        ),
        (lambda _: MicroWorld.load(SHIPPED / "nowhere"), "Check the folder"),
    ],
)
def test_what_cannot_be_told_says_why(world, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(world)


def copied(folder: Path, file: str = "", old: str = "", new: str = "") -> Path:
    """The world's rules in that folder, with one change of one file."""
    for name in ("rules.toml", "english/words.toml", "english/sentences.toml"):
        text = (SHIPPED / name).read_text(encoding="utf-8")
        if name == file:
            assert old in text
            text = text.replace(old, new, 1)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text.replace("\n", "\r\n").encode())
    return folder


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("rules.toml", "[topics]", "[topics", "Expected TOML"),
        ("rules.toml", 'version = "', 'edition = "', "no version"),
        ("rules.toml", "[topics]", "[themes]", r"section \[topics\]"),
        ("rules.toml", "heldout_share = 0", "heldout_share = 7", "between 0 and 0.5"),
        ("rules.toml", 'look = "looks"', 'look = "colours"', "wants table 'colours'"),
        ("rules.toml", 'stages = ["open", ', 'stages = ["opening", ', "opening"),
        ("rules.toml", "weight = 1", "weight = -1", "above 0"),
        ("english/words.toml", "she  her", "she", "has 3 cells"),
        ("english/sentences.toml", "{hero.job}", "{hero.work}", "no column 'work'"),
        ("english/sentences.toml", "{hero.job}", "{boss}", "role 'boss'"),
        ("english/sentences.toml", "{hero.job}", "{hero.job.pay.day}", "leads nowhere"),
        ("english/sentences.toml", "{hero.job}", "{hero.job", "lower-case word"),
        ("english/sentences.toml", " .", "", "ending in ' .'"),
    ],
)
def test_damaged_rules_are_named(tmp_path, file, old, new, message):
    with pytest.raises(RulesError, match=message):
        MicroWorld.load(copied(tmp_path, file, old, new))


def test_version_and_hash_follow_the_files(world, tmp_path):
    copy = MicroWorld.load(copied(tmp_path))
    assert copy.version == world.version == "1.0" and len(world.hash) == 64
    assert copy.hash == world.hash  # whatever ends a line
    with open(tmp_path / "rules.toml", "a") as file:
        file.write("# a remark\n")
    assert MicroWorld.load(tmp_path).hash != world.hash
