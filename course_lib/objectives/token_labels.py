"""One label a token: the loss of tagging, for parts of speech and for names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from course_lib.kernels.masked_loss import mean_cross_entropy
from course_lib.kernels.upcast import upcast

from .classification import check_labels
from .sequences import part_of_mean


def token_classification_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean of −log P(the true label) over the tokens that carry one, in nats.

    outputs.logits (B, T, labels); targets["token_labels"] (B, T), −100 where no label counts: at
    special tokens, at padding, and at all pieces of a word but its first (Devlin et al. 2018,
    section 5.3). Raises ValueError for a label that the model does not have, and where nothing is
    labelled at all."""
    labels, count = targets["token_labels"], targets.get("num_token_labels")
    check_labels("token_labels", labels, outputs.logits, count)
    return {"total": mean_cross_entropy(outputs.logits, labels, count)}


def padded_token_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean over *all* positions, special tokens, further pieces and padding too, which must be
    labelled 0.

    After BioBERT's NER code (dmis-lab/biobert, run_ner.py:375-382), whose mask is commented out;
    that takes the sum, and has a class for padding. Raises ValueError as the loss above does."""
    labels, logits = targets["token_labels"], outputs.logits.flatten(0, 1)
    check_labels("token_labels", labels, outputs.logits, targets.get("num_token_labels"))
    mean = F.cross_entropy(upcast(logits), labels.clamp(min=0).flatten())
    return {"total": part_of_mean(mean, labels.numel(), targets.get("num_positions"))}
