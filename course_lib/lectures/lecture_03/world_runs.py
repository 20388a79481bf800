"""`03_world`: inference and answers where text is endless and its facts are known.

Lecture 06's micro-world teacher, fine-tuned, and its shape from random initialisation: does each
statement follow from its story, and which stretch of a story answers a question? With a curve over
the steps: learning is sudden here, so a run that is stopped early says little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from course_lib.encoder import Encoder
from course_lib.teaching.experiments import Experiment, Run
from course_lib.teaching.shipped import micro_teacher, teacher_hash
from course_lib.text import english
from course_lib.text.features import (
    QuestionSequences,
    Tokenizer,
    question_sequences,
    text_sequences,
)
from course_lib.text.tasks import LabelledSequences, story_pairs, story_questions
from course_lib.text.world import MicroWorld, Story
from course_lib.train.baselines import label_accuracy, question_baselines
from course_lib.train.finetuning import Task, answer_scores, finetune, task_score
from course_lib.train.loop import Callback, History

from .starts import with_random_initialisation

LENGTH, STRIDE = 64, 24
WORLD_STORIES, WORLD_TEST = 12_000, 600
PRETRAINED, RANDOM = "pre-trained", "random init"
NLI, QA = "NLI", "QA"
EVERY = 200  # steps between two looks at the test stories
WORLD_SEEDS = range(1)


@dataclass(frozen=True)
class WorldRecipe:
    """One run."""

    task: str
    start: str
    steps: int
    learning_rate: float
    batch_size: int = 16


RECIPES = {
    f"{task}, {start}": WorldRecipe(task, start, steps, learning_rate=rate)
    for task, steps, rate in ((NLI, 8_000, 3e-4), (QA, 800, 1e-3))
    for start in (PRETRAINED, RANDOM)
}


def pair_sequences(pairs: Sequence[english.Pair], tokenizer: Tokenizer) -> LabelledSequences:
    """Premises and hypotheses as sequences [CLS] premise [SEP] hypothesis [SEP]."""
    return text_sequences(
        [pair.premise for pair in pairs], [pair.label for pair in pairs], english.RELATIONS,
        tokenizer, LENGTH, second=[pair.hypothesis for pair in pairs],
    )  # fmt: skip


@cache
def world_stories(split: str) -> list[Story]:
    """WORLD_STORIES to learn from, or a fourth as many held-out ones: to choose by ("dev"), to test
    with ("test")."""
    if split == "train":
        return MicroWorld.load().stories(WORLD_STORIES, seed=3)
    seed = {"dev": 4, "test": 3}[split]
    return MicroWorld.load().stories(WORLD_STORIES // 4, seed=seed, split="heldout")


@cache
def world_pairs(split: str) -> LabelledSequences:
    """Inference in the micro-world: stories and statements about them, as many as one likes."""
    return pair_sequences(fitting_pairs(split), MicroWorld.load().tokenizer)


@cache
def all_pairs(split: str) -> list[english.Pair]:
    """Three statements to each story that allows it: one follows, one contradicts, one is open."""
    return story_pairs(world_stories(split), seed=0)


@cache
def fitting_pairs(split: str) -> list[english.Pair]:
    """The pairs that no sequence of LENGTH tokens cuts: a cut premise may have lost what decides.
    Of those to test with, WORLD_TEST."""
    pairs = all_pairs(split)
    marks = 3  # [CLS] and two [SEP]; a word of the world is a token
    fit = [p for p in pairs if len(f"{p.premise} {p.hypothesis}".split()) + marks <= LENGTH]
    return fit if split == "train" else fit[:WORLD_TEST]


@cache
def world_questions(split: str) -> QuestionSequences:
    """Questions about stories; of a fourth the story does not say the answer."""
    stories = world_stories(split)[: WORLD_TEST if split != "train" else None]
    return question_sequences(
        story_questions(stories, seed=0), MicroWorld.load().tokenizer, LENGTH, STRIDE
    )


TASKS: Mapping[str, Callable[[str], Task]] = {NLI: world_pairs, QA: world_questions}


def world_encoder(start: str, seed: int) -> Encoder:
    """The micro-world's teacher of lecture 06, or its shape from random initialisation."""
    encoder = micro_teacher().encoder.requires_grad_(True)
    return with_random_initialisation(encoder, seed) if start == RANDOM else encoder


def tune(
    recipe: WorldRecipe, _: Any, *, seed: int = 0, callbacks: Sequence[Callback] = ()
) -> tuple[Any, History]:
    """Fine-tune on the recipe's task."""
    model = finetune(
        world_encoder(recipe.start, seed), TASKS[recipe.task]("train"), steps=recipe.steps,
        seed=seed, batch_size=recipe.batch_size, learning_rate=recipe.learning_rate,
        precision="float32", callbacks=callbacks,
    )  # fmt: skip
    return model, History()


def score(run: Run) -> dict[str, float]:
    """On the test stories."""
    return {"score": task_score(run.model, TASKS[run.recipe.task]("test"))}


def reached(run: Run) -> dict[str, Any]:
    """Of stories to choose by as well; of answers, where there is one and where there is none."""
    test = TASKS[run.recipe.task]("test")
    result = {**score(run), "dev": task_score(run.model, TASKS[run.recipe.task]("dev"))}
    if isinstance(test, QuestionSequences):
        scores = answer_scores(run.model, test)
        assert scores.has_answer and scores.no_answer
        result |= {"exact": scores.exact, "with answer": scores.has_answer.f1,
                  "without": scores.no_answer.f1}  # fmt: skip
    return result


def world_baselines() -> dict[str, dict[str, float]]:
    """What needs no Transformer, on the same test stories; the bag of words learns from
    the same pairs."""
    train, test = fitting_pairs("train"), fitting_pairs("test")
    questions = story_questions(world_stories("test")[:WORLD_TEST], seed=0)
    return {
        NLI: {
            name: label_accuracy(train, test, sees)
            for name, sees in (("majority class", "nothing"), ("bag of words", "words"))
        },
        QA: {"never an answer": question_baselines(questions)["no answer"].f1},
    }


def pair_counts() -> dict[str, int]:
    """How many pairs there are to learn from, and how many of them fit."""
    return {"all": len(all_pairs("train")), "fitting": len(fitting_pairs("train"))}


WORLD = Experiment(
    "03_world", RECIPES, WORLD_SEEDS, train=tune, measure=reached, label="03-world-{task}",
    settings=lambda _: {"teacher": teacher_hash()}, curve=(EVERY, score),
    more={
        "teacher": lambda _: teacher_hash(), "baselines": lambda _: world_baselines(),
        "pairs": lambda _: pair_counts(),
        "statement_alone": lambda _: label_accuracy(
            fitting_pairs("train"), fitting_pairs("test"), "hypothesis"
        ),
    },
)  # fmt: skip
