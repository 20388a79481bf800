"""Grading a folder of notebooks: what accidents cost, and whom; what a table and a report say."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from course_lib.teaching.exercises import all_exercises
from course_lib.teaching.kit import grading, report
from course_lib.teaching.kit.grading import Limits, grade
from course_lib.teaching.kit.report import Row
from course_lib.teaching.kit.submissions import code_cells, needed, submissions

HEAD = "def my_uncertainty(logits):\n"
CHECK = '\n\ncheck("12.1", my_uncertainty)'
ANSWERS = {
    "right": [
        "%matplotlib inline\nimport torch, math\nfrom course_lib import check",
        "raise SystemExit('a page is not run as a whole')",
        "def entropy(log_p):\n    return -(log_p.exp() * log_p).sum(-1)",
        f"{HEAD}    return entropy(logits.log_softmax(-1)) / math.log(logits.shape[-1]){CHECK}",
    ],
    "wrong": [f"{HEAD}    p = logits.log_softmax(-1)\n    return -(p.exp() * p).sum(-1){CHECK}"],
    "loop": [  # it catches its alarm, too
        f"{HEAD}    while True:\n        try:\n            len(logits)\n"
        f"        except BaseException:\n            pass{CHECK}"
    ],
    "loop above": ["n = 0\nwhile n < 1:\n    m = n", f"{HEAD}    return m{CHECK}"],
    "hog": ["import torch", f"{HEAD}    return torch.ones(10**9).sum(){CHECK}"],
    "caller": [
        "import os, urllib.request\ndef refused(what, how):\n    try:\n        what(how)\n"
        "    except PermissionError:\n        return 1.0\n",
        f"{HEAD}    refused(os.system, 'true')\n"
        f"    return refused(urllib.request.urlopen, 'http://127.0.0.1:9'){CHECK}",
    ],
    "leaver": [f"import os\n{HEAD}    os._exit(3){CHECK}"],
    "odd": [f"{HEAD}    raise ValueError(chr(0xD800)){CHECK}"],
    "comma": [f"def my_uncertainty(logits)\n    return 1{CHECK}"],
    "nothing": ["print(1)"],
}
LIMITS = Limits(seconds=2, stage_seconds=0.5, memory=1024)


def write(path: Path, cells: list[str]) -> None:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ""}, *code]}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of submissions, one for each answer above, and some that are odd."""
    there = tmp_path_factory.mktemp("class") / "submitted"
    for name, cells in ANSWERS.items():
        write(there / f"{name}.ipynb", cells)
    write(there / "twin.ipynb", [f"{HEAD}    return ...{CHECK}"])
    write(there / "twin" / "12.ipynb", ANSWERS["nothing"])
    write(there / "twin" / ".ipynb_checkpoints" / "12.ipynb", ANSWERS["right"])
    (there / "torn.ipynb").write_text('{"cells": [', encoding="utf-8")
    (there / "empty").mkdir()
    (there / "notes.txt").write_text("not a notebook", encoding="utf-8")
    return there


@pytest.fixture(scope="module")
def graded(folder: Path) -> tuple[list[Row], Path]:
    out = folder.parent / "graded"
    return grade(folder, ["12.1"], out, 7, LIMITS, jobs=2), out


def row(graded: tuple[list[Row], Path], student: str) -> Row:
    (result,) = (one for one in graded[0] if one.student == student)
    return result


def test_a_right_answer_passes_and_only_what_it_needs_is_run(graded: Any) -> None:
    right = row(graded, "right")
    assert (right.status, right.points, right.stages_passed) == ("passed", right.of, right.stages)


def test_a_wrong_answer_gets_the_name_of_its_mistake(graded: Any) -> None:
    wrong = row(graded, "wrong")
    assert (wrong.status, wrong.how, wrong.points) == ("wrong", "known", 0)
    assert "This is the entropy in nats" in wrong.said and wrong.stopped_at


@pytest.mark.parametrize(
    ("student", "status", "message"),
    [
        ("loop", "wrong", "did not come back within 0.5 seconds"),
        ("leaver", "crashed", "ended without a result"),
        ("odd", "error", "raised ValueError: \\ud800"),
        ("comma", "no Python", "no Python: expected ':', line "),
        ("nothing", "missing", "no function has its name"),
        ("empty", "missing", "no function has its name"),
        ("twin", "missing", "no function has its name"),
        ("twin.ipynb", "unanswered", "left as it is"),
    ],
)
def test_every_accident_is_a_row_of_its_own(
    graded: Any, student: str, status: str, message: str
) -> None:
    result = row(graded, student)
    if student == "loop" and os.name != "posix":
        status, message = "time", "not done"
    assert result.status == status and message in result.said and result.points == 0


@pytest.mark.skipif(os.name != "posix", reason="no limit on processor time")
def test_a_loop_above_the_answer_costs_its_processor_time(graded: Any) -> None:
    assert row(graded, "loop above").status == "time"


def test_who_sleeps_is_woken_by_nobody_and_ended(tmp_path: Path) -> None:
    above = "import time\nfor n in (1000, 1):\n    time.sleep(n)"
    write(tmp_path / "in" / "sleeper.ipynb", [above, f"{HEAD}    return n{CHECK}"])
    (result,) = grade(tmp_path / "in", ["12.1"], tmp_path / "out", 7, Limits(seconds=1, start=1))
    assert result.status == "time" and "not done after 1 seconds" in result.said


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_too_much_memory_is_refused(graded: Any) -> None:
    assert row(graded, "hog").status == "memory"


def test_network_and_processes_are_refused_and_told_also_where_that_is_caught(graded: Any) -> None:
    caller = row(graded, "caller")
    assert caller.asked == "another process, the network"
    assert caller.status == "wrong"  # and no exception: it was caught


def test_a_torn_file_is_told_beside_the_missing_answer(graded: Any) -> None:
    rows = [one for one in graded[0] if one.student == "torn"]
    assert [one.status for one in rows] == ["broken notebook", "missing"]
    assert "not a notebook" in rows[0].said


def test_nobody_is_lost_and_every_student_has_a_report(folder: Path, graded: Any) -> None:
    rows, out = graded
    assert {one.student for one in rows} == {s.student for s in submissions(folder)}
    with open(out / "grades.csv", encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [line["student"] for line in table] == [one.student for one in rows]
    assert [line["status"] for line in table] == [one.status for one in rows]
    reports = sorted((out / "reports").iterdir())
    assert len(reports) == len(submissions(folder))
    assert not [p for p in out.rglob("*") if ".tmp" in p.name]


def test_a_report_tells_stages_and_mistake_and_not_the_seed(graded: Any) -> None:
    out = graded[1]
    text = (out / "reports" / f"{report.file_name('wrong')}.html").read_text(encoding="utf-8")
    assert "This is the entropy in nats" in text and "✗ stopped here" in text
    assert "no sandbox" in text
    assert str(grading.seed_of(7, "12.1")) not in text and "seed" not in text
    for source in (out / "grades.csv").read_text(encoding="utf-8"), text:
        assert not re.search(r"(?:src|href)=", source)


def test_what_was_graded_is_not_graded_over(folder: Path, graded: Any) -> None:
    with pytest.raises(ValueError, match="is not empty"):
        grade(folder, ["12.1"], graded[1])


@pytest.mark.parametrize(
    ("exercises", "message"),
    [(["12.9"], "'12.9' is to be graded"), ([], "nothing is to be graded")],
)
def test_unknown_exercises_are_refused(exercises: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        grade(tmp_path, exercises, tmp_path / "out")


def test_a_folder_without_submissions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no notebook"):
        submissions(tmp_path)
    with pytest.raises(ValueError, match="is no folder"):
        submissions(tmp_path / "none")


def test_a_lecture_stands_for_its_exercises() -> None:
    ids = [one.id for one in grading.chosen(["03.2", "12"])]
    assert ids == ["03.2", *(id for id in all_exercises() if id[:2] == "12")]


def test_seeds_are_told_by_nobody_and_the_same_for_all() -> None:
    seeds = {grading.seed_of(seed, id) for seed in range(20) for id in ("12.1", "12.2")}
    assert len(seeds) == 40 and all(0 <= seed < grading.SEEDS for seed in seeds)
    assert grading.SEEDS * 1_000 < 2**63  # what draws cases multiplies by 1,000


@pytest.mark.parametrize(
    "change",
    [{"status": "rich"}, {"stages": 3}, {"stages": [["a", "b"]]}, {"stages": [["a"]]},
     {"asked": None}, {"message": 3}],
)  # fmt: skip
def test_nothing_that_an_answer_wrote_is_taken_for_granted(
    change: dict[str, Any], tmp_path: Path
) -> None:
    good = {"status": "wrong", "message": "m", "how": "", "stages": [["a", False]], "asked": []}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(good))
    assert grading._read(path)["stages"] == [("a", False)]
    path.write_text(json.dumps(good | change))
    assert grading._read(path)["status"] == ("wrong" if "message" in change else "crashed")
    path.write_bytes(b"\xff{")
    assert grading._read(path)["status"] == "crashed"


def test_of_an_exercise_in_two_notebooks_the_better_counts() -> None:
    rows = [Row("a", f"{n}.ipynb", "12.1", "wrong", points, 10) for n, points in enumerate((4, 7))]
    assert "<p>7 of 10 points.</p>" in report.report_page("a", rows)


def test_no_cell_of_the_table_is_a_formula() -> None:
    text = report.as_csv([Row("=1+1", said='-x\n"y", z')])
    (line,) = csv.DictReader(text.splitlines(keepends=True))
    assert (line["student"], line["said"]) == ("'=1+1", '\'-x\n"y", z')


def test_two_students_never_share_a_report() -> None:
    names = ["Anna", "anna", "An na", "An-na", "Ánna", "…"]
    assert len({report.file_name(name).lower() for name in names}) == len(names)
    assert report.file_name("Zoë Müller").startswith("Zoe-Muller-")


@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_what_an_answer_leaves_running_is_ended_with_it() -> None:
    code = (
        "import subprocess, sys; sleep = [sys.executable, '-c', 'import time; time.sleep(600)']; "
        "left = subprocess.Popen(sleep); print(left.pid, flush=True); left.wait()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout
    left = psutil.Process(int(process.stdout.readline()))
    grading.end(process)
    process.stdout.close()
    deadline = time.monotonic() + 60
    while left.is_running() and left.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ---------------------------------------------------------------- what an answer needs


def test_what_an_answer_needs_is_found_by_name() -> None:
    cells = [
        "import torch as t\nimport os\nbig = open('/nowhere')",
        "X = 1\nX += 1\n\ndef unused():\n    return big",
        "class Helper:\n    size = X\n",
        "def mine(a, big=None):\n    os = 3\n    return t.tensor(later(a) + Helper.size)",
        "r = check('12.1', answer=mine)",
        "def later(a):\n    return a",
    ]
    answer = needed(cells, "12.1", "my_uncertainty")
    assert answer and answer.expression == "mine"
    assert "nowhere" not in answer.source and "unused" not in answer.source
    assert "import os" not in answer.source  # a name of its own hides the module
    space: dict[str, Any] = {"t": None}
    exec(answer.source.replace("import torch as t", "import math as t; t.tensor = float"), space)
    assert space["mine"](1) == 3.0


def test_the_last_check_counts_and_an_unchecked_function_is_found_by_its_name() -> None:
    cells = ["def f(x): return 1", "check('12.1', f)", "check('12.1', lambda x: g(x))", "g = f"]
    answer = needed(cells, "12.1", "my_uncertainty")
    assert answer and answer.expression == "lambda x: g(x)" and "g = f" in answer.source
    answer = needed(["def my_uncertainty(x): ..."], "12.1", "my_uncertainty")
    assert answer and answer.expression == "my_uncertainty"
    assert needed(["check('12.2', f)"], "12.1", "my_uncertainty") is None


def test_lines_for_ipython_do_not_hide_an_answer() -> None:
    cells = ["%%bash\necho", "!pip list\n%time x = 1\nf?\ndef f(x):\n    return 1 % x\n"]
    answer = needed([*cells, "check('12.1', f)"], "12.1", "f")
    assert answer and "return 1 % x" in answer.source
    with pytest.raises(SyntaxError, match="no Python"):
        needed(["def f(:\ncheck('12.1', f)"], "12.1", "f")


def test_on_every_page_the_stub_is_all_that_an_answer_needs(root: Path) -> None:
    pages = {path.name[:2]: path for path in (root / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    for id, exercise in all_exercises().items():
        answer = needed(code_cells(pages[id[:2]]), id, exercise.name)
        assert answer and answer.expression == exercise.name
        assert answer.source == exercise.stub.strip()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": 3}', '{"cells": [1]}', '{"worksheets": []}', "\0"]
)
def test_what_is_no_notebook_says_so(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a notebook of format 4"):
        code_cells(path)
