"""Exercises of lecture 04: the planted wrong answers, and the solutions beside the library.

What every exercise must do is asked in test_exercises.py, of these as of all others.
"""

from __future__ import annotations

import functools
import math
import random
from itertools import pairwise
from statistics import fmean

import pytest
import torch

from course_lib.family.roberta import count_after_padding
from course_lib.lectures.lecture_04.exercises import (
    accumulate,
    average,
    draws,
    merges,
    positions,
    share,
)
from course_lib.objectives.coverage import coverage, simulated_coverage
from course_lib.objectives.masked_lm import mask_sequences
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.objectives.sequences import PackedSequences, SpecialIds
from course_lib.teaching.averages import glue_average
from course_lib.teaching.exercises import all_exercises
from course_lib.teaching.exercises.legacy import Draw, check_answer, close
from course_lib.text.byte_bpe import apply_merges, train_byte_bpe

EXERCISES = {id: found for id, found in all_exercises().items() if id.startswith("04.")}
SEEDS = (0, 1, 2, 3, 4, 5)


# ---------------------------------------------------------------- planted wrong answers


def choose_with(number=None, *, never=("[PAD]", "[CLS]", "[SEP]"), name=None, take=None):
    """Written another way than the solution, with one thing changed."""

    def answer(rows, examples, epoch, copies, count, draw):
        first = epoch if copies is None else epoch % copies
        if number:
            first = number(epoch, copies)
        found = []
        for place in range(len(rows)):
            who = name(examples, place) if name else examples[place]
            order = [(draw(first, who, t), t) for t, token in enumerate(rows[place])
                     if token not in never]  # fmt: skip
            order.sort()
            found.append(take(order, count) if take else [t for _, t in order[:count]])
        return found

    return answer


def counted_among_words(rows, examples, epoch, copies, count, draw):
    first = epoch if copies is None else epoch % copies
    found = []
    for row, example in zip(rows, examples, strict=True):
        words = [t for t, token in enumerate(row) if not token.startswith("[")]
        order = sorted(range(len(words)), key=lambda i: draw(first, example, words[i]))
        found.append(order[:count])
    return found


def swapped(rows, examples, epoch, copies, count, draw):
    return draws.chosen_positions(
        rows, examples, epoch, copies, count, lambda e, x, t: draw(x, e, t)
    )


def counting_visits():
    """Right as long as the epochs come in order, because it counts its own calls."""
    visits: dict[int, int] = {}

    def answer(rows, examples, epoch, copies, count, draw):
        number = visits.setdefault(examples[0], 0)
        visits[examples[0]] += 1
        return draws.chosen_positions(rows, examples, number, copies, count, draw)

    return answer


def keeping():
    """The mask of an example is kept from its first visit."""
    kept: dict[int, list[int]] = {}

    def answer(rows, examples, epoch, copies, count, draw):
        found = draws.chosen_positions(rows, examples, epoch, copies, count, draw)
        return [kept.setdefault(x, places) for x, places in zip(examples, found, strict=True)]

    return answer


def fresh(make):
    """An answer with a memory, new for every check: what one check left must not help another."""

    def answer(rows, examples, epoch, copies, count, draw):
        # The first question of the first stage is the only one about one row of four words.
        if answer.inner is None or (examples == [0] and len(rows[0]) - rows[0].count("[PAD]") == 6):
            answer.inner = make()
        return answer.inner(rows, examples, epoch, copies, count, draw)

    answer.inner = None
    return answer


def drawing_by_itself(rows, examples, epoch, copies, count, draw):
    return [
        random.sample([t for t, token in enumerate(row) if not token.startswith("[")], count)
        for row in rows
    ]


def share_with(*, rate=lambda n, k: k / (n - 2), draws=lambda p, c: min(p, c or p), end=None):
    def answer(length, count, passes, copies):
        never = math.prod([1 - rate(length, count)] * draws(passes, copies))
        return end(1 - never, length) if end else 1 - never

    return answer


def share_added_up(length, count, passes, copies):
    return count / (length - 2) * min(passes, copies or passes)


def numbered(rule, padding=None):
    """Position numbers written with loops: rule(how many real so far, place, pad id)."""

    def answer(input_ids, pad_id):
        out = input_ids.clone()
        for row in out:
            seen = 0
            for t in range(len(row)):
                real = int(row[t]) != pad_id
                seen += real
                at_padding = pad_id if padding is None else padding(seen, t, pad_id)
                row[t] = rule(seen, t, pad_id) if real else at_padding
        return out

    return answer


def numbered_over_rows(input_ids, pad_id):
    real = (input_ids != pad_id).long()
    return pad_id + real * torch.cumsum(real.view(-1), 0).view_as(real)


def numbered_in_place(input_ids, pad_id):
    right = positions.position_numbers(input_ids, pad_id)
    input_ids.copy_(right)
    return input_ids


def bpe_with(choose=min, *, joined=None, rounds=99):
    """choose: which of the (rank, place) pairs of neighbours is next; joined: how."""

    def answer(word, merges):
        pieces = list(word)
        for _ in range(rounds):
            found = [(merges.index(p), i) for i, p in enumerate(pairwise(pieces)) if p in merges]
            if not found:
                break
            at = choose(found)[1]
            pieces = (joined or join_all)(pieces, at)
        return pieces

    return answer


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
    pair, out, i = pieces[at : at + 2], [], len(pieces)
    while i > 0:
        wide = 2 if pieces[max(0, i - 2) : i] == pair else 1
        out.insert(0, "".join(pieces[i - wide : i]))
        i -= wide
    return out


def leftmost(found):
    return min(found, key=lambda pair: pair[1])


def bpe_dropping(word, merges):
    return merges_solution(word, merges)[:-1] if len(word) > 4 else merges_solution(word, merges)


merges_solution = merges.bpe


def bpe_in_text(word, merges):
    text = " ".join(word)
    for pair in merges:
        text = text.replace(" ".join(pair), "".join(pair))
    return text.split(" ")


def bpe_one_each(word, merges):
    pieces = list(word)
    for pair in merges:
        for i in range(len(pieces) - 1):
            if (pieces[i], pieces[i + 1]) == pair:
                pieces = join_one(pieces, i)
                break
    return pieces


def bpe_longest(word, merges):
    known, pieces = {a + b for a, b in merges}, []
    while word:
        size = max([n for n in range(1, len(word) + 1) if word[:n] in known], default=1)
        pieces.append(word[:size])
        word = word[size:]
    return pieces


def bpe_overlapping(word, merges):
    def joined(pieces, at):
        pair, out, used = tuple(pieces[at : at + 2]), [], False
        for i, piece in enumerate(pieces):
            if tuple(pieces[i : i + 2]) == pair:
                out.append("".join(pair))
                used = True
            elif not used:
                out.append(piece)
            else:
                used = False
        return out

    return bpe_with(joined=joined)(word, merges)


def bpe_sweep(word, merges):
    pieces = list(word[:1])
    for letter in word[1:]:
        if (pieces[-1], letter) in merges:
            pieces[-1] += letter
        else:
            pieces.append(letter)
    return pieces


def average_with(change=lambda recipe, task, two: None, end=fmean, drop=None):
    """The recipes written out; change: what of a task is taken instead, or None for the right."""

    def answer(row, recipe):
        numbers = []
        out = {"test-9": ["WNLI"], "dev-8": ["WNLI"]}.get(recipe, []) if drop is None else drop
        for task in row:
            two = list(row[task]) if isinstance(row[task], (tuple, list)) else [row[task]]
            if task in out:
                continue
            right = two[:1]
            if recipe == "leaderboard":
                right = [sum(two) / len(two)]
            elif recipe == "test-9" and task in ("MNLI", "STS-B"):
                right = two if task == "MNLI" else two[-1:]
            numbers += change(recipe, task, two) or right
        return end(numbers)

    return answer


def in_recipe(recipe, tasks, take):
    return lambda given, task, two: take(two) if given == recipe and task in tasks else None


PAIRS = ("MNLI", "QQP", "MRPC", "STS-B")


def accumulated(weights=lambda n, r, t: n, by=None):
    def answer(losses, asked, rows, tokens):
        chosen = weights(asked, rows, tokens)
        total = sum(x * w for x, w in zip(losses, chosen, strict=True) if x == x)
        return total / (by(asked, rows, tokens) if by else max(1, sum(chosen)))

    return answer


def loss_without_empty(losses, asked, rows, tokens):
    found = [x for x in losses if not math.isnan(x)]
    return sum(found) / max(1, len(found))


PLANTED = {
    "04.1": {
        "chooses specials": choose_with(never=()),
        "chooses [CLS] and [SEP]": choose_with(never=("[PAD]",)),
        "chooses padding": choose_with(never=("[CLS]", "[SEP]")),
        "largest draws": choose_with(take=lambda order, n: [t for _, t in order[::-1][:n]]),
        "counted among the words": counted_among_words,
        "place in the batch": choose_with(name=lambda examples, place: place),
        "one draw for the batch": choose_with(name=lambda examples, place: examples[0]),
        "example 0 for all": choose_with(name=lambda examples, place: 0),
        "epoch and example swapped": swapped,
        "drawn once": choose_with(lambda epoch, copies: 0),
        "None means one copy": choose_with(lambda epoch, copies: epoch % (copies or 1)),
        "copies ignored": choose_with(lambda epoch, copies: epoch),
        "one step late": choose_with(lambda e, c: (e + 1) % c if c else e),
        "one step early": choose_with(lambda e, c: (e - 1) % c if c else e),
        "one copy too many": choose_with(lambda e, c: e % (c + 1) if c else e),
        "stays at the last copy": choose_with(lambda e, c: min(e, c - 1) if c else e),
        "same copy for several epochs": choose_with(lambda e, c: e // c if c else e),
        "kept from the first visit": fresh(keeping),
        "state": fresh(counting_visits),
        "wrong type": lambda *inputs: 3,
        "not positions": lambda rows, *rest: [[99, 100, 101] for _ in rows],
        "unforeseen": choose_with(take=lambda order, n: [t for _, t in order[1 : n + 1]]),
    },
    "04.2": {
        "adds up": share_added_up,
        "adds up, stops at 1": lambda *inputs: min(1, share_added_up(*inputs)),
        "adds up and forgets the copies": lambda n, k, p, c: k * p / (n - 2),
        "never asked": share_with(end=lambda x, n: 1 - x),
        "always asked": lambda n, k, p, c: (k / (n - 2)) ** (p if c is None else min(p, c)),
        "one pass only": share_with(draws=lambda p, c: 1),
        "None means one copy": share_with(draws=lambda p, c: min(p, c or 1)),
        "copies start again": share_with(draws=lambda p, c: p),
        "always all copies": share_with(draws=lambda p, c: c or p),
        "passes shared out": lambda n, k, p, c: 1 - (1 - k / (n - 2)) ** (p / (c or 1)),
        "whole rounds": share_with(draws=lambda p, c: p // (c or 1)),
        "remainder": share_with(draws=lambda p, c: p % c if c else p),
        "one draw too many": share_with(draws=lambda p, c: min(p, c or p) + 1),
        "one draw too few": share_with(draws=lambda p, c: min(p, c or p) - 1),
        "specials counted": share_with(rate=lambda n, k: k / n),
        "15% of the words": share_with(rate=lambda n, k: 0.15),
        "percent": share_with(end=lambda x, n: 100 * x),
        "wrong type": lambda *inputs: "80%",
        "unforeseen": share_with(rate=lambda n, k: k / (n - 3)),
    },
    "04.3": {
        "from zero": numbered(lambda k, t, pad: t, lambda k, t, pad: t),
        "starts at pad_id": numbered(lambda k, t, pad: pad + k - 1),
        "no offset": numbered(lambda k, t, pad: k),
        "no offset, padding 0": numbered(lambda k, t, pad: k, lambda k, t, pad: 0),
        "counted from zero": numbered(lambda k, t, pad: k - 1),
        "one too high": numbered(lambda k, t, pad: pad + k + 1),
        "pad id 1 assumed": lambda ids, pad: positions.position_numbers(ids, 1),
        "offset 1 assumed": numbered(lambda k, t, pad: 1 + k, lambda k, t, pad: 1),
        "padding 0": numbered(lambda k, t, pad: pad + k, lambda k, t, pad: 0),
        "padding keeps the number": numbered(lambda k, t, p: p + k, lambda k, t, p: p + k),
        "padding numbered on": lambda ids, pad: torch.arange(ids.shape[1]).expand_as(ids) + pad + 1,
        "place in the row": numbered(lambda k, t, pad: pad + 1 + t),
        "over the rows": lambda ids, pad: pad + (ids != pad).cumsum(0) * (ids != pad),
        "over the batch": numbered_over_rows,
        "writes into its input": numbered_in_place,
        "not whole numbers": lambda ids, pad: positions.position_numbers(ids, pad).float(),
        "wrong shape": lambda ids, pad: torch.arange(ids.shape[1]) + pad + 1,
        "wrong type": lambda ids, pad: positions.position_numbers(ids, pad).tolist(),
        "unforeseen": numbered(lambda k, t, pad: pad + 2 * k),
    },
    "04.4": {
        "nothing joined": lambda word, merges: list(word),
        "one merge only": bpe_with(rounds=1),
        "one sweep": bpe_sweep,
        "longest match": bpe_longest,
        "first occurrence only": bpe_one_each,
        "inside pieces": bpe_in_text,
        "leftmost first": bpe_with(leftmost, joined=join_one),
        "rightmost first": bpe_with(lambda found: found[-1], joined=join_one),
        "latest first": bpe_with(max),
        "overlaps from the right": bpe_with(joined=join_backwards),
        "a piece used twice": bpe_overlapping,
        "whole words only": lambda w, m: [w] if any(a + b == w for a, b in m) else list(w),
        "letters lost": bpe_dropping,
        "wrong type": lambda word, merges: " ".join(merges_solution(word, merges)),
        "unforeseen": lambda word, merges: merges_solution(word, merges)[::-1],
    },
    "04.5": {
        "WNLI included": average_with(drop=()),
        "WNLI left out": average_with(drop=("WNLI",)),
        "MNLI counted once": average_with(in_recipe("test-9", ["MNLI"], lambda two: two[:1])),
        "MNLI averaged": average_with(in_recipe("test-9", ["MNLI"], lambda two: [sum(two) / 2])),
        "MNLI counted twice": average_with(lambda r, task, two: two if task == "MNLI" else None),
        "mismatched half": average_with(in_recipe("dev-8", ["MNLI"], lambda two: two[1:])),
        "pairs not averaged": average_with(in_recipe("leaderboard", PAIRS, lambda two: two)),
        "one metric of two": average_with(in_recipe("leaderboard", PAIRS, lambda two: two[:1])),
        "metrics not averaged": average_with(
            in_recipe("leaderboard", PAIRS[1:], lambda two: two[:1])
        ),
        "accuracy instead of F1": average_with(
            in_recipe("test-9", ("QQP", "MRPC"), lambda two: two[1:])
        ),
        "Pearson instead of Spearman": average_with(
            in_recipe("test-9", ("STS-B",), lambda two: two[:1])
        ),
        "always the first": average_with(lambda recipe, task, two: two[:1]),
        "always averaged": average_with(lambda recipe, task, two: [sum(two) / len(two)]),
        "every number": average_with(lambda recipe, task, two: two, drop=()),
        "rounded on the way": average_with(end=lambda x: fmean(map(round, x))),
        "pairs rounded": average_with(end=lambda x: fmean(round(y, 1) for y in x)),
        "rounded result": average_with(end=lambda x: round(fmean(x), 1)),
        "sum": average_with(end=sum),
        "divided by nine": average_with(end=lambda x: sum(x) / 9),
        "wrong type": lambda row, recipe: list(row),
        "unforeseen": average_with(end=lambda x: fmean(x) + 1),
    },
    "04.6": {
        "mean of means": accumulated(lambda n, r, t: [1] * len(n)),
        "mean of means, empty parts left out": loss_without_empty,
        "sum of means": accumulated(lambda n, r, t: [1] * len(n), by=lambda n, r, t: 1),
        "not divided": accumulated(by=lambda n, r, t: 1),
        "weighted by rows": accumulated(lambda n, r, t: r),
        "weighted by tokens": accumulated(lambda n, r, t: t),
        "divided by tokens": accumulated(by=lambda n, r, t: sum(t)),
        "divided by rows": accumulated(by=lambda n, r, t: sum(r)),
        "averaged twice": accumulated(by=lambda n, r, t: len(n) * max(1, sum(n))),
        "empty parts counted as one": accumulated(by=lambda n, r, t: sum(max(1, k) for k in n)),
        "zero because of an empty part": lambda x, n, *more: 0 if 0 in n else accumulated()(
            x, n, *more),
        "not a number": lambda x, n, r, t: sum(a * b for a, b in zip(x, n, strict=True)) / sum(n),
        "last part only": lambda x, n, r, t: x[-1],
        "wrong type": lambda x, n, r, t: x,
        "unforeseen": lambda *inputs: 1.5 * accumulated()(*inputs),
    },
}  # fmt: skip


# ---------------------------------------------------------------- in other clothes


@pytest.mark.parametrize(
    ("id", "answer", "key"),
    [
        ("04.1", drawing_by_itself, "state"),
        # Two mistakes at once: the one that the stage is about is named.
        ("04.1", choose_with(lambda e, c: 0, never=("[PAD]",)), "chooses [CLS] and [SEP]"),
        ("04.1", choose_with(lambda e, c: e, name=lambda x, place: place), "place in the batch"),
        ("04.2", share_with(rate=lambda n, k: k / n, draws=lambda p, c: p), "specials counted"),
        ("04.3", numbered(lambda k, t, pad: t + 2, lambda k, t, pad: 1), "offset 1 assumed"),
        ("04.4", bpe_with(joined=join_one), None),  # again and again: the same as all at once
        ("04.4", lambda word, merges: bpe_with()(word, merges[::-1]), "latest first"),
        ("04.4", lambda w, m: functools.reduce(
            lambda p, pair: merges._join(p, pair), m, list(w)), None),  # once through the list
        ("04.5", average_with(lambda r, task, two: two[:1], drop=()), "WNLI included"),
        ("04.6", accumulated(lambda n, r, t: [a * bool(k) for a, k in zip(r, n, strict=True)]),
         "weighted by rows, empty parts left out"),
        ("04.6", lambda x, n, r, t: torch.tensor(accumulate.large_batch_loss(x, n, r, t)),
         None),
    ],
)  # fmt: skip
def test_a_mistake_is_named_in_other_clothes_too(id, answer, key):
    """key None: another way to be right, which must pass."""
    for seed in SEEDS:
        report = check_answer(EXERCISES[id], answer, seed)
        assert (report.status == "passed") if key is None else (report.mistake == key), report


def test_counting_visits_goes_wrong_only_where_the_order_changes():
    report = check_answer(EXERCISES["04.1"], PLANTED["04.1"]["state"], 0)
    assert [stage.passed for stage in report.stages] == [True] * 5 + [False]
    assert "After a crash" in report.message


def test_one_mistake_of_padding_shows_where_padding_is():
    report = check_answer(EXERCISES["04.3"], PLANTED["04.3"]["place in the row"], 0)
    assert [stage.passed for stage in report.stages[:4]] == [True, True, True, False]


@pytest.mark.parametrize(
    ("id", "answer", "advice"),
    [
        ("04.3", lambda ids, pad: (ids != pad).long().cumsum(), "dim=1"),
        ("04.3", lambda ids, pad: pad + (1 - (ids == pad)).cumsum(1), "add .long()"),
        ("04.4", lambda w, m: [w[i] + w[i + 1] for i in range(len(w))], "i + 1 < len(pieces)"),
        ("04.6", lambda x, n, r, t: accumulated(by=lambda n, r, t: sum(n))(x, n, r, t),
         "max(1, sum(asked))"),
    ],
)  # fmt: skip
def test_a_frequent_exception_gets_a_line_of_advice(id, answer, advice):
    report = check_answer(EXERCISES[id], answer, 0)
    assert report.mistake == "raised"
    assert advice in report.message, report


# ---------------------------------------------------------------- solutions and the library


def word_rows(number, length):
    """Rows of [CLS], words and [SEP], all of one length, and their special ids."""
    ids = torch.tensor([2, *range(5, 3 + length), 3]).repeat(number, 1)
    special = SpecialIds(0, 1, 2, 3, 4, vocab_size=60)
    return PackedSequences(ids, torch.ones_like(ids), torch.zeros_like(ids)), special


def draw_read(epoch, copies):
    """The number that the solution puts in draw's first place."""
    seen = []

    def draw(number, example, position):
        seen.append(number)
        return 0.0

    draws.chosen_positions([["word"]], [0], epoch, copies, 1, draw)
    return seen[0]


@pytest.mark.parametrize("copies", [1, 3, None])
def test_the_schemes_are_those_of_the_librarys_batches(copies):
    """An epoch of pretraining_batches has the masks of the draw that the solution reads."""
    rows, special = word_rows(12, 24)
    batches = pretraining_batches(rows, special, batch_size=len(rows), mask_copies=copies)
    for epoch in range(7):
        at = batches(epoch).inputs["predict_at"]
        chosen = torch.zeros(rows.input_ids.numel(), dtype=torch.bool)
        chosen[at] = True
        masked = mask_sequences(rows, special, epoch=draw_read(epoch, copies))
        # The batch has the rows in an order of its own.
        assert sorted(chosen.view_as(masked.selected).tolist()) == sorted(masked.selected.tolist())


def test_the_share_is_the_librarys():
    for copies in (None, 1, 4):
        shares = coverage(6 / 40, 12, copies)
        for passes in range(1, 13):
            assert close(share.share_asked(42, 6, passes, copies), shares[passes - 1])


def test_the_share_is_what_counting_finds():
    """400 rows of 24 tokens with the library's own masks: 4 of 22 words a draw."""
    rows, special = word_rows(400, 24)
    counted = simulated_coverage(rows, special, 6, copies=4)
    for passes, found in enumerate(counted, 1):
        expected = share.share_asked(24, 4, passes, 4)
        assert abs(found - expected) < 6 * math.sqrt(expected * (1 - expected) / (400 * 22))


def test_the_positions_are_the_librarys():
    for ids, pad in positions._batches(Draw(3)):
        assert torch.equal(positions.position_numbers(ids, pad), count_after_padding(ids, pad))


def test_the_pieces_are_the_librarys():
    for word, found in merges._drawn_words(Draw(3), 300):
        *_, pieces = apply_merges(word, {pair: i for i, pair in enumerate(found)})
        assert merges.bpe(word, found) == pieces
    learned = train_byte_bpe(["the other weather gathers there, the others gather here"] * 3, 300)
    for word in ("gathering", "together", "weathers", "thee"):
        assert merges.bpe(word, learned.merges) == learned.word_steps(word)[-1]


def test_drawn_merges_are_such_as_training_leaves():
    for seed in range(50):
        found = merges._drawn_merges(Draw(seed), 10)
        known = set("abc")
        for left, right in found:
            assert {left, right} <= known and left + right not in known
            known.add(left + right)


def test_the_averages_are_the_librarys():
    for row, recipe in average._everything(Draw(3)):
        assert close(average.average(row, recipe), glue_average(row, recipe))


def test_the_printed_averages_come_out():
    rows = average.printed_rows()
    for model, row, recipe, printed in rows:
        if printed is not None:
            assert f"{average.average(row, recipe):.1f}" == f"{printed:.1f}", model
    found = {f"{average.average(row, recipe):.2f}" for _, row, recipe, _ in rows}
    assert found >= {"79.60", "82.08", "80.52", "84.05", "88.92", "79.50", "77.01"}
    for number in ("79.6", "82.1", "80.5", "84.05", "88.9", "79.5", "77.0"):
        assert number in EXERCISES["04.5"].statement


def test_the_hints_compute():
    assert round(share.share_asked(12, 2, 3, 2), 10) == 0.36
    assert merges.bpe("abcab", [("a", "b"), ("ab", "c")]) == ["abc", "ab"]
    assert positions.position_numbers(torch.tensor([[1, 7, 9, 1]]), 1).tolist() == [[1, 2, 3, 1]]
    assert accumulate.large_batch_loss([2.0, 6.0], [3, 1], [1, 1], [9, 9]) == 3.0


def test_the_parts_add_up_to_the_mean_over_all():
    losses, asked, rows, tokens = accumulate._with_empty(Draw(5))[2]
    every = [x for x, n in zip(losses, asked, strict=True) for _ in range(n)]
    assert close(accumulate.large_batch_loss(losses, asked, rows, tokens), fmean(every))
