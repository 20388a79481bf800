"""GLUE: nine tasks of language understanding (Wang et al. 2018), and a twin of each.

A *twin* asks the same kind of question about the same kind of input, with the same metric, in
sentences of the micro-world, whose rules give the right answer. `glue_items("RTE", "train")` makes
one; with real=True the same call reads the task itself, from the hub's cache or the network.
`glue_sequences` turns either into what `train.finetuning` trains; `glue_twin` does both steps."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import torch

from course_lib.files import HubError, data_path, hub_file

from .english import LabelledText, Pair
from .features import Tokenizer, plain_sequences, text_sequences
from .glue_twins import FROM_STORIES, MAKERS, TABLES, Draws, other_owner
from .tasks import LabelledSequences, ScoredSequences
from .world import MicroWorld

Item = LabelledText | Pair
LENGTH = 64  # positions: no item of a twin is longer
SPLITS = ("train", "validation", "test")
MISMATCHED = ("validation_mismatched", "test_mismatched")
UNSEEN = ("river", "workshop", "post", "forest")  # topics of MNLI's mismatched sets alone
REPOSITORY = "nyu-mll/glue"  # of data sets on the hub


@dataclass(frozen=True)
class GlueTask:
    """One of the nine. asks: what its twin asks; names: its classes in GLUE's order, none where the
    label is a number; sizes: of the twin's splits; classes: how many of a hundred items are of each
    class, out of balance where GLUE is. hub, columns: where the real one's texts are."""

    name: str
    asks: str
    names: tuple[str, ...]
    sizes: tuple[int, int, int]
    classes: tuple[int, ...]
    hub: str
    columns: tuple[str, ...]

    @property
    def real(self) -> dict[str, Any]:
        """What data/papers/glue.toml says of it: input, answer, train, metrics."""
        return _printed()[self.name]

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self.real["metrics"])

    @property
    def splits(self) -> tuple[str, ...]:
        return SPLITS + MISMATCHED if self.name == "MNLI" else SPLITS

    def number(self, label: str) -> float:
        """A label as a number: of a class its place among `names`. ValueError for another label."""
        if not self.names:
            return float(label)
        if label not in self.names:
            raise ValueError(f"the label {label!r} was given; {self.name} has {self.names}.")
        return self.names.index(label)


def _task(name: str, row: dict[str, Any]) -> GlueTask:
    held: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return GlueTask(name, **held)


GLUE: dict[str, GlueTask] = {name: _task(name, row) for name, row in TABLES["tasks"].items()}


def glue_items(
    name: str, split: str, count: int | None = None, seed: int = 0, *, real: bool = False
) -> list[Item]:
    """The items of a task's split: of our twin `count` of them (default: `GLUE[name].sizes`), of
    the real one the first `count` (default: all). A number is a label such as "3.8".

    MNLI has validation_mismatched and test_mismatched as well: topics that its training items do
    not have. WNLI's validation items are training texts with the other answer, as many of GLUE's
    are; no other held-out text is a training text. ValueError for an unknown task or split, and a
    count below 1; MissingGlue where real=True finds no file."""
    task = task_named(name)
    if split not in task.splits or (count is not None and count < 1):
        raise ValueError(
            f"split={split!r} and count={count!r} were given; {name} has {', '.join(task.splits)}, "
            "and count is at least 1, or None."
        )
    if real:
        return _real(task, split)[:count]
    size = dict(zip(SPLITS, task.sizes, strict=True))[split.removesuffix("_mismatched")]
    return _twin(task, split, count or size, seed)


def task_named(name: str) -> GlueTask:
    """GLUE[name]. ValueError names the nine."""
    if name not in GLUE:
        raise ValueError(f"{name!r} was given; expected one of {', '.join(GLUE)}.")
    return GLUE[name]


def glue_sequences(
    name: str, items: Sequence[Item], tokenizer: Tokenizer, length: int = LENGTH
) -> LabelledSequences | ScoredSequences:
    """[CLS] text [SEP], or [CLS] text [SEP] second [SEP], and the label of each item: a class, or
    STS-B's number. Raises ValueError as `text_sequences` and `plain_sequences` do."""
    task, labels = task_named(name), [item.label for item in items]
    texts = [item.premise if isinstance(item, Pair) else item.text for item in items]
    second = [item.hypothesis for item in items if isinstance(item, Pair)] or None
    if task.names:
        return text_sequences(texts, labels, task.names, tokenizer, length, second)
    sequences, cut = plain_sequences(texts, tokenizer, length, second)
    return ScoredSequences(sequences, torch.tensor([float(label) for label in labels]), cut)


def glue_twin(
    name: str, split: str, count: int | None = None, seed: int = 0
) -> LabelledSequences | ScoredSequences:
    """The twin of a task as sequences of the micro-world's tokens: see `glue_items`."""
    return glue_sequences(name, glue_items(name, split, count, seed), _world().tokenizer)


# ---------------------------------------------------------------- the twins


@cache
def _world() -> MicroWorld:
    return MicroWorld.load()


def _twin(task: GlueTask, split: str, count: int, seed: int) -> list[Item]:
    world = _world()
    if task.name == "WNLI" and split == "validation":
        return [other_owner(world, item) for item in _twin(task, "train", count, seed)
                if isinstance(item, Pair)]  # fmt: skip
    topics = [t for t in world.grammar.topics if (t in UNSEEN) == (split in MISMATCHED)]
    all_topics = world.grammar.topics if task.name != "MNLI" else topics
    draws = Draws(world, split.removesuffix("_mismatched"), seed, all_topics)
    items: dict[tuple[str, ...], Item] = {}
    for label in _labels(task, split, count, draws.random):
        texts = MAKERS[task.name](draws, label)
        while texts in items or not (task.name in FROM_STORIES or draws.fits(texts)):
            texts = MAKERS[task.name](draws, label)
        items[texts] = _item(f"{task.hub}-{split}-{len(items)}", texts, label, split)
    return list(items.values())


def _labels(task: GlueTask, split: str, count: int, random: Random) -> list[str]:
    """As many of each class as `classes` says; of numbers 0 to 5 as many of each."""
    names, weights = task.names or tuple("012345"), task.classes or (1,) * 6
    if task.name == "WNLI" and split == "train":  # hero's and guest's alternate: each gets both
        return [names[n // 2 % 2] for n in range(count)]
    if task.name == "WNLI":
        weights = (65, 35)  # GLUE's: who always says no is right in 65.1% of its test items
    ends = [round(count * sum(weights[: n + 1]) / sum(weights)) for n in range(len(names))]
    parts = zip(names, ends, [0, *ends], strict=False)
    labels = [name for name, end, start in parts for _ in range(end - start)]
    random.shuffle(labels)
    return labels


def _item(id: str, texts: Sequence[str], label: str, split: str) -> Item:
    if len(texts) == 1:
        return LabelledText(id, texts[0], label, split)
    return Pair(id, texts[0], texts[1], label, split)


# ---------------------------------------------------------------- the real ones


class MissingGlue(LookupError):
    """The real task's file is in none of the places where it may be, or cannot be read."""


@cache
def _printed() -> dict[str, Any]:
    return tomllib.loads(data_path("papers", "glue.toml").read_text(encoding="utf-8"))["tasks"]


def _real(task: GlueTask, split: str) -> list[Item]:
    """All items of a split, read from the data set's parquet file on the hub."""
    if split.startswith("test"):
        raise ValueError(f"split={split!r} was given; GLUE keeps the labels of its test sets.")
    if task.name == "MNLI" and split == "validation":
        split = "validation_matched"
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingGlue(_missing(task, "pyarrow is not installed")) from None
    file = _file(task, split)
    try:
        columns = parquet.read_table(file).to_pydict()
        rows = list(zip(*(columns[name] for name in task.columns), strict=True))
        label = [task.names[n] for n in columns["label"]] if task.names else columns["label"]
    except (OSError, ValueError, LookupError) as error:
        raise MissingGlue(_missing(task, f"{file} is damaged or holds another table")) from error
    return [
        _item(f"{task.hub}-{split}-{n}", texts, str(name), split)
        for n, (texts, name) in enumerate(zip(rows, label, strict=True))
    ]


def _file(task: GlueTask, split: str) -> Path:
    """The parquet file, from the hub's cache or the network."""
    name = f"{task.hub}/{split}-00000-of-00001.parquet"
    try:
        file = hub_file(REPOSITORY, name, repo_type="dataset")
    except HubError as error:
        raise MissingGlue(_missing(task, f"from the hub: {error}; {error.advice}")) from error
    if file is None:
        raise MissingGlue(_missing(task, f"{REPOSITORY} has no {name}, or is not there"))
    return file


def _missing(task: GlueTask, why: str) -> str:
    return (
        f"The real {task.name} cannot be read: {why}. It needs the packages huggingface_hub and "
        f"pyarrow, and {REPOSITORY} in the hub's cache or on the network. Use its twin instead: "
        f"glue_items({task.name!r}, split)."
    )
