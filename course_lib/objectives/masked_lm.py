"""Masked language modelling: mask some tokens, predict them (Devlin et al. 2018, section 3.1, task
1).

N sequences, T positions, K selected positions, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_lib.kernels.masked_loss import IGNORED, mean_cross_entropy
from course_lib.kernels.masking import apply_mix, mask_tokens
from course_lib.kernels.unit_masking import select_words

from .sequences import PackedSequences, SpecialIds

BERT_MIX = (0.8, 0.1, 0.1)  # [MASK], a random word, the word itself


@dataclass(frozen=True)
class Masked:
    """Sequences after masking: what the model sees, where it predicts, and what was done there."""

    input_ids: Tensor  # (N, T), corrupted
    predict_at: Tensor  # (K,), n·T + t of each selected position
    original_ids: Tensor  # (K,), the original ids there
    done: Tensor  # (K,) int8: 1 [MASK], 2 random id, 3 kept

    @property
    def labels(self) -> Tensor:
        """(N, T): the original id where selected, −100 elsewhere."""
        return self._spread(self.original_ids, IGNORED)

    @property
    def action(self) -> Tensor:
        """(N, T) int8: 0 not selected, 1 became [MASK], 2 became a random id, 3 kept."""
        return self._spread(self.done, 0)

    @property
    def selected(self) -> Tensor:
        """(N, T) bool: is this position selected for prediction?"""
        return self.action != 0

    def _spread(self, values: Tensor, elsewhere: int) -> Tensor:
        flat = values.new_full((self.input_ids.numel(),), elsewhere)
        flat[self.predict_at] = values
        return flat.view_as(self.input_ids)


def mask_sequences(
    sequences: PackedSequences,
    special: SpecialIds,
    *,
    rate: float = 0.15,
    mix: tuple[float, float, float] = BERT_MIX,
    seed: int = 0,
    epoch: int = 0,
    first_example: int = 0,
    examples: Tensor | None = None,
    max_predictions: int | None = None,
) -> Masked:
    """BERT's masking. Another epoch gives another mask; the same (seed, epoch, example) the same
    one.

    The sequences are examples first_example, first_example + 1, … unless `examples` (N,) numbers
    them. (Other members' programs select otherwise: released_masking.py.) Raises ValueError for a
    rate or mix that is no probability and for ids outside the vocabulary.
    """
    check_rate(rate)
    check_mix(mix)
    examples = numbered(sequences, first_example, examples)
    corrupted, at, done = mask_tokens(
        sequences.input_ids,
        eligible_positions(sequences, special),
        sequences.attention_mask.sum(dim=1),
        examples,
        mask_id=special.mask,
        vocab_size=special.vocab_size,
        rate=rate,
        mix=mix,
        seed=seed,
        epoch=epoch,
        max_predictions=max_predictions,
    )
    return Masked(corrupted, at, sequences.input_ids.flatten()[at], done)


def mask_whole_words(
    sequences: PackedSequences,
    special: SpecialIds,
    word_of: Tensor,
    *,
    rate: float = 0.15,
    mix: tuple[float, float, float] = BERT_MIX,
    seed: int = 0,
    epoch: int = 0,
    first_example: int = 0,
    examples: Tensor | None = None,
    max_predictions: int | None = None,
    max_words: int = 1,
) -> Masked:
    """As `mask_sequences`, but a word is hidden with all its pieces, or not at all.

    word_of (N, T): the number of the word a position belongs to, −1 where none may fall;
    neighbours with the same number are one word (see `word_numbers`). max_words: 1 hides words one
    by one; 3 is ALBERT's n-gram masking, runs of 1, 2 or 3 words with probability 6/11, 3/11 and
    2/11. [MASK], random id or kept is drawn for each piece by itself, as in BERT's released
    generator. The exact rule is in kernels/unit_masking.py.
    Raises ValueError as `mask_sequences` does, and for a word_of or max_words that makes no sense.
    """
    check_rate(rate)
    check_mix(mix)
    check_words(sequences, word_of)
    _check_max_words(max_words)
    examples = numbered(sequences, first_example, examples)
    at = select_words(
        word_of.long().masked_fill(~eligible_positions(sequences, special), -1),
        sequences.attention_mask.sum(dim=1),
        examples,
        rate=rate,
        seed=seed,
        epoch=epoch,
        max_predictions=max_predictions,
        max_words=max_words,
    )
    return masked_at(sequences, special, at, examples, mix=mix, seed=seed, epoch=epoch)


def masked_at(
    sequences: PackedSequences, special: SpecialIds, at: Tensor, examples: Tensor, **draw: Any
) -> Masked:
    """The sequences with [MASK], a random id or the word itself at the selected positions: at (K,),
    n·T + t. draw: the settings of `apply_mix`."""
    corrupted, done = apply_mix(
        sequences.input_ids,
        at,
        examples,
        mask_id=special.mask,
        vocab_size=special.vocab_size,
        **draw,
    )
    return Masked(corrupted, at, sequences.input_ids.flatten()[at], done)


def eligible_positions(sequences: PackedSequences, special: SpecialIds) -> Tensor:
    """(N, T) bool: where a mask may fall."""
    _check_vocabulary(sequences.input_ids, special.vocab_size)
    eligible = sequences.attention_mask.bool()
    for special_id in special.never_masked:
        eligible = eligible & (sequences.input_ids != special_id)
    return eligible


def numbered(sequences: PackedSequences, first_example: int, examples: Tensor | None) -> Tensor:
    """(N,): the number of each sequence in its corpus."""
    if examples is None:
        return torch.arange(first_example, first_example + len(sequences))
    return examples


def masked_lm_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean cross-entropy over the selected positions, in nats.

    outputs.prediction_logits (…, V) against targets["labels"] (…), where −100 is ignored. Of a
    part of a batch, targets["num_labels"] is how many the whole has (see `split_batch`).
    """
    labels, count = targets["labels"], targets.get("num_labels")
    loss = mean_cross_entropy(outputs.prediction_logits, labels, count)
    return {"total": loss, "mlm": loss}


def check_rate(rate: float) -> None:
    """Raise ValueError unless `rate` is a fraction from 0 to 1."""
    if not 0 <= rate <= 1:  # also refuses not-a-number
        raise ValueError(
            f"rate={rate!r} was given; expected a fraction of positions, 0 to 1. BERT's is 0.15."
        )


def check_mix(mix: tuple[float, float, float]) -> None:
    """Raise ValueError unless the three probabilities lie in 0..1 and sum to one."""
    if len(mix) != 3 or not all(0 <= p <= 1 for p in mix):
        raise ValueError(
            f"mix={mix!r} was given; expected three probabilities, 0 to 1: of [MASK], of random "
            "words, "
            f"of words left as they are. BERT's is {BERT_MIX}."
        )
    if not math.isclose(sum(mix), 1, abs_tol=1e-9):
        raise ValueError(
            f"mix={mix!r} sums to {sum(mix):.4g}; expected 1. Change the third one to "
            f"{1 - mix[0] - mix[1]:.4g}, or one of the others."
        )


def check_words(sequences: PackedSequences, word_of: Tensor) -> None:
    """Raise ValueError unless word_of (N, T) holds numbers of words, or −1."""
    whole = word_of.dtype in (torch.int64, torch.int32, torch.int16)
    if word_of.shape != sequences.input_ids.shape or not whole:
        raise ValueError(
            f"word_of of shape {tuple(word_of.shape)} and type {word_of.dtype} was given; expected "
            f"whole numbers in the shape of the sequences, {tuple(sequences.input_ids.shape)}. "
            "word_numbers(tokenizer, input_ids, attention_mask) makes them."
        )
    if word_of.numel() and int(word_of.min()) < -1:
        raise ValueError(
            f"word_of holds {int(word_of.min())}; expected numbers of words from 0 on, and -1 "
            "where no mask may fall."
        )


def _check_max_words(max_words: int) -> None:
    if not isinstance(max_words, int) or max_words < 1:
        raise ValueError(
            f"max_words={max_words!r} was given; expected a whole number of at least 1: 1 hides "
            "words one by one, 3 is ALBERT's."
        )


def _check_vocabulary(ids: Tensor, vocab_size: int) -> None:
    low, high = (int(x) for x in torch.aminmax(ids))
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"Ids from {low} to {high} were given; expected 0 to {vocab_size - 1}, the "
            "vocabulary's. "
            "Encode the text with the tokenizer whose special ids you pass."
        )
