"""Exercise 09.5: TransE's loss. N facts, K entities, R relations, E size of a vector."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib.objectives.transe import Translations, distances
from course_lib.teaching.exercises.form import Case, Draw, Edit, Exercise, Stage, each, written
from course_lib.teaching.exercises.outputs import Number


def loss(
    entity: Tensor, relation: Tensor, facts: Tensor, side: Tensor, other: Tensor, margin: float
) -> Tensor:
    """Mean of max(0, margin + d(fact) − d(false fact)) (Bordes et al. 2013, equation 1)."""
    false = facts.clone()
    false[torch.arange(len(facts)), 2 * side] = other  # column 0 is the head, column 2 the tail
    d = []
    for triples in (facts, false):
        h, r, t = triples.unbind(-1)
        d.append((entity[h] + relation[r] - entity[t]).abs().sum(-1))
    return (margin + d[0] - d[1]).clamp(min=0).mean()


# ---------------------------------------------------------------- cases


def made(draw: Draw, N: int, side: int | None) -> Case:
    K, R, E = 7, 8, 4  # more relations than entities: an exchanged one is still a row
    facts = torch.stack([draw.ids(0, n - 1, N) for n in (K, R, K)], dim=1)
    sides = draw.ids(0, 1, N) if side is None else torch.full((N,), side)
    there = facts[torch.arange(N), 2 * sides]
    other = (there + draw.ids(1, K - 1, N)) % K  # never the entity itself
    margin = draw.python.choice([0.5, 0.75, 1.5, 2.0])
    return 0.6 * draw.normal(K, E), 0.6 * draw.normal(R, E), facts, sides, other, margin


def case(draw: Draw, N: int, kept: int, side: int | None = None) -> Case:
    """N facts, of which `kept` are nearer than their false fact by the margin; side: 0 or 1 for
    all of them, or drawn."""
    while True:
        entity, relation, facts, sides, other, margin = made(draw, N, side)
        vectors, false = Translations(entity, relation), facts.clone()
        false[torch.arange(N), 2 * sides] = other
        short = margin + distances(vectors, facts) - distances(vectors, false)
        both = side is not None or N == 1 or len(sides.unique()) == 2
        if int((short < -0.05).sum()) == kept and bool((short.abs() > 0.05).all()) and both:
            return entity, relation, facts, sides, other, margin


FALSE, SIDE = "2 * side] = other", "false[torch.arange(len(facts)), 2 * side] = other"
STEP, SIZE = "entity[h] + relation[r] - entity[t]", ".abs().sum(-1)"
GAP, HINGE = "margin + d[0] - d[1]", "(margin + d[0] - d[1]).clamp(min=0).mean()"

FACTS = Exercise(
    **written("09.5"),
    solution=loss,
    returns=Number("loss"),
    see="course_lib.objectives.transe: false_facts draws what is exchanged, then distances and "
        "margin_loss",
    when_raised=(
        (r"ambiguous|bool value of Tensor", "max(0, …) compares single numbers, and the tensor "
         "has N of them. .clamp(min=0) works entry by entry."),
        (r"must be tensors|only integer|used as indices", "entity[h] looks up a row for every "
         "number in h; h must hold whole numbers."),
        (r"out of range|out of bounds", "Heads and tails are rows of `entity`, relations rows of "
         "`relation`. Column 1 of a fact is its relation."),
    ),
    stages=(
        Stage("one fact, its tail exchanged", each(case, (1, 0, 1), (1, 0, 1))),
        Stage("its head exchanged", each(case, (1, 0, 0), (1, 0, 0))),
        Stage("several facts, heads and tails", each(case, (3, 0), (4, 0))),
        Stage("facts that are nearer by the margin already",
              each(case, (1, 1, 1), (3, 1), (6, 2), (5, 3))),
    ),
    gradient=("entity", "relation"),
    mistakes=(
        Edit(GAP, "margin - d[0] + d[1]", "The two distances are exchanged: this loss pulls false "
             "facts together. The fact's own distance counts with plus."),
        Edit(HINGE, "(margin + d[0] - d[1]).mean()", "A fact that is already nearer by the "
             "margin lowers your loss. It should add nothing: max(0, …)."),
        Edit(HINGE, "(margin + d[0] - d[1]).mean().clamp(min=0)", "The mean is taken before "
             "max(0, …). Take the maximum for each fact: a fact that is very near must not "
             "compensate for another."),
        Edit(HINGE, "(margin + d[0].sum() - d[1].sum()).clamp(min=0)", "The distances of all facts "
             "are added up first. Each fact has its own margin and its own maximum."),
        Edit(HINGE, "(margin + d[0] - d[1]).abs().mean()", "You take the absolute value of the "
             "gap. A fact that is nearer by more than the margin adds nothing: max(0, …)."),
        Edit(HINGE, "torch.nn.functional.softplus(margin + d[0] - d[1]).mean()", "This is a "
             "softplus, which never reaches 0. TransE's is a hinge: max(0, …)."),
        Edit(HINGE, "(margin + d[0] - d[1]).clamp(min=0).sum() / (d[1] - d[0] < margin).sum()"
             ".clamp(min=1)", "Your mean is over the facts with a positive loss. Take it over "
             "all N."),
        Edit(GAP, "d[0] - d[1]", "The margin has no effect: a false fact must be farther by "
             "`margin`, not just farther."),
        Edit(GAP, "d[0] - d[1] - margin", "The margin is subtracted: a false fact that is a little "
             "nearer would cost nothing. Add it."),
        Edit(HINGE, "(d[0] - d[1]).clamp(min=margin).mean()", "The maximum is taken with the "
             "margin. It is taken with 0, after the margin was added."),
        Edit(HINGE, "((d[0] - d[1]).clamp(min=0) + margin).mean()", "The margin is added after "
             "max(0, …), so no fact ever has zero loss. Add it before."),
        Edit(HINGE, "d[0].mean()", "This is the mean distance of the facts. If all vectors were "
             "zero, it would be 0: the loss needs the false facts, too."),
        Edit(SIZE, ".square().sum(-1)", "The distance is a sum of squares. Here it is the sum of "
             "absolute differences."),
        Edit(SIZE, ".norm(dim=-1)", "The distance is Euclidean, the root of a sum of squares. Here "
             "it is the sum of absolute differences."),
        Edit(SIZE, ".abs().amax(-1)", "The distance is the largest difference. Use the sum of "
             "all."),
        Edit(STEP, "entity[h] - relation[r] - entity[t]", "The relation is subtracted: it is a "
             "step from the head *to* the tail, head + relation − tail."),
        Edit(STEP, "entity[h] + entity[t] - relation[r]", "Tail and relation are exchanged in the "
             "sum: head + relation should lie near the tail."),
        Edit(STEP, "entity[h] - entity[t]", "The relation has no effect. Head + relation should "
             "lie near the tail."),
        Edit(STEP, "entity[h] * relation[r] - entity[t]", "Head and relation are multiplied. "
             "TransE adds them: a relation is a translation."),
        Edit(STEP, "torch.nn.functional.normalize(entity[h], dim=-1) + relation[r] "
             "- torch.nn.functional.normalize(entity[t], dim=-1)", "You normalise the entities "
             "to length one first. `transe` does that between its steps; do not do it here."),
        Edit(FALSE, "side] = other", "Where `side` is 1 you exchange column 1, the relation. The "
             "columns are head, relation, tail: the tail is column 2."),
        Edit(FALSE, "2 - 2 * side] = other", "Head and tail are the wrong way round: `side` 0 "
             "exchanges the head, 1 the tail."),
        Edit(SIDE, "false[:, 2] = other", "You always exchange the tail. Where `side` is 0, "
             "exchange the head."),
        Edit(SIDE, "false[:, 0] = other", "You always exchange the head. Where `side` is 1, "
             "exchange the tail."),
        Edit(SIDE, "false[:, 0] = false[:, 2] = other", "Both ends are exchanged. A false fact "
             "keeps one of them."),
        Edit(SIDE, "false[:, 2 * side] = other[:, None]", "The columns of *all* facts are "
             "exchanged at once. Row n has its own side: false[torch.arange(N), column]."),
    ),
)  # fmt: skip
