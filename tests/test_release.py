"""The release command, on a small checkout: built, hashed, and refused where it must be."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from conftest import load

from course_lib.teaching.folders import written_whole

PROJECT = """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "bert-family-course"
dynamic = ["version"]
[tool.setuptools.dynamic]
version = { attr = "course_lib.__version__" }
"""
FILES = {
    "pyproject.toml": PROJECT,
    "course_lib/__init__.py": '__version__ = "1.2.3"\n',
    "data/MANIFEST.sha256": "",
    "notebooks/00_start.ipynb": "{}",
    "CHANGELOG.md": "# Changes\n\n## 1.2.3 (2026-01-02)\n\nnew\n\n## 1.2.2 (2025-01-02)\n\nold\n",
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.3\ndate-released: 2026-01-02\n",
    "Makefile": "site:\n\t@mkdir -p build/site && echo hello > build/site/index.html\n",
    ".gitignore": "build/\ndist/\n*.egg-info/\n",
}


def commit(root: Path) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for call in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x", "--allow-empty"]):
        subprocess.run(["git", *call], cwd=root, check=True)


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Path:
    for name, text in (FILES | {"setup.py": (root / "setup.py").read_text("utf-8")}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    commit(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def command(root: Path) -> ModuleType:
    return load(root / ".ci" / "release.py")


def test_it_builds_what_is_committed_and_hashes_it(
    command: ModuleType, checkout: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with written_whole(checkout / "dist", "make release") as earlier:
        (earlier / "of_an_earlier_release").touch()
    made = [path.name for path in command.release(checkout)]
    stem = "bert_family_course-1.2.3"
    assert made == [
        f"{stem}-py3-none-any.whl", f"{stem}.tar.gz", "notebooks-1.2.3.zip", "site-1.2.3.zip",
        "SHA256SUMS",
    ]  # fmt: skip
    assert "no `make slides` here" in capfd.readouterr().out
    dist = checkout / "dist"
    sums = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {n: hashlib.sha256((dist / n).read_bytes()).hexdigest() for n in made[:-1]}
    inside = zipfile.ZipFile(dist / made[0]).namelist()
    assert {"course_lib/__init__.py", "course_lib/_data/MANIFEST.sha256"} <= set(inside)
    with tarfile.open(dist / made[1]) as source:
        assert f"{stem}/data/MANIFEST.sha256" in source.getnames()
    assert "index.html" in zipfile.ZipFile(dist / "site-1.2.3.zip").namelist()


@pytest.mark.parametrize("name", ["a_new_file", "Makefile"])
def test_it_refuses_what_is_not_committed(command: ModuleType, checkout: Path, name: str) -> None:
    with (checkout / name).open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    with pytest.raises(SystemExit, match=f"(?s)Not committed:.*{name}"):
        command.release(checkout)
    assert not (checkout / "dist").exists()


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("course_lib/__init__.py", "1.2.3", "1.3.0", "version is not one: .* says 1.3.0"),
        ("CITATION.cff", "1.2.3", "1.2.2", "CITATION.cff says 1.2.2"),
        ("CITATION.cff", "2026-01-02", "2026-01-03", "day of release is not one"),
        ("CHANGELOG.md", "## 1.2.3 (2026-01-02)\n", "", "CHANGELOG.md says 1.2.2"),
        ("CHANGELOG.md", "## ", "### ", "CHANGELOG.md says nothing"),
    ],
)
def test_it_refuses_versions_that_disagree(
    command: ModuleType, checkout: Path, name: str, old: str, new: str, said: str
) -> None:
    path = checkout / name
    path.write_text(path.read_text("utf-8").replace(old, new), encoding="utf-8")
    commit(checkout)
    with pytest.raises(SystemExit, match=said):
        command.release(checkout)


@pytest.mark.parametrize(
    "name", ["dist/thesis.txt", "build/site/thesis.txt", "slides/build/x.html"]
)
def test_what_others_put_into_its_folders_is_left_alone(
    command: ModuleType, checkout: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dist is its own; the targets' folders are the targets' affair."""
    monkeypatch.setattr(command, "packages", lambda root, dist: None)
    (checkout / ".gitignore").write_text("build/\ndist/\n", encoding="utf-8")
    commit(checkout)
    (checkout / name).parent.mkdir(parents=True)
    (checkout / name).write_text("mine", encoding="utf-8")
    with contextlib.suppress(SystemExit):
        command.release(checkout)
    assert (checkout / name).read_text(encoding="utf-8") == "mine"
    assert (checkout / "dist" / "SHA256SUMS").exists() == ("dist" not in name)


def test_a_release_that_fails_leaves_the_one_before(command: ModuleType, checkout: Path) -> None:
    with written_whole(checkout / "dist", "make release") as earlier:
        (earlier / "of_an_earlier_release").touch()
    (checkout / "Makefile").write_text("site:\n\t@false\n", encoding="utf-8")
    commit(checkout)
    with pytest.raises(SystemExit, match="`make site` failed"):
        command.release(checkout)
    assert (checkout / "dist" / "of_an_earlier_release").exists()


def test_it_is_no_release_where_building_changes_the_checkout(
    command: ModuleType, checkout: Path
) -> None:
    target = "site:\n\t@mkdir -p build/site && echo x >> CITATION.cff\n"
    (checkout / "Makefile").write_text(target, encoding="utf-8")
    commit(checkout)
    with pytest.raises(SystemExit, match="Building has changed"):
        command.release(checkout)
