"""What a student learns from its teacher: DistilBERT's three losses, TinyBERT's four.

All are pure functions of both networks' outputs; each is a mean, in nats or squared units, over
real tokens, computed in float32 or wider; of a part of a batch, its part of that mean. No gradient
reaches the teacher. (TinyBERT's program takes its means over padding too:
`tinybert_loss(…, as_released=True)`.) B batch, T tokens, N real tokens of the batch, H width of the
student, H' of the teacher, A heads, V vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.kernels.distillation import check_temperature, soft_target_loss
from course_lib.kernels.masked_loss import mean_cross_entropy
from course_lib.kernels.upcast import upcast_type

from .pretraining import check_weights
from .sequences import part_of_mean

Losses = dict[str, Tensor]
Objective = Callable[[Any, Mapping[str, Tensor]], Losses]

PUBLISHED_WEIGHTS = {"soft": 5.0, "mlm": 2.0, "cosine": 1.0}  # of one of two published commands
TEMPERATURE = 2.0  # the default of DistilBERT's program, which neither command changes
WIDEN = (
    "A narrower student needs a matrix that widens it (fit_matrix); another number of heads cannot "
    "be compared head by head."
)
ALIKE = "Both must answer the same question: the same vocabulary, or the same classes."


def cosine_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """1 − cosine of each pair of vectors, mean over N: (N, H) and (N, H). Zero: same directions,
    whatever the lengths. Raises ValueError for unequal shapes, as all losses here do."""
    ours, theirs = matched("hidden states", student, teacher, WIDEN)
    return (1 - F.cosine_similarity(ours, theirs, dim=-1)).mean()


def hidden_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared distance of the entries: (N, H') and (N, H'), the student's already widened by
    W_h (Jiao et al. 2020, equation 8; equation 9 for embeddings)."""
    return F.mse_loss(*matched("hidden states", student, teacher, WIDEN))


def attention_loss(
    student: Tensor, teacher: Tensor, real: Tensor, over_padding: bool = False
) -> Tensor:
    """Mean squared distance of the scores *before* the softmax, over pairs of real tokens and over
    heads: (B, A, T, T) both, real (B, T), true at real tokens (equation 7). over_padding: over all
    pairs, as in the program, where those with a padded key count as equal."""
    ours, theirs = matched("attention scores", student, teacher, WIDEN)
    real = real.bool()
    both = ((real[:, :, None] | over_padding) & real[:, None, :])[:, None]  # (B, 1, T, T)
    gap = (ours - theirs).masked_fill(~both, 0.0)
    if over_padding:
        return gap.square().mean()
    return gap.square().sum() / (both.sum() * student.shape[1]).clamp(min=1)


def prediction_loss(student: Tensor, teacher: Tensor, temperature: float = 1.0) -> Tensor:
    """Cross-entropy of the teacher's softened answers, in nats, mean over N: (N, classes) both
    (equation 10, where the temperature is 1)."""
    check_temperature(temperature)
    ours, theirs = matched("answers", student, teacher, ALIKE)
    return F.cross_entropy(ours / temperature, (theirs / temperature).softmax(-1))


def distilbert_loss(
    soft: float = PUBLISHED_WEIGHTS["soft"],
    mlm: float = PUBLISHED_WEIGHTS["mlm"],
    cosine: float = PUBLISHED_WEIGHTS["cosine"],
    temperature: float = TEMPERATURE,
) -> Objective:
    """DistilBERT's triple loss (Sanh et al. 2019, section 2): three weights, none the complement of
    another. Soft targets and cosine over all real tokens, masked-LM loss where words were masked.

    The README of the program has two commands, with weights 5, 2 and 1 (one GPU) and 0.33 each
    (four), and does not say which made the released model; 2 is the program's temperature in both.
    The objective gives total, soft, mlm and cosine; a loss of weight 0 is not computed. Raises
    ValueError for a negative weight, for none above 0, and for a temperature not above 0."""
    weights = {"soft": soft, "mlm": mlm, "cosine": cosine}
    check_weights(weights)
    check_temperature(temperature)

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
        student, teacher, real = outputs.student, outputs.teacher, outputs.real
        tokens = real.sum(), targets.get("num_tokens")
        result: Losses = {}
        if soft:
            answers = matched("answers", student.logits[real], teacher.logits[real], ALIKE)
            result["soft"] = part_of_mean(soft_target_loss(*answers, temperature), *tokens)
        if mlm:
            at = needed(outputs.predict_at, "masked positions", "Pass predict_at to the model")
            logits = student.logits.flatten(0, 1)[at]
            result["mlm"] = mean_cross_entropy(logits, targets["labels"], targets.get("num_labels"))
        if cosine:
            last = student.hidden_states[-1][real], teacher.hidden_states[-1][real]
            result["cosine"] = part_of_mean(cosine_loss(*last), *tokens)
        return weighted_total(result, weights)

    return loss


def tinybert_loss(
    mapping: Sequence[int],
    *,
    attention: float = 1.0,
    hidden: float = 1.0,
    embedding: float = 1.0,
    prediction: float = 0.0,
    temperature: float = 1.0,
    as_released: bool = False,
) -> Objective:
    """TinyBERT's losses (equation 11): the sum over the student's layers of the attention and the
    hidden losses, the embeddings' and, in the second stage, the prediction's.

    mapping: g(1) … g(M), the teacher's layers counted from 1 (`layer_mapping`). as_released: as in
    task_distill.py, means over padding too, and the prediction's divided by the number of classes
    as well. The objective gives total and each loss by name; a loss of weight 0 is not computed.
    Raises ValueError as `distilbert_loss` does, and for a mapping that does not fit the layers."""
    weights = {
        "attention": attention, "hidden": hidden, "embedding": embedding, "prediction": prediction,
    }  # fmt: skip
    check_weights(weights)
    check_temperature(temperature)

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
        student, teacher, real = outputs.student, outputs.teacher, outputs.real
        counted = torch.ones_like(real) if as_released else real
        of = "position" if as_released else "token"
        tokens = counted.sum(), targets.get(f"num_{of}s")
        result: Losses = {}
        pairs = list(enumerate(mapping, start=1))
        if attention:
            how = "Ask for them: DistillationPair(…, scores=True)"
            ours = needed(student.attention_scores, "attention scores", how)
            theirs = needed(teacher.attention_scores, "attention scores", how)
            _check_mapping(mapping, len(ours), len(theirs))
            layers = [
                attention_loss(ours[m - 1], theirs[n - 1], real, as_released) for m, n in pairs
            ]
            both = counted.sum(1).square().sum(), targets.get(f"num_{of}_pairs")
            result["attention"] = part_of_mean(torch.stack(layers).sum(), *both)
        if hidden:
            ours, theirs = outputs.widened, teacher.hidden_states
            _check_mapping(mapping, len(ours) - 1, len(theirs) - 1)
            layers = [hidden_loss(ours[m][counted], theirs[n][counted]) for m, n in pairs]
            result["hidden"] = part_of_mean(torch.stack(layers).sum(), *tokens)
        if embedding:
            ours, theirs = outputs.widened[0], teacher.hidden_states[0]
            mean = hidden_loss(ours[counted], theirs[counted])
            result["embedding"] = part_of_mean(mean, *tokens)
        if prediction:
            how = "Give both a head, or leave prediction at 0"
            ours = needed(getattr(student, "logits", None), "answers", how)
            theirs = needed(getattr(teacher, "logits", None), "answers", how)
            counts: Any = len(ours), targets.get("num_sequences")
            if ours.dim() == 3:  # an answer a token, not one a text
                ours, theirs, counts = ours[counted], theirs[counted], tokens
            classes = ours.shape[-1] if as_released else 1
            mean = prediction_loss(ours, theirs, temperature) / classes
            result["prediction"] = part_of_mean(mean, *counts)
        return weighted_total(result, weights)

    return loss


def weighted_total(losses: Losses, weights: Mapping[str, float]) -> Losses:
    """The losses by name with their weighted sum, "total", before them."""
    total = sum((weights[name] * loss for name, loss in losses.items()), torch.zeros(()))
    return {"total": total, **losses}


def matched(what: str, student: Tensor, teacher: Tensor, advice: str) -> tuple[Tensor, Tensor]:
    """Both in float32 or wider, the teacher's without its history."""
    if student.shape != teacher.shape:
        raise ValueError(
            f"{what} of shape {tuple(student.shape)} (student) and {tuple(teacher.shape)} "
            f"(teacher) were given; expected the same. {advice}"
        )
    dtype = upcast_type(student)
    return student.to(dtype), teacher.detach().to(dtype)


def needed(value: Any, what: str, how: str) -> Any:
    """The value; raises ValueError, which says how to get it, where there is none."""
    if value is None:
        raise ValueError(f"no {what} were given; expected them, for a loss with a weight. {how}.")
    return value


def _check_mapping(mapping: Sequence[int], student_layers: int, teacher_layers: int) -> None:
    if len(mapping) != student_layers or not all(1 <= n <= teacher_layers for n in mapping):
        raise ValueError(
            f"mapping={tuple(mapping)} was given for a student of {student_layers} layers and a "
            f"teacher of {teacher_layers}; expected {student_layers} numbers from 1 to "
            f"{teacher_layers}. layer_mapping makes them."
        )
