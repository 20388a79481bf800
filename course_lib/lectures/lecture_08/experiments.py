"""Lecture 08's experiments: does it help to disentangle content and position; what is each part
worth?

`08_positions`: the same small BERT and DeBERTa on masked words, at equal steps and at equal time;
DeBERTa without each of its parts; both at equal depth. An hour on one core, or more. `08_queue`: a
text in which only the absolute position tells the word, and four ways to give it to a model. What
v3 shares between ELECTRA's networks is tried in embedding_sharing.py, SiFT in sift_runs.py."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import mean, median
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.config import BertConfig
from course_lib.encoder import Encoder, count_parameters, initialise
from course_lib.family.deberta import (
    TERMS,
    DebertaConfig,
    DebertaForMaskedLM,
    deberta_encoder,
    deberta_masked_lm,
)
from course_lib.heads import BertForMaskedLM, MaskedLMOutput
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.sequences import Batch
from course_lib.teaching import results
from course_lib.teaching.experiments import (
    Experiment,
    Run,
    Stories,
    Trainer,
    english_world,
    results_of,
)
from course_lib.teaching.results import kept
from course_lib.teaching.results import outcome as outcome  # where page 08 imports it from
from course_lib.text.tasks import Queues, queues
from course_lib.text.world import MicroWorld
from course_lib.train.flops import step_flops
from course_lib.train.loop import Batches

from .embedding_sharing import SHARED_EMBEDDINGS
from .sift_runs import SIFT_RUNS

STORIES, HELDOUT, LENGTH = 10_000, 500, 64
SEEDS = range(5)


@dataclass(frozen=True)
class PositionRecipe:
    """A small BERT or DeBERTa, 128 wide, on a fixed finite set of stories.

    kind: "absolute" (BERT) or "disentangled"; the rest of the first block belongs to the second.
    places: False leaves the decoder's two visits, but its position embeddings at zero."""

    kind: str = "disentangled"
    steps: int = 1_200
    layers: int = 2
    terms: tuple[str, ...] = TERMS
    decoder: bool = True
    places: bool = True
    span: int = LENGTH

    batch_size: int = 32
    learning_rate: float = 2e-3
    initializer_range: float = 0.05


FULL = PositionRecipe()
ABSOLUTE = replace(FULL, kind="absolute")
# A step of DeBERTa takes this many times as long as one of BERT: `step_seconds`, one thread.
TIME_RATIO = 1.9
CONTROL = "three blocks, without decoder"
RECIPES = {
    "BERT": ABSOLUTE,
    "DeBERTa": FULL,
    "without c2p": replace(FULL, terms=("p2c",)),
    "without p2c": replace(FULL, terms=("c2p",)),
    "without decoder": replace(FULL, decoder=False),
    "decoder without places": replace(FULL, places=False),
    "no distances": replace(FULL, terms=()),
    "BERT, three blocks": replace(ABSOLUTE, layers=3),
    CONTROL: replace(FULL, layers=3, decoder=False),
    "BERT, equal time": replace(ABSOLUTE, steps=round(FULL.steps * TIME_RATIO)),
}


COMPARED = (
    "BERT", "DeBERTa", "without decoder", "decoder without places", "BERT, three blocks", CONTROL,
    "BERT, equal time",
)  # fmt: skip
ENDS = ("BERT", "DeBERTa", "BERT, three blocks", CONTROL)  # tried at half and four times the rate
OTHER_RATES = {1e-3: (ENDS, range(1)), 4e-3: (COMPARED, range(3)), 8e-3: (ENDS, range(1))}


def at_rate(name: str, rate: float) -> str:
    """What `08_rates` calls a recipe at a learning rate."""
    return f"{name}, rate {rate:g}"


def prepare(world: MicroWorld | None = None) -> Stories:
    """The stories to learn from, and held-out ones to be measured on."""
    return Stories(STORIES, HELDOUT, length=LENGTH, world=world or english_world())


def shape(world: MicroWorld, initializer_range: float, layers: int) -> dict[str, Any]:
    """The settings that all models of this lecture share: 128 wide, no dropout."""
    return dict(
        vocab_size=world.special.vocab_size, max_positions=LENGTH, num_layers=layers,
        hidden_size=128, num_heads=2, intermediate_size=512, hidden_dropout=0.0,
        attention_dropout=0.0, initializer_range=initializer_range, type_vocab_size=0,
    )  # fmt: skip


def small_model(
    recipe: PositionRecipe, world: MicroWorld, seed: int, kernels: str = "auto"
) -> BertForMaskedLM | DebertaForMaskedLM:
    """The model of a recipe, randomly initialised. Neither has segments: stories are one text."""
    torch.manual_seed(seed)
    common = shape(world, recipe.initializer_range, recipe.layers) | {"kernels": kernels}
    if recipe.kind == "absolute":
        return BertForMaskedLM(Encoder(BertConfig(**common)))
    config = DebertaConfig(**common, span=recipe.span, terms=recipe.terms)
    model = deberta_masked_lm(deberta_encoder(config), recipe.decoder)
    if isinstance(model, DebertaForMaskedLM) and not recipe.places:
        nn.init.zeros_(model.decoder.position.weight)
        model.decoder.position.requires_grad_(False)
    return model


def story_batches(recipe: Any, material: Stories, seed: int) -> Batches:
    """Masked stories."""
    return material.batches(recipe, seed)


train_positions = Trainer(
    lambda recipe, material, seed: (small_model(recipe, material.world, seed), masked_lm_loss),
    story_batches,
)


def flops_a_step(recipe: PositionRecipe, material: Stories) -> int:
    """FLOPs of the first training step, forward and backward, the head's included."""
    model = small_model(recipe, material.world, 0, kernels="reference")  # its products are counted
    return step_flops(model, masked_lm_loss, material.batches(recipe, 0)(0))


def all_flops(material: Stories) -> dict[str, int]:
    """The same of every recipe."""
    about = {name: asdict(recipe) for name, recipe in RECIPES.items()}
    return kept("08-flops", about, material.world,
                lambda: {n: flops_a_step(r, material) for n, r in RECIPES.items()})  # fmt: skip


def step_seconds(material: Stories, steps: int = 40, rounds: int = 5) -> dict[str, float]:
    """Seconds of a training step of each recipe, the median of rounds in which they take turns."""
    seconds_of: dict[str, list[float]] = {name: [] for name in RECIPES if "equal" not in name}
    for _ in range(rounds):
        for name, seconds in seconds_of.items():
            began = time.perf_counter()
            train_positions(RECIPES[name], material, steps=steps)
            seconds.append((time.perf_counter() - began) / steps)
    return {name: median(seconds) for name, seconds in seconds_of.items()}


POSITIONS = Experiment(
    "08_positions", RECIPES, SEEDS, prepare, train_positions,
    lambda run: {
        "parameters": count_parameters(run.model), **run.material.masked_scores(run.model)
    },
    label="08-{kind}-{terms}-{decoder}-{steps}", replayed=FULL,
    more={
        "step_seconds": lambda material: kept(
            "08-seconds", {}, material.world, lambda: step_seconds(material)
        ),
        "flops_a_step": all_flops,
    },
)  # fmt: skip
RATES = replace(
    POSITIONS, name="08_rates", replayed=None, more={},
    recipes={
        at_rate(name, rate): replace(RECIPES[name], learning_rate=rate)
        for rate, (names, _) in OTHER_RATES.items() for name in names
    },
    seeds={
        at_rate(name, rate): seeds
        for rate, (names, seeds) in OTHER_RATES.items() for name in names
    },
)  # fmt: skip


# ---------------------------------------------------------------- who comes when: the queue


@dataclass(frozen=True)
class QueueRecipe:
    """A DeBERTa that must say who comes at each position of a queue; or a BERT, kind "absolute".

    decoder: how it gets the absolute position: "none"; "concat", the source lecture's reading,
    concatenated to the hidden state before the softmax; "query", the enhanced mask decoder."""

    kind: str = "disentangled"
    decoder: str = "none"
    span: int = LENGTH
    layers: int = 2
    steps: int = 300
    batch_size: int = 32
    learning_rate: float = 1e-3
    initializer_range: float = 0.05


QUEUE_SEEDS = range(3)
NARROW = 4  # distances beyond are all alike
LOOK_EVERY = 20
QUEUE_RECIPES = {
    "BERT": QueueRecipe(kind="absolute"),
    f"distances to {LENGTH}, no decoder": QueueRecipe(),
    f"distances to {NARROW}, no decoder": QueueRecipe(span=NARROW),
    f"distances to {NARROW}, place side by side": QueueRecipe(span=NARROW, decoder="concat"),
    f"distances to {NARROW}, decoder": QueueRecipe(span=NARROW, decoder="query"),
}


class SideBySide(nn.Module):
    """What the source lecture takes the decoder for: W [h ; p] of each token, then the head."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        H = encoder.config.hidden_size
        self.model = BertForMaskedLM(encoder)
        self.position = nn.Embedding(encoder.config.max_positions, H)
        self.join = nn.Linear(2 * H, H)
        for part in (self.position, self.join):
            initialise(part, encoder.config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        predict_at: Tensor,
    ) -> MaskedLMOutput:
        h = self.model.encoder(input_ids, attention_mask).last_hidden_state  # (B, T, H)
        p = self.position.weight[: h.shape[1]].expand_as(h)  # (B, T, H)
        joined = self.join(torch.cat([h, p], dim=-1)).flatten(0, 1)[predict_at]  # (N, H)
        return MaskedLMOutput(self.model.mlm(joined))


def queue_model(recipe: QueueRecipe, world: MicroWorld, seed: int) -> nn.Module:
    """The model of a recipe, randomly initialised."""
    torch.manual_seed(seed)
    common = shape(world, recipe.initializer_range, recipe.layers)
    if recipe.kind == "absolute":
        return BertForMaskedLM(Encoder(BertConfig(**common)))
    encoder = deberta_encoder(DebertaConfig(**common, span=recipe.span))
    if recipe.decoder == "concat":
        return SideBySide(encoder)
    return deberta_masked_lm(encoder, recipe.decoder == "query")


def queue_batch(queues: Queues, special_mask: int) -> Batch:
    """Every worker masked, and selected for prediction."""
    count, tokens = queues.sequences.input_ids.shape
    at = (torch.arange(count)[:, None] * tokens + queues.at).flatten()  # (N·8,)
    masked = queues.sequences.input_ids.flatten().clone()
    labels = masked[at]
    masked[at] = special_mask
    inputs = {
        "input_ids": masked.view(count, tokens),
        "attention_mask": queues.sequences.attention_mask,
        "predict_at": at,
    }
    return Batch(inputs, {"labels": labels})


def queue_batches(recipe: QueueRecipe, world: MicroWorld, seed: int) -> Batches:
    """Every batch has new sights for the same queue."""
    return lambda step: queue_batch(
        queues(world, recipe.batch_size, 1_000 + step), world.special.mask
    )


train_queue = Trainer(
    lambda recipe, world, seed: (queue_model(recipe, world, seed), masked_lm_loss), queue_batches
)


@torch.no_grad()
def queue_accuracy(model: nn.Module, world: MicroWorld, count: int = 100) -> list[float]:
    """Accuracy at each position of the queue, (8,), on held-out sequences."""
    batch = queue_batch(queues(world, count, seed=0), world.special.mask)
    guessed = model(**batch.inputs).logits.argmax(-1)
    right = (guessed == batch.targets["labels"]).view(count, -1).float()
    return [round(accuracy, 4) for accuracy in right.mean(0).tolist()]


def places_named(run: Run) -> dict[str, Any]:
    """How many of the queue a model names at the end, and the training loss it ends with."""
    by_position = queue_accuracy(run.model, run.material)
    losses = results.last_losses(run.history)
    return {"accuracy": mean(by_position), "places": by_position, **losses}


QUEUE = Experiment(
    "08_queue", QUEUE_RECIPES, QUEUE_SEEDS, english_world, train_queue, places_named,
    label="08-queue-{kind}-{decoder}-{span}", replayed=QUEUE_RECIPES["BERT"],
    curve=(LOOK_EVERY, lambda run: mean(queue_accuracy(run.model, run.material, count=25))),
    more={"words": lambda world: queues(world, 1).words},
)  # fmt: skip


summary = partial(
    results.summary, measures=("masked_accuracy", "auc", "accuracy"), aside=("step_seconds",)
)
EXPERIMENTS = (POSITIONS, RATES, QUEUE, SHARED_EMBEDDINGS, SIFT_RUNS)
RESULTS = results_of(EXPERIMENTS)
