"""Exercise 06.3: DistilBERT's three losses, each over its own positions. B batch, T tokens, V
vocabulary, H width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.heads import MaskedLMOutput
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def mean_over(x: Tensor, where: Tensor) -> Tensor:
    """The mean of x (B, T) over the positions where `where` is true; 0 if there are none."""
    return x[where].sum() / where.sum().clamp(min=1)


def triple_loss(
    student: Any, teacher: Any, real: Tensor, labels: Tensor, weights: Sequence[float],
    temperature: float,
) -> Tensor:  # fmt: skip
    """Soft targets and cosine over the real tokens, MLM at the masked ones (Sanh et al. 2019,
    section 2)."""
    ours = (student.logits / temperature).log_softmax(-1)  # (B, T, V)
    theirs = (teacher.logits.detach() / temperature).log_softmax(-1)
    kl = (theirs.exp() * (theirs - ours)).sum(-1)  # (B, T)
    nll = F.cross_entropy(student.logits.mT, labels, reduction="none")  # 0 where the label is −100
    last, target = student.hidden_states[-1], teacher.hidden_states[-1].detach()
    cosines = F.cosine_similarity(last, target, dim=-1)
    soft = temperature**2 * mean_over(kl, real)
    mlm = mean_over(nll, labels != -100)
    cosine = mean_over(1 - cosines, real)
    a, b, c = weights
    return a * soft + b * mlm + c * cosine


# ---------------------------------------------------------------- cases

LAYERS = 3
PUBLISHED = (5.0, 2.0, 1.0)  # of one of the two commands that DistilBERT's authors published


def outputs(draw: Draw, rows: int, tokens: int) -> MaskedLMOutput:
    states = tuple(draw.normal(rows, tokens, 4) for _ in range(LAYERS + 1))
    return MaskedLMOutput(2 * draw.normal(rows, tokens, 6), states)


def case(draw: Draw, lengths: Sequence[int], masked: Sequence[int], T: float = 2.0) -> Case:
    """lengths: real tokens of each row; masked: how many of these."""
    rows, tokens = len(lengths), max(lengths)
    real = torch.arange(tokens) < torch.tensor(lengths)[:, None]  # (B, T)
    labels = torch.full((rows, tokens), -100)
    for row, (length, count) in enumerate(zip(lengths, masked, strict=True)):
        at = torch.randperm(length, generator=draw.torch)[:count]
        labels[row, at] = draw.ids(1, 5, count)
    weights = tuple(draw.integer(2, 9) / 2 + more for more in (0, 5, 10))
    return outputs(draw, rows, tokens), outputs(draw, rows, tokens), real, labels, weights, T


def equal_networks(draw: Draw) -> list[Case]:
    cases = [case(draw, (5, 5), (2, 1), T) for T in (2.0, 3.0)]
    return [(student, student, *rest) for student, _, *rest in cases]


def other_answers(draw: Draw) -> list[Case]:
    cases = [case(draw, (5, 5), (2, 1), T) for T in (2.0, 3.0)]
    return [(s, replace(t, hidden_states=s.hidden_states), *rest) for s, t, *rest in cases]


with_padding = each(case, ((2, 6), (1, 2)), ((7, 4, 2), (3, 1, 1), 3.0))
nothing_masked = each(case, ((3, 5), (0, 0)), ((3, 5), (0, 0), 3.0))


def published_weights(draw: Draw) -> list[Case]:
    return [(*case(draw, (7, 4, 2), (3, 1, 1))[:4], PUBLISHED, 2.0)]


def by_rows(x: Tensor, where: Tensor) -> Tensor:
    return torch.stack([mean_over(*row) for row in zip(x, where, strict=True)]).mean()


SOFT, COS = "mean_over(kl, real)", "mean_over(1 - cosines, real)"
MLM = "mean_over(nll, labels != -100)"
TRIPLE = Exercise(
    **written("06.3"),
    solution=triple_loss,
    helpers=(mean_over,),
    returns=Number("loss", "nats"),
    library=(
        "course_lib.objectives.distillation:distilbert_loss",
        "course_lib.objectives.distillation:cosine_loss",
        "course_lib.kernels.masked_loss:mean_cross_entropy",
        "course_lib.kernels.distillation:soft_target_loss",
    ),
    when_raised=(
        ("Expected target size|target batch_size|target tensor expected|multi-target",
         "cross_entropy wants (number, V) and (number,): pick the masked positions of both first, "
         "logits[masked] and labels[masked]."),
        ("out of bounds", "Labels are −100 where nothing was masked; that is no word. Pick the "
         "other positions first."),
    ),
    stages=(
        Stage("equal networks: only the masked words", equal_networks),
        Stage("the teacher answers otherwise", other_answers),
        Stage("its vectors differ too",
              each(case, *((*shape, T) for shape in (((5, 5), (2, 1)), ((4,), (1,)))
                           for T in (2.0, 3.0)))),
        Stage("rows with padding", with_padding),
        Stage("nothing was masked", nothing_masked),
        Stage("the published weights: 5, 2 and 1", published_weights),
    ),
    gradient=("student.logits", "student.hidden_states"),
    infinite="Your loss is not a finite number. Where nothing was masked there is nothing to "
    "average, and 0/0 is not a number: divide a sum by max(1, how many). And F.kl_div expects "
    "probabilities as its second argument, or log_target=True.",
    mistakes=(
        Edit(SOFT, "kl.mean()", "Padding is counted in the soft targets. What a network says of "
             "padding means nothing: logits[real] is (N, V)."),
        Edit(COS, "(1 - cosines).mean()", "Padding is counted in the cosine. Take the vectors "
             "where `real` is true."),
        Edit(SOFT, "mean_over(kl, labels != -100)", "The soft targets are compared at the masked "
             "positions only. A teacher has an opinion on every token: take all real ones."),
        Edit(COS, "mean_over(1 - cosines, labels != -100)",
             "The cosine is taken at the masked positions only; take all real tokens."),
        Edit(MLM, "nll.mean()", "The MLM loss is divided by all B · T positions; divide by how "
             "many were masked."),
        Edit("temperature**2 * mean_over", "mean_over",
             "The factor T² of the soft targets is missing."),
        Edit("(theirs.exp() * (theirs - ours))", "(ours.exp() * (ours - theirs))",
             "The soft targets are the wrong way round: the teacher's probabilities weigh, "
             "KL(teacher ‖ student)."),
        Edit("(theirs.exp() * (theirs - ours))", "(-theirs.exp() * ours)",
             "The soft targets are a cross-entropy: larger than the divergence by the teacher's "
             "entropy, so that equal answers do not cost 0."),
        Edit("1 - cosines", "cosines", "The cosine is added: the more alike two vectors are, the "
             "larger your loss. It is 1 − cosine, which is 0 for equal directions."),
        Edit("a, b, c = weights", "a, b, c = weights[0], 1 - weights[0], weights[2]",
             "The MLM loss is weighted by 1 − α, where α is the weight of the soft targets. The "
             "three weights are independent: none is the complement of another."),
        Edit("a, b, c = weights", "a, b, c = 1 - weights[1], *weights[1:]",
             "The soft targets are weighted by 1 − α, where α is the weight of the MLM loss. The "
             "three weights are independent: none is the complement of another."),
        Edit("a, b, c = weights", "a, b, c = (w / sum(weights) for w in weights)",
             "The weights are divided by their sum. They are used as they stand."),
        Edit("a, b, c = weights", "b, a, c = weights", "The weights of soft targets and MLM are "
             "exchanged: weights[0] is that of the soft targets."),
        Edit("a, b, c = weights", "a, c, b = weights", "The weights are in another order. They "
             "belong to soft targets, MLM and cosine, in this order."),
        Edit("a, b, c = weights", "a, b, c = 1, 1, 1",
             "The three losses are added without their weights."),
        Edit("a, b, c = weights", "a, b, c = PUBLISHED", "The weights are always 5, 2 and 1. These "
             "are the published ones; use those you are given."),
        Edit("a, b, c = weights", "a, b, c = *weights[:2], 0", "The cosine is missing."),
        Edit("a, b, c = weights", "a, b, c = weights[0], 0, weights[2]",
             "The MLM loss is missing."),
        Edit("a, b, c = weights", "a, b, c = 0, *weights[1:]", "The soft targets are missing."),
        Edit(SOFT, "by_rows(kl, real)", "Soft targets were averaged in each row, then over the "
             "rows. A token of a short row then weighs more. Average over all real tokens of the "
             "batch at once."),
        Edit(COS, "by_rows(1 - cosines, real)", "The cosine was averaged in each row, then over "
             "the rows. Average over all real tokens at once."),
        Edit(SOFT, "by_rows(kl, real)", "Soft targets and cosine were averaged in each row, then "
             "over the rows. Average over all real tokens of the batch at once.",
             more=((COS, "by_rows(1 - cosines, real)"),)),
        Edit(SOFT, "by_rows(kl, real)", "Each row was averaged by itself, then the rows. A token "
             "of a short row then weighs more. Average over all tokens of the batch at once.",
             more=((COS, "by_rows(1 - cosines, real)"), (MLM, "by_rows(nll, labels != -100)"))),
        Edit(SOFT, "kl.sum() / len(kl)", "The soft targets are summed over the tokens and divided "
             "by the number of rows (F.kl_div with \"batchmean\" on (B, T, V) does that). Pick the "
             "real tokens first: logits[real] is (N, V)."),
        Edit("(theirs - ours)).sum(-1)", "(theirs - ours)).mean(-1)", "The soft targets are "
             "averaged over the V words too; over them the divergence is a sum."),
        Edit(MLM, "nll.mean()", "The MLM loss is taken at every position, with word 0 where "
             "nothing was masked. Labels of −100 are left out: ignore_index=-100.",
             more=(("labels, reduction", "labels.clamp(min=0), reduction"),)),
        Edit(MLM, "mean_over(nll, real)", "The MLM loss is taken at every real token, with word 0 "
             "where nothing was masked. Labels of −100 are left out: ignore_index=-100.",
             more=(("labels, reduction", "labels.clamp(min=0), reduction"),)),
        Edit(MLM, "mean_over(nll, real)", "The MLM loss is divided by the number of real tokens; "
             "divide by how many were masked."),
        Edit("student.logits.mT", "(student.logits / temperature).mT",
             "The MLM loss is taken of softened logits; it is at T = 1."),
        Edit("1 - cosines", "1 + cosines", "1 + cosine grows when the vectors agree; it is 1 − "
             "cosine."),
        Edit("1 - cosines", "-cosines", "−cosine stands where 1 − cosine should. The gradient is "
             "the same, but equal vectors then cost −1 and not 0."),
        Edit("student.hidden_states[-1]", "student.hidden_states[0]",
             "The first hidden states are compared, the embeddings; take the last, [-1].",
             more=(("teacher.hidden_states[-1]", "teacher.hidden_states[0]"),)),
        Edit("student.hidden_states[-1]", "student.hidden_states[-2]", "The last layer but one is "
             "compared. Hidden states begin with the embeddings, so the last layer is [-1].",
             more=(("teacher.hidden_states[-1]", "teacher.hidden_states[-2]"),)),
        Edit("F.cosine_similarity(last, target, dim=-1)", "sum(F.cosine_similarity(*x, dim=-1) for "
             "x in zip(student.hidden_states, teacher.hidden_states)) / len(student.hidden_states)",
             "The cosine is averaged over all hidden states. DistilBERT compares the last layer "
             "only; comparing layer by layer is TinyBERT's idea."),
        Edit("cosine = mean_over(1 - cosines, real)", "cosine = sum(mean_over(1 - "
             "F.cosine_similarity(a, b.detach(), dim=-1), real) for a, b in "
             "zip(student.hidden_states, teacher.hidden_states))",
             "The cosine is added up over all hidden states. DistilBERT compares the last layer "
             "only; comparing layer by layer is TinyBERT's idea."),
        Edit(COS, "(1 - F.cosine_similarity(last, target)).mean()", "The cosine runs over the "
             "positions (cosine_similarity takes axis 1 if it is not told); it must run over the H "
             "units: dim=-1."),
        Edit("student.logits / temperature)", "student.logits)",
             "T has no effect. Soften both networks' logits by it, and multiply by T².",
             more=(("teacher.logits.detach() / temperature", "teacher.logits.detach()"),
                   ("temperature**2 * mean_over", "mean_over"))),
    ),
)  # fmt: skip
