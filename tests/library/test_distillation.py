"""What a student learns from its teacher: the losses of DistilBERT and TinyBERT, by hand, against
torch's own losses, and against what must not matter to them."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.family.tinybert import layer_mapping
from course_lib.kernels.distillation import soft_target_loss
from course_lib.objectives.distillation import (
    PUBLISHED_WEIGHTS,
    attention_loss,
    cosine_loss,
    distilbert_loss,
    hidden_loss,
    prediction_loss,
    tinybert_loss,
)


def drawn(*shape, seed=0):
    make = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=make, dtype=torch.float64)


def pair(*shape):
    """A student's numbers, which want gradients, and a teacher's, which would take some."""
    return [drawn(*shape, seed=seed).requires_grad_() for seed in (1, 2)]


# ---------------------------------------------------------------- each loss
# (That of soft targets is tested in test_distillation_kernel.py.)


@pytest.mark.parametrize("temperature", [1.0, 1.5, 2.0, 4.0, 8.0])
def test_kl_and_cross_entropy_differ_by_the_teachers_entropy_alone(temperature):
    student, teacher = pair(5, 7)
    kl = soft_target_loss(student, teacher, temperature) / temperature**2
    crossed = prediction_loss(student, teacher, temperature)
    p = (teacher.detach() / temperature).softmax(-1)
    entropy = -(p * p.log()).sum(-1).mean()
    assert (crossed - kl).item() == pytest.approx(entropy.item(), rel=1e-9)
    assert prediction_loss(student, teacher) == prediction_loss(student, teacher, 1.0)
    one, other = (torch.autograd.grad(x, student)[0] for x in (kl, crossed))
    assert (one - other).abs().max() < 1e-12


@pytest.mark.parametrize("loss", [prediction_loss, cosine_loss, hidden_loss])
def test_the_teacher_gets_no_gradient(loss):
    student, teacher = pair(5, 7)
    loss(student, teacher).backward()
    assert teacher.grad is None and student.grad.abs().max() > 0


def test_cosine_by_hand_and_blind_to_length():
    """Same direction 0, a right angle 1, opposite 2; lengths play no part."""
    student = torch.tensor([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0]])
    teacher = torch.tensor([[5.0, 0.0], [4.0, 0.0], [-1.0, 0.0]])
    assert cosine_loss(student, teacher).item() == pytest.approx((0 + 1 + 2) / 3)


def test_attention_loss_is_the_mean_square_of_scores_between_real_tokens():
    lengths = torch.tensor([4, 2])
    real = torch.arange(4) < lengths[:, None]
    both = (real[:, :, None] & real[:, None, :])[:, None]
    student, teacher = pair(2, 3, 4, 4)
    loss = attention_loss(student, teacher, real)
    gaps = [(student - teacher)[0].flatten(), (student - teacher)[1, :, :2, :2].flatten()]
    assert loss.item() == pytest.approx(torch.cat(gaps).square().mean().item(), rel=1e-9)
    assert attention_loss(student, teacher, real.long()) == loss  # an attention mask does as well
    smallest = torch.finfo(torch.float64).min  # what the encoder writes at hidden keys
    for filling in (smallest, 1e6):
        changed = student.masked_fill(~both, filling)
        assert attention_loss(changed, teacher, real) == loss
        assert attention_loss(student, teacher.masked_fill(~both, filling), real) == loss
    slope = torch.autograd.grad(loss, student)[0]
    assert (slope[~both.expand_as(slope)] == 0).all() and (slope[both.expand_as(slope)] != 0).all()
    assert teacher.grad is None


@pytest.mark.parametrize(
    ("loss", "shapes", "says"),
    [
        (cosine_loss, [(5, 4), (5, 8)], r"\(5, 4\) \(student\) and \(5, 8\).*fit_matrix"),
        (hidden_loss, [(5, 4), (5, 8)], r"hidden states of shape \(5, 4\).*fit_matrix"),
        (prediction_loss, [(5, 4), (5, 3)], r"answers of shape \(5, 4\).*the same vocabulary"),
        (attention_loss, [(1, 2, 3, 3), (1, 4, 3, 3), (1, 3)], "another number of heads"),
    ],
)
def test_unequal_shapes_are_refused_in_words(loss, shapes, says):
    with pytest.raises(ValueError, match=says):
        loss(*(torch.zeros(shape) for shape in shapes))


def test_half_precision_answers_are_compared_in_single():
    """Bfloat16 keeps three digits; the losses of such numbers are computed with seven."""
    student, teacher = (x.detach().bfloat16() for x in pair(64, 50))
    for loss in (cosine_loss, hidden_loss, prediction_loss):
        found, exact = loss(student, teacher), loss(student.double(), teacher.double())
        assert found.dtype == torch.float32
        assert found.item() == pytest.approx(exact.item(), rel=1e-5)


# ---------------------------------------------------------------- DistilBERT's triple loss

B, T, V, H, LAYERS, HEADS = 2, 5, 12, 6, 2, 3


def said(seed, layers=LAYERS, width=H, classes=V):
    """What a model could have said of two texts, of five tokens and of three."""
    states = [drawn(B, T, width, seed=seed * 100 + layer) for layer in range(layers + 1)]
    scores = [drawn(B, HEADS, T, T, seed=seed * 100 + 50 + layer) for layer in range(layers)]
    return SimpleNamespace(
        logits=drawn(B, T, classes, seed=seed).requires_grad_(),
        hidden_states=tuple(x.requires_grad_() for x in states),
        attention_scores=tuple(x.requires_grad_() for x in scores),
    )


def taught(**changes):
    student, teacher = said(1), said(2)
    parts = {
        "student": student,
        "teacher": teacher,
        "real": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool(),
        "predict_at": torch.tensor([1, 3, 6]),
        "widened": student.hidden_states,
    }
    return SimpleNamespace(**{**parts, **changes})


TARGETS = {"labels": torch.tensor([7, 0, 11])}


def by_hand(outputs, temperature=2.0):
    """The three losses over the eight real tokens, the way transformers' example writes them."""
    student, teacher, real = outputs.student, outputs.teacher, outputs.real
    s, t = student.logits[real], teacher.logits[real]
    kl = nn.KLDivLoss(reduction="batchmean")
    soft = kl((s / temperature).log_softmax(-1), (t / temperature).softmax(-1)) * temperature**2
    selected = torch.stack([student.logits[0, 1], student.logits[0, 3], student.logits[1, 1]])
    last = student.hidden_states[-1][real], teacher.hidden_states[-1][real]
    return {
        "soft": soft,
        "mlm": F.cross_entropy(selected, TARGETS["labels"]),
        "cosine": nn.CosineEmbeddingLoss()(*last, torch.ones(8)),
    }


def test_the_triple_loss_against_torchs_own_losses():
    outputs = taught()
    found, expected = distilbert_loss()(outputs, TARGETS), by_hand(outputs)
    for name, value in expected.items():
        assert found[name].item() == pytest.approx(value.item(), rel=1e-6), name
    total = 5 * expected["soft"] + 2 * expected["mlm"] + expected["cosine"]
    assert found["total"].item() == pytest.approx(total.item(), rel=1e-6)
    assert PUBLISHED_WEIGHTS == {"soft": 5.0, "mlm": 2.0, "cosine": 1.0}
    slopes = [
        torch.autograd.grad(loss, outputs.student.logits, retain_graph=True)[0]
        for loss in (found["total"], total)
    ]
    assert (slopes[0] - slopes[1]).abs().max() < 1e-12
    hotter = distilbert_loss(temperature=4.0)(outputs, TARGETS)["soft"]
    assert hotter.item() == pytest.approx(by_hand(outputs, 4.0)["soft"].item(), rel=1e-6)


def test_only_the_last_hidden_state_is_aligned():
    outputs = taught()
    distilbert_loss()(outputs, TARGETS)["total"].backward()
    *earlier, last = outputs.student.hidden_states
    assert last.grad is not None and all(state.grad is None for state in earlier)
    assert all(x.grad is None for x in (outputs.teacher.logits, *outputs.teacher.hidden_states))


def test_masked_words_need_their_positions():
    with pytest.raises(ValueError, match=r"no masked positions were given.*predict_at"):
        distilbert_loss()(taught(predict_at=None), TARGETS)
    assert "mlm" not in distilbert_loss(mlm=0)(taught(predict_at=None), {})


def test_another_vocabulary_is_refused():
    with pytest.raises(ValueError, match=r"\(8, 12\) \(student\) and \(8, 13\).*same vocabulary"):
        distilbert_loss()(taught(teacher=said(2, classes=13)), TARGETS)


# ---------------------------------------------------------------- what both objectives share

TINYBERT = partial(tinybert_loss, (1, 2))
both_objectives = pytest.mark.parametrize(
    ("make", "weights"),
    [
        (distilbert_loss, PUBLISHED_WEIGHTS),
        (TINYBERT, {"attention": 2.0, "hidden": 3.0, "embedding": 5.0, "prediction": 7.0}),
    ],
    ids=["DistilBERT", "TinyBERT"],
)


@both_objectives
def test_the_total_is_the_weighted_sum_and_a_weight_of_0_leaves_a_loss_out(make, weights):
    outputs = taught()
    found = make(**weights)(outputs, TARGETS)
    assert set(found) == {"total", *weights}
    total = sum(weights[name] * found[name] for name in weights)
    assert found["total"].item() == pytest.approx(total.item(), rel=1e-6)
    for name in weights:
        rest = make(**{**weights, name: 0.0})(outputs, TARGETS)
        assert set(rest) == {"total", *weights} - {name}
        without = (total - weights[name] * found[name]).item()
        assert rest["total"].item() == pytest.approx(without, rel=1e-6)


@both_objectives
def test_only_real_tokens_teach(make, weights):
    outputs, loss = taught(), make(**weights)
    before = loss(outputs, TARGETS)
    before["total"].backward()
    padding = ~outputs.real
    with torch.no_grad():
        for model in (outputs.student, outputs.teacher):
            for x in (model.logits, *model.hidden_states):
                x[padding] += 100.0
            for scores in model.attention_scores:
                scores.transpose(1, 2)[padding] += 100.0  # padding asks
                scores.permute(0, 3, 1, 2)[padding] -= 100.0  # padding is asked
    after = loss(outputs, TARGETS)
    assert {k: v.item() for k, v in before.items()} == {k: v.item() for k, v in after.items()}
    for x in (outputs.student.logits, outputs.student.hidden_states[-1]):
        assert (x.grad[padding] == 0).all() and x.grad[outputs.real].abs().max() > 0
    with torch.no_grad():
        outputs.teacher.logits[1, 2, 0] += 1  # the last real token of the second text
    assert loss(outputs, TARGETS)["total"] != after["total"]


@both_objectives
def test_what_makes_no_objective_is_refused(make, weights):
    """When it is made."""
    with pytest.raises(ValueError, match="all weights are 0"):
        make(**dict.fromkeys(weights, 0))
    for weight in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="expected finite numbers of at least 0"):
            make(**{list(weights)[-1]: weight})
    for temperature in (0, -2.0, math.nan, math.inf):
        for of_temperature in (make, partial(prediction_loss, *torch.zeros(2, 1, 2))):
            says = r"temperature=.*expected a finite number above 0"
            with pytest.raises(ValueError, match=says):
                of_temperature(temperature=temperature)


# ---------------------------------------------------------------- TinyBERT's losses


def marked(layers, mark=1.0):
    """State n is filled with n, scores of layer n, counted from 1, with 10 n; or with zeros."""
    return SimpleNamespace(
        hidden_states=tuple(torch.full((B, T, H), mark * n) for n in range(layers + 1)),
        attention_scores=tuple(
            torch.full((B, HEADS, T, T), 10 * mark * n) for n in range(1, layers + 1)
        ),
    )


@pytest.mark.parametrize(
    ("kind", "learnt"),
    [("uniform", (3, 6, 9, 12)), ("top", (9, 10, 11, 12)), ("bottom", (1, 2, 3, 4))],
)
def test_each_layer_learns_from_the_one_it_is_mapped_to(kind, learnt):
    student = marked(4, 0.0)
    outputs = taught(student=student, teacher=marked(12), widened=student.hidden_states)
    mapping = layer_mapping(4, 12, kind)
    found = tinybert_loss(mapping)(outputs, {})
    assert "prediction" not in found  # stage one has none
    assert found["hidden"].item() == sum(n**2 for n in learnt)  # a sum over layers, not a mean
    assert found["attention"].item() == sum((10 * n) ** 2 for n in learnt)
    assert found["embedding"].item() == 0  # state 0 learns from state 0


def test_a_mapping_is_in_order():
    """Student layer 1 against teacher layer 2, and 2 against 4; the other way round costs."""
    student, teacher = marked(2, 0.0), marked(4)
    right = tuple(teacher.hidden_states[n] for n in (0, 2, 4))
    outputs = taught(student=student, teacher=teacher, widened=right)
    only = {"attention": 0.0, "embedding": 0.0}
    assert tinybert_loss((2, 4), **only)(outputs, {})["total"].item() == 0
    assert tinybert_loss((4, 2), **only)(outputs, {})["total"].item() == 4 + 4


def test_the_widened_states_are_compared_not_the_narrow_ones():
    narrow = said(1, width=3)
    widened = tuple(F.pad(x, (0, 3)) for x in narrow.hidden_states)
    outputs = taught(student=narrow, widened=widened)
    found = tinybert_loss((1, 2))(outputs, {})
    real, theirs = outputs.real, outputs.teacher.hidden_states
    expected = sum(F.mse_loss(widened[m][real], theirs[m][real]) for m in (1, 2))
    assert found["hidden"].item() == pytest.approx(expected.item(), rel=1e-9)
    first = F.mse_loss(widened[0][real], theirs[0][real])
    assert found["embedding"].item() == pytest.approx(first.item(), rel=1e-9)
    with pytest.raises(ValueError, match="fit_matrix"):
        tinybert_loss((1, 2))(taught(student=narrow, widened=narrow.hidden_states), {})


def test_answers_of_whole_texts_are_learnt_too():
    """A classifier answers once a text; padding has no part in it."""
    student, teacher = (SimpleNamespace(logits=drawn(B, 4, seed=seed)) for seed in (1, 2))
    only = {"attention": 0.0, "hidden": 0.0, "embedding": 0.0, "prediction": 1.0}
    found = tinybert_loss((), **only)(taught(student=student, teacher=teacher), {})
    expected = -(teacher.logits.softmax(-1) * student.logits.log_softmax(-1)).sum(-1).mean()
    assert found["total"].item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("mapping", [(), (1,), (1, 2, 3), (0, 1), (1, 3)])
def test_a_mapping_that_does_not_fit_is_refused(mapping):
    """0 would be the embeddings for hidden states, and the last layer for attention: never."""
    says = r"mapping=.*a student of 2 layers and a teacher of 2; expected 2 numbers from 1 to 2"
    for only in ({"attention": 0.0}, {"hidden": 0.0}):
        with pytest.raises(ValueError, match=says):
            tinybert_loss(mapping, **only)(taught(), {})


def test_what_was_not_asked_for_is_missed_in_words():
    student = SimpleNamespace(hidden_states=said(1).hidden_states, attention_scores=None)
    outputs = taught(student=student)
    with pytest.raises(ValueError, match=r"no attention scores.*scores=True"):
        tinybert_loss((1, 2))(outputs, {})
    with pytest.raises(ValueError, match=r"no answers.*Give both a head"):
        tinybert_loss((1, 2), attention=0.0, prediction=1.0)(outputs, {})
