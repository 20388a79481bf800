"""Late interaction: a query's score is the sum, over its tokens, of the best match among the
document's tokens (ColBERT's MaxSim: Khattab and Zaharia 2020, equation 3).

Q queries of up to S tokens, D documents of up to T tokens, H hidden; N query tokens that are real.
The reference holds the similarity of every token of every query with every token of every document,
(Q, D, S, T); its twin holds those of a few documents, without the padding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .upcast import upcast, upcast_type

CHUNK_BYTES = 2**20  # of the similarities that are held at once, 1 MiB


def maxsim_reference(
    queries: Tensor, documents: Tensor, query_mask: Tensor, document_mask: Tensor
) -> Tensor:
    """Scores (Q, D) of queries (Q, S, H) and documents (D, T, H), in float32 or wider.

    query_mask (Q, S), document_mask (D, T): 1 at the tokens that count, 0 at padding, which may be
    anywhere. Vectors are compared as they are: make them unit length before. Raises ValueError for
    shapes or formats that do not fit together, and for a query or a document without a token."""
    _check(queries, documents, query_mask, document_mask)
    similar = upcast(torch.einsum("qsh,dth->qdst", queries, documents))
    similar = similar.masked_fill(document_mask[None, :, None, :] == 0, -torch.inf)
    best = similar.amax(dim=3)  # (Q, D, S)
    return best.masked_fill(query_mask[:, None, :] == 0, 0).sum(dim=2)


def maxsim(queries: Tensor, documents: Tensor, query_mask: Tensor, document_mask: Tensor) -> Tensor:
    """The same, documents of like length together and cut to it, a few at a time.

    For the backward pass only the position of each best match is kept, (N, D); the gradient goes to
    one token where several match equally well, while the reference's is divided among them.
    Gradients of gradients are not to be had (RuntimeError)."""
    _check(queries, documents, query_mask, document_mask)
    owner, position = query_mask.nonzero(as_tuple=True)  # (N,) each
    best = _Best.apply(queries[owner, position], documents, document_mask)  # (N, D)
    scores = best.new_zeros(len(queries), len(documents))
    return scores.index_add(0, owner, best)


class _Best(torch.autograd.Function):
    """Each query token's best match in each document: (N, H), (D, T, H) -> (N, D)."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, documents: Tensor, mask: Tensor) -> Tensor:
        best = tokens.new_empty(len(tokens), len(documents), dtype=upcast_type(tokens))
        positions: list[Tensor] = []  # of the best, by chunk
        ctx.chunks = list(_chunks(mask, len(tokens), best.element_size()))
        for which, length in ctx.chunks:
            real, at = _first_tokens(mask[which], length)  # (d, length) each
            chunk = _gather(documents[which], at)
            similar = upcast(tokens @ chunk.flatten(0, 1).T).unflatten(1, real.shape)
            if not real.all():
                similar.masked_fill_(~real, -torch.inf)
            best[:, which], winners = similar.max(dim=2)
            positions += [winners.to(torch.int32)] * any(ctx.needs_input_grad)
        ctx.save_for_backward(tokens, documents, mask, *positions)
        return best

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        tokens, documents, mask, *positions = ctx.saved_tensors
        to_tokens = torch.zeros_like(tokens, dtype=upstream.dtype)
        to_documents = torch.zeros_like(documents)
        for (which, length), winners in zip(ctx.chunks, positions, strict=True):
            _, at = _first_tokens(mask[which], length)
            chunk = _gather(documents[which], at).flatten(0, 1)  # (d·length, H)
            weights = upstream.new_zeros(len(tokens), *at.shape)
            weights.scatter_(2, winners.long()[..., None], upstream[:, which, None])
            weights = weights.flatten(1).to(tokens.dtype)  # (N, d·length)
            to_tokens += weights @ chunk
            part = (weights.T @ tokens).unflatten(0, at.shape)
            to_documents[which[:, None], at] = part
        return to_tokens.to(tokens.dtype), to_documents, None


def _chunks(mask: Tensor, tokens: int, size: int) -> list[tuple[Tensor, int]]:
    """Numbers of documents that are compared together, and the longest one's length."""
    lengths, order = (mask != 0).sum(dim=1).sort(stable=True)
    result, first = [], 0
    while first < len(order):
        last = first + 1
        # As long as the next document, cut to the longest of the chunk, still fits.
        while (
            last < len(order)
            and (last + 1 - first) * int(lengths[last]) * tokens * size <= CHUNK_BYTES
        ):
            last += 1
        result.append((order[first:last], int(lengths[last - 1])))
        first = last
    return result


def _first_tokens(mask: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Of each document its real tokens' positions, padding behind them, (d, length); and which are
    real."""
    at = (mask == 0).to(torch.int8).argsort(dim=1, stable=True)[:, :length]
    return mask.gather(1, at) != 0, at


def _gather(documents: Tensor, at: Tensor) -> Tensor:
    return documents.gather(1, at[..., None].expand(-1, -1, documents.shape[2]))


def _check(queries: Tensor, documents: Tensor, query_mask: Tensor, document_mask: Tensor) -> None:
    shapes = [tuple(x.shape) for x in (queries, query_mask, documents, document_mask)]
    dims = [len(shape) for shape in shapes] == [3, 2, 3, 2]
    if not dims or shapes[0][:2] != shapes[1] or shapes[2][:2] != shapes[3]:
        raise ValueError(
            f"queries, query_mask, documents and document_mask of shapes "
            f"{', '.join(map(str, shapes))} were given; expected (Q, S, H), (Q, S), (D, T, H) and "
            "(D, T)."
        )
    if shapes[0][2] != shapes[2][2] or queries.dtype != documents.dtype:
        raise ValueError(
            f"queries of {shapes[0][2]} numbers a token in {queries.dtype} and documents of "
            f"{shapes[2][2]} in {documents.dtype} were given; expected the same of both."
        )
    for name, mask in (("query", query_mask), ("document", document_mask)):
        if not (mask != 0).any(dim=1).all():
            number = int((~(mask != 0).any(dim=1)).nonzero()[0])
            raise ValueError(
                f"{name} {number} has no token that counts; expected at least one. Leave it out."
            )
