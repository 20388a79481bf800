"""The micro-world's facts as a knowledge graph, and where a text mentions its entities.

A fact is a triple (head, relation, tail): (goka, city, harholm). N triples or sequences, T
positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from course_lib.objectives.sequences import PackedSequences

from .wordpiece import WordPiece, word_numbers
from .world import MicroWorld

# What the world's tables say and a text can name; without grammar (sex) and what is only a theme.
RELATIONS = {
    "people": ("job", "city", "friend"),
    "guests": ("animal",),
    "cities": ("country",),
    "foods": ("country",),
    "sites": ("city",),
}


@dataclass(frozen=True)
class KnowledgeGraph:
    """Entities by their names as texts say them, relations, and triples (N, 3): the numbers of
    head, relation and tail. kinds: what each entity is, such as "city"."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    triples: Tensor
    kinds: tuple[str, ...] = field(repr=False)

    def number(self, entity: str) -> int:
        """The entity's number. Raises ValueError for one that is not in the graph."""
        if entity not in self._numbers:
            near = get_close_matches(entity, self.entities, 3)
            advice = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(
                f"{entity!r} is not in the graph; expected one of its {len(self.entities)} "
                f"entities, such as {self.entities[0]!r}.{advice}"
            )
        return self._numbers[entity]

    def about(self, entity: str) -> list[tuple[str, str, str]]:
        """The facts that name this entity, in words: head, relation, tail."""
        number = self.number(entity)
        return [
            (self.entities[h], self.relations[r], self.entities[t])
            for h, r, t in self.triples.tolist()
            if number in (h, t)
        ]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.entities)}


def world_graph(world: MicroWorld) -> KnowledgeGraph:
    """All facts of the world's tables about people, guests, cities, foods and sites."""
    tables = world.grammar.tables
    result: dict[str, str] = {}  # entity -> its kind
    facts: list[tuple[str, str, str]] = []
    for table, columns in RELATIONS.items():
        key = next(iter(tables[table][0]))
        for row in tables[table]:
            head = row[key].replace("_", " ")
            result[head] = table
            facts += [(head, column, row[column].replace("_", " ")) for column in columns]
    for _, relation, tail in facts:
        result.setdefault(tail, relation)
    relations = tuple(dict.fromkeys(relation for _, relation, _ in facts))
    numbers = {name: number for number, name in enumerate(result)}
    triples = [(numbers[h], relations.index(r), numbers[t]) for h, r, t in facts]
    return KnowledgeGraph(tuple(result), relations, torch.tensor(triples), tuple(result.values()))


class Mention(NamedTuple):
    """An entity's name in a text: positions start to stop − 1 of a sequence."""

    sequence: int
    start: int
    stop: int
    entity: int


def find_mentions(
    graph: KnowledgeGraph, tokenizer: WordPiece, sequences: PackedSequences
) -> list[Mention]:
    """Where the entities' names stand, whole words only; of two that begin alike, the longer.

    This stands for TAGME, which must also choose between entities of one name: the world has no
    such names. Mentions do not overlap; they come in the order of the text."""
    named: dict[int, list[tuple[tuple[int, ...], int]]] = {}  # first piece -> names, longest first
    for number, name in enumerate(graph.entities):
        pieces = tuple(tokenizer.encode(name))
        named.setdefault(pieces[0], []).append((pieces, number))
    for names in named.values():
        names.sort(key=lambda name: -len(name[0]))
    words = word_numbers(tokenizer, sequences.input_ids, sequences.attention_mask).tolist()
    return [
        mention
        for n, ids in enumerate(sequences.input_ids.tolist())
        for mention in _mentions_in(n, ids, words[n], named)
    ]


def _mentions_in(
    n: int, ids: Sequence[int], words: Sequence[int], named: dict
) -> Iterable[Mention]:
    start = 0
    while start < len(ids):
        stop = start + 1
        for pieces, number in named.get(ids[start], ()):
            end = start + len(pieces)
            ends_a_word = end >= len(ids) or words[end] != words[end - 1]
            begins_one = start == 0 or words[start] != words[start - 1]
            if tuple(ids[start:end]) == pieces and begins_one and ends_a_word:
                yield Mention(n, start, end, number)
                stop = end
                break
        start = stop


def align(
    mentions: Iterable[Mention], shape: tuple[int, int], entities: int, first_only: bool = False
) -> Tensor:
    """The entity of each position, (N, T) int64, −1 where there is none: it stands on every piece
    of its mention; first_only: on the first alone, as the paper has it.

    shape: (N, T); entities: how many the graph has. Raises ValueError for an entity that is not in
    the graph, a mention outside the text, and two at one place; nothing is left out silently."""
    aligned = torch.full(shape, -1)
    N, T = shape
    for mention in mentions:
        n, start, stop, entity = mention
        if not 0 <= entity < entities:
            raise ValueError(
                f"{mention} names entity {entity}; expected one of the graph's, 0 to "
                f"{entities - 1}. Leave out mentions of entities that the graph does not know."
            )
        if not (0 <= n < N and 0 <= start < stop <= T):
            raise ValueError(
                f"{mention} lies outside the text; expected positions of {N} sequences of {T} "
                "positions, start before stop. Was the text cut after it was linked?"
            )
        if (aligned[n, start:stop] >= 0).any():
            raise ValueError(
                f"{mention} meets another mention; expected one entity a position. Keep the "
                "longer one."
            )
        aligned[n, start : start + 1 if first_only else stop] = entity
    return aligned
