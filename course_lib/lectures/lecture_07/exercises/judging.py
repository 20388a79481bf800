"""Exercise 07.3: the discriminator's loss. B texts of T tokens.

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

Case = tuple[Tensor, Tensor, Tensor]  # logits, labels, attention_mask, all (B, T)


def judge_loss(logits: Tensor, labels: Tensor, attention_mask: Tensor) -> Tensor:
    """Mean over all real tokens of −log P(true label), in nats (section 2)."""
    real = attention_mask.bool()
    return F.binary_cross_entropy_with_logits(logits[real], labels[real].to(logits.dtype))


# ---------------------------------------------------------------- known wrong answers


def _each(logits: Tensor, labels: Tensor) -> Tensor:
    """−log P(true label) of every token, padding too."""
    target = labels.to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, target, reduction="none")


def _of(pick: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Answer:
    """pick(losses (B, T), labels, real) is the loss."""
    return lambda x, y, m: pick(_each(x, y), y, m.bool())


def _chances(x: Tensor, y: Tensor) -> Tensor:
    """P(true label) of every token."""
    return torch.where(y.bool(), x.sigmoid(), (-x).sigmoid())


JUDGE_SUSPECTS = (
    Suspect(
        "padding counted",
        "The mean runs over the padding too. Nobody replaces padding: leave it out, of the sum "
        "and of the count.",
        _of(lambda each, y, real: each.mean()),
    ),
    Suspect(
        "padding in the count",
        "The padding is left out of the sum, but the sum is divided by all B·T positions. Divide "
        "by the number of real tokens.",
        _of(lambda each, y, real: each[real].sum() / real.numel()),
    ),
    Suspect(
        "padding scored zero",
        "The scores of the padding are set to zero and averaged in. A score of zero is no answer: "
        "it costs ln 2 = 0.69. Leave these positions out.",
        lambda x, y, m: _each(x * m, y).mean(),
    ),
    Suspect(
        "only the replaced tokens",
        "Only the replaced tokens are asked. Then answering 'replaced' everywhere would be free. "
        "The loss runs over all real tokens, original ones too: that is what ELECTRA gains.",
        _of(lambda each, y, real: each[real & y.bool()].mean()),
    ),
    Suspect(
        "only the original tokens",
        "Only the original tokens are asked. The loss runs over all real tokens.",
        _of(lambda each, y, real: each[real & ~y.bool()].mean()),
    ),
    Suspect(
        "half of the formula",
        "Half of the cross-entropy is missing: original tokens, where the label is 0, add nothing. "
        "Add −(1 − y) · log(1 − p).",
        _of(lambda each, y, real: (each * y)[real].mean()),
    ),
    Suspect(
        "half of the formula",
        "Half of the cross-entropy is missing: replaced tokens, where the label is 1, add nothing. "
        "Add −y · log p.",
        _of(lambda each, y, real: (each * (1 - y))[real].mean()),
    ),
    Suspect(
        "sum",
        "This is the sum over the real tokens; expected their mean. A sum would weigh long "
        "batches more, and λ would mean something else for each.",
        _of(lambda each, y, real: each[real].sum()),
    ),
    Suspect(
        "row by row",
        "Each text was averaged by itself, then the texts: a token of a short text weighs more. "
        "Average over all real tokens of the batch at once.",
        _of(lambda each, y, real: ((each * real).sum(1) / real.sum(1)).mean()),
    ),
    Suspect(
        "sum of rows",
        "Each text was averaged by itself and the means were added. Average over all real tokens "
        "of the batch at once.",
        _of(lambda each, y, real: ((each * real).sum(1) / real.sum(1)).sum()),
    ),
    Suspect(
        "paper's sign",
        "The scores are read the other way round: as the paper's D, where a high score means "
        "original. Here a score above zero says *replaced*, and the label 1 means replaced.",
        lambda x, y, m: judge_loss(-x, y, m),
    ),
    Suspect(
        "negative",
        "The sign is wrong: a loss is −log P, and never negative.",
        lambda x, y, m: -judge_loss(x, y, m),
    ),
    Suspect(
        "sigmoid twice",
        "The scores went through a sigmoid before a loss that applies its own. Give "
        "binary_cross_entropy_with_logits the scores as they are.",
        lambda x, y, m: judge_loss(x.sigmoid(), y, m),
    ),
    Suspect(
        "softmax over the text",
        "A softmax runs over the tokens of a text, as if exactly one of them were replaced. Each "
        "token has a yes-or-no question of its own: sigmoid.",
        lambda x, y, m: -(x.log_softmax(-1) * y)[m.bool()].mean(),
    ),
    Suspect(
        "squared error",
        "This is the squared distance between probability and label; expected −log P.",
        lambda x, y, m: ((x.sigmoid() - y) ** 2)[m.bool()].mean(),
    ),
    Suspect(
        "no logarithm",
        "This is the mean of 1 − P(true label), without a logarithm; expected −log P.",
        lambda x, y, m: (1 - _chances(x, y))[m.bool()].mean(),
    ),
    Suspect(
        "bits",
        "The logarithm is to base 2; the loss is in nats, with the natural one.",
        lambda x, y, m: judge_loss(x, y, m) / math.log(2),
    ),
)


# ---------------------------------------------------------------- inputs


def _case(draw: Draw, lengths: Sequence[int], replaced: Sequence[int], wide: float = 2.0) -> Case:
    """lengths: real tokens of each text; replaced: how many of these are labelled 1."""
    B, T = len(lengths), max(lengths)
    labels, real = torch.zeros(B, T, dtype=torch.long), torch.zeros(B, T, dtype=torch.long)
    for row, (length, number) in enumerate(zip(lengths, replaced, strict=True)):
        real[row, :length] = 1
        labels[row, torch.randperm(length, generator=draw.torch)[:number]] = 1
    return (wide * draw.normal(B, T)).requires_grad_(), labels, real


def _rich(draw: Draw) -> list[Case]:
    return [_case(draw, (9, 4, 6, 11), (2, 1, 2, 3)) for _ in range(3)]


# ---------------------------------------------------------------- stages

Shape = tuple[Sequence[int], Sequence[int]]


def _ask_loss(*shapes: Shape) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for shape in shapes:
            _expect_loss(answer, _case(draw, *shape), draw)

    return ask


def _expect_loss(answer: Answer, case: Case, draw: Draw) -> None:
    given, right = _read(call(answer, *case)), judge_loss(*case).detach()
    if close(given, right):
        return
    found = find_suspect(answer, _rich(draw), JUDGE_SUSPECTS, _same_number)
    _, labels, real = case
    said = (
        f"With {len(labels)} text(s), {int(real.sum())} real tokens of {real.numel()} positions "
        f"and {int(labels.sum())} replaced you have {float(given):.4f}; it is {float(right):.4f}."
    )
    raise Mistake(found.key if found else "", f"{found.message}\n{said}" if found else said)


def _read(x: Any) -> Tensor:
    if isinstance(x, Tensor) and x.numel() != 1:
        raise Mistake(
            "not reduced",
            f"Your result has shape {tuple(x.shape)}; expected one number, the mean over the real "
            "tokens.",
        )
    if not isinstance(x, (Tensor, int, float)) or isinstance(x, bool):
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r:.60} ({type(x).__name__}); expected a tensor of one "
            "number, the loss.",
        )
    return torch.as_tensor(x, dtype=torch.float64).detach().reshape(())


def _same_number(mine: Any, theirs: Tensor, _case: Case) -> bool:
    return close(_read(mine), theirs)


def _ask_extremes(answer: Answer, draw: Draw) -> None:
    """A very sure discriminator: a sigmoid rounds to 0 or 1, and its logarithm is lost."""
    logits, labels, real = _case(draw, (9, 6), (3, 2))
    away = torch.tensor([[draw.integer(800, 2_000) for _ in row] for row in labels])
    case = ((logits.sign() * away).detach().requires_grad_(), labels, real)
    given, right = _read(call(answer, *case)), judge_loss(*case).detach()
    if close(given, right):
        return
    raise Mistake(
        "sigmoid first",
        f"For scores far from zero (here up to {int(away.max()):,}) you have {float(given):.4f}; "
        f"it is {float(right):.4f}. The sigmoid has been rounded to 0 or 1 before the logarithm "
        "was taken. F.binary_cross_entropy_with_logits takes the scores and keeps them apart.",
    )


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    given = call(answer, *_case(draw, (4, 6), (1, 2)))
    if not isinstance(given, Tensor) or not given.requires_grad:
        raise Mistake(
            "no gradient",
            "The number is right, but no gradient flows from it: keep it a tensor (no .item(), "
            ".detach(), float() or no_grad), or the discriminator learns nothing.",
        )


JUDGING = Exercise(
    id="07.3",
    title="The discriminator's loss",
    purpose="a question about every token, and none about padding",
    difficulty=2,
    minutes=10,
    signature="my_judge_loss(logits, labels, attention_mask)",
    statement=(
        "All three are (B, T). `logits` holds one score a token, above zero for *replaced*: "
        "P(replaced) is its sigmoid. `labels` are 1 for replaced and 0 for original. "
        "`attention_mask` is 1 for real tokens and 0 for padding. Return the mean of −log P(true "
        "label) over all real tokens of the batch, in nats, as a tensor that a gradient can flow "
        "from. Scores can be very large."
    ),
    hints=(
        "A tensor of True and False picks: logits[attention_mask.bool()] has one axis, the real "
        "tokens.",
        "F.binary_cross_entropy_with_logits(scores, targets) does sigmoid, logarithm and mean.",
        "It wants the targets as floating-point numbers: labels[real].to(logits.dtype).",
        "A score of 0 is a guess: it costs ln 2 = 0.693, whatever the label.",
    ),
    solution=judge_loss,
    see="course_lib.objectives.replaced_tokens.replaced_token_loss (only_masked asks 15% instead)",
    when_raised=(
        (
            r"can't be cast|Found dtype|expected scalar type|should be the same dtype",
            "The targets must be floating-point numbers, as the scores are: "
            "labels.to(logits.dtype).",
        ),
        (
            r"indices.*(bool|byte)|out of bounds",
            "Zeros and ones are taken for positions when they index. Make them True and False "
            "first: attention_mask.bool().",
        ),
    ),
    stages=(
        Check("one token, replaced; one, original", _ask_loss(((1,), (1,)), ((1,), (0,)))),
        Check("one text", _ask_loss(((8,), (2,)), ((13,), (3,)))),
        Check("texts of different lengths", _ask_loss(((7, 4), (2, 1)), ((9, 3, 12), (2, 1, 4)))),
        Check("a text in which nothing was replaced", _ask_loss(((6, 10), (0, 3)))),
        Check("very large scores", _ask_extremes),
        Check("a gradient flows", _ask_gradient),
    ),
)
