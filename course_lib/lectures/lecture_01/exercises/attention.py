"""Exercise 01.5: attention of one head on one sequence. Q queries, K keys, D and E numbers each."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def attend(queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(q·kᵀ / √D) over visible keys, (Q, K), and the values so weighted, (Q, E)."""
    scores = queries @ keys.T / math.sqrt(queries.shape[-1])  # (Q, K)
    scores = scores.masked_fill(~visible, -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights, weights @ values


# ---------------------------------------------------------------- cases


def case(draw: Draw, Q: int, K: int, D: int, E: int, hidden: float = 0.0) -> Case:
    """hidden: the fraction of pairs that are not visible."""
    visible = torch.rand(Q, K, generator=draw.torch) >= hidden
    for query in range(Q):
        visible[query, draw.integer(0, K - 1)] = True
        if hidden:
            others = [key for key in range(K) if visible[query, key]]
            visible[query, draw.python.choice(others)] = len(others) < 2
    return draw.normal(Q, D), draw.normal(K, D), draw.normal(K, E), visible


def only_itself_and_before(draw: Draw, T: int, D: int) -> Case:
    """The first sees itself alone, the last sees all."""
    q, k, v, _ = case(draw, T, T, D, D)
    return q, k, v, torch.ones(T, T, dtype=torch.bool).tril()


def far_apart(draw: Draw, T: int, D: int, hidden: bool) -> Case:
    """hidden: each query may see all keys but the one that fits it best."""
    q, k, v, visible = case(draw, T, T, D, D)
    if hidden:
        visible = visible.scatter(1, (q @ k.T).argmax(1, keepdim=True), False)
    return 1e5 * q, k, v, visible


SCORES = "queries @ keys.T / math.sqrt(queries.shape[-1])"
HIDE = "scores = scores.masked_fill(~visible, -torch.inf)"
WEIGHTS, OUTPUT = "scores.softmax(dim=-1)", "weights @ values"

ATTENTION = Exercise(
    **written("01.5"),
    solution=attend,
    returns=(Numbers("attention weights", shape="Q K"), Numbers("outputs", shape="Q E")),
    library=(
        "course_lib.kernels.attention:attention_scores",
        "course_lib.kernels.attention:attention_reference",
    ),
    forbidden={
        r"\w*(scaled_dot_product|multi_head_attention|flex_attention|attention_reference)\w*":
        "Write it out: scores, hide, softmax, weighted sum."
    },
    infinite="Not all of it is finite: was exp taken of a large score, or all of a row hidden?",
    when_raised=(
        (r"mat1 and mat2|shapes cannot be multiplied|size mismatch|must match|expected size",
         "Two shapes do not fit. queries @ keys.T is (Q, K): rows of one with rows of the other. "
         "weights @ values is (Q, E)."),
        (r"Boolean|boolean|bool value|ambiguous|`-` operator|-.*operator, on a bool|~|Negative",
         "`visible` holds True and False: ~visible inverts it, and masked_fill and torch.where "
         "select with it."),
    ),
    stages=(
        Stage("as many queries as keys, all equally wide",
              each(case, (2, 2, 2, 2), (4, 4, 4, 4), (6, 6, 6, 6))),
        Stage("some keys are hidden", each(case, (3, 3, 3, 3, 0.4), (5, 5, 5, 5, 0.4))),
        Stage("each sees itself and what stands before it",
              each(only_itself_and_before, (3, 2), (5, 4))),
        Stage("scores far apart", each(far_apart, (3, 2, False), (5, 4, False))),
        Stage("the best key is hidden, by far", each(far_apart, (3, 2, True), (5, 4, True))),
        Stage("other shapes", each(case, (2, 3, 2, 1), (3, 4, 5, 2, 0.4), (5, 3, 4, 6, 0.4))),
    ),
    gradient=("queries", "keys", "values"),
    mistakes=(
        Edit(SCORES, "queries @ keys.T", "The scores are not divided by √D. Sums of D products "
             "grow like √D; undivided, wide vectors make the softmax choose one key only."),
        Edit(SCORES, "queries @ keys.T / queries.shape[-1]", "The scores are divided by D; divide "
             "by its square root."),
        Edit(SCORES, "queries @ keys.T / math.sqrt(len(keys))", "The scores are divided by √K, K "
             "being the number of keys. Divide by √D: each score sums D products."),
        Edit(SCORES, "queries @ keys.T / math.sqrt(values.shape[-1])", "The scores are divided by "
             "√E, from the width of the values. Divide by √D, the width of queries and keys."),
        Edit(SCORES, "torch.nn.functional.normalize(queries, dim=1) "
             "@ torch.nn.functional.normalize(keys, dim=1).T", "These scores are cosines, between "
             "−1 and 1. Attention takes the dot product divided by √D, so the vectors' lengths "
             "count."),
        Edit(SCORES, f"-({SCORES})", "The scores have the wrong sign: the keys that fit least "
             "get the most weight."),
        Edit(SCORES, "keys @ queries.T / math.sqrt(queries.shape[-1])", "Rows are keys and columns "
             "are queries in your scores. A row belongs to a query: queries @ keys.T."),
        Edit(SCORES, "queries @ queries.T / math.sqrt(queries.shape[-1])", "Queries are multiplied "
             "with queries; the keys are never used."),
        Edit(SCORES, "queries @ values.T / math.sqrt(queries.shape[-1])", "Queries are multiplied "
             "with the values. Compare queries with keys; the values are only summed up."),
        Edit(WEIGHTS, "scores.softmax(dim=0)", "The softmax runs over the queries: columns add up "
             "to one. Each query's weights must add up to one, along its row: dim=-1."),
        Edit(WEIGHTS, "scores.flatten().softmax(0).view_as(scores)", "One softmax runs over the "
             "whole table. Each query has its own: dim=-1."),
        Edit(WEIGHTS, "scores.masked_fill(~visible, 0)", "There is no softmax: these are scores. "
             "Weights are positive and add up to one."),
        Edit(WEIGHTS, "scores.exp()", "exp of the scores is not divided by its sum: softmax does "
             "both."),
        Edit(WEIGHTS, "scores.masked_fill(~visible, 0) / scores.masked_fill(~visible, 0).sum(-1, "
             "keepdim=True)", "The scores are divided by their sum, without exp. Scores may be "
             "negative; use the softmax."),
        Edit(WEIGHTS, "torch.nn.functional.one_hot(scores.argmax(-1), len(keys)).to(values.dtype)",
             "The key with the best score gets all the weight. Softmax gives the others "
             "some, too."),
        Edit(WEIGHTS, "visible / visible.sum(-1, keepdim=True).to(values.dtype)", "All visible "
             "keys get the same weight: the scores have no effect. Or was all of a row hidden, "
             "with visible and hidden exchanged?"),
        Edit(HIDE, "scores = scores.masked_fill(visible, -torch.inf)", "Visible and hidden are "
             "exchanged: True means that the key may be seen. masked_fill wants ~visible."),
        Edit(HIDE, "scores = scores * visible", "Hidden scores are set to 0 before the softmax, "
             "but exp(0) = 1: such a key still gets weight. Set them to −torch.inf."),
        Edit(WEIGHTS, "scores.softmax(dim=-1) * visible", "Hidden keys lose their weight after the "
             "softmax, so that a row no longer adds up to one. Hide before it.",
             more=((HIDE, ""),)),
        Edit(HIDE, "scores = scores.masked_fill(~visible.T, -torch.inf)", "`visible` is "
             "transposed: visible[i, j] says whether *query i* may see *key j*."),
        Edit(HIDE, "scores = scores.masked_fill(~visible.tril(), -torch.inf)", "You hide the "
             "keys that come later. Only `visible` says what is hidden."),
        Edit(SCORES, "queries @ keys / math.sqrt(queries.shape[-1])", "queries @ keys multiplies "
             "rows with columns, and runs only because there are as many keys as numbers in each. "
             "Transpose the keys: keys.T."),
        Edit(SCORES, "queries @ keys.T", "The weights are divided by √D, after the softmax. Divide "
             "the scores, before it.",
             more=((WEIGHTS, "scores.softmax(dim=-1) / math.sqrt(queries.shape[-1])"),)),
        Edit(WEIGHTS, "scores.exp() / scores.exp().sum(-1, keepdim=True)", "exp of a large score "
             "is infinite. softmax subtracts the row's largest score first, which changes "
             "nothing else."),
        Edit(WEIGHTS, "scores.softmax(-1) * visible / (scores.softmax(-1) * visible)"
             ".sum(-1, keepdim=True)", "You hide after the softmax and divide by what is left. On "
             "paper that is the same. But where a hidden key had nearly all the weight, what is "
             "left was rounded to 0: hide before the softmax.", more=((HIDE, ""),)),
        Edit(OUTPUT, "weights @ keys", "The weights sum up the keys. Keys are only compared; sum "
             "up the values."),
        Edit(OUTPUT, "weights.T @ values", "The weights are transposed before the product: row i "
             "of the outputs belongs to query i, weights @ values."),
        Edit(OUTPUT, "weights @ values / len(keys)", "The outputs are divided by the number of "
             "keys. The weights add up to one already."),
        Edit(OUTPUT, "queries + weights @ values", "The queries are added to the outputs. Such a "
             "residual connection belongs to the Transformer's block, not to attention."),
        Edit(OUTPUT, "scores.masked_fill(~visible, 0) @ values", "The outputs are computed from "
             "the scores. Use the weights, after the softmax."),
        Edit("return weights, ", "return scores.masked_fill(~visible, 0), ", "The first result "
             "holds the scores; return the weights, after the softmax."),
    ),
)  # fmt: skip
