"""The readers that get an environment of their own: each has pinned versions, and a script that
runs there without the course."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent


class Other(NamedTuple):
    """A script beside this file, what pip or npm installs for it, and the readers it tells of."""

    script: str
    packages: tuple[str, ...]
    readers: tuple[str, ...]


OTHERS: dict[str, Other] = {
    "ctranslate2": Other(
        "read_ctranslate2",
        ("ctranslate2==4.8.5", "transformers==5.23.0", "torch==2.13.0", "numpy==2.4.6"),
        ("ctranslate2",),
    ),
    "node": Other(
        "read_in_node.mjs",
        ("onnxruntime-node@1.30.0", "@huggingface/transformers@4.3.1"),
        ("onnxruntime-node", "transformers.js"),
    ),
    "keras-hub": Other(
        "read_keras_hub",
        ("keras-hub==0.32.0", "keras==3.15.1", "tensorflow==2.21.0", "torch==2.13.0",
         "safetensors==0.8.0"),
        ("keras-hub",),
    ),
    "gguf": Other(
        "read_gguf",
        ("gguf==0.19.0", "xllamacpp==2026.10.11549", "safetensors==0.8.0", "numpy==2.4.6"),
        ("GGUF",),
    ),
    "model2vec": Other(
        "read_model2vec",
        ("model2vec[distill,quantization]==0.10.0", "transformers==5.3.0", "torch==2.13.0"),
        ("model2vec",),
    ),
}  # fmt: skip


def run_other(name: str, work: Path, keep: Path | None = None) -> dict[str, dict[str, Any]]:
    """By reader, its versions and its rows. keep: a folder in which the environment stays, and from
    which it is taken if it is there. Raises CalledProcessError where it cannot be installed or the
    script fails, FileNotFoundError without npm or node."""
    if keep is not None:
        return _run(name, work.resolve(), keep.resolve() / name)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return _run(name, work.resolve(), Path(folder, name))


def _run(name: str, work: Path, place: Path) -> dict[str, dict[str, Any]]:
    other = OTHERS[name]
    if name == "node":
        if not place.exists():
            place.mkdir(parents=True)
            (place / "package.json").write_text("{}", encoding="utf-8")
            # The processor's binary is in the package; its script would fetch the GPU's, too.
            more = {**os.environ, "ONNXRUNTIME_NODE_INSTALL": "skip"}
            subprocess.run(["npm", "install", *other.packages], cwd=place, env=more, check=True)
        command = ["node", str(HERE / other.script), str(work)]
    else:
        python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if not place.exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *other.packages], check=True)
        command = [str(python), str(HERE / "each.py"), other.script, str(work)]
    done = subprocess.run(command, cwd=place, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return collected(done.stdout, other.readers)


def collected(printed: str, readers: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The lines of JSON among what a script printed, by reader."""
    by_reader: dict[str, dict[str, Any]] = {name: {"versions": {}, "rows": {}} for name in readers}
    for line in _json_lines(printed):
        reader = by_reader[line.pop("reader", readers[0])]
        if "versions" in line:
            reader["versions"] = line["versions"]
        else:
            reader["rows"][line.pop("model")] = line
    return by_reader


def _json_lines(printed: str) -> Iterator[dict[str, Any]]:
    for line in printed.splitlines():
        if line.startswith('{"'):
            yield json.loads(line)
