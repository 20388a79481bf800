"""Exercises: `check` an answer, ask for a `hint`, `reveal` the solution, take the `quiz`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rooms import lectures_with, room, two_digits
from ..solved import answers_right, exercise_solved
from .report import Note, Report, Verdict

if TYPE_CHECKING:
    from .form import Exercise

__all__ = [
    "Note",
    "Report",
    "Verdict",
    "all_exercises",
    "check",
    "exercise",
    "hint",
    "quiz",
    "reveal",
]

_rungs_given: dict[str, int] = {}


def check(id: str, answer: Any = ..., *, seed: int | None = None) -> Report:
    """Check an answer on freshly drawn inputs, show a report and return it. Never raises but for
    Ctrl-C.

    id: as printed with the exercise, for instance "02.1"; "2.1" means the same. answer: your
    function itself.
    seed: draws the inputs of an earlier report again.
    """
    from .machinery import check_answer
    from .outputs import text_of

    try:
        report = check_answer(exercise(id), answer, seed)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        verdict = Verdict("before the first stage", False, text_of(error))
        report = Report(f"Exercise {id}", [verdict], "error")
    report.show()
    if report.status == "passed":
        exercise_solved(id)
    return report


def hint(id: str, *, restart: bool = False) -> Note:
    """One rung of the exercise's ladder of hints, the next at each call; `restart` begins again."""
    try:
        entry = exercise(id)
    except ValueError as error:
        return _shown(Note("No such exercise", str(error)))
    seen = 0 if restart else _rungs_given.get(entry.id, 0)
    rungs = len(entry.hints)
    _rungs_given[entry.id] = min(seen + 1, rungs)
    if seen >= rungs:
        message = f'That was the last of {rungs}. reveal("{entry.id}") shows the solution.'
        return _shown(Note(f"No more hints for {entry.heading}", message))
    return _shown(Note(f"Hint {seen + 1} of {rungs} for {entry.heading}", entry.hints[seen]))


def reveal(id: str) -> Note:
    """The library's own function, or the solution kept here where the library has none."""
    from .machinery import solution_note

    try:
        return _shown(solution_note(exercise(id)))
    except ValueError as error:
        return _shown(Note("No such exercise", str(error)))


def quiz(lecture: str) -> Any:
    """The quiz of a lecture as a live widget, or as unfolding text where none can be drawn."""
    from course_lib.teaching.quiz_widget import quiz_text, quiz_view
    from course_lib.teaching.quizzes import question_keys, read_quiz

    lecture = two_digits(lecture)
    items, keys = read_quiz(lecture), question_keys(lecture)
    try:
        view = quiz_view(items)
    except ImportError:  # no anywidget
        return quiz_text(items)
    view.widget.observe(
        lambda change: answers_right(lecture, [keys[n] for n in change["new"]]), "right"
    )
    return view


def review(lecture: str) -> Any:
    """The questions for review of a lecture; each answer unfolds."""
    from course_lib.teaching.quizzes import read_review, review_html

    return review_html(read_review(lecture))


def exercise(id: str) -> Exercise:
    """The exercise of this number; ValueError, listing those that exist, for any other."""
    number = two_digits(id)
    lecture = number.partition(".")[0]
    if lecture in lectures_with("exercises"):  # its room alone: all of them take seconds to import
        for one in room(lecture, "exercises").EXERCISES:
            if one.id == number:
                return one
    raise ValueError(
        f"exercise {id!r} was asked for; there is no such exercise. "
        f"Those that exist: {', '.join(all_exercises())}. "
        'Write the number as text, as in check("02.1", my_answer).'
    )


def all_exercises() -> dict[str, Exercise]:
    """{number: exercise} of every lecture written so far, in order."""
    modules = [room(lecture, "exercises") for lecture in lectures_with("exercises")]
    return {one.id: one for module in modules for one in module.EXERCISES}


def _shown(note: Note) -> Note:
    note.show()
    return note
