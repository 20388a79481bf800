"""The views of lecture 09: what they draw is what the library selects, links and learns."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from view_parts import picture_of, plain

from course_lib.kernels.span_masking import length_probabilities
from course_lib.lectures.lecture_09.views import boundary, fusion, graph, linked, spans, units
from course_lib.objectives.span_boundary import mask_spans
from course_lib.objectives.transe import Translations
from course_lib.teaching.playgrounds import one_row
from course_lib.text.knowledge_graph import KnowledgeGraph, world_graph
from course_lib.text.units import noun_phrases
from course_lib.text.wordpiece import WordPiece, word_numbers
from course_lib.text.world import MicroWorld

TEXT = "the river rose over its bank after the rain and the old bridge was closed"


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece.from_words(sorted(set(TEXT.split())))


@pytest.fixture(scope="module")
def world() -> MicroWorld:
    return MicroWorld.load()


@pytest.fixture(scope="module")
def facts(world: MicroWorld) -> KnowledgeGraph:
    return world_graph(world)


# ---------------------------------------------------------------- spans


@pytest.mark.parametrize("seed", [0, 3, 11])
@pytest.mark.parametrize("settings", [{}, {"merge": False}, {"one_draw": False}, {"p": 1.0}])
def test_the_spans_are_those_that_the_library_selects(
    tokenizer: WordPiece, seed: int, settings: dict
) -> None:
    picture = spans.spans_picture(tokenizer, TEXT, seed=seed, **settings)
    row = one_row(tokenizer, TEXT)
    words = word_numbers(tokenizer, row.input_ids, row.attention_mask)
    masked = mask_spans(row, tokenizer.special, words, seed=seed, **settings)
    labels = [
        f"span {n}" for n, (a, b) in enumerate(masked.spans.tolist(), 1) for _ in range(a, b + 1)
    ]
    assert re.findall(r"\((span \d+)", picture.text.split("\n")[0].replace("_", "")) == labels
    assert f"{len(masked.predict_at)} of 15 tokens" in picture.text
    for number, (first, last) in enumerate(masked.spans.tolist(), 1):
        words_of_span = " ".join(["[CLS]", *TEXT.split()][first : last + 1])
        assert f"span {number}: “{words_of_span}”" in picture.text


def test_a_span_has_one_fate_or_each_token_its_own(tokenizer: WordPiece) -> None:
    alone, together = (
        [spans.spans_picture(tokenizer, TEXT, seed=s, one_draw=one).text for s in range(60)]
        for one in (False, True)
    )
    assert any(" and kept" in text or " and random" in text for text in alone)
    assert not any(" and kept" in text or " and random" in text for text in together)


def test_spans_view_follows_its_controls(tokenizer: WordPiece) -> None:
    live = spans.spans_view(tokenizer, TEXT)
    assert picture_of(live).endswith(live.static.html)
    for name, value in (("p", 1.0), ("longest", 1), ("seed", 7), ("merge", False)):
        live.controls[name].value = value
    assert "in 3 spans" in picture_of(live)  # each of one word
    for text, error in (
        ("", "The sentence is empty"),
        ("the brigde", "Near in spelling: “bridge”"),
    ):
        live.controls["text"].value = text
        assert error in plain(picture_of(live))


def test_lengths_are_the_formulas_and_the_draws_follow_it() -> None:
    lengths = spans.span_lengths()
    assert np.allclose(lengths.exact, length_probabilities(0.2, 10))
    assert lengths.mean == pytest.approx(3.797, abs=5e-4)
    assert lengths.heaped == pytest.approx(4.463, abs=5e-4)
    error = np.sqrt(lengths.exact * (1 - lengths.exact) / spans.SAMPLES)
    assert (np.abs(lengths.sampled - lengths.exact) < 5 * error).all()
    assert lengths.counted == pytest.approx({510: 3.94, 128: 3.60, 32: 2.62}, abs=0.05)
    alone = spans.span_lengths(1.0, 5)
    assert alone.mean == alone.heaped == 1 and alone.sampled[0] == 1


def test_lengths_view_draws_a_bar_a_length() -> None:
    live = spans.lengths_view()
    assert picture_of(live).endswith(live.static.html) and "3.80 words" in live.static.text
    parts = "".join(spans.length_parts(spans.span_lengths(0.5, 3), 600, 200))
    heights = [float(h) for h in re.findall(r'height="([\d.]+)" fill="#b9d8ea"', parts)]
    assert heights[1] / heights[0] == pytest.approx(0.5, rel=0.02) and len(heights) == 3
    live.controls["longest"].value = 1
    assert "Mean of the distribution: 1.00 words" in picture_of(live)


# ---------------------------------------------------------------- drawings


def test_drawings_name_what_they_show() -> None:
    drawing = boundary.boundary_drawing()
    assert "“the old mill” are masked" in drawing.text and "position in the span, 2" in drawing.text
    parts = drawing.inner
    assert parts.count("[MASK]") == 3 and parts.count("#e0f3ed") == 3  # two edges and their head
    parts = fusion.fusion_drawing().inner
    assert all(f">{word}<" in parts for word in (*fusion.WORDS, *fusion.ENTITIES))


def test_the_step_by_hand_leads_from_each_town_to_its_country() -> None:
    towns = graph.TOWNS
    for town, country in (("aldham", "north"), ("bering", "south")):
        reached = tuple(a + b for a, b in zip(towns[town], graph.STEP, strict=True))
        assert reached == towns[country]
    assert "".join(graph.step_parts()).count(">country<") == 2


# ---------------------------------------------------------------- units


def test_units_are_the_experiments(world: MicroWorld) -> None:
    story = world.stories(12, seed=5, split="heldout")[4]
    words = ["[CLS]", *story.text.split(), "[SEP]"]
    names = units.story_units(world, story, "entity")
    assert [" ".join(words[a:b]) for _, a, b in names] == ["lucky moon market"] * 3
    assert units.story_units(world, story, "basic") == []
    phrases = units.story_units(world, story, "phrase")
    assert phrases == [unit for unit in noun_phrases([story]) if unit[2] - unit[1] > 1]
    assert "quarinese salad" in [" ".join(words[a:b]) for _, a, b in phrases]


@pytest.mark.parametrize("level", ["phrase", "entity"])
def test_a_unit_is_selected_whole_or_not_at_all(world: MicroWorld, level: str) -> None:
    story = world.stories(12, seed=5, split="heldout")[4]
    story_units = units.story_units(world, story, level)
    whole = 0
    for seed in range(20):
        html = units.units_picture(world, story, level, seed).html
        boxes = re.findall(r'class="token token-(\w+)"', html)[: len(story.text.split()) + 2]
        for _, start, stop in story_units:
            selected = {box != "plain" for box in boxes[start:stop]}
            assert len(selected) == 1
            whole += selected == {True}
    assert whole


def test_units_view_follows_its_controls(world: MicroWorld) -> None:
    live = units.units_view(world, 4, seed=0)
    assert picture_of(live).endswith(live.static.html) and "names are units" in live.static.text
    live.controls["level"].value = "basic"
    assert "several words: none" in picture_of(live)
    live.controls["story"].value = 5
    live.controls["level"].value = "entity"
    assert "dragon hall" in picture_of(live)


# ---------------------------------------------------------------- graph


def test_the_graph_around_an_entity(facts: KnowledgeGraph) -> None:
    picture = graph.graph_picture(facts, "goza")
    for head, relation, tail in facts.about("goza"):
        assert f"{head} —{relation}→ {tail}" in picture.text
    busy = max(facts.entities, key=lambda name: len(facts.about(name)))
    leading = [fact for fact in facts.about(busy) if fact[2] == busy]
    assert f"and {len(leading) - graph.OTHERS} more that lead to {busy}" in (
        graph.graph_picture(facts, busy).text
    )
    live = graph.graph_view(facts, "goza")
    live.controls["entity"].value = "Lion Mill"
    assert "lindstad" in picture_of(live)
    live.controls["entity"].value = "gozza"
    assert "is not in the graph" in plain(picture_of(live)) and "goza" in plain(picture_of(live))


def test_nearest_tails_are_sorted_by_distance_and_facts_are_marked() -> None:
    small = KnowledgeGraph(
        ("a", "b", "c", "d", "e", "f"), ("r",), torch.tensor([[0, 0, 2]]), ("people",) * 6
    )
    points = torch.tensor([[0.0], [5.0], [1.1], [3.0], [-1.0], [9.0]])
    vectors = Translations(points, torch.tensor([[1.0]]))
    order = graph.nearest_tails(small, vectors, "a", "r")
    assert [name for name, _ in order] == ["c", "a", "d", "e", "b", "f"]
    assert order[0][1] == pytest.approx(0.1)
    picture = graph.step_picture(small, vectors, "a", "r")
    assert "Nearest to a + r: c." in picture.text and "ranks 1 of 6" in picture.text
    assert "no such fact" in graph.step_picture(small, vectors, "b", "r").text
    live = graph.steps_view(small, vectors, "a", "r")
    live.controls["entity"].value = "d"
    assert "Nearest to d + r: b." in picture_of(live)
    live.controls["entity"].value = "z"
    assert "is not in the graph" in plain(picture_of(live))


# ---------------------------------------------------------------- linked mentions


def test_linked_mentions_and_their_noise(world: MicroWorld, facts: KnowledgeGraph) -> None:
    text = "goza walks to lion mill ."
    tokens = world.tokenizer
    picture = linked.linked_picture(facts, tokens, text, another=0.0, removed=0.0)
    assert "2 mentions. goza: kept; lion mill: kept." in picture.text
    assert "_lion_(lion mill) _mill_(lion mill)" in picture.text
    bare = linked.linked_picture(facts, tokens, text, another=0.0, removed=1.0)
    assert "goza: taken away; lion mill: taken away" in bare.text and "lion(none)" in bare.text
    other = linked.linked_picture(facts, tokens, text, another=1.0, removed=0.0).text
    labels = re.findall(r"«(?:lion|mill)»\(([^)]*)\)", other)
    assert len(labels) == 2 and labels[0] == labels[1] != "lion mill"
    none = linked.linked_picture(facts, tokens, "they drive the train .")
    assert "No entity of the graph is named here" in none.text
    live = linked.linked_view(facts, tokens, text, seed=3)
    assert picture_of(live).endswith(live.static.html)
    live.controls["text"].value = "goza walks to xyz"
    assert "never read “xyz”" in plain(picture_of(live))
