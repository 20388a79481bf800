"""Lecture 16's experiments: what `python -m course_lib.teaching.results 16` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_lib.teaching import results
from course_lib.teaching.experiments import results_of

from . import faster, fine_tuning, ladder, longer, real_text


def summary(record: Mapping[str, Any]) -> str:
    """What was reached, mean and spread; of `16_tasks` the mean of the tasks."""
    first = next(iter(record["runs"].values()))[0]
    return results.summary(record, measures=("mean" if "tasks" in first else "accuracy",))


EXPERIMENTS = (
    *ladder.EXPERIMENTS,
    *longer.EXPERIMENTS,
    *real_text.EXPERIMENTS,
    *fine_tuning.EXPERIMENTS,
    *faster.EXPERIMENTS,
)
RESULTS = results_of(EXPERIMENTS)
