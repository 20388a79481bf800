"""One class a text: the loss of fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ..kernels.masked_loss import mean_cross_entropy


def classification_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean of −log P(the true class), in nats: outputs.logits (B, classes), targets["classes"]
    (B,)."""
    label, count = targets["classes"], targets.get("num_classes")
    return {"total": mean_cross_entropy(outputs.logits, label, count)}
