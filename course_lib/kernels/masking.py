"""Which positions are hidden, and by what: BERT's masking as a pure function of (seed, epoch,
example).

The rule is that of Devlin et al. 2018, section 3.1, with the count of the released generator: of a
sequence of n tokens, min(max_predictions, max(1, round(rate · n))) positions are selected; n counts
[CLS] and [SEP] although these never are. Of the selected, a part becomes [MASK], a part a
random id, the rest stays.

Random numbers come from a counter, not from a stream: number i of example e in epoch p is a hash of
(seed, p, e, i). So a mask is never stored, any sequence can be made again alone, and both twins
agree exactly. N sequences, T positions, K selected positions in all."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

NOT_SELECTED, MASKED, RANDOM, KEPT = 0, 1, 2, 3
CHOICE, ACTION, TOKEN, LENGTH = 0, 1, 2, 3  # what a random number is for

# The mixing constants of SplitMix64 (Steele, Lea, Flood 2014): every input bit moves every output
# bit.
_STEP, _MIX1, _MIX2 = (
    np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def _mix(x: np.ndarray) -> np.ndarray:
    """SplitMix64's finaliser, in place on 64-bit unsigned numbers."""
    x ^= x >> np.uint64(30)
    x *= _MIX1
    x ^= x >> np.uint64(27)
    x *= _MIX2
    x ^= x >> np.uint64(31)
    return x


def random_bits(
    seed: int, epoch: int, example: np.ndarray, use: int, index: np.ndarray
) -> np.ndarray:
    """64 random bits for each (example, index), broadcast; the same arguments give the same
    bits."""
    key = np.array([seed % 2**64], dtype=np.uint64)
    for part in (epoch, use):
        key = _mix(key + _STEP * np.array([part + 1], dtype=np.uint64))
    rows = _mix(key + _STEP * (example.astype(np.uint64) + np.uint64(1)))
    return _mix(rows + _STEP * (index.astype(np.uint64) + np.uint64(1)))


def as_uniform(bits: np.ndarray) -> np.ndarray:
    """Random bits as a number from 0 up to, not including, 1."""
    return (bits >> np.uint64(11)) * 2.0**-53


def as_id(bits: np.ndarray, vocab_size: int) -> np.ndarray:
    """Random bits as an id drawn uniformly from the whole vocabulary, special tokens included."""
    return ((bits >> np.uint64(32)) * np.uint64(vocab_size) >> np.uint64(32)).astype(np.int64)


def as_frequent_id(bits: np.ndarray, frequencies: Tensor) -> np.ndarray:
    """Random bits as an id drawn as often as its frequency (V,) says; they need not sum to one."""
    steps = frequencies.double().cumsum(0).numpy()
    return np.searchsorted(steps[:-1] / steps[-1], as_uniform(bits), side="right")


def count_to_predict(tokens: int, rate: float, max_predictions: int | None = None) -> int:
    """How many positions of a sequence of `tokens` real tokens are selected; halves round to even,
    as in Python."""
    count = max(1, round(rate * tokens)) if rate > 0 else 0
    return count if max_predictions is None else min(count, max_predictions)


def mask_tokens_reference(
    input_ids: Tensor,
    eligible: Tensor,
    lengths: Tensor,
    examples: Tensor,
    *,
    mask_id: int,
    vocab_size: int,
    rate: float,
    mix: tuple[float, float, float],
    seed: int,
    epoch: int,
    max_predictions: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """BERT's masking, one sequence and one position at a time.

    input_ids (N, T); eligible (N, T) bool, where a mask may fall; lengths (N,) real tokens;
    examples (N,) the number of each sequence in its corpus. Returns the corrupted ids (N, T), the
    selected positions as n·T + t in rising order (K,), and what was done at each: MASKED, RANDOM or
    KEPT (K,)."""
    corrupted = input_ids.clone()
    T = input_ids.shape[1]
    selected_at, actions = [], []
    for n, example in enumerate(examples.numpy()):
        positions = np.flatnonzero(eligible[n].numpy())
        number = np.array([example])
        draw = random_bits(seed, epoch, number, CHOICE, positions) >> np.uint64(1)
        count = count_to_predict(int(lengths[n]), rate, max_predictions)
        selected = np.sort(positions[np.argsort(draw, kind="stable")[:count]])
        uniforms = as_uniform(random_bits(seed, epoch, number, ACTION, selected))
        random_ids = as_id(random_bits(seed, epoch, number, TOKEN, selected), vocab_size)
        for t, uniform, random_id in zip(selected, uniforms, random_ids, strict=True):
            action = MASKED if uniform < mix[0] else RANDOM if uniform < mix[0] + mix[1] else KEPT
            if action == MASKED:
                corrupted[n, t] = mask_id
            elif action == RANDOM:
                corrupted[n, t] = int(random_id)
            selected_at.append(n * T + int(t))
            actions.append(action)
    return corrupted, torch.tensor(selected_at).long(), torch.tensor(actions).to(torch.int8)


def mask_tokens(
    input_ids: Tensor,
    eligible: Tensor,
    lengths: Tensor,
    examples: Tensor,
    *,
    mask_id: int,
    vocab_size: int,
    rate: float,
    mix: tuple[float, float, float],
    seed: int,
    epoch: int,
    max_predictions: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same, for the whole batch at once: one sort finds each sequence's threshold."""
    allowed, positions = eligible.numpy(), np.arange(input_ids.shape[1])
    draw = random_bits(seed, epoch, examples.numpy()[:, None], CHOICE, positions) >> np.uint64(1)
    draw[~allowed] = np.uint64(2**64 - 1)  # above every real draw
    counts = counts_to_predict(lengths.numpy(), allowed, rate, max_predictions)
    at = torch.from_numpy(np.flatnonzero(draw < _thresholds(draw, counts)[:, None]))  # (K,)
    corrupted, done = apply_mix(
        input_ids, at, examples,
        mask_id=mask_id, vocab_size=vocab_size, mix=mix, seed=seed, epoch=epoch,
    )  # fmt: skip
    return corrupted, at, done


def apply_mix(
    input_ids: Tensor,
    at: Tensor,
    examples: Tensor,
    *,
    mask_id: int,
    vocab_size: int,
    mix: tuple[float, float, float],
    seed: int,
    epoch: int,
    decided_at: Tensor | None = None,
    frequencies: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """What happens at the selected positions: each becomes [MASK], becomes a random id, or stays.

    input_ids (N, T); at (K,), positions as n·T + t; examples (N,); decided_at (K,), the position
    whose draw decides for each, itself if None; frequencies (V,), how often random ids are drawn,
    all alike if None. Returns the corrupted ids (N, T) and what was done at each position (K,)
    int8."""
    T = input_ids.shape[1]
    where = at.numpy()
    number, index = examples.numpy()[where // T], where % T
    decides = index if decided_at is None else decided_at.numpy() % T
    uniform = as_uniform(random_bits(seed, epoch, number, ACTION, decides))
    action = np.where(uniform < mix[0], MASKED, np.where(uniform < mix[0] + mix[1], RANDOM, KEPT))
    random_at = action == RANDOM
    corrupted = input_ids.numpy().reshape(-1).copy()
    corrupted[where[action == MASKED]] = mask_id
    bits = random_bits(seed, epoch, number[random_at], TOKEN, index[random_at])
    corrupted[where[random_at]] = (
        as_id(bits, vocab_size) if frequencies is None else as_frequent_id(bits, frequencies)
    )
    done = torch.from_numpy(action.astype(np.int8))
    return torch.from_numpy(corrupted.reshape(input_ids.shape)), done


def counts_to_predict(
    lengths: np.ndarray, allowed: np.ndarray, rate: float, max_predictions: int | None
) -> np.ndarray:
    """`count_to_predict` of every sequence, and never more than it has eligible positions."""
    values, which = np.unique(lengths, return_inverse=True)  # often all are full: one value
    by_length = [count_to_predict(n, rate, max_predictions) for n in values.tolist()]
    return np.minimum(np.array(by_length, dtype=np.int64)[which], allowed.sum(axis=1))


def _thresholds(draw: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """For each sequence the number that exactly `counts` of its draws lie under."""
    ordered = np.sort(
        draw, axis=1
    )  # numpy sorts short arrays with vector instructions: quicker than a heap
    above = np.full((len(draw), 1), np.uint64(2**64 - 1))
    return np.concatenate([ordered, above], axis=1)[np.arange(len(draw)), counts]
