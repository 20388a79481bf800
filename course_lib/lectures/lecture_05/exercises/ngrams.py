"""Exercise 05.5: how many words to hide together.

The solution first, then the known wrong answers, then the stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_lib.teaching.exercises.legacy import (
    Answer,
    Check,
    Draw,
    Exercise,
    Mistake,
    Suspect,
    call,
    expect_tensor,
    find_suspect,
)

Case = tuple[Tensor, int]  # u (n,), longest


def ngram_lengths(u: Tensor, longest: int) -> Tensor:
    """A length from 1 to `longest` for each u (n,), with chances proportional to 1/length."""
    weights = 1 / torch.arange(1, longest + 1, dtype=u.dtype)
    upper = (weights / weights.sum()).cumsum(0)  # length n owns upper[n − 2] ≤ u < upper[n − 1]
    return 1 + (u[:, None] >= upper[:-1]).sum(1)


def _with(
    weigh: Callable[[Tensor], Tensor], total: Callable[[Tensor], float] | None = None
) -> Answer:
    """Lengths by other weights of 1 … longest, divided by another total."""

    def lengths(u: Tensor, longest: int) -> Tensor:
        weights = weigh(torch.arange(1, longest + 1, dtype=u.dtype))
        whole = float(weights.sum()) if total is None else total(weights)
        upper = (weights / whole).cumsum(0)
        return 1 + (u[:, None] >= upper[:-1]).sum(1)

    return lengths


def _falling(ratio: float) -> Answer:
    return _with(lambda n: ratio**n)


NOT_NORMALISED = (
    "The weights 1/n do not sum to one: divide them by their sum (for n up to 3: 1 + 1/2 + 1/3 = "
    "11/6) before you add them up."
)

NGRAM_SUSPECTS = (
    Suspect(
        "counts from zero",
        "Your lengths run from 0 to longest − 1; a run of words has at least one.",
        lambda u, longest: ngram_lengths(u, longest) - 1,
    ),
    Suspect(
        "one too long",
        "Your lengths run to longest + 1, each with its share; the longest run has `longest` "
        "words.",
        lambda u, longest: ngram_lengths(u, longest + 1),
    ),
    Suspect(
        "one too long",
        "Your lengths run from 2 to longest + 1; they run from 1 to longest.",
        lambda u, longest: ngram_lengths(u, longest) + 1,
    ),
    Suspect(
        "longest left out",
        "The longest length never comes: they run from 1 to longest, both included.",
        lambda u, longest: ngram_lengths(u, max(1, longest - 1)),
    ),
    Suspect(
        "uniform",
        "All lengths are equally likely; the chance of n must be proportional to 1/n: long runs "
        "are rarer.",
        _with(torch.ones_like),
    ),
    Suspect(
        "proportional to n",
        "Long runs are the more likely ones: the chance is proportional to n instead of 1/n.",
        _with(lambda n: n),
    ),
    *(
        Suspect(
            "geometric",
            "Each length has a fixed share of the chance of the one before: a geometric series. "
            "SpanBERT draws its lengths so; ALBERT's chances are proportional to 1/n.",
            _falling(ratio),
        )
        for ratio in (0.5, 0.8)
    ),
    Suspect(
        "squared",
        "The chance is proportional to 1/n² instead of 1/n.",
        _with(lambda n: 1 / n**2),
    ),
    Suspect("not normalised", NOT_NORMALISED, _with(lambda n: 1 / n, lambda w: 1.0)),
    Suspect("not normalised", NOT_NORMALISED, _with(lambda n: 1 / n, lambda w: float(len(w)))),
    Suspect(
        "not added up",
        "u is compared with the chances themselves; it must be compared with their running sum: "
        "6/11, 9/11, 11/11.",
        lambda u, longest: 1 + (u[:, None] >= _chances(u, longest)[:-1]).sum(1),
    ),
    Suspect(
        "from the top",
        "The shares are right, but the lengths are laid out from 1 downwards, so that the longest "
        "run owns the smallest u. A small u must give length 1, and the length grows with u.",
        lambda u, longest: ngram_lengths(1 - u, longest),
    ),
)


def _chances(u: Tensor, longest: int) -> Tensor:
    weights = 1 / torch.arange(1, longest + 1, dtype=u.dtype)
    return weights / weights.sum()


def _case(draw: Draw, longest: int, number: int = 400) -> Case:
    """Numbers from 0 to 1, evenly spread, none so near a border that rounding could decide."""
    u = torch.randperm(number, generator=draw.torch) + torch.rand(number, generator=draw.torch)
    u = (u / number).double()
    borders = torch.cat([_chances(u, n).cumsum(0) for n in (longest, longest + 1)])
    return u[((u[:, None] - borders).abs() > 1e-4).all(1)], longest


def _ask_lengths(longest: Sequence[int]) -> Callable[[Answer, Draw], None]:
    def ask(answer: Answer, draw: Draw) -> None:
        like = [_case(draw, n) for n in (3, 5)]
        for n in longest:
            _expect_lengths(answer, _case(draw, n), like)

    return ask


def _expect_lengths(answer: Answer, case: Case, like: Sequence[Case]) -> None:
    u, longest = case
    given = expect_tensor(
        call(answer, *case), tuple(u.shape), "a tensor with one length for each u"
    )
    right = ngram_lengths(*case)
    if _same(given, right, case):
        return
    order = torch.arange(len(u) - 1, -1, -1)
    if not torch.equal(call(answer, u[order], longest), given[order]):
        raise Mistake(
            "draws anew",
            "The same u gave other lengths when it stood elsewhere: your function draws by itself, "
            "or looks at the place. The randomness is in u already.",
        )
    if found := find_suspect(answer, [case, *like], NGRAM_SUSPECTS, _same):
        raise Mistake(found.key, found.message)
    wrong = int((given != right).nonzero()[0])
    raise Mistake(
        "",
        f"For longest={longest} and u={float(u[wrong]):.4f} you have {given[wrong].item()}; it is "
        f"{int(right[wrong])}. The chances are "
        f"{', '.join(f'{p:.3f}' for p in _chances(u, longest).tolist())}.",
    )


def _same(mine: Tensor, theirs: Tensor, _case: object) -> bool:
    return mine.shape == theirs.shape and bool((mine == theirs).all())


NGRAMS = Exercise(
    id="05.5",
    title="How many words to hide together",
    purpose="ALBERT's n-gram masking begins with a length",
    difficulty=2,
    minutes=10,
    signature="my_ngram_lengths(u, longest)",
    statement=(
        "ALBERT hides runs of 1 to `longest` words; a run of n words has a chance proportional to "
        "1/n. `u` (n,) holds numbers drawn evenly from 0 up to, not including, 1. Turn each into a "
        "length: lay the chances of the lengths 1, 2, 3 … side by side from 0 to 1, and see in "
        "which part u lies. Return the lengths (n,), whole numbers."
    ),
    hints=(
        "The weights are 1, 1/2, 1/3 …, up to 1/longest. Divide them by their sum.",
        "For longest=3 the chances are 6/11, 3/11, 2/11, and the parts end at 6/11, 9/11 and 1.",
        "torch.cumsum gives the ends. The length is one more than the number of ends that u has "
        "reached.",
        "(u[:, None] >= ends[:-1]).sum(1) counts them, for all u at once.",
    ),
    solution=ngram_lengths,
    see=(
        "course_lib.objectives.masked_lm.mask_whole_words with max_words=3 draws whole words by "
        "these lengths"
    ),
    stages=(
        Check("runs of one word", _ask_lengths([1])),
        Check("up to two words, up to three", _ask_lengths([2, 3])),
        Check("longer runs", _ask_lengths([4, 7, 10])),
    ),
)
