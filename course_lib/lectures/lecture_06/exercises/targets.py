"""Exercise 06.2: how far a student's answers are from its teacher's. N positions, V choices.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    call,
    close,
)

from .shared import Slips, call_keeping, gradient, one_loss, same_loss, suspects_of

Case = tuple[Tensor, Tensor, float]  # student's scores (N, V), teacher's (N, V), temperature


def soft_loss(student_logits: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """T² · KL(teacher ‖ student) of answers softened by T, the mean over N positions."""
    student = (student_logits / temperature).log_softmax(-1)
    teacher = (teacher_logits.detach() / temperature).log_softmax(-1)
    apart = (teacher.exp() * (teacher - student)).sum(-1)  # (N,)
    return temperature**2 * apart.mean()


# ---------------------------------------------------------------- known wrong answers


def _with(
    student: Tensor,
    teacher: Tensor,
    temperature: float,
    *,
    soften: str = "both",
    kind: str = "kl",
    over: str = "positions",
    power: float = 2,
    axis: int = -1,
    by: float = 1.0,
) -> Tensor:
    """The loss with switches for going wrong."""
    s = student / (temperature if soften in ("both", "student") else 1)
    t = teacher / (temperature if soften in ("both", "teacher") else 1)
    log_p, log_q = s.log_softmax(axis), t.log_softmax(axis)
    p, q = log_p.exp(), log_q.exp()
    parts = {
        "kl": q * (log_q - log_p),
        "reverse": p * (log_p - log_q),
        "cross-entropy": -q * log_p,
        "reverse cross-entropy": -p * log_q,
        "probabilities": q * (log_q - p),
        "scores": q * (log_q - s),
        "hard": -F.one_hot(t.argmax(-1), t.shape[-1]) * log_p,
        "squared scores": (s - t) ** 2,
        "squared probabilities": (p - q) ** 2,
    }[kind]
    whole = {
        "positions": parts.sum() / len(parts), "entries": parts.mean(), "sum": parts.sum(),
    }[over]  # fmt: skip
    return by * temperature**power * whole


SLIPS: Slips = {
    "no T²": (
        "The factor T² is missing. Softening shrinks the gradient about as 1/T²; the factor puts "
        "it back, so that the weight of this loss means the same at every T.",
        {"power": 0},
    ),
    "T instead of T²": (
        "The factor is T; it must be T²: one T from softening each of the two answers.",
        {"power": 1},
    ),
    "divided by T²": (
        "The loss is divided by T². The softened loss is too *small*: multiply.",
        {"power": -2},
    ),
    "temperature ignored": (
        "The temperature changes nothing in your result. Divide both networks' scores by it, and "
        "multiply the loss by its square.",
        {"soften": "none", "power": 0},
    ),
    "softened only on the student's side": (
        "Only the student's scores are divided by T. Even a student that answers exactly as its "
        "teacher would then have a loss. Soften both.",
        {"soften": "student"},
    ),
    "softened only on the teacher's side": (
        "Only the teacher's scores are divided by T. Even a student that answers exactly as its "
        "teacher would then have a loss. Soften both.",
        {"soften": "teacher"},
    ),
    "nothing softened": (
        "T² is there, but no scores are divided by T. Soften both answers.",
        {"soften": "none"},
    ),
    "wrong way round": (
        "The divergence is the wrong way round: yours weighs by the student's probabilities, "
        "KL(student ‖ teacher). The teacher's come first: Σ teacher · (log teacher − log student). "
        "In F.kl_div the student's *logarithms* are the first argument.",
        {"kind": "reverse"},
    ),
    "cross-entropy": (
        "This is the cross-entropy, −Σ teacher · log student. It has the same gradient, but it is "
        "larger by the teacher's entropy: a perfect student would not reach 0. Subtract that "
        "entropy: log teacher − log student.",
        {"kind": "cross-entropy"},
    ),
    "cross-entropy the wrong way round": (
        "This is −Σ student · log teacher: a cross-entropy, with the roles exchanged. Expected "
        "Σ teacher · (log teacher − log student).",
        {"kind": "reverse cross-entropy"},
    ),
    "probabilities where logarithms belong": (
        "The student's probabilities stand where their logarithms belong. F.kl_div expects "
        "log-probabilities as its first argument and does not complain: use log_softmax there.",
        {"kind": "probabilities"},
    ),
    "scores where logarithms belong": (
        "The student's raw scores stand where logarithms of probabilities belong. Put log_softmax "
        "around them.",
        {"kind": "scores"},
    ),
    "hard targets": (
        "Only the teacher's best choice is used, as if it were a label. What the teacher thinks of "
        "the other choices is what distillation is about.",
        {"kind": "hard"},
    ),
    "squared distance of the scores": (
        "This is the squared distance of the scores. It is another loss that is also used; here "
        "the divergence of the probabilities is asked.",
        {"kind": "squared scores"},
    ),
    "squared distance of the probabilities": (
        "This is the squared distance of the probabilities; expected their divergence, "
        "Σ teacher · (log teacher − log student).",
        {"kind": "squared probabilities"},
    ),
    "mean over all entries": (
        "The mean runs over all N · V entries. Over the V choices it is a *sum* (that makes it a "
        "divergence), over the N positions a mean: reduction=\"batchmean\", not \"mean\".",
        {"over": "entries"},
    ),
    "sum over positions": (
        "This is the sum over the positions; expected their mean, so that long batches weigh no "
        "more than short ones.",
        {"over": "sum"},
    ),
    "wrong axis": (
        "The softmax runs over the positions; it must run over the V choices, the last axis.",
        {"axis": 0},
    ),
    "sign": (
        "The sign is wrong: a divergence is never negative, and 0 only for equal answers.",
        {"by": -1.0},
    ),
    "bits": (
        "The logarithm is to base 2; the loss is in nats, with the natural one.",
        {"by": 1 / math.log(2)},
    ),
}  # fmt: skip

TARGET_SUSPECTS = suspects_of(SLIPS, _with)


# ---------------------------------------------------------------- inputs and stages

Cases = Callable[[Draw], list[Case]]


def _drawn(sizes: Sequence[tuple[int, int]], temperatures: Sequence[float]) -> Cases:
    def cases(draw: Draw) -> list[Case]:
        return [
            (2 * draw.normal(*size), 2 * draw.normal(*size), T)
            for size in sizes
            for T in temperatures
        ]

    return cases


RICH = _drawn([(3, 5), (4, 6)], (1.0, 2.0, 5.0))


def _ask_loss(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_loss(answer, case, [RICH(draw), cases(draw)])

    return ask


def _expect_loss(answer: Answer, case: Case, pools: Sequence[Sequence[Case]]) -> None:
    given, right = one_loss(call(answer, *case)).detach(), soft_loss(*case)
    if same_loss(given, right):
        return
    (N, V), T = case[0].shape, case[2]
    said = (
        f"With {N} position(s), {V} choices and T = {T:g} you have {float(given):.4f}; it is "
        f"{float(right):.4f}."
    )
    if not bool(torch.isfinite(given)):
        raise Mistake(
            "not a number",
            "Your result is not a number. Was the logarithm taken of something negative? F.kl_div "
            "expects the teacher's *probabilities* as its second argument; if you give their "
            f"logarithms, say log_target=True.\n{said}",
        )
    found = name_suspect(
        answer, case, pools, TARGET_SUSPECTS, lambda mine, theirs, asked: same_loss(mine, theirs)
    )
    raise told(found, said)


def _equal(draw: Draw) -> list[Case]:
    """A student that answers as its teacher does, up to a constant that the softmax ignores."""
    scores = 2 * draw.normal(3, 5)
    return [(scores + draw.normal(3, 1), scores, T) for T in (1.0, 3.0)]


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    student, teacher, T = RICH(draw)[1]
    case = (student.requires_grad_(), teacher.requires_grad_(), T)
    found, (mine, theirs, _) = call_keeping(answer, *case)
    loss = one_loss(found)
    if not loss.requires_grad or not bool(gradient(loss, mine).any()):
        raise Mistake(
            "no gradient",
            "The number is right, but no gradient reaches the student's scores: keep the result a "
            "tensor, without .item(), .detach() or no_grad on the student's side.",
        )
    if bool(gradient(loss, theirs).any()):
        raise Mistake(
            "the teacher learns",
            "The number is right, but a gradient also reaches the teacher's scores: it would move "
            "towards its student. Put .detach() behind them (or compute them under "
            "torch.no_grad()).",
        )
    right = gradient(soft_loss(*case), student)
    if not close(gradient(loss, mine), right):
        raise Mistake("", "The number is right, but the student's gradient is not.")


TARGETS = Exercise(
    id="06.2",
    title="Answer as your teacher does",
    purpose="the loss that distillation is named for",
    difficulty=3,
    minutes=15,
    signature="my_soft_loss(student_logits, teacher_logits, temperature)",
    statement=(
        "Both logits are (N, V). Soften both by T = `temperature` and return T² · KL(teacher ‖ "
        "student), a mean over the N positions, in nats: KL = Σ teacher · (log teacher − log "
        "student), a sum over the V choices. No gradient may reach the teacher's logits. This page "
        "has just shown why T² stands there."
    ),
    hints=(
        "Divide both logits by T, then log_softmax(-1): two tensors of log-probabilities, (N, V).",
        "The teacher's probabilities are the exp of its log-probabilities. Multiply them by the "
        "difference of the logarithms, and sum over the last axis.",
        "Mean over the positions, times T². Write .detach() behind the teacher's logits.",
        'Or in one call: F.kl_div(student, teacher, reduction="batchmean", log_target=True), both '
        "log-probabilities, the student first.",
        "One position, scores (2, 0) of the student and (0, 0) of the teacher: T = 1 gives 0.434, "
        "T = 2 gives 4 · 0.120 = 0.480.",
    ),
    solution=soft_loss,
    library=("course_lib.kernels.distillation:soft_target_loss",),
    when_raised=(
        (
            "must match the size",
            "Both logits have the same shape (N, V). Sum over the last axis only after they are "
            "multiplied.",
        ),
    ),
    stages=(
        Check("one position, T = 1", _ask_loss(_drawn([(1, 3), (1, 5)], (1.0,)))),
        Check("several positions, T = 1", _ask_loss(_drawn([(3, 4), (5, 6)], (1.0,)))),
        Check("other temperatures", _ask_loss(_drawn([(3, 4), (2, 6)], (2.0, 0.5, 4.0)))),
        Check("equal answers cost nothing", _ask_loss(_equal)),
        Check("the student learns, the teacher does not", _ask_gradient),
    ),
)
