"""Every view in a kernel with Google Colab's versions of what draws, laid over this environment."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import colab_smoke
import nbformat
import pytest
from environments import COLAB
from limits import AGAINST_HANGING
from nbclient import NotebookClient

from course_lib.teaching.page import WIDGET_VIEW

ROOT = Path(__file__).resolve().parent.parent
# What those need, at a version that goes with them; the rest comes from this environment.
WITH_THEM = (
    "ipykernel==6.17.1",
    "ipython-genutils==0.2.0",
    "backcall==0.2.0",
    "pickleshare==0.7.5",
    "decorator==4.4.2",
    "prompt-toolkit==3.0.52",
    "jedi==0.19.2",
    "tenacity==9.1.2",
    "nest-asyncio==1.6.0",
)


@pytest.fixture(scope="module")
def colab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Colab's packages; a skip, said aloud, where the registry cannot be reached."""
    folder = tmp_path_factory.mktemp("colab")
    wanted = [f"{name}=={version}" for name, version in COLAB.items()]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--retries", "1"]
    done = subprocess.run(
        [*pip, "--target", str(folder), *wanted, *WITH_THEM], capture_output=True, text=True
    )
    if done.returncode:
        message = f"COLAB'S VERSIONS NOT TESTED: pip could not fetch them.\n{done.stderr[-1500:]}"
        if os.environ.get("CI"):
            pytest.fail(message)
        warnings.warn(message, stacklevel=1)
        pytest.skip(message)
    return folder


def cell(name: str) -> str:
    return f"import colab_smoke\ncolab_smoke.VIEWS[{name!r}]()"


@pytest.fixture(scope="module")
def shown(colab: Path) -> dict[str, list[dict]]:
    """The outputs of each view, by name, from one kernel."""
    versions = "; ".join(f"import {name}; print({name}.__version__)" for name in COLAB)
    names = ["versions", *colab_smoke.VIEWS]
    cells = [versions, *map(cell, colab_smoke.VIEWS)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(colab), str(ROOT), str(ROOT / "tests")])
    }
    options = {"timeout": AGAINST_HANGING, "kernel_name": "python3", "allow_errors": True}
    client = NotebookClient(notebook, **options)
    client.execute(env=environment)
    return {n: c.outputs for n, c in zip(names, notebook.cells, strict=True)}


def test_every_view_has_an_example() -> None:
    assert set(vars(colab_smoke.views)) == set(colab_smoke.VIEWS)


def test_the_kernel_has_colabs_versions(shown: dict[str, list[dict]]) -> None:
    assert shown["versions"][0]["text"].split() == list(COLAB.values())


@pytest.mark.parametrize("name", colab_smoke.VIEWS)
def test_view_is_shown_without_error(name: str, shown: dict[str, list[dict]]) -> None:
    errors = [f"{o['ename']}: {o['evalue']}" for o in shown[name] if o["output_type"] == "error"]
    assert not errors


def kinds(outputs: list[dict]) -> set[str]:
    return {kind for output in outputs for kind in output.get("data", {})}


@pytest.mark.parametrize("name", colab_smoke.LIVE)
def test_live_view_has_a_widget_and_a_picture(name: str, shown: dict[str, list[dict]]) -> None:
    assert {WIDGET_VIEW, "text/html"} <= kinds(shown[name])


@pytest.mark.parametrize("name", colab_smoke.FIGURES)
def test_figure_is_drawn(name: str, shown: dict[str, list[dict]]) -> None:
    assert kinds(shown[name]) & {"application/vnd.plotly.v1+json", "text/html"}
