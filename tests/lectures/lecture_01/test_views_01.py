"""The views of lecture 01: the right numbers and links, in words and in the picture."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from view_parts import drawn, picture_of, plain

from course_lib import (
    MicroWorld,
    albert,
    bert,
    count_parameters,
    deberta,
    distilbert,
    electra_discriminator,
    published,
    roberta,
    tinybert,
)
from course_lib.encoder import Encoder
from course_lib.family.elmo import ElmoConfig, ElmoForBiLM, elmo
from course_lib.family.gpt import gpt
from course_lib.family.seq2seq import bart
from course_lib.lectures.lecture_01.by_hand import OTHER_WORDS, WORDS
from course_lib.lectures.lecture_01.senses import Mention, two_sense_words
from course_lib.lectures.lecture_01.views import (
    drawings,
    guesses,
    hand_attention,
    nearest,
    tree,
    who_sees_whom,
)
from course_lib.teaching.rooms import lectures_with
from course_lib.text.characters import WordVocabulary, spell_sentences
from course_lib.text.static_vectors import StaticVectors

# ---------------------------------------------------------------- attention by hand


def test_one_word_gathers() -> None:
    sentence = " ".join(WORDS)
    live = hand_attention.hand_attention_view(3)
    assert "“bank” gathers with weights the 0.11, river 0.30" in live.static.text
    assert "water 1 → 1.48; money 1 → 0.30" in plain(picture_of(live))
    live.controls["sentence"].value = " ".join(OTHER_WORDS)
    assert "water 1 → 0.30; money 1 → 1.48" in plain(picture_of(live))
    live.controls["only_before"].value = True
    assert "not seen: comes after" in drawn(picture_of(live))
    assert "paid 0.00" in plain(picture_of(live))
    first = hand_attention.hand_attention_picture(sentence, 1, only_before=True)
    assert "the 1.00, river 0.00" in first.text


# ---------------------------------------------------------------- who sees whom


def test_who_sees_whom_is_what_the_models_do() -> None:
    """A token sees another exactly if its vector changes with the other."""
    tiny: dict[str, Any] = {
        "vocab_size": 40, "hidden_size": 16, "num_heads": 2, "num_layers": 2,
        "intermediate_size": 16, "max_positions": 20, "initializer_range": 0.3,
    }  # fmt: skip
    torch.manual_seed(0)
    both = bart(**tiny, pad_token_id=0).double().eval()
    models = {
        who_sees_whom.ENCODER: Encoder(published("bert", "tiny", **tiny)).double().eval(),
        who_sees_whom.DECODER: gpt(**tiny).decoder.double().eval(),
    }
    read = len(who_sees_whom.READ)

    def states(kind: str, ids: torch.Tensor) -> torch.Tensor:
        if kind != who_sees_whom.BOTH:
            return models[kind](ids[None]).last_hidden_state[0]
        out = both(ids[None, :read], None, ids[None, read:], output_hidden_states=True)
        return torch.cat([out.encoder_last_hidden_state[0], out.decoder_hidden_states[-1][0]])

    for kind in who_sees_whom.THREE:
        expected = torch.tensor(who_sees_whom.sight(kind)) > 0
        ids = torch.arange(1, 1 + len(expected))
        with torch.no_grad():
            before = states(kind, ids)
            for j in range(len(ids)):
                changed = ids.clone()
                changed[j] += 20
                moved = (states(kind, changed) - before).abs().amax(dim=1) > 1e-9
                assert moved.tolist() == expected[:, j].tolist(), (kind, j)


def test_elmos_two_directions_see_one_side_each() -> None:
    ahead, back = (
        torch.tensor(who_sees_whom.sight(kind))
        for kind in (who_sees_whom.FORWARD, who_sees_whom.BACKWARD)
    )
    assert ahead.equal(ahead.tril()) and back.equal(ahead.T) and bool(((ahead + back) > 0).all())


def test_masks_are_shown_in_squares_and_words() -> None:
    live = who_sees_whom.masks_view()
    for kind in who_sees_whom.KINDS:
        live.controls["kind"].value = kind
        picture = picture_of(live)
        assert plain(picture).count(who_sees_whom.sight_in_words(kind, 2)) >= 1
    live.controls["kind"].value = who_sees_whom.BOTH
    live.controls["token"].value = 7
    assert "by cross-attention the, bank, of, the, river. It does not see: des, Flusses." in plain(
        picture_of(live)
    )
    live.controls["kind"].value = who_sees_whom.ENCODER  # five tokens: the last of them looks
    assert "“river” sees" in plain(picture_of(live))
    assert drawn(live.static.html).count('class="seen2"') == 20  # who writes sees what was read


# ---------------------------------------------------------------- drawings


def test_drawings_hold_the_released_sizes() -> None:
    svg = drawings.elmo_drawing().inner
    config = ElmoConfig()
    for size in (2_048, config.hidden_size, config.cell_size, *(n for _, n in config.filters)):
        assert f"{size:,}" in svg or f"{size}" in svg
    for drawing in (drawings.elmo_drawing(), drawings.three_drawing()):
        assert "<img" in drawing.html and len(drawing.text) > 100
    lines = drawings.three_drawing().inner.count("<polyline")
    gpt_lines, bert_lines, chains = 2 * 10, 2 * 16, 4 * 2 * 2 + 3 * 2 * 2
    assert lines == gpt_lines + bert_lines + chains


# ---------------------------------------------------------------- the family tree


def test_every_link_leads_to_a_page(root: Path) -> None:
    pages = {path.stem for path in (root / "notebooks" / "source").glob("[0-9][0-9]_*.py")}
    for member in tree.members().values():
        assert not member.link or member.link.removesuffix(".ipynb") in pages
        if member.page and member.page[:2] in lectures_with("claims"):
            assert member.page in pages, member.name
    linked = set(re.findall(r'href="([^"]+)"', tree.tree_svg()))
    assert "02_bert_mlm_nsp.ipynb" in linked and len(linked) >= 6
    assert not any(link.startswith("01_") for link in linked)


def test_the_tree_is_one() -> None:
    members = tree.members()
    for member in members.values():
        assert tree.ancestors(member.name)[-1] in ("Transformer", "word2vec")
        assert member.kind in tree.LOOKS and set(member.groups) <= set(tree.groups())
        assert re.fullmatch(r"20[12]\d(-[01]\d)?", member.when) and member.idea and member.source
        if member.parent:
            assert member.when >= members[member.parent].when[: len(member.when)]
    places = [(m.column, m.row) for m in members.values()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("name", sorted(tree.members()))
def test_months_are_those_of_the_arxiv_numbers(name: str) -> None:
    """Where the source is a paper on arXiv, its number says year and month; the corrected dates of
    erratum E88 are among them."""
    member = tree.members()[name]
    dated = re.match(r"arXiv (\d\d)(\d\d)\.", member.source)
    assert dated is None or member.when == f"20{dated[1]}-{dated[2]}"


def test_the_dates_that_one_lecture_has_wrong() -> None:
    wrong = {
        "BigBird": "2012-06", "M2M-100": "2021-07", "GPT-3": "2020-06", "BART": "2019-11",
        "InstructGPT": "2022-02",
    }  # fmt: skip
    for name, when in wrong.items():
        member = tree.members()[name]
        assert member.when != when and member.source.startswith("arXiv")


COUNTED: dict[str, list[Any]] = {
    "ELMo": [elmo],
    "BERT": [partial(bert, "base"), partial(bert, "large")],
    "mBERT": [partial(bert, "multilingual-cased")],
    "BioBERT": [partial(bert, "base-cased")],
    "SpanBERT": [partial(bert, "large-cased")],
    "RoBERTa": [partial(roberta, "base"), partial(roberta, "large")],
    "ALBERT": [partial(albert, "base"), partial(albert, "large")],
    "DistilBERT": [partial(distilbert, "base")],
    "TinyBERT": [partial(tinybert, "4"), partial(tinybert, "6")],
    "ELECTRA": [lambda s=s: electra_discriminator(s).encoder for s in ("small", "base", "large")],
    "DeBERTa": [partial(deberta, "base"), partial(deberta, "large")],
    "GPT-2": [partial(gpt, "small"), partial(gpt, "xl")],
    "BART": [partial(bart, "base"), partial(bart, "large")],
}


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_those_of_our_models(name: str) -> None:
    printed = re.findall(r"([\d,.]+)M", tree.members()[name].parameters)
    with torch.device("meta"):
        counts = [count_parameters(build()) for build in COUNTED[name]]
    assert [f"{count / 1e6:,.1f}" for count in counts] == printed


def test_the_tree_follows_its_controls() -> None:
    live = tree.tree_view("ALBERT")
    assert "Lan, Chen, Goodman" in plain(picture_of(live))
    assert 'href="05_albert_factorization.ipynb"' in picture_of(live)
    assert "Its line: ALBERT ← BERT ← Transformer." in plain(picture_of(live))
    assert picture_of(live).count('stroke="#1a1a1a" stroke-width="3"') == 2  # two branches
    live.controls["group"].value = "sesame"
    starred = re.findall(r"★ ([\w -]+(?: \(\w+\))?)<", picture_of(live))
    assert set(starred) >= {"ELMo", "BERT", "ERNIE (Baidu)", "ERNIE (Tsinghua)", "BigBird"}
    for name in tree.members():
        live.controls["member"].value = name
        assert name in plain(picture_of(live))
        assert name in live.static.text


# ---------------------------------------------------------------- nearest words


KNOWN = ["the", "river", "money", "bank"]


def toy_layers(mentions: Any) -> dict[str, torch.Tensor]:
    """Layer 0: the word itself; layer 1: the word before it; and a half that is not shown."""
    own = torch.tensor([KNOWN.index(m.words[m.at]) for m in mentions])
    before = torch.tensor([KNOWN.index(m.words[m.at - 1]) for m in mentions])
    layers = [torch.nn.functional.one_hot(x, 4).float() for x in (own, before)]
    return {"0": layers[0], "1": layers[1], "1 forward": layers[1][:, :2]}


MENTIONS = [
    Mention(("the", "river", "bank"), 2, 0, ""), Mention(("the", "money", "bank"), 2, 1, ""),
    Mention(("the", "bank"), 1, 1, ""), Mention(("the", "river"), 1, 0, ""),
]  # fmt: skip
SENSES = {"bank": ("water", "coins"), "river": ("flows", "cries")}


def test_nearest_mentions_are_those_of_the_layer() -> None:
    index = nearest.index_occurrences(MENTIONS, SENSES, toy_layers)
    assert list(index.layers) == ["0", "1"]
    assert index.senses == ["water", "coins", "coins", "flows"]
    query = ["money", "bank"]
    same_word = index.nearest(query, 1, "0", k=9)
    assert sorted(row for row, _ in same_word) == [0, 1, 2]
    assert [cosine for _, cosine in same_word] == pytest.approx([1, 1, 1])
    assert index.nearest(query, 1, "1", k=1) == [(1, pytest.approx(1.0))]
    with pytest.raises(ValueError, match=r"“money” was picked; .* two senses: bank, river"):
        index.nearest(query, 0, "0", k=1)


def test_the_layers_view_answers_what_it_cannot_read() -> None:
    index = nearest.index_occurrences(MENTIONS, SENSES, toy_layers)
    texts = {"one": ("The river bank", 3), "two": ("the money bank", 3)}
    live = nearest.layers_view({"one": index, "two": index}, texts, k=1)
    assert "one, layer 0" in live.static.text and "two, layer 1" in live.static.text
    assert "Of the 1 nearest: 1 water." in plain(picture_of(live))
    live.controls["model"].value = "two"
    assert live.controls["text"].value == "the money bank"
    assert "Of the 1 nearest: 1 coins." in plain(picture_of(live))
    live.controls["word"].value = 24  # the last word is taken
    assert "nearest to “bank”" in plain(picture_of(live))
    live.controls["word"].value = 2
    assert "“money” was picked" in plain(picture_of(live))
    live.controls["text"].value = "  "
    assert "The text is empty" in plain(picture_of(live))


def test_some_mentions_of_the_world() -> None:
    world = MicroWorld.load()
    mentions = nearest.some_mentions(world, each=3, stories=600)
    senses = two_sense_words(world)
    counts = Counter((m.words[m.at], m.sense) for m in mentions)
    assert counts and max(counts.values()) == 3 and {word for word, _ in counts} <= set(senses)
    assert all(m.words[m.at] not in m.words[: m.at] for m in mentions)


def test_static_neighbours_side_by_side() -> None:
    words = tuple("abcdef")
    tables = {
        name: StaticVectors(words, torch.randn(6, 4, generator=torch.Generator().manual_seed(s)))
        for s, name in enumerate(("one", "two"))
    }
    live = nearest.neighbours_view(tables, "c", k=4)
    for name, table in tables.items():
        listed = ", ".join(f"{word} {cosine:.2f}" for word, cosine in table.neighbours("c", 4))
        assert f"{name}, nearest to “c”: {listed}" in live.static.text
    live.controls["word"].value = "zebra"
    assert "'zebra' has no vector" in plain(picture_of(live))


# ---------------------------------------------------------------- two language models


@pytest.fixture(scope="module")
def bilm() -> tuple[ElmoForBiLM, WordVocabulary]:
    torch.manual_seed(0)
    vocabulary = WordVocabulary.of([["the", "river", "bank", "rose", "over", "it"]])
    config = ElmoConfig(
        vocab_size=vocabulary.vocab_size, character_size=4, filters=((1, 4), (2, 4)),
        num_highways=1, projection_size=8, cell_size=12, dropout=0.5,
    )  # fmt: skip
    return ElmoForBiLM(config), vocabulary


def test_each_guess_knows_one_side(bilm: tuple[ElmoForBiLM, WordVocabulary]) -> None:
    model, vocabulary = bilm
    model.train()  # the view turns dropout off, and on again
    words = ["the", "river", "bank", "rose"]
    both_sides = guesses.two_guesses(model, vocabulary, words, 1)
    assert model.training
    before = guesses.two_guesses(model, vocabulary, ["it", *words[1:]], 1)
    after = guesses.two_guesses(model, vocabulary, [*words[:3], "over"], 1)
    hidden = guesses.two_guesses(model, vocabulary, ["the", "it", "bank", "rose"], 1)
    assert hidden == both_sides  # the word itself is seen by neither
    assert before["from the left"] != both_sides["from the left"]
    assert before["from the right"] == both_sides["from the right"]
    assert after["from the left"] == both_sides["from the left"]
    assert after["from the right"] != both_sides["from the right"]
    with torch.no_grad():
        logits = model.eval()(*spell_sentences([words])).forward_logits[0, 1]
    likeliest = vocabulary.vocab[int(logits.argmax())]
    assert both_sides["from the left"][0][0] == likeliest
    with pytest.raises(ValueError, match="word 5 was asked for in a text of 4 words"):
        guesses.two_guesses(model, vocabulary, words, 4)


def test_the_guesses_view(bilm: tuple[ElmoForBiLM, WordVocabulary]) -> None:
    live = guesses.guesses_view(*bilm, "the river bank", word=2)
    assert "Hidden from both: “river”." in live.static.text
    assert "from the left, having read “the”" in live.static.text
    assert "from the right, having read “bank”" in live.static.text
    live.controls["word"].value = 20
    assert "Hidden from both: “bank”." in plain(picture_of(live))
    live.controls["text"].value = ""
    assert "The text is empty" in plain(picture_of(live))
