"""The kit's pages: one template, and what is put into it. They load nothing from anywhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from .exam import LETTERS, Item, Paper, shuffled_choices
from .gift import as_html

if TYPE_CHECKING:
    from .grading import Row

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
AGAINST_HANGING = 10 * 60  # seconds for whatever the browser is waited for

STYLE = """
:root{color-scheme:light}
body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;color:#1a1a1a;
  background:#fff;max-width:860px;margin:0 auto;padding:1.2em 1.4em 3em}
h1{font-size:1.7em;line-height:1.2;margin:.4em 0}
h2{font-size:1.25em;margin:1.6em 0 .4em;border-bottom:1px solid #bbb;padding-bottom:.15em}
h3{font-size:1.05em;margin:1.2em 0 .3em}
p{margin:.4em 0}ul,ol{margin:.3em 0;padding-left:1.5em}
a{color:#00558a}
code{background:#f0f0f0;padding:0 .2em;font-size:.9em}
pre{background:#f6f6f6;padding:.5em .7em;font-size:.82em;line-height:1.35;white-space:pre-wrap;
  overflow-wrap:anywhere}
pre code{background:none;padding:0}
table.stages{width:auto}table.stages td{padding-right:1.5em}
.when{white-space:nowrap}
table{border-collapse:collapse;width:100%;margin:.5em 0}
th,td{text-align:left;vertical-align:top;padding:.3em .6em .3em 0;border-bottom:1px solid #ddd}
th{border-bottom:2px solid #888}
td.n,th.n{text-align:right;white-space:nowrap}
.small{font-size:.9em;color:#444}
.item{margin:1.1em 0;break-inside:avoid-page}
.item.code{break-inside:auto}
.points{float:right;color:#444;font-size:.9em;margin-left:1em;white-space:nowrap}
ol.choices{list-style:none;padding:0;margin:.4em 0}
ol.choices li{margin:.25em 0;padding-left:3.2em;text-indent:-3.2em}
ol.choices .box{display:inline-block;width:1.7em;text-indent:0}
ol.choices .letter{display:inline-block;width:1.5em;text-indent:0}
.line{border-bottom:1px solid #999;height:1.9em}
.room{border:1px solid #999;height:15em;margin:.4em 0}
.key{border-left:4px solid #00664a;padding-left:.8em;margin:.3em 0}
.who td{border:1px solid #999;padding:.5em .7em}
.mark{border-left:4px solid #a03c00;padding-left:.8em}
@page{size:A4;margin:18mm 16mm}
@media print{body{max-width:none;padding:0;font-size:11pt}h2,h3{break-after:avoid}}
"""


def page(title: str, body: str) -> str:
    """The template: every page of the kit is this."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><main>\n<h1>{escape(title)}</h1>\n{body}\n</main></body></html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of HTML cells. numbers: the columns that stand at the right."""
    of = {n: ' class="n"' for n in numbers}
    top = "".join(f"<th{of.get(n, '')}>{cell}</th>" for n, cell in enumerate(head))
    body = (
        "".join(f"<td{of.get(n, '')}>{cell}</td>" for n, cell in enumerate(row)) for row in rows
    )
    lines = "\n".join(f"<tr>{cells}</tr>" for cells in body)
    return f"<table><thead><tr>{top}</tr></thead><tbody>\n{lines}\n</tbody></table>"


def bullets(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{as_html(text)}</li>' for text in texts)}</ul>"


# ---------------------------------------------------------------- a paper and its key


HEADINGS = {
    "choice": "Choose: one answer is right",
    "open": "Answer in one to four sentences",
    "code": "Write the function",
}
LINES = 5  # to write on, for an open question


def paper_page(paper: Paper, with_key: bool = False) -> str:
    """A paper to print, or its key: the same items, with what is right."""
    title = f"BERT and its family: {'key' if with_key else 'exam'}"
    parts = [_head(paper, with_key)]
    number = 0
    for kind, heading in HEADINGS.items():
        items = [item for item in paper.items if item.kind == kind]
        if items:
            parts.append(f"<h2>{heading}</h2>")
        for item in items:
            number += 1
            parts.append(_item(item, number, paper.seed, with_key))
    return page(title, "\n".join(parts))


def _head(paper: Paper, with_key: bool) -> str:
    said = (
        f'<p class="small">Paper {paper.seed} · lectures {", ".join(paper.lectures)} · '
        f"{len(paper.items)} items · {paper.points} points, about as many minutes</p>"
    )
    if with_key:
        return f"{said}<p class='small'>Names of items are those of the exam bank.</p>"
    return (
        f'{said}<table class="who"><tr><td>Name</td><td style="width:55%"></td><td>Points</td>'
        f'<td style="width:15%">of {paper.points}</td></tr></table>'
    )


def _item(item: Item, number: int, seed: int, with_key: bool) -> str:
    points = (
        f'<span class="points">{item.points} points{f" · {item.id}" if with_key else ""}</span>'
    )
    head = f"<b>{number}.</b> " + (f"<b>{escape(item.title)}</b> " if item.title else "")
    text = as_html(item.text)
    if text.startswith(("<p>", "<ul>", "<pre>")):
        text = f"<p>{head}</p>{text}"
    else:
        text = f"<p>{head}{text}</p>"
    parts = [points, text]
    if item.kind == "choice":
        parts.append(_choices(item, seed, with_key))
    elif with_key:
        parts.append(f'<div class="key">{as_html(item.key)}</div>')
    elif item.kind == "open":
        parts.append('<div class="line"></div>' * LINES)
    else:
        parts.append(f"<pre>{escape(item.stub)}</pre><div class='room'></div>")
    return f'<section class="item {item.kind}">{"".join(parts)}</section>'


def _choices(item: Item, seed: int, with_key: bool) -> str:
    rows = []
    for letter, choice in zip(LETTERS, shuffled_choices(item, seed), strict=False):
        box = "☒" if with_key and choice.correct else "☐"
        text = as_html(choice.text)
        if with_key and choice.correct:
            text = f"<b>{text}</b><br><span class='small'>{as_html(choice.why)}</span>"
        rows.append(
            f'<li><span class="box">{box}</span><span class="letter">{letter})</span>{text}</li>'
        )
    return f'<ol class="choices">{"".join(rows)}</ol>'


# ---------------------------------------------------------------- a student's report


SIGNS = {True: "✓ passed", False: "✗ stopped here", None: "– not reached"}


def report_page(student: str, rows: Sequence[Row]) -> str:
    """What came of a student's answers, for her to read: no seeds, no inputs to come."""
    points = sum(row.points for row in rows)
    total = sum({row.exercise: row.of for row in rows}.values())
    head = table(
        ("exercise", "result", "stages", "points"),
        ((escape(row.exercise or row.notebook), escape(row.status),
          f"{row.stages_passed} of {row.stages}", f"{row.points:g} of {row.of}") for row in rows),
        numbers=(2, 3),
    )  # fmt: skip
    said = (
        '<p class="small">Points are in proportion to the stages passed, and a proposal: a person '
        "gives the grade. Each answer was run in a process of its own, on inputs drawn for this "
        "grading. That keeps accidents apart; it is no sandbox.</p>"
    )
    answers = "\n".join(_answer(row) for row in rows)
    return page(f"Report: {student}", f"<p>{points:g} of {total} points.</p>{head}{said}{answers}")


def _answer(row: Row) -> str:
    from ..exercises import all_exercises
    from .grading import STATUSES as meanings

    exercise = all_exercises().get(row.exercise)
    heading = exercise.heading if exercise else row.notebook
    stages = "".join(
        f"<tr><td style='white-space:nowrap'>{SIGNS[passed]}</td><td>{as_html(name)}</td></tr>"
        for name, passed in row.passed
    )
    lines = "<br>".join(as_html(line) for line in row.said.splitlines() if line.strip())
    said = f'<div class="mark">{lines}</div>' if lines and row.status != "passed" else ""
    asked = f"<p>Refused to this answer: {escape(row.asked)}.</p>" if row.asked else ""
    place = f' <span class="small">{escape(row.notebook)}</span>' if row.notebook else ""
    return (
        f"<h2>{escape(heading)} <span class='small'>{escape(row.status)}: "
        f"{escape(meanings[row.status])}</span></h2>{place}"
        f"<table class='stages'>{stages}</table>{said}{asked}"
    )


# ---------------------------------------------------------------- pages to PDF


def printed(pages: Sequence[Path]) -> list[Path]:
    """Each page printed beside it, by a Chromium; where none is found, [] and a line says so."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        print("NO PDF: no Chromium found to print with; the pages are complete", file=sys.stderr)
        return []
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("NO PDF: playwright is not installed (`make kit` does it)", file=sys.stderr)
        return []
    written = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu"],
            timeout=AGAINST_HANGING * 1000,
        )  # fmt: skip
        tab = browser.new_page()
        for path in pages:
            target, partial = path.with_suffix(".pdf"), path.with_suffix(".partial")
            tab.goto(path.resolve().as_uri())
            tab.pdf(path=partial, prefer_css_page_size=True, print_background=True)
            partial.replace(target)
            written.append(target)
        browser.close()
    return written
