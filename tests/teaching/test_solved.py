"""The record of what is solved: kept, shared, set aside when broken, shown, forgotten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib import check, forget_progress, progress, quiz
from course_lib.teaching import solved
from course_lib.teaching.exercises import exercise
from course_lib.teaching.quizzes import question_keys, read_quiz
from course_lib.teaching.solved import Record, answers_right, exercise_solved


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record of this test's own, in a folder not yet made."""
    path = tmp_path / "a folder" / "progress.json"
    monkeypatch.setenv(solved.SWITCH, str(path))
    monkeypatch.setattr(solved, "_complained", set())
    return path


def test_tests_keep_no_record() -> None:
    assert solved.record_file() is None
    exercise_solved("02.1")
    assert solved.solved() == Record()
    assert "No record is kept" in progress().text


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_DATA_HOME", "{told}"),
        ("linux", "", ".local/share"),
        ("darwin", "", "Library/Application Support"),
        ("win32", "LOCALAPPDATA", "{told}"),
        ("win32", "", "AppData/Local"),
    ],
)
def test_it_is_in_the_user_s_data_folder(
    platform: str, variable: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (solved.SWITCH, "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "told"))
    folder = tmp_path / expected.format(told="told")
    assert solved.record_file() == folder / "course_lib" / "progress.json"


def test_only_an_exercise_that_passes_is_recorded(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check("02.1", ...)
    check("02.1", lambda *_: 0)
    check("no such", lambda: 0)
    assert not record.exists()
    assert check("02.1", exercise("02.1").solution).status == "passed"
    assert solved.solved() == Record({"02.1"})
    assert "solved exercises" not in capsys.readouterr().out  # nothing to complain of


def test_a_quiz_records_what_was_answered_right(record: Path) -> None:
    keys = question_keys("02")
    view = quiz("02")
    view.widget.right = [2]  # what the page tells the kernel
    view.widget.right = [2, 0]
    assert solved.solved() == Record(set(), {"02": {keys[0], keys[2]}})


def test_every_question_has_a_key_of_its_own() -> None:
    for lecture in ("02", "12"):
        assert len(set(question_keys(lecture))) == len(read_quiz(lecture))


def test_the_map_counts_what_is_there_and_no_more(record: Path) -> None:
    keys = question_keys("03")
    answers_right("03", [keys[4], "gone1234"])  # a question that the course has no longer
    exercise_solved("03.2")
    exercise_solved("99.1")
    page = progress()
    line = next(line for line in page.text.splitlines() if line.startswith("03 "))
    assert "✓ 03.2" in line and "○ 03.1" in line and line.endswith(f"quiz 1 of {len(keys)}")
    assert page.text.startswith("1 of ") and "and 1 of " in page.text.splitlines()[0]
    assert "✓ 03.2" in page.html and str(record) not in page.html


def test_the_map_names_every_lecture_with_exercises() -> None:
    from course_lib.teaching.rooms import lectures_with

    starts = [line[:2] for line in progress().text.splitlines()[1:-1]]
    assert starts == lectures_with("exercises")


def test_forgetting_deletes_all_of_it(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exercise_solved("02.1")
    forget_progress()
    assert list(record.parent.iterdir()) == []
    assert "is deleted" in capsys.readouterr().out
    assert solved.solved() == Record()
    forget_progress()
    assert "There is no record" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [b"", b'{"format": "course_lib prog', b"\xff\xfe\x00", b"[1, 2]", b'{"format": "another 2"}',
     b'{"format": "course_lib progress 1", "exercises": [1], "quizzes": {}}',
     b'{"format": "course_lib progress 1", "exercises": [], "quizzes": {"02": "x"}}'],
)  # fmt: skip
def test_a_broken_or_foreign_file_is_set_aside_and_kept(
    content: bytes, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in ("", "1"):
        record.parent.mkdir(exist_ok=True)
        record.write_bytes(content)
        exercise_solved("02.1")
        aside = record.with_name(f"progress.json.unreadable{n}")
        assert aside.read_bytes() == content
        output = capsys.readouterr().out
        assert "could not be read" in output and aside.name in output
        assert solved.solved() == Record({"02.1"})
    record.write_bytes(content)
    forget_progress()
    assert not record.exists()
    assert [p.read_bytes() for p in record.parent.glob("*.unreadable*")] == [content] * 3


def test_a_folder_that_cannot_be_written_is_told_once(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record.parent.touch()  # a file where the folder should be
    exercise_solved("02.1")
    exercise_solved("02.2")
    assert capsys.readouterr().out.count("cannot be used") == 1
    assert solved.solved() == Record()


def test_a_lock_that_stays_taken_stops_no_page(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from filelock import FileLock

    monkeypatch.setattr(solved, "WAIT", 0.1)
    record.parent.mkdir()
    with FileLock(solved._lock_of(record)):
        exercise_solved("02.1")
    assert "Timeout" in capsys.readouterr().out


def test_two_kernels_that_write_at_once_lose_nothing(record: Path) -> None:
    """Four processes, each with fifty entries of its own."""
    code = (
        "import sys; from course_lib.teaching.solved import exercise_solved\n"
        "for n in range(50): exercise_solved(f'{sys.argv[1]}.{n}')"
    )
    env = os.environ | {solved.SWITCH: str(record)}
    call = [sys.executable, "-c", code]
    running = [subprocess.Popen([*call, str(n)], env=env) for n in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    expected = {f"{process}.{n}" for process in range(4) for n in range(50)}
    assert set(json.loads(record.read_text(encoding="utf-8"))["exercises"]) == expected
