"""Reading checkpoint files with care. They are safetensors and JSON only: these hold numbers and
cannot run anything, as a pickle can. A file cut short, damaged or changed is named as such."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_lib.files import as_path, json_object, nearby, no_file, sha256_of

WEIGHTS, CONFIG = "model.safetensors", "config.json"
ADAPTER = "adapter_config.json"  # of PEFT
State = dict[str, Tensor]
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class CheckpointError(ValueError):
    """A checkpoint that is not what was asked for: wrong hash, cut short, another architecture."""


class MissingCheckpoint(FileNotFoundError):
    """A checkpoint that is in none of the places where it was looked for."""


_PICKLE_STARTS = (b"\x80", b"PK\x03\x04")  # a bare pickle, and torch.save's zip with one inside
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def read_header(path: str | Path) -> dict[str, Any]:
    """The header of a safetensors file: name -> type, shape and place of each tensor.

    Raises MissingCheckpoint, and CheckpointError for a pickle (unread) or a file cut short."""
    path = as_path(path)
    refuse_pickle_name(path)
    if obstacle := no_file(path):
        raise CheckpointError(obstacle)
    if not path.is_file():
        raise MissingCheckpoint(
            f"no file at {path}: expected a checkpoint (.safetensors) there.{nearby(path)}"
        )
    refuse_pointer(path)
    with open(path, "rb") as file:
        start, first = file.read(8), file.read(1)
        # A safetensors header is a JSON object; its length before it may look like anything.
        if first not in (b"{", b"") and start.startswith(_PICKLE_STARTS):
            raise CheckpointError(_no_pickle(path, "starts like an archive or"))
        if first not in (b"{", b""):
            raise CheckpointError(
                f"{path} is not a safetensors file, or is damaged: expected one, or the folder of "
                f"a checkpoint, with {WEIGHTS} and {CONFIG}."
            )
        size = path.stat().st_size
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if not 0 < length <= size - 8:
            raise CheckpointError(_cut_short(path, size, None))
        header = _parse_header(path, first + file.read(length - 1))
    ends = (entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
    expected = 8 + length + max(ends, default=0)
    if size != expected:
        raise CheckpointError(_cut_short(path, size, expected))
    return header


def _parse_header(path: Path, data: bytes) -> dict[str, Any]:
    try:
        header = json_object(data, path)
        for name, entry in header.items():
            if name != "__metadata__":
                _, end = entry["data_offsets"]
                int(end)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise CheckpointError(
            f"{path} is not a safetensors file, or is damaged ({error!r})."
        ) from error
    return header


def in_one_format(state: State) -> State:
    """Float32, whatever number formats a file has for the sake of its size; float64 where all
    numbers are. What are no such numbers, such as counters, stay for `check_weights` to refuse."""
    types = {value.dtype for value in state.values()}.intersection(FLOATS)
    if types == {torch.float64}:
        return state
    return {name: v.float() if v.dtype in types else v for name, v in state.items()}


def check_weights(state: Mapping[str, Tensor], path: Path) -> None:
    """Raise CheckpointError for weights that are no floating-point numbers, or not finite."""
    for name, value in state.items():
        if value.dtype not in FLOATS:
            raise CheckpointError(
                f"{path} holds {name} as {str(value.dtype).removeprefix('torch.')}; expected "
                "float32, float16, bfloat16 or float64. For a quantised model take the original."
            )
        # A sum, which is faster, is finite only where all of them are.
        if not value.sum().isfinite() and not value.isfinite().all():
            raise CheckpointError(
                f"{path} holds nan or infinity in {name}; expected finite numbers: its training "
                "went wrong, or the file is damaged. Take an earlier checkpoint."
            )


def read_weights(path: Path) -> State:
    import safetensors.torch

    read_header(path)
    try:
        state = safetensors.torch.load_file(path)
    except safetensors.SafetensorError as error:
        raise CheckpointError(
            f"{path} is not a safetensors file, or is damaged ({error})."
        ) from error
    # The tensors are the file itself, mapped into memory: Windows lets nobody replace or delete it.
    return {k: v.clone() for k, v in state.items()} if os.name == "nt" else state


def check_hash(path: Path, expected: str | None) -> str:
    result = sha256_of(path)
    if expected is not None and result != expected.lower():
        raise CheckpointError(
            f"{path} has SHA-256 {result}; expected {expected}. It is another version, or was "
            f"changed or damaged on its way: {_again(path)}."
        )
    return result


def refuse_pointer(path: Path) -> None:
    """Raise CheckpointError where a clone without Git LFS left its note instead of the file."""
    if path.is_file():
        with open(path, "rb") as file:
            if file.read(24) == b"version https://git-lfs.":
                raise CheckpointError(
                    f"{path} is a Git LFS pointer, not the file itself: run `git lfs pull`."
                )


def refuse_pickle_name(path: Path) -> None:
    if path.suffix.lower() in _PICKLES:
        raise CheckpointError(_no_pickle(path, "is named like"))


def _no_pickle(path: Path, how: str) -> str:
    return (
        f"{path} {how} a pickle, and was not read: opening a pickle runs whatever code its author "
        "put in. Use the model.safetensors that most checkpoints have beside it, or, if you "
        "trust it, convert it with transformers' save_pretrained."
    )


def _cut_short(path: Path, size: int, expected: int | None) -> str:
    whole = "more than that" if expected is None else f"{expected:,}"
    return (
        f"{path} has {size:,} bytes; its header announces {whole}. The file was cut short or "
        f"damaged: {_again(path)}."
    )


def _again(path: Path) -> str:
    """In the hub's cache the path is a link, and a file behind it that stays is linked again."""
    return f"delete {os.path.realpath(path) if path.is_symlink() else 'it'} and fetch it again"


def read_json(path: Path) -> dict[str, Any]:
    """The settings in a config.json."""
    if obstacle := no_file(path):
        raise CheckpointError(obstacle)
    data = path.read_bytes()
    try:
        return json_object(data, path)
    except ValueError as error:
        if data.lstrip().startswith(b"["):
            raise CheckpointError(f"{path} holds no settings: expected an object.") from error
        raise CheckpointError(
            f"{path} is not JSON: it was cut short or damaged: {_again(path)}. ({error})"
        ) from error
