"""Exercise 14.2: the masked-word loss, asked positions alone. B texts, T tokens, H hidden, V words,
K asked positions.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED, masked_loss
from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
)

Case = tuple[Tensor, Tensor, Tensor]  # hidden (B, T, H), the head's table (V, H), labels (B, T)
Cases = Callable[[Draw], list[Case]]
Head = Callable[[Tensor], Tensor]


class Seen(NamedTuple):
    """What an answer did: its loss, how many rows its head was given, the gradients (or None)."""

    loss: float
    rows: int
    gradients: tuple[Tensor, ...] | None


def observed(answer: Answer) -> Callable[..., Seen]:
    """The answer on the case's own tensors, with a head that counts what it is given."""

    def run(hidden: Tensor, table: Tensor, labels: Tensor) -> Seen:
        given, weights = (x.detach().clone().requires_grad_() for x in (hidden, table))
        rows = 0

        def head(x: Tensor) -> Tensor:
            nonlocal rows
            rows += x.numel() // x.shape[-1]
            return x @ weights.T

        result = call(lambda: answer(given, head, labels.clone()))
        loss = one_number(result, "the mean loss")
        if not isinstance(result, Tensor) or not result.requires_grad:
            return Seen(loss, rows, None)
        found = torch.autograd.grad(result, (given, weights), allow_unused=True)
        pairs = zip(found, (given, weights), strict=True)
        zero = tuple(torch.zeros_like(x) if g is None else g for g, x in pairs)
        return Seen(loss, rows, zero)

    return run


right = observed(masked_loss)


# ---------------------------------------------------------------- known wrong answers


def _of(
    reduce: Callable[[Tensor, Tensor], Tensor] = lambda losses, labels: losses.mean(),
    scores: Callable[[Tensor], Tensor] = lambda x: x,
    keep: Callable[[Tensor], Tensor] = lambda labels: labels != IGNORED,
) -> Answer:
    """scores(head's output); keep(labels): the asked; reduce(losses of the asked, labels)."""

    def answer(hidden: Tensor, head: Head, labels: Tensor) -> Tensor:
        asked = keep(labels)
        losses = F.cross_entropy(scores(head(hidden[asked])), labels[asked], reduction="none")
        return reduce(losses, labels)

    return answer


def _row_by_row(hidden: Tensor, head: Head, labels: Tensor) -> Tensor:
    pairs = zip(hidden, labels, strict=True)
    means = [
        F.cross_entropy(head(h), y, ignore_index=IGNORED) for h, y in pairs if (y != IGNORED).any()
    ]
    return torch.stack(means).mean()


def _as_word_0(hidden: Tensor, head: Head, labels: Tensor) -> Tensor:
    return F.cross_entropy(head(hidden).flatten(0, 1), labels.flatten().clamp(min=0))


def _first_rows(hidden: Tensor, head: Head, labels: Tensor) -> Tensor:
    wanted = labels[labels != IGNORED]
    return F.cross_entropy(head(hidden.flatten(0, 1)[: len(wanted)]), wanted)


LOSS_SUSPECTS = tuple(
    Suspect(key, message, observed(answer))
    for key, message, answer in (
        (
            "mean over all positions",
            "The sum is divided by B·T. Where nothing is asked there is no loss to average: divide "
            "by the number of asked positions.",
            _of(lambda x, y: x.sum() / y.numel()),
        ),
        (
            "sum",
            "This is the sum over the asked positions; expected their mean.",
            _of(lambda x, y: x.sum()),
        ),
        (
            "mean over texts",
            "The loss is averaged in each text first, then over texts. Every asked position counts "
            "the same, in whatever text it stands.",
            _row_by_row,
        ),
        (
            "sum divided by texts",
            "The sum is divided by the number of texts; expected by the number of asked positions.",
            _of(lambda x, y: x.sum() / len(y)),
        ),
        (
            "softmax twice",
            "The softmax is applied twice. F.cross_entropy wants scores and makes the softmax "
            "itself.",
            _of(scores=lambda x: x.softmax(-1)),
        ),
        (
            "no logarithm",
            "This is one minus the mean probability, or that probability itself. A loss is −ln P.",
            _of(lambda x, y: (-x).exp().mean()),
        ),
        (
            "no logarithm",
            "This is one minus the mean probability, or that probability itself. A loss is −ln P.",
            _of(lambda x, y: 1 - (-x).exp().mean()),
        ),
        (
            "sign",
            "The sign is wrong: a loss is −ln P, and never negative.",
            _of(lambda x, y: -x.mean()),
        ),
        (
            "word 0 left out",
            "Positions whose word has the number 0 are left out. 0 is a word like others; only "
            "−100 means that nothing is asked.",
            _of(keep=lambda y: y > 0),
        ),
        (
            "ignored counted as word 0",
            "Where nothing is asked, your loss asks for word 0. Leave these positions out.",
            _as_word_0,
        ),
        (
            "first rows",
            "The right number of rows meets the head, but the first ones of the batch. Take the "
            "rows at which a word is asked.",
            _first_rows,
        ),
    )
)


# ---------------------------------------------------------------- inputs


def _case(draw: Draw, B: int, T: int, asked: int) -> Case:
    """`asked` positions, in texts unequally; one of them asks for word 0."""
    H, V = draw.integer(3, 6), draw.integer(7, 12)
    labels = torch.full((B * T,), IGNORED)
    at = torch.randperm(B * T, generator=draw.torch)[:asked]
    labels[at] = draw.ids(1, V - 1, asked)
    labels[at[:1]] = 0
    return draw.normal(B, T, H), draw.normal(V, H), labels.view(B, T)


def _all(draw: Draw) -> list[Case]:
    return [_case(draw, 1, T, T) for T in (draw.integer(4, 6), draw.integer(7, 9))]


def _some(draw: Draw) -> list[Case]:
    return [_case(draw, 3, 9, draw.integer(5, 9)), _case(draw, 2, 12, draw.integer(4, 7))]


def _none(draw: Draw) -> list[Case]:
    return [_case(draw, 2, 5, 0)]


# ---------------------------------------------------------------- stages


def _ask_value(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            mine, theirs = observed(answer)(*case), right(*case)
            if close(mine.loss, theirs.loss):
                continue
            pools = [_some(draw), cases(draw)]
            labels = case[2]
            raise told(
                name_suspect(observed(answer), case, pools, LOSS_SUSPECTS, _same),
                f"With {int((labels != IGNORED).sum())} of {labels.numel()} positions asked: you "
                f"have {mine.loss:.4f}; it is {theirs.loss:.4f}.",
            )

    return ask


def _same(mine: Seen, theirs: Seen, _case: Any) -> bool:
    return close(mine.loss, theirs.loss)


def _ask_rows(answer: Answer, draw: Draw) -> None:
    """How many rows the head is given."""
    for case in _some(draw):
        mine, asked = observed(answer)(*case), int((case[2] != IGNORED).sum())
        places = case[2].numel()
        if mine.rows == places:
            raise Mistake(
                "head on everything",
                f"The right number, but the head saw all B·T = {places} rows, where {asked} were "
                "asked. Pick the asked rows of `hidden` before the head, not its scores after.",
            )
        if mine.rows > asked:
            raise Mistake(
                "more rows",
                f"The right number, but the head was given {mine.rows} rows and {asked} are asked. "
                "Give it each asked row once, and no other.",
            )


def _ask_nothing(answer: Answer, draw: Draw) -> None:
    for case in _none(draw):
        found = observed(answer)(*case).loss
        if found != found:
            raise Mistake(
                "nothing asked is nan",
                "Where nothing is asked your loss is not a number: zero divided by zero. Return 0: "
                "divide the sum by at least 1.",
            )
        if found != 0:
            raise Mistake(
                "nothing asked is not 0",
                f"Where nothing is asked your loss is {found:g}; expected 0.",
            )


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    for case in _some(draw):
        mine, theirs = observed(answer)(*case).gradients, right(*case).gradients
        assert theirs is not None
        if mine is None:
            raise Mistake(
                "no gradient",
                "The number is right, but nothing can be learnt from it: it carries no gradient. "
                "Return the tensor as the loss gives it, without .item(), float() or detach().",
            )
        for name, a, b in zip(("hidden", "the head's table"), mine, theirs, strict=True):
            if not close(a, b):
                what = "no gradient" if not a.any() else "another gradient"
                raise Mistake(
                    "gradient cut" if not a.any() else "wrong gradient",
                    f"The number is right, but {name} gets {what}. Is there a detach(), or a "
                    "torch.no_grad(), on the way?",
                )


LOSS = Exercise(
    id="14.2",
    title="Only where a word is asked",
    purpose="to leave out 85% of the largest product",
    difficulty=2,
    minutes=8,
    signature="my_masked_loss(hidden, head, labels)",
    statement=(
        "`hidden` (B, T, H) are the last states; `head` is a function that gives V scores for each "
        "row of H numbers, whatever axes stand before; `labels` (B, T) are word numbers, and −100 "
        "where nothing is asked. Return the mean of −ln P(word) over the asked positions, with its "
        "gradient. The head may be given *the asked rows only*: it counts. Where nothing is asked "
        "at all, return 0."
    ),
    hints=(
        "asked = labels != -100 is a (B, T) tensor of True and False; hidden[asked] is (K, H).",
        "head(hidden[asked]) has K rows; labels[asked] are their words, in the same order.",
        "F.cross_entropy(scores, words) is the mean of −ln P. Of no rows at all it is 0 / 0.",
        'reduction="sum" gives a sum; divide it by max(K, 1).',
    ),
    solution=masked_loss,
    library=(
        "course_lib.kernels.masked_loss:masked_loss",
        "course_lib.kernels.masked_loss:mean_cross_entropy",
    ),
    when_raised=(
        (
            r"Expected target size|Expected input batch_size|size mismatch|must match",
            "F.cross_entropy wants scores (K, V) and words (K,): pick with the same mask on both "
            "sides, or flatten (B, T, V) to (B·T, V).",
        ),
        (
            r"out of bounds|out of range",
            "−100 is no word number: leave these positions out before you look anything up.",
        ),
    ),
    stages=(
        Check("every position asked", _ask_value(_all)),
        Check("some of them asked", _ask_value(_some)),
        Check("the head sees asked rows only", _ask_rows),
        Check("nothing asked", _ask_nothing),
        Check("the gradient", _ask_gradient),
    ),
)
