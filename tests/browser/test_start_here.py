"""Notebook 00 in the browser: runs, shows a first masked word, stays on the machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lab import Notebook

NAME = "00_start_here"


@pytest.fixture(scope="module")
def start(open_notebook: Callable[[str], Notebook]) -> Notebook:
    notebook = open_notebook(f"{NAME}.ipynb")
    print(f"\n{NAME}: Run All took {notebook.run_all():.0f} s in the browser")
    notebook.screenshots_of_all(NAME)
    return notebook


def test_runs_to_the_end_without_error(start: Notebook) -> None:
    ran, all_ = start.counts()
    assert ran == all_ > 2
    assert start.errors() == []


def test_a_picture_is_drawn(start: Notebook) -> None:
    pictures = start.page.locator(".jp-OutputArea").locator(".plot-container svg, svg, canvas, img")
    assert any(p.is_visible() for p in pictures.all())


def test_its_controls_work(start: Notebook) -> None:
    start.move_every_slider()
    assert start.errors() == []


def test_no_request_left_the_machine(
    start: Notebook, nothing_left_the_machine: Callable[[], None]
) -> None:
    nothing_left_the_machine()
