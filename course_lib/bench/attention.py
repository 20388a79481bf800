"""Attention by itself, at the lengths where one way overtakes the other: the measurement behind the
rules for "plain" and "fused" in kernels/choosing.py.

Heads of BERT-base, no mask. The peers are the two functions that transformers' BERT
calls: "eager" and "sdpa"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.attention import attention
from course_lib.train.precision import FORMATS

from .measuring import Contender, Measured, Step, Table, contenders_of, precisions

LENGTHS = (32, 64, 128, 256, 512)
TOKENS = 4_096  # in a batch, whatever the length
HEADS, HEAD_SIZE = 12, 64
KINDS = {  # whether gradients are wanted, and dropout
    "forward": (False, 0.0),
    "forward and backward": (True, 0.0),
    "forward and backward with dropout": (True, 0.1),
}
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def tables() -> list[Table]:
    """One a number format and length: forward only, then forward and backward, without dropout and
    with it."""
    return [
        Table(
            f"Attention alone, {what}, {TOKENS // tokens}×{tokens} tokens, {precision}",
            contenders(tokens, precision, *settings),
            remark,
            turn=0.1,
        )
        for precision in precisions()
        for what, settings in KINDS.items()
        for tokens in LENGTHS
    ]


def contenders(
    tokens: int, precision: str, training: bool, dropout: float = 0.0
) -> list[Contender]:
    """transformers' two, and ours by each path."""
    ways: dict[str, Attend] = {
        "transformers' eager attention": peer("eager", dropout),
        "transformers' sdpa attention": peer("sdpa", dropout),
        "ours, plain": partial(attention, dropout=dropout, path="plain"),
        "ours, fused": partial(attention, dropout=dropout, path="fused"),
    }
    makes = {name: partial(working, way, tokens, precision, training) for name, way in ways.items()}
    return contenders_of(makes, TOKENS)


def peer(kind: str, dropout: float) -> Attend:
    """transformers' function, called with its module's few settings."""
    if kind == "eager":
        from transformers.models.bert.modeling_bert import eager_attention_forward as function
    else:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward as function
    module = SimpleNamespace(training=dropout > 0, is_causal=False)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scaling = HEAD_SIZE**-0.5
        output, _ = function(module, query, key, value, None, scaling=scaling, dropout=dropout)
        return output.transpose(1, 2)

    return attend


def working(attend: Attend, tokens: int, precision: str, training: bool) -> Step:
    """One call, and where wanted the gradients of query, key and value."""
    generator = torch.Generator().manual_seed(0)
    size = (TOKENS // tokens, tokens, HEADS, HEAD_SIZE)
    inputs = [
        torch.randn(size, generator=generator)
        .to(FORMATS[precision])
        .transpose(1, 2)  # (B, A, T, D), laid out as a projection leaves it
        .requires_grad_(training)
        for _ in range(3)
    ]
    upstream = torch.ones_like(inputs[0])

    def step() -> None:
        if not training:
            with torch.inference_mode():
                attend(*inputs)
            return
        for x in inputs:
            x.grad = None
        attend(*inputs).backward(upstream)  # type: ignore[no-untyped-call]

    return step


def remark(results: Sequence[Measured], on: dict[str, Any]) -> str:
    """Which path is the quicker one, and how the quicker one stands to the best peer."""
    *peers, plain, fused = (r.median for r in results)
    quicker = "plain" if plain > fused else "fused"
    return (
        f"{quicker} is quicker, {max(plain, fused) / min(plain, fused):.2f}×   "
        f"ours / transformers' best {max(plain, fused) / max(peers):.2f}×"
    )
