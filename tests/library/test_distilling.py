"""A student beside its teacher: one learns, the other never moves; repeatable to the bit."""

from __future__ import annotations

import pytest
import torch
from objective_parts import draw_sequences, special_ids
from torch import nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder, Pooler
from course_lib.family.distilbert import DistilBertConfig, distilbert_encoder, initialise_from
from course_lib.family.tinybert import fit_matrix, layer_mapping, tinybert_encoder
from course_lib.heads import BertForClassification, BertForMaskedLM
from course_lib.objectives.distillation import distilbert_loss, tinybert_loss
from course_lib.objectives.pretraining import pretraining_batch, pretraining_batches
from course_lib.objectives.sequences import Batch
from course_lib.train.distilling import DistillationPair
from course_lib.train.loop import fit

SPECIAL = special_ids(40)
SHAPE = {
    "vocab_size": 40, "num_heads": 2, "max_positions": 12, "hidden_dropout": 0.1,
    "attention_dropout": 0.1, "initializer_range": 0.1,
}  # fmt: skip
BIG = BertConfig(**SHAPE, hidden_size=16, num_layers=2, intermediate_size=32)
NARROW = BertConfig(**SHAPE, hidden_size=8, num_layers=1, intermediate_size=16)
INNER = {"attention": 0.0, "hidden": 0.0, "embedding": 0.0}
STEPS = 12


def distilbert_case(**weights):
    """Half as deep, no segments, begun as the teacher's layers."""
    teacher = BertForMaskedLM(Encoder(BIG))
    config = DistilBertConfig(**SHAPE, hidden_size=16, num_layers=1, intermediate_size=32)
    student = initialise_from(BertForMaskedLM(distilbert_encoder(config)), teacher)
    return DistillationPair(student, teacher), distilbert_loss(**weights), word_batches()


def tinybert_case():
    """Bare encoders, half as wide: the inner losses."""
    student = tinybert_encoder(NARROW, pooler=False)
    pair = DistillationPair(student, Encoder(BIG), fit_matrix(NARROW, BIG), scores=True)
    return pair, tinybert_loss(layer_mapping(1, 2)), word_batches(rate=0.0)


def classifier_case():
    """Two classifiers: the student learns the teacher's answers."""
    student = BertForClassification(tinybert_encoder(NARROW), 3)
    teacher = BertForClassification(Encoder(BIG, pooler=Pooler(BIG)), 3)
    nn.init.normal_(teacher.classifier.weight)
    plain = word_batches(rate=0.0)

    def batches(step):
        inputs = {k: v for k, v in plain(step).inputs.items() if k != "predict_at"}
        return Batch(inputs, {"classes": torch.zeros(8, dtype=torch.long)})

    return DistillationPair(student, teacher), tinybert_loss((), **INNER, prediction=1.0), batches


def word_batches(**settings):
    return pretraining_batches(draw_sequences(SPECIAL, 32, 12), SPECIAL, batch_size=8, **settings)


CASES = {"DistilBERT": distilbert_case, "TinyBERT": tinybert_case, "classifiers": classifier_case}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def train(case, checkpoint=None, callbacks=(), steps=STEPS):
    torch.manual_seed(0)
    pair, objective, batches = case()
    history = fit(
        pair, objective, batches, steps=steps, learning_rate=3e-3, precision="float32",
        callbacks=callbacks, checkpoint=checkpoint, checkpoint_every=4,
    )  # fmt: skip
    return pair, history


def same_bits(a, b):
    """Of weights that were left alone; and of a run that is repeated, or stopped and resumed, on
    the same machine, with the same versions, precision and thread count."""
    a, b = a.state_dict(), b.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# ---------------------------------------------------------------- who learns


@every_case
def test_the_teacher_never_moves_and_the_student_does(case):
    torch.manual_seed(0)
    before = case()[0]
    modes = []
    pair, _ = train(case, callbacks=[lambda report: modes.append(modes_of(report.model))])
    assert same_bits(pair.teacher, before.teacher)
    assert all(p.grad is None and not p.requires_grad for p in pair.teacher.parameters())
    for name, value in pair.student.state_dict().items():
        moved = not torch.equal(value, before.student.state_dict()[name])
        # Nothing asks the key's bias: the softmax is blind to it. But rounding may move it.
        assert moved or name.endswith("key.bias"), name
    if pair.matrix is not None:
        assert not torch.equal(pair.matrix.weight, before.matrix.weight)
    assert modes == [(True, True, False)] * STEPS  # pair, student, teacher, while training


def modes_of(pair):
    teacher = {module.training for module in pair.teacher.modules()}
    assert len(teacher) == 1
    return pair.training, pair.student.training, *teacher


def test_the_teacher_stays_in_evaluation_mode():
    pair = distilbert_case()[0]
    assert modes_of(pair)[2] is False
    assert pair.train() is pair and modes_of(pair) == (True, True, False)
    pair.eval()
    assert modes_of(pair) == (False, False, False)
    sequences = draw_sequences(SPECIAL, 4, 12)
    pair.train()  # the teacher, without dropout, says the same twice; the student does not
    first, second = (pair(sequences.input_ids, sequences.attention_mask) for _ in range(2))
    assert torch.equal(first.teacher.logits, second.teacher.logits)
    assert not torch.equal(first.student.logits, second.student.logits)


def without_words():
    """Random words cannot be guessed; what the teacher says of them can still be learnt."""
    return distilbert_case(mlm=0.0)


@pytest.mark.parametrize("case", [without_words, tinybert_case, classifier_case])
def test_the_student_comes_nearer(case):
    pair, history = train(case, steps=40)
    losses = history.losses["total"]
    floor = entropy_of_the_teacher(pair) if case is classifier_case else 0.0
    assert sum(losses[-5:]) / 5 - floor < 0.8 * (sum(losses[:3]) / 3 - floor)


@torch.no_grad()
def entropy_of_the_teacher(pair):
    sequences = draw_sequences(SPECIAL, 32, 12)
    p = pair.teacher(sequences.input_ids, sequences.attention_mask).logits.softmax(-1)
    return -(p * p.log()).sum(-1).mean().item()


def test_a_student_of_one_shape_with_its_teacher_cannot_share_its_weights():
    model = BertForMaskedLM(Encoder(BIG))
    with pytest.raises(ValueError, match=r"shares weights with its teacher.*copy\.deepcopy"):
        DistillationPair(model, model)
    other = BertForMaskedLM(Encoder(BIG))
    other.encoder.embeddings.token = model.encoder.embeddings.token
    with pytest.raises(ValueError, match="shares weights"):
        DistillationPair(other, model)
    assert all(p.requires_grad for p in model.parameters())  # nothing was frozen on the way


# ---------------------------------------------------------------- what is said


def test_both_answer_for_every_token_wherever_words_were_masked():
    pair = distilbert_case()[0].eval()
    batch = pretraining_batch(draw_sequences(SPECIAL, 4, 12), SPECIAL)
    out = pair(**batch.inputs)
    tokens = batch.inputs["input_ids"].shape[1]
    for said, layers in ((out.student, 1), (out.teacher, 2)):
        assert said.logits.shape == (4, tokens, 40)
        assert len(said.hidden_states) == layers + 1 and said.attention_scores is None
    assert torch.equal(out.predict_at, batch.inputs["predict_at"])
    assert torch.equal(out.real, batch.inputs["attention_mask"].bool())
    assert out.widened is out.student.hidden_states
    alone = pair.teacher(*(batch.inputs[k] for k in ("input_ids", "attention_mask")))
    assert torch.equal(alone.logits, out.teacher.logits)
    assert not out.teacher.logits.requires_grad and out.student.logits.requires_grad
    unmasked = pair(torch.full((2, 5), 7)).real  # without a mask every token is real
    assert unmasked.dtype == torch.bool and unmasked.all() and unmasked.shape == (2, 5)


def test_states_are_widened_by_the_one_matrix():
    pair = tinybert_case()[0].eval()
    sequences = draw_sequences(SPECIAL, 4, 12)
    out = pair(sequences.input_ids, sequences.attention_mask)
    assert len(out.widened) == len(out.student.hidden_states) == 2
    for wide, state in zip(out.widened, out.student.hidden_states, strict=True):
        assert wide.shape[-1] == 16 and torch.equal(wide, pair.matrix(state))
    assert len(out.student.attention_scores) == 1 and len(out.teacher.attention_scores) == 2


# ---------------------------------------------------------------- to the bit


class Stop(Exception):
    """The run is stopped, as if killed."""


@every_case
def test_repeated_or_stopped_and_resumed_it_ends_in_the_same_bits(case, tmp_path):
    whole, curve = train(case)
    path = tmp_path / "run.safetensors"

    def stop(report):
        if report.step == 6:
            raise Stop

    with pytest.raises(Stop):
        train(case, path, [stop])
    for again, curve_again in (train(case), train(case, path)):
        assert curve_again.losses == curve.losses
        assert same_bits(again, whole)
