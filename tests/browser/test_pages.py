"""What every page shows, in the browser: each page as it is saved, and one page with an example of
every live view, whose sliders are moved to both ends. That a page's own cells run, and that its
controls move in the kernel, is what nbval tests (tests/moving.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import colab_smoke
import nbformat
import pytest
from lab import ROOT, Notebook, Visit, jupyterlab, visit
from playwright.sync_api import Browser

RUN_WHOLE = ("00", "02")  # in tests of their own
SAVED = [
    p.name for p in sorted((ROOT / "notebooks").glob("*.ipynb")) if p.stem[:2] not in RUN_WHOLE
]
SLIDERS = 76  # of the gallery, at least


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_page_is_drawn(name: str, visit_page: Visit) -> None:
    with visit_page(name, cells=[]) as page:
        assert not page.trouble
        page.screenshots_of_all(Path(name).stem)
        drawn = page.page.locator(".jp-OutputArea img, .jp-OutputArea svg, .jp-OutputArea table")
        assert drawn.count() > 5
        assert (page.errors(), page.requests_beyond()) == ([], [])


@pytest.fixture(scope="module")
def gallery(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder = tmp_path_factory.mktemp("gallery")
    first = f"import sys\nsys.path.insert(0, {str(ROOT / 'tests')!r})\nimport colab_smoke"
    cells = [first, *(f"colab_smoke.LIVE[{name!r}]()" for name in colab_smoke.LIVE)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, folder / "gallery.ipynb")
    with (
        jupyterlab(folder / "lab", [folder / "gallery.ipynb"]) as server,
        visit(browser, server, "gallery.ipynb") as page,
    ):
        yield page


def test_every_live_view_is_drawn(gallery: Notebook) -> None:
    assert not gallery.trouble
    gallery.screenshots_of_all("gallery")
    assert gallery.counts() == [1 + len(colab_smoke.LIVE)] * 2
    assert gallery.errors() == []


def test_every_slider_reaches_both_ends(gallery: Notebook) -> None:
    assert not gallery.trouble
    moved = gallery.move_every_slider(SLIDERS)
    print("\n" + "\n".join(moved))
    assert len(moved) >= 2 * SLIDERS
    assert (gallery.errors(), gallery.requests_beyond()) == ([], [])
    gallery.screenshots_of_all("gallery-moved")
