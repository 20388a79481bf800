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
        (r"not in list|KeyError", "A position may be in no name: then its unit is its word."),
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
        Edit(JOIN, "word_of[start:stop]", "The names have no effect: you select each of their "
             "words separately, as in ERNIE's basic stage. Here the words of a name are one "
             "unit."),
        Edit(JOIN, "[start] * (stop - start)", "A name is given the number of its first "
             "*position* in your answer. Another word may have the same number and would then "
             "belong to the name. Use the number of the name's first word."),
        Edit("unit_of[start:stop] = [word_of[start]] * (stop - start)",
             "unit_of = [start if start <= w < stop else n for n, w in zip(unit_of, word_of)]",
             "You read the pairs of `names` as numbers of words. They are positions."),
        Edit("taken += unit", "taken += unit[:1]", "You select only the first position of each "
             "unit. That position decides, but then the whole unit is selected."),
        Edit("taken += unit", "taken += [s for s, w in enumerate(word_of) if w == word_of[t]]",
             "You select only the first word of a name. Select the whole name."),
        Edit("for t in order:", "for t in order[:budget]:", "You look at the first `budget` "
             "positions of `order` and stop. Some of them are skipped: go through all of `order`."),
        Edit("for t in order:", "for t in reversed(order):", "You go through `order` from its "
             "end."),
        Edit("return sorted(taken)", "return [word_of[t] for t in sorted(taken)]", "These are "
             "numbers of words. Expected are positions."),
        Edit(FITS, "len(taken) + len(unit) <= budget + 1", "One position more than `budget` may "
             "be selected in your answer."),
        Edit(UNIT, "[t]", "Single positions are selected. If one is, its whole unit is: all pieces "
             "of a word, all words of a name.", more=((DECIDES, "unit_of[t] >= 0"),)),
        Edit(DECIDES, "unit_of[t] >= 0 and t in unit and t not in taken", "In your answer any "
             "position of a unit counts, which makes long units come up sooner. Only the "
             "*first* position counts; skip the others."),
        Edit(DECIDES, "unit_of[t] >= 0 and t == unit[-1]", "In your answer the last position of "
             "a unit counts. It should be the first."),
        Edit(DECIDES, "t == unit[0]", "You select special tokens. Where word_of is −1 there is "
             "no word to mask."),
        Edit(DECIDES, "unit_of[t] > 0 and t == unit[0]", "Word 0 is never selected in your answer. "
             "It is the first word; −1 is none."),
        Edit(UNIT, "[s for s, number in enumerate(unit_of) if number == t]", "You read the "
             "numbers in `order` as words. They are positions.", more=((DECIDES, "True"),)),
        Edit("taken += unit", "taken += unit[: budget - len(taken)]", "The last unit is cut at "
             "the budget, as SpanBERT cuts its spans. Half of a name gives the rest away, so "
             "skip a unit that does not fit.", more=((f"{FITS}:", "len(taken) < budget:"),)),
        Edit(FITS, "len(taken) < budget", "The last unit exceeds the budget. Skip a unit that "
             "does not fit."),
        Edit(FITS, "len(taken) + len(unit) < budget", "You skip a unit that fits exactly. The "
             "budget may be reached."),
        Edit("taken += unit", "taken += unit\n        elif decides:\n            break", "You "
             "stop at the first unit that does not fit. Skip it and go on: a shorter one may "
             "fit."),
        Edit(FITS, "len({unit_of[s] for s in taken}) < budget", "The budget is counted in units. "
             "It is a number of positions."),
        Edit("for t in order:", "for t in range(len(word_of)):", "`order` has no effect: you go "
             "from left to right, which would select the beginning of every text."),
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
