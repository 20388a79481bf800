"""show(obj): the library's own source, highlighted. What the reader sees is what runs."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .page import Html

_BOX = (
    "background:#fbfbfa;color:#1a1a1a;border:1px solid #d9d9d9;border-radius:6px;margin:4px 0;"
    "overflow:auto;max-width:820px"
)
_PRE = (
    "margin:0;padding:10px 14px;font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;color:#1a1a1a;"
    "white-space:pre;word-break:normal;overflow-wrap:normal;background:#fbfbfa"
)
_HEAD = "padding:4px 14px;border-bottom:1px solid #d9d9d9;font:12px system-ui,sans-serif;color:#555"
_WHOLE = "border-top:1px solid #d9d9d9;padding:4px 14px;font:12px system-ui,sans-serif;color:#555"
WIDTH = 100  # characters of a line
COMMENT = re.compile(r"\s+# .*$")
# What holds a function, and where.
HOLDERS = {functools.partial: "func", functools.partialmethod: "func", property: "fget",
           functools.cached_property: "func", functools.singledispatchmethod: "func"}  # fmt: skip
FOR_TOOLS = re.compile(r"  # (fmt|type|noqa)\b.*$", re.MULTILINE)


def show(*objects: Any, whole: bool = False) -> Html:
    """The source of functions, classes or modules, highlighted in a notebook.

    Short at first: of a docstring its first sentence, a signature on one line, an error without its
    words; a click, or whole=True, gives every line. Of a lambda the expression; of a partial, a
    property and others that hold a function, the function; for anything else the source of its
    class. Raises TypeError where Python keeps no source.
    """
    if not objects:
        raise TypeError("show() was given nothing; expected functions, classes or modules.")
    written = [_as_written(obj) for obj in objects]
    sources = [_source(*pair) for pair in zip(written, objects, strict=True)]
    texts = sources if whole else [short_form(source) for source in sources]
    boxes = map(_box, written, texts, sources)
    return Html("".join(boxes), "\n\n".join(texts))


def show_lines(module: str, begin: str, end: str) -> Html:
    """The lines of a module from the first that holds `begin` to the next that holds `end`.

    The module is read, not imported: what it needs may be missing here, such as Triton. Raises
    ValueError where there is no such module and where no lines begin and end so."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"show_lines was given {module!r}; expected a module with a file.")
    lines = Path(spec.origin).read_text(encoding="utf-8").splitlines()
    first = next((n for n, line in enumerate(lines) if begin in line), len(lines))
    last = next((n for n in range(first, len(lines)) if end in lines[n]), None)
    if last is None:
        raise ValueError(
            f"show_lines was given {begin!r} and {end!r}; expected words of two lines of {module}, "
            "in this order."
        )
    text = textwrap.dedent("\n".join(lines[first : last + 1]))
    place = f"{module.replace('.', '/')}.py, lines {first + 1} to {last + 1}"
    return Html(_framed(place, f'<pre style="{_PRE}">{_highlighted(text)}</pre>'), text)


def short_form(source: str) -> str:
    """The source in fewer lines: first sentences of docstrings, signatures on one line (without
    annotations where these do not fit), errors without their words, no comments for tools."""
    lines = source.splitlines()
    indent = len(source) - len(source.lstrip(" "))
    dedented = textwrap.dedent(source)
    try:
        changes = _changes(ast.parse(dedented), dedented.splitlines())
    except SyntaxError:  # a part of a statement
        return source
    for first, last, new in sorted(changes, reverse=True):  # from the end, so that numbers hold
        lines[first - 1 : last] = [" " * indent + line for line in new]
    return FOR_TOOLS.sub("", "\n".join(lines)) + "\n"


def _changes(tree: ast.Module, lines: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """(first line, last line, the lines in their stead), lines counted from one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc and node.end_lineno != node.lineno:
            before = " " * node.col_offset
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            yield node.lineno, node.end_lineno or 0, [f"{before}raise {ast.unparse(error)}(...)"]
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        before = " " * (node.body[0].col_offset)
        if (docstring := ast.get_docstring(node)) is not None:
            quoted = f'"""{_first_sentence(docstring)}"""'
            wrapped = textwrap.wrap(quoted, WIDTH, initial_indent=before, subsequent_indent=before)
            yield node.body[0].lineno, node.body[0].end_lineno or 0, wrapped
        if isinstance(node, ast.FunctionDef):
            head = [COMMENT.sub("", line) for line in lines[node.lineno - 1 : node.body[0].lineno]]
            count = next((n for n, line in enumerate(head, start=1) if line.endswith(":")), 1)
            if count > 1:
                yield node.lineno, node.lineno + count - 1, _signature(node, head[:count])


def _first_sentence(docstring: str) -> str:
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s+(?=[A-Z])", paragraph)[0].removesuffix(":")


def _signature(node: ast.FunctionDef, lines: list[str]) -> list[str]:
    """The head of a function on one line, or on as few as it takes."""
    joined = " ".join(line.strip() for line in lines).replace("( ", "(").replace(", )", ")")
    before = " " * node.col_offset
    if len(before + joined) <= WIDTH:
        return [before + joined]
    bare = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(bare, ast.FunctionDef)
    for argument in ast.walk(bare.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    bare.body, bare.decorator_list, bare.returns = [ast.Pass()], [], None
    head = ast.unparse(bare).splitlines()[0]
    whole = re.sub(r"'[^']*'", lambda text: text[0].replace(" ", "\0"), head)  # no break in a text
    lines = textwrap.wrap(
        whole, WIDTH, initial_indent=before, subsequent_indent=before + " " * 8,
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    return [line.replace("\0", " ") for line in lines]


def _as_written(obj: Any) -> Any:
    """The thing that has source: the object itself, what it holds, or the class of an instance."""
    obj = inspect.unwrap(obj) if callable(obj) else obj
    for kind, part in HOLDERS.items():
        if isinstance(obj, kind) and callable(held := getattr(obj, part)):
            return _as_written(held)
    named = inspect.isroutine(obj) or inspect.isclass(obj) or isinstance(obj, ModuleType)
    return obj if named else type(obj)


def _source(obj: Any, original: Any) -> str:
    try:
        is_lambda = inspect.isfunction(obj) and obj.__name__ == "<lambda>"
        return (_lambda(obj) if is_lambda else "") or inspect.getsource(obj)
    except (OSError, TypeError) as error:
        raise TypeError(
            f"show() was given {original!r:.200}, for which Python has no source (it is built in, "
            "or was typed at a prompt); expected a function, class or module read from a file."
        ) from error


def _lambda(function: FunctionType) -> str:
    """The expression; its lines hold parts of other things. "" where its file cannot be read as
    Python, as a cell with magic lines."""
    text = "".join(inspect.findsource(function)[0])
    marks = _marks(function.__code__)
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Lambda)]
    except SyntaxError:
        return ""
    for node in nodes:
        compiled = compile(ast.Expression(node), "", "eval").co_consts
        *_, code = (value for value in compiled if isinstance(value, CodeType))
        if _marks(code) == marks:
            return f"{ast.get_source_segment(text, node)}\n"
    return ""


def _marks(code: CodeType) -> tuple[Any, ...]:
    """What tells lambdas of one file apart: where their parts stand, their arguments and constants.
    Their instructions do not: a name from around is another kind of name where one is alone."""
    places = {place for place in code.co_positions() if None not in place}
    plain = [value for value in code.co_consts if not isinstance(value, CodeType)]
    return places, code.co_varnames, plain


def _box(obj: Any, text: str, source: str) -> str:
    code = f'<pre style="{_PRE}">{_highlighted(text)}</pre>'
    if text != source:
        every = (
            f"every line, with the whole of its docstrings and errors ({len(source.splitlines())})"
        )
        code += (
            f'<details style="{_WHOLE}"><summary>{every}</summary>'
            f'<pre style="{_PRE}">{escape(source)}</pre></details>'
        )
    return _framed(_place(obj, len(source.splitlines())), code)


def _framed(place: str, code: str) -> str:
    head = f'<div style="{_HEAD}">{escape(place)}</div>'
    return f'<div class="course-source" style="{_BOX}">{head}{code}</div>'


def _place(obj: Any, count: int) -> str:
    """Where it is written, such as course_lib/encoder.py, lines 30 to 58."""
    module = obj if isinstance(obj, ModuleType) else inspect.getmodule(obj)
    name = getattr(module, "__name__", "")
    ending = "/__init__.py" if hasattr(module, "__path__") else ".py"
    file = name.replace(".", "/") + ending if name and name != "__main__" else "this notebook"
    if isinstance(obj, ModuleType):
        return file
    first = inspect.getsourcelines(obj)[1]
    return f"{file}, lines {first} to {first + count - 1}"


def _highlighted(source: str) -> str:
    """HTML spans for the few kinds of word that get a colour; plain where Pygments is missing."""
    try:
        from pygments import highlight
        from pygments.lexers import PythonLexer
    except ImportError:
        return escape(source)
    return highlight(source, PythonLexer(stripnl=False), _formatter())


@lru_cache(maxsize=1)
def _formatter() -> Any:
    from pygments.formatters import HtmlFormatter
    from pygments.style import Style
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    class Course(Style):
        """Few colours, so that a page of source stays small in a notebook; all at least 4.5 : 1."""

        styles = {  # noqa: RUF012 (Pygments wants a plain dictionary)
            Comment: "italic #5f6b6b", Keyword: "bold #00558a", Operator.Word: "bold #00558a",
            String: "#7a4a00", String.Doc: "italic #7a4a00", Number: "#a03c00",
            Name.Class: "bold", Name.Function: "bold", Name.Decorator: "#8a3c6c",
        }  # fmt: skip

    return HtmlFormatter(style=Course, noclasses=True, nowrap=True)
