"""ELECTRA's Table 5 in miniature: five models on the way from BERT, each with its own loss."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from course_lib.encoder import Encoder
from course_lib.family.electra import Electra, ElectraConfig
from course_lib.heads import BertForMaskedLM
from course_lib.lectures.lecture_07.ablation_steps import (
    ABLATION_STEPS,
    WordReader,
    ablation_step,
    all_tokens_loss,
    kept_encoder,
    replace_mlm_loss,
)
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.replaced_tokens import PAPER_MIX, replaced_token_loss
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.train.loop import fit

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=30)
CONFIG = ElectraConfig(
    vocab_size=30, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32,
    max_positions=12, embedding_size=8, hidden_dropout=0.0, attention_dropout=0.0,
    initializer_range=0.1,
)  # fmt: skip
every_step = pytest.mark.parametrize("name", ABLATION_STEPS)
corrected = pytest.mark.parametrize("name", ABLATION_STEPS[1:])


def batches(batch_size=8):
    make = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 30, (32, 12), generator=make)
    real = torch.arange(12) < torch.randint(7, 13, (32, 1), generator=make)
    ids[:, 0] = SPECIAL.cls
    rows = PackedSequences(ids * real, real.long(), torch.zeros_like(ids))
    return pretraining_batches(rows, SPECIAL, batch_size=batch_size, rate=0.3, mix=PAPER_MIX)


def build(name, seed=0):
    torch.manual_seed(seed)
    return ablation_step(name, CONFIG, size=0.5)


def read_by(encoder, run):
    """The ids that an encoder is given while something runs."""
    seen = []
    hook = encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    run()
    hook.remove()
    return seen


# ---------------------------------------------------------------- all five


@every_step
def test_each_ablation_step_trains(name):
    model, objective = build(name)
    before = {n: p.clone() for n, p in kept_encoder(model).named_parameters()}
    history = fit(model, objective, batches(), steps=2, precision="float32")
    for losses in history.losses.values():
        assert all(math.isfinite(loss) and loss > 0 for loss in losses)
    parts = {"BERT": {"mlm"}, "Replace MLM": {"mlm", "reader"}, "All-tokens MLM": {"mlm", "reader"}}
    assert set(history.losses) == {"total"} | parts.get(name, {"mlm", "rtd"})
    after = dict(kept_encoder(model).named_parameters())
    assert any(not torch.equal(value, before[n]) for n, value in after.items() if "stack" in n)


@every_step
def test_who_reads_mask(name):
    """BERT reads [MASK]. In the others the generator does; what is kept sees its words instead,
    and [MASK] only where the generator itself wrote it."""
    model, _ = build(name)
    batch = batches()(0)
    ids, at = batch.inputs["input_ids"], batch.inputs["predict_at"]
    assert (ids.flatten()[at] == SPECIAL.mask).all()
    outputs = []
    (read,) = read_by(kept_encoder(model), lambda: outputs.append(model(**batch.inputs)))
    if name == "BERT":
        assert torch.equal(read, ids)
        return
    assert torch.equal(read, outputs[0].corrupted_ids)
    elsewhere = torch.ones(ids.numel(), dtype=torch.bool)
    elsewhere[at] = False
    assert torch.equal(read.flatten()[elsewhere], ids.flatten()[elsewhere])
    generator = model.generator.encoder
    assert torch.equal(read_by(generator, lambda: model(**batch.inputs))[0], ids)
    never = torch.zeros(30)
    never[SPECIAL.mask] = -1e9
    model.generator.mlm.bias.data += never  # a generator that never writes [MASK]
    (read,) = read_by(kept_encoder(model), lambda: model(**batch.inputs))
    assert not (read == SPECIAL.mask).any()


@every_step
def test_what_is_kept_is_the_encoder_in_the_reader(name):
    model, _ = build(name)
    kept = kept_encoder(model)
    assert isinstance(kept, Encoder) and kept.config == CONFIG
    if name != "BERT":
        assert kept is not model.generator.encoder
        assert model.generator.config.hidden_size == 8
    place = {"BERT": "encoder", "Replace MLM": "reader.encoder", "All-tokens MLM": "reader.encoder"}
    assert kept is model.get_submodule(place.get(name, "discriminator.encoder"))


def test_each_changes_one_thing():
    models = {name: build(name)[0] for name in ABLATION_STEPS}
    assert type(models["BERT"]) is BertForMaskedLM
    assert [type(models[name]) for name in ABLATION_STEPS[1:]] == [
        WordReader,
        Electra,
        WordReader,
        Electra,
    ]
    assert models["Replace MLM"].copy is None and models["All-tokens MLM"].copy is not None
    batch = batches()(0)
    (model, every), (_, masked) = build("ELECTRA"), build("ELECTRA 15%")
    outputs = model(**batch.inputs)
    losses = every(outputs, batch.targets)["rtd"], masked(outputs, batch.targets)["rtd"]
    assert losses[0] == replaced_token_loss(outputs, batch.targets)["rtd"]
    assert losses[1] == replaced_token_loss(outputs, batch.targets, only_masked=True)["rtd"]
    assert losses[0] != losses[1]


@corrected
def test_the_generator_learns_nothing_from_the_reader(name):
    """But for the tables that both own. Its own blocks and its head move by its own loss alone."""
    model, objective = build(name)
    batch = batches()(0)
    torch.manual_seed(0)
    losses = objective(model(**batch.inputs), batch.targets)
    readers = losses.get("reader", losses.get("rtd"))
    shared = {id(p) for p in kept_encoder(model).parameters()}
    own = [p for p in model.generator.parameters() if id(p) not in shared]
    assert len(own) > 10
    assert all(g is None for g in grads(readers, own)) and None not in grads(losses["mlm"], own)
    tables = [p for p in model.generator.parameters() if id(p) in shared]
    assert len(tables) == 5 and None not in grads(readers, tables)  # three tables, one LayerNorm


def grads(loss, parameters):
    return torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)


def test_another_ablation_step_is_refused():
    with pytest.raises(ValueError, match=r"step 'XLNet' was given; expected one of BERT, Replace"):
        ablation_step("XLNet", CONFIG)
    with pytest.raises(ValueError, match=r"A Linear was given.*ablation_step"):
        kept_encoder(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("name", ["Replace MLM", "All-tokens MLM"])
def test_without_a_mask_every_token_is_real(name):
    model, objective = build(name)
    ids, at = torch.tensor([[2, 4, 8, 9]]), torch.tensor([1])
    torch.manual_seed(0)
    bare = objective(model(ids, predict_at=at), {"labels": torch.tensor([7])})
    torch.manual_seed(0)
    outputs = model(ids, torch.ones_like(ids), predict_at=at)
    assert objective(outputs, {"labels": torch.tensor([7])})["total"] == bare["total"]


# ---------------------------------------------------------------- the readers' losses


def reader_output(copy, probabilities, corrupted, at, mask=None):
    """What a reader and a generator without an opinion say: copy (B, T) and words (B, T, V) as
    probabilities."""
    corrupted = torch.tensor(corrupted)
    return SimpleNamespace(
        prediction_logits=torch.zeros(len(at), 4, dtype=torch.float64),
        reader_logits=torch.tensor(probabilities, dtype=torch.float64).log(),
        corrupted_ids=corrupted,
        predict_at=torch.tensor(at),
        attention_mask=torch.ones_like(corrupted) if mask is None else torch.tensor(mask),
        copy_logits=torch.tensor(copy, dtype=torch.float64).logit(),
    )


P = [0.1, 0.2, 0.3, 0.4]  # of the four words


def test_all_tokens_by_hand():
    """Words 3 2 1 stand there. The second was drawn, wrongly: it was 0; the third, rightly."""
    outputs = reader_output([[0.9, 0.6, 0.2]], [[P, P, P]], [[3, 2, 1]], [1, 2])
    losses = all_tokens_loss(outputs, {"labels": torch.tensor([0, 1])})
    probabilities = [0.9 + 0.1 * 0.4, 0.4 * 0.1, 0.2 + 0.8 * 0.2]
    assert losses["reader"].item() == pytest.approx(-sum(map(math.log, probabilities)) / 3)
    assert losses["mlm"].item() == pytest.approx(math.log(4))
    assert losses["total"].item() == pytest.approx(losses["mlm"].item() + losses["reader"].item())


def test_all_tokens_leaves_padding_out():
    outputs = reader_output([[0.9, 0.6, 0.2]], [[P, P, P]], [[3, 2, 1]], [1], mask=[[1, 1, 0]])
    loss = all_tokens_loss(outputs, {"labels": torch.tensor([0])})["reader"]
    by_hand = -(math.log(0.9 + 0.1 * 0.4) + math.log(0.4 * 0.1)) / 2
    assert loss.item() == pytest.approx(by_hand)
    other = reader_output([[0.9, 0.6, 0.7]], [[P, P, P[::-1]]], [[3, 2, 0]], [1], mask=[[1, 1, 0]])
    assert all_tokens_loss(other, {"labels": torch.tensor([0])})["reader"] == loss


def test_without_copying_the_loss_is_cross_entropy():
    """Copy probability 0: cross-entropy over all real tokens. Copy probability 1: right where
    nothing was replaced, hopeless where something was."""
    make = torch.Generator().manual_seed(0)
    probabilities = torch.randn(2, 5, 4, generator=make).softmax(-1)
    corrupted = torch.randint(0, 4, (2, 5), generator=make)
    at, labels = [1, 7], torch.tensor([2, 3])
    mask = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    outputs = reader_output([[0.5] * 5] * 2, probabilities.tolist(), corrupted.tolist(), at, mask)
    outputs.copy_logits = torch.full((2, 5), -1e4, dtype=torch.float64)
    true = corrupted.flatten().clone()
    true[at] = labels
    real = torch.tensor(mask).flatten().bool()
    plain = F.cross_entropy(probabilities.double().flatten(0, 1).log()[real], true[real])
    loss = all_tokens_loss(outputs, {"labels": labels})["reader"]
    assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
    outputs.copy_logits = torch.full((2, 5), 30.0, dtype=torch.float64)
    outputs.corrupted_ids.view(-1)[at] = labels
    assert all_tokens_loss(outputs, {"labels": labels})["reader"].item() < 1e-9
    outputs.corrupted_ids.view(-1)[at] = 3 - labels
    assert all_tokens_loss(outputs, {"labels": labels})["reader"].item() > 2 * 30 / 8


def test_the_slope_of_the_copy_score_points_the_right_way():
    outputs = reader_output([[0.5, 0.5]], [[P, P]], [[3, 2]], [1])
    outputs.copy_logits.requires_grad_()
    all_tokens_loss(outputs, {"labels": torch.tensor([0])})["reader"].backward()
    kept, replaced = outputs.copy_logits.grad[0].tolist()
    assert kept < 0 < replaced and math.isclose(replaced, 0.5 / 2, rel_tol=1e-9)


def test_replace_mlm_predicts_at_the_masked_positions():
    outputs = reader_output([[0.5, 0.5]], [[P, P]], [[3, 2]], [0, 1])
    outputs.reader_logits = torch.tensor([P, P]).log()
    losses = replace_mlm_loss(outputs, {"labels": torch.tensor([3, 0])})
    assert losses["reader"].item() == pytest.approx(-(math.log(0.4) + math.log(0.1)) / 2)
    assert losses["total"].item() == pytest.approx(math.log(4) + losses["reader"].item())
    empty = SimpleNamespace(prediction_logits=torch.zeros(0, 4), reader_logits=torch.zeros(0, 4))
    assert replace_mlm_loss(empty, {"labels": torch.zeros(0).long()})["total"] == 0
