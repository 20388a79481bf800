"""`12_mobilebert`: a MobileBERT in miniature, and what its teacher is good for.

A teacher with inverted bottlenecks is pre-trained past the plateau. Students of the same depth,
narrow inside, learn for equally many steps: from masked words alone; from the teacher's answers
too; and with knowledge transfer, in each of the three strategies. The program's slip is switched on
in two of them. Beside these stand NoNorm and ReLU against LayerNorm and GELU, and no pre-training
at all. FLOPs are counted with the teacher's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any

import torch

from course_lib.checkpoints import load, save
from course_lib.encoder import Encoder, count_parameters
from course_lib.family.mobilebert import MobileBertConfig, copy_all_but_blocks, mobilebert_encoder
from course_lib.files import cache_dir
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.knowledge_transfer import pretraining_distillation_loss, transfer_loss
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.teaching.experiments import Experiment, Stories
from course_lib.teaching.results import REPLAYED, kept
from course_lib.text.world import MicroWorld
from course_lib.train.finetuning import class_accuracy, finetune
from course_lib.train.flops import step_flops
from course_lib.train.knowledge_transfer import Stage, pair_of, stages, transfer_knowledge
from course_lib.train.loop import Batches, Callback, Report, fit

PRECISION = "float32"
STORIES, HELDOUT, LENGTH = 10_000, 500, 64
LABELLED, TASK_STORIES = 400, 5_000
LAYERS, WIDTH, EMBEDDING, HEADS = 4, 64, 16, 2
SEEDS = range(3)
LOOK_EVERY = 500
MEASURES = ("masked_accuracy", "job_accuracy")


@dataclass(frozen=True)
class TeacherRecipe:
    """IB-BERT in miniature: 64 wide between blocks, 128 inside."""

    steps: int = 5_000
    bottleneck_size: int = 128
    intermediate_size: int = 512
    num_feed_forwards: int = 1
    attention_input: str = "wide"
    normalization: str = "layer_norm"
    hidden_act: str = "gelu"
    learning_rate: float = 1e-3


@dataclass(frozen=True)
class MobileRecipe:
    """MobileBERT in miniature: 64 wide between blocks, 32 inside, four feed-forwards.

    strategy: one of train.knowledge_transfer's, or "labels": no teacher at all. start: whether
    embeddings and head begin as the teacher's. done: the rate of layers that have had their turn.
    slip: mean and variance of all the teacher's layers at once."""

    strategy: str = "progressive"
    steps: int = 4_000
    transfer_steps: int = 1_600
    done: float = 0.1
    start: bool = True
    slip: bool = False
    bottleneck_size: int = 32
    intermediate_size: int = 128
    num_feed_forwards: int = 4
    attention_input: str = "shared"
    normalization: str = "no_norm"
    hidden_act: str = "relu"
    learning_rate: float = 1e-3


TEACHER = TeacherRecipe()
PROGRESSIVE = MobileRecipe()
OPERATIONAL: dict[str, Any] = {"normalization": "layer_norm", "hidden_act": "gelu"}
STUDENTS = {
    "labels": replace(PROGRESSIVE, strategy="labels", start=False),
    "labels, LayerNorm and GELU": replace(
        PROGRESSIVE, strategy="labels", start=False, **OPERATIONAL
    ),
    "labels, the teacher's embeddings": replace(PROGRESSIVE, strategy="labels"),
    "no transfer": replace(PROGRESSIVE, strategy="none"),
    "auxiliary": replace(PROGRESSIVE, strategy="auxiliary"),
    "joint": replace(PROGRESSIVE, strategy="joint"),
    "progressive": PROGRESSIVE,
    "progressive, lower layers frozen": replace(PROGRESSIVE, done=0.0),
    "progressive, the slip": replace(PROGRESSIVE, slip=True),
    "progressive, LayerNorm and GELU": replace(PROGRESSIVE, **OPERATIONAL),
    "no pre-training": replace(PROGRESSIVE, strategy="labels", steps=0, start=False),
}


@lru_cache(maxsize=1)
def prepare() -> Stories:
    """What teacher and students read and are measured on."""
    return Stories(STORIES, HELDOUT, TASK_STORIES, LABELLED, LENGTH)


def randomly_initialised(
    recipe: TeacherRecipe | MobileRecipe, world: MicroWorld, seed: int
) -> BertForMaskedLM:
    """A teacher or a student before its training: no dropout, no pooler."""
    torch.manual_seed(seed)
    shape = {field: value for field, value in asdict(recipe).items() if field in _SHAPED}
    config = MobileBertConfig(
        vocab_size=world.special.vocab_size, max_positions=LENGTH, num_layers=LAYERS,
        hidden_size=WIDTH, embedding_size=EMBEDDING, num_heads=HEADS, initializer_range=0.05,
        attention_dropout=0.0, **shape,
    )  # fmt: skip
    return BertForMaskedLM(mobilebert_encoder(config, pooler=False))


_SHAPED = (
    "bottleneck_size", "intermediate_size", "num_feed_forwards", "attention_input", "normalization",
    "hidden_act",
)  # fmt: skip


def reading(material: Stories, seed: int) -> Batches:
    """Masked stories, 16 a step."""
    return pretraining_batches(material.train, material.world.special, batch_size=16, seed=seed)


def masked_accuracy(model: BertForMaskedLM, material: Stories) -> float:
    """Held-out masked-token accuracy."""
    return material.masked_scores(model)["masked_accuracy"]


def job_accuracy(encoder: Encoder, material: Stories, seed: int) -> float:
    """Held-out accuracy of the unstated-fact probe: fine-tuned on LABELLED texts."""
    model = finetune(encoder, material.facts, steps=200, seed=seed, precision=PRECISION)
    return class_accuracy(model, material.facts_heldout)


def curve_of(model: BertForMaskedLM, material: Stories, curve: list[dict[str, float]]) -> Callback:
    """A callback that adds what `model` predicts to `curve`, counting steps through all stages."""
    done = 0

    def look(report: Report) -> None:
        nonlocal done
        done += 1
        if done % LOOK_EVERY == 0:
            curve.append({"step": done, "masked_accuracy": masked_accuracy(model, material)})

    return look


# ---------------------------------------------------------------- the teacher


@lru_cache(maxsize=1)
def trained_teacher() -> tuple[BertForMaskedLM, dict[str, Any]]:
    """The teacher, and what it reached; trained once, then read from the cache."""
    material, path = prepare(), cache_dir("results") / "12_ib_bert.safetensors"

    def run() -> dict[str, Any]:
        curve: list[dict[str, float]] = []
        model = randomly_initialised(TEACHER, material.world, 0)
        fit(
            model, masked_lm_loss, reading(material, 100), steps=TEACHER.steps,
            learning_rate=TEACHER.learning_rate, precision=PRECISION,
            callbacks=[curve_of(model, material, curve)],
        )  # fmt: skip
        return {
            "sha256": save(model, path),
            "parameters": count_parameters(model),
            "masked_accuracy": masked_accuracy(model, material),
            "job_accuracy": job_accuracy(model.encoder, material, 0),
            "curve": curve,
        }

    about = kept("12-ib-bert", asdict(TEACHER), material.world, run, files=[path])
    model = load(path, about["sha256"])
    assert isinstance(model, BertForMaskedLM)
    return model, about


# ---------------------------------------------------------------- the students


def untrained_student(
    recipe: MobileRecipe, material: Stories, teacher: BertForMaskedLM, seed: int
) -> Any:
    """The student before its training."""
    student = randomly_initialised(recipe, material.world, seed)
    return copy_all_but_blocks(student, teacher) if recipe.start else student


def plan_of(recipe: MobileRecipe) -> list[Stage]:
    """The stages of a recipe with a teacher."""
    return stages(
        recipe.strategy, LAYERS, partial(transfer_loss, all_teacher_layers=recipe.slip),
        pretraining_distillation_loss(), steps=recipe.steps,
        transfer_steps=recipe.transfer_steps, done=recipe.done,
    )  # fmt: skip


def train(
    recipe: MobileRecipe,
    material: Stories,
    teacher: BertForMaskedLM,
    seed: int,
    *,
    callbacks: Sequence[Callback] = (),
    student: BertForMaskedLM | None = None,
    steps: int | None = None,
) -> list[float]:
    """Train a student, which is given or begun here; its losses, or those of its first `steps`."""
    student = student or untrained_student(recipe, material, teacher, seed)
    settings: dict[str, Any] = {
        "learning_rate": recipe.learning_rate, "precision": PRECISION, "seed": seed,
        "callbacks": callbacks,
    }  # fmt: skip
    batches, count = reading(material, seed), recipe.steps if steps is None else steps
    if recipe.strategy == "labels":
        return fit(student, masked_lm_loss, batches, steps=count, **settings).losses.get(
            "total", []
        )
    plan = plan_of(recipe)
    if steps is not None:
        plan = [replace(plan[0], steps=steps)]
    histories = transfer_knowledge(student, teacher, batches, plan, **settings)
    return [loss for history in histories.values() for loss in history.losses["total"]]


def flops_of(recipe: MobileRecipe, material: Stories, teacher: BertForMaskedLM) -> int:
    """FLOPs of the whole training, the teacher's forward pass with it; of one batch a stage."""
    student, batch = untrained_student(recipe, material, teacher, 0), reading(material, 0)(0)
    if recipe.strategy == "labels":
        return recipe.steps * step_flops(student, masked_lm_loss, batch) if recipe.steps else 0
    total = 0
    for part in plan_of(recipe):
        total += part.steps * step_flops(pair_of(student, teacher, part), part.objective, batch)
    return total


def one_run(recipe: MobileRecipe, seed: int) -> dict[str, Any]:
    """One recipe, one seed: what it reached. Finished runs are read from the cache."""
    material, (teacher, about) = prepare(), trained_teacher()

    def run() -> dict[str, Any]:
        curve: list[dict[str, float]] = []
        student = untrained_student(recipe, material, teacher, seed)
        look = curve_of(student, material, curve)
        train(recipe, material, teacher, seed, callbacks=[look], student=student)
        return {
            "seed": seed,
            "parameters": count_parameters(student),
            "flops": flops_of(recipe, material, teacher),
            "masked_accuracy": masked_accuracy(student, material),
            "job_accuracy": job_accuracy(student.encoder, material, seed),
            "curve": curve,
        }

    settings = {"seed": seed, "teacher": about["sha256"], **asdict(recipe)}
    return kept(f"12-mobilebert-{recipe.strategy}-{seed}", settings, material.world, run)


def replay() -> list[float]:
    """The first losses of the student without a teacher, seed 0: alike on every machine to a few
    digits."""
    recipe, material = STUDENTS["labels"], prepare()
    student = randomly_initialised(recipe, material.world, 0)
    return train(recipe, material, student, 0, student=student, steps=REPLAYED)


MOBILE = Experiment(
    "12_mobilebert",
    STUDENTS,
    SEEDS,
    prepare,
    losses=lambda _: replay(),
    run=lambda recipe, _, seed: one_run(recipe, seed),
    more={"teacher": lambda _: {"recipe": asdict(TEACHER), **trained_teacher()[1]}},
)
