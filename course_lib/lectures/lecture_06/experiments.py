"""Lecture 06's experiments: one teacher, and what makes its students good.

`06_teacher`: a BERT of four layers, pre-trained; its weights are shipped in data/checkpoints/.
`06_distilbert`: students of half its depth, each loss left out in turn, and each initialisation.
`06_tinybert`: narrower students that learn its inner steps, then a task, each part left out in
turn. `06_tinybert_attention`: the attention loss lighter, and the general stage longer.
`06_tinybert_deeper`: with attention and without, where students are four layers deep.
`06_past_plateau`: DistilBERT with its teacher and without, five times as long, with curves.
`06_probe`: students before their first step and after 400, fine-tuned as the others and three
times as long: the probe's zero line."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.checkpoints import load, save
from course_lib.config import BertConfig
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.distilbert import (
    DistilBertConfig,
    distilbert_encoder,
    every_other_layer,
    initialise_from,
    spread_layers,
)
from course_lib.family.tinybert import fit_matrix, layer_mapping, tinybert_encoder
from course_lib.files import cache_dir, data_root, sha256_of, write_manifest
from course_lib.heads import BertForClassification, BertForMaskedLM
from course_lib.objectives.classification import classification_loss
from course_lib.objectives.distillation import distilbert_loss, tinybert_loss
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.teaching import results
from course_lib.teaching.experiments import (
    Experiment,
    Run,
    Stories,
    Trainer,
    english_world,
    results_of,
)
from course_lib.teaching.results import REPLAYED, kept
from course_lib.teaching.results import outcome as outcome  # where page 06 imports it from
from course_lib.teaching.shipped import TEACHER, teacher_hash
from course_lib.teaching.shipped import micro_teacher as micro_teacher  # page 06, too
from course_lib.text.augmentation import augment
from course_lib.text.tasks import LabelledSequences
from course_lib.text.world import MicroWorld
from course_lib.train.distilling import DistillationPair
from course_lib.train.finetuning import class_accuracy, classifier_on, finetune, labelled_batches
from course_lib.train.loop import Callback, History, Objective, fit

PRECISION = "float32"  # on every machine, so that results can be compared
STORIES, HELDOUT, LENGTH = 10_000, 500, 64
LABELLED, TASK_STORIES = 400, 5_000  # texts to fine-tune on; stories whose silent fifth tests


@dataclass(frozen=True)
class TeacherRecipe:
    """A BERT of four layers, 128 wide, that reads masked stories."""

    steps: int = 6_000
    num_layers: int = 4
    batch_size: int = 16
    learning_rate: float = 1e-3
    initializer_range: float = 0.05


@dataclass(frozen=True)
class StudentRecipe:
    """A DistilBERT of half its teacher's depth. begin: one of BEGINNINGS, or NO_LAYERS."""

    steps: int = 400
    num_layers: int = 2
    soft: float = 5.0
    mlm: float = 2.0
    cosine: float = 1.0
    temperature: float = 2.0
    begin: str = "spread"
    batch_size: int = 16
    learning_rate: float = 1e-3
    initializer_range: float = 0.05


@dataclass(frozen=True)
class TinyRecipe:
    """A student of half the depth and half the width, in two stages.

    general: steps on plain stories; inner: steps on the task's texts, both on the inner losses;
    prediction: steps on the task's answers. copies: variants of each labelled text; teacher: learn
    the teacher's answers, else the labels."""

    general: int = 300
    inner: int = 100
    prediction: int = 400
    attention: float = 1.0
    hidden: float = 1.0
    embedding: float = 1.0
    mapping: str = "uniform"
    copies: int = 20
    teacher: bool = True
    num_layers: int = 2
    hidden_size: int = 64
    batch_size: int = 16
    learning_rate: float = 2e-3
    initializer_range: float = 0.05


BEGINNINGS = {
    "spread": spread_layers,
    "every other": every_other_layer,
    "bottom": lambda teacher, student: tuple(range(student)),
    "top": lambda teacher, student: tuple(range(teacher - student, teacher)),
    "fresh": None,
}
NO_LAYERS = "embeddings and head"  # a control of the copied layers: the rest of the copy alone
FULL = StudentRecipe()
STUDENTS = {  # each leaves one thing out; the last two have no teacher to listen to
    "triple loss": FULL,
    "without soft targets": replace(FULL, soft=0.0),
    "without masked words": replace(FULL, mlm=0.0),
    "without cosine": replace(FULL, cosine=0.0),
    "fresh weights": replace(FULL, begin="fresh"),
    "teacher's layers, masked words only": replace(FULL, soft=0.0, cosine=0.0),
    "alone": replace(FULL, soft=0.0, cosine=0.0, begin="fresh"),
}
PAST = replace(FULL, steps=2_000)  # past the plateau, on which random initialisation stays at 400
PAST_EVERY = 200  # steps between two looks
PAST_SEEDS = range(1)
PAST_PLATEAU = {
    "triple loss": PAST,
    "fresh weights": replace(PAST, begin="fresh"),
    "alone": replace(PAST, soft=0.0, cosine=0.0, begin="fresh"),
    "alone, twice the steps": replace(PAST, soft=0.0, cosine=0.0, begin="fresh", steps=4_000),
}
SEEDS = range(3)
STARTS = {name: replace(FULL, begin=name) for name in BEGINNINGS}
TINY = TinyRecipe()
TINIES = {
    "all": TINY,
    "without attention": replace(TINY, attention=0.0),
    "without hidden": replace(TINY, hidden=0.0),
    "without embedding": replace(TINY, embedding=0.0),
    "without both layer losses": replace(TINY, attention=0.0, hidden=0.0),
    "without the teacher's answers": replace(TINY, teacher=False),
    "alone": replace(TINY, general=0, inner=0, copies=0, teacher=False),
}
ATTENTION_WEIGHTS, GENERAL_STEPS = (0.0, 0.1, 1.0), (TINY.general, 4 * TINY.general)
ATTENTION_SEEDS = range(3)
TINIES_BY_ATTENTION = {
    f"attention × {weight:g}, {general} general steps": replace(
        TINY, attention=weight, general=general
    )
    for general in GENERAL_STEPS
    for weight in ATTENTION_WEIGHTS
}
DEEP_TEACHER, DEEP_LABELLED, DEEP_SEEDS = TeacherRecipe(num_layers=8), 100, range(2)
DEEP_TINIES = {
    f"attention × {weight:g}": replace(
        TINY, attention=weight, general=GENERAL_STEPS[-1], num_layers=4
    )
    for weight in (0.0, 1.0)
}


def prepare(world: MicroWorld | None = None) -> Stories:
    """What teacher and students read and are measured on."""
    return Stories(STORIES, HELDOUT, TASK_STORIES, LABELLED, LENGTH, world or english_world())


def _shape(recipe: Any, world: MicroWorld, **more: int) -> dict[str, Any]:
    width = more.get("hidden_size", 128)
    return {
        "vocab_size": world.special.vocab_size, "max_positions": LENGTH,
        "num_layers": recipe.num_layers, "hidden_size": width, "num_heads": 2,
        "intermediate_size": 4 * width, "initializer_range": recipe.initializer_range,
        "hidden_dropout": 0.0, "attention_dropout": 0.0,
    }  # fmt: skip


# ---------------------------------------------------------------- the teacher


def randomly_initialised_teacher(
    recipe: TeacherRecipe, world: MicroWorld, seed: int = 0
) -> BertForMaskedLM:
    """The teacher before its training: no dropout, no pooler."""
    torch.manual_seed(seed)
    return BertForMaskedLM(Encoder(BertConfig(**_shape(recipe, world))))


train_teacher = Trainer(
    lambda recipe, material, seed: (
        randomly_initialised_teacher(recipe, material.world, seed), masked_lm_loss
    ),
    lambda recipe, material, seed: material.batches(recipe, seed + 100),
)  # fmt: skip


def masked_accuracy(model: BertForMaskedLM, material: Stories) -> float:
    """Held-out masked-token accuracy."""
    return material.masked_scores(model)["masked_accuracy"]


def teacher_run(recipe: TeacherRecipe, material: Stories, path: Path) -> dict[str, Any]:
    """Train a teacher and save it at `path`: what it reached, with its curve. Read from the cache
    where that was done before."""

    def measure(run: Run) -> dict[str, Any]:
        save(run.model, path)
        return reached(run)

    one = Experiment("", {}, (0,), train=train_teacher, measure=measure, curve=(500, predicted))
    make = partial(one.measured, recipe, material, 0)
    return kept("06-teacher", asdict(recipe), material.world, make, files=[path])


def shipped_teacher_run(recipe: TeacherRecipe, material: Stories, _: int) -> dict[str, Any]:
    """The run whose weights go to data/checkpoints/."""
    trained = teacher_run(recipe, material, data_root().joinpath(*TEACHER))
    write_manifest(data_root())
    return trained


def shipped_weights(_: Stories) -> dict[str, str]:
    """Where the teacher lies, and its hash."""
    return {"file": "/".join(TEACHER), "sha256": sha256_of(data_root().joinpath(*TEACHER))}


SHIPPED_TEACHER = Experiment(
    "06_teacher", {"teacher": TeacherRecipe()}, (0,), prepare, train_teacher,
    run=shipped_teacher_run, replayed=TeacherRecipe(), more={"weights": shipped_weights},
)  # fmt: skip


# ---------------------------------------------------------------- DistilBERT


def randomly_initialised_student(
    recipe: StudentRecipe, teacher: BertForMaskedLM, world: MicroWorld, seed: int
) -> BertForMaskedLM:
    """The student before its training, initialised as the recipe says."""
    torch.manual_seed(seed)
    student = BertForMaskedLM(distilbert_encoder(DistilBertConfig(**_shape(recipe, world))))
    if recipe.begin == NO_LAYERS:
        drawn = deepcopy(student.encoder.stack.state_dict())
        initialise_from(student, teacher).encoder.stack.load_state_dict(drawn)
        return student
    choose = BEGINNINGS[recipe.begin]
    if choose is None:
        return student
    layers = choose(teacher.config.num_layers, recipe.num_layers)  # type: ignore[no-untyped-call]
    return initialise_from(student, teacher, layers)


def train_student(
    recipe: StudentRecipe, material: Stories, teacher: BertForMaskedLM, **settings: Any
) -> tuple[BertForMaskedLM, History]:
    """Distil the teacher into a student; all else is the same for all recipes. settings: those of
    a Trainer."""

    def draw(recipe: StudentRecipe, material: Stories, seed: int) -> tuple[nn.Module, Objective]:
        student = randomly_initialised_student(recipe, teacher, material.world, seed)
        if not recipe.soft and not recipe.cosine:  # nobody to listen to
            return student, masked_lm_loss
        loss = distilbert_loss(recipe.soft, recipe.mlm, recipe.cosine, recipe.temperature)
        return DistillationPair(student, teacher), loss

    train = Trainer(draw, lambda recipe, material, seed: material.batches(recipe, seed), kept=alone)
    return train(recipe, material, **settings)


def alone(model: Any) -> Any:
    """A student without its teacher."""
    return model.student if isinstance(model, DistillationPair) else model


def unstated_fact_accuracy(
    encoder: Encoder, material: Stories, seed: int, steps: int = 200
) -> float:
    """Held-out accuracy after fine-tuning on the task."""
    settings: Any = {"steps": steps, "seed": seed, "precision": PRECISION, "plain_head": True}
    model = finetune(encoder, material.facts, **settings)
    return class_accuracy(model, material.facts_heldout)


def reached(run: Run) -> dict[str, Any]:
    """What a teacher or a student reached."""
    return {
        "parameters": count_parameters(run.model),
        "masked_accuracy": masked_accuracy(run.model, run.material),
        "job_accuracy": unstated_fact_accuracy(run.model.encoder, run.material, run.seed),
    }


def predicted(run: Run) -> dict[str, float]:
    """For curves: what a model, or a student with its teacher, predicts."""
    return {"masked_accuracy": masked_accuracy(alone(run.model), run.material)}


def by_shipped_teacher(recipe: StudentRecipe, material: Stories, **settings: Any) -> Any:
    """`train_student` with the teacher that is shipped."""
    return train_student(recipe, material, micro_teacher(), **settings)


DISTILBERT = Experiment(
    "06_distilbert", STUDENTS | {f"begin: {name}": recipe for name, recipe in STARTS.items()},
    SEEDS, prepare, by_shipped_teacher, reached, label="06-distilbert-{begin}-{seed}",
    settings=lambda _: {"teacher": teacher_hash()}, replayed=FULL,
    more={"teacher": lambda _: teacher_hash()},
)  # fmt: skip
LONGER = replace(
    DISTILBERT, name="06_past_plateau", recipes=PAST_PLATEAU, seeds=PAST_SEEDS,
    settings=lambda _: {"teacher": teacher_hash(), "every": PAST_EVERY},
    curve=(PAST_EVERY, predicted), replayed=PAST,
)  # fmt: skip


# ---------------------------------------------------------------- the probe's zero line


@dataclass(frozen=True)
class ProbeRecipe(StudentRecipe):
    """A student, trained for `steps` (0: as it was initialised), and the fine-tuning steps."""

    finetuning: tuple[int, ...] = (200,)


def probed(recipe: StudentRecipe, **changes: Any) -> ProbeRecipe:
    return ProbeRecipe(**{**asdict(recipe), **changes})


LONGER_PROBE = (200, 600)  # is 200 enough?
PROBED = {f"step 0: {name}": probed(recipe, steps=0) for name, recipe in STARTS.items()}
PROBED[f"step 0: {NO_LAYERS}"] = probed(FULL, begin=NO_LAYERS, steps=0)
PROBED["step 0: fresh"] = probed(STARTS["fresh"], steps=0, finetuning=LONGER_PROBE)
PROBED |= {
    f"step {FULL.steps}: {name}": probed(STUDENTS[name], finetuning=LONGER_PROBE)
    for name in ("alone", "fresh weights")
}


def train_probed(
    recipe: ProbeRecipe, material: Stories, *, seed: int = 0, **settings: Any
) -> tuple[BertForMaskedLM, History]:
    """`by_shipped_teacher`, or no training at all."""
    if recipe.steps or settings.get("steps"):
        return by_shipped_teacher(recipe, material, seed=seed, **settings)
    student = randomly_initialised_student(recipe, micro_teacher(), material.world, seed)
    return student.eval(), History()


def probe(run: Run) -> dict[str, float]:
    """Masked-token accuracy, and the unstated-fact probe by fine-tuning steps."""
    return {
        "masked_accuracy": masked_accuracy(run.model, run.material),
        **{
            f"job_accuracy {steps}": unstated_fact_accuracy(
                run.model.encoder, run.material, run.seed, steps
            )
            for steps in run.recipe.finetuning
        },
    }


PROBE = replace(
    DISTILBERT, name="06_probe", recipes=PROBED, train=train_probed, measure=probe,
    label="06-probe-{begin}-{seed}", replayed=PROBED[f"step {FULL.steps}: alone"],
)  # fmt: skip


# ---------------------------------------------------------------- TinyBERT


@dataclass(frozen=True)
class Lesson:
    """What stage two needs: the teacher fine-tuned on the task, the task, and the task with
    variants of its texts."""

    teacher: BertForClassification
    task: LabelledSequences
    grown: LabelledSequences


def prepare_lesson(material: Stories, teacher: BertForMaskedLM) -> Lesson:
    """Fine-tune the teacher on the task, and let its masked-word head write the variants."""
    encoder = teacher.encoder
    tuned = finetune(encoder, material.facts, steps=400, seed=0, precision=PRECISION)
    grown = augment(material.facts, teacher, material.world.special, copies=20)
    return Lesson(tuned, material.facts, grown)


def general_stage(
    recipe: TinyRecipe,
    material: Stories,
    teacher: BertForMaskedLM,
    *,
    seed: int = 0,
    steps: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[DistillationPair, History]:
    """Stage one: a randomly initialised student learns its teacher's inner steps on plain stories,
    without masks. Returns student, teacher and matrix, as they were trained, and the loss curve."""
    torch.manual_seed(seed)
    config = BertConfig(**_shape(recipe, material.world, hidden_size=recipe.hidden_size))
    student = tinybert_encoder(config)
    pair = DistillationPair(
        student, teacher.encoder, fit_matrix(config, teacher.config), scores=True
    )
    batches = material.batches(recipe, seed, rate=0.0)
    steps = recipe.general if steps is None else steps
    loss, settings = _inner_loss(recipe, teacher), _settings(recipe, seed, callbacks)
    return pair, fit(pair, loss, batches, steps=steps, **settings)


def task_stage(
    recipe: TinyRecipe,
    encoder: Encoder,
    matrix: nn.Module | None,
    lesson: Lesson,
    *,
    seed: int = 0,
) -> tuple[BertForClassification, dict[str, History]]:
    """Stage two, on the task's texts: the fine-tuned teacher's inner steps, then its answers (or
    the labels). The history of each part by name: inner, prediction."""
    task = lesson.grown if recipe.copies else lesson.task
    student = classifier_on(encoder, len(task.names), seed)
    batches = labelled_batches(task, recipe.batch_size, seed)
    settings, histories = _settings(recipe, seed), {}
    if recipe.inner:
        pair = DistillationPair(student, lesson.teacher, matrix, scores=True)
        loss = _inner_loss(recipe, lesson.teacher)
        histories["inner"] = fit(pair, loss, batches, steps=recipe.inner, **settings)
    trained: nn.Module = student
    loss = classification_loss
    if recipe.teacher:
        trained = DistillationPair(student, lesson.teacher)
        loss = tinybert_loss((), attention=0.0, hidden=0.0, embedding=0.0, prediction=1.0)
    histories["prediction"] = fit(trained, loss, batches, steps=recipe.prediction, **settings)
    return student, histories


def train_tiny(
    recipe: TinyRecipe,
    material: Stories,
    teacher: BertForMaskedLM,
    lesson: Lesson,
    *,
    seed: int = 0,
) -> tuple[BertForClassification, dict[str, History]]:
    """Both stages; the history of each part by name: general, inner, prediction."""
    pair, general = general_stage(recipe, material, teacher, seed=seed)
    assert isinstance(pair.student, Encoder)
    student, histories = task_stage(recipe, pair.student, pair.matrix, lesson, seed=seed)
    return student, {"general": general, **histories}


def _inner_loss(recipe: TinyRecipe, teacher: Any) -> Objective:
    mapping = layer_mapping(recipe.num_layers, teacher.config.num_layers, recipe.mapping)
    weights = {name: getattr(recipe, name) for name in ("attention", "hidden", "embedding")}
    return tinybert_loss(mapping, **weights)


def _settings(recipe: TinyRecipe, seed: int, callbacks: Sequence[Callback] = ()) -> dict[str, Any]:
    return {
        "learning_rate": recipe.learning_rate, "seed": seed, "precision": PRECISION,
        "callbacks": callbacks,
    }  # fmt: skip


def tiny_run(
    recipe: TinyRecipe, material: LessonMaterial, seed: int, teacher_id: str | None = None
) -> dict[str, Any]:
    """One recipe, one seed: what it reached. Finished runs are read from the cache.

    teacher_id: what tells this teacher and its lesson from others; the shipped one's hash if
    None."""
    stories, teacher, lesson = material.stories, material.teacher, material.lesson

    def run() -> dict[str, Any]:
        began = time.process_time()
        student, histories = train_tiny(recipe, stories, teacher, lesson, seed=seed)
        return {
            "seed": seed,
            "parameters": count_parameters(student),
            "job_accuracy": class_accuracy(student, stories.facts_heldout),
            "seconds": round(sum(history.seconds for history in histories.values()), 1),
            "cpu_seconds": round(time.process_time() - began, 1),
        }

    settings = {"seed": seed, "teacher": teacher_id or teacher_hash(), **asdict(recipe)}
    return kept(f"06-tinybert-{seed}", settings, stories.world, run)


@dataclass(frozen=True)
class LessonMaterial:
    """Stories, and a teacher with its lesson; trained: what is known of that teacher."""

    stories: Stories
    teacher: BertForMaskedLM
    trained: Mapping[str, Any] = field(default_factory=dict)

    @property
    def world(self) -> MicroWorld:
        return self.stories.world

    @cached_property
    def lesson(self) -> Lesson:
        return prepare_lesson(self.stories, self.teacher)


def first_stage(recipe: TinyRecipe, material: LessonMaterial, **settings: Any) -> Any:
    """`general_stage`, of which the first losses are replayed."""
    return general_stage(recipe, material.stories, material.teacher, **settings)


TINYBERT = Experiment(
    "06_tinybert", TINIES, SEEDS, lambda: LessonMaterial(prepare(), micro_teacher()), first_stage,
    run=tiny_run, replayed=TINY,
    more={
        "teacher": lambda _: teacher_hash(),
        "taught_by": lambda material: reached_by(material.lesson.teacher, material.stories),
    },
)  # fmt: skip
BY_ATTENTION = replace(
    TINYBERT, name="06_tinybert_attention", recipes=TINIES_BY_ATTENTION, seeds=ATTENTION_SEEDS,
    replayed=next(iter(TINIES_BY_ATTENTION.values())),
)  # fmt: skip


def reached_by(tuned: BertForClassification, material: Stories) -> dict[str, float]:
    """What the fine-tuned teacher reaches in the task, beside its commonest answer."""
    heldout = material.facts_heldout
    return {
        "job_accuracy": class_accuracy(tuned, heldout),
        "commonest": heldout.commonest,
        "texts": len(heldout),
    }


def prepare_deeper() -> LessonMaterial:
    """The stories with few labels, and the deep teacher with how its training went. It is too large
    to ship, so it is trained here, or read from the cache."""
    path = cache_dir("results", "06-tinybert-deeper") / "teacher.safetensors"
    trained = teacher_run(DEEP_TEACHER, prepare(), path)
    teacher = load(path)
    assert isinstance(teacher, BertForMaskedLM)
    few = replace(prepare(), labelled=DEEP_LABELLED)
    return LessonMaterial(few, teacher.requires_grad_(False).eval(), trained)


def deeper_run(recipe: TinyRecipe, material: LessonMaterial, seed: int) -> dict[str, Any]:
    """`tiny_run` with the deep teacher and few labels."""
    marks = json.dumps({**asdict(DEEP_TEACHER), "labels": DEEP_LABELLED}, sort_keys=True)
    return tiny_run(recipe, material, seed, teacher_id=marks)


def deep_losses(_: Any) -> list[float]:
    """The teacher's first. It is not shipped, so that its students cannot be replayed."""
    return train_teacher(DEEP_TEACHER, prepare(), steps=REPLAYED)[1].losses["total"]


DEEPER = Experiment(
    "06_tinybert_deeper", DEEP_TINIES, DEEP_SEEDS, prepare_deeper,
    run=deeper_run, losses=deep_losses,
    more={
        "labels": DEEP_LABELLED,
        "teacher": lambda material: asdict(DEEP_TEACHER) | dict(material.trained),
        "taught_by": lambda material: reached_by(material.lesson.teacher, material.stories),
    },
)  # fmt: skip


summary = partial(
    results.summary, measures=("masked_accuracy", "job_accuracy"), aside=("taught_by",)
)
EXPERIMENTS = (SHIPPED_TEACHER, DISTILBERT, LONGER, PROBE, TINYBERT, BY_ATTENTION, DEEPER)
RESULTS = results_of(EXPERIMENTS)
