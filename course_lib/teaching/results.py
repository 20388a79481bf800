"""Experiments too long for a lecture: `python -m course_lib.teaching.results 04` writes the
lecture's files in data/results/, `--only 17_course` one file.

What an experiment is, stands in experiments.py of the lecture's room. Here is what they share:
finished runs are kept and not repeated; each file records recipe, world, versions, thread count,
precision and date. A comparison may extend its own file: runs that stand there under the same
recipe, world, versions, thread count and precision are read, not trained again, so that a recipe
added later costs its own runs only. Delete the file to train all of it. After writing, the
manifest of data/ is written anew.

With COURSE_LIB_DEVICE=cuda before the command the models are trained on a GPU, which the file then
names."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from course_lib.files import cache_dir, data_root, read_result, write_atomic, write_manifest
from course_lib.kernels.choosing import choose_device
from course_lib.text.world import MicroWorld
from course_lib.train.loop import History
from course_lib.train.precision import choose_precision

from .rooms import lectures_with, room, two_digits

__all__ = [
    "REPLAYED", "compared_runs", "in_words", "kept", "last_losses", "made_with", "outcome",
    "read_result", "shown", "stored", "summary",
]  # fmt: skip
REPLAYED = 10  # steps of seed 0 that the test repeats
LAST = 50  # steps over which a training loss is averaged
SHOWN = {  # what stored names of recipes say, in the field's words
    "equal arithmetic": "equal FLOPs",
    "begin: fresh": "random initialisation",
    "fresh weights": "random initialisation",
    "begin: ": "initialised from: ",
    "masked words": "MLM",
    "place side by side": "position concatenated",
    "decoder without places": "decoder without positions",
    "the teacher's answers": "soft targets",
}


def made_with(world: MicroWorld, precision: str | None = None) -> dict[str, Any]:
    """What every results file records beside its recipes and runs.

    precision: the runs' own number format, where it is not this machine's choice."""
    gpu = on_gpu()
    return {
        "world": {"version": world.version, "hash": world.hash},
        "versions": {"torch": torch.__version__, "python": platform.python_version()},
        "threads": torch.get_num_threads(),
        "precision": precision or choose_precision(device=choose_device(weights=0)),
        **({"device": gpu} if gpu else {}),
        "date": date.today().isoformat(),
    }


def on_gpu() -> str:
    """The GPU that COURSE_LIB_DEVICE has small models trained on, by name; "" for the CPU."""
    device = choose_device(weights=0).removeprefix("cpu")
    return torch.cuda.get_device_name() if device == "cuda" else device


def kept(
    name: str,
    settings: Mapping[str, Any],
    world: MicroWorld,
    run: Callable[[], dict[str, Any]],
    files: Sequence[Path] = (),
) -> dict[str, Any]:
    """The outcome of `run()`, read from the cache if the same run was finished before.

    The same: same name, settings, world, thread count and device. A change of the code does not
    count: clear the cache (COURSE_LIB_CACHE) after one that changes numbers. files: what the run
    writes besides; where one of them is gone, it is run again."""
    about = {"settings": settings, "world": world.hash, "threads": torch.get_num_threads()}
    if gpu := on_gpu():
        about["device"] = gpu
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    done = cache_dir("results") / f"{name}-{digest}.json"
    if done.exists() and all(file.exists() for file in files):
        try:
            return json.loads(done.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{done} holds no finished run ({error}); delete it.") from error
    outcome = run()
    write_atomic(done, json.dumps(outcome))
    print(f"  {name}: done", flush=True)
    return outcome


def last_losses(history: History) -> dict[str, float]:
    """The parts of a run's training loss at its end, each a mean over LAST steps: mlm_loss, …"""
    parts = {name: values for name, values in history.losses.items() if name != "total"}
    return {f"{name}_loss": statistics.mean(values[-LAST:]) for name, values in parts.items()}


def compared_runs(
    recipes: Mapping[str, Any],
    seeds: Sequence[int] | Mapping[str, Sequence[int]],
    world: MicroWorld,
    run: Callable[[Any, int], dict[str, Any]],
    *,
    precision: str | None = None,
    extends: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What the results file of a comparison holds: every recipe (a dataclass) run with every seed.

    seeds: the same for all recipes, or by their names. run: of recipe and seed, gives at least its
    "seed". extends: a results file whose runs are read instead, where it was made as this one would
    be (see `extended`). Its date stays that of its first runs; `added` says when others came. more:
    what the file says besides, such as its replay; a function is called where the extended file
    does not say it."""
    stored_recipes = {name: asdict(recipe) for name, recipe in recipes.items()}
    about = made_with(world, precision)
    before = extended(extends, about) if extends else {}
    added = {name: day for name, day in before.get("added", {}).items() if name in recipes}
    runs = {}
    for name, recipe in recipes.items():
        there = stored_runs(before, name, stored_recipes[name])
        own = seeds[name] if isinstance(seeds, Mapping) else seeds
        if before and not set(own) <= set(there):
            added[name] = about["date"]
        runs[name] = [there[seed] if seed in there else run(recipe, seed) for seed in own]
    for name, value in more.items():
        about[name] = before[name] if name in before else value() if callable(value) else value
    about["date"] = before.get("date", about["date"])
    return {"recipes": stored_recipes, **about, **({"added": added} if added else {}), "runs": runs}


def extended(name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """The results file of this name if it was made with what `about` says, the date aside: the same
    world, versions, thread count, precision and device. Else nothing, {}: then nothing is kept."""
    try:
        before = read_result(name)
    except FileNotFoundError:
        return {}
    compared = sorted({*about, "device"} - {"date"})
    other = [key for key in compared if before.get(key) != about.get(key)]
    if other:
        print(f"  the runs of {name} are not kept: made with other {', '.join(other)}", flush=True)
    return {} if other else before


def stored_runs(
    record: Mapping[str, Any], name: str, recipe: Mapping[str, Any]
) -> dict[int, dict[str, Any]]:
    """A results file's runs of this recipe by their seeds; none, {}, if its recipe of this name is
    another one, or is not there."""
    as_json = json.loads(json.dumps(recipe))  # tuples are lists there
    if record.get("recipes", {}).get(name) != as_json:
        return {}
    return {run["seed"]: run for run in record["runs"][name]}


def outcome(record: Mapping[str, Any], measure: str) -> dict[str, list[float]]:
    """For each recipe of a results file that has the measure, what each seed reached."""
    runs = {name: runs for name, runs in record["runs"].items() if measure in runs[0]}
    return {name: [run[measure] for run in of] for name, of in runs.items()}


def shown(recipe: str) -> str:
    """A recipe's stored name as charts and tables show it."""
    for stored_as, label in SHOWN.items():
        recipe = recipe.replace(stored_as, label)
    return recipe


def summary(record: Mapping[str, Any], measures: Sequence[str], aside: Sequence[str] = ()) -> str:
    """What each recipe reached, in words, a line each, below what the file says `aside`."""
    lines = [f"{what}: {record[what]}" for what in aside if what in record]
    for name, runs in record.get("runs", {}).items():
        reached = {k: [run[k] for run in runs] for k in measures if k in runs[0]}
        scores = ", ".join(f"{k} {in_words(values)}" for k, values in reached.items())
        about = {
            "steps": record["recipes"][name].get("steps"),
            "weights": runs[0].get("parameters"),
        }
        size = ", ".join(f"{count:,} {what}" for what, count in about.items() if count)
        lines.append(f"{name} ({size}): {scores}")
    return "\n".join(lines)


@lru_cache(maxsize=16)
def stored(name: str) -> dict[str, Any]:
    """A results file that sentences and slides say numbers of: read once, not to be changed.

    Raises RuntimeError, with the command that makes it, for one that is not there."""
    try:
        return read_result(name)
    except FileNotFoundError as missing:
        raise RuntimeError(
            f"data/results/{name}.json is missing, and this view needs it. "
            f"`python -m course_lib.teaching.results {name[:2]}` makes it (up to hours on two "
            "cores)."
        ) from missing


def tokens_read(checkpoint: Mapping[str, Any]) -> int:
    """Tokens that a checkpoint was trained on, padding counted, by its results file. Its short
    steps read as many as the others."""
    training, text = checkpoint["recipe"]["training"], checkpoint["recipe"]["text"]
    sequences = training["steps"] * training["accumulate"] * training["batch_size"]
    return int(sequences * text["length"])


def in_words(values: Sequence[float]) -> str:
    """Values from 0 to 1 over seeds as mean, standard deviation and number: "55.0% (sd 1.2%, n
    5)"."""
    spread = f"sd {statistics.stdev(values):.1%}, n {len(values)}" if len(values) > 1 else "one run"
    return f"{statistics.mean(values):.1%} ({spread})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a lecture's long experiments.")
    known = lectures_with("experiments")
    parser.add_argument("lecture", type=two_digits, choices=known, help="number of the lecture")
    parser.add_argument("--only", metavar="FILE", help="one results file")
    options = parser.parse_args()
    lecture = room(options.lecture, "experiments")
    builds = lecture.RESULTS
    if options.only not in (None, *builds):
        parser.error(f"--only {options.only} was given; expected one of {', '.join(builds)}")
    chosen = {options.only: builds[options.only]} if options.only else builds
    for name, build in chosen.items():
        record = build()
        write_atomic(data_root() / "results" / f"{name}.json", json.dumps(record, indent=1) + "\n")
        write_manifest(data_root())
        print(f"{lecture.summary(record)}\nsaved to data/results/{name}.json")


if __name__ == "__main__":
    main()
