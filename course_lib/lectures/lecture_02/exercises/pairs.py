"""Exercise 02.5: sentence pairs with labels nobody had to write.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    call,
    share_is,
)

Pair = tuple[str, str, int]


def pairs(documents: Sequence[Sequence[str]], rng: random.Random) -> list[Pair]:
    """One (a, b, label) for each sentence that has a next one; label 0 IsNext, 1 NotNext."""
    made = []
    for number, document in enumerate(documents):
        for a, following in pairwise(document):
            if rng.random() < 0.5:
                made.append((a, following, 0))
            else:
                others = [other for i, other in enumerate(documents) if i != number]
                made.append((a, rng.choice(rng.choice(others)), 1))
    return made


def _documents(draw: Draw, number: int, longest: int) -> list[list[str]]:
    return [
        [f"sentence {s + 1} of document {d + 1}" for s in range(draw.integer(2, longest))]
        for d in range(number)
    ]


def _call_pairs(answer: Answer, documents: list[list[str]], rng: random.Random) -> list[Pair]:
    given = call(answer, documents, rng)
    if not isinstance(given, (list, tuple)):
        raise Mistake(
            "wrong type",
            f"Your function returned a {type(given).__name__}; expected a list of (a, b, label).",
        )
    known = {sentence for document in documents for sentence in document}
    for pair in given:
        if not isinstance(pair, (list, tuple)) or len(pair) != 3 or pair[2] not in (0, 1):
            raise Mistake(
                "wrong pair",
                f"One of your pairs is {pair!r}; expected (a, b, label) with label 0 or 1.",
            )
        if not {pair[0], pair[1]} <= known:
            raise Mistake(
                "wrong pair",
                f"One of your pairs is {pair!r}; a and b must be sentences of the documents.",
            )
    return [(a, b, int(label)) for a, b, label in given]


def _places(documents: Sequence[Sequence[str]]) -> dict[str, tuple[int, int]]:
    return {s: (d, i) for d, document in enumerate(documents) for i, s in enumerate(document)}


def _ask_first_halves(answer: Answer, draw: Draw) -> None:
    for documents in (_documents(draw, 2, 3), _documents(draw, 5, 6)):
        given = _call_pairs(answer, documents, draw.python)
        place = _places(documents)
        firsts, right = [a for a, _, _ in given], [s for d in documents for s in d[:-1]]
        if firsts == right:
            continue
        last = {document[-1] for document in documents}
        if last & set(firsts) and _crosses(given, place):
            raise Mistake(
                "crosses documents",
                "The last sentence of a document was paired with the first of the next as if it "
                "followed. A last sentence has no next one, and gives no pair.",
            )
        _name_order(given, place)
        if Counter(firsts) == Counter(right):
            raise Mistake("shuffled", "All pairs are there, but not in the order of the documents.")
        missing = [s for s in right if s not in firsts]
        said = f"Missing as a: {missing[0]!r}. " if missing else ""
        if surplus := (Counter(firsts) - Counter(right)):
            said += f"Too often, or without a next sentence, as a: {next(iter(surplus))!r}. "
        raise Mistake(
            "",
            f"{said}Expected one pair for each sentence that has a next one, {len(right)}; got "
            f"{len(given)}.",
        )


def _crosses(given: Sequence[Pair], place: dict[str, tuple[int, int]]) -> bool:
    return any(
        label == 0 and place[b][0] == place[a][0] + 1 and place[b][1] == 0 for a, b, label in given
    )


def _name_order(given: Sequence[Pair], place: dict[str, tuple[int, int]]) -> None:
    """B before A, among the pairs said to follow each other."""
    follow = [(place[a], place[b]) for a, b, label in given if label == 0]
    if follow and all(a[0] == b[0] and b[1] == a[1] - 1 for a, b in follow):
        raise Mistake(
            "b before a", "In IsNext pairs b stands *before* a in the text; it must follow it."
        )


def _ask_labels(answer: Answer, draw: Draw) -> None:
    documents = _documents(draw, 60, 12)
    given, place = _call_pairs(answer, documents, draw.python), _places(documents)
    said = {0: [p for p in given if p[2] == 0], 1: [p for p in given if p[2] == 1]}
    if not said[1] or not said[0]:
        only = "IsNext" if said[0] else "NotNext"
        raise Mistake(
            f"all {only}",
            f"All {len(given)} pairs are labelled {only}; half of them should be, at random.",
        )
    follows = {label: [_follows(place[a], place[b]) for a, b, _ in said[label]] for label in (0, 1)}
    if not any(follows[0]) and all(follows[1]):
        raise Mistake(
            "labels swapped",
            "The labels are swapped: BERT's code says 0 for IsNext and 1 for NotNext. (Natural "
            "or not: weights trained elsewhere expect it.)",
        )
    if all(a == b for a, b, _ in said[0]):
        raise Mistake("b is a", "In IsNext pairs b is a itself; it must be the sentence after it.")
    _name_order(said[0], place)
    for a, b, _ in said[0]:
        if not _follows(place[a], place[b]):
            raise Mistake("", f"Labelled 0 (IsNext), but b does not follow a: {a!r}, {b!r}.")


def _follows(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] == b[0] and b[1] == a[1] + 1


def _ask_elsewhere(answer: Answer, draw: Draw) -> None:
    documents = _documents(draw, 6, 40)
    place, count, starts, inside = _places(documents), Counter[int](), 0, []
    for _ in range(20):
        for a, b, label in _call_pairs(answer, documents, random.Random(draw.integer(0, 2**31))):
            if label == 1:
                home, (other, i) = place[a][0], place[b]
                inside += [(a, b)] * (home == other)
                count[(other - home) % len(documents)] += 1
                starts += i == 0
    if inside:
        raise Mistake(
            "same document",
            f"{len(inside)} of {sum(count.values())} NotNext pairs took b from a's own document, "
            f"for instance {inside[0]}. It may even be the next sentence, labelled as if it were "
            "not. Leave that document out.",
        )
    if len(count) == 1:
        raise Mistake(
            "one neighbour", "Every random b comes from the same neighbouring document; draw it."
        )
    if starts > 0.9 * sum(count.values()):
        raise Mistake(
            "first sentences", "Every random b is the first sentence of its document; draw which."
        )
    if len(count) < len(documents) - 1:
        raise Mistake("", "Some documents never give a random b; every other document should.")


def _ask_half(answer: Answer, draw: Draw) -> None:
    documents = _documents(draw, 150, 30)
    given = [
        _call_pairs(answer, documents, random.Random(draw.integer(0, 2**31))) for _ in range(2)
    ]
    labels = [[label for *_, label in made] for made in given]
    if labels[0] == labels[1]:
        raise Mistake(
            "labels not drawn",
            "The labels are the same with another rng (do they alternate?). A model could learn "
            "the pattern instead of reading: draw each label.",
        )
    n, share = len(labels[0]), sum(labels[0]) / len(labels[0])
    if not share_is(share, 0.5, n):
        raise Mistake(
            "not half",
            f"{share:.1%} of {n:,} pairs are NotNext; expected half (within six standard "
            f"deviations, {6 * 0.5 / math.sqrt(n):.1%}).",
        )


def _ask_rng(answer: Answer, draw: Draw) -> None:
    documents, seed = _documents(draw, 20, 12), draw.integer(0, 2**31)
    first, again = (_call_pairs(answer, documents, random.Random(seed)) for _ in range(2))
    if first != again:
        raise Mistake(
            "ignores the generator",
            "The same state of rng gave two different lists of pairs. Draw with rng.random and "
            "rng.choice, not from the module random, so that an experiment can be repeated.",
        )


PAIRS = Exercise(
    id="02.5",
    title="Make the sentence pairs",
    purpose="data with labels nobody had to write",
    difficulty=2,
    minutes=12,
    signature="my_pairs(documents, rng)",
    statement=(
        "`documents` is a list of documents, each a list of at least two sentences (strings). Go "
        "through them in order. Each sentence that has a next one becomes `a` of one triple `(a, "
        "b, label)`: with probability one half `b` is the next sentence and the label 0 (IsNext); "
        "otherwise `b` is a random sentence of a random *other* document and the label 1 "
        "(NotNext). Return the list of triples. Draw from `rng`, a `random.Random`."
    ),
    hints=(
        "zip(document, document[1:]) walks over each sentence together with the next one.",
        "Toss the coin for each pair: rng.random() < 0.5.",
        "For a random b choose the document first, from a list without the present one, then the "
        "sentence: rng.choice.",
    ),
    solution=pairs,
    see="course_lib.objectives.next_sentence.pairs_of_document (a, b: runs of sentences)",
    stages=(
        Check("one pair for each sentence that has a next one", _ask_first_halves),
        Check("label 0 means that b follows a", _ask_labels),
        Check("a random b comes from another document", _ask_elsewhere),
        Check("about half are NotNext, and drawn", _ask_half),
        Check("the draws come from rng", _ask_rng),
    ),
)
