"""Rotary position embedding (Su et al. 2021, section 3.2): a vector is turned by where it stands,
so that the product of a query and a key depends on how far apart they stand, and on nothing else.

T tokens, A heads, D head size. Features i and i + D/2 are the two coordinates of one point in a
plane; at position p it turns by the angle p · base^(−2i/D). Which two make a pair is a convention:
this one is transformers'; the paper's pairs neighbours. Angles are float32 whatever the vectors
are, as the released models were trained: at position 8,191 that is right to 0.001."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .upcast import upcast_type

ROUND = 128  # lengths of tables, so that texts of many lengths share a few


def frequencies(size: int, base: float, device: torch.device | None = None) -> Tensor:
    """The angle between neighbouring positions, of each pair of features: (D/2,) float32. Raises
    ValueError for an odd D."""
    if size % 2:
        raise ValueError(
            f"a head size of {size} was given; expected an even one: features turn in pairs."
        )
    return 1 / base ** (torch.arange(0, size, 2, device=device).float() / size)


def rotary_reference(
    query: Tensor,
    key: Tensor,
    base: float,
    tokens: int,
    query_at: Tensor | None = None,
    key_at: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Query and key turned by their positions: each pair of features is a complex number, times
    e^(i·angle).

    query (…, K, A, D), key (…, T, A, D). tokens: positions are 0 to tokens − 1. query_at (…, K) and
    key_at (…, T) say which each vector has, whole numbers; None: 0, 1, 2 and so on. Returns both,
    of the shapes and number formats given. Raises ValueError for an odd D."""

    def turned(x: Tensor, at: Tensor | None) -> Tensor:
        at = torch.arange(tokens, device=x.device) if at is None else at
        angle = at[..., None, None].float() * frequencies(x.shape[-1], base, x.device)
        dtype = upcast_type(x)
        point = torch.complex(*x.to(dtype).chunk(2, dim=-1))  # (…, T, A, D/2)
        point = point * torch.complex(angle.cos().to(dtype), angle.sin().to(dtype))
        return torch.cat([point.real, point.imag], dim=-1).to(x.dtype)

    return turned(query, query_at), turned(key, key_at)


def rotary(
    query: Tensor,
    key: Tensor,
    base: float,
    tokens: int,
    query_at: Tensor | None = None,
    key_at: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The same: sines and cosines are looked up, the result is written where it stays, and nothing
    is stored for the backward pass, which turns the gradient back."""

    def turned(x: Tensor, at: Tensor | None) -> Tensor:
        dtype = upcast_type(x)
        exporting = torch.compiler.is_exporting()  # tokens is a symbol then: nothing can be kept
        make, turn = (_tables.__wrapped__, _turned) if exporting else (_tables, _Turned.apply)
        rows = tokens if exporting else -(-tokens // ROUND) * ROUND
        tables = make(x.device, dtype, rows, x.shape[-1], base)
        cos, sin = (table[:tokens] if at is None else table[at] for table in tables)
        return turn(x.to(dtype), cos[..., None, :], sin[..., None, :]).to(x.dtype)

    return turned(query, query_at), turned(key, key_at)


@lru_cache(maxsize=32)
def _tables(
    device: torch.device, dtype: torch.dtype, tokens: int, size: int, base: float
) -> tuple[Tensor, Tensor]:
    """Cosine of every angle, twice side by side (T, D), and sine (T, D/2)."""
    with torch.inference_mode(False):  # kept, and perhaps needed for training next
        position = torch.arange(tokens, device=device).float()
        angle = position[:, None] * frequencies(size, base, device)
        return angle.cos().repeat(1, 2).to(dtype), angle.sin().to(dtype)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As below, in operations that ONNX has."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second * sin, first * sin], dim=-1)


class _Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        turned = x * cos
        (first, second), (one, other) = x.chunk(2, dim=-1), turned.chunk(2, dim=-1)
        one.addcmul_(second, sin, value=-1)
        other.addcmul_(first, sin)
        return turned

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _Turned.apply(gradients[0], cos, -sin), None, None
