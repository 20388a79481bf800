"""The numbers that sentences of lecture 09 say: counted, printed, or read from results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.teaching.claims import printed

from .views.spans import span_lengths

NUMBERS: dict[str, Callable[[], Any]] = {
    "mean_length": lambda: f"{span_lengths().mean:.2f}",
    "heaped_length": lambda: f"{span_lengths().heaped:.2f}",
    "merged_128": lambda: f"{span_lengths().counted[128]:.2f}",
    "merged_32": lambda: f"{span_lengths().counted[32]:.2f}",
    "wikidata": lambda: printed("ernie_tsinghua")["settings"]["entities"],
}

# Digits on the page with another meaning: what the papers print.
TYPED = {"5,040,986": "Wikidata's entities, as the paper prints them"}
