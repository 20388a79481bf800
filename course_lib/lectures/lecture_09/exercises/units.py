"""Exercise 09.4: a known name is masked whole or not at all. T positions."""

from __future__ import annotations

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Items

Pair = tuple[int, int]


def units(word_of: list[int], names: list[Pair], order: list[int], budget: int) -> list[int]:
    """Positions that entity masking selects (Sun et al. 2019, section 3.2; the count is BERT's)."""
    unit_of = list(word_of)
    for start, stop in names:
        unit_of[start:stop] = [word_of[start]] * (stop - start)
    taken: list[int] = []
    for t in order:
        unit = [s for s, number in enumerate(unit_of) if number == unit_of[t]]
        decides = unit_of[t] >= 0 and t == unit[0]
        if decides and len(taken) + len(unit) <= budget:
            taken += unit
    return sorted(taken)


# ---------------------------------------------------------------- cases


def case(draw: Draw, words: int, pieces: int, names: int, budget: int) -> Case:
    """names: how many names of two or three words; two of them may stand side by side."""
    word_of, begins = [-1], list[int]()
    for w in range(words):
        begins.append(len(word_of))
        word_of += [w] * draw.integer(1, pieces)
    begins.append(len(word_of))
    name_spans, w = list[Pair](), draw.integer(0, 1)
    while len(name_spans) < names and w + 2 <= words:
        end = min(words, w + draw.integer(2, 3))
        name_spans.append((begins[w], begins[end]))
        w = end + draw.integer(0, 2)
    word_of.append(-1)
    order = draw.python.sample(range(len(word_of)), len(word_of))
    return word_of, name_spans, order, budget


def split(draw: Draw) -> list[Case]:
    """The number of the name's first position is that of a word behind it; then drawn ones."""
    plain = [-1, 0, 0, 1, 2, 3, -1], [(3, 5)], [5, 3, 6, 0, 1, 2, 4], 2
    return [plain, *[case(draw, 12, 3, 3, 8) for _ in range(5)]]


JOIN = "[word_of[start]] * (stop - start)"
DECIDES, FITS = "unit_of[t] >= 0 and t == unit[0]", "len(taken) + len(unit) <= budget"
UNIT = "[s for s, number in enumerate(unit_of) if number == unit_of[t]]"

UNITS = Exercise(
    **written("09.4"),
    solution=units,
    returns=Items("list of selected positions", of="positions", ordered=False),
    see="course_lib.objectives.knowledge_masking.unit_numbers joins the words of a name, and "
        "mask_whole_words selects them",
    when_raised=(
        (r"not in list|KeyError", "A position may lie in no name at all: then its unit is its "
         "word."),
    ),
    stages=(
        Stage("no names, words of one piece", each(case, (6, 1, 0, 2), (9, 1, 0, 3))),
        Stage("words of several pieces, passed over if they do not fit",
              each(case, *[(8, 3, 0, 4)] * 4)),
        Stage("names of two and three words", 
              each(case, *[(9, 1, 2, 4)] * 4, *[(12, 1, 3, 5)] * 2)),
        Stage("names whose words have several pieces", split),
    ),
    mistakes=(
        Edit(JOIN, "word_of[start:stop]", "The names have no effect: each of their words is "
             "selected by itself. That is ERNIE's basic stage. Here the words of a name are one "
             "unit."),
        Edit(JOIN, "[start] * (stop - start)", "A name is given the number of its first *position* "
             "in your answer. Some word may have that number too, and then belongs to the name. "
             "Give it the number of its first word."),
        Edit("unit_of[start:stop] = [word_of[start]] * (stop - start)",
             "unit_of = [start if start <= w < stop else n for n, w in zip(unit_of, word_of)]",
             "You read the pairs of `names` as numbers of words. They are positions."),
        Edit("taken += unit", "taken += unit[:1]", "Of each unit only the first position is "
             "selected. It decides; if it does, the whole unit is selected."),
        Edit("taken += unit", "taken += [s for s, w in enumerate(word_of) if w == word_of[t]]",
             "Of a name only the first word is selected. The whole name is."),
        Edit("for t in order:", "for t in order[:budget]:", "You look at the first `budget` "
             "positions of `order` and stop. Some of them decide nothing: go through all of it."),
        Edit("for t in order:", "for t in reversed(order):", "You go through `order` from its "
             "end."),
        Edit("return sorted(taken)", "return [word_of[t] for t in sorted(taken)]", "These are "
             "numbers of words. Expected positions."),
        Edit(FITS, "len(taken) + len(unit) <= budget + 1", "One position more than `budget` may "
             "be selected in your answer."),
        Edit(UNIT, "[t]", "Single positions are selected. If one is, its whole unit is: all pieces "
             "of a word, all words of a name.", more=((DECIDES, "unit_of[t] >= 0"),)),
        Edit(DECIDES, "unit_of[t] >= 0 and t in unit and t not in taken", "Any position of a unit "
             "decides in your answer. Then long units come up sooner. Only its *first* position "
             "does; the others are passed over."),
        Edit(DECIDES, "unit_of[t] >= 0 and t == unit[-1]", "The last position of a unit decides in "
             "your answer. It is the first."),
        Edit(DECIDES, "t == unit[0]", "Special tokens are selected in your answer. Where word_of "
             "is −1 there is no word, and nothing to hide."),
        Edit(DECIDES, "unit_of[t] > 0 and t == unit[0]", "Word 0 is never selected in your answer. "
             "It is the first word; −1 is none."),
        Edit(UNIT, "[s for s, number in enumerate(unit_of) if number == t]", "You take the numbers "
             "in `order` for words. They are positions.", more=((DECIDES, "True"),)),
        Edit("taken += unit", "taken += unit[: budget - len(taken)]", "The last unit is cut at "
             "the budget, as SpanBERT cuts its spans. Half of a name gives the rest away: a unit "
             "that does not fit is passed over.", more=((f"{FITS}:", "len(taken) < budget:"),)),
        Edit(FITS, "len(taken) < budget", "The last unit goes beyond the budget. One that does "
             "not fit is passed over."),
        Edit(FITS, "len(taken) + len(unit) < budget", "A unit that fits exactly is passed over in "
             "your answer. The budget may be reached."),
        Edit("taken += unit", "taken += unit\n        elif decides:\n            break", "You "
             "stop at the first unit that does not fit. Pass over it and go on: a shorter one may "
             "fit."),
        Edit(FITS, "len({unit_of[s] for s in taken}) < budget", "The budget is counted in units. "
             "It is a number of positions."),
        Edit("for t in order:", "for t in range(len(word_of)):", "`order` has no effect: you go "
             "from left to right, and the beginning of every text would be selected."),
        Edit("for t in order:", "for t in sorted(order, key=lambda t: "
             "not any(a <= t < b for a, b in names)):", "Names come before all other words in your "
             "answer. They are units like others, in the given order."),
        Edit(DECIDES, f"{DECIDES} and any(a <= t < b for a, b in names)", "Only names are selected "
             "in your answer. Other words are units too."),
        Edit(DECIDES, f"{DECIDES} and not any(a <= t < b for a, b in names)", "Names are never "
             "selected in your answer. They are units like others."),
        Edit("unit_of[start:stop] = [word_of[start]] * (stop - start)",
             "unit_of[start : stop + 1] = [word_of[start]] * (stop + 1 - start)", "Your names are "
             "one position too long: `stop` is not included."),
        Edit("unit_of[start:stop] = [word_of[start]] * (stop - start)",
             "unit_of[start : stop - 1] = [word_of[start]] * (stop - 1 - start)", "Your names are "
             "one position too short: they reach up to stop − 1, included."),
        Edit(JOIN, "[-2] * (stop - start)", "All names became one unit in your answer, or none. "
             "Two names are two units.", more=(("unit_of[t] >= 0 and", "unit_of[t] != -1 and"),)),
        Edit("return sorted(taken)", "return [t for t in range(len(word_of)) if t not in taken]",
             "These are the positions that are *not* selected."),
    ),
)  # fmt: skip
