"""Which page and section of the course answers a question:

    python -m course_lib.search "how do I stop a run"

Read are the notebooks beside this package, without quizzes and questions for review, and the
README. Sections are ranked by the words that they share with the question (BM25); lecture 17 says
how well."""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from course_lib.text.documentation import plain, split_sentences
from course_lib.train.searching import BM25

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = ("Quiz", "Questions for review", "Read on")  # questions, and titles of papers
HEADING = re.compile(r"^#{1,4} +(.+)$", re.MULTILINE)
WHERE_ONE_IS = re.compile(r"^.*(?:▰|\*\*Parts\*\*|\*\*Lecture \d\d\*\*).*$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """What stands under a heading of a page, a file of notebooks/, or of the README. text: its
    Markdown."""

    page: str
    title: str
    heading: str
    text: str

    @property
    def first_sentence(self) -> str:
        """Of its prose; "" where it has none."""
        prose = (plain(part) for part in self.text.split("\n\n") if part[:1] not in "|!$<")
        first = (split_sentences(part)[0] for part in prose if re.search(r"\w.*[.:?!]", part))
        return next(first, "").replace("*", "")  # of bold words, where others are in italics

    def __str__(self) -> str:
        """Titles; file and anchor, as JupyterLab names headings; the first sentence."""
        anchor = quote(self.heading.replace(" ", "-"))
        folder = "notebooks/" if self.page.endswith(".ipynb") else ""
        where = f"{folder}{self.page}#{anchor}"
        lines = f"{self.title} · {self.heading}", where, self.first_sentence
        return "\n   ".join(lines).rstrip()


def course_sections() -> list[Section]:
    """The sections of all pages in their order, and the README's. Raises FileNotFoundError where no
    page is."""
    if not (pages := sorted(ROOT.glob("notebooks/[0-9][0-9]_*.ipynb"))):
        raise FileNotFoundError(
            f"{ROOT / 'notebooks'} has no pages: they are not part of the installed package. "
            "Run this in a checkout of the course."
        )
    files = [*pages, *ROOT.glob("README.md")]
    return [section for file in files for section in _sections_of(file)]


def _sections_of(page: Path) -> Iterator[Section]:
    """A page cut at its headings; those without a text of their own are left out."""
    whole = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(whole)["cells"] if cell["cell_type"] == "markdown"]
        whole = "\n\n".join("".join(cell["source"]) for cell in cells)
    _, *parts = HEADING.split(WHERE_ONE_IS.sub("", whole))
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        if text.strip() and heading not in LEFT_OUT:
            yield Section(page.name, parts[0], heading, text.strip())


def index_of(sections: Sequence[Section]) -> BM25:
    """Of what they are searched by: titles and text. Ids are places in the list."""
    return BM25(["\n".join((one.title, one.heading, one.text)) for one in sections])


def search(question: str, k: int = 5) -> list[Section]:
    """The k sections that share most with a question, the best first. Raises ValueError for one of
    whose words no page has any."""
    sections = course_sections()
    index = index_of(sections)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the error says
        ranking = index.search([question], k)[0] if question.strip() else {}
    if not ranking:
        raise ValueError(f"no page has a word of {question!r:.60}; expected one that pages use.")
    return [sections[int(n)] for n in ranking]


def main(arguments: Sequence[str] | None = None) -> None:
    """Find the page and section to read."""
    parser = argparse.ArgumentParser("python -m course_lib.search", description=main.__doc__)
    parser.add_argument("question", nargs="+", help="with or without quotation marks")
    parser.add_argument("-k", type=int, default=5, help="how many sections (5)")
    options = parser.parse_args(arguments)
    try:
        for rank, section in enumerate(search(" ".join(options.question), options.k), start=1):
            print(f"{rank}. {section}")
    except (ValueError, FileNotFoundError) as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
