"""Folders that commands write whole: what others put anywhere is never touched."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from course_lib.teaching.folders import LEFT_BY_SYSTEMS, MARK, remove, written_whole


def write(target: Path, command: str = "make it", **files: str) -> None:
    with written_whole(target, command) as new:
        for name, text in (files or {"page": "ours", "second": "ours, too"}).items():
            (new / "deep").mkdir(exist_ok=True)
            (new / "deep" / name).write_text(text, encoding="utf-8")


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_is_written_and_written_again(tmp_path: Path) -> None:
    target, beside = tmp_path / "new" / "made", tmp_path / "new" / "made.new"
    write(target)
    beside.mkdir()  # the name that other programs would take, too
    (beside / "thesis").write_text("mine", encoding="utf-8")
    for name in LEFT_BY_SYSTEMS:
        (target / "deep" / name).touch()
    (target / "deep" / "second").unlink()
    write(target, page="newer")
    assert {path.name for path in target.parent.iterdir()} == {"made", "made.new"}
    assert set(content(target)) == {MARK, "deep/page"}
    assert (target / "deep" / "page").read_text(encoding="utf-8") == "newer"
    assert content(beside) == {"thesis": b"mine"}


def add(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text("mine", encoding="utf-8")


def link(folder: Path) -> None:
    (folder / "deep" / "page").rename(folder.parent / "elsewhere")
    (folder / "deep" / "page").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    "change",
    [
        add("thesis.txt"), add("deep/.hidden"), add("deep/page"), add(MARK), add("index.html"),
        add(".nojekyll"), link, lambda folder: (folder / MARK).unlink(),
        lambda folder: (folder / MARK).write_text("make that\n", encoding="utf-8"),
    ],
)  # fmt: skip
def test_what_somebody_added_or_changed_is_left_alone(change: Callable, tmp_path: Path) -> None:
    target = tmp_path / "made"
    write(target)
    change(target)
    before = content(tmp_path)
    with pytest.raises(ValueError, match=r"made holds \S+.*which make it did not write"):
        write(target, page="newer")
    with contextlib.suppress(ValueError):
        assert not remove(target)
    assert content(tmp_path) == before


def test_only_what_a_command_wrote_whole_is_removed(tmp_path: Path) -> None:
    write(tmp_path / "made")
    (tmp_path / "other").mkdir()
    assert remove(tmp_path / "made") and not remove(tmp_path / "made")
    assert not remove(tmp_path / "other") and (tmp_path / "other").exists()


def test_the_folder_of_another_command_and_a_file_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "made", "make that")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    before = content(tmp_path)
    with pytest.raises(ValueError, match="which make it did not write"):
        write(tmp_path / "made")
    with pytest.raises(ValueError, match="file is not a folder"):
        write(tmp_path / "file")
    assert content(tmp_path) == before


def test_what_comes_while_the_command_runs_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "made")
    with (
        pytest.raises(ValueError, match=r"made holds thesis\.txt"),
        written_whole(tmp_path / "made", "make it"),
    ):
        add("thesis.txt")(tmp_path / "made")
    assert "thesis.txt" in content(tmp_path / "made")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize("renames", [0, 1])
def test_a_failure_leaves_the_old_folder(
    renames: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the block itself, or of the disk at the first or the second exchange."""
    target = tmp_path / "made"
    write(target)
    before, rename, done = content(tmp_path), Path.rename, []

    def failing(path: Path, to: Path) -> Path:
        done.append(path)
        if len(done) == renames + 1:
            raise OSError(errno.ENOSPC, "no space left")
        return rename(path, to)

    with pytest.raises(KeyboardInterrupt), written_whole(target, "make it") as new:
        (new / "half").touch()
        raise KeyboardInterrupt
    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="no space left"):
        write(target, page="newer")
    assert content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


FOREIGN = ("build/thesis.txt", "build/site/thesis.txt", "build/kit/index.html", "dist/thesis.txt",
           "slides/build/thesis.txt", ".venv/bin/thesis", "other.egg-info/thesis")  # fmt: skip


@pytest.mark.skipif(shutil.which("make") is None or os.name != "posix", reason="no make")
def test_make_clean_removes_what_commands_wrote_and_nothing_else(
    root: Path, tmp_path: Path
) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    for name in ("build/site", "dist"):
        write(tmp_path / name)
    for name in FOREIGN:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(root)}
    subprocess.run(["make", "clean"], cwd=tmp_path, env=environment, check=True)
    assert {name for name in FOREIGN if (tmp_path / name).exists()} == set(FOREIGN)
    for name in FOREIGN:
        (tmp_path / name).unlink()
    subprocess.run(["make", "clean"], cwd=tmp_path, env=environment, check=True)
    assert not (tmp_path / "build" / "site").exists() and not (tmp_path / "dist").exists()
