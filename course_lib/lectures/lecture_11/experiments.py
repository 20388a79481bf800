"""Lecture 11's experiments, gathered: each module says what its own are."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results
from course_lib.teaching.experiments import results_of

from . import further, switches, ways, words

summary = partial(results.summary, measures=("in domain", "general", "score"))
EXPERIMENTS = (*ways.EXPERIMENTS, *further.EXPERIMENTS, *switches.EXPERIMENTS)
RESULTS = words.RESULTS | results_of(EXPERIMENTS)
