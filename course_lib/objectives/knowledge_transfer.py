"""How MobileBERT learns from its teacher, layer by layer (Sun et al. 2020, section 3.4; weights and
details of the authors' program).

Both are as deep and as wide between blocks, with as many heads, so layer ℓ learns from layer ℓ, and
no matrix is needed. Pure functions of what both networks said, over real tokens, in float32 or
wider; no gradient reaches the teacher. N real tokens of the batch, H width, L layers, A heads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.kernels.masked_loss import mean_cross_entropy
from course_lib.kernels.upcast import upcast_type

from .distillation import ALIKE, Losses, Objective, matched, needed, prediction_loss, weighted_total
from .next_sentence import next_sentence_loss
from .pretraining import check_weights
from .sequences import part_of_mean

PROGRAM_WEIGHTS = {"feature_map": 100.0, "mean": 5_000.0, "variance": 5.0, "attention": 1.0}
ALPHA = 0.5  # of the masked words' own labels, in the program's command
EQUAL = "MobileBERT and its teacher have states of one width, and as many heads."


def feature_map_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared distance of (N, H) and (N, H), after a LayerNorm without γ and β."""
    ours, theirs = matched("hidden states", student, teacher, EQUAL)
    size = ours.shape[-1:]
    return F.mse_loss(F.layer_norm(ours, size, eps=1e-12), F.layer_norm(theirs, size, eps=1e-12))


def mean_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared distance of each vector's mean: (N, H) and (…, N, H), every teacher state of
    which counts alike."""
    ours, theirs = _moments(student, teacher)
    return (ours[0] - theirs[0]).square().mean()


def variance_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean distance of each vector's variance, shapes as in `mean_loss`."""
    ours, theirs = _moments(student, teacher)
    return (ours[1] - theirs[1]).abs().mean()


def attention_transfer_loss(student: Tensor, teacher: Tensor, real: Tensor) -> Tensor:
    """Cross-entropy of the teacher's attention weights, in nats, mean over heads and real queries:
    scores (B, A, T, T) both, before the softmax; real (B, T)."""
    ours, theirs = matched("attention scores", student, teacher, EQUAL)
    rows = [x.transpose(1, 2)[real.bool()].flatten(0, 1) for x in (ours, theirs)]  # (N·A, T)
    return F.cross_entropy(rows[0], rows[1].softmax(-1))


def transfer_loss(
    feature_map: float = PROGRAM_WEIGHTS["feature_map"],
    mean: float = PROGRAM_WEIGHTS["mean"],
    variance: float = PROGRAM_WEIGHTS["variance"],
    attention: float = PROGRAM_WEIGHTS["attention"],
    *,
    layers: Iterable[int] | None = None,
    all_teacher_layers: bool = False,
    over_padding: bool = False,
) -> Objective:
    """Knowledge transfer: each part a sum over `layers` (from 1; all if None), divided by L, also
    where only some are looked at.

    all_teacher_layers: the program's slip. It takes mean and variance of the list of the teacher's
    states, so each student layer is compared with all L + 1 of them, the embeddings too.
    over_padding: the program's means, which run over padded tokens as over real ones.
    The objective gives total, feature_map, mean, variance and attention, those of weight 0 left
    out. Raises ValueError for negative weights, for networks of unequal depth, for layers that are
    not there, and where hidden states or attention scores are missing."""
    weights = {
        "feature_map": feature_map, "mean": mean, "variance": variance, "attention": attention,
    }  # fmt: skip
    check_weights(weights)
    chosen = None if layers is None else tuple(layers)

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
        student, teacher, real = outputs.student, outputs.teacher, outputs.real
        real = torch.ones_like(real) if over_padding else real
        ours = [state[real] for state in student.hidden_states]  # each (N, H), embeddings first
        theirs = [state[real] for state in teacher.hidden_states]
        depth = len(ours) - 1
        which = _check_layers(chosen, depth, len(theirs) - 1)
        result: dict[str, list[Tensor]] = {}
        if feature_map:
            result["feature_map"] = [feature_map_loss(ours[n], theirs[n]) for n in which]
        teacher_states = [torch.stack(theirs)] * len(theirs) if all_teacher_layers else theirs
        if mean:
            result["mean"] = [mean_loss(ours[n], teacher_states[n]) for n in which]
        if variance:
            result["variance"] = [variance_loss(ours[n], teacher_states[n]) for n in which]
        if attention:
            one, other = (_scores(x) for x in (student, teacher))
            pairs = [(one[n - 1], other[n - 1]) for n in which]
            result["attention"] = [attention_transfer_loss(*pair, real) for pair in pairs]
        sums = {name: torch.stack(parts).sum() / depth for name, parts in result.items()}
        tokens = real.sum(), targets.get("num_positions" if over_padding else "num_tokens")
        of_batch = {name: part_of_mean(mean, *tokens) for name, mean in sums.items()}
        return weighted_total(of_batch, weights)

    return loss


def _scores(outputs: Any) -> tuple[Tensor, ...]:
    how = "Ask for them: DistillationPair(…, scores=True)"
    return needed(outputs.attention_scores, "attention scores", how)  # type: ignore[no-any-return]


def pretraining_distillation_loss(alpha: float = ALPHA, pair: float = 1.0) -> Objective:
    """α·MLM + (1 − α)·KD + NSP: at the masked positions the words that stood there and the
    teacher's answers, temperature 1, and the pair's label where the batch has one.

    The objective gives total, mlm, kd and, with labelled pairs, nsp, those of weight 0 left out.
    Raises ValueError for an α that is no fraction."""
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha={alpha!r} was given; expected a fraction, 0 to 1, of the labels.")
    weights = {"mlm": alpha, "kd": 1 - alpha, "nsp": pair}

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
        at = needed(outputs.predict_at, "masked positions", "Pass predict_at to the model")
        ours, theirs = (
            x.prediction_logits.flatten(0, 1)[at] for x in (outputs.student, outputs.teacher)
        )
        result: Losses = {}
        if alpha > 0:
            result["mlm"] = mean_cross_entropy(ours, targets["labels"], targets.get("num_labels"))
        if alpha < 1:
            distilled = prediction_loss(*matched("answers", ours, theirs, ALIKE))
            result["kd"] = part_of_mean(distilled, len(at), targets.get("num_masked"))
        if pair and "next_sentence_label" in targets:
            result["nsp"] = next_sentence_loss(outputs.student, targets)["nsp"]
        return weighted_total(result, weights)

    return loss


def both_losses(first: Objective, second: Objective) -> Objective:
    """The sum of two objectives' totals, with the parts of both: the auxiliary strategy."""

    def loss(outputs: Any, targets: Mapping[str, Tensor]) -> Losses:
        one, other = first(outputs, targets), second(outputs, targets)
        return {**one, **other, "total": one["total"] + other["total"]}

    return loss


def _moments(student: Tensor, teacher: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Each vector's mean and variance, of both."""
    last = teacher[(0,) * (teacher.dim() - student.dim())]
    matched("hidden states", student, last, EQUAL)
    dtype = upcast_type(student)
    return tuple(  # type: ignore[return-value]
        [x.mean(-1), x.var(-1, correction=0)]
        for x in (student.to(dtype), teacher.detach().to(dtype))
    )


def _check_layers(chosen: tuple[int, ...] | None, student: int, teacher: int) -> tuple[int, ...]:
    """The layers to look at; raises ValueError where they, or as many in both, are not there."""
    if student != teacher or not student:
        raise ValueError(
            f"a student of {student} layers and a teacher of {teacher} were given; expected as "
            "many, at least one: layer ℓ learns from layer ℓ."
        )
    which = tuple(range(1, student + 1)) if chosen is None else chosen
    if not which or not all(1 <= n <= student for n in which):
        raise ValueError(
            f"layers={which} was given; expected at least one number from 1 to {student}."
        )
    return which
