"""Exercise 07.5: what one training step computes, the generator included.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isclose
from typing import Any, NamedTuple

from torch import Tensor

from course_lib.config import BertConfig, encoder_flops, published
from course_lib.family.electra import GENERATOR_SIZE, ElectraConfig
from course_lib.kernels.masking import count_to_predict
from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
)

Pair = tuple[float, float]  # operations of one training step: BERT's, ELECTRA's


@dataclass(frozen=True)
class Blocks:
    """encoder_flops of L blocks for T tokens, as a function of the width."""

    T: int
    L: int

    def __call__(self, width: int) -> int:
        config = BertConfig(
            hidden_size=width, num_heads=1, intermediate_size=4 * width, num_layers=self.L
        )
        return encoder_flops(config, self.T)


class Sizes(NamedTuple):
    """What the answer is given, in this order."""

    blocks: Callable[[int], int]
    T: int
    H: int
    V: int
    k: int
    g: int


def training_step(
    blocks: Callable[[int], int], T: int, H: int, V: int, k: int, g: int
) -> tuple[int, int]:
    """(BERT's, ELECTRA's) operations in one training step on one text; a multiply-add is two."""
    bert = blocks(H) + 2 * k * (H * H + H * V)  # its vocabulary head, where it is asked
    generator = 2 * T * H * g + blocks(g) + 2 * k * (g * H + H * V)
    discriminator = blocks(H) + 2 * T * (H * H + H)  # its head, at every token
    return 3 * bert, 3 * (generator + discriminator)  # backward costs twice forward


# ---------------------------------------------------------------- known wrong answers

# What a forgotten or surplus part does to the *forward* counts (BERT's, ELECTRA's).
SLIPS: dict[str, tuple[str, Callable[[Sizes], Pair]]] = {
    "generator forgotten": (
        "the generator is missing. It is thrown away after training, but in every step it reads "
        "the text and learns",
        lambda s: (0, -_generator(s)),
    ),
    "generator by its width": (
        "the generator's blocks were counted as g/H of the discriminator's. Their matrices shrink "
        "in both directions: most of the cost falls with the square, blocks(g)",
        lambda s: (0, s.blocks(s.H) * s.g / s.H - s.blocks(s.g)),
    ),
    "generator as a square": (
        "the generator's blocks were counted as (g/H)² of the discriminator's. That is nearly "
        "right; attention's products fall with g/H only, so take blocks(g)",
        lambda s: (0, s.blocks(s.H) * (s.g / s.H) ** 2 - s.blocks(s.g)),
    ),
    "generator as wide": (
        "the generator's blocks were counted H wide; they are g wide",
        lambda s: (0, s.blocks(s.H) - s.blocks(s.g)),
    ),
    "generator without a head": (
        "the generator's vocabulary head is missing; its loss is that of BERT",
        lambda s: (0, -2 * s.k * (s.g * s.H + s.H * s.V)),
    ),
    "generator's head g wide": (
        "the generator's head was counted with a table g wide, g to g and g to V. It writes "
        "through the shared table, which is H wide: g to H, and H to V",
        lambda s: (0, 2 * s.k * (s.g * s.g + s.g * s.V - s.g * s.H - s.H * s.V)),
    ),
    "generator's head H wide": (
        "the first layer of the generator's head was counted H to H; it begins with g",
        lambda s: (0, 2 * s.k * (s.H - s.g) * s.H),
    ),
    "no projection": (
        "the layer that leads the shared embeddings from H to g, at every token, is missing",
        lambda s: (0, -2 * s.T * s.H * s.g),
    ),
    "vocabulary head everywhere": (
        "the vocabulary heads were counted at all T positions. Words are asked at k of them only",
        lambda s: (
            2 * (s.T - s.k) * (s.H * s.H + s.H * s.V),
            2 * (s.T - s.k) * (s.g * s.H + s.H * s.V),
        ),
    ),
    "BERT's head everywhere": (
        "BERT's vocabulary head was counted at all T positions. Words are asked at k of them only",
        lambda s: (2 * (s.T - s.k) * (s.H * s.H + s.H * s.V), 0),
    ),
    "BERT without a head": (
        "BERT's vocabulary head is missing",
        lambda s: (-2 * s.k * (s.H * s.H + s.H * s.V), 0),
    ),
    "heads without their first layer": (
        "the first layer of the vocabulary heads (to width H) is missing",
        lambda s: (-2 * s.k * s.H * s.H, -2 * s.k * s.g * s.H),
    ),
    "discriminator asked at k": (
        "the discriminator's head was counted at the k masked positions; it judges all T tokens",
        lambda s: (0, -2 * (s.T - s.k) * (s.H * s.H + s.H)),
    ),
    "discriminator without a head": (
        "the discriminator's head is missing: H to H, then H to 1, at every token",
        lambda s: (0, -2 * s.T * (s.H * s.H + s.H)),
    ),
    "discriminator names words": (
        "the discriminator was given a vocabulary head. It gives one score a token: H to H, H to 1",
        lambda s: (0, 2 * s.k * (s.H * s.H + s.H * s.V) - 2 * s.T * (s.H * s.H + s.H)),
    ),
    "generator forward only": (
        "the generator was counted forward only. No gradient reaches it from the discriminator, "
        "but it has a loss of its own, and a backward pass for that",
        lambda s: (0, -2 * _generator(s) / 3),
    ),
    "heads: multiply-add is one": (
        "in the heads a multiply-add was counted as one operation; it counts as two, as in blocks",
        lambda s: (
            -s.k * (s.H * s.H + s.H * s.V),
            -s.k * (s.g * s.H + s.H * s.V) - s.T * (s.H * s.H + s.H),
        ),
    ),
}  # fmt: skip

# What stands for the whole step instead of three forward passes.
UNITS: dict[str, tuple[str, float]] = {
    "forward only": (
        "only the forward pass was counted. A training step goes back as well, at twice the cost",
        1,
    ),
    "backward counted once": (
        "the backward pass was counted like the forward one. It costs twice as much: gradients for "
        "the weights and for the inputs",
        2,
    ),
    "backward counted three times": (
        "the backward pass was counted three times. It costs twice the forward pass: three in all",
        4,
    ),
}


def _generator(s: Sizes) -> int:
    return 2 * s.T * s.H * s.g + s.blocks(s.g) + 2 * s.k * (s.g * s.H + s.H * s.V)


def _suspects() -> list[Suspect]:
    """The plain ones first, then every slip with another unit, then every two together."""
    alone = [(key,) for key in SLIPS]
    return [
        *(_suspect(keys) for keys in alone),
        *(_suspect((), unit) for unit in UNITS),
        Suspect("the other way round", OTHER_ORDER, lambda *sizes: training_step(*sizes)[::-1]),
        *(_suspect(keys, unit) for unit in UNITS for keys in alone),
        *(_suspect(keys) for keys in combinations(SLIPS, 2)),
    ]


OTHER_ORDER = "The two numbers are right, in the other order: first BERT's, then ELECTRA's."


def _suspect(keys: tuple[str, ...], unit: str = "") -> Suspect:
    words, passes = UNITS.get(unit, ("", 3.0))
    said = "; and ".join([SLIPS[key][0] for key in keys] + [words] * bool(unit))
    slips = [SLIPS[key][1] for key in keys]

    def compute(*given: Any) -> Pair:
        sizes, right = Sizes(*given), training_step(*given)
        off = [slip(sizes) for slip in slips]
        return tuple(  # type: ignore[return-value]
            passes * (right[i] / 3 + sum(pair[i] for pair in off)) for i in (0, 1)
        )

    names = " + ".join([*keys, *([unit] if unit else [])])
    return Suspect(names, f"Compared with the right count, {said}.", compute)


# ---------------------------------------------------------------- stages


def _drawn(draw: Draw, wide: bool = False) -> Sizes:
    """wide: the generator is as wide as the discriminator."""
    T = draw.integer(20, 60)
    g = draw.integer(3, 9)
    H = g if wide else g * draw.integer(2, 5)
    k = draw.integer(2, T // 3)
    return Sizes(Blocks(T, draw.integer(2, 6)), T, H, draw.integer(100, 900), k, g)


def published_step(size: str, T: int, rate: float) -> Sizes:
    """The sizes of a published ELECTRA, on texts of T tokens of which `rate` are asked."""
    c = published("electra", size, ElectraConfig)
    width = round(c.hidden_size * GENERATOR_SIZE[size])
    blocks = Blocks(T, c.num_layers)
    return Sizes(blocks, T, c.hidden_size, c.vocab_size, count_to_predict(T, rate), width)


def _ask_step(cases: Callable[[Draw], Sequence[Sizes]], part: int) -> Callable[..., None]:
    """part: 0 compares BERT's count alone, 1 both."""

    def ask(answer: Answer, draw: Draw) -> None:
        pools = [[_drawn(draw) for _ in range(4)], cases(draw)]
        for sizes in cases(draw):
            _expect_step(answer, sizes, pools, part)

    return ask


def _expect_step(answer: Answer, sizes: Sizes, pools: Sequence[Sequence[Sizes]], part: int) -> None:
    given, right = _read(call(answer, *sizes)), training_step(*sizes)
    if _agree(given[: part + 1], right[: part + 1]):
        return
    found = name_suspect(answer, sizes, pools, _suspects(), _same)
    blocks, _, H, _, _, g = sizes
    named = ", ".join(
        f"{name}={value}" for name, value in sizes._asdict().items() if name != "blocks"
    )
    raise told(
        found,
        f"For {named}, blocks(H)={blocks(H):,} and blocks(g)={blocks(g):,} you have "
        f"{given[0]:,.0f} for BERT and {given[1]:,.0f} for ELECTRA; it is {right[0]:,} and "
        f"{right[1]:,}.",
    )


def _read(x: Any) -> Pair:
    if isinstance(x, Tensor) and x.numel() == 2:
        x = x.flatten().tolist()
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r:.60} ({type(x).__name__}); expected two numbers of "
            "operations, BERT's and ELECTRA's.",
        )
    return one_number(x[0], "BERT's operations"), one_number(x[1], "ELECTRA's operations")


def _agree(mine: Sequence[float], theirs: Sequence[float]) -> bool:
    return all(isclose(a, b, rel_tol=1e-9) for a, b in zip(mine, theirs, strict=True))


def _same(mine: Any, theirs: Pair, _case: Any) -> bool:
    return _agree(_read(mine), theirs)


STEPS = Exercise(
    id="07.5",
    title="What a step costs",
    purpose="two networks instead of one: by how much is a step dearer?",
    difficulty=3,
    minutes=15,
    signature="my_step(blocks, T, H, V, k, g)",
    statement=(
        "Count the operations of *one training step on one text*, for BERT and for an ELECTRA "
        "whose discriminator has BERT's size. Return two whole numbers, BERT's and ELECTRA's. A "
        "multiply-add is two operations; the backward pass costs twice the forward pass.  \n"
        "`blocks(width)` is what all blocks compute forward for the T tokens, at that width (it is "
        "the course's `encoder_flops`). A *vocabulary head* leads from its network's width to H, "
        "then to V words, at the k masked positions only. BERT has one at width H. ELECTRA has the "
        "generator: one layer H to g at every token, since both share tables of width H (count it "
        "also where g = H, though none is needed there), blocks of width g and a vocabulary head; "
        "and the discriminator: blocks of width H, and at every token a layer H to H and one H to "
        "1. Leave out biases, norms, and drawing the words."
    ),
    hints=(
        "A layer from m to n at p positions has p·m·n multiply-adds, so 2·p·m·n operations.",
        "BERT forward: blocks(H) + 2·k·(H·H + H·V). A step is three times that.",
        "ELECTRA forward is a sum of five: projection, blocks(g), the generator's head; blocks(H), "
        "the discriminator's head.",
        "With T=2, H=4, V=10, k=1, g=2, blocks(4)=500 and blocks(2)=150: BERT 3 · 612 = 1836, "
        "ELECTRA 3 · (32 + 150 + 96 + 500 + 80) = 2574.",
    ),
    solution=training_step,
    see=("course_lib.train.flops.step_flops counts the operations of a model's step while it runs"),
    stages=(
        Check("BERT's step", _ask_step(lambda draw: [_drawn(draw), _drawn(draw)], 0)),
        Check(
            "a generator as wide as the discriminator",
            _ask_step(lambda draw: [_drawn(draw, wide=True) for _ in range(2)], 1),
        ),
        Check("a smaller generator", _ask_step(lambda draw: [_drawn(draw) for _ in range(3)], 1)),
        Check(
            "ELECTRA-base and -large, 512 tokens",
            _ask_step(
                lambda _: [published_step("base", 512, 0.15), published_step("large", 512, 0.25)], 1
            ),
        ),
    ),
)
