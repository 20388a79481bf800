"""show(obj): the library's own source, highlighted. What the reader sees is what runs."""

from __future__ import annotations

import inspect
from functools import lru_cache
from html import escape
from types import ModuleType
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


def show(*objects: Any) -> Html:
    """The source of functions, classes or modules, docstrings kept, highlighted in a notebook.

    For anything else the source of its class. Raises TypeError where Python keeps no source.
    """
    if not objects:
        raise TypeError("show() was given nothing; expected functions, classes or modules.")
    found = [_as_written(obj) for obj in objects]
    sources = [_source(obj) for obj in found]
    boxes = (_box(obj, source) for obj, source in zip(found, sources, strict=True))
    return Html("".join(boxes), "\n\n".join(sources))


def _as_written(obj: Any) -> Any:
    """The thing that has source: the object itself, or the class of an instance."""
    obj = inspect.unwrap(obj) if callable(obj) else obj
    if isinstance(obj, property):
        return obj.fget
    named = inspect.isroutine(obj) or inspect.isclass(obj) or isinstance(obj, ModuleType)
    return obj if named else type(obj)


def _source(obj: Any) -> str:
    try:
        return inspect.getsource(obj)
    except (OSError, TypeError) as error:
        raise TypeError(
            f"show() was given {obj!r}, of which Python keeps no source (it is built in, or was "
            "typed at a prompt); expected a function, class or module read from a file."
        ) from error


def _box(obj: Any, source: str) -> str:
    head = f'<div style="{_HEAD}">{escape(_place(obj))}</div>'
    code = f'<pre style="{_PRE}">{_highlighted(source)}</pre>'
    return f'<div class="course-source" style="{_BOX}">{head}{code}</div>'


def _place(obj: Any) -> str:
    """Where it is written, such as course_lib/encoder.py, lines 30 to 58."""
    module = obj if isinstance(obj, ModuleType) else inspect.getmodule(obj)
    name = getattr(module, "__name__", "")
    ending = "/__init__.py" if hasattr(module, "__path__") else ".py"
    file = name.replace(".", "/") + ending if name and name != "__main__" else "this notebook"
    if isinstance(obj, ModuleType):
        return file
    lines, first = inspect.getsourcelines(obj)
    return f"{file}, lines {first} to {first + len(lines) - 1}"


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
