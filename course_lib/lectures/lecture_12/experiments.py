"""Lecture 12's experiments, gathered: each module says what its own are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.teaching.results import summary as said

from . import mobile_runs

RESULTS: dict[str, Callable[[], dict[str, Any]]] = {**mobile_runs.RESULTS}


def summary(found: dict[str, Any]) -> str:
    """What each recipe reached, a line each."""
    return said(found, mobile_runs.MEASURES)
