"""Three kinds of Transformer: what they read, who sees whom, what they say; the second language."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from course_lib.kernels.masked_loss import IGNORED
from course_lib.lectures.lecture_01.three_kinds import (
    GAPS,
    KINDS,
    LEFT,
    LONGEST,
    SHOWN,
    STEPWISE,
    TASKS,
    Example,
    KindRecipe,
    Trained,
    build,
    collate,
    example,
    heldout_examples,
    recipes,
    sentence_pairs,
    train,
    two_languages,
)
from course_lib.train.loop import History

BOTH = two_languages()
CLS, SEP, MASK = BOTH.special.cls, BOTH.special.sep, BOTH.special.mask
TALE = BOTH.tokenizer.encode("then they row the boat at heron gate .")


def untrained(kind, seed=0):
    recipe = KindRecipe(kind=kind, task="translate")
    model = build(recipe, BOTH.vocab_size, seed).eval()
    return Trained(recipe, BOTH, model, History())


# ---------------------------------------------------------------- the tasks


def test_the_second_language_is_the_first_read_from_its_end():
    for pair in sentence_pairs(BOTH)[:50]:
        for ids in pair:
            there = BOTH.translated(ids)
            assert BOTH.text(there[:-1]) == BOTH.text(ids[:-1])[::-1]
            assert BOTH.text(there).endswith(" .") and not set(there) & set(ids)
            assert len(there) == len(ids) and max(there) < BOTH.vocab_size


def test_what_the_world_says_is_possible_and_turned_round_it_is_not():
    sentences = [ids for pair in sentence_pairs(BOTH)[:200] for ids in pair]
    assert all(map(BOTH.is_possible, sentences))
    assert not any(BOTH.is_possible([*reversed(ids[:-1]), ids[-1]]) for ids in sentences)
    assert not BOTH.is_possible(sentences[0][:-1]) and not BOTH.is_possible([])


@pytest.mark.parametrize("task", TASKS)
def test_examples_are_drawn_from_the_two_sentences(task):
    a, b = sentence_pairs(BOTH)[3]
    source, target = example(BOTH, task, a, b, random.Random(0))
    if task == "fill gaps":
        words = iter(target)
        assert [next(words) if word == MASK else word for word in source] == a + b
        assert source.count(MASK) == len(target) == GAPS
        stops = [k for k, word in enumerate(a + b) if word == a[-1]]
        assert not any(source[k] == MASK for k in stops)
    else:
        assert (source, target) == {"continue": (a, b), "translate": (b, BOTH.translated(b))}[task]


def test_heldout_sentences_are_new_and_their_words_are_known():
    known = {tuple(ids) for pair in sentence_pairs(BOTH) for ids in pair}
    new = [ids for pair in sentence_pairs(BOTH, "heldout") for ids in pair]
    assert len(new) > 500 and not known & set(map(tuple, new))
    assert not any(BOTH.special.unk in ids for ids in new)
    assert heldout_examples(BOTH, "fill gaps") == heldout_examples(BOTH, "fill gaps")


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: example(BOTH, "fill", [9], [9], random.Random(0)), "expected one of fill gaps"),
        (lambda: build(KindRecipe(kind="coder"), 9), "expected one of encoder, decoder"),
    ],
)
def test_what_is_not_there_is_told(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()


# ---------------------------------------------------------------- what they read


def test_rows_by_hand():
    """Source 11 12, target 21; and 11 [MASK] with 12 behind it."""
    plain, gap = Example([11, 12], [21]), Example([11, MASK, 13], [12])
    cases = [
        ("encoder", plain, [CLS, 11, 12, SEP, MASK], [-1, -1, -1, -1, 21]),
        ("encoder", gap, [CLS, 11, MASK, 13, SEP], [-1, -1, 12, -1, -1]),
        ("decoder", plain, [CLS, 11, 12, SEP, 21], [-1, -1, -1, 21, SEP]),
        (LEFT, gap, [CLS, 11, 12, 13, SEP], [-1, 12, -1, -1, -1]),
    ]
    for kind, one, ids, labels in cases:
        batch = collate(kind, [one], BOTH)
        assert batch.inputs["input_ids"].tolist() == [ids]
        expected = [IGNORED if label == -1 else label for label in labels]
        assert batch.targets["labels"].tolist() == [expected]
    begun = collate(SHOWN, [Example([11], [21, 22, 23])], BOTH, [range(1)])
    assert begun.inputs["input_ids"].tolist() == [[CLS, 11, SEP, 21, MASK, MASK]]
    assert begun.targets["labels"].tolist() == [[IGNORED] * 4 + [22, 23]]
    batch = collate("encoder-decoder", [plain, Example([11], [21, 22])], BOTH)
    assert batch.inputs["input_ids"].tolist() == [[CLS, 11, 12, SEP], [CLS, 11, SEP, 0]]
    assert batch.inputs["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert batch.inputs["decoder_input_ids"].tolist() == [[CLS, 21, 0], [CLS, 21, 22]]
    assert batch.targets["labels"].tolist() == [[21, SEP, IGNORED], [21, 22, SEP]]


def moved(kind, part, at):
    """At which positions another word at `at` of this part changes what is said."""
    model = untrained(kind).model
    inputs = collate(kind, [Example(TALE, BOTH.translated(TALE))], BOTH).inputs
    other = {name: ids.clone() for name, ids in inputs.items()}
    other[part][0, at] = 40 if int(other[part][0, at]) != 40 else 41
    with torch.no_grad():
        change = (model(**inputs).logits - model(**other).logits).abs().amax(dim=-1)[0]
    return [k for k, size in enumerate(change.tolist()) if size > 1e-6]


def test_who_sees_whom():
    length = len(TALE)
    everywhere = list(range(2 * length + 2))
    assert moved("encoder", "input_ids", 3) == everywhere
    assert moved("decoder", "input_ids", 3) == everywhere[3:]
    assert moved("encoder-decoder", "input_ids", length) == list(range(length + 1))
    assert moved("encoder-decoder", "decoder_input_ids", 3) == list(range(3, length + 1))


def test_all_kinds_are_made_of_the_same_block():
    shapes = {kind: set(untrained(kind).model.state_dict()) for kind in KINDS}
    assert shapes["encoder"] == shapes["decoder"]
    one, other = (untrained(kind).model for kind in ("encoder", "decoder"))
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)  # the same draws: only the mask differs


# ---------------------------------------------------------------- what they say


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_word_by_word_says_in_a_batch_what_it_says_alone(kind):
    """Against a plain loop that reads everything anew after each word."""
    trained = untrained(kind, seed=1)
    some = heldout_examples(BOTH, "translate")[:4]
    assert len({len(one.source) for one in some}) > 1
    for answer, (source, _) in zip(trained.say(some), some, strict=True):
        alone = []
        while len(alone) < LONGEST and SEP not in alone:
            inputs = collate(kind, [Example(source, alone)], BOTH).inputs
            with torch.no_grad():
                alone.append(int(trained.model(**inputs).logits[0, -1].argmax()))
        assert answer == alone[: alone.index(SEP)] if SEP in alone else answer == alone


@pytest.mark.parametrize("kind", [STEPWISE, SHOWN])
def test_an_encoder_that_fills_from_the_left_reads_what_it_has_filled(kind):
    """Against a plain loop, one text and one [MASK] at a time."""
    trained = untrained(kind, seed=1)
    some = heldout_examples(BOTH, "continue")[:3]
    for answer, (source, target) in zip(trained.say(some), some, strict=True):
        read = [CLS, *source, SEP]
        ids = [*read, *[MASK] * len(target)]
        for at in range(len(read), len(ids)):
            row = torch.tensor([ids])
            with torch.no_grad():
                ids[at] = int(trained.model(row, torch.ones_like(row)).logits[0, at].argmax())
        assert answer == ids[len(read) :]


def test_an_encoder_says_as_many_words_as_it_is_asked_for():
    trained = untrained("encoder")
    some = heldout_examples(BOTH, "continue")[:5]
    assert [len(answer) for answer in trained.say(some)] == [len(one.target) for one in some]
    assert len(trained.answer("then they row the boat .", 4).split()) == 4
    assert len(trained.answer("then they [MASK] the [MASK] .").split()) == 2


def test_scores_by_hand(monkeypatch):
    some = [Example(TALE, TALE), Example(TALE, TALE)]
    trained = untrained("decoder")
    trained.recipe = replace(trained.recipe, task="continue")
    half = [*TALE[:3], *reversed(TALE[3:])][:5]
    monkeypatch.setattr(Trained, "say", lambda self, examples: [TALE, half])
    right = sum(a == b for a, b in zip(half, TALE, strict=False))
    assert trained.measure(some) == {
        "words": (len(TALE) + right) / (2 * len(TALE)), "whole": 0.5, "possible": 0.5,
    }  # fmt: skip


def test_a_decoder_that_reads_its_own_guesses_says_each_as_if_alone():
    """Against a plain loop: before a gap stand the true words and, in earlier gaps, its guesses."""
    trained = untrained(LEFT, seed=1)
    some, right = heldout_examples(BOTH, "fill gaps")[:3], list[bool]()
    for source, target in some:
        ids = [CLS, *source, SEP]
        for true in target:
            at = ids.index(MASK)
            row = torch.tensor([ids[:at]])
            with torch.no_grad():
                ids[at] = int(trained.model(row, torch.ones_like(row)).logits[0, -1].argmax())
            right.append(ids[at] == true)
    target[0], right[-GAPS] = ids[1 + source.index(MASK)], True  # one that the model does guess
    assert trained.measure(some)["own"] == pytest.approx(sum(right) / len(right))


def test_a_few_steps_lower_the_loss():
    for name in (
        "encoder-decoder: continue",
        "decoder, left only: fill gaps",
        f"{SHOWN}: continue",
    ):
        losses = train(recipes()[name], steps=25).history.losses["total"]
        assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
