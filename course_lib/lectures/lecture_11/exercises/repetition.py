"""Exercise 11.6: how much of the test was read."""

from __future__ import annotations

from itertools import chain

from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Number

Text = list[str]


def repeated(train: list[Text], test: list[Text], n: int) -> float:
    """The fraction of the test's runs of n words that stand in a training text."""
    read = {tuple(text[i : i + n]) for text in train for i in range(len(text) - n + 1)}
    runs = [tuple(text[i : i + n]) for text in test for i in range(len(text) - n + 1)]
    return sum(run in read for run in runs) / len(runs) if runs else 0.0


# ---------------------------------------------------------------- cases

# Short ones, so that a report prints all texts; some begin others.
WORDS = ["a", "as", "at", "an", "be", "by", "do", "if", "in", "is", "it", "of", "or", "so", "to"]


def case(draw: Draw, n: int, lengths: tuple[int, ...], joined: bool = False) -> Case:
    """Test texts that share a part with the training texts. joined: what would be a known run
    reaches over the ends of two texts, or ends with the beginning of a word."""
    train = [draw.python.choices(WORDS, k=12) for _ in range(3)]
    test = []
    if joined:
        train[0][n - 1] = "an"
    for k, length in enumerate(lengths):
        text, own = draw.python.choices(WORDS, k=length), train[k % 3]
        if length > n:
            start = draw.integer(0, 12 - n - 1)
            text[: n + 1] = own[start : start + n + 1]
        test.append(text)
    test[-1] = [*test[-1], *test[0][: n + 1]]  # runs that come again
    if joined:
        test += [train[0][: n - 1], train[0][n - 1 : 2 * n - 2], [*train[0][: n - 1], "a"]]
        train += [test[0][-2:], test[1][:2]]
        test.append(train[1][:n][::-1])  # known words, in the opposite order
    return train, test, n


def by_hand(draw: Draw) -> list[Case]:
    return [([["a", "b", "c"]], [["b", "c", "d"], ["b", "c"]], 2),
            ([["a", "b"], ["c", "d"]], [["a", "b", "c", "d"]], 2)]  # fmt: skip


def joined_runs(train: list[Text], test: list[Text], n: int) -> float:
    """A known mistake: one long text of all."""
    return repeated([list(chain(*train))], [list(chain(*test))], n)


def in_order(train: list[Text], test: list[Text], n: int) -> float:
    """A known mistake: runs as sets of words."""
    read = {frozenset(t[i : i + n]) for t in train for i in range(len(t) - n + 1)}
    runs = [frozenset(t[i : i + n]) for t in test for i in range(len(t) - n + 1)]
    return sum(run in read for run in runs) / len(runs) if runs else 0.0


def of_texts(train: list[Text], test: list[Text], n: int) -> float:
    """A known mistake: the mean over the test texts."""
    return sum(repeated(train, [text], n) for text in test) / len(test)


def exchanged(train: list[Text], test: list[Text], n: int) -> float:
    """A known mistake: what of the training texts stands in the test."""
    return repeated(test, train, n)


def in_a_line(train: list[Text], test: list[Text], n: int) -> float:
    """A known mistake: runs looked up in texts joined to a line, where words have no ends."""
    read = " || ".join(" ".join(text) for text in train)
    runs = [" ".join(text[i : i + n]) for text in test for i in range(len(text) - n + 1)]
    return sum(run in read for run in runs) / len(runs) if runs else 0.0


READ = "{tuple(text[i : i + n]) for text in train for i in range(len(text) - n + 1)}"
RUNS = "[tuple(text[i : i + n]) for text in test for i in range(len(text) - n + 1)]"
SHARE = "sum(run in read for run in runs) / len(runs)"

REPETITION = Exercise(
    **written("11.6"),
    solution=repeated,
    returns=Number("fraction"),
    library=("course_lib.text.domains:repeated",),
    when_raised=(
        (r"unhashable", "Lists cannot be in a set: make a tuple of each run."),
        (r"division by zero", "A test may have no run of n words at all: return 0 then."),
    ),
    stages=(
        Stage("the example", by_hand),
        Stage("texts that share a part",
              each(case, (3, (8, 6)), (4, (9, 7, 5)), (2, (6, 6)))),
        Stage("runs that only seem to be there", each(case, (3, (7, 6), True), (4, (8, 9), True))),
        Stage("texts shorter than n",
              each(lambda draw, n: ([["a", "b", "c", "d", "e"]], [["a", "b"], ["c"]], n),
                   (3,), (5,))),
    ),
    mistakes=(
        Edit(RUNS, "list({tuple(text[i : i + n]) for text in test for i in range(len(text) - n + "
             "1)})", "You count a run that occurs twice only once. Count it twice."),
        Edit(RUNS, "[tuple(text[i : i + n]) for text in test for i in range(0, len(text) - n + 1, "
             "n)]", "Your runs do not overlap. A run starts at every word, so they overlap."),
        Edit(RUNS, "[tuple(text[i : i + n]) for text in test for i in range(len(text) - n)]", "The "
             "last run of each test text is missing: there are len − n + 1."),
        Edit(READ, "{tuple(text[i : i + n]) for text in train for i in range(len(text) - n)}", "The"
             " last run of each training text is missing: there are len − n + 1."),
        Edit(READ, "{tuple(text[i : i + n]) for text in train for i in range(len(text) - n)}",
             "Did you forget the last run of each text? There are len − n + 1.",
             more=((RUNS, "[tuple(text[i : i + n]) for text in test for i in range(len(text) - "
                    "n)]"),)),
        Edit(RUNS, "[tuple(text[i : i + n]) for text in test for i in range(len(text))]", "Your "
             "last runs of each test text are shorter than n."),
        Edit(READ, "{tuple(text[i : i + n]) for text in train for i in range(len(text))}", "Your "
             "last runs of each text are shorter than n.",
             more=((RUNS, "[tuple(text[i : i + n]) for text in test for i in range(len(text))]"),)),
        Edit(READ, "{word for text in train for word in text}", "You look up single words. Look "
             "up runs of n words in their order.",
             more=((RUNS, "[word for text in test for word in text]"),)),
        Edit(SHARE, "sum(run in read for run in runs) / len(read)", "You divide by the runs of the "
             "*training* texts. Return how much of the test was read."),
        Edit(SHARE, "1 - sum(run in read for run in runs) / len(runs)", "That is the fraction that "
             "was *not* read."),
        Edit(SHARE, "sum(run in read for run in runs)", "That is a number of runs. Return a "
             "fraction."),
        Edit("if runs else 0.0", "if runs else 1.0", "In a test without any run of n words "
             "nothing was read, so return 0."),
        Other(exchanged, "Train and test are exchanged: return how much of the *test* was read."),
        Other(in_a_line, "You search for a run inside a string: “is a” also occurs in “is as”. "
              "Compare whole words."),
        Other(joined_runs, "Your runs extend from one text into the next. Such runs are in no "
              "text."),
        Other(in_order, "You compare *sets* of words. A run is words in their order."),
        Other(of_texts, "You average over texts. Count the runs of all texts first, then divide "
              "once."),
    ),
)  # fmt: skip
