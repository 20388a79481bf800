"""Exercise 17.2: BM25, the search by words that every encoder is measured against. N documents."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def bm25(query: list[str], documents: list[list[str]], k1: float, b: float) -> Tensor:
    """The score of each document: idf times a saturating count, over the query's words. -> (N,)."""
    average = sum(len(document) for document in documents) / len(documents)
    scores = []
    for document in documents:
        half = k1 * (1 - b + b * len(document) / average)  # the count that scores half
        score = 0.0
        for word in query:
            holding = sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            count = document.count(word)
            score += idf * count / (count + half)
        scores.append(score)
    return torch.tensor(scores, dtype=torch.float64)


# ---------------------------------------------------------------- cases

WORDS = ["stop", "run", "log", "plot", "save", "load", "mask", "token", "batch", "epoch"]


def case(draw: Draw, documents: int, query: int, k1: float, b: float) -> Case:
    """Documents of all lengths, some words in most of them; one of the query's words in none."""
    draws = draw.python
    few = WORDS[:-1]
    texts = [draws.choices(few, range(9, 0, -1), k=draws.randint(2, 12)) for _ in range(documents)]
    return [*draws.sample(few, query), WORDS[-1]], texts, k1, b


def by_hand(draw: Draw) -> list[Case]:
    return [(["run"], [["stop", "run"], ["run", "run", "log"], ["plot"]], 1.0, 1.0),
            (["run"], [["run", "run"], ["run", "stop", "log"], ["plot"]], 1.0, 0.0)]  # fmt: skip


def repeated(draw: Draw, documents: int, k1: float, b: float) -> Case:
    """A word twice in the query, and a document without a word."""
    query, texts, *_ = case(draw, documents, 3, k1, b)
    return [*query, *query[:2]], [*texts, []], k1, b


AVERAGE = "sum(len(document) for document in documents) / len(documents)"
HALF, WORD = "k1 * (1 - b + b * len(document) / average)", "for word in query"
HOLDING, COUNT = "sum(word in other for other in documents)", "document.count(word)"
IDF = "math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))"
SCORE = "idf * count / (count + half)"

BM25 = Exercise(
    **written("17.2"),
    solution=bm25,
    returns=Numbers("scores", shape="N"),
    see="course_lib.train.searching.BM25 makes the words of texts, stems them, and leaves the sums "
    "to the package bm25s",
    stages=(
        Stage("three documents, on paper", by_hand),
        Stage("more documents", each(case, (5, 1, 1.5, 0.75), (6, 3, 1.5, 0.75))),
        Stage("other k1 and b", each(case, (6, 3, 0.9, 0.4), (5, 4, 2.0, 1.0), (7, 2, 1.2, 0.0))),
        Stage("a word twice in the query, a document without words",
              each(repeated, (4, 1.5, 0.75), (6, 1.2, 0.3))),
    ),
    mistakes=(
        Edit(IDF, "1.0", "All your words count the same. A rare word says more: multiply by its "
             "idf."),
        Edit(IDF, "math.log((len(documents) - holding + 0.5) / (holding + 0.5))", "The 1 inside "
             "the logarithm is missing: a word in more than half of the documents has a negative "
             "weight, and a document that contains it ranks below one that does not."),
        Edit(IDF, "math.log(len(documents) / max(1, holding))", "Your idf is TF-IDF's, ln(N / n): "
             "a word in every document counts nothing. Lucene's is ln(1 + (N − n + ½)/(n + ½))."),
        Edit(HOLDING, "sum(other.count(word) for other in documents)", "You count how often the "
             "word occurs in the corpus. n is the number of *documents* that contain it."),
        Edit(SCORE, "idf * count", "Your score grows without limit: ten times a word is ten times "
             "the score. Divide by count + k1 · …, so that it saturates."),
        Edit(SCORE, "idf * (k1 + 1) * count / (count + half)", "You multiply by k1 + 1, as "
             "Robertson's formula does. The order of documents is the same, but Lucene and this "
             "exercise leave the factor out."),
        Edit(SCORE, "idf * count / (count + 1) * (1 - b + b * len(document) / average)", "In your "
             "answer the length multiplies the whole score. It belongs in the denominator, beside "
             "the count: a *long* document needs more occurrences."),
        Edit(HALF, "k1", "The length of the document has no effect: b is not used."),
        Edit(HALF, "k1 * (b + (1 - b) * len(document) / average)", "b and 1 − b are exchanged: "
             "b = 0 means that the length does *not* count."),
        Edit(HALF, "k1 * (1 - b + b * len(document))", "Your length is in words. Divide it by the "
             "average document's length."),
        Edit(HALF, "1 - b + b * len(document) / average", "k1 is not used."),
        Edit(HALF, "k1 * (1 - b + b * len(set(document)) / average)", "Your length counts each "
             "different word once. It is the number of all words, including repeats."),
        Edit(COUNT, "int(word in document)", "You only check whether a document contains the word. "
             "Count how often."),
        Edit(WORD, "for word in dict.fromkeys(query)", "A word that occurs twice in the query "
             "counts once in your answer. It must count twice."),
        Edit(AVERAGE, "sum(map(len, documents)) / sum(map(bool, documents))", "You leave empty "
             "documents out of the average length. They count, with length 0."),
    ),
)  # fmt: skip
