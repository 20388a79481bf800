"""What is wrong with this machine, and what to do about it: `python -m course_lib.doctor`.

It runs where torch or any other requirement is missing or broken: this file imports nothing but the
standard library, and torch is tried in a process of its own, whose crash is one line of the report.
Nothing is installed or changed, and no network is asked. Page 00 shows the same findings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from . import __version__
from .files import MANIFEST, PACKAGE, cache_dir, data_root, read_manifest, sha256_of

DISTRIBUTION = "bert-family-course"
REINSTALL = 'run `make lab` again, or pip install -e ".[lab]" in the course\'s folder'
PAGE_MEMORY, DISK = 2 * 2**30, 2**30  # bytes: what a page may take, what the cache may grow to
PATIENCE = 300  # seconds that torch may take to be loaded, on a slow disk
EXTRAS = {  # an extra: what needs it
    "lab": "JupyterLab itself",
    "weights": "lecture 02's real weights",
    "languages": "lecture 10's translations",
    "domains": "lecture 11's diagnoses and licences",
    "onnx": "lecture 12's ONNX Runtime",
    "search": "lecture 17's graph of neighbours",
    "kit": "the PDFs of the instructor's kit",
    "slides": "building the decks",
    "site": "building the site",
}
COMPILERS = ("c++", "g++", "clang++", "cl")
OS_RELEASE = Path("/etc/os-release")  # which Linux
BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    # where one is that no PATH names
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)  # fmt: skip
LAB_WIDGETS = {"7": "1", "8": "3"}  # ipywidgets' first number: jupyterlab_widgets'
SWITCHES = {  # the course's own
    "COURSE_LIB_CACHE": "moves the cache",
    "COURSE_LIB_ALLOCATOR": "leaves memory to the system's allocator (slower)",
    "COURSE_LIB_DEVICE": "where models are trained; last digits differ from the CPU's",
}
INFLUENCES = {  # other people's: a pattern of names, what they change
    "(OMP|MKL)_NUM_THREADS": "limits torch's threads: slower, and last digits differ",
    "OMP_WAIT_POLICY": "how torch's threads wait: affects speed when other programs run",
    "MALLOC_.*|GLIBC_TUNABLES|LD_PRELOAD|DYLD_INSERT_LIBRARIES": "affects speed and memory",
    "CUDA_VISIBLE_DEVICES": "which GPUs can be used",
    "HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE": "nothing is fetched from the hub",
    "PYTHONPATH|PYTHONHOME": "what Python imports; a frequent cause of mixed installations",
}
SILENT = {"COURSE_LIB_PROGRESS"}  # ours, and no result depends on it

State = Literal["good", "note", "missing"]
SIGNS: dict[State, str] = {"good": "ok", "note": "note", "missing": "TO DO"}


@dataclass(frozen=True)
class Finding:
    """One line. state: "missing" where a page cannot run without it, "note" where it can."""

    what: str
    state: State
    message: str
    remedy: str = ""
    here: str = ""  # what no other machine has: a folder, how much is free

    def __str__(self) -> str:
        here = f" ({self.here})" if self.here else ""
        remedy = f"\n{'':8}-> {self.remedy}" if self.remedy else ""
        return f"{SIGNS[self.state]:<6}  {self.what}: {self.message}{here}{remedy}"


def examine() -> list[Finding]:
    """Every check, in the order in which its remedies help. Never raises."""
    checks: list[Callable[[], Iterator[Finding]]] = [
        python, installation, requirements, torch_and_checkpoints, machine, widgets, kernel, data,
        cache, extras, tools, environment,
    ]  # fmt: skip
    return [finding for check in checks for finding in _guarded(check)]


def _guarded(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    findings: list[Finding] = []
    try:
        for finding in check():
            findings.append(finding)
    except Exception as error:  # a doctor who falls ill himself helps nobody
        name = check.__name__.replace("_", " ")
        findings.append(Finding(name, "note", f"could not be checked ({_said(error)})"))
    return findings


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# ---------------------------------------------------------------- Python and packages


def python() -> Iterator[Finding]:
    now = ".".join(map(str, sys.version_info[:3]))
    newer = "install Python 3.11 or newer from python.org and make the environment with it"
    old = sys.version_info < (3, 11)
    text = f"{now}; the course needs 3.11 or newer"
    yield Finding(
        "Python", "missing" if old else "good", text, newer if old else "", sys.executable
    )


def requirements_by_extra() -> dict[str, list[str]]:
    """{extra, or "" for what is always needed: its requirements}: of a checkout its pyproject.toml,
    else what was installed."""
    project = PACKAGE.parent / "pyproject.toml"
    if project.is_file() and sys.version_info >= (3, 11):
        import tomllib

        project_table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        return {"": project_table["dependencies"], **project_table["optional-dependencies"]}
    by_extra: dict[str, list[str]] = {}
    for line in metadata.requires(DISTRIBUTION) or []:
        text, _, marker = line.partition(";")
        extra = re.search(r"""extra *== *['"]([\w-]+)['"]""", marker)
        by_extra.setdefault(extra[1] if extra else "", []).append(text.strip())
    return by_extra


def version_of(name: str) -> str | None:
    """The installed version of a distribution; None where there is none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def lacking(requirement: str) -> str:
    """Why an installed package does not do; "" where it does.

    Without `packaging` only whether it is installed is looked at."""
    name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    if (version := version_of(name)) is None:
        return f"{name} is not installed"
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return ""
    if Requirement(requirement).specifier.contains(version, prereleases=True):
        return ""
    return f"{name} is {version}; the course needs {requirement.removeprefix(name)}"


def requirements() -> Iterator[Finding]:
    needed = requirements_by_extra()[""]
    names = [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in needed]
    wrong = {text: why for text in needed if (why := lacking(text))}
    for text, why in wrong.items():
        yield Finding("package", "missing", why, f'pip install "{text.split(";")[0].strip()}"')
    right = [name for text, name in zip(needed, names, strict=True) if text not in wrong]
    versions = ", ".join(f"{name} {version_of(name)}" for name in right)
    text = f"{len(right)} of {len(needed)} suitable: {versions}"
    yield Finding("packages", "good", text, f"to install all at once: {REINSTALL}" if wrong else "")
    if version_of("packaging") is None:
        without = "packages were looked for, but their versions were not checked"
        yield Finding("package", "note", f"packaging is not installed: {without}")


def installations() -> list[Path]:
    """Every folder course_lib could be imported from, the one in use first."""
    folders = [PACKAGE]
    folders += [Path(entry or ".", "course_lib") for entry in sys.path]
    for distribution in metadata.distributions(name=DISTRIBUTION):
        editable = json.loads(distribution.read_text("direct_url.json") or "{}")
        if editable.get("dir_info", {}).get("editable"):
            root = url2pathname(urlsplit(editable["url"]).path)
            folders.append(Path(root, "course_lib"))
        else:
            folders.append(Path(str(distribution.locate_file("course_lib"))))
    real = [f.resolve() for f in folders if (f / "__init__.py").is_file()]
    return list(dict.fromkeys(real))


def installation() -> Iterator[Finding]:
    in_use, *others = installations()
    versions = {distribution.version for distribution in metadata.distributions(name=DISTRIBUTION)}
    if others:
        where = ", ".join(map(str, (in_use, *others)))
        text = f"found {1 + len(others)} installations of course_lib; the first is in use"
        remedy = f"pip uninstall {DISTRIBUTION} where it should not be; and check PYTHONPATH"
        yield Finding("the course", "note", text, remedy, where)
    elif versions - {__version__}:
        text = f"{__version__}, but the installed package is {', '.join(sorted(versions))}"
        yield Finding("the course", "note", text, REINSTALL, str(in_use))
    else:
        yield Finding("the course", "good", f"course_lib {__version__}", here=str(in_use))


# ---------------------------------------------------------------- torch, in a process of its own

MARK = "course_lib.doctor tells: "


def tell_of_torch() -> None:
    """What the process of its own does: a line a step, so that a crash leaves the steps before."""
    import torch

    ones = torch.ones(64, 64)
    right = bool(((ones @ ones) == 64).all())
    _tell(torch=torch.__version__, right=right, threads=torch.get_num_threads())
    from course_lib.train.precision import choose_precision, native_bfloat16

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    _tell(precision=choose_precision(), native=native_bfloat16(), gpu=gpu)
    _tell(checkpoints=_load_checkpoints())


def _tell(**report: Any) -> None:
    print(f"{MARK}{json.dumps(report)}", flush=True)


def _load_checkpoints() -> int:
    """How many checkpoints the course ships, all loaded."""
    from course_lib.checkpoints import COURSE, load, load_pretrained
    from course_lib.checkpoints.elmo import load_elmo

    micro = sorted(Path(data_root(), "checkpoints").glob("*.safetensors"))
    for path in micro:
        (load_elmo if "elmo" in path.name else load)(path)
    for name in COURSE:
        load_pretrained(name)
    return len(micro) + len(COURSE)


def ask_torch() -> tuple[dict[str, Any], str]:
    """What that process told, and why it ended early ("" where it did not)."""
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    call = [sys.executable, "-c", "from course_lib.doctor import tell_of_torch as t; t()"]
    try:
        done = subprocess.run(
            call, capture_output=True, text=True, encoding="utf-8", errors="replace",
            timeout=PATIENCE, env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {}, f"it did not finish within {PATIENCE} seconds"
    report: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            report |= json.loads(line.removeprefix(MARK))
    if not done.returncode:
        return report, ""
    last = ([line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"])[-1]
    crashed = f"it crashed (exit status {done.returncode}): " if "Error" not in last else ""
    return report, f"{crashed}{last.strip()[:300]}"


def torch_and_checkpoints() -> Iterator[Finding]:
    report, why = ask_torch()
    again = 'pip install --force-reinstall "torch>=2.9" (README, "Two commands", says from where)'
    if "torch" not in report:
        yield Finding("torch", "missing", f"does not load: {why}", again)
        return
    text = f"{report['torch']} loads and multiplies, on {report['threads']} thread(s)"
    if not report["right"]:
        yield Finding("torch", "missing", "multiplies matrices incorrectly", again)
        return
    yield Finding("torch", "good", text)
    if "precision" in report:
        yield _number_format(report)
    if "checkpoints" in report:
        yield Finding("checkpoints", "good", f"all {report['checkpoints']} load")
    else:
        restore = "restore data/ with `git checkout data`, or reinstall the package"
        yield Finding("checkpoints", "missing", f"do not load: {why}", restore)


def _number_format(info: dict[str, Any]) -> Finding:
    slow = "only by emulation, so it is not used: training takes longer"
    how = "natively" if info["native"] else slow
    gpu = f"; GPU: {info['gpu']}" if info["gpu"] else "; no GPU, and none is needed"
    text = f"training runs in {info['precision']}; this processor multiplies bfloat16 {how}{gpu}"
    return Finding("number format", "good", text)


# ---------------------------------------------------------------- the machine


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_memory() -> int | None:
    """Bytes that a page could have now; None where no way to tell is at hand."""
    candidates = []
    try:
        import psutil

        candidates.append(psutil.virtual_memory().available)
    except ImportError:
        fields = _words(Path("/proc/meminfo"))
        candidates += [1024 * int(fields[fields.index("MemAvailable:") + 1])] if fields else []
    limit = _words(Path("/sys/fs/cgroup/memory.max"))  # of a container, as on Binder
    candidates += [int(word) for word in limit if word.isdigit()]
    return min(candidates, default=None)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except OSError:
        return []


def machine() -> Iterator[Finding]:
    number = cores()
    if number < 2:
        text = "1; pages are designed for two and will take about twice as long"
        yield Finding("processor cores", "note", text)
    else:
        yield Finding("processor cores", "good", f"{number}; two are enough")
    memory = free_memory()
    if memory is None:
        yield Finding("free memory", "note", "unknown; a page takes up to 2 GiB")
    elif memory < PAGE_MEMORY:
        text = f"{memory / 2**30:.1f} GiB; a page takes up to 2"
        yield Finding("free memory", "note", text, "close other kernels and programs")
    else:
        text = "enough; a page takes up to 2 GiB"
        yield Finding("free memory", "good", text, here=f"{memory / 2**30:.1f} GiB")


def cache() -> Iterator[Finding]:
    """What is computed once is kept there."""
    move = "set the environment variable COURSE_LIB_CACHE to a folder you can write to"
    try:
        folder = cache_dir()
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        yield Finding("cache folder", "missing", f"cannot be written ({_said(error)})", move)
        return
    here = f"{folder}, {free / 2**30:.1f} GiB free"
    if free < DISK:
        text = "can be written, but its disk has less than 1 GiB free"
        yield Finding("cache folder", "note", text, f"free some space, or {move}", here)
    else:
        yield Finding("cache folder", "good", "can be written; its disk has room", here=here)


# ---------------------------------------------------------------- Jupyter


def extension_folders() -> list[Path]:
    """Where JupyterLab looks for extensions."""
    try:
        from jupyter_core.paths import jupyter_path

        return [Path(path) for path in jupyter_path("labextensions")]
    except ImportError:
        return [Path(sys.prefix, "share", "jupyter", "labextensions")]


def widgets() -> Iterator[Finding]:
    """Sliders and quizzes need a Python package and, in JupyterLab, the browser's half of it."""
    lab = version_of("jupyterlab")
    if lab is None:
        text = "JupyterLab is not in this environment; Colab, VS Code and others bring their own"
        yield Finding("widgets", "note", text, 'if you have none: pip install "jupyterlab>=4.2,<5"')
        return
    good = True
    for why, remedy in _faults_of_widgets():
        good = False
        yield Finding("widgets", "missing", why, remedy)
    if good:
        names = ("ipywidgets", "anywidget")
        text = ", ".join(f"{name} {version_of(name)}" for name in names)
        yield Finding("widgets", "good", f"{text} match JupyterLab {lab}; both extensions found")


def _faults_of_widgets() -> Iterator[tuple[str, str]]:
    python_side, lab_side = version_of("ipywidgets") or "", version_of("jupyterlab_widgets") or ""
    fitting = LAB_WIDGETS.get(python_side.split(".")[0])
    if python_side and fitting and lab_side.split(".")[0] != fitting:
        yield (
            f"ipywidgets {python_side} needs jupyterlab_widgets {fitting}; found {lab_side or '-'}",
            "pip install --upgrade --force-reinstall ipywidgets jupyterlab_widgets",
        )
    for name, package in (
        ("@jupyter-widgets/jupyterlab-manager", "jupyterlab_widgets"), ("anywidget", "anywidget"),
    ):  # fmt: skip
        about = [folder / name / "package.json" for folder in extension_folders()]
        about = [path for path in about if path.is_file()]
        again = f"pip install --force-reinstall {package}; then restart JupyterLab"
        if not about:
            yield f"JupyterLab's extension {name} is missing: sliders stay blank", again
        elif name == package:
            version = json.loads(about[0].read_text(encoding="utf-8"))["version"]
            if version != version_of(package):
                why = f"its extension in JupyterLab is {version}, the package {version_of(package)}"
                yield f"{package}: {why}", again


def kernel() -> Iterator[Finding]:
    """Whether notebooks run in this Python, and `jupyter` starts from it."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        text = "jupyter_client is not installed; your notebooks must run in this Python"
        yield Finding("kernel", "note", text, here=sys.executable)
        return
    register = "python -m ipykernel install --sys-prefix"
    try:
        program = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        yield Finding("kernel", "missing", "notebooks find no kernel named python3", register)
        return
    if os.path.dirname(program) and not _same_folder(program, sys.executable):
        text = "notebooks run in a different Python"
        remedy = f"{register}, and choose that kernel in the notebook"
        yield Finding("kernel", "missing", text, remedy, f"{program}, not {sys.executable}")
    else:
        yield Finding("kernel", "good", "notebooks run in this Python", here=sys.executable)
    starts = shutil.which("jupyter")
    if starts and Path(starts).resolve().parent != Path(sysconfig.get_path("scripts")).resolve():
        text = "the command `jupyter` belongs to another environment"
        yield Finding("kernel", "note", text, "start it with: python -m jupyter lab", starts)


def _same_folder(one: str, other: str) -> bool:
    """Of the two programs: a virtual environment's python is itself a link to a common one."""
    return Path(one).parent.resolve() == Path(other).parent.resolve()


# ---------------------------------------------------------------- data, extras, environment


def data() -> Iterator[Finding]:
    restore = "restore them with `git checkout data`, or reinstall the package"
    try:
        root = data_root()
        manifest = read_manifest(root)
    except (OSError, ValueError) as error:
        yield Finding("data", "missing", str(error), restore)
        return
    absent = [name for name in manifest if not (root / name).is_file()]
    changed = [n for n in manifest if n not in absent and sha256_of(root / n) != manifest[n]]
    for what, names in (("missing", absent), ("differ from the manifest", changed)):
        if names:
            text = f"{len(names)} of {len(manifest)} files {what}: {', '.join(names[:5])}"
            yield Finding("data", "missing", text, restore, str(root))
    if not absent + changed:
        text = f"{len(manifest)} files, all as listed in {MANIFEST}"
        yield Finding("data", "good", text, here=str(root))


def extras() -> Iterator[Finding]:
    """Optional packages: a page without them says so and shows stored results."""
    required = requirements_by_extra()
    for extra, needs in EXTRAS.items():
        if extra not in required:
            continue
        missing = [why for text in required[extra] if (why := lacking(text))]
        if missing:
            first = "; ".join(missing[:3]) + ("; …" if missing[3:] else "")
            install = f'pip install "{DISTRIBUTION}[{extra}]"'
            if (PACKAGE.parent / "pyproject.toml").is_file():
                install = f'pip install -e ".[{extra}]" in the course\'s folder'
            yield Finding(f"for {needs}", "note", first, f"if you want it: {install}")
        else:
            yield Finding(f"for {needs}", "good", f"the extra {extra} is complete")


def program(names: Sequence[str]) -> str | None:
    """Where the first of these programs is, if any is here."""
    return next(filter(None, map(shutil.which, names)), None)


def how_to_install_browser() -> str:
    """The command that installs a Chromium or Chrome on this system."""
    if sys.platform == "darwin":
        return "brew install --cask google-chrome"
    if os.name == "nt":
        return "winget install Google.Chrome"
    managers = {
        "apt-get": "sudo apt install chromium", "dnf": "sudo dnf install chromium",
        "pacman": "sudo pacman -S chromium", "zypper": "sudo zypper install chromium",
        "apk": "sudo apk add chromium",
    }  # fmt: skip
    manager = next(filter(shutil.which, managers), "apt-get")
    if manager == "apt-get" and "ID=ubuntu" in _words(OS_RELEASE):
        return f"{managers[manager]}-browser"
    return managers[manager]


def tools() -> Iterator[Finding]:
    """Programs that are not Python packages."""
    browser, install = program(BROWSERS), f"install one with `{how_to_install_browser()}`"
    for needs, path, what, remedy in (
        ("lecture 12's torch.compile", program(COMPILERS), "C++ compiler", "install one"),
        ("printing PDFs, and building pages", browser, "Chromium or Chrome", install),
    ):
        if path:
            yield Finding(f"for {needs}", "good", f"a {what}", here=path)
        else:
            without = "the page skips that part" if "lecture" in needs else "only these need it"
            yield Finding(f"for {needs}", "note", f"no {what}; {without}", remedy)


def environment() -> Iterator[Finding]:
    """Variables that change results, speed, or where things are."""
    quiet = True
    for name, value in sorted(os.environ.items()):
        changes = next((v for k, v in INFLUENCES.items() if re.fullmatch(k, name)), "")
        if name.startswith("COURSE_LIB_") and name not in SILENT:
            changes = SWITCHES.get(name, "the course has no such setting; is it misspelt?")
        if changes:
            quiet = False
            setting = "" if os.sep in value else f"={value}"
            remedy = f"unset {name} if you did not mean it"
            where = value if not setting else ""
            yield Finding("environment", "note", f"{name}{setting}: {changes}", remedy, where)
    if quiet:
        yield Finding("environment", "good", "no variable that changes results is set")


# ---------------------------------------------------------------- the report


def verdict(findings: list[Finding]) -> str:
    """The last line: whether pages can run."""
    missing = sum(finding.state == "missing" for finding in findings)
    return f"{missing} thing(s) to fix first." if missing else "Everything needed is here."


def main() -> int:
    """Print the report; 1 where something needed is missing, else 0."""
    # A console of another code page (cp1252) must not stop the report at a letter it lacks.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    findings = examine()
    print("\n".join(map(str, findings)))
    print(f"\n{verdict(findings)}")
    return int(any(finding.state == "missing" for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
