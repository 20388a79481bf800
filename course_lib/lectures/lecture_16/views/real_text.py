"""The ends of the ladder on documentation, as curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_lib.teaching import curves_chart
from course_lib.teaching.results import stored

FILE = "16_real_text"
Run = Mapping[str, Any]


def real_runs(name: str) -> list[Run]:
    """A rung's stored runs on documentation, one a seed."""
    found: list[Run] = stored(FILE)["runs"][name]
    return found


def real_text_curves() -> Any:
    """Held-out masked pieces over the training; its whole length is 1."""
    return curves_chart(
        {
            name: [
                [
                    (step / run["steps"], accuracy)
                    for step, accuracy in zip(
                        run["curve"]["steps"], run["curve"]["accuracy"], strict=True
                    )
                ]
                for run in runs
            ]
            for name, runs in stored(FILE)["runs"].items()
        },
        title="Documentation", x_title="part of the training",
        y_title="held-out masked pieces", percent=True,
    )  # fmt: skip
