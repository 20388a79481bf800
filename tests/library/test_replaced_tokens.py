"""Replaced token detection: what counts as replaced, over which tokens, and where λ stands."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from objective_parts import draw_sequences, special_ids, within_five_sd

from course_lib.family.electra import ElectraConfig, electra_from, fill_in
from course_lib.objectives.pretraining import pretraining_batch, pretraining_batches, split_batch
from course_lib.objectives.replaced_tokens import (
    ORIGINAL,
    PAPER_MIX,
    RELEASED_MIX,
    REPLACED,
    electra_loss,
    replaced_labels,
    replaced_token_loss,
)
from course_lib.objectives.sequences import PackedSequences
from course_lib.train.loop import fit

SPECIAL = special_ids(60)


def small_electra(size=0.5, seed=0, **changes):
    torch.manual_seed(seed)
    settings = {
        "vocab_size": 60, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_positions": 16,
        "intermediate_size": 64, "embedding_size": 16, "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }  # fmt: skip
    return electra_from(ElectraConfig(**{**settings, **changes}), size)


# ---------------------------------------------------------------- labels


def test_where_the_generator_draws_the_true_word_nothing_was_replaced():
    """Shares of the line from 0 to 1 decide what is drawn: words 7 and 8 with even chances."""
    text, at = torch.tensor([[2, 4, 4, 3]]), torch.tensor([1, 2])
    logits = torch.full((2, 60), -1e9)
    logits[:, 7:9] = 0.0
    true = torch.tensor([7, 7])
    right_then_wrong = fill_in(text, at, logits, uniforms=torch.tensor([0.2, 0.8]))
    assert right_then_wrong.tolist() == [[2, 7, 8, 3]]
    assert replaced_labels(right_then_wrong, at, true).tolist() == [[0, 0, 1, 0]]
    both_right = fill_in(text, at, logits, uniforms=torch.tensor([0.2, 0.3]))
    assert not replaced_labels(both_right, at, true).any()
    assert (ORIGINAL, REPLACED) == (0, 1)


@pytest.mark.parametrize(("mix", "shown"), [(PAPER_MIX, 1.0), (RELEASED_MIX, 0.85)])
def test_the_two_mixes(mix, shown):
    """How much of what is asked the generator sees as [MASK]; the rest is the word itself."""
    sequences = draw_sequences(SPECIAL, 4_000, 16)
    batch = pretraining_batch(sequences, SPECIAL, mix=mix)
    became = batch.inputs["input_ids"].flatten()[batch.inputs["predict_at"]]
    masked = became == SPECIAL.mask
    assert torch.equal(became[~masked], batch.targets["labels"][~masked])
    assert within_five_sd(int(masked.sum()), len(masked), shown)


# ---------------------------------------------------------------- drawing


def test_replacements_follow_the_generators_distribution():
    """20,000 draws of six words: each share within five standard deviations."""
    p = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.04, 0.01])
    count = 20_000
    logits = torch.full((count, 60), -torch.inf)
    words = torch.tensor([9, 5, 33, 20, 59, 0])
    logits[:, words] = p.log() + 3.0
    torch.manual_seed(0)
    text = torch.full((count // 10, 10), SPECIAL.mask)
    drawn = fill_in(text, torch.arange(count), logits)
    hits = torch.bincount(drawn.flatten(), minlength=60)
    assert int(hits.sum()) == int(hits[words].sum()) == count
    for word, share in zip(words.tolist(), p.tolist(), strict=True):
        assert within_five_sd(int(hits[word]), count, share)
    again = fill_in(text, torch.arange(count), logits)  # an independent draw
    assert within_five_sd(int((again == drawn).sum()), count, float(p.square().sum()))


# ---------------------------------------------------------------- the loss


def judged(logits, corrupted, at, mask):
    return SimpleNamespace(
        logits=logits, corrupted_ids=corrupted, predict_at=at, attention_mask=mask,
        prediction_logits=torch.zeros(len(at), 60),
    )  # fmt: skip


def two_texts(logits=None):
    """[CLS] 10 21 12 [SEP] and [CLS] 13 [SEP]; the true words are 11 (became 21) and 13."""
    corrupted = torch.tensor([[2, 10, 21, 12, 3], [2, 13, 3, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    logits = torch.zeros(2, 5) if logits is None else logits
    outputs = judged(logits, corrupted, torch.tensor([2, 6]), mask)
    return outputs, {"labels": torch.tensor([11, 13])}


def test_the_loss_by_hand():
    """Scores are ln of the odds that a token was replaced (the code's sign, not the paper's). Eight
    real tokens, [CLS] and [SEP] among them, one of them replaced; padding never counts."""
    odds = torch.tensor([[2.0, 3.0, 3.0, 1 / 3, 4.0], [1.0, 1.0, 1 / 4, 99.0, 99.0]])
    outputs, targets = two_texts(odds.log())
    real = [1 / 3, 1 / 4, 3 / 4, 3 / 4, 1 / 5, 1 / 2, 1 / 2, 4 / 5]  # P(the true label)
    found = replaced_token_loss(outputs, targets)["rtd"]
    assert found.item() == pytest.approx(-sum(map(math.log, real)) / 8, rel=1e-6)
    found = replaced_token_loss(outputs, targets, only_masked=True)["rtd"]
    masked = (math.log(3 / 4) + math.log(1 / 2)) / 2  # the two that were masked
    assert found.item() == pytest.approx(-masked, rel=1e-6)


def test_against_torchs_own_loss_on_real_batches():
    """Replaced is where the text differs from the original, and nowhere else."""
    sequences = draw_sequences(SPECIAL, 24, 16)
    batch = pretraining_batch(sequences, SPECIAL, rate=0.3, mix=PAPER_MIX)
    outputs = small_electra(initializer_range=0.5).double()(**batch.inputs)
    real = batch.inputs["attention_mask"].bool()
    replaced = outputs.corrupted_ids != sequences.input_ids[:, : real.shape[1]]
    assert 0 < replaced.sum() <= len(outputs.predict_at)
    said = outputs.logits.sigmoid()[real]
    expected = F.binary_cross_entropy(said, replaced[real].double())
    found = replaced_token_loss(outputs, batch.targets)["rtd"]
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(expected.item(), rel=1e-9)


def test_a_position_whose_word_is_unknown_does_not_count():
    outputs, _ = two_texts(torch.arange(10.0).view(2, 5) / 5)
    unknown = {"labels": torch.tensor([-100, 13])}
    without = judged(
        outputs.logits, outputs.corrupted_ids, torch.tensor([6]),
        outputs.attention_mask * torch.tensor([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1]]),
    )  # fmt: skip
    known = {"labels": torch.tensor([13])}
    for only_masked in (False, True):
        found = replaced_token_loss(outputs, unknown, only_masked=only_masked)["rtd"]
        assert found == replaced_token_loss(without, known, only_masked=only_masked)["rtd"]
    assert outputs.attention_mask[0, 2] == 1  # the mask it was given is left alone


def test_nothing_selected_is_zero_and_still_has_a_gradient():
    outputs, _ = two_texts(torch.zeros(2, 5, requires_grad=True))
    nothing = judged(
        outputs.logits, outputs.corrupted_ids, torch.tensor([]).long(), outputs.attention_mask
    )
    targets = {"labels": torch.tensor([]).long()}
    loss = replaced_token_loss(nothing, targets, only_masked=True)["rtd"]
    assert loss.item() == 0
    loss.backward()
    assert (outputs.logits.grad == 0).all()


# ---------------------------------------------------------------- both losses, and λ


def test_lambda_stands_before_the_discriminators_loss():
    batch = pretraining_batch(draw_sequences(SPECIAL, 24, 16), SPECIAL, mix=PAPER_MIX)
    outputs = small_electra()(**batch.inputs)
    found = electra_loss()(outputs, batch.targets)
    mlm, rtd = found["mlm"].item(), found["rtd"].item()
    assert found["total"].item() == pytest.approx(mlm + 50 * rtd, rel=1e-6)
    other = electra_loss(3.0, 7.0)(outputs, batch.targets)
    assert other["total"].item() == pytest.approx(7 * mlm + 3 * rtd, rel=1e-6)
    assert other["mlm"] == found["mlm"] and other["rtd"] == found["rtd"]  # named bare, unweighted
    masked = electra_loss(only_masked=True)(outputs, batch.targets)
    assert masked["rtd"] == replaced_token_loss(outputs, batch.targets, only_masked=True)["rtd"]


def test_a_randomly_initialised_model_starts_at_ln_v_and_ln_2():
    """So the discriminator has 77% of the loss with BERT's vocabulary, and 0.13% were λ to stand
    before the generator's."""
    batch = pretraining_batch(draw_sequences(SPECIAL, 200, 16), SPECIAL, mix=PAPER_MIX)
    found = electra_loss()(small_electra()(**batch.inputs), batch.targets)
    assert found["mlm"].item() == pytest.approx(math.log(60), rel=0.02)
    assert found["rtd"].item() == pytest.approx(math.log(2), rel=0.02)
    mlm, rtd = math.log(30_522), math.log(2)
    assert round(50 * rtd / (mlm + 50 * rtd), 2) == 0.77
    assert round(rtd / (rtd + 50 * mlm), 4) == 0.0013


def test_the_generator_learns_nothing_from_the_discriminator():
    """Without tied tables: the discriminator's loss reaches the discriminator alone."""
    batch = pretraining_batch(draw_sequences(SPECIAL, 24, 16), SPECIAL, mix=PAPER_MIX)
    model = electra_from(small_electra().config, 0.5, tied="none")
    loss = electra_loss(50.0, 0.0)(model(**batch.inputs), batch.targets)
    loss["total"].backward()
    assert not any(p.grad is not None and p.grad.any() for p in model.generator.parameters())
    assert any(p.grad is not None and p.grad.any() for p in model.discriminator.parameters())


def test_the_discriminator_learns_while_the_generator_only_guesses():
    """One text, again and again. Knowing only how many tokens are replaced costs 0.5 nats."""
    ids = torch.tensor([2, *range(5, 14)]).repeat(32, 1)
    sequences = PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids))
    model = small_electra(initializer_range=0.1, num_layers=1)
    batches = pretraining_batches(sequences, SPECIAL, batch_size=8, rate=0.2, mix=PAPER_MIX)
    loss = electra_loss(1.0, 0.0)
    curve = fit(model, loss, batches, steps=40, learning_rate=5e-3, precision="float32").losses
    share = 2 / 10 * 59 / 60
    known = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert curve["rtd"][0] > known and max(curve["rtd"][-5:]) < known / 2


@pytest.mark.parametrize("only_masked", [False, True])
@pytest.mark.parametrize("unasked", [(), (0, 1, 5)])
def test_parts_of_a_batch_add_up(only_masked, unasked):
    """Uneven parts, and places that are not asked: shares of the whole's means, and of its
    gradients. The mean of the parts' own means is another number."""
    batch = pretraining_batch(draw_sequences(SPECIAL, 24, 16), SPECIAL)
    batch.targets["labels"][list(unasked)] = -100
    model = small_electra(initializer_range=0.1).double()
    model.generator.mlm.bias.data[9] = 1e4  # it is sure, so that all draws are the same

    def loss_of(part, targets):
        found = electra_loss(only_masked=only_masked)(model(**part.inputs), targets)
        return found["rtd"], torch.cat([
            g.flatten() for g in torch.autograd.grad(
                found["rtd"], list(model.discriminator.encoder.stack.parameters()))])  # fmt: skip

    whole, gradient = loss_of(batch, batch.targets)
    parts = split_batch(batch, 5)
    assert len({int(part.inputs["attention_mask"].sum()) for part in parts}) > 1
    shares, gradients = zip(*(loss_of(part, part.targets) for part in parts), strict=True)
    assert sum(shares).item() == pytest.approx(whole.item(), rel=1e-12)
    assert (sum(gradients) - gradient).abs().max() <= 1e-12 * gradient.abs().max()
    alone = [{n: x for n, x in p.targets.items() if not n.startswith("num_")} for p in parts]
    means = [loss_of(p, targets)[0] for p, targets in zip(parts, alone, strict=True)]
    assert abs(sum(means) / 5 - whole) > 1e-6


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ((-1.0, 1.0), "expected finite numbers of at least 0"),
        ((50.0, math.nan), "expected finite numbers of at least 0"),
        ((math.inf, 1.0), "expected finite numbers of at least 0"),
        ((0.0, 0.0), "all weights are 0"),
    ],
)
def test_weights_that_are_none_are_refused(weights, says):
    with pytest.raises(ValueError, match=says):
        electra_loss(*weights)
