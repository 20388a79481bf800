"""`progress()`: what of each lecture is solved, from the record that solved.py keeps."""

from __future__ import annotations

from collections import defaultdict
from html import escape

from .exercises import all_exercises
from .page import Html, card
from .quizzes import question_keys
from .rooms import lectures_with
from .solved import SWITCH, record_file, solved

SIGNS = {True: ("✓", "#00664a", "solved"), False: ("○", "#555", "open")}
KEPT = (
    "This is kept in a small file of your own and never sent anywhere; forget_progress() deletes "
    "it. A question counts once you have checked its correct choice."
)


def progress() -> Html:
    """Each lecture's exercises and how many questions of its quiz are solved, on this machine."""
    record = solved()
    by_lecture = defaultdict(list)
    for exercise in all_exercises().values():
        by_lecture[exercise.id[:2]].append(exercise)
    rows, lines, done, questions = [], [], 0, [0, 0]
    for lecture in lectures_with("exercises"):
        each = [(e, e.id in record.exercises) for e in by_lecture[lecture]]
        keys = question_keys(lecture)
        right = len(record.quizzes.get(lecture, set()) & set(keys))
        signs = " ".join(_sign(e.id, e.title, good) for e, good in each)
        quiz = f"{SIGNS[right == len(keys)][0]} {right} of {len(keys)}"
        rows.append(f"<tr>{_cell(lecture)}{_cell(signs)}{_cell(quiz)}</tr>")
        marks = " ".join(f"{SIGNS[good][0]} {e.id}" for e, good in each)
        lines.append(f"{lecture}  {marks}  quiz {right} of {len(keys)}")
        done += sum(good for _, good in each)
        questions = [questions[0] + right, questions[1] + len(keys)]
    total = (
        f"{done} of {sum(map(len, by_lecture.values()))} exercises and {questions[0]} of "
        f"{questions[1]} quiz questions solved"
    )
    kept = KEPT if record_file() else f"No record is kept: {SWITCH}=off."
    head = "".join(_cell(name, "th") for name in ("lecture", "exercises", "quiz"))
    table = f'<table style="border-collapse:collapse;background:#fff"><tr>{head}</tr>'
    page = f"<p><b>{total}.</b></p>{table}{''.join(rows)}</table><p>{kept}</p>"
    return Html(card(page, "course-progress"), "\n".join([f"{total}.", *lines, kept]))


def _sign(id: str, title: str, good: bool) -> str:
    """An exercise's number with its state, as a sign and in words for who cannot see it."""
    sign, colour, word = SIGNS[good]
    style = f"white-space:nowrap;margin-right:8px;color:{colour}"
    return f'<span style="{style}" title="{escape(title)}: {word}">{sign} {id}</span>'


def _cell(content: str, kind: str = "td") -> str:
    style = (
        "padding:2px 10px 2px 0;text-align:left;vertical-align:top;background:#fff;color:#1a1a1a"
    )
    return f'<{kind} style="{style}">{content}</{kind}>'
