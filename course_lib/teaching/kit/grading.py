"""Grade a folder of submitted notebooks: two tables (CSV) and a report for each student.

    python -m course_lib.teaching.kit.grading submitted --exercises 12 03.1 --out graded

`submitted` holds `name.ipynb` for each student, or a folder `name/` with notebooks, as learning
platforms deliver them, or it is a zip file of these; from Moodle's names, such as
`Anna Meier_123456_assignsubmission_file_`, the student's name and number are read. `--exercises`
names what is graded: exercises, or lectures for all they have. `totals.csv` has a line for each
student, with points, percent, and what is unusual (no notebook, two submissions); `--students LIST`
adds those who handed in nothing, from a list of names or Moodle's grading worksheet. `grades.csv`
has a line for each answer.

Every answer runs in its own process, which starts in an empty folder with a clean environment and
is ended with everything it started. A notebook is not run: only the statements that an answer needs
are. The cases are drawn from a seed that students do not know: `--seed`, or
one drawn now and printed for you. All students get the same cases, and a second run with the same
seed gives the same table. Keep the seed to yourself while students may still hand in again.

An answer takes a few seconds, mostly to load torch; `--jobs` grades several at once.

What it protects against: accidents. An endless loop, a crash, too much memory (on Linux), an
endless file (not on Windows), a call to the network, a process left behind: each affects only its
own answer.

What it does NOT protect against: a student who wants to do harm. It is no sandbox. An answer runs
with your rights: it can read and delete any file that you can. It runs in the same process as the
check, so it can look at the check, or pretend to have passed. If you do not trust the notebooks,
run the command in a container or a virtual machine that holds nothing else, and read an answer
before you trust its points."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import course_lib
from course_lib.files import write_atomic

from ..exercises import all_exercises
from ..exercises.form import Exercise
from ..exercises.machinery import all_stages
from ..exercises.outputs import printable
from .report import STATUSES, Row, as_csv, file_name, report_page, totals_csv
from .submissions import Needed, Submission, class_list, needed, submissions, with_list

SEEDS = 2**48  # a seed is multiplied by 1,000 where cases are drawn, and must fit 63 bits then


@dataclass(frozen=True)
class Limits:
    """What an answer may take. seconds: of the wall clock, and of the processor, for all stages;
    stage_seconds: of the processor for one stage; memory: MB, beyond what the course's own code
    takes."""

    seconds: int = 60
    stage_seconds: float = 10.0
    memory: int = 2048
    start: int = 60  # seconds of the wall clock more, for Python and torch to be loaded


@dataclass(frozen=True)
class Job:
    """An answer to be run."""

    exercise: str
    notebook: str
    answer: Needed
    seed: int
    limits: Limits


def grade(
    folder: Path,
    exercises: Sequence[str],
    out: Path,
    seed: int | None = None,
    limits: Limits | None = None,
    jobs: int = 1,
    listed: Sequence[tuple[str, str]] = (),
) -> list[Row]:
    """Grade every student of the folder and write grades.csv, totals.csv and reports/ into `out`.

    All are written under a temporary name and renamed, after each student, so that an interrupted
    run has left what was done by then. listed: (name, number) of the whole class, where it is
    known. Raises ValueError for unknown exercises, for a folder without submissions and for an
    `out` that holds something."""
    tasks = chosen(exercises)
    students, beside = submissions(folder)
    students = with_list(students, listed) if listed else students
    limits = limits or Limits()
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; name a new folder.")
    if out.exists() and any(out.iterdir()):
        raise ValueError(f"{out} is not empty; name a new folder, so that no grades are lost.")
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    rows: list[Row] = []
    done: list[tuple[Submission, list[Row]]] = []
    if beside:
        print(f"Nobody's submission, ignored: {', '.join(beside)}")
    pool = ThreadPoolExecutor(max(1, jobs))
    try:
        started = [
            (student, [pool.submit(_done, *work) for work in _work(student, tasks, seed, limits)])
            for student in students
        ]
        for student, answers in started:
            own = [*_broken(student), *(answer.result() for answer in answers)]
            rows += own
            done.append((student, own))
            report = out / "reports" / f"{file_name(student.student)}.html"
            write_atomic(report, report_page(student.student, own, student.notes))
            write_atomic(out / "grades.csv", as_csv(rows))
            write_atomic(out / "totals.csv", totals_csv(done, {x.id: x.minutes for x in tasks}))
            passed = len({row.exercise for row in own if row.status == "passed"})
            counted = f"{student.student}: {passed} of {len(tasks)} passed."
            print(" ".join([counted, *student.notes]), flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C: what has not begun is left
    return rows


def chosen(names: Sequence[str]) -> list[Exercise]:
    """The exercises of these numbers, and of these lectures. Raises ValueError."""
    known = all_exercises()
    result: dict[str, Exercise] = {}
    for name in names:
        these = {id: known[id] for id in known if id == name or id[:2] == name}
        if not these:
            raise ValueError(
                f"{name!r} is to be graded; expected an exercise (12.1) or a lecture (12). "
                f"There are: {', '.join(known)}."
            )
        result |= these
    if not result:
        raise ValueError("nothing is to be graded; name exercises (12.1) or lectures (12).")
    return list(result.values())


def seed_of(seed: int, exercise: str) -> int:
    """The seed of an exercise's cases: the same for all students, and not told by another's."""
    return int(hashlib.sha256(f"{seed}/{exercise}".encode()).hexdigest(), 16) % SEEDS


def _broken(student: Submission) -> Iterator[Row]:
    for name, why in student.broken.items():
        yield Row(student.student, name, status="broken notebook", said=why)


def _work(
    student: Submission, exercises: Sequence[Exercise], seed: int, limits: Limits
) -> Iterator[tuple[Row, Job | None]]:
    """What there is to do for a student: rows, those with an answer with a job. An exercise that
    stands in two notebooks has two rows; one that stands in none has one."""
    for exercise in exercises:
        row = Row(student.student, exercise=exercise.id, of=exercise.minutes,
                  stages=len(all_stages(exercise)))  # fmt: skip
        there = False
        for notebook, cells in student.notebooks.items():
            here = replace(row, notebook=notebook)
            try:
                answer = needed(cells, exercise.id, exercise.name)
            except (SyntaxError, ValueError, RecursionError) as error:
                there = True
                yield replace(here, status="no Python", said=str(error)), None
                continue
            if answer is not None:
                there = True
                yield here, Job(exercise.id, notebook, answer, seed_of(seed, exercise.id), limits)
        if not there:
            yield replace(row, status="missing", said=f"{STATUSES['missing'].capitalize()}."), None


def _done(row: Row, job: Job | None) -> Row:
    """The row, with what came of its job."""
    if job is None:
        return row
    try:
        outcome = run(job)
    except OSError as error:
        outcome = _ended("crashed", f"The answer's process could not be run: {error}.")
    stages = tuple(outcome.get("stages", ()))
    passed = sum(1 for _, good in stages if good)
    stopped = next((name for name, good in stages if good is False), "")
    return replace(
        row, status=outcome["status"], said=outcome["message"], how=outcome.get("how", ""),
        stages_passed=passed, points=round(row.of * passed / max(1, row.stages), 1),
        stopped_at=stopped, passed=stages, asked=", ".join(outcome.get("asked", ())),
    )  # fmt: skip


# ---------------------------------------------------------------- a process for an answer


def run(job: Job) -> dict[str, Any]:
    """What came of an answer, run in a process of its own: its report, or how the process ended."""
    with tempfile.TemporaryDirectory(prefix="grading", ignore_cleanup_errors=True) as folder:
        result = Path(folder, "result", "result.json")
        home = Path(folder, "home")
        home.mkdir()
        call = [*_apart(), sys.executable, "-m", "course_lib.teaching.kit.answering"]
        process = subprocess.Popen(
            call, cwd=home, env=_environment(home), stdin=subprocess.PIPE, encoding="utf-8",
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        request = json.dumps(asdict(job) | {"result": str(result)})
        try:
            process.communicate(request, timeout=job.limits.seconds + job.limits.start)
        except subprocess.TimeoutExpired:
            return _ended("time", f"The answer did not finish in {job.limits.seconds} seconds.")
        finally:
            end(process)
        if result.exists():
            return _read(result)
    return _how_it_ended(process.returncode)


def _read(result: Path) -> dict[str, Any]:
    """What the process has written; nothing in it is taken for granted."""
    try:
        record: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        if record["status"] in STATUSES:
            stages = [(printable(str(name)), good) for name, good in record.get("stages", [])]
            if all(good in (True, False, None) for _, good in stages):
                refused = [str(one) for one in record["asked"]]
                message = printable(str(record["message"]))
                how = str(record.get("how", ""))
                return {"status": record["status"], "message": message, "how": how,
                        "stages": stages, "asked": refused}  # fmt: skip
    except (ValueError, KeyError, TypeError, OSError):
        pass
    return _ended("crashed", "The process wrote something that is not a result.")


def _how_it_ended(status: int) -> dict[str, Any]:
    end = f"signal {-status}" if status < 0 else f"exit status {status}"
    return _ended(
        "crashed",
        f"The process ended without a result ({end}): the answer ended it, or ran out of memory.",
    )


def _ended(status: str, message: str) -> dict[str, Any]:
    return {"status": status, "message": message, "how": status}


def end(process: subprocess.Popen[str]) -> None:
    """Kill the process, if it still runs, and all that is left of its group."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True)
    process.wait()


def _environment(home: Path) -> dict[str, str]:
    """Nothing of yours but what Python needs: no tokens, no names, no settings."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
    above = Path(course_lib.__file__).resolve().parent.parent
    path = [os.environ.get("PYTHONPATH", "")]
    if above.name not in ("site-packages", "dist-packages"):
        path = [str(above), *path]
    return kept | {
        "HOME": str(home), "USERPROFILE": str(home), "TMPDIR": str(home), "TEMP": str(home),
        "PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1", "COURSE_LIB_CACHE": str(home / "cache"),
        "HF_HUB_OFFLINE": "1", "COURSE_LIB_PROGRESS": "off",
    }  # fmt: skip


@cache
def _apart() -> tuple[str, ...]:
    """The command before Python that takes the network away and ends all processes with the first,
    where the system offers it (Linux, user namespaces allowed); else nothing."""
    unshare = shutil.which("unshare")
    if sys.platform != "linux" or unshare is None:
        return ()
    call = (unshare, "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child")
    tried = subprocess.run([*call, "true"], capture_output=True)
    return call if tried.returncode == 0 else ()


def protection() -> list[str]:
    """What this system keeps an answer from, in words."""
    linux, posix = sys.platform == "linux", os.name == "posix"
    apart = bool(_apart())
    return [
        "Time: the process is ended when its time is up, with "
        + ("all that it has started." if apart or not posix else "its process group."),
        "Memory: " + ("limited." if linux else "NOT limited on this system."),
        "Size of files: " + ("limited." if posix else "NOT limited on this system."),
        "Network: " + ("the process has none." if apart else "refused to Python's sockets only."),
        "Files, and the check itself: NOT protected. This is no sandbox.",
    ]


def main() -> None:
    about, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the submitted notebooks, or their zip file")
    parser.add_argument("--exercises", nargs="+", required=True, help="like 12.1, or 12 for all")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--students", type=Path, help="the class list, to name absent students")
    parser.add_argument("--seed", type=int, help="your secret, a long number; drawn if left out")
    parser.add_argument("--seconds", type=int, default=Limits.seconds, help="for an answer (60)")
    parser.add_argument("--memory", type=int, default=Limits.memory, help="MB for an answer (2048)")
    parser.add_argument("--jobs", type=int, default=1, help="answers at once (1)")
    options = parser.parse_args()
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    print("\n".join(protection()))
    try:
        listed = class_list(options.students) if options.students else []
        limits = Limits(options.seconds, memory=options.memory)
        rows = grade(
            options.folder, options.exercises, options.out, seed, limits, options.jobs, listed
        )
    except ValueError as error:
        raise SystemExit(str(error)) from error
    print(
        f"One line per student in {options.out / 'totals.csv'}, {len(rows)} answers in "
        f"{options.out / 'grades.csv'}; the seed, for your eyes only: {seed}"
    )


if __name__ == "__main__":
    main()
