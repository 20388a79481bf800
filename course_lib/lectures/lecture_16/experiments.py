"""Lecture 16's experiments: what `python -m course_lib.teaching.results 16` writes."""

from __future__ import annotations

from functools import partial

from course_lib.teaching import results

from . import ladder, real_text

summary = partial(results.summary, measures=("accuracy",))
RESULTS = {**ladder.RESULTS, **real_text.RESULTS}
