"""Lecture 02 in the browser, whole: to the end, sliders to both ends, both attention views."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lab import Notebook

NAME = "02_bert_mlm_nsp"


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


def test_bertviz_is_drawn(lecture: Notebook) -> None:
    lecture.screenshot(f"{NAME}-bertviz", lecture.page.locator("iframe[srcdoc]").first)
    assert lecture.inside_frames("svg line, svg path, svg rect") > 10


def test_our_attention_view_is_drawn(lecture: Notebook) -> None:
    view = lecture.page.locator(".jp-OutputArea .attention-view").first
    lecture.screenshot(f"{NAME}-attention", view)
    assert view.is_visible()
    assert view.locator("svg, canvas").count() >= 1
    box = view.locator("svg, canvas").first.bounding_box()
    assert box and box["width"] > 100 and box["height"] > 100


def test_every_slider_reaches_both_ends(lecture: Notebook) -> None:
    moved = lecture.move_every_slider()
    print("\n" + "\n".join(moved))
    assert len(moved) >= 6, (
        "the page promises a playground, an embedding stack and a training slider"
    )
    lecture.screenshots_of_all(f"{NAME}-moved")


def test_no_request_left_the_machine(
    lecture: Notebook, nothing_left_the_machine: Callable[[], None]
) -> None:
    nothing_left_the_machine()
