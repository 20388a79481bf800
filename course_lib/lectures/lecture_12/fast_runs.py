"""`12_fastbert`: what leaving early saves, and what it costs.

Two encoders: the course's checkpoint (4 layers, 256 wide) on the sections of docstrings, five
classes of real sentences; and a deeper one (8 layers, 128 wide), pre-trained here on stories of the
micro-world, on its inference pairs, three classes. Of every trained model all exits answer all test
texts once; which exit each text takes under a rule and a threshold then follows exactly. Against
it: the same number of texts leaving each exit, drawn at random; a model of fixed depth; the rule of
the largest probability; and exits trained in other ways."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from course_lib.checkpoints import load, load_pretrained, save
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, SelfAttention
from course_lib.family.fastbert import FastBert
from course_lib.files import cache_dir
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.early_exit import (
    Confident,
    entropy_at_most,
    first_confident,
    normalised_entropy,
    probability_above,
)
from course_lib.objectives.exits import (
    joint_exits_loss,
    self_distillation_loss,
    student_labels_loss,
)
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.teaching.documentation_tasks import SECTION, as_sequences, documentation_task
from course_lib.teaching.experiments import Experiment, Stories, Trainer
from course_lib.teaching.results import kept, stored
from course_lib.text.english import RELATIONS
from course_lib.text.features import text_sequences
from course_lib.text.tasks import LabelledSequences, story_pairs
from course_lib.text.world import MicroWorld
from course_lib.train.baselines import label_accuracy
from course_lib.train.exits import (
    fastbert_on,
    first_layers,
    train_backbone,
    train_students,
    unlabelled_batches,
)
from course_lib.train.finetuning import labelled_batches, model_inputs
from course_lib.train.loop import Callback, Report, fit

from .roads import road_encoder, road_texts, roads_of

PRECISION = "float32"
SEEDS, DEEP_SEEDS = range(3), range(1)
GENERAL = "course-bert"
SPEEDS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
PROBABILITIES = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.0)
DROPOUT = 0.1  # BERT's, in fine-tuning; both encoders were pre-trained without
PAIRS, ROADS = "pairs", "roads"
LENGTH = {SECTION: 40, PAIRS: 64}
STORIES, TESTED = 12_000, 600
SHOWN = 60  # texts whose probabilities are stored, for a picture


@dataclass(frozen=True)
class DeepRecipe:
    """Pre-training of the deeper encoder: MLM on stories of the micro-world."""

    steps: int = 3_000
    num_layers: int = 8
    hidden_size: int = 128
    stories: int = 10_000
    batch_size: int = 16
    learning_rate: float = 1e-3
    initializer_range: float = 0.05


@dataclass(frozen=True)
class FastRecipe:
    """task: SECTION, PAIRS or ROADS. way: how the exits learn, "self-distillation", "labels" (the
    students alone), "joint" (all exits and the backbone at once), or "depth": the last exit of the
    first `depth` layers, fine-tuned by itself. depth: 0 for all layers.

    direction, dropout: of self-distillation; dropout is backbone's and teacher's. labelled: texts
    that have labels, 0: all; unlabelled: the students read the others as well."""

    task: str = SECTION
    way: str = "self-distillation"
    direction: str = "reverse"
    dropout: bool = True
    depth: int = 0
    labelled: int = 0
    unlabelled: bool = False
    steps: int = 700  # of backbone and teacher
    student_steps: int = 585
    learning_rate: float = 3e-4
    student_rate: float = 3e-3  # ten times the backbone's, as the authors have it
    batch_size: int = 16
    exit_size: int = 64  # a fourth of the encoder's width, as 128 is a sixth of BERT-base's


DEEP = DeepRecipe()
MAIN = FastRecipe()
FEW = replace(MAIN, labelled=500, steps=300)
LIVE = replace(MAIN, steps=350, student_steps=150)  # what a page trains while one reads
ON_PAIRS = replace(MAIN, task=PAIRS, steps=2_500, student_steps=1_000, exit_size=32)
FASTBERTS = {
    "FastBERT": MAIN,
    "KL(teacher ‖ student)": replace(MAIN, direction="forward"),
    "no dropout of the teacher": replace(MAIN, dropout=False),
    "exits on labels": replace(MAIN, way="labels"),
    "joint": replace(MAIN, way="joint"),
    **{f"fixed depth {k}": replace(MAIN, way="depth", depth=k) for k in (1, 2, 3)},
    "few labels": FEW,
    "few labels, all texts": replace(FEW, unlabelled=True),
    "few labels, exits on labels": replace(FEW, way="labels"),
}
DEEP_FASTBERTS = {
    "pairs: FastBERT": ON_PAIRS,
    "pairs: joint": replace(ON_PAIRS, way="joint"),
    **{f"pairs: fixed depth {k}": replace(ON_PAIRS, way="depth", depth=k) for k in (2, 4)},
}
ON_ROADS = replace(
    MAIN, task=ROADS, dropout=False, steps=4_000, student_steps=1_000, learning_rate=2e-3,
    batch_size=64, exit_size=32,
)  # fmt: skip
ROAD_LAYERS, ROAD_TEXTS = 4, 100_000
ROAD_FASTBERTS = {
    "joint": replace(ON_ROADS, way="joint"),
    "joint, two layers": replace(
        ON_ROADS, way="joint", depth=2, steps=8_000, learning_rate=1e-3
    ),
    **{
        f"fixed depth {k}, rate {rate:g}": replace(
            ON_ROADS, way="depth", depth=k, steps=8_000, learning_rate=rate
        )
        for k in (1, 2) for rate in (1e-3, 2e-3)
    },
}  # fmt: skip


# ---------------------------------------------------------------- encoders


def randomly_initialised(recipe: DeepRecipe, world: MicroWorld, seed: int) -> BertForMaskedLM:
    """The deeper model before its training."""
    H = recipe.hidden_size
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=world.special.vocab_size, max_positions=LENGTH[PAIRS], hidden_size=H,
        num_layers=recipe.num_layers, num_heads=2, intermediate_size=4 * H, hidden_dropout=0,
        attention_dropout=0, initializer_range=recipe.initializer_range,
    )  # fmt: skip
    return BertForMaskedLM(Encoder(config))


pretrain = Trainer(
    lambda recipe, material, seed: (
        randomly_initialised(recipe, material.world, seed), masked_lm_loss
    ),
    lambda recipe, material, seed: material.batches(recipe, seed + 100),
)  # fmt: skip


def deep_model(recipe: DeepRecipe = DEEP) -> tuple[BertForMaskedLM, dict[str, Any]]:
    """The deeper model pre-trained, and how it came along. Trained once, then read from the
    cache."""
    material = deep_stories(recipe)
    path = cache_dir("results") / f"12-deep-{recipe.num_layers}-{recipe.steps}.safetensors"

    def run() -> dict[str, Any]:
        curve: list[dict[str, float]] = []

        def look(report: Report) -> None:
            if report.step % 500 == 0:
                accuracy = material.masked_scores(report.model)["masked_accuracy"]
                curve.append({"step": report.step, "masked_accuracy": accuracy})

        save(pretrain(recipe, material, callbacks=[look])[0], path)
        return {"curve": curve}

    about = kept("12-deep", asdict(recipe), material.world, run, [path])
    model = load(path)
    assert isinstance(model, BertForMaskedLM)
    return model, about


def deep_stories(recipe: DeepRecipe) -> Stories:
    """What the deeper model reads, and is measured on."""
    return Stories(recipe.stories, 500, length=LENGTH[PAIRS])


@lru_cache
def encoder_for(task: str) -> Encoder:
    """The pre-trained encoder of SECTION or PAIRS, with DROPOUT."""
    encoder = load_pretrained(GENERAL).encoder if task == SECTION else deep_model()[0].encoder
    return with_dropout(encoder, DROPOUT)


def with_dropout(encoder: Encoder, rate: float) -> Encoder:
    """A copy of the encoder that drops out."""
    copy = deepcopy(encoder)
    copy.config = replace(copy.config, hidden_dropout=rate, attention_dropout=rate)
    for part in copy.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
        elif isinstance(part, SelfAttention):
            part.dropout = rate
    return copy


# ---------------------------------------------------------------- texts


class Sides(NamedTuple):
    """Texts to learn from and to be tested on; of what they are made."""

    train: LabelledSequences
    test: LabelledSequences
    hash: str


@lru_cache
def texts_of(task: str) -> Sides:
    """The task's texts."""
    if task == SECTION:
        documentation = documentation_task(SECTION, 2_000, 1_000, 0)
        tokenizer: Any = load_pretrained(GENERAL).tokenizer
        train, test = (
            as_sequences(task, of, tokenizer, LENGTH[task])
            for of in (documentation.train, documentation.test)
        )
        return Sides(train, test, documentation.hash)
    if task == ROADS:
        return Sides(road_texts(ROAD_TEXTS, 0), road_texts(2_000, 1), f"{ROAD_TEXTS} roads")
    stories = MicroWorld.load().stories(STORIES, seed=3)
    return Sides(story_relations(stories), _unseen(), MicroWorld.load().hash)


def story_relations(stories: Sequence[Any]) -> LabelledSequences:
    """Stories and statements about them that no sequence cuts: [CLS] story [SEP] statement [SEP]
    and what the one says of the other."""
    length = LENGTH[PAIRS]
    pairs = [p for p in story_pairs(stories, seed=0)
             if len(f"{p.premise} {p.hypothesis}".split()) + 3 <= length]  # fmt: skip
    return text_sequences(
        [p.premise for p in pairs], [p.label for p in pairs], RELATIONS,
        MicroWorld.load().tokenizer, length, second=[p.hypothesis for p in pairs],
    )  # fmt: skip


def sample(task: LabelledSequences, count: int, seed: int) -> LabelledSequences:
    """`count` of the texts, drawn by the seed; all of them for 0."""
    order = torch.randperm(len(task), generator=torch.Generator().manual_seed(seed))
    return task[order[:count]] if count else task


# ---------------------------------------------------------------- training


def settings(recipe: FastRecipe, seed: int, students: bool = False) -> dict[str, Any]:
    """What `fit` is told in one of the two stages."""
    steps, rate = (
        (recipe.student_steps, recipe.student_rate) if students
        else (recipe.steps, recipe.learning_rate)
    )  # fmt: skip
    return {"steps": steps, "learning_rate": rate, "seed": seed, "precision": PRECISION}


@lru_cache(maxsize=8)
def backbone(recipe: FastRecipe, seed: int) -> FastBert:
    """The first stage of a recipe, of which nothing but that stage is read: see `first_stage`."""
    labelled = sample(texts_of(recipe.task).train, recipe.labelled, seed)
    encoder = road_encoder(ROAD_LAYERS, seed) if recipe.task == ROADS else encoder_for(recipe.task)
    if recipe.depth:
        encoder = first_layers(encoder, recipe.depth)
    model = fastbert_on(encoder, labelled.names, seed, exit_size=recipe.exit_size)
    batches = labelled_batches(labelled, recipe.batch_size, seed)
    if recipe.way == "joint":
        fit(model, joint_exits_loss, batches, **settings(recipe, seed))
    else:
        train_backbone(model, batches, **settings(recipe, seed))
    return model


def first_stage(recipe: FastRecipe) -> FastRecipe:
    """The recipe with all that concerns the students alone as in MAIN: those that differ in nothing
    else share a backbone."""
    way = recipe.way if recipe.way in ("joint", "depth") else MAIN.way
    return replace(
        recipe, way=way, direction=MAIN.direction, dropout=MAIN.dropout, unlabelled=MAIN.unlabelled
    )


def trained(recipe: FastRecipe, seed: int) -> FastBert:
    """The recipe's model after both stages."""
    model = deepcopy(backbone(first_stage(recipe), seed))
    if recipe.way in ("joint", "depth"):
        return model
    train = texts_of(recipe.task).train
    labelled = sample(train, recipe.labelled, seed)
    if recipe.way == "labels":
        batches = labelled_batches(labelled, recipe.batch_size, seed)
        objective: Any = student_labels_loss
    else:
        texts = (train if recipe.unlabelled else labelled).sequences
        batches = unlabelled_batches(texts, recipe.batch_size, seed)
        objective = self_distillation_loss(recipe.direction)
    train_students(
        model, batches, objective, dropout=recipe.dropout, **settings(recipe, seed, students=True)
    )
    return model


# ---------------------------------------------------------------- measuring


@torch.no_grad()
def all_answers(model: FastBert, test: LabelledSequences, batch_size: int = 64) -> Tensor:
    """What every exit says of every text: (L, N, C)."""
    model.eval()
    parts = [test[start : start + batch_size] for start in range(0, len(test), batch_size)]
    return torch.cat(
        [torch.stack(model(**model_inputs(part)).exit_logits) for part in parts], dim=1
    )


def costs(model: FastBert, test: LabelledSequences) -> Tensor:
    """FLOPs of every text, at its own length, by the exit it leaves at: (L, N)."""
    lengths = test.sequences.attention_mask.sum(1).tolist()
    by_length = {length: model.flops(length) for length in set(lengths)}
    return torch.tensor([by_length[length] for length in lengths], dtype=torch.float64).T


def plain_cost(model: FastBert, test: LabelledSequences) -> float:
    """Mean FLOPs of a text through all layers of the same model without its students."""
    leave: Any = model.teacher
    students = (len(model.exits) - 1) * torch.tensor(
        [leave.flops(n) for n in test.sequences.attention_mask.sum(1).tolist()]
    )
    return (costs(model, test)[-1] - students).mean().item()


def leaving(logits: Tensor, labels: Tensor, cost: Tensor, rule: Confident) -> dict[str, Any]:
    """What becomes of the texts under a rule: (L, N, C), (N,), (L, N).

    accuracy, mean layers and FLOPs of a text, how many leave at each layer; at_random: the accuracy
    expected when as many leave at each layer, but drawn at random."""
    out = first_confident(logits, rule)
    left = out.layers_used.bincount(minlength=len(logits) + 1)[1:]
    of_layer = (logits.argmax(-1) == labels).double().mean(1)  # (L,)
    return {
        "accuracy": (out.logits.argmax(-1) == labels).double().mean().item(),
        "at_random": (of_layer * left).sum().item() / len(labels),
        "layers": out.layers_used.double().mean().item(),
        "flops": cost.gather(0, out.layers_used[None] - 1).mean().item(),
        "left": left.tolist(),
    }


def curves(logits: Tensor, labels: Tensor, cost: Tensor) -> dict[str, list[dict[str, Any]]]:
    """`leaving` over the speeds, and over thresholds of the largest probability."""
    return {
        "by_entropy": [
            {"speed": s, **leaving(logits, labels, cost, entropy_at_most(s))} for s in SPEEDS
        ],
        "by_probability": [
            {"threshold": p, **leaving(logits, labels, cost, probability_above(p))}
            for p in PROBABILITIES
        ],
    }


def one_run(recipe: FastRecipe, seed: int) -> dict[str, Any]:
    """Train and measure. Finished runs are read from the cache."""

    def run() -> dict[str, Any]:
        began, model, test = time.process_time(), trained(recipe, seed), texts_of(recipe.task).test
        logits, cost = all_answers(model, test), costs(model, test)
        right = logits.argmax(-1) == test.labels  # (L, N)
        result: dict[str, Any] = {
            "seed": seed, "accuracy": right[-1].double().mean().item(),
            "plain_flops": plain_cost(model, test),
            "cpu_seconds": round(time.process_time() - began, 1),
        }  # fmt: skip
        if recipe.task == ROADS:
            roads = roads_of(test)
            result["by_roads"] = {
                str(n): right[:, roads == n].double().mean(1).tolist() for n in (1, 2, 3)
            }
        if recipe.way == "depth":  # its students were never trained
            return result
        result |= {"by_layer": right.double().mean(1).tolist(), **curves(logits, test.labels, cost)}
        with_texts = seed == 0 and recipe in (MAIN, ON_PAIRS)
        return result | (each_text(logits, right, test) if with_texts else {})

    about = {
        "seed": seed,
        **asdict(recipe),
        "text": texts_of(recipe.task).hash,
        "start": load_pretrained(GENERAL).sha256 if recipe.task == SECTION else asdict(DEEP),
    }
    if recipe.task == ROADS:
        about["start"] = asdict(road_encoder(ROAD_LAYERS, seed).config)
    return kept("12-fastbert", about, MicroWorld.load(), run)


def each_text(logits: Tensor, right: Tensor, test: LabelledSequences) -> dict[str, Any]:
    """Of every test text: its class, its normalised entropy at every exit, and the first exit from
    which on all are right (0: the last one is wrong); of the first SHOWN what every exit says."""
    steady = right.flip(0).int().cumprod(0).sum(0)  # (N,), right exits at the end, without a gap
    settled = torch.where(steady > 0, len(right) + 1 - steady, 0)
    return {
        "entropies": [[round(h, 2) for h in row] for row in normalised_entropy(logits).T.tolist()],
        "settled": settled.tolist(),
        "classes": test.labels.tolist(),
        "probabilities": [
            [[round(p, 3) for p in exit_] for exit_ in text]
            for text in logits[:, :SHOWN].softmax(-1).transpose(0, 1).tolist()
        ],
    }


def about_texts(task: str) -> dict[str, Any]:
    """How many texts, of which classes, what they were made from, and what needs no encoder."""
    train, test, made_from = texts_of(task)
    about: dict[str, Any] = {"versions": {}}
    if task == SECTION:
        of = documentation_task(SECTION, 2_000, 1_000, 0)
        about = {"versions": of.versions, "words": label_accuracy(of.train, of.test, "words")}
    return {
        "train": len(train), "test": len(test), "names": train.names, "hash": made_from,
        "majority": test.commonest, **about,
    }  # fmt: skip


FAST = Experiment(
    "12_fastbert", FASTBERTS | DEEP_FASTBERTS,
    dict.fromkeys(FASTBERTS, SEEDS) | dict.fromkeys(DEEP_FASTBERTS, DEEP_SEEDS),
    prepare=partial(deep_stories, DEEP), train=pretrain, replayed=DEEP,
    run=lambda recipe, _, seed: one_run(recipe, seed),
    more={
        "deep": lambda _: {**asdict(DEEP), **deep_model()[1]},
        "texts": lambda _: {task: about_texts(task) for task in (SECTION, PAIRS)},
    },
)  # fmt: skip

ROAD = Experiment(
    "12_roads", ROAD_FASTBERTS, SEEDS, run=lambda recipe, _, seed: one_run(recipe, seed),
    more={"texts": lambda _: {"train": ROAD_TEXTS, "test": len(texts_of(ROADS).test),
                              "majority": texts_of(ROADS).test.commonest}},
)  # fmt: skip


# ---------------------------------------------------------------- for the page


def trained_live(watch: Callable[[], Callback]) -> FastBert:
    """LIVE's model, both stages; watch: makes what looks on in each."""
    train = texts_of(SECTION).train
    model = fastbert_on(encoder_for(SECTION), train.names, exit_size=LIVE.exit_size)
    batches = labelled_batches(train, LIVE.batch_size)
    train_backbone(model, batches, callbacks=[watch()], **settings(LIVE, 0))
    texts = unlabelled_batches(train.sequences, LIVE.batch_size)
    train_students(model, texts, callbacks=[watch()], **settings(LIVE, 0, students=True))
    return model.eval()


def leaving_at(model: FastBert, test: LabelledSequences, speed: float) -> dict[str, Any]:
    """`leaving` of a model at a speed."""
    rule = entropy_at_most(speed)
    return leaving(all_answers(model, test), test.labels, costs(model, test), rule)


def shown_texts(count: int = 8) -> dict[str, list[list[float]]]:
    """Statements about unseen stories, from those that are right early to one that is wrong at the
    end, and what every exit says of them, stored."""
    run = stored("12_fastbert")["runs"]["pairs: FastBERT"][0]
    settled = run["settled"][:SHOWN]
    order = sorted(range(len(settled)), key=lambda n: (settled[n] == 0, settled[n]))
    chosen = [order[k * (len(order) - 1) // (count - 1)] for k in range(count)]
    exits = {}
    for index in chosen:
        statement, relation = _statement(index)
        since = f"correct from layer {settled[index]} on" if settled[index] else "wrong at the end"
        exits[f"“{statement}”: {relation} ({since})"] = run["probabilities"][index]
    return exits


@lru_cache(maxsize=1)
def _unseen() -> LabelledSequences:
    """The test texts of PAIRS."""
    world = MicroWorld.load()
    return story_relations(world.stories(STORIES // 4, seed=3, split="heldout"))[:TESTED]


def _statement(index: int) -> tuple[str, str]:
    """What is stated of the story in a test text, and what it is to the story."""
    world, test = MicroWorld.load(), _unseen()
    ids, types = (x[index].tolist() for x in (test.sequences.input_ids,
                                               test.sequences.token_type_ids))  # fmt: skip
    words = [world.tokenizer.token(i) for i, kind in zip(ids, types, strict=True) if kind == 1]
    return " ".join(word for word in words if word not in ("[SEP]", "[PAD]")), test.names[
        int(test.labels[index])
    ]


# ---------------------------------------------------------------- on the clock

PLAIN = "full depth, no students"


def wall_times(
    model: FastBert,
    test: LabelledSequences,
    speeds: Sequence[float] = (0.0, 0.1, 0.3, 0.5, 0.8, 1.0),
    batch_size: int = 1,
    rounds: int = 3,
) -> dict[str, dict[str, float]]:
    """Milliseconds, layers and FLOPs of a text at each speed ("speed 0.5"), in batches of this
    size; and, named PLAIN, of the same model at full depth without its students. The best of the
    rounds, in which all take turns. Times are of this machine, now."""
    model.eval()
    batches = [model_inputs(test[n : n + batch_size]) for n in range(0, len(test), batch_size)]
    ways = {PLAIN: partial(_plain, model)} | {
        f"speed {speed:g}": partial(_early, model, speed) for speed in speeds
    }
    best = dict.fromkeys(ways, float("inf"))
    used = dict.fromkeys(ways, torch.empty(0))
    for _ in range(rounds):
        for name, way in ways.items():
            began = time.perf_counter()
            used[name] = torch.cat([way(batch) for batch in batches])
            best[name] = min(best[name], time.perf_counter() - began)
    cost = costs(model, test)
    flops = {name: cost.gather(0, layers[None] - 1).mean().item() for name, layers in used.items()}
    flops[PLAIN] = plain_cost(model, test)
    return {
        name: {"milliseconds": 1_000 * best[name] / len(test), "flops": flops[name],
               "layers": used[name].double().mean().item()}
        for name in ways
    }  # fmt: skip


@torch.no_grad()
def _plain(model: FastBert, batch: Mapping[str, Tensor]) -> Tensor:
    """All layers, then the teacher alone: the layers used, (B,)."""
    out = model.encoder(**batch)
    answers = model.teacher(out.last_hidden_state, batch["attention_mask"])
    return torch.full((len(answers),), len(model.exits))


def _early(model: FastBert, speed: float, batch: Mapping[str, Any]) -> Tensor:
    return model.answer(**batch, speed=speed).layers_used
