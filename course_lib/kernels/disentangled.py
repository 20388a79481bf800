"""Disentangled attention (He et al. 2020, equation 4), readable and fast.

B batch, A heads, T tokens, D head size, R rows of the position table, K query tokens. A score is
the sum of three products: content with content, content with position, position with content."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .attention import attention
from .choosing import DISENTANGLED, DISENTANGLED_PATHS, check_path, choose, installed
from .positions import row_table, score_scale
from .upcast import upcast_type

# A tile of the skewed path is this many queries (or keys) of as many heads as these bytes of
# scores hold: it stays in the processor's own memory from the first product to the last.
TILE = 128
CHUNK_BYTES = 2**21


class ScoreParts(NamedTuple):
    """The three scores of every pair, before they are scaled and added; each (B, A, K, T)."""

    content: Tensor
    content_to_position: Tensor | None
    position_to_content: Tensor | None


def score_parts(
    query: Tensor,
    key: Tensor,
    position_key: Tensor | None,
    position_query: Tensor | None,
    rows: Tensor,
    at: Tensor | None = None,
) -> ScoreParts:
    """The terms of equation 4, each computed by the gather that the equation states.

    query (B, A, K, D), key (B, A, T, D). position_key, position_query: (A, R, D), or None for a
    model without that term. rows (2T − 1,): the row of each distance, see `position_rows`; best on
    the CPU, where no GPU is waited for. at (B, K): positions of the query tokens, if not all tokens
    are queries.

    Token i looks up distance i − j both times, as the authors' code and transformers do. The
    paper's third term is written with δ(j, i), the distance seen from the other end. Had this term
    a table to itself, only the order of its rows would change (and its far end). But both terms
    read one table: which distances share a vector differs, and with shared projections that is
    another model, unless the table is symmetric."""
    batch, heads, queries, _ = query.shape
    delta = row_table(rows.to(query.device))  # (T, T)
    delta = delta[None].expand(batch, -1, -1) if at is None else delta[at]  # (B, K, T)
    delta = delta[:, None].expand(batch, heads, queries, key.shape[2])  # (B, A, K, T)
    content = query @ key.transpose(-1, -2)  # (B, A, K, T)
    to_position = to_content = None
    if position_key is not None:
        by_row = query @ position_key.transpose(-1, -2)  # (B, A, K, R)
        to_position = by_row.gather(-1, delta)
    if position_query is not None:
        by_row = key @ position_query.transpose(-1, -2)  # (B, A, T, R)
        to_content = by_row.gather(-1, delta.transpose(-1, -2)).transpose(-1, -2)
    return ScoreParts(content, to_position, to_content)


def _sum(parts: ScoreParts) -> Tensor:
    return reduce(torch.add, (part for part in parts if part is not None))


def disentangled_attention_reference(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor | None,
    position_query: Tensor | None,
    rows: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    at: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Three scores, one softmax: returns (output (B, A, K, D), weights (B, A, K, T), scores (B, A,
    K, T)).

    Shapes as in `score_parts`. mask (B, T): 1 at real tokens, 0 at padding; it hides *keys*. Under
    autocast too it computes in the format of what it is given, as all paths do."""
    with torch.autocast(query.device.type, enabled=False):
        parts = score_parts(query, key, position_key, position_query, rows, at)
        scores = _sum(parts) / score_scale(query.shape[-1], position_key, position_query)
        if mask is not None:
            hidden = (mask == 0)[:, None, None, :]  # (B, 1, 1, T)
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        return F.dropout(weights, dropout) @ value, weights, scores


def disentangled_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor | None,
    position_query: Tensor | None,
    rows: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    at: Tensor | None = None,
    path: str = "auto",
) -> Tensor:
    """The same mixture, without keeping weights: (B, A, K, D).

    Shapes as in `disentangled_attention_reference`. path: "auto" for the rules of choosing.py, or
    "reference", "gathered", "skewed" (on one device or the other) or "triton" (NVIDIA GPUs). The
    last two do not know `at`: there "gathered" does their work. A model that is exported holds the
    reference, in operations that other programs have.
    Raises ValueError for another path, and for "triton" where it is not installed or the tensors
    are not on a GPU."""
    check_path(path, DISENTANGLED_PATHS)
    if torch.compiler.is_exporting():
        path = "reference"
    if path == "auto":
        path = choose(DISENTANGLED, query, key.shape[2], dropout)
    if path == "triton" and query.device.type != "cuda":
        raise ValueError(
            f"kernels='triton' was given for tensors on {query.device.type!r}; expected tensors on "
            "an NVIDIA GPU. Move the model there, or use kernels='auto'."
        )
    if path == "triton" and not installed("triton"):
        raise ValueError(
            "kernels='triton' was given, and the package triton is not installed. On Linux `pip "
            "install triton` brings it; kernels='auto' works without."
        )
    if position_key is None and position_query is None:  # nothing is left but content
        return attention(query, key, value, mask, dropout)
    inputs = (query, key, value, position_key, position_query, rows, mask)
    if path == "reference":
        return disentangled_attention_reference(*inputs, dropout, at)[0]
    with torch.autocast(query.device.type, enabled=False):
        if path == "skewed" and at is None:
            return _skewed(*inputs, dropout)
        if path == "triton" and at is None:
            from .disentangled_triton import disentangled_attention_triton

            return disentangled_attention_triton(*inputs, dropout)
        return _gathered(*inputs, dropout, at)


def _gathered(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor | None,
    position_query: Tensor | None,
    rows: Tensor,
    mask: Tensor | None,
    dropout: float,
    at: Tensor | None,
) -> Tensor:
    """The reference with less work: only rows that occur are multiplied, and the scale is applied
    to what is small."""
    scale = 1 / score_scale(query.shape[-1], position_key, position_query)
    first, last = int(rows[0]), int(rows[-1])
    reachable = slice(first, last + 1)
    if position_key is not None:
        position_key = position_key[:, reachable]
    if position_query is not None:
        position_query = position_query[:, reachable] * scale
    parts = score_parts(query * scale, key, position_key, position_query, rows - first, at)
    scores = _sum(parts)
    if mask is not None:
        hidden = (mask == 0)[:, None, None, :]  # (B, 1, 1, T)
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    return F.dropout(scores.softmax(dim=-1), dropout) @ value


# ---- skewed by strides ---------------------------------------------------------------------------
#
# Multiply a token with the table *by distance*, W = 2T − 1 rows: row r of the product (T, W) holds
# its score with every distance, and the token at t stands in column t − r + T − 1. One token on,
# the same column belongs to the next distance. So the score of (r, t) lies at r·(W − 1) + t + T − 1
# of the memory: a matrix (T, T) of strides (W − 1, 1) over the product, without one number moved.
# A tile of n tokens meets T + n − 1 distances only.


def _skewed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor | None,
    position_query: Tensor | None,
    rows: Tensor,
    mask: Tensor | None,
    dropout: float,
) -> Tensor:
    scale = 1 / score_scale(query.shape[-1], position_key, position_query)
    # A query looks up i − j, which falls as the key j moves on: its table in opposite order.
    to_position = _by_distance(position_key, rows.flip(0))
    to_content = _by_distance(position_query, rows)
    hidden = None if mask is None else mask == 0
    if hidden is not None and not hidden.any():
        hidden = None
    inputs = (
        (query * scale).contiguous(),
        key.contiguous(),
        value.contiguous(),
        to_position,
        None if to_content is None else to_content * scale,
    )
    dropped = _Dropped(dropout, int(torch.randint(2**62, ()))) if dropout else None
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs):
        return _Skewed.apply(*inputs, hidden, dropped)  # type: ignore[no-any-return]
    return _forward(*inputs, hidden, dropped, None)


def _by_distance(table: Tensor | None, rows: Tensor) -> Tensor | None:
    """The row of each distance: (A, R, D) -> (A, 2T − 1, D)."""
    if table is None:
        return None
    heads, _, width = table.shape
    flat = F.embedding(rows, table.transpose(0, 1).flatten(1))  # (2T − 1, A·D)
    return flat.view(-1, heads, width).transpose(0, 1).contiguous()


def _chunks(query: Tensor) -> Iterator[tuple[int, slice]]:
    """A batch row and some of its heads at a time."""
    batch, heads, tokens, _ = query.shape
    size = max(1, min(heads, CHUNK_BYTES // (tokens * tokens * query.itemsize)))
    for row in range(batch):
        for head in range(0, heads, size):
            yield row, slice(head, min(heads, head + size))


class _Dropped(NamedTuple):
    """Which weights are dropped: drawn from a seed, chunk by chunk in their order, so that the
    backward pass draws the same again and nothing is kept in memory for it."""

    rate: float
    seed: int

    def factors(self, like: Tensor) -> Iterator[Tensor]:
        """For each of `_chunks`, (h, T, T) as `like` has them: 0, or 1 / (1 − rate)."""
        generator = torch.Generator(like.device).manual_seed(self.seed)
        scale = 1 / (1 - self.rate) if self.rate < 1 else 0.0
        tokens, buffer = like.shape[2], None
        for _, some in _chunks(like):
            if buffer is None:
                buffer = like.new_empty(some.stop - some.start, tokens, tokens)
            drawn = buffer[: some.stop - some.start]
            yield drawn.bernoulli_(1 - self.rate, generator=generator).mul_(scale)


def _tiles(tokens: int) -> list[slice]:
    return [slice(i, min(tokens, i + TILE)) for i in range(0, tokens, TILE)]


def _window(tile: slice, tokens: int) -> slice:
    """The rows of a table by distance that a tile meets: T + n − 1 of them."""
    return slice(tokens - tile.stop, 2 * tokens - 1 - tile.start)


def _skew(product: Tensor, tokens: int) -> Tensor:
    """(h, n, T + n − 1), contiguous -> the view (h, n, T) of it, token by token."""
    heads, n, width = product.shape
    return product.as_strided(
        (heads, n, tokens), (n * width, width - 1, 1), product.storage_offset() + n - 1
    )


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    to_position: Tensor | None,
    to_content: Tensor | None,
    hidden: Tensor | None,
    dropped: _Dropped | None,
    weights: Tensor | None,
) -> Tensor:
    """The mixture (B, A, T, D), and the weights, none dropped, into `weights` (B, A, T, T) if
    given.

    All products run in the format of the query. Buffers are made once and used again: asking for
    memory costs more here than filling it."""
    batch, heads, tokens, width = query.shape
    output = query.new_empty(batch, tokens, heads, width).transpose(1, 2)  # as the next layer reads
    most, n = next(_chunks(query))[1].stop, min(TILE, tokens)
    from_keys = query.new_empty(most, tokens, tokens)  # the third term
    if to_content is None:
        from_keys.zero_()
    products = query.new_empty(most * n * (tokens + n - 1))
    scores = query.new_empty(most * n * tokens)

    def with_distances(x: Tensor, table: Tensor, tile: slice) -> Tensor:
        window = table[:, _window(tile, tokens)]
        shape = (*x.shape[:2], window.shape[1])
        product = products[: math.prod(shape)].view(shape)
        return _skew(torch.bmm(x, window.transpose(1, 2), out=product), tokens)

    factors = None if dropped is None else dropped.factors(query)
    for row, some in _chunks(query):
        q, k, v = query[row, some], key[row, some], value[row, some]
        factor = None if factors is None else next(factors)  # (h, T, T)
        if to_content is not None:
            for tile in _tiles(tokens):
                part = with_distances(k[:, tile], to_content[some], tile)  # (h, n keys, T)
                from_keys[: len(q), :, tile] = part.transpose(1, 2)
        for tile in _tiles(tokens):
            queries, before = q[:, tile], from_keys[: len(q), tile]
            s = scores[: before.numel()].view(before.shape)  # (h, n, T)
            if to_position is None:
                s.copy_(before)
            else:
                torch.add(before, with_distances(queries, to_position[some], tile), out=s)
            s.baddbmm_(queries, k.transpose(1, 2))
            if hidden is not None:
                s.masked_fill_(hidden[row], torch.finfo(s.dtype).min)
            torch.softmax(s, -1, out=s)
            if weights is not None:
                weights[row, some, tile] = s
            if factor is not None:
                s.mul_(factor[:, tile])
            output[row, some, tile] = torch.bmm(s, v)
    return output


class _Skewed(torch.autograd.Function):
    """The mixture with its gradients by hand: torch's own for a view by strides adds up number by
    number what here is written back through the same view, followed by a product."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        to_position: Tensor | None,
        to_content: Tensor | None,
        hidden: Tensor | None,
        dropped: _Dropped | None,
    ) -> Tensor:
        weights = query.new_empty(*query.shape[:3], query.shape[2])
        output = _forward(query, key, value, to_position, to_content, hidden, dropped, weights)
        ctx.dropped = dropped
        ctx.save_for_backward(query, key, value, to_position, to_content, weights, output, hidden)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(upstream.device.type, enabled=False):
            inputs = (*ctx.saved_tensors, upstream, ctx.dropped)
            return (*_backward(*inputs), None, None)


def _backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    to_position: Tensor | None,
    to_content: Tensor | None,
    weights: Tensor,
    output: Tensor,
    hidden: Tensor | None,
    upstream: Tensor,
    dropped: _Dropped | None,
) -> tuple[Tensor | None, ...]:
    """Gradients of the five inputs; what is added up over the batch is added up in float32."""
    batch, heads, tokens, width = query.shape
    dtype = upcast_type(query)
    to_query, to_key, to_value = (
        query.new_empty(batch, tokens, heads, width).transpose(1, 2) for _ in range(3)
    )
    tables = [
        None if t is None else torch.zeros_like(t, dtype=dtype) for t in (to_position, to_content)
    ]
    most, n = next(_chunks(query))[1].stop, min(TILE, tokens)
    of_scores = query.new_empty(most, tokens, tokens)
    products = query.new_zeros(most * n * (tokens + n - 1))
    shaped = products[:0]

    def back(part: Tensor, x: Tensor, table: Tensor, total: Tensor, tile: slice) -> Tensor:
        """Through the product of x (h, n, D) with a tile's window of the table: adds to the
        table's gradient, returns that of x. part (h, n, T): the gradient of the skewed view."""
        nonlocal shaped
        window = _window(tile, tokens)
        shape = (*x.shape[:2], window.stop - window.start)
        if shaped.shape != shape:  # what lies outside the view is zero, and stays so
            shaped = products[: math.prod(shape)].zero_().view(shape)
        _skew(shaped, tokens).copy_(part)
        total[:, window] += torch.bmm(shaped.transpose(1, 2), x)
        return torch.bmm(shaped, table[:, window])

    factors = None if dropped is None else dropped.factors(query)
    for row, some in _chunks(query):
        q, k, v = query[row, some], key[row, some], value[row, some]
        w, above = weights[row, some], upstream[row, some].contiguous()
        ds = of_scores[: len(q)]  # (h, T, T)
        torch.bmm(above, v.transpose(1, 2), out=ds)
        mixed = w  # the weights that values were mixed by
        if factors is not None:
            factor = next(factors)
            ds.mul_(factor)
            mixed = w * factor
        inner = (above * output[row, some]).sum(-1, keepdim=True, dtype=dtype)  # (h, T, 1)
        ds.sub_(inner.to(ds.dtype)).mul_(w)
        if hidden is not None:  # without one real key the weights are uniform, and nobody's doing
            ds.masked_fill_(hidden[row], 0)
        to_value[row, some] = torch.bmm(mixed.transpose(1, 2), above)
        dq, dk = torch.bmm(ds, k), torch.bmm(ds.transpose(1, 2), q)
        for tile in _tiles(tokens):
            if to_position is not None and tables[0] is not None:
                table, total = to_position[some], tables[0][some]
                dq[:, tile] += back(ds[:, tile], q[:, tile], table, total, tile)
            if to_content is not None and tables[1] is not None:
                table, total = to_content[some], tables[1][some]
                part = ds[:, :, tile].transpose(1, 2)
                dk[:, tile] += back(part, k[:, tile], table, total, tile)
        to_query[row, some], to_key[row, some] = dq, dk
    result = [None if t is None else t.to(query.dtype) for t in tables]
    return to_query, to_key, to_value, *result
