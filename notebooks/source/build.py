"""Execute the lecture sources and write the notebooks.

    python notebooks/source/build.py           every notebook
    python notebooks/source/build.py 02        those whose number begins so
    python notebooks/source/build.py --text    outputs stay where code cells are what they were
    python notebooks/source/build.py --check   only say whether saved cells and sources agree

Authors edit `notebooks/source/NN_name.py` (jupytext's percent format); `notebooks/NN_name.ipynb` is
made from it, outputs included. A cell tagged `nbval-check-output` prints what every machine prints
alike, and the tests compare it. In Markdown cells stand `{{repository}}` for the address of the
course, `{{colab}}` for a link that opens the notebook in Colab, `{{duration}}` for how long the
page takes and `{{parts}}` for its parts with a link to each, `{{exercise:02.1}}` for the text of an
exercise, `{{review:02}}` for a lecture's questions for review, and `{{number:…}}` for a number of
the lecture's numbers.py or an expression (course_lib.teaching.numbers): a sentence that repeats a
measured number takes it from the result."""

from __future__ import annotations

import argparse
import base64
import copy
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

from course_lib import __version__
from course_lib.doctor import BROWSERS, how_to_install_browser, program
from course_lib.files import sha256_of, write_atomic
from course_lib.teaching.exercises import exercise
from course_lib.teaching.numbers import filled
from course_lib.teaching.quizzes import review_markdown

sys.path.insert(0, str(Path(__file__).resolve().parent))
from page_parts import say_where

SOURCES = Path(__file__).resolve().parent
NOTEBOOKS = SOURCES.parent
ROOT = NOTEBOOKS.parent
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"
    },
    "language_info": {"name": "python"},
}  # fmt: skip
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # in JupyterLab and in Colab
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
PLOTLY = "application/vnd.plotly.v1+json"
AGAINST_HANGING = 30 * 60  # seconds a cell may take; a page takes 120 where nothing else runs
LARGEST = 520_000  # bytes: what GitHub still shows without complaint, and a clone takes gladly


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def first_cell() -> str:
    """What every notebook starts with, folded away: install the course if it is missing or too old.

    On Colab it finds nothing and installs; pip shows its own messages, and the ranges of
    pyproject.toml leave Colab's torch alone. Anywhere else it finds the course and does nothing.
    """
    name, version = project()["name"], [int(part) for part in __version__.split(".")]
    return (
        "#@title Install the course if it is missing\n"
        "from importlib import metadata as m; "
        f'any([*map(int, d.version.split("."))] >= {version} '
        f'for d in m.distributions(name="{name}")) '
        f'or get_ipython().run_line_magic("pip", "install -q git+{repository()}");'
    )


def repository() -> str:
    return project()["urls"]["Repository"]


def sources(prefix: str = "") -> list[Path]:
    """Lecture sources in reading order: files named NN_something.py."""
    return sorted(SOURCES.glob(f"{prefix}*.py" if prefix else "[0-9][0-9]_*.py"))


def read_source(path: Path) -> nbformat.NotebookNode:
    """The notebook that a source describes: no outputs, and ids that do not change by chance."""
    notebook = jupytext.read(path, fmt={"extension": ".py", "format_name": "percent"})
    opening = nbformat.v4.new_code_cell(first_cell())
    notebook.cells = [c for c in notebook.cells if c.cell_type != "raw"]
    say_where(notebook)
    cells = [opening, *notebook.cells]
    for number, cell in enumerate(cells):
        tags = cell.metadata.get("tags", [])
        kept = {"tags": tags} if tags else {}
        cell.metadata = nbformat.from_dict(FOLDED if cell is opening else kept)
        cell.id = f"cell-{path.stem[:2]}-{number:03d}"
        if cell.cell_type == "markdown":
            cell.source = _links(cell.source, path.stem)
    notebook.cells = cells
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def _links(text: str, stem: str) -> str:
    path = repository().removeprefix("https://github.com/")
    colab = f"https://colab.research.google.com/github/{path}/blob/main/notebooks/{stem}.ipynb"
    text = text.replace("{{colab}}", f"[Open in Colab]({colab})")
    text = re.sub(r"\{\{exercise:([\d.]+)\}\}", lambda found: exercise(found[1]).card, text)
    text = re.sub(r"\{\{review:(\d+)\}\}", lambda found: review_markdown(found[1]), text)
    return filled(stem[:2], text).replace("{{repository}}", repository())


def execute(notebook: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """Run every cell in an empty folder, as a reader without the checkout would."""
    for key, value in _publishing().items():
        os.environ.setdefault(key, value)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        # A record of its own: what a page's cells solve, no other page and no student sees.
        os.environ["COURSE_LIB_PROGRESS"] = str(Path(elsewhere, "progress.json"))
        client = NotebookClient(
            notebook,
            timeout=AGAINST_HANGING,
            startup_timeout=AGAINST_HANGING,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            raise SystemExit(
                f"{name}: a cell failed, the saved notebook is left as it was.\n{error}"
            ) from None
    if notebook.cells[0].outputs:
        said = notebook.cells[0].outputs[0].get("text", "")
        raise SystemExit(
            f"the course is not installed where {name} ran; use `make notebooks`.\n{said}"
        )
    return notebook


def _publishing() -> dict[str, str]:
    """With a browser at hand plotly adds a picture to each figure, for GitHub and for print."""
    browser = program(BROWSERS)
    if not browser:
        print(
            "no Chromium found: figures are saved without a picture for GitHub; install one with "
            f"`{how_to_install_browser()}`", file=sys.stderr,
        )  # fmt: skip
        return {}
    return {"PLOTLY_RENDERER": "plotly_mimetype+png", "BROWSER_PATH": browser}


def clean(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Keep what a reader without a kernel can see, and nothing that differs by machine."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cleaned = map(_clean_output, _joined(cell.outputs))
            cell.outputs = [output for output in cleaned if output is not None]
    return notebook


def _clean_output(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    if output.output_type == "stream":
        output.text = _last_of_overwritten(output.text)
        return output if output.text.strip() else None
    data = output.get("data", {})
    if WIDGET_VIEW in data:
        del data[WIDGET_VIEW]
        if set(data) <= {"text/plain"}:
            return None  # the bare repr of a widget says nothing
    if "text/html" in data:
        data["text/plain"] = _beginning(data.get("text/plain", ""))
    if "image/png" in data:
        data["image/png"] = _few_colours(data["image/png"])
    return output if data or output.output_type == "error" else None


def _beginning(text: str, most: int = 400) -> str:
    """The first lines of a long text whose whole is beside it as HTML."""
    return text if len(text) <= most else text[:most].rsplit("\n", 1)[0] + "\n…"


def _few_colours(png: str) -> str:
    """A figure in few colours: hatched bars else weigh more than the rest of the page.

    Its commonest colours that are not nearly alike (the edges of letters are many greys), a
    coloured pixel as much as ten grey ones: three blue dots are few, and must stay blue. 32, where
    these are nearly all of it, as in charts of lines; else 64, as in a map of shades."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    every: Any = picture.getcolors(picture.width * picture.height)  # [(pixels, colour), …]
    common = sorted(every, key=_weight, reverse=True)
    chart = sum(n for n, _ in common[:32]) > 0.95 * picture.width * picture.height
    most = 32 if chart else 64
    kept: list[tuple[int, int, int]] = []
    for _, colour in common:
        if len(kept) < most and all(_apart(colour, other) > 16 for other in kept):
            kept.append(colour)
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in kept for part in colour])
    picture = picture.quantize(palette=palette, dither=Image.Dither.NONE)
    small = io.BytesIO()
    picture.save(small, format="PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode("ascii")


def _weight(found: tuple[int, tuple[int, int, int]]) -> int:
    """How much a colour of a picture counts, of (pixels, colour)."""
    pixels, colour = found
    return pixels * (10 if max(colour) - min(colour) > 60 else 1)


def _apart(one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def _last_of_overwritten(text: str) -> str:
    """What a terminal would show at the end of lines that overwrite themselves (progress bars)."""
    return re.sub(r"[^\n]*\r(?!\n)", "", text)


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Neighbouring pieces of one stream as one: how a stream is cut is chance."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def saved(source: Path) -> Path:
    return NOTEBOOKS / f"{source.stem}.ipynb"


def disagreements(source: Path) -> list[str]:
    """What differs between a source and the saved notebook's cells; outputs are not compared."""
    target = saved(source)
    if not target.exists():
        return [f"{target.name} is missing: run `make notebooks`"]
    ours, theirs = (_cells(n) for n in (read_source(source), nbformat.read(target, as_version=4)))
    if len(ours) != len(theirs):
        return [
            f"{source.name} has {len(ours)} cells, {target.name} {len(theirs)}: "
            "run `make notebooks`"
        ]
    return [
        f"cell {i} of {target.name} is not the source's: run `make notebooks`"
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True))
        if a != b
    ]


def _cells(notebook: nbformat.NotebookNode) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(c.cell_type, c.source, tuple(c.metadata.get("tags", []))) for c in notebook.cells]


def read_committed(path: Path) -> bytes:
    """What git has of a file. Raises an error where it has none, or where there is no git."""
    call = ["git", "show", f"HEAD:./{path.name}"]
    return subprocess.run(call, cwd=path.parent, capture_output=True, check=True).stdout


def keep_edited(target: Path) -> None:
    """A copy in build/edited of a notebook whose cells are not those that git has: a reader may
    have answered in it."""
    if not target.exists():
        return
    try:
        texts = read_committed(target), target.read_bytes()
        there = (nbformat.reads(text.decode(), 4) for text in texts)
        if len({str(_cells(notebook)) for notebook in there}) == 1:
            return
    except Exception:  # not in git, or no notebook any more: nobody knows whose it is
        pass
    kept = ROOT / "build" / "edited" / f"{target.stem}-{sha256_of(target)[:8]}.ipynb"
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(target, kept)
    print(f"{target.name} had cells of its own: kept as {kept}", flush=True)


def with_saved_outputs(source: Path) -> nbformat.NotebookNode | None:
    """The notebook of a source with the outputs of the saved one; None where its code cells are
    others. A changed library or result is not seen."""
    if not saved(source).exists():
        return None
    notebook, before = read_source(source), nbformat.read(saved(source), as_version=4)
    ours, theirs = ([c for c in n.cells if c.cell_type == "code"] for n in (notebook, before))
    if [c.source for c in ours] != [c.source for c in theirs]:
        return None
    for cell, old in zip(ours, theirs, strict=True):
        cell.outputs, cell.execution_count = old.outputs, old.execution_count
    return notebook


def build(source: Path, text_only: bool = False) -> None:
    """Write the notebook of a source; text_only: without running it, where only text changed."""
    started = time.monotonic()
    notebook = with_saved_outputs(source) if text_only else None
    if notebook is None:
        notebook = clean(execute(read_source(source), source.name))
    nbformat.validate(notebook)
    text = as_json(notebook)
    keep_edited(saved(source))
    write_atomic(saved(source), text)
    size = len(text.encode("utf-8"))
    print(
        f"{saved(source).name}: {time.monotonic() - started:.0f} s, {size / 1000:.0f} kB",
        flush=True,
    )
    if size > LARGEST:
        raise SystemExit(
            f"{saved(source).name} has {size:,} bytes, more than {LARGEST:,}: {_heaviest(notebook)}"
        )


def as_json(notebook: nbformat.NotebookNode) -> str:
    """The notebook as text: a line a value, but a figure in one line, which weighs a third."""
    page, figures = copy.deepcopy(notebook), []
    for output in (o for cell in page.cells for o in cell.get("outputs", [])):
        if PLOTLY in output.get("data", {}):
            figures.append(_rounded(output.data[PLOTLY]))
            output.data[PLOTLY] = f"FIGURE {len(figures) - 1} GOES HERE"
    text = json.dumps(page, indent=1, ensure_ascii=False, sort_keys=True) + "\n"

    def drawn(found: re.Match[str]) -> str:
        figure = figures[int(found[1])]
        return json.dumps(figure, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    return re.sub(r'"FIGURE (\d+) GOES HERE"', drawn, text)


def _rounded(x: Any) -> Any:
    """Six digits of every number, which is more than a screen shows."""
    if isinstance(x, float):
        return int(x) if x.is_integer() else float(f"{x:.6g}")
    if isinstance(x, dict):
        return {key: _rounded(value) for key, value in x.items()}
    return [_rounded(value) for value in x] if isinstance(x, list) else x


def _heaviest(notebook: nbformat.NotebookNode) -> str:
    sizes = ((len(json.dumps(c.get("outputs", []))), i) for i, c in enumerate(notebook.cells))
    return ", ".join(
        f"cell {i} {size / 1000:.0f} kB" for size, i in sorted(sizes, reverse=True)[:5]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Execute the lecture sources, write the notebooks."
    )
    parser.add_argument("number", nargs="?", default="", help="only those whose name begins so")
    parser.add_argument("--text", action="store_true", help="execute only what has other code")
    parser.add_argument("--check", action="store_true", help="compare cells, execute nothing")
    arguments = parser.parse_args()
    chosen = sources(arguments.number)
    if not chosen:
        names = ", ".join(path.stem for path in sources(""))
        raise SystemExit(f"no source in {SOURCES} begins with {arguments.number!r}: {names}")
    if arguments.check:
        problems = [problem for source in chosen for problem in disagreements(source)]
        raise SystemExit("\n".join(problems) or 0)
    for source in chosen:
        build(source, text_only=arguments.text)


if __name__ == "__main__":
    main()
