"""A quiz answered in the browser reaches the record of what is solved; a wrong answer does not."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
from lab import jupyterlab, visit
from playwright.sync_api import Browser

from course_lib.teaching.quizzes import question_keys, read_quiz


def test_a_right_answer_is_recorded(browser: Browser, tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("from course_lib import quiz\nquiz('02')")
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata=python)
    nbformat.write(notebook, tmp_path / "asked.ipynb")
    record = tmp_path / "lab" / "home" / "progress.json"
    with (
        jupyterlab(tmp_path / "lab", [tmp_path / "asked.ipynb"]) as server,
        visit(browser, server, "asked.ipynb") as page,
    ):
        assert (page.trouble, page.errors()) == ("", [])
        right = [choice.correct for choice in read_quiz("02")[1].choices].index(True)
        question = page.page.locator(".quiz-view fieldset").nth(1)
        for place in ((right + 1) % 3, right):
            assert not record.exists()  # before, and after the wrong answer
            question.locator("input").nth(place).check()
            question.locator("button").click()
            page.settle()
        page._wait(record.exists, seconds=30)
        told = json.loads(record.read_text(encoding="utf-8"))
        assert told["quizzes"] == {"02": [question_keys("02")[1]]} and told["exercises"] == []
