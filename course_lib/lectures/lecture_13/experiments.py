"""Lecture 13's experiments: what `python -m course_lib.teaching.results 13` writes."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results

from . import benchmark, costs

summary = partial(results.summary, measures=("average",))
RESULTS = {**benchmark.RESULTS, **costs.RESULTS}
