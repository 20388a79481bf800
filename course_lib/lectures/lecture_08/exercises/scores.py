"""Exercise 08.2: three attention scores, added and scaled. B sequences, A heads, T tokens, D head
size, R = 2k rows of the table of distances."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers

from .rows import delta as row_of


def scores(
    query: Tensor, key: Tensor, position_key: Tensor, position_query: Tensor, delta: Tensor
) -> Tensor:
    """(B, A, T, T), before the softmax: equation 4, its look-ups as in the released code."""
    content = query @ key.transpose(-1, -2)
    rows = delta.expand_as(content)  # (B, A, T, T)
    # Every product with every row of the table, then each pair picks its own.
    c2p = (query @ position_key.transpose(-1, -2)).gather(-1, rows)
    by_key = (key @ position_query.transpose(-1, -2)).gather(-1, rows.transpose(-1, -2))
    p2c = by_key.transpose(-1, -2)  # (j, i) -> (i, j)
    return (content + c2p + p2c) / sqrt(3 * query.shape[-1])


def case(
    draw: Draw, content: int, position_key: int, position_query: int, tiny: bool = False
) -> Case:
    """content, position_key, position_query: 0 where this term is left out. tiny: shown with its
    numbers to whoever fails it."""
    A, T, D = (1, 2, 2) if tiny else (draw.python.choice((2, 4)), draw.integer(4, 6), 4)
    B, span = (1, 1) if tiny else (2, draw.integer(2, 3))
    query, key = draw.normal(B, A, T, D), draw.normal(B, A, T, D)
    if not content:  # queries and keys share no dimension
        query[..., : D // 2] = 0
        key[..., D // 2 :] = 0
    zero = torch.zeros(A, 2 * span, D, dtype=torch.float64)
    tables = (draw.normal(*zero.shape) if on else zero for on in (position_key, position_query))
    return (query, key, *tables, row_of(T, span))


def cases(*shapes: tuple[int, int, int]) -> Callable[[Draw], list[Case]]:
    return each(case, (*shapes[0], True), *shapes)


KEY_T, QUERY_T = "position_key.transpose(-1, -2)", "position_query.transpose(-1, -2)"
C2P, P2C = f"(query @ {KEY_T}).gather(-1, rows)", "by_key.transpose(-1, -2)"
BY_KEY = f"(key @ {QUERY_T}).gather(-1, rows.transpose(-1, -2))"
SUM = "(content + c2p + p2c) / sqrt(3 * query.shape[-1])"
WRONG_SUMS = {  # in place of SUM: what to say
    SUM.replace("3 * ", ""): "The sum is divided by sqrt(d), as in BERT. Three terms have three "
    "times the variance of one: divide by sqrt(3d).",
    "content + c2p + p2c": "The sum is not divided by anything: divide by sqrt(3d).",
    SUM.replace("sqrt", ""): "The sum is divided by 3d. It is the square root of that.",
    SUM.replace("/", "*"): "The sum is multiplied by sqrt(3d); divide by it.",
    SUM.replace("sqrt(3 * ", "3 / sqrt("): "The sum is divided by 3 · sqrt(d), as if the terms "
    "were averaged. Variances add up, so the 3 belongs under the root: sqrt(3d).",
    SUM.replace("3", "2"): "The sum is divided by sqrt(2d). Two terms involve distances, but "
    "three are added: sqrt(3d).",
    SUM.replace("3", "4"): "The sum is divided by sqrt(4d). Three terms are added: sqrt(3d).",
    SUM.replace("3", "3 * query.shape[1]"): "The d under your root is the width of all heads "
    "together. It should be the width of one head, query.shape[-1].",
    "content / sqrt(query.shape[-1]) + c2p + p2c": "Only the first term is divided, by sqrt(d). "
    "The sum of all three is divided by sqrt(3d).",
    "content / sqrt(3 * query.shape[-1]) + c2p + p2c": "Only the first term is divided by "
    "sqrt(3d). The sum of all three is.",
    "content / sqrt(query.shape[-1]) + (c2p + p2c) / sqrt(3 * query.shape[-1])": "The first term "
    "is divided by sqrt(d), the others by sqrt(3d). Divide the sum of all three by sqrt(3d).",
    "content + c2p + p2c / sqrt(3 * query.shape[-1])": "Only the last term is divided: a / b binds "
    "more tightly than a + b. Put the sum in parentheses.",
    f"({SUM}).softmax(-1)": "You return attention weights, after a softmax. Expected are the "
    "scores before it.",
    "sum(x.softmax(-1) for x in (content, c2p, p2c))": "Each term went through a softmax of its "
    "own. 'Scores are computed separately' is only half: they are *added*, and one softmax "
    "follows.",
    "sum((x / sqrt(query.shape[-1])).softmax(-1) for x in (content, c2p, p2c))": "Each term was "
    "scaled and went through a softmax of its own. The three are *added*; one softmax follows.",
    f"({SUM}).transpose(-1, -2)": "Your scores have the query's token across and the key's down. "
    "Entry (i, j) is the score of token i for token j.",
    "torch.stack([content, c2p, p2c])": "You return three scores a pair. Each is computed by "
    "itself, but attention needs one: add them, then divide by sqrt(3d).",
    "torch.stack([content, c2p, p2c]) / sqrt(3 * query.shape[-1])": "You return three scores a "
    "pair, each divided. Attention needs one: add them.",
}
OWN = "the query meets the rows of position_key, the key those of position_query."

SCORES = Exercise(
    **written("08.2"),
    solution=scores,
    returns=Numbers("tensor of scores", shape="B A T T"),
    see="course_lib.kernels.disentangled.score_parts keeps the terms apart; score_scale counts",
    when_raised=(
        (r"Index tensor must have the same number of dimensions|Size does not match|expanded size",
         "gather wants an index with as many axes as the tensor it picks from, and no longer than "
         "it: delta.expand(B, A, T, T) for one of shape (B, A, T, R)."),
        (r"mat1 and mat2|size of tensor|must match|expected size|batch1|batch2",
         "Two shapes do not fit. For products of rows with rows swap the last two axes of the "
         "second: query @ position_key.transpose(-1, -2) is (B, A, T, R)."),
        (r"out of bounds|out of range",
         "delta holds row numbers, 0 to R − 1: it picks along the axis of length R."),
    ),
    stages=(
        Stage("words alone, both tables zero", cases((1, 0, 0), (1, 0, 0))),
        Stage("words with distances", cases((1, 1, 0), (0, 1, 0))),
        Stage("distances with words", cases((1, 0, 1), (0, 0, 1))),
        Stage("all three", cases((1, 1, 1), (1, 1, 1))),
    ),
    mistakes=(
        Edit(BY_KEY, f"(key @ {QUERY_T}).gather(-1, rows)", "Your third term looks up δ(j, i). "
             "That is the paper's formula (equation 4). The released code, with which the "
             "weights were trained, looks up δ(i, j) in both terms; so does this exercise."),
        Edit(C2P, f"(query @ {KEY_T}).gather(-1, rows.transpose(-1, -2))",
             "The second term looks up δ(j, i). Entry (i, j) of the scores looks up delta[i, j]."),
        Edit(BY_KEY, f"(key @ {QUERY_T}).gather(-1, rows)", "In your third term row i belongs to "
             "the key of token i. Its product was made key by key, so after the gather its axes "
             "are (j, i): swap the last two before you add.", more=((P2C, "by_key"),)),
        Edit(P2C, "by_key", "In your third term row i belongs to the key of token i, looked up at "
             "δ(j, i). After a gather with delta's axes swapped, (j, i), swap the result back."),
        Edit(BY_KEY, "torch.einsum('baid,aijd->baji', query, position_query[:, delta])",
             "Your third term multiplies the *query* of token i with the distance's query. It is "
             "the *key* of token j that meets the distance's query."),
        Edit(BY_KEY, "torch.einsum('bajd,aijd->baji', query, position_query[:, delta])",
             "Your third term multiplies the query of token j with the distance's query. It is the "
             "*key* of token j that meets it."),
        Edit(C2P, "torch.einsum('bajd,aijd->baij', key, position_key[:, delta])",
             "Your second term multiplies the *key* of token j with the distance's key. It is the "
             "*query* of token i that meets the distance's key."),
        Edit(C2P, "torch.einsum('baid,aijd->baij', key, position_key[:, delta])",
             "Your second term multiplies the *key* of token i with the distance's key. It is the "
             "*query* of token i that meets row δ(i, j) of position_key."),
        Edit(QUERY_T, KEY_T, f"position_key is used in both terms: {OWN}"),
        Edit(KEY_T, QUERY_T, f"position_query is used in both terms: {OWN}"),
        Edit(f"query @ {KEY_T}", f"query @ {QUERY_T}", f"The two tables are exchanged: {OWN}",
             more=((f"(key @ {QUERY_T}", f"(key @ {KEY_T}"),)),
        Edit("content = ", "content = (position_query * position_key).sum(-1)[:, delta] + ",
             "A fourth product was added, the distance's query with the distance's key. It says "
             "nothing about the words, and DeBERTa leaves it out."),
        Edit("content = ", "content = 0 * ", "You left out content-to-content, query with key."),
        Edit(C2P, f"0 * {C2P}",
             "You left out content-to-position, the word's query with the distance's key."),
        Edit(P2C, f"0 * {P2C}",
             "You left out position-to-content, the distance's query with the word's key."),
        Edit(P2C, f"-{P2C}", "The third term is subtracted; all three are added."),
        *(Edit(SUM, new, say) for new, say in WRONG_SUMS.items()),
    ),
)  # fmt: skip
