"""Exercise 05.6: what the layers compute, whatever they share.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple

from torch import Tensor

from course_lib.config import BertConfig, published
from course_lib.family.albert import SHARING
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    find_suspect,
)


class Sizes(NamedTuple):
    """What the answer is given, in this order."""

    T: int
    H: int
    F: int
    L: int
    sharing: str


def stack_flops(T: int, H: int, F: int, L: int, sharing: str) -> int:
    """Operations of L layers for one text of T tokens; a multiply-add counts as two."""
    projections = 4 * 2 * T * H * H  # query, key, value, output
    products = 2 * 2 * T * T * H  # query with key, weights with value: all heads together
    feed_forward = 2 * 2 * T * H * F
    return L * (projections + products + feed_forward)  # every layer runs, shared or not


def _as_stored(s: Sizes) -> int:
    """Each block counted as often as it is stored."""
    attending = 1 if s.sharing in ("all", "attention") else s.L
    feeding = 1 if s.sharing in ("all", "feed_forward") else s.L
    attention = 8 * s.T * s.H * s.H + 4 * s.T * s.T * s.H
    return attending * attention + feeding * 4 * s.T * s.H * s.F


# What a forgotten or surplus part does to the count, as a function of the sizes.
SLIPS: dict[str, tuple[str, Callable[[Sizes], int]]] = {
    "shared layers counted once": (
        "layers that share weights were counted once. The weights are stored once, but every layer "
        "multiplies with them again: sharing saves no arithmetic",
        lambda s: _as_stored(s) - stack_flops(*s),
    ),
    "one layer where all is shared": (
        'with "all", one layer was counted. The weights are stored once, but every layer '
        "multiplies with them again: sharing saves no arithmetic",
        lambda s: -(s.L - 1) * stack_flops(*s) // s.L if s.sharing == "all" else 0,
    ),
    "one layer": (
        "one layer was counted; there are L",
        lambda s: -(s.L - 1) * stack_flops(*s) // s.L,
    ),
    "no attention products": (
        "the two products inside attention are missing: each query with each key, and the weights "
        "with the values. They grow with T²",
        lambda s: -s.L * 4 * s.T * s.T * s.H,
    ),
    "one attention product": (
        "attention has two products of T² · H: queries with keys, and weights with values. One is "
        "missing",
        lambda s: -s.L * 2 * s.T * s.T * s.H,
    ),
    "attention products without T²": (
        "the two products inside attention grow with T², because each token meets each; T stands "
        "there once",
        lambda s: -s.L * 4 * s.T * (s.T - 1) * s.H,
    ),
    "no output projection": (
        "attention's output projection is missing: the fourth layer H to H",
        lambda s: -s.L * 2 * s.T * s.H * s.H,
    ),
    "no projections": (
        "query, key, value and output projection are missing: four layers H to H",
        lambda s: -s.L * 8 * s.T * s.H * s.H,
    ),
    "one feed-forward layer": (
        "the feed-forward half has two layers, H to F and F to H; one is missing",
        lambda s: -s.L * 2 * s.T * s.H * s.F,
    ),
    "no feed-forward": (
        "the feed-forward half is missing",
        lambda s: -s.L * 4 * s.T * s.H * s.F,
    ),
    "F is 4H": (
        "4H stands where F should",
        lambda s: s.L * 4 * s.T * s.H * (4 * s.H - s.F),
    ),
    "one token": (
        "the linear layers were counted for one token; each of the T tokens passes through them",
        lambda s: -(s.T - 1) * s.L * (8 * s.H * s.H + 4 * s.H * s.F),
    ),
}  # fmt: skip

ONCE = "a multiply-add was counted as one operation; it counts as two, a product and a sum"
BACKWARD = "the backward pass was counted as well (three times the forward one); leave it out"


def _suspects() -> list[Suspect]:
    """Every slip alone, every two together, and each alone with another unit."""
    alone = [(key,) for key in SLIPS]
    return [
        _suspect((), "multiply-add is one", ONCE, lambda n: n // 2),
        _suspect((), "backward pass", BACKWARD, lambda n: 3 * n),
        *(_suspect(keys) for keys in [*alone, *combinations(SLIPS, 2)]),
        *(_suspect(keys, "multiply-add is one", ONCE, lambda n: n // 2) for keys in alone),
    ]


def _suspect(
    keys: tuple[str, ...],
    unit: str = "",
    words: str = "",
    change: Callable[[int], int] = lambda n: n,
) -> Suspect:
    names = [*keys, unit] if unit else list(keys)
    said = "; and ".join([SLIPS[key][0] for key in keys] + [words] * bool(unit))
    slips = [SLIPS[key][1] for key in keys]

    def compute(*sizes: Any) -> int:
        return change(stack_flops(*sizes) + sum(slip(Sizes(*sizes)) for slip in slips))

    return Suspect(" + ".join(names), f"Compared with the right count, {said}.", compute)


def _drawn(draw: Draw, layers: int, sharing: str) -> Sizes:
    return Sizes(draw.integer(3, 40), draw.integer(5, 50), draw.integer(51, 99), layers, sharing)


def _ask_flops(layers: Sequence[int], kinds: Sequence[str]) -> Callable[[Answer, Draw], None]:
    """A stage on drawn sizes; a mistake is named on others with the same kinds of sharing."""

    def ask(answer: Answer, draw: Draw) -> None:
        pairs = [(n, kind) for n in layers for kind in kinds]
        like = [_drawn(draw, *pair) for _ in range(3) for pair in pairs]
        for pair in pairs:
            _expect_flops(answer, _drawn(draw, *pair), like)

    return ask


def _ask_published(answer: Answer, draw: Draw) -> None:
    like = [_drawn(draw, n, kind) for n in (3, 5) for kind in SHARING]
    for family, sharing in (("bert", "none"), ("albert", "all")):
        c: BertConfig = published(family, "base")
        sizes = Sizes(128, c.hidden_size, c.intermediate_size, c.num_layers, sharing)
        _expect_flops(answer, sizes, like)


def _expect_flops(answer: Answer, sizes: Sizes, like: Sequence[Sizes]) -> None:
    given, right = _number(call(answer, *sizes)), stack_flops(*sizes)
    if given == right:
        return

    def same(mine: Any, theirs: Any, _case: Any) -> bool:
        return _number(mine) == theirs

    found = find_suspect(answer, like, _suspects(), same)
    named = ", ".join(f"{name}={value!r}" for name, value in sizes._asdict().items())
    said = f"For {named} you have {given:,.0f}; it is {right:,}."
    raise Mistake(found.key if found else "", f"{found.message}\n{said}" if found else said)


def _number(x: Any) -> float:
    if isinstance(x, Tensor) and x.numel() == 1:
        x = x.item()
    if isinstance(x, bool) or not isinstance(x, Real):  # numpy's numbers are welcome
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r} ({type(x).__name__}); expected one number of "
            "operations.",
        )
    return float(x)


FLOPS = Exercise(
    id="05.6",
    title="What sharing does not save",
    purpose="to settle whether ALBERT is faster, on paper",
    difficulty=3,
    minutes=12,
    signature="stack_flops(T, H, F, L, sharing)",
    statement=(
        "Count the operations of a stack of L layers for one text of T tokens. A multiply-add "
        "counts as two operations. Count the matrix products only: the four projections H to H of "
        "attention, its two products of tokens with tokens (all heads together), and the two "
        "feed-forward layers. No biases, norms or softmax, no backward pass. `sharing` is "
        '`"all"`, `"attention"`, `"feed_forward"` or `"none"`.'
    ),
    hints=(
        "A matrix product (m, k) · (k, n) has m·n·k multiply-adds, so 2·m·n·k operations.",
        "A layer H to H on T tokens: (T, H) · (H, H). Queries with keys: (T, H) · (H, T), all "
        "heads together; weights with values: (T, T) · (T, H).",
        "With T=2, H=3, F=4, L=1: projections 144, products 48, feed-forward 96: 288.",
        "Ask of `sharing`: does a layer compute less because its weights are used elsewhere too?",
    ),
    solution=stack_flops,
    see="course_lib.config.encoder_flops takes a configuration; how layers share does not enter",
    stages=(
        Check("one layer", _ask_flops([1], ["none"])),
        Check("several layers, nothing shared", _ask_flops([2, 5], ["none"])),
        Check("shared layers", _ask_flops([2, 5], ["all", "attention", "feed_forward"])),
        Check("BERT-base and ALBERT-base, 128 tokens", _ask_published),
    ),
)
