"""Exercise 02.6: one loss from two tasks. B sequences, T tokens, V words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def joint_loss(
    prediction_logits: Tensor, labels: Tensor, nsp_logits: Tensor, nsp_label: Tensor
) -> Tensor:
    """Mean over the selected positions plus mean over the pairs (section A.2)."""
    words, classes = prediction_logits.flatten(0, 1), nsp_logits
    mlm = F.cross_entropy(words, labels.flatten(), ignore_index=-100)
    nsp = F.cross_entropy(classes, nsp_label)
    return mlm + nsp


def case(draw: Draw, T: int, V: int, selected: Sequence[int], nsp: Sequence[int]) -> Case:
    """selected: how many positions of each sequence; the first of all is word 0; nsp: labels."""
    B = len(selected)
    labels = torch.full((B, T), -100)
    for b, count in enumerate(selected):
        labels[b, torch.randperm(T, generator=draw.torch)[:count]] = draw.ids(0, V - 1, count)
    if max(selected) > 1:
        b = selected.index(max(selected))
        labels[b, (labels[b] != -100).nonzero()[0]] = 0
    logits, pair = 2 * draw.normal(B, T, V), 2 * draw.normal(B, 2)
    return logits.requires_grad_(), labels, pair.requires_grad_(), torch.tensor(nsp)


MLM = "F.cross_entropy(words, labels.flatten(), ignore_index=-100)"
NSP = "F.cross_entropy(classes, nsp_label)"
NLL = "-words.log_softmax(-1).gather(1, labels.flatten().clamp(min=0)[:, None])"
SELECTED = "(labels.flatten() != -100)[:, None]"

LOSS = Exercise(
    **written("02.6"),
    solution=joint_loss,
    returns=Number("loss", "nats", grad=True),
    gradient=("prediction_logits", "nsp_logits"),
    library=(
        "course_lib.kernels.masked_loss:mean_cross_entropy",
        "course_lib.objectives.masked_lm:masked_lm_loss",
        "course_lib.objectives.next_sentence:next_sentence_loss",
        "course_lib.objectives.pretraining:pretraining_loss",
    ),
    when_raised=(
        ("Expected target size|target batch_size|target tensor expected", "cross_entropy looks for "
         "the words on axis 1: flatten (B, T, V) to (B·T, V), and the labels to (B·T,)."),
    ),
    stages=(
        Stage("one sequence, one selected word, IsNext",
              each(case, *((T, V, (1,), (0,)) for T, V in ((1, 3), (3, 4), (4, 5))))),
        Stage("a NotNext pair", each(case, *[(3, 4, (1,), (1,))] * 3)),
        Stage("several selected words", each(case, *((T, 5, (3,), (0,)) for T in (5, 6, 7)))),
        Stage("sequences with different numbers",
              each(case, (5, 6, (1, 3), (0, 1)), (9, 20, (1, 2, 3, 5), (0, 1, 1, 0)),
                   (6, 4, (4, 1), (1, 1)))),
    ),
    mistakes=(
        Edit("mlm + nsp", "mlm",
             "Only the masked words are in it: the loss of the pairs is missing."),
        Edit("mlm + nsp", "nsp",
             "Only the pairs are in it: the loss of the masked words is missing."),
        Edit("mlm + nsp", "(mlm + nsp) / 2", "The two terms were averaged; they are added."),
        Edit(NSP, "F.cross_entropy(classes, 0 * nsp_label)",
             "The pair term is −log P(IsNext) whatever the label says (as one lecture prints it). "
             "On a NotNext pair it rewards the wrong answer; take −log P of the true label."),
        Edit(NSP, "F.cross_entropy(classes, 1 - nsp_label)", "The pair term reads the labels the "
             "wrong way round: 0 is IsNext and the first logit, 1 is NotNext and the second."),
        Edit(NSP, "F.binary_cross_entropy_with_logits(classes, F.one_hot(nsp_label, 2) + 0.0 * "
             "classes)", "The pair term treats the two logits as two separate questions "
             "(sigmoid); IsNext and NotNext share one softmax."),
        Edit(NSP, "F.cross_entropy(classes, nsp_label, reduction='sum')",
             "The pair term is a sum over the batch; it must be a mean."),
        Edit("ignore_index=-100", "ignore_index=-100, reduction='sum'",
             "The masked-word term is a sum; it must be the mean over the selected positions, or "
             "long sequences would drown the pairs."),
        Edit(MLM, "F.cross_entropy(words, labels.flatten().clamp(min=0))",
             "Positions with label −100 are in the mean, as if word 0 had been the answer there. "
             "Leave them out: ignore_index=-100."),
        Edit(MLM, "F.cross_entropy(words, labels.flatten().clamp(min=0), ignore_index=0)",
             "Word 0 is left out as if it were not selected. Only the label −100 means that."),
        Edit(MLM, f"({NLL} * {SELECTED}).mean()", "The sum over the selected positions is divided "
             "by the number of *all* positions; divide by the number selected."),
        Edit(MLM, "torch.stack([F.cross_entropy(p, y) for p, y in zip(prediction_logits, labels)])"
             ".mean()", "Each sequence was averaged by itself, then the sequences: a word in a "
             "sequence with few selected positions weighs more than others. Average over all "
             "selected positions of the batch at once."),
        Edit("mlm + nsp", "(mlm * (labels != -100).sum() + nsp * len(labels)) / ((labels != -100)"
             ".sum() + len(labels))", "Words and pairs are put in one list and averaged together: "
             "each pair then weighs no more than one word. Add two means instead."),
        Edit("prediction_logits.flatten(0, 1), nsp_logits",
             "prediction_logits.softmax(-1).flatten(0, 1), nsp_logits.softmax(-1)",
             "The logits went through a softmax before cross_entropy, which applies its own. Give "
             "it the logits as they are."),
        Edit("prediction_logits.flatten(0, 1), nsp_logits",
             "prediction_logits.softmax(-1).flatten(0, 1), nsp_logits", "The words' logits went "
             "through a softmax before cross_entropy, which applies its own."),
        Edit(MLM, f"(-(-({NLL})).exp() * {SELECTED}).sum() / {SELECTED}.sum()",
             "These are probabilities, without their logarithm: a loss is −log P.",
             more=((NSP, "-classes.softmax(-1).gather(1, nsp_label[:, None]).mean()"),)),
        Edit(MLM, f"((1 - (-({NLL})).exp()) * {SELECTED}).sum() / {SELECTED}.sum()",
             "Each term is 1 − P, the probability of being wrong; a loss is −log P.",
             more=((NSP, "1 - classes.softmax(-1).gather(1, nsp_label[:, None]).mean()"),)),
    ),
)  # fmt: skip
