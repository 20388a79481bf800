"""Lecture 02's pre-training: the live recipe on five seeds, a long run, and the levels beside them.

A run that was stopped goes on where it was; the first losses of seed 0 are recorded in float32."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from course_lib.files import cache_dir, write_atomic
from course_lib.teaching.experiments import Experiment, results_of
from course_lib.teaching.results import in_words, kept
from course_lib.text.counts import NeighbourCounts, Unigram
from course_lib.text.oracle import Oracle
from course_lib.train.baselines import bag_of_words_accuracy
from course_lib.train.metrics import evaluation_mask

from .recipes import LIVE, LONG, AccuracyCurve, Material, Recipe, prepare, pretrain

RUNS = {"live": (LIVE, range(5)), "long": (LONG, range(1))}
NAMES = {recipe: name for name, (recipe, _) in RUNS.items()}


def levels(material: Material) -> dict[str, float]:
    """What counting and knowing reach on the very positions the models are measured on."""
    stories = material.heldout_stories
    masked = evaluation_mask(stories.sequences, material.special)
    positions = stories.positions(masked.selected)
    return {
        "unigram": Unigram(material.documents).accuracy(stories.sequences, masked.selected),
        "count_model": NeighbourCounts(material.documents).accuracy(
            stories.sequences, masked.selected
        ),
        "oracle": Oracle(material.world).accuracy(stories.stories, positions),
        "bag_of_words_pairs": bag_of_words_accuracy(
            material.train, material.heldout_pairs, material.special
        ),
        "positions": len(positions),
        "pairs": len(material.heldout_pairs),
    }


def gap_closed(accuracy: float, levels: Mapping[str, float]) -> float:
    """Fraction of the gap between the count model and the oracle that is closed."""
    return (accuracy - levels["count_model"]) / (levels["oracle"] - levels["count_model"])


def one_run(name: str, recipe: Recipe, material: Material, seed: int) -> dict[str, Any]:
    """One seed with its held-out curve; a run that was stopped goes on, a finished one is read."""
    settings = {"seed": seed, **asdict(recipe)}
    about = (name, material.world.hash[:12], torch.get_num_threads(), *settings.values())
    path = cache_dir("results") / f"02-{'-'.join(map(str, about))}.safetensors"
    seen = path.with_suffix(".curve.json")

    def run() -> dict[str, Any]:
        curve = AccuracyCurve(material, recipe.steps, evaluations=24)
        if path.exists() and seen.exists():
            curve.points = json.loads(seen.read_text(encoding="utf-8"))

        def keep(report: Any) -> None:  # beside each checkpoint, the curve so far
            if report.step % 500 == 0:
                write_atomic(seen, json.dumps(curve.points))
                print(f"  {name} seed {seed}: step {report.step} of {report.steps}", flush=True)

        _, history = pretrain(
            recipe, material, seed=seed, callbacks=[curve, keep], checkpoint=path,
            checkpoint_every=500,
        )  # fmt: skip
        points = list({point["step"]: point for point in curve.points}.values())
        return {"seed": seed, "curve": points, "seconds": round(history.seconds, 1)}

    return kept(f"02-{name}-{seed}", settings, material.world, run)


PRETRAINING = Experiment(
    "02_pretraining", {name: recipe for name, (recipe, _) in RUNS.items()},
    {name: seeds for name, (_, seeds) in RUNS.items()}, partial(prepare, LIVE), pretrain,
    run=lambda recipe, material, seed: one_run(NAMES[recipe], recipe, material, seed),
    replayed=LIVE, precision=None, more={"levels": levels},
)  # fmt: skip
EXPERIMENTS = (PRETRAINING,)


def outcome(results: Mapping[str, Any], run: str) -> dict[str, list[float]]:
    """What each seed of a run reached in the end: masked and pair accuracy, and the gap closed."""
    last = [r["curve"][-1] for r in results["runs"][run]]
    return {
        "masked_accuracy": [point["masked_accuracy"] for point in last],
        "pair_accuracy": [point["pair_accuracy"] for point in last],
        "gap_closed": [gap_closed(point["masked_accuracy"], results["levels"]) for point in last],
    }


def summary(results: Mapping[str, Any]) -> str:
    """The outcome of every run, a line a measure."""
    lines = [f"levels: {results['levels']}"]
    for run in results["runs"]:
        lines += [f"{run}: {name} {in_words(v)}" for name, v in outcome(results, run).items()]
    return "\n".join(lines)


RESULTS = results_of(EXPERIMENTS)
