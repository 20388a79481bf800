"""Attention within a window: a token sees those at most window // 2 positions away on either side
(Beltagy et al. 2020, section 3.1; the local layers of ModernBERT, Warner et al. 2024).

B batch, A heads, T tokens, D head size. The reference computes all T² scores and hides most; its
twin computes those of each block of queries with three blocks of keys, 3·T·window/2 in all."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import attention, attention_reference

SMALLEST = 16  # queries in a block, so that a narrow window still makes products worth the name


def window_mask(like: Tensor, window: int, mask: Tensor | None = None) -> Tensor:
    """Which key each query sees: (B, T, T), true within the window and at real tokens.

    like: (B, T, …), for its sizes. mask (B, T): 1 at real tokens, 0 at padding. Raises ValueError
    for a window below 1."""
    batch, tokens = like.shape[:2]
    position = torch.arange(tokens, device=like.device)
    near = _near(position, position, window)  # (T, T)
    return near.expand(batch, -1, -1) if mask is None else near & (mask != 0)[:, None]


def window_mask_and_self(like: Tensor, window: int, mask: Tensor | None = None) -> Tensor:
    """`window_mask`, in which a padding sees itself as well.

    Beyond the window of all real tokens it would see nothing, and there torch's fused attention,
    right forwards, gives T times the gradient."""
    itself = torch.eye(like.shape[1], dtype=torch.bool, device=like.device)
    return window_mask(like, window, mask) | itself


def _near(query_at: Tensor, key_at: Tensor, window: int) -> Tensor:
    if window < 1:
        raise ValueError(
            f"window={window!r} was given; expected at least 1: then a token sees itself alone."
        )
    return (query_at[:, None] - key_at).abs() <= window // 2


def sliding_window_attention_reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: int,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Attention with a mask: query, key, value (B, A, T, D), mask (B, T) -> (B, A, T, D).

    A padding's row may mean nothing. Raises ValueError for a window below 1."""
    seen = window_mask(query.transpose(1, 2), window, mask)
    return attention_reference(query, key, value, seen, dropout)[0]


def sliding_window_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: int,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    path: str = "auto",
) -> Tensor:
    """The same at real tokens, at a cost that grows with T as the window's does, not with T².

    A padding sees itself as well (see `window_mask_and_self`).

    path: how a block is attended to, as in `attention`, or "reference". A text of up to four blocks
    is attended to as a whole: there blocks were slower on a processor. So is one of any length in a
    model that is exported, whose graph knows no length."""
    if path == "reference":
        return sliding_window_attention_reference(query, key, value, window, mask, dropout)
    batch, tokens = query.shape[0], query.shape[2]
    size = max(window // 2, SMALLEST)  # C, tokens in a block
    if torch.compiler.is_exporting() or tokens <= 4 * size:
        seen = window_mask_and_self(query.transpose(1, 2), window, mask)
        return attention(query, key, value, seen, dropout, path)
    count = -(-tokens // size)  # n
    behind = count * size - tokens

    def blocks(x: Tensor) -> Tensor:  # (B, A, T, D) -> (B, n, A, C, D)
        return F.pad(x, (0, 0, 0, behind)).unflatten(2, (count, size)).transpose(1, 2)

    def neighbours(x: Tensor) -> Tensor:  # (B, n, …, C, D) -> (B, n, …, 3C, D)
        edged = F.pad(x, (0, 0) * (x.dim() - 2) + (1, 1))  # a block of zeros before and behind
        return torch.cat([edged[:, :-2], edged[:, 1:-1], edged[:, 2:]], dim=-2)

    real = query.new_ones(batch, tokens, dtype=torch.bool) if mask is None else mask != 0
    real = neighbours(blocks(real[:, None, :, None]))[:, :, 0, :, 0]  # (B, n, 3C)
    position = torch.arange(-size, 2 * size, device=query.device)  # of keys, from a block's first
    near = _near(position[size:-size], position, window)  # (C, 3C)
    itself = position[size:-size, None] == position
    seen = near & (real[:, :, None] | itself)  # (B, n, C, 3C)
    result = attention(
        blocks(query).flatten(0, 1),
        neighbours(blocks(key)).flatten(0, 1),
        neighbours(blocks(value)).flatten(0, 1),
        seen.flatten(0, 1),
        dropout,
        path,
    )  # (B·n, A, C, D)
    return result.unflatten(0, (batch, count)).transpose(1, 2).flatten(2, 3)[:, :, :tokens]
