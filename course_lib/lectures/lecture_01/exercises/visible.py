"""Exercise 01.6: who may see whom in an encoder, a decoder, and both together. S tokens to read, U
to write."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Numbers


def visible(source: int, target: int, real: Tensor) -> Tensor:
    """(S + U, S + U): whether token i (row) may see token j (column)."""
    position = torch.arange(source + target)
    row, column = position[:, None], position[None, :]
    written = column <= row
    read = column < source
    return (written | read) & real[None, :]


# ---------------------------------------------------------------- cases


def case(draw: Draw, source: int, target: int, padding: tuple[int, int] = (0, 0)) -> Case:
    """padding: at the end of what is read, and at the end of what is written."""
    texts = zip((source, target), padding, strict=True)
    real = torch.cat([torch.arange(length) < length - pad for length, pad in texts])
    return source, target, real


def sizes(draw: Draw, reads: bool, writes: bool) -> list[Case]:
    """Three cases; where there are two texts, one or the other is longer."""
    small = (2, 3) if draw.integer(0, 1) else (3, 2)
    pairs = [small, (draw.integer(4, 5), draw.integer(6, 7)), (draw.integer(6, 7), 4)]
    return [case(draw, reads * source, writes * target) for source, target in pairs]


READ, WRITTEN = "read = column < source", "written = column <= row"
RETURNED = "(written | read) & real[None, :]"

VISIBLE = Exercise(
    **written("01.6"),
    solution=visible,
    returns=Numbers("mask", shape="S+U S+U", kind="bool"),
    see="course_lib.kernels.attention.causal_mask is the decoder's; an encoder has the padding's "
        "mask alone; course_lib.family.seq2seq.Seq2Seq keeps the four corners apart",
    when_raised=(
        (r"size of tensor|must match|broadcast|shape",
         "Rows and columns must line up: position[:, None] runs down, position[None, :] across."),
        (r"ambiguous", "An `if` asks one question, and a tensor has many answers: use |, & and ~, "
         "with parentheses around comparisons."),
        (r"tril|triu", "tril and triu want a table of two axes: torch.ones(n, n, "
         "dtype=torch.bool).tril()."),
    ),
    stages=(
        Stage("an encoder: nothing is written", lambda draw: sizes(draw, True, False)),
        Stage("a decoder: nothing is read", lambda draw: sizes(draw, False, True)),
        Stage("both: an encoder-decoder", lambda draw: sizes(draw, True, True)),
        Stage("with padding", each(case, (3, 2, (1, 0)), (2, 3, (0, 1)), (5, 6, (2, 1)),
                                   (6, 4, (1, 2)), (4, 0, (2, 0)), (0, 4, (0, 1)))),
        Stage("a single token", each(case, (1, 0), (0, 1), (1, 1), (1, 3), (3, 1))),
    ),
    mistakes=(
        Edit(READ, "read = (column < source) & False", "What is read is read from the left only, "
             "as by a decoder. An encoder's tokens see each other from both sides."),
        Edit(RETURNED, "torch.ones_like(written) & real[None, :]", "Every token sees every other. "
             "What is written would see what comes after it, the answers."),
        Edit(WRITTEN, "written = column < row", "A written token does not see itself. It must see "
             "itself and the tokens before it."),
        Edit(WRITTEN, "written = column >= row", "The triangle is flipped: what is written sees "
             "what comes *after* it. Rows are those who see, columns those who are seen."),
        Edit(WRITTEN, "written = column == row", "What is written sees only itself. It sees what "
             "was written before it as well."),
        Edit(RETURNED, "((written | read) & real[None, :]).T", "Rows and columns are exchanged. "
             "Row i sees, column j is seen, so the corner of cross-attention is the "
             "lower left one."),
        Edit(RETURNED, "((written & (column >= source)) | (read & (row < source))) "
             "& real[None, :]", "What is written does not see what is read: cross-attention, the "
             "lower left corner, is missing."),
        Edit(READ, "read = row < source", "What is read sees what is written. It is read before "
             "anything is written: the upper right corner is empty."),
        Edit(READ, "read = column <= source", "The first token that is written counts as read: "
             "every token sees it. Columns 0 to source − 1 are read."),
        Edit(READ, "read = column < source - 1", "The last token that is read is not seen by those "
             "before it. Columns 0 to source − 1 are read."),
        Edit(READ, "read = column < target", "`source` and `target` are exchanged: what is read "
             "comes first."),
        Edit(READ, "read = column >= source", "The two texts are exchanged: what is *read* is seen "
             "by all, what is written is not."),
        Edit(READ, "read = (column < source) & (column - row < 2)", "What is read sees only one "
             "token ahead. It sees all of what is read."),
        Edit(RETURNED, "((written & (column >= source)) | (read & (row < source)) "
             "| (read & (column <= row - source))) & real[None, :]", "The lower left corner is a "
             "triangle: cross-attention grows word by word. All of what is read is there from the "
             "beginning."),
        Edit(RETURNED, "(written | read) & ~real[None, :]", "Only padding is seen: `real` is True "
             "at words."),
        Edit(RETURNED, "(written | read) & real[:, None]", "The rows of padding are emptied, and "
             "its columns are not. The row *sees*, the column is *seen*: "
             "real[None, :]."),
        Edit(RETURNED, "(written | read) & real[None, :] & real[:, None]", "The rows of padding "
             "are emptied as well. Outputs at padding are never used, and a row that sees "
             "nothing has no softmax: leave its rows as they are."),
        Edit(RETURNED, "((written | read) & real[None, :]) | (column == row)", "Padding sees "
             "itself. Nobody may see it, not even itself."),
        Edit(RETURNED, "(written & real[None, :]) | read", "Padding is hidden in what is written "
             "only: in Python & binds more tightly than |. Hide all columns of padding."),
        Edit(RETURNED, "written | (read & real[None, :])", "Padding is hidden in what is read "
             "only. Hide all columns of padding."),
        Edit(RETURNED, "~((written | read) & real[None, :])", "True and False are exchanged: True "
             "means that it may be seen. (torch's own modules expect such masks sometimes one way "
             "round, sometimes the other.)"),
        Other(lambda *args: torch.where(visible(*args), 0.0, -torch.inf), "These are numbers to "
              "be added to the scores, 0 and minus infinity. Return the mask behind them: True "
              "where it may be seen."),
    ),
)  # fmt: skip
