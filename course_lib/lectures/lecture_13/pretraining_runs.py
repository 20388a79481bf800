"""Every member pre-trained on the same text for equally many FLOPs: the first half of the
benchmark. Models are kept in the cache, so that any part can be repeated by itself.

Each member has its own learning rate: the one whose held-out loss, of the member's own objective
with seed 0, is lowest. A run whose vectors have become alike (ALIKE) has collapsed: it is counted,
and run again at half the rate.

FLOPs are those of the matrix products, forward and backward, of every network that runs: ELECTRA's
generator and the forward pass of a student's teacher among them. What the teacher's own
pre-training took is not in it; the page says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

import torch

from course_lib.checkpoints import load, save
from course_lib.encoder import Encoder, count_parameters
from course_lib.files import cache_dir
from course_lib.teaching.results import REPLAYED, kept
from course_lib.text.world import MicroWorld
from course_lib.train.flops import step_flops
from course_lib.train.loop import fit
from course_lib.train.metrics import evaluate
from course_lib.train.precision import choose_precision, computing_in
from course_lib.train.watch import ALIKE, encoder_likeness

from .members import DOCUMENTATION, Recipe, Trainee, masked_words, prepare, trainee

BERT = Recipe()
FIRST_RATE = {"adamw": 1e-3, "muon": 2e-3}  # that is tried; then its neighbours, by factors of two
HELDOUT_BATCHES, AGAIN = 10, 2
NARROW = 24  # ALBERT's and MobileBERT's embeddings
MEMBERS = {
    "BERT": BERT,
    "RoBERTa": replace(BERT, member="RoBERTa"),
    "ALBERT": replace(BERT, member="ALBERT", embedding_size=NARROW),
    "DistilBERT": replace(BERT, member="DistilBERT", num_layers=2, teacher="BERT"),
    "TinyBERT": replace(BERT, member="TinyBERT", num_layers=2, hidden_size=64, teacher="BERT"),
    "ELECTRA": replace(BERT, member="ELECTRA"),
    "DeBERTa": replace(BERT, member="DeBERTa"),
    "SpanBERT": replace(BERT, member="SpanBERT"),
    "ERNIE": replace(BERT, member="ERNIE"),
    "MobileBERT": replace(
        BERT, member="MobileBERT", hidden_size=64, embedding_size=NARROW, teacher="IB-BERT"
    ),
    "ModernBERT": replace(BERT, member="ModernBERT"),
}
TEACHERS = {"IB-BERT": replace(MEMBERS["MobileBERT"], member="IB-BERT", teacher="")}
# Plain models: RoBERTa, masked words alone, as large as the members of EQUAL.
CONTROLS = {
    "plain, 58 wide": replace(MEMBERS["RoBERTa"], hidden_size=58),
    "plain, 110 wide": replace(MEMBERS["RoBERTa"], hidden_size=110),
    "plain, 138 wide": replace(MEMBERS["RoBERTa"], hidden_size=138),
    "plain, two layers": replace(MEMBERS["RoBERTa"], num_layers=2),
    "plain, two layers, 64 wide": replace(MEMBERS["RoBERTa"], num_layers=2, hidden_size=64),
}
EQUAL = {
    "ALBERT": "plain, 58 wide",
    "MobileBERT": "plain, 58 wide",
    "ModernBERT": "plain, 110 wide",
    "DeBERTa": "plain, 138 wide",
    "DistilBERT": "plain, two layers",
    "TinyBERT": "plain, two layers, 64 wide",
}
RECIPES = {**MEMBERS, **CONTROLS, **TEACHERS}


def recipe_of(name: str, text: str = "stories") -> Recipe:
    """A recipe by name. Documentation is learnt with Muon: AdamW's steps would still be at the
    words' frequencies when those of the stories are long past them."""
    optimizer = "muon" if text == DOCUMENTATION else "adamw"
    return replace(RECIPES[name], text=text, optimizer=optimizer)


@lru_cache
def flops_a_step(recipe: Recipe) -> int:
    """FLOPs of a mean step of the whole pre-training, five batches a part."""
    member = _with_teacher(recipe, 0, trained=False)
    return round(
        sum(
            part.share * step_flops(part.model, part.loss, *map(member.batches, range(5)))
            for part in member.parts
        )
    )


def steps_of(recipe: Recipe) -> int:
    """How many steps take as many FLOPs as BERT's `recipe.flops` steps."""
    bert = recipe_of("BERT", recipe.text)
    return round(recipe.flops * flops_a_step(bert) / flops_a_step(recipe))


def _with_teacher(recipe: Recipe, seed: int, trained: bool = True) -> Trainee:
    """The member before its pre-training; its teacher trained, or, to count, just as large."""
    if not recipe.teacher:
        return trainee(recipe, seed)
    of = recipe_of(recipe.teacher, recipe.text)
    return trainee(recipe, seed, pretrained(of, seed) if trained else trainee(of, seed).kept)


def untrained(recipe: Recipe) -> Any:
    """The model that would be kept, with random weights."""
    return _with_teacher(recipe, 0, trained=False).kept


def path_of(recipe: Recipe, seed: int) -> Path:
    """Where the model of a recipe and a seed lies."""
    shape = f"{recipe.num_layers}x{recipe.hidden_size}"
    rate = f"{recipe.learning_rate:g}"
    name = f"13-{recipe.text}-{recipe.member}-{shape}-{recipe.flops}-{rate}-{seed}.safetensors"
    return cache_dir("results") / name


def train(recipe: Recipe, seed: int, steps: int | None = None) -> tuple[Trainee, list[float]]:
    """Pre-train a member, or only the first `steps` of its steps: the member, trained, and the
    losses."""
    member, done = _with_teacher(recipe, seed), 0
    losses: list[float] = []
    for part in member.parts:
        count = round(part.share * steps_of(recipe)) if steps is None else steps
        history = fit(
            part.model, part.loss, lambda n, done=done: member.batches(done + n),  # type: ignore
            steps=count, learning_rate=recipe.learning_rate, seed=seed, scale=part.scale,
            precision=prepare(recipe.text).precision, optimizer=recipe.optimizer,
        )  # fmt: skip
        done, losses = done + count, losses + history.losses["total"]
        if steps is not None:
            break
    member.kept.requires_grad_(True)
    return member, losses


@torch.no_grad()
def heldout_loss(member: Trainee, precision: str) -> float:
    """A trained member's own loss on HELDOUT_BATCHES of texts that no training saw; of several
    parts the last one's."""
    part, losses = member.parts[-1], []
    part.model.eval()
    torch.manual_seed(0)  # an ELECTRA's generator samples
    for step in range(HELDOUT_BATCHES):
        batch = member.heldout(step)
        with computing_in(choose_precision(precision)):
            outputs = part.model(**batch.inputs)
        losses.append(float(part.loss(outputs, batch.targets)["total"]))
    return mean(losses)


def pretraining_run(recipe: Recipe, seed: int, files: Sequence[Path] = ()) -> dict[str, Any]:
    """One member pre-trained: its steps, size and time, and how many held-out masked words it finds
    (where it has a head that names words). Read from the cache if it was trained before, and
    `files` are still there."""

    def run() -> dict[str, Any]:
        began = process_time()
        try:
            member, losses = train(recipe, seed)
        except FloatingPointError:
            return {"seed": seed, "rate": recipe.learning_rate, "diverged": True}
        model, read = member.kept, prepare(recipe.text)
        seconds = process_time() - began
        save(model, path_of(recipe, seed))
        return {
            "seed": seed,
            "rate": recipe.learning_rate,
            "steps": len(losses),
            "flops": len(losses) * flops_a_step(recipe),
            "parameters": parameters_of(model),
            "masked_accuracy": masked_accuracy(model, recipe.text),
            "loss": mean(losses[-50:]),
            "heldout_loss": heldout_loss(member, read.precision),
            "likeness": encoder_likeness(encoder_of(model), read.heldout),
            "cpu_seconds": round(seconds, 1),
        }

    settings = {"seed": seed, **asdict(recipe), "hash": prepare(recipe.text).hash}
    return kept(f"13-{recipe.member}-{seed}", settings, MicroWorld.load(), run, files)


def lowest_inside(cost: Callable[[float], float], first: float) -> dict[float, float]:
    """Costs by rate: `first` and its neighbours, and on from the lowest by factors of two until
    it has a higher one on either side."""
    tried = {first: cost(first)}
    while True:
        best = min(tried, key=lambda rate: tried[rate])
        missing = [rate for rate in (best / 2, best * 2) if rate not in tried]
        if not missing:
            return dict(sorted(tried.items()))
        tried |= {rate: cost(rate) for rate in missing}


@lru_cache
def rates_tried(recipe: Recipe) -> dict[float, float]:
    """The held-out loss of seed 0 by learning rate; of a run that collapsed it is infinite."""

    def cost(rate: float) -> float:
        run = pretraining_run(replace(recipe, learning_rate=rate), 0)
        return float("inf") if collapsed(run) else run["heldout_loss"]

    return lowest_inside(cost, FIRST_RATE[recipe.optimizer])


def at_best(recipe: Recipe) -> Recipe:
    """The recipe with the best of its rates."""
    tried = rates_tried(recipe)
    return replace(recipe, learning_rate=min(tried, key=lambda rate: tried[rate]))


def collapsed(run: Mapping[str, Any]) -> bool:
    """Whether a run's vectors are alike whatever the text, or it ended in no numbers at all."""
    return "diverged" in run or bool(run["likeness"] >= ALIKE)


def settled_run(recipe: Recipe, seed: int) -> dict[str, Any]:
    """What is said of the run at the recipe's best rate. One that collapsed is repeated at half the
    rate, up to AGAIN times; "collapsed" are the rates at which it did."""
    rate, fallen = at_best(recipe).learning_rate, []
    for n in range(AGAIN + 1):
        run = pretraining_run(replace(recipe, learning_rate=rate / 2**n), seed)
        if not collapsed(run):
            break
        fallen.append(run["rate"])
    return {**run, "collapsed": fallen}


def pretrained(recipe: Recipe, seed: int) -> Any:
    """The model of that run."""
    now = replace(recipe, learning_rate=settled_run(recipe, seed)["rate"])
    pretraining_run(now, seed, [path_of(now, seed)])
    return load(path_of(now, seed))


def pretraining_rates(recipes: Mapping[str, Recipe]) -> dict[str, dict[float, float | None]]:
    """The held-out losses by rate of each recipe as a file holds them; None: collapsed."""
    return {
        name: {rate: loss if isfinite(loss) else None for rate, loss in rates_tried(of).items()}
        for name, of in recipes.items()
    }


def encoder_of(model: Any) -> Encoder:
    """What is fine-tuned: a model's encoder."""
    return model if isinstance(model, Encoder) else model.encoder


def parameters_of(model: Any) -> int:
    """Weights of the encoder that is kept, without a pooler, which not all have."""
    encoder = encoder_of(model)
    return count_parameters(encoder) - (count_parameters(encoder.pooler) if encoder.pooler else 0)


def masked_accuracy(model: Any, text: str = "stories") -> float | None:
    """Held-out masked-token accuracy on a text; None without a head that names words."""
    if not hasattr(model, "mlm"):
        return None
    named = model if hasattr(model, "decoder") else masked_words(model)
    read = prepare(text)
    return evaluate(named, read.heldout, read.special, precision=read.precision).masked_accuracy


def replay() -> list[float]:
    """The first losses of BERT, seed 0: alike on every machine to a few digits."""
    return train(BERT, 0, REPLAYED)[1]
