"""`09_chinese`: one BERT of the micro-world told in Chinese, where a piece is a character and most
words have several, pre-trained with characters, words or names masked together: ERNIE's (Baidu)
basic, phrase and entity masking, each for itself.

Which characters are a word, and which words a name, is known here: the world says it. Real text
needs a program for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from course_lib.encoder import count_parameters
from course_lib.heads import BertForMaskedLM
from course_lib.objectives.knowledge_masking import unit_numbers
from course_lib.objectives.masked_lm import mask_sequences, mask_whole_words
from course_lib.objectives.sequences import PackedSequences
from course_lib.teaching.experiments import Experiment, Run
from course_lib.teaching.results import last_losses
from course_lib.text.tasks import LabelledWords
from course_lib.text.world import MicroWorld, Story, Trace, story_sequences
from course_lib.train.metrics import HIDDEN
from course_lib.train.probing import word_probe

from .recipes import (
    FACT_SLOTS,
    LOOK_EVERY,
    MaskRecipe,
    TrainingText,
    all_right,
    right_at,
    train_on_material,
)

STORIES, HELDOUT, PROBED, LENGTH = 10_000, 600, 300, 128
SEEDS, STEPS = range(1), 5_000
CURVE = ("character", "word_exact", "person_exact")  # what is measured on the way
LEVELS = ("characters", "words", "names")  # ERNIE's basic, phrase, entity
RECIPES = {units: MaskRecipe(units, steps=STEPS) for units in LEVELS}
PEOPLE, PLACES = ("hero", "guest"), ("site",)


@dataclass(frozen=True)
class Hidden:
    """Words or names of stories that are masked with all their characters, K characters in all.

    at (K,): their positions, ascending, n·T + t; of (K,): the number of the word, from 0 on."""

    at: Tensor
    of: Tensor


@dataclass(frozen=True)
class ChineseMaterial:
    """What the models read, and what they are measured with."""

    world: MicroWorld
    training: TrainingText
    heldout: PackedSequences
    characters: Tensor  # positions of single masked characters, n·T + t
    inside: Tensor  # the same; each has a readable character of its own word beside it
    hidden: Mapping[str, Hidden]  # measure -> what is masked
    slots: LabelledWords


@lru_cache(maxsize=1)
def prepare(world: MicroWorld | None = None) -> ChineseMaterial:
    """Draw the stories (seed 0 of each split), and choose what is masked when measuring."""
    world = world or MicroWorld.load(language="chinese")
    stories = world.stories(STORIES, seed=0)
    unseen = world.stories(HELDOUT, seed=0, split="heldout")
    heldout = story_sequences(world, unseen, LENGTH)
    words = hidden_words(world, unseen, heldout)
    hidden = {
        "word_exact": words,
        "person_exact": hidden_last(unseen, "repeated", PEOPLE),
        "place_exact": hidden_last(unseen, "repeated", PLACES),
        "fact_exact": hidden_last(unseen, "fact", FACT_SLOTS),
    }
    single = mask_sequences(heldout, world.special, mix=HIDDEN, seed=1).predict_at
    return ChineseMaterial(
        world, training_text(world, stories), heldout, single, one_of_each(words), hidden,
        slot_categories(world, unseen[:PROBED]),
    )  # fmt: skip


def training_text(world: MicroWorld, stories: Sequence[Story]) -> TrainingText:
    """Stories as the models read them, one a sequence, with their words and names as units."""
    words = word_units(stories, LENGTH)
    names = unit_numbers(words, place_names(stories))
    train = story_sequences(world, stories, LENGTH)
    return TrainingText(world, train, {"words": words, "names": names})


# ---------------------------------------------------------------- characters, words, names


def spelled(story: Story) -> list[tuple[int, Trace]]:
    """For each character of a story the number of its word, and where the word comes from."""
    traces = enumerate(trace for line in story.trace for trace in line)
    return [(number, trace) for number, trace in traces for _ in trace.word]


def word_units(stories: Sequence[Story], length: int) -> Tensor:
    """The word of each position of [CLS] story [SEP]: its number in the story, −1 at none
    (N, length). Raises ValueError for a story that does not fit."""
    units = torch.full((len(stories), length), -1)
    for n, story in enumerate(stories):
        numbers = [number for number, _ in spelled(story)]
        if len(numbers) > length - 2:
            raise ValueError(
                f"story {n} has {len(numbers)} characters; expected at most {length - 2}, the "
                "length less [CLS] and [SEP]."
            )
        units[n, 1 : 1 + len(numbers)] = torch.tensor(numbers)
    return units


def place_names(stories: Sequence[Story]) -> list[tuple[int, int, int]]:
    """Story, first position and position after the last of every name of several words. The names
    of people and cities are words: whole-word masking has them already."""
    names = []
    for n, story in enumerate(stories):
        by_slot = groupby(enumerate(spelled(story), 1), key=lambda one: one[1][1].slot)
        for slot, run in by_slot:
            places = [t for t, _ in run]
            if slot in PLACES:
                names.append((n, places[0], places[-1] + 1))
    return names


def hidden_words(world: MicroWorld, stories: Sequence[Story], sequences: PackedSequences) -> Hidden:
    """The words of several characters among those that whole-word masking selects (15%)."""
    units = word_units(stories, LENGTH)
    masked = mask_whole_words(sequences, world.special, units, mix=HIDDEN, seed=1)
    rows = torch.arange(len(stories))[:, None]
    word = (rows * LENGTH + units).view(-1)[masked.predict_at]  # a number of its own for each word
    _, of, count = word.unique_consecutive(return_inverse=True, return_counts=True)
    long = count[of] > 1
    return Hidden(masked.predict_at[long], of[long].unique(return_inverse=True)[1])


def hidden_last(stories: Sequence[Story], kind: str, slots: Sequence[str]) -> Hidden:
    """The last word or name of each story of this kind (see `Trace`) and one of these slots, with
    all its characters. Stories without one are left out."""
    at: list[int] = []
    of: list[int] = []
    for n, story in enumerate(stories):
        runs = groupby(enumerate(spelled(story), 1), key=lambda one: one[1][1].slot)
        fitting = [list(run) for slot, run in runs if slot in slots]
        fitting = [run for run in fitting if all(x.kind == kind for _, (_, x) in run)]
        if fitting:
            at += [n * LENGTH + t for t, _ in fitting[-1]]
            of += [n] * len(fitting[-1])
    return Hidden(torch.tensor(at), torch.tensor(of).unique(return_inverse=True)[1])


def one_of_each(words: Hidden) -> Tensor:
    """One character of each word, by turns its last and its first: the rest can be read."""
    last = words.of.diff(append=torch.tensor([-1])) != 0
    first = words.of.diff(prepend=torch.tensor([-1])) != 0
    return words.at[torch.where(words.of % 2 == 0, last, first)]


def slot_categories(world: MicroWorld, stories: Sequence[Story]) -> LabelledWords:
    """The slot-category probe at each word's first character: is the word a hero, a job, a city …?
    The words are halved by a hash, as in English."""
    filled = []
    for n, story in enumerate(stories):
        for (_, trace), run in groupby(enumerate(spelled(story), 1), key=lambda one: one[1]):
            if trace.slot:
                half = crc32(trace.word.encode()) % 2
                filled.append((n * LENGTH + next(run)[0], trace.slot, half == 1))
    at, slots, learn = zip(*filled, strict=True)
    names = tuple(sorted(set(slots)))
    return LabelledWords(
        story_sequences(world, stories, LENGTH), torch.tensor(at),
        torch.tensor([names.index(slot) for slot in slots]), names, torch.tensor(learn),
    )  # fmt: skip


# ---------------------------------------------------------------- what a word's rest gives away


def word_counts(stories: Sequence[Story]) -> Counter[str]:
    """How often stories say each word."""
    return Counter(word for story in stories for line in story.words for word in line)


def likeliest(counts: Mapping[str, int], pattern: str, gap: str = "_") -> str:
    """The most frequent word that fits a pattern such as "船_"; "" where none does."""
    fits = [word for word in counts if len(word) == len(pattern)]
    fits = [w for w in fits if all(p in (gap, c) for p, c in zip(pattern, w, strict=True))]
    return max(fits, key=lambda word: (counts[word], word), default="")


def guessed_from_the_word(material: ChineseMaterial) -> dict[str, float]:
    """What a table of words reaches that sees nothing but the word itself: one character masked and
    the rest readable ("inside"), or all of them masked and the length known ("word_exact")."""
    world, ids = material.world, material.heldout.input_ids.view(-1)
    counts = word_counts(world.stories(STORIES, seed=0))
    words = material.hidden["word_exact"]
    guess = lru_cache(maxsize=None)(lambda pattern: likeliest(counts, pattern))
    inside, whole, masked = [], [], set(material.inside.tolist())
    for number in range(int(words.of.max()) + 1):
        at = words.at[words.of == number].tolist()
        word = "".join(world.tokenizer.token(int(ids[i])) for i in at)
        pattern = "".join("_" if i in masked else c for i, c in zip(at, word, strict=True))
        inside.append(guess(pattern) == word)
        whole.append(guess("_" * len(word)) == word)
    return {"inside": sum(inside) / len(inside), "word_exact": sum(whole) / len(whole)}


def readable_neighbours(material: ChineseMaterial) -> float:
    """Of the single characters selected for prediction that belong to a word of several, how many
    leave another character of their word readable."""
    unseen = material.world.stories(HELDOUT, seed=0, split="heldout")
    units = (torch.arange(HELDOUT)[:, None] * LENGTH + word_units(unseen, LENGTH)).view(-1)
    size = Counter(units[material.heldout.attention_mask.view(-1) == 1].tolist())
    masked = Counter(units[material.characters].tolist())
    inside = [(size[w] > masked[w], masked[w]) for w in masked if size[w] > 1]
    return sum(n for readable, n in inside if readable) / sum(n for _, n in inside)


# ---------------------------------------------------------------- training and measuring


def measure(
    model: BertForMaskedLM, material: ChineseMaterial, names: Sequence[str] = ()
) -> dict[str, float]:
    """Masked characters right, and words, names and facts right in all their characters; only the
    measures with these names, where some are given."""
    mask = material.world.special.mask
    single = {"character": material.characters, "inside": material.inside}
    accuracies = {}
    for name in names or (*single, *material.hidden):
        hidden = material.hidden.get(name)
        right = right_at(model, material.heldout, hidden.at if hidden else single[name], mask)
        accuracies[name] = (all_right(right, hidden.of) if hidden else right).float().mean().item()
    return accuracies


def reached(run: Run) -> dict[str, Any]:
    """What a run reached, and its losses."""
    scores = {"parameters": count_parameters(run.model), **last_losses(run.history)}
    scores |= measure(run.model.eval(), run.material)
    return scores | {"slot_probe": word_probe(run.model.encoder, run.material.slots)}


CHINESE = Experiment(
    "09_chinese", RECIPES, SEEDS, prepare, train_on_material, reached, label="09-chinese-{units}",
    curve=(LOOK_EVERY, lambda run: measure(run.model, run.material, CURVE)),
    replayed=RECIPES["words"],
    more={"words_alone": guessed_from_the_word, "given_away": readable_neighbours},
)  # fmt: skip
