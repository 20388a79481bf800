"""Hiding spans: runs of words whose lengths are drawn from a geometric distribution (Joshi et al.
2019, section 3.1).

A sequence of n eligible positions hides ceil(rate · n) of them. Until it does, a position is drawn,
uniformly from those not yet hidden, and a length of l words with p(l) ∝ p · (1 − p)^(l − 1), l at
most `max_words`. The span begins where the word of that position begins, runs over words that are
hidden already (they count among its l), and ends where its neighbouring words end: at a special
token, or with the sequence. The last span is cut where the count is reached, also inside a word;
with `whole_words` it takes the rest of that word, as the paper's text asks for complete words.
Spans that meet or touch are one span, as in the released code; without `merge` a position belongs
to the span that hid it first.

Random numbers come from a counter, as in masking.py: attempt i of example e has a position and a
length of its own, so both twins agree in every position. A word is a stretch of neighbouring
positions with the same number; −1 is no word. N sequences, T positions, W words, K selected
positions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .masking import CHOICE, LENGTH, as_uniform, random_bits
from .unit_masking import words_of_row

_AT_ONCE = 16  # attempts whose random numbers are made together


def length_probabilities(p: float, max_words: int) -> np.ndarray:
    """P(l) for l = 1 to max_words: geometric, truncated after max_words and renormalised.

    Raises ValueError unless 0 < p ≤ 1 and max_words is a whole number of at least 1."""
    if not 0 < p <= 1:
        raise ValueError(
            f"p={p!r} was given; expected a probability above 0 and at most 1. SpanBERT's is 0.2; "
            "with 1 every span is one word."
        )
    if not isinstance(max_words, int) or max_words < 1:
        raise ValueError(
            f"max_words={max_words!r} was given; expected a whole number of at least 1. SpanBERT's "
            "is 10."
        )
    weights = p * (1 - p) ** np.arange(max_words)
    return weights / weights.sum()


def draw_spans(
    seed: int, epoch: int, example: np.ndarray, attempt: np.ndarray, p: float, max_words: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each (example, attempt), broadcast: where to begin, as a fraction of the eligible
    positions, and how many words."""
    where = as_uniform(random_bits(seed, epoch, example, CHOICE, attempt))
    uniform = as_uniform(random_bits(seed, epoch, example, LENGTH, attempt))
    steps = length_probabilities(p, max_words).cumsum()[:-1]
    return where, 1 + np.searchsorted(steps, uniform, side="right")


def select_spans_reference(
    word_of: Tensor,
    examples: Tensor,
    *,
    rate: float,
    seed: int,
    epoch: int,
    p: float = 0.2,
    max_words: int = 10,
    whole_words: bool = False,
    merge: bool = True,
) -> tuple[Tensor, Tensor]:
    """Which positions are hidden, one sequence and one span at a time.

    word_of (N, T), the word a position belongs to, −1 where none may fall; examples (N,) the number
    of each sequence in its corpus. Returns n·T + t of the selected positions, in rising order (K,),
    and for each of them the first position of its span (K,)."""
    T = word_of.shape[1]
    selected, begins = list[int](), list[int]()
    for n, example in enumerate(examples.numpy()):
        words = words_of_row(word_of[n].tolist())
        at_word = {t: w for w, word in enumerate(words) for t in word}
        eligible, hider = sorted(at_word), dict[int, int]()  # position -> the attempt that hid it
        count, attempt = math.ceil(rate * len(eligible)), 0
        while len(hider) < count:
            where, length = (
                x.item()
                for x in draw_spans(
                    seed, epoch, np.array([example]), np.array([attempt]), p, max_words
                )
            )
            anchor = eligible[int(where * len(eligible))]
            if anchor not in hider:
                span = span_from(words, at_word[anchor], length)
                hide(hider, span, attempt, count, at_word if whole_words else None)
            attempt += 1
        for t in sorted(hider):
            goes_on = t - 1 in hider and (merge or hider[t - 1] == hider[t])
            begins.append(begins[-1] if goes_on else n * T + t)
            selected.append(n * T + t)
    return torch.tensor(selected).long(), torch.tensor(begins).long()


def span_from(words: list[range], begin: int, length: int) -> list[int]:
    """The positions of up to `length` words from words[begin] on, without a gap."""
    positions: list[int] = []
    for word in words[begin : begin + length]:
        if positions and word.start != positions[-1] + 1:
            break
        positions += word
    return positions


def hide(
    hider: dict[int, int],
    span: list[int],
    attempt: int,
    count: int,
    complete: dict[int, int] | None,
) -> None:
    """Hide the span's positions that are not hidden yet, until `count` are; complete: the word of
    each position, if the word that is begun is to be hidden whole."""
    last = -1
    for t in span:
        if t in hider:
            continue
        if len(hider) >= count and not (complete and complete[t] == last):
            break
        hider[t] = attempt
        last = complete[t] if complete else -1


def select_spans(
    word_of: Tensor,
    examples: Tensor,
    *,
    rate: float,
    seed: int,
    epoch: int,
    p: float = 0.2,
    max_words: int = 10,
    whole_words: bool = False,
    merge: bool = True,
) -> tuple[Tensor, Tensor]:
    """The same for the whole batch at once: all sequences make their first attempt, then their
    second, …"""
    numbers = word_of.numpy()
    tokens = numbers.shape[1]
    text = _words(numbers)
    eligible = (numbers >= 0).sum(axis=1)
    places = np.flatnonzero(numbers >= 0)  # of all sequences together
    start = eligible.cumsum() - eligible
    left = np.ceil(rate * eligible).astype(np.int64)
    hider = np.full(numbers.size, -1)  # the attempt that hid the position
    example, attempt = examples.numpy(), 0
    unfinished = np.flatnonzero(left > 0)
    while len(unfinished):
        drawn = np.arange(attempt, attempt + _AT_ONCE)
        where, length = draw_spans(seed, epoch, example[:, None], drawn, p, max_words)
        for i in range(_AT_ONCE):
            row = unfinished[left[unfinished] > 0]
            anchor = places[start[row] + (where[row, i] * eligible[row]).astype(np.int64)]
            free = hider[anchor] < 0
            row, word = row[free], text.at[anchor[free]]
            last = np.minimum(word + length[row, i] - 1, text.last[word])
            new, of = _not_hidden(hider, text.begin[word], text.end[last])
            kept = _until_full(new, of, left[row], text.at if whole_words else None)
            hider[new[kept]] = attempt + i
            left[row] -= np.bincount(of[kept], minlength=len(row))
        attempt += _AT_ONCE
        unfinished = unfinished[left[unfinished] > 0]
    at = torch.from_numpy(np.flatnonzero(hider >= 0))
    return at, run_begins(at, tokens, None if merge else torch.from_numpy(hider)[at])


def run_begins(at: Tensor, tokens: int, of: Tensor | None = None) -> Tensor:
    """The first position of the run that each position is in: at (K,), n·T + t in rising order. A
    run ends with its row, and where `of` (K,) changes."""
    begins = torch.ones_like(at, dtype=torch.bool)
    begins[1:] = (at.diff() > 1) | (at[1:] % tokens == 0)
    if of is not None:
        begins[1:] |= of.diff() != 0
    return at[begins][begins.cumsum(0) - 1] if len(at) else at


class _Words(NamedTuple):
    """The words of a batch, numbered through it."""

    at: np.ndarray  # (N·T,), the word at each position; without meaning where there is none
    begin: np.ndarray  # (W,), its first position, as n·T + t
    end: np.ndarray  # (W,), the position behind its last
    last: np.ndarray  # (W,), the last word that it has no gap to


def _words(numbers: np.ndarray) -> _Words:
    edge = np.ones(numbers.shape, dtype=bool)  # every sequence begins a stretch
    np.not_equal(numbers[:, 1:], numbers[:, :-1], out=edge[:, 1:])
    stretch = np.flatnonzero(edge)
    is_word = numbers.reshape(-1)[stretch] >= 0
    begin, end = stretch[is_word], np.append(stretch[1:], numbers.size)[is_word]
    at = (np.cumsum(is_word) - 1)[np.cumsum(edge) - 1]
    gap = np.ones(len(begin), dtype=bool)  # is there one behind the word?
    gap[:-1] = (end[:-1] != begin[1:]) | (begin[1:] % numbers.shape[1] == 0)
    ends = np.flatnonzero(gap)
    return _Words(at, begin, end, ends[np.searchsorted(ends, np.arange(len(begin)))])


def _not_hidden(
    hider: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The positions from begin[k] to before end[k] that nothing hides yet, and k of each."""
    size = end - begin
    of = np.repeat(np.arange(len(size)), size)
    position = np.arange(len(of)) + np.repeat(begin - (size.cumsum() - size), size)
    free = hider[position] < 0
    return position[free], of[free]


def _until_full(
    new: np.ndarray, of: np.ndarray, left: np.ndarray, word_at: np.ndarray | None
) -> np.ndarray:
    """Which of the new positions of span `of` fit into what its sequence has left; word_at: where
    the word that is begun is hidden whole."""
    counts = np.bincount(of, minlength=len(left))
    rank = np.arange(len(of)) - (counts.cumsum() - counts)[of]
    kept = rank < left[of]
    if word_at is not None and len(kept):
        words = word_at[new]
        first = np.flatnonzero(np.append(True, words[1:] != words[:-1]))
        kept = np.repeat(kept[first], np.diff(first, append=len(words)))
    return kept
