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


RIGHT = {"02.1": [count, count_adding, lambda c: np.int64(count(c))]}
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
}  # fmt: skip
