"""Exercises of lecture 07: the planted wrong answers, and the solutions beside the library.

What every exercise must do is asked in test_exercises.py, of these as of all others.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_lib.config import BertConfig, encoder_flops
from course_lib.encoder import Encoder
from course_lib.family.electra import ElectraConfig, ElectraOutput, electra_from, fill_in
from course_lib.heads import BertForMaskedLM
from course_lib.lectures.lecture_07.exercises import EXERCISES as ALL
from course_lib.lectures.lecture_07.exercises import (
    compute,
    corrupting,
    judging,
    labels,
    steps,
    weighing,
)
from course_lib.objectives.replaced_tokens import (
    electra_loss,
    replaced_labels,
    replaced_token_loss,
)
from course_lib.teaching.exercises.legacy import Draw, check_answer, close

EXERCISES = {exercise.id: exercise for exercise in ALL}
SEEDS = (0, 1, 2, 3, 4, 5)
torch.set_num_threads(1)  # the tensors are tiny


# ---------------------------------------------------------------- planted wrong answers


def label_with(rule):
    """Labels token by token: rule(original, masked, corrupted) -> label."""

    def answer(original, masked, corrupted):
        triples = zip(original.tolist(), masked.tolist(), corrupted.tolist(), strict=True)
        return torch.tensor(
            [[int(rule(*ids)) for ids in zip(*row, strict=True)] for row in triples]
        )

    return answer


def label_asked_only(original, masked, corrupted):
    asked = masked == labels.MASK
    return (corrupted[asked] != original[asked]).long()


def label_anywhere(original, masked, corrupted):
    words = set(original.flatten().tolist())
    return label_with(lambda o, m, c: c not in words)(original, masked, corrupted)


def corrupt_with(*, chances=lambda x: x.softmax(-1), put=None, give=lambda x: x, draw=None):
    """The corruption by hand; each part can be exchanged."""

    def draw_rows(p):
        return torch.distributions.Categorical(probs=p).sample()

    def answer(input_ids, predict_at, logits):
        words = (draw or draw_rows)(chances(logits.detach()))
        out = input_ids.clone()
        if put:
            put(out, predict_at, words)
        else:
            T = input_ids.shape[1]
            for at, word in zip(predict_at.tolist(), words.tolist(), strict=True):
                out[at // T, at % T] = word
        return give(out)

    return answer


def put_first_row(out, at, words):
    out[0, at % out.shape[1]] = words


def put_every_row(out, at, words):
    out[:, at % out.shape[1]] = words


def put_transposed(out, at, words):
    for i, word in zip(at.tolist(), words.tolist(), strict=True):
        out[i % len(out), i // len(out)] = word


def put_shifted(by):
    def put(out, at, words):
        out.view(-1)[(at + by) % out.numel()] = words

    return put


def put_everywhere(out, at, words):
    out[:] = words[0]
    out.view(-1)[at] = words


def put_at_masks(out, at, words):
    out.masked_scatter_(out == corrupting.MASK, words)


def put_sorted(out, at, words):
    out.view(-1)[at] = words.sort().values


def corrupt_in_place(input_ids, predict_at, logits):
    input_ids.view(-1)[predict_at] = torch.multinomial(logits.detach().softmax(-1), 1)[:, 0]
    return input_ids


def corrupt_straight_through(input_ids, predict_at, logits):
    filled = corrupting.corrupt(input_ids, predict_at, logits).float()
    p = logits.softmax(-1)
    return filled + (p - p.detach()).sum()


def one_number_for_all(p):
    ends = p.cumsum(-1) / p.sum(-1, keepdim=True)
    return (ends <= torch.rand(1, dtype=p.dtype)).sum(-1).clamp(max=p.shape[1] - 1)


def always_seeded(p):
    return torch.multinomial(p, 1, generator=torch.Generator().manual_seed(1)).squeeze(1)


def judge_with(each=None, *, pick=lambda real, y: real, reduce=lambda x, real: x.mean()):
    """The loss from −log P token by token, with one part exchanged."""

    def plain(x, y):
        return -torch.where(y == 1, F.logsigmoid(x), F.logsigmoid(-x))

    def answer(logits, y, attention_mask):
        real = attention_mask == 1
        return reduce((each or plain)(logits, y)[pick(real, y)], real)

    return answer


def judge_rows(x, y, m):
    rows = [judging.judge_loss(*(t[i : i + 1] for t in (x, y, m))) for i in range(len(x))]
    return torch.stack(rows).mean()


def start_with(*, mlm=math.log, disc=lambda V: math.log(2), weights=lambda w: (1, w), scale=1.0,
               share=lambda a, b: b / (a + b)):  # fmt: skip
    def answer(V, weight):
        first, second = weights(weight)
        a, b = first * mlm(V), second * disc(V)
        return scale * (a + b), share(a, b)

    return answer


def step_with(*, passes=3, **wrong):
    """The count written part by part; a keyword replaces a part by f(blocks, T, H, V, k, g)."""

    def answer(blocks, T, H, V, k, g):
        parts = {
            "bert": blocks(H), "bert_head": 2 * k * H * (H + V),
            "projection": 2 * T * H * g, "generator": blocks(g),
            "generator_head": 2 * k * (g * H + H * V),
            "discriminator": blocks(H), "rtd_head": 2 * T * H * (H + 1),
        }  # fmt: skip
        for name, part in wrong.items():
            parts[name] = part(blocks, T, H, V, k, g)
        ours = ("projection", "generator", "generator_head", "discriminator", "rtd_head")
        bert = parts["bert"] + parts["bert_head"]
        return passes * bert, passes * sum(parts[name] for name in ours)

    return answer


def nothing(*sizes):
    return 0


def shares_with(value=lambda m, r: m["compute"] / r["compute"], keep=lambda m, r: None):
    """The shares in a loop; keep(mine, row) replaces the rule for who is reached."""

    def answer(model, rows):
        mine, found = rows[model], {}
        for name, row in rows.items():
            reached = keep(mine, row)
            if reached is None:
                reached = name != model and row["score"] - mine["score"] <= 0.25
            if reached:
                found[name] = value(mine, row)
        return found

    return answer


def shares_itself(model, rows):
    return {**compute.compute_shares(model, rows), model: 1.0}


def shares_by_bert_large(model, rows):
    reached = compute.compute_shares(model, rows)
    return {name: rows[model]["compute"] / rows["BERT-large"]["compute"] for name in reached}


def other(rule):
    """A rule on scores for every model but the one itself, which scores the same and is drawn."""
    return lambda m, r: r is not m and rule(m["score"], r["score"])


PLANTED = {
    "07.1": {
        "every masked position": label_with(lambda o, m, c: m == labels.MASK),
        "paper's sign": label_with(lambda o, m, c: o == c),
        "compared with the masked text": label_with(lambda o, m, c: m != c),
        "only the masked positions": label_asked_only,
        "hits labelled": label_with(lambda o, m, c: m == labels.MASK and o == c),
        "only where [MASK] stood": label_with(lambda o, m, c: m == labels.MASK and o != c),
        "ignored elsewhere": label_with(
            lambda o, m, c: int(o != c) if m == labels.MASK else -100),
        "ids instead of labels": label_with(lambda o, m, c: c if o != c else 0),
        "true words": label_with(lambda o, m, c: o if o != c else 0),
        "occurs elsewhere": label_anywhere,
        "wrong shape": lambda o, m, c: (o != c).long().flatten(),
        "wrong type": lambda o, m, c: (o != c).long().tolist(),
        "unforeseen": label_with(lambda o, m, c: 2 * (o != c)),
    },
    "07.2": {
        "likeliest word": corrupt_with(draw=lambda p: p.argmax(-1)),
        "uniform": corrupt_with(chances=lambda x: torch.full_like(x, 1 / x.shape[1])),
        "no softmax": corrupt_with(chances=lambda x: x.clamp(min=0)),
        "softmax twice": corrupt_with(chances=lambda x: x.softmax(-1).softmax(-1)),
        "softmax over the positions": corrupt_with(chances=lambda x: x.softmax(0)),
        "sigmoid": corrupt_with(chances=torch.sigmoid),
        "unlikely words": corrupt_with(chances=lambda x: (-x).softmax(-1)),
        "first position's chances": corrupt_with(
            chances=lambda x: x[:1].softmax(-1).expand_as(x)),
        "one draw for all": corrupt_with(draw=one_number_for_all),
        "always the same": corrupt_with(draw=always_seeded),
        "nothing put in": lambda ids, at, logits: ids,
        "first row only": corrupt_with(put=put_first_row),
        "every row": corrupt_with(put=put_every_row),
        "row and column mixed up": corrupt_with(put=put_transposed),
        "one position late": corrupt_with(put=put_shifted(1)),
        "one position early": corrupt_with(put=put_shifted(-1)),
        "looks for [MASK]": corrupt_with(put=put_at_masks),
        "words in another order": corrupt_with(put=put_sorted),
        "other positions changed": corrupt_with(put=put_everywhere),
        "writes into its input": corrupt_in_place,
        "only the drawn words": lambda ids, at, logits: torch.multinomial(
            logits.softmax(-1), 1)[:, 0],
        "left flat": corrupt_with(give=torch.flatten),
        "gradient kept": corrupt_straight_through,
        "not whole numbers": corrupt_with(give=lambda x: x.float()),
        "wrong type": corrupt_with(give=lambda x: x.tolist()),
        "unforeseen": corrupt_with(chances=lambda x: (2.5 * x).softmax(-1)),
    },
    "07.3": {
        "padding counted": judge_with(pick=lambda real, y: torch.ones_like(real)),
        "padding in the count": judge_with(reduce=lambda x, real: x.sum() / real.numel()),
        "padding scored zero": lambda x, y, m: F.binary_cross_entropy_with_logits(
            x * m, (y * m).double()),
        "only the replaced tokens": judge_with(pick=lambda real, y: real & (y == 1)),
        "only the original tokens": judge_with(pick=lambda real, y: real & (y == 0)),
        "half of the formula": judge_with(lambda x, y: -y * F.logsigmoid(x)),
        "sum": judge_with(reduce=lambda x, real: x.sum()),
        "row by row": judge_rows,
        "sum of rows": lambda x, y, m: judge_rows(x, y, m) * len(x),
        "paper's sign": lambda x, y, m: judging.judge_loss(x, 1 - y, m),
        "negative": judge_with(reduce=lambda x, real: -x.mean()),
        "sigmoid twice": lambda x, y, m: judging.judge_loss(torch.sigmoid(x), y, m),
        "softmax over the text": judge_with(lambda x, y: -F.log_softmax(x, 1) * y),
        "squared error": judge_with(lambda x, y: (torch.sigmoid(x) - y).square()),
        "no logarithm": judge_with(lambda x, y: (torch.sigmoid(x) - y).abs()),
        "bits": judge_with(reduce=lambda x, real: x.mean() / math.log(2)),
        "sigmoid first": judge_with(
            lambda x, y: -torch.where(y == 1, x.sigmoid().log(), (1 - x.sigmoid()).log())),
        "no gradient": lambda x, y, m: judging.judge_loss(x, y, m).item(),
        "not reduced": judge_with(reduce=lambda x, real: x[:, None].expand(-1, 2)),
        "wrong type": lambda x, y, m: f"{judging.judge_loss(x, y, m):.3f}",
        "unforeseen": judge_with(reduce=lambda x, real: x.median()),
    },
    "07.4": {
        "λ on the generator": start_with(weights=lambda w: (w, 1)),
        "λ on the generator, in bits": start_with(weights=lambda w: (w, 1), mlm=math.log2,
                                                  disc=lambda V: 1.0),
        "averaged": start_with(scale=0.5),
        "weighted mean": start_with(weights=lambda w: (1 / (1 + w), w / (1 + w))),
        "λ and 1 − λ": start_with(weights=lambda w: (1 - w, w)),
        "λ ignored": start_with(weights=lambda w: (1, 1)),
        "λ on both": start_with(weights=lambda w: (w, w)),
        "bits": start_with(mlm=math.log2, disc=lambda V: 1.0),
        "base ten": start_with(mlm=math.log10, disc=lambda V: math.log10(2)),
        "forgets the generator": start_with(weights=lambda w: (0, w)),
        "forgets the discriminator": start_with(weights=lambda w: (1, 0)),
        "generator's share": start_with(share=lambda a, b: a / (a + b)),
        "ratio": start_with(share=lambda a, b: b / a),
        "share without λ": lambda V, w: (
            weighing.at_the_start(V, w)[0], math.log(2) / math.log(2 * V)),
        "half weighted share": start_with(share=lambda a, b: math.log(2) / (a + b)),
        "percent": start_with(share=lambda a, b: 100 * b / (a + b)),
        "order": lambda V, w: weighing.at_the_start(V, w)[::-1],
        "the two terms": lambda V, w: (math.log(V), w * math.log(2)),
        "discriminator chooses among V": start_with(disc=math.log),
        "knows the rate": start_with(
            disc=lambda V: 0.15 * math.log(1 / 0.15) + 0.85 * math.log(1 / 0.85)),
        "no logarithm": start_with(mlm=lambda V: 1 - 1 / V, disc=lambda V: 0.5),
        "sign": start_with(mlm=lambda V: math.log(1 / V), disc=lambda V: math.log(1 / 2)),
        "wrong type": lambda V, w: weighing.at_the_start(V, w)[0],
        "unforeseen": start_with(weights=lambda w: (2, w)),
    },
    "07.5": {
        "generator forgotten": step_with(projection=nothing, generator=nothing,
                                         generator_head=nothing),
        "generator by its width": step_with(
            generator=lambda blocks, T, H, V, k, g: blocks(H) * g / H),
        "generator as a square": step_with(
            generator=lambda blocks, T, H, V, k, g: blocks(H) * g * g / H / H),
        "generator as wide": step_with(generator=lambda blocks, T, H, V, k, g: blocks(H)),
        "generator without a head": step_with(generator_head=nothing),
        "generator's head g wide": step_with(
            generator_head=lambda blocks, T, H, V, k, g: 2 * k * g * (g + V)),
        "generator's head H wide": step_with(
            generator_head=lambda blocks, T, H, V, k, g: 2 * k * H * (H + V)),
        "no projection": step_with(projection=nothing),
        "vocabulary head everywhere": step_with(
            bert_head=lambda blocks, T, H, V, k, g: 2 * T * H * (H + V),
            generator_head=lambda blocks, T, H, V, k, g: 2 * T * H * (g + V)),
        "BERT's head everywhere": step_with(
            bert_head=lambda blocks, T, H, V, k, g: 2 * T * H * (H + V)),
        "BERT without a head": step_with(bert_head=nothing),
        "heads without their first layer": step_with(
            bert_head=lambda blocks, T, H, V, k, g: 2 * k * H * V,
            generator_head=lambda blocks, T, H, V, k, g: 2 * k * H * V),
        "discriminator asked at k": step_with(
            rtd_head=lambda blocks, T, H, V, k, g: 2 * k * H * (H + 1)),
        "discriminator without a head": step_with(rtd_head=nothing),
        "discriminator names words": step_with(
            rtd_head=lambda blocks, T, H, V, k, g: 2 * k * H * (H + V)),
        "generator forward only": lambda *s: (
            step_with()(*s)[0],
            step_with(generator=nothing, generator_head=nothing, projection=nothing)(*s)[1]
            + steps._generator(steps.Sizes(*s))),
        "heads: multiply-add is one": step_with(
            bert_head=lambda blocks, T, H, V, k, g: k * H * (H + V),
            generator_head=lambda blocks, T, H, V, k, g: k * H * (g + V),
            rtd_head=lambda blocks, T, H, V, k, g: T * H * (H + 1)),
        "forward only": step_with(passes=1),
        "backward counted once": step_with(passes=2),
        "backward counted three times": step_with(passes=4),
        "no projection + forward only": step_with(passes=1, projection=nothing),
        "no projection + discriminator without a head": step_with(
            projection=nothing, rtd_head=nothing),
        "the other way round": lambda *s: steps.training_step(*s)[::-1],
        "wrong type": lambda *s: steps.training_step(*s)[1] / steps.training_step(*s)[0],
        "unforeseen": lambda *s: (7, 9),
    },
    "07.6": {
        "the wrong way round": shares_with(lambda m, r: r["compute"] / m["compute"]),
        "always by BERT-large": shares_by_bert_large,
        "steps": shares_with(lambda m, r: m["steps"] / r["steps"]),
        "operations a step": shares_with(
            lambda m, r: m["compute"] * r["steps"] / (r["compute"] * m["steps"])),
        "scores": shares_with(lambda m, r: m["score"] / r["score"]),
        "score for compute": shares_with(
            lambda m, r: m["score"] * r["compute"] / (r["score"] * m["compute"])),
        "difference": shares_with(lambda m, r: m["compute"] - r["compute"]),
        "what was saved": shares_with(lambda m, r: 1 - m["compute"] / r["compute"]),
        "percent": shares_with(lambda m, r: m["compute"] / r["compute"] * 100),
        "rounded": shares_with(lambda m, r: round(m["compute"] / r["compute"], 2)),
        "itself": shares_itself,
        "everyone": shares_with(keep=other(lambda mine, score: True)),
        "everyone, itself too": shares_with(keep=lambda m, r: True),
        "no margin": shares_with(keep=other(lambda mine, score: score <= mine)),
        "only those level with it": shares_with(
            keep=other(lambda mine, score: abs(score - mine) < 0.25)),
        "margin on the wrong side": shares_with(
            keep=other(lambda mine, score: score < mine - 0.25)),
        "better models": shares_with(keep=other(lambda mine, score: score > mine - 0.25)),
        "wrong type": lambda model, rows: list(compute.compute_shares(model, rows).values()),
        "unforeseen": shares_with(lambda m, r: (m["compute"] / r["compute"]) ** 2),
    },
}  # fmt: skip


# ---------------------------------------------------------------- other right and wrong answers


def corrupt_gumbel(input_ids, predict_at, logits):
    noise = -torch.log(-torch.log(torch.rand_like(logits)))
    return corrupting.corrupt(input_ids, predict_at, 1e6 * F.one_hot(
        (logits + noise).argmax(-1), logits.shape[1]))  # fmt: skip


def corrupt_rows_and_columns(input_ids, predict_at, logits):
    out, T = input_ids.clone(), input_ids.shape[1]
    words = torch.distributions.Categorical(logits=logits.detach()).sample()
    out[predict_at // T, predict_at % T] = words
    return out


@pytest.mark.parametrize(
    ("id", "answer"),
    [
        ("07.1", label_with(lambda o, m, c: o != c)),
        ("07.1", lambda o, m, c: o != c),
        ("07.2", corrupt_with()),
        ("07.2", corrupt_rows_and_columns),
        ("07.2", lambda ids, at, logits: fill_in(ids, at, logits)),
        ("07.3", judge_with()),
        ("07.3", lambda x, y, m: (F.binary_cross_entropy_with_logits(
            x, y.double(), reduction="none") * m).sum() / m.sum()),
        ("07.4", start_with()),
        ("07.4", lambda V, w: torch.tensor(weighing.at_the_start(V, w))),
        ("07.5", step_with()),
        ("07.5", lambda *sizes: list(steps.training_step(*sizes))),
        ("07.6", shares_with()),
    ],
)  # fmt: skip
def test_another_right_answer_passes(id, answer):
    for seed in SEEDS[:2]:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.status == "passed", report


@pytest.mark.parametrize(
    ("id", "answer", "key"),
    [
        ("07.1", label_with(lambda o, m, c: m not in (o, labels.MASK) or m != o),
         "every masked position"),
        ("07.1", label_with(lambda o, m, c: m == labels.MASK and c == o), "hits labelled"),
        ("07.1", lambda o, m, c: 1 - labels.labels(o, m, c), "paper's sign"),
        ("07.2", corrupt_with(chances=lambda x: x - x.min(-1, keepdim=True).values),
         "no softmax"),
        ("07.2", corrupt_with(chances=torch.abs), "no softmax"),
        ("07.2", corrupt_with(give=lambda x: x[:, :1]), "wrong shape"),
        ("07.2", lambda ids, at, logits: torch.multinomial(logits.softmax(-1), 1),
         "only the drawn words"),
        ("07.3", lambda x, y, m: judging.judge_loss(-x, y, m), "paper's sign"),
        ("07.3", lambda x, y, m: F.binary_cross_entropy(
            x.sigmoid()[m == 1], y[m == 1].double()), "sigmoid first"),
        ("07.3", judge_with(lambda x, y: -(1 - y) * F.logsigmoid(-x)), "half of the formula"),
        ("07.4", start_with(weights=lambda w: (0, w), share=lambda a, b: 1.0),
         "forgets the generator"),
        ("07.5", step_with(generator=lambda blocks, T, H, V, k, g: blocks(H) // (H // g)),
         "generator by its width"),
        ("07.6", shares_with(keep=other(lambda mine, score: score > mine + 0.25)),
         "better models"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_in_other_clothes_too(id, answer, key):
    for seed in SEEDS[:2]:
        report = check_answer(EXERCISES[id], answer, seed)
        assert report.mistake == key, report


def test_one_draw_for_all_is_not_taken_for_the_likeliest_word():
    for seed in range(2, 6):
        report = check_answer(EXERCISES["07.2"], PLANTED["07.2"]["one draw for all"], seed)
        assert report.mistake == "one draw for all", report


@pytest.mark.parametrize(
    ("id", "answer", "advice"),
    [
        ("07.2", lambda ids, at, logits: torch.multinomial(logits - 100, 1), "apply softmax"),
        ("07.2", lambda ids, at, logits: ids.flatten().index_put(
            (at,), torch.multinomial(logits.softmax(-1), 1)), "squeeze(1)"),
        ("07.2", lambda ids, at, logits: ids[at + len(ids)], "input_ids.flatten()"),
        ("07.2", lambda ids, at, logits: fill_in(ids, at, torch.from_numpy(logits.numpy())),
         "logits.detach()"),
        ("07.3", lambda x, y, m: F.binary_cross_entropy_with_logits(x, y), "labels.to("),
    ],
)  # fmt: skip
def test_a_frequent_exception_gets_a_line_of_advice(id, answer, advice):
    report = check_answer(EXERCISES[id], answer, 0)
    assert report.mistake == "raised", report
    assert advice in report.message, report


def test_the_mistake_of_the_lecture_is_named_where_it_first_shows():
    report = check_answer(EXERCISES["07.4"], PLANTED["07.4"]["λ on the generator"], 0)
    assert [stage.passed for stage in report.stages] == [True, False, None]


# ---------------------------------------------------------------- the solutions against the library


def test_the_labels_are_the_librarys():
    original, masked, corrupted = labels._everything(Draw(3))[0]
    asked = ((masked != original) | (corrupted != original)).flatten().nonzero().flatten()
    theirs = replaced_labels(corrupted, asked, original.flatten()[asked])
    assert torch.equal(labels.labels(original, masked, corrupted), theirs)
    assert 0 < theirs.sum() < len(asked)


def test_the_sentence_is_labelled_as_the_hint_says():
    original = ["the", "gardener", "waters", "the", "roses"]
    drawn = ["the", "nurse", "waters", "the", "roses"]
    assert " ".join(original) in EXERCISES["07.1"].statement
    by_hand = " ".join(str(int(a != b)) for a, b in zip(original, drawn, strict=True))
    assert EXERCISES["07.1"].hints[0].startswith(f"By hand: {by_hand}.")


def test_the_loss_is_the_librarys():
    logits, judged, real = judging._case(Draw(5), (6, 9), (2, 3))
    at = judged.flatten().nonzero().flatten()
    corrupted = torch.full_like(judged, 7)
    outputs = ElectraOutput(torch.zeros(len(at), 9), logits, corrupted, at, real)
    theirs = replaced_token_loss(outputs, {"labels": torch.full((len(at),), 8)})["total"]
    assert close(judging.judge_loss(logits, judged, real), theirs, 1e-5)


def test_the_start_is_that_of_a_fresh_model():
    torch.manual_seed(0)
    config = ElectraConfig(vocab_size=900, hidden_size=64, num_layers=2, intermediate_size=128,
                           max_positions=40, embedding_size=32)  # fmt: skip
    model = electra_from(config).eval()
    ids = torch.randint(5, 900, (4, 32))
    at = torch.arange(0, 128, 7)
    with torch.no_grad():
        outputs = model(ids.flatten().index_fill(0, at, 4).view(4, 32), predict_at=at)
        found = electra_loss()(outputs, {"labels": ids.flatten()[at]})
    total, share = weighing.at_the_start(900, 50.0)
    assert float(found["total"]) == pytest.approx(total, rel=0.05)
    assert float(50 * found["rtd"] / found["total"]) == pytest.approx(share, rel=0.05)


def test_the_shares_that_the_exercise_speaks_of_are_right():
    total, share = weighing.at_the_start(30_522, 50)
    assert f"{share:.0%}" == "77%" and total == pytest.approx(44.98, abs=0.01)
    hint = EXERCISES["07.4"].hints[-1]
    assert weighing.at_the_start(8, 3)[1] == pytest.approx(0.5)
    assert f"{weighing.at_the_start(8, 3)[0]:.4f}" in hint


def counted(model, *inputs, **more):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(*inputs, **more)
    return counter.get_total_flops()


def test_the_operations_are_those_the_networks_do():
    sizes = dict(vocab_size=50, hidden_size=24, num_layers=3, num_heads=3, intermediate_size=96,
                 max_positions=16)  # fmt: skip
    T = 11
    config = ElectraConfig(**sizes, embedding_size=24)
    plain = BertConfig(**sizes)
    model, bert = electra_from(config, 1 / 3).eval(), BertForMaskedLM(Encoder(plain)).eval()
    ids = torch.ones(1, T, dtype=torch.long)

    def blocks(width):
        return encoder_flops(
            BertConfig(hidden_size=width, num_heads=1, intermediate_size=4 * width, num_layers=3), T
        )

    ours = steps.training_step(blocks, T, 24, 50, 3, 8)
    hidden = dict(output_attentions=True)  # the readable attention, which the counter can see
    discriminator = counted(model.discriminator.encoder, ids, **hidden) + 2 * T * (24 * 24 + 24)
    head = 2 * 3 * (8 * 24 + 24 * 50)
    generator = counted(model.generator.encoder, ids, **hidden) + head
    assert ours[1] == 3 * (discriminator + generator)
    assert ours[0] == 3 * (counted(bert.encoder, ids, **hidden) + 2 * 3 * (24 * 24 + 24 * 50))
    states = torch.zeros(3, 8)
    assert counted(model.generator.mlm, states) == head
    assert counted(model.discriminator.rtd, torch.zeros(T, 24)) == 2 * T * (24 * 24 + 24)


def test_the_hint_with_numbers_counts_right():
    (hint,) = (h for h in EXERCISES["07.5"].hints if h.startswith("With "))
    bert, both = steps.training_step({4: 500, 2: 150}.__getitem__, 2, 4, 10, 1, 2)
    assert f"= {bert}, " in hint and hint.endswith(f"= {both}.")


def test_a_step_is_dearer_by_little():
    bert, both = steps.training_step(*steps.published_step("base", 512, 0.15))
    assert 1.10 < both / bert < 1.20


def test_whose_quarter_it_is():
    shares = compute.compute_shares("ELECTRA-400K", compute.printed_rows())
    assert {name for name, share in shares.items() if share <= 0.25} == {"RoBERTa-500K", "XLNet"}
    assert f"{shares['BERT-large']:.1f} times" in EXERCISES["07.6"].hints[-1]
    assert f": {shares['RoBERTa-500K']:.2f}." in EXERCISES["07.6"].hints[-1]
    assert "ELECTRA-1.75M" not in shares
    base = compute.compute_shares("ELECTRA-base", compute.printed_rows())
    assert f"{base['BERT-large']:.2f}" == "0.34" and base["BERT-base"] == 1.0


def test_no_drawn_rival_stands_near_the_margin():
    for seed in range(20):
        for cases in (compute._beaten, compute._ahead, compute._level, compute._everything):
            for model, rows in cases(Draw(seed)):
                gaps = [row["score"] - rows[model]["score"] for row in rows.values()]
                assert min(abs(abs(gap) - compute.LEVEL) for gap in gaps) > 0.04
