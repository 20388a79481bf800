"""Page faults of a step, counted, before and after freed memory is kept."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from course_lib.teaching.chart_parts import new_figure
from course_lib.teaching.style import CYCLE, rounded


class Counted(NamedTuple):
    """What one step took: pages of memory that the system had to fill with zeros; seconds."""

    faults: int
    seconds: float


def count_faults(step: Callable[[], object], steps: int) -> list[Counted]:
    """Page faults of each of some steps; [] on Windows, which does not count them this way."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:
        return []
    counts = []
    for _ in range(steps):
        before, began = getrusage(RUSAGE_SELF).ru_minflt, time.perf_counter()
        step()
        seconds = time.perf_counter() - began
        counts.append(Counted(getrusage(RUSAGE_SELF).ru_minflt - before, seconds))
    return counts


FRESH = """
import json
from course_lib.bench.pretraining import our_step
from course_lib.lectures.lecture_14.views import count_faults
from course_lib.train.allocator import keep_freed_memory
from course_lib.train.precision import choose_precision

step = our_step("{size}", choose_precision())
step()
before = count_faults(step, {steps})
kept = keep_freed_memory()
print(json.dumps([before, count_faults(step, {steps} + 1) if kept else []]))
"""


def fresh_faults(size: str = "mini", steps: int = 5) -> tuple[list[Counted], list[Counted]]:
    """The course's step in a process that has just begun: `steps` steps as it is, and one more with
    freed memory kept; the second list is empty where the allocator cannot be told.

    In an old process blocks that stay may lie at the heap's end, and then glibc keeps what is freed
    below them without being told."""
    with suppress(AttributeError, OSError, TypeError):  # glibc's: room for the second process
        ctypes.CDLL(None).malloc_trim(0)
    done = subprocess.run(
        [sys.executable, "-c", FRESH.format(size=size, steps=steps)],
        capture_output=True, text=True, encoding="utf-8", check=True,
    )  # fmt: skip
    before, after = json.loads(done.stdout)
    return [Counted(*one) for one in before], [Counted(*one) for one in after]


def faults_chart(before: Sequence[Counted], after: Sequence[Counted], page: int = 4_096) -> Any:
    """A bar a step: page faults as it is, then with freed memory kept; page: bytes of a page.

    Raises ValueError where nothing was counted."""
    import plotly.graph_objects as go

    if not before:
        raise ValueError(
            "faults_chart was given no step; expected what count_faults found. Windows does not "
            "count page faults this way."
        )
    figure = new_figure("Page faults, step by step", "step", "page faults")
    styles = [("as it is", before, CYCLE[1], "")]
    styles += [("freed memory kept", after, CYCLE[0], "/")] if after else []
    first = 1
    for name, steps, colour, pattern in styles:
        figure.add_trace(
            go.Bar(
                x=list(range(first, first + len(steps))), y=[one.faults for one in steps],
                name=name, marker={"color": colour, "pattern": {"shape": pattern}},
                customdata=[rounded([one.faults * page / 1e6, 1e3 * one.seconds]) for one in steps],
                hovertemplate="step %{x}: %{y} page faults, %{customdata[0]} MB handed out afresh, "
                "%{customdata[1]} ms<extra></extra>",
            )
        )  # fmt: skip
        first += len(steps)
    figure.update_layout(showlegend=True, bargap=0.25, height=360)
    figure.update_xaxes(dtick=1)
    return figure
