"""MobileBERT's knowledge transfer: every loss by hand, the program's slip, and who moves when."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from objective_parts import draw_sequences, special_ids
from torch import Tensor, nn

from course_lib.family.mobilebert import (
    MobileBertConfig,
    copy_all_but_blocks,
    mobilebert_encoder,
)
from course_lib.heads import BertForMaskedLM, BertForPreTraining
from course_lib.objectives.knowledge_transfer import (
    PROGRAM_WEIGHTS,
    attention_transfer_loss,
    both_losses,
    feature_map_loss,
    mean_loss,
    pretraining_distillation_loss,
    transfer_loss,
    variance_loss,
)
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.train.distilling import DistillationPair
from course_lib.train.knowledge_transfer import STRATEGIES, stages, transfer_knowledge, turn


def vectors(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


# ---------------------------------------------------------------- each loss, by hand


def test_feature_maps_are_compared_without_length_and_mean():
    student, teacher = vectors([1.0, 3.0], [0.0, 4.0]), vectors([10.0, 30.0], [4.0, 0.0])
    # Normalised: (-1, 1) and (-1, 1) against (-1, 1) and (1, -1): distances 0, 0, 4, 4.
    assert feature_map_loss(student, teacher).item() == pytest.approx(2.0)
    assert feature_map_loss(student, 5 * student + 7).item() == pytest.approx(0.0, abs=1e-12)


def test_means_and_variances():
    student, teacher = vectors([1.0, 3.0], [0.0, 4.0]), vectors([2.0, 2.0], [4.0, 6.0])
    assert mean_loss(student, teacher).item() == pytest.approx((0 + (2 - 5) ** 2) / 2)
    # Variances 1 and 4 against 0 and 1: divided by H, not by H - 1.
    assert variance_loss(student, teacher).item() == pytest.approx((1 + 3) / 2)
    several = torch.stack([teacher, student])  # the slip's: every state of the teacher at once
    assert mean_loss(student, several).item() == pytest.approx((4.5 + 0) / 2)
    assert variance_loss(student, several).item() == pytest.approx((2 + 0) / 2)


def test_attention_is_a_cross_entropy_over_real_queries():
    ln = math.log
    student = torch.zeros(1, 1, 2, 2, dtype=torch.float64)  # both weights a half
    teacher = torch.tensor([[[[ln(3.0), 0.0], [50.0, 0.0]]]], dtype=torch.float64)  # 3/4 and 1/4
    everyone, first = torch.tensor([[1, 1]]), torch.tensor([[1, 0]])
    assert attention_transfer_loss(student, teacher, everyone).item() == pytest.approx(ln(2))
    # Not zero where both agree: the teacher's entropy.
    same = attention_transfer_loss(teacher, teacher, first).item()
    assert same == pytest.approx(ln(4) - 0.75 * ln(3))
    lowest = torch.finfo(torch.float64).min
    hidden = torch.cat([teacher, torch.full_like(teacher[..., :1], lowest)], dim=-1)
    assert attention_transfer_loss(hidden, hidden, first).item() == pytest.approx(same)


@pytest.mark.parametrize("loss", [feature_map_loss, mean_loss, variance_loss])
def test_no_gradient_reaches_the_teacher(loss: Any):
    make = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(3, 4, generator=make).requires_grad_() for _ in range(2))
    loss(student, teacher).backward()
    assert teacher.grad is None and student.grad is not None and student.grad.abs().max() > 0
    with pytest.raises(ValueError, match="states of one width, and as many heads"):
        loss(student, teacher[:, :3])


# ---------------------------------------------------------------- the sum over layers


def outputs(layers: int = 2) -> Any:
    """What both networks said of two texts, in random numbers."""
    make = torch.Generator().manual_seed(1)

    def one() -> Any:
        states = tuple(torch.randn(2, 3, 4, generator=make) for _ in range(layers + 1))
        scores = tuple(torch.randn(2, 2, 3, 3, generator=make) for _ in range(layers))
        return SimpleNamespace(hidden_states=states, attention_scores=scores)

    real = torch.tensor([[True, True, True], [True, True, False]])
    return SimpleNamespace(student=one(), teacher=one(), real=real, predict_at=None)


def test_the_programs_weights_and_the_division_by_all_layers():
    out = outputs()
    found = transfer_loss()(out, {})
    pairs = [
        (out.student.hidden_states[n][out.real], out.teacher.hidden_states[n][out.real])
        for n in (1, 2)  # not the embeddings
    ]
    for name, loss in (
        ("feature_map", feature_map_loss), ("mean", mean_loss), ("variance", variance_loss),
    ):  # fmt: skip
        assert found[name].item() == pytest.approx(sum(loss(*pair).item() for pair in pairs) / 2)
    scores = zip(out.student.attention_scores, out.teacher.attention_scores, strict=True)
    attention = sum(attention_transfer_loss(*pair, out.real).item() for pair in scores) / 2
    assert found["attention"].item() == pytest.approx(attention)
    assert PROGRAM_WEIGHTS == {"feature_map": 100, "mean": 5_000, "variance": 5, "attention": 1}
    total = sum(PROGRAM_WEIGHTS[name] * found[name] for name in PROGRAM_WEIGHTS)
    assert found["total"].item() == pytest.approx(float(total), rel=1e-6)


def test_layers_one_by_one_add_up_to_all():
    out = outputs()
    alone = [transfer_loss(layers=[n])(out, {})["total"].item() for n in (1, 2)]
    assert sum(alone) == pytest.approx(transfer_loss()(out, {})["total"].item(), rel=1e-6)


def test_the_slip_shows_mean_and_variance_of_all_states():
    out = outputs()
    right, slip = (transfer_loss(all_teacher_layers=slip)(out, {}) for slip in (False, True))
    for name in ("feature_map", "attention"):
        assert right[name] == slip[name]
    for name, loss in (("mean", mean_loss), ("variance", variance_loss)):
        by_hand = [
            loss(mine[out.real], theirs[out.real]).item()
            for mine in out.student.hidden_states[1:]
            for theirs in out.teacher.hidden_states  # L + 1: the embeddings too
        ]
        assert slip[name].item() == pytest.approx(sum(by_hand) / len(by_hand))


def test_the_slip_keeps_a_perfect_student_from_zero():
    """A student that says what its teacher says still has a loss, and is pulled to the average."""
    out = outputs()
    out.student = out.teacher
    right, slip = (
        transfer_loss(attention=0.0, all_teacher_layers=slip)(out, {})["total"].item()
        for slip in (False, True)
    )
    assert right == pytest.approx(0.0, abs=1e-6) and slip > 1


def test_weights_of_zero_are_left_out_and_others_refused():
    found = transfer_loss(mean=0.0, variance=0.0, attention=0.0)(outputs(), {})
    assert set(found) == {"total", "feature_map"}
    with pytest.raises(ValueError, match="weight"):
        transfer_loss(mean=-1.0)
    out = outputs()
    out.student.attention_scores = None
    with pytest.raises(ValueError, match=r"no attention scores .* scores=True"):
        transfer_loss()(out, {})
    for layers in ((), (0,), (3,)):
        with pytest.raises(ValueError, match=r"layers=.* expected at least one number from 1 to 2"):
            transfer_loss(layers=layers)(outputs(), {})
    out = outputs()
    out.teacher = outputs(3).teacher
    with pytest.raises(ValueError, match="a student of 2 layers and a teacher of 3"):
        transfer_loss()(out, {})


def answers(logits: list[float]) -> Any:
    pair = torch.tensor([[0.0, 0.0]])
    return SimpleNamespace(
        prediction_logits=torch.tensor([[[9.0, 9.0], logits]]), seq_relationship_logits=pair
    )


def test_labels_and_answers_at_the_masked_position():
    ln = math.log
    out = SimpleNamespace(
        student=answers([0.0, 0.0]), teacher=answers([ln(3.0), 0.0]), predict_at=torch.tensor([1])
    )
    targets = {"labels": torch.tensor([1])}
    found = pretraining_distillation_loss(alpha=0.25)(out, targets)
    assert {name: value.item() for name, value in found.items()} == pytest.approx(
        {"total": ln(2), "mlm": ln(2), "kd": ln(2)}
    )
    out.student = answers([ln(3.0), 0.0])
    found = pretraining_distillation_loss(alpha=0.25)(out, targets)
    assert found["mlm"].item() == pytest.approx(ln(4))
    assert found["kd"].item() == pytest.approx(ln(4) - 0.75 * ln(3))
    total = 0.25 * found["mlm"] + 0.75 * found["kd"]
    assert found["total"].item() == pytest.approx(total.item())
    paired = pretraining_distillation_loss()(
        out, {**targets, "next_sentence_label": torch.tensor([0])}
    )
    assert paired["nsp"].item() == pytest.approx(ln(2))
    assert set(pretraining_distillation_loss(alpha=1.0)(out, targets)) == {"total", "mlm"}
    with pytest.raises(ValueError, match=r"alpha=1\.5 was given; expected a fraction"):
        pretraining_distillation_loss(alpha=1.5)


def test_both_losses_add_their_totals():
    first, second = (lambda o, t, n=n: {"total": n, str(n): n} for n in (2, 3))
    assert both_losses(first, second)(None, {}) == {"total": 5, "2": 2, "3": 3}


# ---------------------------------------------------------------- the strategies

SPECIAL = special_ids(40)
SHAPE: dict[str, Any] = {
    "vocab_size": 40, "num_heads": 2, "max_positions": 12, "num_layers": 2, "hidden_size": 12,
    "embedding_size": 4, "initializer_range": 0.1, "attention_dropout": 0.0,
}  # fmt: skip
STUDENT = MobileBertConfig(**SHAPE, bottleneck_size=6, intermediate_size=10, num_feed_forwards=2)
TEACHER = MobileBertConfig(
    **SHAPE, bottleneck_size=20, intermediate_size=30, num_feed_forwards=1, attention_input="wide",
    normalization="layer_norm", hidden_act="gelu",
)  # fmt: skip


def networks(head: Any = BertForMaskedLM) -> tuple[Any, Any]:
    torch.manual_seed(0)
    student, teacher = (head(mobilebert_encoder(config)) for config in (STUDENT, TEACHER))
    return copy_all_but_blocks(student, teacher), teacher


def plan(strategy: str, steps: int = 12, transfer_steps: int = 8, **more: Any) -> Any:
    words = pretraining_distillation_loss()
    return stages(
        strategy, 2, partial(transfer_loss), words, steps=steps, transfer_steps=transfer_steps,
        **more,
    )  # fmt: skip


def test_what_each_strategy_does():
    names = {s: [(part.name, part.steps) for part in plan(s)] for s in STRATEGIES}
    assert names == {
        "none": [("words", 12)],
        "auxiliary": [("both", 12)],
        "joint": [("layers", 8), ("words", 4)],
        "progressive": [("layer 1", 4), ("layer 2", 4), ("words", 4)],
    }
    with pytest.raises(ValueError, match="one of none, auxiliary, joint, progressive"):
        plan("all")
    for steps in (0, 12, 7):
        with pytest.raises(ValueError, match=f"transfer_steps={steps} was given for 2 layers"):
            plan("progressive", transfer_steps=steps)


def test_whose_turn_it_is():
    second, everyone = turn((2,), 3), turn((1, 2, 3), 3)
    names = ["student.embeddings.token.weight", *(f"student.stack.blocks.{n}.x" for n in range(3))]
    names.append("student.mlm.bias")
    assert [second(name, 0) for name in names] == [0.0, 0.1, 1.0, 0.0, 0.0]
    assert [everyone(name, 0) for name in names] == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert turn((2,), 3, done=0.0)(names[1], 0) == 0.0


def moved(before: dict[str, Tensor], model: nn.Module) -> set[str]:
    """The parts of a student that another training step has changed."""
    return {
        name.split(".")[3] if ".blocks." in name else name.split(".")[0] + "." + name.split(".")[1]
        for name, value in model.state_dict().items() if not torch.equal(before[name], value)
    }  # fmt: skip


@pytest.mark.parametrize("done", [0.0, 0.1])
def test_progressive_moves_a_layer_at_a_time(done: float):
    student, teacher = networks()
    batches = pretraining_batches(draw_sequences(SPECIAL, 16, 12), SPECIAL, batch_size=8)
    seen = []
    for part in plan("progressive", done=done)[:2]:
        before = {name: value.clone() for name, value in student.state_dict().items()}
        transfer_knowledge(student, teacher, batches, [part], learning_rate=1e-3)
        seen.append(moved(before, student))
    assert seen == [{"0"}, {"0", "1"} if done else {"1"}]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_learns_and_leaves_the_teacher_alone(strategy: str):
    student, teacher = networks(BertForPreTraining)
    kept = {name: value.clone() for name, value in teacher.state_dict().items()}
    batches = pretraining_batches(draw_sequences(SPECIAL, 16, 12), SPECIAL, batch_size=8)
    found = transfer_knowledge(
        student, teacher, batches, plan(strategy, 30, 20), learning_rate=3e-3, seed=1
    )
    assert list(found) == [part.name for part in plan(strategy)]
    for history in found.values():
        losses = history.losses["total"]
        assert sum(losses[-3:]) < sum(losses[:3])
    assert all(torch.equal(value, kept[name]) for name, value in teacher.state_dict().items())


def test_batches_are_counted_through_the_stages():
    student, teacher = networks()
    batches = pretraining_batches(draw_sequences(SPECIAL, 16, 12), SPECIAL, batch_size=8)
    asked: list[int] = []

    def counting(step: int) -> Any:
        asked.append(step)
        return batches(step)

    transfer_knowledge(student, teacher, counting, plan("progressive"))
    assert asked == list(range(12))


def test_one_checkpoint_of_several_stages_is_refused(tmp_path: Path):
    (student, teacher), path = networks(), tmp_path / "run.safetensors"
    batches = pretraining_batches(draw_sequences(SPECIAL, 16, 12), SPECIAL, batch_size=8)
    with pytest.raises(ValueError, match="for 3 stages; expected a file for each"):
        transfer_knowledge(student, teacher, batches, plan("progressive"), checkpoint=path)
    for part in plan("progressive"):
        transfer_knowledge(student, teacher, batches, [part], checkpoint=tmp_path / part.name)
    assert not path.exists() and (tmp_path / "layer 2").exists()


def test_a_mobilebert_reads_its_teacher_without_a_matrix():
    student, teacher = networks()
    ids = torch.randint(5, 40, (2, 6), generator=torch.Generator().manual_seed(0))
    out = DistillationPair(student.encoder, teacher.encoder, scores=True)(ids)
    shapes = {x.shape for x in (*out.student.hidden_states, *out.teacher.hidden_states)}
    assert shapes == {(2, 6, 12)}
    mine, theirs = out.student.hidden_states[0], out.teacher.hidden_states[0]
    assert torch.allclose(
        F.layer_norm(mine, (12,), eps=1e-12), theirs, atol=1e-4
    )  # the teacher's embeddings
