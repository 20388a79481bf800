"""Exercise 06.1: softmax with a temperature. N positions, V choices.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.machinery import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
)

Case = tuple[Tensor, float]  # logits (N, V), temperature


def soften(logits: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Softmax of logits / T, and its entropy in nats: (N, V) -> (N, V) and (N,)."""
    log_shares = (logits / temperature).log_softmax(-1)
    shares = log_shares.exp()
    return shares, -(shares * log_shares).sum(-1)


# ---------------------------------------------------------------- known wrong answers


def _entropy(shares: Tensor) -> Tensor:
    return -torch.xlogy(shares, shares).sum(-1)


def _with_shares(make: Callable[[Tensor, float], Tensor]) -> Answer:
    return lambda logits, T: make(logits, T)


SHARE_SUSPECTS = (
    Suspect(
        "multiplies by T",
        "The scores are multiplied by T. That sharpens: with T = 2 the best choice wins by more. "
        "Divide by T.",
        _with_shares(lambda x, T: (x * T).softmax(-1)),
    ),
    Suspect(
        "divides after the softmax",
        "The probabilities are divided by T. They no longer add up to one, and their ratios stay "
        "as they were. Divide the *scores*, before the softmax.",
        _with_shares(lambda x, T: x.softmax(-1) / T),
    ),
    Suspect(
        "divides after the softmax, renormalised",
        "The probabilities are divided by T and then made to add up to one: the second step undoes "
        "the first. Divide the *scores*, before the softmax.",
        _with_shares(lambda x, T: x.softmax(-1)),
    ),
    Suspect(
        "wrong axis",
        "Each column adds up to one, each row does not: the softmax runs over the positions. It "
        "must run over the V choices, the last axis.",
        _with_shares(lambda x, T: (x / T).softmax(0)),
    ),
    Suspect(
        "not normalised",
        "These are exp(score / T), not divided by their sum. Probabilities add up to one.",
        _with_shares(lambda x, T: (x / T).exp()),
    ),
    Suspect(
        "logarithms",
        "These are logarithms of probabilities (log_softmax); expected the probabilities.",
        _with_shares(lambda x, T: (x / T).log_softmax(-1)),
    ),
    Suspect(
        "power without a sum",
        "These are probabilities to the power 1/T. That is the right shape, but they do not add up "
        "to one any more: divide by their sum.",
        _with_shares(lambda x, T: x.softmax(-1) ** (1 / T)),
    ),
    Suspect(
        "divides by T²",
        "The scores are divided by T². T² belongs to the loss, not to the softmax.",
        _with_shares(lambda x, T: (x / T**2).softmax(-1)),
    ),
    Suspect(
        "divides by √T",
        "The scores are divided by √T; divide by T itself.",
        _with_shares(lambda x, T: (x / math.sqrt(T)).softmax(-1)),
    ),
    Suspect(
        "hardened",
        "Only the best choice has a probability. That is the hard answer; the soft one keeps "
        "something for every choice.",
        _with_shares(lambda x, T: torch.nn.functional.one_hot(x.argmax(-1), x.shape[-1])),
    ),
)

ENTROPY_SUSPECTS = (
    Suspect(
        "sign of the entropy",
        "The entropy is negative. Logarithms of probabilities are below zero, so a minus stands "
        "before the sum.",
        lambda x, T: -soften(x, T)[1],
    ),
    Suspect(
        "bits",
        "The entropy is in bits, with the logarithm to base 2; expected nats, with the natural "
        "one.",
        lambda x, T: soften(x, T)[1] / math.log(2),
    ),
    Suspect(
        "entropy at T = 1",
        "This is the entropy of the answer before it was softened, at T = 1. Take it of the "
        "softened probabilities.",
        lambda x, T: soften(x, 1.0)[1],
    ),
    Suspect(
        "entropy averaged over the choices",
        "This is the mean of −p · log p over the V choices; the entropy is their sum.",
        lambda x, T: soften(x, T)[1] / x.shape[-1],
    ),
    Suspect(
        "perplexity",
        "This is exp(entropy), the number of equally likely choices that would be as uncertain. "
        "Expected the entropy itself.",
        lambda x, T: soften(x, T)[1].exp(),
    ),
    Suspect(
        "logarithms without weights",
        "This is −Σ log p. Each logarithm counts with its probability: −Σ p · log p.",
        lambda x, T: -soften(x, T)[0].log().sum(-1),
    ),
    Suspect(
        "share of the largest entropy",
        "The entropy is divided by log V, the largest it can be. Return it in nats.",
        lambda x, T: soften(x, T)[1] / math.log(x.shape[-1]),
    ),
)


# ---------------------------------------------------------------- inputs and stages

Cases = Callable[[Draw], list[Case]]


def _drawn(sizes: Sequence[tuple[int, int]], temperatures: Sequence[float]) -> Cases:
    def cases(draw: Draw) -> list[Case]:
        return [(2 * draw.normal(*size), T) for size in sizes for T in temperatures]

    return cases


RICH = _drawn([(3, 5), (4, 7)], (0.5, 1.0, 2.0, 5.0))


def _steep(draw: Draw) -> list[Case]:
    """Scores far apart: exp(1000) is no finite number, and exp(−1000) is 0."""
    shift = torch.tensor([1000.0, 0.0, -1000.0, 3.0], dtype=torch.float64)
    return [(shift[draw.ids(0, 3, 3, 5)] + draw.normal(3, 5), T) for T in (1.0, 0.5, 2.0)]


def _ask_shares(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_shares(answer, case, [RICH(draw), cases(draw)])

    return ask


def _expect_shares(answer: Answer, case: Case, pools: Sequence[Sequence[Case]]) -> None:
    logits, T = case
    given, right = _pair(call(answer, *case), case)[0], soften(*case)[0]
    if close(given, right):
        return
    if not bool(torch.isfinite(given).all()):
        raise Mistake(
            "overflow",
            "Your probabilities are not finite numbers. exp of a large score is infinite, and "
            "infinite by infinite is not a number. torch.softmax subtracts the largest score "
            "first, which changes nothing else.",
        )
    found = name_suspect(
        answer, case, pools, SHARE_SUSPECTS,
        lambda mine, theirs, asked: close(_pair(mine, asked)[0], theirs),
    )  # fmt: skip
    row = int((given - right).abs().sum(-1).argmax())
    said = (
        f"Scores {_numbers(logits[row])} at T = {T:g}: you have {_numbers(given[row])}; it is "
        f"{_numbers(right[row])}."
    )
    raise told(found, said)


def _ask_entropy(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_entropy(answer, case, [RICH(draw), cases(draw)])

    return ask


def _expect_entropy(answer: Answer, case: Case, pools: Sequence[Sequence[Case]]) -> None:
    logits, T = case
    (_, given), (shares, right) = _pair(call(answer, *case), case), soften(*case)
    if tuple(given.shape) != tuple(right.shape):
        raise Mistake(
            "one entropy for all",
            f"Your entropy has shape {tuple(given.shape)}; expected {tuple(right.shape)}, one "
            "number for each row: sum over the last axis.",
        )
    if close(given, right):
        return
    if not bool(torch.isfinite(given).all()):
        raise Mistake(
            "0 · log 0",
            "Your entropy is not a finite number. Where a probability is 0 its logarithm is −∞, "
            "and 0 · ∞ is not a number. Such a choice adds nothing: take torch.log_softmax "
            "instead of the logarithm of the softmax, or torch.special.entr.",
        )
    found = name_suspect(
        answer, case, pools, ENTROPY_SUSPECTS,
        lambda mine, theirs, asked: close(_pair(mine, asked)[1], theirs),
    )  # fmt: skip
    row = int((given - right).abs().argmax())
    said = (
        f"Probabilities {_numbers(shares[row])} (scores {_numbers(logits[row])}, T = {T:g}): you "
        f"have {float(given[row]):.4f} nats; it is {float(right[row]):.4f}."
    )
    raise told(found, said)


def _pair(result: Any, case: Case) -> tuple[Tensor, Tensor]:
    """Probabilities and entropy, the former of the right shape; Mistake, in words, otherwise."""
    shape = tuple(case[0].shape)
    if not (isinstance(result, (tuple, list)) and len(result) == 2):
        alone = isinstance(result, Tensor) and tuple(result.shape) == shape
        what = f"a tensor of shape {shape}" if alone else f"{result!r:.60}"
        raise Mistake(
            "entropy missing" if alone else "wrong type",
            f"Your function returned {what}; expected two tensors: the probabilities, and the "
            "entropy of each row.",
        )
    shares, entropy = (torch.as_tensor(x) for x in result)
    if tuple(shares.shape) != shape and tuple(entropy.shape) == shape:
        raise Mistake(
            "exchanged", "The entropy comes first in your result; return the probabilities first."
        )
    if tuple(shares.shape) != shape:
        raise Mistake(
            "wrong shape",
            f"Your probabilities have shape {tuple(shares.shape)}; expected {shape}, that of the "
            "scores.",
        )
    return shares, entropy


def _numbers(x: Tensor) -> str:
    return "[" + ", ".join(f"{number:.3f}" for number in x.tolist()) + "]"


SOFTEN = Exercise(
    id="06.1",
    title="A softer answer",
    purpose="what a temperature does to a teacher's answer",
    difficulty=1,
    minutes=5,
    signature="my_soften(logits, temperature)",
    statement=(
        "`logits` (N, V) are scores of V choices at N positions. Return two tensors: the softened "
        "probabilities (N, V), the softmax of the scores divided by `temperature`; and the entropy "
        "of each row (N,) in nats, −Σ p · log p: how undecided the answer is, from 0 (certain) to "
        "log V (no idea)."
    ),
    hints=(
        "Divide first, then softmax over the last axis.",
        "The entropy is a sum over the same axis, with a minus: one number a row.",
        "Where p is 0, p · log p counts as 0, but Python makes it nan. (logits / "
        "temperature).log_softmax(-1) gives log p without ever taking the logarithm of 0.",
        "Scores 2 and 0: T = 1 gives 0.881 and 0.119, entropy 0.365; T = 2 gives 0.731 and 0.269, "
        "entropy 0.582.",
    ),
    solution=soften,
    see="course_lib.kernels.distillation.soft_target_loss (which softens both networks' scores)",
    stages=(
        Check("T = 1: an ordinary softmax", _ask_shares(_drawn([(1, 3), (2, 4)], (1.0,)))),
        Check("other temperatures", _ask_shares(_drawn([(2, 4), (3, 5)], (2.0, 0.5, 8.0)))),
        Check("scores that are far apart", _ask_shares(_steep)),
        Check("the entropy", _ask_entropy(_drawn([(1, 3), (3, 5)], (1.0, 2.0)))),
        Check("the entropy where probabilities are 0", _ask_entropy(_steep)),
    ),
)
