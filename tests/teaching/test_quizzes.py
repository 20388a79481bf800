"""Quiz files: read, checked, drawn."""

from __future__ import annotations

import re

import pytest

from course_lib.teaching.exercises import quiz, review
from course_lib.teaching.quizzes import (
    QuizError,
    read_items,
    read_quiz,
    read_review,
    review_markdown,
)
from course_lib.teaching.rooms import room, room_file

ITEMS = read_quiz("02")
REVIEW = read_review("02")
LECTURES = [path.parent.name[-2:] for path in sorted(room_file("", "").parent.glob("*/quiz.toml"))]
# A room without exercises is only laid: its quiz is an example of the form.
FINISHED = [lecture for lecture in LECTURES if room(lecture, "exercises").EXERCISES]
# Of lectures 02, 04, 05 and 11, older ones, more right choices are the second or the longest.
PLACE, LENGTH = {"02": 0.65}, {"02": 0.6, "04": 0.55, "05": 0.55, "11": 0.5}
EVERY_ITEM = [pytest.param(item, id=f"{lecture} item {item.number}")
              for lecture in LECTURES for item in read_quiz(lecture)]  # fmt: skip

GOOD = """
[[item]]
question = "One?"
[[item.choice]]
text = "yes"
correct = true
why = "so"
[[item.choice]]
text = "no"
correct = false
why = "not so"
[[item.choice]]
text = "perhaps"
correct = false
why = "not so either"
"""


@pytest.mark.parametrize("item", EVERY_ITEM)
def test_every_choice_explains_itself(item):
    assert item.question.rstrip("*").endswith("?")
    assert 3 <= len(item.choices) <= 4
    assert sum(choice.correct for choice in item.choices) == 1  # the widget has radio buttons
    assert all(len(choice.why) >= 20 for choice in item.choices)
    assert len({choice.why for choice in item.choices}) == len(item.choices)


@pytest.mark.parametrize("lecture", FINISHED)
def test_the_quiz_is_long_enough_and_cannot_be_guessed_by_place_or_length(lecture):
    items = read_quiz(lecture)
    assert len(items) >= 12
    places = [[choice.correct for choice in item.choices].index(True) for item in items]
    assert set(places) == {0, 1, 2}
    assert max(map(places.count, set(places))) <= PLACE.get(lecture, 0.4) * len(items)
    for extreme in (max, min):
        by_length = [extreme(item.choices, key=lambda c: len(c.text)).correct for item in items]
        assert sum(by_length) <= LENGTH.get(lecture, 0.45) * len(items)


@pytest.mark.parametrize("lecture", FINISHED)
def test_there_are_questions_for_review_with_answers(lecture):
    entries = read_review(lecture)
    assert 10 <= len(entries) <= 14
    assert all(len(entry.answer) > 80 for entry in entries)


def test_the_quiz_is_drawn():
    view = quiz("2")
    assert ITEMS[0].question in repr(view)


def test_the_quiz_is_text_without_widgets(monkeypatch):
    import course_lib.teaching.quiz_widget as view

    def no_widgets(items):
        raise ImportError("anywidget")

    monkeypatch.setattr(view, "quiz_view", no_widgets)
    html = quiz("02")._repr_html_()
    assert html.count("<details>") == len(ITEMS)


def test_the_review_unfolds():
    html = review("02")._repr_html_()
    assert html.count("<details>") == html.count("</details>") == len(REVIEW)
    assert "<em>the ferry [MASK] at noon</em>" in html
    assert review_markdown("02").count("<details>") == len(REVIEW)
    assert REVIEW[1].answer in repr(review("02"))


def written(folder, text):
    path = folder / "77.toml"
    path.write_text(text, encoding="utf-8")
    return path


SECOND = GOOD.replace("One?", "Two?")
MORE = '[[item.choice]]\ntext = "{}"\ncorrect = false\nwhy = "no"'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("correct = true", "correct = false"), "marks 0 of 3 choices"),
        (lambda t: t.replace("correct = false", "correct = true"), "marks 3 of 3 choices"),
        (lambda t: t.replace('why = "so"', 'why = ""'), r"choice 1 has why = ''"),
        (lambda t: t.replace('why = "not so"\n', ""), r"choice 2 has why = None"),
        (lambda t: t.replace("correct = true", 'correct = "yes"'), r"choice 1 has correct = 'yes'"),
        (lambda t: t.replace('question = "Two?"\n', ""), r"has question = None"),
        (lambda t: t.replace('"perhaps"', '"no"'), "same choice twice"),
        (lambda t: t.replace('text = "no"', 'text = "no"\nhint = "x"'), r"unknown keys \['hint'\]"),
        (lambda t: t[: t.index("[[item.choice]]\ntext = \"perhaps\"")], "has 2 choices"),
        (lambda t: t + "\n".join(MORE.format(word) for word in "abc"), "has 6 choices"),
    ],
)  # fmt: skip
def test_a_faulty_item_is_named(tmp_path, change, message):
    path = written(tmp_path, GOOD + change(SECOND))
    with pytest.raises(QuizError, match=message) as raised:
        read_items(path)
    assert "77.toml, item 2" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"), [("[[item]", "not TOML"), ("", r"no \[\[item\]\]"), ("item = []", "no ")]
)
def test_a_faulty_file_is_named(tmp_path, text, message):
    with pytest.raises(QuizError, match=message) as raised:
        read_items(written(tmp_path, text))
    assert "77.toml" in str(raised.value)


def test_an_unknown_lecture_lists_those_with_a_quiz():
    with pytest.raises(QuizError, match="02"):
        read_quiz("99")


@pytest.mark.parametrize("lecture", LECTURES)
def test_no_example_sentence_is_borrowed(lecture):
    text = " ".join(
        [item.question + " ".join(c.text + c.why for c in item.choices)
         for item in read_quiz(lecture)]
        + [entry.question + entry.answer for entry in read_review(lecture)]
    )  # fmt: skip
    assert not re.search(r"calculus|panda|penguin|milk|Newton|Leibniz", text, re.IGNORECASE)
