"""What twelve blocks do to the vectors of a sequence: with residual and LayerNorm, and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.config import BertConfig, published
from course_lib.encoder import Block

DEPTH, TOKENS = 12, 20
KINDS = {  # what is left of a block: (residual, LayerNorm)
    "the block": (True, True),
    "without residual": (False, True),
    "without LayerNorm": (True, False),
    "without both": (False, False),
}
Measured = tuple[float, float, float]


def through_blocks(
    blocks: Sequence[Callable[[Tensor, Tensor], Tensor]], width: int, seed: int = 0
) -> Measured:
    """Size of the output, likeness of its tokens, and the gradient that arrives at the input.

    Size is the standard deviation, likeness the mean cosine between two different tokens. The
    gradient's norm is measured at the input, for the dot product of the first token's output with
    a random vector."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(1, TOKENS, width, generator=generator).requires_grad_()
    end = start
    for block in blocks:
        end = block(end, torch.ones(1, TOKENS))
    tokens = F.normalize(end[0], dim=-1)
    cosines = (tokens @ tokens.T)[~torch.eye(TOKENS, dtype=torch.bool)]
    direction = torch.randn(width, generator=generator)
    (gradient,) = torch.autograd.grad(end[0, 0] @ direction, start)
    return end.std().item(), cosines.mean().item(), gradient.norm().item()


def enlarged(block: nn.Module, times: float) -> nn.Module:
    """The block with the matrices of its dense layers multiplied; biases and norms stay."""
    with torch.no_grad():
        for weight in block.parameters():
            if weight.dim() == 2:
                weight.mul_(times)
    return block


class Altered(nn.Module):
    """The library's block, with or without what goes around its two halves."""

    def __init__(self, config: BertConfig, residual: bool, norm: bool) -> None:
        super().__init__()
        self.block = Block(config)
        self.residual, self.norm = residual, norm

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.around(x, self.block.attention(x, mask)[0], self.block.attention_norm)
        return self.around(x, self.block.feed_forward(x), self.block.output_norm)

    def around(self, x: Tensor, change: Tensor, norm: nn.Module) -> Tensor:
        change = x + change if self.residual else change
        return norm(change) if self.norm else change


@cache
def measured(times: float = 1.0) -> dict[str, Measured]:
    """For each of KINDS: twelve blocks of BERT-tiny's size, their matrices `times` as large."""
    config = published("bert", "tiny", hidden_dropout=0.0, attention_dropout=0.0)
    by_kind = {}
    for kind, (residual, norm) in KINDS.items():
        torch.manual_seed(0)
        blocks = [enlarged(Altered(config, residual, norm), times) for _ in range(DEPTH)]
        by_kind[kind] = through_blocks(blocks, config.hidden_size)
    return by_kind
