"""Lecture 15's experiments: what `python -m course_lib.teaching.results 15` writes."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results
from course_lib.teaching.experiments import results_of

from . import picture_runs, scene_runs

summary = partial(
    results.summary, measures=("accuracy", "train_accuracy", "at_once", "five", "picture_accuracy")
)
EXPERIMENTS = picture_runs.EXPERIMENTS + scene_runs.EXPERIMENTS
RESULTS = results_of(EXPERIMENTS)
