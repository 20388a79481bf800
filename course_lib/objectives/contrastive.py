"""Sentence vectors by comparison: InfoNCE among the texts of a batch (van den Oord et al. 2018,
equation 4), Matryoshka vectors (Kusupati et al. 2022, equation 1), and SBERT's classifier of pairs
(Reimers and Gurevych 2019, section 3).

B pairs, K hard negatives a query, H hidden. SimCSE (Gao et al. 2021, equation 4) needs no loss of
its own: info_nce_loss(encode(texts), encode(texts)) with dropout on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.config import check_number
from course_lib.kernels.contrastive import in_batch_loss
from course_lib.kernels.upcast import upcast


def info_nce_loss(
    queries: Tensor,
    documents: Tensor,
    negatives: Tensor | None = None,
    *,
    temperature: float = 0.05,
    symmetric: bool = False,
    false_negatives: Tensor | None = None,
) -> Tensor:
    """The cross-entropy of finding each query's own document, by cosine, among all documents of the
    batch: the mean over B queries, in nats. Chance is ln(B·(1 + K)).

    queries, documents (B, H): document i is query i's own. negatives (B, H) or (B, K, H): hard
    negatives, which every query of the batch meets. symmetric: the mean of this and of the loss of
    each document that looks for its query among the B queries. false_negatives (B, B·(1 + K)) bool,
    as `find_false_negatives` makes it: pairs that do belong together and must not be pushed apart.
    The loss does not add up over parts of a batch: negatives stay within a part. Raises ValueError
    for shapes that do not fit and a temperature not above 0."""
    check_number("temperature", temperature)
    if not temperature:
        raise ValueError("temperature=0 was given; expected a number above 0, such as 0.05.")
    if queries.shape != documents.shape:
        raise ValueError(
            f"queries and documents of shapes {tuple(queries.shape)} and {tuple(documents.shape)} "
            "were given; expected (B, H) both: document i is query i's own."
        )
    queries, own = F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)
    candidates = own  # (B·(1 + K), H): own documents, first negatives, second negatives, …
    if negatives is not None:
        more = negatives[:, None] if negatives.dim() == 2 else negatives  # (B, K, H)
        candidates = torch.cat([own, F.normalize(more, dim=-1).transpose(0, 1).flatten(0, 1)])
    loss = in_batch_loss(queries, candidates, temperature, false_negatives)
    if not symmetric:
        return loss
    back = None if false_negatives is None else false_negatives[:, : len(own)].T
    return (loss + in_batch_loss(own, queries, temperature, back)) / 2


def symmetric_cross_entropy(logits: Tensor) -> Tensor:
    """Of scores (B, B), row n and column n of pair n: the mean loss of each row that looks for its
    column and each column that looks for its row, in nats. Where a pair's score is no dot product
    of two vectors, or its scale is learned, as CLIP's is (Radford et al. 2021, figure 3)."""
    own = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2


def find_false_negatives(
    queries: Sequence[object],
    documents: Sequence[object],
    negatives: Sequence[Sequence[object]] = (),
) -> Tensor:
    """Which texts of a batch are right answers to whom, (B, B·(1 + K)) bool: those that equal the
    own document of the query, or of another query of the same words. A query's own is among them.

    queries, documents: B texts, or whatever tells them apart, such as ids; negatives: the K hard
    negatives of each query. Raises ValueError for other lengths."""
    lengths = {len(documents), *([len(negatives)] if negatives else [])}
    counts = {len(of_query) for of_query in negatives}
    if lengths != {len(queries)} or len(counts) > 1:
        raise ValueError(
            f"{len(queries)} queries, {len(documents)} documents and {len(negatives)} lists of "
            f"{sorted(counts)} negatives were given; expected one document a query, and as many "
            "negatives for each."
        )
    right: dict[object, set[object]] = {}
    for query, document in zip(queries, documents, strict=True):
        right.setdefault(query, set()).add(document)
    candidates = [*documents, *(text for column in zip(*negatives, strict=True) for text in column)]
    return torch.tensor([[text in right[query] for text in candidates] for query in queries])


def matryoshka_loss(
    loss: Callable[..., Tensor],
    vectors: Sequence[Tensor],
    sizes: Sequence[int],
    weights: Sequence[float] | None = None,
) -> Tensor:
    """The sum of a loss over the first `size` numbers of each vector, for all sizes.

    loss: takes the vectors, such as info_nce_loss. vectors: (…, H) each. weights: of the sizes, 1
    each without. The shortened vectors are made unit length, and so are the full ones: a loss by
    dot product sees cosines. The full size is trained only if it is among the sizes. Raises
    ValueError for no sizes, for one beyond H, and for as many weights as there are not sizes."""
    width = min(x.shape[-1] for x in vectors)
    weights = [1.0] * len(sizes) if weights is None else weights
    if not sizes or not all(1 <= size <= width for size in sizes) or len(weights) != len(sizes):
        raise ValueError(
            f"sizes={list(sizes)} with {len(weights)} weights were given for vectors of {width} "
            f"numbers; expected sizes from 1 to {width}, and a weight for each."
        )
    parts = ([F.normalize(x[..., :size], dim=-1) for x in vectors] for size in sizes)
    losses = [weight * loss(*part) for weight, part in zip(weights, parts, strict=True)]
    return torch.stack(losses).sum()


def pair_features(u: Tensor, v: Tensor) -> Tensor:
    """(u, v, |u − v|), what SBERT's classifier reads: (B, H) twice -> (B, 3H)."""
    return torch.cat([u, v, (u - v).abs()], dim=-1)


def pair_classification_loss(
    classifier: Callable[[Tensor], Tensor], u: Tensor, v: Tensor, labels: Tensor
) -> Tensor:
    """Mean cross-entropy of a pair's class, such as entailment: SBERT's NLI objective.

    classifier: (B, 3H) -> logits (B, C), such as nn.Linear(3 * H, C); u, v (B, H), labels (B,).
    The classifier is thrown away after training; what stays are vectors that it could read."""
    return F.cross_entropy(upcast(classifier(pair_features(u, v))), labels)
