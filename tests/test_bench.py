"""The bench measures what it says: each contender does its work, takes its turns, and is tabled."""

from __future__ import annotations

import pytest
import torch

from course_lib import bench
from course_lib.bench import Contender, Measured, as_table, measure


def test_contenders_take_turns_and_rates_are_tokens_per_second(monkeypatch):
    calls, clock = [], [0.0]
    monkeypatch.setattr(bench.time, "perf_counter", lambda: clock[0])

    def contender(name, cost):
        def step():
            calls.append(name)
            clock[0] += cost

        return Contender(name, lambda: step, tokens=100)

    results = measure([contender("slow", 0.5), contender("quick", 0.1)], rounds=3, seconds=1.0)
    assert [r.median for r in results] == pytest.approx([200, 1_000])
    turns = "".join(name[0] for name in calls[8:])  # after building and warming up
    assert turns == ("ss" + "q" * 10) * 3


def test_the_table_shows_every_row_with_its_ratio():
    text = as_table([Measured("peer", [10.0, 20.0, 30.0]), Measured("ours", [40.0] * 3)], "peer")
    peer, ours = text.splitlines()[1:]
    assert "1.00×" in peer and "2.00×" in ours and "40" in ours


def test_flops_per_token_by_hand():
    # tiny: 2 blocks of 4·128² + 2·128·512, attention 2·2·128·128, head 0.15·(128² + 128·8192)
    by_hand = 6 * (2 * (65_536 + 131_072) + 2 * 2 * 128 * 128 + 0.15 * (16_384 + 1_048_576))
    assert bench.training_flops_per_token("tiny") == pytest.approx(by_hand)


def test_both_sides_train_the_same_number_of_weights_and_each_step_moves_them(monkeypatch):
    from transformers import BertForMaskedLM

    made = []
    plain = bench.peer_model

    def peer_model(*args):
        made.append(plain(*args))
        return made[-1]

    monkeypatch.setattr(bench, "peer_model", peer_model)
    for settings in ({}, {"tuned": True, "attention": "eager"}):
        step = bench.peer_step("tiny", **settings)
        model = made[-1]
        assert isinstance(model, BertForMaskedLM)
        before = model.bert.encoder.layer[0].attention.self.query.weight.clone()
        step()
        assert not torch.equal(before, model.bert.encoder.layer[0].attention.self.query.weight)
    ours = bench.bert_for_pretraining("tiny", vocab_size=bench.SPECIAL.vocab_size)
    pooler_and_pair = 128 * 128 + 128 + 2 * 128 + 2  # ours has them, BertForMaskedLM does not
    count = sum(p.numel() for p in ours.parameters()) - pooler_and_pair
    assert count == sum(p.numel() for p in made[0].parameters())
    bench.our_step("tiny", "float32", True)()


def test_every_masking_contender_hides_about_fifteen_percent():
    collator = bench.peer_collator()
    rows = bench.random_rows()
    labels = collator([{"input_ids": row} for row in rows.input_ids])["labels"]
    ours = bench.mask_rows(rows, bench.SPECIAL).labels
    for found in (labels, ours):
        assert 0.14 < (found != -100).float().mean() < 0.16
    for contender in bench.masking_contenders():
        contender.make()()
