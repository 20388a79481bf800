"""Exercise 08.3: gradient-disentangled embedding sharing. B texts of T tokens, V words, width E."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def look_up(input_ids: Tensor, table: Tensor, difference: Tensor, pad: int) -> Tensor:
    """stop_gradient(E_G) + Δ, looked up (He, Gao and Chen 2021): (B, T, E)."""
    fixed = table.detach()[input_ids]
    own = F.embedding(input_ids, difference, padding_idx=pad)
    return fixed + own


def case(draw: Draw, B: int, T: int, padded: bool = False) -> Case:
    """padded: every text has padding; words come more than once where T is large."""
    V, E, pad = 7, 4, draw.integer(0, 2)
    input_ids = draw.ids(3, V - 1, B, T)
    if padded:
        input_ids[:, T - draw.integer(1, T - 1) :] = pad
    return input_ids, draw.normal(V, E), draw.normal(V, E), pad


SUM, FIXED = "fixed + own", "table.detach()[input_ids]"
OWN = "F.embedding(input_ids, difference, padding_idx=pad)"

SHARING = Exercise(
    **written("08.3"),
    solution=look_up,
    returns=Numbers("vectors", shape="B T E"),
    see="course_lib.family.electra.DisentangledEmbedding (the table is the generator's own)",
    when_raised=(
        (r"must be Tensor, not|indices must be|embedding\(\): argument", "F.embedding takes the "
         "ids first, then the table: F.embedding(input_ids, table)."),
        (r"Padding_idx|padding_idx", "`pad` is the number of a word: padding_idx=pad."),
    ),
    stages=(
        Stage("one token", each(case, (1, 1), (1, 1))),
        Stage("a text", each(case, (1, 5), (1, 9))),
        Stage("several texts, with padding", each(case, (2, 3, True), (3, 8, True))),
    ),
    gradient=("difference",),
    mistakes=(
        Edit(OWN, "difference[input_ids]", "The padding's row of the difference gets a "
             "gradient. Padding is no word and must not be trained: use F.embedding's "
             "padding_idx."),
        Edit(SUM, "fixed", "The difference has no effect: the discriminator would read the "
             "generator's table for ever."),
        Edit(SUM, "own", "Only the difference is looked up. It begins at zero: all words would be "
             "the same vector. Add the table's row."),
        Edit(SUM, "fixed + own * (input_ids != pad)[..., None]", "The vectors of the padding "
             "lack their difference. Add it there as everywhere; only its gradient is left out."),
        Edit(SUM, "(fixed + own) * (input_ids != pad)[..., None]", "The vectors of the padding "
             "are zero. Look them up like all others; only the gradient is left out."),
        Edit(SUM, "(fixed + own) / 2", "This is the mean of table and difference. Return their "
             "sum."),
    ),
)  # fmt: skip
