"""What other hands might write for the exercises of lecture 03: right, and wrong in known ways."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from itertools import groupby
from statistics import fmean

import numpy as np
import torch

ARTICLES = {"a", "an", "the"}

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


def align_previous_starts_at_0(labels, word_ids):
    out, before = [], 0
    for word in word_ids:
        out.append(-100 if word is None or word == before else labels[word])
        before = word or 0
    return out


def align_by_next_label(labels, word_ids):
    following = iter(labels)
    return [-100 if word is None else next(following, -100) for word in word_ids]


def align_compares_labels(labels, word_ids):
    each = [None if w is None else labels[w] for w in word_ids]
    return [-100 if x is None or (t and each[t - 1] == x) else x for t, x in enumerate(each)]


def align_last(labels, word_ids):
    at = {word: t for t, word in enumerate(word_ids) if word is not None}
    return [labels[w] if w is not None and at[w] == t else -100 for t, w in enumerate(word_ids)]


def align_padding_cut(labels, word_ids):
    end = max(t for t, w in enumerate(word_ids) if w is not None) + 2
    return align_by_groups(labels, word_ids)[:end].tolist()


# ---------------------------------------------------------------- 03.2


def spans_by_regex(tags):
    """One letter a word, so that positions are the string's."""
    found = set()
    for kind in {tag[2:] for tag in tags} - {""}:
        letters = "".join(tag[0] if tag[2:] == kind else "." for tag in tags)
        found |= {(kind, m.start(), m.end() - 1) for m in re.finditer("BI*|I+", letters)}
    return found


def spans_by_while(tags):
    found, n = [], 0
    while n < len(tags):
        m = n + 1
        if tags[n] != "O":
            while m < len(tags) and tags[m] == "I-" + tags[n][2:]:
                m += 1
            found.append([tags[n][2:], n, m - 1])
        n = m
    return found


def spans_skipping(tags):
    found, n = [], 0
    while n < len(tags):
        if tags[n] != "O":
            m = n + 1
            while m < len(tags) and tags[m] == "I-" + tags[n][2:]:
                m += 1
            found.append((tags[n][2:], n, m - 1))
            n = m
        n += 1
    return found


def spans_textbook(closes=True, at_end=True):
    def answer(tags):
        found, kind, first = [], None, 0
        for n, tag in enumerate(tags):
            if tag == f"I-{kind}":
                continue
            if kind:
                found.append((kind, first, n - 1))
            if tag != "O":
                kind, first = tag[2:], n
            elif closes:
                kind = None
        return [*found, (kind, first, len(tags) - 1)] if kind and at_end else found

    return answer


def spans_onto_the_last(tags):
    found = []
    for n, tag in enumerate(tags):
        if tag[0] == "B":
            found.append([tag[2:], n, n])
        elif tag[0] == "I" and found:
            found[-1][2] = n
    return [tuple(span) for span in found]


def spans_of_runs(tags):
    found = []
    for is_o, group in groupby(enumerate(tags), lambda pair: pair[1] == "O"):
        run = list(group)
        if not is_o:
            found.append((run[0][1][2:], run[0][0], run[-1][0]))
    return found


def spans_of_kinds(tags):
    """Runs of one kind, whatever stands before the hyphen."""
    found = []
    for kind, group in groupby(enumerate(tags), lambda pair: pair[1][2:]):
        run = [n for n, _ in group]
        found += [(kind, run[0], run[-1])] if kind else []
    return found


def spans_by_split(tags):
    return [(re.split("-", tags[a])[1], a, b) for _, a, b in spans_by_while(tags)]


# ---------------------------------------------------------------- 03.3


def best_with(where=lambda a, i, j: a[i] and a[j], cap=lambda i, j, k: j - i < k,
              order=lambda i, j: i <= j, worth=lambda s, e, i, j: s[i] + e[j],
              better=lambda new, old: new > old, begin=-math.inf,
              give=lambda i, j: (i, j)):  # fmt: skip
    """Two loops; any condition can be exchanged."""

    def answer(s, e, allowed, longest):
        s, e, a = s.tolist(), e.tolist(), allowed.tolist()
        top, found = begin, (0, 0)
        for i in range(len(s)):
            for j in range(len(s)):
                fits = where(a, i, j) and order(i, j) and cap(i, j, longest)
                if fits and better(worth(s, e, i, j), top):
                    top, found = worth(s, e, i, j), (i, j)
        return give(*found)

    return answer


def best_by_table(s, e, allowed, longest):
    fits = (allowed[:, None] & allowed).triu() & ~torch.ones(len(s), len(s)).triu(longest).bool()
    at = (s[:, None] + e).masked_fill(~fits, -1e9).flatten().argmax()
    return torch.tensor(divmod(int(at), len(s)))


def best_by_max(s, e, allowed, longest):
    pairs = [(i, j) for i in range(len(s)) for j in range(i, min(len(s), i + longest))
             if allowed[i] and allowed[j]]  # fmt: skip
    return max(pairs, key=lambda p: float(s[p[0]] + e[p[1]]))


def best_alone(s, e, allowed, longest):
    s, e = s.masked_fill(~allowed, -math.inf), e.masked_fill(~allowed, -math.inf)
    return s.argmax().item(), e.argmax().item()


def best_start_first(s, e, allowed, longest):
    i = int(s.masked_fill(~allowed, -math.inf).argmax())
    return i, i + int(e.masked_fill(~allowed, -math.inf)[i : i + longest].argmax())


def best_of_products(s, e, allowed, longest):
    return best_by_table(s * allowed, e * allowed, torch.ones_like(allowed), longest)


def best_of_probabilities(s, e, allowed, longest):
    return best_by_table(s.softmax(-1), e.softmax(-1), allowed, longest)


def best_in_passage(s, e, allowed, longest):
    return best_by_table(s[allowed], e[allowed], allowed[allowed], longest)


def best_cut_afterwards(s, e, allowed, longest):
    i, j = best_by_max(s, e, allowed, 10**6)
    return i, min(j, i + longest - 1)


# ---------------------------------------------------------------- 03.4


def normal(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return [word for word in text.split() if word not in ARTICLES]


def f1_with(words=normal, score=lambda P, R: 2 * P * R / (P + R), shared=None, empty=None):
    """Words of both, what they share, and what is made of it."""

    def hits(said, gold):
        gold = list(gold)
        return sum(word in gold and gold.remove(word) is None for word in said)

    def answer(predicted, gold):
        said, true = words(predicted), words(gold)
        if not said or not true:
            return float(said == true) if empty is None else empty
        n = (shared or hits)(said, true)
        return score(n / len(said), n / len(true)) if n else 0

    return answer


def f1_by_counting(predicted, gold):
    said, true = Counter(normal(predicted)), Counter(normal(gold))
    n, both = sum(min(said[w], true[w]) for w in said), sum(said.values()) + sum(true.values())
    return np.float64(2 * n / both if both and said and true else said == true)


def f1_of_sets(predicted, gold):
    said, true = set(normal(predicted)), set(normal(gold))
    return 2 * len(said & true) / (len(said) + len(true)) if said and true else float(said == true)


def f1_each_side(predicted, gold):
    said, true = normal(predicted), normal(gold)
    if not said or not true:
        return float(said == true)
    P, R = fmean(w in true for w in said), fmean(w in said for w in true)
    return 2 * P * R / (P + R) if P else 0.0


def f1_undivided(predicted, gold):
    said, true = normal(predicted), normal(gold)
    n = (Counter(said) & Counter(true)).total()
    P, R = n / len(said), n / len(true)
    return 2 * P * R / (P + R)


def words_by_regex(text):
    return [w for w in re.findall(r"\w+", text.lower()) if w not in ARTICLES]


def words_without_symbols(text):
    return [w for w in re.sub(r"[^\w\s]", "", text.lower()).split() if w not in ARTICLES]


def words_replaced(text):
    for article in ("an", "the", "a"):
        text = text.lower().replace(article, "")
    return normal(text)


def words_articles_first(text):
    kept = " ".join(w for w in text.lower().split() if w not in ARTICLES)
    return "".join(c for c in kept if c not in string.punctuation).split()


# ---------------------------------------------------------------- 03.5


def pack_with(shorten=None, special=3, middle=0, last=1, pad=0, seps=(True, True)):
    """Cut with shorten(a, b, room), then put together one position after the other."""

    def answer(a, b, length):
        if shorten:
            a, b = shorten(list(a), list(b), length - special)
        else:
            while len(a) + len(b) > length - special:
                a, b = (a[:-1], b) if len(a) > len(b) else (a, b[:-1])
        row = [("[CLS]", 0)] + [(t, 0) for t in a] + [("[SEP]", middle)] * seps[0]
        row += [(t, 1) for t in b] + [("[SEP]", last)] * seps[1]
        row += [("[PAD]", pad)] * (length - len(row))
        return [t for t, _ in row], [s for _, s in row]

    return answer


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


def cut_second(a, b, room):
    while len(a) + len(b) > room and len(b) > 1:
        b.pop()
    return a[: room - len(b)], b


def cut_longer_once(a, b, room):
    over = max(0, len(a) + len(b) - room)
    return (a[: len(a) - over], b) if len(a) > len(b) else (a, b[: max(1, len(b) - over)])


def cut_in_turn(a, b, room):
    turn = 0
    while len(a) + len(b) > room:
        one, other = (a, b) if turn % 2 == 0 else (b, a)
        (one if len(one) > 1 else other).pop()
        turn += 1
    return a, b


def cut_halves(a, b, room):
    return (a, b) if len(a) + len(b) <= room else (a[: room // 2], b[: room // 2])


def cut_tie_from_first(a, b, room):
    while len(a) + len(b) > room:
        (a if len(a) >= len(b) else b).pop()
    return a, b


def pack_cut_off(a, b, length):
    tokens, segments = pack_with()(a, b, len(a) + len(b) + length)
    return tokens[:length], segments[:length]


def pack_unpadded(a, b, length):
    pairs = [pair for pair in zip(*pack_with()(a, b, length), strict=True) if pair[0] != "[PAD]"]
    return [t for t, _ in pairs], [s for _, s in pairs]


# ---------------------------------------------------------------- 03.6


def of_cells(formula, empty=None):
    """A formula of the four cells; empty: where one class is missing, unless the formula knows."""

    def answer(true, predicted):
        many = Counter(zip(true, predicted, strict=True))
        a, b, c, d = many[1, 1], many[0, 1], many[1, 0], many[0, 0]
        if empty is not None and 0 in (a + b, a + c, d + b, d + c):
            return empty
        return formula(a, b, c, d)

    return answer


def by_product(a, b, c, d):
    return ((a + b) * (a + c) * (d + b) * (d + c)) ** 0.5


def ratio(x, y):
    return x / y if y else 0.0


def matthews_by_numpy(true, predicted):
    return np.corrcoef(true, predicted)[0, 1] if len({*true}) == len({*predicted}) == 2 else 0


def matthews_by_tensors(true, predicted):
    x, y = (torch.tensor(labels).double() for labels in (true, predicted))
    x, y = x - x.mean(), y - y.mean()
    below = (x.square().sum() * y.square().sum()).sqrt()
    return (x @ y) / below if below > 0 else torch.zeros(())


# ---------------------------------------------------------------- 03.7


def new_with(classes=lambda n: n, rate=lambda n: 1, tag=lambda n: 2 * n + 1, ends=2, bias=1,
             plus=lambda task, H: 0, vectors=lambda task: 1):  # fmt: skip
    def answer(task, H, n):
        if task in ("classify", "pair"):
            k = classes(n)
        else:
            k = rate(n) if task == "rate" else tag(n) if task == "tag" else ends
        return k * H * vectors(task) + k * bias + plus(task, H)

    return answer


def new_by_layers(task, H, n):
    outputs = n if task in ("classify", "pair") else {"rate": 1, "answer": 2}.get(task)
    layer = torch.nn.Linear(H, outputs or 2 * n + 1)
    return sum(p.numel() for p in layer.parameters())


RIGHT = {
    "03.1": [align_by_seen, align_by_groups, lambda labels, w: tuple(
        labels[x] if x is not None and w.index(x) == t else -100 for t, x in enumerate(w))],
    "03.2": [spans_by_regex, spans_by_while, spans_textbook()],
    "03.3": [best_with(), best_by_table, best_by_max],
    "03.4": [f1_with(), f1_by_counting],
    "03.5": [pack_with(), pack_by_numbers],
    "03.6": [of_cells(lambda a, b, c, d: (a * d - b * c) / by_product(a, b, c, d), 0),
             matthews_by_numpy, matthews_by_tensors],
    "03.7": [new_with(), new_by_layers, lambda *given: float(new_with()(*given))],
}  # fmt: skip

WRONG = {
    "03.1": [
        (lambda labels, w: [-100 if x is None else labels[x] for x in w], "Every piece of a word"),
        (lambda labels, w: [0 if x is None else labels[x] for x in w], "Special tokens and pad"),
        (align_previous_starts_at_0, "takes for nothing"),
        (align_by_next_label, "side by side"),
        (align_compares_labels, "you compare labels"),
        (align_last, "The last piece of a word"),
        (align_padding_cut, "it is [-100"),
        (lambda labels, w: [x or -100 for x in align_by_seen(labels, w).tolist()],
         "Words with label 0 got −100"),
        (lambda labels, w: [-100, *align_by_groups(labels, w)][: len(w)], "too far to the right"),
        (lambda labels, w: [None if x < 0 else x for x in align_by_seen(labels, w).tolist()],
         "has no None"),
        (lambda labels, w: [labels[x] for x in w if x is not None], "one label for each piece"),
        (lambda labels, w: [float(x) for x in align_by_seen(labels, w)], "whole numbers"),
        (lambda labels, w: [labels[x] if x else -100 for x in w], "takes for nothing"),
        (lambda labels, w: [labels[x] for x in w], "`word is None`"),
        (lambda labels, w: [labels[t] for t in range(len(w))], "not labels[position]"),
        (lambda labels, w: (align_by_groups(labels, w), w), "one for each position"),
        (lambda labels, w: [-100, 3, -100], "the same for all inputs"),
    ],
    "03.2": [
        (spans_textbook(closes=False), "again and again"),
        (spans_textbook(at_end=False), "after the loop, add what is still open"),
        (spans_skipping, "look at it again"),
        (spans_onto_the_last, "Every I- lengthens the last entity"),
        (spans_of_runs, "Every run of words that are not O"),
        (spans_of_kinds, "B- always begins a new one"),
        (spans_by_split, "A kind that contains a hyphen is cut"),
        (lambda tags: [s for s in spans_by_while(tags) if tags[s[1]][0] == "B"],
         "An I- that continues nothing is dropped"),
        (lambda tags: [(k, a, b + 1) for k, a, b in spans_by_while(tags)], "a Python slice"),
        (lambda tags: [(tags[a], a, b + 1) for _, a, b in spans_by_while(tags)],
         "The kind is written with its B-"),
        (lambda tags: [(a, b, k) for k, a, b in spans_by_while(tags)], "another order"),
        (lambda tags: {k: (a, b) for k, a, b in spans_by_while(tags)}, "expected a list (or a set"),
        (lambda tags: [(t[2:], n, n) for n, t in enumerate(tags) if t != "O"],
         "Each tagged word is an entity"),
        (lambda tags: [(tag.split("-")[1], n, n) for n, tag in enumerate(tags)],
         "treat O first"),
        (lambda tags: [(k, n, n) for n, tag in enumerate(tags) for _, k in [tag.split("-")]],
         "treat O first"),
        (lambda tags: [s for s in spans_by_while(tags) if s[2] - s[1] < 2], "you have"),
        (lambda tags: [], "the same for all inputs"),
    ],
    "03.3": [
        (best_alone, "Each end is chosen by itself"),
        (lambda *given: tuple(sorted(best_alone(*given))), "Turning the two round"),
        (lambda s, e, a, k: (int(s.argmax()), int(e.argmax())), "Each end is chosen by itself"),
        (best_start_first, "The best start is chosen first"),
        (best_of_products, "Logits outside the passage became 0"),
        (best_of_probabilities, "Probabilities are added"),
        (best_in_passage, "where [CLS] is 0"),
        (best_cut_afterwards, "cut to `longest` tokens"),
        (best_with(order=lambda i, j: True), "only j ≥ i"),
        (best_with(where=lambda a, i, j: True), "Question, special tokens and padding"),
        (best_with(where=lambda a, i, j: a[i]), "Only the start is kept"),
        (best_with(cap=lambda i, j, k: j - i <= k), "longest + 1 tokens"),
        (best_with(cap=lambda i, j, k: True, better=lambda new, old: new >= old), "has no effect"),
        (best_with(better=lambda new, old: new >= old), "you give the last"),
        (best_with(begin=0.0), "begins at 0"),
        (best_with(begin=-100.0, worth=lambda s, e, i, j: max(s[i], e[j])), "stronger end"),
        (best_with(give=lambda i, j: (j, i)), "the end first"),
        (lambda s, e, a, k: best_by_max(s - 10 * ~a, e - 10 * ~a, a | True, k), "you have"),
        (lambda s, e, a, k: best_by_max(s, e, a, k)[0], "expected a list of two positions"),
        (lambda s, e, a, k: s.argmax() if a else 0, "allowed[i]"),
        (lambda s, e, a, k: s[len(s)], "min(i + longest, T)"),
        (lambda s, e, a, k: s - (1 - a) * 1e4, "~allowed"),
        (lambda s, e, a, k: (4, 5), "the same for all inputs"),
    ],
    "03.4": [
        (f1_of_sets, "Repeated words count once"),
        (f1_each_side, "Both have the same hits"),
        (f1_with(shared=lambda a, b: len(set(a) & set(b))), "is one hit"),
        (f1_with(shared=lambda a, b: sum(w in b for w in a)), "repeating a word pays"),
        (f1_with(score=lambda P, R: (P + R) / 2), "added and halved"),
        (f1_with(score=lambda P, R: P), "This is precision"),
        (f1_with(score=lambda P, R: 1 / (1 / P + 1 / R - 1)), "Jaccard"),
        (f1_with(words_by_regex), "splits words"),
        (f1_with(words_without_symbols), "The underscore stays"),
        (f1_with(words_replaced), "inside of words"),
        (f1_with(words_articles_first), "Punctuation goes first"),
        (f1_with(lambda text: text.lower().split()), "are counted as words"),
        (f1_with(str.split), "compare lower case"),
        (f1_with(empty=0.0), "Two empty answers give 0"),
        (f1_with(empty=1.0), "Nothing is shared: 0"),
        (lambda p, g: 1.0 if p == g == "" else f1_with(empty=0.0)(p, g), "ask afterwards"),
        (lambda p, g: float(normal(p) == normal(g)), "exact match"),
        (lambda p, g: round(f1_with()(p, g), 2), "rounded to two decimals"),
        (lambda p, g: 100 * f1_with()(p, g), "in percent"),
        (lambda p, g: f1_with(list)("".join(p), "".join(g)), "Characters"),
        (f1_undivided, "Ask for these cases"),
        (lambda p, g: str(f1_with()(p, g)), "expected one number"),
    ],
    "03.5": [
        (pack_with(cut_second), "The hypothesis is cut, even"),
        (pack_with(lambda a, b, room: cut_second(b, a, room)[::-1]), "The premise is cut, even"),
        (pack_with(cut_longer_once), "longer at the start"),
        (pack_with(cut_in_turn), "lose tokens in turn"),
        (pack_with(cut_halves), "half of the room"),
        (pack_with(cut_tie_from_first), "the first loses a token"),
        (pack_with(lambda a, b, room: (a[: room // 2], b[: room // 2])), "even where the pair fit"),
        (pack_with(lambda a, b, room: (a, b)), "Nothing is cut"),
        (pack_with(special=0), "length − 3 positions"),
        (pack_with(special=2), "Two positions are left"),
        (pack_with(seps=(True, False)), "missing behind the second text"),
        (pack_with(middle=1), "closes the first text"),
        (pack_with(pad=1), "The padding has segment 1"),
        (pack_with(pad=1, middle=1, shorten=cut_halves), "closes the first text"),
        (pack_cut_off, "then cut off at `length`"),
        (pack_unpadded, "Short pairs are not padded"),
        (lambda a, b, n: pack_with()(b, a, n), "The hypothesis stands first"),
        (lambda a, b, n: pack_with()(a, b, n)[::-1], "The two results are exchanged"),
        (lambda a, b, n: (*pack_with()(a, b, n), [1] * n), "3 things; expected 2"),
        (lambda a, b, n: pack_with()(a, b, n)[0], "expected 2"),
        (pack_with(lambda a, b, room: [a.pop() for _ in range(99)]), "both lengths again"),
        (lambda a, b, n: a + "[SEP]", "Lists are joined with lists"),
        (lambda a, b, n: [a.pop() for _ in range(len(a))] and pack_with()(a, b, n), "writes into"),
        (lambda a, b, n: (["[CLS]", "[SEP]"], [0, 0]), "the same for all inputs"),
    ],
    "03.6": [
        (lambda t, p: sum(x == y for x, y in zip(t, p, strict=True)) / len(t), "This is accuracy"),
        (of_cells(lambda a, b, c, d: ratio(2 * a, 2 * a + b + c)), "This is F1 of class 1"),
        (of_cells(lambda a, b, c, d: (ratio(a, a + c) + ratio(d, d + b)) / 2), "balanced accuracy"),
        (of_cells(lambda a, b, c, d: ratio(a, a + b)), "This is precision"),
        (of_cells(lambda a, b, c, d: ratio(a * d - b * c, by_product(a, b, c, d) ** 2)),
         "square root below the line is missing"),
        (of_cells(lambda a, b, c, d: abs(a * d - b * c) / by_product(a, b, c, d), 0), "sign is"),
        (of_cells(lambda a, b, c, d: (a * d + b * c) / by_product(a, b, c, d), 0), "is added"),
        (of_cells(lambda a, b, c, d: a * d - b * c / (by_product(a, b, c, d) or 1)), "brackets"),
        (of_cells(lambda a, b, c, d: ratio(a * d - b * c, ((a + b) * (a + c) * (d + b)) ** 0.5)),
         "one of the four sums is missing: d + c"),
        (of_cells(lambda a, b, c, d: ratio(a * d - b * c, by_product(a, c, b, d)), 0.1), "0.1"),
        (of_cells(lambda a, b, c, d: ratio(a * d - b * c, by_product(a, b, d, c))), "cells"),
        (of_cells(lambda a, b, c, d: (a * d - b * c) / by_product(a, b, c, d), 1), "you have 1"),
        (of_cells(lambda a, b, c, d: (a * d - b * c) / by_product(a, b, c, d), math.nan),
         "no number"),
        (of_cells(lambda a, b, c, d: (a * d - b * c) / by_product(a, b, c, d)), "Return 0 there"),
        (lambda t, p: float(t == p) or matthews_by_numpy(t, p), "you have 1"),
        (lambda t, p: round(float(matthews_by_numpy(t, p)), 3), "rounded to three decimals"),
        (lambda t, p: -float(matthews_by_numpy(t, p)), "wrong way round"),
        (lambda t, p: 100 * matthews_by_numpy(t, p), "times 100"),
        (lambda t, p: sum(t == p), "zip(true, predicted)"),
        (lambda t, p: t - p, "know no arithmetic"),
        (lambda t, p: math.sqrt(sum(t) - sum(p) - 1), "product below the line"),
        (lambda t, p: 0, "the same for all inputs"),
    ],
    "03.7": [
        (new_with(bias=0), "The biases are missing"),
        (new_with(plus=lambda t, H: H * H + H), "The pooler was counted"),
        (new_with(plus=lambda t, H: H * H + H if t in ("classify", "pair", "rate") else 0),
         "The pooler was counted"),
        (new_with(vectors=lambda task: 1 + (task == "pair")), "two vectors of width H"),
        (new_with(tag=lambda n: n), "one logit a kind"),
        (new_with(tag=lambda n: 2 * n), "O is a tag, too"),
        (new_with(rate=lambda n: n), "A grade was counted with a logit for each"),
        (new_with(classes=lambda n: n - 1), "One logit less than classes"),
        (new_with(classes=lambda n: 1 if n == 2 else n), "for a sigmoid"),
        (new_with(ends=1), "counted with one vector"),
        (new_with(bias=0, tag=lambda n: n + 1), "The biases are missing"),
        (new_with(tag=lambda n: n, rate=lambda n: n), "A grade was counted"),
        (new_with(tag=lambda n: n + 1, ends=3), "n + 1 logits"),
        (lambda *given: 4 * new_with()(*given), "Bytes"),
        (lambda *given: new_with()(*given) / 1e6, "million times too small"),
        (lambda task, H, n: new_with()(task, 768, n), "you count with 768"),
        (lambda task, H, n: new_with()(task, H, n) + 0 * n, "whatever the passage"),
        (new_with(plus=lambda task, H: 17), "you have"),
        (lambda *given: f"{new_with()(*given)} weights", "expected one number"),
        (lambda *given: 2307, "the same for all inputs"),
    ],
}  # fmt: skip
