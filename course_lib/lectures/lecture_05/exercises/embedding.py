"""Exercise 05.1: the factorised embedding. B batch, T tokens, V pieces, E and H widths.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

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

Case = tuple[Tensor, Tensor, Tensor]  # ids (B, T), table (V, E), projection (E, H)
Sizes = tuple[int, int, int, int, int]  # B, T, V, E, H


def embed(ids: Tensor, table: Tensor, projection: Tensor) -> Tensor:
    """The rows of `ids` (B, T) from the table (V, E), then E to H: (B, T, H) (section 3.1)."""
    rows = table[ids]  # (B, T, E): narrow, and only the rows that occur
    return rows @ projection  # (B, T, E) · (E, H) -> (B, T, H)


def _after(change: Callable[[Tensor], Tensor]) -> Answer:
    return lambda ids, table, projection: change(embed(ids, table, projection))


def _before(change: Callable[[Tensor], Tensor]) -> Answer:
    return lambda ids, table, projection: change(table[ids]) @ projection


def _standard(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def _unit(x: Tensor) -> Tensor:
    return F.normalize(x, dim=-1)


NORMALISED = (
    "The vectors are normalised. ALBERT has a LayerNorm here too (between look-up and projection, "
    "over the sum with position and segment), but it is no part of this exercise."
)
BENT = (
    "A non-linear function stands in your answer. The two factors stand for one matrix V×H, so "
    "nothing may come between them or after them."
)

EMBEDDING_SUSPECTS = (
    Suspect(
        "projection transposed",
        "The projection is multiplied the wrong way round. That goes unnoticed where E = H. A row "
        "of the table is a row vector: table[ids] @ projection.",
        lambda ids, table, projection: table[ids] @ projection.T,
    ),
    Suspect(
        "no projection",
        "Your result is the row of the table itself: the projection from E to H has no effect.",
        lambda ids, table, projection: table[ids],
    ),
    Suspect(
        "adds",
        "The row is added to the projection's numbers; it must be multiplied: a sum over E of "
        "row[e] · projection[e, h].",
        lambda ids, table, projection: (table[ids][..., None] + projection).sum(-2),
    ),
    Suspect(
        "scaled",
        "The rows are multiplied by √E. The original Transformer scales its embeddings so; BERT "
        "and ALBERT do not.",
        _before(lambda x: x * math.sqrt(x.shape[-1])),
    ),
    Suspect(
        "scaled",
        "The vectors are multiplied by √H. The original Transformer scales its embeddings so; BERT "
        "and ALBERT do not.",
        _after(lambda x: x * math.sqrt(x.shape[-1])),
    ),
    Suspect(
        "one row off",
        "Each token gets the row before its own: id 0 is the first row of the table.",
        lambda ids, table, projection: embed(ids - 1, table, projection),
    ),
    Suspect(
        "one row off",
        "Each token gets the row after its own: id 0 is the first row of the table.",
        lambda ids, table, projection: embed((ids + 1) % len(table), table, projection),
    ),
    *(Suspect("normalises", NORMALISED, where(how))
      for where in (_before, _after) for how in (_standard, _unit)),
    *(Suspect("non-linear", BENT, where(how))
      for where in (_before, _after) for how in (torch.tanh, torch.relu, F.gelu)),
)  # fmt: skip


def _case(draw: Draw, sizes: Sizes) -> Case:
    """Drawn inputs. A single text repeats one id: else shapes could not tell mistakes apart."""
    B, T, V, E, H = sizes
    ids = draw.ids(0, V - 1, B, T)
    if B == 1:
        different = torch.randperm(V, generator=draw.torch)[: T - 1]
        ids = torch.cat([different, different[:1]])[None]
    return ids, draw.normal(V, E), draw.normal(E, H)


def _ask_embedding(sizes: Sequence[Sizes]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        cases = [_case(draw, size) for size in sizes]
        for case in cases:
            _expect_embedding(answer, case, cases)

    return ask


def _expect_embedding(answer: Answer, case: Case, cases: Sequence[Case]) -> None:
    ids, table, projection = case
    given, right = call(answer, *case), embed(*case)
    if isinstance(given, Tensor) and given.shape != right.shape:
        _name_shape(given, case)
    given = expect_tensor(given, tuple(right.shape), "a vector of width H for each token")
    if close(given, right):
        return
    if found := find_suspect(answer, cases, EMBEDDING_SUSPECTS):
        raise Mistake(found.key, found.message)
    b, t, h = (
        int(i)
        for i in torch.unravel_index((given - right).abs().nan_to_num(1e9).argmax(), right.shape)
    )
    V, E, H = *table.shape, projection.shape[1]
    raise Mistake(
        "",
        f"With V, E, H = {V}, {E}, {H} and ids {ids.tolist()}: at [{b}, {t}, {h}] you have "
        f"{float(given[b, t, h]):.4f}; it is {float(right[b, t, h]):.4f}.",
    )


def _name_shape(given: Tensor, case: Case) -> None:
    """Name a mistake that the shape alone gives away."""
    ids, table, projection = case
    (B, T), (V, E), H, shape = ids.shape, table.shape, projection.shape[1], tuple(given.shape)
    if shape == (V, H):
        raise Mistake(
            "no look-up",
            f"Your result has {V} rows, one for each piece of the vocabulary: the whole table was "
            "projected and nothing was looked up. Expected one vector for each token.",
        )
    if shape == (B, T, E):
        raise Mistake(
            "no projection",
            f"Your vectors have width E = {E}: they are rows of the table. The projection that "
            f"leads to H = {H} is missing.",
        )
    if shape in ((B, H), (B, 1, H), (T, H) if B > 1 else (B, H)):
        raise Mistake(
            "tokens mixed",
            f"Your result has shape {shape}: the tokens of a text, or the texts of the batch, were "
            f"summed or averaged. Each of the {B}×{T} tokens has a vector of its own.",
        )
    if shape == (len(ids.unique()), H):
        raise Mistake(
            "repeated ids lost",
            f"Your result has {shape[0]} rows, one for each *different* id. A piece that occurs "
            "twice gets two rows, in the order of the text.",
        )


class NotedShapes(TorchFunctionMode):
    """Writes down the shape of every tensor that torch makes meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.shapes.append(tuple(made.shape))
        return made


def _ask_thrift(answer: Answer, draw: Draw) -> None:
    """Right is not enough: nothing as long as the vocabulary may be made on the way."""
    B, T, V, E, H = sizes = (2, 7, draw.integer(200, 300), 6, 10)
    case = _case(draw, sizes)
    _expect_embedding(answer, case, [case, _case(draw, (1, 4, 9, 3, 5))])
    with NotedShapes() as noted:
        call(answer, *case)
    sizes_made = [(shape, math.prod(shape)) for shape in noted.shapes if V in shape]
    said = f"Your result is right. But with V={V}, E={E}, H={H} and {B}×{T} tokens "
    if any(H in shape and numbers >= V * H for shape, numbers in sizes_made):
        raise Mistake(
            "whole table projected",
            f"{said}a matrix of {V}×{H} numbers was made on the way. The whole table is projected "
            "first: that is the V×H matrix which factorising is meant to avoid, made anew for "
            "every batch. Look up first.",
        )
    if any(numbers >= B * T * V for _, numbers in sizes_made):
        raise Mistake(
            "one-hot product",
            f"{said}{V} numbers were made for each token. Multiplying ones and zeros with the "
            "table picks a row, but reads all V of them: index the table instead.",
        )


def _ask_gradient(answer: Answer, draw: Draw) -> None:
    ids, table, projection = _case(draw, (2, 3, 7, 3, 5))
    for name, case in {
        "table": (ids, table.requires_grad_(), projection.clone()),
        "projection": (ids, table.detach(), projection.requires_grad_()),
    }.items():
        if not call(answer, *case).requires_grad:
            raise Mistake(
                "no gradient",
                f"The numbers are right, but no gradient reaches the {name}: it would never learn. "
                "Is there a .detach(), .data, torch.no_grad() or a new tensor on the way?",
            )


EMBEDDING = Exercise(
    id="05.1",
    title="A table in two factors",
    purpose="where ALBERT saves without losing much",
    difficulty=1,
    minutes=8,
    signature="my_embedding(ids, table, projection)",
    statement=(
        "`ids` (B, T) are whole numbers, `table` has shape (V, E) and `projection` (E, H). Return "
        "the vector of every token, (B, T, H): its row of the table, led from width E to width H. "
        "No positions, no segments, no LayerNorm, no bias. Never make a matrix of V×H numbers on "
        "the way: one stage looks."
    ),
    hints=(
        "Two steps: look up, then multiply. After the first step the shape is (B, T, E).",
        "A tensor of ids is an index: table[ids] has a row for each id, also for repeated ones.",
        "(B, T, E) @ (E, H) gives (B, T, H): the row stands on the left, the matrix on the right.",
    ),
    solution=embed,
    see=(
        "course_lib.family.albert.FactorisedEmbeddings (with positions, segments, LayerNorm and "
        "the projection's bias)"
    ),
    when_raised=(
        (
            r"\A.*(mat1 and mat2|cannot be multiplied|size mismatch).*\n.*linear\(",
            "linear(x, W) multiplies by W transposed. Give it projection.T, or write "
            "x @ projection.",
        ),
        (
            r"\A.*(mat1 and mat2|cannot be multiplied|must match|Expected size|size mismatch)",
            "The shapes do not compose. table[ids] is (B, T, E) and projection is (E, H), so the "
            "order is table[ids] @ projection. (Formulas that print E₂·E₁[x] have it the other "
            "way round.)",
        ),
    ),
    stages=(
        Check(
            "a table as wide as the model (E = H)",
            _ask_embedding([(1, 3, 6, 2, 2), (1, 4, 8, 3, 3), (1, 4, 5, 4, 4)]),
        ),
        Check("a narrow table (E < H)", _ask_embedding([(1, 4, 9, 2, 5), (1, 3, 7, 3, 8)])),
        Check("several texts", _ask_embedding([(3, 9, 4, 3, 7), (2, 12, 5, 2, 6)])),
        Check("nothing of size V×H is made", _ask_thrift),
        Check("table and projection can learn", _ask_gradient),
    ),
)
