"""How an item of each of GLUE's twins is made: a wording, and words of the micro-world for it.

The wordings are in data/world/english/glue.toml. Two of one kind say the same of the same persons
and things, and most turn the order of the persons round: which words a text holds does not tell
what it says. Each maker takes the label that the item shall have, and returns its texts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import accumulate, chain, count
from random import Random
from typing import Any
from zlib import crc32

from course_lib.files import data_path

from .english import Pair
from .tasks import PRONOUNS, story_pronouns
from .world import MicroWorld, Story, Trace

Texts = tuple[str, ...]  # of one item: one text, or two
Roles = dict[str, str]

TABLES: dict[str, Any] = tomllib.loads(
    data_path("world", "english", "glue.toml").read_text(encoding="utf-8")
)
EVENTS, DEEDS, QUESTIONS, STATES, ASKED = (
    TABLES[name] for name in ("events", "deeds", "questions", "states", "asked")
)
ROLES = {"look": "look", "thing": "thing", "mood": "mood", "site": "site", "act": "act1"}
OTHER_SEX = {"he": "she", "she": "he", "his": "her", "her": "his"}
LONGEST = 52  # words of a story: with a hypothesis they fit into 64 positions
NUMBERED = ("open.has", "open.finds", "open.needs", "first.all", "then.one")
BROKEN = {"order": 3, "verb": 3, "number": 2, "pronoun": 2}  # what is wrong, and how often


class Draws:
    """Words and sentences for the items of one split, the same for the same seed.

    `fits` says which texts belong to it: by the world's own hash of a text's ends no held-out one
    is a training text; validation and test halve the held-out ones by another hash."""

    def __init__(self, world: MicroWorld, split: str, seed: int, topics: Sequence[str]):
        self.world, self.split, self.seed = world, split, seed
        self.topics = [world.grammar.topics.index(topic) for topic in topics]
        self.random = Random(f"GLUE's twins {split} {seed}")
        self.side = "train" if split == "train" else "heldout"
        self.lines, self.owned = self._lines(), self._owned()

    def fits(self, texts: Texts) -> bool:
        ends = (texts[0], " ".join(texts))
        if any(self.world.split_of(end) != self.side for end in ends):
            return False
        return self.side == "train" or crc32(texts[0].encode()) % 2 == (self.split == "test")

    def roles(self) -> Roles:
        """Words of one topic: four persons a, b, c, d, of the other roles two each."""
        topic = self.random.choice(self.topics)
        people = self._two("hero", topic) + self._two("guest", topic)
        self.random.shuffle(people)
        found = dict(zip("abcd", people, strict=True))
        for name, role in ROLES.items():
            found[name], found[f"other {name}"] = self._two(role, topic)
        return found | {"things": self.plural[found["thing"]]}

    def _two(self, role: str, topic: int) -> list[str]:
        words, steps = self._choices(role, topic)
        first = second = self.random.choices(words, cum_weights=steps)[0]
        while second == first:
            second = self.random.choices(words, cum_weights=steps)[0]
        return [first, second]

    @lru_cache  # noqa: B019 (lives as long as its items are made)
    def _choices(self, role: str, topic: int) -> tuple[list[str], list[float]]:
        """The role's words in this topic, rare ones oftener than in stories (root of the prior)."""
        grammar = self.world.grammar
        prior = grammar.prior[role][topic]
        rows = prior.nonzero()[0].tolist()
        words = [" ".join(grammar.column(role, "")[row]) for row in rows]
        return words, list(accumulate(float(prior[row]) ** 0.5 for row in rows))

    @cached_property
    def plural(self) -> dict[str, str]:
        return {row["one"]: row["many"] for row in self.world.grammar.tables["things"]}

    @cached_property
    def jobs(self) -> dict[str, list[str]]:
        """The job of each hero, and after it the other jobs of his topic."""
        people = self.world.grammar.tables["people"]
        of_topic: dict[str, set[str]] = {}
        for row in people:
            of_topic.setdefault(row["topic"], set()).add(row["job"])
        return {
            row["name"]: [row["job"], *sorted(of_topic[row["topic"]] - {row["job"]})]
            for row in people
        }

    def _stories(self) -> Iterator[Story]:
        for number in count():
            yield from self.world.stories(200, self.seed * 1_000 + number, self.side)

    def _lines(self) -> Iterator[tuple[Trace, ...]]:
        """Sentences of stories."""
        for story in self._stories():
            for text, line in zip(story.sentences, story.trace, strict=True):
                if self.fits((text,)):
                    yield line

    def _owned(self) -> Iterator[tuple[str, str, str, str]]:
        """(text, what somebody owns, whose it is, whose it is not): the text ends with "his" or
        "her" thing; both persons are of this sex, and the guest was named last. Heroes and
        guests take turns."""
        times = 2 if self.split == "test" else 1  # training texts have one answer: `other_owner`
        seen: set[str] = set()
        waiting: dict[str, list[tuple[str, str, str, str]]] = {"hero": [], "guest": []}
        for story in self._stories():
            for p in story_pronouns([story]):
                if p.nearest == "guest" and p.same_sex and p.slot.endswith("his"):
                    words = story.text.split()
                    text = " ".join(words[: words.index(".", p.at) + 1])
                    names = {t.slot: t.word for t in chain(*story.trace) if t.slot in waiting}
                    other = next(role for role in waiting if role != p.role)
                    owned = (text, words[p.at + 1], names[p.role], names[other])
                    if owned[1] == "friend" or len(text.split()) > LONGEST or text in seen:
                        continue
                    seen.add(text)
                    waiting[p.role].append(owned)
            while all(waiting.values()):
                for role in waiting:
                    owned = waiting[role].pop(0)
                    yield from [owned] * times


# ---------------------------------------------------------------- one item of a label


def cola(draws: Draws, label: str) -> Texts:
    """A sentence of a story, or one that breaks one rule. Both forms of a word come as often in
    acceptable sentences as in broken ones."""
    line = next(draws.lines)
    if label == "unacceptable":
        kind = draws.random.choices(list(BROKEN), list(BROKEN.values()))[0]
        if kind == "order":
            words = [t.word for t in line]
            at = draws.random.randrange(len(words) - 2)
            words[at : at + 2] = words[at + 1], words[at]
            return (" ".join(words),)
        while not (found := _forms(draws, line, kind)):
            line = next(draws.lines)
        wanted = draws.random.choice(found)[1]
        while not (found := [f for f in _forms(draws, line, kind) if f[1] != wanted]):
            line = next(draws.lines)
        at, _, other = draws.random.choice(found)
        return (" ".join(other if n == at else t.word for n, t in enumerate(line)),)
    return (" ".join(t.word for t in line),)


def _forms(draws: Draws, line: Sequence[Trace], kind: str) -> list[tuple[int, str, str]]:
    """(place, form, the word in the other form) of each word that could break a rule."""
    tables, found = draws.world.grammar.tables, []
    for at, t in enumerate(line):
        path = t.slot.rpartition(".")[2] if "." in t.slot else ""
        if kind == "verb" and t.role in ("act1", "act2", "act3"):
            row = next(r for r in tables[f"acts{t.role[-1]}"] if r["does"] == t.entity)
            found.append((at, path, row["does" if path else "do"]))
        elif kind == "number" and t.role == "thing" and t.frame in NUMBERED:
            row = next(r for r in tables["things"] if r["one"] == t.entity)
            found.append((at, path, row["one" if path else "many"]))
        elif kind == "pronoun" and t.slot in PRONOUNS and any(o.slot == t.role for o in line):
            found.append((at, t.word, OTHER_SEX[t.word]))
    return found


def sst2(draws: Draws, label: str) -> Texts:
    """How somebody feels at last. Half the texts name a mood of the other sign before."""
    good = label == "positive"
    roles = draws.roles()
    last, before = (
        draws.random.choice(TABLES["moods"]["good" if sign else "bad"]) for sign in (good, not good)
    )
    first = "first {a} {act} the {look} {thing}"
    if draws.random.random() < 0.5:
        first += f" and is {before}"
    texts = [f"{first} .", f"finally {{a}} walks to {{site}} and is {last} ."]
    draws.random.shuffle(texts)
    return (" ".join(texts).format(**roles),)


def mrpc(draws: Draws, label: str) -> Texts:
    """Two sentences about the same event, or: persons exchanged, another event, another word."""
    kind = draws.random.choice(list(EVENTS))
    first, second = draws.random.sample(EVENTS[kind], 2)
    roles = draws.roles()
    said = first.format(**roles)
    if label == "not_equivalent":
        way = draws.random.choice(("persons", "persons", "event", "word"))
        if way == "persons":
            roles |= {"a": roles["b"], "b": roles["a"]}
        elif way == "event":
            other = draws.random.choice([k for k in EVENTS if k != kind])
            second = draws.random.choice(EVENTS[other])
        else:
            word = draws.random.choice(("look", "thing"))
            roles[word] = roles[f"other {word}"]
    return said, second.format(**roles)


def stsb(draws: Draws, label: str) -> Texts:
    """Two of the wordings, with as many facts in common as the label says. Where neither person is
    the same, both are often just exchanged."""
    first, second = draws.random.sample(DEEDS["does"], 2)
    one, names = draws.roles(), ["a", "b", "act", "look", "thing"]
    other = {"a": one["c"], "b": one["d"]} | {name: one[f"other {name}"] for name in names[2:]}
    changed = draws.random.sample(names, 5 - int(label))
    if {"a", "b"} <= set(changed) and draws.random.random() < 0.7:
        other |= {"a": one["b"], "b": one["a"]}
    said = one | {name: other[name] for name in changed}
    said["things"] = draws.plural[said["thing"]]
    return first.format(**one), second.format(**said)


def qqp(draws: Draws, label: str) -> Texts:
    """Two questions in other words."""
    kind = draws.random.choice(list(QUESTIONS))
    first, second = draws.random.sample(QUESTIONS[kind], 2)
    roles = draws.roles()
    said = first.format(**roles)
    if label == "not_duplicate":
        if draws.random.random() < 0.2:  # of another person
            roles["a"] = roles["c"]
        elif kind == "what":  # of the same two the other way round
            roles |= {"a": roles["b"], "b": roles["a"]}
        else:  # something else of the same person and thing
            others = [k for k in QUESTIONS if k not in ("what", kind)]
            second = draws.random.choice(QUESTIONS[draws.random.choice(others)])
    return said, second.format(**roles)


ABOUT = {"entailment": "a", "contradiction": "b", "neutral": "c"}  # whom a hypothesis is about


def mnli(draws: Draws, label: str, roles: Roles | None = None) -> Texts:
    """Three persons: two of whom the premise says the kind of thing that the hypothesis says of
    one, and one of whom it says something else."""
    roles = roles or draws.roles()
    kind, odd = draws.random.sample(list(STATES), 2)
    values = [roles[kind], roles[f"other {kind}"]]
    draws.random.shuffle(values)
    told = dict(zip("ab", values, strict=True))
    wordings = {p: draws.random.choice(STATES[kind if p in told else odd]) for p in "abc"}
    said = [
        text.format(**roles | {"p": roles[p]} | ({kind: told[p]} if p in told else {}))
        for p, text in wordings.items()
    ]
    draws.random.shuffle(said)
    about = ABOUT[label]
    way = draws.random.choice([w for w in STATES[kind] if w != wordings[about]])
    return " ".join(said), way.format(**roles | {"p": roles[about], kind: told["a"]})


def rte(draws: Draws, label: str) -> Texts:
    """As MNLI, but the hypothesis names the person's job too, which the premise does not; not
    entailed is what contradicts the premise, what it leaves open, and a wrong job."""
    ways = ("entailment",) if label == "entailment" else ("contradiction", "neutral", "job", "job")
    way, roles = draws.random.choice(ways), draws.roles()
    about = ABOUT.get(way, "a")
    hero = next(letter for letter in "abcd" if roles[letter] in draws.jobs)  # guests have no job
    roles |= {about: roles[hero], hero: roles[about]}
    premise, hypothesis = mnli(draws, way if way in ABOUT else "entailment", roles)
    name = roles[about]
    right, *wrong = draws.jobs[name]
    job = draws.random.choice(wrong) if way == "job" else right
    return premise, hypothesis.replace(name, f"the {job} {name}")


def qnli(draws: Draws, label: str) -> Texts:
    """A sentence says one thing of one person and another of a second."""
    roles = draws.roles()
    kinds = draws.random.sample(list(STATES), 2)
    clauses = [
        draws.random.choice(STATES[kind]).format(**roles | {"p": roles[p]}).removesuffix(" .")
        for kind, p in zip(kinds, "ab", strict=True)
    ]
    at = draws.random.randrange(2)
    about = "ab"[at if label == "entailment" else 1 - at]
    question = draws.random.choice(ASKED[kinds[at]])
    return question.format(**roles | {"p": roles[about]}), " and ".join(clauses) + " ."


def wnli(draws: Draws, label: str) -> Texts:
    """Whose it is: "the pony of …", by the pronoun of the text's last sentence."""
    text, thing, right, wrong = next(draws.owned)
    return text, f"it is the {thing} of {right if label == 'entailment' else wrong} ."


MAKERS: dict[str, Callable[[Draws, str], Texts]] = {
    "CoLA": cola, "SST-2": sst2, "MRPC": mrpc, "STS-B": stsb, "QQP": qqp, "MNLI": mnli,
    "QNLI": qnli, "RTE": rte, "WNLI": wnli,
}  # fmt: skip
FROM_STORIES = ("CoLA", "WNLI")  # their texts are stories' own, or were before one word changed


def other_owner(world: MicroWorld, item: Pair) -> Pair:
    """A WNLI item with the other person in its hypothesis, and so the other answer."""
    names = persons_named(world, item.premise)
    given = item.hypothesis.split()[-2]
    other = next(name for name in names if name != given)
    label = "entailment" if item.label == "not_entailment" else "not_entailment"
    said = item.hypothesis.replace(f"of {given} .", f"of {other} .")
    return replace(item, hypothesis=said, label=label, split="validation")


def persons_named(world: MicroWorld, text: str) -> list[str]:
    """The persons a text names, in this order."""
    tables = world.grammar.tables
    people = {row["name"] for table in ("people", "guests") for row in tables[table]}
    return [word for word in dict.fromkeys(text.split()) if word in people]
