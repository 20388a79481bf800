"""pytest, for one notebook: its seconds and peak memory go to the file $NOTEBOOK_BUDGET, and it is
stopped when it has run for $NOTEBOOK_SECONDS or its kernel has died.

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
from queue import Empty
from typing import Any

import nbval.plugin
import psutil
import pytest

SECONDS = float(os.environ["NOTEBOOK_SECONDS"])
PATIENCE = 60.0  # for what nbval gives 5 or 10 s: an answer that a busy machine may delay


class Kernel(nbval.plugin.RunningKernel):
    """nbval's, which would wait for a dead kernel's answer until the cell's time is up, and gives a
    new one 10 s for its first answer."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.least = PATIENCE
        super().__init__(*arguments, **named)
        self.least = 0.0

    def get_message(self, stream: str, timeout: float | None = None) -> Any:
        if stream != "shell":
            return super().get_message(stream, timeout)
        last = time.monotonic() + max(timeout or 0, self.least)
        while True:
            with contextlib.suppress(Empty):
                return super().get_message(stream, 1)
            if not self.is_alive():
                raise RuntimeError("the kernel died")
            if time.monotonic() > last:
                raise Empty


class Page:
    """[seconds from the first cell's start to the last one's end, peak bytes, the last cell]."""

    def __init__(self) -> None:
        self.started: float | None = None
        self.deadline: float | None = None
        self.spent: list[Any] = [0.0, 0, ""]
        self.stop = threading.Event()

    def pytest_sessionstart(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self.stop.wait(0.2):
            self.spent[1] = max(self.spent[1], _bytes_of_children())

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            item.output_timeout = PATIENCE

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        """Whatever is left of the page's time, which begins with its kernel, is the cell's."""
        self.deadline = self.deadline or time.monotonic() + SECONDS
        item.config.option.nbval_cell_timeout = max(1.0, self.deadline - time.monotonic())

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.started = self.started or time.monotonic()
        self._write(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write(nodeid)

    def _write(self, nodeid: str) -> None:
        assert self.started
        self.spent[0], self.spent[2] = time.monotonic() - self.started, nodeid.split("::")[-1]
        target = Path(os.environ["NOTEBOOK_BUDGET"])
        partial = target.with_name(f"{target.name}.partial")
        partial.write_text(json.dumps(self.spent), encoding="utf-8")
        os.replace(partial, target)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        """A cell that ends well only because it was interrupted has failed all the same."""
        result = yield
        if item.parent.timed_out:
            pytest.fail(f"stopped: the page ran for {SECONDS:g} s")
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: Any, nextitem: Any) -> None:
        """One failure stays one: cells after a hanging one, or without a kernel, say nothing."""
        kernel = item.parent.kernel
        if nextitem and (item.parent.timed_out or kernel is None or not kernel.is_alive()):
            item.session.shouldfail = f"{item.name} hung, or its kernel died"

    def pytest_sessionfinish(self) -> None:
        self.stop.set()


def _bytes_of_children() -> int:
    total = 0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += child.memory_info().rss
    return total


if __name__ == "__main__":
    nbval.plugin.RunningKernel = Kernel
    sys.exit(pytest.main(sys.argv[1:], plugins=[Page()]))
