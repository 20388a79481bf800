"""Lecture 10's experiments: what `python -m course_lib.teaching.results 10` writes."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results
from course_lib.teaching.experiments import results_of

from . import pair_runs, real_text, sharing_runs, world_runs

ROOMS = (pair_runs, sharing_runs, world_runs, real_text)
MEASURES = [measure for room in ROOMS for measure in room.MEASURES]
summary = partial(results.summary, measures=MEASURES)
EXPERIMENTS = tuple(one for room in ROOMS for one in room.EXPERIMENTS)
RESULTS = results_of(EXPERIMENTS)
