"""Lecture 02 in the browser, whole: to the end, sliders to both ends, both attention views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Notebook, Visit

NAME = "02_bert_mlm_nsp"


@pytest.fixture(scope="module")
def lecture(visit_page: Visit) -> Iterator[Notebook]:
    with visit_page(f"{NAME}.ipynb") as notebook:
        yield notebook


def test_runs_to_the_end_without_error(lecture: Notebook) -> None:
    assert not lecture.trouble
    lecture.screenshots_of_all(NAME)
    ran, all_ = lecture.counts()
    assert ran == all_ > 10
    assert lecture.errors() == []


def test_bertviz_is_drawn(ran: Notebook) -> None:
    ran.screenshot(f"{NAME}-bertviz", ran.page.locator("iframe[srcdoc]").first)
    assert ran.inside_frames("svg line, svg path, svg rect") > 10


def test_our_attention_view_is_drawn(ran: Notebook) -> None:
    view = ran.page.locator(".jp-OutputArea .attention-view").first
    ran.screenshot(f"{NAME}-attention", view)
    assert view.is_visible()
    assert view.locator("svg, canvas").count() >= 1
    box = view.locator("svg, canvas").first.bounding_box()
    assert box and box["width"] > 100 and box["height"] > 100


def test_every_slider_reaches_both_ends(ran: Notebook) -> None:
    moved = ran.move_every_slider(promised=3)
    print("\n" + "\n".join(moved))
    assert len(moved) >= 6, (
        "the page promises a playground, an embedding stack and a training slider"
    )
    ran.screenshots_of_all(f"{NAME}-moved")


def test_no_request_left_the_machine(lecture: Notebook) -> None:
    assert lecture.requests_beyond() == []
