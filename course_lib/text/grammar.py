"""The grammar of the micro-world: tables of words, roles, and sentence frames read from TOML files.

A *frame* is a sentence with holes: `the {hero.job} of {hero.city} owns {look} {thing.many} .` A
hole names a *role* (hero, look, thing) and a path of columns. A role is filled once a story with a
row of its table, so every hole of a role must agree with every other one: that is all the world's
knowledge.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

HOLE = re.compile(r"\{([a-z0-9_.]+)\}")
STOPS = {".": " ", "。": ""}  # the full stop that ends sentences -> what stands between words
Row = dict[str, str]


class RulesError(ValueError):
    """A rules file does not say a world."""


@dataclass(frozen=True)
class Hole:
    """One word of a frame that depends on a role: part `part` of the `parts` words of `path`."""

    role: str
    path: str
    part: int = 0
    parts: int = 1

    @property
    def slot(self) -> str:
        """As written in the sentences file: `hero.job`."""
        return f"{self.role}.{self.path}" if self.path else self.role


Item = str | Hole


@dataclass(frozen=True)
class Frame:
    """A sentence frame of one stage of a story: the text with holes, split at spaces."""

    name: str
    stage: str
    items: tuple[Item, ...]

    @cached_property
    def key(self) -> str:
        return f"{self.stage}.{self.name}"

    @cached_property
    def roles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(i.role for i in self.items if isinstance(i, Hole)))


@dataclass(frozen=True)
class Form:
    """A frame whose names of several words have a fixed length: one item for each word of the
    sentence."""

    frame: Frame
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Plan:
    """The stages of a story, in order, and how often stories go that way."""

    stages: tuple[str, ...]
    weight: float


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a rules file; RulesError names the file and the place when it is not TOML."""
    if not path.is_file():
        raise RulesError(
            f"Looked for {path}; expected rules.toml and a folder for each language. Check "
            f"the folder."
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RulesError(
            f"{path} cannot be read: {error}. Expected TOML in UTF-8. Mend the line it names, "
            f"or restore the file."
        ) from error


def hash_of(paths: list[Path]) -> str:
    """SHA-256 of the files one after the other, line ends taken as \\n (so that it is the same on
    Windows)."""
    return hashlib.sha256(
        b"".join(p.read_bytes().replace(b"\r\n", b"\n") for p in paths)
    ).hexdigest()


def read_table(name: str, text: str) -> list[Row]:
    """Rows of a table whose first line names the columns; cells are separated by spaces."""
    lines = [line.split() for line in text.strip().splitlines() if line.strip()]
    if len(lines) < 2:
        raise RulesError(
            f"Table {name} has {len(lines)} lines; expected column names and at least one row."
        )
    for cells in lines[1:]:
        if len(cells) != len(lines[0]):
            raise RulesError(
                f"Table {name}, row {' '.join(cells)!r} has {len(cells)} cells; expected one "
                f"for each of "
                f"{lines[0]}. Write names of several words with _ between them."
            )
    return [dict(zip(lines[0], cells, strict=True)) for cells in lines[1:]]


class Grammar:
    """Everything the rules say about one language of the world, checked. Immutable after it is
    made."""

    def __init__(
        self, rules: dict[str, Any], words: dict[str, str], sentences: dict[str, dict[str, str]]
    ):
        self.rules = rules
        self.tables = {name: read_table(name, text) for name, text in words.items()}
        self.facts: dict[str, str] = rules.get("facts", {})
        self.roles: dict[str, str] = _section(rules, "roles")
        topics = _section(rules, "topics")
        self.topics = tuple(topics)
        self.topic_weights = _shares("topics", list(topics.values()))
        self.frames = {stage: _frames(stage, texts) for stage, texts in sentences.items()}
        self.plans = _plans(rules, self.frames)
        self.heldout_share = _share(rules)
        self.between = _between_words(self.frames)
        self._check_references()

    @classmethod
    def read(cls, folder: Path, language: str) -> Grammar:
        """The grammar of `folder`/rules.toml and `folder`/`language`/*.toml."""
        rules = read_toml(folder / "rules.toml")
        words = read_toml(folder / language / "words.toml")
        return cls(rules, words, read_toml(folder / language / "sentences.toml"))

    @cached_property
    def prior(self) -> dict[str, np.ndarray]:
        """{role: probability of each row of its table given the topic, (topics, rows)}."""
        return {role: self._prior(role, table) for role, table in self.roles.items()}

    def _prior(self, role: str, table: str) -> np.ndarray:
        rows = self.tables[table]
        allowed = np.array([[r.get("topic", t) == t for r in rows] for t in self.topics], float)
        empty = [t for t, row in zip(self.topics, allowed, strict=True) if not row.any()]
        if empty:
            raise RulesError(
                f"Table {table} (role {role}) has no row for {empty}; expected one for each topic."
            )
        rank = np.maximum(allowed.cumsum(1), 1.0)
        weights = allowed * rank ** -float(self.rules.get("rank_exponent", 0.0))
        return weights / weights.sum(1, keepdims=True)

    def value(self, table: str, row: Row, path: str) -> str:
        """What `path` (columns, separated by dots; empty for the key) says of a row."""
        columns = path.split(".") if path else [next(iter(row))]
        for column in columns[:-1]:
            table, row = self._follow(table, row, column)
        if columns[-1] not in row:
            raise RulesError(f"Table {table} has no column {columns[-1]!r}; it has {list(row)}.")
        return row[columns[-1]]

    def _follow(self, table: str, row: Row, column: str) -> tuple[str, Row]:
        target = self.facts.get(f"{table}.{column}")
        if target is None or column not in row:
            raise RulesError(
                f"{table}.{column} leads nowhere; expected it in [facts] of rules.toml, which "
                f"has {list(self.facts)}."
            )
        result = self._by_key(target).get(row[column])
        if result is None:
            raise RulesError(
                f"{table}.{column} is {row[column]!r}, which table {target} does not list. "
                f"Add its row."
            )
        return target, result

    def _by_key(self, table: str) -> dict[str, Row]:
        if table not in self._keyed:
            self._keyed[table] = {next(iter(r.values())): r for r in self.tables[table]}
        return self._keyed[table]

    @cached_property
    def _keyed(self) -> dict[str, dict[str, Row]]:
        return {}

    def column(self, role: str, path: str) -> list[tuple[str, ...]]:
        """For each row of the role's table the words at `path`."""
        if (role, path) not in self._columns:
            if role not in self.roles:
                raise RulesError(
                    f"A sentence asks for role {role!r}; expected one of {list(self.roles)}."
                )
            table = self.roles[role]
            values = [self.value(table, row, path) for row in self.tables[table]]
            self._columns[role, path] = [tuple(v.split("_")) for v in values]
        return self._columns[role, path]

    @cached_property
    def _columns(self) -> dict[tuple[str, str], list[tuple[str, ...]]]:
        return {}

    def forms(self, frame: Frame) -> list[Form]:
        """The frame, once for each combination of lengths of its names of several words."""
        slots = list(dict.fromkeys((i.role, i.path) for i in frame.items if isinstance(i, Hole)))
        lengths = [sorted({len(words) for words in self.column(*slot)}) for slot in slots]
        combinations = [dict(zip(slots, choice, strict=True)) for choice in product(*lengths)]
        return [Form(frame, tuple(_spread(frame.items, length))) for length in combinations]

    @cached_property
    def all_forms(self) -> list[Form]:
        return [form for frames in self.frames.values() for f in frames for form in self.forms(f)]

    def vocabulary(self) -> list[str]:
        """Every word a story can hold, in alphabetical order (of code points)."""
        result = {i for form in self.all_forms for i in form.items if isinstance(i, str)}
        for form in self.all_forms:
            for hole in (i for i in form.items if isinstance(i, Hole)):
                result.update(w for words in self.column(hole.role, hole.path) for w in words)
        return sorted(result)

    def longest(self) -> int:
        """Words of the longest story the plans allow."""
        stage = {
            s: max(len(f.items) for g in fs for f in self.forms(g)) for s, fs in self.frames.items()
        }
        return max(sum(stage[s] for s in plan.stages) for plan in self.plans)

    def _check_references(self) -> None:
        for role, table in self.roles.items():
            if table not in self.tables:
                raise RulesError(
                    f"Role {role} wants table {table!r}; the words file has {list(self.tables)}."
                )
        _ = self.prior
        self.vocabulary()


def _spread(items: tuple[Item, ...], length: dict[tuple[str, str], int]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, str):
            yield item
        else:
            n = length[item.role, item.path]
            yield from (Hole(item.role, item.path, k, n) for k in range(n))


def _frames(stage: str, texts: dict[str, str]) -> list[Frame]:
    if not isinstance(texts, dict) or not texts:
        raise RulesError(
            f"Stage {stage!r} of the sentences file holds {texts!r}; "
            'expected lines such as name = "sentence ."'
        )
    return [Frame(name, stage, _items(f"{stage}.{name}", text)) for name, text in texts.items()]


def _items(name: str, text: str) -> tuple[Item, ...]:
    items: list[Item] = []
    for word in text.split():
        match = HOLE.fullmatch(word)
        if match:
            role, _, path = match[1].partition(".")
            items.append(Hole(role, path))
        elif "{" in word or "}" in word or word != word.lower():
            raise RulesError(
                f"Sentence {name} holds {word!r}; expected a lower-case word or {{role.column}}."
            )
        else:
            items.append(word)
    if not items or items[-1] not in STOPS:
        raise RulesError(
            f"Sentence {name} is {text!r}; expected words separated by spaces, ending in ' .' "
            "(in Chinese, ' 。')."
        )
    return tuple(items)


def _between_words(frames: dict[str, list[Frame]]) -> str:
    """What the language writes between two words: a space, or nothing where sentences end in 。"""
    stops = {str(frame.items[-1]) for of_stage in frames.values() for frame in of_stage}
    if len(stops) != 1:
        raise RulesError(
            f"The sentences end in {' and '.join(sorted(stops)) or 'nothing'}; expected one full "
            "stop for a language."
        )
    return STOPS[stops.pop()]


def _section(rules: dict[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(rules.get(name), dict) or not rules[name]:
        raise RulesError(
            f"rules.toml has {list(rules)}; expected a section [{name}] with at least one entry."
        )
    return rules[name]


def _shares(name: str, weights: list[Any]) -> np.ndarray:
    if not all(isinstance(w, int | float) and w > 0 for w in weights):
        raise RulesError(f"The weights of {name} are {weights}; expected numbers above 0.")
    return np.array(weights, float) / sum(weights)


def _share(rules: dict[str, Any]) -> float:
    share = rules.get("heldout_share")
    if not isinstance(share, float) or not 0 < share < 0.5:
        raise RulesError(
            f"heldout_share is {share!r}; expected a number between 0 and 0.5, such as 0.1."
        )
    return share


def _plans(rules: dict[str, Any], frames: dict[str, list[Frame]]) -> list[Plan]:
    plans = rules.get("plans") or []
    for plan in plans:
        unknown = [s for s in plan.get("stages", [""]) if s not in frames]
        if unknown:
            raise RulesError(
                f"A plan has stages {unknown}; the sentences file knows {list(frames)}."
            )
    if not plans:
        raise RulesError(
            "rules.toml has no [[plans]]; expected at least one, with weight and stages."
        )
    shares = _shares("plans", [plan.get("weight") for plan in plans])
    return [Plan(tuple(p["stages"]), float(w)) for p, w in zip(plans, shares, strict=True)]
