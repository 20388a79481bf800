"""FastBERT's measurements are what they say: by hand, on models too small to be good."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from course_lib import MicroWorld, bert
from course_lib.kernels.early_exit import entropy_at_most
from course_lib.lectures.lecture_12 import fast_runs as runs
from course_lib.objectives.sequences import PackedSequences
from course_lib.text.english import RELATIONS
from course_lib.text.tasks import LabelledSequences
from course_lib.train.exits import fastbert_on

torch.set_num_threads(1)

# Two exits, four texts, two classes; the first exit is sure of texts 0 and 3, and wrong in 3.
SURE, HALF = 9.0, 0.1
LOGITS = torch.tensor([
    [[SURE, 0.0], [HALF, 0.0], [0.0, HALF], [SURE, 0.0]],
    [[SURE, 0.0], [SURE, 0.0], [SURE, 0.0], [0.0, SURE]],
])  # fmt: skip
LABELS = torch.tensor([0, 0, 1, 1])
COST = torch.tensor([[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0]], dtype=torch.float64)


def a_model():
    torch.manual_seed(0)
    shape = {"vocab_size": 40, "max_positions": 16, "hidden_size": 16, "num_heads": 2,
             "intermediate_size": 32, "num_layers": 3, "initializer_range": 0.3}  # fmt: skip
    return fastbert_on(bert("tiny", **shape), 3, exit_size=8)


def a_task(texts=10, tokens=8):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 40, (texts, tokens), generator=generator)
    mask = torch.arange(tokens) < torch.randint(3, tokens + 1, (texts, 1), generator=generator)
    labels = torch.arange(texts) % 3
    packed = PackedSequences(ids, mask.long(), torch.zeros_like(ids))
    return LabelledSequences(packed, labels, ("a", "b", "c"))


def test_what_becomes_of_texts_by_hand():
    outcome = runs.leaving(LOGITS, LABELS, COST, entropy_at_most(0.5))
    assert outcome["left"] == [2, 2] and outcome["layers"] == 1.5
    assert outcome["accuracy"] == 0.5  # texts 0 and 1
    assert outcome["flops"] == (1 + 4 + 6 + 4) / 4
    # The first exit is right in 0, 1 and 2, the last one in 0, 1 and 3: half of each.
    assert outcome["at_random"] == pytest.approx(0.75)
    all_first = runs.leaving(LOGITS, LABELS, COST, entropy_at_most(1.0))
    assert all_first["left"] == [4, 0] and all_first["accuracy"] == all_first["at_random"] == 0.75


def test_curves_go_from_the_last_exit_to_the_first():
    curves = runs.curves(LOGITS, LABELS, COST)
    for name, key, thresholds in (
        ("by_entropy", "speed", runs.SPEEDS), ("by_probability", "threshold", runs.PROBABILITIES)
    ):  # fmt: skip
        assert [row[key] for row in curves[name]] == list(thresholds)
        layers = [row["layers"] for row in curves[name]]
        assert layers == sorted(layers, reverse=True) and (layers[0], layers[-1]) == (2, 1)


def test_a_text_is_settled_where_exits_stay_right():
    right = LOGITS.argmax(-1) == LABELS
    texts = runs.each_text(LOGITS, right, LabelledSequences(
        a_task(4).sequences, LABELS, ("a", "b")
    ))  # fmt: skip
    assert texts["settled"] == [1, 1, 0, 2]
    assert len(texts["entropies"]) == 4 and len(texts["entropies"][0]) == 2
    assert texts["entropies"][0][0] < 0.01 and texts["entropies"][1][0] > 0.99
    assert texts["classes"] == LABELS.tolist()


def test_a_texts_cost_is_that_of_its_own_length():
    model, task = a_model(), a_task()
    flops, lengths = runs.costs(model, task), task.sequences.attention_mask.sum(1).tolist()
    for n, length in enumerate(lengths):
        assert flops[:, n].tolist() == model.flops(length)
    leave = [model.teacher.flops(length) for length in lengths]
    plain = sum(model.flops(n)[-1] - 2 * own for n, own in zip(lengths, leave, strict=True))
    assert runs.plain_cost(model, task) == pytest.approx(plain / len(lengths))


def test_all_answers_are_the_models_own():
    model, task = a_model().eval(), a_task()
    answers = runs.all_answers(model, task, batch_size=4)
    alone = model(task.sequences.input_ids, task.sequences.attention_mask).exit_logits
    assert torch.allclose(answers, torch.stack(alone), atol=1e-5)


def test_dropout_is_put_into_a_copy():
    encoder = bert("tiny", vocab_size=40, hidden_dropout=0.0, attention_dropout=0.0)
    copy = runs.with_dropout(encoder, 0.25)
    assert encoder.embeddings.dropout.p == 0 and copy.embeddings.dropout.p == 0.25
    assert all(block.attention.dropout == block.dropout.p == 0.25 for block in copy.stack.blocks)
    assert copy.config.hidden_dropout == copy.config.attention_dropout == 0.25
    assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), copy.parameters(),
                                                  strict=True))  # fmt: skip


def test_ways_that_differ_in_the_students_alone_share_a_backbone():
    names = [name for name, r in runs.FASTBERTS.items() if r.way not in ("joint", "depth")]
    stages = {name: runs.first_stage(runs.FASTBERTS[name]) for name in names}
    full = {stages[name] for name in names if not name.startswith("few")}
    assert full == {runs.MAIN} and set(stages.values()) - full == {runs.FEW}
    for name in ("joint", "fixed depth 2"):
        assert runs.first_stage(runs.FASTBERTS[name]) == runs.FASTBERTS[name]


def test_every_way_trains_what_it_says(monkeypatch):
    """Two steps of each, on a small task: who moved, and which exits are there."""
    task = a_task(24)
    sides = runs.Sides(task, task, "")
    monkeypatch.setattr(runs, "texts_of", lambda name: sides)
    monkeypatch.setattr(runs, "encoder_for", lambda name: a_model().encoder)
    runs.backbone.cache_clear()
    small = replace(runs.MAIN, steps=2, student_steps=2, batch_size=8, exit_size=8)
    base = runs.backbone(runs.first_stage(small), 0)
    for change in ({}, {"direction": "forward"}, {"dropout": False}, {"way": "labels"}):
        model = runs.trained(replace(small, **change), 0)
        moved = {name for name, p in model.named_parameters()
                 if not torch.equal(p, base.state_dict()[name])}  # fmt: skip
        assert moved and all(name.startswith(("exits.0.", "exits.1.")) for name in moved)
    joint = runs.trained(replace(small, way="joint"), 0)
    assert not torch.equal(joint.exits[0].dense.weight, base.exits[0].dense.weight)
    assert len(runs.trained(replace(small, way="depth", depth=2), 0).exits) == 2
    few = runs.trained(replace(small, labelled=8, unlabelled=True), 0)
    assert len(few.exits) == 3
    runs.backbone.cache_clear()


def test_the_clock_says_layers_and_flops_too():
    model, task = a_model(), a_task()
    times = runs.wall_times(model, task, (0.0, 1.0), batch_size=4, rounds=1)
    assert list(times) == [runs.PLAIN, "speed 0", "speed 1"]
    assert [row["layers"] for row in times.values()] == [3, 3, 1]
    cost = runs.costs(model, task).mean(1)
    assert times["speed 1"]["flops"] == pytest.approx(cost[0].item())
    assert times["speed 0"]["flops"] == pytest.approx(cost[-1].item())
    assert times[runs.PLAIN]["flops"] < times["speed 0"]["flops"]
    assert all(row["milliseconds"] > 0 for row in times.values())


def test_pairs_are_whole_and_balanced():
    task = runs.story_relations(MicroWorld.load().stories(200, seed=3))
    assert set(task.sequences.attention_mask.sum(1).tolist()) <= set(range(20, 65))
    assert (
        task.names == RELATIONS
        and task.commonest < 0.45
        and (task.cut is None or not task.cut.texts)
    )
