"""Run the parts of `make test` one after the other and print how long each took.

    python tests/run.py                 all parts
    python tests/run.py lint package    some
    python tests/run.py quick           for those who edit: three minutes, no part of the whole

The exit status is 1 when anything failed. Each part counts checks: a test, a notebook cell, a run
of a linter.
"""

from __future__ import annotations

import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import psutil
import wheel_under_test
from limits import AGAINST_HANGING, kill_with_children
from unchanged import left_out, remember

import course_lib  # noqa: F401  sets how torch's threads wait; every part inherits it

os.environ["COURSE_LIB_PROGRESS"] = "off"  # of what tests answer no record is kept
ROOT = Path(__file__).resolve().parent.parent
# Of a page's kernel and what it starts. torch with CUDA takes 0.3 GB more in each such process.
BYTES_ALLOWED = (3 if find_spec("nvidia") else 2) * 2**30
CORES = os.cpu_count() or 1
# Pages at once, each with its kernel and, in the browser part, a browser.
PAGES_AT_ONCE = max(1, min(CORES, psutil.virtual_memory().total // (2 * BYTES_ALLOWED)))
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # for each of the processes that run side by side


@dataclass(frozen=True)
class Outcome:
    """How many checks of a part passed, failed, were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )


def verdict(good: bool, what: str) -> Outcome:
    """One check: printed, and counted."""
    print(f"{'ok    ' if good else 'FAILED'}  {what}", flush=True)
    return Outcome(passed=1) if good else Outcome(failed=1)


def command(what: str, *arguments: str) -> Outcome:
    """Run a Python module of the environment; one check, which passes when its exit status is 0."""
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT)
    return verdict(done.returncode == 0, what)


def pytest(
    *arguments: str,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    runner: tuple[str, ...] = ("-m", "pytest"),
    seconds: float | None = None,
    output: Path | None = None,
) -> Outcome:
    """Run pytest in a process of its own and count what its JUnit report counts. After `seconds`
    it is killed with all that it started. What it says goes to `output`, where that is given."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        call = [sys.executable, *runner, "-q", f"--junitxml={report}", *arguments]
        status = run_or_kill(call, cwd, env, seconds, output)
        if not report.exists():
            why = "killed: it hung" if status is None else "stopped before it could report"
            return verdict(False, f"pytest {' '.join(arguments)}: {why}")
        outcome = _counted(report)
    if status not in (0, 1) or (status == 1 and not outcome.failed):
        outcome += verdict(False, f"pytest {' '.join(arguments)}: exit status {status}")
    return outcome


def run_or_kill(
    call: list[str],
    cwd: Path,
    env: dict[str, str] | None,
    seconds: float | None,
    output: Path | None,
) -> int | None:
    """The exit status of that command, or None where it had to be killed with its children."""
    with open(output or os.devnull, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            call,
            cwd=cwd,
            env=env,
            stdout=file if output else None,
            stderr=subprocess.STDOUT if output else None,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                kill_with_children(process.pid)
                process.wait()


def _counted(report: Path) -> Outcome:
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    tests, skipped = (sum(int(s.get(key, 0)) for s in suites) for key in ("tests", "skipped"))
    failed = sum(int(s.get(key, 0)) for s in suites for key in ("failures", "errors"))
    return Outcome(tests - failed - skipped, failed, skipped)


def lint() -> Outcome:
    """Style, imports and types."""
    ruff = command("ruff", "ruff", "check", ".")
    return ruff + command("mypy", "mypy")


def on_all_cores(*arguments: str, processes: int = CORES) -> Outcome:
    """pytest in a process for each core, each computing with one thread; where most of the time
    goes is told. What is timed, or compared with results that two threads made, must not run so."""
    return pytest(*arguments, "-n", str(processes), "--durations=10", env=os.environ | ONE_THREAD)


OWN_PART = ("test_exercises*.py", "test_notebooks.py", "test_decks.py")


def package() -> Outcome:
    """Everything in tests/ that no other part runs."""
    ignored = [f"--ignore-glob=*{name}" for name in OWN_PART]
    return on_all_cores("tests", "--ignore=tests/browser", *ignored, "--dist=loadfile")


def exercises() -> Outcome:
    files = sorted(glob.glob("tests/**/test_exercises*.py", root_dir=ROOT, recursive=True))
    if not files:
        return verdict(False, "no test_exercises*.py found in tests/")
    return on_all_cores(*files, "--dist=worksteal")


def notebooks() -> Outcome:
    """The saved notebooks' guards; then every one of them run."""
    return pytest("tests/test_notebooks.py") + pages()


def pages(*numbers: str) -> Outcome:
    """Every notebook, or those numbers, run against the built wheel, offline."""
    with tempfile.TemporaryDirectory() as folder:
        place = wheel_under_test.prepare(Path(folder), numbers)
        outcome = verdict(*place.probe())
        outcome += run_notebooks(place)
        outcome += _within_budget(place.budget)
        log = place.network_log.read_text(encoding="utf-8")
        outcome += verdict(
            not log, "the kernels asked for nothing beyond this machine" + _quoted(log)
        )
    return outcome


def run_notebooks(place: wheel_under_test.Place, seconds: float = AGAINST_HANGING) -> Outcome:
    """nbval over the notebooks of that place: errors, and outputs of tagged cells, are failures.
    Each page has a process of its own, so that a kernel which hangs or dies is that page's alone.
    Where several run at once each has one thread: two training steps side by side take 38 ms, one
    after the other 34 ms each."""
    every = sorted(place.empty.glob("*.ipynb"))
    unchanged = left_out(every)
    pages = [page for page in every if page not in unchanged]
    for page in unchanged:
        print(f"skipped  {page.name}: it passed, and nothing it reads has changed", flush=True)
    at_once = min(PAGES_AT_ONCE, len(pages))
    threads = ONE_THREAD if at_once > 1 else {}
    with ThreadPoolExecutor(max(1, at_once)) as pool:
        ran = list(pool.map(lambda page: _run_page(place, page, seconds, threads), pages))
    for page, (outcome, _) in zip(pages, ran, strict=True):
        remember(page, good=not outcome.failed)
    spent = {page.name: spent for page, (_, spent) in zip(pages, ran, strict=True) if spent}
    place.budget.write_text(json.dumps(spent), encoding="utf-8")
    return sum((outcome for outcome, _ in ran), Outcome(skipped=len(unchanged)))


def _run_page(
    place: wheel_under_test.Place, page: Path, seconds: float, threads: dict[str, str]
) -> tuple[Outcome, list[float]]:
    """One notebook's outcome, and its seconds and peak memory where it got as far as a cell."""
    beside = place.budget.with_name(f"{place.budget.name}.{page.stem}")
    mine, said = replace(place, budget=beside), beside.with_name(f"{beside.name}.txt")
    outcome = pytest(
        *("--nbval-lax", "--nbval-current-env", "-W", "ignore::pytest.PytestAssertRewriteWarning"),
        f"--nbval-kernel-startup-timeout={AGAINST_HANGING}",
        *("-p", "no:cacheprovider", "--durations=4", f"--rootdir={place.empty}", str(page)),
        cwd=place.empty,
        env=mine.env | threads | {"NOTEBOOK_SECONDS": str(seconds)},
        runner=(str(ROOT / "tests" / "notebook_budget.py"),),
        seconds=seconds + AGAINST_HANGING,  # it stops itself and says where: else it is killed
        output=said,
    )
    print(f"{page.name}\n{said.read_text(encoding='utf-8')}", end="", flush=True)
    spent = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else []
    return outcome, spent[:2]


def _quoted(log: str) -> str:
    return "".join(f"\n          {line}" for line in sorted(set(log.splitlines()))[:10])


def _within_budget(path: Path) -> Outcome:
    """Each page's memory is checked; its time, which other work lengthens, is only told."""
    outcome, spent = Outcome(), json.loads(path.read_text(encoding="utf-8"))
    for name, (seconds, peak) in sorted(spent.items()):
        size = f"{peak / 2**30:.2f} GB (limit {BYTES_ALLOWED / 2**30:.0f})"
        what = f"{name}: {size}, {seconds:.0f} s (designed for 120 on two quiet cores)"
        outcome += verdict(peak <= BYTES_ALLOWED, what)
    total = sum(seconds for seconds, _ in spent.values())
    how = f"{PAGES_AT_ONCE} at once, one thread each" if PAGES_AT_ONCE > 1 else "one by one"
    return outcome + verdict(total > 0 or not spent, f"notebooks: {total:.0f} s of pages, {how}")


def decks() -> Outcome:
    return on_all_cores("tests/test_decks.py", "--dist=loadgroup")


def browser() -> Outcome:
    return on_all_cores("tests/browser", "--dist=loadgroup", processes=PAGES_AT_ONCE)


QUICK = (  # what sees most mistakes of an edit within three minutes, lint included
    *("tests/test_rooms.py", "tests/test_names.py", "tests/test_notebooks.py"),
    *("tests/teaching/test_numbers.py", "tests/teaching/test_quizzes.py"),
    *("tests/library/test_bert.py", "tests/library/test_masking.py"),
    *("tests/library/test_wordpiece.py", "tests/library/test_training.py"),
)


def quick() -> Outcome:
    """For those who edit; everything else is for the whole run."""
    return lint() + on_all_cores(*QUICK, "--dist=worksteal")


PARTS: dict[str, Callable[[], Outcome]] = {
    "lint": lint,
    "package": package,
    "exercises": exercises,
    "notebooks": notebooks,
    "decks": decks,
    "browser": browser,
}
EXTRA = {"quick": quick}  # only where it is asked for


def main(names: list[str]) -> int:
    parts = PARTS | EXTRA
    if unknown := [name for name in names if name not in parts]:
        print(f"Unknown part {unknown[0]!r}; there are: {', '.join(parts)}", file=sys.stderr)
        return 2
    rows: list[tuple[str, float, Outcome]] = []
    for name in names or PARTS:
        print(f"\n=== {name} " + "=" * (74 - len(name)), flush=True)
        started = time.monotonic()
        outcome = parts[name]()
        rows.append((name, time.monotonic() - started, outcome))
    return _summary(rows)


def _summary(rows: list[tuple[str, float, Outcome]]) -> int:
    print(f"\n{'part':<12}{'wall time':>10}{'passed':>9}{'failed':>9}{'skipped':>9}")
    for name, seconds, o in rows:
        print(f"{name:<12}{seconds:>8.1f} s{o.passed:>9}{o.failed:>9}{o.skipped:>9}")
    seconds, all_ = sum(row[1] for row in rows), sum((row[2] for row in rows), Outcome())
    print(
        f"\n{all_.passed} passed, {all_.failed} failed, {all_.skipped} skipped "
        f"in {seconds:.1f}s ({int(seconds // 60)} min {seconds % 60:.0f} s)"
    )
    if any(name == "browser" and not (o.passed or o.failed) for name, _, o in rows):
        print("\n*** THE BROWSER PART WAS SKIPPED: install Chromium to see the pages tested. ***")
    return 1 if all_.failed else 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
