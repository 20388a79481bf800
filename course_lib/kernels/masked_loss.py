"""The masked-LM loss: over every position with ignored labels, or over the selected ones only.

B batch, T tokens, H hidden, V vocabulary, K selected positions. Both give the mean over the
selected positions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .upcast import upcast

IGNORED = -100


def masked_loss_reference(
    hidden: Tensor, head: Callable[[Tensor], Tensor], labels: Tensor
) -> Tensor:
    """Logits at all B·T positions, most of which are ignored: hidden (B, T, H), labels (B, T)."""
    return mean_cross_entropy(head(hidden), labels)  # logits (B, T, V)


def masked_loss(hidden: Tensor, head: Callable[[Tensor], Tensor], labels: Tensor) -> Tensor:
    """Logits only at the selected positions: about 1/0.15 times fewer rows are multiplied with the
    V×H table."""
    at = torch.nonzero(labels.flatten() != IGNORED).squeeze(1)  # (K,)
    logits = head(hidden.flatten(0, 1)[at])  # (K, V)
    return mean_cross_entropy(logits, labels.flatten()[at])


def mean_cross_entropy(logits: Tensor, labels: Tensor, count: Tensor | None = None) -> Tensor:
    """Mean of −log softmax(logits)[label]; zero, not not-a-number, where nothing is selected.

    logits (..., V) in any precision, computed in float32 or wider; labels (...), −100 is ignored.
    count: what the sum is divided by, if these are only a part of the labels that are averaged.
    """
    total = F.cross_entropy(
        upcast(logits).flatten(0, -2), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    selected = (labels != IGNORED).sum() if count is None else count
    return total / selected.clamp(min=1)
