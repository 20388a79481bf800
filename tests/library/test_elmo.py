"""ELMo: the projected LSTM equals torch's in outputs and gradients, the rest an independent plain
version; characters, the loss, the released layout, files and bad input."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from parity import TOLERANCE, both_precisions

from course_lib.checkpoints import CheckpointError
from course_lib.checkpoints.elmo import from_released, load_elmo, save_elmo
from course_lib.encoder import count_parameters
from course_lib.family.elmo import (
    Elmo,
    ElmoConfig,
    ElmoForBiLM,
    ProjectedLSTM,
    ScalarMix,
    distinct,
    elmo,
    shortened,
)
from course_lib.objectives.bilm import bilm_batch, bilm_labels, bilm_loss
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.characters import WordVocabulary, spell, spell_sentences, words_of

SMALL = {
    "vocab_size": 30, "character_size": 5, "filters": ((1, 3), (2, 4), (3, 4), (7, 5)),
    "projection_size": 8, "cell_size": 11, "dropout": 0.0,
}  # fmt: skip
SENTENCES = [["a", "cat", "sat"], ["internationalisation", "."], ["Ünïcode", "cat", "cat", "x"]]


def close(ours, theirs, dtype, scale=None):
    """As design and parity.py say: within tol of the reference's largest entry, at least 1."""
    bound = max(1.0, theirs.abs().max().item()) if scale is None else scale
    assert (ours - theirs).abs().max().item() <= TOLERANCE[dtype] * bound


def drawn(model, sd=0.3, seed=0):
    """Every weight drawn anew, biases too."""
    make = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=make, dtype=torch.float64) * sd)
    return model


# ---------------------------------------------------------------- the LSTM


def torch_lstm(ours, size):
    cells = ours.projection.shape[1]
    theirs = torch.nn.LSTM(ours.weight_input.shape[1], cells, proj_size=size, batch_first=True).to(
        ours.bias.dtype
    )
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(ours.weight_input)
        theirs.weight_hh_l0.copy_(ours.weight_hidden)
        theirs.weight_hr_l0.copy_(ours.projection)
        theirs.bias_ih_l0.copy_(ours.bias)
        theirs.bias_hh_l0.zero_()
    return theirs


@both_precisions
@pytest.mark.parametrize(("batch", "words", "size", "cells"), [(1, 1, 8, 9), (3, 13, 8, 17)])
@pytest.mark.parametrize("sd", [0.02, 0.3])
def test_the_lstm_is_torchs_in_outputs_and_gradients(dtype, batch, words, size, cells, sd):
    ours = drawn(ProjectedLSTM(size, cells, size), sd).to(dtype)
    theirs = torch_lstm(ours, size)
    torch.manual_seed(2)
    x = torch.randn(batch, words, size, dtype=dtype)
    start = torch.randn(batch, size, dtype=dtype), torch.randn(batch, cells, dtype=dtype)
    given = [x.clone().requires_grad_() for _ in range(2)]
    out, (hidden, cell) = ours(given[0], state=start)
    out2, (hidden2, cell2) = theirs(given[1], (start[0][None], start[1][None]))
    for a, b in ((out, out2), (hidden, hidden2[0]), (cell, cell2[0])):
        close(a, b, dtype)
    target = torch.randn_like(x)
    for o in (out, out2):
        ((o - target) ** 2).mean().backward()
    pairs = [
        (given[0].grad, given[1].grad), (ours.weight_input.grad, theirs.weight_ih_l0.grad),
        (ours.weight_hidden.grad, theirs.weight_hh_l0.grad),
        (ours.bias.grad, theirs.bias_ih_l0.grad), (ours.projection.grad, theirs.weight_hr_l0.grad),
    ]  # fmt: skip
    largest = max(b.abs().max().item() for _, b in pairs)
    for a, b in pairs:
        close(a, b, dtype, largest)


def test_clipping_bounds_cells_and_projections():
    lstm = drawn(ProjectedLSTM(4, 6, 4, clip=0.05), sd=3.0)
    out, (_, cell) = lstm(torch.randn(2, 9, 4))
    assert [x.abs().max().item() for x in (out, cell)] == pytest.approx([0.05, 0.05])


def test_padding_keeps_the_state_at_zero():
    """Padded before or behind: the real words get what they get alone."""
    lstm = drawn(ProjectedLSTM(4, 6, 4))
    x, noise = torch.randn(1, 3, 4), torch.randn(1, 2, 4)
    alone, _ = lstm(x)
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    after, _ = lstm(torch.cat([noise, x], 1), mask)
    before, _ = lstm(torch.cat([x, noise], 1), mask.flip(1))
    assert torch.allclose(after[:, 2:], alone) and torch.allclose(before[:, :3], alone)
    assert not after[:, :2].any() and not before[:, 3:].any()


# ---------------------------------------------------------------- the rest, written plainly


def plain_word(weights, ids):
    """The character encoder for one word, filter by filter and window by window, in numpy."""
    table = weights["words.characters.weight"]
    x = np.stack([table[i] for i in ids])  # (C, E): all of it, padding too
    pooled = []
    for number in range(4):
        kernel = weights[f"words.convolutions.{number}.weight"]  # (n, E, width)
        bias = weights[f"words.convolutions.{number}.bias"]
        for one, b in zip(kernel, bias, strict=True):
            width = one.shape[1]
            values = [(x[k : k + width].T * one).sum() + b for k in range(len(x) - width + 1)]
            pooled.append(max(0.0, max(values)))
    x = np.array(pooled)
    for number in range(2):
        name = f"words.highways.{number}"
        gate = weights[f"{name}.gate.weight"] @ x + weights[f"{name}.gate.bias"]
        new = weights[f"{name}.transform.weight"] @ x + weights[f"{name}.transform.bias"]
        gate = 1 / (1 + np.exp(-gate))
        x = gate * np.maximum(new, 0) + (1 - gate) * x
    return weights["words.projection.weight"] @ x + weights["words.projection.bias"]


def plain_direction(weights, name, words, clip):
    """Both layers over the vectors of one sentence, in the order in which they are read."""
    layers = []
    for number in range(2):
        part = f"{name}.layers.{number}"
        cells = weights[f"{part}.projection"].shape[1]
        hidden, cell = np.zeros(words.shape[1]), np.zeros(cells)
        out = []
        for x in words:
            gates = (
                weights[f"{part}.weight_input"] @ x + weights[f"{part}.bias"]
                + weights[f"{part}.weight_hidden"] @ hidden
            )  # fmt: skip
            i, f, g, o = np.split(gates, 4)
            i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
            cell = np.clip(f * cell + i * np.tanh(g), -clip, clip)
            hidden = np.clip(weights[f"{part}.projection"] @ (o * np.tanh(cell)), -clip, clip)
            out.append(hidden)
        layers.append(np.stack(out) + (words if number else 0))
        words = layers[-1]
    return layers


@both_precisions
@pytest.mark.parametrize("clip", [0.1, 3.0])
def test_the_encoder_is_the_plain_one(dtype, clip):
    model = drawn(elmo(**SMALL, clip=clip)).eval().to(dtype)
    ids, mask = spell_sentences(SENTENCES)
    out = model(ids, mask, output_hidden_states=True)
    assert out.last_hidden_state is out.hidden_states[-1]
    assert [h.shape for h in out.hidden_states] == [(3, 6, 16)] * 3
    weights = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
    for row, sentence in enumerate(SENTENCES):
        n = len(sentence) + 2
        x = np.stack([plain_word(weights, ids[row, k].tolist()) for k in range(n)])
        forward = [x, *plain_direction(weights, "forward_lm", x, clip)]
        back = plain_direction(weights, "backward_lm", x[::-1], clip)
        backward = [x, *(layer[::-1] for layer in back)]
        for layer, halves in enumerate(zip(forward, backward, strict=True)):
            expected = torch.from_numpy(np.concatenate(halves, axis=1)).to(dtype)
            close(out.hidden_states[layer][row, :n], expected, dtype)


def test_each_direction_reads_its_own_side():
    model = drawn(elmo(**SMALL)).eval()
    one, _ = spell_sentences([["a", "b", "c", "d"]])
    other, _ = spell_sentences([["a", "b", "x", "d"]])
    same = [(a == b).all(-1) for a, b in zip(
        model(one).last_hidden_state.chunk(2, -1), model(other).last_hidden_state.chunk(2, -1),
        strict=True,
    )]  # fmt: skip
    assert same[0].tolist() == [[True, True, True, False, False, False]]  # up to <S> a b
    assert same[1].tolist() == [[False, False, False, False, True, True]]  # from d </S>


def test_a_word_alone_is_the_word_among_others():
    """Neither its neighbours in the batch nor the length of the longest word change layer 0."""
    model = drawn(elmo(**SMALL), sd=0.1).eval().double()
    together = model.words(spell_sentences([["cat", "internationalisation"]])[0])[0, 1]
    assert torch.allclose(model.words(spell_sentences([["cat"]])[0])[0, 1], together)
    rows, which = distinct(torch.tensor([[1, 2], [3, 4], [1, 2]]))
    assert rows.tolist() == [[1, 2], [3, 4]] and which.tolist() == [0, 1, 0]
    assert shortened(torch.tensor([spell("cat")]), 7).shape == (1, 5 + 7)


@both_precisions
def test_the_mix_is_the_equation(dtype):
    mix = ScalarMix(3).to(dtype).eval()
    layers = tuple(torch.randn(2, 4, 6, dtype=dtype) for _ in range(3))
    close(mix(layers), sum(layers) / 3, dtype)
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.0, 1.0, -1.0]))
        mix.gamma.fill_(2.0)
    z = 1 + math.e + 1 / math.e
    close(mix(layers), 2 / z * (layers[0] + math.e * layers[1] + layers[2] / math.e), dtype)
    assert mix.dropout.p == 0.5
    with pytest.raises(ValueError, match="2 layers were given; expected 3"):
        mix(layers[:2])


def test_the_released_size_has_the_released_number_of_parameters():
    with torch.device("meta"):
        model = Elmo(ElmoConfig())
    assert count_parameters(model) == 93_600_864


# ---------------------------------------------------------------- the loss


def test_the_loss_is_the_mean_of_both_directions_by_hand():
    ids = torch.tensor([[2, 5, 9, 3], [2, 6, 3, 0]])
    mask = (ids != 0).long()
    batch = bilm_labels(ids, mask, predicted=8, unk=1)
    assert batch.targets["forward_labels"].tolist() == [[5, 1, 3, -100], [6, 3, -100, -100]]
    assert batch.targets["backward_labels"].tolist() == [[-100, 2, 5, 1], [-100, 2, 6, -100]]

    class Said:
        forward_logits = torch.randn(2, 4, 8)
        backward_logits = torch.randn(2, 4, 8)

    losses = bilm_loss(Said, batch.targets)
    f, b = (x.log_softmax(-1) for x in (Said.forward_logits, Said.backward_logits))
    forward = -(f[0, 0, 5] + f[0, 1, 1] + f[0, 2, 3] + f[1, 0, 6] + f[1, 1, 3]) / 5
    backward = -(b[0, 1, 2] + b[0, 2, 5] + b[0, 3, 1] + b[1, 1, 2] + b[1, 2, 6]) / 5
    assert losses["forward"].item() == pytest.approx(forward.item(), rel=1e-6)
    assert losses["total"].item() == pytest.approx((forward + backward).item() / 2, rel=1e-6)


def test_no_direction_sees_the_word_that_it_predicts():
    """The gradient of each prediction with respect to the word it is about is zero."""
    vocabulary = WordVocabulary(["a", "b", "c", "d"])
    model = drawn(ElmoForBiLM(ElmoConfig(**{**SMALL, "vocab_size": 8}))).eval()
    ids = torch.tensor([[2, 4, 5, 6, 7, 3]])
    rows = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    batch = bilm_batch(rows, vocabulary.spelling, 8)
    vectors = model.encoder.words(batch.inputs["input_ids"]).detach().requires_grad_()
    model.encoder.words.forward = lambda _: vectors
    out = model(**batch.inputs)
    for logits, step in ((out.forward_logits, 1), (out.backward_logits, -1)):
        for place in range(1, 5):
            (gradient,) = torch.autograd.grad(
                logits[0, place - step].sum(), vectors, retain_graph=True
            )
            assert not gradient[0, place].any() and gradient[0, place - step].any()


# ---------------------------------------------------------------- characters


def test_spelling_is_that_of_the_released_vocabulary():
    """Bytes + 1, then the five signs from 257 on, as bilm-tf and AllenNLP number them."""
    assert spell("cat", 8) == [259, 100, 98, 117, 260, 261, 261, 261]
    assert spell("ü", 6) == [259, 0xC3 + 1, 0xBC + 1, 260, 261, 261]
    assert spell("<S>", 5) == [259, 257, 260, 261, 261]
    assert spell("</S>", 5) == [259, 258, 260, 261, 261]


def test_long_words_are_cut_to_48_bytes():
    long = spell("x" * 60)
    assert len(long) == 50 and long == spell("x" * 48) == spell("x" * 49)
    assert long[0] == 259 and long[-1] == 260 and spell("x" * 47) != long


def test_sentences_are_padded_and_masked():
    ids, mask = spell_sentences(SENTENCES)
    assert ids.shape == (3, 6, 50) and mask.sum(1).tolist() == [5, 4, 6]
    assert ids[1, 4:].sum() == 0 and ids[1, 3].tolist() == spell("</S>")
    assert words_of("It's Café-Style!") == ["it", "'", "s", "cafe", "-", "style", "!"]


def test_rare_words_are_spelled_but_not_predicted():
    vocabulary = WordVocabulary.of([["b", "a", "b"], ["c"]], predicted=6)
    assert vocabulary.vocab[4:] == ["b", "a", "c"] and vocabulary.predicted == 6
    assert vocabulary.encode(["c", "zebra"]) == [6, 1]
    assert vocabulary.spelling[6].tolist() == spell("c") and not vocabulary.spelling[0].any()


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: spell_sentences([["a"], []]), "Sentence 1 has no words"),
        (lambda: spell_sentences([]), "No sentences were given"),
        (lambda: spell_sentences(["a cat"]), "Text was given; expected lists of words"),
        (lambda: spell_sentences("a cat"), "Text was given"),
        (lambda: spell(""), "An empty word"),
        (lambda: WordVocabulary(["a", "a"]), "'a' stands twice"),
        (lambda: WordVocabulary.of([]), "No words were given"),
        (lambda: elmo(**SMALL)(torch.ones(2, 3).long()), "expected .batch, words, 50."),
        (lambda: elmo(**SMALL)(torch.ones(2, 0, 50).long()), "hold no word"),
        (lambda: elmo(**SMALL)(torch.full((1, 2, 50), 300)), "character ids from 300 to 300"),
        (lambda: elmo(**SMALL)(torch.ones(1, 2, 50).long(), torch.ones(1, 3)), "attention_mask of"),
        (lambda: ElmoConfig(filters=((60, 3),)), "60 characters wide"),
        (lambda: ElmoConfig(clip=0.0), "clip=0.0 was given"),
        (lambda: ElmoConfig(cell_size=8), "projection_size=512 was given for cell_size=8"),
    ],
)
def test_bad_input_is_told(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()


# ---------------------------------------------------------------- weights


OPTIONS = {
    "lstm": {"use_skip_connections": True, "projection_dim": 8, "cell_clip": 3, "proj_clip": 3,
             "dim": 11, "n_layers": 2},
    "char_cnn": {"activation": "relu", "n_highway": 2, "n_characters": 262,
                 "filters": [[1, 3], [2, 4], [3, 4], [7, 5]], "embedding": {"dim": 5},
                 "max_characters_per_token": 50},
}  # fmt: skip


def released(tmp_path, change=lambda weights: None):
    """A file in the released layout, with drawn weights; what it holds."""
    draw = np.random.default_rng(0)

    def array(*shape):
        return draw.normal(size=shape).astype(np.float32)

    total = 16
    weights = {"char_embed": array(261, 5)}
    for number, (width, n) in enumerate(OPTIONS["char_cnn"]["filters"]):
        weights[f"CNN/W_cnn_{number}"] = array(1, width, 5, n)
        weights[f"CNN/b_cnn_{number}"] = array(n)
    for number in range(2):
        for name in ("carry", "transform"):
            weights[f"CNN_high_{number}/W_{name}"] = array(total, total) / 4
            weights[f"CNN_high_{number}/b_{name}"] = array(total)
    weights["CNN_proj/W_proj"] = array(total, 8)
    weights["CNN_proj/b_proj"] = array(8)
    for direction in range(2):
        for layer in range(2):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            weights[f"{cell}/W_0"] = array(16, 44) / 4
            weights[f"{cell}/B"] = array(44)
            weights[f"{cell}/W_P_0"] = array(11, 8) / 4
    change(weights)
    np.savez(tmp_path / "weights.npz", **weights)
    return weights


def as_the_authors_compute(weights, ids):
    """One sentence of characters (T, C) by the released arrays: the layers, each (T, 16)."""

    def sigma(x):
        return 1 / (1 + np.exp(-x))

    rows = []
    for word in ids:
        x = weights["char_embed"][np.array(word) - 1]  # (C, E)
        pooled = []
        for number in range(4):
            kernel = weights[f"CNN/W_cnn_{number}"][0]  # (width, E, n)
            width = len(kernel)
            windows = np.stack([x[k : k + width] for k in range(len(x) - width + 1)])
            values = np.einsum("kwe,wen->kn", windows, kernel) + weights[f"CNN/b_cnn_{number}"]
            pooled.append(np.maximum(values.max(axis=0), 0))
        x = np.concatenate(pooled)
        for number in range(2):
            name = f"CNN_high_{number}"
            carry = sigma(x @ weights[f"{name}/W_carry"] + weights[f"{name}/b_carry"])
            new = np.maximum(x @ weights[f"{name}/W_transform"] + weights[f"{name}/b_transform"], 0)
            x = carry * new + (1 - carry) * x
        rows.append(x @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"])
    base = np.stack(rows)
    layers = [[base], [base]]
    for direction in range(2):
        x = base[::-1] if direction else base
        for layer in range(2):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            h, c, out = np.zeros(8), np.zeros(11), []
            for word in x:
                gates = np.concatenate([word, h]) @ weights[f"{cell}/W_0"] + weights[f"{cell}/B"]
                i, g, f, o = np.split(gates, 4)
                c = np.clip(sigma(f + 1) * c + sigma(i) * np.tanh(g), -3, 3)
                h = np.clip((sigma(o) * np.tanh(c)) @ weights[f"{cell}/W_P_0"], -3, 3)
                out.append(h)
            x = np.stack(out) + (x if layer else 0)
            layers[direction].append(x[::-1] if direction else x)
    return [np.concatenate(pair, axis=1) for pair in zip(*layers, strict=True)]


def test_the_released_layout_is_read(tmp_path):
    weights = released(tmp_path)
    with np.load(tmp_path / "weights.npz") as file:
        model = from_released(file, json.loads(json.dumps(OPTIONS)))
    ids, _ = spell_sentences([["a", "Ünïcode", "cat"]])
    found = model(ids, output_hidden_states=True).hidden_states
    expected = as_the_authors_compute(weights, ids[0].tolist())
    for ours, theirs in zip(found, expected, strict=True):
        close(ours[0], torch.from_numpy(theirs).float(), torch.float32)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: w.pop("CNN_proj/b_proj"), "the weights lack CNN_proj/b_proj"),
        (lambda w: w.update(char_embed=np.ones((261, 4))), "char_embed has shape .261, 4."),
        (lambda w: w.update({"CNN/W_cnn_0": np.ones(3)}), "CNN/W_cnn_0 has shape .3,."),
    ],
)
def test_weights_of_another_layout_are_told(tmp_path, change, says):
    weights = released(tmp_path, change)
    with pytest.raises(CheckpointError, match=says):
        from_released(weights, OPTIONS)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "the options lack 'char_cnn'"),
        ({**OPTIONS, "char_cnn": {**OPTIONS["char_cnn"], "activation": "tanh"}}, "is 'tanh'"),
        ({**OPTIONS, "lstm": {**OPTIONS["lstm"], "proj_clip": 4}}, "cell_clip 3 and proj_clip 4"),
    ],
)
def test_options_of_another_model_are_told(options, says):
    with pytest.raises(CheckpointError, match=says):
        from_released({}, options)


def test_our_own_file_comes_back_bit_for_bit(tmp_path):
    vocabulary = WordVocabulary(["a", "b", "c"], predicted=6)
    model = drawn(ElmoForBiLM(ElmoConfig(**{**SMALL, "vocab_size": 6}))).eval()
    digest = save_elmo(model, vocabulary, tmp_path / "elmo.safetensors")
    again, words = load_elmo(tmp_path / "elmo.safetensors", digest)
    assert again.config == model.config and words.vocab == vocabulary.vocab[:6]
    state = model.state_dict()
    assert all(torch.equal(state[name], value) for name, value in again.state_dict().items())
    assert save_elmo(again, words, tmp_path / "again.safetensors") == digest
    with pytest.raises(CheckpointError, match="expected"):
        load_elmo(tmp_path / "elmo.safetensors", "0" * 64)
