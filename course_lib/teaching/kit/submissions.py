"""What students hand in: notebooks, and in them the statements that an answer needs.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..exercises.outputs import printable

MAGIC = re.compile(r"^\s*([%!].*|\?+[\w.]+|[\w.]+\?+)$")  # %time, !pip, ?print, print?
LARGEST = 200 * 2**20  # bytes of a notebook; pages with figures have a few million


class BrokenNotebook(ValueError):
    """A file that is no notebook; the message says what is wrong with it."""


@dataclass(frozen=True)
class Needed:
    """How an answer is made: statements to run, and the expression that then gives it."""

    source: str
    expression: str


@dataclass(frozen=True)
class Submission:
    """A student, the notebooks found, and the files that are none with the reason."""

    student: str
    notebooks: dict[str, list[str]] = field(default_factory=dict)  # path -> its code cells
    broken: dict[str, str] = field(default_factory=dict)


def submissions(folder: Path) -> list[Submission]:
    """A submission for each entry of the folder: `name.ipynb`, or a folder with notebooks in it, as
    platforms give them out. Hidden files and `.ipynb_checkpoints` are passed over.

    Raises ValueError where the folder is none, or holds neither notebooks nor folders."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; expected one with the students' notebooks.")
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    entries = [entry for entry in entries if entry.is_dir() or entry.suffix == ".ipynb"]
    if not entries:
        raise ValueError(
            f"{folder} holds no notebook and no folder; expected name.ipynb or name/….ipynb for "
            "each student."
        )
    folders = {entry.name for entry in entries if entry.is_dir()}
    result = []
    for entry in entries:
        name = entry.stem if entry.is_file() and entry.stem not in folders else entry.name
        result.append(_submission(folder, entry, printable(name)))
    return result


def _submission(folder: Path, entry: Path, student: str) -> Submission:
    paths = sorted(entry.rglob("*.ipynb")) if entry.is_dir() else [entry]
    one = Submission(student)
    for path in paths:
        name = printable(path.relative_to(folder).as_posix())
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        try:
            one.notebooks[name] = code_cells(path)
        except BrokenNotebook as error:
            one.broken[name] = str(error)
    return one


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
                raise SyntaxError(f"The cell of the answer is no Python: {reason}.") from error
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
