"""What other hands might write for the exercises of lecture 03, right and wrong.

A wrong answer that does what an edit of the solution does is tested with the edits."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from itertools import groupby

import numpy as np
import torch

# ---------------------------------------------------------------- 03.1


def align_by_seen(labels, word_ids):
    out, seen = torch.full((len(word_ids),), -100), set()
    for t, word in enumerate(word_ids):
        if word is not None and word not in seen:
            out[t] = labels[word]
            seen.add(word)
    return out


def align_by_groups(labels, word_ids):
    out = []
    for word, group in groupby(word_ids):
        rest = [-100] * len(list(group))
        out += rest if word is None else [labels[word], *rest[1:]]
    return np.array(out)


def align_by_index(labels, word_ids):
    return tuple(labels[word] if word is not None and word_ids.index(word) == t else -100
                 for t, word in enumerate(word_ids))  # fmt: skip


def align_padding_cut(labels, word_ids):
    end = max(t for t, w in enumerate(word_ids) if w is not None) + 2
    return align_by_groups(labels, word_ids)[:end].tolist()


# ---------------------------------------------------------------- 03.2


def spans_by_regex(tags):
    """One letter a word, so that positions are the string's."""
    spans = set()
    for kind in {tag[2:] for tag in tags} - {""}:
        letters = "".join(tag[0] if tag[2:] == kind else "." for tag in tags)
        spans |= {(kind, m.start(), m.end() - 1) for m in re.finditer("BI*|I+", letters)}
    return spans


def spans_by_while(tags):
    spans, n = [], 0
    while n < len(tags):
        m = n + 1
        if tags[n] != "O":
            while m < len(tags) and tags[m] == "I-" + tags[n][2:]:
                m += 1
            spans.append([tags[n][2:], n, m - 1])
        n = m
    return spans


def spans_textbook(tags):
    spans, kind, first = [], None, 0
    for n, tag in enumerate([*tags, "O"]):
        if tag == f"I-{kind}":
            continue
        if kind:
            spans.append((kind, first, n - 1))
        kind, first = tag[2:], n
    return spans


def spans_by_parts(tags):
    parts = [tag.split("-") for tag in tags]
    return [(both[1], n, n) for n, both in enumerate(parts)]


def spans_by_two_parts(tags):
    """Right, but for kinds with a hyphen."""
    spans = []
    for n, tag in enumerate(tags):
        if tag == "O":
            continue
        mark, kind = tag.split("-")
        if mark == "I" and spans and spans[-1][2] == n - 1 and spans[-1][0] == kind:
            spans[-1] = (kind, spans[-1][1], n)
        else:
            spans.append((kind, n, n))
    return spans


# ---------------------------------------------------------------- 03.3


def best_by_table(s, e, allowed, longest):
    fits = (allowed[:, None] & allowed).triu() & ~torch.ones(len(s), len(s)).triu(longest).bool()
    at = (s[:, None] + e).masked_fill(~fits, -1e9).flatten().argmax()
    return torch.tensor(divmod(int(at), len(s)))


def best_by_max(s, e, allowed, longest):
    pairs = [(i, j) for i in range(len(s)) for j in range(i, min(len(s), i + longest))
             if allowed[i] and allowed[j]]  # fmt: skip
    return max(pairs, key=lambda p: float(s[p[0]] + e[p[1]]))


# ---------------------------------------------------------------- 03.4


def normal(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return [word for word in text.split() if word not in ("a", "an", "the")]


def f1(predicted, gold, words=normal):
    guess, true = words(predicted), words(gold)
    if not guess or not true:
        return float(guess == true)
    left = list(true)
    n = sum(word in left and left.remove(word) is None for word in guess)
    return 2 * n / (len(guess) + len(true))


def f1_by_counting(predicted, gold):
    guess, true = Counter(normal(predicted)), Counter(normal(gold))
    n, both = sum(min(guess[w], true[w]) for w in guess), sum(guess.values()) + sum(true.values())
    return np.float64(2 * n / both if both and guess and true else guess == true)


def f1_undivided(predicted, gold):
    guess, true = normal(predicted), normal(gold)
    n = (Counter(guess) & Counter(true)).total()
    P, R = n / len(guess), n / len(true)
    return 2 * P * R / (P + R)


# ---------------------------------------------------------------- 03.5


def pack(a, b, length):
    """One position after the other."""
    while len(a) + len(b) > length - 3:
        a, b = (a[:-1], b) if len(a) > len(b) else (a, b[:-1])
    row = [("[CLS]", 0), *((t, 0) for t in a), ("[SEP]", 0), *((t, 1) for t in b), ("[SEP]", 1)]
    row += [("[PAD]", 0)] * (length - len(row))
    return [t for t, _ in row], [s for _, s in row]


def pack_by_numbers(a, b, length):
    """How much of each is kept, without a loop."""
    room = length - 3
    if len(a) + len(b) > room:
        n = max(room - len(b), min(len(a), room - room // 2))
        a, b = a[:n], b[: room - n]
    tokens = ("[CLS]", *a, "[SEP]", *b, "[SEP]", *["[PAD]"] * (room - len(a) - len(b)))
    segments = torch.zeros(length, dtype=torch.long)
    segments[len(a) + 2 : len(a) + len(b) + 3] = 1
    return tokens, segments


# ---------------------------------------------------------------- 03.6


def of_cells(empty=None):
    """empty: what is returned where one class is missing."""

    def answer(true, predicted):
        many = Counter(zip(true, predicted, strict=True))
        a, b, c, d = many[1, 1], many[0, 1], many[1, 0], many[0, 0]
        if empty is not None and 0 in (a + b, a + c, d + b, d + c):
            return empty
        return (a * d - b * c) / ((a + b) * (a + c) * (d + b) * (d + c)) ** 0.5

    return answer


def matthews_by_numpy(true, predicted):
    return np.corrcoef(true, predicted)[0, 1] if len({*true}) == len({*predicted}) == 2 else 0


def matthews_by_tensors(true, predicted):
    x, y = (torch.tensor(labels).double() for labels in (true, predicted))
    x, y = x - x.mean(), y - y.mean()
    below = (x.square().sum() * y.square().sum()).sqrt()
    return (x @ y) / below if below > 0 else torch.zeros(())


# ---------------------------------------------------------------- 03.7


def new_by_layers(task, H, n):
    outputs = n if task in ("classify", "pair") else {"rate": 1, "answer": 2}.get(task)
    layer = torch.nn.Linear(H, outputs or 2 * n + 1)
    return sum(p.numel() for p in layer.parameters())


RIGHT = {
    "03.1": [align_by_seen, align_by_groups, align_by_index],
    "03.2": [spans_by_regex, spans_by_while, spans_textbook],
    "03.3": [best_by_table, best_by_max],
    "03.4": [f1, f1_by_counting],
    "03.5": [pack, pack_by_numbers],
    "03.6": [of_cells(0), matthews_by_numpy, matthews_by_tensors],
    "03.7": [new_by_layers, lambda *args: float(new_by_layers(*args))],
}
WRONG = {
    "03.1": [
        (align_padding_cut, "expected [-100"),
        (lambda labels, w: [labels[x] for x in w if x is not None], "one label for each piece"),
        (lambda labels, w: [labels[x] for x in w], "`word is None`"),
        (lambda labels, w: [labels[t] for t in range(len(w))], "not labels[position]"),
        (lambda labels, w: (align_by_groups(labels, w), w), "one for each position"),
    ],
    "03.2": [
        (lambda tags: [(tags[a], a, b + 1) for _, a, b in spans_by_while(tags)],
         "The kind is written with its B-"),
        (lambda tags: [(tag.split("-")[1], n, n) for n, tag in enumerate(tags)],
         "treat O first"),
        (lambda tags: [(k, n, n) for n, tag in enumerate(tags) for _, k in [tag.split("-")]],
         "treat O first"),
        (lambda tags: [(tag[2], n, n) for n, tag in enumerate(tags)], "treat O first"),
        (spans_by_parts, '"O".split("-")[1]'),
        (spans_by_two_parts, "A kind may contain a hyphen itself"),
        (lambda tags: [(k, n, n) for n, tag in enumerate(tags) for _, k in [tag.partition("-")]],
         "partition always gives three parts"),
    ],
    "03.3": [
        (lambda s, e, a, k: best_by_max(s - 10 * ~a, e - 10 * ~a, a | True, k), "you have"),
        (lambda s, e, a, k: s.argmax() if a else 0, "allowed[i]"),
        (lambda s, e, a, k: s[len(s)], "min(i + longest, T)"),
        (lambda s, e, a, k: s - (1 - a) * 1e4, "~allowed"),
    ],
    "03.4": [
        (lambda p, g: f1(p, g, words=str.split), "compare lower case"),
        (f1_undivided, "Handle these cases first"),
    ],
    "03.5": [
        (lambda a, b, n: [[].pop() for _ in range(len(a) + len(b) - n + 9)], "both lengths again"),
        (lambda a, b, n: a + "[SEP]", "Lists are joined with lists"),
    ],
    "03.6": [
        (of_cells(0.1), "0.1"),
        (of_cells(1), "you have 1"),
        (of_cells(), "Return 0 there"),
        (lambda t, p: sum(t == p), "zip(true, predicted)"),
        (lambda t, p: t - p, "know no arithmetic"),
        (lambda t, p: math.sqrt(sum(t) - sum(p) - 1), "product below the line"),
    ],
    "03.7": [
        (lambda task, H, n: new_by_layers(task, H, n) + 0 * n, "whatever the passage"),
        (lambda *args: new_by_layers(*args) + 17, "you have"),
    ],
}  # fmt: skip
