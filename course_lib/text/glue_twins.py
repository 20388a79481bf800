"""How an item of each of GLUE's twins is made: a wording, and words of the micro-world for it.

The wordings are in data/world/english/glue.toml. Two of one kind say the same in other words, so
which words a text holds does not tell what it says. Each maker takes the label that the item shall
have, and returns its texts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, chain, count, product
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
EVENTS, QUESTIONS, ANSWERS, CLAIMS, MOODS, WHEN = (
    TABLES[name] for name in ("events", "questions", "answers", "claims", "moods", "when")
)
ROLES = {"look": "look", "thing": "thing", "site": "site", "act": "act1"}
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

    def roles(self, topic: int | None = None) -> Roles:
        """Words of one topic: a hero a, a guest b, another hero c and another guest d, of the
        other roles two each."""
        topic = self.random.choice(self.topics) if topic is None else topic
        people = self._two("hero", topic) + self._two("guest", topic)
        result = dict(zip("acbd", people, strict=True))
        for name, role in ROLES.items():
            result[name], result[f"other {name}"] = self._two(role, topic)
        return result

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
        while not (result := _forms(draws, line, kind)):
            line = next(draws.lines)
        form = draws.random.choice(result)[1]
        while not (result := [f for f in _forms(draws, line, kind) if f[1] != form]):
            line = next(draws.lines)
        at, _, other = draws.random.choice(result)
        return (" ".join(other if n == at else t.word for n, t in enumerate(line)),)
    return (" ".join(t.word for t in line),)


def _forms(draws: Draws, line: Sequence[Trace], kind: str) -> list[tuple[int, str, str]]:
    """(place, form, the word in the other form) of each word that could break a rule."""
    tables, result = draws.world.grammar.tables, []
    for at, t in enumerate(line):
        path = t.slot.rpartition(".")[2] if "." in t.slot else ""
        if kind == "verb" and t.role in ("act1", "act2", "act3"):
            row = next(r for r in tables[f"acts{t.role[-1]}"] if r["does"] == t.entity)
            result.append((at, path, row["does" if path else "do"]))
        elif kind == "number" and t.role == "thing" and t.frame in NUMBERED:
            row = next(r for r in tables["things"] if r["one"] == t.entity)
            result.append((at, path, row["one" if path else "many"]))
        elif kind == "pronoun" and t.slot in PRONOUNS and any(o.slot == t.role for o in line):
            result.append((at, t.word, OTHER_SEX[t.word]))
    return result


def sst2(draws: Draws, label: str) -> Texts:
    """How the hero feels at last, who acts in the other sentence. The guest feels the other way;
    so did half the heroes before."""
    good = label == "positive"
    early, late = (draws.random.choice(WHEN[when]) for when in ("early", "late"))
    moods = ["{a} is {last}", "{b} is {other}"]
    draws.random.shuffle(moods)
    texts = [
        f"{early} {{a}} {{act}} the {{look}} {{thing}}"
        + draws.random.choice((" .", " and is {other} .")),
        f"{late} {' and '.join(moods)} .",
    ]
    draws.random.shuffle(texts)
    mood_words = {
        n: draws.random.choice(MOODS["good" if sign else "bad"])
        for n, sign in (("last", good), ("other", not good))
    }
    return (" ".join(texts).format(**draws.roles(), **mood_words),)


def mrpc(draws: Draws, label: str) -> Texts:
    """Two sentences about the same event, or: another event, or another word."""
    kind, roles = draws.random.choice(list(EVENTS)), draws.roles()
    first, second = draws.random.sample(EVENTS[kind], 2)
    sentence = first.format(**roles)
    if label == "not_equivalent":
        way = draws.random.choice(("event", "event", "event", "event", "look", "thing"))
        if way == "event":
            kind = draws.random.choice([k for k in EVENTS if k != kind])
            second = draws.random.choice(EVENTS[kind])
        else:
            roles[way] = roles[f"other {way}"]
    return sentence, second.format(**roles)


ALIKE = {"entailment": 3, "contradiction": 1, "neutral": 0}  # points of the second claim


def stsb(draws: Draws, label: str) -> Texts:
    """Two claims about two persons. A point for the same topic, one for the same time, three for
    the same claim, or one for its contrary."""
    way, (same_topic, same_time) = draws.random.choice([
        (way, same)
        for way, points in ALIKE.items()
        for same in product((0, 1), repeat=2)
        if points + sum(same) == int(label)
    ])  # fmt: skip
    topic, elsewhere = draws.random.sample(draws.topics, 2)
    roles = draws.roles(topic)
    again = draws.roles(elsewhere)
    if same_topic:
        again = {"a": roles["c"], "thing": roles["other thing"]}
    time, other = draws.random.sample(list(WHEN), 2)
    when = draws.random.sample(WHEN[time], 2)
    if not same_time:
        when[1] = draws.random.choice(WHEN[other])
    first, second = claims(draws, way)
    return f"{when[0]} {first}".format(**roles), f"{when[1]} {second}".format(**again)


def qqp(draws: Draws, label: str) -> Texts:
    """Two questions in other words."""
    kind, roles = draws.random.choice(list(QUESTIONS)), draws.roles()
    first, second = draws.random.sample(QUESTIONS[kind], 2)
    if draws.random.random() < 0.5:
        roles |= {"a": roles["b"], "b": roles["a"], "c": roles["d"]}
    sentence = first.format(**roles)
    if label == "not_duplicate":
        if draws.random.random() < 0.2:  # of another person
            roles["a"] = roles["c"]
        elif kind == "what":  # of the same two the other way round
            roles |= {"a": roles["b"], "b": roles["a"]}
        else:  # something else of the same person and thing
            others = [k for k in QUESTIONS if k not in ("what", kind)]
            second = draws.random.choice(QUESTIONS[draws.random.choice(others)])
    return sentence, second.format(**roles)


def mnli(draws: Draws, label: str) -> Texts:
    """What the hypothesis says is what the premise says, or the contrary, or something else, of
    the same person and thing."""
    roles = draws.roles()
    first, second = claims(draws, label)
    return first.format(**roles), second.format(**roles)


def claims(draws: Draws, label: str) -> list[str]:
    """Two wordings of CLAIMS, the second of which stands so to the first."""
    types = list(CLAIMS)
    at = draws.random.randrange(len(types))
    first, second = draws.random.sample(CLAIMS[types[at]], 2)
    if label == "contradiction":
        second = draws.random.choice(CLAIMS[types[at ^ 1]])
    elif label == "neutral":
        others = [kind for n, kind in enumerate(types) if n // 2 != at // 2]
        second = draws.random.choice(CLAIMS[draws.random.choice(others)])
    return [first, second]


def rte(draws: Draws, label: str) -> Texts:
    """As MNLI, in two classes: not entailed is what contradicts and what is left open."""
    ways = ("entailment",) if label == "entailment" else ("contradiction", "neutral")
    return mnli(draws, draws.random.choice(ways))


def qnli(draws: Draws, label: str) -> Texts:
    """A question about a person and a thing, and a sentence that answers it, or tells something
    else of them. Half the sentences tell two things, the second of which may be another person's:
    then it answers nothing."""
    roles = draws.roles()
    told_kind, also, third = draws.random.sample(list(ANSWERS), 3)
    teller = draws.random.choice("aaac")
    question_kind = told_kind if label == "entailment" else also if teller == "c" else third
    clauses = [(told_kind, "a"), (also, teller)][
        : 2 if teller == "c" else draws.random.choice((1, 2))
    ]
    draws.random.shuffle(clauses)
    texts = [draws.random.choice(ANSWERS[k]).format(**roles | {"a": roles[p]}) for k, p in clauses]
    return draws.random.choice(QUESTIONS[question_kind]).format(**roles), f"{' and '.join(texts)} ."


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
    owner = item.hypothesis.split()[-2]
    other = next(name for name in names if name != owner)
    label = "entailment" if item.label == "not_entailment" else "not_entailment"
    hypothesis = item.hypothesis.replace(f"of {owner} .", f"of {other} .")
    return replace(item, hypothesis=hypothesis, label=label, split="validation")


def persons_named(world: MicroWorld, text: str) -> list[str]:
    """The persons a text names, in this order."""
    tables = world.grammar.tables
    people = {row["name"] for table in ("people", "guests") for row in tables[table]}
    return [word for word in dict.fromkeys(text.split()) if word in people]
