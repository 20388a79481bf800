"""Exercise 16.1: queries and keys turned by position. B texts, T tokens, A heads, D head size."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def turned(x: Tensor, base: float) -> Tensor:
    """Each pair of features (i, i + D/2) turned by position · base^(−2i/D): (B, T, A, D), same."""
    tokens, size = x.shape[1], x.shape[3]
    step = 1 / base ** (torch.arange(0, size, 2) / size)  # (D/2,)
    angle = torch.arange(tokens)[:, None, None] * step  # (T, 1, D/2)
    cos, sin = angle.cos(), angle.sin()
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def rotated(query: Tensor, key: Tensor, base: float) -> tuple[Tensor, Tensor]:
    """Query and key turned by their positions 0 to T − 1: (B, T, A, D) both, in and out."""
    return turned(query, base), turned(key, base)


# ---------------------------------------------------------------- cases


def case(draw: Draw, shape: tuple[int, ...], base: float = 10_000.0) -> Case:
    return draw.normal(*shape), draw.normal(*shape), base


def by_hand(draw: Draw) -> list[Case]:
    """(1, 0) at three positions; beside it (0, 1)."""
    one, other = (torch.tensor(x, dtype=torch.float64) for x in ([1, 0], [0, 1]))
    alone = tuple(x.expand(1, 3, 1, 2).clone() for x in (one, other))
    return [(*alone, 10_000.0), case(draw, (1, 4, 1, 2))]


STEP, ANGLE = "1 / base ** (torch.arange(0, size, 2) / size)", "torch.arange(tokens)[:, None, None]"
HALVES = "x.chunk(2, dim=-1)"
JOIN = "torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)"
RETURN = "turned(query, base), turned(key, base)"

ROPE = Exercise(
    **written("16.1"),
    solution=rotated,
    helpers=(turned,),
    returns=(Numbers("query", shape="B T A D", tol=1e-5),
             Numbers("key", shape="B T A D", tol=1e-5)),
    see="course_lib.kernels.rotary.rotary_reference does it with complex numbers, rotary in place",
    when_raised=(
        (r"must match the size|size of tensor|broadcast", "The angles are (T, D/2). They are "
         "combined with one *half* of the features, (B, T, A, D/2), and first need an axis for the "
         "heads: angle[:, None, :] is (T, 1, D/2)."),
    ),
    stages=(
        Stage("two features, on paper", by_hand),
        Stage("several pairs, one head", each(case, ((1, 4, 1, 4),), ((1, 5, 1, 8),))),
        Stage("several texts and heads", each(case, ((2, 4, 3, 4),), ((3, 5, 2, 6),))),
        Stage("other bases", each(case, ((2, 6, 2, 8), 160_000.0), ((1, 4, 3, 4), 100.0))),
    ),
    mistakes=(
        Edit(HALVES, "(x[..., ::2], x[..., 1::2])", "You pair neighbours, features 0 and 1, 2 and "
             "3, as the paper does. ModernBERT's weights were trained with i and i + D/2.",
             more=((JOIN, "torch.stack([first * cos - second * sin, first * sin + second * cos], "
                    "dim=-1).flatten(-2)"),)),
        Edit(HALVES, "(x[..., ::2], x[..., 1::2])", "You take neighbours as pairs but put them "
             "back as halves. Take features i and i + D/2, and put them back where they were."),
        Edit(JOIN, "x * cos.repeat_interleave(2, -1) + torch.cat([-second, first], -1) * "
             "sin.repeat_interleave(2, -1)", "Your pairs are i and i + D/2, but your angles are "
             "arranged for neighbours (θ₀, θ₀, θ₁, θ₁ …). Both halves need θ₀, θ₁ …"),
        Edit(JOIN, "torch.cat([first * cos + second * sin, second * cos - first * sin], dim=-1)",
             "You rotate the wrong way, by −angle. The products of queries and keys "
             "would depend on the distance with its sign reversed. Released weights and this "
             "check expect +angle."),
        Edit(JOIN, "torch.cat([first * cos + second * sin, first * sin + second * cos], dim=-1)",
             "The minus is missing: first · cos − second · sin. Without it, this is not a rotation "
             "and vectors change their length."),
        Edit(JOIN, "torch.cat([first * cos - second * sin, (first * cos - second * sin) * sin + "
             "second * cos], dim=-1)", "You compute b from the *new* a. Both come from the old "
             "values: keep the old a until b is computed."),
        Edit(JOIN, "torch.cat([first * sin - second * cos, first * cos + second * sin], dim=-1)",
             "Sine and cosine are exchanged. At position 0 nothing may change: cos 0 = 1 keeps "
             "the vector."),
        Edit(JOIN, "torch.cat([first * cos, second * cos], dim=-1)", "You use only the cosines. "
             "Each feature also takes a part of the other one in its pair, by the sine."),
        Edit(JOIN, "torch.cat([first * sin + second * cos, first * cos - second * sin], dim=-1)",
             "You put the two halves back in the wrong order."),
        Edit(JOIN, "torch.cat([first * cos - second * sin, second], dim=-1)", "The second half of "
             "the features is unchanged. A rotation changes both coordinates of a point."),
        Edit(STEP, "base ** (torch.arange(0, size, 2) / size)", "The exponent lost its sign: you "
             "have base^(+2i/D). Pair 0 rotates fastest, later pairs more and more slowly."),
        Edit(STEP, "1 / base ** (torch.arange(0, size // 2) / size)", "Your exponent is −i/D. It "
             "is −2i/D: over the D/2 pairs it goes from 0 almost to −1."),
        Edit(STEP, "1 / base ** (2 * torch.arange(0, size, 2) / size)", "Your exponent is doubled "
             "twice: arange(0, D, 2) is 2i already."),
        Edit(STEP, "torch.ones(size // 2)", "All your pairs rotate equally fast. Pair i rotates by "
             "base^(−2i/D) per position."),
        Edit(STEP, "1 / 10_000 ** (torch.arange(0, size, 2) / size)", "Your base is always 10,000. "
             "That is the local layers'; use `base`."),
        Edit(ANGLE, "torch.arange(1, tokens + 1)[:, None, None]", "Your positions begin at 1. The "
             "first token is at position 0 and is not rotated."),
        Edit(ANGLE, "torch.arange(tokens).flip(0)[:, None, None]", "Your positions run backwards."),
        Edit(ANGLE, "torch.arange(x.shape[2])[None, :, None]", "You rotate by the index of the "
             "*head*. The axes are (B, T, A, D): positions are the second one."),
        Edit(ANGLE, "torch.arange(len(x))[:, None, None, None]", "You rotate by the index of the "
             "*text*. The axes are (B, T, A, D): positions are the second one."),
        Edit(ANGLE, "2 * torch.pi * torch.arange(tokens)[:, None, None]", "Your angles are 2π "
             "times as large. One position is one radian for pair 0, not one whole turn."),
        Edit(ANGLE, "torch.pi / 180 * torch.arange(tokens)[:, None, None]", "Your angles are in "
             "degrees. Expected radians."),
        Edit(RETURN, "turned(query, base), key", "You do not rotate the keys. Then a product would "
             "depend on the query's own position, not on the distance: rotate both."),
        Edit(RETURN, "query, turned(key, base)", "You do not rotate the queries. Then a product "
             "would depend on the key's own position, not on the distance: rotate both."),
        Edit(RETURN, "query, key", "Nothing is rotated."),
        Edit(RETURN, "turned(query, base), turned(key.flip(1), base).flip(1)", "The keys' "
             "positions run backwards. Queries and keys are rotated alike."),
    ),
)  # fmt: skip
