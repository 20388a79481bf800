"""Exercises without a kernel: hints that unfold, and numbers computed by hand, judged in the
page."""
# ruff: noqa: F811 (fixtures that another file has)

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import firefox
import nbformat
import pytest
from axe import WCAG, serious_findings
from lab import take_picture
from test_site_playgrounds import PAGE, Open, fox, fox_says, opened, playground, says  # noqa: F401

from course_lib.teaching.exercises import all_exercises, exercise

BY_HAND = ("08.7", "16.5", "03.6")  # one whole number; two numbers; a fraction


@pytest.fixture(scope="module")
def folder(site_builder: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with what is below these exercises: a site without Sphinx."""
    from answers import below

    target = tmp_path_factory.mktemp("answers")
    site_builder._write_assets(target / "_static", {})
    texts = [below(exercise(id), "notebooks/page.ipynb") for id in BY_HAND]
    page = PAGE.format(title="answer", box="".join(texts))
    (target / "answer.html").write_text(page, encoding="utf-8")
    return target


def test_every_exercise_has_its_hints_and_some_a_number(site_builder: ModuleType) -> None:
    """The right numbers are the solution's, and no known mistake's are taken for them."""
    from answers import CHECK, asks_for_numbers, by_hand, numbers, place_answers

    for path in site_builder.every_notebook():
        page = nbformat.read(path, as_version=4)
        ids = [found[1] for cell in page.cells if (found := CHECK.search(cell.source))]
        before = len(page.cells)
        place_answers(page, "notebooks/page.ipynb")
        assert len(page.cells) == before + len(ids)
        added = [cell.source for cell in page.cells if "Hint 1 of " in cell.source]
        assert len(added) == len(ids)
        by_number = [asks_for_numbers(exercise(id)) for id in ids]
        assert ['data-play="answer"' in source for source in added] == by_number
    asked = [one for one in map(exercise, all_exercises()) if asks_for_numbers(one)]
    assert len(asked) == 17
    for one in asked:
        case, right, mistakes = by_hand(one)
        assert numbers(one.solution(*case)) == right
        assert len(mistakes) >= 7 and all(wrong != right for wrong, _ in mistakes)


def test_a_number_is_judged_by_keyboard(playground: Open) -> None:
    from answers import by_hand

    box = playground("answer")
    page, expected = box.page, by_hand(exercise("08.7"))
    page.keyboard.press("Tab")  # the notebook
    assert page.evaluate("document.activeElement.tagName") == "A"
    for n in range(len(exercise("08.7").hints)):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.innerText").startswith(f"Hint {n + 1} of ")
        page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    for text, sentence in (
        (f"{expected.right[0]:,}", "Right. The notebook asks your function for other inputs"),
        (f" {expected.right[0] + 1} ", "Not yet. The exercise has no name for this mistake"),
        ("", "Write a number in every field, such as 1234, 0.25 or 2.5e-4."),
        ("many", "Write a number in every field"),
        *((str(wrong[0]), said.replace("`", "")) for wrong, said in expected.mistakes[:3]),
    ):
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        says(box, sentence)


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "light"), (1440, "dark")])
def test_several_numbers_are_judged_together(playground: Open, width: int, scheme: str) -> None:
    from answers import by_hand

    box = playground("answer", width, scheme)
    several, fraction = box.page.locator(".play-box").nth(1), box.page.locator(".play-box").nth(2)
    cost, length = by_hand(exercise("16.5")).right  # mistakes give 69, 71 and 72
    for numbers, sentence in (
        ((cost, length), "Right."),
        ((cost, 75), "Not yet: length. The exercise has no name"),
        ((7, 7.5), "Not yet: count of FLOPs and length. The exercise"),
    ):
        for n, value in enumerate(numbers):
            several.locator("input").nth(n).fill(str(value))
        several.get_by_role("button").click()
        says(several, sentence)
    right = by_hand(exercise("03.6")).right[0]
    comma = f"{right:.3f}".replace(".", ",")
    for text, sentence in ((comma, "Right."), (f"{1.01 * right:.3f}", "Not yet. The")):
        fraction.locator("input").fill(text)
        fraction.get_by_role("button").click()
        says(fraction, sentence)
    assert box.page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_findings(box.page, "main", WCAG) == []
    take_picture(box.page, f"site-answer-{width}-{scheme}")


def test_firefox_judges_a_number(fox: firefox.Firefox, folder: Path) -> None:
    from answers import by_hand

    fox.open(folder / "answer.html")
    fox.run("document.querySelector('.play-box input').focus()")
    fox.keys(f"{by_hand(exercise('08.7')).right[0]:,}\ue007")  # Enter
    fox_says(fox, "Right.")
