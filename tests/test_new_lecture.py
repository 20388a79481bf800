"""An empty lecture is laid whole, passes the form's checks, and touches nothing that exists."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from conftest import load


@pytest.fixture(scope="module")
def new_lecture(root: Path) -> ModuleType:
    return load(root / "notebooks" / "source" / "new_lecture.py")


def test_every_file_of_an_empty_lecture_can_be_read(
    new_lecture: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    laid = new_lecture.lay(tmp_path, "77", "a_name")
    assert len(laid) == 11
    for path in map(tmp_path.joinpath, laid):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            ast.parse(text)
        if path.suffix == ".toml":
            assert ("item" in tomllib.loads(text)) == (path.name == "quiz.toml")
    with pytest.raises(ValueError, match="exists already"):
        new_lecture.lay(tmp_path, "77", "another")


def test_its_page_has_all_parts_and_a_compared_cell(
    new_lecture: ModuleType, notebook_builder: ModuleType, tmp_path: Path
) -> None:
    source = tmp_path / "77_a_name.py"
    page = new_lecture.page("77", "A name").replace('"77"', '"02"')  # 77 has no quiz, no claims
    source.write_text(page.replace("{{review:77}}", ""))
    notebook = notebook_builder.read_source(source)
    prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    assert all(f"## {part}" in prose for part in new_lecture.PARTS) and "# A name" in prose
    assert [c for c in notebook.cells if "nbval-check-output" in c.metadata.get("tags", [])]


def test_its_deck_is_as_long_as_a_deck_must_be(new_lecture: ModuleType) -> None:
    deck = new_lecture.deck("77", "A name")
    assert 12 <= deck.count("{minutes=") <= 20 and deck.count("Notes:") == deck.count("{minutes=")


@pytest.mark.parametrize(("number", "name"), [("7", "x"), ("77", "Has Capitals"), ("ab", "x")])
def test_a_bad_number_or_name_is_refused(
    new_lecture: ModuleType, tmp_path: Path, number: str, name: str
) -> None:
    with pytest.raises(ValueError, match="expected two digits and a name"):
        new_lecture.lay(tmp_path, number, name)
    assert not list(tmp_path.iterdir())


def test_no_file_that_is_there_is_written_over(new_lecture: ModuleType, tmp_path: Path) -> None:
    for name in new_lecture.files("77", "a_name"):
        there = tmp_path / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text("mine", encoding="utf-8")
        with pytest.raises(ValueError, match="exists already"):
            new_lecture.lay(tmp_path, "77", "a_name")
        assert [p.read_text() for p in tmp_path.rglob("*") if p.is_file()] == ["mine"]
        there.unlink()
