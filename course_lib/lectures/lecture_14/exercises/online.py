"""Exercise 14.5: a softmax that sees its row in pieces. T scores, D numbers in a value.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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

Case = tuple[Tensor, Tensor, int]  # scores (T,), values (T, D), chunk
Cases = Callable[[Draw], list[Case]]


def online_softmax(scores: Tensor, values: Tensor, chunk: int) -> Tensor:
    """softmax(scores) @ values, (D,), from one chunk after another."""
    largest = torch.full((), -math.inf, dtype=scores.dtype)
    total, mixed = scores.new_zeros(()), values.new_zeros(values.shape[1])
    for begin in range(0, len(scores), chunk):
        s, v = scores[begin : begin + chunk], values[begin : begin + chunk]
        before, largest = largest, torch.maximum(largest, s.max())
        shrink = (before - largest).exp()  # what was added up was too large by this
        weights = (s - largest).exp()
        total = total * shrink + weights.sum()
        mixed = mixed * shrink + weights @ v
    return mixed / total


# ---------------------------------------------------------------- known wrong answers


def _of(
    shrink_total: Callable[[Tensor], Tensor] = torch.exp,
    shrink_mixed: Callable[[Tensor], Tensor] = torch.exp,
    largest: Callable[[Tensor, Tensor, int], Tensor] = lambda old, s, n: torch.maximum(
        old, s.max()
    ),
    begin_at: float = -math.inf,
    whole: bool = False,
    first_too: bool = False,
    end: Callable[[Tensor, Tensor, int], Tensor] = lambda mixed, total, n: mixed / total,
) -> Answer:
    """The answer with switches: what old largest − new one does to sum and mixture; largest(old,
    scores, chunk number); where it begins; whole: chunks that are full only; first_too: the gap
    of the first chunk is −infinity, and not 0; how it ends."""

    def answer(scores: Tensor, values: Tensor, chunk: int) -> Tensor:
        m = torch.full((), begin_at, dtype=scores.dtype)
        total, mixed = scores.new_zeros(()), values.new_zeros(values.shape[1])
        last = len(scores) // chunk * chunk if whole else len(scores)
        for number, begin in enumerate(range(0, last, chunk)):
            s, v = scores[begin : begin + chunk], values[begin : begin + chunk]
            before, m = m, largest(m, s, number)
            weights, gap = (s - m).exp(), before - m
            gap = torch.zeros_like(gap) if number == 0 and not first_too else gap
            total = total * shrink_total(gap) + weights.sum()
            mixed = mixed * shrink_mixed(gap) + weights @ v
        return end(mixed, total, len(values))

    return answer


def _of_chunks(weigh: Callable[[Tensor, Tensor], Tensor]) -> Answer:
    """Each chunk's own mixture, then weigh(mixtures (n, D), chunk lengths (n,))."""

    def answer(scores: Tensor, values: Tensor, chunk: int) -> Tensor:
        pairs = list(zip(scores.split(chunk), values.split(chunk), strict=True))
        mixtures = torch.stack([s.softmax(0) @ v for s, v in pairs])
        return weigh(mixtures, scores.new_tensor([len(s) for s, _ in pairs]))

    return answer


NOTHING = torch.ones_like
ONLINE_SUSPECTS = (
    Suspect(
        "nothing rescaled",
        "What was added up before is not rescaled when a larger score comes. It was made with "
        "exp(s − old largest) and must be multiplied by exp(old largest − new largest).",
        _of(NOTHING, NOTHING),
    ),
    Suspect(
        "sum not rescaled",
        "The mixture is rescaled when a larger score comes, the sum of the weights is not. Both "
        "hold weights made with the old largest score.",
        _of(NOTHING, torch.exp),
    ),
    Suspect(
        "mixture not rescaled",
        "The sum of the weights is rescaled when a larger score comes, the mixture is not. Both "
        "hold weights made with the old largest score.",
        _of(torch.exp, NOTHING),
    ),
    Suspect(
        "rescaled the wrong way",
        "You multiply by exp(new − old). What was made with the smaller score is too large: it "
        "must shrink, by exp(old − new).",
        _of(lambda gap: (-gap).exp(), lambda gap: (-gap).exp()),
    ),
    Suspect(
        "factor upside down",
        "Your result is not a number. Is the factor upside down? With old at −infinity "
        "exp(new − old) is infinite, and infinite times 0 is nan. What was added up must shrink: "
        "exp(old − new), at first 0.",
        _of(lambda gap: (-gap).exp(), lambda gap: (-gap).exp(), first_too=True),
    ),
    Suspect(
        "own largest, just added",
        "The weights of each chunk are made with the chunk's own largest score, and the sums just "
        "added. Each is too large by a factor of its own: keep the largest score *so far*, and "
        "rescale what was added up by exp(old − new).",
        _of(NOTHING, NOTHING, lambda old, s, n: s.max()),
    ),
    Suspect(
        "mean of softmaxes",
        "Each chunk has a softmax of its own, and the outcomes are averaged. A chunk of large "
        "scores must count for more than one of small scores.",
        _of_chunks(lambda x, n: x.mean(0)),
    ),
    Suspect(
        "mean of softmaxes",
        "Each chunk has a softmax of its own, and the outcomes are averaged by length. A chunk of "
        "large scores must count for more than one of small scores.",
        _of_chunks(lambda x, n: n @ x / n.sum()),
    ),
    Suspect(
        "sum of softmaxes",
        "Each chunk has a softmax of its own, and the outcomes are added up. The weights of *all* "
        "scores together make 1.",
        _of_chunks(lambda x, n: x.sum(0)),
    ),
    Suspect(
        "last chunk alone",
        "This is the softmax of the last chunk alone: what came before is overwritten.",
        _of_chunks(lambda x, n: x[-1]),
    ),
    Suspect(
        "last chunk dropped",
        "The last, shorter chunk is left out. T need not be a multiple of `chunk`: a slice that "
        "reaches too far just ends early. (If T is less than `chunk`, nothing is left: 0/0.)",
        _of(whole=True),
    ),
    Suspect(
        "not divided",
        "The mixture is not divided by the sum of the weights.",
        _of(end=lambda mixed, total, n: mixed),
    ),
    Suspect(
        "divided by T",
        "The mixture is divided by T. Divide it by the sum of the weights.",
        _of(end=lambda mixed, total, n: mixed / n),
    ),
    Suspect(
        "plain mean",
        "This is the plain mean of the values: the scores have no effect.",
        lambda scores, values, chunk: values.mean(0),
    ),
)


# ---------------------------------------------------------------- inputs


def _case(draw: Draw, T: int, chunk: int, D: int = 2, lift: Sequence[float] = ()) -> Case:
    """lift: what is added to the scores of each chunk; else scores in falling order."""
    scores = 2 * draw.normal(T)
    if lift:
        scores += torch.tensor([lift[t // chunk] for t in range(T)], dtype=torch.float64)
    else:
        scores = scores.sort(descending=True).values
    return scores, draw.normal(T, D), chunk


def _one_chunk(draw: Draw) -> list[Case]:
    T = draw.integer(4, 7)
    return [_case(draw, T, T, 3), _case(draw, T, T + 2, 2)]


def _falling(draw: Draw) -> list[Case]:
    return [_case(draw, 12, 4, 3), _case(draw, 15, 5, 2)]


def _short_end(draw: Draw) -> list[Case]:
    return [_case(draw, 4 * n + draw.integer(1, 3), 4, 3) for n in (2, 3)]


def _moving(draw: Draw) -> list[Case]:
    """The largest score is in the middle chunk, and in the last."""
    return [_case(draw, 15, 4, 3, lift) for lift in ((0, 2, 5, 1), (0, 3, 1, 4))]


def _at(*lift: float) -> Cases:
    return lambda draw: [_case(draw, 14, 4, 2, lift)]


# ---------------------------------------------------------------- stages


def _ask_values(cases: Cases, key: str = "", advice: str = "") -> Callable[[Answer, Draw], None]:
    """key, advice: what it means when the result is not a number here."""

    def ask(answer: Answer, draw: Draw) -> None:
        for case in cases(draw):
            given, right = _read(call(answer, *case), case), online_softmax(*case)
            if close(given, right):
                continue
            if key and not bool(given.isfinite().all()):
                raise Mistake(key, advice)
            pools = [_moving(draw), _short_end(draw), cases(draw)]
            scores, _, chunk = case
            raise told(
                name_suspect(answer, case, pools, ONLINE_SUSPECTS, _same),
                f"With {len(scores)} scores from {float(scores.min()):.1f} to "
                f"{float(scores.max()):.1f} in chunks of {chunk}: your first number is "
                f"{float(given[0]):.4f}; it is {float(right[0]):.4f}.",
            )

    return ask


def _read(x: Any, case: Case) -> Tensor:
    return expect_tensor(x, (case[1].shape[1],), "one mixture of the values").detach()


def _same(mine: Any, theirs: Tensor, case: Case) -> bool:
    """Also where neither is a number: 0/0, or 0 times infinity."""
    given = _read(mine, case)
    return close(given, theirs) or bool(given.isnan().all() and theirs.isnan().all())


class _Watch(TorchDispatchMode):
    """Raises Mistake where an operation works on more than a chunk, or on an earlier one.

    most: numbers that the values of a chunk have. Views (slices, splits) work on nothing, and
    new_zeros or zeros_like look at no number of what they are given."""

    def __init__(self, scores: Tensor, most: int, chunk: int) -> None:
        super().__init__()
        self.memory, self.most, self.chunk = scores.untyped_storage().data_ptr(), most, chunk
        self.latest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        op = func._schema.name.split("::")[-1]
        shape_only = op.startswith("new_") or op.endswith("_like")
        if not func.is_view:
            for x in tree_leaves(result if shape_only else (args, kwargs, result)):
                if isinstance(x, Tensor):
                    self.see(op, x)
        return result

    def see(self, op: str, x: Tensor) -> None:
        if x.numel() > self.most:
            raise Mistake(
                "whole row at once",
                f"The right numbers, but {op} works on {x.numel()} numbers at once. A chunk has "
                f"{self.chunk} scores, and with their values {self.most} numbers: never hold more.",
            )
        if x.untyped_storage().data_ptr() == self.memory and x.numel():
            number = x.storage_offset() // self.chunk
            if number < self.latest:
                raise Mistake(
                    "goes back",
                    f"The right numbers, but chunk {number} is read again after chunk "
                    f"{self.latest}. Each is forgotten after use: with a largest score *so far*, "
                    "one pass is enough.",
                )
            self.latest = number


def _ask_chunks(answer: Answer, draw: Draw) -> None:
    scores, values, chunk = _case(draw, 50, draw.integer(4, 6), 4, (0,) * 13)
    found: list[Mistake] = []

    def watched() -> Any:
        try:
            with _Watch(scores, values.shape[1] * chunk, chunk):
                return answer(scores, values, chunk)
        except Mistake as mistake:  # not the answer's own doing: see below
            found.append(mistake)
            return values[0]

    call(watched)
    if found:
        raise found[0]


ONLINE = Exercise(
    id="14.5",
    title="A softmax in pieces",
    purpose="the idea that keeps the T × T table out of memory",
    difficulty=4,
    minutes=15,
    signature="my_online_softmax(scores, values, chunk)",
    statement=(
        "Return, in torch, `softmax(scores) @ values` for `scores` (T,) and `values` (T, D): a "
        "mixture of the values, (D,). You may look at `chunk` scores and their values at a time, "
        "in order, each chunk once; the last can be shorter. No operation may work on more "
        "numbers than a chunk and its values have. Scores can be near 1,000 or −1,000, where exp "
        "overflows or gives 0; they can rise or fall steeply. No score is infinite."
    ),
    hints=(
        "Keep three things: the largest score so far, the sum of the weights so far, the mixture "
        "so far (not yet divided).",
        "Weights of a chunk: exp(s − largest so far). Then no weight is above 1.",
        "A chunk with a larger score comes: what was kept was made with exp(s − old). Multiplied "
        "by exp(old − new) it is made with exp(s − new). That holds for the sum and the mixture.",
        "Begin with the largest score at −infinity: exp(−infinity − new) is 0, and 0 is what has "
        "been added up. Divide at the end.",
    ),
    solution=online_softmax,
    see=(
        "course_lib.kernels.disentangled_triton does this for blocks of queries, forward and "
        "backward"
    ),
    when_raised=(
        (
            r"size mismatch|inconsistent tensor|must match|mat1|vector",
            "The last chunk can be shorter than the others: cut scores and values at the same "
            "places.",
        ),
    ),
    stages=(
        Check("one chunk holds all", _ask_values(_one_chunk)),
        Check("several chunks, the largest score in the first", _ask_values(_falling)),
        Check("the last chunk is shorter", _ask_values(_short_end)),
        Check("a larger score comes later", _ask_values(_moving)),
        Check(
            "scores near 1,000",
            _ask_values(
                _at(1_000, 1_001, 1_000, 1_001),
                "no largest score",
                "With scores near 1,000 your result is not a number: exp(1,000) is infinite. Take "
                "the largest score so far off before exp.",
            ),
        ),
        Check(
            "scores near −1,000",
            _ask_values(
                _at(-1_000, -1_001, -1_000, -1_001),
                "largest begins at 0",
                "With scores near −1,000 your result is not a number: all weights are 0, and 0 is "
                "divided by 0. Does your largest score begin at 0? Begin at −infinity.",
            ),
        ),
        Check(
            "steeply rising",
            _ask_values(
                _at(-1_000, 0, 1_000, 2_000),
                "first chunk's largest",
                "When scores rise steeply your result is not a number: the largest score of the "
                "first chunk is kept for all. It must move up, and what was added up must shrink.",
            ),
        ),
        Check(
            "steeply falling",
            _ask_values(
                _at(2_000, 1_000, 0, -1_000),
                "each chunk's own largest",
                "When scores fall steeply your result is not a number: each chunk's own largest "
                "score takes the place of a larger one before it. Keep the largest *so far*.",
            ),
        ),
        Check("a chunk at a time, each once", _ask_chunks),
    ),
)
