"""Fine-tuning from what was pre-trained: the second half of the benchmark, for any task."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from time import process_time
from typing import Any

from course_lib.checkpoints import load_pretrained
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
from course_lib.train.watch import ONE_ANSWER, commonest_share

from .members import PIECES, Recipe, prepare, trainee
from .pretraining_runs import AGAIN, at_best, encoder_of, pretrained, recipe_of, untrained

RANDOM, FAST = "random initialisation", "FastBERT"
LADDER = (5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 4e-3, 8e-3)  # of learning rates
FIRST = 5e-4  # that is tried, with its neighbours
EXIT_SIZE = 32  # of FastBERT's exits
Texts = LabelledSequences | ScoredSequences


@dataclass(frozen=True)
class Tuning:
    """Fine-tuning from one start. start: a name of RECIPES, RANDOM, FAST (BERT with exits), or
    PIECES, the checkpoint of that name."""

    start: str = "BERT"
    steps: int = 500
    batch_size: int = 16
    speed: float = 1.0
    text: str = "stories"  # that it was pre-trained on


def start_of(recipe: Tuning, seed: int) -> Encoder:
    """The encoder that is fine-tuned."""
    if recipe.start == PIECES:
        return encoder_of(load_pretrained(recipe.start).model)
    if recipe.start == RANDOM:
        return encoder_of(trainee(pretraining_of(recipe), seed).kept)
    return encoder_of(pretrained(pretraining_of(recipe), seed))


def untrained_start(recipe: Tuning) -> Encoder:
    """An encoder as large as that which is fine-tuned."""
    return encoder_of(untrained(pretraining_of(recipe)))


def pretraining_of(recipe: Tuning) -> Recipe:
    """A start's pre-training, at the rate all begin with; FAST and RANDOM are as large as BERT."""
    return recipe_of("BERT" if recipe.start in (FAST, RANDOM) else recipe.start, recipe.text)


def best_of(score: Callable[[float], float]) -> tuple[dict[float, float], float]:
    """What each rate tried scores, and the best: FIRST and its neighbours on LADDER, and on from
    the best until it has a neighbour on either side."""
    tried: dict[float, float] = {}
    at, end = LADDER.index(FIRST), len(LADDER) - 1
    while True:
        for n in range(max(at - 1, 0), min(at + 1, end) + 1):
            tried.setdefault(LADDER[n], score(LADDER[n]))
        # Of those that score alike, the one nearest to where the others began.
        best = max(tried, key=lambda rate: (tried[rate], -abs(math.log(rate / FIRST))))
        if at == (at := LADDER.index(best)):
            return dict(sorted(tried.items())), best


def settled(
    run: Callable[[float], dict[str, Any]], rate: float
) -> tuple[dict[str, Any], float, list[float]]:
    """A task's run at its best rate, that rate, and the rates at which it collapsed: one that says
    a single answer is repeated up to AGAIN times, each time a step of LADDER lower."""
    fallen: list[float] = []
    for lower in reversed(LADDER[: LADDER.index(rate) + 1][-1 - AGAIN :]):
        outcome = run(lower)
        if not one_answer(outcome):
            return outcome, lower, fallen
        fallen.append(lower)
    return run(rate), rate, fallen


def one_answer(outcome: Mapping[str, Any], split: str = "validation") -> bool:
    """Whether a fine-tuned model says one thing to (nearly) all texts of a split."""
    return "diverged" in outcome or commonest_share(outcome["said"][split]) >= ONE_ANSWER


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
        batch_size = recipe.batch_size
        try:
            if recipe.start == FAST and isinstance(train, LabelledSequences):
                return _with_exits(recipe, encoder, train, tasks, settings)
            model = finetune(encoder, train, batch_size=batch_size, plain_head=True, **settings)
        except FloatingPointError:
            return {"diverged": True, "cpu_seconds": round(process_time() - began, 1)}
        predictions = {split: _predictions(model, task) for split, task in tasks.items()}
        return {"said": predictions, "cpu_seconds": round(process_time() - began, 1)}

    begins: Any = recipe.start
    if begins != PIECES:
        pretraining = pretraining_of(recipe)
        begins = asdict(pretraining if begins == RANDOM else at_best(pretraining))
    settings = {**about, "rate": rate, "seed": seed, **asdict(recipe), "from": begins}
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
    model = fastbert_on(encoder, train.names, settings["seed"], exit_size=EXIT_SIZE)
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
