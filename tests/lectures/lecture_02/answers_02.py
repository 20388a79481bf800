"""What other hands might write for the exercises of lecture 02, right and wrong."""

from __future__ import annotations

# mypy: ignore-errors
import math
import random

import numpy as np
import torch
import torch.nn.functional as F

# ---------------------------------------------------------------- 02.1


def count(c, *, tables=True, norms=True, biases=True, heads=False, own=1):
    """Layer by layer, from pairs (in, out), with things left out or added."""
    H, V = c.hidden_size, c.vocab_size
    block = [(H, H)] * (3 * own + 1) + [(H, c.intermediate_size), (c.intermediate_size, H)]
    linear = c.num_layers * block + [(H, H)] + [(H, H), (H, 2)] * heads
    total = sum(m * n + biases * n for m, n in linear) + (2 * H + V) * heads
    total += norms * 2 * H * (1 + 2 * c.num_layers)
    return total + (V + c.max_positions * tables + c.type_vocab_size * tables) * H


def count_adding(c):
    total = 0
    for size in (c.vocab_size, c.max_positions, c.type_vocab_size, 2):
        total += size * c.hidden_size
    for _ in range(c.num_layers):
        total += 4 * c.hidden_size**2 + 2 * c.hidden_size * c.intermediate_size
        total += 9 * c.hidden_size + c.intermediate_size
    return total + c.hidden_size * (c.hidden_size + 1)


# ---------------------------------------------------------------- 02.2


def attention(*, divide=math.sqrt, dim=-1, hide="keys", after=False, far=-1e9):
    """Attention written another way than the solution, with one thing changed."""

    def answer(q, k, v, attention_mask):
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / divide(q.shape[-1])
        shapes = {"keys": (len(q), 1, 1, -1), "queries": (len(q), 1, -1, 1)}
        mask = attention_mask.reshape(shapes.get(hide, shapes["keys"]))
        penalty = {None: 0 * mask, "inverted": mask * far}.get(hide, (1 - mask) * far)
        weights = (scores if after else scores + penalty).softmax(dim)
        return (weights * (penalty == 0) if after else weights) @ v

    return answer


def attention_nan(q, k, v, attention_mask):
    keep = attention_mask[:, None, None, :] * attention_mask[:, None, :, None]
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(keep == 0, -math.inf)
    return scores.softmax(-1) @ v


def attention_zeroing(q, k, v, attention_mask):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (scores * attention_mask[:, None, None, :]).softmax(-1) @ v


def attention_late(q, k, v, attention_mask):
    weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
    return (weights + (1 - attention_mask[:, None, None, :]) * -1e9) @ v


def attention_looped(q, k, v, attention_mask):
    out = np.zeros(tuple(q.shape))
    for b, a, t in np.ndindex(*q.shape[:3]):
        real = attention_mask[b].bool()
        w = np.exp((k[b, a, real] @ q[b, a, t] / q.shape[-1] ** 0.5).numpy())
        out[b, a, t] = (w / w.sum()) @ v[b, a, real].numpy()
    return out


def attention_ready_made(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m[:, None, None, :].bool())


RIGHT = {
    "02.1": [count, count_adding, lambda c: np.int64(count(c))],
    "02.2": [attention(), attention(far=-1e4), attention_looped],
}
WRONG = {
    "02.1": [
        (lambda c: count(c, biases=False), "the biases of the linear layers"),
        (lambda c: count(c, norms=False), "every LayerNorm"),
        (lambda c: count(c, norms=False, biases=False), "the biases"),
        (lambda c: count(c, tables=False), "the position embeddings"),
        (lambda c: count(c, heads=True), "The MLM and NSP heads were counted"),
        (lambda c: count(c, own=c.num_heads), "Each head has its own H×H matrices"),
        (lambda c: count(c) + count(c, heads=True) - count(c) + c.vocab_size * c.hidden_size,
         "A matrix of V×H too many"),
        (lambda c: count(c) - c.hidden_size * (c.hidden_size + 1), "the pooler, one more"),
        (lambda c: count(c) - c.num_layers * 2 * c.hidden_size, "one LayerNorm"),
        (lambda c: count(c) / 1, "a float; expected one whole number"),
        (lambda c: 109_482_240, "the same for all inputs"),
        (lambda c: f"{count(c)}", "expected one whole number"),
    ],
    "02.2": [
        (attention(divide=lambda d: 1.0), "not divided by √D"),
        (attention(divide=lambda d: d), "divided by D; it should be"),
        (attention(divide=lambda d: 1 / math.sqrt(d)), "multiplied by √D"),
        (attention(dim=-2), "runs over the queries"),
        (attention(hide="queries"), "The mask hides the padded queries"),
        (attention(hide="inverted"), "the wrong way round"),
        (attention(hide="inverted", far=-math.inf), "Not all of it is finite"),
        (attention(hide=None), "The mask has no effect"),
        (attention(after=True), "after the softmax, or into the values"),
        (lambda q, k, v, m: attention()(q, k, v * m[:, None, :, None], m * 0 + 1),
         "after the softmax, or into the values"),
        (attention(far=-3.0), "when keys and values of the padding change"),
        (attention_zeroing, "e⁰ = 1 still has weight"),
        (attention_late, "values beyond a million"),
        (attention_nan, "every key was hidden from them"),
        (attention_ready_made, "Your function calls `scaled_dot_product_attention`"),
        (lambda q, k, v, m: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1), "the attention weights"),
        (lambda q, k, v, m: [1, 2, 3], "that is (B, A, T, D)"),
        (lambda q, k, v, m: torch.zeros_like(q), "it is all zeros"),
        (lambda q, k, v, m: (q @ k.T).softmax(-1) @ v, "k.transpose(-1, -2)"),
        (lambda q, k, v, m: (q @ k.transpose(1, 2)).softmax(-1) @ v, "k.transpose(-1, -2)"),
        (lambda q, k, v, m: torch.matmul(q, k.permute(3, 2, 1, 0)), "k.transpose(-1, -2)"),
        (lambda q, k, v, m: (q @ k.mT).masked_fill(m[:, None, None], -1e9), "attention_mask == 0"),
        (lambda q, k, v, m: attention(divide=lambda d: 1.0)(q, k, v, 1 - m), "not divided by √D"),
    ],
}  # fmt: skip
