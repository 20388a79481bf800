"""The denoising entity auto-encoder (dEA) of Tsinghua's ERNIE: some alignments between words and
entities are spoilt, all are to be restored (Zhang et al. 2019, section 3.4).

Of a mention's alignment: 5% get a random other entity, 15% are taken away, 80% stay. The model
says of each aligned token which entity belongs to it, among the entities of the batch. B batch, T
tokens, N aligned tokens, M candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.masked_loss import mean_cross_entropy

from .masked_lm import BERT_MIX, check_mix, masked_lm_loss
from .next_sentence import next_sentence_loss
from .pretraining import pretraining_batches
from .sequences import Batch, PackedSequences, SpecialIds, text_first

DEA_MIX = (0.05, 0.15, 0.8)  # another entity, none, kept


def spoil_alignments(
    entity_ids: Tensor,
    entities: int,
    generator: torch.Generator,
    mix: tuple[float, float, float] = DEA_MIX,
    as_released: bool = False,
) -> Tensor:
    """entity_ids (B, T), −1 for none -> the same after dEA's noise, with one draw for all tokens of
    a mention. entities: how many the graph has. as_released: as in run_pretrain.py, with one draw
    for each token; the other entity comes from those of the batch and may be the true one. Raises
    ValueError for a mix that is none."""
    check_mix(mix)
    begins = entity_ids >= 0
    if not as_released:
        begins[:, 1:] &= entity_ids[:, 1:] != entity_ids[:, :-1]
    mention = begins.flatten().cumsum(0).view_as(entity_ids) - 1  # the number of each one's mention
    count = int(begins.sum())
    fate = torch.rand(count, generator=generator)
    step = torch.randint(1, max(2, entities), (count,), generator=generator)  # never itself
    there = entity_ids >= 0
    fate, step = fate[mention[there]], step[mention[there]]
    kept = entity_ids[there]
    other = (kept + step) % entities
    if as_released:
        around = kept.unique()
        other = around[torch.randint(max(1, len(around)), (count,), generator=generator)]
    gone = torch.where(fate < mix[0] + mix[1], torch.full_like(kept, -1), kept)
    spoilt = entity_ids.clone()
    spoilt[there] = torch.where(fate < mix[0], other, gone)
    return spoilt


def entity_targets(entity_ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """align_at (N,), flat positions of the aligned tokens; the entities of the batch, each once
    (M,); and which of those belongs to each token (N,). (The program has one candidate more, never
    the right one: a vector of zeros.)"""
    align_at = (entity_ids.flatten() >= 0).nonzero()[:, 0]
    candidates, which = entity_ids.flatten()[align_at].unique(return_inverse=True)
    return align_at, candidates, which


def alignment_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """dEA + MLM (+ NSP where the batch has its labels), each a mean in nats, without weights, as in
    the released program: total, mlm, dea, nsp. A batch without entities has no dEA. Of batches that
    are added up, each has its own candidates; parts of one batch share them (`split_batch`)."""
    result = {"mlm": masked_lm_loss(outputs, targets)["mlm"]}
    entity = targets["entity"]
    count = targets.get("num_entity", torch.tensor(len(entity)))
    if count:
        result["dea"] = mean_cross_entropy(outputs.entity_logits, entity, count)
    if "next_sentence_label" in targets:
        result["nsp"] = next_sentence_loss(outputs, targets)["nsp"]
    return {"total": sum(result.values(), torch.zeros(())), **result}


def alignment_batches(
    sequences: PackedSequences,
    special: SpecialIds,
    entity_ids: Tensor,
    entities: int,
    *,
    batch_size: int,
    seed: int = 0,
    mix: tuple[float, float, float] = BERT_MIX,
    noise: tuple[float, float, float] = DEA_MIX,
    as_released: bool = False,
) -> Callable[[int], Batch]:
    """BERT's batches with entities: a pure function of the step, as `pretraining_batches`.

    entity_ids (N, T), −1 for none, of the same sequences. A word may be masked and its entity
    stay, and the other way round. as_released: of the noise, see `spoil_alignments`. Raises
    ValueError for entity_ids of another shape."""
    if entity_ids.shape != sequences.input_ids.shape:
        raise ValueError(
            f"entity_ids of shape {tuple(entity_ids.shape)} was given; expected that of the "
            f"sequences, {tuple(sequences.input_ids.shape)}. Link the sequences after packing them."
        )
    entity_ids = entity_ids.gather(1, text_first(sequences.attention_mask))  # as batches have it
    numbered = PackedSequences(
        sequences.input_ids,
        sequences.attention_mask,
        sequences.token_type_ids,
        torch.arange(len(sequences)),  # travels with its sequence, and is taken out again below
    )
    words = pretraining_batches(numbered, special, batch_size=batch_size, mix=mix, seed=seed)

    def batches(step: int) -> Batch:
        inputs, targets = words(step)
        which = targets.pop("next_sentence_label")
        aligned = entity_ids[which, : inputs["input_ids"].shape[1]]
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        align_at, candidates, entity = entity_targets(aligned)
        more = {
            "entity_ids": spoil_alignments(aligned, entities, generator, noise, as_released),
            "align_at": align_at,
            "candidates": candidates,
        }
        if sequences.next_sentence_label is not None:
            targets["next_sentence_label"] = sequences.next_sentence_label[which]
        return Batch({**inputs, **more}, {**targets, "entity": entity})

    return batches
