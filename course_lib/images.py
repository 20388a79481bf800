"""Pictures: cut into patches and joined again, and where the course's own come from.

B or N pictures, C channels, S their height and width in pixels, P a patch's. Values are 0 (dark) to
1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

SPLITS = ("train", "test")


def cut_patches(images: Tensor, size: int) -> Tensor:
    """(B, C, height, width) -> (B, patches, C·P·P), in reading order; P = size.

    Raises ValueError where height or width is no multiple of the patch."""
    check_patches(images, size)
    batch, channels, height, width = images.shape
    rows, columns = height // size, width // size
    split = images.reshape(batch, channels, rows, size, columns, size)
    return split.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, channels * size**2)


def join_patches(patches: Tensor, size: int, rows: int) -> Tensor:
    """(B, patches, C·P·P) -> (B, C, height, width): what `cut_patches` cut, in `rows` rows."""
    split = patches.unflatten(1, (rows, -1)).unflatten(3, (-1, size, size))  # (B, r, c, C, P, P)
    return split.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)


def check_patches(images: Tensor, size: int) -> None:
    """Raise ValueError unless these are pictures (B, C, height, width) that patches fill."""
    if images.dim() != 4 or 0 in images.shape or not images.is_floating_point():
        raise ValueError(
            f"pictures of shape {tuple(images.shape)} and type {images.dtype} were given; expected "
            "(batch, channels, height, width) of floats, at least one of each. Add missing axes "
            "with [None], and divide whole numbers 0 to 255 by 255."
        )
    height, width = images.shape[2:]
    if height % size or width % size:
        raise ValueError(
            f"pictures of {height}×{width} pixels were given; expected multiples of the patch, "
            f"{size}. Cut or pad them to {-(-height // size) * size}×{-(-width // size) * size}."
        )


@dataclass(frozen=True)
class LabelledPictures:
    """Pictures (N, C, S, S) and the class of each: labels (N,), the classes' names.

    Raises ValueError unless every picture has a label, and every label a name."""

    pixel_values: Tensor
    labels: Tensor
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        known = (self.labels >= 0) & (self.labels < len(self.names))
        if self.labels.shape != (len(self.pixel_values),) or not known.all():
            raise ValueError(
                f"{len(self.pixel_values)} pictures and labels {self.labels.tolist()[:4]} of shape "
                f"{tuple(self.labels.shape)} were given; expected a number of the names, 0 to "
                f"{len(self.names) - 1}, for each picture."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: slice | Tensor) -> LabelledPictures:
        return LabelledPictures(self.pixel_values[which], self.labels[which], self.names)


def digits(split: str = "train") -> LabelledPictures:
    """scikit-learn's 1,797 handwritten digits, 8×8 and grey: the first 1,437 are to learn from, the
    last 360 ("test") to be tested on.

    Neighbours in the file look alike, so the end of it is a harder test than every fifth: the
    nearest picture of the rest has the right digit for 95.6% of the last 360, for 99.2% of every
    fifth. Raises ValueError for another split."""
    _check_split(split)
    from sklearn.datasets import load_digits

    result = load_digits()
    part = slice(0, 1_437) if split == "train" else slice(1_437, None)
    pixels = torch.tensor(result.images[part], dtype=torch.float32)[:, None] / 16  # (N, 1, 8, 8)
    return LabelledPictures(pixels, torch.tensor(result.target[part]), tuple("0123456789"))


# ---------------------------------------------------------------- scenes

CELL, INK = 8, 7  # pixels of a cell of the 3×3 grid, and of a shape in it
ROWS, COLUMNS = ("top", "middle", "bottom"), ("left", "centre", "right")
COLOURS = {  # words of the micro-world; told apart by readers who are colour-blind, too
    "red": (0.84, 0.37, 0.0), "blue": (0.0, 0.45, 0.70),
    "green": (0.0, 0.62, 0.45), "yellow": (0.94, 0.89, 0.26),
}  # fmt: skip
BACKGROUND = 0.1
_GRID = abs(np.arange(INK) - INK // 2)  # distance from the middle
SHAPES = {  # (INK, INK): where there is colour
    "square": np.ones((INK, INK), dtype=bool),
    "circle": np.hypot(_GRID[:, None], _GRID[None]) < INK / 2 - 0.1,
    "triangle": _GRID[None] <= np.arange(INK)[:, None] / 2,
    "cross": (_GRID <= 1)[:, None] | (_GRID <= 1)[None],
}


class Thing(NamedTuple):
    """What stands in one cell of a scene, in words."""

    colour: str
    shape: str
    row: str
    column: str

    def __str__(self) -> str:
        return f"a {self.colour} {self.shape} at the {self.row} {self.column}"


Pair = tuple[Thing, Thing]


@dataclass(frozen=True)
class Scenes:
    """Pictures (N, 3, 24, 24) of two things each, and the things, in reading order."""

    pixel_values: Tensor
    things: tuple[Pair, ...]

    @property
    def sentences(self) -> list[str]:
        """What each picture shows, all of it, in words."""
        return [sentence_of(pair) for pair in self.things]

    def labelled(self, ask: Callable[[Pair], str]) -> LabelledPictures:
        """The pictures with the answers to a question: `lambda pair: pair[0].colour`."""
        answers = [ask(pair) for pair in self.things]
        names = tuple(sorted(set(answers)))
        labels = torch.tensor([names.index(answer) for answer in answers])
        return LabelledPictures(self.pixel_values, labels, names)


def sentence_of(pair: Pair) -> str:
    return f"{pair[0]} and {pair[1]} ."


def scenes(count: int, seed: int = 0, split: str = "train") -> Scenes:
    """Scenes drawn by rules: two things in different cells of a 3×3 grid, each a shape in a colour.

    Where in its cell a shape stands, how bright it is and a little noise are drawn, too. As in the
    micro-world, a hash of the sentence says on which side it is told: no picture of "test", one in
    five, has the sentence of one of "train". Raises ValueError for no scenes or another split."""
    _check_split(split)
    if count < 1:
        raise ValueError(f"count={count!r} was given; expected at least one scene.")
    draw = np.random.default_rng([seed, SPLITS.index(split)])
    pairs: list[Pair] = []
    while len(pairs) < count:
        cells = sorted(draw.choice(9, 2, replace=False))
        colours, shapes = draw.choice(list(COLOURS), 2), draw.choice(list(SHAPES), 2)
        first, second = (
            Thing(str(colours[i]), str(shapes[i]), ROWS[cell // 3], COLUMNS[cell % 3])
            for i, cell in enumerate(cells)
        )
        heldout = crc32(sentence_of((first, second)).encode()) % 5 == 0
        if heldout == (split == "test"):
            pairs.append((first, second))
    pictures = np.stack([_picture(pair, draw) for pair in pairs])
    return Scenes(torch.tensor(pictures, dtype=torch.float32), tuple(pairs))


def _picture(pair: Pair, draw: np.random.Generator) -> np.ndarray:
    """(3, 24, 24)."""
    picture = np.full((3, 3 * CELL, 3 * CELL), BACKGROUND)
    for thing in pair:
        down, right = draw.integers(0, CELL - INK + 1, 2)
        y, x = CELL * ROWS.index(thing.row) + down, CELL * COLUMNS.index(thing.column) + right
        colour = np.array(COLOURS[thing.colour]) * draw.uniform(0.7, 1.05)
        inside = picture[:, y : y + INK, x : x + INK]
        inside[:, SHAPES[thing.shape]] = colour[:, None]
    return (picture + draw.normal(0, 0.02, picture.shape)).clip(0, 1)


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise ValueError(f'split={split!r} was given; expected "train" or "test".')
