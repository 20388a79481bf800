"""Exercise 16.3: who sees whom in a local layer. B texts, T tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def local_mask(mask: Tensor, window: int) -> Tensor:
    """Which key a query sees: at most window // 2 away, and a real token. (B, T) -> (B, T, T)."""
    position = torch.arange(mask.shape[1])
    distance = (position[:, None] - position).abs()
    near = distance <= window // 2
    real = mask[:, None, :] == 1
    return near & real


# ---------------------------------------------------------------- cases


def case(draw: Draw, window: int, *texts: str) -> Case:
    """Texts as signs: 1 a real token, 0 padding."""
    texts = tuple(draw.python.sample(texts, len(texts)))
    return torch.tensor([[int(sign) for sign in text] for text in texts]), window


def by_hand(draw: Draw) -> list[Case]:
    return [case(draw, 2, "1110"), case(draw, 4, "111110"), case(draw, 2, "11110")]


NEAR, REAL, RETURN = "distance <= window // 2", "mask[:, None, :] == 1", "near & real"
DISTANCE = "(position[:, None] - position).abs()"

WINDOW = Exercise(
    **written("16.3"),
    solution=local_mask,
    returns=Numbers("mask", shape="B T T", kind="bool"),
    see="course_lib.kernels.sliding_window.window_mask; sliding_window_attention never makes all "
    "T² of it",
    when_raised=(
        (r"must match the size|size of tensor|broadcast", "The window's part is (T, T), the "
         "padding's (B, T). mask[:, None, :] is (B, 1, T): it says for each *key* whether it is a "
         "token."),
    ),
    stages=(
        Stage("one text, on paper", by_hand),
        Stage("nothing but tokens", each(case, (2, "11111"), (4, "1111111"), (6, "11111111"))),
        Stage("a padded batch", each(case, (4, "1111111", "1111000", "1111100"),
                                     (2, "111100", "110000", "111111"))),
        Stage("padding before and between", each(case, (4, "0011111", "1101101"),
                                                 (2, "010111", "000111"))),
        Stage("odd windows, 1, and wider than the text",
              each(case, (5, "1111110", "1111111"), (1, "11110", "11100"), (3, "011111", "111110"),
                   (100, "11110", "11111"))),
    ),
    mistakes=(
        Edit(NEAR, "distance <= window", "You see `window` tokens on *either* side. A window is "
             "both sides together: window // 2 each."),
        Edit(NEAR, "distance < window // 2", "The outermost tokens are missing: a token at a "
             "distance of exactly window // 2 is still visible."),
        Edit(NEAR, "distance <= (window + 1) // 2", "You round window / 2 up. An odd window's half "
             "is rounded down: 5 // 2 = 2."),
        Edit(NEAR, "distance <= (window - 1) // 2", "Your window has at most `window` tokens "
             "with the token itself. ModernBERT's even windows have one more: window // 2 on "
             "either side of it."),
        Edit(NEAR, "(position - position[:, None] <= window // 2 - 1) & (position - position[:, "
             "None] >= -(window // 2))", "Your window has one token fewer ahead than behind. It "
             "reaches as far ahead as it does back."),
        Edit(NEAR, "(distance <= window // 2) & (distance > 0)", "No token sees itself in your "
             "mask. It does, at distance 0."),
        Edit(NEAR, "(distance <= window // 2) & (position <= position[:, None])", "Your tokens "
             "only look back, as in a decoder. An encoder looks both ways."),
        Edit(NEAR, "(distance <= window // 2) & (position >= position[:, None])", "Your tokens "
             "look ahead only. The window goes both ways."),
        Edit(NEAR, "position // window == (position // window)[:, None]", "You cut the text into "
             "separate blocks of `window` tokens. The window *slides*: each token has its own, "
             "with itself in the middle."),
        Edit(NEAR, "(distance <= window // 2) | (position == 0) | (position[:, None] == 0)", "The "
             "first token sees all and is visible to all, as in Longformer. In ModernBERT's local "
             "layers it has a window like any other."),
        Edit(NEAR, "distance > window // 2", "Near and far are exchanged: True means *visible*."),
        Edit(REAL, "(position < mask.sum(dim=1, keepdim=True))[:, None, :]", "You count the tokens "
             "of a text and assume that they come first. Padding may also be before or between "
             "them: `mask` says where."),
        Edit(REAL, "mask[:, None, :] == 0", "Tokens and padding are exchanged: 1 in `mask` "
             "is a token."),
        Edit(RETURN, "near | real", "You combine the two with *or*: a visible key is near *and* a "
             "real token."),
        Edit(RETURN, "near.expand(len(mask), -1, -1)", "Padding is visible in your mask. Keys "
             "where `mask` is 0 must be hidden: see the second condition."),
        Edit(RETURN, "real.expand(-1, mask.shape[1], -1)", "Your mask has no window, only the "
             "padding: that is a global layer's mask."),
        Edit(RETURN, "near & (mask[:, :, None] == 1)", "You hide the *queries* that are padding. "
             "Hide the keys, the last axis."),
        Edit(RETURN, "near & real & (mask[:, :, None] == 1)", "You also empty the rows of padding "
             "queries. Treat them like any other row: a row without a single key makes the "
             "softmax nan."),
        Edit(DISTANCE, "(mask.cumsum(1)[:, :, None] - mask.cumsum(1)[:, None]).abs()", "You count "
             "distances in real tokens. Padding between two tokens counts, too: positions are "
             "those in the row."),
        Edit(DISTANCE, "position[:, None] - position", "Your distance has a sign, so everything "
             "ahead counts as near. Take its absolute value."),
        Edit(DISTANCE, "position - position[:, None]", "Your distance has a sign, so everything "
             "behind counts as near. Take its absolute value."),
        Edit(RETURN, "(near & real).any(dim=0)", "You have one mask for the whole batch. Each text "
             "has its own padding."),
    ),
)  # fmt: skip
