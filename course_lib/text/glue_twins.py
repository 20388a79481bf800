"""What the nine twins of GLUE are made of: wordings, words drawn for them, and a reader.

A *wording* is a text with {roles}. Two wordings of one kind say the same of the same persons and
things, and most turn the order of the persons round: which words a text holds does not tell what it
says. `answer` reads an item's texts alone and gives its label, by the world's rules: the oracle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import accumulate, chain, count
from random import Random
from zlib import crc32

from .english import LabelledText, Pair
from .oracle import Oracle
from .tasks import PRONOUNS, story_pronouns
from .world import MicroWorld, Trace

Wordings = Mapping[str, Sequence[str]]
Texts = tuple[str, ...]  # of one item: one text, or two
Roles = dict[str, str]

GOOD = ("happy", "proud", "calm", "cheerful", "glad")
BAD = ("sad", "tired", "angry", "hungry", "sleepy", "nervous", "bored")

EVENTS: Wordings = {
    "gives": (
        "{a} gives the {look} {thing} to {b} .",
        "{b} thanks {a} for the {look} {thing} .",
        "the {look} {thing} comes from {a} to {b} .",
    ),
    "shows": (
        "{a} shows {b} the {look} {thing} .",
        "{b} sees the {look} {thing} of {a} .",
        "{a} has one {look} {thing} for {b} to see .",
    ),
    "asks": (
        "{b} asks {a} about the {look} {thing} .",
        "{a} talks to {b} about the {look} {thing} .",
    ),
    "helps": (
        "{b} comes to {a} and helps with the {look} {thing} .",
        "{a} has the {look} {thing} and {b} helps with it .",
    ),
}
DEEDS: Wordings = {
    "does": (
        "{a} {act} the {look} {thing} while {b} watches .",
        "{b} watches how {a} {act} one of the {look} {things} .",
        "there {b} has to wait while {a} {act} the {look} {thing} .",
        "{a} {act} one of the {look} {things} and {b} sees it .",
    )
}
# A question breaks off before its answer: the world has no question words but "how".
QUESTIONS: Wordings = {
    "what": ("{a} gives to {b} the", "{b} thanks {a} for the", "from {a} then {b} takes the"),
    "to whom": (
        "{a} gives the {thing} to",
        "the {thing} of {a} is for",
        "{a} brings the {thing} for",
    ),
    "from whom": (
        "{a} has the {thing} from",
        "the {thing} comes to {a} from",
        "{a} takes the {thing} from",
    ),
    "how": ("how is the {thing} of {a}", "{a} has the {thing} and it is"),
    "where": ("{a} takes the {thing} to", "the {thing} {a} has is at"),
}
# What may be said of a person {p}: one value of each kind.
STATES: Wordings = {
    "mood": ("{p} is {mood} .", "so {p} is {mood} .", "finally {p} is very {mood} ."),
    "look": ("{p} has one {look} {thing} .", "the {thing} of {p} is {look} ."),
    "site": ("{p} walks to {site} .", "{p} is near {site} .", "{p} comes home from {site} ."),
}
ASKED: Wordings = {
    "mood": ("how is {p}", "so {p} is"),
    "look": ("how is the {thing} of {p}", "{p} has the {thing} and it is"),
    "site": ("{p} is near", "{p} walks to"),
}
ROLES = {"look": "look", "thing": "thing", "mood": "mood", "site": "site", "act": "act1"}
OTHER_SEX = {"he": "she", "she": "he", "his": "her", "her": "his"}
LONGEST = 52  # words of a story: with a hypothesis they fit into 64 positions
NUMBERED = ("open.has", "open.finds", "open.needs", "first.all", "then.one")
BROKEN = {"order": 3, "verb": 3, "number": 2, "pronoun": 2}  # what is wrong, and how often


def read(text: str, wordings: Wordings) -> tuple[str, Roles] | None:
    """The kind of a text, and the words of its roles; None if it is none of the wordings."""
    for kind, patterns in _patterns(tuple((k, tuple(w)) for k, w in wordings.items())):
        for pattern in patterns:
            if match := pattern.fullmatch(text):
                return kind, match.groupdict()
    return None


@lru_cache
def _patterns(wordings: tuple[tuple[str, Texts], ...]) -> list[tuple[str, list[re.Pattern[str]]]]:
    def pattern(wording: str) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", wording)  # names of sites have several words
        held = [
            (rf"(?P<{p}>[a-z ]+)" if p == "site" else rf"(?P<{p}>\w+)") if n % 2 else re.escape(p)
            for n, p in enumerate(parts)
        ]
        return re.compile("".join(held))

    return [(kind, [pattern(w) for w in of_kind]) for kind, of_kind in wordings]


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

    def _stories(self) -> Iterator:
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


def _two(draws: Draws, wordings: Sequence[str]) -> list[str]:
    return draws.random.sample(list(wordings), 2)


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
    last, before = (draws.random.choice(GOOD if sign else BAD) for sign in (good, not good))
    first = "first {a} {act} the {look} {thing}"
    if draws.random.random() < 0.5:
        first += f" and is {before}"
    texts = [f"{first} .", f"finally {{a}} walks to {{site}} and is {last} ."]
    draws.random.shuffle(texts)
    return (" ".join(texts).format(**roles),)


def mrpc(draws: Draws, label: str) -> Texts:
    kind = draws.random.choice(list(EVENTS))
    first, second = _two(draws, EVENTS[kind])
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
    first, second = _two(draws, DEEDS["does"])
    one, names = draws.roles(), ["a", "b", "act", "look", "thing"]
    other = {"a": one["c"], "b": one["d"]} | {name: one[f"other {name}"] for name in names[2:]}
    changed = draws.random.sample(names, 5 - int(label))
    if {"a", "b"} <= set(changed) and draws.random.random() < 0.7:
        other |= {"a": one["b"], "b": one["a"]}
    said = one | {name: other[name] for name in changed}
    said["things"] = draws.plural[said["thing"]]
    return first.format(**one), second.format(**said)


def qqp(draws: Draws, label: str) -> Texts:
    kind = draws.random.choice(list(QUESTIONS))
    first, second = _two(draws, QUESTIONS[kind])
    roles = draws.roles()
    said = first.format(**roles)
    if label == "not_duplicate":
        way = draws.random.random()
        if kind == "what" and way < 0.8:
            roles |= {"a": roles["b"], "b": roles["a"]}
        elif kind != "what" and way < 0.8:
            others = [k for k in QUESTIONS if k not in ("what", kind)]
            second = draws.random.choice(QUESTIONS[draws.random.choice(others)])
        else:
            roles["a"] = roles["c"]
    return said, second.format(**roles)


def mnli(draws: Draws, label: str) -> Texts:
    """Three persons: two of whom the premise says the kind of thing that the hypothesis says of
    one, and one of whom it says something else."""
    roles = draws.roles()
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
    about = {"entailment": "a", "contradiction": "b", "neutral": "c"}[label]
    way = draws.random.choice([w for w in STATES[kind] if w != wordings[about]])
    return " ".join(said), way.format(**roles | {"p": roles[about], kind: told["a"]})


def rte(draws: Draws, label: str) -> Texts:
    """As MNLI, contradiction and neutral being one class."""
    others = ("contradiction", "neutral")
    return mnli(draws, label if label == "entailment" else draws.random.choice(others))


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
    names = _named(world, item.premise)
    given = item.hypothesis.split()[-2]
    other = next(name for name in names if name != given)
    label = "entailment" if item.label == "not_entailment" else "not_entailment"
    said = item.hypothesis.replace(f"of {given} .", f"of {other} .")
    return replace(item, hypothesis=said, label=label, split="validation")


def _named(world: MicroWorld, text: str) -> list[str]:
    """The persons a text names, in this order."""
    tables = world.grammar.tables
    people = {row["name"] for table in ("people", "guests") for row in tables[table]}
    return [word for word in dict.fromkeys(text.split()) if word in people]


# ---------------------------------------------------------------- the oracle


def answer(name: str, item: LabelledText | Pair, oracle: Oracle) -> str:
    """The label that the world's rules give to an item of a twin, from its texts alone."""
    if isinstance(item, LabelledText):
        if name == "CoLA":
            said = oracle.reads(item.text.split())
            return "acceptable" if said else "unacceptable"
        last = item.text.split(" finally ")[-1] if " finally " in item.text else item.text
        mood = last.split(" and is ")[1].split()[0]
        return "positive" if mood in GOOD else "negative"
    return _RELATIONS[name](item.premise, item.hypothesis, oracle.world)


def _same(wordings: Wordings, no: str, yes: str) -> Callable[[str, str, MicroWorld], str]:
    return lambda a, b, world: yes if read(a, wordings) == read(b, wordings) else no


def _shared(first: str, second: str, world: MicroWorld) -> str:
    one = {row["many"]: row["one"] for row in world.grammar.tables["things"]}
    facts = []
    for text in (first, second):
        _, roles = read(text, DEEDS) or ("", {})
        facts.append({
            (role.removesuffix("s"), one[word] if role == "things" else word)
            for role, word in roles.items()
        })  # fmt: skip
    return str(len(facts[0] & facts[1]))


def _relation(premise: str, hypothesis: str, world: MicroWorld) -> str:
    told = [read(f"{text} .", STATES) for text in premise.removesuffix(" .").split(" . ")]
    kind, said = read(hypothesis, STATES) or ("", {})
    about = [roles for k, roles in filter(None, told) if (k, roles["p"]) == (kind, said["p"])]
    if not about:
        return "neutral"
    return "entailment" if said in about else "contradiction"


def _answers(question: str, sentence: str, world: MicroWorld) -> str:
    told = [read(f"{text} .", STATES) for text in sentence.removesuffix(" .").split(" and ")]
    kind, roles = read(question, ASKED) or ("", {})
    found = any((k, r["p"]) == (kind, roles["p"]) for k, r in filter(None, told))
    return "entailment" if found else "not_entailment"


def _owner(premise: str, hypothesis: str, world: MicroWorld) -> str:
    """What is a guest's own is an animal; everything else is the hero's, who is named first."""
    words = hypothesis.split()
    animals = {row["animal"] for row in world.grammar.tables["guests"]}
    hero, guest = _named(world, premise)[:2]
    right = guest if words[3] in animals else hero
    return "entailment" if words[-2] == right else "not_entailment"


_RELATIONS: dict[str, Callable[[str, str, MicroWorld], str]] = {
    "MRPC": _same(EVENTS, "not_equivalent", "equivalent"),
    "QQP": _same(QUESTIONS, "not_duplicate", "duplicate"),
    "STS-B": _shared,
    "MNLI": _relation,
    "RTE": lambda a, b, world: _two_classes(_relation(a, b, world)),
    "QNLI": _answers,
    "WNLI": _owner,
}


def _two_classes(relation: str) -> str:
    return relation if relation == "entailment" else "not_entailment"
