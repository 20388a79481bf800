"""Contrastive learning over a large batch: the scores a few rows at a time, the encoder's
activations a chunk at a time.

B queries, D documents of which the first B are the queries' own, H hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .upcast import upcast

ROWS_BYTES = 2**24  # of the scores that are held at once, 16 MiB


def in_batch_loss_reference(
    queries: Tensor, documents: Tensor, temperature: float, excluded: Tensor | None = None
) -> Tensor:
    """Cross-entropy of each query's own document among all: the mean over B queries, in nats.

    queries (B, H), documents (D, H), document i being query i's own; the scores are dot products
    divided by the temperature, in float32 or wider. excluded (B, D) bool: pairs that do not count
    as negatives; a query's own document is never left out. Raises ValueError for other shapes."""
    _check(queries, documents, excluded)
    return _sum_over_rows(queries, documents, temperature, excluded, 0) / len(queries)


def in_batch_loss(
    queries: Tensor, documents: Tensor, temperature: float, excluded: Tensor | None = None
) -> Tensor:
    """The same, a few rows of the (B, D) scores at a time: they are computed again in the backward
    pass, so that no more than one part of them is ever held."""
    from torch.utils.checkpoint import checkpoint

    _check(queries, documents, excluded)
    size = max(1, ROWS_BYTES // (len(documents) * upcast(queries[:0]).element_size()))
    if size >= len(queries):
        return in_batch_loss_reference(queries, documents, temperature, excluded)
    total = queries.new_zeros((), dtype=upcast(queries[:0]).dtype)
    for first in range(0, len(queries), size):
        rows = slice(first, first + size)
        part = None if excluded is None else excluded[rows]
        total = total + checkpoint(
            _sum_over_rows, queries[rows], documents, temperature, part, first,
            use_reentrant=False, preserve_rng_state=False,
        )  # fmt: skip
    return total / len(queries)


def _sum_over_rows(
    queries: Tensor, documents: Tensor, temperature: float, excluded: Tensor | None, first: int
) -> Tensor:
    """The loss of some queries, of which the first one's own document is number `first`, summed."""
    scores = upcast(queries @ documents.T) / temperature  # (b, D)
    own = torch.arange(first, first + len(queries), device=queries.device)
    if excluded is not None:
        others = excluded.scatter(1, own[:, None], False)
        scores = scores.masked_fill(others, -torch.inf)
    return F.cross_entropy(scores, own, reduction="sum")


def _check(queries: Tensor, documents: Tensor, excluded: Tensor | None) -> None:
    shapes = [tuple(x.shape) for x in (queries, documents)]
    fits = queries.dim() == documents.dim() == 2 and queries.shape[1] == documents.shape[1]
    if not fits or not 1 <= len(queries) <= len(documents):
        raise ValueError(
            f"queries and documents of shapes {shapes[0]} and {shapes[1]} were given; expected "
            "(B, H) and (D, H) with D at least B and B at least 1: document i is query i's own."
        )
    if excluded is not None and excluded.shape != (len(queries), len(documents)):
        raise ValueError(
            f"excluded of shape {tuple(excluded.shape)} was given; expected (B, D), "
            f"({len(queries)}, {len(documents)}): True where a pair is no negative."
        )


# ---------------------------------------------------------------- the encoder, chunk by chunk

Encode = Callable[[Any], Tensor]
Loss = Callable[..., Tensor]


def backward_in_chunks_reference(
    encode: Encode, sides: Sequence[Sequence[Any]], loss: Loss
) -> Tensor:
    """Loss and gradients of a whole batch, with the activations of all chunks held at once.

    encode: a chunk of inputs -> vectors (b, H). sides: the chunks of the queries, of the documents
    and, if there are any, of the hard negatives, each a batch cut into pieces. loss: these sides'
    vectors -> a number. Gradients are added to those of the encoder's weights, as by backward();
    the loss is returned without a graph. Raises ValueError where a side has no chunk."""
    _check_sides(sides)
    value = loss(*(torch.cat([encode(chunk) for chunk in side]) for side in sides))
    value.backward()
    return value.detach()


def backward_in_chunks(encode: Encode, sides: Sequence[Sequence[Any]], loss: Loss) -> Tensor:
    """The same with the activations of one chunk at a time (GradCache: Gao et al. 2021).

    All vectors first, without a graph; then the loss's gradient for each of them; then every chunk
    once more, with a graph that this gradient is sent into. Dropout draws the same numbers in both
    passes, and the random state afterwards is the reference's. Costs one more forward pass."""
    _check_sides(sides)
    before: list[list[Tensor]] = []  # the random state that each chunk meets
    vectors: list[Tensor] = []  # (B, H) of each side
    sizes: list[list[int]] = []
    with torch.no_grad():
        for side in sides:
            encoded = []
            for chunk in side:
                before.append(_random_state())
                encoded.append(encode(chunk))
            vectors.append(torch.cat(encoded).requires_grad_())
            sizes.append([len(part) for part in encoded])
    value = loss(*vectors)
    value.backward()  # also into weights of the loss's own
    after, states = _random_state(), iter(before)
    for side, whole, lengths in zip(sides, vectors, sizes, strict=True):
        gradient = torch.zeros_like(whole) if whole.grad is None else whole.grad
        for chunk, part in zip(side, gradient.split(lengths), strict=True):
            _set_random_state(next(states))
            encode(chunk).backward(part)
    _set_random_state(after)
    return value.detach()


def _random_state() -> list[Tensor]:
    """Of the processor and of the GPU in use, if one is."""
    gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if gpu else [])]


def _set_random_state(state: list[Tensor]) -> None:
    torch.set_rng_state(state[0])
    for of_gpu in state[1:]:
        torch.cuda.set_rng_state(of_gpu)


def _check_sides(sides: Sequence[Sequence[Any]]) -> None:
    if len(sides) < 2 or not all(len(side) for side in sides):
        raise ValueError(
            f"{len(sides)} sides of {', '.join(str(len(side)) for side in sides) or 'no'} chunks "
            "were given; expected queries and documents, each with at least one chunk."
        )
