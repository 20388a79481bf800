"""Lecture 04's experiments: static masking, ten copies, dynamic masking; more text or more steps.

`04_masking_schemes`: a small RoBERTa reads the same few stories forty times, as BERT read its
corpus by the paper's count. All else is equal: only the draw of the mask differs between the
schemes. `04_text_or_steps`: that file's two amounts of text differ in the number of steps as well;
here are the cells that tell the two apart, and texts against masks at equal steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import mean
from typing import Any

import torch

from course_lib.family.roberta import roberta_for_masked_lm
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.teaching.experiments import (
    Experiment,
    Run,
    Stories,
    Trainer,
    english_world,
    results_of,
)
from course_lib.teaching.results import REPLAYED, in_words, kept, made_with
from course_lib.teaching.results import summary as compared
from course_lib.text.world import MicroWorld
from course_lib.train.loop import History, Report
from course_lib.train.metrics import evaluate

from .formats import FORMAT_RUNS

SCHEMES: dict[str, int | None] = {"static": 1, "ten copies": 10, "dynamic": None}
LAST = 50  # steps over which a training loss is averaged


@dataclass(frozen=True)
class MaskingRecipe:
    """A RoBERTa of two layers, 128 wide, on a fixed finite set of stories."""

    steps: int = 1_000
    stories: int = 400
    heldout: int = 500
    length: int = 64
    batch_size: int = 16
    learning_rate: float = 2e-3
    initializer_range: float = 0.05

    @property
    def epochs(self) -> float:
        """How often the run reads every story."""
        return self.steps * self.batch_size / self.stories


# The smaller one is what the lecture also trains live. Both read every story forty times.
RECIPES = {
    "400 stories": MaskingRecipe(),
    "1,600 stories": MaskingRecipe(steps=4_000, stories=1_600),
}
SEEDS = {"400 stories": range(5), "1,600 stories": range(3)}
LIVE = RECIPES["400 stories"]


@dataclass(frozen=True)
class SchemeRecipe(MaskingRecipe):
    """A recipe that names its masking scheme."""

    scheme: str = "dynamic"


# Text and steps apart; and ten times the text with one mask, for 400 stories with ten.
TEXT_OR_STEPS = {
    f"{recipe.scheme}, {recipe.stories:,} stories, {recipe.steps:,} steps": recipe
    for recipe in (
        SchemeRecipe(steps=4_000),
        SchemeRecipe(stories=1_600),
        SchemeRecipe(steps=4_000, scheme="ten copies"),
        SchemeRecipe(stories=4_000, scheme="static"),
    )
}
TEXT_SEEDS = range(2)

# Every batch size reads each of 1,600 stories forty times, at rates around its best.
BATCH_STEPS = {16: 4_000, 64: 1_000, 256: 250}
BATCH_RATES = {
    16: (1e-3, 2e-3, 4e-3), 64: (1e-3, 2e-3, 4e-3, 8e-3), 256: (2e-3, 4e-3, 8e-3),
}  # fmt: skip
BATCHES = {
    f"{size} stories a batch, {rate:g}": SchemeRecipe(
        steps, stories=1_600, batch_size=size, learning_rate=rate
    )
    for size, steps in BATCH_STEPS.items()
    for rate in BATCH_RATES[size]
}
BATCH_SEEDS = range(2)


def prepare_masking(recipe: MaskingRecipe, world: MicroWorld | None = None) -> Stories:
    """The stories that a run reads and is measured on."""
    world = world or english_world()
    return Stories(recipe.stories, recipe.heldout, length=recipe.length, world=world)


def small_roberta(recipe: MaskingRecipe, world: MicroWorld, seed: int) -> BertForMaskedLM:
    """From random initialisation, no dropout."""
    torch.manual_seed(seed)
    pad = world.special.pad
    return roberta_for_masked_lm(
        vocab_size=world.special.vocab_size, pad_token_id=pad,
        max_positions=recipe.length + pad + 1, num_layers=2, hidden_size=128, num_heads=2,
        intermediate_size=512, initializer_range=recipe.initializer_range,
        hidden_dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip


@dataclass
class LossCurve:
    """A callback: held-out accuracy and loss, and the training loss, at `evaluations` steps."""

    material: Stories
    steps: int
    evaluations: int = 10
    precision: str = "auto"
    points: list[dict[str, float]] = field(default_factory=list)
    _recent: list[float] = field(default_factory=list)

    def __call__(self, report: Report) -> None:
        self._recent.append(report.losses["mlm"])
        if report.step % max(1, self.steps // self.evaluations) == 0 or report.step == self.steps:
            self.points.append({"step": report.step, **self.measure(report.model)})

    def measure(self, model: Any) -> dict[str, float]:
        """Losses in nats a selected position. `train_loss` is that of the last steps' own masks;
        `retold_loss` is of the same training stories under masks that no scheme has drawn."""
        special = self.material.world.special
        unseen = evaluate(model, self.material.heldout, special, precision=self.precision)
        retold = evaluate(model, self.material.train[:500], special, precision=self.precision)
        return {
            "heldout_accuracy": unseen.masked_accuracy,
            "heldout_loss": unseen.mlm_loss,
            "train_loss": mean(self._recent[-LAST:]),
            "retold_loss": retold.mlm_loss,
        }


def train_scheme(
    scheme: str, recipe: MaskingRecipe, material: Stories, **settings: Any
) -> tuple[BertForMaskedLM, History]:
    """Train with one masking scheme, by its name in SCHEMES; all else is the same for all three.
    settings: those of a Trainer."""
    # Masks are drawn by (seed, epoch, example); the measuring ones by seed 1, so none coincides.
    train = Trainer(
        lambda recipe, material, seed: (
            small_roberta(recipe, material.world, seed), masked_lm_loss
        ),
        lambda recipe, material, seed: material.batches(
            recipe, seed + 100, mask_copies=SCHEMES[scheme]
        ),
        precision="auto",
    )  # fmt: skip
    return train(recipe, material, **settings)


def one_run(scheme: str, recipe: MaskingRecipe, material: Stories, seed: int) -> dict[str, Any]:
    """One scheme, one seed: its curve. Finished runs are read from the cache."""

    def run() -> dict[str, Any]:
        curve = LossCurve(material, recipe.steps)
        _, history = train_scheme(scheme, recipe, material, seed=seed, callbacks=[curve])
        return {"seed": seed, "curve": curve.points, "seconds": round(history.seconds, 1)}

    settings = {"scheme": scheme, "seed": seed, **asdict(recipe)}
    return kept(f"04-{recipe.stories}-{scheme}-{seed}", settings, material.world, run)


def train_recipe(
    recipe: SchemeRecipe, material: Stories, **settings: Any
) -> tuple[BertForMaskedLM, History]:
    """`train_scheme` on as many stories as the recipe says."""
    stories = prepare_masking(recipe, material.world)
    return train_scheme(recipe.scheme, recipe, stories, **{"precision": "float32", **settings})


def reached(run: Run) -> dict[str, float]:
    """What a model predicts in new stories; all recipes are measured on the same."""
    return run.material.masked_scores(run.model)


EXPERIMENTS = (
    Experiment(
        "04_text_or_steps", TEXT_OR_STEPS, TEXT_SEEDS, partial(prepare_masking, LIVE),
        train_recipe, reached, label="04-{scheme}-{stories}-{steps}-{seed}",
        replayed=next(iter(TEXT_OR_STEPS.values())),
    ),
    Experiment(
        "04_batches", BATCHES, BATCH_SEEDS, partial(prepare_masking, LIVE), train_recipe, reached,
        label="04-batch-{batch_size}-{learning_rate}-{seed}",
    ),
    FORMAT_RUNS,
)  # fmt: skip


def replay(material: Stories) -> list[float]:
    """The first losses of seed 0, dynamic, in float32: alike on every machine to six digits."""
    _, history = train_scheme("dynamic", LIVE, material, steps=REPLAYED, precision="float32")
    return history.losses["total"]


def build() -> dict[str, Any]:
    """What data/results/04_masking_schemes.json holds."""
    world = MicroWorld.load()
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, recipe in RECIPES.items():
        material = prepare_masking(recipe, world)
        runs[name] = {
            scheme: [one_run(scheme, recipe, material, seed) for seed in SEEDS[name]]
            for scheme in SCHEMES
        }
    return {
        "recipes": {name: asdict(recipe) for name, recipe in RECIPES.items()},
        "schemes": SCHEMES,
        **made_with(world),
        "replay": replay(prepare_masking(LIVE, world)),
        "runs": runs,
    }


def outcome(results: Mapping[str, Any], measure: str, of: str) -> dict[str, list[float]]:
    """For each scheme, what each seed reached in the end: a measure of LossCurve, of one set."""
    return {
        scheme: [run["curve"][-1][measure] for run in runs]
        for scheme, runs in results["runs"][of].items()
    }


LOSSES = ("heldout_loss", "train_loss", "retold_loss")


def summary(results: Mapping[str, Any]) -> str:
    """The outcome, a line a scheme or a recipe."""
    if "schemes" not in results:
        return compared(results, ("masked_accuracy", "pairs_accuracy"))
    lines = []
    for name in results["runs"]:
        accuracy = outcome(results, "heldout_accuracy", name)
        losses = {k: outcome(results, k, name) for k in LOSSES}
        lines += [
            f"{name}, {scheme}: held-out accuracy {in_words(values)}; "
            + ", ".join(f"{k} {mean(by_scheme[scheme]):.2f}" for k, by_scheme in losses.items())
            for scheme, values in accuracy.items()
        ]
    return "\n".join(lines)


RESULTS = {"04_masking_schemes": build} | results_of(EXPERIMENTS)
