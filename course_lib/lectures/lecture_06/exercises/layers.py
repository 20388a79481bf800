"""Exercise 06.5: TinyBERT's two losses between layers. B batch, T tokens, A heads, H width of the
student, H' of the teacher, M and N layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from course_lib.encoder import EncoderOutput
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def layer_losses(
    student: Any, teacher: Any, mapping: Sequence[int], matrix: Tensor, real: Tensor
) -> tuple[Tensor, Tensor]:
    """The attention and the hidden loss, each summed over the student's layers (Jiao et al. 2020,
    equations 7 and 8)."""
    pairs = (real[:, :, None] & real[:, None, :])[:, None]  # (B, 1, T, T): both tokens are real
    attention, hidden = [], []
    for m, n in enumerate(mapping, start=1):  # layers, counted from 1
        scores, target = student.attention_scores[m - 1], teacher.attention_scores[n - 1]
        squares = (scores - target.detach()).masked_fill(~pairs, 0.0) ** 2  # (B, A, T, T)
        attention.append(squares.sum() / (pairs.sum() * squares.shape[1]))
        states, goal = student.hidden_states[m] @ matrix, teacher.hidden_states[n].detach()
        squares = (states - goal) ** 2  # (B, T, H'); index 0 held the embeddings
        hidden.append(squares[real].mean())
    return sum(attention), sum(hidden)


# ---------------------------------------------------------------- cases

Sizes = tuple[list[int], int, int, int]  # g(1) … g(M), N, H, H'


def outputs(draw: Draw, layers: int, width: int, real: Tensor) -> EncoderOutput:
    """States and scores as an encoder gives them: hidden keys have the smallest finite score."""
    states = tuple(draw.normal(*real.shape, width) for _ in range(layers + 1))
    low, padded = torch.finfo(states[0].dtype).min, ~real[:, None, None, :]
    scores = tuple(
        (2 * draw.normal(len(real), 3, real.shape[1], real.shape[1])).masked_fill(padded, low)
        for _ in range(layers)
    )
    return EncoderOutput(states[-1], None, states, tuple(x.softmax(-1) for x in scores), scores)


def case(draw: Draw, sizes: Sizes, rows: Sequence[int]) -> Case:
    mapping, N, H, teacher_width = sizes
    real = torch.arange(max(rows)) < torch.tensor(rows)[:, None]  # (B, T)
    student, teacher = outputs(draw, len(mapping), H, real), outputs(draw, N, teacher_width, real)
    return student, teacher, list(mapping), draw.normal(H, teacher_width), real


def cases(sizes: Sequence[Sizes], *lengths: Sequence[int]) -> Callable[[Draw], list[Case]]:
    return each(case, *product(sizes, lengths))


def by_text(squares: Tensor, where: Tensor) -> Tensor:
    """Each text's own mean over the entries where `where` is true, then the mean of the texts."""
    each = zip(squares, where.expand_as(squares), strict=True)
    return torch.stack([x[at].mean() for x, at in each]).mean()


EQUAL: list[Sizes] = [([1], 1, 3, 3), ([2], 2, 4, 4)]  # H = H'
NARROW: list[Sizes] = [([2], 2, 2, 5), ([3], 3, 3, 4)]
MAPPED: list[Sizes] = [([2, 4], 4, 3, 5), ([3, 6, 9, 12], 12, 2, 3), ([3, 4], 4, 2, 4)]
RICH: list[Sizes] = [([2], 2, 2, 5), ([2, 4], 5, 3, 5), ([1, 3], 4, 4, 4)]

PAIRS = "real[:, :, None] & real[:, None, :]"
MEAN, MASK = "squares.sum() / (pairs.sum() * squares.shape[1])", ".masked_fill(~pairs, 0.0)"
WIDENED, REAL = "student.hidden_states[m] @ matrix", "squares[real].mean()"
AVERAGED = "you average over the layers. The loss is their *sum*: more layers have more to learn."
LAST = "you compare only the last layer of the student; add up all M."

LAYERS = Exercise(
    **written("06.5"),
    solution=layer_losses,
    returns=(Number("attention loss"), Number("hidden loss")),
    library=(
        "course_lib.objectives.distillation:attention_loss",
        "course_lib.objectives.distillation:hidden_loss",
        "course_lib.objectives.distillation:tinybert_loss",
    ),
    when_raised=(
        ("tuple index out of range",
         "Scores have no entry for the embeddings: layer n is attention_scores[n - 1], and layer n "
         "of the hidden states is hidden_states[n]."),
        (r"\A.*(mat1 and mat2|cannot be multiplied|must match|Expected size|size mismatch)",
         "The shapes do not fit. The student's states have width H, the teacher's H'; `matrix` is "
         "(H, H') and comes on the right: states @ matrix. Both have the same number of heads."),
    ),
    stages=(
        Stage("one layer, equal widths", cases(EQUAL, (4, 4))),
        Stage("a narrower student", cases(NARROW, (4, 4))),
        Stage("which layer learns from which", cases(MAPPED, (4, 4))),
        Stage("rows with padding", cases(RICH, (6, 3), (5, 2, 4))),
    ),
    gradient=("student.hidden_states", "student.attention_scores", "matrix"),
    infinite="Your result is not finite: the scores of padded keys are the smallest possible "
    "number, and its square is infinite. Infinity times 0 is nan: leave those pairs out before you "
    "square (masked_fill, or pick with a mask).",
    mistakes=(
        Edit("student.attention_scores", "student.attentions",
             "You compare the attention *weights*. TinyBERT compares the scores before the softmax "
             "(its section 3.1): .attention_scores, not .attentions.",
             more=(("teacher.attention_scores", "teacher.attentions"),)),
        Edit("teacher.attention_scores[n - 1]", "teacher.attention_scores[m - 1]",
             "Attention: the mapping has no effect; you compare layer m with the teacher's layer "
             "m. Compare it with layer g(m) = mapping[m − 1]."),
        Edit(MASK, "", "Attention: you count pairs with padding. A score counts only where both "
             "the query's and the key's token are "
             "real.", more=((PAIRS, "real[:, :, None] & True"),)),
        Edit(MEAN, "squares.mean()", "Attention: you set pairs with padding to 0 but still count "
             "them, since you divide by all T · T. (The authors' code does so.) Divide by the "
             "number of real pairs, or short texts count less."),
        Edit(MEAN, "squares.sum() / pairs.sum()",
             "Attention: you add the heads; the loss is their mean (1/h in equation 7)."),
        Edit("sum(attention)", "sum(attention) / len(attention)", f"Attention: {AVERAGED}"),
        Edit("@ matrix, teacher.hidden_states[n]", "@ matrix, teacher.hidden_states[n - 1]",
             "Hidden states: you take the teacher's state before layer g(m). The list begins with "
             "the embeddings, so layer n is at index n. (Scores begin with layer 1: n − 1.)"),
        Edit("@ matrix, teacher.hidden_states[n]", "@ matrix, teacher.hidden_states[m]",
             "Hidden states: the mapping has no effect; you compare layer m with the teacher's "
             "layer m. Compare it with layer g(m) = mapping[m − 1]."),
        Edit(REAL, "squares.mean()", "Hidden states: you count padding; take real tokens only."),
        Edit(REAL, "squares[real].sum() / squares.numel()", "Hidden states: you set padding to 0 "
             "but still count it, since you divide by all B · T tokens. Divide by the number of "
             "real ones: states[real] picks them."),
        Edit("sum(hidden)", "sum(hidden) / len(hidden)", f"Hidden states: {AVERAGED}"),
        Edit("return sum", "hidden += [((student.hidden_states[0] @ matrix - "
             "teacher.hidden_states[0]) ** 2)[real].mean()]\n    return sum",
             "Hidden states: you compare the embeddings as well. TinyBERT does that in a separate "
             "loss with its own matrix (equation 9); here compare layers 1 to M."),
        Edit("teacher.attention_scores[n - 1]", "teacher.attention_scores[n - 2]",
             "Attention: you take the teacher's layer before g(m). Scores have no entry for the "
             "embeddings, so layer 1 is at index 0 and layer n at n − 1."),
        Edit("teacher.attention_scores[n - 1]",
             "teacher.attention_scores[n % len(teacher.attention_scores)]",
             "Attention: you take the teacher's layer after g(m). Scores have no entry for the "
             "embeddings, so layer 1 is at index 0 and layer n at n − 1."),
        Edit("student.attention_scores[m - 1]", "student.attention_scores[m - 2]",
             "Attention: you take the student's layer before m (and the last for m = 1). Layer m "
             "is at index m − 1."),
        Edit(PAIRS, "real[:, None, :] & (real[:, :, None] | True)",
             "Attention: you leave out padding as a key, but not as a query: its own row of scores "
             "is counted as well. Both tokens of a pair must be real."),
        Edit(PAIRS, "real[:, :, None] & (real[:, None, :] | True)",
             "Attention: you leave out padding as a query, but not as a key. Both tokens of a pair "
             "must be real."),
        Edit("(scores - target.detach())", "(scores - target.detach()).mean(1, keepdim=True)",
             "Attention: you average the scores over the heads before comparing them. Compare each "
             "head with the same head of the teacher; the mean comes after the square."),
        Edit(MEAN, "by_text(squares, pairs)", "Attention: you average within each text, then over "
             "the texts. Average over all real pairs of the batch at once."),
        Edit(MEAN, "squares.sum()", "Attention: you add up the squares; take their mean in each "
             "layer."),
        Edit("sum(attention)", "attention[-1]", f"Attention: {LAST}"),
        Edit(MASK + " ** 2", MASK + ".abs()", "Attention: you take absolute differences; square "
             "them instead."),
        Edit(WIDENED, "student.hidden_states[m - 1] @ matrix",
             "Hidden states: you take the student's state before layer m. The list begins with the "
             "embeddings, so layer m is at index m. (Scores begin with layer 1: m − 1.)"),
        Edit(WIDENED, "student.hidden_states[m - 1] @ matrix",
             "Hidden states: you take both student and teacher one state too early. Hidden states "
             "begin with the embeddings, so layer m is at index m, and layer n at n.",
             more=((", teacher.hidden_states[n]", ", teacher.hidden_states[n - 1]"),)),
        Edit(WIDENED, "student.hidden_states[m]", "Hidden states: you compare the student's states "
             "directly; `matrix` has no effect. It maps one width to the other, and is learned "
             "even where they are equal."),
        Edit(WIDENED, "student.hidden_states[m] @ matrix.T",
             "Hidden states: you multiply the matrix the wrong way round, which goes unnoticed "
             "where H = H'. A state is a row: states @ matrix."),
        Edit(WIDENED, "student.hidden_states[m]", "Hidden states: you map the teacher's states to "
             "the student's width. Widen the student's instead (equation 8). Otherwise a matrix of "
             "zeros and a student of zeros would agree perfectly.",
             more=(("(states - goal)", "(states - goal @ matrix.T)"),)),
        Edit("(states - goal)", "(states - goal @ matrix)", "Hidden states: you multiply both by "
             "the matrix; multiply only the student's."),
        Edit(REAL, "squares[real].sum(-1).mean()", "Hidden states: you add the squares over the H' "
             "units; take their mean."),
        Edit(REAL, "by_text(squares, real[..., None])", "Hidden states: you average within each "
             "text, then over the texts. Average over all real tokens of the batch at once."),
        Edit(REAL, "squares[real].sum()", "Hidden states: you add up the squares; take their mean "
             "in each layer."),
        Edit("sum(hidden)", "hidden[-1]", f"Hidden states: {LAST}"),
        Edit("(states - goal) ** 2", "(states - goal).abs()",
             "Hidden states: you take absolute differences; square them instead."),
    ),
)  # fmt: skip
