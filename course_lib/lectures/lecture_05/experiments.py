"""Lecture 05's experiments: which task on two segments, and what may be shared.

`05_sentence_tasks`: the same small ALBERT trained with MLM alone, with NSP, with SOP; each
tested on the pairs of both tasks. `05_past_plateau`: the same for four times the steps, with
curves. `05_in_step`: NSP whose wrong B is in step with A. `05_as_released`: SOP with the pairs of
the released program, some of them with a B of another story. `05_lengths`: what the lengths of two
segments tell (length_leak.py). `05_sharing`: width of the embeddings
against what is shared, at equal steps. `05_sharing_past_plateau`: its corners for four times the
steps. `05_start_scale`: the same widths, the wide one begun at the narrow one's scale."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any

from course_lib.encoder import count_parameters
from course_lib.family.albert import SHARING
from course_lib.heads import BertForPreTraining
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.next_sentence import (
    IS_NEXT,
    NOT_NEXT,
    SPECIALS_IN_A_PAIR,
    Document,
    Pair,
    join,
    make_pairs,
    pack_pairs,
    truncate_pair,
)
from course_lib.objectives.pretraining import pretraining_batches, pretraining_loss
from course_lib.objectives.sentence_order import (
    SWAPPED,
    albert_loss,
    make_ordered_pairs,
    ordered_pairs_of_document,
)
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching import results
from course_lib.teaching.experiments import Experiment, Run, Trainer, english_world, results_of
from course_lib.teaching.results import outcome as outcome  # where page 05 imports it from
from course_lib.text.world import MicroWorld
from course_lib.train.baselines import bag_of_words_accuracy
from course_lib.train.loop import Batches, Objective
from course_lib.train.metrics import evaluate

from .length_leak import build as build_lengths
from .length_leak import without_transformer
from .recipes import LIVE, AlbertRecipe, ScaledRecipe, small_albert

IN_STEP = "NSP in step"  # see pairs_in_step
AS_RELEASED = "SOP as released"  # see prepare_as_released
# What is learned beside MLM, and with which loss. "none" reads NSP's pairs.
TASKS: dict[str, Objective] = {
    "none": masked_lm_loss,
    "NSP": pretraining_loss,
    "SOP": albert_loss,
    IN_STEP: pretraining_loss,
    AS_RELEASED: albert_loss,
}
TASK_SEEDS = range(5)
LONG = replace(LIVE, steps=4_000)  # past the plateau, on which LIVE's slower tasks still are
LONG_SEEDS = range(1)
IN_STEP_SEEDS = range(2)
AS_RELEASED_SEEDS = range(1)
EVERY = 500  # steps between two looks of a long run
# MLM alone: a task on pairs, learned beside it, slows it down.
GRID = AlbertRecipe(steps=1_000, num_layers=2, task="none")
WIDTHS = (32, 128)
GRID_SEEDS = range(3)
# A projected row is 0.05 · √E large: four times the width, twice the scale.
OTHER_SCALE = {WIDTHS[1]: 0.5}
CORNERS = tuple((width, sharing) for width in WIDTHS for sharing in ("all", "none"))
CORNER_SEEDS = range(1)


@dataclass(frozen=True)
class PairMaterial:
    """The same stories cut into pairs of each kind, to train and to be measured on."""

    world: MicroWorld
    train: dict[str, PackedSequences]  # "NSP", "SOP"
    heldout: dict[str, PackedSequences]


def prepare_pairs(recipe: AlbertRecipe, world: MicroWorld | None = None) -> PairMaterial:
    """Draw the stories (seed 0 of each split) and cut them both ways. Recipes of the same stories
    share them."""
    return _cut_both_ways(recipe.stories, recipe.heldout, recipe.length, world or english_world())


@lru_cache(maxsize=1)
def _cut_both_ways(stories: int, heldout: int, length: int, world: MicroWorld) -> PairMaterial:
    training = world.documents(world.stories(stories, seed=0))
    unseen = world.documents(world.stories(heldout, seed=0, split="heldout"))

    def both(documents: Sequence[Any]) -> dict[str, PackedSequences]:
        return {
            "NSP": make_pairs(documents, world.special, length=length),
            "SOP": make_ordered_pairs(documents, world.special, length=length),
        }

    return PairMaterial(world, both(training), both(unseen))


def pairs_in_step(recipe: AlbertRecipe, world: MicroWorld, split: str) -> PackedSequences:
    """NSP's pairs, one a story, whose wrong B begins at the same stage of another story (first,
    then, last …) as the right one: neither an opening nor being out of step gives it away."""
    count = recipe.stories if split == "train" else recipe.heldout
    stories = world.stories(count, seed=0, split=split)
    stages = [[frame.split(".")[0] for frame in story.frames] for story in stories]

    def pair(
        documents: Sequence[Document], index: int, draw: random.Random, length: int, _: float
    ) -> list[Pair]:
        story, room = documents[index], length - SPECIALS_IN_A_PAIR
        cut = draw.randint(1, len(story) - 1)
        a, b, label = join(story[:cut]), join(story[cut:]), IS_NEXT
        if draw.random() < 0.5:
            stage, label = stages[index][cut], NOT_NEXT
            other = index
            while other == index or stage not in stages[other]:
                other = draw.randrange(len(documents))
            b = join(documents[other][stages[other].index(stage) :])
        return [(*truncate_pair(a, b, room, draw), label)]

    documents = world.documents(stories)
    return pack_pairs(documents, world.special, pair, recipe.length, 0, short_share=0.0)


def task_batches(recipe: AlbertRecipe, material: PairMaterial, seed: int) -> Batches:
    """The pairs of the recipe's task, masked."""
    sequences = material.train[recipe.task if recipe.task != "none" else "NSP"]
    return pretraining_batches(
        sequences, material.world.special, batch_size=recipe.batch_size, seed=seed
    )


train_albert = Trainer(
    lambda recipe, material, seed: (
        small_albert(recipe, material.world, seed), TASKS[recipe.task]
    ),
    task_batches, precision="auto",
)  # fmt: skip


def measure(
    model: BertForPreTraining, material: PairMaterial, precision: str = "auto"
) -> dict[str, float]:
    """Held-out masked-token accuracy (on SOP's pairs), and accuracy on the pairs of each kind."""
    special = material.world.special
    scored = {
        task: evaluate(model, pairs, special, precision=precision)
        for task, pairs in material.heldout.items()
    }
    return {
        "masked_accuracy": scored["SOP"].masked_accuracy,
        "mlm_loss": scored["SOP"].mlm_loss,
        **{task: scores.pair_accuracy for task, scores in scored.items()},
    }


def guesses(material: PairMaterial) -> dict[str, dict[str, float]]:
    """For each task, what needs no Transformer."""
    special = material.world.special
    return {
        task: without_transformer(train, material.heldout[task], special)
        for task, train in material.train.items()
    }


def one_segment(pairs: PackedSequences, segment: int) -> PackedSequences:
    """Pairs of which one segment alone is seen, 0 for A and 1 for B."""
    return replace(pairs, attention_mask=pairs.attention_mask * (pairs.token_type_ids == segment))


def words_alone(material: PairMaterial) -> dict[str, dict[str, float]]:
    """Linear bags of words, by what they see and were trained on: accuracy on each task's pairs."""
    special = material.world.special

    def tested(task: str, see: Callable[[PackedSequences], PackedSequences]) -> dict[str, float]:
        train = see(material.train[task])
        return {
            on: bag_of_words_accuracy(train, see(material.heldout[on]), special, kind="ordered")
            for on in ("NSP", "SOP")
        }

    return {
        "trained on SOP, sees A": tested("SOP", partial(one_segment, segment=0)),
        "trained on SOP, sees B": tested("SOP", partial(one_segment, segment=1)),
        "trained on NSP, sees both": tested("NSP", lambda pairs: pairs),
    }


def task_recipes() -> dict[str, AlbertRecipe]:
    """The live recipe with each of the three tasks."""
    return {task: replace(LIVE, task=task) for task in ("none", "NSP", "SOP")}


def long_recipes() -> dict[str, AlbertRecipe]:
    """The two tasks on pairs, past the plateau."""
    return {task: replace(LONG, task=task) for task in ("NSP", "SOP")}


def grid_recipes() -> dict[str, AlbertRecipe]:
    """A recipe a cell, by the name "E=64, attention"."""
    return {
        f"E={width}, {sharing}": replace(GRID, embedding_size=width, sharing=sharing)
        for width in WIDTHS
        for sharing in SHARING
    }


def prepare_in_step(recipe: AlbertRecipe) -> PairMaterial:
    """The pairs of all three kinds."""
    made = prepare_pairs(recipe)
    train, heldout = (pairs_in_step(recipe, made.world, split) for split in ("train", "heldout"))
    return PairMaterial(
        made.world, {**made.train, IN_STEP: train}, {**made.heldout, IN_STEP: heldout}
    )


def prepare_as_released(recipe: AlbertRecipe) -> PairMaterial:
    """As `prepare_pairs`, and SOP's training pairs as the released program makes them: a chunk of
    one sentence gets a B of another story and the label SWAPPED."""
    made = prepare_pairs(recipe)
    stories = made.world.documents(made.world.stories(recipe.stories, seed=0))
    pairs = make_ordered_pairs(stories, made.world.special, length=recipe.length, as_released=True)
    return PairMaterial(made.world, {**made.train, AS_RELEASED: pairs}, made.heldout)


def pairs_from_elsewhere(recipe: AlbertRecipe, world: MicroWorld) -> dict[str, int]:
    """How many of these pairs there are, and how many of them have a B of another story."""
    documents, draw = world.documents(world.stories(recipe.stories, seed=0)), random.Random(0)
    pairs = elsewhere = 0
    for index, story in enumerate(documents):
        own = join(story)
        for _, b, label in ordered_pairs_of_document(
            documents, index, draw, recipe.length, as_released=True
        ):
            inside = any(own[i : i + len(b)] == b for i in range(len(own)))
            pairs, elsewhere = pairs + 1, elsewhere + (label == SWAPPED and not inside)
    return {"all": pairs, "from elsewhere": elsewhere}


def corner_recipes() -> dict[str, AlbertRecipe]:
    """The grid's corners, past the plateau."""
    cells = grid_recipes()
    names = (f"E={width}, {sharing}" for width, sharing in CORNERS)
    return {name: replace(cells[name], steps=LONG.steps) for name in names}


def scaled_recipes() -> dict[str, ScaledRecipe]:
    """A width a recipe, all shared, at the other width's scale: "E=128, start × 0.5"."""
    return {
        f"E={width}, start × {scale:g}": ScaledRecipe(
            **asdict(replace(GRID, embedding_size=width)), embedding_scale=scale
        )
        for width, scale in OTHER_SCALE.items()
    }


def reached(run: Run) -> dict[str, float]:
    """What an ALBERT reached."""
    parameters = count_parameters(run.model)
    return {"parameters": parameters, **measure(run.model, run.material)}


def in_float32(run: Run) -> dict[str, float]:
    """`measure`, as the long runs are trained: on every machine alike."""
    return measure(run.model, run.material, "float32")


TASKS_ON_PAIRS = Experiment(
    "05_sentence_tasks", task_recipes(), TASK_SEEDS, partial(prepare_pairs, LIVE), train_albert,
    reached, label="05-{task}-{num_layers}-{embedding_size}-{sharing}-{seed}",
    replayed=task_recipes()["SOP"], precision=None,
    more={"guesses": guesses, "words alone": words_alone},
)  # fmt: skip
GRID_OF_SHARING = replace(
    TASKS_ON_PAIRS, name="05_sharing", recipes=grid_recipes(), seeds=GRID_SEEDS,
    prepare=partial(prepare_pairs, GRID), replayed=list(grid_recipes().values())[-1], more={},
)  # fmt: skip
START_SCALE = replace(
    GRID_OF_SHARING, name="05_start_scale", recipes=scaled_recipes(),
    label="05-scale-{embedding_size}-{embedding_scale}-{seed}", precision="float32",
    train=replace(train_albert, precision="float32"),
    measure=lambda run: {
        "parameters": count_parameters(run.model), **in_float32(run)
    },
    replayed=next(iter(scaled_recipes().values())),
)  # fmt: skip
PAST_PLATEAU = Experiment(
    "05_past_plateau", long_recipes(), LONG_SEEDS, partial(prepare_pairs, LONG),
    replace(train_albert, precision="float32"),
    lambda run: {
        "parameters": count_parameters(run.model), **in_float32(run)
    },
    label="05-long-{task}-{seed}", curve=(EVERY, in_float32), replayed=long_recipes()["SOP"],
)  # fmt: skip
CORNERS_OF_SHARING = replace(
    PAST_PLATEAU, name="05_sharing_past_plateau", recipes=corner_recipes(), seeds=CORNER_SEEDS,
    replayed=list(corner_recipes().values())[-1],
)  # fmt: skip
NSP_IN_STEP = replace(
    PAST_PLATEAU, name="05_in_step", recipes={IN_STEP: replace(LONG, task=IN_STEP)},
    seeds=IN_STEP_SEEDS, prepare=partial(prepare_in_step, LONG),
    replayed=replace(LONG, task=IN_STEP),
    more={"guesses": lambda material: guesses(material)[IN_STEP]},
)  # fmt: skip
SOP_AS_RELEASED = replace(
    PAST_PLATEAU, name="05_as_released", recipes={AS_RELEASED: replace(LONG, task=AS_RELEASED)},
    seeds=AS_RELEASED_SEEDS, prepare=partial(prepare_as_released, LONG),
    replayed=replace(LONG, task=AS_RELEASED),
    more={"pairs": lambda material: pairs_from_elsewhere(LONG, material.world)},
)  # fmt: skip
EXPERIMENTS = (
    TASKS_ON_PAIRS, PAST_PLATEAU, NSP_IN_STEP, SOP_AS_RELEASED, GRID_OF_SHARING, CORNERS_OF_SHARING,
    START_SCALE,
)  # fmt: skip


summary = partial(results.summary, measures=("masked_accuracy", "NSP", "SOP"), aside=("guesses",))
RESULTS = results_of(EXPERIMENTS) | {"05_lengths": build_lengths}
