"""Lecture 17's experiments: what `python -m course_lib.teaching.results 17` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_lib.teaching.experiments import results_of

from .course import COURSE
from .more import MORE
from .search import SEARCH, TESTS

EXPERIMENTS = (SEARCH, COURSE, MORE)
RESULTS = results_of(EXPERIMENTS)


def summary(result: Mapping[str, Any]) -> str:
    """nDCG@10 of each way on both splits, or on the course's own pages."""
    lines = []
    if "sections" in result.get("texts", {}):
        for name, runs in result["runs"].items():
            pages, sections = (runs[0][on]["alone"]["ndcg"] for on in ("quiz", "sections"))
            lines.append(f"{name:24}{pages:8.3f}{sections:8.3f}   seed 0")
        return "\n".join(lines)
    for name, runs in result["runs"].items():
        means = [sum(run[split]["ndcg"] for run in runs) / len(runs) for split in TESTS]
        lines.append(f"{name:24}" + "".join(f"{mean:8.3f}" for mean in means))
    return "\n".join(lines)
