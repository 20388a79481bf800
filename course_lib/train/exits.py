"""Training a FastBERT: the backbone with its teacher on labels, then the students on the teacher's
answers, everything else frozen (Liu et al. 2020, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from course_lib.encoder import Encoder, Stack
from course_lib.family.albert import SharedStack
from course_lib.family.fastbert import ExitsOutput, FastBert
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.exits import self_distillation_loss
from course_lib.objectives.sequences import Batch, PackedSequences, shuffled

from .loop import Batches, History, Objective, fit


def fastbert_on(encoder: Encoder, classes: Any, seed: int = 0, **exits: int) -> FastBert:
    """Randomly initialised exits on a *copy* of the encoder, without its pooler; exits: exit_size,
    exit_heads."""
    torch.manual_seed(seed)
    copy = deepcopy(encoder).requires_grad_(True)
    copy.pooler = None  # no exit uses it
    return FastBert(copy, classes, **exits)


def first_layers(encoder: Encoder, layers: int) -> Encoder:
    """A copy of the encoder's first `layers` layers: the same depth for every text.

    Raises ValueError for a number that it does not have."""
    copy = deepcopy(encoder)
    stack, L = copy.stack, copy.config.num_layers
    if not isinstance(stack, Stack) or not 1 <= layers <= L:
        raise ValueError(
            f"layers={layers!r} was given for an encoder of {L} layers in a "
            f"{type(stack).__name__}; expected 1 to {L}, in a Stack."
        )
    copy.config = replace(copy.config, num_layers=layers)
    blocks = layers
    if isinstance(stack, SharedStack):
        stack.plan = stack.plan[:layers]
        blocks = 1 + max(map(max, stack.plan))
    stack.blocks = stack.blocks[:blocks]
    return copy


class SelfDistillation(nn.Module):
    """A FastBERT whose students alone are trained: backbone and teacher are frozen.

    dropout: whether they drop out while they teach, as in the authors' program; else they say what
    they say at inference. The students drop out in either case."""

    def __init__(self, model: FastBert, dropout: bool = True) -> None:
        super().__init__()
        self.model = model.requires_grad_(False)
        self.model.students.requires_grad_(True)
        self.dropout = dropout

    def train(self, mode: bool = True) -> SelfDistillation:
        """As everywhere; without dropout backbone and teacher stay in evaluation mode."""
        super().train(mode)
        if not self.dropout:
            self.model.encoder.eval()
            self.model.teacher.eval()
        return self

    def forward(self, **inputs: Any) -> ExitsOutput:
        """As the model's own call."""
        return self.model(**inputs)


def train_backbone(model: FastBert, batches: Batches, **settings: Any) -> History:
    """The first stage: backbone and teacher on labels. The students stay as they are; settings: as
    `fit` takes them."""
    return fit(model, classification_loss, batches, **settings)


def train_students(
    model: FastBert,
    batches: Batches,
    objective: Objective | None = None,
    *,
    dropout: bool = True,
    **settings: Any,
) -> History:
    """The second stage: the students alone, by self-distillation if no other objective is given.
    Labels are not needed for it (`unlabelled_batches`). The rest stays frozen afterwards.

    dropout: of backbone and teacher, see SelfDistillation; settings: as `fit` takes them."""
    return fit(
        SelfDistillation(model, dropout), objective or self_distillation_loss(), batches, **settings
    )


def unlabelled_batches(
    sequences: PackedSequences, batch_size: int, seed: int = 0
) -> Callable[[int], Batch]:
    """Batches of texts without labels, in the order of `shuffled`, which raises its errors."""
    which, sequences = shuffled(len(sequences), batch_size, seed), sequences.padding_last()
    return lambda step: Batch(sequences[which(step)].inputs, {})
