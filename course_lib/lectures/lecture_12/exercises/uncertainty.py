"""Exercise 12.1: how sure is an exit? B texts, N classes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def uncertainty(logits: Tensor) -> Tensor:
    """The entropy of each answer over log N, from 0 to 1: (B, N) -> (B,)."""
    log_p = logits.log_softmax(dim=-1)
    entropy = (log_p.exp() * -log_p).sum(dim=-1)
    return entropy / math.log(logits.shape[-1])


# ---------------------------------------------------------------- cases


def by_hand(draw: Draw) -> list[Case]:
    """Probabilities that are powers of 2; logits are known up to a constant."""
    bits = torch.tensor([[1, 2, 3, 3], [2, 2, 2, 2]], dtype=torch.float64)  # −log2 of p
    eight = torch.tensor([[2, 2, 3, 3, 4, 4, 4, 4]], dtype=torch.float64)  # 2.75 bits of 3
    log_p = [-bits, -bits[:1, [2, 0, 3, 1]], -eight]
    return [(math.log(2) * x + draw.normal(len(x), 1) + 1,) for x in log_p]


def case(draw: Draw, texts: int, classes: int) -> Case:
    return (2 * draw.normal(texts, classes),)


def large(draw: Draw) -> list[Case]:
    """exp overflows, and no probability is rounded to 0."""
    return [(1000 + logits,) for (logits,) in each(case, (2, 3), (3, 4))(draw)]


def certain(draw: Draw) -> list[Case]:
    """One text that is sure, one that wavers between two classes, one like any other."""
    cases = []
    for classes in (4, 5):
        logits = draw.normal(3, classes)
        logits[0, draw.integer(0, classes - 1)] += 1000
        logits[1], logits[1, 1:3] = logits[1] - 1000, 0.5
        cases.append((logits,))
    return cases


LOG_P, RETURN = "logits.log_softmax(dim=-1)", "entropy / math.log(logits.shape[-1])"
ENTROPY = "(log_p.exp() * -log_p).sum(dim=-1)"
PLAIN = ((RETURN, "entropy"),)

UNCERTAINTY = Exercise(
    **written("12.1"),
    solution=uncertainty,
    returns=Numbers("uncertainty", shape="B", tol=1e-5),
    library=("course_lib.kernels.early_exit:normalised_entropy",),
    infinite="Not all of it is a finite number. Did exp overflow? exp(1000) is infinite, and ∞ / ∞ "
    "is nan: log_softmax subtracts the largest logit first. Or was a logarithm taken of a "
    "probability that was rounded to 0? log 0 is −∞, and 0 · log 0 is nan.",
    when_raised=(
        (r"size of tensor|dimension|broadcast", "The entropy is (B,), one number per text: sum "
         "over the last axis, the classes. log N is one number, math.log(logits.shape[-1])."),
    ),
    stages=(
        Stage("the answers on paper", by_hand),
        Stage("any answers", each(case, (3, 5), (4, 3), (5, 7))),
        Stage("two classes", each(case, (4, 2), (3, 2))),
        Stage("logits of a thousand", large),
        Stage("a text that is certain", certain),
    ),
    axes={"0": "the texts", "-1": "the classes"},
    mistakes=(
        Edit(RETURN, "entropy", "This is the entropy in nats. Its maximum depends on the number of "
             "classes: divide by log N."),
        Edit(LOG_P, "(logits.exp() / logits.exp().sum(dim=-1, keepdim=True)).log()", "exp "
             "overflows in your softmax: exp(1000) is infinite, and ∞ / ∞ is nan. log_softmax "
             "subtracts the largest logit first, which changes nothing else."),
        Edit(RETURN, "entropy / math.log(2)", "This is the entropy in bits. It can be as large as "
             "log2 N: divide by that, so that the maximum is 1."),
        Edit(RETURN, "entropy / math.log2(logits.shape[-1])", "You mix two bases: natural "
             "logarithms above, log2 N below. With one base for both, it does not matter which."),
        Edit(RETURN, "entropy / math.log(2) / math.log(logits.shape[-1])", "You mix two bases: "
             "bits above, the natural logarithm of N below."),
        Edit(RETURN, "entropy / math.log(len(logits))", "You divide by log B, where B is the "
             "number of *texts*. Divide by log N, N the number of classes."),
        Edit(RETURN, "entropy / entropy.max()", "You divide by the largest entropy of the *batch*. "
             "A text's value then depends on its neighbours. Divide by the largest possible one."),
        Edit(RETURN, "1 - entropy / math.log(logits.shape[-1])", "This is how *sure* the exit is. "
             "Return how unsure it is: 0 for a certain answer."),
        Edit(ENTROPY, "log_p.exp().amax(dim=-1)", "This is the largest probability. FastBERT asks "
             "for the entropy, which also counts how the rest is distributed.", more=PLAIN),
        Edit(ENTROPY, "1 - log_p.exp().amax(dim=-1)", "This is 1 minus the largest probability. "
             "For (0.6, 0.4, 0) and (0.6, 0.2, 0.2) that is the same; the entropy is not.",
             more=PLAIN),
        Edit(ENTROPY, "-log_p.amax(dim=-1)", "You take −log of the *largest* probability only. "
             "Every class counts, with its probability."),
        Edit(ENTROPY, "1 - log_p.exp().square().sum(dim=-1)", "This is 1 − Σ p², the Gini index. "
             "Take the entropy.", more=PLAIN),
        Edit(ENTROPY, "1 - log_p.exp().topk(2).values.diff(dim=-1).abs().squeeze(-1)", "This is 1 "
             "minus the lead of the best class over the second. Take the entropy.", more=PLAIN),
        Edit(LOG_P, "logits.log_softmax(dim=0)", "Softmax and sum run over the texts: you have one "
             "number per class. Return one per text.",
             more=((".sum(dim=-1)", ".sum(dim=0)"), (RETURN, "entropy / math.log(len(logits))"))),
        Edit(LOG_P, "torch.nn.functional.logsigmoid(logits)", "Sigmoids of one text do not add up "
             "to one. The classes exclude each other: softmax."),
        Edit(ENTROPY, "-(logits * logits.log()).sum(dim=-1)", "You use the logits as "
             "probabilities. Apply a softmax first."),
        Edit(LOG_P, "logits", "exp(logit) is no probability yet: the sum over the classes must be "
             "1. Put a softmax before it."),
        Edit(LOG_P, "logits.softmax(dim=-1).log_softmax(dim=-1)", "The softmax is taken twice. "
             "That flattens every answer: all texts look unsure."),
        Edit(LOG_P, "logits.softmax(dim=-1).log()", "For a certain text a probability was rounded "
             "to 0, and 0 · log 0 is nan. A nan is never at most the speed, so the surest text "
             "would never leave. log_softmax keeps the logarithm finite."),
    ),
)  # fmt: skip
