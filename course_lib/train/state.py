"""Saving a training run so that it can be killed at any moment and go on to the same bits.

One safetensors file holds weights, the optimiser's moments, the loss curve, and in its header the
step, the recipe, and a hash of all of it. It is written whole or not at all. Random numbers need no
saving: batches, masks and dropout are functions of (seed, step). Weights that several processes
keep parts of are gathered first: the file is the same however many trained, and any number can go
on from it."""

from __future__ import annotations

import glob
import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from course_lib.files import no_file, write_atomic


def save_run(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    history: Mapping[str, list[float]],
    step: int,
    recipe: Mapping[str, Any],
    scaler: torch.amp.GradScaler,
    write: bool = True,
    memories: Mapping[str, Any] | None = None,
) -> None:
    """Write the run as it stands after `step` steps. Of several processes all call this, and one
    has `write`. memories: what callbacks need to go on, as JSON has it. Raises FloatingPointError
    for numbers that are not finite, and leaves what was saved before as it is."""
    tensors = {f"model.{name}": value for name, value in whole_weights(model, write).items()}
    for number, state in optimizer.state_dict()["state"].items():
        for name, value in _whole(state, write).items():
            tensors[f"optimizer.{number}.{name}"] = value
    if not write:
        return
    for name in tensors.keys() - {f"model.{name}" for name, _ in model.named_buffers()}:
        largest = tensors[name].abs().max().item() if tensors[name].numel() else 0.0
        check_finite(f"largest entry of {name}", largest)
    for name, values in history.items():
        tensors[f"history.{name}"] = torch.tensor(values, dtype=torch.float64)
    recipe = {**recipe, "trained": _trained(model, optimizer)}  # the moments have numbers, no names
    header = {"step": str(step), "recipe": json.dumps(recipe, sort_keys=True, default=float)}
    header["scaler"] = json.dumps(scaler.state_dict())  # {} where it changes nothing
    header["memories"] = json.dumps(memories or {})
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    header["sha256"] = _digest(tensors, header)
    write_atomic(path, save(tensors, metadata=header))


def whole_weights(model: nn.Module, keep: bool = True) -> dict[str, Tensor]:
    """A model's weights on the CPU, each once and whole. Of several processes that keep parts of
    them all must call this; without `keep` a process helps, and gets none."""
    again = _tied(model)
    return _whole({n: v for n, v in model.state_dict().items() if n not in again}, keep)


def put_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put what `whole_weights` gave into `model`, where every process keeps its part, if they do.

    Raises RuntimeError (torch's) for weights of another model."""
    ours = model.state_dict()
    tied = {name: weights[first] for name, first in _tied(model).items() if first in weights}
    result = {**weights, **tied}
    model.load_state_dict({name: _part(value, ours.get(name)) for name, value in result.items()})


def load_run(
    path: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    recipe: Mapping[str, Any],
    scaler: torch.amp.GradScaler,
) -> tuple[int, dict[str, list[float]], dict[str, Any]]:
    """Put a saved run back into all of them; returns (steps done, the loss curve, memories).

    A path that does not exist is a run that has not begun: (0, {}, {}). Raises ValueError, with all
    as it was, for a damaged file and one of another recipe, model or choice of frozen weights."""
    path = Path(path)
    for leftover in path.parent.glob(f"{glob.escape(path.name)}.tmp[0-9]*-*"):
        leftover.unlink(missing_ok=True)  # what a killed run was writing; never read
    if not path.exists():
        return 0, {}, {}
    tensors, header = _read(path)
    weights, again, trained = _under("model.", tensors), _tied(model), _trained(model, optimizer)
    ours = {n: v for n, v in model.state_dict().items() if n not in again}
    then, now = ({"shape": {n: [*v.shape] for n, v in of.items()}} for of in (weights, ours))
    saved = {**then, "trained": trained, **json.loads(header["recipe"])}  # older files name none
    current = {**now, "trained": trained, **json.loads(json.dumps(recipe, default=float))}
    if different := differences(saved, current):
        raise ValueError(
            f"{path} was saved by a run with other settings, which\n  "
            + "\n  ".join(different[:5] + ["…"] * (len(different) > 10) + different[5:][-5:])
            + "\nexpected the same recipe and model, else the result would be a mixture. Choose "
            "another checkpoint path, or delete the file to begin anew."
        )
    put_weights(model, weights)
    _restore_optimizer(optimizer, _under("optimizer.", tensors))
    if scaler.is_enabled():
        scaler.load_state_dict(json.loads(header["scaler"]))
    history = {name: values.tolist() for name, values in _under("history.", tensors).items()}
    return int(header["step"]), history, json.loads(header.get("memories", "{}"))


def saved_step(path: Path) -> int:
    """The step after which a run was saved; 0 where nothing whole was."""
    nothing = suppress(SafetensorError, OSError, TypeError, KeyError, ValueError)
    with nothing, safe_open(path, framework="pt") as file:
        return int(file.metadata()["step"])
    return 0


def differences(then: Any, now: Any, name: str = "") -> list[str]:
    """A line for each setting that differs, by its whole name, with both values."""
    both = [value for value in (then, now) if value is not None]
    if both and all(isinstance(value, Mapping) for value in both):
        then, now, lines = then or {}, now or {}, []
        for key in {**then, **now}:
            whole = f"{name}.{key}" if name else key
            lines += differences(then.get(key), now.get(key), whole)
        return lines
    old, new = ("not set" if value is None else json.dumps(value) for value in (then, now))
    return [f"differs in {name}: {old} then, {new} now"] * (then != now)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        if obstacle := no_file(path):
            raise OSError(obstacle)
        with safe_open(path, framework="pt") as file:
            # Copies: Windows lets no checkpoint replace a file that Adam's state still maps.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            header = file.metadata() or {}
        damage = "" if header.get("sha256") == _digest(tensors, header) else "its hash is another"
    except (SafetensorError, OSError) as error:
        damage = str(error)
    if damage:
        raise ValueError(
            f"{path} is not a whole checkpoint ({damage}); expected a safetensors file as this "
            "version of the course writes it. Delete it to begin the run anew."
        )
    return tensors, header


def _digest(tensors: Mapping[str, Tensor], header: Mapping[str, str]) -> str:
    from course_lib.checkpoints.saved import hash_of_weights

    fields = {name: value for name, value in header.items() if name != "sha256"}
    text = json.dumps(fields, sort_keys=True) + hash_of_weights(tensors)
    return hashlib.sha256(text.encode()).hexdigest()


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _restore_optimizer(optimizer: torch.optim.Optimizer, flat: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for name, value in flat.items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = _part(value, weights[int(number)])
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _trained(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, bool]:
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(p)]: True for group in optimizer.param_groups for p in group["params"]}


def _tied(model: nn.Module) -> dict[str, str]:
    """Second names of weights that have several, as ELECTRA's tables do -> their first names."""
    first: dict[int, str] = {}
    names = model.named_parameters(remove_duplicate=False)
    return {n: first[id(p)] for n, p in names if first.setdefault(id(p), n) != n}


def _whole(tensors: Mapping[str, Tensor], keep: bool) -> dict[str, Tensor]:
    """Tensors on the CPU, those that processes keep parts of gathered one by one."""
    whole = ((name, whole_tensor(value)) for name, value in tensors.items())
    return {name: value.cpu() for name, value in whole if keep}


def whole_tensor(value: Tensor) -> Tensor:
    """The tensor itself; gathered, where here is only a part of it (a DTensor)."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def check_finite(what: str, value: float) -> None:
    """Raise FloatingPointError for what is infinite or no number."""
    if not math.isfinite(value):
        raise FloatingPointError(
            f"The {what} is {value}; expected a finite number. Lower the learning rate, or train "
            'with precision="float32" to see whether the number format is the cause.'
        )


def _part(value: Tensor, like: Tensor | None) -> Tensor:
    """The part of `value` that this process keeps of a tensor like it; all, if that is whole."""
    if not hasattr(like, "full_tensor") or value.shape != like.shape:  # type: ignore[union-attr]
        return value
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = like.device_mesh, like.placements  # type: ignore[union-attr]
    return distribute_tensor(value.to(like.device), mesh, placements)  # type: ignore[union-attr]
