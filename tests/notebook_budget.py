"""pytest, with each notebook's seconds and peak memory written to the file $NOTEBOOK_BUDGET.

A script and not a conftest: it runs from an empty folder, where only the built wheel is importable.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest


class Budget:
    """Per notebook [seconds from its first cell's start to its last cell's end, peak bytes]."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}
        self.started: dict[str, float] = {}
        self.current = ""
        self.stop = threading.Event()

    def pytest_sessionstart(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self.stop.wait(0.2):
            if self.current:
                peak = self.spent[self.current]
                peak[1] = max(peak[1], _bytes_of_children())

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        name = Path(nodeid.split("::")[0]).name
        self.started.setdefault(name, time.monotonic())
        self.spent.setdefault(name, [0.0, 0])
        self.current = name

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        name = Path(nodeid.split("::")[0]).name
        self.spent[name][0] = time.monotonic() - self.started[name]

    def pytest_sessionfinish(self) -> None:
        self.stop.set()
        Path(os.environ["NOTEBOOK_BUDGET"]).write_text(json.dumps(self.spent), encoding="utf-8")


def _bytes_of_children() -> int:
    total = 0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += child.memory_info().rss
    return total


if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[1:], plugins=[Budget()]))
