"""The ledger of lecture 14 on a made-up run of the bench, written by the bench's own functions."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.bench import disentangled, distillation, early_exit, pretraining, unpadding
from course_lib.bench.attention import contenders as attention_rows
from course_lib.bench.inputs import random_sequences
from course_lib.bench.masking import plain_contenders, word_contenders
from course_lib.bench.measuring import Contender, Measured
from course_lib.config import published
from course_lib.encoder import Encoder
from course_lib.heads import BertForMaskedLM
from course_lib.lectures.lecture_14 import claims as lecture_14
from course_lib.teaching.claims import NotHere, claims

torch.set_num_threads(1)
BY_ID = {entry.id: entry for entry in claims("14")}
ON = {"gflops_float32": 200, "gflops_bfloat16": 900}
MEASURED = [entry.id for entry in claims("14") if entry.how == "measured"]


def rows(rates, names=None):
    """Rows whose three rounds have these medians."""
    names = names or [f"row {n}" for n in range(len(rates))]
    return [Measured(name, [0.9 * rate, rate, 1.2 * rate])
            for name, rate in zip(names, rates, strict=True)]  # fmt: skip


def named(contenders):
    return [one.name for one in contenders]


def a_run(monkeypatch):
    """{title: (rows, remark)} of every table that a claim reads; figures are made up."""
    sizes = iter((8e8, 7e8, 1e8))
    monkeypatch.setattr(distillation, "peak_bytes", lambda step: next(sizes))
    monkeypatch.setattr(pretraining, "choose_precision", lambda: "bfloat16")
    tables = {}
    for size, rates in (("mini", [1e3, 4e3, 9e3]), ("tiny", [1e3, 3e3, 9e3])):
        made = rows(rates, ["transformers as shipped", "… tuned (compiled)", "ours in bfloat16"])
        title = f"Pre-training step, {size}, 32×128 tokens, V=8192"
        tables[title] = made, pretraining.remark(size, made, ON)
    batch = random_sequences(2, 16)
    for kind, contenders in (("single tokens", plain_contenders(batch)),
                             ("whole words", word_contenders(batch))):  # fmt: skip
        rates = [10.0 * 3**n for n in range(len(contenders))]
        tables[f"Masking {kind}, 64×512 tokens"] = rows(rates, named(contenders)), None
    for (what, precision, batch_size, tokens), goal in disentangled.GOALS.items():
        made = rows([1_000, 1_100, 1_500, 3_000])
        title = disentangled._table(what, precision, batch_size, tokens).title
        tables[title] = made, disentangled.remark(goal, 100, made, ON)
    for size, precision in ((b, "float32") for b in unpadding.BATCHES):
        made = rows([1, 1, 1.3, 1.8, 3.0, 1, 1.3, 1.9, 3.5, 1.2, 1.5, 2])
        title = f"Padding removed, inference, 2×768, {size[0]}×{size[1]}, {precision}"
        tables[title] = made, unpadding.remark(*size, made, ON)
    three = [
        Contender(name, lambda: None, 1) for name in ("torch's", "ours, all", "ours, in chunks")
    ]
    title = distillation._table(1_024, "float32").title
    made = rows([1_000, 1_100, 1_400])
    tables[title] = made, distillation.remark(three, "float32", made, ON)
    for shape in (early_exit.DEEP, early_exit.WIDE):
        made = rows([1_000, 1_600])
        tables[early_exit._table(shape, "float32").title] = made, early_exit.remark(shape, made, ON)
    for training, what in ((False, "forward"), (True, "forward and backward")):
        names = named(attention_rows(128, "bfloat16", training))
        made = rows([1, 1, 2.5 if training else 0.8, 1], names)
        tables[f"Attention alone, {what}, 32×128 tokens, bfloat16"] = made, None
    return tables


def stored(tables):
    return {
        "machine": ON,
        "tables": {title: [asdict(row) for row in made] for title, (made, _) in tables.items()},
        "remarks": {title: remark for title, (_, remark) in tables.items() if remark},
    }


def gpu_run():
    names = ["transformers' DisentangledSelfAttention, eager", "ours, the readable reference",
             "ours, in Triton"]  # fmt: skip
    titles = [
        f"Disentangled attention on a GPU, {what}, 1×{size}, A=12, D=64, bfloat16"
        for what in ("forward", "forward and backward") for size in ("256", "8,192")
    ]  # fmt: skip
    return {t: (rows([1, 1, 6.0 if "8,192" in t else 0.5], names), None) for t in titles}


@pytest.fixture
def a_stored_run(monkeypatch):
    files = {"14_speed": stored(a_run(monkeypatch)), "14_gpu": stored(gpu_run())}
    monkeypatch.setattr(lecture_14, "result", lambda name: files[name])
    return files


def test_every_goal_is_settled_by_a_stored_run(a_stored_run):
    for id in MEASURED:
        settled = BY_ID[id].settle()
        assert BY_ID[id].accepts(settled.value), (id, settled)
        assert len(settled.detail) > 20


def test_the_verdict_follows_the_number(a_stored_run):
    detail = BY_ID["goal step"].settle().detail
    assert "mini: 9.00× (goal 8: met) as shipped, 2.25× (goal 2: met) at its best" in detail
    assert "tiny: 9.00× (goal 12: missed) as shipped, 3.00× (goal 4: missed) at its best" in detail
    assert "of the matrix products" in detail
    detail = BY_ID["goal DeBERTa"].settle().detail
    assert "inference 1×64 float32 1.50× (goal 2: missed)" in detail
    assert "inference 8×128 float32 1.50× (goal 1.4: met)" in detail
    assert "training step 4×512 bfloat16 1.50× (goal 1.3: met)" in detail
    assert detail.count("goal") == len(disentangled.GOALS)
    detail = BY_ID["goal masking"].settle().detail
    assert "single tokens 27.00× (goal 10: met)" in detail
    assert "whole words 81.00× (goal 20: met)" in detail
    detail = BY_ID["goal distillation"].settle().detail
    assert detail == (
        "1,024 positions, float32: time 1.40× (goal 1.2: met), memory 8.00× (goal 5: met)"
    )
    assert "plain / fused: 0.80× forward, 2.50× with" in BY_ID["fused backward"].settle().detail
    detail = BY_ID["goal GPU"].settle().detail
    assert detail == "forward 6.00× (goal 5: met); forward and backward 6.00× (goal 2: met)"


def test_the_padding_is_compared_with_its_limit(a_stored_run):
    settled = BY_ID["goal padding"].settle()
    limits = [1 / unpadding.padded_mask(32, 128, share).float().mean().item()
              for share in unpadding.PADDING]  # fmt: skip
    reached = [gain / limit for gain, limit in zip((1.3, 1.9, 3.5), limits, strict=True)]
    assert settled.value[:3] == pytest.approx(reached, abs=0.01)
    assert settled.detail.startswith("of 1/(1 − p), 32×128, float32: ")
    assert "at worst; 8×512" in settled.detail


def test_the_exit_is_compared_with_its_flops(a_stored_run):
    settled = BY_ID["goal exit"].settle()
    ratios = [early_exit.flop_ratio(shape["num_layers"])
              for shape in (early_exit.DEEP, early_exit.WIDE)]  # fmt: skip
    assert settled.value == pytest.approx([1.6 / ratio for ratio in ratios], abs=0.01)
    assert "12×256 float32" in settled.detail and "4×768 float32" in settled.detail


def test_the_goals_are_the_benchs():
    assert lecture_14.PADDING_GOAL == unpadding.GOAL and lecture_14.EXIT_GOAL == early_exit.GOAL
    assert set(disentangled.GOALS.values()) <= {1.3, 1.4, 1.5, 1.6, 2.0, 3.0}
    assert "1.3 to 3 times" in BY_ID["goal DeBERTa"].they_say


def test_a_table_that_was_not_measured_is_said_in_words(monkeypatch):
    empty = {"machine": ON, "tables": {}, "remarks": {}}
    monkeypatch.setattr(lecture_14, "result", lambda name: empty)
    for id in MEASURED:
        with pytest.raises(NotHere, match="the stored run has no table"):
            BY_ID[id].settle()


def test_slower_than_the_peer_is_a_surprise(a_stored_run):
    for rows in a_stored_run["14_speed"]["tables"].values():
        for row in rows[1:]:
            row["rates"] = [x / 1_000 for x in row["rates"]]
    settled = BY_ID["goal masking"].settle()
    assert not BY_ID["goal masking"].accepts(settled.value) and "missed" in settled.detail


def test_the_limit_is_that_of_a_head_that_is_counted():
    """Backward has twice as many FLOPs of blocks and head alike. The course's own step leaves
    out still more."""
    config = published("bert", "tiny", vocab_size=500, max_positions=32, kernels="plain")
    model, ids = BertForMaskedLM(Encoder(config)), torch.randint(5, 500, (4, 20))
    every, selected = torch.arange(80), torch.arange(0, 80, 5)

    def flops(work):
        with FlopCounterMode(display=False) as counter:
            work().sum().backward()
        return counter.get_total_flops()

    def head_at(at):
        return lambda: model.mlm(model.encoder(ids).last_hidden_state.flatten(0, 1)[at])

    limit = lecture_14.masked_only_limit(config, 20, 0.2)
    assert flops(head_at(every)) / flops(head_at(selected)) == pytest.approx(limit, rel=0.01)
    ours = flops(lambda: model(ids, predict_at=selected).logits)
    assert flops(head_at(every)) / ours > 1.1 * limit
