"""All pages in an environment of other versions than those of constraints.txt.

    python tests/environments.py colab            build it, run every page in it
    python tests/environments.py lowest 02 14     these pages only

colab   what Google Colab had in August 2026, its Python too
lowest  the lowest version of each requirement that pyproject.toml allows
newest  what pip takes today, when nothing is pinned

Each is made by uv (`pip install uv`) below build/environments, and again when its versions change.
It takes gigabytes of downloads, since PyPI's torch for Linux comes with CUDA: `make test` leaves it
to the workflow environments.yml, which runs every week.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "environments"
EXTRAS = ("lab", "weights", "languages", "domains", "onnx", "search")  # what `make lab` installs
NO_DEPENDENCIES = "financetoolkit==2.3.0"
TO_RUN = ("pip", "pytest>=8", "nbval>=0.11,<0.12", "psutil>=5.9", "setuptools>=77", "wheel")


@dataclass(frozen=True)
class Environment:
    """python: the version it is made with. pins: name -> version. resolution: what uv takes of what
    is not pinned."""

    python: str
    pins: dict[str, str] = field(default_factory=dict)
    resolution: str = "highest"


def requirements(*extras: str) -> list[str]:
    """What the package needs with these extras, with the ranges of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return lines


# August 2026: what draws, and what an upgrade would break in a running session.
COLAB = {"ipywidgets": "7.7.1", "plotly": "5.24.1", "anywidget": "0.9.21", "IPython": "7.34.0"}
COLABS_OWN = {"torch": "2.11.0", "transformers": "5.15.0", "numpy": "2.1.3"}
ENVIRONMENTS = {
    "colab": Environment("3.13", COLAB | COLABS_OWN | {"ipykernel": "6.17.1"}),
    "lowest": Environment("3.11", resolution="lowest-direct"),
    "newest": Environment("3.13"),
}


def made(name: str) -> Path:
    """The Python of that environment, which is built where it is missing or out of date."""
    wanted = ENVIRONMENTS[name]
    place, python = FOLDER / name, FOLDER / name / "bin" / "python"
    asked = [*requirements(*EXTRAS), *(f"{package}=={at}" for package, at in wanted.pins.items())]
    described = "\n".join([wanted.python, wanted.resolution, *asked, *TO_RUN])
    stamp = place / "made"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != described:
        shutil.rmtree(place, ignore_errors=True)
        uv("venv", "--python", wanted.python, str(place))
        install = ("pip", "install", "--python", str(python))
        uv(*install, "--resolution", wanted.resolution, *asked)
        uv(*install, *TO_RUN)
        uv(*install, "--no-deps", NO_DEPENDENCIES)
        stamp.write_text(described, encoding="utf-8")
    return python


def uv(*arguments: str) -> None:
    """Run uv; raises CalledProcessError where it fails, and it has said why."""
    subprocess.run([sys.executable, "-m", "uv", *arguments], check=True)


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in ENVIRONMENTS:
        print(f"Expected one of {', '.join(ENVIRONMENTS)}; given: {arguments}.", file=sys.stderr)
        return 2
    name, *pages = arguments
    python = made(name)
    where = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    run = "import run, sys; sys.exit(bool(run.pages(*sys.argv[1:]).failed))"
    return subprocess.run([python, "-c", run, *pages], cwd=ROOT, env=os.environ | where).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
