"""Lecture 11's experiments, gathered: each module says what its own are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import ways

RESULTS: dict[str, Callable[[], dict[str, Any]]] = {**ways.RESULTS}
