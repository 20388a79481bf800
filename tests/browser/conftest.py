"""One JupyterLab and one offline browser for all browser tests; a window and a kernel a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from lab import ROOT, Notebook, Server, Visit, jupyterlab, visit
from playwright.sync_api import Browser


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How long each page ran: a figure, whatever it is."""
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    for line in sorted(v for r in reports for k, v in r.user_properties if k == "took"):
        terminalreporter.write_line(f"in the browser, {line}")


@pytest.fixture(scope="session")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    with jupyterlab(tmp_path_factory.mktemp("lab"), notebooks) as running:
        yield running


@pytest.fixture(scope="session")
def visit_page(browser: Browser, server: Server) -> Visit:
    """Opens and runs a notebook by file name, and stops its kernel at the end."""
    return partial(visit, browser, server)


@pytest.fixture
def ran(lecture: Any) -> Notebook:
    """The module's `lecture`, for tests that have something to look at only when it ran. That it
    did not is one failure, of the test that asks for it."""
    if lecture.trouble:
        pytest.skip("the page did not run to its end")
    return lecture


@pytest.fixture(autouse=True)
def _tell_time(request: pytest.FixtureRequest, record_property: Callable[..., None]) -> None:
    """A page's first test carries its time to the summary, also from a worker of xdist's."""
    if "lecture" in request.fixturenames and "to_the_end" in request.node.name:
        record_property("took", request.getfixturevalue("lecture").took)
