"""Exercise 02.2: attention that ignores padding. B batch, A heads, T tokens, D head size."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Answer,
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Exact, Numbers, Wrong


def attend(q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor) -> Tensor:
    """softmax(q·kᵀ / √D) · v without padded keys; q, k, v (B, A, T, D), attention_mask (B, T)."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, A, T, T)
    padding = (attention_mask == 0)[:, None, None, :]  # (B, 1, 1, T): the last axis is the keys
    scores = scores.masked_fill(padding, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1) @ v  # (B, A, T, D)


def case(draw: Draw, B: int, A: int, T: int, D: int, padded: bool = False) -> Case:
    lengths = draw.ids(2, T - 1, B, 1) if padded else torch.full((B, 1), T)
    q, k, v = (draw.normal(B, A, T, D) for _ in range(3))
    return q, k, v, (torch.arange(T) < lengths).long()


padded = each(case, (1, 1, 3, 2, True), (1, 2, 5, 3, True), (4, 3, 9, 4, True))


def influence(function: Answer, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """How the output at real tokens changes when keys and values of the padding change."""
    padding = (mask == 0)[:, None, :, None]
    other_k, other_v = (torch.where(padding, 2 * x + 3, x) for x in (k, v))
    other, output = (torch.as_tensor(function(q, *x, mask)) for x in ((other_k, other_v), (k, v)))
    if bool((output.abs() > 1e6).any()):
        raise Wrong("Your output holds values beyond a million: was the large negative number "
                    "added after the softmax instead of before?", "known")  # fmt: skip
    change = other - output
    return change.transpose(1, 2)[mask.bool()]  # (real tokens, A, D)


def at_real_tokens(function: Answer, *inputs: Tensor) -> Any:
    output, mask = torch.as_tensor(function(*inputs)), inputs[-1]
    finite = "numbers" if bool(torch.isfinite(output).all()) else "nan or infinite"
    return output.transpose(1, 2)[mask.bool()], finite


HIDE = "scores = scores.masked_fill(padding, torch.finfo(scores.dtype).min)"

ATTENTION = Exercise(
    **written("02.2"),
    solution=attend,
    returns=Numbers("output", shape="B A T D", tol=1e-5),
    library=(
        "course_lib.kernels.attention:attention_scores",
        "course_lib.kernels.attention:attention_reference",
    ),
    forbidden={
        r"\w*(scaled_dot_product|multi_head_attention|flex_attention|attention_reference)\w*":
        "Write it out: scores, mask, softmax, weighted sum."
    },
    when_raised=(
        ("boolean (mask|tensor)",
         "That wants True and False, not ones and zeros: use attention_mask == 0."),
        # A shape that does not fit, on a line that exchanges axes (others than the right two) or
        # multiplies by k as it is.
        (r"(match|batch2|multiplied|2-D|[Dd]imension).*\n"
         r"(?!.*(transpose\((-1, ?-2|-2, ?-1|2, ?3|3, ?2)\)|\.mT\b))"
         r".*(\.T\b|\.t\(|transpose|permute|swap|@ *k)",
         "Exchange the last two axes only: k.transpose(-1, -2)."),
    ),
    stages=(
        Stage("one head, few tokens", each(case, (1, 1, 2, 3), (1, 1, 3, 5), (1, 1, 4, 2))),
        Stage("several sequences and heads", each(case, (2, 3, 5, 4), (3, 2, 7, 6))),
        Stage("padding has no influence", padded, influence,
              Numbers("change of the output at real tokens, when keys and values of the padding "
                      "change", tol=1e-5)),
        Stage("padding", padded, at_real_tokens, (
            Numbers("output at real tokens", tol=1e-5),
            Exact("output at padded queries", what="numbers"))),
    ),
    infinite="Not all of it is finite: where all scores of a row are −inf, its softmax is nan.",
    mistakes=(
        Edit(" / math.sqrt(q.shape[-1])", "", "The scores are not divided by √D. Without it they "
             "grow with the head size, and the softmax puts nearly all weight on one token."),
        Edit("/ math.sqrt(q.shape[-1])", "/ q.shape[-1]",
             "The scores are divided by D; it should be its square root, √D, because a sum of D "
             "independent products has a standard deviation of √D."),
        Edit("math.sqrt(q.shape[-1])", "math.sqrt(q.shape[1] * q.shape[-1])", "The scores are "
             "divided by √(A·D), the root of the whole hidden size; each head has D of its own."),
        Edit("math.sqrt(q.shape[-1])", "math.sqrt(q.shape[-2])", "The scores are divided by √T, "
             "the root of the number of tokens; it should be √D, the head size."),
        Edit("softmax(dim=-1)", "softmax(dim=-2)",
             "The softmax runs over the queries. Each query's attention weights over the keys add "
             "up to one: the softmax is over the *last* axis of the scores."),
        Edit("softmax(dim=-1)", "softmax(dim=1)",
             "The softmax runs over the heads; it must run over the keys, the last axis."),
        Edit("scores.softmax(dim=-1) @ v", "scores @ v",
             "There is no softmax: the raw scores weigh the values.", more=((HIDE, "pass"),)),
        Edit("scores.softmax(dim=-1) @ v", "scores.softmax(dim=-1)",
             "These are the attention weights, (B, A, T, T). The output is their product with v."),
        Edit("scores.softmax(dim=-1) @ v", "scores.softmax(dim=-1).transpose(-1, -2) @ v",
             "The attention weights are transposed before they meet the values."),
        Edit("attention_mask == 0", "attention_mask == 1", "The mask is read the wrong way round: "
             "attention_mask is 1 at real tokens and 0 at padding; your function hides the ones."),
        Edit("attention_mask == 0", "attention_mask == 1", "The mask is read the wrong way round: "
             "it is 1 at real tokens. Here no key is left, and a softmax over nothing but −inf is "
             "nan.", more=(("torch.finfo(scores.dtype).min", "-math.inf"),)),
        Edit(HIDE, "", "The mask has no effect: real tokens attend to padding."),
        Edit("[:, None, None, :]", "[:, None, :, None]", "The mask hides the padded queries (rows "
             "of the scores). The output of a padded query is never used; hide "
             "the padded *keys*: the last axis, mask[:, None, None, :]."),
        Edit("scores.softmax(dim=-1) @ v",
             "(scores.softmax(dim=-1) * attention_mask[:, None, None, :]) @ v",
             "The mask is multiplied in after the softmax, or into the values. The weights over "
             "the real tokens then no longer add up to one: padding took its part, which is "
             "thrown away. Hide the keys before the softmax.",
             more=(("_fill(padding,", "_fill(padding & False,"),)),
        Edit("torch.finfo(scores.dtype).min", "0",
             "Hidden scores are set to 0, but e⁰ = 1 still has weight. They must become so small "
             "that the softmax gives them nothing: the most negative number of their type."),
        Edit("scores.masked_fill(padding, torch.finfo(scores.dtype).min)",
             "scores + attention_mask[:, None, None, :]",
             "The mask's ones and zeros are added to the scores. That favours real keys a little; "
             "hidden keys need a very large negative number."),
        Edit("return", "scores = scores.masked_fill(padding.mT, -math.inf); return",
             "Outputs of padded queries are not-a-number: every key was hidden from them. In the "
             "next layer 0·nan is nan, and it reaches the real tokens. Hide keys only."),
    ),
)  # fmt: skip
