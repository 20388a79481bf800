"""Lecture 13's experiments: what `python -m course_lib.teaching.results 13` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_lib.teaching import results
from course_lib.teaching.experiments import results_of

from . import benchmark, costs, real_text


def summary(record: Mapping[str, Any]) -> str:
    """Averages, mean and spread; of `13_costs` every member's time."""
    if "runs" in record:
        measure = "mean" if "bag_of_words" in record else "average"
        return results.summary(record, measures=(measure,))
    return "\n".join(
        f"{name}: {1e3 / row['one']['texts_per_second']:.1f} ms a text"
        for name, row in record["members"].items()
    )


EXPERIMENTS = (benchmark.BENCHMARK, real_text.DOCUMENTATION_TASKS)
RESULTS = results_of(EXPERIMENTS) | benchmark.RESULTS | costs.RESULTS
