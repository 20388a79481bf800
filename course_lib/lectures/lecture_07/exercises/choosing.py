"""Exercise 07.8: which answer looks original? C candidates, texts of T tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def p_replaced(logits: Tensor, spans: Sequence[tuple[int, int]]) -> Tensor:
    """P(replaced) of each candidate, the mean over its own tokens: (C, T) -> (C,)."""
    p = logits.sigmoid()
    return torch.stack([row[first:end].mean() for row, (first, end) in zip(p, spans, strict=True)])


# ---------------------------------------------------------------- cases


def case(draw: Draw, lengths: Sequence[int], odd: float = 0.0) -> Case:
    """lengths: of the candidates, in tokens; odd: how replaced the words around them look."""
    T = max(lengths) + 6
    spans = [(first := draw.integer(1, 5), first + length) for length in lengths]
    logits = 2 * draw.normal(len(lengths), T) + odd
    for row, (first, end) in zip(logits, spans, strict=True):
        row[first:end] -= odd
    return logits, spans


P, MEAN = "logits.sigmoid()", "row[first:end].mean()"
CHOOSING = Exercise(
    **written("07.8"),
    solution=p_replaced,
    returns=Numbers("probabilities", shape="C"),
    see="course_lib.lectures.lecture_07.zero_shot, which the page measures",
    stages=(
        Stage("two candidates of one token", each(case, ((1, 1),), ((1, 1),))),
        Stage("candidates of several tokens", each(case, ((2, 2, 2),), ((3, 3),))),
        Stage("candidates of different lengths", each(case, ((1, 4, 2),), ((3, 1, 2, 1),))),
        Stage("odd words around them", each(case, ((1, 3, 2), 4.0), ((2, 1), 6.0))),
    ),
    mistakes=(
        Edit(P, "(-logits).sigmoid()", "These are the probabilities that the tokens are original. "
             "A logit above zero means replaced, and P(replaced) is its sigmoid."),
        Edit(P, "logits", "These are means of logits, not of probabilities. Take the sigmoid of "
             "each logit first."),
        Edit(P, "logits", "You average the logits and take the sigmoid of the mean. Take the "
             "sigmoid of each token's logit first.", more=((MEAN, f"{MEAN}.sigmoid()"),)),
        Edit(P, "logits.softmax(dim=1)", "Your softmax compares the tokens of a text with each "
             "other, as if exactly one were replaced. Each token has its own question: sigmoid."),
        Edit(MEAN, "row[first:end].sum()", "You add up the probabilities of a candidate's tokens, "
             "so a longer answer looks worse whatever it says. Take their mean."),
        Edit(MEAN, "row[first:end].prod()", "You multiply the probabilities of a candidate's "
             "tokens, so a longer answer looks better whatever it says. Take their mean."),
        Edit(MEAN, "row[first:end].amax()", "You take the most suspicious token of each "
             "candidate; take the mean of all its tokens."),
        Edit(MEAN, "row[first]", "You read the first token of each candidate only; take the mean "
             "of all its tokens."),
        Edit(MEAN, "row[first : end + 1].mean()", "You read one token too many: `end` is the "
             "first position behind the candidate."),
        Edit(MEAN, "row.mean()", "You average over the whole text. The words around the gap are "
             "the same for every candidate: read the candidate's own tokens."),
    ),
)  # fmt: skip
