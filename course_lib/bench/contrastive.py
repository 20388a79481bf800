"""A contrastive step over a large batch, all activations held or a chunk's at a time; and MaxSim
beside sentence-transformers' own, forward and backward.

Pairs a second: of the batch; and of a query and a document that are compared. Memory is counted in
a step of its own, beside the inputs and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.family.bert import bert
from course_lib.kernels.choosing import installed
from course_lib.kernels.contrastive import backward_in_chunks, backward_in_chunks_reference
from course_lib.kernels.maxsim import maxsim, maxsim_reference
from course_lib.objectives.contrastive import info_nce_loss

from .measuring import Contender, Measured, Step, Table, contenders_of, forward_only, peak_bytes

BATCH, CHUNK, LENGTHS = 4_096, 64, (16, 32)  # tokens of queries and documents
SIZES = ((16, 32, 256, 64, 128),)  # queries and their tokens, documents and theirs, H


def tables() -> list[Table]:
    """The large batch; MaxSim as a search and as a step of training."""
    result = [_batch()]
    for sizes in SIZES:
        result += [_maxsim(sizes, training) for training in (False, True)]
    return result


def _batch() -> Table:
    ways = {
        "plain: one graph for the whole batch": (backward_in_chunks_reference, BATCH),
        f"ours, {CHUNK} texts at a time": (backward_in_chunks, CHUNK),
    }
    makes = {name: partial(batch_step, *way) for name, way in ways.items()}
    compared = contenders_of(makes, BATCH)
    title = f"Contrastive step, batch {BATCH:,}, 2×128, {LENGTHS[0]} and {LENGTHS[1]} tokens"
    return Table(title, compared, partial(remark, compared), slow=True, unit="pairs")


def batch_step(way: Callable[..., Tensor], size: int, batch: int = BATCH) -> Step:
    """InfoNCE and its gradients, dropout on: the batch cut into pieces of `size`."""
    torch.manual_seed(0)
    encoder = bert("tiny").train()
    texts = [torch.randint(1_000, 30_000, (batch, length)).split(size) for length in LENGTHS]

    def step() -> None:
        encoder.zero_grad()
        way(lambda ids: encoder(ids).last_hidden_state[:, 0], texts, info_nce_loss)

    return step


def _maxsim(sizes: tuple[int, ...], training: bool) -> Table:
    functions: dict[str, Callable[..., Tensor]] = {}
    if installed("sentence_transformers"):
        from sentence_transformers.util import maxsim as peer

        functions["sentence-transformers' maxsim"] = peer
    functions |= {"plain: all similarities at once": maxsim_reference, "ours, maxsim": maxsim}
    makes = {name: partial(maxsim_step, f, sizes, training) for name, f in functions.items()}
    compared = contenders_of(makes, sizes[0] * sizes[2])
    what = "forward and backward" if training else "forward"
    title = f"MaxSim, {what}, {sizes[0]}×{sizes[1]} by {sizes[2]}×{sizes[3]} tokens, H={sizes[4]}"
    return Table(title, compared, partial(remark, compared), unit="pairs")


def maxsim_step(function: Callable[..., Tensor], sizes: tuple[int, ...], training: bool) -> Step:
    """Scores of random vectors, texts a quarter of the longest up to the longest."""
    Q, S, D, T, H = sizes
    torch.manual_seed(0)
    vectors = [torch.randn(Q, S, H), torch.randn(D, T, H)]
    masks = [
        (torch.arange(tokens) < torch.randint(tokens // 4, tokens + 1, (count, 1))).long()
        for count, tokens in ((Q, S), (D, T))
    ]
    if not training:
        return forward_only(lambda: function(*vectors, *masks))
    for x in vectors:
        x.requires_grad_()

    def step() -> None:
        for x in vectors:
            x.grad = None
        function(*vectors, *masks).sum().backward()

    return step


def remark(compared: Sequence[Contender], results: Sequence[Measured], on: dict[str, Any]) -> str:
    """Memory of each, and what ours wins over the first."""
    peaks = [peak_bytes(contender.make()) for contender in compared]
    memory = "   ".join(
        f"{c.name} {peak / 1e6:,.0f} MB" for c, peak in zip(compared, peaks, strict=True)
    )
    faster = results[-1].median / results[0].median
    return (
        f"peak memory: {memory}\nours / the first: time {1 / faster:.2f}×, memory "
        f"1/{peaks[0] / peaks[-1]:.1f}"
    )
