"""Lecture 15's experiments: what `python -m course_lib.teaching.results 15` writes."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results

from . import picture_runs

summary = partial(results.summary, measures=("accuracy", "train_accuracy", "at_once"))
RESULTS = picture_runs.RESULTS
