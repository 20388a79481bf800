"""A story with one word swapped, and what a linear probe on each model's frozen vectors says of it.

The probabilities are stored ones (data/results/07_past_plateau.json); nothing is trained here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_lib.teaching.page import Html, Live, card, paragraphs
from course_lib.teaching.playgrounds import choice, playground
from course_lib.teaching.tokens import PLAIN, REPLACED, tokens_row

MODELS = ("BERT", "ELECTRA")


def swaps_view(swaps: Sequence[Mapping[str, Any]]) -> Live:
    """Choose a story and a swap; under each repeated word P(swapped) by the probe of each model.

    swaps: as the results file has them. The control: which."""
    first = next(index for index, swap in enumerate(swaps) if swapped_at(swap) is not None)
    names = [(swap_in_words(swap), index) for index, swap in enumerate(swaps)]
    return playground(
        lambda which: swap_picture(swaps[which]), {"which": choice("swap", first, names)}
    )


def swapped_at(swap: Mapping[str, Any]) -> int | None:
    """The word that was swapped, counted from 0; None where the story is as it was."""
    pairs = zip(swap["was"].split(), swap["text"].split(), strict=True)
    return next((t for t, (before, after) in enumerate(pairs) if before != after), None)


def swap_in_words(swap: Mapping[str, Any]) -> str:
    """As the control names it."""
    at, story = swapped_at(swap), f"story {swap['story'] + 1}"
    if at is None:
        return f"{story}, as it was"
    before, after = (swap[text].split()[at] for text in ("was", "text"))
    return f"{story}, word {at + 1}: {before} → {after}"


def swap_picture(swap: Mapping[str, Any]) -> Html:
    """The story as boxes, the swapped word outlined twice; under each repeated word P(swapped)."""
    at, words = swapped_at(swap), swap["text"].split()
    probabilities = [
        "\n".join(f"{name[0]} {swap[name][str(t)]:.0%}" for name in MODELS if str(t) in swap[name])
        for t in range(len(words))
    ]
    styles = [REPLACED if t == at else PLAIN for t in range(len(words))]
    row = tokens_row(words, styles, probabilities)
    line = f"{swap_in_words(swap)}. {_judged(swap, at)}"
    return Html(card(row.inner + paragraphs([line]), "swaps", 800), f"{row.text}\n{line}")


def _judged(swap: Mapping[str, Any], at: int | None) -> str:
    """How high each probe puts the swapped word, and how many of the others it suspects."""
    parts = []
    for name in MODELS:
        others = [p for t, p in swap[name].items() if t != str(at)]
        alarms = f"{sum(p > 0.5 for p in others)} of {len(others)} other words above 50%"
        own = "" if at is None else f"{swap[name][str(at)]:.0%} for the swapped word, "
        parts.append(f"{name}'s probe: {own}{alarms}")
    return "; ".join(parts) + "."
