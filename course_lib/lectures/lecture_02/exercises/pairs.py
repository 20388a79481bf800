"""Exercise 02.5: sentence pairs with labels nobody had to write."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from course_lib.teaching.exercises.drawing import from_generator
from course_lib.teaching.exercises.form import (
    Answer,
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Exact, Items, Number, Wrong

Pair = tuple[str, str, int]


def pairs(documents: Sequence[Sequence[str]], rng: random.Random) -> list[Pair]:
    """One (a, b, label) for each sentence that has a next one; label 0 IsNext, 1 NotNext."""
    made = []
    for index, document in enumerate(documents):
        others = [other for i, other in enumerate(documents) if i != index]
        for a, following in pairwise(document):
            if rng.random() < 0.5:
                made.append((a, following, 0))
            else:
                made.append((a, rng.choice(rng.choice(others)), 1))
    return made


def case(draw: Draw, count: int, longest: int, shortest: int = 2) -> Case:
    documents = [
        [f"sentence {s + 1} of document {d + 1}" for s in range(draw.integer(shortest, longest))]
        for d in range(count)
    ]
    return documents, random.Random(draw.integer(0, 2**31))


a_few, long_ones = each(case, (9, 9), (12, 9), (15, 9)), each(case, (5, 60, 40), (8, 60, 40))
many = each(case, (60, 60, 40))
MADE = Items("pairs", of="(a, b, label)")


def made_by(function: Answer, documents: list[list[str]], rng: random.Random) -> list[Pair]:
    """What the function returns, if it is a list of triples of sentences and a label."""
    made = MADE.read(function(documents, rng), [])
    known = {sentence for document in documents for sentence in document}
    for x in made:
        triple = isinstance(x, (list, tuple)) and len(x) == 3 and x[2] in (0, 1)
        if not triple or not all(isinstance(s, str) and s in known for s in x[:2]):
            raise Wrong(f"One of your pairs is {x!r}; expected (a, b, label), a and b sentences of "
                        "the documents, label 0 or 1.")  # fmt: skip
    return [(a, b, int(label)) for a, b, label in made]


def place(sentence: str) -> tuple[int, int]:
    """The number of the document, and of the sentence in it."""
    words = sentence.split()
    return int(words[4]), int(words[1])


def relation(documents: list[list[str]], a: str, b: str) -> str:
    (home, i), (other, j) = place(a), place(b)
    if home == other:
        near = {1: "right after a", 0: "b is a itself", -1: "right before a"}
        return near.get(j - i, "elsewhere in a's document")
    crossing = i == len(documents[home - 1]) and (other, j) == (home + 1, 1)
    return "the next document's beginning" if crossing else "another document"


def after_zero(function: Answer, documents: list[list[str]], rng: random.Random) -> list[str]:
    made = made_by(function, documents, rng)
    return sorted({relation(documents, a, b) for a, b, label in made if label == 0})


def after_one(function: Answer, documents: list[list[str]], rng: random.Random) -> list[str]:
    made = made_by(function, documents, rng)
    own = {place(a)[0] == place(b)[0] for a, b, label in made if label == 1}
    return sorted({True: "a's own document", False: "another document"}[x] for x in own)


def first_halves(function: Answer, documents: list[list[str]], rng: random.Random) -> Any:
    firsts = [a for a, _, _ in made_by(function, documents, rng)]
    in_order = firsts == sorted(firsts, key=place)
    return firsts, "that of the documents" if in_order else "another"


def labels(function: Answer, documents: list[list[str]], rng: random.Random) -> Any:
    """The fraction of NotNext, of neighbours with the same label, of labels that stay with another
    rng."""
    made, again = (made_by(function, documents, random.Random(rng.random())) for _ in range(2))
    same = sum(x[2] == y[2] for x, y in pairwise(made)) / max(1, len(made) - 1)
    kept = sum(x[2] == y[2] for x, y in zip(made, again, strict=False)) / max(1, len(made))
    return sum(x[2] for x in made) / max(1, len(made)), same, kept


def random_halves(function: Answer, documents: list[list[str]], rng: random.Random) -> Any:
    """Where the b of NotNext come from, each as a number from 0 to 1."""
    made = [x for x in made_by(function, documents, rng) if x[2]]
    size, here = len(documents) - 1, [(place(a)[0], *place(b)) for a, b, _ in made]
    turn = [((d - home) % (size + 1) - 1) / (size - 1) for home, d, _ in here]
    rank = [(d - 1 - (d > home)) / (size - 1) for home, d, _ in here]  # among the others
    depth = [(s - 1) / (len(documents[d - 1]) - 1) for _, d, s in here]
    often = max(Counter(turn).values(), default=0) / max(1, len(turn))
    neighbours = [(x[1:], y[1:]) for x, y in pairwise(here) if x[0] == y[0]]
    same, near = [x == y for x, y in neighbours], [x[0] == y[0] for x, y in neighbours]
    both = torch.tensor([rank, depth])
    tied = float(torch.corrcoef(both)[0, 1].nan_to_num()) if len(made) > 1 else 0.0
    means = [sum(x) / max(1, len(x)) for x in (same, near, rank, depth)]
    return means[0], means[1], often, means[2], means[3], tied


# About 3,000 pairs, 1,500 of them NotNext: the standard deviation of the difference of two such
# fractions or means is at most 0.013, of two correlations 0.04.
LABELS = (
    Number("fraction of NotNext pairs", tol=0.08),
    Number("fraction of neighbouring pairs with the same label", tol=0.08),
    Number("fraction of pairs that have the same label with another rng", tol=0.08),
)
HALVES = (
    Number("fraction of neighbouring random b that are the same sentence", tol=0.12),
    Number("fraction of neighbouring random b from the same document", tol=0.12),
    Number("fraction of random b from the most frequent document, counted from a's", tol=0.12),
    Number("mean place of b's document among the others (0 the first, 1 the last)", tol=0.12),
    Number("mean place of b in its document (0 the first sentence, 1 the last)", tol=0.1),
    Number("correlation of b's document and of its place in it", tol=0.2),
)
DRAWN = "if rng.random() < 0.5:"
OTHER = "(a, rng.choice(rng.choice(others)), 1)"
PAIRWISE = "        for a, following in pairwise(document):"

PAIRS = Exercise(
    **written("02.5"),
    solution=pairs,
    returns=MADE,
    see="course_lib.objectives.next_sentence.pairs_of_document (a, b: runs of sentences)",
    stages=(
        Stage("label 0 means that b follows a", a_few, after_zero,
              Items("places of b where the label is 0", of="places", ordered=False)),
        Stage("one pair for each sentence that has a next one", a_few, first_halves,
              (Items("sentences a", of="sentences", ordered=False), Exact("order of the pairs"))),
        Stage("label 1: b comes from another document", long_ones, after_one,
              Items("places of b where the label is 1", of="places", ordered=False)),
        Stage("half are NotNext, and each is drawn", many, labels, LABELS),
        Stage("every random b is drawn", many, random_halves, HALVES),
        from_generator(a_few, "rng"),
    ),
    mistakes=(
        Edit("following, 0)", "following, 1)", "The labels are exchanged: BERT's code says 0 for "
             "IsNext and 1 for NotNext. (Natural or not: weights trained elsewhere expect it.)",
             more=((OTHER, "(a, rng.choice(rng.choice(others)), 0)"),)),
        Edit("following, 0)", "a, 0)",
             "In IsNext pairs b is a itself; it must be the sentence after it."),
        Edit("(a, following, 0)", "(following, a, 0)",
             "In IsNext pairs b comes *before* a in the text; it must follow it."),
        Edit(OTHER, "(a, rng.choice(rng.choice(others)), 0)",
             "Every pair has the label 0; a random b is NotNext, label 1."),
        Edit(PAIRWISE, "        after = documents[index + 1][:1] if index + 1 < len(documents) "
             "else []\n        for a, following in pairwise([*document, *after]):",
             "The last sentence of a document is paired with the first of the next as if it "
             "followed. A last sentence has no next one, and gives no pair."),
        Edit("pairwise(document)", "zip(document[::2], document[1::2], strict=False)",
             "Each sentence is in one pair only (first and second, third and fourth). Every "
             "sentence that has a next one is an a: first and second, second and third."),
        Edit("return made", "rng.shuffle(made); return made",
             "All pairs are there, but not in the order of the documents."),
        Edit(DRAWN, "if True:",
             "All pairs are labelled IsNext; half of them should be NotNext, at random."),
        Edit(DRAWN, "if False:",
             "All pairs are labelled NotNext; half of them should be IsNext, at random."),
        Edit("documents) if i != index]", "documents)]",
             "Some NotNext pairs take b from a's own document. It may even be the next sentence, "
             "labelled as if it were not. Leave that document out."),
        Edit(OTHER, "(a, rng.choice(document), 1)",
             "Every random b comes from a's own document; take it from another one."),
        Edit(DRAWN, "if len(made) % 2:", "The labels are not drawn: they alternate. A model could "
             "learn the pattern instead of reading: draw each label."),
        Edit(PAIRWISE, "        label = rng.random()\n" + PAIRWISE, "One draw decides for a whole "
             "document: draw the label of each pair.",
             more=(("rng.random() < 0.5", "label < 0.5"),)),
        Edit("made = []", "made = []; label = rng.random()", "One draw decides for all pairs: draw "
             "the label of each.", more=(("rng.random() < 0.5", "label < 0.5"),)),
        Edit("< 0.5", "< 0.25", "Three quarters are NotNext: half of the IsNext pairs are replaced "
             "once more, or the random b is drawn twice."),
        Edit("< 0.5", "< 0.75", "Three quarters are IsNext; expected half."),
        Edit(OTHER, "(a, rng.choice(documents[(index + 1) % len(documents)]), 1)",
             "Every random b comes from the neighbouring document; draw it from all others."),
        Edit(OTHER, "(a, rng.choice(others)[0], 1)",
             "Every random b is the first sentence of its document; draw which."),
        Edit(OTHER, "(a, rng.choice(others)[-1], 1)",
             "Every random b is the last sentence of its document; draw which."),
        Edit(PAIRWISE, "        one = rng.choice(others)\n" + PAIRWISE,
             "One other document serves all pairs of a document: draw it for each pair.",
             more=((OTHER, "(a, rng.choice(one), 1)"),)),
        Edit(PAIRWISE, "        one = rng.choice(rng.choice(others))\n" + PAIRWISE,
             "One random sentence serves as b for all pairs of a document: draw it for each pair.",
             more=((OTHER, "(a, one, 1)"),)),
        Edit(OTHER, "(a, [d[int(u * len(d))] for d in [others[int(u * len(others))]]][0], 1)",
             "One random number decides between label, document and sentence: only some documents "
             "and sentences can come. Draw a new one for each choice.",
             more=((DRAWN, "u = rng.random()\n            if u < 0.5:"),)),
        Edit(OTHER, "(a, [d[int(u * len(d))] for d in [others[int(u * len(others))]]][0], 1)",
             "One random number decides which document and which sentence: an early sentence "
             "always comes from an early document. Draw one for each.",
             more=((DRAWN, "u = rng.random()\n            if rng.random() < 0.5:"),)),
    ),
)  # fmt: skip
