"""The site, built from stored notebooks: complete, working as files, alone on its machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import nbformat
import pytest
import yaml
from axe import WCAG, serious_findings
from conftest import ROOT
from lab import offline_context, take_picture
from playwright.sync_api import Browser, Page

import course_lib
from course_lib.lectures.lecture_06.views import temperature_view
from course_lib.search import course_sections
from course_lib.teaching.page import Html
from course_lib.teaching.playgrounds import playground

pytestmark = pytest.mark.filterwarnings("ignore:'myst_parser")  # what MyST still asks of Sphinx
STEMS = ("02_bert_mlm_nsp", "06_distillation", "13_choosing_a_variant")
NOTEBOOKS = [ROOT / "notebooks" / f"{stem}.ipynb" for stem in STEMS]
LOADED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)="([^"]*)"')
LINKS = re.compile(r'<a\b[^>]*?\bhref="([^"]*)"')
ELSEWHERE = re.compile(r"(?:https?:)?//")
NO_WIDGET = re.compile(r"widget could not be displayed|jupyter widget|widget-view\+json", re.I)
DRAWN = ".plotly-box, .live-box, .play-box"
BOXES = f"[...document.querySelectorAll('{DRAWN}')].map(box => box.dataset.drawn)"
THROUGH = f"""async () => {{
  for (const box of document.querySelectorAll('{DRAWN}')) {{
    box.scrollIntoView();
    while (!box.dataset.drawn) await new Promise(done => setTimeout(done, 20));
  }} }}"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def live(site_builder: ModuleType) -> ModuleType:
    """The module that records live views; the builder has found it."""
    import live

    return live


@pytest.fixture(scope="module")
def site(site_builder: ModuleType, live: ModuleType, tmp_path_factory: Any) -> Path:
    """Three pages built without running one, but for a view that needs no model, and a deck."""
    decks, folder = tmp_path_factory.mktemp("decks"), tmp_path_factory.mktemp("site") / "site"
    (decks / "assets").mkdir()
    deck = '<script src="assets/plotly.min.js"></script>'
    for name in ("06_distillation.html", "06_distillation.pdf", "assets/plotly.min.js"):
        (decks / name).write_text(deck, encoding="utf-8")

    def recorded(path: Path, *, run: bool) -> dict[str, Any]:
        found = live.recorded_on(path, run=run)
        for cell in nbformat.read(path, as_version=4).cells:
            if re.search(r"^temperature_view\(", cell.source, re.MULTILINE):
                view = temperature_view([3.0, 2.0, 0.0], ["heron", "boat", "mill"])
                found[cell.id] = live.record("06-temperature", view)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_builder, "recorded_on", recorded)
        site_builder.build(NOTEBOOKS, folder, decks=decks)
    return folder


def test_every_term_is_used_on_a_page_and_said_in_one_sentence(site_builder: ModuleType) -> None:
    import glossary

    texts = glossary.texts_of(site_builder.every_notebook())
    for term in glossary.read_terms():
        assert glossary.first_use(term, texts), f"no page uses {term.name}"
        words = term.says.split()
        assert term.says[-1] == "." and len(words) <= 32 and ". " not in term.says, term.name


def test_a_term_is_linked_once_and_never_within_code_links_or_headings(
    site_builder: ModuleType,
) -> None:
    import glossary

    terms = [glossary.Term("loss", "It.", ("losses",)), glossary.Term("token", "It.")]
    closed = "# The loss\n`loss` [loss](a.md) $loss$ <b title='loss'>\n| loss |\n"
    text = f"{closed}big losses, a loss, tokens"
    seen: set[str] = set()
    linked = glossary.link_terms(text, terms, seen)
    link = '<a class="term" href="glossary.html#term-loss">losses</a>'
    assert linked == text.replace("big losses", f"big {link}") and seen == {"loss"}
    assert glossary.link_terms("a loss", terms, seen) == "a loss"


def test_the_glossary_leads_to_each_first_use(pages: dict[str, str]) -> None:
    ids = set(re.findall(r'id="(term-[^"]+)"', pages["glossary.html"]))
    linked = set(re.findall(r'href="glossary.html#(term-[^"]+)"', "".join(pages.values())))
    assert linked and linked <= ids


def test_the_downloaded_notebook_is_the_page_without_its_outputs(site: Path) -> None:
    for path in NOTEBOOKS:
        copy, page = (
            nbformat.read(p, as_version=4) for p in (site / "notebooks" / path.name, path)
        )
        assert [cell.source for cell in copy.cells] == [cell.source for cell in page.cells]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in copy.cells)
        nbformat.validate(copy)


def test_what_is_found_leads_to_its_heading(site: Path, pages: dict[str, str]) -> None:
    from course_index import _shown

    shown = [_shown(one) for one in course_sections() if one.page[:-6] in STEMS]
    assert len(shown) > 60
    for page, anchor, *_ in shown:
        assert f'id="{anchor}"' in pages[page], (page, anchor)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, str]:
    """The HTML of every page by file name; not of the decks, which have tests of their own."""
    return {path.name: path.read_text(encoding="utf-8") for path in site.glob("*.html")}


def test_every_lecture_is_on_the_first_page_and_in_llms_txt(
    site_builder: ModuleType, site: Path, pages: dict[str, str]
) -> None:
    every = site_builder.every_notebook()
    assert [stem for *_, stem, _ in site_builder.lectures(every)] == [path.stem for path in every]
    lines = (site / "llms.txt").read_text(encoding="utf-8").splitlines()
    for stem in STEMS:
        assert f'href="{stem}.html"' in pages["index.html"]
        assert (
            sum(re.search(rf"\]\({stem}\.html\): \S.{{20}}", line) is not None for line in lines)
            == 1
        )


def test_the_reference_holds_every_public_name(site: Path) -> None:
    """With what its docstring says, and with a search that knows it."""
    door = (site / "reference" / "course_lib.html").read_text(encoding="utf-8")
    known = (site / "searchindex.js").read_text(encoding="utf-8")
    for name in course_lib.__all__:
        thing = getattr(course_lib, name)
        home = f"{thing.__module__}.{thing.__qualname__}" if hasattr(thing, "__module__") else ""
        links = re.findall(rf'href="(\w+\.html)#{re.escape(home)}"', door) if home else []
        assert name.startswith("_") or links or f'id="course_lib.{name}"' in door, name
        for page in links[:1]:
            there = (site / "reference" / page).read_text(encoding="utf-8")
            assert f'id="{home}"' in there, name
        assert name.startswith("_") or f'"{name}"' in known, name
    modules = (site / "reference" / "train.html").read_text(encoding="utf-8")
    assert 'id="course_lib.train.span_metrics.bio_spans"' in modules
    assert 'href="reference/course_lib.html"' in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Of (B, T), a\nline.\n\nnone", ["Of (B, T), a line.", "", "none"]),
        ("x * y_ is `a_b`s", [r"x \* y\_ is \ ``a_b``\ s"]),
        ("Use it::\n\n    a = 1\n    b", [r"Use it\:\:", "", "::", "", "    a = 1", "    b"]),
        ("Two:\n- a\n  more\n- b", [r"Two\:", "", "- a more", "", "- b"]),
    ],
)
def test_docstrings_are_plain_text(
    site_builder: ModuleType, docstring: str, expected: list[str]
) -> None:
    from reference import as_text

    lines = docstring.split("\n")
    as_text(None, "", "", None, None, lines)
    assert lines == expected


def test_a_notebook_that_the_readme_lacks_is_named(site_builder: ModuleType) -> None:
    with pytest.raises(SystemExit, match="99_unknown"):
        site_builder.lectures([Path("99_unknown.ipynb")])


CELL = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
TITLE = {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "# A title\n\nText."}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"cells": 3}', "\0", *(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        for cells in ([], [CELL | {"source": "1"}], [TITLE | {"source": None}],
                      [TITLE, CELL | {"source": 'quiz("99")'}],
                      [TITLE, CELL | {"source": "", "outputs": [{"data": 3}]}])
    )],
)  # fmt: skip
def test_a_page_that_cannot_be_laid_out_is_named(
    text: str, site_builder: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "77_broken.ipynb"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"^77_broken\.ipynb could not be made a page"):
        site_builder.build([path], tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_folder_that_is_no_site_is_left_alone(site_builder: ModuleType, tmp_path: Path) -> None:
    for name in ("thesis.txt", ".nojekyll", "index.html"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"holds \.nojekyll and 2 more, which make site did not write"
    ):
        site_builder.build(NOTEBOOKS, tmp_path)
    assert {path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {"mine"}


def test_a_build_that_fails_leaves_the_site_that_is_there(
    site_builder: ModuleType, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*")}
    monkeypatch.setattr(site_builder, "llms", lambda notebooks: 1 / 0)
    monkeypatch.setattr(site_builder, "_sphinx", lambda *arguments, whole: None)
    with pytest.raises(ZeroDivisionError):
        site_builder.build(NOTEBOOKS[2:], site)
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*")} == before
    assert list(site.parent.iterdir()) == [site]


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        loaded = LOADED.findall(text)
        assert loaded and not [a for a in loaded if ELSEWHERE.match(a)], name
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.findall(r"@import|url\([\"']?(?:https?:)?//", text), sheet.name


def test_the_theme_leaves_no_source_maps(site: Path) -> None:
    assert not list(site.rglob("*.map")) and list(site.rglob("furo.css"))


def test_every_link_leads_somewhere(site: Path, pages: dict[str, str]) -> None:
    ids = {name: set(re.findall(r'\bid="([^"]*)"', text)) for name, text in pages.items()}
    others = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} - set(STEMS)
    for name, text in pages.items():
        for address in (*LINKS.findall(text), *LOADED.findall(text)):
            file, _, place = unquote(unescape(address)).partition("#")
            file = file.split("?")[0] or name
            if ELSEWHERE.match(file) or file.startswith(("data:", "mailto:")):
                continue
            if {Path(file).stem, Path(place).stem} & others:
                continue  # these three pages lead to pages that the whole site has
            assert (site / file).exists(), f"{name} leads to {address}"
            if place and file in ids:
                assert place in ids[file], f"{name} leads to {address}"


def test_decks_are_linked_where_they_were_built(pages: dict[str, str]) -> None:
    assert 'href="slides/06_distillation.html"' in pages["06_distillation.html"]
    assert 'href="slides/06_distillation.html?print-pdf&amp;' in pages["06_distillation.html"]
    assert "slides/" not in pages["02_bert_mlm_nsp.html"]


def test_decks_use_the_sites_plotly(site: Path) -> None:
    (source,) = LOADED.findall((site / "slides/06_distillation.html").read_text(encoding="utf-8"))
    assert (site / "slides" / source).resolve() == (site / "_static/plotly.min.js").resolve()
    assert not (site / "slides/assets/plotly.min.js").exists()


def test_no_output_says_that_a_widget_is_missing(pages: dict[str, str]) -> None:
    assert not [name for name, text in pages.items() if NO_WIDGET.search(text)]


def test_formulas_are_mathml(pages: dict[str, str]) -> None:
    assert "<munder" in pages["02_bert_mlm_nsp.html"]
    assert not re.search(r"\\underbrace|mathjax", pages["02_bert_mlm_nsp.html"], re.I)


# --- recording --------------------------------------------------------------------------------


def test_few_states_are_recorded_together_and_many_one_by_one(live: ModuleType) -> None:
    def controls(*sizes: int) -> list[Any]:
        names = [list(map(str, range(size))) for size in sizes]
        return [live.Control("c", "slider", list(range(len(n))), n, 0) for n in names]

    few, together = live._few_enough(controls(10, 20))
    assert together and [len(c.values) for c in few] == [10, 20]
    thin, together = live._few_enough(controls(100, 100))
    assert together and all(c.values[0] == 0 and c.values[-1] == 99 for c in thin)
    many, together = live._few_enough(controls(50, 50, 50, 50, 50))
    assert not together and max(len(c.values) for c in many) == live.MOST_OF_ONE


def test_controls_that_follow_another_say_where_they_stand(live: ModuleType) -> None:
    import ipywidgets as w

    preset = w.Dropdown(options=["small", "large"], description="preset")
    width = w.IntSlider(value=1, min=1, max=3)
    preset.observe(lambda change: setattr(width, "value", 1 + 2 * preset.index), names="value")
    controls = {"preset": preset, "width": width, "text": w.Text(value="as it is")}
    view = playground(lambda **given: str(given), controls, Html("", ""))
    what = live.record("01-1", view).what
    assert what["grid"] and len(what["at"]) == 6
    assert [control["options"] for control in what["controls"]][1:] == [
        ["1", "2", "3"],
        ["as it is"],
    ]
    assert what["also"]["1,0,0"] == {1: (2, "3")}  # large: the slider went to its third place
    shown = what["html"][what["at"]["1,0,0"]]
    assert "{'preset': 'large', 'width': 3, 'text': 'as it is'}" in shown
    assert "in the notebook only" in what["note"]


def test_what_pictures_have_in_common_is_written_once(live: ModuleType, tmp_path: Path) -> None:
    pictures = ['<p style="a">one</p> 1 < 2', '<p style="a">two</p>', "", "plain"]
    live.Recorded("01-1", {"html": pictures}).write(tmp_path)
    said = (tmp_path / "01-1.js").read_text(encoding="utf-8")
    what = json.loads(said[said.index("{") : said.rindex(")")])
    parts = what["parts"]
    assert ["".join(parts[n] for n in html) for html in what["html"]] == pictures
    assert parts.count('<p style="a">') == 1


def test_a_script_without_export_is_refused(live: ModuleType) -> None:
    with pytest.raises(ValueError, match="Odd has 0 lines"):
        live.Recorded("01-1", {}, "Odd", "function render() {}").plain_script()


def test_of_a_page_only_what_its_controls_need_is_run(live: ModuleType, tmp_path: Path) -> None:
    cells = ["x = 1", "from ipywidgets import IntSlider", "slow = x", "n = x + 1", "IntSlider(n)"]
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
    nbformat.write(notebook, tmp_path / "page.ipynb")
    assert live.needed_on_page(tmp_path / "page.ipynb") == [0, 1, 3, 4]


# --- in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened(browser: Browser, site: Path) -> Iterator[tuple[Page, Path]]:
    """A tab without a network. At the end nothing was asked for, and no script has failed."""
    with offline_context(browser) as (context, asked):
        tab, said = context.new_page(), []
        tab.on("pageerror", lambda error: said.append(str(error)))
        yield tab, site
        assert (asked, said) == ([], [])


def _open(opened: tuple[Page, Path], name: str, width: int = 1440) -> Page:
    tab, site = opened
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto((site / name).as_uri())
    return tab


@pytest.mark.parametrize("stem", STEMS)
def test_figures_and_live_views_are_drawn_when_a_reader_comes_near(
    opened: tuple[Page, Path], stem: str
) -> None:
    tab = _open(opened, f"{stem}.html")
    assert len(tab.evaluate(BOXES)) >= 3
    tab.evaluate(THROUGH)
    assert set(tab.evaluate(BOXES)) <= {"yes"}
    assert tab.locator(".plotly-box .main-svg").count() >= 2
    take_picture(tab, f"site-{stem}")


@pytest.mark.parametrize("stem", STEMS)
def test_a_page_is_light_before_it_is_touched(opened: tuple[Page, Path], stem: str) -> None:
    """Models wait for a reader's first touch, and plotly.js for a figure that comes near."""
    tab, site = opened
    read: list[Path] = []
    note = lambda request: read.append(site / unquote(request.url.partition("?")[0][7:]))  # noqa: E731
    tab.on("request", note)
    _open(opened, f"{stem}.html")
    tab.remove_listener("request", note)
    files = {path for path in read if path.is_file()}
    assert site / f"{stem}.html" in files
    assert sum(path.stat().st_size for path in files) < 1_500_000


def test_a_playground_reads_a_sentence(opened: tuple[Page, Path]) -> None:
    tab = _open(opened, "02_bert_mlm_nsp.html")
    box = tab.locator(".play-box[data-play=fill]")
    box.scroll_into_view_if_needed()
    box.locator("textarea").fill("Returns the [MASK] of the values.")
    box.locator(".play-bars").wait_for()
    assert box.locator(".play-sentence").filter(has_text="Position 3: ").count() == 1


def test_a_quiz_answers(opened: tuple[Page, Path], live: ModuleType) -> None:
    tab = _open(opened, "06_distillation.html")
    tab.locator("[data-live]").last.scroll_into_view_if_needed()
    quiz = tab.locator(".quiz-view")
    quiz.wait_for()
    choices = live.quiz("06").widget.items[0]["choices"]
    first = quiz.locator("fieldset").first
    first.locator("label").nth([choice["correct"] for choice in choices].index(True)).click()
    first.get_by_role("button", name="Check").click()
    assert "✓ Right." in first.locator(".why").inner_text()
    assert quiz.locator(".score").inner_text().startswith("1 right")


def test_a_slider_moves_through_what_was_computed(opened: tuple[Page, Path]) -> None:
    tab = _open(opened, "06_distillation.html")
    view = tab.locator("[data-live='06-temperature']")
    view.scroll_into_view_if_needed()
    slider = view.get_by_role("slider", name="temperature T")
    slider.wait_for()
    assert "T = 1:" in view.inner_text()
    slider.focus()
    slider.press("End")
    assert "T = 8:" in view.inner_text()
    assert slider.get_attribute("aria-valuetext") == "8"


def test_the_search_finds_a_page(opened: tuple[Page, Path]) -> None:
    tab = _open(opened, "index.html")
    tab.get_by_role("textbox", name="Search").fill("temperature")
    tab.keyboard.press("Enter")
    found = tab.locator("#search-results a[href^='06_distillation.html']")
    found.first.wait_for()


def test_the_family_map_leads_to_pages(opened: tuple[Page, Path]) -> None:
    tab = _open(opened, "index.html")
    tab.locator(".family-map a").filter(has_text="TinyBERT").click()
    tab.wait_for_url("**/06_distillation.html")


@pytest.mark.parametrize("name", ["index.html", *(f"{stem}.html" for stem in STEMS)])
def test_a_phone_need_not_scroll_sideways(opened: tuple[Page, Path], name: str) -> None:
    tab = _open(opened, name, width=390)
    tab.evaluate(THROUGH)
    assert set(tab.evaluate(BOXES)) <= {"yes"}
    assert tab.evaluate(SIDEWAYS) <= 0


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("index.html", "light"),
        ("index.html", "dark"),
        ("06_distillation.html", "light"),
        ("13_choosing_a_variant.html", "dark"),
        ("search.html", "light"),
        ("02_bert_mlm_nsp.html", "dark"),
        ("three_times.html", "light"),
    ],
)
def test_axe_has_no_serious_finding(opened: tuple[Page, Path], name: str, scheme: Any) -> None:
    tab = opened[0]
    tab.emulate_media(color_scheme=scheme)
    _open(opened, name)
    tab.evaluate(THROUGH)
    assert set(tab.evaluate(BOXES)) <= {"yes"}
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark")
    rules = ["color-contrast"] if scheme == "dark" else WCAG  # all else is as in the light
    assert serious_findings(tab, rules=rules) == []


def test_axe_sees_what_is_wrong(opened: tuple[Page, Path]) -> None:
    """It is the page that has no findings, not the search that finds none."""
    tab = _open(opened, "index.html")
    tab.locator("p").first.evaluate("p => { p.style.color = '#ccc'; }")
    assert "color-contrast" in serious_findings(tab, "p")[0]


# --- published --------------------------------------------------------------------------------


def test_workflow_publishes_what_make_site_builds() -> None:
    text = (ROOT / ".github/workflows/site.yml").read_text(encoding="utf-8")
    steps = yaml.safe_load(text)["jobs"]["build"]["steps"]
    assert any(step.get("run") == "make slides site" for step in steps)
    uploads = [step for step in steps if "upload-pages-artifact" in step.get("uses", "")]
    assert [step["with"]["path"] for step in uploads] == ["build/site"]
