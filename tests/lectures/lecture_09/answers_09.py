"""Answers to the exercises of lecture 09 as other hands write them, for test_exercises.py."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from course_lib.kernels.span_masking import length_probabilities

# ---------------------------------------------------------------- 09.1


def lengths(p, longest, start=1, normed=True):
    """Length by length."""
    weights = [(1 - p) ** (n - start) * p for n in range(start, longest + start)]
    total = sum(weights) if normed else 1
    probabilities = [w / total for w in weights]
    return probabilities, sum(n * x for n, x in enumerate(probabilities, start=start))


def by_library(p, longest):
    probabilities = length_probabilities(p, longest)
    return probabilities, probabilities @ range(1, longest + 1)


def sampled(p, longest):
    """Counts of draws are no probabilities."""
    draws = torch.distributions.Geometric(p).sample((10_000,)).clamp(max=longest - 1).long()
    frequencies = draws.bincount(minlength=longest) / 10_000
    return frequencies, float(frequencies @ torch.arange(1.0, longest + 1))


WRONG_LENGTHS = [
    (partial(lengths, normed=False), "do not add up to one"),
    (lambda p, n: (torch.tensor(lengths(p, n)[0]) @ torch.arange(1, n + 1), 1), ".double()"),
    (sampled, "you have"),
]

# ---------------------------------------------------------------- 09.2


def spans(word_of, draws, budget, count_all=False, by_pieces=False, merged=True, passing=True):
    """Position by position, with a mark at each."""
    T = len(word_of)
    hidden, used = [False] * T, 0
    for position, words in draws:
        if passing and hidden[position]:
            continue
        t = position
        while word_of[t - 1] == word_of[t]:
            t -= 1
        left = words
        while word_of[t] >= 0 and left > 0 and used < budget:
            used += not hidden[t] or count_all
            hidden[t] = True
            left -= by_pieces or word_of[t + 1] != word_of[t]
            t += 1
    result, t = [], 0
    while t < T:
        end = t
        while merged and hidden[t] and hidden[end + 1]:
            end += 1
        if hidden[t]:
            result.append([t, end])
        t = end + 1
    return result


def as_tensor(*args):
    return torch.tensor(spans(*args))


WRONG_SPANS = [
    (partial(spans, count_all=True), "You add up the lengths"),
    (partial(spans, passing=False), "You continue from a selected position"),
    (lambda w, d, b: [x for x, _ in spans(w, d, b)], "you have"),
    (lambda w, d, b: spans(w, d[:1], b), "you have"),
    (lambda w, d, b: [x - 1 for x in d], "unsupported operand"),
]

# ---------------------------------------------------------------- 09.3


def boundaries(is_text, spans, longest):
    """Token by token, over the whole text."""
    triples = []
    for t in range(len(is_text)):
        for first, last in spans:
            touching = {first - 1, last + 1} - {s for s, word in enumerate(is_text) if word}
            if first <= t <= last and not touching and t < first + longest:
                triples.append([first - 1, last + 1, t - first])
    return triples


WRONG_BOUNDARIES = [
    (lambda x, s, n: boundaries([True] * len(x), s, n), "is left out"),
    (lambda x, s, n: boundaries(x, s, n + 1), "one token too many"),
    (lambda x, s, n: [(a, b) for a, b, _ in boundaries(x, s, n)], "you have"),
    (lambda x, s, n: [boundaries(x, [one], n) for one in s], "you have"),
    (lambda x, s, n: [(a, b, b - a) for a, b, _ in boundaries(x, s, n)], "you have"),
    (lambda x, s, n: [(x[a], x[b], i) for a, b, i in boundaries(x, s, n)], "you have"),
    (lambda x, s, n: [(f - 1, t, 0) for f in s for t in f], "first, last in spans"),
]

# ---------------------------------------------------------------- 09.4


def units(word_of, names, order, budget, fits=lambda have, size, budget: have + size <= budget):
    """With a list of units and where each begins."""
    inside = {t for start, stop in names for t in range(start, stop)}
    words = [t for t in range(len(word_of)) if word_of[t] >= 0 and t not in inside]
    begins = {start: list(range(start, stop)) for start, stop in names}
    for t in words:
        if t - 1 in words and word_of[t - 1] == word_of[t]:
            continue
        begins[t] = [s for s in words if word_of[s] == word_of[t]]
    hidden = set()
    for t in order:
        if t in begins and fits(len(hidden), len(begins[t]), budget):
            hidden.update(begins[t])
    return hidden


WRONG_UNITS = [
    (lambda w, n, o, b: units(w, [], o, b), "The names have no effect"),
    (lambda w, n, o, b: units(range(len(w)), n, o, b), "you have"),
    (lambda w, n, o, b: units(w, [(x, y + 1) for x, y in n], o, b), "you have"),
    (lambda w, n, o, b: [t in units(w, n, o, b) for t in range(len(w))], "you have"),
    (lambda w, n, o, b: o[:b], "you have"),
    (lambda w, n, o, b: {w[t] for t in units(w, n, o, b)}, "numbers of words"),
]

# ---------------------------------------------------------------- 09.5


def transe(entity, relation, facts, side, other, margin, hinge=F.relu, p=1):
    """Fact by fact."""
    total = 0
    for (h, r, t), s, o in zip(facts.tolist(), side.tolist(), other.tolist(), strict=True):
        wrong_h, wrong_t = (o, t) if s == 0 else (h, o)
        near = (entity[h] + relation[r] - entity[t]).norm(p=p)
        far = (entity[wrong_h] + relation[r] - entity[wrong_t]).norm(p=p)
        total = total + hinge(margin + near - far)
    return total / len(facts)


def by_margin_ranking(entity, relation, facts, side, other, margin):
    h, r, t = facts.unbind(1)
    wrong_h, wrong_t = torch.where(side == 0, other, h), torch.where(side == 1, other, t)
    near, far = (
        (entity[a] + relation[r] - entity[b]).abs().sum(1) for a, b in ((h, t), (wrong_h, wrong_t))
    )
    return F.margin_ranking_loss(far, near, torch.ones_like(near), margin=margin)


def of_tensors(entity, relation, facts, side, other, margin):
    """As max(0, …) of N numbers; of one it is right."""
    false = facts.clone()
    false[torch.arange(len(facts)), 2 * side] = other
    near, far = (
        (entity[x[:, 0]] + relation[x[:, 1]] - entity[x[:, 2]]).abs().sum(1) for x in (facts, false)
    )
    return torch.as_tensor(max(0, margin + near - far)).mean()


WRONG_LOSSES = [
    (partial(transe, p=2), "Euclidean"),
    (lambda e, r, f, s, o, m: transe(F.normalize(e, dim=-1), r, f, s, o, m), "you have"),
    (of_tensors, "entry by entry"),
    (lambda e, r, f, s, o, m: e[f[:, 1]] + r[f[:, 0]], "relations rows of `relation`"),
]

# ---------------------------------------------------------------- 09.6


def fusion(words, ids, entities, text_in, entity_in, bias, text_out, entity_out, act=F.gelu):
    """Token by token."""
    new_words, new_entities = [], []
    for word, n in zip(words, ids.tolist(), strict=True):
        entity = entities[n] if n >= 0 else torch.zeros_like(entities[0])
        hidden = act(text_in.T @ word + entity_in.T @ entity + bias)
        new_words.append(word + text_out.T @ hidden)
        new_entities.append(entity + entity_out.T @ hidden if n >= 0 else entity)
    return new_words, new_entities


def by_one_row_more(words, ids, entities, text_in, entity_in, bias, text_out, entity_out):
    """−1 looks up a row of zeros at the end."""
    entity = torch.cat([entities, torch.zeros_like(entities[:1])])[ids]
    both = torch.cat([words, entity], 1) @ torch.cat([text_in, entity_in]) + bias
    hidden = F.gelu(both)
    new = torch.where(ids[:, None] < 0, 0.0, entity + hidden @ entity_out)
    return words + hidden @ text_out, new


def of_the_paper(words, ids, entities, text_in, entity_in, bias, text_out, entity_out):
    there = (ids >= 0)[:, None]
    hidden = F.gelu(words @ text_in + entities[ids] * there @ entity_in + bias)
    return hidden @ text_out, hidden @ entity_out * there


def unbroadcast(words, ids, entities, *weights):
    """True and False have one axis, the entities two: of one token nothing goes wrong."""
    there = ids >= 0
    return fusion(words, ids, entities, *weights)[0], entities[ids] * there


WRONG_FUSIONS = [
    (of_the_paper, "The paper's equations have no residual"),
    (partial(fusion, act=lambda x: F.gelu(2 * x)), "you have"),
    (lambda w, ids, *rest: fusion(w, ids.abs(), *rest), "you have"),
    (lambda w, ids, e, a, *rest: w @ a + e[ids] @ a, "Entities have width E"),
    (lambda w, ids, e, a, b, *rest: (w, e[ids] * (ids >= 0)), "you have"),
    (unbroadcast, "[:, None]"),
]

RIGHT = {
    "09.1": [lengths, by_library, lambda *args: [torch.tensor(x) for x in by_library(*args)]],
    "09.2": [spans, as_tensor, lambda *args: [tuple(x) for x in spans(*args)]],
    "09.3": [boundaries, lambda *args: torch.tensor(boundaries(*args)),
             lambda *args: tuple(map(tuple, boundaries(*args)))],
    "09.4": [units, lambda *args: torch.tensor(sorted(units(*args))),
             lambda *args: tuple(units(*args))],
    "09.5": [transe, by_margin_ranking],
    "09.6": [fusion, by_one_row_more],
}  # fmt: skip
WRONG = {"09.1": WRONG_LENGTHS, "09.2": WRONG_SPANS, "09.3": WRONG_BOUNDARIES,
         "09.4": WRONG_UNITS, "09.5": WRONG_LOSSES, "09.6": WRONG_FUSIONS}  # fmt: skip
