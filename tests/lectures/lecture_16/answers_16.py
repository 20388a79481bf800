"""Answers to the exercises of lecture 16 as other hands write them, for test_exercises.py."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.family.modernbert import ModernBertConfig, modernbert_encoder
from course_lib.kernels.rotary import rotary_reference

# ---------------------------------------------------------------- 16.1


def rotated_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def rotary(query, key, base, start=0, half=rotated_half, layout=lambda x: x.repeat(1, 2), power=2):
    """As transformers writes it: x · cos + (x with its halves exchanged, one negative) · sin."""
    tokens, size = query.shape[1], query.shape[3]
    speed = base ** -(power * torch.arange(size // 2).double() / size)
    angle = layout(torch.outer(torch.arange(start, start + tokens).double(), speed))[:, None]
    return tuple(x * angle.cos() + half(x) * angle.sin() for x in (query, key))


def rotary_by_matrices(query, key, base):
    """A matrix D x D for each position, with numpy's sines."""
    size = query.shape[3]
    matrices = []
    for position in range(query.shape[1]):
        turn = np.zeros((size, size))
        for i in range(size // 2):
            angle, j = position / base ** (2 * i / size), i + size // 2
            turn[i, i] = turn[j, j] = np.cos(angle)
            turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
        matrices.append(turn)
    turns = torch.tensor(np.array(matrices))
    return tuple(torch.einsum("tij,btaj->btai", turns, x) for x in (query, key))


def rotary_of_neighbours(query, key, base):
    """The paper's pairs, as complex numbers."""
    size = query.shape[3]
    speed = 1 / base ** (torch.arange(0, size, 2).double() / size)
    angle = torch.outer(torch.arange(query.shape[1]).double(), speed)[:, None]
    turn = torch.polar(torch.ones_like(angle), angle)
    pairs = (torch.view_as_complex(x.unflatten(-1, (-1, 2))) for x in (query, key))
    return tuple(torch.view_as_real(x * turn).flatten(-2) for x in pairs)


# ---------------------------------------------------------------- 16.2


def geglu(x, expand, contract, plain_width, act=F.gelu, width=lambda w: w * 2 // 3):
    inner = contract.shape[1]
    first, gate = F.linear(x, expand[:inner]), F.linear(x, expand[inner:])
    return F.linear(act(first) * gate, contract), width(plain_width)


def geglu_by_erf(x, expand, contract, plain_width):
    inner, gate = torch.einsum("bth,fh->btf", x, expand).tensor_split(2, dim=-1)
    inner = inner * (1 + torch.erf(inner / math.sqrt(2))) / 2
    width = max(f for f in range(plain_width + 1) if 3 * f <= 2 * plain_width)
    return (contract @ (inner * gate)[..., None])[..., 0], width


def untransposed(x, expand, contract, plain_width):
    inner, gate = (x @ expand.T).chunk(2, dim=-1)
    return (F.gelu(inner) * gate) @ contract, 2 * plain_width // 3


# ---------------------------------------------------------------- 16.3


def window_in_loops(mask, window, reach=lambda w: w // 2):
    texts, tokens = mask.shape
    return [
        [[abs(i - j) <= reach(window) and bool(mask[b, j]) for j in range(tokens)]
         for i in range(tokens)]
        for b in range(texts)
    ]  # fmt: skip


def window_by_bands(mask, window):
    """A band of ones: what is neither too far up nor too far down."""
    tokens, reach = mask.shape[1], window // 2
    band = torch.ones(tokens, tokens).triu(-reach).tril(reach)
    return (band * mask[:, None]).bool()


def additive(mask, window):
    seen = torch.tensor(window_in_loops(mask, window))
    return torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)


# ---------------------------------------------------------------- 16.4


def by_index(x, mask, layer):
    """As FlashAttention's own helper does it: indices into the flattened batch, int32 lengths."""
    at = mask.flatten().nonzero().squeeze(1)
    ends = F.pad(mask.sum(1, dtype=torch.int32).cumsum(0, dtype=torch.int32), (1, 0))
    tokens = x.flatten(0, 1)[at]
    back = x.new_zeros(x.shape[0] * x.shape[1], x.shape[2])
    return tokens, ends, back.index_copy(0, at, layer(tokens, ends)).view_as(x)


def by_text(x, mask, layer):
    tokens = torch.cat([text[real.bool()] for text, real in zip(x, mask, strict=True)])
    ends = [0, *accumulate(mask.sum(1).tolist())]
    back = torch.zeros_like(x).masked_scatter(mask.bool()[..., None], layer(tokens, ends))
    return tokens, ends, back


def with_rows(x, mask, layer):
    """x[mask] without a comparison: rows 0 and 1."""
    tokens, ends, _ = by_text(x, mask, layer)
    back = torch.zeros_like(x)
    back[mask] = layer(tokens, ends)
    return tokens, ends, back


def named(layer):
    return lambda tokens, ends: layer(tokens=tokens, cumulative=ends)


# ---------------------------------------------------------------- 16.5


def pairs_by_counting(tokens, window):
    reach = window // 2
    return sum(min(t, reach) + 1 + min(tokens - 1 - t, reach) for t in range(tokens))


def cost(tokens, hidden, layers, every, window, *, pair=4, count=pairs_by_counting, whole=None):
    """By bisection: the fraction that a stack takes never grows with the length."""
    whole = sum(layer % every == 0 for layer in range(layers)) if whole is None else whole
    flops = pair * hidden * (whole * tokens**2 + (layers - whole) * count(tokens, window))

    def half(length):
        pairs = whole * length**2 + (layers - whole) * count(length, window)
        return 2 * pairs <= layers * length**2

    if 2 * whole >= layers:
        return flops, None
    low, high = 0, 1
    while not half(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if half(middle) else (middle, high)
    return flops, high


def cost_by_formula(tokens, hidden, layers, every, window):
    """The larger root of a quadratic, rounded up."""
    flops, _ = cost(tokens, hidden, layers, every, window)
    whole = -(-layers // every)
    a, local, reach = layers / 2 - whole, layers - whole, window // 2
    if a <= 0:
        return flops, None
    b, c = -local * (2 * reach + 1), local * reach * (reach + 1)
    root = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
    return flops, math.ceil(root - 1e-9)


# ---------------------------------------------------------------- 16.6


def parameters(vocab, hidden, layers, inner):
    config = ModernBertConfig(
        vocab_size=vocab, hidden_size=hidden, num_layers=layers, intermediate_size=inner,
        num_heads=1, rotary=False, max_positions=1, pad_token_id=0,
    )  # fmt: skip
    with torch.device("meta"):
        model = modernbert_encoder(config)
    whole = sum(p.numel() for p in model.parameters()) - hidden  # without the position table
    return whole, hidden * (hidden + 1) + vocab


def by_norms(vocab, hidden, layers, inner):
    """All norms are counted together: two a block, less one, and two outside the blocks."""
    norms = 2 * layers - 1 + 2
    blocks = layers * (4 * hidden**2 + hidden * 2 * inner + inner * hidden)
    return vocab * hidden + blocks + norms * hidden, hidden**2 + hidden + vocab


def encoder_off_by(change):
    """change(V, H, L, F): what is too many in the encoder."""
    return lambda *sizes: (by_norms(*sizes)[0] + change(*sizes), by_norms(*sizes)[1])


# ---------------------------------------------------------------- 16.7


def grouped_by_heads(query, key, value, mask, of=lambda head, n: head // n):
    """A head after the other, with torch's own attention."""
    n = query.shape[2] // key.shape[2]
    heads = []
    for head in range(query.shape[2]):
        g = of(head, n) % key.shape[2]
        heads.append(F.scaled_dot_product_attention(
            query[:, :, head], key[:, :, g], value[:, :, g], attn_mask=mask[:, None].bool()
        ))  # fmt: skip
    return torch.stack(heads, dim=2)


def grouped_by_torch(query, key, value, mask):
    """As torch has it, by a switch."""
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    hidden = mask[:, None, None].bool()
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden, enable_gqa=True)
    return out.transpose(1, 2)


RIGHT: dict[str, list[Any]] = {
    "16.1": [rotary, rotary_by_matrices,
             lambda q, k, base: rotary_reference(q, k, base, q.shape[1]),
             lambda q, k, base: torch.stack(rotary(q, k, base)),
             lambda q, k, base: rotary_reference(q.float(), k.float(), base, q.shape[1])],
    "16.2": [geglu, geglu_by_erf],
    "16.3": [window_in_loops, window_by_bands, lambda *case: window_by_bands(*case).int()],
    "16.4": [by_index, by_text, lambda x, mask, layer: by_text(x, mask, named(layer))],
    "16.5": [cost, cost_by_formula],
    "16.6": [parameters, by_norms],
    "16.7": [grouped_by_heads, grouped_by_torch],
}  # fmt: skip
WRONG: dict[str, list[tuple[Any, str]]] = {
    "16.1": [
        (rotary_of_neighbours, "You pair neighbours"),
        (lambda q, k, base: rotary(q, k, base, layout=lambda x: x),
         "They are combined with one *half* of the features"),
    ],
    "16.7": [
        (lambda *case: grouped_by_heads(*case, of=lambda head, n: head), "Neighbours must share"),
        (lambda q, k, v, mask: grouped_by_torch(q, k, v, torch.ones_like(mask)), "read padding"),
    ],
    "16.2": [
        (lambda x, e, c, w: geglu(x, e.roll(len(e) // 2, 0), c, w), "GELU is on the *second* half"),
        (lambda x, e, c, w: geglu(x, e, c, w, torch.sigmoid), "that is GLU"),
        (untransposed, "has a row for each *output*"),
        (lambda x, e, c, w: geglu(x, e, c, w, width=lambda w: w - w // 4), "you have"),
    ],
    "16.3": [
        (lambda m, w: window_by_bands(m, 2 * w), "on *either* side"),
        (additive, "of True and False"),
        (lambda m, w: window_by_bands(m, w) & m[:, :2].bool(), "It says of each *key*"),
    ],
    "16.4": [
        (lambda x, m, layer: by_index(x, 1 - m, layer), "Your list holds the padding"),
        (with_rows, "has one row for each real token"),
        (lambda x, m, layer: (*by_text(x, m, layer)[:2], x + by_text(x, m, layer)[2]), "you have"),
        (lambda x, m, layer: (by_text(x, m, layer)[0], m.sum(1), by_text(x, m, layer)[2]),
         "These are the lengths"),
    ],
    "16.5": [
        (lambda *case: cost(*case, pair=2), "This is half of it"),
        (lambda *case: cost(*case, count=lambda t, w: t * min(t, 2 * (w // 2) + 1)),
         "you count them whole"),
        (lambda *case: (cost(*case)[0], cost(*case)[1] or 0), "expected None"),
    ],
    "16.6": [
        (encoder_off_by(lambda V, H, L, F: H), "You count two norms in every block"),
        (encoder_off_by(lambda V, H, L, F: -2 * H), "you have"),
        (encoder_off_by(lambda V, H, L, F: H + 4 * L * H), "two mistakes:"),
    ],
}  # fmt: skip
