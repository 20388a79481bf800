"""A student and its teacher before the same text: what `fit` trains when a model is distilled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass
class PairOutput:
    """The outputs of student and teacher for one batch."""

    student: Any  # its output, with hidden states, and attention scores if wanted
    teacher: Any  # the same of the teacher, without gradients
    real: Tensor  # (B, T) bool
    predict_at: Tensor | None  # (N,), the masked positions as b·T + t
    widened: tuple[Tensor, ...] | None = None  # the student's states at the teacher's width


class DistillationPair(nn.Module):
    """Both networks as one model; only the student, and the matrix, are trained.

    student, teacher: models with the same kind of head. matrix: leads from the student's width to
    the teacher's (`fit_matrix`), where hidden states are compared across widths; without one they
    are compared as they are. scores: also give attention scores. The teacher is frozen, for good,
    and stays in evaluation mode. Raises ValueError where the two share weights: the student's would
    be frozen too."""

    def __init__(
        self,
        student: nn.Module,
        teacher: nn.Module,
        matrix: nn.Module | None = None,
        scores: bool = False,
    ) -> None:
        super().__init__()
        theirs = {id(parameter) for parameter in teacher.parameters()}
        if any(id(parameter) in theirs for parameter in student.parameters()):
            raise ValueError(
                "A student that shares weights with its teacher was given; expected two separate "
                "models, as the teacher's weights are frozen. Give a copy (copy.deepcopy), or "
                "initialise_from(student, teacher)."
            )
        self.student = student
        self.teacher = teacher.requires_grad_(False).eval()
        self.matrix = matrix
        self.scores = scores

    def train(self, mode: bool = True) -> DistillationPair:
        """As everywhere, but the teacher does not go back to training."""
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        predict_at: Tensor | None = None,
    ) -> PairOutput:
        """As the models' own call; both predict at every token, wherever words were masked."""
        output_flags = {"output_hidden_states": True, "output_attention_scores": self.scores}
        with torch.no_grad():
            teacher = self.teacher(input_ids, attention_mask, token_type_ids, **output_flags)
        student = self.student(input_ids, attention_mask, token_type_ids, **output_flags)
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states = student.hidden_states
        widened = states if self.matrix is None else tuple(self.matrix(x) for x in states)
        return PairOutput(student, teacher, real.bool(), predict_at, widened)
