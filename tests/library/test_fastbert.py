"""FastBERT: exits as the authors' code has them, what they learn from, and where texts leave."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_lib import albert, bert, distilbert, roberta
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Stack
from course_lib.family.deberta import DebertaConfig, deberta_encoder
from course_lib.family.fastbert import ExitHead, ExitsOutput, FastBert
from course_lib.kernels.early_exit import first_confident, normalised_entropy, probability_above
from course_lib.objectives.exits import (
    joint_exits_loss,
    self_distillation_loss,
    student_labels_loss,
)
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.text.tasks import LabelledSequences
from course_lib.train.exits import (
    SelfDistillation,
    fastbert_on,
    first_layers,
    train_backbone,
    train_students,
    unlabelled_batches,
)
from course_lib.train.finetuning import class_accuracy, labelled_batches

SIZE = {
    "vocab_size": 50, "hidden_size": 16, "num_heads": 2, "intermediate_size": 32,
    "max_positions": 24, "initializer_range": 0.3,
}  # fmt: skip
LAYERS, CLASSES = 4, 3
EXITS = {"exit_size": 8, "exit_heads": 2}
SPEEDS = (0.0, 0.3, 0.7, 0.9, 1.0)


def a_model(layers=LAYERS, classes=CLASSES, **changes):
    torch.manual_seed(0)
    config = BertConfig(num_layers=layers, **{**SIZE, **changes})
    model = FastBert(Encoder(config), classes, **EXITS)
    for leave in model.exits:  # exits of different minds
        nn.init.normal_(leave.classifier.weight, std=1.5)
    return model.eval()


def some_texts(rows=12, tokens=9, seed=1):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 50, (rows, tokens), generator=generator)
    lengths = torch.randint(2, tokens + 1, (rows, 1), generator=generator)
    return ids, (torch.arange(tokens) < lengths).long()


def a_task(rows=24):
    """Texts whose class is told by their second token."""
    ids, mask = some_texts(rows)
    names = ("low", "middle", "high")
    return LabelledSequences(
        PackedSequences(ids, mask, torch.zeros_like(ids)), (ids[:, 1] - 5) // 15, names
    )


# ---------------------------------------------------------------- the exit


def plain_exit(leave, x, length, heads):
    """One text (T, H), cut to its real tokens, written out: softmax by hand, every token asking."""
    narrow = torch.tanh(x[:length] @ leave.narrow.weight.T + leave.narrow.bias)  # (t, S)
    part, attended = narrow.shape[1] // heads, []
    q, k, v = (
        narrow @ getattr(leave.attention, name).weight.T + getattr(leave.attention, name).bias
        for name in ("query", "key", "value")
    )
    for n in range(heads):
        own = slice(n * part, (n + 1) * part)
        scores = q[:, own] @ k[:, own].T / math.sqrt(part)
        weights = scores.exp() / scores.exp().sum(1, keepdim=True)
        attended.append(weights @ v[:, own])
    out = leave.attention.output
    gathered = torch.cat(attended, 1) @ out.weight.T + out.bias
    last = torch.tanh(gathered[0] @ leave.dense.weight.T + leave.dense.bias)
    return last @ leave.classifier.weight.T + leave.classifier.bias


@pytest.mark.parametrize(("size", "heads"), [(8, 2), (6, 1), (12, 3)])
def test_the_exit_is_what_its_parts_say(size, heads):
    torch.manual_seed(3)
    config = BertConfig(num_layers=1, **SIZE)
    leave = ExitHead(config, CLASSES, size, heads).double().eval()
    x = torch.randn(12, 9, 16, dtype=torch.float64)
    mask = some_texts()[1]
    found = leave(x, mask)
    for row, text, length in zip(found, x, mask.sum(1).tolist(), strict=True):
        assert torch.allclose(row, plain_exit(leave, text, length, heads), atol=1e-12)


def test_the_exits_size_is_the_programs_by_default():
    leave = FastBert(bert("tiny", vocab_size=50), 3).teacher
    assert leave.narrow.out_features == 128 and leave.attention.num_heads == 2
    H, S = 128, 128
    assert sum(p.numel() for p in leave.parameters()) == (
        (H * S + S) + 4 * (S * S + S) + (S * S + S) + (S * 3 + 3)
    )


# ---------------------------------------------------------------- where texts leave


def plain_answer(model, ids, speed):
    """One text alone, all that is needed written out: go on until an exit is sure."""
    x = model.encoder.embeddings(ids[None])
    for depth, (block, leave) in enumerate(
        zip(model.encoder.stack.blocks, model.exits, strict=True), start=1
    ):
        x = block(x)[0]
        logits = leave(x)[0]
        p = logits.softmax(0)
        entropy = -sum(q * math.log(q) for q in p.tolist() if q > 0) / math.log(len(p))
        if entropy <= speed or depth == len(model.exits):
            return logits, depth


@pytest.mark.parametrize("speed", SPEEDS)
def test_texts_leave_where_a_text_alone_would(speed):
    model = a_model()
    ids, mask = some_texts()
    out = model.answer(ids, mask, speed=speed)
    for row, length, logits, used in zip(
        ids, mask.sum(1).tolist(), out.logits, out.layers_used.tolist(), strict=True
    ):
        alone, depth = plain_answer(model, row[:length], speed)
        assert depth == used and torch.allclose(alone, logits, atol=1e-4)


def test_speed_goes_from_all_layers_to_one():
    model, (ids, mask) = a_model(), some_texts()
    depths = [model.answer(ids, mask, speed=s).layers_used.double().mean() for s in SPEEDS]
    assert depths == sorted(depths, reverse=True) and len(set(depths)) > 3
    assert depths[0] == LAYERS and depths[-1] == 1


def test_the_answer_is_a_choice_among_what_all_exits_say():
    model, (ids, mask) = a_model(), some_texts()
    everything = model(ids, mask)
    said = torch.stack(everything.exit_logits)
    assert said.shape == (LAYERS, len(ids), CLASSES)
    assert torch.equal(everything.logits, everything.exit_logits[-1])
    for rule in (probability_above(0.6), lambda logits: normalised_entropy(logits) <= 0.7):
        chosen = first_confident(said, rule)
        found = model.answer(ids, mask, rule=rule)
        assert torch.equal(chosen.layers_used, found.layers_used)
        assert torch.allclose(chosen.logits, found.logits, atol=1e-5)


def test_same_largest_probability_another_entropy():
    """(.6, .4, 0) and (.6, .2, .2): the rule of the largest probability cannot tell them apart."""
    logits = torch.tensor([[0.6, 0.4, 1e-30], [0.6, 0.2, 0.2]]).log()
    entropies = normalised_entropy(logits).tolist()
    assert [round(h, 2) for h in entropies] == [0.61, 0.86]
    by_hand = [
        -(0.6 * math.log(0.6) + 0.4 * math.log(0.4)) / math.log(3),
        -(0.6 * math.log(0.6) + 2 * 0.2 * math.log(0.2)) / math.log(3),
    ]
    assert entropies == pytest.approx(by_hand, abs=1e-6)
    later = torch.zeros(1, 2, 3)
    at = first_confident(torch.cat([logits[None], later]), lambda x: normalised_entropy(x) <= 0.7)
    assert at.layers_used.tolist() == [1, 2]
    alike = first_confident(torch.cat([logits[None], later]), probability_above(0.59))
    assert alike.layers_used.tolist() == [1, 1]


@pytest.mark.parametrize("member", [albert, distilbert, roberta])
def test_members_with_berts_stack_have_exits_too(member):
    torch.manual_seed(0)
    sizes = {k: v for k, v in SIZE.items() if k != "max_positions"} | {"max_positions": 30}
    more = {"embedding_size": 8} if member is albert else {}
    model = FastBert(member("base", **sizes, **more, num_layers=3), CLASSES, **EXITS).eval()
    ids, mask = some_texts()
    ids = ids.where(mask.bool(), torch.tensor(model.config.pad_token_id))
    full = model(ids, mask)
    assert torch.allclose(model.answer(ids, mask, speed=0.0).logits, full.logits, atol=1e-5)
    assert torch.allclose(model.answer(ids, mask, speed=1.0).logits, full.exit_logits[0], atol=1e-5)


@pytest.mark.parametrize("tokens", [1, 9])
def test_flops_are_those_that_are_counted(tokens):
    model, ids = a_model(), torch.full((1, tokens), 7)
    expected = model.flops(tokens)
    with sdpa_kernel(SDPBackend.MATH):
        for speed, flops in ((0.0, expected[-1]), (1.0, expected[0])):
            with FlopCounterMode(display=False) as counter:
                model.answer(ids, speed=speed)
            assert counter.get_total_flops() == flops
    assert [round(f / expected[0]) for f in expected] == [1, 2, 3, 4]


# ---------------------------------------------------------------- what the exits learn from


LOGITS = torch.tensor([[[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]],
                       [[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]],
                       [[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]])  # fmt: skip


def softmax(row):
    total = sum(math.exp(v) for v in row)
    return [math.exp(v) / total for v in row]


def kl(p, q):
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("direction", ["reverse", "forward"])
def test_self_distillation_by_hand(direction):
    *students, teacher = LOGITS.tolist()
    by_hand = []
    for student in students:
        pairs = [(softmax(s), softmax(t)) for s, t in zip(student, teacher, strict=True)]
        if direction == "forward":
            pairs = [(t, s) for s, t in pairs]
        by_hand.append(sum(kl(*pair) for pair in pairs) / 2)
    found = self_distillation_loss(direction)(ExitsOutput(tuple(LOGITS)), {})
    assert [found["exit_1"].item(), found["exit_2"].item()] == pytest.approx(by_hand, abs=1e-6)
    assert found["total"].item() == pytest.approx(sum(by_hand), abs=1e-6)
    assert set(found) == {"total", "exit_1", "exit_2"}


@pytest.mark.parametrize("direction", ["reverse", "forward"])
def test_the_teacher_learns_nothing_from_its_students(direction):
    logits = LOGITS.clone().requires_grad_(True)
    self_distillation_loss(direction)(ExitsOutput(tuple(logits)), {})["total"].backward()
    assert not logits.grad[-1].any() and logits.grad[:-1].any(dim=-1).all()
    # At the minimum, where a student says what the teacher says, nothing pulls.
    same = LOGITS[-1:].repeat(3, 1, 1).requires_grad_(True)
    self_distillation_loss(direction)(ExitsOutput(tuple(same)), {})["total"].backward()
    assert same.grad.abs().max() < 1e-7


def test_losses_on_labels_by_hand():
    labels, outputs = torch.tensor([2, 1]), ExitsOutput(tuple(LOGITS))
    by_hand = [
        -sum(math.log(softmax(row)[n]) for row, n in zip(of_one, (2, 1), strict=True)) / 2
        for of_one in LOGITS.tolist()
    ]
    joint = joint_exits_loss(outputs, {"classes": labels})
    assert joint["total"].item() == pytest.approx(sum(by_hand), abs=1e-5)
    assert joint["exit_3"].item() == pytest.approx(by_hand[2], abs=1e-5)
    students = student_labels_loss(outputs, {"classes": labels})
    assert students["total"].item() == pytest.approx(sum(by_hand[:2]), abs=1e-5)


# ---------------------------------------------------------------- training


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def changed(before, model):
    return {name for name, value in model.state_dict().items()
            if not torch.equal(value, before[name])}  # fmt: skip


STUDENTS = tuple(f"exits.{n}." for n in range(LAYERS - 1))


def test_the_first_stage_leaves_the_students_alone():
    model, task = a_model(), a_task()
    before = weights(model)
    train_backbone(model, labelled_batches(task, 8), steps=3)
    moved = changed(before, model)
    assert moved and not any(name.startswith(STUDENTS) for name in moved)
    assert any(name.startswith(f"exits.{LAYERS - 1}.") for name in moved)
    assert any(name.startswith("encoder.stack") for name in moved)


@pytest.mark.parametrize("dropout", [True, False])
@pytest.mark.parametrize("objective", [None, student_labels_loss])
def test_the_second_stage_trains_the_students_and_nothing_else(dropout, objective):
    model, task = a_model(), a_task()
    before = weights(model)
    batches = labelled_batches(task, 8) if objective else unlabelled_batches(task.sequences, 8)
    train_students(model, batches, objective, dropout=dropout, steps=3)
    moved = changed(before, model)
    assert {name.split(".")[1] for name in moved} == {"0", "1", "2"}
    assert all(name.startswith(STUDENTS) for name in moved)
    assert not any(p.requires_grad for p in model.encoder.parameters())
    assert not model.training


def test_students_come_to_say_what_the_teacher_says():
    model, task = a_model(), a_task()
    texts = task.sequences
    model.exits[-1].classifier.weight.data *= 3
    history = train_students(
        model, unlabelled_batches(texts, 24), steps=60, learning_rate=1e-2, dropout=False
    )
    losses = history.losses["total"]
    assert losses[-1] < losses[0] / 4 and set(history.losses) >= {"exit_1", "exit_3"}


def test_the_teachers_dropout_is_a_switch():
    model, (ids, mask) = a_model(hidden_dropout=0.5, attention_dropout=0.5), some_texts()
    calm = model.eval()(ids, mask).logits
    for dropout in (True, False):
        taught = SelfDistillation(model, dropout).train()
        says = taught(input_ids=ids, attention_mask=mask)
        assert torch.allclose(says.logits, calm, atol=1e-5) is not dropout
        assert model.exits[0].training and model.teacher.training is dropout
        again = taught(input_ids=ids, attention_mask=mask)
        assert not torch.equal(says.exit_logits[0], again.exit_logits[0])  # students drop out


def test_the_backbone_is_a_copy_and_can_be_cut():
    encoder = bert("tiny", vocab_size=50, max_positions=24, num_layers=3).eval()
    model = fastbert_on(encoder, ("yes", "no"), seed=1, **EXITS)
    assert model.encoder is not encoder and model.encoder.pooler is None
    assert encoder.pooler is not None and model.names == ("yes", "no")
    again = fastbert_on(encoder, 2, seed=1, **EXITS)
    assert torch.equal(model.exits[1].dense.weight, again.exits[1].dense.weight)
    ids, mask = some_texts()
    states = encoder(ids, mask, output_hidden_states=True).hidden_states
    for k in (1, 2, 3):
        cut = first_layers(encoder, k)
        assert len(cut.stack.blocks) == cut.config.num_layers == k
        assert torch.equal(cut(ids, mask).last_hidden_state, states[k])
    assert len(encoder.stack.blocks) == encoder.config.num_layers == 3
    shared = albert("base", **SIZE, embedding_size=8, num_layers=4)
    assert len(first_layers(shared, 2).stack.plan) == 2


def test_a_fastbert_is_a_classifier_to_the_rest_of_the_library():
    model, task = a_model(), a_task()
    right = (model(task.sequences.input_ids, task.sequences.attention_mask).logits.argmax(-1)
             == task.labels)  # fmt: skip
    assert class_accuracy(model, task) == right.double().mean().item()


def test_weights_go_out_and_come_back():
    model, (ids, mask) = a_model(), some_texts()
    other = FastBert(Encoder(model.config), CLASSES, **EXITS).eval()
    assert not torch.equal(other(ids, mask).logits, model(ids, mask).logits)
    other.load_state_dict(copy.deepcopy(model.state_dict()))
    pairs = zip(other(ids, mask).exit_logits, model(ids, mask).exit_logits, strict=True)
    assert all(torch.equal(one, another) for one, another in pairs)


# ---------------------------------------------------------------- what is refused


def test_what_cannot_be_a_fastbert_is_refused():
    encoder = Encoder(BertConfig(num_layers=2, **SIZE))
    for classes in (1, ["only"]):
        with pytest.raises(ValueError, match="expected two or more: with one, no exit"):
            FastBert(encoder, classes)
    with pytest.raises(ValueError, match="expected at least one"):
        FastBert(Encoder(BertConfig(num_layers=0, **SIZE)), 3)
    with pytest.raises(ValueError, match="DebertaStack was given"):
        FastBert(deberta_encoder(DebertaConfig(num_layers=2, **SIZE)), 3)

    class Other(Stack):
        """Something behind the blocks, which a walk through them would leave out."""

    with pytest.raises(ValueError, match="a Other was given"):
        FastBert(Encoder(encoder.config, stack=Other(encoder.config)), 3)
    with pytest.raises(ValueError, match="num_heads"):
        FastBert(encoder, 3, exit_size=7, exit_heads=2)


def test_what_cannot_be_answered_is_refused():
    model, (ids, mask) = a_model(), some_texts()
    for speed in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="expected a number from 0 to 1"):
            model.answer(ids, mask, speed=speed)
    for call in (model, model.answer):
        with pytest.raises(ValueError, match="at least one of each"):
            call(ids[:0], mask[:0])
        with pytest.raises(ValueError, match="attention_mask of shape"):
            call(ids, mask[:, :2])


def test_what_cannot_be_learned_is_refused():
    outputs = ExitsOutput(tuple(LOGITS))
    with pytest.raises(ValueError, match="expected one of"):
        self_distillation_loss("both")
    for loss in (joint_exits_loss, student_labels_loss):
        with pytest.raises(ValueError, match='expected "classes", a label a text'):
            loss(outputs, {})
        with pytest.raises(ValueError, match="expected numbers from 0 to 2"):
            loss(outputs, {"classes": torch.tensor([0, 3])})
    alone = ExitsOutput(tuple(LOGITS[:1]))
    for loss in (self_distillation_loss(), student_labels_loss):
        with pytest.raises(ValueError, match="the last one is the teacher"):
            loss(alone, {"classes": torch.tensor([0, 1])})
    for layers in (0, 5):
        with pytest.raises(ValueError, match="expected 1 to 4"):
            first_layers(a_model().encoder, layers)
    with pytest.raises(ValueError, match="expected 1 to 12"):
        unlabelled_batches(PackedSequences(*(x for x in some_texts()), some_texts()[1]), 13)


def test_batches_without_labels_have_none():
    ids, mask = some_texts()
    batch = unlabelled_batches(PackedSequences(ids, mask, torch.zeros_like(ids)), 4)(0)
    assert isinstance(batch, Batch) and not batch.targets
    assert batch.inputs["input_ids"].shape == (4, 9)
