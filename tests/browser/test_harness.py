"""The harness itself can fail: it sees errors at a slider's end and requests that leave."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from lab import Notebook, jupyterlab, offline_context
from playwright.sync_api import Browser

GOOD = (
    "import ipywidgets as w\nw.interact(lambda k: print(k), k=w.IntSlider(value=2, max=7));",
    "from IPython.display import HTML\n"
    "HTML('<div><iframe srcdoc=\"<svg><rect width=9 height=9 /></svg>\"></iframe></div>')",
)
BAD = (
    "import ipywidgets as w\nw.interact(lambda k: print(1 / (7 - k)), k=w.IntSlider(max=7));",
    "HTML('<img src=\"https://example.org/a.png\">')",
    "import urllib.request\ntry:\n    urllib.request.urlopen('https://example.org')\n"
    "except OSError:\n    pass",
)


def write(path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, path)
    return path


def test_a_faulty_notebook_is_found_out(browser: Browser, tmp_path: Path) -> None:
    notebooks = [write(tmp_path / "good.ipynb", *GOOD), write(tmp_path / "bad.ipynb", *GOOD, *BAD)]
    with (
        jupyterlab(tmp_path / "lab", notebooks) as server,
        offline_context(browser) as (context, asked),
    ):
        good = Notebook.open(context, server, "good.ipynb")
        good.run_all(60)
        assert good.counts() == [2, 2]
        assert len(good.move_every_slider()) == 2
        assert good.inside_frames("svg rect") == 1
        assert (good.errors(), asked, server.kernel_requests()) == ([], [], [])

        bad = Notebook.open(context, server, "bad.ipynb")
        bad.run_all(60)
        with pytest.raises(AssertionError, match="ZeroDivisionError"):
            bad.move_every_slider()
        assert "https://example.org/a.png" in asked
        assert any("example.org" in line for line in server.kernel_requests())
