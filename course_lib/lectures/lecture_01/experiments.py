"""Lecture 01's experiments.

`01_elmo`: the pre-training of the micro-world's ELMo, as shipped. `01_static`: static vectors of
both kinds, of stories and of documentation. `01_senses`: words with two senses, and what vectors
of each kind know about them. `01_three_kinds`: three kinds of Transformer on three tasks."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from course_lib.checkpoints.elmo import load_elmo, save_elmo
from course_lib.encoder import count_parameters
from course_lib.files import cache_dir, data_path, data_root, sha256_of, write_manifest
from course_lib.teaching import results
from course_lib.teaching.results import REPLAYED, compared_runs, kept, made_with
from course_lib.teaching.shipped import ELMO
from course_lib.text.world import MicroWorld
from course_lib.train.loop import fit
from course_lib.train.pretrain import pretrain, set_up
from course_lib.train.pretrain_recipe import read_recipe

from .three_kinds import LEFT, TASKS, KindRecipe, recipes, sentence_pairs, test_examples, train
from .three_kinds import two_languages

PRECISION = "float32"  # on every machine, so that results can be compared
SEEDS = range(3)
CURVE = 50  # steps whose losses become one point of a stored curve


# ---------------------------------------------------------------- three kinds of Transformer


def kind_recipes() -> dict[str, KindRecipe]:
    """Every kind on every task; gaps, three words a row, are given more steps."""
    long = recipes(KindRecipe(steps=1_200))
    return {name: long[name] if of.task == TASKS[0] else of for name, of in recipes().items()}


def kind_run(recipe: KindRecipe, seed: int) -> dict[str, Any]:
    """One kind on one task with one seed. Finished runs are read from the cache."""
    both = two_languages()

    def run() -> dict[str, Any]:
        begun = time.process_time()
        trained = train(recipe, seed=seed, both=both)
        seconds = round(time.process_time() - begun, 1)
        losses = trained.history.losses["total"]
        curve = [sum(losses[k : k + CURVE]) / CURVE for k in range(0, len(losses), CURVE)]
        return {
            "seed": seed, "parameters": count_parameters(trained.model),
            **trained.measure(test_examples(both, recipe.task)),
            "curve": [round(loss, 4) for loss in curve], "processor_seconds": seconds,
        }  # fmt: skip

    return kept("01-kinds", {"seed": seed, **asdict(recipe)}, both.world, run)


def replay_kinds() -> list[float]:
    """The first losses of the encoder-decoder that translates, seed 0."""
    recipe = kind_recipes()["encoder-decoder: translate"]
    return train(recipe, steps=REPLAYED).history.losses["total"]


def build_three_kinds() -> dict[str, Any]:
    """What data/results/01_three_kinds.json holds."""
    both = two_languages()
    return compared_runs(
        kind_recipes(), SEEDS, both.world, kind_run, precision=PRECISION, replay=replay_kinds(),
        pairs=len(sentence_pairs(both)), words=len(both.words), left_only=LEFT,
    )  # fmt: skip
