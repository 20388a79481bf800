"""The numbers that sentences of lecture 08 say about v3's token embeddings and about SiFT."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

from .embedding_sharing import BEGINNING, TRAINED, pulls_before_and_after


def _cosine(when: str, pair: str) -> str:
    return f"{mean(pulls_before_and_after()[when].cosines[pair]):.2f}".replace("-", "−")


def _tug_first() -> str:
    """The page says: against each other, in every pair of batches."""
    assert max(pulls_before_and_after()[BEGINNING].cosines["MLM with RTD"]) < 0
    return _cosine(BEGINNING, "MLM with RTD")


def _tug_trained() -> str:
    """The page says: nothing is left."""
    assert abs(mean(pulls_before_and_after()[TRAINED].cosines["MLM with RTD"])) < 0.03
    return _cosine(TRAINED, "MLM with RTD")


def _longer(when: str) -> str:
    return f"{pulls_before_and_after()[when].longer:.1f}"


NUMBERS: dict[str, Callable[[], Any]] = {
    "longer_first": partial(_longer, BEGINNING),
    "longer_trained": partial(_longer, TRAINED),
    "mlm_first": partial(_cosine, BEGINNING, "MLM with MLM"),
    "mlm_trained": partial(_cosine, TRAINED, "MLM with MLM"),
    "rtd_first": partial(_cosine, BEGINNING, "RTD with RTD"),
    "rtd_trained": partial(_cosine, TRAINED, "RTD with RTD"),
    "tug_first": _tug_first,
    "tug_trained": _tug_trained,
}
