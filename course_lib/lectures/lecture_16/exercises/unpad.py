"""Exercise 16.4: a batch without its padding, and back. B texts, T tokens, N real ones, H wide."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers

Layer = Callable[[Tensor, Tensor], Tensor]


def without_padding(x: Tensor, mask: Tensor, layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
    """The real tokens (N, H), where each text begins and ends in the list (B + 1,), and what
    `layer` makes of the list, each token back at its position (B, T, H)."""
    real = mask == 1
    tokens = x[real]
    lengths = mask.sum(dim=1)
    begins = torch.cat([lengths.new_zeros(1), lengths.cumsum(dim=0)])
    back = torch.zeros_like(x)
    back[real] = layer(tokens, begins)
    return tokens, begins, back


# ---------------------------------------------------------------- cases


def mixed(tokens: Tensor, cumulative: Tensor) -> Tensor:
    """Attention in miniature: to each token the mean of its own text is added. (N, H) -> same."""
    result = tokens.clone()
    for begin, end in pairwise(torch.as_tensor(cumulative).tolist()):
        if end > begin:
            result[begin:end] = tokens[begin:end] + tokens[begin:end].mean(dim=0)
    return result


def case(draw: Draw, hidden: int, *texts: str) -> Case:
    """Texts as signs: 1 a real token, 0 padding."""
    texts = tuple(draw.python.sample(texts, len(texts)))
    mask = torch.tensor([[int(sign) for sign in text] for text in texts])
    return draw.normal(*mask.shape, hidden), mask, mixed


def by_hand(draw: Draw) -> list[Case]:
    x = torch.tensor([[[1.0], [2.0], [9.0]], [[3.0], [9.0], [9.0]]], dtype=torch.float64)
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    return [(x, mask, mixed), case(draw, 1, "1110", "1100")]


REAL, TOKENS, LENGTHS = "mask == 1", "x[real]", "mask.sum(dim=1)"
BEGINS = "torch.cat([lengths.new_zeros(1), lengths.cumsum(dim=0)])"
ZEROS, BACK = "torch.zeros_like(x)", "back[real] = layer(tokens, begins)"
RETURN = "return tokens, begins, back"

UNPAD = Exercise(
    **written("16.4"),
    solution=without_padding,
    returns=(Numbers("list of tokens", shape="N H"),
             Numbers("tensor of cumulative lengths", shape="B+1", kind="int"),
             Numbers("padded result", shape="B T H")),
    see="course_lib.kernels.unpadding.Packing does this once for all layers, with texts in order "
    "of length",
    when_raised=(
        (r"shape mismatch|cannot be broadcast|[Ii]ndex put|does not match", "What you put back has "
         "one row for each real token, (N, H). The positions on the left must be N as well: use a "
         "boolean mask, back[mask == 1] = result."),
        (r"must match the size|size of tensor", "x[mask == 1] is (N, H). With mask as it is, of 0 "
         "and 1, torch takes rows 0 and 1 of the batch: compare first."),
        (r"bool|Boolean", "Select with a comparison: mask == 1 is True at real tokens, and "
         "x[mask == 1] is (N, H)."),
    ),
    stages=(
        Stage("two texts, on paper", by_hand),
        Stage("padding at the end", each(case, (2, "1110", "1111"),
                                         (3, "11111", "11000", "11100"))),
        Stage("padding before and between", each(case, (2, "0111", "1101", "0010"),
                                                 (3, "00111", "10011"))),
        Stage("a text without a token", each(case, (2, "110", "000", "111"), (2, "0000", "0110"))),
    ),
    mistakes=(
        Edit(TOKENS, "x[~real]", "Your list holds the padding. 1 in `mask` is a token.",
             more=((BACK, "back[~real] = layer(tokens, begins)"),)),
        Edit(TOKENS, "x.flatten(0, 1)", "Your list still holds the padding: all B · T positions.",
             more=((BACK, "back = layer(tokens, begins).view_as(x)"),)),
        Edit(TOKENS, "x.transpose(0, 1)[real.T]", "Your list goes through the batch position by "
             "position: all first tokens, then all second ones. A text's tokens belong together.",
             more=((BACK, "back.transpose(0, 1)[real.T] = layer(tokens, begins)"),)),
        Edit(TOKENS, "x[mask.sum(dim=1).argsort()][real[mask.sum(dim=1).argsort()]]", "Your texts "
             "are sorted by length, as in the library's list. Here they keep the order of the "
             "batch."),
        Edit(REAL, "torch.arange(x.shape[1]) < mask.sum(dim=1, keepdim=True)", "You take the first "
             "tokens of each text, as many as are real. Padding may be before or between them: "
             "take those where `mask` is 1."),
        Edit(LENGTHS, "mask.sum(dim=0)", "You count tokens over the texts. Lengths are counted "
             "along each row, dim=1."),
        Edit(BEGINS, "lengths.cumsum(dim=0)", "The zero in front is missing. Text b lies from "
             "cumulative[b] to cumulative[b + 1], so there are B + 1 numbers."),
        Edit(BEGINS, "torch.cat([lengths.new_zeros(1), lengths.cumsum(dim=0)])[:-1]", "The end of "
             "the last text is missing. There are B + 1 numbers; the last is N."),
        Edit(BEGINS, "lengths", "These are the lengths. Expected their cumulative sum, from 0 on."),
        Edit(BEGINS, "torch.cat([lengths.new_zeros(1), lengths])", "These are a 0 and the lengths. "
             "Add them up: each number is the sum of all lengths before it."),
        Edit(BEGINS, "torch.arange(len(x) + 1) * x.shape[1]", "Your texts begin every T positions, "
             "as in the padded batch. In the list there are no gaps between them."),
        Edit(BEGINS, "torch.cat([lengths.new_zeros(1), lengths.cumsum(dim=0) - 1])", "Your numbers "
             "are the *last* tokens of the texts. The end of one text is the beginning of the "
             "next: one more."),
        Edit(BEGINS, "torch.cat([lengths.new_zeros(1), lengths[lengths > 0].cumsum(dim=0)])",
             "You leave out texts without a token. Such a text keeps its place and repeats the "
             "number before it."),
        Edit(BEGINS, "torch.cat([lengths.new_zeros(1), lengths.flip(0).cumsum(dim=0)])", "You add "
             "the lengths up from the last text on. The first text comes first."),
        Edit(ZEROS, "x.clone()", "Your result still has x at the padding. Expected zeros."),
        Edit(ZEROS, "torch.ones_like(x)", "Your result has ones at the padding. Expected zeros."),
        Edit(BACK, "back[real] = tokens", "You put the list back unchanged. Apply `layer` to it "
             "first."),
        Edit(BACK, "back[real] = layer(tokens, begins.new_tensor([0, len(tokens)]))", "You give "
             "`layer` the whole list as one text. Tokens of different texts must not see each "
             "other: give it the cumulative lengths."),
        Edit(BACK, "back[real] = layer(x.flatten(0, 1), torch.arange(len(x) + 1) * x.shape[1])"
             ".view_as(x)[real]", "`layer` works on the padded batch, padding included. Give it "
             "the list of real tokens."),
        Edit(BACK, "back[torch.arange(x.shape[1]) < lengths[:, None]] = layer(tokens, begins)",
             "You put the tokens at the beginning of each row. Each must go back to its own "
             "position."),
        Edit(BACK, "back.view(-1, x.shape[2])[: len(tokens)] = layer(tokens, begins)", "You put "
             "the list back without gaps, with all padding after it. Each token must go back to "
             "its own position."),
        Edit(RETURN, "return layer(tokens, begins), begins, back", "Your list is what `layer` "
             "returned. The first result is the list of tokens before it."),
        Edit(RETURN, "return tokens, begins, back[real]", "Your last result is still the list. "
             "Return it padded, (B, T, H)."),
    ),
)  # fmt: skip
