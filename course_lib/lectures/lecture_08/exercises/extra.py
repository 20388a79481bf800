"""Exercise 08.7: how many weights disentangled attention adds."""

from __future__ import annotations

import torch

from course_lib.config import published
from course_lib.encoder import count_parameters
from course_lib.family.deberta import DebertaConfig, DebertaV2Config, deberta
from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    omitted,
    written,
)
from course_lib.teaching.exercises.outputs import Number


def extra_weights(L: int, d: int, k: int, shared: bool) -> int:
    """Weights of disentangled attention that BERT's blocks lack: 2Ld² + 2kd (appendix A.7)."""
    table = 2 * k * d  # one, for all layers
    matrices = 0 if shared else L * 2 * d * d  # a key and a query of positions in each layer
    return table + matrices


def sizes(draw: Draw, shared: bool, least: int = 3, most: int = 12) -> Case:
    L = draw.integer(least, most)
    return L, draw.integer(11, 49), draw.integer(51, 99), shared


def published_sizes(_draw: Draw | None = None) -> list[Case]:
    """DeBERTa-base, then DeBERTa-v3-base."""
    first = published("deberta", "base", DebertaConfig)
    v3 = published("deberta-v3", "base", DebertaV2Config)
    return [(first.num_layers, first.hidden_size, first.span, False),
            (v3.num_layers, v3.hidden_size, v3.span, v3.shared_projections)]  # fmt: skip


def closing_answer() -> str:
    """The answer to the question that the statement ends with."""
    first, second = (extra_weights(*sizes) for sizes in published_sizes())
    with torch.device("meta"):  # counts without filling a hundred million numbers
        whole = count_parameters(deberta("base"))
    return (
        f"DeBERTa-base: {first:,} of {whole:,}, that is {first / whole:.1%}. DeBERTa-v3-base, "
        f"whose projections are shared, adds {second:,}."
    )


TABLE, MATRICES = "2 * k * d", "L * 2 * d * d"
WORDS_OWN = "positions pass through the *words'* matrices, which are there already."

EXTRA = Exercise(
    **written("08.7"),
    solution=extra_weights,
    returns=Number("count of weights", tol=1e-9),
    see="course_lib.family.deberta.FusedProjections has position_key and position_query, "
    "SeparateProjections can do without them",
    stages=(
        Stage("one layer, matrices of its own", each(sizes, *[(False, 1, 1)] * 2)),
        Stage("several layers", each(sizes, *[(False,)] * 4)),
        Stage("shared projections", each(sizes, *[(False,), (True,)] * 3)),
        Stage("DeBERTa-base and DeBERTa-v3-base", published_sizes, remark=closing_answer),
    ),
    mistakes=(
        Edit(TABLE, "L * 2 * k * d", "The table of distances was counted once a layer. There is "
             "one, which all layers share."),
        omitted(TABLE, "the table of distances, 2k rows of width d"),
        Edit(TABLE, "(2 * k + 1) * d",
             "The table was counted with 2k + 1 rows. It has 2k, numbered 0 to 2k − 1."),
        Edit(TABLE, "k * d",
             "The table was counted with k rows. It has 2k, about k for either direction."),
        Edit(TABLE, "2 * 2 * k * d", "Two tables were counted. Keys and queries of positions are "
             "projected from the same one."),
        Edit(TABLE, "2 * k * 2 * k * d", "The table was counted with a row for each pair of 2k "
             "tokens. There is one row for each distance."),
        Edit(MATRICES, "L * 5 * d * d", "Five matrices a layer were counted. Positions have two, "
             "for keys and queries; the words' own are BERT's."),
        Edit(MATRICES, "L * 4 * d * d", "Four matrices per layer were counted. Positions have "
             "two, for keys and queries: they have no values, and the output projection exists "
             "already."),
        Edit(MATRICES, "L * 3 * d * d", "Three matrices a layer were counted. Positions have two, "
             "for keys and queries: nothing is gathered from them, so they have no values."),
        Edit(MATRICES, "L * d * d", "One matrix a layer was counted. There are two: one makes the "
             "positions' keys, one their queries."),
        omitted(MATRICES, "the matrices for the positions' keys and queries, two a layer, d × d"),
        Edit(MATRICES, "2 * d * d", "The two matrices were counted once. Each layer has its own; "
             "only the table exists once."),
        Edit(MATRICES, "L * 2 * d", "The matrices were counted with d weights each. They are d × "
             "d."),
        Edit(MATRICES, "L * 2 * 2 * k * d", "The matrices were counted as 2k × d. They lead from "
             "width d to width d, whatever the number of rows."),
        Edit("0 if shared else", "-table if shared else", "With shared projections nothing was "
             "counted. The table of distances is still there."),
        Edit("0 if shared else ", "", "`shared` has no effect. Shared projections are those of the "
             "words: no matrix is added."),
        Edit("0 if shared", "2 * d * d if shared", "With `shared` one pair of matrices was counted "
             f"for all layers. Shared means: {WORDS_OWN}"),
        Edit("0 if shared", "L * d * d if shared", "With `shared` one matrix a layer was counted. "
             f"Shared means: {WORDS_OWN}"),
        Edit("if shared", "if not shared",
             "`shared` is read the wrong way round: shared matrices are not added."),
        Edit("table + matrices", "table + matrices + 2 * L * d * (not shared)", "Biases of both "
             "matrices were counted, d each; the exercise leaves them out."),
        Edit("table + matrices", "table + matrices + L * d * (not shared)", "A bias a layer was "
             "counted, d numbers (the released code has one, of the positions' queries); the "
             "exercise leaves biases out."),
        Edit("table + matrices", "table + matrices - 512 * d", "BERT's table of absolute "
             "positions, with 512 rows, was subtracted. Count only what is added."),
        Edit("table + matrices", "table + matrices + 4 * L * d * d", "The words' own matrices were "
             "counted, four a layer. They are BERT's; expected is what is added."),
        Edit("table + matrices", "4 * (table + matrices)",
             "Bytes were counted, four a weight; expected are weights."),
    ),
)  # fmt: skip
