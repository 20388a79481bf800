"""How the claims of lecture 17 are settled; claims.toml tells them."""

from __future__ import annotations

from statistics import fmean

import torch

from course_lib.objectives.contrastive import info_nce_loss
from course_lib.teaching.claims import Settled

from .numbers import figure, reached, runs_of, where_few_words
from .search import TESTS


def ahead(name: str, other: str, what: str = "ndcg", of: str = "ndcg") -> Settled:
    """nDCG@10 of a way less another's, on unseen modules and on unseen packages, seed means."""
    values = tuple(
        fmean(reached(name, split, what)) - fmean(reached(other, split, of)) for split in TESTS
    )
    words = " and ".join(
        f"{figure(fmean(reached(name, split, what)))} against "
        f"{figure(fmean(reached(other, split, of)))} ({split})"
        for split in TESTS
    )
    return Settled(values, words)


def few_words() -> Settled:
    """The bi-encoder less BM25 where query and document share at most one word."""
    pairs = [(where_few_words("bi-encoder", s), where_few_words("BM25", s)) for s in TESTS]
    detail = ", ".join(
        f"{figure(a)} against {figure(b)} ({s})" for s, (a, b) in zip(TESTS, pairs, strict=True)
    )
    return Settled(tuple(a - b for a, b in pairs), detail)


def shortened(size: int = 32) -> Settled:
    """nDCG@10 by `size` of 256 numbers, trained for it and not, unseen modules."""
    nested, plain = (
        fmean(run["sizes"]["modules"][str(size)] for run in runs_of(name))
        for name in ("Matryoshka table", "token table")
    )
    return Settled((nested, plain), f"{size} numbers: {figure(nested)} against {figure(plain)}")


def parts() -> Settled:
    """The loss of a batch of 64 random pairs, and the mean over its four quarters."""
    draw = torch.Generator().manual_seed(0)
    query, document = (torch.randn(64, 32, generator=draw) for _ in range(2))
    whole = float(info_nce_loss(query, document, temperature=0.5))
    quarters = zip(query.split(16), document.split(16), strict=True)
    mean = fmean(float(info_nce_loss(a, b, temperature=0.5)) for a, b in quarters)
    return Settled((whole, mean), f"the whole batch {whole:.2f}, its quarters {mean:.2f}")
