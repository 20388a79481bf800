"""Folders that a command writes whole: in place of nothing, or of what the same command wrote.

    python -m course_lib.teaching.folders FOLDER …    remove those that a command wrote whole

removes nothing else (make clean)."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from course_lib.files import sha256_of, write_atomic

MARK = ".written-by-bert-family-course"  # which command, then hash and name of each of its files
LEFT_BY_SYSTEMS = {".DS_Store", "Thumbs.db", "desktop.ini"}  # by whoever looks into a folder


@contextmanager
def written_whole(target: Path, command: str) -> Iterator[Path]:
    """A new folder beside `target`, which takes its place when the block has ended well. Until
    then, and where the block fails, `target` is as it was.

    Raises ValueError where `target` holds anything else than files that this command wrote there
    and nobody changed since, before the block and after it."""
    target = target.resolve()
    _check(target, command)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        new.mkdir()
        yield new
        _mark(new, command)
        _check(target, command)
        if target.exists():
            target.rename(old)
        try:
            new.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise


def remove(target: Path) -> bool:
    """Remove a folder that a command wrote whole; returns whether it was one. ValueError where
    somebody added or changed a file, as for `written_whole`."""
    mark = target / MARK
    if mark.is_symlink() or not mark.is_file():
        return False
    _check(target, mark.read_text(encoding="utf-8", errors="replace").partition("\n")[0])
    shutil.rmtree(target)
    return True


def _mark(folder: Path, command: str) -> None:
    lines = [f"{sha256_of(folder / name)}  {name}" for name in sorted(_files(folder))]
    write_atomic(folder / MARK, "\n".join([command, *lines]) + "\n")


def _check(target: Path, command: str) -> None:
    if not target.exists():
        return
    what = "is not a folder"
    if target.is_dir():
        marked = _marked(target, command)
        foreign = sorted(name for name in _files(target) if not _is_ours(target, name, marked))
        if not foreign:
            return
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        what = f"holds {foreign[0]}{more}, which {command} did not write like this"
    raise ValueError(
        f"{target} {what}; expected a new or empty folder, or one that {command} wrote and nobody "
        "changed. Nothing was touched: name another folder, or move the files out of this one."
    )


def _files(folder: Path) -> list[str]:
    """Whatever is in there but folders, by its name from the folder on."""
    return [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    ]


def _marked(folder: Path, command: str) -> dict[str, str]:
    """{name: hash} of what the command says to have written there."""
    mark = folder / MARK
    if mark.is_symlink() or not mark.is_file():
        return {}
    first, *lines = mark.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    entries = (line.split("  ", 1) for line in lines if "  " in line)
    return {name: digest for digest, name in entries} if first == command else {}


def _is_ours(folder: Path, name: str, marked: dict[str, str]) -> bool:
    path = folder / name
    if path.is_symlink() or not path.is_file():
        return False
    if name == MARK:
        return bool(marked)
    return path.name in LEFT_BY_SYSTEMS or marked.get(name) == sha256_of(path)


def main() -> None:
    for name in sys.argv[1:]:
        try:
            if not remove(Path(name)) and Path(name).exists():
                print(f"{name} stays: no command of the course wrote it as a whole.")
        except ValueError as error:
            print(f"{name} stays: {error}")


if __name__ == "__main__":
    main()
