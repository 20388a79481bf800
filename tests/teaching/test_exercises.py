"""Exercises: stubs are unanswered, solutions pass, every planted mistake gets its own name."""

from __future__ import annotations

import math
import random
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import course_lib.teaching.exercises as exercises
from course_lib.encoder import count_parameters
from course_lib.family.bert import bert
from course_lib.kernels.attention import attention_reference
from course_lib.kernels.masking import count_to_predict
from course_lib.lectures.lecture_02.exercises import (
    attention,
    choosing,
    count,
    loss,
    masking,
    pairs,
    words,
)
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_loss
from course_lib.teaching.exercises import all_exercises, check, hint, reveal
from course_lib.teaching.exercises.machinery import check_answer, close
from course_lib.teaching.exercises.report import Report, Stage
from course_lib.text.wordpiece import longest_match

EXERCISES = all_exercises()
SEEDS = (0, 1, 2, 3, 4, 5)
torch.set_num_threads(1)  # the tensors are tiny


# ---------------------------------------------------------------- planted wrong answers


def count_wrong(slip):
    return lambda config: count.parameter_count(config) + count.COUNT_SLIPS[slip][1](config)


def my_count_without_biases_and_norms(config):
    H, wide = config.hidden_size, config.intermediate_size
    tables = (config.vocab_size + config.max_positions + config.type_vocab_size) * H
    return tables + config.num_layers * (4 * H * H + 2 * H * wide) + H * H


def count_with_heads(config):
    H, V = config.hidden_size, config.vocab_size
    return count.parameter_count(config) + (H * H + H + 2 * H + V) + (2 * H + 2)


def count_own_matrices(config, biases=True, output=False):
    H, extra = config.hidden_size, config.num_layers * (config.num_heads - 1)
    return count.parameter_count(config) + extra * (3 + output) * (H * H + biases * H)


def attend_with(*, divide=math.sqrt, dim=-1, hide="keys", after=False):
    """Attention written another way than the solution, with one thing changed."""

    def answer(q, k, v, attention_mask):
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / divide(q.shape[-1])
        where = {"keys": (0, 1, 2), "queries": (0, 1, 3)}.get(hide)
        penalty = torch.zeros_like(scores)
        if where:
            shape = (len(q), 1, 1, -1) if hide == "keys" else (len(q), 1, -1, 1)
            penalty = (1 - attention_mask.reshape(shape)) * -1e9
        elif hide == "inverted":
            penalty = attention_mask[:, None, None, :] * -1e9
        elif hide == "weak":
            penalty = (1 - attention_mask[:, None, None, :]) * -3.0
        weights = (scores if after else scores + penalty).softmax(dim)
        return (weights * (penalty == 0) if after else weights) @ v

    return answer


def attend_nan(q, k, v, attention_mask):
    keep = attention_mask[:, None, None, :] * attention_mask[:, None, :, None]
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(keep == 0, -math.inf)
    return scores.softmax(-1) @ v


def attend_zeroing(q, k, v, attention_mask):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (scores * attention_mask[:, None, None, :]).softmax(-1) @ v


def attend_after(q, k, v, attention_mask):
    weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
    return (weights + (1 - attention_mask[:, None, None, :]) * -1e9) @ v


def mask_with(cuts=(0.8, 0.9), *, low=0, high=None, where=None, draw=torch.rand):
    """80/10/10 by hand, one thing changed; cuts: where [MASK] ends and where random ids end."""

    def answer(input_ids, chosen, mask_id, vocab_size, generator):
        share = draw(input_ids.shape, generator=generator)
        top = vocab_size if high is None else vocab_size + high
        others = torch.randint(low, top, input_ids.shape, generator=generator)
        ok = torch.ones_like(chosen) if where == "all" else chosen
        changed = torch.where(share < cuts[1], others, input_ids)
        changed = torch.where(share < cuts[0], torch.full_like(input_ids, mask_id), changed)
        return torch.where(ok, changed, input_ids)

    return answer


def mask_all_alike(input_ids, chosen, mask_id, vocab_size, generator):
    def once(shape, generator):
        return torch.rand(1, generator=generator).expand(shape)

    return mask_with(draw=once)(input_ids, chosen, mask_id, vocab_size, generator)


def mask_overwritten(input_ids, chosen, mask_id, vocab_size, generator):
    out, share = input_ids.clone(), torch.rand(input_ids.shape, generator=generator)
    others = torch.randint(vocab_size, input_ids.shape, generator=generator)
    out[chosen & (share < 0.8)] = mask_id
    return torch.where(chosen & (share < 0.9), others, out)


def mask_quotas(input_ids, chosen, mask_id, vocab_size, generator):
    out, places = input_ids.clone(), chosen.nonzero()
    places = places[torch.randperm(len(places), generator=generator)]
    masks, changed = round(0.8 * len(places)), round(0.9 * len(places))
    out[tuple(places[:masks].T)] = mask_id
    others = torch.randint(vocab_size, (changed - masks,), generator=generator)
    out[tuple(places[masks:changed].T)] = others
    return out


def mask_nested(input_ids, chosen, mask_id, vocab_size, generator):
    out = input_ids.clone()
    masked = (torch.rand(out.shape, generator=generator) < 0.8) & chosen
    out[masked] = mask_id
    rest = chosen & ~masked & (torch.rand(out.shape, generator=generator) < 0.1)
    out[rest] = torch.randint(vocab_size, out.shape, generator=generator)[rest]
    return out


def mask_in_place(input_ids, chosen, mask_id, vocab_size, generator):
    input_ids[chosen & (torch.rand(input_ids.shape, generator=generator) < 0.8)] = mask_id
    return input_ids


def mask_rowwise(input_ids, chosen, mask_id, vocab_size, generator):
    def one_a_row(shape, generator):
        return torch.rand((shape[0], 1), generator=generator).expand(shape)

    # As many rows as to keep the shares right is more than a check has: deal the fates out evenly.
    def dealt(shape, generator):
        fates = torch.randperm(shape[0], generator=generator) / shape[0]
        return fates[:, None].expand(shape)

    draw = one_a_row if len(input_ids) < 50 else dealt
    return mask_with(draw=draw)(input_ids, chosen, mask_id, vocab_size, generator)


def mask_one_id(input_ids, chosen, mask_id, vocab_size, generator):
    out = mask_with((0.8, 0.8))(input_ids, chosen, mask_id, vocab_size, generator)
    lucky = chosen & (out == input_ids) & (torch.rand(out.shape, generator=generator) < 0.5)
    return torch.where(lucky, torch.randint(vocab_size, (1,), generator=generator), out)


def mask_borrowing(input_ids, chosen, mask_id, vocab_size, generator):
    share = torch.rand(input_ids.shape, generator=generator)
    order = torch.randperm(input_ids.numel(), generator=generator)
    others = input_ids.flatten()[order].view_as(input_ids)
    # Special ids now and then, so that only the frequencies give it away.
    rare = torch.rand(input_ids.shape, generator=generator) < 0.2
    any_id = torch.randint(vocab_size, input_ids.shape, generator=generator)
    out = torch.where(chosen & (share < 0.9), torch.where(rare, any_id, others), input_ids)
    return torch.where(chosen & (share < 0.8), mask_id, out)


def mask_unseeded(input_ids, chosen, mask_id, vocab_size, generator):
    return masking.corrupt(input_ids, chosen, mask_id, vocab_size, torch.Generator().manual_seed(
        random.randrange(10**9)))  # fmt: skip


def mask_always_same(input_ids, chosen, mask_id, vocab_size, generator):
    fixed = torch.Generator().manual_seed(1)
    return masking.corrupt(input_ids, chosen, mask_id, vocab_size, fixed)


def choose_with(rule=None, *, never=("pad", "cls", "sep"), pick=None):
    """The released code's rule by hand; rule: another count of (real, words, row, rate, limit)."""

    def answer(input_ids, special, rate, max_predictions, generator):
        banned = [getattr(special, name) for name in never]
        places = [t for t, id in enumerate(input_ids.tolist()) if id not in banned]
        real = int((input_ids != special.pad).sum())
        words = real - int(((input_ids == special.cls) | (input_ids == special.sep)).sum())
        number = min(max_predictions, max(1, round(rate * real)))
        if rule:
            number = rule(real, words, len(input_ids), rate, max_predictions)
        order = torch.randperm(len(places), generator=generator).tolist()
        order = pick(order, number) if pick else order[:number]
        chosen = torch.zeros(len(input_ids), dtype=torch.bool)
        for i in order:
            chosen[places[i]] = True
        return chosen

    return answer


def choose_independently(input_ids, special, rate, max_predictions, generator):
    draws = torch.rand(input_ids.shape, generator=generator) < rate
    return draws & ~torch.isin(input_ids, torch.tensor(special.never_masked))


def choose_with_replacement(input_ids, special, rate, max_predictions, generator):
    words = (~torch.isin(input_ids, torch.tensor(special.never_masked))).nonzero().flatten()
    number = min(max_predictions, max(1, round(rate * int((input_ids != special.pad).sum()))))
    chosen = torch.zeros(len(input_ids), dtype=torch.bool)
    chosen[words[torch.randint(len(words), (number,), generator=generator)]] = True
    return chosen


def choose_then_drop(input_ids, special, rate, max_predictions, generator):
    real = (input_ids != special.pad).nonzero().flatten()
    number = min(max_predictions, max(1, round(rate * len(real))))
    chosen = torch.zeros(len(input_ids), dtype=torch.bool)
    chosen[real[torch.randperm(len(real), generator=generator)[:number]]] = True
    return chosen & ~torch.isin(input_ids, torch.tensor(special.never_masked))


def choose_places(input_ids, special, rate, max_predictions, generator):
    return choosing.choose(input_ids, special, rate, max_predictions, generator).nonzero().flatten()


def pairs_with(change):
    """Each pair of the right answer passed through change(pair, documents, rng)."""

    def answer(documents, rng):
        return [change(pair, documents, rng) for pair in pairs.pairs(documents, rng)]

    return answer


def pairs_anywhere(documents, rng):
    every = [sentence for document in documents for sentence in document]
    made = []
    for document in documents:
        for a, b in zip(document, document[1:]):  # noqa: B905, RUF007
            made.append((a, b, 0) if rng.random() < 0.5 else (a, rng.choice(every), 1))
    return made


def pairs_across(documents, rng):
    flat = [sentence for document in documents for sentence in document]
    return [(a, b, 0) for a, b in zip(flat, flat[1:])]  # noqa: B905, RUF007


def pairs_backwards(documents, rng):
    made = []
    for a, b, label in pairs.pairs(documents, rng):
        home = next(d for d in documents if a in d)
        i = home.index(a)
        made.append((home[i + 1], a, 0) if label == 0 else (a, b, 1))
    return made


def pairs_alternating(documents, rng):
    made = []
    for number, (a, b, _) in enumerate(pairs_across(documents, rng)):
        home = next(d for d in documents if a in d)
        other = rng.choice([d for d in documents if d is not home])
        if a != home[-1]:
            made.append((a, b, 0) if number % 2 else (a, rng.choice(other), 1))
    return made


def pairs_next_document(documents, rng):
    def change(pair, docs, rng):
        home = next(i for i, d in enumerate(docs) if pair[0] in d)
        return (pair[0], rng.choice(docs[(home + 1) % len(docs)]), 1) if pair[2] else pair

    return pairs_with(change)(documents, rng)


def pairs_three_quarters(documents, rng):
    def change(pair, docs, rng):
        others = [d for d in docs if pair[0] not in d]
        return (pair[0], rng.choice(rng.choice(others)), 1) if rng.random() < 0.5 else pair

    return pairs_with(change)(documents, rng)


def loss_with(*, words="mean", pair="mean", label=lambda z: z, add=lambda a, b: a + b):
    def answer(prediction_logits, labels, nsp_logits, nsp_label):
        asked = labels != -100
        surprise = -prediction_logits.log_softmax(-1)[asked].gather(1, labels[asked][:, None])
        mlm = surprise.sum() if words == "sum" else surprise.mean()
        if words == "all":
            mlm = surprise.sum() / labels.numel()
        if words == "ignored":
            mlm = F.cross_entropy(prediction_logits.transpose(1, 2), labels.clamp(min=0))
        true = -nsp_logits.log_softmax(-1).gather(1, label(nsp_label)[:, None])
        return add(mlm, true.sum() if pair == "sum" else true.mean())

    return answer


def loss_row_by_row(prediction_logits, labels, nsp_logits, nsp_label):
    rows = [F.cross_entropy(p, y) for p, y in zip(prediction_logits, labels, strict=True)]
    return torch.stack(rows).mean() + F.cross_entropy(nsp_logits, nsp_label)


def loss_one_list(prediction_logits, labels, nsp_logits, nsp_label):
    asked = labels != -100
    every = [
        F.cross_entropy(prediction_logits[asked], labels[asked], reduction="none"),
        F.cross_entropy(nsp_logits, nsp_label, reduction="none"),
    ]
    return torch.cat(every).mean()


def pieces_with(*, lengths=reversed, look="##", write="##", limit=0, stuck="unk"):
    """Greedy splitting by slicing the word down, with one thing changed."""

    def answer(word, vocab, max_chars):
        if len(word) > max_chars + limit:
            return ["[UNK]"]
        pieces, rest = [], word
        while rest:
            mark, sign = (look, write) if pieces else ("", "")
            sizes = [n for n in lengths(range(1, len(rest) + 1)) if mark + rest[:n] in vocab]
            if not sizes:
                return {"unk": ["[UNK]"], "keep": [*pieces, "[UNK]"], "stop": pieces}[stuck]
            pieces.append(sign + rest[: sizes[0]])
            rest = rest[sizes[0] :]
        return pieces

    return answer


PLANTED = {
    "02.1": {
        "no biases": count_wrong("no biases"),
        "no LayerNorms": count_wrong("no LayerNorms"),
        "no pooler": count_wrong("no pooler"),
        "no segment table": count_wrong("no segment table"),
        "no position table": count_wrong("no position table"),
        "one block": count_wrong("one block"),
        "every head full width": count_wrong("every head full width"),
        "decoder counted": count_wrong("decoder counted"),
        "every head full width, with biases": count_own_matrices,
        "heads counted": count_with_heads,
        "MLM head counted": count_wrong("MLM head counted"),
        "NSP head counted": count_wrong("NSP head counted"),
        "heads counted + decoder counted": lambda c: count_with_heads(c)
        + c.vocab_size * c.hidden_size,
        "F is 4H": count_wrong("F is 4H"),
        "no biases + no LayerNorms": my_count_without_biases_and_norms,
        "wrong type": lambda config: "109M",
        "returns None": lambda config: print(end=""),
        "unforeseen": lambda config: 7,
    },
    "02.2": {
        "no scale": attend_with(divide=lambda d: 1.0),
        "scale by d": attend_with(divide=lambda d: d),
        "times root d": attend_with(divide=lambda d: 1 / math.sqrt(d)),
        "softmax over queries": attend_with(dim=-2),
        "queries masked": attend_with(hide="queries"),
        "mask inverted": attend_with(hide="inverted"),
        "mask ignored": attend_with(hide=None),
        "mask after softmax": attend_with(after=True),
        "scores set to zero": attend_zeroing,
        "huge values": attend_after,
        "padding leaks": attend_with(hide="weak"),
        "padding is nan": attend_nan,
        "wrong shape": lambda q, k, v, m: (q @ k.transpose(-1, -2)).softmax(-1),
        "wrong type": lambda q, k, v, m: [1, 2, 3],
        "unforeseen": lambda q, k, v, m: torch.zeros_like(q),
    },
    "02.3": {
        "changes unchosen": mask_with(where="all"),
        "all masked": mask_with((1.0, 1.0)),
        "nothing changed": mask_with((0.0, 0.0)),
        "no random": mask_with((0.8, 0.8)),
        "none kept": mask_with((0.8, 1.0)),
        "ten percent of the rest": mask_nested,
        "one draw for all": mask_all_alike,
        "masks overwritten": mask_overwritten,
        "exact quotas": mask_quotas,
        "shares swapped": mask_with((0.1, 0.9)),
        "writes into its input": mask_in_place,
        "one draw a row": mask_rowwise,
        "one random id": mask_one_id,
        "range begins late": mask_with(low=10),
        "range ends early": mask_with(high=-5),
        "outside the vocabulary": mask_with(high=1),
        "borrowed words": mask_borrowing,
        "ignores the generator": mask_unseeded,
        "always the same": mask_always_same,
        "unforeseen": mask_with((0.5, 0.7)),
    },
    "02.4": {
        "chooses specials": choose_with(never=("pad",)),
        "chooses padding": choose_with(never=("cls", "sep")),
        "count varies": choose_independently,
        "sometimes too few": choose_with_replacement,
        "floor": choose_with(lambda n, e, T, r, m: min(m, max(1, int(r * n)))),
        "ceil": choose_with(lambda n, e, T, r, m: min(m, max(1, math.ceil(r * n)))),
        "half up": choose_with(lambda n, e, T, r, m: min(m, max(1, int(r * n + 0.5)))),
        "counts eligible only": choose_with(lambda n, e, T, r, m: min(m, max(1, round(r * e)))),
        "counts padding": choose_with(lambda n, e, T, r, m: min(m, max(1, round(r * T)))),
        "none for short rows": choose_with(lambda n, e, T, r, m: min(m, round(r * n))),
        "no limit": choose_with(lambda n, e, T, r, m: max(1, round(r * n))),
        "always the same": choose_with(pick=lambda order, n: sorted(order)[:n]),
        "neighbours": choose_with(
            pick=lambda order, n: [(order[0] % max(1, len(order) - n + 1)) + i for i in range(n)]
            if n < len(order)
            else order
        ),
        "uneven": choose_with(pick=lambda order, n: sorted(order[: n + 1])[:n]),
        "wrong shape": choose_places,
        "unforeseen": choose_with(lambda n, e, T, r, m: 2),
    },
    "02.5": {
        "labels swapped": pairs_with(lambda p, d, r: (p[0], p[1], 1 - p[2])),
        "same document": pairs_anywhere,
        "all IsNext": pairs_with(lambda p, d, r: (p[0], next(
            x[x.index(p[0]) + 1] for x in d if p[0] in x), 0)),
        "b is a": pairs_with(lambda p, d, r: (p[0], p[1] if p[2] else p[0], p[2])),
        "b before a": pairs_backwards,
        "crosses documents": pairs_across,
        "labels not drawn": pairs_alternating,
        "one neighbour": pairs_next_document,
        "first sentences": pairs_with(lambda p, d, r: (p[0], r.choice(
            [x for x in d if p[0] not in x])[0] if p[2] else p[1], p[2])),
        "not half": pairs_three_quarters,
        "ignores the generator": lambda documents, rng: pairs.pairs(documents, random),
        "shuffled": lambda d, r: pairs.pairs(d, r)[::-1],
        "wrong pair": pairs_with(lambda p, d, r: (p[0], p[1])),
        "wrong type": lambda documents, rng: 3,
        "unforeseen": lambda d, r: [p for p in pairs.pairs(d, r) if "sentence 2 " not in p[0]],
    },
    "02.6": {
        "sum of words": loss_with(words="sum"),
        "mean over all positions": loss_with(words="all"),
        "ignored positions counted": loss_with(words="ignored"),
        "always IsNext": loss_with(label=torch.zeros_like),
        "pair labels swapped": loss_with(label=lambda z: 1 - z),
        "sum of pairs": loss_with(pair="sum"),
        "forgets NSP": loss_with(add=lambda a, b: a),
        "forgets MLM": loss_with(add=lambda a, b: b),
        "half": loss_with(add=lambda a, b: (a + b) / 2),
        "one mean of both": loss_one_list,
        "row by row": loss_row_by_row,
        "sign": loss_with(add=lambda a, b: -a - b),
        "softmax twice": lambda p, y, n, z: loss.joint_loss(p.softmax(-1), y, n.softmax(-1), z),
        "no gradient": lambda *inputs: loss.joint_loss(*inputs).item(),
        "two numbers": loss_with(add=lambda a, b: (a, b)),
        "not reduced": loss_with(add=lambda a, b: torch.stack([a, b])),
        "unforeseen": loss_with(add=lambda a, b: a + 3 * b),
    },
    "02.7": {
        "shortest first": pieces_with(lengths=list),
        "looked up without ##": pieces_with(look=""),
        "written without ##": pieces_with(write=""),
        "without ## throughout": pieces_with(look="", write=""),
        "pieces before [UNK]": pieces_with(stuck="keep"),
        "stops where stuck": pieces_with(stuck="stop"),
        "no length limit": pieces_with(limit=10**6),
        "limit one too early": pieces_with(limit=-1),
        "from the end": words._from_the_end,
        "fewest pieces": words._fewest,
        "goes back": words._first_split,
        "whole words only": lambda w, v, m: [w] if w in v and len(w) <= m else ["[UNK]"],
        "wrong type": lambda w, v, m: " ".join(words.wordpiece(w, v, m)),
        "unforeseen": lambda w, v, m: words.wordpiece(w, v, m)[:2],
    },
}  # fmt: skip

# The other lectures plant theirs in files of their own; what an exercise must do is asked here.
for file in sorted(
    (Path(__file__).parent.parent / "lectures").rglob("test_exercises_[0-9][0-9].py")
):
    sys.path.insert(0, str(file.parent))
    PLANTED |= import_module(file.stem).PLANTED

EVERY_PLANTED = [(id, key) for id, planted in PLANTED.items() for key in planted]


# ---------------------------------------------------------------- what an exercise must do


def test_every_exercise_is_planted_with_at_least_four_mistakes():
    assert set(PLANTED) == set(EXERCISES)
    assert all(len(planted) >= 4 for planted in PLANTED.values())


@pytest.mark.parametrize("id", EXERCISES)
def test_an_exercise_declares_what_a_reader_wants_to_know(id):
    exercise = EXERCISES[id]
    assert 1 <= exercise.difficulty <= 5 and 5 <= exercise.minutes <= 30
    assert exercise.purpose and exercise.statement and len(exercise.hints) >= 3
    assert f"difficulty {exercise.difficulty} of 5" in exercise.card
    assert exercise.signature.split("(")[0].isidentifier()


@pytest.mark.parametrize("id", EXERCISES)
def test_the_stub_is_unanswered(id):
    scope: dict = {}
    exec(EXERCISES[id].stub, scope)
    stub = scope[EXERCISES[id].signature.split("(")[0]]
    for answer in (stub, ..., lambda *inputs: ..., lambda *inputs: None):
        assert check_answer(EXERCISES[id], answer, 0).status == "unanswered"


def half_filled_stub(*inputs):
    part = ...
    return part + 1


@pytest.mark.parametrize("id", EXERCISES)
def test_a_half_filled_stub_is_unanswered(id):
    assert check_answer(EXERCISES[id], half_filled_stub, 0).status == "unanswered"


@pytest.mark.parametrize("id", EXERCISES)
def test_the_solution_passes_on_any_seed(id):
    for seed in SEEDS:
        report = check_answer(EXERCISES[id], EXERCISES[id].solution, seed)
        assert report.status == "passed", report


@pytest.mark.parametrize(("id", "key"), EVERY_PLANTED)
def test_a_planted_mistake_is_called_by_its_name(id, key):
    for seed in SEEDS[:2]:
        report = check_answer(EXERCISES[id], PLANTED[id][key], seed)
        assert report.status == "wrong"
        assert report.mistake == key, report
        assert len(report.message) > 20


@pytest.mark.parametrize("id", EXERCISES)
def test_each_mistake_has_words_of_its_own(id):
    said = {check_answer(EXERCISES[id], answer, 0).message for answer in PLANTED[id].values()}
    assert len(said) == len(PLANTED[id])


def raises(*inputs):
    raise IndexError("row 3 is missing")


def exits(*inputs):
    sys.exit(1)


@pytest.mark.parametrize("id", EXERCISES)
@pytest.mark.parametrize(
    "answer",
    [raises, exits, lambda: 1, lambda *inputs: "text", lambda *inputs: {1: 2}, 5, object(),
     lambda *inputs: torch.tensor([]), lambda *inputs: [(1,)], lambda *inputs: float("nan")],
    ids=[
        "raises", "exits", "arguments", "text", "dict", "number", "object", "empty", "list", "nan"
    ],
)  # fmt: skip
def test_check_never_raises(id, answer, capsys):
    report = check(id, answer, seed=0)
    assert report.status in ("wrong", "error")
    assert report.message


def test_an_exception_is_reported_with_the_students_own_line():
    report = check_answer(EXERCISES["02.1"], raises, 0)
    assert report.status == "error"
    assert "IndexError: row 3 is missing" in report.message
    assert 'raise IndexError("row 3 is missing")' in report.message


def test_a_wrong_number_of_arguments_is_told_the_signature():
    report = check_answer(EXERCISES["02.2"], lambda q, k: q, 0)
    assert EXERCISES["02.2"].signature in report.message


def test_a_result_instead_of_a_function_is_told_so():
    report = check_answer(EXERCISES["02.1"], 109_482_240, 0)
    assert "without parentheses" in report.message


def test_the_seed_in_a_report_draws_the_same_inputs():
    wrong = PLANTED["02.1"]["unforeseen"]
    report = check_answer(EXERCISES["02.1"], wrong)
    seed = int(report.again.split("seed=")[1].split(")")[0])
    assert check_answer(EXERCISES["02.1"], wrong, seed).message == report.message
    assert check_answer(EXERCISES["02.1"], wrong, seed + 1).message != report.message


def test_fresh_inputs_every_time():
    wrong = PLANTED["02.1"]["unforeseen"]
    assert len({check_answer(EXERCISES["02.1"], wrong).message for _ in range(5)}) > 1


def test_an_unforeseen_mistake_gets_stage_and_counter_example():
    report = check_answer(EXERCISES["02.7"], PLANTED["02.7"]["unforeseen"], 0)
    stopped = next(stage for stage in report.stages if stage.passed is False)
    assert stopped == report.stages[3] and stopped.name == "too long: [UNK]"
    assert "you have" in stopped.message and "it is" in stopped.message


def test_stages_after_the_first_failure_are_not_asked():
    report = check_answer(EXERCISES["02.3"], PLANTED["02.3"]["all masked"], 0)
    passed = [stage.passed for stage in report.stages]
    assert passed == [True, True, False, None, None, None]


def test_the_readers_own_random_numbers_are_left_alone():
    random.seed(5), torch.manual_seed(5)
    expected = random.random(), torch.rand(1).item()
    random.seed(5), torch.manual_seed(5)
    check_answer(EXERCISES["02.3"], mask_unseeded, 0)
    assert (random.random(), torch.rand(1).item()) == expected


# ---------------------------------------------------------------- further ways to go wrong


@pytest.mark.parametrize(
    ("id", "answer", "key"),
    [
        ("02.1", lambda c: count_own_matrices(c, biases=False), "every head full width"),
        ("02.1", lambda c: count_own_matrices(c, False, True),
         "every head full width, output too"),
        ("02.1", lambda c: count_own_matrices(c, True, True),
         "every head full width, output and biases"),
        ("02.2", lambda q, k, v, m: attention.attend(q, k, v * m[:, None, :, None],
                                                     torch.ones_like(m)), "mask after softmax"),
        ("02.4", choose_then_drop, "sometimes too few"),
        ("02.7", pieces_with(lengths=list, limit=10**6), "shortest first"),
        ("02.7", pieces_with(lengths=list, limit=10**6, stuck="keep"), "shortest first"),
        ("02.7", pieces_with(look="", limit=10**6), "looked up without ##"),
        ("02.7", pieces_with(stuck="keep", limit=10**6), "pieces before [UNK]"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_in_other_clothes_too(id, answer, key):
    for seed in SEEDS:
        assert check_answer(EXERCISES[id], answer, seed).mistake == key


def test_own_matrices_for_each_head_are_called_so():
    said = check_answer(EXERCISES["02.1"], count_own_matrices, 0).message
    assert "each head has its own H×H matrices" in said


def test_one_draw_for_all_is_named_whatever_the_luck():
    for seed in range(20):
        report = check_answer(EXERCISES["02.3"], mask_all_alike, seed)
        assert report.mistake == "one draw for all"


def test_the_missing_sign_in_the_look_up_stops_where_the_longest_wins():
    report = check_answer(EXERCISES["02.7"], pieces_with(look=""), 0)
    assert [stage.passed for stage in report.stages[:2]] == [True, False]


def choose_rounding_a_tensor(input_ids, special, rate, max_predictions, generator):
    return min(max_predictions, max(1, round(rate * (input_ids != special.pad).sum())))


@pytest.mark.filterwarnings("ignore:The use of")
@pytest.mark.parametrize(
    ("id", "answer", "advice"),
    [
        ("02.4", choose_rounding_a_tensor, "wrap it in int(...)"),
        ("02.2", lambda q, k, v, m: (q @ k.T).softmax(-1) @ v, "k.transpose(-1, -2)"),
        ("02.2", lambda q, k, v, m: (q @ k.transpose(1, 2)).softmax(-1) @ v, "k.transpose(-1, -2)"),
        ("02.2", lambda q, k, v, m: torch.matmul(q, k.permute(3, 2, 1, 0)), "k.transpose(-1, -2)"),
        ("02.2", lambda q, k, v, m: (q @ k.mT).masked_fill(m[:, None, None], -1e9),
         "attention_mask == 0"),
        ("02.2", lambda q, k, v, m: torch.zeros_like(q).masked_fill(~m[:, None, :, None], -1e9),
         "attention_mask == 0"),
        ("02.6", lambda p, y, n, z: F.cross_entropy(p, y), "flatten (B, T, V) to (B·T, V)"),
        ("02.6", lambda p, y, n, z: F.cross_entropy(p.flatten(0, 1), y),
         "flatten (B, T, V) to (B·T, V)"),
    ],
)  # fmt: skip
def test_a_frequent_exception_gets_a_line_of_advice(id, answer, advice):
    report = check_answer(EXERCISES[id], answer, 0)
    assert report.mistake == "raised"
    assert advice in report.message, report


def test_other_exceptions_get_no_advice_about_axes():
    def beside(q, k, v, mask):
        return (q @ k.transpose(-1, -2)) + torch.zeros(7, 7, 7)

    def elsewhere(q, k, v, mask):
        scores = q @ k.transpose(-1, -2)
        return scores + torch.zeros(7, 7, 7)

    for answer in (beside, elsewhere):
        said = check_answer(EXERCISES["02.2"], answer, 0).message
        assert "must match" in said and "Swap" not in said


def test_the_hint_of_the_number_can_be_copied():
    from course_lib.objectives.sequences import SpecialIds

    (line,) = [h for h in EXERCISES["02.4"].hints if "length = " in h]
    code = line.split("length = ")[1].split(", then")[0]
    given = {"input_ids": torch.tensor([2, 9, 3, 0]), "special": SpecialIds(0, 1, 2, 3, 4, 50)}
    assert round(0.5 * eval(code, given)) == 2


# ---------------------------------------------------------------- loops without end


def pieces_endless(word, vocab, max_chars):
    pieces, start = [], 0
    while start < len(word):
        end = len(word)
        while end > start and "##" * (start > 0) + word[start:end] not in vocab:
            end -= 1
        pieces.append("##" * (start > 0) + word[start:end])
        pieces, start = pieces[-20:], end
    return pieces


needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")


@needs_timers
def test_a_loop_without_end_is_stopped_and_named():
    report = check_answer(EXERCISES["02.7"], pieces_endless, 0, seconds=0.2)
    assert report.status == "wrong" and report.mistake == "never ends"
    assert [stage.passed for stage in report.stages] == [True, True, False, None, None]
    assert "did not come back within 0.2 seconds" in report.message
    assert any(f"'{word}'" in report.message for word in ("rivet", "zebra", "riverbank"))


@needs_timers
def test_the_alarm_found_before_is_put_back():
    def mine(number, frame):
        raise AssertionError("too early")

    before = signal.signal(signal.SIGALRM, mine)
    try:
        signal.setitimer(signal.ITIMER_REAL, 500)
        for answer in (pieces_endless, words.wordpiece, raises, exits):
            check_answer(EXERCISES["02.7"], answer, 0, seconds=0.5)
            assert signal.getsignal(signal.SIGALRM) is mine
            assert 400 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@needs_timers
def test_an_answer_cannot_catch_its_own_alarm():
    def stubborn(config):
        try:
            while True:
                pass
        except Exception:
            return 1

    report = check_answer(EXERCISES["02.1"], stubborn, 0, seconds=0.1)
    assert report.mistake == "never ends"


def test_outside_the_main_thread_there_is_no_limit():
    reports = []

    def work():
        solution = EXERCISES["02.7"].solution
        reports.append(check_answer(EXERCISES["02.7"], solution, 0, seconds=1e-9))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert reports[0].status == "passed"


# ---------------------------------------------------------------- solutions and the library


def test_the_count_is_that_of_built_models():
    for size in ("tiny", "mini"):
        model = bert(size, vocab_size=300)
        assert count.parameter_count(model.config) == count_parameters(model)


def test_the_hint_of_the_count_is_right():
    from course_lib.config import BertConfig

    sizes = dict(vocab_size=10, hidden_size=4, num_layers=1, num_heads=2, intermediate_size=8)
    config = BertConfig(**sizes, max_positions=6, type_vocab_size=2)
    assert "embeddings 80, block 172, pooler 20: 272" in EXERCISES["02.1"].hints[-1]
    assert (10 + 6 + 2) * 4 + 8 == 80
    assert count._block(config) == 172
    assert count.parameter_count(config) == 272


def test_the_attention_is_the_librarys():
    q, k, v = torch.randn(3, 2, 4, 7, 5)
    mask = (torch.arange(7) < torch.tensor([[4], [7]])).long()
    assert close(attention.attend(q, k, v, mask), attention_reference(q, k, v, mask)[0])


def test_the_count_rule_is_the_librarys():
    from course_lib.objectives.sequences import SpecialIds

    special = SpecialIds(0, 1, 2, 3, 4, vocab_size=500)
    for length in range(1, 60):
        row = torch.tensor([2, *range(10, 10 + length), 3, 0, 0])
        chosen = choosing.choose(row, special, 0.15, 6, torch.Generator())
        assert int(chosen.sum()) == min(length, count_to_predict(length + 2, 0.15, 6))


def test_the_loss_is_the_librarys():
    from course_lib.heads import PreTrainingOutput

    logits, pair = torch.randn(2, 5, 9), torch.randn(2, 2)
    labels, truth = torch.tensor([[-100, 4, -100, 1, -100], [7] + [-100] * 4]), torch.tensor([0, 1])
    ours = loss.joint_loss(logits, labels, pair, truth)
    outputs, targets = PreTrainingOutput(logits, pair), {"labels": labels}
    targets["next_sentence_label"] = truth
    assert close(ours, pretraining_loss(outputs, targets)["total"])
    assert not close(ours, masked_lm_loss(outputs, targets)["total"])


def test_the_pieces_are_the_librarys():
    from course_lib.teaching.exercises.machinery import Draw

    for word, vocab, _ in words._drawn_words(Draw(3), 500):
        assert words.wordpiece(word, vocab, 100) == (longest_match(word, vocab) or ["[UNK]"])


# ---------------------------------------------------------------- hints, solutions, numbers, looks


@pytest.mark.parametrize("id", EXERCISES)
def test_hints_come_one_rung_at_a_time(id, capsys):
    rungs = EXERCISES[id].hints
    given = [hint(id, restart=True).text, *(hint(id).text for _ in rungs[1:])]
    assert given == list(rungs)
    assert "reveal" in hint(id).text
    assert hint(id, restart=True).text == rungs[0]


@pytest.mark.parametrize("id", EXERCISES)
def test_reveal_shows_a_function(id, capsys):
    note = reveal(id)
    assert "def " in note.text
    for place in EXERCISES[id].library:
        assert f"def {place.replace(':', '.').split('.')[-1]}(" in note.text
    if not EXERCISES[id].library:
        assert f"def {EXERCISES[id].solution.__name__}(" in note.text


@pytest.mark.parametrize("ask", [lambda id: check(id, len), hint, reveal])
@pytest.mark.parametrize("id", ["02.99", "2.1", "", 2.1, None])
def test_an_unknown_number_lists_those_that_exist(ask, id, capsys):
    shown = repr(ask(id))
    assert repr(id) in shown and "02.1" in shown and "02.7" in shown


def test_a_report_says_in_words_what_colour_says():
    stages = [Stage("shape", True), Stage("values", False, "1 < 2 & so on"), Stage("later", None)]
    report = Report("02.9 x", stages, again="seed 5")
    for shown in (repr(report), report._repr_html_()):
        for word in ("not yet", "passed", "stopped here", "not reached", "seed 5"):
            assert word in shown
    assert "1 &lt; 2 &amp; so on" in report._repr_html_()


@pytest.mark.parametrize(
    ("stages", "trouble", "status"),
    [
        ([Stage("a", True)], "", "passed"),
        ([Stage("a", True), Stage("b", False)], "", "wrong"),
        ([Stage("a", None)], "unanswered", "unanswered"),
        ([Stage("a", False)], "error", "error"),
        ([], "", "wrong"),
    ],
)
def test_the_status_of_a_report(stages, trouble, status):
    assert Report("x", stages, trouble).status == status


def test_check_shows_and_returns(capsys):
    report = check("02.1", count.parameter_count, seed=0)
    assert report.status == "passed"
    assert "02.1 Count BERT by hand: passed" in capsys.readouterr().out


def test_importing_the_exercises_is_light():
    heavy = "{'transformers', 'plotly', 'bertviz', 'ipywidgets', 'sklearn', 'IPython'}"
    code = f"import course_lib.teaching.exercises, sys; print({heavy} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
    assert exercises.__all__
