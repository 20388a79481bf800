"""Grading a folder of notebooks: what accidents cost, and whom; what a table and a report say."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from course_lib.teaching.exercises import all_exercises
from course_lib.teaching.kit import grading, report
from course_lib.teaching.kit.grading import Limits, grade
from course_lib.teaching.kit.report import Row
from course_lib.teaching.kit.submissions import (
    Submission,
    class_list,
    code_cells,
    needed,
    submissions,
    with_list,
)

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
    write(there / "twin.ipynb", ANSWERS["wrong"])
    write(there / "twin" / "12.ipynb", [f"{HEAD}    return ...{CHECK}"])
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
        ("loop", "wrong", "did not return within 0.5 seconds"),
        ("leaver", "crashed", "ended without a result"),
        ("odd", "error", "raised ValueError: \\ud800"),
        ("comma", "no Python", "not valid Python: expected ':', line "),
        ("nothing", "missing", "no function has its name"),
        ("empty", "missing", "no function has its name"),
    ],
)
def test_every_accident_is_a_row_of_its_own(
    graded: Any, student: str, status: str, message: str
) -> None:
    result = row(graded, student)
    if student == "loop" and os.name != "posix":
        status, message = "time", "did not finish"
    assert result.status == status and message in result.said and result.points == 0


@pytest.mark.skipif(os.name != "posix", reason="no limit on processor time")
def test_a_loop_above_the_answer_costs_its_processor_time(graded: Any) -> None:
    assert row(graded, "loop above").status == "time"


def test_who_sleeps_is_woken_by_nobody_and_ended(tmp_path: Path) -> None:
    above = "import time\nfor n in (1000, 1):\n    time.sleep(n)"
    write(tmp_path / "in" / "sleeper.ipynb", [above, f"{HEAD}    return n{CHECK}"])
    (result,) = grade(tmp_path / "in", ["12.1"], tmp_path / "out", 7, Limits(seconds=1, start=1))
    assert result.status == "time" and "did not finish in 1 seconds" in result.said


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


def test_two_submissions_of_one_name_are_one_students(graded: Any) -> None:
    rows = [one for one in graded[0] if one.student == "twin"]
    assert [(x.notebook, x.status) for x in rows] == [
        ("twin/12.ipynb", "unanswered"), ("twin.ipynb", "wrong")
    ]  # fmt: skip


def test_the_short_table_has_a_line_a_student_by_name(graded: Any) -> None:
    rows, out = graded
    with open(out / "totals.csv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    names = [line["student"] for line in lines]
    assert names == sorted({row.student for row in rows}, key=str.casefold)
    by_name = {line["student"]: line for line in lines}
    of = str(all_exercises()["12.1"].minutes)
    right = ("points", "of", "percent", "passed", "answered", "exercises", "notes")
    assert [by_name["right"][x] for x in right] == [of, of, "100.0", "1", "1", "1", ""]
    assert all(line["of"] == of for line in lines)
    assert by_name["nothing"]["notes"] == "No exercise was answered."
    assert "torn.ipynb is not a notebook" in by_name["torn"]["notes"]
    assert by_name["empty"]["notes"].startswith("No notebook was handed in")
    assert by_name["twin"]["notes"].startswith("2 submissions (twin/12.ipynb, twin.ipynb)")


def test_points_of_a_student_are_those_of_the_best_answers() -> None:
    of = {"12.1": 10, "12.2": 20}
    best = (("12.1", 0.1), ("12.1", 3.3), ("12.2", 0.2))
    rows = [Row("Zoë", "a.ipynb", id, "wrong", points, of[id]) for id, points in best]
    anna = Submission("=anna", notebooks={"a": []}, number="7")
    text = report.totals_csv([(Submission("Zoë"), rows), (anna, [])], of)
    lines = list(csv.reader(text.splitlines()))
    assert lines[0] == list(report.TOTALS)
    assert lines[1] == ["'=anna", "7", "0", "30", "0.0", "0", "0", "2", "No exercise was answered."]
    assert lines[2] == ["Zoë", "", "3.5", "30", "11.7", "0", "2", "2", ""]


def test_nobody_is_lost_and_every_student_has_a_report(folder: Path, graded: Any) -> None:
    rows, out = graded
    assert {one.student for one in rows} == {s.student for s in submissions(folder)[0]}
    with open(out / "grades.csv", encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [line["student"] for line in table] == [one.student for one in rows]
    assert [line["status"] for line in table] == [one.status for one in rows]
    reports = sorted((out / "reports").iterdir())
    assert len(reports) == len(submissions(folder)[0]) and submissions(folder)[1] == ["notes.txt"]
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
    with pytest.raises(ValueError, match="holds neither a notebook"):
        submissions(tmp_path)
    with pytest.raises(ValueError, match="does not exist"):
        submissions(tmp_path / "none")


MOODLE = {  # what is handed in: (student, number, notebooks, words of its note)
    "Anna Meier_11_assignsubmission_file_/12.ipynb": ("Anna Meier (11)", "11", 1, ""),
    "Anna Meier_12_assignsubmission_file_/12.ipynb": ("Anna Meier (12)", "12", 1, ""),
    "Anna Meier.ipynb": ("Anna Meier (no number)", "", 1, ""),
    "Ben van_der_Berg_13_assignsubmission_file_12.ipynb": ("Ben van der Berg", "13", 1, ""),
    "Cem_14_assignsubmission_file/a/12.ipynb": ("Cem", "14", 2, "2 notebooks (Cem_14"),
    "Cem_14_assignsubmission_file/13.ipynb": ("Cem", "14", 2, "each exercise counts"),
    "Dana Łoś_15_assignsubmission_onlinetext_/text.html": ("Dana Łoś", "15", 1, ""),
    "Dana Łoś_15_assignsubmission_file_/12.ipynb": ("Dana Łoś", "15", 1, ""),
    "Eli_16_assignsubmission_file_/12.ipynb": ("Eli", "16", 2, "2 submissions (Eli_16"),
    "Eli_16_assignsubmission_file_ (1)/12.ipynb": ("Eli", "16", 2, "2 submissions (Eli_16"),
    "Participant 17_17_assignsubmission_file_/12.ipynb": ("Participant 17", "17", 1, ""),
    "Fay_18_assignsubmission_file_/12.pdf": ("Fay", "18", 0, "handed in, only Fay_18_assign"),
    "Gil_19_assignsubmission_file_work.zip": ("Gil", "19", 0, "Unpack the zip file"),
    "Hal_20_assignsubmission_file_a.ipynb": ("Hal", "20", 2, "2 notebooks (Hal_20"),
    "Hal_20_assignsubmission_file_b.ipynb": ("Hal", "20", 2, "2 notebooks (Hal_20"),
    "Ida_21.ipynb": ("Ida_21", "", 1, ""),
    "Jo/12.ipynb": ("Jo", "", 1, ""),
    "__MACOSX/x.ipynb": None,
    ".hidden/x.ipynb": None,
    "list.csv": None,
}


def handed_in(folder: Path) -> Path:
    for name in MOODLE:
        write(folder / name, ANSWERS["nothing"])
    (folder / "Kim_22_assignsubmission_file_").mkdir()
    return folder


@pytest.mark.parametrize("how", ["folder", "zip", "zipped folder", "folder in a folder"])
def test_what_moodle_gives_out_is_whose_it_is(how: str, tmp_path: Path) -> None:
    there = tmp_path / "all" / "sub"
    handed_in(there)
    if "zip" in how:
        whole = how == "zipped folder"
        name = shutil.make_archive(str(tmp_path / "sub"), "zip", there.parent if whole else there)
        source = Path(name)
    else:
        source = there if how == "folder" else there.parent
    students, beside = submissions(source)
    result = {(one.student, one.number): one for one in students}
    assert beside == ["list.csv"] and len(result) == len(students)
    expected = {case[:2]: case for case in MOODLE.values() if case}
    assert set(result) == {*expected, ("Kim", "22")}
    assert "an empty folder" in " ".join(result["Kim", "22"].notes)
    for student, number, notebooks, note in filter(None, MOODLE.values()):
        one = result[student, number]
        assert len(one.notebooks) == notebooks
        assert note in " ".join(one.notes) and bool(one.notes) == bool(note)
    assert [one.student for one in students] == sorted((s for s, _ in result), key=str.casefold)


@pytest.mark.parametrize("spelling", ["NFC", "NFD"])
def test_one_name_in_two_spellings_is_one_student(spelling: Any, tmp_path: Path) -> None:
    write(tmp_path / unicodedata.normalize(spelling, "Zoë") / "12.ipynb", [])
    write(tmp_path / "Zoë.ipynb", [])
    ((one,), _) = submissions(tmp_path)
    assert one.student == "Zoë" and len(one.notebooks) == 2


@pytest.mark.parametrize(
    ("content", "words"), [(b"PK\x05\x06", "nor a zip file"), (b"", "nor a zip")]
)
def test_what_is_neither_folder_nor_zip_is_refused(
    content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        submissions(tmp_path / "a.zip")


def test_a_zip_file_of_nothing_or_cut_off_is_refused(tmp_path: Path) -> None:
    whole = Path(shutil.make_archive(str(tmp_path / "sub"), "zip", handed_in(tmp_path / "x")))
    data = bytearray(whole.read_bytes())
    data[len(data) // 3 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 3)
    whole.write_bytes(data)
    with pytest.raises(ValueError, match=r"sub\.zip cannot be unpacked"):
        submissions(whole)
    with zipfile.ZipFile(tmp_path / "none.zip", "w"):
        pass
    with pytest.raises(ValueError, match="holds neither a notebook"):
        submissions(tmp_path / "none.zip")


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("Anna Meier\nMuster, Max\nBO  LI\n", {"Muster, Max"}),
        ("Identifier,Full name,Grade\nParticipant 11,Anna Meier,-\nParticipant 3,Max,-\n", {"Max"}),
        ("First name,Last name\nAnna,Meier\nBo,Li\n", set()),
        ("Identifier,Full name\nParticipant 12,Anna Meier\n", {"Anna Meier"}),
        ("Identifier;Full name;Email\nParticipant 11;Anna Meier;a@x\n;Max;\n", {"Max"}),
        ("Identifier\tFull name\nParticipant 11\tAnna Meier\n\n", set()),
        ("sep=;\nname;email\nAnna Meier;a@x\nBo Li;b@x\n", set()),
        ("NAME\nAnna Meier\nBo Li\nMax\n", {"Max"}),
        ("Name,Full name\nx,Anna Meier\ny,Bo Li\n", set()),
        ("Meier;Anna\nLi;Bo\n", set()),
    ],
)
def test_who_handed_in_nothing_is_named(text: str, absent: set[str], tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(text, encoding="utf-8-sig")
    students = [Submission("Anna Meier", number="11"), Submission("Bo Li")]
    result = with_list(students, class_list(tmp_path / "list.csv"))
    assert {one.student for one in result if "Nothing was handed in." in one.notes} == absent
    here = {one.student for one in result if "Not on the list of students." in one.notes}
    assert here == ({"Bo Li"} if "Bo" not in text and "BO" not in text else set()) | (
        {"Anna Meier"} if "12" in text else set()
    )
    assert len(result) == 2 + len(absent)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe", b"Full name,Grade\n", None])
def test_a_class_list_without_names_is_refused(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "list.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"list\.csv (names no student|cannot be read)"):
        class_list(tmp_path / "list.csv")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ID,Vollständiger Name,E-Mail\nTeilnehmer/in11,Anna Meier,a@x\n", "line 1.*no header"),
        ("Student,Email\nAnna Meier,a@x\n", 'line 2.*no header that.*"Full name" or "Name"'),
        ("Anna Meier;11\n", "line 1.*no header"),
        ("Full name,Identifier\nAnna Meier\n", "line 2: 'Anna Meier' was.*full name, identifier"),
        ("Full name,Identifier\nMeier, Anna,Participant 11\n", "line 2.*comma in quotes"),
        ("Full name,Identifier\nBo Li,\n,\n,Participant 11\n", "line 4.*expected a name"),
    ],
)
def test_a_class_list_that_is_not_understood_is_refused(
    text: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "list.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"list\.csv, {says}"):
        class_list(tmp_path / "list.csv")


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
    with pytest.raises(SyntaxError, match="not valid Python"):
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
