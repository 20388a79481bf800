"""A fine-tuned model as what it changed of another that the site has: a third of its own size.

Differences are whole numbers from −4 to 4, each group of GROUP of a row with a scale; of the token
table only the rows whose tokens were trained. Vectors, and what the other model lacks, are written
as `weights.write_model` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from weights import (
    as_letters,
    as_written,
    config_of,
    in_groups,
    named,
    numbers_of,
    scales,
    whole,
    write_script,
)  # fmt: skip

GROUP, LARGEST = 32, 4  # numbers with a common scale; the largest of both signs
UNCHANGED = 0.01  # of a row's largest weight: less is weight decay alone


def write_difference(
    name: str, model: nn.Module, base: tuple[str, Any], folder: Path, **more: Any
) -> Path:
    """Write folder/name.js, which needs the base's own script beside it, and return its path.

    base: the name and the model from which this one was trained, as shipped; more: what else the
    script holds."""
    changes, own = {}, {}
    before = named(as_written(base[1]))
    for key, weight in named(model.state_dict()).items():
        if weight.dim() == 2 and key in before:
            changes[key] = _change(weight, before[key])
        else:
            own[key] = weight
    parts = [
        as_letters(steps) + _pairs(numbers + LARGEST) for _, numbers, steps, _ in changes.values()
    ]
    what = {
        "config": config_of(model),
        "base": base[0],
        **numbers_of(own),
        "changes": {
            "tensors": [[key, rows.tolist(), top] for key, (rows, _, _, top) in changes.items()],
            "group": GROUP,
            **whole("".join(parts)),
        },
        **more,
    }
    return write_script(name, what, folder)


def _pairs(numbers: np.ndarray) -> str:
    """Whole numbers from 0 to 8, two a letter."""
    return as_letters(numbers.reshape(-1, 2) @ (1, 9))


def as_changed(model: nn.Module, base: nn.Module) -> dict[str, Tensor]:
    """The model's state_dict with the weights that `write_difference` writes."""
    before, result = named(as_written(base)), dict(as_written(model))
    for key, weight in model.state_dict().items():
        short = key.removeprefix("encoder.")
        if weight.dim() == 2 and short in before:
            rows, numbers, steps, top = _change(weight, before[short])
            result[key] = before[short].clone()
            each = scales(steps, top, GROUP, numbers.shape[1])
            result[key][torch.from_numpy(rows)] += torch.from_numpy(numbers * each)
    return result


def _change(weight: Tensor, before: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The rows that changed (R,), and of their differences what `in_groups` gives."""
    difference = weight - before
    least = UNCHANGED * weight.abs().amax(dim=1)
    rows = np.flatnonzero((difference.abs().amax(dim=1) > least).numpy())
    return rows, *in_groups(difference[torch.from_numpy(rows)], GROUP, LARGEST)
