"""Exercise 02.2: attention that does not look at padding. B batch, A heads, T tokens, D head size.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
    expect_tensor,
    find_suspect,
)


def attend(q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor) -> Tensor:
    """softmax(q·kᵀ / √D) · v, padded keys hidden; q, k, v (B, A, T, D), attention_mask (B, T)."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, A, T, T)
    hidden = (attention_mask == 0)[:, None, None, :]  # (B, 1, 1, T): the last axis is the keys
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1) @ v  # (B, A, T, D)


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2)


def _hide(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill((mask == 0)[:, None, None, :], torch.finfo(scores.dtype).min)


def _scaled(divide: Callable[[Tensor], float], dim: int = -1) -> Answer:
    """Attention with another divisor, or another axis for the softmax."""
    return lambda q, k, v, m: _hide(_scores(q, k) / divide(q), m).softmax(dim) @ v


def _root(q: Tensor) -> float:
    return math.sqrt(q.shape[-1])


ATTENTION_SUSPECTS = (
    Suspect(
        "no scale",
        "The scores are not divided by √D. Without it they grow with the head size, and the "
        "softmax puts nearly all weight on one token.",
        _scaled(lambda q: 1.0),
    ),
    Suspect(
        "scale by d",
        "The scores are divided by D; it should be its square root, √D, because a sum of D "
        "independent products has a standard deviation of √D.",
        _scaled(lambda q: q.shape[-1]),
    ),
    Suspect(
        "times root d",
        "The scores are multiplied by √D; they should be divided by it.",
        _scaled(lambda q: 1 / _root(q)),
    ),
    Suspect(
        "scale by root h",
        "The scores are divided by √(A·D), the root of the whole hidden size; each head has D of "
        "its own.",
        _scaled(lambda q: math.sqrt(q.shape[1] * q.shape[-1])),
    ),
    Suspect(
        "scale by root t",
        "The scores are divided by √T, the root of the number of tokens; it should be √D, the "
        "head size.",
        _scaled(lambda q: math.sqrt(q.shape[-2])),
    ),
    Suspect(
        "softmax over queries",
        "The softmax runs over the queries. Each query shares out its attention among the keys: "
        "the *last* axis of the scores must sum to one.",
        _scaled(_root, dim=-2),
    ),
    Suspect(
        "softmax over heads",
        "The softmax runs over the heads; it must run over the keys, the last axis.",
        _scaled(_root, dim=1),
    ),
    Suspect(
        "no softmax",
        "There is no softmax: the raw scores weigh the values.",
        lambda q, k, v, m: _scores(q, k) / _root(q) @ v,
    ),
    Suspect(
        "mask after softmax",
        "The mask is multiplied in after the softmax, or into the values. The weights of a query "
        "over the real tokens then no longer sum to one: padding has taken its share and thrown "
        "it away. Hide the keys before the softmax.",
        lambda q, k, v, m: ((_scores(q, k) / _root(q)).softmax(-1) * m[:, None, None, :]) @ v,
    ),
    Suspect(
        "scores set to zero",
        "Hidden scores are set to 0, but e⁰ = 1 is still a share. They must become so small that "
        "the softmax gives them nothing: the most negative number of their type.",
        lambda q, k, v, m: (_scores(q, k) / _root(q) * m[:, None, None, :]).softmax(-1) @ v,
    ),
    Suspect(
        "mask added as it is",
        "The mask's ones and zeros are added to the scores. That favours real keys a little; "
        "hidden keys need a very large negative number.",
        lambda q, k, v, m: (_scores(q, k) / _root(q) + m[:, None, None, :]).softmax(-1) @ v,
    ),
)


def _attention_case(draw: Draw, B: int, A: int, T: int, D: int, padded: bool) -> tuple[Tensor, ...]:
    q, k, v = (draw.normal(B, A, T, D) for _ in range(3))
    lengths = draw.ids(2, T - 1, B, 1) if padded else torch.full((B, 1), T)
    return q, k, v, (torch.arange(T) < lengths).long()


def _real_rows(output: Tensor, mask: Tensor) -> Tensor:
    return output.transpose(1, 2)[mask.bool()]  # (B, A, T, D) -> (real tokens, A, D)


def _ask_attention(sizes: Sequence[tuple[int, int, int, int]], padded: bool) -> Callable[..., None]:
    def ask(answer: Answer, draw: Draw) -> None:
        cases = [_attention_case(draw, *size, padded) for size in sizes]
        for case in cases:
            _expect_attention(answer, case, cases)

    return ask


def _expect_attention(
    answer: Answer, case: tuple[Tensor, ...], cases: Sequence[tuple[Tensor, ...]]
) -> None:
    q, k, v, mask = case
    given = expect_tensor(
        call(answer, *case), tuple(q.shape), "one mixed vector a query, (B, A, T, D)"
    )
    right = attend(q, k, v, mask)
    if close(_real_rows(given, mask), _real_rows(right, mask)):
        if not torch.isfinite(given).all():
            raise Mistake(
                "padding is nan",
                "Rows of padded queries are not-a-number: every key was hidden from them. In the "
                "next layer 0·nan is nan, and it reaches the real tokens. Hide keys only.",
            )
        return
    _name_flipped(answer, cases)
    _name_hidden_queries(answer, cases)
    found = find_suspect(answer, cases, ATTENTION_SUSPECTS, _same_rows)
    if found:
        raise Mistake(found.key, found.message)
    raise Mistake(*_unforeseen_attention(answer, case, given, right))


def _same_rows(mine: Tensor, theirs: Tensor, case: tuple[Tensor, ...]) -> bool:
    tol = 1e-4 if mine.dtype == torch.float32 else 1e-6
    return close(_real_rows(mine, case[3]), _real_rows(theirs, case[3]), tol)


def _name_flipped(answer: Answer, cases: Sequence[tuple[Tensor, ...]]) -> None:
    """Right with the flipped mask means that the answer reads 1 as padding."""
    if all(
        _same_rows(call(answer, q, k, v, 1 - mask), attend(q, k, v, mask), (q, k, v, mask))
        for q, k, v, mask in cases
    ):
        raise Mistake(
            "mask inverted",
            "The mask is read the wrong way round: attention_mask is 1 at real tokens and 0 at "
            "padding; your function hides the ones.",
        )


def _name_hidden_queries(answer: Answer, cases: Sequence[tuple[Tensor, ...]]) -> None:
    """Real rows as if no key were hidden: is the mask ignored, or does it hide the queries?"""
    # In float32 a large number added to a whole row swallows its scores, so that it can be seen.
    cases = [(q.float(), k.float(), v.float(), mask) for q, k, v, mask in cases]
    free = [attend(q, k, v, torch.ones_like(mask)) for q, k, v, mask in cases]
    given = [call(answer, *case) for case in cases]
    triples = list(zip(given, free, cases, strict=True))
    padded = any((case[3] == 0).any() for case in cases)
    if not padded or not all(_same_rows(mine, open_, case) for mine, open_, case in triples):
        return
    if all(close(mine, open_, 1e-4) for mine, open_ in zip(given, free, strict=True)):
        raise Mistake(
            "mask ignored",
            "The mask has no effect: real tokens take a share of what stands at padding.",
        )
    raise Mistake(
        "queries masked",
        "The mask hides the padded queries (rows of the scores). Nobody minds what a padded "
        "query collects; what must be hidden are the padded *keys*: the last axis, mask[:, None, "
        "None, :].",
    )


def _unforeseen_attention(
    answer: Answer, case: tuple[Tensor, ...], given: Tensor, right: Tensor
) -> tuple[str, str]:
    q, k, v, mask = case
    loud = v + 1_000.0 * (mask == 0)[:, None, :, None]
    if float(given.abs().max()) > 1e6:
        return (
            "huge values",
            "Your result holds values beyond a million: was the large negative number added "
            "after the softmax instead of before?",
        )
    if not _same_rows(call(answer, q, k, loud, mask), given, case):
        return (
            "padding leaks",
            "Padding still has some influence: changing the values at padded positions changes "
            "the result at real ones. Is the number for hidden scores negative enough?",
        )
    gap = (given - right).abs() * mask[:, None, :, None]
    b, a, t, d = (int(i) for i in torch.unravel_index(gap.nan_to_num(math.inf).argmax(), gap.shape))
    return (
        "",
        f"With B, A, T, D = {tuple(q.shape)} and {int(mask[b].sum())} real tokens in row {b}: at "
        f"[{b}, {a}, {t}, {d}] you have {float(given[b, a, t, d]):.4f}; it is "
        f"{float(right[b, a, t, d]):.4f}.",
    )


ATTENTION = Exercise(
    id="02.2",
    title="Attention that does not look at padding",
    purpose="the one operation in which tokens meet",
    difficulty=3,
    minutes=15,
    signature="my_attention(q, k, v, attention_mask)",
    statement=(
        "`q`, `k`, `v` have shape (B, A, T, D): batch, heads, tokens, head size. `attention_mask` "
        "(B, T) is 1 at real tokens and 0 at padding. Return what each query collects, (B, A, T, "
        "D): scaled dot products, a softmax, a weighted sum of the values, and nothing of what "
        "stands at padding. What padded *queries* collect is not looked at, but it must be "
        "finite. Do not call a ready-made attention."
    ),
    hints=(
        "First without the mask: scores of shape (B, A, T, T), one for each query (rows) and key "
        "(columns).",
        "Divide the scores by the square root of D. The softmax runs over the last axis.",
        "Before the softmax, give every padded key a very negative score: "
        "scores.masked_fill(hidden, torch.finfo(scores.dtype).min).",
        "hidden must line up with the keys: (attention_mask == 0)[:, None, None, :] has shape "
        "(B, 1, 1, T).",
    ),
    solution=attend,
    library=(
        "course_lib.kernels.attention:attention_scores",
        "course_lib.kernels.attention:attention_reference",
    ),
    when_raised=(
        (
            "boolean (mask|tensor)",
            "That wants True and False, not ones and zeros: use attention_mask == 0.",
        ),
        (
            # A shape that does not fit, on a line that swaps axes (others than the right two) or
            # multiplies by k as it is.
            r"(match|batch2|multiplied|2-D|[Dd]imension).*\n"
            r"(?!.*(transpose\((-1, ?-2|-2, ?-1|2, ?3|3, ?2)\)|\.mT\b))"
            r".*(\.T\b|\.t\(|transpose|permute|swap|@ *k)",
            "Swap the last two axes only: k.transpose(-1, -2).",
        ),
    ),
    stages=(
        Check(
            "one head, two tokens",
            _ask_attention([(1, 1, 2, 3), (1, 1, 3, 5), (1, 1, 4, 2)], False),
        ),
        Check("several rows and heads", _ask_attention([(2, 3, 5, 4), (3, 2, 7, 6)], False)),
        Check("padding", _ask_attention([(1, 1, 3, 2), (1, 2, 5, 3), (4, 3, 9, 4)], True)),
    ),
)
