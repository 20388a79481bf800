"""`16_ladder`: from BERT to ModernBERT, one change a rung, for equally many FLOPs; `16_ladder_2026`
goes on from there to what EuroBERT and UltraBERT have.

Four layers, 128 wide, no dropout, the stories of the micro-world. Every rung keeps the changes of
those before it; the controls, `16_controls`, make one change alone. A rung's accuracy is that of
held-out masked words, looked at 16 times. What it learnt at 64 tokens is also tried further back
and in longer texts. `16_norms` trains twelve layers without warm-up, norms after and before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

import torch
import torch.nn.functional as F

from course_lib.checkpoints import save
from course_lib.encoder import count_parameters
from course_lib.family.eurobert import EuroBertConfig, eurobert_encoder
from course_lib.family.modernbert import AS_BERT, ModernBertConfig, modernbert_encoder
from course_lib.files import cache_dir
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences, pack, to_sequences
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import REPLAYED, kept
from course_lib.text.world import MicroWorld, story_sequences
from course_lib.train.flops import step_flops
from course_lib.train.loop import Batches, Report, fit
from course_lib.train.metrics import evaluate, evaluation_mask

STORIES, HELDOUT, LENGTH, LONGEST = 10_000, 500, 64, 512
LOOKS, SEEDS, PRECISION = 16, range(3), "float32"
LONGER = (256, 512)  # tokens of the texts that are longer than any read in training
FURTHER_BACK = (192, 448)  # positions before the stories


@dataclass(frozen=True)
class Recipe:
    """A rung's training. changes: settings that are not AS_BERT's. rate: of the words, are masked.
    flops: as many as BERT needs for this many steps; with `steps`, so many steps instead."""

    changes: tuple[tuple[str, Any], ...] = ()
    rate: float = 0.15
    flops: int = 800
    steps: int = 0
    num_layers: int = 4
    hidden_size: int = 128
    batch_size: int = 32
    learning_rate: float = 2e-3
    warmup: float = 0.1
    initializer_range: float = 0.05


BERT = Recipe()
GATED = {"gated": True, "intermediate_size": 341}  # 8/3 of 128: as many weights as 4 without a gate
# One base for all layers: 160,000 is for texts of thousands of tokens.
ROTARY = {"rotary": True, "global_base": 10_000.0}
CHANGES: dict[str, dict[str, Any]] = {
    "BERT": {},
    "no segments, no biases": {"type_vocab_size": 0, "biases": False},
    "pre-norm": {"pre_norm": True, "final_norm": True},
    "RoPE": ROTARY,
    "GeGLU": GATED,
    "local layers": {"global_every": 3, "window": 32},
    "30% masked": {},
}
LAST = "30% masked"
# EuroBERT's settings, as ModernBERT has them; and what is changed, one after another.
AS_MODERN: dict[str, Any] = {
    "norm": "layer_norm", "hidden_act": "gelu", "embedding_norm": True, "first_norm": False,
}  # fmt: skip
CHANGES_2026: dict[str, dict[str, Any]] = {
    "RMSNorm": {**AS_MODERN, "norm": "rms_norm"},
    "SwiGLU": {"hidden_act": "silu"},
    "grouped heads": {"num_key_value_heads": 1},  # of the two heads that this size has
}


def changed(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe with these settings as well."""
    return replace(recipe, changes=tuple({**dict(recipe.changes), **changes}.items()))


def _rungs() -> dict[str, Recipe]:
    rungs, reached = {}, BERT
    for name, changes in CHANGES.items():
        reached = changed(reached, changes)
        rungs[name] = replace(reached, rate=0.3) if name == LAST else reached
    return rungs


RUNGS = _rungs()


def _rungs_2026() -> dict[str, Recipe]:
    reached, rungs = RUNGS[LAST], {}
    for name, changes in CHANGES_2026.items():
        rungs[name] = reached = changed(reached, changes)
    return rungs


RUNGS_2026 = _rungs_2026()
BEFORE = {name: one for one, name in pairwise((*RUNGS, *RUNGS_2026))}  # a rung: the one below it
CONTROLS = {"BERT + RoPE": changed(BERT, ROTARY), "BERT + GeGLU": changed(BERT, GATED)}
# Matrices keep the size of what goes through them: 1/√H. At 0.05 both ways begin nearly alike.
DEEP = replace(BERT, num_layers=12, hidden_size=64, steps=250, warmup=0.0, initializer_range=0.125)
NORMS = {
    f"{name}, {rate:g}{', warm-up' if warmup else ''}": replace(
        changed(DEEP, changes), learning_rate=rate, warmup=warmup
    )
    for name, changes, warmup in (
        ("post-norm", {}, 0.0), ("post-norm", {}, 0.2), ("pre-norm", CHANGES["pre-norm"], 0.0)
    )
    for rate in (5e-4, 2e-3)
}  # fmt: skip


@dataclass(frozen=True)
class Stories:
    """Training stories, one a sequence; and the held-out ones: as in training, and one after
    another (by length)."""

    world: MicroWorld
    train: PackedSequences
    heldout: PackedSequences
    longer: Mapping[int, PackedSequences]


@lru_cache(maxsize=1)
def prepare() -> Stories:
    """Draw the stories (seed 0 of each split) and pack them."""
    world = MicroWorld.load()
    stories, unseen = world.stories(STORIES), world.stories(HELDOUT, split="heldout")
    return Stories(
        world,
        story_sequences(world, stories, LENGTH),
        story_sequences(world, unseen, LENGTH),
        {length: one_after_another(world, unseen, length) for length in LONGER},
    )


def one_after_another(world: MicroWorld, stories: Any, length: int) -> PackedSequences:
    """[CLS], as many stories as there is room for, [SEP]; a [SEP] after each story."""
    sep, rows = world.special.sep, []
    row: list[int] = []
    for document in world.documents(stories):
        story = [*chain(*document), sep]
        if len(row) + len(story) > length - 1:
            rows.append(row)
            row = []
        row = row + story
    return to_sequences([pack(row[:-1], None, world.special, length) for row in [*rows, row]])


def model_of(recipe: Recipe, seed: int) -> BertForMaskedLM:
    """A rung's model, randomly initialised. It has positions for texts of LONGEST tokens, of which
    training reaches the first LENGTH."""
    torch.manual_seed(seed)
    H = recipe.hidden_size
    settings = {
        "vocab_size": prepare().world.special.vocab_size, "max_positions": LONGEST,
        "num_layers": recipe.num_layers, "hidden_size": H, "num_heads": 2,
        "intermediate_size": 4 * H, "pad_token_id": prepare().world.special.pad,
        "initializer_range": recipe.initializer_range,
    } | AS_BERT | dict(recipe.changes)  # fmt: skip
    if "norm" in settings:
        return BertForMaskedLM(eurobert_encoder(EuroBertConfig(**settings)))
    return BertForMaskedLM(modernbert_encoder(ModernBertConfig(**settings)))


def batches_of(recipe: Recipe, seed: int) -> Batches:
    """The stories as this rung reads them, masked anew in every epoch."""
    stories = prepare()
    return pretraining_batches(
        stories.train, stories.world.special,
        batch_size=recipe.batch_size, rate=recipe.rate, seed=seed + 100,
    )  # fmt: skip


@lru_cache
def flops_a_step(recipe: Recipe) -> int:
    """FLOPs of a mean step, over five batches."""
    model, batches = model_of(recipe, 0), batches_of(recipe, 0)
    return step_flops(model, masked_lm_loss, *map(batches, range(5)))


def steps_of(recipe: Recipe) -> int:
    """How many steps take as many FLOPs as BERT's `recipe.flops` steps; or `recipe.steps`."""
    return recipe.steps or round(recipe.flops * flops_a_step(BERT) / flops_a_step(recipe))


def path_of(name: str, recipe: Recipe, seed: int) -> Path:
    """Where the model of a rung and a seed lies."""
    name = name.replace(" ", "-").replace(",", "").replace("%", "")
    return cache_dir("results") / f"16-{name}-{recipe.flops}-{seed}.safetensors"


def accuracy(model: BertForMaskedLM, sequences: PackedSequences) -> float:
    """Masked-token accuracy; 15% are masked, whatever the rung was trained with."""
    return evaluate(model, sequences, prepare().world.special, precision=PRECISION).masked_accuracy


@torch.no_grad()
def accuracy_further_back(model: BertForMaskedLM, by: int) -> float:
    """The same, on the same masked words, with `by` paddings before each story, which nobody sees:
    its positions are later, and nothing else is changed."""
    held, special = prepare().heldout, prepare().world.special
    masked, right = evaluation_mask(held, special), 0
    row, at = masked.predict_at // LENGTH, masked.predict_at % LENGTH
    ids, mask = (F.pad(x, (by, 0)) for x in (masked.input_ids, held.attention_mask))
    for rows in torch.arange(len(held)).split(100):
        here = (row >= rows[0]) & (row <= rows[-1])
        places = (row[here] - rows[0]) * (LENGTH + by) + by + at[here]
        predictions = model(ids[rows], mask[rows], predict_at=places).prediction_logits.argmax(-1)
        right += int((predictions == masked.original_ids[here]).sum())
    return right / len(masked.original_ids)


class Curve:
    """A callback of `fit` that notes what `look` finds of the model, every so many steps."""

    def __init__(self, every: int, look: Callable[[Any], dict[str, float]]) -> None:
        self.every, self.look = every, look
        self.values: dict[str, list[float]] = {}
        self.seconds = 0.0  # that looking took

    def __call__(self, report: Report) -> None:
        began = process_time()
        for name, value in {"steps": report.step, **self.look(report.model)}.items():
            self.values.setdefault(name, []).append(value)
        self.seconds += process_time() - began


def train(recipe: Recipe, seed: int, steps: int | None = None) -> tuple[BertForMaskedLM, Any, Any]:
    """A rung trained, or only its first `steps` steps: model, history, curve."""
    model, count = model_of(recipe, seed), steps or steps_of(recipe)
    curve = Curve(-(-count // LOOKS), lambda m: {"accuracy": accuracy(m, prepare().heldout)})
    history = fit(
        model, masked_lm_loss, batches_of(recipe, seed), steps=count, seed=seed,
        learning_rate=recipe.learning_rate, warmup=recipe.warmup, precision=PRECISION,
        callbacks=() if steps else (curve,),
    )  # fmt: skip
    return model, history, curve


def rung_run(name: str, recipe: Recipe, seed: int) -> dict[str, Any]:
    """One rung trained and looked at. Read from the cache if it was trained before."""

    def run() -> dict[str, Any]:
        began = process_time()
        model, history, curve = train(recipe, seed)
        seconds = process_time() - began - curve.seconds
        save(model, path_of(name, recipe, seed))
        stories, steps = prepare(), curve.values["steps"][-1]
        return {
            "seed": seed,
            "steps": steps,
            "flops_a_step": flops_a_step(recipe),
            "block_parameters": count_parameters(model.encoder.stack),
            "accuracy": curve.values["accuracy"][-1],
            "curve": curve.values,
            "loss": mean(history.losses["total"][-50:]),
            "further_back": {str(n): accuracy_further_back(model, n) for n in FURTHER_BACK},
            "longer": {str(n): accuracy(model, x) for n, x in stories.longer.items()},
            "cpu_seconds_a_step": round(seconds / steps, 4),
        }

    settings = {"seed": seed, **asdict(recipe)}
    files = [path_of(name, recipe, seed)]
    return kept(f"16-{name}-{seed}", settings, prepare().world, run, files)


def ladder(name: str, recipes: Mapping[str, Recipe], **more: Any) -> Experiment:
    """A file of rungs."""
    names = {recipe: rung for rung, recipe in recipes.items()}
    return Experiment(
        name, recipes, SEEDS, prepare, **more,
        run=lambda recipe, _, seed: rung_run(names[recipe], recipe, seed),
    )  # fmt: skip


EXPERIMENTS = (
    ladder("16_ladder", RUNGS, losses=lambda _: train(RUNGS[LAST], 0, REPLAYED)[1].losses["total"]),
    ladder("16_controls", CONTROLS),
    ladder("16_ladder_2026", RUNGS_2026),
    ladder("16_norms", NORMS),
)
