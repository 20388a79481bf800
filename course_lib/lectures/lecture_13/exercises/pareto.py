"""Exercise 13.6: which models nobody beats. N models."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.teaching.exercises.form import (
    Case,
    Draw,
    Edit,
    Exercise,
    Other,
    Stage,
    each,
    written,
)
from course_lib.teaching.exercises.outputs import Numbers


def front(scores: Tensor, costs: Tensor) -> Tensor:
    """Which models are not dominated; more score is better, less cost is: (N,), (N,) -> (N,) bool.

    j dominates i if it is no worse in both, and better in one."""
    no_worse = (scores >= scores[:, None]) & (costs <= costs[:, None])  # [i, j]: j against i
    better = (scores > scores[:, None]) | (costs < costs[:, None])
    return ~(no_worse & better).any(dim=1)


# ---------------------------------------------------------------- cases


def case(draw: Draw, models: int) -> Case:
    """All scores and costs differ; dearer models tend to be better."""
    costs = torch.randperm(3 * models, generator=draw.torch)[:models].double() + 1
    scores = 60 + costs + torch.randperm(2 * models, generator=draw.torch)[:models] + 0.01 * costs
    return scores, costs


def by_hand(draw: Draw) -> list[Case]:
    """The statement's models, also in another order."""
    models = torch.tensor([[90.0, 88, 91, 85], [10.0, 5, 12, 8]], dtype=torch.float64)
    order = draw.python.sample(range(4), 4)
    return [(models[0], models[1]), (models[0, order], models[1, order]), case(draw, 5)]


def cheapest(draw: Draw, models: int, apart: float) -> Case:
    """Two models cost the same, less than all others; one's score is higher by `apart`."""
    scores, costs = case(draw, models)
    i, j = draw.python.sample(range(models), 2)
    costs[[i, j]] = costs.min() - 0.5
    scores[j] = scores[i] + apart
    return scores, costs


def best(draw: Draw, models: int, apart: float) -> Case:
    """Two models have one score, above all others; one's cost is higher by `apart`."""
    scores, costs = cheapest(draw, models, apart)
    return 100 - costs, 200 - scores


def sweep(scores: Tensor, costs: Tensor) -> Tensor:
    """A known mistake: from the cheapest up, whoever is better than all before; ties forgotten."""
    undominated, best = torch.zeros(len(scores), dtype=torch.bool), -torch.inf
    for i in costs.argsort(stable=True).tolist():
        undominated[i], best = bool(scores[i] > best), max(best, float(scores[i]))
    return undominated


def neighbour(scores: Tensor, costs: Tensor) -> Tensor:
    """A known mistake: each is compared with the next cheaper one only."""
    order = costs.argsort(stable=True)
    undominated = torch.ones(len(scores), dtype=torch.bool)
    undominated[order[1:]] = scores[order[1:]] > scores[order[:-1]]
    return undominated


NO_WORSE = "(scores >= scores[:, None]) & (costs <= costs[:, None])"
BETTER = "(scores > scores[:, None]) | (costs < costs[:, None])"
RETURN = "~(no_worse & better).any(dim=1)"
NO_SELF = "~torch.eye(len(scores), dtype=torch.bool)"
EARLIER = "torch.ones(len(scores), len(scores)).tril(-1).bool()"
STRICT = "(scores > scores[:, None]) & (costs < costs[:, None])"

PARETO = Exercise(
    **written("13.6"),
    solution=front,
    returns=Numbers("front", shape="N", kind="bool"),
    when_raised=(
        (r"ambiguous", "Comparing tensors gives one True or False a model: join them with & and |, "
         "each comparison in parentheses; .any() and .all() reduce many to one."),
    ),
    stages=(
        Stage("four models", by_hand),
        Stage("no ties", each(case, (6,), (8,), (1,))),
        Stage("two cost the same", each(cheapest, (4, 1.0), (5, 0.5), (6, 1.0), (7, 1.0))),
        Stage("two have the same score", each(best, (4, 1.0), (5, 0.5), (6, 1.0), (7, 1.0))),
        Stage("two are the same in both", each(cheapest, (4, 0.0), (5, 0.0), (6, 0.0))),
    ),
    mistakes=(
        Edit(BETTER, "torch.ones(len(scores), len(scores)).bool()", "Every model dominates itself "
             "in your answer: it is no worse than itself. To dominate is to be better in one of "
             "the two."),
        Edit(BETTER, STRICT, "You require the other one to be better in *both*. It also "
             "dominates if it is better in one and equal in the other."),
        Edit(BETTER, "scores > scores[:, None]", "A model with the same score and a lower cost "
             "dominates, too."),
        Edit(BETTER, "costs < costs[:, None]", "A model with the same cost and a higher score "
             "dominates, too."),
        Edit(BETTER, NO_SELF, "Two models that are the same in both remove each other. Neither "
             "is better than the other: both stay."),
        Edit(BETTER, f"{BETTER} | {EARLIER}", "Of two models that are the same in both you keep "
             "the first only. Neither dominates the other: both stay."),
        Edit(BETTER, f"{BETTER} | {EARLIER}.T", "Of two models that are the same in both you keep "
             "the last only. Neither dominates the other: both stay."),
        Edit(NO_WORSE, "(scores >= scores[:, None]) & (costs >= costs[:, None])", "You look for "
             "high costs. Less is better.",
             more=((BETTER, "(scores > scores[:, None]) | (costs > costs[:, None])"),)),
        Edit(NO_WORSE, "(scores <= scores[:, None]) & (costs <= costs[:, None])", "You look for "
             "low scores. More is better.",
             more=((BETTER, "(scores < scores[:, None]) | (costs < costs[:, None])"),)),
        Edit(NO_WORSE, "(scores >= scores[:, None]) | (costs <= costs[:, None])", "You accept "
             "a model that is no worse in one. It must be no worse in both."),
        Edit(".any(dim=1)", ".any(dim=0)", "You keep models that dominate *no other*. Keep those "
             "that no other dominates."),
        Edit(".any(dim=1)", ".all(dim=1)", "You remove only models beaten by all. One model that "
             "beats it is enough."),
        Edit(RETURN, "(no_worse & better).any(dim=1)", "These are the dominated models. Return "
             "the others."),
        Edit(RETURN, "(no_worse & better).any(dim=0)", "These models dominate another. Another "
             "may dominate them, too."),
        Edit(RETURN, "(scores == scores.max()) | (costs == costs.min())", "You keep the best and "
             "the cheapest. What lies between may be worth its cost, too."),
        Edit(RETURN, "(scores / costs) == (scores / costs).max()", "You keep the best score for "
             "its cost. That is one point; the user decides which trade is right."),
        Edit(RETURN, "(scores >= scores.mean()) & (costs <= costs.mean())", "You keep models "
             "better and cheaper than average. Compare with each model, not with their mean."),
        Other(sweep, "From the cheapest up you keep every model that beats all before, and "
              "forget ties: of two with the same cost keep the better one, whichever comes first; "
              "of two that are the same in both, keep both."),
        Other(neighbour, "You compare each model only with the next cheaper one. An even "
              "cheaper one may beat it."),
    ),
)  # fmt: skip
