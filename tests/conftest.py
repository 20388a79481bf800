"""What several test files share."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import course_lib  # noqa: F401  sets how torch's threads wait, for these tests and all they start

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ON_A_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist=loadgroup: tests of one parameter (a deck, a page), and of one file where there
    is none, stay together, so that one process builds or runs it, once. (xdist's own marks of
    groups are not seen under pytest 9.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByParameter(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            return f"{file}{test[test.find('[') :]}" if "[" in test else file

    return ByParameter(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


def load(path: Path) -> ModuleType:
    """A Python file as a module, wherever it lies."""
    name = "_".join(path.relative_to(ROOT).with_suffix("").parts)
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def notebook_builder() -> ModuleType:
    return load(ROOT / "notebooks" / "source" / "build.py")


@pytest.fixture(scope="session")
def deck_builder() -> ModuleType:
    return load(ROOT / "slides" / "source" / "build.py")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; without one a skip, or with COURSE_REQUIRE_BROWSER a failure."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None and ON_A_MAC.exists():
        found = str(ON_A_MAC)
    if found is None:
        message = (
            "NO BROWSER TESTED: found none of " + ", ".join(BROWSERS) + ". "
            "Install Chromium (Debian: apt install chromium) to run these tests."
        )
        if os.environ.get("COURSE_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    """The one Chromium of a test run; tests take contexts of their own from it."""
    from lab import chromium_browser

    with chromium_browser(chromium) as running:
        yield running
