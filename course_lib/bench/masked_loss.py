"""The masked-LM loss inside a whole training step: logits at every position, as transformers
computes them, against logits at the selected positions only. Everything else is the same.

float32 and 15% of the positions on both sides; no dropout, our masks, fused AdamW. The vocabulary
is BERT's: the smaller the model, the more of its FLOPs are in the head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.config import BertConfig, encoder_flops, published
from course_lib.kernels.masked_loss import masked_loss, masked_loss_reference
from course_lib.objectives.sequences import Batch
from course_lib.train.optimizers import make_optimizer

from .measuring import Contender, Measured, Step, Table, contenders_of, peak_bytes
from .pretraining import TOKENS, our_batch, our_step, peer_model, selected_loss, update

VOCABULARY, SELECTED = 30_522, 0.15
ROWS = {"base": 4, "mini": 16, "tiny": 32}
GOALS = {"base": 1.15, "mini": 2.0, "tiny": 3.3}


def tables() -> list[Table]:
    """One a size of BERT."""
    return [
        Table(
            f"Masked-LM loss in a training step, {size}, {rows}×{TOKENS} tokens, "
            f"V={VOCABULARY:,}, float32",
            contenders(size, rows),
            partial(remark, size),
        )
        for size, rows in ROWS.items()
    ]


def contenders(size: str, rows: int) -> list[Contender]:
    """transformers as it is, transformers with only the head changed, and the course's step."""
    makes: dict[str, Callable[[], Step]] = {
        "transformers' BertForMaskedLM, all logits": lambda: peer(size, rows, all_logits),
        "… logits at the selected positions only": lambda: peer(size, rows, selected_logits),
        "ours, logits at the selected positions only": lambda: our_step(
            size, "float32", vocab_size=VOCABULARY, count=rows
        ),
    }
    return contenders_of(makes, rows * TOKENS)


def all_logits(model: Any, batch: Batch) -> Tensor:
    """The peer's own loss, labels written out at every position."""
    ids, at = batch.inputs["input_ids"], batch.inputs["predict_at"]
    labels = torch.full((ids.numel(),), -100)
    labels[at] = batch.targets["labels"]
    loss: Tensor = model(input_ids=ids, labels=labels.view_as(ids)).loss
    return loss


def selected_logits(model: Any, batch: Batch) -> Tensor:
    """The peer's encoder and head, with the selected positions taken out between them."""
    ids, at = batch.inputs["input_ids"], batch.inputs["predict_at"]
    return selected_loss(model, ids, at, batch.targets["labels"])


def peer(size: str, rows: int, loss: Callable[[Any, Batch], Tensor]) -> Step:
    model = peer_model(size, 0.0, "sdpa", VOCABULARY)
    optimizer = make_optimizer(model, 1e-4, 0.01)
    visit = 0

    def step() -> None:
        nonlocal visit
        update(model, optimizer, loss(model, our_batch(visit, rows)))
        visit += 1

    return step


def memory_ratio(width: int = 64, tokens: int = 512) -> float:
    """How many times less memory the loss holds at its peak, forward and backward."""
    torch.manual_seed(0)
    hidden = torch.randn(1, tokens, width, requires_grad=True)
    table = torch.randn(VOCABULARY, width) / 8
    labels = torch.where(torch.rand(1, tokens) < SELECTED, 7, -100)

    def held(loss: Callable[..., Tensor]) -> int:
        def head(x: Tensor) -> Tensor:
            return x @ table.T

        return peak_bytes(lambda: torch.autograd.grad(loss(hidden, head, labels), hidden))

    return held(masked_loss_reference) / held(masked_loss)


def masked_only_limit(config: BertConfig, tokens: int = 128, rate: float = 0.15) -> float:
    """FLOPs of a step with the head at all positions over those with it at `rate` of them.

    Forward alone: backward has twice as many of each part."""
    H, V = config.hidden_size, config.vocab_size
    blocks, head = encoder_flops(config, tokens), 2 * tokens * (H * H + H * V)
    return (blocks + head) / (blocks + rate * head)


def remark(size: str, results: Sequence[Measured], on: dict[str, Any]) -> str:
    """What the change of the head alone gives, its goal and limit, and the whole of ours."""
    every, selected, course = (r.median for r in results)
    limit = masked_only_limit(published("bert", size))
    return (
        f"logits at the selected positions / all {selected / every:.2f}× "
        f"(goal {GOALS[size]:.2f}×, limit by FLOPs {limit:.2f}×)   "
        f"ours / transformers' {course / every:.2f}×   "
        f"memory of the loss {memory_ratio():.1f}× less (goal 6.5×)"
    )
