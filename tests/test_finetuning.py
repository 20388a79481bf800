"""Fine-tuning: it learns what can be learnt, and leaves what it was given alone."""

from __future__ import annotations

import pytest
import torch

from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.pretraining import counted_together
from course_lib.objectives.rows import Rows
from course_lib.text.tasks import LabelledRows
from course_lib.train.finetuning import (
    class_accuracy,
    classifier_on,
    finetune,
    labelled_batches,
    text_inputs,
)

CONFIG = BertConfig(
    vocab_size=30, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32,
    max_positions=10, hidden_dropout=0.1, initializer_range=0.1,
)  # fmt: skip
NAMES = ("low", "middle", "high")


def toy(count=60, seed=0):
    """Each class has seven words of its own; texts of 6 to 9 tokens, padded to 10."""
    make = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (count,), generator=make)
    ids = 5 + 7 * labels[:, None] + torch.randint(0, 7, (count, 10), generator=make)
    lengths = torch.randint(6, 10, (count, 1), generator=make)
    ids[:, 0] = 2
    mask = (torch.arange(10) < lengths).long()
    return LabelledRows(Rows(ids * mask, mask, torch.zeros_like(ids)), labels, NAMES)


def encoder(pooler=False):
    torch.manual_seed(0)
    return Encoder(CONFIG, pooler=Pooler(CONFIG) if pooler else None)


def bits(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same_bits(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_it_learns_a_toy_and_the_encoder_given_stays_as_it_is():
    given, task = encoder(), toy()
    given.requires_grad_(False)  # a frozen encoder, such as a teacher's, is trained in its copy
    before = bits(given)
    model = finetune(given, task, steps=40, learning_rate=1e-2, precision="float32")
    assert class_accuracy(model, task) == 1.0 and class_accuracy(model, toy(seed=1)) > 0.9
    assert same_bits(bits(given), before) and given.pooler is None
    assert not any(p.requires_grad for p in given.parameters())
    for name, value in bits(model.encoder).items():
        if name in before and not name.endswith("key.bias"):
            assert not torch.equal(value, before[name]), name  # the whole encoder was trained
    assert model.classifier.out_features == 3 and not model.training


def test_the_same_seed_ends_in_the_same_weights():
    runs = [
        bits(finetune(encoder(), toy(), steps=4, seed=seed, precision="float32"))
        for seed in (0, 0, 1)
    ]
    assert same_bits(runs[0], runs[1]) and not same_bits(runs[0], runs[2])


def test_a_pooler_is_kept_where_there_is_one_and_drawn_where_not():
    given = encoder(pooler=True)
    model = classifier_on(given, 3)
    assert model.encoder is not given
    assert torch.equal(model.encoder.pooler.dense.weight, given.pooler.dense.weight)
    fresh = classifier_on(encoder(), 3).encoder.pooler.dense
    assert fresh.weight.abs().max() <= 2 * CONFIG.initializer_range and not fresh.bias.any()
    one, same, other = (classifier_on(encoder(), 3, seed) for seed in (4, 4, 5))
    assert same_bits(bits(one), bits(same))
    assert not torch.equal(one.classifier.weight, other.classifier.weight)


# ---------------------------------------------------------------- batches


def row_numbers(task, batch):
    """Which of the task's texts a batch holds."""
    ids = batch.inputs["input_ids"]
    wide = torch.nn.functional.pad(ids, (0, task.rows.input_ids.shape[1] - ids.shape[1]))
    same = (wide[:, None] == task.rows.input_ids[None]).all(-1)
    assert (same.sum(1) == 1).all()
    return same.int().argmax(1).tolist()


def test_an_epoch_visits_each_text_once():
    task = toy(60)
    batches = labelled_batches(task, 12, seed=3)
    epochs = [
        [n for step in range(5 * e, 5 * e + 5) for n in row_numbers(task, batches(step))]
        for e in range(2)
    ]
    for epoch in epochs:
        assert sorted(epoch) == list(range(60))
    assert epochs[0] != epochs[1]  # in another order


def test_what_fills_no_batch_is_left_for_another_epoch():
    task = toy(10)
    batches = labelled_batches(task, 4)
    seen = [row_numbers(task, batches(0)) + row_numbers(task, batches(1))]
    assert len(set(seen[0])) == 8
    many = {n for step in range(40) for n in row_numbers(task, batches(step))}
    assert many == set(range(10))


def test_a_batch_is_a_function_of_the_step_and_carries_its_labels():
    task = toy()
    batches = labelled_batches(task, 16, seed=1)
    late = batches(7)
    batches(2)
    again = labelled_batches(task, 16, seed=1)(7)
    assert all(torch.equal(late.inputs[name], again.inputs[name]) for name in late.inputs)
    which = row_numbers(task, late)
    assert torch.equal(late.targets["classes"], task.labels[which])
    assert row_numbers(task, labelled_batches(task, 16, seed=2)(7)) != which


def test_texts_are_cut_to_the_longest():
    task = toy()
    short = task[task.rows.attention_mask.sum(1) == 7]
    inputs = text_inputs(short)
    assert {x.shape[1] for x in inputs.values()} == {7}
    assert torch.equal(inputs["input_ids"], short.rows.input_ids[:, :7])


@pytest.mark.parametrize("batch_size", [0, 61])
def test_a_batch_that_cannot_be_filled_is_refused(batch_size):
    with pytest.raises(ValueError, match=f"batch_size={batch_size} was given for 60 texts"):
        labelled_batches(toy(), batch_size)
    with pytest.raises(ValueError, match="batch_size=16 was given for 10 texts"):
        finetune(encoder(), toy(10), steps=1)


# ---------------------------------------------------------------- accuracy


@pytest.mark.parametrize("training", [True, False])
def test_accuracy_leaves_the_mode_as_it_was(training):
    model = classifier_on(encoder(), 3).train(training)
    assert class_accuracy(model, toy()) == class_accuracy(model, toy())  # without dropout
    assert model.training is training and model.encoder.training is training
    broken = toy()
    broken.rows.input_ids[5, 1] = 99
    with pytest.raises(ValueError, match="expected numbers from 0 to 29"):
        class_accuracy(model, broken)
    assert model.training is training


def test_accuracy_by_hand():
    """A classifier that always says class 1, in parts of seven texts."""
    task, model = toy(), classifier_on(encoder(), 3)
    torch.nn.init.zeros_(model.classifier.weight)
    model.classifier.bias.data = torch.tensor([0.0, 1.0, 0.0])
    expected = (task.labels == 1).double().mean().item()
    assert class_accuracy(model, task, batch_size=7) == pytest.approx(expected)
    assert max((task.labels == c).double().mean().item() for c in range(3)) == pytest.approx(
        task.commonest
    )


def test_the_loss_is_the_mean_of_minus_log_p():
    class Said:
        logits = torch.tensor([[3.0, 1.0], [1.0, 1.0]]).log()

    targets = {"classes": torch.tensor([0, 1])}
    by_hand = -(torch.tensor(3 / 4).log() + torch.tensor(1 / 2).log()) / 2
    assert classification_loss(Said, targets)["total"].item() == pytest.approx(by_hand.item())
    part = {**targets, "num_classes": torch.tensor(8)}  # of a batch of eight texts
    found = classification_loss(Said, part)["total"]
    assert found.item() == pytest.approx(by_hand.item() * 2 / 8)


def test_parts_of_a_batch_add_up():
    task, model = toy(12), classifier_on(encoder(), 3).eval()
    batches = labelled_batches(task, 4)
    parts = counted_together([batches(step) for step in range(3)])
    added = sum(classification_loss(model(**p.inputs), p.targets)["total"] for p in parts)
    whole = classification_loss(model(**text_inputs(task)), {"classes": task.labels})["total"]
    assert added.item() == pytest.approx(whole.item(), rel=1e-5)
