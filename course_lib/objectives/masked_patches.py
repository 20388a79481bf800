"""Masked patches: BERT's task on pictures. Hide some patches, predict their pixels.

Dosovitskiy et al. 2020 tried a task of this kind (section 4.5): better than no pre-training, not as
good as labels. Here the loss is a squared error of pixels. N pictures, C channels, P a patch's
height and width."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.images import cut_patches, join_patches
from course_lib.kernels.masked_loss import IGNORED
from course_lib.kernels.masking import CHOICE, count_to_predict, random_bits
from course_lib.kernels.upcast import upcast

from .masked_lm import check_rate
from .sequences import Batch, shuffled


def hide_patches(
    count: int, examples: Tensor, *, rate: float = 0.5, seed: int = 0, epoch: int = 0
) -> Tensor:
    """(N, count) bool: which of each picture's `count` patches are hidden, max(1, round(rate ·
    count)) of them.

    examples (N,): the number of each picture among all. Another epoch hides others; the same (seed,
    epoch, example) the same ones. Raises ValueError for a rate that is no fraction."""
    check_rate(rate)
    numbers, places = examples.numpy()[:, None], np.arange(count)[None]
    order = random_bits(seed, epoch, numbers, CHOICE, places).argsort(axis=1, kind="stable")
    hidden = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(hidden, order[:, : count_to_predict(count, rate)], True, axis=1)
    return torch.from_numpy(hidden)


def masked_patch_batch(pixel_values: Tensor, patch_size: int, hidden: Tensor) -> Batch:
    """Pictures (N, C, S, S) and which patches are hidden (N, patches), as a model's inputs and what
    `masked_patch_loss` compares with: the pixels where a patch is hidden, −100 elsewhere.

    Raises ValueError where the pictures themselves hold −100."""
    if (pixel_values == IGNORED).any():
        raise ValueError(
            f"pictures that hold {IGNORED} were given; expected none: it means 'not hidden'. "
            "Scale the values to 0..1."
        )
    patches = cut_patches(pixel_values, patch_size)
    expected = torch.where(hidden[..., None], patches, float(IGNORED))
    pixels = join_patches(expected, patch_size, pixel_values.shape[2] // patch_size)
    return Batch({"pixel_values": pixel_values, "bool_masked_pos": hidden}, {"pixels": pixels})


def masked_patch_batches(
    pixel_values: Tensor, patch_size: int, *, batch_size: int, rate: float = 0.5, seed: int = 0
) -> Callable[[int], Batch]:
    """Batches of pictures (N, C, S, S) as a pure function of the step; every epoch visits them in a
    new order and hides other patches. Raises ValueError as `shuffled` and `hide_patches` do."""
    check_rate(rate)
    which = shuffled(len(pixel_values), batch_size, seed)
    count = cut_patches(pixel_values[:1], patch_size).shape[1]

    def batches(step: int) -> Batch:
        examples, epoch = which(step), step // (len(pixel_values) // batch_size)
        hidden = hide_patches(count, examples, rate=rate, seed=seed, epoch=epoch)
        return masked_patch_batch(pixel_values[examples], patch_size, hidden)

    return batches


def masked_patch_loss(outputs: Any, targets: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mean squared error over the pixels of the hidden patches: outputs.reconstruction (B, C, S, S)
    against targets["pixels"], where −100 is ignored. Of a part of a batch, targets["num_pixels"] is
    how many the whole has."""
    predicted, pixels = outputs.reconstruction, targets["pixels"]
    hidden = pixels != IGNORED
    apart = (upcast(predicted) - pixels)[hidden].square().sum()
    loss = apart / targets.get("num_pixels", hidden.sum()).clamp(min=1)
    return {"total": loss, "patches": loss}
