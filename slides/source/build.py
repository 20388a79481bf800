"""Build the decks: for each a page that presents without a network, and a PDF hand-out with notes.

    python slides/source/build.py        every deck
    python slides/source/build.py 02     one
    python slides/source/build.py --no-pdf     pages only, without a browser

A deck is `slides/source/NN_name.md`: a few `key: value` lines, then slides, with a line `---`
before each. A slide starts with a heading that names its minutes, `## The input {minutes=3}`, and
ends with its notes, after a line `Notes:`. Between them stand Markdown, `$math$`, fenced code,
boxes opened by `::: columns`, `::: column`, `::: wide`, `::: narrow`, `::: note`, `::: small` and
closed by `:::` (an outer box has one colon more than what it holds), and what is computed by the
functions of `slides/source/NN_name.py`:

    {{ number:gap_closed }}           a number of the lecture's numbers.py, or an expression (see
                                           course_lib.teaching.numbers); a figure's sentence may
                                           hold it
    {{ figure:loss | What to see. }}  the plotly figure that loss() returns, with its sentence
    {{ figure:views.ladder_chart 1140 500 | What to see. }}   a chart of the lecture's views in
                                           large type, so many pixels wide and high
    {{ html:tokens }}                 the HTML that tokens() returns (a string, or a notebook view)
    {{ html:views.two_blocks 97 }}    a drawing of the lecture's views, in percent of its size
    {{ html:claims 19 | E67; E68 }}   these claims of the lecture as a table, in type of that size
    {{ html:exercises }}              a list of the lecture's exercises
    {{ code:course_lib.heads.PairHead }}   the source of that object, as it is in the library;
                                           with `| bare` after the name, without its docstrings

Numbers are never typed and nothing is trained here: functions read results, and a backward pass
raises.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import html
import importlib
import importlib.util
import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import tostring

import jinja2
import ziamath
from markdown_it import MarkdownIt
from mdit_py_plugins.container import container_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from course_lib.teaching.folders import MARK, written_whole
from course_lib.teaching.numbers import filled
from course_lib.teaching.printing import add_no_pdf, print_pages, printer
from course_lib.teaching.rooms import room

SOURCES = Path(__file__).resolve().parent
if str(SOURCES) not in sys.path:
    sys.path.append(str(SOURCES))  # for `import drawing`, whoever loads the builder
from drawing import claims_rows, exercise_list, for_a_hall, large  # noqa: E402

BUILD = SOURCES.parent / "build"
WIDTH, HEIGHT = 1280, 720  # the canvas; reveal.js scales it to the screen
FIGURE = (1120, 430)
EM = 100.0  # the size in which formulas are set, to be scaled to the text around them
HEADING = re.compile(
    r"^(#{1,2}) +(.+?)\s*\{minutes=(\d+(?:\.\d+)?)\s*(?:\.([\w-]+))?\}\s*$", re.MULTILINE
)
BLOCK = re.compile(  # what it is, its name, how large, and a sentence
    r"\{\{\s*(figure|html|code):([\w.]+)((?:\s+[\w]+)*)\s*(?:\|\s*(.+?)\s*)?\}\}"
)
BOXES = ("columns", "column", "wide", "narrow", "note", "small")


class DeckError(ValueError):
    """A source that cannot become a deck; the message says where and what to do."""


@dataclass(frozen=True)
class Slide:
    """One slide: the title as text, its minutes, a style, and two pieces of HTML."""

    title: str
    minutes: float
    style: str
    content: str
    notes: str


@dataclass(frozen=True)
class Deck:
    """A deck and the lines at its head."""

    stem: str
    about: dict[str, str]
    slides: tuple[Slide, ...]

    @property
    def minutes(self) -> float:
        return sum(slide.minutes for slide in self.slides)


def sources(prefix: str = "") -> list[Path]:
    """Deck sources in order: files named NN_something.md."""
    return sorted(SOURCES.glob(f"{prefix}*.md" if prefix else "[0-9][0-9]_*.md"))


# --- from a source to a deck ------------------------------------------------------------------


def read(path: Path) -> Deck:
    """Parse a source and compute what it shows. Raises DeckError naming the slide at fault."""
    head, *parts = re.split(
        r"^---[ \t]*$", _outside_code(path.read_text(encoding="utf-8")), flags=re.MULTILINE
    )
    about = dict(re.findall(r"^(\w+):\s*(.+?)\s*$", head, re.MULTILINE))
    if "title" not in about or not parts:
        raise DeckError(
            f"{path.name}: expected `title: …` and then slides, each after a line `---`."
        )
    shown = Shown(path)
    with _nothing_is_trained():
        return Deck(
            path.stem,
            about,
            tuple(_slide(shown, p.replace("\0", "---"), n) for n, p in enumerate(parts, 1)),
        )


def _outside_code(text: str) -> str:
    """The text with `---` inside fenced code hidden, so that only real separators remain."""
    fence = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    return fence.sub(lambda m: m.group().replace("---", "\0"), text)


def _slide(shown: Shown, part: str, number: int) -> Slide:
    where = f"{shown.path.name}, slide {number}"
    body, _, notes = part.partition("\nNotes:")
    heading = HEADING.search(body)
    if heading is None:
        raise DeckError(
            f"{where}: expected a heading with its minutes, such as `## The input {{minutes=3}}`."
        )
    if not notes.strip():
        raise DeckError(f"{where}: expected speaker notes after a line `Notes:`.")
    level, title, minutes, style = heading.groups()
    body = body.replace(heading.group(), f"{level} {title}", 1)
    try:
        content, said = shown.render(body), shown.render(notes)
    except Exception as error:
        raise DeckError(f"{where} ({title}): {error}") from error
    return Slide(re.sub(r"[*`$]", "", title), float(minutes), style or "plain", content, said)


@contextlib.contextmanager
def _nothing_is_trained() -> Iterator[None]:
    """A deck shows what results and models say; a backward pass while building is a mistake."""
    import torch

    def refuse(*_: Any, **__: Any) -> None:
        raise DeckError("something was trained while building a deck: read a result file instead.")

    saved = torch.autograd.backward
    torch.autograd.backward = refuse  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.autograd.backward = saved  # type: ignore[assignment]


class Shown:
    """Renders Markdown, and resolves placeholders with the functions of the deck's own module."""

    def __init__(self, path: Path) -> None:
        self.path, self.lecture = path, path.stem[:2]
        self.module = _module_beside(path)
        self.markdown = _markdown()
        self.figures = 0

    def render(self, text: str) -> str:
        blocks: list[str] = []

        def resolve(match: re.Match[str]) -> str:
            if "{{" in match.group()[2:]:  # only a number may stand inside, and it has gone by now
                raise DeckError(f"cannot read {match.group()}: only a number may stand in another.")
            blocks.append(self._block(*match.groups()))
            return f"BLOCK{len(blocks) - 1}END"

        text = filled(self.path.stem[:2], text)
        rendered = self.markdown.render(BLOCK.sub(resolve, text))
        if left := re.search(r"\{\{.*?\}\}", rendered):
            raise DeckError(f"cannot read {left.group()}; expected number, figure, html or code.")
        return re.sub(r"(?:<p>)?BLOCK(\d+)END(?:</p>)?", lambda m: blocks[int(m[1])], rendered)

    def _block(self, kind: str, name: str, more: str, sentence: str | None) -> str:
        if kind == "code":
            source = source_of(name)
            return highlighted(
                without_docstrings(source) if sentence == "bare" else source, "python"
            )
        if name == "claims":
            return self._claims(more, sentence or "")
        if kind == "html":
            made = self._call(name)
            if not isinstance(made, str):
                made = made.inner if name.startswith("views.") else made._repr_html_()
            return large(made, int(more) / 100) if more else made
        if not sentence:
            raise DeckError(
                f"figure {name} needs a sentence: {{{{ figure:{name} | What to see. }}}}"
            )
        self.figures += 1
        made = for_a_hall(self._call(name), *map(int, more.split())) if more else self._call(name)
        return _figure(made, f"figure-{self.figures}", sentence)

    def _claims(self, more: str, names: str) -> str:
        """claims 19 computed here | E67; E68: the size of the type, and the last column's head."""
        size, _, last = more.strip().partition(" ")
        head = {"last": last} if last else {}
        return claims_rows(self.lecture, names.split("; "), int(size), **head)

    def _call(self, name: str) -> Any:
        """What a function beside the deck gives, or, as `views.name`, one of the lecture's views;
        `exercises` is a list of them wherever no function makes another."""
        if name.startswith("views."):
            return getattr(room(self.lecture, "views"), name.removeprefix("views."))()
        function = getattr(self.module, name, None)
        if function is None and name == "exercises":
            return exercise_list(self.lecture)
        if function is None:
            raise DeckError(f"{self.path.stem}.py has no function {name}().")
        return function()


def _module_beside(path: Path) -> Any:
    file = path.with_suffix(".py")
    if not file.exists():
        return None
    spec = importlib.util.spec_from_file_location(f"deck_{path.stem}", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True, "highlight": _fenced, "typographer": False})
    parser.enable("table").use(dollarmath_plugin, double_inline=True, renderer=_math)
    for name in BOXES:
        parser.use(container_plugin, name)
    return parser


def _math(content: str, options: dict[str, Any]) -> str:
    """A formula as a drawing, alike on every machine: a browser draws MathML well only with a font
    for it."""
    formula = ziamath.Latex(content, size=EM, inline=not options["display_mode"])
    svg = formula.svgxml()
    _, top, width, height = map(float, svg.attrib["viewBox"].split())
    size = {"width": width, "height": height, "vertical-align": -top - height}
    svg.attrib |= {"style": ";".join(f"{name}:{value / EM:.3f}em" for name, value in size.items())}
    svg.attrib |= {"role": "img", "aria-label": content.strip()}
    return tostring(svg, encoding="unicode")


def _fenced(code: str, language: str, _attributes: str) -> str:
    return highlighted(code, language or "text")


def highlighted(code: str, language: str) -> str:
    """Code as HTML, coloured by the classes that `style_sheet` defines."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    inner = highlight(code, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
    return f'<pre class="code"><code>{inner}</code></pre>\n'


def source_of(name: str) -> str:
    """The source of a dotted name, such as course_lib.encoder.Block or its method."""
    module, _, rest = name.rpartition(".")
    path = [rest]
    while True:
        try:
            thing: Any = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            path.insert(0, last)
            if not module:
                raise DeckError(f"there is no {name}") from None
    for part in path:
        thing = getattr(thing, part)
    return textwrap.dedent(inspect.getsource(thing))


def without_docstrings(source: str) -> str:
    """The source with the lines of every docstring left out: a slide has room for what runs."""
    gone: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            gone |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = [line for number, line in enumerate(source.splitlines(), 1) if number not in gone]
    return re.sub(r"(:\n)\n+", r"\1", "\n".join(lines) + "\n")


def _figure(figure: Any, identifier: str, sentence: str) -> str:
    """A plotly figure as JSON beside the place where the page draws it, large enough for a hall."""
    layout = figure.layout
    figure.update_layout(
        width=min(layout.width or FIGURE[0], FIGURE[0]),
        height=min(layout.height or FIGURE[1], FIGURE[1]),
        font_size=max(layout.font.size or 0, 18),
    )
    drawn = figure.to_json().replace("</", "<\\/")
    size = f"width:{figure.layout.width}px;height:{figure.layout.height}px"
    return (
        f'<figure><div class="plotly" id="{identifier}" style="{size}" role="img" '
        f'aria-label="{html.escape(sentence)}"></div>'
        f'<script type="application/json" data-for="{identifier}">{drawn}</script>'
        f"<figcaption>{html.escape(sentence)}</figcaption></figure>\n"
    )


# --- from a deck to files ---------------------------------------------------------------------


def page(deck: Deck) -> str:
    """The deck as one HTML page beside the shared assets."""
    loader = jinja2.FileSystemLoader(SOURCES)
    template = jinja2.Environment(loader=loader, autoescape=True).get_template("deck.html.j2")
    return template.render(deck=deck, width=WIDTH, height=HEIGHT)


def style_sheet() -> str:
    from pygments.formatters import HtmlFormatter

    colours = HtmlFormatter(style="default").get_style_defs(".code")
    plain = "\n".join(line for line in str(colours).splitlines() if "background" not in line)
    return (SOURCES / "deck.css").read_text(encoding="utf-8") + plain + "\n"


def copy_assets(folder: Path) -> None:
    """reveal.js and plotly.js, taken from the installed packages that carry them."""
    reveal = _package("sphinx_revealjs") / "_static" / "revealjs"
    parts = "dist/reset.css dist/reveal.css dist/reveal.js plugin/notes/notes.js LICENSE"
    for name in parts.split():
        _copy(reveal / name, folder / "reveal" / name)
    _copy(_package("plotly") / "package_data" / "plotly.min.js", folder / "plotly.min.js")
    (folder / "deck.css").write_text(style_sheet(), encoding="utf-8")
    shutil.copy(SOURCES / "deck.js", folder / "deck.js")


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            f"{name} is not installed: `make slides` does it, or pip install -e '.[slides]'"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


SMALLEST_NOTES = 15  # pixels of 720: about 10 points where a page is as wide as A4
# Notes that do not fit on their page are set smaller; the number of the first that cannot, or 0.
FIT_NOTES = """smallest => {
    const room = document.querySelector('.pdf-page').clientHeight;
    return [...document.querySelectorAll('.speaker-notes-pdf')].findIndex(notes => {
        let size = parseFloat(getComputedStyle(notes).fontSize);
        while (notes.scrollHeight > room && size > smallest) notes.style.fontSize = `${--size}px`;
        return notes.scrollHeight > room;
    }) + 1;
}"""


def write_pdf(page_file: Path) -> list[Path]:
    """Print the deck with a page of notes after each slide."""

    def drawn(tab: Any) -> dict[str, Any]:
        tab.wait_for_function("() => window.deckDrawn")
        if too_long := tab.evaluate(FIT_NOTES, SMALLEST_NOTES):
            raise SystemExit(
                f"{page_file.name}: the notes of slide {too_long} do not fit on their page of the "
                "hand-out; shorten them, or the last page would be lost."
            )
        pages = tab.locator(".pdf-page, .speaker-notes-pdf").count()  # then an empty one follows
        return {"page_ranges": f"1-{pages}"}

    size = {"width": WIDTH, "height": HEIGHT}
    return print_pages([page_file], drawn, "?print-pdf&showNotes=separate-page", viewport=size)


def build(source: Path, folder: Path = BUILD, pdf: bool = True) -> Path:
    """Write a deck's page beside the assets that are there, and its PDF; returns the page."""
    deck = read(source)
    target = folder / f"{deck.stem}.html"
    target.write_text(page(deck), encoding="utf-8")
    print(f"{target.name}: {len(deck.slides)} slides, {deck.minutes:g} minutes", flush=True)
    target.with_suffix(".pdf").unlink(missing_ok=True)  # of an earlier state of the deck
    for printed in write_pdf(target) if pdf else []:
        print(f"{printed.name}: the hand-out with notes", flush=True)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the decks, HTML and PDF.")
    parser.add_argument("number", nargs="?", default="", help="only those whose name begins so")
    parser.add_argument("--into", type=Path, default=BUILD, help="the folder to write")
    add_no_pdf(parser)
    arguments = parser.parse_args()
    chosen = sources(arguments.number)
    if not chosen:
        names = ", ".join(path.stem for path in sources(""))
        raise SystemExit(f"no deck in {SOURCES} begins with {arguments.number!r}: {names}")
    try:
        if arguments.pdf:
            printer()
        write_decks(chosen, arguments.into, kept=bool(arguments.number), pdf=arguments.pdf)
    except (DeckError, ValueError) as error:
        raise SystemExit(str(error)) from error


def write_decks(chosen: Sequence[Path], folder: Path, *, kept: bool, pdf: bool = True) -> None:
    """Write these decks into a folder of their own, in place of the one that is there; kept: the
    decks in it stay, but for those written anew. Raises ValueError for others' files in it."""
    with written_whole(folder, "make slides") as new:
        if kept and folder.exists():
            shutil.copytree(folder, new, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MARK))
        copy_assets(new / "assets")
        for source in chosen:
            build(source, new, pdf)


if __name__ == "__main__":
    main()
