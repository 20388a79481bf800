"""Build the wheel and set up a place where it, and not the checkout, is what notebooks import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from moving import with_moving_cell

ROOT = Path(__file__).resolve().parent.parent
OFFLINE = ROOT / "tests" / "offline"  # a sitecustomize.py that refuses and logs the network
INTO_WHEEL = ("pyproject.toml", "setup.py", "LICENSE", "README.md", "course_lib", "data")


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy, so that no stale build/ folder can add to it."""
    tree, out = folder / "tree", folder / "dist"
    tree.mkdir(parents=True)
    for name in INTO_WHEEL:
        _copy(ROOT / name, tree / name)
    _run("pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(out), str(tree))
    return next(out.glob("*.whl"))


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.tmp*")
        shutil.copytree(source, target, ignore=ignored)
    elif source.exists():
        shutil.copy(source, target)


def _run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


@dataclass(frozen=True)
class Place:
    """Folders of one run: an empty one with copies of the notebooks, the wheel's, and a home."""

    empty: Path
    installed: Path
    home: Path
    budget: Path
    network_log: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment of that run: wheel first, network refused, every cache cold."""
        ours = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "COURSE_LIB_CACHE"}}
        return ours | {
            "PYTHONPATH": os.pathsep.join([str(OFFLINE), str(self.installed)]),
            "OFFLINE_LOG": str(self.network_log),
            "COURSE_LIB_PROGRESS": str(self.home / "progress.json"),
            "NOTEBOOK_BUDGET": str(self.budget),
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),  # what Windows calls it
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "IPYTHONDIR": str(self.home / ".ipython"),
        }

    def probe(self) -> tuple[bool, str]:
        """Whether a fresh Python there takes both the package and its data from the wheel."""
        ask = "import course_lib as c; print(c.__file__); "
        ask += "import course_lib.files as f; print(f.data_root())"
        done = subprocess.run(
            [sys.executable, "-c", ask],
            cwd=self.empty,
            env=self.env,
            capture_output=True,
            text=True,
        )
        found = done.stdout.split("\n")[:2]
        package = self.installed / "course_lib"
        good = found == [str(package / "__init__.py"), str(package / "_data")]
        return good, "the notebooks import the built wheel" + ("" if good else f": {done}")


def prepare(folder: Path, numbers: tuple[str, ...] = ()) -> Place:
    """Build, install beside nothing else, copy the notebooks (or those numbers) next to nothing,
    each with a cell at its end that moves its controls.
    Raises ValueError for a number that no notebook has."""
    pages = {n: list((ROOT / "notebooks").glob(f"{n}_*.ipynb")) for n in numbers or ("*",)}
    if missing := [n for n, found in pages.items() if not found]:
        raise ValueError(f"pages {missing} were given; expected two digits each, as in 02.")
    folder = folder.resolve()
    names = ("empty", "installed", "home", "budget.json", "network.log")
    place = Place(*(folder / name for name in names))
    for made in (place.empty, place.home):
        made.mkdir(parents=True)
    place.network_log.touch()
    wheel = build_wheel(folder / "wheel")
    install = ("pip", "install", "-q", "--no-deps", "--no-index")
    _run(*install, "--target", str(place.installed), str(wheel))
    for page in chain(*pages.values()):
        with_moving_cell(page, place.empty)
    return place
