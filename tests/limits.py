"""The one limit of the tests against hanging, and the end of what hangs."""

from __future__ import annotations

import contextlib

import psutil

# Seconds that a notebook, a deck or anything waited for may take before it counts as hanging. A
# page is designed for 120 s on two quiet cores; how long it took is a figure in the report and
# never a failure, since beside other work any page can take ten times as long.
AGAINST_HANGING = 30 * 60


def kill_with_children(pid: int) -> None:
    """Kill that process and all that it started; kernels have process groups of their own."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in (*process.children(recursive=True), process):
            with contextlib.suppress(psutil.Error):
                one.kill()
