"""Which mistake explains an answer: an edit of the solution, or what any number can suffer.

A mistake is named only when it agrees with the answer on every case of the stage and differs from
the solution on one of them, does so again on a second draw of these cases, and passes the stages
which the answer passed. Where several do, those that agree on the other stages' cases as well are
named, as a list of which one is meant. Mistakes that any exercise can have (`shared_mistakes.py`)
are tried where none of the exercise's own explains the answer. Otherwise there is no name, and the
first difference is shown: a wrong name sends a reader the wrong way.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice, permutations
from typing import Any

import torch
from torch import Tensor

from .calling import Guarded
from .form import Answer, Case, Edit, Known
from .outputs import Items, Number, Numbers, Out, alike, as_tensor, numeric, plain
from .question import NAMING_SECONDS, NOTHING, Question
from .shared_mistakes import shared_mistakes

MOST_PAIRS = 400
MOST_NAMED = 3
MOST_ORDERED = 4  # outputs whose order is tried
PAIRS_SECONDS = 2.0  # processor time for all pairs of mistakes
STATISTIC = (
    0.01  # from this tolerance on a number is a statistic, which nothing "turns" or "halves"
)


Names = list[tuple[str, ...]]  # for each explanation the one mistake, or the two, that make it


def in_sentences(names: Names) -> str:
    """Explanations that fit equally well, as sentences; several points are numbered."""
    common = [say for say in names[0] if all(say in name for name in names)]
    rest = [" ".join(say for say in name if say not in common) for name in names]
    if len(names) == 1:
        return (
            names[0][0] if len(common) == 1 else _listed("Your function has two mistakes:", common)
        )
    if common:
        return f"{common[0]}\n" + _listed("Your function has a second mistake, one of these:", rest)
    pairs = "two mistakes, one of these pairs:" if len(names[0]) > 1 else "one of these mistakes:"
    return _listed(f"Your function has {pairs}", rest)


def _listed(sentence: str, points: Sequence[str]) -> str:
    return "\n".join([sentence, *(f"({n}) {point}" for n, point in enumerate(points, 1))])


class Naming:
    """Looks for the name of a mistake, by what the answer and the solution give on the cases."""

    def __init__(self, question: Question, answer: Answer) -> None:
        self.question, self.exercise, self.stage = question, question.exercise, question.stage
        self._answer = answer
        self.cases = question.cases
        self.outputs = [self._output(case) for case in self.cases]
        self.right = [self._of(self.exercise.solution, case) for case in self.cases]

    def _output(self, case: Case) -> Any:
        return self.question.tried(Guarded(self.exercise, self._answer, NAMING_SECONDS), case)

    def _of(self, function: Answer, case: Case) -> Any:
        return self.question.result(function, case)

    @cached_property
    def _others(self) -> list[tuple[Case, Any, Any]]:
        """Cases of other stages, with what answer and solution give on them."""
        solution = self.exercise.solution
        return [
            (case, self._output(case), self._of(solution, case)) for case in self.question.others
        ]

    def name(self, place: int, out: Out) -> tuple[Names, str]:
        """What to say of output number `place`, and how it was found; [] if nobody foresaw it."""
        constant = self._constant(place)
        if constant and not self.stage.observe:  # what is observed may well be always the same
            return [(f"Your {_is(out.name)} the same for all inputs.",)], "constant"
        if exchanged := self._exchanged():
            return [(exchanged,)], "universal"
        outputs, right = ([self._part(x, place) for x in xs] for xs in (self.outputs, self.right))
        if all(_same(a, b, out) for a, b in zip(outputs, right, strict=True)):
            return [], "unforeseen"  # right numbers of the wrong type: no mistake explains that
        own = [known for known in self.exercise.mistakes if not known.endless]
        if names := self._known(((known,) for known in own), place, out):
            return names, "known"
        if constant:
            return [(f"Your {_is(out.name)} the same for all inputs.",)], "constant"
        if out.tol < STATISTIC and (names := self._universal(outputs, right, place, out)):
            return names[:MOST_NAMED], "universal"
        if names := self._known(((known,) for known in shared_mistakes(self.exercise)), place, out):
            return names[:1], "known"
        if names := self._known(self._pairs(), place, out):
            return names, "known"
        return [], "unforeseen"

    def _part(self, observed: Any, place: int) -> Any:
        if observed is NOTHING:
            return NOTHING
        if len(self.question.outs) == 1:
            return observed
        try:
            return observed[place]
        except Exception:
            return NOTHING

    def _constant(self, place: int) -> bool:
        """Whether three answers or more are one and the same though the right ones are not."""
        if any(not alike(plain(x), plain(self.outputs[0])) for x in self.outputs[1:]):
            return False
        own = [*zip(self.outputs, self.right, strict=True), *((a, b) for _, a, b in self._others)]
        pairs = [(self._part(a, place), self._part(b, place)) for a, b in own]
        pairs = [(plain(a), plain(b)) for a, b in pairs if a is not NOTHING and b is not NOTHING]
        varied = any(not alike(b, pairs[0][1]) for _, b in pairs[1:])
        return len(pairs) >= 3 and varied and all(alike(a, pairs[0][0]) for a, _ in pairs)

    def _exchanged(self) -> str:
        """Whether several outputs come in another order."""
        outs = self.question.outs
        if not 2 <= len(outs) <= MOST_ORDERED:
            return ""
        tol = max(out.tol for out in outs)
        pairs = [(plain(a), plain(b)) for a, b in zip(self.outputs, self.right, strict=True)]
        if not all(isinstance(a, (tuple, list)) and len(a) == len(outs) for a, _ in pairs):
            return ""
        if any(alike(a, b, tol) for a, b in pairs):
            return ""
        pairs += [
            (b, b) for b in map(plain, self._right_before(""))
        ]  # where the order does not show
        for order in permutations(range(len(outs))):
            if all(alike([a[i] for i in order], list(b), tol) for a, b in pairs):
                return _in_this_order([out.name for out in outs])
        return ""

    def _right_before(self, name: str) -> list[Any]:
        """The right results on the cases of the stages that were passed."""
        results = [self._of(self.exercise.solution, x) for x in self.question.before(name)]
        return [x for x in results if x is not NOTHING]

    # ---------------------------------------------------------------- known mistakes

    def _known(self, tried: Iterable[tuple[Known, ...]], place: int, out: Out) -> Names:
        agreeing = [known for known in tried if self._agrees(known, place, out)]
        agreeing = [known for known in agreeing if self._holds(known, place, out)]
        if len(agreeing) > 1:
            scores = [self._score(known, place, out) for known in agreeing]
            pairs = zip(agreeing, scores, strict=True)
            agreeing = [known for known, score in pairs if score == max(scores)]
        names = dict.fromkeys(tuple(k.say for k in known) for known in agreeing)
        return list(names)[:MOST_NAMED]

    def of_whole_results(self) -> Names:
        """The exercise's mistakes that return exactly this, however many results it is."""
        tol = max(out.tol for out in self.question.outs)
        seen = [*zip(self.cases, self.outputs, strict=True), *((a, b) for a, b, _ in self._second)]
        names: Names = []
        for known in (known for known in self.exercise.mistakes if not known.endless):
            function = self.exercise.with_mistakes(known)
            pairs = ((b, self._of(function, a)) for a, b in seen if b is not NOTHING)
            if all(alike(plain(x), plain(y), tol) for x, y in pairs):
                names.append((known.say,))
        return names[:MOST_NAMED]

    def _agrees(self, known: tuple[Known, ...], place: int, out: Out) -> bool:
        """Whether it gives what the answer gives on all cases, and differs from the solution."""
        try:
            function = self.exercise.with_mistakes(*known)
        except Exception:  # two edits of one place; a text that is no Python any more
            return False
        differs = False
        for case, output, right in zip(self.cases, self.outputs, self.right, strict=True):
            if output is NOTHING:
                continue
            theirs = self._part(self._of(function, case), place)
            if theirs is NOTHING or not _same(self._part(output, place), theirs, out):
                return False
            differs = differs or not _same(theirs, self._part(right, place), out)
        # Half of a pair may be there by chance.
        return differs and (len(known) == 1 or all(self._shows(k, place, out) for k in known))

    @cached_property
    def _second(self) -> list[tuple[Case, Any, Any]]:
        """The cases drawn a second time, with what answer and solution give, where they do."""
        seen = [(case, self._output(case), self._of(self.exercise.solution, case))
                for case in self.question.again]  # fmt: skip
        return [one for one in seen if one[1] is not NOTHING and one[2] is not NOTHING]

    def _holds(self, known: tuple[Known, ...], place: int, out: Out) -> bool:
        """Whether a mistake explains the second draw, too, and passes what the answer passed."""
        function = self.exercise.with_mistakes(*known)
        for case, output, _ in self._second:
            theirs = self._part(self._of(function, case), place)
            if theirs is NOTHING or not _same(self._part(output, place), theirs, out):
                return False
        return self.question.passed(function)

    def _score(self, known: tuple[Known, ...], place: int, out: Out) -> int:
        """How often it agrees with the answer beyond: in other outputs, on other stages' cases."""
        function = self.exercise.with_mistakes(*known)
        score = 0
        for case, output in zip(self.cases, self.outputs, strict=True):
            score += self._other_outputs(output, self._of(function, case))
        for case, output, _ in self._others:
            theirs = self._of(function, case)
            if output is not NOTHING and theirs is not NOTHING:
                score += _same(self._part(output, place), self._part(theirs, place), out)
                score += self._other_outputs(output, theirs)
        return score

    def _universal(self, outputs: list[Any], right: list[Any], place: int, out: Out) -> Names:
        """What explains both draws, and would not have shown in a stage that was passed."""
        kept = [self._part(b, place) for b in self._right_before(out.name)]
        outputs += [self._part(a, place) for _, a, _ in self._second]
        right += [self._part(b, place) for _, _, b in self._second]
        return [(name,) for name in _universal(outputs, right, out, kept)]

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

    def _shows(self, known: Known, place: int, out: Out) -> bool:
        """Whether a mistake alone changes this output in the stage's cases."""
        function = self.exercise.with_mistakes(known)
        pairs = ((self._of(function, x), y) for x, y in zip(self.cases, self.right, strict=True))
        return any(not _same(self._part(a, place), self._part(b, place), out) for a, b in pairs)

    def _other_outputs(self, output: Any, theirs: Any) -> int:
        """In how many outputs two observations agree, where there are several."""
        outs = self.question.outs
        try:
            pairs = zip(output, theirs, outs, strict=True) if len(outs) > 1 else ()
            return sum(_same(a, b, out) for a, b, out in pairs)
        except Exception:
            return 0


def _in_this_order(names: Sequence[str]) -> str:
    if len(names) == 2:
        return f"The two results are exchanged: return {names[0]} first, then {names[1]}."
    return f"The results are in the wrong order: return {', then '.join(names)}."


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
    ("of the opposite sign", lambda y: -y),
    ("in bits, with logarithms to base 2; expected nats", _float(lambda y: y / math.log(2))),
    ("made with logarithms to base 10; expected natural ones", _float(lambda y: y / math.log(10))),
    ("exp of what is expected", _float(torch.exp)),
    ("the logarithm of what is expected", _float(torch.log)),
    ("1 minus what is expected", lambda y: 1 - y),
    ("1 divided by what is expected", _float(torch.reciprocal)),
    ("in percent; expected a fraction of 1", lambda y: 100 * y),
    ("given as a fraction of 1; expected percent", _float(lambda y: y / 100)),
    ("squared", lambda y: y * y),
    ("the square root of what is expected", _float(torch.sqrt)),
    ("doubled", lambda y: 2 * y),
    ("halved", _float(lambda y: y / 2)),
    ("one too large", lambda y: y + 1),
    ("one too small", lambda y: y - 1),
    ("a thousand times too small", _float(lambda y: y / 1e3)),
    ("a million times too small", _float(lambda y: y / 1e6)),
    ("rounded to a whole number; do not round", _float(lambda y: y.round())),
    ("rounded to one decimal; do not round", _float(lambda y: (10 * y).round() / 10)),
    ("rounded to two decimals; do not round", _float(lambda y: (100 * y).round() / 100)),
    ("rounded to three decimals; do not round", _float(lambda y: (1e3 * y).round() / 1e3)),
    ("rounded to four decimals; do not round", _float(lambda y: (1e4 * y).round() / 1e4)),
)  # fmt: skip
ANY_TENSOR: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("every row repeats the first one", lambda y: y[:1].expand_as(y)),
    ("the rows are in reverse order", lambda y: y.flip(0)),
    ("the last axis is reversed", lambda y: y.flip(-1)),
    ("rows and columns are exchanged", lambda y: y.transpose(-1, -2)),
    ("the first two axes are exchanged", lambda y: y.transpose(0, 1)),
    ("there is one axis too many", lambda y: y[None]),
    ("there is one axis too many, at the end", lambda y: y[..., None]),
    ("everything is divided by the length of the last axis", _float(lambda y: y / y.shape[-1])),
    ("there are only zeros", torch.zeros_like),
    ("True and False are exchanged", lambda y: ~y if y.dtype is torch.bool else y * math.nan),
    ("there is only the total, the sum over everything", lambda y: y.sum()),
    ("there is only the mean over everything", _float(lambda y: y.mean())),
)
ANY_LIST: tuple[tuple[str, Callable[[list[Any]], Any]], ...] = (
    ("is in reverse order", lambda y: y[::-1]),
    ("is sorted", lambda y: sorted(y)),
    ("lacks the last item", lambda y: y[:-1]),
    ("lacks the first item", lambda y: y[1:]),
    ("counts from one; count from zero", lambda y: [i + 1 for i in y]),
    ("counts from zero; count from one", lambda y: [i - 1 for i in y]),
    ("lacks the repeated items", lambda y: list(dict.fromkeys(y))),
)
MEAN_OR_SUM = ("sum", "mean")


def _universal(
    outputs: list[Any], right: list[Any], out: Out, kept: Sequence[Any] = ()
) -> Iterator[str]:
    """What was done to the right values to get these, where one thing explains all of them, and
    leaves those in `kept` as they are."""
    pairs = [(a, b) for a, b in zip(outputs, right, strict=True) if a is not NOTHING]
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
    if out.name.startswith("gradient of") and all(
        a is not None and not bool(a.any()) for a, _ in pairs
    ):
        input_name = out.name.removeprefix("gradient of ")
        yield f"No gradient reaches {input_name}: .item(), .tolist(), .detach(), float(…) lose it."
        return
    for say, change in table:
        if _explains(change, [*pairs, *((b, b) for b in kept)], out):
            yield _universal_sentence(say, change, out)
    if isinstance(out, (Numbers, Number)) and not kept:
        yield from _not_reduced(pairs, out)


def _universal_sentence(say: str, change: Callable[[Any], Any], out: Out) -> str:
    if (say, change) in ANY_LIST:
        return f"Your list {say}."
    if (say, change) in ANY_TENSOR:
        return f"In your {out.name} {say}."
    return f"Your {_is(out.name)} {say}."


def _is(name: str) -> str:
    """The name with its verb: "loss is", "ids at padded positions are"."""
    head = re.split(r" (?:of|at|where|with|over|in|on|that|to)\b", name)[0]
    return f"{name} {'are' if re.search(r'[^aisu]s$', head) else 'is'}"


def _explains(change: Callable[[Any], Any], pairs: list[tuple[Any, Any]], out: Out) -> bool:
    try:
        changed = any(not _same(change(b), b, out) for _, b in pairs)
        return changed and all(a is not None and _same(a, change(b), out) for a, b in pairs)
    except Exception:
        return False


def _not_reduced(pairs: list[tuple[Any, Any]], out: Out) -> Iterator[str]:
    """Whether the sum or the mean over an axis of what was given is right."""
    tensors = [a for a, _ in pairs if isinstance(a, Tensor)]
    if len(tensors) < len(pairs):
        return
    for how in MEAN_OR_SUM:
        for axis in range(-1, -1 - min(a.dim() for a in tensors), -1) if tensors else ():
            if all(a.shape[axis] == 1 for a in tensors):
                continue  # nothing to add up: an axis too many
            if all(alike(getattr(a.double(), how)(axis), b, out.tol) for a, b in pairs):
                yield f"In your {out.name} the {how} over axis {axis} is missing."


def _tensor(x: Any) -> Any:
    try:
        x = list(x) if isinstance(x, tuple) else x
        return as_tensor(plain(x) if not isinstance(x, Tensor) else x.detach())
    except Exception:
        return None
