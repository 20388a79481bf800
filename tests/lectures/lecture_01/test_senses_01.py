"""Senses: what a mention is, halves without common modules, measures by hand, vectors alone and in
a batch."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.nn.functional as F

from course_lib.lectures.lecture_01 import senses
from course_lib.lectures.lecture_01.senses import (
    Mention,
    Sense,
    bag_of_words,
    bert_layers,
    documentation_mentions,
    elmo_layers,
    halves,
    known_senses,
    nearest_sense,
    sense_accuracy,
    similarities,
    static,
    static_context,
    tag_accuracy,
    two_sense_words,
    world_mentions,
)
from course_lib.teaching.shipped import micro_elmo, micro_teacher
from course_lib.text.characters import spell_sentences, words_of
from course_lib.text.static_vectors import StaticVectors
from course_lib.text.world import MicroWorld

WORLD = MicroWorld.load()
MENTIONS = [
    Mention(("they", "row", "to", "the", "bank", "."), 4, 0, "a"),
    Mention(("the", "bank", "counts", "every", "coin", "in", "millford", "."), 1, 1, "b"),
]


def made_up(modules=20, each=4):
    """Mentions of both senses in every module."""
    return [
        Mention(("a", "word"), 1, sense, f"m{module}")
        for module in range(modules)
        for sense in (0, 1)
        for _ in range(each)
    ]


# ---------------------------------------------------------------- mentions


def test_two_senses_of_the_world():
    words = two_sense_words(WORLD)
    assert words["bank"] == ["bank", "river"] and set(words["spring"]) == {"river", "workshop"}
    assert "boat" not in words


def test_a_mention_of_the_world_is_the_word_in_its_topic(monkeypatch):
    monkeypatch.setattr(senses, "FEWEST", 1)
    by_word = world_mentions(WORLD, 1_000)
    assert "trunk" in by_word
    stories = WORLD.stories(1_000, seed=0, split="heldout")
    for word, mentions in by_word.items():
        for mention in mentions:
            story = stories[int(mention.source.removeprefix("story "))]
            assert mention.words[mention.at] == word and mention.words in story.words
            assert two_sense_words(WORLD)[word][mention.sense] == story.topic
    longer = world_mentions(WORLD, 1_000, whole=True)
    assert {w: len(of) for w, of in longer.items()} == {w: len(of) for w, of in by_word.items()}
    assert min(len(m.words) for m in longer["trunk"]) > 20


def test_copies_of_a_docstring_count_once(monkeypatch):
    near = tuple(words_of("return the value of this key or nothing at all"))
    far = tuple(words_of("press a key to see what it does next ."))
    modules = {
        "one": [("one/a.py", [near, ("again", *near)]), ("one/b.py", [near, far[:6]])],
        "two": [("two/a.py", [far]), ("two/skip.py", [(*far[:5], "hear", *far[6:])])],
    }
    monkeypatch.setattr(senses, "_sentences", lambda package: iter(modules[package]))
    pair = (Sense("of a table", ("one",)), Sense("of a keyboard", ("two",), ("skip",)))
    mentions = documentation_mentions({"key": pair})["key"]
    assert sorted((m.source, m.sense, m.words[m.at]) for m in mentions) == [
        ("one/a.py", 0, "key"), ("two/a.py", 1, "key"),
    ]  # fmt: skip
    modules["two"] = []
    assert documentation_mentions({"key": pair}) == {"key": []}


def test_no_module_is_in_both_halves_and_both_senses_are_as_frequent():
    mentions = made_up() + [Mention(("a", "word"), 1, 0, f"m{k}") for k in range(20)]
    splits = [halves(mentions, seed) for seed in range(4)]
    for train, test in splits:
        sources = [{mentions[k].source for k in half} for half in (train, test)]
        assert sources[0] and sources[1] and not sources[0] & sources[1]
        for half in (train, test):
            counts = Counter(mentions[k].sense for k in half)
            assert counts[0] == counts[1] >= 30
            assert len(half) == len(set(half))
    assert len({tuple(train) for train, _ in splits}) == 4
    assert halves(mentions, 2) == splits[2]
    with pytest.raises(ValueError, match="expected at least 12"):
        halves(made_up(modules=4), 0)


# ---------------------------------------------------------------- measures


def test_one_vector_for_all_is_chance_and_a_vector_a_sense_is_certain():
    mentions, seeds = made_up(), range(3)
    same = torch.ones(len(mentions), 5)
    assert sense_accuracy(mentions, same, seeds) == {"probe": [0.5] * 3, "neighbour": [0.5] * 3}
    own = F.one_hot(torch.tensor([m.sense for m in mentions]), 2).float()
    assert sense_accuracy(mentions, own, seeds) == {"probe": [1.0] * 3, "neighbour": [1.0] * 3}
    torch.manual_seed(0)
    noise = sense_accuracy(mentions, torch.randn(len(mentions), 5), seeds)
    assert all(0.3 < x < 0.7 for of in noise.values() for x in of)


def test_the_nearest_neighbour_by_hand():
    """By the angle, not by the distance."""
    train, labels = torch.tensor([[1.0, 0.0], [0.0, 9.0]]), torch.tensor([0, 1])
    test = torch.tensor([[0.5, 0.4], [0.1, 0.2], [100.0, 99.0]])
    assert nearest_sense(train, labels, test).tolist() == [0, 1, 0]


def test_similarities_against_a_plain_double_loop():
    torch.manual_seed(0)
    mentions = {"a": made_up(3, 1), "b": made_up(2, 2)}
    layer = {word: torch.randn(len(of), 4) for word, of in mentions.items()}
    chance, by_word = [], {"same": [], "other": []}
    for word, of in mentions.items():
        sums = {"same": [], "other": []}
        for i, one in enumerate(of):
            for j, two in enumerate(of):
                if i != j:
                    cosine = F.cosine_similarity(layer[word][i], layer[word][j], dim=0)
                    sums["same" if one.sense == two.sense else "other"].append(float(cosine))
        for name, values in sums.items():
            by_word[name].append(sum(values) / len(values))
    for x in layer["a"]:
        chance += [float(F.cosine_similarity(x, y, dim=0)) for y in layer["b"]]
    expected = {name: sum(v) / len(v) for name, v in {**by_word, "chance": chance}.items()}
    assert similarities(mentions, layer) == pytest.approx(expected, abs=1e-6)


def test_tags_are_tested_on_other_sentences():
    words = [Mention(("x", "y"), at, at, f"s{k}") for k in range(40) for at in (0, 1)]
    layers = {"told": F.one_hot(torch.tensor([w.sense for w in words]), 2).float()}
    layers["sentence"] = F.one_hot(torch.tensor([int(w.source[1:]) for w in words])).float()
    accuracies = tag_accuracy(words, lambda mentions: layers, range(2))
    assert accuracies == {"told": [1.0, 1.0], "sentence": [0.5, 0.5]}


# ---------------------------------------------------------------- vectors


def test_static_vectors_and_bags_by_hand():
    words = ("they", "row", "bank", "coin")
    table = StaticVectors(words, torch.tensor([[1.0, 0], [0, 1], [5, 5], [2, 2]]))
    assert static(table)(MENTIONS)["word"].tolist() == [[5, 5], [5, 5]]
    assert static_context(table)(MENTIONS)["context"].tolist() == [[0.5, 0.5], [2, 2]]
    # Of "the", "bank" and ".", which both hold, in this order in every process; not of the word.
    assert bag_of_words(MENTIONS)["bag"].tolist() == [[1, 0, 1], [1, 0, 1]]


def test_elmos_vectors_are_those_of_the_sentence_alone():
    model = micro_elmo()[0].encoder
    vectors = elmo_layers(model)(MENTIONS)
    assert list(vectors)[:3] == ["0", "1", "2"] and vectors["2 forward"].shape == (2, 64)
    for row, mention in enumerate(MENTIONS):
        ids, mask = spell_sentences([mention.words])
        states = model(ids, mask, output_hidden_states=True).hidden_states
        for layer, state in enumerate(states):
            alone = state[0, mention.at + 1]
            assert torch.allclose(vectors[str(layer)][row], alone, atol=1e-5)
            if layer:
                assert torch.equal(vectors[f"{layer} forward"], vectors[str(layer)][:, :64])
                assert torch.equal(vectors[f"{layer} backward"], vectors[str(layer)][:, 64:])


def test_berts_vectors_are_those_of_the_words_first_piece():
    encoder, tokenizer = micro_teacher().encoder, WORLD.tokenizer
    vectors = bert_layers(encoder, tokenizer)(MENTIONS)
    assert list(vectors) == list("01234")
    for row, mention in enumerate(MENTIONS):
        ids = [tokenizer.special.cls, *tokenizer.encode(" ".join(mention.words)),
               tokenizer.special.sep]  # fmt: skip
        at = ids.index(tokenizer.id("bank"))
        out = encoder(torch.tensor([ids]), output_hidden_states=True)
        for layer, state in enumerate(out.hidden_states):
            assert torch.allclose(vectors[str(layer)][row], state[0, at], atol=1e-5)


def test_layers_of_all_words_are_put_together():
    mentions = {"bank": made_up(), "seal": made_up()}
    vectors = {"x": torch.tensor([[float(m.sense), 1.0] for m in mentions["bank"]])}
    (layer,) = known_senses(mentions, lambda of: vectors, range(2))
    assert layer["layer"] == "x" and list(layer["words"]) == ["bank", "seal"]
    assert layer["words"]["seal"]["probe"] == [1.0, 1.0] and layer["cosine"]["same"] > 0.99
