"""Lecture 11's experiments, gathered: each module says what its own are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import switches, ways, words

RESULTS: dict[str, Callable[[], dict[str, Any]]] = {
    **words.RESULTS,
    **ways.RESULTS,
    **switches.RESULTS,
}
