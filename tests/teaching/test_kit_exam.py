"""The exam bank: its items and keys; papers drawn by seed; what learning platforms are given."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import load
from gift_parts import read

from course_lib.teaching import printing
from course_lib.teaching.exercises import all_exercises
from course_lib.teaching.exercises.form import compiled
from course_lib.teaching.exercises.machinery import check_answer
from course_lib.teaching.kit import __main__ as kit
from course_lib.teaching.kit import bank, exam
from course_lib.teaching.kit.bank import Item
from course_lib.teaching.kit.gift import gift, gift_item, text2qti
from course_lib.teaching.kit.pages import as_html
from course_lib.teaching.quizzes import Choice

LECTURES = sorted({item.lecture for item in bank.bank()})
SEED = 4711
SLIDES = Path(__file__).resolve().parents[2] / "slides" / "source" / "build.py"


def test_the_bank_is_large_and_every_item_has_a_key() -> None:
    items = bank.bank()
    assert len(items) >= 120 and len({item.id for item in items}) == len(items)
    kinds: Counter[tuple[str, str]] = Counter((item.lecture, item.kind) for item in items)
    assert all(kinds[lecture, kind] >= 5 for lecture in LECTURES for kind in bank.ASKED)
    for item in items:
        right = [choice.correct for choice in item.choices]
        assert item.points > 0 and item.text
        assert (0 < sum(right) < len(right)) if item.kind == "choice" else item.key


@pytest.mark.parametrize("lecture", LECTURES)
def test_the_key_of_code_passes_the_exercises_own_check(lecture: str) -> None:
    item = next(item for item in bank.bank() if (item.lecture, item.kind) == (lecture, "code"))
    exercise = all_exercises()[item.id.replace("x", "")]
    code = re.fullmatch(r"```\n(.*)\n```", item.key, re.DOTALL)
    assert code and item.stub == exercise.stub
    assert check_answer(exercise, compiled(code[1], exercise.solution), 3).status == "passed"


# ---------------------------------------------------------------- drawing


def test_a_paper_is_balanced_over_its_lectures() -> None:
    for seed in range(5):
        paper = bank.draw(seed, LECTURES[:5])
        assert Counter(item.kind for item in paper.items) == Counter(bank.ASKED)
        of = Counter(item.lecture for item in paper.items)
        assert set(of) == set(LECTURES[:5]) and max(of.values()) - min(of.values()) <= 1
        assert paper.points == sum(item.points for item in paper.items)
        assert len({item.id for item in paper.items}) == len(paper.items)


def test_no_question_on_paper_is_about_a_table_that_nobody_sees() -> None:
    left_out = {item.id for item in bank.bank() if not item.for_paper}
    assert {"07.r8", "03.r4", "03.r5", "03.r12"} <= left_out and len(left_out) < 20
    drawn = bank.draw(SEED, ["07"], {"open": 9}).items
    assert len(drawn) == 9 and not left_out & {item.id for item in drawn}


def test_the_same_seed_gives_the_same_paper_in_another_process() -> None:
    code = (
        "from course_lib.teaching.kit import bank, exam, gift; "
        f"p = bank.draw({SEED}, ['12', '03']); "
        "print(exam.paper_page(p), gift.gift(p.items, p.seed))"
    )
    env = os.environ | {"PYTHONHASHSEED": "12", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True, env=env
    )
    paper = bank.draw(SEED, ["03", "12"])
    assert done.stdout == f"{exam.paper_page(paper)} {gift(paper.items, SEED)}\n"


def test_the_order_is_that_of_a_published_hash_not_of_a_generator() -> None:
    known = "681ebd31f1942012739312a095442ff5c473d0896902e122a989b3b7f9fadc9f"
    assert bank.by_hash(7, "a") == known  # printf 7/a | sha256sum


def test_other_seeds_give_other_papers_and_other_places_of_the_right_choice() -> None:
    assert bank.draw(1).items != bank.draw(2).items
    items = [item for item in bank.bank() if item.kind == "choice"]
    places = Counter(
        [choice.correct for choice in bank.shuffled_choices(item, SEED)].index(True)
        for item in items
    )
    assert all(places[n] > len(items) / 5 for n in range(3))
    moved = [bank.shuffled_choices(item, 1) != bank.shuffled_choices(item, 2) for item in items]
    assert sum(moved) > len(items) / 2


@pytest.mark.parametrize(
    ("lectures", "counts", "message"),
    [
        (["99"], None, "lectures with items: 01"),
        (["12"], {"choice": 1000}, "1000 items of type 'choice'"),
        ([], {"essay": 1}, "expected numbers, at least 0, of choice"),
        ([], {"open": -1}, "asked for -1 of 'open'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    lectures: list[str], counts: dict[str, int] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        bank.draw(0, lectures, counts)


# ---------------------------------------------------------------- pages


class Words(HTMLParser):
    """What a page says, without its marks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data


def words_of(html: str) -> str:
    return " ".join(Words(html).text.split())


def test_a_paper_asks_everything_and_gives_nothing_away() -> None:
    paper = bank.draw(SEED)
    blank, key = exam.paper_page(paper), exam.paper_page(paper, with_key=True)
    for item in paper.items:
        for page in (blank, key):
            assert words_of(as_html(item.text)) in words_of(page)
        answers = [choice.why for choice in item.choices if choice.correct] + [item.key]
        for answer in filter(None, answers):
            assert words_of(as_html(answer)) in words_of(key)
            assert words_of(as_html(answer)) not in words_of(blank)
    assert "☒" not in blank and key.count("☒") == sum(i.kind == "choice" for i in paper.items)
    assert str(SEED) not in blank and paper.name in blank and paper.name in key
    assert f"of {paper.points}" in blank and not re.search(r'(?:src|href)="', blank)


def test_a_paper_is_printed_also_in_a_notebook(tmp_path: Path, chromium: str) -> None:
    async def cell() -> list[Path]:  # a kernel runs cells inside its event loop
        return exam.write_paper(bank.draw(SEED, ["12"]), tmp_path)

    with ThreadPoolExecutor(1) as thread:  # in this one a browser test's loop may run
        written = thread.submit(lambda: asyncio.run(cell())).result()
    assert sorted(path.name for path in written) == [
        "key.html", "key.pdf", "paper.gift.txt", "paper.html", "paper.pdf", "paper.text2qti.txt",
    ]  # fmt: skip
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")


COMMANDS = {
    "exam": (exam, ["--seed", "1", "--lectures", "12", "--out"]),
    "kit": (kit, ["--into"]),
    "slides": (load(SLIDES), ["02", "--into"]),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("missing", ["browser", "playwright"])
def test_who_cannot_print_is_told_what_to_install_and_nothing_is_written(
    name: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "browser":
        monkeypatch.setattr(printing, "BROWSERS", ("no-such-browser",))
    else:
        monkeypatch.setattr(printing, "program", lambda names: sys.executable)
        monkeypatch.setattr(printing, "find_spec", lambda name: None)
    module, options = COMMANDS[name]
    monkeypatch.setattr(sys, "argv", [name, *options, str(tmp_path / "out")])
    command = "pip install playwright" if missing == "playwright" else "sudo|brew|winget"
    with pytest.raises(SystemExit, match=f"Install with `.*({command}).*--no-pdf") as ended:
        module.main()
    assert "\n" not in str(ended.value) and not list(tmp_path.iterdir())


def test_a_browser_that_does_not_start_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printing, "program", lambda names: "/bin/false")
    with pytest.raises(printing.NoPrinter, match="/bin/false is installed but does not start"):
        exam.write_paper(bank.draw(SEED, ["12"]), tmp_path)


def test_without_pdfs_no_browser_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "BROWSERS", ("no-such-browser",))
    monkeypatch.setattr(
        sys, "argv", ["exam", "--seed", "1", "--no-pdf", "--out", str(tmp_path / "out")]
    )
    exam.main()
    assert {p.suffix for p in (tmp_path / "out").iterdir() if p.stem[0] != "."} == {".html", ".txt"}


# ---------------------------------------------------------------- for learning platforms

NASTY = "::a\\b {=~#} `x_1 = {y: 2}` *so*\n\n1 < 2 & \\n // $CATEGORY: ####"


def test_gift_says_every_item_of_the_bank_back() -> None:
    categories, items = read(gift(bank.bank(), SEED))
    assert len(categories) == len(LECTURES) and len(items) == len(bank.bank())
    for item, entry in zip(bank.bank(), items, strict=True):
        assert (entry.name, entry.text) == (item.id, as_html(item.question))
        choices = bank.shuffled_choices(item, SEED)
        assert entry.answers == [
            (100.0 * c.correct, as_html(c.text), as_html(c.why)) for c in choices
        ]
        assert entry.general == (as_html(item.key) if item.key else "")


def test_gift_keeps_its_own_signs_apart_from_the_texts() -> None:
    choices = (Choice(NASTY, True, NASTY), Choice("%50% b", False, ""), Choice("c\n\nd", True, "="))
    item = replace(bank.bank()[0], text=NASTY, choices=choices)
    (entry,) = read(gift_item(item, 1))[1]
    assert entry.text == as_html(NASTY)
    by_text = {text: (percent, why) for percent, text, why in entry.answers}
    assert by_text[as_html(NASTY)] == (50.0, as_html(NASTY))
    assert by_text["%50% b"] == (-100.0, "")
    assert by_text["<p>c</p><p>d</p>"] == (50.0, "=")
    (entry,) = read(gift_item(replace(item, choices=choices[:2]), 1))[1]
    assert sorted(entry.answers) == [(0.0, "%50% b", ""), (100.0, as_html(NASTY), as_html(NASTY))]


def test_what_text2qti_reads_has_a_line_for_each_thing() -> None:
    text = text2qti(bank.bank(), SEED)
    assert items_match(text, bank.bank(), SEED)


def items_match(text: str, items: Sequence[Item], seed: int) -> bool:
    """Whether a text for text2qti has these items in this order, each with its points, its choices
    in the seed's order, and its key."""
    blocks = text.strip().split("\n\n")[1:]
    assert len(blocks) == len(items)
    for item, block in zip(items, blocks, strict=True):
        title, points, question, *rest = block.splitlines()
        assert (title, points) == (f"Title: {item.id}", f"Points: {item.points}")
        assert re.match(r"\d+\.  <(p|div)>.*</(p|div|pre)>$", question)
        starred = [line for line in rest if line.startswith("*")]
        assert len(starred) == sum(choice.correct for choice in item.choices)
        assert item.choices or rest[-1] == "____"
        lines = [html for line in rest if (html := re.sub(r"^\S+\s+<(p|div)>", "", line)) != line]
        choices = bank.shuffled_choices(item, seed)
        keys = [x for choice in choices for x in (choice.text, choice.why) if x] or [item.key]
        expected = [as_html(x).removeprefix("<p>").replace("\n", "&#10;") for x in keys]
        assert [html.removesuffix("</div>") for html in lines] == expected
        right = [choice.correct for choice in choices]
        marks = [line[:2] for line in rest if not line.startswith(("...", "____"))]
        assert [mark[0] == "*" or mark == "[*" for mark in marks] == right
    return True


def test_a_papers_text_for_qti_is_the_printed_paper() -> None:
    paper = bank.draw(SEED)
    text = text2qti(paper.items, paper.seed)
    assert items_match(text, paper.items, paper.seed)
    key = exam.paper_page(paper, with_key=True)
    on_paper = re.findall(r'class="points">([\d.qrx]+) · (\d+) points', key)
    assert re.findall(r"Title: (.*)\nPoints: (.*)\n", text) == on_paper
    printed = re.findall(r'class="letter">\w\)</span>(.*?)</li>', exam.paper_page(paper))
    here = re.findall(r"^\*?\w\)  <(?:div|p)>(.*?)(?:</div>)?$", text, re.MULTILINE)
    assert here == printed and len(here) > 30


def test_the_marks_of_the_course_become_plain_html() -> None:
    assert as_html("a `b*c*` *d* & <e>") == "a <code>b*c*</code> <em>d</em> &amp; &lt;e&gt;"
    assert as_html("- **a**\n- b") == "<ul><li><b>a</b></li><li>b</li></ul>"
    assert as_html("a\n\n```\nx = 1 < 2\n```") == "<p>a</p><pre>x = 1 &lt; 2</pre>"
