"""Masks as other members' programs draw them, where these depart from BERT's rule.

roberta (fairseq, mask_tokens_dataset.py): `<s>` and `</s>` are masked like words, 2 of 64 selected
positions at 64 tokens; rate · n is rounded up or down at random, so that it holds on average; and a
random id is never padding, unknown, `<s>` or `</s>`.
electra (pretrain_helpers.py): positions are drawn with replacement, at most 15.5% of the sequence's
positions, rounded down. Of 9 draws among the 62 words of 64 tokens 8.4 are distinct: 13% are
selected, not 15%. (Here a position drawn twice is one: it counts once in
the loss. In the program it counts twice, and where the generator fills it with two different words,
the discriminator reads the piece whose id is the mean of theirs, rounded down.)
distilbert (distiller.py): rare tokens are preferred, each with a weight of 1 / count^0.7, and
special ones never taken. (The program draws from all sequences of a batch together, here each
sequence has BERT's number: a mask does not depend on its neighbours.)
xlm: `translation_lm.mask_anywhere`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from course_lib.config import check_choice
from course_lib.kernels.masking import CHOICE, as_uniform, counts_to_predict, random_bits

from .masked_lm import (
    BERT_MIX,
    Masked,
    check_mix,
    check_rate,
    eligible_positions,
    mask_sequences,
    masked_at,
    numbered,
)
from .sequences import PackedSequences, SpecialIds
from .translation_lm import mask_anywhere

RULES = ("bert", "roberta", "electra", "distilbert", "xlm")
SMOOTHING = 0.7  # DistilBERT's --mlm_smoothing
ROUND = 6  # what a random number is for, beside those of kernels/masking.py


def mask_as_released(
    sequences: PackedSequences,
    special: SpecialIds,
    rule: str,
    *,
    token_counts: Tensor | None = None,
    smoothing: float = SMOOTHING,
    rate: float = 0.15,
    mix: tuple[float, float, float] = BERT_MIX,
    seed: int = 0,
    epoch: int = 0,
    first_example: int = 0,
    examples: Tensor | None = None,
) -> Masked:
    """As `mask_sequences`, by the rule of another member: one of RULES.

    token_counts (V,): how often each id occurs in the corpus, for distilbert; smoothing: its
    exponent, 0 makes all alike. Raises ValueError as `mask_sequences` does, for another rule, and
    for counts that are missing or do not fit the vocabulary."""
    check_rule(rule)
    settings = {"mix": mix, "seed": seed, "epoch": epoch}
    examples = numbered(sequences, first_example, examples)
    if rule in ("bert", "xlm"):
        mask = mask_sequences if rule == "bert" else mask_anywhere
        return mask(sequences, special, rate=rate, examples=examples, **settings)  # type: ignore
    check_rate(rate)
    check_mix(mix)
    eligible = eligible_positions(sequences, special)
    real, key = sequences.attention_mask.numpy() != 0, examples.numpy()[:, None]
    uniform = as_uniform(random_bits(seed, epoch, key, CHOICE, np.arange(real.shape[1])))
    frequencies = None
    if rule == "roberta":
        once = as_uniform(random_bits(seed, epoch, key, ROUND, np.arange(1)))[:, 0]
        selected = _lowest(uniform, real, np.floor(rate * real.sum(axis=1) + once))
        frequencies = torch.ones(special.vocab_size)
        frequencies[[*special.never_masked, special.unk]] = 0
    elif rule == "electra":
        allowed = (eligible & (sequences.input_ids != special.mask)).numpy()
        selected = _drawn_again(uniform, allowed, real.sum(axis=1), rate)
    else:
        weights = rare_token_weights(token_counts, special, smoothing)[sequences.input_ids].numpy()
        allowed = eligible.numpy() & (weights > 0)
        # An exponential time each, at a rate of its weight: the first ones to ring are a draw by
        # weight without replacement.
        times = -np.log1p(-uniform) / np.where(allowed, weights, 1)
        count = counts_to_predict(real.sum(axis=1), allowed, rate, None)
        selected = _lowest(times, allowed, count)
    at = torch.from_numpy(np.flatnonzero(selected))
    return masked_at(sequences, special, at, examples, frequencies=frequencies, **settings)


def rare_token_weights(
    token_counts: Tensor | None, special: SpecialIds, smoothing: float = SMOOTHING
) -> Tensor:
    """(V,) float64: 1 / count^smoothing, a count of 0 as 1, and 0 for special tokens."""
    if token_counts is None or token_counts.shape != (special.vocab_size,):
        got = None if token_counts is None else tuple(token_counts.shape)
        raise ValueError(
            f"token_counts of shape {got} were given; expected ({special.vocab_size},): how often "
            "each id occurs. input_ids.flatten().bincount(minlength=vocab_size) counts them."
        )
    weights = token_counts.double().clamp(min=1) ** -smoothing
    weights[[*special.never_masked, special.unk, special.mask]] = 0
    return weights


def check_rule(rule: str, single_tokens: bool = True) -> None:
    """Raise ValueError for a rule that is none, and for one with whole words or spans."""
    check_choice("masking", rule, RULES)
    if rule != RULES[0] and not single_tokens:
        raise ValueError(
            f"masking={rule!r} was given with whole words or spans; expected single tokens "
            '(units = "tokens", no word_of), or masking="bert".'
        )


def _lowest(draw: np.ndarray, allowed: np.ndarray, count: np.ndarray) -> np.ndarray:
    """(N, T) bool: the `count` (N,) lowest numbers of each sequence among the allowed positions."""
    place = np.where(allowed, draw, np.inf).argsort(axis=1, kind="stable").argsort(axis=1)
    return allowed & (place < count[:, None])


def _drawn_again(
    uniform: np.ndarray, allowed: np.ndarray, lengths: np.ndarray, rate: float
) -> np.ndarray:
    """(N, T) bool: as many draws as BERT selects positions, or as the program has room for
    (configure_pretraining.py, max_predictions_per_seq); each among all allowed positions."""
    room = max(1, int((rate + 0.005) * allowed.shape[1]))
    count = counts_to_predict(lengths, allowed, rate, room)
    words = np.argsort(~allowed, axis=1, kind="stable")  # the allowed positions first, in order
    drawn = (uniform * allowed.sum(axis=1, keepdims=True)).astype(np.int64)
    row, number = np.nonzero(np.arange(allowed.shape[1]) < count[:, None])
    selected = np.zeros_like(allowed)
    selected[row, words[row, drawn[row, number]]] = True
    return selected
