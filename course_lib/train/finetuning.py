"""Fine-tuning: a pre-trained encoder, a fresh classifier on top, a few labelled texts."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import torch

from ..encoder import Encoder, Pooler, initialise
from ..heads import BertForClassification
from ..objectives.classification import classification_loss
from ..objectives.rows import Batch
from ..text.tasks import LabelledRows
from .loop import fit


def labelled_batches(task: LabelledRows, batch_size: int, seed: int = 0) -> Callable[[int], Batch]:
    """Batches as a pure function of the step: each epoch visits the texts in a new order, none
    twice; what is left over when no batch can be filled any more waits for the next.

    Raises ValueError when there are fewer texts than a batch holds."""
    if not 1 <= batch_size <= len(task):
        raise ValueError(
            f"batch_size={batch_size} was given for {len(task)} texts; expected 1 to {len(task)}."
        )
    steps = len(task) // batch_size

    def batches(step: int) -> Batch:
        epoch, place = divmod(step, steps)
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
        order = torch.randperm(len(task), generator=generator)
        part = task[order[place * batch_size : (place + 1) * batch_size]]
        return Batch(text_inputs(part), {"classes": part.labels})

    return batches


def text_inputs(task: LabelledRows) -> dict[str, torch.Tensor]:
    """A model's arguments, cut to the longest of the texts."""
    longest = int(task.rows.attention_mask.sum(dim=1).max())
    names = ("input_ids", "attention_mask", "token_type_ids")
    return {name: getattr(task.rows, name)[:, :longest].contiguous() for name in names}


def classifier_on(encoder: Encoder, classes: int, seed: int = 0) -> BertForClassification:
    """A classifier on top of a *copy* of the encoder; classifier and, where missing, pooler are
    fresh."""
    torch.manual_seed(seed)
    copy = deepcopy(encoder).requires_grad_(True)
    if copy.pooler is None:
        copy.pooler = Pooler(copy.config)
        copy.pooler.apply(lambda module: initialise(module, copy.config.initializer_range))
    return BertForClassification(copy, classes)


def finetune(
    encoder: Encoder,
    task: LabelledRows,
    *,
    steps: int,
    batch_size: int = 16,
    learning_rate: float = 1e-3,
    seed: int = 0,
    precision: str = "auto",
) -> BertForClassification:
    """The whole encoder trained on the task, from a copy: the one given stays as it is.

    Raises ValueError as `labelled_batches` does."""
    model = classifier_on(encoder, len(task.names), seed)
    batches = labelled_batches(task, batch_size, seed)
    fit(
        model, classification_loss, batches,
        steps=steps, learning_rate=learning_rate, seed=seed, precision=precision,
    )  # fmt: skip
    return model


@torch.no_grad()
def class_accuracy(
    model: BertForClassification, task: LabelledRows, batch_size: int = 256
) -> float:
    """Share of texts whose class gets the highest score. The model is left as it was found."""
    was_training = model.training
    model.eval()
    right = 0
    try:
        for start in range(0, len(task), batch_size):
            part = task[start : start + batch_size]
            right += int((model(**text_inputs(part)).logits.argmax(-1) == part.labels).sum())
    finally:
        model.train(was_training)
    return right / len(task)
