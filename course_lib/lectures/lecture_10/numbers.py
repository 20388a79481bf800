"""The numbers that sentences of lecture 10 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.teaching.numbers import millions

from .views.sizes import size_of


def parameters(name: str) -> str:
    """In millions."""
    return millions(size_of(name).parameters)


def words(name: str) -> str:
    """The fraction of a model's parameters that is its embedding matrix."""
    return f"{size_of(name).of_words:.0%}"


NUMBERS: dict[str, Callable[[], Any]] = {
    "mbert_parameters": lambda: parameters("mBERT, cased"),
    "mbert_words": lambda: words("mBERT, cased"),
    "xlm_r_words": lambda: words("XLM-R base"),
    "xlm_r_large_words": lambda: words("XLM-R large"),
}

# Digits on the page with another meaning.
TYPED: dict[str, str] = {}
