"""A reader's own folder of text: which of its files are read, and what is left out of it."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from pathlib import Path

from .documentation import split_sentences

NOT_TXT, HIDDEN, DANGLING = "do not end in .txt", "are hidden", "are links to nothing"
TWICE, EMPTY, BINARY = "lead to what is read anyway", "hold no text", "are no text files"
LeftOut = dict[str, list[str]]  # why -> which


def read_folder(source: Path) -> tuple[list[list[str]], tuple[str, ...]]:
    """The paragraphs of a file of plain text, or of every .txt file in a folder and in the folders
    below it, sorted by name, a document each; and what was left out of it, a line a reason.

    Text is UTF-8, or UTF-16 with its mark; an empty line parts paragraphs. Hidden files and folders
    (a name that begins with a dot: a notebook's checkpoints, what macOS lays beside a file) are
    left out, and so is a second way to a file that was read. Raises FileNotFoundError where there
    is no such source, and ValueError where there is no text in it or text in another encoding."""
    if not source.exists():
        raise FileNotFoundError(
            f'source = "{source}" was given; expected "documentation", "world", or a file or '
            "folder of plain text (.txt, UTF-8) that exists."
        )
    left: LeftOut = {}
    names = list(_text_files(source, left)) if source.is_dir() else [source]
    documents = [text for name in names if (text := _paragraphs(name, source, left))]
    notes = tuple(_line(why, which) for why, which in left.items())
    if not names:
        raise ValueError(
            f"{source} was given as a folder of text; it holds no file that ends in .txt, "
            "subfolders included. Put plain text in UTF-8 there, paragraphs apart by an empty "
            f"line. {' '.join(notes)}".strip()
        )
    return documents, notes


def _line(why: str, which: list[str]) -> str:
    shown = ", ".join(sorted(which)[:3]) + ", …" * (len(which) > 3)
    return f"Left out: {len(which):,} that {why} ({shown})."


def _text_files(source: Path, left: LeftOut) -> Iterator[Path]:
    """The .txt files below a folder, each once, whichever links lead to it."""
    seen = set()
    for path in sorted(_files(source, left)):
        status = path.stat()
        file = (status.st_dev, status.st_ino) if status.st_ino else path.resolve()
        if file in seen:
            left.setdefault(TWICE, []).append(_name(path, source))
        else:
            seen.add(file)
            yield path


def _files(source: Path, left: LeftOut) -> Iterator[Path]:
    roots = [source.resolve()]  # folders of which all is read
    for folder, folders, files in os.walk(source, onerror=_raise, followlinks=True):
        names = {name: _why_not(Path(folder, name), roots) for name in sorted(folders + files)}
        folders[:] = [name for name in sorted(folders) if names[name] is None]
        for name, why in names.items():
            if why:
                left.setdefault(why, []).append(_name(Path(folder, name), source))
            elif name not in folders:
                yield Path(folder, name)


def _why_not(path: Path, roots: list[Path]) -> str | None:
    """Why this file or folder is not read, or None where it is."""
    if path.name.startswith("."):
        return HIDDEN
    if path.is_dir():
        target = path.resolve()
        if not path.is_symlink():
            return None
        if any(target.is_relative_to(root) or root.is_relative_to(target) for root in roots):
            return TWICE  # or would be, in a circle
        roots.append(target)
        return None
    if path.suffix.lower() != ".txt":
        return NOT_TXT
    return None if path.is_file() else DANGLING if path.is_symlink() else BINARY


def _raise(error: OSError) -> None:
    raise error


def _name(path: Path, source: Path) -> str:
    return path.relative_to(source).as_posix() if path != source else path.name


def _paragraphs(path: Path, source: Path, left: LeftOut) -> list[str]:
    """The paragraphs of a file, one line each; none of what is no text."""
    data = path.read_bytes()
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in data and not (wide and data[2:4] != b"\0\0"):
        left.setdefault(BINARY, []).append(_name(path, source))
        return []
    encoding = "UTF-16" if wide else "UTF-8"
    try:
        text = data.decode(encoding).removeprefix("\ufeff")  # some editors begin with a mark
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} was given as text; its byte {error.start} is no {encoding}. Save the file "
            "again in UTF-8, or take it out of the folder."
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", text)]
    if not any(paragraphs):
        left.setdefault(EMPTY, []).append(_name(path, source))
    return [p for p in paragraphs if p]


_SIGN = re.compile(r"(?<=[.!?])[\"')\]»”]*\s+(?=[^\W\d_])|(?<=[。！？।॥؟۔])[\"'」』”)]*\s*")


def sentences_of(paragraph: str) -> list[str]:
    """The sentences of a paragraph in any script: cut where `split_sentences` cuts, and before
    capitals outside ASCII, before letters that have no capitals, and after other full stops."""
    return [s for part in split_sentences(paragraph) for s in _cut(part)]


def _cut(part: str) -> list[str]:
    if part.isascii():
        return [part]
    ends = [0, *(m.end() for m in _SIGN.finditer(part) if not part[m.end() :][:1].islower())]
    pieces = (part[a:b].strip() for a, b in zip(ends, [*ends[1:], len(part)], strict=True))
    return [piece for piece in pieces if piece]
