"""What other hands might write for the exercises of lecture 05, right and wrong."""

from __future__ import annotations

import random
from functools import partial
from itertools import chain

# mypy: ignore-errors
import numpy as np
import torch
import torch.nn.functional as F

# ---------------------------------------------------------------- 05.1


def embed(ids, table, projection):
    return torch.einsum("bte,eh->bth", F.embedding(ids, table), projection)


def embed_loop(ids, table, projection):
    """Token by token."""
    return torch.stack([torch.stack([table[i] @ projection for i in row]) for row in ids.tolist()])


# ---------------------------------------------------------------- 05.2


def flat(sentences):
    return list(chain.from_iterable(sentences))


def order(give=lambda a, b, z: (flat(a), flat(b), z), swap=lambda rng: rng.random() < 0.5, short=1):
    """Pairs by hand: give(a, b, label) of two lists of sentences."""

    def answer(documents, rng):
        pairs = []
        for document in documents:
            if len(document) > short:
                at = rng.randrange(1, len(document))
                label = int(swap(rng))
                halves = [document[:at], document[at:]]
                pairs.append(give(halves[label], halves[1 - label], label))
        return pairs

    return answer


# ---------------------------------------------------------------- 05.3


def count(V, P, E, H, F, L, sharing):
    once = V * E + P * E + 2 * E + 2 * E + E * H + H
    attention, feed_forward = 4 * H * H + 4 * H + 2 * H, 2 * H * F + F + H + 2 * H
    attentions = L if sharing in ("none", "feed_forward") else 1
    feed_forwards = L if sharing in ("none", "attention") else 1
    return once + attentions * attention + feed_forwards * feed_forward + H * H + H


def count_by_layers(V, P, E, H, F, L, sharing):
    """A set of what exists: what is shared has the same name."""
    half = {"attention": 4 * H * H + 6 * H, "feed_forward": 2 * H * F + F + 3 * H}
    names = {(n, None if sharing in ("all", n) else layer) for n in half for layer in range(L)}
    return sum(half[n] for n, _ in names) + (V + P + 4) * E + (E + 1 + H + 1) * H


def count_one_block_and_no_pooler(V, P, E, H, F, L, sharing):
    return count(V, P, E, H, F, L, "all") - H * H - H


# ---------------------------------------------------------------- 05.4


def layers(which=lambda layer, L, G: layer * G // L, give=lambda states: states):
    """Layers by a rule: which(layer, L, G) is the block."""

    def answer(x, make_block, num_layers, num_groups):
        blocks, states = [make_block() for _ in range(num_groups)], [x]
        for layer in range(num_layers):
            states.append(blocks[which(layer, num_layers, num_groups)](states[-1]))
        return give(states)

    return answer


def layers_by_group(x, make_block, num_layers, num_groups):
    states = [x]
    for _ in range(num_groups):
        block = make_block()
        for _ in range(num_layers // num_groups):
            x = block(x)
            states += [x]
    return tuple(states)


# ---------------------------------------------------------------- 05.5


def lengths(unit, u, longest):
    """Lengths by torch.bucketize, of weights unit / n."""
    weights = torch.tensor([unit / n for n in range(1, longest + 1)], dtype=u.dtype)
    ends = torch.cumsum(weights / weights.sum(), 0)
    return torch.bucketize(u, ends[:-1], right=True) + 1


def lengths_looped(u, longest):
    lengths, total = [], sum(1 / n for n in range(1, longest + 1))
    for x in u.tolist():
        n, reached = 1, 1 / total
        while x >= reached and n < longest:
            n, reached = n + 1, reached + 1 / (n + 1) / total
        lengths.append(n)
    return lengths


# ---------------------------------------------------------------- 05.6


def flops(T, H, F, L, sharing):
    return 2 * L * (4 * T * H * H + 2 * T * T * H + 2 * T * H * F)


def flops_of_products(T, H, F, L, sharing):
    products = [(T, H, H)] * 4 + [(T, H, T), (T, T, H), (T, H, F), (T, F, H)]
    return sum(2 * m * k * n for m, k, n in products * L)


RIGHT = {
    "05.1": [
        lambda ids, table, P: F.linear(F.embedding(ids, table), P.T),
        embed,
        lambda ids, table, P: (table[ids][..., None] * P).sum(-2),
        embed_loop,
    ],
    "05.2": [order(), order(swap=lambda rng: rng.choice((0, 1)))],
    "05.3": [count, count_by_layers, lambda *sizes: torch.tensor(count(*sizes))],
    "05.4": [layers(), layers_by_group, layers(give=torch.stack)],
    "05.5": [partial(lengths, 1), partial(lengths, 60), lengths_looped],
    "05.6": [flops, flops_of_products, lambda *sizes: np.int64(flops(*sizes))],
}
WRONG = {
    "05.1": [
        (lambda *args: 3 * embed(*args), "esult: at ["),
        (lambda ids, table, P: P @ table[ids], "E₂·E₁[x]"),
        (lambda ids, table, P: table[ids] @ torch.ones(7, 2, dtype=table.dtype),
         "table[ids] @ projection"),
        (lambda ids, table, P: F.linear(table[ids], torch.ones(2, 9, dtype=table.dtype)),
         "projection.T"),
    ],
    "05.2": [
        (order(lambda a, b, z: (a, b, 0)), "join the sentences"),
        (order(swap=lambda rng: rng.random() < 0.65), "raction of swapped pairs"),
        (lambda documents, rng: order()(documents, random), "two different results"),
        (order(short=0), "leave it out"),
    ],
    "05.3": [
        (count_one_block_and_no_pooler, "the pooler"),
    ],
    "05.4": [
        (layers(give=lambda states: states[-1]), "a list of all 4: x, and"),
        (torch.no_grad()(layers()), "No gradient leads from the last state"),
        (layers(lambda i, L, G: i // G), "num_layers // num_groups"),
        (layers(lambda i, L, G: i * G / L), "divide with //"),
        (lambda x, make_block, L, G: [x, *(make_block(x) for _ in range(L))], "takes nothing"),
    ],
    "05.5": [
    ],
    "05.6": [
        (lambda T, H, F, L, s: flops(T, H, F, L, s) // 2 - 2 * L * T * T * H,
         "You counted a multiply-add as one"),
    ],
}  # fmt: skip
