"""Lecture 07's experiments: from BERT to ELECTRA at equal steps, its two ends also at equal
FLOPs.

`07_stepping_stones`: the five ablation steps, all else equal. `07_variants`: ELECTRA with other
generators, with other ties between its two networks, and with λ on the other loss. What is tested
is the encoder that is kept, frozen: what a linear probe finds in its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.checkpoints import load, save
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.electra import Electra, ElectraConfig, electra_from
from course_lib.files import cache_dir, data_path, data_root, write_manifest
from course_lib.heads import (
    BertForClassification,
    BertForMaskedLM,
    ClassifierOutput,
)
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.replaced_tokens import PAPER_MIX, electra_loss, replaced_labels
from course_lib.objectives.sequences import Batch, PackedSequences
from course_lib.teaching import results
from course_lib.teaching.results import REPLAYED, compared_runs, kept, last_losses, stored
from course_lib.teaching.results import outcome as outcome  # where page 07 imports it from
from course_lib.teaching.shipped import CHECKPOINTS, NETWORKS
from course_lib.teaching.shipped import micro_electra as micro_electra  # page 07, too
from course_lib.text.tasks import (
    LabelledSequences,
    LabelledWords,
    slot_categories,
    swapped_words,
    unstated_facts,
)
from course_lib.text.world import MicroWorld, story_sequences
from course_lib.train.finetuning import class_accuracy, classifier_on, labelled_batches
from course_lib.train.flops import step_flops
from course_lib.train.loop import Callback, History, Objective, Report, fit
from course_lib.train.metrics import evaluate, evaluation_mask
from course_lib.train.probing import (
    linear_classifier,
    linear_probe,
    states_at,
    text_probe,
    word_probe,
)

from .ablation_steps import ABLATION_STEPS, ablation_step, kept_encoder

PRECISION = "float32"  # on every machine, so that results can be compared
STORIES, HELDOUT, LENGTH = 10_000, 300, 64
LABELLED, TASK_STORIES = 400, 3_000  # texts to train a probe on; stories whose silent fifth tests


@dataclass(frozen=True)
class ElectraRecipe:
    """An ablation step, 128 wide, on a fixed finite set of stories.

    generator: its width, as a fraction of the discriminator's; weights: of L_MLM and of L_Disc."""

    stone: str = "ELECTRA"
    steps: int = 800
    num_layers: int = 2
    generator: float = 1 / 4
    tied: str = "all"
    mlm_weight: float = 1.0
    disc_weight: float = 50.0
    rate: float = 0.15
    batch_size: int = 16
    learning_rate: float = 1e-3
    initializer_range: float = 0.05


FULL = ElectraRecipe()
LONG = ElectraRecipe(steps=4_000)  # the one that is shipped
LOOK_EVERY = 1_000  # steps of a long run
PAST_SEEDS = range(5)
GENERATORS = {"generator 1/4": 1 / 4, "generator 1/2": 1 / 2, "generator 1": 1.0}
GENERATOR_SEEDS = PAST_SEEDS
DEEP = ElectraRecipe(steps=6_000, num_layers=4, generator=1 / 2)
DEEP_SEEDS = range(1)
SHOWN, SWAPS = 3, 4  # stories, and swaps of each, that the page shows
STRENGTHS = (0.01, 1.0)  # of the swapped-word probe; the first is the one that is reported
TUNED_STEPS, POOLINGS = 200, ("[CLS]", "mean")  # of fine-tuning
EQUAL_STEPS = {name: replace(FULL, stone=name) for name in ABLATION_STEPS}
ENDS = ("BERT", "ELECTRA")  # also compared at equal FLOPs
SEEDS = range(3)
VARIANTS = {
    "generator 1/4": FULL,
    "generator 1/2": replace(FULL, generator=1 / 2),
    "untied": replace(FULL, tied="none"),
    "λ on the generator": replace(FULL, mlm_weight=50.0, disc_weight=1.0),
}


@dataclass(frozen=True)
class ElectraMaterial:
    """What the ablation steps read, and what their vectors are probed for."""

    world: MicroWorld
    train: PackedSequences
    heldout: PackedSequences
    facts: LabelledSequences
    facts_heldout: LabelledSequences
    slots: LabelledWords


def prepare(world: MicroWorld | None = None) -> ElectraMaterial:
    """Draw the stories (seed 0 of each split), pack them, and make the probes' tasks of them."""
    world = world or MicroWorld.load()
    told = world.stories(STORIES, seed=0)
    unseen = world.stories(TASK_STORIES, seed=0, split="heldout")
    return ElectraMaterial(
        world,
        story_sequences(world, told, LENGTH),
        story_sequences(world, unseen[:HELDOUT], LENGTH),
        unstated_facts(world, told, LENGTH)[:LABELLED],
        unstated_facts(world, unseen, LENGTH),
        slot_categories(world, unseen[:HELDOUT], LENGTH),
    )


def small_config(recipe: ElectraRecipe, world: MicroWorld) -> ElectraConfig:
    """The network that is kept: 128 wide, embeddings of the same width, no dropout."""
    return ElectraConfig(
        vocab_size=world.special.vocab_size, max_positions=LENGTH, num_layers=recipe.num_layers,
        hidden_size=128, num_heads=2, intermediate_size=512, embedding_size=128,
        hidden_dropout=0.0, attention_dropout=0.0, initializer_range=recipe.initializer_range,
    )  # fmt: skip


def randomly_initialised(
    recipe: ElectraRecipe, world: MicroWorld, seed: int
) -> tuple[nn.Module, Objective]:
    """The model of a recipe, randomly initialised, and its loss."""
    torch.manual_seed(seed)
    config = small_config(recipe, world)
    if recipe.stone == "ELECTRA":
        both = electra_from(config, recipe.generator, recipe.tied)
        return both, electra_loss(recipe.disc_weight, recipe.mlm_weight)
    return ablation_step(recipe.stone, config, recipe.generator)


def batches_of(recipe: ElectraRecipe, material: ElectraMaterial, seed: int) -> Any:
    """Masked stories; every selected position becomes [MASK], as in the paper."""
    return pretraining_batches(
        material.train, material.world.special, batch_size=recipe.batch_size, rate=recipe.rate,
        seed=seed + 100, mix=PAPER_MIX,
    )  # fmt: skip


def heldout_batches(material: ElectraMaterial, count: int) -> list[Batch]:
    """Masked stories that no training saw: up to 50 a batch, always the same."""
    batches = pretraining_batches(
        material.heldout, material.world.special, batch_size=50, seed=1, mix=PAPER_MIX
    )
    return [batches(step) for step in range(count)]


def train_ablation_step(
    recipe: ElectraRecipe,
    material: ElectraMaterial,
    *,
    seed: int = 0,
    steps: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[nn.Module, History]:
    """Train one recipe; all else is the same for all that differ in it."""
    model, loss = randomly_initialised(recipe, material.world, seed)
    history = fit(
        model, loss, batches_of(recipe, material, seed), steps=steps or recipe.steps, seed=seed,
        learning_rate=recipe.learning_rate, precision=PRECISION, callbacks=callbacks,
    )  # fmt: skip
    return model, history


@torch.no_grad()
def discriminator_logits(model: Electra, batches: Sequence[Batch]) -> tuple[Tensor, Tensor]:
    """The discriminator's logit and the label of every real token of these batches: (tokens,)."""
    logits, labels = [], []
    for batch in batches:
        out = model(**batch.inputs)
        real = out.attention_mask.bool()
        found = replaced_labels(out.corrupted_ids, out.predict_at, batch.targets["labels"])
        logits.append(out.logits[real])
        labels.append(found[real])
    return torch.cat(logits), torch.cat(labels)


@torch.no_grad()
def generator_accuracies(model: Electra, batches: Sequence[Batch]) -> tuple[float, float]:
    """How often the generator's most likely word is the masked one, and how often the word it
    samples is. The second says how much is replaced."""
    by_argmax, by_sampling = [], []
    for batch in batches:
        out, true = model(**batch.inputs), batch.targets["labels"]
        by_argmax.append(out.prediction_logits.argmax(-1) == true)
        by_sampling.append(out.corrupted_ids.flatten()[out.predict_at] == true)
    argmax, sampling = (torch.cat(right).float().mean() for right in (by_argmax, by_sampling))
    return float(argmax), float(sampling)


def area_under_curve(logits: Tensor, labels: Tensor) -> float:
    """How often a replaced token has a higher logit than an original one: 0.5 is chance level, 1
    is always."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels.numpy(), logits.float().numpy()))


def measure(model: nn.Module, material: ElectraMaterial, seed: int = 0) -> dict[str, float]:
    """What both probes find in the kept encoder's vectors ("kinds" is the slot-category probe,
    "jobs" the unstated-fact probe); and where there are
    two networks, how well each does its own work on held-out stories."""
    encoder = kept_encoder(model).eval()
    found = {
        "kinds": word_probe(encoder, material.slots),
        "jobs": text_probe(encoder, material.facts, material.facts_heldout),
    }
    generator = getattr(model, "generator", model)
    if isinstance(generator, BertForMaskedLM):
        special = material.world.special
        scored = evaluate(generator, material.heldout, special, precision=PRECISION)
        found["words_by_generator"] = scored.masked_accuracy
    if isinstance(model, Electra):
        torch.manual_seed(seed)
        logits, labels = discriminator_logits(model, heldout_batches(material, 6))
        found["auc"] = area_under_curve(logits, labels)
        found["replaced"] = labels.float().mean().item()
    return found


def untrained(material: ElectraMaterial, seeds: Sequence[int] = range(3)) -> list[dict[str, float]]:
    """The same measures at random initialisation: what any training must beat."""
    recipe = EQUAL_STEPS["BERT"]
    return [
        measure(randomly_initialised(recipe, material.world, seed)[0], material) for seed in seeds
    ]


def flops_a_step(recipe: ElectraRecipe, material: ElectraMaterial) -> int:
    """FLOPs of a training step, mean of five batches, generator included."""
    model, loss = randomly_initialised(recipe, material.world, 0)
    batches = batches_of(recipe, material, 0)
    return step_flops(model, loss, *map(batches, range(5)))


def equal_flops(
    costs: Mapping[str, int], electra: ElectraRecipe = FULL
) -> dict[str, ElectraRecipe]:
    """BERT with as many steps as cost what this ELECTRA's steps cost, and ELECTRA itself; costs: of
    one step, by ablation step."""
    return {
        name: replace(
            electra, stone=name, steps=round(electra.steps * costs["ELECTRA"] / costs[name])
        )
        for name in ENDS
    }


def one_run(recipe: ElectraRecipe, material: ElectraMaterial, seed: int) -> dict[str, Any]:
    """One recipe, one seed: what it reached. Finished runs are read from the cache."""

    def run() -> dict[str, Any]:
        model, history = train_ablation_step(recipe, material, seed=seed)
        about = {"seed": seed, "parameters": count_parameters(model)}
        seconds = round(history.seconds, 1)
        return {
            **about,
            **measure(model, material, seed),
            **last_losses(history),
            "seconds": seconds,
        }

    return kept(f"07-{recipe.stone}", {"seed": seed, **asdict(recipe)}, material.world, run)


def replay(recipe: ElectraRecipe, material: ElectraMaterial) -> list[float]:
    """The first losses of ELECTRA, seed 0, in float32: alike on every machine to six digits."""
    return train_ablation_step(recipe, material, steps=REPLAYED)[1].losses["total"]


def build_ablation_steps() -> dict[str, Any]:
    """What data/results/07_stepping_stones.json holds."""
    material = prepare()
    costs = {name: flops_a_step(recipe, material) for name, recipe in EQUAL_STEPS.items()}
    recipes = {f"equal steps: {name}": recipe for name, recipe in EQUAL_STEPS.items()}
    recipes |= {f"equal arithmetic: {s}": recipe for s, recipe in equal_flops(costs).items()}
    return _compared(recipes, material, flops_a_step=costs, untrained=untrained(material))


def build_variants() -> dict[str, Any]:
    """What data/results/07_variants.json holds."""
    material = prepare()
    costs = {name: flops_a_step(recipe, material) for name, recipe in VARIANTS.items()}
    return _compared(VARIANTS, material, flops_a_step=costs)


def _compared(
    recipes: Mapping[str, ElectraRecipe], material: ElectraMaterial, **more: Any
) -> dict[str, Any]:
    return compared_runs(
        recipes, SEEDS, material.world, lambda recipe, seed: one_run(recipe, material, seed),
        precision=PRECISION, replay=replay(FULL, material), **more,
    )  # fmt: skip


summary = partial(
    results.summary, measures=("kinds", "jobs", "auc", "words_by_generator"), aside=("untrained",)
)


# ---------------------------------------------------------------- past the plateau


def past_plateau_recipes(costs: Mapping[str, int]) -> dict[str, ElectraRecipe]:
    """ELECTRA as it is shipped, and BERT with equal FLOPs."""
    return equal_flops(costs, LONG)


def generator_recipes() -> dict[str, ElectraRecipe]:
    """The shipped ELECTRA with larger generators, at equal steps."""
    return {name: replace(LONG, generator=size) for name, size in GENERATORS.items()}


def looks_of(recipe: ElectraRecipe) -> list[int]:
    """The steps at which a long run's weights are kept, its last among them."""
    return [*range(LOOK_EVERY, recipe.steps, LOOK_EVERY), recipe.steps]


def weights_at(recipe: ElectraRecipe, seed: int, step: int) -> list[Path]:
    """Where a long run keeps its networks: generator and discriminator, or BERT. The shipped run's
    last ones are those that are shipped."""
    if (recipe, seed, step) == (LONG, 0, LONG.steps):
        return [data_path(*CHECKPOINTS, f"{name}.safetensors") for name in NETWORKS]
    shape = f"{recipe.stone}-{recipe.num_layers}-{recipe.generator:g}"
    run = f"{shape}-of-{recipe.steps}-{seed}-{step}"
    names = ("generator", "discriminator") if recipe.stone == "ELECTRA" else ("model",)
    return [cache_dir("results", "07-past-plateau") / f"{run}-{n}.safetensors" for n in names]


def model_at(recipe: ElectraRecipe, seed: int, step: int) -> nn.Module:
    """A long run's model as it was at this step, frozen."""
    networks = [load(path) for path in weights_at(recipe, seed, step)]
    model = Electra(*networks) if len(networks) > 1 else networks[0]  # type: ignore[arg-type]
    return model.requires_grad_(False).eval()


def long_run(recipe: ElectraRecipe, material: ElectraMaterial, seed: int) -> dict[str, Any]:
    """Train one recipe and keep its weights on the way, so that a measure can be added later.
    Finished runs are read from the cache."""

    def keep(report: Report) -> None:
        if report.step in looks_of(recipe):
            model = report.model
            both = [model.generator, model.discriminator] if isinstance(model, Electra) else [model]
            for network, path in zip(both, weights_at(recipe, seed, report.step), strict=True):
                save(network, path)

    def run() -> dict[str, Any]:
        model, history = train_ablation_step(recipe, material, seed=seed, callbacks=[keep])
        about = {"seed": seed, "parameters": count_parameters(model), **last_losses(history)}
        return {**about, "seconds": round(history.seconds, 1)}

    files = [path for step in looks_of(recipe) for path in weights_at(recipe, seed, step)]
    settings = {"seed": seed, **asdict(recipe)}
    return kept(f"07-long-{recipe.stone}", settings, material.world, run, files)


def swapped_stories(world: MicroWorld) -> dict[str, LabelledWords]:
    """The swapped-word probe of both kinds, on stories that no training saw."""
    unseen = world.stories(TASK_STORIES, seed=0, split="heldout")
    kinds = {"repeated": "repeated", "facts": "fact"}
    return {name: swapped_words(world, unseen, kind, LENGTH) for name, kind in kinds.items()}


class MeanPooled(BertForClassification):
    """The same classifier, on the mean vector of a text's tokens instead of [CLS]'s."""

    def forward(self, *given: Any, **named: Any) -> ClassifierOutput:
        """As the encoder's call, attention_mask by name; (B, T) -> logits (B, classes)."""
        assert self.encoder.pooler is not None
        states = self.encoder(*given, **named).last_hidden_state
        real = named["attention_mask"][..., None]  # (B, T, 1)
        mean = (states * real).sum(dim=1) / real.sum(dim=1)  # (B, T, H) -> (B, H)
        return ClassifierOutput(self.classifier(self.encoder.pooler(mean[:, None])))


def fine_tuned(encoder: Encoder, material: ElectraMaterial, pooling: str, seed: int) -> float:
    """Held-out accuracy on the unstated fact after fine-tuning; pooling: "[CLS]" or "mean"."""
    task = material.facts
    model = classifier_on(encoder, task.names, seed)
    if pooling == "mean":
        model = MeanPooled(model.encoder, task.names)
    fit(
        model, classification_loss, labelled_batches(task, 16, seed), steps=TUNED_STEPS, seed=seed,
        precision=PRECISION,
    )  # fmt: skip
    return class_accuracy(model, material.facts_heldout)


@torch.no_grad()
def gaps_by_kind(model: BertForMaskedLM, material: ElectraMaterial) -> dict[str, dict[str, float]]:
    """Masked-token accuracy on held-out stories by the kind of word (see Trace), and over all: of
    the most likely word, and of a sampled one, which is the probability of the right one."""
    world, sequences = material.world, material.heldout
    masked = evaluation_mask(sequences, world.special)
    at = masked.predict_at
    given = masked.input_ids, sequences.attention_mask, sequences.token_type_ids, at
    logits = model(*given).logits
    right = (logits.argmax(-1) == masked.original_ids).double()
    sampled = logits.softmax(-1).gather(1, masked.original_ids[:, None])[:, 0].double()
    traces = [
        [trace.kind for line in story.trace for trace in line]
        for story in world.stories(HELDOUT, seed=0, split="heldout")
    ]
    kinds = [
        traces[n][t - 1] for n, t in (divmod(int(x), sequences.input_ids.shape[1]) for x in at)
    ]
    found = {}
    for kind in ("all", *sorted(set(kinds))):
        these = torch.tensor([kind in ("all", one) for one in kinds])
        found[kind] = {
            "gaps": int(these.sum()),
            "argmax": right[these].mean().item(),
            "sampled": sampled[these].mean().item(),
        }
    return found


@dataclass(frozen=True)
class PastPlateau:
    """What the long runs are measured with."""

    material: ElectraMaterial
    swapped: Mapping[str, LabelledWords]

    def probes(self, model: nn.Module, seed: int) -> dict[str, float]:
        """Both families: cloze-shaped ("kinds", "jobs") and RTD-shaped ("repeated", "facts")."""
        encoder = kept_encoder(model).eval()
        fits = {name: word_probe(encoder, words) for name, words in self.swapped.items()}
        return measure(model, self.material, seed) | fits

    def tuned(self, model: nn.Module, seed: int) -> dict[str, float]:
        """Accuracy after fine-tuning, by what the classifier reads."""
        encoder = kept_encoder(model)
        return {f"tuned_{p}": fine_tuned(encoder, self.material, p, seed) for p in POOLINGS}

    def look(self, recipe: ElectraRecipe, seed: int, step: int) -> dict[str, Any]:
        """All probes of a long run at this step; fine-tuning and gaps too at its last. Finished
        looks are read from the cache."""

        def run() -> dict[str, Any]:
            model = model_at(recipe, seed, step)
            found: dict[str, Any] = {"step": step, **self.probes(model, seed)}
            if step == recipe.steps:
                generator = getattr(model, "generator", model)
                assert isinstance(generator, BertForMaskedLM)
                found |= self.tuned(model, seed)
                found["gaps"] = gaps_by_kind(generator, self.material)
            return found

        settings = {"seed": seed, "step": step, **asdict(recipe)}
        return kept(f"07-look-{recipe.stone}", settings, self.material.world, run)

    def run(self, recipe: ElectraRecipe, seed: int) -> dict[str, Any]:
        """What a long run reached, and what it cost."""
        if (recipe, seed) == (LONG, 0):  # shipped
            about = {
                "seed": 0,
                "seconds": round(stored("07_electra")["runs"]["ELECTRA"][0]["seconds"], 1),
            }
        else:
            about = long_run(recipe, self.material, seed)
        return about | self.look(recipe, seed, recipe.steps)

    def untrained(self, seed: int) -> dict[str, Any]:
        """The same measures at random initialisation."""

        def run() -> dict[str, Any]:
            model = randomly_initialised(EQUAL_STEPS["BERT"], self.material.world, seed)[0]
            return {"seed": seed, **self.probes(model, seed), **self.tuned(model, seed)}

        return kept("07-look-untrained", {"seed": seed}, self.material.world, run)


def by_strength(models: Mapping[str, nn.Module], words: LabelledWords) -> dict[str, list[float]]:
    """What probes of each strength find: whether the least regularised one says something else."""
    found, learn, test = {}, words.learn, ~words.learn
    for name, model in models.items():
        states = states_at(kept_encoder(model).eval(), words.sequences, words.at)
        parts = states[learn], words.labels[learn], states[test], words.labels[test]
        found[name] = [linear_probe(*parts, strength) for strength in STRENGTHS]
    return found


def swaps_shown(
    models: Mapping[str, nn.Module], words: LabelledWords, world: MicroWorld
) -> list[dict[str, Any]]:
    """A few other stories, each as it was and with one word swapped, and P(swapped) of every
    repeated word, by its position, as a linear probe of each model gives it."""
    learnt, probes = words.learn.nonzero()[:, 0], {}
    for name, model in models.items():
        states = states_at(kept_encoder(model).eval(), words.sequences, words.at)[learnt]
        probes[name] = linear_classifier(states, words.labels[learnt])
    unseen = world.stories(TASK_STORIES // 10, seed=1, split="heldout")
    twice = [story for story in unseen for _ in range(2)]  # as it was, and swapped
    found: list[dict[str, Any]] = []
    for seed in range(SWAPS):
        made = swapped_words(world, twice, "repeated", LENGTH, seed)
        for row in range(2 * SHOWN):
            if row % 2 or not seed:
                traces = [trace for line in twice[row].trace for trace in line]
                at = torch.tensor([t for t, x in enumerate(traces, 1) if x.kind == "repeated"])
                told = made.sequences[row : row + 1]
                ids = told.input_ids[0, 1 : 1 + len(traces)].tolist()
                one: dict[str, Any] = {"story": row // 2}
                one["text"] = " ".join(world.tokenizer.token(i) for i in ids)
                one["was"] = " ".join(x.word for x in traces)
                for name, model in models.items():
                    states = states_at(kept_encoder(model), told, at)
                    p = probes[name](states)[:, 1].tolist()
                    one[name] = {int(t) - 1: round(x, 2) for t, x in zip(at, p, strict=True)}
                found.append(one)
    return found


def build_past_plateau() -> dict[str, Any]:
    """What data/results/07_past_plateau.json holds."""
    material = prepare()
    costs = {name: flops_a_step(EQUAL_STEPS[name], material) for name in ENDS}
    recipes = past_plateau_recipes(costs)
    measured = PastPlateau(material, swapped_stories(material.world))
    words, untrained = measured.swapped["repeated"], [measured.untrained(s) for s in PAST_SEEDS]

    @cache
    def models() -> dict[str, nn.Module]:
        return {name: model_at(recipe, 0, recipe.steps) for name, recipe in recipes.items()}

    found = compared_runs(
        recipes, PAST_SEEDS, material.world, measured.run,
        precision=PRECISION, extends="07_past_plateau", replay=replay(recipes["BERT"], material),
        flops_a_step=costs, tuned_steps=TUNED_STEPS,
        swaps=lambda: swaps_shown(models(), words, material.world),
        by_strength=lambda: by_strength(models(), words),
    )  # fmt: skip
    return {**found, "untrained": untrained}  # of all seeds, also where the file is extended


def build_generators() -> dict[str, Any]:
    """What data/results/07_generators.json holds. The narrowest generator is that of the runs past
    the plateau, which are read."""
    material, recipes = prepare(), generator_recipes()
    measured = PastPlateau(material, swapped_stories(material.world))
    costs = {name: flops_a_step(recipe, material) for name, recipe in recipes.items()}
    narrow = {run["seed"]: run for run in stored("07_past_plateau")["runs"]["ELECTRA"]}

    def run(recipe: ElectraRecipe, seed: int) -> dict[str, Any]:
        return narrow[seed] if recipe == LONG else measured.run(recipe, seed)

    return compared_runs(
        recipes, GENERATOR_SEEDS, material.world, run, precision=PRECISION,
        extends="07_generators", replay=lambda: replay(recipes["generator 1"], material),
        flops_a_step=costs,
    )  # fmt: skip


def build_deep() -> dict[str, Any]:
    """What data/results/07_deep.json holds: four layers and a larger generator, at equal FLOPs."""
    material = prepare()
    costs = {name: flops_a_step(replace(DEEP, stone=name), material) for name in ENDS}
    recipes = equal_flops(costs, DEEP)
    measured = PastPlateau(material, swapped_stories(material.world))
    return compared_runs(
        recipes, DEEP_SEEDS, material.world, measured.run, precision=PRECISION,
        extends="07_deep", replay=lambda: replay(DEEP, material), flops_a_step=costs,
        tuned_steps=TUNED_STEPS,
    )  # fmt: skip


def build_electra() -> dict[str, Any]:
    """What data/results/07_electra.json holds; the weights go to data/checkpoints/."""
    material = prepare()
    paths = [data_root().joinpath(*CHECKPOINTS, f"{name}.safetensors") for name in NETWORKS]

    def run() -> dict[str, Any]:
        curve: list[dict[str, float]] = []

        def look(report: Report) -> None:
            if report.step % 500 == 0:
                report.model.eval()
                curve.append({"step": report.step, **measure(report.model, material)})
                report.model.train()

        model, history = train_ablation_step(LONG, material, callbacks=[look])
        assert isinstance(model, Electra)
        networks = zip(paths, (model.generator, model.discriminator), strict=True)
        weights = {path.name: save(network, path) for path, network in networks}
        about = {"seed": 0, **curve[-1], "curve": curve, "seconds": history.seconds}
        return {"about": about, "weights": weights}

    trained = kept("07-electra", asdict(LONG), material.world, run, files=paths)
    write_manifest(data_root())
    return compared_runs(
        {"ELECTRA": LONG}, (0,), material.world, lambda *_: trained["about"], precision=PRECISION,
        replay=replay(LONG, material), weights=trained["weights"],
    )  # fmt: skip


RESULTS = {
    "07_electra": build_electra,
    "07_stepping_stones": build_ablation_steps,
    "07_variants": build_variants,
    "07_past_plateau": build_past_plateau,
    "07_generators": build_generators,
    "07_deep": build_deep,
}
