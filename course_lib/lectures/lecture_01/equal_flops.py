"""`01_equal`: an ELMo that reads ten times as much, and a BERT of as many FLOPs; both read the
documentation, and are asked for the senses of words like `01_senses`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from course_lib.checkpoints import load_pretrained
from course_lib.checkpoints.elmo import load_elmo
from course_lib.files import cache_dir, data_path
from course_lib.teaching.experiments import Experiment, english_world
from course_lib.teaching.results import kept
from course_lib.text.wordpiece import WordPiece
from course_lib.train.flops import step_flops
from course_lib.train.pretrain import batches_of, pretrain, set_up
from course_lib.train.pretrain_recipe import PretrainRecipe, read_recipe

from .senses import Vectors, bert_layers, documentation_mentions, elmo_layers, known_senses

SEEDS = range(3)  # of the classifiers; every network is trained once


@dataclass(frozen=True)
class EqualRecipe:
    """A network, and how long and at which rate it is trained."""

    network: str
    steps: int
    learning_rate: float


LONG = 10_000  # steps of the ELMo; the page's first has 1,000
BERT_STEPS = 2_870  # of as many FLOPs
EQUAL = {
    f"{r.network}, {r.steps:,} steps, {r.learning_rate:g}": r
    for r in (
        EqualRecipe("ELMo", LONG, 1e-2),
        EqualRecipe("BERT", BERT_STEPS, 1e-3),
        EqualRecipe("BERT", BERT_STEPS, 2e-3),
    )
}


def pretraining(recipe: EqualRecipe) -> PretrainRecipe:
    """The course's own recipe of this network, with the ELMo's rows: 32 of 64 tokens a step. Half
    of a BERT's steps read rows of 32, as many tokens."""
    own = {"ELMo": "elmo_documentation.toml", "BERT": "course_bert.toml"}[recipe.network]
    whole = read_recipe(data_path("recipes", own))
    short = recipe.steps // 2 if recipe.network == "BERT" else 0
    training = replace(
        whole.training, steps=recipe.steps, learning_rate=recipe.learning_rate, short_steps=short,
        precision="float32",
    )  # fmt: skip
    rows = replace(whole.text, length=64, heldout=300)
    reports = replace(whole.reports, log_every=50, evaluate_every=500, save_every=250)
    return replace(whole, training=training, text=rows, reports=reports)


def finished(recipe: PretrainRecipe, folder: Path) -> dict[str, Any]:
    """What the run of a recipe in this folder reported. A run that was stopped goes on."""
    if not (folder / "results.json").exists():
        pretrain(recipe, folder)
    report: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return report


def vectors_of(recipe: EqualRecipe, folder: Path) -> Vectors:
    """The hidden states of a network that was trained in this folder."""
    if recipe.network == "ELMo":
        return elmo_layers(load_elmo(folder / "model.safetensors")[0].encoder.eval())
    trained = load_pretrained(folder / "model")
    assert isinstance(trained.tokenizer, WordPiece)
    return bert_layers(trained.encoder, trained.tokenizer)


def one_run(recipe: EqualRecipe) -> dict[str, Any]:
    """What the network reached, and what its layers know of senses. Finished runs are read from the
    cache."""

    def run() -> dict[str, Any]:
        name = f"01-{recipe.network}-{recipe.steps}-{recipe.learning_rate:g}"
        folder = cache_dir("pretraining", name)
        report = finished(pretraining(recipe), folder)
        points = [line for line in report["curve"] if "heldout_loss" in line]
        layers = known_senses(documentation_mentions(), vectors_of(recipe, folder), SEEDS)
        return {
            "seed": 0, **report["reached"], "parameters": report["parameters"],
            "text": report["text"]["hash"], "curve": points, "layers": layers,
        }  # fmt: skip

    return kept("01-equal", asdict(recipe), english_world(), run)


def flops_a_step(recipe: PretrainRecipe) -> int:
    """FLOPs of a step, the mean of ten batches from the whole run."""
    ready, steps = set_up(recipe), recipe.training.steps
    batches = map(batches_of(ready), range(0, steps, steps // 10))
    return step_flops(ready.model, ready.objective, *batches)


EQUAL_RUNS = Experiment(
    "01_equal", EQUAL, range(1), run=lambda recipe, _, seed: one_run(recipe),
    more={
        "classifiers": len(SEEDS),
        "flops_a_step": lambda _: {
            "course-bert": flops_a_step(read_recipe(data_path("recipes", "course_bert.toml")))
        } | {r.network: flops_a_step(pretraining(r)) for r in EQUAL.values()},
    },
)  # fmt: skip
