"""The runner: what it counts, what it does with a page that hangs, what every part inherits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
import run
import unchanged
import wheel_under_test
from limits import AGAINST_HANGING

ROOT = Path(__file__).resolve().parent.parent
PID = "import os\nopen('{}.pid', 'w').write(str(os.getpid()));"


def place_with(folder: Path, **pages: list[str]) -> wheel_under_test.Place:
    """A place whose notebooks have these cells; those that print are compared, with 3."""
    for name, texts in pages.items():
        cells = [nbformat.v4.new_code_cell(text) for text in texts]
        for cell in cells:
            if cell.source.startswith("print"):
                cell.metadata["tags"], cell.execution_count = ["nbval-check-output"], 1
                cell.outputs = [nbformat.v4.new_output("stream", text="3\n")]
        notebook = nbformat.v4.new_notebook(cells=cells)
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, folder / f"{name}.ipynb")
    home, budget = folder / "home", folder / "budget.json"
    return wheel_under_test.Place(folder, folder, home, budget, folder / "network.log")


def kernel_runs(folder: Path, page: str) -> bool:
    return psutil.pid_exists(int((folder / f"{page}.pid").read_text()))


def test_runner_counts_failures_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_mixed.py").write_text(
        "import pytest\ndef test_good(): pass\ndef test_bad(): assert 0\n"
        "def test_left_out(): pytest.skip('here')\n"
    )
    mixed = run.pytest(str(tmp_path), cwd=tmp_path)
    assert mixed == run.Outcome(passed=1, failed=1, skipped=1)
    monkeypatch.setattr(run, "PARTS", {"mixed": lambda: mixed})
    assert run.main(["mixed"]) == 1
    assert "1 passed, 1 failed, 1 skipped" in capsys.readouterr().out
    assert run.main(["nonsense"]) == 2
    assert run.pytest(str(tmp_path / "absent"), cwd=tmp_path).failed == 1


def test_notebook_run_compares_tagged_outputs_and_sees_errors(tmp_path: Path) -> None:
    """The very command that runs the course's notebooks, on one that is wrong in two ways."""
    place = place_with(tmp_path, wrong=["print(3)", "print(4)", "1 / 0", "5"])
    assert run.run_notebooks(place) == run.Outcome(passed=2, failed=2)
    seconds, peak = json.loads(place.budget.read_text())["wrong.ipynb"]
    assert seconds > 0 and peak > 10 * 2**20


def test_a_page_that_hangs_or_loses_its_kernel_is_one_failure(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its kernel is gone, later cells are not counted, and the other pages pass."""
    dies = ["import os\nos._exit(1)", "1"]
    deaf = ["try:\n    while True: pass\nexcept KeyboardInterrupt: pass", "2"]
    hangs = ["while True: pass", "3"]
    pages = {"a_hangs": hangs, "b_deaf": deaf, "c_dies": dies, "d": ["4"]}
    place = place_with(tmp_path, **{k: [PID.format(k), *v] for k, v in pages.items()})
    assert run.run_notebooks(place, seconds=10) == run.Outcome(passed=3 + 2, failed=3)
    told = capfd.readouterr().out
    assert "Cell 1 hung" in told and "the kernel died" in told
    assert not any(kernel_runs(tmp_path, page) for page in pages)
    assert set(json.loads(place.budget.read_text())) == {p.name for p in tmp_path.glob("*.ipynb")}


def test_a_process_that_hangs_is_killed_with_its_kernel(tmp_path: Path) -> None:
    """Where a page's process itself no longer answers."""
    sleeps = "import time; time.sleep(999)"
    starts = f"import subprocess as s, sys; print(s.Popen([sys.executable, '-c', {sleeps!r}]).pid)"
    call, said = [sys.executable, "-u", "-c", f"{starts}; {sleeps}"], tmp_path / "said"
    assert run.run_or_kill(call, tmp_path, None, 15, said) is None
    child = int(said.read_text())
    psutil.wait_procs([psutil.Process(child)] if psutil.pid_exists(child) else [], timeout=60)
    assert not psutil.pid_exists(child)


def test_a_page_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pages \['99'\] were given"):
        wheel_under_test.prepare(tmp_path, ("02", "99"))


def test_time_is_told_and_memory_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BYTES_ALLOWED", 2 * 2**30)
    budget = tmp_path / "budget.json"
    budget.write_text(json.dumps({"slow": [3 * AGAINST_HANGING, 10], "large": [1, 3 * 2**30]}))
    assert run._within_budget(budget) == run.Outcome(passed=2, failed=1)
    told = capsys.readouterr().out
    assert "ok      slow: 0.00 GB (limit 2), 5400 s (designed for 120" in told
    assert "FAILED  large: 3.00 GB" in told


@pytest.mark.parametrize("own", [{}, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "ACTIVE"}])
def test_the_package_sets_how_threads_wait_unless_the_user_did(own: dict[str, str]) -> None:
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    ask = f"import os, course_lib; print([os.environ.get(name) for name in {names}])"
    env = {k: v for k, v in os.environ.items() if k not in names} | own
    done = subprocess.run(
        [sys.executable, "-c", ask], env=env, cwd=ROOT, capture_output=True, text=True, check=True
    )
    expected = own or {"GOMP_SPINCOUNT": "10000"}
    assert done.stdout.strip() == str([expected.get(name) for name in names])


def test_pages_that_passed_and_did_not_change_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "pyproject.toml", "constraints.txt", "data/MANIFEST.sha256", "notebooks/05_b.ipynb",
        "notebooks/04_a.ipynb", "course_lib/encoder.py", "course_lib/lectures/lecture_04/quiz.toml",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(unchanged, "ROOT", tmp_path)
    monkeypatch.setattr(unchanged.stands_on, "__defaults__", (tmp_path,))
    monkeypatch.setattr(unchanged, "KEPT", tmp_path / "build" / "passed.json")
    monkeypatch.setenv(unchanged.SWITCH, "1")
    monkeypatch.delenv("CI", raising=False)
    pages = sorted((tmp_path / "notebooks").glob("*.ipynb"))
    assert unchanged.left_out(pages) == []
    for page in (*pages, tmp_path / "made_by_a_test.ipynb"):
        unchanged.remember(page, good=True)
    assert unchanged.left_out(pages) == pages

    (tmp_path / "course_lib/lectures/lecture_04/quiz.toml").write_text("another")
    assert unchanged.left_out(pages) == pages[1:]  # its own room: the other page stays out
    unchanged.remember(pages[1], good=False)
    assert unchanged.left_out(pages) == []
    unchanged.remember(pages[1], good=True)
    for name, value in ((unchanged.SWITCH, ""), ("CI", "true")):
        with monkeypatch.context() as here:
            here.setenv(name, value)
            assert unchanged.left_out(pages) == []
    (tmp_path / "course_lib/encoder.py").write_text("another")
    assert unchanged.left_out(pages) == []
