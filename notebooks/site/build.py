"""Build the site: the executed notebooks as pages that need no server, no kernel and no network.

    python notebooks/site/build.py                    into build/site
    python notebooks/site/build.py --quick            sliders as pictures, without running a page
    python notebooks/site/build.py --into FOLDER 02   the pages whose number begins so

Sphinx and myst-nb read the stored notebooks; nothing is executed by them. Before that, each
notebook is laid out for a page: plotly figures as data that site.js draws, quizzes and sliders as
what live.py has recorded of them, links between notebooks as links between pages.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import tomllib
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat

from course_lib.lectures.lecture_01.views.tree import tree_svg
from course_lib.teaching.folders import written_whole

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from answers import place_answers  # noqa: E402
from glossary import explains, glossary, link_terms, read_terms  # noqa: E402
from guesses import place_guesses  # noqa: E402
from live import Recorded, recorded_on  # noqa: E402
from playgrounds import attention_script, place_playgrounds, write_models  # noqa: E402
from reference import write_reference  # noqa: E402
from site_links import LINK, to_pages  # noqa: E402
from three_times import PAGE, three_times  # noqa: E402

NOTEBOOKS = HERE.parent
ROOT = NOTEBOOKS.parent
BUILD = ROOT / "build" / "site"
DECKS = ROOT / "slides" / "build"
PRINTED = "?print-pdf&amp;showNotes=separate-page"  # of a deck: as it is printed, with its notes
SLIDERS = ("sliders stand still", "sliders move through states that were computed beforehand")
PLOTLY = "application/vnd.plotly.v1+json"
ROW = re.compile(r"^\| (\d\d) \| \[(.+?)\]\(notebooks/(.+?)\.ipynb\) \| (.+?) \|$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the site of the course.")
    parser.add_argument("number", nargs="?", default="", help="only pages whose name begins so")
    parser.add_argument("--into", type=Path, default=BUILD, help="the folder to write")
    parser.add_argument("--quick", action="store_true", help="run no page: sliders as pictures")
    arguments = parser.parse_args()
    chosen = [path for path in every_notebook() if path.name.startswith(arguments.number)]
    if not chosen:
        raise SystemExit(f"no notebook in {NOTEBOOKS} begins with {arguments.number!r}")
    try:
        build(chosen, arguments.into, run=not arguments.quick)
    except ValueError as error:
        raise SystemExit(str(error)) from error


def build(notebooks: list[Path], target: Path, *, run: bool = False, decks: Path = DECKS) -> Path:
    """Write the site of those notebooks and return its first page. run: whether pages may be run to
    record their sliders; decks: the folder from which decks are taken."""
    with written_whole(target, "make site") as new:
        (new / ".nojekyll").touch()  # or GitHub Pages leaves out folders that begin with _
        _copy_decks(notebooks, decks, new / "slides")
        with tempfile.TemporaryDirectory() as folder:
            laid = Path(folder)
            scripts = _lay_pages(notebooks, laid, new, run) | attention_script()
            write_models(notebooks, new / "models")
            _write_assets(laid / "_static", scripts)
            (laid / f"{PAGE}.md").write_text(three_times(), encoding="utf-8")
            pages = index(notebooks, run, write_reference(laid / "reference"))
            (laid / "index.md").write_text(pages, encoding="utf-8")
            (laid / "glossary.md").write_text(glossary(notebooks), encoding="utf-8")
            _sphinx(laid, new, whole=len(notebooks) == len(every_notebook()))
        (new / "llms.txt").write_text(llms(notebooks), encoding="utf-8")
    return target / "index.html"


def every_notebook() -> list[Path]:
    """The stored notebooks in reading order."""
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def _lay_pages(notebooks: list[Path], laid: Path, target: Path, run: bool) -> dict[str, Recorded]:
    """The pages for Sphinx; beside them, in the site, notebooks and live views. Returns a view of
    each module that these need."""
    scripts: dict[str, Recorded] = {}
    (target / "notebooks").mkdir()
    for path in notebooks:
        try:
            scripts |= _lay_page(path, laid, target, run)
        except Exception as error:  # of a notebook's content anything may be wrong
            what = f"{type(error).__name__}: {error}"
            raise ValueError(f"{path.name} could not be made a page of the site. {what}") from error
    return scripts


def _lay_page(path: Path, laid: Path, target: Path, run: bool) -> dict[str, Recorded]:
    lives = recorded_on(path, run=run)
    nbformat.write(page_of(path, lives, links_of(path.stem, target)), laid / path.name)
    nbformat.write(_to_run(path), target / "notebooks" / path.name)
    for live in lives.values():
        live.write(target / "live")
    return {live.module: live for live in lives.values() if live.module}


def _to_run(path: Path) -> nbformat.NotebookNode:
    """The notebook without its outputs, which the page shows: a fifth of its size."""
    page = nbformat.read(path, as_version=4)
    for cell in page.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return page


def _sphinx(laid: Path, target: Path, *, whole: bool) -> None:
    """Sphinx's pages. A warning is an error; some pages alone may lead to those left out."""
    from sphinx.cmd.build import main as sphinx

    options = ["-q", "-W", "--keep-going", "-b", "html", "-c", str(HERE)]
    options += ["-D", f"html_static_path={laid / '_static'}", "-d", str(laid / ".doctrees")]
    if not whole:
        options += ["-D", "suppress_warnings=myst.header,myst.xref_missing,ref.python"]
    if status := sphinx([*options, str(laid), str(target)]):
        raise SystemExit(f"Sphinx gave the exit status {status}; what it says stands above.")
    for file in (target / "_static").rglob("*.map"):  # for those who work on the theme
        file.unlink()


def _copy_decks(notebooks: list[Path], decks: Path, target: Path) -> None:
    """The decks that `make slides` has built, for these pages. They use the site's plotly.js. Their
    PDFs stay out, as they would be a fifth of the site: a deck's own page prints the same."""
    found = [file for path in notebooks for file in decks.glob(f"{path.stem}.html")]
    if found:
        others = shutil.ignore_patterns("plotly.min.js")
        shutil.copytree(decks / "assets", target / "assets", ignore=others)
        for file in found:
            text = file.read_text(encoding="utf-8")
            shared = text.replace("assets/plotly.min.js", "../_static/plotly.min.js")
            (target / file.name).write_text(shared, encoding="utf-8")
    else:
        print("no decks are linked: `make slides` builds them", file=sys.stderr)


def _write_assets(folder: Path, scripts: dict[str, Recorded]) -> None:
    """Our own scripts and styles, plotly.js from plotly's package, and the widgets' own."""
    folder.mkdir()
    for file in (HERE / "site.css", HERE / "site.js", *(HERE / "models").glob("*.js")):
        shutil.copy(file, folder)
    shutil.copy(_package("plotly") / "package_data" / "plotly.min.js", folder)
    modules = ",\n".join(
        f"{json.dumps(name)}: {one.plain_script()}" for name, one in scripts.items()
    )
    for name in ("base-stemmer.js", "english-stemmer.js"):  # Snowball's, which Sphinx has
        shutil.copy(_package("sphinx") / "search" / "non-minified-js" / name, folder)
    (folder / "modules.js").write_text(f"window.courseModules = {{\n{modules}}};\n", "utf-8")
    (folder / "modules.css").write_text("\n".join(s.css for s in scripts.values()), "utf-8")


def _package(name: str) -> Path:
    found = find_spec(name)
    assert found and found.submodule_search_locations
    return Path(next(iter(found.submodule_search_locations)))


# --- a page -----------------------------------------------------------------------------------


def page_of(path: Path, lives: dict[str, Recorded], links: str) -> nbformat.NotebookNode:
    """The notebook as the site shows it: no installation, `links` under the title, outputs that a
    page without a kernel can show. lives: cell id -> what was recorded of its live view."""
    page = nbformat.read(path, as_version=4)
    page.cells = [cell for cell in page.cells if not cell.source.startswith("#@title Install")]
    if not page.cells or page.cells[0].cell_type != "markdown":
        raise ValueError("Its first cell is no text; expected a title, after the installation.")
    page.cells[0].source = page.cells[0].source.replace("\n\n", f"\n\n{links}\n\n", 1)
    terms, seen = read_terms(), set[str]()
    for cell in page.cells:
        if cell.cell_type == "markdown" and explains(cell.source):
            cell.source = link_terms(cell.source, terms, seen)
        if cell.cell_type == "code":
            for output in cell.outputs:
                if "data" in output:
                    output.data = _for_a_page(output.data)
            if cell.id in lives:
                _come_alive(cell, lives[cell.id])
    place_playgrounds(page, path.stem[:2])
    place_guesses(page, path.stem[:2])
    place_answers(page, f"notebooks/{path.name}")
    return page


def _for_a_page(data: dict[str, Any]) -> dict[str, Any]:
    if PLOTLY in data:
        return {"text/html": figure_html(data[PLOTLY], data.get("image/png", ""))}
    if "text/html" in data:
        return {"text/html": to_pages(data["text/html"])}
    return data


def figure_html(figure: dict[str, Any], picture: str) -> str:
    """A plotly figure as data beside its picture, which stays where no script runs."""
    layout = figure.get("layout", {})
    wide, high = layout.get("width", 680), layout.get("height", 390)
    title = re.sub(r"<.*?>", " ", layout.get("title", {}).get("text", "")) or "a chart"
    told = escape(f"Figure: {title}")
    drawn = json.dumps({"data": figure["data"], "layout": layout}, ensure_ascii=False)
    drawn = drawn.replace("</", "<\\/")
    image = f'<img alt="{told}" loading="lazy" src="data:image/png;base64,{picture.strip()}">'
    return (
        f'<div class="plotly-box" role="group" tabindex="0" aria-label="{told}" '
        f'style="--wide:{wide}px;--high:{high}px">{image if picture else ""}'
        f'<script type="application/json">{drawn}</script></div>'
    )


def _come_alive(cell: nbformat.NotebookNode, live: Recorded) -> None:
    """Around the stored picture, the place where site.js puts the live view."""
    for output in cell.outputs:
        if html := output.get("data", {}).get("text/html"):
            output.data["text/html"] = f'<div class="live-box" data-live="{live.name}">{html}</div>'


def links_of(stem: str, target: Path) -> str:
    """Where else the lecture is: its notebook, and its deck where it was built."""
    links = [f'<a href="notebooks/{stem}.ipynb" download>this notebook</a>']
    if (target / "slides" / f"{stem}.html").exists():
        for asked, said in (("", "slides"), (PRINTED, "slides with notes, to print")):
            links.append(f'<a href="slides/{stem}.html{asked}">{said}</a>')
    return f'<p class="page-links">{" · ".join(links)}</p>'


# --- the first page ---------------------------------------------------------------------------


def lectures(notebooks: list[Path]) -> list[tuple[str, str, str, str]]:
    """(number, title, stem, what it covers) of these notebooks, by the README's table."""
    rows = ROW.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    chosen = {path.stem for path in notebooks}
    if missing := chosen - {stem for _, _, stem, _ in rows}:
        raise SystemExit(
            f"README.md's table of lectures lacks {', '.join(sorted(missing))}; add it."
        )
    return [row for row in rows if row[2] in chosen]


def index(notebooks: list[Path], run: bool, reference: str) -> str:
    """The first page as Markdown: the family as a map, and the pages; run: whether sliders move;
    reference: the first page on the package."""
    rows = lectures(notebooks)
    here = {stem for _, _, stem, _ in rows}
    table = ["| no. | page | what it covers |", "|---|---|---|"]
    table += [f"| {no} | [{title}]({stem}.ipynb) | {what} |" for no, title, stem, what in rows]
    names = "\n".join(f"{no} {title} <{stem}>" for no, title, stem, _ in rows)
    tree = f"```{{toctree}}\n:hidden:\n\n{names}\n{PAGE}\nglossary\n{reference}\n```"
    text = (HERE / "index.md").read_text(encoding="utf-8")
    text = text.replace("{{repository}}", _repository()).replace("{{sliders}}", SLIDERS[run])
    text = text.replace("{{pages}}", "\n".join(table) + "\n\n" + tree)
    return text.replace("{{family}}", family_map(here))


def family_map(here: set[str]) -> str:
    """The family tree with links to those pages that the site has."""
    svg = LINK.sub(lambda link: link[0] if link[1] in here else 'class="elsewhere"', tree_svg())
    box = '<div class="family-map" tabindex="0" role="group" aria-label="the family tree">'
    return f"{box}{to_pages(svg)}</div>"


def llms(notebooks: list[Path]) -> str:
    """The pages as plain text, a line each (llmstxt.org's form)."""
    lines = [
        f"- [{no} {title}]({stem}.html): {what}" for no, title, stem, what in lectures(notebooks)
    ]
    about = "> A course in executed notebooks: every model of BERT's family written from scratch, "
    about += "shown to be equal to the published one, and measured."
    return "\n".join(["# BERT and its family", "", about, "", "## Pages", "", *lines]) + "\n"


def _repository() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"]


if __name__ == "__main__":
    main()
