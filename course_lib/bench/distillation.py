"""The distillation loss over a whole vocabulary, forward and backward: torch's own functions on all
logits, the course's reference, and its chunked twin that never holds them all.

Both heads' last product is inside what is timed, as the chunked loss contains it. Memory is counted
in a step of its own, beside the inputs and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.kernels.distillation import distillation_loss, distillation_loss_reference
from course_lib.train.precision import FORMATS

from .measuring import (
    Contender,
    Measured,
    Step,
    Table,
    against_the_limit,
    contenders_of,
    peak_bytes,
    precisions,
)

POSITIONS = (1_024, 4_096)
VOCABULARY, WIDTH = 30_522, 768  # of student and teacher: DistilBERT and BERT-base
TEMPERATURE = 2.0
COMPILED = "torch's, compiled: log_softmax and nn.KLDivLoss"
Loss = Callable[..., Tensor]


def tables(compiled: bool = True) -> list[Table]:
    """One a number of positions, in each number format worth using here. Without `compiled`,
    torch.compile is left out."""
    return [_table(count, precision, compiled) for precision in precisions() for count in POSITIONS]


def _table(count: int, precision: str, compiled: bool = True) -> Table:
    compared = contenders(count, precision, compiled)
    return Table(
        f"Distillation loss, forward and backward, {count:,} positions, V={VOCABULARY:,}, "
        f"H={WIDTH}, {precision}",
        compared,
        partial(remark, compared, precision),
    )


def contenders(count: int, precision: str, compiled: bool = False) -> list[Contender]:
    """Peer, reference and chunked; a "token" is a position."""
    losses: dict[str, Loss] = {
        "torch's log_softmax and nn.KLDivLoss": peer_loss,
        **({COMPILED: torch.compile(peer_loss)} if compiled else {}),
        "ours, all logits: soft_target_loss": distillation_loss_reference,
        "ours, in chunks: distillation_loss": distillation_loss,
    }
    makes = {name: partial(training, loss, count, precision) for name, loss in losses.items()}
    return contenders_of(makes, count)


def peer_loss(
    student_hidden: Tensor,
    student_table: Tensor,
    student_bias: Tensor,
    teacher_hidden: Tensor,
    teacher_table: Tensor,
    teacher_bias: Tensor,
    temperature: float,
) -> Tensor:
    """The loss as torch's manual composes it; logits in bfloat16 are widened first."""
    student = F.linear(student_hidden, student_table, student_bias).float()
    with torch.no_grad():
        teacher = F.linear(teacher_hidden, teacher_table, teacher_bias).float()
    measure = nn.KLDivLoss(reduction="batchmean", log_target=True)
    p, q = F.log_softmax(student / temperature, -1), F.log_softmax(teacher / temperature, -1)
    return temperature**2 * measure(p, q)


def training(loss: Loss, count: int, precision: str) -> Step:
    """Forward and backward, down to the states, the table and the bias of the student."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(FORMATS[precision])

    def side() -> list[Tensor]:
        # Logits with a spread of about 2, as a trained head's.
        return [draw(count, WIDTH), draw(VOCABULARY, WIDTH) * 2 / WIDTH**0.5, draw(VOCABULARY)]

    student, teacher = [x.requires_grad_() for x in side()], side()

    def step() -> None:
        for x in student:
            x.grad = None
        loss(*student, *teacher, TEMPERATURE).backward()  # type: ignore[no-untyped-call]

    return step


def remark(
    compared: Sequence[Contender],
    precision: str,
    results: Sequence[Measured],
    on: dict[str, Any],
) -> str:
    """Memory of each, what the chunks win over the peer, and how near they are to the limit: four
    matrix products, the student's one forward and two backward, the teacher's forward. What a
    compiled loss allocates inside cannot be seen."""
    seen = [contender for contender in compared if contender.name != COMPILED]
    peaks = [peak_bytes(contender.make()) for contender in seen]
    peer, chunked = results[0].median, results[-1].median
    flops = 4 * 2 * VOCABULARY * WIDTH
    memory = "   ".join(
        f"{c.name} {peak / 1e6:,.0f} MB" for c, peak in zip(seen, peaks, strict=True)
    )
    return (
        f"peak memory: {memory}\n"
        f"in chunks / torch's: time {chunked / peer:.2f}× less, memory {peaks[0] / peaks[-1]:.1f}× "
        f"less   {against_the_limit(chunked * flops / 1e9, precision, on)}"
    )
