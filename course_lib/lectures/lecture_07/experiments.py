"""Lecture 07's experiments: from BERT to ELECTRA at equal steps; its two ends, for longer, at
equal FLOPs.

`07_stepping_stones`: the five ablation steps, each at all of RATES. `07_variants`: ELECTRA with
other generators, with other ties between its two networks, and with λ on the other loss. What is
tested is the encoder that is kept, frozen: what a linear probe finds in its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.checkpoints import load, save
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.electra import Electra, ElectraConfig, electra_from
from course_lib.files import cache_dir, data_path, data_root, sha256_of, write_manifest
from course_lib.heads import BertForClassification, BertForMaskedLM, ClassifierOutput
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.replaced_tokens import PAPER_MIX, electra_loss
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
from course_lib.teaching.replaced_tokens import area_under_curve as area_under_curve  # page 07
from course_lib.teaching.replaced_tokens import counted_areas, replaced_token_scores
from course_lib.teaching.replaced_tokens import discriminator_logits as discriminator_logits
from course_lib.teaching.results import kept, last_losses, stored
from course_lib.teaching.results import outcome as outcome  # where page 07 imports it from
from course_lib.teaching.shipped import CHECKPOINTS, NETWORKS
from course_lib.teaching.shipped import micro_electra as micro_electra  # page 07, too
from course_lib.text.counts import NeighbourCounts
from course_lib.text.tasks import LabelledSequences, LabelledWords, swapped_words
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import (
    class_accuracy,
    classifier_on,
    labelled_batches,
    predicted_classes,
)
from course_lib.train.flops import step_flops
from course_lib.train.loop import Objective, Report, fit
from course_lib.train.metrics import evaluation_mask
from course_lib.train.probing import (
    linear_classifier,
    linear_probe,
    states_at,
    text_probe,
    word_probe,
)
from course_lib.train.watch import commonest_share, encoder_likeness

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
EXAMPLES, SWAPS = 3, 4  # stories, and swaps of each, that the page shows
STRENGTHS = (0.01, 1.0)  # of the swapped-word probe; the first is the one that is reported
TUNED_STEPS, POOLINGS = 200, ("[CLS]", "mean")  # of fine-tuning
TUNED_RATES = (1e-4, 3e-4, 1e-3, 3e-3)
RATES = (5e-4, 1e-3, 2e-3, 4e-3, 8e-3)  # of pre-training
EQUAL_STEPS = {name: replace(FULL, stone=name) for name in ABLATION_STEPS}
ENDS = ("BERT", "ELECTRA")  # also compared at equal FLOPs
SEEDS = range(3)
VARIANTS = {
    "generator 1/4": FULL,
    "generator 1/2": replace(FULL, generator=1 / 2),
    "untied": replace(FULL, tied="none"),
    "λ on the generator": replace(FULL, mlm_weight=50.0, disc_weight=1.0),
}


def prepare(world: MicroWorld | None = None) -> Stories:
    """What the ablation steps read, and what their vectors are probed for."""
    return Stories(STORIES, HELDOUT, TASK_STORIES, LABELLED, LENGTH, world or english_world())


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


def batches_of(recipe: ElectraRecipe, material: Stories, seed: int) -> Any:
    """Masked stories; every selected position becomes [MASK], as in the paper."""
    return material.batches(recipe, seed + 100, rate=recipe.rate, mix=PAPER_MIX)


def heldout_batches(material: Stories, count: int) -> list[Batch]:
    """Masked stories that no training saw: up to 50 a batch, always the same."""
    batches = pretraining_batches(
        material.heldout, material.world.special, batch_size=50, seed=1, mix=PAPER_MIX
    )
    return [batches(step) for step in range(count)]


def counted(model: Electra, material: Stories) -> tuple[float, float]:
    """The ROC-AUC that counting reaches against a model's generator: by a word alone, and by its
    neighbours."""
    batches, world = heldout_batches(material, 18), material.world
    torch.manual_seed(0)  # of what the generator samples
    counts = NeighbourCounts(world.documents(material.stories))
    return counted_areas(model, batches[6:], batches[:6], counts, world.special)


train_ablation_step = Trainer(
    lambda recipe, material, seed: randomly_initialised(recipe, material.world, seed), batches_of
)


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


def measure(model: nn.Module, material: Stories, seed: int = 0) -> dict[str, float]:
    """What both probes find in the kept encoder's vectors ("kinds" is the slot-category probe,
    "jobs" the unstated-fact probe); and where there are
    two networks, how well each does its own work on held-out stories."""
    encoder = kept_encoder(model).eval()
    scores = {
        "kinds": word_probe(encoder, material.slots),
        "jobs": text_probe(encoder, material.facts, material.facts_heldout),
    }
    generator = getattr(model, "generator", model)
    if isinstance(generator, BertForMaskedLM):
        scores["words_by_generator"] = material.masked_scores(generator)["masked_accuracy"]
    if isinstance(model, Electra):
        scores |= replaced_token_scores(model, heldout_batches(material, 6), seed)
    return scores


@cache
def flops_a_step(recipe: ElectraRecipe, material: Stories) -> int:
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


def costs_of(recipes: Mapping[str, ElectraRecipe], material: Stories) -> dict[str, int]:
    """FLOPs of a step of each."""
    return {name: flops_a_step(recipe, material) for name, recipe in recipes.items()}


def reached(run: Run) -> dict[str, Any]:
    """What a run reached: both probes and its losses."""
    scores = measure(run.model, run.material, run.seed)
    return {"parameters": count_parameters(run.model), **scores, **last_losses(run.history)}


VARIANTS_OF_ELECTRA = Experiment(
    "07_variants",
    VARIANTS,
    SEEDS,
    prepare,
    train_ablation_step,
    reached,
    label="07-{stone}",
    replayed=FULL,
    more={"flops_a_step": partial(costs_of, VARIANTS)},
)


summary = partial(
    results.summary, measures=("kinds", "jobs", "auc", "words_by_generator"), aside=("untrained",)
)


# ---------------------------------------------------------------- the ablation, by learning rate


def split_in_two(task: LabelledSequences) -> tuple[LabelledSequences, LabelledSequences]:
    """To choose a rate on, and to test with."""
    half = len(task) // 2
    return task[:half], task[half:]


def fine_tuned_at_best(encoder: Encoder, material: Stories, seed: int) -> dict[str, Any]:
    """Accuracy on the unstated fact after fine-tuning at the best of TUNED_RATES: one half of the
    held-out texts chooses, the other half tests. one_answer: the share of the commonest answer."""
    choose, test = split_in_two(material.facts_heldout)
    tried = {}
    for rate in TUNED_RATES:
        model = fine_tuned_model(deepcopy(encoder), material, "[CLS]", seed, rate)
        tried[rate] = class_accuracy(model, choose), class_accuracy(model, test), model
    best = max(tried, key=lambda rate: (tried[rate][0], -rate))
    answers = predicted_classes(tried[best][2], test)
    return {
        "tuned": tried[best][1], "tuned_rate": best, "one_answer": commonest_share(answers),
    }  # fmt: skip


def reached_and_tuned(run: Run) -> dict[str, Any]:
    """Both probes, fine-tuning, and how alike the vectors of different texts are."""
    encoder = kept_encoder(run.model)
    alike = encoder_likeness(encoder, run.material.heldout)
    tuned_scores = fine_tuned_at_best(encoder, run.material, run.seed)
    return {**reached(run), "likeness": alike, **tuned_scores}


def random_at_best(material: Stories) -> list[dict[str, Any]]:
    """The same of random initialisation: the zero line."""
    runs = []
    for seed in SEEDS:
        model = randomly_initialised(EQUAL_STEPS["BERT"], material.world, seed)[0]
        encoder = kept_encoder(model).eval()
        runs.append({
            "seed": seed, **measure(model, material),
            "likeness": encoder_likeness(encoder, material.heldout),
            **fine_tuned_at_best(encoder, material, seed),
        })  # fmt: skip
    return runs


ABLATION = replace(
    VARIANTS_OF_ELECTRA, name="07_stepping_stones",
    recipes={
        f"{name}, {rate:g}": replace(FULL, stone=name, learning_rate=rate)
        for name in ABLATION_STEPS
        for rate in RATES
    },
    measure=reached_and_tuned, label="07-rate-{stone}-{learning_rate}",
    more={
        "flops_a_step": partial(costs_of, EQUAL_STEPS), "untrained": random_at_best,
        "tuned_steps": TUNED_STEPS,
        "counted": lambda material: {
            rate: counted(train_ablation_step(of, material)[0], material)
            for rate in RATES
            for of in [replace(FULL, learning_rate=rate)]
        },
    },
)  # fmt: skip


def tiny_gradients(recipe: ElectraRecipe, material: Stories, steps: int) -> float:
    """After so many steps: of the discriminator's own weights the fraction whose gradient, clipped
    as in training, is below Adam's ε of this course's loop (1e-6)."""
    model, _ = train_ablation_step(recipe, material, steps=steps)
    assert isinstance(model, Electra)
    objective = train_ablation_step.draw(recipe, material, 0)[1]
    batch = train_ablation_step.batches(recipe, material, 0)(steps + 1)
    model.zero_grad()
    objective(model(**batch.inputs), batch.targets)["total"].backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    shared = {id(weight) for weight in model.generator.parameters()}
    own = [w.grad for w in model.discriminator.parameters() if id(w) not in shared]
    sizes = torch.cat([grad.abs().flatten() for grad in own if grad is not None])
    return float((sizes < 1e-6).float().mean())


# ---------------------------------------------------------------- past the plateau


def past_plateau_recipes(costs: Mapping[str, int]) -> dict[str, ElectraRecipe]:
    """ELECTRA as it is shipped, and BERT with equal FLOPs."""
    return equal_flops(costs, LONG)


def generator_recipes() -> dict[str, ElectraRecipe]:
    """The shipped ELECTRA with larger generators, at equal steps."""
    return {name: replace(LONG, generator=size) for name, size in GENERATORS.items()}


def kept_steps(recipe: ElectraRecipe) -> list[int]:
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


def long_run(recipe: ElectraRecipe, material: Stories, seed: int) -> dict[str, Any]:
    """Train one recipe and keep its weights on the way, so that a measure can be added later.
    Finished runs are read from the cache."""

    def keep(report: Report) -> None:
        if report.step in kept_steps(recipe):
            model = report.model
            both = [model.generator, model.discriminator] if isinstance(model, Electra) else [model]
            for network, path in zip(both, weights_at(recipe, seed, report.step), strict=True):
                save(network, path)

    def run() -> dict[str, Any]:
        model, history = train_ablation_step(recipe, material, seed=seed, callbacks=[keep])
        about = {"seed": seed, "parameters": count_parameters(model), **last_losses(history)}
        return {**about, "seconds": round(history.seconds, 1)}

    files = [path for step in kept_steps(recipe) for path in weights_at(recipe, seed, step)]
    settings = {"seed": seed, **asdict(recipe)}
    return kept(f"07-long-{recipe.stone}", settings, material.world, run, files)


class MeanPooled(BertForClassification):
    """The same classifier, on the mean vector of a text's tokens instead of [CLS]'s."""

    def forward(self, *args: Any, **kwargs: Any) -> ClassifierOutput:
        """As the encoder's call, attention_mask by name; (B, T) -> logits (B, classes)."""
        assert self.encoder.pooler is not None
        states = self.encoder(*args, **kwargs).last_hidden_state
        real = kwargs["attention_mask"][..., None]  # (B, T, 1)
        mean = (states * real).sum(dim=1) / real.sum(dim=1)  # (B, T, H) -> (B, H)
        return ClassifierOutput(self.classifier(self.encoder.pooler(mean[:, None])))


def fine_tuned(encoder: Encoder, material: Stories, pooling: str, seed: int) -> float:
    """Held-out accuracy on the unstated fact after fine-tuning; pooling: "[CLS]" or "mean"."""
    model = fine_tuned_model(encoder, material, pooling, seed)
    return class_accuracy(model, material.facts_heldout)


def fine_tuned_model(
    encoder: Encoder, material: Stories, pooling: str, seed: int, rate: float = 1e-3
) -> BertForClassification:
    """The model that was fine-tuned on the unstated fact."""
    task = material.facts
    model = classifier_on(encoder, task.names, seed, plain_head=True)
    if pooling == "mean":
        model = MeanPooled(model.encoder, task.names)
    fit(
        model, classification_loss, labelled_batches(task, 16, seed), steps=TUNED_STEPS, seed=seed,
        learning_rate=rate, precision=PRECISION,
    )  # fmt: skip
    return model


@torch.no_grad()
def gaps_by_kind(model: BertForMaskedLM, material: Stories) -> dict[str, dict[str, float]]:
    """Masked-token accuracy on held-out stories by the kind of word (see Trace), and over all: of
    the most likely word, and of a sampled one, which is the probability of the right one."""
    world, sequences = material.world, material.heldout
    masked = evaluation_mask(sequences, world.special)
    at = masked.predict_at
    inputs = masked.input_ids, sequences.attention_mask, sequences.token_type_ids, at
    logits = model(*inputs).logits
    right = (logits.argmax(-1) == masked.original_ids).double()
    sampled = logits.softmax(-1).gather(1, masked.original_ids[:, None])[:, 0].double()
    traces = [
        [trace.kind for line in story.trace for trace in line]
        for story in world.stories(HELDOUT, seed=0, split="heldout")
    ]
    kinds = [
        traces[n][t - 1] for n, t in (divmod(int(x), sequences.input_ids.shape[1]) for x in at)
    ]
    accuracies = {}
    for kind in ("all", *sorted(set(kinds))):
        these = torch.tensor([kind in ("all", one) for one in kinds])
        accuracies[kind] = {
            "gaps": int(these.sum()),
            "argmax": right[these].mean().item(),
            "sampled": sampled[these].mean().item(),
        }
    return accuracies


def probes(model: nn.Module, material: Stories, seed: int) -> dict[str, float]:
    """Both families: cloze-shaped ("kinds", "jobs") and RTD-shaped ("repeated", "facts")."""
    encoder, names = kept_encoder(model).eval(), {"repeated": "repeated", "fact": "facts"}
    fits = {names[kind]: word_probe(encoder, words) for kind, words in material.swapped.items()}
    return measure(model, material, seed) | fits


def tuned(model: nn.Module, material: Stories, seed: int) -> dict[str, float]:
    """Accuracy after fine-tuning, by what the classifier reads."""
    return {f"tuned_{p}": fine_tuned(kept_encoder(model), material, p, seed) for p in POOLINGS}


def look_at(recipe: ElectraRecipe, material: Stories, seed: int, step: int) -> dict[str, Any]:
    """All probes of a long run at this step; fine-tuning and gaps too at its last. Finished looks
    are read from the cache."""

    def run() -> dict[str, Any]:
        model = model_at(recipe, seed, step)
        measures: dict[str, Any] = {"step": step, **probes(model, material, seed)}
        if step == recipe.steps:
            generator = getattr(model, "generator", model)
            assert isinstance(generator, BertForMaskedLM)
            measures |= tuned(model, material, seed)
            measures["gaps"] = gaps_by_kind(generator, material)
        return measures

    settings = {"seed": seed, "step": step, **asdict(recipe)}
    return kept(f"07-look-{recipe.stone}", settings, material.world, run)


def measured_run(recipe: ElectraRecipe, material: Stories, seed: int) -> dict[str, Any]:
    """What a long run reached, and what it cost."""
    if (recipe, seed) == (LONG, 0):  # shipped
        shipped = stored("07_electra")["runs"]["ELECTRA"][0]
        about = {"seed": 0, "seconds": round(shipped["seconds"], 1)}
    else:
        about = long_run(recipe, material, seed)
    return about | look_at(recipe, material, seed, recipe.steps)


def untrained_long(material: Stories, seed: int) -> dict[str, Any]:
    """The same measures at random initialisation."""

    def run() -> dict[str, Any]:
        model = randomly_initialised(EQUAL_STEPS["BERT"], material.world, seed)[0]
        return {"seed": seed, **probes(model, material, seed), **tuned(model, material, seed)}

    return kept("07-look-untrained", {"seed": seed}, material.world, run)


def by_strength(models: Mapping[str, nn.Module], words: LabelledWords) -> dict[str, list[float]]:
    """What probes of each strength find: whether the least regularised one says something else."""
    accuracies, learn, test = {}, words.learn, ~words.learn
    for name, model in models.items():
        states = states_at(kept_encoder(model).eval(), words.sequences, words.at)
        parts = states[learn], words.labels[learn], states[test], words.labels[test]
        accuracies[name] = [linear_probe(*parts, strength) for strength in STRENGTHS]
    return accuracies


def counted_swaps(words: LabelledWords) -> float:
    """Without a network: a word is called swapped where it stands nowhere else in its story.
    Accuracy on the words that the probe is tested on."""
    ids = words.sequences.input_ids.flatten()
    stories = words.sequences.input_ids[words.at // words.sequences.input_ids.shape[1]]
    alone = (stories == ids[words.at][:, None]).sum(dim=1) == 1
    return float((alone == words.labels.bool())[~words.learn].float().mean())


def example_swaps(
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
    examples: list[dict[str, Any]] = []
    for seed in range(SWAPS):
        made = swapped_words(world, twice, "repeated", LENGTH, seed)
        for row in range(2 * EXAMPLES):
            if row % 2 or not seed:
                traces = [trace for line in twice[row].trace for trace in line]
                at = torch.tensor([t for t, x in enumerate(traces, 1) if x.kind == "repeated"])
                sequence = made.sequences[row : row + 1]
                ids = sequence.input_ids[0, 1 : 1 + len(traces)].tolist()
                one: dict[str, Any] = {"story": row // 2}
                one["text"] = " ".join(world.tokenizer.token(i) for i in ids)
                one["was"] = " ".join(x.word for x in traces)
                for name, model in models.items():
                    states = states_at(kept_encoder(model), sequence, at)
                    p = probes[name](states)[:, 1].tolist()
                    one[name] = {int(t) - 1: round(x, 2) for t, x in zip(at, p, strict=True)}
                examples.append(one)
    return examples


@lru_cache(maxsize=1)
def long_models() -> dict[str, nn.Module]:
    """Seed 0 of the runs past the plateau."""
    recipes = PAST_PLATEAU.recipes_of(prepare())
    return {name: model_at(recipe, 0, recipe.steps) for name, recipe in recipes.items()}


def ends(electra: ElectraRecipe) -> dict[str, ElectraRecipe]:
    """Both ends, as many steps as this ELECTRA."""
    return {name: replace(electra, stone=name) for name in ENDS}


PAST_PLATEAU = Experiment(
    "07_past_plateau", lambda material: past_plateau_recipes(costs_of(ends(FULL), material)),
    PAST_SEEDS, prepare, train_ablation_step, run=measured_run, replayed=ends(LONG)["BERT"],
    more={
        "flops_a_step": partial(costs_of, ends(FULL)), "tuned_steps": TUNED_STEPS,
        "swaps": lambda material: example_swaps(
            long_models(), material.swapped["repeated"], material.world
        ),
        "by_strength": lambda material: by_strength(long_models(), material.swapped["repeated"]),
    },
)  # fmt: skip


def build_past_plateau() -> dict[str, Any]:
    """With the controls of all seeds, also where the file is extended."""
    material = prepare()
    controls = [untrained_long(material, seed) for seed in PAST_SEEDS]
    return {**PAST_PLATEAU.build(), "untrained": controls}


def narrow_or_measured(recipe: ElectraRecipe, material: Stories, seed: int) -> dict[str, Any]:
    """The narrowest generator is that of the runs past the plateau, which are read."""
    if recipe != LONG:
        return measured_run(recipe, material, seed)
    (narrow,) = (r for r in stored("07_past_plateau")["runs"]["ELECTRA"] if r["seed"] == seed)
    return dict(narrow)


WIDER_GENERATORS = Experiment(
    "07_generators", generator_recipes(), GENERATOR_SEEDS, prepare, train_ablation_step,
    run=narrow_or_measured, replayed=generator_recipes()["generator 1"],
    more={"flops_a_step": partial(costs_of, generator_recipes())},
)  # fmt: skip


def shipped_run(recipe: ElectraRecipe, material: Stories, seed: int) -> dict[str, Any]:
    """The run whose weights go to data/checkpoints/, with a curve."""
    paths = [data_root().joinpath(*CHECKPOINTS, f"{name}.safetensors") for name in NETWORKS]

    def save_both(run: Run) -> dict[str, Any]:
        for path, network in zip(
            paths, (run.model.generator, run.model.discriminator), strict=True
        ):
            save(network, path)
        return {"step": recipe.steps, **measure(run.model, material)}

    one = replace(
        ELECTRA, run=None, measure=save_both, curve=(500, lambda run: measure(run.model, material))
    )

    def make() -> dict[str, Any]:
        about = one.measured(recipe, material, seed)
        return {"about": about, "weights": shipped_weights(material)}

    trained = kept("07-electra", asdict(recipe), material.world, make, files=paths)
    write_manifest(data_root())
    about: dict[str, Any] = trained["about"]
    return about


def shipped_weights(_: Stories) -> dict[str, str]:
    """The networks' files and their hashes."""
    files = [f"{name}.safetensors" for name in NETWORKS]
    return {file: sha256_of(data_root().joinpath(*CHECKPOINTS, file)) for file in files}


ELECTRA = Experiment(
    "07_electra",
    {"ELECTRA": LONG},
    (0,),
    prepare,
    train_ablation_step,
    run=shipped_run,
    replayed=LONG,
    more={"weights": shipped_weights},
)
EXPERIMENTS = (
    ELECTRA,
    ABLATION,
    VARIANTS_OF_ELECTRA,
    PAST_PLATEAU,
    WIDER_GENERATORS,
)
RESULTS = results_of(EXPERIMENTS) | {"07_past_plateau": build_past_plateau}
