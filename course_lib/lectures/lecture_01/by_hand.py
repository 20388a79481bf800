"""Small numbers to check on paper: neighbours counted, attention among four words.

T words, D numbers a word, A heads."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.kernels.attention import attention_reference, causal_mask

FEATURES = ("water", "money", "place", "event")  # what the four numbers of a word stand for
WORDS = ("the", "river", "bank", "flooded")
VECTORS: dict[str, tuple[float, ...]] = {
    "the": (0, 0, 0, 0),
    "river": (2, 0, 0, 0),
    "bank": (1, 1, 0, 0),  # two senses, half of it each
    "flooded": (2, 0, 0, 2),
    "savings": (0, 2, 0, 0),
    "paid": (0, 2, 0, 2),
}
OTHER_WORDS = ("the", "savings", "bank", "paid")
# How often a word (row) stood next to another (column), in a text small enough to count.
NEAR = ("river", "money", "the")
COUNTS = {"bank": (2, 2, 4), "shore": (2, 0, 2), "loan": (0, 2, 2), "table": (0, 0, 16)}


def ppmi_by_hand() -> dict[str, list[float]]:
    """The positive PMI of each row of COUNTS, in nats, without smoothing."""
    from scipy.sparse import csr_matrix

    from course_lib.text.static_vectors import positive_pmi

    counted = csr_matrix(list(COUNTS.values()), dtype=float)
    return dict(zip(COUNTS, positive_pmi(counted, smoothing=1).toarray().tolist(), strict=True))


def vectors_of(words: tuple[str, ...] = WORDS) -> Tensor:
    """The vectors of these words, (T, 4)."""
    return torch.tensor([VECTORS[word] for word in words], dtype=torch.float32)


def attention_by_hand(
    x: Tensor, *, heads: int = 1, only_before: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention in which each vector is query, key and value at once: no weights to learn.

    x (T, D) -> scores and attention weights (A, T, T), outputs (T, D). A head has D/A of the
    numbers. only_before: a word sees itself and what stands before it. Raises ValueError for a
    number of heads that does not divide D."""
    tokens, width = x.shape
    if heads < 1 or width % heads:
        raise ValueError(f"heads={heads} was given for {width} numbers; expected a divisor.")
    split = x.view(tokens, heads, -1).transpose(0, 1)[None]  # (1, A, T, D/A)
    mask = causal_mask(torch.ones(1, tokens, dtype=torch.long)) if only_before else None
    outputs, weights, scores = attention_reference(split, split, split, mask)
    return scores[0], weights[0], outputs[0].transpose(0, 1).flatten(1)


def positions(tokens: int, width: int = 4, strength: float = 1.0) -> Tensor:
    """A vector for each position, (T, D): sine and cosine of slow and of fast waves (Vaswani et al.
    2017, section 3.5), `strength` times as long. BERT learns its own instead."""
    place = torch.arange(tokens, dtype=torch.float32)[:, None]  # (T, 1)
    wave = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)  # (D/2,)
    angle = place * wave  # (T, D/2)
    return strength * torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
