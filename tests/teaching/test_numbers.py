"""No measured number is typed: page, deck and quiz name those that the lecture's room computes."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from course_lib.teaching import numbers
from course_lib.teaching.numbers import PLACEHOLDER, NumberError, cpu_hours, filled, number
from course_lib.teaching.rooms import lectures_with, room, room_file

ROOT = Path(__file__).resolve().parent.parent.parent
LECTURES = lectures_with("numbers")
# What is hardly the same by chance: three digits and more, or two and a percent sign.
TELLING = re.compile(r"\d+(?:,\d{3})+|\d+\.\d+%|\d+\.\d\d+|\d\d+\.\d+|\d{3,}|\d\d%")


def texts(lecture: str) -> dict[str, str]:
    """What a reader of a lecture reads as sentences: page, deck, quiz; by file name."""
    (page,) = (ROOT / "notebooks/source").glob(f"{lecture}_*.py")
    decks = (ROOT / "slides/source").glob(f"{lecture}_*.md")
    files = {p.name: SIZED.sub("", p.read_text(encoding="utf-8")) for p in decks}
    files[page.name] = sentences(page.read_text(encoding="utf-8"))
    quiz = room_file(lecture, "quiz.toml").read_text(encoding="utf-8")
    files["quiz.toml"] = re.sub(r'(?m)^key = "\w+"$', "", quiz)  # no number, though it has digits
    return files


SIZED = re.compile(r"\{\{ *(?:figure|html):[^|}]*")  # a picture's name and its size in pixels


def sentences(source: str) -> str:
    """The Markdown cells of a page's source."""
    cells = re.split(r"^# %%", source, flags=re.MULTILINE)
    return "\n".join(cell for cell in cells if cell.lstrip().startswith("[markdown]"))


@cache
def expressions(lecture: str, leave_out: str = "") -> dict[str, str]:
    """Every number that a lecture's texts ask for, as they write it and as it is said."""
    files = (text for file, text in texts(lecture).items() if file != leave_out)
    placeholders = {x for text in files for x in PLACEHOLDER.findall(text)}
    return {x: number(lecture, x.replace('\\"', '"')) for x in placeholders}


@pytest.mark.parametrize("lecture", LECTURES)
def test_every_number_is_there_and_every_name_is_said(lecture: str) -> None:
    """Names of NUMBERS, and what numbers.py imports for the texts (ruff leaves that to us)."""
    here = room(lecture, "numbers")
    named = getattr(here, "NUMBERS", {})
    placeholders = " ".join(expressions(lecture))
    tree = ast.parse(Path(str(here.__file__)).read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    words = set(re.findall(r"\w+", placeholders))
    assert set(named) <= words
    assert imported <= used | words
    assert not set(named) & vars(here).keys()  # else the texts could mean either


CHECKED = Path(__file__).with_name("numbers.json")  # of each lecture's texts, as they were checked
DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?")


def agree(text: str, checked: str) -> bool:
    """The same words, and numbers that differ by one in the last digit at most: another processor
    rounds otherwise."""
    if DIGITS.sub("0", text) != DIGITS.sub("0", checked):
        return False
    pairs = zip(DIGITS.findall(text), DIGITS.findall(checked), strict=True)
    return all(
        len(a.partition(".")[2]) == len(b.partition(".")[2])
        and abs(int(re.sub("[,.]", "", a)) - int(re.sub("[,.]", "", b))) <= ("." in a)
        for a, b in pairs
    )


@pytest.mark.parametrize("lecture", LECTURES)
def test_every_number_is_the_one_that_was_checked(lecture: str) -> None:
    """A change of code that moves a number on a page is seen here, meant or not."""
    checked = json.loads(CHECKED.read_text(encoding="utf-8"))[lecture]
    now = expressions(lecture)
    moved = {x: (checked.get(x), text) for x, text in now.items()
             if not agree(text, checked.get(x, "new"))}  # fmt: skip
    assert not moved and not set(checked) - set(now), (
        f"{moved or set(checked) - set(now)}: look whether each is meant, then run "
        "`python tests/teaching/test_numbers.py`, which writes numbers.json anew"
    )


@pytest.mark.parametrize(
    ("text", "checked", "same"),
    [("12.3%", "12.4%", True), ("12.3%", "12.5%", False), ("1,024 words", "1,025 words", False),
     ("0.05", "0.1", False), ("a 1", "b 1", False), ("1.00 and 2", "0.99 and 2", True)],
)  # fmt: skip
def test_a_number_may_be_rounded_otherwise(text: str, checked: str, same: bool) -> None:
    assert agree(text, checked) == same


@pytest.mark.parametrize("lecture", LECTURES)
def test_no_digits_are_typed_that_the_room_computes(lecture: str) -> None:
    """What page and deck compute, no text types. (A quiz computes its worked examples, too.)"""
    meant_otherwise = set(getattr(room(lecture, "numbers"), "TYPED", {}))
    here = expressions(lecture, leave_out="quiz.toml")
    values = {x: set(TELLING.findall(text)) for x, text in here.items()}
    typed = [
        f"{file}: {value} is {name}"
        for file, text in texts(lecture).items()
        for name, digits in values.items()
        for value in digits - meant_otherwise
        if re.search(rf"(?<![\d.,]){re.escape(value)}(?!\d|[.,]\d)", PLACEHOLDER.sub("", text))
    ]
    assert not typed


def test_typed_digits_are_found() -> None:
    assert TELLING.findall("45.7% of 1,500 in 12 steps, 57% to 60%, 0.036, 109482240") == [
        "45.7%", "1,500", "57%", "60%", "0.036", "109482240"
    ]  # fmt: skip


def test_a_number_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(NumberError, match=r"lecture 03 asks for number 'x'.*million_tokens"):
        filled("03", "It took {{number:x}} steps.")
    assert filled("03", "no numbers") == "no numbers"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("2 / 3:.1%", "66.7%"),
        ("[10, 20, 30][1:][0]", "20"),  # a colon that is no format
        ("mean([1, 2])", "1.5"),
        ("12345", "12,345"),
        ("signed(-1.25, 2)", "−1.25"),
        ("millions(3_000_000)", "3.0M"),
        ("', '.join(x for x in ('a', whole(-2.0), in_letters(3)))", "a, −2, three"),
        ("as_list([1, 2])", "1, 2"),
        ("lambda: 4", "4"),  # a function's name stands for what it returns
    ],
)
def test_an_expression_is_computed_and_formatted(expression: str, text: str) -> None:
    assert filled("00", f"It is {{{{ number:{expression} }}}}.") == f"It is {text}."


@pytest.mark.parametrize(
    ("wrong", "why"), [("1 +", "SyntaxError"), ("printed('bert')['x']", "KeyError: 'x'")]
)
def test_a_wrong_expression_is_shown_with_what_is_wrong(wrong: str, why: str) -> None:
    with pytest.raises(NumberError, match=rf"lecture 03 .*{re.escape(wrong)}.*{why}.*percent"):
        filled("03", f"{{{{number:{wrong}}}}}")


def test_hours_are_those_of_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "flat": {"runs": {"a": [{"seconds": 3_600.0}, {"seconds": 9.0, "cpu_seconds": 1_800.0}]}},
        "deep": {"runs": {"a": {"b": [{"seconds": 7_200, "curve": [{"step": 1}], "score": 0.5}]}}},
    }
    monkeypatch.setattr(numbers, "stored", files.__getitem__)
    assert (cpu_hours("flat"), cpu_hours("flat", "deep")) == ("1.5", "3.5")


if __name__ == "__main__":
    every = {lecture: dict(sorted(expressions(lecture).items())) for lecture in LECTURES}
    CHECKED.write_text(json.dumps(every, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
