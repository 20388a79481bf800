"""Disentangled attention on a GPU, in Triton: no table of all pairs of tokens is ever in memory.

B batch, A heads, T tokens, D head size, R rows of the position table. Same meaning as
`disentangled_attention_reference`; this module is imported only where Triton is installed.

**What is kept in memory.** Far away, distances share a row: all from `low` down have the first
row, all from some `high` up the last. Between lies the *band*, W distances. Before the loops two
plain matrix products compute the position scores by distance: c2p (B, A, T, W) of every query with
the position keys of the band, p2c (B, A, T, W) of every key with the position queries. Once T
exceeds the furthest distance, W no longer grows, and memory is linear in T. For the backward pass
only the inputs, the output and one number a query are saved; c2p and p2c are computed again.

**The loops.** A program owns a block of tokens and meets all others, a block at a time; a pair of
blocks is a tile. The owner's block walks past three zones: tiles wholly above the band, tiles that
touch it, tiles wholly below. Outside the band the position term of a tile is one number a query
plus one a key, nearly for free; inside, each pair reads its two scores at its distance. Forward,
a program owns queries, and its softmax is online: of all scores met so far it keeps the maximum,
the sum of exponentials and the weighted sum of values, and rescales them when the maximum grows
(Milakov and Gimelshein 2018; Dao et al. 2022).

**Backward, without atomics.** The weights are computed again from the saved number, the base-2
logarithm of a query's sum. One kernel runs twice, with the roles exchanged: owning queries it
gives the gradients of queries and c2p, owning keys those of keys, values and p2c. So every number
written has one owner: within the band a token has one partner a distance, so the tile is stored as
it is; at the two ends many partners share a column, and the owner adds them up in registers. No
two programs write to one place, nothing depends on which comes first, and two runs give the same
bits. Plain products carry the gradients of c2p and p2c to the vectors they were made of. The price
is two products more than a kernel that adds into shared places: 7 instead of 5.

**Dropout** keeps no mask: whether it hits a weight is a function of a seed and the pair's place, so
the backward pass draws the same numbers again (Philox; Salmon et al. 2011)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from .choosing import TRITON_HEAD_SIZES as HEAD_SIZES
from .positions import score_scale

LOG2_E = tl.constexpr(1.4426950408889634)  # exp(x) = 2^(x · log2 e): a GPU takes powers of two

# By bytes a number and whether D > 64, forward and backward: tokens owned, tokens met, warps,
# stages of the loop. At most 99 KB of shared memory; fixed, not tuned at run time, for equal bits.
# Those of 16 bits and D up to 64 are the best of nine and twelve tried on an H100 at 8,192 tokens.
BLOCKS = {
    (2, False): ((64, 32, 4, 3), (64, 64, 4, 3)),
    (2, True): ((64, 32, 8, 2), (64, 32, 8, 2)),
    (4, False): ((32, 32, 4, 1), (32, 16, 4, 1)),
    (4, True): ((32, 32, 8, 1), (32, 16, 8, 1)),
}


def disentangled_attention_triton(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position_key: Tensor | None,
    position_query: Tensor | None,
    rows: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """`disentangled_attention_reference`, every token a query: its output.

    query, key, value (B, A, T, D), position_key and position_query (A, R, D) or None, rows
    (2T − 1,), mask (B, T), 1 at real tokens. Returns (B, A, T, D). float32, float16 or bfloat16,
    sums in float32; the position scores have the format of the inputs, as in the reference. Rows
    may stay on the CPU, which spares a wait for the GPU. Gradients of gradients are not to be had
    (RuntimeError). dropout: of the weights; its seed is drawn from torch's generator of the CPU.
    Raises ValueError for a head size other than 16, 32, 64 or 128, another number format, a
    dropout that is not from 0 to below 1, or shapes that do not fit together."""
    tables = {"position_key": position_key, "position_query": position_query}
    _check(query, tables, {"key": key, "value": value, "rows": rows, "mask": mask})
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout={dropout} was given; expected a number from 0 to below 1.")
    inputs = query, key, value, position_key, position_query, rows, mask, dropout
    return _Disentangled.apply(*inputs)  # type: ignore[no-any-return]


# ---- the kernels ---------------------------------------------------------------------------------


@triton.jit
def _vectors(x, at, T, D: tl.constexpr):
    """Of the tokens `at`: (block, D), zeros beyond the text."""
    return tl.load(x + at[:, None] * D + tl.arange(0, D)[None, :], mask=at[:, None] < T, other=0.0)


@triton.jit
def _columns(query_at, key_at, low, W):
    """In which column of c2p and p2c a pair's score stands."""
    return tl.minimum(tl.maximum(query_at - key_at - low, 0), W - 1)


@triton.jit
def _band(own_table, met_table, own, met, T, low, W, KEYS: tl.constexpr):
    """Position scores of a tile in the band, (own, met).

    Each table is read along its rows, so the second tile is read the other way round and turned."""
    bias = tl.zeros((own.shape[0], met.shape[0]), tl.float32)
    if own_table is not None:
        o, m = own[:, None], met[None, :]
        column = _columns(m, o, low, W) if KEYS else _columns(o, m, low, W)
        bias += tl.load(own_table + o * W + column, mask=o < T, other=0.0).to(tl.float32)
    if met_table is not None:
        o, m = own[None, :], met[:, None]
        column = _columns(m, o, low, W) if KEYS else _columns(o, m, low, W)
        bias += tl.trans(tl.load(met_table + m * W + column, mask=m < T, other=0.0)).to(tl.float32)
    return bias


@triton.jit
def _end(table, at, column, T, W):
    """Of the tokens `at`, their score beyond one end of the band: (block,)."""
    return tl.load(table + at * W + column, mask=at < T, other=0.0).to(tl.float32)


@triton.jit
def _kept(seed, pair, query_at, key_at, T, dropout):
    """Of a tile's weights: 0 where dropout hits one, 1 / (1 − dropout) elsewhere."""
    place = (pair * T + query_at) * T + key_at
    return tl.where(tl.rand(seed, place) >= dropout, 1 / (1 - dropout), 0.0)


@triton.jit
def _zones(first, until, low, W, OWN: tl.constexpr, MET: tl.constexpr, KEYS: tl.constexpr):
    """Where the zones of tiles before `until` begin and end, for the block of owners at `first`.

    Owner's position minus the other's falls as the loop goes on: first it is above the band (every
    pair in one end column), then in it, then below."""
    lowest, highest = low, low + W - 1
    if KEYS:  # a distance is query minus key, here the other's position minus the owner's
        lowest, highest = -highest, -lowest
    end = tl.cdiv(until, MET) * MET
    above = tl.minimum(tl.maximum(first - highest + 1, 0) // MET * MET, end)
    below = tl.minimum(tl.cdiv(tl.maximum(first + OWN - 1 - lowest, 0), MET) * MET, end)
    return above, below, end


@triton.jit(do_not_specialize=["seed"])
def _forward(
    query, key, value, c2p, p2c, visible, lengths, output, log_sum,
    T, low, W, heads, scale, dropout, seed,
    D: tl.constexpr, OWN: tl.constexpr, MET: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """The program (block, batch · A + head) gives the outputs of its block of queries."""
    pair = tl.program_id(1).to(tl.int64)
    vectors, scores = pair * T * D, pair * T * W
    c2p = None if c2p is None else c2p + scores
    p2c = None if p2c is None else p2c + scores
    first = tl.program_id(0) * OWN
    own = first + tl.arange(0, OWN)
    q = _vectors(query + vectors, own, T, D)
    until = T if visible is None else tl.load(lengths + pair // heads)
    if visible is not None:
        visible += pair // heads * T
        hidden_score = tl.where(until > 0, -1e30, 0.0)
        until = tl.where(until > 0, until, T)
    top = tl.full((OWN,), float("-inf"), tl.float32)  # the highest score met, times log2 e
    total = tl.zeros((OWN,), tl.float32)  # of 2^(score − top)
    sums = tl.zeros((OWN, D), tl.float32)
    above, below, end = _zones(first, until, low, W, OWN, MET, False)
    for zone in tl.static_range(3):
        start = 0 if zone == 0 else (above if zone == 1 else below)
        stop = above if zone == 0 else (below if zone == 1 else end)
        column = W - 1 if zone == 0 else 0
        own_end = tl.zeros((OWN,), tl.float32)
        if zone != 1 and c2p is not None:
            own_end = _end(c2p, own, column, T, W)
        for begin in range(start, stop, MET):
            met = begin + tl.arange(0, MET)
            m = met[None, :]
            k = _vectors(key + vectors, met, T, D)
            s = tl.dot(q, tl.trans(k), input_precision="ieee")
            if zone == 1:
                s += _band(c2p, p2c, own, met, T, low, W, False)
            else:
                s += own_end[:, None]
                if p2c is not None:
                    s += _end(p2c, met, column, T, W)[None, :]
            s *= scale * LOG2_E
            if visible is not None:
                s = tl.where(tl.load(visible + m, mask=m < T, other=0) != 0, s, hidden_score)
            s = tl.where(m < T, s, float("-inf"))
            higher = tl.maximum(top, tl.max(s, 1))
            p = tl.exp2(s - higher[:, None])
            shrink = tl.exp2(top - higher)
            total = total * shrink + tl.sum(p, 1)
            if DROPS:
                p *= _kept(seed, pair, own[:, None], m, T, dropout)
            v = _vectors(value + vectors, met, T, D)
            sums = tl.dot(p.to(v.dtype), v, sums * shrink[:, None], input_precision="ieee")
            top = higher
    tl.store(log_sum + pair * T + own, top + tl.log2(total), mask=own < T)
    addresses = vectors + own[:, None] * D + tl.arange(0, D)[None, :]
    sums = (sums / total[:, None]).to(output.dtype.element_ty)
    tl.store(output + addresses, sums, mask=own[:, None] < T)


@triton.jit(do_not_specialize=["seed"])
def _backward(
    own_vectors, own_partner, met_vectors, met_partner, own_table, met_table, visible, lengths,
    log_sum, row_dot, to_own, to_value, to_table,
    T, low, W, heads, scale, dropout, seed,
    D: tl.constexpr, OWN: tl.constexpr, MET: tl.constexpr, DROPS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of owners.

    Owning queries: vectors are query and key, partners the outputs' gradient and value,
    tables c2p and p2c. Owning keys (KEYS): all exchanged. Either way the product of the partners
    is the gradient of the weights. row_dot (B, A, T): of each query, output times its gradient."""
    pair = tl.program_id(1).to(tl.int64)
    vectors, scores = pair * T * D, pair * T * W
    if own_table is not None:
        own_table += scores
        to_table += scores
    if met_table is not None:
        met_table += scores
    log_sum += pair * T
    row_dot += pair * T
    first = tl.program_id(0) * OWN
    own = first + tl.arange(0, OWN)
    o = own[:, None]
    x = _vectors(own_vectors + vectors, own, T, D)
    x_partner = _vectors(own_partner + vectors, own, T, D)
    own_sum = tl.load(log_sum + o, mask=o < T, other=float("inf"))  # beyond T: weights 0
    own_dot = tl.load(row_dot + o, mask=o < T, other=0.0)
    until = T if visible is None else tl.load(lengths + pair // heads)
    if visible is not None:
        visible += pair // heads * T
        own_real = tl.load(visible + o, mask=o < T, other=0) != 0
        hidden_score = tl.where(until > 0, -1e30, 0.0)
        until = tl.where(until > 0, until, T)
        until = tl.where(first < until, T, 0) if KEYS else until  # keys never visited get zeros
    result = tl.zeros((OWN, D), tl.float32)
    found_value = tl.zeros((OWN, D), tl.float32)
    in_first = tl.zeros((OWN,), tl.float32)  # what the two end columns of to_table get
    in_last = tl.zeros((OWN,), tl.float32)
    above, below, end = _zones(first, until, low, W, OWN, MET, KEYS)
    for zone in tl.static_range(3):
        start = 0 if zone == 0 else (above if zone == 1 else below)
        stop = above if zone == 0 else (below if zone == 1 else end)
        column = W - 1 if (zone == 0) != KEYS else 0
        own_end = tl.zeros((OWN,), tl.float32)
        if zone != 1 and own_table is not None:
            own_end = _end(own_table, own, column, T, W)
        for begin in range(start, stop, MET):
            met = begin + tl.arange(0, MET)
            m = met[None, :]
            y = _vectors(met_vectors + vectors, met, T, D)
            y_partner = _vectors(met_partner + vectors, met, T, D)
            s = tl.dot(x, tl.trans(y), input_precision="ieee")
            if zone == 1:
                s += _band(own_table, met_table, own, met, T, low, W, KEYS)
            else:
                s += own_end[:, None]
                if met_table is not None:
                    s += _end(met_table, met, column, T, W)[None, :]
            s *= scale * LOG2_E
            if visible is not None:
                real = own_real if KEYS else tl.load(visible + m, mask=m < T, other=0) != 0
                s = tl.where(real, s, hidden_score)
            if KEYS:
                of_query = tl.load(log_sum + m, mask=m < T, other=float("inf"))
                met_dot = tl.load(row_dot + m, mask=m < T, other=0.0)
            else:
                s = tl.where(m < T, s, float("-inf"))
                of_query = own_sum
                met_dot = own_dot
            p = tl.exp2(s - of_query)
            if DROPS:
                q_at, k_at = (m, o) if KEYS else (o, m)
                kept = _kept(seed, pair, q_at, k_at, T, dropout)
            if KEYS:
                mixed = (p * kept if DROPS else p).to(y.dtype)
                found_value = tl.dot(mixed, y_partner, found_value, input_precision="ieee")
            ds = tl.dot(x_partner, tl.trans(y_partner), input_precision="ieee")
            if DROPS:
                ds *= kept
            ds = p * (ds - met_dot) * scale
            if visible is not None:
                ds = tl.where(real, ds, 0.0)
            result = tl.dot(ds.to(y.dtype), y, result, input_precision="ieee")
            if own_table is not None:
                if zone == 1:
                    at = _columns(m, o, low, W) if KEYS else _columns(o, m, low, W)
                    in_first += tl.sum(tl.where(at == 0, ds, 0.0), 1)
                    in_last += tl.sum(tl.where(at == W - 1, ds, 0.0), 1)
                    alone = (at > 0) & (at < W - 1) & (o < T) & (m < T)
                    tl.store(to_table + o * W + at, ds.to(to_table.dtype.element_ty), mask=alone)
                elif (zone == 0) != KEYS:
                    in_last += tl.sum(ds, 1)
                else:
                    in_first += tl.sum(ds, 1)
    addresses = vectors + o * D + tl.arange(0, D)[None, :]
    tl.store(to_own + addresses, result.to(to_own.dtype.element_ty), mask=o < T)
    if KEYS:
        found_value = found_value.to(to_value.dtype.element_ty)
        tl.store(to_value + addresses, found_value, mask=o < T)
    if own_table is not None:
        kind = to_table.dtype.element_ty
        tl.store(to_table + own * W, in_first.to(kind), mask=own < T)
        tl.store(to_table + own * W + W - 1, in_last.to(kind), mask=own < T)


# ---- around them ---------------------------------------------------------------------------------


class _Disentangled(torch.autograd.Function):
    """The outputs, with gradients of query, key, value and both position tables."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *vectors, position_key, position_query, rows, mask, dropout = arguments
        query, key, value = (x.contiguous() for x in vectors)
        batch, heads, tokens, size = query.shape
        columns, low = _find_band(rows, tokens, query.device)
        c2p = _by_distance(query, position_key, columns)
        p2c = _by_distance(key, position_query, columns)
        visible = lengths = None
        if mask is not None:
            visible = (mask != 0).to(query.device, torch.int8).contiguous()
            # Keys after a text's last real one are not visited. Without a real one, 0, all are,
            # and all scores are alike, so that the weights are uniform.
            lengths = (visible * torch.arange(1, tokens + 1, device=query.device)).amax(1).int()
        output = torch.empty_like(query)
        log_sum = query.new_empty((batch, heads, tokens), dtype=torch.float32)
        scale = 1 / score_scale(size, position_key, position_query)
        seed = int(torch.randint(2**31 - 1, ())) if dropout else 0
        ctx.numbers = tokens, low, len(columns), heads, scale, float(dropout), seed
        tensors = query, key, value, c2p, p2c, visible, lengths, output, log_sum
        _launch(_forward, query, tensors, ctx.numbers)
        tables = position_key, position_query, columns
        ctx.save_for_backward(query, key, value, *tables, visible, lengths, output, log_sum)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, position_key, position_query, columns, *rest = ctx.saved_tensors
        visible, lengths, output, log_sum = rest
        upstream = upstream.contiguous()
        row_dot = (upstream.float() * output.float()).sum(-1)
        c2p = _by_distance(query, position_key, columns)
        p2c = _by_distance(key, position_query, columns)
        to_query, to_key, to_value = (torch.empty_like(x) for x in (query, key, value))
        # Zeros: not every token has a partner at every distance.
        to_c2p, to_p2c = (None if x is None else torch.zeros_like(x) for x in (c2p, p2c))
        of_queries = visible, lengths, log_sum, row_dot
        owned: Any = query, upstream, key, value, c2p, p2c, *of_queries, to_query, None, to_c2p
        _launch(_backward, query, owned, ctx.numbers, KEYS=False)
        owned = key, value, query, upstream, p2c, c2p, *of_queries, to_key, to_value, to_p2c
        _launch(_backward, query, owned, ctx.numbers, KEYS=True)
        to_position_key = _from_distances(to_c2p, query, position_key, columns, to_query)
        to_position_query = _from_distances(to_p2c, key, position_query, columns, to_key)
        return to_query, to_key, to_value, to_position_key, to_position_query, None, None, None


def _launch(kernel: Any, like: Tensor, tensors: Any, numbers: Any, **how: bool) -> None:
    batch, heads, tokens, size = like.shape
    own, met, warps, stages = BLOCKS[like.itemsize, size > 64][kernel is _backward]
    grid = triton.cdiv(tokens, own), batch * heads
    with torch.cuda.device_of(like):
        kernel[grid](*tensors, *numbers, D=size, OWN=own, MET=met, DROPS=numbers[-2] > 0,  # dropout
                     num_warps=warps, num_stages=stages, **how)  # fmt: skip


def _find_band(rows: Tensor, tokens: int, device: torch.device) -> tuple[Tensor, int]:
    """The row of each distance in the band (W,), and the first of these distances.

    W is rounded up to a multiple of 16, which matrix products like; the row of what is added at
    the end is the last one, so nothing changes."""
    rows = rows.cpu()
    changes = (rows[1:] != rows[:-1]).nonzero().flatten()
    first, last = (int(changes[0]), int(changes[-1]) + 1) if len(changes) else (0, 0)
    width = triton.cdiv(last - first + 1, 16) * 16
    columns = rows[(first + torch.arange(width)).clamp(max=last)]
    return columns.to(device), first - (tokens - 1)


def _by_distance(x: Tensor, table: Tensor | None, columns: Tensor) -> Tensor | None:
    """Every token's score with the position of every distance of the band: (B, A, T, W)."""
    return None if table is None else x @ table[:, columns].transpose(-1, -2)


def _from_distances(
    to_scores: Tensor | None, x: Tensor, table: Tensor | None, columns: Tensor, to_x: Tensor
) -> Tensor | None:
    """Backward of `_by_distance`: adds to to_x in place, returns the table's gradient (A, R, D)."""
    if to_scores is None or table is None:
        return None
    to_x += to_scores @ table[:, columns]
    by_distance = (to_scores.transpose(-1, -2) @ x).sum(0, dtype=torch.float32)  # (A, W, D)
    # Several distances to a row: a product with zeros and ones adds them in a fixed order.
    of_row = F.one_hot(columns, table.shape[1]).T.to(by_distance)  # (R, W)
    return (of_row @ by_distance).to(table.dtype)


def _check(query: Tensor, tables: dict[str, Tensor | None], others: dict[str, Any]) -> None:
    """Raise ValueError for what the kernels cannot compute, or would compute wrongly."""
    if query.dim() != 4 or query.shape[3] not in HEAD_SIZES:
        raise ValueError(
            f"query of shape {tuple(query.shape)} was given; expected (B, A, T, D) with D one of "
            f"{HEAD_SIZES}. disentangled_attention takes any D."
        )
    batch, heads, tokens, size = query.shape
    all_alike = tuple(query.shape)
    expected = {"rows": (2 * tokens - 1,), "mask": (batch, tokens)}
    expected |= dict.fromkeys(("key", "value"), all_alike)
    types = {query.dtype}
    for name, x in ((n, x) for n, x in {**tables, **others}.items() if x is not None):
        required = expected[name] if name in expected else (heads, *x.shape[1:2], size)
        if tuple(x.shape) != required:
            raise ValueError(
                f"{name} of shape {tuple(x.shape)} was given; a query of shape {all_alike} "
                f"expects {required}."
            )
        if name not in ("rows", "mask"):
            types.add(x.dtype)
    if len(types) > 1 or query.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise ValueError(
            f"vectors in {', '.join(sorted(map(str, types)))} were given; expected one of float32, "
            "float16 and bfloat16 for all. Convert with .to(...)."
        )
