"""The saved notebooks, without running them: cells as in the sources, and fit to be published."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CDN = re.compile(
    r"cdn\.|cdnjs|jsdelivr|unpkg\.com|googleapis|gstatic|bootstrapcdn|plot\.ly/plotly|esm\.sh"
)
MACHINE = re.compile(r"/(home|Users)/\w+|/root/|/tmp/|/work/|[A-Z]:\\\\Users")
HEADING = re.compile(r"^(#{1,6})\s", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def outputs(path: Path) -> list[dict]:
    return [o for cell in read(path).cells for o in cell.get("outputs", [])]


def test_the_notebooks_are_there() -> None:
    assert {"00_start_here", "02_bert_mlm_nsp"} <= {path.stem for path in NOTEBOOKS}


def test_every_source_has_its_notebook_and_the_reverse(notebook_builder) -> None:
    assert {s.stem for s in notebook_builder.sources()} == {path.stem for path in NOTEBOOKS}


@every_notebook
def test_cells_are_the_sources_cells(path: Path, notebook_builder) -> None:
    source = notebook_builder.SOURCES / f"{path.stem}.py"
    assert notebook_builder.disagreements(source) == []


def test_headings_of_sources_are_as_deep_as_they_look(notebook_builder) -> None:
    """Every line of a text begins with "# ", which is taken away: a heading without it rises."""
    for source in notebook_builder.sources():
        lines = source.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if re.match(r"##+ (?!%%)", line)] == [], source.name


@every_notebook
def test_first_cell_is_the_common_one(path: Path, notebook_builder) -> None:
    first = read(path).cells[0]
    assert (first.cell_type, first.source) == ("code", notebook_builder.first_cell())
    assert first.source.count("\n") == 1 and not first.outputs
    assert first.metadata.jupyter.source_hidden and first.metadata.cellView == "form"  # folded


@every_notebook
def test_a_bar_below_each_heading_says_where_one_is(path: Path) -> None:
    markdown = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown")
    titles = re.findall(r"^## (.+)$", FENCE.sub("", markdown), flags=re.MULTILINE)
    bars = re.findall(
        r'^## .+\n\n<span aria-hidden="true">(▰+▱*)</span> '
        r"\*part (\d+) of (\d+), about \d+ minutes?\*$",
        markdown,
        flags=re.MULTILINE,
    )
    assert [(len(bar), bar.count("▰"), int(n), int(of)) for bar, n, of in bars] == [
        (len(titles), n, n, len(titles)) for n in range(1, len(titles) + 1)
    ]
    linked = re.search(r"^\*\*Parts\*\* \(minutes\): (.+)$", markdown, flags=re.MULTILINE)
    assert linked and re.findall(r"\[([^\]]+)\]\(#", linked[1]) == titles


@every_notebook
def test_is_valid_and_small(path: Path) -> None:
    nbformat.validate(read(path))
    assert path.stat().st_size <= 520_000, f"{path.stat().st_size:,} bytes"


@every_notebook
def test_metadata_is_what_viewers_need_and_no_more(path: Path) -> None:
    metadata = read(path).metadata
    assert metadata.kernelspec.name == "python3"
    assert "widgets" not in metadata  # GitHub refuses a notebook whose widgets lack their state
    assert "version" not in metadata.get("language_info", {})
    for cell in read(path).cells:
        assert "execution" not in cell.metadata  # times differ with every run


@every_notebook
def test_every_cell_ran_without_error(path: Path) -> None:
    assert [o["evalue"] for o in outputs(path) if o["output_type"] == "error"] == []
    code = [cell for cell in read(path).cells if cell.cell_type == "code" and cell.source.strip()]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


@every_notebook
def test_no_output_needs_a_live_widget(path: Path) -> None:
    kinds = {kind for o in outputs(path) for kind in o.get("data", {})}
    assert not [kind for kind in kinds if "widget" in kind]


@every_notebook
def test_no_output_asks_a_content_network(path: Path) -> None:
    assert CDN.findall(json.dumps(outputs(path))) == []


@every_notebook
def test_no_output_names_a_folder_of_the_machine(path: Path) -> None:
    texts = [o.get("text", "") + json.dumps(_without_pictures(o)) for o in outputs(path)]
    assert [m.group() for text in texts for m in MACHINE.finditer(text)] == []


def _without_pictures(output: dict) -> dict:
    return {k: v for k, v in output.get("data", {}).items() if not k.startswith("image/png")}


@every_notebook
def test_one_title_and_headings_that_skip_no_level(path: Path) -> None:
    levels = heading_levels(read(path))
    assert levels and levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), levels


def heading_levels(notebook: nbformat.NotebookNode) -> list[int]:
    prose = "\n\n".join(
        FENCE.sub("", c.source) for c in notebook.cells if c.cell_type == "markdown"
    )
    return [len(match[1]) for match in HEADING.finditer(prose)]


@every_notebook
def test_exercises_come_in_the_order_of_their_numbers(path: Path) -> None:
    markdown = "\n".join(c.source for c in read(path).cells if c.cell_type == "markdown")
    numbers = [int(n) for n in re.findall(rf"\*\*Exercise {path.stem[:2]}\.(\d+) ", markdown)]
    assert numbers == list(range(1, len(numbers) + 1))


@every_notebook
def test_help_that_the_text_offers_is_imported(path: Path) -> None:
    cells = read(path).cells
    code, text = (
        "\n".join(c.source for c in cells if c.cell_type == kind) for kind in ("code", "markdown")
    )
    if "**Exercise" in text:  # page 00 only says what other pages have
        offered = {"check", "hint", "reveal"} & set(re.findall(r"`(\w+)\(", text))
        assert all(re.search(rf"import [^)]*\b{name}\b", code) for name in offered)


@every_notebook
def test_cells_are_short(path: Path) -> None:
    long = [
        i
        for i, c in enumerate(read(path).cells)
        if c.cell_type == "code" and c.source.count("\n") >= 25
    ]
    assert not long, "cells of more than 25 lines: put what they do into a function"


@every_notebook
def test_some_output_is_compared(path: Path) -> None:
    """nbval compares outputs of cells with this tag; without one it would compare nothing."""
    tagged = [c for c in read(path).cells if "nbval-check-output" in c.metadata.get("tags", [])]
    assert tagged and all(c.outputs for c in tagged)


def test_links_between_pages_lead_somewhere() -> None:
    """No page names a notebook or file of the course that is not there."""
    link = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
    missing = [
        f"{path.name}: {target}"
        for path in NOTEBOOKS
        for cell in read(path).cells
        if cell.cell_type == "markdown"
        for target in link.findall(FENCE.sub("", cell.source))
        if not (path.parent / target).exists()
    ]
    assert not missing
