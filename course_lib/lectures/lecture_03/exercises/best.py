"""Exercise 03.3: the best span of a row. T tokens.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.teaching.exercises.diagnosis import name_suspect, one_number, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
)

from .slips import pools, slip_suspects

Case = tuple[Tensor, Tensor, Tensor, int]  # start and end scores, allowed, all (T,); longest
Cases = Callable[[Draw], list[Case]]
Pair = tuple[int, int]


def best_span(start_scores: Tensor, end_scores: Tensor, allowed: Tensor, longest: int) -> Pair:
    """First and last token of the span with the greatest s_i + e_j (section 4.2)."""
    start, end = start_scores.tolist(), end_scores.tolist()  # loops over plain numbers are quicker
    places = allowed.nonzero().flatten().tolist()
    best, found = -float("inf"), (0, 0)
    for i in places:
        for j in places:
            fits = i <= j < i + longest
            if fits and start[i] + end[j] > best:  # of equal ones the first stays
                best, found = start[i] + end[j], (i, j)
    return found


# ---------------------------------------------------------------- known wrong answers


Score = Callable[[Tensor, Tensor, Tensor], Tensor]  # start and end scores, allowed -> (T, T)


def _sum(start: Tensor, end: Tensor, allowed: Tensor) -> Tensor:
    return start[:, None] + end


def _with(
    *,
    start_in: Callable[[Tensor], Tensor] = lambda allowed: allowed,
    end_in: Callable[[Tensor], Tensor] = lambda allowed: allowed,
    zeros: bool = False,
    null: bool = False,
    longest_is: Callable[[int], int] = lambda longest: longest,
    shortest: int = 1,
    backwards: str = "no",
    begin: float = -torch.inf,
    score: Score = _sum,
    search: str = "pairs",
    tie: str = "first",
    give: Callable[[int, int, Tensor], Pair] = lambda i, j, allowed: (i, j),
) -> Answer:
    """The answer with switches for going wrong.

    start_in, end_in: where an end may be, given `allowed`; zeros: any other place is not left out
    but scores 0; null: [CLS] with itself is a candidate; longest_is: the cap that is kept;
    shortest: the fewest tokens; backwards: may an answer end before it starts: "no", "capped" or
    "any"; begin: the best sum before the first pair; search: "pairs", or one end after the other;
    tie: which of equal spans."""

    def answer(start_scores: Tensor, end_scores: Tensor, allowed: Tensor, longest: int) -> Pair:
        start, end = start_scores, end_scores
        starts, ends = start_in(allowed), end_in(allowed)
        if zeros:
            start, end = start * starts, end * ends
            starts = ends = torch.ones_like(allowed)
        far = _distance(start)
        fits = (far >= shortest - 1) & (far < longest_is(longest))
        if backwards != "no":
            fits |= (far < 0) & ((far > -longest_is(longest)) | (backwards == "any"))
        fits &= starts[:, None] & ends
        fits[0, 0] |= null
        scores = score(start, end, allowed).masked_fill(~fits, -torch.inf)
        if scores.max() <= begin:
            return 0, 0
        start, end = start.masked_fill(~starts, -torch.inf), end.masked_fill(~ends, -torch.inf)
        return give(*_search(search, scores, start, end, tie), allowed)

    return answer


def _search(search: str, scores: Tensor, start: Tensor, end: Tensor, tie: str) -> Pair:
    i, j = int(start.argmax()), int(end.argmax())
    if search == "each alone":
        return i, j
    if search == "each alone, turned":
        return min(i, j), max(i, j)
    if search == "each alone, one token if turned":
        return i, max(i, j)
    if search == "each alone, none if turned":
        return (i, j) if i <= j else (0, 0)
    if search == "start first":
        return i, int(scores[i].argmax())
    if search == "end first":
        return int(scores[:, j].argmax()), j
    equal = (scores == scores.max()).nonzero().tolist()
    order: dict[str, Callable[[list[int]], Any]] = {
        "first": lambda at: at,
        "last": lambda at: [-place for place in at],
        "longest": lambda at: [at[0], -at[1]],
        "shortest": lambda at: [at[1] - at[0], at[0]],
    }
    a, b = min(equal, key=order[tie])
    return a, b


def _anywhere(allowed: Tensor) -> Tensor:
    return torch.ones_like(allowed)


def _and_cls(allowed: Tensor) -> Tensor:
    return allowed | (torch.arange(len(allowed)) == 0)


def _and_sep(allowed: Tensor) -> Tensor:
    return allowed | allowed.roll(1)


def _probabilities(start: Tensor, end: Tensor, allowed: Tensor) -> Tensor:
    """Added; the softmax runs over the passage."""
    start, end = (x.masked_fill(~allowed, -torch.inf).softmax(-1) for x in (start, end))
    return _sum(start, end, allowed)


def _distance(x: Tensor) -> Tensor:
    """(T, T): from the row's place to the column's."""
    places = torch.arange(len(x))
    return places - places[:, None]


ARGMAX_ALONE = (
    "Each end is chosen by itself: the best start and the best end. They may not belong together: "
    "the end before the start, or far behind it. Compare pairs."
)
NULL = "The null answer, [CLS] with itself, is another question: it is compared afterwards."

SLIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "each end by itself": (ARGMAX_ALONE, {"search": "each alone"}),
    "each end by itself, turned round": (
        f"{ARGMAX_ALONE} Turning the two round where they are reversed gives a span whose start "
        "was never scored as one.",
        {"search": "each alone, turned"},
    ),
    "each end by itself, then one token": (
        f"{ARGMAX_ALONE} Where the end comes first, giving the start alone is not the best either.",
        {"search": "each alone, one token if turned"},
    ),
    "each end by itself, or none": (
        f"{ARGMAX_ALONE} Where the end comes first you give none; there is still a best span.",
        {"search": "each alone, none if turned"},
    ),
    "start first": (
        "The best start is chosen first, then the best end for it. A slightly lower start may have "
        "a much better end: compare all pairs.",
        {"search": "start first"},
    ),
    "end first": (
        "The best end is chosen first, then the best start for it. A slightly lower end may have a "
        "much better start: compare all pairs.",
        {"search": "end first"},
    ),
    "ends before it starts": (
        "Spans that end before they start are among your candidates: only j ≥ i.",
        {"backwards": "any"},
    ),
    "ends before it starts, near": (
        "Spans that end before they start are among your candidates, as long as both ends are "
        "near each other: only j ≥ i.",
        {"backwards": "capped"},
    ),
    "no single tokens": (
        "Spans of a single token are missing: j may be equal to i.",
        {"shortest": 2},
    ),
    "allowed has no effect": (
        "Question, special tokens and padding are among your candidates. Both ends must be where "
        "`allowed` is True.",
        {"start_in": _anywhere, "end_in": _anywhere},
    ),
    "only the start is allowed": (
        "Only the start is kept to where `allowed` is True; the end must be there as well.",
        {"end_in": _anywhere},
    ),
    "only the end is allowed": (
        "Only the end is kept to where `allowed` is True; the start must be there as well.",
        {"start_in": _anywhere},
    ),
    "[CLS] allowed": (
        f"[CLS] is among your candidates. {NULL}",
        {"start_in": _and_cls, "end_in": _and_cls},
    ),
    "[SEP] allowed": (
        "The [SEP] behind the passage is among your candidates. It belongs to segment 1, but "
        "`allowed` is False there.",
        {"start_in": _and_sep, "end_in": _and_sep},
    ),
    "null answer": (
        f"The span of [CLS] alone is among your candidates. {NULL}",
        {"null": True},
    ),
    "zero for what is not allowed": (
        "Scores outside the passage became 0, as after scores * allowed. Scores may be negative, "
        "and then 0 is the best. Leave these places out, or give them minus infinity.",
        {"zeros": True},
    ),
    "no cap": (
        "`longest` has no effect: a span has at most so many tokens.",
        {"longest_is": lambda longest: 10**6},
    ),
    "cap one too long": (
        "Spans of longest + 1 tokens are among your candidates. From i to j there are j − i + 1.",
        {"longest_is": lambda longest: longest + 1},
    ),
    "cap one too short": (
        "Spans of exactly `longest` tokens are missing. From i to j there are j − i + 1, and so "
        "many are still allowed.",
        {"longest_is": lambda longest: longest - 1},
    ),
    "product": (
        "The two scores are multiplied. Scores may be negative, and two bad ones would make a good "
        "span. Add them (that is what multiplying their *probabilities* comes to).",
        {"score": lambda start, end, allowed: start[:, None] * end},
    ),
    "sum of probabilities": (
        "Probabilities are added. Then one sure end carries an impossible other one. Add the "
        "scores, which is to multiply the probabilities.",
        {"score": _probabilities},
    ),
    "sum of probabilities of the row": (
        "Probabilities are added. Then one sure end carries an impossible other one. Add the "
        "scores: that is what multiplying the probabilities comes to.",
        {"score": lambda start, end, allowed: _sum(start.softmax(-1), end.softmax(-1), allowed)},
    ),
    "one end only": (
        "Only the start scores decide; the end scores have no effect.",
        {"score": lambda start, end, allowed: start[:, None] + 0 * end},
    ),
    "weaker end": (
        "A span is worth its weaker end in your code; it is worth the sum of both.",
        {"score": lambda start, end, allowed: torch.minimum(start[:, None], end[None, :])},
    ),
    "stronger end": (
        "A span is worth its stronger end in your code; it is worth the sum of both.",
        {"score": lambda start, end, allowed: torch.maximum(start[:, None], end[None, :])},
    ),
    "start and end exchanged": (
        "Start and end scores are exchanged: the start is the place with a good *start* score.",
        {"score": lambda start, end, allowed: end[:, None] + start},
    ),
    "mean over the span": (
        "The sum is divided by the number of tokens. Long answers are not worth less: the sum is "
        "all that counts.",
        {"score": lambda start, end, allowed: _sum(start, end, allowed)
                                              / (_distance(start).abs() + 1)},
    ),
    "sign lost": (
        "A large negative sum counts as much as a large positive one. Only large is good.",
        {"score": lambda start, end, allowed: _sum(start, end, allowed).abs()},
    ),
    "best sum begins at 0": (
        "Where all sums are negative you find nothing: the best sum so far begins at 0. Begin with "
        "-float('inf').",
        {"begin": 0.0},
    ),
    "lowest": (
        "This is the span with the lowest sum; expected the highest.",
        {"score": lambda start, end, allowed: -_sum(start, end, allowed)},
    ),
    "last of equal ones": (
        "Of several spans with the same sum you give the last. Here it is the first that counts: "
        "take a span only if its sum is greater than the best, not if it is equal.",
        {"tie": "last"},
    ),
    "longest of equal ones": (
        "Of several spans with the same sum and the same start you give the longest; here it is "
        "the shortest.",
        {"tie": "longest"},
    ),
    "shortest of equal ones": (
        "Of several spans with the same sum you give the shortest. Here the first start decides, "
        "and only then the length.",
        {"tie": "shortest"},
    ),
    "end excluded": (
        "The end is one too large: the place behind the span, as in a Python slice. Expected is "
        "the place of its last token.",
        {"give": lambda i, j, allowed: (i, j + 1)},
    ),
    "(end, start)": (
        "The right two places, the end first; expected (start, end).",
        {"give": lambda i, j, allowed: (j, i)},
    ),
    "start and length": (
        "The second number is the length of the span; expected the place of its last token.",
        {"give": lambda i, j, allowed: (i, j - i + 1)},
    ),
    "counted in the passage": (
        "The places are counted from the first token of the passage; expected places in the row, "
        "where [CLS] is 0.",
        {"give": lambda i, j, allowed: (i - int(allowed.int().argmax()),
                                        j - int(allowed.int().argmax()))},
    ),
}  # fmt: skip


def _cut_afterwards(
    start_scores: Tensor, end_scores: Tensor, allowed: Tensor, longest: int
) -> Pair:
    i, j = best_span(start_scores, end_scores, allowed, len(allowed))
    return i, min(j, i + longest - 1)


BEST_SUSPECTS = slip_suspects(
    _with,
    SLIPS,
    Suspect(
        "cut afterwards",
        "The best span of any length is found and then cut to `longest` tokens. Where it was cut "
        "no answer ends: compare only spans that are short enough.",
        _cut_afterwards,
    ),
)


# ---------------------------------------------------------------- inputs


def _scores(draw: Draw, tokens: int, step: float = 0.25) -> Tensor:
    """Multiples of `step`, which add without rounding, −8 to 8."""
    top = int(8 / step)
    return step * draw.ids(-top, top, tokens).double()


def _case(
    draw: Draw, question: int, passage: int, padding: int, longest: int, step: float = 0.25
) -> Case:
    """[CLS] question [SEP] passage [SEP] and padding."""
    first = question + 2
    tokens = first + passage + 1 + padding
    allowed = torch.zeros(tokens, dtype=torch.bool)
    allowed[first : first + passage] = True
    return _scores(draw, tokens, step), _scores(draw, tokens, step), allowed, longest


def _only(
    draw: Draw, number: int, wanted: Callable[[Case], bool], make: Callable[[], Case]
) -> list[Case]:
    """So many drawn rows that have what is wanted, and a best span that has no equal."""
    found: list[Case] = []
    while len(found) < number:
        case = make()
        if _equals(case) == 1 and wanted(case):
            found.append(case)
    return found


def _equals(case: Case) -> int:
    """How many spans are as good as the best."""
    start, end, allowed, longest = case
    far = _distance(start)
    fits = (far >= 0) & (far < longest) & allowed[:, None] & allowed
    scores = _sum(start, end, allowed)[fits]
    return int((scores == scores.max()).sum())


def _differs(**switches: Any) -> Callable[[Case], bool]:
    """Where this slip shows."""
    slipped = _with(**switches)
    return lambda case: slipped(*case) != best_span(*case)


def _small(draw: Draw, longest: int = 100) -> Callable[[], Case]:
    """A row in which everything but the passage scores badly."""

    def make() -> Case:
        start, end, allowed, _ = _case(draw, 2, draw.integer(4, 6), 0, longest)
        return start.where(allowed, -9.0), end.where(allowed, -9.0), allowed, longest

    return make


def _in_order(draw: Draw) -> list[Case]:
    """The best start, the best end and the best pair agree."""
    alone = _with(search="each alone")
    return _only(draw, 3, lambda case: alone(*case) == best_span(*case), _small(draw))


def _turned(draw: Draw) -> list[Case]:
    def wanted(case: Case) -> bool:
        i, j = _with(search="each alone")(*case)
        return j < i and _differs(search="start first")(case) and _differs(search="end first")(case)

    return [
        *_only(draw, 3, wanted, _small(draw)),
        *_only(draw, 1, lambda case: len(set(best_span(*case))) == 1, _small(draw)),
    ]


def _outside(draw: Draw) -> list[Case]:
    """Question, special tokens and padding score well, too; the best sum is below zero in one."""

    def make() -> Case:
        return _case(draw, draw.integer(2, 3), draw.integer(4, 6), draw.integer(0, 2), 100)

    def below() -> Case:
        start, end, allowed, longest = make()
        return start - 9, end - 9, allowed, longest

    def tall() -> Case:
        start, end, allowed, longest = make()
        outside = 100.0 * ~allowed
        return start + outside, end + outside, allowed, longest

    everywhere = {"start_in": _anywhere, "end_in": _anywhere}
    return [
        *_only(draw, 2, _differs(**everywhere), make),
        *_only(draw, 1, _differs(**everywhere), below),
        *_only(draw, 1, _differs(**everywhere), tall),
        *_only(draw, 1, _differs(start_in=_anywhere), make),
        *_only(draw, 1, _differs(end_in=_anywhere), make),
        *_only(draw, 1, _differs(start_in=_and_cls), make),
        *_only(draw, 1, _differs(end_in=_and_sep), make),
        *_only(draw, 1, _differs(null=True), make),
    ]


def _capped(draw: Draw) -> list[Case]:
    def make() -> Case:
        return _small(draw, draw.integer(2, 3))()

    return [
        *_only(draw, 2, _differs(longest_is=lambda longest: 10**6), make),
        *_only(draw, 1, _differs(longest_is=lambda longest: longest + 1), make),
        *_only(draw, 1, _differs(longest_is=lambda longest: longest - 1), make),
    ]


def _tied(draw: Draw) -> list[Case]:
    """Several spans are equally good, and another order would give another one."""
    found: list[Case] = []
    for tie in ("last", "longest", "shortest") * 2:
        shows = _differs(tie=tie)
        while True:
            start, end, allowed, longest = _case(draw, 1, 5, 0, draw.integer(3, 5), step=4.0)
            outside = ~allowed * 1.0  # none of these sums is equal to one of the passage
            case = start + outside, end + outside, allowed, longest
            if shows(case):
                found.append(case)
                break
    return found


def _drawn(draw: Draw, number: int = 40) -> list[Case]:
    def make() -> Case:
        sizes = draw.integer(1, 3), draw.integer(4, 9), draw.integer(0, 3), draw.integer(1, 5)
        start, end, allowed, longest = _case(draw, *sizes)
        lower = draw.python.choice((0, 0, 9))  # 9: all sums of the row are below zero
        return start - lower, end - lower, allowed, longest

    return _only(draw, number, lambda case: True, make)


def _everything(draw: Draw) -> list[Case]:
    return [*_drawn(draw), *_tied(draw)]


def _passage_alone(draw: Draw) -> list[Case]:
    return [*_in_order(draw), *_turned(draw), *_turned(draw)]


# ---------------------------------------------------------------- stages


def _ask_span(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case)), best_span(*case)
            if given == right:
                continue
            asked = pools(cases, draw, _everything, _drawn, _passage_alone)
            found = name_suspect(answer, case, asked, BEST_SUSPECTS, _same)
            raise told(found, _example(case, given, right))

    return ask


def _example(case: Case, given: Pair, right: Pair) -> str:
    *_, allowed, longest = case
    places = allowed.nonzero().flatten().tolist()
    scores = ", ".join(f"{n}: {s:g} {e:g}" for n, s, e in _listed(case, {*places, *given, *right}))
    return (
        f"Place: start score, end score. {scores}. Allowed are {places[0]} to {places[-1]}, "
        f"longest {longest}. You have {given}{_worth(case, given)}; it is {right}"
        f"{_worth(case, right)}."
    )


def _listed(case: Case, places: set[int]) -> list[tuple[int, float, float]]:
    start, end, *_ = case
    return [(n, float(start[n]), float(end[n])) for n in sorted(places) if 0 <= n < len(start)]


def _worth(case: Case, span: Pair) -> str:
    start, end, *_ = case
    inside = all(0 <= n < len(start) for n in span)
    return f", worth {float(start[span[0]] + end[span[1]]):g}" if inside else ""


def _read(x: Any) -> Pair:
    if isinstance(x, Tensor) and x.numel() > 1:
        x = x.flatten().tolist()
    if isinstance(x, (tuple, list)) and len(x) == 3:
        raise Mistake(
            "three numbers",
            f"Your function returned {x!r:.60}; expected two places, (start, end), without the "
            "score.",
        )
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise Mistake(
            "wrong type",
            f"Your function returned {x!r:.60} ({type(x).__name__}); expected two places, (start, "
            "end). (A place n in a flattened table of T × T sums is divmod(n, T).)",
        )
    numbers = [one_number(part, "a place") for part in x]
    if not all(n == n and n == int(n) for n in numbers if abs(n) != float("inf")):
        raise Mistake(
            "scores instead of places",
            f"Your function returned {x!r:.60}; expected two places, which are whole numbers. "
            "Scores tell which span is the best; asked for is where it is.",
        )
    return int(numbers[0]), int(numbers[1])


def _same(mine: Any, theirs: Pair, _case: Case) -> bool:
    return _read(mine) == theirs


BEST = Exercise(
    id="03.3",
    title="The best span",
    purpose="two vectors of scores become an answer",
    difficulty=2,
    minutes=12,
    signature="my_best_span(start_scores, end_scores, allowed, longest)",
    statement=(
        "One row of T tokens: [CLS] question [SEP] passage [SEP] and padding. `start_scores` and "
        "`end_scores` (T,) say how well each token would start and end the answer; they may be "
        "negative. `allowed` (T,) is True at the tokens of the passage. Return (i, j), the places "
        "of the first and the last token of the span with the greatest start_scores[i] + "
        "end_scores[j]. Both ends are allowed places, j ≥ i, and the span has at most `longest` "
        "tokens, i and j included. Of equally good spans take the one that starts first, of those "
        "the shortest."
    ),
    hints=(
        "Two loops, over i and over j, and the best sum so far.",
        "Which pairs count? allowed[i] and allowed[j] and i <= j.",
        "The span has j − i + 1 tokens, so at most `longest` means j − i < longest.",
        "Begin with a best sum of -float('inf'), since all sums may be negative, and replace it "
        "only by a greater one: then of equal spans the first stays.",
    ),
    solution=best_span,
    see=(
        "course_lib.objectives.spans.best_spans (a whole batch at once, with the score and that of "
        "the null answer)"
    ),
    when_raised=(
        (
            r"ambiguous",
            "An if asks one question, and a tensor has many answers. In a loop take one entry: "
            "allowed[i].",
        ),
        (
            r"index .* out of (bounds|range)",
            "A place beyond the row was asked for: j runs to min(i + longest, T) − 1 at most.",
        ),
        (
            r"Boolean value|bool.*subtract|`-` operator",
            "allowed holds True and False, which are not subtracted: ~allowed turns them round.",
        ),
    ),
    stages=(
        Check("best start, best end and best pair agree", _ask_span(_in_order)),
        Check("the best end stands before the best start", _ask_span(_turned)),
        Check("good scores outside the passage", _ask_span(_outside)),
        Check("at most `longest` tokens", _ask_span(_capped)),
        Check("equally good spans", _ask_span(_tied)),
        Check("forty drawn rows", _ask_span(_drawn)),
    ),
)
