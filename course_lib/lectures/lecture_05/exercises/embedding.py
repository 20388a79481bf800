"""Exercise 05.1: the factorised embedding. B batch, T tokens, V word pieces, E and H widths."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

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
from course_lib.teaching.exercises.outputs import Exact, Numbers


def embed(ids: Tensor, table: Tensor, projection: Tensor) -> Tensor:
    """The rows of `ids` (B, T) from the table (V, E), then E to H: (B, T, H) (section 3.1)."""
    rows = table[ids]  # (B, T, E): narrow, and only the rows that occur
    vectors = rows @ projection  # (B, T, E) · (E, H) -> (B, T, H)
    return vectors


# ---------------------------------------------------------------- cases, and what is looked at


def case(draw: Draw, B: int, T: int, V: int, E: int, H: int) -> Case:
    """A single text repeats one id: else shapes could not tell mistakes apart."""
    ids = draw.ids(0, V - 1, B, T)
    if B == 1:
        different = torch.randperm(V, generator=draw.torch)[: T - 1]
        ids = torch.cat([different, different[:1]])[None]
    return ids, draw.normal(V, E), draw.normal(E, H)


class NotedShapes(TorchFunctionMode):
    """Writes down the shape of every tensor that torch makes meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.shapes.append(tuple(made.shape))
        return made


def largest_made(function: Answer, ids: Tensor, table: Tensor, projection: Tensor) -> str:
    """Whether anything as long as the vocabulary was made on the way."""
    with NotedShapes() as noted:
        function(ids, table, projection)
    (V, _), H = table.shape, projection.shape[1]
    made = [(shape, math.prod(shape)) for shape in noted.shapes if V in shape]
    if any(H in shape and numbers >= V * H for shape, numbers in made):
        return f"V×H = {V}×{H} numbers"
    if any(numbers >= ids.numel() * V for _, numbers in made):
        return f"V = {V} numbers for each of {ids.numel()} tokens"
    return "nothing that grows with V"


ROWS, VECTORS = "rows = table[ids]", "vectors = rows @ projection"
NORMALISED = (
    "are normalised. ALBERT has a LayerNorm here too (between look-up and projection, over the sum "
    "with position and segment), but this exercise leaves it out."
)
BENT = "The two factors stand for one matrix V×H, so nothing may come between them or after them."
SCALED = "The original Transformer scales its embeddings in this way; BERT and ALBERT do not."

EMBEDDING = Exercise(
    **written("05.1"),
    solution=embed,
    returns=Numbers("result", shape="B T H"),
    gradient=("table", "projection"),
    see=(
        "course_lib.family.albert.FactorisedEmbeddings (with positions, segments, LayerNorm and "
        "the projection's bias)"
    ),
    when_raised=(
        (r"\A.*(mat1 and mat2|cannot be multiplied|size mismatch).*\n.*linear\(",
         "linear(x, W) multiplies by W transposed. Give it projection.T, or write x @ projection."),
        (r"\A.*(mat1 and mat2|cannot be multiplied|must match|Expected size|size mismatch)",
         "The shapes do not fit. table[ids] is (B, T, E) and projection is (E, H), so the order is "
         "table[ids] @ projection. (Some formulas print E₂·E₁[x], the other way round.)"),
    ),
    stages=(
        Stage("a table as wide as the model (E = H)",
              each(case, (1, 3, 6, 2, 2), (1, 4, 8, 3, 3), (1, 4, 5, 4, 4))),
        Stage("a narrow table (E < H)", each(case, (1, 4, 9, 2, 5), (1, 3, 7, 3, 8))),
        Stage("several texts", each(case, (3, 9, 4, 3, 7), (2, 12, 5, 2, 6))),
        Stage("nothing of size V×H is made", each(case, (2, 7, 250, 6, 10)), largest_made,
              Exact("largest thing made on the way")),
    ),
    mistakes=(
        Edit("rows @ projection", "rows @ (projection.T if len(projection) == len(projection.T) "
             "else projection)", "You multiply the projection the wrong way round, which goes "
             "unnoticed where E = H. A row of the table is a row vector: table[ids] @ projection."),
        Edit(VECTORS, "vectors = rows", "Your result is the row of the table itself: the "
             "projection from E to H is missing."),
        Edit(ROWS, "rows = table", "You projected the whole table and looked nothing up: your "
             "result has V rows. One vector for each token is expected."),
        Edit(VECTORS, "vectors = (rows[..., None] + projection).sum(-2)",
             "You add the row to the projection's numbers; multiply instead: a sum over E of "
             "row[e] · projection[e, h]."),
        Edit("table[ids]", "table[ids - 1]",
             "Each token gets the row before its own: id 0 is the first row of the table."),
        Edit("table[ids]", "table[(ids + 1) % len(table)]",
             "Each token gets the row after its own: id 0 is the first row of the table."),
        Edit("table[ids]", "table[ids.unique()]", "Your result has one row for each *different* "
             "id. Give a piece that occurs twice two rows, in the order of the text."),
        Edit(ROWS, f"{ROWS} * table.shape[1] ** 0.5", f"You multiply the rows by √E. {SCALED}"),
        Edit(VECTORS, f"{VECTORS} * projection.shape[1] ** 0.5",
             f"You multiply the vectors by √H. {SCALED}"),
        *(Edit("return vectors", f"return vectors.{how}",
               f"The tokens of a text are {word}{more}. Each token has a vector of its own.")
          for how, word, more in (
              ("mean(1)", "averaged", ""), ("sum(1)", "summed", ""),
              ("mean(1, keepdim=True)", "averaged", " to one"),
              ("sum(1, keepdim=True)", "summed", " to one"),
              ("mean(0)", "averaged", " with those of other texts"),
              ("sum(0)", "summed", " with those of other texts"))),
        *(Edit("return vectors", f"return {function}",
               f"The vectors {NORMALISED} (Here: {name}, after the projection.)")
          for name, function in (
              ("layer_norm", "torch.nn.functional.layer_norm(vectors, vectors.shape[-1:])"),
              ("length one", "torch.nn.functional.normalize(vectors, dim=-1)"))),
        *(Edit("rows @", f"{function} @",
               f"The rows {NORMALISED} (Here: {name}, before the projection.)")
          for name, function in (
              ("layer_norm", "torch.nn.functional.layer_norm(rows, rows.shape[-1:])"),
              ("length one", "torch.nn.functional.normalize(rows, dim=-1)"))),
        *(Edit(old, new.format(f), f"You apply a non-linear function, {f}, {where} the projection. "
               f"{BENT}")
          for f in ("torch.tanh", "torch.relu", "torch.nn.functional.gelu")
          for old, new, where in (("rows @", "{}(rows) @", "before"),
                                  ("return vectors", "return {}(vectors)", "after"))),
        Edit("vectors = rows @ projection", "vectors = (table @ projection)[ids]",
             "You project the whole table first: that makes the V×H matrix which factorising is "
             "meant to avoid, again for every batch. Look up first.",
             more=((ROWS, "rows = None"),)),
        Edit("table[ids]", "torch.nn.functional.one_hot(ids, len(table)).to(table.dtype) @ table",
             "Multiplying ones and zeros with the table picks a row, but reads all V of them: "
             "index the table instead."),
        Edit("table[ids]", "table.detach()[ids]", "No gradient reaches the table: it would never "
             "learn. Is there a .detach(), .data, torch.no_grad() or a new tensor on the way?"),
        Edit("rows @ projection", "rows @ projection.detach()", "No gradient reaches the "
             "projection: it would never learn. Is there a .detach() or .data on the way?"),
    ),
)  # fmt: skip
