"""Real English that is already here: the documentation of Python and of the installed libraries.

Docstrings are read from source files with `ast` (nothing is imported, nothing runs). Whole prose
paragraphs stay; code, tables, lists of parameters and doubles go. A paragraph belongs to "train" or
"heldout" by its own hash, so it stays on its side whatever else is installed. A *document* is what
is left of one module, in its order: several paragraphs on one subject.

What comes out depends on the versions installed: results made from it record `versions` and `hash`.
`python -m course_lib.text.documentation` builds the whole corpus once, into the cache;
`documentation_slice` reads a small part in a second or two and needs no cache."""

from __future__ import annotations

import argparse
import ast
import gc
import hashlib
import inspect
import json
import os
import re
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata, util
from itertools import groupby
from pathlib import Path

from course_lib.files import cache_dir, write_atomic

# Import names of what the course installs and of what that brings along; absent ones are left out.
PACKAGES = (
    "python", "numpy", "scipy", "sklearn", "joblib", "torch", "sympy", "mpmath", "networkx",
    "jinja2", "fsspec", "transformers", "tokenizers", "safetensors", "huggingface_hub",
    "accelerate", "plotly", "bertviz", "IPython", "ipykernel", "ipywidgets", "traitlets",
    "jupyter_client", "jupyter_server", "nbformat", "nbconvert", "tornado", "zmq", "prompt_toolkit",
    "psutil", "filelock",
)  # fmt: skip
SLICE = ("python", "numpy", "scipy", "sklearn", "torch")
SKIP = {"test", "tests", "testing", "idlelib", "lib2to3", "site-packages", "dist-packages"}
FORMAT = 1  # of the cache; raise it when the rules below change what comes out


@dataclass(frozen=True)
class Corpus:
    """Prose paragraphs, grouped into documents.

    documents: each a list of paragraphs, in the order of their source.
    versions: package -> version, for every package that was read.
    hash: SHA-256 of the paragraphs in their order, 64 hex digits.
    split: "train" (95% of all paragraphs), "heldout" (5%) or "all"."""

    documents: list[list[str]]
    versions: dict[str, str]
    hash: str
    split: str

    @property
    def paragraphs(self) -> list[str]:
        """Every paragraph, document after document."""
        return [paragraph for document in self.documents for paragraph in document]

    @property
    def words(self) -> int:
        """How many words there are, counted at white space."""
        return sum(len(paragraph.split()) for paragraph in self.paragraphs)

    def sentences(self) -> list[list[str]]:
        """The documents as lists of sentences (see `split_sentences`)."""
        return [[s for p in document for s in split_sentences(p)] for document in self.documents]

    def __repr__(self) -> str:
        return (
            f"Corpus({self.split}: {len(self.documents):,} documents, {len(self.paragraphs):,} "
            f"paragraphs, {self.words:,} words, {self.hash[:12]})"
        )


# ---------------------------------------------------------------- one docstring into paragraphs


FEWEST_WORDS = 8  # of a paragraph; that marks are taken out makes no more of them


def prose_paragraphs(text: str) -> list[str]:
    """The prose paragraphs of one docstring, without markup, one line each."""
    enough = (block for block in blocks(text) if len(block.split()) >= FEWEST_WORDS)
    return [paragraph for block in enough if is_prose(paragraph := plain(block))]


def blocks(text: str) -> Iterator[str]:
    """Runs of lines between blank lines, cut where the indentation changes."""
    for filled, lines in groupby(text.splitlines(), key=lambda line: bool(line.strip())):
        if filled:
            for _, run in groupby(lines, key=lambda line: len(line) - len(line.lstrip())):
                yield "\n".join(line.strip() for line in run)


_MARKUP = (
    (re.compile(r":[\w:+.-]+:`([^`<]*?)\s*(?:<[^`]*>)?`"), r"\1"),  # :class:`text <target>`
    (re.compile(r"``([^`]*)``"), r"\1"),
    (re.compile(r"`([^`<]+?)\s*(?:<[^`]*>)?`_{0,2}"), r"\1"),  # `text <address>`_
    (re.compile(r"(?<!\w)\*{1,2}(\S(?:[^*]*\S)?)\*{1,2}(?!\w)"), r"\1"),  # *so* and **so**
    (re.compile(r"\[([^][]+)\]\([^()\s]+\)"), r"\1"),  # [text](address)
    (re.compile(r"\s*\[(?:\d+|#\w*)\]_"), ""),  # a footnote
    (re.compile(r"\s+"), " "),
)


def plain(block: str) -> str:
    """`block` on one line, without the marks of reStructuredText and Markdown."""
    for pattern, replacement in _MARKUP:
        block = pattern.sub(replacement, block)
    return block.strip().replace("~", "")


_STARTS = re.compile(r"[A-Z\"'(]")
_ENDS = re.compile(r"[.!?:][\"')]*$")
_NOT_PROSE = re.compile(
    r">>>|\.\. |::$|^[-=~+|*#]|[{}\\|<>=]{2}|\bhttps?:|@\w|[-=_]{3}|\b\w+ = |\$|%\w|\w+\(\w+="
    r"|^Copyright"
)
_WORD = re.compile(r"[A-Za-z]+(?:['\u2019-][A-Za-z]+)*[,.;:!?)\"']*$|\($")


def is_prose(paragraph: str) -> bool:
    """Whether this is English: a sentence's beginning and end, at least eight words, four in five
    of them made of letters only, and no sign of code or of a table."""
    words = paragraph.split()
    if len(words) < FEWEST_WORDS or not _STARTS.match(paragraph) or not _ENDS.search(paragraph):
        return False
    if _NOT_PROSE.search(paragraph):
        return False
    return sum(bool(_WORD.match(word.lstrip("(\"'"))) for word in words) >= 0.8 * len(words)


# A sentence ends at . ! or ? (with closing quotes or brackets) before a space and a capital letter,
# a digit or an opening quote, except after a common abbreviation or a single initial.
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|cf|vs|Fig|Eq|Eqs|Sec|Ref|No|Dr|Mr|Mrs|al)|\b[A-Z])\.$"
)


def split_sentences(paragraph: str, ends: re.Pattern[str] = _SENTENCE_END) -> list[str]:
    """The sentences of a paragraph: cut after . ! ? where a capital, a digit or a quote follows, or
    at other `ends`.

    Not after common abbreviations (e.g., i.e., Fig., al.) nor single initials. A simple rule: it
    takes some sentences for two, and some two for one."""
    sentences, start = [], 0
    for end in ends.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph[start : end.start()]):
            sentences.append(paragraph[start : end.end()].strip())
            start = end.end()
    return [*sentences, rest] if (rest := paragraph[start:].strip()) else sentences


# ---------------------------------------------------------------- sources


def module_paragraphs(path: Path) -> list[str]:
    """The prose of every docstring in a Python file, in its order; none if it cannot be parsed."""
    return [p for docstring in module_docstrings(path) for p in prose_paragraphs(docstring)]


def module_docstrings(path: Path) -> list[str]:
    """Every docstring in a Python file, dedented, in its order; none if it cannot be parsed."""
    return module_texts(path, _docstrings)


def module_texts(path: Path, taken: Callable[[ast.Module], Iterable[str]]) -> list[str]:
    """What is taken from the tree of a Python file; nothing if it cannot be parsed."""
    collecting = gc.isenabled()
    gc.disable()  # it searches a growing tree for cycles again and again: half of the time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in other people's strings
            return list(taken(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError, OSError, RecursionError):
        return []
    finally:
        if collecting:
            gc.enable()


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Docstrings in source order, and other long texts that stand as a statement or a value.

    Functions are not looked into: what they hold is code."""
    for child in getattr(node, "body", []):
        if isinstance(child, ast.Expr | ast.Assign) and isinstance(child.value, ast.Constant):
            if isinstance(text := child.value.value, str):
                yield inspect.cleandoc(text)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(child):
                yield text
        elif isinstance(child, ast.ClassDef | ast.If | ast.Try):
            yield from _docstrings(child)


def source_files(package: str) -> dict[str, Path]:
    """name -> path of every Python file of an installed package, tests left out, sorted by name.

    "python" is the standard library. Empty where the package is not installed."""
    root, result = _package_root(package), {}
    for folder, folders, names in os.walk(root) if root else ():
        folders[:] = [name for name in folders if name not in SKIP]  # os.walk does not enter these
        for name in names:
            if name.endswith(".py"):
                path = Path(folder, name)
                result[f"{package}/{path.relative_to(root or '').as_posix()}"] = path
    return dict(sorted(result.items()))


def _package_root(package: str) -> Path | None:
    if package == "python":
        return Path(sysconfig.get_path("stdlib"))
    spec = util.find_spec(package)  # finds a top-level package without importing it
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


_DISTRIBUTIONS = {"sklearn": "scikit-learn", "zmq": "pyzmq"}  # where import and install name differ


def installed_versions(packages: Iterable[str] | None = None) -> dict[str, str]:
    """package -> version, of those of `packages` (default: PACKAGES) that are installed."""
    return {name: _version(name) for name in packages or PACKAGES if _package_root(name)}


def _version(package: str) -> str:
    if package == "python":
        return sys.version.split()[0]
    try:
        return metadata.version(_DISTRIBUTIONS.get(package, package))
    except metadata.PackageNotFoundError:
        return "unknown"


# ---------------------------------------------------------------- a corpus


def split_of(paragraph: str) -> str:
    """ "heldout" for one paragraph in twenty, else "train": a function of the paragraph alone."""
    first = hashlib.sha256(paragraph.encode("utf-8", "replace")).digest()[0]
    return "heldout" if first * 20 < 256 else "train"


def corpus_hash(documents: Iterable[Iterable[str]]) -> str:
    """SHA-256 of the paragraphs in order, and of where documents end."""
    digest = hashlib.sha256()
    for document in documents:
        digest.update(("\n".join(document) + "\n\n").encode("utf-8", "replace"))
    return digest.hexdigest()


def documentation(split: str = "train", *, rebuild: bool = False) -> Corpus:
    """The whole corpus, from the cache if the same versions are installed, else built (a minute).

    split: "train", "heldout" or "all". Raises ValueError for another split."""
    _check_split(split)
    versions = installed_versions()
    path = cache_dir("documentation") / "packages.jsonl"
    documents = None if rebuild else read_cache(path, versions)
    if documents is None:
        documents = list(_without_doubles(_all_documents()))
        write_cache(path, documents, versions)
    return _corpus(documents, versions, split)


def documentation_slice(paragraphs: int = 2_000, split: str = "train") -> Corpus:
    """A small corpus read at once, without a cache: `paragraphs` of them or the few that make the
    last document whole.

    Modules of five libraries that the course installs are taken in the order of a hash of their
    names, which mixes the subjects, until there is enough (or no more).
    Raises ValueError for a number below 1 or another split."""
    _check_split(split)
    if paragraphs < 1:
        raise ValueError(f"paragraphs={paragraphs}: expected at least 1.")
    chosen, result = [], 0
    for document in _without_doubles(_slice_documents()):
        kept = [p for p in document if split in ("all", split_of(p))]
        if kept:
            chosen.append(kept)
            result += len(kept)
        if result >= paragraphs:
            break
    return _corpus(chosen, installed_versions(SLICE), "all", name=split)


def _slice_documents() -> Iterator[list[str]]:
    files = {name: path for package in SLICE for name, path in source_files(package).items()}
    order = sorted(files, key=lambda name: hashlib.sha256(name.encode()).digest())
    return (module_paragraphs(files[name]) for name in order)


def _all_documents() -> Iterator[list[str]]:
    for package in PACKAGES:
        yield from map(module_paragraphs, source_files(package).values())


def _without_doubles(documents: Iterable[list[str]]) -> Iterator[list[str]]:
    """Each paragraph only where it stands first; documents of which nothing is left are dropped."""
    seen: set[str] = set()
    for document in documents:
        fresh = [p for p in dict.fromkeys(document) if p not in seen]
        seen.update(fresh)
        if fresh:
            yield fresh


def _corpus(
    documents: list[list[str]], versions: dict[str, str], split: str, name: str | None = None
) -> Corpus:
    if split != "all":
        parts = ([p for p in document if split_of(p) == split] for document in documents)
        documents = [part for part in parts if part]
    return Corpus(documents, versions, corpus_hash(documents), name or split)


def _check_split(split: str) -> None:
    if split not in ("train", "heldout", "all"):
        raise ValueError(f'split={split!r}: expected "train", "heldout" or "all".')


# ---------------------------------------------------------------- the cache


def write_cache(path: Path, documents: list[list[str]], versions: dict[str, str]) -> None:
    """Write a header line (format, versions, hash), then one document a line, all as JSON."""
    header = {"format": FORMAT, "versions": versions, "hash": corpus_hash(documents)}
    lines = (json.dumps(item, ensure_ascii=False) for item in (header, *documents))
    write_atomic(path, "".join(f"{line}\n" for line in lines))


def read_cache(path: Path, versions: dict[str, str]) -> list[list[str]] | None:
    """The documents in `path`; None (build anew) if it is absent, damaged or of other versions."""
    try:
        # Not splitlines(): paragraphs may hold characters that it would take for line ends.
        first, *rest = path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        header = json.loads(first)
        documents = [json.loads(line) for line in rest]
        if header != {"format": FORMAT, "versions": versions, "hash": corpus_hash(documents)}:
            return None
    except (OSError, ValueError, TypeError):
        return None
    return documents


def main() -> None:
    """The command: build the corpus (or find it in the cache) and say what is in it."""
    parser = argparse.ArgumentParser(description="Build the documentation corpus, into the cache.")
    parser.add_argument("--rebuild", action="store_true", help="build even if the cache is good")
    options = parser.parse_args()
    start = time.perf_counter()
    for split in ("train", "heldout"):
        print(documentation(split, rebuild=options.rebuild))
        options.rebuild = False  # once is enough
    read = ", ".join(f"{name} {version}" for name, version in installed_versions().items())
    print(f"from {read}\nin {cache_dir('documentation')}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
