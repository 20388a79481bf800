"""Names in texts are names in code: what docstrings and pages put in backticks is there."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import filterfalse
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "notebooks/source").glob("[0-9]*.py"))
PACKAGE = sorted((ROOT / "course_lib").rglob("*.py"))
HELPERS = sorted((ROOT / "tests/library").glob("[!t]*.py"))  # CONTRIBUTING.md sends one there
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "data/README.md",
    *PAGES,
    *sorted((ROOT / "slides/source").glob("[0-9]*.md")),
    *sorted((ROOT / "course_lib/lectures").rglob("*.toml")),
]
NAME = re.compile(r"`([A-Za-z_][\w.]*)(\([^`\n]*\))?`")
PLACE = re.compile(
    r"(?<![\w/.{])((?:course_lib|notebooks|slides|tests|data)/[\w./-]*\w|course_lib(?:\.\w+)+)"
)
# Stand for any other name; are made by a build; are in the wheel.
EXAMPLE = re.compile(r"NN|NAME|a_name|18|camembert|/(test_kernel_)?name\.py|/build$|_data|__file__")
FILE = re.compile(r"\.(py|md|toml|ipynb|txt|json|jsonl|safetensors)$")
# Names of examples, of others' libraries, of the authors' programs and of a shell.
OTHERS = {
    "AutoModelForMaskedLM.from_pretrained", "XLMRobertaConfig", "attn_norm", "cache_folder",
    "camembert", "concat_batches", "dupe_factor", "gather_indexes", "h5py.File",
    "lg_sampling_factor", "mine_hard_negatives", "name.ipynb", "name_reference",
    "quant_pre_process", "sample_alpha", "save_model", "sha256sum", "sparse_prediction",
}  # fmt: skip

# What happened to a thing, or how it stands in a picture, is not what it is.
NO_NAMES = {
    "asked", "asking", "away", "diary", "found", "given", "heard", "looks", "meant", "mine",
    "placed", "said", "shown", "taught", "told", "wanted", "wide",
}  # fmt: skip
# Written in stored files and tables, set by readers, or used by every picture.
KEPT = {
    "lecture_10/world_runs.py": {"told"}, "kit/report.py": {"asked", "said"},
    "teaching/replication.py": {"found"}, "teaching/predictions.py": {"looks"},
    "views/benchmark.py": {"shown"}, "exercises/outputs.py": {"shown"},
    "teaching/results.py": {"shown"}, "teaching/style.py": {"looks"}, "teaching/svg.py": {"wide"},
}  # fmt: skip


def compiled(path: Path) -> CodeType:
    return compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)


def texts_in(value: Any) -> Iterator[str]:
    """The names and the texts, docstrings among them, that code holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | frozenset):
        for part in value:
            yield from texts_in(part)
    elif isinstance(value, CodeType):
        yield from (value.co_name, *value.co_names, *value.co_varnames, *value.co_freevars)
        yield from texts_in(value.co_consts)


def names_among(texts: Iterable[str]) -> set[str]:
    whole = {text for text in texts if re.fullmatch(r"[\w.]+", text)}
    return whole.union(*(text.split(".") for text in whole))


@cache
def package_texts() -> dict[Path, list[str]]:
    return {path: list(texts_in(compiled(path))) for path in PACKAGE}


@cache
def known() -> set[str]:
    """Of the package's code, and the names of its modules and of the repository's files."""
    folders = {path: path.rglob("*.*") for path in (ROOT / "course_lib", ROOT / "data")}
    files = [file.name for found in (*folders.values(), ROOT.glob("*.*")) for file in found]
    modules = (part for path in PACKAGE for part in path.relative_to(ROOT).with_suffix("").parts)
    texts = [*package_texts().values(), *(texts_in(compiled(path)) for path in HELPERS)]
    in_code = (name for found in texts for name in names_among(found))
    return {*dir(builtins), *modules, *(path.stem for path in HELPERS), *in_code, *files}


def unknown(names: Iterable[str], more: Iterable[str] = ()) -> list[str]:
    """Those that stand in no code."""
    there = known().union(more)
    return sorted(
        name
        for name in set(names) - OTHERS
        if not there.issuperset([name] if FILE.search(name) else filter(None, name.split(".")))
    )


def test_docstrings_and_messages_name_what_is_there() -> None:
    named = {path: [name for text in texts for name, _ in NAME.findall(text)]
             for path, texts in package_texts().items()}  # fmt: skip
    assert {str(path): found for path, names in named.items() if (found := unknown(names))} == {}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_texts_name_what_is_there(path: Path) -> None:
    """Of these the names that can be nothing but code: with an underscore, or called; not files,
    of which many are of the authors' programs."""
    text = path.read_text(encoding="utf-8")
    page = texts_in(compiled(path)) if path.suffix == ".py" else re.findall(r"\bmy_\w+", text)
    found = [name for name, called in NAME.findall(text) if "_" in name or called]
    assert unknown(filterfalse(FILE.search, found), names_among(page)) == []


def names_defined(tree: ast.AST) -> Iterator[str]:
    """Of its functions, classes, parameters, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def test_names_say_what_they_hold() -> None:
    """`message` for what is said, `height` for how high, the field's word where it has one."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (*PACKAGE, *PAGES)}
    offences = {
        str(path): NO_NAMES.intersection(names_defined(tree))
        - KEPT.get("/".join(path.parts[-2:]), set())
        for path, tree in trees.items()
    }
    assert {path: names for path, names in offences.items() if names} == {}


def is_there(place: str) -> bool:
    """A path of the repository, a module, or a name in a module."""
    if "/" in place:
        return (ROOT / place).exists()
    parts, path = place.split("."), ROOT
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    if parts and (path / f"{parts[0]}.py").exists():
        parts.pop(0)
    return known().issuperset(parts)


def test_paths_and_modules_that_texts_name_are_there() -> None:
    named = {path: PLACE.findall(path.read_text(encoding="utf-8")) for path in (*PACKAGE, *TEXTS)}
    missing = {
        str(path): found
        for path, places in named.items()
        if (found := [x for x in places if not EXAMPLE.search(x) and not is_there(x)])
    }
    assert missing == {}
