"""The harness sees errors at a slider's end, requests that leave the machine, pages that hang."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from lab import jupyterlab, no_endless_script, offline_context, visit
from playwright.sync_api import Browser
from playwright.sync_api import Error as PlaywrightError

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
    with jupyterlab(tmp_path / "lab", notebooks) as server:
        with visit(browser, server, "bad.ipynb") as bad:
            assert bad.trouble == ""
            with pytest.raises(AssertionError, match="ZeroDivisionError"):
                bad.move_every_slider(promised=2)
                bad.page.get_by_text("ZeroDivisionError").first.wait_for()  # it may come late
                assert bad.errors() == []
            assert "https://example.org/a.png" in bad.asked
            assert any("example.org" in line for line in server.kernel_requests())

        with visit(browser, server, "good.ipynb") as good:
            assert (good.trouble, good.counts()) == ("", [2, 2])
            assert len(good.move_every_slider(promised=1)) == 2
            assert good.inside_frames("svg rect") == 1
            assert (good.errors(), good.requests_beyond()) == ([], [])


def test_a_page_that_hangs_takes_its_kernel_with_it(browser: Browser, tmp_path: Path) -> None:
    """Also one that hears no interrupt, and one whose test raises; the page after it passes."""
    deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    dies = "import os\nos._exit(1)"
    pages = {"good": GOOD, "deaf": ("1", deaf, "2"), "dies": ("1", dies, "2")}
    notebooks = [write(tmp_path / f"{name}.ipynb", *cells) for name, cells in pages.items()]
    with jupyterlab(tmp_path / "lab", notebooks) as server:
        with visit(browser, server, "deaf.ipynb", seconds=5) as page:
            assert "deaf.ipynb: [1, 3] cells ran, then: " in page.trouble
        assert server.kernels() == []
        with visit(browser, server, "dies.ipynb") as page:
            assert page.trouble or page.counts() != [3, 3]
        with pytest.raises(KeyError), visit(browser, server, "good.ipynb") as page:
            assert len(server.kernels()) == 1
            raise KeyError
        assert server.kernels() == []
        with visit(browser, server, "good.ipynb") as page:
            assert (page.trouble, page.counts(), page.errors()) == ("", [2, 2], [])


def test_cells_are_run_by_their_places(browser: Browser, tmp_path: Path) -> None:
    path = write(tmp_path / "some.ipynb", "1", "2", GOOD[0], "1 / 0")
    with (
        jupyterlab(tmp_path / "lab", [path]) as server,
        visit(browser, server, "some.ipynb", cells=[1, 2]) as page,
    ):
        assert (page.trouble, page.counts(), page.errors()) == ("", [2, 4], [])
        assert len(page.move_every_slider(promised=1)) == 2


def test_a_script_without_end_is_stopped(browser: Browser) -> None:
    """No wait of Playwright's has a limit there; the next window is as good as new."""
    with offline_context(browser) as (context, _), no_endless_script(5):
        page = context.new_page()
        with pytest.raises(PlaywrightError):
            page.evaluate("() => { while (true); }")
    with offline_context(browser) as (context, _):
        assert context.new_page().evaluate("1 + 1") == 2
