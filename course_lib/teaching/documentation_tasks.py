"""Tasks with thousands of labels that nobody had to write for them: the markup of docstrings.

`code_words`: which words of a sentence are code, as its author marked them with backticks or a
role of Sphinx. `sections`: under which heading of a docstring a description stands. The markup is
taken out before a model sees the text. Modules are read in the order of a hash of their names until
there is enough, so that a smaller set is the beginning of a larger one; each module is on one side,
train or test, by its name; of texts that are nearly alike only the first stays. "outside" comes
from packages that the course's checkpoint never read.

What comes out depends on the versions installed, and is nowhere shipped: results made from it
record `versions` and `hash`. Built in seconds, then read from the cache.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from course_lib.files import cache_dir
from course_lib.text.documentation import (
    blocks,
    corpus_hash,
    installed_versions,
    is_prose,
    module_docstrings,
    plain,
    read_cache,
    source_files,
    split_sentences,
    write_cache,
)
from course_lib.text.english import LabelledText, TaggedSentence

# Not sympy nor mpmath: their single backticks are formulas.
INSIDE = (
    "python", "numpy", "scipy", "sklearn", "torch", "networkx", "huggingface_hub", "accelerate",
    "tornado", "jinja2", "IPython",
)  # fmt: skip
# None of these is in `documentation.PACKAGES`; absent ones are left out.
OUTSIDE = (
    "anyio", "attr", "babel", "bs4", "click", "docutils", "httpx", "jedi", "jsonschema",
    "lightning_utilities", "narwhals", "packaging", "parso", "PIL", "playwright", "psygnal",
    "pydantic", "pygments", "requests", "rich", "sentence_transformers", "setuptools", "sphinx",
    "torchmetrics", "urllib3",
)  # fmt: skip
CODE_TAGS = ("O", "B-CODE", "I-CODE")
SECTIONS = ("Summary", "Parameters", "Returns", "Raises", "Attributes")
SPLITS = ("train", "test", "outside")
MOST_A_MODULE = 12  # texts of each class, so that no module fills a set
RULES = 1  # of the sets; raise it when what is below changes what comes out

Item = TypeVar("Item", TaggedSentence, LabelledText)


@dataclass(frozen=True)
class DocumentationTask(Generic[Item]):
    """Labelled texts of each of SPLITS; versions: package -> version; hash: SHA-256 of them all."""

    train: list[Item]
    test: list[Item]
    outside: list[Item]
    versions: dict[str, str]
    hash: str


def code_words(
    train: int = 2_000, test: int = 600, outside: int = 600
) -> DocumentationTask[TaggedSentence]:
    """Sentences and their words marked as code, tagged CODE_TAGS (`tags("entities")`): at most so
    many of each split. Each has a marked word of small letters only, which could be an ordinary
    word. Words are runs of letters, digits and underscores; every other sign is a word of its own.
    """
    found, about = _built("code words", marked_sentences, (train, test, outside))
    return _task(found, about, lambda id, split, item: tagged(item, id=id, split=split))


def sections(
    train: int = 2_000, test: int = 600, outside: int = 600
) -> DocumentationTask[LabelledText]:
    """The first sentences of descriptions and the section each is from: at most so many of each
    split, and at most a fifth of each class."""
    found, about = _built("sections", section_sentences, (train, test, outside), len(SECTIONS))
    return _task(found, about, lambda id, split, item: LabelledText(id, item[0], item[1], split))


def _task(found: list[list[str]], about: dict[str, str], item: Callable[..., Any]) -> Any:
    train, test, outside = (
        [item(f"{split}-{n}", split, json.loads(line)) for n, line in enumerate(lines)]
        for split, lines in zip(SPLITS, found, strict=True)
    )
    return DocumentationTask(train, test, outside, about, corpus_hash(found))


# ---------------------------------------------------------------- which words are code

# A role, double backticks, single ones, and a link, which is no code.
_MARK = re.compile(r":([\w:+.-]+):`([^`<]+)`|``([^`]+)``|`([^`<]+)`(?!_)|`[^`]*`_")
_CODE_ROLES = {"class", "func", "meth", "mod", "attr", "obj", "data", "exc", "const"}
# What is left of markup, and what looks like code although nobody marked it.
_UNCLEAR = re.compile(
    r"[`*|=<>\\{}\[\]]|\w_|_\w|[a-z][A-Z]|[a-z]\d|\d[a-z]|\w\(|\w\.\w\w|(['\"])\w+\1"
    r"|\b(?:None|True|False|NaN|str|int|bool|dict|ndarray|dtype|args|kwargs)\b"
)
_ORDINARY = re.compile(r"[a-z]{2,}")
_WORDS = re.compile(r"\w+|[^\w\s]")


def marked_sentences(docstring: str) -> Iterator[list[Any]]:
    """[sentence without markup, [[start, end], …] of its code], for each sentence of prose that has
    code of small letters and no sign of code that is not marked."""
    for block in blocks(docstring) if "`" in docstring else ():
        for sentence in split_sentences(" ".join(block.split())):
            text, spans = without_marks(sentence)
            if not any(_ORDINARY.fullmatch(text[start:end]) for start, end in spans):
                continue
            rest = "".join(" " if any(s <= n < e for s, e in spans) else sign
                           for n, sign in enumerate(text))  # fmt: skip
            if is_prose(text) and not _UNCLEAR.search(rest) and _whole_words(text, spans):
                yield [text, spans]


def without_marks(sentence: str) -> tuple[str, list[tuple[int, int]]]:
    """The sentence without the marks of code, and where its code stands: (start, end) in it. Other
    marks stay."""
    text, spans, end = "", [], 0
    for mark in _MARK.finditer(sentence):
        role, target, *others = mark.groups()
        code = (target or others[0] or others[1] or "").strip()
        if not code or (role and role.rpartition(":")[2] not in _CODE_ROLES):
            continue
        code = code.rpartition(".")[2] if code.startswith("~") else code.lstrip("!.")
        text += sentence[end : mark.start()]
        spans.append((len(text), len(text) + len(code)))
        text, end = text + code, mark.end()
    return text + sentence[end:], spans


def _whole_words(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether no word is partly code, and no code is empty."""
    places = [match.span() for match in _WORDS.finditer(text)]
    starts, ends = ({place[side] for place in places} for side in (0, 1))
    return all(start in starts and end in ends for start, end in spans)


def tagged(item: Sequence[Any], *, id: str = "", split: str = "") -> TaggedSentence:
    """A sentence and the places of its code as words and BIO tags."""
    text, spans = item
    first = {start for start, _ in spans}
    inside = {n for start, end in spans for n in range(start, end)}
    places = [match.start() for match in _WORDS.finditer(text)]
    tags = ["B-CODE" if n in first else "I-CODE" if n in inside else "O" for n in places]
    words = tuple(_WORDS.findall(text))
    return TaggedSentence(id, text, words, ("X",) * len(words), tuple(tags), split)


# ---------------------------------------------------------------- which section it is from

_NUMPY = re.compile(r"(?m)^(\w+)\n-{3,}\n((?:(?!\w[\w ]*\n-{3,}\n).*\n?)*)")
_GOOGLE = re.compile(r"(?m)^(Args|Returns|Raises|Attributes):[ \t]*\n((?:[ \t]+.*\n?|[ \t]*\n)+)")
# "name : type", with its description below; "name (type): description", and more below.
_NUMPY_ENTRY = re.compile(r"(?m)^\S.*\n((?:[ \t]+\S.*\n?)+)")
_GOOGLE_ENTRY = re.compile(r"(?m)^\S[^:\n]*: *(\S.*(?:\n[ \t]+\S.*)*)")


def section_sentences(docstring: str) -> Iterator[list[Any]]:
    """[first sentence of a description, its section], in the conventions of NumPy and of Google.
    "Summary" is what a docstring with such sections begins with."""
    entries = [
        *((name, _NUMPY_ENTRY.findall(body)) for name, body in _NUMPY.findall(docstring + "\n")),
        *(("Parameters" if name == "Args" else name, _GOOGLE_ENTRY.findall(_dedented(body)))
          for name, body in _GOOGLE.findall(docstring + "\n")),
    ]  # fmt: skip
    if entries:
        yield from _first_sentences([next(iter(blocks(docstring)))], "Summary")
    for name, found in entries:
        if name in SECTIONS:
            yield from _first_sentences(found, name)


def _dedented(body: str) -> str:
    """The lines less the indentation of the first: Google's entries are those at the margin."""
    margin = len(body) - len(body.lstrip(" \t"))
    return "\n".join(line[margin:] for line in body.split("\n"))


def _first_sentences(descriptions: Iterable[str], section: str) -> Iterator[list[Any]]:
    for description in descriptions:
        sentence = (split_sentences(plain(description)) or [""])[0].rstrip(" .:")
        # One form for all, so that capitals and full stops tell nothing.
        sentence = f"{sentence[:1].upper()}{sentence[1:]}."
        if len(sentence.split()) <= 40 and is_prose(sentence):
            yield [sentence, section]


# ---------------------------------------------------------------- from modules to sets


def _built(
    what: str, read: Callable[[str], Iterable[list[Any]]], most: Sequence[int], classes: int = 1
) -> tuple[list[list[str]], dict[str, str]]:
    """The items of each split as lines of JSON, and the versions they come from; from the cache
    where the same was built before."""
    versions = installed_versions((*INSIDE, *OUTSIDE))
    about = {**versions, what: f"rules {RULES}, at most {'/'.join(map(str, most))}"}
    path = cache_dir("documentation") / f"{what.replace(' ', '-')}-{'-'.join(map(str, most))}.jsonl"
    found = read_cache(path, about)
    if found is None:
        seen: set[str] = set()
        sides = dict(zip(SPLITS, most, strict=True))
        inside = drawn(in_order(INSIDE), read, {s: sides[s] for s in SPLITS[:2]}, seen, classes)
        outside = drawn(in_order(OUTSIDE), read, {"outside": sides["outside"]}, seen, classes)
        found = [*inside.values(), *outside.values()]
        write_cache(path, found, about)
    return found, versions


def in_order(packages: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """(name, docstrings) of the packages' modules, in the order of a hash of their names."""
    files: dict[str, Path] = {}
    for package in packages:
        files |= source_files(package)
    for name in sorted(files, key=lambda name: hashlib.sha256(name.encode()).digest()):
        yield name, module_docstrings(files[name])


def side_of(module: str) -> str:
    """ "test" for one module in four, else "train": a function of its name alone."""
    return "test" if hashlib.sha256(module.encode()).digest()[-1] < 64 else "train"


def drawn(
    modules: Iterable[tuple[str, list[str]]],
    read: Callable[[str], Iterable[list[Any]]],
    most: Mapping[str, int],
    seen: set[str],
    classes: int = 1,
) -> dict[str, list[str]]:
    """split -> lines of JSON, at most `most` of each and an equal part of each class. seen: the
    4-grams so far, which grow; a text of which more than half stood there is left out."""
    found: dict[str, list[str]] = {split: [] for split in most}
    count: Counter[tuple[str, Any]] = Counter()
    for name, docstrings in modules:
        if all(len(found[split]) >= most[split] for split in most):
            break
        split = "outside" if "outside" in most else side_of(name)
        here: Counter[Any] = Counter()
        for item in (item for text in docstrings for item in read(text)):
            label = item[1] if classes > 1 else ""
            full = count[split, label] >= most[split] // classes or here[label] >= MOST_A_MODULE
            if _is_new(item[0], seen) and not full:
                count[split, label] += 1
                here[label] += 1
                found[split].append(json.dumps(item, ensure_ascii=False))
    return found


def _is_new(text: str, seen: set[str]) -> bool:
    words = re.findall(r"\w+", text.lower())
    grams = {" ".join(words[n : n + 4]) for n in range(max(1, len(words) - 3))}
    new = 2 * len(grams & seen) <= len(grams)
    seen |= grams
    return new
