"""A paper drawn from the exam bank by seed, and its key.

    python -m course_lib.teaching.kit.exam --seed 4711 --lectures 02 03 04 --out exam

writes a paper, its key, and its items for learning platforms, the same for the same seed, on
every machine: `paper.gift.txt` for Moodle, and `paper.text2qti.txt`, of which the program text2qti
makes QTI, for Canvas and others, with the printed paper's questions, order, choices, points and
key. Anyone with the course can read every item and its key; a paper tests whether students
understood them, not whether they were kept secret."""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path

from course_lib.files import write_atomic

from ..folders import written_whole
from ..printing import add_no_pdf, printer
from .bank import ASKED, LETTERS, Item, Paper, draw, shuffled_choices
from .gift import gift, text2qti
from .pages import as_html, page, printed

HEADINGS = {
    "choice": "Choose: one answer is correct",
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
    heading = (
        f'<p class="small">Paper {paper.name} · lectures {", ".join(paper.lectures)} · '
        f"{len(paper.items)} items · {paper.points} points, about as many minutes</p>"
    )
    if with_key:
        return (
            f"{heading}<p class='small'>Drawn with seed {paper.seed}. The items have their names "
            "from the exam bank.</p>"
        )
    return (
        f'{heading}<table class="who"><tr><td>Name</td><td style="width:55%"></td><td>Points</td>'
        f'<td style="width:15%">of {paper.points}</td></tr></table>'
    )


def _item(item: Item, number: int, seed: int, with_key: bool) -> str:
    place = item.id if with_key else f"lecture {item.lecture}"
    points = f'<span class="points">{place} · {item.points} points</span>'
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


# ---------------------------------------------------------------- the command


def write_paper(paper: Paper, folder: Path, pdf: bool = True) -> list[Path]:
    """Write paper and key as pages and PDF, and the items as GIFT and for text2qti."""
    title = f"BERT and its family: exam, paper {paper.name}"
    written = [
        write_atomic(folder / "paper.html", paper_page(paper)),
        write_atomic(folder / "key.html", paper_page(paper, with_key=True)),
        write_atomic(folder / "paper.gift.txt", gift(paper.items, paper.seed)),
        write_atomic(folder / "paper.text2qti.txt", text2qti(paper.items, paper.seed, title)),
    ]
    return written + (printed(written[:2]) if pdf else [])


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw a paper and its key from the exam bank.")
    parser.add_argument("--seed", type=int, required=True, help="the same seed, the same paper")
    parser.add_argument(
        "--lectures", nargs="*", default=[], help="two digits each; all if left out"
    )
    for kind, number in ASKED.items():
        parser.add_argument(f"--{kind}", type=int, default=number, help=f"items ({number})")
    parser.add_argument("--out", type=Path, default=Path("exam"), help="the folder to write")
    add_no_pdf(parser)
    options = parser.parse_args()
    try:
        if options.pdf:
            printer()
        paper = draw(
            options.seed, options.lectures, {kind: getattr(options, kind) for kind in ASKED}
        )
        with written_whole(options.out, "the exam's command") as new:
            names = [path.name for path in write_paper(paper, new, options.pdf)]
    except ValueError as error:
        raise SystemExit(str(error)) from error
    for name in names:
        print(options.out / name)
    print(f"{len(paper.items)} items, {paper.points} points")


if __name__ == "__main__":
    main()
