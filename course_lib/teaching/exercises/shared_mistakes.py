"""Mistakes that any exercise can have, made from its solution: another axis, a mean for a sum, a
factor left out, one too many, a mask turned, an argument without effect.

Each generator looks at one kind of place in the solution's syntax tree and yields what could stand
there, and what to say to it. `Exercise.terms` gives an expression, and `Exercise.axes` an axis, the
words of the exercise; without them a message shows the expression itself. Loops by `while` are left
alone: what is changed there may never end."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from itertools import combinations

from .form import Edit, Exercise
from .outputs import Number

Place = tuple[ast.AST, str, str]  # a place, the text that stands there instead, what to say
LONGEST = 64  # letters of an expression that a message shows

OVER_AXES = {
    "sum", "mean", "softmax", "log_softmax", "norm", "normalize", "amax", "amin", "max", "min",
    "argmax", "argmin", "cumsum", "cumprod", "std", "var", "prod", "any", "all", "logsumexp",
    "median", "cat", "stack", "flip", "topk", "sort", "argsort",
}  # fmt: skip
INSTEAD = {
    "sum": ("mean",), "mean": ("sum",), "amax": ("amin", "mean"), "amin": ("amax",),
    "max": ("min",), "min": ("max",), "argmax": ("argmin",), "argmin": ("argmax",),
    "floor": ("ceil", "round"), "ceil": ("floor", "round"), "round": ("floor", "ceil"),
    "log": ("log2", "log10", "log1p"), "any": ("all",), "all": ("any",), "prod": ("sum",),
    "softmax": ("sigmoid", "log_softmax"), "log_softmax": ("softmax",), "sigmoid": ("tanh",),
    "logsumexp": ("sum",), "cat": ("stack",),
}  # fmt: skip
NAMES = {
    "amax": "largest", "amin": "smallest", "max": "largest", "min": "smallest",
    "cat": "concatenation", "cumsum": "running sum", "cumprod": "running product",
    "prod": "product", "std": "standard deviation", "var": "variance", "flip": "order",
    "normalize": "division by the length", "floor": "whole number below",
    "round": "nearest whole number", "ceil": "whole number above", "log": "natural logarithm",
    "log2": "logarithm to base 2", "log10": "logarithm to base 10", "log1p": "logarithm of 1 +",
}  # fmt: skip
LEFT_OUT = {
    "abs": "has kept its sign: take its absolute value", "clamp": "is not limited: clamp it",
    "log": "is taken without its logarithm", "exp": "is taken without exp",
    "sqrt": "is taken without its square root", "square": "is not squared",
    "floor": "is not rounded down", "ceil": "is not rounded up", "round": "is not rounded",
    "masked_fill": "is not masked", "softmax": "is taken without its softmax",
    "log_softmax": "is taken without its log-softmax", "sigmoid": "is taken without its sigmoid",
    "cumsum": "is not summed cumulatively", "flip": "is not reversed",
    "sorted": "is not sorted", "set": "counts duplicates twice", "min": "has no upper limit",
    "max": "has no lower limit", "transpose": "has its axes in the wrong order",
    "normalize": "is not divided by its length", "log1p": "is taken without log(1 + x)",
    "lower": "keeps its capital letters", "layer_norm": "is not normalised",
    "gelu": "has not gone through GELU", "relu": "has not gone through ReLU",
}  # fmt: skip
OPERATORS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
OTHER_BOUND = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OPPOSITE = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "in": "not in",
    "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip


@lru_cache(maxsize=128)
def shared_mistakes(exercise: Exercise) -> tuple[Edit, ...]:
    """The mistakes of these kinds, in the order in which they are tried; many change nothing on an
    exercise's cases, and are never named. None where the solution has no text: a lambda, a function
    made elsewhere."""
    try:
        return tuple(_Solution(exercise).edits())
    except (OSError, SyntaxError):
        return ()


class _Solution:
    """The solution's text and tree, with the words for its expressions."""

    def __init__(self, exercise: Exercise) -> None:
        self.exercise, self.text = exercise, exercise.source()
        self.tree = ast.parse(self.text)
        lines = self.text.splitlines(keepends=True)
        self.starts = [sum(map(len, lines[:n])) for n in range(len(lines))]
        self.lines = [line.encode() for line in lines]
        solution = self.tree.body[-1]
        assert isinstance(solution, ast.FunctionDef)
        self.arguments = {  # of the solution: their names in the exercise
            arg.arg: name
            for arg, name in zip(solution.args.args, exercise.parameters, strict=False)
        }
        self.locals = self._assigned_once()
        outs = exercise.outs(exercise.stages[0])
        # Sums of whole numbers come out alike in many ways: only terms that are missing have names.
        self.counts = any(getattr(out, "kind", "") == "int" and type(out) is Number for out in outs)

    def edits(self) -> Iterator[Edit]:
        places = [node for f in self.tree.body for node in _inside(f)]
        for generator in GENERATORS:
            for node in places:
                for place, new, message in generator(self, node):
                    yield self.edit(place, new, message)
        yield from self._arguments()

    def edit(self, node: ast.AST, new: str, message: str) -> Edit:
        """The place as it stands, with as much around it as makes it unique."""
        start, end = self.span(node)
        before, after = start, end
        while self.text.count(self.text[before:after]) > 1:
            before, after = max(0, before - 1), min(len(self.text), after + 1)
        whole = self.text[before:start] + new + self.text[end:after]
        return Edit(self.text[before:after], whole, message)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """From which letter to which; the tree counts in bytes."""
        row, column = node.lineno - 1, node.col_offset  # type: ignore[attr-defined]
        last, end = node.end_lineno - 1, node.end_col_offset  # type: ignore[attr-defined]
        start = self.starts[row] + len(self.lines[row][:column].decode())
        return start, self.starts[last] + len(self.lines[last][:end].decode())

    def part(self, node: ast.AST) -> str:
        """The text of an expression, to stand in place of a larger one."""
        start, end = self.span(node)
        text = self.text[start:end]
        return text if isinstance(node, _CLOSED) else f"({text})"

    def words(self, node: ast.AST) -> str:
        """An expression for a sentence, with the arguments named as in the exercise."""
        names = {old: ast.Name(new) for old, new in self.arguments.items()}
        whole = _Renamed(names).visit(_Renamed(self.locals).visit(deepcopy(node)))
        texts = ast.unparse(_Renamed(names).visit(deepcopy(node))), ast.unparse(whole)
        for text in texts:
            if text in self.exercise.terms:
                return self.exercise.terms[text]
        text = texts[1] if len(texts[1]) <= LONGEST else texts[0]
        return f"`{text}`" if len(text) <= LONGEST else f"`{text[: LONGEST - 1]}…`"

    def axis(self, dim: str) -> str:
        named = self.exercise.axes.get(dim)
        return f"{named} (dim={dim})" if named else f"dim={dim}"

    def without(self, node: ast.AST, kept: ast.AST) -> str:
        """Says first which argument has no effect where `kept` stands in place of `node`."""
        inside, left = _names(node), _names(kept)
        lost = [a for a in self.arguments if a in inside and a not in left]
        lost = [a for a in lost if self._uses(a) == inside.count(a)]
        return f"`{self.arguments[lost[0]]}` has no effect. " if len(lost) == 1 else ""

    def _uses(self, name: str) -> int:
        return sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(self.tree))

    def _assigned_once(self) -> dict[str, ast.expr]:
        assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                assigned.setdefault(node.targets[0].id, []).append(node.value)
            if isinstance(node, (ast.AugAssign, ast.For)) and isinstance(node.target, ast.Name):
                assigned.setdefault(node.target.id, []).extend([ast.Constant(0)] * 2)
        once = {name: values[0] for name, values in assigned.items() if len(values) == 1}
        plain = (ast.Constant, ast.List, ast.Dict, ast.Set)
        return {
            name: value
            for name, value in once.items()
            if name not in self.arguments and not isinstance(value, plain)
        }

    def _arguments(self) -> Iterator[Edit]:
        """Arguments of the solution that are exchanged."""
        solution = self.tree.body[-1]
        assert isinstance(solution, ast.FunctionDef)
        start, _ = self.span(solution.body[1 if ast.get_docstring(solution) else 0])
        annotations = {arg.arg: ast.unparse(arg.annotation or arg) for arg in solution.args.args}
        for a, b in combinations(self.arguments, 2):
            if annotations[a] == annotations[b]:
                message = f"`{self.arguments[a]}` and `{self.arguments[b]}` are exchanged."
                line = f"{a}, {b} = {b}, {a}\n    "
                yield Edit(self.text, self.text[:start] + line + self.text[start:], message)


_CLOSED = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.List, ast.Tuple)


class _Renamed(ast.NodeTransformer):
    """Names replaced by what they stand for, one step back."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return deepcopy(self.values.get(node.id, node))


def _names(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function's body, without annotations, texts and loops by `while`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.arguments, ast.While)) or child is getattr(node, "returns", None):
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        yield child
        yield from _inside(child)


def _called(node: ast.AST) -> str:
    """The name of the function or method that is called, or an empty text."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _of_what(node: ast.Call) -> ast.expr | None:
    """What a call is about: the object of a method, else the first argument."""
    if isinstance(node.func, ast.Attribute):
        of = node.func.value
        if ast.unparse(of) not in ("torch", "math", "F", "torch.nn.functional", "np", "random"):
            return of
    return node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None


def _dim(node: ast.Call) -> ast.expr | None:
    """The axis of a reduction, where it is a number."""
    axes = [k.value for k in node.keywords if k.arg in ("dim", "axis")]
    about = _of_what(node)
    axes += [a for a in node.args if a is not about][-1:] if not axes else []
    return axes[0] if axes and _number(axes[0]) is not None else None


def _number(node: ast.AST) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    return value if type(value) is int else None


# ---------------------------------------------------------------- kinds of places


def _axes(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    name = _called(node)
    if not isinstance(node, ast.Call) or name not in OVER_AXES or (dim := _dim(node)) is None:
        return
    right, what = ast.unparse(dim), NAMES.get(name, name)
    expected = f"expected over {solution.axis(right)}"
    for other in ("-1", "0", "1", "-2", "2"):
        if other != right:
            wrong = f"The {what} of {_about(solution, node)} runs over {solution.axis(other)}"
            yield dim, other, f"{wrong}; {expected}."


def _about(solution: _Solution, node: ast.Call) -> str:
    about = _of_what(node)
    return solution.words(about) if about is not None else "it"


def _other_function(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    name = _called(node)
    if not isinstance(node, ast.Call) or name not in INSTEAD:
        return
    place, about = node.func, _about(solution, node)
    if isinstance(place, ast.Name) and name not in ("max", "min", "any", "all", "sum"):
        return
    start, right = solution.part(place)[: -len(name)], NAMES.get(name, name)
    for other in INSTEAD[name]:
        wrong = NAMES.get(other, other)
        yield place, start + other, f"You take the {wrong} of {about}; expected the {right}."


def _call_left_out(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield node, solution.part(node.value), f"{solution.words(node.value)} is not transposed."
    name = _called(node)
    if not isinstance(node, ast.Call) or name not in LEFT_OUT:
        return
    about = _of_what(node)
    if about is not None:
        lost = solution.without(node, about)
        yield node, solution.part(about), f"{lost}{_upper(solution.words(about))} {LEFT_OUT[name]}."
    if name in ("min", "max") and len(node.args) == 2:
        other = node.args[1]
        lost = solution.without(node, other)
        yield node, solution.part(other), f"{lost}You always take {solution.words(other)}."


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _products(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    if not isinstance(node, ast.BinOp) or solution.counts:
        return
    left, right = node.left, node.right
    a, b = solution.part(left), solution.part(right)
    x, y = solution.words(left), solution.words(right)
    no_right = solution.without(node, left)
    if isinstance(node.op, ast.Div):
        yield node, a, f"{no_right}{_upper(x)} is not divided by {y}."
        yield node, f"({a} * {b})", f"{_upper(x)} is multiplied by {y}; divide."
        yield from _other_scale(solution, node, a, x)
    if isinstance(node.op, ast.FloorDiv):
        yield node, a, f"{no_right}{_upper(x)} is not divided by {y}."
        yield node, f"({a} % {b})", f"You take the remainder of {x} by {y}; expected //."
        yield node, f"(-(-{a} // {b}))", f"{_upper(x)} by {y} is rounded up; round down, with //."
    if isinstance(node.op, ast.Mod):
        yield node, a, f"{no_right}You take {x} itself; expected its remainder by {y}."
        yield node, f"({a} // {b})", f"You take the quotient of {x} by {y}; expected %."
    if isinstance(node.op, ast.Mult):
        yield from _factors(solution, node)
    if isinstance(node.op, ast.Pow):
        yield node, a, f"{no_right}{_upper(x)} is not raised to the power {y}."


def _other_scale(solution: _Solution, node: ast.BinOp, a: str, x: str) -> Iterator[Place]:
    """A divisor that is squared, or whose root is forgotten or too much."""
    right = node.right
    if isinstance(right, ast.Name):
        b, y = solution.part(right), solution.words(right)
        yield node, f"({a} / {b} ** 2)", f"{_upper(x)} is divided by the square of {y}."
        yield node, f"({a} / {b} ** 0.5)", f"{_upper(x)} is divided by the square root of {y}."
    if isinstance(right, ast.Call) and _called(right) == "sqrt" and (of := _of_what(right)):
        message = f"{_upper(x)} is divided by {solution.words(of)}; divide by its square root."
        yield node, f"({a} / {solution.part(of)})", message


def _factors(solution: _Solution, node: ast.BinOp) -> Iterator[Place]:
    for kept, lost in ((node.left, node.right), (node.right, node.left)):
        part, x, y = solution.part(kept), solution.words(kept), solution.words(lost)
        if (number := _number(lost)) is not None:
            if 2 <= number <= 4:
                yield node, part, f"{_upper(x)} counts once; expected {number} times."
        elif _number(kept) is None:
            no_effect = solution.without(node, kept)
            yield node, part, f"{no_effect}{_upper(x)} is not multiplied by {y}."
            if isinstance(lost, ast.Name):
                yield node, f"({part} / {lost.id})", f"{_upper(x)} is divided by {y}; multiply."


def _sums(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
        return
    left, right, plus = node.left, node.right, isinstance(node.op, ast.Add)
    a, b = solution.part(left), solution.part(right)
    x, y = solution.words(left), solution.words(right)
    if (one := _number(right)) is not None:
        what = f"{x} {'+' if plus else '−'} {one}"
        more, less = ("few", "many") if plus else ("many", "few")
        yield node, a, f"{one} too {more}: you take {x}; expected {what}."
        yield node, f"({a} {'+' if plus else '-'} {one + 1})", f"One too {less}: expected {what}."
    elif plus and _number(left) is None:
        yield node, a, f"{solution.without(node, left)}You left out {y}."
        yield node, b, f"{solution.without(node, right)}You left out {x}."
        if not solution.counts:
            yield node, f"({a} - {b})", f"{_upper(y)} is subtracted; it is added."
    elif not plus:
        yield node, a, f"{solution.without(node, left)}{_upper(y)} is not subtracted."
        if not solution.counts:
            yield node, f"({a} + {b})", f"{_upper(y)} is added; it is subtracted."
            yield node, f"({b} - {a})", f"The wrong way round: expected {x} minus {y}."


def _conditions(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sign, left, right = OPERATORS[type(node.ops[0])], node.left, node.comparators[0]
        a, b = solution.part(left), solution.part(right)
        whole = f"{solution.words(left)} {sign} {solution.words(right)}"
        if sign in OTHER_BOUND:
            other = OTHER_BOUND[sign]
            how = "does not count" if "=" in sign else "counts"
            yield (
                node,
                f"({a} {other} {b})",
                f"Equality {how} in your comparison; expected {whole}.",
            )
        yield node, f"({a} {OPPOSITE[sign]} {b})", f"The comparison is negated; expected {whole}."
        if sign in OTHER_BOUND:
            yield (
                node,
                f"({b} {sign} {a})",
                f"The comparison is the other way round; expected {whole}.",
            )
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not)):
        about = solution.words(node.operand)
        yield node, solution.part(node.operand), f"True and False of {about} are exchanged."
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        yield from _joined(solution, node, [node.left, node.right], "&", "|")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _joined(solution, node, [node.left, node.right], "|", "&")
    if isinstance(node, ast.BoolOp):
        signs = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        yield from _joined(solution, node, node.values, *signs)
    for part in getattr(node, "ifs", ()):
        lost = solution.without(part, ast.Constant(True))
        yield part, "True", f"{lost}The condition {solution.words(part)} is missing."
        yield (
            part,
            f"(not {solution.part(part)})",
            f"The condition {solution.words(part)} is negated.",
        )


def _joined(
    solution: _Solution, node: ast.expr, values: list[ast.expr], sign: str, other: str
) -> Iterator[Place]:
    for n, value in enumerate(values):
        kept = [*values[:n], *values[n + 1 :]]
        lost = solution.without(node, ast.Tuple(kept))
        rest = f" {sign} ".join(solution.part(v) for v in kept)
        yield node, f"({rest})", f"{lost}The condition {solution.words(value)} is missing."
    new = f" {other} ".join(solution.part(v) for v in values)
    both = "One condition is enough in your answer; both must hold."
    one = "Both conditions must hold in your answer; one is enough."
    yield node, f"({new})", both if sign in ("&", "and") else one


def _choices(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    if isinstance(node, ast.IfExp):
        body, orelse = solution.part(node.body), solution.part(node.orelse)
        test, condition = solution.part(node.test), solution.words(node.test)
        for kept in (x for x in (node.body, node.orelse) if not isinstance(x, ast.List)):
            always = f"You always take {solution.words(kept)}, whether {condition} or not."
            yield node, solution.part(kept), solution.without(node, kept) + always
        new = f"({orelse} if {test} else {body})"
        yield node, new, f"The two cases of {condition} are exchanged."
    if isinstance(node, ast.Call) and _called(node) == "where" and len(node.args) == 3:
        where, a, b = node.args
        condition = solution.words(where)
        for kept in (a, b):
            new = f"({solution.part(kept)} + torch.zeros_like({solution.part(a)}))"
            always = f"You take {solution.words(kept)} everywhere, whether {condition} or not."
            yield node, new, solution.without(node, kept) + always
        yield where, f"~({solution.part(where)})", f"The two cases of {condition} are exchanged."
    if isinstance(node, ast.If):
        condition = solution.words(node.test)
        yield node.test, "False", f"The case {condition} is not handled."
        new = f"not {solution.part(node.test)}"
        yield node.test, new, f"The two cases of {condition} are exchanged."


def _places(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    """Slices, steps of a range, numbers of positions."""
    if isinstance(node, ast.Slice):
        for bound, name in ((node.lower, "begins"), (node.upper, "ends")):
            if bound is not None and _number(bound) is None:
                for shift, what in (("+ 1", "late"), ("- 1", "early")):
                    message = f"{_upper(solution.words(bound))}: your piece {name} one too {what}."
                    yield bound, f"{solution.part(bound)} {shift}", message
    if isinstance(node, ast.Call) and _called(node) in ("range", "arange") and not solution.counts:
        last = node.args[:2][-1]
        end, part = solution.words(last), solution.part(last)
        yield last, f"{part} + 1", f"Your count goes one too far: stop before {end}."
        yield last, f"{part} - 1", f"Your count ends too early: only {end} is left out."
        if len(node.args) == 1:
            yield last, f"1, {part} + 1", "You count from 1; expected from 0."


def _steps(solution: _Solution, node: ast.AST) -> Iterator[Place]:
    """Statements that write into something, left out."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target, what = ast.unparse(node.targets[0]), "written into"
    elif isinstance(node, ast.AugAssign):
        target, what = ast.unparse(node.target), "added to"
    else:
        return
    lost = solution.without(node, ast.Constant(0))
    yield node, "pass", f"{lost}Nothing is {what} `{target}`."


GENERATORS = (
    _axes, _other_function, _call_left_out, _products, _sums, _conditions, _choices, _places,
    _steps,
)  # fmt: skip
