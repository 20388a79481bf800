"""`16_faster`: how soon can a model be as good as course-bert? course-modernbert's recipe with fewer
steps, with AdamW and with Muon (data/recipes/fast.toml), on the same text.

A run takes half an hour to an hour of one core; one that was stopped goes on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from course_lib.files import cache_dir, data_root
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept
from course_lib.text.world import MicroWorld
from course_lib.train.pretrain import pretrain
from course_lib.train.pretrain_recipe import PretrainRecipe, read_recipe

FILE, STEPS = "16_faster", 5_000


@dataclass(frozen=True)
class Faster:
    """course-modernbert's recipe with another optimizer and so many steps."""

    optimizer: str = "muon"
    steps: int = STEPS


MUON, ADAMW = "ModernBERT, Muon", "ModernBERT, AdamW"
RECIPES = {ADAMW: Faster("adamw"), MUON: Faster()}
SEEDS = {ADAMW: (0,), MUON: (0, 1)}


def recipe_of(faster: Faster, seed: int) -> PretrainRecipe:
    """data/recipes/fast.toml, but for the optimizer, the steps and the seed."""
    read = read_recipe(data_root() / "recipes" / "fast.toml")
    return replace(read, training=replace(read.training, seed=seed, **asdict(faster)))


def one_run(faster: Faster, _: Any, seed: int) -> dict[str, Any]:
    """Held-out masked-token accuracy, at the end and on the way."""

    def run() -> dict[str, Any]:
        folder = cache_dir("pretraining", f"16-{faster.optimizer}-{faster.steps}-{seed}")
        done = pretrain(recipe_of(faster, seed), folder)
        curve = [
            {"step": line["step"], "accuracy": line["heldout_accuracy"]}
            for line in done["curve"]
            if "heldout_accuracy" in line
        ]
        about = {name: done[name] for name in ("parameters", "precision")}
        about["text"] = done["text"]["hash"]
        reached = done["reached"]
        return {"seed": seed, **about, "accuracy": reached["heldout_accuracy"],
                "loss": reached["heldout_loss"], "curve": curve}  # fmt: skip

    return kept("16-faster", {"seed": seed, **asdict(faster)}, MicroWorld.load(), run)


EXPERIMENTS = (Experiment(FILE, RECIPES, SEEDS, run=one_run, precision=None),)
