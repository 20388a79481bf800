"""Drawing one word a position from a model's distribution: ELECTRA's corruption.

N positions, V vocabulary. A sample is a function of the logits and of one random number a position,
so both twins agree, but for numbers that fall on a boundary within rounding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .upcast import upcast_type

PIECE = 128  # words that are added up before the position is looked for
TILE_BYTES = 2**22  # of one tile of rows: it stays in the processor's own memory
SAFE = (1e-20, 1e30)  # a row's sum of exp(logit) in here has neither vanished nor overflowed


def sample_tokens_reference(logits: Tensor, uniforms: Tensor) -> Tensor:
    """One position at a time: logits (N, V), uniforms (N,) from 0 up to, not including, 1 -> ids
    (N,).

    The words' probabilities stand side by side on a line from 0 to 1; the uniform number points at
    one. A word with the logit −inf has no piece of the line and is never drawn. Computed in
    float64. Raises ValueError for other shapes or numbers, and for a row whose largest logit is not
    a finite number."""
    _check(logits, uniforms)
    drawn = []
    for row, uniform in zip(logits.double(), uniforms.double(), strict=True):
        ends = row.softmax(dim=-1).cumsum(dim=-1)  # where each word's piece of the line ends
        ends = ends / _checked_length(ends[-1])  # the last at 1, in spite of rounding
        drawn.append(int((ends <= uniform).sum()))
    return torch.tensor(drawn, dtype=torch.int64, device=logits.device)


@torch.no_grad()
def sample_tokens(logits: Tensor, uniforms: Tensor) -> Tensor:
    """The same in two steps: which run of PIECE words, then which word of the run.

    A running sum over V words is slow, as each addition waits for the one before; sums of runs need
    not wait. The rows go through one small tile, a few at a time, so no second (N, V) is written.
    Words' masses are computed in float32, or in float64 for float64 logits; the positions on the
    line in float64."""
    _check(logits, uniforms)
    count, words = logits.shape
    dtype = upcast_type(logits)
    runs = -(-words // PIECE)
    rows = max(1, TILE_BYTES // (runs * PIECE * dtype.itemsize))
    if logits.is_cuda:
        rows = max(1, count)  # many small steps would only wait for each other
    # The last run is filled up with words of mass 0, which cannot be drawn.
    masses = logits.new_zeros((min(rows, count), runs * PIECE), dtype=dtype)
    drawn = torch.empty(count, dtype=torch.int64, device=logits.device)
    for first in range(0, count, rows):
        part = logits[first : first + rows].to(dtype)
        tile = masses[: len(part)]
        by_run = tile.view(-1, runs, PIECE)
        torch.exp(part, out=tile[:, :words])
        sums = by_run.sum(-1)  # (rows, runs)
        if not _is_safe(sums.sum(-1)):  # rare: only then is the largest logit looked for
            torch.sub(part, part.amax(-1, keepdim=True), out=tile[:, :words]).exp_()
            sums = by_run.sum(-1)
        run, within = _point(sums, uniforms[first : first + rows].double())
        place, _ = _point(by_run[torch.arange(len(run), device=run.device), run], within)
        torch.add(place, run, alpha=PIECE, out=drawn[first : first + rows])
    return drawn


def _point(masses: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Masses (N, K) side by side on a line, uniforms (N,) of its length, float64: at which each
    points (N,), and at which fraction of that one's own piece (N,), from 0 to 1."""
    ends = F.pad(masses.cumsum(-1, dtype=torch.float64), (1, 0))  # (N, K + 1), the first 0
    length = _checked_length(ends[:, -1:])
    # Rounding may bring a point to the line's very end, and so beyond its last word.
    targets = torch.minimum(uniforms[:, None] * length, length.nextafter(torch.zeros_like(length)))
    # The first end beyond: a word without mass ends where the one before it does.
    after = torch.searchsorted(ends, targets, right=True)
    begin, end = ends.gather(1, after - 1), ends.gather(1, after)
    return (after - 1).squeeze(1), ((targets - begin) / (end - begin)).squeeze(1)


def _is_safe(totals: Tensor) -> bool:
    return bool(((totals > SAFE[0]) & (totals < SAFE[1])).all())


def _check(logits: Tensor, uniforms: Tensor) -> None:
    if logits.dim() != 2 or uniforms.shape != logits.shape[:1] or not logits.shape[1]:
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} and uniforms of shape {tuple(uniforms.shape)} "
            "were given; expected (N, V), V at least 1, and (N,): a row of logits and one number a "
            "position. Give torch.rand(len(logits)) as uniforms."
        )
    if not bool(((uniforms >= 0) & (uniforms.double() < 1)).all()):
        raise ValueError(
            f"shares from {uniforms.min().item()} to {uniforms.max().item()} were given; expected "
            "numbers from 0 up to, not including, 1, as torch.rand gives them."
        )


def _checked_length(length: Tensor) -> Tensor:
    """The length of each line; ValueError where it is not a number."""
    if bool(length.isnan().any()):
        raise ValueError(
            "a row of logits was given whose largest one is not a finite number; expected logits "
            "of which at least one is finite and none is nan or +inf. Has training diverged?"
        )
    return length
