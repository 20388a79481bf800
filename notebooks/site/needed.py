"""Which cells of a page its controls need: those that make them, and what these build on.

A page's text says it, read backwards: a cell is needed when it makes a control, or gives or changes
a name that a needed cell after it reads. What a call does to its arguments is not seen, but for
callbacks: a control may then show a model before its training, and moves all the same. Where this
finds too little, a cell fails, and the site's builder says so.
"""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat

WIDGETS = re.compile(r"import (ipywidgets|anywidget)\b")


class Names(ast.NodeVisitor):
    """The names that code reads from before it, gives (`sure`: whatever happens), and changes.

    What its functions read, they read when they are called: `later`."""

    def __init__(self, *nodes: ast.AST, local: frozenset[str] = frozenset()) -> None:
        self.reads: set[str] = set()
        self.gives = set(local)
        self.sure: set[str] = set()
        self.changes: set[str] = set()
        self.later: set[str] = set()
        self.certain = True
        for node in nodes:
            self.visit(node)

    def give(self, name: str) -> None:
        self.gives.add(name)
        if self.certain:
            self.sure.add(name)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.give(node.id)
        elif node.id not in self.gives:
            self.reads.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        for part in (node.value, *node.targets):
            self.visit(part)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.changes |= _root(node.target)
        self.reads |= _root(node.target) - self.gives
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A method called for what it does: losses.append(1), figure.update_yaxes(...)."""
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            self.changes |= _root(node.value.func)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.changes |= _root(node)
        self.generic_visit(node)

    visit_Subscript = visit_Attribute

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg == "callbacks":
            self.changes |= {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.give(node.asname or node.name.split(".")[0])

    def visit_For(self, node: ast.For | ast.While | ast.If | ast.Try) -> None:
        """What is done perhaps; a loop's own names are given before its body reads them."""
        before, self.certain = self.certain, False
        first = [part for name in ("iter", "target") if (part := getattr(node, name, None))]
        for part in (*first, *(n for n in ast.iter_child_nodes(node) if n not in first)):
            self.visit(part)
        self.certain = before

    visit_While = visit_If = visit_Try = visit_For

    def visit_ListComp(self, node: Any) -> None:
        parts = [part for loop in node.generators for part in (loop.iter, loop.target, *loop.ifs)]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inner = Names(*parts, local=frozenset(self.gives))
        self.reads |= inner.reads
        self.later |= inner.later
        self.changes |= inner.changes

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.Lambda) -> None:
        outside = [*getattr(node, "decorator_list", []), *node.args.defaults]
        for part in (*outside, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        body = node.body if isinstance(node.body, list) else [node.body]
        inner = Names(*body, local=frozenset(own))
        self.later |= inner.reads | inner.later
        self.reads |= (inner.reads | inner.later) - self.gives
        if isinstance(node, ast.FunctionDef):
            self.give(node.name)

    visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.generic_visit(node)
        self.give(node.name)


def _root(node: ast.AST) -> set[str]:
    """The name that a.b[c].d begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _makes_controls(module: str, name: str) -> bool:
    """Whether that function of the course's comes from a file that makes widgets."""
    if not module.startswith("course_lib"):
        return module in ("ipywidgets", "anywidget")
    thing = getattr(import_module(module), name, None)
    if not inspect.isfunction(thing):
        return False
    home = inspect.getmodule(thing)
    return thing.__name__ == "quiz" or bool(home and WIDGETS.search(inspect.getsource(home)))


def needed_cells(codes: list[str]) -> list[int]:
    """The numbers of the needed ones, in their order."""
    trees = [ast.parse(code) for code in codes]
    makers, modules = _imported(trees)
    cells = [Names(tree) for tree in trees]
    roots = [bool(makers & {getattr(n, "id", "") for n in ast.walk(tree)}) for tree in trees]
    later: set[str] = set()
    while True:
        needed = _read_backwards(cells, roots, modules, later)
        found = later.union(*(cells[number].later for number in needed))
        if found == later:
            return needed
        later = found


def _imported(trees: list[ast.Module]) -> tuple[set[str], set[str]]:
    """The names of what makes controls, and of modules: calling torch.manual_seed changes none."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    whole = [a.asname or a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    taken = [(n.module or "", a) for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names]
    return {a.asname or a.name for module, a in taken if _makes_controls(module, a.name)}, {*whole}


def _read_backwards(
    cells: list[Names], roots: list[bool], modules: set[str], later: set[str]
) -> list[int]:
    needed: list[int] = []
    missing: set[str] = set()
    for number in reversed(range(len(cells))):
        names = cells[number]
        if roots[number] or missing & (names.gives | names.changes - modules):
            needed.append(number)
            missing = (missing - names.sure) | names.reads | later
    return needed[::-1]


def needed_on_page(path: Path) -> list[int]:
    """The same for a notebook: places among all its cells, prose included."""
    cells = nbformat.read(path, as_version=4).cells
    code = [place for place, cell in enumerate(cells) if cell.cell_type == "code"]
    return [code[number] for number in needed_cells([cells[place].source for place in code])]
