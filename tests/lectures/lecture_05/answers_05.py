"""What other hands might write for the exercises of lecture 05, right and wrong."""

from __future__ import annotations

import copy
import random
from itertools import chain

# mypy: ignore-errors
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# ---------------------------------------------------------------- 05.1


def embed(before=lambda x: x, after=lambda x: x):
    """Look-up and projection by other calls than the solution's, with one thing changed."""

    def answer(ids, table, projection):
        rows = before(F.embedding(ids, table))
        return after(torch.einsum("bte,eh->bth", rows, projection))

    return answer


def embed_transposed(ids, table, projection):
    square = projection.shape[0] == projection.shape[1]
    return F.linear(table[ids], projection if square else projection.T)


def embed_loop(change):
    """Token by token."""

    def answer(ids, table, projection):
        rows = [[change(table[i], projection) for i in row] for row in ids.tolist()]
        return torch.stack([torch.stack(row) for row in rows])

    return answer


def embed_one_hot(ids, table, projection):
    return F.one_hot(ids, len(table)).to(table.dtype) @ table @ projection


# ---------------------------------------------------------------- 05.2


def count(**wrong):
    """The count written part by part; a keyword replaces a part by f(V, P, E, H, F, L, sharing)."""

    def answer(V, P, E, H, F, L, sharing):
        parts = {
            "tokens": V * E, "positions": P * E, "segments": 2 * E, "norm": 2 * E,
            "projection": E * H + H,
            "attention": 4 * H * H + 4 * H, "attention_norm": 2 * H,
            "feed_forward": 2 * H * F + F + H, "output_norm": 2 * H,
            "attend": L if sharing in ("none", "feed_forward") else 1,
            "feed": L if sharing in ("none", "attention") else 1,
            "pooler": H * H + H,
        }  # fmt: skip
        for name, part in wrong.items():
            parts[name] = part(V, P, E, H, F, L, sharing)
        p = {"attend_norm": parts["attend"], "feed_norm": parts["feed"], **parts}
        once = p["tokens"] + p["positions"] + p["segments"] + p["norm"] + p["projection"]
        first = p["attend"] * p["attention"] + p["attend_norm"] * p["attention_norm"]
        second = p["feed"] * p["feed_forward"] + p["feed_norm"] * p["output_norm"]
        return once + first + second + p["pooler"]

    return answer


def count_by_layers(V, P, E, H, F, L, sharing):
    """A set of what exists: what is shared has the same name."""
    half = {"attention": 4 * H * H + 6 * H, "feed_forward": 2 * H * F + F + 3 * H}
    names = {(n, None if sharing in ("all", n) else layer) for n in half for layer in range(L)}
    return sum(half[n] for n, _ in names) + (V + P + 4) * E + (E + 1 + H + 1) * H


def times(**wrong):
    """The same, where a part depends on widths alone."""
    return count(**{name: lambda V, P, E, H, F, L, s, f=f: f(E, H, F) for name, f in wrong.items()})


def layers_of(*once):
    return lambda V, P, E, H, F, L, s: 1 if s in once else L


# ---------------------------------------------------------------- 05.3


def layers(which, *, make=None, read=lambda states: states[-1], give=lambda states: states):
    """Layers by a rule: which(layer, L, G) is the block; make(L, G) how many blocks are made."""

    def answer(x, make_block, num_layers, num_groups):
        number = make(num_layers, num_groups) if make else num_groups
        blocks, states = [make_block() for _ in range(number)], [x]
        for layer in range(num_layers):
            states.append(blocks[which(layer, num_layers, num_groups)](read(states)))
        return give(states)

    return answer


def right_block(layer, L, G):
    return layer * G // L


def layers_by_group(x, make_block, num_layers, num_groups):
    states = [x]
    for _ in range(num_groups):
        block = make_block()
        for _ in range(num_layers // num_groups):
            x = block(x)
            states += [x]
    return tuple(states)


def layers_copied(x, make_block, num_layers, num_groups):
    blocks = [make_block() for _ in range(num_groups)]
    size = num_layers // num_groups
    states = [x]
    for block in nn.ModuleList(copy.deepcopy(b) for b in blocks for _ in range(size)):
        states.append(block(states[-1]))
    return states


def layers_counted(change):
    """`change(num_layers, num_groups)` layers are run."""

    def answer(x, make_block, num_layers, num_groups):
        blocks, states = [make_block() for _ in range(num_groups)], [x]
        for layer in range(change(num_layers, num_groups)):
            place = min(right_block(layer, num_layers, num_groups), num_groups - 1)
            states.append(blocks[place](states[-1]))
        return states

    return answer


def layers_one_visit(x, make_block, num_layers, num_groups):
    states = [x]
    for _ in range(num_groups):
        states.append(make_block()(states[-1]))
    return states


@torch.no_grad()
def layers_frozen(*given):
    return layers(right_block)(*given)


# ---------------------------------------------------------------- 05.4


def flat(sentences):
    return list(chain.from_iterable(sentences))


def order(where, *, swap=lambda rng: rng.random() < 0.5, short=1, change=None):
    """Pairs by hand: where(number of sentences, rng) is the split; change(first, second, label,
    document, the others, rng) the pair."""

    def answer(documents, rng):
        pairs = []
        for document in documents:
            if len(document) <= short:
                continue
            at = where(len(document), rng)
            halves = [document[:at], document[at:]]
            label = int(swap(rng))
            if change:
                others = [d for d in documents if d is not document]
                pairs.append(change(*halves, label, document, others, rng))
            else:
                pairs.append((flat(halves[label]), flat(halves[1 - label]), label))
        return pairs

    return answer


def any_split(n, rng):
    return rng.randrange(1, n)


def ordered(change):
    return order(any_split, change=change)


def order_nsp(first, second, z, document, others, rng):
    return flat(first), flat(rng.choice(others) if z else second), z


def order_reordered(first, second, z, *rest):
    pair = flat(first), flat(second)
    return (flat(first[::-1]), flat(second[::-1]), 1) if z else (*pair, 0)


def order_single_sentences(first, second, z, *rest):
    return (second[0], first[-1], 1) if z else (first[-1], second[0], 0)


def order_as_released(documents, rng):
    made = []
    for document in documents:
        if len(document) > 1:
            made += order(any_split)([document], rng)
        else:
            other = rng.choice([d for d in documents if d is not document])
            made.append((flat(document), flat(other), 1))
    return made


def order_alternating(documents, rng):
    turns = iter(range(10**6))
    return order(any_split, swap=lambda _rng: next(turns) % 2)(documents, rng)


def order_one_number(documents, rng):
    made = []
    for document in documents:
        if len(document) > 1:
            u = rng.random()
            at = 1 + int(u * (len(document) - 1))
            halves = [flat(document[:at]), flat(document[at:])]
            made.append((*halves[::-1], 1) if u >= 0.5 else (*halves, 0))
    return made


# ---------------------------------------------------------------- 05.5


def lengths(weigh, *, divide=None, add=0, upto=0):
    """Lengths by torch.bucketize, with other weights, another divisor, or a shift."""

    def answer(u, longest):
        weights = torch.tensor([weigh(n) for n in range(1, longest + upto + 1)], dtype=u.dtype)
        ends = torch.cumsum(weights / (divide(weights) if divide else weights.sum()), 0)
        return torch.bucketize(u, ends[:-1], right=True) + 1 + add

    return answer


def lengths_looped(u, longest):
    found, total = [], sum(1 / n for n in range(1, longest + 1))
    for x in u.tolist():
        n, reached = 1, 1 / total
        while x >= reached and n < longest:
            n, reached = n + 1, reached + 1 / (n + 1) / total
        found.append(n)
    return found


def lengths_drawn(u, longest):
    weights = torch.tensor([1 / n for n in range(1, longest + 1)])
    return 1 + torch.multinomial(weights, len(u), replacement=True)


def lengths_not_added(u, longest):
    weights = torch.tensor([1 / n for n in range(1, longest + 1)], dtype=u.dtype)
    return 1 + (u[:, None] >= (weights / weights.sum())[:-1]).sum(1)


harmonic = lengths(lambda n: 1 / n)

# ---------------------------------------------------------------- 05.6


def flops(*, unit=2, layer=lambda L, sharing: L, **wrong):
    """The count written part by part; a keyword replaces a part by f(T, H, F)."""

    def answer(T, H, F, L, sharing):
        parts = {"projections": 4 * T * H * H, "products": 2 * T * T * H, "dense": 2 * T * H * F}
        parts |= {name: part(T, H, F) for name, part in wrong.items()}
        return unit * layer(L, sharing) * sum(parts.values())

    return answer


def flops_as_stored(T, H, F, L, sharing):
    first, second = 8 * T * H * H + 4 * T * T * H, 4 * T * H * F
    attending = L if sharing in ("none", "feed_forward") else 1
    return first * attending + second * (L if sharing in ("none", "attention") else 1)


def flops_of_products(T, H, F, L, sharing):
    products = [(T, H, H)] * 4 + [(T, H, T), (T, T, H), (T, H, F), (T, F, H)]
    return sum(2 * m * k * n for m, k, n in products * L)


RIGHT = {
    "05.1": [
        lambda ids, table, P: F.linear(F.embedding(ids, table), P.T),
        embed(),
        lambda ids, table, P: (table[ids][..., None] * P).sum(-2),
        embed_loop(lambda row, P: row @ P),
    ],
    "05.2": [count(), count_by_layers, lambda *sizes: torch.tensor(count()(*sizes))],
    "05.3": [layers(right_block), layers_by_group, layers(right_block, give=torch.stack)],
    "05.4": [order(any_split), order(any_split, swap=lambda rng: rng.choice((0, 1)))],
    "05.5": [harmonic, lengths(lambda n: 60 / n), lengths_looped],
    "05.6": [flops(), flops_of_products, lambda *sizes: np.int64(flops()(*sizes))],
}
WRONG = {
    "05.1": [
        (embed_transposed, "multiplied the wrong way round"),
        (lambda ids, table, P: table[ids], "the projection from E to H is missing"),
        (embed_loop(lambda row, P: (row[:, None] + P).sum(0)), "The row is added"),
        (embed(before=lambda x: x * x.shape[-1] ** 0.5), "multiplied by √E"),
        (embed(after=lambda x: x * x.shape[-1] ** 0.5), "multiplied by √H"),
        (lambda ids, table, P: table[ids - 1] @ P, "the row before its own"),
        (embed(before=lambda x: nn.LayerNorm(x.shape[-1]).double()(x)), "The rows are normalised"),
        (embed(before=lambda x: x / x.norm(dim=-1, keepdim=True)), "The rows are normalised"),
        (embed(after=torch.tanh), "torch.tanh, stands after"),
        (embed(before=torch.relu), "torch.relu, stands before"),
        (lambda ids, table, P: table @ P, "nothing was looked up"),
        (embed(after=lambda x: x.mean(1)), "The tokens of a text are averaged"),
        (lambda ids, table, P: table[ids.unique()] @ P, "one row for each *different* id"),
        (lambda ids, table, P: (table @ P)[ids], "The whole table is projected first"),
        (lambda ids, table, P: F.one_hot(ids, len(table)).double() @ (table @ P),
         "The whole table is projected first"),
        (embed_one_hot, "index the table instead"),
        (lambda ids, table, P: table.data[ids] @ P, "No gradient reaches the table"),
        (lambda ids, table, P: table[ids] @ P.detach(), "No gradient reaches the projection"),
        (lambda ids, table, P: (table[ids] @ P).tolist(), "carries no gradient"),
        (lambda ids, table, P: (table[ids] @ P).mT[..., :1], "that is (B, T, H)"),
        (embed(after=lambda x: 3 * x), "esult: at ["),
        (lambda ids, table, P: P @ table[ids], "E₂·E₁[x]"),
        (lambda ids, table, P: table[ids] @ torch.ones(7, 2, dtype=table.dtype),
         "table[ids] @ projection"),
        (lambda ids, table, P: F.linear(table[ids], torch.ones(2, 9, dtype=table.dtype)),
         "projection.T"),
    ],
    "05.2": [
        (count(positions=lambda V, P, E, H, *_: P * H), "The position embeddings were counted H"),
        (count(positions=lambda V, P, E, H, *_: P * H, segments=lambda V, P, E, H, *_: 2 * H),
         "The position and segment embeddings were counted H wide"),
        (count(tokens=lambda V, P, E, H, *_: V * H), "counted with V·H numbers"),
        (lambda V, P, E, H, F, L, s: times(projection=lambda *_: 0)(V, P, H, H, F, L, s), "BERT's"),
        (times(projection=lambda E, H, F: E * H), "the projection's bias"),
        (times(projection=lambda *_: 0), "the projection from E to H"),
        (count(projection=lambda V, P, E, H, F, L, s: L * (E * H + H)), "once a layer"),
        (times(norm=lambda E, H, F: 2 * H), "The LayerNorm of the embeddings was counted H wide"),
        (times(norm=lambda *_: 0), "the LayerNorm of the embeddings, a gain"),
        (times(norm=lambda *_: 0, attention_norm=lambda *_: 0, output_norm=lambda *_: 0),
         "every LayerNorm"),
        (times(projection=lambda E, H, F: E * H, attention=lambda E, H, F: 4 * H * H,
               feed_forward=lambda E, H, F: 2 * H * F, pooler=lambda E, H, F: H * H),
         "the biases of the linear layers"),
        (count(attend=layers_of(), feed=layers_of()), "were counted L times"),
        (times(attend=lambda *_: 1, feed=lambda *_: 1), "leaves each layer weights of its own"),
        (count(attend=layers_of("all", "feed_forward"), feed=layers_of("all", "attention")),
         "The wrong half is shared"),
        (count(attend_norm=layers_of(), feed_norm=layers_of()), "LayerNorms of its own"),
        (times(pooler=lambda *_: 0), "the pooler"),
        (lambda V, P, E, H, F, L, s: count()(V, P, 128, H, F, L, s), "128 stands where E"),
        (lambda V, P, E, H, F, L, s: count()(V, P, E, H, 4 * H, L, s), "4H stands where F"),
        (times(pooler=lambda *_: 0, attend=lambda *_: 1, feed=lambda *_: 1), "the pooler"),
        (lambda *sizes: "12M", "expected one whole number"),
        (lambda *sizes: 7, "the same for all inputs"),
    ],
    "05.3": [
        (layers(lambda i, L, G: i, make=lambda L, G: L), "A block was made for each layer"),
        (layers(lambda i, L, G: 0, make=lambda L, G: 1), "One block serves all layers"),
        (layers_copied, "Layers ran copies of a block"),
        (layers(lambda i, L, G: i % G), "The blocks take turns"),
        (layers(lambda i, L, G: min(i // G, G - 1)), "divided by the number of groups"),
        (layers(lambda i, L, G: G - 1 - right_block(i, L, G)), "in reverse: the last first"),
        (layers_one_visit, "Each block ran once"),
        (layers_counted(lambda L, G: L - 1), "the loop ends one too early"),
        (layers_counted(lambda L, G: L + 1), "One layer too many"),
        (layers(right_block, give=lambda states: states[-1]), "a list of all 4: x, and"),
        (layers(right_block, give=lambda states: states[1:]), "The first state is missing"),
        (layers(right_block, give=lambda states: states[:-1]), "after the last layer is missing"),
        (layers(right_block, read=lambda states: states[0]), "Every layer was given x"),
        (layers(right_block, give=lambda states: states[::-1]), "The states stand in reverse"),
        (layers_frozen, "No gradient leads from the last state"),
        (layers(right_block, read=lambda states: states[-1].detach()), "of the last visit only"),
        (layers(right_block, give=len), "expected a list of 4 tensors"),
        (layers(right_block, give=lambda states: [2 * s for s in states]), "it is doubled"),
        (layers(lambda i, L, G: i // G), "num_layers // num_groups"),
    ],
    "05.4": [
        (ordered(order_nsp), "a segment from another document"),
        (ordered(lambda a, b, z, *_: (flat((b, a)[z]), flat((a, b)[z]), z)), "are exchanged"),
        (ordered(lambda a, b, z, *_: (flat(a), flat(b), z)), "the text does not"),
        (ordered(lambda a, b, z, *_: (flat((a, b)[z]), flat((b, a)[z]), 0)), "every label is 0"),
        (order(any_split, swap=lambda rng: False), "All pairs are in order"),
        (order(any_split, swap=lambda rng: True), "All pairs are swapped"),
        (ordered(lambda a, b, z, *_: (flat(b)[::-1], flat(a)[::-1], 1) if z else
                 (flat(a), flat(b), 0)), "run backwards"),
        (ordered(order_reordered), "The sentences of a segment changed places"),
        (ordered(order_single_sentences), "Two single sentences"),
        (ordered(lambda a, b, z, *_: (flat(a)[:-1], flat(b), 0)), "in neither segment"),
        (ordered(lambda a, b, z, d, *_: (flat(a), flat(d), z)), "Ids stand in both segments"),
        (ordered(lambda a, b, z, d, *_: (flat(d)[:1], flat(d)[1:], 0)), "cut inside a sentence"),
        (order(lambda n, rng: rng.randint(0, n)), "A segment is empty"),
        (order(lambda n, rng: rng.randint(1, max(1, n - 1)), short=0), "with an empty segment"),
        (order_as_released, "ALBERT's released generator does that"),
        (ordered(lambda a, b, z, *_: (a, b, 0)), "join the sentences"),
        (order(lambda n, rng: n // 2), "split at the same place"),
        (order(lambda n, rng: rng.randrange(1, max(2, n - 1))), "The last place is never drawn"),
        (order_alternating, "they alternate"),
        (order_one_number, "the split gives the label away"),
        (order(any_split, swap=lambda rng: rng.random() < 0.25), "A quarter of the pairs"),
        (order(any_split, swap=lambda rng: rng.random() < 0.65), "raction of swapped pairs"),
        (lambda documents, rng: order(any_split)(documents, random), "two different results"),
        (lambda documents, rng: order(any_split)(documents, rng)[:-1], "A pair is missing"),
        (ordered(lambda a, b, z, *_: (flat(a), flat(b))), "expected (a, b, label)"),
        (lambda documents, rng: 3, "expected a list of (a, b, label)"),
        (order(lambda n, rng: rng.randint(1, n - 1), short=0), "leave it out"),
    ],
    "05.5": [
        (lengths(lambda n: 1 / n, add=-1), "from 0 to longest − 1"),
        (lengths(lambda n: 1 / n, upto=1), "run to longest + 1"),
        (lengths(lambda n: 1 / n, add=1), "run from 2 to longest + 1"),
        (lambda u, N: harmonic(u, max(1, N - 1)), "The longest length never comes"),
        (lambda u, N: 1 + (N * u).long(), "All lengths are equally likely"),
        (lengths(lambda n: n), "proportional to n instead"),
        (lengths(lambda n: 0.2 * 0.8 ** (n - 1)), "a geometric series"),
        (lengths(lambda n: 0.5**n), "a geometric series"),
        (lengths(lambda n: n**-2.0), "1/n² instead"),
        (lengths(lambda n: 1 / n, divide=lambda w: 1.0), "do not sum to one"),
        (lengths(lambda n: 1 / n, divide=len), "do not sum to one"),
        (lengths_not_added, "compared with the probabilities themselves"),
        (lambda u, N: harmonic(1 - u, N), "laid out from 1 downwards"),
        (lambda u, N: N + 1 - lengths(lambda n: 1 / (N + 1 - n))(u, N), "from 1 downwards"),
        (lengths_drawn, "your function draws by itself"),
        (lambda u, N: harmonic(u, N)[:, None], "an axis too many"),
        (lambda u, N: harmonic(u, N).double(), "expected a tensor of whole numbers"),
        (lambda u, N: [float(n) for n in lengths_looped(u, N)], "of whole numbers"),
        (lambda u, N: torch.ones_like(u).long(), "engths"),
    ],
    "05.6": [
        (flops_as_stored, "Layers that share weights were counted once"),
        (flops(layer=lambda L, sharing: 1), "One layer was counted; there are L"),
        (flops(layer=lambda L, sharing: 1 if sharing == "all" else L), 'With "all", one layer'),
        (flops(unit=1), "A multiply-add was counted as one"),
        (flops(unit=6), "The backward pass"),
        (flops(products=lambda T, H, F: 0), "the two products inside attention"),
        (flops(products=lambda T, H, F: T * T * H), "Attention has two products"),
        (flops(products=lambda T, H, F: 2 * T * H), "T stands there once"),
        (flops(projections=lambda T, H, F: 3 * T * H * H), "output projection"),
        (flops(projections=lambda T, H, F: 0), "query, key, value and output projection"),
        (flops(dense=lambda T, H, F: T * H * F), "The feed-forward half has two layers"),
        (flops(dense=lambda T, H, F: 8 * T * H * H), "4H stands where F"),
        (flops(projections=lambda T, H, F: 4 * H * H, dense=lambda T, H, F: 2 * H * F),
         "counted for one token"),
        (flops(unit=1, products=lambda T, H, F: 0), "A multiply-add was counted as one"),
        (flops(products=lambda T, H, F: 0, projections=lambda T, H, F: 3 * T * H * H),
         "the two products inside attention"),
        (lambda *sizes: "22G", "expected one whole number"),
        (lambda *sizes: 7, "the same for all inputs"),
    ],
}  # fmt: skip
