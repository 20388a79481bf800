"""Experiments too long for a lecture: `python -m course_lib.teaching.results 04` writes the
lecture's files in data/results/.

What an experiment is, stands in experiments.py of the lecture's room. Here is what they share:
finished runs are kept and not repeated; each file records recipe, world, versions, thread count,
precision and date. After writing, the manifest of data/ is written anew."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from course_lib.files import cache_dir, data_root, read_result, write_atomic, write_manifest
from course_lib.text.world import MicroWorld
from course_lib.train.precision import choose_precision

from .rooms import lectures_with, room

__all__ = ["REPLAYED", "in_words", "kept", "made_with", "read_result"]
REPLAYED = 10  # steps of seed 0 that the test repeats


def made_with(world: MicroWorld, precision: str | None = None) -> dict[str, Any]:
    """What every results file records beside its recipes and runs.

    precision: the runs' own number format, where it is not this machine's choice."""
    return {
        "world": {"version": world.version, "hash": world.hash},
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "threads": torch.get_num_threads(),
        "precision": precision or choose_precision(),
        "date": date.today().isoformat(),
    }


def kept(
    name: str,
    settings: Mapping[str, Any],
    world: MicroWorld,
    run: Callable[[], dict[str, Any]],
    files: Sequence[Path] = (),
) -> dict[str, Any]:
    """The outcome of `run()`, read from the cache if the same run was finished before.

    The same: same name, settings, world and thread count. A change of the code does not count:
    clear the cache (COURSE_LIB_CACHE) after one that changes numbers. files: what the run writes
    besides; where one of them is gone, it is run again."""
    about = {"settings": settings, "world": world.hash, "threads": torch.get_num_threads()}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    done = cache_dir("results") / f"{name}-{digest}.json"
    if done.exists() and all(file.exists() for file in files):
        return json.loads(done.read_text(encoding="utf-8"))
    outcome = run()
    write_atomic(done, json.dumps(outcome))
    print(f"  {name}: done", flush=True)
    return outcome


def in_words(values: Sequence[float]) -> str:
    """Values from 0 to 1 over seeds as mean, standard deviation and number: "55.0% (sd 1.2%, n
    5)"."""
    spread = f"sd {statistics.stdev(values):.1%}, n {len(values)}" if len(values) > 1 else "one run"
    return f"{statistics.mean(values):.1%} ({spread})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a lecture's long experiments.")
    known = lectures_with("experiments")
    parser.add_argument("lecture", choices=known, help="number of the lecture")
    lecture = room(parser.parse_args().lecture, "experiments")
    for name, build in lecture.RESULTS.items():
        found = build()
        write_atomic(data_root() / "results" / f"{name}.json", json.dumps(found, indent=1) + "\n")
        write_manifest(data_root())
        print(f"{lecture.summary(found)}\nsaved to data/results/{name}.json")


if __name__ == "__main__":
    main()
