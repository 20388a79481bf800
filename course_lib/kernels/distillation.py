"""How far a student's answers are from its teacher's, at a temperature (Hinton et al. 2015).

N positions, V vocabulary, H and H' the widths of student and teacher. The twins begin at the hidden
states: the reference holds both tables of logits (N, V), the fast one a few rows of them."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .upcast import upcast_type

CHUNK_BYTES = 2**26  # of both networks' logits together, 64 MiB
TILE_BYTES = 2**20  # of one network's logits: small enough for the processor's own memory


def soft_target_loss(
    student_logits: Tensor, teacher_logits: Tensor, temperature: float = 1.0
) -> Tensor:
    """T² · KL(teacher ‖ student), both softened by T: the mean over N positions, in nats.

    Both logits are (N, V), computed in float32, or float64 where one is. Where T is large against
    the logits, the KL's gradient shrinks like 1/T²; the factor makes up for it. No gradient reaches
    the teacher. Zero for no positions. Raises ValueError for unequal shapes, or T not above 0."""
    if student_logits.dim() != 2 or student_logits.shape != teacher_logits.shape:
        raise ValueError(
            f"student_logits of shape {tuple(student_logits.shape)} and teacher_logits of shape "
            f"{tuple(teacher_logits.shape)} were given; expected (N, V) both: select the positions "
            "first, the same of both networks, which must share one vocabulary."
        )
    check_temperature(temperature)
    dtype = upcast_type(student_logits, teacher_logits)
    student = (student_logits.to(dtype) / temperature).log_softmax(-1)
    teacher = (teacher_logits.detach().to(dtype) / temperature).log_softmax(-1)
    teacher = teacher.clamp(min=torch.finfo(dtype).min)  # a logit of -inf: 0 · log 0 is 0
    total = F.kl_div(student, teacher, reduction="sum", log_target=True)
    return temperature**2 * total / max(1, len(student))


def distillation_loss_reference(
    student_hidden: Tensor,
    student_table: Tensor,
    student_bias: Tensor,
    teacher_hidden: Tensor,
    teacher_table: Tensor,
    teacher_bias: Tensor,
    temperature: float = 1.0,
) -> Tensor:
    """soft_target_loss of the logits that both heads' last step gives: the mean over N positions.

    student_hidden (N, H), student_table (V, H), student_bias (V,), and the same of the teacher with
    H'. The logits come in the number format of the states they are computed from. Raises ValueError
    for shapes or formats that do not fit together, or T not above 0."""
    student = student_hidden, student_table, student_bias
    teacher = teacher_hidden, teacher_table, teacher_bias
    _check(student, teacher, temperature)
    with torch.no_grad():
        expected = F.linear(*teacher)  # (N, V)
    return soft_target_loss(F.linear(*student), expected, temperature)


def distillation_loss(
    student_hidden: Tensor,
    student_table: Tensor,
    student_bias: Tensor,
    teacher_hidden: Tensor,
    teacher_table: Tensor,
    teacher_bias: Tensor,
    temperature: float = 1.0,
) -> Tensor:
    """The same a chunk of positions at a time, so that no (N, V) is ever held.

    A chunk's logits are gone when the next one's come, so the gradients are computed at once and
    wait for the backward pass, which only scales them. bfloat16: products in bfloat16, all else in
    float32, and a chunk's part of the table's gradient is rounded to bfloat16 before it is
    added. Gradients of gradients are not to be had (RuntimeError)."""
    student = student_hidden, student_table, student_bias
    teacher = teacher_hidden, teacher_table, teacher_bias
    _check(student, teacher, temperature)
    if not len(student_hidden):  # nothing to chunk
        return distillation_loss_reference(*student, *teacher, temperature)
    learning = torch.is_grad_enabled()
    return _Chunked.apply(*student, *(x.detach() for x in teacher), temperature, learning)  # type: ignore[no-any-return]


class _Chunked(torch.autograd.Function):
    """The loss with its gradients for student_hidden, student_table and student_bias."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        table: Tensor,
        bias: Tensor,
        teacher_hidden: Tensor,
        teacher_table: Tensor,
        teacher_bias: Tensor,
        temperature: float,
        learning: bool,
    ) -> Tensor:
        count, dtype = len(hidden), upcast_type(hidden, teacher_hidden)
        needs_grad = [learning and need for need in ctx.needs_input_grad[:3]]
        size = _chunk_size(hidden, teacher_hidden, len(table))
        # What is added up over chunks is added up in float32 or wider.
        kept = hidden.dtype if count <= size else dtype
        to_hidden = torch.empty_like(hidden) if needs_grad[0] else None
        to_table: Tensor | None = None
        to_bias = torch.zeros_like(bias, dtype=dtype) if needs_grad[2] else None
        ours, theirs = (x.new_empty((size, len(table))) for x in (hidden, teacher_hidden))
        total = hidden.new_zeros((), dtype=dtype)
        for first in range(0, count, size):
            part = hidden[first : first + size]
            s, t = ours[: len(part)], theirs[: len(part)]
            _scores(part, table, bias, temperature, out=s)
            _scores(teacher_hidden[first : first + size], teacher_table, teacher_bias,
                    temperature, out=t)  # fmt: skip
            total += _compare(s, t, overwrite=any(needs_grad))
            # s is now the gradient with respect to the student's logits, but for T/N.
            if to_hidden is not None:
                torch.mm(s, table, out=to_hidden[first : first + size])
            if needs_grad[1]:
                to_table = _plus_product(to_table, s.T, part, kept)
            if to_bias is not None:
                to_bias += s.sum(0, dtype=dtype)
        result = to_hidden, to_table, to_bias
        ctx.save_for_backward(*(None if x is None else x.to(hidden.dtype) for x in result))
        ctx.factor = temperature / count
        return temperature**2 * total / count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        # Not in place: with retain_graph=True they are asked for again.
        factor = upstream * ctx.factor
        scaled = [None if x is None else x * factor for x in ctx.saved_tensors]
        return (*scaled, None, None, None, None, None)


def _scores(hidden: Tensor, table: Tensor, bias: Tensor, temperature: float, out: Tensor) -> None:
    """(hidden · tableᵀ + bias) / T into `out` (rows, V)."""
    torch.addmm(bias, hidden, table.T, beta=1 / temperature, alpha=1 / temperature, out=out)


def _plus_product(total: Tensor | None, a: Tensor, b: Tensor, kept: torch.dtype) -> Tensor:
    """total + a·b, in the format `kept`; in place once there is a total."""
    if total is None:
        return (a @ b).to(kept)
    return total.addmm_(a, b) if a.dtype == kept else total.add_(a @ b)


def _compare(student: Tensor, teacher: Tensor, overwrite: bool) -> Tensor:
    """The sum of KL(teacher ‖ student) over rows of logits, both (rows, V), already divided by T.

    overwrite: put softmax(student) − softmax(teacher) into `student`."""
    dtype = upcast_type(student, teacher)
    rows = max(1, TILE_BYTES // (student.shape[1] * dtype.itemsize))
    if student.is_cuda:
        rows = max(1, len(student))  # many small steps would only wait for each other
    total = student.new_zeros((), dtype=dtype)
    for ours, theirs in zip(student.split(rows), teacher.split(rows), strict=True):
        log_p, log_q = (x.log_softmax(-1, dtype=dtype) for x in (ours, theirs))
        gap = log_q.clamp_(min=torch.finfo(dtype).min) - log_p  # as in soft_target_loss
        q = log_q.exp_()
        total += torch.dot(q.view(-1), gap.view(-1))
        if overwrite:
            torch.sub(log_p.exp_(), q, out=ours)
    return total


def _chunk_size(student: Tensor, teacher: Tensor, words: int) -> int:
    """Positions a chunk: as many as CHUNK_BYTES hold, and all chunks about the same."""
    most = max(1, CHUNK_BYTES // (words * (student.itemsize + teacher.itemsize)))
    chunks = max(1, math.ceil(len(student) / most))
    return max(1, math.ceil(len(student) / chunks))


def check_temperature(temperature: float) -> None:
    """Raise ValueError unless this is a finite number above 0."""
    if not 0 < temperature < math.inf:
        raise ValueError(
            f"temperature={temperature!r} was given; expected a finite number above 0. 1 leaves "
            "the answers as they are, more softens them."
        )


def _check(
    student: tuple[Tensor, Tensor, Tensor],
    teacher: tuple[Tensor, Tensor, Tensor],
    temperature: float,
) -> None:
    """Raise ValueError unless both are (N, width), (V, width), (V,) with the same N and V."""
    check_temperature(temperature)
    for who, (hidden, table, bias) in (("student", student), ("teacher", teacher)):
        shapes = [tuple(x.shape) for x in (hidden, table, bias)]
        fits = [len(shape) for shape in shapes] == [2, 2, 1]
        if not fits or shapes[0][1] != shapes[1][1] or shapes[1][0] != shapes[2][0]:
            raise ValueError(
                f"{who}_hidden, {who}_table and {who}_bias of shapes "
                f"{', '.join(map(str, shapes))} were given; expected (N, H), (V, H) and (V,)."
            )
        if len({hidden.dtype, table.dtype, bias.dtype}) > 1:
            raise ValueError(
                f"{who}_hidden, {who}_table and {who}_bias in {hidden.dtype}, {table.dtype} and "
                f"{bias.dtype} were given; expected one number format. Convert with .to(...)."
            )
    ours, theirs = ((len(hidden), len(table)) for hidden, table, _ in (student, teacher))
    if ours != theirs:
        raise ValueError(
            f"a student with N, V = {ours} and a teacher with N, V = {theirs} were given; expected "
            "the same positions and the same vocabulary."
        )
