"""Fine-tuning from what was pre-trained: the second half of the benchmark, for any task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from time import process_time
from typing import Any

from course_lib.encoder import Encoder
from course_lib.kernels.early_exit import Exited
from course_lib.teaching.results import kept
from course_lib.text.tasks import LabelledSequences, ScoredSequences
from course_lib.text.world import MicroWorld
from course_lib.train.exits import fastbert_on, train_backbone, train_students, unlabelled_batches
from course_lib.train.finetuning import (
    finetune,
    labelled_batches,
    model_inputs,
    predicted_classes,
    predicted_values,
)

from .members import prepare, trainee
from .pretraining_runs import encoder_of, pretrained, recipe_of

RANDOM, FAST = "random initialisation", "FastBERT"
Texts = LabelledSequences | ScoredSequences


@dataclass(frozen=True)
class Tuning:
    """Fine-tuning from one start. start: a name of RECIPES, RANDOM, or FAST: BERT with exits."""

    start: str = "BERT"
    steps: int = 500
    batch_size: int = 16
    speed: float = 1.0
    text: str = "stories"  # that it was pre-trained on


def start_of(recipe: Tuning, seed: int) -> Encoder:
    """The encoder that is fine-tuned."""
    name = "BERT" if recipe.start in (FAST, RANDOM) else recipe.start
    pretraining = recipe_of(name, recipe.text)
    random = recipe.start == RANDOM
    return encoder_of(trainee(pretraining, seed).kept if random else pretrained(pretraining, seed))


def tuned(
    recipe: Tuning,
    name: str,
    rate: float,
    seed: int,
    task_of: Callable[[str], Texts],
    splits: Sequence[str],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """One start, one task: what the fine-tuned model says of every text of `splits`. Read from the
    cache if it was done before.

    task_of: the texts of a split; "train" are those to learn from. about: what these are."""

    def run() -> dict[str, Any]:
        began, encoder = process_time(), start_of(recipe, seed)
        tasks = {split: task_of(split) for split in ("train", *splits)}
        train = tasks.pop("train")
        settings: dict[str, Any] = {
            "steps": recipe.steps, "learning_rate": rate, "seed": seed,
            "precision": prepare(recipe.text).precision,
        }  # fmt: skip
        if recipe.start == FAST and isinstance(train, LabelledSequences):
            return _with_exits(recipe, encoder, train, tasks, settings)
        batch_size = recipe.batch_size
        model = finetune(encoder, train, batch_size=batch_size, plain_head=True, **settings)
        predictions = {split: _predictions(model, task) for split, task in tasks.items()}
        return {"said": predictions, "cpu_seconds": round(process_time() - began, 1)}

    flops = recipe_of("BERT", recipe.text).flops
    settings = {**about, "rate": rate, "seed": seed, **asdict(recipe), "flops": flops}
    return kept(f"13-{recipe.start}-{name}-{seed}", settings, MicroWorld.load(), run)


def _predictions(model: Any, task: Texts) -> list[Any]:
    if isinstance(task, ScoredSequences):
        return [round(value, 3) for value in predicted_values(model, task)]
    return list(predicted_classes(model, task))


def _with_exits(
    recipe: Tuning,
    encoder: Encoder,
    train: LabelledSequences,
    tasks: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """FastBERT: backbone and teacher on labels, then the students on the same texts without."""
    began = process_time()
    model = fastbert_on(encoder, train.names, settings["seed"], exit_size=32)
    train_backbone(model, labelled_batches(train, recipe.batch_size, settings["seed"]), **settings)
    texts = unlabelled_batches(train.sequences, recipe.batch_size, settings["seed"])
    train_students(model, texts, **{**settings, "steps": recipe.steps // 2})
    model.eval()
    predictions, layers = {}, []
    for split, task in tasks.items():
        inputs: Any = model_inputs(task)
        exited: Exited = model.answer(**inputs, speed=recipe.speed)
        predictions[split] = [train.names[n] for n in exited.logits.argmax(-1)]
        layers += exited.layers_used.tolist() if split != "validation" else []
    return {
        "said": predictions,
        "layers": fmean(layers),
        "cpu_seconds": round(process_time() - began, 1),
    }
