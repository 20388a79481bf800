"""Exercise 05.5: how many words to hide together. n numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Answer,
    Case,
    Draw,
    Edit,
    Exercise,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Exact, Numbers


def ngram_lengths(u: Tensor, longest: int) -> Tensor:
    """A length from 1 to `longest` for each u (n,), with probabilities proportional to 1/length."""
    lengths = torch.arange(1, longest + 1, dtype=u.dtype)
    weights = 1 / lengths
    ends = (weights / weights.sum()).cumsum(0)  # length n owns ends[n − 2] ≤ u < ends[n − 1]
    return 1 + (u[:, None] >= ends[:-1]).sum(1)


def case(draw: Draw, longest: int, count: int) -> Case:
    """Numbers from 0 to 1, evenly spread, none so near a border that rounding could decide."""
    places = torch.randperm(count, generator=draw.torch)
    u = (places + torch.rand(count, generator=draw.torch)).double() / count
    weights = [1 / torch.arange(1, n + 1).double() for n in (longest, longest + 1)]
    borders = torch.cat([(w / w.sum()).cumsum(0) for w in weights])
    return u[((u[:, None] - borders).abs() > 1e-4).all(1)], longest


short_runs = each(case, (2, 16), (3, 16), (2, 400), (3, 400))


def whether_u_decides(function: Answer, u: Tensor, longest: int) -> str:
    there, back = (torch.as_tensor(function(x, longest)) for x in (u, u.flip(0)))
    return "the same" if torch.equal(there, back.flip(0)) else "another"


WEIGHTS, SUM = "weights = 1 / lengths", "weights / weights.sum()"
NOT_NORMALISED = (
    "The weights 1/n do not sum to one: divide them by their sum (for n up to 3: 1 + 1/2 + 1/3 = "
    "11/6) before you add them up."
)
GEOMETRIC = (
    "of the one before: a geometric series. SpanBERT draws its lengths in this way; ALBERT's "
    "probabilities are proportional to 1/n."
)

NGRAMS = Exercise(
    **written("05.5"),
    solution=ngram_lengths,
    returns=Numbers("lengths", shape="n", kind="int"),
    see=(
        "course_lib.objectives.masked_lm.mask_whole_words with max_words=3 draws whole words by "
        "these lengths"
    ),
    stages=(
        Stage("runs of one word", each(case, (1, 3), (1, 5))),
        Stage("u alone decides", short_runs, whether_u_decides,
              Exact("length that the same u gets at another place")),
        Stage("up to two words, up to three", short_runs),
        Stage("longer runs", each(case, (4, 20), (7, 20), (10, 20), (4, 400), (7, 400), (10, 400))),
    ),
    mistakes=(
        Edit("1 + (u[:, None]", "(u[:, None]",
             "Your lengths run from 0 to longest − 1; a run of words has at least one."),
        Edit("longest + 1", "longest + 2", "Your lengths run to longest + 1, each with its "
             "probability; the longest run has `longest` words."),
        Edit("1 + (u[:, None]", "2 + (u[:, None]",
             "Your lengths run from 2 to longest + 1; they run from 1 to longest."),
        Edit("longest + 1", "max(2, longest)",
             "Your longest length never occurs: lengths run from 1 to longest, both included."),
        Edit("return 1 + (u[:, None] >= ends[:-1]).sum(1)",
             "return 1 + torch.multinomial(weights, len(u), replacement=True)",
             "The same u gives another length at another place: your function draws random numbers "
             "itself, or uses the index. The randomness is already in u."),
        Edit(WEIGHTS, "weights = torch.ones_like(lengths)", "All your lengths are equally likely; "
             "the probability of n must be proportional to 1/n: long runs are rarer."),
        Edit(WEIGHTS, "weights = lengths", "Long runs are more likely here: your probability is "
             "proportional to n instead of 1/n."),
        Edit(WEIGHTS, "weights = 0.5**lengths",
             f"Each length has half the probability {GEOMETRIC}"),
        Edit(WEIGHTS, "weights = 0.8**lengths",
             f"Each length has 0.8 times the probability {GEOMETRIC}"),
        Edit(WEIGHTS, "weights = 1 / lengths**2",
             "The probability is proportional to 1/n² instead of 1/n."),
        Edit(WEIGHTS, "weights = 1 / lengths**0.5",
             "The probability is proportional to 1/√n instead of 1/n."),
        Edit(WEIGHTS, "weights = (-lengths).exp()",
             "The weights are e^−n (a softmax of −n?); they are 1/n."),
        Edit(WEIGHTS, "weights = (1 / lengths).softmax(0)",
             "The weights 1/n went through a softmax; divide them by their sum."),
        Edit(SUM, "weights", NOT_NORMALISED),
        Edit(SUM, "weights / len(weights)", f"You divide by their number. {NOT_NORMALISED}"),
        Edit(f"({SUM}).cumsum(0)", SUM, "You compare u with the probabilities themselves; compare "
             "it with their running sum: 6/11, 9/11, 11/11."),
        Edit("u[:, None] >=", "1 - u[:, None] >=", "The probabilities are correct, but you lay "
             "them out from 1 downwards, so the smallest u gives the longest run. A small u must "
             "give length 1, and the length grows with u."),
    ),
)  # fmt: skip
