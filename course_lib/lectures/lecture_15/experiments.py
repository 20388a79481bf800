"""Lecture 15's experiments: what `python -m course_lib.teaching.results 15` writes."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results
from course_lib.teaching.experiments import results_of

from . import clip_runs, picture_runs

summary = partial(
    results.summary, measures=("accuracy", "train_accuracy", "at_once", "five", "picture_accuracy")
)
EXPERIMENTS = (*picture_runs.EXPERIMENTS, clip_runs.EXPERIMENT)
RESULTS = results_of(EXPERIMENTS)
