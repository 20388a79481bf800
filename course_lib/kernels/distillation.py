"""How far a student's answers are from its teacher's, at a temperature (Hinton et al. 2015).

N positions, V vocabulary, H and H' the widths of student and teacher."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def soft_target_loss(
    student_logits: Tensor, teacher_logits: Tensor, temperature: float = 1.0
) -> Tensor:
    """T² · KL(teacher ‖ student), both softened by T: the mean over N positions, in nats.

    Both logits are (N, V). The gradient of the KL at T shrinks like 1/T²; the factor restores it.
    No gradient reaches the teacher. Zero where there are no positions."""
    if not len(student_logits):
        return student_logits.sum() * 0
    wide = student_logits if student_logits.dtype == teacher_logits.dtype else None
    student = (student_logits if wide is not None else student_logits.float()) / temperature
    teacher = teacher_logits.detach().to(student.dtype) / temperature
    loss = F.kl_div(
        student.log_softmax(-1), teacher.log_softmax(-1), reduction="batchmean", log_target=True
    )
    return temperature**2 * loss
