"""What can be reached on GLUE's twins: by the oracle, which knows the rules, and by baselines that
see the classes' frequencies, lengths, one text of two, or a bag of words.

`python -m course_lib.teaching.glue` prints the table. The oracle reads an item's texts alone and
finds its label: every twin can be answered without a mistake, so its score is 1, exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from course_lib.text.english import LabelledText, Pair
from course_lib.text.glue import GLUE, Item, glue_items, task_named
from course_lib.text.glue_twins import (
    ALIKE,
    ANSWERS,
    CLAIMS,
    EVENTS,
    MOODS,
    QUESTIONS,
    WHEN,
    Roles,
    persons_named,
)
from course_lib.text.oracle import Oracle
from course_lib.text.world import MicroWorld
from course_lib.train.baselines import predicted_labels
from course_lib.train.glue import glue_score

Wordings = Mapping[str, Sequence[str]]
ORACLE, BASELINES = "oracle", ("nothing", "length", "hypothesis", "words")


def oracle_score(name: str, items: Sequence[Item], world: MicroWorld) -> dict[str, float]:
    """What the world's rules reach on a twin's items: see `answer`."""
    oracle = Oracle(world)
    predictions = [answer(name, item, oracle) for item in items]
    return glue_score(name, predictions, [item.label for item in items])


def baseline_score(
    name: str, train: Sequence[Item], test: Sequence[Item], sees: str
) -> dict[str, float]:
    """The score of a classifier that learns from `train` and sees what `predicted_labels`
    lets it see; for STS-B a regression on the same."""
    predictions = predicted_labels(train, test, sees, numbers=not task_named(name).names)
    return glue_score(name, predictions, [item.label for item in test])


def rows(name: str, seed: int = 0) -> dict[str, dict[str, float]]:
    """{who: metrics} on a twin's test items (MNLI's: the matched ones)."""
    train, test = (glue_items(name, split, seed=seed) for split in ("train", "test"))
    world = MicroWorld.load()
    seen = [b for b in BASELINES if b != "hypothesis" or isinstance(test[0], Pair)]
    return {ORACLE: oracle_score(name, test, world)} | {
        sees: baseline_score(name, train, test, sees) for sees in seen
    }


def main() -> None:
    """Print who reaches what on the nine twins."""
    for name, task in GLUE.items():
        print(f"{name:6} {task.asks}  train, validation, test: {task.sizes}")
        for who, scores in rows(name).items():
            line = "  ".join(f"{metric} {score:7.1%}" for metric, score in scores.items())
            print(f"       {who:11} {line}")


# ---------------------------------------------------------------- the oracle


def answer(name: str, item: LabelledText | Pair, oracle: Oracle) -> str:
    """The label that the world's rules give to an item of a twin, from its texts alone."""
    if isinstance(item, LabelledText):
        if name == "CoLA":
            acceptable = oracle.reads(item.text.split())
            return "acceptable" if acceptable else "unacceptable"
        (hero,), (last,) = (
            re.findall(rf"(?:{'|'.join(WHEN[when])}) ([^.]*)", item.text)
            for when in ("early", "late")
        )
        mood = last.split(f"{hero.split()[0]} is ")[1].split()[0]
        return "positive" if mood in MOODS["good"] else "negative"
    return _RELATIONS[name](item.premise, item.hypothesis, oracle.world)


def _same(wordings: Wordings, no: str, yes: str) -> Callable[[str, str, MicroWorld], str]:
    return lambda a, b, world: yes if read(a, wordings) == read(b, wordings) else no


def _shared(first: str, second: str, world: MicroWorld) -> str:
    """A point for the same topic, one for the same time, and those of `ALIKE`."""
    topics = {row["name"]: row["topic"] for row in world.grammar.tables["people"]}
    facts, statements = [], []
    for text in (first, second):
        when, word = next((k, w) for k, ws in WHEN.items() for w in ws if text.startswith(f"{w} "))
        statements.append(text.removeprefix(f"{word} "))
        _, roles = read(statements[-1], CLAIMS) or ("", {})
        facts.append({topics[roles["a"]], when})
    return str(len(facts[0] & facts[1]) + ALIKE[_relation(statements[0], statements[1], world)])


def _relation(premise: str, hypothesis: str, world: MicroWorld) -> str:
    """A kind of claim and its contrary are neighbours in the table."""
    first, second = (
        list(CLAIMS).index((read(t, CLAIMS) or ("",))[0]) for t in (premise, hypothesis)
    )
    if first == second:
        return "entailment"
    return "contradiction" if first == second ^ 1 else "neutral"


def _follows(premise: str, hypothesis: str, world: MicroWorld) -> str:
    relation = _relation(premise, hypothesis, world)
    return "entailment" if relation == "entailment" else "not_entailment"


def _answers(question: str, sentence: str, world: MicroWorld) -> str:
    question_kind, roles = read(question, QUESTIONS) or ("", {})
    texts = sentence.removesuffix(" .").split(" and ")
    answers = [read(text, ANSWERS) or ("", {}) for text in texts]
    answered = any(kind == question_kind and roles.items() <= its.items() for kind, its in answers)
    return "entailment" if answered else "not_entailment"


def _owner(premise: str, hypothesis: str, world: MicroWorld) -> str:
    """What is a guest's own is an animal; everything else is the hero's, who is named first."""
    words = hypothesis.split()
    animals = {row["animal"] for row in world.grammar.tables["guests"]}
    hero, guest = persons_named(world, premise)[:2]
    right = guest if words[3] in animals else hero
    return "entailment" if words[-2] == right else "not_entailment"


_RELATIONS: dict[str, Callable[[str, str, MicroWorld], str]] = {
    "MRPC": _same(EVENTS, "not_equivalent", "equivalent"),
    "QQP": _same(QUESTIONS, "not_duplicate", "duplicate"),
    "STS-B": _shared,
    "MNLI": _relation,
    "RTE": _follows,
    "QNLI": _answers,
    "WNLI": _owner,
}


def read(text: str, wordings: Wordings) -> tuple[str, Roles] | None:
    """The kind of a text, and the words of its roles; None if it is none of the wordings."""
    for kind, patterns in _patterns(tuple((k, tuple(w)) for k, w in wordings.items())):
        for pattern in patterns:
            if match := pattern.fullmatch(text):
                return kind, match.groupdict()
    return None


@lru_cache
def _patterns(
    wordings: tuple[tuple[str, tuple[str, ...]], ...],
) -> list[tuple[str, list[re.Pattern[str]]]]:
    def pattern(wording: str) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", wording)  # names of sites have several words
        held = [
            (rf"(?P<{p}>[a-z ]+)" if p == "site" else rf"(?P<{p}>\w+)") if n % 2 else re.escape(p)
            for n, p in enumerate(parts)
        ]
        return re.compile("".join(held))

    return [(kind, [pattern(w) for w in of_kind]) for kind, of_kind in wordings]


if __name__ == "__main__":
    main()
