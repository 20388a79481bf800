"""How often each language is read: in proportion to p^α, p its fraction of the data, so that small
languages are read more often than their size says and large ones less.

Three programs count p three ways. mBERT: p^0.7 of the size of each Wikipedia. XLM: sentences, and
its own default is no p at all, every language alike. XLM-R: blocks of tokens, p^0.3 in the paper,
p^1 by default in its program.

By hand: 900 and 100 sentences are p = 0.9 and 0.1. With α = 0.5 the roots are 0.949 and 0.316,
which add up to 1.265: the languages are read with probabilities 0.75 and 0.25."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from course_lib.objectives.sequences import PackedSequences

MBERT, XLM_R = 0.7, 0.3  # the exponents of mBERT's README and of XLM-R's section 3
UNIFORM = -1  # XLM's `lg_sampling_factor` for every language alike


def smoothed(sizes: Sequence[float], alpha: float) -> list[float]:
    """The probability of each language, p^α / Σ p^α: 1 keeps the data's shares, 0 makes all equal.

    sizes: how much there is of each, in any unit. mBERT's definition is smoothed(sizes, MBERT).
    Raises ValueError for no languages, a size that is not above 0, and α outside 0 to 1."""
    if not sizes or not all(0 < size < float("inf") for size in sizes):
        raise ValueError(
            f"sizes={list(sizes)} were given; expected one number above 0 a language. Leave out a "
            "language without text."
        )
    if not 0 <= alpha <= 1:
        raise ValueError(
            f"alpha={alpha!r} was given; expected 0 (all languages alike) to 1 (as much as there "
            "is of each)."
        )
    powers = [(size / sum(sizes)) ** alpha for size in sizes]
    return [power / sum(powers) for power in powers]


def by_sentences(sentences: Sequence[int], factor: float = UNIFORM) -> list[float]:
    """XLM's definition: sizes are sentences, whatever their length. factor: its
    `lg_sampling_factor`, an exponent above 0, or −1 to make all languages equally likely. Raises
    ValueError as `smoothed`, and for 0, which the program does not take either."""
    if factor == 0:
        raise ValueError("factor=0 was given; expected an exponent above 0, or -1 for all alike.")
    return smoothed(sentences, 0 if factor == UNIFORM else factor)


def by_blocks(tokens: Sequence[int], block: int = 512, alpha: float = 1.0) -> list[float]:
    """XLM-R's definition: sizes are blocks of `block` tokens, the last one not full. Raises
    ValueError as `smoothed`, and for a block of no tokens."""
    if block < 1:
        raise ValueError(f"block={block!r} was given; expected at least one token.")
    return smoothed([-(-count // block) for count in tokens], alpha)


def times_read(sizes: Sequence[float], probabilities: Sequence[float]) -> list[float]:
    """How often each text of a language is read while as many are read as there are in all."""
    return [p * sum(sizes) / size for size, p in zip(sizes, probabilities, strict=True)]


def shared_out(total: int, probabilities: Sequence[float]) -> list[int]:
    """`total` texts as whole numbers in these proportions: each rounded down, then one more for
    those that lost most. Raises ValueError for a total below 1, and for what does not sum to 1."""
    if (
        total < 1
        or not probabilities
        or min(probabilities) < 0
        or abs(sum(probabilities) - 1) > 1e-6
    ):
        raise ValueError(
            f"total={total!r} and probabilities={list(probabilities)} were given; expected at "
            "least 1, and numbers from 0 on that sum to 1."
        )
    exact = [total * p for p in probabilities]
    counts = [int(count) for count in exact]
    order = sorted(range(len(exact)), key=lambda i: counts[i] - exact[i])
    for i in order[: total - sum(counts)]:
        counts[i] += 1
    return counts


def mixed_languages(
    by_language: Sequence[PackedSequences],
    probabilities: Sequence[float],
    total: int,
    *,
    tell: bool = False,
    seed: int = 0,
) -> PackedSequences:
    """One stream of `total` sequences out of several languages, for `pretraining_batches`: MLM as
    in mBERT, XLM-R and, with `tell`, XLM, whose token_type_ids are the number of the language.

    Of each language as many sequences as its probability says: a small one is repeated whole, and
    what is left over is drawn without repetition. Language after language; batches are shuffled
    later. Raises ValueError unless all have one length and a probability, and as `shared_out`."""
    lengths = {part.input_ids.shape[1] for part in by_language}
    if (
        len(lengths) != 1
        or len(by_language) != len(probabilities)
        or not all(map(len, by_language))
    ):
        raise ValueError(
            f"{len(by_language)} languages with sequences of lengths {sorted(lengths)} and "
            f"{len(probabilities)} probabilities were given; expected sequences of one length for "
            "each language, and a probability for each."
        )
    draw = torch.Generator().manual_seed(seed)
    parts = []
    for part, count in zip(by_language, shared_out(total, probabilities), strict=True):
        times = -(-count // len(part))
        rounds = [torch.randperm(len(part), generator=draw) for _ in range(times)]
        parts.append(part[torch.cat([torch.empty(0, dtype=torch.long), *rounds])[:count]])
    if tell:
        parts = [
            replace(part, token_type_ids=torch.full_like(part.input_ids, language))
            for language, part in enumerate(parts)
        ]
    names = parts[0].inputs
    return PackedSequences(**{n: torch.cat([part.inputs[n] for part in parts]) for n in names})
