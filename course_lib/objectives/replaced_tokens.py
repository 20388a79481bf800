"""Replaced token detection: which tokens did the generator put in (Clark et al. 2020, section 2)?

The paper's discriminator gives the probability that a token is *original*; the released code, and
this one, labels a *replaced* token 1. The two differ by the sign of the logit. Where the generator
drew the very word that stood there, nothing was replaced, and the label is 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED
from course_lib.kernels.upcast import upcast

from .masked_lm import masked_lm_loss
from .pretraining import check_weights

PAPER_MIX = (1.0, 0.0, 0.0)  # every selected position becomes [MASK]
RELEASED_MIX = (0.85, 0.0, 0.15)  # the released code leaves 15% of them as they are
ORIGINAL, REPLACED = 0, 1


def replaced_labels(corrupted_ids: Tensor, predict_at: Tensor, original_ids: Tensor) -> Tensor:
    """1 where a drawn word is not the one that stood there, else 0.

    corrupted_ids (B, T); predict_at (N,) as b·T + t; original_ids (N,) the true words. Returns (B,
    T)."""
    labels = torch.zeros_like(corrupted_ids).flatten()
    labels[predict_at] = (corrupted_ids.flatten()[predict_at] != original_ids).long()
    return labels.view_as(corrupted_ids)


def replaced_token_loss(
    outputs: Any, targets: Mapping[str, Tensor], *, only_masked: bool = False
) -> dict[str, Tensor]:
    """Mean over all real tokens, [CLS] and [SEP] among them, of −log P(the true one of the two
    labels), in nats.

    outputs: logits (B, T), corrupted_ids (B, T), predict_at (N,), attention_mask (B, T);
    targets["labels"] (N,) the true words; where one is −100, that position does not count.
    only_masked: over the masked positions alone. Of a part of a batch, targets["num_real"] and
    targets["num_labels"] are how many the whole has (see `split_batch`)."""
    at, true = outputs.predict_at, targets["labels"]
    labels = replaced_labels(outputs.corrupted_ids, at, true).flatten()
    counted = outputs.attention_mask.flatten() != 0
    counted[at[true == IGNORED]] = False
    if only_masked:
        masked = torch.zeros_like(counted)
        masked[at] = True
        counted = counted & masked
    logits = outputs.logits.flatten()[counted]  # (real tokens,)
    logits = upcast(logits)
    if not len(logits):
        return {"total": outputs.logits.sum() * 0, "rtd": outputs.logits.sum() * 0}
    loss = F.binary_cross_entropy_with_logits(logits, labels[counted].to(logits.dtype))
    count = targets.get("num_labels" if only_masked else "num_real")
    if count is not None:  # this part of the whole batch's mean
        loss = loss * len(logits) / count
    return {"total": loss, "rtd": loss}


def electra_loss(
    disc_weight: float = 50.0, mlm_weight: float = 1.0, *, only_masked: bool = False
) -> Callable[[Any, Mapping[str, Tensor]], dict[str, Tensor]]:
    """mlm_weight · L_MLM(generator) + disc_weight · L_Disc(discriminator), in nats: total, mlm,
    rtd. The paper's λ = 50 stands before the discriminator's loss (section 2).

    Raises ValueError for a negative weight, and where both are 0."""
    check_weights({"disc_weight": disc_weight, "mlm_weight": mlm_weight})

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
        mlm = masked_lm_loss(outputs, targets)["mlm"]
        rtd = replaced_token_loss(outputs, targets, only_masked=only_masked)["rtd"]
        return {"total": mlm_weight * mlm + disc_weight * rtd, "mlm": mlm, "rtd": rtd}

    return loss
