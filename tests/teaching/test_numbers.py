"""No measured number is typed: page, deck and quiz name those that the lecture's room computes."""

from __future__ import annotations

import re
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
    found = {path.name: path.read_text(encoding="utf-8") for path in decks}
    found[page.name] = sentences(page.read_text(encoding="utf-8"))
    found["quiz.toml"] = room_file(lecture, "quiz.toml").read_text(encoding="utf-8")
    return found


def sentences(source: str) -> str:
    """The Markdown cells of a page's source."""
    cells = re.split(r"^# %%", source, flags=re.MULTILINE)
    return "\n".join(cell for cell in cells if cell.lstrip().startswith("[markdown]"))


@pytest.mark.parametrize("lecture", LECTURES)
def test_every_number_that_is_named_exists_and_every_one_is_named(lecture: str) -> None:
    named = {name for text in texts(lecture).values() for name in PLACEHOLDER.findall(text)}
    assert named - {"exercise_minutes"} == set(room(lecture, "numbers").NUMBERS)


@pytest.mark.parametrize("lecture", LECTURES)
def test_no_digits_are_typed_that_the_room_computes(lecture: str) -> None:
    here = room(lecture, "numbers")
    values = {n: set(TELLING.findall(number(lecture, n))) for n in here.NUMBERS}
    meant_otherwise = set(getattr(here, "TYPED", {}))
    typed = [
        f"{file}: {value} is {name}"
        for file, text in texts(lecture).items()
        for name, found in values.items()
        for value in found - meant_otherwise
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


def test_hours_are_those_of_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "flat": {"runs": {"a": [{"seconds": 3_600.0}, {"seconds": 9.0, "cpu_seconds": 1_800.0}]}},
        "deep": {"runs": {"a": {"b": [{"seconds": 7_200, "curve": [{"step": 1}], "score": 0.5}]}}},
    }
    monkeypatch.setattr(numbers, "stored", files.__getitem__)
    assert (cpu_hours("flat"), cpu_hours("flat", "deep")) == ("1.5", "3.5")
