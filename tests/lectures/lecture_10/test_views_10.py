"""The views of lecture 10: what they draw is what the library samples, packs, masks and attends."""

from __future__ import annotations

import re

import pytest
import torch
from view_parts import drawn, picture_of, plain

from course_lib import count_parameters, xlm_roberta
from course_lib.lectures.lecture_10 import pairs
from course_lib.lectures.lecture_10.views import (
    across,
    centring,
    fertility,
    objectives,
    parallel,
    sampling,
    sequence,
    sizes,
)
from course_lib.text.language_sampling import smoothed
from course_lib.text.world import MicroWorld, Story

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def english() -> MicroWorld:
    return MicroWorld.load()


@pytest.fixture(scope="module")
def others() -> dict[str, MicroWorld]:
    return {name: MicroWorld.load(language=name) for name in ("norlish", "sumorian")}


@pytest.fixture(scope="module")
def stories(english: MicroWorld) -> list[Story]:
    return english.stories(4, seed=16, split="heldout")


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_bars_are_as_long_as_the_fractions(alpha: float) -> None:
    sizes_ = {"a": 600, "b": 300, "c": 100}
    parts = "".join(sampling.sampling_parts(sizes_, alpha))
    widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="13"', parts)]
    whole = widths[0] / 0.6
    fractions = [w / whole for w in widths]
    assert fractions[::2] == pytest.approx([0.6, 0.3, 0.1], abs=2e-3)
    assert fractions[1::2] == pytest.approx(smoothed(list(sizes_.values()), alpha), abs=2e-3)


def test_sampling_view_follows_its_controls() -> None:
    live = sampling.sampling_view()
    assert picture_of(live).endswith(live.static.html)
    live.controls["languages"].value = "mBERT's README: 1,000 to 1"
    assert "is read 126 times as often" in plain(picture_of(live))
    live.controls["alpha"].value = 0.0
    assert "is read 1 times as often" in plain(picture_of(live))


def test_small_languages_words_are_cut_less_where_they_are_read_more() -> None:
    as_there, alike = fertility.fertility(1.0, 600), fertility.fertility(0.0, 600)
    assert alike.pieces["sumorian"] < as_there.pieces["sumorian"] - 0.5
    assert alike.pieces["english"] > as_there.pieces["english"]
    larger = fertility.fertility(0.0, 1_200)
    assert all(larger.pieces[name] < alike.pieces[name] for name in fertility.STORIES)
    for pieces in as_there.cut.values():
        assert len("".join(p.removeprefix("##") for p in pieces)) > 4
    live = fertility.fertility_view()
    assert picture_of(live).endswith(live.static.html)
    live.controls["alpha"].value = 0.0
    assert f"sumorian {alike.pieces['sumorian']:.2f} pieces a word" in plain(picture_of(live))


# ---------------------------------------------------------------- a pair


def test_the_picture_holds_a_pair_as_tlm_packs_it(english, others, stories) -> None:
    text = sequence.pair_picture(english, others["norlish"], stories[0], rate=0.0).text
    tokens = re.findall(r"(\S+)\(lang (\d) pos (\d+)\)", text)
    assert [t for t, _, _ in tokens].count("</s>") == 4
    left = stories[0].sentences[0].split()
    right = stories[0].told_in(others["norlish"]).sentences[0].split()
    assert [t for t, _, _ in tokens] == ["</s>", *left, "</s>", "</s>", *right, "</s>"]
    assert [int(lang) for _, lang, _ in tokens] == [0] * (len(left) + 2) + [1] * (len(right) + 2)
    assert [int(p) for _, _, p in tokens] == [*range(len(left) + 2), *range(len(right) + 2)]
    assert "0 selected in the first language, 0 in the second" in text


def test_pair_view_follows_its_controls(english, others, stories) -> None:
    live = sequence.pair_view(english, others, stories[0])
    assert picture_of(live).endswith(live.static.html)
    live.controls["start_again"].value = False
    assert "run on" in plain(picture_of(live))
    live.controls["language"].value = "sumorian"
    assert stories[0].told_in(others["sumorian"]).words[0][0] in picture_of(live)


def test_the_first_pair_shows_words_masked_on_both_sides(english, others, stories) -> None:
    text = sequence.pair_view(english, others, stories[0]).static.text
    masked = re.findall(r"\[MASK\]\(lang (\d) pos \d+ (\w+)\)", text)
    assert {side for side, _ in masked} == {"0", "1"}


def test_separators_are_masked_but_never_the_first(english, others, stories) -> None:
    texts = [
        sequence.pair_picture(english, others["norlish"], stories[0], rate=0.6, seed=s).text
        for s in range(12)
    ]
    assert all(text.startswith("</s>(lang 0 pos 0)") for text in texts)
    assert any("\n</s>" in text or "0 </s>)" in text or "</s>)" in text for text in texts)


# ---------------------------------------------------------------- a story in four languages


@pytest.mark.parametrize(("meaning", "slot"), [("its look", "look"), ("the hero", "hero")])
def test_the_same_meaning_is_framed_in_every_language(others, stories, meaning, slot) -> None:
    picture = parallel.parallel_picture(others, stories[0], meaning)
    versions = [stories[0], *(stories[0].told_in(world) for world in others.values())]
    expected = [t.word for one in zip(*(s.trace for s in versions), strict=True) for line in one
                for t in line if t.slot == slot]  # fmt: skip
    assert re.findall(r"\[(\S+)\]", picture.text) == expected
    assert len(expected) % len(versions) == 0 and expected


def test_parallel_view_follows_its_controls(others, stories) -> None:
    live = parallel.parallel_view(others, stories)
    assert picture_of(live).endswith(live.static.html)
    live.controls["story"].value = 2
    assert stories[2].sentences[0].split()[1] in plain(picture_of(live))


# ---------------------------------------------------------------- nearest neighbours


def test_translations_are_found_once_the_means_are_off() -> None:
    before, after = centring.nearest_on_paper(), centring.nearest_on_paper(1.0)
    assert before.nearest == [0, 0, 1] and after.nearest == [0, 1, 2]
    assert torch.allclose(after.english, after.other)
    assert centring.ENGLISH.mean(0).tolist() == [0, 2]
    assert centring.OTHER.mean(0).tolist() == [-1, 1]
    live = centring.centring_view()
    assert picture_of(live).endswith(live.static.html) and "1 of 3" in live.static.text
    assert drawn(live.static.html).count('stroke="#bbb"') == 6  # a ray to each point
    live.controls["taken"].value = 1.0
    assert "3 of 3 translations are found" in plain(picture_of(live))
    assert "stroke-dasharray" not in drawn(picture_of(live))


# ---------------------------------------------------------------- drawings and counts


def test_who_sees_whom() -> None:
    parts = objectives.objectives_drawing().inner
    assert parts.count("×") == 18 and parts.count('fill="#fff" stroke="#bbb"') == 3  # CLM's future
    assert "begin again with the second text" in objectives.objectives_drawing().text
    positions = [re.findall(r">(\d)</text>", parts)][0]
    assert positions.count("3") == 4 and "4" not in positions  # as in the table: separators at 0, 4


def test_sizes_are_those_of_built_models() -> None:
    text = sizes.sizes_table().text
    for count in ("177,853,440", "167,356,416", "248,976,384", "278,043,648", "559,890,432"):
        assert count in text
    with torch.device("meta"):
        encoder = xlm_roberta("base")
    size = sizes.size_of("XLM-R base")
    assert size.parameters == count_parameters(encoder)
    assert size.embeddings == encoder.embeddings.token.weight.numel()


# ---------------------------------------------------------------- attention across


@pytest.fixture(scope="module")
def model(english, others, stories):
    special = pairs.sentence_pairs(english, others["norlish"], stories).special
    return pairs.small_xlm(special, seed=0)


def test_lines_are_the_attention_weights(model, english, others, stories) -> None:
    picture = across.across_picture(model, english, others["norlish"], stories[0], 1, 3, 2, 1)
    one = pairs.sentence_pairs(english, others["norlish"], stories[:1])
    row = one.together[1:2]
    _, attentions = pairs.guesses(model, row, 3, one.special.mask)
    weights = attentions[1][0, 0, 3]
    split = len(stories[0].sentences[1].split()) + 2
    here = float(weights[split : split + len(one.second[1]) + 2].sum())
    assert f"{here:.0%} of this head's attention goes to the other language" in picture.text
    assert f"The masked word is “{stories[0].sentences[1].split()[2]}”" in picture.text
    assert float(weights.sum()) == pytest.approx(1, abs=1e-5)


def test_the_table_counts_every_word_that_has_a_translation(model, english, others, stories):
    """At random initialisation, too, whether it is spelled alike or otherwise."""
    table = across.alignment_table(model, english, others["norlish"], stories)
    rows = {line[:1]: line.split()[-4:] for line in table.splitlines()[1:]}
    assert list(rows) == ["0", "1", "2", "3"] and all(row[2][-1] in "%–" for row in rows.values())
    both = [(s, s.told_in(others["norlish"])) for s in stories]
    pairs_ = [p for one, two in both for p in zip(one.trace, two.trace, strict=True)]
    hits = [t.slot in {u.slot for u in there} for here, there in pairs_ for t in here if t.slot]
    assert sum(int(row[0]) for row in rows.values()) == sum(hits)


def test_a_word_beyond_the_sentence_is_its_last(model, english, others, stories) -> None:
    far, last = (
        across.across_picture(model, english, others["norlish"], stories[0], 0, word).text
        for word in (99, len(stories[0].sentences[0].split()))
    )
    assert far == last


def test_across_view_follows_its_controls(model, english, others, stories) -> None:
    live = across.across_view({"norlish": model}, english, others, stories, sentence=1, word=3)
    assert picture_of(live).endswith(live.static.html)
    live.controls["word"].value = 1
    assert f"The masked word is “{stories[0].sentences[1].split()[0]}”" in plain(picture_of(live))
