"""What other hands might answer in lecture 16, right and wrong."""

from __future__ import annotations

from typing import Any

RIGHT: dict[str, list[Any]] = {}
WRONG: dict[str, list[tuple[Any, str]]] = {}
