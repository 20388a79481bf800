"""The doctor: each defect of a machine is simulated, and named with a remedy."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from course_lib import doctor
from course_lib.doctor import Finding

Set = Callable[..., None]
Check = Callable[[], Iterator[Finding]]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Set:
    """put(name=value) replaces names of the doctor's for one test."""

    def replace(**values: Any) -> None:
        for name, value in values.items():
            monkeypatch.setattr(doctor, name, value)

    return replace


def of(check: Check, what: str = "") -> Finding:
    """The one finding of a check that is not good; or the one about `what`."""
    found = [f for f in check() if (f.what == what if what else f.state != "good")]
    assert len(found) == 1, found
    return found[0]


def says(finding: Finding, state: str, *words: str) -> None:
    assert finding.state == state
    assert finding.remedy or state == "good"
    for word in words:
        assert word in f"{finding.message} {finding.remedy} {finding.here}", (word, finding)


# ---------------------------------------------------------------- as it is here


def test_here_nothing_needed_is_missing() -> None:
    findings = doctor.examine()
    assert [f for f in findings if f.state == "missing"] == []
    assert doctor.verdict(findings) == "Everything needed is here."
    good = {f.what for f in findings if f.state == "good"}
    assert {"Python", "packages", "torch", "checkpoints", "data", "cache folder"} <= good
    assert all(str(f).isascii() for f in findings if not f.here)  # a console may have no more


def test_it_imports_nothing_but_the_standard_library() -> None:
    ask = "import sys, course_lib.doctor; print(sorted({n.split('.')[0] for n in sys.modules}"
    ask += " - set(sys.stdlib_module_names) - {'course_lib', '__main__'}))"
    call = [sys.executable, "-S", "-c", ask]  # -S: without what site-packages add at the start
    env = os.environ | {"PYTHONPATH": str(doctor.PACKAGE.parent)}
    done = subprocess.run(call, capture_output=True, text=True, env=env, check=True)
    assert done.stdout.strip() == "[]"


def test_it_runs_where_nothing_is_installed_and_says_so() -> None:
    """-S hides site-packages: no packages at all."""
    call = [sys.executable, "-S", "-m", "course_lib.doctor"]
    env = os.environ | {"PYTHONPATH": str(doctor.PACKAGE.parent), "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(call, capture_output=True, encoding="cp1252", env=env)
    assert done.returncode == 1, done.stderr
    assert "TO DO   package: torch is not installed" in done.stdout
    assert "TO DO   package: transformers is not installed" in done.stdout
    assert "ok      data: " in done.stdout
    assert "to fix first." in done.stdout.splitlines()[-1]
    assert "could not be checked" not in done.stdout


@pytest.mark.parametrize("state", ["good", "note", "missing"])
def test_exit_status_is_1_only_where_something_needed_is_missing(
    state: str, put: Set, capsys: pytest.CaptureFixture[str]
) -> None:
    put(examine=lambda: [Finding("a thing", state, "seen", "do this")])  # type: ignore[arg-type]
    assert doctor.main() == (state == "missing")
    assert "a thing: seen" in (said := capsys.readouterr().out) and "-> do this" in said


def test_a_check_that_fails_is_a_line_and_not_the_end() -> None:
    def broken() -> Iterator[Finding]:
        yield Finding("first", "good", "seen")
        raise RuntimeError("no such thing")

    first, second = doctor._guarded(broken)
    assert first.state == "good" and "RuntimeError: no such thing" in second.message


# ---------------------------------------------------------------- Python and packages


def test_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    says(of(doctor.python), "missing", "3.10.4", "python.org")


@pytest.mark.parametrize(
    ("version", "why"), [(None, "numpy is not installed"), ("1.20", "the course needs >=1.26")]
)
def test_missing_and_old_packages(version: str | None, why: str, put: Set) -> None:
    real = doctor.version_of
    put(version_of=lambda name: version if name == "numpy" else real(name))
    says(of(doctor.requirements), "missing", why, 'pip install "numpy>=1.26"')
    says(of(doctor.requirements, "packages"), "good", "18 of 19", "make lab")


def test_requirements_of_an_installed_package_are_read_from_its_metadata(
    put: Set, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["torch>=2.9", "Sphinx<10,>=8; extra == 'languages'", 'x>1; extra == "test"']
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    put(PACKAGE=tmp_path / "course_lib")  # no pyproject.toml beside it
    expected = {"": ["torch>=2.9"], "languages": ["Sphinx<10,>=8"], "test": ["x>1"]}
    assert doctor.requirements_by_extra() == expected


def test_every_extra_of_a_student_is_known(root: Path) -> None:
    assert set(doctor.requirements_by_extra()) - set(doctor.EXTRAS) == {"", "test"}, (
        "name the new one in EXTRAS"
    )


def test_without_packaging_only_presence_is_looked_at(
    put: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    put(version_of=lambda name: None if name == "packaging" else "0.0.1")
    assert of(doctor.requirements, "package").state == "note"
    assert doctor.lacking("numpy>=1.26") == ""


def test_missing_extra_names_the_page(put: Set) -> None:
    real = doctor.version_of
    put(version_of=lambda name: None if name == "onnxruntime" else real(name))
    says(of(doctor.extras, "for lecture 12's ONNX Runtime"), "note", "onnxruntime", "[onnx]")


def test_two_installations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Set) -> None:
    put(installations=lambda: [doctor.PACKAGE])
    assert [f.state for f in doctor.installation()] == ["good"]
    monkeypatch.undo()
    (tmp_path / "course_lib").mkdir()
    (tmp_path / "course_lib" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert doctor.installations()[0] == doctor.PACKAGE
    says(of(doctor.installation), "note", str(tmp_path), "pip uninstall")


def test_an_editable_installation_elsewhere_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "course_lib").mkdir()
    (tmp_path / "course_lib" / "__init__.py").touch()
    told = json.dumps({"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    fake = SimpleNamespace(read_text=lambda _: told, version="0.0.9")
    monkeypatch.setattr(metadata, "distributions", lambda name: [fake])
    assert (tmp_path / "course_lib").resolve() in doctor.installations()


def test_an_installation_of_another_version(put: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    put(installations=lambda: [doctor.PACKAGE])
    monkeypatch.setattr(metadata, "distributions", lambda name: [SimpleNamespace(version="0.0.9")])
    says(of(doctor.installation), "note", "the installed package is 0.0.9")


# ---------------------------------------------------------------- torch


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise ImportError('libtorch.so: no such file')", "ImportError: libtorch.so"),
        ("import os; os._exit(77)", "it crashed (exit status 77)"),
        ("import time; time.sleep(60)", "it did not finish within 3 seconds"),
    ],
    ids=["broken", "crashes", "hangs"],
)
def test_torch_that_does_not_load(
    code: str, why: str, tmp_path: Path, put: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A torch of our own stands before the real one in the process that is asked."""
    (tmp_path / "torch.py").write_text(code, encoding="utf-8")
    put(PATIENCE=3, PACKAGE=tmp_path / "course_lib")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    says(of(doctor.torch_and_checkpoints), "missing", why, "pip install")


def test_torch_that_multiplies_wrongly(put: Set) -> None:
    put(ask_torch=lambda: ({"torch": "2.9", "right": False, "threads": 2}, ""))
    says(of(doctor.torch_and_checkpoints), "missing", "multiplies matrices incorrectly")


TOLD = {"torch": "2.9", "right": True, "threads": 2, "gpu": ""}


@pytest.mark.parametrize(
    ("native", "words"), [(True, "bfloat16 natively"), (False, "by emulation")]
)
def test_number_format(native: bool, words: str, put: Set) -> None:
    precision = "bfloat16" if native else "float32"
    put(ask_torch=lambda: (TOLD | {"precision": precision, "native": native}, "SomeError: x"))
    says(of(doctor.torch_and_checkpoints, "number format"), "good", words, f"in {precision}")
    says(of(doctor.torch_and_checkpoints, "checkpoints"), "missing", "SomeError", "git checkout")


# ---------------------------------------------------------------- machine, cache, data


def test_one_core(put: Set) -> None:
    put(cores=lambda: 1)
    finding = of(doctor.machine)
    assert (finding.what, finding.state) == ("processor cores", "note")


@pytest.mark.parametrize(("free", "words"), [(2**29, "0.5 GiB"), (None, "unknown")])
def test_memory(free: int | None, words: str, put: Set) -> None:
    put(free_memory=lambda: free)
    finding = of(doctor.machine)
    assert finding.state == "note" and words in finding.message


def test_a_container_s_limit_counts(put: Set) -> None:
    put(_words=lambda path: ["1073741824"] if "cgroup" in str(path) else [])
    assert doctor.free_memory() == 2**30


def test_memory_without_psutil(put: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    told = ["MemTotal:", "4096", "kB", "MemAvailable:", "2048", "kB"]
    put(_words=lambda path: told if "meminfo" in str(path) else ["max"])
    assert doctor.free_memory() == 2048 * 1024
    put(_words=lambda path: [])  # macOS and Windows
    assert doctor.free_memory() is None


def test_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Set
) -> None:
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "a file" / "folder"))
    (tmp_path / "a file").touch()
    says(of(doctor.cache), "missing", "COURSE_LIB_CACHE")
    monkeypatch.setenv("COURSE_LIB_CACHE", str(tmp_path / "full"))
    full = SimpleNamespace(disk_usage=lambda _: SimpleNamespace(free=2**20))
    put(shutil=full)
    says(of(doctor.cache), "note", "0.0 GiB free", "free some")


def test_data_cut_short_and_data_absent(tmp_path: Path, put: Set) -> None:
    for name in ("kept", "cut", "lost"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    from course_lib.files import write_manifest

    write_manifest(tmp_path)
    put(data_root=lambda: tmp_path)
    assert [f.state for f in doctor.data()] == ["good"]
    (tmp_path / "cut").write_text("cu", encoding="utf-8")
    (tmp_path / "lost").unlink()
    lost, cut = doctor.data()
    says(lost, "missing", "1 of 3 files missing: lost", "git checkout data")
    says(cut, "missing", "1 of 3 files differ from the manifest: cut")

    def nowhere() -> Path:
        raise FileNotFoundError("no data")

    put(data_root=nowhere)
    says(of(doctor.data), "missing", "no data")


# ---------------------------------------------------------------- Jupyter


@pytest.fixture
def extensions(tmp_path: Path, put: Set) -> Path:
    """A folder of JupyterLab's with both extensions, fitting ipywidgets 8 and anywidget 0.9."""
    for name in ("@jupyter-widgets/jupyterlab-manager", "anywidget"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "package.json").write_text('{"version": "0.9.1"}', encoding="utf-8")
    versions = {"ipywidgets": "8.1", "jupyterlab_widgets": "3.0", "anywidget": "0.9.1"}
    versions |= {"jupyterlab": "4.2"}
    put(extension_folders=lambda: [tmp_path], version_of=versions.get)
    return tmp_path


def test_widgets_that_match(extensions: Path) -> None:
    assert [f.state for f in doctor.widgets()] == ["good"]


def test_halves_of_ipywidgets_that_do_not_match(extensions: Path, put: Set) -> None:
    found = doctor.version_of
    put(version_of=lambda name: "1.1" if name == "jupyterlab_widgets" else found(name))
    says(of(doctor.widgets), "missing", "needs jupyterlab_widgets 3; found 1.1")


def test_a_missing_extension_of_jupyterlab(extensions: Path) -> None:
    (extensions / "anywidget" / "package.json").unlink()
    says(of(doctor.widgets), "missing", "extension anywidget is missing", "--force-reinstall")


def test_an_extension_of_another_version(extensions: Path) -> None:
    about = extensions / "anywidget" / "package.json"
    about.write_text('{"version": "0.8.0"}', encoding="utf-8")
    says(of(doctor.widgets), "missing", "0.8.0", "0.9.1")


def test_no_jupyterlab_here(put: Set) -> None:
    put(version_of=lambda name: None)
    says(of(doctor.widgets), "note", "jupyterlab>=4.2")


def kernel_of(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    from jupyter_client.kernelspec import KernelSpecManager

    spec = SimpleNamespace(argv=[program, "-m", "ipykernel_launcher"])
    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda self, name: spec)


def test_the_kernel_is_another_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Set
) -> None:
    put(shutil=SimpleNamespace(which=lambda name: None))
    kernel_of(monkeypatch, "python")  # Jupyter's own word for its own Python
    assert [f.state for f in doctor.kernel()] == ["good"]
    kernel_of(monkeypatch, str(Path(sys.executable).with_name("python3.99")))  # the same folder
    assert [f.state for f in doctor.kernel()] == ["good"]
    kernel_of(monkeypatch, str(tmp_path / "python"))
    says(of(doctor.kernel), "missing", str(tmp_path), "ipykernel install --sys-prefix")


def test_no_kernel_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from jupyter_client import kernelspec

    def none(self: Any, name: str) -> None:
        raise kernelspec.NoSuchKernel(name)

    monkeypatch.setattr(kernelspec.KernelSpecManager, "get_kernel_spec", none)
    says(of(doctor.kernel), "missing", "no kernel named python3")


def test_the_jupyter_of_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Set
) -> None:
    kernel_of(monkeypatch, "python")
    put(shutil=SimpleNamespace(which=lambda name: str(tmp_path / name)))
    says(of(doctor.kernel), "note", "another environment", "python -m jupyter lab")


# ---------------------------------------------------------------- programs, environment


def test_no_compiler_and_no_browser(put: Set) -> None:
    put(shutil=SimpleNamespace(which=lambda name: None))
    compiler, browser = doctor.tools()
    says(compiler, "note", "no C++ compiler")
    says(browser, "note", "no Chromium", doctor.how_to_install_browser())


@pytest.mark.parametrize(
    ("system", "manager", "release", "command"),
    [
        ("darwin", "", "", "brew install --cask google-chrome"),
        ("linux", "apt-get", "ID=debian", "sudo apt install chromium"),
        ("linux", "apt-get", "NAME=x\nID=ubuntu", "sudo apt install chromium-browser"),
        ("linux", "apt-get", "ID=mint\nID_LIKE=ubuntu", "sudo apt install chromium"),
        ("linux", "dnf", "ID=fedora", "sudo dnf install chromium"),
        ("linux", "pacman", "", "sudo pacman -S chromium"),
        ("linux", "", "", "sudo apt install chromium"),
    ],
)
def test_each_system_installs_a_browser_in_its_way(
    system: str, manager: str, release: str, command: str, put: Set, tmp_path: Path
) -> None:
    (tmp_path / "os-release").write_text(release)
    put(sys=SimpleNamespace(platform=system), os=SimpleNamespace(name="posix"),
        shutil=SimpleNamespace(which=lambda name: name if name == manager else None),
        OS_RELEASE=tmp_path / "os-release")  # fmt: skip
    assert doctor.how_to_install_browser() == command
    put(os=SimpleNamespace(name="nt"), sys=SimpleNamespace(platform="win32"))
    assert doctor.how_to_install_browser() == "winget install Google.Chrome"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OMP_NUM_THREADS", "1", "OMP_NUM_THREADS=1: limits"),
        ("MALLOC_TRIM_THRESHOLD_", "9", "speed and memory"),
        ("COURSE_LIB_CACHE", "/some/where", "moves the cache"),
        ("COURSE_LIB_CAHCE", "x", "no such setting"),
    ],
)
def test_variables_that_change_results(
    name: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"HOME": "x", "COURSE_LIB_PROGRESS": "off"})
    assert [f.state for f in doctor.environment()] == ["good"]
    os.environ[name] = value
    says(of(doctor.environment), "note", words, f"unset {name}")


def test_every_switch_of_the_course_is_known(root: Path) -> None:
    """Read where the library reads them."""
    texts = (path.read_text(encoding="utf-8") for path in (root / "course_lib").rglob("*.py"))
    names = {name for text in texts for name in re.findall(r'"(COURSE_LIB_[A-Z]+)"', text)}
    assert names == set(doctor.SWITCHES) | doctor.SILENT


# ---------------------------------------------------------------- page 00


def test_page_00_shows_the_same_findings(put: Set, monkeypatch: pytest.MonkeyPatch) -> None:
    from course_lib.teaching import machine

    found = [
        Finding("a", "good", "seen", here="/secret"),
        Finding("b", "missing", "<absent>", "do this", "/told"),
    ]
    monkeypatch.setattr(machine, "examine", lambda: found)
    page = machine.check_machine()
    assert "✓ ready: a: seen</li>" in page.html and "/secret" not in page.html
    assert "&lt;absent&gt; (/told)" in page.html and "→ do this" in page.html
    assert "1 thing(s) to fix first." in page.html
    assert page.text.splitlines()[0] == "ok      a: seen" and str(found[1]) in page.text
