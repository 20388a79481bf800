"""Answers to the exercises of lecture 04 as other hands write them, for test_exercises.py."""

from __future__ import annotations

import functools
import math
import random
from itertools import pairwise
from statistics import fmean

import numpy as np
import torch

SPECIAL = ("[PAD]", "[CLS]", "[SEP]")

# ---------------------------------------------------------------- 04.1


def select(number=lambda e, c: e if c is None else e % c, never=SPECIAL,
           name=lambda examples, i: examples[i], take=lambda order, n: order[:n]):  # fmt: skip
    def answer(sequences, examples, epoch, copies, count, draw):
        found = []
        for i, tokens in enumerate(sequences):
            order = sorted((draw(number(epoch, copies), name(examples, i), t), t)
                           for t, token in enumerate(tokens) if token not in never)  # fmt: skip
            found.append([t for _, t in take(order, count)])
        return found

    return answer


def counted_among_words(sequences, examples, epoch, copies, count, draw):
    first, found = epoch if copies is None else epoch % copies, []
    for tokens, example in zip(sequences, examples, strict=True):
        words = [t for t, token in enumerate(tokens) if not token.startswith("[")]
        drawn = sorted(range(len(words)), key=lambda i: draw(first, example, words[i]))
        found.append(drawn[:count])
    return found


def keeping(kept):
    def answer(sequences, examples, *given):
        key = id(given[-1])  # of one question's draw, so that no check helps another
        found = select()(sequences, examples, *given)
        pairs = zip(examples, found, strict=True)
        return [kept.setdefault((key, example), places) for example, places in pairs]

    return answer


def counting(visits):
    def answer(sequences, examples, epoch, copies, count, draw):
        visits[0] += 1
        return select()(sequences, examples, visits[0], copies, count, draw)

    return answer


def by_chance(sequences, examples, epoch, copies, count, draw):
    words = [[t for t, token in enumerate(s) if token not in SPECIAL] for s in sequences]
    return [random.sample(places, count) for places in words]


WRONG_SELECTIONS = [
    (select(never=()), "[CLS], [SEP] and [PAD] take part"),
    (select(never=("[CLS]", "[SEP]")), "padding takes part"),
    (select(take=lambda order, n: order[::-1][:n]), "*largest* draws"),
    (counted_among_words, "counted among the words only"),
    (select(name=lambda examples, i: i), "place of a sequence in its batch"),
    (select(name=lambda examples, i: 0), "drawn as example 0"),
    (select(lambda e, c: 0), "drawn once and reused"),
    (select(lambda e, c: e % (c or 1)), "With copies=None the mask never"),
    (select(lambda e, c: e), "Also with several copies"),
    (select(lambda e, c: (e + 1) % c if c else e), "counted from one"),
    (select(lambda e, c: min(e, c - 1) if c else e), "After the last copy you stay"),
    (select(lambda e, c: e // c if c else e), "one copy serves several epochs"),
    (select(lambda e, c: 0, never=("[PAD]",)), "Padding is left out, but"),
    (keeping({}), "kept from the first time"),
    (counting([0]), "Asked twice for the same batch"),
    (by_chance, "Asked twice for the same batch"),
    (lambda *given: 3, "expected a list of lists of positions"),
    (select(take=lambda order, n: order[1 : n + 1]), "you have"),
]

# ---------------------------------------------------------------- 04.2


def fraction(rate=lambda n, k: k / (n - 2), draws=lambda p, c: min(p, c or p), end=lambda x: x):
    return lambda n, k, p, c: end(1 - math.prod([1 - rate(n, k)] * draws(p, c)))


def added_up(n, k, p, c):
    return k / (n - 2) * min(p, c or p)


WRONG_FRACTIONS = [
    (added_up, "are added up. That passes 1"),
    (lambda *given: min(1, added_up(*given)), "and cut off at 1"),
    (lambda n, k, p, c: k * p / (n - 2), "copies has no effect"),
    (fraction(end=lambda x: 1 - x), "*never* selected"),
    (lambda n, k, p, c: (k / (n - 2)) ** min(p, c or p), "selected in *every* draw"),
    (fraction(draws=lambda p, c: min(p, c or 1)), "With copies=None"),
    (fraction(draws=lambda p, c: p), "as if new draws came"),
    (fraction(draws=lambda p, c: c or p), "All copies are counted from the first"),
    (fraction(draws=lambda p, c: p % c if c else p), "modulo the copies"),
    (fraction(rate=lambda n, k: k / n), "divided by all tokens"),
    (fraction(rate=lambda n, k: k / n, draws=lambda p, c: p), "divided by all tokens"),
    (fraction(rate=lambda n, k: 0.15), "taken as 15%"),
    (fraction(end=lambda x: 100 * x), "in percent"),
    (fraction(end=lambda x: f"{x:.0%}"), "expected one number"),
    (fraction(rate=lambda n, k: k / (n - 3)), "you have"),
]

# ---------------------------------------------------------------- 04.3


def numbered(rule, padding=lambda k, t, pad: pad):
    """With loops: rule(how many real so far, place, pad id) for tokens, padding(…) for padding."""

    def answer(input_ids, pad_id):
        out = input_ids.clone()
        for row in out:
            seen = 0
            for t, token in enumerate(row.tolist()):
                seen += token != pad_id
                row[t] = (rule if token != pad_id else padding)(seen, t, pad_id)
        return out

    return answer


def with_numpy(input_ids, pad_id):
    real = input_ids.numpy() != pad_id
    return np.where(real, pad_id + np.cumsum(real, axis=1), pad_id)


WRONG_POSITIONS = [
    (lambda ids, pad: torch.arange(ids.shape[1]).expand_as(ids), "as BERT does"),
    (numbered(lambda k, t, pad: pad + k - 1), "which belongs to padding"),
    (numbered(lambda k, t, pad: k), "without the offset"),
    (numbered(lambda k, t, pad: k, lambda k, t, pad: 0), "Everything is pad_id higher"),
    (lambda ids, pad: numbered(lambda k, t, pad: 1 + k)(ids, 1), "whose pad id is 1"),
    (numbered(lambda k, t, pad: t + 2, lambda k, t, pad: 1), "begin at 2 whatever pad_id"),
    (numbered(lambda k, t, pad: pad + k, lambda k, t, pad: 0), "Padding has the number 0"),
    (numbered(lambda k, t, pad: pad + k, lambda k, t, pad: pad + k), "real token before it"),
    (lambda ids, pad: torch.arange(ids.shape[1]).expand_as(ids) + pad + 1, "numbered on like"),
    (numbered(lambda k, t, pad: pad + 1 + t), "its place in the sequence"),
    (lambda ids, pad: pad + (ids != pad).cumsum(0) * (ids != pad), "The running sum goes down"),
    (lambda ids, pad: pad + (ids != pad) * (ids != pad).flatten().cumsum(0).view_as(ids), "next."),
    (lambda ids, pad: ids.copy_(numbered(lambda k, t, pad: pad + k)(ids, pad)), "writes into"),
    (lambda ids, pad: numbered(lambda k, t, pad: pad + k)(ids, pad) / 1, "of whole numbers"),
    (lambda ids, pad: torch.arange(ids.shape[1]) + pad + 1, "that is (B, T)"),
    (lambda ids, pad: (ids != pad).long().cumsum(), "dim=1"),
    (lambda ids, pad: pad + (1 - (ids == pad)).cumsum(1), "add .long()"),
    (numbered(lambda k, t, pad: pad + 2 * k), "you have"),
]

# ---------------------------------------------------------------- 04.4


def join_all(pieces, at):
    pair, out, i = pieces[at : at + 2], [], 0
    while i < len(pieces):
        wide = 2 if pieces[i : i + 2] == pair else 1
        out.append("".join(pieces[i : i + wide]))
        i += wide
    return out


def join_one(pieces, at):
    return [*pieces[:at], "".join(pieces[at : at + 2]), *pieces[at + 2 :]]


def join_backwards(pieces, at):
    turned = [piece[::-1] for piece in pieces[::-1]]
    return [piece[::-1] for piece in join_all(turned, len(pieces) - 2 - at)[::-1]]


def cut(choose=min, joined=join_all, rounds=99):
    """choose: which of the (rank, place) pairs of neighbours is next; joined: how."""

    def answer(word, merges):
        pieces = list(word)
        for _ in range(rounds):
            found = [(merges.index(p), i) for i, p in enumerate(pairwise(pieces)) if p in merges]
            pieces = joined(pieces, choose(found)[1]) if found else pieces
        return pieces

    return answer


def through_the_list(word, merges):
    return functools.reduce(
        lambda pieces, pair: next((join_all(pieces, i) for i, p in enumerate(pairwise(pieces))
                                   if p == pair), pieces), merges, list(word))  # fmt: skip


def as_text(word, merges):
    text = " ".join(word)
    for pair in merges:
        text = text.replace(" ".join(pair), "".join(pair))
    return text.split(" ")


def one_sweep(word, merges):
    pieces = list(word[:1])
    for letter in word[1:]:
        pieces = [*pieces[:-1], pieces[-1] + letter] if (pieces[-1], letter) in merges else [
            *pieces, letter]  # fmt: skip
    return pieces


def last_lost(word, merges):
    """`while i < len(pieces) - 1`: the last piece is left out where it has no partner."""
    pieces = list(word)
    for pair in merges:
        out, i = [], 0
        while i < len(pieces) - 1:
            both = (pieces[i], pieces[i + 1]) == pair
            out.append(pieces[i] + pieces[i + 1] if both else pieces[i])
            i += 2 if both else 1
        pieces = out if pair in pairwise(pieces) else pieces
    return pieces


WRONG_PIECES = [
    (lambda word, merges: list(word), "Nothing is joined"),
    (cut(rounds=1), "One merge is made"),
    (one_sweep, "along the word once"),
    (as_text, "*inside* longer pieces"),
    (cut(lambda found: min(found, key=lambda at: at[1]), join_one), "The leftmost pair"),
    (cut(lambda found: min(found, key=lambda at: at[1])), "The leftmost pair"),
    (cut(lambda found: found[-1], join_one), "The rightmost pair"),
    (cut(max), "learned *last*"),
    (lambda word, merges: cut()(word, merges[::-1]), "learned *last*"),
    (cut(joined=join_backwards), "joined from the right"),
    (last_lost, "Letters are lost"),
    (lambda word, merges: "·".join(cut()(word, merges)), "expected a list of pieces"),
    (lambda word, merges: [word[i] + word[i + 1] for i in range(len(word))], "i + 1 < len"),
    (lambda word, merges: cut()(word, merges)[::-1], "opposite order"),
]

# ---------------------------------------------------------------- 04.5


def averaged(change=lambda recipe, task, two: None, end=fmean, out=None):
    """The recipes written out; change: what of a task is taken instead, or None for the right."""

    def answer(row, recipe):
        numbers = []
        for task in row:
            two = list(row[task]) if isinstance(row[task], (tuple, list)) else [row[task]]
            right = [sum(two) / len(two)] if recipe == "leaderboard" else two[:1]
            if recipe == "test-9" and task in ("MNLI", "STS-B"):
                right = two if task == "MNLI" else two[-1:]
            left_out = recipe in (("test-9", "dev-8") if out is None else out)
            numbers += [] if task == "WNLI" and left_out else change(recipe, task, two) or right
        return end(numbers)

    return answer


def only(recipe, tasks, take):
    return averaged(lambda r, task, two: take(two) if r == recipe and task in tasks else None)


PAIRS = ("MNLI", "QQP", "MRPC", "STS-B")
ALL = ("dev-9", "dev-8", "leaderboard", "test-9")
WRONG_AVERAGES = [
    (averaged(out=()), "WNLI is in the average"),
    (averaged(out=ALL), "WNLI is missing"),
    (averaged(lambda r, task, two: two[:1], out=()), "WNLI is in the average"),
    (only("test-9", ["MNLI"], lambda two: two[:1]), "MNLI enters with one number"),
    (only("test-9", ["MNLI"], lambda two: [sum(two) / 2]), "two halves of MNLI are averaged"),
    (averaged(lambda r, task, two: two if task == "MNLI" else None), "Only test-9 does that"),
    (only("dev-8", ["MNLI"], lambda two: two[1:]), "the mismatched half"),
    (only("leaderboard", PAIRS, lambda two: two), "enter by themselves"),
    (only("leaderboard", PAIRS[1:], lambda two: two[:1]), "Their two numbers are averaged too"),
    (only("test-9", ("QQP", "MRPC"), lambda two: two[1:]), "the accuracy of QQP and MRPC"),
    (only("test-9", ("STS-B",), lambda two: two[:1]), "the Pearson correlation"),
    (averaged(lambda r, task, two: two[:1]), "Of every pair the first"),
    (averaged(lambda r, task, two: two, out=()), "Every number of the row"),
    (averaged(end=lambda x: fmean(map(round, x))), "rounded before they are averaged"),
    (averaged(end=lambda x: round(fmean(x), 1)), "rounded to one decimal; do not round"),
    (averaged(end=sum), "This is the sum"),
    (averaged(end=lambda x: sum(x) / 9), "divided by nine whatever"),
    (lambda row, recipe: list(row), "expected one number"),
    (averaged(end=lambda x: fmean(x) + 2), "you have"),
]

# ---------------------------------------------------------------- 04.6


def accumulated(weights=lambda n, s, t: n, by=None):
    def answer(losses, selected, sequences, tokens):
        chosen = weights(selected, sequences, tokens)
        total = sum(x * w for x, w in zip(losses, chosen, strict=True) if x == x)
        return total / (by(selected, sequences, tokens) if by else max(1, sum(chosen)))

    return answer


def without_empty(losses, *given):
    found = [x for x in losses if not math.isnan(x)]
    return sum(found) / max(1, len(found))


def with_tensors(losses, selected, sequences, tokens):
    n = torch.tensor(selected, dtype=torch.float64)
    return (torch.tensor(losses, dtype=torch.float64).nan_to_num() * n).sum() / n.sum().clamp(1)


WRONG_LOSSES = [
    (accumulated(lambda n, s, t: [1] * len(n)), "You average the means"),
    (without_empty, "left out rightly"),
    (accumulated(lambda n, s, t: [1] * len(n), by=lambda n, s, t: 1), "You add the means"),
    (accumulated(by=lambda n, s, t: 1), "the sum over all selected"),
    (accumulated(lambda n, s, t: s), "weighted by the number of sequences"),
    (accumulated(lambda n, s, t: t), "weighted by the number of tokens"),
    (accumulated(by=lambda n, s, t: sum(t)), "divided by all tokens"),
    (accumulated(by=lambda n, s, t: len(n) * max(1, sum(n))), "once more"),
    (accumulated(by=lambda n, s, t: sum(max(1, k) for k in n)), "counted as one selected"),
    (lambda x, n, *more: 0 if 0 in n else accumulated()(x, n, *more), "makes the whole loss 0"),
    (lambda x, n, *more: sum(a * b for a, b in zip(x, n, strict=True)) / sum(n), "0 · nan"),
    (lambda x, n, *more: torch.tensor(x).nanmean(), "left out rightly"),
    (lambda x, n, s, t: x[-1], "last part alone"),
    (accumulated(by=lambda n, s, t: sum(n)), "max(1, sum(selected))"),
    (lambda *given: 1.5 * accumulated()(*given), "you have"),
]

RIGHT = {
    "04.1": [select(), lambda *given: [set(places) for places in select()(*given)],
             lambda *given: torch.tensor(select()(*given))],
    "04.2": [fraction(), lambda n, k, p, c: 1 - ((n - 2 - k) / (n - 2)) ** min(p, c or math.inf)],
    "04.3": [numbered(lambda k, t, pad: pad + k), with_numpy,
             lambda ids, pad: numbered(lambda k, t, pad: pad + k)(ids, pad).tolist()],
    "04.4": [cut(), cut(joined=join_one), through_the_list, lambda w, m: tuple(cut()(w, m))],
    "04.5": [averaged(), averaged(end=np.mean)],
    "04.6": [accumulated(), with_tensors],
}  # fmt: skip
WRONG = {"04.1": WRONG_SELECTIONS, "04.2": WRONG_FRACTIONS, "04.3": WRONG_POSITIONS,
         "04.4": WRONG_PIECES, "04.5": WRONG_AVERAGES, "04.6": WRONG_LOSSES}  # fmt: skip
