"""Exercise 15.3: positions for a larger picture. n×n patches before, H hidden."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
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


def resize(table: Tensor, rows: int, columns: int) -> Tensor:
    """Bilinear, corners aligned, class token kept: (1 + n·n, H) -> (1 + rows·columns, H)."""
    first, grid = table[:1], table[1:]
    n = math.isqrt(len(grid))
    picture = grid.T.reshape(1, -1, n, n)  # a picture of n×n pixels with H channels
    new = F.interpolate(picture, (rows, columns), mode="bilinear", align_corners=True)
    return torch.cat([first, new[0].flatten(1).T])


# ---------------------------------------------------------------- cases


def case(draw: Draw, n: int, rows: int, columns: int, H: int) -> Case:
    return draw.normal(1 + n * n, H), rows, columns


def by_hand(draw: Draw) -> list[Case]:
    table = torch.tensor([[9.0], [0.0], [2.0], [4.0], [6.0]], dtype=torch.float64)
    grid = torch.tensor([[5.0], *([10.0 * y + x] for y in range(3) for x in range(3))])
    return [(table, 3, 3), (grid.double(), 5, 5), (table**2, 3, 3)]


def as_a_line(table: Tensor, rows: int, columns: int) -> Tensor:
    """A known mistake: the grid is taken for a line."""
    line = table[1:].T[None]
    new = F.interpolate(line, rows * columns, mode="linear", align_corners=True)
    return torch.cat([table[:1], new[0].T])


def all_as_a_line(table: Tensor, rows: int, columns: int) -> Tensor:
    """A known mistake: so is the class token."""
    new = F.interpolate(table.T[None], 1 + rows * columns, mode="linear", align_corners=True)
    return new[0].T


def added_behind(table: Tensor, rows: int, columns: int) -> Tensor:
    """A known mistake: zeros for the positions that are new, or the first of those there are."""
    grid = table[1:]
    more = grid.new_zeros(max(0, rows * columns - len(grid)), grid.shape[1])
    return torch.cat([table[:1], torch.cat([grid, more])[: rows * columns]])


PICTURE = "grid.T.reshape(1, -1, n, n)"
NEW = 'F.interpolate(picture, (rows, columns), mode="bilinear", align_corners=True)'
RETURN = "torch.cat([first, new[0].flatten(1).T])"
CORNERS = "Expected corners that stay where they are: align_corners=True."

POSITIONS = Exercise(
    **written("15.3"),
    solution=resize,
    returns=Numbers("table of positions", shape="1+rows·columns H"),
    see='course_lib.family.vit.resize_positions with how="bilinear"; transformers\' is bicubic, '
    "the default there",
    when_raised=(
        (r"[Ii]nput Error|Got \d+D input|input and output must have the same number", "bilinear "
         "reads a batch of images, (1, H, n, n): four axes. Vectors of length H become H "
         "channels."),
        (r"invalid for input of size|shape '\[", "The class token is not in the grid: remove its "
         "row first. Then n·n rows are left, and n is the square root of their number."),
        (r"Sizes of tensors must match|same number of dimensions", "torch.cat expects two tables "
         "of H columns: (1, H) and (rows·columns, H)."),
    ),
    stages=(
        Stage("one number per position, on paper", by_hand),
        Stage("longer vectors", each(case, (2, 4, 4, 3), (3, 5, 5, 4))),
        Stage("grids that are not square",
              each(case, (3, 2, 5, 4), (2, 5, 3, 3), (4, 3, 6, 2), (4, 8, 2, 3))),
        Stage("smaller grids", each(case, (4, 3, 3, 3), (5, 2, 4, 4))),
        Stage("the grid it has", each(case, (3, 3, 3, 4), (2, 2, 2, 5))),
    ),
    mistakes=(
        Edit(NEW, 'F.interpolate(picture, (rows, columns), mode="bilinear", align_corners=False)',
             "You interpolate with align_corners=False: the old and the new grid share their "
             f"*outlines*, so the corner patches move. {CORNERS}"),
        Edit(NEW, 'F.interpolate(picture, (rows, columns), mode="bicubic", align_corners=False)',
             "This is bicubic, with corners that move, as in transformers. The authors' code "
             f"interpolates linearly and keeps the corners. {CORNERS}"),
        Edit(NEW, 'F.interpolate(picture, (rows, columns), mode="bicubic", align_corners=True)',
             "This is bicubic, which uses four neighbours on a line. Expected bilinear, which uses "
             "two on a line, four on the grid."),
        Edit(NEW, 'F.interpolate(picture, (rows, columns), mode="nearest")', "Each new patch gets "
             "a copy of an old position, so that neighbours share one. Interpolate between them."),
        Edit(NEW, 'F.interpolate(picture, (rows, columns), mode="area")', "You average over areas. "
             "Interpolate between neighbours."),
        Edit(NEW, 'F.interpolate(picture, (columns, rows), mode="bilinear", align_corners=True)',
             "Rows and columns are exchanged: the grid's size is (rows, columns), as height comes "
             "before width."),
        Other(as_a_line, "You interpolate along the table, as if all patches were in one line. The "
              "last patch of a row is not next to the next row's first: make it a grid first."),
        Other(all_as_a_line, "You interpolate along the whole table, including the class token. It "
              "has no place in the image and its position stays; the others form a grid."),
        Other(added_behind, "You keep the old rows and add new ones (or cut some off) at the end. "
              "Rows of the grid now have another length, so position 5 means another place. "
              "Interpolate over the grid."),
        Edit(RETURN, "new[0].flatten(1).T", "The class token's position is missing. It comes "
             "first, as it was."),
        Edit(RETURN, "torch.cat([new[0].flatten(1).T, first])", "The class token's position comes "
             "last in your answer. It comes first."),
        Edit(RETURN, "torch.cat([torch.zeros_like(first), new[0].flatten(1).T])", "The class "
             "token's position is zero in your answer. It stays as it was."),
        Edit(RETURN, "torch.cat([new[0].flatten(1).T.mean(0, keepdim=True), "
             "new[0].flatten(1).T])", "The class token's position is the patches' mean in your "
             "answer. It stays as it was."),
        Edit(PICTURE, "grid.reshape(1, -1, n, n)", "A reshape from (n·n, H) to (H, n, n) mixes "
             "positions and channels. Transpose first: grid.T is (H, n·n)."),
        Edit(RETURN, "torch.cat([first, new[0].reshape(rows * columns, -1)])", "A reshape from "
             "(H, rows, columns) to (rows·columns, H) mixes channels and positions. Flatten the "
             "grid, (H, rows·columns), then transpose."),
        Edit(PICTURE, "grid.T.reshape(1, -1, n, n).transpose(2, 3)", "You read the old grid column "
             "by column, the new one row by row."),
        Edit(RETURN, "torch.cat([first, new[0].transpose(1, 2).flatten(1).T])", "You read the old "
             "grid row by row, the new one column by column."),
    ),
)  # fmt: skip
