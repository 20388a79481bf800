"""What Windows and macOS would break, as far as it can be read or simulated on this machine."""

from __future__ import annotations

import ast
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from course_lib import files
from course_lib.teaching.exercises import calling

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("course_lib", "notebooks/source", "slides/source")  # what students run
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
POSIX_MODULES = {"fcntl", "grp", "pwd", "pty", "resource", "termios", "tty"}
POSIX_NAMES = {
    "fork", "forkpty", "getuid", "geteuid", "getpgid", "killpg", "mkfifo", "setsid", "sysconf",
    "SIGKILL", "SIGHUP", "SIGUSR1", "start_new_session", "preexec_fn",
}  # fmt: skip
GUARDS = "win32|os.name|hasattr|except"
RESERVED = re.compile(r"(aux|con|nul|prn|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def calls(path: Path) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            of = node.func
            yield node, of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")


def without_encoding(path: Path) -> list[str]:
    """Calls that read or write text in whatever code the system has (cp1252 on Windows)."""
    found = []
    for call, name in calls(path):
        given = {word.arg for word in call.keywords}
        if "encoding" in given or ast.unparse(call.func) == "Image.open":
            continue
        place = {"read_text": 0, "write_text": 1}.get(name)
        text = place is not None and len(call.args) <= place
        if name == "open":
            place = 0 if isinstance(call.func, ast.Attribute) else 1
            mode = [word.value for word in call.keywords if word.arg == "mode"]
            mode += call.args[place : place + 1]
            text = not any("b" in str(getattr(m, "value", "")) for m in mode)
        if text or (name in ("run", "Popen", "check_output") and "text" in given):
            found.append(f"{path.name}:{call.lineno}: {ast.unparse(call)[:80]}")
    return found


def test_every_text_file_is_opened_with_its_encoding() -> None:
    assert [line for path in SOURCES for line in without_encoding(path)] == []


@pytest.mark.parametrize(
    ("code", "faulty"),
    [
        ("p.read_text()", True), ("p.read_text(encoding='utf-8')", False),
        ("p.write_text('x')", True), ("open('x')", True), ("open('x', 'rb')", False),
        ("p.open('a')", True), ("p.open(mode='wb')", False),
        ("subprocess.run(['x'], text=True)", True), ("subprocess.run(['x'])", False),
    ],
)  # fmt: skip
def test_a_missing_encoding_is_seen(code: str, faulty: bool, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code, encoding="utf-8")
    assert bool(without_encoding(tmp_path / "a.py")) is faulty


def test_what_only_posix_has_is_used_behind_a_question() -> None:
    """In a function that asks for the platform, or catches what its absence raises."""
    found, any_posix = [], re.compile("|".join(POSIX_MODULES | POSIX_NAMES))
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        if not any_posix.search(text):
            continue
        tree = ast.parse(text)
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        for node in ast.walk(tree):
            names = {a.name for a in node.names} if isinstance(node, ast.Import) else set()
            word = getattr(node, "attr", getattr(node, "arg", ""))
            if not names & POSIX_MODULES and word not in POSIX_NAMES:
                continue
            around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
            if not any(re.search(GUARDS, ast.get_source_segment(text, f) or "") for f in around):
                found.append(f"{path.name}:{node.lineno}")
    assert found == []


def test_no_path_is_put_together_by_hand() -> None:
    """Of a temporary folder, or of a home, the system is asked."""
    wrong = re.compile(r"""["'](/tmp|/home|/var|~/|C:\\)|shell=True|os\.system\(|os\.rename\(""")
    found = [
        f"{path.name}: {line.strip()[:80]}"
        for path in SOURCES
        for line in path.read_text(encoding="utf-8").splitlines()
        if wrong.search(line)
    ]
    assert found == []


# ---------------------------------------------------------------- the checkout


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    call = ["git", "ls-files", "-z"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.split("\0")[:-1]


def test_every_file_name_can_be_one_on_windows_and_on_a_mac() -> None:
    names = tracked()
    assert len(names) > 500
    parts = {part for name in names for part in name.split("/")}
    assert [p for p in parts if re.search(r'[:*?"<>|\\]|[ .]$', p) or RESERVED.match(p)] == []
    assert len({name.casefold() for name in names}) == len(names)  # neither tells a from A
    assert max(map(len, names)) < 120  # Windows allows 260 with the folder before


def test_git_leaves_line_ends_alone_on_windows(tmp_path: Path) -> None:
    """Checked out as git for Windows does, data/ still is what its manifest says."""
    tracked()
    attributes = (ROOT / ".gitattributes").read_text(encoding="utf-8")
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in ("data", "code"):
        (here / folder).mkdir(parents=True)
        (here / folder / "a.txt").write_bytes(b"one\ntwo\n")
    (here / "data" / "b.txt").write_bytes(b"one\r\ntwo\r\n")
    (here / ".gitattributes").write_text(attributes, encoding="utf-8")
    windows = ["git", "-c", "core.autocrlf=true", "-c", "core.safecrlf=false"]
    named = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for call in (["init", "-q"], ["add", "."], [*named, "commit", "-qm", "x"]):
        subprocess.run([*windows, *call], cwd=here, check=True)
    subprocess.run([*windows, "clone", "-q", str(here), str(there)], check=True)
    for name in ("data/a.txt", "data/b.txt", "code/a.txt"):
        assert (there / name).read_bytes() == (here / name).read_bytes(), name


# ---------------------------------------------------------------- files that others hold open


@pytest.mark.parametrize(("system", "refusals", "good"), [("nt", 2, True), ("nt", 9, False),
                                                          ("posix", 1, False)])  # fmt: skip
def test_a_file_in_use_is_replaced_a_little_later_on_windows(
    system: str, refusals: int, good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, left, replace = files.write_atomic(tmp_path / "x", "old"), [refusals], os.replace

    def refusing(source: Path, target: Path) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise PermissionError("in use")
        replace(source, target)

    class System:
        """`os` as the module files sees it; pathlib keeps the real one."""

        name = system
        replace = staticmethod(refusing)

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

    monkeypatch.setattr(files, "os", System())
    monkeypatch.setattr(files, "time", type("Time", (), {"sleep": lambda seconds: None}))
    if good:
        files.write_atomic(path, "new")
    else:
        with pytest.raises(PermissionError):
            files.write_atomic(path, "new")
    assert path.read_text(encoding="utf-8") == ("new" if good else "old")
    assert list(tmp_path.iterdir()) == [path]


maps = Path("/proc/self/maps")
sees_maps = pytest.mark.skipif(not maps.exists(), reason="no list of what is mapped into memory")


@sees_maps
def test_a_resumed_run_does_not_hold_its_checkpoint(tmp_path: Path) -> None:
    """Windows would not let the next checkpoint take its place."""
    from course_lib.train.state import load_run, save_run

    def fresh() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
        model = torch.nn.Linear(300, 300)
        return model, torch.optim.AdamW(model.parameters())

    model, optimizer = fresh()
    model(torch.ones(1, 300)).sum().backward()
    optimizer.step()
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    path = tmp_path / "run.safetensors"
    save_run(path, model, optimizer, {"total": [1.0]}, 1, {}, scaler)
    other, adam = fresh()
    assert load_run(path, other, adam, {}, scaler)[0] == 1
    assert torch.equal(other.weight, model.weight)  # type: ignore[arg-type]
    assert str(path) not in maps.read_text(encoding="utf-8")


@sees_maps
def test_on_windows_no_model_holds_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from course_lib.checkpoints import reading

    path = tmp_path / "of_this_test_alone.safetensors"  # others may be mapped by other tests
    shutil.copy(files.data_path("checkpoints", "micro_teacher.safetensors"), path)
    monkeypatch.setattr(reading, "os", type("System", (), {"name": "nt"}))
    state = reading.read_weights(path)
    assert state and str(path) not in maps.read_text(encoding="utf-8")


# ---------------------------------------------------------------- no timers, a narrow code page


def endless() -> None:
    while True:
        pass


def test_a_loop_without_end_is_stopped_where_there_are_no_timers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(signal, "setitimer", raising=False)
    threads = threading.active_count()
    began = time.process_time()
    with pytest.raises(calling.TookTooLong), calling._limit(0.2):
        endless()
    assert 0.2 <= time.process_time() - began < 5
    with calling._limit(5.0):
        sum(range(1_000))
    with pytest.raises(ZeroDivisionError), calling._limit(5.0):
        _ = 1 / 0
    assert threading.active_count() == threads
    monkeypatch.undo()
    began = time.process_time()
    with calling._limit(5.0):  # with timers again: nothing of it is left behind
        sum(n * n for n in range(100_000))
    assert time.process_time() - began < 2


def test_a_check_is_printed_where_the_output_has_fewer_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from course_lib import check

    narrow = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert check("02.1", ...).status == "unanswered"
    narrow.flush()
    assert b"not answered yet" in narrow.buffer.getvalue()  # type: ignore[attr-defined]
