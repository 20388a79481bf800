"""Tasks with labels, made from the micro-world's stories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..objectives.rows import Rows
from .world import MicroWorld, Story, story_rows


@dataclass(frozen=True)
class LabelledRows:
    """Texts and the class of each: rows of N texts, labels (N,), the classes' names."""

    rows: Rows
    labels: Tensor
    names: tuple[str, ...]

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
