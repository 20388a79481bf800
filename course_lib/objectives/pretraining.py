"""BERT's pre-training: both tasks on the same sequences, the two mean losses added (section
A.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from course_lib.config import check_size
from course_lib.kernels.masked_loss import IGNORED

from .masked_lm import (
    BERT_MIX,
    Masked,
    check_mix,
    check_rate,
    check_words,
    mask_sequences,
    mask_whole_words,
    masked_lm_loss,
)
from .next_sentence import next_sentence_loss
from .released_masking import check_rule, mask_as_released
from .sequences import Batch, PackedSequences, SpecialIds, check_batch_size, text_first
from .span_boundary import boundary_targets, mask_spans

POOL = 32  # batches whose sequences are sorted by length together
# Inputs that are flat positions -> their targets; and those that all parts of a batch share.
LABELS_AT = {"predict_at": "labels", "boundaries": "sbo_labels", "align_at": "entity"}
SHARED = ("candidates",)
COUNT = "num_"  # before a target's name: how many of it the whole batch holds


def pretraining_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean over the selected positions plus mean over the pairs, in nats: total, mlm, nsp."""
    mlm = masked_lm_loss(outputs, targets)["mlm"]
    nsp = next_sentence_loss(outputs, targets)["nsp"]
    return {"total": mlm + nsp, "mlm": mlm, "nsp": nsp}


def pretraining_batches(
    sequences: PackedSequences,
    special: SpecialIds,
    *,
    batch_size: int,
    rate: float = 0.15,
    mix: tuple[float, float, float] = BERT_MIX,
    seed: int = 0,
    mask_copies: int | None = None,
    word_of: Tensor | None = None,
    max_words: int = 1,
    spans: Mapping[str, Any] | None = None,
    boundaries: bool = False,
    rule: str = "bert",
) -> Callable[[int], Batch]:
    """Batches as a pure function of the step: batches(step) is the same now, tomorrow and after a
    crash.

    Every epoch visits the sequences in a new order with new masks (dynamic masking); with
    `mask_copies=c` the mask of epoch e is that of epoch e mod c (1: static masking; 10: BERT's; 0
    or None: dynamic).
    word_of (N, T) hides whole words, or runs of up to `max_words` of them (see `mask_whole_words`).
    spans: hide spans of words instead, with these settings of `mask_spans`. boundaries: add what
    the span-boundary objective needs (see `boundary_targets`). rule: whose released code the
    masking of single tokens follows, one of RULES (see released_masking.py).
    Raises ValueError when there are fewer sequences than a batch holds, for spans without word_of,
    for a rule other than "bert" with it, and for negative mask_copies.
    """
    check_rule(rule, word_of is None)
    if spans is not None and word_of is None:
        raise ValueError(
            f"spans={dict(spans)} was given without word_of; expected it, (N, T): spans are made "
            "of words. `word_numbers` gives it."
        )
    check_batch_size(batch_size, len(sequences), "sequences")
    check_size("mask_copies", mask_copies or 0, 0)
    check_rate(rate)
    check_mix(mix)
    counts = None
    if rule == "distilbert":
        counts = sequences.input_ids[sequences.attention_mask.bool()].bincount(
            minlength=special.vocab_size
        )
    steps_per_epoch = len(sequences) // batch_size
    lengths = sequences.attention_mask.sum(dim=1)

    @lru_cache(maxsize=2)
    def order(epoch: int) -> Tensor:  # (steps_per_epoch, batch_size), sequence numbers
        generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
        shuffled = torch.randperm(len(sequences), generator=generator)[
            : steps_per_epoch * batch_size
        ]
        # Sequences of about equal length share a batch: fewer positions are spent on padding.
        pools = shuffled.split(POOL * batch_size)
        alike = torch.cat([pool[lengths[pool].argsort(stable=True)] for pool in pools])
        batches_in_order = torch.randperm(steps_per_epoch, generator=generator)
        return alike.view(steps_per_epoch, batch_size)[batches_in_order]

    def batches(step: int) -> Batch:
        epoch, step_in_epoch = divmod(step, steps_per_epoch)
        index = order(epoch)[step_in_epoch]  # (batch_size,), into sequences
        mask_epoch = epoch % mask_copies if mask_copies else epoch
        settings = {"rate": rate, "mix": mix, "seed": seed, "epoch": mask_epoch, "examples": index}
        if word_of is not None:
            settings["word_of"] = word_of[index]
            settings |= {"max_words": max_words} if spans is None else {"spans": spans}
        if rule != "bert":
            settings |= {"rule": rule, "token_counts": counts}
        return pretraining_batch(sequences[index], special, boundaries, **settings)

    return batches


def pretraining_batch(
    sequences: PackedSequences, special: SpecialIds, boundaries: bool = False, **masking: Any
) -> Batch:
    """Sequences, masked and cut to their longest text, as a model's inputs and an objective's
    targets; padding before or between the tokens goes behind them."""
    if "word_of" in masking:
        check_words(sequences, masking["word_of"])
        masking["word_of"] = masking["word_of"].gather(1, text_first(sequences.attention_mask))
    sequences = sequences.padding_last()
    longest = int((sequences.attention_mask != 0).sum(dim=1).max())
    cut = {name: value[:, :longest].contiguous() for name, value in sequences.inputs.items()}
    sequences = PackedSequences(**cut, next_sentence_label=sequences.next_sentence_label)
    if "word_of" in masking:
        masking["word_of"] = masking["word_of"][:, :longest]
        if "spans" in masking:
            masked: Masked = mask_spans(sequences, special, **{**masking.pop("spans"), **masking})
        else:
            masked = mask_whole_words(sequences, special, **masking)
    else:
        mask = mask_as_released if "rule" in masking else mask_sequences
        masked = mask(sequences, special, **masking)
    inputs = {**cut, "input_ids": masked.input_ids, "predict_at": masked.predict_at}
    targets = {"labels": masked.original_ids}
    if boundaries:
        inputs["boundaries"], targets["sbo_labels"] = boundary_targets(masked, sequences, special)
    if sequences.next_sentence_label is not None:
        targets["next_sentence_label"] = sequences.next_sentence_label
    return Batch(inputs, targets)


def split_batch(batch: Batch, parts: int) -> list[Batch]:
    """A large batch cut into `parts` smaller ones, of equal size or one sequence apart.

    Each part is told how many labels the whole has, so its loss is its part of the whole's: losses
    add up to the loss of the whole, gradients to its gradient. Raises ValueError unless every part
    gets a row."""
    sequences = len(next(iter(batch.inputs.values())))
    if not isinstance(parts, int) or not 1 <= parts <= sequences:
        raise ValueError(
            f"parts={parts!r} was given for a batch of {sequences} sequences; expected a whole "
            f"number from 1 to {sequences}, so that every part has a sequence."
        )
    edges = [part * sequences // parts for part in range(parts + 1)]
    return counted_together([_rows_of(batch, start, stop) for start, stop in pairwise(edges)])


def counted_together(parts: Sequence[Batch]) -> list[Batch]:
    """The same batches, each with what means over all of them are divided by: targets["num_labels"]
    is how many of "labels" count, and so for every other target; "num_sequences" how many texts or
    pictures there are, "num_positions" how many positions with padding, "num_tokens" without,
    "num_position_pairs" and "num_token_pairs" pairs of them in one text, "num_masked" selected
    positions, "num_real" tokens less the masked ones that are ignored; "num_each_class" (classes,)
    the texts of each class. A count that a batch already has stays."""
    each = [_counts(part) for part in parts]
    counts = {COUNT + name: torch.stack([count[name] for count in each]).sum() for name in each[0]}
    if "classes" in parts[0].targets:
        classes = torch.cat([part.targets["classes"] for part in parts])
        counts["num_each_class"] = torch.bincount(classes[classes >= 0])
    return [Batch(part.inputs, {**counts, **part.targets}) for part in parts]


def _counts(batch: Batch) -> dict[str, Tensor]:
    """What there is in one batch, by name."""
    targets = {name: x for name, x in batch.targets.items() if not name.startswith(COUNT)}
    result = {name: (x != IGNORED).sum() for name, x in targets.items()}
    if batch.inputs:
        result["sequences"] = torch.tensor(len(next(iter(batch.inputs.values()))))
    if "input_ids" in batch.inputs:
        ids = batch.inputs["input_ids"]
        real = batch.inputs.get("attention_mask", torch.ones(ids.shape[:2])) != 0  # (B, T)
        tokens = real.sum(dim=1)
        result |= {"positions": torch.tensor(real.numel()), "tokens": tokens.sum(),
                  "token_pairs": tokens.square().sum(),
                  "position_pairs": torch.tensor(real.numel() * real.shape[1])}  # fmt: skip
        if "predict_at" in batch.inputs:
            result["masked"] = torch.tensor(len(batch.inputs["predict_at"]))
            result["real"] = tokens.sum() - (targets["labels"] == IGNORED).sum()
    return result


def check_weights(weights: Mapping[str, float]) -> None:
    """Raise ValueError unless all losses have a weight of at least 0, and one of them above."""
    if not all(0 <= weight < float("inf") for weight in weights.values()):
        raise ValueError(
            f"weights {weights} were given; expected finite numbers of at least 0. 0 leaves a loss "
            "out."
        )
    if not any(weights.values()):
        raise ValueError(f"all weights are 0 ({weights}); expected at least one loss to train on.")


def _rows_of(batch: Batch, start: int, stop: int) -> Batch:
    """The sequences from `start` to before `stop`; their selected positions are numbered anew."""
    inputs = {
        name: x if name in SHARED else x[start:stop]
        for name, x in batch.inputs.items() if name not in LABELS_AT
    }  # fmt: skip
    targets = {n: x if n.startswith(COUNT) else x[start:stop] for n, x in batch.targets.items()}
    for name, labels in LABELS_AT.items():
        if name in batch.inputs:
            first, end = (row * batch.inputs["input_ids"].shape[1] for row in (start, stop))
            at = batch.inputs[name]
            where = at if at.dim() == 1 else at[:, 0]
            here = (where >= first) & (where < end)
            moved = first if at.dim() == 1 else torch.tensor([first, first, 0], device=at.device)
            inputs[name], targets[labels] = at[here] - moved, batch.targets[labels][here]
    return Batch(inputs, targets)
