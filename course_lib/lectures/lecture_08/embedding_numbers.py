"""The numbers that sentences of lecture 08 say about v3's token embeddings and about SiFT."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean
from typing import Any

from course_lib.teaching.claims import verdict
from course_lib.teaching.numbers import in_letters, signed
from course_lib.teaching.results import outcome, stored

from .embedding_sharing import (
    BEGINNING,
    ONE,
    SHARING,
    SHARING_SEEDS,
    TRAINED,
    TWO,
    V3,
    pulls_before_and_after,
)
from .sift_runs import LONGER, NOISE_LONGER, PLAIN_LONGER
from .sift_runs import SEEDS as SIFT_SEEDS


def _cosine(when: str, pair: str) -> str:
    return f"{mean(pulls_before_and_after()[when].cosines[pair]):.2f}".replace("-", "−")


def _tug_first() -> str:
    """The page says: against each other, in every pair of batches; the mean cosine."""
    assert max(pulls_before_and_after()[BEGINNING].cosines["MLM with RTD"]) < 0
    return _cosine(BEGINNING, "MLM with RTD")


def _tug_trained() -> str:
    """The page says: it cannot be seen; the mean cosine."""
    assert abs(mean(pulls_before_and_after()[TRAINED].cosines["MLM with RTD"])) < 0.03
    return _cosine(TRAINED, "MLM with RTD")


def _longer(when: str) -> str:
    return f"{pulls_before_and_after()[when].longer:.1f}"


def sharing(name: str, measure: str) -> list[float]:
    """What each seed of a way to share embeddings reached."""
    return outcome(stored("08_embedding_sharing"), measure)[name]


def _shared(what: str) -> str:
    return f"{mean(sharing(ONE, SHARED[what])):.1%}"


def _against_one(name: str, measure: str) -> str:
    """Points over one table, and whether the seeds agree."""
    pairs = zip(sharing(name, measure), sharing(ONE, measure), strict=True)
    return verdict([ours - theirs for ours, theirs in pairs])


def _share_more() -> str:
    """Of the weights that are trained: how many more two tables have than one."""
    one, two, v3 = (sharing(name, "parameters")[0] for name in (ONE, TWO, V3))
    assert two == v3
    return f"{two / one - 1:.0%}"


def sift() -> dict[str, Any]:
    return stored("08_sift")


def sift_rows() -> dict[str, tuple[int, list[float], float]]:
    """For each recipe of SiFT's runs: steps, what each seed reached, the mean on its own labels."""
    return {
        name: (
            sift()["recipes"][name]["steps"],
            [run["accuracy"] for run in runs],
            mean(run["on_its_labels"] for run in runs),
        )
        for name, runs in sift()["runs"].items()
    }


def _sift_gain() -> str:
    """Points of the long SiFT over plain training; the page says: ahead of both in every seed."""
    ours = sift_rows()[LONGER][1]
    for other in (PLAIN_LONGER, NOISE_LONGER):
        assert min(a - b for a, b in zip(ours, sift_rows()[other][1], strict=True)) > 0
    return signed(100 * (mean(ours) - mean(sift_rows()[PLAIN_LONGER][1])))


SHARED = {"words": "masked_accuracy", "auc": "auc", "swaps": "swapped_repeated", "slots": "slots"}


NUMBERS: dict[str, Callable[[], Any]] = {
    "longer_first": partial(_longer, BEGINNING),
    "longer_trained": partial(_longer, TRAINED),
    "mlm_first": partial(_cosine, BEGINNING, "MLM with MLM"),
    "mlm_trained": partial(_cosine, TRAINED, "MLM with MLM"),
    "rtd_first": partial(_cosine, BEGINNING, "RTD with RTD"),
    "rtd_trained": partial(_cosine, TRAINED, "RTD with RTD"),
    **{f"share_{what}": partial(_shared, what) for what in SHARED},
    **{
        f"share_{what}_{who}": partial(_against_one, name, measure)
        for what, measure in SHARED.items()
        for who, name in (("two", TWO), ("v3", V3))
    },
    "share_more": _share_more,
    "share_seeds": lambda: len(SHARING_SEEDS),
    "share_steps": lambda: SHARING[ONE].steps,
    "sift_gain": _sift_gain,
    "sift_seeds": lambda: in_letters(len(SIFT_SEEDS)),
    "tug_first": _tug_first,
    "tug_trained": _tug_trained,
}
