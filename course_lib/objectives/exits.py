"""What the exits of a FastBERT learn: the teacher's answers, or labels. B batch, C classes, L
layers; all losses are sums over exits of means over texts, in nats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from course_lib.config import check_choice
from course_lib.kernels.distillation import soft_target_loss
from course_lib.kernels.masked_loss import mean_cross_entropy
from course_lib.kernels.upcast import upcast

from .classification import check_labels
from .sequences import part_of_mean

Losses = dict[str, Tensor]
DIRECTIONS = ("reverse", "forward")


def self_distillation_loss(
    direction: str = "reverse",
) -> Callable[[Any, Mapping[str, Tensor]], Losses]:
    """The unweighted sum, over the L − 1 students, of the divergence from the last exit's answer
    (Liu et al. 2020, section 3.2): outputs.exit_logits, L of (B, C). No labels are read, and no
    gradient reaches the teacher.

    direction: "reverse", KL(student ‖ teacher), is the paper's; "forward", KL(teacher ‖ student),
    is that of the authors' code. The objective gives total and each student's loss, exit_1 ….
    Raises ValueError for another direction, and where there is no student."""
    check_choice("direction", direction, DIRECTIONS)

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
        *students, teacher = outputs.exit_logits
        _some(students)
        diverge = _reverse if direction == "reverse" else soft_target_loss
        count, whole = len(teacher), targets.get("num_sequences")
        means = [diverge(student, teacher) for student in students]
        return _summed([part_of_mean(mean, count, whole) for mean in means])

    return loss


def _reverse(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(student ‖ teacher): (B, C) both -> mean over B."""
    ours = upcast(student).log_softmax(-1)
    theirs = teacher.detach().to(ours.dtype).log_softmax(-1)
    return (ours.exp() * (ours - theirs)).sum(-1).mean()


def joint_exits_loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
    """Σ over all exits of −log P(the true class): every exit and the backbone at once, on labels.
    FastBERT does not train so.

    Raises ValueError without targets["classes"] (B,), and for a class that the model lacks."""
    return _on_labels(list(outputs.exit_logits), targets)


def student_labels_loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
    """The same over the students alone: what self-distillation is compared with."""
    students = list(outputs.exit_logits[:-1])
    _some(students)
    return _on_labels(students, targets)


def _on_labels(logits: list[Tensor], targets: Mapping[str, Tensor]) -> Losses:
    if "classes" not in targets:
        raise ValueError(
            f'targets {sorted(targets)} were given; expected "classes", a label a text. Without '
            "labels use self_distillation_loss."
        )
    labels, count = targets["classes"], targets.get("num_classes")
    check_labels("classes", labels, logits[0], count)
    return _summed([mean_cross_entropy(one, labels, count) for one in logits])


def _summed(losses: list[Tensor]) -> Losses:
    named = {f"exit_{layer}": loss for layer, loss in enumerate(losses, start=1)}
    return {"total": torch.stack(losses).sum(), **named}


def _some(students: list[Tensor]) -> None:
    if not students:
        raise ValueError(
            "logits of one exit were given; expected two or more, as the last one is the teacher. "
            "Build the model on an encoder of two layers or more."
        )
