"""What students hand in: notebooks, and in them the statements that an answer needs.

Learning platforms name what they give out. Moodle's "Download all submissions" is a zip of folders
`Anna Meier_123456_assignsubmission_file_`, or of files that begin so: name and number are the
student's. What has the same number, or else the same name, is one student's.

A notebook is read as data and never run as a whole: pages train models, answers do not. What an
answer needs is found by names, from the last `check("12.1", my_answer)` on: the definitions,
imports and assignments at the top level that bind a name it uses, and the names these use, and so
on."""

from __future__ import annotations

import ast
import builtins
import json
import re
import symtable
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from course_lib.files import nearby
from course_lib.text.readers import csv_rows

from ..exercises.outputs import printable

MAGIC = re.compile(r"^\s*([%!].*|\?+[\w.]+|[\w.]+\?+)$")  # %time, !pip, ?print, print?
LARGEST = 200 * 2**20  # bytes of a notebook; pages with figures have a few million
NAMES = ("full name", "first name", "last name", "name")  # columns of a class list
MOODLE = re.compile(r"(.+?)_(\d+)_assignsubmission_[a-z]+(?:_.*)?", re.IGNORECASE | re.DOTALL)


class BrokenNotebook(ValueError):
    """A file that is no notebook; the message says what is wrong with it."""


@dataclass(frozen=True)
class Needed:
    """How an answer is made: statements to run, and the expression that then gives it."""

    source: str
    expression: str


@dataclass(frozen=True)
class Submission:
    """A student, the notebooks found, and the files that are none with the reason. number: the
    platform's for the student, where it gives one. notes: what whoever grades has to know, a
    sentence each."""

    student: str
    notebooks: dict[str, list[str]] = field(default_factory=dict)  # path -> its code cells
    broken: dict[str, str] = field(default_factory=dict)
    number: str = ""
    notes: tuple[str, ...] = ()


def submissions(folder: Path) -> tuple[list[Submission], list[str]]:
    """A submission for each student, by name: of `name.ipynb`, or of a folder with notebooks in it,
    as platforms give them out; `folder` may be their zip file, too. Second, the files beside these
    that are nobody's submission. Hidden files and `.ipynb_checkpoints` are passed over.

    Raises ValueError where the folder is none, or holds nothing that was handed in."""
    with _unpacked(folder) as place:
        entries = [entry for entry in _visible(place) if _handed_in(entry)]
        beside = [printable(entry.name) for entry in _visible(place) if not _handed_in(entry)]
        if not entries:
            raise ValueError(
                f"{folder} holds neither a notebook nor a folder; expected name.ipynb or "
                "name/….ipynb for each student, or Moodle's download."
            )
        whose = [_student(entry) for entry in entries]
        by_student: dict[tuple[str, str], list[Path]] = {}
        for entry, (name, number) in zip(entries, whose, strict=True):
            by_student.setdefault(("", number) if number else (name, ""), []).append(entry)
        names = {number: name for name, number in whose}  # one of a number's, if they differ
        students = {key: names[key[1]] if key[1] else key[0] for key in by_student}
        namesakes = [*students.values()]
        result = [
            _submission(place, own, _full(students[key], key[1], namesakes), key[1])
            for key, own in by_student.items()
        ]
        return sorted(result, key=lambda one: (one.student.casefold(), one.student)), beside


def _full(name: str, number: str, names: Sequence[str]) -> str:
    """A name that no other student has."""
    return f"{name} ({number or 'no number'})" if names.count(name) > 1 else name


@contextmanager
def _unpacked(source: Path) -> Iterator[Path]:
    """The folder that holds the students' files: `source` itself, or what a zip file holds, or the
    one folder in it. Raises ValueError where there is none."""
    if source.is_dir():
        yield _inner(source, "")
        return
    if not zipfile.is_zipfile(source):
        what = "is neither a folder nor a zip file" if source.exists() else "does not exist"
        lies = "" if source.exists() else nearby(source)
        raise ValueError(f"{source} {what}; expected one with the students' notebooks.{lies}")
    with tempfile.TemporaryDirectory(prefix="submissions") as name:
        try:
            with _archive(source) as archive:
                if (size := sum(one.file_size for one in archive.infolist())) > 50 * LARGEST:
                    raise ValueError(
                        f"{source} would unpack to {size >> 20} MB; unpack it yourself, and name "
                        "the folder."
                    )
                archive.extractall(name)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, OSError) as error:
            raise ValueError(
                f"{source} cannot be unpacked ({error}); unpack it yourself, and name the folder."
            ) from error
        yield _inner(Path(name), source.stem)


def _archive(path: Path) -> zipfile.ZipFile:
    try:  # names in UTF-8 also where the archive does not say so
        return zipfile.ZipFile(path, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(path)


def _inner(folder: Path, zipped: str) -> Path:
    """The folder, or the only one in it where that holds Moodle's names, or was zipped as a whole:
    it has the name of the zip file, and more in it than one student's notebook."""
    entries = _visible(folder)
    if len(entries) == 1 and entries[0].is_dir() and not MOODLE.fullmatch(entries[0].name):
        inside = _visible(entries[0])
        whole = entries[0].name == zipped and (len(inside) > 1 or any(map(Path.is_dir, inside)))
        if whole or any(MOODLE.fullmatch(one.name) for one in inside):
            return entries[0]
    return folder


def _visible(folder: Path) -> list[Path]:
    return sorted(
        entry for entry in folder.iterdir() if entry.name[0] != "." and entry.name != "__MACOSX"
    )


def _handed_in(entry: Path) -> bool:
    """Whether it is a student's: a notebook, a folder, what was meant to be one (a zip file, a
    program), or any file with Moodle's name."""
    return (
        entry.is_dir()
        or entry.suffix.lower() in (".ipynb", ".zip", ".py")
        or MOODLE.fullmatch(entry.name) is not None
    )


def _is_notebook(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() == ".ipynb"


def _student(entry: Path) -> tuple[str, str]:
    """Name and number of whose it is; the number is "" where the platform gives none."""
    name = unicodedata.normalize("NFC", entry.name if entry.is_dir() else entry.stem)
    moodle = MOODLE.fullmatch(name)
    name, number = moodle.groups() if moodle else (name, "")
    return printable(" ".join(name.replace("_", " ").split()) if moodle else name), number


def _submission(folder: Path, entries: Sequence[Path], student: str, number: str) -> Submission:
    one = Submission(student, number=number)
    others = []
    for path in (file for entry in entries for file in _files(entry)):
        name = printable(path.relative_to(folder).as_posix())
        if not _is_notebook(path):
            others.append(name)
            continue
        try:
            one.notebooks[name] = code_cells(path)
        except BrokenNotebook as error:
            one.broken[name] = str(error)
    notes = _notes(entries, [*one.notebooks, *one.broken], others)
    return replace(one, notes=(*notes, *(f"{x} is {why}." for x, why in one.broken.items())))


def _files(entry: Path) -> list[Path]:
    if entry.is_file():
        return [entry]
    below = (path for path in entry.rglob("*") if path.is_file())
    return sorted(
        path for path in below
        if not any(part[0] == "." or part == "__MACOSX" for part in path.relative_to(entry).parts)
    )  # fmt: skip


def _notes(entries: Sequence[Path], notebooks: list[str], others: list[str]) -> Iterator[str]:
    """What is unusual about a submission. Files with Moodle's name are parts of one."""
    full = [entry for entry in entries if any(n.split("/")[0] == printable(entry.name)
                                              for n in notebooks)]  # fmt: skip
    parts = {"" if entry.is_file() and MOODLE.fullmatch(entry.name) else entry for entry in full}
    if not notebooks:
        names = ", ".join(others) or "an empty folder"
        packed = any(name.lower().endswith(".zip") for name in others)
        yield f"No notebook was handed in, only {names}." + (
            " Unpack the zip file, and grade again." if packed else ""
        )
    elif len(notebooks) > 1:
        what = f"{len(parts)} submissions" if len(parts) > 1 else f"{len(notebooks)} notebooks"
        yield f"{what} ({', '.join(notebooks)}): the best answer to each exercise counts."


def class_list(path: Path) -> list[tuple[str, str]]:
    """(name, number) of each student of a list: one name a line, or a table (by commas, semicolons
    or tabs) with a column "Full name" or "Name" (or "First name" and "Last name") and perhaps one
    "Identifier", as Moodle's grading worksheet has them; the number is "" where there is none.
    Raises ValueError."""
    try:
        rows = [(line, [cell.strip() for cell in row]) for line, row in csv_rows(path, ())]
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    rows = [(line, row) for line, row in rows if any(row)]
    head = [cell.casefold() for cell in rows[0][1]] if rows else []
    columns = [head.index(x) for x in NAMES if x in head][: 1 if "full name" in head else 2]
    result = []
    for line, row in rows[1:] if columns else rows:
        whole = ", ".join(row)
        if columns and (len(row) != len(head) or not any(row[n] for n in columns)):
            raise ValueError(
                f"{path}, line {line}: {whole!r} was given; expected a name, and a cell for each "
                f"of {', '.join(head)}. Put a cell with a comma in quotes."
            )
        if not columns and (len(row) > 2 or (len(row) == 2 and re.search(r"[@\d]", whole))):
            raise ValueError(
                f"{path}, line {line}: {whole!r} was given, and no header that is known; expected "
                'a first line with "Full name" or "Name" (or "First name" and "Last name"), and '
                '"Identifier" for Moodle\'s numbers; or only names, one per line (Bo Li; Li, Bo).'
            )
        name = " ".join(row[n] for n in columns) if columns else whole
        identifier = row[head.index("identifier")] if columns and "identifier" in head else ""
        number = re.search(r"\d+$", identifier)
        result.append((unicodedata.normalize("NFC", name), number[0] if number else ""))
    if not result:
        raise ValueError(f"{path} names no student; expected names, one per line.")
    return result


def with_list(
    students: Sequence[Submission], listed: Sequence[tuple[str, str]]
) -> list[Submission]:
    """The students, and everybody listed who handed nothing in; notes say who is not listed."""
    here = [
        one if any(_same_student(one, *who) for who in listed)
        else replace(one, notes=("Not on the list of students.", *one.notes))
        for one in students
    ]  # fmt: skip
    absent = [
        Submission(name, number=number, notes=("Nothing was handed in.",))
        for name, number in listed
        if not any(_same_student(one, name, number) for one in students)
    ]
    return sorted([*here, *absent], key=lambda one: (one.student.casefold(), one.student))


def _same_student(one: Submission, name: str, number: str) -> bool:
    if number and one.number:
        return number == one.number
    return _plain(re.sub(r" \((\d+|no number)\)$", "", one.student)) == _plain(name)


def _plain(name: str) -> str:
    """A name as it is compared: "Meier, Anna" is "anna meier"."""
    last, comma, first = name.partition(",")
    return " ".join((f"{first} {last}" if comma else name).casefold().split())


def code_cells(path: Path) -> list[str]:
    """The code cells of a notebook, as text. Raises BrokenNotebook."""
    try:
        if path.stat().st_size > LARGEST:
            raise BrokenNotebook(f"larger than {LARGEST >> 20} MB")
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        sources = [cell["source"] for cell in cells]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, BrokenNotebook):
            raise
        raise BrokenNotebook(
            f"not a notebook of format 4 ({type(error).__name__}: {error})"
        ) from error
    return ["".join(source) if isinstance(source, list) else str(source) for source in sources]


def mentions(cell: str, exercise: str) -> bool:
    """Whether the text of a cell checks this exercise, readable Python or not."""
    call = rf"""check\(\s*(?:id\s*=\s*)?["']{re.escape(exercise)}["']"""
    return re.search(call, cell) is not None


def needed(cells: Sequence[str], exercise: str, name: str) -> Needed | None:
    """How the answer to an exercise is made; None where there is none.

    name: of the function in the exercise's own stub, which is looked for where no cell checks it.
    Raises SyntaxError where the cell that holds the answer is no Python."""
    statements: list[ast.stmt] = []
    expression, at = "", 0
    for cell in cells:
        try:
            tree = parsed(cell)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if mentions(cell, exercise):
                reason = (
                    f"{error.msg}, line {error.lineno}" if isinstance(error, SyntaxError) else error
                )
                raise SyntaxError(f"The answer's cell is not valid Python: {reason}.") from error
            continue
        for statement in tree.body:
            if checked := _checked(statement, exercise):
                expression, at = checked, len(statements)
            statements.append(statement)
    if not expression:
        if not any(name in bound(statement) for statement in statements):
            return None
        expression, at = name, len(statements)
    return Needed(_sliced(statements, expression, at), expression)


def parsed(cell: str) -> ast.Module:
    """A cell's Python; where it is none, that without IPython's own lines."""
    try:
        return ast.parse(cell)
    except SyntaxError:
        lines = cell.splitlines()
        if re.match(r"\s*%%(?!time|capture)", cell):
            return ast.Module([], [])  # a cell in another language
        plain = (re.sub(r"\S.*", "pass", line) if MAGIC.match(line) else line for line in lines)
        return ast.parse("\n".join(plain))


def _checked(statement: ast.stmt, exercise: str) -> str:
    """What a statement `check("12.1", …)` is given, as text; "" for any other statement."""
    for call in ast.walk(statement):
        if not (isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "check"):
            continue
        arguments = {keyword.arg: keyword.value for keyword in call.keywords}
        arguments |= zip(("id", "answer"), call.args, strict=False)
        id, answer = arguments.get("id"), arguments.get("answer")
        if isinstance(id, ast.Constant) and id.value == exercise and answer is not None:
            return ast.unparse(answer)
    return ""


def _sliced(statements: Sequence[ast.stmt], expression: str, at: int) -> str:
    """The statements that the expression needs, in order. Names are looked for above it; those
    bound nowhere there, below, as a cell may have been run out of order."""
    names, kept = list(used(ast.parse(expression, mode="eval"))), set()
    for name in names:  # grows while it is gone through
        above = [n for n, one in enumerate(statements[:at]) if name in bound(one)]
        below = [n for n, one in enumerate(statements) if name in bound(one)]
        for n in above or below:
            if n not in kept:
                kept.add(n)
                names += [x for x in used(statements[n]) if x not in names]
    stars = {n for n, one in enumerate(statements) if "*" in bound(one)}
    return "\n\n".join(ast.unparse(statements[n]) for n in sorted(kept | stars))


def bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top level gives a value to."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(name.asname or name.name).split(".")[0] for name in statement.names}
    return set(_stored(statement))


def _stored(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield child.name
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            yield from ((name.asname or name.name).split(".")[0] for name in child.names)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        elif not isinstance(child, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp)):
            yield from _stored(child)


def used(node: ast.AST) -> list[str]:
    """The names that a statement or expression reads from the top level, but for Python's own."""
    names: dict[str, None] = {}

    def read(table: symtable.SymbolTable) -> None:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (top or symbol.is_global()):
                names[symbol.get_name()] = None
        for inner in table.get_children():
            read(inner)

    read(symtable.symtable(ast.unparse(node), "<needed>", "exec"))
    return [name for name in names if not hasattr(builtins, name)]
