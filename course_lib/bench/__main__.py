"""The command: measure the chosen tables, print each, and save all as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_lib.files import data_root, write_atomic, write_manifest
from course_lib.train.allocator import keep_freed_memory

from . import (
    attention,
    contrastive,
    corruption,
    disentangled,
    disentangled_gpu,
    distillation,
    early_exit,
    fastbert,
    masked_loss,
    masking,
    modern,
    pretraining,
    serving,
    sharing,
    unpadding,
)
from .measuring import Table, as_table, machine, measure
from .roofline import memory_rate, placements
from .summary import in_readme

OF_ONE_KIND: dict[str, Callable[..., list[Table]]] = {
    "masking": masking.tables,
    "masked_loss": masked_loss.tables,
    "sharing": sharing.tables,
    "distillation": distillation.tables,
    "corruption": corruption.tables,
    "unpadding": unpadding.tables,
    "early_exit": early_exit.tables,
    "fastbert": fastbert.tables,
    "serving": serving.tables,
    "attention": attention.tables,
    "disentangled": disentangled.tables,
    "modern": modern.tables,
    "disentangled_gpu": disentangled_gpu.tables,
    "contrastive": contrastive.tables,
}
TABLES = ("pretraining", *OF_ONE_KIND)
WITH_COMPILED = ("distillation", "disentangled")  # which have a contender of torch.compile


def tables_of(subject: str, sizes: Sequence[str], compiled: bool) -> list[Table]:
    """The tables of one subject; nothing is built before it is measured."""
    if subject == "pretraining":
        return pretraining.tables(sizes, compiled)
    return OF_ONE_KIND[subject](*([compiled] if subject in WITH_COMPILED else []))


def run(tables: Iterable[Table], rounds: int, seconds: float) -> dict[str, Any]:
    """Measure every table and print it; returns what is saved as JSON. All contenders have the
    allocator that `fit` sets."""
    kept = keep_freed_memory()
    on = machine() | {"keeps_freed_memory": kept, "gigabytes_memory": round(memory_rate(), 1)}
    report: dict[str, Any] = {"machine": on, "tables": {}, "remarks": {}}
    print("matrix products:", {k: v for k, v in on.items() if k.startswith("gflops")})
    for table in tables:
        print(f"\n{table.title}")
        often, warm_ups = (min(rounds, 3), 1) if table.slow else (rounds, 4)
        results = measure(table.contenders, often, seconds * table.turn, warm_ups)
        report["tables"][table.title] = [asdict(r) for r in results]
        print(as_table(results, results[0].name, table.unit))
        if table.remark is not None:
            report["remarks"][table.title] = table.remark(results, report["machine"])
            print(report["remarks"][table.title])
    return report


def _is_saved(path: Path) -> bool:
    """Whether this is a file that an earlier --json wrote."""
    try:
        return {"machine", "tables", "remarks"} <= {*json.loads(path.read_text(encoding="utf-8"))}
    except (ValueError, TypeError, OSError):
        return False


def store(report: dict[str, Any], name: str) -> None:
    """The figures as a results file of the course, and the manifest of data/ written anew."""
    write_atomic(data_root() / "results" / f"{name}.json", json.dumps(report, indent=1) + "\n")
    write_manifest(data_root())
    print(f"\nsaved to data/results/{name}.json")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.bench",
        description="Speed of the course's kernels beside their peers.",
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES, help="which to time")
    parser.add_argument("--readme", action="store_true", help="only the sizes of the README")
    parser.add_argument("--sizes", nargs="+", default=["mini", "tiny"], help="BERTs to pre-train")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each (2 or more)")
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long a turn takes")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile (C++)")
    parser.add_argument("--json", type=Path, help="also save the figures to this file")
    parser.add_argument("--store", metavar="NAME", help="save to data/results/NAME.json as well")
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error(f"--rounds {options.rounds} was given; expected 2 or more, to show a spread")
    if options.json and options.json.exists() and not _is_saved(options.json):
        parser.error(f"--json {options.json} holds no figures of this command; name another file")
    available = [
        t for name in options.tables for t in tables_of(name, options.sizes, not options.no_compile)
    ]
    tables = [t for t in available if in_readme(t.title) or not options.readme]
    measured = run(tables, options.rounds, options.seconds)
    if options.json:
        write_atomic(options.json, json.dumps(measured, indent=1) + "\n")
        print(f"\nsaved to {options.json}")
    if options.store:
        measured["points"] = [asdict(point) for point in placements()]
        store(measured, options.store)


if __name__ == "__main__":
    main()
