"""The experiments on four languages in one model: what is read, what is asked, and that the result
files are what today's recipes would make."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib import MicroWorld
from course_lib.lectures.lecture_10 import world_runs as runs
from course_lib.teaching.results import read_result

torch.set_num_threads(1)
QUICK = replace(runs.RECIPES["four, MLM + TLM"], steps=3)


@pytest.fixture(scope="module")
def material():
    return runs.prepare()


@pytest.fixture(scope="module")
def english():
    return MicroWorld.load()


# ---------------------------------------------------------------- what is read


def test_what_is_spelled_alike_is_one_row_and_nothing_is_unknown(material, english):
    special, known = material.tokenizer.special, material.tokenizer.ids
    for sequences in [*material.train.values(), material.translations]:
        assert not (sequences.input_ids == special.unk).any()
    assert all(word in known for world in runs.worlds().values() for word in world.tokenizer.ids)
    shared = set(english.vocab) & set(runs.worlds()["norlish"].vocab)
    assert len(shared) > 100 and len(known) == len({word.casefold() for word in known})


def test_languages_tell_other_stories_and_no_unseen_sentence_is_read(material):
    def sentences(sequences):
        return {tuple(row[1 : int(m.sum()) - 1].tolist()) for row, m in
                zip(sequences.input_ids, sequences.attention_mask, strict=True)}  # fmt: skip

    stop = material.tokenizer.ids["."]
    for language, texts in material.test.items():
        read = sentences(material.train[language])
        assert not read & {tuple(text.ids) for text in texts}, language
        halves = {part for text in read for part in split_at(text, stop)}
        if language != "chinese":  # it has another full stop
            unseen = sentences(material.sentences[language])
            assert not {part for text in unseen for part in split_at(text, stop)} & halves
    stories = {lang: {s.text for s in MicroWorld.load().stories(200, seed=n)}
               for n, lang in enumerate(runs.LANGUAGES)}  # fmt: skip
    assert len(set.union(*stories.values())) > 790


def split_at(ids, stop):
    """Sentences of a text, as tuples with their full stop."""
    parts, part = [], []
    for one in ids:
        part.append(one)
        if one == stop:
            parts.append(tuple(part))
            part = []
    return parts


def test_translations_are_english_beside_each_other_language(material):
    types, real = material.translations.token_type_ids, material.translations.attention_mask.bool()
    count = len(types) // 3
    for language_id in (1, 2, 3):
        part = slice((language_id - 1) * count, language_id * count)
        assert set(types[part][real[part]].tolist()) == {0, language_id}
    assert (material.translations.position_ids == 0).sum(dim=1).eq(2).all()  # counted twice from 0


def test_language_ids_are_there_where_the_recipe_has_them(material):
    for name, recipe in runs.RECIPES.items():
        batches = runs.batches_of(recipe, material, 0)
        types = [batches(step).inputs["token_type_ids"].unique().tolist() for step in (0, 1)]
        beside = ["position_ids" in batches(step).inputs for step in (0, 1)]
        assert (types != [[0], [0]]) == recipe.told and beside == [False, recipe.tlm], name


# ---------------------------------------------------------------- what is asked


def test_slots_and_topics_are_the_same_in_all_languages(material):
    for texts in material.test.values():
        assert [text.topic for text in texts] == [t.topic for t in material.test["english"]]
    for language_id, (language, texts) in enumerate(material.test.items()):
        task = runs.slot_task(material, texts[:50], runs.packed(texts[:50], language_id))
        for row, ids, text in zip(task.labels, task.sequences.input_ids, texts, strict=False):
            labelled = [(int(i), task.names[n]) for i, n in zip(ids, row, strict=True) if n >= 0]
            true = [p for p in zip(text.ids, text.slots, strict=True) if p[1] in task.names]
            assert labelled == true, language


def test_words_alone_know_nothing_of_languages_without_common_words(material):
    alone, usual = runs.words_alone(material), runs.majority(material)
    for language in ("sumorian", "chinese"):
        for task in ("slots", "topic"):
            assert alone[f"{task} {language}"] < usual[task] + 0.03
    assert alone["slots english"] > 0.9 and alone["topic norlish"] > 0.5


def test_slot_accuracy_counts_labelled_words_only(material, monkeypatch):
    task = runs.slot_task(material, material.test["english"][:4],
                          runs.packed(material.test["english"][:4], 0))  # fmt: skip
    logits = torch.nn.functional.one_hot(task.labels.clamp_min(0), len(task.names)).float()
    monkeypatch.setattr(runs, "outputs_on", lambda *_: [logits])
    assert runs.slot_accuracy(None, task) == 1.0
    n, t = (task.labels >= 0).nonzero()[0].tolist()
    logits[n, t] = logits[n, t].flip(0) + torch.arange(len(task.names)).eq(task.labels[n, t]) * -9.0
    labelled = int((task.labels >= 0).sum())
    assert runs.slot_accuracy(None, task) == pytest.approx(1 - 1 / labelled)


def test_every_layer_is_looked_at_and_the_last_is_what_is_charted(material):
    model = runs.model_of(QUICK, material.tokenizer.special, 0).eval()
    layers = runs.layers(model.encoder, QUICK, material)
    measured = runs.measured(model, QUICK, material)
    for language in runs.LANGUAGES[1:]:
        assert len(layers[f"layers {language}"]) == 3
        assert measured[f"retrieval {language}"] == layers[f"layers {language}"][-1]
        assert measured[f"masked {language}"] < 0.05
    assert "retrieval english" not in measured and not model.training


# ---------------------------------------------------------------- the files


def test_what_was_measured_of_four_languages_hangs_together():
    stored = read_result("10_transfer")
    for name, recipe in runs.RECIPES.items():
        for run in stored["runs"][name]:
            assert {f"masked {x}" in run for x in recipe.languages} == {True}
            for language in runs.LANGUAGES[1:]:
                assert run[f"layers {language}"][-1] == run[f"retrieval {language}"]


def test_the_far_language_has_its_controls():
    stored = read_result("10_order")
    assert all(len(stored["untrained"][name]) >= len(runs.ORDER_SEEDS) for name in runs.ORDER)


def test_the_controls_are_as_recorded(material):
    stored = read_result("10_transfer")
    assert stored["majority"] == pytest.approx(runs.majority(material))
    assert stored["words_alone"] == pytest.approx(runs.words_alone(material), abs=0.01)
