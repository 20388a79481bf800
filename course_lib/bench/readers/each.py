"""One reader over all folders, also in an environment that has numpy but not the course: `python
each.py read_gguf WORK` prints a line of JSON for each folder of WORK, which others.py collects.

A reader is a module with PACKAGES, whose versions are told, and `read(folder)`, which returns the
largest difference from ours and what was lost on the way; what it raises is the reader's refusal.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

INPUTS = ("input_ids", "attention_mask", "token_type_ids", "pixel_values")


def inputs_of(folder: Path) -> dict[str, np.ndarray]:
    arrays = np.load(folder / "expected.npz")
    return {name: arrays[name] for name in INPUTS if name in arrays}


def difference(folder: Path, name: str, values: np.ndarray) -> float:
    """The largest difference from ours, at real tokens, as a fraction of the largest value (or of
    1, where all are smaller)."""
    arrays = np.load(folder / "expected.npz")
    ours, real = arrays[name], arrays.get("attention_mask")
    assert values.shape == ours.shape, f"{name} of shape {values.shape}; ours {ours.shape}"
    if real is not None and real.shape == ours.shape[:2]:
        ours, values = ours[real == 1], values[real == 1]
    return float(np.abs(values - ours).max() / max(1, np.abs(ours).max()))


def row_of(read: Callable[[Path], dict[str, Any]], folder: Path) -> dict[str, Any]:
    """What a reader makes of one folder: {"difference", "lost"}, or {"says"}: why it refuses."""
    if not (folder / "expected.json").is_file() and not getattr(read, "pictures", False):
        return {"says": "reads texts only"}
    try:
        return read(folder)
    except (Exception, SystemExit) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return {"says": f"{type(error).__name__}: {lines[0] if lines else ''}"[:160]}


def main(name: str, work: str) -> None:
    reader = importlib.import_module(name)
    print(json.dumps({"versions": {package: version(package) for package in reader.PACKAGES}}))
    for folder in sorted(Path(work).iterdir()):
        print(json.dumps({"model": folder.name, **row_of(reader.read, folder)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
