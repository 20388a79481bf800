"""Lecture 10's experiments: what `python -m course_lib.teaching.results 10` writes."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results

from . import pair_runs, real_text, sharing_runs, world_runs

MEASURES = (*pair_runs.MEASURES, *sharing_runs.MEASURES, *world_runs.MEASURES, *real_text.MEASURES)
summary = partial(results.summary, measures=MEASURES)
RESULTS = pair_runs.RESULTS | sharing_runs.RESULTS | world_runs.RESULTS | real_text.RESULTS
