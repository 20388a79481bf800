"""Translation language modelling, XLM's masking, the sampling of languages, and the retrieval of
translations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from objective_parts import draw_sequences, special_ids, within_five_sd
from parity import drawn_weights

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.xlm import xlm_for_language_model
from course_lib.kernels.masking import KEPT, MASKED, RANDOM
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches, split_batch
from course_lib.objectives.translation_lm import mask_anywhere, mix_of, translation_sequences
from course_lib.text.language_sampling import (
    MBERT,
    by_blocks,
    by_sentences,
    mixed_languages,
    shared_out,
    smoothed,
    times_read,
)
from course_lib.train.metrics import evaluate
from course_lib.train.retrieval import retrieval, sentence_vectors

SPECIAL = special_ids(40)
END = replace(SPECIAL, cls=SPECIAL.sep)  # XLM's one token </s>, here 3
ENGLISH, FRENCH = [[10, 11, 12], [13]], [[20, 21], [22, 23, 24, 25]]


# ---------------------------------------------------------------- sequences


def test_a_pair_on_paper():
    """Four separators, the second language's positions from 0 again (facts of XLM's program)."""
    pairs = translation_sequences(ENGLISH, FRENCH, END, length=11, languages=(4, 2))
    assert pairs.input_ids.tolist() == [
        [3, 10, 11, 12, 3, 3, 20, 21, 3, 0, 0],
        [3, 13, 3, 3, 22, 23, 24, 25, 3, 0, 0],
    ]
    assert pairs.token_type_ids.tolist() == [
        [4, 4, 4, 4, 4, 2, 2, 2, 2, 0, 0],
        [4, 4, 4, 2, 2, 2, 2, 2, 2, 0, 0],
    ]
    assert pairs.position_ids is not None
    assert pairs.position_ids[:, :9].tolist() == [
        [0, 1, 2, 3, 4, 0, 1, 2, 3],
        [0, 1, 2, 0, 1, 2, 3, 4, 5],
    ]
    assert pairs.attention_mask.sum(1).tolist() == [9, 9]
    assert ((pairs.input_ids == 3).sum(1) == 4).all()
    assert pairs.position_ids.min() == 0 and pairs.position_ids.max() < 11
    as_bert = translation_sequences(ENGLISH, FRENCH, SPECIAL, length=9, start_again=False)
    assert as_bert.input_ids[0].tolist() == [2, 10, 11, 12, 3, 2, 20, 21, 3]
    assert as_bert.position_ids is not None
    assert as_bert.position_ids.tolist() == [list(range(9))] * 2


@pytest.mark.parametrize(
    ("first", "second", "settings", "says"),
    [
        (ENGLISH, FRENCH[:1], {}, "2 and 1 sentences were given; expected as many translations"),
        (ENGLISH, [[20], []], {}, r"pair 1 has 1 and 0 tokens; expected at least one in each"),
        (ENGLISH, FRENCH, {"length": 8}, r"pair 0 has 3 and 2 tokens.* at most length=8"),
        (ENGLISH, FRENCH, {"languages": (1, 1)}, r"languages=\(1, 1\) .* two different"),
        ([], [], {}, "No sequences were given"),
    ],
)
def test_pairs_that_cannot_be_made(first: Any, second: Any, settings: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says):
        translation_sequences(first, second, END, **{"length": 12, **settings})


def many_pairs(count: int = 60, words: int = 15) -> Any:
    """Sentence and "translation": every word's id and 15 more."""
    make = torch.Generator().manual_seed(3)
    lengths = torch.randint(2, 7, (count,), generator=make).tolist()
    texts = [torch.randint(5, 5 + words, (n,), generator=make).tolist() for n in lengths]
    return texts, [[word + 15 for word in text] for text in texts]


def test_batches_mask_both_sides_and_carry_languages_and_positions():
    pairs = translation_sequences(*many_pairs(), SPECIAL, length=24)
    batches = pretraining_batches(pairs, SPECIAL, batch_size=20, seed=1)
    sides = set()
    for step in range(6):
        inputs, targets = batches(step)
        shape = inputs["input_ids"].shape
        assert all(inputs[name].shape == shape for name in inputs if name != "predict_at")
        begins = (inputs["position_ids"] == 0) & inputs["attention_mask"].bool()
        assert (begins.sum(1) == 2).all()
        assert torch.equal(inputs["input_ids"][begins], torch.full((40,), SPECIAL.cls))
        language = inputs["token_type_ids"].flatten()[inputs["predict_at"]]
        sides |= set(language.tolist())
        assert ((targets["labels"] >= 20) == (language == 1)).all()
        parts = split_batch(batches(step), 3)
        again = torch.cat([part.inputs["position_ids"] for part in parts])
        assert torch.equal(again, inputs["position_ids"])
    assert sides == {0, 1}
    assert torch.equal(pairs[5:9].position_ids, pairs.position_ids[5:9])


def test_the_translation_is_read_and_positions_reach_the_model():
    """Of five words drawn at random each has probability 1/5, unless the other side is read; and
    with positions that run on, the same model answers otherwise."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": 40, "hidden_size": 32, "num_heads": 4, "num_layers": 2,
        "intermediate_size": 64, "max_positions": 24, "type_vocab_size": 2, "pad_token_id": 0,
        "hidden_dropout": 0.0, "attention_dropout": 0.0,
    }  # fmt: skip
    model = xlm_for_language_model("xnli15", **sizes)
    pairs = translation_sequences(*many_pairs(400, words=5), SPECIAL, length=24)
    batches = pretraining_batches(pairs[:350], SPECIAL, batch_size=50)
    before = evaluate(model, pairs[350:], SPECIAL).mlm_loss
    optimiser = torch.optim.Adam(model.parameters(), lr=6e-3)
    for step in range(225):
        inputs, targets = batches(step)
        loss = masked_lm_loss(model(**inputs), targets)["total"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    after = evaluate(model, pairs[350:], SPECIAL).mlm_loss
    assert before > 3 and after < 1 < math.log(5)
    assert evaluate(model, replace(pairs[350:], position_ids=None), SPECIAL).mlm_loss > after + 0.5


# ---------------------------------------------------------------- XLM's masking


def test_masking_anywhere():
    sequences = draw_sequences(SPECIAL, 3_000, 30)
    masked = mask_anywhere(sequences, SPECIAL, seed=2)
    real = sequences.attention_mask.bool()
    may = real.clone()
    may[:, 0] = False
    assert not masked.selected[~may].any()
    assert within_five_sd(int(masked.selected.sum()), int(may.sum()), 0.15)
    ends = may & (sequences.input_ids == SPECIAL.sep)
    assert within_five_sd(int(masked.selected[ends].sum()), int(ends.sum()), 0.15)
    counts = masked.selected.sum(1)
    assert counts.min() < 2 and counts.max() > 7  # drawn token by token
    for what, rate in ((MASKED, 0.8), (RANDOM, 0.1), (KEPT, 0.1)):
        assert within_five_sd(int((masked.done == what).sum()), len(masked.done), rate)
    same, other = (mask_anywhere(sequences, SPECIAL, seed=s) for s in (2, 3))
    assert torch.equal(same.input_ids, masked.input_ids)
    assert not torch.equal(other.predict_at, masked.predict_at)
    last = mask_anywhere(sequences[7:9], SPECIAL, seed=2, first_example=7)
    assert torch.equal(last.input_ids, masked.input_ids[7:9])
    with pytest.raises(ValueError, match=r"rate=1\.5 was given"):
        mask_anywhere(sequences, SPECIAL, rate=1.5)


def test_the_order_of_xlms_three_probabilities():
    """mask, keep, random there; [MASK], random, kept here."""
    assert mix_of("0.7,0.2,0.1") == (0.7, 0.1, 0.2)
    sequences = draw_sequences(SPECIAL, 1_000, 30)
    masked = mask_anywhere(sequences, SPECIAL, mix=mix_of("0.5,0.5,0"))
    assert set(masked.done.tolist()) == {MASKED, KEPT}
    for wrong in ("0.8,0.1", "0.8,0.1,x", ""):
        with pytest.raises(ValueError, match="expected three numbers with commas"):
            mix_of(wrong)
    with pytest.raises(ValueError, match="sums to"):
        mix_of("0.8,0.1,0.2")


# ---------------------------------------------------------------- how often a language is read


def test_sampling_by_hand():
    assert smoothed([81, 16, 1], 0.5) == pytest.approx([9 / 14, 4 / 14, 1 / 14])
    assert smoothed([900, 100], 0.5) == pytest.approx([0.75, 0.25])
    assert smoothed([900, 100], 1) == pytest.approx([0.9, 0.1])
    assert smoothed([900, 100, 1], 0) == pytest.approx([1 / 3] * 3)
    english, icelandic = smoothed([1_000, 1], MBERT)  # the README's example, "1000:1 to 100:1"
    assert english / icelandic == pytest.approx(1_000**0.7) == pytest.approx(125.89, abs=0.01)


def test_the_three_definitions_differ_on_one_corpus():
    """Two languages of 1,000 and 1,000 sentences, but 64,000 and 1,000 tokens."""
    assert by_sentences([1_000, 1_000], 0.5) == pytest.approx([0.5, 0.5])
    assert by_blocks([64_000, 1_000], 1_000, 0.5) == pytest.approx([8 / 9, 1 / 9])
    assert by_blocks([64_000, 1_000], 1_000) == pytest.approx([64 / 65, 1 / 65])  # α = 1
    assert by_sentences([3_000, 1_000]) == [0.5, 0.5]  # its default: all alike
    assert by_blocks([1, 512, 513], 512) == pytest.approx([1 / 4, 1 / 4, 2 / 4])


def test_how_often_a_text_is_read():
    assert times_read([900, 100], [0.75, 0.25]) == pytest.approx([0.75 * 1_000 / 900, 2.5])
    assert times_read([900, 100], smoothed([900, 100], 1)) == pytest.approx([1, 1])
    assert shared_out(10, [0.55, 0.25, 0.2]) == [6, 2, 2]  # 5.5, 2.5, 2: the first of the two
    assert shared_out(7, [1 / 3, 1 / 3, 1 / 3]) == [3, 2, 2]
    assert shared_out(5, [1.0, 0.0]) == [5, 0]


def test_sampling_that_makes_no_sense():
    for sizes in ([], [3, 0], [3, -1], [3, math.nan], [math.inf]):
        with pytest.raises(ValueError, match="expected one number above 0 a language"):
            smoothed(sizes, 0.5)
    for alpha in (-0.1, 1.2, math.nan):
        with pytest.raises(ValueError, match=r"expected 0 \(all languages alike\) to 1"):
            smoothed([1, 2], alpha)
    with pytest.raises(ValueError, match="factor=0 was given; expected an exponent above 0, or -1"):
        by_sentences([1, 2], 0)
    with pytest.raises(ValueError, match="block=0 was given"):
        by_blocks([1, 2], 0)
    for total, probabilities in ((0, [1.0]), (3, [0.5, 0.4]), (3, [])):
        with pytest.raises(ValueError, match="numbers from 0 on that sum to 1"):
            shared_out(total, probabilities)


def test_a_stream_of_several_languages():
    one, other = draw_sequences(SPECIAL, 50, 12), draw_sequences(SPECIAL, 4, 12)
    other = replace(other, input_ids=other.input_ids + 100)
    stream = mixed_languages([one, other], [0.75, 0.25], 40, tell=True, seed=1)
    assert stream.token_type_ids.unique(dim=1).flatten().tolist() == [0] * 30 + [1] * 10
    rows = [tuple(row) for row in stream.input_ids.tolist()]
    assert len(set(rows[:30])) == 30 and set(rows[:30]) <= {
        tuple(r) for r in one.input_ids.tolist()
    }
    small = [tuple(row) for row in other.input_ids.tolist()]
    assert sorted(rows[30:].count(row) for row in small) == [2, 2, 3, 3]
    again, another = (mixed_languages([one, other], [0.75, 0.25], 40, seed=s) for s in (1, 2))
    assert torch.equal(again.input_ids, stream.input_ids)
    assert not torch.equal(another.input_ids, stream.input_ids)
    assert not again.token_type_ids.any()  # nothing is told, as in mBERT and XLM-R
    assert len(mixed_languages([one, other], [1.0, 0.0], 5)) == 5
    for parts, probabilities in (([one], [0.5, 0.5]), ([], []), ([one, other[:0]], [0.5, 0.5])):
        with pytest.raises(ValueError, match="expected sequences of one length for each language"):
            mixed_languages(parts, probabilities, 4)
    with pytest.raises(ValueError, match=r"lengths \[11, 12\]"):
        mixed_languages([one, draw_sequences(SPECIAL, 4, 11)], [0.5, 0.5], 4)


# ---------------------------------------------------------------- retrieval


def test_retrieval_by_hand():
    """a finds A, b finds A, too, c finds C; backwards A finds a, B finds b, C finds c."""
    first = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    second = torch.tensor([[2.0, 0.4], [0.6, 0.8], [-0.1, 3.0]])
    cosines = torch.nn.functional.cosine_similarity(first[:, None], second[None], dim=2)
    assert cosines.argmax(1).tolist() == [0, 1, 2]
    assert retrieval(first, second) == (1.0, 1.0)
    second[1] = torch.tensor([-1.0, 0.0])
    found = retrieval(first, second)  # nobody is near B any more; b finds A, and B finds c
    assert found == pytest.approx((2 / 3, 2 / 3)) and found.mean == pytest.approx(2 / 3)
    assert retrieval(first, 5 * first.flip(0)) == pytest.approx((1 / 3, 1 / 3))
    second = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    first = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert retrieval(first, second) == pytest.approx((2 / 3, (0.5 + 0.5 + 1) / 3))


def test_retrieval_at_chance_and_past_a_languages_own_direction():
    torch.manual_seed(0)
    vectors = torch.randn(200, 16)
    noise = torch.randn(200, 16)
    assert retrieval(vectors, noise).mean < 0.03
    assert retrieval(torch.ones(200, 16), torch.ones(200, 16)) == pytest.approx((1 / 200, 1 / 200))
    moved = vectors + 0.3 * noise + 30 * torch.randn(1, 16)
    assert retrieval(vectors, moved, centred=True).mean > 0.95
    assert retrieval(vectors, moved).mean < 0.5
    for wrong in (vectors[:3], vectors[:, :4], vectors[0]):
        with pytest.raises(ValueError, match="the translations in the same order"):
            retrieval(vectors, wrong)


@torch.no_grad()
def test_sentence_vectors_are_means_of_words_in_each_layer():
    config = BertConfig(
        vocab_size=40, hidden_size=8, num_heads=2, num_layers=2, intermediate_size=16,
        max_positions=24,
    )  # fmt: skip
    encoder = drawn_weights(Encoder(config), 0.3).eval()
    pairs = translation_sequences(*many_pairs(7), SPECIAL, length=24)
    pairs = replace(pairs, token_type_ids=0 * pairs.token_type_ids)
    vectors = sentence_vectors(encoder, pairs, SPECIAL, batch_size=3)
    assert vectors.shape == (3, 7, 8)
    states = encoder(**pairs.inputs, output_hidden_states=True).hidden_states
    for n in (0, 6):
        at = [t for t, id in enumerate(pairs.input_ids[n].tolist()) if id not in (0, 2, 3)]
        for layer in range(3):
            expected = states[layer][n, at].mean(0)
            torch.testing.assert_close(vectors[layer, n], expected)
    empty = replace(pairs, input_ids=pairs.input_ids.clone())
    empty.input_ids[4] = SPECIAL.sep
    with pytest.raises(ValueError, match="Sentence 4 has no words"):
        sentence_vectors(encoder, empty, SPECIAL)
