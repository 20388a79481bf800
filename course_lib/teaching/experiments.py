"""An experiment: several recipes, trained alike with several seeds, and what each reached.

A Trainer draws a recipe's model and trains it. An Experiment trains every recipe with every seed,
keeps each finished run in the cache, and builds the file of data/results. A lecture says only what
is its own: recipes, model, batches, measures. Stories are what most of them read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.counts import NeighbourCounts, Unigram
from course_lib.text.tasks import (
    LabelledSequences,
    LabelledWords,
    slot_categories,
    swapped_words,
    unstated_facts,
)
from course_lib.text.world import MicroWorld, Story, story_sequences
from course_lib.train.loop import Batches, Callback, History, Objective, Report, fit
from course_lib.train.metrics import evaluate, evaluation_mask

from .results import REPLAYED, compared_runs, kept

english_world = lru_cache(maxsize=1)(MicroWorld.load)
drawn = lru_cache(maxsize=4)(MicroWorld.stories)  # several experiments read the same stories


@lru_cache(maxsize=2)
def packed(world: MicroWorld, count: int, length: int) -> PackedSequences:
    """Training stories, one a sequence."""
    return story_sequences(world, drawn(world, count), length)


OF_RECIPES = ("learning_rate", "warmup")  # settings of `fit` that a recipe may have


@dataclass(frozen=True)
class Stories:
    """Stories of the micro-world, seed 0 of each split, one a sequence [CLS] story [SEP], and the
    tasks that are made of them. All of it is drawn when it is first asked for.

    count: training stories; heldout: those that masked words are predicted in; unseen: those that
    the tasks are tested with, the held-out ones first; labelled: texts to learn a task from."""

    count: int = 10_000
    heldout_count: int = 500
    unseen_count: int = 0
    labelled: int = 400
    length: int = 64
    world: MicroWorld = field(default_factory=english_world)

    @cached_property
    def stories(self) -> list[Story]:
        return drawn(self.world, self.count)

    @cached_property
    def unseen(self) -> list[Story]:
        most = max(self.heldout_count, self.unseen_count)
        return drawn(self.world, most, split="heldout")

    @cached_property
    def train(self) -> PackedSequences:
        return packed(self.world, self.count, self.length)

    @cached_property
    def heldout(self) -> PackedSequences:
        return story_sequences(self.world, self.unseen[: self.heldout_count], self.length)

    def counted(self, rule: type[Unigram] | type[NeighbourCounts]) -> float:
        """Masked-token accuracy on the held-out stories of a rule that counts in the others."""
        selected = evaluation_mask(self.heldout, self.world.special).selected
        return rule(self.world.documents(self.stories)).accuracy(self.heldout, selected)

    @cached_property
    def facts(self) -> LabelledSequences:
        """The unstated-fact task, to learn from."""
        return unstated_facts(self.world, self.stories, self.length)[: self.labelled]

    @cached_property
    def facts_heldout(self) -> LabelledSequences:
        return unstated_facts(self.world, self.unseen, self.length)

    @cached_property
    def slots(self) -> LabelledWords:
        """The slot-category probe."""
        return slot_categories(self.world, self.unseen[: self.heldout_count], self.length)

    @cached_property
    def swapped(self) -> dict[str, LabelledWords]:
        """The swapped-word probe of both kinds."""
        kinds = ("repeated", "fact")
        return {kind: swapped_words(self.world, self.unseen, kind, self.length) for kind in kinds}

    def batches(self, recipe: Any, seed: int, **options: Any) -> Batches:
        """Masked training stories, `recipe.batch_size` a step; options of `pretraining_batches`."""
        return pretraining_batches(
            self.train, self.world.special, batch_size=recipe.batch_size, seed=seed, **options
        )

    def masked_scores(self, model: Any) -> dict[str, float]:
        """Accuracy and loss on masked tokens of the held-out stories, in float32."""
        scores = evaluate(model, self.heldout, self.world.special, precision="float32")
        return {"masked_accuracy": scores.masked_accuracy, "mlm_loss": scores.mlm_loss}


@dataclass(frozen=True)
class Trainer:
    """How recipes are trained: a function of recipe and material that returns model and history.

    draw(recipe, material, seed): the randomly initialised model and its loss. batches(recipe,
    material, seed): what `fit` reads. kept: what is returned of the model that was trained."""

    draw: Callable[[Any, Any, int], tuple[nn.Module, Objective]]
    batches: Callable[[Any, Any, int], Batches]
    precision: str = "float32"  # on every machine, so that results can be compared
    settings: Mapping[str, Any] = field(default_factory=dict)  # others of `fit`, for all recipes
    kept: Callable[[Any], Any] = lambda model: model

    def __call__(
        self,
        recipe: Any,
        material: Any,
        *,
        seed: int = 0,
        steps: int | None = None,
        callbacks: Sequence[Callback] = (),
        **settings: Any,
    ) -> tuple[Any, History]:
        """All else is the same for recipes that differ in one thing. steps: fewer or more than the
        recipe's; settings: others of `fit`."""
        model, objective = self.draw(recipe, material, seed)
        of_recipe = {name: getattr(recipe, name) for name in OF_RECIPES if hasattr(recipe, name)}
        settings = {"precision": self.precision, **self.settings, **of_recipe, **settings}
        history = fit(
            model, objective, self.batches(recipe, material, seed), steps=steps or recipe.steps,
            seed=seed, callbacks=callbacks, **settings,
        )  # fmt: skip
        return self.kept(model), history


class Run(NamedTuple):
    """A recipe that was trained with a seed, to be measured."""

    recipe: Any
    seed: int
    material: Any
    model: Any
    history: History = History()  # none, where the training still goes on


@dataclass(frozen=True)
class Experiment:
    """A comparison, as its file of data/results holds it.

    name: of the file. recipes: by their names, or a function of the material. prepare: makes what
    all recipes read, with a `world`; None: nothing, and the English one. train: a Trainer, or a
    function with the same call. measure: what is recorded of a Run, beside seed, curve and seconds.
    label: of its file in the cache, the recipe's fields and the seed in braces; settings: what a
    run depends on beside these; files: what `measure` writes besides. curve: steps between two
    looks at a Run on the way, and what is recorded of it. run: for an experiment that is not one
    training, what makes and keeps the run of (recipe, material, seed). replayed: the recipe whose
    first losses with seed 0 are recorded; losses: else what gives them of the material. more: what
    the file says beside its runs, values or functions of the material."""

    name: str
    recipes: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]
    seeds: Sequence[int] | Mapping[str, Sequence[int]]
    prepare: Callable[[], Any] = lambda: None
    train: Callable[..., tuple[Any, History]] | None = None
    measure: Callable[[Run], Mapping[str, Any]] = lambda run: {}
    label: str = ""
    settings: Callable[[Any], Mapping[str, Any]] = lambda recipe: {}
    files: Callable[[Any, int], Sequence[Path]] = lambda recipe, seed: ()
    curve: tuple[int, Callable[[Run], Any]] | None = None
    run: Callable[[Any, Any, int], dict[str, Any]] | None = None
    replayed: Any = None
    losses: Callable[[Any], list[float]] | None = None
    precision: str | None = "float32"
    more: Mapping[str, Any] = field(default_factory=dict)

    def recipes_of(self, material: Any) -> Mapping[str, Any]:
        """Every recipe by its name."""
        return self.recipes(material) if callable(self.recipes) else self.recipes

    def one_run(self, recipe: Any, material: Any, seed: int) -> dict[str, Any]:
        """One recipe, one seed: what it reached. A finished run is read from the cache."""
        if self.run:
            return self.run(recipe, material, seed)
        settings = {"seed": seed, **self.settings(recipe), **asdict(recipe)}
        parts = {k: "-".join(map(str, v)) if isinstance(v, tuple) else v
                 for k, v in settings.items()}  # fmt: skip
        make = partial(self.measured, recipe, material, seed)
        return kept(
            self.label.format(**parts), settings, world_of(material), make, self.files(recipe, seed)
        )

    def measured(self, recipe: Any, material: Any, seed: int) -> dict[str, Any]:
        """Train and measure."""
        assert self.train
        points: list[Any] = []
        every, look = self.curve or (0, None)

        def note(report: Report) -> None:
            if look and report.step % every == 0:
                report.model.eval()
                seen = look(Run(recipe, seed, material, report.model))
                points.append(
                    {"step": report.step, **seen}
                    if isinstance(seen, Mapping)
                    else (report.step, seen)
                )
                report.model.train()

        note.every = every  # type: ignore[attr-defined]
        callbacks = [note] if look else []
        model, history = self.train(recipe, material, seed=seed, callbacks=callbacks)
        measures = self.measure(Run(recipe, seed, material, model, history))
        curve = {"curve": points} if look else {}
        return {"seed": seed, **measures, **curve, "seconds": round(history.seconds, 1)}

    def replay(self, material: Any) -> list[float]:
        """The first losses of seed 0: alike on every machine to about six digits."""
        if self.losses:
            return self.losses(material)
        assert self.train
        return self.train(self.replayed, material, **self.of_replay)[1].losses["total"]

    @property
    def of_replay(self) -> dict[str, Any]:
        """Settings of the replay, which is in float32 whatever the runs are."""
        return {"steps": REPLAYED, **({} if self.precision else {"precision": "float32"})}

    def build(self) -> dict[str, Any]:
        """What the results file holds."""
        material = self.prepare()
        more = {n: partial(v, material) if callable(v) else v for n, v in self.more.items()}
        if self.replayed is not None or self.losses:
            more["replay"] = partial(self.replay, material)
        return compared_runs(
            self.recipes_of(material), self.seeds, world_of(material),
            lambda recipe, seed: self.one_run(recipe, material, seed), precision=self.precision,
            extends=self.name, **more,
        )  # fmt: skip


def results_of(experiments: Sequence[Experiment]) -> dict[str, Callable[[], dict[str, Any]]]:
    """What builds each one's file: RESULTS of a lecture, or part of it."""
    return {one.name: one.build for one in experiments}


def world_of(material: Any) -> MicroWorld:
    """The world that a material is, or is drawn from; English, where it does not say."""
    if isinstance(material, MicroWorld):
        return material
    return getattr(material, "world", None) or english_world()
