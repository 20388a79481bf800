"""notebooks/source/build.py: what it makes of a source, and what it takes out of outputs."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from PIL import Image

from course_lib.teaching.numbers import NumberError, number
from course_lib.teaching.page import WIDGET_VIEW

SOURCE = """# %% [markdown]
# # A title
# {{colab}} · {{repository}}

# %% tags=["nbval-check-output"]
print(1 + 1)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "77_trial.py"
    path.write_text(SOURCE)
    return path


def test_source_becomes_cells_with_the_first_one_added(
    source: Path, notebook_builder: ModuleType
) -> None:
    notebook = notebook_builder.read_source(source)
    first, title, code = notebook.cells
    assert first.source == notebook_builder.first_cell()
    assert "blob/main/notebooks/77_trial.ipynb" in title.source
    assert notebook_builder.repository() in title.source and "{{" not in title.source
    assert code.metadata.tags == ["nbval-check-output"]
    again = notebook_builder.read_source(source)
    assert [c.id for c in again.cells] == [c.id for c in notebook.cells]
    nbformat.validate(notebook)


def test_minutes_are_those_of_reading_and_of_exercises(
    source: Path, notebook_builder: ModuleType
) -> None:
    words = "word " * 320
    source.write_text(
        "# %% [markdown]\n# # A title\n# {{duration}}\n# {{parts}}\n"
        f"# %% [markdown]\n# ## Read\n# {words}\n"
        "# %% [markdown]\n# ## Is it so?\n# {{exercise:04.5}}\n"
    )
    _, title, read, asked = notebook_builder.read_source(source).cells
    assert title.source.splitlines()[1:] == [
        "about 15 minutes with the exercises, 0 without",
        "**Parts** (minutes): [Read](#Read) 2 · [Is it so?](#Is-it-so%3F) 15",
    ]
    assert "▰▱</span> *part 1 of 2, about 2 minutes*" in read.source
    assert asked.source.startswith("## Is it so?\n\n") and "part 2 of 2" in asked.source


def test_a_number_in_a_sentence_comes_from_the_lectures_room(
    source: Path, notebook_builder: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_builder, "SOURCES", source.parent)
    source.write_text("# %% [markdown]\n# It takes {{number:steps}} steps.\n")
    with pytest.raises(NumberError, match=r"lecture 77 asks for number 'steps'"):
        notebook_builder.read_source(source)
    seen = source.with_name("03_name.py")
    seen.write_text("# %% [markdown]\n# {{number:million_tokens}} million tokens.\n")
    assert notebook_builder.read_source(seen).cells[1].source == (
        f"{number('03', 'million_tokens')} million tokens."
    )


def test_disagreement_is_about_cells_and_not_outputs(
    source: Path, notebook_builder: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_builder, "NOTEBOOKS", source.parent)
    assert "missing" in notebook_builder.disagreements(source)[0]
    notebook = notebook_builder.read_source(source)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="anything")]
    nbformat.write(notebook, notebook_builder.saved(source))
    assert notebook_builder.disagreements(source) == []
    source.write_text(SOURCE.replace("1 + 1", "1 + 2"))
    assert "cell 2" in notebook_builder.disagreements(source)[0]
    source.write_text(SOURCE.replace('["nbval-check-output"]', "[]"))
    assert "cell 2" in notebook_builder.disagreements(source)[0]
    source.write_text(SOURCE + "\n# %%\n3\n")
    assert "cells" in notebook_builder.disagreements(source)[0]


def test_where_only_text_changed_outputs_stay(
    source: Path, notebook_builder: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_builder, "NOTEBOOKS", source.parent)
    assert notebook_builder.with_saved_outputs(source) is None  # nothing is saved
    notebook = notebook_builder.read_source(source)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="2\n")]
    nbformat.write(notebook, notebook_builder.saved(source))
    source.write_text(SOURCE.replace("A title", "Another") + "\n# %% [markdown]\n# More.\n")
    notebook_builder.build(source, text_only=True)
    written = nbformat.read(notebook_builder.saved(source), as_version=4)
    assert written.cells[2].outputs[0].text == "2\n" and "Another" in written.cells[1].source
    assert notebook_builder.disagreements(source) == []
    source.write_text(SOURCE.replace("1 + 1", "1 + 2"))
    assert notebook_builder.with_saved_outputs(source) is None  # it would show another cell's 2


def test_cleaning_keeps_what_a_reader_without_a_kernel_sees(
    source: Path, notebook_builder: ModuleType
) -> None:
    notebook = notebook_builder.read_source(source)
    widget = {WIDGET_VIEW: {"model_id": "1"}, "text/plain": "IntSlider()"}
    notebook.cells[2].outputs = [
        nbformat.v4.new_output("display_data", data=dict(widget)),
        nbformat.v4.new_output("display_data", data=widget | {"text/html": "<p>picture</p>"}),
        nbformat.v4.new_output("stream", name="stderr", text="\r 10%"),
        nbformat.v4.new_output("stream", name="stderr", text="\r100%\n"),
        nbformat.v4.new_output("stream", name="stdout", text="one\n"),
        nbformat.v4.new_output("stream", name="stdout", text="two\n"),
    ]
    notebook.metadata["widgets"] = {"state": {}}
    notebook.cells[2].metadata["execution"] = {"iopub.status.busy": "now"}
    cleaned = notebook_builder.clean(notebook)
    outputs = cleaned.cells[2].outputs
    assert set(outputs[0].data) == {"text/html", "text/plain"}
    assert [o.text for o in outputs[1:]] == ["100%\n", "one\ntwo\n"]
    assert "widgets" not in cleaned.metadata
    assert set(cleaned.cells[2].metadata) == {"tags"}


def test_a_failing_cell_names_the_source_and_leaves_the_notebook(
    source: Path, notebook_builder: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_builder, "NOTEBOOKS", source.parent)
    monkeypatch.setattr(notebook_builder, "_publishing", lambda: {})
    notebook_builder.saved(source).write_text("the old one")
    source.write_text("# %%\nundefined_name\n")
    with pytest.raises(SystemExit, match=r"77_trial\.py: a cell failed"):
        notebook_builder.build(source)
    assert notebook_builder.saved(source).read_text() == "the old one"


def test_a_notebook_that_a_reader_has_edited_is_kept(
    tmp_path: Path, root: Path, notebook_builder: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook_builder, "ROOT", tmp_path)
    monkeypatch.setattr(notebook_builder, "read_committed", lambda path: committed)
    page = notebook_builder.saved(next((root / "notebooks" / "source").glob("02_*.py")))
    committed, edited = page.read_bytes(), tmp_path / page.name
    cells = json.loads(committed)
    cells["cells"][-1]["outputs"] = []  # what running it changes is no answer
    edited.write_text(json.dumps(cells), encoding="utf-8")
    notebook_builder.keep_edited(edited)
    assert not (tmp_path / "build").exists()
    cells["cells"][1]["source"] = "def mine(): ..."
    for content in (json.dumps(cells), "{"):
        edited.write_text(content, encoding="utf-8")
        notebook_builder.keep_edited(edited)
    kept = [file.read_text(encoding="utf-8") for file in (tmp_path / "build/edited").iterdir()]
    assert sorted(kept) == sorted([json.dumps(cells), "{"])


def test_a_figure_is_saved_in_one_line_with_six_digits(notebook_builder: ModuleType) -> None:
    kind = "application/vnd.plotly.v1+json"
    drawn = {"data": [{"y": [1 / 3, 2, 1e-9 / 3], "name": "größer"}], "layout": {"width": 700}}
    output = nbformat.v4.new_output("display_data", {kind: drawn, "text/plain": "a figure"})
    notebook = nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_markdown_cell("A page"), nbformat.v4.new_code_cell("1", outputs=[output])
    ])  # fmt: skip
    text = notebook_builder.as_json(notebook)
    (line,) = (line for line in text.splitlines() if kind in line)
    assert '{"data":[{"name":"größer","y":[0.333333,2,3.33333e-10]}],"layout"' in line
    back = nbformat.reads(text, as_version=4)
    nbformat.validate(back)
    assert back.cells[0] == notebook.cells[0] and back.cells[1].source == "1"
    assert back.cells[1].outputs[0].data[kind].layout.width == 700
    assert output.data[kind]["data"][0]["y"][0] == 1 / 3  # what was given stays


def test_a_long_text_beside_its_html_is_cut_at_a_line(notebook_builder: ModuleType) -> None:
    assert notebook_builder._beginning("short") == "short"
    cut = notebook_builder._beginning("\n".join(["a line of words"] * 200))
    assert cut.endswith("words\n…") and len(cut) <= 402


def test_a_few_coloured_dots_keep_their_colour(notebook_builder: ModuleType) -> None:
    """Forty greys of letters, each commoner than the dots."""
    drawn = Image.new("RGB", (400, 400), "white")
    for shade in range(40):
        drawn.paste((shade * 5, shade * 5, shade * 5), (10 * shade, 0, 10 * shade + 5, 20))
    drawn.paste((0, 114, 178), (200, 200, 206, 206))
    png = io.BytesIO()
    drawn.save(png, format="PNG")
    saved = notebook_builder._few_colours(base64.b64encode(png.getvalue()).decode())
    back = Image.open(io.BytesIO(base64.b64decode(saved))).convert("RGB")
    assert back.getpixel((202, 202)) == (0, 114, 178)
