"""Lecture 12's experiments: what `python -m course_lib.teaching.results 12` writes."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results
from course_lib.teaching.experiments import results_of

from . import fast_runs, mobile_runs, serving_runs

summary = partial(results.summary, measures=("accuracy", *mobile_runs.MEASURES))
EXPERIMENTS = (fast_runs.FAST, fast_runs.ROAD, mobile_runs.MOBILE, serving_runs.SERVED)
RESULTS = results_of(EXPERIMENTS)
