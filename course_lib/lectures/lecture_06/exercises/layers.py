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
AVERAGED = "the layers are averaged. The loss is their *sum*: more layers have more to learn."
LAST = "only the last layer of the student is compared; add up all M."

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
         "The shapes do not fit. A state of the student is H wide, one of the teacher H'; `matrix` "
         "is (H, H') and stands on the right: states @ matrix. Both have the same number of "
         "heads."),
    ),
    stages=(
        Stage("one layer, equal widths", cases(EQUAL, (4, 4))),
        Stage("a narrower student", cases(NARROW, (4, 4))),
        Stage("which layer learns from which", cases(MAPPED, (4, 4))),
        Stage("rows with padding", cases(RICH, (6, 3), (5, 2, 4))),
    ),
    gradient=("student.hidden_states", "student.attention_scores", "matrix"),
    infinite="Not all of it is finite: the scores of padded keys are the smallest number there is, "
    "and its square is infinite. Infinite times 0 is not a number: leave those pairs out before "
    "you square (masked_fill, or pick with a mask).",
    mistakes=(
        Edit("student.attention_scores", "student.attentions", "The attention *probabilities* are "
             "compared. TinyBERT compares the scores before the softmax (its section 3.1): "
             ".attention_scores, not .attentions.",
             more=(("teacher.attention_scores", "teacher.attentions"),)),
        Edit("teacher.attention_scores[n - 1]", "teacher.attention_scores[m - 1]",
             "Attention: the mapping has no effect, layer m is compared with the teacher's layer "
             "m. It is to be compared with layer g(m) = mapping[m − 1]."),
        Edit(MASK, "", "Attention: pairs with padding are counted. A score counts where both the "
             "query's and the key's token are real.", more=((PAIRS, "real[:, :, None] & True"),)),
        Edit(MEAN, "squares.mean()", "Attention: pairs with padding are set to 0 and still "
             "counted: the mean is divided by all T · T. (The authors' code does so.) Divide by "
             "the number of real pairs, or short texts count less."),
        Edit(MEAN, "squares.sum() / pairs.sum()",
             "Attention: the heads are added; the loss is their mean (1/h in equation 7)."),
        Edit("sum(attention)", "sum(attention) / len(attention)", f"Attention: {AVERAGED}"),
        Edit("@ matrix, teacher.hidden_states[n]", "@ matrix, teacher.hidden_states[n - 1]",
             "Hidden states: the teacher's is that before layer g(m). They begin with the "
             "embeddings, so layer n stands at index n. (Scores begin with layer 1: n − 1.)"),
        Edit("@ matrix, teacher.hidden_states[n]", "@ matrix, teacher.hidden_states[m]",
             "Hidden states: the mapping has no effect, layer m is compared with the teacher's "
             "layer m. It is to be compared with layer g(m) = mapping[m − 1]."),
        Edit(REAL, "squares.mean()", "Hidden states: padding is counted; take real tokens only."),
        Edit(REAL, "squares[real].sum() / squares.numel()", "Hidden states: padding is set to 0 "
             "and still counted: the mean is divided by all B · T tokens. Divide by the real ones: "
             "states[real] picks them."),
        Edit("sum(hidden)", "sum(hidden) / len(hidden)", f"Hidden states: {AVERAGED}"),
        Edit("return sum", "hidden += [((student.hidden_states[0] @ matrix - "
             "teacher.hidden_states[0]) ** 2)[real].mean()]\n    return sum",
             "Hidden states: the embeddings are compared as well. TinyBERT does that in a loss of "
             "its own, with a matrix of its own (equation 9); here it is layers 1 to M."),
        Edit("teacher.attention_scores[n - 1]", "teacher.attention_scores[n - 2]",
             "Attention: the teacher's comes from the layer before g(m). Scores have no entry for "
             "the embeddings, so layer 1 stands at index 0 and layer n at n − 1."),
        Edit("teacher.attention_scores[n - 1]",
             "teacher.attention_scores[n % len(teacher.attention_scores)]",
             "Attention: the teacher's comes from the layer after g(m). Scores have no entry for "
             "the embeddings, so layer 1 stands at index 0 and layer n at n − 1."),
        Edit("student.attention_scores[m - 1]", "student.attention_scores[m - 2]",
             "Attention: the student's comes from the layer before m (and from the last for m = "
             "1). Layer m stands at index m − 1."),
        Edit(PAIRS, "real[:, None, :] & (real[:, :, None] | True)",
             "Attention: keys of padding are left out, but not its queries: padding's own row of "
             "scores is counted as well. Both tokens of a pair must be real."),
        Edit(PAIRS, "real[:, :, None] & (real[:, None, :] | True)", "Attention: queries of padding "
             "are left out, but not its keys. Both tokens of a pair must be real."),
        Edit("(scores - target.detach())", "(scores - target.detach()).mean(1, keepdim=True)",
             "Attention: the scores are averaged over the heads before they are compared. Each "
             "head is compared with the same head of the teacher; the mean comes after the "
             "square."),
        Edit(MEAN, "by_text(squares, pairs)", "Attention: each text was averaged by itself, then "
             "the texts. Average over all real pairs of the batch at once."),
        Edit(MEAN, "squares.sum()", "Attention: the squares are added up; expected their mean in "
             "each layer."),
        Edit("sum(attention)", "attention[-1]", f"Attention: {LAST}"),
        Edit(MASK + " ** 2", MASK + ".abs()", "Attention: the differences are taken without their "
             "sign; they are squared."),
        Edit(WIDENED, "student.hidden_states[m - 1] @ matrix", "Hidden states: the student's is "
             "that before layer m. They begin with the embeddings, so layer m stands at index m. "
             "(Scores begin with layer 1: m − 1.)"),
        Edit(WIDENED, "student.hidden_states[m - 1] @ matrix", "Hidden states: student and teacher "
             "are both taken one state too early. Hidden states begin with the embeddings, so "
             "layer m stands at index m, and layer n at n.",
             more=((", teacher.hidden_states[n]", ", teacher.hidden_states[n - 1]"),)),
        Edit(WIDENED, "student.hidden_states[m]", "Hidden states: the student's are compared as "
             "they are; `matrix` has no effect. It stands between the widths, and is learned also "
             "where they are equal."),
        Edit(WIDENED, "student.hidden_states[m] @ matrix.T", "Hidden states: the matrix is "
             "multiplied the wrong way round, which goes unnoticed where H = H'. A state is a row: "
             "states @ matrix."),
        Edit(WIDENED, "student.hidden_states[m]", "Hidden states: the teacher's are led to the "
             "student's width. It is the student that is widened (equation 8). Else a matrix of "
             "zeros and a student of zeros would agree perfectly.",
             more=(("(states - goal)", "(states - goal @ matrix.T)"),)),
        Edit("(states - goal)", "(states - goal @ matrix)", "Hidden states: both are multiplied by "
             "the matrix; only the student's are."),
        Edit(REAL, "squares[real].sum(-1).mean()", "Hidden states: the squares are added over the "
             "H' units; expected their mean."),
        Edit(REAL, "by_text(squares, real[..., None])", "Hidden states: each text was averaged by "
             "itself, then the texts. Average over all real tokens of the batch at once."),
        Edit(REAL, "squares[real].sum()", "Hidden states: the squares are added up; expected their "
             "mean in each layer."),
        Edit("sum(hidden)", "hidden[-1]", f"Hidden states: {LAST}"),
        Edit("(states - goal) ** 2", "(states - goal).abs()", "Hidden states: the differences are "
             "taken without their sign; they are squared."),
    ),
)  # fmt: skip
