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
         "cross_entropy needs shapes (number, V) and (number,): pick the masked positions of both "
         "first, logits[masked] and labels[masked]."),
        ("out of bounds", "Labels are −100 where nothing was masked, which is not a word. Pick the "
         "masked positions first."),
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
    infinite="Your loss is not a finite number. Where nothing was masked the mean is 0/0, which is "
    "nan: divide the sum by max(1, their number). And F.kl_div expects probabilities as its second "
    "argument, or log_target=True.",
    mistakes=(
        Edit(SOFT, "kl.mean()", "You count padding in the soft targets. A network's output at "
             "padding has no meaning: logits[real] is (N, V)."),
        Edit(COS, "(1 - cosines).mean()", "You count padding in the cosine. Take the vectors where "
             "`real` is true."),
        Edit(SOFT, "mean_over(kl, labels != -100)", "You compare the soft targets only at the "
             "masked positions. The teacher gives a distribution at every token: take all real "
             "ones."),
        Edit(COS, "mean_over(1 - cosines, labels != -100)",
             "You take the cosine only at the masked positions; take all real tokens."),
        Edit(MLM, "nll.mean()", "You divide the MLM loss by all B · T positions; divide by the "
             "number of masked ones."),
        Edit("temperature**2 * mean_over", "mean_over",
             "The factor T² of the soft targets is missing."),
        Edit("(theirs.exp() * (theirs - ours))", "(ours.exp() * (ours - theirs))",
             "The soft targets are the wrong way round: weight by the teacher's probabilities, "
             "KL(teacher ‖ student)."),
        Edit("(theirs.exp() * (theirs - ours))", "(-theirs.exp() * ours)",
             "Your soft-target loss is a cross-entropy: it is larger than the divergence by the "
             "teacher's entropy, so equal answers do not cost 0."),
        Edit("1 - cosines", "cosines", "You add the cosine, so the loss grows as two vectors "
             "become more alike. Use 1 − cosine, which is 0 for equal directions."),
        Edit("a, b, c = weights", "a, b, c = weights[0], 1 - weights[0], weights[2]",
             "You weight the MLM loss by 1 − α, where α is the weight of the soft targets. The "
             "three weights are independent: none is the complement of another."),
        Edit("a, b, c = weights", "a, b, c = 1 - weights[1], *weights[1:]",
             "You weight the soft targets by 1 − α, where α is the weight of the MLM loss. The "
             "three weights are independent: none is the complement of another."),
        Edit("a, b, c = weights", "a, b, c = (w / sum(weights) for w in weights)",
             "You divide the weights by their sum. Use them as they are."),
        Edit("a, b, c = weights", "b, a, c = weights", "You exchanged the weights of soft targets "
             "and MLM: weights[0] belongs to the soft targets."),
        Edit("a, b, c = weights", "a, c, b = weights", "Your weights are in the wrong order. They "
             "belong to soft targets, MLM and cosine, in this order."),
        Edit("a, b, c = weights", "a, b, c = 1, 1, 1",
             "You add the three losses without their weights."),
        Edit("a, b, c = weights", "a, b, c = PUBLISHED", "You always use the weights 5, 2 and 1. "
             "These are the published ones; use the argument."),
        Edit("a, b, c = weights", "a, b, c = *weights[:2], 0", "The cosine is missing."),
        Edit("a, b, c = weights", "a, b, c = weights[0], 0, weights[2]",
             "The MLM loss is missing."),
        Edit("a, b, c = weights", "a, b, c = 0, *weights[1:]", "The soft targets are missing."),
        Edit(SOFT, "by_rows(kl, real)", "You average the soft targets within each row, then over "
             "the rows. A token of a short row then counts more. Average over all real tokens of "
             "the batch at once."),
        Edit(COS, "by_rows(1 - cosines, real)", "You average the cosine within each row, then over "
             "the rows. Average over all real tokens at once."),
        Edit(SOFT, "by_rows(kl, real)", "You average soft targets and cosine within each row, then "
             "over the rows. Average over all real tokens of the batch at once.",
             more=((COS, "by_rows(1 - cosines, real)"),)),
        Edit(SOFT, "by_rows(kl, real)", "You average within each row, then over the rows. A token "
             "of a short row then counts more. Average over all tokens of the batch at once.",
             more=((COS, "by_rows(1 - cosines, real)"), (MLM, "by_rows(nll, labels != -100)"))),
        Edit(SOFT, "kl.sum() / len(kl)", "You sum the soft targets over the tokens and divide by "
             'the number of rows (F.kl_div with "batchmean" on (B, T, V) does that). Pick the real '
             "tokens first: logits[real] is (N, V)."),
        Edit("(theirs - ours)).sum(-1)", "(theirs - ours)).mean(-1)",
             "You average the soft targets over the V words too; the divergence is a sum over "
             "them."),
        Edit(MLM, "nll.mean()", "You take the MLM loss at every position, with word 0 where "
             "nothing was masked. Leave out labels of −100: ignore_index=-100.",
             more=(("labels, reduction", "labels.clamp(min=0), reduction"),)),
        Edit(MLM, "mean_over(nll, real)", "You take the MLM loss at every real token, with word 0 "
             "where nothing was masked. Leave out labels of −100: ignore_index=-100.",
             more=(("labels, reduction", "labels.clamp(min=0), reduction"),)),
        Edit(MLM, "mean_over(nll, real)", "You divide the MLM loss by the number of real tokens; "
             "divide by the number of masked ones."),
        Edit("student.logits.mT", "(student.logits / temperature).mT",
             "You compute the MLM loss from softened logits; use T = 1 there."),
        Edit("1 - cosines", "1 + cosines", "Your 1 + cosine grows as the vectors agree; use 1 − "
             "cosine."),
        Edit("1 - cosines", "-cosines", "You use −cosine instead of 1 − cosine. The gradient is "
             "the same, but equal vectors then cost −1, not 0."),
        Edit("student.hidden_states[-1]", "student.hidden_states[0]",
             "You compare the first hidden states, the embeddings; take the last, [-1].",
             more=(("teacher.hidden_states[-1]", "teacher.hidden_states[0]"),)),
        Edit("student.hidden_states[-1]", "student.hidden_states[-2]",
             "You compare the second-last layer. Hidden states begin with the embeddings, so the "
             "last layer is [-1].",
             more=(("teacher.hidden_states[-1]", "teacher.hidden_states[-2]"),)),
        Edit("F.cosine_similarity(last, target, dim=-1)", "sum(F.cosine_similarity(*x, dim=-1) for "
             "x in zip(student.hidden_states, teacher.hidden_states)) / len(student.hidden_states)",
             "You average the cosine over all hidden states. DistilBERT compares only the last "
             "layer; comparing layer by layer is TinyBERT's idea."),
        Edit("cosine = mean_over(1 - cosines, real)", "cosine = sum(mean_over(1 - "
             "F.cosine_similarity(a, b.detach(), dim=-1), real) for a, b in "
             "zip(student.hidden_states, teacher.hidden_states))",
             "You add up the cosine over all hidden states. DistilBERT compares only the last "
             "layer; comparing layer by layer is TinyBERT's idea."),
        Edit(COS, "(1 - F.cosine_similarity(last, target)).mean()",
             "Your cosine runs over the positions (cosine_similarity uses axis 1 by default); it "
             "must run over the H units: dim=-1."),
        Edit("student.logits / temperature)", "student.logits)",
             "T has no effect. Soften both networks' logits by it, and multiply by T².",
             more=(("teacher.logits.detach() / temperature", "teacher.logits.detach()"),
                   ("temperature**2 * mean_over", "mean_over"))),
    ),
)  # fmt: skip
