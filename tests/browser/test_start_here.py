"""Notebook 00 in the browser: runs, shows a first masked word, stays on the machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Notebook, Visit

NAME = "00_start_here"


@pytest.fixture(scope="module")
def lecture(visit_page: Visit) -> Iterator[Notebook]:
    with visit_page(f"{NAME}.ipynb") as notebook:
        yield notebook


def test_runs_to_the_end_without_error(lecture: Notebook) -> None:
    assert not lecture.trouble
    lecture.screenshots_of_all(NAME)
    ran, all_ = lecture.counts()
    assert ran == all_ > 2
    assert lecture.errors() == []


def test_a_picture_is_drawn(ran: Notebook) -> None:
    pictures = ran.page.locator(".jp-OutputArea").locator(".plot-container svg, svg, canvas, img")
    assert any(p.is_visible() for p in pictures.all())


def test_its_controls_work(ran: Notebook) -> None:
    ran.move_every_slider()
    assert ran.errors() == []


def test_no_request_left_the_machine(lecture: Notebook) -> None:
    assert lecture.requests_beyond() == []
