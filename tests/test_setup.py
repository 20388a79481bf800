"""pyproject, constraints, environment.yml, Makefile, the built wheel and the first cell agree."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import environments
import pytest
import wheel_under_test
import yaml
from conftest import load
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ON_CONDA = {"torch": "pytorch"}  # what conda-forge calls differently
posix = pytest.mark.skipif(os.name != "posix", reason="a shell's own business")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^+\s]+)$")


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(*extras: str) -> dict[str, Requirement]:
    parsed = map(Requirement, environments.requirements(*extras))
    return {canonicalize_name(r.name): r for r in parsed}


@pytest.fixture(scope="module")
def pins(root: Path) -> dict[str, str]:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    matches = [PIN.match(line) for line in lines if line and not line.startswith("#")]
    assert all(matches), "every line of constraints.txt is name==version, without a local part"
    return {canonicalize_name(m[1]): m[2] for m in matches if m}


@pytest.fixture(scope="module")
def conda(root: Path) -> dict[str, Requirement]:
    lines = yaml.safe_load((root / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    plain = [line for line in lines if isinstance(line, str)]
    by_pip = [p for line in lines if isinstance(line, dict) for p in line["pip"]]
    assert "-e ." in by_pip
    parsed = [Requirement(line) for line in [*plain, *by_pip] if line != "-e ."]
    return {canonicalize_name(r.name): r for r in parsed}


def test_every_requirement_is_pinned_within_its_range(project: dict, pins: dict[str, str]) -> None:
    for name, requirement in requirements(*project["optional-dependencies"]).items():
        assert name in pins, f"{name} is in pyproject.toml and not in constraints.txt"
        assert requirement.specifier.contains(pins[name]), f"{requirement} and {name}=={pins[name]}"


def test_environment_yml_states_the_same_ranges(
    project: dict, conda: dict[str, Requirement]
) -> None:
    ours = requirements(*environments.EXTRAS)
    expected = {ON_CONDA.get(name, name): r.specifier for name, r in ours.items()}
    stated = {n: r.specifier for n, r in conda.items() if n not in {"python", "pip"}}
    assert stated == expected
    python = conda["python"].specifier
    assert python.contains("3.11") and python.contains("3.13.5") and not python.contains("3.10")
    assert project["requires-python"] == ">=3.11"


def test_ranges_admit_what_colab_has() -> None:
    """August 2026. An upgrade of one of these would break a running Colab session."""
    ranges = requirements(*environments.EXTRAS)
    for package, version in environments.ENVIRONMENTS["colab"].pins.items():
        assert ranges[canonicalize_name(package)].specifier.contains(version), package


def test_environments_install_what_make_lab_does(root: Path) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    assert f"'.[{','.join(environments.EXTRAS)}]'" in makefile
    assert f"--no-deps {environments.NO_DEPENDENCIES}\n" in makefile


def test_a_workflow_runs_every_environment(root: Path) -> None:
    workflow = yaml.safe_load((root / ".github/workflows/environments.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["pages"]["strategy"]["matrix"]
    assert matrix == {"environment": list(environments.ENVIRONMENTS)}


def test_an_unknown_environment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert environments.main(["venice"]) == 2
    assert "colab, lowest, newest" in capsys.readouterr().err


def test_this_run_uses_the_pinned_versions(pins: dict[str, str]) -> None:
    """Where make installed the environment; it leaves the file `.test` in it."""
    if not Path(sys.prefix, ".test").exists():
        pytest.skip("make did not install this environment, so its versions are its own")
    for name in ("torch", "transformers", "ipywidgets", "plotly", "nbval", "jupyterlab"):
        assert importlib.metadata.version(name).split("+")[0] == pins[name], name


def test_workflow_runs_make_test_on_the_promised_pythons(root: Path) -> None:
    text = (root / ".github/workflows/test.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)["jobs"]["test"]
    assert workflow["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert any(step.get("run") == "make test" for step in workflow["steps"])


def test_workflow_runs_what_it_can_on_windows_and_macos(root: Path) -> None:
    """Windows has no make: what a student has is installed there too, and tested as on a Mac."""
    text = (root / ".github/workflows/test.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    for system in ("windows", "macos"):
        assert jobs[system]["runs-on"] == f"{system}-latest"
    runs = [step.get("run", "") for step in jobs["windows"]["steps"]]
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    student = re.search(r"install -c constraints.txt -e '\.\[([\w,]+)\]'\n", makefile)
    windows = re.search(r'pip install -c constraints.txt -e "\.\[([\w,]+)\]"', "\n".join(runs))
    assert student and windows
    assert {*student[1].split(","), "kit", "slides", "test"} == {*windows[1].split(",")}
    parts = "package exercises notebooks"
    assert f"python tests/run.py {parts}" in runs
    assert f'make test PARTS="{parts}"' in [s.get("run") for s in jobs["macos"]["steps"]]


def test_version_is_one(project: dict, root: Path, wheel: Path) -> None:
    """Said in course_lib/__init__.py; the wheel, CITATION.cff and the changelog follow."""
    import course_lib

    assert "version" not in project and project["dynamic"] == ["version"]
    assert wheel.name.split("-")[1] == course_lib.__version__
    assert load(root / ".ci" / "release.py").disagreements(root) == []


def test_citation_has_what_a_citation_needs(root: Path, project: dict) -> None:
    told = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    needed = {"cff-version", "message", "title", "type", "authors", "version", "date-released"}
    assert needed | {"license", "repository-code", "abstract"} <= set(told)
    assert told["repository-code"] == project["urls"]["Repository"]
    assert set(told["license"]) == set(project["license"].split(" AND "))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(told["date-released"]))
    assert all(author.get("name") for author in told["authors"])


def test_readme_names_the_repository(root: Path, project: dict) -> None:
    repository = project["urls"]["Repository"]
    text = (root / "README.md").read_text(encoding="utf-8")
    assert repository in text
    owners = set(re.findall(r"https://github\.com/[\w.-]+/course\b", text))
    assert owners == {repository}


@posix
def test_make_asks_for_a_newer_python(root: Path, tmp_path: Path) -> None:
    """With only an old Python in reach the message names the version found and the one needed; what
    the tests' own `make test PYTHON=…` was told does not count."""
    told = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTHON")
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit 0\nexit 1\n')
    old.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", 'make=$(command -v make); PATH="$1:$2"; exec "$make" -s lab VENV="$3"',
         "sh", str(tmp_path), _only_basics(tmp_path), str(tmp_path / "venv")],
        cwd=root, capture_output=True, text=True,
        env={name: value for name, value in os.environ.items() if name not in told},
    )  # fmt: skip
    assert done.returncode != 0
    assert "needs Python 3.11 or newer; found: Python 3.9.2" in done.stderr


@posix
@pytest.mark.parametrize(
    ("command", "extra", "made"),
    [("kit", ",kit]", ""), ("slides", ",slides]", ""), ("site", ",site]", ""),
     ("kit PDF=no", "", ""), ("bench", "", ""), ("kit", "", ".kit"), ("test", ",test]", "")],
)  # fmt: skip
def test_beside_the_lab_a_command_installs_only_what_it_adds(
    command: str, extra: str, made: str, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    for name in filter(None, ("bin/python", ".lab", made)):
        (tmp_path / name).touch()
    told = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    done = subprocess.run(
        ["make", "-n", *command.split(), f"VENV={tmp_path}"], cwd=root, capture_output=True,
        text=True, env={name: value for name, value in os.environ.items() if name not in told},
    )  # fmt: skip
    assert done.returncode == 0 and " -m venv" not in done.stdout
    installs = [line for line in done.stdout.splitlines() if "pip" in line]
    assert len(installs) == bool(extra) and all(extra in line for line in installs)
    assert f"{tmp_path}/bin/python" in done.stdout.splitlines()[-1]


@posix
def test_an_environment_of_ones_own_is_not_made_again(root: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    call = ["make", "-n", "kit", f"VENV={tmp_path}"]
    done = subprocess.run(call, cwd=root, capture_output=True, text=True)
    assert " -m venv" not in done.stdout and "'.[lab," in done.stdout
    call[-1] += "/other"
    done = subprocess.run(call, cwd=root, capture_output=True, text=True)
    assert f"-m venv {tmp_path}/other" in done.stdout


def _only_basics(folder: Path) -> str:
    """A PATH with the shell's helpers and no Python."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("sh", "id", "touch", "echo", "env"):
        places = (Path(folder, name) for folder in ("/bin", "/usr/bin"))
        (tools / name).symlink_to(next(filter(Path.exists, places)))
    return str(tools)


# --- the first cell ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("installed", "installs"),
    [([], True), (["0.0.9"], True), (["0.1.0"], False), (["0.10.0"], False), (["1.0.0"], False)],
)
def test_first_cell_installs_only_when_missing_or_too_old(
    installed: list[str], installs: bool, notebook_builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    shell = SimpleNamespace(run_line_magic=lambda *given: asked.append(given))
    found = [SimpleNamespace(version=version) for version in installed]
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: found)
    line = notebook_builder.first_cell()
    assert line.startswith("#@title ") and line.count("\n") == 1
    for _ in range(2):  # a second run asks no more than the first
        exec(line, {"get_ipython": lambda: shell})
    expected = ("pip", f"install -q git+{notebook_builder.repository()}")
    assert asked == ([expected, expected] if installs else [])


def test_first_cell_never_forces_an_upgrade(notebook_builder) -> None:
    """pip's default strategy leaves a satisfied torch, numpy or ipywidgets as it is."""
    line = notebook_builder.first_cell()
    assert "--upgrade" not in line and " -U" not in line and "--force" not in line
    assert "capture" not in line and "2>" not in line  # pip's own error stays visible


# --- the wheel --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_under_test.build_wheel(tmp_path_factory.mktemp("wheel"))


def test_wheel_holds_one_package_with_the_data_inside(wheel: Path, root: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"course_lib"}
    shipped = {n.removeprefix("course_lib/_data/") for n in names if "course_lib/_data/" in n}
    data = root / "data"
    here = {
        f.relative_to(data).as_posix()
        for f in data.rglob("*")
        if f.is_file() and "__pycache__" not in f.parts and ".tmp" not in f.name
    }
    assert shipped == here
    rooms = (f for kind in ("*.py", "*.toml") for f in (root / "course_lib").rglob(kind))
    code = {f.relative_to(root).as_posix() for f in rooms}
    assert code <= set(names)


def test_wheel_is_what_an_empty_folder_imports(tmp_path: Path) -> None:
    """The editable install of this environment must not stand before it."""
    good, why = wheel_under_test.prepare(tmp_path).probe()
    assert good, why


def test_network_guard_refuses_and_logs(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ask = (
        "import socket, urllib.request as u\n"
        "for host in ('example.org', '192.0.2.1'):\n"
        "    try: u.urlopen(f'http://{host}/', timeout=3)\n"
        "    except OSError as error: print('refused', error)\n"
        "with socket.create_server(('127.0.0.1', 0)) as s:\n"
        "    socket.create_connection(s.getsockname())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(wheel_under_test.OFFLINE), "OFFLINE_LOG": str(log)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused") == 2
    assert "look up example.org" in log.read_text() and "192.0.2.1" in log.read_text()
    assert "127.0.0.1" not in log.read_text()


def test_no_file_names_this_machine(root: Path) -> None:
    """Registries, home folders and temporary paths belong to pip's own configuration, not here."""
    suspicious = re.compile(r"--(extra-)?index-url|find-links|file:///|/home/\w|/root/|/Users/\w")
    names = "pyproject.toml setup.py constraints.txt environment.yml Makefile .ci/run"
    for name in names.split():
        assert not suspicious.search((root / name).read_text(encoding="utf-8")), name


@posix
def test_ci_script_requires_the_browser_and_runs_make_test(root: Path) -> None:
    script = root / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    text = script.read_text(encoding="utf-8")
    assert "COURSE_REQUIRE_BROWSER=1" in text and "exec make test" in text
