"""`10_pairs`: small XLMs of English and one other language of the world, with translations (TLM)
and without (MLM). Are the two languages aligned, and does what is learned with English labels hold
in the other? `10_spellings`: the same without translations, by how many words both share.

The task is the slot-category probe (lecture 07): a linear classifier on the frozen vectors says of
each word whether it is a hero, a job, a look, a place … It learns from English words alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.family.xlm import XlmForLanguageModel
from course_lib.teaching.experiments import Experiment
from course_lib.teaching.results import kept, last_losses
from course_lib.text.shared_words import with_shared_words
from course_lib.text.wordpiece import WordPiece
from course_lib.text.world import MicroWorld, Story
from course_lib.train.loop import History
from course_lib.train.probing import linear_probe, states_at

from .pairs import (
    STEPS,
    STORIES,
    Pairs,
    joint_tokenizer,
    sentence_pairs,
    small_xlm,
    train_pairs,
    translation_retrieval,
)

SEEDS, LONGER = range(5), 6_000
PROBED = 120  # unseen stories that the probe learns from, and as many others that test it
RETRIEVED = 60  # unseen stories whose sentences are looked up
UNREAD = {"norlish": "sumorian", "sumorian": "norlish", "english": "sumorian"}


@dataclass(frozen=True)
class PairRecipe:
    """Which language stands beside English, whether translations are read, and for how long.

    shared: the fraction of its words that is spelled as in English; None for what it is by nature.
    "english" with 0 is English in another spelling: the same order, not one word in common."""

    language: str
    translations: bool
    steps: int = STEPS
    shared: float | None = None

    @property
    def world(self) -> MicroWorld:
        """The world told in this language."""
        if self.shared is None:
            return MicroWorld.load(language=self.language)
        return with_shared_words(self.language, self.shared)


@dataclass(frozen=True)
class MixedRecipe(PairRecipe):
    """MLM and TLM by turns, as XLM is trained: half of the words alone, half in pairs."""

    mixed: bool = True


RECIPES: dict[str, PairRecipe] = {
    f"{language}, {objective}": PairRecipe(language, translations, steps)
    for language in ("norlish", "sumorian")
    for objective, translations, steps in (
        ("MLM", False, STEPS), ("TLM", True, STEPS),
        ("MLM, longer", False, LONGER), ("TLM, longer", True, LONGER),
    )
}  # fmt: skip
RECIPES |= {
    f"{language}, MLM + TLM, longer": MixedRecipe(language, True, LONGER)
    for language in ("norlish", "sumorian")
}
SPELLINGS = {
    f"{name}, {shared:.0%} shared": PairRecipe(language, False, LONGER, shared)
    for name, language in (("english respelled", "english"), ("norlish", "norlish"))
    for shared in (0.0, 0.3)
} | {"norlish, 100% shared": PairRecipe("norlish", False, LONGER, 1.0)}


class Material(NamedTuple):
    """Three languages by what they are to a model, one vocabulary for all, and stories in English:
    to train on, for the probe to learn from, to test it."""

    worlds: dict[str, MicroWorld]  # "english", "other" (read beside it), "unread"
    tokenizer: WordPiece
    train: list[Story]
    learn: list[Story]
    test: list[Story]

    def pairs(self, language: str, stories: list[Story]) -> Pairs:
        """Sentences in English and another language."""
        english, other = self.worlds["english"], self.worlds[language]
        return sentence_pairs(english, other, stories, self.tokenizer)


@lru_cache(maxsize=16)
def prepare(recipe: PairRecipe) -> Material:
    """What a recipe's models read. Stories are drawn in English (seed 0) and told in the others."""
    english = MicroWorld.load()
    unread = MicroWorld.load(language=UNREAD[recipe.language])
    worlds = {"english": english, "other": recipe.world, "unread": unread}
    unseen = english.stories(2 * PROBED, seed=0, split="heldout")
    return Material(
        worlds, joint_tokenizer(*worlds.values()), english.stories(STORIES, seed=0),
        unseen[:PROBED], unseen[PROBED:],
    )  # fmt: skip


# ---------------------------------------------------------------- measuring


class Words(NamedTuple):
    """Words of the slots in one language: their vectors (M, (L + 1)·H), the numbers of their slots
    (M,), and which English has no word of this spelling for (M,) bool."""

    vectors: Tensor
    labels: Tensor
    own: Tensor


def slots(material: Material) -> list[str]:
    """The classes: every slot that words of the English stories fill."""
    lines = (line for story in material.learn for line in story.trace)
    return sorted({trace.slot for line in lines for trace in line if trace.slot})


@torch.no_grad()
def words_of(
    model: XlmForLanguageModel, material: Material, language: str, stories: list[Story]
) -> Words:
    """Words with a slot in stories told in a language, each sentence read alone."""
    side = int(language != "english")
    sentences = material.pairs(language if side else "other", stories).alone(side)
    length, names = sentences.input_ids.shape[1], slots(material)
    translations = [story.told_in(material.worlds[language]) for story in stories]
    known = set(material.worlds["english"].vocab)
    rows = [
        (n * length + t, names.index(trace.slot), trace.word not in known)
        for n, line in enumerate(line for story in translations for line in story.trace)
        for t, trace in enumerate(line, start=1)
        if trace.slot in names
    ]
    at, labels, own = map(torch.tensor, zip(*rows, strict=True))
    return Words(states_at(model.encoder.eval(), sentences, at), labels, own)


def measure(model: XlmForLanguageModel, material: Material) -> dict[str, float]:
    """Sentences whose nearest vector is their translation; words whose slot a probe of English
    words tells, in English, in the language that was read beside it, and in one that was not.

    … own: of the words that are not spelled as an English one; … centred: each language's mean
    taken off its vectors first."""
    looked_up = material.pairs("other", material.learn[:RETRIEVED])
    scores = {"retrieval": translation_retrieval(model, looked_up)[-1].mean}
    scores["retrieval centred"] = translation_retrieval(model, looked_up, centred=True)[-1].mean
    learn = words_of(model, material, "english", material.learn)
    for language in material.worlds:
        test = words_of(model, material, language, material.test)
        moved = test.vectors - test.vectors.mean(dim=0) + learn.vectors.mean(dim=0)
        for centred, vectors in (("", test.vectors), (" centred", moved)):
            for own, which in (("", slice(None)), (" own", test.own)):
                if own and not test.own.any():
                    continue
                scores[f"slots {language}{own}{centred}"] = linear_probe(
                    learn.vectors, learn.labels, vectors[which], test.labels[which]
                )
    return scores


def majority(material: Material) -> float:
    """Accuracy of always saying the commonest slot, in English."""
    traces = (trace for story in material.test for line in story.trace for trace in line)
    slots = [trace.slot for trace in traces if trace.slot]
    return max(map(slots.count, set(slots))) / len(slots)


# ---------------------------------------------------------------- runs


def untrained(recipe: PairRecipe, seed: int) -> dict[str, Any]:
    """The same measures at random initialisation."""
    material = prepare(recipe)

    def run() -> dict[str, Any]:
        special = material.pairs("other", material.test[:1]).special
        return {"seed": seed, **measure(small_xlm(special, seed), material)}

    settings = {"seed": seed, "language": recipe.language, "shared": recipe.shared}
    return kept("10-pairs-untrained", settings, material.worlds["english"], run)


def all_untrained(recipes: dict[str, PairRecipe]) -> dict[str, list[dict[str, Any]]]:
    """The control of each recipe, by its name."""
    return {name: [untrained(one, seed) for seed in SEEDS] for name, one in recipes.items()}


def train(recipe: PairRecipe, _: Any, **settings: Any) -> tuple[XlmForLanguageModel, History]:
    """`train_pairs` as the recipe says."""
    material, mixed = prepare(recipe), isinstance(recipe, MixedRecipe)
    pairs = material.pairs("other", material.train)
    settings = {"steps": recipe.steps, **settings}
    return train_pairs(pairs, translations=recipe.translations, mixed=mixed, **settings)


def about_pairs(recipes: dict[str, PairRecipe]) -> dict[str, Any]:
    """What the file of these recipes says beside its runs."""
    first = next(iter(recipes.values()))
    return {
        "languages": lambda _: {name: recipe.world.hash for name, recipe in recipes.items()},
        "sentences": lambda _: len(prepare(first).pairs("other", prepare(first).train).first),
        "looked_up": lambda _: len(
            prepare(first).pairs("other", prepare(first).learn[:RETRIEVED]).first
        ),
        "slots": lambda _: len(slots(prepare(first))),
        "majority": lambda _: majority(prepare(first)),
    }


SPELLED = Experiment(
    "10_spellings", SPELLINGS, SEEDS, train=train,
    measure=lambda run: {**last_losses(run.history), **measure(run.model, prepare(run.recipe))},
    label="10-pairs", settings=lambda recipe: {"other": prepare(recipe).worlds["other"].hash},
    more={**about_pairs(SPELLINGS), "untrained": lambda _: all_untrained(SPELLINGS)},
)  # fmt: skip
PAIRED = replace(
    SPELLED, name="10_pairs", recipes=RECIPES, replayed=RECIPES["norlish, TLM"],
    more={
        **about_pairs(RECIPES),
        "untrained": lambda _: all_untrained({one.language: one for one in RECIPES.values()}),
    },
)  # fmt: skip
EXPERIMENTS = (PAIRED, SPELLED)
MEASURES = ("retrieval", "retrieval centred", *(
    f"slots {language}{own}{centred}" for language in ("english", "other", "unread")
    for own in ("", " own") for centred in ("", " centred")
))  # fmt: skip
