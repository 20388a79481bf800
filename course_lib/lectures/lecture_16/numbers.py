"""The measured numbers that sentences of lecture 16 repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from course_lib.config import published

NUMBERS: dict[str, Callable[[], Any]] = {
    "layers": lambda: published("bert", "base").num_layers,
}
