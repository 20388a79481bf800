"""The search of the course's own pages, as a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from course_lib import search

PAGE = """# A page of rules

**Lecture 01** · about 5 minutes

## By hand

<span>▰▱</span> *part 1 of 2*

## Norms

| a | table |

`LayerNorm` keeps *states* in range. It has two vectors.

    # indented: code, no heading

## Quiz

Norms again?"""


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one page."""
    cells = [{"cell_type": "code", "source": ["quiz"]}]
    cells += [{"cell_type": "markdown", "source": PAGE.splitlines(keepends=True)}]
    (tmp_path / "notebooks").mkdir()
    page = tmp_path / "notebooks" / "01_rules.ipynb"
    page.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    monkeypatch.setattr(search, "ROOT", tmp_path)
    return tmp_path


def test_a_page_is_cut_at_its_headings_without_quiz_and_empty_parts(pages: Path):
    (section,) = search.course_sections()
    assert (section.title, section.heading) == ("A page of rules", "Norms")
    assert "two vectors" in section.text and "again" not in section.text


def test_the_command_prints_place_and_first_sentence(
    pages: Path, capsys: pytest.CaptureFixture[str]
):
    search.main(["what", "is", "a", "LayerNorm"])
    assert capsys.readouterr().out.splitlines() == [
        "1. A page of rules · Norms",
        "   notebooks/01_rules.ipynb#Norms",
        "   LayerNorm keeps states in range.",
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([""], 1, "no page has a word of ''"),
        (["how do I"], 1, "no page has a word of 'how do I'"),
        (["zygote"], 1, "no page has a word of 'zygote'; expected one that pages use"),
        (["-k", "0", "norms"], 1, "k=0 was given"),
        ([], 2, "required: question"),
        (["--help"], 0, ""),
    ],
)
def test_bad_input_gets_one_sentence_and_a_status(
    pages: Path, arguments, status, message, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as end:
        search.main(arguments)
    assert end.value.code == status and message in capsys.readouterr().err


def test_without_notebooks_the_command_says_so(
    pages: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search, "ROOT", pages / "elsewhere")
    with pytest.raises(SystemExit):
        search.main(["norms"])
    assert "notebooks has no pages" in capsys.readouterr().err


def test_a_question_finds_its_section_on_the_real_pages():
    first = search.search("Why are three DeBERTa terms divided by sqrt(3d)?", 1)[0]
    assert first.page.startswith("08_") and "sqrt" in first.heading


def test_what_stands_in_the_readme_is_found_too():
    places = {one.page: one.text for one in search.search("How do I stop a run?", 3)}
    assert "Ctrl-C" in places["README.md"]
