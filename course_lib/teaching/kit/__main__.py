"""Write the instructor's kit: `python -m course_lib.teaching.kit --into build/kit` (make kit).

A folder of pages that load nothing, each with its PDF (without a Chromium: --no-pdf), and an index.
`--plan FILE` adds syllabi of your own, in the form of syllabus.toml (see plans.py)."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from course_lib.files import write_atomic

from ..exercises import all_exercises
from ..exercises.form import Exercise
from ..folders import MARK, written_whole
from ..printing import add_no_pdf, printer
from ..rooms import lectures_with
from . import bank, exam, grading
from .gift import gift, text2qti
from .pages import as_html, bullets, page, printed, table
from .plans import SESSION, Notes, Plan, all_plans, lectures, minutes, named, notes_of
from .report import STATUSES

SAMPLE_SEED = 1
SAMPLE = ("12.2", "12.4", "12.5")  # of the report that shows what grading gives
FIRST, COMMAND = "index.html", "make kit"
COLUMNS_SAY = """
`stopped_at` names the stage that was not passed, and `said` is the message the student got.
`how` says how the mistake was found: `known` is a mistake that the exercise knows by name,
`never ends` a function that did not return. `asked` lists what the answer tried and was refused."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the instructor's kit.")
    parser.add_argument("--into", type=Path, default=Path("build/kit"), help="the folder to write")
    parser.add_argument(
        "--plan", type=Path, help="a file of your own plans, like kit/syllabus.toml"
    )
    add_no_pdf(parser)
    options = parser.parse_args()
    folder = options.into
    try:
        written = build(folder, options.plan, options.pdf)
    except ValueError as error:
        raise SystemExit(str(error)) from error
    print(f"{len(written)} files; start with {folder / FIRST}")


def build(folder: Path, own: Path | None = None, pdf: bool = True) -> list[Path]:
    """Write the whole kit, in place of one that is there; returns its files.

    own: a file with plans of one's own. Raises ValueError for a faulty plan, a machine that cannot
    make PDFs, and a folder with other things in it (see `written_whole`)."""
    syllabi = all_plans(own)
    if pdf:
        printer()
    with written_whole(folder, COMMAND) as new:
        for name, text in _pages(syllabi).items():
            write_atomic(new / name, text)
        exam.write_paper(bank.draw(SAMPLE_SEED), new / "exam", pdf)
        _sample(new / "grading")
        pages = [p for p in sorted(new.glob("*.html")) if p.name != FIRST]
        reports = sorted((new / "grading" / "graded" / "reports").glob("*.html"))
        if pdf:
            printed([*pages, *reports])
        write_atomic(new / FIRST, index(new, syllabi, pdf))
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MARK)


def _pages(syllabi: Sequence[Plan]) -> dict[str, str]:
    """Every page and plain file but the index, by its name."""
    pages = {f"syllabus-{plan.id}.html": plan_page(plan) for plan in syllabi}
    pages |= {f"lecture-{n}.html": notes_page(notes_of(n)) for n in lectures()}
    pages["grading.html"] = grading_page()
    pages["bank.html"] = bank_page()
    pages["exam/bank.gift.txt"] = gift(bank.bank(), SAMPLE_SEED)
    pages["exam/bank.text2qti.txt"] = text2qti(bank.bank(), SAMPLE_SEED)
    return pages


# ---------------------------------------------------------------- syllabi and lectures


def plan_page(plan: Plan) -> str:
    sessions = [lecture for slot in plan.slots for lecture in slot.teach]
    known = "".join(f"<p>Known already: {_link(notes_of(lecture))}</p>" for lecture in plan.known)
    total = sum(slot.minutes for slot in plan.slots)
    head = (
        f"<p>{escape(plan.about)}</p><p class='small'>{len(sessions)} sessions of {SESSION} "
        f"minutes, {minutes(total)} minutes planned: slides, live demonstrations, exercises in "
        f"class. The rest of each session is for questions.</p>{known}"
    )
    rows = []
    for slot in plan.slots:
        cells = [_session(notes_of(lecture)) for lecture in slot.teach]
        cells += [f"<p>To read: {_link(notes_of(lecture))}</p>" for lecture in slot.read]
        also = f"<p><b>Also:</b> {escape(slot.also)}</p>" if slot.also else ""
        time = minutes(slot.minutes) if slot.teach else "–"
        rows.append((f"<b class='when'>{escape(slot.when)}</b>", "".join(cells) + also, time))
    body = table(("when", "lectures", "minutes"), rows, numbers=(2,))
    return page(f"Syllabus: {plan.title}", head + body)


def _link(notes: Notes) -> str:
    return f'<a href="lecture-{notes.lecture}.html">{notes.lecture}</a> {escape(notes.deck.title)}'


def _session(notes: Notes) -> str:
    return (
        f"<p><b>{_link(notes)}</b></p><ul><li>Before: {as_html(notes.prepare)}</li>"
        f"<li>In class: {escape(', '.join(e.heading for e in notes.in_class))}</li>"
        f"<li>Hand in afterwards: {escape(', '.join(named(notes.homework)))}</li></ul>"
    )


def notes_page(notes: Notes) -> str:
    deck = notes.deck
    live = sum(show.minutes for show in notes.show)
    done = sum(exercise.minutes for exercise in notes.in_class)
    clock = (
        f"<p>{minutes(deck.minutes)} for the slides (the deck's own plan), {live} for live "
        f"demonstrations, {done} for exercises in class: <b>{minutes(notes.minutes)}</b> of "
        f"{SESSION}. The rest is for questions.</p>"
    )
    needs = ", ".join(f"lecture {n}" for n in notes.needs) or "no other lecture"
    shows = table(
        ("on the page, under", "minutes", "what to do"),
        ((f"<b>{as_html(s.heading)}</b>", str(s.minutes), as_html(s.do))
         for s in notes.show), numbers=(1,),
    )  # fmt: skip
    return page(f"{notes.lecture} {deck.title}", "\n".join([
        f"<p class='small'>Needs {needs}. Page: <code>notebooks/{deck.name}.ipynb</code>; "
        f"slides: <code>make slides NB={notes.lecture}</code>.</p>",
        "<h2>Aims</h2><p>Afterwards students can</p>", bullets(_lowered(notes.aims)),
        f"<h2>Minutes</h2>{clock}",
        f"<h2>Before the session</h2><p>{as_html(notes.prepare)}</p>",
        f"<h2>Show live</h2>{shows}",
        "<h2>What goes wrong</h2>", bullets(notes.goes_wrong),
        "<h2>Exercises in class</h2>", bullets(_told(notes.in_class)),
        "<h2>To hand in afterwards</h2>", bullets(_told(notes.homework)),
    ]))  # fmt: skip


def _lowered(texts: Iterable[str]) -> list[str]:
    return [text[0].lower() + text[1:] for text in texts]


def _told(exercises: Iterable[Exercise]) -> list[str]:
    return [
        f"**{e.heading}**, {e.minutes} minutes, difficulty {e.difficulty} of 5: {e.purpose}"
        for e in exercises
    ]


# ---------------------------------------------------------------- exam bank and grading


def bank_page() -> str:
    """Every item with its key."""
    items = bank.bank()
    by_kind = {kind: sum(item.kind == kind for item in items) for kind in bank.ASKED}
    counts = ", ".join(f"{n} {kind}" for kind, n in by_kind.items())
    head = (
        f"<p>{len(items)} items ({counts}), {sum(i.points for i in items)} points. A point is "
        "about a minute. Anyone with the course can read the items and keys; see the index.</p>"
    )
    parts = [head]
    for lecture in lectures():
        own = tuple(item for item in items if item.lecture == lecture)
        parts.append(f"<h2>Lecture {lecture}</h2>")
        whole = exam.paper_page(bank.Paper(SAMPLE_SEED, (lecture,), own), with_key=True)
        sections = re.findall(r'<section class="item.*?</section>', whole, flags=re.DOTALL)
        parts += sections
    return page("The exam bank, with keys", "\n".join(parts))


def grading_page() -> str:
    about = inspect.getdoc(grading) or ""
    parts = []
    for part in about.split("\n\n"):
        plain = part.startswith("    ")
        parts.append(f"<pre>{escape(part.strip())}</pre>" if plain else f"<p>{as_html(part)}</p>")
    statuses = table(("status", "meaning"), (
        (f"<code>{name}</code>", escape(meaning)) for name, meaning in STATUSES.items()
    ))  # fmt: skip
    here = bullets(grading.protection())
    return page(
        "Grading exercises",
        "\n".join(parts) + f"<h2>On the machine that made this page</h2>{here}"
        f"<h2>What the statuses in the table mean</h2>{statuses}<p>{as_html(COLUMNS_SAY)}</p>",
    )


def _sample(folder: Path) -> None:
    """Grade one made-up student: a right answer, one with a known mistake, one left out."""
    right, wrong, left = (all_exercises()[id] for id in SAMPLE)
    source = inspect.getsource(right.solution)
    edited = wrong.source()
    for old, new in wrong.mistakes[0].replacements():  # type: ignore[union-attr]
        edited = edited.replace(old, new)
    cells = [
        "import torch\nfrom torch import Tensor\nfrom course_lib import check",
        f'{source}\n\ncheck("{right.id}", {right.solution.__name__})',
        f'{edited}\n\ncheck("{wrong.id}", {wrong.solution.__name__})',
        f'{left.stub}\n\ncheck("{left.id}", {left.name})',
    ]
    empty: dict[str, object] = {"metadata": {}, "outputs": [], "execution_count": None}
    code = [{"cell_type": "code", "source": cell, **empty} for cell in cells]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": code}
    write_atomic(folder / "submitted" / "A. Student.ipynb", json.dumps(notebook, indent=1))
    grading.grade(folder / "submitted", SAMPLE, folder / "graded", SAMPLE_SEED)


# ---------------------------------------------------------------- the index


def index(folder: Path, syllabi: Sequence[Plan], pdf: bool) -> str:
    """The page that names every file of the kit."""
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}

    def link(name: str, label: str) -> str:
        files.discard(name)
        parts = [f'<a href="{escape(name)}">{escape(label)}</a>']
        if (other := name.replace(".html", ".pdf")) in files:
            files.discard(other)
            parts.append(f'<a href="{escape(other)}">PDF</a>')
        return " · ".join(parts)

    planned = [link(f"syllabus-{plan.id}.html", plan.title) for plan in syllabi]
    notes = [
        link(f"lecture-{n}.html", f"{n} {notes_of(n).deck.title}")
        + f" <span class='small'>{minutes(notes_of(n).minutes)} minutes</span>"
        for n in lectures()
    ]
    papers = [
        link("bank.html", "The bank, with keys"),
        link("exam/paper.html", f"A sample paper (seed {SAMPLE_SEED})"),
        link("exam/key.html", "its key"),
        link("exam/paper.gift.txt", "its items for Moodle (GIFT)"),
        link("exam/paper.text2qti.txt", "its items for Canvas and others, as text2qti reads them"),
        link("exam/bank.gift.txt", "The whole bank for Moodle (GIFT)"),
        link(
            "exam/bank.text2qti.txt", "The whole bank for Canvas and others, as text2qti reads it"
        ),
    ]
    grades = [link("grading.html", "What the command does, and what it does not protect against")]
    grades += [link(name, label) for name, label in (
        *((n, "A sample report") for n in sorted(files) if "/reports/" in n and n.endswith("html")),
        ("grading/graded/totals.csv", "its table of students"),
        ("grading/graded/grades.csv", "its table of exercises"),
        *((n, "the notebook that was graded") for n in sorted(files) if n.endswith(".ipynb")),
    )]  # fmt: skip
    assert not files, f"the index names no {sorted(files)}"
    silent = [n for n in lectures_with("exercises") if n not in lectures()]
    without = f" Without notes yet: {', '.join(silent)}." if silent else ""

    def items(links: list[str]) -> str:
        return f"<ul>{''.join(f'<li>{one}</li>' for one in links)}</ul>"

    return page("BERT and its family: the instructor's kit", "\n".join([
        "" if pdf else "<p class='mark'>Made with --no-pdf, so without PDFs.</p>",
        "<h2>Syllabus</h2>", items(planned), "<h2>Each lecture</h2>", items(notes),
        "<p class='small'>Aims, minutes, what to show live, what goes wrong, exercises. The "
        "slides: <code>make slides</code>; <kbd>s</kbd> opens the notes, <kbd>b</kbd> darkens the "
        f"screen while the room guesses.{without}</p>",
        "<h2>Exam bank</h2>", items(papers),
        "<p>Draw your own paper; the same seed gives the same paper on every machine:</p>"
        "<pre>python -m course_lib.teaching.kit.exam --seed 4711 --lectures 02 03 --out exam</pre>"
        "<p class='small'>The bank is made of the course's own quizzes, questions for review and "
        "exercises, and the course is public: students can read every item and its key. A paper "
        "tests whether they understood them. For a secret question, write your own.</p>",
        "<h2>Grading</h2>", items(grades),
        "<pre>python -m course_lib.teaching.kit.grading submitted --exercises 12 --out graded</pre>"
        "<p class='small'>It guards against accidents; it is no sandbox.</p>",
    ]))  # fmt: skip


if __name__ == "__main__":
    main()
