"""Shipped files are checked, caches are written whole, temporary files never stay."""

from __future__ import annotations

import copy
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_lib import files


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data folder of our own with one file, listed in its manifest."""
    root = tmp_path / "data"
    root.mkdir()
    (root / "words.txt").write_text("one two three\n")
    files.write_manifest(root)
    monkeypatch.setattr(files, "data_root", lambda: root)
    return root


def test_a_whole_file_is_given_and_a_missing_one_is_named(data):
    assert files.data_path("words.txt").read_text() == "one two three\n"
    with pytest.raises(FileNotFoundError, match=r"Asked for data/word.txt; there is no such file"):
        files.data_path("word.txt")


@pytest.mark.parametrize("damage", ["cut", "edited"])
def test_a_damaged_file_is_refused_also_when_it_was_fine_before(data, damage):
    path = files.data_path("words.txt")
    path.write_text("one two" if damage == "cut" else "one two threE\n")
    with pytest.raises(files.DamagedDataError, match=r"data/words.txt has SHA-256 .*git checkout"):
        files.data_path("words.txt")


def test_a_file_the_manifest_does_not_know_is_refused(data):
    (data / "more.txt").write_text("four")
    with pytest.raises(files.DamagedDataError, match=r"not listed .* --write-manifest"):
        files.data_path("more.txt")


def test_a_killed_write_leaves_the_old_file_and_a_failed_one_no_rubbish(tmp_path, monkeypatch):
    path = files.write_atomic(tmp_path / "curve.json", "old")

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_atomic(path, "new and longer")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_files_that_belong_together_are_all_new_or_all_old(monkeypatch, tmp_path, fails):
    """A disk that fills up at any of them; one killed while they take their places."""
    names = ("a.json", "b/c.json", "weights")
    files.write_together({tmp_path / name: "old" for name in names})
    real, count = os.fsync, iter(range(1, 9))

    def full(number):
        if next(count) == fails:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(number)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=names[fails - 1]):
        files.write_together({tmp_path / name: "new" for name in names})
    assert [(tmp_path / name).read_text() for name in names] == ["old"] * 3
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 3
    monkeypatch.undo()
    replace, moved = os.replace, []

    def killed(partial, path):
        if len(moved) == fails - 1:
            raise KeyboardInterrupt
        moved.append(replace(partial, path))

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        files.write_together({tmp_path / name: "new" for name in names})
    assert not (tmp_path / "weights").exists()
    monkeypatch.undo()
    files.write_together({tmp_path / name: "new" for name in names})
    assert [(tmp_path / name).read_text() for name in names] == ["new"] * 3


def test_a_full_disk_is_told_with_the_file_it_has_no_room_for(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"curve\.json'$") as raised:
        files.write_atomic(tmp_path / "curve.json", "old")
    assert raised.value.errno == errno.ENOSPC and not list(tmp_path.iterdir())


HOLDER = """
import sys, time
from course_lib.files import lock_file
with lock_file(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_file_is_held_by_one_process_until_it_ends_or_is_killed(tmp_path, root):
    path = tmp_path / "run[1].safetensors"
    call = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, cwd=root) as other:
        assert other.stdout.readline().strip() == b"held"
        says = rf"is being written by process {other.pid} on .*, since \d{{4}}-.*one run at a time"
        with pytest.raises(ValueError, match=says), files.lock_file(path):
            pytest.fail("both have it")
        other.kill()
    with files.lock_file(path) as check, files.lock_file(path) as again:  # one thread may ask twice
        check(), again()
        Path(f"{path}.holder").unlink()
        for one in (check, again):
            with pytest.raises(FileNotFoundError, match="was deleted or moved while run"):
                one()
    with files.lock_file(path):
        pass
    assert [left.name for left in tmp_path.iterdir()] == ["run[1].safetensors.lock"]


def test_where_nothing_can_be_locked_a_run_goes_on_with_a_warning(tmp_path, monkeypatch):
    from filelock import FileLock

    def no_locks(*_, **__):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(FileLock, "acquire", no_locks)
    with (
        pytest.warns(UserWarning, match="run cannot be locked"),
        files.lock_file(tmp_path / "run") as ok,
    ):
        ok()
    assert not list(tmp_path.iterdir())


def test_the_cache_moves_with_its_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "elsewhere"))
    assert files.cache_dir("runs") == tmp_path / "elsewhere" / "runs"
    assert (tmp_path / "elsewhere" / "runs").is_dir()


def test_a_damaged_manifest_is_refused(data):
    manifest = data / files.MANIFEST
    manifest.write_text(manifest.read_text()[:30])
    with pytest.raises(files.DamagedDataError, match=r"MANIFEST.* expected a SHA-256"):
        files.data_path("words.txt")


def test_the_manifest_lists_exactly_the_files_of_data_as_they_are(root):
    data = root / "data"
    here = {
        path.relative_to(data).as_posix(): files.sha256_of(path)
        for path in data.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".tmp" not in path.name
    }
    del here[files.MANIFEST]
    assert files.read_manifest(data) == here, "run `python -m course_lib.files --write-manifest`"


def test_every_results_file_is_described(root):
    told = (root / "data" / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in (root / "data" / "results").glob("*.json")]
    assert [name for name in sorted(names) if f"`{name}`" not in told] == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "3", "null", '{"a": NaN}', '{"a": -Infinity}', '{"a": 1, "a": 2}', "\0",
     '{"a": 1}}', '{"a": [' + "[" * 100_000, b"\xff{}"],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_a_results_file_that_is_no_json_object_is_named(data, text):
    result = data / "results" / "01_broken.json"
    result.parent.mkdir()
    result.write_bytes(text if isinstance(text, bytes) else text.encode())
    files.write_manifest(data)
    with pytest.raises(files.DamagedDataError, match=r"data/results/01_broken\.json could not be"):
        files.read_result("01_broken")


def test_what_a_results_file_lacks_is_named_with_the_file_at_any_depth(data):
    result = data / "results" / "01_edited.json"
    result.parent.mkdir()
    result.write_text('\ufeff{"runs": [{"seed": 0}], "b": {}}', encoding="utf-8")
    files.write_manifest(data)
    found = files.read_result("01_edited")
    assert found == {"runs": [{"seed": 0}], "b": {}} and found.get("recipes") is None
    for lacking, key in ((found, "recipes"), (found["runs"][0], "loss"), (found["b"], "b")):
        with pytest.raises(KeyError, match=rf"data/results/01_edited\.json lacks '{key}'"):
            lacking[key]
    assert copy.deepcopy(found)["runs"][0].source.endswith("01_edited.json")


def test_nothing_is_written_where_a_folder_or_file_is_in_the_way(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    with pytest.raises(IsADirectoryError, match="folder is a folder; expected the name of a file"):
        files.write_atomic(tmp_path / "folder", "new")
    for path in ("file/new", "file/folder/new"):
        with pytest.raises(NotADirectoryError, match="file is a file; expected a folder, for new"):
            files.write_atomic(tmp_path / path, "new")
    assert sorted(x.name for x in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"


def test_what_lies_where_a_path_leads_to_nothing(tmp_path):
    assert files.nearby(tmp_path / "a") == f" {tmp_path.resolve()} holds nothing."
    for name in ("train.csv", "test.csv", ".hidden", *"abcdef"):
        (tmp_path / name).touch()
    lies = f" {tmp_path.resolve()} holds a, b, c, d, e, f and others."
    assert files.nearby(tmp_path / "trian.csv") == f" Did you mean 'train.csv'?{lies}"
    assert files.nearby(tmp_path / "other.bin") == lies
    missing = files.nearby(tmp_path / "runs" / "best" / "x")
    assert missing == f" There is no folder {tmp_path / 'runs' / 'best'}." \
                      f" There is no folder {tmp_path / 'runs'}.{lies}"  # fmt: skip


@pytest.mark.parametrize(
    ("name", "meant"),
    [("DEBERTA", " Did you mean 'deberta'?"), ("brt", " Did you mean 'bert'?"), ("bert", ""),
     ("xlnet", ""), (None, ""), (3, "")],
)  # fmt: skip
def test_a_name_like_the_one_that_was_given(name, meant):
    assert files.did_you_mean(name, ("bert", "deberta")) == meant
