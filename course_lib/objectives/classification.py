"""One class a text, or one number: the losses of fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED, mean_cross_entropy
from course_lib.kernels.upcast import upcast

from .sequences import part_of_mean


def classification_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean of −log P(the true class), in nats: outputs.logits (B, classes), targets["classes"]
    (B,).

    Raises ValueError for a class that the model does not have."""
    label, count = targets["classes"], targets.get("num_classes")
    check_labels("classes", label, outputs.logits, count)
    return {"total": mean_cross_entropy(outputs.logits, label, count)}


def weighted_classification_loss(
    weights: Tensor,
) -> Callable[[Any, Mapping[str, Tensor]], dict[str, Tensor]]:
    """The loss in which a text counts as much as its class's weight, (classes,): Σ w·(−log P) / Σ w
    over the batch. `inverse_frequency` gives the weights of FinBERT's code.

    Raises ValueError for weights that are not positive numbers, and as `classification_loss`
    does."""
    if weights.dim() != 1 or not torch.isfinite(weights).all() or (weights <= 0).any():
        raise ValueError(f"weights {weights.tolist()} were given; expected a positive one a class.")

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        logits, label = outputs.logits, targets["classes"]
        if logits.shape[-1] != len(weights):
            raise ValueError(
                f"{len(weights)} weights were given for {logits.shape[-1]} classes; expected one "
                "a class."
            )
        check_labels("classes", label, logits, targets.get("num_classes"))
        logits = upcast(logits)
        each = weights.to(logits)
        mean = F.cross_entropy(logits, label, each, ignore_index=IGNORED)
        counts = targets.get("num_each_class")  # of the whole batch, up to its highest class
        whole = None if counts is None else (each[: len(counts)] * counts[: len(each)]).sum()
        return {"total": part_of_mean(mean, each[label[label != IGNORED]].sum(), whole)}

    return loss


def inverse_frequency(labels: Tensor, classes: int) -> Tensor:
    """A weight for each class, (classes,): all labels / labels of the class, so that each class
    counts equally, however many texts it has. Raises ValueError for a class without a text."""
    counts = torch.bincount(labels, minlength=classes)
    if len(counts) > classes or not counts.all():
        raise ValueError(
            f"labels of classes {counts.nonzero().flatten().tolist()} were given for {classes} "
            "classes; expected at least one of each, and no other."
        )
    return counts.sum() / counts.float()


def regression_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean of (logit − true value)²: outputs.logits (B, 1), targets["values"] (B,).

    For answers that are numbers, as how alike two sentences are. Raises ValueError for a model with
    several classes, and for values that are no finite numbers."""
    logits, values = outputs.logits, targets["values"]
    if logits.shape != (len(values), 1) or values.dim() != 1:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} and values of shape {tuple(values.shape)} were "
            "given; expected (B, 1) and (B,): one number a text. Build the model with classes=1."
        )
    if not torch.isfinite(values).all() or (values == IGNORED).any():
        raise ValueError(
            f"values {values.tolist()} were given; expected finite numbers, and none of {IGNORED}, "
            'which means "ignored" in the other losses. Leave such texts out, or scale.'
        )
    logits = upcast(logits)
    total = F.mse_loss(logits.squeeze(1), values.to(logits.dtype), reduction="sum")
    return {"total": total / targets.get("num_values", len(values))}


def check_labels(name: str, labels: Tensor, logits: Tensor, count: Tensor | None = None) -> None:
    """Raise ValueError unless labels (…) name classes of logits (…, C), or are −100: ignored.

    At least one must count; in a part of a larger batch, whose labels are `count`, none need."""
    classes = logits.shape[-1]
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"{name} of shape {tuple(labels.shape)} were given for logits of shape "
            f"{tuple(logits.shape)}; expected {tuple(logits.shape[:-1])}: one label for each row "
            "of logits. Cut texts and labels to the same length."
        )
    labelled = labels[labels != IGNORED]
    if not labelled.numel():
        if not count:
            raise ValueError(
                f"{name} were given that are all {IGNORED}, ignored; expected at least one "
                "label. Was every word cut away?"
            )
        return
    low, high = (int(x) for x in torch.aminmax(labelled))
    if low < 0 or high >= classes:
        raise ValueError(
            f"{name} from {low} to {high} were given; expected numbers from 0 to {classes - 1}, or "
            f"{IGNORED} where nothing counts. Does the model have as many classes as the data?"
        )
