"""The other lectures in the browser: what makes their controls is run, and each is moved to both
ends. All their cells are run by nbval; their other outputs are drawn here as they were saved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from lab import ROOT, Notebook, Visit
from needed import needed_on_page


class Page(NamedTuple):
    """A lecture, and what its page promises to move."""

    name: str
    sliders: int
    promised: str


PAGES = (
    Page("01_words_in_context", 6, "neighbours, a gap, layers, who gathers, who sees whom"),
    Page("03_fine_tuning", 4, "what is cut of a pair, cap and threshold, a temperature"),
    Page("04_roberta_dynamic_masking", 3, "passes, rate and seed of the masks"),
    Page("05_albert_factorization", 4, "vocabulary, widths and layers of the calculator"),
    Page("06_distillation", 1, "the temperature over a real teacher's answers"),
    Page("07_electra", 1, "the fraction of the corruptor's text to mask"),
    Page("08_deberta_attention", 10, "rows, distances, tokens, head size, and the maps of a head"),
    Page("09_spans_and_entities", 10, "lengths, seeds, stories, units, noise"),
    Page("10_many_languages", 11, "α, means, sentences, rates, words, layers and heads"),
    Page("12_fast_inference", 3, "the speed of exits, two budgets"),
    Page("13_choosing_a_variant", 0, "no slider"),
    Page("14_kernels", 0, "no slider"),
    Page("15_beyond_text", 3, "picture, layer and patch of the attention maps"),
    Page("16_modern_encoders", 5, "two positions and an angle, the window, global layers"),
)


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Page:
    return request.param


@pytest.fixture(scope="module")
def lecture(page: Page, visit_page: Visit) -> Iterator[Notebook]:
    cells = needed_on_page(ROOT / "notebooks" / f"{page.name}.ipynb")
    with visit_page(f"{page.name}.ipynb", cells=cells) as notebook:
        yield notebook


def test_runs_to_the_end_without_error(lecture: Notebook, page: Page) -> None:
    assert not lecture.trouble
    lecture.screenshots_of_all(page.name)
    ran, all_ = lecture.counts()
    assert lecture.cells and all_ > ran == len(lecture.cells) > 1
    assert lecture.errors() == []


def test_every_slider_reaches_both_ends(ran: Notebook, page: Page) -> None:
    moved = ran.move_every_slider(page.sliders)
    print("\n" + "\n".join(moved))
    assert len(moved) >= 2 * page.sliders, f"the page promises {page.promised}"
    assert ran.errors() == []
    ran.screenshots_of_all(f"{page.name}-moved")


def test_no_request_left_the_machine(lecture: Notebook) -> None:
    assert lecture.requests_beyond() == []
