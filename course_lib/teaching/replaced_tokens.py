"""How well ELECTRA's discriminator tells replaced tokens from original ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.family.electra import Electra
from course_lib.objectives.replaced_tokens import replaced_labels
from course_lib.objectives.sequences import Batch


@torch.no_grad()
def discriminator_logits(model: Electra, batches: Sequence[Batch]) -> tuple[Tensor, Tensor]:
    """The discriminator's logit and the label of every real token of these batches: (tokens,)."""
    logits, labels = [], []
    for batch in batches:
        out = model(**batch.inputs)
        real = out.attention_mask.bool()
        replaced = replaced_labels(out.corrupted_ids, out.predict_at, batch.targets["labels"])
        logits.append(out.logits[real])
        labels.append(replaced[real])
    return torch.cat(logits), torch.cat(labels)


def area_under_curve(logits: Tensor, labels: Tensor) -> float:
    """How often a replaced token has a higher logit than an original one: 0.5 is chance level, 1
    is always."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels.numpy(), logits.float().numpy()))


def replaced_token_scores(model: Electra, batches: Sequence[Batch], seed: int) -> dict[str, float]:
    """The ROC-AUC on these batches, and the fraction of tokens that the generator replaced; seed:
    of what it samples."""
    torch.manual_seed(seed)
    logits, labels = discriminator_logits(model, batches)
    auc, replaced = area_under_curve(logits, labels), labels.float().mean().item()
    return {"auc": auc, "replaced": replaced}
