"""The world's facts as triples, linked mentions, and TransE."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from course_lib.objectives.sequences import PackedSequences
from course_lib.objectives.transe import (
    Translations,
    distances,
    false_facts,
    margin_loss,
    tail_ranks,
    transe,
)
from course_lib.text.knowledge_graph import Mention, align, find_mentions, world_graph
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld, story_sequences

WORLD = MicroWorld.load()
GRAPH = world_graph(WORLD)


# ---------------------------------------------------------------- the graph


def test_every_triple_is_a_fact_of_the_world():
    assert len(GRAPH.entities) == len(set(GRAPH.entities)) == len(GRAPH.kinds)
    for h, r, t in GRAPH.triples[::7].tolist():
        rows = WORLD.grammar._by_key(GRAPH.kinds[h])
        row = rows[GRAPH.entities[h].replace(" ", "_")]
        assert row[GRAPH.relations[r]].replace("_", " ") == GRAPH.entities[t]
    people = len(WORLD.grammar.tables["people"])
    assert (GRAPH.triples[:, 1] == GRAPH.relations.index("friend")).sum() == people
    assert ("goka", "job", "sailor") in GRAPH.about("goka")
    assert all("goka" in (h, t) for h, _, t in GRAPH.about("goka"))


def test_an_entity_that_is_not_in_the_graph():
    with pytest.raises(
        ValueError, match=r"'gola' is not in the graph; .* 384 .* mean goza or goka"
    ):
        GRAPH.number("gola")
    with pytest.raises(ValueError, match=r"'QQQ' is not in the graph; expected one of its"):
        GRAPH.about("QQQ")


# ---------------------------------------------------------------- mentions


def test_mentions_are_those_the_world_knows_of():
    stories = WORLD.stories(60)
    sequences = story_sequences(WORLD, stories, 64)
    found = {
        (m.sequence, m.start, m.stop): GRAPH.entities[m.entity]
        for m in find_mentions(GRAPH, WORLD.tokenizer, sequences)
    }
    for n, story in enumerate(stories):
        place = 1
        for line in story.trace:
            for i, trace in enumerate(line):
                if trace.slot in ("hero", "guest", "food"):
                    assert found[n, place, place + 1] == trace.entity
                if trace.slot == "site" and (i == 0 or line[i - 1].slot != "site"):
                    assert found[n, place, place + len(trace.entity.split())] == trace.entity
                place += 1


def test_names_of_several_pieces_and_names_within_words():
    words = ["oak", "old", "inn", "gok", "##a", "##s", "the"]
    tokenizer = WordPiece.from_words(words)
    ids = torch.tensor([[2, *tokenizer.encode("the old oak inn goka gokas"), 3]])
    graph = GRAPH.__class__(("goka", "oak", "old oak inn"), (), torch.zeros(0, 3), ("", "", ""))
    sequences = torch.ones_like(ids)
    rows = PackedSequences(ids, sequences, torch.zeros_like(ids))
    assert find_mentions(graph, tokenizer, rows) == [Mention(0, 2, 5, 2), Mention(0, 5, 7, 0)]


@pytest.mark.parametrize(
    ("mention", "says"),
    [
        (Mention(0, 1, 2, 9), r"names entity 9; expected one of the graph's, 0 to 8\. Leave out"),
        (Mention(0, 1, 2, -1), r"names entity -1"),
        (Mention(0, 6, 9, 0), r"start=6, stop=9.* lies outside the text; .* 2 sequences of 8"),
        (Mention(2, 1, 2, 0), r"lies outside the text"),
        (Mention(0, -1, 2, 0), r"lies outside the text"),
        (Mention(0, 4, 4, 0), r"lies outside the text"),
        (Mention(1, 3, 5, 0), r"meets another mention; expected one entity a position"),
    ],
)
def test_mentions_that_cannot_be(mention: Mention, says: str):
    with pytest.raises(ValueError, match=says):
        align([Mention(1, 2, 4, 3), mention], (2, 8), 9)


def test_entities_stand_on_every_piece():
    aligned = align([Mention(0, 1, 4, 3), Mention(1, 7, 8, 0)], (2, 8), 9)
    assert aligned.tolist() == [[-1, 3, 3, 3, -1, -1, -1, -1], [-1] * 7 + [0]]
    first = align([Mention(0, 1, 4, 3), Mention(1, 7, 8, 0)], (2, 8), 9, first_only=True)
    assert first.tolist() == [[-1, 3, *[-1] * 6], [-1] * 7 + [0]]


# ---------------------------------------------------------------- TransE


def test_the_score_and_its_loss():
    vectors = Translations(torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[-1.0, 1]]))
    triples = torch.tensor([[0, 0, 1], [1, 0, 0]])
    assert distances(vectors, triples).tolist() == [0, 4]
    assert distances(vectors, triples, order=2).tolist() == pytest.approx([0, 8**0.5])
    assert margin_loss(torch.tensor([0.0, 2]), torch.tensor([4.0, 2.5]), 1.0).item() == 0.25


def test_false_facts_differ_in_one_place():
    triples = GRAPH.triples
    false = false_facts(triples, len(GRAPH.entities), torch.Generator().manual_seed(0))
    changed = false != triples
    assert (changed.sum(1) == 1).all() and not changed[:, 1].any()
    assert 0.4 < changed[:, 0].float().mean() < 0.6
    assert false.min() >= 0 and false[:, [0, 2]].max() < len(GRAPH.entities)


def test_it_learns_facts_but_not_a_ring_of_friends():
    """Each has one friend, and all friendships are one ring: a step that leads around it must be
    zero. What goes by many heads to one tail is learnt."""
    K, R = len(GRAPH.entities), len(GRAPH.relations)
    vectors = transe(GRAPH.triples, K, R, epochs=60)
    assert torch.allclose(vectors.entity.norm(dim=-1), torch.ones(K))
    assert vectors.losses[-1] < 0.2 * vectors.losses[0]
    ranks = tail_ranks(vectors, GRAPH.triples, GRAPH.triples)
    first = {
        r: (ranks[GRAPH.triples[:, 1] == i] == 1).float().mean().item()
        for i, r in enumerate(GRAPH.relations)
    }
    assert first["city"] > 0.6 and first["country"] > 0.7 and first["friend"] < 0.1
    again = transe(GRAPH.triples, K, R, epochs=2, seed=3)
    assert torch.equal(again.entity, transe(GRAPH.triples, K, R, epochs=2, seed=3).entity)
    friends = dict(
        GRAPH.triples[GRAPH.triples[:, 1] == GRAPH.relations.index("friend")][:, [0, 2]].tolist()
    )
    at, ring = (start := next(iter(friends))), 0
    while ring == 0 or at != start:
        at, ring = friends[at], ring + 1
    assert ring == len(friends)


def test_ranks_leave_other_right_tails_out():
    vectors = Translations(torch.eye(4), torch.zeros(1, 4))
    vectors = Translations(
        F.normalize(torch.tensor([[1.0, 0], [1, 0.1], [1, 0.2], [0, 1]]), dim=-1), torch.zeros(1, 2)
    )
    triple = torch.tensor([[0, 0, 2]])
    assert tail_ranks(vectors, triple, triple).item() == 3  # itself and entity 1 are nearer
    assert tail_ranks(vectors, triple, torch.tensor([[0, 0, 1], [0, 0, 2]])).item() == 2


@pytest.mark.parametrize(
    ("triples", "says"),
    [
        (torch.zeros(0, 3).long(), r"shape \(0, 3\) were given; expected \(N, 3\), at least one"),
        (torch.zeros(4, 2).long(), r"shape \(4, 2\)"),
        (torch.tensor([[0, 0, 4]]), r"entities from 0 to 4 were given; expected 0 to 3"),
        (torch.tensor([[0, 2, 1]]), r"relations from 2 to 2 were given; expected 0 to 1"),
    ],
)
def test_triples_that_do_not_fit(triples: Any, says: str):
    with pytest.raises(ValueError, match=says):
        transe(triples, 4, 2)
