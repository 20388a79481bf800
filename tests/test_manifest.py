"""data/MANIFEST.sha256 lists every file of data/, as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from course_lib import files


def test_manifest_lists_exactly_what_is_there(root: Path) -> None:
    data = root / "data"
    listed = files.read_manifest(data)
    here = {
        path.relative_to(data).as_posix()
        for path in data.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".tmp" not in path.name
    } - {files.MANIFEST}
    assert set(listed) == here, "run `python -m course_lib.files --write-manifest`"


def test_every_file_has_its_hash(root: Path) -> None:
    data = root / "data"
    changed = [
        n for n, digest in files.read_manifest(data).items() if files.sha256_of(data / n) != digest
    ]
    assert not changed, "run `python -m course_lib.files --write-manifest`"


def test_a_changed_byte_is_noticed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(root / "data", tmp_path / "data")
    monkeypatch.setattr(files, "data_root", lambda: tmp_path / "data")
    name = sorted(files.read_manifest(tmp_path / "data"))[0]
    assert files.data_path(name).is_file()
    content = (tmp_path / "data" / name).read_bytes()
    (tmp_path / "data" / name).write_bytes(content[:-1])
    with pytest.raises(files.DamagedDataError, match=name):
        files.data_path(name)
