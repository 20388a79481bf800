"""What an exercise's function returns: declared once; read, compared and complained about here.

An answer may return what is as good as what was asked: a list or an array for a tensor, a tensor of
one number for a number. What cannot be read raises `Wrong`, in words that say what was expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import torch
from torch import Tensor


class Wrong(Exception):
    """The answer is wrong, and this is how. kind: how it was found, for reports and tests."""

    def __init__(self, message: str, kind: str = "unforeseen") -> None:
        super().__init__(message)
        self.message, self.kind = message, kind


@dataclass(frozen=True)
class Out:
    """One thing that is returned. name: as a sentence says it ("probabilities"); tol: how far
    numbers may lie from the right ones, times the larger of 1 and the greatest right one."""

    name: str
    unit: str = ""
    tol: float = 1e-6

    def expected(self, right: Any) -> str:
        """What was expected, in words."""
        raise NotImplementedError

    def read(self, x: Any, right: Any) -> Any:
        """The value in the form that is compared; Wrong where it is of another kind."""
        raise NotImplementedError

    def same(self, x: Any, right: Any) -> bool:
        return alike(x, right, self.tol)

    def difference(self, x: Any, right: Any) -> str:
        """Both values, with as many digits as it takes to see that they differ."""
        actual, expected = digits_apart(x, right)
        return f"you have {actual}; expected {expected}{self._unit}."

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""

    def _unreadable(self, x: Any, right: Any) -> Wrong:
        return Wrong(f"Your {self.name}: {kind_of(x)}; expected {self.expected(right)}.", "form")


@dataclass(frozen=True)
class Numbers(Out):
    """A tensor. shape: its axes in the lecture's letters ("B T H"); kind: "float", "int", "bool".
    grad: a gradient must flow from it, so nothing but a tensor of torch will do."""

    shape: str = ""
    kind: str = "float"
    grad: bool = False

    def expected(self, right: Any) -> str:
        letters = f", that is ({', '.join(self.shape.split())})" if self.shape else ""
        what = {"int": " of whole numbers", "bool": " of True and False"}.get(self.kind, "")
        return f"a tensor{what} of shape {tuple(torch.as_tensor(right).shape)}{letters}"

    def read(self, x: Any, right: Any) -> Tensor:
        right = torch.as_tensor(right)
        tensor = x if isinstance(x, Tensor) else self._converted(x, right)
        if tensor.shape != right.shape:
            raise Wrong(
                f"Your {self.name} has shape {tuple(tensor.shape)}; "
                f"expected {self.expected(right)}.",
                "form",
            )
        self._check_kind(tensor, right)
        if self.grad and not tensor.requires_grad:
            raise without_gradient(self.name)
        return tensor

    def _converted(self, x: Any, right: Tensor) -> Tensor:
        if self.grad or isinstance(x, (str, bytes, Mapping, AbstractSet)) or callable(x):
            raise self._unreadable(x, right)
        try:
            if nested(x):
                parts = [y if isinstance(y, Tensor) else as_tensor(plain(y)) for y in x]
                return torch.stack(parts)
            return as_tensor(plain(x) if isinstance(x, (list, tuple, Fraction, Decimal)) else x)
        except Exception:
            raise self._unreadable(x, right) from None

    def _check_kind(self, tensor: Tensor, right: Tensor) -> None:
        if self.kind != "float" and tensor.dtype.is_floating_point:
            raise Wrong(
                f"Your {self.name} has type {tensor.dtype}; expected {self.expected(right)}.",
                "form",
            )
        if self.kind == "bool" and not set(tensor.unique().tolist()) <= {0, 1}:
            raise self._unreadable(tensor, right)
        if self.kind != "bool" and tensor.dtype is torch.bool:
            raise self._unreadable(tensor, right)

    def difference(self, x: Tensor, right: Tensor) -> str:
        """The row with the largest error, where it is short; else the entry."""
        x, right = x.detach(), torch.as_tensor(right).detach()
        if not right.dim():
            return super().difference(x, right)
        apart = (x.double() - right.double()).abs().nan_to_num(nan=torch.inf)
        where = [int(i) for i in torch.unravel_index(apart.argmax(), apart.shape)]
        if right.shape[-1] <= 8:
            where = where[:-1]
        at = f"at [{', '.join(map(str, where))}] " if where else ""
        actual, expected = digits_apart(x[tuple(where)], right[tuple(where)])
        return f"{at}you have {actual}; expected {expected}{self._unit}."


@dataclass(frozen=True)
class Number(Out):
    """One number. kind: "float" or "int" (a whole number, of a whole-number type).
    grad: it must be a tensor from which a gradient flows."""

    kind: str = "float"
    grad: bool = False

    def expected(self, right: Any) -> str:
        what = "whole number" if self.kind == "int" else "number"
        return f"one {what}{' in' + self._unit if self.unit else ''}" + (
            ", as a tensor that a gradient can flow from" if self.grad else ""
        )

    def read(self, x: Any, right: Any) -> Any:
        if self.grad:
            if not isinstance(x, Tensor) or x.numel() != 1:
                raise self._unreadable(x, right)
            return Numbers(self.name, grad=True).read(x.reshape(()), torch.tensor(0.0))
        value = plain(x)
        while isinstance(value, list) and len(value) == 1 and not isinstance(x, list):
            value = value[0]  # an array of one number
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._unreadable(x, right)
        if self.kind == "float" or isinstance(value, int):
            return value
        if not value.is_integer():
            raise Wrong(
                f"Your {self.name} is {value!r}; expected {self.expected(right)}: use whole "
                "numbers and //.",
                "form",
            )
        return int(value)

    def same(self, x: Any, right: Any) -> bool:
        return bool(plain(x) == plain(right)) if self.kind == "int" else super().same(x, right)

    def difference(self, x: Any, right: Any) -> str:
        message = super().difference(x, right)
        if self.kind != "int" or abs(int(x) - int(right)) < 2:
            return message
        gap = int(x) - int(right)
        return f"{message[:-1]} ({shown(abs(gap))} too {'many' if gap > 0 else 'few'})."


@dataclass(frozen=True)
class Items(Out):
    """A list, compared item by item. of: what its items are ("tokens", "positions"); ordered:
    whether their order counts (a set will do where it does not). groups: its items are lists
    themselves, in which the order does not count."""

    of: str = "items"
    ordered: bool = True
    groups: bool = False

    def expected(self, right: Any) -> str:
        return f"a list{'' if self.ordered else ' (or a set)'} of {self.of}"

    def read(self, x: Any, right: Any) -> list[Any]:
        x = plain(x)
        if isinstance(x, AbstractSet) and not self.ordered:
            x = list(x)
        if isinstance(x, (str, bytes, Mapping, AbstractSet)) or not isinstance(x, Sequence):
            raise self._unreadable(x, right)
        if any(i is ... for i in x):
            raise Wrong(f"Your {self.name} still holds `...`; expected {self.expected(right)}.")
        if wrong := [i for i in x if _type_apart(i, list(right))]:
            raise Wrong(
                f"Your {self.name} holds {kind_of(wrong[0])}; expected {self.expected(right)}.",
                "form",
            )
        try:
            return self.arranged(x)
        except TypeError:
            raise self._unreadable(x, right) from None

    def arranged(self, x: Any) -> list[Any]:
        """As a list; groups in ascending order. TypeError for what is no list."""
        if isinstance(x, (str, bytes, Mapping)) or (self.ordered and isinstance(x, AbstractSet)):
            raise TypeError
        x = list(plain(x))
        return [sorted(plain(group)) for group in x] if self.groups else x

    def same(self, x: Any, right: Any) -> bool:
        x, right = self.arranged(x), self.arranged(right)
        return alike(x, right, self.tol) if self.ordered else _sorted(x) == _sorted(right)

    def difference(self, x: Any, right: Any) -> str:
        if max(len(x), len(list(right))) <= 14 or not self.ordered:
            return super().difference(x, list(right))
        pairs = zip(x, right, strict=False)
        first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(x), len(right)))
        actual, expected = (repr(y[first]) if first < len(y) else "nothing" for y in (x, right))
        return f"from position {first} on you have {actual}; expected {expected}."


@dataclass(frozen=True)
class Table(Out):
    """A dictionary from names to numbers."""

    def expected(self, right: Any) -> str:
        return "a dictionary from names to numbers"

    def read(self, x: Any, right: Any) -> dict[Any, Any]:
        if not isinstance(x, Mapping):
            raise self._unreadable(x, right)
        return {key: plain(value) for key, value in x.items()}

    def difference(self, x: Mapping[Any, Any], right: Mapping[Any, Any]) -> str:
        """The names that are too many or missing; else the first number that differs."""
        surplus, missing = [k for k in x if k not in right], [k for k in right if k not in x]
        if surplus or missing:
            parts = [f"{', '.join(map(repr, surplus))} should not be in it"] if surplus else []
            parts += [f"{', '.join(map(repr, missing))} is missing"] if missing else []
            return f"{'; '.join(parts)}. It is {shown(right)}."
        name = next(k for k in right if not alike(x[k], right[k], self.tol))
        actual, expected = digits_apart(x[name], right[name])
        return f"at {name!r} you have {actual}; expected {expected}{self._unit}."


@dataclass(frozen=True)
class Exact(Out):
    """Anything compared with ==: a text, None, a tuple. what: what is expected, in words."""

    what: str = "a value"

    def expected(self, right: Any) -> str:
        return self.what

    def read(self, x: Any, right: Any) -> Any:
        return plain(x)


def without_gradient(name: str, inputs: Sequence[str] = ()) -> Wrong:
    """What to say of an output from which no gradient flows to the inputs of these names."""
    where = f", and one must reach {', '.join(f'`{x}`' for x in inputs)}" if inputs else ""
    return Wrong(
        f"Your {name} carries no gradient{where}. It is lost in .item(), .tolist(), float(…), "
        ".detach(), torch.no_grad() and torch.tensor(…), and in Python's math or numpy. Stay with "
        "torch's own operations.",
        "gradient",
    )


# ---------------------------------------------------------------- values


def as_tensor(x: Any) -> Tensor:
    tensor = torch.as_tensor(x)
    if not tensor.dtype.is_floating_point:
        return tensor
    return torch.as_tensor(x, dtype=torch.float64)  # a list's numbers are rounded to float32 else


def nested(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(isinstance(part, Tensor) for part in x)


def plain(x: Any) -> Any:
    """Python's own values for tensors, arrays, numpy's numbers, fractions and decimal numbers, also
    inside lists and tuples: the one place where results become what is compared."""
    if isinstance(x, Tensor):
        return x.detach().tolist()
    if hasattr(x, "tolist") and hasattr(x, "dtype"):
        return x.tolist()
    if type(x) in (list, tuple):
        return type(x)(plain(part) for part in x)
    if isinstance(x, Fraction) and x.denominator == 1:
        return x.numerator
    return float(x) if isinstance(x, (Fraction, Decimal)) else x


def alike(a: Any, b: Any, tol: float = 1e-6) -> bool:
    """Whether two values agree: numbers within tol·max(1, max|b|), all else by ==. What is not a
    finite number agrees with nothing but itself."""
    a, b = (x.detach() if isinstance(x, Tensor) else x for x in (a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return set(a) == set(b) and all(alike(a[key], b[key], tol) for key in b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(alike(x, y, tol) for x, y in zip(a, b, strict=True))
    if numeric(a) and numeric(b):
        return _close(a, b, tol)
    try:
        return bool(a == b)
    except Exception:
        return a is b


def numeric(x: Any) -> bool:
    return isinstance(x, (Tensor, Real)) or (hasattr(x, "dtype") and hasattr(x, "tolist"))


def _close(a: Any, b: Any, tol: float) -> bool:
    a, b = (as_tensor(x).detach().double() for x in (a, b))
    if a.shape != b.shape or not bool((torch.isfinite(a) == torch.isfinite(b)).all()):
        return False
    apart = torch.where(a == b, torch.zeros_like(a), (a - b).abs())
    apart = apart.nan_to_num(nan=0.0) if bool((a.isnan() == b.isnan()).all()) else apart
    scale = float(b[torch.isfinite(b)].abs().max()) if bool(torch.isfinite(b).any()) else 0.0
    return not a.numel() or float(apart.max()) <= tol * max(1.0, scale)


def digits_apart(a: Any, b: Any) -> tuple[str, str]:
    """Both as text, with the fewest digits (four at least) that let them differ."""
    for digits in (4, 6, 9, 12, 17):
        texts = shown(a, digits), shown(b, digits)
        if texts[0] != texts[1]:
            break
    return texts


def shown(value: Any, digits: int = 4) -> str:
    """A value for a sentence: numbers rounded, tensors as lists, long things cut."""
    x = plain(value)
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        if isinstance(x, (list, tuple)):
            inside = ", ".join(shown(part, digits) for part in x)
            return short(f"[{inside}]" if isinstance(x, list) else f"({inside})", 400)
        if isinstance(x, Mapping):
            inside = ", ".join(f"{k!r}: {shown(v, digits)}" for k, v in x.items())
            return short("{" + inside + "}", 400)
        return short(repr(x), 200)
    if isinstance(x, int):
        return f"{x:,}" if abs(x) > 9_999 else str(x)
    return f"{float(x):.{digits}g}" if abs(x) >= 1e5 or 0 < abs(x) < 1e-3 else f"{x:.{digits}f}"


def kind_of(x: Any) -> str:
    """A value with its type, for a complaint about it."""
    if isinstance(x, Tensor):
        return f"a tensor of shape {tuple(x.shape)} and type {x.dtype}"
    return f"{short(repr(x))} ({type(x).__name__})"


def text_of(error: BaseException | None) -> str:
    """What an exception says, as text that can be written."""
    try:
        return printable(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as second:  # an answer's own exceptions may fail at anything
        return f"(reading the exception's text raised {type(second).__name__})"


def printable(text: str) -> str:
    """The text, with what cannot be written in UTF-8 as an escape: \\udcff."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def short(text: str, width: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _type_apart(item: Any, right: Sequence[Any]) -> bool:
    """Whether an item is a float or a text where all right ones are whole numbers, or a number
    where all right ones are texts."""
    if right and all(isinstance(i, int) and not isinstance(i, bool) for i in right):
        return not isinstance(item, int) and item is not None
    return bool(right) and all(isinstance(i, str) for i in right) and isinstance(item, Real)


def _sorted(x: Sequence[Any]) -> list[Any]:
    return sorted((tuple(i) if isinstance(i, list) else i for i in x), key=repr)
