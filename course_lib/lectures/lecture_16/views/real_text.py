"""The ends of the ladder on documentation, as curves."""

from __future__ import annotations

from typing import Any

from course_lib.teaching.results import stored

from .results import Run, over_training

FILE = "16_real_text"


def real_runs(name: str) -> list[Run]:
    """A rung's stored runs on documentation, one a seed."""
    found: list[Run] = stored(FILE)["runs"][name]
    return found


def real_text_curves() -> Any:
    """Held-out masked pieces over the training."""
    return over_training(stored(FILE)["runs"], "Documentation", "held-out masked pieces")
