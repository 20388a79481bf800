"""Questions and answers that nobody had to label: the first sentence of a docstring is the query,
the rest of the same docstring the document that belongs to it.

Three splits: "train"; "modules", unseen modules of the same packages; "packages", whole packages
that neither these pairs nor any pre-training of the course ever read. What comes out depends on
the versions installed, so results record `Pairs.hash`."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path

from course_lib.files import cache_dir
from course_lib.teaching.documentation_tasks import OUTSIDE, in_order, is_new
from course_lib.text.documentation import (
    PACKAGES,
    SLICE,
    corpus_hash,
    installed_versions,
    module_texts,
    plain,
    read_cache,
    write_cache,
)

SPLITS = ("train", "modules", "packages")
RULES = 1  # raise it when what comes out changes
MOST_A_MODULE, MOST_A_TEST = 60, 1_500
QUERY_WORDS, FEWEST_WORDS = (4, 30), 12
# Copies of other packages' code, which would stand on both sides.
COPIES = re.compile(r"_vendor|/externals?/|typeshed|third_party|/pip/")
# A section that says nothing of its own: examples, references, links.
LEFT_OUT = re.compile(
    r"^(Examples?|References?|See Also|Notes?|Warnings?|Doctests?)\b:?$", re.IGNORECASE
)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])")


@dataclass(frozen=True)
class Pair:
    """A query, its document, and the module that both stand in."""

    query: str
    document: str
    module: str


@dataclass(frozen=True)
class Pairs:
    """The pairs of a split. hash: of all their texts."""

    split: str
    pairs: tuple[Pair, ...]
    versions: dict[str, str]

    @property
    def queries(self) -> list[str]:
        return [pair.query for pair in self.pairs]

    @property
    def documents(self) -> list[str]:
        return [pair.document for pair in self.pairs]

    @property
    def hash(self) -> str:
        return corpus_hash((pair.query, pair.document) for pair in self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, which: slice) -> Pairs:
        return Pairs(self.split, self.pairs[which], self.versions)


def pair_in(docstring: str) -> tuple[str, str] | None:
    """(query, document) of a docstring; None where one of them is too short to stand alone."""
    parts = [p for p in re.split(r"\n\s*\n", docstring.strip()) if p.strip()]
    if not parts or ">>>" in parts[0]:
        return None
    query, *more = SENTENCE.split(plain(parts[0]), maxsplit=1)
    body = [*more, *map(plain, _content(parts[1:]))]
    document = " ".join(part for part in body if part)
    if not QUERY_WORDS[0] <= len(query.split()) <= QUERY_WORDS[1]:
        return None
    if len(document.split()) < FEWEST_WORDS:
        return None
    return query.rstrip(" .:"), document


def _content(parts: Iterable[str]) -> Iterator[str]:
    """Paragraphs up to the first section that is left out; code and rulers are dropped."""
    for part in parts:
        lines = [line for line in part.splitlines() if not re.fullmatch(r"\s*[-=~^]{3,}\s*", line)]
        if lines and LEFT_OUT.match(lines[0].strip()):
            return
        if not re.search(r">>>|^\s*\.\. |::\s*$", part, re.MULTILINE):
            yield "\n".join(lines)


@lru_cache(maxsize=8)
def pairs(split: str = "train", corpus: str = "") -> Pairs:
    """The pairs of a split, from the cache if the same versions are installed, else read from the
    sources (a minute). corpus: "code" has functions as documents. Raises ValueError for another
    split."""
    if split not in SPLITS:
        raise ValueError(f"split={split!r} was given; expected one of {', '.join(SPLITS)}.")
    versions = installed_versions((*PACKAGES, *OUTSIDE))
    about = {**versions, "search pairs": f"rules {RULES}"}
    path = cache_dir("documentation") / f"search-pairs{corpus and '-'}{corpus}.jsonl"
    built = read_cache(path, about)
    if built is None:
        built = _built(corpus)
        write_cache(path, built, about)
    lines = built[SPLITS.index(split)]
    return Pairs(split, tuple(Pair(*json.loads(line)) for line in lines), versions)


def slice_pairs(split: str = "train") -> Pairs:
    """A part of "train" or "modules", of the packages SLICE, read at once (some seconds). Raises
    ValueError for another split."""
    if split not in SPLITS[:2]:
        raise ValueError(f"split={split!r} was given; expected train or modules.")
    lines = _slice()[SPLITS.index(split)]
    return Pairs(split, tuple(Pair(*json.loads(line)) for line in lines), installed_versions(SLICE))


@lru_cache(maxsize=1)
def _slice() -> list[list[str]]:
    reader = _Reader()
    return [reader.lines(in_order(SLICE, side), 5_000) for side in ("train", "test")]


def _built(corpus: str) -> list[list[str]]:
    """The lines of each split; what stood in an earlier one is left out."""
    reader = _Reader(code_pair if corpus else pair_in)
    modules = partial(in_order, read=module_functions) if corpus else in_order
    return [
        reader.lines(modules(PACKAGES, "train")),
        reader.lines(modules(PACKAGES, "test"), MOST_A_TEST),
        reader.lines(modules(OUTSIDE), MOST_A_TEST),
    ]


def module_functions(path: Path) -> list[str]:
    """Every function in a Python file that has a docstring, as source without comments."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef

    def functions(tree: ast.Module) -> Iterator[str]:
        nodes = (node for node in ast.walk(tree) if isinstance(node, kinds))
        return (ast.unparse(node) for node in nodes if ast.get_docstring(node))

    return module_texts(path, functions)


def code_pair(function: str) -> tuple[str, str] | None:
    """(query, document) of a function's source: its docstring's first sentence, and its code with
    names cut into words, sort_rows and SortRows alike."""
    (node,) = ast.parse(function).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    first = (ast.get_docstring(node) or "").split("\n\n")[0]
    query = SENTENCE.split(plain(first), maxsplit=1)[0].rstrip(" .:")
    node.body = node.body[1:] or [ast.Pass()]
    code = re.sub(r"_+|(?<=[a-z])(?=[A-Z])", " ", ast.unparse(node))
    fits = QUERY_WORDS[0] <= len(query.split()) <= QUERY_WORDS[1] and ">>>" not in first
    return (query, " ".join(code.split())) if fits and len(code.split()) >= FEWEST_WORDS else None


class _Reader:
    """Pairs as lines of JSON, without near-doubles of any that were read before."""

    def __init__(self, make: Callable[[str], tuple[str, str] | None] = pair_in) -> None:
        self.make = make
        self.grams: set[str] = set()
        self.queries: set[str] = set()

    def lines(
        self, modules: Iterable[tuple[str, list[str]]], most: float = float("inf")
    ) -> list[str]:
        """Those of the modules, until there are `most`; of a module at most MOST_A_MODULE."""
        lines: list[str] = []
        for module, docstrings in modules:
            if len(lines) >= most:
                break
            if COPIES.search(module):
                continue
            new = (pair for pair in map(self.make, docstrings) if pair and self.is_new(*pair))
            lines += [
                json.dumps((*pair, module), ensure_ascii=False)
                for pair in islice(new, MOST_A_MODULE)
            ]
        return lines

    def is_new(self, query: str, document: str) -> bool:
        if query.lower() in self.queries or not is_new(document, self.grams):
            return False
        self.queries.add(query.lower())
        return True


def held_out_of_training(of: Pairs, fraction: float = 0.1) -> tuple[Pairs, Pairs]:
    """Training pairs, and those of some of their modules, to choose settings by."""
    last = [hashlib.sha256(p.module.encode()).digest()[0] < 256 * fraction for p in of.pairs]
    parts = (
        tuple(p for p, dev in zip(of.pairs, last, strict=True) if dev is side)
        for side in (False, True)
    )
    train, dev = (Pairs(of.split, part, of.versions) for part in parts)
    return train, dev
