"""Real text of three domains that packages carry: medicine, law, finance.

Medicine: the descriptions of ICD-10-CM, in 22 chapters of categories of diagnoses
(simple-icd-10-cm). Law: licences, in 11 categories (licensedcode-data). Finance: the docstrings of
financetoolkit. They are read as files: no package is imported, nothing is copied. A document (a
category of diagnoses, a licence, a module) belongs to "train" or "heldout" by the hash of its
*family*, so what is written nearly alike stays on one side.

What comes out depends on the versions installed: results made from it record `versions` and `hash`.
`pip install --no-deps …` (see INSTALL) brings the files without what their code would need."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from course_lib.config import check_choice

from .documentation import Corpus, corpus_hash, module_paragraphs


class Source(NamedTuple):
    """A distribution, the files of it that are read, and the version that was tried."""

    distribution: str
    files: str  # a pattern below the folder it is installed in
    tried: str


SOURCES = {
    "medicine": Source("simple-icd-10-cm", "simple_icd_10_cm/data/icd10c-tabular-*.xml", "1.5.0"),
    "law": Source("licensedcode-data", "licensedcode/data/licenses/*.LICENSE", "32.1.0"),
    "finance": Source("financetoolkit", "financetoolkit/**/*.py", "2.3.0"),
}
INSTALL = "python -m pip install --no-deps " + " ".join(
    f"{source.distribution}=={source.tried}" for source in SOURCES.values()
)
HELDOUT = 6  # one family in so many is held out
MOST = 40  # descriptions of a category: injuries alone would fill half the domain


def split_of(family: str) -> str:
    """ "heldout" for one family in six, else "train"."""
    first = hashlib.sha256(family.encode()).digest()[0]
    return "heldout" if first * HELDOUT < 256 else "train"


@dataclass(frozen=True)
class Document:
    """paragraphs: of one category of diagnoses, one licence or one module. family: what shares its
    text. label: the chapter or the category of licences, "" in finance; name: the document's own.
    """

    name: str
    family: str
    label: str
    paragraphs: tuple[str, ...]

    @property
    def split(self) -> str:
        """That of its family."""
        return split_of(self.family)


@dataclass(frozen=True)
class Domain:
    """The documents of a domain. version, licence: of its distribution, as its own metadata state
    them; notes: what could not be read, or is of another version than the one tried."""

    name: str
    documents: list[Document]
    version: str
    licence: str
    notes: list[str] = field(default_factory=list)

    def corpus(self, split: str = "all") -> Corpus:
        """The paragraphs of a split, document by document, as the documentation's. Raises
        ValueError for another split than train, heldout and all."""
        if split not in ("train", "heldout", "all"):
            raise ValueError(f"split={split!r} was given; expected train, heldout or all.")
        result = [list(d.paragraphs) for d in self.documents if split in ("all", d.split)]
        source = SOURCES[self.name].distribution
        return Corpus(result, {source: self.version}, corpus_hash(result), split)

    @property
    def hash(self) -> str:
        """SHA-256 of all paragraphs in their order."""
        return self.corpus().hash

    def __repr__(self) -> str:
        words = self.corpus().words
        return (
            f"Domain({self.name}: {len(self.documents):,} documents, {words:,} words; "
            f"{SOURCES[self.name].distribution} {self.version}, {self.licence})"
        )


@lru_cache(maxsize=len(SOURCES))
def domain(name: str) -> Domain:
    """All there is of a domain: "medicine" (a second), "law" (a second), "finance" (two).

    Raises ValueError for another domain and for one in which no text was found, LookupError, saying
    what to install, where its package is not there. Files that cannot be read are left out with a
    warning; another version than the one tried is read too, and named."""
    check_choice("domain", name, SOURCES)
    source, notes = SOURCES[name], list[str]()
    distribution, files = files_of(source)
    if distribution.version != source.tried:
        notes.append(
            f"{source.distribution} {distribution.version} is read; tried was {source.tried}, so "
            "counts and stored results may differ from yours."
        )
    documents = [one for one in READERS[name](files, notes) if one.paragraphs]
    for note in notes:
        warnings.warn(note, stacklevel=2)
    if not {"train", "heldout"} <= {document.split for document in documents}:
        raise ValueError(
            f"{source.distribution} {distribution.version}: {len(files)} files hold "
            f"{len(documents)} documents with text; expected some to learn from and some held out. "
            f"Install it anew: {INSTALL}"
        )
    return Domain(name, documents, distribution.version, licence(distribution), notes)


def installed() -> list[str]:
    """The domains whose packages are there."""
    result = []
    for name, source in SOURCES.items():
        try:
            files_of(source)
        except LookupError:
            continue
        result.append(name)
    return result


def files_of(source: Source) -> tuple[metadata.Distribution, list[Path]]:
    """A distribution and its files that are read, sorted. Raises LookupError where it is not
    installed, or has none of them."""
    try:
        distribution = metadata.distribution(source.distribution)
    except metadata.PackageNotFoundError as missing:
        raise LookupError(
            f"{source.distribution} is not installed; this domain's text is in it. {INSTALL}"
        ) from missing
    root = Path(str(distribution.locate_file("")))
    if not (files := sorted(root.glob(source.files))):
        raise LookupError(
            f"{source.distribution} {distribution.version} has no file {source.files} below {root}."
            f" Install it anew: {INSTALL}"
        )
    return distribution, files


def licence(distribution: metadata.Distribution) -> str:
    """The licence as a distribution's own metadata state it; the names of its licence files where
    they state none."""
    about: Any = distribution.metadata  # get() came to its types with Python 3.12
    trove = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    files = [Path(str(file)) for file in distribution.files or ()]
    beside = ", ".join(f.stem for f in files if f.match("*.dist-info/*.LICENSE"))
    return (
        about.get("License-Expression")
        or (trove[0].split(" :: ")[-1] if trove else "")
        or (about.get("License") or "").strip().partition("\n")[0]
        or beside
        or "not stated"
    )


# ---------------------------------------------------------------- medicine


_NOTES = ("inclusionTerm", "includes", "excludes1", "excludes2", "codeFirst", "useAdditionalCode")
_CODES = re.compile(r"\s*\([^()]*\d[^()]*\)")  # (E08-E13), (Z79.4)
_SPACE = re.compile(r"\s+")


def categories(path: Path) -> Iterator[tuple[str, ElementTree.Element]]:
    """The chapter's title and the entry of every category of three characters. Raises ValueError
    for a file that is not ICD's, or is broken."""
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, UnicodeError, OSError) as error:
        raise ValueError(
            f"{path} was given; expected ICD-10-CM's tabular list (XML), and reading it fails: "
            f"{error}. Install its package anew."
        ) from error
    for chapter in root.iter("chapter"):
        title = _CODES.sub("", chapter.findtext("desc") or "").strip()
        for category in chapter.iterfind("section/diag"):
            yield title, category


def descriptions(category: ElementTree.Element) -> list[str]:
    """What a category's entries say, each once: titles, other names and what is coded elsewhere,
    without codes."""
    result = dict[str, None]()
    for entry in category.iter("diag"):
        texts = [entry.findtext("desc")]
        texts += [note.text for kind in _NOTES for note in entry.iterfind(f"{kind}/note")]
        for text in texts:
            if message := _SPACE.sub(" ", _CODES.sub("", text or "")).strip():
                result[message] = None
    return list(result)


def _medicine(files: Sequence[Path], notes: list[str]) -> Iterator[Document]:
    for path in files[-1:]:
        for chapter, category in _read(categories, path, notes):
            name = category.findtext("name") or ""
            yield Document(name, name, chapter, tuple(descriptions(category)[:MOST]))


class Diagnosis(NamedTuple):
    """A diagnosis as it is titled; what it is filed under; and where in its words begins what it
    adds to the diagnosis above it, None where that one says something else."""

    words: tuple[str, ...]
    category: str
    chapter: str
    added_from: int | None

    @property
    def text(self) -> str:
        """Its words in a line."""
        return " ".join(self.words)

    @property
    def split(self) -> str:
        """That of its category."""
        return split_of(self.category)


def diagnoses() -> list[Diagnosis]:
    """The titles of all entries, each once, up to MOST a category. Raises LookupError where the
    package is not there."""
    result = dict[str, Diagnosis]()
    for path in files_of(SOURCES["medicine"])[1][-1:]:
        for chapter, category in categories(path):
            name = category.findtext("name") or ""
            above: dict[ElementTree.Element, tuple[str, ...]] = {}
            for number, entry in enumerate(category.iter("diag")):
                words = tuple((entry.findtext("desc") or "").split())
                above |= {below: words for below in entry.iterfind("diag")}
                short = above.get(entry, ())
                added = len(short) if short and words[: len(short)] == short != words else None
                if number < MOST:
                    one = Diagnosis(words, name, chapter, added)
                    result.setdefault(one.text.lower(), one)
    return list(result.values())


# ---------------------------------------------------------------- law


_FAMILY = re.compile(r"[a-z]+")


def licence_text(path: Path) -> tuple[str, str, list[str]]:
    """Key, category and paragraphs of a licence. Raises ValueError for a file without its head, or
    that is not UTF-8."""
    try:
        text = path.read_text(encoding="utf-8")
    except (UnicodeError, OSError) as error:
        raise ValueError(
            f"{path} was given; expected a licence in UTF-8, and reading it fails: {error}."
        ) from error
    parts = text.split("---", 2)
    head = dict(re.findall(r"(?m)^(key|category|language): (.*)$", parts[1] if parts[2:] else ""))
    if not {"key", "category"} <= head.keys():
        raise ValueError(f"{path} was given; expected a head with key and category above the text.")
    blocks = [_SPACE.sub(" ", block).strip() for block in re.split(r"\n\s*\n", parts[2])]
    if head.get("language", "en") != "en":
        blocks = []
    return head["key"], head["category"], [block for block in blocks if len(block.split()) >= 4]


def _law(files: Sequence[Path], notes: list[str]) -> Iterator[Document]:
    """A paragraph that several licences share belongs to the one whose key comes first."""
    seen = set[str]()
    for path in files:
        for key, category, blocks in _read(lambda p: iter([licence_text(p)]), path, notes):
            family = _FAMILY.match(key)
            new = tuple(block for block in blocks if _letters(block) not in seen)
            seen |= {_letters(block) for block in blocks}
            yield Document(key, family[0] if family else key, category, new)


# ---------------------------------------------------------------- finance


def _finance(files: Sequence[Path], notes: list[str]) -> Iterator[Document]:
    """A paragraph that several functions share stays where it comes first."""
    seen = set[str]()
    for path in files:
        new = list[str]()
        for paragraph in module_paragraphs(path):
            if paragraph not in seen:
                seen.add(paragraph)
                new.append(paragraph)
        yield Document(f"{path.parent.name}/{path.stem}", path.stem, "", tuple(new))


# ---------------------------------------------------------------- all of them


READERS = {"medicine": _medicine, "law": _law, "finance": _finance}


def _read(reader: Any, path: Path, notes: list[str]) -> Iterator[Any]:
    """What a reader finds in a file; what it cannot read goes into the notes."""
    try:
        yield from reader(path)
    except ValueError as broken:
        notes.append(f"left out: {broken}")


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.casefold()))


def repeated(
    documents: Iterable[Iterable[str]], others: Iterable[Iterable[str]], n: int = 8
) -> float:
    """The fraction of all runs of n words of `documents` that also occur in `others`."""

    def runs(texts: Iterable[Iterable[str]]) -> Iterator[tuple[str, ...]]:
        for paragraphs in texts:
            words = " ".join(paragraphs).lower().split()
            yield from zip(*(words[k:] for k in range(n)), strict=False)

    known, result = set(runs(others)), list(runs(documents))
    return sum(run in known for run in result) / len(result) if result else 0.0
