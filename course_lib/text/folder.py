"""A reader's own folder of text: which of its files are read, and what is left out of it."""

from __future__ import annotations

import codecs
import os
import re
from collections import defaultdict
from pathlib import Path

from course_lib.files import nearby

HIDDEN, NOT_TXT, NO_FILE = "hidden", "not ending in .txt", "leading to no file"
VOCABULARY = "a model's vocabulary"
TWICE, EMPTY, BINARY = "leading to what is read anyway", "holding no text", "not text at all"
MARKED = (".json", ".jsonl", ".ndjson", ".ipynb", ".csv", ".tsv", ".html", ".htm", ".xml")
OPENING = r"[\s\[]*\{\s*\"|\s*<(\?xml|!doctype|html)\b"  # of JSON, XML or a page, whatever its name
LeftOut = defaultdict[str, list[Path]]  # why -> which


def read_folder(source: Path) -> tuple[list[list[str]], tuple[str, ...]]:
    """The paragraphs of a file of plain text, or of every .txt file in a folder and in the folders
    below it, sorted by name, a document each; and what was left out of it, a line a reason.

    Text is UTF-8, or UTF-16 with its mark; an empty line parts paragraphs. Hidden files and folders
    (a name that begins with a dot: a notebook's checkpoints, what macOS lays beside a file) are
    left out, and so are a model's vocab.txt and a second way to a file that was read. Raises
    FileNotFoundError where there is no such source, and ValueError where it has no file of text,
    one in another encoding or one of JSON, XML or a table."""
    if not source.exists():
        raise FileNotFoundError(
            f'source = "{source}" was given; expected "documentation", "world", or a file or '
            f"folder of plain text (.txt, UTF-8) that exists.{nearby(source)}"
        )
    left = LeftOut(list)
    files = _text_files(source, left) if source.is_dir() else [source]
    documents = [paragraphs for file in files if (paragraphs := _paragraphs(file, left))]
    notes = tuple(_line(why, which, source) for why, which in left.items())
    if not files:
        raise ValueError(
            f"{source} was given as a folder of text; it holds no file that ends in .txt, "
            "subfolders included. Put plain UTF-8 text there, with an empty line between "
            f"paragraphs. {' '.join(notes)}".strip()
        )
    return documents, notes


def _line(why: str, which: list[Path], source: Path) -> str:
    below = source if source.is_dir() else source.parent
    names = sorted(path.relative_to(below).as_posix() for path in which)
    return (
        f"{len(names):,} left out, {why}: {', '.join(names[:3])}{' and others' * (len(names) > 3)}."
    )


def _text_files(source: Path, left: LeftOut) -> list[Path]:
    """The .txt files below a folder, each once, whichever links lead to it."""
    roots, files = [source.resolve()], list[Path]()
    for folder, folders, names in os.walk(source, onerror=_raise, followlinks=True):
        for path in (Path(folder, name) for name in sorted(folders + names)):
            if why := _why_not(path, roots):
                left[why].append(path)
                folders[:] = [name for name in folders if name != path.name]
            elif path.name in names:
                files.append(path)
        folders.sort()
    once: dict[object, Path] = {}
    for file in sorted(files):
        status = file.stat()  # a file without a number of its own is known by its path
        key = (status.st_dev, status.st_ino) if status.st_ino else file.resolve()
        if once.setdefault(key, file) != file:
            left[TWICE].append(file)
    return list(once.values())


def _why_not(path: Path, roots: list[Path]) -> str | None:
    """Why this file or folder is not read; None where it is. roots: folders of which all is."""
    if path.name.startswith("."):
        return HIDDEN
    if path.is_dir():
        target = path.resolve()
        if path.is_symlink():
            if any(target.is_relative_to(r) or r.is_relative_to(target) for r in roots):
                return TWICE  # or would be, in a circle
            roots.append(target)
        return None
    if path.suffix.lower() != ".txt":
        return NOT_TXT
    if path.name == "vocab.txt" and path.with_name("config.json").is_file():
        return VOCABULARY
    return None if path.is_file() else NO_FILE


def _raise(error: OSError) -> None:
    raise error


def _paragraphs(path: Path, left: LeftOut) -> list[str]:
    """The paragraphs of a file, one line each; none of what is no text."""
    data = path.read_bytes()
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and data[2:4] != b"\0\0"
    if b"\0" in data and not is_utf16:
        left[BINARY].append(path)
        return []
    encoding = "UTF-16" if is_utf16 else "UTF-8"
    try:
        text = data.decode(encoding).removeprefix("\ufeff")  # some editors begin with a mark
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} was given as text; its byte {error.start} is no {encoding}. Save the file "
            "again in UTF-8, or take it out of the folder."
        ) from error
    if path.suffix.lower() in MARKED or re.match(OPENING, text, re.IGNORECASE):
        raise ValueError(
            f"{path} was given as text; it is JSON, a table or a page: its marks and names would "
            "be learned, too. Write its text alone to a .txt, an empty line between paragraphs: "
            '"\\n\\n".join(column), where read_csv and read_jsonl of course_lib.text.readers give '
            "the column; a browser saves a page as text."
        )
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    paragraphs = [line for p in re.split(r"\n\s*\n", text) if (line := " ".join(p.split()))]
    if not paragraphs:
        left[EMPTY].append(path)
    return paragraphs


# As English is cut, but before capitals of any alphabet and letters that have none, and after the
# full stops of other scripts.
SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]»”]*\s+(?=[\"'(\[«“¿¡]*(?![a-zß-öø-ÿа-яά-ώ])\w)"
    r"|(?<=[。！？।॥؟۔])[\"'」』”)]*\s*"
)
