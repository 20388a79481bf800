"""Lecture 08's experiment on SiFT (He et al. 2020, section 4): fine-tuning with few labels, with
and without its term.

`08_sift`: the small BERT that the course ships, on a hundred labels of the micro-world."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.checkpoints import load
from course_lib.encoder import Encoder
from course_lib.files import data_path
from course_lib.heads import BertForClassification
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.sift import sift_loss
from course_lib.teaching.results import REPLAYED, compared_runs, kept
from course_lib.text.tasks import LabelledSequences, unstated_facts
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import class_accuracy, classifier_on, labelled_batches, text_inputs
from course_lib.train.loop import History, Objective, fit

PRECISION = "float32"
LABELLED, STORIES, HELDOUT, LENGTH = 100, 5_000, 5_000, 64
MOVED_TEXTS = 200  # held-out texts on which the perturbation's effect is measured
SEEDS = range(5)


@dataclass(frozen=True)
class SiftRecipe:
    """Fine-tuning with λ times SiFT's term; start and step as in `sift_loss`."""

    weight: float = 5.0  # λ; the authors' scripts have 3 to 5
    start: float = 1e-2
    step: float = 1e-4
    steps: int = 100
    batch_size: int = 16
    learning_rate: float = 1e-3


SIFT = SiftRecipe()
RECIPES = {
    "without SiFT": replace(SIFT, weight=0.0),
    "SiFT": SIFT,
    "SiFT, larger perturbation": replace(SIFT, start=0.1, step=0.1),
}


@dataclass(frozen=True)
class SiftMaterial:
    """The encoder to fine-tune; texts with labels, of which each seed takes a hundred others."""

    world: MicroWorld
    encoder: Encoder
    task: LabelledSequences
    heldout: LabelledSequences


def prepare(world: MicroWorld | None = None) -> SiftMaterial:
    """The unstated-fact task, and the four-layer BERT that read the same stories."""
    world = world or MicroWorld.load()
    told = world.stories(STORIES, seed=0)
    unseen = world.stories(HELDOUT, seed=0, split="heldout")
    teacher: Any = load(data_path("checkpoints", "micro_teacher.safetensors"))
    tasks = (unstated_facts(world, stories, LENGTH) for stories in (told, unseen))
    return SiftMaterial(world, teacher.encoder, *tasks)


@dataclass
class SiftedOutput:
    """A classifier's logits (B, classes), and how far a perturbation moves them, in nats."""

    logits: Tensor
    moved: Tensor


class Sifted(nn.Module):
    """A classifier that is trained with SiFT: each call also asks how far a perturbation of the
    embeddings moves its answer."""

    def __init__(self, model: BertForClassification, start: float, step: float) -> None:
        super().__init__()
        self.model, self.start, self.step = model, start, step

    def forward(self, **inputs: Tensor) -> SiftedOutput:
        norm: Any = self.model.encoder.embeddings.norm
        found = sift_loss(
            lambda: self.model(**inputs).logits, norm, start=self.start, step=self.step
        )
        return SiftedOutput(*found)


def sift_objective(weight: float) -> Objective:
    """The task's loss + λ · SiFT's term, both in nats a text."""

    def loss(outputs: Any, targets: Any) -> dict[str, Tensor]:
        task = classification_loss(outputs, targets)["total"]
        return {"total": task + weight * outputs.moved, "task": task, "sift": outputs.moved}

    return loss


def train_sift(
    recipe: SiftRecipe, material: SiftMaterial, *, seed: int = 0, steps: int | None = None
) -> tuple[BertForClassification, History]:
    """Fine-tune one recipe on the seed's hundred labels; without λ the model alone."""
    task = material.task[seed * LABELLED : (seed + 1) * LABELLED]
    model = classifier_on(material.encoder, task.names, seed)
    trained: nn.Module = Sifted(model, recipe.start, recipe.step) if recipe.weight else model
    history = fit(
        trained, sift_objective(recipe.weight) if recipe.weight else classification_loss,
        labelled_batches(task, recipe.batch_size, seed), steps=steps or recipe.steps,
        learning_rate=recipe.learning_rate, seed=seed, precision=PRECISION,
    )  # fmt: skip
    return model, history


def moved_by(model: BertForClassification, task: LabelledSequences, recipe: SiftRecipe) -> float:
    """How far a perturbation of the recipe's size moves the answers, in nats a text."""
    torch.manual_seed(0)
    inputs = text_inputs(task[:MOVED_TEXTS])
    norm: Any = model.encoder.embeddings.norm
    _, moved = sift_loss(lambda: model(**inputs).logits, norm, start=recipe.start, step=recipe.step)
    return float(moved.detach())


def one_run(recipe: SiftRecipe, material: SiftMaterial, seed: int) -> dict[str, Any]:
    """One recipe, one seed: what it reached. Finished runs are read from the cache."""

    def run() -> dict[str, Any]:
        model, history = train_sift(recipe, material, seed=seed)
        larger = RECIPES["SiFT, larger perturbation"]
        return {
            "seed": seed,
            "accuracy": class_accuracy(model, material.heldout),
            "moved": moved_by(model, material.heldout, SIFT),
            "moved_by_larger": moved_by(model, material.heldout, larger),
            "seconds": round(history.seconds, 1),
        }

    name = f"08-sift-{recipe.weight}-{recipe.start}"
    return kept(name, {"seed": seed, **asdict(recipe)}, material.world, run)


def replay(material: SiftMaterial) -> list[float]:
    """The first losses of SiFT, seed 0."""
    return train_sift(SIFT, material, steps=REPLAYED)[1].losses["total"]


def build_sift() -> dict[str, Any]:
    """What data/results/08_sift.json holds."""
    material = prepare()
    return compared_runs(
        RECIPES, SEEDS, material.world, lambda recipe, seed: one_run(recipe, material, seed),
        precision=PRECISION, replay=replay(material),
        labels={"classes": len(material.task.names), "heldout": len(material.heldout),
                "majority": material.heldout.commonest},
    )  # fmt: skip
