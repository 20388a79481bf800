"""Exercise 11.1: which words deserve a row."""

from __future__ import annotations

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Items, Number


def added_words(counts: list[int], pieces: list[int], added: int) -> tuple[list[int], float, float]:
    """Numbers of the words that save most pieces; pieces a word before and after."""
    saved = [count * (cut - 1) for count, cut in zip(counts, pieces, strict=True)]
    order = sorted(range(len(saved)), key=lambda i: (-saved[i], i))
    chosen = [i for i in order if saved[i] > 0][:added]
    before = sum(count * cut for count, cut in zip(counts, pieces, strict=True))
    after = before - sum(saved[i] for i in chosen)
    return chosen, before / sum(counts), after / sum(counts)


# ---------------------------------------------------------------- cases


def case(draw: Draw, words: int, added: int, whole: int = 0) -> Case:
    """Counts fall as in text, mixed; `whole` words of one piece. The rarest is cut most, and no two
    save as many."""
    while True:
        counts = [draw.integer(2, 6) + 40 // (n + 1) for n in range(words)]
        pieces = [draw.integer(2, 4) for _ in range(words)]
        pieces[-1], counts[-1] = 7, 1
        for n in range(whole):
            pieces[n] = 1
        both = list(zip(counts, pieces, strict=True))
        draw.python.shuffle(both)
        saved = [c * (p - 1) for c, p in both if p > 1]
        if len(set(saved)) == len(saved):
            return [c for c, _ in both], [p for _, p in both], added


def ties(draw: Draw) -> list[Case]:
    """Words that save as many; the earlier one is added."""
    return [([6, 3, 4, 6], [2, 3, 1, 3], 2), ([4, 2, 5, 8], [3, 5, 2, 2], 3)]


SAVED = "count * (cut - 1) for count, cut in zip(counts, pieces, strict=True)]"

WORDS = Exercise(
    **written("11.1"),
    solution=added_words,
    returns=(Items("chosen words", of="numbers"), Number("fertility before"),
             Number("fertility after")),
    library=("course_lib.train.new_vocabulary:extended",),
    when_raised=(
        (r"list indices|multiply sequence", "`counts` and `pieces` are lists: use them entry by "
         "entry, with zip(counts, pieces)."),
    ),
    stages=(
        Stage("the words on paper", each(lambda draw: ([6, 3, 1], [3, 1, 4], 1), ())),
        Stage("more words than may be added", each(case, (6, 2), (8, 3), (7, 4))),
        Stage("two that save as many", ties),
        Stage("words of one piece", each(case, (6, 5, 3), (5, 4, 2), (7, 9, 2), (5, 0, 1))),
    ),
    mistakes=(
        Edit(SAVED, "count * cut for count, cut in zip(counts, pieces, strict=True)]",
             "An added word is still *one* piece: it saves pieces − 1 each time, not all of "
             "them."),
        Edit(SAVED, "cut - 1 for count, cut in zip(counts, pieces, strict=True)]",
             "Your savings ignore how often a word occurs. The word that is cut most may occur "
             "once in the whole text."),
        Edit(SAVED, "count for count, cut in zip(counts, pieces, strict=True)]",
             "You take the most frequent words. Most of those are whole already: a word's "
             "saving is its count *times* the pieces saved."),
        Edit("[i for i in order if saved[i] > 0][:added]", "order[:added]",
             "You chose a word of one piece. It has its own row already: choose fewer words."),
        Edit("(-saved[i], i)", "(saved[i], i)", "You take the words that save *least*."),
        Edit("(-saved[i], i)", "(-saved[i], -i)", "Of two words that save equally many, you "
             "take the later one. Take the earlier one."),
        Edit("return chosen,", "return sorted(chosen),", "Your words are sorted by number. Put "
             "the one that saves most first."),
        Edit("before / sum(counts)", "sum(pieces) / len(pieces)", "You average over *different* "
             "words. Fertility is counted in running text: a word counts as often as it occurs."),
        Edit("after / sum(counts)", "after / (sum(counts) + len(chosen))", "The number of words "
             "does not change: only their pieces do."),
        Edit("before - sum(saved[i] for i in chosen)", "before - len(chosen)", "You subtract "
             "one piece for each added word. Each saves its pieces − 1 every time it occurs."),
    ),
)  # fmt: skip
