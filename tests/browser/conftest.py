"""One JupyterLab and one offline browser for all browser tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab import ROOT, Notebook, Server, jupyterlab, offline_context
from playwright.sync_api import Browser, BrowserContext


@pytest.fixture(scope="session")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    with jupyterlab(tmp_path_factory.mktemp("lab"), notebooks) as running:
        yield running


@pytest.fixture(scope="session")
def browser_and_requests(browser: Browser) -> Iterator[tuple[BrowserContext, list[str]]]:
    with offline_context(browser) as pair:
        yield pair


@pytest.fixture(scope="module")
def open_notebook(
    server: Server, browser_and_requests: tuple[BrowserContext, list[str]]
) -> Iterator[Callable[[str], Notebook]]:
    """Opens a notebook by file name; closes it afterwards."""
    opened: list[Notebook] = []

    def open_(name: str) -> Notebook:
        assert (Path(server.folder) / name).exists(), f"notebooks/{name} is missing"
        opened.append(Notebook.open(browser_and_requests[0], server, name))
        return opened[-1]

    yield open_
    for notebook in opened:
        notebook.close()


@pytest.fixture
def nothing_left_the_machine(
    server: Server, browser_and_requests: tuple[BrowserContext, list[str]]
) -> Callable[[], None]:
    """Call it at the end of a test: no request beyond loopback from the browser or a kernel."""

    def check() -> None:
        assert browser_and_requests[1] == [], "the browser asked for these"
        assert server.kernel_requests() == [], "a kernel asked for these"

    return check
