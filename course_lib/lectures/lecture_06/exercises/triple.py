"""Exercise 06.3: DistilBERT's three losses, each over its own positions.

B batch, T tokens, V vocabulary, H width. The solution first, then the known wrong answers, then the
stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.heads import MaskedLMOutput
from course_lib.kernels.masked_loss import IGNORED
from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import Answer, Check, Draw, Exercise, Mistake, call

from .shared import Slips, call_keeping, gradient, one_loss, same_loss, suspects_of

Weights = tuple[float, float, float]
# What student and teacher said; real (B, T), labels (B, T), weights, temperature.
Case = tuple[MaskedLMOutput, MaskedLMOutput, Tensor, Tensor, Weights, float]
PUBLISHED = (5.0, 2.0, 1.0)  # the published command of DistilBERT's authors


def triple_loss(
    student: Any,
    teacher: Any,
    real: Tensor,
    labels: Tensor,
    weights: Weights,
    temperature: float,
) -> Tensor:
    """Soft targets and cosine over the real tokens, masked words where they were asked (Sanh et al.
    2019, section 2)."""
    mine = (student.logits[real] / temperature).log_softmax(-1)  # (N, V)
    theirs = (teacher.logits[real] / temperature).log_softmax(-1)
    soft = temperature**2 * (theirs.exp() * (theirs - mine)).sum(-1).mean()
    asked = labels != -100
    losses = F.cross_entropy(student.logits[asked], labels[asked], reduction="sum")
    mlm = losses / asked.sum().clamp(min=1)  # 0 where nothing was asked
    last = student.hidden_states[-1][real], teacher.hidden_states[-1][real]
    cosine = (1 - F.cosine_similarity(*last, dim=-1)).mean()
    return weights[0] * soft + weights[1] * mlm + weights[2] * cosine


# ---------------------------------------------------------------- known wrong answers


def _mean(x: Tensor, at: str, real: Tensor, labels: Tensor) -> Tensor:
    """The mean of x (B, T) over some of its positions, taken in one of several ways."""
    asked, everywhere = labels != IGNORED, torch.ones_like(real)
    where = {
        "asked": asked, "asked rows": asked, "over all": asked, "over real": asked,
        "all": everywhere, "over rows": everywhere,
    }.get(at, real)  # fmt: skip
    sums, counts = (x * where).sum(1), where.sum(1)  # (B,) both
    if at in ("real rows", "asked rows"):
        return (sums / counts.clamp(min=1)).mean()
    divide_by: dict[str, Any] = {
        "over all": real.numel(), "over real": real.sum(), "over rows": len(real),
    }  # fmt: skip
    return sums.sum() / divide_by.get(at, counts.sum().clamp(min=1))


Reweigh = Callable[[Weights], tuple[float, float, float]]


def _with(
    student: Any,
    teacher: Any,
    real: Tensor,
    labels: Tensor,
    weights: Weights,
    temperature: float,
    *,
    soft_at: str = "real",
    mlm_at: str = "asked",
    cosine_at: str = "real",
    soft: str = "kl",
    cosine: str = "1 − cos",
    layer: int | str = -1,
    weigh: Reweigh = lambda w: w,
    power: int = 2,
    softened: bool = True,
) -> Tensor:
    """The loss with switches for going wrong."""
    T = temperature if softened else 1.0
    log_p, log_q = (student.logits / T).log_softmax(-1), (teacher.logits / T).log_softmax(-1)
    parts = {
        "kl": log_q.exp() * (log_q - log_p),
        "reverse": log_p.exp() * (log_p - log_q),
        "cross-entropy": -log_q.exp() * log_p,
        "entries": log_q.exp() * (log_q - log_p) / log_q.shape[-1],
    }[soft]
    words = labels.clamp(min=0)[..., None]
    surprise = -student.logits.log_softmax(-1).gather(-1, words)[..., 0]  # (B, T)
    places = range(len(student.hidden_states or ())) if layer == "every" else [int(layer)]
    similar = [
        F.cosine_similarity(student.hidden_states[i], teacher.hidden_states[i], dim=-1)
        for i in places
    ]
    alike = torch.stack(similar).mean(0)  # (B, T)
    apart = {"1 − cos": 1 - alike, "cos": alike, "− cos": -alike, "1 + cos": 1 + alike}[cosine]
    a, b, c = weigh(weights)
    return (
        a * temperature**power * _mean(parts.sum(-1), soft_at, real, labels)
        + b * _mean(surprise, mlm_at, real, labels)
        + c * _mean(apart, cosine_at, real, labels)
    )


SLIPS: Slips = {
    "padding counted": (
        "Padding is counted in the soft targets and in the cosine. What a network says of padding "
        "means nothing: take real tokens only.",
        {"soft_at": "all", "cosine_at": "all"},
    ),
    "padding in the soft targets": (
        "Padding is counted in the soft targets. Take the rows where `real` is true: "
        "logits[real] is (N, V).",
        {"soft_at": "all"},
    ),
    "padding in the cosine": (
        "Padding is counted in the cosine. Take the vectors where `real` is true.",
        {"cosine_at": "all"},
    ),
    "soft targets at masked words only": (
        "The soft targets are compared at the masked positions only. A teacher has an opinion on "
        "every token, masked or not: take all real ones.",
        {"soft_at": "asked"},
    ),
    "cosine at masked words only": (
        "The cosine is taken at the masked positions only; take all real tokens.",
        {"cosine_at": "asked"},
    ),
    "everything at masked words only": (
        "All three losses are taken at the masked positions. Only the masked-word loss belongs "
        "there; soft targets and cosine are over all real tokens.",
        {"soft_at": "asked", "cosine_at": "asked"},
    ),
    "masked words at every token": (
        "The masked-word loss is taken at every position, with word 0 where nothing was asked. "
        "Labels of −100 are left out: ignore_index=-100.",
        {"mlm_at": "all"},
    ),
    "masked words at every real token": (
        "The masked-word loss is taken at every real token, with word 0 where nothing was asked. "
        "Labels of −100 are left out: ignore_index=-100.",
        {"mlm_at": "real"},
    ),
    "masked words divided by all tokens": (
        "The masked-word loss is divided by all B · T positions; divide by how many were asked.",
        {"mlm_at": "over all"},
    ),
    "masked words divided by the real tokens": (
        "The masked-word loss is divided by the number of real tokens; divide by how many were "
        "asked.",
        {"mlm_at": "over real"},
    ),
    "averaged row by row": (
        "Each row was averaged by itself, then the rows. A token of a short row then weighs more. "
        "Average over all tokens of the batch at once.",
        {"soft_at": "real rows", "cosine_at": "real rows", "mlm_at": "asked rows"},
    ),
    "soft targets and cosine row by row": (
        "Soft targets and cosine were averaged in each row, then over the rows. A token of a short "
        "row then weighs more. Average over all real tokens of the batch at once.",
        {"soft_at": "real rows", "cosine_at": "real rows"},
    ),
    "soft targets row by row": (
        "The soft targets were averaged in each row, then over the rows. Average over all real "
        "tokens at once.",
        {"soft_at": "real rows"},
    ),
    "cosine row by row": (
        "The cosine was averaged in each row, then over the rows. Average over all real tokens at "
        "once.",
        {"cosine_at": "real rows"},
    ),
    "soft targets divided by the rows": (
        "The soft targets are summed over the tokens and divided by the number of rows (F.kl_div "
        "with \"batchmean\" on (B, T, V) does that). Pick the real tokens first: logits[real] is "
        "(N, V).",
        {"soft_at": "over rows"},
    ),
    "soft targets averaged over the words": (
        "The soft targets are averaged over the V words too; over them the divergence is a sum.",
        {"soft": "entries"},
    ),
    "sign of the cosine": (
        "The cosine is added: the more alike two vectors are, the larger your loss. It is "
        "1 − cosine, which is 0 for equal directions.",
        {"cosine": "cos"},
    ),
    "one plus the cosine": (
        "1 + cosine grows when the vectors agree; it is 1 − cosine.",
        {"cosine": "1 + cos"},
    ),
    "cosine without the one": (
        "−cosine stands where 1 − cosine should. The gradient is the same, but equal vectors then "
        "cost −1 and not 0.",
        {"cosine": "− cos"},
    ),
    "embeddings compared": (
        "The first hidden states are compared, the embeddings; take the last, [-1].",
        {"layer": 0},
    ),
    "last layer but one": (
        "The last layer but one is compared. Hidden states begin with the embeddings, so the last "
        "layer is [-1].",
        {"layer": -2},
    ),
    "every layer compared": (
        "The cosine is averaged over all hidden states. DistilBERT compares the last layer only; "
        "comparing layer by layer is TinyBERT's idea.",
        {"layer": "every"},
    ),
    "α and 1 − α": (
        "The masked words are weighted by 1 − α, where α is the weight of the soft targets. The "
        "three weights are independent: none is the complement of another.",
        {"weigh": lambda w: (w[0], 1 - w[0], w[2])},
    ),
    "α and 1 − α exchanged": (
        "The soft targets are weighted by 1 − α, where α is the weight of the masked words. The "
        "three weights are independent: none is the complement of another.",
        {"weigh": lambda w: (1 - w[1], w[1], w[2])},
    ),
    "weights made to add up to one": (
        "The weights are divided by their sum. They are used as they stand.",
        {"weigh": lambda w: tuple(x / sum(w) for x in w)},
    ),
    "weights exchanged": (
        "The weights of soft targets and masked words are exchanged: weights[0] is that of the "
        "soft targets.",
        {"weigh": lambda w: (w[1], w[0], w[2])},
    ),
    "weights in another order": (
        "The weights are in another order. They belong to soft targets, masked words and cosine, "
        "in this order.",
        {"weigh": lambda w: (w[0], w[2], w[1])},
    ),
    "no weights": (
        "The three losses are added without their weights.",
        {"weigh": lambda w: (1.0, 1.0, 1.0)},
    ),
    "5, 2 and 1": (
        "The weights are always 5, 2 and 1. These are the published ones; use those you are given.",
        {"weigh": lambda w: PUBLISHED},
    ),
    "no cosine": ("The cosine is missing.", {"weigh": lambda w: (w[0], w[1], 0.0)}),
    "no masked words": ("The masked words are missing.", {"weigh": lambda w: (w[0], 0.0, w[2])}),
    "no soft targets": ("The soft targets are missing.", {"weigh": lambda w: (0.0, w[1], w[2])}),
    "no T²": ("The factor T² of the soft targets is missing.", {"power": 0}),
    "temperature ignored": (
        "The temperature changes nothing in your result.",
        {"power": 0, "softened": False},
    ),
    "wrong way round": (
        "The soft targets are the wrong way round: the teacher's probabilities weigh, "
        "KL(teacher ‖ student).",
        {"soft": "reverse"},
    ),
    "cross-entropy": (
        "The soft targets are a cross-entropy: larger than the divergence by the teacher's "
        "entropy, so that equal answers do not cost 0.",
        {"soft": "cross-entropy"},
    ),
}  # fmt: skip


FREQUENT = (
    "padding counted", "masked words divided by all tokens", "soft targets divided by the rows",
    "soft targets averaged over the words", "sign of the cosine", "embeddings compared",
    "α and 1 − α", "no cosine", "no T²", "wrong way round", "cross-entropy",
)  # fmt: skip
TRIPLE_SUSPECTS = suspects_of(SLIPS, _with, together=FREQUENT)


# ---------------------------------------------------------------- inputs and stages

Cases = Callable[[Draw], list[Case]]
Shape = tuple[Sequence[int], Sequence[int]]  # real tokens of each row, masked words of each row
LAYERS = 3


def _case(
    draw: Draw, shape: Shape, *, alike: bool = False, same_states: bool = False, T: float = 2.0
) -> Case:
    """alike: both networks say the same. same_states: only their hidden states are the same."""
    lengths, masked = shape
    rows, tokens, words, width = len(lengths), max(lengths), 6, 4
    real = torch.arange(tokens) < torch.tensor(lengths)[:, None]  # (B, T)
    labels = torch.full((rows, tokens), IGNORED)
    for row, (length, count) in enumerate(zip(lengths, masked, strict=True)):
        at = torch.randperm(length, generator=draw.torch)[:count]
        labels[row, at] = draw.ids(1, words - 1, count)
    student = _said(draw, rows, tokens, words, width)
    teacher = _said(draw, rows, tokens, words, width)
    if alike:
        teacher = student
    elif same_states:
        teacher = replace(teacher, hidden_states=student.hidden_states)
    a, b, c = (draw.integer(2, 9) / 2 for _ in range(3))
    return student, teacher, real, labels, (a, b + 5, c + 10), T


def _said(draw: Draw, rows: int, tokens: int, words: int, width: int) -> MaskedLMOutput:
    states = tuple(draw.normal(rows, tokens, width) for _ in range(LAYERS + 1))
    return MaskedLMOutput(2 * draw.normal(rows, tokens, words), states)


WHOLE: Shape = ((5, 5), (2, 1))
PADDED: Shape = ((7, 4, 2), (3, 1, 1))


def _drawn(*shapes: Shape, **how: Any) -> Cases:
    return lambda draw: [_case(draw, shape, T=T, **how) for shape in shapes for T in (2.0, 3.0)]


def _published(draw: Draw) -> list[Case]:
    return [(*_case(draw, PADDED)[:4], PUBLISHED, 2.0)]


RICH = _drawn(PADDED, ((3, 6, 5), (1, 1, 3)))


def _ask_loss(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            _expect_loss(answer, case, [RICH(draw), cases(draw)])

    return ask


def _expect_loss(answer: Answer, case: Case, pools: Sequence[Sequence[Case]]) -> None:
    given, right = one_loss(call(answer, *case)).detach(), triple_loss(*case)
    if same_loss(given, right):
        return
    _, _, real, labels, weights, T = case
    asked = int((labels != IGNORED).sum())
    said = (
        f"With {real.numel()} positions, {int(real.sum())} real tokens, {asked} masked, weights "
        f"{weights} and T = {T:g} you have {float(given):.4f}; it is {float(right):.4f}."
    )
    if bool(torch.isnan(given)) and not asked:
        raise Mistake(
            "nothing masked",
            "Nothing was masked, so there is nothing to average, and 0/0 is not a number. The "
            f"masked-word loss is 0 there: divide a sum by max(1, how many).\n{said}",
        )
    found = name_suspect(
        answer, case, pools, TRIPLE_SUSPECTS, lambda mine, theirs, asked: same_loss(mine, theirs)
    )
    raise told(found, said)


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    case = _case(draw, PADDED)
    student = case[0]
    assert student.hidden_states is not None
    leaves = (student.logits, student.hidden_states[-1])
    for leaf in leaves:
        leaf.requires_grad_()
    found, kept = call_keeping(answer, *case)
    loss, mine = one_loss(found), kept[0]
    for name, leaf in {"logits": mine.logits, "hidden states": mine.hidden_states[-1]}.items():
        if not loss.requires_grad or not bool(gradient(loss, leaf).any()):
            raise Mistake(
                "no gradient",
                f"The number is right, but no gradient reaches the student's {name}: keep the "
                "result a tensor, without .item(), .detach() or no_grad on the student's side.",
            )


TRIPLE = Exercise(
    id="06.3",
    title="Three losses, each at its places",
    purpose="what DistilBERT learns from",
    difficulty=3,
    minutes=20,
    signature="my_triple_loss(student, teacher, real, labels, weights, temperature)",
    statement=(
        "`student` and `teacher` are what two networks said of one batch: `.logits` (B, T, V) and "
        "`.hidden_states`, a tuple of (B, T, H), the embeddings first. `real` (B, T) is true at "
        "real tokens and false at padding; `labels` (B, T) hold the original word where one was "
        "masked, −100 elsewhere. Return weights[0] · soft + weights[1] · mlm + weights[2] · "
        "cosine.  \n"
        "soft: T² · KL(teacher ‖ student) of exercise 06.2, over all real tokens.  \n"
        "mlm: −log P(original word), at T = 1, over the masked positions; 0 if there are none.  \n"
        "cosine: 1 − cosine of the two *last* hidden states, over all real tokens.  \n"
        "Each is a mean over its positions in the whole batch. You may use "
        "`course_lib.kernels.distillation.soft_target_loss`."
    ),
    hints=(
        "x[real] picks the real tokens of (B, T, …) and gives (N, …): pick first, then the loss.",
        "asked = labels != -100 picks the masked positions in the same way. F.cross_entropy with "
        'reduction="sum", divided by max(1, how many), is 0 where nothing was masked.',
        "F.cosine_similarity(a, b, dim=-1) of the two last states, (N, H) each, gives (N,). "
        "The loss is 1 minus it, averaged.",
        "The weights stand as they are: nothing is divided by their sum.",
    ),
    solution=triple_loss,
    library=(
        "course_lib.objectives.distillation:distilbert_loss",
        "course_lib.objectives.distillation:cosine_loss",
        "course_lib.kernels.masked_loss:mean_cross_entropy",
        "course_lib.kernels.distillation:soft_target_loss",
    ),
    when_raised=(
        (
            "Expected target size|target batch_size|target tensor expected|multi-target",
            "cross_entropy wants (number, V) and (number,): pick the masked positions of both "
            "first, logits[asked] and labels[asked].",
        ),
        (
            "out of bounds",
            "Labels are −100 where nothing was asked; that is no word. Pick the other positions "
            "first.",
        ),
    ),
    stages=(
        Check("equal networks: only the masked words", _ask_loss(_drawn(WHOLE, alike=True))),
        Check("the teacher answers otherwise", _ask_loss(_drawn(WHOLE, same_states=True))),
        Check("its vectors differ too", _ask_loss(_drawn(WHOLE, ((4,), (1,))))),
        Check("rows with padding", _ask_loss(_drawn(PADDED, ((2, 6), (1, 2))))),
        Check("nothing was masked", _ask_loss(_drawn(((3, 5), (0, 0))))),
        Check("the published weights: 5, 2 and 1", _ask_loss(_published)),
        Check("the student learns", _ask_gradient),
    ),
)
