"""Lecture 09's result files are what today's recipes, world and code would make; and what they
measure is what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib import MicroWorld
from course_lib.lectures.lecture_09 import experiments as masks
from course_lib.lectures.lecture_09 import knowledge
from course_lib.objectives.masked_lm import mask_whole_words
from course_lib.objectives.pretraining import pretraining_batch
from course_lib.teaching.results import read_result
from course_lib.text.units import noun_phrases, story_units
from course_lib.text.world import story_sequences


@pytest.fixture(scope="module")
def world():
    return MicroWorld.load()


@pytest.fixture(scope="module")
def stories(world):
    return world.stories(60, seed=4, split="heldout")


def words_of(stories):
    """The words of each story, and an empty one for [CLS] before them."""
    return [["", *(word for line in story.words for word in line)] for story in stories]


# ---------------------------------------------------------------- what is masked together


def test_noun_phrases_are_whole_and_a_determiner_begins_one(stories):
    words, units = words_of(stories), noun_phrases(stories)
    phrases = {" ".join(words[n][start:stop]) for n, start, stop in units}
    assert {len(phrase.split()) for phrase in phrases} >= {1, 2, 3}
    for phrase in phrases:
        assert "." not in phrase and "and" not in phrase.split()
        assert "the" not in phrase.split()[1:] or phrase.startswith("all the")
    ends = {(n, words[n][stop - 1]) for n, _, stop in units}
    for n, story in enumerate(stories):
        sites = [x.word for line in story.trace for x in line if x.slot == "site"]
        assert not sites or (n, sites[-1]) in ends  # a name is not joined to what follows it


def test_units_are_masked_whole_and_names_of_one_word_as_tokens(world, stories):
    sequences = story_sequences(world, stories, masks.LENGTH)
    units = story_units(world, stories, sequences)
    for name in ("phrases", "names"):
        word_of = units[name]
        masked = mask_whole_words(sequences, world.special, word_of, seed=3)
        for row, of in zip(masked.selected, word_of, strict=True):
            for unit in of[row].unique().tolist():
                assert bool(row[of == unit].all())
    joined = {name: int((of[:, 1:] == of[:, :-1]).sum()) for name, of in units.items()}
    assert joined["spans"] < joined["names"] < joined["phrases"]


def test_masked_names_stand_elsewhere_and_masked_facts_do_not(stories):
    words = words_of(stories)
    at, of = masks.repeated_names(stories)
    for name in of.unique():
        places = at[of == name]
        n, first = divmod(int(places[0]), masks.LENGTH)
        hidden = words[n][first : first + len(places)]
        rest = " ".join([*words[n][:first], "_", *words[n][first + len(places) :]])
        assert len(hidden) > 1 and " ".join(hidden) in rest
    for place in masks.fact_words(stories).tolist():
        n, t = divmod(place, masks.LENGTH)
        trace = [x for line in stories[n].trace for x in line][t - 1]
        assert trace.word == words[n][t] and trace.kind == "fact"
        assert sum(word == trace.word for word in words[n]) == 1


def test_a_unit_is_right_when_all_of_its_tokens_are():
    right, of = torch.tensor([True, True, False, True, True]), torch.tensor([0, 0, 1, 1, 2])
    assert masks.all_right(right, of).tolist() == [True, False, True]


def test_right_at_masks_all_its_positions(world, stories):
    sequences = story_sequences(world, stories[:3], masks.LENGTH)
    seen = {}

    class Reader(torch.nn.Module):
        def forward(self, ids, attention_mask, token_type_ids, at):
            seen["masked"] = (ids == world.special.mask).flatten().nonzero()[:, 0]
            logits = torch.nn.functional.one_hot(truth, world.special.vocab_size).float()
            return type("Out", (), {"logits": logits})

    at = torch.tensor([2, 3, 70])
    truth = sequences.input_ids.flatten()[at].clone()
    truth[1] += 1  # one wrong answer
    right = masks.right_at(Reader(), sequences, at, world.special.mask)
    assert torch.equal(seen["masked"], at) and right.tolist() == [True, False, True]
    assert world.special.mask not in sequences.input_ids


# ---------------------------------------------------------------- whose a pronoun is


def test_pronouns_to_learn_from_and_to_be_tested_with_are_of_the_right_kind(world, monkeypatch):
    monkeypatch.setattr(masks, "TESTED_PRONOUNS", 8)
    training, unseen = world.stories(600, seed=0), world.stories(800, seed=0, split="heldout")
    pronouns = masks._pronouns(world, training, unseen)
    assert len(pronouns.learned.questions) == 4 * masks.PRONOUNS_EACH
    assert {kind: len(of.questions) for kind, of in pronouns.tested.items()} == {
        "same": 16, "different": 16,
    }  # fmt: skip
    texts = {story.text for story in training}
    for kind, of in pronouns.tested.items():
        for question in of.questions:
            story = unseen[int(question.id[1:].split("p")[0])]
            his = {
                world.grammar.column(role, "sex.his")[story.rows[role]]
                for role in ("hero", "guest")
            }
            assert (len(his) == 1) == (kind == "same") and story.text not in texts
            assert story.text.startswith(question.passage)


# ---------------------------------------------------------------- entities


def test_a_pair_without_a_fact_has_a_tail_of_the_same_kind_as_its_twin(world):
    split = knowledge.split_facts(world, 1)
    graph, task = split.graph, knowledge.relation_task(world, split, 1)
    pairs = [tuple(dict.fromkeys(x for x in row if x >= 0)) for row in task.entity_ids.tolist()]
    facts = {(h, t) for h, _, t in graph.triples.tolist()}
    assert len(pairs) == 2 * len(facts)
    for (h, t), (same, other) in zip(pairs[::2], pairs[1::2], strict=True):
        assert h == same and graph.kinds[t] == graph.kinds[other]
        assert (h, t) in facts and (h, other) not in facts
    unrelated = task.names.index(knowledge.UNRELATED)
    assert (task.labels[1::2] == unrelated).all() and (task.labels[::2] != unrelated).all()


def test_labels_are_taken_from_facts_that_are_read_and_tests_ask_for_the_others(world):
    split = knowledge.split_facts(world, 0)
    read = {(h, t) for h, _, t in split.read.tolist()}
    task = knowledge.relation_task(world, split, 0)
    for row, learn in list(zip(task.entity_ids.tolist(), task.learn.tolist(), strict=True))[::2]:
        pair = tuple(dict.fromkeys(x for x in row if x >= 0))
        assert (pair in read) == learn
    country = knowledge.country_task(world, split)
    tested = {
        h for h, r, _ in split.tested.tolist() if split.graph.relations[r] in ("city", "country")
    }
    entities = [max(row) for row in country.entity_ids.tolist()]
    assert {e for e, learn in zip(entities, country.learn, strict=True) if not learn} == tested


def test_the_country_of_a_name_follows_from_two_facts(world):
    split = knowledge.split_facts(world, 0)
    task = knowledge.country_task(world, split)
    for row, label in zip(task.entity_ids.tolist()[::17], task.labels.tolist()[::17], strict=True):
        facts = {r: t for h, r, t in split.graph.about(split.graph.entities[max(row)])
                 if h == split.graph.entities[max(row)]}  # fmt: skip
        city = facts.get("city")
        if city:
            facts |= {r: t for h, r, t in split.graph.about(city) if h == city}
        assert task.names[label] == facts["country"]


def test_shuffled_vectors_are_the_right_ones_at_other_entities(world, monkeypatch):
    monkeypatch.setitem(knowledge.TRANSE, "epochs", 2)
    knowledge.translations.cache_clear()
    right, shuffled = (knowledge.entity_vectors(world, name, 0) for name in ("right", "shuffled"))
    knowledge.translations.cache_clear()
    assert knowledge.entity_vectors(world, "none", 0) is None
    assert torch.equal(right.sort(dim=0).values, shuffled.sort(dim=0).values)
    assert (right == shuffled).all(dim=1).float().mean() < 0.05


def test_the_fusion_model_begins_as_the_teacher_where_no_entity_is_linked(world, stories):
    """What enters from entities is zero there: only the fusion blocks' entity side is new."""
    model = knowledge.fusion_from_teacher(None, 0).eval()
    teacher = knowledge.micro_teacher()
    batch = pretraining_batch(story_sequences(world, stories[:4], 64), world.special)
    inputs = {name: x for name, x in batch.inputs.items()}
    with torch.no_grad():
        ours, theirs = model(**inputs).prediction_logits, teacher(**inputs).logits
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_without_links_a_classifier_reads_no_entity(world):
    task = knowledge.kind_task(world, knowledge.split_facts(world, 0), 0)
    which = torch.arange(5)
    assert (knowledge.inputs_of(task, which, linked=False)["entity_ids"] == -1).all()
    assert torch.equal(knowledge.inputs_of(task, which, True)["entity_ids"], task.entity_ids[:5])


# ---------------------------------------------------------------- the files


def test_what_was_measured_of_the_masks_hangs_together():
    stored = read_result("09_masks")
    assert [one["seed"] for one in stored["untrained"]] == list(masks.SEEDS)
    for name, runs in stored["runs"].items():
        for run in runs:
            spans = sum(count for _, count, _ in run["by_length"])
            right = sum(right for _, _, right in run["by_length"])
            assert right / spans == pytest.approx(run["span_exact"], abs=1e-6)
            assert ("boundary_accuracy" in run) == masks.RECIPES[name].sbo
        for run in runs:
            assert sum(run["answers"]) / len(run["answers"]) == pytest.approx(run["answers_mean"])
            assert len(run["answers"]) == len(run["entities_few"]) == len(masks.TUNED_SEEDS)
            for kind in ("whose_same", "whose_different"):
                assert len(run[kind]) == len(masks.TUNED_SEEDS)
                assert sum(run[kind]) / len(run[kind]) == pytest.approx(run[f"{kind}_mean"])


def test_the_ranks_are_those_of_the_seeds():
    stored = read_result("09_fusion")
    assert [one["seed"] for one in stored["ranks"]] == list(knowledge.SEEDS)


def test_a_run_trains_what_its_recipe_says(world):
    training = masks.training_text(world, world.stories(40, seed=0))
    for name, recipe in masks.RECIPES.items():
        batch = masks.batches_of(recipe, training, 0)(0)
        assert ("boundaries" in batch.inputs) == recipe.sbo, name
    quick = replace(masks.RECIPES["spans"], num_layers=1, hidden_size=32, steps=30)
    _, history = masks.train_masks(quick, training)
    assert history.losses["total"][-1] < history.losses["total"][0] - 0.5
