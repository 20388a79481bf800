"""Exercise 02.6: one loss from two tasks.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
    find_suspect,
)


def joint_loss(
    prediction_logits: Tensor, labels: Tensor, nsp_logits: Tensor, nsp_label: Tensor
) -> Tensor:
    """Mean over the asked positions plus mean over the pairs (section A.2)."""
    mlm = F.cross_entropy(prediction_logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
    return mlm + F.cross_entropy(nsp_logits, nsp_label)


def _mlm_losses(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """−log P of the label at each position (B, T), of word 0 where none is asked; where one is."""
    asked = labels != -100
    losses = F.cross_entropy(logits.flatten(0, 1), labels.clamp(min=0).flatten(), reduction="none")
    return losses.view(labels.shape), asked


def _with_mlm(mlm: Callable[[Tensor, Tensor], Tensor]) -> Answer:
    """The joint loss with another masked-word term, made from losses (B, T) and asked (B, T)."""
    return lambda p, y, n, z: mlm(*_mlm_losses(p, y)) + F.cross_entropy(n, z)


def _with_nsp(nsp: Callable[[Tensor, Tensor], Tensor]) -> Answer:
    return lambda p, y, n, z: F.cross_entropy(p.flatten(0, 1), y.flatten()) + nsp(n, z)


def _concatenated(p: Tensor, y: Tensor, n: Tensor, z: Tensor) -> Tensor:
    losses, asked = _mlm_losses(p, y)
    return torch.cat([losses[asked], F.cross_entropy(n, z, reduction="none")]).mean()


LOSS_SUSPECTS = (
    Suspect(
        "forgets NSP",
        "Only the masked words are in it: the loss of the pairs is missing.",
        lambda p, y, n, z: F.cross_entropy(p.flatten(0, 1), y.flatten()),
    ),
    Suspect(
        "forgets MLM",
        "Only the pairs are in it: the loss of the masked words is missing.",
        lambda p, y, n, z: F.cross_entropy(n, z),
    ),
    Suspect(
        "always IsNext",
        "The pair term is −log P(IsNext) whatever the label says (as one lecture prints it). On "
        "a NotNext pair it rewards the wrong answer; take −log P of the true label.",
        _with_nsp(lambda n, z: -n.log_softmax(-1)[:, 0].mean()),
    ),
    Suspect(
        "pair labels swapped",
        "The pair term reads the labels the wrong way round: 0 is IsNext and the first logit, 1 "
        "is NotNext and the second.",
        _with_nsp(lambda n, z: F.cross_entropy(n, 1 - z)),
    ),
    Suspect(
        "sum of words",
        "The masked-word term is a sum; it must be the mean over the asked positions, or long "
        "rows would drown the pairs.",
        _with_mlm(lambda losses, asked: losses[asked].sum()),
    ),
    Suspect(
        "sum of pairs",
        "The pair term is a sum over the batch; it must be a mean.",
        _with_nsp(lambda n, z: F.cross_entropy(n, z, reduction="sum")),
    ),
    Suspect(
        "two sums",
        "Both terms are sums; each must be a mean over what it counts.",
        lambda p, y, n, z: (
            F.cross_entropy(p.flatten(0, 1), y.flatten(), reduction="sum")
            + F.cross_entropy(n, z, reduction="sum")
        ),
    ),
    Suspect(
        "ignored positions counted",
        "Positions with label −100 are in the mean, as if word 0 had been asked there. Leave "
        "them out: ignore_index=-100.",
        _with_mlm(lambda losses, asked: losses.mean()),
    ),
    Suspect(
        "mean over all positions",
        "The sum over the asked positions is divided by the number of *all* positions; divide by "
        "the number asked.",
        _with_mlm(lambda losses, asked: (losses * asked).sum() / asked.numel()),
    ),
    Suspect(
        "one mean of both",
        "Words and pairs are put in one list and averaged together: each pair then weighs no "
        "more than one word. It is the sum of two means.",
        _concatenated,
    ),
    Suspect(
        "row by row",
        "Each row was averaged by itself, then the rows: a word in a row with few asked "
        "positions weighs more than others. Average over all asked positions of the batch at "
        "once.",
        _with_mlm(lambda losses, asked: ((losses * asked).sum(1) / asked.sum(1)).mean()),
    ),
    Suspect(
        "half",
        "The two terms were averaged; they are added.",
        lambda p, y, n, z: joint_loss(p, y, n, z) / 2,
    ),
    Suspect(
        "sign",
        "The sign is wrong: a loss is −log P, and never negative.",
        lambda p, y, n, z: -joint_loss(p, y, n, z),
    ),
    Suspect(
        "softmax twice",
        "The logits went through a softmax before cross_entropy, which applies its own. Give it "
        "the logits as they are.",
        lambda p, y, n, z: joint_loss(p.softmax(-1), y, n.softmax(-1), z),
    ),
    Suspect(
        "bits",
        "The logarithm is to base 2; the loss is in nats, with the natural one.",
        lambda p, y, n, z: joint_loss(p, y, n, z) / math.log(2),
    ),
    Suspect(
        "no logarithm",
        "These are probabilities, 1 − P, without a logarithm: the loss is −log P.",
        lambda p, y, n, z: joint_loss_of_probabilities(p, y, n, z),
    ),
)


def joint_loss_of_probabilities(p: Tensor, y: Tensor, n: Tensor, z: Tensor) -> Tensor:
    losses, asked = _mlm_losses(p, y)
    pair = F.cross_entropy(n, z, reduction="none")
    return (1 - (-losses[asked]).exp()).mean() + (1 - (-pair).exp()).mean()


def _loss_case(
    draw: Draw, B: int, T: int, V: int, asked: Sequence[int], nsp: Sequence[int]
) -> tuple[Tensor, ...]:
    """asked: how many positions of each row; nsp: the label of each row."""
    labels = torch.full((B, T), -100)
    for row, number in enumerate(asked):
        at = torch.randperm(T, generator=draw.torch)[:number]
        labels[row, at] = draw.ids(1, V - 1, number)
    prediction = 2 * draw.normal(B, T, V)
    return (
        prediction.requires_grad_(),
        labels,
        (2 * draw.normal(B, 2)).requires_grad_(),
        torch.tensor(nsp),
    )


LossShape = tuple[int, int, int, Sequence[int], Sequence[int]]


def _ask_loss(shapes: Sequence[LossShape]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for shape in shapes:
            _expect_loss(answer, _loss_case(draw, *shape), draw)

    return ask


def _expect_loss(answer: Answer, case: tuple[Tensor, ...], draw: Draw) -> None:
    given, right = call(answer, *case), joint_loss(*case)
    if isinstance(given, (tuple, list)):
        raise Mistake(
            "two numbers",
            f"Your function returned {len(given)} values; expected their sum, one number.",
        )
    if isinstance(given, Tensor) and given.numel() != 1:
        raise Mistake(
            "not reduced",
            f"Your result has shape {tuple(given.shape)}; expected one number, a mean plus a mean.",
        )
    mine = torch.as_tensor(given).detach().reshape(())
    if close(mine, right):
        return
    rich = [_loss_case(draw, 4, 9, 11, (1, 2, 3, 5), (0, 1, 1, 0)) for _ in range(3)]
    found = find_suspect(answer, rich, LOSS_SUSPECTS, _same_number)
    labels = case[1]
    said = (
        f"With {labels.shape[0]} row(s), {int((labels != -100).sum())} asked position(s) of "
        f"{labels.numel()} and pair labels {case[3].tolist()} you have {mine:.4f}; it is "
        f"{right.detach():.4f}."
    )
    raise Mistake(found.key if found else "", f"{found.message}\n{said}" if found else said)


def _same_number(mine: Any, theirs: Tensor, _case: Any) -> bool:
    return close(torch.as_tensor(mine).reshape(()), theirs)


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    case = _loss_case(draw, 2, 4, 6, (1, 2), (0, 1))
    given = call(answer, *case)
    if not isinstance(given, Tensor) or not given.requires_grad:
        raise Mistake(
            "no gradient",
            "The number is right, but no gradient flows from it: keep it a tensor (no .item(), "
            ".detach(), float() or no_grad), or nothing can be trained with it.",
        )


LOSS = Exercise(
    id="02.6",
    title="One loss from two tasks",
    purpose="what BERT's pre-training makes small",
    difficulty=2,
    minutes=12,
    signature="my_loss(prediction_logits, labels, nsp_logits, nsp_label)",
    statement=(
        "`prediction_logits` (B, T, V) are scores for every position; `labels` (B, T) hold the "
        "original word's id where the model is asked and −100 elsewhere; `nsp_logits` (B, 2) score "
        "IsNext and NotNext; `nsp_label` (B,) is 0 for IsNext, 1 for NotNext. Return one number: "
        "the mean of −log P(word) over the asked positions of the batch, plus the mean of −log "
        "P(true label) over the pairs."
    ),
    hints=(
        "F.cross_entropy(logits, labels) is the mean of −log P: it does the softmax and the "
        "logarithm itself.",
        "It wants (number, classes) and (number,): flatten B and T into one axis.",
        "ignore_index=-100 leaves out positions that are not asked, in the sum and in the count.",
        "The pairs are a second call with the same function; add the two.",
    ),
    solution=joint_loss,
    library=(
        "course_lib.kernels.masked_loss:mean_cross_entropy",
        "course_lib.objectives.masked_lm:masked_lm_loss",
        "course_lib.objectives.next_sentence:next_sentence_loss",
        "course_lib.objectives.pretraining:pretraining_loss",
    ),
    when_raised=(
        (
            "Expected target size|target batch_size|target tensor expected",
            "cross_entropy looks for the words on axis 1: flatten (B, T, V) to (B·T, V), and the "
            "labels to (B·T,).",
        ),
    ),
    stages=(
        Check(
            "one row, one asked word, IsNext",
            _ask_loss([(1, 1, 3, (1,), (0,)), (1, 3, 4, (1,), (0,))]),
        ),
        Check("a NotNext pair", _ask_loss([(1, 3, 4, (1,), (1,))])),
        Check("several asked words", _ask_loss([(1, 6, 5, (3,), (0,))])),
        Check(
            "rows with different numbers",
            _ask_loss([(2, 5, 6, (1, 3), (0, 1)), (4, 9, 20, (1, 2, 3, 5), (0, 1, 1, 0))]),
        ),
        Check("a gradient flows", _ask_gradient),
    ),
)
