"""Exercise 03.3: the best span of a sequence. T tokens."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import islice

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Items


def best_span(
    start_logits: Tensor, end_logits: Tensor, allowed: Tensor, longest: int
) -> tuple[int, int]:
    """First and last token of the span with the greatest s_i + e_j (section 4.2)."""
    s, e = start_logits.tolist(), end_logits.tolist()  # loops over plain numbers are quicker
    inside = [n for n, ok in enumerate(allowed) if ok]
    best, span = -math.inf, (0, 0)
    for i in inside:
        for j in inside:
            score = s[i] + e[j]
            if i <= j < i + longest and score > best:  # of equal ones the first stays
                best, span = score, (i, j)
    return span


def case(
    draw: Draw, question: int, passage: int, padding: int, longest: int, lower: int = 0,
    outside: int = 0,
) -> Case:  # fmt: skip
    """[CLS] question [SEP] passage [SEP] and padding; no two sums are equal.

    lower: what all logits lose; outside: what those outside the passage gain."""
    first = question + 2
    allowed = torch.zeros(first + passage + 1 + padding, dtype=torch.bool)
    allowed[first : first + passage] = True
    start, end = (4 * draw.normal(len(allowed)) + outside * ~allowed - lower for _ in range(2))
    return start, end, allowed, longest


def small(draw: Draw, longest: int = 100) -> Case:
    """Everything but the passage scores badly."""
    start, end, allowed, _ = case(draw, 2, draw.integer(4, 6), 0, longest)
    return start.where(allowed, -20.0), end.where(allowed, -20.0), allowed, longest


def ends(count: int, before_start: bool) -> Callable[[Draw], list[Case]]:
    """So many cases in which the best end stands before the best start, or does not."""

    def cases(draw: Draw) -> list[Case]:
        endless = (small(draw) for _ in iter(int, 1))
        such = (x for x in endless if bool(x[1].argmax() < x[0].argmax()) is before_start)
        return list(islice(such, count))

    return cases


def good_outside(draw: Draw) -> list[Case]:
    """Question, special tokens and padding score well, too; all sums are below zero in some."""
    return [
        case(draw, draw.integer(2, 3), draw.integer(4, 6), draw.integer(0, 2), 100, *shift)
        for shift in ((0, 0), (15, 0), (0, 100)) * 5
    ]


def tied(draw: Draw) -> list[Case]:
    """Several spans are equally good; outside there are other sums."""
    made = []
    for _ in range(24):
        _, _, allowed, longest = case(draw, 1, 5, 0, draw.integer(3, 5))
        start, end = (4.0 * draw.ids(-1, 1, len(allowed)) + ~allowed for _ in range(2))
        made.append((start.double(), end.double(), allowed, longest))
    return made


def anything(draw: Draw) -> list[Case]:
    lowest, highest = (1, 4, 0, 1), (3, 9, 3, 5)
    sizes = ([*map(draw.integer, lowest, highest), lower] for lower in (0, 0, 15) * 10)
    return [case(draw, *size) for size in sizes]


LISTS = "start_logits.tolist(), end_logits.tolist()"
SOFTMAX = ".softmax(-1).tolist() for x in (start_logits, end_logits))"
SUM = "s[i] + e[j]"
SPAN = "i <= j < i + longest"
I_LOOP, J_LOOP = "for i in inside", "for j in inside"
ANY_START, ANY_END = (I_LOOP, "for i in range(len(s))"), (J_LOOP, "for j in range(len(s))")
BEST_START, BEST_END = "max(inside, key=s.__getitem__)", "max(inside, key=e.__getitem__)"
ALONE = (
    "Each end is chosen by itself: the best start and the best end. They may not belong together: "
    "the end before the start, or far behind it. Compare pairs."
)
NULL = "The null answer, [CLS] with itself, is another question: it is compared afterwards."
worth = partial(Edit, SUM)


def instead(returned: str, say: str) -> Edit:
    return Edit("return span", f"i, j = span\n    return {returned}", say)


BEST = Exercise(
    **written("03.3"),
    solution=best_span,
    returns=Items("span", of="two positions, (start, end)"),
    see="course_lib.objectives.spans.best_spans (a whole batch at once, with the score and that of "
    "the null answer)",
    when_raised=(
        (r"ambiguous", "An if asks one question, and a tensor has many answers. In a loop take one "
         "entry: allowed[i]."),
        (r"index .* out of (bounds|range)",
         "A position beyond the sequence was read: j runs to min(i + longest, T) − 1 at most."),
        (r"Boolean value|bool.*subtract|`-` operator",
         "allowed holds True and False, which cannot be subtracted: ~allowed inverts them."),
    ),
    stages=(
        Stage("best start, best end and best pair agree", ends(3, before_start=False)),
        Stage("the best end stands before the best start", ends(12, before_start=True)),
        Stage("good logits outside the passage", good_outside),
        Stage("at most `longest` tokens", each(small, *[(2,), (3,), (1,)] * 5)),
        Stage("equally good spans", tied),
        Stage("thirty drawn sequences", anything),
    ),
    mistakes=(
        instead(f"{BEST_START}, {BEST_END}", ALONE),
        instead(f"tuple(sorted(({BEST_START}, {BEST_END})))", f"{ALONE} Turning the two round "
                "where they are reversed gives a span whose start was never scored as one."),
        instead(f"(i := {BEST_START}), max(i, {BEST_END})",
              f"{ALONE} Where the end comes first, giving the start alone is not the best either."),
        instead(f"(i, j) if (i := {BEST_START}) <= (j := {BEST_END}) else (0, 0)",
                f"{ALONE} Where the end comes first you give none; there is still a best span."),
        Edit(I_LOOP, f"for i in [{BEST_START}]", "The best start is chosen first, then the best "
             "end for it. A slightly lower start may have a much better end: compare all pairs."),
        Edit(J_LOOP, f"for j in [{BEST_END}]", "The best end is chosen first, then the best start "
             "for it. A slightly lower end may have a much better start: compare all pairs."),
        Edit(SPAN, "j < i + longest",
             "Spans that end before they start are among your candidates: only j ≥ i."),
        Edit(SPAN, "abs(j - i) < longest", "Spans that end before they start are among your "
             "candidates, as long as both ends are near each other: only j ≥ i."),
        Edit(SPAN, "i < j < i + longest",
             "Spans of a single token are missing: j may be equal to i."),
        Edit(*ANY_START, "Question, special tokens and padding are among your candidates. Both "
             "ends must be where `allowed` is True.", more=(ANY_END,)),
        Edit(*ANY_END,
             "Only the start is limited to where `allowed` is True; the end must be, too."),
        Edit(*ANY_START,
             "Only the end is limited to where `allowed` is True; the start must be, too."),
        Edit("if ok]", "if ok or n == 0]", f"[CLS] is among your candidates. {NULL}"),
        Edit("if ok]", "if ok or allowed[n - 1]]", "The [SEP] behind the passage is among your "
             "candidates. It belongs to segment 1, but `allowed` is False there."),
        Edit("best, span = -math.inf", "best, span = s[0] + e[0]",
             f"The span of [CLS] alone is among your candidates. {NULL}"),
        Edit(LISTS, "((x * allowed).tolist() for x in (start_logits, end_logits))",
             "Logits outside the passage became 0, as after logits * allowed. Logits may be "
             "negative, and then 0 is the best. Leave these positions out, or give them minus "
             "infinity.", more=(ANY_START, ANY_END)),
        Edit(SUM, "(s[i] + e[j] if allowed[i] and allowed[j] else -math.inf) if i <= j else 0.0",
             "Where all sums are negative, a pair outside wins: triu() leaves 0 below the "
             "diagonal, and 0 is the best then. Give these pairs minus infinity.",
             more=((SPAN, "j < i + longest"), ANY_START, ANY_END)),
        Edit(SPAN, "i <= j", "`longest` has no effect: a span has at most that many tokens."),
        Edit(SPAN, "i <= j <= i + longest", "Spans of longest + 1 tokens are among your "
             "candidates. From i to j there are j − i + 1."),
        Edit(SPAN, "i <= j < i + longest - 1", "Spans of exactly `longest` tokens are missing. "
             "From i to j there are j − i + 1, and that many are still allowed."),
        Edit(SPAN, "i <= j", "The best span of any length is found and then cut to `longest` "
             "tokens. Where it was cut no answer ends: compare only spans that are short enough.",
             more=(("return span", "return span[0], min(span[1], span[0] + longest - 1)"),)),
        worth("s[i] * e[j]",
              "The two logits are multiplied. They may be negative, and two bad ones would make a "
              "good span. Add them (that is what multiplying their *probabilities* comes to)."),
        Edit(LISTS, f"(x.masked_fill(~allowed, -math.inf){SOFTMAX}",
             "Probabilities are added. Then one sure end carries an impossible other one. Add the "
             "logits, which multiplies the probabilities."),
        Edit(LISTS, f"(x{SOFTMAX}",
             "Probabilities are added. Then one sure end carries an impossible other one. Add the "
             "logits: that is what multiplying the probabilities comes to."),
        worth("s[i]", "Only the start logits decide; the end logits have no effect."),
        worth("e[j]", "Only the end logits decide; the start logits have no effect."),
        worth("min(s[i], e[j])",
              "Your code scores a span by its weaker end; its score is the sum of both."),
        worth("max(s[i], e[j])",
              "Your code scores a span by its stronger end; its score is the sum of both."),
        worth("s[j] + e[i]", "Start and end logits are exchanged: the start is the position with a "
              "good *start* logit."),
        worth("(s[i] + e[j]) / (abs(j - i) + 1)", "The sum is divided by the number of tokens. "
              "Long answers are not worth less: the sum is all that counts."),
        worth("abs(s[i] + e[j])",
              "A large negative sum counts as much as a large positive one. Only large is good."),
        worth("-s[i] - e[j]", "This is the span with the lowest sum; expected the highest."),
        Edit("best, span = -math.inf", "best, span = 0.0", "Where all sums are negative you find "
             "nothing: the best sum so far begins at 0. Begin with -float('inf')."),
        Edit("score > best", "score >= best",
             "Of several spans with the same sum you give the last. Here it is the first that "
             "counts: take a span only if its sum is greater than the best, not if it is equal."),
        Edit("score > best", "(score > best or (score == best and i == span[0]))",
             "Of several spans with the same sum and the same start you give the longest; here it "
             "is the shortest."),
        Edit("score > best", "(score, i - j) > (best, span[0] - span[1])",
             "Of several spans with the same sum you give the shortest. Here the first start "
             "decides, and only then the length."),
        instead("i, j + 1", "The end is one too large: the position behind the span, as in a "
                "Python slice. Expected is the position of its last token."),
        instead("j, i", "The two positions are right, but the end comes first; expected (start, "
             "end)."),
        instead("i, j - i + 1", "The second number is the length of the span; expected the "
                "position of its last token."),
        instead("i - inside[0], j - inside[0]", "The positions are counted from the first token of "
                "the passage; expected those in the sequence, where [CLS] is 0."),
        instead("i, j, best", "Expected two positions, (start, end), without the score."),
        instead("s[i], e[j]",
                "These are logits. They show which span is the best; return its position."),
        instead("best", "This is the best sum; return its position, (start, end)."),
        instead("i * len(s) + j", "This is a position in the flattened table of T × T sums: "
                "divmod(n, T) gives the two."),
    ),
)  # fmt: skip
