"""Saving a training run so that it can be killed at any moment and go on to the same bits.

One safetensors file holds weights, the optimiser's moments, the loss curve, and in its header the
step and the recipe. It is written whole or not at all. Random numbers need no saving: batches,
masks and dropout are functions of (seed, step)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ..files import write_atomic


def save_run(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    history: Mapping[str, list[float]],
    step: int,
    recipe: Mapping[str, Any],
) -> None:
    """Write the run as it stands after `step` steps."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
    for name, values in history.items():
        tensors[f"history.{name}"] = torch.tensor(values, dtype=torch.float64)
    header = {"step": str(step), "recipe": json.dumps(recipe, sort_keys=True)}
    write_atomic(path, save({k: v.contiguous() for k, v in tensors.items()}, metadata=header))


def load_run(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    recipe: Mapping[str, Any],
) -> tuple[int, dict[str, list[float]]]:
    """Put a saved run back into `model` and `optimizer`; returns (steps done, the loss curve).

    A path that does not exist is a run that has not begun: (0, {}). Raises ValueError when the file
    is damaged or belongs to another recipe."""
    path = Path(path)
    for leftover in path.parent.glob(f"{path.name}.tmp*"):
        leftover.unlink(missing_ok=True)  # what a killed run was writing; never read
    if not path.exists():
        return 0, {}
    tensors, header = _read(path)
    saved = json.loads(header["recipe"])
    if saved != json.loads(json.dumps(recipe)):
        different = sorted(k for k in {*saved, *recipe} if saved.get(k) != recipe.get(k))
        raise ValueError(
            f"{path} was saved by a run with other settings ({', '.join(different)}); expected the "
            "same recipe, else the result would be a mixture. Choose another checkpoint path, or "
            "delete the file to begin anew."
        )
    model.load_state_dict(_under("model.", tensors))
    _restore_optimizer(optimizer, _under("optimizer.", tensors))
    history = {name: values.tolist() for name, values in _under("history.", tensors).items()}
    return int(header["step"]), history


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a whole checkpoint ({error}); expected a safetensors file written by "
            "this "
            "course. Delete it to begin the run anew."
        ) from error


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _restore_optimizer(optimizer: torch.optim.Optimizer, flat: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in flat.items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
