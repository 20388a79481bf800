"""Which mistake explains an answer: an edit of the solution, or what any number can suffer.

A mistake is named only when it agrees with the answer on every case of the stage and differs from
the solution on one of them, does so again on a second draw of these cases, and passes the stages
which the answer passed. Where several do, those that agree on the other stages' cases as well are
named: "either … or …". Otherwise there is no name, and the first difference is shown: a wrong name
sends a reader the wrong way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice, permutations
from typing import Any

import torch
from torch import Tensor

from .calling import Guarded
from .form import Case, Edit, Exercise, Known, Stage
from .outputs import Items, Number, Numbers, Out, alike, as_tensor, numeric, plain

NOTHING = object()  # where a function gave no value to compare
MOST_PAIRS = 400
MOST_NAMED = 3
MOST_ORDERED = 4  # outputs whose order is tried
PAIRS_SECONDS = 2.0  # processor time for all pairs of mistakes
STATISTIC = (
    0.01  # from this tolerance on a number is a statistic, which nothing "turns" or "halves"
)

Observe = Callable[[Any, Case], Any]


class Observations:
    """What the answer and the solution gave on the cases of the stage, and of the others."""

    def __init__(
        self, exercise: Exercise, stage: Stage, cases: Sequence[Case], others: Sequence[Case],
        answer: Any, observe: Observe, seconds: float,
        passed: Callable[[Any], bool] = lambda function: True,
        again: Callable[[], Sequence[Case]] = tuple, before: Sequence[Case] = (),
    ) -> None:  # fmt: skip
        """passed: whether a function passes the stages that the answer has passed. again: the
        stage's cases, drawn a second time. before: cases of stages that were passed, observed in
        the same way."""
        self.exercise, self.stage, self.observe, self.seconds = exercise, stage, observe, seconds
        self.cases, self.others, self.passed = list(cases), list(others), passed
        self.answer, self.again, self.before = answer, again, before
        self.mine = [self._of(answer, case) for case in (*cases, *others)]
        self.right = [self._of(exercise.solution, case) for case in (*cases, *others)]

    def _of(self, function: Any, case: Case) -> Any:
        """What is observed of a function, or NOTHING where it fails or takes too long."""
        guarded = function if isinstance(function, Guarded) else None
        guarded = guarded or Guarded(
            self.exercise, function, self.seconds, ours=function is not self.answer
        )
        guarded._watching = False
        try:
            return self.observe(guarded, case)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return NOTHING

    def name(self, place: int, out: Out) -> tuple[list[str], str]:
        """What to say of output number `place`, and how it was found; [] if nobody foresaw it."""
        here = len(self.cases)
        parts = [self._part(x, place) for x in self.mine]
        rights = [self._part(x, place) for x in self.right]
        constant = self._constant(parts, rights)
        if constant and not self.stage.observe:  # what is observed may well be always the same
            return [f"Your {out.name}: the same for all inputs."], "constant"
        if exchanged := self._exchanged(here):
            return [exchanged], "universal"
        if all(_same(a, b, out) for a, b in zip(parts[:here], rights[:here], strict=True)):
            return [], "unforeseen"  # right numbers of the wrong type: no mistake explains that
        singles = [(known,) for known in self.exercise.mistakes if not known.endless]
        if found := self._known(singles, parts, rights, place, out, here):
            return found, "known"
        if constant:
            return [f"Your {out.name}: the same for all inputs."], "constant"
        exact = out.tol < STATISTIC
        if exact and (found := self._universal(parts[:here], rights[:here], place, out)):
            return found[:MOST_NAMED], "universal"
        if found := self._known(self._pairs(), parts, rights, place, out, here):
            return found, "known"
        return [], "unforeseen"

    def _part(self, observed: Any, place: int) -> Any:
        if observed is NOTHING:
            return NOTHING
        if len(self.exercise.outs(self.stage)) == 1:
            return observed
        try:
            return observed[place]
        except Exception:
            return NOTHING

    @staticmethod
    def _constant(mine: Sequence[Any], right: Sequence[Any]) -> bool:
        """Whether three answers or more are one and the same though the right ones are not."""
        pairs = [(a, b) for a, b in zip(mine, right, strict=True) if NOTHING is not a]
        pairs = [(a, b) for a, b in pairs if b is not NOTHING]
        given = [a for a, _ in pairs]
        varied = any(not alike(plain(b), plain(pairs[0][1])) for _, b in pairs[1:])
        return len(given) >= 3 and varied and all(alike(plain(x), plain(given[0])) for x in given)

    def _exchanged(self, here: int) -> str:
        """Whether several outputs come in another order."""
        outs = self.exercise.outs(self.stage)
        if not 2 <= len(outs) <= MOST_ORDERED:
            return ""
        tol = max(out.tol for out in outs)
        pairs = [(plain(a), plain(b)) for a, b in zip(self.mine, self.right, strict=True)][:here]
        if not all(isinstance(a, (tuple, list)) and len(a) == len(outs) for a, _ in pairs):
            return ""
        if any(alike(a, b, tol) for a, b in pairs):
            return ""
        passed = [plain(self._of(self.exercise.solution, case)) for case in self.before]
        pairs += [(b, b) for b in passed if b is not NOTHING]  # where the order does not show
        for order in permutations(range(len(outs))):
            if all(alike([a[i] for i in order], list(b), tol) for a, b in pairs):
                return _in_this_order([out.name for out in outs])
        return ""

    # ---------------------------------------------------------------- known mistakes

    def _known(
        self, tried: Iterable[tuple[Known, ...]], mine: list[Any], right: list[Any], place: int,
        out: Out, here: int,
    ) -> list[str]:  # fmt: skip
        agreeing = []
        for known in tried:
            score = self._agreement(known, mine, right, place, out, here)
            if score is not None:
                agreeing.append((score, known))
        agreeing = [(score, known) for score, known in agreeing if self._holds(known, place, out)]
        best = max((score for score, _ in agreeing), default=0)
        named = [known for score, known in agreeing if score == best]
        said = dict.fromkeys("\nAnd: ".join(k.say for k in known) for known in named)
        return list(said)[:MOST_NAMED]

    @cached_property
    def _second(self) -> list[tuple[Case, Any, Any]]:
        """The cases drawn a second time, with what answer and solution give, where they do."""
        seen = [(case, self._of(self.answer, case), self._of(self.exercise.solution, case))
                for case in self.again()]  # fmt: skip
        return [one for one in seen if one[1] is not NOTHING and one[2] is not NOTHING]

    def _holds(self, known: tuple[Known, ...], place: int, out: Out) -> bool:
        """Whether a mistake explains the second draw, too, and passes what the answer passed."""
        function = self.exercise.with_mistakes(*known)
        for case, mine, _ in self._second:
            theirs = self._part(self._of(function, case), place)
            if theirs is NOTHING or not _same(self._part(mine, place), theirs, out):
                return False
        return self.passed(function)

    def _universal(self, mine: list[Any], right: list[Any], place: int, out: Out) -> list[str]:
        """What explains both draws, and would not have shown in a stage that was passed."""
        solution = self.exercise.solution
        kept = [self._part(self._of(solution, case), place) for case in self.before]
        mine += [self._part(a, place) for _, a, _ in self._second]
        right += [self._part(b, place) for _, _, b in self._second]
        return list(_universal(mine, right, out, kept))

    def _pairs(self) -> Iterator[tuple[Known, ...]]:
        edits = [known for known in self.exercise.mistakes if isinstance(known, Edit)]
        edits = [edit for edit in edits if not edit.endless]
        pairs = (
            (a, b)
            for a, b in combinations(edits, 2)
            if not {old for old, _ in a.replacements()} & {old for old, _ in b.replacements()}
        )
        started = time.process_time()
        for pair in islice(pairs, MOST_PAIRS):
            if time.process_time() - started > PAIRS_SECONDS:
                return
            yield pair

    def _agreement(
        self, known: tuple[Known, ...], mine: list[Any], right: list[Any], place: int, out: Out,
        here: int,
    ) -> int | None:  # fmt: skip
        """On how many cases and outputs it agrees with the answer; None unless on all of the
        stage's cases in this output."""
        try:
            function = self.exercise.with_mistakes(*known)
        except Exception:  # two edits of one place; a text that is no Python any more
            return None
        differs, score = False, 0
        for n, case in enumerate((*self.cases, *self.others)):
            if n == here and not differs:
                return None
            if mine[n] is NOTHING:
                continue
            whole = self._of(function, case)
            theirs = self._part(whole, place)
            agrees = theirs is not NOTHING and _same(mine[n], theirs, out)
            if n < here and not agrees:
                return None
            score += agrees + self._other_outputs(self.mine[n], whole)
            differs = differs or (n < here and not _same(theirs, right[n], out))
        if len(known) > 1 and not all(self._shows(one, right, place, out) for one in known):
            return None  # half of such a pair is there by chance
        return score if differs and score else None

    def _shows(self, known: Known, right: list[Any], place: int, out: Out) -> bool:
        """Whether a mistake alone changes this output in the stage's cases."""
        function = self.exercise.with_mistakes(known)
        alone = (self._part(self._of(function, case), place) for case in self.cases)
        return any(not _same(x, y, out) for x, y in zip(alone, right, strict=False))

    def _other_outputs(self, mine: Any, theirs: Any) -> int:
        """In how many outputs two observations agree, where there are several."""
        outs = self.exercise.outs(self.stage)
        try:
            pairs = zip(mine, theirs, outs, strict=True) if len(outs) > 1 else ()
            return sum(_same(a, b, out) for a, b, out in pairs)
        except Exception:
            return 0


def _in_this_order(names: Sequence[str]) -> str:
    if len(names) == 2:
        return f"The two results are exchanged: return {names[0]} first, then {names[1]}."
    return f"The results come in another order: return {', then '.join(names)}."


def _same(a: Any, b: Any, out: Out) -> bool:
    if isinstance(out, Items):
        try:
            return out.same(a, b)
        except TypeError:  # a mistake may give what is no list at all
            return alike(plain(a), plain(b), out.tol)
    if isinstance(out, Number) or not isinstance(b, Tensor):
        a, b = plain(a), plain(b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        a, b = list(a), list(b)
    if isinstance(out, Numbers):  # also a list of tensors for a tensor
        a, b = (_tensor(x) if isinstance(x, (list, tuple)) else x for x in (a, b))
        if a is None or b is None:
            return False
    return alike(a, b, out.tol)


# ---------------------------------------------------------------- what any number can suffer


def _float(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda y: f(y.double())


ANY_NUMBER: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("the sign is turned", lambda y: -y),
    ("the logarithm has base 2 (bits); expected nats", _float(lambda y: y / math.log(2))),
    ("the logarithm has base 10; expected the natural one", _float(lambda y: y / math.log(10))),
    ("this is exp of it", _float(torch.exp)),
    ("this is its logarithm", _float(torch.log)),
    ("this is 1 minus it", lambda y: 1 - y),
    ("this is 1 divided by it", _float(torch.reciprocal)),
    ("it is in percent; expected a fraction of 1", lambda y: 100 * y),
    ("it is a fraction of 1; expected percent", _float(lambda y: y / 100)),
    ("it is squared", lambda y: y * y),
    ("this is its square root", _float(torch.sqrt)),
    ("it is doubled", lambda y: 2 * y),
    ("it is halved", _float(lambda y: y / 2)),
    ("it is one too large", lambda y: y + 1),
    ("it is one too small", lambda y: y - 1),
    ("it is a thousand times too small", _float(lambda y: y / 1e3)),
    ("it is a million times too small", _float(lambda y: y / 1e6)),
    ("it is rounded to a whole number; do not round", _float(lambda y: y.round())),
    ("it is rounded to one decimal; do not round", _float(lambda y: (10 * y).round() / 10)),
    ("it is rounded to two decimals; do not round", _float(lambda y: (100 * y).round() / 100)),
    ("it is rounded to three decimals; do not round", _float(lambda y: (1e3 * y).round() / 1e3)),
    ("it is rounded to four decimals; do not round", _float(lambda y: (1e4 * y).round() / 1e4)),
)  # fmt: skip
ANY_TENSOR: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("the first row stands in every row", lambda y: y[:1].expand_as(y)),
    ("the rows come in opposite order", lambda y: y.flip(0)),
    ("the last axis runs backwards", lambda y: y.flip(-1)),
    ("rows and columns are exchanged", lambda y: y.transpose(-1, -2)),
    ("the first two axes are exchanged", lambda y: y.transpose(0, 1)),
    ("there is an axis too many", lambda y: y[None]),
    ("there is an axis too many, at the end", lambda y: y[..., None]),
    ("it is divided by the length of the last axis", _float(lambda y: y / y.shape[-1])),
    ("it is all zeros", torch.zeros_like),
    ("True and False are exchanged", lambda y: ~y if y.dtype is torch.bool else y * math.nan),
    ("only the total is there, the sum over all", lambda y: y.sum()),
    ("only the mean over all is there", _float(lambda y: y.mean())),
)
ANY_LIST: tuple[tuple[str, Callable[[list[Any]], Any]], ...] = (
    ("comes in opposite order", lambda y: y[::-1]),
    ("is sorted", lambda y: sorted(y)),
    ("lacks the last item", lambda y: y[:-1]),
    ("lacks the first item", lambda y: y[1:]),
    ("counts from one; count from zero", lambda y: [i + 1 for i in y]),
    ("counts from zero; count from one", lambda y: [i - 1 for i in y]),
    ("holds no item twice", lambda y: list(dict.fromkeys(y))),
)
MEAN_OR_SUM = ("sum", "mean")


def _universal(
    mine: list[Any], right: list[Any], out: Out, kept: Sequence[Any] = ()
) -> Iterator[str]:
    """What was done to the right values to get these, where one thing explains all of them, and
    leaves those in `kept` as they are."""
    pairs = [(a, b) for a, b in zip(mine, right, strict=True) if a is not NOTHING]
    pairs = [(a, b) for a, b in pairs if b is not NOTHING]
    if not pairs:
        return
    table: tuple[tuple[str, Callable[[Any], Any]], ...] = ()
    if isinstance(out, (Number, Numbers)) and all(numeric(b) for _, b in pairs):
        pairs = [(_tensor(a), as_tensor(b).detach()) for a, b in pairs]
        kept = [as_tensor(b).detach() for b in kept if numeric(b)]
        if not any(bool(b.any()) for _, b in pairs):
            return  # exp of nothing, 1 minus nothing, one more than nothing: no name for them
        table = (*ANY_NUMBER, *(ANY_TENSOR if isinstance(out, Numbers) else ()))
    elif isinstance(out, Items) and out.ordered:
        pairs = [(plain(a), out.arranged(b)) for a, b in pairs]
        kept = [out.arranged(b) for b in kept if b is not NOTHING]
        table = ANY_LIST
    for say, change in table:
        if _explains(change, [*pairs, *((b, b) for b in kept)], out):
            yield f"Your {out.name}: {say}." if table is not ANY_LIST else f"Your list {say}."
    if isinstance(out, (Numbers, Number)) and not kept:
        yield from _not_reduced(pairs, out)


def _explains(change: Callable[[Any], Any], pairs: list[tuple[Any, Any]], out: Out) -> bool:
    try:
        changed = any(not _same(change(b), b, out) for _, b in pairs)
        return changed and all(a is not None and _same(a, change(b), out) for a, b in pairs)
    except Exception:
        return False


def _not_reduced(pairs: list[tuple[Any, Any]], out: Out) -> Iterator[str]:
    """Whether the sum or the mean over an axis of what was given is right."""
    given = [a for a, _ in pairs if isinstance(a, Tensor)]
    if len(given) < len(pairs):
        return
    for how in MEAN_OR_SUM:
        for axis in range(-1, -1 - min(a.dim() for a in given), -1) if given else ():
            if all(a.shape[axis] == 1 for a in given):
                continue  # nothing to add up: an axis too many
            if all(alike(getattr(a.double(), how)(axis), b, out.tol) for a, b in pairs):
                yield f"Your {out.name}: the {how} over axis {axis} is still to be taken."


def _tensor(x: Any) -> Any:
    try:
        x = list(x) if isinstance(x, tuple) else x
        return as_tensor(plain(x) if not isinstance(x, Tensor) else x.detach())
    except Exception:
        return None
