"""Exercises of lecture 05: the planted wrong answers, the solutions beside the library, the quiz.

What every exercise must do is asked in test_exercises.py, of these as of all others.
"""

from __future__ import annotations

import copy
import random
from itertools import chain

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from course_lib.config import encoder_flops, published
from course_lib.encoder import count_parameters
from course_lib.family.albert import SHARING, AlbertConfig, albert_encoder, sharing_plan
from course_lib.family.bert import bert
from course_lib.lectures.lecture_05.exercises import count, flops, layers, ngrams, order
from course_lib.teaching.exercises import all_exercises, quiz, review
from course_lib.teaching.exercises.legacy import check_answer
from course_lib.teaching.quizzes import read_quiz, read_review

EXERCISES = {id: e for id, e in all_exercises().items() if id.startswith("05.")}
SEEDS = (0, 1, 2, 3, 4, 5)
torch.set_num_threads(1)  # the tensors are tiny


# ---------------------------------------------------------------- planted wrong answers


def embed_with(before=lambda x: x, after=lambda x: x):
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


def one_hot_first(ids, table, projection):
    picked = F.one_hot(ids, len(table)).to(table.dtype)
    return picked @ table @ projection


def albert_count(**wrong):
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


def layers_with(which, *, make=None, read=lambda states: states[-1], give=lambda states: states):
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


def layers_copied(x, make_block, num_layers, num_groups):
    size = num_layers // num_groups
    blocks = [block for _ in range(num_groups) for block in [make_block()]]
    stack = nn.ModuleList(copy.deepcopy(block) for block in blocks for _ in range(size))
    states = [x]
    for block in stack:
        states.append(block(states[-1]))
    return states


def layers_counted(change):
    """`change(num_layers)` layers are run."""

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
def layers_frozen(x, make_block, num_layers, num_groups):
    return layers.shared_layers(x, make_block, num_layers, num_groups)


def order_with(change):
    """Each pair of the right answer passed through change(pair, its document, documents, rng)."""

    def answer(documents, rng):
        long = [document for document in documents if len(document) > 1]
        made = order.order_pairs(documents, rng)
        return [change(p, d, documents, rng) for p, d in zip(made, long, strict=True)]

    return answer


def flat(sentences):
    return list(chain.from_iterable(sentences))


def split_of(pair, document):
    first = pair[1] if pair[2] else pair[0]
    return next(i for i in range(1, len(document)) if flat(document[:i]) == first)


def order_split(where, *, swap=lambda rng: rng.random() < 0.5, short=1):
    """Pairs by hand: where(number of sentences, rng) is the split."""

    def answer(documents, rng):
        pairs = []
        for document in documents:
            if len(document) <= short:
                continue
            at = where(len(document), rng)
            halves = [flat(document[:at]), flat(document[at:])]
            label = int(swap(rng))
            pairs.append((halves[label], halves[1 - label], label))
        return pairs

    return answer


def any_split(n, rng):
    return rng.randrange(1, n)


def order_nsp(pair, document, documents, rng):
    other = rng.choice([d for d in documents if d is not document])
    first = pair[1] if pair[2] else pair[0]
    return (first, flat(other), 1) if pair[2] else pair


def order_reordered(pair, document, documents, rng):
    at = split_of(pair, document)
    turned = (flat(document[:at][::-1]), flat(document[at:][::-1]))
    return (turned[0], turned[1], 1) if pair[2] else pair


def order_single_sentences(pair, document, documents, rng):
    at = split_of(pair, document)
    a, b = document[at - 1], document[at]
    return (b, a, 1) if pair[2] else (a, b, 0)


def order_as_released(documents, rng):
    pairs = iter(order.order_pairs(documents, rng))
    made = []
    for document in documents:
        if len(document) > 1:
            made.append(next(pairs))
        else:
            other = rng.choice([d for d in documents if d is not document])
            made.append((flat(document), flat(other), 1))
    return made


def order_not_joined(documents, rng):
    return [(d[:1], d[1:], 0) for d in documents if len(d) > 1]


def order_alternating(documents, rng):
    turns = iter(range(10**6))
    return order_split(any_split, swap=lambda _rng: next(turns) % 2)(documents, rng)


def lengths_with(weigh, *, divide=None, add=0, upto=0):
    """Lengths by torch.bucketize, with other weights, another divisor, or a shift."""

    def answer(u, longest):
        weights = torch.tensor([weigh(n) for n in range(1, longest + upto + 1)], dtype=u.dtype)
        ends = torch.cumsum(weights / (divide(weights) if divide else weights.sum()), 0)
        return torch.bucketize(u, ends[:-1], right=True) + 1 + add

    return answer


def lengths_drawn(u, longest):
    weights = torch.tensor([1 / n for n in range(1, longest + 1)])
    return 1 + torch.multinomial(weights, len(u), replacement=True)


def lengths_not_added(u, longest):
    weights = torch.tensor([1 / n for n in range(1, longest + 1)], dtype=u.dtype)
    return 1 + (u[:, None] >= (weights / weights.sum())[:-1]).sum(1)


def flops_with(*, unit=2, layer=lambda L, sharing: L, **wrong):
    """The count written part by part; a keyword replaces a part by f(T, H, F)."""

    def answer(T, H, F, L, sharing):
        parts = {"projections": 4 * T * H * H, "products": 2 * T * T * H, "dense": 2 * T * H * F}
        parts |= {name: part(T, H, F) for name, part in wrong.items()}
        return unit * layer(L, sharing) * sum(parts.values())

    return answer


def flops_as_stored(T, H, F, L, sharing):
    first, second = 8 * T * H * H + 4 * T * T * H, 4 * T * H * F
    return first * (L if sharing in ("none", "feed_forward") else 1) + second * (
        L if sharing in ("none", "attention") else 1
    )


PLANTED = {
    "05.1": {
        "projection transposed": embed_transposed,
        "no projection": lambda ids, table, projection: table[ids],
        "adds": embed_loop(lambda row, P: (row[:, None] + P).sum(0)),
        "scaled": embed_with(before=lambda x: x * x.shape[-1] ** 0.5),
        "one row off": lambda ids, table, P: table[ids - 1] @ P,
        "normalises": embed_with(before=lambda x: nn.LayerNorm(x.shape[-1]).double()(x)),
        "non-linear": embed_with(after=torch.tanh),
        "no look-up": lambda ids, table, P: table @ P,
        "tokens mixed": embed_with(after=lambda x: x.mean(1)),
        "repeated ids lost": lambda ids, table, P: table[ids.unique()] @ P,
        "whole table projected": lambda ids, table, P: (table @ P)[ids],
        "one-hot product": one_hot_first,
        "no gradient": lambda ids, table, P: table.data[ids] @ P,
        "wrong shape": lambda ids, table, P: (table[ids] @ P).transpose(1, 2)[..., :1],
        "wrong type": lambda ids, table, P: (table[ids] @ P).tolist(),
        "unforeseen": embed_with(after=lambda x: 3 * x),
    },
    "05.2": {
        "positions H wide": albert_count(positions=lambda V, P, E, H, *_: P * H),
        "positions and segments H wide": albert_count(
            positions=lambda V, P, E, H, *_: P * H, segments=lambda V, P, E, H, *_: 2 * H),
        "token table H wide": albert_count(tokens=lambda V, P, E, H, *_: V * H),
        "not factorised": lambda V, P, E, H, F, L, s: albert_count(
            projection=lambda *_: 0)(V, P, H, H, F, L, s),
        "no projection bias": albert_count(projection=lambda V, P, E, H, *_: E * H),
        "no projection": albert_count(projection=lambda *_: 0),
        "projection in every layer": albert_count(
            projection=lambda V, P, E, H, F, L, s: L * (E * H + H)),
        "segments or LayerNorm H wide": albert_count(norm=lambda V, P, E, H, *_: 2 * H),
        "no embedding LayerNorm": albert_count(norm=lambda *_: 0),
        "no LayerNorms": albert_count(norm=lambda *_: 0, attention_norm=lambda *_: 0,
                                      output_norm=lambda *_: 0),
        "no biases": albert_count(
            projection=lambda V, P, E, H, *_: E * H, attention=lambda V, P, E, H, *_: 4 * H * H,
            feed_forward=lambda V, P, E, H, F, L, s: 2 * H * F,
            pooler=lambda V, P, E, H, *_: H * H),
        "sharing ignored": albert_count(attend=lambda V, P, E, H, F, L, s: L,
                                        feed=lambda V, P, E, H, F, L, s: L),
        "always shared": albert_count(attend=lambda *_: 1, feed=lambda *_: 1),
        "halves mixed up": albert_count(
            attend=lambda V, P, E, H, F, L, s: 1 if s in ("all", "feed_forward") else L,
            feed=lambda V, P, E, H, F, L, s: 1 if s in ("all", "attention") else L),
        "LayerNorms never shared": albert_count(
            attend_norm=lambda V, P, E, H, F, L, s: L, feed_norm=lambda V, P, E, H, F, L, s: L),
        "LayerNorms always shared": albert_count(
            attend_norm=lambda V, P, E, H, F, L, s: L if s == "none" else 1,
            feed_norm=lambda V, P, E, H, F, L, s: L if s == "none" else 1),
        "no pooler": albert_count(pooler=lambda *_: 0),
        "E is 128": lambda V, P, E, H, F, L, s: albert_count()(V, P, 128, H, F, L, s),
        "F is 4H": lambda V, P, E, H, F, L, s: albert_count()(V, P, E, H, 4 * H, L, s),
        "positions H wide + no projection bias": albert_count(
            positions=lambda V, P, E, H, *_: P * H, projection=lambda V, P, E, H, *_: E * H),
        "wrong type": lambda *sizes: "12M",
        "unforeseen": lambda *sizes: 7,
    },
    "05.3": {
        "a block for each layer": layers_with(lambda i, L, G: i, make=lambda L, G: L),
        "one block for all": layers_with(lambda i, L, G: 0, make=lambda L, G: 1),
        "copies": layers_copied,
        "in turn": layers_with(lambda i, L, G: i % G),
        "size and number confused": layers_with(lambda i, L, G: min(i // G, G - 1)),
        "last group first": layers_with(lambda i, L, G: G - 1 - right_block(i, L, G)),
        "one visit a block": layers_one_visit,
        "one layer short": layers_counted(lambda L, G: L - 1),
        "one layer too many": layers_counted(lambda L, G: L + 1),
        "only the last state": layers_with(right_block, give=lambda states: states[-1]),
        "first state missing": layers_with(right_block, give=lambda states: states[1:]),
        "last state missing": layers_with(right_block, give=lambda states: states[:-1]),
        "not chained": layers_with(right_block, read=lambda states: states[0]),
        "reversed": layers_with(right_block, give=lambda states: states[::-1]),
        "no gradient": layers_frozen,
        "only the last visit learns": layers_with(
            right_block, read=lambda states: states[-1].detach()),
        "wrong type": layers_with(right_block, give=len),
        "unforeseen": layers_with(right_block, give=lambda states: [2 * s for s in states]),
    },
    "05.4": {
        "another document": order_with(order_nsp),
        "labels reversed": order_with(lambda p, d, ds, r: (p[0], p[1], 1 - p[2])),
        "only labels swapped": order_with(
            lambda p, d, ds, r: (p[1], p[0], 1) if p[2] else p),
        "label never changes": order_with(lambda p, d, ds, r: (p[0], p[1], 0)),
        "always in order": order_split(any_split, swap=lambda rng: False),
        "always swapped": order_split(any_split, swap=lambda rng: True),
        "tokens reversed": order_with(
            lambda p, d, ds, r: (p[1][::-1], p[0][::-1], 1) if p[2] else p),
        "sentences reordered": order_with(order_reordered),
        "single sentences": order_with(order_single_sentences),
        "sentences lost": order_with(lambda p, d, ds, r: (p[0][:-1], p[1], p[2])),
        "overlap": order_with(lambda p, d, ds, r: (p[0], flat(d), p[2])),
        "cut inside a sentence": order_with(
            lambda p, d, ds, r: (flat(d)[:1], flat(d)[1:], 0)),
        "empty segment": order_split(lambda n, rng: rng.randint(0, n)),
        "single sentence kept": order_split(lambda n, rng: rng.randint(1, max(1, n - 1)), short=0),
        "as released": order_as_released,
        "not joined": order_not_joined,
        "split not drawn": order_split(lambda n, rng: n // 2),
        "some splits never": order_split(lambda n, rng: rng.randrange(1, max(2, n - 1))),
        "labels not drawn": order_alternating,
        "not half": order_split(any_split, swap=lambda rng: rng.random() < 0.3),
        "ignores the generator": lambda documents, rng: order.order_pairs(documents, random),
        "one pair a document": lambda documents, rng: order.order_pairs(documents, rng)[:-1],
        "wrong pair": order_with(lambda p, d, ds, r: p[:2]),
        "wrong type": lambda documents, rng: 3,
        "unforeseen": order_with(
            lambda p, d, ds, r: (p[1][:1] + p[0][1:], p[0][:1] + p[1][1:], p[2])),
    },
    "05.5": {
        "counts from zero": lengths_with(lambda n: 1 / n, add=-1),
        "one too long": lengths_with(lambda n: 1 / n, upto=1),
        "longest left out": lambda u, N: lengths_with(lambda n: 1 / n)(u, max(1, N - 1)),
        "uniform": lambda u, N: 1 + (N * u).long(),
        "proportional to n": lengths_with(lambda n: n),
        "geometric": lengths_with(lambda n: 0.2 * 0.8 ** (n - 1)),
        "squared": lengths_with(lambda n: n**-2.0),
        "not normalised": lengths_with(lambda n: 1 / n, divide=lambda w: 1.0),
        "not added up": lengths_not_added,
        "from the top": lambda u, N: lengths_with(lambda n: 1 / n)(1 - u, N),
        "draws anew": lengths_drawn,
        "wrong shape": lambda u, N: ngrams.ngram_lengths(u, N)[:, None],
        "wrong type": lambda u, N: ngrams.ngram_lengths(u, N).tolist(),
        "unforeseen": lengths_with(lambda n: n**-0.5),
    },
    "05.6": {
        "shared layers counted once": flops_as_stored,
        "one layer": flops_with(layer=lambda L, sharing: 1),
        "one layer where all is shared": flops_with(
            layer=lambda L, sharing: 1 if sharing == "all" else L),
        "multiply-add is one": flops_with(unit=1),
        "backward pass": flops_with(unit=6),
        "no attention products": flops_with(products=lambda T, H, F: 0),
        "one attention product": flops_with(products=lambda T, H, F: T * T * H),
        "attention products without T²": flops_with(products=lambda T, H, F: 2 * T * H),
        "no output projection": flops_with(projections=lambda T, H, F: 3 * T * H * H),
        "no projections": flops_with(projections=lambda T, H, F: 0),
        "one feed-forward layer": flops_with(dense=lambda T, H, F: T * H * F),
        "no feed-forward": flops_with(dense=lambda T, H, F: 0),
        "F is 4H": flops_with(dense=lambda T, H, F: 8 * T * H * H),
        "one token": flops_with(projections=lambda T, H, F: 4 * H * H,
                                dense=lambda T, H, F: 2 * H * F),
        "no attention products + multiply-add is one": flops_with(
            unit=1, products=lambda T, H, F: 0),
        "no attention products + no output projection": flops_with(
            products=lambda T, H, F: 0, projections=lambda T, H, F: 3 * T * H * H),
        "wrong type": lambda *sizes: "22G",
        "unforeseen": lambda *sizes: 7,
    },
}  # fmt: skip


# ---------------------------------------------------------------- other right and wrong answers


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("05.1", lambda ids, table, P: F.linear(F.embedding(ids, table), P.T)),
        ("05.1", lambda ids, table, P: torch.einsum("bte,eh->bth", table[ids], P)),
        ("05.1", lambda ids, table, P: (table[ids][..., None] * P).sum(-2)),
        ("05.1", embed_loop(lambda row, P: row @ P)),
        ("05.2", albert_count()),
        ("05.2", lambda *sizes: torch.tensor(count.albert_parameters(*sizes))),
        ("05.3", layers_with(right_block, give=torch.stack)),
        ("05.3", layers_with(right_block, give=tuple)),
        ("05.4", order_split(any_split)),
        ("05.4", order_split(any_split, swap=lambda rng: rng.choice((0, 1)))),
        ("05.5", lengths_with(lambda n: 1 / n)),
        ("05.5", lengths_with(lambda n: 60 / n)),
        ("05.6", flops_with()),
    ],
)
def test_another_right_answer_passes(id, answer):
    for seed in SEEDS:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.status == "passed", report


@pytest.mark.parametrize(
    ("id", "answer", "key"),
    [
        ("05.1", embed_with(after=lambda x: x * x.shape[-1] ** 0.5), "scaled"),
        ("05.1", embed_with(after=F.gelu), "non-linear"),
        ("05.1", embed_with(before=torch.relu), "non-linear"),
        ("05.1", embed_with(before=lambda x: x / x.norm(dim=-1, keepdim=True)), "normalises"),
        ("05.1", embed_with(after=lambda x: x.sum(1, keepdim=True)), "tokens mixed"),
        ("05.1", lambda ids, table, P: F.one_hot(ids, len(table)).double() @ (table @ P),
         "whole table projected"),
        ("05.1", lambda ids, table, P: table[ids] @ P.detach(), "no gradient"),
        ("05.2", albert_count(segments=lambda V, P, E, H, *_: 2 * H),
         "segments or LayerNorm H wide"),
        ("05.2", lambda V, P, E, H, F, L, s: albert_count(attend=lambda *_: 1, feed=lambda *_: 1,
         pooler=lambda *_: 0)(V, P, E, H, F, L, s), "always shared + no pooler"),
        ("05.5", lambda u, N: N + 1 - lengths_with(lambda n: 1 / (N + 1 - n))(u, N),
         "from the top"),
        ("05.5", lengths_with(lambda n: 0.5**n), "geometric"),
        ("05.5", lengths_with(lambda n: 1 / n, divide=len), "not normalised"),
        ("05.5", lengths_with(lambda n: 1 / n, add=1), "one too long"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_in_other_clothes_too(id, answer, key):
    for seed in SEEDS:
        assert check_answer(EXERCISES[id], answer, seed).mistake == key


@pytest.mark.parametrize(
    ("id", "answer", "advice"),
    [
        ("05.1", lambda ids, table, P: P @ table[ids], "E₂·E₁[x]"),
        ("05.1", lambda ids, table, P: table[ids] @ torch.ones(7, 2, dtype=table.dtype),
         "table[ids] @ projection"),
        ("05.1", lambda ids, table, P: F.linear(table[ids], torch.ones(2, 9, dtype=table.dtype)),
         "projection.T"),
        ("05.3", layers_with(lambda i, L, G: i // G), "num_layers // num_groups"),
        ("05.4", order_split(lambda n, rng: rng.randint(1, n - 1), short=0), "leave it out"),
    ],
)  # fmt: skip
def test_a_frequent_exception_gets_a_line_of_advice(id, answer, advice):
    report = check_answer(EXERCISES[id], answer, 0)
    assert report.mistake == "raised", report
    assert advice in report.message, report


def test_other_exceptions_get_no_advice_about_shapes():
    def reshapes(ids, table, projection):
        return {}["shape"].reshape(ids.shape)

    assert "table[ids] is (B, T, E)" not in check_answer(EXERCISES["05.1"], reshapes, 0).message


# ---------------------------------------------------------------- the solutions against the library


@pytest.mark.parametrize("sharing", SHARING)
def test_the_count_is_the_models(sharing):
    config = AlbertConfig(
        vocab_size=97, hidden_size=24, num_layers=4, num_heads=3, intermediate_size=50,
        max_positions=31, embedding_size=10, sharing=sharing,
    )  # fmt: skip
    built = count_parameters(albert_encoder(config))
    assert count.albert_parameters(97, 31, 10, 24, 50, 4, sharing) == built


@pytest.mark.parametrize("size", ["base", "large", "xlarge", "xxlarge"])
def test_the_count_is_that_of_the_published_sizes(size):
    c = published("albert", size, AlbertConfig)
    with torch.device("meta"):
        built = count_parameters(albert_encoder(c))
    sizes = (c.vocab_size, c.max_positions, c.embedding_size, c.hidden_size, c.intermediate_size)
    assert count.albert_parameters(*sizes, c.num_layers, "all") == built


@pytest.mark.parametrize("id", ["05.2", "05.6"])
def test_the_hint_with_numbers_counts_right(id):
    (hint,) = [h for h in EXERCISES[id].hints if h.startswith("With ")]
    if id == "05.2":
        assert hint.endswith(f" {count.albert_parameters(10, 6, 3, 4, 8, 2, 'attention')}.")
        assert f": {count.albert_parameters(10, 6, 3, 4, 8, 2, 'all')}." in hint
    else:
        assert hint.endswith(f" {flops.stack_flops(2, 3, 4, 1, 'all')}.")


def test_groups_are_those_of_the_family_file():
    config = AlbertConfig(num_layers=12, num_groups=3)
    trace = layers._run(layers.shared_layers, (torch.zeros(1, 1, 2), torch.zeros(12, 2, 2), 12, 3))
    assert [number for number, _ in trace.visits] == [a for a, _ in sharing_plan(config)]


@pytest.mark.parametrize("sharing", SHARING)
def test_the_operations_are_those_a_model_does(sharing):
    config = AlbertConfig(
        vocab_size=50, hidden_size=24, num_layers=4, num_heads=3, intermediate_size=40,
        max_positions=16, embedding_size=8, sharing=sharing,
    )  # fmt: skip
    model, tokens = albert_encoder(config, pooler=False).eval(), 7
    with FlopCounterMode(display=False) as counter:
        model(torch.ones(1, tokens, dtype=torch.long), output_attentions=True)
    projection = 2 * tokens * 8 * 24
    ours = flops.stack_flops(tokens, 24, 40, 4, sharing)
    assert counter.get_total_flops() - projection == ours == encoder_flops(config, tokens)


def test_the_lengths_have_their_chances():
    u = (torch.arange(66_000, dtype=torch.float64) + 0.5) / 66_000
    shares = torch.bincount(ngrams.ngram_lengths(u, 3))[1:] / len(u)
    assert torch.allclose(shares, torch.tensor([6.0, 3.0, 2.0]) / 11, atol=1e-4)


def test_no_id_occurs_twice_in_drawn_documents():
    from course_lib.teaching.exercises.legacy import Draw

    documents = order._documents(Draw(3), [1, 4, 6])
    ids = flat(flat(documents))
    assert [len(d) for d in documents] == [1, 4, 6] and len(set(ids)) == len(ids)


# ---------------------------------------------------------------- the quiz and the review

ITEMS = read_quiz("05")
REVIEW = read_review("05")


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"item {item.number}")
def test_every_choice_explains_itself(item):
    assert item.question.endswith(("?", "?*"))
    assert sum(choice.correct for choice in item.choices) == 1  # the widget has radio buttons
    assert all(len(choice.why) >= 20 for choice in item.choices)
    assert len({choice.why for choice in item.choices}) == len(item.choices)


def test_the_quiz_is_long_enough_and_cannot_be_guessed():
    assert len(ITEMS) >= 12
    places = [[choice.correct for choice in item.choices].index(True) for item in ITEMS]
    assert set(places) == {0, 1, 2} and max(map(places.count, set(places))) < 0.5 * len(ITEMS)
    longest = [max(item.choices, key=lambda choice: len(choice.text)).correct for item in ITEMS]
    assert sum(longest) < 0.7 * len(ITEMS)


def test_there_are_questions_for_review_with_answers():
    assert 10 <= len(REVIEW) <= 14
    assert all(len(entry.answer) > 80 for entry in REVIEW)
    assert review("05")._repr_html_().count("<details>") == len(REVIEW)
    assert ITEMS[0].question in repr(quiz("05"))


def texts(found):
    return " ".join([found.question] + [c.text + " " + c.why for c in getattr(found, "choices", ())]
                    + [getattr(found, "answer", "")])  # fmt: skip


def about(words, among):
    (found,) = (entry for entry in among if words in entry.question)
    return texts(found)


def built(family_size):
    with torch.device("meta"):
        if family_size == "bert":
            return count_parameters(bert("base"))
        return count_parameters(albert_encoder(published("albert", family_size, AlbertConfig)))


def test_the_factors_are_counted_right():
    said, V, E, H = about("without a bias", ITEMS), 30_000, 128, 768
    both = V * E + E * H
    assert f"{both:,}" in said and f"{V * H:,}" in said and f"{E * H:,}" in said
    assert f"{V * H / 1e6:.2f} million" in said and f"{both / 1e6:.2f} million" in said
    assert f"{V * E / 1e6:.2f} million" in said and f"{1 - both / (V * H):.0%} less" in said


def test_the_models_are_counted_right():
    small, large = built("base"), built("bert")
    said = about("and not 12 times", ITEMS)
    assert f"{large:,} / {small:,} = {large / small:.1f}" in said
    c = published("albert", "base", AlbertConfig)
    tables = (c.vocab_size + c.max_positions + 2) * c.embedding_size
    projection, pooler = 128 * 768 + 768, 768 * 768 + 768
    block = small - tables - 2 * 128 - projection - pooler
    assert f"{(tables + projection) / 1e6:.1f} million" in said and f"{projection:,}" in said
    answer = about("Count ALBERT-base", REVIEW)
    for number in (tables, projection, block, pooler, small, small - pooler):
        assert f"{number:,}" in answer
    assert f"{built('xxlarge'):,}" in about("Find slips", REVIEW)


def test_the_operations_are_counted_right():
    operations = {
        (family, size): encoder_flops(published(family, size), 128)
        for family, size in (("bert", "base"), ("albert", "base"), ("bert", "large"),
                             ("albert", "xxlarge"))
    }  # fmt: skip
    assert operations["bert", "base"] == operations["albert", "base"]
    base = f"{operations['bert', 'base'] / 1e9:.2f} billion"
    assert base in about("a speed of 1.7×", ITEMS) and base in about("answer faster", REVIEW)
    said = about("0.3× its speed", ITEMS)
    assert f"{operations['albert', 'xxlarge'] / 1e9:.0f} billion" in said
    assert f"{operations['bert', 'large'] / 1e9:.1f} billion" in said


def test_every_length_hides_the_same_number_of_words():
    u = (torch.arange(66_000, dtype=torch.float64) + 0.5) / 66_000
    lengths = ngrams.ngram_lengths(u, 3)
    words = torch.stack([lengths[lengths == n].sum() for n in (1, 2, 3)]) / lengths.sum()
    assert torch.allclose(words, torch.full((3,), 1 / 3), atol=1e-4)
    right = [c.text for c in ITEMS[9].choices if c.correct]
    assert right == ["1/3"] and "runs of three" in ITEMS[9].question


def test_differences_are_those_of_the_printed_numbers():
    said = about("Where does the loss come from", ITEMS)
    for value in (82.3 - 81.6, 82.3 - 79.5, 82.3 - 79.8):
        assert f"{value:.1f}" in said
    said = about("Compare the ways", REVIEW)
    for value in (82.3 - 81.7, 80.1 - 79.8, 81.6 - 80.1, 82.3 - 79.8):
        assert f"{value:.1f}" in said
    distilled, teacher = 66_362_880, built("bert")
    assert f"{77.0 / 79.5:.1%}" in said and f"{distilled / teacher:.0%}" in said
