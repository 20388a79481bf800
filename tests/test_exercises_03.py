"""Exercises of lecture 03: the planted wrong answers, and the solutions beside the library.

What every exercise must do is asked in test_exercises.py, of these as of all others.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter

import pytest
import torch

from course_lib.encoder import count_parameters
from course_lib.exercises.lecture_03 import EXERCISES as ALL
from course_lib.exercises.lecture_03 import (
    align,
    answers,
    best,
    correlation,
    cutting,
    heads,
    spans,
)
from course_lib.exercises.machinery import Draw, check_answer, close
from course_lib.family.bert import bert
from course_lib.heads import (
    BertForClassification,
    BertForQuestionAnswering,
    BertForTokenClassification,
)
from course_lib.objectives.rows import SpecialIds
from course_lib.objectives.spans import best_spans
from course_lib.text.english import ENTITY_TAGS, TaggedSentence
from course_lib.text.features import tagged_rows
from course_lib.text.packing import pack_pair
from course_lib.text.wordpiece import WordPiece
from course_lib.train import task_metrics

EXERCISES = {exercise.id: exercise for exercise in ALL}
SEEDS = (0, 1, 2, 3, 4, 5)
torch.set_num_threads(1)  # the tensors are tiny


# ---------------------------------------------------------------- planted wrong answers


def align_with(*, first=lambda l: l, more=lambda l: -100, none=-100, known=lambda w, seen: w in seen):
    """With a set of words seen; what a word's first and further pieces get, and what None gets."""

    def answer(labels, word_ids):
        out, seen = [], set()
        for word in word_ids:
            if word is None:
                out.append(none)
            else:
                out.append(more(labels[word]) if known(word, seen) else first(labels[word]))
                seen.add(word)
        return out

    return answer


def align_last(labels, word_ids):
    out = [-100] * len(word_ids)
    at = {word: t for t, word in enumerate(word_ids) if word is not None}
    for word, t in at.items():
        out[t] = labels[word]
    return out


def align_whole_words(labels, word_ids):
    many = Counter(word_ids)
    return [-100 if w is None or many[w] > 1 else labels[w] for w in word_ids]


def align_by_label(labels, word_ids):
    out, before = [], None
    for word in word_ids:
        label = None if word is None else labels[word]
        out.append(-100 if label is None or label == before else label)
        before = label
    return out


def align_if_word(labels, word_ids):
    out, before = [], None
    for word in word_ids:
        out.append(labels[word] if word and word != before else -100)
        before = word
    return out


def align_if_label(labels, word_ids):
    return [label or -100 for label in align.align_labels(labels, word_ids)]


def align_from_1(labels, word_ids):
    return [
        -100 if label == -100 else labels[word - 1]
        for label, word in zip(align.align_labels(labels, word_ids), word_ids, strict=True)
    ]


def align_early(labels, word_ids):
    return [*align.align_labels(labels, word_ids)[1:], -100]


def align_late(labels, word_ids):
    return [-100, *align.align_labels(labels, word_ids)[:-1]]


def align_side_by_side(labels, word_ids):
    out = [-100] * len(word_ids)
    words = len({word for word in word_ids} - {None})
    for n in range(words):
        out[n + 1] = labels[n]
    return out


def align_pieces_filled(labels, word_ids):
    out = [-100] * len(word_ids)
    real = [t for t, word in enumerate(word_ids) if word is not None]
    for t, label in zip(real, labels, strict=False):
        out[t] = label
    return out


def without_specials(labels, word_ids):
    pairs = zip(align.align_labels(labels, word_ids), word_ids, strict=True)
    return [label for label, word in pairs if word is not None]


def spans_with(*, joins, begins=lambda mark, kind, last: True, gap=False, close=True, end=0):
    """Word after word onto the last span: joins(mark, kind, last kind) or begins(…) a new one.

    gap: words that are O do not part; close: is a span kept that reaches the end."""

    def answer(tags):
        found, apart = [], True
        for n, tag in enumerate(tags):
            if tag == "O":
                apart = not gap
                continue
            mark, kind = tag.split("-")
            last = None if apart or not found else found[-1][0]
            if last is not None and joins(mark, kind, last):
                found[-1] = (found[-1][0], found[-1][1], n)
            elif mark == "B" or begins(mark, kind, last):
                found.append((kind, n, n))
            else:
                apart = True
                continue
            apart = False
        if not close and found and found[-1][2] == len(tags) - 1:
            found = found[:-1]
        return [(kind, a, b + end) for kind, a, b in found]

    return answer


def proper(mark, kind, last):
    return mark == "I" and kind == last


def spans_last_lost(tags):
    """Written the usual way, without the last lines."""
    found, kind, first = [], None, 0
    for n, tag in enumerate(tags):
        if tag.startswith("I-") and tag[2:] == kind:
            continue
        if kind is not None:
            found.append((kind, first, n - 1))
        kind, first = (None, 0) if tag == "O" else (tag[2:], n)
    return found


def spans_kind_of_last(tags):
    found, run = [], []
    for n, tag in enumerate([*tags, "O"]):
        if run and not tag.startswith("I-"):
            found.append((tags[run[-1]][2:], run[0], run[-1]))
            run = []
        if tag != "O":
            run.append(n)
    return found


def spans_by_regex(tags):
    """Letters side by side: runs of a B and the I behind it, whatever their kind."""
    letters = "".join(tag[0] for tag in tags)
    return [(tags[m.start()][2:], m.start(), m.end() - 1) for m in re.finditer("BI*|I+", letters)]


def spans_by_regex_from_b(tags):
    letters = "".join(tag[0] for tag in tags)
    return [(tags[m.start()][2:], m.start(), m.end() - 1) for m in re.finditer("BI*", letters)]


def spans_each_kind_once(tags):
    return [(kind, a, b) for kind, (a, b) in
            {kind: (a, b) for kind, a, b in sorted(spans.bio_spans(tags), key=lambda s: s[1])}.items()]


def best_with(*, where=lambda a, i, j: a[i] and a[j], cap=lambda i, j, k: j - i < k,
              order=lambda i, j: i <= j, worth=lambda s, e, i, j: s[i] + e[j],
              better=lambda new, old: new > old, begin=-math.inf, give=lambda i, j: (i, j)):
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


def best_alone(s, e, allowed, longest, minus=math.inf):
    s, e = s.clone(), e.clone()
    s[~allowed] = e[~allowed] = -minus
    return s.argmax().item(), e.argmax().item()


def best_alone_anywhere(s, e, allowed, longest):
    return int(s.argmax()), int(e.argmax())


def best_start_first(s, e, allowed, longest):
    i = int(s.masked_fill(~allowed, -math.inf).argmax())
    stop = i + longest
    e = e.masked_fill(~allowed, -math.inf)
    return i, i + int(e[i:stop].argmax())


def best_end_first(s, e, allowed, longest):
    j = int(e.masked_fill(~allowed, -math.inf).argmax())
    low = max(0, j - longest + 1)
    s = s.masked_fill(~allowed, -math.inf)
    return low + int(s[low : j + 1].argmax()), j


def best_times_zero(s, e, allowed, longest):
    return best.best_span(s * allowed, e * allowed, torch.ones_like(allowed), longest)


def best_probabilities(s, e, allowed, longest):
    s, e = (x.masked_fill(~allowed, -math.inf).softmax(-1) for x in (s, e))
    return best.best_span(s, e, allowed, longest)


def best_probabilities_of_the_row(s, e, allowed, longest):
    return best.best_span(s.softmax(-1), e.softmax(-1), allowed, longest)


def best_in_passage(s, e, allowed, longest):
    i, j = best.best_span(s[allowed], e[allowed], allowed[allowed], longest)
    return i, j


def best_of(change):
    """The right pair passed through change(i, j, start scores, end scores)."""
    return lambda s, e, allowed, k: change(*best.best_span(s, e, allowed, k), s, e)


def f1_with(*, clean=None, shared=None, score=None, empty=None):
    """Cleaned words of both, what they share, and what is made of it."""

    def words(text):
        text = "".join(" " if c in string.punctuation and clean == "gap" else c for c in text)
        if clean != "no case":
            text = text.lower()
        if clean == "articles first":
            text = " ".join(w for w in text.split() if w not in {"a", "an", "the"})
        if clean == "replace":
            for article in ("an", "the", "a"):
                text = text.replace(article, "")
        if clean == "strip":
            text = " ".join(w.strip(string.punctuation) for w in text.split())
        elif clean != "marks":
            text = "".join(c for c in text if c not in string.punctuation)
        out = text.split()
        if clean in ("articles", "replace", "articles first"):
            return out
        return [w for w in out if w.lower() not in {"a", "an", "the"}]

    def hits(said, gold):
        if shared:
            return shared(said, gold)
        gold, n = list(gold), 0
        for word in said:
            if word in gold:
                gold.remove(word)
                n += 1
        return n

    def answer(predicted, gold):
        said, true = words(predicted), words(gold)
        if not said or not true:
            return float(said == true) if empty is None else empty
        n = hits(said, true)
        if n == 0:
            return 0.0
        P, R = n / len(said), n / len(true)
        return score(P, R) if score else 2 * P * R / (P + R)

    return answer


def f1_sets(predicted, gold):
    said, true = (set(answers.normalise_answer(x).split()) for x in (predicted, gold))
    if not said or not true:
        return float(said == true)
    return 2 * len(said & true) / (len(said) + len(true))


def f1_jaccard(predicted, gold):
    said, true = (set(answers.normalise_answer(x).split()) for x in (predicted, gold))
    return len(said & true) / len(said | true) if said | true else 1.0


def f1_letters(predicted, gold):
    said, true = (Counter(answers.normalise_answer(x)) for x in (predicted, gold))
    if not said or not true:
        return float(said == true)
    return 2 * (said & true).total() / (said.total() + true.total())


def f1_exact(predicted, gold):
    return float(answers.normalise_answer(predicted) == answers.normalise_answer(gold))


def pack_with(*, shorten=None, special=3, middle=0, last=1, pad=0, cls=True, seps=(True, True),
              front=False):  # fmt: skip
    """Cut with shorten(a, b, room), then put together one position after the other."""

    def answer(a, b, length):
        if shorten:
            a, b = shorten(list(a), list(b), length - special)
        else:
            while len(a) + len(b) > length - special:
                side = slice(1, None) if front else slice(None, -1)
                a, b = (a[side], b) if len(a) > len(b) else (a, b[side])
        row = [("[CLS]", 0)] * cls + [(t, 0) for t in a] + [("[SEP]", middle)] * seps[0]
        row += [(t, 1) for t in b] + [("[SEP]", last)] * seps[1]
        row += [("[PAD]", pad)] * (length - len(row))
        return [t for t, _ in row], [s for _, s in row]

    return answer


def cut_second(a, b, room):
    while len(a) + len(b) > room and len(b) > 1:
        b.pop()
    return a[: room - len(b)], b


def cut_first(a, b, room):
    b, a = cut_second(b, a, room)
    return a, b


def cut_longer_once(a, b, room):
    over = max(0, len(a) + len(b) - room)
    if len(a) > len(b):
        a = a[: max(1, len(a) - over)]
    else:
        b = b[: max(1, len(b) - over)]
    return a, b


def cut_in_turn(a, b, room):
    turn = 0
    while len(a) + len(b) > room:
        one, other = (a, b) if turn % 2 == 0 else (b, a)
        (one if len(one) > 1 else other).pop()
        turn += 1
    return a, b


def cut_halves(a, b, room):
    return (a, b) if len(a) + len(b) <= room else (a[: room // 2], b[: room // 2])


def cut_halves_and_rest(a, b, room):
    if len(a) + len(b) <= room:
        return a, b
    return a[: room // 2], b[: room - room // 2]


def cut_in_proportion(a, b, room):
    if len(a) + len(b) <= room:
        return a, b
    many = min(max(int(room * len(a) / (len(a) + len(b))), 1), room - 1)
    return a[:many], b[: room - many]


def cut_tie_from_first(a, b, room):
    while len(a) + len(b) > room:
        (a if len(a) >= len(b) else b).pop()
    return a, b


def cut_one(a, b, room):
    if len(a) + len(b) > room:
        (a if len(a) > len(b) else b).pop()
    return a, b


def pack_cut_off(a, b, length):
    tokens, segments = cutting.pack_cut(a, b, 100)
    return tokens[:length], segments[:length]


def pack_cut_off_and_closed(a, b, length):
    tokens, segments = pack_cut_off(a, b, length)
    return ([*tokens[:-1], "[SEP]"] if tokens[-1] not in ("[SEP]", "[PAD]") else tokens), segments


def pack_changed(tokens=lambda t: t, segments=lambda s: s):
    def answer(a, b, length):
        t, s = cutting.pack_cut(a, b, length)
        return tokens(t), segments(s)

    return answer


def pack_unpadded(a, b, length):
    tokens, segments = cutting.pack_cut(a, b, length)
    real = sum(token != "[PAD]" for token in tokens)
    return tokens[:real], segments[:real]


def pack_padded_in_front(a, b, length):
    tokens, segments = pack_unpadded(a, b, length)
    free = length - len(tokens)
    return ["[PAD]"] * free + tokens, [0] * free + segments


def count_cells(true, predicted):
    a = sum(t == 1 and p == 1 for t, p in zip(true, predicted, strict=True))
    b = sum(t == 0 and p == 1 for t, p in zip(true, predicted, strict=True))
    c = sum(t == 1 and p == 0 for t, p in zip(true, predicted, strict=True))
    return a, b, c, len(true) - a - b - c


def matthews_with(above=lambda a, b, c, d: a * d - b * c, below=None, empty=0.0, after=lambda x: x):
    def answer(true, predicted):
        a, b, c, d = count_cells(true, predicted)
        product = (a + b) * (a + c) * (d + b) * (d + c)
        if not product:
            return empty
        return after(above(a, b, c, d) / (below(a, b, c, d) if below else product**0.5))

    return answer


def of_cells(formula):
    return lambda true, predicted: formula(*count_cells(true, predicted))


def harmonic(hits, false, missed):
    return 2 * hits / (2 * hits + false + missed) if hits + false + missed else 0.0


def kappa(a, b, c, d):
    n = a + b + c + d
    chance = ((a + b) / n) * ((a + c) / n) + ((c + d) / n) * ((b + d) / n)
    return ((a + d) / n - chance) / (1 - chance) if chance < 1 else 0.0


def ratio(x, y):
    return x / y if y else 0.0


def new_with(*, classes=lambda n: n, rate=lambda n: 1, tag=lambda n: 2 * n + 1, ends=2, bias=1,
             plus=lambda task, H: 0, width=lambda task: 1):  # fmt: skip
    def answer(task, H, n):
        if task in ("classify", "pair"):
            k = classes(n)
        else:
            k = rate(n) if task == "rate" else tag(n) if task == "tag" else ends
        return k * H * width(task) + k * bias + plus(task, H)

    return answer


CLASSIFIERS = ("classify", "pair", "rate")

PLANTED = {
    "03.1": {
        "every piece": align_with(more=lambda l: l),
        "continuing pieces get I-": align_with(more=lambda l: l + 1 if l % 2 else l),
        "continuing pieces get O": align_with(more=lambda l: 0),
        "special tokens get O": align_with(none=0),
        "special tokens get O + continuing pieces get O": None,
        "last piece": align_last,
        "split words left out": align_whole_words,
        "same label, same word": align_by_label,
        "word 0 taken for none": align_if_word,
        "words counted from 1": align_from_1,
        "one position early": align_early,
        "one position late": align_late,
        "O is not asked": align_if_label,
        "pieces not counted": align_pieces_filled,
        "each label once": align_with(known=lambda w, seen: False),
        "another number for not asked": align_with(none=-1, more=lambda l: -1),
        "None for not asked": align_with(none=None),
        "wrong length": without_specials,
        "names instead of numbers": align_with(first=lambda l: ENTITY_TAGS[l]),
        "wrong type": lambda labels, word_ids: len(word_ids),
        "unforeseen": align_with(first=lambda l: l if l < 6 else 5),
    },
    "03.2": {
        "B- merged": spans_with(joins=lambda m, k, last: k == last),
        "kind ignored": spans_by_regex,
        "kind of the last word": spans_kind_of_last,
        "last one lost": spans_last_lost,
        "stray I- dropped": spans_with(joins=proper, begins=lambda m, k, last: False),
        "stray I- dropped after O": spans_with(joins=proper, begins=lambda m, k, last: last),
        "I- of another kind dropped": spans_with(joins=proper, begins=lambda m, k, last: not last),
        "O does not end it": spans_with(joins=proper, gap=True),
        "words instead of entities": spans_with(joins=lambda m, k, last: False),
        "end excluded": spans_with(joins=proper, end=1),
        "end one too early": spans_with(joins=proper, end=-1),
        "counted from 1": lambda tags: {(k, a + 1, b + 1) for k, a, b in spans.bio_spans(tags)},
        "length": lambda tags: {(k, a, b - a + 1) for k, a, b in spans.bio_spans(tags)},
        "first word only": lambda tags: [(k, a, a) for k, a, b in spans.bio_spans(tags)],
        "tag instead of kind": lambda tags: [("B-" + k, a, b) for k, a, b in spans.bio_spans(tags)],
        "one of each kind": spans_each_kind_once,
        "up to the next B-": spans._up_to_the_next,
        "runs of names": spans._runs,
        "kind ignored + stray I- dropped": spans_by_regex_from_b,
        "order of the three": lambda tags: [(a, b, k) for k, a, b in spans.bio_spans(tags)],
        "wrong type": lambda tags: {k: (a, b) for k, a, b in spans.bio_spans(tags)},
        "unforeseen": lambda tags: [s for s in spans.bio_spans(tags) if s[2] - s[1] < 2],
    },
    "03.3": {
        "each end by itself": best_alone,
        "each end by itself + allowed has no effect": best_alone_anywhere,
        "each end by itself, turned round": lambda *given: tuple(sorted(best_alone(*given))),
        "each end by itself, then one token": lambda *given: (
            lambda i, j: (i, max(i, j)))(*best_alone(*given)),
        "start first": best_start_first,
        "end first": best_end_first,
        "ends before it starts": best_with(
            order=lambda i, j: True, cap=lambda i, j, k: abs(j - i) < k),
        "no single tokens": best_with(order=lambda i, j: i < j),
        "allowed has no effect": best_with(where=lambda a, i, j: True),
        "only the start is allowed": best_with(where=lambda a, i, j: a[i]),
        "only the end is allowed": best_with(where=lambda a, i, j: a[j]),
        "[CLS] allowed": best_with(where=lambda a, i, j: (a[i] or i == 0) and (a[j] or j == 0)),
        "zero for what is not allowed": best_times_zero,
        "no cap": best_with(cap=lambda i, j, k: True),
        "cap one too long": best_with(cap=lambda i, j, k: j - i <= k),
        "cap one too short": best_with(cap=lambda i, j, k: j - i + 1 < k),
        "product": best_with(worth=lambda s, e, i, j: s[i] * e[j]),
        "sum of probabilities": best_probabilities,
        "one end only": best_with(worth=lambda s, e, i, j: s[i]),
        "weaker end": best_with(worth=lambda s, e, i, j: min(s[i], e[j])),
        "stronger end": best_with(worth=lambda s, e, i, j: max(s[i], e[j])),
        "start and end exchanged": best_with(worth=lambda s, e, i, j: e[i] + s[j]),
        "mean over the span": best_with(worth=lambda s, e, i, j: (s[i] + e[j]) / (j - i + 1)),
        "lowest": best_with(worth=lambda s, e, i, j: -s[i] - e[j]),
        "last of equal ones": best_with(better=lambda new, old: new >= old),
        "shortest of equal ones": best_with(
            worth=lambda s, e, i, j: (s[i] + e[j], i - j), begin=(-math.inf, 0)),
        "longest of equal ones": best_with(
            worth=lambda s, e, i, j: (s[i] + e[j], -i, j), begin=(-math.inf, 0)),
        "end excluded": best_of(lambda i, j, s, e: (i, j + 1)),
        "(end, start)": best_of(lambda i, j, s, e: (j, i)),
        "start and length": best_of(lambda i, j, s, e: (i, j - i + 1)),
        "counted in the passage": best_in_passage,
        "three numbers": best_of(lambda i, j, s, e: (i, j, s[i] + e[j])),
        "scores instead of places": best_of(lambda i, j, s, e: (s[i] + 0.1, e[j] + 0.1)),
        "wrong type": best_of(lambda i, j, s, e: s[i] + e[j]),
        "unforeseen": best_with(where=lambda a, i, j: a[i] and a[j] and i % 2 == 0),
    },
    "03.4": {
        "sets": f1_sets,
        "sets, lengths of lists": f1_with(shared=lambda a, b: len(set(a) & set(b))),
        "hits counted twice": f1_with(
            shared=lambda a, b: len([w for w in a if w in b])),
        "hits counted twice, the other way": f1_with(
            shared=lambda a, b: len([w for w in b if w in a])),
        "place by place": f1_with(
            shared=lambda a, b: sum(a[n] == b[n] for n in range(min(len(a), len(b))))),
        "case kept": f1_with(clean="no case"),
        "articles kept": f1_with(clean="articles"),
        "articles inside words": f1_with(clean="replace"),
        "punctuation kept": f1_with(clean="marks"),
        "punctuation at the ends only": f1_with(clean="strip"),
        "punctuation leaves a gap": f1_with(clean="gap"),
        "articles before punctuation": f1_with(clean="articles first"),
        "precision": f1_with(score=lambda P, R: P),
        "recall": f1_with(score=lambda P, R: R),
        "arithmetic mean": f1_with(score=lambda P, R: (P + R) / 2),
        "geometric mean": f1_with(score=lambda P, R: math.sqrt(P * R)),
        "product": f1_with(score=lambda P, R: P * R),
        "the 2 forgotten": f1_with(score=lambda P, R: P * R / (P + R)),
        "Jaccard": f1_jaccard,
        "Jaccard with counts": f1_with(score=lambda P, R: 1 / (1 / P + 1 / R - 1)),
        "share of the longer": f1_with(score=min),
        "exact match": f1_exact,
        "percent": lambda p, g: 100 * answers.token_f1(p, g),
        "two empty answers": f1_with(empty=0.0),
        "one empty answer": f1_with(empty=1.0),
        "letters": f1_letters,
        "wrong type": lambda p, g: (answers.token_f1(p, g), 1.0),
        "unforeseen": f1_with(score=lambda P, R: 2 * P * R / (P + R) if P < 1 else 0.9),
    },
    "03.5": {
        "always the second": pack_with(shorten=cut_second),
        "always the first": pack_with(shorten=cut_first),
        "only the longer": pack_with(shorten=cut_longer_once),
        "turn by turn": pack_with(shorten=cut_in_turn),
        "half for each": pack_with(shorten=cut_halves),
        "half and the rest": pack_with(shorten=cut_halves_and_rest),
        "in proportion": pack_with(shorten=cut_in_proportion),
        "one token only": pack_with(shorten=cut_one),
        "nothing cut": pack_with(shorten=lambda a, b, room: (a, b)),
        "tie from the first": pack_with(shorten=cut_tie_from_first),
        "cut from the front": pack_with(front=True),
        "special tokens not counted": pack_with(special=0),
        "one special token counted": pack_with(special=1),
        "two special tokens counted": pack_with(special=2),
        "four special tokens counted": pack_with(special=4),
        "no [CLS]": pack_with(cls=False),
        "no [SEP] between": pack_with(seps=(False, True)),
        "no [SEP] at the end": pack_with(seps=(True, False)),
        "middle [SEP] in segment 1": pack_with(middle=1),
        "last [SEP] in segment 0": pack_with(last=0),
        "padding in segment 1": pack_with(pad=1),
        "segments 1 and 2": pack_changed(segments=lambda s: [n + 1 for n in s]),
        "segments exchanged": pack_with(middle=0, last=1),
        "one segment": pack_changed(segments=lambda s: [0] * len(s)),
        "no padding": pack_unpadded,
        "padding in front": pack_padded_in_front,
        "row cut off": pack_cut_off,
        "row cut off, then closed": pack_cut_off_and_closed,
        "three lists": lambda a, b, n: (*cutting.pack_cut(a, b, n), [1] * n),
        "not flat": lambda a, b, n: (["[CLS]", a, "[SEP]", b, "[SEP]"], [0] * n),
        "wrong type": lambda a, b, n: cutting.pack_cut(a, b, n)[0],
        "unforeseen": pack_changed(tokens=lambda t: [*t[:2], t[1], *t[3:]]),
    },
    "03.6": {
        "accuracy": of_cells(lambda a, b, c, d: (a + d) / (a + b + c + d)),
        "balanced accuracy": of_cells(
            lambda a, b, c, d: (ratio(a, a + c) + ratio(d, d + b)) / 2),
        "F1": of_cells(lambda a, b, c, d: harmonic(a, b, c)),
        "F1 of class 0": of_cells(lambda a, b, c, d: harmonic(d, c, b)),
        "macro F1": of_cells(lambda a, b, c, d: (harmonic(a, b, c) + harmonic(d, c, b)) / 2),
        "Cohen's kappa": of_cells(kappa),
        "informedness": of_cells(lambda a, b, c, d: ratio(a, a + c) + ratio(d, d + b) - 1),
        "markedness": of_cells(lambda a, b, c, d: ratio(a, a + b) + ratio(d, d + c) - 1),
        "no square root": matthews_with(
            below=lambda a, b, c, d: (a + b) * (a + c) * (d + b) * (d + c)),
        "squared": matthews_with(after=lambda x: x * x),
        "cells swapped": matthews_with(lambda a, b, c, d: a * b - c * d),
        "two sums forgotten": matthews_with(
            below=lambda a, b, c, d: ((a + b) * (a + c)) ** 0.5),
        "root and two sums forgotten": matthews_with(below=lambda a, b, c, d: (a + b) * (a + c)),
        "wrong cells forgotten": matthews_with(lambda a, b, c, d: a * d),
        "added": matthews_with(lambda a, b, c, d: a * d + b * c),
        "sums instead of products": matthews_with(lambda a, b, c, d: a + d - b - c),
        "sums below the line": matthews_with(
            below=lambda a, b, c, d: math.sqrt((a + b) + (a + c) + (d + b) + (d + c))),
        "right minus wrong": of_cells(lambda a, b, c, d: (a + d - b - c) / (a + b + c + d)),
        "sign": matthews_with(lambda a, b, c, d: b * c - a * d),
        "sign lost": matthews_with(after=abs),
        "moved to 0 … 1": matthews_with(after=lambda x: (x + 1) / 2, empty=0.5),
        "percent": matthews_with(after=lambda x: 100 * x),
        "nan for 0/0": matthews_with(empty=math.nan),
        "1 for 0/0": matthews_with(empty=1),
        "wrong type": lambda true, predicted: str(correlation.matthews(true, predicted)),
        "unforeseen": matthews_with(after=lambda x: x**3),
    },
    "03.7": {
        "no biases": new_with(bias=0),
        "pooler counted": new_with(plus=lambda t, H: H * H + H if t in CLASSIFIERS else 0),
        "pooler counted everywhere": new_with(plus=lambda t, H: H * H + H),
        "pooler's matrix counted": new_with(plus=lambda t, H: H * H if t in CLASSIFIERS else 0),
        "two vectors for a pair": new_with(width=lambda t: 1 + (t == "pair")),
        "a score a kind": new_with(tag=lambda n: n),
        "B- and I- not told apart": new_with(tag=lambda n: n + 1),
        "O forgotten": new_with(tag=lambda n: 2 * n),
        "a score a grade": new_with(rate=lambda n: n),
        "one class less": new_with(classes=lambda n: n - 1),
        "one vector for an answer": new_with(ends=1),
        "null answer counted": new_with(ends=3),
        "no biases + B- and I- not told apart": new_with(bias=0, tag=lambda n: n + 1),
        "a score a kind + a score a grade": new_with(tag=lambda n: n, rate=lambda n: n),
        "bytes": lambda *given: 4 * heads.new_weights(*given),
        "twelve layers": lambda *given: 12 * heads.new_weights(*given),
        "millions": lambda *given: heads.new_weights(*given) / 1e6,
        "wrong type": lambda *given: f"{heads.new_weights(*given)} weights",
        "unforeseen": new_with(plus=lambda task, H: 17),
    },
}  # fmt: skip
