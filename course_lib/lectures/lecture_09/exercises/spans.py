"""Exercise 09.2: spans until the budget is reached. T positions."""

from __future__ import annotations

from collections.abc import Callable

from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    written,
)
from course_lib.teaching.exercises.outputs import Items

Pair = tuple[int, int]


def spans(word_of: list[int], draws: list[Pair], budget: int) -> list[Pair]:
    """First and last position of every selected span (section 3.1 and the released code)."""
    taken: set[int] = set()
    for position, words in draws:
        first = word_of[position]
        span = [t for t, word in enumerate(word_of) if first <= word < first + words]
        if position not in taken:
            new = [t for t in span if t not in taken]
            taken.update(new[: budget - len(taken)])
    result: list[Pair] = []
    for t in sorted(taken):
        if t - 1 in taken:
            result[-1] = (result[-1][0], t)
        else:
            result.append((t, t))
    return result


def each_by_itself(word_of: list[int], draws: list[Pair], budget: int) -> list[Pair]:
    """The same, but spans that touch stay apart: a position belongs to the first that has it."""
    hider: dict[int, int] = {}
    for n, (position, words) in enumerate(draws):
        first = word_of[position]
        for t, word in enumerate(word_of):
            free = t not in hider and len(hider) < budget
            if free and first <= word < first + words and hider.get(position, n) == n:
                hider[t] = n
    result: list[Pair] = []
    for t in sorted(hider):
        if t > 0 and hider.get(t - 1) == hider[t]:
            result[-1] = (result[-1][0], t)
        else:
            result.append((t, t))
    return result


def span_of_each_draw(word_of: list[int], draws: list[Pair], budget: int) -> list[Pair]:
    """Each draw's span as it is, from its first to its last position, also where others meet it."""
    taken: set[int] = set()
    result: list[Pair] = []
    for position, words in draws:
        first = word_of[position]
        span = [t for t, word in enumerate(word_of) if first <= word < first + words]
        new = [t for t in span if t not in taken][: budget - len(taken)]
        if position not in taken and new:
            taken.update(new)
            result.append((span[0], new[-1]))
    return sorted(result)


def joined_where_they_overlap(word_of: list[int], draws: list[Pair], budget: int) -> list[Pair]:
    """The same, but spans that touch and share no position stay apart."""
    result: list[Pair] = []
    for begin, end in span_of_each_draw(word_of, draws, budget):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return result


# ---------------------------------------------------------------- cases


def text(draw: Draw, words: int, pieces: int) -> list[int]:
    """[CLS], words of up to so many pieces, [SEP]."""
    numbers = [w for w in range(words) for _ in range(draw.integer(1, pieces))]
    return [-1, *numbers, -1]


def random_draws(draw: Draw, word_of: list[int], how_many: int, longest: int) -> list[Pair]:
    return [(draw.integer(1, len(word_of) - 2), draw.integer(1, longest)) for _ in range(how_many)]


def covered(word_of: list[int], draws: list[Pair], budget: int = 1_000) -> set[int]:
    """The selected positions; without a budget all that these draws select."""
    return {t for first, last in spans(word_of, draws, budget) for t in range(first, last + 1)}


def cases(pieces: int, how_many: int, fits: Callable[[list[int], list[Pair], int], bool],
          spare: int = 0, words: int = 9) -> Callable[[Draw], list[Case]]:  # fmt: skip
    """Three texts whose draws are as `fits` says; the budget is `spare` at most below what they
    would select."""

    def three(draw: Draw) -> list[Case]:
        examples: list[Case] = []
        while len(examples) < 3:
            word_of = text(draw, words, pieces)
            draws = random_draws(draw, word_of, how_many, 4)
            budget = len(covered(word_of, draws)) - draw.integer(min(1, spare), spare)
            if budget > 0 and fits(word_of, draws, budget):
                examples.append((word_of, draws, budget))
        return examples

    return three


def apart(word_of: list[int], draws: list[Pair], budget: int) -> bool:
    return len(spans(word_of, draws, 1_000)) == len(draws)


def inside(word_of: list[int], draws: list[Pair], budget: int) -> bool:
    """Spans are apart, and have as many words as were drawn."""
    return all(word_of[t] + n <= max(word_of) for t, n in draws) and apart(word_of, draws, budget)


def too_long(word_of: list[int], draws: list[Pair], budget: int) -> bool:
    return not inside(word_of, draws, budget)


def in_a_word(word_of: list[int], draws: list[Pair], budget: int) -> bool:
    """One draw falls behind the first piece of its word, and spans are apart."""
    return any(word_of[t - 1] == word_of[t] for t, _ in draws) and apart(word_of, draws, budget)


def meeting(word_of: list[int], draws: list[Pair], budget: int) -> bool:
    """A position is drawn that is selected already, and some spans touch or overlap."""
    again = any(t in covered(word_of, draws[:n]) for n, (t, _) in enumerate(draws))
    return again and each_by_itself(word_of, draws, 1_000) != spans(word_of, draws, 1_000)


def met(draw: Draw) -> list[Case]:
    """A span that runs over a selected word, a draw that falls on one, and spans that touch; then
    drawn ones."""
    word_of = [-1, 0, 1, 2, 3, 4, 5, 6, -1]
    plain = [
        (word_of, [(3, 1), (2, 3)], 4),
        (word_of, [(2, 2), (3, 2), (6, 1)], 3),
        (word_of, [(2, 1), (3, 1)], 2),
    ]
    return [*plain, *cases(2, 6, meeting, words=11)(draw)]


def cut_in_a_word(word_of: list[int], draws: list[Pair], budget: int) -> bool:
    taken = covered(word_of, draws, budget)
    ends = [t for t in taken if t + 1 not in taken and word_of[t + 1] == word_of[t]]
    return bool(ends) and apart(word_of, draws, budget)


def cut_behind_selected_words(word_of: list[int], draws: list[Pair], budget: int) -> bool:
    """The span that reaches the budget runs over selected positions before it is cut."""
    sizes = [len(covered(word_of, draws[: n + 1])) for n in range(len(draws))]
    n = next(n for n, size in enumerate(sizes) if size >= budget)
    before, whole = covered(word_of, draws[:n]), covered(word_of, draws[n : n + 1])
    new = covered(word_of, draws[: n + 1], budget) - before
    return sizes[n] > budget and min(before & whole, default=1_000) < max(new)


CHOSEN = "first <= word < first + words"
SPAN = f"[t for t, word in enumerate(word_of) if {CHOSEN}]"
NEW, CUT, FREE = (
    "[t for t in span if t not in taken]", "new[: budget - len(taken)]",
    "if position not in taken:",
)  # fmt: skip
RETURN = "return result"

SPANS = Exercise(
    **written("09.2"),
    solution=spans,
    returns=Items("list of spans", of="pairs (first, last)"),
    see="course_lib.kernels.span_masking.select_spans_reference (it draws for itself, and asks of "
        "the whole batch)",
    when_raised=(
        (r"changed size during iteration", "A set must not change while a loop runs over it: "
         "collect the new positions first, then add them."),
        (r"not subscriptable|unhashable", "A span is a pair (first, last); selected positions are "
         "whole numbers. Keep the two in different variables."),
    ),
    stages=(
        Stage("one span of words of one piece", cases(1, 1, inside)),
        Stage("several spans, apart", cases(1, 2, inside, words=14)),
        Stage("words of several pieces", cases(3, 2, in_a_word, words=12)),
        Stage("the text ends before the span does", cases(1, 1, too_long)),
        Stage("spans that meet or touch, and draws that fall on selected positions", met),
        Stage("the budget is reached inside a word", cases(3, 3, cut_in_a_word, 3, 16)),
        Stage("more draws than are needed", cases(3, 9, cut_behind_selected_words, 9, 20)),
    ),
    mistakes=(
        Edit(FREE, "if True:", "You continue from a selected position. Skip a draw that falls "
             "on one: it selects nothing behind it either."),
        Edit(FREE, "if position in taken:\n            break\n        else:", "You stop at the "
             "first draw that falls on a selected position. Skip it and go on with the next."),
        Edit(SPAN, f"[t for t, word in enumerate(word_of) if t >= position and {CHOSEN}]",
             "Your span starts at the drawn position, inside a word. It must start where that "
             "word starts: whole words are masked."),
        Edit(SPAN, "[t for t, word in enumerate(word_of) if word >= first][:words]", "The length "
             "is counted in pieces. It is drawn in words, and a word has one piece or several."),
        Edit(SPAN, "[t for t in range(position, position + words) if word_of[t : t + 1] > [-1]]",
             "You count *positions* from the drawn one. Start where its word starts, and count "
             "words: a word may have several positions."),
        Edit(CHOSEN, "first <= word <= first + words", "Your spans are one word too long."),
        Edit(CHOSEN, "first < word <= first + words", "Your spans begin one word too late: the "
             "word of the drawn position is the first of the span."),
        Edit(CHOSEN, "max(0, first - words + 1) <= word <= first", "Your spans run to the left. "
             "The drawn position is in their first word; they run to the right."),
        Edit(SPAN, "[t for t, word in enumerate(word_of) if first <= word and t not in taken]; "
             "span = [t for t in span if word_of[t] in sorted({word_of[s] for s in span})[:words]]",
             "Your span skips words that are selected already and runs on until it has `words` "
             "new ones. They count, too: the span is `words` words long."),
        Edit(SPAN, f"{SPAN}; span = span[: next((n for n, t in enumerate(span) if t in taken), "
             "len(span))]", "Your span ends at the first word that is selected already. It "
             "should continue over it: `words` words are counted, selected before or not."),
        Edit(SPAN, f"{SPAN}; span = span * taken.isdisjoint(span)", "A span that meets a selected "
             "position is dropped as a whole. Only a *draw* that falls on one is passed over; a "
             "span may run into selected words."),
        Edit(CUT, "new", "The budget has no effect: you use all draws. Stop when `budget` "
             "positions are selected."),
        Edit(CUT, "new", "You use all draws and keep the leftmost positions. Use the draws in "
             "order, and stop when the budget is reached.",
             more=(("sorted(taken)", "sorted(taken)[:budget]"),)),
        Edit(CUT, "new[: len(new) * (len(taken) < budget)]", "You select the whole last span, "
             "beyond the budget. Cut it where the budget is reached."),
        Edit(CUT, "new[: len(new) * (len(taken) + len(new) <= budget)]", "You skip a span that "
             "does not fit, as in BERT's whole-word masking. Here it is cut where the budget is "
             "reached."),
        Edit(CUT, "[t for t in new if len(taken) < budget and "
             "word_of[t] <= word_of[new[: budget - len(taken)][-1]]]", "You select the whole "
             "last word, beyond the budget. That follows the paper's text; the released program "
             "and this exercise cut at the budget, even inside a word."),
        Edit(CUT, "new[: budget - len(taken) - 1]", "You stop one position before the budget."),
        Edit(CUT, "[t for t in new if len({word_of[s] for s in taken}) < budget]", "The budget is "
             "counted in words. It is a number of positions."),
        Edit(NEW, "span", "You count positions that are selected already against the budget "
             "again. Count only new ones: the last span is cut when `budget` *different* "
             "positions are selected."),
        Edit(f"taken.update({CUT})", "taken.update(span[: max(0, budget - used)]); used += "
             "len(span)", "You add up the lengths of the spans. A position in two of them is "
             "selected once: the budget counts different positions.",
             more=(("taken: set[int] = set()", "taken: set[int] = set(); used = 0"),)),
        Other(span_of_each_draw, "You never merge spans: there is one pair for each draw. Spans "
              "that overlap or touch are one span."),
        Other(each_by_itself, "Spans that touch stay apart in your list. Two that overlap or "
              "touch become one, as in the released code: there is no token between them to "
              "predict from."),
        Other(joined_where_they_overlap, "Spans that share a position are one in your list, spans "
              "that only touch are not. They are one, too: there is no token between them."),
        Edit("if t - 1 in taken:", "if False:", "Each selected position is a span of its own in "
             "your list. Neighbours belong to one span."),
        Edit(RETURN, "return [(first, last + 1) for first, last in result]", "The second number "
             "of your pairs is the position *behind* the span. Expected is its last position."),
        Edit(RETURN, "return [(first, last - first + 1) for first, last in result]", "The "
             "second number of your pairs is a length. Expected is the span's last position."),
        Edit(RETURN, "return sorted(taken)", "This is the list of selected positions. Expected "
             "are pairs: first and last position of each span."),
        Edit(RETURN, "return [(word_of[first], word_of[last]) for first, last in result]", "Your "
             "pairs are numbers of words. Expected are positions."),
    ),
)  # fmt: skip
