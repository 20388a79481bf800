"""show(): the library's own source, short at first and whole on a click."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
import sys
import textwrap
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import torch

from course_lib import bert, encoder
from course_lib.config import published
from course_lib.heads import PairHead
from course_lib.teaching import source, tokens


def words_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


@pytest.mark.parametrize("thing", [encoder.Pooler, encoder.Block.forward, bert, tokens])
def test_show_whole_is_the_source_and_nothing_else(thing: Any) -> None:
    box = source.show(thing, whole=True)
    code = "".join(re.findall(r"<pre[^>]*>(.*?)</pre>", box.html, flags=re.DOTALL))
    assert repr(box) == inspect.getsource(thing)
    assert words_of(code).rstrip() == inspect.getsource(thing).rstrip()
    assert "<span" in code and "<a" not in box.html


class Bare(ast.NodeTransformer):
    """Code without what the short form may leave out."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def _without_docstring(self, node: Any) -> ast.AST:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return ast.Raise(called)


def bare(code: str) -> str:
    return ast.dump(Bare().visit(ast.parse(textwrap.dedent(code))))


def test_the_short_form_is_the_same_code_in_fewer_lines(root: Path) -> None:
    """Of every function and class of the library, whose code pages show."""
    for path in (root / "course_lib").rglob("*.py"):
        if {"lectures", "teaching", "bench"} & set(path.parts):
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            whole = ast.get_source_segment(text, node) or ""
            short = source.short_form(whole)
            assert bare(short) == bare(whole), (path, node.name)
            assert len(short.splitlines()) <= len(whole.splitlines()), (path, node.name)


def test_the_short_form_unfolds() -> None:
    short = source.show(encoder.Block)
    assert '"""' in short.text and "every line" in short.html
    assert words_of(short.html).rstrip().endswith(inspect.getsource(encoder.Block).rstrip())


def test_show_takes_instances_and_several_things() -> None:
    box = source.show(PairHead(published("bert", "base")), bert)
    assert "class PairHead" in box.text and "def bert(" in box.text
    first = inspect.getsourcelines(encoder.Pooler)[1]
    assert f"course_lib/encoder.py, lines {first} to" in source.show(encoder.Pooler).html


LAMBDAS = {
    "alone": lambda x: x + 1, "beside": lambda x: (x, 2), "constant": lambda: 1,
    "outer": lambda y=lambda: 0: lambda: y,
    "of several lines": lambda x: (
        x
        + 3
    ),
}  # fmt: skip


def plain(x: int) -> int:
    """One sentence."""
    return x


class Holds:
    """Functions in what is no function."""

    part = functools.partial(plain, 1)
    part_method = functools.partialmethod(plain, 1)
    cached = functools.cached_property(plain)
    fixed = staticmethod(plain)
    read = property(plain)


LAMBDAS["inner"] = LAMBDAS["outer"]()


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("alone", "lambda x: x + 1"), ("beside", "lambda x: (x, 2)"), ("constant", "lambda: 1"),
        ("outer", "lambda y=lambda: 0: lambda: y"), ("inner", "lambda: y"),
        ("of several lines", "lambda x: (\n        x\n        + 3\n    )"),
    ],
)  # fmt: skip
def test_show_of_a_lambda_is_the_expression(name: str, expression: str) -> None:
    for function in (LAMBDAS[name], functools.partial(LAMBDAS[name], 1)):
        for whole in (False, True):
            assert repr(source.show(function, whole=whole)) == f"{expression}\n"
    assert repr(source.show(*LAMBDAS.values())).startswith("lambda x: x + 1\n\n\nlambda")
    first = inspect.getsourcelines(LAMBDAS[name])[1]
    last = first + expression.count("\n")
    assert f"lines {first} to {last}" in source.show(LAMBDAS[name]).html


@pytest.mark.parametrize(
    "thing",
    [*(vars(Holds)[n] for n in vars(Holds) if n[0] != "_"), Holds.part, Holds().part_method],
)
def test_show_finds_the_function_that_something_holds(thing: Any) -> None:
    assert repr(source.show(thing, whole=True)) == inspect.getsource(plain)


def test_a_function_read_from_a_part_of_a_statement_is_shown_as_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as a lambda in a cell with magic lines, which is no Python as a whole."""
    monkeypatch.setattr(inspect, "getsource", lambda thing: "    'b': lambda x: x},\n")
    monkeypatch.setattr(source, "_lambda", lambda function: "")
    assert repr(source.show(LAMBDAS["alone"])) == "    'b': lambda x: x},\n"


@pytest.mark.parametrize(
    ("thing", "named"),
    [
        (len, "<built-in function len>"), (None, "None"), (5, "5"), ("bert", "'bert'"),
        ([1], r"\[1\]"),
        (sys, "module 'sys'"), (torch.add, "<built-in method add"), (int.__add__, "slot wrapper"),
        (torch.ones(1), "tensor"), (list[int], r"list\[int\]"), (property(), "<property object"),
        (functools.partial(len, "a"), "functools.partial"), (iter([]), "<list_iterator"),
    ],
)  # fmt: skip
def test_show_of_what_has_no_source_says_what_was_given(thing: Any, named: str) -> None:
    with pytest.raises(TypeError, match=f"given .*{named}.*Python has no source.*expected a func"):
        source.show(thing)


def test_show_of_nothing() -> None:
    with pytest.raises(TypeError, match="expected functions"):
        source.show()


def test_lines_of_a_module_are_shown_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton is not everywhere, and page 14 shows a loop of its kernel."""
    name = "course_lib.kernels.disentangled_triton"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    box = source.show_lines(name, "for begin in range(start", "top = higher")
    lines = repr(box).splitlines()
    assert lines[0].startswith("for begin in") and lines[-1].endswith("top = higher")
    assert set(lines) <= {line.removeprefix("        ") for line in _text_of(name)}
    assert "course_lib/kernels/disentangled_triton.py, lines" in box.html
    assert name not in sys.modules


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("course_lib.nothing", "a", "b"), "a module with a file"),
        (("course_lib.config", "class BertConfig", "import"), "in this order"),
    ],
)
def test_lines_that_are_not_there_are_named(arguments: tuple[str, str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        source.show_lines(*arguments)


def _text_of(name: str) -> list[str]:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8").splitlines()
