"""Lecture 11's tasks with real labels, which the domains' own structure gives.

Chapters: which of 21 chapters of ICD-10-CM a diagnosis is filed under. Added words: which words of
a diagnosis say more than the diagnosis above it, a span to be tagged. Licences: which category a
licence is in, by its first words. All are split by family, so nothing nearly alike stands on both
sides. Finance: whether a sentence is good news, on sentences written for this course."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from course_lib.text.documentation import split_sentences
from course_lib.text.domains import Diagnosis, diagnoses, domain
from course_lib.text.english import FINANCE_SENTIMENTS, LabelledText, TaggedSentence, finance
from course_lib.text.features import Tokenizer, tagged_sequences, text_sequences
from course_lib.train.finetuning import Task

TAGS = ("O", "B-ADDED", "I-ADDED")
FEWEST = 20  # held-out texts of a class that a task has
LICENCE_WORDS = 60  # of a licence are read
LENGTH = {"chapters": 32, "added words": 32, "licences": 96, "finance": 48, "word order": 48}


class Texts(NamedTuple):
    """Labelled texts to learn from and to be tested on; the classes' names, or the tags."""

    train: list[Any]
    test: list[Any]
    names: tuple[str, ...]


@lru_cache(maxsize=16)
def chapters(each: int = 20, tested: int = 20, seed: int = 0) -> Texts:
    """`each` diagnoses of every chapter, drawn by the seed, and as many to test as `tested`. The
    last chapter, of codes for special purposes, has three held-out diagnoses and is left out."""
    return _classes([(d.text, d.chapter, d.split) for d in diagnoses()], each, tested, seed)


@lru_cache(maxsize=16)
def natural_chapters(examples: int = 600, tested: int = 20, seed: int = 0) -> Texts:
    """`examples` diagnoses as they come, so that some chapters have many and some hardly any; at
    least one of each. Tested on the same texts as `chapters`."""
    balanced, draw = chapters(1, tested, seed), random.Random(seed)
    rest = [
        LabelledText(f"chapters-{n}", d.text, d.chapter, "train")
        for n, d in enumerate(diagnoses())
        if d.split == "train" and d.chapter in balanced.names
    ]
    train = balanced.train + draw.sample(rest, examples - len(balanced.train))
    return Texts(train, balanced.test, balanced.names)


@lru_cache(maxsize=16)
def licences(each: int = 30, tested: int = 20, seed: int = 0) -> Texts:
    """`each` licences of every category that has FEWEST held out, by their first words."""
    rows = []
    for document in domain("law").documents:
        words = " ".join(document.paragraphs).split()[:LICENCE_WORDS]
        rows.append((" ".join(words), document.label, document.split))
    return _classes(rows, each, tested, seed)


def _classes(rows: Sequence[tuple[str, str, str]], each: int, tested: int, seed: int) -> Texts:
    by_label: defaultdict[str, dict[str, list[str]]] = defaultdict(
        lambda: {"train": [], "heldout": []}
    )
    for text, label, split in rows:
        by_label[label][split].append(text)
    names = tuple(label for label, of in by_label.items() if len(of["heldout"]) >= FEWEST)
    sides: dict[str, list[LabelledText]] = {"train": [], "heldout": []}
    for label in names:
        for split, count, part_seed in (("train", each, seed), ("heldout", tested, 0)):
            there = by_label[label][split]
            chosen = random.Random(part_seed).sample(there, min(count, len(there)))
            sides[split] += [LabelledText(f"{split}-{n}", t, label, split)
                             for n, t in enumerate(chosen)]  # fmt: skip
    return Texts(sides["train"], sides["heldout"], names)


@lru_cache(maxsize=16)
def added_words(examples: int = 400, tested: int = 300, seed: int = 0) -> Texts:
    """Diagnoses with the words tagged that they add to the one above; one in three adds none. The
    word before the added ones tells nothing: what is above is not shown."""
    sides = {}
    for split, count, part_seed in (("train", examples, seed), ("heldout", tested, 0)):
        there = [d for d in diagnoses() if d.split == split and len(d.words) > 1]
        draw = random.Random(part_seed)
        plain = draw.sample([d for d in there if d.added_from is None], count // 3)
        more = draw.sample([d for d in there if d.added_from is not None], count - count // 3)
        sides[split] = [_tagged(one, split) for one in draw.sample(plain + more, count)]
    return Texts(sides["train"], sides["heldout"], TAGS)


def _tagged(diagnosis: Diagnosis, split: str) -> TaggedSentence:
    words, start = diagnosis.words, diagnosis.added_from
    tags = ["O"] * len(words)
    if start is not None:
        tags[start:] = ["B-ADDED"] + ["I-ADDED"] * (len(words) - start - 1)
    return TaggedSentence(
        f"added-{diagnosis.text}", diagnosis.text, words, ("X",) * len(words), tuple(tags), split
    )


def cut_by_rule(sentence: TaggedSentence) -> list[str]:
    """The tags of a rule: what is added begins behind the first comma, or else with the first of
    "with", "without", "due", "in" and "by" that is not the first word."""
    words = sentence.words
    commas = [n + 1 for n, word in enumerate(words[:-1]) if word.endswith(",")]
    prepositions = [
        n for n, word in enumerate(words) if n and word in ("with", "without", "due", "in", "by")
    ]
    tags = ["O"] * len(words)
    if starts := commas or prepositions:
        tags[starts[0] :] = ["B-ADDED"] + ["I-ADDED"] * (len(words) - starts[0] - 1)
    return tags


MOST_TITLES = 500  # labelled titles of `word_order`, at most


def title_texts(seed: int = 0, split: str = "train", count: int = MOST_TITLES) -> list[str]:
    """Diagnoses of five to fourteen words, none of them twice, drawn by the seed."""
    there = [d for d in diagnoses() if d.split == split and 5 <= len(d.words) <= 14]
    texts = [d.text for d in there if len({w.lower() for w in d.words}) == len(d.words)]
    return random.Random(seed).sample(texts, count)


@lru_cache(maxsize=16)
def word_order(examples: int = MOST_TITLES, tested: int = 400, seed: int = 0) -> Texts:
    """Is a diagnosis as it was written, or have two neighbouring words changed places? Each title
    comes once, half of them changed, so which words it has says nothing of the answer."""
    sides = {}
    for split, count, drawn, part_seed in (
        ("train", examples, MOST_TITLES, seed), ("heldout", tested, tested, 0),
    ):  # fmt: skip
        titles = title_texts(part_seed, split, drawn)[:count]
        draw = random.Random(part_seed)
        sides[split] = [
            LabelledText(f"order-{split}-{n}", _exchanged(t, draw) if n % 2 else t,
                         ("as written", "exchanged")[n % 2], split)
            for n, t in enumerate(titles)
        ]  # fmt: skip
    return Texts(sides["train"], sides["heldout"], ("as written", "exchanged"))


def _exchanged(text: str, draw: random.Random) -> str:
    """A text with two neighbouring words in each other's place."""
    words = text.split()
    at = draw.randrange(len(words) - 1)
    words[at : at + 2] = words[at + 1], words[at]
    return " ".join(words)


def finance_news() -> Texts:
    """The finance sentences written for this course."""
    return Texts(list(finance("train")), list(finance("test")), FINANCE_SENTIMENTS)


TASKS = {
    "chapters": chapters, "added words": added_words, "licences": licences,
    "natural chapters": natural_chapters, "word order": word_order,
}  # fmt: skip


def as_task(texts: Texts, side: str, tokenizer: Tokenizer, length: int) -> Task:
    """One side of a task's texts as sequences. side: "train" or "test"."""
    items = getattr(texts, side)
    if isinstance(items[0], TaggedSentence):
        return tagged_sequences(items, "entities", tokenizer, length, names=texts.names)
    labels = [item.label for item in items]
    return text_sequences([item.text for item in items], labels, texts.names, tokenizer, length)


def short_sentences(name: str, most: int = 14, count: int = 400) -> list[str]:
    """Held-out sentences of a domain, or of "general" documentation, of five to `most` words and at
    most 120 characters (no addresses, no rules of dashes): no vocabulary must cut them."""
    from course_lib.text.documentation import documentation_slice

    read = (
        documentation_slice(2_000, "heldout")
        if name == "general"
        else domain(name).corpus("heldout")
    )
    lines = [
        s
        for p in read.paragraphs
        for s in split_sentences(p)
        if 5 <= len(s.split()) <= most and len(s) <= 120
    ]
    return random.Random(0).sample(lines, min(count, len(lines)))
