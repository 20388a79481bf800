"""Drawing one word a position from a model's distribution: ELECTRA's corruption.

N positions, V vocabulary. A draw is a function of the scores and of one random number a position,
so both twins agree, but for numbers that fall on a boundary within rounding."""

from __future__ import annotations

import torch
from torch import Tensor


def sample_tokens_reference(logits: Tensor, shares: Tensor) -> Tensor:
    """One position at a time: logits (N, V), shares (N,) from 0 up to, not including, 1 -> ids
    (N,).

    The words' probabilities stand side by side on a line from 0 to 1; the share points at one."""
    drawn = []
    for scores, share in zip(logits.double(), shares.double(), strict=True):
        ends = scores.softmax(dim=-1).cumsum(dim=-1)  # where each word's piece of the line ends
        drawn.append(min(int((ends <= share).sum()), len(scores) - 1))
    return torch.tensor(drawn, dtype=torch.int64, device=logits.device)


def sample_tokens(logits: Tensor, shares: Tensor) -> Tensor:
    """The same for all positions at once; the line's length is left as it comes, and the share is
    stretched to it."""
    scores = logits if logits.dtype == torch.float64 else logits.float()
    ends = (scores - scores.amax(dim=-1, keepdim=True)).exp_().cumsum_(dim=-1)  # (N, V)
    wanted = shares.to(ends.dtype)[:, None] * ends[:, -1:]
    return torch.searchsorted(ends, wanted, right=True).squeeze(1).clamp_(max=ends.shape[1] - 1)
