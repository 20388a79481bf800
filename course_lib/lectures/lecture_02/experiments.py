"""Lecture 02's pre-training: the live recipe on five seeds, a long run, and the levels beside them.

`02_controls`: the live recipe with attention that cannot choose, and NSP by a bag of words on the
documentation. A run that was stopped goes on where it was; the first losses of seed 0 are recorded
in float32."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from course_lib.checkpoints import load_pretrained
from course_lib.files import cache_dir, write_atomic
from course_lib.heads import BertForPreTraining
from course_lib.objectives.next_sentence import make_pairs
from course_lib.objectives.pretraining import pretraining_loss
from course_lib.teaching.experiments import Experiment, Run, Trainer, results_of
from course_lib.teaching.results import in_words, kept
from course_lib.text.counts import NeighbourCounts, Unigram
from course_lib.text.documentation import documentation
from course_lib.text.oracle import Oracle
from course_lib.train.baselines import bag_of_words_accuracy
from course_lib.train.metrics import evaluation_mask

from .recipes import (
    LIVE,
    LONG,
    AccuracyCurve,
    Material,
    Recipe,
    prepare,
    pretrain,
    randomly_initialised,
)

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


# ---------------------------------------------------------------- controls


def with_uniform_attention(model: BertForPreTraining) -> BertForPreTraining:
    """The model with queries that are zero and stay so: every score is 0, and each head takes the
    mean of all real positions."""
    blocks: Any = model.encoder.stack.blocks
    for block in blocks:
        for parameter in block.attention.query.parameters():
            torch.nn.init.zeros_(parameter).requires_grad_(False)
    return model


uniform = Trainer(
    lambda recipe, material, seed: (
        with_uniform_attention(
            randomly_initialised(recipe, material.special.vocab_size, seed)
        ),
        pretraining_loss,
    ),
    pretrain.batches, precision="auto",
)  # fmt: skip


def reached(run: Run) -> dict[str, float]:
    """Masked-token and NSP accuracy in the end."""
    return AccuracyCurve(run.material, run.recipe.steps).measure(run.model)


def documentation_pairs(_: Material) -> dict[str, dict[str, float]]:
    """NSP on the documentation of what is installed, by length: the bag of shared words, the
    majority class, and how many pairs of other modules they were tested on."""
    tokenizer = load_pretrained("course-bert").tokenizer
    assert tokenizer is not None
    modules = [[tokenizer.encode(p) for p in d] for d in documentation("train").documents]
    learned, by_length = [d for index, d in enumerate(modules) if index % 5], {}
    for length in (64, 128):
        train, heldout = (
            make_pairs(documents, tokenizer.special, length=length)
            for documents in (learned, modules[::5])
        )
        assert heldout.next_sentence_label is not None
        not_next = heldout.next_sentence_label.float().mean().item()
        by_length[str(length)] = {
            "bag": bag_of_words_accuracy(train, heldout, tokenizer.special),
            "majority": max(not_next, 1 - not_next), "pairs": len(heldout),
        }  # fmt: skip
    return by_length


CONTROLS = Experiment(
    "02_controls", {"uniform attention": LIVE}, range(3), partial(prepare, LIVE), uniform,
    measure=reached, label="02-uniform-{seed}", replayed=LIVE, precision=None,
    more={"documentation": documentation_pairs},
)  # fmt: skip
EXPERIMENTS = (PRETRAINING, CONTROLS)


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
    if "documentation" in results:
        return f"{results['documentation']}\n{results['runs']}"
    lines = [f"levels: {results['levels']}"]
    for run in results["runs"]:
        lines += [f"{run}: {name} {in_words(v)}" for name, v in outcome(results, run).items()]
    return "\n".join(lines)


RESULTS = results_of(EXPERIMENTS)
