"""Tasks with labels, made from the micro-world's stories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import torch
from torch import Tensor

from ..objectives.rows import Rows
from .world import MicroWorld, Story, story_rows


@dataclass(frozen=True)
class LabelledRows:
    """Texts and the class of each: rows of N texts, labels (N,), the classes' names.

    Raises ValueError unless every text has a label, and every label a name."""

    rows: Rows
    labels: Tensor
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.labels):
            raise ValueError(
                f"{len(self.rows)} texts and {len(self.labels)} labels were given; expected a "
                "label for each text."
            )
        low, high = (int(x) for x in torch.aminmax(self.labels)) if len(self) else (0, 0)
        if low < 0 or high >= len(self.names):
            raise ValueError(
                f"labels from {low} to {high} were given; expected numbers of the names, 0 to "
                f"{len(self.names) - 1}."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: slice | Tensor) -> LabelledRows:
        return LabelledRows(self.rows[which], self.labels[which], self.names)

    @property
    def commonest(self) -> float:
        """Share of the commonest class: what always answering the same reaches."""
        return self.labels.bincount().max().item() / len(self.labels)


def hero_jobs(world: MicroWorld, stories: Sequence[Story], length: int = 64) -> LabelledRows:
    """What is the hero's job? Only of stories that do not say it: a reader must know the name.

    About one story in five is such. Raises ValueError where none is."""
    silent = [s for s in stories if all(t.slot != "hero.job" for line in s.trace for t in line)]
    if not silent:
        raise ValueError(
            f"None of {len(stories)} stories leaves its hero's job unsaid; about one in five does. "
            "Give more stories."
        )
    people = world.grammar.tables[world.grammar.roles["hero"]]
    names = tuple(sorted({person["job"] for person in people}))
    jobs = [names.index(people[story.rows["hero"]]["job"]) for story in silent]
    return LabelledRows(story_rows(world, silent, length), torch.tensor(jobs), names)


@dataclass(frozen=True)
class WordKinds:
    """Words in their texts, and the gap of a sentence frame that each fills: its kind.

    rows: N texts; at (M,): where the words stand, as n·T + t; labels (M,), names: their kinds;
    learn (M,) bool: the word belongs to the half of the vocabulary that a probe learns from."""

    rows: Rows
    at: Tensor
    labels: Tensor
    names: tuple[str, ...]
    learn: Tensor


def word_kinds(world: MicroWorld, stories: Sequence[Story], length: int = 64) -> WordKinds:
    """Which kind of word stands here: a hero, a job, a thing, a city …?

    The words are halved by a hash: who learned from one half has never been told the kind of a
    word of the other. Raises ValueError for no stories."""
    if not stories:
        raise ValueError("No stories were given; expected at least one.")
    traces = [[trace for line in story.trace for trace in line] for story in stories]
    names = tuple(sorted({trace.slot for story in traces for trace in story if trace.slot}))
    filled = [
        (n * length + t, names.index(trace.slot), crc32(trace.word.encode()) % 2 == 1)
        for n, story in enumerate(traces)
        for t, trace in enumerate(story, start=1)  # after [CLS]
        if trace.slot
    ]
    at, labels, learn = zip(*filled, strict=True)
    return WordKinds(
        story_rows(world, stories, length),
        torch.tensor(at), torch.tensor(labels), names, torch.tensor(learn),
    )  # fmt: skip


@dataclass(frozen=True)
class Queues:
    """Rows in which the same eight workers come in the same order, each in a sentence of the same
    form; only the place in the row says who it is.

    rows: N texts; at (8,): where in each row the workers stand; words: their jobs, in order."""

    rows: Rows
    at: Tensor
    words: tuple[str, ...]


def queues(world: MicroWorld, count: int, seed: int = 0, workers: int = 8) -> Queues:
    """`count` rows "then the baker sees the lamp . then the …": what is seen is drawn anew each
    time, who comes is not. Neighbours say nothing about a worker but that one stands here.

    Raises ValueError unless there are 1 to 36 workers and at least one row."""
    ids = world.tokenizer.ids
    tables = world.grammar.tables
    jobs = sorted({person["job"] for person in tables[world.grammar.roles["hero"]]} & set(ids))
    things = sorted({thing for row in tables["things"] for thing in row.values()} & set(ids))
    if not 1 <= workers <= len(jobs) or count < 1:
        raise ValueError(
            f"workers={workers!r} and count={count!r} were given; expected 1 to {len(jobs)} "
            "workers, and at least one row."
        )
    generator = torch.Generator().manual_seed(seed)
    seen = torch.randint(len(things), (count, workers), generator=generator).tolist()
    texts = [
        [w for job, thing in zip(jobs, row, strict=False)
         for w in ("then", "the", job, "sees", "the", things[thing], ".")]
        for row in seen
    ]  # fmt: skip
    special = world.special
    packed = torch.tensor(
        [[special.cls, *(ids[word] for word in text), special.sep] for text in texts]
    )
    at = 3 + 7 * torch.arange(workers)  # after [CLS] then the
    rows = Rows(packed, torch.ones_like(packed), torch.zeros_like(packed))
    return Queues(rows, at, tuple(jobs[:workers]))
