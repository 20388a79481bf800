"""Exercise 07.3: the discriminator's loss. B texts of T tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def judge_loss(logits: Tensor, labels: Tensor, attention_mask: Tensor) -> Tensor:
    """Mean over all real tokens of −log P(true label), in nats (section 2)."""
    real, targets = attention_mask.bool(), labels.to(logits.dtype)
    losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")  # (B, T)
    return losses[real].mean()


# ---------------------------------------------------------------- cases


def case(draw: Draw, lengths: Sequence[int], replaced: Sequence[int]) -> Case:
    """lengths: real tokens of each text; replaced: how many of these are labelled 1."""
    B, T = len(lengths), max(lengths)
    labels, real = torch.zeros(B, T, dtype=torch.long), torch.zeros(B, T, dtype=torch.long)
    for row, (length, count) in enumerate(zip(lengths, replaced, strict=True)):
        real[row, :length] = 1
        labels[row, torch.randperm(length, generator=draw.torch)[:count]] = 1
    return (2 * draw.normal(B, T)).requires_grad_(), labels, real


def very_large(draw: Draw) -> list[Case]:
    """A very sure discriminator: a sigmoid rounds to 0 or 1, and its logarithm is lost."""
    logits, labels, real = case(draw, (9, 6), (3, 2))
    magnitude = draw.ids(800, 2_000, *labels.shape)
    return [((logits.sign() * magnitude).detach().requires_grad_(), labels, real)]


WITH, MEAN = "F.binary_cross_entropy_with_logits(logits,", "losses[real].mean()"
WHOLE = 'F.binary_cross_entropy_with_logits(logits, targets, reduction="none")'
SIGMOID_FIRST = (
    "For logits far from zero the sigmoid has been rounded to 0 or 1 before the logarithm was "
    "taken. F.binary_cross_entropy_with_logits takes the logits and avoids this."
)

JUDGING = Exercise(
    **written("07.3"),
    solution=judge_loss,
    returns=Number("loss", "nats"),
    see="course_lib.objectives.replaced_tokens.replaced_token_loss (only_masked asks 15% instead)",
    when_raised=(
        (r"can't be cast|Found dtype|expected scalar type|should be the same dtype",
         "The targets must be floating-point numbers, as the logits are: "
         "labels.to(logits.dtype)."),
        ("between 0 and 1", "F.binary_cross_entropy needs probabilities, but these are logits: "
         "F.binary_cross_entropy_with_logits takes them as they are."),
        ("class probabilities|multi-target|Expected target size",
         "F.cross_entropy needs a logit for each class. Here one logit per token decides between "
         "two classes: F.binary_cross_entropy_with_logits."),
        (r"indices.*(bool|byte)|out of bounds", "As an index, zeros and ones are read as "
         "positions. Make them True and False first: attention_mask.bool()."),
    ),
    stages=(
        Stage("one token, replaced; one, original", each(case, ((1,), (1,)), ((1,), (0,)))),
        Stage("one text", each(case, ((8,), (2,)), ((13,), (3,)))),
        Stage("texts of different lengths", each(case, ((7, 4), (2, 1)), ((9, 3, 12), (2, 1, 4)))),
        Stage("very large logits", very_large),
        Stage("a text in which nothing was replaced", each(case, ((6, 10), (0, 3)))),
    ),
    gradient=("logits",),
    infinite=f"Your loss is not a finite number. {SIGMOID_FIRST}",
    mistakes=(
        Edit(MEAN, "losses.mean()", "Your mean runs over the padding too. Padding is never "
             "replaced: leave it out of the sum and of the count."),
        Edit(MEAN, "losses[real].sum() / losses.numel()", "You leave the padding out of the sum, "
             "but divide by all B·T positions. Divide by the number of real tokens."),
        Edit(WITH, "F.binary_cross_entropy_with_logits(logits * real,",
             "You set the logits of the padding to zero and average them in. A logit of zero still "
             "costs ln 2 = 0.69. Leave these positions out.", more=((MEAN, "losses.mean()"),)),
        Edit(MEAN, "losses[real & labels.bool()].mean()", "Your loss runs over the replaced tokens "
             "only, so answering 'replaced' everywhere would cost nothing. It must run over all "
             "real tokens, original ones too: that is ELECTRA's advantage."),
        Edit(MEAN, "losses[real & ~labels.bool()].mean()", "Your loss runs over the original "
             "tokens only; it must run over all real tokens."),
        Edit(MEAN, "(losses * labels)[real].mean()", "Half of the cross-entropy is missing: "
             "original tokens, where the label is 0, add nothing. Add −(1 − y) · log(1 − p)."),
        Edit(MEAN, "(losses * (1 - labels))[real].mean()", "Half of the cross-entropy is missing: "
             "replaced tokens, where the label is 1, add nothing. Add −y · log p."),
        Edit(MEAN, "losses[real].sum()", "This is the sum over the real tokens; take their mean. "
             "With a sum long batches would count more, and λ would mean something else for each."),
        Edit(MEAN, "((losses * real).sum(1) / real.sum(1)).mean()",
             "You average within each text, then over the texts: a token of a short text counts "
             "more. Average over all real tokens of the batch at once."),
        Edit(MEAN, "((losses * real).sum(1) / real.sum(1)).sum()",
             "You average within each text and add the means. Average over all real tokens of the "
             "batch at once."),
        Edit(WITH, "F.binary_cross_entropy_with_logits(-logits,",
             "You read the logits the other way round, as the paper's D, where a high logit means "
             "original. Here a logit above zero means *replaced*, and so does the label 1."),
        Edit("return losses", "return -losses",
             "The sign is wrong: a loss is −log P, and never negative."),
        Edit(WITH, "F.binary_cross_entropy_with_logits(logits.sigmoid(),",
             "You apply a sigmoid before a loss that applies its own. Give "
             "binary_cross_entropy_with_logits the logits as they are."),
        Edit(WHOLE, "-logits.log_softmax(-1) * targets", "Your softmax runs over the tokens of a "
             "text, as if exactly one of them were replaced. Each token has its own yes-or-no "
             "question: use a sigmoid."),
        Edit(WHOLE, "(logits.sigmoid() - targets) ** 2", "This is the squared distance between "
             "probability and label; use −log P."),
        Edit(WHOLE, "(logits.sigmoid() - targets).abs()", "This is the mean of 1 − P(true label), "
             "without a logarithm; use −log P."),
        Edit(WHOLE, 'F.binary_cross_entropy(logits.sigmoid(), targets, reduction="none")',
             SIGMOID_FIRST),
        Edit(WHOLE, 'F.binary_cross_entropy_with_logits(logits, (logits > 0).to(logits.dtype), '
             'reduction="none")', "The labels have no effect: you take the discriminator's own "
             "decision for the truth."),
    ),
)  # fmt: skip
