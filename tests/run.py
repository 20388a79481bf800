"""Run the parts of `make test` one after the other and print how long each took.

    python tests/run.py                 all parts
    python tests/run.py lint package    some

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
from dataclasses import dataclass
from pathlib import Path

import wheel_under_test

ROOT = Path(__file__).resolve().parent.parent
SECONDS_ALLOWED = 180  # a notebook is designed for 120 s; the rest is for a busy machine
BYTES_ALLOWED = 2 * 2**30
CORES = os.cpu_count() or 1


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
) -> Outcome:
    """Run pytest in a process of its own and count what its JUnit report counts."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        done = subprocess.run(
            [sys.executable, *runner, "-q", f"--junitxml={report}", *arguments], cwd=cwd, env=env
        )
        if not report.exists():
            return verdict(False, f"pytest {' '.join(arguments)}: stopped before it could report")
        outcome = _counted(report)
    if done.returncode not in (0, 1) or (done.returncode == 1 and not outcome.failed):
        outcome += verdict(False, f"pytest {' '.join(arguments)}: exit status {done.returncode}")
    return outcome


def _counted(report: Path) -> Outcome:
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    tests, skipped = (sum(int(s.get(key, 0)) for s in suites) for key in ("tests", "skipped"))
    failed = sum(int(s.get(key, 0)) for s in suites for key in ("failures", "errors"))
    return Outcome(tests - failed - skipped, failed, skipped)


def lint() -> Outcome:
    """Style, imports and types."""
    ruff = command("ruff", "ruff", "check", ".")
    return ruff + command("mypy", "mypy")


def on_all_cores(*arguments: str) -> Outcome:
    """pytest in a process for each core, each computing with one thread. What is timed, or
    compared with results that two threads made, must not run so."""
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    return pytest(*arguments, "-n", str(CORES), env=one_thread)


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
    """The saved notebooks' guards; then every notebook run against the built wheel, offline."""
    outcome = pytest("tests/test_notebooks.py")
    with tempfile.TemporaryDirectory() as folder:
        place = wheel_under_test.prepare(Path(folder))
        outcome += verdict(*place.probe())
        outcome += run_notebooks(place)
        outcome += _within_budget(place.budget)
        log = place.network_log.read_text(encoding="utf-8")
        outcome += verdict(
            not log, "the kernels asked for nothing beyond this machine" + _quoted(log)
        )
    return outcome


def run_notebooks(place: wheel_under_test.Place) -> Outcome:
    """nbval over the notebooks of that place: errors, and outputs of tagged cells, are failures."""
    options = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=300"]
    alone = ["-p", "no:cacheprovider", f"--rootdir={place.empty}", str(place.empty)]
    runner = (str(ROOT / "tests" / "notebook_budget.py"),)
    return pytest(*options, *alone, cwd=place.empty, env=place.env, runner=runner)


def _quoted(log: str) -> str:
    return "".join(f"\n          {line}" for line in sorted(set(log.splitlines()))[:10])


def _within_budget(path: Path) -> Outcome:
    outcome = Outcome()
    spent = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name, (seconds, peak) in sorted(spent.items()):
        good = seconds <= SECONDS_ALLOWED and peak <= BYTES_ALLOWED
        what = f"{name}: {seconds:.0f} s (designed for 120), {peak / 2**30:.2f} GB (limit 2)"
        outcome += verdict(good, what)
    total = sum(seconds for seconds, _ in spent.values())
    return outcome + verdict(0 < total <= 15 * 60, f"all notebooks: {total:.0f} s (limit 900)")


def decks() -> Outcome:
    return on_all_cores("tests/test_decks.py", "--dist=loadgroup")


def browser() -> Outcome:
    return on_all_cores("tests/browser", "--dist=loadgroup")


PARTS: dict[str, Callable[[], Outcome]] = {
    "lint": lint,
    "package": package,
    "exercises": exercises,
    "notebooks": notebooks,
    "decks": decks,
    "browser": browser,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"Unknown part {unknown[0]!r}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    rows: list[tuple[str, float, Outcome]] = []
    for name in names or PARTS:
        print(f"\n=== {name} " + "=" * (74 - len(name)), flush=True)
        started = time.monotonic()
        outcome = PARTS[name]()
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
