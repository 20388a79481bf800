"""What a release consists of, built into dist/ from a clean checkout: `make release`.

Wheel and source archive; the pages, executed; decks, site and the instructor's kit as archives,
each where the Makefile has a target for it; and SHA256SUMS, which `sha256sum -c` reads. Nothing is
uploaded. The kit holds the answers of its exams: it is for instructors, not for the public page.

dist/ is replaced at the end, and only where this command wrote all that is in it; so is what the
targets build.

Refused where anything is not committed, or where the version (course_lib/__init__.py), the newest
entry of CHANGELOG.md and CITATION.cff disagree."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from course_lib.files import sha256_of  # noqa: E402
from course_lib.teaching.folders import written_whole  # noqa: E402

MADE = {"slides": "slides/build", "site": "build/site", "kit": "build/kit"}  # target: its folder
SAID = {  # a file: where it says the version, and where the day
    "course_lib/__init__.py": (r'^__version__ = "([^"]+)"', None),
    "CHANGELOG.md": (r"^## (\S+) \(", r"^## \S+ \((\d{4}-\d\d-\d\d)\)"),
    "CITATION.cff": (r"^version: (\S+)", r"^date-released: (\S+)"),
}
BUILD = "from setuptools import build_meta as b; b.build_sdist({0!r}); b.build_wheel({0!r})"


def version(root: Path) -> str:
    return _found(root, "course_lib/__init__.py", SAID["course_lib/__init__.py"][0])


def _found(root: Path, name: str, pattern: str) -> str:
    path = root / name
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.search(pattern, text, re.MULTILINE)  # of a changelog the newest, which is the first
    return found[1] if found else "nothing"


def disagreements(root: Path) -> list[str]:
    """What is said about version and day by files that must say the same; [] where they do."""
    problems = []
    for place, what in enumerate(("version", "day of release")):
        asked = {name: patterns[place] for name, patterns in SAID.items()}
        told = {name: _found(root, name, p) for name, p in asked.items() if p}
        if len(set(told.values())) > 1 or "nothing" in told.values():
            said = ", ".join(f"{name} says {value}" for name, value in told.items())
            problems.append(f"the {what} is not one: {said}")
    return problems


def changes(root: Path, but: str = "dist") -> str:
    """What is not committed, a line each. but: a folder that is left out."""
    call = ["git", "status", "--porcelain", "--", ".", f":(exclude){but}"]
    return subprocess.run(call, cwd=root, check=True, capture_output=True, encoding="utf-8").stdout


def packages(root: Path, dist: Path) -> None:
    """Source archive and wheel, from what is committed and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        archive, tree = Path(folder, "tree.zip"), Path(folder, "tree")
        call = ["git", "archive", "--format=zip", "-o", str(archive), "HEAD"]
        subprocess.run(call, cwd=root, check=True)
        shutil.unpack_archive(archive, tree)
        build = [sys.executable, "-c", BUILD.format(str(dist))]
        done = subprocess.run(build, cwd=tree, capture_output=True, encoding="utf-8")
        if done.returncode:  # else setuptools' many words are of no interest
            raise SystemExit(f"The packages could not be built:\n{done.stdout}{done.stderr}")
        name = dist / f"notebooks-{version(root)}"
        shutil.make_archive(str(name), "zip", tree, "notebooks")


def folders(root: Path, dist: Path) -> None:
    """An archive of what each target of the Makefile builds."""
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for target, made in MADE.items():
        if not re.search(rf"^{target}:", makefile, re.MULTILINE):
            print(f"no `make {target}` here: left out")
            continue
        # Each target replaces its folder, so nothing of an earlier version is left in it.
        if subprocess.run(["make", target], cwd=root).returncode:
            raise SystemExit(f"`make {target}` failed; what it says stands above.")
        name = dist / f"{target}-{version(root)}"
        shutil.make_archive(str(name), "zip", root / made)


def release(root: Path = ROOT) -> list[Path]:
    """Build all of it; returns the files. SystemExit, with what to do, where it is refused."""
    if problems := disagreements(root):
        raise SystemExit("\n".join([*problems, "Make them agree, commit, and begin again."]))
    if left := changes(root):
        raise SystemExit(f"Not committed:\n{left}Commit or remove it, and begin again.")
    dist = root / "dist"
    try:
        with written_whole(dist, "make release") as new:
            names = _build(root, new)
            if left := changes(root, but=new.parent.name):
                raise SystemExit(f"Building has changed what is committed:\n{left}No release.")
    except ValueError as error:  # of others' files in dist
        raise SystemExit(str(error)) from error
    return [dist / name for name in names]


def _build(root: Path, folder: Path) -> list[str]:
    """All files of a release into this folder; returns their names."""
    packages(root, folder)
    folders(root, folder)
    files = sorted(folder.iterdir())
    sums = "".join(f"{sha256_of(file)}  {file.name}\n" for file in files)
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8", newline="\n")
    return [*(file.name for file in files), "SHA256SUMS"]


if __name__ == "__main__":
    for made in release():
        print(f"{made.stat().st_size:>12,}  {made.relative_to(ROOT)}")
