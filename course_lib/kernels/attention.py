"""Scaled dot-product attention (Vaswani et al. 2017, equation 1), readable and fast.

Dimensions: B batch, A heads, T tokens, D head size; fewer queries than keys are fine. Everything
here is a pure function of tensors."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .choosing import ATTENTION, ATTENTION_PATHS, check_path, choose


def attention_scores(
    query: Tensor, key: Tensor, mask: Tensor | None = None, hidden_score: float | None = None
) -> Tensor:
    """Attention scores of every query with every key, before the softmax.

    query, key: (B, A, T, D). mask: (B, T), 1 at real tokens and 0 at padding; it hides *keys*. Or
    (B, T, T): row t is the mask of query t, as `causal_mask` makes them.
    Returns (B, A, T, T); a hidden key gets hidden_score, or where that is None the smallest finite
    number, so a row of hidden keys only becomes uniform instead of not-a-number.
    """
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])  # (B, A, T, T)
    if mask is None:
        return scores
    hidden = _for_all_heads(mask) == 0
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(hidden, lowest if hidden_score is None else hidden_score)


def causal_mask(mask: Tensor) -> Tensor:
    """The padding's mask (B, T), and of it for each query only what does not stand behind it: (B,
    T, T)."""
    tokens = mask.shape[1]
    back = torch.ones(tokens, tokens, dtype=torch.long, device=mask.device).tril()
    return back * mask[:, None, :]


def _for_all_heads(mask: Tensor) -> Tensor:
    """(B, T) -> (B, 1, 1, T), the same for all queries; (B, T, T) -> (B, 1, T, T)."""
    return mask[:, None, None, :] if mask.dim() == 2 else mask[:, None]


def attention_reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    hidden_score: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention in three lines: returns (output (B, A, T, D), weights (B, A, T, T), scores (B, A,
    T, T))."""
    scores = attention_scores(query, key, mask, hidden_score)
    weights = scores.softmax(dim=-1)
    return F.dropout(weights, dropout) @ value, weights, scores


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    path: str = "auto",
) -> Tensor:
    """The same mixture, without keeping weights: (B, A, T, D).

    Shapes as in `attention_reference`. path: "reference", "plain" (two products around a softmax),
    "fused" (torch's kernel), or "auto" for the rules of choosing.py. Raises ValueError for another.
    """
    check_path(path, ATTENTION_PATHS)
    if path == "auto":
        path = choose(ATTENTION, query, key.shape[-2], dropout)
    if path == "reference":
        return attention_reference(query, key, value, mask, dropout)[0]
    if path == "plain":
        return _plain(query, key, value, mask, dropout)
    keep = None if mask is None else _additive(mask, query.dtype)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep, dropout_p=dropout)


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """0 at real keys, the smallest finite number at hidden ones: (B, 1, 1 or T, T)."""
    return (_for_all_heads(mask) == 0).to(dtype) * torch.finfo(dtype).min


def _plain(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """Two batched matrix products around a softmax; the scale is applied to the smaller side."""
    batch, heads, queries, width = query.shape
    scaled = (query * (1 / math.sqrt(width))).flatten(0, 1)  # (B·A, T, D)
    scores = torch.bmm(scaled, key.flatten(0, 1).transpose(1, 2))  # (B·A, T, T)
    if mask is not None:
        shaped = scores.view(batch, heads, queries, -1) + _additive(mask, scores.dtype)
        scores = shaped.flatten(0, 1)
    weights = scores.softmax(dim=-1).to(value.dtype)
    if dropout:
        weights = F.dropout(weights, dropout)
    return torch.bmm(weights, value.flatten(0, 1)).view(batch, heads, queries, width)
