"""Solutions of lecture 01 beside the library; hints that must be true."""

from __future__ import annotations

import math
import random

import pytest
import torch
from scipy.sparse import csr_matrix

from course_lib.config import BertConfig
from course_lib.encoder import Encoder
from course_lib.family.elmo import BiLMOutput, Elmo, ElmoConfig, ScalarMix
from course_lib.family.gpt import GptConfig, gpt_decoder
from course_lib.family.seq2seq import BartConfig, Seq2Seq
from course_lib.kernels.attention import attention_reference, causal_mask
from course_lib.lectures.lecture_01.exercises import (
    EXERCISES,
    attention,
    bilm,
    counting,
    mixing,
    nearest,
    visible,
)
from course_lib.objectives.bilm import bilm_labels, bilm_loss
from course_lib.teaching.exercises.form import Draw
from course_lib.teaching.exercises.outputs import alike
from course_lib.text.characters import spell_sentences
from course_lib.text.static_vectors import (
    StaticVectors,
    count_neighbours,
    frequent_words,
    positive_pmi,
)

BY_ID = {exercise.id: exercise for exercise in EXERCISES}


# ---------------------------------------------------------------- static vectors


@pytest.mark.parametrize("smoothing", [1.0, 0.75])
def test_the_pmi_is_the_librarys(smoothing):
    draw = random.Random(3)
    sentences = [draw.choices("abcdefgh", [8, 7, 6, 5, 4, 3, 2, 1], k=9) for _ in range(12)]
    counts = count_neighbours(sentences, tuple(frequent_words(sentences, 1)), 1)
    ours = counting.ppmi(torch.from_numpy(counts.toarray()), smoothing)
    assert alike(ours, positive_pmi(counts, smoothing).toarray(), 1e-12)
    assert (ours > 0).any() and (counts.toarray() == 0).any()


def test_the_pmi_by_hand_is_that_of_the_hint():
    counts = torch.tensor([[2.0, 0.0], [1.0, 1.0]])
    ppmi = counting.ppmi(counts, 1.0)
    assert alike(ppmi, torch.tensor([[math.log(4 / 3), 0.0], [0.0, math.log(2)]]))
    assert f"{ppmi[0, 0]:.4f}" in BY_ID["01.1"].hints[-1]
    assert f"{ppmi[1, 1]:.4f}" in BY_ID["01.1"].hints[-1]
    assert alike(positive_pmi(csr_matrix(counts.numpy()), 1.0).toarray(), ppmi)


def test_the_neighbours_are_the_librarys():
    for seed in range(5):
        vectors, word, k = nearest.case(Draw(seed), 12, 4, 5, 1.0)
        table = StaticVectors(tuple(map(str, range(12))), vectors)
        theirs = [int(name) for name, _ in table.neighbours(str(word), k)]
        assert nearest.neighbours(vectors, word, k) == theirs


def test_a_twin_is_the_nearest_neighbour():
    vectors, word, k = nearest.twin(Draw(1), 8, 3, 2)
    first = nearest.neighbours(vectors, word, k)[0]
    cosine = torch.cosine_similarity(vectors[word], vectors[first], dim=0)
    assert first < word and float(cosine) == pytest.approx(1.0, abs=1e-12)


# ---------------------------------------------------------------- ELMo


def test_the_loss_is_the_librarys():
    for seed in range(4):
        forward, backward, ids, real = bilm.case(Draw(seed), (4, 7, 2), 9)
        targets = bilm_labels(ids, real.long(), predicted=9, unk=1).targets
        theirs = bilm_loss(BiLMOutput(forward, backward), targets)["total"]
        assert alike(bilm.bilm_loss(forward, backward, ids, real), theirs, 1e-6)


def test_what_each_direction_predicts_is_what_the_hint_says():
    text = ["the", "ferry", "leaves", "at", "dawn"]
    assert " ".join(text) in BY_ID["01.3"].statement
    ids = torch.arange(5)[None]
    targets = bilm_labels(ids, torch.ones(1, 5), predicted=5, unk=9).targets
    ahead, behind = (targets[f"{way}_labels"][0].tolist() for way in ("forward", "backward"))
    hint, at = BY_ID["01.3"].hints[0], text.index("leaves")
    assert f"predicts `{text[ahead[at]]}`" in hint and f"predicts `{text[behind[at]]}`" in hint
    assert f"forward model has nothing to predict at `{text[ahead.index(-100)]}`" in hint
    assert f"backward model nothing at `{text[behind.index(-100)]}`" in hint


@torch.no_grad()
def test_the_mixture_is_that_of_elmo():
    torch.manual_seed(0)
    config = ElmoConfig(vocab_size=20, character_size=4, max_characters=12, cell_size=8,
                        filters=((1, 3), (2, 5)), projection_size=6)  # fmt: skip
    model, mix = Elmo(config).eval(), ScalarMix(3).eval()
    mix.weights.copy_(torch.randn(3))
    mix.gamma.fill_(1.7)
    ids, _ = spell_sentences([["ferries", "leave"], ["it", "rains"]], 12)
    states = model(ids, output_hidden_states=True).hidden_states
    word = model.words(ids)
    forward, backward = torch.stack(states[1:]).chunk(2, dim=-1)  # (L, B, T, P) each
    ours = mixing.mix(word, forward, backward, mix.weights, mix.gamma)
    assert alike(ours, mix(states), 1e-6)


# ---------------------------------------------------------------- attention, three kinds


def test_the_attention_is_the_librarys():
    for seed in range(4):
        queries, keys, values, seen = attention.case(Draw(seed), 4, 6, 5, 3, 0.4)
        q, k, v = (x[None, None] for x in (queries, keys, values))  # one sequence, one head
        output, weights, _ = attention_reference(q, k, v, seen[None])
        ours = attention.attend(queries, keys, values, seen)
        assert alike(ours, (weights[0, 0], output[0, 0]), 1e-12)
        assert not seen.all() and float(ours[0][~seen].abs().max()) == 0


def test_the_decoders_picture_is_the_librarys():
    for padding in (0, 2):
        _, _, real = visible.case(Draw(0), 0, 6, (0, padding))
        assert torch.equal(visible.visible(0, 6, real).long(), causal_mask(real.long()[None])[0])


def test_the_picture_is_that_of_the_hint():
    picture = str(visible.visible(2, 2, torch.ones(4, dtype=torch.bool)).long().tolist())
    assert picture in BY_ID["01.6"].hints[-1]


SIZES = dict(vocab_size=20, hidden_size=8, num_heads=2, num_layers=2, intermediate_size=12,
             max_positions=12)  # fmt: skip


def states_of(kind, source, target):
    """What a model makes of each token of source, then of target, (S + U, H)."""
    torch.manual_seed(0)
    if kind == "encoder":
        model, inputs = Encoder(BertConfig(**SIZES)), (source,)
    elif kind == "decoder":
        model, inputs = gpt_decoder(GptConfig(**SIZES)), (target,)
    else:
        model, inputs = Seq2Seq(BartConfig(**SIZES)), (source, None, target)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    out = model.double().eval()(*inputs, output_hidden_states=True)
    if kind != "encoder-decoder":
        return out.last_hidden_state[0]
    return torch.cat([out.encoder_last_hidden_state[0], out.decoder_hidden_states[-1][0]])


@pytest.mark.parametrize(
    ("kind", "S", "U"), [("encoder", 5, 0), ("decoder", 0, 5), ("encoder-decoder", 4, 3)]
)
@torch.no_grad()
def test_who_sees_whom_in_the_three_kinds(kind, S, U):
    """Each token is changed in turn: those change whose row says that they see it."""
    ids = torch.arange(5, 5 + S + U)[None]
    before = states_of(kind, ids[:, :S], ids[:, S:])
    seen = torch.zeros(S + U, S + U, dtype=torch.bool)
    for j in range(S + U):
        other = ids.clone()
        other[0, j] = 19
        after = states_of(kind, other[:, :S], other[:, S:])
        seen[:, j] = (after - before).abs().amax(1) > 1e-9
    assert torch.equal(seen, visible.visible(S, U, torch.ones(S + U, dtype=torch.bool)))
