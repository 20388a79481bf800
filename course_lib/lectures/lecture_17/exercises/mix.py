"""Exercise 17.5: two searches joined, by their scores and by their ranks. N documents."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Numbers


def z_scores(scores: Tensor) -> Tensor:
    """Mean 0 and standard deviation 1; all 0 where all scores are equal."""
    spread = scores.std(correction=0)
    return (scores - scores.mean()) / spread if spread > 0 else torch.zeros_like(scores)


def ranks(scores: Tensor) -> Tensor:
    """1 for the largest; equal scores share their mean rank."""
    better = (scores[None, :] > scores[:, None]).sum(dim=1)
    equal = (scores[None, :] == scores[:, None]).sum(dim=1)
    return 1 + better + (equal - 1) / 2


def mix(first: Tensor, second: Tensor, weight: float) -> tuple[Tensor, Tensor]:
    """The weighted mix of the z-scores, and reciprocal rank fusion: (N,) twice -> (N,) twice."""
    mixed = (1 - weight) * z_scores(first) + weight * z_scores(second)
    fused = 1 / (60 + ranks(first)) + 1 / (60 + ranks(second))
    return mixed, fused


# ---------------------------------------------------------------- cases


def case(draw: Draw, documents: int, weight: float) -> Case:
    """BM25-like scores and cosines: of other size and other mean."""
    return 4 * draw.normal(documents).exp(), 0.5 + 0.1 * draw.normal(documents), weight


def tied(draw: Draw, documents: int, weight: float) -> Case:
    """Half of the documents share no word with the query."""
    first, second, weight = case(draw, documents, weight)
    first[draw.python.sample(range(documents), documents // 2)] = 0
    return first, second.mul(10).round() / 10, weight


def unknown(draw: Draw, documents: int, weight: float) -> Case:
    """No document has a word of the query."""
    first, second, weight = case(draw, documents, weight)
    return torch.zeros_like(first), second, weight


def by_hand(draw: Draw) -> list[Case]:
    return [(torch.tensor([10.0, 0]).double(), torch.tensor([0.2, 0.6]).double(), 0.25),
            case(draw, 3, 0.5)]  # fmt: skip


SPREAD, CENTRED = "scores.std(correction=0)", "(scores - scores.mean()) / spread"
Z = "(scores - scores.mean()) / spread if spread > 0 else torch.zeros_like(scores)"
MEAN_RANK = "1 + better + (equal - 1) / 2"
MIXED = "(1 - weight) * z_scores(first) + weight * z_scores(second)"
FUSED = "1 / (60 + ranks(first)) + 1 / (60 + ranks(second))"

MIX = Exercise(
    **written("17.5"),
    solution=mix,
    helpers=(z_scores, ranks),
    returns=(Numbers("mix", shape="N"), Numbers("rank fusion", shape="N", tol=1e-8)),
    see="course_lib.train.searching.weighted_mix and reciprocal_rank_fusion do this for many "
    "queries at once",
    infinite="Your result is not finite. If all scores are equal their standard deviation is "
    "0, and 0/0 is nan: such scores count 0.",
    stages=(
        Stage("two documents, on paper", by_hand, only=("mix",)),
        Stage("mixes with other weights", each(case, (5, 0.3), (6, 0.5), (7, 0.0), (4, 1.0)),
              only=("mix",)),
        Stage("rank fusion", each(case, (3, 0.5), (5, 0.3), (8, 0.9))),
        Stage("equal scores", each(tied, (5, 0.4), (6, 0.5), (9, 0.7))),
        Stage("a search that knows nothing", each(unknown, (4, 0.4), (5, 0.5))),
    ),
    mistakes=(
        Edit(MIXED, "weight * z_scores(first) + (1 - weight) * z_scores(second)", "The weights are "
             "exchanged: `weight` belongs to the second search, 1 − `weight` to the first."),
        Edit(MIXED, "(1 - weight) * first + weight * second", "You mix the raw scores. BM25's "
             "are much larger than cosines here, so they decide. Bring both to mean 0 and standard "
             "deviation 1 first."),
        Edit(MIXED, "z_scores(first) + weight * z_scores(second)", "The first search has weight 1 "
             "in your mix. Its weight is 1 − `weight`."),
        Edit(SPREAD, "scores.std()", "Your standard deviation divides by N − 1, torch's default. "
             "Divide by N: correction=0."),
        Edit(SPREAD, "scores.var(correction=0)", "You divide by the variance. Divide by the "
             "standard deviation, its square root."),
        Edit(CENTRED, "scores / spread", "You do not subtract the mean."),
        Edit(CENTRED, "scores - scores.mean()", "You do not divide the scores by their standard "
             "deviation."),
        Edit(Z, "(scores - scores.min()) / (scores.max() - scores.min()).clamp(min=1e-12)", "You "
             "scale the scores to 0 … 1, from the lowest to the highest. One outlier then decides "
             "the scale; use mean and standard deviation."),
        Edit(MEAN_RANK, "better + (equal - 1) / 2", "Your ranks begin at 0. The best document has "
             "rank 1."),
        Edit(MEAN_RANK, "1 + better", "Equal scores all have the best of their ranks. They share "
             "the *mean*: of ranks 3, 4 and 5 each has 4."),
        Edit(MEAN_RANK, "better + equal", "Equal scores all have the worst of their ranks. They "
             "share the *mean*: of ranks 3, 4 and 5 each has 4."),
        Edit(MEAN_RANK, "1.0 + (-scores).argsort(stable=True).argsort()", "Equal scores have "
             "different ranks, by their order in the corpus. They share the mean of their ranks."),
        Edit(MEAN_RANK, "1.0 + (-scores).argsort(stable=True)", "One argsort gives the *documents* "
             "in order. Their ranks are the argsort of that."),
        Edit(MEAN_RANK, "len(scores) - better - (equal - 1) / 2", "Your rank 1 is the lowest "
             "score. It belongs to the highest."),
        Edit(FUSED, "1 / ranks(first) + 1 / ranks(second)", "The 60 is missing: with 1/rank alone "
             "the first place of one search beats nearly everything."),
        Edit(FUSED, "(1 - weight) / (60 + ranks(first)) + weight / (60 + ranks(second))", "Rank "
             "fusion has no weight: each ranking counts the same."),
        Edit(FUSED, "1 / (60 + ranks(first) + ranks(second))", "You add up ranks. Add up the "
             "*reciprocals*: 1/(60 + rank) of each search."),
        Edit(FUSED, "1 / (60 + ranks(mixed))", "Your fusion ranks the mix. It must use only the "
             "ranks of the two searches, not the scores."),
    ),
)  # fmt: skip
