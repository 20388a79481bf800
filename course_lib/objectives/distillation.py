"""What a student learns from its teacher: DistilBERT's three losses, TinyBERT's four.

All are pure functions of what both networks said; each is a mean, in nats or squared units, over
real tokens. B batch, T tokens, N real tokens of the batch, H width of the student, H' of the
teacher, A heads, V vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..kernels.distillation import soft_target_loss
from ..kernels.masked_loss import mean_cross_entropy

Losses = dict[str, Tensor]
Objective = Callable[[Any, Mapping[str, Tensor]], Losses]

PUBLISHED_WEIGHTS = {"soft": 5.0, "mlm": 2.0, "cosine": 1.0}  # DistilBERT's published command
TEMPERATURE = 2.0


def cosine_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """1 − cosine of each pair of vectors, mean over N: (N, H) and (N, H). Zero: same directions,
    whatever the lengths."""
    _check_same("hidden states", student, teacher)
    return (1 - F.cosine_similarity(student, teacher.detach(), dim=-1)).mean()


def hidden_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared distance of the entries: (N, H') and (N, H'), the student's already widened by
    W_h (Jiao et al. 2020, equation 8; equation 9 for embeddings)."""
    _check_same("hidden states", student, teacher)
    return F.mse_loss(student, teacher.detach())


def attention_loss(student: Tensor, teacher: Tensor, real: Tensor) -> Tensor:
    """Mean squared distance of the scores *before* the softmax, over pairs of real tokens:
    (B, A, T, T) both, real (B, T) bool (equation 7)."""
    _check_same("attention scores", student, teacher)
    both = (real[:, :, None] & real[:, None, :])[:, None]  # (B, 1, T, T)
    gap = (student - teacher.detach()).masked_fill(~both, 0.0)
    return gap.square().sum() / (both.sum() * student.shape[1]).clamp(min=1)


def prediction_loss(student: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """Cross-entropy of the teacher's softened answers, mean over N: (N, classes) both (equation
    10, where the temperature is 1)."""
    _check_same("answers", student, teacher)
    wanted = (teacher.detach() / temperature).softmax(-1)
    return F.cross_entropy(student / temperature, wanted)


def distilbert_loss(
    soft: float = PUBLISHED_WEIGHTS["soft"],
    mlm: float = PUBLISHED_WEIGHTS["mlm"],
    cosine: float = PUBLISHED_WEIGHTS["cosine"],
    temperature: float = TEMPERATURE,
) -> Objective:
    """DistilBERT's triple loss (Sanh et al. 2019, section 2): three weights, none the complement of
    another. Soft targets and cosine over all real tokens, masked words where they were asked.

    The objective gives total, soft, mlm and cosine; a loss of weight 0 is not computed."""

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
        check_whole(targets)
        student, teacher, real = outputs.student, outputs.teacher, outputs.real
        found: Losses = {}
        if soft:
            answers = student.logits[real], teacher.logits[real]  # (N, V) both
            found["soft"] = soft_target_loss(*answers, temperature)
        if mlm:
            asked = student.logits.flatten(0, 1)[outputs.predict_at]
            found["mlm"] = mean_cross_entropy(asked, targets["labels"])
        if cosine:
            last = student.hidden_states[-1][real], teacher.hidden_states[-1][real]
            found["cosine"] = cosine_loss(*last)
        weights = {"soft": soft, "mlm": mlm, "cosine": cosine}
        return _total(found, weights)

    return loss


def tinybert_loss(
    mapping: Sequence[int],
    *,
    attention: float = 1.0,
    hidden: float = 1.0,
    embedding: float = 1.0,
    prediction: float = 0.0,
    temperature: float = 1.0,
) -> Objective:
    """TinyBERT's losses (equation 11): the sum over the student's layers of the attention and the
    hidden losses, the embeddings' and, in the second stage, the prediction's.

    mapping: g(1) … g(M), the teacher's layers counted from 1 (`layer_mapping`). The objective gives
    total and each loss by name; a loss of weight 0 is not computed."""
    weights = {
        "attention": attention, "hidden": hidden, "embedding": embedding, "prediction": prediction,
    }  # fmt: skip

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
        check_whole(targets)
        student, teacher, real = outputs.student, outputs.teacher, outputs.real
        found: Losses = {}
        pairs = list(enumerate(mapping, start=1))
        if attention:
            mine, theirs = student.attention_scores, teacher.attention_scores
            layers = [attention_loss(mine[m - 1], theirs[n - 1], real) for m, n in pairs]
            found["attention"] = torch.stack(layers).sum()
        if hidden:
            mine, theirs = outputs.widened, teacher.hidden_states
            layers = [hidden_loss(mine[m][real], theirs[n][real]) for m, n in pairs]
            found["hidden"] = torch.stack(layers).sum()
        if embedding:
            mine, theirs = outputs.widened[0], teacher.hidden_states[0]
            found["embedding"] = hidden_loss(mine[real], theirs[real])
        if prediction:
            mine, theirs = student.logits, teacher.logits
            if mine.dim() == 3:  # an answer a token, not one a text
                mine, theirs = mine[real], theirs[real]
            found["prediction"] = prediction_loss(mine, theirs, temperature)
        return _total(found, weights)

    return loss


def check_whole(targets: Mapping[str, Tensor]) -> None:
    """Raise ValueError for a part of a larger batch, whose other parts' tokens are not counted."""
    if any(name.startswith("num_") for name in targets):
        raise ValueError(
            "A part of a larger batch was given; these losses are means over the real tokens of a "
            "whole batch, and cannot be added up over parts. Train with accumulate=1."
        )


def _total(found: Losses, weights: Mapping[str, float]) -> Losses:
    if not found:
        raise ValueError(f"all weights are 0 ({weights}); expected at least one loss to train on.")
    total = sum((weights[name] * loss for name, loss in found.items()), torch.zeros(()))
    return {"total": total, **found}


def _check_same(what: str, student: Tensor, teacher: Tensor) -> None:
    if student.shape != teacher.shape:
        raise ValueError(
            f"{what} of shape {tuple(student.shape)} (student) and {tuple(teacher.shape)} "
            "(teacher) were given; expected the same. A narrower student needs a matrix that "
            "widens it (fit_matrix); another number of heads cannot be compared head by head."
        )
