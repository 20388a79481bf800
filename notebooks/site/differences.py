"""A fine-tuned model as what it changed of another that the site has: a third of its own size.

Differences are int4, two in a byte, each group of GROUP numbers of a row with a float16 scale; of
the token table only the rows whose tokens were trained. Vectors, and what the other model lacks,
are written as `weights.write_model` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from weights import as_text, as_written, config_of, named, numbers_of, write_script

GROUP, LARGEST = 32, 7  # numbers with a common scale; the largest int4 of both signs
UNCHANGED = 0.01  # of a row's largest weight: less is weight decay alone


def write_difference(name: str, model: nn.Module, base: tuple[str, Any], folder: Path) -> Path:
    """Write folder/name.js, which needs the base's own script beside it, and return its path.

    base: the name and the model from which this one was trained, as shipped."""
    changes, own = {}, {}
    before = named(as_written(base[1]))
    for key, weight in named(model.state_dict()).items():
        if weight.dim() == 2 and key in before:
            changes[key] = _change(weight, before[key])
        else:
            own[key] = weight
    written = b"".join(scales.tobytes() + _in_bytes(n) for _, scales, n in _rows(changes))
    what = {
        "config": config_of(model),
        "base": base[0],
        **numbers_of(own),
        "changes": {
            "tensors": [[key, rows.tolist()] for key, (rows, _, _) in changes.items()],
            "group": GROUP,
            **as_text(written),
        },
    }
    return write_script(name, what, folder)


def as_changed(model: nn.Module, base: nn.Module) -> dict[str, Tensor]:
    """The model's state_dict with the weights that `write_difference` writes."""
    before, result = named(as_written(base)), dict(as_written(model))
    for key, weight in model.state_dict().items():
        short = key.removeprefix("encoder.")
        if weight.dim() == 2 and short in before:
            rows, scales, numbers = _change(weight, before[short])
            each = np.repeat(scales.astype(np.float32), GROUP, axis=1)
            result[key] = before[short].clone()
            result[key][torch.from_numpy(rows)] += torch.from_numpy(numbers * each)
    return result


def _change(weight: Tensor, before: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows that changed (R,), their scales, float16 (R, C / GROUP), and int4 numbers (R, C)."""
    difference = (weight - before).numpy()
    least = UNCHANGED * np.abs(weight.numpy()).max(axis=1)
    rows = np.flatnonzero(np.abs(difference).max(axis=1) > least)
    groups = difference[rows].reshape(len(rows), weight.shape[1] // GROUP, GROUP)
    scales = (np.abs(groups).max(axis=2) / LARGEST).astype("<f2")
    each = scales.astype(np.float32)[..., None]
    whole = np.divide(groups, each, out=np.zeros_like(groups), where=each > 0)
    numbers = np.clip(np.rint(whole), -LARGEST, LARGEST).astype(np.int8)
    return rows, scales, numbers.reshape(len(rows), weight.shape[1])


def _rows(changes: dict[str, Any]) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Each changed row of each matrix: its number, scales and numbers."""
    return [one for change in changes.values() for one in zip(*change, strict=True)]


def _in_bytes(numbers: np.ndarray) -> bytes:
    """int4, from −7 to 7, as 1 to 15: the first of two in the lower half of a byte."""
    halves = (numbers + 8).astype(np.uint8)
    return (halves[0::2] | halves[1::2] << 4).tobytes()
