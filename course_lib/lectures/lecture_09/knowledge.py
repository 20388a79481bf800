"""`09_fusion`: what entity vectors buy Tsinghua's ERNIE when labels are few.

The micro-world's teacher is the BERT that it starts from, as the paper starts from BERT: two of its
blocks stay text blocks, two become fusion blocks. The vectors are TransE's, of the world's own
facts. Three controls: the same vectors dealt out to the wrong entities ("shuffled": same
parameters, no knowledge), vectors learned without half of the facts ("without": the tests ask for
that half), and none at all ("none"). Each is pre-trained a little (MLM and dEA), then fine-tuned
on three tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.encoder import count_parameters, initialise
from course_lib.family.ernie_tsinghua import (
    FusionBlock,
    FusionConfig,
    FusionEncoder,
    FusionForPreTraining,
)
from course_lib.heads import ClassifierOutput
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.entity_alignment import alignment_batches, alignment_loss
from course_lib.objectives.sequences import Batch, PackedSequences, pack, to_sequences
from course_lib.objectives.transe import Translations, tail_ranks, transe
from course_lib.teaching.experiments import Experiment, Run, Trainer, english_world
from course_lib.teaching.results import last_losses
from course_lib.teaching.shipped import micro_teacher
from course_lib.text.knowledge_graph import KnowledgeGraph, align, find_mentions, world_graph
from course_lib.text.world import MicroWorld, story_sequences
from course_lib.train.finetuning import shuffled
from course_lib.train.loop import Batches, fit

PRECISION = "float32"
TRANSE: dict[str, Any] = {"size": 32, "epochs": 300, "order": 2}
STORIES, LENGTH = 6_400, 64
UNRELATED, LONGEST = "none", 12  # the class of pairs without a fact; tokens of a task's text
LABELS = {"relation": (20, 100, 500), "country": (20, 100), "kind": (20, 100)}
TUNED_STEPS = {20: 100, 100: 150, 500: 400}  # of fine-tuning, by the number of labels
SLOW_RATE, SLOWLY = 1e-3, ("relation", 500)  # the run that is repeated at a third of the rate
SEEDS = range(3)


@dataclass(frozen=True)
class FusionRecipe:
    """Which vectors the entities have, and how the model is pre-trained and fine-tuned."""

    vectors: str = "right"
    steps: int = 300
    batch_size: int = 16
    learning_rate: float = 1e-3
    tuned_rate: float = 3e-3


RECIPES = {name: FusionRecipe(name) for name in ("right", "shuffled", "without", "none")}


@dataclass(frozen=True)
class FactSplit:
    """The graph's facts in two halves: labels are taken from one, tests ask for the other."""

    graph: KnowledgeGraph
    read: Tensor  # (N/2, 3)
    tested: Tensor


def split_facts(world: MicroWorld, seed: int) -> FactSplit:
    """The facts of the world, halved at random."""
    graph = world_graph(world)
    generator = torch.Generator().manual_seed(seed)
    mixed = graph.triples[torch.randperm(len(graph.triples), generator=generator)]
    half = len(mixed) // 2
    return FactSplit(graph, mixed[half:], mixed[:half])


@cache
def translations(world: MicroWorld, seed: int, every: bool = True) -> Translations:
    """TransE's vectors of every fact, or of those alone that no test asks for."""
    split = split_facts(world, seed)
    facts = split.graph.triples if every else split.read
    return transe(facts, len(split.graph.entities), len(split.graph.relations), seed=seed, **TRANSE)


def random_vectors(graph: KnowledgeGraph, seed: int) -> Translations:
    """Vectors that have learned nothing: of length one, in random directions."""
    generator = torch.Generator().manual_seed(seed)
    size = TRANSE["size"]
    entity, relation = (
        F.normalize(torch.randn(len(of), size, generator=generator), dim=-1)
        for of in (graph.entities, graph.relations)
    )
    return Translations(entity, relation)


def mean_ranks(world: MicroWorld, seed: int) -> dict[str, float]:
    """The mean rank of the right tail among all entities, 1 is best: of facts that TransE read, of
    the half that it did not, and of all facts with random vectors."""
    split = split_facts(world, seed)
    known, order = split.graph.triples, TRANSE["order"]
    half = translations(world, seed, every=False)
    pairs = {
        "read": (half, split.read),
        "not read": (half, split.tested),
        "random": (random_vectors(split.graph, seed), known),
    }
    return {
        name: tail_ranks(vectors, facts, known, order).float().mean().item()
        for name, (vectors, facts) in pairs.items()
    }


def entity_vectors(world: MicroWorld, name: str, seed: int) -> Tensor | None:
    """The entities' vectors under a recipe's name, (K, E); None for "none"."""
    if name == "none":
        return None
    vectors = translations(world, seed, every=name != "without").entity
    if name == "shuffled":
        generator = torch.Generator().manual_seed(seed)
        return vectors[torch.randperm(len(vectors), generator=generator)]
    return vectors


# ---------------------------------------------------------------- the model


def fusion_from_teacher(vectors: Tensor | None, seed: int) -> FusionForPreTraining:
    """The micro-world's teacher with fusion in its upper two blocks: what both have is copied, what
    reads or writes entities is randomly initialised."""
    teacher = micro_teacher()
    torch.manual_seed(seed)
    config = FusionConfig(
        **asdict(teacher.config), entity_size=TRANSE["size"], entity_heads=2,
        layers=("text", "text", "fusion", "fusion"),
    )  # fmt: skip
    model = FusionForPreTraining(FusionEncoder(config, vectors))
    model.encoder.embeddings.load_state_dict(teacher.encoder.embeddings.state_dict())
    model.mlm.load_state_dict(teacher.mlm.state_dict())
    blocks = teacher.encoder.stack.blocks
    assert isinstance(blocks, nn.ModuleList)
    for ours, theirs in zip(model.encoder.blocks, blocks, strict=True):
        if isinstance(ours, FusionBlock):
            _copy_text_side(ours, theirs)
        else:
            ours.load_state_dict(theirs.state_dict())
    return model


def _copy_text_side(ours: FusionBlock, theirs: Any) -> None:
    for target, source in (
        (ours.attention, theirs.attention),
        (ours.attention_norm, theirs.attention_norm),
        (ours.text_in, theirs.feed_forward.expand),
        (ours.text_out, theirs.feed_forward.contract),
        (ours.text_norm, theirs.output_norm),
    ):
        target.load_state_dict(source.state_dict())


def linked_batches(recipe: FusionRecipe, world: MicroWorld, seed: int) -> Batches:
    """Stories whose names are linked; without vectors there is nothing to align, and MLM is
    left."""
    graph = world_graph(world)
    sequences = story_sequences(world, world.stories(STORIES, seed=0), LENGTH)
    linked = () if recipe.vectors == "none" else find_mentions(graph, world.tokenizer, sequences)
    entity_ids = align(linked, (len(sequences), LENGTH), len(graph.entities))
    return alignment_batches(
        sequences, world.special, entity_ids, len(graph.entities), batch_size=recipe.batch_size,
        seed=seed,
    )  # fmt: skip


pretrain_fusion = Trainer(
    lambda recipe, world, seed: (
        fusion_from_teacher(entity_vectors(world, recipe.vectors, seed), seed), alignment_loss
    ),
    linked_batches,
)  # fmt: skip


# ---------------------------------------------------------------- the tasks


@dataclass(frozen=True)
class EntityTask:
    """Short texts that name entities, and a class for each text.

    sequences: N texts; entity_ids (N, T), −1 for none; at (N, m): the first position of each of the
    m mentions that the classifier reads; labels (N,); learn (N,) bool: labels may be taken here,
    all other texts test."""

    sequences: PackedSequences
    entity_ids: Tensor
    at: Tensor
    labels: Tensor
    names: tuple[str, ...]
    learn: Tensor


def entity_task(
    world: MicroWorld,
    graph: KnowledgeGraph,
    items: Sequence[tuple[tuple[int, ...], str, bool]],
) -> EntityTask:
    """items: the entities that a text names, its class, and may it be learnt from? The text says
    no more than their names, with "and" between them."""
    names = tuple(sorted({label for _, label, _ in items}))
    packed, entity_ids, at = [], torch.full((len(items), LONGEST), -1), []
    for n, (entities, _, _) in enumerate(items):
        ids, first = list[int](), []
        for entity in entities:
            ids += [world.tokenizer.id("and")] if ids else []
            pieces = world.tokenizer.encode(graph.entities[entity])
            first.append(1 + len(ids))  # after [CLS]
            entity_ids[n, first[-1] : first[-1] + len(pieces)] = entity
            ids += pieces
        packed.append(pack([*ids, world.tokenizer.id(".")], None, world.special, LONGEST))
        at.append(first)
    return EntityTask(
        to_sequences(packed), entity_ids, torch.tensor(at),
        torch.tensor([names.index(label) for _, label, _ in items]), names,
        torch.tensor([learn for _, _, learn in items]),
    )  # fmt: skip


def relation_task(world: MicroWorld, split: FactSplit, seed: int) -> EntityTask:
    """How are two entities related, or are they not? For each fact there is a pair without one: the
    same head, and a tail of the same kind. So kinds alone tell no pair from its twin."""
    graph = split.graph
    facts = {tuple(fact) for fact in graph.triples[:, [0, 2]].tolist()}
    generator, items = torch.Generator().manual_seed(seed), []
    for learn, half in ((True, split.read), (False, split.tested)):
        for h, r, t in half.tolist():
            others = [
                n for n, kind in enumerate(graph.kinds)
                if kind == graph.kinds[t] and (h, n) not in facts and n != h
            ]  # fmt: skip
            other = others[int(torch.randint(len(others), (), generator=generator))]
            items += [((h, t), graph.relations[r], learn), ((h, other), UNRELATED, learn)]
    return entity_task(world, graph, items)


def country_task(world: MicroWorld, split: FactSplit) -> EntityTask:
    """Which country is it of? Foods and cities have one, people and sites by their city: two steps
    in the graph, and no story says it. Tested are entities whose own fact is tested."""
    graph = split.graph
    country, city = (_tails(graph.triples, graph.relations.index(r)) for r in ("country", "city"))
    tested = {r: _tails(split.tested, graph.relations.index(r)) for r in ("country", "city")}
    answers = {h: (c, h not in tested["country"]) for h, c in country.items()}
    answers |= {h: (country[c], h not in tested["city"]) for h, c in city.items()}
    items = [((h,), graph.entities[c], learn) for h, (c, learn) in answers.items()]
    return entity_task(world, graph, items)


def kind_task(world: MicroWorld, split: FactSplit, seed: int) -> EntityTask:
    """What is it: a person, a city, a food …? Entities are halved at random."""
    graph = split.graph
    generator = torch.Generator().manual_seed(seed)
    learn = (torch.randperm(len(graph.kinds), generator=generator) % 2 == 0).tolist()
    items = [((n,), kind, learn[n]) for n, kind in enumerate(graph.kinds)]
    return entity_task(world, graph, items)


def _tails(triples: Tensor, relation: int) -> dict[int, int]:
    return {h: t for h, r, t in triples.tolist() if r == relation}


def entity_tasks(world: MicroWorld, seed: int) -> dict[str, EntityTask]:
    """The three tasks on one split of the facts."""
    split = split_facts(world, seed)
    return {
        "relation": relation_task(world, split, seed),
        "country": country_task(world, split),
        "kind": kind_task(world, split, seed),
    }


# ---------------------------------------------------------------- fine-tuning


class MentionClassifier(nn.Module):
    """A class from the text vectors at the mentions' first tokens, side by side."""

    def __init__(self, encoder: FusionEncoder, mentions: int, classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(mentions * encoder.config.hidden_size, classes)
        initialise(self.classifier, encoder.config.initializer_range)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, entity_ids: Tensor, at: Tensor
    ) -> ClassifierOutput:
        """at (B, m): where the mentions begin -> logits (B, classes)."""
        out = self.encoder(input_ids, attention_mask, entity_ids=entity_ids).last_hidden_state
        states = out[torch.arange(len(at))[:, None], at]  # (B, m, H)
        return ClassifierOutput(self.classifier(states.flatten(1)))


def inputs_of(task: EntityTask, which: Tensor, linked: bool) -> dict[str, Tensor]:
    """The classifier's arguments for some of the texts; linked: do they carry entities?"""
    entity_ids = task.entity_ids[which]
    return {
        "input_ids": task.sequences.input_ids[which],
        "attention_mask": task.sequences.attention_mask[which],
        "entity_ids": entity_ids if linked else torch.full_like(entity_ids, -1),
        "at": task.at[which],
    }


def entity_batches(
    task: EntityTask, texts: Tensor, size: int, seed: int, linked: bool
) -> Callable[[int], Batch]:
    """Batches of these texts, in the order of `shuffled`."""
    order = shuffled(len(texts), size, seed)

    def batches(step: int) -> Batch:
        which = texts[order(step)]
        return Batch(inputs_of(task, which, linked), {"classes": task.labels[which]})

    return batches


def tuned_accuracy(
    encoder_of: Callable[[], FusionEncoder],
    task: EntityTask,
    labels: int,
    recipe: FusionRecipe,
    seed: int,
) -> float:
    """Accuracy on the tested texts after fine-tuning on `labels` of the others."""
    linked = recipe.vectors != "none"
    pool, tested = task.learn.nonzero()[:, 0], (~task.learn).nonzero()[:, 0]
    generator = torch.Generator().manual_seed(seed)
    texts = pool[torch.randperm(len(pool), generator=generator)[:labels]]
    torch.manual_seed(seed)
    model = MentionClassifier(encoder_of(), task.at.shape[1], len(task.names))
    fit(
        model, classification_loss,
        entity_batches(task, texts, recipe.batch_size, seed, linked), seed=seed,
        steps=TUNED_STEPS[labels], learning_rate=recipe.tuned_rate, precision=PRECISION,
    )  # fmt: skip
    with torch.no_grad():
        logits = model(**inputs_of(task, tested, linked)).logits
    return (logits.argmax(-1) == task.labels[tested]).float().mean().item()


def reached(run: Run) -> dict[str, Any]:
    """What fine-tuning reaches from the pre-trained weights."""
    recipe, encoder, tasks = run.recipe, run.model.encoder, entity_tasks(run.material, run.seed)
    weights = {name: w.clone() for name, w in encoder.state_dict().items()}

    def encoder_of() -> FusionEncoder:
        encoder.load_state_dict(weights)
        return encoder

    scores = {"parameters": count_parameters(run.model), **last_losses(run.history)} | {
        f"{name} {labels}": tuned_accuracy(encoder_of, tasks[name], labels, recipe, run.seed)
        for name, counts in LABELS.items()
        for labels in counts
    }
    slow, (task, labels) = replace(recipe, tuned_rate=SLOW_RATE), SLOWLY
    slower = tuned_accuracy(encoder_of, tasks[task], labels, slow, run.seed)
    return scores | {f"{task} {labels}, slower": slower}


def majority(world: MicroWorld) -> dict[str, float]:
    """Accuracy of the majority class on the tested texts, mean over the seeds."""
    accuracies: dict[str, list[float]] = {}
    for seed in SEEDS:
        for name, task in entity_tasks(world, seed).items():
            counts = task.labels[~task.learn].bincount()
            accuracies.setdefault(name, []).append(int(counts.max()) / int(counts.sum()))
    return {name: mean(values) for name, values in accuracies.items()}


FUSION = Experiment(
    "09_fusion", RECIPES, SEEDS, english_world, pretrain_fusion, reached,
    label="09-fusion-{vectors}", settings=lambda _: {"transe": TRANSE, "tuned": TUNED_STEPS},
    replayed=RECIPES["right"],
    more={
        "majority": majority, "transe": TRANSE,
        "ranks": lambda world: [{"seed": seed, **mean_ranks(world, seed)} for seed in SEEDS],
    },
)  # fmt: skip
