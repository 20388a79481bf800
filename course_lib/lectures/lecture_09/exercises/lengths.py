"""Exercise 09.1: how long a span is. L, the longest, in words."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number, Numbers


def lengths(p: float, longest: int) -> tuple[Tensor, float]:
    """P(l) for l = 1 to L, geometric and cut off behind L, (L,); and the mean (section 3.1)."""
    length = torch.arange(1, longest + 1).double()
    weights = p * (1 - p) ** (length - 1)
    probabilities = weights / weights.sum()
    return probabilities, float(probabilities @ length)


def case(draw: Draw, shortest: int, longest: int) -> Case:
    """p is never one half, where p and 1 − p could be exchanged."""
    return draw.python.choice([0.15, 0.25, 0.3, 0.35, 0.6, 0.7]), draw.integer(shortest, longest)


def mean_of(weights: Tensor) -> float:
    return float(weights @ torch.arange(1, len(weights) + 1).double())


def published() -> str:
    """Said when the published setting is passed: the mean, and what lumping would give."""
    probabilities, mean = lengths(0.2, 10)
    rest = 0.2 * 0.8 ** torch.arange(10).double()
    rest[-1] += 1 - rest.sum()  # all that is longer, counted as ten
    return (
        f"More than one span in five has one word ({float(probabilities[0]):.1%}), the mean is "
        f"{mean:.3f} "
        f"words. Without an end it would be 1/p = 5; with all longer spans counted as ten, "
        f"{mean_of(rest):.2f}."
    )


WEIGHTS, NORMED = "p * (1 - p) ** (length - 1)", "weights / weights.sum()"
MEAN = "float(probabilities @ length)"

LENGTHS = Exercise(
    **written("09.1"),
    solution=lengths,
    returns=(Numbers("tensor of probabilities", shape="longest"), Number("mean length", "words")),
    see="course_lib.kernels.span_masking.length_probabilities (without the mean)",
    when_raised=(
        (r"Boolean|ambiguous", "A comparison with a tensor has one result per entry: compare "
         "numbers."),
        (r"dot :|expected both vectors|same dtype|inconsistent tensor", "Lengths are whole numbers "
         "and probabilities are not: give both one type, torch.arange(…).double()."),
    ),
    stages=(
        Stage("p = 0.5, at most 3 or 4 words", each(lambda draw, n: (0.5, n), (3,), (4,))),
        Stage("at most one word, and two", each(case, (1, 1), (2, 2))),
        Stage("other p, other ends; with p = 1 every span is one word",
              lambda draw: [(1.0, 4), *(case(draw, *ends) for ends in ((3, 5), (6, 12), (6, 12)))]),
        Stage("SpanBERT's: p = 0.2, at most 10", each(lambda draw: (0.2, 10), ()),
              remark=published),
    ),
    infinite="Not all of it is a number. With p = 1 nothing is longer than one word: (1 − p)^(l − "
        "1) is then 1 for l = 1 and 0 beyond, and needs no logarithm.",
    mistakes=(
        Edit(NORMED, "weights", "Your probabilities do not add up to one. Longer lengths are "
             "cut off, so divide by the sum of the rest."),
        Edit(NORMED, "torch.cat([weights[:-1], 1 - weights[:-1].sum(0, keepdim=True)])",
             "All longer lengths are counted as the longest. SpanBERT cuts them off and divides "
             "the rest by its sum, so no length is preferred."),
        Edit(WEIGHTS, "p**length", "p and 1 − p are exchanged. After each word a span goes on "
             "with probability 1 − p and ends with probability p."),
        Edit(WEIGHTS, "torch.ones_like(length)", "All lengths are equally likely in your answer. "
             "Each additional word makes a span less likely by the factor 1 − p."),
        Edit(WEIGHTS, "1 / length", "That is ALBERT's rule, P(n) ∝ 1/n. SpanBERT's is "
             "geometric: each additional word costs the same factor, 1 − p."),
        Edit(WEIGHTS, "(1 - p) / length", "The factor 1 − p counts once for every additional "
             "word: it is a power, (1 − p)^(l − 1), not a quotient."),
        Edit(NORMED, "weights.softmax(0)", "A softmax makes the weights add up to one, but it "
             "exponentiates them first. Divide them by their sum."),
        Edit(NORMED, "weights / weights.max()", "The weights are divided by the largest of them. "
             "Divide by their sum: probabilities add up to one."),
        Edit(NORMED, "(weights / weights.sum()).cumsum(0)", "This is the probability of *at "
             "most* l words. Expected is that of exactly l."),
        Edit(NORMED, "(weights / weights.sum()).flip(0).cumsum(0).flip(0)", "This is the "
             "probability of *at least* l words. Expected is that of exactly l."),
        Edit("torch.arange(1, longest + 1)", "torch.arange(1, longest)", "The longest length is "
             "missing: `longest` is included."),
        Edit("torch.arange(1, longest + 1)", "torch.arange(0, longest + 1)", "Your lengths begin "
             "at 0. A span has at least one word.", more=(("(length - 1)", "length"),)),
        Edit(MEAN, "1 / p", "1/p is the mean of a geometric distribution without an end. Here "
             "lengths end at `longest`, and the mean is shorter."),
        Edit(MEAN, "float(length.mean())", "This is the mean of the numbers 1 to `longest`, as if "
             "all were equally likely. Weight each length by its probability: Σ l · P(l)."),
        Edit(MEAN, "float(probabilities.mean())", "This is the mean of the probabilities, which is "
             "one divided by their number. The mean length is Σ l · P(l)."),
        Edit(MEAN, "float((probabilities * length).mean())", "This is the mean of the products "
             "l · P(l). The probabilities are already the weights: take the sum of the products."),
        Edit(MEAN, "float(probabilities @ (length - 1))", "Your mean counts lengths from 0. The "
             "first probability is that of one word."),
        Edit(MEAN, "float(weights @ length)", "The probabilities are right, but your mean uses "
             "the weights before they are divided by their sum."),
        Edit(MEAN, "float((probabilities.cumsum(0) < 0.5).sum() + 1)", "This is the median: "
             "half of the spans are no longer than that. Expected is the mean, Σ l · P(l)."),
        Edit(MEAN, "float(probabilities @ length**2)", "This is the mean of the *squared* length."),
    ),
)  # fmt: skip
