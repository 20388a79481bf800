"""The bidirectional language model: the next word from the left, the word before from the right
(Peters et al. 2018, section 3.1). N rows, T words, C characters, V words that are predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED, mean_cross_entropy

from .next_token import next_token_labels
from .pretraining import pretraining_batches
from .sequences import Batch, PackedSequences, SpecialIds


def bilm_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """½(forward + backward), each a mean over the predicted words, in nats: total, forward,
    backward.

    outputs.forward_logits and .backward_logits (B, T, V) against targets["forward_labels"] and
    ["backward_labels"] (B, T), −100 is ignored."""
    losses = {
        way: mean_cross_entropy(
            getattr(outputs, f"{way}_logits"),
            targets[f"{way}_labels"],
            targets.get(f"num_{way}_labels"),
        )
        for way in ("forward", "backward")
    }
    return {"total": (losses["forward"] + losses["backward"]) / 2, **losses}


def bilm_labels(input_ids: Tensor, attention_mask: Tensor, predicted: int, unk: int) -> Batch:
    """The neighbours of each word as labels, (B, T) each: forward_labels[:, t] is word t + 1,
    backward_labels[:, t] word t − 1, −100 where there is none; ids from `predicted` on are `unk`.
    Returned as the targets of a batch whose inputs are the ids themselves."""
    labels = torch.where(input_ids < predicted, input_ids, unk)
    labels = torch.where(attention_mask.bool(), labels, IGNORED)
    forward, backward = next_token_labels(labels), next_token_labels(labels.flip(1)).flip(1)
    padding = ~attention_mask.bool()
    targets = {
        "forward_labels": forward.masked_fill(padding, IGNORED),
        "backward_labels": backward.masked_fill(padding, IGNORED),
    }
    return Batch({"input_ids": input_ids, "attention_mask": attention_mask}, targets)


def bilm_batch(sequences: PackedSequences, spelling: Tensor, predicted: int, unk: int = 1) -> Batch:
    """Rows of word ids (N, T) as characters (N, T, C), and the labels of both directions.

    spelling (words, C): row i spells word i (`WordVocabulary.spelling`)."""
    batch = bilm_labels(sequences.input_ids, sequences.attention_mask, predicted, unk)
    inputs = {**batch.inputs, "input_ids": spelling[sequences.input_ids].long()}
    return Batch(inputs, batch.targets)


def bilm_batches(
    sequences: PackedSequences,
    special: SpecialIds,
    spelling: Tensor,
    predicted: int,
    *,
    batch_size: int,
    seed: int = 0,
) -> Callable[[int], Batch]:
    """Batches as a pure function of the step, in the order of `pretraining_batches`; every word is
    predicted twice, from its left and from its right.

    Raises ValueError when there are fewer sequences than a batch holds."""
    plain = pretraining_batches(sequences, special, batch_size=batch_size, rate=0.0, seed=seed)

    def batches(step: int) -> Batch:
        inputs = plain(step).inputs
        rows = PackedSequences(
            *(inputs[k] for k in ("input_ids", "attention_mask", "token_type_ids"))
        )
        return bilm_batch(rows, spelling, predicted, special.unk)

    return batches
