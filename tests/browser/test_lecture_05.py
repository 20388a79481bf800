"""Lecture 05 in the browser: to the end, and every control of the parameter calculator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lab import Notebook

NAME = "05_albert_factorization"


@pytest.fixture(scope="module")
def lecture(open_notebook: Callable[[str], Notebook]) -> Notebook:
    notebook = open_notebook(f"{NAME}.ipynb")
    print(f"\n{NAME}: Run All took {notebook.run_all():.0f} s in the browser")
    notebook.screenshots_of_all(NAME)
    return notebook


def test_runs_to_the_end_without_error(lecture: Notebook) -> None:
    ran, all_ = lecture.counts()
    assert ran == all_ > 10
    assert lecture.errors() == []


def test_every_slider_reaches_both_ends(lecture: Notebook) -> None:
    moved = lecture.move_every_slider()
    print("\n" + "\n".join(moved))
    assert len(moved) >= 3, "the page promises vocabulary, widths and layers of the calculator"
    assert lecture.errors() == []
    lecture.screenshots_of_all(f"{NAME}-moved")


def test_no_request_left_the_machine(
    lecture: Notebook, nothing_left_the_machine: Callable[[], None]
) -> None:
    nothing_left_the_machine()
