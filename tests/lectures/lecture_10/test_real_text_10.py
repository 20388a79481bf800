"""Vocabularies and retrieval on real text: by hand on messages made up here, then the result files,
and, where the packages are installed, what is read from them."""

from __future__ import annotations

import pytest
import torch

from course_lib.lectures.lecture_10 import real_text as room
from course_lib.lectures.lecture_10.translations import Sentence, Translations, split_of
from course_lib.lectures.lecture_10.views import languages_table, layers_table, retrieval_chart
from course_lib.teaching.results import read_result

torch.set_num_threads(1)
FILES = [
    *((name, recipes, room.SEEDS) for name, recipes in room.RETRIEVALS.items()),
    *((name, recipes, room.TRIED_SEEDS) for name, recipes in room.TRIED.items()),
]
COLOURS, THINGS = ("red", "blue", "green", "grey"), ("door", "wall", "roof", "gate", "lamp")
RED, DOORS = ("rouge", "bleu", "vert", "gris"), ("porte", "mur", "toit", "grille", "lampe")
FRENCH = dict(zip(COLOURS + THINGS, RED + DOORS, strict=True))


@pytest.fixture(scope="module")
def made_up():
    """Forty messages in English, French and a language that only spells otherwise."""
    rows = [
        (f"The {colour} {thing} is {how}", colour, thing)
        for colour in COLOURS for thing in THINGS for how in ("open", "shut")
    ]  # fmt: skip
    return Translations(
        [Sentence(english, "Sphinx", {"fr": f"{FRENCH[thing]} {FRENCH[colour]} {english[-4:]}",
                                      "zh": english.upper()[::-1]})
         for english, colour, thing in rows],
        ("fr", "zh"), {}, {},
    )  # fmt: skip


@pytest.fixture
def material(made_up, monkeypatch):
    monkeypatch.setattr(room, "text", lambda: made_up)
    return room.prepare.__wrapped__(room.FEW, 90, 20)


# ---------------------------------------------------------------- vocabularies


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_vocabulary_is_learned_and_counted_by_hand(kind):
    tokenizer = room.learned(["red door", "red wall"] * 20, 24, kind)
    assert tokenizer.get_vocab_size() <= 24
    assert [tokenizer.token_to_id(name) for name in room.SPECIAL] == [0, 1, 2, 3]
    known = room.fertility(tokenizer, ["red door", "red"])
    pieces = len(tokenizer.encode("red door").ids) + len(tokenizer.encode("red").ids)
    assert known == pytest.approx((pieces / 3, pieces / 10, 0.0))
    strange = room.fertility(tokenizer, ["жж"])
    assert strange.unknown == 1.0 and strange.characters >= 1.0  # each one a piece
    with pytest.raises(ValueError, match="expected at least one word"):
        room.fertility(tokenizer, [" "])


def test_a_vocabulary_needs_a_kind_and_room_for_its_characters():
    with pytest.raises(ValueError, match='kind=\'words\' was given; expected "unigram" or "bpe"'):
        room.learned(["a"], 20, "words")
    with pytest.raises(ValueError, match="size=4 was given for text with 6 characters and special"):
        room.learned(["ab"], 4)


# ---------------------------------------------------------------- what is read


def test_pairs_are_translations_and_no_unseen_message_is_read(material, made_up):
    special, tokenizer = material.special, material.tokenizer
    read = {tuple(row[mask.bool()].tolist()) for row, mask in
            zip(material.train.input_ids, material.train.attention_mask, strict=True)}  # fmt: skip
    for name, sequences in material.unseen.items():
        assert len(sequences) == len(material.texts[name]) > 0
        assert {split_of(one) for one in material.texts["en"]} == {"heldout"}
        for row, mask in zip(sequences.input_ids, sequences.attention_mask, strict=True):
            assert tuple(row[mask.bool()].tolist()) not in read
    assert len(material.train) == 3 * len(made_up.aligned("en", "fr", split="train"))
    for ids, languages in zip(material.pairs.input_ids, material.pairs.token_type_ids, strict=True):
        starts = (ids == special.sep).nonzero().flatten().tolist()
        assert len(starts) == 4
        messages = [written(tokenizer, ids[a + 1 : b]) for a, b in (starts[:2], starts[2:])]
        other = made_up.languages[int(languages.max()) - 1]
        assert tuple(messages) in made_up.aligned("en", other)


def written(tokenizer, ids):
    return "".join(map(tokenizer.id_to_token, ids.tolist())).replace("▁", " ").strip()


def test_both_recipes_read_alone_and_only_one_reads_pairs(material, monkeypatch):
    monkeypatch.setattr(room, "material_of", lambda recipe: material)
    recipes = [room.RetrievalRecipe(room.FEW, tlm=tlm) for tlm in (False, True)]
    batches = [room.batches_of(recipe, None, 0) for recipe in recipes]
    seen = [[languages_a_row(of(step).inputs) for step in range(4)] for of in batches]
    assert seen == [[{1}, {1}, {1}, {1}], [{1}, {2}, {1}, {2}]]


def languages_a_row(inputs):
    rows = zip(inputs["token_type_ids"], inputs["attention_mask"].bool(), strict=True)
    return {len(set(languages[real].tolist())) for languages, real in rows}


# ---------------------------------------------------------------- what is found


def test_pairs_of_languages_are_summed_up_with_english_and_without():
    by_pair = {("en", "fr", False): [0.2, 0.4], ("en", "zh", False): [0.0, 0.2],
             ("fr", "zh", False): [0.1, 0.3], ("en", "fr", True): [0.5, 0.7]}  # fmt: skip
    layers = room.summed_up(by_pair)
    assert layers["layers with English"] == pytest.approx([0.1, 0.3])
    assert layers["layers without English"] == [0.1, 0.3] and layers["layers zh"] == [0.0, 0.2]
    assert room.last(layers)["retrieval fr centred"] == 0.7


def test_equal_spellings_find_each_other_and_other_scripts_do_not():
    texts = {"en": ["red door", "blue wall"], "fr": ["red door", "blue wall"]}
    assert room.by_spelling(texts) == {"retrieval fr": 1.0, "retrieval with English": 1.0}
    texts = {"en": ["red door", "blue wall"], "ru": ["жжж фф", "ыы ггг"]}
    assert room.by_spelling(texts)["retrieval ru"] == pytest.approx(0.5)  # all are as near


def test_counts_find_what_training_pairs_teach(material):
    counted = room.counts(material.unseen["fr"], material.special)
    assert counted.shape == (len(material.texts["fr"]), material.special.vocab_size)
    pieces = int(material.unseen["fr"].attention_mask.sum()) - 2 * len(counted)
    assert counted.sum() == pieces and not counted[:, material.special.pad].any()
    accuracies = room.by_counts(material, width=8)
    assert accuracies["retrieval fr"] > 2 / len(material.texts["en"])


# ---------------------------------------------------------------- the files


@pytest.mark.parametrize(("name", "recipes", "seeds"), FILES)
def test_the_last_layer_is_what_is_charted(name, recipes, seeds):
    stored = read_result(name)
    assert stored["looked_up"] > 80
    for recipe, runs in zip(recipes.values(), stored["runs"].values(), strict=True):
        for run in runs:
            for other in recipe.languages:
                assert run[f"layers {other} centred"][-1] == run[f"retrieval {other} centred"]


def test_english_is_what_the_other_languages_are_held_against():
    stored = read_result("10_vocabulary")
    for runs in stored["runs"].values():
        assert all(run["beside English en"] == 1.0 and run["words en"] > 1 for run in runs)


def test_tables_and_charts_say_what_the_files_say():
    for languages in ("three", "seven"):
        table = layers_table(languages)
        assert "layer 2" in table and "spelling alone" in table and "MLM + TLM" in table
        assert retrieval_chart(languages) is not None
    stored = read_result("10_retrieval_seven")
    assert f"{stored['by_counts']['retrieval ja']:.1%}" in languages_table()
