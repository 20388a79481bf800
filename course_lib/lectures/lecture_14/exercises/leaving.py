"""Exercise 14.7: rows that are done leave the batch. B rows, H hidden, C classes, L layers.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.teaching.exercises.diagnosis import name_suspect, told
from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    close,
    expect_tensor,
)

# x (B, H), weights of the layers (L, H, H) and of the exits (L, H, C), the confident's threshold
Case = tuple[Tensor, Tensor, Tensor, float]
Cases = Callable[[Draw], list[Case]]
Step = Callable[[Tensor], Tensor]


@torch.no_grad()
def early_exit(
    x: Tensor, layers: Sequence[Step], exits: Sequence[Step], confident: Step
) -> tuple[Tensor, Tensor]:
    """(B, C) the logits of the exit each row took, and (B,) how many layers it went through."""
    under_way = torch.arange(len(x))  # which row of the batch each row of x is
    used = torch.full((len(x),), len(layers))
    answers: Tensor | None = None
    for depth, (layer, leave) in enumerate(zip(layers, exits, strict=True), start=1):
        x = layer(x)
        logits = leave(x)
        answers = logits.new_zeros(len(used), logits.shape[1]) if answers is None else answers
        done = torch.ones_like(under_way).bool() if depth == len(layers) else confident(logits)
        answers[under_way[done]], used[under_way[done]] = logits[done], depth
        under_way, x = under_way[~done], x[~done]
        if not len(x):
            break
    assert answers is not None
    return answers, used


class Seen(NamedTuple):
    """What an answer did: its two results, and how many rows each layer was given.

    empty: the layers that were called with no row at all, counted from 1."""

    logits: Tensor
    used: Tensor
    rows: tuple[int, ...]
    empty: tuple[int, ...]


def observed(answer: Answer) -> Callable[..., Seen]:
    """The answer with layers that count what they are given."""

    def run(x: Tensor, layers: Tensor, exits: Tensor, threshold: float) -> Seen:
        rows, empty = [0] * len(layers), []

        def layer(number: int) -> Step:
            def step(part: Tensor) -> Tensor:
                rows[number] += len(part)
                if not len(part):
                    empty.append(number + 1)
                return (part @ layers[number]).tanh()

            return step

        def leave(number: int) -> Step:
            return lambda part: part @ exits[number]

        def confident(logits: Tensor) -> Tensor:
            return logits.softmax(-1).amax(-1) > threshold

        steps, ends = ([make(n) for n in range(len(layers))] for make in (layer, leave))
        result = call(lambda: answer(x.clone(), steps, ends, confident))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise Mistake(
                "wrong type",
                f"Your function returned {result!r:.60} ({type(result).__name__}); expected two "
                "tensors, the logits (B, C) and how many layers each row went through (B,).",
            )
        logits = expect_tensor(result[0], (len(x), exits.shape[-1]), "logits, a row for each row")
        used = expect_tensor(result[1], (len(x),), "how many layers each row went through")
        return Seen(logits.detach(), used.long(), tuple(rows), tuple(empty))

    return run


right = observed(early_exit)


# ---------------------------------------------------------------- known wrong answers


def _of(
    choose: Callable[[Tensor], Tensor],
    logits: Callable[[Tensor, Tensor], Tensor] | None = None,
    used: Callable[[Tensor, int], Tensor] = lambda first, L: first + 1,
) -> Answer:
    """All layers for all rows; choose(sure (L, B), the last row True) -> the layer each row leaves
    after, counted from 0; logits(all (L, B, C), first) and used(first, L) where they go wrong."""

    def answer(
        x: Tensor, layers: Sequence[Step], exits: Sequence[Step], confident: Step
    ) -> tuple[Tensor, Tensor]:
        found = []
        for layer, leave in zip(layers, exits, strict=True):
            x = layer(x)
            found.append(leave(x))
        sure = torch.stack([confident(one) for one in found])
        sure[-1] = True
        first = choose(sure)
        every = torch.stack(found)
        taken = logits(every, first) if logits else every[first, torch.arange(len(x))]
        return taken, used(first, len(layers))

    return answer


def _first(sure: Tensor) -> Tensor:
    return sure.int().argmax(0)


def _late(sure: Tensor) -> Tensor:
    return (_first(sure) + 1).clamp(max=len(sure) - 1)


def _together(decide: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """One layer for the whole batch: the first at which decide(sure (B,)) holds."""

    def choose(sure: Tensor) -> Tensor:
        layer = next(n for n, one in enumerate(sure) if bool(decide(one)) or n == len(sure) - 1)
        return torch.full((sure.shape[1],), layer)

    return choose


def _last_sure(sure: Tensor) -> Tensor:
    """The last layer at which a row is sure, or the last layer if never."""
    ever = sure[:-1].any(0)
    last = len(sure) - 2 - sure[:-1].flip(0).int().argmax(0)
    return torch.where(ever, last, len(sure) - 1)


def _unsure(sure: Tensor) -> Tensor:
    flipped = ~sure
    flipped[-1] = True
    return _first(flipped)


def _in_order_of_leaving(every: Tensor, first: Tensor) -> Tensor:
    order = first.argsort(stable=True)
    return every[first[order], order]


def _forgotten(every: Tensor, first: Tensor) -> Tensor:
    taken = every[first, torch.arange(len(first))]
    return torch.where((first == len(every) - 1)[:, None], 0.0, taken)


def _as_right(every: Tensor, first: Tensor) -> Tensor:
    return every[first, torch.arange(len(first))]


LEAVING_SUSPECTS = tuple(
    Suspect(key, message, observed(answer))
    for key, message, answer in (
        (
            "nobody leaves early",
            "Every row gets the answer of the last exit. A row takes that of the first exit at "
            "which it is sure.",
            _of(lambda sure: torch.full((sure.shape[1],), len(sure) - 1)),
        ),
        (
            "last exit for all",
            "The layers are counted rightly, but every row gets the answer of the last exit. Take "
            "that of the exit at which it left.",
            _of(_first, lambda every, first: every[-1]),
        ),
        (
            "everybody leaves at once",
            "Every row leaves after the first layer. Only those leave that are sure.",
            _of(lambda sure: torch.zeros(sure.shape[1], dtype=torch.long)),
        ),
        (
            "order lost",
            "The answers stand in the order in which rows left. Keep the number of each row of the "
            "batch, and put each answer at its own place.",
            _of(
                _first,
                _in_order_of_leaving,
                lambda first, L: first.sort().values + 1,
            ),
        ),
        (
            "order lost",
            "The logits stand in the order in which rows left, the numbers of layers do not. Put "
            "each answer at its own place.",
            _of(_first, _in_order_of_leaving),
        ),
        (
            "one layer late",
            "A row that is sure goes through one layer more and takes the answer of that. It takes "
            "the answer it was sure of.",
            _of(_late),
        ),
        (
            "first one sure stops all",
            "The whole batch stops when the first row is sure. The others go on.",
            _of(_together(torch.any)),
        ),
        (
            "waits for all",
            "The whole batch goes on until all rows are sure at the same exit. Each row leaves "
            "when it is sure itself.",
            _of(_together(torch.all)),
        ),
        (
            "last sure exit",
            "A row that was sure is asked again and its answer overwritten by a later one. Once it "
            "has left, it is gone.",
            _of(_last_sure),
        ),
        (
            "unsure ones leave",
            "Those rows leave that are *not* sure.",
            _of(_unsure),
        ),
        (
            "never sure, never answered",
            "Rows that are sure nowhere have no answer, zeros. At the last exit everybody leaves.",
            _of(_first, _forgotten),
        ),
        (
            "never sure, never answered",
            "Rows that are sure nowhere have no answer and no layers. At the last exit everybody "
            "leaves.",
            _of(
                _first,
                _forgotten,
                lambda first, L: torch.where(first == L - 1, 0, first + 1),
            ),
        ),
        (
            "layers not counted to the end",
            "Rows that are sure nowhere have used 0 layers by your count. They went through all.",
            _of(_first, _as_right, lambda first, L: torch.where(first == L - 1, 0, first + 1)),
        ),
        (
            "counted from 0",
            "The answers are right; the layers are counted from 0. A row that leaves after the "
            "first layer has used 1.",
            _of(_first, _as_right, lambda first, L: first),
        ),
        (
            "layers saved",
            "The answers are right; you count the layers that a row was *spared*.",
            _of(_first, _as_right, lambda first, L: L - 1 - first),
        ),
        (
            "all layers counted",
            "The answers are right; but every row is said to have used all layers.",
            _of(_first, _as_right, lambda first, L: torch.full_like(first, L)),
        ),
    )
)


# ---------------------------------------------------------------- inputs


def _case(
    draw: Draw, B: int, L: int, wanted: Callable[[Tensor], bool], threshold: float = 0.7
) -> Case:
    """Drawn until `wanted` holds for the layers that rows use."""
    H, C = 6, 3
    while True:
        case = (
            draw.normal(B, H),
            draw.normal(L, H, H) / H**0.5,
            1.5 * draw.normal(L, H, C),
            threshold,
        )
        if wanted(right(*case).used):
            return case


def _spread(draw: Draw) -> Case:
    """Rows leave after every one of four layers, in no order; more than one goes to the end."""

    def wanted(used: Tensor) -> bool:
        counts = used.bincount(minlength=5)[1:]
        return bool((counts > 0).all()) and int(counts[-1]) > 1 and not bool(_sorted(used))

    return _case(draw, 9, 4, wanted)


def _sorted(used: Tensor) -> bool:
    return torch.equal(used, used.sort().values)


def _one(draw: Draw) -> list[Case]:
    return [_case(draw, 1, 4, lambda used: int(used) == 2), _case(draw, 1, 4, _to_the_end)]


def _to_the_end(used: Tensor) -> bool:
    return int(used) == 4


def _never(draw: Draw) -> list[Case]:
    return [_case(draw, 4, 3, lambda used: True, threshold=2.0)]


def _many(draw: Draw) -> list[Case]:
    return [_spread(draw) for _ in range(3)]


def _apart(draw: Draw) -> Case:
    """Nobody leaves after the first layer, and all are sure at one exit before the last."""
    together = observed(_of(_together(torch.all)))
    while True:
        case = _case(draw, 3, 4, lambda used: int(used.min()) == 2, threshold=0.5)
        if int(together(*case).used[0]) < 4:
            return case


def _all_at_once(draw: Draw) -> list[Case]:
    return [_case(draw, 3, 3, lambda used: True, threshold=0.0)]


def _early(draw: Draw) -> list[Case]:
    """All have left after the second of four layers, some after the first."""
    return [_case(draw, 5, 4, lambda used: used.unique().tolist() == [1, 2], threshold=0.5)]


# ---------------------------------------------------------------- stages


def _ask_answers(cases: Cases) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            mine, theirs = observed(answer)(*case), right(*case)
            if _agree(mine, theirs):
                continue
            pools = [[*_many(draw), _apart(draw)], cases(draw)]
            raise told(
                name_suspect(observed(answer), case, pools, LEAVING_SUSPECTS, _same),
                _example(mine, theirs),
            )

    return ask


def _agree(mine: Seen, theirs: Seen) -> bool:
    return close(mine.logits, theirs.logits) and torch.equal(mine.used, theirs.used)


def _same(mine: Seen, theirs: Seen, _case: Any) -> bool:
    return _agree(mine, theirs)


def _example(mine: Seen, theirs: Seen) -> str:
    wrong = (mine.logits - theirs.logits).abs().nan_to_num(1e9).amax(1) > 1e-6
    row = int((wrong | (mine.used != theirs.used)).nonzero()[0])
    a, b = ([f"{x:.3f}" for x in one.logits[row].tolist()] for one in (mine, theirs))
    return (
        f"Row {row}: you have the logits {', '.join(a)} after {int(mine.used[row])} layers; it is "
        f"{', '.join(b)} after {int(theirs.used[row])}."
    )


def _ask_rows(answer: Answer, draw: Draw) -> None:
    """How many rows each layer is given."""
    for case in (*_many(draw), *_all_at_once(draw)):
        mine, theirs = observed(answer)(*case), right(*case)
        if not _agree(mine, theirs):
            raise Mistake("", _example(mine, theirs))
        if mine.rows == theirs.rows:
            continue
        B, given = len(case[0]), ", ".join(map(str, mine.rows))
        needed = ", ".join(map(str, theirs.rows))
        numbers = f"the layers were given {given} rows; {needed} were still under way."
        if min(mine.rows) >= B:
            raise Mistake(
                "runs all",
                f"The right answers, but {numbers} All layers for all rows save nothing: take out "
                "of x the rows that have left.",
            )
        if mine.rows == (B, *theirs.rows[:-1]):
            raise Mistake(
                "leaves one layer late",
                f"The right answers, but {numbers} Rows leave the batch one layer after they were "
                "sure: take them out before the next layer.",
            )
        raise Mistake("other rows", f"The right answers, but {numbers}")


def _ask_stop(answer: Answer, draw: Draw) -> None:
    """When all have left, no layer is called any more."""
    for case in (*_all_at_once(draw), *_early(draw)):
        mine, theirs = observed(answer)(*case), right(*case)
        if not _agree(mine, theirs):
            raise Mistake("", _example(mine, theirs))
        if mine.empty:
            raise Mistake(
                "goes on with none",
                f"All rows have left, and layer {mine.empty[0]} is still called, with none. Its "
                "call costs time all the same: leave the loop when no row is under way.",
            )


LEAVING = Exercise(
    id="14.7",
    title="Who is done may leave",
    purpose="an early exit that shows on the clock, not only on paper",
    difficulty=3,
    minutes=15,
    signature="my_early_exit(x, layers, exits, confident)",
    statement=(
        "`x` has B rows. `layers` is a list of functions from rows to rows, `exits` a list, as "
        "long, of functions from rows to logits (C for each row); `confident(logits)` is True for "
        "the rows that are sure. After each layer its exit is asked, and rows that are sure take "
        "its logits and leave. At the last exit everybody leaves. Return two tensors in the "
        "batch's own order: the logits (B, C), and how many layers each row went through (B,). A "
        "layer may be given *only rows that have not left*: it counts. When all have left, stop."
    ),
    hints=(
        "Keep a tensor with the numbers of the rows that are still under way: at first "
        "torch.arange(B). It shrinks together with x.",
        "done = confident(logits). The rows done belong to the numbers under_way[done]: write "
        "their logits and depth at these places.",
        "Then x = x[~done] and under_way = under_way[~done], before the next layer.",
        "At the last layer done is True for all, whatever confident says. How many classes there "
        "are, you know after the first exit.",
    ),
    solution=early_exit,
    library=("course_lib.kernels.early_exit:early_exit",),
    when_raised=(
        (
            r"shape mismatch|must match|does not match the shape|IndexError",
            "x shrinks as rows leave, so a mask over the whole batch no longer fits it. Keep the "
            "numbers of the rows under way, and let them shrink with x.",
        ),
        (
            r"Boolean value of Tensor",
            "confident answers for each row, so there is no single yes or no: pick rows with "
            "x[done], and ask done.all() or done.any() where one answer is needed.",
        ),
    ),
    stages=(
        Check("one row", _ask_answers(_one)),
        Check("nobody is ever sure", _ask_answers(_never)),
        Check("rows leave one by one", _ask_answers(_many)),
        Check("each layer meets only rows under way", _ask_rows),
        Check("when all have left, stop", _ask_stop),
    ),
)
