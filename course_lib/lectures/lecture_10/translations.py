"""Real parallel text that packages carry: what their interfaces say, in several languages.

Sphinx, Django and the language packs of JupyterLab hold their messages as compiled catalogues
(`….mo`), English beside its translation. They are read as files: no package is imported, nothing is
copied. The English message is the key, so whatever two languages say under one key is parallel.
What comes out depends on the versions installed: results made from it record `versions` and `hash`.

`pip install 'bert-family-course[languages]'` brings the packages (about 9 s, 20 MB to load, 90 MB
on the disk)."""

from __future__ import annotations

import gettext
import hashlib
import html
import re
import struct
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from course_lib.text.documentation import plain

INSTALL = 'python -m pip install -e ".[languages]"'
FEWEST = 4  # English words of a message that counts as a sentence


class Source(NamedTuple):
    """A project whose messages are read: distributions ({} for a language's own) and the folder
    they install; the version that was tried."""

    distribution: str
    folder: str
    tried: str


SOURCES = {
    "Sphinx": Source("Sphinx", "sphinx", "9.0.4"),
    "Django": Source("Django", "django", "5.2.19"),
    "JupyterLab": Source("jupyterlab-language-pack-{}", "jupyterlab_language_pack_{}", "4.5.post3"),
}
# Language -> what its locales are called: without and with a country, the latter last.
LOCALES = {
    "fr": ("fr", "fr_FR"), "zh": ("zh_Hans", "zh_CN"), "ru": ("ru", "ru_RU"),
    "ko": ("ko", "ko_KR"), "pl": ("pl", "pl_PL"), "ja": ("ja", "ja_JP"),
    "de": ("de", "de_DE"), "es": ("es", "es_ES"),
}  # fmt: skip
LANGUAGES = ("fr", "zh", "ru", "ko", "pl", "ja")  # beside English, seven in all
NO_SPACES = ("zh", "ja")  # written without spaces between words


class Sentence(NamedTuple):
    """An English message, whose it is, and what it is in each language that has it."""

    english: str
    package: str
    translations: dict[str, str]


@dataclass(frozen=True)
class Translations:
    """Messages of all packages, each English one once.

    languages: beside English. versions, licences: of each distribution that was read, as its own
    metadata state them. notes: what was asked for and could not be read. hash: SHA-256 of all."""

    sentences: list[Sentence]
    languages: tuple[str, ...]
    versions: dict[str, str]
    licences: dict[str, str]
    notes: list[str] = field(default_factory=list)

    @property
    def hash(self) -> str:
        """SHA-256 of English and translations, in their order."""
        lines = (f"{s.english}\n{sorted(s.translations.items())}\n" for s in self.sentences)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def aligned(self, *languages: str, split: str = "all") -> list[tuple[str, ...]]:
        """The sentences that every one of these languages has: ("en", "fr") -> (English, French).

        split: "train", "heldout" (one in six) or "all". Raises ValueError for a language that was
        not read and for another split."""
        unknown = [one for one in languages if one not in ("en", *self.languages)]
        if unknown or not languages or split not in ("train", "heldout", "all"):
            raise ValueError(
                f"languages {', '.join(languages) or 'none'} and split={split!r} were given; "
                f"expected some of en, {', '.join(self.languages)}, and train, heldout or all."
            )
        rows = ({"en": s.english, **s.translations} for s in self.sentences)
        return [
            tuple(row[language] for language in languages)
            for row in rows
            if split in ("all", split_of(row["en"])) and all(one in row for one in languages)
        ]

    def counts(self) -> dict[str, dict[str, int]]:
        """package -> language -> sentences; "en" counts those with any translation."""
        counts = {package: Counter[str]() for package in SOURCES}
        for sentence in self.sentences:
            counts[sentence.package].update(["en", *sentence.translations])
        return {package: dict(count) for package, count in counts.items()}

    def __repr__(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        languages = " ".join(self.languages)
        return f"Translations({len(self.sentences):,} sentences, en {languages}; {versions})"


# ---------------------------------------------------------------- one message


_PLACEHOLDERS = (
    (re.compile(r"%\(\w+\)[-#0+]*\d*(?:\.\d+)?[a-zA-Z]"), ""),  # Python's, named
    (re.compile(r"%%"), "%"),
    (re.compile(r"%[-#0+]*\d*(?:\.\d+)?(?:[dfgx]|[srci](?![a-zA-Z]))|%\d"), ""),
    (re.compile(r"\{\{?[^{}]*\}?\}"), ""),
)
_MARKUP = (
    (re.compile(r"<[^<>]*>"), " "),
    (re.compile(r"\((?:&|_)\w\)|(?<!\w)&(?=\w)"), ""),  # the key that a menu answers to
    (
        re.compile(r"[\"“”«»‘„「『]\s*[\"“”«»’‚」』]|(?<!\w)['‘’]\s*['‘’](?!\w)"),
        "",
    ),  # nothing quoted
    (re.compile("`"), ""),
    (re.compile(r"\(\s*\)|\[\s*\]|（\s*）"), ""),
    (re.compile(r"\s+([.,;!?)\]])(?!\w)"), r"\1"),
    (re.compile(r"\s+"), " "),
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def cleaned(message: str) -> str:
    """A message on one line, without placeholders, markup and keyboard accelerators."""
    message = unicodedata.normalize("NFC", message.replace("\u200b", ""))
    for pattern, new in _PLACEHOLDERS:
        message = pattern.sub(new, message)
    message = plain(html.unescape(re.sub(r"<[^<>]*>", " ", message)))
    for pattern, new in _MARKUP:
        message = pattern.sub(new, message)
    return message.strip(" \t-–:")


def words(text: str) -> int:
    """How many words of letters a text has, where words are spaced."""
    return len(_WORD.findall(text))


def letters(text: str) -> str:
    """A text's letters alone: two messages that differ in nothing else are doubles."""
    return "".join(filter(str.isalpha, text.casefold()))


def is_translation(english: str, other: str) -> bool:
    """Whether both are prose (a brace tells code) and `other` says something, and does not just
    repeat the English or carry it along."""
    prose = not set("{}") & set(english + other)
    return prose and bool(letters(other)) and letters(english) not in letters(other)


def split_of(english: str) -> str:
    """ "heldout" for one sentence in six, else "train": by a hash of its letters, so that all
    languages agree and it stays there whatever else is installed."""
    first = hashlib.sha256(letters(english).encode()).digest()[0]
    return "heldout" if first * 6 < 256 else "train"


# ---------------------------------------------------------------- files


def read_catalogue(path: Path) -> dict[str, str]:
    """English -> translation of a compiled catalogue, both as they stand there; of plural forms
    the first. Raises ValueError for a file that is none, or is not in the encoding it names."""
    try:
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    except (OSError, UnicodeError, struct.error, LookupError, ValueError, MemoryError) as error:
        raise ValueError(
            f"{path} was given; expected a compiled catalogue of messages (.mo) in the encoding "
            f"that it names, and reading it fails: {error or type(error).__name__}. Install its "
            "package anew."
        ) from error
    entries = {}
    for key, translation in catalogue.items():
        english, form = key if isinstance(key, tuple) else (key, 0)
        if english and translation and not form:
            entries[english.split("\x04")[-1]] = translation  # before it stands the context
    return entries


def catalogues(source: Source, language: str) -> tuple[metadata.Distribution, list[Path]]:
    """The distribution that has a project's messages in a language, and their files, sorted.

    Raises LookupError, saying what to install, where it is not there or has no such language."""
    locales = LOCALES.get(language, (language, f"{language}_{language.upper()}"))
    folder, distribution = "", None
    for locale in locales if "{}" in source.distribution else locales[:1]:
        folder = source.folder.format(locale)
        name = source.distribution.format(locale.replace("_", "-"))
        try:
            distribution = metadata.distribution(name)
            break
        except metadata.PackageNotFoundError:
            continue
    if distribution is None:
        raise LookupError(
            f"{source.distribution.format(locales[-1].replace('_', '-'))} is not installed; it has "
            f"the messages in {language!r}. {INSTALL}"
        )
    root = Path(str(distribution.locate_file(folder)))
    every = sorted(root.rglob("locale/*/LC_MESSAGES/*.mo"))
    files = [path for path in every if path.parents[1].name in locales]
    if not files:
        there = sorted({path.parents[1].name for path in every})
        raise LookupError(
            f"{distribution.name} {distribution.version} has no messages in {language!r}: expected "
            f"a folder {' or '.join(locales)} below {root}, and there "
            + (f"are {', '.join(there)}." if there else "is none. Install it anew.")
        )
    return distribution, files


def licence(distribution: metadata.Distribution) -> str:
    """The licence as a distribution's own metadata state it."""
    about: Any = distribution.metadata  # get() came to its types with Python 3.12
    trove = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    text = (about.get("License") or "not stated").strip().splitlines()[0]
    return about.get("License-Expression") or (trove[0].split(" :: ")[-1] if trove else text)


# ---------------------------------------------------------------- all of it


def translations(languages: Sequence[str] = LANGUAGES, *, fewest: int = FEWEST) -> Translations:
    """What the installed packages say in English and in these languages.

    A message counts once, in the first package that has it; fewest: English words it must have.
    What is missing or broken is named in a warning and in `notes`, and all else is read. Another
    version than the one that was tried is read as well, and named: counts then differ. Raises
    LookupError where nothing is installed, ValueError for no languages, one given twice, English,
    and a language that no package has."""
    if not languages or len(set(languages)) < len(languages) or "en" in languages:
        raise ValueError(
            f"languages={list(languages)} were given; expected each once, such as fr and zh, and "
            "without en, which every message has."
        )
    rows: dict[str, Sentence] = {}
    about: dict[str, metadata.Distribution] = {}
    notes = list[str]()
    for package, source in SOURCES.items():
        for language in languages:
            for english, translated in _messages(source, language, about, notes):
                one, other = cleaned(english), cleaned(translated)
                if words(one) >= fewest and is_translation(one, other):
                    row = rows.setdefault(letters(one), Sentence(one, package, {}))
                    row.translations.setdefault(language, other)
    _check_complete(languages, rows, about, notes)
    versions = {name: one.version for name, one in about.items()}
    licences = {name: licence(one) for name, one in about.items()}
    return Translations(list(rows.values()), tuple(languages), versions, licences, notes)


def _messages(
    source: Source, language: str, about: dict[str, metadata.Distribution], notes: list[str]
) -> Iterator[tuple[str, str]]:
    """English and translation, file by file; what cannot be read goes into the notes."""
    try:
        distribution, files = catalogues(source, language)
    except LookupError as missing:
        notes.append(str(missing.args[0]))
        return
    if distribution.name not in about and distribution.version != source.tried:
        notes.append(
            f"{distribution.name} {distribution.version} is read; tried was {source.tried}, so "
            "counts and stored results may differ from yours."
        )
    about[distribution.name] = distribution
    for path in files:
        try:
            yield from read_catalogue(path).items()
        except ValueError as broken:
            notes.append(f"left out: {broken}")


def _check_complete(
    languages: Sequence[str],
    rows: dict[str, Sentence],
    about: dict[str, metadata.Distribution],
    notes: list[str],
) -> None:
    """Nothing at all, or nothing in a language, is an error; the rest is a warning."""
    if not about:
        raise LookupError(
            "No package with translations is installed; expected at least one of "
            f"{', '.join(SOURCES)}. {INSTALL}\n" + "\n".join(notes)
        )
    read = {language for row in rows.values() for language in row.translations}
    if missing := [language for language in languages if language not in read]:
        raise ValueError(
            f"languages={list(languages)} were given; in {', '.join(missing)} nothing was found.\n"
            + "\n".join(notes)
        )
    for note in notes:
        warnings.warn(note, stacklevel=3)


def installed() -> bool:
    """Whether every package of the extra `languages` is there."""
    try:
        for source in SOURCES.values():
            for language in LANGUAGES:
                catalogues(source, language)
    except LookupError:
        return False
    return True
