"""What the tests of all kernels share: a fast twin beside its readable reference."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch.testing import assert_close

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 2e-2}
every_format = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
MASKS = "none", "all real", "padding", "a row without real tokens"
every_mask = pytest.mark.parametrize("kind", MASKS)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def draw(*shapes, dtype=torch.float64, seed=0):
    """A tensor of each shape that wants a gradient: the same numbers in every format."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [x.to(dtype).requires_grad_() for x in drawn]


def draw_mask(kind, batch, tokens):
    if kind == "none":
        return None
    mask = torch.ones(batch, tokens, dtype=torch.long)
    if kind == "padding":
        mask[0, tokens // 2 + 1 :] = 0
    if kind == "a row without real tokens":
        mask[0] = 0
    return mask


def in_float64(given):
    """The same numbers, computed with exactly."""

    def wide(x):
        copy = x.detach().to(torch.float64, copy=True)
        return copy.requires_grad_(x.requires_grad)

    return [None if x is None else wide(x) for x in given]


def compare(fast, slow, given, bound=None, of_each=False, rows=slice(None)):
    """Outputs and gradients of a fast twin against its reference's; returns the output.

    The reference is computed from the same numbers in float64, so only the twin rounds. Outputs:
    within the bound of their largest, 1 at least. Gradients: within twice the bound of the largest
    of all, or `of_each` within the bound of the tensor's own largest. rows: whose gradients mean
    something."""
    bound = bound or TOLERANCE[given[0].dtype]
    theirs = in_float64(given)
    ours, exact = fast(*given), slow(*theirs)
    if not exact.numel():
        assert ours.shape == exact.shape
        return ours
    assert_close(ours.double(), exact, rtol=0, atol=bound * max(1, exact.abs().max().item()))
    assert ours.requires_grad == exact.requires_grad
    upstream = torch.linspace(-2.5, 1, exact.numel()).to(exact).view_as(exact)
    for output in (ours, exact):
        if output.requires_grad:
            (output.double() * upstream).mean().backward()
    pairs = [(a, b) for a, b in zip(given, theirs, strict=True) if a is not None]
    largest = max([b.grad.abs().max().item() for _, b in pairs if b.grad is not None], default=0)
    for a, b in pairs:
        assert torch.equal(a.double(), b), "what was given must not be changed"
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            allowed = bound * b.grad.abs().max().item() if of_each else 2 * bound * largest
            assert a.grad.dtype == a.dtype
            assert_close(a.grad[rows].double(), b.grad[rows], rtol=0, atol=allowed)
    return ours


class Call(NamedTuple):
    name: str
    given: tuple
    result: Any


def noted(calls, function, name=""):
    """The function, which now writes down how it is called and what it returns."""

    def call(*given, **settings):
        calls.append(Call(name, given, function(*given, **settings)))
        return calls[-1].result

    return call


def watch(monkeypatch, module, *names):
    """A list that fills with the calls of these functions of a module."""
    calls: list[Call] = []
    for name in names:
        monkeypatch.setattr(module, name, noted(calls, getattr(module, name), name))
    return calls
