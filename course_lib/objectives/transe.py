"""TransE: a relation is a step from head to tail (Bordes et al. 2013, equation 1 and algorithm 1).

For a fact (head, relation, tail), head + relation should lie near tail. Of a fact and a false one,
made by exchanging its head or its tail, the distance of the fact shall be smaller by a margin. E
size of a vector, N triples, K entities."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Translations:
    """What was learned: a vector of length one for each entity (K, E), one for each relation
    (R, E), and the mean loss of every epoch."""

    entity: Tensor
    relation: Tensor
    losses: tuple[float, ...] = ()


def distances(vectors: Translations, triples: Tensor, order: int = 1) -> Tensor:
    """‖head + relation − tail‖ of each triple, (…, 3) -> (…); order 1 adds up absolute differences,
    2 is the Euclidean distance."""
    h, r, t = triples.unbind(-1)
    step = vectors.entity[h] + vectors.relation[r] - vectors.entity[t]  # (…, E)
    return step.norm(p=order, dim=-1)


def margin_loss(true: Tensor, false: Tensor, margin: float = 1.0) -> Tensor:
    """Mean of max(0, margin + d(fact) − d(false fact)): zero once every fact is nearer by the
    margin."""
    return F.relu(margin + true - false).mean()


def false_facts(triples: Tensor, entities: int, generator: torch.Generator) -> Tensor:
    """Each triple with its head or its tail (a coin decides which) replaced by another entity. The
    result may be a true fact, as in the paper's algorithm. (N, 3) -> (N, 3)."""
    N = len(triples)
    side = torch.randint(2, (N,), generator=generator) * 2  # 0 the head, 2 the tail
    step = torch.randint(1, entities, (N,), generator=generator)  # never itself
    changed = triples.clone()
    rows = torch.arange(N)
    changed[rows, side] = (triples[rows, side] + step) % entities
    return changed


def transe(
    triples: Tensor,
    entities: int,
    relations: int,
    *,
    size: int = 32,
    margin: float = 1.0,
    epochs: int = 100,
    batch_size: int = 128,
    learning_rate: float = 0.02,
    order: int = 1,
    seed: int = 0,
) -> Translations:
    """Learn vectors of the facts `triples` (N, 3) by the paper's algorithm with Adam for its plain
    gradient steps; entities are brought back to length one before each batch, relations are not.

    Raises ValueError for numbers outside the graph and for no triple."""
    check_triples(triples, entities, relations)
    generator = torch.Generator().manual_seed(seed)
    bound = 6 / math.sqrt(size)

    def drawn(rows: int) -> Tensor:
        return (2 * torch.rand(rows, size, generator=generator) - 1) * bound

    entity, relation = drawn(entities), F.normalize(drawn(relations), dim=-1)
    vectors = Translations(entity.requires_grad_(), relation.requires_grad_())
    optimizer = torch.optim.Adam([vectors.entity, vectors.relation], lr=learning_rate)
    losses = []
    for epoch in range(epochs):
        optimizer.param_groups[0]["lr"] = learning_rate * (1 - epoch / epochs)
        total = 0.0
        for batch in triples[torch.randperm(len(triples), generator=generator)].split(batch_size):
            with torch.no_grad():
                vectors.entity.copy_(F.normalize(vectors.entity, dim=-1))
            false = false_facts(batch, entities, generator)
            loss = margin_loss(
                distances(vectors, batch, order), distances(vectors, false, order), margin
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        losses.append(total / len(triples))
    result = F.normalize(vectors.entity.detach(), dim=-1)
    return Translations(result, vectors.relation.detach(), tuple(losses))


@torch.no_grad()
def tail_ranks(vectors: Translations, triples: Tensor, known: Tensor, order: int = 1) -> Tensor:
    """At which place, from 1 on, the right tail of each triple stands among all entities: (N,).

    known (M, 3): facts whose tails are not counted as wrong before it ("filtered")."""
    K = len(vectors.entity)
    tails = torch.arange(K)
    ranks = []
    for h, r, t in triples.tolist():
        rows = torch.stack([torch.full((K,), h), torch.full((K,), r), tails], dim=1)
        d = distances(vectors, rows, order)
        other = known[(known[:, 0] == h) & (known[:, 1] == r), 2]
        hidden = torch.zeros(K, dtype=torch.bool)
        hidden[other] = True
        ranks.append(1 + int(((d < d[t]) & ~hidden).sum()))
    return torch.tensor(ranks)


def check_triples(triples: Tensor, entities: int, relations: int) -> None:
    """Raise ValueError unless these are triples of a graph of this size."""
    if triples.dim() != 2 or triples.shape[1] != 3 or not len(triples):
        raise ValueError(
            f"triples of shape {tuple(triples.shape)} were given; expected (N, 3), at least one: "
            "the numbers of head, relation and tail."
        )
    for name, numbers, most in (
        ("entities", triples[:, [0, 2]], entities),
        ("relations", triples[:, 1], relations),
    ):
        low, high = (int(x) for x in numbers.aminmax())
        if low < 0 or high >= most:
            raise ValueError(
                f"{name} from {low} to {high} were given; expected 0 to {most - 1}, those of the "
                "graph."
            )
