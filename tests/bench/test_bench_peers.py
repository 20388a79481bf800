"""The bench compares like with like: the same words, weights, losses and FLOPs on both sides."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from kernel_parts import TOLERANCE, noted, watch

from course_lib.bench import (
    attention,
    corruption,
    disentangled,
    disentangled_gpu,
    distillation,
    early_exit,
    fastbert,
    inputs,
    masked_loss,
    masking,
    measuring,
    modern,
    pretraining,
    sharing,
    unpadding,
)
from course_lib.checkpoints import from_transformers
from course_lib.config import BertConfig, published
from course_lib.family import fastbert as fastbert_family
from course_lib.family.electra import ElectraConfig

TINY = {"num_layers": 3, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32}
both_precisions = pytest.mark.parametrize("precision", ["float32", "bfloat16"])


@pytest.fixture
def small(monkeypatch):
    """Every subject in small, on the CPU."""
    sizes = {
        attention: {"TOKENS": 32},
        distillation: {"VOCABULARY": 60, "WIDTH": 6},
        early_exit: {"ROWS": 4, "TOKENS": 6},
        corruption: {"ROWS": 2, "TOKENS": 20},
        unpadding: {"SHAPE": {**TINY, "num_layers": 2}},
        modern: {"TOKENS": 200, "SHAPE": TINY, "GATED": TINY | {"intermediate_size": 24}},
        disentangled_gpu: {"HEADS": 2, "SIZE": 8, "SPAN": 8, "FURTHEST": 20, "DEVICE": "cpu"},
    }
    for module, settings in sizes.items():
        for name, value in settings.items():
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(disentangled_gpu, "FORMAT", torch.float32)


# ---- pre-training and the masked-LM loss --------------------------------------------------------


def test_flops_per_token_by_hand():
    # tiny: a block of 4·128² + 2·128·512 and attention of 2·128·128; of the last block all keys and
    # values, the rest only for [CLS] and the 15% asked; head 0.15·(128² + 128·8192). Rows have
    # not all the same number asked; the table of asked positions is as wide as the fullest.
    first = 65_536 + 131_072 + 2 * 128 * 128
    share = (0.15 * 128 + 1) / 128
    last = 2 * 128**2 + share * (2 * 128**2 + 131_072 + 2 * 128 * 128)
    by_hand = 6 * (first + last + 0.15 * (16_384 + 1_048_576))
    counted = pretraining.training_flops_per_token("tiny")
    assert counted == pytest.approx(by_hand, rel=0.02)


def test_both_sides_train_the_same_number_of_weights_and_each_step_moves_them(monkeypatch):
    from transformers import BertForMaskedLM

    made = watch(monkeypatch, pretraining, "peer_model")
    for settings in ({}, {"tuned": True, "attention": "eager"}, {"tuned": True, "selected": True}):
        step = pretraining.peer_step("tiny", **settings)
        model = made[-1].result
        assert isinstance(model, BertForMaskedLM)
        before = model.bert.encoder.layer[0].attention.self.query.weight.clone()
        step()
        assert not torch.equal(before, model.bert.encoder.layer[0].attention.self.query.weight)
    ours = pretraining.bert_for_pretraining("tiny", vocab_size=inputs.SPECIAL.vocab_size)
    pooler_and_pair = 128 * 128 + 128 + 2 * 128 + 2  # ours has them, BertForMaskedLM does not
    count = sum(p.numel() for p in ours.parameters()) - pooler_and_pair
    assert count == sum(p.numel() for p in made[0].result.parameters())
    pretraining.our_step("tiny", "float32", "plain")()


def test_the_peer_with_its_head_on_selected_positions_has_the_same_loss():
    model, batch = pretraining.peer_model("tiny", 0.0, "sdpa"), pretraining.our_batch(0, 2)
    ids, at = batch.inputs["input_ids"], batch.inputs["predict_at"]
    labels = torch.full_like(ids, -100).flatten()
    labels[at] = batch.targets["labels"]
    found = pretraining.selected_loss(model, ids, at, batch.targets["labels"])
    assert found.item() == pytest.approx(model(ids, labels=labels.view_as(ids)).loss.item())


def test_logits_where_selected_give_the_peer_the_same_loss_and_gradients():
    model, batch = pretraining.peer_model("tiny", 0.0, "sdpa"), pretraining.our_batch(0, 2)
    gradients = []
    for loss in (masked_loss.all_logits, masked_loss.selected_logits):
        found = loss(model, batch)
        gradients.append([found.detach(), *torch.autograd.grad(found, list(model.parameters()))])
    for every, selected in zip(*gradients, strict=True):
        torch.testing.assert_close(selected, every, rtol=1e-4, atol=1e-6)


def test_the_limits_and_the_memory_of_logits_where_selected():
    found = [masked_loss.masked_only_limit(published("bert", size)) for size in masked_loss.ROWS]
    assert [round(limit, 2) for limit in found] == [1.22, 2.46, 4.18]
    assert masked_loss.memory_ratio(width=16, tokens=128) > 5
    assert set(masked_loss.GOALS) == set(masked_loss.ROWS)


# ---- masking -------------------------------------------------------------------------------------


def test_sequences_hold_words_of_one_piece_and_of_more():
    rows = inputs.random_sequences(64, 128)
    numbers = masking.numbers_of(rows)
    assert (numbers[:, [0, -1]] == -1).all() and (numbers[:, 1:-1] >= 0).all()
    words = int((numbers.max(dim=1).values + 1).sum())
    goes_on = 64 * 126 - words
    assert abs(goes_on - inputs.PIECES * 64 * 125) < 5 * (64 * 125 * 0.16) ** 0.5  # five sd


def test_the_peer_sees_the_same_words():
    """Its collator, from the offsets, draws the lines between words where ours does."""
    rows = inputs.random_sequences(8, 40)
    collate = inputs.peer_collator(whole_words=True)
    found, barred = collate._calc_word_ids_and_prob_mask(
        masking.offsets(rows).numpy(), masking.special_tokens(rows).numpy()
    )
    ours = masking.numbers_of(rows).numpy()
    assert (np.where(found < 0, -1, found - 1) == ours).all()  # it counts from 1
    begins = (ours[:, 1:] != ours[:, :-1]) & (ours[:, 1:] >= 0)
    assert (barred[:, 1:] == ~begins).all()


@pytest.mark.parametrize("make", [masking.plain_contenders, masking.word_contenders])
def test_every_masking_contender_hides_about_fifteen_percent(monkeypatch, make):
    peer = watch(monkeypatch, type(inputs.peer_collator()), "torch_mask_tokens")
    ours = watch(monkeypatch, masking, "mask_sequences", "mask_whole_words")
    contenders = make(inputs.random_sequences(128, 128))
    for contender in contenders:
        assert contender.tokens == 128 * 128
        contender.make()()
    seen = [call.result[1] for call in peer] + [call.result.labels for call in ours]
    assert len(seen) == len(contenders)
    for labels in seen:
        assert 0.14 < (labels != -100).float().mean() < 0.16


# ---- sharing -------------------------------------------------------------------------------------


def blocks_of(model):
    """Weights outside the tables, the projection and the pooler."""
    apart = ("embedding", "pooler")
    return sum(p.numel() for n, p in model.named_parameters() if not any(a in n for a in apart))


def test_sharing_compares_the_same_blocks():
    made = []
    for contender in sharing.contenders(TINY, 2, made.append):
        contender.make()
    bert, albert, own, shared = made
    assert blocks_of(own) == blocks_of(bert) == 3 * blocks_of(shared)
    assert blocks_of(shared) == blocks_of(albert)
    assert len(own.stack.layers()) == len(shared.stack.layers()) == 3
    ids = inputs.random_sequences(2, 10).input_ids
    for model in made:
        assert model(ids).last_hidden_state.shape == (2, 10, 16)


@both_precisions
def test_every_sharing_contender_trains(precision):
    made = []

    def training(model):
        made.append(model)
        return sharing.training(model, 2, precision)

    for contender in sharing.contenders(TINY, 2, training):
        step = contender.make()
        learnt = [p for n, p in made[-1].named_parameters() if "pooler" not in n]
        before = [p.detach().clone() for p in learnt]
        step()
        # Of the tables' rows only those that occur move, and of the segment table one of two.
        assert all(not torch.equal(a, b) for a, b in zip(before, learnt, strict=True))


# ---- attention and distillation: the same outputs and gradients ----------------------------------


def check_alike(calls, bound, training=True):
    """Of every call beside the first; gradients of the first three that were given."""
    first, *others = calls
    for call in others:
        size = min(1, first.result.abs().max().item())
        assert (call.result - first.result).abs().max() <= bound * size
        for a, b in zip(call.given[:3], first.given[:3], strict=True):
            if training:
                assert (a.grad - b.grad).abs().max() <= bound * b.grad.abs().max()


def two_steps(contenders, tokens):
    for contender in contenders:
        assert contender.tokens == tokens
        step = contender.make()
        step()
        step()  # gradients begin anew


@pytest.mark.parametrize("training", [False, True], ids=["forward", "both"])
@both_precisions
def test_every_way_of_attending_gives_the_same(small, monkeypatch, precision, training):
    found, working = [], attention.working
    monkeypatch.setattr(attention, "working", lambda f, *of: working(noted(found, f), *of))
    two_steps(attention.contenders(8, precision, training), 32)
    assert len(found) == 8
    assert found[0].result.shape == (4, 12, 8, 64) and found[0].result.requires_grad == training
    check_alike(found, {"float32": 1e-5, "bfloat16": 5e-2}[precision], training)


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
def test_dropout_is_on_where_the_table_says_so(kind):
    x = [torch.randn(2, 12, 32, 64) for _ in range(3)]
    off, on = attention.peer(kind, 0.0), attention.peer(kind, 0.5)
    assert torch.equal(off(*x), off(*x)) and not torch.equal(on(*x), on(*x))


@both_precisions
def test_every_distillation_contender_gives_the_same_loss_and_gradients(
    small, monkeypatch, precision
):
    losses = "peer_loss", "distillation_loss_reference", "distillation_loss"
    found = watch(monkeypatch, distillation, *losses)
    two_steps(distillation.contenders(20, precision), 20)
    assert len(found) == 6
    check_alike(found, {"float32": 1e-5, "bfloat16": 3e-2}[precision])


def test_chunks_hold_less_than_a_fifth(small, monkeypatch):
    """The course's goal for memory, at a scale of its own: a chunk is a fiftieth of the scores."""
    from course_lib.kernels import distillation as kernel

    monkeypatch.setattr(kernel, "CHUNK_BYTES", 20 * 60 * 8)
    peer, _, chunked = (
        measuring.peak_bytes(c.make()) for c in distillation.contenders(1_000, "float32")
    )
    assert peer >= 5 * chunked


# ---- DeBERTa -------------------------------------------------------------------------------------


def test_both_deberta_have_the_same_weights():
    """Ours, filled with the peer's, so that sizes and settings are known to be the same."""
    peer = disentangled.peer_deberta(TINY).eval()
    ids = torch.arange(5, 45).view(2, 20)
    ours = from_transformers(peer)
    with torch.no_grad():
        a, b = (m(ids).last_hidden_state for m in (ours, peer))
    assert (a - b).abs().max() < 1e-5
    made = disentangled.deberta_v3(vocab_size=disentangled.SPECIAL.vocab_size, **TINY)
    same = ("span", "furthest", "terms", "shared_projections", "normed_positions", "convolution")
    assert all(getattr(made.config, name) == getattr(ours.config, name) for name in same)


def test_every_goal_belongs_to_a_table():
    sizes = {"inference": disentangled.SIZES, "training step": disentangled.TRAINING}
    assert all((batch, tokens) in sizes[what] for what, _, batch, tokens in disentangled.GOALS)


def test_on_a_gpu_the_peer_and_ours_compute_the_same(small):
    states = torch.randn(1, 40, 16, generator=torch.Generator().manual_seed(0))
    peer = disentangled_gpu.transformers_module(40, False)(states)
    ours = disentangled_gpu.our_module(disentangled_gpu.reference, 40, False)(states)
    assert ours.shape == states.shape
    assert (ours - peer).abs().max() <= 1e-5 * peer.abs().max()


@pytest.mark.parametrize("training", [False, True])
def test_every_gpu_contender_does_its_work(small, training, capsys):
    rows = disentangled_gpu.contenders(40, training)
    assert len({row.name for row in rows}) == len(rows) >= 2
    for row in rows:
        assert row.tokens == 40 and len(row.name) <= 56
        if "Triton" not in row.name:  # needs a GPU
            row.make()()


def test_a_package_that_does_not_run_is_left_out_with_its_reason(capsys):
    def fails():
        raise KeyError("renamed")

    assert not disentangled_gpu.runs(disentangled_gpu.Contender("theirs", fails, 1))
    assert "left out: theirs: KeyError: 'renamed'" in capsys.readouterr().out
    assert disentangled_gpu.runs(disentangled_gpu.Contender("theirs", lambda: dict, 1))


def test_without_a_gpu_there_is_nothing_to_measure(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert disentangled_gpu.tables() == []


# ---- corruption ----------------------------------------------------------------------------------


@both_precisions
def test_every_corruption_contender_does_its_work(small, monkeypatch, precision):
    filled = watch(monkeypatch, corruption, "fill_in", "torch_fill_in")
    config = ElectraConfig(vocab_size=50, embedding_size=4, **TINY)
    for contender in corruption.contenders(config, precision):
        assert contender.tokens == 40
        contender.make()()
    assert len(filled) == 2
    for _, (ids, predict_at, logits), after in filled:
        assert logits.shape == (6, 50)  # 15% of 40
        untouched = torch.ones(40, dtype=torch.bool)
        untouched[predict_at] = False
        assert torch.equal(ids.flatten()[untouched], after.flatten()[untouched])
        assert after.min() >= 0 and after.max() < 50


# ---- padding removed -----------------------------------------------------------------------------


@pytest.mark.parametrize("share", unpadding.PADDING)
@pytest.mark.parametrize(("batch", "tokens"), unpadding.BATCHES)
def test_batches_are_padded_as_they_say(batch, tokens, share):
    mask = unpadding.padded_mask(batch, tokens, share)
    assert abs(1 - mask.float().mean().item() - share) < 0.03
    lengths = mask.sum(dim=1)
    assert lengths.max() == tokens and lengths.min() >= 2
    assert torch.equal(mask, (torch.arange(tokens) < lengths[:, None]).long())


@both_precisions
def test_every_unpadding_contender_computes_as_many_tokens_as_it_says(
    small, monkeypatch, precision
):
    calls = watch(monkeypatch, torch.nn.functional, "linear")
    most, texts = [], []
    for contender in unpadding.contenders(6, 20, precision):
        assert contender.tokens == 120
        step = contender.make()
        calls.clear()
        step()
        seen = [call.given[0].shape[:-1].numel() for call in calls]
        if "sorted" in contender.name:  # in four batches, each as long as its longest text
            texts.append(seen)
            continue
        assert len(seen) >= 6 and set(seen) <= {max(seen), 6}  # the peer's pooler sees 6 rows
        most.append(max(seen))
    masks = [unpadding.padded_mask(6, 20, share) for share in unpadding.PADDING]
    real = [int(mask.sum()) for mask in masks]
    assert most == [120, 120, *real, 120, *real]
    for seen, mask in zip(texts, masks, strict=True):
        lengths = mask.sum(1).sort().values.tolist()
        parts = [lengths[i : i + 2] for i in range(0, 6, 2)]  # chunk() makes three of six in four
        assert set(seen) == {2 * part[-1] for part in parts} | {2}  # and the pooler, two rows


def test_the_linear_part_mixes_no_tokens():
    layer = unpadding.NoAttention(BertConfig(**TINY))
    x = torch.randn(2, 5, 16)
    changed = x.clone()
    changed[:, 3] += 1
    moved = (layer(x)[0] - layer(changed)[0]).abs().amax(-1)
    assert not ((moved > 1e-5) & (moved < 1e-3)).any()  # by rounding, or visibly
    assert (moved >= 1e-3).tolist() == [[False, False, False, True, False]] * 2


# ---- ModernBERT ----------------------------------------------------------------------------------


def results_of(contenders, tokens, steps):
    """What one step of each contender gives, by its name; forward_only keeps it to itself."""
    found = {}
    for contender in contenders:
        assert contender.tokens == tokens
        steps.clear()
        contender.make()()
        found[contender.name] = steps[-1]
    return found


@pytest.fixture
def steps(monkeypatch):
    """What every step of modern's gave."""
    found = []
    keep = modern.forward_only
    monkeypatch.setattr(
        modern, "forward_only", lambda work: keep(lambda: found.append(work()))
    )  # fmt: skip
    return found


@both_precisions
@pytest.mark.parametrize("make", [modern.rotary_contenders, modern.window_contenders])
def test_parts_of_modernbert_give_what_the_peers_give(small, steps, make, precision):
    given = results_of(make(100, precision), 200, steps).values()
    peer, *ours = (x if isinstance(x, tuple) else (x,) for x in given)
    assert len(ours) == 2 and peer[0].numel() == 200 * 16
    for found in ours:
        for a, b in zip(found, peer, strict=True):
            assert (a - b).abs().max() <= {"float32": 1e-5, "bfloat16": 3e-2}[precision]


@both_precisions
def test_both_modernberts_read_the_same_with_the_same_weights(small, steps, precision):
    found = results_of(modern.contenders(100, precision), 200, steps)
    eager, sdpa, ours, bert, deberta = (out.last_hidden_state for out in found.values())
    for peer in (eager, sdpa):
        assert (ours - peer).abs().max() <= {"float32": 1e-5, "bfloat16": 0.1}[precision]
    assert ours.shape == bert.shape == deberta.shape == (2, 100, 16)
    assert (bert - ours).abs().max() > 0.1 < (deberta - bert).abs().max()


def test_one_text_where_it_is_longer_and_no_table_of_scores_that_is_too_large(monkeypatch):
    assert [modern.batch_text(n) for n in modern.LENGTHS] == [
        "16×128 tokens", "4×512 tokens", "1×2048 tokens", "1×8192 tokens",
    ]  # fmt: skip
    assert [modern.fits(n) for n in modern.LENGTHS] == [True, True, True, False]
    slow = [t.title for t in modern.tables() if t.slow]
    assert slow and all("1×8192" in title for title in slow)
    whole, long = (modern.contenders(n, "float32") for n in (2_048, 8_192))
    assert {c.name for c in whole} - {c.name for c in long} == {f"{modern.PEER}, eager"}


def test_a_gated_block_has_as_many_weights_as_berts():
    sizes = {}
    for kind, shape in ((modern.modernbert, modern.GATED), (modern.bert, modern.SHAPE)):
        with torch.device("meta"):
            sizes[kind] = blocks_of(kind("base", **shape))
    modernbert, bert = sizes.values()
    assert modernbert == pytest.approx(bert, rel=0.01)


# ---- early exit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("layers", "rows"), [(4, 32), (12, 32), (3, 2), (5, 1)])
def test_the_rigged_classifier_lets_rows_leave_evenly(layers, rows):
    judge, under_way = early_exit.Evenly(layers), rows
    for depth in range(1, layers + 1):
        under_way -= int(judge(torch.zeros(under_way, 2)).sum())
        assert under_way == rows * (layers - depth) // layers


def test_flops_saved_by_hand():
    assert early_exit.flop_ratio(4) == pytest.approx(4 * 32 / (32 + 24 + 16 + 8))
    assert early_exit.flop_ratio(1) == 1


@both_precisions
def test_both_early_exit_contenders_do_their_work(small, monkeypatch, precision):
    calls = watch(monkeypatch, early_exit, "early_exit")
    for contender in early_exit.contenders({**TINY, "num_layers": 4}, precision):
        assert contender.tokens == 24
        contender.make()()
    full, early = (call.result for call in calls)
    assert full.layers_used.tolist() == [4] * 4 and early.layers_used.tolist() == [1, 2, 3, 4]
    assert (full.logits[3] - early.logits[3]).abs().max() <= TOLERANCE[full.logits.dtype]


def test_fastbert_contenders_do_what_their_names_say(monkeypatch):
    calls = watch(monkeypatch, fastbert_family, "early_exit")
    size = {**TINY, "num_layers": 4}
    plain, none, half = fastbert.contenders(size, 3)
    for contender in (plain, none, half):
        assert contender.tokens == 3 * fastbert.TOKENS
        contender.make()()
    assert [call.result.layers_used.tolist() for call in calls] == [[4] * 3, [2] * 3]


def test_fastberts_flops_by_hand():
    """A block of 4·16² and twice 16·32 a token, and attention; exits of four units."""
    size, T = {**TINY, "num_layers": 4}, fastbert.TOKENS
    block = 2 * T * (8 * 16**2) + 4 * T * T * 16
    leave = 2 * (T * (16 * 4 + 2 * 16 + 2 * 4) + 3 * 16 + 4 * 3)
    assert fastbert.flop_ratio(size) == (4 * block + leave) / (2 * (block + leave))
