"""Hiding whole words, or runs of words, instead of single positions.

Whole words, as in BERT's released generator: the words of a sequence stand in random order; each is
taken with all its pieces if it fits into what is left of the sequence's count, else passed over.
Runs of words (ALBERT's n-gram masking, Lan et al. 2019, section 4.1): each word of that order
begins a run of n words, n at most `max_words` with probability proportional to 1/n. A run is cut
where the sequence's words end; then it loses words at its end until it fits into what is left; and
it is passed over if nothing is left of it, or if one of its words is hidden already. A word passed
over is not tried again. So a sequence's count is never exceeded, and may be missed by a little.
Longer runs meet masked words more often, so among the runs taken they are rarer than among those
drawn.

The released generators differ in three points. There a run may go on behind a [SEP], here a special
token ends it. There a segment's first pieces, if cut off from their word, join the word before the
[SEP]; here they are a word. And there random numbers come from a stream, here from a counter: see
masking.py, which also says what a sequence's count is. (Here it is at most the pieces it has.)

A word is a stretch of neighbouring positions with the same number; −1 is no word. Both twins order
the words by the first 48 bits of their numbers, so with words of one piece they select what plain
masking does. N sequences, T positions, W words, M max_words, K selected positions."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .masking import CHOICE, LENGTH, as_uniform, count_to_predict, counts_to_predict, random_bits

LONGEST_ROW = 2**16 - 1  # a word's number in its sequence takes 16 of the 64 bits it is sorted by
_PLACE = np.uint64(LONGEST_ROW)
_TOO_LONG = 2**40


def run_lengths(
    seed: int, epoch: int, example: np.ndarray, first: np.ndarray, max_words: int
) -> np.ndarray:
    """How many words the run has that begins at position `first` of `example`: n with p(n) ∝ 1/n.

    With max_words=3 the probabilities are 6/11, 3/11 and 2/11."""
    if max_words == 1:
        return np.ones(len(first), dtype=np.int64)
    weights = np.cumsum(1 / np.arange(1, max_words + 1))
    uniform = as_uniform(random_bits(seed, epoch, example, LENGTH, first))
    return 1 + np.searchsorted(weights / weights[-1], uniform, side="right")


def select_words_reference(
    word_of: Tensor,
    lengths: Tensor,
    examples: Tensor,
    *,
    rate: float,
    seed: int,
    epoch: int,
    max_predictions: int | None = None,
    max_words: int = 1,
) -> Tensor:
    """Which positions are hidden, one sequence and one run at a time.

    word_of (N, T), the word a position belongs to, −1 where none may fall; lengths (N,) real
    tokens; examples (N,) the number of each sequence in its corpus. Returns n·T + t of the selected
    positions, in rising order (K,)."""
    T = word_of.shape[1]
    selected: list[int] = []
    for n, example in enumerate(examples.numpy()):
        words = words_of_row(word_of[n].tolist())
        first = np.array([word.start for word in words], dtype=np.int64)
        draw = random_bits(seed, epoch, np.array([example]), CHOICE, first) >> np.uint64(16)
        runs = run_lengths(seed, epoch, np.array([example]), first, max_words)
        count = count_to_predict(int(lengths[n]), rate, max_predictions)
        left = min(count, sum(map(len, words)))
        hidden: set[int] = set()
        for w in np.argsort(draw, kind="stable"):
            positions = run_that_fits(words, int(w), int(runs[w]), left)
            if hidden.isdisjoint(positions):
                hidden.update(positions)
                left -= len(positions)
        selected += [n * T + t for t in sorted(hidden)]
    return torch.tensor(selected).long()


def words_of_row(numbers: list[int]) -> list[range]:
    """The stretches of positions that share a number, −1 left out: [-1, 0, 0, 1] -> 1–2 and 3."""
    words: list[range] = []
    for t, number in enumerate(numbers):
        if number >= 0 and t > 0 and numbers[t - 1] == number:
            words[-1] = range(words[-1].start, t + 1)
        elif number >= 0:
            words.append(range(t, t + 1))
    return words


def run_that_fits(words: list[range], begin: int, n: int, left: int) -> list[int]:
    """The positions of up to `n` words from words[begin] on: without a gap, and at most `left`."""
    positions: list[int] = []
    for word in words[begin : begin + n]:
        gap = bool(positions) and word.start != positions[-1] + 1
        if gap or len(positions) + len(word) > left:
            break
        positions += word
    return positions


def select_words(
    word_of: Tensor,
    lengths: Tensor,
    examples: Tensor,
    *,
    rate: float,
    seed: int,
    epoch: int,
    max_predictions: int | None = None,
    max_words: int = 1,
) -> Tensor:
    """The same for the whole batch at once: all sequences try their first word, then their second,
    …

    Raises ValueError for sequences of more than 65,535 positions."""
    if word_of.shape[1] > LONGEST_ROW:
        raise ValueError(
            f"Sequences of {word_of.shape[1]:,} positions were given; expected at most "
            f"{LONGEST_ROW:,}. Cut the sequences before masking them."
        )
    numbers = word_of.numpy()
    begin, extent, is_word = _stretches(numbers)
    first, size = begin[is_word], extent[is_word]  # (W,) of all sequences together
    row, column = np.divmod(first, numbers.shape[1])
    example = examples.numpy()[row]
    order = _random_order(random_bits(seed, epoch, example, CHOICE, column), row, len(numbers))
    left = counts_to_predict(lengths.numpy(), numbers >= 0, rate, max_predictions)
    if max_words == 1:
        taken = _take_words(order, size, left)
    else:
        drawn = run_lengths(seed, epoch, example, column, max_words)
        taken = _take_runs(order, _tokens_of_runs(first, size, row, drawn, max_words), left)
    hidden = np.zeros(len(begin), dtype=bool)
    hidden[is_word] = taken[: len(first)]
    return torch.from_numpy(np.flatnonzero(np.repeat(hidden, extent)))


def _stretches(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each stretch of one number begins in the flattened batch, its length, is it a word."""
    edge = np.ones(numbers.shape, dtype=bool)  # every sequence begins a stretch
    np.not_equal(numbers[:, 1:], numbers[:, :-1], out=edge[:, 1:])
    begin = np.flatnonzero(edge)
    return begin, np.diff(begin, append=numbers.size), numbers.reshape(-1)[begin] >= 0


def _random_order(bits: np.ndarray, row: np.ndarray, rows: int) -> np.ndarray:
    """The words of each sequence in the order they are tried: (most words in one, N).

    Words are numbered through the batch; where a sequence has no more, the number is W."""
    counts = np.bincount(row, minlength=rows)
    start = np.cumsum(counts) - counts
    place = np.arange(len(row)) - start[row]
    keys = np.full((rows, counts.max(initial=0)), np.uint64(2**64 - 1))
    keys[row, place] = bits & ~_PLACE | place.astype(np.uint64)
    keys.sort(axis=1)  # position and random bits in one number: no slower argsort is needed
    place = (keys & _PLACE).astype(np.int64)
    return np.where(place == int(_PLACE), len(row), start[:, None] + place).T.copy()


def _take_words(order: np.ndarray, size: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Which words are hidden (W + 1,), one by one, when a sequence may hide `left` (N,) tokens."""
    size = np.append(size, _TOO_LONG)
    taken = np.zeros(len(size), dtype=bool)
    for word in order:  # (N,), the next of each sequence
        if not left.any():
            break
        fits = size[word] <= left
        taken[word[fits]] = True
        left = left - size[word] * fits
    return taken


def _tokens_of_runs(
    first: np.ndarray, size: np.ndarray, row: np.ndarray, drawn: np.ndarray, max_words: int
) -> np.ndarray:
    """The tokens of the first m words of the run at each word, m = 1 to M: (M, W + M).

    Too long for any sequence where the run has fewer words than m. The last M columns stand for no
    word, so that a run may be looked up beyond the last one."""
    words = len(first)
    tokens = np.full((max_words, words + max_words), _TOO_LONG)
    tokens[0, :words] = size
    goes_on = np.ones(words, dtype=bool)
    for m in range(1, min(max_words, words)):
        whole = words - m  # runs of m + 1 words that end before the batch does
        end = first[m - 1 : -1] + size[m - 1 : -1]  # of the run's words so far
        near = (end == first[m:]) & (row[:whole] == row[m:])
        goes_on = goes_on[:whole] & near & (drawn[:whole] > m)
        longer = tokens[m - 1, :whole] + size[m:]
        tokens[m, :whole] = np.where(goes_on, longer, _TOO_LONG)
    return tokens


def _take_runs(order: np.ndarray, tokens: np.ndarray, left: np.ndarray) -> np.ndarray:
    """The same for runs of words (W + M,): they are shortened to fit, and must not meet."""
    step = np.arange(len(tokens))[:, None]  # (M, 1)
    taken = np.zeros(tokens.shape[1], dtype=bool)
    for word in order:  # (N,), the next of each sequence
        if not left.any():
            break
        fits = tokens[:, word] <= left  # (M, N): a run's tokens grow with m
        run = word + step
        fits &= ~(taken[run] & fits).any(axis=0)
        taken[run[fits]] = True
        longest = fits.sum(axis=0)  # (N,), 0 where the run is passed over
        left = left - np.where(longest > 0, tokens[longest - 1, word], 0)
    return taken
