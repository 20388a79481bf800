"""The decks, built anew: complete, presenting without a network, nothing cut off, and printed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from axe import serious_findings
from lab import offline_context, take_picture
from playwright.sync_api import Browser, Page

from course_lib.doctor import BROWSERS, program
from course_lib.teaching.folders import MARK

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "slides" / "source").glob("[0-9][0-9]_*.md"))
CDN = re.compile(r"cdn\.|cdnjs|jsdelivr|unpkg\.com|googleapis|gstatic|esm\.sh|@import")
ROOM = 712  # of the canvas's 720 pixels; the footer has its own place, checked below
CUT_OFF = """room => {
  const slide = Reveal.getCurrentSlide(), scale = Reveal.getScale();
  const frame = slide.getBoundingClientRect();
  const below = e => (e.getBoundingClientRect().bottom - frame.top) / scale;
  const foot = (slide.querySelector('footer').getBoundingClientRect().top - frame.top) / scale;
  const content = slide.querySelector('.content');
  const end = Math.max(below(content), content.scrollHeight);
  if (end > Math.min(room, foot + 1)) return `content ends at ${end}, the footer starts at ${foot}`;
  const boxes = 'pre, table, figure, .column, .wide, .narrow, p, li';
  for (const e of content.querySelectorAll(boxes))
    if (e.scrollWidth > e.clientWidth + 2 && e.clientWidth)
      return `${e.tagName}: ${e.scrollWidth} wide in ${e.clientWidth}: ${e.innerText.slice(0, 60)}`;
  for (const e of content.querySelectorAll('*'))
    if (e.getBoundingClientRect().right > frame.right + 1) return `${e.tagName} leaves the slide`;
  return null; }"""
ALONE = """.slides > section:not(.present), .backgrounds, .controls, .progress
  { display: none !important }"""
RAW_TEX = r"""[...document.querySelectorAll('.content')]
  .filter(e => /\\\(|\\\[|\$\$/.test(e.innerText)).map(e => e.innerText)"""


@pytest.fixture(scope="module", params=SOURCES, ids=lambda path: path.stem)
def source(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, deck_builder: ModuleType) -> Path:
    """Where this process builds decks: their assets are the same, and large."""
    folder = tmp_path_factory.mktemp("decks")
    deck_builder.copy_assets(folder / "assets")
    return folder


@pytest.fixture(scope="module")
def page(source: Path, folder: Path, deck_builder: ModuleType) -> Path:
    """The deck built as `make slides` does it: the page, and beside it assets and hand-out."""
    return deck_builder.build(source, folder, pdf=program(BROWSERS) is not None)


def test_decks_are_written_beside_others_of_ours_and_over_nobodys_files(
    deck_builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deck_builder, "build", lambda path, to, pdf: (to / path.name).touch())
    monkeypatch.setattr(deck_builder, "copy_assets", lambda to: None)
    folder = tmp_path / "decks"
    for name, kept in (("01", False), ("02", True)):
        deck_builder.write_decks([Path(name)], folder, kept=kept)
    assert {path.name for path in folder.iterdir()} == {MARK, "01", "02"}
    (folder / "thesis.txt").write_text("mine", encoding="utf-8")
    for kept in (False, True):
        with pytest.raises(ValueError, match=r"holds thesis\.txt, which make slides did not write"):
            deck_builder.write_decks([Path("03")], folder, kept=kept)
    assert {path.name for path in folder.iterdir()} == {MARK, "01", "02", "thesis.txt"}
    (folder / "thesis.txt").unlink()
    deck_builder.write_decks([Path("03")], folder, kept=False)
    assert {path.name for path in folder.iterdir()} == {MARK, "03"}


def test_the_command_builds_what_it_is_told(
    deck_builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deck_builder, "build", lambda path, to, pdf: (to / path.name).touch())
    monkeypatch.setattr(deck_builder, "copy_assets", lambda to: to.mkdir())
    call = ["build.py", "--no-pdf", "--into", str(tmp_path / "decks")]
    monkeypatch.setattr(sys, "argv", [*call, "02"])
    deck_builder.main()
    assert {p.name for p in (tmp_path / "decks").iterdir()} == {
        MARK, "02_bert_mlm_nsp.md", "assets"
    }  # fmt: skip
    monkeypatch.setattr(sys, "argv", [*call, "99"])
    with pytest.raises(SystemExit, match="begins with '99'"):
        deck_builder.main()


class Sections(HTMLParser):
    """The minutes, the notes and the headings of a page's slides."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.minutes: list[float] = []
        self.notes: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self.minutes.append(float(dict(attributes)["data-minutes"] or "nan"))
        if tag == "aside":
            self.inside = True
            self.notes.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "aside"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.notes[-1] += data


def test_lecture_02_has_a_deck() -> None:
    assert "02_bert_mlm_nsp" in {source.stem for source in SOURCES}


def test_length_notes_and_minute_plan(page: Path) -> None:
    found = Sections(page.read_text(encoding="utf-8"))
    assert 12 <= len(found.minutes) <= 20
    assert len(found.notes) == len(found.minutes)
    assert all(len(re.sub(r"[\d.]+ min", "", notes).split()) >= 8 for notes in found.notes)
    assert all(0.5 <= minutes <= 15 for minutes in found.minutes)
    plan = re.search(r"Minute plan: ([\d.]+) minutes in all", found.notes[0])
    assert plan and float(plan[1]) == pytest.approx(sum(found.minutes))


def test_nothing_comes_from_a_network(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert CDN.findall(text) == []
    assert CDN.findall((page.parent / "assets" / "deck.css").read_text(encoding="utf-8")) == []
    loaded = re.findall(r'(?:src|href)="([^"#][^"]*)"', text)
    for address in (a.split("?")[0] for a in loaded if not a.startswith(("http", "data:"))):
        assert (page.parent / address).is_file(), address
    assert not re.findall(r'(?:src|<link[^>]*href)="(https?:[^"]*)"', text)


@pytest.fixture(scope="module")
def shown(browser: Browser, page: Path) -> Iterator[tuple[Page, list[str]]]:
    """The deck opened as a file, with no network, and the errors that its scripts raised."""
    with offline_context(browser) as (context, asked):
        tab = context.new_page()
        tab.set_viewport_size({"width": 1280, "height": 720})
        said: list[str] = []
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.goto(page.as_uri())
        tab.wait_for_function("() => window.deckDrawn")
        yield tab, said
        assert asked == [], "the deck asked for these"


def go_to(tab: Page, number: int) -> None:
    tab.evaluate("n => Reveal.slide(n)", number)
    tab.wait_for_function("n => Reveal.getIndices().h === n", arg=number)


@pytest.fixture(scope="module")
def walked(source: Path, shown: tuple[Page, list[str]]) -> tuple[list[str], list[str]]:
    """What is cut off, and what axe finds, slide by slide. axe sees each slide by itself: whether
    what lies on others can be read, it does not decide."""
    tab, _ = shown
    alone = tab.add_style_tag(content=ALONE)
    wrong, found = [], []
    for number in range(tab.evaluate("Reveal.getTotalSlides()")):
        alone.evaluate("style => { style.disabled = true; }")
        go_to(tab, number)
        take_picture(tab, f"deck-{source.stem}-{number + 1:02d}")
        if problem := tab.evaluate(CUT_OFF, ROOM):
            wrong.append(f"slide {number + 1}: {problem}")
        alone.evaluate("style => { style.disabled = false; }")
        found += [f"slide {number + 1}: {it}" for it in serious_findings(tab, "section.present")]
    alone.evaluate("style => style.remove()")
    return wrong, found


def test_nothing_is_cut_off(walked: tuple[list[str], list[str]]) -> None:
    """Each slide's content ends above its footer, and no line of code or table leaves its box."""
    assert walked[0] == []


def test_axe_has_no_serious_finding(walked: tuple[list[str], list[str]]) -> None:
    assert walked[1] == []


def test_formulas_and_figures_are_drawn(shown: tuple[Page, list[str]]) -> None:
    tab, errors = shown
    assert errors == []
    assert tab.evaluate(RAW_TEX) == [], "TeX stands on a slide"
    for place in tab.locator(".plotly").all():
        assert place.locator(".main-svg").count(), "a figure is not drawn"


def test_speaker_window_shows_the_notes(shown: tuple[Page, list[str]]) -> None:
    tab, _ = shown
    go_to(tab, 0)
    with tab.context.expect_page() as opened:
        tab.keyboard.press("s")
    speaker = opened.value
    speaker.wait_for_function("() => /Minute plan/.test(document.body.innerText)")
    speaker.close()


def test_the_handout_has_every_slide_and_its_notes(page: Path, chromium: str) -> None:
    pdf = page.with_suffix(".pdf").read_bytes()
    slides = len(Sections(page.read_text(encoding="utf-8")).minutes)
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2 * slides


# --- the builder itself -----------------------------------------------------------------------

GOOD = """title: A trial

---

## One {minutes=2}

$x^2$ and {{ number:1 + 2 }}

Notes:

Say it with {{ number:1 + 2 }}.
"""


def read(deck_builder: ModuleType, folder: Path, text: str, module: str = "three = str\n"):
    (folder / "99_trial.md").write_text(text)
    (folder / "99_trial.py").write_text(module)
    return deck_builder.read(folder / "99_trial.md")


@pytest.mark.parametrize(("words", "fit"), [(800, True), (4000, False)])
def test_long_notes_are_set_smaller_until_they_fit_on_their_page(
    deck_builder: ModuleType, tmp_path: Path, chromium: str, words: int, fit: bool
) -> None:
    """Else the hand-out, which ends after as many pages as there should be, loses its last ones."""
    read(deck_builder, tmp_path, GOOD.replace("Say it", " ".join(["Say it"] * (words // 2))))
    deck_builder.copy_assets(tmp_path / "assets")
    if not fit:
        with pytest.raises(SystemExit, match="the notes of slide 1 do not fit on their page"):
            deck_builder.build(tmp_path / "99_trial.md", tmp_path)
        return
    page = deck_builder.build(tmp_path / "99_trial.md", tmp_path)
    tab_size = {"width": deck_builder.WIDTH, "height": deck_builder.HEIGHT}
    pages = []

    def drawn(tab: Any) -> dict[str, Any]:
        tab.wait_for_function("() => window.deckDrawn")
        height = "() => document.querySelector('.speaker-notes-pdf').scrollHeight"
        assert tab.evaluate(height) > 1.2 * deck_builder.HEIGHT
        assert tab.evaluate(deck_builder.FIT_NOTES, deck_builder.SMALLEST_NOTES) == 0
        pages.append(tab.locator(".pdf-page, .speaker-notes-pdf").count())
        return {}

    query = "?print-pdf&showNotes=separate-page"
    [pdf] = deck_builder.print_pages([page], drawn, query, viewport=tab_size)
    printed = len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))
    assert [printed] == [count + 1 for count in pages]  # and an empty one


def test_placeholders_are_resolved(deck_builder: ModuleType, tmp_path: Path) -> None:
    deck = read(deck_builder, tmp_path, GOOD)
    assert deck.slides[0].content.count("and 3") == 1
    assert '<span class="math inline"><svg' in deck.slides[0].content
    assert "Say it with 3." in deck.slides[0].notes
    assert deck.minutes == 2


def test_a_figures_sentence_can_hold_numbers(deck_builder: ModuleType, tmp_path: Path) -> None:
    module = "from plotly.graph_objects import Figure as drawn\n"
    drawn = "{{ figure:drawn | There are {{ number:1 + 2 }}, {{number:1 + 2}}. }}"
    deck = read(deck_builder, tmp_path, GOOD.replace("$x^2$ and {{ number:1 + 2 }}", drawn), module)
    assert "<figcaption>There are 3, 3.</figcaption></figure>" in deck.slides[0].content
    assert 'aria-label="There are 3, 3."' in deck.slides[0].content


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" {minutes=2}", "", "heading with its minutes"),
        ("Notes:", "", "speaker notes"),
        ("number:1 + 2", "number:four", "asks for number 'four'"),
        ("{{ number:1 + 2 }}\n\nNotes", "{{ figure:three }}\n\nNotes", "needs a sentence"),
        (
            "{{ number:1 + 2 }}\n\nNotes",
            "{{ figure:x | Of {{ three }}. }}\n\nNotes",
            "only a number",
        ),
        ("title:", "name:", "expected `title"),
    ],
)
def test_a_faulty_source_is_named(
    old: str, new: str, message: str, deck_builder: ModuleType, tmp_path: Path
) -> None:
    assert old in GOOD
    with pytest.raises(deck_builder.DeckError, match=message):
        read(deck_builder, tmp_path, GOOD.replace(old, new))


def test_training_while_building_is_refused(deck_builder: ModuleType, tmp_path: Path) -> None:
    trains = (
        "import torch\ndef three():\n"
        "    x = torch.ones(1, requires_grad=True)\n    x.sum().backward()\n    return '3'\n"
    )
    shown = GOOD.replace("$x^2$ and {{ number:1 + 2 }}", "{{ html:three }}")
    with pytest.raises(deck_builder.DeckError, match="trained"):
        read(deck_builder, tmp_path, shown, trains)
