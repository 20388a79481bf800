"""Exercise 06.1: softmax with a temperature. N positions, V choices."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def soften(logits: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Softmax of logits / T, and its entropy in nats: (N, V) -> (N, V) and (N,)."""
    log_p = (logits / temperature).log_softmax(-1)
    p = log_p.exp()
    return p, -(p * log_p).sum(-1)


def case(draw: Draw, N: int, V: int, T: float) -> Case:
    return 2 * draw.normal(N, V), T


def far_apart(draw: Draw) -> list[Case]:
    """exp(1000) is no finite number, and exp(−1000) is 0."""
    shift = torch.tensor([1000.0, 0.0, -1000.0, 3.0], dtype=torch.float64)
    return [(shift[draw.ids(0, 3, 3, 5)] + draw.normal(3, 5), T) for T in (1.0, 0.5, 2.0)]


SOFTEN = Exercise(
    **written("06.1"),
    solution=soften,
    returns=(Numbers("probabilities", shape="N V"), Numbers("entropy", "nats", shape="N")),
    see="course_lib.kernels.distillation.soft_target_loss (which softens both networks' logits)",
    stages=(
        Stage("T = 1: an ordinary softmax", each(case, (1, 3, 1.0), (2, 4, 1.0))),
        Stage("other temperatures",
              each(case, *((*NV, T) for NV in ((2, 4), (3, 5)) for T in (2.0, 0.5, 8.0)))),
        Stage("logits that are far apart", far_apart),
    ),
    infinite="Your result is not finite: exp of a large logit is infinite, and 0 · log 0 is nan. "
    "log_softmax avoids both: it subtracts the largest logit first.",
    mistakes=(
        Edit("logits / temperature", "logits * temperature",
             "You multiply the logits by T, which sharpens: with T = 2 the best choice wins by "
             "more. Divide by T."),
        Edit("logits / temperature", "logits",
             "T has no effect: these are the probabilities at T = 1. (Dividing the *probabilities* "
             "by T and renormalising gives the same.) Divide the logits, before the softmax."),
        Edit("p = log_p.exp()", "p = logits.softmax(-1) / temperature",
             "You divide the probabilities by T, so they no longer add up to one. Divide the "
             "logits, before the softmax."),
        Edit("log_softmax(-1)", "log_softmax(0)", "Your columns add up to one, your rows do not: "
             "the softmax runs over the positions. It must run over the V choices, the last axis."),
        Edit("p = log_p.exp()", "p = (logits / temperature).exp()",
             "These are exp(logit / T), not divided by their sum.",
             more=(("log_p = (logits / temperature)", "log_p = (logits / (1 * temperature))"),)),
        Edit("p = log_p.exp()", "p = logits.softmax(-1) ** (1 / temperature)",
             "Probabilities to the power 1/T do not add up to one any more: divide by their sum."),
        Edit("logits / temperature", "logits / temperature**2",
             "You divide the logits by T². T² belongs to the loss, not to the softmax."),
        Edit("logits / temperature", "logits / temperature**0.5",
             "You divide the logits by √T; divide by T itself."),
        Edit("p = log_p.exp()",
             "p = torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1])",
             "Only the best choice has a probability: that is the hard answer."),
        Edit("-(p * log_p).sum(-1)", "-(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1)",
             "This is the entropy before softening, at T = 1. Compute it from the softened "
             "probabilities."),
        Edit(".sum(-1)", ".mean(-1)",
             "This is the mean of −p · log p over the V choices; the entropy is their sum."),
        Edit("-(p * log_p)", "-log_p",
             "This is −Σ log p. Weight each logarithm by its probability: −Σ p · log p."),
        Edit(".sum(-1)", ".sum(-1) / torch.tensor(float(logits.shape[-1])).log()",
             "You divide the entropy by log V, its largest value. Return it in nats."),
    ),
)  # fmt: skip
